//! Key files: readable by their owner alone.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

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
