//! The documents for people: every link between them leads somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::repository;

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut broken = Vec::new();
    let documents = documents();
    assert!(documents.len() > 10, "the documents are found");
    for document in &documents {
        let text = std::fs::read_to_string(document).unwrap();
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { document.clone() } else { document.parent().unwrap().join(file) };
            let found = target.exists() && (anchor.is_empty() || anchors(&target).contains(anchor));
            if !found {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

fn documents() -> Vec<PathBuf> {
    let root = repository();
    let markdown = |folder: &Path| {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect::<Vec<_>>()
    };
    [markdown(&root), markdown(&root.join("docs"))].concat()
}

/// The targets of links, other than addresses on the web.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://"))
}

/// The anchors of a document's headings: lower case, without punctuation, blanks as hyphens.
fn anchors(document: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(document).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
        })
        .collect()
}
