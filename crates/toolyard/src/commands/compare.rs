//! `toolyard composio compare`: which tools of a program that uses Composio have a counterpart here. It needs neither a server nor a database.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use catalog::{Catalog, Source};
use composio_api::compare::{Counterpart, counterpart, slugs_in};
use composio_api::names::Names;
use kernel::ProjectId;
use native::Native;
use sentences::Sentences;
use serde_json::json;

use super::print::{self, Column, Table};
use crate::config::Config;
use crate::yard;

const TOOLS: Table = Table::new(&[Column::text("COMPOSIO"), Column::text("HERE"), Column::text("TOOL"), Column::text("WHAT IT DOES")]);

pub(super) fn run(config: &Config, file: &Path, as_json: bool) -> anyhow::Result<()> {
    let slugs = slugs_in(&read(file)?);
    anyhow::ensure!(!slugs.is_empty(), "there are no tool slugs in {}; they look like `GITHUB_CREATE_AN_ISSUE`", file.display());
    let (catalog, names) = catalog(config)?;
    let compared: Vec<(String, Counterpart)> =
        slugs.into_iter().map(|slug| Ok((slug.clone(), counterpart(&catalog, &names, &slug)?))).collect::<anyhow::Result<_>>()?;
    if as_json {
        let tools: Vec<_> = compared.iter().map(|(slug, found)| json!({"composio": slug, "here": found})).collect();
        print::json(&json!({"count": tools.len(), "tools": tools}));
        return Ok(());
    }
    let row = |(slug, found): &(String, Counterpart)| {
        let (here, tool, about) = match found {
            Counterpart::Same => ("same slug", slug.clone(), String::new()),
            Counterpart::Likely { slug, about } => ("likely", slug.clone(), about.clone()),
            Counterpart::Nothing { toolkit } => ("nothing alike", format!("see {toolkit}"), String::new()),
            Counterpart::NoToolkit => ("no such toolkit", String::new(), String::new()),
        };
        vec![slug.clone(), here.to_owned(), tool, about]
    };
    TOOLS.show(&compared.iter().map(row).collect::<Vec<_>>());
    let count = |is: fn(&Counterpart) -> bool| compared.iter().filter(|(_, found)| is(found)).count();
    eprintln!(
        "{} tools: {} of the same slug, {} with a likely counterpart, {} without. Arguments and results are Toolyard's own in any case.",
        compared.len(),
        count(|found| matches!(found, Counterpart::Same)),
        count(|found| matches!(found, Counterpart::Likely { .. })),
        count(|found| matches!(found, Counterpart::Nothing { .. } | Counterpart::NoToolkit)),
    );
    Ok(())
}

fn read(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read the input")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The integrations that everybody has.
fn catalog(config: &Config) -> anyhow::Result<(Catalog, Names)> {
    let added = config.integrations_dir.as_ref().map(|dir| native::read_dir(dir)).transpose();
    let added = added.context("cannot read the integrations directory")?.unwrap_or_default();
    let native = Arc::new(Native::new(native::each_built_in().chain(added.into_iter().map(Ok)), yard::egress(config)?)?);
    let names = Names::of(native.integrations(ProjectId::nil()));
    let mut catalog = Catalog::new(vec![native as Arc<dyn Source>]);
    if config.sentence_model {
        catalog = catalog.with_embedder(Arc::new(Sentences::new()));
    }
    Ok((catalog, names))
}
