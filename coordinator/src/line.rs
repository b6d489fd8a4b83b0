//! The printed line that replays a finding: program, rule and model fingerprints in one shell word.
//!
//! Contract: `m1.` then base64url (no padding) of deflated JSON. It needs no store and no files, and holds all of a claim
//! but its witness, so whatever an oracle compares is there. A line of a later version is refused by its prefix; unknown
//! fields are ignored. A finding about the fleet is about workers, so it has no line.

use crate::repeat::FLEET;
use data_encoding::BASE64URL_NOPAD;
use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, TDEFLStatus, compress_to_output, create_comp_flags_from_zip_params,
};
use moire_corpus::Finding;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Longest text of a line once inflated, in bytes; guards against a hostile line.
const INFLATED_BYTES: usize = 2 << 20;
/// The words before a printed line.
const COMMAND: &str = "moire replay";
/// Why a finding about the fleet is not run again.
pub(crate) const ABOUT_WORKERS: &str = "it is about workers and not about a program, so nothing replays it";

/// The content of a line: a claim without its witness.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Oracle whose rule is broken.
    pub oracle: String,
    /// The rule's direction.
    pub direction: String,
    /// The sides compared.
    pub models: Vec<Side>,
    /// The program's text.
    pub program: String,
    /// Verdict word of the discrepancy; empty in a line of an early release, which holds neither it nor checks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verdict: String,
    /// Minimal sets of checks whose removal admits the outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axioms: Vec<Vec<String>>,
}

/// One side of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Model name.
    pub name: String,
    /// Switches that differ from the defaults.
    #[serde(default)]
    pub variants: BTreeMap<String, String>,
    /// First 16 hexadecimal digits of the fingerprint of its meaning.
    pub fingerprint: String,
}

thread_local! {
    /// Kept, because making a compressor costs more than compressing a line.
    static COMPRESSOR: RefCell<CompressorOxide> =
        RefCell::new(CompressorOxide::new(create_comp_flags_from_zip_params(9, 0, 0)));
}

/// The bytes compressed as by `compress_to_vec(bytes, 9)`.
fn deflated(bytes: &[u8]) -> Vec<u8> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.reset();
        let mut out = Vec::with_capacity(bytes.len() / 2);
        let (status, _) = compress_to_output(compressor, bytes, TDEFLFlush::Finish, |part| {
            out.extend_from_slice(part);
            true
        });
        debug_assert_eq!(status, TDEFLStatus::Done, "a vector takes everything");
        out
    })
}

/// Why a word is no line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line is of a later version.
    #[error("this line is of a format this version does not know; it reads lines that start with m1.")]
    Format,
    /// The line is incomplete or changed.
    #[error("the line is damaged: {0}; was it copied whole?")]
    Damaged(String),
}

impl Line {
    /// The line of a finding.
    pub fn of(f: &Finding) -> Self {
        let side = |m: &moire_corpus::ModelRef| Side {
            name: m.name.clone(),
            variants: m.variants.clone(),
            fingerprint: m.fingerprint.short(),
        };
        let models = f.models.iter().map(side).collect();
        Self {
            oracle: f.oracle.clone(),
            direction: f.rule.clone(),
            models,
            program: f.reduced.clone(),
            verdict: f.verdict.clone(),
            axioms: f.axioms.clone(),
        }
    }

    /// The word that carries it.
    pub fn encode(&self) -> String {
        let json = serde_json::to_vec(self).expect("strings always serialise");
        format!("m1.{}", BASE64URL_NOPAD.encode(&deflated(&json)))
    }

    /// Reads the word of a line, with or without the command before it.
    ///
    /// # Errors
    /// See [`LineError`].
    pub fn decode(word: &str) -> Result<Self, LineError> {
        let body = bare(word).strip_prefix("m1.").ok_or(LineError::Format)?;
        let damaged = |why: &dyn std::fmt::Display| LineError::Damaged(why.to_string());
        let packed = BASE64URL_NOPAD.decode(body.as_bytes()).map_err(|e| damaged(&e))?;
        let json = miniz_oxide::inflate::decompress_to_vec_with_limit(&packed, INFLATED_BYTES);
        serde_json::from_slice(&json.map_err(|e| damaged(&e))?).map_err(|e| damaged(&e))
    }
}

fn bare(word: &str) -> &str {
    word.trim().trim_start_matches(COMMAND).trim()
}

/// Whether `word` looks like a line rather than a file or an id.
pub fn is_line(word: &str) -> bool {
    let word = bare(word);
    word.starts_with('m')
        && word.find('.').is_some_and(|dot| dot > 1 && word[1..dot].bytes().all(|b| b.is_ascii_digit()))
}

/// The command that replays a finding anywhere; of a finding about the fleet, why there is none.
pub fn command(f: &Finding) -> String {
    match f.oracle == FLEET {
        true => ABOUT_WORKERS.to_owned(),
        false => format!("{COMMAND} {}", Line::of(f).encode()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_corpus::{Hash, ModelRef};

    #[test]
    fn a_compressor_used_again_says_the_same() {
        for text in ["a", "", "moire moire moire", &"x y ".repeat(50_000), "a"] {
            let expected = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 9);
            assert_eq!(deflated(text.as_bytes()), expected);
        }
    }

    #[test]
    fn a_line_carries_the_whole_claim() {
        let variants = BTreeMap::from([("Q6".to_owned(), "D".to_owned())]);
        let finding = Finding {
            oracle: "self".into(),
            rule: "equal".into(),
            models: vec![ModelRef { name: "ptx".into(), variants, fingerprint: Hash([7; 32]) }],
            reduced: "moire \"x\"\n".repeat(100),
            verdict: "discrepancy".into(),
            axioms: vec![vec!["Atomicity".into()]],
            ..Finding::default()
        };
        let command = command(&finding);
        assert!(is_line(&command) && command.len() < 280, "{}", command.len());
        let line = Line::decode(&command).unwrap();
        assert_eq!(line, Line::of(&finding));
        assert_eq!((&line.verdict, &line.axioms), (&finding.verdict, &finding.axioms));
        let bare = Line { verdict: String::new(), axioms: Vec::new(), ..line.clone() };
        assert_eq!(Line::decode(&bare.encode()).unwrap(), bare, "a line of an early release");
        assert_eq!(
            (line.program, line.models[0].fingerprint.as_str()),
            (finding.reduced, "0707070707070707")
        );
    }

    #[test]
    fn a_finding_about_the_fleet_has_no_line() {
        let finding = Finding { oracle: FLEET.into(), ..Finding::default() };
        assert!(!is_line(&command(&finding)), "{}", command(&finding));
    }

    #[test]
    fn damaged_lines_are_errors() {
        for bad in ["m1.", "m1.!!!", "m1.AAAA", "m9.AAAA", "m1.eJxLTEoGAAJNASc"] {
            assert!(Line::decode(bad).is_err(), "{bad}");
        }
    }
}
