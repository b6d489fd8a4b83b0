//! The store: opening with recovery, group commit, reading.
//!
//! Opening: lock, format, then the ladder: a damaged log is copied aside and rewritten from its intact frames; a
//! torn tail is copied aside and cut; an index that is not proven clean is rebuilt. Commit: one frame for the
//! whole batch, synced, then the index, then the acknowledgement. A failed sync stops the store until it is
//! reopened, because the kernel may have dropped the pages. Source: design section 9.

use crate::files::{self, BUNDLES, FORMAT_FILE, INDEX, LOG, MARKER};
use crate::index::{self, Index, Trust};
use crate::items::{CHUNK_ITEMS, Chunk, ItemDone, Progress};
use crate::log::{self, Header, Log, Op};
use crate::record::{Campaign, Finding, FindingId, Hash, Regression, Snapshot};
use crate::{BATCH_BYTES_MAX, FORMAT, VALUE_BYTES_MAX, bundle, failpoints};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Create the store if the directory is absent or empty.
    pub create: bool,
    /// Disk reserve, released when the disk is full.
    pub reserve_bytes: u64,
    /// Cache of the index.
    pub cache_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { create: true, reserve_bytes: 4 << 20, cache_bytes: 64 << 20 }
    }
}

/// Why a store did not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    #[error("store {} is in use by process {pid}; stop it, or use another --store", path.display())]
    Locked {
        /// The store.
        path: PathBuf,
        /// The holder.
        pid: String,
    },
    /// Written by a later version.
    #[error(
        "store has format {found}, this version knows {FORMAT}: use the newer moire, or export there and import here"
    )]
    Newer {
        /// Its format.
        found: String,
    },
    /// Not a store.
    #[error("{} is not a store: {why}", path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// What was missing.
        why: String,
    },
    /// The index could not be built.
    #[error("index: {0}")]
    Index(String),
    /// The file system failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
}

fn opening(what: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::Io { what, source }
}

/// Why a read or write failed. After any error nothing acknowledged is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No space: nothing of this batch is stored, all before it is.
    #[error("disk full: this batch is not stored, everything acknowledged is; free space and retry")]
    DiskFull,
    /// The file system failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// Over a limit.
    #[error("{what} has {size} bytes, the limit is {limit}; put large parts into a bundle")]
    TooLarge {
        /// What.
        what: String,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// A write that makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A stored record that cannot be read.
    #[error("record {key} cannot be read: {reason}; run `moire store fsck`")]
    Decode {
        /// Its key.
        key: String,
        /// The reason.
        reason: String,
    },
    /// The index failed; reopening rebuilds it.
    #[error("index: {0}; reopen the store to rebuild it")]
    Index(String),
    /// An earlier sync or index failure.
    #[error("store stopped after an earlier failure; reopen it")]
    Stopped,
}

fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
        _ => StoreError::Io { what, source },
    }
}

/// What opening found and did.
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
    /// Damaged files, where they now are.
    pub moved_aside: Vec<PathBuf>,
    /// The disk reserve could not be made.
    pub no_reserve: bool,
}

/// One change to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Write {
    /// Creates or replaces a campaign (not its progress).
    Campaign(Box<Campaign>),
    /// Creates or replaces a finding.
    Finding(Box<Finding>),
    /// Item `item` of `campaign` showed `finding`; idempotent, part of the campaign's digest.
    Sighting {
        /// The campaign.
        campaign: String,
        /// The item.
        item: u64,
        /// The finding.
        finding: FindingId,
    },
    /// Finished items of a campaign; those already recorded change nothing.
    Items {
        /// The campaign.
        campaign: String,
        /// The items.
        items: Vec<ItemDone>,
    },
    /// Keeps a program.
    Regression(Box<Regression>),
}

/// Two reports of one item that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The campaign.
    pub campaign: String,
    /// The item.
    pub item: u64,
    /// The digest kept.
    pub kept: Hash,
    /// The digest refused.
    pub refused: Hash,
}

/// What a commit did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Items recorded.
    pub items: u64,
    /// Items that were already recorded.
    pub duplicates: u64,
    /// Of these, those that said something else.
    pub conflicts: Vec<Conflict>,
    /// The disk was full and the reserve is used up: free space now.
    pub reserve_used: bool,
}

/// Sizes, for `moire store`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Records by kind.
    pub records: BTreeMap<String, u64>,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Commits in the log.
    pub commits: u64,
    /// Bundle files.
    pub bundles: u64,
    /// Times the log was rewritten.
    pub generation: u64,
}

/// The open store. One per directory; dropping it closes it.
pub struct Store {
    dir: PathBuf,
    options: Options,
    log: Log,
    /// Always present until the store is dropped.
    index: Option<Index>,
    reserve_used: bool,
    stopped: bool,
    _lock: File,
}

pub(crate) fn campaign_key(name: &str) -> Vec<u8> {
    [b"c/", name.as_bytes()].concat()
}
fn progress_key(name: &str) -> Vec<u8> {
    [b"p/", name.as_bytes()].concat()
}
fn finding_key(id: &FindingId) -> Vec<u8> {
    [&b"f/"[..], &id.0].concat()
}
fn chunk_prefix(name: &str) -> Vec<u8> {
    [b"i/", name.as_bytes(), b"\0"].concat()
}
fn sighting_prefix(name: &str) -> Vec<u8> {
    [b"s/", name.as_bytes(), b"\0"].concat()
}

/// A key for people: text, or escaped bytes.
pub(crate) fn show(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

pub(crate) fn parse<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(value).map_err(|e| StoreError::Decode { key: show(key), reason: e.to_string() })
}

pub(crate) fn valid_name(name: &str) -> bool {
    (1..=100).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// Checks the format file, or creates it in an empty directory.
pub(crate) fn check_format(dir: &Path, create: bool) -> Result<bool, OpenError> {
    let not_a_store = |why: &str| OpenError::NotAStore { path: dir.to_owned(), why: why.to_owned() };
    let path = dir.join(FORMAT_FILE);
    match fs::read(&path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let version = text.strip_prefix("moire-store ").map(str::trim);
            match version.map(str::parse::<u32>) {
                Some(Ok(FORMAT)) => Ok(false),
                Some(Ok(found)) if found > FORMAT => Err(OpenError::Newer { found: found.to_string() }),
                _ if dir.join(LOG).exists() => Ok(true),
                _ => Err(not_a_store("its FORMAT file is not readable")),
            }
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if dir.join(LOG).exists() {
                return Ok(true);
            }
            if !create {
                return Err(not_a_store("there is no FORMAT file"));
            }
            Ok(true)
        }
        Err(e) => Err(opening("reading FORMAT")(e)),
    }
}

fn open_log(dir: &Path, recovery: &mut Recovery) -> Result<(Log, Vec<u8>, log::Scan), OpenError> {
    let path = dir.join(LOG);
    if !path.exists() {
        recovery.created = true;
        log::replace(&path, 1, std::iter::empty()).map_err(opening("creating the log"))?;
    }
    let mut bytes = fs::read(&path).map_err(opening("reading the log"))?;
    let mut scan = log::scan(&bytes);
    let mut generation = match scan.header {
        Header::Good { generation } => generation,
        Header::Version(found) => return Err(OpenError::Newer { found: found.to_string() }),
        Header::Damaged => 0,
    };
    let undecodable = scan.frames.iter().filter(|f| log::decode(&bytes[f.payload.clone()]).is_none()).count();
    recovery.damaged =
        (scan.damaged.len() + undecodable + usize::from(scan.header == Header::Damaged)) as u64;
    if recovery.damaged > 0 {
        let aside = files::aside_name(&path);
        files::write_atomically(&aside, &bytes).map_err(opening("copying the damaged log aside"))?;
        recovery.moved_aside.push(aside);
        generation += 1;
        let good = scan.frames.iter().map(|f| &bytes[f.payload.clone()]).filter(|p| log::decode(p).is_some());
        log::replace(&path, generation, good.map(<[u8]>::to_vec)).map_err(opening("rewriting the log"))?;
        bytes = fs::read(&path).map_err(opening("reading the log"))?;
        scan = log::scan(&bytes);
    }
    let sequence = scan.frames.last().map_or(0, |f| f.sequence);
    let mut log =
        Log::open(&path, generation, sequence, scan.end as u64).map_err(opening("opening the log"))?;
    if scan.end < bytes.len() {
        recovery.torn_bytes = (bytes.len() - scan.end) as u64;
        let aside = files::aside_name(&path);
        files::write_atomically(&aside, &bytes[scan.end..])
            .map_err(opening("copying the torn tail aside"))?;
        recovery.moved_aside.push(aside);
        failpoints::hit(failpoints::TRUNCATE).map_err(opening("cutting the torn tail"))?;
        log.rewind().map_err(opening("cutting the torn tail"))?;
    }
    recovery.commits = scan.frames.len() as u64;
    Ok((log, bytes, scan))
}

/// The state a log describes.
pub(crate) fn replay(bytes: &[u8], scan: &log::Scan) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut state = BTreeMap::new();
    for frame in &scan.frames {
        for (key, value) in log::decode(&bytes[frame.payload.clone()]).unwrap_or_default() {
            match value {
                Some(value) => state.insert(key, value),
                None => state.remove(&key),
            };
        }
    }
    state
}

fn open_index(
    dir: &Path,
    options: &Options,
    log: &Log,
    state: impl FnOnce() -> BTreeMap<Vec<u8>, Vec<u8>>,
    recovery: &mut Recovery,
) -> Result<Index, OpenError> {
    let path = dir.join(INDEX);
    let trust = index::trust(dir, log.generation, log.len);
    if dir.join(MARKER).exists() {
        fs::remove_file(dir.join(MARKER)).map_err(opening("removing the index marker"))?;
        files::sync_dir(dir).map_err(opening("removing the index marker"))?;
    }
    if matches!(trust, Trust::Clean)
        && let Ok(index) = Index::open(dir, options.cache_bytes)
    {
        return Ok(index);
    }
    failpoints::hit(failpoints::REBUILD).map_err(opening("rebuilding the index"))?;
    if path.exists() {
        if matches!(trust, Trust::Stale) {
            // Derived data of an unclean stop: the log holds all of it.
            fs::remove_dir_all(&path).map_err(opening("clearing the stale index"))?;
        } else {
            recovery.moved_aside.push(files::move_aside(&path).map_err(opening("moving the index aside"))?);
        }
    }
    let index = Index::open(dir, options.cache_bytes).map_err(OpenError::Index)?;
    let mut state = state().into_iter().map(|(k, v)| (k, Some(v))).peekable();
    recovery.rebuilt = !recovery.created;
    while state.peek().is_some() {
        index.apply(state.by_ref().take(1000)).map_err(OpenError::Index)?;
    }
    Ok(index)
}

impl Store {
    /// Opens or creates the store in `dir`, repairing what a crash left.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, Recovery), OpenError> {
        if options.create {
            fs::create_dir_all(dir).map_err(opening("creating the store directory"))?;
        }
        if !dir.is_dir() {
            return Err(OpenError::NotAStore {
                path: dir.to_owned(),
                why: "there is no such directory".to_owned(),
            });
        }
        let write_format = check_format(dir, options.create)?;
        let lock = files::lock(dir)
            .map_err(opening("locking the store"))?
            .map_err(|pid| OpenError::Locked { path: dir.to_owned(), pid })?;
        let mut recovery = Recovery::default();
        let (log, bytes, scan) = open_log(dir, &mut recovery)?;
        if write_format {
            let text = format!("moire-store {FORMAT}\n");
            files::write_atomically(&dir.join(FORMAT_FILE), text.as_bytes())
                .map_err(opening("writing FORMAT"))?;
        }
        fs::create_dir_all(dir.join(BUNDLES)).map_err(opening("creating the bundle directory"))?;
        let index = open_index(dir, &options, &log, || replay(&bytes, &scan), &mut recovery)?;
        recovery.no_reserve = files::reserve(dir, options.reserve_bytes).is_err();
        let reserve_used = recovery.no_reserve;
        let index = Some(index);
        Ok((
            Self { dir: dir.to_owned(), options, log, index, reserve_used, stopped: false, _lock: lock },
            recovery,
        ))
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn index(&self) -> &Index {
        self.index.as_ref().expect("the index is taken only by drop")
    }

    fn raw(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.index().get(key).map_err(StoreError::Index)
    }

    fn record<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.raw(key)?.map(|value| parse(key, &value)).transpose()
    }

    fn records<T: DeserializeOwned>(
        &self,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<T, StoreError>> + use<T> {
        self.index().scan(prefix).map(|pair| {
            let (key, value) = pair.map_err(StoreError::Index)?;
            parse(&key, &value)
        })
    }

    /// All pairs in key order: for export, fsck and compaction.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>> + use<> {
        self.index().scan(b"").map(|pair| pair.map_err(StoreError::Index))
    }

    /// Makes a batch durable, whole or not at all. `Ok` is the acknowledgement.
    pub fn commit(&mut self, writes: Vec<Write>) -> Result<Receipt, StoreError> {
        let mut batch = Batch { store: self, pending: BTreeMap::new(), receipt: Receipt::default() };
        for write in writes {
            batch.add(write)?;
        }
        let Batch { pending, mut receipt, .. } = batch;
        self.commit_ops(pending.into_iter().collect())?;
        receipt.reserve_used = self.reserve_used;
        Ok(receipt)
    }

    pub(crate) fn commit_ops(&mut self, ops: Vec<Op>) -> Result<(), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        if ops.is_empty() {
            return Ok(());
        }
        if self.reserve_used {
            files::reserve(&self.dir, self.options.reserve_bytes)
                .map_err(io_error("restoring the disk reserve"))?;
            self.reserve_used = false;
        }
        let payload = log::encode(&ops);
        if payload.len() > BATCH_BYTES_MAX {
            let (what, size) = ("a commit".to_owned(), payload.len());
            return Err(StoreError::TooLarge { what, size, limit: BATCH_BYTES_MAX });
        }
        if let Err(error) = self.log.append(&payload) {
            self.after_failed_append(error, &payload)?;
        }
        let applied = (|| {
            failpoints::hit(failpoints::SYNC_AFTER).map_err(|e| e.to_string())?;
            failpoints::hit(failpoints::APPLY_BEFORE).map_err(|e| e.to_string())?;
            self.index().apply(ops)?;
            failpoints::hit(failpoints::APPLY_AFTER).map_err(|e| e.to_string())
        })();
        applied.map_err(|error| {
            self.stopped = true;
            StoreError::Index(error)
        })
    }

    /// Undoes a failed append; on a full disk gives up the reserve and tries once more.
    fn after_failed_append(&mut self, error: io::Error, payload: &[u8]) -> Result<(), StoreError> {
        let undone = self.log.rewind();
        let failed = io_error("appending to the log")(error);
        // Stopped unless the log is known to be as it was.
        self.stopped = true;
        if undone.is_err() || !matches!(failed, StoreError::DiskFull) {
            return Err(failed);
        }
        let retried = files::release(&self.dir).and_then(|()| self.log.append(payload));
        self.reserve_used = true;
        if retried.is_err() && self.log.rewind().is_err() {
            return Err(failed);
        }
        self.stopped = false;
        retried.map_err(|_| failed)
    }

    /// A campaign.
    pub fn campaign(&self, name: &str) -> Result<Option<Campaign>, StoreError> {
        self.record(&campaign_key(name))
    }
    /// All campaigns, by name.
    pub fn campaigns(&self) -> Result<Vec<Campaign>, StoreError> {
        self.records(b"c/").collect()
    }
    /// How far a campaign is.
    pub fn progress(&self, campaign: &str) -> Result<Progress, StoreError> {
        Ok(self.record(&progress_key(campaign))?.unwrap_or_default())
    }
    /// A finding.
    pub fn finding(&self, id: &FindingId) -> Result<Option<Finding>, StoreError> {
        self.record(&finding_key(id))
    }
    /// All findings, by id; one that cannot be read is an error of its own.
    pub fn findings(&self) -> impl Iterator<Item = Result<Finding, StoreError>> + use<> {
        self.records(b"f/")
    }
    /// All regression programs, by program id.
    pub fn regressions(&self) -> impl Iterator<Item = Result<Regression, StoreError>> + use<> {
        self.records(b"r/")
    }
    /// Sightings of a campaign: (finding, item), sorted.
    pub fn sightings(&self, campaign: &str) -> Result<Vec<(FindingId, u64)>, StoreError> {
        let prefix = sighting_prefix(campaign);
        let split = |pair: Result<(Vec<u8>, Vec<u8>), String>| {
            let (key, _) = pair.map_err(StoreError::Index)?;
            let parts = key[prefix.len()..].split_at_checked(32);
            let read = |(id, item): (&[u8], &[u8])| {
                Some((Hash(id.try_into().ok()?), u64::from_be_bytes(item.try_into().ok()?)))
            };
            parts
                .and_then(read)
                .ok_or_else(|| StoreError::Decode { key: show(&key), reason: "not a sighting".to_owned() })
        };
        self.index().scan(&prefix).map(split).collect()
    }

    /// The campaign's digest: items in order, then the sorted ids of the findings seen.
    pub fn digest(&self, campaign: &str) -> Result<Hash, StoreError> {
        let mut hasher = blake3::Hasher::new();
        let prefix = chunk_prefix(campaign);
        for pair in self.index().scan(&prefix) {
            let (key, value) = pair.map_err(StoreError::Index)?;
            let (number, chunk) = read_chunk(&key, &prefix, &value)?;
            for (slot, (_, digest)) in chunk.0 {
                hasher.update(&(number * CHUNK_ITEMS + u64::from(slot)).to_le_bytes()).update(&digest.0);
            }
        }
        let mut findings: Vec<_> = self.sightings(campaign)?.into_iter().map(|s| s.0).collect();
        findings.dedup();
        for id in findings {
            hasher.update(&id.0);
        }
        Ok(Hash(*hasher.finalize().as_bytes()))
    }

    /// Stores bytes under their hash; durable when it returns.
    pub fn put_bundle(&mut self, bytes: &[u8]) -> Result<Hash, StoreError> {
        if bytes.len() > bundle::BYTES_MAX {
            let (what, size) = ("a bundle".to_owned(), bytes.len());
            return Err(StoreError::TooLarge { what, size, limit: bundle::BYTES_MAX });
        }
        files::put_bundle(&self.dir, bytes).map_err(io_error("storing a bundle"))
    }
    /// The bytes of a stored bundle; `None` when there is no such file.
    pub fn bundle(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        match fs::read(files::bundle_path(&self.dir, hash)) {
            Ok(bytes) if Hash::of(&bytes) == *hash => Ok(Some(bytes)),
            Ok(_) => Err(StoreError::Decode {
                key: format!("bundle {hash}"),
                reason: "its hash differs".to_owned(),
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(io_error("reading a bundle")(e)),
        }
    }

    /// Keeps what a report showed.
    pub fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let text = serde_json::to_vec(snapshot).map_err(|e| StoreError::Invalid(e.to_string()))?;
        let hash = self.put_bundle(&text)?;
        failpoints::hit(failpoints::SNAPSHOT).map_err(io_error("storing a snapshot"))?;
        let key = [&b"t/"[..], &snapshot.at_ms.to_be_bytes()].concat();
        self.commit_ops(vec![(key, Some(format!("\"{hash}\"").into_bytes()))])
    }
    /// What the last report showed.
    pub fn last_snapshot(&self) -> Result<Option<Snapshot>, StoreError> {
        let last = self.records::<Hash>(b"t/").last().transpose()?;
        let Some(hash) = last else { return Ok(None) };
        let key = format!("bundle {hash}");
        self.bundle(&hash)?.map(|bytes| parse(key.as_bytes(), &bytes)).transpose()
    }

    /// Counts and sizes.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let mut stats = Stats {
            log_bytes: self.log.len,
            commits: self.log.sequence,
            generation: self.log.generation,
            bundles: files::bundles(&self.dir).map_err(io_error("listing bundles"))?.len() as u64,
            ..Stats::default()
        };
        for pair in self.pairs() {
            let kind = crate::fsck::kind(&pair?.0);
            *stats.records.entry(kind.to_owned()).or_default() += 1;
        }
        Ok(stats)
    }

    /// Rewrites the log so that it holds each live record once. Returns bytes before and after.
    pub fn compact(&mut self) -> Result<(u64, u64), StoreError> {
        if self.stopped {
            return Err(StoreError::Stopped);
        }
        let before = self.log.len;
        let pairs: Vec<_> = self.pairs().collect::<Result<_, _>>()?;
        let payloads = pairs.chunks(64).map(|chunk| {
            log::encode(&chunk.iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect::<Vec<_>>())
        });
        let path = self.dir.join(LOG);
        let generation = self.log.generation + 1;
        let (len, sequence) = log::replace(&path, generation, payloads).map_err(io_error("compacting"))?;
        // The old handle points at the replaced file: if this fails nothing more may be written through it.
        self.stopped = true;
        self.log = Log::open(&path, generation, sequence, len).map_err(io_error("reopening the log"))?;
        self.stopped = false;
        Ok((before, len))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let Some(index) = self.index.take() else { return };
        if index.close().is_ok() && !self.stopped {
            // Without the marker the next open rebuilds the index: slower, not wrong.
            let _ = index::mark_clean(&self.dir, self.log.generation, self.log.len);
        }
    }
}

pub(crate) fn read_chunk(key: &[u8], prefix: &[u8], value: &[u8]) -> Result<(u64, Chunk), StoreError> {
    let number = key.get(prefix.len()..).and_then(|n| Some(u64::from_be_bytes(n.try_into().ok()?)));
    let number = number.filter(|n| *n <= u64::MAX / CHUNK_ITEMS);
    match (number, Chunk::decode(value)) {
        (Some(number), Some(chunk)) => Ok((number, chunk)),
        _ => Err(StoreError::Decode { key: show(key), reason: "not a chunk of item digests".to_owned() }),
    }
}

/// The operations of one commit, on top of the stored state.
struct Batch<'a> {
    store: &'a Store,
    pending: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    receipt: Receipt,
}

impl Batch<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.pending.get(key) {
            Some(value) => Ok(value.clone()),
            None => self.store.raw(key),
        }
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError> {
        if value.len() > VALUE_BYTES_MAX {
            let what = format!("record {}", show(&key));
            return Err(StoreError::TooLarge { what, size: value.len(), limit: VALUE_BYTES_MAX });
        }
        self.pending.insert(key, Some(value));
        Ok(())
    }

    fn put_json<T: Serialize>(&mut self, key: Vec<u8>, value: &T) -> Result<(), StoreError> {
        let text = serde_json::to_vec(value).map_err(|e| StoreError::Invalid(e.to_string()))?;
        self.put(key, text)
    }

    fn check_campaign(&self, name: &str) -> Result<(), StoreError> {
        match self.get(&campaign_key(name))? {
            Some(_) => Ok(()),
            None => Err(StoreError::Invalid(format!("there is no campaign `{}`", name.escape_debug()))),
        }
    }

    fn add(&mut self, write: Write) -> Result<(), StoreError> {
        match write {
            Write::Campaign(campaign) if !valid_name(&campaign.name) => Err(StoreError::Invalid(format!(
                "`{}` is not a campaign name: use up to 100 letters, digits, `.`, `_`, `-`",
                campaign.name.escape_debug()
            ))),
            Write::Campaign(campaign) => self.put_json(campaign_key(&campaign.name), &campaign),
            Write::Finding(finding) => self.put_json(finding_key(&finding.id), &finding),
            Write::Regression(r) => self.put_json([&b"r/"[..], &r.program.0].concat(), &r),
            Write::Sighting { campaign, item, finding } => {
                self.check_campaign(&campaign)?;
                let key = [&sighting_prefix(&campaign)[..], &finding.0, &item.to_be_bytes()].concat();
                self.put(key, Vec::new())
            }
            Write::Items { campaign, items } => self.add_items(&campaign, items),
        }
    }

    fn add_items(&mut self, campaign: &str, items: Vec<ItemDone>) -> Result<(), StoreError> {
        self.check_campaign(campaign)?;
        let progress_key = progress_key(campaign);
        let mut progress: Progress =
            self.get(&progress_key)?.map(|v| parse(&progress_key, &v)).transpose()?.unwrap_or_default();
        let prefix = chunk_prefix(campaign);
        for done in items {
            if done.item == u64::MAX {
                return Err(StoreError::Invalid(format!("item {} is out of range", done.item)));
            }
            let (number, slot) = (done.item / CHUNK_ITEMS, done.item % CHUNK_ITEMS);
            let slot = u8::try_from(slot).expect("a chunk has fewer than 256 items");
            let key = [&prefix[..], &number.to_be_bytes()].concat();
            let mut chunk = match self.get(&key)? {
                Some(value) => read_chunk(&key, &prefix, &value)?.1,
                None => Chunk::default(),
            };
            if let Some((_, kept)) = chunk.0.get(&slot) {
                self.receipt.duplicates += 1;
                if *kept != done.digest {
                    let (campaign, item) = (campaign.to_owned(), done.item);
                    self.receipt.conflicts.push(Conflict {
                        campaign,
                        item,
                        kept: *kept,
                        refused: done.digest,
                    });
                }
                continue;
            }
            chunk.0.insert(slot, (done.epoch, done.digest));
            self.put(key, chunk.encode())?;
            progress.insert(done.item);
            progress.counters.add(&done.counters);
            self.receipt.items += 1;
        }
        self.put_json(progress_key, &progress)
    }
}
