//! Small records, and directories as maps, for all tests of the store.

use moire_corpus::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn options() -> Options {
    Options { reserve_bytes: 4096, cache_bytes: 1 << 20, ..Options::default() }
}

pub(crate) fn open(dir: &Path) -> Store {
    Store::open(dir, options()).unwrap().0
}

pub(crate) fn campaign(name: &str) -> Write {
    Write::Campaign(Box::new(Campaign { name: name.into(), seed: 7, ..Campaign::default() }))
}

pub(crate) fn finding(n: u64) -> Finding {
    let id = Hash::of(&n.to_le_bytes());
    Finding { id, campaign: "c".into(), reduced: format!("program {n}"), count: n, ..Finding::default() }
}

pub(crate) fn done(item: u64) -> ItemDone {
    let counters = Counters { programs: 1, executions: item, ..Counters::default() };
    ItemDone { item, epoch: 1, digest: Hash::of(&item.to_le_bytes()), counters }
}

pub(crate) fn items(list: impl IntoIterator<Item = u64>) -> Write {
    Write::Items { campaign: "c".into(), items: list.into_iter().map(done).collect() }
}

/// A store with three commits, closed.
pub(crate) fn three_commits(dir: &Path) {
    let mut store = open(dir);
    store.commit(vec![campaign("c")]).unwrap();
    store.commit(vec![Write::Finding(Box::new(finding(1)))]).unwrap();
    store.commit(vec![Write::Finding(Box::new(finding(2)))]).unwrap();
}

/// Every file below `dir` with its bytes, by its path inside.
pub(crate) fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(root: &Path, dir: &Path, out: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, out);
            } else {
                out.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(dir, dir, &mut out);
    out
}

/// Copies the files below `from`: what a process that is killed now leaves.
pub(crate) fn copy(from: &Path, to: &Path) {
    for (name, bytes) in tree(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
