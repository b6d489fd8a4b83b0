//! The printed line that replays a finding: program, rule and model fingerprints in one shell word.
//!
//! Contract: `m1.` then base64url (no padding) of deflated JSON. It needs no store and no files. A line of a later
//! version is refused by its prefix; unknown fields are ignored.

use anyhow::{Context, Result, anyhow, bail};
use data_encoding::BASE64URL_NOPAD;
use moire_worker::job::{Claim, Side};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Text of the longest program a line may carry once inflated; guards against a hostile line.
const INFLATED_BYTES: usize = 2 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Wire {
    oracle: String,
    direction: String,
    models: Vec<WireSide>,
    program: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireSide {
    name: String,
    #[serde(default)]
    variants: BTreeMap<String, String>,
    fingerprint: String,
}

/// The word that carries `claim`.
pub(crate) fn encode(claim: &Claim) -> String {
    let side = |s: &Side| WireSide {
        name: s.name.clone(),
        variants: s.variants.clone(),
        fingerprint: data_encoding::HEXLOWER.encode(&s.fingerprint[..8]),
    };
    let wire = Wire {
        oracle: claim.oracle.clone(),
        direction: claim.direction.clone(),
        models: claim.models.iter().map(side).collect(),
        program: claim.program.clone(),
    };
    let json = serde_json::to_vec(&wire).expect("strings always serialise");
    format!("m1.{}", BASE64URL_NOPAD.encode(&miniz_oxide::deflate::compress_to_vec(&json, 9)))
}

/// Whether `word` looks like a line rather than a file or an id.
pub(crate) fn is_line(word: &str) -> bool {
    let word = word.trim().trim_start_matches("moire replay").trim();
    word.starts_with('m')
        && word.find('.').is_some_and(|dot| dot > 1 && word[1..dot].bytes().all(|b| b.is_ascii_digit()))
}

/// The claim a line carries, with the fingerprints (16 hex digits a side) it was found under.
pub(crate) fn decode(word: &str) -> Result<(Claim, Vec<String>)> {
    let word = word.trim().trim_start_matches("moire replay").trim();
    let Some(body) = word.strip_prefix("m1.") else {
        bail!("this line is of a format this version does not know; it reads lines that start with m1.");
    };
    let packed = BASE64URL_NOPAD
        .decode(body.as_bytes())
        .map_err(|e| anyhow!("the line is damaged: {e}; was it copied whole?"))?;
    let json = miniz_oxide::inflate::decompress_to_vec_with_limit(&packed, INFLATED_BYTES)
        .map_err(|e| anyhow!("the line is damaged: {e}; was it copied whole?"))?;
    let wire: Wire = serde_json::from_slice(&json).context("the line is damaged")?;
    let fingerprints = wire.models.iter().map(|s| s.fingerprint.clone()).collect();
    let side = |s: WireSide| Side { name: s.name, variants: s.variants, fingerprint: [0; 32] };
    let claim = Claim {
        oracle: wire.oracle,
        direction: wire.direction,
        models: wire.models.into_iter().map(side).collect(),
        verdict: "discrepancy".into(),
        program: wire.program,
        ..Claim::default()
    };
    Ok((claim, fingerprints))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_carries_the_whole_claim() {
        let side =
            Side { name: "ptx".into(), variants: [("Q6".into(), "D".into())].into(), fingerprint: [7; 32] };
        let claim = Claim {
            oracle: "self".into(),
            direction: "equal".into(),
            models: vec![side],
            verdict: "discrepancy".into(),
            program: "moire \"x\"\n".repeat(100),
            ..Claim::default()
        };
        let line = encode(&claim);
        assert!(is_line(&line) && line.len() < 200);
        let (back, fingerprints) = decode(&format!("moire replay {line}")).unwrap();
        assert_eq!(
            (back.program, back.oracle, back.direction),
            (claim.program, claim.oracle, claim.direction)
        );
        assert_eq!(back.models[0].variants["Q6"], "D");
        assert_eq!(fingerprints, ["0707070707070707"]);
    }

    #[test]
    fn damaged_lines_are_errors() {
        for bad in ["m1.", "m1.!!!", "m1.AAAA", "m9.AAAA", "m1.eJxLTEoGAAJNASc"] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }
}
