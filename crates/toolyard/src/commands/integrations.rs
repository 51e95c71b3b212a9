//! `toolyard integrations`: what can be connected, and whether a manifest is right.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use native::manifest::{Manifest, check};
use serde_json::{Value, json};

use super::client::{Client, Remote};
use super::names::{self, Integration};
use super::print::{self, Column, Table};
use crate::config::Config;

const INTEGRATIONS: Table =
    Table::new(&[Column::text("KEY"), Column::text("NAME"), Column::number("ACTIONS"), Column::number("EVENTS"), Column::text("AUTH")])
        .when_empty("no integration fits; `toolyard import openapi URL` and `toolyard import mcp URL` add your own");

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct IntegrationsArgs {
    #[command(subcommand)]
    command: Option<IntegrationsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Words to look for
    #[arg(long)]
    search: Option<String>,
    /// Whose integrations: `native`, `openapi`, `mcp` or `composio` [default: what is built in and what was imported]
    #[arg(long)]
    provider: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum IntegrationsCommand {
    /// List integrations
    List(ListArgs),
    /// Show an integration, or one of its actions with its parameters
    Show {
        /// Its key, such as `github` or, if it was imported, `my-api` or `openapi/my-api`
        integration: String,
        action: Option<String>,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Check manifest files and build every request once
    Check {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

pub(super) async fn run(config: Config, args: IntegrationsArgs) -> anyhow::Result<bool> {
    match args.command.unwrap_or(IntegrationsCommand::List(args.list)) {
        IntegrationsCommand::List(ListArgs { search, provider, json, remote }) => {
            let client = Client::new(&config, &remote)?;
            let search = search.map(|text| format!("&search={}", encode(&text))).unwrap_or_default();
            let found = all(&client, provider.as_deref(), &search).await?;
            if json {
                print::json(&json!({"count": found.len(), "integrations": found}));
                return Ok(true);
            }
            let row = |found: &Value| {
                vec![
                    Integration::of(found).to_string(),
                    text(found, "name"),
                    found["actions_count"].to_string(),
                    found["events_count"].to_string(),
                    schemes(found),
                ]
            };
            INTEGRATIONS.show(&found.iter().map(row).collect::<Vec<_>>());
        }
        IntegrationsCommand::Show { integration, action, json, remote } => {
            let client = Client::new(&config, &remote)?;
            let integration = names::integration(&client, &integration).await?;
            let path = integration.path("tools");
            if let Some(action) = action {
                show_action(&client.get(&format!("{path}/actions/{}", encode(&action))).await?, json);
            } else {
                let actions = client.get(&format!("{path}/actions?limit=1000")).await?;
                show_integration(&integration, &client.get(&path).await?, &actions, json);
            }
        }
        IntegrationsCommand::Check { files } => return check_files(&files),
    }
    Ok(true)
}

/// The integrations of a provider, or those of the project; each says whose it is.
async fn all(client: &Client, provider: Option<&str>, filter: &str) -> anyhow::Result<Vec<Value>> {
    let providers: Vec<&str> = provider.map_or_else(|| names::providers().collect(), |provider| vec![provider]);
    let mut all = Vec::new();
    for provider in providers {
        for mut found in names::integrations(client, provider, filter).await? {
            found["integration_key"] = found["key"].clone();
            found["provider_key"] = provider.into();
            all.push(found);
        }
    }
    Ok(all)
}

fn show_integration(integration: &Integration, reply: &Value, actions: &Value, json: bool) {
    if json {
        print::json(reply);
        return;
    }
    let found = &reply["integration"];
    print::out(&format!("{} ({integration})\n{}\n", text(found, "name"), text(found, "description")));
    for scheme in list(found, "auth") {
        let fields: Vec<String> = list(scheme, "fields").iter().map(|field| text(field, "name")).collect();
        print::out(&format!("  connect with {} {}\n", text(scheme, "scheme"), fields.join(", ")));
    }
    print::out("\n");
    let rows: Vec<_> = list(actions, "actions").iter().map(|action| vec![text(action, "key"), text(action, "description")]).collect();
    print::table(&["ACTION", "WHAT IT DOES"], &rows);
}

fn show_action(reply: &Value, json: bool) {
    if json {
        print::json(reply);
        return;
    }
    let action = &reply["action"];
    print::out(&format!("{}\n{}\n\n", text(action, "name"), text(action, "description")));
    let inputs = &action["schemas"]["inputs"];
    let required = list(inputs, "required");
    let properties = inputs["properties"].as_object().cloned().unwrap_or_default();
    let rows: Vec<_> = properties
        .iter()
        .map(|(name, schema)| {
            let mark = if required.iter().any(|wanted| wanted == name.as_str()) { "yes" } else { "" };
            let kind = schema["type"].as_str().map_or_else(|| schema["type"].to_string(), str::to_owned);
            vec![name.clone(), kind, mark.to_owned(), text(schema, "description")]
        })
        .collect();
    print::table(&["PARAMETER", "TYPE", "REQUIRED", "WHAT IT IS"], &rows);
}

fn check_files(files: &[PathBuf]) -> anyhow::Result<bool> {
    let mut clean = true;
    for path in files {
        let yaml = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let name = path.display();
        match Manifest::parse(&yaml) {
            Err(error) => {
                clean = false;
                print::out(&format!("{name}: {error}\n"));
            }
            Ok(manifest) => {
                let findings = check(&manifest);
                clean &= findings.is_empty();
                for finding in &findings {
                    print::out(&format!("{name}: {finding}\n"));
                }
                if findings.is_empty() {
                    print::out(&format!("{name}: ok, {} actions, {} events\n", manifest.actions.len(), manifest.events.len()));
                }
            }
        }
    }
    Ok(clean)
}

pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

fn schemes(found: &Value) -> String {
    let names: Vec<&str> = list(found, "auth_schemes").iter().filter_map(Value::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

pub(super) fn encode(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
