//! The directory of a store: lock, format file, ballast, content-addressed files, moving aside.
//!
//! `FORMAT` names the version; `LOCK` is held by one process and names its pid; `ballast` is a disk reserve;
//! `bundles/ab/HASH` are content-addressed files. A damaged `NAME` becomes `NAME.damaged-N`.

use crate::hash::Hash;
use crate::{bundle, failpoints};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) const LOG: &str = "findings.log";
pub(crate) const INDEX: &str = "index";
pub(crate) const MARKER: &str = "index.clean";
pub(crate) const FORMAT_FILE: &str = "FORMAT";
pub(crate) const BUNDLES: &str = "bundles";
/// The files that exist before the log of a new store does.
pub(crate) const CREATED_FIRST: &[&str] = &[LOCK, "findings.tmp", "lost+found"];
const LOCK: &str = "LOCK";
/// Most attempts to take a lock that another process holds.
const LOCK_TRIES: u32 = 100;
/// Pause after each attempt.
const LOCK_PAUSE: Duration = Duration::from_millis(10);
const BALLAST: &str = "ballast";

pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Reads a whole file of unknown content. A file of more than `limit` bytes is refused before memory is allocated for it.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let found = file.metadata()?.len();
    if found > limit {
        let text = format!("{} has {found} bytes, the limit is {limit}", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Fills a temporary file and renames it to `path`. After a crash the file is the old or the new one; after an error the
/// temporary file is removed.
pub(crate) fn replace(
    temp: &Path,
    path: &Path,
    fill: impl FnOnce(File) -> io::Result<File>,
    before_rename: &str,
) -> io::Result<()> {
    let put = || {
        fill(File::create(temp)?)?.sync_all()?;
        failpoints::hit(before_rename)?;
        fs::rename(temp, path)
    };
    put().inspect_err(|_| {
        let _ = fs::remove_file(temp);
    })
}

/// Writes a file so that it is either old or new after a crash.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let fill = |mut file: File| file.write_all(bytes).map(|()| file);
    replace(Path::new(&name), path, fill, failpoints::FILE_RENAME)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// A free name `NAME.damaged-N` beside `path`.
pub(crate) fn aside_name(path: &Path) -> PathBuf {
    let base = path.to_string_lossy();
    (1u64..).map(|n| PathBuf::from(format!("{base}.damaged-{n}"))).find(|p| !p.exists()).unwrap_or_default()
}

/// Moves a damaged file or folder aside; returns its new name.
pub(crate) fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let to = aside_name(path);
    fs::rename(path, &to)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))?;
    Ok(to)
}

/// Copies a folder of plain files beside itself; returns where.
pub(crate) fn copied_aside(folder: &Path) -> io::Result<PathBuf> {
    fn copy(from: &Path, to: &Path) -> io::Result<()> {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (path, place) = (entry.path(), to.join(entry.file_name()));
            match path.is_dir() {
                true => copy(&path, &place)?,
                false => _ = fs::copy(&path, &place)?,
            }
        }
        Ok(())
    }
    let mut name = folder.as_os_str().to_owned();
    name.push(".copy");
    let to = PathBuf::from(name);
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    copy(folder, &to)?;
    Ok(to)
}

/// Another process that holds the lock: its process id as the lock file says it; empty if the file says none.
pub(crate) struct Holder(pub(crate) String);

/// Reads the holder from its lock file.
fn holder(file: File) -> io::Result<Holder> {
    let mut pid = Vec::new();
    file.take(32).read_to_end(&mut pid)?;
    let text = String::from_utf8_lossy(&pid).trim().to_owned();
    Ok(Holder(if text.bytes().all(|b| b.is_ascii_digit()) { text } else { String::new() }))
}

/// Waits for a lock, at most `LOCK_TRIES` times `LOCK_PAUSE`. The system needs a moment to release the lock of a process that
/// was just killed; and a process that was forked just before a close holds the lock until its exec. Returns false if
/// another process keeps it.
#[expect(clippy::disallowed_methods, reason = "nobody is told when a lock is released")]
pub(crate) fn wait_for(attempt: impl Fn() -> Result<(), TryLockError>) -> io::Result<bool> {
    for _ in 0..LOCK_TRIES {
        match attempt() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// Whether two descriptions are of one file.
#[cfg(unix)]
pub(crate) fn same(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// This platform does not say.
#[cfg(not(unix))]
pub(crate) fn same(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

/// Takes a shared lock, which keeps writers out and writes nothing. `None` if there is no lock file.
pub(crate) fn lock_shared(dir: &Path) -> io::Result<Result<Option<File>, Holder>> {
    let file = match File::open(dir.join(LOCK)) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Ok(None)),
        Err(e) => return Err(e),
    };
    if wait_for(|| file.try_lock_shared())? { Ok(Ok(Some(file))) } else { holder(file).map(Err) }
}

/// Takes the exclusive lock, and writes the process id into its file.
pub(crate) fn lock(dir: &Path) -> io::Result<Result<File, Holder>> {
    let path = dir.join(LOCK);
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    if !wait_for(|| file.try_lock())? {
        return holder(file).map(Err);
    }
    failpoints::hit(failpoints::LOCK)?;
    file.set_len(0)?;
    // The pid only serves the message; a disk too full for it must not keep the store shut.
    let _ = writeln!(file, "{}", std::process::id());
    Ok(Ok(file))
}

/// Creates the ballast if it is absent or short. Written, not sparse: it must own its blocks.
pub(crate) fn reserve(dir: &Path, bytes: u64) -> io::Result<()> {
    let path = dir.join(BALLAST);
    if fs::metadata(&path).is_ok_and(|m| m.len() == bytes) {
        return Ok(());
    }
    let fill = || {
        let mut file = File::create(&path)?;
        io::copy(&mut io::repeat(0xb5).take(bytes), &mut file)?;
        file.sync_all()
    };
    fill().inspect_err(|_| {
        let _ = fs::remove_file(&path);
    })
}

/// Gives the ballast's blocks back to the file system.
pub(crate) fn release(dir: &Path) -> io::Result<()> {
    fs::remove_file(dir.join(BALLAST))?;
    sync_dir(dir)
}

pub(crate) fn bundle_path(dir: &Path, hash: &Hash) -> PathBuf {
    let hex = hash.to_string();
    dir.join(BUNDLES).join(&hex[..2]).join(hex)
}

/// Stores `bytes` under their hash; durable when it returns.
pub(crate) fn put_bundle(dir: &Path, bytes: &[u8]) -> io::Result<Hash> {
    let hash = Hash::of(bytes);
    let path = bundle_path(dir, &hash);
    if read_bounded(&path, bundle::BYTES_MAX as u64).is_ok_and(|old| old == bytes) {
        return Ok(hash);
    }
    if path.exists() {
        move_aside(&path)?;
    }
    let folder = path.parent().unwrap_or(dir);
    fs::create_dir_all(folder)?;
    sync_dir(&dir.join(BUNDLES))?;
    sync_dir(dir)?;
    failpoints::hit(failpoints::BUNDLE_TEMP)?;
    let fill = |mut file: File| file.write_all(bytes).map(|()| file);
    replace(&path.with_extension("tmp"), &path, fill, failpoints::BUNDLE_RENAME)?;
    failpoints::hit(failpoints::BUNDLE_AFTER)?;
    sync_dir(folder)?;
    Ok(hash)
}

/// Every stored bundle file with its name's hash, sorted; temporary and moved files are skipped.
pub(crate) fn bundles(dir: &Path) -> io::Result<Vec<(Hash, PathBuf)>> {
    let mut out = Vec::new();
    let root = dir.join(BUNDLES);
    if !root.exists() {
        return Ok(out);
    }
    for folder in fs::read_dir(root)? {
        let folder = folder?.path();
        if !folder.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            if let Some(hash) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse().ok()) {
                out.push((hash, path));
            }
        }
    }
    out.sort();
    Ok(out)
}
