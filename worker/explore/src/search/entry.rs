//! Entry points of an exploration: rows are chosen just wide enough for the events of the program.
//!
//! Contract: an attempt with rows too narrow ends before anything is shown, and the next one is wider; a program with more
//! events than the widest rows have bits gets no answer.

use super::explorer::{Search, Stop};
use super::piece::{Giver, Piece, Share};
use super::walk::{Descents, Sample, Totals, Walk};
use crate::graph::graph::NoGraph;
use crate::planted::Planted;
use crate::prune::state::State;
use crate::reduce::Reductions;
use crate::reduce::symmetry::Alike;
use crate::reduce::unobserved::Unobserved;
use crate::thread::flow::Flow;
use crate::thread::trace::FrontEnd;
use crate::thread::width::most_events;
use crate::visit::{Abstain, Bound, LeafView, Limits, Summary, TOO_WIDE, Visitor};
use moire_cat::Model;
use moire_cat::contract::{Control, ExitedLanes, FailedCas, MaskedLanes, WideAccesses, YieldedTokens};
use moire_execution::leaf::seen_registers;
use moire_execution::{settled, unmodelled};
use moire_program::ir::Program;
use rustc_hash::FxHashSet;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Visits every execution of `program` under `model` whose decisions start with `prefix` (empty: all).
pub fn explore(
    program: &Program,
    model: &Model,
    prefix: &[u32],
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Summary, Abstain> {
    explore_with(program, model, prefix, None, limits, visitor)
}

/// A piece to explore, and the giver of what is left of it.
#[derive(Clone, Copy)]
pub(crate) struct PieceWith<'a> {
    pub(crate) piece: &'a Piece,
    pub(crate) giver: Option<&'a dyn Giver>,
}

/// [`explore`] for a part.
pub(crate) fn explore_part(
    program: &Program,
    model: &Model,
    part: PieceWith<'_>,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Summary, Abstain> {
    explore_job(program, model, &mut Job::all(part, limits, visitor), None)
}

/// [`explore`], possibly with a bug planted for tests.
fn explore_with(
    program: &Program,
    model: &Model,
    prefix: &[u32],
    planted: Option<Planted>,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Summary, Abstain> {
    let piece = Piece::of(prefix);
    let part = PieceWith { piece: &piece, giver: None };
    explore_job(program, model, &mut Job::all(part, limits, visitor), planted)
}

/// [`explore`] with a planted bug.
///
/// # Errors
/// See [`explore`].
pub fn explore_planted(
    program: &Program,
    model: &Model,
    planted: Option<Planted>,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Summary, Abstain> {
    explore_with(program, model, &[], planted, limits, visitor)
}

/// The task for a program, whatever the width of its rows.
struct Job<'a> {
    part: PieceWith<'a>,
    limits: &'a Limits,
    visitor: &'a mut dyn Visitor,
    /// Random descents instead of all executions.
    descents: Option<Descents<'a>>,
    /// Of these.
    total: Totals,
}

impl<'a> Job<'a> {
    fn all(part: PieceWith<'a>, limits: &'a Limits, visitor: &'a mut dyn Visitor) -> Self {
        Job { part, limits, visitor, descents: None, total: Totals::default() }
    }
}

/// Tries rows of more and more bits.
fn explore_job(
    program: &Program,
    model: &Model,
    job: &mut Job<'_>,
    planted: Option<Planted>,
) -> Result<Summary, Abstain> {
    if let Some((reason, line)) = unmodelled(program, model) {
        return Err(Abstain { reason, line });
    }
    let program = &*settled(program, model);
    let settings = model.settings();
    let front = FrontEnd {
        planted,
        wide_whole: settings.wide_accesses == WideAccesses::Whole,
        cas_writes_back: settings.failed_cas == FailedCas::WritesBack,
        reconverging: settings.control == Control::Reconverges,
        both_arms: settings.yielded_tokens == YieldedTokens::OfBoth,
        masked_too: settings.masked_lanes == MaskedLanes::Written,
        exited_awaited: settings.exited_lanes == ExitedLanes::Awaited,
        loop_bound: job.limits.loop_bound,
    };
    let flow = |(t, thread)| Rc::new(Flow::new(thread, || seen_registers(program, t)));
    let flows: Vec<Rc<Flow>> = program.threads.iter().enumerate().map(flow).collect();
    let most = most_events(program, &flows, job.limits.loop_bound);
    match attempt::<1>(program, model, front, (&flows, most), job)? {
        Attempt::Finished(summary) => return Ok(summary),
        Attempt::TooWide => {}
    }
    match attempt::<2>(program, model, front, (&flows, most), job)? {
        Attempt::Finished(summary) => return Ok(summary),
        Attempt::TooWide => {}
    }
    match attempt::<4>(program, model, front, (&flows, most), job)? {
        Attempt::Finished(summary) => return Ok(summary),
        Attempt::TooWide => {}
    }
    match attempt::<10>(program, model, front, (&flows, most), job)? {
        Attempt::Finished(summary) => return Ok(summary),
        Attempt::TooWide => {}
    }
    match attempt::<16>(program, model, front, (&flows, most), job)? {
        Attempt::Finished(summary) => Ok(summary),
        Attempt::TooWide => Err(Abstain { reason: TOO_WIDE.into(), line: 0 }),
    }
}

enum Attempt {
    Finished(Summary),
    TooWide,
}

fn attempt<const W: usize>(
    program: &Program,
    model: &Model,
    front: FrontEnd,
    (flows, most): (&[Rc<Flow>], usize),
    job: &mut Job<'_>,
) -> Result<Attempt, Abstain> {
    let (part, limits) = (job.part, job.limits);
    // A wider attempt must not show leaves again, so a narrow one first finds out whether it can hold every event.
    if W < 16 && most > 64 * W {
        return Ok(Attempt::TooWide);
    }
    let state = match State::<W>::new(program, model, front, flows) {
        Ok(state) => state,
        Err(NoGraph::Abstain(a)) => return Err(a),
        Err(NoGraph::TooWide) => return Ok(Attempt::TooWide),
        Err(NoGraph::Bound) => {
            let summary = Summary { bounded: Some(Bound::Loop), ..Summary::default() };
            return Ok(Attempt::Finished(summary));
        }
    };
    // Descents stand for all executions: none is left out.
    let on = if job.descents.is_some() { Reductions::NONE } else { limits.reductions };
    let alike = if on.threads { Alike::planted(program, front.planted) } else { Alike::default() };
    let mut search = Search {
        unobserved: Unobserved::new(program, on, front.planted),
        alike,
        tail: None,
        state,
        share: Share::new(part.piece, part.giver),
        ended: false,
        path: Vec::new(),
        limits,
        summary: Summary::default(),
        steps: 0,
        meanwhile: 0,
        unjudged: false,
        walk: job.descents.map(Walk::new),
        visitor: &mut *job.visitor,
    };
    let mut result = if search.walk.is_some() { search.descend() } else { search.visit() };
    // What is known of the program serves the next piece, too.
    while result.is_ok()
        && !search.ended
        && let Some(next) = part.giver.and_then(Giver::next)
    {
        search.share = Share::new(&next, part.giver);
        result = search.visit();
    }
    job.total = search.walk.as_ref().map(Walk::total).unwrap_or_default();
    let Search { state, summary, ended, .. } = search;
    state.consistency.evaluator.retire();
    match result {
        Ok(()) | Err(Stop::Bound) if !ended => Ok(Attempt::Finished(summary)),
        Ok(()) | Err(Stop::Bound | Stop::Visitor) => {
            Ok(Attempt::Finished(Summary { stopped: true, ..summary }))
        }
        Err(Stop::TooWide) => {
            let shown = summary.complete + summary.blocked;
            debug_assert_eq!(shown, 0, "`most_events` counts every event there can be");
            Ok(Attempt::TooWide)
        }
        Err(Stop::Abstain(a)) => Err(a),
    }
}

/// Visits executions found by random descents; one may be visited more than once.
///
/// # Errors
/// See [`crate::explore`].
pub fn descend(
    program: &Program,
    model: &Model,
    descents: Descents<'_>,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Sample, Abstain> {
    let piece = Piece::default();
    let part = PieceWith { piece: &piece, giver: None };
    let mut visitor = Different { inner: visitor, seen: FxHashSet::default() };
    let mut job =
        Job { part, limits, visitor: &mut visitor, descents: Some(descents), total: Totals::default() };
    let mut summary = explore_job(program, model, &mut job, None)?;
    summary.bounded.get_or_insert(Bound::Descents);
    let (Totals { descents, lost, communications, .. }, executions) = (job.total, job.total.estimate());
    let different = visitor.seen.len() as u64;
    Ok(Sample { descents, lost, different, executions, communications, summary })
}

/// Counts different executions on their way to a visitor.
struct Different<'v> {
    inner: &'v mut dyn Visitor,
    seen: FxHashSet<u64>,
}

impl Visitor for Different<'_> {
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        self.seen.insert(leaf.digest());
        self.inner.leaf(leaf)
    }
}
