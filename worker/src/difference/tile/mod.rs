//! Differences between readings of the Tile IR model: the least kernel on which two readings differ.
//!
//! Contract: like [`super::least`], over kernels instead of litmus programs. All drafts over the alphabets are tried by
//! size (tile blocks, memory events, instructions). The first size with a difference is searched to its end, and the least
//! text with a difference is the answer. A race leaves a kernel undefined, so the answer of a reading is *undefined* or the
//! final states (values read, and memory). A kernel that is undefined under both readings is no difference; but the least
//! of them with different executions is kept, for switches that only such kernels show.
//!
//! Left out are drafts in which a word is never written, or accessed only once: the draft without that access is smaller.

pub mod draft;

pub use moire_generate::exhaustive::Size;

use super::Unanswered;
use draft::{Draft, DraftStep, Form, Place, Wait, What, When};
use moire_cat::Model;
use moire_execution::leaf::Outcome;
use moire_execution::leaf::observed_registers;
use moire_explore::judge::{Verdict, flag_verdict};
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_program::Refusal;
use moire_program::ir::Program;
use moire_program::text::ParseError;
use moire_tile_ir::run::{TileLaunch, lower, tile_entry};
use moire_tile_ir::text::parse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Most executions of one kernel. These kernels have some dozens.
const MAX_LEAVES: u64 = 20_000;

/// Name of the model whose readings are compared here.
pub const MODEL: &str = "tile-ir";

/// The instructions of kernels, and the bound up to which all kernels are tried.
#[derive(Clone, Debug)]
pub struct Alphabet {
    /// One or two words.
    pub name: &'static str,
    /// In words.
    pub about: &'static str,
    /// Instructions.
    pub forms: Vec<Form>,
    /// Tokens.
    pub waits: &'static [Wait],
    /// Masks.
    pub whens: &'static [When],
    /// Most tile blocks, memory events, instructions.
    pub most: Size,
}

fn forms(places: &[Place], list: &[(What, &'static str)]) -> Vec<Form> {
    let at =
        |place: &Place| list.iter().map(|(what, order)| Form { what: *what, order, place: *place }).collect();
    places.iter().flat_map(|place| -> Vec<Form> { at(place) }).collect()
}

const RELAXED: &str = "relaxed device";
const NARROW: &str = "relaxed tl_blk";
const ACQUIRE: &str = "acquire device";
const RELEASE: &str = "release device";
const WEAK: [(What, &str); 2] = [(What::Load, "weak"), (What::Store, "weak")];
const STRONG: [(What, &str); 2] = [(What::Load, RELAXED), (What::Store, RELAXED)];
const ORDERED: [(What, &str); 2] = [(What::Load, ACQUIRE), (What::Store, RELEASE)];
const ANY_OR_LAST: &[Wait] = &[Wait::Nothing, Wait::Last];
const ALWAYS: &[When] = &[When::Always];

/// All of them.
pub fn alphabets() -> Vec<Alphabet> {
    [in_a_block(), between_blocks()].concat()
}

/// Tokens, masks, elements, sizes.
fn in_a_block() -> Vec<Alphabet> {
    let mut sizes = forms(&[Place::X], &[WEAK, STRONG].concat());
    sizes.extend(forms(&[Place::Low], &STRONG[..1]));
    sizes.extend(forms(&[Place::Twice], &[(What::Store, "weak"), (What::Store, RELAXED)]));
    vec![
        Alphabet {
            name: "accesses",
            about: "weak and relaxed, of a word, of its half, twice by one store; token of the one before, or none",
            forms: sizes,
            waits: ANY_OR_LAST,
            whens: ALWAYS,
            most: (2, 4, 3),
        },
        Alphabet {
            name: "masks",
            about: "weak and relaxed; a mask that is off; a token that an `if` yields",
            forms: forms(&[Place::X], &[WEAK.as_slice(), &STRONG[..1]].concat()),
            waits: &[Wait::Nothing, Wait::Last, Wait::Either],
            whens: &[When::Always, When::Never],
            most: (1, 3, 3),
        },
        Alphabet {
            name: "joins",
            about: "weak; token of the one before, of all before, or none",
            forms: forms(&[Place::X], &WEAK),
            waits: &[Wait::Nothing, Wait::Last, Wait::All],
            whens: ALWAYS,
            most: (2, 4, 4),
        },
        Alphabet {
            name: "conditions",
            about: "weak and relaxed; masks that compare what was read with 0 or 1",
            forms: forms(&[Place::X], &[WEAK, STRONG].concat()),
            waits: ANY_OR_LAST,
            whens: &[When::Always, When::Read(0), When::Read(1)],
            most: (2, 3, 3),
        },
    ]
}

/// Orders, scopes, atomics.
fn between_blocks() -> Vec<Alphabet> {
    let narrow = [(What::Load, NARROW), (What::Store, NARROW), (What::Load, "acquire tl_blk")];
    let wide = [(What::Store, "release tl_blk"), (What::Load, "relaxed sys"), (What::Store, "relaxed sys")];
    let mut chains = forms(&[Place::X], &STRONG);
    let atomic = [(What::Store, RELAXED), (What::Add, RELAXED)];
    chains.extend(forms(&[Place::Y], &[ORDERED, atomic].concat()));
    vec![
        Alphabet {
            name: "scopes",
            about: "relaxed, acquire, release of scope tl_blk and device, relaxed of scope sys; token of the one before, or none",
            forms: forms(&[Place::X], &[narrow.as_slice(), &wide, &STRONG, &ORDERED].concat()),
            waits: ANY_OR_LAST,
            whens: ALWAYS,
            most: (2, 3, 3),
        },
        Alphabet {
            name: "atomics",
            about: "relaxed add, exchange, failing compare-and-swap, also of scope tl_blk; stores of what was read; no tokens",
            forms: forms(
                &[Place::X],
                &[
                    (What::Load, "weak"),
                    (What::Load, RELAXED),
                    (What::Copy, RELAXED),
                    (What::Add, RELAXED),
                    (What::Add, NARROW),
                    (What::Exchange, RELAXED),
                    (What::Fail, RELAXED),
                ],
            ),
            waits: &[Wait::Nothing],
            whens: ALWAYS,
            most: (2, 4, 3),
        },
        Alphabet {
            name: "messages",
            about: "relaxed, acquire, release of two words; token of the one before",
            forms: forms(&[Place::X, Place::Y], &[STRONG, ORDERED].concat()),
            waits: &[Wait::Last],
            whens: ALWAYS,
            most: (2, 4, 4),
        },
        Alphabet {
            name: "chains",
            about: "relaxed of a word; acquire, release, relaxed store, add of another; token of the one before",
            forms: chains,
            waits: &[Wait::Last],
            whens: ALWAYS,
            most: (2, 6, 5),
        },
    ]
}

impl Alphabet {
    /// Every body of so many instructions.
    fn bodies(&self, length: usize) -> Vec<Vec<DraftStep>> {
        let mut out: Vec<Vec<DraftStep>> = vec![Vec::new()];
        for at in 0..length {
            let mut longer = Vec::new();
            for body in &out {
                // The first instruction has nothing to wait for, whatever the alphabet says.
                let waits = if at == 0 { &[Wait::Nothing] } else { self.waits };
                for form in &self.forms {
                    for (wait, when) in
                        waits.iter().flat_map(|wait| self.whens.iter().map(move |when| (wait, when)))
                    {
                        let step = DraftStep { form: *form, wait: *wait, when: *when };
                        if step.follows(body) {
                            longer.push(body.iter().copied().chain([step]).collect());
                        }
                    }
                }
            }
            out = longer;
        }
        out
    }

    /// Every draft within the bound.
    fn drafts(&self) -> Vec<(Size, Draft)> {
        let (blocks, events, instructions) = self.most;
        let bodies: Vec<Vec<Vec<DraftStep>>> = (0..=instructions).map(|n| self.bodies(n)).collect();
        // Blocks with more instructions come first, those with as many in the order of their bodies.
        let mut partial: Vec<(Vec<(usize, usize)>, usize)> = vec![(Vec::new(), 0)];
        let mut out = Vec::new();
        for _ in 0..blocks {
            let mut longer = Vec::new();
            for (chosen, used) in &partial {
                let (most, from) = chosen.last().copied().unwrap_or((instructions, 0));
                let lengths = bodies.iter().enumerate().skip(1).take(most.min(instructions - used));
                for (length, of_length) in lengths {
                    let first = if chosen.is_empty() || length < most { 0 } else { from };
                    for body in first..of_length.len() {
                        let next: Vec<(usize, usize)> =
                            chosen.iter().copied().chain([(length, body)]).collect();
                        longer.push((next, used + length));
                    }
                }
            }
            let draft = |chosen: &[(usize, usize)]| {
                Draft(chosen.iter().map(|(n, b)| bodies[*n][*b].clone()).collect())
            };
            let sized = longer.iter().map(|(chosen, _)| draft(chosen)).filter(Draft::is_normal);
            out.extend(sized.map(|d| (d.size(), d)).filter(|(size, _)| size.1 <= events));
            partial = longer;
        }
        out
    }
}

/// The bounds of a search.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The alphabets of the kernels.
    pub alphabets: Vec<Alphabet>,
    /// Most kernels. A search that ends there reports the size it was in.
    pub programs: u64,
}

impl Reach {
    /// Every alphabet up to its own bound.
    pub fn shipped() -> Self {
        Reach { alphabets: alphabets(), programs: u64::MAX }
    }

    /// Every alphabet up to one bound.
    pub fn up_to(most: Size, programs: u64) -> Self {
        let alphabets = alphabets().into_iter().map(|a| Alphabet { most, ..a }).collect();
        Reach { alphabets, programs }
    }

    /// All drafts, least size first. A draft of two alphabets comes once.
    pub fn drafts(&self) -> Vec<(Size, Draft)> {
        let mut all: Vec<(Size, Draft)> = self.alphabets.iter().flat_map(Alphabet::drafts).collect();
        all.sort_by_key(|(size, _)| *size);
        let mut seen: BTreeSet<[u8; 32]> = BTreeSet::new();
        all.retain(|(_, draft)| seen.insert(*blake3::hash(draft.text().0.as_bytes()).as_bytes()));
        all
    }
}

/// The answer of a reading to a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Some execution has a race.
    pub undefined: bool,
    /// Final states, in words.
    pub outcomes: BTreeSet<String>,
}

impl Said {
    /// Whether two answers are the same. The final states of an undefined kernel do not count.
    pub fn agrees(&self, other: &Said) -> bool {
        self.undefined == other.undefined && (self.undefined || self.outcomes == other.outcomes)
    }
}

/// A kernel on which two readings differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its text.
    pub text: String,
    /// Tile blocks, memory events, instructions.
    pub size: Size,
    /// The answer of the first reading.
    pub first: Said,
    /// The answer of the second reading.
    pub second: Said,
}

/// The result of the search for one pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The least difference, if any was found.
    pub least: Option<Difference>,
    /// The least kernel that is undefined under both and has other final states.
    pub beside: Option<Difference>,
    /// Kernels with an answer under both readings.
    pub tried: u64,
    /// Kernels without an answer, by reason.
    pub unanswered: BTreeMap<String, u64>,
    /// The size that [`Reach::programs`] cut short.
    pub cut: Option<Size>,
}

/// Finds the least difference of each pair of models. Each processor gets some of the pairs.
pub fn least(models: &[Arc<Model>], pairs: &[(usize, usize)], reach: &Reach) -> Vec<Finding> {
    let drafts = reach.drafts();
    let hands = std::thread::available_parallelism().map_or(1, usize::from).min(pairs.len()).max(1);
    let dealt = |hand: usize| pairs.iter().copied().skip(hand).step_by(hands).collect::<Vec<_>>();
    let (drafts, most) = (&drafts, reach.programs);
    let found: Vec<Vec<Finding>> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..hands)
            .map(|hand| scope.spawn(move || one_by_one(models, &dealt(hand), drafts, most)))
            .collect();
        let ended = runs.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.map(|found| found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let mut found: Vec<_> = found.into_iter().map(Vec::into_iter).collect();
    (0..pairs.len()).filter_map(|pair| found[pair % hands].next()).collect()
}

fn one_by_one(
    models: &[Arc<Model>],
    pairs: &[(usize, usize)],
    drafts: &[(Size, Draft)],
    most: u64,
) -> Vec<Finding> {
    let mut findings = vec![Finding::default(); pairs.len()];
    let mut open: Vec<usize> = (0..pairs.len()).collect();
    let mut at = (0, 0, 0);
    for (n, (size, draft)) in (0u64..).zip(drafts) {
        if *size != at {
            open.retain(|p| findings[*p].least.is_none());
            at = *size;
        }
        if open.is_empty() {
            break;
        }
        if n == most {
            open.iter().for_each(|p| findings[*p].cut = Some(*size));
            break;
        }
        let (text, names) = draft.text();
        match launched(&text, draft.0.len()) {
            Ok(program) => {
                let mut answers: Vec<Option<Answer>> = vec![None; models.len()];
                for p in &open {
                    let (a, b) = pairs[*p];
                    for m in [a, b] {
                        answers[m].get_or_insert_with(|| said(&program, &names, &models[m]));
                    }
                    if let (Some(left), Some(right)) = (&answers[a], &answers[b]) {
                        note(&mut findings[*p], (&text, *size), left, right);
                    }
                }
            }
            Err(why) => {
                open.iter().for_each(|p| *findings[*p].unanswered.entry(why.to_string()).or_default() += 1)
            }
        }
    }
    findings
}

fn note(finding: &mut Finding, (text, size): (&str, Size), left: &Answer, right: &Answer) {
    let (left, right) = match (left, right) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(why), _) | (_, Err(why)) => return *finding.unanswered.entry(why.to_string()).or_default() += 1,
    };
    finding.tried += 1;
    let place = match (left.agrees(right), left == right) {
        (false, _) => &mut finding.least,
        (true, false) => &mut finding.beside,
        (true, true) => return,
    };
    if place.as_ref().is_none_or(|best| (size, text) < (best.size, best.text.as_str())) {
        let (text, first, second) = (text.to_owned(), left.clone(), right.clone());
        *place = Some(Difference { text, size, first, second });
    }
}

/// The answer of a reading to a kernel.
type Answer = Result<Said, Unanswered>;

/// The reason that a text cannot be launched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// It is not a module.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// Its kernel is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The number of tile blocks is too large.
    #[error("{0} tile blocks")]
    Blocks(usize),
}

/// The program of a kernel that is launched with this many tile blocks.
///
/// # Errors
/// See [`LaunchError`].
pub fn launched(text: &str, blocks: usize) -> Result<Program, LaunchError> {
    let module = parse(text)?;
    let kernel = tile_entry(&module, None)?;
    let row = u32::try_from(blocks).map_err(|_| LaunchError::Blocks(blocks))?;
    Ok(lower(kernel, &TileLaunch::row(row))?)
}

fn said(program: &Program, names: &[Vec<String>], model: &Model) -> Answer {
    let mut out = Said { undefined: false, outcomes: BTreeSet::new() };
    let limits = Limits { leaves: MAX_LEAVES, ..Limits::default() };
    let observed = observed_registers(program);
    let mut states: BTreeSet<Outcome> = BTreeSet::new();
    let summary = explore(program, model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        out.undefined |= leaf.facts().flags.iter().any(|f| flag_verdict(f) == Verdict::Undefined);
        states.extend(leaf.states().iter().map(|s| s.outcome(&observed)));
        ControlFlow::Continue(())
    });
    match summary.map(|s| s.bounded) {
        Ok(None) => {
            out.outcomes = states.iter().map(|s| words(s, names)).collect();
            Ok(out)
        }
        Ok(Some(bound)) => Err(Unanswered::Bounded(bound)),
        Err(abstain) => Err(Unanswered::Unsupported(abstain)),
    }
}

/// A final state: what was read, by name, then memory.
fn words(state: &Outcome, names: &[Vec<String>]) -> String {
    let read = names.iter().flatten().zip(&state.regs).map(|(name, value)| format!("{name} = {value}"));
    let memory = ["x", "y"].iter().zip(&state.memory);
    let memory = memory.map(|(name, content)| format!("{name} = {}", content.value(0, 16)));
    read.chain(memory).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draft_is_a_kernel_that_runs() {
        for alphabet in alphabets() {
            let drafts = alphabet.drafts();
            assert!(drafts.len() > 50, "{}: {} drafts", alphabet.name, drafts.len());
            for (_, draft) in drafts.iter().step_by(7) {
                let (text, names) = draft.text();
                let program = launched(&text, draft.0.len()).unwrap_or_else(|e| panic!("{text}{e}"));
                assert_eq!(observed_registers(&program).len(), names.iter().flatten().count(), "{text}");
            }
        }
    }
}
