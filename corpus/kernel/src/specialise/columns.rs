//! Addresses in tensor memory that are numbers.
//!
//! A CTA has 512 columns (PTX ISA 9.2, 9.7.16.1). Who allocates all of them gets column 0, so kernels leave out reading the
//! address that the allocation writes and count from 0. That is followed if the CTA has one allocation, and no other CTA of the
//! kernel fits beside it: the allocation is of all columns, or the CTA uses more than half of the shared memory. In a
//! residual program the first allocation of a CTA starts at [`FIRST_COLUMN`].

use super::item::{Item, Trace};
use super::launch::Here;
use super::residual::apart::uses;
use super::touch::Mem;
use crate::Refusal;
use moire_program::ir::{Op, Operand, TENSOR_COLUMNS, Tcgen05};

/// Where the first allocation of a CTA starts in a residual program.
pub(super) const FIRST_COLUMN: i128 = 1_024;

/// The shared memory of an SM of compute capability 10.0, and what the system keeps for each CTA, in bytes (CUDA C++ Programming
/// Guide 13.0, technical specifications per compute capability).
const SHARED: (u64, u64) = (228 << 10, 1 << 10);

/// Refuses numbers as addresses of a CTA that does not surely have the first columns in its only allocation.
pub(super) fn counted(places: &[Here], traces: &[Trace]) -> Result<(), Refusal> {
    let numbered = places.iter().zip(traces).filter_map(|(here, t)| Some((here.cta, t.numbered?)));
    for (cta, line) in numbered {
        let warps = places.iter().zip(traces).filter(|(here, _)| here.cta == cta);
        let items: Vec<&Item> = warps.flat_map(|(_, t)| t.items.iter()).map(|p| &p.item).collect();
        let allocations: Vec<bool> = items.iter().filter_map(|item| whole(item)).collect();
        let alone = || 2 * (SHARED.1 + reached(&items, cta)) > SHARED.0;
        if allocations != [true] && (allocations.len() != 1 || !alone()) {
            let what = "an address in tensor memory that is a number, where not one allocation has all columns, \
                        or is beside no other";
            return Err(Refusal::Abstained { what: what.into(), line });
        }
    }
    Ok(())
}

/// Whether an allocation is of all columns, if the item is one.
fn whole(item: &Item) -> Option<bool> {
    let Item::Op { op, .. } = item else { return None };
    let Op::Tcgen05(Tcgen05::Alloc { columns, .. }) = &**op else { return None };
    Some(*columns == Operand::Imm(i128::from(TENSOR_COLUMNS)))
}

/// The end of the shared memory of a CTA that these items use.
fn reached(items: &[&Item], cta: u32) -> u64 {
    let touches = items.iter().flat_map(|item| uses(item)).map(|used| used.0);
    let own = touches.filter(|touch| touch.mem == Mem::Shared(cta));
    own.flat_map(|touch| &touch.ranges).map(|range| range.1).max().unwrap_or(0)
}
