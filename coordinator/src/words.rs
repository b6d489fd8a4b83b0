//! Numbers in sentences.

use std::fmt::Display;

/// A count with its noun, given in the singular: `1 worker`, `2 workers`, `0 findings`.
pub fn many<N: Copy + Display + TryInto<u64>>(n: N, one: &str) -> String {
    let plural = if n.try_into().ok() == Some(1) { "" } else { "s" };
    format!("{n} {one}{plural}")
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
    }
}
