//! One store, one process, also where somebody removes the lock file or puts another log in place.

use crate::common::{campaign, finding, open, options, three_commits, tree};
use moire_corpus::*;
use std::fs;
use std::io::Write as _;

#[test]
fn without_its_lock_file_a_store_is_still_locked() {
    let dir = tempfile::tempdir().unwrap();
    three_commits(dir.path());
    let mut first = open(dir.path());
    fs::remove_file(dir.path().join("LOCK")).unwrap();
    let refused = Store::open(dir.path(), options()).err().map(|e| e.to_string());
    assert!(refused.as_ref().is_some_and(|why| why.contains("is in use by another process")), "{refused:?}");
    first.commit(vec![Write::Finding(Box::new(finding(3)))]).unwrap();
    drop(first);
    assert_eq!(open(dir.path()).findings().count(), 3);
}

#[test]
fn a_log_that_is_compacted_is_locked_again() {
    let dir = tempfile::tempdir().unwrap();
    three_commits(dir.path());
    let mut first = open(dir.path());
    first.compact().unwrap();
    fs::remove_file(dir.path().join("LOCK")).unwrap();
    assert!(Store::open(dir.path(), options()).is_err());
    first.commit(vec![Write::Finding(Box::new(finding(3)))]).unwrap();
}

#[test]
fn who_finds_another_log_in_place_writes_nothing_more() {
    let change: [(&str, &dyn Fn(&std::path::Path)); 3] = [
        ("replaced", &|log| {
            let copy = log.with_extension("copy");
            fs::copy(log, &copy).unwrap();
            fs::rename(copy, log).unwrap();
        }),
        ("removed", &|log| fs::remove_file(log).unwrap()),
        ("written by another", &|log| {
            let mut file = fs::OpenOptions::new().append(true).open(log).unwrap();
            file.write_all(b"a commit of another process").unwrap();
        }),
    ];
    for (name, change) in change {
        let dir = tempfile::tempdir().unwrap();
        three_commits(dir.path());
        let mut store = open(dir.path());
        change(&dir.path().join("findings.log"));
        let before = tree(dir.path()).remove(std::path::Path::new("findings.log"));
        let refused = store.commit(vec![campaign("d")]).err().map(|e| e.to_string());
        assert!(
            refused.as_ref().is_some_and(|why| why.contains("taken the store over")),
            "{name}: {refused:?}"
        );
        assert!(store.commit(vec![campaign("d")]).is_err(), "{name}: it stays so");
        let after = tree(dir.path()).remove(std::path::Path::new("findings.log"));
        assert_eq!(before, after, "{name}: what is there is left alone");
    }
}
