//! Times on the command line.

use anyhow::{Result, anyhow, bail};
use std::time::Duration;

/// Reads `90`, `90s`, `10m` or `2h`.
///
/// # Errors
/// The text is none of these, or the time is too long.
pub fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        unit => bail!("`{unit}` is not a unit of time; write 90s, 10m or 2h"),
    };
    let n: u64 = digits.parse().map_err(|_| anyhow!("`{text}` is not a time; write 90s, 10m or 2h"))?;
    let seconds = n.checked_mul(factor).filter(|s| s.checked_mul(1_000).is_some());
    seconds.map(Duration::from_secs).ok_or_else(|| anyhow!("`{text}` is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_coordinator::clock::millis;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("90").unwrap(), duration("90s").unwrap());
        assert_eq!(duration("2m").unwrap().as_secs(), 120);
        assert_eq!(millis(duration("18446744073709551s").unwrap()), 18_446_744_073_709_551_000);
        for bad in ["", "x", "5d", "18446744073709552s", "99999999999999999999s", "9999999999999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
