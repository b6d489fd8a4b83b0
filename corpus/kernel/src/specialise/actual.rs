//! What is known of the parameters of a launch that happened: their bytes, where pointers point, what tensor maps are about.
//!
//! Pointers into one allocation are one memory with an offset each. Equal tensor maps are one.

use super::known::map::Map;
use super::touch::Mem;
use std::collections::BTreeMap;

/// Parameters by their place in the list, and parts of them by their first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actual {
    /// The bytes of a parameter.
    pub bytes: BTreeMap<u16, Vec<u8>>,
    /// Words that point into memory: its number, and the offset in it. Other pointers point to the memory with the number of their
    /// parameter.
    pub pointers: BTreeMap<(u16, u32), (u16, u64)>,
    /// Tensor maps.
    pub maps: BTreeMap<(u16, u32), About>,
}

/// What a tensor map is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The first tensor map that is equal to it.
    pub like: (u16, u32),
    /// The bytes of the tensor: the number of the memory, the first one, the end.
    pub tensor: Option<(u16, u64, u64)>,
}

impl Actual {
    /// These bytes of a parameter, as a number, if they are known.
    pub(super) fn number(&self, index: u16, at: u32, size: u64) -> Option<u64> {
        let (at, size) = (usize::try_from(at).ok()?, usize::try_from(size).ok()?);
        let part = self.bytes.get(&index)?.get(at..at.checked_add(size)?)?;
        Some(part.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    /// Whether these bytes are a part of a pointer.
    pub(super) fn points(&self, index: u16, at: u32, size: u64) -> bool {
        let end = u64::from(at) + size;
        self.pointers.keys().any(|p| p.0 == index && u64::from(p.1) < end && at < p.1 + 8)
    }

    /// The number of the memory behind a pointer parameter.
    pub(super) fn memory(&self, mem: Mem) -> Mem {
        match mem {
            Mem::Param(n) => self.pointers.get(&(n, 0)).map_or(mem, |p| Mem::Param(p.0)),
            other => other,
        }
    }

    /// The address that stands for all tensor maps that are equal to the one at this address.
    pub(super) fn same_map(&self, map: &Map, at: u64) -> u64 {
        let found = self.map_at(map, at).and_then(|(_, about)| {
            Some(map.params.get(usize::from(about.like.0))? + u64::from(about.like.1))
        });
        found.unwrap_or(at)
    }

    /// The tensor map at an address.
    pub(super) fn map_at(&self, map: &Map, at: u64) -> Option<((u16, u32), &About)> {
        self.maps.iter().find_map(|(place, about)| {
            let start = map.params.get(usize::from(place.0))? + u64::from(place.1);
            (start == at).then_some((*place, about))
        })
    }
}
