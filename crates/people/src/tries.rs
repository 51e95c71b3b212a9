//! How often somebody may try: counted in the database before a try, so that it holds on all nodes and for tries at once.

use std::net::IpAddr;
use std::time::Duration;

use kernel::key::KeyHash;
use kernel::{Timestamp, hex};
use store::args;

use crate::{People, PeopleError};

const WINDOW: Duration = Duration::from_mins(15);
/// Tries of one account within the window.
const PER_ACCOUNT: i64 = 10;
/// Tries from one address; many people may share one.
const PER_ADDRESS: i64 = 100;

/// Where a request to sign in comes from.
#[derive(Clone, Debug, Default)]
pub struct Visitor {
    pub address: Option<IpAddr>,
    /// How the browser or program calls itself.
    pub client: Option<String>,
}

impl Visitor {
    /// The address as it is counted: of IPv6, the network that one customer has.
    fn network(&self) -> Option<String> {
        Some(match self.address?.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
            }
        })
    }
}

impl People {
    /// Counts a try from an address.
    pub(crate) async fn count_address(&self, visitor: &Visitor) -> Result<(), PeopleError> {
        match visitor.network() {
            Some(network) => self.count(&format!("address:{network}"), PER_ADDRESS).await,
            None => Ok(()),
        }
    }

    /// Counts a try of an account, whether there is such an account or not.
    pub(crate) async fn count_account(&self, account: &str) -> Result<(), PeopleError> {
        self.count(&account_name(account), PER_ACCOUNT).await
    }

    /// Forgets the tries of an account, after one that was right.
    pub(crate) async fn forget_tries(&self, account: &str) -> Result<(), PeopleError> {
        self.0.db.execute("delete from sign_in_tries where name = $1", args![account_name(account)]).await?;
        Ok(())
    }

    async fn count(&self, name: &str, limit: i64) -> Result<(), PeopleError> {
        let now = self.0.clock.now();
        let sql = "insert into sign_in_tries (name, tries, ends_at) values ($1, 1, $3) on conflict (name) do update set \
                   tries = case when sign_in_tries.ends_at <= $2 then 1 else sign_in_tries.tries + 1 end, \
                   ends_at = case when sign_in_tries.ends_at <= $2 then $3 else sign_in_tries.ends_at end returning tries, ends_at";
        let row = self.0.db.returning(sql, args![name, now, now.plus(WINDOW)]).await?;
        let row = row.ok_or(PeopleError::Broken("a try was not counted"))?;
        if row.get::<i64>("tries")? <= limit {
            return Ok(());
        }
        let left = row.get::<Timestamp>("ends_at")?.seconds() - now.seconds();
        Err(PeopleError::TooMany { seconds: u64::try_from(left).unwrap_or(0).max(1) })
    }

    /// Drops counts that are over, attempts nobody came back from, and links and sessions that ended.
    #[kernel::boxed]
    pub async fn forget(&self) -> Result<(), PeopleError> {
        let (db, now, settings) = (&self.0.db, self.0.clock.now(), &self.0.settings);
        db.execute("delete from sign_in_tries where ends_at <= $1", args![now]).await?;
        db.execute("delete from sign_in_links where expires_at <= $1", args![now]).await?;
        db.execute("delete from sign_in_attempts where created_at <= $1", args![now.minus(crate::ATTEMPT_LIFE)]).await?;
        let sql = "delete from sessions where created_at <= $1 or used_at <= $2";
        db.execute(sql, args![now.minus(settings.age), now.minus(settings.idle)]).await?;
        Ok(())
    }
}

/// The name of an account is a caller's text of any length, and who tried it is nobody's business.
fn account_name(account: &str) -> String {
    format!("account:{}", hex::encode(KeyHash::of(account).as_bytes()))
}
