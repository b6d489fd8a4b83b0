//! Numbers in sentences, and texts in pages.

use std::fmt::Display;

/// A count with its noun, given in the singular: `1 worker`, `2 workers`, `0 findings`, `264,797 executions`.
pub fn many<N: Copy + Display + TryInto<u64>>(n: N, one: &str) -> String {
    let plural = if n.try_into().ok() == Some(1) { "" } else { "s" };
    format!("{} {one}{plural}", grouped(n))
}

/// A whole number as people read it: `264,797`.
pub fn grouped(n: impl Display) -> String {
    let digits = n.to_string();
    let place = |(at, digit): (usize, char)| {
        let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
        comma.then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(place).collect()
}

/// Escapes text for HTML, inside and outside of attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one() {
        assert_eq!(
            [many(0, "worker"), many(1_u8, "worker"), many(2_u64, "worker")].join(", "),
            "0 workers, 1 worker, 2 workers"
        );
        let all = [0_u64, 999, 1_000, 264_797, 1_000_000].map(grouped);
        assert_eq!(all.join(" "), "0 999 1,000 264,797 1,000,000");
    }
}
