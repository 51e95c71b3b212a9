//! Subscriptions: made, changed, started, stopped, refreshed, revoked, deleted. The provider is asked before anything is promised, and told
//! to stop after the row says so.

use kernel::json::sorted;
use kernel::{ConnectionId, EndUserId, Scope, SubscriptionId, Timestamp, schema};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use store::{Page, StoreError, args};

use crate::context;
use crate::model::{Actor, Labels, Lifecycle, Subscription, TargetKind, WEBHOOK, WEBHOOK_EVENT};
use crate::port::WatchMethod;
use crate::provider::WatchedEvent;
use crate::store::{self as rows, Hidden, ParentQuery};
use crate::target::{SUBSCRIPTION, check_spelling, read_event};
use crate::{RowKind, TriggerError, Triggers};

/// What a subscription shall be.
#[derive(Clone, Debug)]
pub struct NewSubscription {
    pub connection: Option<ConnectionId>,
    pub labels: Labels,
    /// It never changes.
    pub target: TargetKind,
    pub data: Value,
    pub is_active: bool,
    pub is_valid: bool,
    pub is_test: bool,
}

/// A subscription that was just made, with what is shown once.
#[derive(Clone, Debug)]
pub struct Made {
    pub subscription: Subscription,
    /// The secret that the sender needs, where a person has to carry it there.
    pub secret: Option<String>,
    /// What a person has to do at the provider.
    pub setup: Option<String>,
}

/// What was asked for, checked.
struct Checked {
    event_key: String,
    actor: Actor,
    watched: Option<WatchedEvent>,
    fingerprint: Vec<u8>,
    data: Value,
    /// The sender's secret, as the owner gave it.
    secret: Option<String>,
}

impl Triggers {
    #[kernel::boxed]
    pub async fn subscribe(&self, scope: Scope, new: NewSubscription) -> Result<Made, TriggerError> {
        let checked = self.check_subscription(scope, &new, None).await?;
        if let Some(twin) = rows::live_twin(&self.0.db, scope.project, &checked.fingerprint).await? {
            return Err(taken(&twin));
        }
        let now = self.0.clock.now();
        let id = SubscriptionId::new();
        let (provider, integration) = match &checked.watched {
            Some(watched) => (watched.connection.provider.clone(), watched.integration.key.clone()),
            None => ("native".to_owned(), WEBHOOK.to_owned()),
        };
        let mut row = Subscription {
            id,
            project: scope.project,
            connection: new.connection,
            provider,
            integration,
            event_key: checked.event_key.clone(),
            labels: new.labels,
            target: new.target,
            data: checked.data.clone(),
            is_active: new.is_active || new.is_test,
            is_valid: new.is_valid,
            is_test: new.is_test,
            reason: None,
            token: token(),
            trigger_id: None,
            actor: checked.actor,
            life: Lifecycle {
                created_at: now,
                updated_at: now,
                deleted_at: None,
                created_by: Some(scope.author()),
                updated_by: Some(scope.author()),
                deleted_by: None,
            },
            suspended_at: None,
            secret: None,
            poll_cursor: None,
        };
        let shown = self.begin(&mut row, &checked).await?;
        let hidden = Hidden { fingerprint: &checked.fingerprint, poll_at: poll_at(&row, checked.watched.as_ref(), now) };
        if let Err(error) = rows::insert_subscription(&self.0.db, &row, &hidden).await {
            self.end(&row, checked.watched.as_ref()).await;
            return Err(match error {
                StoreError::Conflict => TriggerError::Taken { subscription: None, trigger: None },
                other => other.into(),
            });
        }
        let setup = checked.watched.as_ref().and_then(|watched| self.setup(watched, &row));
        Ok(Made { subscription: row, secret: shown, setup })
    }

    /// What a person still has to do at the provider.
    fn setup(&self, watched: &WatchedEvent, row: &Subscription) -> Option<String> {
        let name = &watched.integration.name;
        let mut steps = Vec::new();
        if let WatchMethod::ByHand(help) = &watched.method {
            steps.push(format!("Tell {name} to send events to {}.", self.address(row)));
            steps.extend(help.clone());
        }
        if row.secret.is_none()
            && !matches!(watched.method, WatchMethod::Poll(_))
            && watched.source.has_own_secret(&watched.integration.key)
        {
            steps.push(format!("{name} chooses what it signs with: save the subscription again with that secret as `data.secret`."));
        }
        (!steps.is_empty()).then(|| steps.join(" "))
    }

    /// Replaces everything that its owner wrote. A poll goes on where it was, unless something else is watched now.
    #[kernel::boxed]
    pub async fn edit_subscription(&self, scope: Scope, id: SubscriptionId, new: NewSubscription) -> Result<Subscription, TriggerError> {
        let old = self.live(scope, id).await?;
        let new = NewSubscription { target: old.target, ..new };
        let checked = self.check_subscription(scope, &new, Some(&old)).await?;
        if let Some(twin) = rows::live_twin(&self.0.db, scope.project, &checked.fingerprint).await?.filter(|twin| twin.id != id) {
            return Err(taken(&twin));
        }
        let now = self.0.clock.now();
        let mut row = Subscription {
            connection: new.connection,
            event_key: checked.event_key.clone(),
            labels: new.labels,
            data: checked.data.clone(),
            is_active: new.is_active || new.is_test,
            is_valid: new.is_valid,
            is_test: new.is_test,
            reason: None,
            actor: checked.actor,
            ..old.clone()
        };
        if let Some(watched) = &checked.watched {
            row.provider = watched.connection.provider.clone();
            row.integration = watched.integration.key.clone();
        }
        let same = old.connection == row.connection && read_event(&old.data)? == read_event(&row.data)?;
        row.life.updated_at = now;
        row.life.updated_by = Some(scope.author());
        if !same || checked.secret.is_some() || fires(&row) != fires(&old) {
            if !same {
                (row.trigger_id, row.poll_cursor) = (None, None);
            }
            if fires(&row) && (row.trigger_id.is_none() || !same) || checked.secret.is_some() {
                self.begin(&mut row, &checked).await?;
            }
            if !fires(&row) {
                row.trigger_id = None;
            }
        }
        let hidden = Hidden { fingerprint: &checked.fingerprint, poll_at: poll_at(&row, checked.watched.as_ref(), now) };
        let saved = rows::update_subscription(&self.0.db, &row, &hidden).await?.ok_or(TriggerError::NotFound(RowKind::Subscription))?;
        if old.trigger_id.is_some() && old.trigger_id != saved.trigger_id {
            let watched = self.watched_by(&old).await.ok().flatten();
            self.end(&old, watched.as_ref()).await;
        }
        Ok(saved)
    }

    /// Starts a subscription: the provider is told first.
    #[kernel::boxed]
    pub async fn start_subscription(&self, scope: Scope, id: SubscriptionId) -> Result<Subscription, TriggerError> {
        self.switch(scope, id, |row| row.is_active = true).await
    }

    #[kernel::boxed]
    pub async fn stop_subscription(&self, scope: Scope, id: SubscriptionId) -> Result<Subscription, TriggerError> {
        self.switch(scope, id, |row| row.is_active = false).await
    }

    #[kernel::boxed]
    pub async fn refresh_subscription(&self, scope: Scope, id: SubscriptionId) -> Result<Subscription, TriggerError> {
        self.switch(scope, id, |row| row.is_valid = true).await
    }

    /// Makes a subscription invalid, which also stops it: whoever makes it valid again starts it again.
    #[kernel::boxed]
    pub async fn revoke_subscription(&self, scope: Scope, id: SubscriptionId) -> Result<Subscription, TriggerError> {
        self.switch(scope, id, |row| (row.is_valid, row.is_active) = (false, false)).await
    }

    async fn switch(&self, scope: Scope, id: SubscriptionId, change: impl FnOnce(&mut Subscription)) -> Result<Subscription, TriggerError> {
        let old = self.live(scope, id).await?;
        let mut row = old.clone();
        change(&mut row);
        row.reason = None;
        row.life.updated_at = self.0.clock.now();
        row.life.updated_by = Some(scope.author());
        let (event_key, config) = read_event(&row.data)?;
        let fingerprint = fingerprint(&Watched::by(&row, &event_key, &config));
        let watched = match self.watched_by(&row).await {
            Ok(watched) => watched,
            Err(error) if !fires(&row) => {
                tracing::debug!(subscription = %id, %error, "stopped without its provider");
                None
            }
            Err(error) => return Err(error),
        };
        if fires(&row) && !fires(&old) {
            if let Some(watched) = &watched {
                watched.connection.require_usable()?;
            }
            // One that was paused with its connection may still have a webhook at the provider.
            self.end(&old, watched.as_ref()).await;
            return self.save_started(row, watched).await;
        }
        if !fires(&row) {
            row.trigger_id = None;
        }
        let hidden = Hidden { fingerprint: &fingerprint, poll_at: poll_at(&row, watched.as_ref(), row.life.updated_at) };
        let saved = rows::update_subscription(&self.0.db, &row, &hidden).await?.ok_or(TriggerError::NotFound(RowKind::Subscription))?;
        if fires(&old) && !fires(&saved) {
            self.end(&old, watched.as_ref()).await;
        }
        Ok(saved)
    }

    /// Makes events come for a row that fires now, and writes it.
    pub(crate) async fn save_started(&self, mut row: Subscription, watched: Option<WatchedEvent>) -> Result<Subscription, TriggerError> {
        let (event_key, config) = read_event(&row.data)?;
        let fingerprint = fingerprint(&Watched::by(&row, &event_key, &config));
        let checked = Checked { event_key, actor: row.actor, watched, fingerprint, data: row.data.clone(), secret: None };
        self.begin(&mut row, &checked).await?;
        let hidden = Hidden { fingerprint: &checked.fingerprint, poll_at: poll_at(&row, checked.watched.as_ref(), row.life.updated_at) };
        rows::update_subscription(&self.0.db, &row, &hidden).await?.ok_or(TriggerError::NotFound(RowKind::Subscription))
    }

    /// Forgets a subscription; its history stays.
    #[kernel::boxed]
    pub async fn unsubscribe(&self, scope: Scope, id: SubscriptionId) -> Result<(), TriggerError> {
        let old = self.live(scope, id).await?;
        let sql = "update trigger_subscriptions set deleted_at = $3, deleted_by_id = $4, updated_at = $3, updated_by_id = $4, poll_at = null \
                   where project_id = $1 and id = $2 and deleted_at is null";
        if self.0.db.execute(sql, args![scope.project, id, self.0.clock.now(), scope.author()]).await? == 0 {
            return Err(TriggerError::NotFound(RowKind::Subscription));
        }
        let watched = self.watched_by(&old).await.ok().flatten();
        self.end(&old, watched.as_ref()).await;
        Ok(())
    }

    /// Also one that was deleted, so that its deliveries can be understood.
    #[kernel::boxed]
    pub async fn subscription(&self, scope: Scope, id: SubscriptionId) -> Result<Subscription, TriggerError> {
        let found = rows::subscription_by_id(&self.0.db, scope.project, id).await?;
        found.filter(|row| scope.sees(row.actor.end_user.into())).ok_or(TriggerError::NotFound(RowKind::Subscription))
    }

    pub(crate) async fn live(&self, scope: Scope, id: SubscriptionId) -> Result<Subscription, TriggerError> {
        let row = self.subscription(scope, id).await?;
        if row.life.deleted_at.is_some() { Err(TriggerError::NotFound(RowKind::Subscription)) } else { Ok(row) }
    }

    #[kernel::boxed]
    pub async fn subscriptions(&self, scope: Scope, query: &ParentQuery) -> Result<Page<Subscription>, TriggerError> {
        let query = ParentQuery { end_user: scope.end_user().or(query.end_user), ..query.clone() };
        self.page(scope.project, query.size, rows::subscriptions(&self.0.db, scope.project, &query).await?, rows::subscription).await
    }

    async fn check_subscription(&self, scope: Scope, new: &NewSubscription, old: Option<&Subscription>) -> Result<Checked, TriggerError> {
        check_spelling(&new.data, SUBSCRIPTION)?;
        let mut data = new.data.clone();
        let secret = take_secret(&mut data)?;
        let (event_key, config) = read_event(&data)?;
        if new.target == TargetKind::Webhook
            && let Some(field) =
                ["references", "inputs_fields", "selector"].iter().find(|field| data.get(field).is_some_and(|v| !v.is_null()))
        {
            let why = "has no meaning here: events of this trigger go to the project's webhook as they are";
            return Err(TriggerError::Invalid(format!("`data.{field}` {why}")));
        }
        // A test runs nothing.
        let aimed = if new.is_test { json!({"inputs_fields": data.get("inputs_fields")}) } else { data.clone() };
        self.check_target(scope, &aimed, &context::known()).await?;
        if let Some(ordered) = data.get("ordered").filter(|ordered| !ordered.is_null() && !ordered.is_boolean()) {
            return Err(TriggerError::Invalid(format!("`data.ordered` must be true or false, not {ordered}")));
        }
        let watched = match new.connection {
            Some(connection) => {
                let connection = self.0.connections.seen(scope, connection).await?;
                let connection = self.0.connections.look_again(connection).await?;
                connection.require_usable()?;
                let watched = self.watched(scope.project, connection, &event_key, config.clone()).await?;
                check_config(&watched, &config)?;
                Some(watched)
            }
            None if event_key == WEBHOOK_EVENT => None,
            None => return Err(TriggerError::Invalid(format!("`connection_id` is required, except for `{WEBHOOK_EVENT}`"))),
        };
        if watched.is_none() {
            let known = match (&secret, old) {
                (None, Some(old)) => self.secret(old)?,
                _ => secret.clone(),
            };
            crate::ingress::plain::check(&config, known.as_deref())?;
        }
        let actor = acting(scope, old.map(|old| &old.actor), watched.as_ref());
        let (target, is_test) = (new.target, new.is_test);
        let same =
            Watched { connection: new.connection, event_key: &event_key, config: &config, target, end_user: actor.end_user, is_test };
        Ok(Checked { fingerprint: fingerprint(&same), event_key, actor, watched, data, secret })
    }

    /// Makes events come, if they shall; the secret that a person has to carry to the provider, if there is one.
    async fn begin(&self, row: &mut Subscription, checked: &Checked) -> Result<Option<String>, TriggerError> {
        if let Some(secret) = &checked.secret {
            row.secret = Some(self.seal_secret(row, secret));
        }
        let Some(watched) = &checked.watched else { return Ok(None) };
        if matches!(watched.method, WatchMethod::Poll(_)) || !fires(row) {
            return Ok(None);
        }
        let known = self.secret(row)?;
        let is_theirs = watched.source.has_own_secret(&watched.integration.key);
        let secret = known.clone().unwrap_or_else(token);
        if let WatchMethod::Register = watched.method {
            let registered = match Box::pin(self.register(watched, row, &secret)).await {
                Ok(registered) => registered,
                Err(error) => {
                    Box::pin(self.undo_registration(watched)).await;
                    return Err(error);
                }
            };
            row.trigger_id = registered.remote.or_else(|| Some(format!("reg_{}", row.token)));
            if let Some(secret) = registered.secret.or((!is_theirs || known.is_some()).then_some(secret)) {
                row.secret = Some(self.seal_secret(row, &secret));
            }
            return Ok(None);
        }
        if known.is_none() && !is_theirs {
            row.secret = Some(self.seal_secret(row, &secret));
            return Ok(Some(secret));
        }
        Ok(None)
    }

    /// Tells the provider to stop, as well as it can be told.
    pub(crate) async fn end(&self, row: &Subscription, watched: Option<&WatchedEvent>) {
        let (Some(watched), Some(trigger)) = (watched, &row.trigger_id) else { return };
        // A provider that knows one trigger for the same configuration has one for several of ours, such as a test.
        let sharing = rows::subscriptions_by_trigger(&self.0.db, &row.provider, trigger).await.unwrap_or_default();
        if sharing.iter().any(|other| other.id != row.id && fires(other)) {
            return;
        }
        let secret = self.secret(row).ok().flatten().unwrap_or_default();
        if let Err(error) = self.unregister(watched, row, &secret).await
            && !crate::provider::is_gone(&error)
        {
            tracing::warn!(subscription = %row.id, %error, "the provider could not be told to stop; its events are refused from now on");
        }
    }
}

/// Whether events start runs.
pub(crate) fn fires(row: &Subscription) -> bool {
    row.is_active && row.is_valid && row.life.deleted_at.is_none()
}

fn poll_at(row: &Subscription, watched: Option<&WatchedEvent>, now: Timestamp) -> Option<Timestamp> {
    matches!(watched?.method, WatchMethod::Poll(_)).then_some(now).filter(|_| fires(row))
}

/// A secret in the request is sealed and never part of what is shown.
fn take_secret(data: &mut Value) -> Result<Option<String>, TriggerError> {
    let mut taken = data.as_object_mut().and_then(|fields| fields.shift_remove("secret"));
    if let Some(config) = data.get_mut("trigger_config").and_then(Value::as_object_mut)
        && let Some(secret) = config.shift_remove("secret")
    {
        taken = Some(secret);
    }
    match taken {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(secret)) if !secret.is_empty() => Ok(Some(secret)),
        Some(_) => Err(TriggerError::Invalid("`secret` must be text".to_owned())),
    }
}

fn check_config(watched: &WatchedEvent, config: &Map<String, Value>) -> Result<(), TriggerError> {
    schema::check(&watched.event.config_schema.value(), &Value::Object(config.clone()))
        .map_err(|error| TriggerError::Invalid(format!("`data.trigger_config`: {error}")))
}

/// What makes two subscriptions one.
struct Watched<'a> {
    connection: Option<ConnectionId>,
    event_key: &'a str,
    config: &'a Map<String, Value>,
    target: TargetKind,
    end_user: Option<EndUserId>,
    is_test: bool,
}

impl<'a> Watched<'a> {
    fn by(row: &Subscription, event_key: &'a str, config: &'a Map<String, Value>) -> Self {
        let (target, end_user) = (row.target, row.actor.end_user);
        Self { connection: row.connection, event_key, config, target, end_user, is_test: row.is_test }
    }
}

/// One of connection, event and configuration may be watched once to run a workflow, and once by each end user for the project's webhook. A
/// test is a subscription of its own.
fn fingerprint(watched: &Watched<'_>) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(json!([watched.connection, watched.event_key, sorted(&Value::Object(watched.config.clone()))]).to_string());
    if watched.target == TargetKind::Webhook {
        hash.update(json!([watched.target.name(), watched.end_user]).to_string());
    } else if watched.is_test || watched.connection.is_none() {
        // Plain webhooks are told apart by their address alone.
        hash.update(token());
    }
    hash.finalize().to_vec()
}

/// A secret that nobody guesses.
pub(crate) fn token() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

fn taken(twin: &Subscription) -> TriggerError {
    TriggerError::Taken { subscription: Some(twin.id.to_string()), trigger: twin.trigger_id.clone() }
}

/// As whom a subscription acts: whoever saves it, with the accounts of whoever's account is watched.
fn acting(scope: Scope, before: Option<&Actor>, watched: Option<&WatchedEvent>) -> Actor {
    let end_user = match watched {
        Some(watched) => watched.connection.owner.end_user(),
        None => scope.end_user().or(before.and_then(|before| before.end_user)),
    };
    Actor { end_user, ..scope.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_makes_no_other_subscription() {
        let connection = Some(ConnectionId::new());
        let of = |config: Value| print(connection, &config, TargetKind::Workflow, None);
        let one = of(json!({"a": 1, "b": {"c": 2, "d": 3}}));
        assert_eq!(one, of(json!({"b": {"d": 3, "c": 2}, "a": 1})));
        assert_ne!(one, of(json!({"a": 1, "b": {"c": 3, "d": 2}})));
    }

    #[test]
    fn a_webhook_is_told_once_for_each_end_user() {
        let (config, one, other) = (json!({"a": 1}), Some(EndUserId::new()), Some(EndUserId::new()));
        for connection in [None, Some(ConnectionId::new())] {
            let of = |end_user| print(connection, &config, TargetKind::Webhook, end_user);
            assert_eq!(of(one), of(one));
            assert_ne!(of(one), of(other));
            assert_ne!(of(one), of(None));
            assert_ne!(of(None), print(connection, &config, TargetKind::Workflow, None));
        }
    }

    fn print(connection: Option<ConnectionId>, config: &Value, target: TargetKind, end_user: Option<EndUserId>) -> Vec<u8> {
        let config = config.as_object().unwrap();
        fingerprint(&Watched { connection, event_key: "E", config, target, end_user, is_test: false })
    }
}
