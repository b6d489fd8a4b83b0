//! The patterns oracle: protocols put together from the documented patterns are clean, and a mistake in one shows.
//!
//! A protocol that is not clean breaks a property. Of its mutants a few are tried for each item; one that the explorer
//! calls clean must be clean for the enumerator too, and is then an equivalent mutant, or the enumerator is not up to its size.
//! Each mutant is a row of the item's report, so that a campaign can tell how many mistakes were found; its verdict is that
//! of the first execution that is not clean.

use super::Broken;
use super::answer::{self, Answer, CLEAN};
use crate::job::{Cancel, EngineReport, ItemReport};
use moire_cat::Model;
use moire_program::generate::tensor::{Mutant, Protocol, mutants};
use moire_program::ir::Program;

/// Its name.
pub const PATTERNS: &str = "patterns";
/// Starts the name of a mutant's row; behind it stands the mutation.
pub const MUTANT: &str = "mutant/";
/// The model the patterns are patterns of.
pub(super) const MODEL: &str = "ptx";
/// What a protocol that is not clean breaks.
pub(super) const PROPERTY: &str = "property";
/// Mutants tried for each item.
const TRIED: usize = 4;

/// The rules an item breaks, with the programs that show it.
pub(super) fn item(
    protocol: &Protocol,
    model: &Model,
    index: u64,
    report: &mut ItemReport,
    cancel: &Cancel,
) -> Vec<(Program, Broken)> {
    let mut out = Vec::new();
    let Some(program) = protocol.program() else {
        super::abstain(report, "patterns: a protocol that does not read".into());
        return out;
    };
    if cancel.is_cancelled() {
        return out;
    }
    match answer::explored(&program, model) {
        Ok(answer) => {
            let verdict = answer.verdict();
            if verdict != CLEAN {
                out.push((program, rule(PROPERTY, verdict)));
            }
        }
        Err(reason) => super::abstain(report, format!("patterns: {reason}")),
    }
    for mutant in chosen(protocol, index) {
        if cancel.is_cancelled() {
            return out;
        }
        cancel.tick();
        let Some(program) = mutant.protocol.program() else { continue };
        match answer::first_wrong(&program, model) {
            Err(reason) => super::abstain(report, format!("patterns: {reason}")),
            Ok(answer) => {
                let verdict = judged(&program, model, &answer, &mut out);
                let engine = format!("{MUTANT}{}", mutant.mutation.name());
                report.engines.push(EngineReport { verdict, ..answer.report(&engine) });
            }
        }
    }
    out
}

/// What became of a mutant.
fn judged(program: &Program, model: &Model, explored: &Answer, out: &mut Vec<(Program, Broken)>) -> String {
    let verdict = explored.verdict();
    if verdict != CLEAN {
        return verdict;
    }
    match answer::enumerated(program, model) {
        Ok(naive) if naive.verdict() == CLEAN => "equivalent".into(),
        Ok(naive) => {
            out.push((program.clone(), rule("equal", naive.verdict())));
            "discrepancy".into()
        }
        Err(_) => "clean, unconfirmed".into(),
    }
}

fn rule(direction: &'static str, cause: String) -> Broken {
    Broken { oracle: PATTERNS, direction, models: vec![MODEL.into()], outcome: None, cause: Some(cause) }
}

/// A few mutants, others for each index.
fn chosen(protocol: &Protocol, index: u64) -> Vec<Mutant> {
    let all = mutants(protocol);
    let start = usize::try_from(index.wrapping_mul(0x9e37_79b9) % 0xffff).unwrap_or_default();
    let step = (all.len() / TRIED).max(1);
    (0..TRIED.min(all.len())).map(|n| all[(start + n * step) % all.len()].clone()).collect()
}

/// The rule `program` breaks when nothing but its text is known.
pub(super) fn broken(program: &Program, model: &Model) -> Result<Option<Broken>, String> {
    let explored = answer::explored(program, model)?.verdict();
    if explored != CLEAN {
        return Ok(Some(rule(PROPERTY, explored)));
    }
    let naive = answer::enumerated(program, model)?.verdict();
    Ok((naive != CLEAN).then(|| rule("equal", naive)))
}
