//! The queries over connections. Every one names the project, but for what a provider says of an account of its own (`lose`).

use std::sync::Arc;

use catalog::auth::Fields;
use kernel::seal::{SealError, SealedColumn, Sealer};
use kernel::{AccountOwner, AppId, AuthConfigId, ConnectionId, ProjectId, Timestamp};
use serde_json::{Map, Value, json};
use store::{Db, Row, StoreError, Usage, args, row};
use uuid::Uuid;

use crate::edit::ConnectionEdit;
use crate::grant::Terms;
use crate::{AccountsOf, Broken, Connection};

const TABLE: &str = "gateway_connections";

macro_rules! columns {
    () => {
        "project_id, id, owner, alias, slug, name, description, provider_key, integration_key, tags, meta, is_active, is_valid, auth_scheme, scopes, asked, account, \
         reason, failing_since, failure, last_used_at, granted_scopes, app_id, remote_id, credentials, refresh_at, expires_at, generation, auth_config, attempt_until, created_at, updated_at, created_by_id, updated_by_id"
    };
}

pub(crate) use columns;

pub(crate) fn read(row: &Row) -> Result<Connection, StoreError> {
    Ok(Connection {
        id: row.get("id")?,
        project: row.get("project_id")?,
        owner: AccountOwner::read(&row.get::<String>("owner")?).ok_or_else(|| StoreError::Column("owner".to_owned()))?,
        alias: row.get("alias")?,
        slug: row.get("slug")?,
        name: row.get("name")?,
        description: row.get("description")?,
        provider: row.get("provider_key")?,
        integration: row.get("integration_key")?,
        tags: row.get("tags")?,
        meta: row.get("meta")?,
        is_active: row.get("is_active")?,
        is_valid: row.get("is_valid")?,
        auth_scheme: row.get("auth_scheme")?,
        scopes: row.get::<Option<Value>>("scopes")?.and_then(|scopes| serde_json::from_value(scopes).ok()),
        asked: row.get::<Option<Value>>("asked")?.and_then(|asked| serde_json::from_value(asked).ok()).unwrap_or_default(),
        account: row.get("account")?,
        reason: row.get("reason")?,
        failing_since: row.get("failing_since")?,
        failure: row.get("failure")?,
        last_used_at: row.get("last_used_at")?,
        granted: row.get::<Option<Value>>("granted_scopes")?.and_then(|scopes| serde_json::from_value(scopes).ok()),
        app: row.get("app_id")?,
        remote: row.get("remote_id")?,
        credentials: row.get("credentials")?,
        refresh_at: row.get("refresh_at")?,
        expires_at: row.get("expires_at")?,
        generation: row.get("generation")?,
        auth_config: read_auth_config(&row.get::<String>("auth_config")?)?,
        attempt_until: row.get("attempt_until")?,
        opened: Arc::default(),
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        created_by: row.get("created_by_id")?,
        updated_by: row.get("updated_by_id")?,
    })
}

/// The auth config that a row names. Like owners, none is an empty text, so that one comparison finds either.
fn read_auth_config(stored: &str) -> Result<Option<AuthConfigId>, StoreError> {
    if stored.is_empty() {
        return Ok(None);
    }
    stored.parse().map(Some).map_err(|_| StoreError::Column("auth_config".to_owned()))
}

pub(crate) async fn by_id(db: &Db, project: ProjectId, id: ConnectionId) -> Result<Option<Connection>, StoreError> {
    let sql = concat!("select ", columns!(), " from gateway_connections where project_id = $1 and id = $2");
    db.optional(sql, args![project, id]).await?.as_ref().map(read).transpose()
}

/// Whether a connection has this slug, whosever it is.
pub(crate) async fn is_taken(db: &Db, project: ProjectId, provider: &str, integration: &str, slug: &str) -> Result<bool, StoreError> {
    let sql =
        "select 1 as found from gateway_connections where project_id = $1 and provider_key = $2 and integration_key = $3 and slug = $4";
    Ok(db.optional(sql, args![project, provider, integration, slug]).await?.is_some())
}

pub(crate) async fn by_slug(
    db: &Db,
    of: AccountsOf,
    provider: &str,
    integration: &str,
    slug: &str,
) -> Result<Option<Connection>, StoreError> {
    let sql = concat!(
        "select ",
        columns!(),
        " from gateway_connections where project_id = $1 and provider_key = $2 and integration_key = $3 and slug = $4 and owner = $5"
    );
    db.optional(sql, args![of.project, provider, integration, slug, of.owner.stored()]).await?.as_ref().map(read).transpose()
}

/// The account of an owner that has this alias.
pub(crate) async fn by_alias(
    db: &Db,
    of: AccountsOf,
    provider: &str,
    integration: &str,
    alias: &str,
) -> Result<Option<Connection>, StoreError> {
    let sql = concat!(
        "select ",
        columns!(),
        " from gateway_connections where project_id = $1 and provider_key = $2 and integration_key = $3 and alias = $4 and owner = $5"
    );
    db.optional(sql, args![of.project, provider, integration, alias, of.owner.stored()]).await?.as_ref().map(read).transpose()
}

/// Gives an account another alias, or none.
pub(crate) async fn set_alias(
    db: &Db,
    project: ProjectId,
    id: ConnectionId,
    alias: Option<&str>,
    by: Uuid,
    now: Timestamp,
) -> Result<Option<Connection>, StoreError> {
    let sql = concat!(
        "update gateway_connections set alias = $3, updated_at = $4, updated_by_id = $5 where project_id = $1 and id = $2 returning ",
        columns!()
    );
    db.returning(sql, args![project, id, alias, now, by]).await?.as_ref().map(read).transpose()
}

/// Switches a connection on or off; nothing where it is so already.
pub(crate) async fn switch(
    db: &Db,
    project: ProjectId,
    id: ConnectionId,
    is_active: bool,
    by: Uuid,
    now: Timestamp,
) -> Result<Option<Connection>, StoreError> {
    let sql = concat!(
        "update gateway_connections set is_active = $3, updated_at = $4, updated_by_id = $5 where project_id = $1 and id = $2 \
         and is_active <> $3 returning ",
        columns!()
    );
    db.returning(sql, args![project, id, is_active, now, by]).await?.as_ref().map(read).transpose()
}

/// Every row of one owner, also those that are switched off, newest first.
pub(crate) async fn all_of(db: &Db, of: AccountsOf) -> Result<Vec<Connection>, StoreError> {
    let sql =
        concat!("select ", columns!(), " from gateway_connections where project_id = $1 and owner = $2 order by created_at desc, id desc");
    db.all(sql, args![of.project, of.owner.stored()]).await?.iter().map(read).collect()
}

/// Active rows of one owner, newest first.
pub(crate) async fn query(
    db: &Db,
    of: AccountsOf,
    provider: Option<&str>,
    integration: Option<&str>,
) -> Result<Vec<Connection>, StoreError> {
    let sql = concat!(
        "select ",
        columns!(),
        " from gateway_connections where project_id = $1 and owner = $4 and is_active and ($2 is null or provider_key = $2) \
         and ($3 is null or integration_key = $3) order by created_at desc, id desc"
    );
    db.all(sql, args![of.project, provider, integration, of.owner.stored()]).await?.iter().map(read).collect()
}

/// Active rows of a project and of all its end users, newest first.
pub(crate) async fn everybody(
    db: &Db,
    project: ProjectId,
    provider: Option<&str>,
    integration: Option<&str>,
    after: Option<ConnectionId>,
    limit: i64,
) -> Result<Vec<Connection>, StoreError> {
    let sql = concat!(
        "select ",
        columns!(),
        " from gateway_connections where project_id = $1 and is_active and ($2 is null or provider_key = $2) \
         and ($3 is null or integration_key = $3) and ($4 is null or id < $4) order by id desc limit $5"
    );
    db.all(sql, args![project, provider, integration, after, limit]).await?.iter().map(read).collect()
}

/// How much one owner keeps of connections.
pub(crate) async fn usage(db: &Db, of: AccountsOf) -> Result<Usage, StoreError> {
    let sql = "select count(*) as many, cast(coalesce(sum(length(coalesce(name, '')) + length(coalesce(description, '')) \
               + length(coalesce(tags, '')) + length(coalesce(meta, '')) + length(coalesce(scopes, '')) \
               + coalesce(length(credentials), 0)), 0) as bigint) as long from gateway_connections where project_id = $1 and owner = $2";
    db.measure(sql, args![of.project, of.owner.stored()]).await
}

pub(crate) async fn insert(db: &Db, connection: &Connection, attempt: Option<&StoredAttempt>) -> Result<(), StoreError> {
    let row = row! {
        project_id: connection.project,
        id: connection.id,
        owner: connection.owner.stored(),
        slug: connection.slug.as_str(),
        alias: connection.alias.as_deref(),
        name: connection.name.as_deref(),
        description: connection.description.as_deref(),
        provider_key: connection.provider.as_str(),
        integration_key: connection.integration.as_str(),
        tags: connection.tags.as_ref(),
        meta: connection.meta.as_ref(),
        is_active: connection.is_active,
        is_valid: connection.is_valid,
        auth_scheme: connection.auth_scheme.as_deref(),
        account: connection.account.as_ref(),
        app_id: connection.app,
        credentials: connection.credentials.clone(),
        refresh_at: connection.refresh_at,
        expires_at: connection.expires_at,
        generation: connection.generation,
        auth_config: connection.auth_config.map(|id| id.to_string()).unwrap_or_default(),
        attempt: attempt.map(|attempt| attempt.nonce.as_str()),
        attempt_until: attempt.map(|attempt| attempt.until),
        attempt_data: attempt.map(|attempt| attempt.sealed.clone()),
        created_at: connection.created_at,
        updated_at: connection.updated_at,
        created_by_id: connection.created_by,
        scopes: connection.scopes.as_ref().map(|scopes| Value::from(scopes.clone())).as_ref(),
        granted_scopes: connection.granted.as_ref().map(|scopes| Value::from(scopes.clone())).as_ref(),
        asked: &json!(connection.asked),
        attempt_remote_id: attempt.and_then(|attempt| attempt.account.as_deref()),
    };
    db.insert("gateway_connections", row).await
}

/// An attempt to connect, as it is stored: its secrets sealed.
#[derive(Clone, Debug)]
pub(crate) struct StoredAttempt {
    pub(crate) nonce: String,
    pub(crate) until: Timestamp,
    pub(crate) sealed: Vec<u8>,
    /// The account at a provider that connects accounts itself.
    pub(crate) account: Option<String>,
}

/// Puts a new attempt in place of an older one, and of the reason why that one failed; the credential stays as it is.
pub(crate) async fn set_attempt(db: &Db, project: ProjectId, id: ConnectionId, attempt: &StoredAttempt) -> Result<bool, StoreError> {
    let sql = "update gateway_connections set attempt = $3, attempt_until = $4, attempt_data = $5, attempt_remote_id = $6, \
               reason = case when is_valid then reason else null end where project_id = $1 and id = $2";
    Ok(db
        .execute(sql, args![project, id, attempt.nonce.as_str(), attempt.until, attempt.sealed.clone(), attempt.account.as_deref()])
        .await?
        == 1)
}

/// The sealed part of an attempt that is still open.
pub(crate) async fn open_attempt(
    db: &Db,
    project: ProjectId,
    id: ConnectionId,
    nonce: &str,
    now: Timestamp,
) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "select attempt_data from gateway_connections where project_id = $1 and id = $2 and attempt = $3 and attempt_until > $4";
    let row = db.optional(sql, args![project, id, nonce, now]).await?;
    Ok(row.map(|row| row.get::<Option<Vec<u8>>>("attempt_data")).transpose()?.flatten())
}

/// The nonce and the sealed part of whichever attempt is open.
pub(crate) async fn waiting_attempt(
    db: &Db,
    project: ProjectId,
    id: ConnectionId,
    now: Timestamp,
) -> Result<Option<(String, Vec<u8>)>, StoreError> {
    let sql = "select attempt, attempt_data from gateway_connections \
               where project_id = $1 and id = $2 and attempt is not null and attempt_data is not null and attempt_until > $3";
    let row = db.optional(sql, args![project, id, now]).await?;
    row.map(|row| Ok((row.get("attempt")?, row.get("attempt_data")?))).transpose()
}

/// Uses an attempt up, and keeps when. Of two that try, one succeeds. The nonce stays until the grant is kept, so that whatever happens to the row
/// meanwhile wins.
pub(crate) async fn take_attempt(db: &Db, project: ProjectId, id: ConnectionId, nonce: &str, now: Timestamp) -> Result<bool, StoreError> {
    let sql = "update gateway_connections set attempt_until = 0 - $4, attempt_data = null \
               where project_id = $1 and id = $2 and attempt = $3 and attempt_until > $4";
    Ok(db.execute(sql, args![project, id, nonce, now]).await? == 1)
}

/// A credential, sealed, and its terms.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) sealed: Vec<u8>,
    pub(crate) terms: Terms,
    /// The account at a provider that connects accounts itself.
    pub(crate) remote: Option<String>,
}

/// Replaces the credential and makes the connection valid, if the attempt that brought it is still the latest.
#[expect(clippy::too_many_arguments, reason = "one row, written once")]
pub(crate) async fn set_grant(
    db: &Db,
    connection: &Connection,
    nonce: &str,
    scheme: &str,
    app: Option<AppId>,
    grant: &Grant,
    account: Option<&Value>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update gateway_connections set is_valid = true, reason = null, failing_since = null, failure = null, auth_scheme = $4, app_id = $5, credentials = $6, \
               refresh_at = $7, expires_at = $8, account = coalesce($9, account), generation = generation + 1, lease = null, lease_until = null, \
               attempt = null, attempt_until = null, attempt_remote_id = null, remote_id = $11, granted_scopes = $12, updated_at = $10 \
               where project_id = $1 and id = $2 and attempt = $3";
    let scopes = grant.terms.scopes.clone().map(Value::from);
    let args = args![
        connection.project,
        connection.id,
        nonce,
        scheme,
        app,
        grant.sealed.clone(),
        grant.terms.refresh_at,
        grant.terms.expires_at,
        account,
        now,
        grant.remote.as_deref(),
        scopes.as_ref()
    ];
    Ok(db.execute(sql, args).await? == 1)
}

/// Puts a credential in the place of another, unless the connection changed meanwhile.
pub(crate) async fn replace_grant(
    db: &Db,
    connection: &Connection,
    grant: &Grant,
    account: Option<&Value>,
    asked: &Value,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update gateway_connections set is_valid = true, reason = null, failing_since = null, failure = null, credentials = $4, refresh_at = $5, \
               expires_at = $6, account = coalesce($7, account), asked = $8, granted_scopes = $9, generation = generation + 1, lease = null, \
               lease_until = null, updated_at = $10 where project_id = $1 and id = $2 and generation = $3";
    let Connection { project, id, generation, .. } = connection;
    let Terms { refresh_at, expires_at, scopes } = &grant.terms;
    let scopes = scopes.clone().map(Value::from);
    let args = args![*project, *id, *generation, grant.sealed.clone(), *refresh_at, *expires_at, account, asked, scopes.as_ref(), now];
    Ok(db.execute(sql, args).await? == 1)
}

/// Takes the right to refresh, unless somebody else has it or has already done it.
pub(crate) async fn take_lease(
    db: &Db,
    connection: &Connection,
    lease: Uuid,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update gateway_connections set lease = $4, lease_until = $5 where project_id = $1 and id = $2 and generation = $3 \
               and (lease_until is null or lease_until < $6)";
    Ok(db.execute(sql, args![connection.project, connection.id, connection.generation, lease, until, now]).await? == 1)
}

/// Says that a refresh goes on.
pub(crate) async fn extend_lease(db: &Db, connection: &Connection, lease: Uuid, until: Timestamp) -> Result<(), StoreError> {
    let sql = "update gateway_connections set lease_until = $4 where project_id = $1 and id = $2 and lease = $3";
    db.execute(sql, args![connection.project, connection.id, lease, until]).await?;
    Ok(())
}

/// Drops every lease; for a process that is the only one on its database.
pub(crate) async fn drop_all_leases(db: &Db) -> Result<u64, StoreError> {
    db.execute("update gateway_connections set lease = null, lease_until = null where lease is not null", args![]).await
}

/// Keeps the tokens of a refresh, unless the connection changed meanwhile.
pub(crate) async fn finish_refresh(db: &Db, connection: &Connection, grant: &Grant, now: Timestamp) -> Result<bool, StoreError> {
    let sql = "update gateway_connections set credentials = $4, refresh_at = $5, expires_at = $6, generation = generation + 1, lease = null, \
               lease_until = null, updated_at = $7, granted_scopes = coalesce($8, granted_scopes) \
               where project_id = $1 and id = $2 and generation = $3 and is_valid";
    let Connection { project, id, generation, .. } = connection;
    let Terms { refresh_at, expires_at, scopes } = &grant.terms;
    let scopes = scopes.clone().map(Value::from);
    let args = args![*project, *id, *generation, grant.sealed.clone(), *refresh_at, *expires_at, now, scopes.as_ref()];
    Ok(db.execute(sql, args).await? == 1)
}

pub(crate) async fn drop_lease(db: &Db, connection: &Connection, lease: Uuid) -> Result<(), StoreError> {
    let sql = "update gateway_connections set lease = null, lease_until = null where project_id = $1 and id = $2 and lease = $3";
    db.execute(sql, args![connection.project, connection.id, lease]).await?;
    Ok(())
}

/// Marks a connection as not valid, with a reason for people, unless it changed meanwhile; whether it did so.
pub(crate) async fn invalidate(db: &Db, connection: &Connection, reason: &str, now: Timestamp) -> Result<bool, StoreError> {
    let sql = "update gateway_connections set is_valid = false, reason = $4, generation = generation + 1, lease = null, lease_until = null, \
               updated_at = $5 where project_id = $1 and id = $2 and generation = $3";
    Ok(db.execute(sql, args![connection.project, connection.id, connection.generation, reason, now]).await? == 1)
}

/// Revokes: not valid, no credential, no open attempt. The name of an account that its provider keeps stays, to remove it by.
pub(crate) async fn revoke(
    db: &Db,
    project: ProjectId,
    id: ConnectionId,
    by: Uuid,
    now: Timestamp,
) -> Result<Option<Connection>, StoreError> {
    let sql = concat!(
        "update gateway_connections set is_valid = false, reason = 'revoked', failing_since = null, failure = null, credentials = null, refresh_at = null, expires_at = null, granted_scopes = null, \
         attempt = null, attempt_until = null, attempt_data = null, attempt_remote_id = null, lease = null, lease_until = null, generation = generation + 1, \
         updated_at = $3, updated_by_id = $4 where project_id = $1 and id = $2 returning ",
        columns!()
    );
    db.returning(sql, args![project, id, now, by]).await?.as_ref().map(read).transpose()
}

/// Makes a connection that needs no credential usable again.
pub(crate) async fn revalidate(db: &Db, project: ProjectId, id: ConnectionId, now: Timestamp) -> Result<(), StoreError> {
    let sql =
        "update gateway_connections set is_valid = true, reason = null, updated_at = $3 where project_id = $1 and id = $2 and not is_valid";
    db.execute(sql, args![project, id, now]).await?;
    Ok(())
}

/// Notes that the service refuses a credential, unless there is another by now; whether it was noted.
pub(crate) async fn set_failing(
    db: &Db,
    connection: &Connection,
    generation: i64,
    failure: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update gateway_connections set failing_since = coalesce(failing_since, $4), failure = $5 \
               where project_id = $1 and id = $2 and generation = $3";
    Ok(db.execute(sql, args![connection.project, connection.id, generation, now, failure]).await? == 1)
}

pub(crate) async fn clear_failing(db: &Db, project: ProjectId, id: ConnectionId) -> Result<(), StoreError> {
    let sql = "update gateway_connections set failing_since = null, failure = null where project_id = $1 and id = $2";
    db.execute(sql, args![project, id]).await.map(|_| ())
}

/// Notes that a connection is used, unless somebody noted it since `before`.
pub(crate) async fn note_use(db: &Db, project: ProjectId, id: ConnectionId, now: Timestamp, before: Timestamp) -> Result<(), StoreError> {
    let sql = "update gateway_connections set last_used_at = $3 where project_id = $1 and id = $2 \
               and (last_used_at is null or last_used_at <= $4)";
    db.execute(sql, args![project, id, now, before]).await.map(|_| ())
}

/// Changes what people call a connection; what is not given stays.
pub(crate) async fn edit(
    db: &Db,
    project: ProjectId,
    id: ConnectionId,
    edit: &ConnectionEdit,
    by: Uuid,
    now: Timestamp,
) -> Result<Option<Connection>, StoreError> {
    let sql = concat!(
        "update gateway_connections set name = case when $3 then $4 else name end, \
         description = case when $5 then $6 else description end, updated_at = $7, updated_by_id = $8 \
         where project_id = $1 and id = $2 returning ",
        columns!()
    );
    let ConnectionEdit { name, description } = edit;
    let args = args![project, id, !name.is_kept(), name.text(), !description.is_kept(), description.text(), now, by];
    db.returning(sql, args).await?.as_ref().map(read).transpose()
}

/// Counts over all projects, for the operator.
pub(crate) async fn broken(db: &Db) -> Result<Broken, StoreError> {
    let sql = "select (select count(*) from gateway_connections where is_active and not is_valid and reason is not null) as not_valid, \
               (select count(*) from gateway_connections where is_active and is_valid and failing_since is not null) as failing";
    let row = db.optional(sql, args![]).await?;
    row.map_or(Ok(Broken::default()), |row| Ok(Broken { not_valid: row.get("not_valid")?, failing: row.get("failing")? }))
}

/// Keeps why an attempt failed, for a connection that has nothing better.
pub(crate) async fn note_failure(db: &Db, project: ProjectId, id: ConnectionId, reason: &str) -> Result<(), StoreError> {
    let sql = "update gateway_connections set reason = $3 where project_id = $1 and id = $2 and not is_valid";
    db.execute(sql, args![project, id, reason]).await?;
    Ok(())
}

/// The accounts at a provider that connects accounts itself: the one in use, and the one of an open attempt.
pub(crate) async fn remotes(db: &Db, project: ProjectId, provider: &str) -> Result<Vec<(Connection, Option<String>)>, StoreError> {
    let sql = concat!("select attempt_remote_id, ", columns!(), " from gateway_connections where project_id = $1 and provider_key = $2");
    db.all(sql, args![project, provider]).await?.iter().map(|row| Ok((read(row)?, row.get("attempt_remote_id")?))).collect()
}

/// The account of an open attempt of one row.
pub(crate) async fn attempt_remote(db: &Db, project: ProjectId, id: ConnectionId) -> Result<Option<String>, StoreError> {
    let row =
        db.optional("select attempt_remote_id from gateway_connections where project_id = $1 and id = $2", args![project, id]).await?;
    row.map_or(Ok(None), |row| row.get("attempt_remote_id"))
}

/// The valid connections behind an account of a provider that keeps accounts; it knows no projects.
pub(crate) async fn by_remote(db: &Db, provider: &str, account: &str) -> Result<Vec<Connection>, StoreError> {
    let sql = concat!("select ", columns!(), " from gateway_connections where provider_key = $1 and remote_id = $2 and is_valid");
    db.all(sql, args![provider, account]).await?.iter().map(read).collect()
}

/// Marks whichever connection uses an account as not valid. The provider names the account and nothing else; the row names the project.
pub(crate) async fn lose(db: &Db, provider: &str, account: &str, reason: &str, now: Timestamp) -> Result<(), StoreError> {
    let sql = "update gateway_connections set is_valid = false, reason = $3, generation = generation + 1, lease = null, lease_until = null, \
               updated_at = $4 where provider_key = $1 and remote_id = $2 and is_valid";
    db.execute(sql, args![provider, account, reason, now]).await.map(|_| ())
}

pub(crate) async fn delete(db: &Db, project: ProjectId, id: ConnectionId) -> Result<Option<Connection>, StoreError> {
    let sql = concat!("delete from gateway_connections where project_id = $1 and id = $2 returning ", columns!());
    db.returning(sql, args![project, id]).await?.as_ref().map(read).transpose()
}

/// Seals the fields of a connection.
pub(crate) fn seal_fields(sealer: &Sealer, id: ConnectionId, fields: &Fields) -> Vec<u8> {
    let map: Map<String, Value> = fields.expose().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    sealer.seal(Value::Object(map).to_string().as_bytes(), place(id, "credentials"))
}

/// Opens the fields of a connection.
pub(crate) fn open_fields(sealer: &Sealer, id: ConnectionId, sealed: &[u8]) -> Result<Fields, SealError> {
    let plain = sealer.open(sealed, place(id, "credentials"))?;
    let map: Map<String, Value> = serde_json::from_slice(&plain).map_err(|_| SealError::Damaged)?;
    Ok(map.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect())
}

pub(crate) fn place(id: ConnectionId, column: &'static str) -> SealedColumn<'static> {
    SealedColumn { table: TABLE, column, row: id.uuid() }
}
