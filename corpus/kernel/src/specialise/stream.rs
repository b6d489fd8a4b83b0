//! The place of a launch on its stream, and what its parameters and variables are there (`queue`).

use super::known::map::Map;
use std::collections::BTreeMap;

/// The place of a launch among several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// Its number.
    pub(super) grid: u32,
    /// Another grid is behind it.
    pub(super) followed: bool,
    /// The memories behind parameters, where these are not their numbers.
    pub(super) memories: BTreeMap<u16, u16>,
    /// The same of variables.
    pub(super) variables: BTreeMap<u16, u16>,
    /// What stands for the address of a parameter where it is a tensor map.
    pub(super) maps: BTreeMap<u16, u64>,
}

impl Queued {
    /// The memory behind a parameter.
    pub(super) fn memory(&self, param: u16) -> u16 {
        self.memories.get(&param).copied().unwrap_or(param)
    }

    /// The parameter that points to a memory.
    pub(super) fn param(&self, memory: u16) -> u16 {
        self.memories.iter().find(|(_, own)| **own == memory).map_or(memory, |(param, _)| *param)
    }

    /// The memory of a variable.
    pub(super) fn variable(&self, symbol: u16) -> u16 {
        self.variables.get(&symbol).copied().unwrap_or(symbol)
    }

    /// What stands for a tensor map at an address.
    pub(super) fn map(&self, map: &Map, at: u64) -> u64 {
        let inside = || {
            let n = map.params.iter().rposition(|p| *p <= at)?;
            Some(self.maps.get(&u16::try_from(n).ok()?)? + (at - map.params[n]))
        };
        inside().unwrap_or(at)
    }
}
