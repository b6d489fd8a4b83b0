//! The file in which a long trial notes its progress, so that a stopped run resumes from the last stop.
//!
//! The file is replaced as a whole, so after a crash it is either the old or the new one.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Longest file that is read, in bytes.
const LONGEST: u64 = 1 << 24;

/// Reads the notes; `None` if there is no file yet. `what` names the trial in errors, such as `a self check`.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub(super) fn read<T: DeserializeOwned>(path: &Path, what: &str) -> Result<Option<T>> {
    let shown = path.display();
    let bytes = match std::fs::metadata(path) {
        Ok(m) if m.len() > LONGEST => bail!("{shown} is not a file of {what}: it is too long"),
        Ok(_) => std::fs::read(path).with_context(|| format!("reading {shown}"))?,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e).with_context(|| format!("reading {shown}")),
    };
    let kept = serde_json::from_slice(&bytes)
        .with_context(|| format!("{shown} is not a file of {what}; name another one with --keep"))?;
    Ok(Some(kept))
}

/// Keeps other commands from writing a file until the returned handle is dropped.
///
/// # Errors
/// Another command is writing the file, or the lock file cannot be made.
pub(super) fn hold(path: &Path) -> Result<File> {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    let writing = || format!("writing {}", path.display());
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).open(lock).with_context(writing)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("another running command writes to {}; name another file with --keep", path.display())
        }
        Err(TryLockError::Error(e)) => Err(e).with_context(writing),
    }
}

/// Writes the notes.
///
/// # Errors
/// The file cannot be written; the old one is still there.
pub(super) fn write<T: Serialize>(path: &Path, kept: &T) -> Result<()> {
    let mut temp = path.as_os_str().to_owned();
    temp.push(".tmp");
    let write = || {
        let mut file = std::fs::File::create(&temp)?;
        file.write_all(&serde_json::to_vec_pretty(kept)?)?;
        file.sync_all()?;
        std::fs::rename(&temp, path)
    };
    write().with_context(|| format!("writing {}", path.display()))
}
