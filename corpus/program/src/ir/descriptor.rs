//! Matrices in shared memory and the shape of a product, as operands of tensor-core instructions.
//!
//! PTX passes both in registers with packed fields (9.7.16.4). A litmus text may say
//! instead what matters of them: which bytes of which object, and how many rows and columns. Reading the packed forms
//! is in [`crate::tensor`].

use super::parts::{Part, Role, parts_of};
use super::{Address, Factor, Op, Operand, Tcgen05, Wgmma, WgmmaFactor};

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

impl Op {
    /// The matrices in shared memory that it names.
    pub fn matrices(&self) -> Vec<&Descriptor> {
        match self {
            Op::Tcgen05(op) => op.matrices(),
            Op::Wgmma(Wgmma::Product(product)) => match &product.a {
                WgmmaFactor::Shared(a) => vec![a, &product.b],
                WgmmaFactor::Registers(_) => vec![&product.b],
            },
            Op::Wgmma(Wgmma::Fence | Wgmma::Commit | Wgmma::Wait(_)) => Vec::new(),
            register_op!() => Vec::new(),
            Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) => Vec::new(),
            multimem_op!() | fence_op!() | barrier_op!() => Vec::new(),
            Op::AsyncCopy(_) | Op::Tile(_) | Op::Control(_) | jump_op!() => Vec::new(),
            Op::Book(_) => Vec::new(),
        }
    }
}

impl Tcgen05 {
    fn matrices(&self) -> Vec<&Descriptor> {
        match self {
            Tcgen05::Copy { src, .. } => vec![src],
            Tcgen05::Mma(mma) => match &mma.a {
                Factor::Shared(a) => vec![a, &mma.b],
                Factor::Tensor(_) => vec![&mma.b],
            },
            Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => Vec::new(),
            Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::WaitLoad | Tcgen05::WaitStore => Vec::new(),
            Tcgen05::Shift { .. } | Tcgen05::Commit(_) => Vec::new(),
            Tcgen05::FenceBefore | Tcgen05::FenceAfter => Vec::new(),
        }
    }
}

parts_of!(Descriptor, |matrix, see| match matrix {
    Descriptor::Packed(operand) => see(Part::Source(operand, Role::Known)),
    Descriptor::Range { addr, .. } => addr.each(see),
});

parts_of!(ProductShape, |shape, see| match shape {
    ProductShape::Packed(operand) => see(Part::Source(operand, Role::Known)),
    ProductShape::Tile { .. } => {}
});
