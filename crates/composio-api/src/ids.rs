//! Ids as Composio writes them: what kind of thing it is, and the row's own id in letters and digits.
//!
//! `ids::ACCOUNT.show(connection.id)` is `ca_...`; `ids::ACCOUNT.read(text)` is the id behind such a text, or nothing where it is none. A
//! prefix knows the type of its ids, so a trigger's cannot be read as an account's.

use std::marker::PhantomData;

use kernel::id::{Id, kind};
use uuid::Uuid;

/// How the ids of one kind of thing begin.
#[derive(Debug)]
pub struct Prefix<T>(&'static str, PhantomData<fn() -> T>);

pub const AUTH_CONFIG: Prefix<kind::AuthConfig> = Prefix("ac_", PhantomData);
pub const ACCOUNT: Prefix<kind::Connection> = Prefix("ca_", PhantomData);
pub const TRIGGER: Prefix<kind::Subscription> = Prefix("ti_", PhantomData);
pub const SESSION: Prefix<kind::UserSession> = Prefix("trs_", PhantomData);
pub const WEBHOOK: Prefix<kind::ComposioWebhook> = Prefix("whs_", PhantomData);
pub const LOG: Prefix<kind::Call> = Prefix("log_", PhantomData);
pub const MESSAGE: Prefix<kind::Delivery> = Prefix("msg_", PhantomData);

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// So many letters hold any id.
const LENGTH: usize = 22;

impl<T> Prefix<T> {
    /// The id as Composio would write it.
    pub fn show(&self, id: Id<T>) -> String {
        format!("{}{}", self.0, write(id.uuid()))
    }

    /// The id that a text means, if it is one of this kind.
    pub fn read(&self, text: &str) -> Option<Id<T>> {
        read(text.strip_prefix(self.0)?).map(Id::from)
    }
}

fn write(id: Uuid) -> String {
    let mut rest = id.as_u128();
    let mut letters = [b'0'; LENGTH];
    for letter in letters.iter_mut().rev() {
        *letter = usize::try_from(rest % 62).ok().and_then(|digit| ALPHABET.get(digit)).copied().unwrap_or(b'0');
        rest /= 62;
    }
    letters.into_iter().map(char::from).collect()
}

fn read(text: &str) -> Option<Uuid> {
    if text.len() != LENGTH {
        return None;
    }
    let mut id: u128 = 0;
    for letter in text.bytes() {
        let digit = ALPHABET.iter().position(|known| *known == letter)?;
        id = id.checked_mul(62)?.checked_add(u128::try_from(digit).ok()?)?;
    }
    Some(Uuid::from_u128(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_is_of_one_kind() {
        for uuid in [Uuid::nil(), Uuid::max(), Uuid::now_v7()] {
            let text = ACCOUNT.show(uuid.into());
            assert_eq!(text.len(), 3 + LENGTH);
            assert_eq!(ACCOUNT.read(&text).map(Id::uuid), Some(uuid));
            assert_eq!(TRIGGER.read(&text), None);
        }
        for wrong in ["", "ca_", "ca_zzzzzzzzzzzzzzzzzzzzzz", "ca_000000000000000000000é", "ca_0", "0000000000000000000000"] {
            assert_eq!(ACCOUNT.read(wrong), None, "{wrong}");
        }
    }
}
