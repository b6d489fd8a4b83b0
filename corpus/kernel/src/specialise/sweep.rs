//! Chooses values for parameters that have none: small ones, and larger ones where more of the kernel runs with them.
//!
//! A parameter gets a value when the run ahead cannot go on without it: the smallest. Then each parameter is tried with
//! larger values, one parameter after another, and keeps a value with which more statements are reached, more loops go
//! round twice or more mbarriers are waited for in a second phase. What no single launch does is looked for by [`super::cover`]. A parameter from which addresses are computed, such as
//! the length of a row, gets multiples of 128: with smaller ones rows that are different memory would overlap. All trials together have one allowance of work, so the
//! choice is a function of the kernel and the launch.

use super::budget::Budget;
use super::coverage::Coverage;
use super::goals::{Goal, Goals};
use super::known::strides::strides;
use super::launch::Launch;
use super::need::{Need, Stopped};
use super::{STEPS, survey};
use crate::Refusal;
use crate::ptx::Kernel;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Values that are tried, in this order: counts, and sizes of tiles with their small multiples.
const COUNTS: [u64; 20] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048];
/// The least length of a row with which rows are taken not to overlap.
pub(super) const APART: u64 = 128;
/// Values that are tried for what addresses are computed from.
const LENGTHS: [u64; 7] = [APART, 256, 384, 512, 768, 1024, 2048];
/// An instruction descriptor of `tcgen05.mma` without its columns: 128 rows, sums in `f32` of products of `bf16` (PTX ISA 9.2,
/// 9.7.16.4.2), and columns that are tried.
const PRODUCT: u64 = 0x0800_0490;
const COLUMNS: [u64; 6] = [16, 32, 64, 128, 192, 256];
/// Values that are tried first where there are so many parameters that not all values of each can be tried.
const PROBES: [u64; 6] = [2, 4, 16, 128, 512, 2048];
/// Most parameters that get a value.
const NEEDS: usize = 64;
/// Most launches that are run ahead.
const TRIALS: usize = 160;

/// Values for the parameters of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The launch with the smallest values, then that with the values with which most of the kernel runs, if they differ.
    /// Never none.
    pub launches: Vec<Launch>,
    /// The parameters that got a value, in the order in which the run ahead met them.
    pub needs: Vec<Need>,
}

/// Chooses values for all parameters that the launch needs and does not have.
pub fn sweep(kernel: &Kernel, goals: &Goals, launch: &Launch) -> Sweep {
    let (budget, strides) = (Budget::new(2 * STEPS), strides(kernel));
    let mut search = Search { kernel, goals, budget, strides, trials: 0, needs: Vec::new() };
    let mut best = search.filled(launch.clone());
    // The smallest values may be too small to run at all.
    for n in (0..search.needs.len()).rev() {
        if best.1.is_err() {
            best = search.raised(n, best);
        }
    }
    let mut launches = vec![best.0.clone()];
    let mut n = 0;
    while best.1.as_ref().is_ok_and(|c| !search.is_full(c)) && n < search.needs.len() {
        best = search.raised(n, best);
        n += 1;
    }
    if best.0 != launches[0] {
        launches.push(best.0);
    }
    Sweep { launches, needs: search.needs }
}

/// A launch, and what of the kernel it runs.
type Tried = (Launch, Result<Coverage, Refusal>);

struct Search<'k> {
    kernel: &'k Kernel,
    goals: &'k Goals,
    budget: Budget,
    strides: BTreeSet<(u16, u32)>,
    trials: usize,
    needs: Vec<Need>,
}

impl Search<'_> {
    /// The launch with the smallest value for all that it needs.
    fn filled(&mut self, mut launch: Launch) -> Tried {
        loop {
            self.trials += 1;
            match survey(self.kernel, &launch, &self.budget, false) {
                Ok(coverage) => return (launch, Ok(coverage)),
                Err(Stopped { refusal, need: Some(need) }) => {
                    let known = launch.found(self.kernel, &need).is_some();
                    let least = self.values(&launch, &need).first().copied();
                    let Some(least) =
                        least.filter(|_| !known && self.needs.len() < NEEDS && self.trials < TRIALS)
                    else {
                        return (launch, Err(refusal));
                    };
                    launch = launch.given(self.kernel, &need, least);
                    if !self.needs.iter().any(|n| n.is(&need)) {
                        self.needs.push(need);
                    }
                }
                Err(Stopped { refusal, need: None }) => return (launch, Err(refusal)),
            }
        }
    }

    fn values(&self, launch: &Launch, need: &Need) -> Vec<u64> {
        if need.behind {
            return COUNTS.to_vec();
        }
        if launch.words.is_some() && need.decides.starts_with("an instruction descriptor") {
            return COLUMNS.map(|n| PRODUCT | n >> 3 << 17).to_vec();
        }
        let place = (need.index, need.at);
        let all: &[u64] = if self.strides.contains(&place) { &LENGTHS } else { &COUNTS };
        launch.allowed(place, all.iter().copied())
    }

    /// Whether some of a few values of a parameter is better.
    fn matters(&mut self, need: &Need, best: &Tried) -> bool {
        PROBES.iter().any(|v| {
            let launch = best.0.given(self.kernel, need, *v);
            let tried = self.filled(launch);
            self.score(&tried.1) < self.score(&best.1)
        })
    }

    /// The launch with a larger value of one parameter, if that is better.
    fn raised(&mut self, n: usize, mut best: Tried) -> Tried {
        let need = self.needs[n].clone();
        if self.needs.len() * COUNTS.len() > TRIALS && !self.matters(&need, &best) {
            return best;
        }
        let least = best.0.found(self.kernel, &need).unwrap_or(0);
        for v in self.values(&best.0, &need).into_iter().filter(|v| *v > least) {
            if self.trials >= TRIALS || best.1.as_ref().is_ok_and(|c| self.is_full(c)) {
                break;
            }
            let launch = best.0.given(self.kernel, &need, v);
            let tried = self.filled(launch);
            if matches!(tried.1, Err(Refusal::Bounded(_))) {
                break;
            }
            if self.score(&tried.1) < self.score(&best.1) {
                best = tried;
            }
        }
        best
    }

    /// The statements that a launch does not run, and the loops that do not pass twice.
    fn left(&self, found: &Coverage) -> usize {
        let left = self.goals.left(&found.met, &BTreeSet::new());
        left.iter().filter(|goal| matches!(goal, Goal::Runs(_) | Goal::Repeats(_))).count()
    }

    /// Whether a larger launch is not worth trying: everything runs, every loop goes round twice and some ring wraps.
    fn is_full(&self, found: &Coverage) -> bool {
        self.left(found) == 0 && found.once().next().is_none() && (found.awaited == 0 || found.wrapped > 0)
    }

    /// What of the kernel a launch leaves out; less is better. A launch that is refused leaves out everything.
    fn score(&self, found: &Result<Coverage, Refusal>) -> (bool, usize, usize, usize, Reverse<usize>) {
        match found {
            Err(_) => (true, 0, 0, 0, Reverse(0)),
            Ok(c) => {
                let single = c.awaited.saturating_sub(c.wrapped);
                (false, c.missed.len(), self.left(c) + c.once().count(), single, Reverse(c.awaited))
            }
        }
    }
}
