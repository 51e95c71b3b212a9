//! Calls for many end users, each through an account of their own, beside the same call for the project.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use egress::{Egress, Request};
use serde_json::{Value, json};

use super::report::Report;
use super::{Server, millis, percentile};

/// How many calls are measured, each for another end user.
const MEASURED: usize = 2000;
/// How many are connected at the same time.
const AT_ONCE: usize = 32;

fn name(number: usize) -> String {
    format!("user-{number}")
}

fn call(server: &Server, number: usize) -> anyhow::Result<Request> {
    let arguments = json!({"id": 7, "text": "hello", "labels": ["a", "b"]});
    let function = json!({"name": "tools.native.bench.ECHO.auto", "arguments": arguments});
    server.post("/tools/call", &json!({"end_user": name(number), "data": {"id": "bench", "type": "function", "function": function}}))
}

/// Gives so many end users an account each.
pub(super) async fn fill(server: &Server, client: &Egress, upstream: &str, many: usize) -> anyhow::Result<Duration> {
    let (next, started) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let data = json!({"auth_scheme": "api_key", "credentials": {"base": upstream, "api_key": "bench-key-123"}});
    let filled = (0..AT_ONCE).map(|_| fill_some(server, client, &data, &next, many));
    futures_util::future::try_join_all(filled).await?;
    Ok(started.elapsed())
}

async fn fill_some(server: &Server, client: &Egress, data: &Value, next: &AtomicUsize, many: usize) -> anyhow::Result<()> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= many {
            return Ok(());
        }
        let connection = json!({"end_user": name(number), "provider_key": "native", "integration_key": "bench", "data": data});
        let made = client.send(server.post("/tools/connections", &json!({"connection": connection}))?).await?;
        ensure!(made.status == 200, "cannot connect: {}", String::from_utf8_lossy(&made.body));
    }
}

/// Measures calls one at a time, in turn directly, for the project, and for end users spread over all of them.
pub(super) async fn measure(
    server: &Server,
    client: &Egress,
    (direct, own): (&Request, &Request),
    many: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut times = [const { Vec::new() }; 3];
    for round in 0..MEASURED + 200 {
        let theirs = call(server, (round * 7919) % many)?;
        for (request, times) in [direct, own, &theirs].into_iter().zip(&mut times) {
            let started = Instant::now();
            let response = client.send(request.clone()).await?;
            ensure!(response.status == 200, "a call failed: {}", String::from_utf8_lossy(&response.body));
            if round >= 200 {
                times.push(started.elapsed());
            }
        }
    }
    let [direct, own, theirs] = times.map(|mut times| (percentile(&mut times, 0.5), percentile(&mut times, 0.99)));
    let added = |through: Duration| millis(through.saturating_sub(direct.0));
    report.add("beside_users_added_p50_ms", format!("beside {many} end users, the project's own, added, p50"), "ms", added(own.0));
    report.add("users_added_p50_ms", format!("for one of {many} end users, added, p50"), "ms", added(theirs.0));
    report.add("users_p99_ms", format!("for one of {many} end users, through, p99"), "ms", millis(theirs.1));
    Ok(())
}
