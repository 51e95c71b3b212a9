//! Users, projects, the keys that open them and the people who belong to them. It answers one question for every request: whose is it, and what may it do there. It
//! must never know what a project holds.

mod authenticate;
mod bootstrap;
mod branding;
mod delegates;
mod error;
mod keys;
mod links;
mod members;
mod projects;
mod retention;
mod simple;
mod user_limits;
mod users;

use kernel::{Clock, KeyId, ProjectId, Scope, Shared, UserId};
use store::{Db, Remembered};

use authenticate::MAX_REMEMBERED;

pub use authenticate::Authenticator;
pub use bootstrap::FirstStart;
pub use branding::{Branding, Colour, Logo};
pub use error::AccountError;
pub use keys::{Holder, Key, MOST_KEYS, NewKey};
pub use links::{ConnectLinks, ReturnPattern, SiteOrigin};
pub use members::{Member, Membership, Source, put_member};
pub use projects::{DEFAULT_PROJECT, Project};
pub use retention::{LongestRetention, Retention, kept_for, whole_days};
pub use simple::{Account, NewAccount};
pub use user_limits::UserLimits;
pub use users::{User, insert_user, normal_email};

/// Who did something: in which project, with which key, as which user.
type Actor = (ProjectId, KeyId, Option<UserId>);

/// Users, projects and keys of one deployment.
#[derive(Clone, Debug)]
pub struct Accounts {
    db: Db,
    clock: Clock,
    authenticator: Authenticator,
    /// What those may do who saved a trigger or began a run.
    acting: Shared<Remembered<Actor, Scope>>,
}

impl Accounts {
    pub fn new(db: Db, clock: Clock) -> Self {
        let acting = Shared::new(Remembered::new(&db, &["api_keys", "members", "oauth_grants"], MAX_REMEMBERED));
        Self { authenticator: Authenticator::new(db.clone(), clock.clone()), db, clock, acting }
    }

    pub fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }
}
