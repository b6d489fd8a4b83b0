//! Where an exploration starts: what is asked of it, and rows just wide enough for the events of the program.
//!
//! Contract: an attempt with rows too narrow ends before anything is shown, and the next one is wider; a program with more
//! events than the widest rows have bits gets no answer.

use super::walk::{Descents, Totals, Walk};
use super::{Search, Stop};
use crate::alike::Alike;
use crate::flow::Flow;
use crate::interp::FrontEnd;
use crate::leaf::seen_registers;
use crate::planted::Planted;
use crate::reduce::Reductions;
use crate::share::{Giver, Piece, Share};
use crate::state::State;
use crate::unmodelled::unmodelled;
use crate::unseen::Unseen;
use crate::visit::{Abstain, Limits, Summary, Visitor};
use crate::width::most_events;
use moire_cat::Model;
use moire_program::ir::Program;
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

/// What to explore, and who gets what is left of it.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) piece: &'a Piece,
    pub(crate) giver: Option<&'a dyn Giver>,
}

/// [`explore`] for a part.
pub(crate) fn explore_part(
    program: &Program,
    model: &Model,
    part: Part<'_>,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Summary, Abstain> {
    explore_planted(program, model, &mut Job::all(part, limits, visitor), None)
}

/// [`explore`], possibly with a bug planted for tests.
pub(crate) fn explore_with(
    program: &Program,
    model: &Model,
    prefix: &[u32],
    planted: Option<Planted>,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Summary, Abstain> {
    let piece = Piece::of(prefix);
    let part = Part { piece: &piece, giver: None };
    explore_planted(program, model, &mut Job::all(part, limits, visitor), planted)
}

/// What is to be done with a program, whatever the width of its rows.
pub(super) struct Job<'a> {
    pub(super) part: Part<'a>,
    pub(super) limits: &'a Limits,
    pub(super) visitor: &'a mut dyn Visitor,
    /// Random descents instead of all executions.
    pub(super) descents: Option<Descents<'a>>,
    /// Of these.
    pub(super) total: Totals,
}

impl<'a> Job<'a> {
    fn all(part: Part<'a>, limits: &'a Limits, visitor: &'a mut dyn Visitor) -> Self {
        Job { part, limits, visitor, descents: None, total: Totals::default() }
    }
}

/// Tries rows of more and more bits.
pub(super) fn explore_planted(
    program: &Program,
    model: &Model,
    job: &mut Job<'_>,
    planted: Option<Planted>,
) -> Result<Summary, Abstain> {
    if let Some((reason, line)) = unmodelled(program, model) {
        return Err(Abstain { reason, line });
    }
    let front = FrontEnd {
        planted,
        wide_whole: model.variant("Q2") == Some("A"),
        cas_writes_back: ["Q16", "CAS"].iter().any(|q| model.variant(q) == Some("B")),
        reconverging: model.variant("Q14") == Some("B"),
        both_arms: model.variant("TOKIF") == Some("B"),
        masked_too: model.variant("TQ21") == Some("B"),
        loop_bound: job.limits.loop_bound,
    };
    let flow = |(t, thread)| Rc::new(Flow::new(thread, || seen_registers(program, t)));
    let flows: Vec<Rc<Flow>> = program.threads.iter().enumerate().map(flow).collect();
    let most = most_events(program, &flows, job.limits);
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
        Attempt::TooWide => Err(Abstain { reason: "an execution of more than 1024 events".into(), line: 0 }),
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
        Err(Stop::Abstain(a)) => return Err(a),
        Err(_) => return Ok(Attempt::TooWide),
    };
    // Descents stand for all executions: none is left out.
    let on = if job.descents.is_some() { Reductions::NONE } else { limits.reductions };
    let alike = if on.threads { Alike::planted(program, front.planted) } else { Alike::default() };
    let mut search = Search {
        unseen: Unseen::new(program, on, front.planted),
        alike,
        tail: None,
        state,
        share: Share::new(part.piece, part.giver),
        ended: false,
        path: Vec::new(),
        limits,
        summary: Summary::default(),
        steps: 0,
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
    state.evaluator.retire();
    match result {
        Ok(()) | Err(Stop::Bound) if !ended => Ok(Attempt::Finished(summary)),
        Ok(()) | Err(Stop::Bound | Stop::Visitor) => {
            Ok(Attempt::Finished(Summary { stopped: true, ..summary }))
        }
        Err(Stop::TooWide) => {
            let shown = summary.complete + summary.blocked;
            debug_assert_eq!(shown, 0, "`State::fits` counts every event there can be");
            Ok(Attempt::TooWide)
        }
        Err(Stop::Abstain(a)) => Err(a),
    }
}
