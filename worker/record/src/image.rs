//! What a program passes to the driver as a module, once its bytes are known.

use crate::fatbin::{MAGIC, unpack};
use crate::layout::{Field, layouts};
use std::collections::BTreeMap;

/// A module: its PTX, if there is one, and the parameters of its kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The text for the device, or the nearest below it.
    pub ptx: Option<Vec<u8>>,
    /// The cubin for the device, where there is no text.
    pub cubin: Option<Vec<u8>>,
    /// The parameters of each kernel.
    pub layouts: BTreeMap<String, Vec<Field>>,
    /// What is left out.
    pub notes: Vec<String>,
}

impl Image {
    /// Reads a module for a device of this compute capability, such as 90; 0 if it is not known.
    pub fn of(bytes: &[u8], device: u32) -> Image {
        let mut out = Image::default();
        if bytes.starts_with(b"\x7fELF") {
            out.cubin = Some(bytes.to_vec());
        } else if bytes.starts_with(&MAGIC.to_le_bytes()) {
            let all = unpack(bytes, device);
            // Compilers put a zero behind the text.
            let ptx = all.ptx.map(|t| text(&t).to_vec());
            (out.ptx, out.cubin, out.notes) = (ptx, all.cubin, all.notes);
        } else {
            out.ptx = Some(text(bytes).to_vec()).filter(|t| !t.is_empty());
        }
        out.layouts = out.ptx.as_deref().map_or_else(
            || out.cubin.as_deref().map_or(BTreeMap::new(), crate::cubin::layouts),
            |text| layouts(&String::from_utf8_lossy(text)),
        );
        out
    }
}

/// The text at the start of these bytes: up to a zero, or what else no PTX has.
fn text(bytes: &[u8]) -> &[u8] {
    let end = |b: &u8| *b < 0x20 && !matches!(*b, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    &bytes[..bytes.iter().position(end).unwrap_or(bytes.len())]
}

/// The name of a content: 128 bits of FNV-1a, in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mixed = bytes.iter().fold(START, |hash, b| (hash ^ u128::from(*b)).wrapping_mul(PRIME));
    format!("{mixed:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_need_not_end() {
        let image = Image::of(b".version 8.0 .target sm_90 .entry k(.param .u64 a) { ret; }", 90);
        assert_eq!(image.layouts["k"], [Field { at: 0, size: 8 }]);
        assert_eq!(Image::of(b".version 8.0\0rest", 90).ptx.unwrap(), b".version 8.0");
        assert_eq!(Image::of(b"\0", 90), Image::default());
    }
}
