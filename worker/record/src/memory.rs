//! Reads the memory of this process at addresses that may be wrong: the kernel refuses where a copy would fault.

#![expect(unsafe_code, reason = "the system call is C")]

use crate::{IMAGE, MAGIC, WRAPPER, length};
use std::ffi::{c_int, c_ulong, c_void};

#[repr(C)]
struct Part {
    start: *mut c_void,
    bytes: usize,
}

unsafe extern "C" {
    fn process_vm_readv(
        process: c_int,
        to: *const Part,
        parts: c_ulong,
        from: *const Part,
        more: c_ulong,
        flags: c_ulong,
    ) -> isize;
}

const PAGE: usize = 4096;

/// As many of these bytes as can be read.
fn some(address: usize, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes.min(IMAGE)];
    let Ok(own) = c_int::try_from(std::process::id()) else { return Vec::new() };
    let to = Part { start: out.as_mut_ptr().cast(), bytes: out.len() };
    let from = Part { start: address as *mut c_void, bytes: out.len() };
    // SAFETY: `to` is memory of this function; the kernel refuses where `from` is not readable.
    let read = unsafe { process_vm_readv(own, &raw const to, 1, &raw const from, 1, 0) };
    out.truncate(usize::try_from(read).unwrap_or(0));
    out
}

/// These bytes, if all can be read.
pub fn bytes(address: usize, bytes: usize) -> Option<Vec<u8>> {
    let out = some(address, bytes);
    (out.len() == bytes && address != 0).then_some(out)
}

/// The word at this address.
pub fn word(address: usize) -> Option<u64> {
    let read = bytes(address, 8)?;
    Some(u64::from_le_bytes(read.try_into().ok()?))
}

/// The address at this address.
pub fn address(at: usize) -> Option<usize> {
    usize::try_from(word(at)?).ok()
}

/// The four-byte numbers at this address.
pub fn words<const N: usize>(at: usize) -> Option<[u32; N]> {
    let read = bytes(at, 4 * N)?;
    let mut out = [0; N];
    for (to, from) in out.iter_mut().zip(read.chunks_exact(4)) {
        *to = u32::from_le_bytes(from.try_into().ok()?);
    }
    Some(out)
}

/// The text at this address, up to its zero or to the end of what can be read.
pub fn text(address: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while out.len() < IMAGE {
        let at = address + out.len();
        let page = some(at, PAGE - at % PAGE);
        let end = page.iter().position(|b| *b == 0);
        out.extend(&page[..end.unwrap_or(page.len())]);
        if end.is_some() || page.len() < PAGE - at % PAGE {
            break;
        }
    }
    out
}

/// The bytes of a module at this address: a container, what a structure in front of one points to, a cubin, or a text.
pub fn image(at: usize) -> Option<Vec<u8>> {
    let start = bytes(at, 16).unwrap_or_default();
    if start.starts_with(&WRAPPER.to_le_bytes()) {
        let inside = address(at + 8)?;
        return bytes(inside, length(&bytes(inside, 16)?)?);
    }
    if start.starts_with(&MAGIC.to_le_bytes()) {
        return bytes(at, length(&start)?);
    }
    if start.starts_with(b"\x7fELF") {
        return bytes(at, elf(&bytes(at, 64)?, at)?);
    }
    Some(text(at)).filter(|t| !t.is_empty())
}

/// The size of an ELF file of 64 bits that begins with this header: where its tables and its sections end.
fn elf(header: &[u8], at: usize) -> Option<usize> {
    let number = |from: &[u8], at: usize, size: usize| {
        let part = from.get(at..at + size)?;
        usize::try_from(part.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b))).ok()
    };
    let sections = number(header, 40, 8)?;
    let count = number(header, 60, 2)?;
    let mut end = sections.checked_add(count * 64)?;
    end = end.max(number(header, 32, 8)?.checked_add(number(header, 56, 2)? * 56)?);
    let table = bytes(at.checked_add(sections)?, count * 64).unwrap_or_default();
    // Sections of kind 8 have no bytes in the file.
    for section in table.chunks_exact(64).filter(|s| number(s, 4, 4) != Some(8)) {
        end = end.max(number(section, 24, 8)?.checked_add(number(section, 32, 8)?)?);
    }
    (end <= IMAGE).then_some(end)
}
