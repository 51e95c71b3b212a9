//! The second factor of a password: an authenticator app, and recovery codes for when it is lost.

use std::time::Duration;

use kernel::key::{KeyHash, random_bytes, random_text};
use kernel::seal::{SealedColumn, Sealer};
use kernel::{Timestamp, UserId, hex};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use store::{Db, args};

use crate::sessions::Holder;
use crate::totp::{base32, fits};
use crate::{OpenedSession, People, PeopleError, SignedIn, Visitor};

const SECRET: usize = 20;
const RECOVERY_CODES: usize = 10;
const PURPOSE: &str = "sign-in code";
/// How long somebody may look for a code.
const TICKET_LIFE: Duration = Duration::from_mins(10);

/// An authenticator app to set up.
#[derive(Debug)]
pub struct NewTotp {
    /// To type in.
    pub secret: SecretString,
    /// To open in an app, or to draw as a QR code.
    pub url: SecretString,
}

fn place(user: UserId) -> SealedColumn<'static> {
    SealedColumn { table: "users", column: "totp", row: user.uuid() }
}

/// A recovery code however it was typed.
fn recovery_hash(code: &str) -> KeyHash {
    KeyHash::of(&code.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase())
}

/// What a ticket stands and falls with: another password makes it worthless.
fn fingerprint(password: &str) -> String {
    hex::encode(KeyHash::of(password).as_bytes())
}

impl People {
    /// The word that a password was right, for a few minutes.
    pub(crate) fn code_ticket(&self, user: UserId, password: &str) -> String {
        let until = self.0.clock.now().plus(TICKET_LIFE).micros();
        self.0.signer.sign(json!([PURPOSE, user, until, fingerprint(password)]).to_string().as_bytes())
    }

    /// Finishes a sign-in whose password was right, with a code of the app or a recovery code.
    #[kernel::boxed]
    pub async fn by_code(&self, ticket: &str, code: &str, visitor: &Visitor) -> Result<OpenedSession, PeopleError> {
        self.count_address(visitor).await?;
        let said = self.0.signer.verify(ticket).and_then(|payload| serde_json::from_slice::<Value>(&payload).ok()).unwrap_or_default();
        let until = Timestamp::from_micros(said[2].as_i64().unwrap_or_default());
        let user: Option<UserId> = said[1].as_str().and_then(|id| id.parse().ok());
        let Some(user) = user.filter(|_| said[0] == PURPOSE && until > self.0.clock.now()) else { return Err(PeopleError::AttemptInvalid) };
        let password = self.kept_password(user).await?.unwrap_or_default();
        if !self.0.settings.passwords || said[3] != fingerprint(&password) {
            return Err(PeopleError::AttemptInvalid);
        }
        self.use_code(user, code).await?;
        let account = self.0.accounts.user(user).await?;
        if account.disabled_at.is_some() {
            return Err(PeopleError::Refused);
        }
        self.forget_tries(&account.email).await?;
        self.open_session(Holder::Person(user), "password", visitor).await
    }

    /// Takes a code of the app or a recovery code, for once: two requests at the same time with one code are one success.
    async fn use_code(&self, user: UserId, code: &str) -> Result<(), PeopleError> {
        let account = format!("code:{user}");
        self.count_account(&account).await?;
        let taken = if let Some(step) = self.fitting_step(user, code, true).await? {
            let sql = "update users set totp_used = $2 where id = $1 and (totp_used is null or totp_used < $2)";
            self.0.db.execute(sql, args![user, step]).await?
        } else {
            let sql = "delete from recovery_codes where user_id = $1 and hash = $2";
            self.0.db.execute(sql, args![user, recovery_hash(code).as_bytes()]).await?
        };
        if taken == 0 {
            return Err(PeopleError::CodeWrong);
        }
        self.forget_tries(&account).await
    }

    async fn fitting_step(&self, user: UserId, code: &str, is_confirmed: bool) -> Result<Option<i64>, PeopleError> {
        let row = self.0.db.optional("select totp, totp_confirmed_at from users where id = $1", args![user]).await?;
        let Some(row) = row else { return Ok(None) };
        let confirmed = row.get::<Option<Timestamp>>("totp_confirmed_at")?.is_some();
        let Some(sealed) = row.get::<Option<Vec<u8>>>("totp")?.filter(|_| confirmed == is_confirmed) else { return Ok(None) };
        let secret = self.0.sealer.open(&sealed, place(user))?;
        let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
        Ok(fits(&secret, &code, self.0.clock.now()))
    }

    /// Whether somebody needs a code besides the password.
    #[kernel::boxed]
    pub async fn has_totp(&self, user: UserId) -> Result<bool, PeopleError> {
        let row = self.0.db.optional("select totp_confirmed_at from users where id = $1", args![user]).await?;
        Ok(row.map_or(Ok(None), |row| row.get::<Option<Timestamp>>("totp_confirmed_at"))?.is_some())
    }

    /// Begins to set up an authenticator app; it counts once a code of it was shown.
    #[kernel::boxed]
    pub async fn begin_totp(&self, signed_in: &SignedIn) -> Result<NewTotp, PeopleError> {
        let user = signed_in.person.ok_or(PeopleError::Refused)?;
        let secret = random_bytes::<SECRET>();
        let sealed = self.0.sealer.seal(&secret, place(user));
        let sql = "update users set totp = $2, totp_used = null where id = $1 and totp_confirmed_at is null";
        if self.0.db.execute(sql, args![user, sealed]).await? == 0 {
            return Err(PeopleError::CodeWrong);
        }
        self.shown(user, &secret).await
    }

    /// The app that somebody began to set up and has not confirmed yet.
    #[kernel::boxed]
    pub async fn pending_totp(&self, signed_in: &SignedIn) -> Result<Option<NewTotp>, PeopleError> {
        let Some(user) = signed_in.person else { return Ok(None) };
        let sql = "select totp from users where id = $1 and totp_confirmed_at is null";
        let row = self.0.db.optional(sql, args![user]).await?;
        let Some(sealed) = row.map_or(Ok(None), |row| row.get::<Option<Vec<u8>>>("totp"))? else { return Ok(None) };
        let secret = self.0.sealer.open(&sealed, place(user))?;
        Ok(Some(self.shown(user, &secret).await?))
    }

    async fn shown(&self, user: UserId, secret: &[u8]) -> Result<NewTotp, PeopleError> {
        let text = base32(secret);
        let email = self.0.accounts.user(user).await?.email;
        let label: String = url::form_urlencoded::byte_serialize(email.as_bytes()).collect();
        let url = format!("otpauth://totp/Toolyard:{label}?secret={text}&issuer=Toolyard");
        Ok(NewTotp { secret: text.into(), url: url.into() })
    }

    /// Makes the app count, by a code of it; the recovery codes, which are shown this once.
    #[kernel::boxed]
    pub async fn confirm_totp(&self, signed_in: &SignedIn, code: &str) -> Result<Vec<SecretString>, PeopleError> {
        let user = signed_in.person.ok_or(PeopleError::Refused)?;
        self.count_account(&format!("code:{user}")).await?;
        let step = self.fitting_step(user, code, false).await?.ok_or(PeopleError::CodeWrong)?;
        let codes: Vec<SecretString> = (0..RECOVERY_CODES).map(|_| recovery_code()).collect();
        let mut tx = self.0.db.begin().await?;
        let sql = "update users set totp_confirmed_at = $2, totp_used = $3 where id = $1 and totp_confirmed_at is null";
        if tx.execute(sql, args![user, self.0.clock.now(), step]).await? == 0 {
            return Err(PeopleError::CodeWrong);
        }
        tx.execute("delete from recovery_codes where user_id = $1", args![user]).await?;
        for code in &codes {
            let hash = recovery_hash(code.expose_secret());
            tx.execute("insert into recovery_codes (user_id, hash) values ($1, $2)", args![user, hash.as_bytes()]).await?;
        }
        tx.commit().await?;
        self.end_others(signed_in).await?;
        Ok(codes)
    }

    /// Takes the app away again, by a code of it or a recovery code.
    #[kernel::boxed]
    pub async fn remove_totp(&self, signed_in: &SignedIn, code: &str) -> Result<(), PeopleError> {
        let user = signed_in.person.ok_or(PeopleError::Refused)?;
        self.use_code(user, code).await?;
        self.drop_totp(user).await
    }

    /// Takes the app away without a code, for the operator: somebody lost it and the recovery codes.
    #[kernel::boxed]
    pub async fn drop_totp(&self, user: UserId) -> Result<(), PeopleError> {
        let sql = "update users set totp = null, totp_confirmed_at = null, totp_used = null where id = $1";
        self.0.db.execute(sql, args![user]).await?;
        self.0.db.execute("delete from recovery_codes where user_id = $1", args![user]).await?;
        Ok(())
    }
}

fn recovery_code() -> SecretString {
    let text = random_text(12).to_ascii_lowercase();
    format!("{}-{}-{}", &text[..4], &text[4..8], &text[8..]).into()
}

/// Seals the secrets of authenticator apps with the current key; a row that changes meanwhile is left to its writer.
#[kernel::boxed]
pub async fn reseal(db: &Db, sealer: &Sealer) -> Result<u64, PeopleError> {
    let mut resealed = 0;
    for row in db.all("select id, totp from users where totp is not null", args![]).await? {
        let (user, old): (UserId, Vec<u8>) = (row.get("id")?, row.get("totp")?);
        if !sealer.is_current(&old) {
            let new = sealer.seal(&sealer.open(&old, place(user))?, place(user));
            resealed += db.execute("update users set totp = $2 where id = $1 and totp = $3", args![user, new, old]).await?;
        }
    }
    Ok(resealed)
}
