//! One instruction that does more than touch registers: which family emits its events.

use super::access;
use super::allocator;
use super::arith;
use super::barrier;
use super::book;
use super::collective;
use super::copies;
use super::event::Kind;
use super::event::labels::{
    fence_labels, init_fence_labels, load_labels, proxy_fence_labels, rmw_labels, store_labels,
};
use super::machine::Machine;
use super::mbarrier;
use super::operands::defines;
use super::proxies;
use super::rmw;
use super::rmw::Update;
use super::tensor;
use super::tile;
use super::trace::{TraceEnd, View};
use super::warpgroup;
use moire_program::ir::*;
use moire_program::{barrier_op, jump_op, register_op};

pub(crate) fn operation<V: View>(m: &mut Machine<'_, V>, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
    m.unit += 1;
    m.known(instr)?;
    if matches!(instr.op, Op::Control(Control::Elect { .. } | Control::Collective(_))) {
        return collective::collective(m, instr, pc);
    }
    arith::agreed(m, instr)?;
    let done = emit(m, instr, pc);
    for reg in defines(&instr.op) {
        m.lanes.set(reg);
    }
    done
}

fn emit<V: View>(m: &mut Machine<'_, V>, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
    match &instr.op {
        Op::Fence { order, scope } => {
            let event = m.blank(instr, pc, Kind::Fence, fence_labels(*order, *scope), Some(*scope));
            m.events.push(Some(event));
            Ok(())
        }
        Op::ProxyFence(kinds) => {
            let event = m.blank(instr, pc, Kind::Fence, proxy_fence_labels(kinds), None);
            m.events.push(Some(event));
            Ok(())
        }
        Op::Load { order, proxy, space, ty, dst, addr } => {
            let (labels, scope) = load_labels(*order, *proxy);
            access::load(m, instr, pc, (labels, scope), *space, *ty, dst, addr)
        }
        Op::Store { order, proxy, space, ty, addr, src } => {
            let (labels, scope) = store_labels(*order, *proxy);
            access::store(m, instr, pc, (labels, scope), *space, *ty, src, addr)
        }
        Op::Rmw { .. } | Op::MultimemRed { .. } if m.lanes.count() > 1 => {
            let what = "a read-modify-write by several lanes at once";
            Err(TraceEnd::Unsupported(what.into(), instr.line))
        }
        Op::Rmw { red, order, scope, proxy, space, op, ty, dst, addr, a, b } => {
            let labels = rmw_labels(*order, *scope, *proxy, *red);
            let update = Update { labels, scope: *scope, space: *space, op: *op, ty: *ty, a: *a, b: *b };
            let base = m.address(addr);
            rmw::update(m, instr, pc, &update, base, *dst)
        }
        Op::MultimemLoad { order, op, ty, dst, addr } => {
            rmw::multimem_load(m, instr, pc, *order, *op, *ty, *dst, addr)
        }
        Op::MultimemStore { order, ty, addr, src } => {
            let (labels, scope) = store_labels(*order, Proxy::Generic);
            for base in access::multimem(m, addr, instr)? {
                access::element(m, instr, pc, (labels, scope), Space::Generic, base, 0, ty.bytes(), *src)?;
            }
            Ok(())
        }
        Op::MultimemRed { order, scope, op, ty, addr, src } => {
            let labels = rmw_labels(*order, *scope, Proxy::Generic, true);
            let update =
                Update { labels, scope: *scope, space: Space::Generic, op: *op, ty: *ty, a: *src, b: None };
            for base in access::multimem(m, addr, instr)? {
                rmw::update(m, instr, pc, &update, base, None)?;
            }
            Ok(())
        }
        barrier_op!() => barrier::barrier(m, instr, pc),
        Op::Mbarrier(op) => mbarrier::mbarrier(m, op, instr, pc),
        Op::MbarrierInitFence => {
            let event = m.blank(instr, pc, Kind::Fence, init_fence_labels(), None);
            m.events.push(Some(event));
            Ok(())
        }
        Op::Tcgen05(op @ (Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. })) => {
            allocator::allocator(m, op, instr, pc)
        }
        Op::Tcgen05(op) => tensor::tensor(m, op, instr, pc),
        Op::AsyncCopy(op) => copies::copy(m, op, instr, pc),
        Op::Wgmma(op) => warpgroup::wgmma(m, op, instr, pc),
        Op::ProxyOrder(op) => proxies::proxy_order(m, op, instr, pc),
        Op::Tile(op) => tile::tile(m, op, instr, pc),
        Op::Control(control) => copies::launch_control(m, control, instr, pc),
        register_op!() => Err(m.wrong(instr, "this instruction")),
        jump_op!() => Err(m.wrong(instr, "this instruction")),
        Op::Book(book) => book::emit(m, book, instr, pc),
    }
}
