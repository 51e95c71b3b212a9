//! `toolyard bench triggers`: how fast events are taken, how soon they run, and what many schedules cost the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use egress::Egress;
use hmac::{Hmac, KeyInit, Mac};
use kernel::{Clock, Timestamp};
use serde_json::{Value, json};
use sha2::Sha256;
use store::{Db, args};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use super::report::{Report, Rounds};
use super::{Server, client, millis, percentile};
use crate::config::{Config, Settings};
use crate::yard::Yard;

const SECRET: &[u8] = b"a secret of the benchmark's own.";
/// Connections that share the steady rate.
const STEADY: u64 = 16;
const DAY: i64 = 1440;

#[derive(Debug, Args)]
pub(crate) struct TriggersArgs {
    /// How long events come as fast as they can
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Senders at the same time
    #[arg(long, default_value_t = 64)]
    concurrency: u64,
    /// How long events come at a steady rate
    #[arg(long, default_value_t = 20)]
    steady_seconds: u64,
    /// Events a second at the steady rate
    #[arg(long, default_value_t = 500)]
    rate: u64,
    /// Schedules that are stored
    #[arg(long, default_value_t = 1_000_000)]
    schedules: i64,
    #[command(flatten)]
    rounds: Rounds,
}

pub(super) async fn run(args: TriggersArgs) -> anyhow::Result<()> {
    let database = args.rounds.database_url.clone();
    let server = Server::start_on(database.as_deref(), |_| Ok(())).await?;
    let settings = Settings { data_dir: Some(server.dir.join("data")), database_url: database, ..Settings::default() };
    let config = Config::settle(settings, Settings::default())?;
    let db = Db::open(&config.database_url).await?;
    let client = client()?;
    let sender = Sender::subscribe(&server, &client).await?;

    let mut report = Report::default();
    let mut made = 0;
    report.add("idle_mib", "idle memory", "MiB", server.memory()?);
    sender.steadily(Duration::from_secs(1), args.rate).await?;
    for _ in 0..args.rounds.repeat {
        made = all_ended(&db, &sender).await?;
        let (taken, length) = sender.as_fast_as_possible(Duration::from_secs(args.seconds), args.concurrency).await?;
        report.add("events_per_second", format!("events taken, {} senders", args.concurrency), "a second", per_second(taken, length)?);
        let meanwhile = ended(&db).await? - made;
        report.add("runs_meanwhile_per_second", "runs made meanwhile", "a second", per_second(meanwhile, length)?);
        all_ended(&db, &sender).await?;
        report.add("runs_per_second", "runs made until all were", "a second", per_second(taken, started_until_ended(&db, taken).await?)?);

        let since = Clock::system().now();
        sender.steadily(Duration::from_secs(args.steady_seconds), args.rate).await?;
        made = all_ended(&db, &sender).await?;
        let mut times = waits(&db, since).await?;
        report.add("event_to_run_p50_ms", format!("event to run, {} a second, p50", args.rate), "ms", millis(percentile(&mut times, 0.5)));
        report.add("event_to_run_p99_ms", format!("event to run, {} a second, p99", args.rate), "ms", millis(percentile(&mut times, 0.99)));
        report.add("memory_mib", "memory", "MiB", server.memory()?);
    }
    ensure!(made == sender.sent()?, "{made} runs were made of {} events", sender.sent()?);

    make_schedule(&server, &client).await?;
    let mut server = server;
    server.child.kill().await?;
    schedules(&db, config, &args, &mut report).await?;
    report.print("triggers", &args.rounds);
    Ok(())
}

fn per_second(count: impl TryInto<u32, Error: std::error::Error + Send + Sync + 'static>, length: Duration) -> anyhow::Result<f64> {
    Ok(f64::from(count.try_into()?) / length.as_secs_f64())
}

/// Waits until every event that was sent has its run; how many runs there are.
async fn all_ended(db: &Db, sender: &Sender) -> anyhow::Result<i64> {
    let waited = Instant::now();
    loop {
        let made = ended(db).await?;
        if made >= sender.sent()? {
            return Ok(made);
        }
        ensure!(waited.elapsed() < Duration::from_mins(5), "the runs do not end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// How long the last runs took, from the first start to the last end.
async fn started_until_ended(db: &Db, runs: u64) -> anyhow::Result<Duration> {
    let sql = "select max(ended_at) - min(started_at) as took from \
               (select started_at, ended_at from trigger_attempts order by started_at desc limit $1) as last";
    let row = db.optional(sql, args![i64::try_from(runs)?]).await?.context("no runs")?;
    Ok(Duration::from_micros(u64::try_from(row.get::<i64>("took")?)?))
}

/// Who sends events to the plain webhook of a server.
#[derive(Clone)]
pub(super) struct Sender {
    address: String,
    path: String,
    number: Arc<AtomicU64>,
}

impl Sender {
    pub(super) async fn subscribe(server: &Server, client: &Egress) -> anyhow::Result<Self> {
        post(server, client, "/simple/workflows/", &json!({"workflow": {"slug": "echo", "name": "Echo", "data": {"kind": "echo"}}}))
            .await?;
        let secret = format!("whsec_{}", STANDARD.encode(SECRET));
        let data = json!({"event_key": "WEBHOOK_RECEIVED", "secret": secret, "references": {"workflow": {"slug": "echo"}}});
        let made = post(server, client, "/triggers/subscriptions/", &json!({"subscription": {"data": data}})).await?;
        let url: Url = made["subscription"]["url"].as_str().context("no address")?.parse()?;
        let address = server.url.trim_start_matches("http://").to_owned();
        Ok(Self { address, path: url.path().to_owned(), number: Arc::default() })
    }

    /// A signed request, as bytes: what measures must cost little beside what is measured.
    fn request(&self) -> anyhow::Result<Vec<u8>> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let body = json!({"action": "opened", "issue": {"number": number, "title": "It is slow", "labels": ["a", "b"]}}).to_string();
        let stamp = Clock::system().now().seconds();
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET)?;
        mac.update(format!("event-{number}.{stamp}.{body}").as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let Self { address, path, .. } = self;
        let length = body.len();
        Ok(format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             webhook-id: event-{number}\r\nwebhook-timestamp: {stamp}\r\nwebhook-signature: v1,{signature}\r\n\r\n{body}"
        )
        .into_bytes())
    }

    /// Sends one event and waits until it is acknowledged.
    async fn send(&self, stream: &mut TcpStream, answer: &mut Vec<u8>) -> anyhow::Result<()> {
        stream.write_all(&self.request()?).await?;
        answer.clear();
        while !is_whole(answer) {
            ensure!(stream.read_buf(answer).await? > 0, "the server hung up");
        }
        if !answer.starts_with(b"HTTP/1.1 202") {
            bail!("an event was not taken: {}", String::from_utf8_lossy(answer));
        }
        Ok(())
    }

    /// How many events were sent so far.
    fn sent(&self) -> anyhow::Result<i64> {
        Ok(i64::try_from(self.number.load(Ordering::Relaxed))?)
    }

    async fn connect(&self) -> anyhow::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// How many events were acknowledged, and in what time.
    async fn as_fast_as_possible(&self, length: Duration, concurrency: u64) -> anyhow::Result<(u64, Duration)> {
        let started = Instant::now();
        let tasks: Vec<_> = (0..concurrency)
            .map(|_| {
                let this = self.clone();
                tokio::spawn(async move {
                    let (mut stream, mut answer, mut taken) = (this.connect().await?, Vec::new(), 0);
                    while started.elapsed() < length {
                        this.send(&mut stream, &mut answer).await?;
                        taken += 1;
                    }
                    anyhow::Ok(taken)
                })
            })
            .collect();
        let mut taken = 0;
        for task in tasks {
            taken += task.await??;
        }
        Ok((taken, started.elapsed()))
    }

    /// Sends this many a second, spread evenly.
    pub(super) async fn steadily(&self, length: Duration, rate: u64) -> anyhow::Result<()> {
        let started = tokio::time::Instant::now();
        let step = Duration::from_secs(STEADY).div_f64(rate.max(1).to_string().parse()?);
        let tasks: Vec<_> = (0..STEADY)
            .map(|offset| {
                let this = self.clone();
                let first = started + step.mul_f64(offset.to_string().parse().unwrap_or_default()) / u32::try_from(STEADY).unwrap_or(1);
                tokio::spawn(async move {
                    let (mut stream, mut answer) = (this.connect().await?, Vec::new());
                    let mut ticks = tokio::time::interval_at(first, step);
                    while ticks.tick().await < started + length {
                        this.send(&mut stream, &mut answer).await?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        Ok(())
    }
}

/// Whether an answer with a `content-length` has come in full.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    answer.len() >= end + 4 + length.unwrap_or_default()
}

async fn post(server: &Server, client: &Egress, path: &str, body: &Value) -> anyhow::Result<Value> {
    let answer = client.send(server.post(path, body)?).await?;
    ensure!(answer.status == 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    Ok(serde_json::from_slice(&answer.body)?)
}

async fn ended(db: &Db) -> anyhow::Result<i64> {
    let row = db.optional("select count(*) as ended from trigger_attempts", args![]).await?;
    Ok(row.context("no count")?.get("ended")?)
}

/// How long each event since then waited for its run to start.
async fn waits(db: &Db, since: Timestamp) -> anyhow::Result<Vec<Duration>> {
    let sql = "select a.started_at - e.received_at as waited from trigger_events e \
               join trigger_deliveries d on d.project_id = e.project_id and d.subscription_id = e.subscription_id and d.event_id = e.event_id \
               join trigger_attempts a on a.project_id = d.project_id and a.delivery_id = d.id and a.number = 1 where e.received_at >= $1";
    let rows = db.all(sql, args![since]).await?;
    rows.iter().map(|row| Ok(Duration::from_micros(u64::try_from(row.get::<i64>("waited")?).unwrap_or_default()))).collect()
}

async fn make_schedule(server: &Server, client: &Egress) -> anyhow::Result<()> {
    let data = json!({"event_key": "tick", "schedule": "* * * * *", "references": {"workflow": {"slug": "echo"}}});
    let schedule = json!({"name": "bench", "data": data, "flags": {"is_active": false}});
    post(server, client, "/triggers/schedules/", &json!({"schedule": schedule})).await?;
    Ok(())
}

macro_rules! copies {
    ($one:literal, $id:literal) => {
        concat!(
            "with recursive n(i) as (select ",
            $one,
            " union all select i + 1 from n where i < $1) insert into trigger_schedules (project_id, id, event_key, name, data, is_active, \
             next_fire_at, run_at, actor_key_id, actor_user_id, created_at, updated_at) select project_id, ",
            $id,
            ", event_key, name, data, true, $2 + i % $3 * 60000000, $2 + i % $3 * 60000000, actor_key_id, actor_user_id, created_at, updated_at \
             from trigger_schedules, n where name = 'bench'"
        )
    };
}

/// Stores schedules whose slots are spread over a day, and measures the clock's looks: most find nothing, one a minute finds its share.
async fn schedules(db: &Db, config: Config, args: &TriggersArgs, report: &mut Report) -> anyhow::Result<()> {
    let tomorrow = Timestamp::from_micros((Clock::system().now().seconds() / 86_400 + 1) * 86_400_000_000);
    let sql = match db {
        Db::Sqlite(_) => copies!("1", "randomblob(16)"),
        Db::Postgres(_) => copies!("1::bigint", "gen_random_uuid()"),
    };
    db.execute(sql, args![args.schedules, tomorrow, DAY]).await?;
    let yard = Yard::open(config).await?;
    let fire = async |at: Timestamp| {
        let started = Instant::now();
        let runs = yard.triggers.fire_due(at).await?;
        anyhow::Ok((runs, millis(started.elapsed())))
    };
    let mut minute = tomorrow;
    fire(minute).await?;
    for _ in 0..args.rounds.repeat {
        let mut idle = Vec::new();
        for _ in 0..200 {
            let started = Instant::now();
            ensure!(yard.triggers.fire_due(Clock::system().now()).await? == 0, "a schedule fired too early");
            idle.push(started.elapsed());
        }
        minute = minute.plus(Duration::from_mins(1));
        let (runs, took) = fire(minute).await?;
        let all = args.schedules;
        report.add("tick_idle_p50_ms", format!("tick over {all} schedules, nothing due, p50"), "ms", millis(percentile(&mut idle, 0.5)));
        report.add("tick_full_ms", format!("tick that fires {runs} of them"), "ms", took);
    }
    yard.close().await;
    Ok(())
}
