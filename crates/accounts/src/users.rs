//! Users: the people that keys and memberships belong to.

use kernel::{Timestamp, UserId};
use store::{Row, StoreError, Tx, args};

use crate::{AccountError, Accounts};

/// The longest name of a person.
const LONGEST_NAME: usize = 200;

/// One user.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    pub email: String,
    pub name: Option<String>,
    pub created_at: Timestamp,
    /// A disabled user cannot sign in and is signed in nowhere.
    pub disabled_at: Option<Timestamp>,
}

impl User {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            email: row.get("email")?,
            name: row.get("name")?,
            created_at: row.get("created_at")?,
            disabled_at: row.get("disabled_at")?,
        })
    }

    /// What people call this user.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.email)
    }
}

impl Accounts {
    /// Makes a user who has no project yet.
    #[kernel::boxed]
    pub async fn create_user(&self, email: &str, name: Option<String>) -> Result<User, AccountError> {
        let mut tx = self.db.begin().await?;
        let user = insert_user(&mut tx, email, name, self.clock.now()).await?;
        tx.commit().await?;
        Ok(user)
    }

    #[kernel::boxed]
    pub async fn user(&self, id: UserId) -> Result<User, AccountError> {
        let sql = "select id, email, name, created_at, disabled_at from users where id = $1";
        let row = self.db.optional(sql, args![id]).await?.ok_or(AccountError::UserNotFound)?;
        Ok(User::read(&row)?)
    }

    /// The user with an e-mail address.
    #[kernel::boxed]
    pub async fn user_by_email(&self, email: &str) -> Result<UserId, AccountError> {
        let row = self.db.optional("select id from users where email = $1", args![normal_email(email)?]).await?;
        row.map_or(Err(AccountError::UserNotFound), |row| Ok(row.get("id")?))
    }

    /// Every user, for the operator.
    #[kernel::boxed]
    pub async fn list_users(&self) -> Result<Vec<User>, AccountError> {
        let rows = self.db.all("select id, email, name, created_at, disabled_at from users order by email", args![]).await?;
        Ok(rows.iter().map(User::read).collect::<Result<_, _>>()?)
    }

    /// Lets a user sign in no more, or again.
    #[kernel::boxed]
    pub async fn set_disabled(&self, id: UserId, is_disabled: bool) -> Result<User, AccountError> {
        let sql = "update users set disabled_at = $2 where id = $1 returning id, email, name, created_at, disabled_at";
        let at = is_disabled.then(|| self.clock.now());
        let row = self.db.returning(sql, args![id, at]).await?.ok_or(AccountError::UserNotFound)?;
        Ok(User::read(&row)?)
    }
}

/// Makes a user as part of something larger.
#[kernel::boxed]
pub async fn insert_user(tx: &mut Tx, email: &str, name: Option<String>, now: Timestamp) -> Result<User, AccountError> {
    let email = normal_email(email)?;
    if let Some(name) = name.as_deref().filter(|name| name.chars().count() > LONGEST_NAME || name.contains(char::is_control)) {
        return Err(AccountError::Invalid(name.chars().take(LONGEST_NAME).collect(), "name"));
    }
    let user = User { id: UserId::new(), email, name, created_at: now, disabled_at: None };
    let sql = "insert into users (id, email, name, created_at) values ($1, $2, $3, $4) on conflict (email) do nothing";
    match tx.execute(sql, args![user.id, user.email.as_str(), user.name.as_deref(), now]).await? {
        0 => Err(AccountError::EmailTaken(user.email)),
        _ => Ok(user),
    }
}

/// An e-mail address as it is kept: trimmed and in small letters.
pub fn normal_email(text: &str) -> Result<String, AccountError> {
    let email = text.trim().to_lowercase();
    let plausible = email.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !host.contains('@'));
    let clean = email.len() <= 254 && !email.contains(|c: char| c.is_whitespace() || c.is_control());
    if plausible && clean { Ok(email) } else { Err(AccountError::Invalid(text.chars().take(254).collect(), "e-mail address")) }
}
