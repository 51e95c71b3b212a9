//! An agent with five hundred actions, and the twenty of them that fit a prompt.

use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use serde_json::json;

use super::{Server, client, millis, percentile, print, send};

const VERBS: [&str; 10] = ["create", "list", "get", "update", "delete", "search", "archive", "share", "export", "count"];
const NOUNS: [&str; 50] = [
    "invoice",
    "customer",
    "order",
    "payment",
    "refund",
    "ticket",
    "message",
    "channel",
    "calendar",
    "event",
    "issue",
    "repository",
    "branch",
    "release",
    "build",
    "pipeline",
    "document",
    "folder",
    "page",
    "comment",
    "task",
    "project",
    "milestone",
    "label",
    "contact",
    "company",
    "deal",
    "lead",
    "campaign",
    "audience",
    "form",
    "survey",
    "report",
    "dashboard",
    "alert",
    "metric",
    "server",
    "volume",
    "snapshot",
    "domain",
    "certificate",
    "user",
    "team",
    "role",
    "token",
    "webhook",
    "shipment",
    "product",
    "coupon",
    "warehouse",
];
const APPS: usize = 10;
const LIMIT: usize = 20;

const PROMPTS: [&str; 4] = [
    "create an invoice for the customer and share the report with the team",
    "find the shipment that is late and refund the payment",
    "which alerts did the server raise, and is there a snapshot of its volume?",
    "please run bench3_ARCHIVE_TICKETS and tell the channel",
];

/// Writes the integrations that the agent is given: each has every verb for a share of the nouns.
fn write_manifests(dir: &Path) -> std::io::Result<()> {
    for (number, nouns) in NOUNS.chunks(NOUNS.len() / APPS).enumerate() {
        let mut yaml = format!(
            "key: bench{number}\nname: Bench {number}\ndescription: A made-up service for {}.\ncategories: [data]\nbase_url: https://example.com\n\
             auth: [{{scheme: none}}]\nactions:\n",
            nouns.join(", ")
        );
        for (verb, noun) in VERBS.iter().flat_map(|verb| nouns.iter().map(move |noun| (verb, noun))) {
            let key = format!("{verb}_{noun}s").to_uppercase();
            yaml += &format!(
                "  - key: {key}\n    name: Will {verb} {noun}s\n    description: Lets an agent {verb} any {noun} that the account can see, with a filter.\n    \
                 use_cases: [{verb} a {noun} for me, {verb} every {noun} of this month, I want to {verb} some {noun}]\n    \
                 request: POST /{noun}s/{verb}\n    params:\n      filter: {{type: string, description: Which of them}}\n      \
                 limit: {{type: integer, description: How many}}\n"
            );
        }
        std::fs::write(dir.join(format!("bench{number}.yaml")), yaml)?;
    }
    Ok(())
}

pub(super) async fn run() -> anyhow::Result<()> {
    let server = Server::start_on(None, write_manifests).await?;
    let client = client()?;
    let apps: Vec<String> = (0..APPS).map(|number| format!("bench{number}")).collect();
    let agent = json!({"name": "bench", "agent_type": "custom", "tool_ids": apps});
    let agent = send(&client, server.post("/agents", &agent)?).await?;
    let path = format!("/agents/{}/toolset", agent["id"]);
    for (what, body) in [
        ("all of them", json!({})),
        ("the best for a prompt", json!({"limit": LIMIT})),
        ("the same, as definitions", json!({"limit": LIMIT, "format": "openai"})),
        ("the same, with what is left out", json!({"limit": LIMIT, "excluded": true})),
    ] {
        let mut times = Vec::new();
        let (mut total, mut size) = (json!(0), 0);
        for round in 0..1200 {
            let mut body = body.clone();
            if what != "all of them" {
                body["prompt"] = json!(PROMPTS[round % PROMPTS.len()]);
            }
            let request = server.post(&path, &body)?;
            let started = Instant::now();
            let response = client.send(request).await?;
            let time = started.elapsed();
            ensure!(response.status == 200, "{path} failed: {}", String::from_utf8_lossy(&response.body));
            if round >= 200 {
                times.push(time);
            } else if round == 0 {
                let answer: serde_json::Value = serde_json::from_slice(&response.body)?;
                (total, size) = (answer["total"].clone(), response.body.len());
                ensure!(total == VERBS.len() * NOUNS.len(), "there are {total} tools");
            }
        }
        let (p50, p99) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
        print::out(&format!("{total} tools, {what:<32} p50 {:.3} ms, p99 {:.3} ms, {} KiB\n", millis(p50), millis(p99), size / 1024));
    }
    Ok(())
}
