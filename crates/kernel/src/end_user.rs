//! End users: the people whom a project's agents serve. The project names them; here each name has an id.

use std::fmt;
use std::str::FromStr;

use crate::EndUserId;

/// The longest name, in characters.
const MAX: usize = 255;

/// Whose account a connection is: the project's own, or one end user's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccountOwner {
    #[default]
    Project,
    EndUser(EndUserId),
}

impl AccountOwner {
    pub fn end_user(self) -> Option<EndUserId> {
        match self {
            Self::Project => None,
            Self::EndUser(end_user) => Some(end_user),
        }
    }

    /// The owner as rows keep it: the project's own is no null, so that one comparison finds either.
    pub fn stored(self) -> String {
        self.end_user().map(|end_user| end_user.to_string()).unwrap_or_default()
    }

    /// The owner that a row names; nothing where it names none.
    pub fn read(stored: &str) -> Option<Self> {
        if stored.is_empty() { Some(Self::Project) } else { stored.parse().ok().map(Self::EndUser) }
    }
}

impl From<Option<EndUserId>> for AccountOwner {
    fn from(end_user: Option<EndUserId>) -> Self {
        end_user.map_or(Self::Project, Self::EndUser)
    }
}

/// What a project calls one of its end users: any line of text, such as an id of its own or an email address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndUserName(String);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one line of 1 to 255 characters, without space at its ends")]
pub struct BadEndUserName;

impl FromStr for EndUserName {
    type Err = BadEndUserName;

    fn from_str(text: &str) -> Result<Self, BadEndUserName> {
        let is_good = (1..=MAX).contains(&text.chars().count()) && text.trim() == text && !text.contains(char::is_control);
        if is_good { Ok(Self(text.to_owned())) } else { Err(BadEndUserName) }
    }
}

impl EndUserName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EndUserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_reads_back_and_nothing_passes_for_the_project() {
        let alice = AccountOwner::EndUser(EndUserId::new());
        assert_eq!(AccountOwner::read(&alice.stored()), Some(alice));
        assert_eq!(AccountOwner::read(&AccountOwner::Project.stored()), Some(AccountOwner::Project));
        assert_eq!(AccountOwner::read("somebody"), None);
    }

    #[test]
    fn a_name_is_one_line() {
        for good in ["alice", "alice@example.com", "5f0c", "Ünï cödé", &"x".repeat(255)] {
            assert_eq!(good.parse::<EndUserName>().unwrap().as_str(), good);
        }
        for bad in ["", " ", " alice", "alice ", "a\nb", "a\0b", &"x".repeat(256)] {
            assert!(bad.parse::<EndUserName>().is_err(), "{bad:?}");
        }
    }
}
