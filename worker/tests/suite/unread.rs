//! A claim that this release does not read is neither confirmed nor refuted, whatever its oracle.

use moire_worker::direction::Direction;
use moire_worker::job::{Cancel, Claim, Engine, Side, Verification};
use moire_worker::oracle::{Oracles, named, oracles};

fn answer(claim: &Claim) -> Verification {
    Oracles::new().verify(claim, &Cancel::new())
}

#[test]
fn a_text_of_another_release_is_not_refuted() {
    let texts = [
        "",
        "this is no program",
        "moire \"x\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { bar.sync2 0; }\n",
        "source \"x\"\n.global .b32 x;\nP0 (cluster 0, cta 0) { store.stronger.gpu x, 1; }\n",
        "// tile blocks: 2\nentry @k() { later_release_tko }\n",
    ];
    for about in oracles() {
        for text in texts {
            let models = ["ptx", "sc"].map(Side::of).to_vec();
            let claim = Claim { oracle: about.name.into(), program: text.into(), models, ..Claim::default() };
            let said = answer(&claim);
            assert!(matches!(said, Verification::Abstained(_)), "{about} of {text:?}: {said:?}");
        }
    }
}

/// A rule of a later release may name other sides than ours.
#[test]
fn a_rule_of_another_release_is_not_refuted() {
    let program = "moire \"x\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; }\n";
    let claim = |oracle: &str, models: &[&str], direction| Claim {
        oracle: oracle.into(),
        direction,
        program: program.into(),
        models: models.iter().map(|spec| Side::of(spec)).collect(),
        ..Claim::default()
    };
    let unknown = [
        claim("self", &["ptx", "sc"], Direction::Equal),
        claim("self", &["ptx"], Direction::Progress),
        claim("metamorphic", &[], Direction::Equal),
        claim("operational", &["ptx", "sc"], Direction::Equal),
        claim("operational", &["ptx"], Direction::Subset),
        claim("model-pair", &["ptx"], Direction::Subset),
        claim("model-pair", &["ptx", "ptx-99"], Direction::Difference),
        claim("a later oracle", &["ptx"], Direction::Equal),
    ];
    for claim in unknown {
        let said = answer(&claim);
        assert!(matches!(said, Verification::Abstained(_)), "{claim:?}: {said:?}");
    }
    assert!(named("self").is_some());
    let known = claim("self", &["ptx"], Direction::Equal);
    assert!(matches!(answer(&known), Verification::Refuted(_)), "a rule that is read and holds is refuted");
}
