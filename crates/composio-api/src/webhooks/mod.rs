//! The webhook of a project: one address that gets events of triggers and what happens to accounts, signed.

mod envelope;
mod messages;
mod send;

use std::time::Duration;

use document::ToSchema;
use egress::webhook;
use kernel::key::random_bytes;
use kernel::seal::{SealedColumn, Sealer};
use kernel::{ComposioWebhookId, Permission, ProjectId, Scope, Timestamp, suggest};
use serde::Serialize;
use serde_json::{Value, json};
use store::{Db, Row, StoreError, args, row};
use url::Url;

use crate::page::{Page, Window};
use crate::{ApiError, ComposioApi, Refusal, ids};

pub(crate) use envelope::Version;
pub(crate) use messages::Sending;

const MAX_URL: usize = 2000;
/// How long the secret before the last one signs too, so that receivers can change theirs.
const BOTH_SIGN: Duration = Duration::from_hours(24);
/// What a key is shown that may not change the webhook.
const MASKED: &str = "whsec_********";

pub(crate) const TRIGGER_MESSAGE: &str = "composio.trigger.message";
pub(crate) const ACCOUNT_EXPIRED: &str = "composio.connected_account.expired";
pub(crate) const TRIGGER_DISABLED: &str = "composio.trigger.disabled";

/// Every kind of message: its name, when it is sent, and in which versions.
const EVENTS: [(&str, &str, &[Version]); 3] = [
    (TRIGGER_MESSAGE, "A trigger fired: something happened that it watches.", &Version::ALL),
    (ACCOUNT_EXPIRED, "The service of a connected account does not accept its authorization any more.", &[Version::V3]),
    (TRIGGER_DISABLED, "A trigger stopped by itself, such as one whose account is gone.", &[Version::V3]),
];

/// The webhook of a project.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    pub(crate) id: ComposioWebhookId,
    pub(crate) url: String,
    pub(crate) version: Version,
    events: Vec<String>,
    secret: Vec<u8>,
    /// The secret before, and until when it signs too.
    former: Option<(Vec<u8>, Timestamp)>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Webhook {
    /// Whether it wants messages of this kind.
    pub(crate) fn takes(&self, event: &str) -> bool {
        self.events.iter().any(|taken| taken == event)
    }

    fn place(id: ComposioWebhookId) -> SealedColumn<'static> {
        SealedColumn { table: "composio_webhooks", column: "secret", row: id.uuid() }
    }

    fn former_place(id: ComposioWebhookId) -> SealedColumn<'static> {
        SealedColumn { table: "composio_webhooks", column: "former_secret", row: id.uuid() }
    }

    fn read(row: &Row) -> Result<Self, StoreError> {
        let broken = |column: &str| StoreError::Column(column.to_owned());
        let (former, until): (Option<Vec<u8>>, Option<Timestamp>) = (row.get("former_secret")?, row.get("former_until")?);
        Ok(Self {
            id: row.get("id")?,
            url: row.get("url")?,
            version: Version::named(&row.get::<String>("version")?).ok_or_else(|| broken("version"))?,
            events: serde_json::from_value(row.get::<Value>("events")?).map_err(|_| broken("events"))?,
            secret: row.get("secret")?,
            former: former.zip(until),
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

/// What a webhook shall be; what is left out stays as it is.
#[derive(Clone, Debug, Default)]
pub struct WebhookChange {
    pub url: Option<String>,
    pub events: Option<Vec<String>>,
    pub version: Option<String>,
}

/// The webhook of a project as Composio shows it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::WebhookSubscription)]
pub struct WebhookBody {
    pub id: String,
    pub webhook_url: String,
    /// `V1`, `V2` or `V3`.
    #[schema(value_type = String)]
    pub version: &'static str,
    pub enabled_events: Vec<String>,
    /// What messages are signed with; masked for keys without `edit_triggers`.
    pub secret: String,
    pub created_at: String,
    pub updated_at: String,
}

/// A new secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::RotatedSecret)]
pub struct RotatedSecret {
    pub id: String,
    pub secret: String,
}

/// A kind of message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::WebhookEventType)]
pub struct EventTypeBody {
    pub event_type: &'static str,
    pub description: &'static str,
    #[schema(value_type = Vec<String>)]
    pub supported_versions: Vec<&'static str>,
}

/// Every kind of message that a webhook can be sent.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::WebhookEventTypes)]
pub struct EventTypes {
    pub items: Vec<EventTypeBody>,
}

/// Every kind of message that a webhook can be sent.
pub fn event_types() -> EventTypes {
    let body = |(event_type, description, versions): &(&'static str, &'static str, &[Version])| EventTypeBody {
        event_type,
        description,
        supported_versions: versions.iter().map(|version| version.name()).collect(),
    };
    EventTypes { items: EVENTS.iter().map(body).collect() }
}

fn read_version(text: Option<&str>) -> Result<Version, Refusal> {
    let Some(text) = text else { return Ok(Version::V3) };
    Version::named(text).ok_or_else(|| Refusal::bad_request("`version` must be V1, V2 or V3."))
}

fn check_events(events: &[String], version: Version) -> Result<(), Refusal> {
    if events.is_empty() {
        return Err(Refusal::bad_request("`enabled_events` must name one kind of event at least."));
    }
    for event in events {
        let Some((_, _, versions)) = EVENTS.iter().find(|(name, ..)| name == event) else {
            let shown: String = event.chars().filter(|letter| !letter.is_control()).take(80).collect();
            let nearest = suggest::did_you_mean(&shown, EVENTS.map(|(name, ..)| name));
            return Err(Refusal::bad_request(format!("`{shown}` is not a kind of event.{nearest}")));
        };
        if !versions.contains(&version) {
            return Err(Refusal::bad_request(format!("`{event}` is sent in V3 only, and `version` is {}.", version.name())));
        }
    }
    Ok(())
}

fn without_doubles(events: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for event in events {
        if !all.contains(&event) {
            all.push(event);
        }
    }
    all
}

fn not_found() -> Refusal {
    Refusal::not_found("WebhookSubscription_NotFound", "There is no such webhook subscription.")
}

impl ComposioApi {
    pub(crate) async fn webhook(&self, project: ProjectId) -> Result<Option<Webhook>, StoreError> {
        let sql = "select id, url, version, events, secret, former_secret, former_until, created_at, updated_at from composio_webhooks \
                   where project_id = $1";
        self.parts().db.optional(sql, args![project]).await?.as_ref().map(Webhook::read).transpose()
    }

    async fn webhook_of_id(&self, scope: Scope, id: &str) -> Result<Webhook, ApiError> {
        let known = ids::WEBHOOK.read(id).ok_or_else(not_found)?;
        Ok(self.webhook(scope.project).await?.filter(|webhook| webhook.id == known).ok_or_else(not_found)?)
    }

    fn check_address(&self, url: &str) -> Result<(), Refusal> {
        if url.len() > MAX_URL {
            return Err(Refusal::bad_request(format!("`webhook_url` may have {MAX_URL} characters.")));
        }
        let address: Url = url.parse().map_err(|_| Refusal::bad_request("`webhook_url` is no address; begin it with `https://`."))?;
        self.parts().egress.check_url(&address).map_err(|error| Refusal::bad_request(format!("`webhook_url`: {error}.")))
    }

    fn webhook_body(&self, scope: Scope, webhook: &Webhook) -> Result<WebhookBody, ApiError> {
        let secret = if scope.may(Permission::EditTriggers) { self.secret_of(webhook)? } else { MASKED.to_owned() };
        Ok(WebhookBody {
            id: ids::WEBHOOK.show(webhook.id),
            webhook_url: webhook.url.clone(),
            version: webhook.version.name(),
            enabled_events: webhook.events.clone(),
            secret,
            created_at: webhook.created_at.to_string(),
            updated_at: webhook.updated_at.to_string(),
        })
    }

    fn secret_of(&self, webhook: &Webhook) -> Result<String, ApiError> {
        let plain = self.parts().sealer.open(&webhook.secret, Webhook::place(webhook.id))?;
        Ok(String::from_utf8_lossy(&plain).into_owned())
    }

    /// What a message is signed with now: the secret, and for a while the one before.
    pub(crate) fn signing_secrets(&self, webhook: &Webhook) -> Result<Vec<String>, ApiError> {
        let mut secrets = vec![self.secret_of(webhook)?];
        if let Some((former, until)) = &webhook.former
            && *until > self.parts().clock.now()
        {
            let plain = self.parts().sealer.open(former, Webhook::former_place(webhook.id))?;
            secrets.push(String::from_utf8_lossy(&plain).into_owned());
        }
        Ok(secrets)
    }

    /// The webhook of a project, in a list of one.
    #[kernel::boxed]
    pub async fn webhooks(&self, scope: Scope, limit: Option<&str>, cursor: Option<&str>) -> Result<Page<WebhookBody>, ApiError> {
        let window = Window::read(limit, cursor, 100)?;
        let webhook = self.webhook(scope.project).await?;
        let bodies = webhook.iter().map(|webhook| self.webhook_body(scope, webhook)).collect::<Result<Vec<_>, _>>()?;
        Ok(window.cut(bodies))
    }

    #[kernel::boxed]
    pub async fn read_webhook(&self, scope: Scope, id: &str) -> Result<WebhookBody, ApiError> {
        self.webhook_body(scope, &self.webhook_of_id(scope, id).await?)
    }

    /// Makes the webhook of a project that has none.
    #[kernel::boxed]
    pub async fn create_webhook(&self, scope: Scope, new: WebhookChange) -> Result<WebhookBody, ApiError> {
        let url = new.url.ok_or_else(|| Refusal::bad_request("`webhook_url` is required."))?;
        let events = without_doubles(new.events.ok_or_else(|| Refusal::bad_request("`enabled_events` is required."))?);
        let version = read_version(new.version.as_deref())?;
        self.check_address(&url)?;
        check_events(&events, version)?;
        let (id, now) = (ComposioWebhookId::new(), self.parts().clock.now());
        let secret = webhook::secret(&random_bytes());
        let sealed = self.parts().sealer.seal(secret.as_bytes(), Webhook::place(id));
        let row = row! {
            project_id: scope.project,
            id: id,
            url: url.as_str(),
            version: version.name(),
            events: &json!(events),
            secret: sealed.clone(),
            created_at: now,
            updated_at: now,
            created_by_id: scope.author(),
        };
        match self.parts().db.insert("composio_webhooks", row).await {
            Ok(()) => {}
            Err(StoreError::Conflict) => {
                let why = "This project has a webhook subscription already; change that one.";
                return Err(Refusal::conflict("WebhookSubscription_AlreadyExists", why).into());
            }
            Err(error) => return Err(error.into()),
        }
        let webhook = Webhook { id, url, version, events, secret: sealed, former: None, created_at: now, updated_at: now };
        self.webhook_body(scope, &webhook)
    }

    #[kernel::boxed]
    pub async fn change_webhook(&self, scope: Scope, id: &str, change: WebhookChange) -> Result<WebhookBody, ApiError> {
        let mut webhook = self.webhook_of_id(scope, id).await?;
        if let Some(url) = change.url {
            self.check_address(&url)?;
            webhook.url = url;
        }
        if let Some(version) = change.version.as_deref() {
            webhook.version = read_version(Some(version))?;
        }
        if let Some(events) = change.events {
            webhook.events = without_doubles(events);
        }
        check_events(&webhook.events, webhook.version)?;
        webhook.updated_at = self.parts().clock.now();
        let sql = "update composio_webhooks set url = $3, version = $4, events = $5, updated_at = $6 where project_id = $1 and id = $2";
        let events = json!(webhook.events);
        let args = args![scope.project, webhook.id, webhook.url.as_str(), webhook.version.name(), &events, webhook.updated_at];
        if self.parts().db.execute(sql, args).await? == 0 {
            return Err(not_found().into());
        }
        self.webhook_body(scope, &webhook)
    }

    /// Deletes the webhook, with what it was still to be told.
    #[kernel::boxed]
    pub async fn delete_webhook(&self, scope: Scope, id: &str) -> Result<(), ApiError> {
        let webhook = self.webhook_of_id(scope, id).await?;
        let sql = "delete from composio_webhooks where project_id = $1 and id = $2";
        if self.parts().db.execute(sql, args![scope.project, webhook.id]).await? == 0 {
            return Err(not_found().into());
        }
        Ok(())
    }

    /// Signs with another secret from now on; the one before signs too for a day.
    #[kernel::boxed]
    pub async fn rotate_webhook_secret(&self, scope: Scope, id: &str) -> Result<RotatedSecret, ApiError> {
        let webhook = self.webhook_of_id(scope, id).await?;
        let (parts, now) = (self.parts(), self.parts().clock.now());
        let former = parts.sealer.seal(self.secret_of(&webhook)?.as_bytes(), Webhook::former_place(webhook.id));
        let secret = webhook::secret(&random_bytes());
        let sealed = parts.sealer.seal(secret.as_bytes(), Webhook::place(webhook.id));
        let sql = "update composio_webhooks set secret = $3, former_secret = $4, former_until = $5, updated_at = $6 \
                   where project_id = $1 and id = $2 and secret = $7";
        let args = args![scope.project, webhook.id, sealed, former, now.plus(BOTH_SIGN), now, webhook.secret];
        if parts.db.execute(sql, args).await? == 0 {
            let why = "The secret was changed meanwhile; read the webhook subscription again.";
            return Err(Refusal::conflict("WebhookSubscription_Changed", why).into());
        }
        Ok(RotatedSecret { id: ids::WEBHOOK.show(webhook.id), secret })
    }
}

/// Seals the secrets of all webhooks with the current key; one that changes meanwhile is left to its writer.
pub(crate) async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, ApiError> {
    let mut resealed = 0;
    for row in db.all("select project_id, id, secret, former_secret from composio_webhooks", args![]).await? {
        let (project, id): (ProjectId, ComposioWebhookId) = (row.get("project_id")?, row.get("id")?);
        let (secret, former): (Vec<u8>, Option<Vec<u8>>) = (row.get("secret")?, row.get("former_secret")?);
        let again = |old: &[u8], place: SealedColumn<'static>| Ok::<_, ApiError>(sealer.seal(&sealer.open(old, place)?, place));
        if sealer.is_current(&secret) && former.as_ref().is_none_or(|former| sealer.is_current(former)) {
            continue;
        }
        let new = again(&secret, Webhook::place(id))?;
        let new_former = former.as_deref().map(|former| again(former, Webhook::former_place(id))).transpose()?;
        let sql = "update composio_webhooks set secret = $3, former_secret = $4 where project_id = $1 and id = $2 and secret = $5";
        resealed += db.execute(sql, args![project, id, new, new_former, secret]).await?;
    }
    Ok(resealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_that_there_are_can_be_wanted() {
        let events = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(check_events(&events(&[TRIGGER_MESSAGE, ACCOUNT_EXPIRED]), Version::V3).is_ok());
        assert!(check_events(&events(&[TRIGGER_MESSAGE]), Version::V1).is_ok());
        assert!(check_events(&[], Version::V3).is_err());
        let error = check_events(&events(&["composio.trigger.mesage"]), Version::V3).unwrap_err();
        assert!(error.message.ends_with("Did you mean `composio.trigger.message`?"), "{error}");
        assert!(check_events(&events(&[ACCOUNT_EXPIRED]), Version::V2).unwrap_err().message.contains("V3 only"));
        assert_eq!(without_doubles(events(&["a", "b", "a"])), ["a", "b"]);
    }
}
