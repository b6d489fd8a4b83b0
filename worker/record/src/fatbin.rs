//! The container of device code that `nvcc` and `fatbinary` write: a header, then entries of PTX, cubins and others.
//!
//! Little endian. Header: magic (4 bytes), version (2), size of the header (2), size of all entries (8). Entry: kind (2), version
//! (2), size of its header (4), size of its payload with padding (8), then at byte 16 the size of a compressed payload (4), at 28
//! the architecture (4), at 40 flags (8), at 56 the size when unpacked (8). Found by comparing what `fatbinary` 13.5 writes with each
//! `--compress-mode`.

use crate::IMAGE;
use std::io::Read;

/// The first word of a container.
pub const MAGIC: u32 = 0xba55_ed50;
/// The first word of the structure that a program passes for a container; byte 8 has its address.
pub const WRAPPER: u32 = 0x4662_43b1;

const HEADER: usize = 16;
const ENTRY: usize = 64;
const PTX: u16 = 1;
const CUBIN: u16 = 2;
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;

/// What is taken out of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// The text for the device, or for the nearest architecture below it; for any, if it is below all.
    pub ptx: Option<Vec<u8>>,
    /// The cubin, in the same way, if there is no text.
    pub cubin: Option<Vec<u8>>,
    /// Why some entry is left out.
    pub notes: Vec<String>,
}

/// An entry.
struct Entry<'a> {
    kind: u16,
    /// Such as 90.
    architecture: u64,
    payload: &'a [u8],
    flags: u64,
    /// The size of a compressed payload, and that when unpacked.
    packed: usize,
    full: usize,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(N)?)?;
    Some(part.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

fn size(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(number::<8>(bytes, at)?).ok()
}

/// The number of bytes of a container that begins with these 16, if they are the start of one.
pub fn length(start: &[u8]) -> Option<usize> {
    let magic = number::<4>(start, 0)? == u64::from(MAGIC);
    let header = usize::try_from(number::<2>(start, 6)?).ok()?;
    let whole = size(start, 8)?.checked_add(header)?;
    (magic && header >= HEADER && whole <= IMAGE).then_some(whole)
}

/// Takes the text for a device out of a container. Only what is taken is unpacked; an entry that lies about its size ends it.
pub fn unpack(bytes: &[u8], device: u32) -> Unpacked {
    let mut out = Unpacked::default();
    let Some(end) = length(bytes) else {
        out.notes.push("a container of device code has no readable header".into());
        return out;
    };
    let mut entries = Vec::new();
    let mut at = usize::try_from(number::<2>(bytes, 6).unwrap_or_default()).unwrap_or(HEADER);
    while at < end.min(bytes.len()) {
        let Some((found, next)) = entry(bytes, at) else {
            out.notes.push(format!("the entry at byte {at} of a container of device code says a wrong size"));
            break;
        };
        entries.push(found);
        at = next;
    }
    let fits = |e: &Entry<'_>| device == 0 || e.architecture <= u64::from(device);
    entries.sort_by_key(|e| (!fits(e), if fits(e) { u64::MAX - e.architecture } else { e.architecture }));
    let mut first = |kind: u16| {
        entries.iter().filter(|e| e.kind == kind).find_map(|e| match unpacked(e) {
            Ok(image) => Some(image).filter(|i| !i.is_empty()),
            Err(why) => {
                out.notes
                    .push(format!("an entry of a container of device code, for {}: {why}", e.architecture));
                None
            }
        })
    };
    let ptx = first(PTX);
    let cubin = if ptx.is_none() { first(CUBIN) } else { None };
    Unpacked { ptx, cubin, ..out }
}

/// The entry at a byte, and the place of the next one.
fn entry(bytes: &[u8], at: usize) -> Option<(Entry<'_>, usize)> {
    let header = usize::try_from(number::<4>(bytes, at + 4)?).ok().filter(|n| *n >= ENTRY)?;
    let start = at.checked_add(header)?;
    let end = start.checked_add(size(bytes, at + 8)?)?;
    let entry = Entry {
        kind: u16::try_from(number::<2>(bytes, at)?).ok()?,
        architecture: number::<4>(bytes, at + 28)?,
        payload: bytes.get(start..end)?,
        flags: number::<8>(bytes, at + 40)?,
        packed: usize::try_from(number::<4>(bytes, at + 16)?).ok()?,
        full: size(bytes, at + 56)?,
    };
    Some((entry, end))
}

fn unpacked(entry: &Entry<'_>) -> Result<Vec<u8>, String> {
    let Entry { payload, flags, packed, full, .. } = *entry;
    if flags & (LZ4 | ZSTD) == 0 {
        return Ok(payload.to_vec());
    }
    let part = payload.get(..packed).filter(|p| !p.is_empty()).ok_or("a wrong size when compressed")?;
    if full > IMAGE {
        return Err(format!("{full} bytes when unpacked, more than {IMAGE}"));
    }
    if flags & LZ4 != 0 {
        return lz4_flex::block::decompress(part, full).map_err(|e| format!("LZ4: {e}"));
    }
    let mut reader = ruzstd::decoding::StreamingDecoder::new(part).map_err(|e| format!("zstd: {e}"))?;
    let mut out = Vec::new();
    let limit = u64::try_from(full).unwrap_or(u64::MAX);
    reader.by_ref().take(limit).read_to_end(&mut out).map_err(|e| format!("zstd: {e}"))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry((kind, arch): (u16, u32), payload: &[u8], flags: u64, full: u64) -> Vec<u8> {
        let mut out = vec![0; 64];
        let padded = payload.len().next_multiple_of(8);
        out[..2].copy_from_slice(&kind.to_le_bytes());
        out[4..8].copy_from_slice(&64u32.to_le_bytes());
        out[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
        out[16..20].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        out[28..32].copy_from_slice(&arch.to_le_bytes());
        out[40..48].copy_from_slice(&flags.to_le_bytes());
        out[56..64].copy_from_slice(&full.to_le_bytes());
        out.extend(payload);
        out.resize(64 + padded, 0);
        out
    }

    fn container(entries: &[Vec<u8>]) -> Vec<u8> {
        let all = entries.concat();
        let mut out = MAGIC.to_le_bytes().to_vec();
        out.extend([1, 0, 16, 0]);
        out.extend((all.len() as u64).to_le_bytes());
        out.extend(all);
        out
    }

    const TEXT: &[u8] = b".version 8.0\n.target sm_90\n.version 8.0\n.target sm_90\n";

    #[test]
    fn the_text_for_the_device_comes_out_whole() {
        let lz4 = lz4_flex::block::compress(TEXT);
        let zstd = ruzstd::encoding::compress_to_vec(TEXT, ruzstd::encoding::CompressionLevel::Fastest);
        let full = TEXT.len() as u64;
        let all = container(&[
            entry((2, 90), b"\x7fELF", 0x11, 0),
            entry((1, 80), &lz4, 0x2011, full),
            entry((1, 100), &zstd, 0x8011, full),
            entry((1, 75), b".target sm_75", 0x11, 0),
            entry((7, 90), b"other", 0, 0),
        ]);
        for device in [0, 80, 90, 100] {
            let out = unpack(&all, device);
            assert_eq!((out.ptx.as_deref(), out.cubin, out.notes.len()), (Some(TEXT), None, 0), "{device}");
        }
        assert!(unpack(&all, 75).ptx.unwrap().starts_with(b".target sm_75"));
        assert!(unpack(&all, 60).ptx.unwrap().starts_with(b".target sm_75"));
        assert_eq!(length(&all[..16]), Some(all.len()));
        let bare = unpack(&container(&[entry((2, 90), b"\x7fELF", 0x11, 0)]), 90);
        assert!(bare.ptx.is_none() && bare.cubin.is_some());
    }

    #[test]
    fn lies_about_sizes_are_said() {
        let mut long = container(&[entry((1, 90), TEXT, 0x11, 0)]);
        long[16 + 8..16 + 16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(unpack(&long, 90).notes.len(), 1);
        let bomb = container(&[entry((1, 90), &lz4_flex::block::compress(TEXT), 0x2011, 1 << 60)]);
        assert_eq!((unpack(&bomb, 90).ptx, unpack(&bomb, 90).notes.len()), (None, 1));
        let wrong = container(&[entry((1, 90), b"not compressed", 0x8011, 100)]);
        assert_eq!((unpack(&wrong, 90).ptx, unpack(&wrong, 90).notes.len()), (None, 1));
        assert_eq!(unpack(b"", 90).notes.len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), seed in any::<u64>()) {
            unpack(&bytes, 90);
            let start = container(&[entry((1, 90), &bytes, 0x8011 | seed & 0x2000, seed % 1000)]);
            unpack(&start, 90);
            bytes.splice(0..0, start[..16].to_vec());
            unpack(&bytes, 90);
        }
    }
}
