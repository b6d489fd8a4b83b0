//! Exit codes. They are part of the contract, because scripts rely on them.

/// Explored completely, nothing wrong.
pub const CLEAN: u8 = 0;
/// Wrong usage or bad input.
pub const USAGE: u8 = 2;
/// A finding: race, hang, failed condition, discrepancy.
pub const FINDING: u8 = 10;
/// A limit was hit, or something is not supported.
pub const INCOMPLETE: u8 = 11;
/// A bug in this program.
pub const INTERNAL: u8 = 70;

/// Combines the codes of several results: 70 wins over 2, 2 over 10, 10 over 11, 11 over 0.
pub fn worst(codes: impl IntoIterator<Item = u8>) -> u8 {
    let rank = |code: &u8| [CLEAN, INCOMPLETE, FINDING, USAGE, INTERNAL].iter().position(|c| c == code);
    codes.into_iter().max_by_key(rank).unwrap_or(CLEAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_beats_finding_beats_incomplete() {
        assert_eq!(worst([CLEAN, INCOMPLETE, FINDING, USAGE]), USAGE);
        assert_eq!(worst([CLEAN, INCOMPLETE, FINDING]), FINDING);
        assert_eq!(worst([CLEAN, INCOMPLETE]), INCOMPLETE);
        assert_eq!(worst([]), CLEAN);
    }
}
