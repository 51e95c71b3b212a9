//! `toolyard project` and `toolyard key`: the operator's routes from a shell, straight on the database.

use accounts::{Key, NewKey};
use clap::Subcommand;
use kernel::{KeyId, Permission, Role};
use serde_json::json;

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
])
.when_empty("there are no keys; `toolyard key create` makes one");
const SETTLED: std::time::Duration = std::time::Duration::from_secs(2);

#[derive(Debug, Subcommand)]
pub(super) enum ProjectCommand {
    /// Make a project
    Create {
        slug: String,
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        json: bool,
    },
    /// List all projects
    List {
        #[arg(long)]
        json: bool,
    },
    /// Delete a project and everything in it
    Delete {
        /// Slug or id
        project: String,
        /// Do it without asking back
        #[arg(long)]
        yes: bool,
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
        /// Allow only these of the role's permissions, separated by commas
        #[arg(long, value_delimiter = ',')]
        only: Option<Vec<Permission>>,
        #[arg(long, default_value = "key")]
        name: String,
        #[arg(long)]
        json: bool,
    },
    /// List keys
    List {
        /// Slug or id of the project; all projects when left out
        #[arg(long)]
        project: Option<String>,
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key for good
    Revoke { id: KeyId },
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
    Yard::open(config).await
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
        ProjectCommand::Delete { project, yes } => {
            let project = yard.accounts.find_project(&project).await?;
            if !yes {
                anyhow::bail!("this deletes `{}` with its keys, connections and history; say --yes to do it", project.slug);
            }
            let (accounts, watching) = (yard.connections.elsewhere(project.id).await?, yard.triggers.elsewhere(project.id).await?);
            yard.accounts.delete_project(project.id).await?;
            yard.triggers.forget_remote(watching);
            yard.connections.forget(accounts);
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
        KeyCommand::Create { project, role, only, name, json } => {
            let project = yard.accounts.find_project(&project).await?;
            let (key, plain) = yard.accounts.create_key(project.id, NewKey { name, role, only }).await?;
            if json {
                print::json(&json!({"id": key.id, "project_id": project.id, "role": key.role, "key": plain.expose()}));
            } else {
                print::out(&format!("{}\n", plain.expose()));
                eprintln!("made {} key {} for project {}; it is not shown again", key.role, key.id, project.slug);
            }
        }
        KeyCommand::List { project, json } => {
            let project = match project {
                Some(name) => Some(yard.accounts.find_project(&name).await?.id),
                None => None,
            };
            let keys = yard.accounts.list_keys(project).await?;
            if json {
                print::json(&json!(keys.iter().map(key_json).collect::<Vec<_>>()));
            } else {
                let rows: Vec<_> = keys.iter().map(key_row).collect();
                KEYS.show(&rows);
            }
        }
        KeyCommand::Revoke { id } => {
            let key = yard.accounts.revoke_key(id).await?;
            print::out(&format!("revoked key {} ({}…); other running nodes refuse it within a second\n", key.id, key.hint));
        }
        KeyCommand::RotateSealing { finish } => rotate_sealing(&yard, finish).await?,
    }
    Ok(())
}

fn key_json(key: &Key) -> serde_json::Value {
    json!({
        "id": key.id, "project_id": key.project, "name": key.name, "role": key.role, "hint": key.hint,
        "permissions": key.permissions().iter().map(Permission::name).collect::<Vec<_>>(),
        "created_at": key.created_at, "revoked_at": key.revoked_at,
    })
}

fn key_row(key: &Key) -> Vec<String> {
    let state = if key.revoked_at.is_some() { "revoked" } else { "active" };
    vec![key.id.to_string(), key.name.clone(), key.role.to_string(), format!("{}…", key.hint), key.created_at.to_string(), state.to_owned()]
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
    imports::reseal(&yard.db, &sealer).await?;
    workflows::reseal(&yard.db, &sealer).await?;
    if finish && in_file {
        // A secret that was being sealed with an older key when the file changed is in its row by now.
        tokio::time::sleep(SETTLED).await;
        connections::reseal(&yard.db, &sealer).await?;
        triggers::reseal(&yard.db, &sealer).await?;
        imports::reseal(&yard.db, &sealer).await?;
        workflows::reseal(&yard.db, &sealer).await?;
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
