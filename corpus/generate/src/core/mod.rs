//! Threads that communicate through memory, fences and barriers: random programs, critical cycles, threads alike.

mod alike;
mod multimem;
mod typed;
mod wide;

pub use alike::alike;
pub use multimem::multimem;
pub use typed::typed;
pub use wide::{Style, wide};

use crate::config::Knobs;
use crate::stream::Family;
use crate::{random, shapes};
use arbitrary::{Arbitrary, Unstructured};
use moire_program::ir::Program;

/// The families of the stream.
pub(crate) const FAMILIES: &[Family] = &[
    Family { name: "random", share: 8, draw: any },
    Family { name: "shapes", share: 8, draw: |u| shapes::draw(u).ok() },
    Family { name: "wide", share: 3, draw: |u| Some(wide(u, Style::Wide)) },
    Family { name: "plain", share: 3, draw: |u| Some(wide(u, Style::Dat3m)) },
    Family { name: "alike", share: 1, draw: |u| alike(u) },
    Family { name: "multimem", share: 1, draw: |u| multimem(u) },
    Family { name: "typed", share: 3, draw: |u| typed(u) },
];

fn any(u: &mut Unstructured<'_>) -> Option<Program> {
    let knobs = Knobs::arbitrary(u).ok()?;
    random::program(u, &knobs).ok()
}
