//! What reports hash stays what it is: digests of campaigns are made of it.

use moire_source::{canon, text};
use moire_worker::job::{Cancel, Engine, Item, Plan, Source};
use moire_worker::oracle::Oracles;
use std::path::Path;
use std::sync::Arc;

/// A text of our own.
fn own(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(path)).expect(path)
}

fn short(hash: &[u8; 32]) -> String {
    hash[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first row of the report of a text: hashes of outcomes and of executions.
fn row(oracles: &Oracles, text: &str) -> Option<String> {
    let plan = Plan { oracles: vec!["self".into()], ..Plan::default() };
    let item = Item { plan: Arc::new(plan), index: 0, source: Source::Text(text.to_owned()) };
    let report = oracles.run(&item, &Cancel::new());
    report.engines.first().map(|row| format!("{} {}", short(&row.outcomes), short(&row.leaves)))
}

#[test]
fn twenty_answers_keep_their_hashes() {
    let oracles = Oracles::new();
    for (name, hashes) in ANSWERS {
        assert_eq!(row(&oracles, &own(&format!("litmus/{name}"))).as_deref(), Some(hashes), "{name}");
    }
}

#[test]
fn twenty_source_programs_keep_their_texts() {
    for (name, hash) in SOURCES {
        let source = text::parse(&own(&format!("source/litmus/{name}"))).unwrap();
        assert_eq!(short(blake3::hash(canon::text(&source).as_bytes()).as_bytes()), hash, "{name}");
    }
}

/// Programs, and the hashes of outcomes and of executions in the first row of their reports.
const ANSWERS: [(&str, &str); 20] = [
    ("2+2w/2+2w-fence-acqrel.litmus", "e01ed1d0 75a2872a"),
    ("2+2w/2+2w-relaxed.litmus", "e01ed1d0 0ab0f53f"),
    ("barriers/bar-count-below.litmus", "2690b6b1 7cb999fe"),
    ("barriers/bar-divergent-hang.litmus", "101ecaf5 202999f3"),
    ("barriers/bar-red-popc.litmus", "b2a5f72c 9c19b1de"),
    ("coherence/corr-narrow-scope.litmus", "539edfc4 29e42dd3"),
    ("coherence/corw2.litmus", "d6618b22 75ea52df"),
    ("coherence/cowr.litmus", "b689596b 75414ea8"),
    ("lb/lb-rel-acq.litmus", "cff89e6e 106d6903"),
    ("mp/mp-fence-sc.litmus", "6cf1ef68 13ae758c"),
    ("mp/mp-fence-writer.litmus", "e145b9f0 8fa8d5aa"),
    ("mp/mp-rel-acq.litmus", "6cf1ef68 1edca7db"),
    ("mp/mp-relaxed.litmus", "e145b9f0 61b1fece"),
    ("mp/mp-wrong-sided-fences.litmus", "e145b9f0 d0ddeb93"),
    ("r/r-fence-sc.litmus", "6e9c5d14 91e0e07f"),
    ("r/r-relaxed.litmus", "6e9c5d14 e3515175"),
    ("rmw/cas-once.litmus", "1fa1c919 3d242460"),
    ("rmw/exch.litmus", "dc055759 84c93e55"),
    ("rmw/inc-narrow-scope.litmus", "e693b361 84c93e55"),
    ("rmw/inc-wraps.litmus", "eb3b66f9 84c93e55"),
];
/// Source programs, and the hashes of their canonical texts.
const SOURCES: [(&str, &str); 20] = [
    ("2+2w-relaxed.src", "64ac45a6"),
    ("2+2w-release.src", "c2da95e0"),
    ("2+2w-seq-cst.src", "b4f63f5d"),
    ("add-lost-update.src", "b27da703"),
    ("add-two-gpus.src", "9996215d"),
    ("cas-fails-acquire.src", "c9a4ad97"),
    ("cas-fails-relaxed.src", "6c5deec4"),
    ("cas-fails-release-relaxed.src", "a6716815"),
    ("cas-fails-seq-cst.src", "7fcf8b8f"),
    ("cas-lost-update.src", "7bfd738a"),
    ("cas-plain-behind-failure.src", "3b7b1b2f"),
    ("cas-succeeds-acquire.src", "57ae2441"),
    ("cas-succeeds-relaxed.src", "315e9e48"),
    ("corr.src", "1c702eb8"),
    ("corw.src", "44a79458"),
    ("cowr.src", "f2f3f895"),
    ("coww.src", "79de9b5d"),
    ("iriw-fences.src", "97fe4887"),
    ("iriw-relaxed-stores.src", "61ae278f"),
    ("iriw-release-acquire.src", "2a2d310b"),
];
