//! Behaviour of the store without crashes: reopening, duplicates, refusals, export, damage.

use crate::common::{campaign, done, finding, items, open, options, three_commits};
use moire_corpus::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

#[test]
fn records_survive_reopening_with_and_without_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    store.commit(vec![campaign("c"), Write::Finding(Box::new(finding(1))), items(0..200)]).unwrap();
    let digest = store.digest("c").unwrap();
    drop(store);
    let (store, recovery) = Store::open(dir.path(), options()).unwrap();
    assert_eq!(recovery, Recovery { commits: 1, ..Recovery::default() });
    assert_eq!(store.digest("c").unwrap(), digest);
    drop(store);
    fs::remove_file(dir.path().join("index.clean")).unwrap();
    let (store, recovery) = Store::open(dir.path(), options()).unwrap();
    assert!(recovery.rebuilt);
    assert_eq!(store.digest("c").unwrap(), digest);
    assert_eq!(store.finding(&finding(1).id).unwrap(), Some(finding(1)));
    assert_eq!(store.progress("c").unwrap().completed, [(0, 200)]);
}

#[test]
fn digest_ignores_order_and_repetition() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut a, mut b) = (open(a.path()), open(b.path()));
    let sight = |n, item| Write::Sighting { campaign: "c".into(), item, finding: finding(n).id };
    a.commit(vec![campaign("c"), items(0..300), sight(1, 5), sight(2, 9)]).unwrap();
    b.commit(vec![campaign("c"), sight(2, 9), items(200..300)]).unwrap();
    let receipt = b.commit(vec![items((0..250).rev()), sight(2, 9), sight(1, 5), sight(1, 5)]).unwrap();
    assert_eq!((receipt.items, receipt.duplicates, receipt.conflicts.len()), (200, 50, 0));
    assert_eq!(a.digest("c").unwrap(), b.digest("c").unwrap());
    assert_eq!(a.progress("c").unwrap(), b.progress("c").unwrap());
    let other = ItemDone { digest: Hash::of(b"x"), ..done(3) };
    let conflict = b.commit(vec![Write::Items { campaign: "c".into(), items: vec![other] }]).unwrap();
    assert_eq!(conflict.conflicts[0].item, 3);
    assert_eq!(a.digest("c").unwrap(), b.digest("c").unwrap());
}

#[test]
fn an_exploration_is_kept_until_it_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let exploration = Exploration { program: "p".into(), tree: "t".into(), ..Exploration::default() };
    let (id, explored) = (exploration.id(), Explored { complete: 3, epoch: 2, ..Explored::default() });
    let stretch = |behind: &[u32]| Stretch { behind: behind.to_vec(), until: vec![4, 1] };
    let piece = |number, piece| Write::Piece { id, number, piece };
    let mark = |path| Write::Mark { id, name: "a \u{e9}".into(), path };
    let writes = vec![
        Write::Exploration { id, exploration: Some(Box::new(exploration.clone())) },
        Write::Explored { id, explored: Box::new(explored.clone()) },
        piece(0, Some(stretch(&[1]))),
        piece(300, Some(stretch(&[]))),
        mark(Some(vec![0, 2])),
    ];
    store.commit(writes).unwrap();
    store.commit(vec![piece(0, None)]).unwrap();
    drop(store);
    assert_eq!(fsck(dir.path(), false).unwrap().problems, [""; 0]);
    let mut store = open(dir.path());
    let pieces = BTreeMap::from([(300, stretch(&[]))]);
    let marks = BTreeMap::from([("a \u{e9}".to_owned(), vec![0, 2])]);
    let kept = Stored { exploration, explored, pieces, marks };
    let (stored, faults) = store.explorations().unwrap();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(stored, BTreeMap::from([(id, kept)]));
    store.commit(vec![Write::Exploration { id, exploration: None }, piece(300, None), mark(None)]).unwrap();
    assert_eq!(store.explorations().unwrap().0, BTreeMap::new());
    assert_eq!(store.stats().unwrap().records.get("explorations"), None);
}

#[test]
fn second_opening_is_refused_with_the_pid() {
    let dir = tempfile::tempdir().unwrap();
    let _store = open(dir.path());
    let error = Store::open(dir.path(), options()).err().unwrap();
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    assert!(matches!(fsck(dir.path(), false), Err(OpenError::Locked { .. })));
}

/// As after a kill, or when a process forked at the wrong moment still shares the file.
#[test]
fn a_lock_about_to_go_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    for (name, shared) in [("LOCK", false), ("LOCK", true), ("index/db", false)] {
        let held = fs::OpenOptions::new().read(true).write(true).open(dir.path().join(name)).unwrap();
        if shared {
            held.lock_shared().unwrap()
        } else {
            held.lock().unwrap()
        }
        let leaves = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(held);
        });
        let (store, recovery) = Store::open(dir.path(), options()).unwrap();
        assert!(!recovery.rebuilt && recovery.moved_aside.is_empty(), "{name}: {recovery:?}");
        drop(store);
        leaves.join().unwrap();
    }
}

#[test]
fn newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    fs::write(dir.path().join("FORMAT"), "moire-store 2\n").unwrap();
    let error = Store::open(dir.path(), options()).err().unwrap();
    assert!(error.to_string().contains("format 2, this version knows 1"), "{error}");
}

#[test]
fn a_snapshot_of_many_findings_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let id = |n: u32| moire_corpus::Hash::of(&n.to_le_bytes());
    let findings = (0..90_000).map(|n| (id(n), moire_corpus::FindingState::Open)).collect();
    let snapshot = Snapshot { at_ms: 5, findings, ..Snapshot::default() };
    store.save_snapshot(&snapshot).unwrap();
    assert_eq!(store.last_snapshot().unwrap().unwrap(), snapshot);
    assert_eq!(store.stats().unwrap().bundles, 3);
    drop(store);
    assert_eq!(moire_corpus::fsck(dir.path(), false).unwrap().problems, Vec::<String>::new());
}

#[test]
fn states_are_counted_in_slices() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    store.commit((0..10).map(|n| Write::Finding(Box::new(finding(n)))).collect::<Vec<_>>()).unwrap();
    let (mut sum, mut behind) = (0, None);
    loop {
        let (states, last) = store.finding_states(behind.as_ref(), 3).unwrap();
        sum += states.values().sum::<u64>();
        match last {
            Some(last) => behind = Some(last),
            None => break,
        }
    }
    assert_eq!(sum, 10);
}

#[test]
fn export_import_export_is_the_identity() {
    let (a, b, out) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = open(a.path());
    store.commit(vec![campaign("c"), Write::Finding(Box::new(finding(1))), items(0..70)]).unwrap();
    store.put_bundle(b"\xff not text").unwrap();
    store.save_snapshot(&Snapshot { at_ms: 5, ..Snapshot::default() }).unwrap();
    moire_corpus::export(&store, &out.path().join("one")).unwrap();
    import(&out.path().join("one"), b.path()).unwrap();
    let copy = open(b.path());
    moire_corpus::export(&copy, &out.path().join("two")).unwrap();
    let (one, two) = (fs::read(out.path().join("one")).unwrap(), fs::read(out.path().join("two")).unwrap());
    assert_eq!(one, two);
    assert_eq!(copy.last_snapshot().unwrap().unwrap().at_ms, 5);
    moire_corpus::backup(&store, &out.path().join("backup")).unwrap();
    assert_eq!(open(&out.path().join("backup")).digest("c").unwrap(), store.digest("c").unwrap());
    for cut in [1, one.len() / 2, one.len() - 1] {
        fs::write(out.path().join("cut"), &one[..cut]).unwrap();
        assert!(import(&out.path().join("cut"), &out.path().join("none")).is_err());
        assert!(!out.path().join("none").exists(), "nothing is written from a damaged export");
    }
}

#[test]
fn limits_and_names_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    assert!(store.commit(vec![campaign("../x")]).is_err());
    assert!(store.commit(vec![items(0..1)]).is_err(), "no such campaign");
    let big = Finding { reduced: "x".repeat(VALUE_BYTES_MAX), ..finding(1) };
    assert!(matches!(store.commit(vec![Write::Finding(Box::new(big))]), Err(StoreError::TooLarge { .. })));
    assert_eq!(store.findings().count(), 0);
}

#[test]
fn bundles_are_read_with_suspicion() {
    let bundle = bundle::Bundle { program: "p".into(), ..bundle::Bundle::default() };
    let bytes = bundle::write(&bundle).unwrap();
    assert_eq!(bundle::read(&bytes).unwrap(), bundle);
    let newer = String::from_utf8(bytes.clone()).unwrap().replace("\"version\": 1", "\"version\": 9");
    assert!(matches!(bundle::read(newer.as_bytes()), Err(bundle::BundleError::Newer(9))));
    for bad in [&b""[..], b"\xff\xfe", b"{}", &b"[".repeat(100_000), &bytes[..bytes.len() / 2]] {
        assert!(bundle::read(bad).is_err());
    }
    assert!(matches!(
        bundle::read(&vec![b' '; bundle::BYTES_MAX + 1]),
        Err(bundle::BundleError::Limit { .. })
    ));
}

#[test]
fn findings_are_marked_by_a_prefix_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let all: Vec<Finding> = (1..4).map(finding).collect();
    store.commit(all.iter().map(|f| Write::Finding(Box::new(f.clone()))).collect::<Vec<_>>()).unwrap();
    let id = |n: usize| all[n].id.to_string();
    let says = |result: Result<Finding, MarkError>, text: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    says(store.mark(9, "1234", &Mark::Fixed, "p", "w"), "at least eight");
    says(store.mark(9, "0123456789", &Mark::Fixed, "p", "w"), "no finding starts");
    says(store.mark(9, &id(0), &Mark::Fixed, "p", " \n"), "say why");
    says(store.mark(9, &id(0), &Mark::Suppress { until_ms: 9 }, "p", "w"), "future");
    says(store.mark(9, &id(0), &Mark::Suppress { until_ms: 10 }, "", "w"), "who answers");
    says(store.mark(9, &id(0), &Mark::Duplicate(id(0)), "p", "w"), "of itself");
    assert!("fixd".parse::<Mark>().is_err());
    let duplicate = |n| Mark::Duplicate(id(n)[..9].to_owned());
    store.mark(9, &id(0)[..8], &duplicate(1), "p", "the same").unwrap();
    store.mark(9, &id(2)[..11], &duplicate(0), "p", "the same").unwrap();
    says(store.mark(9, &id(1), &duplicate(2), "p", "a ring"), "of itself");
    store.mark(9, &id(1), &Mark::Suppress { until_ms: 20 }, "p", "known").unwrap();
    drop(store);
    let store = open(dir.path());
    let read = |n: usize| store.named(&id(n)).unwrap();
    assert_eq!(read(2).state, FindingState::Duplicate(all[1].id), "of what the other is a duplicate of");
    assert_eq!(read(1).suppression(19).map(|s| s.owner.as_str()), Some("p"));
    assert_eq!(read(1).suppression(20), None);
    let mut ids: Vec<_> = all.iter().map(|f| f.id).collect();
    ids.sort();
    let behind =
        |id: Option<&FindingId>| store.findings_behind(id).map(|f| f.unwrap().id).collect::<Vec<_>>();
    assert_eq!(
        (behind(None), behind(Some(&ids[0])), behind(Some(&ids[2]))),
        (ids.clone(), ids[1..].to_vec(), vec![])
    );
}

#[test]
fn damage_in_the_log_costs_only_the_damaged_commit() {
    let dir = tempfile::tempdir().unwrap();
    three_commits(dir.path());
    let path = dir.path().join("findings.log");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(9).position(|w| w == b"program 1").unwrap();
    bytes[at] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(fsck(dir.path(), false).unwrap().problems.len(), 2, "the place, and what is lost");
    let (store, recovery) = Store::open(dir.path(), options()).unwrap();
    assert_eq!((recovery.damaged, recovery.commits), (1, 2));
    assert!(
        recovery.moved_aside.iter().any(|p| fs::read(p).is_ok_and(|b| b == bytes)),
        "the damaged log is kept"
    );
    assert_eq!(store.findings().map(|f| f.unwrap().count).collect::<Vec<_>>(), [2]);
}

#[derive(Clone, Debug)]
enum Step {
    Finding(u8, u8),
    Items(u8, u8),
    Reboot,
    LoseIndex,
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Step::Finding(a % 16, b)),
        4 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Step::Items(a, b % 20)),
        1 => Just(Step::Reboot),
        1 => Just(Step::LoseIndex),
        1 => Just(Step::Compact),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_a_map(steps in proptest::collection::vec(step(), 1..25)) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Some(open(dir.path()));
        store.as_mut().unwrap().commit(vec![campaign("c")]).unwrap();
        let (mut findings, mut finished) = (BTreeMap::new(), BTreeSet::new());
        for step in steps {
            let live = store.as_mut().unwrap();
            match step {
                Step::Finding(n, count) => {
                    let finding = Finding { count: count.into(), ..finding(n.into()) };
                    live.commit(vec![Write::Finding(Box::new(finding.clone()))]).unwrap();
                    findings.insert(finding.id, finding);
                }
                Step::Items(from, len) => {
                    let range = u64::from(from)..u64::from(from) + u64::from(len);
                    live.commit(vec![items(range.clone())]).unwrap();
                    finished.extend(range);
                }
                Step::Compact => drop(live.compact().unwrap()),
                Step::Reboot | Step::LoseIndex => {
                    drop(store.take());
                    if matches!(step, Step::LoseIndex) {
                        fs::remove_dir_all(dir.path().join("index")).unwrap();
                    }
                    store = Some(open(dir.path()));
                }
            }
            let live = store.as_ref().unwrap();
            let stored: Vec<_> = live.findings().map(|f| f.unwrap()).collect();
            prop_assert_eq!(&stored, &findings.values().cloned().collect::<Vec<_>>());
            let progress = live.progress("c").unwrap();
            prop_assert_eq!(progress.done(), finished.len() as u64);
            prop_assert!(finished.iter().all(|i| progress.contains(*i)));
            prop_assert_eq!(progress.counters.executions, finished.iter().sum::<u64>());
        }
    }

    #[test]
    fn damaged_bytes_never_panic(file in 0usize..6, at in any::<prop::sample::Index>(), flip in 1u8..) {
        let dir = tempfile::tempdir().unwrap();
        three_commits(dir.path());
        let name = ["findings.log", "FORMAT", "index.clean", "index/db", "index/conf", "LOCK"][file];
        let path = dir.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        fs::write(&path, &bytes).unwrap();
        let _ = fsck(dir.path(), false);
        match Store::open(dir.path(), options()) {
            Ok((store, recovery)) => {
                let found = store.findings().filter(Result::is_ok).count();
                prop_assert!(found + usize::try_from(recovery.damaged).unwrap() + usize::from(recovery.torn_bytes > 0) >= 2);
            }
            Err(OpenError::Newer { .. }) => prop_assert_eq!(name, "FORMAT"),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn garbage_is_no_log(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("findings.log"), &bytes).unwrap();
        prop_assert_eq!(scan_log(&bytes), 0);
        let (store, recovery) = Store::open(dir.path(), options()).unwrap();
        prop_assert_eq!(store.findings().count(), 0);
        let kept = recovery.moved_aside.iter().any(|p| fs::read(p).unwrap() == bytes);
        prop_assert!(kept, "the bytes are kept");
    }
}
