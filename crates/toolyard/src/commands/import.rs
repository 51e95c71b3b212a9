//! `toolyard import`: make integrations from what you have, and keep them.

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{Client, Remote, ShowArgs};
use super::consent::Consent;
use super::integrations::{encode, list, text};
use super::names::{self, Integration};
use super::print::{self, Column, Table};
use super::usage;
use crate::config::Config;

/// A large document takes its time to get there.
const PATIENCE: Duration = Duration::from_mins(3);
/// As many of a list as people read.
const SHOWN: usize = 20;

const IMPORTS: Table = Table::new(&[
    Column::text("INTEGRATION"),
    Column::text("NAME"),
    Column::number("ACTIONS"),
    Column::number("VERSION"),
    Column::text("FROM"),
    Column::id("ID"),
])
.when_empty("nothing is imported; `toolyard import openapi URL` and `toolyard import mcp URL` import something");

#[derive(Debug, Subcommand)]
pub(super) enum ImportCommand {
    /// Import an API by its OpenAPI document
    Openapi(Box<OpenapiArgs>),
    /// Import an MCP server, by its address or by a program that the server runs
    Mcp(Box<McpArgs>),
    /// List imports
    List(ShowArgs),
    /// Fetch the source of an import again
    Refresh {
        /// The import's id, or its integration's key
        import: String,
        #[command(flatten)]
        how: How,
    },
    /// Remove an import
    Remove {
        /// The import's id, or its integration's key
        import: String,
        /// Delete its connections and OAuth apps too; the same as --yes
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Debug, Args)]
pub(super) struct OpenapiArgs {
    /// An address that the server can reach, a file, or `-` for what comes in
    source: String,
    /// Key of the integration [default: made from the document's title]
    #[arg(long = "as", value_name = "KEY")]
    integration: Option<String>,
    /// Name of the integration [default: the document's title]
    #[arg(long)]
    name: Option<String>,
    /// Address of the API in place of the document's
    #[arg(long, value_name = "URL")]
    server_url: Option<String>,
    /// How to connect, in place of what the document says: `bearer`, `basic`, `header:NAME`, `query:NAME`, `cookie:NAME` or `none`
    #[arg(long, value_name = "WAY", value_parser = scheme)]
    auth: Vec<Value>,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
pub(super) struct McpArgs {
    /// The server's address, or after `--` the program and its arguments
    #[arg(required = true, num_args = 1.., value_name = "URL | -- PROGRAM")]
    source: Vec<String>,
    /// Key of the integration [default: made from the server's name]
    #[arg(long = "as", value_name = "KEY")]
    integration: Option<String>,
    /// Name of the integration [default: the server's own]
    #[arg(long)]
    name: Option<String>,
    /// A header of every request to the server, such as `Authorization: Bearer ...`; kept sealed
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// A variable of the program's environment; kept sealed
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    #[command(flatten)]
    how: How,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write `NAME: VALUE`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write `NAME=VALUE`")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// How far to go, and what to print.
#[derive(Debug, Args)]
pub(super) struct How {
    /// Say what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Disconnect accounts whose credentials would go to other hosts
    #[arg(long)]
    force: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

impl How {
    fn query(&self) -> String {
        format!("dry_run={}&force={}", self.dry_run, self.force)
    }
}

/// A security scheme in OpenAPI's words.
fn scheme(way: &str) -> Result<Value, String> {
    match way.split_once(':') {
        None if matches!(way, "bearer" | "basic") => Ok(json!({"type": "http", "scheme": way})),
        None if way == "none" => Ok(Value::Null),
        Some((place @ ("header" | "query" | "cookie"), name)) if !name.is_empty() => {
            Ok(json!({"type": "apiKey", "in": place, "name": name}))
        }
        _ => Err("use `bearer`, `basic`, `header:NAME`, `query:NAME`, `cookie:NAME` or `none`".to_owned()),
    }
}

pub(super) async fn run(config: Config, command: ImportCommand) -> anyhow::Result<()> {
    match command {
        ImportCommand::Openapi(args) => openapi(&config, *args).await,
        ImportCommand::Mcp(args) => mcp(&config, *args).await,
        ImportCommand::List(ShowArgs { json, remote }) => show_all(&Client::new(&config, &remote)?, json).await,
        ImportCommand::Refresh { import, how } => {
            let client = Client::new(&config, &how.remote)?;
            let path = format!("/tools/imports/{}/refresh?{}", text(&find(&client, &import).await?, "id"), how.query());
            show(&client.doing(format!("importing {import} again")).post_within(&path, &json!({}), PATIENCE).await?, how.json);
            Ok(())
        }
        ImportCommand::Remove { import, force, consent, remote } => {
            let client = Client::new(&config, &remote)?;
            let found = find(&client, &import).await?;
            let integration = Integration::of(&found);
            if !force && !consent.yes {
                consent.ask(&format!("remove {integration}"), &usage::of_integration(&client, &integration).await?)?;
            }
            client.delete(&format!("/tools/imports/{}?force=true", encode(&text(&found, "id")))).await?;
            print::out(&format!("removed {integration}\n"));
            Ok(())
        }
    }
}

async fn openapi(config: &Config, args: OpenapiArgs) -> anyhow::Result<()> {
    let mut import = json!({"key": args.integration, "name": args.name, "server_url": args.server_url});
    if args.source.starts_with("https://") || args.source.starts_with("http://") {
        import["url"] = args.source.into();
    } else {
        import["document"] = read(&args.source)?.into();
    }
    if !args.auth.is_empty() {
        let schemes = args.auth.into_iter().enumerate().filter(|(_, scheme)| !scheme.is_null());
        import["security_schemes"] = schemes.map(|(index, scheme)| (format!("way_{}", index + 1), scheme)).collect();
    }
    if let Some(fields) = import.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    let client = Client::new(config, &args.how.remote)?;
    let path = format!("/tools/imports/openapi?{}", args.how.query());
    show(&client.doing("importing the API").post_within(&path, &json!({"import": import}), PATIENCE).await?, args.how.json);
    Ok(())
}

async fn mcp(config: &Config, args: McpArgs) -> anyhow::Result<()> {
    let mut import = json!({"key": args.integration, "name": args.name});
    match args.source.as_slice() {
        [url] if url.starts_with("https://") || url.starts_with("http://") => import["url"] = url.as_str().into(),
        [program, rest @ ..] => {
            import["command"] = program.as_str().into();
            import["args"] = rest.into();
        }
        [] => bail!("give the server's address, or after `--` a program"),
    }
    for (name, pairs) in [("headers", args.header), ("env", args.env)] {
        if !pairs.is_empty() {
            import[name] = pairs.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        }
    }
    if let Some(fields) = import.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    let client = Client::new(config, &args.how.remote)?;
    let path = format!("/tools/imports/mcp?{}", args.how.query());
    show(&client.doing("importing the MCP server").post_within(&path, &json!({"import": import}), PATIENCE).await?, args.how.json);
    Ok(())
}

fn read(source: &str) -> anyhow::Result<String> {
    if source == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read what comes in")?;
        return Ok(text);
    }
    std::fs::read_to_string(source).with_context(|| format!("cannot read `{source}`"))
}

/// The import that a key or an id means.
async fn find(client: &Client, written: &str) -> anyhow::Result<Value> {
    let reply = client.get("/tools/imports").await?;
    let names = |row: &Value| vec![text(row, "integration_key"), Integration::of(row).to_string()];
    names::IMPORT.pick(list(&reply, "imports"), written, names).cloned()
}

async fn show_all(client: &Client, json: bool) -> anyhow::Result<()> {
    let reply = client.get("/tools/imports").await?;
    if json {
        print::json(&reply);
        return Ok(());
    }
    let rows: Vec<_> = list(&reply, "imports")
        .iter()
        .map(|import| {
            let source = &import["source"];
            let source = source["url"].as_str().or(source["settings"]["command"].as_str()).unwrap_or("a document").to_owned();
            let key = Integration::of(import).to_string();
            vec![key, text(import, "name"), import["actions_count"].to_string(), import["version"].to_string(), source, text(import, "id")]
        })
        .collect();
    IMPORTS.show(&rows);
    Ok(())
}

fn show(reply: &Value, json: bool) {
    if json {
        print::json(reply);
        return;
    }
    let import = &reply["import"];
    let key = Integration::of(import);
    let verb = match (&reply["dry_run"], &reply["is_new"]) {
        (Value::Bool(true), _) => "would import",
        (_, Value::Bool(true)) => "imported",
        _ => "imported again",
    };
    print::out(&format!("{verb} {} as {key}, {} actions\n", text(import, "name"), import["actions_count"]));
    let difference = &reply["difference"];
    for (what, mark) in [("added", '+'), ("changed", '~'), ("removed", '-')] {
        let keys = list(difference, what);
        if keys.is_empty() {
            continue;
        }
        print::out(&format!("{} {what}\n", keys.len()));
        // The first import adds everything; there is nothing to compare.
        if reply["is_new"] == false || reply["dry_run"] == true {
            shown(keys.iter().map(|key| format!("{mark} {}", key.as_str().unwrap_or_default())));
        }
    }
    let skipped = list(reply, "skipped");
    if !skipped.is_empty() {
        print::out(&format!("{} skipped\n", skipped.len()));
        shown(skipped.iter().map(|one| format!("{}: {}", text(one, "what"), text(one, "why"))));
    }
    for warning in list(reply, "warnings") {
        eprintln!("warning: {}", warning.as_str().unwrap_or_default());
    }
    if reply["dry_run"] == false && reply["is_new"] == true {
        eprintln!("hint: `toolyard connect {key}`, then `toolyard call {key} ACTION`");
    }
}

fn shown(lines: impl ExactSizeIterator<Item = String>) {
    let all = lines.len();
    for line in lines.take(SHOWN) {
        print::out(&format!("  {line}\n"));
    }
    if all > SHOWN {
        print::out(&format!("  and {} more; --json lists all\n", all - SHOWN));
    }
}
