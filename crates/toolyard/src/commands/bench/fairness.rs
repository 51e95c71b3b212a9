//! One project does its worst on each door in turn, and another is asked how long it waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use axum::Json;
use egress::{Egress, Request};
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::{Server, client, millis, percentile, print, send};

/// What is promised: how many times longer than in quiet, and how long at all.
const MOST_TIMES: f64 = 3.0;
const MOST: Duration = Duration::from_millis(50);
const LARGE: usize = 900_000;
const RUNS: usize = 60;

/// A place where a caller decides how much work there is.
struct Door {
    name: &'static str,
    worst: Request,
}

pub(super) async fn run(length: Duration, concurrency: usize, only: Option<&str>) -> anyhow::Result<()> {
    let standing_back = threads()?;
    let upstream = standing_back.spawn(upstream()).await??;
    let server = Server::start().await?;
    let client = client()?;
    let quiet_one = second_project(&server, &client).await?;
    let probe = probe(&server, &client, &quiet_one).await?;
    let doors = doors(&server, &client, &upstream).await?;
    drop(watch(&client, &probe, length / 2).await?);
    let mut quiet = watch(&client, &probe, length).await?;
    let (quiet_p50, quiet_p99) = (percentile(&mut quiet, 0.5), percentile(&mut quiet, 0.99));
    print::out(&format!("quiet                       p50 {:>7.2} ms, p99 {:>7.2} ms\n", millis(quiet_p50), millis(quiet_p99)));
    let mut kept = true;
    for door in doors.into_iter().filter(|door| only.is_none_or(|only| door.name.contains(only))) {
        let load = Load::start(&door.worst, concurrency)?;
        let times = watch(&client, &probe, length).await;
        let answers = load.stop().await;
        let mut times = times?;
        let (p50, p99) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
        let ratio = p99.as_secs_f64() / quiet_p99.as_secs_f64();
        let fair = ratio < MOST_TIMES && p99 < MOST;
        kept &= fair;
        print::out(&format!(
            "{:<27} p50 {:>7.2} ms, p99 {:>7.2} ms, {ratio:>5.1} times {}; {answers}, {:.0} MiB\n",
            door.name,
            millis(p50),
            millis(p99),
            if fair { "  " } else { "!!" },
            server.memory()?
        ));
    }
    standing_back.shutdown_background();
    print::out(if kept { "every door kept its promise\n" } else { "some doors (!!) did not keep their promise\n" });
    Ok(())
}

/// How long each of a row of small requests takes.
async fn watch(client: &Egress, probe: &Request, length: Duration) -> anyhow::Result<Vec<Duration>> {
    let (started, mut times) = (Instant::now(), Vec::new());
    while started.elapsed() < length {
        let asked = Instant::now();
        let response = client.send(probe.clone()).await?;
        ensure!(response.status == 200, "the quiet project was refused: {}", String::from_utf8_lossy(&response.body));
        times.push(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(times)
}

/// The worst request, again and again, and what became of it.
struct Load {
    tasks: Vec<tokio::task::JoinHandle<()>>,
    answers: Arc<Mutex<BTreeMap<String, usize>>>,
    threads: Runtime,
}

impl Load {
    fn start(worst: &Request, concurrency: usize) -> anyhow::Result<Self> {
        let threads = threads()?;
        let (answers, client): (Arc<Mutex<BTreeMap<String, usize>>>, _) = (Arc::default(), client()?);
        let begin = |_| {
            let (client, worst, answers) = (client.clone(), worst.clone(), answers.clone());
            threads.spawn(async move {
                loop {
                    let answer = client.send(worst.clone()).await;
                    let answer = answer.map_or_else(|error| error.code().to_owned(), |response| response.status.as_u16().to_string());
                    *answers.lock().unwrap_or_else(PoisonError::into_inner).entry(answer).or_default() += 1;
                }
            })
        };
        Ok(Self { tasks: (0..concurrency).map(begin).collect(), answers, threads })
    }

    /// Ends it, and says how often it was answered with what.
    async fn stop(self) -> String {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
        for task in self.tasks {
            let _ = task.await;
        }
        self.threads.shutdown_background();
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answers: Vec<String> = answers.iter().map(|(answer, count)| format!("{count} × {answer}")).collect();
        if answers.is_empty() { "no answer yet".to_owned() } else { answers.join(", ") }
    }
}

/// Threads that stand back behind those that watch, so that what is measured is the server alone.
fn threads() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).on_thread_start(stand_back).enable_all().build()
}

fn stand_back() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(10);
}

/// The key of another project.
async fn second_project(server: &Server, client: &Egress) -> anyhow::Result<HeaderValue> {
    let operator = std::fs::read_to_string(server.dir.join("data/operator.key"))?;
    let account = json!({"accounts": {"quiet": {"user": {"email": "quiet@example.com"}, "options": {"create_api_keys": true, "return_api_keys": true}}}});
    let mut request = server.post("/admin/simple/accounts", &account)?;
    request.headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Access {}", operator.trim()))?);
    let made = send(client, request).await?;
    let key = made["accounts"]["quiet"]["api_keys"]["key"].as_str().context("no key for the second project")?;
    Ok(HeaderValue::from_str(&format!("ApiKey {key}"))?)
}

/// A small run of the quiet project: a key, a body, reads, and a row that is written.
async fn probe(server: &Server, client: &Egress, key: &HeaderValue) -> anyhow::Result<Request> {
    let of_quiet = |path: &str, body: &Value| {
        let mut request = server.post(path, body)?;
        request.headers.insert(AUTHORIZATION, key.clone());
        anyhow::Ok(request)
    };
    let workflow = json!({"workflow": {"slug": "small", "data": {"kind": "echo", "schemas": {"inputs": {"type": "object"}}}}});
    send(client, of_quiet("/simple/workflows", &workflow)?).await?;
    of_quiet("/workflows/invoke", &json!({"references": {"workflow": {"slug": "small"}}, "data": {"inputs": {"a": 1}}}))
}

async fn doors(server: &Server, client: &Egress, upstream: &str) -> anyhow::Result<Vec<Door>> {
    let post = |name: &'static str, path: &str, body: &Value| {
        anyhow::Ok(Door { name, worst: server.post(path, body)?.timeout(Duration::from_mins(1)) })
    };
    let make = async |slug: &str, data: Value| {
        send(client, server.post("/simple/workflows", &json!({"workflow": {"slug": slug, "data": data}}))?).await
    };
    let invoke = |slug: &str, inputs: Value| json!({"references": {"workflow": {"slug": slug}}, "data": {"inputs": inputs}});
    let preview = |fields: Value, event: Value| json!({"inputs_fields": fields, "event": event});

    let twice = json!({"items": {"$ref": "#/$defs/a"}});
    let schema =
        json!({"type": "object", "$defs": {"a": {"type": "array", "allOf": [twice, twice]}}, "properties": {"x": {"$ref": "#/$defs/a"}}});
    make("tree", json!({"kind": "echo", "schemas": {"inputs": schema}})).await?;
    let pattern = json!({"type": "object", "properties": {"x": {"pattern": "(?=a)(a+)+b"}}});
    make("pattern", json!({"kind": "echo", "schemas": {"inputs": pattern}})).await?;
    make("echo", json!({"kind": "echo"})).await?;
    let changed = make("changed", json!({"kind": "echo", "parameters": {"texts": vec!["x".repeat(900); 900]}})).await?;
    for _ in 0..RUNS {
        send(client, server.post("/workflows/invoke", &invoke("echo", json!({"text": "x".repeat(LARGE)})))?).await?;
    }
    let connection = json!({"slug": "main", "provider_key": "native", "integration_key": "bench",
        "data": {"auth_scheme": "api_key", "credentials": {"base": upstream, "api_key": "bench-key-123"}}});
    send(client, server.post("/tools/connections", &json!({"connection": connection}))?).await?;
    let hook = json!({"subscription": {"name": "hook", "data": {"event_key": "WEBHOOK_RECEIVED", "references": {"workflow": {"slug": "echo"}},
        "inputs_fields": {"x": "$..*..[?@.a==1]"}}}});
    let hook = send(client, server.post("/triggers/subscriptions", &hook)?).await?;
    let hook = hook["subscription"]["url"]
        .as_str()
        .and_then(|url| url.split_once("/triggers/"))
        .context("the webhook has no address")?
        .1
        .to_owned();

    let nested = |depth: usize| (0..depth).fold(json!([]), |inner, _| json!([inner]));
    let delta = json!({"set": {"parameters": {"texts": vec!["y".repeat(900); 900]}}});
    let list = Request::new(Method::GET, format!("{}/workflows/runs?limit=500", server.url).parse()?)
        .header(AUTHORIZATION, server.key.clone())
        .timeout(Duration::from_mins(1));
    let event = Request::new(Method::POST, format!("{}/triggers/{hook}", server.url).parse()?)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(json!({"list": vec![json!({"a": 1}); 60_000]}).to_string());
    send(client, server.post("/tools/imports/mcp", &json!({"import": {"key": "rows", "url": format!("{upstream}/mcp")}}))?).await?;
    let rows = json!({"slug": "rows", "provider_key": "mcp", "integration_key": "rows", "data": {"auth_scheme": "none"}});
    send(client, server.post("/tools/connections", &json!({"connection": rows}))?).await?;
    let call = |name: &str, arguments: Value| json!({"data": {"id": "bench", "type": "function", "function": {"name": name, "arguments": arguments}}});
    let sentence = "create an invoice for the customer and share the quarterly report with the team when it is paid ";
    let sentences: Vec<String> = (0..50).map(|number| format!("{number} {}", sentence.repeat(205))).collect();
    Ok(vec![
        post(
            "JSONPath",
            "/triggers/preview",
            &preview(json!({"x": vec!["$..*..[?@.a==1]"; 16]}), json!({"list": vec![json!([1]); 100_000]})),
        )?,
        post(
            "templates",
            "/triggers/preview",
            &preview(json!({"x": vec!["{{ event | tojson | length }}"; 250]}), json!({"text": "x".repeat(LARGE)})),
        )?,
        post("schema", "/workflows/invoke", &invoke("tree", json!({"x": nested(16)})))?,
        post("regular expression", "/workflows/invoke", &invoke("pattern", json!({"x": "a".repeat(1900)})))?,
        post("large body", "/triggers/preview", &preview(json!("$.event.event_id"), json!(vec![1; LARGE / 2])))?,
        post(
            "change of a document",
            "/workflows/revisions/commit",
            &json!({"workflow_revision": {"workflow_variant_id": changed["workflow"]["variant_id"], "delta": delta}}),
        )?,
        post("discovery", "/tools/discover", &json!({"use_cases": sentences}))?,
        post("answer of 8 MB", "/tools/call", &call("tools.native.bench.ECHO.main", json!({"id": 7})))?,
        post("answer of an MCP server", "/tools/call", &call("tools.mcp.rows.ROWS.rows", json!({})))?,
        Door { name: "list of large rows", worst: list.clone() },
        Door { name: "the same, compressed", worst: list.header(ACCEPT_ENCODING, HeaderValue::from_static("gzip")) },
        Door { name: "large events", worst: event },
    ])
}

/// A service that answers with 8 MB of rows, and at `/mcp` an MCP server whose one tool does.
async fn upstream() -> anyhow::Result<String> {
    let row = json!({"id": 12345, "name": "a thing with a name", "tags": ["one", "two"], "text": "x".repeat(100)});
    let rows = json!(vec![row; 48_000]).to_string();
    // The rows as text within text, which has half as many again.
    let result = json!({"content": [{"type": "text", "text": &rows[..rows.len() / 2]}]}).to_string();
    let body = rows.clone();
    let answer = axum::routing::any(move || {
        let body = body.clone();
        async move { ([(CONTENT_TYPE, "application/json")], body) }
    });
    let speak = axum::routing::post(move |Json(message): Json<Value>| {
        let answer = mcp_answer(&message, &result);
        async move {
            let status = if answer.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
            (status, [(CONTENT_TYPE, "application/json")], answer.unwrap_or_default())
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().route("/mcp", speak).fallback(answer)).await });
    Ok(url)
}

/// What an MCP server with one tool says to a message; nothing to one that wants no answer.
fn mcp_answer(message: &Value, result: &str) -> Option<String> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "rows", "version": "1"}})
        .to_string(),
        "tools/list" => {
            json!({"tools": [{"name": "ROWS", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}).to_string()
        }
        "tools/call" => result.to_owned(),
        _ => return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}).to_string()),
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}
