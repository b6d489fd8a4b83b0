//! Differences between models: the least program on which two models allow different outcomes.
//!
//! Contract: programs over the [`alphabets`] are tried by size (threads, memory events, instructions). The first size
//! with a difference is searched to its end. The answer is the program of this size with a difference and the least
//! canonical text, so it depends on the models, the alphabets and the bound alone. Without a difference the answer is the
//! bound. Outcomes are compared (registers that loads and atomics write, and all memory); races and flags are not.

pub mod alphabets;
pub mod tile;

use alphabets::Named;
use moire_cat::Model;
use moire_execution::leaf::Outcome;
use moire_explore::search::LeafView;
use moire_explore::{Abstain, Bound, Limits, explore};
use moire_generate::exhaustive::{Enumeration, Size, sizes};
use moire_program::ir::Program;
use moire_program::text::print;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// Most executions of one program. Small programs have some dozens.
const MAX_LEAVES: u64 = 20_000;

/// The bounds of a search.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The alphabets of the programs, each with its bound.
    pub alphabets: Vec<Named>,
    /// Most programs. A search that ends there reports the size it was in.
    pub programs: u64,
}

impl Reach {
    /// Every alphabet up to its own bound, as for the table of differences.
    pub fn shipped() -> Self {
        Reach { alphabets: alphabets::all(), programs: u64::MAX }
    }

    /// Every alphabet up to one bound.
    pub fn up_to(most: Size, programs: u64) -> Self {
        let alphabets = alphabets::all().into_iter().map(|a| Named { most, ..a }).collect();
        Reach { alphabets, programs }
    }

    /// All programs, least size first, each once, with their sizes.
    pub fn programs(&self) -> impl Iterator<Item = (Size, Program)> + use<> {
        let spaces: Rc<Vec<Enumeration>> =
            Rc::new(self.alphabets.iter().map(|a| Enumeration::new(&a.bound())).collect());
        let most = self.alphabets.iter().map(|a| a.most);
        let most = most.fold((0, 0, 0), |m, s| (m.0.max(s.0), m.1.max(s.1), m.2.max(s.2)));
        sizes(most).flat_map(move |size| {
            let spaces = Rc::clone(&spaces);
            // The same program over two alphabets comes once.
            let mut seen: BTreeSet<[u8; 32]> = BTreeSet::new();
            (0..spaces.len()).flat_map(move |s| spaces[s].of_size(size)).filter_map(move |program| {
                let new = seen.insert(*blake3::hash(print(&program).as_bytes()).as_bytes());
                new.then_some((size, program))
            })
        })
    }
}

/// A program on which two models differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The program, canonical.
    pub program: Program,
    /// Its text.
    pub text: String,
    /// Threads, memory events, instructions.
    pub size: Size,
    /// Outcomes that both allow.
    pub both: BTreeSet<Outcome>,
    /// Outcomes that only the first allows.
    pub first: BTreeSet<Outcome>,
    /// Outcomes that only the second allows.
    pub second: BTreeSet<Outcome>,
}

/// The result of the search for one pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The least difference, if any was found.
    pub least: Option<Difference>,
    /// Programs with an answer under both models.
    pub tried: u64,
    /// Programs without an answer, by reason.
    pub unanswered: BTreeMap<String, u64>,
    /// The size that [`Reach::programs`] cut short: there may be lesser differences, and more of them.
    pub cut: Option<Size>,
}

/// Finds the least difference of each pair of models. Each processor gets some of the pairs and goes through the programs
/// once for all of them.
pub fn least(models: &[Arc<Model>], pairs: &[(usize, usize)], reach: &Reach) -> Vec<Finding> {
    let hands = std::thread::available_parallelism().map_or(1, usize::from).min(pairs.len()).max(1);
    let dealt = |hand: usize| pairs.iter().copied().skip(hand).step_by(hands).collect::<Vec<_>>();
    let found: Vec<Vec<Finding>> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..hands).map(|hand| scope.spawn(move || one_by_one(models, &dealt(hand), reach))).collect();
        let ended = runs.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.map(|found| found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let mut found: Vec<_> = found.into_iter().map(Vec::into_iter).collect();
    (0..pairs.len()).filter_map(|pair| found[pair % hands].next()).collect()
}

fn one_by_one(models: &[Arc<Model>], pairs: &[(usize, usize)], reach: &Reach) -> Vec<Finding> {
    let mut findings = vec![Finding::default(); pairs.len()];
    let mut open: Vec<usize> = (0..pairs.len()).collect();
    let mut at = (0, 0, 0);
    for (n, (size, program)) in (0u64..).zip(reach.programs()) {
        if size != at {
            open.retain(|p| findings[*p].least.is_none());
            at = size;
        }
        if open.is_empty() {
            break;
        }
        if n == reach.programs {
            open.iter().for_each(|p| findings[*p].cut = Some(size));
            break;
        }
        compare(&program, size, models, pairs, &open, &mut findings);
    }
    findings
}

/// Compares the models of all open pairs on one program.
fn compare(
    program: &Program,
    size: Size,
    models: &[Arc<Model>],
    pairs: &[(usize, usize)],
    open: &[usize],
    findings: &mut [Finding],
) {
    let mut answers: Vec<Option<Answer>> = vec![None; models.len()];
    for &p in open {
        let (a, b) = pairs[p];
        for m in [a, b] {
            if answers[m].is_none() {
                answers[m] = Some(outcomes(program, &models[m]));
            }
        }
        let finding = &mut findings[p];
        let (left, right) = match (&answers[a], &answers[b]) {
            (Some(Ok(left)), Some(Ok(right))) => (left, right),
            (Some(Err(reason)), _) | (_, Some(Err(reason))) => {
                *finding.unanswered.entry(reason.to_string()).or_default() += 1;
                continue;
            }
            _ => continue,
        };
        finding.tried += 1;
        if left == right {
            continue;
        }
        let text = print(program);
        if finding.least.as_ref().is_none_or(|best| text < best.text) {
            finding.least = Some(Difference {
                program: program.clone(),
                text,
                size,
                both: left.intersection(right).cloned().collect(),
                first: left.difference(right).cloned().collect(),
                second: right.difference(left).cloned().collect(),
            });
        }
    }
}

/// The reason that the engine gives no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Unanswered {
    /// It does not support a construct.
    #[error("{}", .0.reason)]
    Unsupported(Abstain),
    /// It reached a limit.
    #[error("{0}")]
    Bounded(Bound),
}

/// All final states.
type Answer = Result<BTreeSet<Outcome>, Unanswered>;

/// Computes all final states under `model`.
fn outcomes(program: &Program, model: &Model) -> Answer {
    let mut out = BTreeSet::new();
    let limits = Limits { leaves: MAX_LEAVES, ..Limits::default() };
    let observed = moire_execution::leaf::observed_registers(program);
    let summary = explore(program, model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        out.extend(leaf.states().iter().map(|s| s.outcome(&observed)));
        ControlFlow::Continue(())
    });
    match summary.map(|s| s.bounded) {
        Ok(None) => Ok(out),
        Ok(Some(bound)) => Err(Unanswered::Bounded(bound)),
        Err(abstain) => Err(Unanswered::Unsupported(abstain)),
    }
}

/// An outcome in words: observed registers, then memory.
pub fn shown(program: &Program, outcome: &Outcome) -> String {
    let registers = moire_execution::leaf::observed_registers(program);
    let mut words: Vec<String> = Vec::new();
    for ((t, r), value) in registers.iter().zip(&outcome.regs) {
        let thread = &program.threads[t.index()];
        words.push(format!("{}:{} = {}", thread.name, thread.regs[r.index()].name, number(*value)));
    }
    for (instance, content) in moire_execution::leaf::instances(program).iter().zip(&outcome.memory) {
        let value = content.value(0, 16);
        words.push(format!("{} = {}", program.objects[instance.object.index()].name, number(value)));
    }
    words.join(", ")
}

/// A value in words; a value of more than 64 bits as its two halves, the high half first.
fn number(value: u128) -> String {
    if value >> 64 == 0 {
        value.to_string()
    } else {
        format!("{}:{}", value >> 64, value & u128::from(u64::MAX))
    }
}
