//! Damaged and hostile bytes: logs, records, bundles, exports.
//!
//! Nothing panics. A valid beginning is never lost. Damaged parts are copied aside and reported. A right checksum does not
//! make the content trusted.

use crate::common::{campaign, finding, items, open, options, tree};
use moire_corpus::*;
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

#[derive(Clone, Debug)]
enum Mutation {
    Flip(Index, u8),
    Cut(Index),
    Remove(Index, usize),
    Insert(Index, Vec<u8>),
    /// Copies a stretch to another place.
    Splice(Index, usize, Index),
    /// Writes a number over four bytes: lengths, counts.
    Number(Index, u32),
    /// Writes it over the length field of a frame.
    Length(Index, u32),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let number = prop_oneof![Just(0), Just(u32::MAX), Just(16 << 20), Just((16 << 20) + 1), any::<u32>()];
    prop_oneof![
        (any::<Index>(), 1u8..).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
        any::<Index>().prop_map(Mutation::Cut),
        (any::<Index>(), 1usize..300).prop_map(|(at, n)| Mutation::Remove(at, n)),
        (any::<Index>(), proptest::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        (any::<Index>(), 1usize..3000, any::<Index>()).prop_map(|(a, n, b)| Mutation::Splice(a, n, b)),
        (any::<Index>(), number.clone()).prop_map(|(at, n)| Mutation::Number(at, n)),
        (any::<Index>(), number).prop_map(|(at, n)| Mutation::Length(at, n)),
    ]
}

fn write_number(bytes: &mut [u8], at: usize, number: u32) {
    for (slot, byte) in bytes.iter_mut().skip(at).zip(number.to_le_bytes()) {
        *slot = byte;
    }
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    let size = bytes.len();
    if size == 0 {
        return;
    }
    match mutation {
        Mutation::Flip(at, bits) => bytes[at.index(size)] ^= bits,
        Mutation::Cut(at) => bytes.truncate(at.index(size)),
        Mutation::Remove(at, n) => {
            let at = at.index(size);
            bytes.drain(at..(at + n).min(size));
        }
        Mutation::Insert(at, new) => {
            let at = at.index(size);
            bytes.splice(at..at, new.iter().copied());
        }
        Mutation::Splice(from, n, to) => {
            let (from, to) = (from.index(size), to.index(size));
            let stretch = bytes[from..(from + n).min(size)].to_vec();
            bytes.splice(to..to, stretch);
        }
        Mutation::Number(at, number) => write_number(bytes, at.index(size), *number),
        Mutation::Length(which, number) => {
            let marks: Vec<_> = bytes.windows(4).enumerate().filter(|(_, w)| w == b"MoFr").collect();
            if !marks.is_empty() {
                let at = marks[which.index(marks.len())].0 + 4;
                write_number(bytes, at, *number);
            }
        }
    }
}

fn mutated(bytes: &[u8], mutations: &[Mutation]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    mutations.iter().for_each(|m| mutate(&mut out, m));
    out
}

const COMMITS: u64 = 12;

/// The log of a store whose commit `n` adds finding `n`, and where each commit ends.
static LOG: LazyLock<(Vec<u8>, Vec<usize>)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let mut ends = Vec::new();
    let path = dir.path().join("findings.log");
    for n in 0..COMMITS {
        let mut writes = vec![Write::Finding(Box::new(finding(n)))];
        if n == 0 {
            writes.insert(0, campaign("c"));
        }
        writes.push(items(n * 5..n * 5 + 3));
        store.commit(writes).unwrap();
        ends.push(usize::try_from(fs::metadata(&path).unwrap().len()).unwrap());
    }
    (fs::read(path).unwrap(), ends)
});

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Opens a store with this log and compares it with the one it was made from.
fn recovered(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (original, ends) = &*LOG;
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("findings.log"), bytes).unwrap();
    fs::write(dir.path().join("FORMAT"), "moire-store 1\n").unwrap();
    let before = tree(dir.path());
    let report = fsck(dir.path(), false).unwrap();
    prop_assert_eq!(tree(dir.path()), before);
    let (store, recovery) = Store::open(dir.path(), options()).unwrap();
    let whole = ends.iter().filter(|end| **end <= common_prefix(original, bytes)).count();
    for n in 0..whole as u64 {
        prop_assert_eq!(store.finding(&finding(n).id).unwrap(), Some(finding(n)));
    }
    for found in store.findings() {
        let found = found.unwrap();
        prop_assert_eq!(&found, &finding(found.count));
    }
    let harmed = recovery.damaged > 0 || recovery.torn_bytes > 0;
    prop_assert_eq!(harmed, !report.problems.is_empty(), "{:?} {:?}", recovery, report);
    prop_assert!(harmed || recovery.commits < COMMITS || bytes == original);
    if harmed {
        let kept: Vec<_> = recovery.moved_aside.iter().map(|p| fs::read(p).unwrap()).collect();
        let tail = usize::try_from(recovery.torn_bytes).unwrap();
        let (tail, whole) = (&bytes[bytes.len().saturating_sub(tail)..], recovery.damaged > 0);
        let expected = if whole { bytes } else { tail };
        prop_assert!(kept.iter().any(|k| k == expected));
    }
    let mut store = store;
    prop_assert_eq!(store.losses().count(), recovery.lost.len());
    store.acknowledge("a test", "the damage was wanted").unwrap();
    drop(store);
    prop_assert_eq!(fsck(dir.path(), false).unwrap().problems, Vec::<String>::new());
    Ok(())
}

/// A log of these pairs with good checksums: only the content is hostile.
fn vouched(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut out = b"MOIRELOG\x01\0\0\0".to_vec();
    out.extend(1u64.to_le_bytes());
    out.extend(crc32c::crc32c(&out).to_le_bytes());
    for (n, (key, value)) in pairs.iter().enumerate() {
        let mut checked = (n as u64 + 1).to_le_bytes().to_vec();
        checked.extend(u16::try_from(key.len()).unwrap().to_le_bytes());
        checked.extend(key);
        checked.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
        checked.extend(value);
        out.extend(b"MoFr");
        out.extend(u32::try_from(checked.len() - 8).unwrap().to_le_bytes());
        out.extend(crc32c::crc32c(&checked).to_le_bytes());
        out.extend(checked);
    }
    out
}

/// Pairs close to those that the store writes, with numbers at the limits of arithmetic.
fn pair() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let chunk = |n: u64| [&b"i/c\0"[..], &n.to_be_bytes()].concat();
    let sighting = [&b"s/c\0"[..], &[7; 40]].concat();
    let keys = vec![
        b"c/c".to_vec(),
        b"p/c".to_vec(),
        [&b"f/"[..], &finding(1).id.0].concat(),
        [&b"r/"[..], &[1; 32]].concat(),
        [&b"t/"[..], &u64::MAX.to_be_bytes()].concat(),
        chunk(0),
        chunk(u64::MAX),
        chunk(u64::MAX / 64),
        sighting,
        b"i/c\0short".to_vec(),
        b"x".to_vec(),
        Vec::new(),
    ];
    let text = |v: &[u8]| v.to_vec();
    let values = vec![
        serde_json::to_vec(&finding(1)).unwrap(),
        serde_json::to_vec(&Campaign { name: "c".into(), ..Campaign::default() }).unwrap(),
        serde_json::to_vec(&Snapshot::default()).unwrap(),
        text(b"{\"completed\":[[5,3]]}"),
        text(b"{\"completed\":[[0,18446744073709551615],[1,2]]}"),
        text(b"{\"completed\":[[0,18446744073709551615]],\"counters\":{\"programs\":18446744073709551615}}"),
        text(b"{\"completed\":[[3,9],[1,2]]}"),
        format!("\"{}\"", Hash::of(b"absent")).into_bytes(),
        [&[0u8; 5][..], &[9; 32]].concat(),
        [&[255u8; 5][..], &[9; 32]].concat(),
        b"[".repeat(20_000),
        Vec::new(),
    ];
    (prop::sample::select(keys), prop::sample::select(values), proptest::option::of(mutation())).prop_map(
        |(key, value, mutation)| {
            let value = mutated(&value, mutation.as_slice());
            (key, value)
        },
    )
}

/// Calls every method of the store; each returns a value or an error.
fn use_everything(dir: &Path) {
    let (mut store, _) = Store::open(dir, options()).unwrap();
    let _ = store.campaigns();
    let _ = store.progress("c").map(|p| (p.done(), p.next(), p.missing(u64::MAX), p.contains(9)));
    let _ = (store.findings().count(), store.regressions().count());
    let _ = (store.sightings("c"), store.digest("c"), store.last_snapshot(), store.stats());
    let _ = store.commit(vec![campaign("c")]);
    let _ = store.commit(vec![items([0, 1, 5, u64::MAX - 1])]);
    let export = dir.join("export.jsonl");
    if moire_corpus::export(&store, &export).is_ok() {
        let _ = import(&export, &dir.join("imported"));
    }
    store.compact().unwrap();
}

fn export_of_the_log() -> String {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("findings.log"), &LOG.0).unwrap();
    let mut store = open(dir.path());
    store.put_bundle(b"\xff not text").unwrap();
    moire_corpus::export(&store, &dir.path().join("out")).unwrap();
    fs::read_to_string(dir.path().join("out")).unwrap()
}

/// The lines with a last line that vouches for them.
fn sealed(lines: &[u8]) -> Vec<u8> {
    let count = lines.iter().filter(|b| **b == b'\n').count();
    let end = format!("{{\"end\":{{\"lines\":{count},\"blake3\":\"{}\"}}}}\n", Hash::of(lines));
    [lines, end.as_bytes()].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_log_keeps_its_valid_beginning(list in proptest::collection::vec(mutation(), 1..4)) {
        recovered(&mutated(&LOG.0, &list))?;
    }

    #[test]
    fn hostile_records_are_errors(pairs in proptest::collection::vec(pair(), 1..12)) {
        let dir = tempfile::tempdir().unwrap();
        let log = vouched(&pairs);
        prop_assert_eq!(scan_log(&log), pairs.len());
        fs::write(dir.path().join("findings.log"), &log).unwrap();
        let last: std::collections::BTreeMap<_, _> = pairs.iter().cloned().collect();
        let bad = last.iter().filter(|(k, v)| check_record(k, v).is_err()).count();
        let unreadable = |report: &Report| report.problems.iter().filter(|p| p.contains("cannot be read")).count();
        prop_assert_eq!(unreadable(&fsck(dir.path(), false).unwrap()), bad);
        use_everything(dir.path());
        // Using it writes over some of them.
        let left = unreadable(&fsck(dir.path(), false).unwrap());
        prop_assert!(left <= bad);
        let repaired = fsck(dir.path(), true).unwrap();
        prop_assert_eq!(left > 0, repaired.repairs.iter().any(|r| r.contains("records.damaged-1")), "{:?}", repaired);
        prop_assert_eq!(unreadable(&fsck(dir.path(), false).unwrap()), 0);
    }

    #[test]
    fn a_mutated_bundle_is_refused_or_whole(list in proptest::collection::vec(mutation(), 1..4)) {
        let text = bundle::ModelText { name: "ptx".into(), text: "acyclic po".into(), ..Default::default() };
        let good = bundle::Bundle { finding: finding(1), models: vec![text], ..bundle::Bundle::default() };
        let bytes = mutated(&bundle::write(&good).unwrap(), &list);
        if let Ok(read) = bundle::read(&bytes) {
            prop_assert_eq!(bundle::read(&bundle::write(&read).unwrap()).unwrap(), read);
        }
    }

    #[test]
    fn a_mutated_export_leaves_no_store(list in proptest::collection::vec(mutation(), 1..4)) {
        static EXPORT: LazyLock<String> = LazyLock::new(export_of_the_log);
        let dir = tempfile::tempdir().unwrap();
        let (file, store) = (dir.path().join("export"), dir.path().join("store"));
        let bytes = mutated(EXPORT.as_bytes(), &list);
        fs::write(&file, &bytes).unwrap();
        prop_assert_eq!(import(&file, &store).is_ok(), bytes == EXPORT.as_bytes());
        prop_assert_eq!(store.exists(), bytes == EXPORT.as_bytes());
        // The same with a checksum that fits: refused line by line, or readable throughout.
        let body = EXPORT.lines().rev().skip(1).map(|l| format!("{l}\n")).collect::<Vec<_>>();
        let body: String = body.into_iter().rev().collect();
        let other = dir.path().join("other");
        fs::write(&file, sealed(&mutated(body.as_bytes(), &list))).unwrap();
        match import(&file, &other) {
            Ok(()) => prop_assert_eq!(fsck(&other, false).unwrap().problems, Vec::<String>::new()),
            Err(_) => prop_assert!(!other.exists()),
        }
        prop_assert!(!dir.path().join("other.importing").exists());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scanning_finds_what_precedes_the_damage(list in proptest::collection::vec(mutation(), 1..8)) {
        let bytes = mutated(&LOG.0, &list);
        let whole = LOG.1.iter().filter(|end| **end <= common_prefix(&LOG.0, &bytes)).count();
        prop_assert!(scan_log(&bytes) >= whole);
    }
}

/// Would take minutes if each mark's checksum were computed from its bytes.
#[test]
fn marks_with_large_lengths_cost_linear_time() {
    let mut bytes = b"MoFr\xff\xff\x0f\0".repeat(500_000);
    bytes.extend(&LOG.0[24..]);
    assert_eq!(scan_log(&bytes), LOG.1.len(), "the frames behind them are found");
}

#[test]
fn commits_of_the_same_number_count_once() {
    let (log, ends) = &*LOG;
    let twice = [&log[..], &log[24..ends[3]]].concat();
    recovered(&twice).unwrap();
    let swapped = [&log[..24], &log[ends[0]..], &log[24..ends[0]]].concat();
    recovered(&swapped).unwrap();
}
