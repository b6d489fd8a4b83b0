//! The time of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Converts a time to milliseconds.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("64 bits of milliseconds last 500 million years")
}

/// Milliseconds since the Unix epoch, 0 before it.
pub fn unix_ms() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks for the time of day")]
    let now = SystemTime::now();
    millis(now.duration_since(UNIX_EPOCH).unwrap_or_default())
}
