//! How far a connection is, in one word: for whoever waits for a person, and for lists.

use std::time::Duration;

use kernel::Timestamp;

use crate::Connection;

/// How long the grant of somebody who came back may take until it is kept.
pub(crate) const SETTLING: Duration = Duration::from_mins(5);
const IN_TIME: &str = "Nobody finished connecting the account in time.";
const CUT_OFF: &str = "Connecting the account was cut off before it was done.";

/// How far a connection is. Whether it is switched off is another matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// A person is to finish, or is just being connected.
    Waiting,
    Connected,
    /// It was never connected, and the last try failed.
    Failed,
    /// Nobody came in time, or what was granted ended at its provider.
    Expired,
    Revoked,
}

impl ConnectionState {
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Connected, Self::Failed, Self::Expired, Self::Revoked];

    /// The word by which queries know it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Connected => "connected",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// The same as a query finds it; `$2` is now and `$3` since when a grant may be on its way.
macro_rules! state_sql {
    () => {
        "case when is_valid then 'connected' when reason = 'revoked' then 'revoked' when attempt_until > $2 then 'waiting' \
         when attempt_until < 0 and reason is null and 0 - attempt_until > $3 then 'waiting' \
         when reason is not null and credentials is null then 'failed' else 'expired' end"
    };
}
pub(crate) use state_sql;

impl Connection {
    /// How far it is, and why it is no further where somebody should know.
    pub fn state(&self, now: Timestamp) -> (ConnectionState, Option<&str>) {
        let reason = self.reason.as_deref();
        // An attempt that was used up has the time of that, negative.
        let open = self.attempt_until.filter(|until| until.micros() > 0);
        let settling = self.attempt_until.filter(|until| until.micros() < 0).map(|until| Timestamp::from_micros(-until.micros()));
        if self.is_valid {
            return (ConnectionState::Connected, self.failure.as_deref());
        }
        if self.is_revoked() {
            return (ConnectionState::Revoked, None);
        }
        if open.is_some_and(|until| until > now) || (reason.is_none() && settling.is_some_and(|since| since > now.minus(SETTLING))) {
            return (ConnectionState::Waiting, None);
        }
        match reason {
            Some(reason) if self.credentials.is_none() => (ConnectionState::Failed, Some(reason)),
            Some(reason) => (ConnectionState::Expired, Some(reason)),
            None if settling.is_some() => (ConnectionState::Expired, Some(CUT_OFF)),
            None => (ConnectionState::Expired, Some(IN_TIME)),
        }
    }
}
