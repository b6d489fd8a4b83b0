//! Damage to a log: what was lost is said at each opening until somebody acknowledges it, and put back from the index
//! where that still has it.

use crate::common::options;
use moire_corpus::*;
use std::fs;
use std::path::Path;

const LOG: &str = "findings.log";
const NAME: &str = "c";

fn campaign() -> Campaign {
    Campaign { name: NAME.to_owned(), epoch: 1, ..Campaign::default() }
}

fn finding(n: u8) -> Finding {
    Finding { id: Hash([n; 32]), reduced: format!("program {n}"), ..Finding::default() }
}

fn done(item: u64) -> ItemDone {
    let counters = Counters { programs: 1, executions: 2, ..Counters::default() };
    ItemDone { item, epoch: 1, digest: Hash::of(&item.to_le_bytes()), counters }
}

/// A store of four findings and 70 items, one commit each; its digest.
fn filled(dir: &Path) -> Hash {
    let (mut store, recovery) = Store::open(dir, options()).unwrap();
    assert_eq!((recovery.to_string(), store.losses().count()), (String::new(), 0));
    let name = NAME.to_owned();
    store.commit([Write::Campaign(Box::new(campaign()))]).unwrap();
    for n in 0..4 {
        let sighting = Write::Sighting { campaign: name.clone(), item: n.into(), finding: finding(n).id };
        store.commit([Write::Finding(Box::new(finding(n))), sighting]).unwrap();
    }
    for item in 0..70 {
        store.commit([Write::Items { campaign: name.clone(), items: vec![done(item)] }]).unwrap();
    }
    store.digest(&name).unwrap()
}

/// Closes a store as a killed process leaves it: without the marker of its index.
fn killed(dir: &Path) {
    fs::remove_file(dir.join("index.clean")).unwrap();
}

type Damage = (&'static str, fn(&Path));

/// What was done to the log of the attacks.
const DAMAGES: [Damage; 6] = [
    ("a flipped byte in the commit of a finding", |log| {
        let mut bytes = fs::read(log).unwrap();
        let at = bytes.windows(9).position(|w| w == b"program 2").unwrap();
        bytes[at] ^= 1;
        fs::write(log, bytes).unwrap();
    }),
    ("a flipped byte in the last commit", |log| {
        let mut bytes = fs::read(log).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(log, bytes).unwrap();
    }),
    ("cut inside a commit", |log| {
        let bytes = fs::read(log).unwrap();
        fs::write(log, &bytes[..bytes.len() - 7]).unwrap();
    }),
    ("cut in half", |log| {
        let bytes = fs::read(log).unwrap();
        fs::write(log, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("zeroed", |log| {
        let bytes = fs::read(log).unwrap();
        fs::write(log, vec![0; bytes.len()]).unwrap();
    }),
    ("deleted", |log| fs::remove_file(log).unwrap()),
];

#[test]
fn a_loss_is_said_until_it_is_acknowledged() {
    for (what, damage) in DAMAGES {
        for kill in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            filled(dir.path());
            if kill {
                killed(dir.path());
            }
            damage(&dir.path().join(LOG));
            let before = fsck(dir.path(), false).unwrap();
            assert!(!before.problems.is_empty(), "{what}, killed: {kill}");
            let (store, recovery) = Store::open(dir.path(), options()).unwrap();
            assert_eq!(recovery.lost.len(), 1, "{what}, killed: {kill}: {recovery:?}");
            assert!(recovery.to_string().starts_with("LOST: "), "{recovery}");
            assert_eq!(store.losses().count(), 1, "{what}, killed: {kill}");
            drop(store);
            let report = fsck(dir.path(), false).unwrap();
            assert!(report.problems[0].contains("not acknowledged"), "{what}: {:?}", report.problems);
            let (mut store, recovery) = Store::open(dir.path(), options()).unwrap();
            assert_eq!((recovery.lost.len(), store.losses().count()), (0, 1), "{what}: the list keeps it");
            let copy = tempfile::tempdir().unwrap();
            backup(&store, copy.path()).unwrap();
            assert_eq!(
                Store::open(copy.path(), options()).unwrap().0.losses().count(),
                1,
                "{what}: the backup too"
            );
            assert_eq!(store.acknowledge("me", "the disk is old").unwrap(), 1);
            drop(store);
            assert_eq!(fsck(dir.path(), false).unwrap().problems, Vec::<String>::new(), "{what}");
            assert_eq!(Store::open(dir.path(), options()).unwrap().0.losses().count(), 0);
        }
    }
}

#[test]
fn a_log_cut_between_two_commits_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let log = dir.path().join(LOG);
    let bytes = fs::read(&log).unwrap();
    let last = bytes.windows(4).rposition(|w| w == b"MoFr").unwrap();
    for kill in [false, true] {
        if kill {
            killed(dir.path());
        }
        fs::write(&log, &bytes[..last]).unwrap();
        let (store, recovery) = Store::open(dir.path(), options()).unwrap();
        assert_eq!(recovery.lost, ["the log was cut: 1 of 75 commits are missing"]);
        drop(store);
        fs::write(&log, &bytes).unwrap();
        drop(Store::open(dir.path(), options()).unwrap());
    }
}

#[test]
fn a_commit_that_was_never_acknowledged_is_no_loss() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    killed(dir.path());
    let log = dir.path().join(LOG);
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend_from_slice(b"MoFr\x40\0\0\0half of it");
    fs::write(&log, bytes).unwrap();
    let (store, recovery) = Store::open(dir.path(), options()).unwrap();
    assert_eq!((recovery.torn_bytes, store.losses().count()), (18, 0));
    assert!(recovery.to_string().contains("not acknowledged"), "{recovery}");
}

#[test]
fn an_index_that_is_whole_gives_back_what_the_log_lost() {
    for (what, damage) in DAMAGES {
        for kill in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let digest = filled(dir.path());
            if kill {
                killed(dir.path());
            }
            damage(&dir.path().join(LOG));
            let (mut store, _) = Store::open(dir.path(), options()).unwrap();
            let restored = restore(&mut store, None).unwrap();
            assert!(!restored.records.is_empty() && restored.unreadable == 0, "{what}: {restored:?}");
            let name = NAME.to_owned();
            assert_eq!(store.digest(&name).unwrap(), digest, "{what}, killed: {kill}");
            assert_eq!(store.findings().count(), 4, "{what}, killed: {kill}");
            let progress = store.progress(&name).unwrap();
            assert_eq!(
                (progress.completed.as_slice(), progress.counters.executions),
                (&[(0, 70)][..], 140),
                "{what}"
            );
            let again = restore(&mut store, None).unwrap();
            assert!(again.records.is_empty(), "{what}: done twice: {again:?}");
            drop(store);
            let (store, recovery) = Store::open(dir.path(), options()).unwrap();
            assert_eq!((store.digest(&name).unwrap(), recovery.lost.len()), (digest, 0), "{what}");
            assert_eq!(store.losses().count(), 1, "it is for an operator to say that all is well");
        }
    }
}

/// What came after the loss is not undone by what was there before it.
#[test]
fn what_the_store_has_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let before = filled(dir.path());
    fs::remove_file(dir.path().join(LOG)).unwrap();
    let name = NAME.to_owned();
    let (mut store, _) = Store::open(dir.path(), options()).unwrap();
    let later = Campaign { epoch: 9, ..campaign() };
    let marked = Finding { reduced: "another text".to_owned(), ..finding(1) };
    store.commit([Write::Campaign(Box::new(later)), Write::Finding(Box::new(marked))]).unwrap();
    store.commit([Write::Items { campaign: name.clone(), items: (60..80).map(done).collect() }]).unwrap();
    restore(&mut store, None).unwrap();
    assert_eq!(store.campaign(&name).unwrap().unwrap().epoch, 9);
    assert_eq!(store.finding(&finding(1).id).unwrap().unwrap().reduced, "another text");
    assert_eq!(store.findings().count(), 4);
    assert_eq!(store.progress(&name).unwrap().completed, [(0, 80)]);
    assert_ne!(store.digest(&name).unwrap(), before);
    assert!(restore(&mut store, Some(Path::new("/nowhere"))).is_err());
}
