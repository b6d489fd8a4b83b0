//! Sets and relations of events as bits: a row of `W` words holds up to `64 * W` events.

/// A set of events, and one row of a relation.
pub type Row<const W: usize> = [u64; W];

/// The empty row.
pub const fn empty<const W: usize>() -> Row<W> {
    [0; W]
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

/// The events in `row`, ascending.
#[inline]
pub fn iter<const W: usize>(row: &Row<W>) -> impl Iterator<Item = usize> + use<W> {
    let row = *row;
    (0..W).flat_map(move |w| {
        let mut word = row[w];
        std::iter::from_fn(move || {
            (word != 0).then(|| {
                let bit = word.trailing_zeros() as usize;
                word &= word - 1;
                64 * w + bit
            })
        })
    })
}

/// Transitive closure in place (Warshall on rows).
pub fn close<const W: usize>(rows: &mut [Row<W>]) {
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
    for (a, extra) in more.iter().enumerate() {
        let mut left = minus(extra, &rows[a]);
        while let Some(b) = iter(&left).next() {
            insert_closed(rows, a, b);
            left = minus(&left, &rows[a]);
        }
    }
}
