//! Key files: readable by their owner alone.

use std::fs::TryLockError;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Makes the data directory, for its owner alone.
pub(crate) fn ensure_dir(dir: &Path) -> anyhow::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).with_context(|| format!("cannot make the data directory `{}`", dir.display()))
}

/// Holds the data directory for the time of a start, so that two processes do not make two sets of keys.
pub(crate) fn lock(dir: &Path) -> anyhow::Result<std::fs::File> {
    let path = dir.join(".lock");
    let hold = || -> std::io::Result<std::fs::File> {
        let file = open_private(&path)?;
        file.lock()?;
        Ok(file)
    };
    hold().with_context(|| format!("cannot hold `{}`", path.display()))
}

/// A SQLite file has one server: two would take each other's work. Whoever holds this is the one, until its process ends.
pub(crate) fn hold_database(database: &Path) -> anyhow::Result<std::fs::File> {
    let path = PathBuf::from(format!("{}.lock", database.display()));
    let cannot = || format!("cannot hold `{}`", path.display());
    let mut file = open_private(&path).with_context(cannot)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = read(&path)?.filter(|text| !text.is_empty()).map_or_else(String::new, |id| format!(" (process {id})"));
            bail!(
                "another server{holder} is running on `{}`; stop it first, or give this one a --data-dir of its own. \
                 Several servers can share a PostgreSQL database.",
                database.display()
            );
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
    }
    let write = |file: &mut std::fs::File| -> std::io::Result<()> {
        file.set_len(0)?;
        write!(file, "{}", std::process::id())
    };
    write(&mut file).with_context(cannot)?;
    Ok(file)
}

/// Opens a file that only its owner can read, making it if need be.
pub(crate) fn open_private(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The trimmed content of a file, or nothing when it is not there.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    }
}

/// Writes a file with mode 0600, whole or not at all.
pub(crate) fn write_secret(path: &Path, text: &str) -> anyhow::Result<()> {
    let staged = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = || -> std::io::Result<()> {
        let mut file = options.open(&staged)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&staged, path)
    };
    write().with_context(|| format!("cannot write `{}`", path.display()))
}

/// The content of a secret file; `make` fills it the first time.
pub(crate) fn ensure_secret(path: &Path, make: impl FnOnce() -> String) -> anyhow::Result<String> {
    if let Some(text) = read(path)?.filter(|text| !text.is_empty()) {
        return Ok(text);
    }
    let text = make();
    write_secret(path, &format!("{}\n", text.trim_end()))?;
    Ok(text)
}
