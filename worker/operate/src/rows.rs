//! Sets of records as rows of bits, many of them in one vector.

/// Rows of equal width. A row that was never written is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) words: usize,
    pub(crate) data: Vec<u64>,
}

impl Rows {
    pub(crate) fn new(words: usize) -> Self {
        Rows { words, data: Vec::new() }
    }

    fn reach(&mut self, row: usize) {
        debug_assert_eq!(self.data.len() % self.words.max(1), 0, "rows are whole");
        let end = (row + 1) * self.words;
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
    }

    /// A copy of a row.
    pub(crate) fn get(&self, row: usize) -> Vec<u64> {
        let start = row * self.words;
        self.data.get(start..start + self.words).map_or_else(|| vec![0; self.words], <[u64]>::to_vec)
    }

    /// One word of a row.
    pub(crate) fn word(&self, row: usize, word: usize) -> u64 {
        self.data.get(row * self.words + word).copied().unwrap_or(0)
    }

    pub(crate) fn has(&self, row: usize, bit: usize) -> bool {
        self.word(row, bit / 64) >> (bit % 64) & 1 == 1
    }

    pub(crate) fn set(&mut self, row: usize, bit: usize) {
        debug_assert!(bit < 64 * self.words, "a row has so many bits");
        self.reach(row);
        self.data[row * self.words + bit / 64] |= 1 << (bit % 64);
    }

    /// Adds the members of a set to a row.
    pub(crate) fn add(&mut self, row: usize, set: &[u64]) {
        if set.iter().all(|w| *w == 0) {
            return;
        }
        debug_assert_eq!(set.len(), self.words, "a set is as wide as a row");
        self.reach(row);
        let start = row * self.words;
        self.data[start..].iter_mut().zip(set).for_each(|(a, b)| *a |= b);
    }

    /// Adds the members of row `from` to row `to`.
    pub(crate) fn add_row(&mut self, to: usize, from: usize) {
        for word in 0..self.words {
            let more = self.word(from, word);
            if more != 0 {
                self.reach(to);
                self.data[to * self.words + word] |= more;
            }
        }
    }

    pub(crate) fn replace(&mut self, row: usize, set: &[u64]) {
        debug_assert_eq!(set.len(), self.words, "a set is as wide as a row");
        if set.iter().all(|w| *w == 0) && self.data.len() < (row + 1) * self.words {
            return;
        }
        self.reach(row);
        let start = row * self.words;
        self.data[start..start + self.words].copy_from_slice(set);
    }

    /// Empties a row.
    pub(crate) fn clear(&mut self, row: usize) {
        let start = row * self.words;
        if let Some(row) = self.data.get_mut(start..start + self.words) {
            row.fill(0);
        }
    }

    /// Removes records from every row.
    pub(crate) fn forget_all(&mut self, set: &[u64]) {
        debug_assert_eq!(set.len(), self.words, "a set is as wide as a row");
        for row in self.data.chunks_mut(self.words.max(1)) {
            row.iter_mut().zip(set).for_each(|(a, b)| *a &= !b);
        }
    }

    /// Removes one record from every row.
    pub(crate) fn forget_bit(&mut self, bit: usize) {
        let mask = !(1u64 << (bit % 64));
        self.data.iter_mut().skip(bit / 64).step_by(self.words).for_each(|w| *w &= mask);
    }

    /// Keeps a record in the rows that have another one, too.
    pub(crate) fn meet_bit(&mut self, record: usize, other: usize) {
        debug_assert_ne!(record, other, "two records meet");
        let words = self.words;
        for row in self.data.chunks_mut(words.max(1)).filter(|row| !has(row, other)) {
            row[record / 64] &= !(1 << (record % 64));
        }
    }

    /// Puts one record in the place of another in every row.
    pub(crate) fn rename_bit(&mut self, from: usize, to: usize) {
        debug_assert_ne!(from, to, "a record takes the place of another one");
        let words = self.words;
        for row in self.data.chunks_mut(words.max(1)).filter(|row| has(row, from)) {
            row[from / 64] &= !(1 << (from % 64));
            insert(row, to);
        }
    }
}

/// Adds the members of one set to another.
pub(crate) fn add(to: &mut [u64], from: &[u64]) {
    debug_assert_eq!(to.len(), from.len(), "sets of one run are equally wide");
    to.iter_mut().zip(from).for_each(|(a, b)| *a |= b);
}

/// The members of both sets.
pub(crate) fn both(a: &[u64], b: &[u64]) -> Vec<u64> {
    debug_assert_eq!(a.len(), b.len(), "sets of one run are equally wide");
    a.iter().zip(b).map(|(a, b)| a & b).collect()
}

/// The members of `a` that are not in `b`.
pub(crate) fn without(a: &[u64], b: &[u64]) -> Vec<u64> {
    debug_assert_eq!(a.len(), b.len(), "sets of one run are equally wide");
    a.iter().zip(b).map(|(a, b)| a & !b).collect()
}

/// Whether two sets have a member in common.
pub(crate) fn meet(a: &[u64], b: &[u64]) -> bool {
    debug_assert_eq!(a.len(), b.len(), "sets of one run are equally wide");
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

pub(crate) fn is_empty(set: &[u64]) -> bool {
    set.iter().all(|w| *w == 0)
}

pub(crate) fn has(set: &[u64], bit: usize) -> bool {
    set.get(bit / 64).is_some_and(|w| w >> (bit % 64) & 1 == 1)
}

pub(crate) fn insert(set: &mut [u64], bit: usize) {
    set[bit / 64] |= 1 << (bit % 64);
}

/// The members in ascending order.
pub(crate) fn members(set: &[u64]) -> Vec<usize> {
    let mut out = Vec::new();
    for (at, word) in set.iter().enumerate() {
        let mut left = *word;
        while left != 0 {
            out.push(64 * at + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_apart_what_is_added_to_each() {
        let mut rows = Rows::new(2);
        rows.set(3, 70);
        rows.add_row(1, 3);
        rows.add(1, &[1, 0]);
        assert_eq!(members(&rows.get(1)), [0, 70]);
        assert!(is_empty(&rows.get(2)) && is_empty(&rows.get(9)));
        rows.rename_bit(70, 5);
        assert_eq!((members(&rows.get(3)), members(&rows.get(1))), (vec![5], vec![0, 5]));
        rows.forget_bit(5);
        assert!(!rows.has(3, 5) && rows.has(1, 0));
    }
}
