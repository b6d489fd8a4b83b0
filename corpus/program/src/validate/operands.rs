//! State spaces of addresses, which a register can have of a text, and the lint on literals that are too wide.

use super::report::Report;
use crate::ir::*;

pub(super) fn check(report: &mut Report<'_>, thread: &Thread, instr: &Instr) {
    if let Some((space, address)) = instr.op.place() {
        self::address(report, thread, instr, space, address);
    }
    if let Op::Mapa { src: Operand::Address(symbol), .. } = instr.op {
        let base = Address { base: Operand::Address(symbol), offset: 0 };
        address(report, thread, instr, Space::SharedCta, base);
    }
    let (ty, values) = values(&instr.op);
    for value in values {
        if let (Some(ty), Operand::Imm(n)) = (ty, value)
            && !fits(n, ty)
        {
            let what = format!("{n} does not fit {} bits", ty.bytes() * 8);
            report.at("truncated-immediate", thread, instr, &what, None);
        }
    }
}

pub(super) fn address(
    report: &mut Report<'_>,
    thread: &Thread,
    instr: &Instr,
    space: Space,
    address: Address,
) {
    match address.base {
        Operand::Imm(_) => {}
        Operand::Address(symbol) => {
            let symbol = &report.program.symbols[symbol.index()];
            let object = report.program.objects[symbol.object.index()].space;
            let same = match space {
                Space::Generic if matches!(instr.op, Op::Mbarrier(_)) => object == Space::SharedCta,
                Space::Generic => object != Space::Tensor,
                Space::Tensor => object == Space::Tensor,
                Space::SharedCta | Space::SharedCluster => object == Space::SharedCta,
                Space::Global => object == Space::Global,
            };
            if !same {
                let (name, word) = (&symbol.name, object_space(object));
                let what = format!("`{name}` is {word}");
                let hint = match object {
                    Space::Tensor => "only tcgen05 instructions reach tensor memory".to_owned(),
                    _ => format!("write {word} or no space"),
                };
                report.at("state-space", thread, instr, &what, Some(hint));
            }
        }
        Operand::Reg(_) => {}
    }
}

/// The word for a state space in the declaration of an object.
pub(super) fn object_space(space: Space) -> &'static str {
    match space {
        Space::Global | Space::Generic => ".global",
        Space::SharedCta | Space::SharedCluster => ".shared",
        Space::Tensor => ".tmem",
    }
}

/// Source operands that are values, and their type.
fn values(op: &Op) -> (Option<Ty>, Vec<Operand>) {
    match op {
        Op::Mov { ty, src, .. } => (Some(*ty), vec![*src]),
        // The shift count has a type of its own.
        Op::Alu { op: AluOp::Shl | AluOp::Shr, ty, a, b: Operand::Imm(_), .. } => (Some(*ty), vec![*a]),
        Op::Alu { ty, a, b, .. } | Op::Setp { ty, a, b, .. } | Op::Selp { ty, a, b, .. } => {
            (Some(*ty), vec![*a, *b])
        }
        Op::Store { ty, src, .. } => (Some(*ty), src.clone()),
        Op::Rmw { ty, a, b, .. } => (Some(*ty), std::iter::once(*a).chain(*b).collect()),
        Op::MultimemStore { ty, src, .. } | Op::MultimemRed { ty, src, .. } => (Some(*ty), vec![*src]),
        Op::Load { .. } | Op::MultimemLoad { .. } | jump_op!() | Op::Mbarrier(_) => (None, Vec::new()),
        fence_op!() | barrier_op!() | Op::Mapa { .. } => (None, Vec::new()),
        Op::Tile(_) | Op::Control(_) | unit_op!() | Op::Book(_) => (None, Vec::new()),
    }
}

/// Whether `n` fits the width of `ty` as a signed or as an unsigned number.
fn fits(n: i128, ty: Ty) -> bool {
    let bits = ty.bytes() * 8;
    ty == Ty::Pred || bits >= 127 || (-(1i128 << (bits - 1))..1i128 << bits).contains(&n)
}
