//! The content of an object. Its cost follows the bytes that are not zero, not the size that is declared.

use super::Value;
use std::cmp::Ordering;

/// Bytes of a block, the unit of storage.
const BLOCK: u32 = 16;
/// The same number, as the length of an array.
const SIZE: usize = BLOCK as usize;

/// Bytes from offset 0 on. Bytes that were never set are zero. The size of the object is not part of the content.
///
/// Contents are ordered as the lists of their bytes are, from offset 0 on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Content {
    /// Blocks with a byte that is not zero: the number of the block and its bytes, in ascending order.
    blocks: Vec<(u32, [u8; SIZE])>,
}

impl Content {
    /// Whether every byte is zero.
    pub fn is_zero(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The byte at an offset.
    pub fn get(&self, at: u32) -> u8 {
        let (block, byte) = place(at);
        self.blocks.binary_search_by_key(&block, |b| b.0).map_or(0, |n| self.blocks[n].1[byte])
    }

    /// Sets the byte at an offset.
    pub fn put(&mut self, at: u32, value: u8) {
        let (block, byte) = place(at);
        match self.blocks.binary_search_by_key(&block, |b| b.0) {
            Ok(n) => {
                self.blocks[n].1[byte] = value;
                if self.blocks[n].1 == [0; SIZE] {
                    self.blocks.remove(n);
                }
            }
            Err(n) if value != 0 => {
                let mut bytes = [0; SIZE];
                bytes[byte] = value;
                self.blocks.insert(n, (block, bytes));
            }
            Err(_) => {}
        }
    }

    /// The little-endian number in these bytes; at most 16 of them count.
    pub fn value(&self, at: u32, bytes: u32) -> Value {
        if self.is_zero() {
            return 0;
        }
        let byte = |i: u32| at.checked_add(i).map_or(0, |at| self.get(at));
        (0..bytes.min(16)).fold(0, |all, i| all | Value::from(byte(i)) << (8 * i))
    }

    /// Sets these bytes to a little-endian number; at most 16 of them are set.
    pub fn put_value(&mut self, at: u32, bytes: u32, value: Value) {
        for (at, byte) in (at..).zip(value.to_le_bytes()).take(bytes.min(16) as usize) {
            self.put(at, byte);
        }
    }

    /// Number of bytes up to the last one that is not zero.
    pub fn used(&self) -> u32 {
        self.blocks.last().map_or(0, |(block, bytes)| {
            let used = (1..).zip(bytes).filter(|(_, b)| **b != 0).map(|(n, _)| n).last();
            block * BLOCK + used.unwrap_or(0)
        })
    }

    /// Makes every byte from this offset on zero.
    pub fn truncate(&mut self, len: u32) {
        let (block, byte) = place(len);
        self.blocks.retain(|b| b.0 <= block);
        if let Some(last) = self.blocks.last_mut().filter(|b| b.0 == block) {
            last.1[byte..].fill(0);
            if last.1 == [0; SIZE] {
                self.blocks.pop();
            }
        }
    }

    /// The first `len` bytes.
    pub fn bytes(&self, len: u32) -> Vec<u8> {
        let mut out = vec![0; len as usize];
        for (block, bytes) in &self.blocks {
            let at = *block as usize * SIZE;
            let room = out.get_mut(at..).unwrap_or_default();
            room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        }
        out
    }

    /// The blocks that hold a byte other than zero: their numbers, ascending, and their bytes.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, &[u8; SIZE])> {
        self.blocks.iter().map(|(block, bytes)| (*block, bytes))
    }
}

/// The block of an offset, and the position in it.
fn place(at: u32) -> (u32, usize) {
    (at / BLOCK, (at % BLOCK) as usize)
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Content::from(&bytes[..])
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        let blocks = (0..).zip(bytes.chunks(SIZE)).filter(|(_, part)| part.iter().any(|b| *b != 0));
        let full = |(number, part): (u32, &[u8])| {
            let mut block = [0; SIZE];
            block[..part.len()].copy_from_slice(part);
            (number, block)
        };
        Content { blocks: blocks.map(full).collect() }
    }
}

impl Ord for Content {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = (self.blocks.iter(), other.blocks.iter());
        loop {
            let ordering = match (a.next(), b.next()) {
                (None, None) => return Ordering::Equal,
                (None, Some(_)) => Ordering::Less,
                (Some(_), None) => Ordering::Greater,
                // The other has zeros where the earlier block is.
                (Some(x), Some(y)) => y.0.cmp(&x.0).then(x.1.cmp(&y.1)),
            };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
    }
}

impl PartialOrd for Content {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few different bytes, many zeros, around the ends of blocks.
    fn lists() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![6 => Just(0u8), 1 => Just(1u8), 1 => Just(255u8)], 0..70)
    }

    proptest! {
        #[test]
        fn a_content_is_the_list_of_its_bytes(list in lists(), at in 0u32..80, byte in 0u8..3, cut in 0u32..80) {
            let mut content = Content::from(list.clone());
            let mut dense = list.clone();
            dense.resize(160, 0);
            prop_assert_eq!(content.bytes(160), dense.clone());
            prop_assert_eq!(content.is_zero(), list.iter().all(|b| *b == 0));
            prop_assert_eq!(content.used() as usize, list.iter().rposition(|b| *b != 0).map_or(0, |p| p + 1));
            content.put(at, byte);
            dense[at as usize] = byte;
            prop_assert_eq!(content.get(at), byte);
            prop_assert_eq!(&content, &Content::from(dense.clone()));
            let wanted = (0..16).fold(0u128, |v, i| v | u128::from(dense[at as usize + i]) << (8 * i));
            prop_assert_eq!(content.value(at, 99), wanted);
            content.truncate(cut);
            dense[cut as usize..].fill(0);
            prop_assert_eq!(&content, &Content::from(dense.clone()));
            prop_assert_eq!(content.bytes(160), dense);
        }

        #[test]
        fn contents_are_ordered_as_their_bytes(a in lists(), b in lists()) {
            let dense = |list: &[u8]| { let mut all = list.to_vec(); all.resize(70, 0); all };
            prop_assert_eq!(Content::from(a.clone()).cmp(&Content::from(b.clone())), dense(&a).cmp(&dense(&b)));
        }

        #[test]
        fn a_value_is_put_as_its_bytes(list in lists(), at in 0u32..60, bytes in 0u32..20, value: u128) {
            let mut content = Content::from(list.clone());
            let mut dense = content.bytes(100);
            content.put_value(at, bytes, value);
            let n = bytes.min(16) as usize;
            dense[at as usize..at as usize + n].copy_from_slice(&value.to_le_bytes()[..n]);
            prop_assert_eq!(content.bytes(100), dense);
        }
    }

    #[test]
    fn a_large_object_with_one_byte_costs_one_block() {
        let mut content = Content::default();
        content.put(u32::MAX, 7);
        assert_eq!((content.blocks.len(), content.get(u32::MAX), content.get(0)), (1, 7, 0));
        assert_eq!(content.value(u32::MAX, 4), 7);
    }
}
