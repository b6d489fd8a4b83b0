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

use crate::visit::Summary;
use moire_execution::leaf::EventRef;
use std::collections::BTreeSet;

/// Weight of an alternative by which two events communicate as no descent has shown yet; others weigh one.
const NEW_WEIGHT: u64 = 4;

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
    /// Ways in which two events communicated: reads-from pairs and coherence pairs.
    pub communications: usize,
    /// Totals; executions as often as they were visited.
    pub summary: Summary,
}

/// A way for two events to communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    pub(super) reads: bool,
    pub(super) from: EventRef,
    pub(super) to: EventRef,
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

    /// Begins to try the alternatives of a decision.
    pub(super) fn begin(&mut self) {
        self.mode = Mode::Try(Tried::default());
    }

    /// Ends a decision.
    pub(super) fn end(&mut self) {
        self.mode = Mode::Done;
    }

    /// Notes, where an alternative is only tried, that it led here; whether it is.
    pub(super) fn led_here(&mut self) -> bool {
        match &mut self.mode {
            Mode::Try(tried) => {
                tried.led = true;
                true
            }
            _ => false,
        }
    }

    /// Whether alternatives are only tried.
    pub(super) fn is_trying(&self) -> bool {
        matches!(self.mode, Mode::Try(_))
    }

    /// How many descents are wanted.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted.count
    }

    /// Begins a descent.
    pub(super) fn start(&mut self) {
        self.weight = 1.0;
    }

    /// Counts a descent that found so many executions.
    pub(super) fn count(&mut self, found: u64) {
        let stands_for = self.weight * found as f64;
        self.total.descents += 1;
        self.total.lost += u64::from(found == 0);
        self.total.sum += stands_for;
        self.total.squares += stands_for * stands_for;
    }

    /// Notes that two events communicated.
    pub(super) fn show(&mut self, shape: Shape) {
        self.shown.insert(shape);
    }

    /// Draws one of the alternatives that lead somewhere; whether there is one.
    pub(super) fn drawn(&mut self) -> bool {
        let Mode::Try(mut tried) = std::mem::replace(&mut self.mode, Mode::Done) else { return false };
        tried.over();
        let weight = |shape: &Option<Shape>| match shape {
            Some(shape) if !self.shown.contains(shape) => NEW_WEIGHT,
            _ => 1,
        };
        let total: u64 = tried.viable.iter().map(|(_, shape)| weight(shape)).sum();
        let mut left = if total > 1 { (self.wanted.below)(total) } else { 0 };
        for (number, shape) in &tried.viable {
            let own = weight(shape);
            if left < own {
                self.weight *= total as f64 / own as f64;
                self.shown.extend(*shape);
                self.mode = Mode::Take(*number);
                return true;
            }
            left -= own;
        }
        false
    }

    /// Whether the next alternative is tried, or the one drawn.
    pub(super) fn takes(&mut self, shape: Option<Shape>) -> bool {
        match &mut self.mode {
            Mode::Try(tried) => {
                tried.over();
                tried.now = Some((tried.count, shape));
                tried.count += 1;
                true
            }
            Mode::Take(0) => {
                self.mode = Mode::Done;
                true
            }
            Mode::Take(left) => {
                *left -= 1;
                false
            }
            Mode::Done => false,
        }
    }
}

/// What descents gave so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) descents: u64,
    pub(super) lost: u64,
    pub(super) sum: f64,
    pub(super) squares: f64,
    pub(super) communications: usize,
}

impl Totals {
    pub(super) fn estimate(&self) -> Estimate {
        let n = self.descents as f64;
        if self.descents == 0 {
            return Estimate::default();
        }
        let mean = self.sum / n;
        let variance = (self.squares / n - mean * mean).max(0.0);
        Estimate { mean, error: (variance / n).sqrt() }
    }
}
