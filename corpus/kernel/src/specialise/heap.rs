//! Shared memory while warps are run ahead: where variables lie, which words decide branches, and what is stored there.
//!
//! Stores to a word that an ordered or atomic access touches are kept as numbers. If such a store is of unknown data,
//! what depends on the word is abstained from.

use super::layout::Mem;
use super::run::{Stored, Trace};
use crate::ptx::{Kernel, Variable};
use std::collections::{BTreeMap, BTreeSet};

/// Shared memory begins here, as the hardware keeps the start for itself.
const SHARED_START: u32 = 1024;
/// Addresses of the shared memory of the next CTA of the cluster are so much higher.
pub(super) const RANK_SHIFT: u32 = 24;
/// Where the window of shared memory begins among generic addresses.
pub(super) const SHARED_WINDOW: u64 = 1 << 45;
/// Where parameters begin.
pub(super) const PARAMS: u64 = 0x4000_0000;
/// Where local memory begins.
pub(super) const LOCALS: u64 = 0x5000_0000;

/// Addresses of the variables of a kernel.
pub(super) struct Map {
    /// By symbol: address of shared variables in their CTA, of parameters, of local variables; none for global memory.
    pub(super) at: Vec<Option<u64>>,
    /// By parameter: its address.
    pub(super) params: Vec<u64>,
    /// Shared variables: start, end (the dynamic one ends nowhere), name.
    pub(super) shared: Vec<(u32, u32, String)>,
}

impl Map {
    pub(super) fn new(kernel: &Kernel) -> Self {
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
        // All dynamic arrays start at one place, aligned as every swizzle wants it.
        let start = shared.next_multiple_of(1024);
        for i in dynamic {
            map.at[i] = Some(u64::from(start));
            if !map.shared.iter().any(|s| s.0 == start && s.1 == 1 << RANK_SHIFT) {
                map.shared.push((start, 1 << RANK_SHIFT, name(i)));
            }
        }
        map
    }

    /// The variable an offset of shared memory lies in: its name and where it starts.
    pub(super) fn named(&self, at: u32) -> (String, u32) {
        let found = self.shared.iter().rfind(|s| s.0 <= at && at < s.1);
        found.map_or_else(|| ("shared".to_owned(), 0), |s| (s.2.clone(), s.0))
    }
}

/// What some warp stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Content {
    /// A number.
    Known(u64),
    /// The address an allocation of tensor memory returns.
    Allocation,
    /// What an ordered or an atomic access writes: the program that is explored knows it.
    Held,
    /// Anything.
    Opaque,
}

/// What an earlier round found; see the module above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Heap {
    /// CTA, first byte: bytes, content, line, warp.
    stores: BTreeMap<(u32, u32), BTreeSet<(u32, Content, u32, u32)>>,
    /// Bytes that decide something: CTA, first byte, end.
    wanted: BTreeSet<(u32, u32, u32)>,
    /// The same in global memory.
    asked: BTreeSet<(Mem, u64, u64)>,
}

/// Stores at one place that are kept apart; more are anything.
const KEPT: usize = 64;

impl Heap {
    pub(super) fn absorb(&mut self, trace: &Trace) {
        self.wanted.extend(&trace.wanted);
        self.asked.extend(&trace.asked);
        for Stored { cta, at, bytes, content, line } in &trace.stores {
            let all = self.stores.entry((*cta, *at)).or_default();
            if all.len() < KEPT {
                all.insert((*bytes, *content, *line, trace.warp));
            } else {
                all.insert((*bytes, Content::Opaque, 0, 0));
            }
        }
    }

    /// Entries there are to look through.
    pub(super) fn size(&self) -> usize {
        self.stores.len() + self.wanted.len() + self.asked.len()
    }

    /// Whether a branch or an address depends on some of these bytes.
    pub(super) fn wanted(&self, cta: u32, at: u32, bytes: u32) -> bool {
        self.wanted.iter().any(|w| w.0 == cta && w.1 < at.saturating_add(bytes) && at < w.2)
    }

    /// The same of a run of global memory.
    pub(super) fn asked(&self, mem: Mem, start: u64, end: u64) -> bool {
        self.asked.iter().any(|a| a.0 == mem && a.1 < end && start < a.2)
    }

    /// What these bytes may hold; empty when nothing writes them.
    pub(super) fn contents(&self, cta: u32, at: u32, bytes: u32) -> BTreeSet<Content> {
        let mut out = BTreeSet::new();
        for ((_, start), all) in self.stores.range((cta, 0)..=(cta, at.saturating_add(bytes - 1))) {
            for (length, content, ..) in all {
                if start.saturating_add(*length) <= at {
                    continue;
                }
                let whole = *start <= at && at + bytes <= start + length;
                out.insert(match content {
                    Content::Known(v) if whole && *length <= 8 => {
                        let shifted = v >> (8 * (at - start)).min(63);
                        Content::Known(if bytes >= 8 { shifted } else { shifted & ((1 << (8 * bytes)) - 1) })
                    }
                    kept @ (Content::Allocation | Content::Held) if *start == at && *length == bytes => *kept,
                    _ => Content::Opaque,
                });
            }
        }
        out
    }

    /// Whether another warp stores the same number at the same place by the same line.
    pub(super) fn repeated(&self, stored: &Stored, warp: u32) -> bool {
        let all = self.stores.get(&(stored.cta, stored.at));
        matches!(stored.content, Content::Known(_))
            && all.is_some_and(|all| {
                all.iter()
                    .any(|s| (s.0, s.1, s.2) == (stored.bytes, stored.content, stored.line) && s.3 != warp)
            })
    }
}
