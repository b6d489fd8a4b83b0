//! Numbers and tables of the bytecode: variable-length integers, aligned tables, and a cursor that never reads past the end.

use super::error::ReadError;

/// The byte that fills gaps.
pub(super) const PAD: u8 = 0xCB;

/// Writes a number with seven bits in each byte, the lowest first.
pub(super) fn varint(out: &mut Vec<u8>, mut n: u64) {
    loop {
        let low = u8::try_from(n & 0x7f).expect("seven bits fit a byte");
        n >>= 7;
        if n == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// Writes a number with its sign in the lowest bit.
pub(super) fn signed(out: &mut Vec<u8>, n: i64) {
    varint(out, (n << 1 ^ n >> 63).cast_unsigned());
}

/// Writes a count.
pub(super) fn count(out: &mut Vec<u8>, n: usize) {
    varint(out, n as u64);
}

/// Fills up to a multiple of `to`.
pub(super) fn align(out: &mut Vec<u8>, to: usize) {
    while !out.len().is_multiple_of(to) {
        out.push(PAD);
    }
}

/// Writes a table: count, offsets of `width` bytes, items.
pub(super) fn table<T: AsRef<[u8]>>(items: &[T], width: usize) -> Vec<u8> {
    let mut out = Vec::new();
    count(&mut out, items.len());
    align(&mut out, width);
    let mut offset = 0u64;
    for item in items {
        out.extend(&offset.to_le_bytes()[..width]);
        offset += item.as_ref().len() as u64;
    }
    items.iter().for_each(|item| out.extend(item.as_ref()));
    out
}

/// A part of a file, read from its start; positions are those of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// The position of `bytes` in the file.
    base: usize,
    at: usize,
}

pub(super) type Taken<T> = Result<T, ReadError>;

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], base: usize) -> Self {
        Cursor { bytes, base, at: 0 }
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn place(&self) -> usize {
        self.base + self.at
    }

    pub(super) fn error<T>(&self, message: impl Into<String>) -> Taken<T> {
        Err(ReadError { offset: self.place(), message: message.into() })
    }

    pub(super) fn take(&mut self, n: usize) -> Taken<&'a [u8]> {
        let Some(taken) = self.bytes.get(self.at..).and_then(|rest| rest.get(..n)) else {
            return self.error(format!("{n} bytes are needed, {} are left", self.left()));
        };
        self.at += n;
        Ok(taken)
    }

    /// A cursor over the next bytes alone.
    pub(super) fn part(&mut self, n: usize) -> Taken<Cursor<'a>> {
        let base = self.place();
        Ok(Cursor::new(self.take(n)?, base))
    }

    pub(super) fn byte(&mut self) -> Taken<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn varint(&mut self) -> Taken<u64> {
        let start = *self;
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            if low << shift >> shift != low {
                break;
            }
            n |= low << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        start.error("a number does not fit 64 bits")
    }

    pub(super) fn signed(&mut self) -> Taken<i64> {
        let n = self.varint()?;
        Ok((n >> 1).cast_signed() ^ -((n & 1).cast_signed()))
    }

    pub(super) fn small(&mut self) -> Taken<u32> {
        let start = *self;
        let n = self.varint()?;
        u32::try_from(n).or_else(|_| start.error("a number does not fit 32 bits"))
    }

    /// A count of items that have at least one byte each.
    pub(super) fn count(&mut self) -> Taken<usize> {
        let start = *self;
        let n = self.varint()?;
        match usize::try_from(n) {
            Ok(n) if n <= self.left() => Ok(n),
            _ => start.error(format!("there cannot be {n} of them in {} bytes", self.left())),
        }
    }

    /// A list of integers of 4 or 8 bytes.
    pub(super) fn list(&mut self, width: usize, most: usize) -> Taken<Vec<i64>> {
        let n = self.count()?;
        if n > most {
            return self.error(format!("a list of {n}, at most {most} are read"));
        }
        (0..n).map(|_| Ok(fixed(self.take(width)?))).collect()
    }

    /// Advances to a multiple of `to`, counted from the start of this part.
    pub(super) fn align(&mut self, to: usize) -> Taken<()> {
        let gap = self.at.next_multiple_of(to.max(1)) - self.at;
        self.take(gap).map(|_| ())
    }

    /// The items of a table.
    pub(super) fn table(mut self, width: usize) -> Taken<Vec<Cursor<'a>>> {
        let n = self.count()?;
        self.align(width)?;
        let start = self;
        let mut offsets = Vec::new();
        for _ in 0..n {
            offsets.push(usize::try_from(fixed(self.take(width)?)).ok());
        }
        let blob = self.part(self.left())?;
        offsets.push(Some(blob.left()));
        let mut out = Vec::new();
        for pair in offsets.windows(2) {
            let item = match pair {
                [Some(from), Some(to)] => {
                    blob.bytes.get(*from..*to).map(|b| Cursor::new(b, blob.base + from))
                }
                _ => None,
            };
            match item {
                Some(item) => out.push(item),
                None => return start.error("an offset of a table points outside of it"),
            }
        }
        Ok(out)
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }
}

/// A signed little-endian number of 4 or 8 bytes.
fn fixed(bytes: &[u8]) -> i64 {
    match bytes {
        [a, b, c, d] => i64::from(i32::from_le_bytes([*a, *b, *c, *d])),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
        other => unreachable!("a number of {} bytes: tables and lists have 4 or 8", other.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_both_ways() {
        for n in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            varint(&mut out, n);
            assert_eq!(Cursor::new(&out, 0).varint().unwrap(), n);
        }
        for n in [0, -1, 1, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            signed(&mut out, n);
            assert_eq!(Cursor::new(&out, 0).signed().unwrap(), n);
        }
        assert!(Cursor::new(&[0xff; 10], 0).varint().is_err());
        assert!(Cursor::new(&[0x80], 0).varint().is_err());
    }

    #[test]
    fn tables_stay_inside() {
        let good = table(&[b"ab".to_vec(), Vec::new(), b"c".to_vec()], 4);
        let items: Vec<&[u8]> = Cursor::new(&good, 0).table(4).unwrap().iter().map(Cursor::rest).collect();
        assert_eq!(items, [b"ab".as_slice(), b"", b"c"]);
        for (at, byte) in [(4, 9), (8, 0xff), (0, 200)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert!(Cursor::new(&bad, 0).table(4).is_err(), "{at}");
        }
    }
}
