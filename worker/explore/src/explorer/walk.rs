//! Random descents: one leaf after the other of a tree too big to finish, and how big the tree is.
//!
//! A descent draws one alternative at each decision, of those that get as far as the next decision or to a leaf: each is
//! tried so far, and the one drawn is then taken. Alternatives by which two events communicate in a way no descent has
//! shown yet are drawn more often; every alternative that leads anywhere can be drawn, so every leaf can be reached, and
//! its path shows it again ([`crate::explore`] with it as prefix).
//!
//! *How many executions there are* is estimated as by Knuth (Estimating the efficiency of backtrack programs, Mathematics
//! of Computation 29, 1975): a descent that ends at a leaf stands for as many as the reciprocal of the probability with
//! which it was drawn, one that is lost for none. What earlier descents showed changes how the next is drawn, never
//! what it is expected to say: the estimate is unbiased. Its error is that of the mean.

use super::entry::{Job, Part, explore_planted};
use super::{Found, Search};
use crate::leaf::EventRef;
use crate::share::Piece;
use crate::visit::{Abstain, Bound, LeafView, Limits, Summary, Visitor};
use moire_cat::Model;
use moire_program::ir::Program;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// How much more often than the others an alternative is drawn that shows something new.
const NEW: u64 = 4;

/// Random descents that are wanted.
#[derive(Clone, Copy)]
pub struct Descents<'a> {
    /// How many.
    pub count: u64,
    /// A number below the one given, each equally often: everything random there is.
    pub below: &'a dyn Fn(u64) -> u64,
}

/// A mean over random descents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Unbiased.
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
}

/// What random descents gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Those that were made.
    pub descents: u64,
    /// Those of them that ended at no execution.
    pub lost: u64,
    /// Different executions that were visited.
    pub different: u64,
    /// How many executions there are, blocked ones included.
    pub executions: Estimate,
    /// Ways in which two events communicated: who reads from whom, which write comes before which.
    pub communications: usize,
    /// Totals; executions as often as they were visited.
    pub summary: Summary,
}

/// A way for two events to communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    reads: bool,
    from: EventRef,
    to: EventRef,
}

/// What the next call for alternatives is for.
#[derive(Clone, Debug)]
enum Mode {
    /// To see which lead anywhere.
    Try(Tried),
    /// To take the one behind so many.
    Take(usize),
    /// Taken.
    Done,
}

/// Alternatives of one decision.
#[derive(Clone, Debug, Default)]
struct Tried {
    /// Those that lead somewhere: number and shape.
    viable: Vec<(usize, Option<Shape>)>,
    /// How many were tried.
    count: usize,
    /// The one that is tried now, and whether it has led anywhere.
    now: Option<(usize, Option<Shape>)>,
    led: bool,
}

impl Tried {
    /// The one tried now is over.
    fn over(&mut self) {
        let now = self.now.take();
        self.viable.extend(now.filter(|_| self.led));
        self.led = false;
    }
}

/// The state of random descents.
pub(super) struct Walk<'a> {
    wanted: Descents<'a>,
    mode: Mode,
    /// Reciprocal of the probability of the decisions of this descent.
    weight: f64,
    shown: BTreeSet<Shape>,
    total: Totals,
}

impl<'a> Walk<'a> {
    pub(super) fn new(wanted: Descents<'a>) -> Self {
        Walk { wanted, mode: Mode::Done, weight: 1.0, shown: BTreeSet::new(), total: Totals::default() }
    }

    pub(super) fn total(&self) -> Totals {
        Totals { communications: self.shown.len(), ..self.total }
    }
}

/// What descents gave so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    descents: u64,
    lost: u64,
    sum: f64,
    squares: f64,
    communications: usize,
}

impl Totals {
    fn estimate(&self) -> Estimate {
        let n = self.descents as f64;
        if self.descents == 0 {
            return Estimate::default();
        }
        let mean = self.sum / n;
        let variance = (self.squares / n - mean * mean).max(0.0);
        Estimate { mean, error: (variance / n).sqrt() }
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
    let part = Part { piece: &piece, giver: None };
    let mut visitor = Different { inner: visitor, seen: FxHashSet::default() };
    let mut job =
        Job { part, limits, visitor: &mut visitor, descents: Some(descents), total: Totals::default() };
    let mut summary = explore_planted(program, model, &mut job, None)?;
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

impl<const W: usize> Search<'_, W> {
    /// All descents.
    pub(super) fn descend(&mut self) -> Found {
        let count = self.walk.as_ref().map_or(0, |w| w.wanted.count);
        for _ in 0..count {
            let before = self.summary.complete + self.summary.blocked;
            if let Some(walk) = &mut self.walk {
                walk.weight = 1.0;
            }
            let result = self.visit();
            let found = self.summary.complete + self.summary.blocked - before;
            if let Some(walk) = &mut self.walk {
                let stands_for = walk.weight * found as f64;
                walk.total.descents += 1;
                walk.total.lost += u64::from(found == 0);
                walk.total.sum += stands_for;
                walk.total.squares += stands_for * stands_for;
            }
            result?;
        }
        Ok(())
    }

    /// Goes through the alternatives of a decision, or through one of them, drawn.
    pub(super) fn decide(&mut self, mut site: impl FnMut(&mut Self) -> Found) -> Found {
        if self.walk.is_none() {
            return site(self);
        }
        if self.led_here() {
            return Ok(());
        }
        self.set_mode(Mode::Try(Tried::default()));
        site(self)?;
        let result = if self.drawn() { site(self) } else { Ok(()) };
        self.set_mode(Mode::Done);
        result
    }

    fn set_mode(&mut self, mode: Mode) {
        if let Some(walk) = &mut self.walk {
            walk.mode = mode;
        }
    }

    /// Notes, where an alternative is only tried, that it got here; whether it is.
    pub(super) fn led_here(&mut self) -> bool {
        match &mut self.walk {
            Some(Walk { mode: Mode::Try(tried), .. }) => {
                tried.led = true;
                true
            }
            _ => false,
        }
    }

    /// Draws one of the alternatives that lead somewhere; whether there is one.
    fn drawn(&mut self) -> bool {
        let Some(walk) = &mut self.walk else { return false };
        let Mode::Try(mut tried) = std::mem::replace(&mut walk.mode, Mode::Done) else { return false };
        tried.over();
        let weight = |shape: &Option<Shape>| match shape {
            Some(shape) if !walk.shown.contains(shape) => NEW,
            _ => 1,
        };
        let total: u64 = tried.viable.iter().map(|(_, shape)| weight(shape)).sum();
        let mut left = if total > 1 { (walk.wanted.below)(total) } else { 0 };
        for (number, shape) in &tried.viable {
            let own = weight(shape);
            if left < own {
                walk.weight *= total as f64 / own as f64;
                walk.shown.extend(*shape);
                walk.mode = Mode::Take(*number);
                return true;
            }
            left -= own;
        }
        false
    }

    /// Whether this alternative is tried, or the one drawn; pushes it if so.
    pub(super) fn draw(&mut self, choice: u32, shape: impl FnOnce(&Self) -> Option<Shape>) -> bool {
        let trying = self.walk.as_ref().is_some_and(|w| matches!(w.mode, Mode::Try(_)));
        let shape = if trying { shape(self) } else { None };
        let Some(walk) = &mut self.walk else { return false };
        match &mut walk.mode {
            Mode::Try(tried) => {
                tried.over();
                tried.now = Some((tried.count, shape));
                tried.count += 1;
            }
            Mode::Take(0) => walk.mode = Mode::Done,
            Mode::Take(left) => {
                *left -= 1;
                return false;
            }
            Mode::Done => return false,
        }
        self.steps += 1;
        self.path.push(choice);
        true
    }

    /// Notes that a read that was open takes a write, drawn or because nothing else is left to it.
    pub(super) fn communicate(&mut self, write: usize, read: usize) {
        let taken = self.walk.as_ref().is_some_and(|walk| !matches!(walk.mode, Mode::Try(_)));
        if !taken {
            return;
        }
        let shape = self.read_by(write, read);
        if let Some(walk) = &mut self.walk {
            walk.shown.insert(shape);
        }
    }

    /// Somebody reads what somebody writes.
    pub(super) fn read_by(&self, write: usize, read: usize) -> Shape {
        Shape { reads: true, from: self.state.reference(write), to: self.state.reference(read) }
    }

    /// A read of a thread that has no number yet takes a write.
    pub(super) fn awaited_by(&self, write: usize, thread: usize, index: u16) -> Shape {
        let thread = u16::try_from(thread).unwrap_or(u16::MAX);
        Shape { reads: true, from: self.state.reference(write), to: EventRef { thread, index } }
    }

    /// A write comes before another.
    pub(super) fn follows(&self, first: usize, second: usize) -> Shape {
        Shape { reads: false, from: self.state.reference(first), to: self.state.reference(second) }
    }
}
