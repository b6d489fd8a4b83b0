//! Instructions of the fifth-generation tensor cores and of tensor memory.
//!
//! Source: PTX ISA 9.2, 9.7.16 (9.4: 9.7.18), in the forms that the assembler accepts. A tensor memory address has 32
//! bits: the lane in the upper half, the column in the lower. `Address::offset` is added to it as PTX does, so
//! `lane << 16 | column` is an offset.

use super::parts::{Part, Role, parts_of};
use super::{Address, Descriptor, Mma, Operand, Reg, Space, Ty};

/// Lanes of the tensor memory of a CTA.
pub const TENSOR_LANES: u32 = 128;
/// Columns of 32 bits of the tensor memory of a CTA.
pub const TENSOR_COLUMNS: u32 = 512;
/// Granularity of an allocation in columns.
pub const TENSOR_UNIT: u32 = 32;

/// `.cta_group::1`, `.cta_group::2`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CtaGroup {
    /// The CTA of the thread.
    One,
    /// The pair: CTAs of a cluster whose ranks differ in the last bit.
    Two,
}

impl CtaGroup {
    /// How many CTAs take part.
    pub fn ctas(self) -> u16 {
        match self {
            CtaGroup::One => 1,
            CtaGroup::Two => 2,
        }
    }
}

/// One `tcgen05.*` instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tcgen05 {
    /// `tcgen05.alloc`: writes the address of the columns to shared memory.
    Alloc {
        /// `.exclusive` (9.4): the only live allocation.
        exclusive: bool,
        /// Which CTAs.
        group: CtaGroup,
        /// Generic or `.shared::cta`.
        space: Space,
        /// Receives the address, 4 bytes.
        dst: Address,
        /// How many columns.
        columns: Operand,
    },
    /// `tcgen05.dealloc`
    Dealloc {
        /// As for the allocation.
        exclusive: bool,
        /// Which CTAs.
        group: CtaGroup,
        /// The address the allocation gave.
        addr: Operand,
        /// How many columns.
        columns: Operand,
    },
    /// `tcgen05.relinquish_alloc_permit`
    Relinquish {
        /// Which CTAs.
        group: CtaGroup,
    },
    /// `tcgen05.ld`, `tcgen05.ld.red`
    Load(TensorLoad),
    /// `tcgen05.st`
    Store(TensorStore),
    /// `tcgen05.wait::ld`
    WaitLoad,
    /// `tcgen05.wait::st`
    WaitStore,
    /// `tcgen05.cp`
    Copy {
        /// Which CTAs.
        group: CtaGroup,
        /// Lanes, bits of each, and the warps whose lanes receive them.
        shape: CopyShape,
        /// Widening on the way.
        widen: Option<Widening>,
        /// Tensor memory.
        dst: Address,
        /// Shared memory.
        src: Descriptor,
    },
    /// `tcgen05.shift.down`
    Shift {
        /// Which CTAs.
        group: CtaGroup,
        /// Tensor memory, lane aligned to 32.
        addr: Address,
    },
    /// `tcgen05.mma` in all its forms.
    Mma(Box<Mma>),
    /// `tcgen05.commit`
    Commit(Commit),
    /// `tcgen05.fence::before_thread_sync`
    FenceBefore,
    /// `tcgen05.fence::after_thread_sync`
    FenceAfter,
}

/// Shape of a warp's load or store: lanes and bits of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the PTX shapes")]
pub enum MoveShape {
    L32x32b,
    L16x64b,
    L16x128b,
    L16x256b,
    /// Two halves of 16 lanes. The instruction says by how many columns the second is shifted.
    L16x32bx2,
}

/// `tcgen05.ld`: asynchronous; the registers hold the values after `wait::ld`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorLoad {
    /// Lanes and bits.
    pub shape: MoveShape,
    /// `.xN`
    pub times: u8,
    /// `.pack::16b`
    pub pack: bool,
    /// Destination vector.
    pub dst: Vec<Reg>,
    /// `.red`
    pub reduce: Option<TensorReduction>,
    /// Tensor memory.
    pub addr: Address,
    /// Columns between the halves; `.16x32bx2` only.
    pub split: Option<i32>,
}

/// Reduction of `tcgen05.ld.red` over what a thread loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorReduction {
    /// `.max` instead of `.min`.
    pub max: bool,
    /// `.abs`
    pub abs: bool,
    /// `.NaN`
    pub nan: bool,
    /// `.f32`, `.u32`, `.s32`
    pub ty: Ty,
    /// Receives the result.
    pub dst: Reg,
}

/// `tcgen05.st`: asynchronous, complete after `wait::st`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorStore {
    /// Lanes and bits.
    pub shape: MoveShape,
    /// `.xN`
    pub times: u8,
    /// `.unpack::16b`
    pub unpack: bool,
    /// Tensor memory.
    pub addr: Address,
    /// Columns between the halves; `.16x32bx2` only.
    pub split: Option<i32>,
    /// Source vector.
    pub src: Vec<Reg>,
}

/// Shape of `tcgen05.cp`, and the warps whose lanes receive the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the PTX shapes")]
pub enum CopyShape {
    S128x256b,
    S4x256b,
    S128x128b,
    /// `.64x128b.warpx2::02_13`
    S64x128bPairs02And13,
    /// `.64x128b.warpx2::01_23`
    S64x128bPairs01And23,
    /// `.32x128b.warpx4`
    S32x128bAllWarps,
}

/// Widening of `tcgen05.cp` to eight bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Widening {
    /// `.b8x16.b6x16_p32`
    Six,
    /// `.b8x16.b4x16_p64`
    Four,
}

/// `tcgen05.commit`: the mbarriers track the completion of the operations that this thread issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Which CTAs.
    pub group: CtaGroup,
    /// `.sync_restrict::shared::read::mma::a` (9.4): only the reads of A.
    pub reads_only: bool,
    /// Generic or `.shared::cluster`.
    pub space: Space,
    /// The mbarrier.
    pub addr: Address,
    /// `.multicast::cluster`: the same offset in each CTA of the mask.
    pub multicast: Option<Multicast>,
}

/// CTAs of the cluster that take part: bit `n` stands for the CTA of rank `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multicast {
    /// `::32b` (9.4) instead of 16 bits.
    pub wide: bool,
    /// The bits.
    pub mask: Operand,
}

impl Tcgen05 {
    /// Whether each executing thread issues a whole operation of its own (9.7.16.5, issue granularity).
    pub fn by_one_thread(&self) -> bool {
        let one = matches!(self, Tcgen05::Copy { .. } | Tcgen05::Shift { .. } | Tcgen05::Mma(_));
        one || matches!(self, Tcgen05::Commit(_))
    }

    /// Whether the lanes of a warp execute it together, as `.sync.aligned` says.
    pub fn by_the_warp(&self) -> bool {
        !self.by_one_thread() && !matches!(self, Tcgen05::FenceBefore | Tcgen05::FenceAfter)
    }

    /// The qualifier that must be the same in a whole kernel.
    pub fn group(&self) -> Option<CtaGroup> {
        match self {
            Tcgen05::Alloc { group, .. }
            | Tcgen05::Dealloc { group, .. }
            | Tcgen05::Relinquish { group }
            | Tcgen05::Copy { group, .. }
            | Tcgen05::Shift { group, .. } => Some(*group),
            Tcgen05::Mma(mma) => Some(mma.group),
            Tcgen05::Commit(commit) => Some(commit.group),
            Tcgen05::Load(_)
            | Tcgen05::Store(_)
            | Tcgen05::WaitLoad
            | Tcgen05::WaitStore
            | Tcgen05::FenceBefore
            | Tcgen05::FenceAfter => None,
        }
    }

    /// Name without qualifiers.
    pub fn name(&self) -> &'static str {
        match self {
            Tcgen05::Alloc { .. } => "tcgen05.alloc",
            Tcgen05::Dealloc { .. } => "tcgen05.dealloc",
            Tcgen05::Relinquish { .. } => "tcgen05.relinquish_alloc_permit",
            Tcgen05::Load(_) => "tcgen05.ld",
            Tcgen05::Store(_) => "tcgen05.st",
            Tcgen05::WaitLoad => "tcgen05.wait::ld",
            Tcgen05::WaitStore => "tcgen05.wait::st",
            Tcgen05::Copy { .. } => "tcgen05.cp",
            Tcgen05::Shift { .. } => "tcgen05.shift",
            Tcgen05::Mma(_) => "tcgen05.mma",
            Tcgen05::Commit(_) => "tcgen05.commit",
            Tcgen05::FenceBefore => "tcgen05.fence::before_thread_sync",
            Tcgen05::FenceAfter => "tcgen05.fence::after_thread_sync",
        }
    }
}

parts_of!(TensorLoad, |load, see| {
    let TensorLoad { dst, reduce, addr, .. } = load;
    for dst in dst {
        see(Part::Write(dst));
    }
    if let Some(TensorReduction { dst, .. }) = reduce {
        see(Part::Write(dst));
    }
    addr.each(see);
});

parts_of!(TensorStore, |store, see| {
    let TensorStore { addr, src, .. } = store;
    addr.each(see);
    for src in src {
        see(Part::Read(src, Role::Opaque));
    }
});

parts_of!(Commit, |commit, see| {
    let Commit { addr, multicast, .. } = commit;
    addr.each(see);
    if let Some(Multicast { mask, .. }) = multicast {
        see(Part::Source(mask, Role::Known));
    }
});

parts_of!(Tcgen05, |op, see| match op {
    Tcgen05::Alloc { dst, columns, .. } => {
        dst.each(see);
        see(Part::Source(columns, Role::Known));
    }
    Tcgen05::Dealloc { addr, columns, .. } => {
        see(Part::Source(addr, Role::Known));
        see(Part::Source(columns, Role::Known));
    }
    Tcgen05::Load(load) => load.each(see),
    Tcgen05::Store(store) => store.each(see),
    Tcgen05::Copy { dst, src, .. } => {
        dst.each(see);
        src.each(see);
    }
    Tcgen05::Shift { addr, .. } => addr.each(see),
    Tcgen05::Mma(mma) => mma.each(see),
    Tcgen05::Commit(commit) => commit.each(see),
    Tcgen05::Relinquish { .. }
    | Tcgen05::WaitLoad
    | Tcgen05::WaitStore
    | Tcgen05::FenceBefore
    | Tcgen05::FenceAfter => {}
});
