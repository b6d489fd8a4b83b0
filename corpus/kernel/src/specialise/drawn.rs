//! CTAs that draw a number from a counter, and are known by it from then on.
//!
//! Such a kernel reads no number of its CTA: each draws one by an atomic addition of 1, and stores at places that this number
//! decides. CTAs that cannot tell which one they are may be named in any way, so they are named in the order in which they draw:
//! CTA n draws n. Its addition is then a wait until the word is n, and the store of n + 1 there by one atomic operation: it reads
//! from the same write, in the same order and scope. No CTA waits longer than in the kernel, because those before it have drawn in
//! any case. Conditions, else the kernel is abstained from:
//!
//! - there are no clusters, and no CTA reads which one it is;
//! - each CTA draws once from each counter, and in one order from several: there is only one;
//! - nothing else touches the word. It is zero at the start, as all words are that are accessed atomically.

use super::item::Trace;
use super::launch::{Here, Launch};
use super::touch::Touch;
use crate::Refusal;
use crate::ptx::{Kernel, What};
use moire_program::ir::{AtomOp, Op};
use std::collections::BTreeSet;

/// Whether CTAs may be named in any way.
pub(super) fn may_be(kernel: &Kernel, launch: &Launch) -> bool {
    let adds = |what: &What| matches!(what, What::Core(Op::Rmw { op: AtomOp::Add, dst: Some(_), .. }));
    launch.cluster == [1; 3] && kernel.body.iter().any(|s| adds(&s.what)) && kernel.is_anonymous()
}

/// Checks that each CTA draws once, from a word that nothing else touches.
pub(super) fn once(places: &[Here], traces: &[Trace]) -> Result<(), Refusal> {
    let warps = || places.iter().zip(traces);
    let draws = || warps().flat_map(|(here, t)| t.drawn.iter().map(|d| (here.cta, *d)));
    let Some((_, first)) = draws().next() else { return Ok(()) };
    let (mem, start, end, line) = first;
    let ctas: BTreeSet<u32> = draws().map(|(cta, _)| cta).collect();
    let all: BTreeSet<u32> = places.iter().map(|here| here.cta).collect();
    let same = draws().all(|(_, (m, from, to, _))| (m, from, to) == (mem, start, end));
    let meets = |t: &&Touch| t.mem == mem && t.ranges.iter().any(|r| r.0 < end && start < r.1);
    let touched = traces.iter().flat_map(|t| &t.items).flat_map(|p| p.item.touches()).filter(meets).count();
    let count = draws().count();
    if same && ctas == all && count == all.len() && touched == count {
        return Ok(());
    }
    let what = "numbers of CTAs from a counter that they use more than once, or in another way";
    Err(Refusal::Abstained { what: what.into(), line })
}
