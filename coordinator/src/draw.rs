//! The parts of the work that a second source does again. The coordinator draws them from a secret of its process.
//!
//! Contract: a worker cannot tell whether its answer will be compared with that of another source. A share of `s` of all
//! answers is drawn; so a worker, or a machine with bad memory, that answers `k` of them wrongly is noticed with chance
//! `1 - (1 - s)^k`: at the default share of 2 % with 87 % after 100 wrong answers, and with 99 % after 228.

use std::hash::{BuildHasher as _, RandomState};

/// Draws with a secret.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    secret: u64,
    per_mille: u32,
}

impl Draw {
    /// Draws `per_mille` of a thousand. The same secret draws the same parts; `None` takes one that nobody knows.
    pub(crate) fn new(per_mille: u32, secret: Option<u64>) -> Self {
        // The keys of a `RandomState` come from the randomness of the system.
        Self { secret: secret.unwrap_or_else(|| RandomState::new().hash_one(0)), per_mille }
    }
    /// Whether anything is drawn.
    pub(crate) fn draws(&self) -> bool {
        self.per_mille > 0
    }
    /// Whether the answer of this name is drawn.
    pub(crate) fn picks(&self, name: &str) -> bool {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.secret.to_le_bytes());
        hasher.update(name.as_bytes());
        let bytes = hasher.finalize();
        let number = bytes.as_bytes()[..8].iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        number % 1000 < u64::from(self.per_mille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_drawn_as_asked_for_and_others_with_another_secret() {
        let picked = |draw: Draw| (0..10_000).filter(|n| draw.picks(&n.to_string())).collect::<Vec<_>>();
        for share in [0, 20, 500, 1000] {
            let some = picked(Draw::new(share, Some(7)));
            let wanted = share as usize * 10;
            assert!(some.len().abs_diff(wanted) <= wanted / 5, "{share}: {}", some.len());
            assert_eq!(some, picked(Draw::new(share, Some(7))));
        }
        assert_ne!(picked(Draw::new(20, Some(7))), picked(Draw::new(20, Some(8))));
        assert_ne!(picked(Draw::new(20, None)), picked(Draw::new(20, None)));
    }
}
