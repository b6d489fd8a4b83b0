//! `moire bench tell`: whether drawn programs can tell anything. A program that has the same answer without its orders and fences
//! notices no compiler and no model that loses one.
//!
//! Contract: the *share* of a stream is of the programs that have an answer. Of `source` a program tells if what the published mapping
//! makes of it breaks a rule of the compiler oracles once every order and fence is lost; of `core` if its verdict or its final
//! states under `ptx` change once every order, fence and barrier is gone. The second number loses one at a time.
//!
//! The *table* plants weakenings: in the models, in the published mapping, in the reference lowering of Tile IR, in the explorer.
//! It counts the programs of a stream until one of them tells the weakened from the right, and prints the median over seeds.
//! One that is found with fewer than half of the seeds has no median. A planting that is harmless must never be found; one that is
//! not, and is never found, or a harmless one that is, is a finding (exit 10). The tables depend on the arguments alone.

mod planted;
mod seen;
mod share;
mod until;

use anyhow::Result;
use moire_console::exit;
use planted::{Planting, all};
use seen::Models;

#[derive(Debug, clap::Args)]
pub(crate) struct Tell {
    /// Programs of each stream of which the share is taken
    #[arg(long, default_value_t = 400, value_name = "N")]
    programs: u64,
    /// Seeds for the medians; 0: no table
    #[arg(long, default_value_t = 5, value_name = "N")]
    seeds: u64,
    /// Most programs until a planted weakening is found
    #[arg(long, default_value_t = 500, value_name = "N")]
    until: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plant only what has this word in its name
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
}

pub(crate) fn run(args: &Tell) -> Result<u8> {
    let models = Models::load()?;
    if args.programs > 0 {
        share::print(&models, args.seed, args.programs);
    }
    if args.seeds == 0 {
        return Ok(exit::CLEAN);
    }
    let mut planted = all()?;
    planted.retain(|p| args.only.as_ref().is_none_or(|word| p.name.contains(word.as_str())));
    let firsts = until::firsts(&models, &planted, args.seed..args.seed + args.seeds, args.until);
    Ok(table(&planted, &firsts))
}

/// Prints the table, and returns the exit code. `firsts` holds, of each planting, the programs until it was found, by seed.
fn table(planted: &[Planting], firsts: &[Vec<Option<u64>>]) -> u8 {
    println!("\n| planted | in | median programs | seeds that find it |\n|---|---|---|---|");
    let mut wrong = 0;
    let mut medians = Vec::new();
    for (planting, firsts) in planted.iter().zip(firsts) {
        let found: Vec<u64> = firsts.iter().flatten().copied().collect();
        let median = median(firsts);
        wrong += usize::from(found.is_empty() != planting.harmless);
        medians.extend((!planting.harmless).then_some(median));
        let words =
            median.map_or_else(|| if found.is_empty() { "never" } else { "-" }.to_owned(), |n| n.to_string());
        let note = if planting.harmless { " (harmless)" } else { "" };
        println!(
            "| {}{note} | {} | {words} | {} of {} |",
            planting.name,
            planting.place(),
            found.len(),
            firsts.len()
        );
    }
    let middle = self::median(&medians).map_or_else(|| "none".to_owned(), |n| n.to_string());
    let known = medians.iter().flatten().count();
    println!(
        "\n{} planted and not harmless, {known} with a median; the middle of all is {middle}; {wrong} not as they should be",
        medians.len()
    );
    if wrong == 0 { exit::CLEAN } else { exit::FINDING }
}

/// The median; none if that seed has found nothing.
fn median(firsts: &[Option<u64>]) -> Option<u64> {
    let mut all: Vec<u64> = firsts.iter().map(|n| n.unwrap_or(u64::MAX)).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().filter(|n| *n < u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_needs_half_of_the_seeds() {
        assert_eq!(median(&[Some(4), Some(2), Some(9)]), Some(4));
        assert_eq!(median(&[Some(4), None, Some(9)]), Some(9));
        assert_eq!(median(&[Some(4), None, None]), None);
    }
}
