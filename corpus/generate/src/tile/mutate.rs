//! Injures kernels: removes a token or a mask, narrows a scope, weakens an order, makes tiles overlap.

use super::Dice;
use moire_tile_ir::{Access, Block, IntegerOp, Module, Op, Order, Overflow, Scope};

/// A change of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Injury {
    NoToken,
    NoMask,
    Narrow,
    Relaxed,
    Weak,
    /// An integer operation of an index is another.
    Index,
    /// A constant from 1 to 6 is one less.
    Constant,
}

const ALL: &[Injury] = &[
    Injury::NoToken,
    Injury::NoMask,
    Injury::Narrow,
    Injury::Relaxed,
    Injury::Weak,
    Injury::Index,
    Injury::Constant,
];

/// The module after one to three injuries.
pub(super) fn injured(dice: &mut Dice<'_, '_>, mut module: Module) -> Module {
    for _ in 0..dice.of(&[1, 1, 2, 3]) {
        let Some(function) = module.functions.first_mut() else { break };
        let mut sites = Vec::new();
        let mut at = 0;
        visit(&mut function.body, &mut |op| {
            sites.extend(ALL.iter().filter(|i| fits(**i, op)).map(|i| (at, *i)));
            at += 1;
        });
        // The kind is drawn first, because most sites are constants.
        let kinds: Vec<Injury> = ALL.iter().copied().filter(|k| sites.iter().any(|(_, i)| i == k)).collect();
        if kinds.is_empty() {
            break;
        }
        let kind = dice.of(&kinds);
        sites.retain(|(_, i)| *i == kind);
        let (site, injury) = dice.of(&sites);
        at = 0;
        visit(&mut function.body, &mut |op| {
            if at == site {
                injure(injury, op);
            }
            at += 1;
        });
    }
    module
}

fn visit(block: &mut Block, each: &mut dyn FnMut(&mut Op)) {
    for instr in &mut block.ops {
        each(&mut instr.op);
        for inner in instr.op.blocks_mut() {
            visit(inner, each);
        }
    }
}

fn fits(injury: Injury, op: &Op) -> bool {
    let mut copy = op.clone();
    injure(injury, &mut copy);
    copy != *op
}

fn injure(injury: Injury, op: &mut Op) {
    match (injury, op.access()) {
        (Injury::NoToken, _) => {
            op.untoken();
        }
        (Injury::NoMask, _) if !op.atomic() => {
            op.unmask();
        }
        (Injury::Narrow, Some(Access { order, scope: Some(_) })) => {
            op.set_access(Access { order, scope: Some(Scope::TileBlock) });
        }
        (Injury::Relaxed, Some(Access { order, scope })) if order != Order::Weak => {
            op.set_access(Access { order: Order::Relaxed, scope });
        }
        // An atomic is never weak.
        (Injury::Weak, Some(_)) if !op.atomic() => {
            op.set_access(Access { order: Order::Weak, scope: None });
        }
        (Injury::Index, _) => {
            if let Op::Integer { op, .. } = op {
                match op {
                    IntegerOp::Mul(_) | IntegerOp::Sub(_) => *op = IntegerOp::And,
                    IntegerOp::And => *op = IntegerOp::Add(Overflow::Wraps),
                    _ => {}
                }
            }
        }
        (Injury::Constant, _) => {
            if let Op::Constant(constant) = op
                && let [value @ 1..=6] = constant.bits[..]
            {
                constant.bits = vec![value - 1];
            }
        }
        (Injury::NoMask | Injury::Narrow | Injury::Relaxed | Injury::Weak, _) => {}
    }
}
