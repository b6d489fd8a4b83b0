//! Opening a store: lock, format, log, index, in this order. Each is repaired if possible.
//!
//! - A damaged log is copied aside and rewritten from its intact frames.
//! - A loss is noted (`crate::loss`) before anything is repaired.
//! - A torn tail is copied aside and cut.
//! - An index that is not proven clean is rebuilt.
//!
//! Nothing is deleted that cannot be derived from the log.

use super::{Options, Pairs};
use crate::error::{OpenError, opening};
use crate::failpoints;
use crate::files::{self, BUNDLES, FORMAT_FILE, Holder, INDEX, LOG, MARKER};
use crate::index::{self, Index, IndexError, Trust};
use crate::log::{self, FORMAT, Header, Intact, LOG_BYTES_MAX, Live, Log, Place};
use crate::loss::{Loss, Losses, Tip, Traces};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Longest format file that is read.
const FORMAT_BYTES_MAX: u64 = 64;

/// The result of opening a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The store is new.
    pub created: bool,
    /// Intact commits in the log.
    pub commits: u64,
    /// Bytes of an unfinished commit, cut off.
    pub torn_bytes: u64,
    /// Damaged stretches inside the log.
    pub damaged: u64,
    /// The index was rebuilt from the log.
    pub rebuilt: bool,
    /// The present paths of damaged files.
    pub moved_aside: Vec<PathBuf>,
    /// The disk reserve could not be made.
    pub no_reserve: bool,
    /// The losses found. These losses, and earlier ones, are in [`Store::losses`](crate::Store::losses) until they
    /// are acknowledged.
    pub lost: Vec<String>,
}

impl std::fmt::Display for Recovery {
    /// What was repaired, one line each; nothing if the store was as it was left.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut lines: Vec<String> = self.lost.iter().map(|what| format!("LOST: {what}")).collect();
        if self.torn_bytes > 0 && self.lost.is_empty() {
            let bytes = self.torn_bytes;
            lines.push(format!(
                "cut off {bytes} bytes of a commit that was not finished, and not acknowledged"
            ));
        }
        if self.rebuilt {
            lines.push(format!("built the index again from {} commits", self.commits));
        }
        lines.extend(
            self.moved_aside.iter().map(|path| format!("kept the damaged part as {}", path.display())),
        );
        if self.no_reserve {
            lines.push("the disk is too full for the reserve".to_owned());
        }
        f.write_str(&lines.join("\n"))
    }
}

/// The content of the format file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Known,
    /// Absent, but there is a log, or the caller asked to create a store.
    Missing,
    /// Unreadable, but there is a log; the header of the log has its own version.
    Damaged,
}

/// Checks the format file; changes nothing.
pub(crate) fn check_format(dir: &Path, create: bool) -> Result<Format, OpenError> {
    let not_a_store = |why: &str| OpenError::NotAStore { path: dir.to_owned(), why: why.to_owned() };
    if !dir.is_dir() {
        return Err(not_a_store("there is no such directory"));
    }
    let log = dir.join(LOG).exists();
    let bytes = match files::read_bounded(&dir.join(FORMAT_FILE), FORMAT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return match (log, create) {
                (true, _) => Ok(Format::Missing),
                (false, true) if only_ours(dir).map_err(opening("listing the directory"))? => {
                    Ok(Format::Missing)
                }
                (false, true) => Err(not_a_store("it holds other files; give an empty or a new directory")),
                (false, false) => Err(not_a_store("there is no FORMAT file")),
            };
        }
        Err(e) if e.kind() == io::ErrorKind::FileTooLarge => Vec::new(),
        Err(e) => return Err(opening("reading FORMAT")(e)),
    };
    let text = String::from_utf8_lossy(&bytes);
    let version = text.strip_prefix("moire-store ").map_or("", str::trim);
    let digits = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
    match version.parse::<u32>() {
        Ok(FORMAT) => Ok(Format::Known),
        Ok(found) if found > FORMAT => Err(OpenError::Newer { found: found.to_string() }),
        // A version too large for 32 bits is newer than ours.
        Err(_) if digits => Err(OpenError::Newer { found: version.to_owned() }),
        _ if log => Ok(Format::Damaged),
        _ => Err(not_a_store("its FORMAT file is not readable")),
    }
}

/// Whether a directory without FORMAT and log holds only files that an interrupted creation leaves.
fn only_ours(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if !files::CREATED_FIRST.iter().any(|ours| name == *ours) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The bytes of the log.
pub(crate) fn read_log(dir: &Path) -> Result<Vec<u8>, OpenError> {
    files::read_bounded(&dir.join(LOG), LOG_BYTES_MAX).map_err(opening("reading the log"))
}

/// The log under repair, and what the repair notes.
struct Opening<'a> {
    dir: &'a Path,
    traces: Traces,
    losses: Losses,
    recovery: Recovery,
}

impl Opening<'_> {
    /// Notes a loss, durably.
    fn lost(&mut self, what: String, kept: Vec<PathBuf>) -> Result<(), OpenError> {
        self.recovery.lost.push(what.clone());
        let loss = Loss { what, kept, acknowledged: None };
        self.losses.add(self.dir, loss).map_err(opening("noting a loss"))
    }

    /// Opens the log, and creates or repairs it first where needed. Afterwards every byte of it is intact.
    fn log(&mut self) -> Result<Log, OpenError> {
        let path = self.dir.join(LOG);
        if !path.exists() {
            match self.traces.without_log() {
                Some(what) => self.lost(what, Vec::new())?,
                None => self.recovery.created = true,
            }
            let generation = self.traces.generation().wrapping_add(1);
            log::replace(&path, generation, std::iter::empty()).map_err(opening("creating the log"))?;
        }
        let size = fs::metadata(&path).map_err(opening("reading the log"))?.len();
        let read = match size <= LOG_BYTES_MAX {
            true => log::intact(&path, |_, _| {}).map_err(opening("reading the log"))?,
            false => None,
        };
        let read = match read {
            // A gap in the numbers is damage too: a commit is missing.
            Some(read) if read.sequence == read.frames => {
                let last = Place { generation: read.generation, sequence: read.sequence, len: read.len };
                if let Some(what) = self.traces.missing(last, read.frames, 0) {
                    self.lost(what, Vec::new())?;
                }
                read
            }
            _ => self.mend()?,
        };
        self.recovery.commits = read.frames;
        Log::open(&path, read.generation, read.sequence, read.len).map_err(|error| match error.kind() {
            // The lock file of an open store was removed.
            io::ErrorKind::ResourceBusy => {
                OpenError::Locked { path: self.dir.to_owned(), pid: String::new() }
            }
            _ => opening("opening the log")(error),
        })
    }

    /// Repairs a log: keeps its intact frames. It holds the whole log in memory, which opening an intact log does not.
    fn mend(&mut self) -> Result<Intact, OpenError> {
        let path = self.dir.join(LOG);
        let mut bytes = read_log(self.dir)?;
        let mut scan = log::scan(&bytes);
        let mut found = found(&bytes, &scan)?;
        self.recovery.damaged = found.damaged;
        if found.damaged > 0 {
            let aside = files::aside_name(&path);
            files::write_atomically(&aside, &bytes).map_err(opening("copying the damaged log aside"))?;
            self.recovery.moved_aside.push(aside);
        }
        if let Some(what) = self.traces.missing(found.last, found.frames, found.damaged) {
            self.lost(what, self.recovery.moved_aside.clone())?;
        }
        if found.damaged > 0 {
            // Newer than every log there was, so that none of their traces is taken for one of this log.
            let newest = found.last.generation.max(self.traces.generation());
            found.last.generation = newest.wrapping_add(1);
            let frames = scan.frames.iter().map(|f| &bytes[f.payload.clone()]);
            let good = frames.filter(|p| log::decode(p).is_some()).map(|payload| Ok(payload.to_vec()));
            log::replace(&path, found.last.generation, good).map_err(opening("rewriting the log"))?;
            bytes = read_log(self.dir)?;
            scan = log::scan(&bytes);
        }
        let sequence = scan.frames.last().map_or(0, |f| f.sequence);
        let (generation, end) = (found.last.generation, scan.end as u64);
        if scan.end < bytes.len() {
            self.recovery.torn_bytes = (bytes.len() - scan.end) as u64;
            let aside = files::aside_name(&path);
            files::write_atomically(&aside, &bytes[scan.end..])
                .map_err(opening("copying the torn tail aside"))?;
            self.recovery.moved_aside.push(aside);
            failpoints::hit(failpoints::TRUNCATE).map_err(opening("cutting the torn tail"))?;
            let cut = Log::open(&path, generation, sequence, end).and_then(|mut log| log.rewind());
            cut.map_err(opening("cutting the torn tail"))?;
        }
        Ok(Intact { generation, sequence, frames: scan.frames.len() as u64, len: end })
    }
}

/// What a scan found of a log that may be damaged.
pub(crate) struct Found {
    /// The last intact commit.
    pub(crate) last: Place,
    /// Intact commits.
    pub(crate) frames: u64,
    /// Damaged stretches with intact commits behind them. A damaged header counts as one, and so does a gap in the numbers
    /// of commits.
    pub(crate) damaged: u64,
}

/// The intact part of a scanned log.
///
/// # Errors
/// It is of a later version.
pub(crate) fn found(bytes: &[u8], scan: &log::Scan) -> Result<Found, OpenError> {
    let generation = match scan.header {
        Header::Good { generation } => generation,
        Header::Version(found) => return Err(OpenError::Newer { found: found.to_string() }),
        Header::Damaged => 0,
    };
    let undecodable = scan.frames.iter().filter(|f| log::decode(&bytes[f.payload.clone()]).is_none()).count();
    let damaged = scan.damaged.len() + undecodable + usize::from(scan.header == Header::Damaged);
    let sequence = scan.frames.last().map_or(0, |f| f.sequence);
    let gap = damaged == 0 && sequence > scan.frames.len() as u64;
    let damaged = damaged + usize::from(gap);
    let last = Place { generation, sequence, len: scan.end as u64 };
    Ok(Found { last, frames: (scan.frames.len() - undecodable) as u64, damaged: damaged as u64 })
}

/// The state a log describes.
pub(crate) fn replay<'a>(bytes: &'a [u8], scan: &log::Scan) -> BTreeMap<&'a [u8], &'a [u8]> {
    let mut state = BTreeMap::new();
    for frame in &scan.frames {
        for (key, value) in log::decode(&bytes[frame.payload.clone()]).unwrap_or_default() {
            match value {
                Some(value) => state.insert(key, value),
                None => state.remove(key),
            };
        }
    }
    state
}

/// Opens the index if it is that of this log, otherwise builds it anew.
fn open_index(dir: &Path, options: &Options, log: &Log, recovery: &mut Recovery) -> Result<Index, OpenError> {
    let trust = index::trust(dir, log.generation, log.len);
    if dir.join(MARKER).exists() {
        fs::remove_file(dir.join(MARKER)).map_err(opening("removing the index marker"))?;
        files::sync_dir(dir).map_err(opening("removing the index marker"))?;
    }
    let keep = match trust {
        Trust::Clean => match Index::open(dir, options.cache_bytes) {
            Ok(index) => return Ok(index),
            Err(IndexError::Full) => false,
            Err(IndexError::Other(_)) => true,
        },
        Trust::Stale => false,
        Trust::Mismatch => true,
    };
    // After a loss the index may have what the log lost.
    let keep = keep || !recovery.lost.is_empty();
    failpoints::hit(failpoints::REBUILD).map_err(opening("rebuilding the index"))?;
    let path = dir.join(INDEX);
    if keep && path.exists() {
        recovery.moved_aside.push(files::move_aside(&path).map_err(opening("moving the index aside"))?);
    }
    recovery.rebuilt = !recovery.created;
    let live = Live::of(&dir.join(LOG)).map_err(opening("reading the log"))?;
    let (_, live) = live.ok_or_else(|| opening("reading the log")(io::ErrorKind::InvalidData.into()))?;
    build_index(dir, options, &live, &mut recovery.no_reserve).map_err(|error| match error {
        IndexError::Full => OpenError::DiskFull,
        IndexError::Other(text) => OpenError::Index(text),
    })
}

/// Builds the index; on a full disk gives up the reserve and tries once more.
fn build_index(dir: &Path, options: &Options, live: &Live, released: &mut bool) -> Result<Index, IndexError> {
    match Index::build(dir, options.cache_bytes, live) {
        Err(IndexError::Full) if files::release(dir).is_ok() => {
            *released = true;
            Index::build(dir, options.cache_bytes, live)
        }
        built => built,
    }
}

impl Pairs {
    /// Opens or creates the pairs in `dir`, repairing what a crash left.
    pub(crate) fn open(dir: &Path, options: Options) -> Result<(Self, Recovery), OpenError> {
        if options.create {
            fs::create_dir_all(dir).map_err(opening("creating the store directory"))?;
        }
        let format = check_format(dir, options.create)?;
        let lock = files::lock(dir)
            .map_err(opening("locking the store"))?
            .map_err(|Holder(pid)| OpenError::Locked { path: dir.to_owned(), pid })?;
        super::compact::clear(dir).map_err(opening("removing a log that was not finished"))?;
        let losses = Losses::read(dir).map_err(opening("reading the losses"))?;
        let (traces, recovery) = (Traces::read(dir), Recovery::default());
        let mut opened = Opening { dir, traces, losses, recovery };
        let log = opened.log()?;
        let Opening { losses, mut recovery, .. } = opened;
        if format == Format::Damaged {
            let aside = files::move_aside(&dir.join(FORMAT_FILE)).map_err(opening("moving FORMAT aside"))?;
            recovery.moved_aside.push(aside);
        }
        if format != Format::Known {
            let text = format!("moire-store {FORMAT}\n");
            files::write_atomically(&dir.join(FORMAT_FILE), text.as_bytes())
                .map_err(opening("writing FORMAT"))?;
        }
        fs::create_dir_all(dir.join(BUNDLES)).map_err(opening("creating the bundle directory"))?;
        let index = open_index(dir, &options, &log, &mut recovery)?;
        recovery.no_reserve = recovery.no_reserve || files::reserve(dir, options.reserve_bytes).is_err();
        let reserve_used = recovery.no_reserve;
        let (index, tip, dir) = (Some(index), Tip::open(dir), dir.to_owned());
        let (stopped, live_bytes, fresh) = (false, 0, None);
        let mut pairs =
            Self { dir, options, log, tip, index, reserve_used, stopped, losses, live_bytes, fresh, lock };
        pairs.note_tip();
        Ok((pairs, recovery))
    }
}
