//! A size of a launch that may be any of a class.

use super::known::line::Reach;
use std::collections::BTreeMap;

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

/// A size of a launch that may be any of `base + step * u`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The parameter, and the first byte of the field.
    pub(super) place: (u16, u32),
    pub(super) base: u64,
    /// What a period adds.
    pub(super) step: i64,
    /// Rounds before the period from which growth is taken.
    pub(super) first: u32,
    /// The loops that it decides, by their first statements, with the rounds of a period.
    pub(super) rounds: BTreeMap<usize, u32>,
    /// For which `u` it is so.
    pub(super) reach: Reach,
    pub(super) planted: Option<Planted>,
}
