//! Whether operations that may happen on an mbarrier add up: to enough arrivals, and to no bytes.
//!
//! Every subset counts, in any order. A set of sums is a table of bits: a row for each number of arrivals, and a bit for each
//! number of transactions, in units that divide all of them. Equal operations are entered together, in powers of two.

use std::collections::BTreeMap;

/// Most bits of a table. With more it is assumed that the operations add up.
const MAX_BITS: u64 = 1 << 22;

/// Whether `first`, in arrivals and transactions, and some of the operations, one at least, come to `expected` arrivals or more
/// and to no transactions.
pub(super) fn add_up(first: (u64, i64), operations: impl Iterator<Item = (u64, i64)>, expected: u64) -> bool {
    let mut kinds: BTreeMap<(u64, i64), u64> = BTreeMap::new();
    operations.for_each(|operation| *kinds.entry(operation).or_default() += 1);
    let unit = kinds.keys().fold(first.1.unsigned_abs(), |unit, (_, tx)| gcd(unit, tx.unsigned_abs())).max(1);
    let scaled = |tx: i64| i128::from(tx) / i128::from(unit);
    let of = |sign| {
        let each = kinds.iter().map(|((_, tx), n)| scaled(*tx) * i128::from(*n));
        each.filter(|tx| tx.signum() == sign).sum::<i128>()
    };
    let (low, high) = (scaled(first.1) + of(-1), scaled(first.1) + of(1));
    if low > 0 || high < 0 {
        return false;
    }
    let (Ok(width), Ok(zero)) = (u64::try_from(high - low + 1), usize::try_from(-low)) else { return true };
    if width.saturating_mul(expected.saturating_add(1)) > MAX_BITS {
        return true;
    }
    let mut all = Table::new(expected, width);
    all.insert(first.0, usize::try_from(scaled(first.1) - low).unwrap_or(0));
    kinds.iter().any(|((arrivals, tx), n)| {
        parts(*n).any(|n| {
            let with = all.plus(arrivals.saturating_mul(n), scaled(*tx) * i128::from(n));
            all.join(&with);
            with.has(expected, zero)
        })
    })
}

/// Numbers of which each number up to `n` is a sum of some.
fn parts(mut n: u64) -> impl Iterator<Item = u64> {
    (0..u64::BITS).map_while(move |power| {
        let part = (1 << power).min(n);
        n -= part;
        (part > 0).then_some(part)
    })
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Sums. Those in the last row have as many arrivals or more.
#[derive(Clone)]
struct Table {
    words: usize,
    bits: Vec<u64>,
}

impl Table {
    fn new(expected: u64, width: u64) -> Self {
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let words = size(width.div_ceil(64));
        Table { words, bits: vec![0; words * (size(expected) + 1)] }
    }

    /// The offset of a row.
    fn row(&self, arrivals: u64) -> usize {
        usize::try_from(arrivals).unwrap_or(usize::MAX).min(self.bits.len() / self.words - 1) * self.words
    }

    fn insert(&mut self, arrivals: u64, at: usize) {
        let row = self.row(arrivals);
        self.bits[row + at / 64] |= 1 << (at % 64);
    }

    fn has(&self, arrivals: u64, at: usize) -> bool {
        self.bits[self.row(arrivals) + at / 64] >> (at % 64) & 1 == 1
    }

    /// The sums with more arrivals and transactions each.
    fn plus(&self, arrivals: u64, tx: i128) -> Self {
        let mut more = Table { words: self.words, bits: vec![0; self.bits.len()] };
        let by = usize::try_from(tx.unsigned_abs()).unwrap_or(usize::MAX);
        for (n, row) in self.bits.chunks(self.words).enumerate() {
            if row.iter().any(|w| *w != 0) {
                let to = self.row(arrivals.saturating_add(n as u64));
                shift(&mut more.bits[to..to + self.words], row, by, tx < 0);
            }
        }
        more
    }

    fn join(&mut self, more: &Self) {
        self.bits.iter_mut().zip(&more.bits).for_each(|(a, b)| *a |= b);
    }
}

/// Adds a row whose bits are so many places lower, or higher.
fn shift(to: &mut [u64], row: &[u64], by: usize, lower: bool) {
    let (words, bits) = (by / 64, by % 64);
    for (at, word) in row.iter().enumerate() {
        let place =
            |more: usize| if lower { at.checked_sub(words + more) } else { at.checked_add(words + more) };
        if let Some(to) = place(0).and_then(|at| to.get_mut(at)) {
            *to |= if lower { word >> bits } else { word << bits };
        }
        if let Some(to) = place(1).filter(|_| bits > 0).and_then(|at| to.get_mut(at)) {
            *to |= if lower { word << (64 - bits) } else { word >> (64 - bits) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_hand(first: (u64, i64), operations: &[(u64, i64)], expected: u64) -> bool {
        (1u32..1 << operations.len()).any(|subset| {
            let some = (0..operations.len()).filter(|i| subset >> i & 1 == 1).map(|i| operations[i]);
            let sum = some.fold(first, |(n, tx), (more, by)| (n + more, tx + by));
            sum.0 >= expected && sum.1 == 0
        })
    }

    proptest! {
        #[test]
        fn every_subset_counts(
            first in (0u64..3, -5i64..5),
            operations in prop::collection::vec(
                (0u64..3, prop::sample::select(vec![-960i64, -64, -8, 0, 8, 40, 640])),
                0..10,
            ),
            expected in 0u64..9,
        ) {
            let first = (first.0, 8 * first.1);
            let sums = operations.iter().copied();
            prop_assert_eq!(add_up(first, sums, expected), by_hand(first, &operations, expected));
        }
    }

    #[test]
    fn many_equal_operations_are_few() {
        let of = |n: usize, operation| std::iter::repeat_n(operation, n);
        let all = |arrivals, bytes| of(arrivals, (1, 0)).chain(of(bytes, (0, -1)));
        assert!(add_up((0, 500), all(1_000, 500), 1_000));
        assert!(!add_up((0, 500), all(1_000, 499), 1_000));
        assert!(!add_up((0, 500), all(999, 500), 1_000));
    }
}
