//! Static facts of one thread body: which instruction may follow which, live registers, where branches meet again.

use moire_program::ir::{BarKind, Op, Operand, Parts, Reg, Thread};
use std::collections::BTreeSet;

/// Facts by position in the body; `body.len()` is the exit.
pub(super) struct Flow {
    /// Registers whose value may still be read.
    pub(super) live: Vec<BTreeSet<Reg>>,
    /// Nearest position every path from here passes again.
    pub(super) meets: Vec<usize>,
    /// Targets of backward branches.
    pub(super) heads: BTreeSet<usize>,
}

impl Flow {
    /// `kept` are the registers whose values are needed after the exit.
    pub(super) fn new(thread: &Thread, kept: &BTreeSet<Reg>) -> Self {
        let n = thread.body.len();
        let next: Vec<Vec<usize>> = (0..n).map(|pc| successors(thread, pc)).collect();
        let mut live = vec![BTreeSet::new(); n + 1];
        live[n] = kept.clone();
        let everywhere: BTreeSet<usize> = (0..=n).collect();
        let mut passed = vec![everywhere; n + 1];
        passed[n] = BTreeSet::from([n]);
        loop {
            let before = (live.clone(), passed.clone());
            for pc in (0..n).rev() {
                let instr = &thread.body[pc];
                let mut after: BTreeSet<Reg> = next[pc].iter().flat_map(|s| live[*s].clone()).collect();
                if instr.guard.is_none() {
                    for reg in targets(&instr.op) {
                        after.remove(&reg);
                    }
                }
                after.extend(instr.guard.map(|g| g.reg));
                after.extend(read_registers(&instr.op));
                live[pc] = after;
                let mut common = passed[next[pc][0]].clone();
                for s in &next[pc][1..] {
                    common = common.intersection(&passed[*s]).copied().collect();
                }
                common.insert(pc);
                passed[pc] = common;
            }
            if before == (live.clone(), passed.clone()) {
                break;
            }
        }
        let nearest = |pc: usize| {
            let others = passed[pc].iter().copied().filter(|q| *q != pc);
            others.max_by_key(|q| passed[*q].len()).unwrap_or(n)
        };
        let meets = (0..=n).map(nearest).collect();
        let back = |pc: usize| match thread.body[pc].op {
            Op::Bra { target } if target <= pc => Some(target),
            _ => None,
        };
        Flow { live, meets, heads: (0..n).filter_map(back).collect() }
    }
}

fn successors(thread: &Thread, pc: usize) -> Vec<usize> {
    let instr = &thread.body[pc];
    let jump = match instr.op {
        Op::Bra { target } => Some(target),
        Op::Exit => Some(thread.body.len()),
        _ => None,
    };
    match (jump, instr.guard) {
        (None, _) => vec![pc + 1],
        (Some(to), None) => vec![to],
        (Some(to), Some(_)) => vec![pc + 1, to],
    }
}

/// Registers an instruction writes.
pub(super) fn targets(op: &Op) -> Vec<Reg> {
    match op {
        Op::Mov { dst, .. }
        | Op::Alu { dst, .. }
        | Op::Setp { dst, .. }
        | Op::Selp { dst, .. }
        | Op::MultimemLoad { dst, .. }
        | Op::Bar { kind: BarKind::Red { dst, .. }, .. } => vec![*dst],
        Op::Load { dst, .. } => dst.clone(),
        Op::Rmw { dst, .. } => dst.iter().copied().collect(),
        Op::Mapa { dst, .. } => vec![*dst],
        Op::Mbarrier(m) => m.dst().into_iter().collect(),
        op => {
            let mut all = Vec::new();
            op.registers(&mut |r, written| {
                if written {
                    all.push(r)
                }
            });
            all
        }
    }
}

/// Registers an instruction reads, its guard aside.
pub(super) fn read_registers(op: &Op) -> Vec<Reg> {
    let mut operands = Vec::new();
    let mut more = Vec::new();
    match op {
        Op::Mov { src, .. } => operands.push(*src),
        Op::Alu { a, b, .. } | Op::Setp { a, b, .. } => operands.extend([*a, *b]),
        Op::Selp { a, b, p, .. } => {
            operands.extend([*a, *b]);
            more.push(*p);
        }
        Op::Load { addr, .. } | Op::MultimemLoad { addr, .. } => operands.push(addr.base),
        Op::Store { addr, src, .. } => {
            operands.push(addr.base);
            operands.extend(src);
        }
        Op::Rmw { addr, a, b, .. } => {
            operands.extend([addr.base, *a]);
            operands.extend(b);
        }
        Op::MultimemStore { addr, src, .. } | Op::MultimemRed { addr, src, .. } => {
            operands.extend([addr.base, *src])
        }
        Op::Bar { kind, id, count, .. } => {
            operands.push(*id);
            operands.extend(count);
            if let BarKind::Red { pred, .. } = kind {
                more.push(pred.reg);
            }
        }
        Op::WarpSync { mask } => operands.push(*mask),
        Op::Mapa { src, rank, .. } => operands.extend([*src, *rank]),
        Op::Mbarrier(m) => {
            operands.push(m.addr.base);
            operands.extend(m.operands());
        }
        Op::Tcgen05(_) | Op::AsyncCopy(_) | Op::Wgmma(_) | Op::ProxyOrder(_) | Op::Control(_) => {
            operands.extend(op.sources());
        }
        Op::Tile(_) => op.registers(&mut |r, written| more.extend((!written).then_some(r))),
        Op::Fence { .. }
        | Op::ProxyFence(_)
        | Op::MbarrierInitFence
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::Bra { .. }
        | Op::Exit => {}
    }
    more.extend(operands.into_iter().filter_map(|o| match o {
        Operand::Reg(r) => Some(r),
        Operand::Imm(_) | Operand::Address(_) => None,
    }));
    more
}
