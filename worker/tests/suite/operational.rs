//! The operational oracle: protocols of the stream and their mutants break no rule, and a claim is tried from its text.

use moire_worker::direction::Direction;
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, Plan, Side, Source, Verification};
use moire_worker::oracle::Oracles;
use std::sync::Arc;

const NAME: &str = "operational";

fn item(source: Source, index: u64) -> Item {
    let plan = Plan { oracles: vec![NAME.to_owned()], ..Plan::default() };
    Item { plan: Arc::new(plan), index, source }
}

fn drawn(profile: &str, index: u64) -> Item {
    item(Source::Generated { seed: 1, profile: profile.into(), index }, index)
}

#[test]
fn protocols_and_mutants_break_no_rule() {
    let oracles = Oracles::new();
    let (mut ticks, mut abstained) = (0, 0);
    for index in 0..16 {
        let cancel = Cancel::new();
        let report = oracles.run(&drawn("protocol", index), &cancel);
        assert_eq!(report.claims, [], "item {index}");
        ticks += cancel.ticks();
        abstained += report.abstentions.values().sum::<u64>();
    }
    assert!(ticks >= 32 && 2 * abstained < ticks, "{abstained} of {ticks} comparisons are abstained from");
    assert_eq!(
        oracles.run(&drawn("protocol", 3), &Cancel::new()),
        oracles.run(&drawn("protocol", 3), &Cancel::new())
    );
}

/// Programs of other streams are outside the domain, and no report counts them.
#[test]
fn other_streams_are_left_alone() {
    let report = Oracles::new().run(&drawn("core", 5), &Cancel::new());
    assert!(report.claims.is_empty() && report.abstentions.is_empty(), "{report:?}");
}

#[test]
fn a_claim_about_a_program_on_which_the_engines_agree_is_refuted() {
    let oracles = Oracles::new();
    let text = "moire \"c\"\n.shared .b8 x;\nA (gpu 0, cta 0) { st.weak.shared::cta.b8 [x], 1; }\n\
                B (gpu 0, cta 0, warp 1) { ld.weak.shared::cta.b8 r, [x]; }\n";
    let report = oracles.run(&item(Source::Text(text.into()), 0), &Cancel::new());
    assert!(report.claims.is_empty() && report.abstentions.is_empty(), "{report:?}");
    let claim = Claim {
        oracle: NAME.into(),
        direction: Direction::Equal,
        models: vec![Side::of("ptx:profile=practice")],
        program: text.into(),
        ..Claim::default()
    };
    assert!(matches!(oracles.verify(&claim, &Cancel::new()), Verification::Refuted(_)));
    let undecided =
        Claim { program: text.replace("st.weak.shared::cta.b8 [x], 1", "fence.sc.gpu"), ..claim.clone() };
    assert!(matches!(oracles.verify(&undecided, &Cancel::new()), Verification::Abstained(_)));
    let reduced = oracles.minimise(&claim, Budget { candidates: 100 }, &Cancel::new(), &mut |_| {});
    assert_eq!((reduced.claim.program, reduced.claim.axioms), (claim.program, claim.axioms));
}
