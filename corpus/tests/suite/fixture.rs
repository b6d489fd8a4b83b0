//! Format version 1 as data: a store and its export, checked in, that every later version must read.
//!
//! When the format changes, these files stay and files of the new version join them. `MOIRE_WRITE_FIXTURE=1`
//! writes them; today's writer must still make the same bytes.

use crate::common::{copy, options, tree};
use moire_corpus::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const DIGEST: &str = "cd4ff9d4503a0f8c841711b81981f5d3d62e9a7b33faaedab0cd665cfbe81084";
const BUNDLE: &str = "2e5bebd8fbad0e04c0fb715a65577de9f3a04bd5834104d81619797fbef16738";

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn model() -> ModelRef {
    let variants = BTreeMap::from([("q3".to_owned(), "B".to_owned())]);
    ModelRef { name: "ptx".into(), variants, fingerprint: Hash::of(b"ptx") }
}

fn campaign() -> Campaign {
    Campaign {
        name: "nightly-1".into(),
        seed: 42,
        generator: "g1".into(),
        profile: "default".into(),
        models: vec![model()],
        oracles: vec!["self".into(), "model-pair".into()],
        needs: Vec::new(),
        canaries: true,
        limits: CampaignLimits { programs: Some(1000), findings: None },
        priority: 3,
        state: CampaignState::Paused,
        epoch: 5,
        created_ms: 1_700_000_000_000,
    }
}

fn bundle() -> bundle::Bundle {
    let text = bundle::ModelText { name: "ptx".into(), text: "acyclic po | rf".into(), ..Default::default() };
    bundle::Bundle { program: "program text".into(), models: vec![text], ..bundle::Bundle::default() }
}

fn finding() -> Finding {
    let axioms = vec![vec!["Causality".to_owned()], vec!["SC".to_owned(), "Atomicity".to_owned()]];
    let mut finding = Finding {
        id: Finding::dedupe_id("self", &axioms, &Hash::of(b"program")),
        campaign: "nightly-1".into(),
        oracle: "self".into(),
        rule: "equal".into(),
        models: vec![model()],
        reduced: "reduced \u{2192} text\n".into(),
        original: "original".into(),
        provenance: Provenance { generator: "g1".into(), seed: 42, index: 69 },
        witness: "rf: 0.1 -> 1.0".into(),
        axioms,
        verdict: "discrepancy".into(),
        verified: Verified::Itself,
        first_seen_ms: 1,
        last_seen_ms: 2,
        last_tested_ms: 3,
        count: 4,
        bundle: Some(BUNDLE.parse().unwrap()),
        replay: "m1abc".into(),
        ..Finding::default()
    };
    finding.change(7, FindingState::Fixed, "a person", "a reason");
    finding.change(8, FindingState::Reopened, "coordinator", "seen again");
    finding
}

fn duplicate() -> Finding {
    let state = FindingState::Duplicate(finding().id);
    Finding { id: Hash::of(b"2"), state, verified: Verified::Other, ..Finding::default() }
}

fn regression() -> Regression {
    let finding = Some(finding().id);
    Regression { program: Hash::of(b"program"), text: "text".into(), finding, expected: "clean".into() }
}

fn items(range: std::ops::Range<u64>) -> Write {
    let counters = |item| Counters {
        programs: 1,
        executions: item,
        abstentions: BTreeMap::from([("wild address".to_owned(), item % 2)]),
        canaries: BTreeMap::from([("drop-fence".to_owned(), 1)]),
        ..Counters::default()
    };
    let done = |item: u64| ItemDone {
        item,
        epoch: 5,
        digest: Hash::of(&item.to_le_bytes()),
        counters: counters(item),
    };
    Write::Items { campaign: "nightly-1".into(), items: range.map(done).collect() }
}

fn snapshot() -> Snapshot {
    let findings = BTreeMap::from([(finding().id, FindingState::Reopened)]);
    Snapshot { at_ms: 9, findings, ..Snapshot::default() }
}

/// The records of the fixture.
fn fill(dir: &Path) -> Store {
    let mut store = Store::open(dir, options()).unwrap().0;
    store.commit(vec![Write::Campaign(Box::new(campaign())), items(0..3)]).unwrap();
    store.put_bundle(&bundle::write(&bundle()).unwrap()).unwrap();
    let sighting = |item| Write::Sighting { campaign: "nightly-1".into(), item, finding: finding().id };
    let findings = [finding(), duplicate()].map(|f| Write::Finding(Box::new(f)));
    store.commit(findings.into_iter().chain([sighting(69), sighting(1)]).collect::<Vec<_>>()).unwrap();
    store.commit(vec![items(69..71), Write::Regression(Box::new(regression()))]).unwrap();
    store.save_snapshot(&snapshot()).unwrap();
    store
}

/// The files that are checked in: no index, no lock, no reserve.
fn kept(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let keep = |p: &PathBuf| p.starts_with("bundles") || p.ends_with("FORMAT") || p.ends_with("findings.log");
    tree(dir).into_iter().filter(|(path, _)| keep(path)).collect()
}

fn check(store: &Store) {
    assert_eq!(store.campaigns().unwrap(), [campaign()]);
    let mut findings = [finding(), duplicate()];
    findings.sort_by_key(|f| f.id);
    assert_eq!(store.findings().map(|f| f.unwrap()).collect::<Vec<_>>(), findings);
    assert_eq!(store.finding(&finding().id).unwrap(), Some(finding()));
    let id = finding().id;
    assert_eq!(store.sightings("nightly-1").unwrap(), [(id, 1), (id, 69)]);
    assert_eq!(store.regressions().map(|r| r.unwrap()).collect::<Vec<_>>(), [regression()]);
    let progress = store.progress("nightly-1").unwrap();
    assert_eq!(progress.completed, [(0, 3), (69, 71)]);
    assert_eq!(progress.counters.executions, 1 + 2 + 69 + 70);
    assert_eq!(progress.counters.abstentions["wild address"], 2);
    assert_eq!(store.last_snapshot().unwrap(), Some(snapshot()));
    let bytes = store.bundle(&BUNDLE.parse().unwrap()).unwrap().unwrap();
    assert_eq!(bundle::read(&bytes).unwrap(), bundle());
    assert_eq!(store.digest("nightly-1").unwrap().to_string(), DIGEST);
}

#[test]
fn version_1_is_read() {
    let dir = tempfile::tempdir().unwrap();
    copy(&data().join("v1"), dir.path());
    let (store, recovery) = Store::open(dir.path(), options()).unwrap();
    let expected = Recovery { commits: 4, rebuilt: true, ..Recovery::default() };
    assert_eq!(recovery, expected);
    check(&store);
}

/// The store of an earlier release, cut short or with one bit flipped. This release opens it, finds everything before the
/// damage and nothing that was not written, and has nothing to repair the second time.
#[test]
fn version_1_with_damage_is_repaired() {
    let log = fs::read(data().join("v1/findings.log")).unwrap();
    let all = [finding(), duplicate()];
    for step in 0..48 {
        let at = log.len() * step / 48;
        let mut damaged = log.clone();
        match step % 2 {
            0 => damaged.truncate(at),
            _ => damaged[at] ^= 1 << (step % 8),
        }
        let dir = tempfile::tempdir().unwrap();
        copy(&data().join("v1"), dir.path());
        fs::write(dir.path().join("findings.log"), &damaged).unwrap();
        let (store, recovery) = Store::open(dir.path(), options()).unwrap();
        assert!(recovery.commits <= 4, "{at}");
        assert!(store.findings().all(|f| all.contains(&f.unwrap())), "{at}");
        let done = store.progress("nightly-1").unwrap().done();
        let items = [0, 3, 5];
        assert!(items.contains(&done) || recovery.damaged > 0, "{at}: {done} items");
        drop(store);
        let (_, again) = Store::open(dir.path(), options()).unwrap();
        assert_eq!(again, Recovery { commits: recovery.commits, ..Recovery::default() }, "{at}");
    }
}

#[test]
fn a_torn_snapshot_is_named_and_the_next_one_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    copy(&data().join("v1"), dir.path());
    let mut store = Store::open(dir.path(), options()).unwrap().0;
    let content = serde_json::to_vec(&snapshot()).unwrap();
    let hash = Hash::of(&content).to_string();
    let path = dir.path().join("bundles").join(&hash[..2]).join(&hash);
    fs::write(&path, &content[..content.len() / 2]).unwrap();
    let error = store.last_snapshot().unwrap_err().to_string();
    assert!(error.contains(&hash), "{error}");
    let next = Snapshot { at_ms: 10, ..snapshot() };
    store.save_snapshot(&next).unwrap();
    assert_eq!(store.last_snapshot().unwrap(), Some(next));
    drop(store);
    let report = fsck(dir.path(), true).unwrap();
    assert!(!report.problems.is_empty() && report.problems.iter().all(|p| p.contains(&hash)), "{report:?}");
    let store = Store::open(dir.path(), options()).unwrap().0;
    assert_eq!(store.last_snapshot().unwrap().unwrap().at_ms, 10);
    assert_eq!(store.digest("nightly-1").unwrap().to_string(), DIGEST);
}

/// Fields that were added later are written only if their value is not the default.
#[test]
fn later_fields_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let later = Campaign { needs: vec!["sm_100a".into()], canaries: false, ..campaign() };
    let mut store = Store::open(dir.path(), options()).unwrap().0;
    store.commit(vec![Write::Campaign(Box::new(later.clone()))]).unwrap();
    assert_eq!(store.campaigns().unwrap(), [later]);
}

/// A store of format 1 with what its records hold since findings have a longer life, see `write_life`.
fn life() -> (Vec<Finding>, ItemDone) {
    let mut suppressed = finding();
    suppressed.suppressed =
        Some(Suppression { owner: "a person".into(), why: "known".into(), since_ms: 8, until_ms: 99 });
    let silent = "this needs a tool".to_owned();
    suppressed.retest = Some(Retest { at_ms: 9, seen: 2, held: 1, silent: 1, reason: silent });
    let mut fixed = Finding { id: Hash::of(b"3"), ..Finding::default() };
    fixed.retested(Retest { at_ms: 9, held: 3, ..Retest::default() });
    let mutants = BTreeMap::from([("drop/race".to_owned(), 2)]);
    let counters = Counters { programs: 1, mutants, ..Counters::default() };
    let mut findings = vec![suppressed, fixed];
    findings.sort_by_key(|f| f.id);
    (findings, ItemDone { item: 7, epoch: 5, digest: Hash::of(b"7"), counters })
}

fn write_life(dir: &Path) {
    let mut store = Store::open(dir, options()).unwrap().0;
    let (findings, item) = life();
    let items = Write::Items { campaign: "nightly-1".into(), items: vec![item] };
    store.commit(vec![Write::Campaign(Box::new(campaign())), items]).unwrap();
    store.commit(findings.into_iter().map(|f| Write::Finding(Box::new(f))).collect::<Vec<_>>()).unwrap();
    store.save_snapshot(&Snapshot::of(9, &life().0, Counters::default())).unwrap();
}

/// As `version_1_is_read` and `todays_writer_makes_version_1`, for the fields that came with the life cycle.
#[test]
fn the_life_of_findings_is_read_and_written() {
    let fresh = tempfile::tempdir().unwrap();
    write_life(fresh.path());
    let stored = data().join("v1-life");
    if std::env::var_os("MOIRE_WRITE_FIXTURE").is_some() {
        for (name, bytes) in kept(fresh.path()) {
            fs::create_dir_all(stored.join(&name).parent().unwrap()).unwrap();
            fs::write(stored.join(name), bytes).unwrap();
        }
    }
    assert_eq!(kept(fresh.path()), kept(&stored));
    let dir = tempfile::tempdir().unwrap();
    copy(&stored, dir.path());
    let store = Store::open(dir.path(), options()).unwrap().0;
    let (findings, item) = life();
    assert_eq!(store.findings().map(|f| f.unwrap()).collect::<Vec<_>>(), findings);
    assert_eq!(store.progress("nightly-1").unwrap().counters, item.counters);
    assert_eq!(store.last_snapshot().unwrap().unwrap().findings.len(), 1, "one of them was open");
}

#[test]
fn version_1_is_sound_and_checking_it_changes_nothing() {
    let before = tree(&data().join("v1"));
    let report = fsck(&data().join("v1"), false).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!((report.commits, report.bundles), (4, 2));
    assert_eq!(report.records["findings"], 2);
    assert_eq!(tree(&data().join("v1")), before);
}

#[test]
fn version_1_of_the_export_is_read_and_written() {
    let dir = tempfile::tempdir().unwrap();
    import(&data().join("v1.jsonl"), &dir.path().join("store")).unwrap();
    let store = Store::open(&dir.path().join("store"), options()).unwrap().0;
    check(&store);
    moire_corpus::export(&store, &dir.path().join("again.jsonl")).unwrap();
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(read(&dir.path().join("again.jsonl")), read(&data().join("v1.jsonl")));
}

#[test]
fn todays_writer_makes_version_1() {
    let dir = tempfile::tempdir().unwrap();
    let store = fill(dir.path());
    if std::env::var_os("MOIRE_WRITE_FIXTURE").is_some() {
        for (name, bytes) in kept(dir.path()) {
            let path = data().join("v1").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        moire_corpus::export(&store, &data().join("v1.jsonl")).unwrap();
        println!("bundle {}", Hash::of(&bundle::write(&bundle()).unwrap()));
        println!("digest {}", store.digest("nightly-1").unwrap());
    }
    drop(store);
    assert_eq!(kept(dir.path()), kept(&data().join("v1")));
}
