//! What goes on beside the requests: dropping what was kept long enough, asking for sentence vectors, and keeping Composio and the yard in
//! step: its catalog, the address of its events, and what only one side knows of.

use std::time::Duration;

use accounts::kept_for;
use calls::Forgotten;
use composio::KEY;
use connections::Tidied;
use kernel::{KeyId, ProjectId, Timestamp};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use triggers::TidiedTriggers;

use crate::yard::Yard;

/// Often enough that nothing lingers, rarely enough that nobody notices.
const EVERY: Duration = Duration::from_hours(1);
/// How soon a provider that could not be asked is asked again.
const AGAIN: Duration = Duration::from_mins(1);

/// How often what is old is dropped.
const FORGET_EVERY: Duration = Duration::from_mins(5);

/// Work that goes on beside the requests.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Upkeep {
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Yard {
    /// Starts to drop what projects kept for long enough. Every node does so: a row is dropped once, whoever comes first.
    pub fn start_forgetting(&self) {
        let Upkeep { tasks, stop } = &self.upkeep;
        let (accounts, calls, workflows, secrets) =
            (self.accounts.clone(), self.calls.clone(), self.workflows.clone(), self.secrets.clone());
        let (people, grants, triggers) = (self.people.clone(), self.grants.clone(), self.triggers.clone());
        let (clock, record, agent_runs) = (self.clock.clone(), self.config.quotas.longest_record(), self.agent_runs.clone());
        let (user_sessions, connections, composio_api) = (self.user_sessions.clone(), self.connections.clone(), self.composio_api.clone());
        let forgetting = async move {
            loop {
                if let Err(error) = forget(&accounts, &calls, &workflows, &secrets, &agent_runs).await {
                    tracing::warn!(%error, "what is old could not be dropped");
                }
                if let Err(error) = people.forget().await {
                    tracing::warn!(%error, "sessions that ended could not be dropped");
                }
                if let Err(error) = connections.forget_messages().await {
                    tracing::warn!(%error, "messages to hooks that are over could not be dropped");
                }
                if let Err(error) = composio_api.forget_messages().await {
                    tracing::warn!(%error, "messages to webhooks that are over could not be dropped");
                }
                if let Err(error) = user_sessions.forget_ended().await {
                    tracing::warn!(%error, "sessions of end users that are over could not be dropped");
                }
                match grants.forget().await {
                    Ok(0) => {}
                    Ok(dropped) => tracing::info!(dropped, "dropped codes, tokens and clients that are over"),
                    Err(error) => tracing::warn!(%error, "codes and tokens that are over could not be dropped"),
                }
                match forget_grants(&grants, &calls, &triggers, clock.now().minus(record)).await {
                    Ok(0) => {}
                    Ok(dropped) => tracing::info!(dropped, "dropped grants that nothing names any more"),
                    Err(error) => tracing::warn!(%error, "grants that are over could not be dropped"),
                }
                tokio::time::sleep(FORGET_EVERY).await;
            }
        };
        let stop = stop.clone();
        tasks.spawn(async move { stop.run_until_cancelled(forgetting).await });
    }

    /// Drops runs, calls and approvals that projects kept for long enough, and the oldest of what they keep too much of; and codes, tokens,
    /// clients and grants that are over.
    pub async fn forget(&self) -> anyhow::Result<()> {
        forget(&self.accounts, &self.calls, &self.workflows, &self.secrets, &self.agent_runs).await?;
        self.grants.forget().await?;
        let before = self.clock.now().minus(self.config.quotas.longest_record());
        forget_grants(&self.grants, &self.calls, &self.triggers, before).await?;
        self.user_sessions.forget_ended().await?;
        Ok(self.people.forget().await?)
    }

    /// Starts to ask the embeddings API for vectors, where there is one.
    pub fn start_embeddings(&self) {
        let Some(embeddings) = &self.embeddings else { return };
        self.upkeep.tasks.spawn(embeddings.clone().run(self.catalog.clone(), self.upkeep.stop.clone()));
    }

    /// Starts to mirror Composio's catalog and to look after what is there, where Composio is configured.
    pub fn start_composio(&self) {
        let Some(composio) = &self.composio else { return };
        let Upkeep { tasks, stop } = &self.upkeep;
        tasks.spawn(composio.clone().run(stop.clone()));
        let (catalog, mut editions, ended) = (self.catalog.clone(), composio.editions(), stop.clone());
        tasks.spawn(async move {
            // The first to search after a change would wait for the index.
            while let Some(Ok(())) = ended.run_until_cancelled(editions.changed()).await {
                let catalog = catalog.clone();
                let _ = tokio::task::spawn_blocking(move || catalog.warm(ProjectId::new())).await;
            }
        });
        if self.config.triggers.paused {
            // A copy must not have events sent to itself, nor remove what it does not know of.
            return;
        }
        let (accounts, connections, triggers) = (self.accounts.clone(), self.connections.clone(), self.triggers.clone());
        let looking = async move {
            loop {
                let wait = match triggers.ensure_hub(KEY).await {
                    Ok(_) => EVERY,
                    Err(error) => {
                        tracing::warn!(%error, "Composio's events may not come");
                        AGAIN
                    }
                };
                match Box::pin(tidy(&accounts, &connections, &triggers)).await {
                    Ok((found, watched)) if found != Tidied::default() || watched != TidiedTriggers::default() => {
                        tracing::info!(?found, ?watched, "brought Composio's accounts and triggers in step");
                    }
                    Ok(_) => {}
                    Err(error) => tracing::info!(%error, "Composio's accounts could not be looked through"),
                }
                tokio::time::sleep(wait).await;
            }
        };
        let stop = stop.clone();
        tasks.spawn(async move { stop.run_until_cancelled(looking).await });
    }

    /// Removes what exists at Composio and not here, and marks what exists here and not there.
    pub async fn tidy_composio(&self) -> anyhow::Result<(Tidied, TidiedTriggers)> {
        Box::pin(tidy(&self.accounts, &self.connections, &self.triggers)).await
    }
}

async fn forget(
    accounts: &accounts::Accounts,
    calls: &calls::Calls,
    workflows: &workflows::Workflows,
    secrets: &secrets::Secrets,
    agent_runs: &agent_runs::AgentRuns,
) -> anyhow::Result<()> {
    for project in accounts.list_projects().await? {
        let own = accounts.retention(project.id).await?;
        let kept = kept_for(own.runs, workflows.run_retention());
        let runs = workflows.forget_runs(project.id, kept).await? + agent_runs.forget(project.id, kept).await?;
        let Forgotten { calls, approvals } = calls.forget(project.id).await?;
        let reads = secrets.forget_reads(project.id).await?;
        if runs + calls + approvals + reads > 0 {
            tracing::info!(project = %project.id, runs, calls, approvals, reads, "dropped what was kept for long enough");
        }
    }
    Ok(())
}

/// Drops grants that ended before everything that is still on record, unless something that was made through one still acts: it is held to
/// what the grant allowed.
async fn forget_grants(
    grants: &grants::Grants,
    calls: &calls::Calls,
    triggers: &triggers::Triggers,
    before: Timestamp,
) -> anyhow::Result<u64> {
    let (mut dropped, mut last) = (0, None);
    loop {
        let some = grants.long_ended(before, last).await?;
        let Some((_, newest)) = some.last() else { return Ok(dropped) };
        last = Some(*newest);
        for (project, grant) in some {
            let key = KeyId::from(grant.uuid());
            if !triggers.act_by(project, key).await? && !calls.tells_by(project, key).await? {
                dropped += grants.drop_ended(project, grant, before).await?;
            }
        }
    }
}

async fn tidy(
    accounts: &accounts::Accounts,
    connections: &connections::Connections,
    triggers: &triggers::Triggers,
) -> anyhow::Result<(Tidied, TidiedTriggers)> {
    let (mut found, mut watched) = (Tidied::default(), TidiedTriggers::default());
    for project in accounts.list_projects().await? {
        // Triggers first: they end with the accounts that they belong to. One project's trouble is not the others'.
        match triggers.tidy(KEY, project.id).await {
            Ok(one) => {
                watched.removed += one.removed;
                watched.restored += one.restored;
                watched.invalidated += one.invalidated;
            }
            Err(error) => tracing::info!(project = %project.id, %error, "triggers at Composio could not be looked through"),
        }
        match connections.tidy(KEY, project.id).await {
            Ok(one) => {
                found.removed += one.removed;
                found.invalidated += one.invalidated;
            }
            Err(error) => tracing::info!(project = %project.id, %error, "accounts at Composio could not be looked through"),
        }
    }
    Ok((found, watched))
}
