//! The patterns oracle: protocols and kernels of the streams break no rule, their mutants are rows of the report, and a claim is
//! verified from its text.

use moire_worker::direction::Direction;
use moire_worker::job::{Budget, Cancel, Claim, Engine, EngineReport, Item, Plan, Source, Verification};
use moire_worker::oracle::{MUTANT, Oracles, PATTERNS};
use std::sync::Arc;

fn item(index: u64) -> Item {
    of_stream("protocol", index)
}

fn of_stream(stream: &str, index: u64) -> Item {
    let plan = Plan { oracles: vec![PATTERNS.name.to_owned()], ..Plan::default() };
    let source = Source::Generated { seed: 1, profile: stream.into(), index };
    Item { plan: Arc::new(plan), index, source }
}

/// The mutants of these items, and how many were found. The items are right.
fn mutants(oracles: &Oracles, items: impl Iterator<Item = Item>) -> (usize, usize) {
    let (mut rows, mut found) = (0, 0);
    for item in items {
        let report = oracles.run(&item, &Cancel::new());
        assert_eq!(report.claims, [], "item {}", item.index);
        // A coordinator sends a worker away that says otherwise.
        let unseen = |e: &&EngineReport| e.verdict == "clean" && e.executions == 0;
        assert_eq!(report.engines.iter().find(unseen), None, "item {}", item.index);
        for row in report.engines.iter().filter(|e| e.engine.starts_with(MUTANT)) {
            rows += 1;
            let clean = ["equivalent", "clean, unconfirmed"].contains(&row.verdict.as_str());
            found += usize::from(!clean);
        }
    }
    (rows, found)
}

#[test]
fn protocols_break_no_rule_and_most_mistakes_are_found() {
    let oracles = Oracles::new();
    let (rows, found) = mutants(&oracles, (0..8).map(item));
    assert!(rows >= 24 && found * 10 > rows * 8, "{found} of {rows} mutants found");
    assert_eq!(oracles.run(&item(3), &Cancel::new()), oracles.run(&item(3), &Cancel::new()));
}

/// A right kernel is clean; a weakened one is its own mutant.
#[test]
fn kernels_break_no_rule_and_most_weakenings_are_found() {
    let oracles = Oracles::new();
    let (rows, found) = mutants(&oracles, (0..60).map(|index| of_stream("kernel", index)));
    assert!(rows >= 20 && found * 2 > rows, "{found} of {rows} weakened kernels found");
}

#[test]
fn a_claim_is_verified_from_its_text_and_kept_whole() {
    let oracles = Oracles::new();
    let claim = |body: &str| Claim {
        oracle: PATTERNS.name.into(),
        direction: Direction::Property,
        program: format!("moire \"c\"\n.tmem t[32];\nP0 (gpu 0, cta 0, warp 0) {{\n{body}\n}}\n"),
        ..Claim::default()
    };
    let store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [t], {r0};";
    let load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [t]; tcgen05.wait::ld.sync.aligned;";
    let wrong = claim(&format!("{store} {load}"));
    let right = claim(&format!("{store} tcgen05.wait::st.sync.aligned; {load}"));
    assert_eq!(oracles.verify(&wrong, &Cancel::new()), Verification::Confirmed);
    assert!(matches!(oracles.verify(&right, &Cancel::new()), Verification::Refuted(_)));
    let reduced = oracles.minimise(&wrong, Budget { candidates: 100 }, &Cancel::new(), &mut |_| {});
    assert_eq!(reduced.claim, wrong);
}

/// A fuzzer found that a cancelled lease went on through all mutants (`worker/fuzz/kept/lease/cancelled-protocol`).
#[test]
fn a_cancelled_item_stops_before_its_mutants() {
    let cancel = Cancel::new();
    cancel.cancel();
    let report = Oracles::new().run(&item(3), &cancel);
    assert!(report.engines.iter().all(|e| !e.engine.starts_with(MUTANT)), "{:?}", report.engines);
    assert_eq!(cancel.ticks(), 0);
}
