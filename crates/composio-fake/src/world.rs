//! Everything that exists upstream at the moment.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::catalog::Catalog;

/// How long a person has to finish connecting.
pub(crate) const LINK_LIFE: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) catalog: Catalog,
    pub(crate) auth_configs: Vec<AuthConfig>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) links: Vec<Link>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) webhooks: Vec<Webhook>,
    pub(crate) sessions: Vec<Value>,
    /// `None` allows plain http to this machine only, which is what tests need.
    pub(crate) allow_http: Option<bool>,
    /// How far the clock was moved.
    pub(crate) ahead: SignedDuration,
    /// How many toolkits were made up.
    pub(crate) made_up: usize,
    sequence: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct AuthConfig {
    pub(crate) id: String,
    pub(crate) uuid: String,
    pub(crate) toolkit: String,
    pub(crate) scheme: String,
    pub(crate) managed: bool,
    pub(crate) name: String,
    pub(crate) enabled: bool,
    pub(crate) credentials: Map<String, Value>,
    pub(crate) tool_access: Map<String, Value>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Initiated,
    Active,
    Failed,
    Expired,
    Inactive,
    Revoked,
}

#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) uuid: String,
    pub(crate) word_id: String,
    pub(crate) alias: Option<String>,
    pub(crate) toolkit: String,
    pub(crate) auth_config: String,
    pub(crate) scheme: String,
    pub(crate) user_id: String,
    pub(crate) status: Status,
    pub(crate) reason: Option<String>,
    /// What the person gave, by field.
    pub(crate) values: Map<String, Value>,
    pub(crate) redirect_url: Option<String>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// A page that waits for a person.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) token: String,
    pub(crate) account: String,
    pub(crate) callback_url: Option<String>,
    pub(crate) expires_at: Timestamp,
}

#[derive(Debug, Clone)]
pub(crate) struct Trigger {
    pub(crate) id: String,
    pub(crate) uuid: String,
    pub(crate) slug: String,
    pub(crate) account: String,
    pub(crate) config: Map<String, Value>,
    pub(crate) version: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) disabled_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub(crate) struct Webhook {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) version: String,
    pub(crate) events: Vec<String>,
    pub(crate) secret: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            catalog: Catalog::shipped(),
            auth_configs: vec![],
            accounts: vec![],
            links: vec![],
            triggers: vec![],
            webhooks: vec![],
            sessions: vec![],
            allow_http: None,
            ahead: SignedDuration::ZERO,
            made_up: 0,
            sequence: 1000,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now() + self.ahead
    }

    /// A number that was not given out before.
    pub(crate) fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(crate) fn auth_config(&self, id: &str) -> Option<&AuthConfig> {
        self.auth_configs.iter().find(|config| config.id == id)
    }

    pub(crate) fn account(&self, id: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.id == id)
    }

    pub(crate) fn account_mut(&mut self, id: &str) -> Option<&mut Account> {
        self.accounts.iter_mut().find(|account| account.id == id)
    }

    /// Moves an account to another state. Only one that waits for a person keeps its link.
    pub(crate) fn turn(&mut self, account: &str, status: Status, reason: Option<&str>) -> bool {
        let now = self.now();
        let Some(account) = self.account_mut(account) else { return false };
        account.status = status;
        account.reason = reason.map(str::to_owned);
        account.redirect_url = None;
        account.updated_at = now;
        let id = account.id.clone();
        if status != Status::Initiated {
            self.links.retain(|link| link.account != id);
        }
        true
    }

    /// Gives up on people who did not finish in time.
    pub(crate) fn lapse(&mut self) {
        let now = self.now();
        let late: Vec<String> = self.links.iter().filter(|link| link.expires_at <= now).map(|link| link.account.clone()).collect();
        for account in late {
            self.turn(&account, Status::Expired, Some("The connection was not finished within 10 minutes"));
        }
    }

    pub(crate) fn remove_account(&mut self, id: &str) -> bool {
        let before = self.accounts.len();
        self.accounts.retain(|account| account.id != id);
        self.triggers.retain(|trigger| trigger.account != id);
        self.links.retain(|link| link.account != id);
        self.accounts.len() < before
    }
}

impl Status {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Initiated => "INITIATED",
            Self::Active => "ACTIVE",
            Self::Failed => "FAILED",
            Self::Expired => "EXPIRED",
            Self::Inactive => "INACTIVE",
            Self::Revoked => "REVOKED",
        }
    }
}

/// An id in Composio's manner: a prefix and twelve characters.
pub(crate) fn new_id(prefix: &str) -> String {
    format!("{prefix}_{}", &uuid::Uuid::new_v4().simple().to_string()[..12])
}

pub(crate) fn new_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A name for an account that a person can tell from others.
pub(crate) fn word_id(toolkit: &str, number: u64) -> String {
    const FIRST: [&str; 8] = ["calm", "bright", "quick", "mild", "brave", "plain", "still", "warm"];
    const SECOND: [&str; 8] = ["harbor", "meadow", "lantern", "bridge", "orchard", "pebble", "river", "window"];
    let pick = |from: [&'static str; 8], by: u64| from[usize::try_from(by % 8).unwrap_or(0)];
    format!("{toolkit}_{}-{}", pick(FIRST, number), pick(SECOND, number / 8))
}

/// A time as Composio writes it.
pub(crate) fn iso(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// Secrets are never shown again.
pub(crate) fn redacted(values: &Map<String, Value>) -> Map<String, Value> {
    values.keys().map(|name| (name.clone(), json!("REDACTED"))).collect()
}
