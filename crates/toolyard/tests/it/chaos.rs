//! What no outage may break: an acknowledged event runs, and under one key; a slot fires once, whoever's clock says so.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use egress::{Allow, Egress};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use kernel::{Clock, Timestamp};
use serde_json::{Value, json};
use sha2::Sha256;
use store::{Db, args};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::runtime::Runtime;
use toolyard::yard::Yard;

use crate::binary::Server;
use crate::reserved::workflow;
use crate::support::{Database, Test, on_both, postgres_schema};

const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SENDERS: u64 = 48;

/// How many events are sent and how often a process is killed meanwhile.
fn size() -> (u64, u64) {
    if std::env::var_os("TOOLYARD_SOAK").is_some() { (30_000, 60) } else { (1500, 4) }
}

/// A service that takes a moment for each run and remembers under which keys it was called.
#[derive(Clone, Default)]
struct Target {
    calls: Arc<Mutex<HashMap<String, i64>>>,
    running: Arc<AtomicUsize>,
    total: Arc<AtomicU64>,
}

impl Target {
    async fn start() -> (Self, String) {
        let target = Self::default();
        let router = axum::Router::new().route("/run", post(Self::run)).with_state(target.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/run", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (target, url)
    }

    async fn run(State(target): State<Self>, headers: HeaderMap) -> axum::Json<Value> {
        let key = headers["idempotency-key"].to_str().unwrap().to_owned();
        *target.calls.lock().unwrap().entry(key).or_default() += 1;
        target.running.fetch_add(1, Ordering::SeqCst);
        let number = target.total.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(number * 17 % 51)).await;
        target.running.fetch_sub(1, Ordering::SeqCst);
        axum::Json(json!({"number": number}))
    }
}

/// Processes on one database, each of which may be gone at any time.
struct Nodes {
    dir: TempDir,
    database: Option<String>,
    urls: RwLock<Vec<String>>,
}

impl Nodes {
    async fn start(&self) -> Server {
        let change = |command: &mut Command| {
            command.args(["--trigger-lease", "2"]);
            if let Some(database) = &self.database {
                command.env("TOOLYARD_DATABASE_URL", database);
            }
        };
        Server::start(self.dir.path(), change).await
    }

    fn url(&self, number: u64) -> String {
        let urls = self.urls.read().unwrap();
        urls[usize::try_from(number).unwrap() % urls.len()].clone()
    }

    /// The database itself, without a server before it.
    async fn db(&self) -> Db {
        let file = format!("sqlite://{}", self.dir.path().join("data/toolyard.db").display());
        Db::open(self.database.as_ref().unwrap_or(&file)).await.unwrap()
    }
}

fn request(url: &str, id: &str, stamp: i64) -> egress::Request {
    let body = json!({"id": id}).to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(SECRET).unwrap()).unwrap();
    mac.update(format!("{id}.{stamp}.{body}").as_bytes());
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    let value = |text: &str| HeaderValue::from_str(text).unwrap();
    egress::Request::new(Method::POST, url.parse().unwrap())
        .timeout(Duration::from_secs(20))
        .header(HeaderName::from_static("webhook-id"), value(id))
        .header(HeaderName::from_static("webhook-timestamp"), value(&stamp.to_string()))
        .header(HeaderName::from_static("webhook-signature"), value(&signature))
        .body(body)
}

/// Sends an event as its sender would: again, with a new time, until somebody says that it is taken.
async fn send(egress: &Egress, nodes: &Nodes, path: &str, number: u64) {
    let id = format!("event-{number}");
    let mut stamp = 0;
    for attempt in 0..400 {
        stamp = Clock::system().now().seconds().max(stamp + 1);
        let url = format!("{}{path}", nodes.url(number + attempt));
        match egress.send(request(&url, &id, stamp)).await {
            Ok(response) if response.status == 202 => return,
            Ok(response) if response.status.is_server_error() => {}
            Ok(response) => panic!("{id}: {} {}", response.status, String::from_utf8_lossy(&response.body)),
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    panic!("{id} was never taken");
}

async fn until(what: &str, limit: Duration, mut is_so: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn deadlocks(db: &Db) -> i64 {
    let Db::Postgres(_) = db else { return 0 };
    let row = db.optional("select deadlocks from pg_stat_database where datname = current_database()", args![]).await.unwrap();
    row.unwrap().get("deadlocks").unwrap()
}

/// Sends events while processes are killed in turn, and looks at what is left.
async fn kill_again_and_again(database: Option<String>, count: usize) {
    let (events, kills) = size();
    let (target, target_url) = Target::start().await;
    let nodes = Arc::new(Nodes { dir: TempDir::new().unwrap(), database, urls: RwLock::default() });
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(nodes.start().await);
    }
    let deadlocked = deadlocks(&nodes.db().await).await;
    *nodes.urls.write().unwrap() = servers.iter().map(|server| server.url.clone()).collect();
    let flow = json!({"workflow": {"slug": "target", "name": "Target", "data": {"kind": "http", "url": target_url}}});
    servers[0].post("/simple/workflows/", flow).await;
    let data =
        json!({"event_key": "WEBHOOK_RECEIVED", "secret": format!("whsec_{SECRET}"), "references": {"workflow": {"slug": "target"}}});
    let made = servers[0].post("/triggers/subscriptions/", json!({"subscription": {"data": data}})).await;
    let path = made["subscription"]["url"].as_str().unwrap().split_once("/triggers/").unwrap().1;
    let path = format!("/triggers/{path}");

    let allow: Allow = "127.0.0.1".parse().unwrap();
    let egress = Egress::new(egress::Config { allow, ..egress::Config::default() }).unwrap();
    let (next, acknowledged) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let senders: Vec<_> = (0..SENDERS)
        .map(|_| {
            let (egress, nodes, path) = (egress.clone(), nodes.clone(), path.clone());
            let (next, acknowledged) = (next.clone(), acknowledged.clone());
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= events {
                        return;
                    }
                    send(&egress, &nodes, &path, number).await;
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();

    for kill in 0..kills {
        let enough = (kill + 1) * events / (kills + 1);
        until("events are taken and run", Duration::from_mins(2), async || {
            acknowledged.load(Ordering::SeqCst) >= enough && target.running.load(Ordering::SeqCst) > 0
        })
        .await;
        let victim = usize::try_from(kill).unwrap() % count;
        servers[victim].child.kill().await.unwrap();
        servers[victim] = nodes.start().await;
        nodes.urls.write().unwrap()[victim] = servers[victim].url.clone();
    }
    for sender in senders {
        sender.await.unwrap();
    }

    let db = nodes.db().await;
    until("every delivery ends", Duration::from_mins(2), async || {
        db.all("select 1 as one from trigger_deliveries where state in ('ready', 'leased', 'waiting') limit 1", args![])
            .await
            .unwrap()
            .is_empty()
    })
    .await;
    assert_eq!(deadlocks(&db).await, deadlocked, "nodes waited for each other");
    let rows = db.all("select id, event_id, state, code, attempts from trigger_deliveries", args![]).await.unwrap();
    let calls = target.calls.lock().unwrap().clone();
    let mut found = HashSet::new();
    for row in &rows {
        let id = row.get::<uuid::Uuid>("id").unwrap().to_string();
        let (state, code): (String, String) = (row.get("state").unwrap(), row.get("code").unwrap());
        assert_eq!((state.as_str(), code.as_str()), ("done", "200"), "{id}");
        let (called, attempts) = (calls.get(&id).copied().unwrap_or_default(), row.get::<i64>("attempts").unwrap());
        assert!(called >= 1 && called <= attempts, "{id} was called {called} times in {attempts} attempts");
        assert!(found.insert(row.get::<String>("event_id").unwrap()), "{id} is a second delivery of its event");
    }
    assert_eq!(found, (0..events).map(|number| format!("event-{number}")).collect::<HashSet<_>>());
    assert_eq!(calls.len(), rows.len(), "nothing was called under another key");
    let again = calls.values().filter(|called| **called > 1).count();
    assert!(again > 0, "no run was cut off, so nothing was shown");
    eprintln!("{events} events, {kills} kills, {again} runs cut off and made again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_sqlite() {
    kill_again_and_again(None, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_postgres_with_two_nodes() {
    kill_again_and_again(Some(postgres_schema().await), 2).await;
}

/// A node in a runtime of its own, so that it can end as a crash does: in the middle of whatever it does.
struct Node {
    runtime: Runtime,
    yard: Yard,
}

impl Node {
    async fn start(test: &Test) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (config, clock) = (test.yard.config.clone(), test.clock.clone());
        let opening = tokio::task::spawn_blocking(move || {
            let yard = runtime.block_on(async {
                let yard = Yard::open_at(config, clock).await.unwrap();
                yard.triggers.start().await.unwrap();
                yard
            });
            Self { runtime, yard }
        });
        opening.await.unwrap()
    }

    fn crash(self) {
        self.runtime.shutdown_background();
        drop(self.yard);
    }
}

async fn schedule(test: &Test, cron: &str, misfire: &Value) -> String {
    let data = json!({"event_key": "tick", "schedule": cron, "misfire": misfire, "references": {"workflow": {"slug": "echo"}}});
    let made = test.post("/triggers/schedules/", json!({"schedule": {"data": data}})).await.expect(200);
    made["schedule"]["id"].as_str().unwrap().to_owned()
}

/// How many runs each schedule has, and how many of all are not done.
async fn runs(db: &Db) -> (HashMap<String, usize>, usize) {
    let rows = db.all("select schedule_id, state from trigger_deliveries", args![]).await.unwrap();
    let (mut counts, mut open) = (HashMap::new(), 0);
    for row in rows {
        *counts.entry(row.get::<uuid::Uuid>("schedule_id").unwrap().to_string()).or_default() += 1;
        open += usize::from(row.get::<String>("state").unwrap() != "done");
    }
    (counts, open)
}

async fn another(test: &Test, at: Timestamp) -> Yard {
    Yard::open_at(test.yard.config.clone(), Clock::fixed(at)).await.unwrap()
}

const COPIES_ON_SQLITE: &str = "with recursive n(i) as (select 1 union all select i + 1 from n where i < $1) \
     insert into trigger_schedules (project_id, id, event_key, data, is_active, next_fire_at, run_at, actor_key_id, actor_user_id, created_at, updated_at) \
     select project_id, randomblob(16), event_key, data, is_active, next_fire_at, run_at, actor_key_id, actor_user_id, created_at, updated_at \
     from trigger_schedules, n";
const COPIES_ON_POSTGRES: &str = "with recursive n(i) as (select 1::bigint union all select i + 1 from n where i < $1) \
     insert into trigger_schedules (project_id, id, event_key, data, is_active, next_fire_at, run_at, actor_key_id, actor_user_id, created_at, updated_at) \
     select project_id, gen_random_uuid(), event_key, data, is_active, next_fire_at, run_at, actor_key_id, actor_user_id, created_at, updated_at \
     from trigger_schedules, n";

on_both! {
    async fn slots_in_an_outage_follow_their_policy(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let policies = [(json!("skip"), 0), (json!("fire_once"), 1), (json!({"policy": "catch_up", "limit": 3}), 3)];
        let mut made = Vec::new();
        for (policy, missed) in &policies {
            for _ in 0..3 {
                made.push((schedule(test, "*/10 * * * *", policy).await, *missed));
            }
        }
        // Each round has one slot on time and, while nobody is there, six that are missed.
        for round in 0..3 {
            let node = Node::start(test).await;
            let settled = async |on_time: usize, outages: usize| {
                let expected: HashMap<_, _> = made.iter().map(|(id, missed)| (id.clone(), on_time + outages * missed)).filter(|(_, count)| *count > 0).collect();
                until("every policy is followed", Duration::from_secs(20), async || runs(&test.yard.db).await.0 == expected).await;
            };
            settled(round, round).await;
            test.clock.advance(Duration::from_mins(if round == 0 { 10 } else { 5 }));
            settled(round + 1, round).await;
            node.crash();
            test.clock.advance(Duration::from_mins(65));
        }
        let node = Node::start(test).await;
        let expected: HashMap<_, _> = made.iter().map(|(id, missed)| (id.clone(), 3 + 3 * missed)).collect();
        until("every run is made", Duration::from_secs(20), async || runs(&test.yard.db).await == (expected.clone(), 0)).await;
        node.crash();
    }

    async fn two_nodes_fire_ten_thousand_schedules_once(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        schedule(test, "*/5 * * * *", &json!("skip")).await;
        let copies = if test.yard.db.kind() == "sqlite" { COPIES_ON_SQLITE } else { COPIES_ON_POSTGRES };
        test.yard.db.execute(copies, args![9_999]).await.unwrap();
        let now = test.clock.now().plus(Duration::from_mins(5));
        let other = another(test, now).await;
        let (one, two) = tokio::join!(test.yard.triggers.fire_due(now), other.triggers.fire_due(now));
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one + two, 10_000, "{one} and {two}");
        let (counts, _) = runs(&test.yard.db).await;
        assert_eq!((counts.len(), counts.values().max()), (10_000, Some(&1)));
        assert_eq!(test.yard.triggers.fire_due(now).await.unwrap() + other.triggers.fire_due(now).await.unwrap(), 0);
    }

    async fn a_clock_that_steps_back_fires_nothing_twice(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let catch_up = json!({"policy": "catch_up", "limit": 100});
        let ids = [schedule(test, "*/10 * * * *", &catch_up).await, schedule(test, "*/10 * * * *", &json!("fire_once")).await];
        let start = test.clock.now();
        let slot = |number: u64| start.plus(Duration::from_mins(10 * number));
        for number in 1..=3 {
            assert_eq!(test.yard.triggers.fire_due(slot(number)).await.unwrap(), 2);
        }
        // Another node, or this one after a restart, thinks that it is earlier.
        let behind = another(test, slot(1)).await;
        for number in [1, 2, 0, 3] {
            for yard in [&test.yard, &behind] {
                assert_eq!(yard.triggers.fire_due(slot(number)).await.unwrap(), 0, "slot {number}");
            }
        }
        // Started again while the clock is behind, a schedule waits for slots that it had; they do not run again.
        for id in &ids {
            for verb in ["stop", "start"] {
                test.post(&format!("/triggers/schedules/{id}/{verb}"), json!({})).await.expect(200);
            }
        }
        assert_eq!(test.yard.triggers.fire_due(slot(3)).await.unwrap(), 0);
        assert_eq!(behind.triggers.fire_due(slot(4)).await.unwrap(), 2);
        assert_eq!(runs(&test.yard.db).await.0, ids.into_iter().map(|id| (id, 4)).collect());
    }
}
