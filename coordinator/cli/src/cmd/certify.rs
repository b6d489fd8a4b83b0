//! `moire certify atomics`: what compilers make of each atomic operation, and whether they keep its order, scope and atomicity.
//!
//! One row stands for all cells of an operation that a compiler treats alike: the same instructions but for scope and width, and
//! the same answer. A cell that two releases treat differently is listed.

use crate::cases::{self, Case, End};
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use moire_console::exit;
use moire_console::output::Format;
use moire_coordinator::many;
use moire_worker::oracle::certify::{Certified, Kept, cells, certify, compilers};
use moire_worker::oracle::{LLVM, NVCC};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Certify {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Atomic loads, stores, read-modify-writes, compare-exchanges and fences, at each order, scope, width and space
    Atomics(Atomics),
}

#[derive(Debug, Args)]
struct Atomics {
    /// Only operations whose name holds one of these words: `load.acquire`, `.gpu`, `shared`, `.b64`
    words: Vec<String>,
    /// Only these compilers, as `llvm:release=19`, `nvcc` or `libnvvm:target=sm_100` (repeatable) [default: each release that is here]
    #[arg(long = "with", value_name = "COMPILER")]
    with: Vec<String>,
    /// Write the program of each broken row into this folder, and the table as `atomics.json`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How to print; json: one object a cell
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// A cell as it is printed for machines.
#[derive(Debug, Serialize)]
struct Row {
    compiler: String,
    /// `r = load.acquire.gpu x of .global .b32`
    cell: String,
    emitted: Vec<String>,
    /// What would do of what is emitted, if less would.
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<Vec<String>>,
    /// What is more than needed, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<String>,
    answer: &'static str,
    /// What is lost, why it is refused or not known.
    why: String,
    /// Programs that were judged and are right.
    #[serde(skip_serializing_if = "Option::is_none")]
    programs: Option<usize>,
    /// The program that shows what is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
}

impl Row {
    /// The cell as a case: what a compiler refuses is no mistake.
    fn case(&self) -> Case {
        let end = match self.answer {
            LOST => End::Failed,
            OPEN => End::Open,
            _ => End::Passed,
        };
        let says = if self.why.is_empty() {
            self.answer.to_owned()
        } else {
            format!("{}: {}", self.answer, self.why)
        };
        Case { name: format!("{} {}", self.compiler, self.cell), end, says }
    }
}

pub(crate) fn run(args: &Certify) -> Result<u8> {
    let What::Atomics(args) = &args.what;
    let names = compilers(&args.with)?;
    if names.is_empty() {
        bail!("no compiler of source programs is here: {}; or {}", LLVM.how, NVCC.how);
    }
    let cells = cells(&args.words);
    if cells.is_empty() {
        bail!(
            "no operation has one of these words in its name, such as `r = load.acquire.gpu x of .global .b32`"
        );
    }
    let mut rows = Vec::new();
    for name in &names {
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(cells.len() as u64));
        let found =
            certify(name, &cells, &mut |done| bar.iter().for_each(|bar| bar.set_position(done as u64)))?;
        bar.iter().for_each(ProgressBar::finish_and_clear);
        let own: Vec<Row> = found.iter().map(|one| row(name, one)).collect();
        if args.format.is_text() {
            print!("{}", table(name, &found, &own));
        }
        rows.extend(own);
    }
    match args.format {
        Format::Text => {
            print!("{}", changes(&names, &rows));
            println!("{MEANING}");
        }
        Format::Json => {
            for row in &rows {
                println!("{}", serde_json::to_string(row)?);
            }
        }
        Format::Sarif | Format::Junit => {
            cases::print(args.format, "certify", &rows.iter().map(Row::case).collect::<Vec<_>>())?;
        }
    }
    if let Some(folder) = &args.out {
        write(folder, &rows)?;
    }
    let is = |answer: &str| rows.iter().any(|row| row.answer == answer);
    Ok(match (is(LOST), is(OPEN) || !is(SOUND)) {
        (true, _) => exit::FINDING,
        (false, true) => exit::INCOMPLETE,
        (false, false) => exit::CLEAN,
    })
}

/// What is said and left out.
const MEANING: &str = "sound: kept in litmus tests of two or three threads, the source under rc11-scoped, the PTX under ptx with \
                       accesses of 128 bits whole (Q2=A); --format json says in how many; stronger than needed: without that it is still what the \
                       published mapping asks for, and kept in the same programs; mixed-size: code accesses one object with \
                       two widths, whose outcome PTX leaves undefined (8.7.1) and devices may not; objects are aligned to 16 \
                       bytes; other programs, and what ptxas makes of the PTX, are not judged";
const SOUND: &str = "sound";
const LOST: &str = "lost";
const REFUSED: &str = "refused";
const OPEN: &str = "open";
/// The answers as they are counted.
const ANSWERS: [&str; 4] = [SOUND, LOST, REFUSED, OPEN];

fn row(compiler: &str, one: &Certified) -> Row {
    let cell = one.cell.alone().map(|form| form.0).unwrap_or_default();
    let (answer, why, programs, program) = match &one.kept {
        Kept::Sound(n) => (SOUND, String::new(), Some(*n), None),
        Kept::Lost { class, program, .. } => (LOST, class.join(" by "), None, Some(program.clone())),
        Kept::Refused(why) => (REFUSED, why.clone(), None, None),
        Kept::Open(why) => (OPEN, why.clone(), None, None),
    };
    let compiler = compiler.to_owned();
    let least = one.least.as_ref().map(|least| least.iter().flatten().cloned().collect());
    Row {
        compiler,
        cell,
        emitted: one.emitted.clone(),
        least,
        more: more(one),
        answer,
        why,
        programs,
        program,
    }
}

/// What is more than needed, each with what would do.
fn more(one: &Certified) -> Vec<String> {
    let pairs = one.emitted.iter().zip(one.least.iter().flatten());
    let said = |(is, would): (&String, &Option<String>)| match would {
        None => Some(format!("one more {}", pattern(is))),
        Some(would) if would == is => None,
        Some(would) if pattern(would) == pattern(is) => Some(format!("{} of a wider scope", pattern(is))),
        Some(would) => Some(format!("{} where {} would do", pattern(is), pattern(would))),
    };
    pairs.filter_map(said).collect()
}

/// An operation without orders, scope, width and space, and these.
fn parts(cell: &str) -> (String, [String; 4]) {
    let (operation, place) = cell.split_once(" of ").unwrap_or((cell, ""));
    let (space, bits) = place.split_once(' ').unwrap_or((place, ""));
    let word = operation.split_whitespace().find(|word| word.contains('.')).unwrap_or_default();
    let all: Vec<&str> = word.split('.').collect();
    let [name, orders @ .., scope] = all.as_slice() else {
        return (operation.to_owned(), Default::default());
    };
    let bare = |text: &str| text.trim_start_matches('.').to_owned();
    (operation.replacen(word, name, 1), [orders.join("."), (*scope).to_owned(), bare(space), bare(bits)])
}

/// An instruction without its scope, space and width.
fn pattern(word: &str) -> String {
    let spaces = ["global", "shared", "cta", "cluster", "gpu", "sys", "gl", "shared::cta"];
    let width = |part: &str| {
        part.starts_with(['b', 'u', 's']) && part.len() > 1 && part[1..].bytes().all(|b| b.is_ascii_digit())
    };
    let kept: Vec<&str> = word.split('.').filter(|part| !spaces.contains(part) && !width(part)).collect();
    let scoped = word.split('.').any(|part| ["cta", "cluster", "gpu", "sys", "gl"].contains(&part));
    kept.join(".") + if scoped { ".SCOPE" } else { "" }
}

/// The table of one compiler.
fn table(compiler: &str, found: &[Certified], rows: &[Row]) -> String {
    let count = |answer: &str| rows.iter().filter(|row| row.answer == answer).count();
    let counts: Vec<String> = ANSWERS.iter().map(|answer| format!("{} {answer}", count(answer))).collect();
    let strong = rows.iter().filter(|row| !row.more.is_empty()).count();
    let strong = if strong == 0 { String::new() } else { format!("; {strong} stronger than needed") };
    let mut out = format!("{compiler}: {}: {}{strong}\n", many(rows.len(), "operation"), counts.join(", "));
    let mut groups: BTreeMap<(usize, String, String, [String; 2]), Vec<usize>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for (n, (one, row)) in found.iter().zip(rows).enumerate() {
        let operation = parts(&row.cell).0;
        let at = order.iter().position(|o| *o == operation).unwrap_or_else(|| {
            order.push(operation.clone());
            order.len() - 1
        });
        let emitted: Vec<String> = one.emitted.iter().map(|word| pattern(word)).collect();
        let words = [plain(&row.why), row.more.join("; ")];
        groups.entry((at, emitted.join("; "), row.answer.to_owned(), words)).or_default().push(n);
    }
    for ((at, emitted, answer, [why, more]), all) in &groups {
        let said: Vec<String> =
            (0..4).map(|part| listed(all.iter().map(|n| parts(&rows[*n].cell).1[part].clone()))).collect();
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let arrow = if emitted.is_empty() { String::new() } else { format!(" -> {emitted}") };
        let _ = writeln!(out, "  {answer:7} {}{arrow}{why}\n            {}", order[*at], said.join(" | "));
        if !more.is_empty() {
            let _ = writeln!(out, "            stronger than needed: {more}");
        }
    }
    out
}

/// Words of a compiler without what differs from run to run.
fn plain(why: &str) -> String {
    let words = why.split("; In function").next().unwrap_or_default().split_whitespace();
    let same = |word: &&str| !word.starts_with("0x") && !word.starts_with("module.");
    let kept: Vec<&str> = words.filter(same).collect();
    // The width and the space of the operand stand in the row.
    let text = kept.join(" ").split("<(").next().unwrap_or_default().to_owned();
    text.chars().take(100).collect()
}

/// Values without repeats, in the order in which they come.
fn listed(all: impl Iterator<Item = String>) -> String {
    let mut out: Vec<String> = Vec::new();
    for one in all.filter(|one| !one.is_empty()) {
        if !out.contains(&one) {
            out.push(one);
        }
    }
    out.join(" ")
}

/// What another release of the same compiler does otherwise.
fn changes(names: &[String], rows: &[Row]) -> String {
    let mut out = String::new();
    for (new, old) in names.iter().zip(names.iter().skip(1)) {
        let kind = |name: &str| name.split(':').next().map(str::to_owned);
        if kind(new) != kind(old) {
            continue;
        }
        let of = |name: &str| -> BTreeMap<&str, &Row> {
            rows.iter().filter(|row| row.compiler == name).map(|row| (row.cell.as_str(), row)).collect()
        };
        let (before, after) = (of(old), of(new));
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (cell, row) in &after {
            let Some(was) = before.get(cell) else { continue };
            if was.answer != row.answer || was.emitted != row.emitted {
                *counts.entry((was.answer, row.answer)).or_default() += 1;
            }
        }
        let said: Vec<String> = counts.iter().map(|((was, is), n)| format!("{n} {was} -> {is}")).collect();
        let said = if said.is_empty() { "nothing".to_owned() } else { said.join(", ") };
        let _ = writeln!(out, "changed from {old} to {new}: {said}");
    }
    out
}

/// Writes the broken programs and the table.
fn write(folder: &Path, rows: &[Row]) -> Result<()> {
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), text)
            .with_context(|| format!("{} cannot be written", folder.join(name).display()))
    };
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for (n, row) in rows.iter().enumerate() {
        if let Some(program) = &row.program {
            write(
                &format!("{n:05}.src"),
                &format!("// {} by {}: {}\n{program}", row.cell, row.compiler, row.why),
            )?;
        }
    }
    write("atomics.json", &serde_json::to_string_pretty(rows)?)
}
