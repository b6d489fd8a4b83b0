//! Values of registers while a warp is run ahead of the exploration: known lane by lane, an offset from an address that
//! only the exploration knows, or unknown.

use super::line::Line;
use std::rc::Rc;

/// The number of lanes of a warp.
pub(crate) const LANES: usize = 32;
/// The mask of all lanes.
pub(crate) const ALL: u32 = u32::MAX;

/// One value for each lane.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lanes {
    /// All lanes have it.
    Same(u64),
    /// Lanes differ.
    Each(Rc<[u64; LANES]>),
}

impl Lanes {
    pub(crate) fn from_fn(f: impl Fn(usize) -> u64) -> Self {
        let all: [u64; LANES] = std::array::from_fn(f);
        if all.iter().all(|v| *v == all[0]) { Lanes::Same(all[0]) } else { Lanes::Each(Rc::new(all)) }
    }

    pub(crate) fn get(&self, lane: usize) -> u64 {
        match self {
            Lanes::Same(v) => *v,
            Lanes::Each(all) => all[lane % LANES],
        }
    }

    pub(crate) fn map(&self, f: impl Fn(u64) -> u64) -> Self {
        match self {
            Lanes::Same(v) => Lanes::Same(f(*v)),
            Lanes::Each(all) => Lanes::from_fn(|l| f(all[l])),
        }
    }

    pub(crate) fn zip(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> Self {
        match (self, other) {
            (Lanes::Same(a), Lanes::Same(b)) => Lanes::Same(f(*a, *b)),
            _ => Lanes::from_fn(|l| f(self.get(l), other.get(l))),
        }
    }

    /// `self` in the lanes of the mask, `other` elsewhere.
    pub(crate) fn over(&self, mask: u32, other: &Self) -> Self {
        if mask == ALL {
            return self.clone();
        }
        Lanes::from_fn(|l| if mask >> l & 1 == 1 { self.get(l) } else { other.get(l) })
    }

    /// The value of the lanes of the mask, if it is the same for all.
    pub(crate) fn one(&self, mask: u32) -> Option<u64> {
        let first = self.get((mask.trailing_zeros() % 32) as usize);
        let same = match self {
            Lanes::Same(_) => true,
            Lanes::Each(_) => lanes(mask).all(|l| self.get(l) == first),
        };
        same.then_some(first)
    }

    /// The lanes of the mask whose value is not zero.
    pub(crate) fn truth(&self, mask: u32) -> u32 {
        lanes(mask).filter(|l| self.get(*l) != 0).fold(0, |m, l| m | 1 << l)
    }
}

/// The lanes of a mask.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |l| mask >> l & 1 == 1)
}

/// A value that only the exploration knows, the base of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Base {
    /// The value of a kernel parameter.
    Param(u16),
    /// A variable in global memory, by symbol.
    Variable(u16),
    /// A register of the residual program.
    Register(u16),
    /// The value of a kernel parameter, and what grows with the number of rounds of a loop (`line`).
    Along(u16, Line),
    /// Somewhere in the memory of a kernel parameter.
    Behind(u16),
    /// A number that grows with the number of rounds of a loop (`line`). The offset is a number with a sign.
    Line(Line),
}

/// Why a value is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Why {
    /// It was never written, or only in other lanes.
    Unset,
    /// A parameter without a value, and the byte of it.
    Param(u16, u32),
    /// A word behind this pointer that has no number (`words`).
    Word(u16, u32),
    /// Loaded by this line.
    Loaded(u32),
    /// What the operation at this place has read, which hands out numbers ([`super::tickets`]): by the lane itself, or by one lane
    /// for all.
    Ticket { update: usize, shared: bool },
    /// Computed by an instruction of this line that is not evaluated, or from such a value.
    Computed(u32),
}

/// The value of a register of a warp while it is run ahead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Val {
    /// A known number for each lane.
    Known(Lanes),
    /// The base plus an offset in bytes.
    Based(Base, Lanes),
    /// The first value in the lanes of the mask, the second one elsewhere: what one lane has got from an atomic operation.
    Parted(u32, Rc<(Val, Val)>),
    /// Unknown.
    Unknown(Why),
}

impl Val {
    pub(crate) fn same(value: u64) -> Self {
        Val::Known(Lanes::Same(value))
    }

    pub(crate) fn known(&self) -> Option<&Lanes> {
        match self {
            Val::Known(l) => Some(l),
            _ => None,
        }
    }

    /// The value of some lanes.
    pub(crate) fn of(&self, lanes: u32) -> Val {
        match self {
            Val::Parted(mask, both) if lanes & !mask == 0 => both.0.of(lanes),
            Val::Parted(mask, both) if lanes & mask == 0 => both.1.of(lanes),
            other => other.clone(),
        }
    }

    /// The lanes of a mask that have one value each.
    pub(crate) fn parts(&self, lanes: u32) -> Vec<u32> {
        match self {
            _ if lanes == 0 => Vec::new(),
            Val::Parted(mask, both) => [both.0.parts(lanes & mask), both.1.parts(lanes & !mask)].concat(),
            Val::Known(_) | Val::Based(..) | Val::Unknown(_) => vec![lanes],
        }
    }

    /// Whether it is computed from this register of the residual program.
    pub(crate) fn uses(&self, slot: u16) -> bool {
        match self {
            Val::Based(Base::Register(r), _) => *r == slot,
            Val::Parted(_, both) => both.0.uses(slot) || both.1.uses(slot),
            Val::Based(..) | Val::Known(_) | Val::Unknown(_) => false,
        }
    }

    /// This value in the lanes of the mask, `old` elsewhere.
    pub(crate) fn over(self, mask: u32, old: &Val) -> Val {
        if mask == ALL || self == *old {
            return self;
        }
        match (&self, old) {
            (Val::Known(a), Val::Known(b)) => Val::Known(a.over(mask, b)),
            (Val::Based(p, a), Val::Based(q, b)) if p == q => Val::Based(*p, a.over(mask, b)),
            // The value of lanes that were never written does not matter.
            (_, Val::Unknown(Why::Unset)) => self,
            (Val::Unknown(Why::Unset), _) => old.clone(),
            (Val::Based(Base::Register(_), _), Val::Known(_))
            | (Val::Known(_), Val::Based(Base::Register(_), _)) => {
                Val::Parted(mask, Rc::new((self, old.clone())))
            }
            (Val::Unknown(_), _) => self,
            (_, Val::Unknown(why)) => Val::Unknown(*why),
            _ => Val::Unknown(Why::Unset),
        }
    }

    pub(crate) fn add(&self, by: &Lanes) -> Val {
        match self {
            Val::Known(l) => Val::Known(l.zip(by, u64::wrapping_add)),
            Val::Based(b, l) => Val::Based(*b, l.zip(by, u64::wrapping_add)),
            Val::Parted(mask, both) => Val::Parted(*mask, Rc::new((both.0.add(by), both.1.add(by)))),
            Val::Unknown(w) => Val::Unknown(*w),
        }
    }
}
