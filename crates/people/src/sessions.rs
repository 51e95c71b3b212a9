//! Sessions: a random token in a browser, a hash in the database, an end by idleness and by age.

use std::time::Duration;

use kernel::key::{KeyHash, random_text};
use kernel::{KeyId, SessionId, Timestamp, UserId, hex};
use secrecy::{ExposeSecret, SecretString};
use store::{Row, StoreError, args};

use crate::{People, PeopleError, Visitor};

/// How often the use of a session is noted.
const NOTED_EVERY: Duration = Duration::from_mins(1);
const TOKEN_LENGTH: usize = 43;
/// How much is kept of what a browser calls itself.
const CLIENT_LENGTH: usize = 200;

/// As whom somebody is signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// As a person.
    Person,
    /// With a project key that was typed in.
    Key(KeyId),
    /// With the operator's key.
    Operator,
}

/// Somebody who is signed in.
#[derive(Clone, Debug)]
pub struct SignedIn {
    pub session: SessionId,
    /// Only a person is one; a key that belongs to a person proves nothing of its holder.
    pub person: Option<UserId>,
    pub via: Via,
    /// The person's name or address, the key's name, or `operator`.
    pub name: String,
    pub created_at: Timestamp,
}

/// A session that was just begun. The token is shown to the browser and to nobody else.
#[derive(Debug)]
pub struct OpenedSession {
    pub token: SecretString,
    pub id: SessionId,
    pub name: String,
}

/// A session as it is listed.
#[derive(Clone, Debug)]
pub struct Session {
    pub id: SessionId,
    pub person: Option<UserId>,
    pub key: Option<KeyId>,
    /// The person's name or address, the key's name, or `operator`.
    pub name: String,
    /// How it began: `password`, `link`, `invitation`, `provider:NAME`, `key` or `operator`.
    pub method: String,
    pub address: Option<String>,
    pub client: Option<String>,
    pub created_at: Timestamp,
    /// To the minute.
    pub used_at: Timestamp,
}

/// Whose session it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holder {
    Person(UserId),
    Key(KeyId),
    Operator,
}

macro_rules! select {
    ($filter:literal) => {
        concat!(
            "select s.id, s.user_id, s.key_id, s.method, s.address, s.client, s.created_at, s.used_at, \
             coalesce(u.name, u.email, k.name, 'operator') as name, u.disabled_at, k.revoked_at from sessions s \
             left join users u on u.id = s.user_id left join api_keys k on k.id = s.key_id ",
            $filter
        )
    };
}

impl Session {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let method: String = row.get("method")?;
        Ok(Self {
            id: row.get("id")?,
            person: row.get("user_id")?,
            key: row.get("key_id")?,
            name: row.get("name")?,
            method: method.split_once('#').map_or(method.as_str(), |(method, _)| method).to_owned(),
            address: row.get("address")?,
            client: row.get("client")?,
            created_at: row.get("created_at")?,
            used_at: row.get("used_at")?,
        })
    }

    fn signed_in(&self) -> SignedIn {
        let via = match (self.person, self.key) {
            (Some(_), _) => Via::Person,
            (None, Some(key)) => Via::Key(key),
            (None, None) => Via::Operator,
        };
        SignedIn { session: self.id, person: self.person, via, name: self.name.clone(), created_at: self.created_at }
    }
}

impl People {
    /// Who is signed in with a token: nobody once the session was ended, lay idle or grew old, once the person is disabled, or once the key is
    /// revoked.
    #[kernel::boxed]
    pub async fn signed_in(&self, token: &SecretString) -> Result<Option<SignedIn>, PeopleError> {
        let hash = KeyHash::of(token.expose_secret());
        let sql = select!("where s.hash = $1");
        let Some(row) = self.0.db.optional(sql, args![hash.as_bytes()]).await? else { return Ok(None) };
        let session = Session::read(&row)?;
        let now = self.0.clock.now();
        let is_refused = row.get::<Option<Timestamp>>("disabled_at")?.is_some() || row.get::<Option<Timestamp>>("revoked_at")?.is_some();
        let is_old_operator = session.signed_in().via == Via::Operator && row.get::<String>("method")? != self.operator_method();
        if is_refused || is_old_operator || !self.is_alive(&session) {
            return Ok(None);
        }
        if now >= session.used_at.plus(NOTED_EVERY) {
            self.0.db.execute("update sessions set used_at = $2 where id = $1", args![session.id, now]).await?;
        }
        Ok(Some(session.signed_in()))
    }

    /// Begins a session, with a token that nobody had before.
    pub(crate) async fn open_session(&self, holder: Holder, method: &str, visitor: &Visitor) -> Result<OpenedSession, PeopleError> {
        let now = self.0.clock.now();
        let (id, token) = (SessionId::new(), SecretString::from(format!("tys_{}", random_text(TOKEN_LENGTH))));
        let hash = KeyHash::of(token.expose_secret());
        let (user, key, method) = match holder {
            Holder::Person(user) => (Some(user), None, method.to_owned()),
            Holder::Key(key) => (None, Some(key), method.to_owned()),
            Holder::Operator => (None, None, self.operator_method()),
        };
        let address = visitor.address.map(|address| address.to_canonical().to_string());
        let clean = |client: &str| client.chars().filter(|c| !c.is_control()).take(CLIENT_LENGTH).collect::<String>();
        let client = visitor.client.as_deref().map(clean);
        let sql = "insert into sessions (id, hash, user_id, key_id, method, address, client, created_at, used_at) \
                   values ($1, $2, $3, $4, $5, $6, $7, $8, $8)";
        let bound = args![id, hash.as_bytes(), user, key, method, address, client, now];
        self.0.db.execute(sql, bound).await?;
        // Somebody who signs in again and again does not fill the table.
        let sql = "delete from sessions where user_id is not distinct from $1 and key_id is not distinct from $2 and id not in \
                   (select id from sessions where user_id is not distinct from $1 and key_id is not distinct from $2 order by id desc limit 100)";
        self.0.db.execute(sql, args![user, key]).await?;
        let name = match self.session(id).await? {
            Some(session) => session.name,
            None => return Err(PeopleError::SessionNotFound),
        };
        Ok(OpenedSession { token, id, name })
    }

    async fn session(&self, id: SessionId) -> Result<Option<Session>, PeopleError> {
        let row = self.0.db.optional(select!("where s.id = $1"), args![id]).await?;
        Ok(row.as_ref().map(Session::read).transpose()?)
    }

    /// A session of the operator ends with the key that began it.
    fn operator_method(&self) -> String {
        format!("operator#{}", &hex::encode(KeyHash::of(&hex::encode(self.0.operator_key.as_bytes())).as_bytes())[..16])
    }

    /// Ends the session of a token.
    #[kernel::boxed]
    pub async fn sign_out(&self, token: &SecretString) -> Result<(), PeopleError> {
        let hash = KeyHash::of(token.expose_secret());
        self.0.db.execute("delete from sessions where hash = $1", args![hash.as_bytes()]).await?;
        Ok(())
    }

    /// Where the same person is signed in, the newest first; of a pasted key or the operator, where else that one is.
    #[kernel::boxed]
    pub async fn sessions(&self, of: &SignedIn) -> Result<Vec<Session>, PeopleError> {
        let (user, key) = holder_of(of);
        let sql = select!("where s.user_id is not distinct from $1 and s.key_id is not distinct from $2 order by s.id desc limit 100");
        let rows = self.0.db.all(sql, args![user, key]).await?;
        let all: Vec<Session> = rows.iter().map(Session::read).collect::<Result<_, _>>()?;
        Ok(all.into_iter().filter(|session| self.is_alive(session)).collect())
    }

    /// Every session, the newest first, for the operator.
    #[kernel::boxed]
    pub async fn all_sessions(&self, of: Option<UserId>) -> Result<Vec<Session>, PeopleError> {
        let sql = select!("where $1 is null or s.user_id = $1 order by s.id desc limit 1000");
        let rows = self.0.db.all(sql, args![of]).await?;
        let all: Vec<Session> = rows.iter().map(Session::read).collect::<Result<_, _>>()?;
        Ok(all.into_iter().filter(|session| self.is_alive(session)).collect())
    }

    fn is_alive(&self, session: &Session) -> bool {
        self.is_in_time(session.created_at, session.used_at)
    }

    fn is_in_time(&self, created_at: Timestamp, used_at: Timestamp) -> bool {
        let (now, settings) = (self.0.clock.now(), &self.0.settings);
        now < created_at.plus(settings.age) && now < used_at.plus(settings.idle)
    }

    /// How many of the sessions that were removed somebody could still have used.
    fn alive_among(&self, removed: &[Row]) -> Result<u64, PeopleError> {
        let alive = |row: &Row| Ok::<_, StoreError>(u64::from(self.is_in_time(row.get("created_at")?, row.get("used_at")?)));
        Ok(removed.iter().map(alive).sum::<Result<u64, _>>()?)
    }

    /// Ends one session of the same person.
    #[kernel::boxed]
    pub async fn end_session(&self, of: &SignedIn, id: SessionId) -> Result<(), PeopleError> {
        let (user, key) = holder_of(of);
        let sql = "delete from sessions where id = $1 and user_id is not distinct from $2 and key_id is not distinct from $3";
        if self.0.db.execute(sql, args![id, user, key]).await? == 0 { Err(PeopleError::SessionNotFound) } else { Ok(()) }
    }

    /// Ends every session of the same person but this one; how many there were.
    #[kernel::boxed]
    pub async fn end_others(&self, of: &SignedIn) -> Result<u64, PeopleError> {
        let (user, key) = holder_of(of);
        let sql = "delete from sessions where id <> $1 and user_id is not distinct from $2 and key_id is not distinct from $3 \
                   returning created_at, used_at";
        self.alive_among(&self.0.db.returning_all(sql, args![of.session, user, key]).await?)
    }

    /// Ends every session of a person; how many there were.
    #[kernel::boxed]
    pub async fn end_all(&self, user: UserId) -> Result<u64, PeopleError> {
        let sql = "delete from sessions where user_id = $1 returning created_at, used_at";
        self.alive_among(&self.0.db.returning_all(sql, args![user]).await?)
    }

    /// Lets somebody sign in no more and signs them out everywhere, or lets them sign in again.
    #[kernel::boxed]
    pub async fn set_disabled(&self, user: UserId, is_disabled: bool) -> Result<(), PeopleError> {
        self.0.accounts.set_disabled(user, is_disabled).await?;
        if is_disabled {
            self.end_all(user).await?;
        }
        Ok(())
    }

    /// Ends any session, for the operator.
    #[kernel::boxed]
    pub async fn end_any(&self, id: SessionId) -> Result<(), PeopleError> {
        let ended = self.0.db.execute("delete from sessions where id = $1", args![id]).await?;
        if ended == 0 { Err(PeopleError::SessionNotFound) } else { Ok(()) }
    }
}

fn holder_of(signed_in: &SignedIn) -> (Option<UserId>, Option<KeyId>) {
    match signed_in.via {
        Via::Person => (signed_in.person, None),
        Via::Key(key) => (None, Some(key)),
        Via::Operator => (None, None),
    }
}
