//! Addresses in tensor memory that are numbers.
//!
//! A CTA has 512 columns (PTX ISA 9.2, 9.7.16.1). Who allocates all of them gets column 0, so kernels leave out reading the
//! address that the allocation writes and count from 0. That is followed if the CTA has one allocation, of all columns. In a
//! residual program the first allocation of a CTA starts at [`FIRST_COLUMN`].

use super::item::{Item, Trace};
use super::launch::Here;
use crate::Refusal;
use moire_program::ir::{Op, Operand, TENSOR_COLUMNS, Tcgen05};

/// Where the first allocation of a CTA starts in a residual program.
pub(super) const FIRST_COLUMN: i128 = 1_024;

/// Refuses numbers as addresses of a CTA that does not surely have all columns in one allocation.
pub(super) fn counted(places: &[Here], traces: &[Trace]) -> Result<(), Refusal> {
    let numbered = places.iter().zip(traces).filter_map(|(here, t)| Some((here.cta, t.numbered?)));
    for (cta, line) in numbered {
        let warps = places.iter().zip(traces).filter(|(here, _)| here.cta == cta);
        let allocations: Vec<bool> =
            warps.flat_map(|(_, t)| t.items.iter()).filter_map(|p| whole(&p.item)).collect();
        if allocations != [true] {
            let what =
                "an address in tensor memory that is a number, where no single allocation has all columns";
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
