//! Prints loads, stores, atomics and multimem.

use super::operands::Printer;
use super::words::{ATOM_OPS, load_order, rmw_order, scope, space, stem, store_order, type_name, word};
use crate::ir::*;

/// The operation of an update. A sum of halves is one of a form only, which keeps subnormal numbers.
fn sum(op: AtomOp, ty: Ty) -> String {
    let halves = matches!(ty, Ty::F(16) | Ty::F16x2 | Ty::Bf16x2);
    let form = if op == AtomOp::Add && halves { ".noftz" } else { "" };
    format!("{}{form}", word(&ATOM_OPS, &op))
}

/// An access of memory; empty for another instruction.
pub(super) fn memory(p: &Printer<'_>, op: &Op) -> String {
    match op {
        Op::Load { order, proxy, space: s, ty: t, dst, addr } => {
            let (v, dst) = p.vector(dst, |r| p.reg(r).to_owned());
            format!(
                "{}{}{}{v}{} {dst}, {}",
                stem(*proxy, "ld"),
                load_order(*order),
                space(*s),
                type_name(*t),
                p.address(addr)
            )
        }
        Op::Store { order, proxy, space: s, ty: t, addr, src } => {
            let (v, src) = p.vector(src, |o| p.operand(o));
            format!(
                "{}{}{}{v}{} {}, {src}",
                stem(*proxy, "st"),
                store_order(*order),
                space(*s),
                type_name(*t),
                p.address(addr)
            )
        }
        Op::Rmw { red, order, scope: sc, proxy, space: s, op, ty: t, dst, addr, a, b } => {
            let name = stem(*proxy, if *red { "red" } else { "atom" });
            let dst = dst.map_or(String::new(), |d| format!("{}, ", p.reg(d)));
            let dst = if !red && dst.is_empty() { "_, ".to_owned() } else { dst };
            let b = b.map_or(String::new(), |b| format!(", {}", p.operand(b)));
            let (order, scope, space) = (rmw_order(*order), scope(*sc), space(*s));
            let (op, t) = (sum(*op, *t), type_name(*t));
            format!("{name}{order}.{scope}{space}.{op}{t} {dst}{}, {}{b}", p.address(addr), p.operand(*a))
        }
        Op::MultimemLoad { order, op, ty: t, dst, addr } => {
            format!(
                "multimem.ld_reduce{}.{}{} {}, {}",
                load_order(*order),
                word(&ATOM_OPS, op),
                type_name(*t),
                p.reg(*dst),
                p.address(addr)
            )
        }
        Op::MultimemStore { order, ty: t, addr, src } => {
            format!(
                "multimem.st{}{} {}, {}",
                store_order(*order),
                type_name(*t),
                p.address(addr),
                p.operand(*src)
            )
        }
        Op::MultimemRed { order, scope: sc, op, ty: t, addr, src } => {
            let (order, scope, op, t) = (rmw_order(*order), scope(*sc), word(&ATOM_OPS, op), type_name(*t));
            format!("multimem.red{order}.{scope}.{op}{t} {}, {}", p.address(addr), p.operand(*src))
        }
        register_op!() => String::new(),
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::Mbarrier(_) => String::new(),
        barrier_op!() | unit_op!() | Op::ProxyOrder(_) => String::new(),
        Op::Tile(_) | Op::Control(_) | jump_op!() => String::new(),
        Op::Book(_) => String::new(),
    }
}
