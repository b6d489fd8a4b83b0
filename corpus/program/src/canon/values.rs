//! Decides whether the values of a program may be renamed: only if they are merely copied or compared for equality.
//!
//! Contract: `free` is conservative. Zero is never renamed, because memory and registers start with it.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{AluOp, AtomOp, CmpOp, Expr, Op, Operand, Program, Reg, RegInit, Term, Thread};

/// Whether every bijection of the constants that keeps 0 gives an equivalent program.
pub(super) fn free(program: &Program) -> bool {
    let start = program.objects.iter().all(|o| o.init.is_zero())
        && program
            .threads
            .iter()
            .flat_map(|t| &t.regs)
            .all(|r| !matches!(r.init, RegInit::Lane) && !matches!(r.init, RegInit::Value(v) if v != 0));
    let mut sizes = BTreeSet::new();
    start
        && program.threads.iter().all(|t| thread_is_free(t, &mut sizes))
        && sizes.len() <= 1
        && program.conditions.iter().map(|c| &c.expr).chain(&program.filter).all(|e| expr_is_free(e, &sizes))
}

fn thread_is_free(thread: &Thread, sizes: &mut BTreeSet<u32>) -> bool {
    let zeros = zeros(thread);
    let predicates = thread.body.iter().filter_map(|i| i.guard).all(|g| {
        thread.body.iter().all(|i| {
            let (_, written) = crate::registers::uses(&i.op);
            !written.contains(&g.reg) || matches!(i.op, Op::Setp { .. })
        })
    });
    predicates && thread.body.iter().all(|i| op_is_free(&i.op, &zeros, sizes))
}

fn op_is_free(op: &Op, zeros: &BTreeSet<Reg>, sizes: &mut BTreeSet<u32>) -> bool {
    let small = |o: &Operand, bytes: u32| !matches!(o, Operand::Imm(n) if *n < 0 || *n >= 1i128 << (8 * bytes.min(8) - 1));
    let aligned = |addr: &crate::ir::Address, bytes: u32| {
        !matches!(addr.base, Operand::Imm(_)) && i64::from(addr.offset) % i64::from(bytes.max(1)) == 0
    };
    match op {
        Op::Mov { ty, src, .. } => small(src, ty.bytes()),
        Op::Alu { op, a, b, .. } => {
            let zero = |o: &Operand| matches!(o, Operand::Reg(r) if zeros.contains(r));
            (matches!(op, AluOp::Xor | AluOp::Sub) && a == b && matches!(a, Operand::Reg(_)))
                || (*op == AluOp::Add && (zero(a) || zero(b)) && small(a, 4) && small(b, 4))
        }
        Op::Setp { op, ty, a, b, .. } => match op {
            CmpOp::Eq | CmpOp::Ne => small(a, ty.bytes()) && small(b, ty.bytes()),
            // Always true for unsigned values.
            CmpOp::Ge => matches!(ty, crate::ir::Ty::U(_)) && *b == Operand::Imm(0) && small(a, ty.bytes()),
            _ => false,
        },
        Op::Selp { ty, a, b, .. } => small(a, ty.bytes()) && small(b, ty.bytes()),
        Op::Load { ty, addr, .. } => {
            sizes.insert(ty.bytes());
            !ty.packed() && ty.bytes() <= 8 && aligned(addr, ty.bytes())
        }
        Op::Store { ty, addr, src, .. } => {
            sizes.insert(ty.bytes());
            !ty.packed()
                && ty.bytes() <= 8
                && aligned(addr, ty.bytes())
                && src.iter().all(|s| small(s, ty.bytes()))
        }
        Op::Rmw { op, ty, addr, a, b, .. } => {
            sizes.insert(ty.bytes());
            let copies = match op {
                AtomOp::Exch | AtomOp::Cas => true,
                AtomOp::Or => *a == Operand::Imm(0),
                _ => false,
            };
            let operands = std::iter::once(a).chain(b).all(|o| small(o, ty.bytes()));
            copies && !ty.packed() && ty.bytes() <= 8 && aligned(addr, ty.bytes()) && operands
        }
        Op::Bar { kind, id, count, .. } => {
            let immediate = |o: &Operand| matches!(o, Operand::Imm(_));
            !matches!(kind, crate::ir::BarKind::Red { .. }) && immediate(id) && count.iter().all(immediate)
        }
        Op::WarpSync { mask } => matches!(mask, Operand::Imm(_)),
        multimem_op!() => false,
        // Counts, parities and ranks have a meaning.
        Op::Mbarrier(_) | Op::Mapa { .. } => false,
        // Sizes, columns, masks and groups have one too.
        Op::Tcgen05(_)
        | Op::AsyncCopy(_)
        | Op::Wgmma(_)
        | Op::ProxyOrder(_)
        | Op::Tile(_)
        | Op::Control(_) => false,
        Op::Fence { .. }
        | Op::ProxyFence(_)
        | Op::MbarrierInitFence
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::Bra { .. }
        | Op::Exit => true,
        Op::Book(_) => false,
    }
}

/// Registers that are always zero: they start as zero, and each instruction that writes one computes `x ^ x` or `x - x`.
fn zeros(thread: &Thread) -> BTreeSet<Reg> {
    let mut zero: BTreeMap<Reg, bool> = BTreeMap::new();
    for instr in &thread.body {
        let (_, written) = crate::registers::uses(&instr.op);
        let clears = matches!(&instr.op, Op::Alu { op: AluOp::Xor | AluOp::Sub, a, b, .. } if a == b);
        for reg in written {
            *zero.entry(reg).or_insert(true) &= clears;
        }
    }
    let starts = |reg: Reg| thread.regs.get(reg.index()).is_some_and(|r| r.init == RegInit::Value(0));
    zero.into_iter().filter_map(|(reg, is)| (is && starts(reg)).then_some(reg)).collect()
}

fn expr_is_free(expr: &Expr, sizes: &BTreeSet<u32>) -> bool {
    match expr {
        Expr::Bool(_) => true,
        Expr::Not(inner) => expr_is_free(inner, sizes),
        Expr::And(all) | Expr::Or(all) => all.iter().all(|e| expr_is_free(e, sizes)),
        Expr::Cmp(op, a, b) => {
            let limit = sizes.first().map_or(i64::MAX, |&s| i64::MAX >> (64 - 8 * s.clamp(1, 8)));
            matches!(op, CmpOp::Eq | CmpOp::Ne)
                && [a, b].iter().all(|t| match t {
                    Term::Const(n) => (0..=limit).contains(n),
                    Term::Mem { bytes, .. } => sizes.is_empty() || sizes.contains(&u32::from(*bytes)),
                    Term::Reg(..) => true,
                })
        }
    }
}
