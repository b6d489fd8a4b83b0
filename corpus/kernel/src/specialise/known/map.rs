//! Addresses of variables and parameters while warps are run ahead.

use crate::ptx::{Kernel, Variable};

/// The start of shared memory. The hardware reserves the bytes before.
const SHARED_START: u32 = 1024;
/// The lowest bit of the CTA rank in an address of shared memory.
pub(crate) const RANK_SHIFT: u32 = 24;
/// The generic address of the window of shared memory.
pub(crate) const SHARED_WINDOW: u64 = 1 << 45;
/// The address of the first parameter.
pub(crate) const PARAMS: u64 = 0x4000_0000;
/// The start of local memory.
pub(crate) const LOCALS: u64 = 0x5000_0000;

/// The addresses of the variables of a kernel.
pub(crate) struct Map {
    /// The address of each symbol; a shared variable has its address in the CTA. `None` for global memory.
    pub(crate) at: Vec<Option<u64>>,
    /// The address of each parameter.
    pub(crate) params: Vec<u64>,
    /// Shared variables: start, end, name. The dynamic one extends to the end of shared memory.
    pub(crate) shared: Vec<(u32, u32, String)>,
}

impl Map {
    pub(crate) fn new(kernel: &Kernel) -> Self {
        let mut map = Map { at: Vec::new(), params: Vec::new(), shared: Vec::new() };
        let (mut shared, mut local, mut param) = (SHARED_START, LOCALS, PARAMS);
        for p in &kernel.params {
            param = param.next_multiple_of(u64::from(p.bytes.clamp(1, 128).next_power_of_two()));
            map.params.push(param);
            param += u64::from(p.bytes);
        }
        let name = |i: usize| kernel.program.symbols[i].name.clone();
        let mut dynamic = Vec::new();
        for (i, variable) in kernel.variables.iter().enumerate() {
            let at = match variable {
                Variable::Shared { bytes: Some(bytes), align } => {
                    shared = shared.next_multiple_of((*align).clamp(1, 1024));
                    let at = shared;
                    shared = shared.saturating_add(*bytes);
                    map.shared.push((at, shared, name(i)));
                    Some(u64::from(at))
                }
                Variable::Shared { bytes: None, .. } => {
                    dynamic.push(i);
                    None
                }
                Variable::Local { bytes } => {
                    let at = local;
                    local += u64::from(*bytes).next_multiple_of(16);
                    Some(at)
                }
                Variable::Param(n) => map.params.get(*n).copied(),
                Variable::Global => None,
            };
            map.at.push(at);
        }
        // All dynamic arrays start at one place, aligned for every swizzle.
        let start = shared.next_multiple_of(1024);
        for i in dynamic {
            map.at[i] = Some(u64::from(start));
            if !map.shared.iter().any(|s| s.0 == start && s.1 == 1 << RANK_SHIFT) {
                map.shared.push((start, 1 << RANK_SHIFT, name(i)));
            }
        }
        map
    }

    /// The name and the start of the variable at an offset of shared memory.
    pub(crate) fn named(&self, at: u32) -> (String, u32) {
        let found = self.shared.iter().rfind(|s| s.0 <= at && at < s.1);
        found.map_or_else(|| ("shared".to_owned(), 0), |s| (s.2.clone(), s.0))
    }
}
