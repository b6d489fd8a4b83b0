//! Which registers an operation reads and writes.

use crate::ir::{Address, BarKind, Op, Operand, Part, Reg};

/// Registers read and registers written by `op` (guards not included), each in operand order.
pub fn uses(op: &Op) -> (Vec<Reg>, Vec<Reg>) {
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    visit(op, &mut |reg, write| if write { writes.push(reg) } else { reads.push(reg) });
    (reads, writes)
}

/// Calls `see(register, written)` for every register operand, sources first.
pub fn visit(op: &Op, see: &mut dyn FnMut(Reg, bool)) {
    fn operand(o: &Operand, see: &mut dyn FnMut(Reg, bool)) {
        if let Operand::Reg(r) = o {
            see(*r, false);
        }
    }
    fn address(a: &Address, see: &mut dyn FnMut(Reg, bool)) {
        operand(&a.base, see);
    }
    match op {
        Op::Mov { dst, src, .. } => {
            operand(src, see);
            see(*dst, true);
        }
        Op::Alu { dst, a, b, .. } | Op::Setp { dst, a, b, .. } => {
            operand(a, see);
            operand(b, see);
            see(*dst, true);
        }
        Op::Selp { dst, a, b, p, .. } => {
            operand(a, see);
            operand(b, see);
            see(*p, false);
            see(*dst, true);
        }
        Op::Load { dst, addr, .. } => {
            address(addr, see);
            dst.iter().for_each(|d| see(*d, true));
        }
        Op::Store { addr, src, .. } => {
            address(addr, see);
            src.iter().for_each(|s| operand(s, see));
        }
        Op::Rmw { dst, addr, a, b, .. } => {
            address(addr, see);
            operand(a, see);
            b.iter().for_each(|b| operand(b, see));
            dst.iter().for_each(|d| see(*d, true));
        }
        Op::Bar { kind, id, count, .. } => {
            operand(id, see);
            count.iter().for_each(|c| operand(c, see));
            if let BarKind::Red { dst, pred, .. } = kind {
                see(pred.reg, false);
                see(*dst, true);
            }
        }
        Op::WarpSync { mask } => operand(mask, see),
        Op::MultimemLoad { dst, addr, .. } => {
            address(addr, see);
            see(*dst, true);
        }
        Op::MultimemStore { addr, src, .. } | Op::MultimemRed { addr, src, .. } => {
            address(addr, see);
            operand(src, see);
        }
        Op::Mbarrier(m) => {
            address(&m.addr, see);
            m.operands().iter().for_each(|o| operand(o, see));
            m.dst().iter().for_each(|d| see(*d, true));
        }
        Op::Mapa { dst, src, rank, .. } => {
            operand(src, see);
            operand(rank, see);
            see(*dst, true);
        }
        Op::Tcgen05(_) | Op::AsyncCopy(_) | Op::Wgmma(_) | Op::ProxyOrder(_) | Op::Control(_) => {
            op.registers(see);
        }
        Op::Tile(_) => op.registers(see),
        Op::Fence { .. }
        | Op::ProxyFence(_)
        | Op::MbarrierInitFence
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::Bra { .. }
        | Op::Exit => {}
    }
}

/// Replaces every register and operand of `op`: `reg` maps registers, `operand` maps whole source operands.
pub fn rewrite(op: &mut Op, reg: &mut dyn FnMut(Reg) -> Reg, operand: &mut dyn FnMut(Operand) -> Operand) {
    match op {
        Op::Mov { dst, src, .. } => {
            *src = operand(*src);
            *dst = reg(*dst);
        }
        Op::Alu { dst, a, b, .. } | Op::Setp { dst, a, b, .. } => {
            *a = operand(*a);
            *b = operand(*b);
            *dst = reg(*dst);
        }
        Op::Selp { dst, a, b, p, .. } => {
            *a = operand(*a);
            *b = operand(*b);
            *p = reg(*p);
            *dst = reg(*dst);
        }
        Op::Load { dst, addr, .. } => {
            addr.base = operand(addr.base);
            dst.iter_mut().for_each(|d| *d = reg(*d));
        }
        Op::Store { addr, src, .. } => {
            addr.base = operand(addr.base);
            src.iter_mut().for_each(|s| *s = operand(*s));
        }
        Op::Rmw { dst, addr, a, b, .. } => {
            addr.base = operand(addr.base);
            *a = operand(*a);
            b.iter_mut().for_each(|b| *b = operand(*b));
            dst.iter_mut().for_each(|d| *d = reg(*d));
        }
        Op::Bar { kind, id, count, .. } => {
            *id = operand(*id);
            count.iter_mut().for_each(|c| *c = operand(*c));
            if let BarKind::Red { dst, pred, .. } = kind {
                pred.reg = reg(pred.reg);
                *dst = reg(*dst);
            }
        }
        Op::WarpSync { mask } => *mask = operand(*mask),
        Op::MultimemLoad { dst, addr, .. } => {
            addr.base = operand(addr.base);
            *dst = reg(*dst);
        }
        Op::MultimemStore { addr, src, .. } | Op::MultimemRed { addr, src, .. } => {
            addr.base = operand(addr.base);
            *src = operand(*src);
        }
        Op::Mbarrier(m) => {
            m.addr.base = operand(m.addr.base);
            m.map_operands(operand);
            if let Some(dst) = m.dst_mut() {
                *dst = reg(*dst);
            }
        }
        Op::Mapa { dst, src, rank, .. } => {
            *src = operand(*src);
            *rank = operand(*rank);
            *dst = reg(*dst);
        }
        Op::Tcgen05(_)
        | Op::AsyncCopy(_)
        | Op::Wgmma(_)
        | Op::ProxyOrder(_)
        | Op::Tile(_)
        | Op::Control(_) => {
            op.parts(&mut |part| match part {
                Part::Source(o) => *o = operand(*o),
                Part::Read(r) | Part::Write(r) => *r = reg(*r),
            });
        }
        Op::Fence { .. }
        | Op::ProxyFence(_)
        | Op::MbarrierInitFence
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::Bra { .. }
        | Op::Exit => {}
    }
}
