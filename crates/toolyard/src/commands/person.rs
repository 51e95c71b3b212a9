//! `toolyard person` and `toolyard sessions`: people from a shell, straight on the database.

use std::collections::HashMap;
use std::io::{BufRead, IsTerminal};

use accounts::{Member, Source, User};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use kernel::{ProjectId, Role, SessionId, UserId};
use people::Session;
use secrecy::SecretString;
use serde_json::json;
use store::PageSize;

use super::admin::{existing, find_project};
use super::consent::Consent;
use super::integrations::text;
use super::names;
use super::print::{self, Column, Table};
use crate::config::Config;
use crate::yard::Yard;

const PEOPLE: Table = Table::new(&[
    Column::text("E-MAIL"),
    Column::text("NAME"),
    Column::text("PROJECTS"),
    Column::state("STATE"),
    Column::text("SIGNS IN WITH"),
    Column::id("ID"),
    Column::time("CREATED"),
])
.when_empty("there are no people; `toolyard person invite` makes a link for one");
const SESSIONS: Table = Table::new(&[
    Column::id("ID"),
    Column::text("WHO"),
    Column::text("HOW"),
    Column::text("ADDRESS"),
    Column::time("USED"),
    Column::time("SINCE"),
    Column::text("CLIENT"),
])
.when_empty("nobody is signed in");

#[derive(Debug, Subcommand)]
pub(super) enum PersonCommand {
    /// List people, the projects they belong to and how they sign in
    List {
        /// Slug or id of a project; all people when left out
        #[arg(long)]
        project: Option<String>,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a link that invites somebody to a project
    Invite {
        /// Only the person with this address can use the link [default: whoever has it]
        email: Option<String>,
        /// Slug or id of the project
        #[arg(long, default_value = accounts::DEFAULT_PROJECT)]
        project: String,
        /// viewer, annotator, editor or owner
        #[arg(long, default_value = "editor")]
        role: Role,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Give somebody a role in a project; they become a member if they are none
    Role {
        /// Address or id
        person: String,
        role: Role,
        /// Slug or id of the project
        #[arg(long, default_value = accounts::DEFAULT_PROJECT)]
        project: String,
    },
    /// Take somebody out of a project
    Remove {
        /// Address or id
        person: String,
        /// Slug or id of the project
        #[arg(long, default_value = accounts::DEFAULT_PROJECT)]
        project: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Set somebody's password, read from stdin, and sign them out everywhere
    Password {
        /// Address or id
        person: String,
        /// Take the authenticator app away too, for somebody who lost it
        #[arg(long)]
        without_app: bool,
    },
    /// Make a link that signs somebody in once, within a day
    SignInLink {
        /// Address or id
        person: String,
    },
    /// Let somebody sign in no more, and sign them out everywhere
    Disable {
        /// Address or id
        person: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Let somebody sign in again
    Enable {
        /// Address or id
        person: String,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct SessionsArgs {
    #[command(subcommand)]
    command: Option<SessionsCommand>,
    /// Only those of this person, by address or id
    #[arg(long)]
    person: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// End a session, or all sessions of a person
    End {
        /// The id of a session
        #[arg(required_unless_present = "person", conflicts_with = "person")]
        session: Option<String>,
        /// All sessions of this person, by address or id
        #[arg(long)]
        person: Option<String>,
    },
}

pub(super) async fn person(config: Config, command: PersonCommand) -> anyhow::Result<()> {
    let yard = existing(config).await?;
    match command {
        PersonCommand::List { project, json } => list(&yard, project, json).await?,
        PersonCommand::Invite { email, project, role, json } => {
            let project = find_project(&yard, &project).await?;
            let (invitation, token) = yard.people.invite_to(project.id, email.as_deref(), role, None).await?;
            let link = server::addresses::invitation(&yard.config.public_url, token.expose());
            if json {
                print::json(
                    &json!({"id": invitation.id, "link": link, "role": role, "email": invitation.email, "expires_at": invitation.expires_at}),
                );
            } else {
                print::out(&format!("{link}\n"));
                eprintln!("invites as {role} to project {}, once and for a week; it is not shown again", project.slug);
            }
        }
        PersonCommand::Role { person, role, project } => {
            let (user, project) = (find_person(&yard, &person).await?, find_project(&yard, &project).await?);
            yard.accounts.set_member(project.id, user.id, role, &Source::Invited).await?;
            print::out(&format!("{} is {role} of project {}\n", user.email, project.slug));
        }
        PersonCommand::Remove { person, project, consent } => {
            let (user, project) = (find_person(&yard, &person).await?, find_project(&yard, &project).await?);
            let member = members(&yard, project.id).await?.into_iter().find(|member| member.user == user.id);
            let member = member.with_context(|| format!("{} does not belong to project {}", user.email, project.slug))?;
            consent.ask(&format!("take {} out of project {}", user.email, project.slug), &[])?;
            yard.accounts.remove_member(project.id, member.id).await?;
            print::out(&format!("{} does not belong to project {} any more\n", user.email, project.slug));
        }
        PersonCommand::Password { person, without_app } => {
            let user = find_person(&yard, &person).await?;
            yard.people.set_password(user.id, &typed_password()?).await?;
            if without_app {
                yard.people.drop_totp(user.id).await?;
            }
            print::out(&format!("the password of {} is set; they are signed out everywhere\n", user.email));
        }
        PersonCommand::SignInLink { person } => {
            let user = find_person(&yard, &person).await?;
            if user.disabled_at.is_some() {
                bail!("{} is disabled; `toolyard person enable` lets them sign in again", user.email);
            }
            let token = yard.people.make_link(user.id).await?;
            print::out(&format!("{}\n", server::addresses::sign_in_link(&yard.config.public_url, token.expose())));
            eprintln!("signs {} in, once and within a day; it is not shown again", user.email);
        }
        PersonCommand::Disable { person, consent } => {
            let user = find_person(&yard, &person).await?;
            let sessions = yard.people.all_sessions(Some(user.id)).await?.len();
            let stops: Vec<String> = (sessions > 0).then(|| format!("{sessions} sessions")).into_iter().collect();
            consent.ask(&format!("disable {}", user.email), &stops)?;
            yard.people.set_disabled(user.id, true).await?;
            print::out(&format!("{} cannot sign in any more\n", user.email));
        }
        PersonCommand::Enable { person } => {
            let user = find_person(&yard, &person).await?;
            yard.people.set_disabled(user.id, false).await?;
            print::out(&format!("{} can sign in again\n", user.email));
        }
    }
    Ok(())
}

pub(super) async fn sessions(config: Config, args: SessionsArgs) -> anyhow::Result<()> {
    let yard = existing(config).await?;
    match args.command {
        Some(SessionsCommand::End { session, person }) => match (session, person) {
            (_, Some(person)) => {
                let user = find_person(&yard, &person).await?;
                let ended = yard.people.end_all(user.id).await?;
                print::out(&format!("ended {ended} sessions of {}\n", user.email));
            }
            (Some(session), None) => {
                let rows: Vec<_> = yard.people.all_sessions(None).await?.iter().map(session_json).collect();
                let id: SessionId = names::SESSION.id(&rows, &session)?.parse().context("an id of a session")?;
                yard.people.end_any(id).await?;
                print::out(&format!("ended session {id}\n"));
            }
            (None, None) => bail!("name a session, or a person with --person"),
        },
        None => {
            let of = match &args.person {
                Some(person) => Some(find_person(&yard, person).await?.id),
                None => None,
            };
            let sessions = yard.people.all_sessions(of).await?;
            if args.json {
                print::json(&json!(sessions.iter().map(session_json).collect::<Vec<_>>()));
            } else {
                SESSIONS.show(&sessions.iter().map(session_row).collect::<Vec<_>>());
            }
        }
    }
    Ok(())
}

async fn list(yard: &Yard, project: Option<String>, as_json: bool) -> anyhow::Result<()> {
    let only: Option<HashMap<UserId, Role>> = match project {
        Some(name) => {
            let project = find_project(yard, &name).await?;
            Some(members(yard, project.id).await?.into_iter().map(|member| (member.user, member.role)).collect())
        }
        None => None,
    };
    let (mut found, mut rows) = (Vec::new(), Vec::new());
    for user in yard.accounts.list_users().await? {
        if only.as_ref().is_some_and(|only| !only.contains_key(&user.id)) {
            continue;
        }
        let memberships = yard.people.memberships(user.id).await?;
        let ways = ways(yard, user.id).await?;
        let state = if user.disabled_at.is_some() { "disabled" } else { "active" };
        if as_json {
            let projects: Vec<_> = memberships
                .iter()
                .map(|one| json!({"project_id": one.project, "project_slug": one.project_slug, "role": one.role, "source": one.source.to_string()}))
                .collect();
            found.push(json!({"id": user.id, "email": user.email, "name": user.name, "state": state, "projects": projects, "signs_in_with": ways, "created_at": user.created_at}));
        } else {
            let projects: Vec<String> = memberships.iter().map(|one| format!("{} ({})", one.project_slug, one.role)).collect();
            rows.push(vec![
                user.email.clone(),
                user.name.clone().unwrap_or_default(),
                projects.join(", "),
                state.to_owned(),
                ways.join(", "),
                user.id.to_string(),
                user.created_at.to_string(),
            ]);
        }
    }
    if as_json {
        print::json(&json!(found));
    } else {
        PEOPLE.show(&rows);
    }
    Ok(())
}

/// How somebody can sign in by themselves.
async fn ways(yard: &Yard, user: UserId) -> anyhow::Result<Vec<String>> {
    let mut ways = yard.people.issuers(user).await?;
    if yard.people.has_password(user).await? {
        let app = if yard.people.has_totp(user).await? { " and app" } else { "" };
        ways.push(format!("password{app}"));
    }
    Ok(ways)
}

async fn members(yard: &Yard, project: ProjectId) -> anyhow::Result<Vec<Member>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = yard.accounts.members(project, after, PageSize::asked(Some(500))).await?;
        after = page.cursor(|member| member.id);
        all.extend(page.rows);
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// The person that an address or an id means.
async fn find_person(yard: &Yard, written: &str) -> anyhow::Result<User> {
    let all = yard.accounts.list_users().await?;
    let rows: Vec<_> = all.iter().map(|user| json!({"id": user.id, "email": user.email, "name": user.name})).collect();
    let small = written.to_lowercase();
    let meant = if written.contains('@') { small.as_str() } else { written };
    let row = names::PERSON.pick(&rows, meant, |row| vec![text(row, "email"), text(row, "name")])?;
    let id: UserId = text(row, "id").parse().context("an id of a person")?;
    all.into_iter().find(|user| user.id == id).context("it is one of them")
}

/// A password is no argument: others on the machine could read it.
fn typed_password() -> anyhow::Result<SecretString> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        eprint!("New password (it is shown as you type): ");
    }
    let mut line = String::new();
    stdin.lock().read_line(&mut line).context("cannot read the password from stdin")?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        bail!("there is no password on stdin");
    }
    Ok(SecretString::from(password))
}

fn session_json(session: &Session) -> serde_json::Value {
    json!({
        "id": session.id, "user_id": session.person, "key_id": session.key, "name": session.name, "method": session.method,
        "address": session.address, "client": session.client, "created_at": session.created_at, "used_at": session.used_at,
    })
}

fn session_row(session: &Session) -> Vec<String> {
    vec![
        session.id.to_string(),
        session.name.clone(),
        session.method.clone(),
        session.address.clone().unwrap_or_default(),
        session.used_at.to_string(),
        session.created_at.to_string(),
        session.client.clone().unwrap_or_default(),
    ]
}
