//! The assembler oracle: the static rules marked `ptxas-equal` and NVIDIA's assembler take and refuse the same.
//!
//! An item is assembled as it is for one architecture that has what it uses and, where there is one, for one that has
//! not; then once more with one instruction bent (see `moire_program::generate::bend`), so that refusals are compared
//! too. Answers are kept by the text of the module. Beside other oracles only every [`RATE`]-th item is assembled: the
//! assembler takes as long as some ten items of the others.

use super::Broken;
use crate::job::{EngineReport, ItemReport};
use moire_program::emit;
use moire_program::generate::bend;
use moire_program::ir::Program;
use moire_program::text::Severity;
use moire_program::validate::{Target, targets, validate};
use moire_toolchain::{Answer, Ptxas};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Its name, and the capability of a worker that has the tool.
pub const ASSEMBLER: &str = "assembler";
/// What a worker says it has when the assembler is there.
pub const CAPABILITY: &str = "ptxas";
/// How to get the tool, for whoever asks.
pub const HOW: &str = "pip install nvidia-cuda-nvcc, then MOIRE_VENV=the environment, or ptxas on PATH";
/// Beside other oracles one item of so many is assembled.
const RATE: u64 = 32;
/// Bent versions of an item.
const BENDS: u64 = 2;
/// Answers that are kept.
const KEPT: usize = 4096;
/// Longest cause of a claim.
const CAUSE_BYTES: usize = 80;

/// The assembler of this machine, looked for when first asked for, and what it said.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    found: OnceLock<Result<Ptxas, String>>,
    answers: Mutex<HashMap<[u8; 32], Answer>>,
}

impl Assembler {
    pub(super) fn of(ptxas: Ptxas) -> Self {
        Self { found: OnceLock::from(Ok(ptxas)), ..Self::default() }
    }

    /// The tool, or why there is none.
    pub(super) fn tool(&self) -> Result<&Ptxas, String> {
        let found = self.found.get_or_init(|| match Ptxas::find(None) {
            Ok(ptxas) if ptxas.answers_for_the_rules() => Ok(ptxas),
            Ok(ptxas) => Err(format!("ptxas {} is older than the release the rules repeat", ptxas.version())),
            Err(_) => Err(format!("no ptxas: {HOW}")),
        });
        found.as_ref().map_err(Clone::clone)
    }

    fn ask(&self, ptxas: &Ptxas, module: &str, target: Target) -> Result<Answer, String> {
        let key = *blake3::hash(module.as_bytes()).as_bytes();
        let kept = |answers: &Mutex<HashMap<[u8; 32], Answer>>| {
            answers.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
        };
        if let Some(answer) = kept(&self.answers) {
            return Ok(answer);
        }
        let answer = ptxas.assemble(module, target.name()).map_err(|e| format!("ptxas: {e}"))?;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= KEPT {
            answers.clear();
        }
        answers.insert(key, answer.clone());
        Ok(answer)
    }

    /// Whether rules and assembler differ on `program` for `target`; nothing to compare is an error.
    pub(super) fn differs(&self, program: &Program, target: Target) -> Result<Option<Broken>, String> {
        let ptxas = self.tool()?;
        let refused = validate(program).into_iter().find(|d| d.severity == Severity::Error);
        let lacks = !targets(program).contains(&target);
        let module = emit::module(program, target).map_err(|why| format!("assembler: {why}"))?;
        let theirs = self.ask(ptxas, &module.text, target)?;
        let cause = match (refused, lacks, &theirs) {
            (_, _, Answer::Failed(why)) => return Err(format!("ptxas: {why}")),
            (Some(rule), _, Answer::Accepted) => rule.rule.unwrap_or("reader").to_owned(),
            (None, true, Answer::Accepted) => "target".to_owned(),
            (None, false, Answer::Refused(lines)) => {
                cause(lines.first().map(String::as_str).unwrap_or_default())
            }
            _ => return Ok(None),
        };
        Ok(Some(Broken {
            oracle: ASSEMBLER,
            direction: "equal",
            models: vec![spec(target)],
            outcome: None,
            cause: Some(cause),
        }))
    }

    /// All that rules and assembler differ on for the item, with the programs that show it.
    pub(super) fn item(
        &self,
        program: &Program,
        index: u64,
        report: &mut ItemReport,
    ) -> Vec<(Program, Broken)> {
        let mut out = Vec::new();
        let bent = (0..BENDS).filter_map(|n| bend(program, index.wrapping_mul(BENDS).wrapping_add(n)));
        let all: Vec<Program> = std::iter::once(program.clone()).chain(bent).collect();
        let mut said = Vec::new();
        for (n, program) in all.into_iter().enumerate() {
            for target in asked(&program, index) {
                match self.differs(&program, target) {
                    Ok(None) => said.push((target.name(), true)),
                    Ok(Some(broken)) => {
                        said.push((target.name(), false));
                        out.push((program.clone(), broken));
                    }
                    // Bent registers may fit no declaration: nothing to compare.
                    Err(why) if n == 0 => super::abstain(report, why),
                    Err(_) => {}
                }
            }
        }
        report.engines.push(EngineReport {
            engine: "ptxas".into(),
            verdict: if out.is_empty() { "clean" } else { "discrepancy" }.into(),
            outcomes: *blake3::hash(format!("{said:?}").as_bytes()).as_bytes(),
            ..EngineReport::default()
        });
        out
    }
}

/// Whether an item is assembled: always where nothing else is asked of it.
pub(super) fn due(oracles: &[String], index: u64) -> bool {
    let wanted = oracles.iter().any(|o| o == ASSEMBLER);
    wanted && (oracles.len() == 1 || index.is_multiple_of(RATE))
}

/// One architecture that has everything, if there is one, and one that has not.
fn asked(program: &Program, index: u64) -> Vec<Target> {
    let has = targets(program);
    let turn = usize::try_from(index % 5040).unwrap_or_default();
    let lacks: Vec<Target> = Target::ALL.into_iter().filter(|t| !has.contains(t)).collect();
    let pick = |from: &[Target]| (!from.is_empty()).then(|| from[turn % from.len()]);
    pick(&has).into_iter().chain(pick(&lacks)).collect()
}

/// How a claim names the side of the assembler.
fn spec(target: Target) -> String {
    format!("{CAPABILITY}:target={}", target.name())
}

/// The architecture of [`spec`].
pub(super) fn target(spec: &str) -> Option<Target> {
    let name = spec.strip_prefix(CAPABILITY)?.strip_prefix(":target=")?;
    Target::ALL.into_iter().find(|t| t.name() == name)
}

/// A diagnostic without its place and its numbers, so that one cause has one name.
fn cause(line: &str) -> String {
    let text = line.split_once("; ").map_or(line, |(_, rest)| rest);
    let words: Vec<&str> = text.split_whitespace().filter(|w| *w != ":" && *w != "error").collect();
    let mut out = words.join(" ").replace(|c: char| c.is_ascii_digit(), "#");
    while out.len() > CAUSE_BYTES {
        out.pop();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_no_place_and_no_numbers() {
        let line = "line 18; error   : Argument 1 of instruction 'tcgen05.alloc': unexpected value '48'";
        assert_eq!(cause(line), "Argument # of instruction 'tcgen##.alloc': unexpected value '##'");
        assert!(cause(&"x".repeat(500)).len() <= CAUSE_BYTES);
    }

    #[test]
    fn a_side_names_its_architecture() {
        for t in Target::ALL {
            assert_eq!(target(&spec(t)), Some(t));
        }
        assert_eq!(target("ptx"), None);
        assert_eq!(target("ptxas:target=sm_1"), None);
    }

    #[test]
    fn beside_others_it_is_rare_and_unasked_it_is_not_there() {
        let both = ["self".to_owned(), ASSEMBLER.to_owned()];
        let times = (0..320).filter(|i| due(&both, *i)).count();
        assert_eq!((times, due(&both[1..], 7), due(&[], 0)), (10, true, false));
    }
}
