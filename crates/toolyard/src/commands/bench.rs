//! `toolyard bench`: figures that anyone can see for themselves. Each run but `retrieval` starts a server of its own in a temporary directory.

mod agents;
mod dashboard;
mod end_users;
mod fairness;
mod histories;
mod report;
mod retrieval;
mod toolset;
mod triggers;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Subcommand;
use egress::{Allow, Egress, Request};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use self::report::{Report, Rounds};
use super::print;

const MANIFEST: &str = r#"
key: bench
name: Bench
description: A local service that answers at once.
categories: [data]
base_url: "{connection.base}"
auth:
  - scheme: api_key
    fields:
      base: {label: Base, secret: false, pattern: "http://127\\.0\\.0\\.1:[0-9]+"}
      api_key: {label: Key}
    send: {headers: {Authorization: "Bearer {connection.api_key}"}}
actions:
  - key: ECHO
    name: Echo
    description: Answers with a small document at once.
    use_cases: [answer me at once, measure a call, see how fast it is]
    request: POST /echo/{id}
    params:
      id: {type: integer, required: true, description: Any number}
      text: {type: string, description: Any text}
      labels: {type: array, items: {type: string}, description: Any labels}
"#;

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// What a model's turn takes beside the model, runs of agents at the same time, and runs that wait for people
    Agents(agents::AgentsArgs),
    /// Memory of an idle server and the time to answer /health
    Idle(Rounds),
    /// A call through Toolyard beside the same call made directly, and how many of them a second
    Calls {
        /// How long to measure each rate
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Calls at the same time
        #[arg(long, default_value_t = 32)]
        concurrency: usize,
        /// Give so many end users an account each, and measure calls for them too
        #[arg(long, default_value_t = 0, value_name = "COUNT")]
        end_users: usize,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// Pages of the dashboard over a hundred thousand calls and ten thousand deliveries
    Dashboard(dashboard::DashboardArgs),
    /// How long a project waits while another does its worst, door by door
    Fairness {
        /// How long to measure each door
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Requests of the other project at the same time
        #[arg(long, default_value_t = 8)]
        concurrency: usize,
        /// Only the doors whose name holds this
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
    },
    /// The walks of a dashboard over ten thousand revisions of workflows
    Histories(histories::HistoriesArgs),
    /// An agent's fifty tools resolved for a runner and for a model
    Resolve,
    /// How well and how fast search finds the right tools for judged queries
    Retrieval {
        /// A folder with `tools.jsonl`, `queries.jsonl` and `qrels.tsv`, or one of such folders
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// Without the sentence model
        #[arg(long)]
        words_only: bool,
        /// Also measure the time with so many tools: those of all sets, and as many more like them; 0 for none
        #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "25000,100000")]
        tools: Vec<usize>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// The twenty tools that fit a prompt, out of an agent's five hundred
    Toolset,
    /// Events a second, the time from an event to its run, the clock over many schedules, and memory
    Triggers(triggers::TriggersArgs),
}

pub(super) async fn run(command: BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Agents(args) => Box::pin(agents::run(args)).await,
        BenchCommand::Idle(rounds) => idle(&rounds).await,
        BenchCommand::Calls { seconds, concurrency, end_users, rounds } => {
            calls(Duration::from_secs(seconds), concurrency, end_users, &rounds).await
        }
        BenchCommand::Dashboard(args) => Box::pin(dashboard::run(args)).await,
        BenchCommand::Fairness { seconds, concurrency, only } => {
            fairness::run(Duration::from_secs(seconds), concurrency, only.as_deref()).await
        }
        BenchCommand::Histories(args) => histories::run(args).await,
        BenchCommand::Resolve => resolve().await,
        BenchCommand::Retrieval { data, words_only, tools, json } => {
            retrieval::run(&retrieval::Wanted { folder: &data, words_only, tools: &tools, json })
        }
        BenchCommand::Toolset => toolset::run().await,
        BenchCommand::Triggers(args) => Box::pin(triggers::run(args)).await,
    }
}

/// A server in a directory of its own that ends with this value.
struct Server {
    child: Child,
    url: String,
    key: HeaderValue,
    dir: std::path::PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Server {
    async fn start() -> anyhow::Result<Self> {
        Self::start_on(None, |_| Ok(())).await
    }

    /// The same on a database of the caller's, with more integrations.
    async fn start_on(database: Option<&str>, more: impl FnOnce(&Path) -> std::io::Result<()>) -> anyhow::Result<Self> {
        let dir = std::env::temp_dir().join(format!("toolyard-bench-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("integrations"))?;
        more(&dir.join("integrations"))?;
        std::fs::write(dir.join("integrations/bench.yaml"), MANIFEST)?;
        let mut command = Command::new(std::env::current_exe()?);
        // Nothing of the caller's settings: a benchmark must not touch a database that is in use.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLYARD_")) {
            command.env_remove(name);
        }
        let mut child = command
            .current_dir(&dir)
            .args(["serve", "--listen", "127.0.0.1:0", "--egress-allow", "127.0.0.1", "--log", "warn"])
            .arg("--data-dir")
            .arg(dir.join("data"))
            .arg("--integrations-dir")
            .arg(dir.join("integrations"))
            .args(database.iter().flat_map(|database| ["--database-url", *database]))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let first = lines.next_line().await?.context("the server did not start")?;
        let url = first.rsplit(' ').next().unwrap_or_default().to_owned();
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let key = std::fs::read_to_string(dir.join("data/owner.key"))?;
        let key = HeaderValue::from_str(&format!("ApiKey {}", key.trim()))?;
        Ok(Self { child, url, key, dir })
    }

    /// Resident memory in MiB.
    fn memory(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().context("the server is gone")?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }

    fn post(&self, path: &str, body: &Value) -> anyhow::Result<Request> {
        let request = Request::new(Method::POST, format!("{}{path}", self.url).parse()?);
        Ok(request
            .header(AUTHORIZATION, self.key.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body.to_string()))
    }
}

/// Sends a request that has to succeed.
async fn send(client: &Egress, request: Request) -> anyhow::Result<Value> {
    let response = client.send(request).await?;
    ensure!(response.status == 200, "a request failed: {}", String::from_utf8_lossy(&response.body));
    Ok(serde_json::from_slice(&response.body)?)
}

fn client() -> anyhow::Result<Egress> {
    let allow: Allow = "127.0.0.1".parse()?;
    Ok(Egress::new(egress::Config { allow, ..egress::Config::default() })?)
}

/// The value that this share of the sorted times stays below.
fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "an index into a short list")]
    let index = (times.len() as f64 * share) as usize;
    times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

async fn idle(rounds: &Rounds) -> anyhow::Result<()> {
    let client = client()?;
    let mut report = Report::default();
    for _ in 0..rounds.repeat {
        let started = Instant::now();
        let server = Server::start_on(rounds.database_url.as_deref(), |_| Ok(())).await?;
        let start = started.elapsed();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let memory = server.memory()?;
        let request = Request::new(Method::GET, format!("{}/health", server.url).parse()?);
        let mut times = one_at_a_time(&client, &[&request], 3000).await?.remove(0);
        report.add("start_ms", "start to first answer", "ms", millis(start));
        report.add("idle_mib", "idle memory", "MiB", memory);
        report.add("health_p50_ms", "GET /health, p50", "ms", millis(percentile(&mut times, 0.5)));
        report.add("health_p99_ms", "GET /health, p99", "ms", millis(percentile(&mut times, 0.99)));
    }
    report.print("idle", rounds);
    Ok(())
}

/// Sends requests in turn, each so often after a warm-up; how long each took.
async fn one_at_a_time(client: &Egress, requests: &[&Request], often: usize) -> anyhow::Result<Vec<Vec<Duration>>> {
    const WARM_UP: usize = 200;
    let mut times = vec![Vec::with_capacity(often); requests.len()];
    for round in 0..often + WARM_UP {
        for (request, times) in requests.iter().zip(&mut times) {
            let started = Instant::now();
            let response = client.send((*request).clone()).await?;
            ensure!(response.status == 200, "a request failed: {}", String::from_utf8_lossy(&response.body));
            if round >= WARM_UP {
                times.push(started.elapsed());
            }
        }
    }
    Ok(times)
}

async fn calls(length: Duration, concurrency: usize, end_users: usize, rounds: &Rounds) -> anyhow::Result<()> {
    let upstream = upstream().await?;
    let server = Server::start_on(rounds.database_url.as_deref(), |_| Ok(())).await?;
    let client = client()?;
    let connection = json!({"slug": "main", "provider_key": "native", "integration_key": "bench",
        "data": {"auth_scheme": "api_key", "credentials": {"base": upstream, "api_key": "bench-key-123"}}});
    let made = client.send(server.post("/tools/connections", &json!({"connection": connection}))?).await?;
    ensure!(made.status == 200, "cannot connect: {}", String::from_utf8_lossy(&made.body));
    let made: Value = serde_json::from_slice(&made.body)?;

    let arguments = json!({"id": 7, "text": "hello", "labels": ["a", "b"]});
    let call =
        json!({"data": {"id": "bench", "type": "function", "function": {"name": "tools.native.bench.ECHO.main", "arguments": arguments}}});
    let through = server.post("/tools/call", &call)?;
    let direct = Request::new(Method::POST, format!("{upstream}/echo/7").parse()?)
        .header(AUTHORIZATION, HeaderValue::from_static("Bearer bench-key-123"))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(json!({"text": "hello", "labels": ["a", "b"]}).to_string());

    let mut report = Report::default();
    if end_users > 0 {
        let filled = end_users::fill(&server, &client, &upstream, end_users).await?;
        report.add("fill_s", format!("{end_users} end users connected"), "s", filled.as_secs_f64());
    }
    rate(&client, &through, Duration::from_secs(1), concurrency).await?;
    for _ in 0..rounds.repeat {
        if end_users > 0 {
            end_users::measure(&server, &client, (&direct, &through), end_users, &mut report).await?;
        }
        let [mut direct_times, mut through_times]: [Vec<Duration>; 2] = one_at_a_time(&client, &[&direct, &through], 2000)
            .await?
            .try_into()
            .map_err(|_| anyhow::anyhow!("two requests have two times"))?;
        let (direct_p50, through_p50) = (percentile(&mut direct_times, 0.5), percentile(&mut through_times, 0.5));
        report.add("direct_p50_ms", "one at a time, direct, p50", "ms", millis(direct_p50));
        report.add("through_p50_ms", "one at a time, through, p50", "ms", millis(through_p50));
        report.add("through_p99_ms", "one at a time, through, p99", "ms", millis(percentile(&mut through_times, 0.99)));
        report.add("added_p50_ms", "added, p50", "ms", millis(through_p50.saturating_sub(direct_p50)));
        let direct_rate = rate(&client, &direct, length, concurrency).await?;
        let through_rate = rate(&client, &through, length, concurrency).await?;
        report.add("direct_per_second", format!("{concurrency} at a time, direct"), "calls/s", direct_rate);
        report.add("through_per_second", format!("{concurrency} at a time, through"), "calls/s", through_rate);
        report.add("share_of_direct", "through, as a share of direct", "", through_rate / direct_rate);
    }
    let id = made["connection"]["id"].as_str().unwrap_or_default();
    let usage = Request::new(Method::GET, format!("{}/tools/connections/{id}/usage", server.url).parse()?)
        .header(AUTHORIZATION, server.key.clone());
    let usage: Value = serde_json::from_slice(&client.send(usage).await?.body)?;
    report.add("audit_rows", "audit rows", "", usage["usage"]["tools"].as_f64().unwrap_or_default());
    report.print("calls", rounds);
    Ok(())
}

/// Integrations that can be connected without asking anybody.
const CONNECTED: [(&str, &[&str]); 4] =
    [("hacker-news", &["a", "b"]), ("wikipedia", &["a", "b"]), ("open-meteo", &["a", "b"]), ("brave-search", &["a", "b"])];
const TOOLS: usize = 50;

async fn resolve() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = client()?;
    let gateways = gateways(&server, &client).await?;
    let others = [platform_ops(&server, &client).await?, references(&server, &client).await?].concat();
    let mixed = [&gateways[..TOOLS - others.len()], &others].concat();
    print::out(&format!("{TOOLS} tools: {} actions, {} workflows and ops\n", TOOLS - others.len(), others.len()));
    for (path, tools) in [
        ("/tools/specs", &mixed),
        ("/tools/specs?format=openai", &mixed),
        ("/tools/resolve", &gateways),
        ("/tools/resolve?format=openai", &gateways),
    ] {
        let request = server.post(path, &json!({"tools": tools}))?;
        let mut times = Vec::new();
        let mut size = 0;
        for round in 0..1200 {
            let started = Instant::now();
            let response = client.send(request.clone()).await?;
            ensure!(response.status == 200, "{path} failed: {}", String::from_utf8_lossy(&response.body));
            if round >= 200 {
                times.push(started.elapsed());
            }
            size = response.body.len();
        }
        print::out(&format!(
            "{path:<30} p50 {:.3} ms, p99 {:.3} ms, {} KiB\n",
            millis(percentile(&mut times, 0.5)),
            millis(percentile(&mut times, 0.99)),
            size / 1024
        ));
    }
    Ok(())
}

/// Tools of integrations that we ship, each through two connections.
async fn gateways(server: &Server, client: &Egress) -> anyhow::Result<Vec<Value>> {
    let mut tools = Vec::new();
    for (integration, slugs) in CONNECTED {
        let path = format!("{}/tools/catalog/providers/native/integrations/{integration}/actions?limit=100", server.url);
        let actions = send(client, Request::new(Method::GET, path.parse()?).header(AUTHORIZATION, server.key.clone())).await?;
        let actions: Vec<&str> = actions["actions"].as_array().into_iter().flatten().filter_map(|action| action["key"].as_str()).collect();
        for slug in slugs {
            let mut connection = json!({"slug": slug, "provider_key": "native", "integration_key": integration});
            if integration == "brave-search" {
                connection["data"] = json!({"auth_scheme": "api_key", "credentials": {"api_key": "bench-key-123"}});
            }
            send(client, server.post("/tools/connections", &json!({"connection": connection}))?).await?;
            tools.extend(actions.iter().map(|action| {
                json!({"type": "gateway", "provider": "native", "integration": integration, "action": action, "connection": slug,
                    "name": format!("{integration}_{action}_{slug}")})
            }));
        }
    }
    ensure!(tools.len() >= TOOLS, "there are only {} tools", tools.len());
    tools.truncate(TOOLS);
    Ok(tools)
}

async fn platform_ops(server: &Server, client: &Egress) -> anyhow::Result<Vec<Value>> {
    let request = Request::new(Method::GET, format!("{}/tools/ops", server.url).parse()?).header(AUTHORIZATION, server.key.clone());
    let ops = send(client, request).await?;
    Ok(ops["ops"].as_array().into_iter().flatten().map(|op| json!({"type": "platform", "op": op["op"]})).collect())
}

/// Workflows, each by its newest version and by what is deployed.
async fn references(server: &Server, client: &Egress) -> anyhow::Result<Vec<Value>> {
    let mut tools = Vec::new();
    let inputs = json!({"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]});
    for slug in ["look", "sort", "tell", "file"] {
        let workflow = json!({"slug": slug, "data": {"kind": "echo", "schemas": {"inputs": inputs}}});
        send(client, server.post("/simple/workflows", &json!({"workflow": workflow}))?).await?;
        let deploy = json!({"workflow_ref": {"slug": slug}, "environment_ref": {"slug": "staging"}});
        send(client, server.post("/workflows/revisions/deploy", &deploy)?).await?;
        tools.push(json!({"type": "reference", "slug": slug}));
        tools.push(json!({"type": "reference", "slug": slug, "ref_by": "environment", "environment": "staging", "name": format!("{slug}_staging")}));
    }
    Ok(tools)
}

/// How many requests a second go through when this many are always under way.
async fn rate(client: &Egress, request: &Request, length: Duration, concurrency: usize) -> anyhow::Result<f64> {
    let done = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let tasks: Vec<_> = (0..concurrency)
        .map(|_| {
            let (client, request, done) = (client.clone(), request.clone(), done.clone());
            tokio::spawn(async move {
                while started.elapsed() < length {
                    let response = client.send(request.clone()).await?;
                    ensure!(response.status == 200, "a call failed: {}", String::from_utf8_lossy(&response.body));
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    Ok(done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}

/// A service on this machine that answers at once.
async fn upstream() -> anyhow::Result<String> {
    let router = axum::Router::new().route("/echo/{id}", axum::routing::post(|| async { axum::Json(json!({"ok": true, "number": 7})) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}
