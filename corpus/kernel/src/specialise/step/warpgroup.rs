//! Runs warpgroup products: turns descriptors into footprints, and merges registers that the same products use alike.
//!
//! Each of the four warps issues the product and is assumed to read the whole matrices. The values in the registers of a
//! product are not tracked. But no instruction may touch these registers while the product may run (`wgmma.fence`,
//! `wgmma.wait_group`), so an instruction that touches them leaves a `mov`. PTX ISA 9.2, 9.7.15.

use super::matrix::matrix_of;
use super::{Executing, Made, Then};
use crate::Refusal;
use crate::ptx::{Statement, What};
use crate::specialise::item::Item;
use crate::specialise::known::flow::effects;
use crate::specialise::known::value::{Val, Why};
use crate::specialise::practice::Practice;
use moire_program::ir::*;
use moire_program::tensor::{Extent, Major, SharedMatrix};
use std::collections::BTreeMap;

/// The register that represents a class.
fn stands_for(step: &mut Executing<'_, '_>, class: usize) -> Result<Reg, Refusal> {
    step.warp.spare(1 + class)
}

/// Emits a `mov` for each class of product registers that a statement touches.
pub(super) fn touch_registers(step: &mut Executing<'_, '_>, statement: &Statement) -> Result<(), Refusal> {
    if step.warp.classes.is_empty() || matches!(statement.what, What::Core(Op::Wgmma(_))) {
        return Ok(());
    }
    let (writes, reads) = effects(statement);
    let mut touched: BTreeMap<usize, bool> = BTreeMap::new();
    for (reg, written) in reads.into_iter().map(|r| (r, false)).chain(writes.into_iter().map(|r| (r, true))) {
        if let Some(class) = step.warp.classes.of(reg) {
            *touched.entry(class).or_default() |= written;
        }
    }
    if touched.is_empty() || step.guarded(statement.guard).is_ok_and(|mask| mask == 0) {
        return Ok(());
    }
    for (class, written) in touched {
        let src = stands_for(step, class)?;
        let dst = if written { src } else { step.warp.spare(0)? };
        let op = Op::Mov { ty: Ty::B(32), dst, src: Operand::Reg(src) };
        if !touched_before(step, &op) {
            step.leave_op(op)?;
        }
    }
    Ok(())
}

/// Whether the same `mov` was emitted since the last warpgroup instruction, with no branch in between.
fn touched_before(step: &Executing<'_, '_>, trace: &Op) -> bool {
    let straight = |item: &&Item| match item {
        Item::Op { op, .. } => !matches!(**op, Op::Wgmma(_)),
        Item::Data { .. } => true,
        _ => false,
    };
    let mut before = step.warp.out.items.iter().rev().map(|p| &p.item).take_while(straight);
    before.any(|item| matches!(item, Item::Op { op, .. } if **op == *trace))
}

pub(super) fn warpgroup(step: &mut Executing<'_, '_>, op: &Wgmma) -> Result<Then, Refusal> {
    let mut made = Made::default();
    let mut new = op.clone();
    if let Wgmma::Product(product) = &mut new {
        let regs = match &mut product.a {
            WgmmaFactor::Registers(regs) => regs.as_mut_slice(),
            WgmmaFactor::Shared(_) => &mut [],
        };
        for reg in &product.d {
            step.set(*reg, Val::Unknown(Why::Computed(step.line())));
        }
        for reg in product.d.iter_mut().chain(regs) {
            let Some(class) = step.warp.classes.of(*reg) else {
                return step.abstain("a product on registers that the kernel does not declare");
            };
            *reg = stands_for(step, class)?;
        }
        // This affects only the values in the accumulator.
        product.input = EnableInput::Always(true);
        matrices(step, product, &mut made)?;
    }
    step.leave(Op::Wgmma(new), made)
}

/// Runs a fence. An async proxy fence behind a `wgmma.fence`, with no register of products touched in between, is under practice
/// one with the `wgmma.fence` behind it ([`Practice::Products`]).
pub(super) fn fence(step: &mut Executing<'_, '_>, op: &Op) -> Result<Then, Refusal> {
    let again = orders_products(op) && fenced(step) && step.relies(Practice::Products);
    step.leave(op.clone(), Made::default())?;
    if again {
        step.leave_op(Op::Wgmma(Wgmma::Fence))?;
    }
    Ok(Then::Next)
}

/// Whether a fence orders the async proxy.
fn orders_products(op: &Op) -> bool {
    matches!(op, Op::ProxyFence(all) if all.contains(&ProxyFence::Of(Proxy::Async)))
        || matches!(op, Op::ProxyOrder(ProxyOrder::AsyncSpace(_)))
}

/// Whether the last warpgroup instruction is a `wgmma.fence`, and no register of products was touched since.
fn fenced(step: &Executing<'_, '_>) -> bool {
    let straight = |item: &&Item| match item {
        Item::Op { op, .. } => !matches!(**op, Op::Mov { .. }),
        Item::Data { .. } => true,
        _ => false,
    };
    let mut before = step.warp.out.items.iter().rev().map(|p| &p.item).take_while(straight);
    let last = before.find_map(|item| match item {
        Item::Op { op, .. } => {
            if let Op::Wgmma(w) = &**op {
                Some(w)
            } else {
                None
            }
        }
        _ => None,
    });
    last == Some(&Wgmma::Fence)
}

fn matrices(
    step: &mut Executing<'_, '_>,
    product: &mut WgmmaProduct,
    made: &mut Made,
) -> Result<(), Refusal> {
    let flipped = |from_end: usize| {
        let all = &product.immediates;
        let given = all.len() > 2;
        given && all.len().checked_sub(from_end).and_then(|n| all.get(n)) == Some(&1)
    };
    let major = |flipped: bool| if flipped { Major::Mn } else { Major::K };
    let (a_major, b_major) = (major(all_four(product) && flipped(2)), major(flipped(1)));
    let (k, n) = (u32::from(product.k), u32::from(product.n));
    let [_, a_type, b_type] = product.types;
    if let WgmmaFactor::Shared(a) = &product.a {
        let extent = Extent { mn: 64, k, bits: a_type.bits(), major: a_major };
        product.a = WgmmaFactor::Shared(factor_at(step, a, extent, made)?);
    }
    let extent = Extent { mn: n, k, bits: b_type.bits(), major: b_major };
    product.b = factor_at(step, &product.b, extent, made)?;
    Ok(())
}

fn factor_at(
    step: &mut Executing<'_, '_>,
    descriptor: &Descriptor,
    extent: Extent,
    made: &mut Made,
) -> Result<Descriptor, Refusal> {
    let Descriptor::Packed(operand) = descriptor else {
        return step.abstain("a matrix that is not a descriptor");
    };
    let value = step.value(*operand);
    let Some(bits) = value.known().and_then(|l| l.one(step.mask)) else {
        return step.abstain(format!("a matrix descriptor that depends on {}", step.warp.reason(&value)));
    };
    matrix_of(step, SharedMatrix::decode_warpgroup(bits), extent, made)
}

/// Whether the product has all four immediates, so that both factors may be transposed.
fn all_four(product: &WgmmaProduct) -> bool {
    product.immediates.len() == 4
}
