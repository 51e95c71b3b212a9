//! The sealing key and the signing key: found or made, and proven to fit the database before anything else happens.

use std::path::PathBuf;

use anyhow::{Context, bail};
use kernel::key::random_bytes;
use kernel::seal::{KeyRing, SealedColumn, Sealer, SealingKey};
use kernel::signed::Signer;
use store::{Db, args};
use uuid::Uuid;

use crate::config::Config;
use crate::files;

const SIGNING: SealedColumn<'static> = SealedColumn { table: "settings", column: "signing_key", row: Uuid::nil() };

/// What seals and signs.
#[derive(Clone, Debug)]
pub struct Vault {
    pub sealer: Sealer,
    pub signer: Signer,
}

/// Where the sealing key is kept, when it is kept in a file.
pub fn key_file(config: &Config) -> PathBuf {
    config.data_dir.join("sealing.key")
}

/// The sealing keys in force; the first start makes one.
pub fn key_ring(config: &Config) -> anyhow::Result<KeyRing> {
    if let Some(text) = &config.sealing_key {
        return KeyRing::parse(text).context("the sealing key is not usable");
    }
    let path = key_file(config);
    let text = files::ensure_secret(&path, || SealingKey::generate().expose())?;
    KeyRing::parse(&text).with_context(|| format!("the sealing key in `{}` is not usable", path.display()))
}

/// Refuses to go on without the sealing key of a database that has secrets: a new key would open none of them.
pub async fn require_key(config: &Config, db: &Db) -> anyhow::Result<()> {
    let path = key_file(config);
    if config.sealing_key.is_some() || files::read(&path)?.is_some_and(|text| !text.is_empty()) || !is_sealed(db).await? {
        return Ok(());
    }
    bail!(
        "the database is there, but its sealing key is not: put `{}` back from your backup, or set TOOLYARD_SEALING_KEY. Nothing was changed",
        path.display()
    );
}

/// Whether a start has sealed something in the database.
async fn is_sealed(db: &Db) -> anyhow::Result<bool> {
    let first = Db::all_migrations().first().map(|migration| migration.version);
    if db.pending().await?.iter().any(|pending| Some(pending.version) == first) {
        return Ok(false);
    }
    Ok(db.optional("select name from settings where name = 'signing_key'", args![]).await?.is_some())
}

/// A sealer that reads its key file again when it meets a key that it does not know.
pub fn sealer(config: &Config, ring: KeyRing) -> Sealer {
    if config.sealing_key.is_some() {
        return Sealer::new(ring);
    }
    let path = key_file(config);
    Sealer::with_reload(ring, move || files::read(&path).ok().flatten().and_then(|text| KeyRing::parse(&text).ok()))
}

/// Proves that the sealing key fits the database, by the signing key that it keeps there.
pub async fn open(db: &Db, sealer: Sealer) -> anyhow::Result<Vault> {
    let fresh = sealer.seal(&random_bytes::<32>(), SIGNING);
    db.execute("insert into settings (name, value) values ('signing_key', $1) on conflict (name) do nothing", args![fresh]).await?;
    let row = db.optional("select value from settings where name = 'signing_key'", args![]).await?.context("the settings are empty")?;
    let sealed: Vec<u8> = row.get("value")?;
    let Ok(key) = sealer.open(&sealed, SIGNING) else {
        bail!("the sealing key does not fit this database; use the key that it was made with (TOOLYARD_SEALING_KEY or sealing.key)");
    };
    let key = key.try_into().ok().context("the signing key is damaged")?;
    Ok(Vault { sealer, signer: Signer::new(key) })
}

/// Seals the signing key again with the current key.
pub async fn reseal(db: &Db, sealer: &Sealer) -> anyhow::Result<()> {
    let row = db.optional("select value from settings where name = 'signing_key'", args![]).await?.context("the settings are empty")?;
    let key = sealer.open(&row.get::<Vec<u8>>("value")?, SIGNING)?;
    db.execute("update settings set value = $1 where name = 'signing_key'", args![sealer.seal(&key, SIGNING)]).await?;
    Ok(())
}
