//! A full disk, injected: failpoints are global to a process, so this test has one of its own.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_corpus::*;
use std::path::Path;

fn options() -> Options {
    Options { reserve_bytes: 4096, cache_bytes: 1 << 20, ..Options::default() }
}

fn open(dir: &Path) -> Store {
    Store::open(dir, options()).unwrap().0
}

fn campaign(name: &str) -> Write {
    Write::Campaign(Box::new(Campaign { name: name.into(), seed: 7, ..Campaign::default() }))
}

fn done(item: u64) -> ItemDone {
    let counters = Counters { programs: 1, executions: item, ..Counters::default() };
    ItemDone { item, epoch: 1, digest: Hash::of(&item.to_le_bytes()), counters }
}

fn items(list: impl IntoIterator<Item = u64>) -> Write {
    Write::Items { campaign: "c".into(), items: list.into_iter().map(done).collect() }
}

#[test]
fn full_disk_loses_nothing_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = fail::FailScenario::setup();
    let mut store = open(dir.path());
    store.commit(vec![campaign("c"), items(0..10)]).unwrap();
    fail::cfg(failpoints::APPEND_HALF, "1*return(ENOSPC)").unwrap();
    assert!(store.commit(vec![items(10..20)]).unwrap().reserve_used, "the reserve carries one commit");
    assert!(!dir.path().join("ballast").exists());
    fail::cfg(failpoints::APPEND_HALF, "return(ENOSPC)").unwrap();
    assert!(matches!(store.commit(vec![items(20..30)]), Err(StoreError::DiskFull)));
    fail::remove(failpoints::APPEND_HALF);
    store.commit(vec![items(30..40)]).unwrap();
    drop(store);
    scenario.teardown();
    assert_eq!(open(dir.path()).progress("c").unwrap().completed, [(0, 20), (30, 40)]);
    assert!(fsck(dir.path(), false).unwrap().problems.is_empty());
}
