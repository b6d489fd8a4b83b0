//! Cuts: the parts that can be left out of a program. Every machine computes the same list, so several machines can try
//! parts of it in parallel, and the cuts that hold are combined.
//!
//! Contract: [`cuts`] depends on the program alone; the large cuts come first. A valid program after a cut is in canonical
//! form and smaller, or it is no candidate. Two cuts that hold alone need not hold together: see [`join`].
//! [`minimise`](super::minimise) does the last steps.

use super::{passes, size};
use crate::canon;
use crate::ir::Program;
use std::collections::{BTreeMap, BTreeSet};

/// Longest run of instructions that is cut at once; shorter runs have half, a quarter and an eighth of its length.
const RUN_MAX: usize = 8;

/// A part of a program to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// A thread.
    Thread(usize),
    /// A run of instructions of a thread.
    Run {
        /// The thread.
        thread: usize,
        /// The first instruction.
        from: usize,
        /// One past the last instruction.
        to: usize,
    },
}

/// All cuts of a program: threads, then runs of eight, four, two instructions, then each instruction alone.
pub fn cuts(program: &Program) -> Vec<Cut> {
    let threads = (0..program.threads.len()).filter(|_| program.threads.len() > 1).map(Cut::Thread);
    let lengths = std::iter::successors(Some(RUN_MAX), |n| (*n > 1).then_some(n / 2));
    let runs = lengths.flat_map(|n| {
        program.threads.iter().enumerate().flat_map(move |(thread, t)| {
            let len = t.body.len();
            (0..len).step_by(n).map(move |from| Cut::Run { thread, from, to: (from + n).min(len) })
        })
    });
    let mut seen = BTreeSet::new();
    threads.chain(runs).filter(|cut| seen.insert(*cut)).collect()
}

/// The program after these cuts; `None` if it is not smaller, or if the cuts do not fit the program.
pub fn without(program: &Program, cuts: &[Cut]) -> Option<Program> {
    let mut threads = BTreeSet::new();
    let mut gone: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for cut in cuts {
        match *cut {
            Cut::Thread(t) => drop(threads.insert(t)),
            Cut::Run { thread, from, to } => gone.entry(thread).or_default().extend(from..to),
        }
    }
    if threads.len() >= program.threads.len()
        || threads.iter().chain(gone.keys()).any(|t| *t >= program.threads.len())
    {
        return None;
    }
    let mut next = program.clone();
    for (thread, places) in &gone {
        let places: Vec<usize> =
            places.iter().copied().filter(|at| *at < program.threads[*thread].body.len()).collect();
        for run in places.chunk_by(|a, b| a + 1 == *b).rev() {
            next = passes::without(&next, *thread, run[0], run[0] + run.len());
        }
    }
    for thread in threads.iter().rev() {
        next = passes::without_thread(&next, *thread);
    }
    let (next, _) = canon::normal(&next);
    (size(&next) < size(&canon::normal(program).0)).then_some(next)
}

/// Combines cuts that hold alone: tries all at once, and otherwise adds one after the other and keeps those that still
/// hold. Returns the smallest program for which `holds` is true, and the number of calls of `holds`.
pub fn join(
    program: &Program,
    cuts: &[Cut],
    mut holds: impl FnMut(&Program) -> bool,
) -> (Option<Program>, usize) {
    let mut tried = 0;
    let mut ask = |cuts: &[Cut]| {
        let candidate = without(program, cuts)?;
        tried += 1;
        holds(&candidate).then_some(candidate)
    };
    if let Some(all) = ask(cuts) {
        return (Some(all), tried);
    }
    let (mut kept, mut best) = (Vec::new(), None);
    for cut in cuts {
        kept.push(*cut);
        match ask(&kept) {
            Some(smaller) => best = Some(smaller),
            None => drop(kept.pop()),
        }
    }
    (best, tried)
}

/// Delta debugging, the baseline of `moire bench minimise`: `ddmin` of Zeller and Hildebrandt (IEEE Transactions on
/// Software Engineering 28(2), 2002) over the instructions of all threads. Returns the reduced program, in canonical form,
/// and the number of calls of `holds`. The result is 1-minimal among cuts of one instruction; `ddmin` has no other
/// reductions.
pub fn ddmin(program: &Program, mut holds: impl FnMut(&Program) -> bool) -> (Program, usize) {
    let all: Vec<Cut> =
        passes::places(program).map(|(thread, at)| Cut::Run { thread, from: at, to: at + 1 }).collect();
    let (mut kept, mut tried, mut parts) = (all.clone(), 0, 2);
    let mut ask = |kept: &[Cut]| {
        let left_out: Vec<Cut> = all.iter().filter(|cut| !kept.contains(cut)).copied().collect();
        let Some(candidate) = without(program, &left_out) else { return false };
        tried += 1;
        holds(&candidate)
    };
    while kept.len() >= 2 {
        let size = kept.len().div_ceil(parts);
        let chunks: Vec<Vec<Cut>> = kept.chunks(size).map(<[Cut]>::to_vec).collect();
        let rest =
            |chunk: &Vec<Cut>| kept.iter().filter(|cut| !chunk.contains(cut)).copied().collect::<Vec<_>>();
        if let Some(chunk) = chunks.iter().find(|chunk| ask(chunk)) {
            (kept, parts) = (chunk.clone(), 2);
        } else if let Some(fewer) = chunks.iter().map(rest).find(|rest| ask(rest)) {
            (kept, parts) = (fewer, (parts - 1).max(2));
        } else if parts >= kept.len() {
            break;
        } else {
            parts = (2 * parts).min(kept.len());
        }
    }
    let left_out: Vec<Cut> = all.iter().filter(|cut| !kept.contains(cut)).copied().collect();
    (without(program, &left_out).unwrap_or_else(|| canon::normal(program).0), tried)
}
