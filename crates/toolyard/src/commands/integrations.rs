//! `toolyard integrations`: what can be connected, and whether a manifest is right.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use providers::native::manifest::{Manifest, check};
use serde_json::Value;

use super::client::{Client, Remote};
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
    /// Whose integrations: `native`, or `openapi` for what was imported
    #[arg(long, default_value = "native")]
    provider: String,
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
        /// Its key, such as `github` or `openapi/my-api`
        integration: String,
        action: Option<String>,
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
            let path = format!("/tools/catalog/providers/{}/integrations", encode(&provider));
            let reply = client.get(&format!("{path}?limit=1000&sort_by=alphabetically{search}")).await?;
            if json {
                print::json(&reply);
                return Ok(true);
            }
            let rows: Vec<_> = list(&reply, "integrations")
                .iter()
                .map(|found| {
                    vec![
                        text(found, "key"),
                        text(found, "name"),
                        found["actions_count"].to_string(),
                        found["events_count"].to_string(),
                        schemes(found),
                    ]
                })
                .collect();
            INTEGRATIONS.show(&rows);
        }
        IntegrationsCommand::Show { integration, action, json, remote } => {
            let client = Client::new(&config, &remote)?;
            let (provider, key) = provided(&integration);
            let path = format!("/tools/catalog/providers/{}/integrations/{}", encode(provider), encode(key));
            match action {
                Some(action) => show_action(&client.get(&format!("{path}/actions/{}", encode(&action))).await?, json),
                None => show_integration(&client.get(&path).await?, &client.get(&format!("{path}/actions?limit=1000")).await?, json),
            }
        }
        IntegrationsCommand::Check { files } => return check_files(&files),
    }
    Ok(true)
}

fn show_integration(reply: &Value, actions: &Value, json: bool) {
    if json {
        print::json(reply);
        return;
    }
    let found = &reply["integration"];
    print::out(&format!("{} ({})\n{}\n", text(found, "name"), text(found, "key"), text(found, "description")));
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

/// `github` is native; `openapi/github` names its provider.
pub(super) fn provided(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or(("native", name))
}

/// The other way round: how commands take an integration.
pub(super) fn provided_name(provider: Option<&str>, key: &str) -> String {
    match provider {
        None | Some("native") => key.to_owned(),
        Some(provider) => format!("{provider}/{key}"),
    }
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
