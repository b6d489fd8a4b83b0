//! Refinement: a compiled program does only what its source may do.
//!
//! The oracles of compilers and of the reference lowering share what is here: the exploration of a side, the judgement with
//! its words, and the reduction of a claim. Each of them says for itself what a source is, under which model a side is
//! explored, and what of a final state both sides have in common.

use super::abstention::{Abstention, executed};
use super::case::Context;
use super::{unread, verification};
use crate::direction::Direction;
use crate::job::{Budget, Claim, Reduced, Verification};
use moire_cat::Model;
use moire_execution::leaf::{FinalState, LeafKind, Memory, Outcome};
use moire_explore::judge::{Verdict as Flagged, flag_verdict};
use moire_explore::search::{Bound, LeafView};
use moire_explore::{Limits, explore};
use moire_program::ir::Program;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::ops::ControlFlow;

/// The judgement of a source and what was made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// The source has a race, so it may do anything.
    Racy,
    /// Every final state of the compiled program is one of the source. So many executions of it were seen.
    Agrees(NonZeroU64),
    /// A final state that the source does not have.
    Beyond(Outcome),
    /// A final state that only some readings of the source have, and the single switches that allow it.
    Contested(Outcome, Vec<&'static str>),
    /// One side ends, the other does not; the end, where the compiled program is the one that ends.
    Progress(Option<Outcome>),
    /// A race leaves the compiled program undefined, and the source has none.
    Undefined,
    /// The compiled program has another race, and the source has none.
    Race,
}

moire_program::spells! {
    Judged {
        Judged::Racy => "Racy" (),
        Judged::Agrees(executions) => "Agrees" (executions),
        Judged::Beyond(outcome) => "Beyond" (outcome),
        Judged::Contested(outcome, switches) => "Contested" (outcome, switches),
        Judged::Progress(outcome) => "Progress" (outcome),
        Judged::Undefined => "Undefined" (),
        Judged::Race => "Race" (),
    }
}

impl Judged {
    /// The word of the verdict.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Judged::Racy => "racy",
            Judged::Agrees(_) => super::answer::CLEAN,
            Judged::Beyond(_) => "discrepancy",
            Judged::Contested(..) => "contested",
            Judged::Progress(_) => "progress",
            Judged::Undefined => "undefined",
            Judged::Race => "race",
        }
    }

    /// The direction of the broken rule; `None` where none is broken.
    pub(super) fn direction(&self) -> Option<Direction> {
        match self {
            Judged::Racy | Judged::Agrees(_) => None,
            Judged::Beyond(_) => Some(Direction::Subset),
            Judged::Contested(..) => Some(Direction::Difference),
            Judged::Progress(_) => Some(Direction::Progress),
            Judged::Undefined | Judged::Race => Some(Direction::Property),
        }
    }

    /// The final state of the compiled program that breaks the rule.
    pub(super) fn outcome(&self) -> Option<&Outcome> {
        match self {
            Judged::Beyond(outcome) | Judged::Contested(outcome, _) => Some(outcome),
            Judged::Progress(outcome) => outcome.as_ref(),
            Judged::Racy | Judged::Agrees(_) | Judged::Undefined | Judged::Race => None,
        }
    }
}

/// What both sides have in common of a final state.
pub(super) enum Compared<'a, K> {
    /// It is computed from the whole state. `None`: the execution is none of the program.
    State(&'a dyn Fn(&FinalState) -> Option<K>),
    /// It is computed from the memory alone.
    Memory(&'a dyn Fn(&Memory) -> K),
}

impl<K> Compared<'_, K> {
    fn ends(&self, leaf: &mut dyn LeafView) -> Vec<K> {
        match self {
            Compared::State(of) => leaf.states().iter().filter_map(of).collect(),
            Compared::Memory(of) => leaf.memories().iter().map(of).collect(),
        }
    }

    fn outcome(&self, leaf: &mut dyn LeafView, is: &dyn Fn(&K) -> bool) -> Option<Outcome> {
        match self {
            Compared::State(_) => None,
            Compared::Memory(of) => leaf.facts().outcomes.into_iter().find(|o| is(&of(&o.memory))),
        }
    }
}

/// Where an exploration stops before its end.
pub(super) enum Until<'a, K> {
    /// At a race that allows everything, and where all of these were seen.
    Allowed(Option<BTreeSet<K>>),
    /// At a final state like this.
    Found(&'a dyn Fn(&K) -> bool),
}

/// The known behaviour of a program.
pub(super) struct Known<K> {
    /// The final states, as they are compared.
    pub(super) ends: BTreeSet<K>,
    /// The final state that [`Until::Found`] asks for.
    pub(super) found: Option<Outcome>,
    pub(super) hangs: bool,
    /// Some execution has a race that allows everything.
    pub(super) undefined: bool,
    /// Some execution has another race.
    pub(super) race: bool,
    /// Some executions were cut at the loop bound.
    pub(super) cut: bool,
    pub(super) executions: u64,
    /// The limit that cut the exploration short.
    pub(super) bounded: Option<Bound>,
}

impl<K> Known<K> {
    const fn new() -> Self {
        Known {
            ends: BTreeSet::new(),
            found: None,
            hangs: false,
            undefined: false,
            race: false,
            cut: false,
            executions: 0,
            bounded: None,
        }
    }

    /// The judgement that nothing was found; an exploration with a limit shows nothing.
    ///
    /// # Errors
    /// A limit cut the exploration short, or there is no execution.
    pub(super) fn agrees(&self) -> Result<Judged, Abstention> {
        match self.bounded {
            Some(bound) => Err(Abstention::Bounded(bound)),
            None => executed(self.executions).map(Judged::Agrees),
        }
    }
}

/// Explores a side.
///
/// # Errors
/// The explorer does not support the program.
pub(super) fn known<K: Ord>(
    program: &Program,
    model: &Model,
    limits: &Limits,
    compared: &Compared<'_, K>,
    mut until: Until<'_, K>,
) -> Result<Known<K>, Abstention> {
    let (mut known, mut stopped) = (Known::new(), false);
    let summary = explore(program, model, &[], limits, &mut |leaf: &mut dyn LeafView| {
        known.executions += 1;
        known.hangs |= leaf.kind() == LeafKind::Blocked;
        let ends = compared.ends(leaf);
        // An execution that contradicts its choices is none of the program, and neither is its race.
        if leaf.kind() == LeafKind::Blocked || !ends.is_empty() {
            let raised = |verdict| leaf.flags().iter().any(|f| flag_verdict(f) == verdict);
            known.undefined |= raised(Flagged::Undefined);
            known.race |= raised(Flagged::Race);
        }
        stopped = match &mut until {
            Until::Found(is) => {
                let is = *is;
                let found = ends.iter().any(is);
                known.found = if found { compared.outcome(leaf, &is) } else { None };
                found
            }
            Until::Allowed(wanted) => {
                if let Some(wanted) = wanted {
                    wanted.retain(|w| !ends.contains(w));
                }
                known.undefined || wanted.as_ref().is_some_and(BTreeSet::is_empty)
            }
        };
        known.ends.extend(ends);
        if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match summary {
        _ if stopped => {}
        Err(abstain) => return Err(abstain.into()),
        Ok(s) => match s.bounded {
            None => {}
            // An execution that the loop bound cuts waits, and ends in no new state.
            Some(Bound::Loop) => known.cut = true,
            Some(bound) => known.bounded = Some(bound),
        },
    }
    Ok(known)
}

/// A source, as its language has it.
pub(super) trait Source: Sized {
    /// The source of a claim.
    fn read(text: &str) -> Result<Self, Abstention>;

    /// The sources that are one step smaller, likely ones first.
    fn smaller(&self) -> Box<dyn Iterator<Item = Self> + '_>;
}

/// The answer of each source. A source is judged when its answer is asked for.
pub(super) type Again<'a> = Box<dyn Iterator<Item = Result<Option<Claim>, Abstention>> + 'a>;

/// What an oracle needs so that its claims are verified and reduced.
pub(super) trait Sources {
    /// What it compiles.
    type Source: Source;
    /// Candidates of a reduction that are judged together.
    const TOGETHER: usize;

    /// The claim made again for each of several sources, where the rule is still broken in the same way.
    fn all_again<'a>(
        &'a self,
        claim: &'a Claim,
        sources: Vec<Self::Source>,
        context: Context<'a>,
    ) -> Result<Again<'a>, Abstention>;

    /// The claim on the canonical form of its source, so that one bug has one text.
    fn canonical(&self, claim: Claim, _source: Self::Source, _context: Context<'_>) -> Claim {
        claim
    }
}

/// A text without a source.
pub(super) const NO_SOURCE: Abstention = Abstention::Unusable("there is no program to compile");

/// Tries the rule again on the text of a claim.
pub(super) fn verify<S: Sources>(oracle: &S, claim: &Claim, context: Context<'_>) -> Verification {
    let again = S::Source::read(&claim.program)
        .map_err(unread)
        .and_then(|source| oracle.all_again(claim, vec![source], context)?.next().unwrap_or(Err(NO_SOURCE)));
    verification(again)
}

/// Makes the source of a claim smaller while the rule stays broken in the same way.
pub(super) fn minimise<S: Sources>(
    oracle: &S,
    claim: &Claim,
    budget: Budget,
    context: Context<'_>,
    progress: &mut dyn FnMut(&Claim),
) -> Reduced {
    let cancelled = || context.cancel.is_cancelled();
    let (mut best, mut tried) = (claim.clone(), 0);
    while let Ok(source) = S::Source::read(&best.program) {
        let mut candidates = source.smaller();
        best = loop {
            let left = budget.candidates.saturating_sub(tried);
            let together = usize::try_from(left).map_or(S::TOGETHER, |n| n.min(S::TOGETHER));
            let some: Vec<S::Source> = candidates.by_ref().take(together).collect();
            if some.is_empty() || cancelled() {
                drop(candidates);
                let normal = left > 0 && !cancelled();
                let claim = if normal { oracle.canonical(best, source, context) } else { best };
                return Reduced { claim, tried, normal };
            }
            tried += some.len() as u64;
            context.cancel.tick();
            let Ok(all) = oracle.all_again(claim, some, context) else { continue };
            if let Some(found) = all.flatten().flatten().next() {
                break found;
            }
        };
        progress(&best);
    }
    Reduced { claim: best, tried, normal: false }
}
