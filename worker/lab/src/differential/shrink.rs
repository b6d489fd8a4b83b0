//! Shrinks a failing program: drops threads and instructions and weakens qualifiers as long as it still fails.

use moire_program::ir::{LoadOrder, Op, Order, Program, RmwOrder, StoreOrder};

/// Drops or weakens one thing at a time, greedily, as long as the program still fails.
pub fn shrink(program: &Program, fails: &mut dyn FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    'again: loop {
        for candidate in candidates(&best) {
            if fails(&candidate) {
                best = candidate;
                continue 'again;
            }
        }
        return best;
    }
}

fn candidates(p: &Program) -> Vec<Program> {
    let mut out = Vec::new();
    if p.conditions.is_empty() && p.filter.is_none() {
        for t in 0..p.threads.len() {
            let mut q = p.clone();
            q.threads.remove(t);
            if !q.threads.is_empty() {
                out.push(q);
            }
        }
    }
    for t in 0..p.threads.len() {
        for at in 0..p.threads[t].body.len() {
            out.push(without(p, t, at));
        }
    }
    for t in 0..p.threads.len() {
        for at in 0..p.threads[t].body.len() {
            let mut q = p.clone();
            let instr = &mut q.threads[t].body[at];
            if instr.guard.take().is_some() && !matches!(instr.op, Op::Bra { .. }) {
                out.push(q);
                continue;
            }
            let mut q = p.clone();
            match q.threads[t].body[at].op.order_mut() {
                Some(Order::Load(order)) => *order = LoadOrder::Weak,
                Some(Order::Store(order)) => *order = StoreOrder::Weak,
                Some(Order::Update(order) | Order::Reduction(order)) => *order = RmwOrder::Relaxed,
                Some(Order::Fence(_) | Order::Flag(_)) | None => {}
            }
            if q != *p {
                out.push(q);
            }
        }
    }
    out
}

/// Removes one instruction from a program. Jump targets behind it move up by one.
fn without(p: &Program, t: usize, at: usize) -> Program {
    let mut q = p.clone();
    let thread = &mut q.threads[t];
    thread.body.remove(at);
    for label in &mut thread.labels {
        label.at -= usize::from(label.at > at);
    }
    for instr in &mut thread.body {
        if let Op::Bra { target } = &mut instr.op {
            *target -= usize::from(*target > at);
        }
    }
    q
}
