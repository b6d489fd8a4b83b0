//! How long an exploration goes on once something is wrong.
//!
//! Contract: the clock is the processor time of the thread that explores, so a busy machine changes nothing. It begins with the
//! first finding of one exploration. What is found until then stands.

use moire_explore::judge::Seen;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Of one exploration.
pub(super) struct Patience {
    after: Duration,
    /// When the first finding was seen.
    found: Option<Duration>,
}

impl Patience {
    pub(super) fn new(after: Duration) -> Self {
        Patience { after, found: None }
    }

    /// Whether the exploration went on for long enough after its first finding.
    pub(super) fn ends(&mut self, seen: &Seen<'_>) -> bool {
        (seen.hangs || !seen.findings.is_empty()) && self.ends_at(used())
    }

    fn ends_at(&mut self, now: Duration) -> bool {
        now.saturating_sub(*self.found.get_or_insert(now)) >= self.after
    }
}

/// Processor time of this thread.
pub(super) fn used() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_begins_with_the_first_finding() {
        let mut patience = Patience::new(Duration::from_secs(2));
        let at = [5, 6, 7].map(|n| patience.ends_at(Duration::from_secs(n)));
        assert_eq!(at, [false, false, true]);
    }
}
