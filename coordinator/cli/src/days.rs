//! Times on the command line, and the life of a finding in words.

use anyhow::{Result, anyhow, bail};
use chrono::NaiveDate;
use moire_coordinator::report::dates;
use moire_corpus::Finding;
use std::fmt::Write;

const DAY_MS: u64 = 24 * 3_600_000;
/// Longest suppression; it can be renewed.
const DAYS_MAX: u64 = 366;

/// The end of a suppression, Unix milliseconds: `2027-01-31` (the start of that day, UTC) or `14d`.
pub(crate) fn until(text: &str, now_ms: u64) -> Result<u64> {
    let end = match text.strip_suffix('d').map(str::parse::<u64>) {
        Some(Ok(days)) => now_ms.saturating_add(days.saturating_mul(DAY_MS)),
        Some(Err(_)) => bail!("`{text}` is no number of days; write 14d, or a day such as 2027-01-31"),
        None => {
            let day: NaiveDate = text
                .parse()
                .map_err(|_| anyhow!("`{text}` is no day; write one such as 2027-01-31, or 14d from now"))?;
            let start = day.and_hms_opt(0, 0, 0).map(|t| t.and_utc().timestamp_millis());
            u64::try_from(start.unwrap_or_default()).unwrap_or_default()
        }
    };
    if end > now_ms.saturating_add(DAYS_MAX * DAY_MS) {
        bail!("a suppression lasts at most {DAYS_MAX} days");
    }
    Ok(end)
}

/// `, suppressed by NAME until DAY: WHY` while it is.
pub(crate) fn suppressed(f: &Finding, now_ms: u64) -> String {
    let said = |s: &moire_corpus::Suppression| {
        format!(", suppressed by {} until {}: {}", s.owner, dates::day(s.until_ms), s.why)
    };
    f.suppression(now_ms).map(said).unwrap_or_default()
}

/// Suppression and last runs, a line each.
pub(crate) fn life(f: &Finding, now_ms: u64) -> String {
    let mut out = String::new();
    if f.suppression(now_ms).is_some() {
        let _ = writeln!(out, "  {}", suppressed(f, now_ms).trim_start_matches(", "));
    }
    if let Some(r) = &f.retest {
        let at = dates::minute(r.at_ms);
        let _ =
            write!(out, "  run again {at}: {} of {} runs showed it", r.seen, r.seen.saturating_add(r.held));
        let _ = match r.silent {
            0 => writeln!(out),
            n => writeln!(out, ", {n} had no answer: {}", r.reason),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppressions_end_on_a_day_or_after_some() {
        let now = 1_785_585_900_000;
        assert_eq!(until("14d", now).unwrap(), now + 14 * DAY_MS);
        assert_eq!(dates::day(until("2027-01-31", now).unwrap()), "2027-01-31");
        for bad in ["", "d", "-1d", "2027-02-31", "tomorrow", "9999-01-01", "99999999999999999999d", "400d"] {
            assert!(until(bad, now).is_err(), "{bad}");
        }
    }
}
