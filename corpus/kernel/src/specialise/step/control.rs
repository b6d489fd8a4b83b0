//! Runs election of a lane, launch control, and instructions without effect on other threads.
//!
//! A cluster that has started cannot be cancelled, and a launch of one cluster has no other. So there `try_cancel` answers
//! that nothing was cancelled. In a larger launch other clusters may or may not have started, so the answer is unknown.
//! PTX ISA 9.2, 9.7.13.14 and 9.7.13.17.

use super::place::Place;
use super::{Executing, Made, Then};
use crate::Refusal;
use crate::specialise::item::Content;
use crate::specialise::known::value::{Lanes, Val, Why};
use crate::specialise::registers::{Behind, Resize};
use crate::specialise::touch::{Kind, Mem, Touch};
use moire_program::ir::*;

/// The size of the answer of `try_cancel`, in bytes.
const ANSWER: u32 = 16;

pub(super) fn control(step: &mut Executing<'_, '_>, control: &Control) -> Result<Then, Refusal> {
    match control {
        Control::Elect { dst, pred, mask: lanes } => {
            let value = step.value(*lanes);
            let wanted = value.known().and_then(|l| l.one(step.mask));
            if wanted.is_none_or(|w| w & 0xffff_ffff != 0xffff_ffff && w != u64::from(step.mask)) {
                return step.abstain("elect.sync with a mask that is not full");
            }
            let named = u32::try_from(wanted.unwrap_or(0) & 0xffff_ffff).unwrap_or(0);
            step.meet(step.mask, named)?;
            let leader = (named & (step.mask | step.state.alive)).trailing_zeros();
            step.set(*pred, Val::Known(Lanes::from_fn(|l| u64::from(l == leader as usize))));
            if let Some(dst) = dst {
                step.set(*dst, Val::same(u64::from(leader)));
            }
            Ok(Then::Next)
        }
        Control::Ignored(Ignored::SetMaxRegisters { inc, count }) => resize(step, *inc, *count),
        Control::Ignored(what) => {
            step.note(format!("{} is ignored: it has no effect on what other threads see", what.name()));
            Ok(Then::Next)
        }
        Control::LaunchDependents => {
            if !step.round().launch.queued.followed {
                step.note(format!("{} is ignored: no grid behind this one is judged", control.name()));
            }
            Ok(Then::Next)
        }
        Control::Repeat(_) | Control::EndRepeat => step.abstain("repeat"),
        // Kernels are read with a table of their own for these.
        Control::Collective(collective) => step.abstain(collective.name()),
        Control::WaitDependencies => {
            if step.round().launch.queued.grid == 0 {
                let text = "behind griddepcontrol.wait the grids ahead of it, which are not judged, are taken to be complete";
                step.note(text);
            }
            step.leave(Op::Control(Control::WaitDependencies), Made::default())
        }
        Control::TryCancel { multicast, space, addr, mbarrier } => {
            try_cancel(step, (*multicast, *space), (addr, mbarrier))
        }
        Control::QueryCancel { ask, dst, src } => {
            cancelled(step, *ask, dst, *src);
            Ok(Then::Next)
        }
    }
}

/// Runs `setmaxnreg`. Whether every `.inc` finds enough registers is asked when all warps have run.
fn resize(step: &mut Executing<'_, '_>, inc: bool, count: u16) -> Result<Then, Refusal> {
    let behind = std::mem::replace(&mut step.state.behind, Behind::First);
    let line = step.line();
    step.warp.out.resized.insert(Resize { line, inc, count, behind });
    let text = match step.round().kernel.entry_registers() {
        Some(entry) => {
            format!("a thread is taken to start with {entry} registers, as ptxas 13.5 chooses them")
        }
        None => "setmaxnreg is ignored, as ptxas 13.5 ignores it (C7508) without .maxnreg or .minnctapersm"
            .to_owned(),
    };
    step.note(text);
    Ok(Then::Next)
}

fn try_cancel(
    step: &mut Executing<'_, '_>,
    (multicast, space): (bool, Space),
    (addr, mbarrier): (&Address, &Address),
) -> Result<Then, Refusal> {
    let mut made = Made::default();
    let address = step.address(addr);
    let touch = match step.place(space, &address)? {
        Place::In(mem @ Mem::Shared(_), at) => {
            at.one(step.mask).map(|at| Touch::one(mem, at, ANSWER, Kind::Async))
        }
        _ => None,
    };
    let Some(touch) = touch else {
        return step.abstain("an answer of `try_cancel` whose address differs from lane to lane");
    };
    let Mem::Shared(own) = touch.mem else { return Ok(Then::Next) };
    for cta in step.receivers(own, multicast) {
        step.stored(cta, touch.ranges[0].0, u64::from(ANSWER), Content::Opaque)?;
    }
    let answer = touch.ranges[0].0;
    let addr = made.touch(touch);
    let address = step.address(mbarrier);
    let barrier = step.shared(space, &address, MBARRIER_BYTES, Kind::Barrier)?;
    for cta in step.receivers(own, multicast) {
        step.warp.out.asks.push((cta, answer, barrier.ranges[0].0));
    }
    let mbarrier = made.touch(barrier);
    let op = Control::TryCancel { multicast, space, addr, mbarrier };
    step.leave(Op::Control(op), made)
}

/// Runs `query_cancel`.
fn cancelled(step: &mut Executing<'_, '_>, ask: CancelQuery, dst: &[Option<Reg>], src: Operand) {
    let line = step.line();
    let alone = step.round().launch.grid == step.round().launch.cluster;
    let answer = step.value(src);
    for (n, reg) in dst.iter().enumerate().filter_map(|(n, reg)| Some((n, (*reg)?))) {
        let axis = match ask {
            CancelQuery::FirstCtaAxis(axis) => usize::from(axis),
            CancelQuery::IsCanceled | CancelQuery::FirstCta => n,
        };
        let value = match (ask, answer.known()) {
            (CancelQuery::IsCanceled, Some(answer)) => Val::Known(answer.map(|a| u64::from(a != 0))),
            (_, Some(answer)) => Val::Known(answer.map(|a| first_cta(a)[axis % 3])),
            (CancelQuery::IsCanceled, None) if alone => Val::same(0),
            _ => Val::Unknown(Why::Computed(line)),
        };
        step.set(reg, value);
    }
    if answer.known().is_some() {
        let text = format!(
            "the first {TAKEN} times that a cluster asks for more work it gets that of a cluster behind those of the grid, then none"
        );
        step.note(text);
    } else if alone && ask == CancelQuery::IsCanceled {
        step.note("no other cluster is launched: clusterlaunchcontrol finds none to cancel");
    }
}

/// How many clusters each one takes the work of.
const TAKEN: usize = 3;
/// Bits of a coordinate in the number that stands for an answer.
const AXIS: u32 = 20;

/// The number that stands for an answer in a register: 0 if there is no cluster left, else one more than the coordinates of the
/// first CTA of the cluster.
pub(super) fn answer(step: &Executing<'_, '_>, n: usize) -> u64 {
    if n >= TAKEN {
        return 0;
    }
    let (launch, here) = (step.round().launch, &step.warp.here);
    let further = here.cluster as usize * TAKEN + n;
    let x = u64::from(launch.grid[0]) + further as u64 * u64::from(launch.cluster[0]);
    1 + x
}

/// The coordinates of the first CTA that an answer names.
fn first_cta(answer: u64) -> [u64; 3] {
    let low = (1 << AXIS) - 1;
    let at = answer.wrapping_sub(1);
    [at & low, at >> AXIS & low, at >> (2 * AXIS) & low]
}
