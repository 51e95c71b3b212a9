//! A secret of its own in every place that takes one, all of them used with services that echo whatever they are sent, and then looked
//! for: in the log at `trace`, in every answer to a viewer, in the database and in every file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use store::Db;
use tempfile::TempDir;

use super::Figures;
use super::operations;
use crate::binary::Server;
use crate::support::{Fake, postgres_schema, until};

/// Files whose purpose is to hold a key.
const KEY_FILES: [&str; 3] = ["owner.key", "operator.key", "sealing.key"];

/// An MCP server as a process: its one tool shows its whole environment.
const MCP_PROCESS: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "shows", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "show", "description": "Shows all of it.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        print(json.dumps(dict(os.environ)), file=sys.stderr, flush=True)
        result = {"content": [{"type": "text", "text": json.dumps(dict(os.environ))}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Secrets by the place that they were planted in.
#[derive(Default)]
struct Planted(BTreeMap<&'static str, String>);

impl Planted {
    /// A secret that cannot be there by chance.
    fn plant(&mut self, place: &'static str) -> String {
        let secret = format!("planted-{}", uuid::Uuid::new_v4().simple());
        self.0.insert(place, secret.clone());
        secret
    }

    fn keep(&mut self, place: &'static str, secret: &str) {
        assert!(secret.len() >= 16, "{place}: too short to be told from chance");
        self.0.insert(place, secret.to_owned());
    }

    /// The places whose secret stands in some bytes, as it is or in Base64, which is how services send passwords.
    fn found_in(&self, bytes: &[u8]) -> Vec<&'static str> {
        let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        let found = self.0.iter().filter(|(_, secret)| {
            // Base64 of the middle, at each of its three alignments.
            let inside = (0..3).map(|from| STANDARD.encode(&secret.as_bytes()[from..from + 12]));
            holds(secret.as_bytes()) || inside.into_iter().any(|part| holds(part.as_bytes()))
        });
        found.map(|(place, _)| *place).collect()
    }
}

struct Attacked {
    server: Server,
    fake: Fake,
    dir: TempDir,
    planted: Planted,
}

impl Attacked {
    async fn start(database: Option<&str>) -> Self {
        let dir = TempDir::new().unwrap();
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let database = database.map(str::to_owned);
        let server = Server::start(dir.path(), |command| {
            command.stderr(log).env("TOOLYARD_LOG", "trace").env("TOOLYARD_LOG_FORMAT", "json").env("TOOLYARD_MCP_COMMANDS", "python3");
            if let Some(database) = &database {
                command.env("TOOLYARD_DATABASE_URL", database);
            }
        })
        .await;
        Self { server, fake: Fake::start().await, dir, planted: Planted::default() }
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join("data").join(name)).unwrap().trim().to_owned()
    }

    async fn connect(&self, slug: &str, scheme: &str, mut credentials: Value) -> (u16, Value) {
        credentials["base"] = json!(self.fake.url);
        let body = crate::support::fake_connection(slug, &json!({"auth_scheme": scheme, "credentials": credentials}));
        self.server.send(Method::POST, "/tools/connections", Some(body)).await
    }

    async fn call(&self, name: &str, arguments: Value) -> (u16, Value) {
        self.server.send(Method::POST, "/tools/call", Some(crate::support::call_body(name, &arguments))).await
    }

    /// Puts a secret wherever one can be put, and uses it.
    async fn plant_and_use(&mut self) {
        self.plant_keys().await;
        self.plant_credentials().await;
        self.plant_imports().await;
        self.plant_triggers().await;
        self.plant_named().await;
        // Runs keep what their steps gave, and what a service says back holds what it was sent.
        let step = |slug: &str| json!({"name": slug, "call": format!("tools.native.fake.GET_A_THING.{slug}"), "arguments": {"owner": "o", "path": "p"}});
        let steps: Vec<Value> = ["key", "basic", "bearer", "client"].map(step).into();
        self.server.post("/simple/workflows", json!({"workflow": {"slug": "steps", "data": {"steps": steps}}})).await;
        self.server.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "steps"}}})).await;
        let agent = json!({"name": "a", "agent_type": "custom", "tool_ids": ["fake"]});
        self.server.post("/agents", agent).await;
    }

    async fn plant_keys(&mut self) {
        for name in KEY_FILES {
            let secret = self.file(name);
            self.planted.keep(name, &secret);
        }
        let operator = format!("Access {}", self.file("operator.key"));
        let projects = self.server.send_as(Some(&operator), Method::GET, "/admin/projects", None).await.1;
        let body = json!({"key": {"project_id": projects["projects"][0]["id"], "role": "editor"}});
        let made = self.server.send_as(Some(&operator), Method::POST, "/admin/keys", Some(body)).await.1;
        self.planted.keep("a key of the project", made["secret"].as_str().unwrap());
        let body = json!({"oauth_app": {"integration_key": "oidc", "client_id": "c", "client_secret": self.planted.plant("an OAuth app of all projects")}});
        assert_eq!(self.server.send_as(Some(&operator), Method::POST, "/admin/oauth-apps", Some(body)).await.0, 200);
        let body = json!({"oauth_app": {"integration_key": "oidc", "client_id": "c", "client_secret": self.planted.plant("an OAuth app of the project")}});
        self.server.post("/tools/oauth-apps", body).await;
        let signing = self.server.send(Method::GET, "/workflows/signing-secret", None).await.1;
        self.planted.keep("what signs runs", signing["secret"].as_str().unwrap());
    }

    async fn plant_credentials(&mut self) {
        let key = self.planted.plant("an API key");
        assert_eq!(self.connect("key", "api_key", json!({"api_key": key})).await.0, 200);
        let password = self.planted.plant("a password");
        assert_eq!(self.connect("basic", "basic", json!({"username": "ann", "password": password})).await.0, 200);
        let token = self.planted.plant("a bearer token");
        assert_eq!(self.connect("bearer", "bearer", json!({"token": token})).await.0, 200);
        let secret = self.planted.plant("a client secret");
        assert_eq!(self.connect("client", "client_credentials", json!({"client_id": "c", "client_secret": secret})).await.0, 200);
        for slug in ["key", "basic", "bearer", "client"] {
            // Answers that hold everything: a success, a refusal, a failure, and something that is no JSON.
            self.call(&format!("tools.native.fake.GET_A_THING.{slug}"), json!({"owner": "o", "path": "p"})).await;
            for code in [298, 299, 401, 404, 500] {
                self.call(&format!("tools.native.fake.FAIL_A_THING.{slug}"), json!({"code": code})).await;
            }
        }
        // Refused at once: the service answers with the key that it was sent.
        self.fake.answer_me(401);
        let refused = self.planted.plant("a key that is refused");
        assert_eq!(self.connect("refused", "api_key", json!({"api_key": refused})).await.0, 422);
        self.fake.answer_me(200);
        // Typed by a person.
        let body = crate::support::fake_connection("typed", &json!({"auth_scheme": "api_key"}));
        let begun = self.server.post("/tools/connections", body).await;
        let page = begun["connection"]["status"]["redirect_url"].as_str().unwrap();
        let ticket = page.rsplit('/').next().unwrap().to_owned();
        let typed = self.planted.plant("a key that was typed");
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("base", self.fake.url.as_str()), ("team", "red"), ("api_key", &typed)])
            .finish();
        assert_eq!(self.server.send_form(&format!("/connect/{ticket}"), form).await, 200);
    }

    /// A named secret, sent to a service that repeats it, and shown to a key that may read it.
    async fn plant_named(&mut self) {
        let value = self.planted.plant("a named secret");
        let secret = json!({"kind": "custom_secret", "data": {"secret": {"format": "text", "content": value}}});
        self.server.post("/secrets", json!({"slug": "named", "hosts": ["127.0.0.1"], "secret": secret})).await;
        let headers = json!({"X-Named": "Bearer {{secrets.named}}"});
        let data = json!({"kind": "http", "url": format!("{}/echo/named", self.fake.url), "headers": headers});
        self.server.post("/simple/workflows", json!({"workflow": {"slug": "named", "data": data}})).await;
        let run = self.server.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "named"}}})).await;
        assert!(!run.to_string().contains(&value), "{run}");
        assert_eq!(self.fake.seen_at("/echo/named")[0]["headers"]["x-named"], format!("Bearer {value}"));
    }

    async fn plant_imports(&mut self) {
        let script = self.dir.path().join("shows.py");
        std::fs::write(&script, MCP_PROCESS).unwrap();
        let env = self.planted.plant("the environment of an MCP server");
        let import = json!({"key": "shows", "command": "python3", "args": [script], "env": {"SHOWN": env}});
        self.server.post("/tools/imports/mcp", json!({"import": import})).await;
        let (status, said) = self.call("tools.mcp.shows.show.shows-main", json!({})).await;
        assert_eq!(status, 200, "{said}");
        let header = self.planted.plant("a header of an MCP server");
        let import = json!({"url": format!("{}/status/401", self.fake.url), "headers": {"X-Plain": header}});
        self.server.send(Method::POST, "/tools/imports/mcp", Some(json!({"import": import}))).await;
        let scheme = json!({"k": {"type": "apiKey", "in": "header", "name": "X-Imported"}});
        let document = json!({"openapi": "3.1.0", "info": {"title": "Echo"}, "servers": [{"url": format!("{}/echo", self.fake.url)}],
            "components": {"securitySchemes": scheme}, "security": [{"k": []}], "paths": {"/x": {"get": {"operationId": "look"}}}});
        self.server.post("/tools/imports/openapi", json!({"import": {"key": "echo", "document": document}})).await;
        let key = self.planted.plant("a key for an imported API");
        let body = json!({"connection": {"slug": "main", "provider_key": "openapi", "integration_key": "echo",
            "data": {"auth_scheme": "api_key", "credentials": {"api_key": key}}}});
        self.server.post("/tools/connections", body).await;
        assert_eq!(self.call("tools.openapi.echo.look.main", json!({})).await.0, 200);
    }

    async fn plant_triggers(&mut self) {
        self.server.post("/simple/workflows", json!({"workflow": {"slug": "echo", "data": {"kind": "echo"}}})).await;
        let secret = self.planted.plant("a webhook's secret");
        let data = json!({"event_key": "WEBHOOK_RECEIVED", "trigger_config": {"scheme": "token"}, "secret": secret, "references": {"workflow": {"slug": "echo"}}});
        let hook = self.server.post("/triggers/subscriptions", json!({"subscription": {"data": data}})).await["subscription"].take();
        let path = format!("/triggers/{}", hook["url"].as_str().unwrap().split_once("/triggers/").unwrap().1);
        let authorization = self.planted.plant("what a sender proves itself with");
        let headers = [("x-webhook-token", secret.as_str()), ("authorization", authorization.as_str()), ("cookie", authorization.as_str())];
        assert_eq!(self.server.send_event(&path, &headers, json!({"a": 1})).await, 202);
        assert_eq!(self.server.send_event(&path, &[("x-webhook-token", "wrong-but-long-enough")], json!({"a": 1})).await, 401);
        until("the event ran", async || {
            let found = self.server.send(Method::GET, "/triggers/deliveries", None).await.1;
            found["deliveries"].as_array().unwrap().iter().any(|delivery| delivery["state"] == "done")
        })
        .await;
    }

    /// Every answer that a viewer can get, by its path.
    async fn answers_to_a_viewer(&self) -> Vec<(String, String)> {
        let operator = format!("Access {}", self.file("operator.key"));
        let projects = self.server.send_as(Some(&operator), Method::GET, "/admin/projects", None).await.1;
        let body = json!({"key": {"project_id": projects["projects"][0]["id"], "role": "viewer"}});
        let made = self.server.send_as(Some(&operator), Method::POST, "/admin/keys", Some(body)).await.1;
        let viewer = format!("ApiKey {}", made["secret"].as_str().unwrap());
        let mut known: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let fixed = [
            ("provider_key", "native"),
            ("integration_key", "fake"),
            ("action_key", "GET_A_THING"),
            ("event_key", "THING_MADE"),
            ("app_name", "fake"),
        ];
        known.extend(fixed.map(|(name, value)| (name, vec![value.to_owned()])));
        let mut answers = Vec::new();
        let lists = [
            ("connection_id", "/tools/connections/query", "connections", "id"),
            ("import_id", "/tools/imports", "imports", "id"),
            ("run_id", "/workflows/runs", "runs", "id"),
            ("subscription_id", "/triggers/subscriptions", "subscriptions", "id"),
            ("schedule_id", "/triggers/schedules", "schedules", "id"),
            ("delivery_id", "/triggers/deliveries", "deliveries", "id"),
            ("event_row_id", "/triggers/deliveries", "deliveries", "event_row_id"),
            ("approval_id", "/tools/approvals", "approvals", "id"),
            ("workflow_id", "/workflows/query", "workflows", "id"),
            ("workflow_variant_id", "/workflows/variants/query", "workflow_variants", "id"),
            ("workflow_revision_id", "/workflows/revisions/query", "workflow_revisions", "id"),
            ("application_id", "/workflows/query", "workflows", "id"),
            ("application_variant_id", "/workflows/variants/query", "workflow_variants", "id"),
            ("application_revision_id", "/workflows/revisions/query", "workflow_revisions", "id"),
            ("evaluator_id", "/workflows/query", "workflows", "id"),
            ("evaluator_variant_id", "/workflows/variants/query", "workflow_variants", "id"),
            ("evaluator_revision_id", "/workflows/revisions/query", "workflow_revisions", "id"),
            ("environment_id", "/environments/query", "environments", "id"),
            ("environment_variant_id", "/environments/variants/query", "environment_variants", "id"),
            ("environment_revision_id", "/environments/revisions/query", "environment_revisions", "id"),
        ];
        for (name, path, list, field) in lists {
            let method = if path.ends_with("/query") { Method::POST } else { Method::GET };
            let body = (method == Method::POST).then(|| json!({}));
            let (status, found) = self.server.send_as(Some(&viewer), method, path, body).await;
            assert_eq!(status, 200, "{path}: {found}");
            let ids = found[list].as_array().unwrap().iter().filter_map(|row| row[field].as_str().map(str::to_owned));
            known.insert(name, ids.collect());
            answers.push((path.to_owned(), found.to_string()));
        }
        known.insert("agent_id", vec!["1".to_owned()]);
        known.insert("secret_id", vec!["named".to_owned()]);
        for operation in
            operations::all().into_iter().filter(|operation| operation.method == Method::GET && !operation.path.starts_with("/mcp"))
        {
            let mut paths = vec![operation.path.clone()];
            for name in &operation.parameters {
                let values = known.get(name.as_str()).cloned().unwrap_or_default();
                let fill = |path: &String| values.iter().map(|value| path.replace(&format!("{{{name}}}"), value)).collect::<Vec<_>>();
                paths = paths.iter().flat_map(fill).collect();
            }
            for path in paths {
                let (_, text) = self.server.send_as(Some(&viewer), Method::GET, &path, None).await;
                answers.push((path, text.to_string()));
            }
        }
        answers
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

/// Every row of every table, as PostgreSQL writes it.
async fn tables(database: &str) -> Vec<(String, String)> {
    let db = Db::open(database).await.unwrap();
    let names = db.all("select tablename from pg_tables where schemaname = current_schema()", store::args![]).await.unwrap();
    let mut found = Vec::new();
    for row in names {
        let name: String = row.get("tablename").unwrap();
        let sql = format!("select coalesce(string_agg(t::text, ' '), '') as rows from {name} t");
        // Names of our own tables, which no caller chooses.
        let rows = db.all(Box::leak(sql.into_boxed_str()), store::args![]).await.unwrap();
        found.push((name, rows[0].get::<String>("rows").unwrap()));
    }
    found
}

async fn attack(database: Option<String>) {
    let mut attacked = Attacked::start(database.as_deref()).await;
    attacked.plant_and_use().await;
    // What is written behind the answers is written by now.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let answers = attacked.answers_to_a_viewer().await;
    let mut searched = 0;
    let mut found: Vec<String> = Vec::new();
    let mut look = |place: &str, bytes: &[u8], except: &[&str]| {
        searched += 1;
        found.extend(
            attacked.planted.found_in(bytes).into_iter().filter(|name| !except.contains(name)).map(|name| format!("{name} in {place}")),
        );
    };
    for (path, text) in &answers {
        look(path, text.as_bytes(), &[]);
    }
    look("the log", &std::fs::read(attacked.dir.path().join("log")).unwrap(), &[]);
    for file in files(&attacked.dir.path().join("data")) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        if !KEY_FILES.contains(&name.as_str()) {
            look(&name, &std::fs::read(&file).unwrap(), &[]);
        }
    }
    if let Some(database) = &database {
        for (name, rows) in tables(database).await {
            look(&name, rows.as_bytes(), &[]);
        }
    }
    assert!(answers.len() > 60, "{} answers", answers.len());
    assert_eq!(found, Vec::<String>::new());
    let log = std::fs::metadata(attacked.dir.path().join("log")).unwrap().len();
    assert!(log > 10_000, "the log holds {log} bytes: it is not at `trace`");
    Figures::new("secrets")
        .add("planted", attacked.planted.0.len())
        .add("answers to a viewer", answers.len())
        .add("bytes of log at `trace`", log)
        .add("places searched", searched)
        .add("found", 0)
        .print();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_planted_secret_is_found_again_on_sqlite() {
    attack(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_planted_secret_is_found_again_on_postgres() {
    attack(Some(postgres_schema().await)).await;
}
