//! Asynchronous copies: `cp.async`, bulk copies with and without a tensor map, remote stores and updates that report
//! to an mbarrier.
//!
//! PTX ISA 9.2, 9.7.9.25 (cp.async and bulk), 9.7.9.13 and 9.7.13.8 (`st.async`, `red.async`). Cache hints have no
//! meaning here and are not kept.

use super::parts::{Part, Role, parts_of};
use super::{Address, AtomOp, CtaGroup, Guard, Multicast, Operand, Scope, Space, Ty};

/// One instruction of the family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsyncCopy {
    /// `cp.async.ca`, `cp.async.cg`: global to shared memory.
    Small(SmallCopy),
    /// `cp.async.commit_group`
    Commit,
    /// `cp.async.wait_group`: at most so many groups of the thread are pending.
    Wait(u32),
    /// `cp.async.wait_all`
    WaitAll,
    /// `cp.async.mbarrier.arrive`: arrives when the earlier copies of the thread are complete.
    Arrive {
        /// `.noinc`: the arrival was counted when the object was initialised.
        noinc: bool,
        /// Generic or `.shared::cta`.
        space: Space,
        /// The mbarrier.
        addr: Address,
    },
    /// `cp.async.bulk`, `cp.reduce.async.bulk`, the same with `.tensor`.
    Bulk(Box<BulkCopy>),
    /// `cp.async.bulk.prefetch`
    Prefetch(Box<BulkPrefetch>),
    /// `cp.async.bulk.commit_group`
    BulkCommit,
    /// `cp.async.bulk.wait_group`
    BulkWait {
        /// At most so many groups of the thread are pending.
        groups: u32,
        /// `.read`: only the reads of their sources.
        reads_only: bool,
    },
    /// `st.async`, `red.async`
    Remote(Box<RemoteWrite>),
}

/// `cp.async.ca` or `cp.async.cg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallCopy {
    /// `.ca` instead of `.cg`.
    pub all_levels: bool,
    /// Shared memory.
    pub dst: Address,
    /// Global memory.
    pub src: Address,
    /// 4, 8 or 16.
    pub bytes: u8,
    /// What is copied of them; the rest is written with zeros.
    pub part: SmallPart,
}

/// How much of its source a `cp.async` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallPart {
    /// All of it.
    All,
    /// So many bytes.
    Bytes(Operand),
    /// Nothing when the predicate holds.
    IgnoredWhen(Guard),
}

/// One side of a bulk copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkEnd {
    /// Consecutive bytes.
    Bytes {
        /// State space qualifier.
        space: Space,
        /// First byte.
        addr: Address,
    },
    /// A box of a tensor in global memory.
    Tensor(TensorBox),
}

/// A box of a tensor: `[map, {coordinates}]`.
///
/// What a tensor map describes is hidden in its 128 opaque bytes. A litmus text may say which bytes a box is:
/// `[map as tile(x+offset, bytes), {..}]`, or without an object for the map, `[tile(x+offset, bytes), {..}]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorBox {
    /// The tensor map object. One of this and `tile` is there.
    pub map: Option<Address>,
    /// The bytes of the box.
    pub tile: Option<Tile>,
    /// `.1d` to `.5d`
    pub dims: u8,
    /// How coordinates select.
    pub mode: TileMode,
    /// One a dimension; gather and scatter have five.
    pub coordinates: Vec<Operand>,
    /// Offsets of `.im2col`.
    pub offsets: Vec<Operand>,
}

/// Consecutive bytes of global memory that a box of a tensor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// First byte.
    pub addr: Address,
    /// How many.
    pub bytes: u32,
}

/// Load mode of a tensor copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TileMode {
    /// `.tile`
    Tile,
    /// `.tile::gather4`
    Gather4,
    /// `.tile::scatter4`
    Scatter4,
    /// `.im2col`
    Im2col,
    /// `.im2col::w`
    Im2colW,
    /// `.im2col::w::128`
    Im2colW128,
    /// `.im2col_no_offs`
    Im2colNoOffsets,
}

/// Who learns that a bulk copy is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkDone {
    /// `.mbarrier::complete_tx::bytes`
    Mbarrier(Address),
    /// `.bulk_group`
    Group,
}

/// A bulk copy or reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkCopy {
    /// Destination.
    pub dst: BulkEnd,
    /// Source.
    pub src: BulkEnd,
    /// Size, where neither side is a tensor.
    pub bytes: Option<Operand>,
    /// `cp.reduce`: operation, and type where neither side is a tensor.
    pub reduce: Option<(AtomOp, Option<Ty>)>,
    /// Completion mechanism.
    pub done: BulkDone,
    /// `.multicast::cluster`: the same offsets in each CTA of the mask, data and mbarrier.
    pub multicast: Option<Multicast>,
    /// `.cta_group::1`, `.cta_group::2`: the mbarrier may be in the peer CTA.
    pub group: Option<CtaGroup>,
    /// `.relaxed.scope.b128` (9.4) instead of `.weak`.
    pub relaxed: Option<Scope>,
    /// `.cp_mask`: bytes of each 16 that are written.
    pub byte_mask: Option<Operand>,
    /// `.ignore_oob`: bytes left out at the left and at the right.
    pub ignored: Option<[Operand; 2]>,
}

/// `cp.async.bulk.prefetch`: no effect on memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkPrefetch {
    /// What is prefetched.
    pub src: BulkEnd,
    /// Size, where it is no tensor.
    pub bytes: Option<Operand>,
}

/// `st.async` or `red.async`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteWrite {
    /// `red.async`: the operation.
    pub op: Option<AtomOp>,
    /// State space qualifier.
    pub space: Space,
    /// Element type.
    pub ty: Ty,
    /// Where.
    pub addr: Address,
    /// One operand an element.
    pub src: Vec<Operand>,
    /// How it is ordered and who learns of it.
    pub order: RemoteOrder,
}

/// Order and completion of a remote write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteOrder {
    /// `.mbarrier::complete_tx::bytes`; weak as a store, relaxed at cluster scope as an update.
    Mbarrier(Address),
    /// `.release.scope`, `.gpu` or `.sys`.
    Release(Scope),
    /// `.mmio.release.sys`
    MmioRelease,
}

impl AsyncCopy {
    /// The ends of a bulk copy, the destination first, or the source of a prefetch.
    pub fn ends(&self) -> Vec<&BulkEnd> {
        match self {
            AsyncCopy::Bulk(copy) => vec![&copy.dst, &copy.src],
            AsyncCopy::Prefetch(prefetch) => vec![&prefetch.src],
            AsyncCopy::Small(_) | AsyncCopy::Remote(_) | AsyncCopy::Arrive { .. } => Vec::new(),
            AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => Vec::new(),
            AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => Vec::new(),
        }
    }

    /// The mbarrier that learns of its completion.
    pub(super) fn mbarrier_mut(&mut self) -> Option<&mut Address> {
        match self {
            AsyncCopy::Arrive { addr, .. } => Some(addr),
            AsyncCopy::Bulk(copy) => match &mut copy.done {
                BulkDone::Mbarrier(addr) => Some(addr),
                BulkDone::Group => None,
            },
            AsyncCopy::Remote(write) => match &mut write.order {
                RemoteOrder::Mbarrier(addr) => Some(addr),
                RemoteOrder::Release(_) | RemoteOrder::MmioRelease => None,
            },
            AsyncCopy::Small(_) | AsyncCopy::Prefetch(_) => None,
            AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => None,
            AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => None,
        }
    }

    /// Name without qualifiers.
    pub fn name(&self) -> &'static str {
        let tensor = |end: &BulkEnd| matches!(end, BulkEnd::Tensor(_));
        match self {
            AsyncCopy::Small(_) => "cp.async",
            AsyncCopy::Commit => "cp.async.commit_group",
            AsyncCopy::Wait(_) => "cp.async.wait_group",
            AsyncCopy::WaitAll => "cp.async.wait_all",
            AsyncCopy::Arrive { .. } => "cp.async.mbarrier.arrive",
            AsyncCopy::Bulk(copy) => match (tensor(&copy.dst) || tensor(&copy.src), copy.reduce.is_some()) {
                (false, false) => "cp.async.bulk",
                (false, true) => "cp.reduce.async.bulk",
                (true, false) => "cp.async.bulk.tensor",
                (true, true) => "cp.reduce.async.bulk.tensor",
            },
            AsyncCopy::Prefetch(_) => "cp.async.bulk.prefetch",
            AsyncCopy::BulkCommit => "cp.async.bulk.commit_group",
            AsyncCopy::BulkWait { .. } => "cp.async.bulk.wait_group",
            AsyncCopy::Remote(write) => {
                if write.op.is_some() {
                    "red.async"
                } else {
                    "st.async"
                }
            }
        }
    }
}

parts_of!(BulkEnd, |end, see| match end {
    BulkEnd::Bytes { addr, .. } => addr.each(see),
    BulkEnd::Tensor(TensorBox { map, tile, coordinates, offsets, .. }) => {
        if let Some(map) = map {
            map.each(see);
        }
        if let Some(Tile { addr, .. }) = tile {
            addr.each(see);
        }
        for operand in coordinates.into_iter().chain(offsets) {
            see(Part::Source(operand, Role::Known));
        }
    }
});

parts_of!(BulkDone, |done, see| match done {
    BulkDone::Mbarrier(addr) => addr.each(see),
    BulkDone::Group => {}
});

parts_of!(BulkCopy, |copy, see| {
    let BulkCopy { dst, src, bytes, done, multicast, byte_mask, ignored, .. } = copy;
    dst.each(see);
    src.each(see);
    if let Some(bytes) = bytes {
        see(Part::Source(bytes, Role::Known));
    }
    if let Some(ends) = ignored {
        for end in ends {
            see(Part::Source(end, Role::Known));
        }
    }
    done.each(see);
    if let Some(Multicast { mask, .. }) = multicast {
        see(Part::Source(mask, Role::Known));
    }
    if let Some(mask) = byte_mask {
        see(Part::Source(mask, Role::Known));
    }
});

parts_of!(SmallCopy, |copy, see| {
    let SmallCopy { dst, src, part, .. } = copy;
    dst.each(see);
    src.each(see);
    match part {
        SmallPart::All => {}
        SmallPart::Bytes(bytes) => see(Part::Source(bytes, Role::Known)),
        SmallPart::IgnoredWhen(guard) => guard.each(see),
    }
});

parts_of!(BulkPrefetch, |prefetch, see| {
    let BulkPrefetch { src, bytes } = prefetch;
    src.each(see);
    if let Some(bytes) = bytes {
        see(Part::Source(bytes, Role::Known));
    }
});

parts_of!(RemoteWrite, |write, see| {
    let RemoteWrite { addr, src, order, .. } = write;
    addr.each(see);
    for operand in src {
        see(Part::Source(operand, Role::Data));
    }
    match order {
        RemoteOrder::Mbarrier(addr) => addr.each(see),
        RemoteOrder::Release(_) | RemoteOrder::MmioRelease => {}
    }
});

parts_of!(AsyncCopy, |copy, see| match copy {
    AsyncCopy::Small(copy) => copy.each(see),
    AsyncCopy::Arrive { addr, .. } => addr.each(see),
    AsyncCopy::Bulk(copy) => copy.each(see),
    AsyncCopy::Prefetch(prefetch) => prefetch.each(see),
    AsyncCopy::Remote(write) => write.each(see),
    AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll => {}
    AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => {}
});
