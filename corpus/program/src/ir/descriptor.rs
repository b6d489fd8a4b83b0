//! Matrices in shared memory and the shape of a product, as operands of tensor-core instructions.
//!
//! PTX passes both in registers with packed fields (9.7.16.4). A litmus text may say
//! instead what matters of them: which bytes of which object, and how many rows and columns. Reading the packed forms
//! is in [`crate::tensor`].

use super::parts::{Part, Role, parts_of};
use super::{Address, Operand};

/// Where a matrix lies in the shared memory of the CTA that issues the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// 64 bits in the format of the PTX ISA.
    Packed(Operand),
    /// `desc(x+offset, bytes)`: so many bytes from there, all of them.
    Range {
        /// First byte: a name of shared memory or a register that holds such an address.
        addr: Address,
        /// How many.
        bytes: u32,
    },
}

/// Shape of a product; the third extent follows from the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductShape {
    /// 32 bits in the format of the PTX ISA (instruction descriptor).
    Packed(Operand),
    /// `idesc(m, n)`
    Tile {
        /// Rows of A and D.
        m: u16,
        /// Columns of B and D.
        n: u16,
    },
}

parts_of!(Descriptor, |matrix, see| match matrix {
    Descriptor::Packed(operand) => see(Part::Source(operand, Role::Known)),
    Descriptor::Range { addr, .. } => addr.each(see),
});

parts_of!(ProductShape, |shape, see| match shape {
    ProductShape::Packed(operand) => see(Part::Source(operand, Role::Known)),
    ProductShape::Tile { .. } => {}
});
