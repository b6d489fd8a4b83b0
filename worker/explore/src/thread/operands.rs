//! Registers of instructions: which are read and written, and which must be known.

use moire_program::ir::{AsyncCopy, AtomOp, BarKind, Control, Instr, Op, Operand, Parts, Reg};
use smallvec::{SmallVec, smallvec};

/// Registers of one instruction.
pub(crate) type Regs = SmallVec<[Reg; 4]>;

/// Registers an instruction writes.
pub(crate) fn defines(op: &Op) -> Regs {
    match op {
        Op::Mov { dst, .. }
        | Op::Alu { dst, .. }
        | Op::Setp { dst, .. }
        | Op::Selp { dst, .. }
        | Op::MultimemLoad { dst, .. }
        | Op::Rmw { dst: Some(dst), .. }
        | Op::Bar { kind: BarKind::Red { dst, .. }, .. }
        | Op::Mapa { dst, .. } => smallvec![*dst],
        Op::Load { dst, .. } => dst.iter().copied().collect(),
        Op::Mbarrier(m) => m.dst().into_iter().collect(),
        op => {
            let mut out = Regs::new();
            op.registers(&mut |r, written| out.extend(written.then_some(r)));
            out
        }
    }
}

/// Registers an instruction reads, its guard included.
pub(crate) fn uses(instr: &Instr) -> Regs {
    let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
    let mut out: Regs = instr.guard.iter().map(|g| g.reg).collect();
    match &instr.op {
        Op::Mov { src, .. } => operands.push(*src),
        Op::Alu { a, b, .. } | Op::Setp { a, b, .. } => operands.extend([*a, *b]),
        Op::Selp { a, b, p, .. } => {
            operands.extend([*a, *b]);
            out.push(*p);
        }
        Op::Load { addr, .. } | Op::MultimemLoad { addr, .. } => operands.push(addr.base),
        Op::Store { addr, src, .. } => {
            operands.push(addr.base);
            operands.extend_from_slice(src);
        }
        Op::Rmw { addr, a, b, .. } => {
            operands.extend([addr.base, *a]);
            operands.extend(*b);
        }
        Op::MultimemStore { addr, src, .. } | Op::MultimemRed { addr, src, .. } => {
            operands.extend([addr.base, *src])
        }
        Op::Bar { kind, id, count, .. } => {
            operands.push(*id);
            operands.extend(*count);
            if let BarKind::Red { pred, .. } = kind {
                out.push(pred.reg);
            }
        }
        Op::WarpSync { mask } => operands.push(*mask),
        Op::Mapa { src, rank, .. } => operands.extend([*src, *rank]),
        Op::Mbarrier(m) => {
            operands.push(m.addr.base);
            operands.extend(m.operands());
        }
        Op::Tcgen05(_) | Op::AsyncCopy(_) | Op::Wgmma(_) | Op::ProxyOrder(_) | Op::Control(_) => {
            operands.extend(instr.op.sources());
        }
        Op::Tile(op) => out.extend(op.read()),
        Op::Fence { .. }
        | Op::ProxyFence(_)
        | Op::MbarrierInitFence
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::Bra { .. }
        | Op::Exit => {}
    }
    out.extend(operands.iter().filter_map(|o| if let Operand::Reg(r) = o { Some(*r) } else { None }));
    out
}

/// Instructions that only touch registers.
pub(crate) fn register_only(op: &Op) -> bool {
    let elects = matches!(op, Op::Control(Control::Elect { .. }));
    elects
        || matches!(op, Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } | Op::Mapa { .. })
}

/// Operands of an instruction that are data and nothing else.
fn data(op: &Op) -> &[Operand] {
    match op {
        Op::Store { src, .. } => src,
        Op::Rmw { op, a, .. } if *op != AtomOp::Cas => std::slice::from_ref(a),
        Op::MultimemStore { src, .. } | Op::MultimemRed { src, .. } => std::slice::from_ref(src),
        Op::AsyncCopy(AsyncCopy::Remote(write)) => &write.src,
        Op::Control(Control::QueryCancel { src, .. }) => std::slice::from_ref(src),
        _ => &[],
    }
}

/// Registers an instruction must know: its guard, addresses, counts, what is compared.
pub(crate) fn must_know(instr: &Instr) -> Regs {
    let mut out = uses(instr);
    // Each data operand stands once in the list; a register may be an address as well.
    for operand in data(&instr.op) {
        if let Operand::Reg(data) = operand
            && let Some(at) = out.iter().position(|r| r == data)
        {
            out.remove(at);
        }
    }
    out
}
