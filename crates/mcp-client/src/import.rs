//! From the tools of a server to an integration with actions.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::auth::AuthScheme;
use catalog::{Action, Draft, Integration, Provider};
use futures_util::future::BoxFuture;
use imports::{ImportError, Importer, Order, Origin, Plan, Registered, Skipped, Source, Stored, convert};
use kernel::json::{MAX_DEPTH, depth_exceeds};
use kernel::schema::Schema;
use kernel::{ImportId, ProjectId, Scrubber};
use mcp_wire::code;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use work::Workers;

use crate::fault::ServerError;
use crate::listing::MAX_TOOLS;
use crate::oauth::{self, Registration};
use crate::session::{ServerInfo, Session};
use crate::sessions::START;
use crate::target::{self, Server, ServerTarget};
use crate::wire::bounded;
use crate::{KEY, Mcp, OnChange, hints};

const MAX_KEY: usize = 80;
const MAX_NAME: usize = 80;
const MAX_DESCRIPTION: usize = 4000;
const MAX_ABOUT: usize = 500;
const MAX_SCHEMA: usize = 256 << 10;
/// How long the tools of a server may take to become actions.
const CONVERTING: Duration = Duration::from_secs(20);

const REFUSED: &str = "the server refused the credential";

/// What is stored of a server.
#[derive(Deserialize, Serialize)]
struct Definition {
    description: String,
    auth: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    registration: Option<Registration>,
    actions: Vec<Tool>,
}

/// A tool as an action.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Tool {
    key: String,
    /// What the server calls it.
    wire: String,
    name: String,
    description: String,
    input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    read_only: bool,
    destructive: bool,
}

/// What a server lets anybody see, and what it wants of the others.
struct ServerListing {
    about: ServerInfo,
    tools: Vec<Value>,
    auth: Vec<Value>,
    registration: Option<Registration>,
    origins: BTreeSet<String>,
    warnings: Vec<String>,
}

impl Mcp {
    async fn read(&self, order: &Order, workers: &Workers) -> Result<Plan, ImportError> {
        let target = ServerTarget::of_order(order, &self.commands)?;
        let listed = match self.running(order, &target).await {
            Some(session) => listed(&session).await,
            None => self.list(order.project, &target, http::HeaderMap::new()).await,
        };
        let reading = match listed {
            Ok(listed) => {
                let (about, tools) = without(listed, target.secrets(), order.project, workers).await?;
                let auth = match &target {
                    ServerTarget::Program(_) => vec![json!({"scheme": "none"})],
                    ServerTarget::Address { .. } => vec![json!({"scheme": "none"}), bearer()],
                };
                let origins = target.origin().into_iter().collect();
                ServerListing { about, tools, auth, registration: None, origins, warnings: Vec::new() }
            }
            Err(ServerError::Unauthorized { challenge }) => self.behind_a_door(&target, challenge.as_deref(), order, workers).await?,
            Err(fault) => return Err(unread(fault, &target.secrets())),
        };
        plan(order, &target, reading, workers).await
    }

    /// The program of an import that is read again, if it runs: what it offers may depend on its life so far.
    async fn running(&self, order: &Order, target: &ServerTarget) -> Option<Arc<Session>> {
        match target {
            ServerTarget::Program(_) => self.sessions.running(order.project, order.again?, target).await,
            ServerTarget::Address { .. } => None,
        }
    }

    pub(crate) async fn list(
        &self,
        project: ProjectId,
        target: &ServerTarget,
        account: http::HeaderMap,
    ) -> Result<(ServerInfo, Vec<Value>), ServerError> {
        let reading = async {
            let session = Session::open(project, target, account, &self.ground, OnChange::nothing()).await?;
            listed(&session).await
        };
        tokio::time::timeout(START, reading).await.unwrap_or(Err(ServerError::Late(START)))
    }

    /// Reads a server that shows nothing without a credential, with one if there is one.
    async fn behind_a_door(
        &self,
        target: &ServerTarget,
        challenge: Option<&str>,
        order: &Order,
        workers: &Workers,
    ) -> Result<ServerListing, ImportError> {
        let ServerTarget::Address { url, .. } = target else { return Err(ImportError::Upstream(REFUSED.to_owned())) };
        let mut warnings = Vec::new();
        let mut origins: BTreeSet<String> = target.origin().into_iter().collect();
        let (mut auth, mut registration) = (Vec::new(), None);
        match oauth::discover(&self.ground.egress, url, challenge).await {
            Ok(found) => {
                origins.extend(found.origins);
                auth.push(found.scheme);
                registration = found.registration;
            }
            Err(why) => warnings.push(format!("accounts cannot be connected by OAuth: {why}")),
        }
        auth.push(bearer());
        let (about, tools) = match &order.account {
            Some(account) => {
                let secrets = target.secrets().and(&account.fields.scrubber());
                let listed = self.list(order.project, target, target::authorization(&account.fields)).await;
                let listed = listed.map_err(|fault| unread(fault, &secrets))?;
                without(listed, secrets, order.project, workers).await?
            }
            None if order.again.is_some() => {
                return Err(ImportError::Upstream("the server wants a credential; connect an account first".to_owned()));
            }
            None => {
                warnings
                    .push("the server shows its tools only to connected accounts; they are read once the first is connected".to_owned());
                (ServerInfo::default(), Vec::new())
            }
        };
        Ok(ServerListing { about, tools, auth, registration, origins, warnings })
    }
}

async fn listed(session: &Session) -> Result<(ServerInfo, Vec<Value>), ServerError> {
    let tools = match session.tools().await {
        // A server without tools need not know the question.
        Err(ServerError::Rpc { code: code::METHOD_NOT_FOUND, .. }) => Vec::new(),
        listed => listed?,
    };
    Ok((session.about.clone(), tools))
}

fn bearer() -> Value {
    json!({"scheme": "bearer"})
}

/// What a server lists, without the secrets that it was given.
async fn without(
    (mut about, mut tools): (ServerInfo, Vec<Value>),
    secrets: Scrubber,
    project: ProjectId,
    workers: &Workers,
) -> Result<(ServerInfo, Vec<Value>), ImportError> {
    convert(workers, project, move || {
        for words in [&mut about.name, &mut about.instructions].into_iter().flatten() {
            *words = secrets.text(words).into_owned();
        }
        for tool in &mut tools {
            secrets.value(tool);
        }
        Ok((about, tools))
    })
    .await
}

fn unread(fault: ServerError, secrets: &Scrubber) -> ImportError {
    match fault {
        ServerError::Status(status) if status.is_server_error() => ImportError::UpstreamServer(status.as_u16()),
        ServerError::Unreachable(error) => ImportError::Upstream(error.to_string()),
        ServerError::Unauthorized { .. } => ImportError::Upstream(REFUSED.to_owned()),
        other => ImportError::Upstream(secrets.cut_text(&other.to_string())),
    }
}

async fn plan(order: &Order, target: &ServerTarget, reading: ServerListing, workers: &Workers) -> Result<Plan, ImportError> {
    let ServerListing { about, mut tools, auth, registration, origins, mut warnings } = reading;
    if tools.len() > MAX_TOOLS {
        warnings.push(format!("the server has more than {MAX_TOOLS} tools; the rest is left out"));
        tools.truncate(MAX_TOOLS);
    }
    let (actions, skipped) = convert(workers, order.project, move || Ok(actions(&tools, Instant::now() + CONVERTING))).await?;
    let name = about.name.as_deref().map_or_else(|| named_by(order, target), |name| bounded(name, MAX_NAME));
    let description = about.instructions.as_deref().map_or_else(|| format!("The MCP server {name}"), |words| bounded(words, MAX_ABOUT));
    let definition = serde_json::to_value(Definition { description, auth, registration, actions });
    match definition {
        Ok(Value::Object(definition)) => Ok(Plan { name, definition, origins, skipped, warnings }),
        Ok(_) | Err(_) => Err(ImportError::Invalid("its tools cannot be written down".to_owned())),
    }
}

/// A name for a server that does not tell its own.
fn named_by(order: &Order, target: &ServerTarget) -> String {
    match target {
        _ if order.key.is_some() => order.key.clone().unwrap_or_default(),
        ServerTarget::Address { url, .. } => url.host_str().unwrap_or("MCP server").to_owned(),
        ServerTarget::Program(program) => program.command.rsplit('/').next().unwrap_or("MCP server").to_owned(),
    }
}

fn actions(tools: &[Value], deadline: Instant) -> (Vec<Tool>, Vec<Skipped>) {
    let (mut actions, mut skipped) = (Vec::new(), Vec::new());
    let mut names = BTreeSet::new();
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        let made = match names.insert(name) {
            true if Instant::now() > deadline => Err("there was no time left for it".to_owned()),
            true => action(name, tool),
            false => Err("there is another of this name".to_owned()),
        };
        match made {
            Ok(action) => actions.push(action),
            Err(why) => skipped.push(Skipped { what: bounded(name, MAX_NAME), why }),
        }
    }
    settle_keys(&mut actions);
    (actions, skipped)
}

fn action(name: &str, tool: &Value) -> Result<Tool, String> {
    if name.is_empty() || name.len() > 256 {
        return Err("its name is empty or too long".to_owned());
    }
    if tool["execution"]["taskSupport"] == "required" {
        return Err("it runs only as a task".to_owned());
    }
    let hint = |name: &str| tool["annotations"][name].as_bool();
    let read_only = hint("readOnlyHint").unwrap_or(false);
    let title = tool["title"].as_str().or_else(|| tool["annotations"]["title"].as_str()).filter(|title| !title.trim().is_empty());
    Ok(Tool {
        key: key(name),
        wire: name.to_owned(),
        name: title.map_or_else(|| name.to_owned(), |title| bounded(title, MAX_NAME)),
        description: tool["description"].as_str().map(text).filter(|words| !words.is_empty()).unwrap_or_else(|| name.to_owned()),
        input_schema: input_schema(&tool["inputSchema"])?,
        output_schema: Some(tool["outputSchema"].clone())
            .filter(|schema| schema.is_object() && fits(schema) && Schema::compile(schema).is_ok()),
        read_only,
        destructive: !read_only && hint("destructiveHint").unwrap_or(true),
    })
}

/// A description for models: its lines are kept, its length is not.
fn text(words: &str) -> String {
    let words: String = words.chars().filter(|c| !c.is_control() || *c == '\n').take(MAX_DESCRIPTION).collect();
    words.trim().to_owned()
}

fn fits(schema: &Value) -> bool {
    !depth_exceeds(schema, MAX_DEPTH - 20) && schema.to_string().len() <= MAX_SCHEMA
}

fn input_schema(schema: &Value) -> Result<Value, String> {
    match schema {
        Value::Null => Ok(json!({"type": "object"})),
        Value::Object(fields) if fits(schema) => {
            let mut schema = schema.clone();
            if !fields.contains_key("type") {
                schema["type"] = "object".into();
            }
            if Schema::compile(&schema).is_err() {
                leave_out_patterns(&mut schema);
            }
            Schema::compile(&schema).map_err(|error| format!("its schema is broken: {}", bounded(&error.to_string(), 200)))?;
            Ok(schema)
        }
        Value::Object(_) => Err("its schema is too large".to_owned()),
        _ => Err("its schema is no object".to_owned()),
    }
}

/// Leaves regular expressions to the server where there are some that are too large or not understood here.
fn leave_out_patterns(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|keyword, field| keyword != "pattern" || !field.is_string());
            if fields.get("patternProperties").is_some_and(Value::is_object) {
                // Without them it is not known which properties are additional.
                fields.retain(|keyword, _| {
                    !matches!(keyword.as_str(), "patternProperties" | "additionalProperties" | "unevaluatedProperties")
                });
            }
            fields.values_mut().for_each(leave_out_patterns);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_patterns),
        _ => {}
    }
}

/// The name of a tool as refs take it.
fn key(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            letter if letter.is_ascii_alphanumeric() || letter == '-' => key.push(letter),
            _ if key.ends_with('_') || key.is_empty() => {}
            _ => key.push('_'),
        }
    }
    let key = key.trim_end_matches('_');
    match key.len() {
        0 => format!("tool_{}", digest(name)),
        1..=MAX_KEY => key.to_owned(),
        _ => format!("{}_{}", key[..MAX_KEY - 9].trim_end_matches('_'), digest(name)),
    }
}

/// Tools that would share a key get one that holds a digest of their names, all of them, so that none takes another's place later.
fn settle_keys(actions: &mut [Tool]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for action in actions.iter() {
        *counts.entry(action.key.clone()).or_default() += 1;
    }
    for action in actions.iter_mut().filter(|action| counts[&action.key] > 1 && action.key != action.wire) {
        action.key = format!("{}_{}", action.key.chars().take(MAX_KEY - 9).collect::<String>(), digest(&action.wire));
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

impl Importer for Mcp {
    fn provider(&self) -> Provider {
        Self::about()
    }

    fn plan<'a>(&'a self, order: &'a Order, workers: &'a Workers) -> BoxFuture<'a, Result<Plan, ImportError>> {
        Box::pin(self.read(order, workers))
    }

    fn load(&self, stored: &Stored) -> Result<Integration, String> {
        let definition: Definition = serde_json::from_str(&stored.definition).map_err(|error| error.to_string())?;
        let auth = definition.auth.into_iter().map(serde_json::from_value).collect::<Result<Vec<AuthScheme>, _>>();
        let import = &stored.import;
        let target = ServerTarget::of_stored(stored, &self.commands);
        let server = Server {
            project: import.project,
            import: import.id,
            secrets: Arc::new(target.as_ref().map(ServerTarget::secrets).unwrap_or_default()),
            target,
            tools: definition.actions.iter().map(|tool| (tool.key.clone(), tool.wire.clone())).collect(),
        };
        let draft = Draft {
            key: import.key.clone(),
            name: import.name.clone(),
            description: definition.description,
            url: import.source.url.as_ref().map(|url| url.origin().ascii_serialization()),
            auth: auth.map_err(|error| error.to_string())?,
            actions: definition.actions.into_iter().map(made).collect(),
            ..Draft::default()
        };
        Ok(Integration::new(KEY, draft).served_by(server))
    }

    fn again(&self, source: &Source) -> Option<Origin> {
        source.url.clone().map_or_else(|| source.settings.contains_key("command").then_some(Origin::Settings), |url| Some(Origin::Url(url)))
    }

    fn reads_as_account(&self) -> bool {
        true
    }

    fn hold_back(&self, known: &Map<String, Value>, plan: &mut Plan) -> Result<(), ImportError> {
        hints::hold_back(known, &mut plan.definition).map_err(ImportError::Upstream)
    }

    fn register<'a>(&'a self, definition: &'a str, callback: &'a str) -> BoxFuture<'a, Result<Option<Registered>, String>> {
        Box::pin(async move {
            let definition: Map<String, Value> = serde_json::from_str(definition).map_err(|error| error.to_string())?;
            let Some(registration) = definition.get("registration") else { return Ok(None) };
            let registration: Registration = Deserialize::deserialize(registration).map_err(|error| error.to_string())?;
            oauth::register(&self.ground.egress, &registration, callback).await.map(Some)
        })
    }

    fn dropped(&self, project: ProjectId, import: ImportId) {
        self.sessions.drop_import(project, import);
    }
}

fn made(tool: Tool) -> Action {
    let mut action = Action::new(tool.key, tool.name, tool.description, &tool.input_schema);
    action.output_schema = tool.output_schema.as_ref().map(Into::into);
    (action.read_only, action.destructive) = (tool.read_only, tool.destructive);
    action
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_server_where_refs_take_them() {
        for (name, key) in [("echo", "echo"), ("get-sum", "get-sum"), ("a.b/c", "a_b_c"), ("__x__y__", "x_y"), ("Read File", "Read_File")] {
            assert_eq!(super::key(name), key);
        }
        assert!(super::key("日本").starts_with("tool_"));
        assert!(super::key(&"long".repeat(50)).len() <= MAX_KEY);
        let tools = [json!({"name": "a.b"}), json!({"name": "a/b"}), json!({"name": "a_b"}), json!({"name": "a_b"})];
        let (made, skipped) = actions(&tools, Instant::now() + CONVERTING);
        let keys: BTreeSet<&str> = made.iter().map(|tool| tool.key.as_str()).collect();
        assert_eq!((keys.len(), skipped.len()), (3, 1));
        assert!(keys.contains("a_b"), "a tool keeps its own name");
        let (made, skipped) = actions(&tools, Instant::now().checked_sub(CONVERTING).unwrap());
        assert_eq!((made.len(), skipped.len()), (0, 4), "time is up");
    }

    #[test]
    fn tools_become_actions_with_their_hints() {
        let tool = json!({"name": "rm", "description": "Removes\u{7} a file.\nFor good.", "inputSchema": {"properties": {}},
            "annotations": {"title": "Remove", "readOnlyHint": false}});
        let action = super::action("rm", &tool).unwrap();
        assert_eq!((action.name.as_str(), action.description.as_str()), ("Remove", "Removes a file.\nFor good."));
        assert!(action.destructive && !action.read_only);
        assert_eq!(action.input_schema["type"], "object");
        let reader = json!({"name": "ls", "annotations": {"readOnlyHint": true, "destructiveHint": true}});
        let action = super::action("ls", &reader).unwrap();
        assert!(action.read_only && !action.destructive);
        for bad in [
            json!({"inputSchema": 7}),
            json!({"inputSchema": {"type": 7}}),
            json!({"inputSchema": {"description": "x".repeat(MAX_SCHEMA)}}),
            json!({"execution": {"taskSupport": "required"}}),
        ] {
            assert!(super::action("x", &bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tool_stays_where_only_its_patterns_cannot_be_used() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["pattern"],
            "properties": {"pattern": {"type": "string", "pattern": "^\\p{L}{1,4000}$"}}, "patternProperties": {"(((": {}}});
        let action = super::action("x", &json!({"inputSchema": schema})).unwrap();
        let left = json!({"type": "object", "required": ["pattern"], "properties": {"pattern": {"type": "string"}}});
        assert_eq!(action.input_schema, left);
    }

    #[test]
    fn a_schema_of_endless_references_is_not_taken() {
        let next = |at: usize| (format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)}));
        let mut definitions: Map<String, Value> = (0..5000).map(next).collect();
        definitions.insert("d5000".to_owned(), json!({}));
        let chain = json!({"type": "object", "$ref": "#/$defs/d0", "$defs": definitions});
        assert!(fits(&chain));
        let refused = super::action("x", &json!({"inputSchema": chain})).unwrap_err();
        assert!(refused.contains("in a row"), "{refused}");
        assert_eq!(super::action("x", &json!({"outputSchema": chain})).unwrap().output_schema, None);
    }
}
