//! `moire bench operate`: the operational engine against the explorer, on drawn tensor-core protocols, on mutants of them, on
//! drawn programs with a free loop, about counting and about warpgroup products, and on both of the first with early questions about phases.
//!
//! Contract: programs and models depend only on seed and number, not on the number of threads or on stops of the run. In turn
//! a program is judged under the letter, under the practice profile and with one switch flipped. A difference is printed with
//! both answers and the program (exit 10). With `--keep`, a stopped run resumes after the last block that it noted.

use crate::kept;
use anyhow::{Result, bail};
use moire_cat::{Model, PROFILE, Variants};
use moire_console::exit;
use moire_console::input::load_model;
use moire_explore::Limits;
use moire_generate::numbers::Draw;
use moire_generate::tensor::{looped, looped_products};
use moire_generate::{Profile, Stream};
use moire_lab::differential::draw_peeks::with_peeks;
use moire_program::ir::Program;
use moire_program::text::print;
use moire_program::validate::is_illegal;
use moire_worker::agreement::{Agreement, MODEL, Tally, compare, drawn_mutant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Programs between two notes of the progress.
const BLOCK: u64 = 256;
/// Mutants of one protocol.
const MUTANTS_EACH: u64 = 4;
/// Distance of the drawn loops of two seeds.
const LOOPED: u64 = 1 << 32;
const SCHEMA: u32 = 4;

#[derive(Debug, clap::Args)]
pub(crate) struct Operate {
    /// Drawn protocols
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    programs: u64,
    /// Mutants of drawn protocols, with one mistake each
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    mutants: u64,
    /// Drawn programs with a free loop, compared with up to four trips
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    loops: u64,
    /// Protocols and mutants in which threads ask early whether a phase is over
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    peeks: u64,
    /// Drawn programs with a free loop and warpgroup products
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    products: u64,
    /// What programs are drawn by
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Most consistency checks of the explorer for one program
    #[arg(long, default_value_t = 40_000, value_name = "N")]
    checks: u64,
    /// Note progress in this file, and resume from it
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Worker threads [default: all processors]
    #[arg(long)]
    workers: Option<usize>,
}

/// The kind of programs compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drawn {
    Protocols,
    Mutants,
    Loops,
    Peeks,
    Products,
}

/// Sums over the programs of one kind.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sums {
    done: u64,
    /// Mutants that the assembler refuses, or protocols without an instruction to change.
    left_out: u64,
    same: u64,
    fewer: u64,
    broken: u64,
    alone: u64,
    undecided: u64,
    abstained: BTreeMap<String, u64>,
    conditions: Vec<String>,
    different: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    schema: u32,
    seed: u64,
    checks: u64,
    protocols: Sums,
    mutants: Sums,
    loops: Sums,
    peeks: Sums,
    products: Sums,
}

pub(crate) fn run(args: &Operate) -> Result<u8> {
    if args.programs + args.mutants + args.loops + args.peeks + args.products == 0 {
        bail!("--programs 0 --mutants 0 --loops 0 --peeks 0 --products 0 compares nothing");
    }
    let models = models()?;
    let _held = args.keep.as_deref().map(kept::hold).transpose()?;
    let mut kept = Kept { schema: SCHEMA, seed: args.seed, checks: args.checks, ..Kept::default() };
    if let Some(path) = &args.keep
        && let Some(earlier) = kept::read::<Kept>(path, "a comparison with the operational engine")?
    {
        if (earlier.schema, earlier.seed, earlier.checks) != (SCHEMA, args.seed, args.checks) {
            bail!("{} belongs to another command: --seed and --checks must be the same", path.display());
        }
        kept = earlier;
    }
    let begin = Instant::now();
    let all = [
        (Drawn::Protocols, args.programs),
        (Drawn::Mutants, args.mutants),
        (Drawn::Loops, args.loops),
        (Drawn::Peeks, args.peeks),
        (Drawn::Products, args.products),
    ];
    for (drawn, count) in all {
        while kept.of(drawn).done < count {
            let first = kept.of(drawn).done;
            let block = BLOCK.min(count - first);
            let sums = compared(args, &models, drawn, first, block);
            kept.of(drawn).add(sums);
            if let Some(path) = &args.keep {
                kept::write(path, &kept)?;
            }
            let seconds = begin.elapsed().as_secs_f64();
            eprintln!("{} of {count} {}, {seconds:.0} s", first + block, drawn.name());
        }
    }
    Ok(tell(&kept))
}

/// What a CTA has issued may outlive it: where it may not, the operational engine often abstains, and nothing is compared.
const OUTLIVES: [(&str, &str); 2] = [("XC", "B"), ("XM", "B")];

/// The letter, the practice profile, and each switch with each other value; all with [`OUTLIVES`].
fn models() -> Result<Vec<Model>> {
    let load = |settings: &[(&str, &str)]| {
        let settings = OUTLIVES.iter().chain(settings).map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        load_model(MODEL, &settings.collect::<Variants>())
    };
    let letter = load(&[])?;
    let mut out = vec![load(&[(PROFILE, "practice")])?];
    for switch in letter.switches() {
        for value in switch.values.iter().filter(|v| letter.variant(&switch.name) != Some(v)) {
            out.push(load(&[(&switch.name, value)])?);
        }
    }
    out.insert(0, letter);
    Ok(out)
}

/// The model of a number: letter, practice and a flipped switch take turns.
fn turn(models: &[Model], number: u64) -> &Model {
    let flips = models.len().saturating_sub(2).max(1) as u64;
    let at = match number % 3 {
        2 => 2 + number / 3 % flips,
        first => first,
    };
    &models[usize::try_from(at).unwrap_or(0).min(models.len() - 1)]
}

impl Drawn {
    fn name(self) -> &'static str {
        match self {
            Drawn::Protocols => "protocols",
            Drawn::Mutants => "mutants",
            Drawn::Loops => "loops",
            Drawn::Peeks => "peeks",
            Drawn::Products => "products",
        }
    }

    /// The program of a number.
    fn program(self, seed: u64, number: u64) -> Option<Program> {
        let stream = Stream::new(seed, Profile::Protocol);
        let mut own = Draw::new(seed.wrapping_mul(LOOPED).wrapping_add(number));
        match self {
            Drawn::Protocols => Some(stream.item(number)),
            Drawn::Mutants => drawn_mutant(&stream.item(number / MUTANTS_EACH), number, seed),
            Drawn::Loops => looped(&mut own),
            Drawn::Products => looped_products(&mut own),
            Drawn::Peeks => {
                let drawn = if number.is_multiple_of(2) { Drawn::Protocols } else { Drawn::Mutants };
                with_peeks(drawn.program(seed, number)?, seed.wrapping_mul(LOOPED).wrapping_add(number))
            }
        }
    }
}

/// Compares programs of one kind, on all workers.
fn compared(args: &Operate, models: &[Model], drawn: Drawn, first: u64, count: u64) -> Sums {
    let workers = args.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let limits = Limits { leaves: 4_000, checks: args.checks, steps: 400_000, ..Limits::default() };
    let next = AtomicU64::new(0);
    let work = || {
        let mut out: BTreeMap<u64, Option<(String, Agreement)>> = BTreeMap::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return out;
            }
            let number = first + at;
            let program = drawn.program(args.seed, number).filter(|p| !is_illegal(p));
            let one = program.map(|program| {
                let agreement = compare(&program, turn(models, number), &limits);
                if matches!(agreement, Agreement::Different { .. }) {
                    println!("{} {number}: {}\n{}", drawn.name(), agreement.both(), print(&program));
                }
                (format!("{} {number}", drawn.name()), agreement)
            });
            out.insert(number, one);
        }
    };
    let found: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
    });
    let all: BTreeMap<u64, Option<(String, Agreement)>> = found.into_iter().flatten().collect();
    let mut tally = Tally::default();
    let left_out = all.values().filter(|one| one.is_none()).count() as u64;
    all.into_values().flatten().for_each(|(name, agreement)| tally.add(&name, agreement));
    Sums { done: count, left_out, ..Sums::from(tally) }
}

impl From<Tally> for Sums {
    fn from(tally: Tally) -> Self {
        let Tally { same, fewer, broken, alone, undecided, abstained, conditions, different } = tally;
        let (done, left_out) = (0, 0);
        Sums { done, left_out, same, fewer, broken, alone, undecided, abstained, conditions, different }
    }
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.done += other.done;
        self.left_out += other.left_out;
        let mut tally = self.tally();
        tally.merge(other.tally());
        let (done, left_out) = (self.done, self.left_out);
        *self = Sums { done, left_out, ..Sums::from(tally) };
    }

    fn tally(&self) -> Tally {
        Tally {
            same: self.same,
            fewer: self.fewer,
            broken: self.broken,
            alone: self.alone,
            undecided: self.undecided,
            abstained: self.abstained.clone(),
            conditions: self.conditions.clone(),
            different: self.different.clone(),
        }
    }
}

impl Kept {
    fn of(&mut self, drawn: Drawn) -> &mut Sums {
        match drawn {
            Drawn::Protocols => &mut self.protocols,
            Drawn::Mutants => &mut self.mutants,
            Drawn::Loops => &mut self.loops,
            Drawn::Peeks => &mut self.peeks,
            Drawn::Products => &mut self.products,
        }
    }
}

/// Prints the table, and returns the exit code.
fn tell(kept: &Kept) -> u8 {
    println!("{}", Tally::head());
    let all = [
        ("protocols", &kept.protocols),
        ("mutants", &kept.mutants),
        ("loops", &kept.loops),
        ("peeks", &kept.peeks),
        ("products", &kept.products),
    ];
    for (name, sums) in all {
        println!("{}", sums.tally().row(name));
    }
    for (name, sums) in all {
        if sums.left_out > 0 {
            println!("{:8} {name} left out: refused by the assembler, or nothing to change", sums.left_out);
        }
        sums.abstained.iter().for_each(|(why, count)| println!("{count:8} {name} abstained: {why}"));
        sums.conditions.iter().for_each(|line| println!("a condition alone: {line}"));
        sums.different.iter().for_each(|line| println!("different: {line}"));
    }
    let different = all.iter().any(|(_, sums)| !sums.different.is_empty());
    if different { exit::FINDING } else { exit::CLEAN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Operate,
    }

    #[test]
    fn sums_depend_on_neither_blocks_nor_workers() {
        let args = |line: &str| Line::parse_from(line.split(' ')).args;
        let models = models().expect("shipped models load");
        let (one, two) = (args("moire --workers 1"), args("moire --workers 2"));
        for drawn in [Drawn::Protocols, Drawn::Mutants, Drawn::Loops, Drawn::Peeks, Drawn::Products] {
            let whole = compared(&one, &models, drawn, 0, 6);
            let mut parts = compared(&two, &models, drawn, 0, 3);
            parts.add(compared(&two, &models, drawn, 3, 3));
            assert_eq!(whole, parts);
            assert_eq!(whole.different, [""; 0]);
            assert!(whole.same > 1, "{whole:?}");
        }
    }

    #[test]
    fn letter_practice_and_each_switch_take_turns() {
        let models = models().expect("shipped models load");
        let practice = |m: &Model| m.variant("TQ5") == Some("B") && m.variant("TQ33") == Some("B");
        assert!(!practice(turn(&models, 0)) && practice(turn(&models, 1)));
        let flipped: std::collections::BTreeSet<_> =
            (0..3_000).map(|n| turn(&models, 3 * n + 2).variants().clone()).collect();
        assert_eq!(flipped.len(), models.len() - 2);
    }
}
