//! Files that users name, read up to a limit on their size.
//!
//! Contract: nothing behind the limit is read, so a device without end costs no more than the limit.

use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Default limit on the size of an input, in bytes.
pub const DEFAULT_MAX_INPUT: u64 = 64 << 20;

static MAX_INPUT: AtomicU64 = AtomicU64::new(DEFAULT_MAX_INPUT);

/// Sets the limit on the size of an input, in bytes.
pub fn set_max_input(bytes: u64) {
    MAX_INPUT.store(bytes, Ordering::Relaxed);
}

/// Reads a file.
///
/// # Errors
/// It cannot be read, or has more bytes than [`set_max_input`] allows.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let max = MAX_INPUT.load(Ordering::Relaxed);
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let why = format!("it has more than {} (hint: --max-input allows more)", size_text(max));
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a file that holds UTF-8.
///
/// # Errors
/// See [`read`]; or it holds something else.
pub fn read_to_string(path: impl AsRef<Path>) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|e| Error::new(ErrorKind::InvalidData, e))
}

/// Reads a size: a number of bytes, or a number with `K`, `M`, `G` (also `KiB`, `MiB`, `GiB`) behind it.
///
/// # Errors
/// The words are not a size of at least one byte.
pub fn size(words: &str) -> std::result::Result<u64, String> {
    let end = words.find(|c: char| !c.is_ascii_digit()).unwrap_or(words.len());
    let unit = match words[end..].to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        _ => None,
    };
    let number = words[..end].parse::<u64>().ok().filter(|n| *n > 0);
    unit.zip(number)
        .and_then(|(unit, number)| number.checked_mul(unit))
        .ok_or_else(|| "a size is a number of bytes, such as 4096, 64M or 2G".to_owned())
}

/// A size in words.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        n if n >= 1 << 30 && n.is_multiple_of(1 << 30) => format!("{} GiB", n >> 30),
        n if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n >= 1 << 10 && n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let cases = [("1", 1), ("64M", 64 << 20), ("2GiB", 2 << 30), ("7k", 7 << 10), ("9b", 9)];
        for (words, bytes) in cases {
            assert_eq!(size(words), Ok(bytes), "{words}");
        }
        for words in ["", "0", "M", "1T", "-1", "1.5G", "99999999999999999999", "99999999999G", "1 M"] {
            assert!(size(words).is_err(), "{words}");
        }
        assert_eq!(size_text(64 << 20), "64 MiB");
        assert_eq!(size_text(4097), "4097 bytes");
    }
}
