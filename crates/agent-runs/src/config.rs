//! What an agent is, read from the data of a revision: `kind: agent`, or the shape of the reference system. Functions of values.

use calls::permission::RuleSet;
use definitions::config::{OnError, ToolConfig, check_names, coerce_list};
use kernel::suggest::did_you_mean;
use kernel::template::Engine;
use models::Api;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use url::Url;

use crate::limits::{Limits, Prices};

pub(crate) static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::strict);

const CONTEXT_TOKENS: u64 = 128_000;
const MODEL_KEYS: [&str; 9] = ["api", "connection", "name", "url", "headers", "max_output_tokens", "context_tokens", "prices", "extras"];
/// What a model is asked by us, and nobody else.
const OWN_FIELDS: [&str; 8] = ["model", "messages", "input", "tools", "stream", "system", "instructions", "response_format"];

/// An agent that can run.
#[derive(Clone, Debug)]
pub(crate) struct AgentConfig {
    /// The agent whose tools it has, by name or number.
    pub(crate) agent: Option<String>,
    /// What it has without one.
    pub(crate) tools: Vec<ToolConfig>,
    /// MCP servers by name, each with what its policy says.
    pub(crate) servers: Vec<String>,
    pub(crate) model: ModelConfig,
    /// A template over `inputs`.
    pub(crate) instructions: String,
    pub(crate) limits: Limits,
    /// What the outputs must fit.
    pub(crate) outputs: Option<Value>,
    /// The author's plan for tools that say nothing themselves, in the shape of the reference system.
    pub(crate) plan: Option<RuleSet>,
    /// A call whose outcome nobody knows ends the run, in place of being told to the model.
    pub(crate) stops_when_uncertain: bool,
}

/// The model that an agent asks.
#[derive(Clone, Debug)]
pub(crate) struct ModelConfig {
    pub(crate) api: Api,
    pub(crate) name: String,
    pub(crate) url: Url,
    /// The slug of the connection that brings the credential.
    pub(crate) connection: Option<String>,
    /// Headers of the author's, which may name secrets.
    pub(crate) headers: Map<String, Value>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) context_tokens: u64,
    pub(crate) prices: Option<Prices>,
    pub(crate) extras: Option<Map<String, Value>>,
}

/// Where an API is, if nobody says otherwise.
pub(crate) fn usual_url(api: Api) -> Url {
    let text = match api {
        Api::OpenaiChat | Api::OpenaiResponses => "https://api.openai.com/v1",
        Api::Anthropic => "https://api.anthropic.com/v1",
    };
    text.parse().expect("a constant address")
}

/// The integration whose connections hold credentials for an API.
pub(crate) fn integration_of(api: Api) -> &'static str {
    match api {
        Api::OpenaiChat | Api::OpenaiResponses => "openai",
        Api::Anthropic => "anthropic",
    }
}

impl AgentConfig {
    /// Reads the data of a revision; the error is for its author.
    pub(crate) fn read(data: &Value) -> Result<Self, String> {
        let config = if data.get("kind").and_then(Value::as_str) == Some("agent") { own(data)? } else { reference(data)? };
        if config.limits.usd.is_some() && config.model.prices.is_none() {
            return Err(
                "`data.limits.usd` needs `data.model.prices`: what a million tokens cost, as {\"input\": …, \"output\": …}".to_owned()
            );
        }
        ENGINE.compile(&json!(config.instructions)).map_err(|error| format!("`data.instructions`: {}", error.message))?;
        check_names(&config.tools).map_err(|error| format!("`data.tools`: {error}"))?;
        Ok(config)
    }
}

fn own(data: &Value) -> Result<AgentConfig, String> {
    let instructions = data.get("instructions").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let instructions = instructions.ok_or("`data.instructions` must be text: what the agent shall do")?;
    let agent = match data.get("agent") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) if !name.is_empty() => Some(name.clone()),
        Some(Value::Number(number)) if number.is_u64() => Some(number.to_string()),
        Some(_) => return Err("`data.agent` must be the name or the number of an agent".to_owned()),
    };
    let tools = tools("data.tools", data.get("tools"))?;
    if agent.is_some() && !tools.is_empty() {
        return Err("`data.tools` has no place beside `data.agent`: the agent's own tools are what it has".to_owned());
    }
    let model = data.get("model").and_then(Value::as_object).ok_or("`data.model` must be an object with `api` and `name`")?;
    Ok(AgentConfig {
        agent,
        tools,
        servers: Vec::new(),
        model: ModelConfig::read(model)?,
        instructions: instructions.to_owned(),
        limits: Limits::read(data.get("limits"))?,
        outputs: output_schema(data),
        plan: None,
        stops_when_uncertain: data.get("on_uncertain").and_then(Value::as_str) == Some("stop"),
    })
}

fn output_schema(data: &Value) -> Option<Value> {
    data.pointer("/schemas/outputs").filter(|schema| schema.as_object().is_some_and(|schema| !schema.is_empty())).cloned()
}

impl ModelConfig {
    fn read(fields: &Map<String, Value>) -> Result<Self, String> {
        known(fields, "data.model", &MODEL_KEYS)?;
        let api = text(fields, "data.model", "api")?.ok_or("`data.model.api` is missing: openai_chat, openai_responses or anthropic")?;
        let api = read_api("data.model.api", &api)?;
        let name = text(fields, "data.model", "name")?.ok_or("`data.model.name` is missing: the name by which the API knows the model")?;
        let connection = text(fields, "data.model", "connection")?;
        let url = match text(fields, "data.model", "url")? {
            None => usual_url(api),
            Some(url) => address("data.model.url", &url)?,
        };
        let headers = match fields.get("headers").filter(|headers| !headers.is_null()) {
            None => Map::new(),
            Some(Value::Object(headers)) => headers.clone(),
            Some(_) => return Err("`data.model.headers` must be an object of texts".to_owned()),
        };
        for (name, value) in &headers {
            let fine =
                name.parse::<http::HeaderName>().is_ok() && value.as_str().is_some_and(|text| http::HeaderValue::from_str(text).is_ok());
            if !fine {
                return Err(format!("`data.model.headers.{name}` cannot be sent as a header"));
            }
        }
        if connection.is_some() && url.origin() != usual_url(api).origin() {
            let host = usual_url(api).host_str().unwrap_or_default().to_owned();
            return Err(format!(
                "`data.model.connection`: the credential of a connection goes to `{host}` only; for another `url`, name a secret in `data.model.headers`"
            ));
        }
        let max_output_tokens = positive(fields, "data.model", "max_output_tokens")?.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
        let context_tokens = positive(fields, "data.model", "context_tokens")?.unwrap_or(CONTEXT_TOKENS);
        if context_tokens < 1000 {
            return Err("`data.model.context_tokens` must be 1000 at least".to_owned());
        }
        let prices = match fields.get("prices").filter(|prices| !prices.is_null()) {
            None => None,
            Some(prices) => Some(Prices::read(prices.as_object().ok_or("`data.model.prices` must be an object")?)?),
        };
        let extras = match fields.get("extras").filter(|extras| !extras.is_null()) {
            None => None,
            Some(Value::Object(extras)) => Some(extras.clone()),
            Some(_) => return Err("`data.model.extras` must be an object: fields of the API such as `temperature`".to_owned()),
        };
        if let Some(field) = extras.iter().flat_map(Map::keys).find(|field| OWN_FIELDS.contains(&field.as_str())) {
            return Err(format!("`data.model.extras.{field}` is decided by the run"));
        }
        Ok(Self { api, name, url, connection, headers, max_output_tokens, context_tokens, prices, extras })
    }
}

/// A revision of the reference system: `parameters.agent` with instructions, a model, tools and MCP servers.
fn reference(data: &Value) -> Result<AgentConfig, String> {
    let template = data.pointer("/parameters/agent").and_then(Value::as_object);
    let template = template.ok_or("`data.parameters.agent` must be an object with `instructions`, `llm` and `tools`")?;
    for part in ["harness", "sandbox"] {
        let kind = template.get(part).and_then(|part| part.get("kind")).and_then(Value::as_str);
        if let Some(kind) = kind.filter(|kind| !["toolyard", "none"].contains(kind)) {
            return Err(format!(
                "`data.parameters.agent.{part}`: Toolyard has no {part} `{kind}`; it runs agents in its own loop, with tools and without a shell. \
                 Leave `{part}` out, or run this revision where there is one"
            ));
        }
    }
    if template.get("skills").and_then(Value::as_array).is_some_and(|skills| !skills.is_empty()) {
        return Err("`data.parameters.agent.skills`: Toolyard keeps no skills; write what they say into the instructions".to_owned());
    }
    let instructions = template.get("instructions").and_then(|instructions| instructions.get("agents_md")).and_then(Value::as_str);
    let instructions = instructions.unwrap_or("You are a helpful agent.");
    let llm = template.get("llm").and_then(Value::as_object).ok_or("`data.parameters.agent.llm` must be an object with `model`")?;
    let permissions = template.get("runner").and_then(|runner| runner.get("permissions"));
    Ok(AgentConfig {
        agent: None,
        tools: tools("data.parameters.agent.tools", template.get("tools"))?,
        servers: servers(template.get("mcps"))?,
        model: reference_model(llm)?,
        instructions: instructions.to_owned(),
        limits: Limits::read(data.get("limits"))?,
        outputs: output_schema(data),
        plan: Some(RuleSet::from_value(permissions)),
        stops_when_uncertain: false,
    })
}

fn reference_model(llm: &Map<String, Value>) -> Result<ModelConfig, String> {
    let place = "data.parameters.agent.llm";
    let name = text(llm, place, "model")?.ok_or("`data.parameters.agent.llm.model` is missing")?;
    let mut extras = llm.get("extras").and_then(Value::as_object).cloned().unwrap_or_default();
    let (provider, name) = match (text(llm, place, "provider")?, name.split_once('/')) {
        (Some(provider), _) => (provider, name),
        (None, Some((provider, model))) => (provider.to_owned(), model.to_owned()),
        (None, None) => return Err(format!("`{place}.provider` is missing: openai or anthropic")),
    };
    let api = match (extras.remove("api").as_ref().and_then(Value::as_str), provider.as_str()) {
        (Some(api), _) => api.to_owned(),
        (None, "anthropic") => Api::Anthropic.name().to_owned(),
        (None, "openai") => Api::OpenaiChat.name().to_owned(),
        (None, other) => {
            let near = did_you_mean(other, ["openai", "anthropic"]);
            return Err(format!(
                "`{place}.provider`: Toolyard asks openai and anthropic; for a compatible server give `extras.api` and `extras.url`.{near}"
            ));
        }
    };
    let connection = llm.get("connection").and_then(|said| said.as_str().or_else(|| said.get("slug").and_then(Value::as_str)));
    let mut fields = Map::from_iter([("api".to_owned(), json!(api)), ("name".to_owned(), json!(name))]);
    fields.extend(connection.map(|slug| ("connection".to_owned(), json!(slug))));
    for field in ["url", "headers", "max_output_tokens", "context_tokens", "prices"] {
        fields.extend(extras.remove(field).map(|value| (field.to_owned(), value)));
    }
    if !extras.is_empty() {
        fields.insert("extras".to_owned(), Value::Object(extras));
    }
    ModelConfig::read(&fields).map_err(|error| error.replace("`data.model.", &format!("`{place}.")))
}

fn servers(mcps: Option<&Value>) -> Result<Vec<String>, String> {
    let Some(mcps) = mcps.filter(|mcps| !mcps.is_null()) else { return Ok(Vec::new()) };
    let list = mcps.as_array().ok_or("`data.parameters.agent.mcps` must be a list")?;
    let named = list.iter().enumerate().map(|(index, server)| {
        server
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or_else(|| format!("`data.parameters.agent.mcps.{index}.name` is missing"))
    });
    named.collect()
}

fn tools(place: &str, value: Option<&Value>) -> Result<Vec<ToolConfig>, String> {
    let list = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(format!("`{place}` must be a list of tool configs")),
    };
    Ok(coerce_list(list, OnError::Raise).map_err(|error| format!("`{place}`: {error}"))?.configs)
}

fn read_api(place: &str, name: &str) -> Result<Api, String> {
    name.parse().map_err(|error| format!("`{place}`: {error}.{}", did_you_mean(name, Api::ALL.map(Api::name))))
}

fn address(place: &str, text: &str) -> Result<Url, String> {
    let fine = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
    };
    text.parse().ok().filter(fine).ok_or_else(|| {
        format!("`{place}` must be an http or https address without credentials and query, such as http://127.0.0.1:11434/v1")
    })
}

/// A text, where there is one.
fn text(fields: &Map<String, Value>, place: &str, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{place}.{name}` must be text")),
    }
}

/// A positive number, where there is one.
pub(crate) fn positive(fields: &Map<String, Value>, place: &str, name: &str) -> Result<Option<u64>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            value.as_u64().filter(|number| *number > 0).map(Some).ok_or_else(|| format!("`{place}.{name}` must be a positive number"))
        }
    }
}

/// Refuses a key that means nothing, with the one that was meant.
pub(crate) fn known(fields: &Map<String, Value>, place: &str, names: &[&str]) -> Result<(), String> {
    match fields.keys().find(|key| !names.contains(&key.as_str())) {
        Some(unknown) => {
            let near = did_you_mean(unknown, names.iter().copied());
            Err(format!("`{place}.{unknown}` is not known; there are: {}.{near}", names.join(", ")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(change: impl FnOnce(&mut Value)) -> Value {
        let mut data = json!({
            "kind": "agent",
            "agent": "triager",
            "model": {"api": "anthropic", "connection": "main", "name": "m"},
            "instructions": "Triage: {{ inputs.title }}",
            "limits": {"turns": 7},
        });
        change(&mut data);
        data
    }

    #[test]
    fn an_agent_is_read() {
        let config = AgentConfig::read(&agent(|_| {})).unwrap();
        assert_eq!((config.agent.as_deref(), config.limits.turns, config.model.api), (Some("triager"), 7, Api::Anthropic));
        assert_eq!((config.model.url.as_str(), config.model.context_tokens), ("https://api.anthropic.com/v1", 128_000));
        let local = AgentConfig::read(&agent(|data| {
            data["model"] = json!({"api": "openai_chat", "url": "http://127.0.0.1:11434/v1", "name": "m", "extras": {"temperature": 0}});
            data["agent"] = json!(7);
        }));
        let local = local.unwrap();
        assert_eq!((local.agent.as_deref(), local.model.connection.as_deref()), (Some("7"), None));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases: [(&str, Value, &str); 14] = [
            ("/model", json!("x"), "`data.model` must be an object"),
            ("/model/api", json!("antropic"), "Did you mean `anthropic`?"),
            ("/model/name", json!(null), "`data.model.name` is missing"),
            ("/model/temperature", json!(1), "`data.model.temperature` is not known"),
            ("/model/url", json!("ftp://x"), "`data.model.url`"),
            ("/model/url", json!("https://evil.example/v1"), "goes to `api.anthropic.com` only"),
            ("/model/extras", json!({"messages": []}), "`data.model.extras.messages`"),
            ("/model/headers", json!({"a b": "x"}), "`data.model.headers.a b`"),
            ("/model/prices", json!({"input": 1}), "`data.model.prices.output` is missing"),
            ("/instructions", json!(""), "`data.instructions`"),
            ("/instructions", json!("{{ inputs.x | nope }}"), "`data.instructions`"),
            ("/agent", json!({}), "`data.agent`"),
            ("/limits", json!({"usd": 1}), "needs `data.model.prices`"),
            ("/tools", json!([{"type": "platform", "op": "discover_tools"}]), "beside `data.agent`"),
        ];
        for (place, value, part) in cases {
            let data = agent(|data| {
                let (parent, name) = place.rsplit_once('/').unwrap();
                data.pointer_mut(parent).unwrap()[name] = value.clone();
            });
            let error = AgentConfig::read(&data).unwrap_err();
            assert!(error.contains(part), "{place} {value}: {error}");
        }
    }

    #[test]
    fn a_revision_of_the_reference_system_is_the_same_agent() {
        let data = |template: Value| json!({"uri": "agenta:builtin:agent:v0", "parameters": {"agent": template}});
        let read = AgentConfig::read(&data(json!({
            "instructions": {"agents_md": "Help."},
            "llm": {"model": "anthropic/m", "connection": {"slug": "main"}, "extras": {"max_output_tokens": 100, "temperature": 0}},
            "tools": [{"type": "platform", "op": "discover_tools"}],
            "mcps": [{"name": "docs", "connection": {"type": "http", "url": "https://docs.example/mcp"}}],
        })));
        let read = read.unwrap();
        assert_eq!((read.model.api, read.model.name.as_str(), read.model.max_output_tokens), (Api::Anthropic, "m", Some(100)));
        assert_eq!((read.instructions.as_str(), read.tools.len(), read.servers), ("Help.", 1, vec!["docs".to_owned()]));
        for (template, part) in [
            (json!({"llm": {"model": "m"}}), "`data.parameters.agent.llm.provider` is missing"),
            (json!({"llm": {"model": "m", "provider": "mistral"}}), "compatible server"),
            (json!({"llm": {"model": "openai/m"}, "harness": {"kind": "pi"}}), "no harness `pi`"),
            (json!({"llm": {"model": "openai/m"}, "sandbox": {"kind": "daytona"}}), "no sandbox `daytona`"),
            (json!({"llm": {"model": "openai/m"}, "skills": [{}]}), "keeps no skills"),
            (json!({}), "`data.parameters.agent.llm`"),
        ] {
            let error = AgentConfig::read(&data(template.clone())).unwrap_err();
            assert!(error.contains(part), "{template}: {error}");
        }
    }
}
