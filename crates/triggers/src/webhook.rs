//! Subscriptions whose events go to the webhook of their project, in place of a workflow. Who keeps that webhook, and how its messages look,
//! is known to whoever answers the port.

use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use futures_util::future::BoxFuture;
use kernel::{ConnectionId, DeliveryId, EndUserId, ProjectId, Scope, SubscriptionId};
use serde_json::{Map, json};
use store::{Row, StoreError, args};

use crate::backoff::AttemptOutcome;
use crate::engine::AttemptEnd;
use crate::model::{Delivery, EventRow, Subscription, TargetKind};
use crate::store::{self as rows, subscription_columns};
use crate::subscriptions::fires;
use crate::{Made, NewSubscription, TriggerError, Triggers};

/// A receiver says with it that it wants no more.
const GONE: u16 = 410;
/// As many rows as are looked through where a filter names several things.
const MOST: i64 = 10_000;

/// An event on its way to the webhook of its project.
#[derive(Clone, Copy, Debug)]
pub struct WebhookEvent<'a> {
    pub trigger: &'a Subscription,
    pub event: &'a EventRow,
    /// The same for every try.
    pub delivery: DeliveryId,
    /// Which try it is, from 1 on.
    pub attempt: i64,
}

/// What became of an event at the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It answered with this status.
    Answered(u16),
    /// No answer came.
    Unreachable(String),
    /// It does not take such events.
    Unwanted(String),
    /// There is none.
    Nowhere(String),
}

/// Whoever keeps the webhooks of projects.
pub trait ProjectWebhook: Send + Sync + Debug {
    /// Sends an event, once.
    fn send<'a>(&'a self, event: WebhookEvent<'a>) -> BoxFuture<'a, Result<Sent, StoreError>>;

    /// A trigger was switched off by something other than its owner.
    fn disabled<'a>(&'a self, trigger: &'a Subscription, why: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// The keeper, who may hold triggers and so is not held here.
#[derive(Debug, Default)]
pub(crate) struct Keeper(RwLock<Option<Weak<dyn ProjectWebhook>>>);

impl Keeper {
    fn get(&self) -> Option<Arc<dyn ProjectWebhook>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(Weak::upgrade)
    }
}

/// Which triggers of the webhook to list; a filter that is empty leaves out nothing.
#[derive(Clone, Debug, Default)]
pub struct WebhookTriggers {
    pub ids: Vec<SubscriptionId>,
    pub connections: Vec<ConnectionId>,
    /// The end users that they are for; none stands for the project itself.
    pub owners: Vec<Option<EndUserId>>,
    /// Provider, integration and event.
    pub events: Vec<(String, String, String)>,
    /// Only those whose events are sent.
    pub only_active: bool,
}

impl WebhookTriggers {
    /// Whether a query of the database holds all of it.
    fn is_plain(&self) -> bool {
        [self.ids.len(), self.connections.len(), self.owners.len(), self.events.len()].into_iter().all(|named| named <= 1)
    }

    fn has(&self, row: &Subscription) -> bool {
        let event = (row.provider.as_str(), row.integration.as_str(), row.event_key.as_str());
        (self.ids.is_empty() || self.ids.contains(&row.id))
            && (self.connections.is_empty() || row.connection.is_some_and(|id| self.connections.contains(&id)))
            && (self.owners.is_empty() || self.owners.contains(&row.actor.end_user))
            && (self.events.is_empty() || self.events.iter().any(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str()) == event))
    }

    /// The same in parts that name one thing each, of the kind that leaves the fewest rows.
    fn parts(&self) -> Vec<Self> {
        let only_active = self.only_active;
        let of = |part: Self| Self { only_active, ..part };
        if !self.ids.is_empty() {
            self.ids.iter().map(|id| of(Self { ids: vec![*id], ..Self::default() })).collect()
        } else if !self.connections.is_empty() {
            self.connections.iter().map(|id| of(Self { connections: vec![*id], ..Self::default() })).collect()
        } else if !self.owners.is_empty() {
            self.owners.iter().map(|owner| of(Self { owners: vec![*owner], ..Self::default() })).collect()
        } else {
            self.events.iter().map(|event| of(Self { events: vec![event.clone()], ..Self::default() })).collect()
        }
    }
}

macro_rules! webhook_rows {
    ($selected:expr, $rest:literal) => {
        concat!(
            "select ",
            $selected,
            " from trigger_subscriptions where project_id = $1 and target = 'webhook' and deleted_at is null and ($2 is null or id = $2) \
             and ($3 is null or connection_id = $3) and ($4 is null or end_user_id = $4) and (not $5 or end_user_id is null) \
             and ($6 is null or provider = $6) and ($7 is null or integration = $7) and ($8 is null or event_key = $8) \
             and (not $9 or (is_active and is_valid))",
            $rest
        )
    };
}

impl Triggers {
    /// From now on events are sent by this keeper, as long as the caller keeps it.
    pub fn set_webhook(&self, keeper: &Arc<dyn ProjectWebhook>) {
        *self.0.webhook.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(keeper));
    }

    /// Makes a subscription for the project's webhook. What is watched for the same end user already is started again.
    #[kernel::boxed]
    pub async fn subscribe_webhook(&self, scope: Scope, new: NewSubscription) -> Result<Made, TriggerError> {
        let new = NewSubscription { target: TargetKind::Webhook, is_active: true, is_valid: true, is_test: false, ..new };
        let twin = match self.subscribe(scope, new.clone()).await {
            // Somebody else made it at the same time.
            Err(TriggerError::Taken { subscription: None, .. }) => match self.subscribe(scope, new.clone()).await {
                Err(TriggerError::Taken { subscription: Some(twin), .. }) => twin,
                other => return other,
            },
            Err(TriggerError::Taken { subscription: Some(twin), .. }) => twin,
            other => return other,
        };
        let id: SubscriptionId = twin.parse().map_err(|_| TriggerError::Taken { subscription: Some(twin), trigger: None })?;
        let row = self.live(scope, id).await?;
        let has_secret = new.data.get("secret").or_else(|| new.data.pointer("/trigger_config/secret")).is_some();
        let subscription = if fires(&row) && !has_secret { row } else { self.edit_subscription(scope, id, new).await? };
        Ok(Made { subscription, secret: None, setup: None })
    }

    /// One of the triggers of the project's webhook.
    #[kernel::boxed]
    pub async fn webhook_trigger(&self, scope: Scope, id: SubscriptionId) -> Result<Subscription, TriggerError> {
        let row = self.live(scope, id).await?;
        if row.target == TargetKind::Webhook { Ok(row) } else { Err(TriggerError::NotFound(crate::RowKind::Subscription)) }
    }

    /// The triggers of the project's webhook, newest first, and how many fit.
    #[kernel::boxed]
    pub async fn webhook_triggers(
        &self,
        scope: Scope,
        query: &WebhookTriggers,
        offset: usize,
        limit: usize,
    ) -> Result<(Vec<Subscription>, usize), TriggerError> {
        let (skip, most) = (i64::try_from(offset).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
        if query.is_plain() {
            let rows = self.webhook_page(scope, query, skip, most).await?;
            return Ok((rows, self.webhook_count(scope, query).await?));
        }
        let mut found = Vec::new();
        for part in query.parts() {
            found.extend(self.webhook_page(scope, &part, 0, MOST).await?.into_iter().filter(|row| query.has(row)));
        }
        found.sort_unstable_by_key(|row| std::cmp::Reverse(row.id.uuid()));
        found.dedup_by_key(|row| row.id);
        let total = found.len();
        Ok((found.into_iter().skip(offset).take(limit).collect(), total))
    }

    async fn webhook_page(&self, scope: Scope, query: &WebhookTriggers, skip: i64, most: i64) -> Result<Vec<Subscription>, StoreError> {
        let sql = webhook_rows!(subscription_columns!(), " order by id desc limit $10 offset $11");
        let mut args: Vec<_> = filters(scope, query).into_iter().collect();
        args.extend(args![most, skip]);
        self.0.db.all(sql, args).await?.iter().map(rows::subscription).collect()
    }

    async fn webhook_count(&self, scope: Scope, query: &WebhookTriggers) -> Result<usize, StoreError> {
        let row = self.0.db.optional(webhook_rows!("count(*) as found", ""), filters(scope, query)).await?;
        let found: i64 = row.map_or(Ok(0), |row| row.get("found"))?;
        Ok(usize::try_from(found).unwrap_or(0))
    }

    /// Sends the event of a delivery. What a receiver refuses may be taken later, when it was put right; only one that is gone is let go.
    pub(crate) async fn tell_webhook(
        &self,
        row: &Subscription,
        delivery: &Delivery,
        event: Option<&EventRow>,
    ) -> Result<AttemptEnd, StoreError> {
        let Some(event) = event else { return Ok(AttemptEnd::with(410, "The event is not kept any more.")) };
        let Some(keeper) = self.0.webhook.get() else { return Ok(AttemptEnd::with(503, "There is nobody here who sends webhooks.")) };
        let sent = keeper.send(WebhookEvent { trigger: row, event, delivery: delivery.id, attempt: delivery.attempts }).await?;
        let data = |status: Option<u16>| Map::from_iter([("webhook".to_owned(), json!({"status": status}))]);
        Ok(match sent {
            Sent::Answered(status @ 200..=299) => AttemptEnd { data: data(Some(status)), ..AttemptEnd::with(200, "success") },
            Sent::Answered(status) => {
                let end = AttemptEnd::with(i64::from(status), format!("The webhook answered with status {status}."));
                let outcome = if status == GONE { end.outcome } else { AttemptOutcome::Unreachable };
                AttemptEnd { data: data(Some(status)), outcome, ..end }
            }
            Sent::Unreachable(why) => AttemptEnd { data: data(None), outcome: AttemptOutcome::Unreachable, ..AttemptEnd::with(424, why) },
            Sent::Unwanted(why) => AttemptEnd::with(200, why),
            Sent::Nowhere(why) => AttemptEnd::with(404, why),
        })
    }

    /// Tells the webhook of triggers that were switched off, as they are now.
    pub(crate) async fn tell_disabled(&self, changed: &[Row], why: &str) -> Result<(), StoreError> {
        for row in changed {
            let row = rows::subscription(row)?;
            if row.target == TargetKind::Webhook
                && let Some(keeper) = self.0.webhook.get()
            {
                keeper.disabled(&row, why).await?;
            }
        }
        Ok(())
    }
}

/// What a query that names one thing of each kind at most asks the database.
fn filters(scope: Scope, query: &WebhookTriggers) -> [store::Arg<'_>; 9] {
    let event = query.events.first();
    let owner = query.owners.first().copied();
    // Whoever acts for one end user sees nobody else's.
    let end_user = match (scope.end_user(), owner) {
        (Some(own), Some(Some(other))) if own != other => Some(EndUserId::nil()),
        (own, owner) => own.or(owner.flatten()),
    };
    let project: ProjectId = scope.project;
    args![
        project,
        query.ids.first().copied(),
        query.connections.first().copied(),
        end_user,
        owner == Some(None),
        event.map(|(provider, _, _)| provider.as_str()),
        event.map(|(_, integration, _)| integration.as_str()),
        event.map(|(_, _, key)| key.as_str()),
        query.only_active
    ]
}
