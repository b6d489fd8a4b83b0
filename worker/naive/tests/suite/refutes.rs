//! What the enumerator leaves out early: no execution is lost, and a refutation that comes too early is found by comparing
//! with the explorer, as `moire bench selfcheck` does.

use moire_cat::Variants;
use moire_generate::numbers::Draw;
use moire_generate::tensor::{mbarrier, warps};
use moire_generate::{Profile, Stream};
use moire_lab::differential::{Comparison, compare};
use moire_naive::{NaiveLimits, Planted};

/// Drawn programs that are compared, until one differs.
fn differs(planted: Option<Planted>) -> bool {
    let model = moire_models::load("ptx", &Variants::new()).expect("loads");
    let limits = NaiveLimits { candidates: 500, combinations: 5_000, planted, ..NaiveLimits::default() };
    let draw = |seed: u64| match seed % 4 {
        0 => Some(Stream::new(1, Profile::Core).item(seed)),
        1 => Some(Stream::new(1, Profile::Tensor).item(seed)),
        2 => warps(&mut Draw::new(seed)),
        _ => mbarrier(&mut Draw::new(seed)),
    };
    let mut programs = (0..600).filter_map(draw);
    programs.any(|program| matches!(compare(&program, &model, &limits), Comparison::Different(_)))
}

#[test]
fn nothing_is_refuted_too_early() {
    assert!(!differs(None));
}

#[test]
fn each_planted_refutation_is_found() {
    for planted in [Planted::NobodyElse, Planted::Unready, Planted::Stale] {
        assert!(differs(Some(planted)), "{planted:?} is not found");
    }
}
