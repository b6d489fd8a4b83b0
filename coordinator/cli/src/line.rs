//! Claims as printed lines, and back; the form of a line is the coordinator's ([`moire_coordinator::line`]).

use anyhow::Result;
pub(crate) use moire_coordinator::line::is_line;
use moire_coordinator::line::{self, Line};
#[cfg(test)]
use moire_worker::direction::Direction;
use moire_worker::job::{Claim, Side};

/// The word that carries `claim`.
pub(crate) fn encode(claim: &Claim) -> String {
    let side = |s: &Side| line::Side {
        name: s.name.clone(),
        variants: s.variants.clone(),
        fingerprint: data_encoding::HEXLOWER.encode(&s.fingerprint[..8]),
    };
    let (oracle, direction) = (claim.oracle.clone(), claim.direction.to_string());
    let models = claim.models.iter().map(side).collect();
    let (program, verdict) = (claim.program.clone(), claim.verdict.clone());
    Line { oracle, direction, models, program, verdict, axioms: claim.axioms.clone() }.encode()
}

/// The claim a line carries, with the fingerprints (16 hex digits a side) it was found under.
pub(crate) fn decode(word: &str) -> Result<(Claim, Vec<String>)> {
    let line = Line::decode(word)?;
    let fingerprints = line.models.iter().map(|s| s.fingerprint.clone()).collect();
    let side = |s: line::Side| Side { name: s.name, variants: s.variants, fingerprint: [0; 32] };
    let claim = Claim {
        oracle: line.oracle,
        direction: line.direction.parse()?,
        models: line.models.into_iter().map(side).collect(),
        verdict: line.verdict,
        program: line.program,
        witness: String::new(),
        axioms: line.axioms,
    };
    Ok((claim, fingerprints))
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_explore::planted::Planted;
    use moire_generate::Profile;
    use moire_tile_ir::lowering::{Lowering, Weakening};
    use moire_worker::job::{Budget, Cancel, Engine, Item, Plan, Source, Verification};
    use moire_worker::oracle::{Oracles, oracles};
    use std::sync::Arc;

    #[test]
    fn a_claim_comes_back() {
        let variants = [("Q6".into(), "D".into())].into();
        let side = Side { name: "ptx".into(), variants, fingerprint: [7; 32] };
        let claim = Claim {
            oracle: "self".into(),
            direction: Direction::Equal,
            models: vec![side],
            verdict: "discrepancy".into(),
            program: "moire \"x\"\n".into(),
            axioms: vec![vec!["Coherence".into(), "Atomicity".into()]],
            ..Claim::default()
        };
        let (back, fingerprints) = decode(&encode(&claim)).unwrap();
        let bare = Side { fingerprint: [0; 32], ..claim.models[0].clone() };
        assert_eq!(back, Claim { models: vec![bare], ..claim });
        assert_eq!(fingerprints, ["0707070707070707"]);
    }

    /// The first claim of an oracle on the programs of a stream.
    fn claim(engine: &Oracles, oracle: &str, profile: Profile) -> Claim {
        let plan = Arc::new(Plan { oracles: vec![oracle.to_owned()], ..Plan::default() });
        let drawn = |index| Source::Generated { seed: 1, profile: profile.name().to_owned(), index };
        let item = |index| Item { plan: Arc::clone(&plan), index, source: drawn(index) };
        let claims = (0..600).flat_map(|index| engine.run(&item(index), &Cancel::new()).claims);
        { claims }.next().unwrap_or_else(|| panic!("{oracle} finds nothing"))
    }

    /// A protocol without a wait between a store and a load of tensor memory: no protocol of the stream is wrong.
    fn protocol() -> Claim {
        let store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [t], {r0};";
        let load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [t]; tcgen05.wait::ld.sync.aligned;";
        Claim {
            oracle: "patterns".into(),
            direction: Direction::Property,
            verdict: "discrepancy".into(),
            program: format!("moire \"c\"\n.tmem t[32];\nP0 (gpu 0, cta 0, warp 0) {{ {store} {load} }}\n"),
            axioms: vec![vec!["race".into()]],
            ..Claim::default()
        }
    }

    /// Oracles with tools are tried from outside, with the tools.
    #[test]
    fn a_line_of_each_oracle_holds_what_the_oracle_compares() {
        let weakened = Lowering { weakened: Some(Weakening::NoBarrier), ..Lowering::default() };
        let planted = [
            ("self", Oracles::with_explorer(Planted::NeverOpen), Some(Profile::Core)),
            ("model-pair", Oracles::new(), Some(Profile::Core)),
            ("metamorphic", Oracles::with_explorer(Planted::ForgetsInitial), Some(Profile::Core)),
            ("patterns", Oracles::new(), None),
            ("lowering", Oracles::with_lowering(weakened), Some(Profile::TileIr)),
            (
                "operational",
                Oracles::with_operational(moire_operate::Planted::FreeAfter),
                Some(Profile::Protocol),
            ),
        ];
        let bare = oracles().filter(|about| about.tool.is_none()).map(|about| about.name);
        assert_eq!(planted.each_ref().map(|p| p.0).to_vec(), bare.collect::<Vec<_>>());
        for (oracle, engine, profile) in planted {
            let mut claim = profile.map_or_else(protocol, |profile| claim(&engine, oracle, profile));
            if oracle == "model-pair" {
                let budget = Budget { candidates: 40 };
                claim = engine.minimise(&claim, budget, &Cancel::new(), &mut |_| {}).claim;
                assert!(!claim.axioms.is_empty(), "{}", claim.program);
            }
            let (back, _) = decode(&encode(&claim)).unwrap();
            assert_eq!(engine.verify(&back, &Cancel::new()), Verification::Confirmed, "{back:#?}");
            let said = |c: &Claim| (c.verdict.clone(), c.axioms.clone());
            assert_eq!(said(&back), said(&claim), "{oracle}");
        }
    }
}
