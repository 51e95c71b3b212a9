//! Rows of runs. Every query of a request names its project; those of the engine look at all of them.

use std::time::Duration;

use kernel::{AgentId, ApprovalId, ArtifactId, DeliveryId, EndUserId, KeyId, ProjectId, RevisionId, RunId, Timestamp, UserId};
use models::Usage;
use serde_json::Value;
use store::{Db, Many, PageSize, Row, StoreError, Tx, args, page_sql, row};
use uuid::Uuid;

use crate::{RunState, Used};

/// One run of an agent.
#[derive(Clone, Debug)]
pub struct AgentRun {
    pub id: RunId,
    pub project: ProjectId,
    pub workflow: ArtifactId,
    pub revision: RevisionId,
    pub key: KeyId,
    pub user: Option<UserId>,
    /// The end user whose accounts it uses.
    pub end_user: Option<EndUserId>,
    pub state: RunState,
    pub session: Option<String>,
    pub delivery: Option<DeliveryId>,
    pub agent: Option<AgentId>,
    pub is_test: bool,
    /// The approval that it waits for.
    pub approval: Option<ApprovalId>,
    pub used: Used,
    pub code: Option<i64>,
    pub message: Option<String>,
    pub outputs: Option<Value>,
    pub inputs: Value,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub(crate) depth: u32,
    pub(crate) tries: i64,
}

/// A run that shall be made.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) id: RunId,
    pub(crate) project: ProjectId,
    pub(crate) workflow: ArtifactId,
    pub(crate) revision: RevisionId,
    pub(crate) key: KeyId,
    pub(crate) user: Option<UserId>,
    pub(crate) end_user: Option<EndUserId>,
    pub(crate) config: String,
    pub(crate) inputs: String,
    pub(crate) session: Option<String>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) fingerprint: Vec<u8>,
    pub(crate) delivery: Option<DeliveryId>,
    pub(crate) agent: Option<AgentId>,
    pub(crate) depth: u32,
    pub(crate) is_test: bool,
    pub(crate) now: Timestamp,
    /// The node that works on it at once, and until when; else the first that has room does.
    pub(crate) lease: Option<(Uuid, Timestamp)>,
}

macro_rules! columns {
    () => {
        "project_id, id, workflow_id, revision_id, key_id, user_id, state, inputs, session_id, delivery_id, agent_id, depth, is_test, approval_id, \
         tries, turns, tool_calls, input_tokens, output_tokens, cached_input_tokens, nano_usd, active_us, code, message, outputs, created_at, \
         updated_at, ended_at, end_user_id"
    };
}

pub(crate) fn read(row: &Row) -> Result<AgentRun, StoreError> {
    let broken = |name: &str| StoreError::Column(name.to_owned());
    let state: String = row.get("state")?;
    Ok(AgentRun {
        id: row.get("id")?,
        project: row.get("project_id")?,
        workflow: row.get("workflow_id")?,
        revision: row.get("revision_id")?,
        key: row.get("key_id")?,
        user: row.get("user_id")?,
        end_user: row.get("end_user_id")?,
        state: RunState::named(&state).ok_or_else(|| broken("state"))?,
        session: row.get("session_id")?,
        delivery: row.get("delivery_id")?,
        agent: row.get("agent_id")?,
        is_test: row.get("is_test")?,
        approval: row.get("approval_id")?,
        used: used(row)?,
        code: row.get("code")?,
        message: row.get("message")?,
        outputs: row.get("outputs")?,
        inputs: row.get("inputs")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        ended_at: row.get("ended_at")?,
        depth: u32::try_from(row.get::<i64>("depth")?).unwrap_or(u32::MAX),
        tries: row.get("tries")?,
    })
}

fn used(row: &Row) -> Result<Used, StoreError> {
    let number = |name: &str| row.get::<i64>(name).map(i64::unsigned_abs);
    let tokens = Usage {
        input: number("input_tokens")?,
        output: number("output_tokens")?,
        cached_input: number("cached_input_tokens")?,
        ..Usage::default()
    };
    #[expect(clippy::cast_precision_loss, reason = "a run costs far less than what a float holds exactly")]
    let usd = number("nano_usd")? as f64 / 1e9;
    Ok(Used {
        turns: number("turns")?,
        tool_calls: number("tool_calls")?,
        calls_wanted: 0,
        tokens,
        usd,
        active: Duration::from_micros(number("active_us")?),
    })
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_possible_truncation, reason = "a run costs far less than nine billion dollars")]
fn nano_usd(usd: f64) -> i64 {
    (usd * 1e9) as i64
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Makes a run; nothing happens where one has its idempotency key.
pub(crate) async fn insert(db: &Db, new: &NewRun) -> Result<bool, StoreError> {
    let state = if new.lease.is_some() { RunState::Running } else { RunState::Ready };
    let row = row! {
        project_id: new.project,
        id: new.id,
        workflow_id: new.workflow,
        revision_id: new.revision,
        key_id: new.key,
        user_id: new.user,
        end_user_id: new.end_user,
        state: state.name(),
        config: new.config.as_str(),
        inputs: new.inputs.as_str(),
        session_id: new.session.as_deref(),
        idempotency_key: new.idempotency_key.as_deref(),
        fingerprint: new.fingerprint.as_slice(),
        delivery_id: new.delivery,
        agent_id: new.agent,
        depth: i64::from(new.depth),
        is_test: new.is_test,
        due_at: new.now,
        lease_until: new.lease.map(|(_, until)| until),
        lease_owner: new.lease.map(|(owner, _)| owner),
        tries: 0_i64,
        turns: 0_i64,
        tool_calls: 0_i64,
        input_tokens: 0_i64,
        output_tokens: 0_i64,
        cached_input_tokens: 0_i64,
        nano_usd: 0_i64,
        active_us: 0_i64,
        // A run below another is none that a delivery waits for.
        is_told: new.depth > 0,
        created_at: new.now,
        updated_at: new.now,
    };
    Ok(db.write_many(Many::insert("agent_runs", [row], "on conflict do nothing")).await? == 1)
}

/// The run of an idempotency key, and the fingerprint of what it was made with.
pub(crate) async fn by_key(db: &Db, project: ProjectId, key: KeyId, name: &str) -> Result<Option<(RunId, Vec<u8>)>, StoreError> {
    let sql = "select id, fingerprint from agent_runs where project_id = $1 and key_id = $2 and idempotency_key = $3";
    let row = db.optional(sql, args![project, key, name]).await?;
    row.map(|row| Ok((row.get("id")?, row.get("fingerprint")?))).transpose()
}

pub(crate) async fn by_id(db: &Db, project: ProjectId, id: RunId) -> Result<Option<AgentRun>, StoreError> {
    let sql = concat!("select ", columns!(), " from agent_runs where project_id = $1 and id = $2");
    db.optional(sql, args![project, id]).await?.map(|row| read(&row)).transpose()
}

/// What a run was made of.
pub(crate) async fn config(db: &Db, project: ProjectId, id: RunId) -> Result<Option<Value>, StoreError> {
    let sql = "select config from agent_runs where project_id = $1 and id = $2";
    db.optional(sql, args![project, id]).await?.map(|row| row.get("config")).transpose()
}

/// How many runs of a project have not ended, up to a bound.
pub(crate) async fn open_runs(db: &Db, project: ProjectId, most: i64) -> Result<i64, StoreError> {
    let sql = "select count(*) as found from (select 1 from agent_runs where project_id = $1 and state in ('ready', 'running', 'waiting') limit $2) o";
    db.optional(sql, args![project, most]).await?.map_or(Ok(0), |row| row.get("found"))
}

/// Runs, newest first; without a state those that have not ended.
pub(crate) async fn page(
    db: &Db,
    project: ProjectId,
    state: Option<RunState>,
    workflow: Option<ArtifactId>,
    end_user: Option<EndUserId>,
    after: Option<RunId>,
    size: PageSize,
) -> Result<Vec<Row>, StoreError> {
    let sql = page_sql!(
        select columns!(),
        bytes "octet_length(inputs) + coalesce(octet_length(outputs), 0) + coalesce(octet_length(message), 0)",
        from "agent_runs",
        where "project_id = $1 and (state = $2 or ($2 is null and state in ('ready', 'running', 'waiting'))) \
               and ($3 is null or workflow_id = $3) and ($4 is null or id < $4) and ($6 is null or end_user_id = $6)",
        by id "desc",
        limit "$5"
    );
    db.all(sql, args![project, state.map(RunState::name), workflow, after, size.rows(), end_user]).await
}

/// The runs that were made for an end user, newest first.
pub(crate) async fn of_end_user(db: &Db, project: ProjectId, end_user: EndUserId, most: i64) -> Result<Vec<RunId>, StoreError> {
    let sql = "select id from agent_runs where project_id = $1 and end_user_id = $2 order by id desc limit $3";
    db.all(sql, args![project, end_user, most]).await?.iter().map(|row| row.get("id")).collect()
}

/// Those of them that have not ended.
pub(crate) async fn open_of_end_user(db: &Db, project: ProjectId, end_user: EndUserId) -> Result<Vec<RunId>, StoreError> {
    let sql = "select id from agent_runs where project_id = $1 and end_user_id = $2 and state in ('ready', 'running', 'waiting')";
    db.all(sql, args![project, end_user]).await?.iter().map(|row| row.get("id")).collect()
}

/// What a session of an end user is kept under, so that nobody goes on with another's.
pub(crate) fn in_session_of(end_user: EndUserId, session: &str) -> String {
    format!("{end_user}/{session}")
}

/// Projects with runs that are due, after the one that was looked at last. Each step finds the next project by its index.
pub(crate) async fn with_work(db: &Db, after: Uuid, now: Timestamp, most: i64) -> Result<Vec<ProjectId>, StoreError> {
    let sql = "with recursive p(id) as (\
               select (select project_id from agent_runs where state = 'ready' and due_at <= $2 and project_id > $1 order by project_id limit 1) \
               union all \
               select (select project_id from agent_runs where state = 'ready' and due_at <= $2 and project_id > p.id order by project_id limit 1) \
               from p where p.id is not null) select id from p where id is not null limit $3";
    db.all(sql, args![after, now, most]).await?.iter().map(|row| row.get("id")).collect()
}

/// Takes runs that are due, for one node until a time. The rows that are picked are nobody else's, so their state is not asked again: if it
/// were, SQLite would look for them among all that are ready.
pub(crate) async fn lease(
    db: &Db,
    project: ProjectId,
    most: usize,
    now: Timestamp,
    until: Timestamp,
    node: Uuid,
) -> Result<Vec<AgentRun>, StoreError> {
    macro_rules! lease {
        ($lock:literal) => {
            concat!(
                "with picked as materialized (select id from agent_runs where project_id = $1 and state = 'ready' and due_at <= $3 \
                 order by due_at, id limit $2",
                $lock,
                ") update agent_runs set state = 'running', updated_at = $3, lease_until = $4, lease_owner = $5 \
                 where project_id = $1 and id in (select id from picked) returning ",
                columns!()
            )
        };
    }
    let sql = match db {
        Db::Sqlite(_) => lease!(""),
        Db::Postgres(_) => lease!(" for update skip locked"),
    };
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    db.returning_all(sql, args![project, most, now, until, node]).await?.iter().map(read).collect()
}

/// Makes runs ready again whose node went away, and those whose approval ran out without a decision; how many.
pub(crate) async fn take_back(db: &Db, now: Timestamp) -> Result<u64, StoreError> {
    let any =
        "select 1 as found from agent_runs where (state = 'running' and lease_until < $1) or (state = 'waiting' and due_at < $1) limit 1";
    if db.optional(any, args![now]).await?.is_none() {
        return Ok(0);
    }
    macro_rules! lost {
        ($lock:literal) => {
            concat!(
                "with picked as materialized (select project_id, id from agent_runs where (state = 'running' and lease_until < $1) \
                 or (state = 'waiting' and due_at < $1)",
                $lock,
                ") update agent_runs set state = 'ready', due_at = $1, lease_owner = null, lease_until = null, approval_id = null \
                 where (project_id, id) in (select project_id, id from picked)"
            )
        };
    }
    let sql = match db {
        Db::Sqlite(_) => lost!(""),
        Db::Postgres(_) => lost!(" for update skip locked"),
    };
    db.execute(sql, args![now]).await
}

/// Gives back at once what an earlier process left behind; a SQLite file has one process.
pub(crate) async fn reclaim(db: &Db, node: Uuid) -> Result<(), StoreError> {
    if let Db::Sqlite(_) = db {
        db.execute("update agent_runs set lease_until = 0 where state = 'running' and lease_owner <> $1", args![node]).await?;
    }
    Ok(())
}

/// Keeps a node's leases alive; which runs it holds.
pub(crate) async fn beat(db: &Db, node: Uuid, until: Timestamp) -> Result<Vec<RunId>, StoreError> {
    let sql = "update agent_runs set lease_until = $2 where lease_owner = $1 and state = 'running' returning id";
    db.returning_all(sql, args![node, until]).await?.iter().map(|row| row.get("id")).collect()
}

/// Which runs a node holds.
pub(crate) async fn held(db: &Db, node: Uuid) -> Result<Vec<RunId>, StoreError> {
    let sql = "select id from agent_runs where lease_owner = $1 and state = 'running'";
    db.all(sql, args![node]).await?.iter().map(|row| row.get("id")).collect()
}

/// Lets go of a run that this node lost sight of.
pub(crate) async fn let_go(db: &Db, node: Uuid, id: RunId) -> Result<(), StoreError> {
    db.execute("update agent_runs set lease_until = 0 where lease_owner = $1 and id = $2 and state = 'running'", args![node, id]).await?;
    Ok(())
}

/// Makes runs ready whose approval was decided.
pub(crate) async fn ready_decided(db: &Db, decided: &[(ProjectId, ApprovalId)], now: Timestamp) -> Result<u64, StoreError> {
    let rows = decided.iter().map(|(project, approval)| row! { project_id: *project, approval_id: *approval, now: now });
    let sql = "update agent_runs as r set state = 'ready', due_at = v.now, updated_at = v.now from v \
               where r.project_id = v.project_id and r.approval_id = v.approval_id and r.state = 'waiting'";
    let many = Many::with(rows, sql);
    if many.is_empty() { Ok(0) } else { db.write_many(many).await }
}

/// Notes what a run has used, if it is still this node's.
pub(crate) async fn keep_used(
    tx: &mut Tx,
    project: ProjectId,
    id: RunId,
    node: Uuid,
    used: &Used,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update agent_runs set turns = $4, tool_calls = $5, input_tokens = $6, output_tokens = $7, cached_input_tokens = $8, nano_usd = $9, \
               active_us = $10, updated_at = $11, lease_until = $12, tries = 0 \
               where project_id = $1 and id = $2 and lease_owner = $3 and state = 'running'";
    let args = args![
        project,
        id,
        node,
        int(used.turns),
        int(used.tool_calls),
        int(used.tokens.input),
        int(used.tokens.output),
        int(used.tokens.cached_input),
        nano_usd(used.usd),
        micros(used.active),
        now,
        until
    ];
    Ok(tx.execute(sql, args).await? == 1)
}

/// What a run becomes when its node lets go of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rest {
    /// It is tried again at this time.
    Later(Timestamp),
    /// It waits for this approval, at most until then.
    Waiting(ApprovalId, Timestamp),
}

/// Lets go of a run that is to go on later.
pub(crate) async fn rest(
    tx: &mut Tx,
    project: ProjectId,
    id: RunId,
    node: Uuid,
    rest: Rest,
    tries: i64,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let (state, approval, due) = match rest {
        Rest::Later(due) => (RunState::Ready, None, due),
        Rest::Waiting(approval, until) => (RunState::Waiting, Some(approval), until),
    };
    let sql = "update agent_runs set state = $4, approval_id = $5, due_at = $6, updated_at = $7, tries = $8, lease_owner = null, \
               lease_until = null where project_id = $1 and id = $2 and lease_owner = $3 and state = 'running'";
    Ok(tx.execute(sql, args![project, id, node, state.name(), approval, due, now, tries]).await? == 1)
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) state: RunState,
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) outputs: Option<Value>,
}

/// Ends a run: one that this node holds, or, without a node, one that has not ended.
pub(crate) async fn end(
    tx: &mut Tx,
    project: ProjectId,
    id: RunId,
    node: Option<Uuid>,
    end: &End,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update agent_runs set state = $4, code = $5, message = $6, outputs = $7, updated_at = $8, ended_at = $8, approval_id = null, \
               lease_owner = null, lease_until = null where project_id = $1 and id = $2 and state in ('ready', 'running', 'waiting') \
               and ($3 is null or (lease_owner = $3 and state = 'running'))";
    let message = end.message.replace('\0', "");
    let outputs = end.outputs.as_ref().map(Value::to_string);
    Ok(tx.execute(sql, args![project, id, node, end.state.name(), end.code, message, outputs, now]).await? == 1)
}

/// Ended runs whose delivery was not told yet.
pub(crate) async fn untold(db: &Db, most: i64) -> Result<Vec<AgentRun>, StoreError> {
    let sql = concat!(
        "select ",
        columns!(),
        " from agent_runs where delivery_id is not null and ended_at is not null and not is_told order by ended_at limit $1"
    );
    db.all(sql, args![most]).await?.iter().map(read).collect()
}

pub(crate) async fn told(db: &Db, project: ProjectId, id: RunId) -> Result<(), StoreError> {
    db.execute("update agent_runs set is_told = true where project_id = $1 and id = $2", args![project, id]).await?;
    Ok(())
}

/// Runs of a delivery that have not ended.
pub(crate) async fn of_delivery(db: &Db, project: ProjectId, delivery: DeliveryId) -> Result<Vec<RunId>, StoreError> {
    let sql = "select id from agent_runs where project_id = $1 and delivery_id = $2 and state in ('ready', 'running', 'waiting')";
    db.all(sql, args![project, delivery]).await?.iter().map(|row| row.get("id")).collect()
}
