//! Numbers in sentences.

use std::fmt::Display;

/// So many of something, by the name of one: `1 worker`, `2 workers`, `0 discrepancies`.
pub fn many<N: Copy + Display + TryInto<u64>>(n: N, one: &str) -> String {
    match (n.try_into(), one.strip_suffix('y')) {
        (Ok(1), _) => format!("{n} {one}"),
        (_, Some(stem)) => format!("{n} {stem}ies"),
        (_, None) => format!("{n} {one}s"),
    }
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
        assert_eq!(
            [many(1_usize, "discrepancy"), many(3, "discrepancy")].join(", "),
            "1 discrepancy, 3 discrepancies"
        );
    }
}
