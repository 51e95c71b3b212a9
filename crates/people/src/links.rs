//! One-time links that sign somebody in, made by the operator.

use std::time::Duration;

use accounts::User;
use kernel::key::{KeyHash, PlainKey};
use kernel::{Timestamp, UserId};
use store::args;

use crate::sessions::Holder;
use crate::{OpenedSession, People, PeopleError, Visitor};

/// How long a link can be used.
const LIFE: Duration = Duration::from_hours(24);

impl People {
    /// Makes a link for somebody; its token is shown this once.
    #[kernel::boxed]
    pub async fn make_link(&self, user: UserId) -> Result<PlainKey, PeopleError> {
        let user = self.0.accounts.user(user).await?.id;
        let (token, now) = (PlainKey::generate("tyl"), self.0.clock.now());
        let sql = "insert into sign_in_links (hash, user_id, created_at, expires_at) values ($1, $2, $3, $4)";
        self.0.db.execute(sql, args![token.hash().as_bytes(), user, now, now.plus(LIFE)]).await?;
        Ok(token)
    }

    /// Whom a link is for. Looking does not use it up.
    #[kernel::boxed]
    pub async fn link_for(&self, token: &str) -> Result<User, PeopleError> {
        let sql = "select user_id, expires_at from sign_in_links where hash = $1";
        let row = self.0.db.optional(sql, args![KeyHash::of(token).as_bytes()]).await?.ok_or(PeopleError::LinkInvalid)?;
        if row.get::<Timestamp>("expires_at")? <= self.0.clock.now() {
            return Err(PeopleError::LinkInvalid);
        }
        let user = self.0.accounts.user(row.get("user_id")?).await?;
        if user.disabled_at.is_some() { Err(PeopleError::LinkInvalid) } else { Ok(user) }
    }

    /// Signs in with a link, once.
    #[kernel::boxed]
    pub async fn by_link(&self, token: &str, visitor: &Visitor) -> Result<OpenedSession, PeopleError> {
        self.count_address(visitor).await?;
        let user = self.link_for(token).await?;
        let sql = "delete from sign_in_links where hash = $1";
        if self.0.db.execute(sql, args![KeyHash::of(token).as_bytes()]).await? == 0 {
            return Err(PeopleError::LinkInvalid);
        }
        self.open_session(Holder::Person(user.id), "link", visitor).await
    }
}
