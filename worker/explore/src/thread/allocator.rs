//! Instructions of the allocator of tensor memory as events (PTX ISA 9.2, 9.7.16.7).

use super::access;
use super::collective;
use super::event::allocator::{AllocAct, AllocUse};
use super::event::labels::labels;
use super::event::{Emitted, Kind};
use super::machine::Machine;
use super::tensor;
use super::trace::{TraceEnd, View};
use moire_cat::vocabulary::sets;
use moire_execution::columns;
use moire_execution::leaf::truncate;
use moire_program::ir::*;

/// Whether no thread of the warp with lower lanes has such an instruction.
fn leads<V: View>(m: &Machine<'_, V>, op: &Tcgen05) -> bool {
    let own = m.place();
    let before = |t: &Thread| {
        let near = t.place.same_cta(own) && t.place.warp == own.warp && t.place.mask != 0;
        near && t.place.lane() < own.lane() && t.body.iter().any(|i| i.op.extended() == Some(op.name()))
    };
    !m.program.threads.iter().any(before)
}

pub(crate) fn allocator<V: View>(
    m: &mut Machine<'_, V>,
    op: &Tcgen05,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    // The warp executes it once, by its first thread; the others wait for each other only.
    collective::aligned(m, op.name(), instr, pc)?;
    if !leads(m, op) {
        return Ok(());
    }
    let ctas = tensor::ctas(m, op.group() == Some(CtaGroup::Two), instr)?;
    let (cta, peer) = (ctas[0], ctas.get(1).copied());
    let known = |o: Operand| {
        let state = m.operand(o);
        state.value.map(|v| truncate(v, 32)).ok_or(TraceEnd::Pending(state.deps))
    };
    let granularity = tensor::granularity(m, op);
    let plain = |act, set| {
        let (exclusive, columns, wrong_count) = (false, 0, false);
        (AllocUse { act, cta, peer, exclusive, columns, wrong_count, granularity }, set)
    };
    let counted = |act, set, exclusive, count: Operand| {
        let count = known(count)?;
        let wrong_count = !columns::countable(count, exclusive);
        let most = columns::most(exclusive);
        let columns = u32::try_from(count).unwrap_or(most).min(most);
        Ok((AllocUse { act, cta, peer, exclusive, columns, wrong_count, granularity }, set))
    };
    let (used, set) = match op {
        Tcgen05::Alloc { exclusive, columns: count, .. } => {
            let gets =
                |e: &&Emitted| matches!(e.kind, Kind::Allocator(AllocUse { act: AllocAct::Get { .. }, .. }));
            let nth = m.events.iter().flatten().filter(gets).count();
            let slot = columns::slot(m.program, m.thread.index(), nth, peer.is_some());
            let slot = slot.ok_or_else(|| {
                TraceEnd::Unsupported("more than 63 allocations of tensor memory".into(), instr.line)
            })?;
            counted(AllocAct::Get { slot }, sets::TC_GET, *exclusive, *count)?
        }
        Tcgen05::Dealloc { exclusive, addr, columns: count, .. } => {
            let at = m.operand(*addr);
            let Some(at) = at.value else { return Err(TraceEnd::Pending(at.deps)) };
            let at = u32::try_from(at).ok().filter(|at| at >> 16 == 0);
            let place = at.and_then(columns::of_column);
            counted(AllocAct::Put { place }, sets::TC_PUT, *exclusive, *count)?
        }
        Tcgen05::Relinquish { .. } => plain(AllocAct::Release, sets::TC_REL),
        Tcgen05::Load(_)
        | Tcgen05::Store(_)
        | Tcgen05::WaitLoad
        | Tcgen05::WaitStore
        | Tcgen05::Copy { .. }
        | Tcgen05::Shift { .. }
        | Tcgen05::Mma(_)
        | Tcgen05::Commit(_)
        | Tcgen05::FenceBefore
        | Tcgen05::FenceAfter => return Err(m.wrong(instr, op.name())),
    };
    let event = m.blank(instr, pc, Kind::Allocator(used), labels(&[set]), None);
    let index = event.index;
    m.events.push(Some(event));
    let waits = peer.is_some() || matches!(used.act, AllocAct::Get { .. });
    if !waits {
        return Ok(());
    }
    let Some(address) = m.view.passed(index) else { return Err(TraceEnd::Barrier(index)) };
    if let Tcgen05::Alloc { dst, .. } = op { access::address_out(m, instr, pc, dst, address) } else { Ok(()) }
}
