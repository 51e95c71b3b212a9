//! Reading a set: `tools.jsonl`, `queries.jsonl` and `qrels.tsv` of a folder.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use catalog::search::{Document, Integration, Kind};
use serde::Deserialize;
use serde_json::Value;

/// A collection of documents and queries with known answers.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) documents: Vec<Document>,
    /// Text and the ids of the right documents.
    pub(super) queries: Vec<(String, Vec<u64>)>,
    /// Questions that no document answers.
    pub(super) nothing: Vec<String>,
    pub(super) is_judged: bool,
}

impl Set {
    /// All sets in one, with the documents repeated until there are so many. It is for measuring time: right answers are not known.
    pub(super) fn grown(sets: &[Self], tools: usize) -> Self {
        let documents = sets.iter().flat_map(|set| &set.documents).cycle().take(tools).zip(0..);
        let queries = sets.iter().flat_map(|set| &set.queries).map(|(text, _)| (text.clone(), Vec::new()));
        Self {
            name: format!("time at {tools}"),
            documents: documents.map(|(document, id)| Document { id, ..document.clone() }).collect(),
            queries: queries.collect(),
            nothing: Vec::new(),
            is_judged: false,
        }
    }
}

#[derive(Deserialize)]
struct Tool {
    id: String,
    name: String,
    #[serde(default)]
    integration: Option<String>,
    #[serde(default)]
    integration_description: Option<String>,
    #[serde(default)]
    resource: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    params: Vec<String>,
    #[serde(default)]
    input_schema: Option<Value>,
    #[serde(default)]
    doc: Option<String>,
    #[serde(default)]
    use_cases: Vec<String>,
    #[serde(default)]
    read_only: bool,
    /// 3, what people do most with the app, to 1, as in manifests.
    #[serde(default)]
    weight: Option<u8>,
}

#[derive(Deserialize)]
struct Question {
    id: String,
    text: String,
}

/// Every set in the folder, by name; or the folder itself when it is a set.
pub(super) fn read_all(folder: &Path) -> anyhow::Result<Vec<Set>> {
    if folder.join("tools.jsonl").is_file() {
        return Ok(vec![read_set(folder)?]);
    }
    let mut folders: Vec<_> = fs::read_dir(folder)
        .with_context(|| format!("cannot read `{}`", folder.display()))?
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.join("tools.jsonl").is_file())
        .collect();
    folders.sort();
    folders.iter().map(|f| read_set(f)).collect()
}

fn read_set(folder: &Path) -> anyhow::Result<Set> {
    let tools: Vec<Tool> = lines(&folder.join("tools.jsonl"))?;
    let questions: Vec<Question> = lines(&folder.join("queries.jsonl"))?;
    let ids: HashMap<String, u64> = tools.iter().zip(0..).map(|(t, i)| (t.id.clone(), i)).collect();
    let mut answers: HashMap<String, Vec<u64>> = HashMap::new();
    for line in read(&folder.join("qrels.tsv"))?.lines() {
        if let Some((query, tool)) = line.split_once('\t')
            && let Some(&id) = ids.get(tool.trim())
        {
            answers.entry(query.to_owned()).or_default().push(id);
        }
    }
    let queries = questions.into_iter().filter_map(|q| answers.remove(&q.id).map(|a| (q.text, a))).collect();
    let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let nothing = folder.join("nothing.txt");
    let nothing =
        if nothing.is_file() { read(&nothing)?.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect() } else { Vec::new() };
    let documents = tools.into_iter().zip(0..).map(|(t, id)| document(t, id)).collect();
    Ok(Set { name, documents, queries, nothing, is_judged: true })
}

fn document(tool: Tool, id: u64) -> Document {
    let name = tool.integration.unwrap_or_default();
    let nested = tool.doc.and_then(|d| serde_json::from_str::<Value>(&d).ok());
    let schema = tool.input_schema.as_ref().and_then(|s| s.get("properties")).or_else(|| nested.as_ref().and_then(|d| d.get("parameters")));
    let named = schema.and_then(Value::as_object).into_iter().flat_map(|o| o.keys().cloned());
    let described = schema.and_then(Value::as_object).into_iter().flat_map(|o| o.values()).filter_map(|p| p["description"].as_str());
    let about_parameters = described.collect::<Vec<_>>().join(" ");
    Document {
        id,
        kind: if tool.r#type.as_deref() == Some("trigger") { Kind::Event } else { Kind::Action },
        provider: String::new(),
        integration: Integration {
            key: name.clone(),
            about: format!("{} {}", tool.integration_description.unwrap_or_default(), tool.category.unwrap_or_default()),
            name,
            aliases: tool.aliases,
        },
        resource: tool.resource.unwrap_or_default(),
        name: tool.name,
        description: tool.description.unwrap_or_default(),
        about_parameters,
        parameters: tool.params.into_iter().chain(named).collect(),
        use_cases: tool.use_cases,
        read_only: tool.read_only,
        usage: tool.weight.map(|weight| [0.4, 0.7, 1.0][usize::from(weight.clamp(1, 3)) - 1]),
        ..Document::default()
    }
}

fn lines<T: for<'a> Deserialize<'a>>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = read(path)?;
    let parsed = text.lines().filter(|line| !line.trim().is_empty()).map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().with_context(|| format!("`{}` is not one JSON object a line", path.display()))
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}
