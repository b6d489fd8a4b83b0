//! Warpgroup products (sm_90a): coarse, what matters are the matrices in shared memory, the registers and the groups.
//!
//! PTX ISA 9.2, 9.7.15. Not represented: sparse products.

use super::parts::{Part, Role, parts_of};
use super::{Descriptor, EnableInput, Reg};

/// One `wgmma.*` instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wgmma {
    /// `wgmma.fence`
    Fence,
    /// `wgmma.commit_group`
    Commit,
    /// `wgmma.wait_group`: at most so many groups of the warpgroup are pending.
    Wait(u32),
    /// `wgmma.mma_async`
    Product(Box<WgmmaProduct>),
}

/// Element types of a warpgroup product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the PTX types")]
pub enum WgmmaType {
    F16,
    Bf16,
    Tf32,
    F32,
    E4m3,
    E5m2,
    S8,
    U8,
    B1,
    S32,
}

impl WgmmaType {
    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            WgmmaType::B1 => 1,
            WgmmaType::E4m3 | WgmmaType::E5m2 | WgmmaType::S8 | WgmmaType::U8 => 8,
            WgmmaType::F16 | WgmmaType::Bf16 => 16,
            WgmmaType::Tf32 | WgmmaType::F32 | WgmmaType::S32 => 32,
        }
    }
}

/// Where the first factor of a warpgroup product is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WgmmaFactor {
    /// Shared memory.
    Shared(Descriptor),
    /// Four registers a thread.
    Registers(Vec<Reg>),
}

/// `wgmma.mma_async`: `D = A * B + D`, 64 rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WgmmaProduct {
    /// Columns.
    pub n: u16,
    /// Inner extent; follows from the types.
    pub k: u16,
    /// Types of D, A, B.
    pub types: [WgmmaType; 3],
    /// Accumulator, in the registers of the warpgroup.
    pub d: Vec<Reg>,
    /// First factor.
    pub a: WgmmaFactor,
    /// Second factor.
    pub b: Descriptor,
    /// Operand scale-d: whether D is read.
    pub input: EnableInput,
    /// Signs and transpositions, as written.
    pub immediates: Vec<i8>,
}

impl Wgmma {
    /// Name without qualifiers.
    pub fn name(&self) -> &'static str {
        match self {
            Wgmma::Fence => "wgmma.fence",
            Wgmma::Commit => "wgmma.commit_group",
            Wgmma::Wait(_) => "wgmma.wait_group",
            Wgmma::Product(_) => "wgmma.mma_async",
        }
    }
}

parts_of!(WgmmaProduct, |product, see| {
    let WgmmaProduct { d, a, b, input, .. } = product;
    for d in d {
        see(Part::Write(d));
    }
    match a {
        WgmmaFactor::Shared(matrix) => matrix.each(see),
        WgmmaFactor::Registers(all) => {
            for a in all {
                see(Part::Read(a, Role::Opaque));
            }
        }
    }
    b.each(see);
    input.each(see);
});

parts_of!(Wgmma, |wgmma, see| match wgmma {
    Wgmma::Product(product) => product.each(see),
    Wgmma::Fence | Wgmma::Commit | Wgmma::Wait(_) => {}
});
