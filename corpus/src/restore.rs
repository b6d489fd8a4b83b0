//! Puts back what a log lost and an index that was moved aside still has.
//!
//! Contract: nothing that the store has is replaced. A record that it lacks is put back, if it reads well. The digests of
//! items are united, each item's as the store has it first. The progress of a campaign then has exactly the items of which
//! there are digests, with the counters of whichever record counted more programs. An exploration of which the store has
//! anything is left as it is, because its totals and its pieces belong together. Done twice, it changes nothing more.

use crate::check::{check_record, kind};
use crate::error::StoreError;
use crate::files::{self, INDEX};
use crate::index::Index;
use crate::items::{CHUNK_ITEMS, Chunk, Progress};
use crate::op::Op;
use crate::store::Store;
use crate::store::keys::{chunks_of_progress, exploration_id, parse, read_chunk};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Most operations in one commit.
const BATCH: usize = 100;
/// Cache of the index that is read.
const CACHE_BYTES: u64 = 16 << 20;

/// What was put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The index it came from.
    pub index: PathBuf,
    /// Records put back or completed, by kind.
    pub records: BTreeMap<String, u64>,
    /// Records of the index that cannot be read.
    pub unreadable: u64,
}

/// The newest index that was moved aside.
fn newest(dir: &Path) -> Option<PathBuf> {
    let name = |n: u64| dir.join(format!("{INDEX}.damaged-{n}"));
    (1..).map(name).take_while(|path| path.exists()).last()
}

/// The records to write, a few at a time.
struct Put<'a> {
    store: &'a mut Store,
    ops: Vec<Op>,
    restored: Restored,
}

impl Put<'_> {
    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError> {
        *self.restored.records.entry(kind(&key).to_owned()).or_default() += 1;
        self.ops.push(Op::new(key, Some(value))?);
        if self.ops.len() >= BATCH { self.flush() } else { Ok(()) }
    }
    fn flush(&mut self) -> Result<(), StoreError> {
        let ops = std::mem::take(&mut self.ops);
        self.store.pairs_mut().commit(ops)
    }
    /// Puts the digests of items back that the store has not.
    fn unite(&mut self, key: &[u8], here: Option<Vec<u8>>, there: &[u8]) -> Result<(), StoreError> {
        let prefix = key.len().saturating_sub(8);
        let mut united = match &here {
            Some(here) => read_chunk(key, &key[..prefix], here)?.1,
            None => Chunk::default(),
        };
        let before = united.0.len();
        for (slot, digest) in read_chunk(key, &key[..prefix], there)?.1.0 {
            united.0.entry(slot).or_insert(digest);
        }
        if united.0.len() > before { self.put(key.to_vec(), united.encode()) } else { Ok(()) }
    }
    /// Makes the progress of a campaign that of its digests. `there`: its record in the index.
    fn progress(&mut self, key: Vec<u8>, there: &[u8]) -> Result<(), StoreError> {
        let mut there: Progress = parse(&key, there)?;
        let here = self.store.pairs().get(&key)?;
        let known: Progress = here.map(|here| parse(&key, &here)).transpose()?.unwrap_or_default();
        if known.counters.programs >= there.counters.programs {
            there.counters.clone_from(&known.counters);
        }
        there.completed.clear();
        let chunks = chunks_of_progress(&key);
        for pair in self.store.pairs().scan(&chunks) {
            let (chunk_key, value) = pair?;
            let (number, chunk) = read_chunk(&chunk_key, &chunks, &value)?;
            chunk.0.keys().for_each(|slot| there.insert(number * CHUNK_ITEMS + u64::from(*slot)));
        }
        if there == known {
            return Ok(());
        }
        let text = serde_json::to_vec(&there).map_err(|e| StoreError::Invalid(e.to_string()))?;
        self.put(key, text)
    }
}

/// Puts back what the index in the folder `index` has and the store has not; by default the newest that was moved aside.
///
/// # Errors
/// There is no such index, it cannot be read, or the store failed.
pub fn restore(store: &mut Store, index: Option<&Path>) -> Result<Restored, StoreError> {
    let none = || StoreError::Invalid("no index was moved aside, so there is nothing to put back".to_owned());
    let path = index.map(Path::to_path_buf).or_else(|| newest(store.dir())).ok_or_else(none)?;
    if !path.join("db").is_file() {
        return Err(StoreError::Invalid(format!("{} is no index", path.display())));
    }
    let restored = Restored { index: path.clone(), ..Restored::default() };
    // The index is read from a copy: opening it writes to it, and it may be all that is left.
    let copy = files::copied_aside(&path).map_err(crate::error::io_error("copying the index"))?;
    let index = Index::at(&copy, CACHE_BYTES)?;
    let (known, _) = store.explorations()?;
    let known: BTreeSet<_> = known.into_keys().collect();
    let (mut put, mut progress) = (Put { store, ops: Vec::new(), restored }, Vec::new());
    for pair in index.scan(b"") {
        let (key, value) = pair?;
        if check_record(&key, &value).is_err() {
            put.restored.unreadable += 1;
            continue;
        }
        let here = put.store.pairs().get(&key)?;
        match kind(&key) {
            "item chunks" => put.unite(&key, here, &value)?,
            "progress" => progress.push((key, value)),
            "explorations" if exploration_id(&key).is_some_and(|id| known.contains(&id)) => {}
            _ if here.is_some() => {}
            _ => put.put(key, value)?,
        }
    }
    put.flush()?;
    for (key, value) in progress {
        put.progress(key, &value)?;
    }
    put.flush()?;
    let restored = put.restored;
    drop(index.close());
    // A copy that stays is no harm.
    let _ = std::fs::remove_dir_all(&copy);
    Ok(restored)
}
