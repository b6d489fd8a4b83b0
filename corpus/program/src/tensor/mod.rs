//! What tensor-core instructions touch: cells of tensor memory by shape, bytes of shared memory by descriptor.
//!
//! Pure functions of the text; what depends on a register is an argument. Source: PTX ISA 9.7.16.2 to 9.7.16.4, 9.7.16.10.5.

mod cells;
mod matrix;

pub use cells::{Cells, Touch, Usage, accumulator, copied, moved, shifted, touches};
pub use matrix::{Extent, InstructionDescriptor, Major, SharedMatrix, Swizzle, copied_extent, factor_extent};

use crate::ir::{Address, Tcgen05};

/// The cells behind each address in tensor memory of an instruction, where its text tells its shape.
pub fn cells(op: &Tcgen05) -> Option<Vec<(Address, Vec<Cells>)>> {
    let touches = touches(op, None)?;
    Some(touches.into_iter().map(|t| (t.addr, t.cells)).collect())
}
