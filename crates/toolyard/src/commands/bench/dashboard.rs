//! Pages of the dashboard over many calls and deliveries, as somebody sees them who signed in with a key.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use egress::{Egress, Request};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use http::{HeaderValue, Method};
use serde_json::json;
use store::{Db, args};

use super::report::{Report, Rounds};
use super::triggers::Sender;
use super::{Server, client, millis, percentile, send, upstream};

const AT_ONCE: usize = 32;
const OFTEN: usize = 100;
const WARM_UP: usize = 5;
/// Events a second, so that their runs keep up.
const RATE: u64 = 500;

/// A page, and what its figures are called.
const PAGES: [(&str, &str, &str); 6] = [
    ("/app/default", "home_p50_ms", "home_p99_ms"),
    ("/app/default/calls", "calls_p50_ms", "calls_p99_ms"),
    ("/app/default/deliveries", "deliveries_p50_ms", "deliveries_p99_ms"),
    ("/app/default/approvals", "approvals_p50_ms", "approvals_p99_ms"),
    ("/app/default/connections", "connections_p50_ms", "connections_p99_ms"),
    ("/app/default/catalog", "catalog_p50_ms", "catalog_p99_ms"),
];

#[derive(Debug, Args)]
pub(crate) struct DashboardArgs {
    /// Calls that are on record
    #[arg(long, default_value_t = 100_000)]
    calls: usize,
    /// Deliveries that were made
    #[arg(long, default_value_t = 10_000)]
    deliveries: u64,
    #[command(flatten)]
    rounds: Rounds,
}

pub(super) async fn run(args: DashboardArgs) -> anyhow::Result<()> {
    let server = Server::start_on(args.rounds.database_url.as_deref(), |_| Ok(())).await?;
    let client = client()?;
    make_calls(&server, &client, args.calls).await?;
    Sender::subscribe(&server, &client).await?.steadily(Duration::from_secs(args.deliveries.div_ceil(RATE)), RATE).await?;
    settle(args.rounds.database_url.as_deref()).await?;
    let session = sign_in(&server, &client).await?;
    let mut report = Report::default();
    for _ in 0..args.rounds.repeat {
        for (path, p50, p99) in PAGES {
            let request = Request::new(Method::GET, format!("{}{path}", server.url).parse()?).header(COOKIE, session.clone());
            let mut times = Vec::with_capacity(OFTEN);
            for number in 0..OFTEN + WARM_UP {
                let started = Instant::now();
                let page = client.send(request.clone()).await?;
                ensure!(page.status == 200, "{path}: {} {}", page.status, String::from_utf8_lossy(&page.body));
                if number >= WARM_UP {
                    times.push(started.elapsed());
                }
            }
            report.add(p50, format!("{path}, p50"), "ms", millis(percentile(&mut times, 0.5)));
            report.add(p99, format!("{path}, p99"), "ms", millis(percentile(&mut times, 0.99)));
        }
    }
    report.print("dashboard", &args.rounds);
    Ok(())
}

/// PostgreSQL counts along an index alone once its vacuum has seen the rows, which it does by itself after a while.
async fn settle(database: Option<&str>) -> anyhow::Result<()> {
    if let Some(database) = database {
        Db::open(database).await?.execute("vacuum analyze", args![]).await?;
    }
    Ok(())
}

async fn make_calls(server: &Server, client: &Egress, count: usize) -> anyhow::Result<()> {
    let credentials = json!({"base": upstream().await?, "api_key": "bench-key-123"});
    let connection = json!({"slug": "main", "provider_key": "native", "integration_key": "bench",
        "data": {"auth_scheme": "api_key", "credentials": credentials}});
    send(client, server.post("/tools/connections", &json!({"connection": connection}))?).await?;
    let function = json!({"name": "tools.native.bench.ECHO.main", "arguments": {"id": 7}});
    let call = server.post("/tools/call", &json!({"data": {"id": "bench", "type": "function", "function": function}}))?;
    stream::iter((0..count).map(|_| send(client, call.clone()))).buffer_unordered(AT_ONCE).try_for_each(|_| async { Ok(()) }).await
}

/// The cookie of a browser in which somebody typed the key in.
async fn sign_in(server: &Server, client: &Egress) -> anyhow::Result<HeaderValue> {
    let address = format!("{}/sign-in", server.url);
    let page = client.send(Request::new(Method::GET, address.parse()?)).await?;
    let text = String::from_utf8_lossy(&page.body);
    let token = text.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).context("the page has no token")?;
    let key = std::fs::read_to_string(server.dir.join("data/owner.key"))?;
    let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs([("csrf", token), ("key", key.trim())]).finish();
    let request = Request::new(Method::POST, address.parse()?)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
        .header(COOKIE, cookie(&page)?)
        .body(form);
    cookie(&client.send(request).await?)
}

fn cookie(reply: &egress::Response) -> anyhow::Result<HeaderValue> {
    let cookie = reply.headers.get(SET_COOKIE).context("no cookie")?.to_str()?;
    Ok(HeaderValue::from_str(cookie.split(';').next().unwrap_or_default())?)
}
