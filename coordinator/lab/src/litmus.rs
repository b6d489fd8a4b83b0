//! `moire bench litmus`: the rate at which tests of outside suites run on one core.
//!
//! Contract: a test includes all that `moire test` does for one answer: it parses the text, explores the program and
//! judges it. Texts and models are loaded once, as in a campaign. A wrong answer is a finding.

use anyhow::{Context, Result, bail};
use moire_cat::{Model, Variants};
use moire_console::exit;
use moire_console::input::{load_model, parse_program};
use moire_console::suite::Row;
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, judge};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Litmus {
    /// Folders with expected.csv
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// How often each suite is run; the fastest run counts
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// One question about a program, and the rows that ask it.
struct Test {
    file: String,
    text: Vec<u8>,
    model: &'static str,
    about: About,
    rows: Vec<Row>,
}

pub(crate) fn run(args: &Litmus) -> Result<u8> {
    let mut models = BTreeMap::new();
    let mut code = exit::CLEAN;
    for dir in &args.dirs {
        let tests = tests(dir)?;
        if tests.is_empty() {
            bail!("{} has no row for a shipped model", dir.display());
        }
        for model in tests.iter().map(|t| t.model).collect::<BTreeSet<_>>() {
            models.insert(model, load_model(model, &Variants::new())?);
        }
        let (mut best, mut wrong) = (Duration::MAX, Vec::new());
        for _ in 0..args.rounds {
            let begin = Instant::now();
            wrong = round(&tests, &models)?;
            best = best.min(begin.elapsed());
        }
        let (count, rate) = (tests.len(), f64::from(u32::try_from(tests.len())?) / best.as_secs_f64());
        println!(
            "{}: {count} tests in {:.2} ms, {rate:.0} a second",
            dir.display(),
            1e3 * best.as_secs_f64()
        );
        wrong.iter().for_each(|w| println!("FAILED {w}"));
        if !wrong.is_empty() {
            code = exit::FINDING;
        }
    }
    Ok(code)
}

fn tests(dir: &Path) -> Result<Vec<Test>> {
    let mut tests: BTreeMap<_, Vec<Row>> = BTreeMap::new();
    for row in Row::all(dir)?.into_iter().filter(|r| !r.disputed) {
        if let Some(model) = row.model {
            tests.entry((row.file.clone(), model, row.about())).or_default().push(row);
        }
    }
    let one = |((file, model, about), rows): ((String, &'static str, About), Vec<Row>)| {
        let path = dir.join(&file);
        let text =
            moire_console::bounded::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Test { file, text, model, about, rows })
    };
    tests.into_iter().map(one).collect()
}

/// Runs every test once, and returns the wrong answers.
fn round(tests: &[Test], models: &BTreeMap<&str, Model>) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for test in tests {
        let source = parse_program(&test.file, &test.text)?;
        let questions = Questions { witnesses: false, about: test.about };
        let judgement = judge(&source.program, &models[test.model], &Limits::default(), questions);
        for row in &test.rows {
            let got = row.answer(&judgement);
            if got != row.expected {
                wrong.push(format!("{} {}: expected {}, got {got}", row.file, row.property, row.expected));
            }
        }
    }
    Ok(wrong)
}
