//! Reductions leave out executions whose outcomes other executions show as well. Each has a switch; none is on by default.
//!
//! What is kept: the outcomes, as far as registers the conditions of the program name and memory go; the flags and what
//! they are about; whether a thread can wait for ever. Not kept: how many executions there are, and their keys.
//! `moire_lab::differential::reduced` compares.
//!
//! # Symmetric threads (`threads`)
//!
//! Exchanging two threads whose code, registers and place no model can tell apart maps executions to executions
//! (`symmetry`). Let `<` be a strict partial order on the threads of a class that is a matter of the execution and not of
//! names: coherence of the write each makes at one instruction; elsewhere, what each reads from, read by read, sources in
//! symmetric threads told apart by class and position only. It has a linear extension, and renaming the threads along it
//! gives an execution in which no thread comes `<`-before one with a lower number. So a graph in which one does is left,
//! as soon as it is seen. A pair of the order, once in a graph, is in every larger one. Which model it is does not
//! matter. What is missing is what is there with threads exchanged: [`crate::reduce::symmetry::Alike`] adds it to outcomes and findings.
//!
//! # Unobserved accesses (`reads`, `writes`, `atomics`)
//!
//! Loads into registers that nothing needs; stores to, and atomics on, memory that is only read by such loads or by such
//! atomics, these either of one kind that commutes or not needing what they read (`unobserved`). They are placed when there
//! is nothing else left to place: behind that point, the *tail*, no register, path or end of a thread depends on anything.
//! So of all ways to end there, one of each effect is enough, and a graph is left when every effect that its larger ones
//! can still have was shown in this tail (`tail`). Effects are
//!
//! - final memory: at each place a write that nothing is coherence-after, so that writes that something is after already
//!   are out, whatever is added; what commuting atomics leave is one value where the model orders them in a chain, which
//!   is asked of it for every two of them (`commute`);
//! - flags: those of the graph without the tail, if communication can only take flags away; that is a matter of the shape
//!   of their expressions ([`moire_cat::Model::flags_shrink`]). Elsewhere nothing is left out unless there is no flag;
//! - whether there is a hang, regardless of which thread waits.
//!
//! Releases, acquires and fences through such events are no exception: they decide what the rest may be, and the rest is
//! there if one way to end is. No monotonicity beyond that of pruning is used, so models of users are as good as ours.
//!
//! # Who refuses reductions
//!
//! Random descents, because a descent must be drawn from all executions. The fleet, because workers count every execution. The
//! oracles of campaigns, because they compare executions, or every register that was loaded. Programs with an mbarrier, a copy
//! or a tensor core have nothing to reduce.

pub(crate) mod commute;
pub(crate) mod exchange;
pub mod symmetry;
pub(crate) mod tail;
pub(crate) mod unobserved;

use std::fmt;
use std::str::FromStr;

/// The reductions that are switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reductions {
    /// One execution of those that differ by exchanging threads.
    pub threads: bool,
    /// Unobserved loads take one source.
    pub reads: bool,
    /// Of unobserved stores only the last counts.
    pub writes: bool,
    /// Atomics that commute come in one order.
    pub atomics: bool,
}

/// Names of the switches, in the order of the fields.
pub const NAMES: [&str; 4] = ["threads", "reads", "writes", "atomics"];

impl Reductions {
    /// Every execution is visited.
    pub const NONE: Reductions = Reductions { threads: false, reads: false, writes: false, atomics: false };
    /// All of them.
    pub const ALL: Reductions = Reductions { threads: true, reads: true, writes: true, atomics: true };

    /// Each on its own, and all.
    pub fn settings() -> Vec<Reductions> {
        let one = |name: &&str| name.parse().unwrap_or(Reductions::NONE);
        NAMES.iter().map(one).chain([Reductions::ALL]).collect()
    }

    fn switches(&mut self) -> [&mut bool; 4] {
        [&mut self.threads, &mut self.reads, &mut self.writes, &mut self.atomics]
    }
}

/// A word that names no reduction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no reduction; there are {list}, all and none", list = NAMES.join(", "))]
pub struct Unknown(String);

impl FromStr for Reductions {
    type Err = Unknown;

    /// `all`, `none`, or names joined by commas.
    fn from_str(text: &str) -> Result<Self, Unknown> {
        let mut out = match text {
            "all" => return Ok(Reductions::ALL),
            _ => Reductions::NONE,
        };
        for word in text.split(',').filter(|_| text != "none") {
            let at = NAMES.iter().position(|n| *n == word).ok_or_else(|| Unknown(word.to_owned()))?;
            *out.switches()[at] = true;
        }
        Ok(out)
    }
}

impl fmt::Display for Reductions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut own = *self;
        let on = NAMES.iter().zip(own.switches()).filter(|(_, on)| **on).map(|(name, _)| *name);
        let words: Vec<&str> = on.collect();
        f.write_str(if words.is_empty() { "none".to_owned() } else { words.join(",") }.as_str())
    }
}

/// Parts of the tree of decisions that reductions left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// By [`Reductions::threads`].
    pub threads: u64,
    /// By the others, which work together.
    pub unseen: u64,
}

impl Cut {
    /// Of two parts together.
    #[must_use]
    pub fn plus(self, other: Cut) -> Cut {
        Cut { threads: self.threads + other.threads, unseen: self.unseen + other.unseen }
    }
}
