//! Compaction of the log while commits go on.

use crate::common::{campaign, copy, finding, items, open, options};
use moire_corpus::*;
use std::fs;
use std::time::{Duration, Instant};

/// A store that compacts its log from 64 KiB on.
fn tidy(dir: &std::path::Path) -> Store {
    Store::open(dir, Options { tidy_bytes: 64 << 10, ..options() }).unwrap().0
}

/// Commits the same ten findings again and again.
fn churn(store: &mut Store, from: u64, to: u64) -> Duration {
    let mut longest = Duration::ZERO;
    for n in from..to {
        let large = Finding { witness: "w".repeat(4000), count: n, ..finding(n % 10) };
        let began = Instant::now();
        store.commit(vec![Write::Finding(Box::new(large)), items([n])]).unwrap();
        longest = longest.max(began.elapsed());
    }
    longest
}

#[test]
fn dead_records_go_while_commits_come() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = tidy(dir.path());
    store.commit(vec![campaign("c")]).unwrap();
    let (mut largest, mut last) = (0, store.stats().unwrap().generation);
    let mut generations = 0;
    for round in 0..100 {
        churn(&mut store, round * 20, (round + 1) * 20);
        let stats = store.stats().unwrap();
        largest = largest.max(stats.log_bytes);
        generations += u64::from(stats.generation != last);
        last = stats.generation;
    }
    // Eight megabytes were committed, forty kilobytes are live.
    assert!(generations >= 5, "{generations} new logs");
    assert!(store.stats().unwrap().log_bytes < 4 << 20 && largest < 6 << 20, "{largest}");
    // A copy made now is what a kill leaves: nothing acknowledged is missing, and nothing is said to be lost.
    let killed = tempfile::tempdir().unwrap();
    copy(dir.path(), killed.path());
    drop(store);
    for dir in [dir.path(), killed.path()] {
        let (store, recovery) = Store::open(dir, options()).unwrap();
        assert_eq!(recovery.lost, Vec::<String>::new());
        assert_eq!(store.progress("c").unwrap().completed, [(0, 2000)]);
        let counts: Vec<u64> =
            (0..10).map(|n| store.finding(&finding(n).id).unwrap().unwrap().count).collect();
        assert_eq!(counts, (1990..2000).collect::<Vec<_>>());
        assert!(!dir.join("findings.fresh").exists(), "nothing is left over");
        drop(store);
        assert_eq!(fsck(dir, false).unwrap().problems, Vec::<String>::new());
    }
}

/// Every copy of the folder between two commits holds all commits before it.
#[test]
fn a_kill_at_any_commit_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = tidy(dir.path());
    store.commit(vec![campaign("c")]).unwrap();
    for n in 0..120 {
        churn(&mut store, n, n + 1);
        let killed = tempfile::tempdir().unwrap();
        copy(dir.path(), killed.path());
        let _ = fs::remove_file(killed.path().join("index.clean"));
        let (after, recovery) = Store::open(killed.path(), options()).unwrap();
        assert_eq!(recovery.lost, Vec::<String>::new(), "commit {n}");
        assert_eq!(after.progress("c").unwrap().completed, [(0, n + 1)], "commit {n}");
    }
}

#[test]
fn a_new_log_under_way_is_given_up_for_a_compaction_and_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = tidy(dir.path());
    store.commit(vec![campaign("c")]).unwrap();
    churn(&mut store, 0, 40);
    store.compact().unwrap();
    churn(&mut store, 40, 80);
    drop(store);
    assert!(!dir.path().join("findings.fresh").exists());
    assert_eq!(open(dir.path()).progress("c").unwrap().completed, [(0, 80)]);
}
