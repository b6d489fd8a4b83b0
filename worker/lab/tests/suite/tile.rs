//! Tile blocks under the Tile IR model: both engines on drawn programs, under the default and under random settings of
//! all switches.
//!
//! `MOIRE_SELF_CHECK=N` compares N programs for each setting, from seed `MOIRE_SELF_CHECK_SEED`, instead of a sample.

use moire_cat::{Model, Variants};
use moire_generate::blocks::blocks;
use moire_generate::numbers::Draw;
use moire_lab::differential::campaign::{Campaign, Totals, random_settings};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn model(variants: &Variants) -> Model {
    moire_models::load("tile-ir", variants).unwrap_or_else(|e| panic!("{e}"))
}

fn report(what: &str, totals: &Totals) {
    eprintln!(
        "{what}: {} programs, {} comparisons, {} executions, {} candidates, skipped {:?}",
        totals.programs, totals.comparisons, totals.leaves, totals.candidates, totals.skipped
    );
    for f in &totals.failures {
        let text = moire_program::text::print(&f.program);
        eprintln!("seed {}: {}\n{:#?}\n{text}", f.seed, f.difference.kind(), f.difference);
    }
}

fn agree(models: &[Model], first_seed: u64, count: u64) -> Totals {
    let source = |seed| Some(blocks(&mut Draw::new(seed)));
    let campaign = Campaign { models, first_seed, count, source: &source, ..Campaign::default() };
    let totals = campaign.run(&|_| {});
    let setting = |m: &Model| m.variants().iter().map(|(k, v)| format!("{k}={v} ")).collect::<String>();
    let what: String = models.iter().map(setting).collect();
    if !totals.failures.is_empty() || number("MOIRE_SELF_CHECK").is_some() {
        report(&what, &totals);
    }
    assert!(totals.failures.is_empty(), "the engines differ under {what}");
    totals
}

#[test]
fn engines_agree() {
    let first = number("MOIRE_SELF_CHECK_SEED").unwrap_or(1);
    let count = number("MOIRE_SELF_CHECK").unwrap_or(400);
    let totals = agree(&[model(&Variants::new())], first, count);
    assert!(totals.comparisons * 10 >= count * 9, "{:?}", totals.skipped);
}

#[test]
fn engines_agree_under_switches() {
    let plain = model(&Variants::new());
    let count = number("MOIRE_SELF_CHECK").unwrap_or(400).div_ceil(16);
    let seed = number("MOIRE_SELF_CHECK_SEED").unwrap_or(1);
    for (round, variants) in (0..).zip(random_settings(&plain, seed, 16)) {
        agree(&[model(&variants)], seed + 1_000_000 * (round + 1), count);
    }
}
