//! Bytes of shared memory that a matrix descriptor names, and the fields of the packed descriptors.
//!
//! The layouts are the canonical ones of the PTX ISA (9.7.16.4 and 9.7.15.5). A row consists of 16-byte chunks, an atom of
//! eight rows. Atoms are a leading or a stride offset apart. The swizzle permutes chunks by their absolute address.

use crate::ir::{CopyShape, MmaKind};
use std::ops::Range;

/// Bytes of a chunk.
const CHUNK: u32 = 16;
/// Addresses of shared memory in a descriptor have 18 bits.
const WINDOW: u32 = 1 << 18;

/// How chunks change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are those of the PTX modes")]
pub enum Swizzle {
    None,
    B32,
    B64,
    B128,
    /// 128 bytes in atoms of 32.
    B128Atom32,
}

impl Swizzle {
    /// Bytes of a row of an atom.
    fn row(self) -> u32 {
        match self {
            Swizzle::None => CHUNK,
            Swizzle::B32 => 32,
            Swizzle::B64 => 64,
            Swizzle::B128 | Swizzle::B128Atom32 => 128,
        }
    }

    fn apply(self, addr: u32) -> u32 {
        let line = addr >> 7;
        match self {
            Swizzle::None => addr,
            Swizzle::B32 => addr ^ (line & 1) << 4,
            Swizzle::B64 => addr ^ (line & 3) << 4,
            Swizzle::B128 => addr ^ (line & 7) << 4,
            Swizzle::B128Atom32 => addr ^ (line & 3) << 5,
        }
    }
}

/// A decoded 64-bit matrix descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMatrix {
    /// Address of the first byte in the shared memory of the CTA.
    pub start: u32,
    /// Leading dimension offset in bytes.
    pub leading: u32,
    /// Stride dimension offset in bytes.
    pub stride: u32,
    /// Base offset: the row of the swizzle pattern in which the matrix starts.
    pub base_offset: u8,
    /// Whether the leading dimension is an absolute address.
    pub absolute: bool,
    /// How chunks change places.
    pub swizzle: Swizzle,
}

/// Which extent of a matrix is consecutive in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Major {
    /// The inner extent (K).
    K,
    /// Rows of A, columns of B.
    Mn,
}

/// Size of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Rows of A, columns of B.
    pub mn: u32,
    /// Inner extent.
    pub k: u32,
    /// Bits of an element, as stored.
    pub bits: u32,
    /// The extent that is consecutive in memory.
    pub major: Major,
}

impl SharedMatrix {
    /// Decodes a descriptor. None if its constant field or its swizzle is not one that the format defines.
    pub fn decode(bits: u64) -> Option<Self> {
        let field = |from: u32, count: u32| u32::try_from(bits >> from & ((1 << count) - 1)).unwrap_or(0);
        let swizzle = match field(61, 3) {
            0 => Swizzle::None,
            1 => Swizzle::B128Atom32,
            2 => Swizzle::B128,
            4 => Swizzle::B64,
            6 => Swizzle::B32,
            _ => return None,
        };
        (field(46, 3) == 1).then_some(SharedMatrix {
            start: field(0, 14) << 4,
            leading: field(16, 14) << 4,
            stride: field(32, 14) << 4,
            base_offset: u8::try_from(field(49, 3)).unwrap_or(0),
            absolute: field(52, 1) == 1,
            swizzle,
        })
    }

    /// Decodes a descriptor of a warpgroup product (9.7.15.5).
    pub fn decode_warpgroup(bits: u64) -> Self {
        let field = |from: u32, count: u32| u32::try_from(bits >> from & ((1 << count) - 1)).unwrap_or(0);
        SharedMatrix {
            start: field(0, 14) << 4,
            leading: field(16, 14) << 4,
            stride: field(32, 14) << 4,
            base_offset: u8::try_from(field(49, 3)).unwrap_or(0),
            absolute: false,
            swizzle: match field(62, 2) {
                0 => Swizzle::None,
                1 => Swizzle::B128,
                2 => Swizzle::B64,
                _ => Swizzle::B32,
            },
        }
    }

    /// The bytes a matrix of this size occupies, in ascending order, neighbours joined.
    ///
    /// If the descriptor starts inside a swizzle pattern (base offset) or has an absolute leading dimension, the result is
    /// whole rows of the pattern: possibly more than is read, never less.
    pub fn ranges(&self, extent: Extent) -> Vec<Range<u32>> {
        let row = self.swizzle.row();
        let chunks_a_row = row / CHUNK;
        let whole_rows = self.base_offset != 0 || self.absolute;
        let (outer, inner) = match extent.major {
            Major::K => (extent.mn, (extent.k * extent.bits).div_ceil(8 * CHUNK)),
            Major::Mn => (extent.k, (extent.mn * extent.bits).div_ceil(8 * CHUNK)),
        };
        let mut found = Vec::new();
        for line in 0..outer {
            for chunk in 0..inner {
                let (atom, within) = (chunk / chunks_a_row, chunk % chunks_a_row);
                let (lines, atoms) = self.offsets(extent.major);
                let at = self.start + line % 8 * row + line / 8 * lines + atom * atoms;
                let at = if whole_rows { at - at % row } else { self.swizzle.apply(at + within * CHUNK) };
                found.push((at % WINDOW, if whole_rows { row } else { CHUNK }));
            }
        }
        join(found)
    }

    /// Bytes between groups of eight lines and between atoms of a line.
    fn offsets(&self, major: Major) -> (u32, u32) {
        // The two offsets change places in an unswizzled matrix whose rows or columns (not K) are consecutive.
        if (major, self.swizzle) == (Major::Mn, Swizzle::None) {
            (self.leading, self.stride)
        } else {
            (self.stride, self.leading)
        }
    }
}

fn join(mut found: Vec<(u32, u32)>) -> Vec<Range<u32>> {
    found.sort_unstable();
    let mut out: Vec<Range<u32>> = Vec::new();
    for (at, bytes) in found {
        match out.last_mut() {
            Some(last) if at <= last.end => last.end = last.end.max(at + bytes),
            _ => out.push(at..at + bytes),
        }
    }
    out
}

/// The extent that `tcgen05.cp` reads: lanes of 16 or 32 bytes, before any widening.
pub fn copied_extent(shape: CopyShape) -> Extent {
    let (mn, bytes) = match shape {
        CopyShape::S128x256b => (128, 32),
        CopyShape::S4x256b => (4, 32),
        CopyShape::S128x128b => (128, 16),
        CopyShape::S64x128bPairs02And13 | CopyShape::S64x128bPairs01And23 => (64, 16),
        CopyShape::S32x128bAllWarps => (32, 16),
    };
    Extent { mn, k: bytes, bits: 8, major: Major::K }
}

/// The extent of a factor of a product in one CTA. `mn` is the number of rows of A or of columns of B. A sparse A is stored
/// with half its inner extent; B has the full one, and `doubled` says so.
pub fn factor_extent(kind: MmaKind, mn: u32, doubled: bool, major: Major) -> Extent {
    // A step along K is 32 bytes for every type.
    let bits = match kind {
        MmaKind::F16 | MmaKind::Ti16 => 16,
        MmaKind::Tf32 => 32,
        MmaKind::F8f6f4 | MmaKind::I8 | MmaKind::Mxf8f6f4 => 8,
        MmaKind::Mxf4 | MmaKind::Mxf4nvf4 => 4,
    };
    Extent { mn, k: 256 / bits * if doubled { 2 } else { 1 }, bits, major }
}

/// The fields of a 32-bit instruction descriptor that determine shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionDescriptor {
    /// Rows of A and D.
    pub m: u16,
    /// Columns of B and D.
    pub n: u16,
    /// Whether A is sparse. The instruction must say the same.
    pub sparse: bool,
    /// The extent along which A is consecutive in memory.
    pub a_major: Major,
    /// The extent along which B is consecutive in memory.
    pub b_major: Major,
}

impl InstructionDescriptor {
    /// The bits that [`InstructionDescriptor::decode`] reads (PTX ISA 9.2, 9.7.16.4.2): sparsity, majors, N, M.
    pub const SHAPE: u32 = 1 << 2 | 1 << 15 | 1 << 16 | 0x3f << 17 | 0x1f << 24;

    /// Reads the fields of a kind.
    pub fn decode(bits: u32, kind: MmaKind) -> Self {
        let field = |from: u32, count: u32| u16::try_from(bits >> from & ((1 << count) - 1)).unwrap_or(0);
        let m = if kind.scaled() { field(27, 2) << 7 } else { field(24, 5) << 4 };
        let major = |bit: u16| if bit == 1 { Major::Mn } else { Major::K };
        InstructionDescriptor {
            m,
            n: field(17, 6) << 3,
            sparse: field(2, 1) == 1,
            a_major: major(field(15, 1)),
            b_major: major(field(16, 1)),
        }
    }
}
