//! Keys that callers hold: made at random, shown once, kept as a hash.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A key in the clear. It prints as its first characters only.
#[derive(Clone)]
pub struct PlainKey(SecretString);

impl PlainKey {
    /// Makes a key of 32 random characters behind `prefix`.
    pub fn generate(prefix: &str) -> Self {
        Self(SecretString::from(format!("{prefix}_{}", random_text(32))))
    }

    /// The key itself, for showing it once.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    pub fn hash(&self) -> KeyHash {
        KeyHash::of(self.expose())
    }

    /// Enough of the key to recognise it in a list.
    pub fn hint(&self) -> String {
        self.expose().chars().take(8).collect()
    }
}

impl From<String> for PlainKey {
    fn from(text: String) -> Self {
        Self(SecretString::from(text))
    }
}

impl fmt::Debug for PlainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.hint())
    }
}

/// What is kept of a key. Keys are random, so a plain hash cannot be reversed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// A hash that was kept; nothing if it is none.
    pub fn stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The hash as text.
    pub fn hex(&self) -> String {
        crate::hex::encode(&self.0)
    }

    /// Compares without telling how much was right.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash")
    }
}

/// Random bytes from the operating system.
///
/// # Panics
/// When the operating system has no randomness to give; nothing safe can be done then.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// Random letters and digits.
pub fn random_text(length: usize) -> String {
    let mut text = String::with_capacity(length);
    while text.len() < length {
        // 248 is the largest multiple of 62 in a byte; what lies above would favour the first letters.
        let bytes = random_bytes::<32>().into_iter().filter(|&byte| byte < 248);
        text.extend(bytes.map(|byte| ALPHABET[usize::from(byte % 62)] as char).take(length - text.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_long_and_never_printed() {
        let key = PlainKey::generate("tyk");
        assert_eq!(key.expose().len(), 36);
        assert!(!format!("{key:?}").contains(key.expose()));
        assert!(key.hash().matches(&KeyHash::of(key.expose())));
        assert_ne!(key.expose(), PlainKey::generate("tyk").expose());
    }
}
