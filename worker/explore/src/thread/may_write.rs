//! Static may-write analysis: the cells that the code of a thread may write from each position on, by its text.

use super::flow::successors;
use super::footprint::{self, memory_operand, spreads, tile_operands};
use super::ids::{CellId, Id};
use super::layout::Layout;
use fixedbitset::FixedBitSet;
use moire_program::ir::*;

/// Per pc the cells that code may write; `None` when some address is not a static constant.
pub(crate) type Written = Vec<Option<FixedBitSet>>;

/// Whether code from `pc` on may write a cell.
pub(crate) fn may_write(written: &Written, pc: usize, cell: CellId) -> bool {
    written[pc].as_ref().is_none_or(|cells| cells[cell.index()])
}

/// Waits for every thread of the CTA.
fn for_all(instr: &Instr) -> bool {
    matches!(instr.op, Op::Bar { kind: BarKind::Sync | BarKind::Red { .. }, count: None, instance: None, .. })
        && instr.guard.is_none()
}

/// The cells an instruction may write; if `copied`, other than by ordinary stores.
fn own(program: &Program, layout: &Layout, id: ThreadId, instr: &Instr, copied: bool) -> Option<FixedBitSet> {
    let mut cells = FixedBitSet::with_capacity(layout.cells.len());
    if spreads(&instr.op) {
        return None;
    }
    let later = footprint::copied(&instr.op)?;
    for (addr, bytes) in &later {
        let Operand::Address(symbol) = addr.base else { return None };
        let start = layout.address(program, symbol, id);
        #[expect(clippy::cast_sign_loss, reason = "addresses wrap")]
        let access = layout.resolve(program, start.wrapping_add(i128::from(addr.offset) as Value), *bytes)?;
        cells.insert_range(access.positions());
    }
    for (addr, bytes) in tile_operands(&instr.op) {
        let Operand::Address(symbol) = addr.base else { return None };
        let start = layout.address(program, symbol, id);
        #[expect(clippy::cast_sign_loss, reason = "addresses wrap")]
        let access = layout.resolve(program, start.wrapping_add(i128::from(addr.offset) as Value), bytes)?;
        cells.insert_range(access.positions());
    }
    let ordinary =
        matches!(instr.op, Op::Store { proxy: Proxy::Generic, .. } | Op::Rmw { proxy: Proxy::Generic, .. });
    let Some((addr, bytes, count, true)) = memory_operand(&instr.op).filter(|_| !(copied && ordinary)) else {
        return Some(cells);
    };
    let Operand::Address(symbol) = addr.base else { return None };
    if !program.symbols[symbol.index()].multimem.is_empty() {
        return None;
    }
    let start = layout.address(program, symbol, id);
    let (bytes, count) = if bytes == 16 { (8, 2 * count) } else { (bytes, count) };
    for element in 0..count {
        let offset = i128::from(addr.offset) + i128::try_from(element).ok()? * i128::from(bytes);
        #[expect(clippy::cast_sign_loss, reason = "addresses wrap")]
        let access = layout.resolve(program, start.wrapping_add(offset as Value), bytes)?;
        cells.insert_range(access.positions());
    }
    Some(cells)
}

/// Adds what `other` may write.
fn join(cells: &mut Option<FixedBitSet>, other: Option<&FixedBitSet>) {
    match (cells.as_mut(), other) {
        (Some(cells), Some(other)) => cells.union_with(other),
        _ => *cells = None,
    }
}

/// What code from some place on may write.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// By pc, anything.
    pub(crate) all: Written,
    /// Before it comes to a barrier of the whole CTA, one at that pc apart.
    pub(crate) near: Written,
    /// Other than by ordinary stores.
    pub(crate) copied: Written,
    /// Some instruction writes in a way that no licence of a model speaks of.
    pub(crate) unlicensed: bool,
}

/// Whether an instruction writes in program order through another proxy than the generic one.
fn unlicensed(instr: &Instr) -> bool {
    matches!(instr.op, Op::Store { proxy, .. } | Op::Rmw { proxy, .. } if proxy != Proxy::Generic)
}

impl Ahead {
    pub(crate) fn new(program: &Program, layout: &Layout, thread: ThreadId) -> Ahead {
        let body = &program.threads[thread.index()].body;
        let by = |copied: bool| -> Written {
            body.iter().map(|i| own(program, layout, thread, i, copied)).collect()
        };
        let (any, copied) = (by(false), by(true));
        let onward = |now: &mut Option<FixedBitSet>, of: &Written, pc: usize| {
            successors(body, pc).iter().for_each(|s| join(now, of[(*s).min(body.len())].as_ref()));
        };
        let close = |own: &Written, stops: &dyn Fn(usize) -> bool| {
            let mut after = vec![Some(FixedBitSet::with_capacity(layout.cells.len())); body.len() + 1];
            let mut now = None;
            loop {
                let mut changed = false;
                for pc in (0..body.len()).rev() {
                    now.clone_from(&own[pc]);
                    if !stops(pc) {
                        onward(&mut now, &after, pc);
                    }
                    if now != after[pc] {
                        changed = true;
                        std::mem::swap(&mut now, &mut after[pc]);
                    }
                }
                if !changed {
                    return after;
                }
            }
        };
        let stopped = close(&any, &|pc| for_all(&body[pc]));
        let mut near = any.clone();
        near.iter_mut().enumerate().for_each(|(pc, now)| onward(now, &stopped, pc));
        near.push(None);
        Ahead {
            near,
            all: close(&any, &|_| false),
            copied: close(&copied, &|_| false),
            unlicensed: body.iter().any(unlicensed),
        }
    }
}
