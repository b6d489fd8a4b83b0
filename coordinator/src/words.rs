//! Digests in sentences, and who has seen what.

use moire_corpus::{Finding, Verified};
use moire_program::words::many;
use moire_proto::needs;
use std::fmt::Display;

/// The digest of a campaign, and how many of its items are in it without a result.
pub fn digest_words(digest: impl Display, quarantined: u64) -> String {
    match quarantined {
        0 => digest.to_string(),
        n => format!("{digest} without {}", many(n, "quarantined item")),
    }
}

/// Who has seen again what a device showed; `None`: the finding is not about a device. Nobody refutes what was seen.
pub fn seen_again(finding: &Finding) -> Option<&'static str> {
    needs::is_sampled(&finding.oracle).then_some(match finding.verified {
        Verified::Other => "seen again by another worker",
        Verified::Itself => "seen again by the worker that saw it first, because no other came",
        Verified::Unverified => "not seen again",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_says_what_it_lacks() {
        assert_eq!([digest_words("d", 0), digest_words("d", 2)], ["d", "d without 2 quarantined items"]);
    }

    #[test]
    fn what_a_device_showed_is_seen_again_and_not_verified() {
        let of = |oracle: &str, verified| {
            seen_again(&Finding { oracle: oracle.into(), verified, ..Finding::default() })
        };
        assert_eq!(of("device", Verified::Other), Some("seen again by another worker"));
        assert_eq!(of("self", Verified::Other), None);
        assert_ne!(of("stand-in", Verified::Itself), of("stand-in", Verified::Other));
    }
}
