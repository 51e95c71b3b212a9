//! `toolyard environment`: what is deployed where.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{Client, Remote};
use super::consent::Consent;
use super::integrations::{list, text};
use super::names;
use super::print::{self, Column, Table};
use super::usage;
use crate::config::Config;

const PAGE: usize = 500;
const ENVIRONMENTS: Table =
    Table::new(&[Column::text("SLUG"), Column::text("NAME"), Column::text("DEPLOYED"), Column::id("ID"), Column::state("STATE")])
        .when_empty("there are no environments; `toolyard workflow deploy SLUG --to ENVIRONMENT` deploys to one");

/// Without a command it lists.
#[derive(Debug, Args)]
pub(super) struct EnvironmentArgs {
    #[command(subcommand)]
    command: Option<EnvironmentCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Archived ones too
    #[arg(long)]
    archived: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum EnvironmentCommand {
    /// List environments with what is deployed to them
    List(ListArgs),
    /// Archive an environment: nothing is deployed to it or run from it any more
    Archive {
        /// Slug, name or id
        environment: String,
        /// Bring it back
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        remote: Remote,
    },
}

pub(super) async fn run(config: Config, args: EnvironmentArgs) -> anyhow::Result<()> {
    match args.command.unwrap_or(EnvironmentCommand::List(args.list)) {
        EnvironmentCommand::List(args) => {
            let found = all(&Client::new(&config, &args.remote)?, args.archived).await?;
            if args.json {
                print::json(&json!({"count": found.len(), "environments": found}));
            } else {
                ENVIRONMENTS.show(&found.iter().map(row).collect::<Vec<_>>());
            }
        }
        EnvironmentCommand::Archive { environment, undo, consent, remote } => {
            let client = Client::new(&config, &remote)?;
            let found = all(&client, true).await?;
            let found = names::ENVIRONMENT.pick(&found, &environment, |row| vec![text(row, "slug"), text(row, "name")])?;
            let slug = text(found, "slug");
            if !undo && !consent.yes {
                consent.ask(&format!("archive the environment {slug}"), &usage::of_environment(&client, found).await)?;
            }
            let verb = if undo { "unarchive" } else { "archive" };
            client.post(&format!("/environments/{}/{verb}", text(found, "id")), &json!({})).await?;
            print::out(&format!("{verb}d {slug}\n"));
        }
    }
    Ok(())
}

fn row(environment: &Value) -> Vec<String> {
    let state = match (environment["deleted_at"].is_string(), environment["flags"]["is_guarded"] == true) {
        (true, _) => "archived",
        (false, true) => "guarded",
        (false, false) => "",
    };
    let deployed = deployed(environment).join(", ");
    vec![text(environment, "slug"), text(environment, "name"), deployed, text(environment, "id"), state.to_owned()]
}

/// What is deployed, each as `say (version 2)`.
pub(super) fn deployed(environment: &Value) -> Vec<String> {
    let references = environment["data"]["references"].as_object().into_iter().flatten();
    references
        .map(|(_, found)| format!("{} (version {})", text(&found["workflow"], "slug"), text(&found["workflow_revision"], "version")))
        .collect()
}

/// Every environment, with the `data` of its newest version.
pub(super) async fn all(client: &Client, archived: bool) -> anyhow::Result<Vec<Value>> {
    let reply = client.post("/environments/query", &json!({"include_archived": archived, "windowing": {"limit": PAGE}})).await?;
    let mut found = list(&reply, "environments").to_vec();
    for environment in found.iter_mut().filter(|row| !row["deleted_at"].is_string()) {
        let body = json!({"environment_ref": {"id": environment["id"]}});
        // One that nothing was deployed to has no version.
        if let Ok(newest) = client.post("/environments/revisions/retrieve", &body).await {
            environment["data"] = newest["environment_revision"]["data"].clone();
        }
    }
    Ok(found)
}
