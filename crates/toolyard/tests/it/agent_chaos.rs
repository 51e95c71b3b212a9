//! What no kill may break: an agent's write is made once, or its model is told that nobody knows; and every run ends.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use egress::{Allow, Egress};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method};
use model_fake::{Conversation, ModelServer, Script, Turn};
use serde_json::{Value, json};
use store::{Db, args};
use tempfile::TempDir;
use tokio::process::Command;

use crate::agent_runs::agent;
use crate::binary::Server;
use crate::support::{fake_connection, manifests, postgres_schema};

const MAKE: &str = "tools__native__fake__MAKE_A_THING__main";
const CALLERS: u64 = 24;
/// Each run writes so often, the last two at once.
const WRITES: usize = 5;

/// How many runs there are and how often a process is killed meanwhile. `TOOLYARD_AGENT_KILLS` says how often, with thirty runs for each.
fn size() -> (u64, u64) {
    let kills = std::env::var("TOOLYARD_AGENT_KILLS").ok().and_then(|kills| kills.parse::<u64>().ok());
    match kills {
        Some(kills) => (30 * kills, kills),
        None if std::env::var_os("TOOLYARD_SOAK").is_some() => (6000, 200),
        None => (160, 5),
    }
}

/// A service that counts what is written and takes a moment for it. It knows no idempotency keys, so a repetition counts.
#[derive(Clone, Default)]
struct Counting {
    written: Arc<Mutex<HashMap<String, u64>>>,
    under_way: Arc<AtomicUsize>,
    total: Arc<AtomicU64>,
}

impl Counting {
    async fn start() -> (Self, String) {
        let counting = Self::default();
        let router = axum::Router::new()
            .route("/echo/things", post(Self::write))
            .route("/me", axum::routing::get(|| async { axum::Json(json!({"id": 1, "login": "me"})) }))
            .with_state(counting.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (counting, url)
    }

    async fn write(State(counting): State<Self>, axum::Json(body): axum::Json<Value>) -> axum::Json<Value> {
        counting.under_way.fetch_add(1, Ordering::SeqCst);
        let number = counting.total.fetch_add(1, Ordering::SeqCst);
        // Some are written at once and answered late, some the other way round, so that kills fall on both sides.
        let pause = Duration::from_millis(number * 13 % 29);
        if number % 2 == 0 {
            tokio::time::sleep(pause).await;
        }
        *counting.written.lock().unwrap().entry(body["title"].as_str().unwrap().to_owned()).or_default() += 1;
        if number % 2 == 1 {
            tokio::time::sleep(pause).await;
        }
        counting.under_way.fetch_sub(1, Ordering::SeqCst);
        axum::Json(json!({"ok": true, "written": body["title"]}))
    }
}

/// What each model was told of each write, by its title.
type Told = Arc<Mutex<HashMap<String, HashSet<&'static str>>>>;

fn note(told: &Told, title: &str, result: &str) {
    let word = if result.starts_with("Outcome unknown") {
        "unknown"
    } else if result.contains("written") {
        "written"
    } else {
        "failed"
    };
    told.lock().unwrap().entry(title.to_owned()).or_default().insert(word);
}

/// A model that writes one thing after the other, whatever it is told, and remembers what that was.
fn script(told: Told) -> Script {
    Script::function(move |said: &Conversation| {
        let name = said.last_user().to_owned();
        let title = |number: usize| json!({"title": format!("{name}-{number}")});
        let (turns, results) = (said.turns_since_user(), said.last_results());
        let first = if turns == WRITES - 1 { WRITES - 2 } else { turns.saturating_sub(1) };
        for (index, result) in results.iter().enumerate() {
            note(&told, &format!("{name}-{}", first + index), result);
        }
        match turns {
            last if last == WRITES - 2 => Turn::call(MAKE, title(last)).and_call(MAKE, title(last + 1)),
            done if done > WRITES - 2 => Turn::say("done"),
            next => Turn::call(MAKE, title(next)),
        }
    })
}

/// Processes on one database, each of which may be gone at any time.
struct Nodes {
    dir: TempDir,
    database: Option<String>,
    urls: RwLock<Vec<String>>,
    key: RwLock<String>,
}

impl Nodes {
    async fn start(&self) -> Server {
        let manifests = manifests();
        let change = |command: &mut Command| {
            command.args(["--trigger-lease", "2", "--egress-allow", "127.0.0.1", "--integrations-dir"]).arg(Path::new(&manifests));
            if let Some(database) = &self.database {
                command.env("TOOLYARD_DATABASE_URL", database);
            }
        };
        Server::start(self.dir.path(), change).await
    }

    async fn db(&self) -> Db {
        let file = format!("sqlite://{}", self.dir.path().join("data/toolyard.db").display());
        Db::open(self.database.as_ref().unwrap_or(&file)).await.unwrap()
    }

    /// Begins a run, again and again under the same key, until somebody says that it has begun or how it ended.
    async fn begin(&self, egress: &Egress, number: u64) {
        let inputs = json!({"message": format!("run-{number}")});
        let body = json!({"references": {"workflow": {"slug": "writer"}}, "data": {"inputs": inputs}}).to_string();
        for attempt in 0..600 {
            let url = {
                let urls = self.urls.read().unwrap();
                format!("{}/workflows/invoke", urls[usize::try_from(number + attempt).unwrap() % urls.len()])
            };
            let value = |text: &str| HeaderValue::from_str(text).unwrap();
            let request = egress::Request::new(Method::POST, url.parse().unwrap())
                .timeout(Duration::from_secs(20))
                .header(AUTHORIZATION, value(&format!("ApiKey {}", self.key.read().unwrap())))
                .header(CONTENT_TYPE, value("application/json"))
                .header(HeaderName::from_static("idempotency-key"), value(&format!("run-{number}")))
                .body(body.clone());
            match egress.send(request).await {
                Ok(response) if response.status == 200 || response.status == 202 => return,
                Ok(response) if response.status.is_server_error() => {}
                Ok(response) => panic!("run-{number}: {} {}", response.status, String::from_utf8_lossy(&response.body)),
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("run-{number} never began");
    }
}

async fn until(what: &str, limit: Duration, mut is_so: impl AsyncFnMut() -> bool) {
    let started = std::time::Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn kill_again_and_again(database: Option<String>, count: usize) {
    let (runs, kills) = size();
    let told = Told::default();
    let model = ModelServer::start_on(0, script(told.clone()), false).await.unwrap();
    let (counting, service) = Counting::start().await;
    let nodes = Arc::new(Nodes { dir: TempDir::new().unwrap(), database, urls: RwLock::default(), key: RwLock::default() });
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(nodes.start().await);
    }
    nodes.key.write().unwrap().clone_from(&servers[0].key);
    *nodes.urls.write().unwrap() = servers.iter().map(|server| server.url.clone()).collect();
    let credentials = json!({"base": service, "api_key": "sk-fake-123456"});
    servers[0].post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": credentials}))).await;
    let data = agent(&model, |_| {});
    servers[0].post("/simple/workflows/", json!({"workflow": {"slug": "writer", "name": "Writer", "data": data}})).await;

    let allow: Allow = "127.0.0.1".parse().unwrap();
    let egress = Egress::new(egress::Config { allow, ..egress::Config::default() }).unwrap();
    let (next, begun) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (egress, nodes, next, begun) = (egress.clone(), nodes.clone(), next.clone(), begun.clone());
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= runs {
                        return;
                    }
                    nodes.begin(&egress, number).await;
                    begun.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();

    for kill in 0..kills {
        let enough = kill * runs / (kills + 1);
        until("agents write", Duration::from_mins(3), async || {
            (begun.load(Ordering::SeqCst) >= enough && counting.under_way.load(Ordering::SeqCst) > 0)
                || callers.iter().all(tokio::task::JoinHandle::is_finished)
        })
        .await;
        tokio::time::sleep(Duration::from_millis(kill * 37 % 23)).await;
        let victim = usize::try_from(kill).unwrap() % count;
        servers[victim].child.kill().await.unwrap();
        servers[victim] = nodes.start().await;
        nodes.urls.write().unwrap()[victim] = servers[victim].url.clone();
    }
    for caller in callers {
        caller.await.unwrap();
    }
    let db = nodes.db().await;
    until("every run ends", Duration::from_mins(3), async || {
        db.all("select 1 as one from agent_runs where state in ('ready', 'running', 'waiting') limit 1", args![]).await.unwrap().is_empty()
    })
    .await;
    let rows = db.all("select state, code from agent_runs", args![]).await.unwrap();
    assert_eq!(rows.len(), usize::try_from(runs).unwrap(), "one run for each key");
    for row in &rows {
        assert_eq!((row.get::<String>("state").unwrap().as_str(), row.get::<i64>("code").unwrap()), ("done", 200));
    }
    // A node without a free connection to the database refuses with 503, which has a row of its own, and the caller asks again.
    let recorded = db.optional("select count(*) as found from workflow_runs where code = 200", args![]).await.unwrap().unwrap();
    assert_eq!(recorded.get::<i64>("found").unwrap().unsigned_abs(), runs, "each is recorded once");
    let (written, told) = (counting.written.lock().unwrap().clone(), told.lock().unwrap().clone());
    let (mut unknown, mut lost) = (0, 0);
    for number in 0..runs {
        for write in 0..WRITES {
            let title = format!("run-{number}-{write}");
            let (times, said) = (written.get(&title).copied().unwrap_or_default(), told.get(&title).cloned().unwrap_or_default());
            assert!(times <= 1, "{title} was written {times} times; its model was told {said:?}");
            assert!(!said.is_empty() && !said.contains("failed"), "{title}: its model was told {said:?}");
            assert!(said.len() == 1, "{title}: its model was told different things: {said:?}");
            assert!(times == 1 || said.contains("unknown"), "{title} was lost, and its model was told {said:?}");
            unknown += u64::from(said.contains("unknown"));
            lost += u64::from(times == 0);
        }
    }
    assert!(unknown > 0, "no call was cut off, so nothing was shown");
    eprintln!(
        "{runs} runs, {kills} kills: {unknown} of {} writes told as unknown, {lost} of them not made, none twice",
        runs * WRITES as u64
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_is_made_twice_on_sqlite() {
    kill_again_and_again(None, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_is_made_twice_on_postgres_with_two_nodes() {
    kill_again_and_again(Some(postgres_schema().await), 2).await;
}
