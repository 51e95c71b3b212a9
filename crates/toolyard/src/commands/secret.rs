//! `toolyard secret`: keep named secrets of the project. A value goes in and never comes out here.

use std::io::{IsTerminal, Read};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{Client, Remote, ShowArgs};
use super::consent::Consent;
use super::integrations::{encode, text};
use super::print::{self, Column, Table};
use crate::config::Config;

const SECRETS: Table = Table::new(&[Column::text("NAME"), Column::text("HOSTS"), Column::text("DESCRIPTION"), Column::time("CHANGED")])
    .when_empty("there are no secrets; `toolyard secret set NAME` keeps one, with its value from stdin");

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct SecretArgs {
    #[command(subcommand)]
    command: Option<SecretCommand>,
    #[command(flatten)]
    list: ShowArgs,
}

#[derive(Debug, Subcommand)]
enum SecretCommand {
    /// List secrets: their names, never their values
    List(ShowArgs),
    /// Keep a secret, or replace the value of one that is there
    Set {
        /// Letters, digits, `-` and `_`, such as `crm_key`
        name: String,
        /// The value [default: what comes in at stdin, without the end of the last line]
        #[arg(long, env = "TOOLYARD_SECRET", hide_env_values = true, value_name = "VALUE")]
        value: Option<String>,
        /// A host that workflows may send it to in a header; may be repeated, and replaces those that were there
        #[arg(long = "host", value_name = "HOST")]
        hosts: Vec<String>,
        /// What it is for
        #[arg(long)]
        description: Option<String>,
        #[command(flatten)]
        remote: Remote,
    },
    /// Delete a secret
    Remove {
        name: String,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        remote: Remote,
    },
}

pub(super) async fn run(config: Config, args: SecretArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(SecretCommand::List(args.list)) {
        SecretCommand::List(ShowArgs { json, remote }) => {
            let found = Client::new(&config, &remote)?.get("/secrets").await?;
            if json {
                print::json(&found);
            } else {
                SECRETS.show(&found.as_array().into_iter().flatten().map(row).collect::<Vec<_>>());
            }
        }
        SecretCommand::Set { name, value, hosts, description, remote } => {
            let client = Client::new(&config, &remote)?;
            let path = format!("/secrets/{}", encode(&name));
            let known = client.find(&path).await?;
            let value = given(value)?;
            let mut body = json!({"header": {"description": description}, "secret": {"kind": "custom_secret", "data": {"secret": {"format": "text", "content": value}}}});
            if !hosts.is_empty() {
                body["hosts"] = json!(hosts);
            }
            let done = if known.is_some() {
                client.put(&path, &body).await?;
                "replaced"
            } else {
                body["slug"] = json!(name);
                client.post("/secrets", &body).await?;
                "kept"
            };
            print::out(&format!("{done} {name}\n"));
        }
        SecretCommand::Remove { name, consent, remote } => {
            let client = Client::new(&config, &remote)?;
            let path = format!("/secrets/{}", encode(&name));
            client.get(&path).await?;
            consent.ask(&format!("delete the secret {name}"), &["whatever names it: headers of workflows, code tools".to_owned()])?;
            client.delete(&path).await?;
            print::out(&format!("deleted {name}\n"));
        }
    }
    Ok(())
}

/// The value: not an argument if possible, because other programs see those.
fn given(value: Option<String>) -> anyhow::Result<String> {
    if let Some(value) = value {
        return Ok(value);
    }
    if std::io::stdin().is_terminal() {
        bail!("give the value at stdin, such as `pass show crm | toolyard secret set crm_key`, or in TOOLYARD_SECRET");
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read the value at stdin")?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

fn row(secret: &Value) -> Vec<String> {
    let hosts = secret["hosts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    vec![text(secret, "slug"), hosts, text(&secret["header"], "description"), text(&secret["lifecycle"], "updated_at")]
}
