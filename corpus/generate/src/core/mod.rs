//! Threads that communicate through memory, fences and barriers: random programs, critical cycles, threads alike, phases of
//! a barrier.

mod alike;
mod multimem;
mod phases;
mod typed;
mod wide;

pub use alike::alike;
pub use multimem::multimem;
pub use phases::phases;
pub use typed::typed;
pub use wide::{Style, wide};

use crate::config::Knobs;
use crate::stream::{Family, WORDED};
use crate::{random, shapes};
use arbitrary::{Arbitrary, Unstructured};
use moire_program::ir::Program;

/// The families of the stream. Guided cycles are most of it, because they tell; the others draw what cycles have not.
pub(crate) const FAMILIES: &[Family] = &[
    Family { name: "cycles", share: 74, worded: 4, draw: |u| shapes::guided(u).ok() },
    Family { name: "shapes", share: 2, worded: WORDED, draw: |u| shapes::draw(u).ok() },
    Family { name: "random", share: 3, worded: WORDED, draw: any },
    Family { name: "wide", share: 2, worded: WORDED, draw: |u| Some(wide(u, Style::Wide)) },
    Family { name: "plain", share: 2, worded: WORDED, draw: |u| Some(wide(u, Style::Dat3m)) },
    Family { name: "alike", share: 1, worded: WORDED, draw: |u| alike(u) },
    Family { name: "phases", share: 3, worded: WORDED, draw: |u| phases(u) },
    Family { name: "multimem", share: 5, worded: 60, draw: |u| multimem(u) },
    Family { name: "typed", share: 12, worded: 80, draw: |u| typed(u) },
];

fn any(u: &mut Unstructured<'_>) -> Option<Program> {
    let knobs = Knobs::arbitrary(u).ok()?;
    random::program(u, &knobs).ok()
}
