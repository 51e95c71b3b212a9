//! What there is to connect to: toolkits with their tools and trigger types, read from `data/` and made up for scale tests.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

const FILES: [&str; 4] = [
    include_str!("../data/github.yaml"),
    include_str!("../data/slack.yaml"),
    include_str!("../data/slackbot.yaml"),
    include_str!("../data/gmail.yaml"),
];
const OTHERS: &str = include_str!("../data/others.yaml");

/// The version that Composio takes for "whatever was there first".
const FIRST_VERSION: &str = "00000000_00";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Toolkit {
    pub(crate) slug: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) url: String,
    pub(crate) categories: Vec<Category>,
    /// Oldest first; the last is the latest.
    pub(crate) versions: Vec<String>,
    pub(crate) auth: Vec<Auth>,
    pub(crate) tools: Vec<Tool>,
    #[serde(default)]
    pub(crate) triggers: Vec<TriggerType>,
    #[serde(default = "yes")]
    pub(crate) listed: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Category {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// One way to authenticate, and the fields it asks a person for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auth {
    pub(crate) mode: String,
    #[serde(default)]
    pub(crate) managed: bool,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    #[serde(default)]
    pub(crate) account_required: Vec<Field>,
    #[serde(default)]
    pub(crate) account_optional: Vec<Field>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) display_name: String,
    pub(crate) description: String,
    pub(crate) secret: bool,
    pub(crate) default: Option<String>,
}

/// The properties of a schema. Made-up tools by the thousand share them.
pub(crate) type Fields = Arc<Map<String, Value>>;

fn shared<'de, D: Deserializer<'de>>(from: D) -> Result<Fields, D::Error> {
    Map::deserialize(from).map(Arc::new)
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    pub(crate) slug: String,
    pub(crate) name: String,
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    pub(crate) required: Vec<String>,
    #[serde(deserialize_with = "shared")]
    pub(crate) input: Fields,
    #[serde(deserialize_with = "shared")]
    pub(crate) output: Fields,
    #[serde(default)]
    pub(crate) deprecated: bool,
    /// What the tool says when it runs, if it never succeeds.
    pub(crate) fails: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TriggerType {
    pub(crate) slug: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) instructions: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) required: Vec<String>,
    pub(crate) config: Map<String, Value>,
    pub(crate) payload: Map<String, Value>,
}

fn yes() -> bool {
    true
}

impl Toolkit {
    pub(crate) fn version(&self) -> &str {
        self.versions.last().map_or(FIRST_VERSION, String::as_str)
    }

    /// The version that is meant, if there is such a one.
    pub(crate) fn resolve<'a>(&'a self, version: &'a str) -> Option<&'a str> {
        match version {
            "latest" => Some(self.version()),
            FIRST_VERSION => Some(version),
            _ => self.versions.iter().map(String::as_str).find(|known| *known == version),
        }
    }

    pub(crate) fn no_auth(&self) -> bool {
        self.auth.iter().all(|auth| auth.mode == "NO_AUTH")
    }

    pub(crate) fn auth(&self, mode: &str) -> Option<&Auth> {
        self.auth.iter().find(|auth| auth.mode == mode)
    }

    pub(crate) fn managed(&self) -> Option<&Auth> {
        self.auth.iter().find(|auth| auth.managed)
    }

    pub(crate) fn logo(&self) -> String {
        format!("https://logos.example/{}.svg", self.slug)
    }
}

impl Tool {
    pub(crate) fn input_schema(&self) -> Schema<'_> {
        Schema { kind: "object", title: format!("{} Request", self.name), properties: &self.input, required: &self.required }
    }

    /// The whole answer has a schema, not only the data in it.
    pub(crate) fn output_schema(&self) -> AnswerSchema<'_> {
        let data = Data { kind: "object", properties: &self.output, description: "What the tool gives back." };
        let error = json!({"type": ["string", "null"], "description": "Why it failed, if it did."});
        let successful = json!({"type": "boolean", "description": "Whether it worked."});
        let properties = AnswerFields { data, error, successful };
        AnswerSchema { kind: "object", title: format!("{} Response", self.name), properties, required: ["data", "successful"] }
    }
}

impl TriggerType {
    pub(crate) fn config_schema(&self) -> Schema<'_> {
        Schema { kind: "object", title: format!("{} Config", self.name), properties: &self.config, required: &self.required }
    }

    pub(crate) fn payload_schema(&self) -> Schema<'_> {
        Schema { kind: "object", title: format!("{} Payload", self.name), properties: &self.payload, required: &[] }
    }
}

/// The JSON Schema of an object. It borrows, because lists have a thousand of them.
#[derive(Debug, Serialize)]
pub(crate) struct Schema<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: String,
    properties: &'a Map<String, Value>,
    required: &'a [String],
}

impl Schema<'_> {
    /// Where a value departs from it, one line each.
    pub(crate) fn faults(&self, value: &Map<String, Value>) -> Vec<String> {
        match jsonschema::validator_for(&json!(self)) {
            Ok(validator) => validator.iter_errors(&Value::Object(value.clone())).map(|error| error.to_string()).collect(),
            Err(error) => vec![error.to_string()],
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct AnswerSchema<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: String,
    properties: AnswerFields<'a>,
    required: [&'static str; 2],
}

#[derive(Debug, Serialize)]
struct AnswerFields<'a> {
    data: Data<'a>,
    error: Value,
    successful: Value,
}

#[derive(Debug, Serialize)]
struct Data<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    properties: &'a Map<String, Value>,
    description: &'static str,
}

/// Toolkits in the order of their use, most used first.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    toolkits: Vec<Toolkit>,
    by_slug: HashMap<String, usize>,
    toolkit_of_tool: HashMap<String, usize>,
}

impl Catalog {
    pub(crate) fn shipped() -> Self {
        static SHIPPED: LazyLock<Catalog> = LazyLock::new(Catalog::read);
        SHIPPED.clone()
    }

    fn read() -> Self {
        let mut catalog = Self { toolkits: vec![], by_slug: HashMap::new(), toolkit_of_tool: HashMap::new() };
        for file in FILES {
            catalog.add(serde_saphyr::from_str(file).expect("the data that ships is valid"));
        }
        let others: Vec<Toolkit> = serde_saphyr::from_str(OTHERS).expect("the data that ships is valid");
        for toolkit in others {
            catalog.add(toolkit);
        }
        catalog
    }

    pub(crate) fn add(&mut self, toolkit: Toolkit) {
        let index = self.toolkits.len();
        self.by_slug.insert(toolkit.slug.clone(), index);
        for tool in &toolkit.tools {
            self.toolkit_of_tool.insert(tool.slug.clone(), index);
        }
        self.toolkits.push(toolkit);
    }

    pub(crate) fn toolkits(&self) -> impl Iterator<Item = &Toolkit> {
        self.toolkits.iter().filter(|toolkit| toolkit.listed)
    }

    pub(crate) fn toolkit(&self, slug: &str) -> Option<&Toolkit> {
        self.by_slug.get(slug).map(|index| &self.toolkits[*index])
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = (&Toolkit, &Tool)> {
        self.toolkits().flat_map(|toolkit| toolkit.tools.iter().map(move |tool| (toolkit, tool)))
    }

    pub(crate) fn tool(&self, slug: &str) -> Option<(&Toolkit, &Tool)> {
        let toolkit = &self.toolkits[*self.toolkit_of_tool.get(slug)?];
        toolkit.tools.iter().find(|tool| tool.slug == slug).map(|tool| (toolkit, tool))
    }

    pub(crate) fn trigger_types(&self) -> impl Iterator<Item = (&Toolkit, &TriggerType)> {
        self.toolkits().flat_map(|toolkit| toolkit.triggers.iter().map(move |kind| (toolkit, kind)))
    }

    pub(crate) fn trigger_type(&self, slug: &str) -> Option<(&Toolkit, &TriggerType)> {
        self.trigger_types().find(|(_, kind)| kind.slug == slug)
    }

    pub(crate) fn remove_tool(&mut self, slug: &str) -> bool {
        let Some(index) = self.toolkit_of_tool.remove(slug) else { return false };
        self.toolkits[index].tools.retain(|tool| tool.slug != slug);
        true
    }

    /// Changes a tool as a new version of its toolkit would: other words, one more optional argument.
    pub(crate) fn touch_tool(&mut self, slug: &str) -> bool {
        let Some(index) = self.toolkit_of_tool.get(slug) else { return false };
        let toolkit = &mut self.toolkits[*index];
        let next = next_version(toolkit.version());
        toolkit.versions.push(next.clone());
        let Some(tool) = toolkit.tools.iter_mut().find(|tool| tool.slug == slug) else { return false };
        tool.description.push_str(&format!(" Changed in {next}."));
        Arc::make_mut(&mut tool.input).insert(format!("added_{next}"), json!({"type": "string", "description": "New in this version."}));
        true
    }
}

fn next_version(version: &str) -> String {
    let (day, count) = version.split_once('_').unwrap_or((version, "00"));
    format!("{day}_{:02}", count.parse::<u32>().unwrap_or(0) + 1)
}
