//! Injures kernels: removes a token or a mask, narrows a scope, weakens an order, makes tiles overlap.

use super::Dice;
use moire_tile_ir::{Access, Block, IntegerOp, Module, Op, Order, Overflow, Scope};
use moire_tile_ir::{access_op, block_op, end_op, plain_op, token_op};

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
    match (injury, op) {
        (
            Injury::NoToken,
            Op::LoadPtr { token, .. }
            | Op::StorePtr { token, .. }
            | Op::LoadView { token, .. }
            | Op::StoreView { token, .. }
            | Op::AtomicRmw { token, .. }
            | Op::AtomicCas { token, .. }
            | Op::AtomicRedView { token, .. },
        ) => *token = None,
        (Injury::NoMask, Op::StorePtr { mask, .. }) => *mask = None,
        (Injury::NoMask, Op::LoadPtr { mask, padding, .. }) => (*mask, *padding) = (None, None),
        (
            Injury::Narrow,
            Op::AtomicRmw { scope, .. } | Op::AtomicCas { scope, .. } | Op::AtomicRedView { scope, .. },
        ) => *scope = Scope::TileBlock,
        (Injury::Relaxed, Op::AtomicRmw { order, .. } | Op::AtomicCas { order, .. }) => {
            *order = Order::Relaxed;
        }
        (
            _,
            Op::LoadPtr { access, .. }
            | Op::StorePtr { access, .. }
            | Op::LoadView { access, .. }
            | Op::StoreView { access, .. },
        ) => weaken(injury, access),
        (Injury::Index, Op::Integer { op, .. }) if matches!(op, IntegerOp::Mul(_) | IntegerOp::Sub(_)) => {
            *op = IntegerOp::And;
        }
        (Injury::Index, Op::Integer { op, .. }) if *op == IntegerOp::And => {
            *op = IntegerOp::Add(Overflow::Wraps);
        }
        (Injury::Constant, Op::Constant(constant)) => {
            if let [value @ 1..=6] = constant.bits[..] {
                constant.bits = vec![value - 1];
            }
        }
        // No injury fits.
        (_, plain_op!() | token_op!() | access_op!() | block_op!() | end_op!()) => {}
    }
}

fn weaken(injury: Injury, access: &mut Access) {
    match injury {
        Injury::Narrow => access.scope = access.scope.map(|_| Scope::TileBlock),
        Injury::Relaxed if access.order != Order::Weak => access.order = Order::Relaxed,
        Injury::Weak => (access.order, access.scope) = (Order::Weak, None),
        _ => {}
    }
}
