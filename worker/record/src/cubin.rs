//! What a cubin tells of its kernels: the sections `.nv.info.NAME` of an ELF file of 64 bits have where each parameter lies.
//!
//! An attribute has a format (1 byte), a number (1) and a size or value (2); format 4 has as many bytes behind it. Number 0x17 is a
//! parameter: index (4 bytes), its own number (2), first byte (2), and a word whose bits from 18 on are its size. `nvdisasm`
//! and `cuobjdump` call it `EIATTR_KPARAM_INFO`.

use crate::layout::{Field, PARAMETERS};
use std::collections::BTreeMap;

const PARAMETER: u8 = 0x17;
const SECTION: usize = 64;

fn number(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let part = bytes.get(at..at.checked_add(size)?)?;
    usize::try_from(part.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b))).ok()
}

/// The parameters of each kernel of a cubin.
pub(crate) fn layouts(bytes: &[u8]) -> BTreeMap<String, Vec<Field>> {
    sections(bytes)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(name, content)| {
            Some((name.strip_prefix(".nv.info.")?.to_owned(), parameters(content)?))
        })
        .collect()
}

/// The names and contents of the sections of an ELF file.
fn sections(bytes: &[u8]) -> Option<Vec<(String, &[u8])>> {
    let table = number(bytes, 40, 8)?;
    let count = number(bytes, 60, 2)?;
    let content = |n: usize| {
        let at = table.checked_add(n.checked_mul(SECTION)?)?;
        let start = number(bytes, at.checked_add(24)?, 8)?;
        Some((number(bytes, at, 4)?, bytes.get(start..start.checked_add(number(bytes, at + 32, 8)?)?)?))
    };
    let names = content(number(bytes, 62, 2)?)?.1;
    let name = |at: usize| {
        let rest = names.get(at..)?;
        let end = rest.iter().position(|b| *b == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    Some((0..count).filter_map(content).filter_map(|(at, content)| Some((name(at)?, content))).collect())
}

/// The parameters that the attributes of a kernel tell, in their order.
fn parameters(mut rest: &[u8]) -> Option<Vec<Field>> {
    let mut out: BTreeMap<usize, Field> = BTreeMap::new();
    while rest.len() >= 4 {
        let (format, which) = (rest[0], rest[1]);
        let size = if format == 4 { number(rest, 2, 2)? } else { 0 };
        let value = rest.get(4..4 + size)?;
        if format == 4 && which == PARAMETER {
            let short = |at, size| u32::try_from(number(value, at, size)?).ok();
            let field = Field { at: short(6, 2)?, size: short(8, 4)? >> 18 };
            out.insert(number(value, 4, 2)?, field);
        }
        rest = &rest[4 + size..];
    }
    let whole = out.keys().copied().eq(0..out.len());
    let fits = out.values().all(|f| f.at + f.size <= PARAMETERS);
    (whole && fits).then(|| out.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The attribute of a parameter.
    fn attribute(ordinal: u16, at: u16, size: u32) -> Vec<u8> {
        let mut out = vec![4, PARAMETER, 12, 0, 0, 0, 0, 0];
        out.extend(ordinal.to_le_bytes());
        out.extend(at.to_le_bytes());
        out.extend((size << 18 | 0x1_f000).to_le_bytes());
        out
    }

    #[test]
    fn parameters_are_told_by_attributes() {
        let mut all = vec![3, 0x19, 0x50, 2];
        all.extend(attribute(1, 64, 128));
        all.extend(attribute(0, 0, 8));
        assert_eq!(parameters(&all).unwrap(), [Field { at: 0, size: 8 }, Field { at: 64, size: 128 }]);
        assert_eq!(parameters(&attribute(1, 0, 8)), None);
        assert_eq!(parameters(&all[..all.len() - 1]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            parameters(&bytes);
            bytes.splice(0..0, *b"\x7fELF");
            layouts(&bytes);
        }
    }
}
