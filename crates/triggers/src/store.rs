//! Rows of triggers. Every query of a request names its project; those of the engine look at all of them.

use kernel::{ApprovalId, ConnectionId, DeliveryId, EventId, ProjectId, ScheduleId, SubscriptionId, Timestamp};
use serde_json::Value;
use store::{Arg, Db, Row, StoreError, Tx, args, holding};

use crate::model::{Actor, Attempt, Delivery, EventRow, Lifecycle, Parent, Schedule, State, Subscription, Words};

macro_rules! subscription_columns {
    () => {
        "project_id, id, connection_id, provider, integration, event_key, name, description, tags, meta, data, is_active, is_valid, is_test, reason, \
         suspended_at, token, secret, trigger_id, poll_cursor, actor_key_id, actor_user_id, created_at, updated_at, deleted_at, created_by_id, updated_by_id, \
         deleted_by_id"
    };
}

macro_rules! schedule_columns {
    () => {
        "project_id, id, event_key, name, description, tags, meta, data, is_active, next_fire_at, actor_key_id, actor_user_id, created_at, \
         updated_at, deleted_at, created_by_id, updated_by_id, deleted_by_id"
    };
}

macro_rules! delivery_columns {
    () => {
        "project_id, id, subscription_id, schedule_id, event_row_id, event_id, event_key, state, code, message, data, attempts, approval_id, due_at, \
         cancelled_by_id, created_at, updated_at"
    };
}

pub(crate) use delivery_columns;
pub(crate) use schedule_columns;

fn words(row: &Row) -> Result<Words, StoreError> {
    Ok(Words { name: row.get("name")?, description: row.get("description")?, tags: row.get("tags")?, meta: row.get("meta")? })
}

fn life(row: &Row) -> Result<Lifecycle, StoreError> {
    Ok(Lifecycle {
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        deleted_at: row.get("deleted_at")?,
        created_by: row.get("created_by_id")?,
        updated_by: row.get("updated_by_id")?,
        deleted_by: row.get("deleted_by_id")?,
    })
}

fn actor(row: &Row) -> Result<Actor, StoreError> {
    Ok(Actor { key: row.get("actor_key_id")?, user: row.get("actor_user_id")? })
}

pub(crate) fn subscription(row: &Row) -> Result<Subscription, StoreError> {
    Ok(Subscription {
        id: row.get("id")?,
        project: row.get("project_id")?,
        connection: row.get("connection_id")?,
        provider: row.get("provider")?,
        integration: row.get("integration")?,
        event_key: row.get("event_key")?,
        words: words(row)?,
        data: row.get("data")?,
        is_active: row.get("is_active")?,
        is_valid: row.get("is_valid")?,
        is_test: row.get("is_test")?,
        reason: row.get("reason")?,
        token: row.get("token")?,
        trigger_id: row.get("trigger_id")?,
        actor: actor(row)?,
        life: life(row)?,
        suspended_at: row.get("suspended_at")?,
        secret: row.get("secret")?,
        poll_cursor: row.get("poll_cursor")?,
    })
}

pub(crate) fn schedule(row: &Row) -> Result<Schedule, StoreError> {
    Ok(Schedule {
        id: row.get("id")?,
        project: row.get("project_id")?,
        event_key: row.get("event_key")?,
        words: words(row)?,
        data: row.get("data")?,
        is_active: row.get("is_active")?,
        next_fire_at: row.get("next_fire_at")?,
        actor: actor(row)?,
        life: life(row)?,
    })
}

pub(crate) fn delivery(row: &Row) -> Result<Delivery, StoreError> {
    let broken = |name: &str| StoreError::Column(name.to_owned());
    let subscription: Option<SubscriptionId> = row.get("subscription_id")?;
    let schedule: Option<ScheduleId> = row.get("schedule_id")?;
    let parent = subscription.map(Parent::Subscription).or(schedule.map(Parent::Schedule)).ok_or_else(|| broken("subscription_id"))?;
    Ok(Delivery {
        id: row.get("id")?,
        project: row.get("project_id")?,
        parent,
        event: row.get("event_row_id")?,
        event_id: row.get("event_id")?,
        event_key: row.get("event_key")?,
        state: State::named(&row.get::<String>("state")?).ok_or_else(|| broken("state"))?,
        code: row.get("code")?,
        message: row.get("message")?,
        data: row.get("data")?,
        attempts: row.get("attempts")?,
        approval: row.get("approval_id")?,
        due_at: row.get("due_at")?,
        cancelled_by: row.get("cancelled_by_id")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

pub(crate) fn attempt(row: &Row) -> Result<Attempt, StoreError> {
    Ok(Attempt {
        number: row.get("number")?,
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
        code: row.get("code")?,
        message: row.get("message")?,
        run: row.get("run_id")?,
    })
}

fn event(row: &Row) -> Result<EventRow, StoreError> {
    Ok(EventRow {
        id: row.get("id")?,
        project: row.get("project_id")?,
        subscription: row.get("subscription_id")?,
        event_id: row.get("event_id")?,
        event_type: row.get("event_type")?,
        headers: row.get("headers")?,
        body: row.get("body")?,
        attributes: row.get("attributes")?,
        received_at: row.get("received_at")?,
    })
}

fn one<T>(row: Option<Row>, read: impl FnOnce(&Row) -> Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    row.as_ref().map(read).transpose()
}

/// What a row gets besides what its model shows.
pub(crate) struct Hidden<'a> {
    pub(crate) fingerprint: &'a [u8],
    pub(crate) poll_at: Option<Timestamp>,
}

pub(crate) async fn insert_subscription(db: &Db, new: &Subscription, hidden: &Hidden<'_>) -> Result<(), StoreError> {
    let sql = "insert into trigger_subscriptions (project_id, id, connection_id, provider, integration, event_key, fingerprint, name, description, tags, \
               meta, data, is_active, is_valid, is_test, reason, token, secret, trigger_id, poll_cursor, poll_at, actor_key_id, actor_user_id, \
               created_at, updated_at, created_by_id, updated_by_id) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
               $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)";
    let args = args![
        new.project,
        new.id,
        new.connection,
        new.provider.as_str(),
        new.integration.as_str(),
        new.event_key.as_str(),
        hidden.fingerprint,
        new.words.name.as_deref(),
        new.words.description.as_deref(),
        new.words.tags.as_ref(),
        new.words.meta.as_ref(),
        &new.data,
        new.is_active,
        new.is_valid,
        new.is_test,
        new.reason.as_deref(),
        new.token.as_str(),
        new.secret.clone(),
        new.trigger_id.as_deref(),
        new.poll_cursor.as_ref(),
        hidden.poll_at,
        new.actor.key,
        new.actor.user,
        new.life.created_at,
        new.life.updated_at,
        new.life.created_by,
        new.life.updated_by
    ];
    db.execute(sql, args).await.map(|_| ())
}

/// Writes everything that an edit can change, unless the row was deleted meanwhile. Whoever writes decided whether it is active.
pub(crate) async fn update_subscription(db: &Db, row: &Subscription, hidden: &Hidden<'_>) -> Result<Option<Subscription>, StoreError> {
    let sql = concat!(
        "update trigger_subscriptions set connection_id = $3, provider = $4, integration = $5, event_key = $6, fingerprint = $7, name = $8, \
         description = $9, tags = $10, meta = $11, data = $12, is_active = $13, is_valid = $14, is_test = $15, reason = $16, secret = $17, \
         trigger_id = $18, poll_cursor = $19, poll_at = $20, actor_key_id = $21, actor_user_id = $22, updated_at = $23, updated_by_id = $24, \
         token = $25, suspended_at = null where project_id = $1 and id = $2 and deleted_at is null returning ",
        subscription_columns!()
    );
    let args = args![
        row.project,
        row.id,
        row.connection,
        row.provider.as_str(),
        row.integration.as_str(),
        row.event_key.as_str(),
        hidden.fingerprint,
        row.words.name.as_deref(),
        row.words.description.as_deref(),
        row.words.tags.as_ref(),
        row.words.meta.as_ref(),
        &row.data,
        row.is_active,
        row.is_valid,
        row.is_test,
        row.reason.as_deref(),
        row.secret.clone(),
        row.trigger_id.as_deref(),
        row.poll_cursor.as_ref(),
        hidden.poll_at,
        row.actor.key,
        row.actor.user,
        row.life.updated_at,
        row.life.updated_by,
        row.token.as_str()
    ];
    one(db.returning(sql, args).await?, subscription)
}

pub(crate) async fn subscription_by_id(db: &Db, project: ProjectId, id: SubscriptionId) -> Result<Option<Subscription>, StoreError> {
    let sql = concat!("select ", subscription_columns!(), " from trigger_subscriptions where project_id = $1 and id = $2");
    one(db.optional(sql, args![project, id]).await?, subscription)
}

/// The token names one subscription of one project; it is the address's secret.
pub(crate) async fn subscription_by_token(db: &Db, token: &str) -> Result<Option<Subscription>, StoreError> {
    let sql = concat!("select ", subscription_columns!(), " from trigger_subscriptions where token = $1 and deleted_at is null");
    one(db.optional(sql, args![token]).await?, subscription)
}

pub(crate) async fn subscriptions_by_trigger(db: &Db, provider: &str, trigger: &str) -> Result<Vec<Subscription>, StoreError> {
    let sql = concat!(
        "select ",
        subscription_columns!(),
        " from trigger_subscriptions where trigger_id = $1 and provider = $2 and deleted_at is null limit 100"
    );
    db.all(sql, args![trigger, provider]).await?.iter().map(subscription).collect()
}

/// The live subscriptions of one connection.
pub(crate) async fn of_connection(db: &Db, project: ProjectId, connection: ConnectionId) -> Result<Vec<Subscription>, StoreError> {
    let sql = concat!(
        "select ",
        subscription_columns!(),
        " from trigger_subscriptions where project_id = $1 and connection_id = $2 and deleted_at is null"
    );
    db.all(sql, args![project, connection]).await?.iter().map(subscription).collect()
}

/// The live subscriptions of a project that have a trigger at the provider.
pub(crate) async fn with_trigger(db: &Db, project: ProjectId, provider: &str) -> Result<Vec<Subscription>, StoreError> {
    let sql = concat!(
        "select ",
        subscription_columns!(),
        " from trigger_subscriptions where project_id = $1 and provider = $2 and trigger_id is not null and deleted_at is null"
    );
    db.all(sql, args![project, provider]).await?.iter().map(subscription).collect()
}

pub(crate) async fn live_twin(db: &Db, project: ProjectId, fingerprint: &[u8]) -> Result<Option<Subscription>, StoreError> {
    let sql = concat!(
        "select ",
        subscription_columns!(),
        " from trigger_subscriptions where project_id = $1 and fingerprint = $2 and deleted_at is null"
    );
    one(db.optional(sql, args![project, fingerprint]).await?, subscription)
}

/// Which rows to list.
#[derive(Clone, Debug, Default)]
pub struct ParentQuery {
    pub name: Option<String>,
    pub connection: Option<ConnectionId>,
    pub event_key: Option<String>,
    pub newest: Option<Timestamp>,
    pub oldest: Option<Timestamp>,
    pub next: Option<uuid::Uuid>,
    pub ascending: bool,
    pub limit: i64,
}

pub(crate) async fn subscriptions(db: &Db, project: ProjectId, query: &ParentQuery) -> Result<Vec<Subscription>, StoreError> {
    macro_rules! page {
        ($beyond:literal, $order:literal) => {
            concat!(
                "select ",
                subscription_columns!(),
                " from trigger_subscriptions where project_id = $1 and deleted_at is null and ($2 is null or lower(name) like $2 escape '\\') \
                 and ($3 is null or connection_id = $3) and ($4 is null or event_key = $4) and ($5 is null or created_at <= $5) \
                 and ($6 is null or created_at >= $6) and ($7 is null or id ",
                $beyond,
                " $7) order by id ",
                $order,
                " limit $8"
            )
        };
    }
    let args = args![
        project,
        query.name.as_deref().map(holding),
        query.connection,
        query.event_key.as_deref(),
        query.newest,
        query.oldest,
        query.next,
        query.limit
    ];
    db.all(if query.ascending { page!(">", "asc") } else { page!("<", "desc") }, args).await?.iter().map(subscription).collect()
}

pub(crate) async fn schedules(db: &Db, project: ProjectId, query: &ParentQuery) -> Result<Vec<Schedule>, StoreError> {
    macro_rules! page {
        ($beyond:literal, $order:literal) => {
            concat!(
                "select ",
                schedule_columns!(),
                " from trigger_schedules where project_id = $1 and deleted_at is null and ($2 is null or lower(name) like $2 escape '\\') \
                 and ($3 is null or event_key = $3) and ($4 is null or created_at <= $4) and ($5 is null or created_at >= $5) \
                 and ($6 is null or id ",
                $beyond,
                " $6) order by id ",
                $order,
                " limit $7"
            )
        };
    }
    let args =
        args![project, query.name.as_deref().map(holding), query.event_key.as_deref(), query.newest, query.oldest, query.next, query.limit];
    db.all(if query.ascending { page!(">", "asc") } else { page!("<", "desc") }, args).await?.iter().map(schedule).collect()
}

pub(crate) async fn schedule_by_id(db: &Db, project: ProjectId, id: ScheduleId) -> Result<Option<Schedule>, StoreError> {
    let sql = concat!("select ", schedule_columns!(), " from trigger_schedules where project_id = $1 and id = $2");
    one(db.optional(sql, args![project, id]).await?, schedule)
}

pub(crate) async fn insert_schedule(db: &Db, new: &Schedule, run_at: Option<Timestamp>) -> Result<(), StoreError> {
    let sql = "insert into trigger_schedules (project_id, id, event_key, name, description, tags, meta, data, is_active, next_fire_at, run_at, \
               actor_key_id, actor_user_id, created_at, updated_at, created_by_id, updated_by_id) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
    let args = args![
        new.project,
        new.id,
        new.event_key.as_str(),
        new.words.name.as_deref(),
        new.words.description.as_deref(),
        new.words.tags.as_ref(),
        new.words.meta.as_ref(),
        &new.data,
        new.is_active,
        new.next_fire_at,
        run_at,
        new.actor.key,
        new.actor.user,
        new.life.created_at,
        new.life.updated_at,
        new.life.created_by,
        new.life.updated_by
    ];
    db.execute(sql, args).await.map(|_| ())
}

pub(crate) async fn update_schedule(db: &Db, row: &Schedule, run_at: Option<Timestamp>) -> Result<Option<Schedule>, StoreError> {
    let sql = concat!(
        "update trigger_schedules set event_key = $3, name = $4, description = $5, tags = $6, meta = $7, data = $8, is_active = $9, \
         next_fire_at = $10, run_at = $11, actor_key_id = $12, actor_user_id = $13, updated_at = $14, updated_by_id = $15 \
         where project_id = $1 and id = $2 and deleted_at is null returning ",
        schedule_columns!()
    );
    let args = args![
        row.project,
        row.id,
        row.event_key.as_str(),
        row.words.name.as_deref(),
        row.words.description.as_deref(),
        row.words.tags.as_ref(),
        row.words.meta.as_ref(),
        &row.data,
        row.is_active,
        row.next_fire_at,
        run_at,
        row.actor.key,
        row.actor.user,
        row.life.updated_at,
        row.life.updated_by
    ];
    one(db.returning(sql, args).await?, schedule)
}

pub(crate) async fn event_by_id(db: &Db, project: ProjectId, id: EventId) -> Result<Option<EventRow>, StoreError> {
    let sql = "select project_id, id, subscription_id, event_id, event_type, headers, body, attributes, received_at from trigger_events \
               where project_id = $1 and id = $2";
    one(db.optional(sql, args![project, id]).await?, event)
}

/// Whether the event is new; a sender's retry is not.
pub(crate) async fn insert_event(tx: &mut Tx, new: &EventRow) -> Result<bool, StoreError> {
    let sql = "insert into trigger_events (project_id, id, subscription_id, event_id, event_type, headers, body, attributes, received_at) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (project_id, subscription_id, event_id) do nothing";
    let args = args![
        new.project,
        new.id,
        new.subscription,
        new.event_id.as_str(),
        new.event_type.as_str(),
        &new.headers,
        new.body.as_slice(),
        &new.attributes,
        new.received_at
    ];
    Ok(tx.execute(sql, args).await? == 1)
}

/// Whether the signature was not seen before.
pub(crate) async fn insert_signature(tx: &mut Tx, event: &EventRow, signature: &str) -> Result<bool, StoreError> {
    let sql = "insert into trigger_signatures (project_id, subscription_id, signature, seen_at) values ($1, $2, $3, $4) \
               on conflict (project_id, subscription_id, signature) do nothing";
    Ok(tx.execute(sql, args![event.project, event.subscription, signature, event.received_at]).await? == 1)
}

/// Whether exactly this request came to the one address of a provider before, whoever it was for.
pub(crate) async fn is_seen_by_hub(db: &Db, provider: &str, signature: &str) -> Result<bool, StoreError> {
    let sql = "select 1 as seen from hub_signatures where provider = $1 and signature = $2";
    Ok(db.optional(sql, args![provider, signature]).await?.is_some())
}

/// Remembers such a request; whether it is the first of its kind.
pub(crate) async fn seen_by_hub(db: &Db, provider: &str, signature: &str, now: Timestamp) -> Result<bool, StoreError> {
    let sql = "insert into hub_signatures (provider, signature, seen_at) values ($1, $2, $3) on conflict do nothing";
    Ok(db.execute(sql, args![provider, signature, now]).await? == 1)
}

/// A delivery that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewDelivery {
    pub(crate) id: DeliveryId,
    pub(crate) project: ProjectId,
    pub(crate) parent: Parent,
    pub(crate) event: Option<EventId>,
    pub(crate) event_id: String,
    pub(crate) event_key: String,
    pub(crate) is_ordered: bool,
    pub(crate) due_at: Timestamp,
    pub(crate) created_at: Timestamp,
}

/// Whether it is new: the same event never makes two deliveries to one target.
pub(crate) async fn insert_delivery(tx: &mut Tx, new: &NewDelivery) -> Result<bool, StoreError> {
    let sql = "insert into trigger_deliveries (project_id, id, subscription_id, schedule_id, event_row_id, event_id, event_key, state, is_ordered, code, \
               message, data, attempts, due_at, created_at, updated_at) \
               values ($1, $2, $3, $4, $5, $6, $7, 'ready', $8, '102', 'claimed', '{}', 0, $9, $10, $10) on conflict do nothing";
    let args: [Arg<'_>; 10] = args![
        new.project,
        new.id,
        new.parent.subscription(),
        new.parent.schedule(),
        new.event,
        new.event_id.as_str(),
        new.event_key.as_str(),
        new.is_ordered,
        new.due_at,
        new.created_at
    ];
    Ok(tx.execute(sql, args).await? == 1)
}

pub(crate) async fn delivery_by_id(db: &Db, project: ProjectId, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
    let sql = concat!("select ", delivery_columns!(), " from trigger_deliveries where project_id = $1 and id = $2");
    one(db.optional(sql, args![project, id]).await?, delivery)
}

pub(crate) async fn attempts(db: &Db, project: ProjectId, id: DeliveryId) -> Result<Vec<Attempt>, StoreError> {
    let sql = "select number, started_at, ended_at, code, message, run_id from trigger_attempts where project_id = $1 and delivery_id = $2 order by number";
    db.all(sql, args![project, id]).await?.iter().map(attempt).collect()
}

/// How an attempt ended and what becomes of its delivery.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) project: ProjectId,
    pub(crate) delivery: DeliveryId,
    pub(crate) owner: uuid::Uuid,
    pub(crate) attempt: Attempt,
    pub(crate) state: State,
    pub(crate) approval: Option<ApprovalId>,
    pub(crate) due_at: Timestamp,
    pub(crate) data: Value,
}

/// Ends an attempt. A delivery whose lease was lost meanwhile is left to whoever has it now.
pub(crate) async fn finish(tx: &mut Tx, done: &Finished) -> Result<bool, StoreError> {
    let Attempt { number, started_at, ended_at, code, message, run } = &done.attempt;
    let message = message.as_ref().map(|text| text.replace('\0', ""));
    let sql = "update trigger_deliveries set state = $4, code = $5, message = $6, data = $7, due_at = $8, updated_at = $9, lease_until = null, \
               lease_owner = null, approval_id = $10 where project_id = $1 and id = $2 and lease_owner = $3 and state = 'leased'";
    let args = args![
        done.project,
        done.delivery,
        done.owner,
        done.state.name(),
        code.as_str(),
        message.as_deref(),
        &done.data,
        done.due_at,
        *ended_at,
        done.approval
    ];
    let mine = tx.execute(sql, args).await? == 1;
    let sql = "insert into trigger_attempts (project_id, delivery_id, number, started_at, ended_at, code, message, run_id) \
               values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing";
    let args = args![done.project, done.delivery, *number, *started_at, *ended_at, code.as_str(), message.as_deref(), *run];
    tx.execute(sql, args).await?;
    Ok(mine)
}
