//! People who sign in: the ways to prove who somebody is, the sessions that follow, and invitations. It answers who is signed in and what
//! they may do in a project at this moment. It must never know a cookie, a page or a route, nor what a project holds.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should"))]

mod error;
mod invitations;
mod links;
pub mod oidc;
mod password;
mod second_factor;
mod sessions;
mod totp;
mod tries;
mod with_key;

use std::fmt;
use std::time::Duration;

use accounts::Accounts;
use egress::Egress;
use kernel::key::KeyHash;
use kernel::seal::Sealer;
use kernel::signed::Signer;
use kernel::{Clock, ProjectId, Scope, Shared, UserId};
use store::Db;
use tokio::sync::Semaphore;

pub use accounts::{Member, Membership};
pub use error::PeopleError;
pub use invitations::{Invitation, NewPerson, Offer};
pub use password::Passed;
pub use second_factor::{NewTotp, reseal};
pub use sessions::{OpenedSession, Session, SignedIn, Via};
pub use tries::Visitor;

/// How long somebody may take at an identity provider.
pub(crate) const ATTEMPT_LIFE: Duration = Duration::from_mins(15);

/// How many passwords are checked at once.
const HASHED_AT_ONCE: usize = 2;

/// What signing in works on.
#[derive(Debug)]
pub struct Parts {
    pub db: Db,
    pub clock: Clock,
    pub accounts: Accounts,
    pub sealer: Sealer,
    pub signer: Signer,
    /// The way to identity providers.
    pub egress: Egress,
    pub operator_key: KeyHash,
    pub settings: Settings,
}

/// How people may sign in, and for how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a session lives that nobody uses.
    pub idle: Duration,
    /// How long a session lives in any case.
    pub age: Duration,
    /// Whether people may have passwords.
    pub passwords: bool,
    pub providers: Vec<oidc::ProviderConfig>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { idle: Duration::from_hours(72), age: Duration::from_hours(30 * 24), passwords: true, providers: Vec::new() }
    }
}

/// The people of one deployment.
#[derive(Clone)]
pub struct People(Shared<Inner>);

struct Inner {
    db: Db,
    clock: Clock,
    accounts: Accounts,
    sealer: Sealer,
    signer: Signer,
    operator_key: KeyHash,
    settings: Settings,
    providers: Vec<oidc::Provider>,
    hashing: Semaphore,
}

impl fmt::Debug for People {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("People")
    }
}

impl People {
    pub fn new(parts: Parts) -> Self {
        let Parts { db, clock, accounts, sealer, signer, egress, operator_key, settings } = parts;
        let provider = |config: &oidc::ProviderConfig| oidc::Provider::new(config.clone(), egress.clone(), clock.clone());
        let providers = settings.providers.iter().map(provider).collect();
        let hashing = Semaphore::new(HASHED_AT_ONCE);
        Self(Shared::new(Inner { db, clock, accounts, sealer, signer, operator_key, settings, providers, hashing }))
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The projects that a person belongs to.
    #[kernel::boxed]
    pub async fn memberships(&self, user: UserId) -> Result<Vec<Membership>, PeopleError> {
        Ok(self.0.accounts.memberships(user).await?)
    }

    /// What somebody who is signed in may do in a project at this moment: a member what the role says, a pasted key what it may, the operator
    /// what an owner may. Nothing where they do not belong.
    #[kernel::boxed]
    pub async fn scope(&self, signed_in: &SignedIn, project: ProjectId) -> Result<Option<Scope>, PeopleError> {
        Ok(match (&signed_in.via, signed_in.person) {
            (Via::Person, Some(user)) => self.0.accounts.member_scope(project, user).await?,
            (Via::Person, None) => None,
            (Via::Key(key), _) => self.0.accounts.authenticator().key_scope(*key).await?.filter(|scope| scope.project == project),
            (Via::Operator, _) => match self.0.accounts.find_project(&project.to_string()).await {
                Ok(project) => Some(Scope::operator(project.id)),
                Err(accounts::AccountError::ProjectNotFound) => None,
                Err(error) => return Err(error.into()),
            },
        })
    }

    /// The projects that somebody who is signed in can act in.
    #[kernel::boxed]
    pub async fn projects(&self, signed_in: &SignedIn) -> Result<Vec<Membership>, PeopleError> {
        let owner = kernel::Role::Owner;
        match (&signed_in.via, signed_in.person) {
            (Via::Person, Some(user)) => self.memberships(user).await,
            (Via::Person, None) => Ok(Vec::new()),
            (Via::Key(key), _) => {
                let keys = &self.0.accounts;
                let Some(scope) = keys.authenticator().key_scope(*key).await? else { return Ok(Vec::new()) };
                let project = keys.find_project(&scope.project.to_string()).await?;
                let role = kernel::Role::ALL.into_iter().rfind(|role| scope.permissions.covers(role.permissions()));
                Ok(vec![named(project, role.unwrap_or(kernel::Role::Viewer))])
            }
            (Via::Operator, _) => {
                let all = self.0.accounts.list_projects().await?;
                Ok(all.into_iter().map(|project| named(project, owner)).collect())
            }
        }
    }
}

fn named(project: accounts::Project, role: kernel::Role) -> Membership {
    Membership { project: project.id, project_slug: project.slug, project_name: project.name, role, source: accounts::Source::Account }
}
