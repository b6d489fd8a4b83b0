//! The launch that is asked for.

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
    /// Which kernel, where the module has several.
    pub entry: Option<String>,
    /// Whether the letter is in use: lanes are read without readings of practice.
    pub letter: bool,
    /// Whether the other profile is asked beside the one in use.
    pub both: bool,
}
