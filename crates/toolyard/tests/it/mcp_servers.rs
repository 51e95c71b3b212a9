//! `/tools/imports/mcp` with servers that others wrote: over their input and output, and over HTTP.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::mcp::{events, newest, request};
use crate::support::{Database, Oidc, Test, repository, until};

fn script(package: &str) -> String {
    let path = repository().join("tests/npm/node_modules/@modelcontextprotocol").join(package).join("dist/index.js");
    path.canonicalize().unwrap().display().to_string()
}

fn python(name: &str) -> String {
    repository().canonicalize().unwrap().join("target/test-venv/bin").join(name).display().to_string()
}

pub(crate) fn node(package: &str, args: &[&str]) -> Value {
    let mut all = vec![script(package)];
    all.extend(args.iter().map(|arg| (*arg).to_owned()));
    json!({"command": "node", "args": all})
}

/// `server-everything` with a word in its command line that tells its process apart.
fn everything(mark: &str) -> Value {
    node("server-everything", &["stdio", mark])
}

async fn yard(database: Database) -> Test {
    Test::with(database, |config| config.mcp_commands = format!("node, {}, {}", python("mcp-server-time"), python("mcp-server-git"))).await
}

impl Test {
    async fn import_mcp(&self, key: &str, mut import: Value) -> Value {
        import["key"] = key.into();
        self.post("/tools/imports/mcp", json!({"import": import})).await.expect(200)
    }

    async fn connect_mcp(&self, key: &str, data: Value) -> Value {
        let connection = json!({"slug": "main", "provider_key": "mcp", "integration_key": key, "data": data});
        self.post("/tools/connections", json!({"connection": connection})).await.expect(200)["connection"].take()
    }

    /// Imports and connects a server that needs no credential.
    async fn use_mcp(&self, key: &str, import: Value) -> Value {
        let made = self.import_mcp(key, import).await;
        self.connect_mcp(key, json!({})).await;
        made
    }

    async fn call_mcp(&self, key: &str, action: &str, arguments: Value) -> Value {
        Self::content(self.call(&format!("tools.mcp.{key}.{action}.main"), arguments).await)
    }

    async fn discovered(&self, sentence: &str) -> (String, String) {
        let found = self.post("/tools/discover", json!({"use_cases": [sentence], "provider": "mcp"})).await.expect(200);
        let first = &found["capabilities"][0];
        (first["integration"].as_str().unwrap_or_default().to_owned(), first["tool"]["action"].as_str().unwrap_or_default().to_owned())
    }
}

/// Our children with `word` in their command line.
fn processes(word: &str) -> Vec<u32> {
    children().into_iter().filter(|(_, line)| line.contains(word)).map(|(id, _)| id).collect()
}

/// Children that ended and were not reaped; their command lines are empty.
fn zombies() -> usize {
    children().into_iter().filter(|(_, line)| line.is_empty()).count()
}

fn children() -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let after: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let is_ours = after.get(1).and_then(|parent| parent.parse::<u32>().ok()) == Some(std::process::id());
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if is_ours {
            found.push((id, String::from_utf8_lossy(&line).into_owned()));
        }
    }
    found
}

fn kill(id: u32) {
    assert!(std::process::Command::new("kill").args(["-9", &id.to_string()]).status().unwrap().success());
}

/// `server-everything` over HTTP.
struct Everything {
    url: String,
    port: u16,
    child: Child,
}

impl Everything {
    async fn start(port: u16) -> Self {
        let mut command = Command::new("node");
        command.args([script("server-everything"), "streamableHttp".to_owned()]).env("PORT", port.to_string());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("listening") {
                break;
            }
        }
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { url: format!("http://127.0.0.1:{port}/mcp"), port, child }
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn servers_from_npm_and_pypi_are_imported_found_and_called(database: Database) {
    let test = &yard(database).await;
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().canonicalize().unwrap();
    std::fs::write(files.join("note.txt"), "remember the milk").unwrap();
    assert!(std::process::Command::new("git").args(["init", "-q"]).current_dir(&files).status().unwrap().success());
    let made = test.use_mcp("everything", node("server-everything", &[])).await;
    assert!(made["import"]["actions_count"].as_u64().unwrap() >= 8, "{made}");
    assert_eq!((&made["import"]["origins"], &made["import"]["source"]["settings"]["command"]), (&json!([]), &json!("node")));
    test.use_mcp("files", node("server-filesystem", &[files.to_str().unwrap()])).await;
    let mut memory = node("server-memory", &[]);
    memory["env"] = json!({"MEMORY_FILE_PATH": files.join("memory.jsonl")});
    let made = test.use_mcp("memory", memory).await;
    assert_eq!(made["import"]["source"]["settings"]["env"], json!(["MEMORY_FILE_PATH"]), "names are shown, values are not");
    test.use_mcp("time", json!({"command": python("mcp-server-time")})).await;
    test.use_mcp("git", json!({"command": python("mcp-server-git"), "args": ["--repository", files]})).await;

    for (sentence, integration, action) in [
        ("add two numbers with everything", "everything", "get-sum"),
        ("read the text of a file", "files", "read_text_file"),
        ("create entities in the knowledge graph", "memory", "create_entities"),
        ("get the current time in a timezone", "time", "get_current_time"),
        ("show the working tree status of git", "git", "git_status"),
    ] {
        assert_eq!(test.discovered(sentence).await, (integration.to_owned(), action.to_owned()), "{sentence}");
    }

    let sum = test.call_mcp("everything", "get-sum", json!({"a": 2, "b": 40})).await;
    assert!(sum["data"].as_str().unwrap().contains("42"), "{sum}");
    let structured = test.call_mcp("everything", "get-structured-content", json!({"location": "Chicago"})).await;
    assert!(structured["data"]["temperature"].is_number(), "{structured}");
    let image = test.call_mcp("everything", "get-tiny-image", json!({})).await;
    assert!(image["data"].as_array().unwrap().iter().any(|block| block["type"] == "image"), "{image}");
    let read = test.call_mcp("files", "read_text_file", json!({"path": files.join("note.txt")})).await;
    assert!(read["data"].to_string().contains("remember the milk"), "{read}");
    let outside = test.call_mcp("files", "read_text_file", json!({"path": "/etc/passwd"})).await;
    assert!(outside["error"].as_str().unwrap().contains("denied"), "{outside}");
    let entities = json!({"entities": [{"name": "Ann", "entityType": "person", "observations": ["likes tea"]}]});
    test.call_mcp("memory", "create_entities", entities).await;
    let graph = test.call_mcp("memory", "read_graph", json!({})).await;
    assert_eq!(graph["data"]["entities"][0]["name"], "Ann", "{graph}");
    let time = test.call_mcp("time", "get_current_time", json!({"timezone": "Europe/Berlin"})).await;
    assert_eq!(time["data"]["timezone"], "Europe/Berlin", "{time}");
    let status = test.call_mcp("git", "git_status", json!({"repo_path": files})).await;
    assert!(status["data"].as_str().unwrap().contains("note.txt"), "{status}");

    let environment = test.call_mcp("everything", "get-env", json!({})).await;
    let mut names: Vec<&str> = environment["data"].as_object().unwrap().keys().map(String::as_str).collect();
    names.retain(|name| !name.starts_with("__"));
    assert!(names.iter().all(|name| ["PATH", "HOME", "PWD", "SHLVL", "_"].contains(name)), "{names:?}");
    let wrong = test.call("tools.mcp.everything.get-sum.main", json!({"a": "x"})).await;
    assert_eq!(wrong.status, 400, "{}", wrong.text);
    test.call("tools.mcp.everything.gone.main", json!({})).await.expect(404);
    test.yard.close().await;
    until("nothing is left", async || processes(files.to_str().unwrap()).is_empty() && zombies() == 0).await;
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_servers_on_sqlite() {
    servers_from_npm_and_pypi_are_imported_found_and_called(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_servers_on_postgres() {
    servers_from_npm_and_pypi_are_imported_found_and_called(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_serves_every_call_and_is_ended_with_its_import() {
    let test = yard(Database::Sqlite).await;
    let made = test.use_mcp("everything", everything("serves-all")).await;
    until("what was started to be read is gone", async || processes("serves-all").is_empty()).await;
    let calls = (0..40).map(|number| test.call_mcp("everything", "echo", json!({"message": format!("m{number}")})).then(number));
    for (number, answer) in join_all(calls).await {
        assert_eq!(answer["data"], format!("Echo: m{number}"));
    }
    let running = processes("serves-all");
    assert_eq!(running.len(), 1, "{running:?}");
    let count: u32 = if std::env::var("TOOLYARD_SOAK").is_ok() { 10_000 } else { 500 };
    for _ in 0..count / 20 {
        let calls = (0..20).map(|_| test.call_mcp("everything", "echo", json!({"message": "again"})));
        assert!(join_all(calls).await.iter().all(|answer| answer["data"] == "Echo: again"));
    }
    assert_eq!(processes("serves-all"), running, "{count} calls later it is the same process");
    let id = made["import"]["id"].as_str().unwrap();
    assert_eq!(test.delete(&format!("/tools/imports/{id}?force=true")).await.status, 204);
    until("the process ends with its import", async || processes("serves-all").is_empty() && zombies() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_imported_is_served_again_with_its_progress() {
    let test = yard(Database::Sqlite).await;
    test.use_mcp("everything", everything("goes-on")).await;
    let name = "tools__mcp__everything__trigger-long-running-operation__main";
    let params = json!({"name": name, "arguments": {"duration": 2, "steps": 4}, "_meta": {"progressToken": "p"}});
    let (message, headers) = newest("tools/call", &params, &json!({}));
    let reply = test.send(request("/mcp", &test.owner, &headers, &message)).await;
    let told = events(&reply.text);
    let is_step = |event: &&Value| event["method"] == "notifications/progress" && event["params"]["total"].as_f64() == Some(4.0);
    assert!(told.iter().filter(is_step).count() >= 2, "{told:?}");
    let result = &told.last().unwrap()["result"];
    assert!(result["content"][0]["text"].as_str().unwrap().contains("completed"), "{result}");
}

/// A future with a number.
trait Then: Future + Sized {
    async fn then(self, number: u32) -> (u32, Self::Output) {
        (number, self.await)
    }
}

impl<F: Future> Then for F {}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_is_told_at_once_and_started_again() {
    let test = yard(Database::Sqlite).await;
    test.use_mcp("everything", everything("is-killed")).await;
    until("what was started to be read is gone", async || processes("is-killed").is_empty()).await;
    test.call_mcp("everything", "echo", json!({"message": "hi"})).await;
    let first = processes("is-killed")[0];
    let slow = test.call("tools.mcp.everything.trigger-long-running-operation.main", json!({"duration": 30, "steps": 3}));
    let killing = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        kill(first);
        Instant::now()
    };
    let (reply, killed) = tokio::join!(slow, killing);
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
    let detail = reply.detail(424);
    assert!(detail.contains("went away") && detail.contains("signal: 9"), "{detail}");
    assert_eq!(test.call_mcp("everything", "echo", json!({"message": "hi"})).await["data"], "Echo: hi");
    let again = processes("is-killed");
    assert!(again.len() == 1 && again[0] != first, "{again:?}");
    test.yard.close().await;
    assert!(processes("is-killed").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_takes_too_long_is_cancelled() {
    let test = Test::with(Database::Sqlite, |config| {
        config.mcp_commands = "node".to_owned();
        config.request_timeout = Duration::from_secs(4);
    })
    .await;
    test.use_mcp("everything", everything("is-slow")).await;
    until("what was started to be read is gone", async || processes("is-slow").is_empty()).await;
    test.call_mcp("everything", "echo", json!({"message": "hi"})).await;
    let running = processes("is-slow");
    let started = Instant::now();
    let detail =
        test.call("tools.mcp.everything.trigger-long-running-operation.main", json!({"duration": 30, "steps": 3})).await.detail(424);
    assert!(detail.contains("no answer within 2") && started.elapsed() < Duration::from_secs(4), "{detail} {:?}", started.elapsed());
    assert_eq!(test.call_mcp("everything", "echo", json!({"message": "hi"})).await["data"], "Echo: hi");
    assert_eq!(processes("is-slow"), running, "the server goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_the_web_is_used_and_found_again() {
    let test = Test::start(Database::Sqlite).await;
    let server = Everything::start(free_port()).await;
    let made = test.use_mcp("web", json!({"url": server.url, "headers": {"X-Team": "blue-team-secret"}})).await;
    assert_eq!(made["import"]["origins"], json!([format!("http://127.0.0.1:{}", server.port)]));
    assert!(!made.to_string().contains("blue-team-secret"));
    let calls = (0..20).map(|number| test.call_mcp("web", "echo", json!({"message": format!("m{number}")})).then(number));
    for (number, answer) in join_all(calls).await {
        assert_eq!(answer["data"], format!("Echo: m{number}"));
    }
    let mut server = server;
    let slow = test.call("tools.mcp.web.trigger-long-running-operation.main", json!({"duration": 30, "steps": 3}));
    let killing = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.child.kill().await.unwrap();
        Instant::now()
    };
    let (reply, killed) = tokio::join!(slow, killing);
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
    assert!(reply.detail(424).contains("could not be reached"));
    assert!(test.call("tools.mcp.web.echo.main", json!({"message": "hi"})).await.detail(424).contains("could not be reached"));
    let _again = Everything::start(server.port).await;
    assert_eq!(
        test.call_mcp("web", "echo", json!({"message": "hi"})).await["data"],
        "Echo: hi",
        "a server that forgot us is greeted again"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_imported_says_why() {
    let test = yard(Database::Sqlite).await;
    let missing = repository().join("none.js");
    for (import, status, words) in [
        (json!({}), 422, "either `url`"),
        (json!({"url": "https://example.com", "command": "node"}), 422, "either `url`"),
        (json!({"url": "https://example.com", "env": {"A": "b"}}), 422, "either `url`"),
        (json!({"command": "node", "headers": {"A": "b"}}), 422, "either `url`"),
        (json!({"command": "bash", "args": ["-c", "id"]}), 422, "`bash` is not a program that projects may run here"),
        (json!({"command": "node", "env": {"A=B": "c"}}), 422, "variable"),
        (json!({"command": "node", "env": {"NODE_OPTIONS": "--require=/tmp/x"}}), 422, "`NODE_OPTIONS`"),
        (json!({"command": "node", "colour": 1}), 422, "colour"),
        (json!({"command": "node", "args": [missing]}), 424, "went away"),
        (json!({"command": "node", "args": ["-e", "console.log('hello'); process.exit(3)"]}), 424, "exit status: 3"),
        (json!({"url": "not an address"}), 422, "not a web address"),
        (json!({"url": "https://10.0.0.1/mcp"}), 424, "blocked"),
        (json!({"url": "http://127.0.0.1:1/mcp"}), 424, "could not be reached"),
        (json!({"url": "https://user:pass@example.com/mcp"}), 422, "user name"),
        (json!({"url": "https://example.com/mcp", "headers": {"Mcp-Session-Id": "x"}}), 422, "set by the protocol"),
    ] {
        let reply = test.post("/tools/imports/mcp", json!({"import": import.clone()})).await;
        assert_eq!(reply.status.as_u16(), status, "{import}: {}", reply.text);
        assert!(reply.text.contains(words), "{import}: {}", reply.text);
    }
    assert_eq!(test.get("/tools/imports").await.expect(200)["count"], 0);
}

/// A server of our own making, for what the others do not do. What it offers stands in a file.
fn changing(dir: &Path) -> Value {
    json!({"command": "node", "args": [repository().join("tests/npm/changing.mjs").canonicalize().unwrap(), dir.join("tools.json")]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_changes_is_followed() {
    let test = yard(Database::Sqlite).await;
    let dir = tempfile::tempdir().unwrap();
    let offer = |names: &[&str]| std::fs::write(dir.path().join("tools.json"), json!(names).to_string()).unwrap();
    offer(&["one", "two"]);
    test.use_mcp("changing", changing(dir.path())).await;
    assert_eq!(test.call_mcp("changing", "one", json!({})).await["data"], "one");
    let mark = dir.path().display().to_string();
    until("what was started to be read is gone", async || processes(&mark).len() == 1).await;
    let running = processes(&mark);
    offer(&["two", "three"]);
    let actions = "/tools/catalog/providers/mcp/integrations/changing/actions";
    until("the new list is read", async || {
        let listed = test.get(actions).await.expect(200);
        let keys: Vec<String> =
            listed["actions"].as_array().unwrap().iter().map(|action| action["key"].as_str().unwrap().to_owned()).collect();
        keys == ["two", "three"]
    })
    .await;
    assert_eq!(test.call_mcp("changing", "three", json!({})).await["data"], "three");
    test.call("tools.mcp.changing.one.main", json!({})).await.expect(404);
    assert_eq!(processes(&mark), running, "the server was not disturbed");
    test.yard.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_person_lets_a_server_promise_more() {
    let test = yard(Database::Sqlite).await;
    let dir = tempfile::tempdir().unwrap();
    let offer = |tools: Value| std::fs::write(dir.path().join("tools.json"), tools.to_string()).unwrap();
    offer(json!(["wipe"]));
    let made = test.use_mcp("changing", changing(dir.path())).await;
    test.call_mcp("changing", "wipe", json!({})).await;
    offer(json!([{"name": "wipe", "annotations": {"readOnlyHint": true}}, "more"]));
    let hints = async || {
        let listed = test.get("/tools/catalog/providers/mcp/integrations/changing/actions").await.expect(200);
        let actions = listed["actions"].as_array().unwrap().clone();
        (actions.len(), actions[0]["read_only"] == true, actions[0]["destructive"] == true)
    };
    until("the new list is read", async || hints().await.0 == 2).await;
    assert_eq!(hints().await, (2, false, true));
    let id = made["import"]["id"].as_str().unwrap();
    let refreshed = test.post(&format!("/tools/imports/{id}/refresh"), json!({})).await.expect(200);
    assert_eq!(refreshed["difference"]["changed"], json!(["wipe"]), "{refreshed}");
    assert_eq!(hints().await, (2, true, false));
    test.yard.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_misbehaves_hurts_only_the_call() {
    let test = yard(Database::Sqlite).await;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tools.json"), json!(["one", "huge", "many", "die"]).to_string()).unwrap();
    let mut import = changing(dir.path());
    import["env"] = json!({"VERSIONS": "2026-07-28,2025-11-25"});
    test.use_mcp("odd", import).await;
    let (huge, one) = tokio::join!(test.call("tools.mcp.odd.huge.main", json!({})), test.call_mcp("odd", "one", json!({})));
    assert!(huge.detail(424).contains("more than 8 MiB"));
    assert_eq!(one["data"], "one", "the stateless revision is spoken, and others are not disturbed");
    let (many, one) = tokio::join!(test.call("tools.mcp.odd.many.main", json!({})), test.call_mcp("odd", "one", json!({})));
    let many = many.detail(424);
    assert!(many.contains("too many values") && many.contains("smaller page"), "{many}");
    assert_eq!(one["data"], "one", "an answer that is not read is told at once to whoever waits for it");
    let died = test.call("tools.mcp.odd.die.main", json!({})).await.detail(424);
    assert!(died.contains("exit status: 7"), "{died}");
    assert_eq!(test.call_mcp("odd", "one", json!({})).await["data"], "one");
    test.call("tools.mcp.odd.die.main", json!({})).await.detail(424);
    let paused = test.call("tools.mcp.odd.one.main", json!({})).await.detail(424);
    assert!(paused.contains("next try in"), "one that ends again and again is given a rest: {paused}");
    test.yard.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guarded_server_is_connected_by_oauth() {
    let test = Test::start(Database::Sqlite).await;
    let oidc = Oidc::start(&test.yard.connections.callback_url(), 600).await;
    let url = format!("{}/mcp", oidc.issuer);
    let made = test.import_mcp("guarded", json!({"url": url})).await;
    assert_eq!((&made["import"]["actions_count"], &made["import"]["origins"]), (&json!(0), &json!([oidc.issuer])), "{made}");
    assert!(made["warnings"].to_string().contains("once the first is connected"), "{made}");
    let apps = test.get("/tools/oauth-apps").await.expect(200);
    assert_eq!(apps["oauth_apps"][0]["integration_key"], "guarded", "a client was registered: {apps}");
    let id = made["import"]["id"].as_str().unwrap().to_owned();
    assert!(test.post(&format!("/tools/imports/{id}/refresh"), json!({})).await.detail(424).contains("connect an account first"));

    let started = test.connect_mcp("guarded", json!({})).await;
    let authorize = started["data"]["redirect_url"].as_str().unwrap();
    assert!(authorize.contains("code_challenge_method=S256") && authorize.contains("resource=http"), "{authorize}");
    let back = oidc.browse(authorize, "ann", true).await;
    let silent: Vec<String> =
        back.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("iss=")).map(str::to_owned).collect();
    let page = test.request(Method::GET, &format!("{}?{}", back.path(), silent.join("&")), None, None).await;
    assert!(page.status == 400 && page.text.contains("not from the provider"), "its metadata promises `iss`: {}", page.text);
    let page = test.request(Method::GET, &format!("{}?{}", back.path(), back.query().unwrap_or_default()), None, None).await;
    assert_eq!(page.status, 200, "{}", page.text);
    // Not by the import's row, which is written a moment before the catalog lists what it says.
    let actions = "/tools/catalog/providers/mcp/integrations/guarded/actions";
    until("its tools are read", async || test.get(actions).await.expect(200)["count"] == 1).await;
    assert_eq!(test.get("/tools/imports").await.expect(200)["imports"][0]["actions_count"], 1);
    assert_eq!(test.call_mcp("guarded", "whoami", json!({})).await["data"], "ann");

    oidc.control("expire-access-tokens").await;
    assert_eq!(test.call_mcp("guarded", "whoami", json!({})).await["data"], "ann", "renewed after the server refused the old token");
    assert_eq!(oidc.counters().await["refreshes"], 1);
    let again = test.post(&format!("/tools/imports/{id}/refresh"), json!({})).await.expect(200);
    assert_eq!(again["import"]["actions_count"], 1, "read with the account: {again}");
    assert_eq!(test.get("/tools/oauth-apps").await.expect(200)["count"], 1, "and not registered again");

    let wrong = json!({"slug": "typed", "provider_key": "mcp", "integration_key": "guarded",
        "data": {"auth_scheme": "bearer", "credentials": {"token": "no-such-token"}}});
    assert_eq!(test.post("/tools/connections", json!({"connection": wrong})).await.status, 422);
}
