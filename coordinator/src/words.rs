//! Numbers in sentences.

use std::fmt::Display;

/// A count with its noun, given in the singular: `1 worker`, `2 workers`, `0 findings`.
pub fn many<N: Copy + Display + TryInto<u64>>(n: N, one: &str) -> String {
    let plural = if n.try_into().ok() == Some(1) { "" } else { "s" };
    format!("{n} {one}{plural}")
}

/// The digest of a campaign, and how many of its items are in it without a result.
pub fn digest_words(digest: impl Display, quarantined: u64) -> String {
    match quarantined {
        0 => digest.to_string(),
        n => format!("{digest} without {}", many(n, "quarantined item")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_says_what_it_lacks() {
        assert_eq!([digest_words("d", 0), digest_words("d", 2)], ["d", "d without 2 quarantined items"]);
    }

    #[test]
    fn one_is_one() {
        assert_eq!(
            [many(0, "worker"), many(1_u8, "worker"), many(2_u64, "worker")].join(", "),
            "0 workers, 1 worker, 2 workers"
        );
    }
}
