//! Control flow of a kernel: post-dominators, live registers, and registers that can affect branches, addresses or
//! operands of synchronisation.

use super::arms;
use super::loops::{around, spans};
use crate::ptx::{self, Kernel, Sort, Statement, What, sort};
use moire_isa::operand::Piece;
use moire_isa::{Instr, Role};
use moire_program::ir::{MbarrierOp, Op, Operand, Parts, Reg};
use moire_program::registers::only_registers;
use std::collections::BTreeMap;

/// The control flow of one kernel. Positions are those of the body; its length is the end.
pub(crate) struct Flow {
    /// The first place where all paths from here meet.
    pub(crate) meets: Vec<usize>,
    /// Whether something jumps here.
    pub(crate) target: Vec<bool>,
    /// The live registers that matter, sorted.
    pub(crate) live: Vec<Vec<Reg>>,
    /// Whether a register can affect a branch, an address or an operand of synchronisation.
    pub(crate) matters: Vec<bool>,
    /// Whether a place leads into a failed check.
    pub(crate) fails: Vec<bool>,
    /// Whether a place leads to the exit with nothing on the way that others see.
    pub(crate) leaves: Vec<bool>,
    /// Of branches whose arms only move data, the lines of their stores to shared memory.
    pub(crate) quiet: Vec<Option<Vec<u32>>>,
    /// The last branch back of each loop, by its first statement.
    pub(crate) spans: BTreeMap<usize, usize>,
    /// The loops around each place, by their first statements.
    pub(crate) around: Vec<Vec<usize>>,
    /// Whether a place is in a loop that only waits.
    pub(crate) spins: Vec<bool>,
}

impl Flow {
    pub(crate) fn new(kernel: &Kernel) -> Flow {
        let body = &kernel.body;
        let next: Vec<Vec<usize>> = (0..body.len()).map(|pc| successors(kernel, pc)).collect();
        let mut target = vec![false; body.len() + 1];
        for (pc, all) in next.iter().enumerate() {
            for s in all.iter().filter(|s| **s != pc + 1) {
                target[*s] = true;
            }
        }
        let matters = matters(kernel);
        let live = liveness(kernel, &next, &matters);
        let meets = meets(&next);
        let (fails, quiet) = (arms::fails(kernel), arms::quiet(kernel, &next, &meets));
        let (spans, leaves) = (spans(kernel), arms::leaves(kernel));
        let around = around(&spans, body.len());
        let idle = spans.iter().filter(|(first, last)| body[**first..=**last].iter().all(is_idle));
        let mut spins = vec![false; body.len() + 1];
        idle.for_each(|(first, last)| spins[*first..=*last].fill(true));
        Flow { meets, target, live, matters, fails, leaves, quiet, spans, around, spins }
    }
}

/// Whether a statement only computes, branches, or waits for an mbarrier.
fn is_idle(statement: &Statement) -> bool {
    match &statement.what {
        What::Core(Op::Mbarrier(m)) => matches!(m.op, MbarrierOp::Wait(_)),
        What::Core(op) => only_registers(op) || matches!(op, Op::Fence { .. }),
        What::Plain(instr) => matches!(sort(instr), Sort::Computes(_) | Sort::Fence | Sort::Hint),
        What::Branch { .. } | What::Table { .. } | What::Exit => true,
    }
}

/// The places that a statement can be followed by.
pub(crate) fn successors(kernel: &Kernel, pc: usize) -> Vec<usize> {
    let end = kernel.body.len();
    let fits = |t: usize| t.min(end);
    let statement = &kernel.body[pc];
    let mut out = match &statement.what {
        What::Branch { target } => vec![fits(*target)],
        What::Table { table, .. } => {
            kernel.tables.get(*table).map(|t| t.iter().map(|t| fits(*t)).collect()).unwrap_or_default()
        }
        What::Exit => vec![end],
        _ => vec![pc + 1],
    };
    if statement.guard.is_some() && !out.contains(&(pc + 1)) {
        out.push(pc + 1);
    }
    out
}

/// Immediate post-dominators (Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm").
pub(crate) fn meets(next: &[Vec<usize>]) -> Vec<usize> {
    let end = next.len();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); end + 1];
    for (pc, all) in next.iter().enumerate() {
        all.iter().for_each(|s| before[*s].push(pc));
    }
    // Postorder of the reversed graph from the end. A loop without exit is not reached and counts as meeting at the end.
    let mut number = vec![usize::MAX; end + 1];
    let mut order = Vec::new();
    let mut stack = vec![(end, 0)];
    let mut seen = vec![false; end + 1];
    seen[end] = true;
    while let Some((node, child)) = stack.pop() {
        if let Some(p) = before[node].get(child) {
            stack.push((node, child + 1));
            if !seen[*p] {
                seen[*p] = true;
                stack.push((*p, 0));
            }
        } else {
            number[node] = order.len();
            order.push(node);
        }
    }
    let mut up = vec![usize::MAX; end + 1];
    up[end] = end;
    loop {
        let mut changed = false;
        for node in order.iter().rev().copied().filter(|n| *n != end) {
            let mut found = usize::MAX;
            for s in next[node].iter().filter(|s| up[**s] != usize::MAX) {
                found = if found == usize::MAX { *s } else { common(&up, &number, found, *s) };
            }
            changed |= up[node] != found;
            up[node] = found;
        }
        if !changed {
            break;
        }
    }
    up.into_iter().map(|m| if m == usize::MAX { end } else { m }).collect()
}

fn common(up: &[usize], number: &[usize], a: usize, b: usize) -> usize {
    let (mut a, mut b) = (a, b);
    while a != b {
        while number[a] < number[b] {
            a = up[a];
        }
        while number[b] < number[a] {
            b = up[b];
        }
    }
    a
}

/// Whether a plain instruction acts on memory, or ends the launch.
pub(crate) fn stores(instr: &Instr) -> bool {
    match sort(instr) {
        Sort::Store(_)
        | Sort::StoreMatrix(_)
        | Sort::StoreAway(_)
        | Sort::StoreRange(_)
        | Sort::Update(_) => true,
        Sort::Call(_) | Sort::Trap | Sort::Hint | Sort::Synchronises | Sort::Touches => true,
        Sort::Computes(_) | Sort::Load(_) | Sort::Uniform(_) | Sort::LoadMatrix(_) | Sort::Fence => false,
        Sort::Elsewhere => false,
    }
}

/// Registers in addresses.
fn addressed(instr: &Instr, out: &mut Vec<Reg>) {
    let mut inside = false;
    instr.pieces(&mut |_, piece| match piece {
        Piece::Mark("[") => inside = true,
        Piece::Mark("]") => inside = false,
        Piece::Value(value) if inside => out.extend(ptx::reg(value)),
        Piece::Mark(_) | Piece::Value(_) | Piece::Label(_) => {}
    });
}

/// Registers of a plain instruction without which it cannot be followed: those in addresses, and a word that is stored.
fn wanted_of(instr: &Instr, guard: Option<Reg>) -> Vec<Reg> {
    let mut regs = Vec::new();
    addressed(instr, &mut regs);
    match sort(instr) {
        Sort::Store(st) if !st.src.braced => regs.extend(st.src.items.first().and_then(ptx::reg)),
        Sort::StoreRange(st) => regs.extend(ptx::reg(&st.bytes)),
        _ => {}
    }
    if stores(instr) || matches!(sort(instr), Sort::Load(_) | Sort::LoadMatrix(_) | Sort::Uniform(_)) {
        regs.extend(guard);
    }
    regs
}

fn plain(instr: &Instr, writes: &mut Vec<Reg>, reads: &mut Vec<Reg>) {
    instr.each(&mut |seen| {
        let Some(reg) = ptx::reg(seen.value) else { return };
        match seen.role {
            Role::Write => writes.push(reg),
            Role::Update => {
                writes.push(reg);
                reads.push(reg);
            }
            Role::Known | Role::Data | Role::Loose | Role::Opaque | Role::Hint => reads.push(reg),
        }
    });
}

/// The registers that a statement writes and reads, without its guard.
pub(crate) fn effects(statement: &Statement) -> (Vec<Reg>, Vec<Reg>) {
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    match &statement.what {
        What::Plain(instr) => plain(instr, &mut writes, &mut reads),
        What::Core(op) => core(op, &mut writes, &mut reads),
        What::Table { index, .. } => reads.push(*index),
        What::Branch { .. } | What::Exit => {}
    }
    (writes, reads)
}

fn operand(o: &Operand, out: &mut Vec<Reg>) {
    if let Operand::Reg(r) = o {
        out.push(*r);
    }
}

fn core(op: &Op, writes: &mut Vec<Reg>, reads: &mut Vec<Reg>) {
    op.registers(&mut |reg, written| if written { &mut *writes } else { &mut *reads }.push(reg));
}

/// Registers that an instruction reads, without those that are only data.
fn wanted(op: &Op) -> Vec<Reg> {
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    if let Op::Store { addr, src, ty, .. } = op {
        operand(&addr.base, &mut reads);
        // Another warp may branch on a single word, and use addresses.
        if src.len() == 1 || ty.bytes() == 8 {
            src.iter().for_each(|word| operand(word, &mut reads));
        }
    } else if let Op::Tcgen05(moire_program::ir::Tcgen05::Store(store)) = op {
        operand(&store.addr.base, &mut reads);
    } else {
        core(op, &mut writes, &mut reads);
    }
    reads
}

/// For each register, whether it can affect a branch, an address or an operand of synchronisation (a backward slice).
fn matters(kernel: &Kernel) -> Vec<bool> {
    let mut found = vec![false; kernel.types.len()];
    let want = |regs: Vec<Reg>, found: &mut Vec<bool>| {
        regs.into_iter().fold(false, |any, r| {
            let new = found.get(r.index()) == Some(&false);
            if new {
                found[r.index()] = true;
            }
            any || new
        })
    };
    for statement in &kernel.body {
        let guard = statement.guard.map(|g| g.reg);
        match &statement.what {
            What::Core(op) => {
                want(wanted(op), &mut found);
                want(guard.into_iter().collect(), &mut found);
            }
            What::Plain(instr) => drop(want(wanted_of(instr, guard), &mut found)),
            What::Branch { .. } | What::Table { .. } | What::Exit => {
                want(effects(statement).1, &mut found);
                want(guard.into_iter().collect(), &mut found);
            }
        }
    }
    let effects: Vec<_> = kernel.body.iter().map(effects).collect();
    loop {
        let mut changed = false;
        for (statement, (writes, reads)) in kernel.body.iter().zip(&effects).rev() {
            if writes.iter().any(|w| found.get(w.index()) == Some(&true)) {
                let guard = statement.guard.map(|g| g.reg);
                changed |= want(reads.iter().copied().chain(guard).collect(), &mut found);
            }
        }
        if !changed {
            return found;
        }
    }
}

fn liveness(kernel: &Kernel, next: &[Vec<usize>], matters: &[bool]) -> Vec<Vec<Reg>> {
    let body = &kernel.body;
    let words = matters.len().div_ceil(64);
    let mut live = vec![vec![0u64; words]; body.len() + 1];
    let effects: Vec<_> = body.iter().map(effects).collect();
    let keep: Vec<u64> = (0..words)
        .map(|w| (0..64).filter(|b| matters.get(64 * w + b) == Some(&true)).fold(0, |m, b| m | 1 << b))
        .collect();
    loop {
        let mut changed = false;
        for pc in (0..body.len()).rev() {
            let mut now = vec![0u64; words];
            for s in &next[pc] {
                now.iter_mut().zip(&live[*s]).for_each(|(a, b)| *a |= b);
            }
            let (writes, reads) = &effects[pc];
            if body[pc].guard.is_none() {
                writes.iter().for_each(|r| now[r.index() / 64] &= !(1 << (r.index() % 64)));
            }
            for r in reads.iter().copied().chain(body[pc].guard.map(|g| g.reg)) {
                now[r.index() / 64] |= 1 << (r.index() % 64);
            }
            now.iter_mut().zip(&keep).for_each(|(a, k)| *a &= k);
            if now != live[pc] {
                live[pc] = now;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let regs = |set: &Vec<u64>| {
        let all = set
            .iter()
            .enumerate()
            .flat_map(|(w, bits)| (0..64).filter(move |b| bits >> b & 1 == 1).map(move |b| 64 * w + b));
        all.filter_map(|r| u16::try_from(r).ok().map(Reg)).collect()
    };
    live.iter().map(regs).collect()
}
