//! What reports hash stays what it is: digests of campaigns are made of it.

use moire_source::{canon, text};
use moire_worker::job::{Cancel, Engine, Item, Plan, Source};
use moire_worker::oracle::Oracles;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The source programs of our own, by name.
fn sources() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/source/litmus");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "src")).collect();
    found.sort();
    found.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/litmus");
    for (name, hashes) in ANSWERS {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(row(&oracles, &text).as_deref(), Some(hashes), "{name}");
    }
}

#[test]
fn twenty_source_programs_keep_their_texts() {
    let id = |text: &String| {
        let source = text::parse(text).unwrap();
        short(blake3::hash(canon::text(&source).as_bytes()).as_bytes())
    };
    let found: Vec<String> = sources().iter().map(id).take(20).collect();
    assert_eq!(found.join(" "), SOURCES);
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
const SOURCES: &str = "64ac45a6 c2da95e0 b4f63f5d b27da703 9996215d c9a4ad97 6c5deec4 a6716815 7fcf8b8f 7bfd738a 3b7b1b2f 57ae2441 315e9e48 1c702eb8 44a79458 f2f3f895 79de9b5d 97fe4887 61ae278f 2a2d310b";
