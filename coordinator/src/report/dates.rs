//! Times as text, in UTC.

use chrono::DateTime;

fn format(ms: u64, form: &str) -> String {
    let time = i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis);
    time.map_or_else(|| "never".to_owned(), |t| t.format(form).to_string())
}

/// Formats the day: `2027-01-31`
pub fn day(ms: u64) -> String {
    format(ms, "%Y-%m-%d")
}

/// Formats the minute: `2027-01-31 04:05 UTC`
pub fn minute(ms: u64) -> String {
    format(ms, "%Y-%m-%d %H:%M UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_days() {
        assert_eq!((day(0), minute(1_785_585_900_000)), ("1970-01-01".into(), "2026-08-01 12:05 UTC".into()));
        assert_eq!(day(u64::MAX), "never");
    }
}
