//! A size of a launch that may be any of a class.

use super::known::line::Reach;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The name of the number of periods in residual programs.
pub const PERIODS: &str = "N";

/// Mistakes that tests must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    /// A bit is the same each time.
    ShortPeriod,
    /// The loop is left one period later.
    LeavesLate,
    /// The last class is missing.
    LeavesOut,
}

/// How a register changes in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// Not at all.
    Same,
    /// By this number.
    Turn(i64),
    /// It points somewhere into the memory of one parameter.
    Somewhere,
    /// In another way.
    Unknown,
}

/// How the registers that matter at the start of a loop change: by warp, by the first statement of the loop, and by how often a
/// period was run there before.
pub(super) type Growths = BTreeMap<(u32, usize, usize), Vec<Growth>>;

/// A size of a launch that may be any of `base + step * u`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The parameter, and the first byte of the field.
    pub(super) place: (u16, u32),
    pub(super) base: u64,
    /// What a period adds.
    pub(super) step: i64,
    /// Rounds before the period from which growth is taken, or before the one that is run for all, if the growth is known.
    pub(super) first: u32,
    /// The growth that a larger launch has shown, if it is known.
    pub(super) growths: Rc<RefCell<Growths>>,
    pub(super) known: bool,
    /// The loops that it decides, by their first statements, with the rounds of a period.
    pub(super) rounds: BTreeMap<usize, u32>,
    /// For which `u` it is so.
    pub(super) reach: Reach,
    pub(super) planted: Option<Planted>,
}
