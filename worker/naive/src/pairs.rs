//! Sets of events and sets of pairs of events, spelt out: row `i` holds the partners of event `i` as bits.
//!
//! Independent of the evaluator in `moire-cat`, and written for reading rather than speed: the two are compared.

use smallvec::{SmallVec, smallvec};

/// A set of events; bit `i` is event `i`.
pub(super) type Events = u128;

/// Most events a graph may have here.
pub(super) const EVENTS: usize = 128;

/// The set of the one event `i`.
pub(super) fn one(i: usize) -> Events {
    1 << i
}

/// Members in ascending order.
pub(super) fn members(mut set: Events) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let i = set.trailing_zeros() as usize;
        (set != 0).then(|| {
            set &= set - 1;
            i
        })
    })
}

/// Rows that are stored inline: enough for most graphs.
const FEW: usize = 24;

/// A relation over events `0..n`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pairs(pub(super) SmallVec<[Events; FEW]>);

impl Clone for Pairs {
    /// Copies all rows at once; the derived implementation copies one by one.
    fn clone(&self) -> Self {
        Pairs(SmallVec::from_slice(&self.0))
    }
}

impl Pairs {
    /// No pair.
    pub(super) fn none(n: usize) -> Self {
        Pairs(smallvec![0; n])
    }

    /// Row by row.
    pub(super) fn of(n: usize, row: impl Fn(usize) -> Events) -> Self {
        let mut out = Pairs::none(n);
        out.0.iter_mut().enumerate().for_each(|(i, to)| *to = row(i));
        out
    }

    /// The pairs of one of `rows` with one of `columns` for which `test` holds.
    pub(super) fn among(
        n: usize,
        rows: Events,
        columns: Events,
        test: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let mut out = Pairs::none(n);
        for i in members(rows) {
            out.0[i] = members(columns).filter(|j| test(i, *j)).fold(0, |row, j| row | one(j));
        }
        out
    }

    /// Whether `(a, b)` is a member.
    pub(super) fn has(&self, a: usize, b: usize) -> bool {
        self.0[a] & one(b) != 0
    }

    /// Makes `(a, b)` a member.
    pub(super) fn add(&mut self, a: usize, b: usize) {
        self.0[a] |= one(b);
    }

    /// All pairs in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0.iter().enumerate().flat_map(|(i, row)| members(*row).map(move |j| (i, j)))
    }

    /// Combines two relations row by row.
    pub(super) fn with(&self, other: &Pairs, f: impl Fn(Events, Events) -> Events) -> Pairs {
        let mut out = self.clone();
        out.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a = f(*a, *b));
        out
    }

    /// Union.
    pub(super) fn or(&self, other: &Pairs) -> Pairs {
        self.with(other, |a, b| a | b)
    }

    /// Inverse.
    pub(super) fn inverse(&self) -> Pairs {
        let mut out = Pairs::none(self.0.len());
        for (a, b) in self.iter() {
            out.add(b, a);
        }
        out
    }

    /// Transitive closure.
    pub(super) fn closed(mut self) -> Pairs {
        close(&mut self.0);
        self
    }

    /// Whether no event is related to itself.
    pub(super) fn irreflexive(&self) -> bool {
        irreflexive(&self.0)
    }

    /// Whether there is no cycle.
    pub(super) fn acyclic(&self) -> bool {
        acyclic(&self.0)
    }
}

/// Makes rows transitive: for one event after the other, the ways through it (Warshall).
pub(super) fn close(rows: &mut [Events]) {
    for through in 0..rows.len() {
        let further = rows[through];
        if further != 0 {
            rows.iter_mut().filter(|row| **row & one(through) != 0).for_each(|row| *row |= further);
        }
    }
}

/// Whether no event is related to itself.
pub(super) fn irreflexive(rows: &[Events]) -> bool {
    rows.iter().enumerate().all(|(i, row)| row & one(i) == 0)
}

/// Whether there is no cycle: events that lead to none that is left are taken away until none is left.
pub(super) fn acyclic(rows: &[Events]) -> bool {
    let mut left = rows.iter().enumerate().filter(|(_, row)| **row != 0).fold(0, |set, (i, _)| set | one(i));
    loop {
        let stay = members(left).filter(|i| rows[*i] & left != 0).fold(0, |set, i| set | one(i));
        if stay == left {
            return left == 0;
        }
        left = stay;
    }
}
