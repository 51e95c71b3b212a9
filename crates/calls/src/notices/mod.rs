//! Notices: who is told that a call waits for a person. An address gets a signed post, or a tool is called with what its author wrote, with
//! the permissions of whoever saved it. What is told never holds the arguments of the call that waits.

mod message;
mod send;
pub(crate) mod to_send;

use egress::webhook;
use kernel::key::random_bytes;
use kernel::seal::{SealedColumn, Sealer};
use kernel::{CallRef, KeyId, NoticeId, Permission, ProjectId, Scope, Timestamp, UserId};
use serde_json::{Map, Value};
use store::{Db, Row, StoreError, args, row};
use url::Url;

use crate::{CallError, Calls, ResealError};

pub(crate) use send::Turns;

use self::message::Message;

/// How many notices a project may have, which is also what one list shows.
const MOST: usize = 10;
const MAX_URL: usize = 2000;
/// The longest arguments, in bytes.
const MAX_ARGUMENTS: usize = 32 << 10;

macro_rules! columns {
    () => {
        "project_id, id, kind, url, secret, call_ref, arguments, key_id, user_id, last_error, last_at"
    };
}

/// Somebody who is told that a call waits.
#[derive(Clone, Debug)]
pub struct Notice {
    pub id: NoticeId,
    pub project: ProjectId,
    pub way: NoticeWay,
    /// Who saved it.
    key: KeyId,
    user: Option<UserId>,
    secret: Option<Vec<u8>>,
    /// What went wrong the last time, if something did.
    pub last_error: Option<String>,
    pub last_at: Option<Timestamp>,
}

/// How somebody is told.
#[derive(Clone, Debug)]
pub enum NoticeWay {
    /// A signed post to an address.
    Webhook { url: String },
    /// A call of an action, with texts that hold `{{ approval... }}`.
    Tool { call_ref: String, arguments: Map<String, Value> },
}

impl Notice {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let kind: String = row.get("kind")?;
        let way = if kind == "webhook" {
            NoticeWay::Webhook { url: row.get("url")? }
        } else {
            let arguments: Value = row.get("arguments")?;
            NoticeWay::Tool { call_ref: row.get("call_ref")?, arguments: arguments.as_object().cloned().unwrap_or_default() }
        };
        Ok(Self {
            id: row.get("id")?,
            project: row.get("project_id")?,
            way,
            key: row.get("key_id")?,
            user: row.get("user_id")?,
            secret: row.get("secret")?,
            last_error: row.get("last_error")?,
            last_at: row.get("last_at")?,
        })
    }
}

fn place(id: NoticeId) -> SealedColumn<'static> {
    SealedColumn { table: "approval_notices", column: "secret", row: id.uuid() }
}

/// Seals the secrets of notices with the current key; a secret is never changed otherwise.
pub(crate) async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, ResealError> {
    let mut resealed = 0;
    for row in db.all("select project_id, id, secret from approval_notices where secret is not null", args![]).await? {
        let (project, id, old): (ProjectId, NoticeId, Vec<u8>) = (row.get("project_id")?, row.get("id")?, row.get("secret")?);
        if !sealer.is_current(&old) {
            let new = sealer.seal(&sealer.open(&old, place(id))?, place(id));
            resealed +=
                db.execute("update approval_notices set secret = $3 where project_id = $1 and id = $2", args![project, id, new]).await?;
        }
    }
    Ok(resealed)
}

impl Calls {
    /// The notices of a project, the oldest first.
    #[kernel::boxed]
    pub async fn notices(&self, project: ProjectId) -> Result<Vec<Notice>, CallError> {
        let sql = concat!("select ", columns!(), " from approval_notices where project_id = $1 order by id");
        Ok(self.0.db.all(sql, args![project]).await?.iter().map(Notice::read).collect::<Result<_, _>>()?)
    }

    /// Whether people are told of approvals in the name of this key, membership or grant.
    #[kernel::boxed]
    pub async fn tells_by(&self, project: ProjectId, key: KeyId) -> Result<bool, StoreError> {
        let sql = "select 1 as found from approval_notices where project_id = $1 and key_id = $2 limit 1";
        Ok(self.0.db.optional(sql, args![project, key]).await?.is_some())
    }

    async fn notice(&self, project: ProjectId, id: NoticeId) -> Result<Notice, CallError> {
        let sql = concat!("select ", columns!(), " from approval_notices where project_id = $1 and id = $2");
        let row = self.0.db.optional(sql, args![project, id]).await?.ok_or(CallError::NoticeNotFound)?;
        Ok(Notice::read(&row)?)
    }

    /// Makes a notice, and the secret of a webhook, which is shown once.
    #[kernel::boxed]
    pub async fn create_notice(&self, scope: Scope, way: NoticeWay) -> Result<(Notice, Option<String>), CallError> {
        match &way {
            NoticeWay::Webhook { url } => self.check_address(url)?,
            NoticeWay::Tool { call_ref, arguments } => self.check_tool(scope, call_ref, arguments).await?,
        }
        let (id, now) = (NoticeId::new(), self.0.clock.now());
        let secret = matches!(way, NoticeWay::Webhook { .. }).then(|| webhook::secret(&random_bytes()));
        let sealed = secret.as_ref().map(|secret| self.0.sealer.seal(secret.as_bytes(), place(id)));
        let (kind, url, call_ref, arguments) = match &way {
            NoticeWay::Webhook { url } => ("webhook", Some(url.as_str()), None, None),
            NoticeWay::Tool { call_ref, arguments } => {
                ("tool", None, Some(call_ref.as_str()), Some(Value::Object(arguments.clone()).to_string()))
            }
        };
        let row = row! {
            project_id: scope.project,
            id: id,
            kind: kind,
            url: url,
            secret: sealed.clone(),
            call_ref: call_ref,
            arguments: arguments,
            key_id: scope.key,
            user_id: scope.user,
            created_at: now,
        };
        let mut tx = self.0.db.begin().await?;
        let many = tx.optional("select count(*) as many from approval_notices where project_id = $1", args![scope.project]).await?;
        if many.map_or(Ok(0), |row| row.get::<i64>("many"))? >= i64::try_from(MOST).unwrap_or(i64::MAX) {
            return Err(CallError::TooManyNotices(MOST));
        }
        tx.insert("approval_notices", row).await?;
        tx.commit().await?;
        let (key, user) = (scope.key, scope.user);
        Ok((Notice { id, project: scope.project, way, key, user, secret: sealed, last_error: None, last_at: None }, secret))
    }

    #[kernel::boxed]
    pub async fn delete_notice(&self, scope: Scope, id: NoticeId) -> Result<(), CallError> {
        let deleted = self.0.db.execute("delete from approval_notices where project_id = $1 and id = $2", args![scope.project, id]).await?;
        if deleted == 0 { Err(CallError::NoticeNotFound) } else { Ok(()) }
    }

    fn check_address(&self, written: &str) -> Result<(), CallError> {
        if written.len() > MAX_URL {
            return Err(CallError::NoticeInvalid(format!("`url` may have {MAX_URL} characters.")));
        }
        let url: Url =
            written.parse().map_err(|_| CallError::NoticeInvalid("`url` is no address; begin it with `https://`.".to_owned()))?;
        self.0.egress.check_url(&url).map_err(|error| CallError::NoticeInvalid(format!("`url`: {error}.")))
    }

    /// Refuses a tool that cannot be called as it is written, before somebody relies on it.
    async fn check_tool(&self, scope: Scope, call_ref: &str, arguments: &Map<String, Value>) -> Result<(), CallError> {
        if !scope.may(Permission::RunTools) {
            return Err(CallError::Forbidden(Permission::RunTools));
        }
        if kernel::json::size_of_members(arguments, MAX_ARGUMENTS) >= MAX_ARGUMENTS {
            return Err(CallError::NoticeInvalid(format!("`arguments` may have {} KiB.", MAX_ARGUMENTS >> 10)));
        }
        // The steps of a workflow may ask, and a question about a question would have no end.
        let CallRef::Gateway { provider, integration, action, connection } = call_ref.parse()? else {
            return Err(CallError::NoticeInvalid(
                "`call_ref` must name an action through a connection, such as `tools.native.slack.SEND_A_MESSAGE.main`.".to_owned(),
            ));
        };
        let template = message::template(arguments)?;
        let target = self.target(scope, &provider, &integration, &action, &connection).await?;
        let example = Message::test(String::new(), self.0.clock.now());
        let filled = self.fill(scope.project, template, &example).await.map_err(CallError::NoticeInvalid)?;
        self.check_values(scope.project, &target.action, Value::Object(filled)).await
    }
}
