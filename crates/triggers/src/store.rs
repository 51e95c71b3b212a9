//! Rows of triggers. Every query of a request names its project; those of the engine look at all of them.

use kernel::{ApprovalId, ConnectionId, DeliveryId, EndUserId, EventId, KeyId, ProjectId, ScheduleId, SubscriptionId, Timestamp};
use store::{Db, Many, PageSize, Row, StoreError, Tx, args, holding, page_sql, row};

use crate::model::{Actor, Attempt, Delivery, EventRow, Labels, Lifecycle, Parent, Schedule, State, Subscription, TargetKind};

macro_rules! subscription_columns {
    () => {
        "project_id, id, connection_id, provider, integration, event_key, name, description, tags, meta, data, is_active, is_valid, is_test, reason, \
         suspended_at, token, secret, trigger_id, poll_cursor, target, actor_key_id, actor_user_id, end_user_id, created_at, updated_at, deleted_at, created_by_id, updated_by_id, \
         deleted_by_id"
    };
}

macro_rules! schedule_columns {
    () => {
        "project_id, id, event_key, name, description, tags, meta, data, is_active, next_fire_at, actor_key_id, actor_user_id, end_user_id, created_at, \
         updated_at, deleted_at, created_by_id, updated_by_id, deleted_by_id"
    };
}

/// The length of what people write about a trigger.
macro_rules! words_bytes {
    () => {
        "coalesce(octet_length(description), 0) + coalesce(octet_length(tags), 0) + coalesce(octet_length(meta), 0)"
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
pub(crate) use subscription_columns;

fn labels(row: &Row) -> Result<Labels, StoreError> {
    Ok(Labels { name: row.get("name")?, description: row.get("description")?, tags: row.get("tags")?, meta: row.get("meta")? })
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

/// Whether a trigger acts in the name of this key, membership or grant.
pub(crate) async fn act_by(db: &Db, project: ProjectId, key: KeyId) -> Result<bool, StoreError> {
    let sql = "select 1 as found from trigger_subscriptions where project_id = $1 and actor_key_id = $2 and deleted_at is null union all \
               select 1 from trigger_schedules where project_id = $1 and actor_key_id = $2 and deleted_at is null limit 1";
    Ok(db.optional(sql, args![project, key]).await?.is_some())
}

fn actor(row: &Row) -> Result<Actor, StoreError> {
    Ok(Actor { key: row.get("actor_key_id")?, user: row.get("actor_user_id")?, end_user: row.get("end_user_id")? })
}

pub(crate) fn subscription(row: &Row) -> Result<Subscription, StoreError> {
    Ok(Subscription {
        id: row.get("id")?,
        project: row.get("project_id")?,
        connection: row.get("connection_id")?,
        provider: row.get("provider")?,
        integration: row.get("integration")?,
        event_key: row.get("event_key")?,
        labels: labels(row)?,
        target: TargetKind::named(&row.get::<String>("target")?).ok_or_else(|| StoreError::Column("target".to_owned()))?,
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
        labels: labels(row)?,
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
    let row = row! {
        project_id: new.project,
        id: new.id,
        connection_id: new.connection,
        provider: new.provider.as_str(),
        integration: new.integration.as_str(),
        event_key: new.event_key.as_str(),
        fingerprint: hidden.fingerprint,
        name: new.labels.name.as_deref(),
        description: new.labels.description.as_deref(),
        tags: new.labels.tags.as_ref(),
        meta: new.labels.meta.as_ref(),
        data: &new.data,
        is_active: new.is_active,
        is_valid: new.is_valid,
        is_test: new.is_test,
        reason: new.reason.as_deref(),
        token: new.token.as_str(),
        secret: new.secret.clone(),
        trigger_id: new.trigger_id.as_deref(),
        poll_cursor: new.poll_cursor.as_ref(),
        poll_at: hidden.poll_at,
        target: new.target.name(),
        actor_key_id: new.actor.key,
        actor_user_id: new.actor.user,
        end_user_id: new.actor.end_user,
        created_at: new.life.created_at,
        updated_at: new.life.updated_at,
        created_by_id: new.life.created_by,
        updated_by_id: new.life.updated_by,
    };
    db.insert("trigger_subscriptions", row).await
}

/// Writes everything that an edit can change, unless the row was deleted meanwhile. Whoever writes decided whether it is active.
pub(crate) async fn update_subscription(db: &Db, row: &Subscription, hidden: &Hidden<'_>) -> Result<Option<Subscription>, StoreError> {
    let sql = concat!(
        "update trigger_subscriptions set connection_id = $3, provider = $4, integration = $5, event_key = $6, fingerprint = $7, name = $8, \
         description = $9, tags = $10, meta = $11, data = $12, is_active = $13, is_valid = $14, is_test = $15, reason = $16, secret = $17, \
         trigger_id = $18, poll_cursor = $19, poll_at = $20, actor_key_id = $21, actor_user_id = $22, updated_at = $23, updated_by_id = $24, \
         token = $25, end_user_id = $26, suspended_at = null where project_id = $1 and id = $2 and deleted_at is null returning ",
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
        row.labels.name.as_deref(),
        row.labels.description.as_deref(),
        row.labels.tags.as_ref(),
        row.labels.meta.as_ref(),
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
        row.token.as_str(),
        row.actor.end_user
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
    pub end_user: Option<EndUserId>,
    pub newest: Option<Timestamp>,
    pub oldest: Option<Timestamp>,
    pub next: Option<uuid::Uuid>,
    pub ascending: bool,
    pub size: PageSize,
}

pub(crate) async fn subscriptions(db: &Db, project: ProjectId, query: &ParentQuery) -> Result<Vec<Row>, StoreError> {
    macro_rules! page {
        ($beyond:literal, $order:literal) => {
            page_sql!(
                select subscription_columns!(),
                bytes concat!(words_bytes!(), " + octet_length(data) + coalesce(octet_length(poll_cursor), 0)"),
                from "trigger_subscriptions",
                where concat!(
                    "project_id = $1 and deleted_at is null and ($9 is null or end_user_id = $9) and ($2 is null or lower(name) like $2 escape '\\') \
                     and ($3 is null or connection_id = $3) and ($4 is null or event_key = $4) and ($5 is null or created_at <= $5) \
                     and ($6 is null or created_at >= $6) and ($7 is null or id ",
                    $beyond,
                    " $7)"
                ),
                by id $order,
                limit "$8"
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
        query.size.rows(),
        query.end_user
    ];
    db.all(if query.ascending { page!(">", "asc") } else { page!("<", "desc") }, args).await
}

pub(crate) async fn schedules(db: &Db, project: ProjectId, query: &ParentQuery) -> Result<Vec<Row>, StoreError> {
    macro_rules! page {
        ($beyond:literal, $order:literal) => {
            page_sql!(
                select schedule_columns!(),
                bytes concat!(words_bytes!(), " + octet_length(data)"),
                from "trigger_schedules",
                where concat!(
                    "project_id = $1 and deleted_at is null and ($8 is null or end_user_id = $8) and ($2 is null or lower(name) like $2 escape '\\') \
                     and ($3 is null or event_key = $3) and ($4 is null or created_at <= $4) and ($5 is null or created_at >= $5) \
                     and ($6 is null or id ",
                    $beyond,
                    " $6)"
                ),
                by id $order,
                limit "$7"
            )
        };
    }
    let (name, event_key) = (query.name.as_deref().map(holding), query.event_key.as_deref());
    let args = args![project, name, event_key, query.newest, query.oldest, query.next, query.size.rows(), query.end_user];
    db.all(if query.ascending { page!(">", "asc") } else { page!("<", "desc") }, args).await
}

pub(crate) async fn schedule_by_id(db: &Db, project: ProjectId, id: ScheduleId) -> Result<Option<Schedule>, StoreError> {
    let sql = concat!("select ", schedule_columns!(), " from trigger_schedules where project_id = $1 and id = $2");
    one(db.optional(sql, args![project, id]).await?, schedule)
}

pub(crate) async fn insert_schedule(db: &Db, new: &Schedule, run_at: Option<Timestamp>) -> Result<(), StoreError> {
    let row = row! {
        project_id: new.project,
        id: new.id,
        event_key: new.event_key.as_str(),
        name: new.labels.name.as_deref(),
        description: new.labels.description.as_deref(),
        tags: new.labels.tags.as_ref(),
        meta: new.labels.meta.as_ref(),
        data: &new.data,
        is_active: new.is_active,
        next_fire_at: new.next_fire_at,
        run_at: run_at,
        actor_key_id: new.actor.key,
        actor_user_id: new.actor.user,
        end_user_id: new.actor.end_user,
        created_at: new.life.created_at,
        updated_at: new.life.updated_at,
        created_by_id: new.life.created_by,
        updated_by_id: new.life.updated_by,
    };
    db.insert("trigger_schedules", row).await
}

pub(crate) async fn update_schedule(db: &Db, row: &Schedule, run_at: Option<Timestamp>) -> Result<Option<Schedule>, StoreError> {
    let sql = concat!(
        "update trigger_schedules set event_key = $3, name = $4, description = $5, tags = $6, meta = $7, data = $8, is_active = $9, \
         next_fire_at = $10, run_at = $11, actor_key_id = $12, actor_user_id = $13, updated_at = $14, updated_by_id = $15, end_user_id = $16 \
         where project_id = $1 and id = $2 and deleted_at is null returning ",
        schedule_columns!()
    );
    let args = args![
        row.project,
        row.id,
        row.event_key.as_str(),
        row.labels.name.as_deref(),
        row.labels.description.as_deref(),
        row.labels.tags.as_ref(),
        row.labels.meta.as_ref(),
        &row.data,
        row.is_active,
        row.next_fire_at,
        run_at,
        row.actor.key,
        row.actor.user,
        row.life.updated_at,
        row.life.updated_by,
        row.actor.end_user
    ];
    one(db.returning(sql, args).await?, schedule)
}

pub(crate) async fn event_by_id(db: &Db, project: ProjectId, id: EventId) -> Result<Option<EventRow>, StoreError> {
    let sql = "select project_id, id, subscription_id, event_id, event_type, headers, body, attributes, received_at from trigger_events \
               where project_id = $1 and id = $2";
    one(db.optional(sql, args![project, id]).await?, event)
}

/// An event on its way in. Its texts are made where it was read, because one task writes the events of everybody.
#[derive(Debug)]
pub(crate) struct NewEvent {
    id: EventId,
    project: ProjectId,
    subscription: SubscriptionId,
    event_id: String,
    event_type: String,
    headers: String,
    body: Vec<u8>,
    attributes: String,
    received_at: Timestamp,
}

impl From<EventRow> for NewEvent {
    fn from(row: EventRow) -> Self {
        Self {
            id: row.id,
            project: row.project,
            subscription: row.subscription,
            event_id: row.event_id,
            event_type: row.event_type,
            headers: kernel::json::text(&row.headers),
            body: row.body,
            attributes: kernel::json::text(&row.attributes),
            received_at: row.received_at,
        }
    }
}

impl NewEvent {
    /// How much of it is written.
    pub(crate) fn bytes(&self) -> usize {
        self.headers.len() + self.body.len() + self.attributes.len()
    }
}

/// Which of the events are new; a sender's retry is not.
pub(crate) async fn insert_events(tx: &mut Tx, new: &[&NewEvent]) -> Result<Vec<bool>, StoreError> {
    let rows = new.iter().map(|new| {
        row! {
            project_id: new.project,
            id: new.id,
            subscription_id: new.subscription,
            event_id: new.event_id.as_str(),
            event_type: new.event_type.as_str(),
            headers: new.headers.as_str(),
            body: new.body.as_slice(),
            attributes: new.attributes.as_str(),
            received_at: new.received_at,
        }
    });
    let rest = "on conflict (project_id, subscription_id, event_id) do nothing";
    tx.write_each(Many::insert("trigger_events", rows, rest), &["id"]).await
}

/// Which of the signatures were not seen before.
pub(crate) async fn insert_signatures(tx: &mut Tx, new: &[(&NewEvent, &str)]) -> Result<Vec<bool>, StoreError> {
    let rows = new.iter().map(|(event, signature)| {
        row! {
            project_id: event.project,
            subscription_id: event.subscription,
            signature: *signature,
            seen_at: event.received_at,
        }
    });
    let rest = "on conflict (project_id, subscription_id, signature) do nothing";
    tx.write_each(Many::insert("trigger_signatures", rows, rest), &["project_id", "subscription_id", "signature"]).await
}

/// Whether a message came to the one address of a provider since then, whoever it was for.
pub(crate) async fn is_seen_by_hub(db: &Db, provider: &str, message: &str, since: Timestamp) -> Result<bool, StoreError> {
    let sql = "select 1 as seen from hub_signatures where provider = $1 and signature = $2 and seen_at >= $3";
    Ok(db.optional(sql, args![provider, message, since]).await?.is_some())
}

/// Remembers such a message; whether it is the first of its kind since then.
pub(crate) async fn seen_by_hub(db: &Db, provider: &str, message: &str, now: Timestamp, since: Timestamp) -> Result<bool, StoreError> {
    let sql = "insert into hub_signatures (provider, signature, seen_at) values ($1, $2, $3) \
               on conflict (provider, signature) do update set seen_at = excluded.seen_at where hub_signatures.seen_at < $4";
    Ok(db.execute(sql, args![provider, message, now, since]).await? == 1)
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

/// Makes deliveries; how many are new. The same event never makes two to one target.
pub(crate) async fn insert_deliveries(tx: &mut Tx, new: &[&NewDelivery]) -> Result<u64, StoreError> {
    let rows = new.iter().map(|new| {
        row! {
            project_id: new.project,
            id: new.id,
            subscription_id: new.parent.subscription(),
            schedule_id: new.parent.schedule(),
            event_row_id: new.event,
            event_id: new.event_id.as_str(),
            event_key: new.event_key.as_str(),
            state: State::Ready.name(),
            is_ordered: new.is_ordered,
            code: "102",
            message: "claimed",
            data: "{}",
            attempts: 0_i64,
            due_at: new.due_at,
            created_at: new.created_at,
            updated_at: new.created_at,
        }
    });
    tx.write_many(Many::insert("trigger_deliveries", rows, "on conflict do nothing")).await
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
    /// As JSON text, made where the attempt was.
    pub(crate) data: String,
}

/// Ends attempts; which of them had their delivery still. One whose lease was lost meanwhile is left to whoever has it now.
pub(crate) async fn finish(tx: &mut Tx, done: &[&Finished]) -> Result<Vec<bool>, StoreError> {
    let messages: Vec<Option<String>> = done.iter().map(|done| done.attempt.message.as_ref().map(|text| text.replace('\0', ""))).collect();
    let ends = done.iter().zip(&messages).map(|(done, message)| {
        row! {
            project_id: done.project,
            id: done.delivery,
            number: done.attempt.number,
            owner: done.owner,
            state: done.state.name(),
            code: done.attempt.code.as_str(),
            message: message.as_deref(),
            data: done.data.as_str(),
            due_at: done.due_at,
            ended_at: done.attempt.ended_at,
            approval_id: done.approval,
        }
    });
    // Whoever is its owner has it leased. Its state is not asked as well: PostgreSQL would go by the index of what is leased, which holds all
    // that was until it is cleaned up.
    let sql = "update trigger_deliveries as d set state = v.state, code = v.code, message = v.message, data = v.data, due_at = v.due_at, \
               updated_at = v.ended_at, lease_until = null, lease_owner = null, approval_id = v.approval_id from v \
               where d.project_id = v.project_id and d.id = v.id and d.lease_owner = v.owner";
    let mine = tx.write_each(Many::with(ends, sql), &["id", "number"]).await?;
    let attempts = done.iter().zip(&messages).map(|(done, message)| {
        row! {
            project_id: done.project,
            delivery_id: done.delivery,
            number: done.attempt.number,
            started_at: done.attempt.started_at,
            ended_at: done.attempt.ended_at,
            code: done.attempt.code.as_str(),
            message: message.as_deref(),
            run_id: done.attempt.run,
        }
    });
    tx.write_many(Many::insert("trigger_attempts", attempts, "on conflict do nothing")).await?;
    Ok(mine)
}
