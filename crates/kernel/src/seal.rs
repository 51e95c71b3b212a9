//! Sealing: secrets at rest, each bound to its table, column and row, so that a sealed value moved elsewhere does not open.

use std::fmt;
use std::sync::{Arc, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use crate::key::random_bytes;

const VERSION: u8 = 1;
const KEY_ID: usize = 4;
const NONCE: usize = 24;
const HEADER: usize = 1 + KEY_ID + NONCE;

/// Why a secret could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("sealed with a key that is not here")]
    UnknownKey,
    #[error("does not open: wrong key, wrong place or damaged")]
    Damaged,
    #[error("a sealing key is 32 bytes in base64")]
    BadKey,
}

/// Where a sealed value lives.
#[derive(Clone, Copy, Debug)]
pub struct SealedColumn<'a> {
    pub table: &'a str,
    pub column: &'a str,
    pub row: uuid::Uuid,
}

impl SealedColumn<'_> {
    fn bytes(&self) -> Vec<u8> {
        [self.table.as_bytes(), b"\0", self.column.as_bytes(), b"\0", self.row.as_bytes()].concat()
    }
}

/// One key. It cannot be printed.
#[derive(Clone)]
pub struct SealingKey {
    id: [u8; KEY_ID],
    cipher: XChaCha20Poly1305,
    bytes: [u8; 32],
}

impl SealingKey {
    pub fn generate() -> Self {
        Self::from_bytes(random_bytes())
    }

    pub fn parse(text: &str) -> Result<Self, SealError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| SealError::BadKey)?;
        bytes.try_into().map(Self::from_bytes).map_err(|_| SealError::BadKey)
    }

    fn from_bytes(bytes: [u8; 32]) -> Self {
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let id = [digest[0], digest[1], digest[2], digest[3]];
        Self { id, cipher: XChaCha20Poly1305::new(&bytes.into()), bytes }
    }

    /// The key as text, for its file.
    pub fn expose(&self) -> String {
        STANDARD.encode(self.bytes)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({:02x?})", self.id)
    }
}

/// The keys in force: the first one seals, all of them open.
#[derive(Clone, Debug)]
pub struct KeyRing(Vec<SealingKey>);

impl KeyRing {
    /// Reads keys separated by commas or lines, the current one first.
    pub fn parse(text: &str) -> Result<Self, SealError> {
        let lines = text.split([',', '\n']).map(str::trim).filter(|line| !line.is_empty());
        let keys: Vec<SealingKey> = lines.map(SealingKey::parse).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(SealError::BadKey) } else { Ok(Self(keys)) }
    }

    pub fn of(key: SealingKey) -> Self {
        Self(vec![key])
    }

    /// The ring with a new current key in front.
    #[must_use]
    pub fn with_new_key(&self) -> Self {
        Self(std::iter::once(SealingKey::generate()).chain(self.0.iter().cloned()).collect())
    }

    /// The ring with its current key alone.
    #[must_use]
    pub fn current_only(&self) -> Self {
        Self(self.0.iter().take(1).cloned().collect())
    }

    pub fn current(&self) -> &SealingKey {
        &self.0[0]
    }

    /// The keys as text, one a line.
    pub fn expose(&self) -> String {
        self.0.iter().map(|key| key.expose() + "\n").collect()
    }

    fn find(&self, id: &[u8]) -> Option<&SealingKey> {
        self.0.iter().find(|key| key.id == id)
    }
}

type Reload = dyn Fn() -> Option<KeyRing> + Send + Sync;

/// Seals and opens. Sealing asks for the ring first, and so does opening when it meets a key that it does not know: a rotation may have
/// happened meanwhile.
#[derive(Clone)]
pub struct Sealer {
    ring: Arc<RwLock<Arc<KeyRing>>>,
    reload: Arc<Reload>,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

impl Sealer {
    pub fn new(ring: KeyRing) -> Self {
        Self::with_reload(ring, || None)
    }

    pub fn with_reload(ring: KeyRing, reload: impl Fn() -> Option<KeyRing> + Send + Sync + 'static) -> Self {
        Self { ring: Arc::new(RwLock::new(Arc::new(ring))), reload: Arc::new(reload) }
    }

    pub fn seal(&self, plain: &[u8], place: SealedColumn<'_>) -> Vec<u8> {
        let ring = self.reloaded().unwrap_or_else(|| self.ring());
        let key = ring.current();
        let nonce = random_bytes::<NONCE>();
        let payload = Payload { msg: plain, aad: &place.bytes() };
        let sealed = key.cipher.encrypt(&XNonce::from(nonce), payload).expect("a secret is far below the cipher's limit");
        [&[VERSION][..], &key.id, &nonce, &sealed].concat()
    }

    pub fn open(&self, sealed: &[u8], place: SealedColumn<'_>) -> Result<Vec<u8>, SealError> {
        if sealed.len() < HEADER || sealed[0] != VERSION {
            return Err(SealError::Damaged);
        }
        let id = &sealed[1..=KEY_ID];
        let mut ring = self.ring();
        if ring.find(id).is_none()
            && let Some(fresh) = self.reloaded()
        {
            ring = fresh;
        }
        let key = ring.find(id).ok_or(SealError::UnknownKey)?;
        let nonce: [u8; NONCE] = sealed[1 + KEY_ID..HEADER].try_into().map_err(|_| SealError::Damaged)?;
        let payload = Payload { msg: &sealed[HEADER..], aad: &place.bytes() };
        key.cipher.decrypt(&XNonce::from(nonce), payload).map_err(|_| SealError::Damaged)
    }

    /// Whether a sealed value was made with the current key.
    pub fn is_current(&self, sealed: &[u8]) -> bool {
        sealed.len() >= HEADER && sealed[1..=KEY_ID] == self.ring().current().id
    }

    fn reloaded(&self) -> Option<Arc<KeyRing>> {
        let fresh = Arc::new((self.reload)()?);
        *self.ring.write().unwrap_or_else(std::sync::PoisonError::into_inner) = fresh.clone();
        Some(fresh)
    }

    fn ring(&self) -> Arc<KeyRing> {
        self.ring.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(column: &str) -> SealedColumn<'_> {
        SealedColumn { table: "t", column, row: uuid::Uuid::nil() }
    }

    #[test]
    fn a_sealed_value_opens_in_its_own_place_only() {
        let sealer = Sealer::new(KeyRing::of(SealingKey::generate()));
        let sealed = sealer.seal(b"secret", place("a"));
        assert_eq!(sealer.open(&sealed, place("a")).unwrap(), b"secret");
        assert_eq!(sealer.open(&sealed, place("b")), Err(SealError::Damaged));
        let mut broken = sealed.clone();
        *broken.last_mut().unwrap() ^= 1;
        assert_eq!(sealer.open(&broken, place("a")), Err(SealError::Damaged));
        assert_eq!(sealer.open(&sealed[..10], place("a")), Err(SealError::Damaged));
    }

    #[test]
    fn rotation_is_picked_up_without_a_restart() {
        let old = KeyRing::of(SealingKey::generate());
        let new = old.with_new_key();
        let rotated = new.clone();
        let running = Sealer::with_reload(old.clone(), move || Some(rotated.clone()));
        let sealed = Sealer::new(new.clone()).seal(b"secret", place("a"));
        assert_eq!(running.open(&sealed, place("a")).unwrap(), b"secret");
        assert!(running.is_current(&running.seal(b"x", place("a"))));
        let rotated = new.clone();
        let writing = Sealer::with_reload(old.clone(), move || Some(rotated.clone()));
        assert_eq!(writing.seal(b"x", place("a"))[1..=KEY_ID], new.current().id);
        assert_eq!(Sealer::new(old).open(&sealed, place("a")), Err(SealError::UnknownKey));
        assert_eq!(KeyRing::parse(&new.expose()).unwrap().0.len(), 2);
    }
}
