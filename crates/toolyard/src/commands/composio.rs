//! `toolyard composio`: the operator's view of Composio, straight from the configuration and the database.

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use composio::KEY;

use super::admin::existing;
use super::{compare, print};
use crate::config::Config;
use crate::yard::Yard;

#[derive(Debug, Subcommand)]
pub(super) enum ComposioCommand {
    /// Ask Composio with the key, and see what it offers and where it sends events
    Status,
    /// Make Composio send its events here, and put its webhook subscription right
    Webhook,
    /// Have Composio sign its events with another secret; the old one is taken for another day
    RotateSecret,
    /// Remove accounts and triggers that exist at Composio and not here, and mark what exists only here
    Tidy,
    /// Read tool slugs of Composio from a list or a program, and show which have a counterpart here
    Compare {
        /// A file with slugs: one a line, or in quotes; `-` reads the input
        file: PathBuf,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(config: Config, command: ComposioCommand) -> anyhow::Result<()> {
    if let ComposioCommand::Compare { file, json } = &command {
        return compare::run(&config, file, *json);
    }
    let yard = existing(config).await?;
    let done = act(&yard, command).await;
    yard.close().await;
    done
}

async fn act(yard: &Yard, command: ComposioCommand) -> anyhow::Result<()> {
    let composio = yard.composio.as_ref().context("Composio is not configured; set COMPOSIO_API_KEY")?;
    match command {
        // It needs no Composio.
        ComposioCommand::Compare { .. } => {}
        ComposioCommand::Status => {
            let status = composio.sync().await.map_err(anyhow::Error::msg)?;
            print::out(&format!(
                "composio  {}\noffers    {} toolkits, {} tools, {} events\nevents    {}\n",
                yard.config.composio_api_url,
                status.toolkits,
                status.tools,
                status.events,
                yard.triggers.hub_address(KEY)
            ));
        }
        ComposioCommand::Webhook => match yard.triggers.ensure_hub(KEY).await? {
            Some(what) => print::out(&format!("put right: {what}\n")),
            None => print::out("Composio sends its events here already\n"),
        },
        ComposioCommand::RotateSecret => {
            yard.triggers.rotate_hub(KEY).await?;
            print::out("Composio signs with a new secret; the old one is taken for another day\n");
        }
        ComposioCommand::Tidy => {
            let (found, watched) = yard.tidy_composio().await?;
            print::out(&format!(
                "removed      {} accounts, {} triggers\nrestored     {} subscriptions\nnot valid    {} connections, {} subscriptions\n",
                found.removed, watched.removed, watched.restored, found.invalidated, watched.invalidated
            ));
        }
    }
    Ok(())
}
