//! S4: arrivals count each lane, and all lanes of a part arrive in one phase.
//!
//! A joined arrival at an mbarrier is one arrival a lane, all in one phase. Single lanes could arrive in different phases;
//! then some arrival follows no wait for the phase before it, or a phase has a surplus, and both are protocol errors that
//! the exploration reports for any lane. At a barrier of all threads of a CTA, and at a barrier of the cluster, each
//! thread is in its own n-th phase. At a named barrier with a count nobody checks a protocol. There lanes stay joined if
//! they cannot be in different phases: exactly as many lanes as the count take part, and either each waits whenever it
//! arrives, or arrives once.

use super::part::{Apart, Done, SomeLanes, State};
use super::planted::Planted;
use crate::ir::{BarKind, Goes, Instr, Op, Operand, Thread};

/// Passes if lanes that arrive at a barrier arrive in one phase.
pub(super) fn check(part: &SomeLanes<'_>, state: &State, op: &Op) -> Done<()> {
    let Op::Bar { id, count: Some(count), .. } = op else { return Ok(()) };
    let number = |o: &Operand| part.operand(state, *o).one().filter(|k| k.base.is_none()).map(|k| k.number);
    let together = number(id).zip(number(count)).is_some_and(|(id, count)| in_step(part, id, count));
    if together || !part.several() || part.has(Planted::Steps) { Ok(()) } else { Err(Apart::All) }
}

/// Whether the lanes that take part in a named barrier are always in the same phase.
fn in_step(part: &SomeLanes<'_>, id: u128, count: u128) -> bool {
    let here = |t: &&Thread| t.place.same_cta(&part.code().place);
    let uses = |t: &Thread| t.body.iter().filter(|i| may_be(i, id)).count();
    let all: Vec<&Thread> = part.program.threads.iter().filter(here).filter(|t| uses(t) > 0).collect();
    let lanes: u32 = all.iter().map(|t| t.place.lanes().count_ones()).sum();
    let waits = |i: &Instr| !matches!(i.op, Op::Bar { kind: BarKind::Arrive, .. });
    let always = all.iter().all(|t| t.body.iter().filter(|i| may_be(i, id)).all(waits));
    let once = all.iter().all(|t| uses(t) == 1 && !loops(t));
    u128::from(lanes) == count && (always || once)
}

/// Whether an instruction may be about the named barrier.
fn may_be(instr: &Instr, id: u128) -> bool {
    let Op::Bar { id: number, .. } = &instr.op else { return false };
    !matches!(number, Operand::Imm(n) if u128::try_from(*n) != Ok(id))
}

fn loops(code: &Thread) -> bool {
    let back = |(pc, i): (usize, &Instr)| match i.op.goes() {
        Goes::To(target) => target <= pc,
        Goes::Closes => true,
        Goes::On | Goes::Opens | Goes::End => false,
    };
    code.body.iter().enumerate().any(back)
}
