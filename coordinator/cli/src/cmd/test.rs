//! `moire test`: compares the verdict of every program of a folder with its expectation, if it has one.
//!
//! A folder has one of two layouts:
//!
//! - An outside suite: `expected.csv` with file, model, property, expected. Rows of `debated.csv` never fail the run.
//! - Our own: a program has a line `// expect: ANSWER` for each model, or has a file `NAME.expected` beside it with such answers:
//!   model, executions, blocked, verdicts. The model may carry settings of its switches, as in `ptx:Q6=B`.

use crate::cases::{self, Case, End};
use anyhow::{Context, Result, bail};
use clap::Args;
use moire_cat::{LETTER, Model};
use moire_console::exit;
use moire_console::input::{ModelSpec, read_file};
use moire_console::output::Format;
use moire_console::suite::Row;
use moire_explore::Limits;
use moire_explore::judge::{About, Judgement, Questions, judge};
use moire_program::text::expectations;
use moire_tile_ir::text as tile;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Folder with expected.csv, or with programs that say `// expect: ANSWER` or have NAME.expected beside them
    pub(crate) dir: PathBuf,
    /// Only the answers under this profile; letter: those without a profile
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Also run the rows of debated.csv; they never fail the run
    #[arg(long)]
    pub(crate) debated: bool,
    /// Also judge the rows of the newest published version under this model
    #[arg(long, value_name = "MODEL")]
    pub(crate) also: Vec<String>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

/// The property of rows that state the verdict of a Tile IR verifier.
const VERIFY: &str = "verify";

struct Tally {
    format: Format,
    passed: usize,
    failed: usize,
    skipped: usize,
    cases: Vec<Case>,
    models: BTreeMap<String, Model>,
    judged: BTreeMap<(String, String, About), Judgement>,
}

pub(crate) fn run(args: &Test) -> Result<u8> {
    let dir = &args.dir;
    if !dir.is_dir() {
        bail!("{} is not a folder", dir.display());
    }
    let mut tally = Tally::new(args.format);
    if dir.join("expected.csv").is_file() {
        suite(args, &mut tally)?;
    } else {
        own(dir, args.profile.as_deref(), &mut tally)?;
    }
    match args.format {
        Format::Text => {
            println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped)
        }
        format => cases::print(format, "test", &tally.cases)?,
    }
    if tally.passed + tally.failed == 0 {
        bail!(
            "{} holds no program with an expectation (expected.csv, lines `// expect: ANSWER`, or NAME.expected beside NAME.litmus)",
            dir.display()
        );
    }
    Ok(if tally.failed > 0 { exit::FINDING } else { exit::CLEAN })
}

fn suite(args: &Test, tally: &mut Tally) -> Result<()> {
    for row in Row::all(&args.dir)? {
        let Row { file, property, expected, disputed, .. } = &row;
        if property == VERIFY {
            tally.verify(&args.dir, &row)?;
            continue;
        }
        let Some(name) = row.model.filter(|_| !disputed || args.debated) else {
            tally.skip(
                format!("{file} {property}"),
                "its row is disputed, or no model of ours is asked about it".to_owned(),
            );
            continue;
        };
        let newest = name == "ptx-7.5";
        for name in std::iter::once(name.to_owned()).chain(args.also.iter().filter(|_| newest).cloned()) {
            let got = row.answer(tally.judge(&args.dir, &row, &name)?);
            let what = format!("{file} {property} under {name}");
            match (got == *expected, *disputed) {
                (true, _) => tally.pass(what),
                (false, true) => {
                    eprintln!("disputed {what}: published {expected}, here {got}");
                    tally.skip(what, format!("disputed: published {expected}, here {got}"));
                }
                (false, false) => {
                    let says = format!("expected {expected}, got {got}");
                    tally.fail(&format!("{what}: {says}"), what.clone(), says);
                }
            }
        }
    }
    Ok(())
}

impl Tally {
    fn new(format: Format) -> Self {
        let (models, judged) = (BTreeMap::new(), BTreeMap::new());
        Tally { format, passed: 0, failed: 0, skipped: 0, cases: Vec::new(), models, judged }
    }

    fn pass(&mut self, name: String) {
        self.passed += 1;
        self.cases.push(Case { name, end: End::Passed, says: String::new() });
    }

    fn skip(&mut self, name: String, says: String) {
        self.skipped += 1;
        self.cases.push(Case { name, end: End::Open, says });
    }

    /// `line` is what people are told.
    fn fail(&mut self, line: &str, name: String, says: String) {
        self.failed += 1;
        if self.format.is_text() {
            println!("FAILED {line}");
        }
        self.cases.push(Case { name, end: End::Failed, says });
    }

    /// A model by name, or with settings of its switches: `ptx:Q6=B,Q1=B`.
    fn model(&mut self, name: &str) -> Result<&Model> {
        if !self.models.contains_key(name) {
            self.models.insert(name.to_owned(), name.parse::<ModelSpec>()?.load()?);
        }
        Ok(&self.models[name])
    }

    /// Compares our verifier of Tile IR with the verdict of the row: ACCEPT, or REJECT with a message. Messages are not
    /// compared.
    fn verify(&mut self, dir: &Path, row: &Row) -> Result<()> {
        let bytes = read_file(&dir.join(&row.file))?.bytes;
        let accepted = moire_program::text::decode(&bytes)
            .and_then(tile::parse)
            .is_ok_and(|module| moire_tile_ir::verify(&module).is_empty());
        let got = if accepted { "ACCEPT" } else { "REJECT" };
        if row.expected.trim_start_matches('"').starts_with(got) {
            self.pass(row.file.clone());
        } else {
            let says = format!("expected {}, got {got}", row.expected);
            self.fail(&format!("{}: {says}", row.file), row.file.clone(), says);
        }
        Ok(())
    }

    fn judge(&mut self, dir: &Path, row: &Row, model: &str) -> Result<&Judgement> {
        let key = (row.file.clone(), model.to_owned(), row.about());
        if !self.judged.contains_key(&key) {
            let source = read_file(&dir.join(&row.file))?.program()?;
            let questions = Questions { witnesses: false, about: row.about() };
            let judgement = judge(&source.program, self.model(model)?, &Limits::default(), questions);
            self.judged.insert(key.clone(), judgement);
        }
        Ok(&self.judged[&key])
    }
}

/// All files below `dir`, sorted.
fn walk(dir: &Path, out: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir)?.map(|e| e.map(|e| e.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() { walk(&path, out)? } else { out.push(path) }
    }
    Ok(())
}

/// Whether a line such as `ptx:profile=practice` belongs to the requested profile.
fn wanted(model: &str, profile: Option<&str>) -> bool {
    let settings = model.split_once(':').map_or("", |m| m.1);
    let own = settings.split(',').find_map(|s| s.strip_prefix("profile="));
    profile.is_none_or(|p| own.unwrap_or(LETTER) == p)
}

fn own(dir: &Path, profile: Option<&str>, tally: &mut Tally) -> Result<()> {
    let mut files = Vec::new();
    walk(dir, &mut files)?;
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "litmus" || e == "test")) {
        let read = read_file(file)?;
        let answers = answers(file, &read.bytes)?;
        if answers.is_empty() {
            tally.skip(file.display().to_string(), "it says nothing of what is expected".to_owned());
            continue;
        }
        let source = read.program()?;
        for line in &answers {
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some(model) = words.first().filter(|m| wanted(m, profile)) else { continue };
            let questions = Questions { witnesses: false, about: About::All };
            let judgement = judge(&source.program, tally.model(model)?, &Limits::default(), questions);
            let got = own_line(model, &judgement);
            if got.split_whitespace().eq(words.iter().copied()) {
                tally.pass(format!("{} under {model}", file.display()));
            } else {
                let (name, expected) = (file.display(), words.join(" "));
                let line = format!("{name}\n  expected {expected}\n  got      {got}");
                tally.fail(&line, format!("{name} under {model}"), format!("expected {expected}, got {got}"));
            }
        }
    }
    Ok(())
}

/// The answers that a program expects: those beside it, or its own.
fn answers(file: &Path, bytes: &[u8]) -> Result<Vec<String>> {
    let beside = file.with_extension("expected");
    if !beside.is_file() {
        let text = String::from_utf8_lossy(bytes);
        return Ok(expectations(&text).map(str::to_owned).collect());
    }
    let text = moire_console::bounded::read_to_string(&beside)
        .with_context(|| format!("cannot read {}", beside.display()))?;
    let lines = text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with("model"));
    Ok(lines.map(str::to_owned).collect())
}

/// One answer: model, executions, blocked, verdicts.
pub(crate) fn own_line(model: &str, judgement: &Judgement) -> String {
    let verdicts: BTreeSet<&str> = judgement.verdicts.iter().map(|v| v.word()).collect();
    let verdicts: Vec<&str> = verdicts.into_iter().collect();
    format!("{model} {} {} {}", judgement.summary.complete, judgement.summary.blocked, verdicts.join(","))
}
