//! `toolyard branding`, `toolyard connect-links`, `toolyard retention` and `toolyard user-limits`: what a project says of itself.

use std::path::PathBuf;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::{Map, Value, json};

use super::client::{Client, Remote};
use super::integrations::text;
use super::print::{self, Column, Table};
use crate::config::Config;

const BRANDING: &str = "/project/branding";
const CONNECT_LINKS: &str = "/project/connect-links";
const RETENTION: &str = "/project/retention";
const USER_LIMITS: &str = "/project/user-limits";
const LIMITS: Table = Table::new(&[Column::text("CALLS OF AN END USER"), Column::number("AT MOST").wide(8)]);
const USER_FIELDS: [(&str, &str); 3] = [("calls_at_once", "at once"), ("calls_per_minute", "in a minute"), ("calls_per_day", "in a day")];
const KEPT: Table = Table::new(&[Column::text("RECORD"), Column::number("DAYS").wide(6), Column::number("AT MOST").wide(7)]);
const ALLOWED: Table = Table::new(&[Column::text("WHAT"), Column::text("ALLOWED")]);
const LINK_FIELDS: [(&str, &str); 2] = [("return_to", "return"), ("origins", "site")];
/// Fields of the API, and what they are called here.
const RECORDS: [(&str, &str); 3] = [("run_days", "runs"), ("call_days", "calls"), ("approval_days", "approvals")];

/// Without an option it shows what is set.
#[derive(Debug, Args)]
pub(super) struct BrandingArgs {
    /// Who asks; an empty one takes it away
    #[arg(long)]
    name: Option<String>,
    /// Of buttons, such as #2457d6; an empty one takes it away
    #[arg(long, value_name = "COLOUR")]
    accent: Option<String>,
    /// Around the page; an empty one takes it away
    #[arg(long, value_name = "COLOUR")]
    background: Option<String>,
    /// A PNG of up to 64 KiB and 1024 pixels to a side
    #[arg(long, value_name = "FILE")]
    logo: Option<PathBuf>,
    /// Take everything away that is not given here
    #[arg(long)]
    clear: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Without an option it shows what is allowed.
#[derive(Debug, Args)]
pub(super) struct ConnectLinksArgs {
    /// Allow people to be sent to this address when they are done; `/*` at its end stands for all below it
    #[arg(long, value_name = "URL")]
    allow_return: Vec<String>,
    /// Allow this site to show the pages in a frame and to be told how they end, such as https://app.example.com
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Take an address or a site away
    #[arg(long, value_name = "URL")]
    disallow: Vec<String>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Without an option it shows what is set.
#[derive(Debug, Args)]
pub(super) struct RetentionArgs {
    /// Days for which runs of workflows are kept; 0 leaves it to the deployment
    #[arg(long, value_name = "DAYS")]
    runs: Option<u32>,
    /// Days for which the record of calls is kept
    #[arg(long, value_name = "DAYS")]
    calls: Option<u32>,
    /// Days for which approvals are kept
    #[arg(long, value_name = "DAYS")]
    approvals: Option<u32>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Without an option it shows what is set.
#[derive(Debug, Args)]
pub(super) struct UserLimitsArgs {
    /// So many calls at once; 0 for no limit
    #[arg(long, value_name = "CALLS")]
    at_once: Option<u32>,
    /// So many calls in a minute; 0 for no limit
    #[arg(long, value_name = "CALLS")]
    per_minute: Option<u32>,
    /// So many calls in a day of UTC; 0 for no limit
    #[arg(long, value_name = "CALLS")]
    per_day: Option<u32>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn branding(config: &Config, args: BrandingArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let mut wanted = if args.clear { Map::new() } else { object(&client.get(BRANDING).await?) };
    let logo = args.logo.as_deref().map(|file| std::fs::read(file).with_context(|| format!("cannot read `{}`", file.display())));
    let logo = logo.transpose()?.map(|bytes| format!("data:image/png;base64,{}", STANDARD.encode(bytes)));
    let given = [("name", args.name), ("accent", args.accent), ("background", args.background), ("logo", logo)];
    let mut changes = args.clear;
    for (field, value) in given {
        if let Some(value) = value {
            changes = true;
            wanted.insert(field.to_owned(), Some(value).filter(|value| !value.is_empty()).into());
        }
    }
    let wanted = Value::Object(wanted);
    let shown = if changes { client.put(BRANDING, &wanted).await? } else { wanted };
    if args.json {
        print::json(&shown);
        return Ok(());
    }
    let logo = if shown["logo"].is_string() { "a PNG" } else { "" };
    print::fields(&[
        ("name", text(&shown, "name")),
        ("accent", text(&shown, "accent")),
        ("background", text(&shown, "background")),
        ("logo", logo.to_owned()),
    ]);
    Ok(())
}

pub(super) async fn connect_links(config: &Config, args: &ConnectLinksArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let mut shown = client.get(CONNECT_LINKS).await?;
    let listed = |shown: &Value, field: &str| -> Vec<String> {
        shown[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if let Some(unknown) =
        args.disallow.iter().find(|gone| !LINK_FIELDS.iter().any(|(field, _)| listed(&shown, field).iter().any(|known| known == *gone)))
    {
        anyhow::bail!("`{unknown}` is not allowed now; `toolyard connect-links` shows what is");
    }
    if [&args.allow_return, &args.allow_origin, &args.disallow].into_iter().any(|list| !list.is_empty()) {
        let mut wanted = Map::new();
        for ((field, _), more) in LINK_FIELDS.into_iter().zip([&args.allow_return, &args.allow_origin]) {
            let kept = listed(&shown, field).into_iter().filter(|known| !args.disallow.contains(known));
            wanted.insert(field.to_owned(), kept.chain(more.iter().cloned()).collect::<Vec<_>>().into());
        }
        shown = client.put(CONNECT_LINKS, &Value::Object(wanted)).await?;
    }
    if args.json {
        print::json(&shown);
        return Ok(());
    }
    let rows: Vec<Vec<String>> = LINK_FIELDS
        .into_iter()
        .flat_map(|(field, name)| listed(&shown, field).into_iter().map(move |allowed| vec![name.to_owned(), allowed]))
        .collect();
    ALLOWED.show(&rows);
    Ok(())
}

pub(super) async fn user_limits(config: &Config, args: &UserLimitsArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let mut shown = client.get(USER_LIMITS).await?;
    let given = [args.at_once, args.per_minute, args.per_day];
    if given.iter().any(Option::is_some) {
        let mut wanted = object(&shown["limits"]);
        for ((field, _), most) in USER_FIELDS.into_iter().zip(given) {
            match most {
                Some(0) => drop(wanted.remove(field)),
                Some(most) => drop(wanted.insert(field.to_owned(), most.into())),
                None => {}
            }
        }
        shown = client.put(USER_LIMITS, &json!(wanted)).await?;
    }
    if args.json {
        print::json(&shown);
        return Ok(());
    }
    let rows = USER_FIELDS.map(|(field, name)| {
        let most = &shown["limits"][field];
        vec![name.to_owned(), if most.is_null() { "any".to_owned() } else { most.to_string() }]
    });
    LIMITS.show(&rows);
    Ok(())
}

pub(super) async fn retention(config: &Config, args: &RetentionArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?;
    let mut shown = client.get(RETENTION).await?;
    let given = [args.runs, args.calls, args.approvals];
    if given.iter().any(Option::is_some) {
        let mut wanted = object(&shown["retention"]);
        for ((field, _), days) in RECORDS.into_iter().zip(given) {
            if let Some(days) = days {
                wanted.insert(field.to_owned(), Some(days).filter(|days| *days > 0).into());
            }
        }
        shown = client.put(RETENTION, &json!(wanted)).await?;
    }
    if args.json {
        print::json(&shown);
        return Ok(());
    }
    let rows = RECORDS.map(|(field, name)| {
        let (own, most) = (&shown["retention"][field], &shown["deployment"][field]);
        vec![name.to_owned(), if own.is_null() { most } else { own }.to_string(), most.to_string()]
    });
    KEPT.show(&rows);
    Ok(())
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
