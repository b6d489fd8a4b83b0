//! Dispatches instructions that litmus texts have too.

use super::access::{Access, load, store};
use super::barrier::{bar, mbarrier};
use super::control::control;
use super::copies::{copy, tensormap};
use super::ordered::{strong_load, strong_store, update};
use super::tensor::tensor;
use super::warpgroup::{fence, warpgroup};
use super::{Executing, Made, Then};
use crate::Refusal;
use crate::specialise::known::map::{RANK_SHIFT, SHARED_WINDOW};
use crate::specialise::known::value::{Val, Why};
use moire_program::ir::*;
use moire_program::{fence_op, jump_op, multimem_op};

pub(super) fn instruction(step: &mut Executing<'_, '_>, op: &Op) -> Result<Then, Refusal> {
    match op {
        Op::Load { order, space, ty, dst, addr, .. } => {
            let address = step.address(addr);
            let access =
                Access { space: *space, ty: *ty, count: dst.len(), strong: *order != LoadOrder::Weak };
            if access.strong {
                return strong_load(step, op, dst, &address);
            }
            load(step, &access, dst, &address)
        }
        Op::Store { order, space, ty, addr, src, .. } => {
            let address = step.address(addr);
            let values: Vec<Val> = src.iter().map(|s| step.value(*s)).collect();
            if *order != StoreOrder::Weak {
                return strong_store(step, op, &values, &address);
            }
            let access = Access { space: *space, ty: *ty, count: src.len(), strong: false };
            let reg = |s: &Operand| if let Operand::Reg(r) = s { Some(*r) } else { None };
            let regs: Vec<Option<Reg>> = src.iter().map(reg).collect();
            store(step, &access, (&values, &regs), &address)?;
            Ok(Then::Next)
        }
        Op::Rmw { .. } => update(step, op),
        Op::Mapa { shared, dst, src, rank, .. } => {
            let value = mapped(step, *shared, *src, *rank);
            step.set(*dst, value);
            Ok(Then::Next)
        }
        Op::Control(what) => control(step, what),
        Op::Mbarrier(m) => mbarrier(step, m),
        Op::Tcgen05(t) => tensor(step, t),
        Op::AsyncCopy(c) => copy(step, c),
        Op::Bar { kind, id, count, instance } => {
            let id = step.number(*id, "the number of a barrier")?;
            let count = count.map(|c| step.number(c, "the count of a barrier")).transpose()?;
            bar(step, Op::Bar { kind: *kind, id, count, instance: *instance })
        }
        Op::WarpSync { mask } => warp_sync(step, *mask),
        Op::ProxyOrder(
            order @ (ProxyOrder::TensormapAcquire { .. }
            | ProxyOrder::TensormapRelease { .. }
            | ProxyOrder::CopyTensormap { .. }
            | ProxyOrder::ReplaceTensormap { .. }),
        ) => tensormap(step, order),
        Op::ProxyOrder(order @ ProxyOrder::Fabric { .. }) => {
            let text = format!("{} is ignored: no access uses that proxy", order.name());
            step.note(text);
            Ok(Then::Next)
        }
        Op::ProxyOrder(order @ ProxyOrder::AliasOneSided(_)) => {
            // This keeps less order than PTX has. What is clean without the fence is clean with it.
            let text = format!("{} is ignored: it is assumed to order nothing", order.name());
            step.note(text);
            Ok(Then::Next)
        }
        Op::Wgmma(w) => warpgroup(step, w),
        multimem_op!() => {
            step.note("the address of `multimem` names one memory, that of its parameter: copies in other devices, and other names of them, are left out");
            instruction(step, &on_one_device(op))
        }
        Op::ClusterWait => {
            step.state.behind.wait(true);
            step.leave(op.clone(), Made::default())
        }
        // They touch no memory of their own, and no lane of a warp does them otherwise.
        fence_op!() => fence(step, op),
        Op::ClusterArrive { .. } | Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } => {
            as_it_is(step, op)
        }
        Op::Tile(_) | jump_op!() => as_it_is(step, op),
        // A module keeps these as the book reads them.
        Op::Book(book) => step.abstain(format!("`{}` is not interpreted", book.name())),
    }
}

/// An access by a multimem address as one of a single memory.
fn on_one_device(op: &Op) -> Op {
    let (proxy, space) = (Proxy::Generic, Space::Global);
    if let Op::MultimemLoad { order, ty, dst, addr, .. } = op {
        return Op::Load { order: *order, proxy, space, ty: *ty, dst: vec![*dst], addr: *addr };
    }
    if let Op::MultimemStore { order, ty, addr, src } = op {
        return Op::Store { order: *order, proxy, space, ty: *ty, addr: *addr, src: vec![*src] };
    }
    let Op::MultimemRed { order, scope, op, ty, addr, src } = op else { return op.clone() };
    let (order, scope, op, ty, addr) = (*order, *scope, *op, *ty, *addr);
    Op::Rmw { red: true, order, scope, proxy, space, op, ty, dst: None, addr, a: *src, b: None }
}

/// Runs `bar.warp.sync`. Lanes that it names and that are elsewhere are waited for.
fn warp_sync(step: &mut Executing<'_, '_>, mask: Operand) -> Result<Then, Refusal> {
    let lanes = step.number(mask, "the mask of bar.warp.sync")?;
    if let Operand::Imm(named) = lanes {
        let named = u32::try_from(named & 0xffff_ffff).unwrap_or(0);
        if named & step.state.alive & !step.mask != 0 {
            step.meet(step.mask, named)?;
        }
    }
    step.leave(Op::WarpSync { mask: lanes }, Made::default())
}

fn as_it_is(step: &mut Executing<'_, '_>, op: &Op) -> Result<Then, Refusal> {
    step.leave(op.clone(), Made::default())
}

/// Evaluates `mapa`.
fn mapped(step: &Executing<'_, '_>, shared: bool, src: Operand, rank: Operand) -> Val {
    let low = (1 << RANK_SHIFT) - 1;
    let low = if shared { low } else { SHARED_WINDOW | low };
    match (step.value(src), step.value(rank)) {
        (Val::Known(s), Val::Known(r)) => Val::Known(s.zip(&r, |s, r| s & low | r << RANK_SHIFT)),
        _ => Val::Unknown(Why::Computed(step.line())),
    }
}
