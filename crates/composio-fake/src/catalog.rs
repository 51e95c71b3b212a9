//! What there is to connect to: toolkits with their tools and trigger types, read from `data/` and made up for scale tests.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

const FILES: [&str; 4] = [
    include_str!("../data/github.yaml"),
    include_str!("../data/slack.yaml"),
    include_str!("../data/slackbot.yaml"),
    include_str!("../data/gmail.yaml"),
];
const OTHERS: &str = include_str!("../data/others.yaml");

/// The version that Composio takes for "whatever was there first".
pub(crate) const FIRST_VERSION: &str = "00000000_00";

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
    required: Vec<String>,
    input: Map<String, Value>,
    pub(crate) output: Map<String, Value>,
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
    required: Vec<String>,
    config: Map<String, Value>,
    payload: Map<String, Value>,
}

fn yes() -> bool {
    true
}

impl Toolkit {
    pub(crate) fn version(&self) -> &str {
        self.versions.last().map_or(FIRST_VERSION, String::as_str)
    }

    pub(crate) fn knows_version(&self, version: &str) -> bool {
        version == "latest" || version == FIRST_VERSION || self.versions.iter().any(|known| known == version)
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
    pub(crate) fn input_schema(&self) -> Value {
        object(&self.name, "Request", &self.input, &self.required)
    }

    /// The whole answer has a schema, not only the data in it.
    pub(crate) fn output_schema(&self) -> Value {
        json!({
            "type": "object",
            "title": format!("{} Response", self.name),
            "properties": {
                "data": {"type": "object", "properties": self.output, "description": "What the tool gives back."},
                "error": {"type": ["string", "null"], "description": "Why it failed, if it did."},
                "successful": {"type": "boolean", "description": "Whether it worked."},
            },
            "required": ["data", "successful"],
        })
    }
}

impl TriggerType {
    pub(crate) fn config_schema(&self) -> Value {
        object(&self.name, "Config", &self.config, &self.required)
    }

    pub(crate) fn payload_schema(&self) -> Value {
        object(&self.name, "Payload", &self.payload, &[])
    }
}

fn object(name: &str, what: &str, properties: &Map<String, Value>, required: &[String]) -> Value {
    json!({"type": "object", "title": format!("{name} {what}"), "properties": properties, "required": required})
}

/// Toolkits in the order of their use, most used first.
#[derive(Debug)]
pub(crate) struct Catalog {
    toolkits: Vec<Toolkit>,
    by_slug: HashMap<String, usize>,
    toolkit_of_tool: HashMap<String, usize>,
}

impl Catalog {
    pub(crate) fn shipped() -> Self {
        let mut catalog = Self { toolkits: vec![], by_slug: HashMap::new(), toolkit_of_tool: HashMap::new() };
        for file in FILES {
            catalog.add(serde_saphyr::from_str(file).expect("the data that ships is valid"));
        }
        let others: Vec<Toolkit> = serde_saphyr::from_str(OTHERS).expect("the data that ships is valid");
        others.into_iter().for_each(|toolkit| catalog.add(toolkit));
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
        tool.input.insert(format!("added_{next}"), json!({"type": "string", "description": "New in this version."}));
        true
    }
}

fn next_version(version: &str) -> String {
    let (day, count) = version.split_once('_').unwrap_or((version, "00"));
    format!("{day}_{:02}", count.parse::<u32>().unwrap_or(0) + 1)
}

impl Tool {
    pub(crate) fn made(
        slug: String,
        name: String,
        description: String,
        tag: &str,
        input: Map<String, Value>,
        output: Map<String, Value>,
    ) -> Self {
        let required = input.keys().take(1).cloned().collect();
        let tags = vec![tag.to_owned()];
        Self { slug, name, description, tags, scopes: vec![], required, input, output, deprecated: false, fails: None }
    }
}
