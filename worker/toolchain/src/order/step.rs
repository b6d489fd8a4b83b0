//! Steps: what an instruction does to memory, and which other steps it orders.

use super::value::Value;
use std::fmt;

/// Scopes that the machine tells apart. A cluster is more than one SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Scope {
    Cta,
    Gpu,
    Sys,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Access {
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// Whether it is to shared memory; `None` where the address decides.
    pub(super) shared: Option<bool>,
    pub(super) place: Option<Value>,
    pub(super) bytes: u32,
    /// `None`: weak.
    pub(super) scope: Option<Scope>,
    pub(super) mmio: bool,
    /// Whether it must be done as often as it is written: volatile and mmio accesses.
    pub(super) counted: bool,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Act {
    Access(Access),
    /// Orders what is before it and what is after it.
    Fence {
        scope: Scope,
        sc: bool,
    },
    /// Later reads see no old values in the cache of the SM.
    Invalidate,
    /// Nothing that the machine has an instruction for: it keeps the order by itself.
    Order,
    /// Another instruction, by the name of the machine for it.
    Named(&'static str),
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Step {
    pub(super) act: Act,
    /// All steps before it stay before it.
    pub(super) before: bool,
    /// All steps after it stay after it.
    pub(super) after: bool,
    /// Whether it orders shared memory only.
    pub(super) shared: bool,
    /// Whether of what is after it only writes stay: what it waits for has read its source.
    pub(super) frees: bool,
    /// Whether it may do nothing, as a compare-and-swap that finds another value.
    pub(super) may_fail: bool,
    /// The value that a read gives, while its path is followed.
    pub(super) value: Option<Value>,
    /// Whether the path does not need that value: nothing uses it, or a condition says which it is.
    pub(super) dead: bool,
    /// The instruction, by its place in the text.
    pub(super) at: usize,
}

impl Step {
    pub(super) fn new(act: Act) -> Step {
        Step {
            act,
            before: false,
            after: false,
            shared: false,
            frees: false,
            may_fail: false,
            value: None,
            dead: false,
            at: 0,
        }
    }

    pub(super) fn before(self) -> Step {
        Step { before: true, ..self }
    }

    pub(super) fn after(self) -> Step {
        Step { after: true, ..self }
    }

    pub(super) fn access(&self) -> Option<&Access> {
        match &self.act {
            Act::Access(access) => Some(access),
            Act::Fence { .. } | Act::Invalidate | Act::Order | Act::Named(_) => None,
        }
    }
}

impl Access {
    /// Whether both are known to touch a byte in common.
    pub(super) fn overlaps(&self, other: &Access) -> bool {
        self.distance(other).is_some_and(|d| d < i64::from(self.bytes) && -d < i64::from(other.bytes))
    }

    /// Whether this one is known to touch all bytes of the other.
    pub(super) fn covers(&self, other: &Access) -> bool {
        self.distance(other).is_some_and(|d| d >= 0 && d + i64::from(other.bytes) <= i64::from(self.bytes))
    }

    /// How far the other begins behind this one.
    fn distance(&self, other: &Access) -> Option<i64> {
        let (own, other) = (self.place?, other.place?);
        (own.base == other.base).then(|| other.add - own.add)
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Act::Access(_) => "access",
            Act::Fence { sc: true, .. } => "fence.sc",
            Act::Fence { .. } => "fence",
            Act::Invalidate => "invalidation of the cache",
            Act::Order => "order",
            Act::Named(name) => name,
        })
    }
}
