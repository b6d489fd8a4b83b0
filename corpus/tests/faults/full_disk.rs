//! A full disk, injected.

use crate::common::{campaign, items, open};
use moire_corpus::*;

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
    // Now the index: the batch is in the log, and the index is built anew without the reserve.
    fail::cfg(failpoints::APPLY_BEFORE, "1*return(ENOSPC)").unwrap();
    assert!(store.commit(vec![items(50..60)]).unwrap().reserve_used);
    assert!(!dir.path().join("ballast").exists());
    fail::remove(failpoints::APPLY_BEFORE);
    store.commit(vec![items(30..40)]).unwrap();
    drop(store);
    assert_eq!(open(dir.path()).progress("c").unwrap().completed, [(0, 20), (30, 40), (50, 60)]);
    assert!(fsck(dir.path(), false).unwrap().problems.is_empty());
    scenario.teardown();
}
