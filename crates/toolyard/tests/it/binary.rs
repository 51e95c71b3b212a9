//! The program itself: first start, later starts, what goes wrong, two processes on one database.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use egress::{Allow, Egress, Request};
use futures_util::future::join_all;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::{Fake, Oidc, call_body, fake_connection, manifests, postgres_schema, until};

pub fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir(dir);
    command
        .env("TOOLYARD_DATA_DIR", dir.join("data"))
        .env("TOOLYARD_EGRESS_ALLOW", "127.0.0.1")
        .env("TOOLYARD_INTEGRATIONS_DIR", manifests());
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command to its end: exit code, stdout, stderr.
pub async fn run(mut command: Command) -> (i32, String, String) {
    let output = command.output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Runs a command against a server.
pub async fn run_in(dir: &Path, url: &str, args: &[&str]) -> (i32, String, String) {
    let mut command = program(dir);
    command.args(args).env("TOOLYARD_URL", url);
    run(command).await
}

pub struct Server {
    pub child: Child,
    pub url: String,
    greeting: String,
    /// What it prints afterwards.
    later: Arc<Mutex<Vec<String>>>,
    pub key: String,
    egress: Egress,
}

impl Server {
    pub async fn start(dir: &Path, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = program(dir);
        command.arg("serve").env("TOOLYARD_LISTEN", "127.0.0.1:0").stdout(Stdio::piped()).stderr(Stdio::null());
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut greeting = String::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            greeting += &format!("{line}\n");
            if line.contains("  keys ") {
                break;
            }
        }
        let later = Arc::<Mutex<Vec<String>>>::default();
        let kept = later.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                kept.lock().unwrap().push(line);
            }
        });
        let url = greeting.lines().next().unwrap_or_default().rsplit(' ').next().unwrap_or_default().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{greeting}");
        let allow: Allow = "127.0.0.1".parse().unwrap();
        let egress = Egress::new(egress::Config { allow, ..egress::Config::default() }).unwrap();
        let key = std::fs::read_to_string(dir.join("data/owner.key")).unwrap_or_default().trim().to_owned();
        Self { child, url, greeting, later, key, egress }
    }

    /// The link that the first start prints for the owner.
    pub async fn invitation(&self) -> String {
        let link = || self.later.lock().unwrap().iter().find(|line| line.contains("/invitations/")).cloned();
        until("there is a link for the owner", async || link().is_some()).await;
        link().unwrap().trim().to_owned()
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        self.send_as(Some(&format!("ApiKey {}", self.key)), method, path, body).await
    }

    fn request(&self, method: Method, path: &str) -> Request {
        Request::new(method, format!("{}{path}", self.url).parse().unwrap()).timeout(Duration::from_mins(1))
    }

    pub async fn send_as(&self, authorization: Option<&str>, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        self.try_send_as(authorization, method, path, body).await.unwrap_or_else(|| panic!("{path}: nobody answers"))
    }

    /// A request to a server that may be gone by now. What is not JSON comes as text.
    pub async fn try_send_as(&self, authorization: Option<&str>, method: Method, path: &str, body: Option<Value>) -> Option<(u16, Value)> {
        let mut request = self.request(method, path);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, HeaderValue::from_str(authorization).unwrap());
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body.to_string());
        }
        let response = self.egress.send(request).await.ok()?;
        let text = String::from_utf8_lossy(&response.body);
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap_or_else(|_| json!(text)) };
        Some((response.status.as_u16(), body))
    }

    /// The owner's request, if somebody answers.
    pub async fn try_send(&self, method: Method, path: &str, body: Option<Value>) -> Option<(u16, Value)> {
        self.try_send_as(Some(&format!("ApiKey {}", self.key)), method, path, body).await
    }

    /// Accepts an invitation as somebody new: the page, its cookie, its form.
    pub async fn join(&self, path: &str, password: &str) -> u16 {
        let page = self.egress.send(self.request(Method::GET, path)).await.unwrap();
        let cookie = page.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let token = crate::support::hidden(&String::from_utf8_lossy(&page.body), "csrf");
        let form =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs([("csrf", token.as_str()), ("password", password)]).finish();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = self.request(Method::POST, path).header(CONTENT_TYPE, kind).header(http::header::COOKIE, cookie.parse().unwrap());
        self.egress.send(request.body(form)).await.unwrap().status.as_u16()
    }

    /// A form, as a browser sends it.
    pub async fn send_form(&self, path: &str, form: String) -> u16 {
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        self.egress.send(self.request(Method::POST, path).header(CONTENT_TYPE, kind).body(form)).await.unwrap().status.as_u16()
    }

    /// An event, as a service sends it.
    pub async fn send_event(&self, path: &str, headers: &[(&'static str, &str)], body: Value) -> u16 {
        let mut request = self.request(Method::POST, path).header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            request = request.header(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        self.egress.send(request.body(body.to_string())).await.unwrap().status.as_u16()
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, reply) = self.send(Method::POST, path, Some(body)).await;
        assert_eq!(status, 200, "{path}: {reply}");
        reply
    }

    async fn call(&self, name: &str, arguments: Value) -> (u16, Value) {
        self.send(Method::POST, "/tools/call", Some(call_body(name, &arguments))).await
    }

    pub async fn terminate(mut self) -> i32 {
        let pid = self.child.id().unwrap().to_string();
        Command::new("kill").arg(pid).status().await.unwrap();
        self.child.wait().await.unwrap().code().unwrap_or(-1)
    }
}

#[tokio::test]
async fn the_first_start_makes_keys_and_later_ones_reuse_them() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let data = dir.path().join("data");
    let keys: Vec<String> =
        ["owner.key", "operator.key", "sealing.key"].iter().map(|name| std::fs::read_to_string(data.join(name)).unwrap()).collect();
    for name in ["owner.key", "operator.key", "sealing.key"] {
        assert_eq!(std::fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(server.send(Method::POST, "/tools/connections/query", None).await.0, 200);
    assert_eq!(server.terminate().await, 0);
    let server = Server::start(dir.path(), |_| {}).await;
    assert!(!server.greeting.contains(keys[0].trim()), "a later start does not show the key");
    assert_eq!(server.send(Method::POST, "/tools/connections/query", None).await.0, 200);
    let again: Vec<String> =
        ["owner.key", "operator.key", "sealing.key"].iter().map(|name| std::fs::read_to_string(data.join(name)).unwrap()).collect();
    assert_eq!(keys, again);
}

#[tokio::test]
async fn what_goes_wrong_at_the_start_is_one_line_and_exit_code_1() {
    let (dir, busy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    assert_eq!(Server::start(dir.path(), |_| {}).await.terminate().await, 0);
    let server = Server::start(busy.path(), |_| {}).await;
    let taken = server.url.trim_start_matches("http://").to_owned();
    let other = "c2VhbGluZy1rZXktb2YtMzItYnl0ZXMtZm9yLXRlc3Q=";
    let cases: [(&[(&str, &str)], &str); 9] = [
        (&[("TOOLYARD_LISTEN", &taken)], "cannot listen on"),
        (&[("TOOLYARD_LISTEN", "nonsense")], "is not an address"),
        (&[("TOOLYARD_DATA_DIR", "/proc/nowhere")], "cannot make the data directory"),
        (&[("TOOLYARD_SEALING_KEY", other)], "the sealing key does not fit this database"),
        (&[("TOOLYARD_SEALING_KEY", "short")], "the sealing key is not usable"),
        (&[("TOOLYARD_DATABASE_URL", "postgres://nobody@127.0.0.1:1/nothing")], "cannot open the database"),
        (&[("TOOLYARD_DATABASE_URL", "mysql://x")], "is not a database address"),
        (&[("TOOLYARD_INTEGRATIONS_DIR", "/nowhere")], "cannot read the integrations directory"),
        (&[("TOOLYARD_LOG", "inof")], "Did you mean `info`?"),
    ];
    for (env, words) in cases {
        let mut command = program(dir.path());
        command.arg("serve").env("TOOLYARD_LISTEN", "127.0.0.1:0");
        command.envs(env.iter().copied());
        let (code, out, err) = run(command).await;
        assert_eq!(code, 1, "{words}: {err}");
        assert!(
            err.starts_with("error: ") && err.contains(words) && err.trim().lines().count() == 1 && out.is_empty(),
            "{words}: {err}{out}"
        );
    }
}

/// Two servers on one SQLite file would take each other's work. Commands that administer are no servers.
#[tokio::test]
async fn a_second_server_on_one_sqlite_file_is_refused() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let start = || {
        let mut command = program(dir.path());
        command.arg("serve").env("TOOLYARD_LISTEN", "127.0.0.1:0");
        command
    };
    let (code, out, err) = run(start()).await;
    let holder = format!("another server (process {}) is running on", server.child.id().unwrap());
    assert!(code == 1 && err.contains(&holder) && out.is_empty(), "{err}{out}");
    let elsewhere = TempDir::new().unwrap();
    let mut command = start();
    command.env("TOOLYARD_DATABASE_URL", format!("sqlite://{}", dir.path().join("data/toolyard.db").display()));
    let (code, _, err) = run({
        command.env("TOOLYARD_DATA_DIR", elsewhere.path());
        command
    })
    .await;
    assert!(code == 1 && err.contains(&holder), "another directory of keys is no other database: {err}");
    for arguments in [&["key", "create"][..], &["key", "list"], &["project", "list"], &["migrate", "--check"]] {
        let mut command = program(dir.path());
        command.args(arguments);
        let (code, _, err) = run(command).await;
        assert_eq!(code, 0, "{arguments:?}: {err}");
    }
    assert_eq!(server.send(Method::POST, "/tools/connections/query", None).await.0, 200);
    assert_eq!(server.terminate().await, 0);
    Server::start(dir.path(), |_| {}).await;
}

#[tokio::test]
async fn a_start_without_the_sealing_key_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("data/sealing.key");
    let databases = [None, Some(postgres_schema().await)];
    for database in databases {
        let on_it = |command: &mut Command| {
            command.envs(database.iter().map(|url| ("TOOLYARD_DATABASE_URL", url)));
        };
        Server::start(dir.path(), on_it).await.terminate().await;
        let key = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let mut command = program(dir.path());
        on_it(command.arg("serve").env("TOOLYARD_LISTEN", "127.0.0.1:0"));
        let (code, _, err) = run(command).await;
        assert!(code == 1 && err.contains("sealing.key` back from your backup") && !file.exists(), "{err}");
        std::fs::write(&file, key).unwrap();
        Server::start(dir.path(), on_it).await;
    }
}

/// However many start together on a fresh directory, there is one set of keys and everyone gets in with it.
#[tokio::test]
async fn processes_that_start_together_share_one_set_of_keys() {
    let database = postgres_schema().await;
    let dir = TempDir::new().unwrap();
    let on_it = |command: &mut Command| {
        command.env("TOOLYARD_DATABASE_URL", &database);
    };
    let servers = join_all((0..4).map(|_| Server::start(dir.path(), on_it))).await;
    let key = std::fs::read_to_string(dir.path().join("data/owner.key")).unwrap();
    for mut server in servers {
        key.trim().clone_into(&mut server.key);
        assert_eq!(server.send(Method::POST, "/tools/connections/query", None).await.0, 200);
    }
    let mut command = program(dir.path());
    on_it(command.args(["key", "list", "--json"]));
    let (_, out, _) = run(command).await;
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap().as_array().unwrap().len(), 1);
    let elsewhere = TempDir::new().unwrap();
    let mut command = program(elsewhere.path());
    command.args(["key", "list"]);
    let (code, _, err) = run(command).await;
    assert!(code == 1 && err.contains("there is no database") && !elsewhere.path().join("data").exists(), "{err}");
}

#[tokio::test]
async fn settings_come_from_flag_environment_and_file() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("toolyard.toml"), "listen = '127.0.0.1:1111'\nlog = 'warn'\nbody_limit = 5\nadmin_key = 'topsecret'\n")
        .unwrap();
    let mut command = program(dir.path());
    command.args(["config", "--listen", "127.0.0.1:3333"]).env("TOOLYARD_LOG", "debug").env("TOOLYARD_LISTEN", "127.0.0.1:2222");
    command.env("TOOLYARD_DATABASE_URL", "postgres://yard:hunter2@db/yard");
    let (code, out, _) = run(command).await;
    assert_eq!(code, 0);
    let line = |name: &str| out.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(line("listen"), "listen = \"127.0.0.1:3333\" # flag");
    assert_eq!(line("log "), "log = \"debug\" # environment");
    assert_eq!(line("body_limit"), "body_limit = \"5\" # file");
    assert!(!out.contains("hunter2") && !out.contains("topsecret"), "{out}");
    std::fs::write(dir.path().join("toolyard.toml"), "lissten = 'x'").unwrap();
    let mut command = program(dir.path());
    command.arg("config");
    let (code, _, err) = run(command).await;
    assert!(code == 1 && err.contains("lissten"), "{err}");
}

#[tokio::test]
async fn the_commands_do_what_the_routes_do() {
    let dir = TempDir::new().unwrap();
    let fake = Fake::start().await;
    let yard = |args: &[&str], url: &str| {
        let mut command = program(dir.path());
        command.args(args).env("TOOLYARD_URL", url);
        run(command)
    };
    let (code, out, _) = yard(&["migrate", "--check"], "").await;
    assert!(code == 1 && out.contains("pending  0001_foundation"), "{out}");
    assert_eq!(yard(&["migrate"], "").await.0, 0);
    assert!(yard(&["migrate", "--check"], "").await.1.contains("up to date"));
    let server = Server::start(dir.path(), |_| {}).await;
    let url = server.url.clone();

    let (_, out, _) = yard(&["project", "create", "blue", "--json"], "").await;
    let blue: Value = serde_json::from_str(&out).unwrap();
    let (_, key, _) = yard(&["key", "create", "--project", "blue", "--role", "viewer"], "").await;
    assert!(key.starts_with("tyk_"), "{key}");
    let (_, listed, _) = yard(&["key", "list", "--project", "blue", "--json"], "").await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["project_id"], blue["id"]);
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(yard(&["integrations", "list", "--key", key.trim()], &url).await.0, 0);
    assert_eq!(yard(&["key", "revoke", id, "--yes"], "").await.0, 0);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let (code, _, err) = yard(&["integrations", "list", "--key", key.trim()], &url).await;
    assert!(code == 1 && err.contains("unknown or revoked"), "{err}");
    assert_eq!(yard(&["project", "delete", "blue"], "").await.0, 1);
    assert_eq!(yard(&["project", "delete", "blue", "--yes"], "").await.0, 0);

    let (_, out, _) = yard(&["integrations", "--search", "fake"], &url).await;
    assert!(out.contains("fake") && !out.contains("github"), "{out}");
    assert_eq!(out.lines().next().unwrap().split('\t').collect::<Vec<_>>(), ["fake", "Fake", "7", "2", "api_key"]);
    let (_, out, _) = yard(&["integrations", "show", "fake", "MAKE_A_THING"], &url).await;
    assert!(out.contains("title\tstring\tyes\tTitle"), "{out}");
    assert!(yard(&["completions", "bash"], "").await.1.contains("complete -F _toolyard"));
    let manifest = manifests().join("fake.yaml").display().to_string();
    assert!(yard(&["integrations", "check", &manifest], "").await.1.contains("ok, 7 actions, 2 events"));
    let (code, out, _) =
        yard(&["connect", "fake", "--field", &format!("base={}", fake.url), "--field", "api_key=sk-123456789"], &url).await;
    assert!(code == 0 && out.contains("connected fake as fake-main (ann)"), "{out}");
    let (code, out, _) = yard(&["call", "fake", "MAKE_A_THING", "--arg", "title=from the shell", "--arg", "labels=[\"a\"]"], &url).await;
    let seen: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &seen["body"]), (0, &json!({"title": "from the shell", "labels": ["a"]})));
    let (code, _, err) = yard(&["call", "fake", "FAIL_A_THING", "--arg", "code=404"], &url).await;
    assert!(code == 1 && err.contains("status 404 as asked"), "{err}");
    let (code, _, err) = yard(&["call", "github", "GET_A_REPOSITORY"], &url).await;
    assert!(code == 1 && err.contains("toolyard connect github"), "{err}");
    let (_, out, _) = yard(&["connections"], &url).await;
    assert!(out.contains("fake-main") && out.contains("ready"), "{out}");
    let (code, out, _) = yard(&["connect", "github", "--no-wait"], &url).await;
    assert!(code == 0 && out.contains("/connect/"), "{out}");
    let (code, out, _) = yard(&["oauth-app", "set", "github", "--client-id", "c", "--client-secret", "s"], &url).await;
    assert!(code == 0 && out.contains("/tools/connections/callback"), "{out}");
    assert_eq!(yard(&["integrations", "list"], "http://127.0.0.1:1").await.0, 1);
}

#[tokio::test]
async fn workflows_are_kept_and_run_from_the_shell() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let yard = |args: &[&str]| {
        let mut command = program(dir.path());
        command.arg("workflow").args(args).env("TOOLYARD_URL", &server.url);
        run(command)
    };
    let file = dir.path().join("data.json").display().to_string();
    std::fs::write(&file, r#"{"kind": "echo"}"#).unwrap();
    assert_eq!(yard(&["create", "say", "--name", "Say", "--file", &file]).await, (0, "created say, version 1\n".into(), String::new()));
    assert!(yard(&["create", "say"]).await.2.contains("already exists"));
    assert_eq!(yard(&["commit", "say", "--file", &file]).await.1, "nothing changed: say, version 1\n");
    std::fs::write(&file, r#"{"kind": "echo", "schemas": {"inputs": {"required": ["x"]}}}"#).unwrap();
    assert_eq!(yard(&["commit", "say", "--file", &file, "--message", "strict"]).await.1, "committed say, version 2\n");
    let (code, out, _) = yard(&["run", "say", "--version", "1"]).await;
    assert_eq!((code, out.trim()), (0, "{}"));
    let (code, out, err) = yard(&["run", "say"]).await;
    assert!(code == 1 && out.is_empty() && err.contains("\"x\" is a required property"), "{out}{err}");
    let (_, out, err) = yard(&["run", "say", "--inputs", r#"{"x": 1}"#, "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap_or_else(|_| panic!("{err}"))["data"]["outputs"], json!({"x": 1}));
    assert!(yard(&["run", "say", "--environment", "staging"]).await.2.contains("not deployed to 'staging'"));
    assert_eq!(yard(&["deploy", "say", "--to", "staging", "--version", "1"]).await.1, "deployed say, version 1, to staging\n");
    assert_eq!(yard(&["run", "say", "--environment", "staging"]).await.0, 0);
    let (_, out, _) = yard(&["show", "say"]).await;
    assert!(out.starts_with("say, version 2\n") && out.contains("\tstrict\n") && out.contains("\"required\""), "{out}");
    let (_, out, _) = yard(&["runs", "say", "--limit", "3"]).await;
    let codes: Vec<&str> = out.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert_eq!(codes, ["200", "200", "400"]);
    let (_, out, _) = yard(&["runs", "say", "--state", "failed"]).await;
    assert!(out.lines().count() == 1 && out.contains("\t400\t") && out.contains("\tfailed\t"), "{out}");
    assert!(yard(&["runs", "--state", "faild"]).await.2.contains("Did you mean `failed`?"));
    let (_, out, err) = yard(&["runs", "stats", "--buckets", "1"]).await;
    assert!(out.contains("1 failed, ") && out.lines().next().unwrap().split('\t').count() == 3, "{out}{err}");
    std::fs::write(&file, r#"{"steps": [{"name": "told", "call": "workflow.variant.say", "arguments": {"x": "{{ inputs.x }}"}}]}"#)
        .unwrap();
    assert_eq!(yard(&["create", "twice", "--file", &file]).await.0, 0);
    let (_, out, err) = yard(&["run", "twice", "--inputs", r#"{"x": 7}"#, "--json"]).await;
    let run = serde_json::from_str::<Value>(&out).unwrap_or_else(|_| panic!("{err}"))["meta"]["run_id"].as_str().unwrap().to_owned();
    let (code, out, err) = yard(&["runs", "show", &run]).await;
    assert!(code == 0 && out.starts_with("200 Success, ") && out.contains("\n  inputs: {\"x\":7}\n"), "{out}{err}");
    assert!(out.contains("\ntold: done, ") && out.contains("workflow.variant.say\n  arguments: {\"x\":7}\n  result: {\"x\":7}\n"), "{out}");
    let (_, out, _) = yard(&["runs", "show", &run, "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["steps"][0]["state"], "done");
    assert!(yard(&["runs", "show", "0199a6f2-6c1e-7d11-9d4e-0f6b8f6f7a10"]).await.2.contains("Run not found"));
    assert_eq!(yard(&["archive", "twice"]).await.0, 0);
    assert!(yard(&[]).await.1.starts_with("say\tSay\t"));
    assert_eq!(yard(&["archive", "say", "--yes"]).await.1, "archived say\n");
    assert_eq!((yard(&[]).await.1, yard(&["run", "say"]).await.0), (String::new(), 1));
    assert_eq!(yard(&["archive", "say", "--undo"]).await.1, "unarchived say\n");
    assert!(yard(&["archive", "nobody"]).await.2.contains("there is no workflow `nobody`"));
}

#[tokio::test]
async fn apis_are_imported_from_the_shell() {
    let dir = TempDir::new().unwrap();
    let fake = Fake::start().await;
    let server = Server::start(dir.path(), |_| {}).await;
    let yard = |args: &[&str]| {
        let mut command = program(dir.path());
        command.args(args).env("TOOLYARD_URL", &server.url);
        run(command)
    };
    let document = format!(
        "openapi: 3.0.3\ninfo: {{title: Pet Store, version: '1'}}\nservers: [{{url: '{}/echo'}}]\npaths:\n  /pets:\n    get: {{operationId: listPets}}\n",
        fake.url
    );
    let file = dir.path().join("pets.yaml").display().to_string();
    std::fs::write(&file, &document).unwrap();
    let (code, out, _) = yard(&["import", "openapi", &file, "--dry-run"]).await;
    assert_eq!((code, out.as_str()), (0, "would import Pet Store as openapi/pet-store, 1 actions\n1 added\n  + list_pets\n"));
    assert_eq!(yard(&["import", "list"]).await.1, "");
    let (code, out, err) = yard(&["import", "openapi", &file, "--as", "pets", "--auth", "header:X-Key"]).await;
    assert_eq!((code, out.as_str()), (0, "imported Pet Store as openapi/pets, 1 actions\n1 added\n"), "{err}");
    assert!(err.contains("toolyard connect openapi/pets"), "{err}");
    assert_eq!(yard(&["connect", "openapi/pets", "--field", "api_key=sk-123456789"]).await.1, "connected openapi/pets as pets-main\n");
    let (code, out, err) = yard(&["call", "openapi/pets", "list_pets"]).await;
    assert!(code == 0 && out.contains(r#""x-key": "…""#), "the key is sent, and what the service repeats of it is taken out: {out}{err}");
    assert!(yard(&["integrations", "show", "openapi/pets"]).await.1.contains("list_pets"));
    assert!(yard(&["integrations", "--provider", "openapi"]).await.1.starts_with("openapi/pets\tPet Store\t1\t"));

    let url = fake.put_file("pets.yaml", &(document.clone() + "    post: {operationId: createPet}\n"));
    let (_, out, err) = yard(&["import", "openapi", &url, "--as", "pets", "--auth", "header:X-Key"]).await;
    assert_eq!(out, "imported again Pet Store as openapi/pets, 2 actions\n1 added\n  + create_pet\n", "{err}");
    fake.put_file("pets.yaml", &document);
    assert!(yard(&["import", "refresh", "pets"]).await.1.ends_with("1 removed\n  - create_pet\n"));
    let (_, out, _) = yard(&["import", "list"]).await;
    assert!(out.starts_with(&format!("openapi/pets\tPet Store\t1\t3\t{url}\t")), "{out}");
    assert!(yard(&["import", "remove", "pets"]).await.2.contains("connection pets-main"));
    assert_eq!(yard(&["import", "remove", "pets", "--force"]).await.1, "removed openapi/pets\n");
    assert!(yard(&["import", "remove", "pets"]).await.2.contains("there is no import `pets`"));
    assert!(yard(&["import", "openapi", "nowhere.yaml"]).await.2.contains("cannot read `nowhere.yaml`"));
    assert!(yard(&["import", "openapi", &file, "--auth", "magic"]).await.2.contains("header:NAME"));
}

#[tokio::test]
async fn calls_ask_and_people_decide_from_the_shell() {
    let dir = TempDir::new().unwrap();
    let fake = Fake::start().await;
    let server = Server::start(dir.path(), |_| {}).await;
    let yard = |args: &[&str]| {
        let mut command = program(dir.path());
        command.args(args).env("TOOLYARD_URL", &server.url);
        run(command)
    };
    yard(&["connect", "fake", "--field", &format!("base={}", fake.url), "--field", "api_key=sk-123456789"]).await;
    assert_eq!(yard(&["permissions"]).await.1, "unset\t(everything else)\n");
    let (_, out, _) = yard(&["permissions", "ask", "tools.native.fake.MAKE_*"]).await;
    assert_eq!(out, "ask\ttools.native.fake.MAKE_*\nunset\t(everything else)\n");
    let make = ["call", "fake", "MAKE_A_THING", "--arg", "title=x"];
    let (code, out, err) = yard(&make).await;
    let id = err.split("toolyard approval approve ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    assert!(code == 1 && out.is_empty() && err.starts_with("waiting: `tools.native.fake.MAKE_A_THING.fake-main`"), "{out}{err}");
    let (_, out, _) = yard(&["approval", "--status", "pending"]).await;
    assert!(out.starts_with(&format!("{id}\tpending\t")) && out.ends_with("{\"title\":\"x\"}\n"), "{out}");
    assert!(yard(&["approval", "approve", &id, "--note", "fine"]).await.1.starts_with("approved; tools.native.fake.MAKE_A_THING"));
    assert!(yard(&["approval", "deny", &id]).await.2.contains("approved already"));
    assert!(yard(&["approval", "show", &id]).await.1.contains("\"note\": \"fine\""));
    assert_eq!(yard(&make).await.0, 0);
    let (_, _, err) = yard(&make).await;
    let id = err.split("toolyard approval approve ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    yard(&["approval", "deny", &id, "--note", "not again"]).await;
    assert!(yard(&make).await.2.contains("was denied: not again"));
    assert_eq!(yard(&["permissions", "default", "allow_reads"]).await.1.lines().last(), Some("allow_reads\t(everything else)"));
    assert!(yard(&["permissions", "remove", "nothing"]).await.2.contains("there is no rule `nothing`"));
    assert_eq!(yard(&["permissions", "remove", "tools.native.fake.MAKE_*"]).await.1, "allow_reads\t(everything else)\n");
    assert_eq!(yard(&["permissions", "default", "unset"]).await.1, "unset\t(everything else)\n");
    assert_eq!(yard(&make).await.0, 0);
}

#[tokio::test]
async fn workflows_and_ops_are_called_from_the_shell() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let yard = |args: &[&str]| {
        let mut command = program(dir.path());
        command.args(args).env("TOOLYARD_URL", &server.url);
        run(command)
    };
    let file = dir.path().join("data.json").display().to_string();
    std::fs::write(&file, r#"{"kind": "echo", "parameters": {"agent": {"tools": []}}, "schemas": {"inputs": {"required": ["x"]}}}"#)
        .unwrap();
    assert_eq!(yard(&["workflow", "create", "say", "--file", &file]).await.0, 0);
    let (code, out, _) = yard(&["call", "workflow.variant.say", "--arg", "x=1"]).await;
    assert_eq!((code, serde_json::from_str::<Value>(&out).unwrap()), (0, json!({"x": 1})));
    let (code, out, err) = yard(&["call", "workflow.variant.say"]).await;
    assert!(code == 1 && out.is_empty() && err.contains("\"x\" is a required property"), "{out}{err}");
    assert!(yard(&["call", "github"]).await.2.contains("toolyard integrations show github"));

    let (code, out, _) = yard(&["discover", "post to slack", "when a new email arrives"]).await;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((code, lines[0]), (0, "post to slack\tslack.SEND_A_MESSAGE\tneeds_auth\ttoolyard connect slack"));
    assert!(lines[1].starts_with("when a new email arrives\tevent gmail.NEW_MESSAGE\tneeds_auth\t"), "{out}");
    let (code, out, _) = yard(&["discover", "asdf qwerty", "--json"]).await;
    assert_eq!((code, &serde_json::from_str::<Value>(&out).unwrap()["ready"]), (1, &json!(false)));
    assert!(yard(&["ops"]).await.1.starts_with("discover_tools\tallow\tFind tools for what you want to do.\n"));
    assert!(yard(&["ops", "show", "find_triggers"]).await.1.contains("\"op\": \"discover_triggers\""));
    assert!(yard(&["ops", "show", "nope"]).await.2.contains("there is no op `nope`"));
    let read = ["ops", "call", "read_config", "--args", r#"{"target": {"path": ["parameters", "agent"]}}"#];
    let (_, out, err) = yard(&[&read[..], &["--workflow", "say"]].concat()).await;
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap_or_else(|_| panic!("{err}"))["value"], json!({"tools": []}));
    let (code, _, err) = yard(&read).await;
    assert!(code == 1 && err.contains("missing run-context value"), "{err}");
    let context = r#"{"workflow": {"artifact": {"id": "0199a6f2-6c1e-7d11-9d4e-0f6b8f6f7a10"}}}"#;
    let (code, _, err) = yard(&["ops", "call", "rename_agent", "--arg", "name=Ada", "--context", context]).await;
    assert!(code == 1 && err.contains("toolyard approval approve"), "{err}");
}

#[tokio::test]
async fn agents_get_their_tools_from_the_shell() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let yard = |args: &[&str]| {
        let mut command = program(dir.path());
        command.arg("agent").args(args).env("TOOLYARD_URL", &server.url);
        run(command)
    };
    let (code, out, err) = yard(&["create", "News reader", "--type", "research", "--app", "hacker-news"]).await;
    assert!(code == 0 && out.contains("1 News reader (research), active, version 1") && out.contains("HACKER-NEWS"), "{out}{err}");
    let (code, _, err) = yard(&["create", "x", "--app", "github"]).await;
    assert!(code == 1 && err.contains("Nothing was changed: 1 of the tools cannot be assigned. GITHUB is not connected."), "{err}");
    assert_eq!(yard(&[]).await.1, "1\tNews reader\tresearch\tactive\texplicit\tHACKER-NEWS\n");
    let settings =
        ["--priority", "-3", "--allow", "SEARCH", "--permission", "ask", "--access", "read_only", "--connection", "hacker-news-main"];
    let (code, out, err) = yard(&[&["assign", "News reader", "hacker-news"][..], &settings].concat()).await;
    assert!(code == 0 && out.contains("\t-3\tyes\t{\"access\":\"read_only\",\"allow\":[\"SEARCH\"]"), "{out}{err}");
    let (_, out, err) = yard(&["toolset", "1", "--prompt", "search stories", "--limit", "2", "--excluded"]).await;
    assert!(
        out.starts_with("tools.native.hacker-news.SEARCH.hacker-news-main\task\t") && err.contains("that the assignment allows"),
        "{out}{err}"
    );
    let (_, out, _) = yard(&["toolset", "1", "--format", "mcp"]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()[0]["name"], "tools__native__hacker-news__SEARCH__hacker-news-main");
    let stable = yard(&["show", "1", "--json"]).await.1;
    let stable = serde_json::from_str::<Value>(&stable).unwrap()["tools"][0]["stable_id"].to_string();
    assert_eq!(yard(&["unassign", "1", &stable]).await.0, 0);
    assert_eq!(yard(&["assign", "1", &stable]).await.0, 0);
    let (_, out, _) = yard(&["history", "News reader"]).await;
    let changes: Vec<&str> = out.lines().map(|line| line.split('\t').nth(2).unwrap()).collect();
    assert_eq!(changes, ["reassigned", "unassigned", "adjusted", "assigned", "created"]);
    assert!(yard(&["show", "nobody"]).await.2.contains("there is no agent `nobody`"));
    assert!(yard(&["delete", "1", "--yes"]).await.1.contains("is deleted"));
}

#[tokio::test]
async fn triggers_are_made_and_watched_from_the_shell() {
    let dir = TempDir::new().unwrap();
    let fake = Fake::start().await;
    let server = Server::start(dir.path(), |_| {}).await;
    let command = |args: &[&str]| {
        let mut command = program(dir.path());
        command.args(args).env("TOOLYARD_URL", &server.url);
        command
    };
    let yard = |args: &[&str]| run(command(&[&["trigger"], args].concat()));
    let file = dir.path().join("data.json").display().to_string();
    std::fs::write(&file, r#"{"kind": "echo"}"#).unwrap();
    assert_eq!(run(command(&["workflow", "create", "say", "--file", &file])).await.0, 0);
    let fields = ["--field", "api_key=sk-123456789", "--field"];
    assert_eq!(run(command(&[&["connect", "fake"], &fields[..], &[&format!("base={}", fake.url)]].concat())).await.0, 0);

    assert!(yard(&["events", "--search", "fake"]).await.1.starts_with("fake\tFake\t2\n"));
    assert!(yard(&["events", "fake"]).await.1.contains("THING_CHANGED\tSomeone changes a thing"));
    assert!(yard(&["events", "fake", "THING_CHANGED"]).await.1.contains("box\tstring\tyes\tBox that holds the thing"));

    let inputs = r#"{"title": "$.event.attributes.title"}"#;
    let (_, out, err) = yard(&["create", "WEBHOOK_RECEIVED", "--workflow", "say", "--name", "inbox", "--inputs", inputs]).await;
    let address = out.split_once("  address  ").unwrap_or_else(|| panic!("{out}{err}")).1.trim().to_owned();
    let path = address.strip_prefix(&server.url).unwrap();
    let (code, out, _) = yard(&["create", "THING_CHANGED", "--connection", "fake-main", "--set", "box=a", "--workflow", "say"]).await;
    assert!(code == 0 && !out.contains("address"), "{out}");
    let (code, _, err) = yard(&["create", "THING_CHANGED", "--connection", "fake-main", "--set", "box=a", "--workflow", "say"]).await;
    assert!(code == 1 && err.contains("already exists. (subscription_id "), "{err}");
    for (args, words) in [
        (&["create", "THING_CHANGED", "--workflow", "say"][..], "needs --connection"),
        (&["create", "THING_CHANGED", "--workflow", "say", "--connection", "gone"], "there is no connection `gone`"),
        (&["create", "WEBHOOK_RECEIVED", "--workflow", "gone"], "The target cannot be used"),
        (&["create", "WEBHOOK_RECEIVED", "--workflow", "say", "--inputs", "{a}"], "--inputs is not JSON"),
        (&["schedule", "@daily", "--workflow", "say"], "write the five fields out"),
        (&["schedule", "0 9 * * *", "--workflow", "say", "--misfire", "catch_up:x"], "write it as catch_up:10"),
        (&["test", "WEBHOOK_RECEIVED", "--wait", "301"], "at most 300 seconds"),
        (&["test", "WEBHOOK_RECEIVED", "--wait", "0"], "no event came within 0 seconds"),
        (&["deliveries", "--schedule", "inbox"], "`inbox` is a subscription; use --subscription"),
        (&["run", "inbox"], "only a schedule can be run by hand"),
        (&["pause", "nobody"], "there is no trigger `nobody`"),
    ] {
        let (code, _, err) = yard(args).await;
        assert!(code != 0 && err.contains(words), "{args:?}: {err}");
    }
    let (_, out, _) =
        yard(&["schedule", "0 9 * * mon-fri", "--timezone", "Europe/Berlin", "--workflow", "say", "--name", "mornings"]).await;
    assert!(out.starts_with("`0 9 * * mon-fri` runs say: ") && out.lines().count() == 11 && out.contains(" 09:00 +0"), "{out}");

    let mut child = command(&["trigger", "deliveries", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (status, reply) = server.send(Method::POST, path, Some(json!({"title": "Broken"}))).await;
    assert_eq!(status, 202, "{reply}");
    let done = loop {
        let row: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(row["data"]["event_key"], "WEBHOOK_RECEIVED");
        if row["state"] == "done" {
            break row;
        }
    };
    assert_eq!(done["data"]["inputs"], json!({"title": "Broken"}));
    Command::new("kill").args(["-INT", &child.id().unwrap().to_string()]).status().await.unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0));

    let id = done["id"].as_str().unwrap();
    assert!(yard(&["retry", id]).await.1.starts_with("running "));
    assert_eq!(yard(&["replay", "--status", "424"]).await.1, "nothing that failed for good fits\n");
    assert!(yard(&["run", "mornings"]).await.1.starts_with("running mornings, delivery "));
    let (_, out, _) = yard(&["deliveries", "--subscription", "inbox"]).await;
    let cells: Vec<&str> = out.split('\t').collect();
    assert_eq!((out.lines().count(), &cells[4..8]), (1, &[id, "WEBHOOK_RECEIVED", "inbox", "say"][..]), "{out}");
    let (_, out, _) = yard(&["show", id]).await;
    assert!(out.contains("\n1\t") && out.contains("\"title\": \"Broken\""), "{out}");
    let (_, out, _) = yard(&["show", done["event_row_id"].as_str().unwrap(), "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["event"]["attributes"]["title"], "Broken");

    assert_eq!(yard(&["pause", "mornings"]).await.1, "paused mornings\n");
    let (_, out, _) = yard(&[]).await;
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').take(5).collect()).collect();
    let expected = [
        ["subscription", "", "THING_CHANGED", "say", "active"],
        ["subscription", "inbox", "WEBHOOK_RECEIVED", "say", "active"],
        ["schedule", "mornings", "0 9 * * mon-fri Europe/Berlin", "say", "paused"],
    ];
    assert_eq!(rows, expected);
    assert!(yard(&["resume", "mornings"]).await.1.starts_with("resumed mornings, next at "));

    // Changes keep what they do not name.
    let (code, out, err) = yard(&["update", "mornings", "--cron", "30 7 * * *", "--version", "1", "--json"]).await;
    assert_eq!(code, 0, "{err}");
    let saved = serde_json::from_str::<Value>(&out).unwrap()["schedule"]["data"].take();
    let references = json!({"workflow": {"slug": "say"}, "workflow_revision": {"version": "1"}});
    assert_eq!(
        (&saved["schedule"], &saved["timezone"], &saved["references"]),
        (&json!("30 7 * * *"), &json!("Europe/Berlin"), &references)
    );
    let (_, out, _) = yard(&["update", "mornings", "--name", "early", "--timezone", "", "--paused", "true", "--json"]).await;
    let saved = serde_json::from_str::<Value>(&out).unwrap()["schedule"].take();
    assert_eq!((&saved["name"], &saved["data"]["timezone"], &saved["flags"]["is_active"]), (&json!("early"), &Value::Null, &json!(false)));
    assert!(yard(&["update", "early", "--paused", "false", "--name", "mornings"]).await.1.starts_with("updated mornings, next at "));
    let inputs = r#"{"all": "$.event.attributes"}"#;
    let secret = ["--set", "scheme=token", "--secret", "s3cret"];
    let (code, out, err) = yard(&[&["update", "inbox", "--inputs", inputs, "--ordered", "true", "--json"], &secret[..]].concat()).await;
    assert_eq!(code, 0, "{err}");
    let saved = serde_json::from_str::<Value>(&out).unwrap()["subscription"]["data"].take();
    let expected = json!({"all": "$.event.attributes"});
    assert_eq!(
        (&saved["inputs_fields"], &saved["ordered"], &saved["trigger_config"]),
        (&expected, &json!(true), &json!({"scheme": "token"}))
    );
    assert_eq!(server.send(Method::POST, path, Some(json!({}))).await.0, 401, "the address is the same, and asks for the secret");
    for (args, words) in [
        (&["update", "inbox"][..], "nothing to change"),
        (&["update", "inbox", "--cron", "* * * * *"], "`inbox` is a subscription, which has no --cron"),
        (&["update", "mornings", "--set", "a=1"], "`mornings` is a schedule, which has no --set"),
        (&["update", "mornings", "--workflow", "gone"], "The target cannot be used"),
        (&["cancel", id], "The delivery is done; it has ended already"),
        (&["delete", "mornings"], "to delete the schedule mornings would stop what is in use: 30 7 * * * runs say/1, next at "),
    ] {
        let (code, _, err) = yard(args).await;
        assert!(code != 0 && err.contains(words), "{args:?}: {err}");
    }
    let (code, _, err) = run(command(&["workflow", "archive", "say"])).await;
    assert!(code != 0 && err.contains("subscription inbox (WEBHOOK_RECEIVED)") && err.contains("schedule mornings"), "{err}");
    assert_eq!(yard(&["delete", "mornings", "--yes"]).await.1, "deleted mornings\n");
    let (_, out, _) = yard(&["--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["count"], 2);

    let child = command(&["trigger", "test", "WEBHOOK_RECEIVED", "--wait", "30", "--inputs", "$.event.attributes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    let line = BufReader::new(child.stderr.take().unwrap()).lines().next_line().await.unwrap().unwrap();
    let path = line.split(' ').find_map(|word| word.strip_prefix(&server.url)).unwrap_or_else(|| panic!("{line}"));
    assert_eq!(server.send(Method::POST, path, Some(json!({"n": 1}))).await.0, 202);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.status.code(), serde_json::from_slice::<Value>(&output.stdout).unwrap()), (Some(0), json!({"n": 1})));
}

#[tokio::test]
async fn a_dead_delivery_is_a_warning_and_a_paused_server_says_so() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    let file = std::fs::File::create(&log).unwrap();
    let server = Server::start(dir.path(), |command| {
        command.stderr(file).env("TOOLYARD_LOG_FORMAT", "json");
    })
    .await;
    let made = server.post("/triggers/subscriptions", json!({"subscription": {"data": {"event_key": "WEBHOOK_RECEIVED"}}})).await;
    let (id, url) = (made["subscription"]["id"].as_str().unwrap(), made["subscription"]["url"].as_str().unwrap());
    assert_eq!(server.send(Method::POST, url.strip_prefix(&server.url).unwrap(), Some(json!({}))).await.0, 202);
    let warned = || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.lines().any(|line| line.contains("a delivery was given up") && line.contains("WARN") && line.contains(id))
    };
    until("the log says so", async || warned()).await;
    assert_eq!(server.terminate().await, 0);
    let server = Server::start(dir.path(), |command| {
        command.env("TOOLYARD_PAUSED", "true");
    })
    .await;
    assert!(server.greeting.contains("triggers  paused"), "{}", server.greeting);
    assert_eq!(server.send(Method::GET, "/health", None).await.1["triggers"], "paused");
}

#[tokio::test]
async fn sealing_keys_rotate_while_the_server_runs() {
    let dir = TempDir::new().unwrap();
    let fake = Fake::start().await;
    let server = Server::start(dir.path(), |_| {}).await;
    let connect = |slug: &str| {
        fake_connection(slug, &json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": "sk-123456789"}}))
    };
    server.post("/tools/connections", connect("before")).await;
    let rotate = |finish: bool| {
        let mut command = program(dir.path());
        command.args(["key", "rotate-sealing"]).args(finish.then_some("--finish"));
        run(command)
    };
    let old = std::fs::read_to_string(dir.path().join("data/sealing.key")).unwrap();
    assert_eq!(rotate(false).await.0, 0);
    assert_eq!(server.call("tools.native.fake.MAKE_A_THING.before", json!({"title": "x"})).await.0, 200);
    server.post("/tools/connections", connect("during")).await;
    assert_eq!(rotate(true).await.0, 0);
    let new = std::fs::read_to_string(dir.path().join("data/sealing.key")).unwrap();
    assert!(new.trim().lines().count() == 1 && new != old);
    for slug in ["before", "during"] {
        assert_eq!(server.call(&format!("tools.native.fake.MAKE_A_THING.{slug}"), json!({"title": "x"})).await.0, 200);
    }
    assert_eq!(server.terminate().await, 0);
    let server = Server::start(dir.path(), |_| {}).await;
    for slug in ["before", "during"] {
        assert_eq!(server.call(&format!("tools.native.fake.MAKE_A_THING.{slug}"), json!({"title": "x"})).await.0, 200);
    }
}

#[tokio::test]
async fn a_stop_finishes_what_is_in_flight() {
    let dir = TempDir::new().unwrap();
    let fake = Fake::start().await;
    let server = Server::start(dir.path(), |_| {}).await;
    server
        .post(
            "/tools/connections",
            fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": "sk-123456789"}})),
        )
        .await;
    let pid = server.child.id().unwrap().to_string();
    let (reply, ()) = tokio::join!(server.call("tools.native.fake.SLOWLY.main", json!({"ms": 800})), async {
        tokio::time::sleep(Duration::from_millis(250)).await;
        Command::new("kill").arg(&pid).status().await.unwrap();
    });
    assert_eq!(reply.0, 200, "{}", reply.1);
    let mut server = server;
    assert_eq!(server.child.wait().await.unwrap().code(), Some(0));
}

/// Two processes, one PostgreSQL, one expired token: one refresh.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_refresh_once() {
    let database = postgres_schema().await;
    let dir = TempDir::new().unwrap();
    // The public address is fixed before the port is known, so that the provider can be told where to send people back.
    let public = "http://127.0.0.1:8665";
    let both = |command: &mut Command| {
        command.env("TOOLYARD_DATABASE_URL", &database).env("TOOLYARD_PUBLIC_URL", public);
    };
    let one = Server::start(dir.path(), both).await;
    let two = Server::start(dir.path(), both).await;
    let app = json!({"oauth_app": {"integration_key": "oidc", "client_id": "yard", "client_secret": "yard-secret"}});
    let made = one.post("/tools/oauth-apps", app).await;
    let oidc = Oidc::start(made["oauth_app"]["redirect_url"].as_str().unwrap(), 600).await;
    let body = json!({"connection": {"slug": "main", "provider_key": "native", "integration_key": "oidc", "data": {"auth_scheme": "oauth", "credentials": {"base": oidc.issuer}}}});
    let started = one.post("/tools/connections", body).await;
    let back = oidc.browse(started["connection"]["data"]["redirect_url"].as_str().unwrap(), "ann", true).await;
    let (status, _) = two.send(Method::GET, &format!("{}?{}", back.path(), back.query().unwrap()), None).await;
    assert_eq!(status, 200, "the other process finishes what the first began");
    oidc.control("expire-access-tokens").await;
    let calls = (0..50)
        .map(|number| if number % 2 == 0 { &one } else { &two })
        .map(|server| server.call("tools.native.oidc.GET_ME.main", json!({})));
    for (status, reply) in join_all(calls).await {
        assert_eq!(status, 200, "{reply}");
    }
    assert_eq!(oidc.counters().await["refreshes"], 1);
}

/// A process that dies while it renews a token leaves a connection that works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_that_is_cut_off_breaks_nothing() {
    // On SQLite the dead process was the only one; elsewhere its lease runs out.
    for (database, patience) in [(None, Duration::from_secs(4)), (Some(postgres_schema().await), Duration::from_secs(14))] {
        cut_off_a_refresh(database, patience).await;
    }
}

async fn cut_off_a_refresh(database: Option<String>, patience: Duration) {
    let dir = TempDir::new().unwrap();
    let fake = Fake::start().await;
    let on_it = |command: &mut Command| {
        command.envs(database.iter().map(|url| ("TOOLYARD_DATABASE_URL", url)));
    };
    let mut server = Server::start(dir.path(), on_it).await;
    let data =
        json!({"auth_scheme": "client_credentials", "credentials": {"base": fake.url, "client_id": "id", "client_secret": "secret-123"}});
    let made = server.post("/tools/connections", fake_connection("cc", &data)).await;
    fake.hang_tokens(1);
    let refresh = format!("/tools/connections/{}/refresh", made["connection"]["id"].as_str().unwrap());
    tokio::select! {
        _ = server.send(Method::POST, &refresh, None) => panic!("the refresh was to hang"),
        () = fake.token_hangs() => {}
    }
    server.child.kill().await.unwrap();
    let server = Server::start(dir.path(), on_it).await;
    let (status, reply) = server.call("tools.native.fake.MAKE_A_THING.cc", json!({"title": "x"})).await;
    assert_eq!(status, 200, "{reply}");
    let asked = std::time::Instant::now();
    let (status, reply) = server.send(Method::POST, &refresh, None).await;
    assert_eq!(status, 200, "{reply}");
    assert!(asked.elapsed() < patience, "it waited {:?} for a dead process", asked.elapsed());
    assert_eq!(server.call("tools.native.fake.MAKE_A_THING.cc", json!({"title": "x"})).await.0, 200);
    assert_eq!(fake.seen().last().unwrap()["headers"]["authorization"], "Bearer token-3-abcdef");
}

#[tokio::test]
async fn calls_are_listed_and_followed() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    server.post("/simple/workflows/", json!({"workflow": {"slug": "say", "data": {"kind": "echo"}}})).await;
    server.post("/agents", json!({"name": "Clerk", "agent_type": "x", "tool_configs": [{"type": "reference", "slug": "say"}]})).await;
    let command = |args: &[&str]| {
        let mut command = program(dir.path());
        command.args(["calls", "--url", &server.url]).args(args);
        command
    };
    let (code, out, err) = run(command(&[])).await;
    assert_eq!((code, out.as_str(), err.contains("no calls; `toolyard call` makes one")), (0, "", true), "{err}");
    assert_eq!(server.call("workflow.variant.say.1", json!({})).await.0, 200);
    assert_eq!(server.call("workflow.variant.nope", json!({})).await.0, 404);
    server.post("/agents/1/call", call_body("say", &json!({}))).await;
    let lines = async |args: &[&str]| run(command(args)).await.1.lines().count();
    for (args, count) in [
        (&["--since", "yesterday"][..], 3),
        (&["--since", "2h", "--tool", "workflow.variant.say"], 2),
        (&["--outcome", "failed"], 1),
        (&["--agent", "Clerk"], 1),
        (&["--limit", "1"], 1),
    ] {
        assert_eq!(lines(args).await, count, "{args:?}");
    }
    let (_, out, _) = run(command(&["--agent", "Clerk"])).await;
    assert!(out.contains("\tok\t") && out.contains("\tworkflow.variant.say\t"), "{out}");
    let (code, _, err) = run(command(&["--since", "soon"])).await;
    assert!(code != 0 && err.contains("not a time"), "{err}");

    let mut child = command(&["--follow", "--json", "--limit", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || serde_json::from_str::<Value>(&rows.next_line().await.unwrap().unwrap()).unwrap();
    assert!(next().await["agent_id"].is_string(), "it begins with the newest");
    assert_eq!(server.call("workflow.variant.say", json!({})).await.0, 200);
    assert_eq!(next().await["call_ref"], "workflow.variant.say");
    Command::new("kill").args(["-INT", &child.id().unwrap().to_string()]).status().await.unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}
