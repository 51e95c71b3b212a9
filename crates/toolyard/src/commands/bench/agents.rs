//! `toolyard bench agents`: what the loop adds to a model's own time, many runs at once, and what runs cost that wait for people.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use axum::extract::Path;
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Json, Router};
use clap::Args;
use egress::{Egress, Request};
use http::Method;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::report::{Report, Rounds};
use super::{Server, client, millis, percentile, send, upstream};

const TURNS: usize = 20;
const ECHO: &str = "tools__native__bench__ECHO__main";

#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    /// Runs at the same time
    #[arg(long, default_value_t = 200)]
    at_once: usize,
    /// Runs that wait for a person
    #[arg(long, default_value_t = 10_000)]
    parked: usize,
    /// How long the model thinks in each turn of the runs at the same time, in milliseconds
    #[arg(long, default_value_t = 100)]
    think: u64,
    #[command(flatten)]
    rounds: Rounds,
}

/// A model that calls a tool in each turn but the last, as its address says: how many turns, how long it thinks, which tool.
async fn model() -> anyhow::Result<String> {
    async fn answer(Path((turns, think, tool)): Path<(usize, u64, String)>, Json(body): Json<Value>) -> impl IntoResponse {
        tokio::time::sleep(Duration::from_millis(think)).await;
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let said = messages.iter().filter(|message| message["role"] == "assistant").count();
        let delta = if said + 1 < turns {
            let asked = messages.iter().rfind(|message| message["role"] == "user").map(|message| message["content"].clone());
            let arguments = json!({"id": said, "text": asked}).to_string();
            let call =
                json!({"index": 0, "id": format!("call_{said}"), "type": "function", "function": {"name": tool, "arguments": arguments}});
            json!({"role": "assistant", "tool_calls": [call]})
        } else {
            json!({"role": "assistant", "content": "That is all."})
        };
        let finish = if said + 1 < turns { "tool_calls" } else { "stop" };
        let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
        let chunk =
            |choices: Value, usage: Value| json!({"id": "c", "object": "chat.completion.chunk", "choices": choices, "usage": usage});
        let parts = [
            chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null),
            chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), Value::Null),
            chunk(json!([]), usage),
        ];
        let stream: String = parts.iter().map(|part| format!("data: {part}\n\n")).collect();
        ([(CONTENT_TYPE, "text/event-stream")], format!("{stream}data: [DONE]\n\n"))
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = Router::new().route("/{turns}/{think}/{tool}/chat/completions", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

async fn make(server: &Server, client: &Egress, slug: &str, url: String) -> anyhow::Result<()> {
    let tool = json!({"type": "gateway", "provider": "native", "integration": "bench", "action": "ECHO", "connection": "main"});
    let data = json!({"kind": "agent", "model": {"api": "openai_chat", "url": url, "name": "scripted"}, "instructions": "Go on.",
        "tools": [tool], "limits": {"turns": 100, "tool_calls": 100}});
    send(client, server.post("/simple/workflows/", &json!({"workflow": {"slug": slug, "name": slug, "data": data}}))?).await?;
    Ok(())
}

fn invoke(server: &Server, slug: &str, message: &str) -> anyhow::Result<Request> {
    let body = json!({"references": {"workflow": {"slug": slug}}, "data": {"inputs": {"message": message}}});
    Ok(server.post("/workflows/invoke", &body)?.timeout(Duration::from_mins(2)))
}

pub(super) async fn run(args: AgentsArgs) -> anyhow::Result<()> {
    let (model, upstream, client) = (model().await?, upstream().await?, client()?);
    let mut report = Report::default();
    for _ in 0..args.rounds.repeat {
        let server = Server::start_on(args.rounds.database_url.as_deref(), |_| Ok(())).await?;
        let connection = json!({"slug": "main", "provider_key": "native", "integration_key": "bench",
            "data": {"auth_scheme": "api_key", "credentials": {"base": upstream, "api_key": "bench-key-123"}}});
        send(&client, server.post("/tools/connections", &json!({"connection": connection}))?).await?;
        turns(&server, &client, &model, &mut report).await?;
        at_once(&server, &client, &model, &args, &mut report).await?;
        parked(&server, &client, &model, &args, &mut report).await?;
    }
    report.print("agents", &args.rounds);
    Ok(())
}

/// What a turn takes beside the model: with a call that ends in the loop itself, and with one that a service answers at once.
async fn turns(server: &Server, client: &Egress, model: &str, report: &mut Report) -> anyhow::Result<()> {
    const RUNS: usize = 40;
    let direct = Request::new(Method::POST, format!("{model}/1/0/none/chat/completions").parse()?)
        .header(CONTENT_TYPE, http::HeaderValue::from_static("application/json"))
        .body(json!({"model": "scripted", "messages": [{"role": "user", "content": "Begin."}]}).to_string());
    let mut times = super::one_at_a_time(client, &[&direct], 500).await?.remove(0);
    let asked = percentile(&mut times, 0.5);
    for (slug, tool, name, median, worst) in [
        ("loop", "none", "a turn", "turn_added_p50_ms", "turn_added_p99_ms"),
        ("calling", ECHO, "a turn with a call", "turn_with_call_added_p50_ms", "turn_with_call_added_p99_ms"),
    ] {
        make(server, client, slug, format!("{model}/{TURNS}/0/{tool}")).await?;
        let request = invoke(server, slug, "hello")?;
        let mut each = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            let started = Instant::now();
            let answer = send(client, request.clone()).await?;
            ensure!(answer["data"]["outputs"]["text"] == "That is all.", "a run did not end as it should: {answer}");
            each.push(started.elapsed() / u32::try_from(TURNS)?);
        }
        let (p50, p99) = (percentile(&mut each, 0.5), percentile(&mut each, 0.99));
        report.add(median, format!("{name}, beside the model, p50"), "ms", millis(p50.saturating_sub(asked)));
        report.add(worst, format!("{name}, beside the model, p99"), "ms", millis(p99.saturating_sub(asked)));
    }
    Ok(())
}

/// Many runs at once, each of ten turns with a call.
async fn at_once(server: &Server, client: &Egress, model: &str, args: &AgentsArgs, report: &mut Report) -> anyhow::Result<()> {
    const EACH: usize = 10;
    make(server, client, "many", format!("{model}/{EACH}/{}/{ECHO}", args.think)).await?;
    let request = invoke(server, "many", "hello")?;
    let started = Instant::now();
    let tasks: Vec<_> = (0..args.at_once)
        .map(|_| {
            tokio::spawn({
                let (client, request) = (client.clone(), request.clone());
                async move {
                    let answer = send(&client, request).await?;
                    ensure!(answer["data"]["outputs"]["text"] == "That is all.", "a run did not end as it should: {answer}");
                    Ok(started.elapsed())
                }
            })
        })
        .collect();
    let mut times = Vec::with_capacity(tasks.len());
    for task in tasks {
        times.push(task.await??);
    }
    let whole = started.elapsed();
    let name = format!("{} runs of {EACH} turns at once", args.at_once);
    report.add("at_once_seconds", format!("{name}, all of them"), "s", whole.as_secs_f64());
    report.add("at_once_p50_seconds", format!("{name}, p50"), "s", percentile(&mut times, 0.5).as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "a few thousand turns")]
    let rate = (args.at_once * EACH) as f64 / whole.as_secs_f64();
    report.add("at_once_turns_per_second", format!("{name}, turns"), "turns/s", rate);
    report.add("at_once_mib", "memory after them", "MiB", server.memory()?);
    Ok(())
}

/// Runs that wait for a person, and the memory of the server before and after.
async fn parked(server: &Server, client: &Egress, model: &str, args: &AgentsArgs, report: &mut Report) -> anyhow::Result<()> {
    const CALLERS: usize = 16;
    let rules = json!({"permissions": {"rules": [{"pattern": "tools.native.bench.*", "permission": "ask"}]}});
    let policy = Request { method: Method::PUT, ..server.post("/tools/permissions", &rules)? };
    send(client, policy).await?;
    make(server, client, "waiting", format!("{model}/2/0/{ECHO}")).await?;
    let requests = (0..args.parked).map(|number| invoke(server, "waiting", &number.to_string())).collect::<anyhow::Result<Vec<_>>>()?;
    let requests = Arc::new(requests);
    let before = server.memory()?;
    let (next, started) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let most = args.parked;
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            tokio::spawn({
                let (client, requests, next) = (client.clone(), requests.clone(), next.clone());
                async move {
                    while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let answer = client.send(request.clone()).await?;
                        ensure!(answer.status == 202, "a run does not wait: {}", String::from_utf8_lossy(&answer.body));
                    }
                    Ok(())
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    let took = started.elapsed();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = server.memory()?;
    report.add("parked_before_mib", format!("memory before {most} runs wait"), "MiB", before);
    report.add("parked_after_mib", format!("memory while {most} runs wait"), "MiB", after);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand runs")]
    let each = (after - before) * 1024.0 / most.max(1) as f64;
    report.add("parked_kib_each", "memory of a run that waits", "KiB", each);
    report.add("parked_seconds", format!("until {most} runs wait"), "s", took.as_secs_f64());
    Ok(())
}
