//! Cells of tensor memory that an instruction reads or writes.
//!
//! A cell is one lane of one 32-bit column of one CTA. Cells count from the lane and column of the address they belong
//! to. Readings where the text leaves room: `.4x256b` is four consecutive lanes; a 16-bit accumulator has a column for
//! each element as a 32-bit one has; `.pack::16b` and `.unpack::16b` use one half of twice as many columns; metadata of
//! sparse products count as four columns. All of these can only report more.

use crate::ir::*;
use std::ops::Range;

/// A rectangle of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    /// From the lane of the address.
    pub lanes: Range<u32>,
    /// From the column of the address.
    pub columns: Range<u32>,
}

impl Cells {
    /// How many.
    pub fn count(&self) -> u32 {
        (self.lanes.end - self.lanes.start) * (self.columns.end - self.columns.start)
    }
}

/// What is done to cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Usage {
    /// Read.
    Read,
    /// Written.
    Write,
    /// Read, then written.
    Update,
    /// Written, and read when the predicate of the instruction holds.
    MaybeUpdate,
}

/// Cells behind one address of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Where they are counted from.
    pub addr: Address,
    /// What is done to them.
    pub usage: Usage,
    /// In both CTAs of the pair.
    pub pair: bool,
    /// In each CTA.
    pub cells: Vec<Cells>,
}

fn rectangle(lanes: Range<u32>, columns: Range<u32>) -> Cells {
    Cells { lanes, columns }
}

/// Cells of `tcgen05.ld` and `tcgen05.st`. `packed`: `.pack::16b`, `.unpack::16b`.
pub fn moved(shape: MoveShape, times: u8, split: Option<i32>, packed: bool) -> Vec<Cells> {
    let wide = u32::from(times) * if packed { 2 } else { 1 };
    match shape {
        MoveShape::L32x32b => vec![rectangle(0..32, 0..wide)],
        MoveShape::L16x64b => vec![rectangle(0..16, 0..2 * wide)],
        MoveShape::L16x128b => vec![rectangle(0..16, 0..4 * wide)],
        MoveShape::L16x256b => vec![rectangle(0..16, 0..8 * wide)],
        // The halves of the warp read the same 16 lanes, so many columns apart.
        MoveShape::L16x32bx2 => {
            let second = u32::try_from(split.unwrap_or(0)).unwrap_or(0);
            let end = second.saturating_add(wide);
            vec![rectangle(0..16, 0..wide), rectangle(0..16, second..end)]
        }
    }
}

/// Cells of `tcgen05.cp`, in each CTA.
pub fn copied(shape: CopyShape) -> Vec<Cells> {
    match shape {
        CopyShape::S128x256b => vec![rectangle(0..128, 0..8)],
        CopyShape::S4x256b => vec![rectangle(0..4, 0..8)],
        // 64 lanes go to two pairs of warps, 32 lanes to all four: every lane is written in the end.
        CopyShape::S128x128b
        | CopyShape::S64x128bPairs02And13
        | CopyShape::S64x128bPairs01And23
        | CopyShape::S32x128bAllWarps => vec![rectangle(0..128, 0..4)],
    }
}

/// Cells of `tcgen05.shift`, in each CTA.
pub fn shifted() -> Vec<Cells> {
    vec![rectangle(0..32, 0..8)]
}

/// Cells of the accumulator of a product with `m` rows and `n` columns, in each CTA; none where there is no such
/// product. The letters are those of the data path layouts.
pub fn accumulator(group: CtaGroup, stationary: bool, sparse: bool, m: u16, n: u16) -> Option<Vec<Cells>> {
    let n = u32::from(n);
    let every = |columns: u32| Some(vec![rectangle(0..128, 0..columns)]);
    let halves = || Some((0..4).map(|warp| rectangle(32 * warp..32 * warp + 16, 0..n)).collect());
    match (group, stationary, m) {
        // A and D: a lane a row.
        (CtaGroup::Two, false, 256) | (CtaGroup::One, _, 128) => every(n),
        // C: as F.
        (CtaGroup::Two, false, 128) if sparse => halves(),
        // B: 64 rows, the halves of the columns on the halves of the lanes.
        (CtaGroup::Two, false, 128) => every(n.div_ceil(2)),
        // E: as B.
        (CtaGroup::One, true, 64) => every(n.div_ceil(2)),
        // F: 16 lanes of each warp.
        (CtaGroup::One, false, 64) => halves(),
        // G: 32 rows, quarters of the columns on quarters of the lanes.
        (CtaGroup::One, true, 32) => every(n.div_ceil(4)),
        _ => None,
    }
}

/// Everything an instruction touches in tensor memory. `shape` is the decoded instruction descriptor, for products
/// that hold it in a register; without it such a product has no answer.
pub fn touches(op: &Tcgen05, shape: Option<(u16, u16)>) -> Option<Vec<Touch>> {
    let one = |addr: &Address, usage: Usage, pair: bool, cells: Vec<Cells>| {
        Some(vec![Touch { addr: *addr, usage, pair, cells }])
    };
    match op {
        Tcgen05::Load(l) => one(&l.addr, Usage::Read, false, moved(l.shape, l.times, l.split, l.pack)),
        Tcgen05::Store(s) => one(&s.addr, Usage::Write, false, moved(s.shape, s.times, s.split, s.unpack)),
        Tcgen05::Copy { group, shape, dst, .. } => {
            one(dst, Usage::Write, *group == CtaGroup::Two, copied(*shape))
        }
        Tcgen05::Shift { group, addr } => one(addr, Usage::Update, *group == CtaGroup::Two, shifted()),
        Tcgen05::Mma(mma) => product(mma, shape),
        Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => Some(Vec::new()),
        Tcgen05::WaitLoad | Tcgen05::WaitStore | Tcgen05::Commit(_) => Some(Vec::new()),
        Tcgen05::FenceBefore | Tcgen05::FenceAfter => Some(Vec::new()),
    }
}

fn product(mma: &Mma, shape: Option<(u16, u16)>) -> Option<Vec<Touch>> {
    let (m, n) = match mma.shape {
        ProductShape::Tile { m, n } => (m, n),
        ProductShape::Packed(_) => shape?,
    };
    let pair = mma.group == CtaGroup::Two;
    let cells = accumulator(mma.group, mma.stationary, mma.metadata.is_some(), m, n)?;
    let lanes: Vec<Range<u32>> = cells.iter().map(|c| c.lanes.clone()).collect();
    let usage = match mma.input {
        EnableInput::Always(false) => Usage::Write,
        EnableInput::Always(true) => Usage::Update,
        EnableInput::When(_) => Usage::MaybeUpdate,
    };
    let mut all = vec![Touch { addr: mma.d, usage, pair, cells }];
    let mut read = |addr: Address, cells: Vec<Cells>| {
        all.push(Touch { addr, usage: Usage::Read, pair, cells });
    };
    if let Factor::Tensor(addr) = mma.a {
        // A row of A is 32 bytes.
        read(addr, lanes.into_iter().map(|l| rectangle(l, 0..8)).collect());
    }
    if let Some(metadata) = mma.metadata {
        read(metadata, vec![rectangle(0..128, 0..4)]);
    }
    if let Some(scales) = &mma.scales {
        // Four columns hold the factors of 128 rows, repeated in every warp of lanes.
        let rows = u32::from(m) / u32::from(mma.group.ctas());
        read(scales.a, vec![rectangle(0..128, 0..4 * rows.div_ceil(128))]);
        read(scales.b, vec![rectangle(0..128, 0..4 * u32::from(n).div_ceil(128))]);
    }
    Some(all)
}
