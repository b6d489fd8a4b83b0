//! Names of words of global memory that are numbers of a launch (`words`).

use super::touch::Mem;
use std::collections::BTreeMap;

/// The place of a pointer: a parameter, and the first byte of the field.
pub type Pointer = (u16, u32);

/// Words behind a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word {
    /// The pointer.
    pub pointer: Pointer,
    /// The first byte behind it; all words that have no number of their own, if there is none.
    pub at: Option<u64>,
}

/// How a warp comes to a word with the number of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// It loads it.
    Read,
    /// It copies it into shared memory.
    Copied,
    /// It loads it from the shared memory of this CTA.
    Heard(u32),
    /// Some of its lanes load it, and others another one.
    Lanes,
    /// An access is at a place that it decides, and may be elsewhere with another number.
    Place,
}

/// Words with the number of all behind a pointer, in the order in which a warp comes to them, and the first line.
pub(super) type Common = BTreeMap<(Pointer, Way), (u32, Vec<(Mem, u64)>)>;

/// Bytes of global memory.
pub(super) type Bytes = (Mem, u64, u64);

/// Pointers, and whether some word behind each has the number of all.
pub(super) type Told = BTreeMap<Pointer, bool>;

/// Adds pointers.
pub(super) fn join_told(all: &mut Told, more: &Told) {
    more.iter().for_each(|(pointer, common)| *all.entry(*pointer).or_default() |= common);
}
