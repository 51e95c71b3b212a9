//! Devices without a browser (RFC 8628): a code for the device, a short one for the person, and a decision in between.

use std::time::Duration;

use kernel::key::{KeyHash, PlainKey, random_bytes};
use kernel::{PermissionSet, ProjectId, Timestamp};
use store::{Row, StoreError, args, row};

use crate::code::Approval;
use crate::grant::{self, Granter, NewGrant};
use crate::scope::stored_scope;
use crate::token::{self, Tokens};
use crate::{Client, GrantError, Grants, Refusal, Surface, write_scope};

const LIFE: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_secs(2);
const SLOWER: i64 = 5;
/// How many devices may wait at once.
const MOST: i64 = 10_000;
/// Letters that make no words and are not taken for each other.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// What a device shows and waits with.
#[derive(Debug)]
pub struct DeviceCode {
    pub device: PlainKey,
    pub user: String,
    pub expires_in: Duration,
    pub interval: Duration,
}

/// A device that waits for a person.
#[derive(Clone, Debug)]
pub struct PendingDevice {
    pub client_id: String,
    pub client_name: String,
    pub surface: Surface,
    pub asked: PermissionSet,
}

/// What a person says to a device.
#[derive(Clone, Debug)]
pub enum DeviceDecision {
    Approve(Approval),
    Deny,
}

/// What a device is told that asks how it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Waiting,
    TooFast,
    Denied,
    Approved,
    Expired,
    Used,
}

/// A device code as it is kept.
#[derive(Debug)]
struct Kept {
    client_id: String,
    client_name: String,
    surface: Surface,
    scope: PermissionSet,
    poll_seconds: i64,
    polled_at: Option<Timestamp>,
    expires_at: Timestamp,
    decision: Option<String>,
    project: Option<ProjectId>,
    granter: Option<Granter>,
    granted: Option<String>,
    used_at: Option<Timestamp>,
}

impl Kept {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let surface: String = row.get("surface")?;
        Ok(Self {
            client_id: row.get("client_id")?,
            client_name: row.get("client_name")?,
            surface: Surface::named(&surface).ok_or_else(|| StoreError::Column("surface".to_owned()))?,
            scope: stored_scope(&row.get::<String>("scope")?),
            poll_seconds: row.get("poll_seconds")?,
            polled_at: row.get("polled_at")?,
            expires_at: row.get("expires_at")?,
            decision: row.get("decision")?,
            project: row.get("project_id")?,
            granter: if row.get::<Option<String>>("granted")?.is_some() { Some(Granter::read(row)?) } else { None },
            granted: row.get("granted")?,
            used_at: row.get("used_at")?,
        })
    }

    fn standing(&self, now: Timestamp) -> Standing {
        let wait = Duration::from_secs(self.poll_seconds.unsigned_abs());
        standing(now, self.expires_at, self.used_at.is_some(), self.decision.as_deref(), self.polled_at.map(|last| last.plus(wait)))
    }
}

fn standing(now: Timestamp, expires: Timestamp, is_used: bool, decision: Option<&str>, next: Option<Timestamp>) -> Standing {
    match decision {
        _ if is_used => Standing::Used,
        _ if now >= expires => Standing::Expired,
        Some("approved") => Standing::Approved,
        Some(_) => Standing::Denied,
        None if next.is_some_and(|next| now < next) => Standing::TooFast,
        None => Standing::Waiting,
    }
}

/// The code that a person types, however they write it.
fn normal_code(text: &str) -> Option<String> {
    let letters: String = text.chars().filter(|letter| !letter.is_whitespace() && *letter != '-').take(9).collect();
    let letters = letters.to_ascii_uppercase();
    let fits = letters.len() == 8 && letters.bytes().all(|letter| LETTERS.contains(&letter));
    fits.then(|| format!("{}-{}", &letters[..4], &letters[4..]))
}

fn new_code() -> String {
    let mut letters = String::new();
    while letters.len() < 8 {
        // 240 is the largest multiple of 20 in a byte; what lies above would favour the first letters.
        let bytes = random_bytes::<16>().into_iter().filter(|&byte| byte < 240);
        letters.extend(bytes.map(|byte| LETTERS[usize::from(byte % 20)] as char).take(8 - letters.len()));
    }
    format!("{}-{}", &letters[..4], &letters[4..])
}

fn unknown() -> GrantError {
    GrantError::refused(Refusal::InvalidGrant, "The device code is unknown or used. Begin again.")
}

macro_rules! columns {
    () => {
        "client_id, client_name, surface, scope, poll_seconds, polled_at, expires_at, decision, project_id, user_id, key_id, granted, used_at"
    };
}

impl Grants {
    /// Begins the sign-in of a device.
    #[kernel::boxed]
    pub async fn begin_device(&self, client: &Client, surface: &Surface, asked: PermissionSet) -> Result<DeviceCode, GrantError> {
        let now = self.0.clock.now();
        let counted = self.0.db.optional("select count(*) as waiting from oauth_device_codes where expires_at > $1", args![now]).await?;
        if counted.map_or(Ok(0), |row| row.get::<i64>("waiting"))? >= MOST {
            return Err(GrantError::refused(Refusal::SlowDown, "Too many devices wait for a person. Try again in a few minutes."));
        }
        let code = DeviceCode { device: PlainKey::generate("tyd"), user: new_code(), expires_in: LIFE, interval: POLL };
        let row = row! {
            hash: code.device.hash().as_bytes().to_vec(),
            user_code: code.user.as_str(),
            client_id: client.id.as_str(),
            client_name: client.name.as_str(),
            surface: surface.path(),
            scope: write_scope(asked),
            poll_seconds: i64::try_from(POLL.as_secs()).unwrap_or(5),
            expires_at: now.plus(LIFE),
        };
        self.0.db.insert("oauth_device_codes", row).await?;
        Ok(code)
    }

    /// The device that shows a code, if it still waits.
    #[kernel::boxed]
    pub async fn waiting_device(&self, user_code: &str) -> Result<Option<PendingDevice>, GrantError> {
        let Some(code) = normal_code(user_code) else { return Ok(None) };
        let sql = concat!("select ", columns!(), " from oauth_device_codes where user_code = $1 and decision is null and expires_at > $2");
        let Some(row) = self.0.db.optional(sql, args![code, self.0.clock.now()]).await? else { return Ok(None) };
        let kept = Kept::read(&row)?;
        Ok(Some(PendingDevice { client_id: kept.client_id, client_name: kept.client_name, surface: kept.surface, asked: kept.scope }))
    }

    /// Writes down what a person said; whether the device still waited for it.
    #[kernel::boxed]
    pub async fn decide_device(&self, user_code: &str, decision: &DeviceDecision) -> Result<bool, GrantError> {
        let Some(code) = normal_code(user_code) else { return Ok(false) };
        if let DeviceDecision::Approve(approval) = decision {
            self.admit(approval.project, approval.granter).await?;
        }
        let (word, approval) = match decision {
            DeviceDecision::Approve(approval) => ("approved", Some(approval)),
            DeviceDecision::Deny => ("denied", None),
        };
        let sql = "update oauth_device_codes set decision = $2, project_id = $3, user_id = $4, key_id = $5, granted = $6 \
                   where user_code = $1 and decision is null and expires_at > $7 returning client_id";
        let args = args![
            code,
            word,
            approval.map(|approval| approval.project),
            approval.and_then(|approval| approval.granter.user()),
            approval.and_then(|approval| approval.granter.key()),
            approval.map(|approval| write_scope(approval.permissions)),
            self.0.clock.now(),
        ];
        let Some(row) = self.0.db.returning(sql, args).await? else { return Ok(false) };
        if approval.is_some() {
            self.keep_client(&row.get::<String>("client_id")?).await?;
        }
        Ok(true)
    }

    /// Gives a device its tokens, or says why there are none yet.
    #[kernel::boxed]
    pub async fn poll_device(&self, client: &Client, device_code: &str) -> Result<Tokens, GrantError> {
        let hash = KeyHash::of(device_code);
        let now = self.0.clock.now();
        let sql = concat!("select ", columns!(), " from oauth_device_codes where hash = $1");
        let row = self.0.db.optional(sql, args![hash.as_bytes()]).await?.ok_or_else(unknown)?;
        let kept = Kept::read(&row)?;
        if kept.client_id != client.id {
            return Err(unknown());
        }
        let refuse = |refusal, why: &str| Err(GrantError::refused(refusal, why));
        match kept.standing(now) {
            Standing::Waiting => {
                self.polled(&hash, now, 0).await?;
                refuse(Refusal::AuthorizationPending, "Nobody has decided yet. Ask again after the interval.")
            }
            Standing::TooFast => {
                self.polled(&hash, now, SLOWER).await?;
                refuse(Refusal::SlowDown, "Ask five seconds less often from now on.")
            }
            Standing::Denied => refuse(Refusal::AccessDenied, "The person said no."),
            Standing::Expired => refuse(Refusal::ExpiredToken, "The code has expired. Begin again."),
            Standing::Used => Err(unknown()),
            Standing::Approved => self.redeem_device(&kept, &hash, now).await,
        }
    }

    async fn polled(&self, hash: &KeyHash, now: Timestamp, slower: i64) -> Result<(), StoreError> {
        let sql = "update oauth_device_codes set polled_at = $2, poll_seconds = poll_seconds + $3 where hash = $1";
        self.0.db.execute(sql, args![hash.as_bytes(), now, slower]).await.map(|_| ())
    }

    async fn redeem_device(&self, kept: &Kept, hash: &KeyHash, now: Timestamp) -> Result<Tokens, GrantError> {
        let (Some(project), Some(granter), Some(granted)) = (kept.project, kept.granter, &kept.granted) else { return Err(unknown()) };
        let mut tx = self.0.db.begin().await?;
        let sql = "update oauth_device_codes set used_at = $2 where hash = $1 and used_at is null";
        if tx.execute(sql, args![hash.as_bytes(), now]).await? == 0 {
            return Err(unknown());
        }
        let new = NewGrant {
            project,
            granter,
            client_id: &kept.client_id,
            client_name: &kept.client_name,
            surface: &kept.surface,
            permissions: stored_scope(granted),
        };
        let grant = grant::insert(&mut tx, new, now).await?;
        let tokens = token::issue(&mut tx, &grant, grant.permissions, now).await?;
        tx.commit().await?;
        Ok(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_however_it_is_typed() {
        let code = new_code();
        assert_eq!(normal_code(&code), Some(code.clone()));
        for (typed, read) in [
            ("bcdf-ghjk", Some("BCDF-GHJK")),
            (" BCDFGHJK ", Some("BCDF-GHJK")),
            ("b c d f g h j k", Some("BCDF-GHJK")),
            ("BCDF-GHJ", None),
            ("BCDF-GHJKL", None),
            ("ABCD-EFGH", None),
            ("", None),
            ("ßßßß-ßßßß", None),
        ] {
            assert_eq!(normal_code(typed).as_deref(), read, "{typed}");
        }
    }

    #[test]
    fn a_device_is_told_how_it_stands() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        for (now, used, decision, next, expected) in [
            (5, false, None, None, Standing::Waiting),
            (5, false, None, Some(5), Standing::Waiting),
            (5, false, None, Some(6), Standing::TooFast),
            (5, false, Some("approved"), Some(6), Standing::Approved),
            (5, false, Some("denied"), None, Standing::Denied),
            (10, false, None, None, Standing::Expired),
            (10, false, Some("approved"), None, Standing::Expired),
            (5, true, Some("approved"), None, Standing::Used),
            (99, true, Some("approved"), None, Standing::Used),
        ] {
            assert_eq!(standing(at(now), at(10), used, decision, next.map(at)), expected, "{now} {used} {decision:?} {next:?}");
        }
    }
}
