//! The only table of the registers that an instruction reads and writes, with the role of each read.
//!
//! Seven families of instructions have types of their own; their rows stand beside those types ([`crate::ir`]). All
//! other rows stand here. The guard of an instruction is not part of its operation.

use crate::ir::parts_of;
use crate::ir::{AtomOp, BarKind, Control, Op, Operand, Part, Parts, PartsMut, Reg, Role};

parts_of!(Op, |op, see| match op {
    Op::Mov { dst, src, .. } => {
        see(Part::Source(src, Role::Data));
        see(Part::Write(dst));
    }
    Op::Alu { dst, a, b, .. } | Op::Setp { dst, a, b, .. } => {
        see(Part::Source(a, Role::Data));
        see(Part::Source(b, Role::Data));
        see(Part::Write(dst));
    }
    Op::Selp { dst, a, b, p, .. } => {
        see(Part::Source(a, Role::Data));
        see(Part::Source(b, Role::Data));
        see(Part::Read(p, Role::Data));
        see(Part::Write(dst));
    }
    Op::Mapa { dst, src, rank, .. } => {
        see(Part::Source(src, Role::Data));
        see(Part::Source(rank, Role::Data));
        see(Part::Write(dst));
    }
    Op::Load { dst, addr, .. } => {
        addr.each(see);
        for dst in dst {
            see(Part::Write(dst));
        }
    }
    Op::Store { addr, src, .. } => {
        addr.each(see);
        for src in src {
            see(Part::Source(src, Role::Data));
        }
    }
    Op::Rmw { op, dst, addr, a, b, .. } => {
        addr.each(see);
        // Whether a compare-and-swap writes depends on what it compares with.
        see(Part::Source(a, if *op == AtomOp::Cas { Role::Known } else { Role::Data }));
        if let Some(b) = b {
            see(Part::Source(b, Role::Known));
        }
        if let Some(dst) = dst {
            see(Part::Write(dst));
        }
    }
    Op::MultimemLoad { dst, addr, .. } => {
        addr.each(see);
        see(Part::Write(dst));
    }
    Op::MultimemStore { addr, src, .. } | Op::MultimemRed { addr, src, .. } => {
        addr.each(see);
        see(Part::Source(src, Role::Data));
    }
    Op::Bar { kind, id, count, .. } => {
        see(Part::Source(id, Role::Known));
        if let Some(count) = count {
            see(Part::Source(count, Role::Known));
        }
        match kind {
            BarKind::Sync | BarKind::Arrive => {}
            BarKind::Red { dst, pred, .. } => {
                pred.each(see);
                see(Part::Write(dst));
            }
        }
    }
    Op::WarpSync { mask } => see(Part::Source(mask, Role::Known)),
    Op::Mbarrier(op) => op.each(see),
    Op::Tcgen05(op) => op.each(see),
    Op::AsyncCopy(op) => op.each(see),
    Op::Wgmma(op) => op.each(see),
    Op::ProxyOrder(op) => op.each(see),
    Op::Control(op) => op.each(see),
    Op::Tile(op) => op.each(see),
    Op::Fence { .. }
    | Op::ProxyFence(_)
    | Op::MbarrierInitFence
    | Op::ClusterArrive { .. }
    | Op::ClusterWait
    | Op::Bra { .. }
    | Op::Exit => {}
    Op::Book(book) => book.each(see),
});

/// Registers read and registers written by `op`, each in operand order.
pub fn uses(op: &Op) -> (Vec<Reg>, Vec<Reg>) {
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    Parts::registers(op, &mut |reg, write| if write { writes.push(reg) } else { reads.push(reg) });
    (reads, writes)
}

/// Calls `see` with every register that `op` writes.
pub fn written(op: &Op, see: &mut impl FnMut(Reg)) {
    Parts::each(op, &mut |part| {
        if let Part::Write(reg) = part {
            see(*reg);
        }
    });
}

/// Calls `see` with every register whose value `op` uses: all that it reads, except those of [`Role::Opaque`].
pub fn used(op: &Op, see: &mut impl FnMut(Reg)) {
    Parts::each(op, &mut |part| match part {
        Part::Source(Operand::Reg(reg), Role::Known | Role::Data) => see(*reg),
        Part::Read(reg, Role::Known | Role::Data) => see(*reg),
        _ => {}
    });
}

/// Calls `see` with every register whose value must be known before `op` takes place: those of [`Role::Known`].
pub fn must_know(op: &Op, see: &mut impl FnMut(Reg)) {
    Parts::each(op, &mut |part| match part {
        Part::Source(Operand::Reg(reg), Role::Known) | Part::Read(reg, Role::Known) => see(*reg),
        _ => {}
    });
}

/// Whether `op` touches nothing but registers: no memory, no other thread, no jump.
pub fn only_registers(op: &Op) -> bool {
    let told = matches!(op, Op::Book(book) if !book.has_address());
    told || matches!(op, register_op!() | Op::Control(Control::Elect { .. }))
}

/// Replaces every register and operand of `op`: `reg` maps registers, `operand` maps whole source operands.
pub fn rewrite(op: &mut Op, reg: &mut dyn FnMut(Reg) -> Reg, operand: &mut dyn FnMut(Operand) -> Operand) {
    PartsMut::each(op, &mut |part| match part {
        Part::Source(o, _) => *o = operand(*o),
        Part::Read(r, _) | Part::Write(r) => *r = reg(*r),
    });
}
