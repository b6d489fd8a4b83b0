//! Makes a program smaller while a predicate holds: small named passes, one size, one normal form.
//!
//! Contract: every candidate is a valid program. A candidate is accepted only if the predicate holds and it is smaller in
//! the order (threads, memory events, instructions, places, weight, canonical encoding). The result is 1-minimal: no
//! smaller candidate of any pass satisfies the predicate. It is in canonical form, so one bug has one text.

mod cuts;
pub(crate) mod passes;
mod tensor;
mod weaken;

pub use cuts::{Cut, cuts, ddmin, join, without};

use std::collections::{BTreeMap, BTreeSet};

use crate::features::features;
use crate::ir::{Placement, Program, Scope};
use crate::{canon, text};

/// One way to make programs smaller.
#[derive(Clone, Copy)]
pub struct Pass {
    /// The name.
    pub name: &'static str,
    /// The programs after one application of the pass; large cuts come first.
    pub candidates: fn(&Program) -> Box<dyn Iterator<Item = Program> + '_>,
}

/// All passes, the large cuts first.
pub fn passes() -> &'static [Pass] {
    passes::ALL
}

/// Bounds of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most calls of the predicate, each of which runs engines.
    pub tried_max: usize,
}

impl Default for Limits {
    /// Far more calls than the few hundred that programs of the generator need.
    fn default() -> Self {
        Limits { tried_max: 20_000 }
    }
}

/// The result of a reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduced {
    /// The least program reached, in canonical form.
    pub program: Program,
    /// Calls of the predicate.
    pub tried: usize,
    /// Accepted candidates by pass.
    pub accepted: BTreeMap<&'static str, usize>,
    /// False if `tried_max` stopped the reduction.
    pub complete: bool,
}

/// The size order: threads, memory events, instructions, spread of places, weight of modifiers, text.
pub type Size = (usize, usize, usize, usize, usize, String);

/// The size of a program that is in canonical form.
pub fn size(program: &Program) -> Size {
    let f = features(program);
    (
        f.threads,
        f.memory_events,
        f.instructions,
        spread(program),
        weaken::weight(program),
        text::print(program),
    )
}

/// How far apart the threads are: the levels (warp, CTA, cluster, GPU) that each two of them do not share, and the host.
fn spread(program: &Program) -> usize {
    let places: Vec<&Placement> = program.threads.iter().map(|thread| &thread.place).collect();
    let apart = |a: &Placement, b: &Placement| {
        let shared = [
            a.same_cta(b) && a.warp == b.warp,
            a.same_cta(b),
            a.includes(Scope::Cluster, b),
            a.includes(Scope::Gpu, b),
        ];
        shared.iter().filter(|shared| !**shared).count()
    };
    let pairs = places.iter().enumerate().flat_map(|(n, a)| places[..n].iter().map(|b| apart(a, b)));
    pairs.sum::<usize>() + places.iter().filter(|place| place.host).count()
}

/// Reduces `program` while `predicate` holds. If it does not hold for `program`, the result is its canonical form.
pub fn minimise(program: &Program, mut predicate: impl FnMut(&Program) -> bool, limits: Limits) -> Reduced {
    let (start, _) = canon::normal(program);
    let mut state = Reduced { program: start, tried: 0, accepted: BTreeMap::new(), complete: true };
    let mut refused: BTreeSet<String> = BTreeSet::new();
    // The normal form is a renaming of the program. If the predicate does not hold for it, there is nothing to reduce.
    state.tried += 1;
    if !predicate(&state.program) {
        return state;
    }
    let mut least = size(&state.program);
    'again: loop {
        for pass in passes() {
            let current = state.program.clone();
            for candidate in (pass.candidates)(&current) {
                let (candidate, _) = canon::normal(&candidate);
                let measure = size(&candidate);
                if measure >= least || refused.contains(&measure.5) {
                    continue;
                }
                if state.tried >= limits.tried_max {
                    state.complete = false;
                    return state;
                }
                state.tried += 1;
                if predicate(&candidate) {
                    state.program = candidate;
                    least = measure;
                    *state.accepted.entry(pass.name).or_default() += 1;
                    continue 'again;
                }
                refused.insert(measure.5);
            }
        }
        return state;
    }
}
