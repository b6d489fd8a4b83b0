//! Sets and relations of events as bits: a row of `W` words holds up to `64 * W` events.

/// A set of events, and one row of a relation.
pub type Row<const W: usize> = [u64; W];

/// The empty row.
pub const fn empty<const W: usize>() -> Row<W> {
    [0; W]
}

/// Makes room for `wanted` rows. A larger block is new and empty, and takes memory as it is written to; otherwise the rows
/// stay as they are.
pub(crate) fn room<const W: usize>(rows: &mut Vec<Row<W>>, wanted: usize) {
    if rows.len() < wanted {
        *rows = vec![empty(); wanted.next_power_of_two()];
    }
}

/// The first `n` events.
pub fn first<const W: usize>(n: usize) -> Row<W> {
    let mut row = [0; W];
    for (i, word) in row.iter_mut().enumerate() {
        let left = n.saturating_sub(64 * i);
        *word = if left >= 64 { u64::MAX } else { (1u64 << left) - 1 };
    }
    row
}

/// Whether event `i` is in `row`.
#[inline]
pub fn has<const W: usize>(row: &Row<W>, i: usize) -> bool {
    row[i / 64] >> (i % 64) & 1 == 1
}

/// Adds event `i`.
#[inline]
pub fn set<const W: usize>(row: &mut Row<W>, i: usize) {
    row[i / 64] |= 1 << (i % 64);
}

/// Removes event `i`.
#[inline]
pub fn clear<const W: usize>(row: &mut Row<W>, i: usize) {
    row[i / 64] &= !(1 << (i % 64));
}

/// Puts event `i` in or out.
#[inline]
pub fn put<const W: usize>(row: &mut Row<W>, i: usize, value: bool) {
    if value { set(row, i) } else { clear(row, i) }
}

/// `a | b` into `a`.
#[inline]
pub fn or<const W: usize>(a: &mut Row<W>, b: &Row<W>) {
    for w in 0..W {
        a[w] |= b[w];
    }
}

/// `a & b`.
#[inline]
pub fn and<const W: usize>(a: &Row<W>, b: &Row<W>) -> Row<W> {
    let mut out = *a;
    for w in 0..W {
        out[w] &= b[w];
    }
    out
}

/// `a \ b`.
#[inline]
pub fn minus<const W: usize>(a: &Row<W>, b: &Row<W>) -> Row<W> {
    let mut out = *a;
    for w in 0..W {
        out[w] &= !b[w];
    }
    out
}

/// Whether no event is in `row`.
#[inline]
pub fn is_empty<const W: usize>(row: &Row<W>) -> bool {
    row.iter().all(|w| *w == 0)
}

/// How many events are in `row`.
#[inline]
pub fn count<const W: usize>(row: &Row<W>) -> u32 {
    row.iter().map(|w| w.count_ones()).sum()
}

/// The lowest event in `row`.
#[inline]
pub fn lowest<const W: usize>(row: &Row<W>) -> Option<usize> {
    row.iter().enumerate().find(|(_, w)| **w != 0).map(|(i, w)| 64 * i + w.trailing_zeros() as usize)
}

/// The events in `row`, ascending.
#[inline]
pub fn iter<const W: usize>(row: &Row<W>) -> Events<W> {
    Events { row: *row, word: 0 }
}

/// See [`iter`].
#[derive(Clone, Debug)]
pub struct Events<const W: usize> {
    /// What is left.
    row: Row<W>,
    /// The first word that may have something left.
    word: usize,
}

impl<const W: usize> Iterator for Events<W> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.word < W {
            let word = &mut self.row[self.word];
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(64 * self.word + bit);
            }
            self.word += 1;
        }
        None
    }
}

/// Rows from which walking the graph costs less than Warshall's square.
const MANY: usize = 64;

/// Transitive closure in place.
pub fn close<const W: usize>(rows: &mut [Row<W>]) {
    if rows.len() <= MANY || !close_acyclic(rows) {
        close_any(rows);
    }
}

/// Closes a relation without cycles, each row from the closed rows of its successors, in one walk depth first; `false`
/// where it meets a cycle, the rows then being some of the closure.
fn close_acyclic<const W: usize>(rows: &mut [Row<W>]) -> bool {
    let (mut begun, mut done) = (empty::<W>(), empty::<W>());
    let mut stack: Vec<(usize, Row<W>)> = Vec::new();
    for root in 0..rows.len() {
        if has(&begun, root) {
            continue;
        }
        set(&mut begun, root);
        stack.push((root, rows[root]));
        while let Some((at, left)) = stack.last_mut() {
            let Some(next) = iter(left).next() else {
                set(&mut done, *at);
                stack.pop();
                continue;
            };
            if has(&done, next) {
                let (at, through) = (*at, rows[next]);
                or(&mut rows[at], &through);
                *left = minus(left, &through);
                clear(left, next);
            } else if has(&begun, next) {
                return false;
            } else {
                set(&mut begun, next);
                stack.push((next, rows[next]));
            }
        }
    }
    true
}

/// Warshall on rows.
fn close_any<const W: usize>(rows: &mut [Row<W>]) {
    for k in 0..rows.len() {
        let through = rows[k];
        if is_empty(&through) {
            continue;
        }
        for row in rows.iter_mut() {
            let taken = (row[k / 64] >> (k % 64) & 1).wrapping_neg();
            for w in 0..W {
                row[w] |= through[w] & taken;
            }
        }
    }
}

/// `out := a ; b`.
pub fn compose<const W: usize>(a: &[Row<W>], b: &[Row<W>], out: &mut [Row<W>]) {
    for (x, o) in a.iter().zip(out.iter_mut()) {
        let mut row = empty();
        for j in iter(x) {
            or(&mut row, &b[j]);
        }
        *o = row;
    }
}

/// Whether the relation has no cycle: repeatedly drops events without successors.
pub fn acyclic<const W: usize>(rows: &[Row<W>]) -> bool {
    let mut left = first::<W>(rows.len());
    loop {
        let mut sinks = empty::<W>();
        for i in iter(&left) {
            if is_empty(&and(&rows[i], &left)) {
                set(&mut sinks, i);
            }
        }
        if is_empty(&sinks) {
            return is_empty(&left);
        }
        left = minus(&left, &sinks);
    }
}

/// Whether no event is related to itself.
pub fn irreflexive<const W: usize>(rows: &[Row<W>]) -> bool {
    rows.iter().enumerate().all(|(i, row)| !has(row, i))
}

/// Inserts `a -> b` into a transitively closed relation and keeps it closed.
pub fn insert_closed<const W: usize>(rows: &mut [Row<W>], a: usize, b: usize) {
    if has(&rows[a], b) {
        return;
    }
    let mut after = rows[b];
    set(&mut after, b);
    for (i, row) in rows.iter_mut().enumerate() {
        if i == a || has(row, a) {
            or(row, &after);
        }
    }
}

/// `out := a^-1`.
pub fn transpose<const W: usize>(a: &[Row<W>], out: &mut [Row<W>]) {
    out.fill(empty());
    for (i, row) in a.iter().enumerate() {
        for j in iter(row) {
            set(&mut out[j], i);
        }
    }
}

/// Inserts every pair of `more` into a transitively closed relation and keeps it closed.
pub fn extend_closed<const W: usize>(rows: &mut [Row<W>], more: &[Row<W>]) {
    let new: u32 = rows.iter().zip(more).map(|(row, extra)| count(&minus(extra, row))).sum();
    if rows.len() > MANY && new as usize > rows.len() / 16 {
        rows.iter_mut().zip(more).for_each(|(row, extra)| or(row, extra));
        return close(rows);
    }
    for (a, extra) in more.iter().enumerate() {
        let mut left = minus(extra, &rows[a]);
        while let Some(b) = iter(&left).next() {
            insert_closed(rows, a, b);
            left = minus(&left, &rows[a]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs drawn by a linear congruence; from lower to higher only if `acyclic`, among shuffled names.
    fn drawn(seed: u64, n: usize, pairs: usize, acyclic: bool) -> Vec<Row<3>> {
        let mut state = seed;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap_or(0) % below
        };
        let mut rows = vec![empty::<3>(); n];
        for _ in 0..pairs {
            let (a, b) = (next(n), next(n));
            // A bijection, as 67 shares no factor with the sizes below.
            let name = |x: usize| x * 67 % n;
            if !acyclic || name(a) < name(b) {
                set(&mut rows[a], b);
            }
        }
        rows
    }

    #[test]
    fn every_way_to_close_gives_the_same() {
        for seed in 0..200 {
            let n = 65 + usize::try_from(seed).unwrap_or(0) % 100;
            let (acyclic, pairs) = (seed % 4 != 0, 20 + usize::try_from(seed * 3).unwrap_or(0));
            let rows = drawn(seed, n, pairs, acyclic);
            let (mut quick, mut plain) = (rows.clone(), rows.clone());
            close(&mut quick);
            close_any(&mut plain);
            assert_eq!(quick, plain, "seed {seed}");
            let more = drawn(seed + 1_000, n, 1 + pairs / 8, acyclic);
            let mut both = plain.clone();
            both.iter_mut().zip(&more).for_each(|(row, extra)| or(row, extra));
            close_any(&mut both);
            extend_closed(&mut quick, &more);
            assert_eq!(quick, both, "seed {seed}, extended");
        }
    }
}
