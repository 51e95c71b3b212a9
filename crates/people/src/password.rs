//! Passwords: argon2id, a few at a time, and the same answer in the same time whether there is an account or not.

use std::sync::LazyLock;

use accounts::normal_email;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, password_hash::phc::PasswordHash};
use kernel::key::random_bytes;
use kernel::{Timestamp, UserId};
use secrecy::{ExposeSecret, SecretString};
use store::args;

use crate::sessions::Holder;
use crate::{OpenedSession, People, PeopleError, SignedIn, Visitor};

const SHORTEST: usize = 10;
/// More would be work without use.
const LONGEST: usize = 200;
const SALT: usize = 16;

/// What stands in for the password of an account that has none, so that it takes as long to refuse.
static NOBODYS: LazyLock<String> = LazyLock::new(|| hash(&random_bytes::<32>()).unwrap_or_default());

/// How far a right password leads.
#[derive(Debug)]
pub enum Passed {
    SignedIn(OpenedSession),
    /// A code is needed too; the ticket says that the password was right.
    NeedsCode {
        ticket: String,
    },
}

fn hash(password: &[u8]) -> Option<String> {
    let made: Result<PasswordHash, _> = Argon2::default().hash_password_with_salt(password, &random_bytes::<SALT>());
    made.ok().map(|hash| hash.to_string())
}

fn is_right(password: &[u8], hash: &str) -> bool {
    Argon2::default().verify_password(password, hash).is_ok()
}

/// Whether somebody may have this password.
fn check(password: &SecretString, email: &str) -> Result<(), PeopleError> {
    let text = password.expose_secret();
    let length = text.chars().count();
    if length < SHORTEST {
        return Err(PeopleError::PasswordWeak("A password has 10 characters at least."));
    }
    if length > LONGEST {
        return Err(PeopleError::PasswordWeak("A password has 200 characters at most."));
    }
    let first = text.chars().next();
    let is_one_character = text.chars().all(|c| Some(c) == first);
    if is_one_character || text.eq_ignore_ascii_case(email) {
        return Err(PeopleError::PasswordWeak("This password is too easy to guess. Take a longer or less usual one."));
    }
    Ok(())
}

impl People {
    /// Signs in with an address and a password. Everything that may be wrong is refused in the same words.
    #[kernel::boxed]
    pub async fn by_password(&self, email: &str, password: &SecretString, visitor: &Visitor) -> Result<Passed, PeopleError> {
        if !self.0.settings.passwords {
            return Err(PeopleError::PasswordsOff);
        }
        self.count_address(visitor).await?;
        let account = email.trim().to_lowercase();
        self.count_account(&account).await?;
        let row = match normal_email(&account) {
            Ok(email) => {
                let sql = "select id, password, disabled_at, totp_confirmed_at from users where email = $1";
                self.0.db.optional(sql, args![email]).await?
            }
            Err(_) => None,
        };
        let kept = match &row {
            Some(row) => row.get::<Option<String>>("password")?,
            None => None,
        };
        let is_right = self.verify(password, kept.clone().unwrap_or_else(|| NOBODYS.clone())).await? && kept.is_some();
        let Some(row) = row.filter(|_| is_right) else { return Err(PeopleError::Refused) };
        if row.get::<Option<Timestamp>>("disabled_at")?.is_some() {
            return Err(PeopleError::Refused);
        }
        let user: UserId = row.get("id")?;
        if row.get::<Option<Timestamp>>("totp_confirmed_at")?.is_some() {
            return Ok(Passed::NeedsCode { ticket: self.code_ticket(user, kept.as_deref().unwrap_or_default()) });
        }
        self.forget_tries(&account).await?;
        Ok(Passed::SignedIn(self.open_session(Holder::Person(user), "password", visitor).await?))
    }

    /// Sets the password of whoever is signed in. Somebody who has one says it first; other sessions end.
    #[kernel::boxed]
    pub async fn change_password(
        &self,
        signed_in: &SignedIn,
        current: Option<&SecretString>,
        new: &SecretString,
    ) -> Result<(), PeopleError> {
        let user = signed_in.person.ok_or(PeopleError::Refused)?;
        if let Some(kept) = self.kept_password(user).await? {
            self.count_account(&format!("password:{user}")).await?;
            let given = current.cloned().unwrap_or_else(|| SecretString::from(""));
            if !self.verify(&given, kept).await? {
                return Err(PeopleError::Refused);
            }
            self.forget_tries(&format!("password:{user}")).await?;
        }
        self.put_password(user, new).await?;
        self.end_others(signed_in).await?;
        Ok(())
    }

    /// Sets somebody's password for the operator, and ends their sessions.
    #[kernel::boxed]
    pub async fn set_password(&self, user: UserId, new: &SecretString) -> Result<(), PeopleError> {
        self.put_password(user, new).await?;
        self.end_all(user).await?;
        Ok(())
    }

    /// Whether somebody has a password.
    #[kernel::boxed]
    pub async fn has_password(&self, user: UserId) -> Result<bool, PeopleError> {
        Ok(self.kept_password(user).await?.is_some())
    }

    pub(crate) async fn kept_password(&self, user: UserId) -> Result<Option<String>, PeopleError> {
        let row = self.0.db.optional("select password from users where id = $1", args![user]).await?;
        row.map_or(Ok(None), |row| Ok(row.get("password")?))
    }

    pub(crate) async fn put_password(&self, user: UserId, new: &SecretString) -> Result<(), PeopleError> {
        let email = self.0.accounts.user(user).await?.email;
        let hash = self.hash_new(new, &email).await?;
        let sql = "update users set password = $2, password_changed_at = $3 where id = $1";
        self.0.db.execute(sql, args![user, hash, self.0.clock.now()]).await?;
        Ok(())
    }

    /// The hash of a password that may be used.
    pub(crate) async fn hash_new(&self, new: &SecretString, email: &str) -> Result<String, PeopleError> {
        if !self.0.settings.passwords {
            return Err(PeopleError::PasswordsOff);
        }
        check(new, email)?;
        let new = new.clone();
        let made = self.off_the_workers(move || hash(new.expose_secret().as_bytes())).await?;
        made.ok_or(PeopleError::Broken("a password could not be hashed"))
    }

    async fn verify(&self, password: &SecretString, kept: String) -> Result<bool, PeopleError> {
        let password = password.clone();
        // A text that no password can be is not worth the work, but takes the same time.
        self.off_the_workers(move || {
            let text = password.expose_secret();
            is_right(text.as_bytes().get(..4 * LONGEST).unwrap_or(text.as_bytes()), &kept) && text.len() <= 4 * LONGEST
        })
        .await
    }

    /// Each takes 19 MiB and some tens of milliseconds, so only a few are done at once.
    async fn off_the_workers<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, PeopleError> {
        let broken = PeopleError::Broken("the work on a password broke off");
        let Ok(_turn) = self.0.hashing.acquire().await else { return Err(broken) };
        tokio::task::spawn_blocking(work).await.map_err(|_| broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_argon2id_and_salted() {
        let (one, two) = (hash(b"correct horse").unwrap(), hash(b"correct horse").unwrap());
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && one != two, "{one}");
        assert!(is_right(b"correct horse", &one) && !is_right(b"correct horsf", &one) && !is_right(b"", &one));
        assert!(!is_right(b"x", "") && !is_right(b"x", "$argon2id$"), "what is no hash fits nothing");
    }

    #[test]
    fn a_password_is_long_enough_and_no_address() {
        let taken = |text: &str| check(&SecretString::from(text), "ada@example.com").is_ok();
        assert!(taken("correct horse battery") && taken("ünïcödé-ß!"));
        for weak in ["", "short", "aaaaaaaaaaaa", "ada@example.com", "ADA@example.com", &"x1".repeat(150)] {
            assert!(!taken(weak), "{weak}");
        }
    }
}
