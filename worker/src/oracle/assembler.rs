//! The assembler oracle: the static rules marked `ptxas-equal` and NVIDIA's assembler accept and refuse the same modules.
//!
//! An item is assembled for one architecture that has everything it uses and, if there is one, for one that lacks something.
//! An assembler that dies of a module that the rules accept is claimed too. Versions of it with one instruction bent (see `moire_generate::bend`) are assembled too, because refusals are
//! also compared. Answers are kept by the text of the module. Beside other oracles only every [`RATE`]-th item is
//! assembled, because the assembler takes as long as some ten items of the others.

use super::CRASH;
use super::about::{About, Takes};
use super::abstention::Abstention;
use super::case::{Case, Context};
use super::evidence::{Evidence, Unit};
use super::litmus::{Broken, Rule};
use super::tools::{NoAssembler, PTXAS};
use crate::direction::Direction;
use crate::job::{Claim, EngineReport};
use moire_generate::bend;
use moire_kernel::emit;
use moire_program::canon::spell::hash;
use moire_program::ir::Program;
use moire_program::text::{Format, Severity, parse, print};
use moire_program::validate::{Target, targets, validate};
use moire_toolchain::{Answer, Ptxas};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Facts about the oracle.
pub const ASSEMBLER: About = About {
    name: "assembler",
    takes: Takes::Programs,
    by_default: false,
    under_models: false,
    tool: Some(PTXAS),
};
/// Beside other oracles, one of this many items is assembled.
const RATE: u64 = 32;
/// Bent versions of an item that are tried.
const BENDS: u64 = 2;
/// Most answers of the assembler kept at one time.
const MAX_KEPT_ANSWERS: usize = 4096;
/// Longest cause of a claim.
const MAX_CAUSE_BYTES: usize = 80;

/// The assembler of this machine, looked for when first asked for, and its answers.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    found: OnceLock<Result<Ptxas, NoAssembler>>,
    answers: Mutex<HashMap<[u8; 32], Answer>>,
}

impl Assembler {
    pub(super) fn of(ptxas: Ptxas) -> Self {
        Self { found: OnceLock::from(Ok(ptxas)), ..Self::default() }
    }

    /// The tool, or why there is none.
    fn tool(&self) -> Result<&Ptxas, NoAssembler> {
        let found = self.found.get_or_init(|| match Ptxas::find(None) {
            Ok(ptxas) if ptxas.answers_for_the_rules() => Ok(ptxas),
            Ok(ptxas) => Err(NoAssembler::Old(ptxas.version())),
            Err(_) => Err(NoAssembler::Missing),
        });
        found.as_ref().map_err(|why| *why)
    }

    fn ask(&self, ptxas: &Ptxas, module: &str, target: Target) -> Result<Answer, Abstention> {
        let key = *blake3::hash(module.as_bytes()).as_bytes();
        let kept = |answers: &Mutex<HashMap<[u8; 32], Answer>>| {
            answers.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
        };
        if let Some(answer) = kept(&self.answers) {
            return Ok(answer);
        }
        let answer = ptxas.assemble(module, target.name());
        let answer = answer.map_err(|e| Abstention::from(e).at(PTXAS.capability))?;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MAX_KEPT_ANSWERS {
            answers.clear();
        }
        answers.insert(key, answer.clone());
        Ok(answer)
    }

    /// See [`Rule::shown`], for an assembler that died.
    fn crashed(&self, claim: &Claim) -> Result<Evidence, Abstention> {
        let program = parse(&claim.program, Format::Native)?;
        let spec = claim.specs().into_iter().next();
        let target = spec.and_then(|s| target(&s)).ok_or(Abstention::Unusable("no such architecture"))?;
        let module = emit::module(&program, target).map_err(Abstention::Refused)?;
        let answer = self.tool().map_err(Abstention::from).and_then(|p| self.ask(p, &module.text, target));
        let died = match &answer {
            Ok(Answer::Died(name)) => vec![name.clone()],
            _ => Vec::new(),
        };
        let unit = Unit {
            compiler: "NVIDIA ptxas",
            version: self.tool().ok().map(Ptxas::version),
            command: format!("ptxas -O0 -arch={} -o module.cubin module.ptx", target.name()),
            language: "ptx",
            text: module.text,
            died,
            ..Unit::default()
        };
        let unit = unit.without(answer.as_ref().err());
        Ok(Evidence {
            litmus: print(&program),
            units: vec![unit],
            model: String::new(),
            ..Evidence::default()
        })
    }

    /// How rules and assembler differ on `program` for `target`. An error: there is nothing to compare.
    fn differs(&self, program: &Program, target: Target) -> Result<Option<Broken>, Abstention> {
        let ptxas = self.tool()?;
        let refused = validate(program).into_iter().find(|d| d.severity == Severity::Error);
        let lacks = !targets(program).contains(&target);
        let module =
            emit::module(program, target).map_err(|why| Abstention::Refused(why).at(ASSEMBLER.name))?;
        let theirs = self.ask(ptxas, &module.text, target)?;
        let models = vec![spec(target)];
        let cause = match (refused, lacks, &theirs) {
            (None, false, Answer::Died(name)) => {
                let causes = vec![CRASH.to_owned(), name.clone()];
                return Ok(Some(Broken::of(Direction::Property, models, causes)));
            }
            (_, _, Answer::Died(why)) => return Err(Abstention::AssemblerFailed(why.clone())),
            (_, _, Answer::Failed(why)) => return Err(Abstention::AssemblerFailed(why.clone())),
            (Some(rule), _, Answer::Accepted) => rule.rule.unwrap_or("reader").to_owned(),
            (None, true, Answer::Accepted) => "target".to_owned(),
            (None, false, Answer::Refused(lines)) => {
                cause(lines.first().map(String::as_str).unwrap_or_default())
            }
            _ => return Ok(None),
        };
        Ok(Some(Broken::of(Direction::Equal, models, vec![cause])))
    }
}

impl Rule for Assembler {
    const ABOUT: &'static About = &ASSEMBLER;

    fn item(&self, case: &mut Case<'_>, program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)> {
        let index = case.item.index;
        if !is_due(&case.item.plan.oracles, index) {
            return Vec::new();
        }
        let mut out = Vec::new();
        let bent = (0..BENDS).filter_map(|n| bend(program, index.wrapping_mul(BENDS).wrapping_add(n)));
        let all: Vec<Arc<Program>> = std::iter::once(Arc::clone(program)).chain(bent.map(Arc::new)).collect();
        let mut said = Vec::new();
        for (n, program) in all.into_iter().enumerate() {
            for target in asked(&program, index) {
                match self.differs(&program, target) {
                    Ok(None) => said.push((target.name(), true)),
                    Ok(Some(broken)) => {
                        said.push((target.name(), false));
                        out.push((Arc::clone(&program), broken));
                    }
                    // Bent registers may fit no declaration: nothing to compare.
                    Err(why) if n == 0 => case.abstain(&why),
                    Err(_) => {}
                }
            }
        }
        if said.is_empty() {
            return out;
        }
        case.report.engines.push(EngineReport {
            engine: PTXAS.capability.into(),
            verdict: if out.is_empty() { "agrees" } else { "discrepancy" }.into(),
            outcomes: hash(&said),
            ..EngineReport::default()
        });
        out
    }

    fn again(
        &self,
        claim: &Claim,
        program: &Program,
        _context: Context<'_>,
    ) -> Result<Option<Broken>, Abstention> {
        let spec = claim.specs().into_iter().next();
        let target = spec.and_then(|s| target(&s)).ok_or(Abstention::Unusable("no such architecture"))?;
        let same = |b: &Broken| claim.axioms.is_empty() || b.causes() == claim.axioms;
        Ok(self.differs(program, target)?.filter(same))
    }

    fn shown(&self, claim: &Claim) -> Option<Result<Evidence, Abstention>> {
        (claim.verdict == CRASH).then(|| self.crashed(claim))
    }

    fn has_tool(&self) -> bool {
        self.tool().is_ok()
    }

    fn version_of(&self, spec: &str) -> Option<Result<String, Abstention>> {
        target(spec)?;
        Some(self.tool().map(|tool| tool.version().to_string()).map_err(Abstention::from))
    }
}

/// Whether an item is assembled: always where nothing else is asked of it.
fn is_due(oracles: &[String], index: u64) -> bool {
    oracles.len() == 1 || index.is_multiple_of(RATE)
}

/// One architecture that has everything the program uses and one that lacks something, as far as there are any.
fn asked(program: &Program, index: u64) -> Vec<Target> {
    let has = targets(program);
    let turn = usize::try_from(index % 5040).expect("below 5040");
    let lacks: Vec<Target> = Target::ALL.into_iter().filter(|t| !has.contains(t)).collect();
    let pick = |from: &[Target]| (!from.is_empty()).then(|| from[turn % from.len()]);
    pick(&has).into_iter().chain(pick(&lacks)).collect()
}

/// The name of the assembler's side in a claim.
fn spec(target: Target) -> String {
    format!("{}:target={}", PTXAS.capability, target.name())
}

/// The architecture of [`spec`].
fn target(spec: &str) -> Option<Target> {
    let name = spec.strip_prefix(PTXAS.capability)?.strip_prefix(":target=")?;
    Target::ALL.into_iter().find(|t| t.name() == name)
}

/// A diagnostic without its place and its numbers: one cause has one name.
fn cause(line: &str) -> String {
    let text = line.split_once("; ").map_or(line, |(_, rest)| rest);
    let words: Vec<&str> = text.split_whitespace().filter(|w| *w != ":" && *w != "error").collect();
    let mut out = words.join(" ").replace(|c: char| c.is_ascii_digit(), "#");
    while out.len() > MAX_CAUSE_BYTES {
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
        assert!(cause(&"x".repeat(500)).len() <= MAX_CAUSE_BYTES);
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
    fn beside_others_it_is_rare() {
        let both = ["self".to_owned(), ASSEMBLER.name.to_owned()];
        let times = (0..320).filter(|i| is_due(&both, *i)).count();
        assert_eq!((times, is_due(&both[1..], 7)), (10, true));
    }
}
