//! The launch that is asked for.

use moire_kernel::specialise::Actual;
use moire_program::limits::THREADS;
use std::collections::BTreeMap;

/// How a kernel is launched, as far as the user says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// CTAs or tile blocks of the grid.
    pub grid: Option<[u32; 3]>,
    /// Threads of a CTA.
    pub block: Option<[u32; 3]>,
    /// CTAs of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Values of parameters by their place in the list, from 0 on.
    pub params: BTreeMap<u16, u64>,
    /// Values of fields of parameters, by place and first byte.
    pub fields: BTreeMap<(u16, u32), u64>,
    /// What is known of a launch that happened.
    pub recorded: Option<Recorded>,
    /// Which kernel, where the module has several.
    pub entry: Option<String>,
    /// Whether the letter is in use: lanes are read without readings of practice.
    pub letter: bool,
    /// Whether the other profile is asked beside the one in use.
    pub both: bool,
}

/// A launch that happened. What the command line says comes before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// CTAs of the grid.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// CTAs of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Numbers among the parameters.
    pub params: BTreeMap<u16, u64>,
    /// The others.
    pub actual: Actual,
    /// What is known of them in words.
    pub taken: Vec<String>,
    /// The file that has it.
    pub file: String,
}

impl Recorded {
    /// Whether it has as many warps as can be explored.
    pub fn fits(&self) -> bool {
        let count = |size: [u32; 3]| size.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
        count(self.grid).saturating_mul(count(self.block).div_ceil(32)) <= THREADS as u64
    }
}
