//! Removes dead arithmetic, dead weak loads and jumps to the next instruction, and renumbers registers.
//!
//! A weak load whose value is not used orders nothing. All other accesses stay.

use moire_program::edit;
use moire_program::ir::{Goes, Instr, Label, LoadOrder, Op, Operand, Reg, Thread};
use moire_program::registers::{rewrite, uses};

/// Removes dead arithmetic, dead weak loads and idle jumps, and renumbers registers. Makes one label for each jump target.
pub(super) fn tidy(mut thread: Thread) -> Thread {
    loop {
        let live = live(&thread);
        let computes = |op: &Op| {
            let reads = matches!(op, Op::Load { order: LoadOrder::Weak, .. });
            reads || matches!(op, Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. })
        };
        let dead = |at: usize, i: &Instr| match i.op.goes() {
            Goes::To(target) => target == at + 1,
            Goes::End => at + 1 == thread.body.len(),
            Goes::On => computes(&i.op) && unread(&live[at + 1], &i.op),
            Goes::Opens | Goes::Closes => false,
        };
        let keep: Vec<bool> = thread.body.iter().enumerate().map(|(at, i)| !dead(at, i)).collect();
        if keep.iter().all(|k| *k) {
            break;
        }
        retain(&mut thread, &keep);
    }
    thread.labels = labels(&thread.body);
    renumber(&mut thread);
    thread
}

fn unread(live: &[bool], op: &Op) -> bool {
    uses(op).1.iter().all(|r| !live[r.index()])
}

/// Removes instructions, and names the places that are still jumped to.
pub(super) fn retain(thread: &mut Thread, keep: &[bool]) {
    edit::retain(thread, keep);
    thread.labels = labels(&thread.body);
}

fn labels(body: &[Instr]) -> Vec<Label> {
    let mut places: Vec<usize> =
        body.iter().filter_map(|i| if let Op::Bra { target } = i.op { Some(target) } else { None }).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|at| Label { name: format!("L{at}"), at }).collect()
}

/// The live registers before each instruction; none is live at the end.
fn live(thread: &Thread) -> Vec<Vec<bool>> {
    let (body, count) = (&thread.body, thread.regs.len());
    let mut live = vec![vec![false; count]; body.len() + 1];
    let mut changed = true;
    while changed {
        changed = false;
        for at in (0..body.len()).rev() {
            let mut now = vec![false; count];
            let goes_on = !matches!(body[at].op, Op::Bra { .. } | Op::Exit) || body[at].guard.is_some();
            let jump = if let Op::Bra { target } = body[at].op { Some(target) } else { None };
            for next in goes_on.then_some(at + 1).into_iter().chain(jump) {
                now.iter_mut().zip(&live[next.min(body.len())]).for_each(|(a, b)| *a |= b);
            }
            let (reads, writes) = uses(&body[at].op);
            if body[at].guard.is_none() {
                writes.iter().for_each(|r| now[r.index()] = false);
            }
            let guard = body[at].guard.map(|g| g.reg);
            reads.into_iter().chain(guard).for_each(|r| now[r.index()] = true);
            changed |= now != live[at];
            live[at] = now;
        }
    }
    live
}

/// Removes registers that no instruction names.
fn renumber(thread: &mut Thread) {
    let mut used = vec![false; thread.regs.len()];
    for instr in &thread.body {
        let (reads, writes) = uses(&instr.op);
        let all = reads.into_iter().chain(writes).chain(instr.guard.map(|g| g.reg));
        all.for_each(|r| used[r.index()] = true);
    }
    let mut numbers = Vec::with_capacity(used.len());
    let mut next = 0u16;
    for u in &used {
        numbers.push(Reg(next));
        next += u16::from(*u);
    }
    let mut at = 0;
    thread.regs.retain(|_| {
        at += 1;
        used[at - 1]
    });
    let to = |r: Reg| numbers.get(r.index()).copied().unwrap_or(r);
    for instr in &mut thread.body {
        instr.guard.iter_mut().for_each(|g| g.reg = to(g.reg));
        rewrite(&mut instr.op, &mut |r| to(r), &mut |o| match o {
            Operand::Reg(r) => Operand::Reg(to(r)),
            other => other,
        });
    }
}
