//! Where an instruction works in tensor memory: allocations, names, shapes and masks.

use crate::engine::{At, Engine, address, known};
use crate::finding::Stop;
use crate::layout::STRIDE;
use crate::record::Home;
use crate::state::State;
use crate::value::low;
use moire_program::ir::{Address, Mma, Operand, ProductShape, Tcgen05};
use moire_program::tensor::InstructionDescriptor;
use std::ops::Range;

/// Distance in columns between two allocations; none is larger.
const STEP: u32 = 1_024;
/// Most allocations of a CTA.
const SLOTS: u32 = 63;

/// The address of an allocation.
pub(super) fn address_of(slot: u32) -> u128 {
    u128::from(STEP * (slot + 1))
}

/// The allocation that a column belongs to, and its position there.
pub(super) fn slot_of(column: u32) -> Option<(u32, u32)> {
    Some(((column / STEP).checked_sub(1)?, column % STEP))
}

/// The number of the next allocation of a thread. Both CTAs of a pair use the same numbers.
pub(super) fn next_slot(e: &Engine<'_>, s: &State, at: At<'_>, pair: bool) -> Result<u32, Stop> {
    let allocates = |t: &usize| {
        let body = &e.program.threads[*t].body;
        body.iter().any(|i| matches!(i.op, moire_program::ir::Op::Tcgen05(Tcgen05::Alloc { .. })))
    };
    let all: Vec<usize> = e.layout.ctas[at.cta].iter().copied().filter(allocates).collect();
    let rank = all.iter().position(|t| *t == at.thread).unwrap_or(0);
    if pair && all.len() > 1 {
        return Err(at.abstain("tcgen05.alloc.cta_group::2 by several warps of a CTA"));
    }
    let done = s.threads[at.thread].allocations as usize;
    let number = if pair { done } else { done * all.len() + rank };
    let number = u32::try_from(number).ok().filter(|n| *n < SLOTS);
    number.ok_or_else(|| at.abstain("more than 63 allocations of tensor memory"))
}

/// The allocation or `.tmem` name that an address belongs to, and the lane and column in it.
pub(super) fn place_in_tensor(
    e: &Engine<'_>,
    s: &State,
    at: At<'_>,
    addr: &Address,
) -> Result<(Option<Home>, u32), Stop> {
    let value = address(e, s, at, addr)?;
    if value < STRIDE {
        let bits = u32::try_from(value).unwrap_or(u32::MAX);
        return Ok(match slot_of(bits & 0xffff) {
            Some((slot, column)) => (Some(Home::Slot(slot)), bits & 0xffff_0000 | column),
            None => (None, bits),
        });
    }
    match e.layout.tensor(value) {
        Some((object, bits)) => Ok((Some(Home::Named(object)), bits)),
        None => {
            Err(at.abstain("an address in tensor memory that is neither allocated nor of a `.tmem` name"))
        }
    }
}

/// Rows and columns of a product.
pub(super) fn shape_of(
    e: &Engine<'_>,
    s: &State,
    at: At<'_>,
    op: &Tcgen05,
) -> Result<Option<(u16, u16)>, Stop> {
    let Tcgen05::Mma(mma) = op else { return Ok(None) };
    match mma.shape {
        ProductShape::Tile { m, n } => Ok(Some((m, n))),
        ProductShape::Packed(word) => {
            let bits = u32::try_from(low(known(e, s, at, word)?, 32)).unwrap_or(0);
            let shape = InstructionDescriptor::decode(bits, mma.kind);
            Ok(Some((shape.m, shape.n)))
        }
    }
}

/// Lanes of the accumulator that a product does not write, a mask for each CTA.
pub(super) fn masks(
    e: &Engine<'_>,
    s: &State,
    at: At<'_>,
    op: &Tcgen05,
    ctas: &[usize],
) -> Result<Vec<u128>, Stop> {
    let Tcgen05::Mma(mma) = op else { return Ok(vec![0; ctas.len()]) };
    let mut out = Vec::new();
    for cta in ctas {
        let first = 4 * ctas.iter().filter(|c| e.place(**c) < e.place(*cta)).count();
        let all = mask(e, s, at, mma, first)?;
        out.push(if e.settings.masked_written { 0 } else { all });
    }
    Ok(out)
}

fn mask(e: &Engine<'_>, s: &State, at: At<'_>, mma: &Mma, first: usize) -> Result<u128, Stop> {
    let mut all = 0;
    for (n, reg) in mma.lanes_off.iter().skip(first).take(4).enumerate() {
        all |= low(known(e, s, at, Operand::Reg(*reg))?, 32) << (32 * n);
    }
    Ok(all)
}

/// The lanes of a range that a mask leaves, as ranges.
pub(super) fn without(lanes: Range<u32>, off: u128) -> Vec<Range<u32>> {
    let mut out: Vec<Range<u32>> = Vec::new();
    for lane in lanes.filter(|lane| off.checked_shr(*lane).is_none_or(|rest| rest & 1 == 0)) {
        match out.last_mut() {
            Some(last) if last.end == lane => last.end += 1,
            _ => out.push(lane..lane + 1),
        }
    }
    out
}
