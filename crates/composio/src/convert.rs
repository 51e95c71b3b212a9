//! From Composio's toolkits, tools and trigger types to integrations, actions and events: functions of values.

use std::collections::{HashMap, HashSet};

use catalog::auth::{AuthScheme, Credentials, Hosted};
use catalog::{Action, Draft, Event, Integration};
use kernel::json::Document;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::KEY;

/// Composio's own tools about tools; what they do is done here.
const META: &str = "composio";
/// How often people mean a tool that Composio calls important, when they mean its toolkit.
const IMPORTANT: f32 = 0.7;
/// Tags that say how a tool acts, not what it is about.
const HINTS: [&str; 7] = ["destructiveHint", "idempotentHint", "mcpIgnore", "openWorldHint", "readOnlyHint", "updateHint", "important"];

/// A toolkit, as far as it is read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Toolkit {
    pub(crate) slug: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) no_auth: bool,
    #[serde(default, deserialize_with = "names")]
    pub(crate) auth_schemes: Vec<String>,
    #[serde(default, deserialize_with = "names")]
    pub(crate) composio_managed_auth_schemes: Vec<String>,
    /// Only where one toolkit is read.
    #[serde(default, deserialize_with = "names")]
    pub(crate) auth_config_details: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) meta: Meta,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Meta {
    #[serde(default, deserialize_with = "nullable")]
    description: String,
    #[serde(default)]
    logo: Option<String>,
    #[serde(default)]
    app_url: Option<String>,
    #[serde(default, deserialize_with = "names")]
    categories: Vec<String>,
}

/// A tool, as far as it is read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tool {
    pub(crate) slug: String,
    #[serde(default, deserialize_with = "nullable")]
    name: String,
    #[serde(default, deserialize_with = "nullable")]
    description: String,
    #[serde(deserialize_with = "slug")]
    pub(crate) toolkit: String,
    #[serde(default)]
    input_parameters: Schema,
    #[serde(default)]
    output_parameters: Schema,
    #[serde(default, deserialize_with = "names")]
    scopes: Vec<String>,
    #[serde(default, deserialize_with = "names")]
    tags: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    is_deprecated: bool,
}

/// A trigger type, as far as it is read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TriggerType {
    pub(crate) slug: String,
    #[serde(default, deserialize_with = "nullable")]
    name: String,
    #[serde(default, deserialize_with = "nullable")]
    description: String,
    #[serde(deserialize_with = "slug")]
    pub(crate) toolkit: String,
    #[serde(default, alias = "trigger_config")]
    config: Schema,
    #[serde(default)]
    payload: Schema,
}

/// A schema on its way, as text: thousands of them as values would take ten times the room.
#[derive(Clone, Debug, Default)]
struct Schema(Option<Document>);

impl Schema {
    /// The schema, if it is one.
    fn document(&self) -> Option<Document> {
        self.0.clone()
    }

    /// The schema of an object, whatever was given.
    fn of_object(&self) -> Value {
        self.0.as_ref().map_or_else(|| json!({"type": "object"}), Document::value)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(deserializer)?;
        Ok(Self(given.is_object().then(|| (&given).into())))
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().map(Document::value).serialize(serializer)
    }
}

/// Everything of one toolkit.
#[derive(Debug)]
pub(crate) struct ToolkitListing {
    pub(crate) toolkit: Toolkit,
    pub(crate) tools: Vec<Tool>,
    pub(crate) triggers: Vec<TriggerType>,
    /// Whether its tools were read; else they are when somebody asks for them.
    pub(crate) is_filled: bool,
}

/// What an integration is kept with: enough to add to it.
#[derive(Debug)]
pub(crate) struct ToolsRead(pub(crate) bool);

/// Puts tools and triggers to their toolkits, in the order of the toolkits. What belongs to none is left out.
pub(crate) fn gather(toolkits: Vec<Toolkit>, tools: Vec<Tool>, triggers: Vec<TriggerType>, is_filled: bool) -> Vec<ToolkitListing> {
    let mut wholes: Vec<ToolkitListing> = Vec::with_capacity(toolkits.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    for toolkit in toolkits {
        let key = toolkit.slug.to_lowercase();
        if key != META && is_segment(&key) && !places.contains_key(&key) {
            places.insert(key, wholes.len());
            wholes.push(ToolkitListing { toolkit, tools: Vec::new(), triggers: Vec::new(), is_filled });
        }
    }
    for tool in tools {
        if let Some(place) = places.get(&tool.toolkit.to_lowercase()) {
            wholes[*place].tools.push(tool);
        }
    }
    for trigger in triggers {
        if let Some(place) = places.get(&trigger.toolkit.to_lowercase()) {
            wholes[*place].triggers.push(trigger);
        }
    }
    wholes
}

impl From<ToolkitListing> for Integration {
    fn from(whole: ToolkitListing) -> Self {
        let ToolkitListing { toolkit, tools, triggers, is_filled } = whole;
        let key = toolkit.slug.to_lowercase();
        let auth = schemes(&toolkit);
        let name = if toolkit.name.is_empty() { key.clone() } else { toolkit.name };
        let mut taken = HashSet::new();
        let live = tools.into_iter().filter(|tool| !tool.is_deprecated && is_segment(&tool.slug));
        let actions = live.filter_map(|tool| {
            let short = action_key(&key, &tool.slug);
            let chosen = [short, tool.slug.as_str()].into_iter().find(|name| !taken.contains(*name))?.to_owned();
            taken.insert(chosen.clone());
            Some(tool.action(chosen))
        });
        let draft = Draft {
            name,
            description: toolkit.meta.description,
            url: toolkit.meta.app_url,
            logo: toolkit.meta.logo,
            categories: toolkit.meta.categories,
            auth,
            actions: actions.collect(),
            events: triggers.into_iter().filter(|trigger| is_segment(&trigger.slug)).map(TriggerType::event).collect(),
            key,
            ..Draft::default()
        };
        Self::new(KEY, draft).served_by(ToolsRead(is_filled))
    }
}

impl Tool {
    /// Whether it would be listed under this name.
    pub(crate) fn is_listed_as(&self, toolkit: &str, action: &str) -> bool {
        !self.is_deprecated && self.toolkit.eq_ignore_ascii_case(toolkit) && action_key(toolkit, &self.slug) == action
    }

    fn action(self, key: String) -> Action {
        let has = |hint: &str| self.tags.iter().any(|tag| tag == hint);
        let name = if self.name.is_empty() { key.clone() } else { self.name };
        let mut action = Action::new(key, name, self.description, &self.input_parameters.of_object());
        action.destructive = has("destructiveHint");
        action.usage = has("important").then_some(IMPORTANT);
        action.read_only = has("readOnlyHint") && !has("destructiveHint") && !has("updateHint");
        action.output_schema = self.output_parameters.document();
        action.scopes = self.scopes;
        action.categories = self.tags.into_iter().filter(|tag| !HINTS.contains(&tag.as_str())).collect();
        action.remote = Some(self.slug);
        action
    }
}

impl TriggerType {
    fn event(self) -> Event {
        Event {
            name: if self.name.is_empty() { self.slug.clone() } else { self.name },
            key: self.slug,
            description: self.description,
            use_cases: Vec::new(),
            config_schema: (&self.config.of_object()).into(),
            payload_schema: self.payload.document(),
        }
    }
}

/// The name of a tool without that of its toolkit.
pub(crate) fn action_key<'a>(toolkit: &str, slug: &'a str) -> &'a str {
    let prefix = format!("{}_", toolkit.to_uppercase());
    slug.strip_prefix(prefix.as_str()).filter(|rest| !rest.is_empty()).unwrap_or(slug)
}

/// The ways to connect: the service's consent, a key, or nothing at all.
fn schemes(toolkit: &Toolkit) -> Vec<AuthScheme> {
    let named = if toolkit.auth_schemes.is_empty() { &toolkit.auth_config_details } else { &toolkit.auth_schemes };
    let named: Vec<String> = named.iter().map(|name| name.to_uppercase()).collect();
    let is_managed = |scheme: &str| {
        scheme == "DCR_OAUTH" || toolkit.composio_managed_auth_schemes.iter().any(|managed| managed.eq_ignore_ascii_case(scheme))
    };
    let consents = || named.iter().filter(|scheme| matches!(scheme.as_str(), "OAUTH2" | "OAUTH1" | "DCR_OAUTH"));
    let mut schemes = Vec::new();
    if let Some(scheme) = consents().find(|scheme| is_managed(scheme)).or_else(|| consents().next()) {
        schemes.push(AuthScheme::Hosted(Hosted { is_managed: is_managed(scheme), scheme: scheme.clone(), is_oauth: true }));
    }
    if let Some(scheme) = named.iter().find(|scheme| !consents().any(|consent| consent == *scheme) && *scheme != "NO_AUTH") {
        schemes.push(AuthScheme::Hosted(Hosted { is_managed: true, scheme: scheme.clone(), is_oauth: false }));
    }
    if schemes.is_empty() && !toolkit.no_auth && named.is_empty() {
        schemes.push(AuthScheme::Hosted(Hosted { is_managed: true, scheme: "API_KEY".to_owned(), is_oauth: false }));
    }
    if schemes.is_empty() {
        schemes.push(AuthScheme::None(Credentials::default()));
    }
    schemes
}

/// What a toolkit can be called here.
pub(crate) fn is_key(text: &str) -> bool {
    is_segment(text) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// What can stand between the dots of a call ref.
pub(crate) fn is_segment(text: &str) -> bool {
    !text.is_empty() && text.len() <= 200 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Names, whether they are written as text or as objects that have one.
fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let given: Option<Vec<Value>> = Deserialize::deserialize(deserializer)?;
    let name = |value: Value| match value {
        Value::String(name) => Some(name),
        other => ["mode", "auth_mode", "name", "id", "slug"].iter().find_map(|key| other.get(key)?.as_str().map(str::to_owned)),
    };
    Ok(given.unwrap_or_default().into_iter().filter_map(name).collect())
}

fn slug<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let given = Value::deserialize(deserializer)?;
    let slug = given.as_str().or_else(|| given.get("slug")?.as_str());
    slug.map(str::to_owned).ok_or_else(|| serde::de::Error::custom("a toolkit without a slug"))
}
