//! `toolyard project` and `toolyard key`: the operator's routes from a shell, straight on the database.

use std::collections::HashMap;
use std::time::Duration;

use accounts::{AccountError, Key, NewKey, Project};
use anyhow::Context;
use clap::Subcommand;
use kernel::{Clock, KeyId, Permission, ProjectId, Role};
use serde_json::json;

use super::consent::Consent;
use super::integrations::text;
use super::names;
use super::print::{self, Column, Table};
use crate::config::Config;
use crate::yard::Yard;
use crate::{files, vault};

const PROJECTS: Table = Table::new(&[Column::text("SLUG"), Column::text("NAME"), Column::id("ID"), Column::time("CREATED")])
    .when_empty("there are no projects; `toolyard project create SLUG` makes one");
const KEYS: Table = Table::new(&[
    Column::id("ID"),
    Column::text("NAME"),
    Column::text("ROLE"),
    Column::text("KEY"),
    Column::time("CREATED"),
    Column::state("STATE"),
    Column::text("PROJECT"),
    Column::time("LAST USED"),
    Column::text("AGENTS"),
])
.when_empty("there are no keys; `toolyard key create` makes one");
/// A key that was used since is in use.
const IN_USE: Duration = Duration::from_hours(24);
const SETTLED: Duration = Duration::from_secs(2);

#[derive(Debug, Subcommand)]
pub(super) enum ProjectCommand {
    /// Make a project
    Create {
        slug: String,
        #[arg(long)]
        name: Option<String>,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// List all projects
    List {
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a project and everything in it
    Delete {
        /// Slug or id
        project: String,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key and show it once
    Create {
        /// Slug or id of the project
        #[arg(long, default_value = accounts::DEFAULT_PROJECT)]
        project: String,
        /// viewer, annotator, editor or owner
        #[arg(long, default_value = "editor")]
        role: Role,
        /// Allow only these of the role's permissions, separated by commas; `read_secrets`, which no role has, may be among them
        #[arg(long, value_delimiter = ',')]
        only: Option<Vec<Permission>>,
        /// Let the key read the values of secrets too, which no role may
        #[arg(long)]
        reads_secrets: bool,
        /// Let the key act for this agent and no other, by name or id; may be repeated
        #[arg(long = "agent", value_name = "AGENT")]
        agents: Vec<String>,
        #[arg(long, default_value = "key")]
        name: String,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// List keys
    List {
        /// Slug or id of the project; all projects when left out
        #[arg(long)]
        project: Option<String>,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key for good
    Revoke {
        /// Name or id
        key: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Seal every secret with a new key, while servers go on running
    RotateSealing {
        /// Drop the older keys once everything is sealed with the current one
        #[arg(long)]
        finish: bool,
    },
}

/// Opens what is there. A command that looks at a yard does not make one by the way.
pub(super) async fn existing(config: Config) -> anyhow::Result<Yard> {
    if !store::Db::is_there(&config.database_url) {
        let address = store::redact(&config.database_url);
        anyhow::bail!("there is no database at {address}; start `toolyard serve` once, or name the right --data-dir");
    }
    Box::pin(Yard::open(config)).await
}

pub(super) async fn project(config: Config, command: ProjectCommand) -> anyhow::Result<()> {
    let yard = existing(config).await?;
    match command {
        ProjectCommand::Create { slug, name, json } => {
            let project = yard.accounts.create_project(&slug, name.as_deref()).await?;
            if json {
                print::json(&json!({"id": project.id, "slug": project.slug, "name": project.name}));
            } else {
                print::out(&format!("made project {} ({})\n", project.slug, project.id));
            }
        }
        ProjectCommand::List { json } => {
            let projects = yard.accounts.list_projects().await?;
            if json {
                let list: Vec<_> =
                    projects.iter().map(|p| json!({"id": p.id, "slug": p.slug, "name": p.name, "created_at": p.created_at})).collect();
                print::json(&json!(list));
            } else {
                let rows: Vec<_> =
                    projects.iter().map(|p| vec![p.slug.clone(), p.name.clone(), p.id.to_string(), p.created_at.to_string()]).collect();
                PROJECTS.show(&rows);
            }
        }
        ProjectCommand::Delete { project, consent } => {
            let project = find_project(&yard, &project).await?;
            let keys = yard.accounts.list_keys(Some(project.id)).await?;
            let connections = yard.connections.everybody(project.id, None, None, None, i64::MAX).await?;
            let keys = keys.iter().filter(|key| key.revoked_at.is_none()).count();
            let stops =
                format!("everything in it: {keys} keys, {} connections, its workflows, triggers, agents and history", connections.len());
            consent.ask(&format!("delete the project {}", project.slug), &[stops])?;
            let left = yard.triggers.leftovers(&[project.id]).await?;
            yard.accounts.delete_project(project.id).await?;
            yard.triggers.remove_leftovers(left);
            yard.triggers.drain().await;
            yard.connections.drain().await;
            print::out(&format!("deleted project {}\n", project.slug));
        }
    }
    Ok(())
}

pub(super) async fn key(config: Config, command: KeyCommand) -> anyhow::Result<()> {
    let yard = existing(config).await?;
    match command {
        KeyCommand::Create { project, role, only, reads_secrets, agents: named, name, json } => {
            let only = if reads_secrets { Some(with_reading(role, only)) } else { only };
            let project = find_project(&yard, &project).await?;
            let is_for_agents = !named.is_empty();
            let agents = if is_for_agents { yard.agents.named(project.id, &named).await? } else { Vec::new() };
            let (key, plain) = yard.accounts.create_key(project.id, NewKey { name, role, only, is_for_agents }).await?;
            yard.agents.bind_key(project.id, key.id, &agents).await?;
            if json {
                print::json(&json!({"id": key.id, "project_id": project.id, "role": key.role, "key": plain.expose()}));
            } else {
                print::out(&format!("{}\n", plain.expose()));
                eprintln!("made {} key {} for project {}; it is not shown again", key.role, key.id, project.slug);
            }
        }
        KeyCommand::List { project, json } => {
            let project = match project {
                Some(name) => Some(find_project(&yard, &name).await?.id),
                None => None,
            };
            let keys = yard.accounts.list_keys(project).await?;
            let agents = yard.agents.of_keys(project).await?;
            let agents_of = |key: &Key| agents.get(&key.id).map_or(&[][..], Vec::as_slice);
            if json {
                print::json(&json!(keys.iter().map(|key| key_json(key, agents_of(key))).collect::<Vec<_>>()));
            } else {
                let projects = yard.accounts.list_projects().await?;
                let slugs: HashMap<ProjectId, String> = projects.into_iter().map(|project| (project.id, project.slug)).collect();
                KEYS.show(&keys.iter().map(|key| key_row(key, agents_of(key), &slugs)).collect::<Vec<_>>());
            }
        }
        KeyCommand::Revoke { key, consent } => {
            let key = find_key(&yard, &key).await?;
            let used = key.last_used_at.filter(|last| key.revoked_at.is_none() && Clock::system().now() < last.plus(IN_USE)).into_iter();
            let stops: Vec<String> =
                used.map(|last| format!("whoever uses it; the last use was at {}", print::time(&last.to_string()))).collect();
            consent.ask(&format!("revoke the key {}", key.name), &stops)?;
            let key = yard.accounts.revoke_key(key.id).await?;
            print::out(&format!("revoked key {} ({}…); other running nodes refuse it within a second\n", key.id, key.hint));
        }
        KeyCommand::RotateSealing { finish } => rotate_sealing(&yard, finish).await?,
    }
    Ok(())
}

/// The permissions of a key that reads secrets besides.
fn with_reading(role: Role, only: Option<Vec<Permission>>) -> Vec<Permission> {
    let mut named = only.unwrap_or_else(|| role.permissions().iter().collect());
    named.push(Permission::ReadSecrets);
    named
}

/// The project that a slug or an id means.
pub(super) async fn find_project(yard: &Yard, written: &str) -> anyhow::Result<Project> {
    match yard.accounts.find_project(written).await {
        Err(AccountError::ProjectNotFound) => {}
        found => return Ok(found?),
    }
    let all = yard.accounts.list_projects().await?;
    let rows: Vec<_> = all.iter().map(|project| json!({"id": project.id, "slug": project.slug, "name": project.name})).collect();
    let names = |row: &serde_json::Value| vec![text(row, "slug"), text(row, "name")];
    let id: ProjectId = text(names::PROJECT.pick(&rows, written, names)?, "id").parse().context("an id of a project")?;
    all.into_iter().find(|project| project.id == id).context("it is one of them")
}

/// The key that a name or an id means. A name means a key that is in force.
async fn find_key(yard: &Yard, written: &str) -> anyhow::Result<Key> {
    let all = yard.accounts.list_keys(None).await?;
    let is_it = |key: &&Key| key.revoked_at.is_none() || names::is_id(&key.id.to_string(), written);
    let rows: Vec<_> = all.iter().filter(is_it).map(|key| key_json(key, &[])).collect();
    let id: KeyId = text(names::KEY.pick(&rows, written, |row| vec![text(row, "name")])?, "id").parse().context("an id of a key")?;
    all.into_iter().find(|key| key.id == id).context("it is one of them")
}

fn key_json(key: &Key, agents: &[String]) -> serde_json::Value {
    json!({
        "id": key.id, "project_id": key.project, "name": key.name, "role": key.role, "hint": key.hint,
        "permissions": key.permissions().iter().map(Permission::name).collect::<Vec<_>>(),
        "created_at": key.created_at, "revoked_at": key.revoked_at, "last_used_at": key.last_used_at,
        "agents": key.is_for_agents.then_some(agents),
    })
}

fn key_row(key: &Key, agents: &[String], projects: &HashMap<ProjectId, String>) -> Vec<String> {
    let state = if key.revoked_at.is_some() { "revoked" } else { "active" };
    vec![
        key.id.to_string(),
        key.name.clone(),
        key.role.to_string(),
        format!("{}…", key.hint),
        key.created_at.to_string(),
        state.to_owned(),
        projects.get(&key.project).cloned().unwrap_or_default(),
        key.last_used_at.map(|last| last.to_string()).unwrap_or_default(),
        agents.join(", "),
    ]
}

/// New secrets are sealed with the new key at once; the older keys stay in the file until `--finish`, so that running servers lose nothing.
async fn rotate_sealing(yard: &Yard, finish: bool) -> anyhow::Result<()> {
    let mut ring = vault::key_ring(&yard.config)?;
    let in_file = yard.config.sealing_key.is_none();
    if in_file && !finish {
        ring = ring.with_new_key();
        files::write_secret(&vault::key_file(&yard.config), &ring.expose())?;
    }
    let sealer = vault::sealer(&yard.config, ring.clone());
    vault::reseal(&yard.db, &sealer).await?;
    connections::reseal(&yard.db, &sealer).await?;
    triggers::reseal(&yard.db, &sealer).await?;
    composio_api::reseal(&yard.db, &sealer).await?;
    imports::reseal(&yard.db, &sealer).await?;
    workflows::reseal(&yard.db, &sealer).await?;
    agent_runs::reseal(&yard.db, &sealer).await?;
    secrets::reseal(&yard.db, &sealer).await?;
    people::reseal(&yard.db, &sealer).await?;
    calls::reseal(&yard.db, &sealer).await?;
    if finish && in_file {
        // A secret that was being sealed with an older key when the file changed is in its row by now.
        tokio::time::sleep(SETTLED).await;
        connections::reseal(&yard.db, &sealer).await?;
        triggers::reseal(&yard.db, &sealer).await?;
        composio_api::reseal(&yard.db, &sealer).await?;
        imports::reseal(&yard.db, &sealer).await?;
        workflows::reseal(&yard.db, &sealer).await?;
        agent_runs::reseal(&yard.db, &sealer).await?;
        secrets::reseal(&yard.db, &sealer).await?;
        people::reseal(&yard.db, &sealer).await?;
        calls::reseal(&yard.db, &sealer).await?;
        files::write_secret(&vault::key_file(&yard.config), &ring.current_only().expose())?;
        print::out("every secret is sealed with the current key; the older keys are dropped\n");
    } else if in_file {
        print::out("every secret is sealed with a new key; run `toolyard key rotate-sealing --finish` later to drop the older one\n");
    } else {
        print::out(
            "every secret is sealed with the first key of TOOLYARD_SEALING_KEY; the others can be removed once all servers were restarted\n",
        );
    }
    Ok(())
}
