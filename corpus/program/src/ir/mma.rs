//! `tcgen05.mma`: dense, sparse, block-scaled and weight-stationary products.
//!
//! PTX ISA 9.2, 9.7.16.10.

use super::parts::{Part, Role, parts_of};
use super::{Address, CtaGroup, Descriptor, Guard, Operand, ProductShape, Reg};

/// One product: `D = A * B` or `D = A * B + D`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mma {
    /// Which CTAs.
    pub group: CtaGroup,
    /// Element types.
    pub kind: MmaKind,
    /// `.ws`: B stays in the collector, A streams.
    pub stationary: bool,
    /// `.ashift`: rows of A shifted by one.
    pub ashift: bool,
    /// `.collector::a::*`
    pub collector_a: Option<CollectorUse>,
    /// `.collector::b::*` (sm_107a) or `.collector::bN::*` of `.ws`.
    pub collector_b: Option<CollectorB>,
    /// Accumulator in tensor memory.
    pub d: Address,
    /// First factor.
    pub a: Factor,
    /// Second factor.
    pub b: Descriptor,
    /// `.sp`: metadata in tensor memory.
    pub metadata: Option<Address>,
    /// Rows and columns.
    pub shape: ProductShape,
    /// `.block_scale`
    pub scales: Option<BlockScale>,
    /// Lanes of D that are not written, a bit a lane: 4 or 8 registers, or none.
    pub lanes_off: Vec<Reg>,
    /// Whether D is read.
    pub input: EnableInput,
    /// D is divided by this power of two first.
    pub scale_input: Option<u8>,
    /// `.ws`: columns of B taken as zero, 64 bits.
    pub zero_columns: Option<Operand>,
}

/// Where the first factor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// Shared memory.
    Shared(Descriptor),
    /// Tensor memory.
    Tensor(Address),
}

/// Element types of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the PTX kinds")]
pub enum MmaKind {
    F16,
    Tf32,
    F8f6f4,
    I8,
    /// sm_107a
    Ti16,
    Mxf8f6f4,
    Mxf4,
    Mxf4nvf4,
}

impl MmaKind {
    /// Kinds that exist with `.block_scale` only.
    pub fn scaled(self) -> bool {
        matches!(self, MmaKind::Mxf8f6f4 | MmaKind::Mxf4 | MmaKind::Mxf4nvf4)
    }
}

/// What the collector buffer is used for: opportunistic reuse of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the PTX qualifiers")]
pub enum CollectorUse {
    Fill,
    Use,
    LastUse,
    Discard,
}

/// A collector buffer of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectorB {
    /// 0 to 3 for `.ws`; none otherwise.
    pub buffer: Option<u8>,
    /// What for.
    pub usage: CollectorUse,
}

/// Scale factors in tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockScale {
    /// Elements a factor.
    pub size: ScaleSize,
    /// Of A.
    pub a: Address,
    /// Of B.
    pub b: Address,
}

/// How many elements share a scale factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScaleSize {
    /// The one the kind has.
    Default,
    /// `.block16`
    Block16,
    /// `.block32`
    Block32,
    /// `.scale_vec::1X`
    Times1,
    /// `.scale_vec::2X`
    Times2,
    /// `.scale_vec::4X`
    Times4,
}

/// Operand enable-input-d: false writes D, true reads and writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnableInput {
    /// A literal.
    Always(bool),
    /// A predicate.
    When(Guard),
}

parts_of!(Factor, |factor, see| match factor {
    Factor::Shared(matrix) => matrix.each(see),
    Factor::Tensor(addr) => addr.each(see),
});

parts_of!(EnableInput, |input, see| match input {
    EnableInput::Always(_) => {}
    EnableInput::When(Guard { reg, .. }) => see(Part::Read(reg, Role::Opaque)),
});

parts_of!(Mma, |mma, see| {
    let Mma { d, a, b, metadata, shape, scales, lanes_off, input, zero_columns, .. } = mma;
    d.each(see);
    a.each(see);
    b.each(see);
    if let Some(metadata) = metadata {
        metadata.each(see);
    }
    shape.each(see);
    if let Some(BlockScale { a, b, .. }) = scales {
        a.each(see);
        b.each(see);
    }
    for lanes in lanes_off {
        see(Part::Read(lanes, Role::Known));
    }
    input.each(see);
    if let Some(columns) = zero_columns {
        see(Part::Source(columns, Role::Known));
    }
});
