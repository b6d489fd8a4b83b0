//! Branches on the result of a strong read that put no lanes apart: a wait, and a peek before a wait.
//!
//! A *wait* is a loop that reads, computes in registers, and can be left in one way. All lanes leave it that way, with the
//! result that leaves it; how often a lane goes round it makes no difference. What else the loop computes may differ.
//!
//! A *peek* is a try-wait whose result guards nothing but a wait for the same phase of the same mbarrier. A lane whose peek
//! succeeds and one that waits know the same and go on at the same place.

use crate::ir::{Control, Goes, Guard, Instr, Mbarrier, MbarrierOp, Op, Reg, Thread};
use crate::registers::{only_registers, uses};

/// How lanes leave a branch on a strong result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leave {
    /// Where all of them go on.
    pub(super) exit: usize,
    /// Where they wait first, or again.
    pub(super) again: usize,
    /// Registers that may then differ.
    pub(super) differ: Vec<Reg>,
    /// Whether the result of the branch is the same for all that left: of a wait, not of a peek.
    pub(super) known: bool,
}

/// How lanes leave the branch at `pc`, if it is a wait or a peek.
pub(super) fn leave(code: &Thread, pc: usize) -> Option<Leave> {
    wait(code, pc).map(|(leave, _)| leave).or_else(|| peek(code, pc))
}

fn branch(code: &Thread, pc: usize) -> Option<(Guard, usize)> {
    let Instr { guard: Some(guard), op: Op::Bra { target }, .. } = code.body.get(pc)? else { return None };
    Some((*guard, *target))
}

/// A wait that ends with the branch at `pc`, and the places of its loop.
fn wait(code: &Thread, pc: usize) -> Option<(Leave, Vec<usize>)> {
    let (guard, target) = branch(code, pc)?;
    [(target, pc + 1), (pc + 1, target)].into_iter().find_map(|(again, exit)| {
        let path = spins(code, again, pc)?;
        let mut differ = written(code, &path);
        differ.retain(|r| *r != guard.reg);
        Some((Leave { exit, again, differ, known: true }, path))
    })
}

/// The places from `from` to `to`, if one way leads there, on which lanes only read and compute.
fn spins(code: &Thread, from: usize, to: usize) -> Option<Vec<usize>> {
    let (mut pc, mut path) = (from, Vec::new());
    while pc != to {
        let instr = code.body.get(pc)?;
        if path.contains(&pc) {
            return None;
        }
        path.push(pc);
        pc = match (instr.op.goes(), instr.guard) {
            (Goes::To(target), None) => target,
            (Goes::On, _) if idle(instr) => pc + 1,
            (Goes::On | Goes::To(_) | Goes::Opens | Goes::Closes | Goes::End, _) => return None,
        };
    }
    Some(path)
}

/// Whether an instruction only reads something strong, or computes in registers of its lane.
fn idle(instr: &Instr) -> bool {
    let reads = matches!(instr.op, Op::Load { .. } | Op::Mbarrier(_)) && instr.op.is_strong_read();
    let always = reads || matches!(instr.op, Op::Fence { .. } | Op::ProxyFence(_));
    let ignored = matches!(instr.op, Op::Control(Control::Ignored(_)));
    ignored || only_registers(&instr.op) || (always && instr.guard.is_none())
}

fn written(code: &Thread, path: &[usize]) -> Vec<Reg> {
    let mut out: Vec<Reg> = path.iter().flat_map(|pc| uses(&code.body[*pc].op).1).collect();
    out.sort_unstable();
    out.dedup();
    out
}

fn peek(code: &Thread, pc: usize) -> Option<Leave> {
    let (guard, target) = branch(code, pc)?;
    let asked = asked_before(code, pc, guard.reg)?;
    [(pc + 1, target), (target, pc + 1)].into_iter().find_map(|(again, exit)| {
        let path = waits_for(code, again, exit, asked)?;
        Some(Leave { exit, again, differ: written(code, &path), known: false })
    })
}

/// The try-wait in the same straight stretch of code whose result the register holds at `pc`.
fn asked_before(code: &Thread, pc: usize, result: Reg) -> Option<&Mbarrier> {
    let enters = |at: usize| code.body.iter().any(|i| matches!(i.op, Op::Bra { target } if target == at));
    let mut changed: Vec<Reg> = Vec::new();
    for at in (0..pc).rev() {
        let instr = &code.body[at];
        if enters(at + 1) || matches!(instr.op, Op::Bra { .. } | Op::Exit) {
            return None;
        }
        let (reads, writes) = uses(&instr.op);
        if writes.contains(&result) {
            let Op::Mbarrier(asked @ Mbarrier { op: MbarrierOp::Wait(_), .. }) = &instr.op else {
                return None;
            };
            let same = instr.guard.is_none() && reads.iter().all(|r| *r != result && !changed.contains(r));
            return same.then_some(asked);
        }
        changed.extend(writes);
    }
    None
}

/// The places from `from` to `to`, if they are nothing but a wait for the same phase.
fn waits_for(code: &Thread, from: usize, to: usize, asked: &Mbarrier) -> Option<Vec<usize>> {
    let (mut pc, mut path, mut waited) = (from, Vec::new(), false);
    while pc != to {
        let instr = code.body.get(pc)?;
        if path.contains(&pc) {
            return None;
        }
        path.push(pc);
        pc = match (instr.op.goes(), instr.guard) {
            (Goes::To(target), None) => target,
            (Goes::To(_), Some(_)) => {
                waited = true;
                wait(code, pc)?.0.exit
            }
            (Goes::On, guard) if asks(&instr.op, guard, asked) => pc + 1,
            (Goes::On | Goes::Opens | Goes::Closes | Goes::End, _) => return None,
        };
    }
    waited.then_some(path)
}

/// Whether an instruction is the same wait, or nothing.
fn asks(op: &Op, guard: Option<Guard>, asked: &Mbarrier) -> bool {
    matches!(op, Op::Control(Control::Ignored(_)))
        || matches!(op, Op::Mbarrier(other) if guard.is_none() && same_phase(asked, other))
}

fn same_phase(a: &Mbarrier, b: &Mbarrier) -> bool {
    let (MbarrierOp::Wait(x), MbarrierOp::Wait(y)) = (&a.op, &b.op) else { return false };
    (a.addr, x.phase, x.parity) == (b.addr, y.phase, y.parity)
}
