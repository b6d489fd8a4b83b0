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
    Line { oracle, direction, models, program: claim.program.clone() }.encode()
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
        verdict: "discrepancy".into(),
        program: line.program,
        ..Claim::default()
    };
    Ok((claim, fingerprints))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ..Claim::default()
        };
        let (back, fingerprints) = decode(&encode(&claim)).unwrap();
        let bare = Side { fingerprint: [0; 32], ..claim.models[0].clone() };
        assert_eq!(back, Claim { models: vec![bare], ..claim });
        assert_eq!(fingerprints, ["0707070707070707"]);
    }
}
