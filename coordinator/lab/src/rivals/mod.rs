//! `moire bench rivals`: other checkers of kernels beside this one, each on what it can read.
//!
//! Contract: a rival runs where it is installed, and a line says what is missing. SentryWard judges the launch that
//! `moire check` chose, with the same values of parameters. It is told of no tensor map, because a module does not say what
//! its maps are. TIRx Harness reads kernels of its own language; the other two get the modules that these are compiled to.
//! Seconds are processor time of whole processes. What is expected of a file stands in an `EXPECT.tsv` above it, or in its
//! name; the kernels of `tirx-kernels` are taken to be right.

mod expected;
mod sentryward;
mod tirx;

use crate::cost;
use crate::mutants::below;
use crate::process::Process;
use anyhow::{Context, Result};
use moire_console::exit;
use moire_console::time::duration;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The names of the tools, in the order of the columns.
const TOOLS: [&str; 3] = ["Moiré", "SentryWard", "TIRx Harness"];

#[derive(Debug, clap::Args)]
pub(crate) struct Rivals {
    /// PTX modules, or folders of them; what is not there is left out
    #[arg(
        value_name = "PATH",
        default_values = ["corpus/ptx/newest", "../shared/kernels", "../shared/pairs"]
    )]
    paths: Vec<PathBuf>,
    /// The program `sentryward` of an installed SentryWard
    #[arg(long, value_name = "FILE", default_value = "sentryward")]
    sentryward: PathBuf,
    /// A Python in which `tirx-harness` and `tirx-kernels` are installed: their kernels are judged, too
    #[arg(long, value_name = "FILE")]
    tirx: Option<PathBuf>,
    /// Only so many kernels of tirx-kernels
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true, value_name = "N")]
    kernels: usize,
    /// Time for one kernel and one tool
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = duration)]
    budget: Duration,
    /// Keep what is made of tirx-kernels in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// What a tool says of a kernel.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Clean,
    Wrong(String),
    Open(String),
}

/// What a tool says, and the processor time that it took.
struct Told {
    said: Said,
    seconds: f64,
}

/// A kernel: whether it is right, if that is known, and what each tool says that could be asked.
struct Row {
    name: String,
    right: Option<bool>,
    told: [Option<Told>; 3],
}

/// How an answer fits what is expected.
#[derive(Clone, Copy, PartialEq)]
enum Fit {
    Right,
    Alarm,
    Missed,
    Open,
}

impl Row {
    fn fit(&self, tool: usize) -> Option<Fit> {
        Some(match (&self.told[tool].as_ref()?.said, self.right?) {
            (Said::Open(_), _) => Fit::Open,
            (Said::Clean, true) | (Said::Wrong(_), false) => Fit::Right,
            (Said::Wrong(_), true) => Fit::Alarm,
            (Said::Clean, false) => Fit::Missed,
        })
    }

    fn print(&self) {
        let expected = match self.right {
            Some(true) => "right",
            Some(false) => "mistake",
            None => "open",
        };
        let told = self.told.iter().map(|told| match told {
            None => " | | ".to_owned(),
            Some(Told { said, seconds }) => format!(" | {} | {seconds:.2}", word(said)),
        });
        println!("| {} | {expected}{} |", self.name, told.collect::<String>());
    }
}

fn word(said: &Said) -> String {
    match said {
        Said::Clean => "clean".to_owned(),
        Said::Wrong(what) => what.clone(),
        Said::Open(why) => format!("({})", why.chars().take(60).collect::<String>().replace('|', "/")),
    }
}

/// Runs a command for this long: its exit code and lines, if it ended, and its processor time.
fn timed(command: Command, budget: Duration) -> Result<(Option<(u8, Vec<String>)>, f64)> {
    let before = cost::processor_time()?.1;
    let mut process = Process::run(command)?;
    let ended = if process.over(Instant::now() + budget)? {
        let ended = process.wait()?;
        let code = ended.status.code().and_then(|code| u8::try_from(code).ok());
        Some((code.unwrap_or(exit::INTERNAL), ended.out))
    } else {
        drop(process.kill()?);
        None
    };
    Ok((ended, cost::processor_time()?.1 - before))
}

/// What `moire check FILE` says, and the first launch that it is about.
fn moire(path: &Path, budget: Duration) -> Result<(Told, Value)> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command
        .args(["check", "--format", "json", "--explain-time", "0s", "--jobs", "1"].map(OsStr::new))
        .arg(path);
    let (ended, seconds) = timed(command, budget)?;
    let Some((code, out)) = ended else {
        return Ok((Told { said: Said::Open("no answer in time".into()), seconds }, Value::Null));
    };
    let told: Vec<Value> = out.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let words = told.iter().filter_map(|t| t["verdicts"].as_array()).flatten().filter_map(Value::as_str);
    let words = words.collect::<Vec<_>>().join(", ");
    let said = match code {
        exit::CLEAN => Said::Clean,
        exit::FINDING => Said::Wrong(words),
        exit::INCOMPLETE => Said::Open(words),
        _ => Said::Open("the module is refused".into()),
    };
    Ok((Told { said, seconds }, told.first().map_or(Value::Null, |t| t["launch"].clone())))
}

fn row(name: String, right: Option<bool>, path: &Path, args: &Rivals, sentry: bool) -> Result<Row> {
    let (own, launch) = moire(path, args.budget)?;
    let other = if sentry { sentryward::ask(&args.sentryward, path, &launch, args.budget)? } else { None };
    Ok(Row { name, right, told: [Some(own), other, None] })
}

/// Of each tool: how often its answers fit, and the median of its seconds.
fn summary(rows: &[Row]) {
    for (tool, name) in TOOLS.iter().enumerate() {
        let count = |fit: Fit| rows.iter().filter(|r| r.fit(tool) == Some(fit)).count();
        let mut took: Vec<f64> =
            rows.iter().filter_map(|r| r.told[tool].as_ref()).map(|t| t.seconds).collect();
        if took.is_empty() {
            continue;
        }
        took.sort_by(f64::total_cmp);
        println!(
            "{name}: {} right, {} wrong alarms, {} mistakes called clean, {} open; {:.2} s (median), {:.2} s (most)",
            count(Fit::Right),
            count(Fit::Alarm),
            count(Fit::Missed),
            count(Fit::Open),
            took[took.len() / 2],
            took[took.len() - 1]
        );
    }
}

/// What a rival finds and we do not, and what it decides and we leave open.
fn ahead(rows: &[Row]) {
    for row in rows {
        let Some(own) = &row.told[0] else { continue };
        for (tool, told) in row.told.iter().enumerate().skip(1) {
            let Some(told) = told else { continue };
            let finds = matches!(told.said, Said::Wrong(_)) && own.said == Said::Clean;
            let decides = !matches!(told.said, Said::Open(_)) && matches!(own.said, Said::Open(_));
            if finds || decides {
                let what = if finds { "finds alone" } else { "decides alone" };
                println!("{} {what}: {}: {}", TOOLS[tool], row.name, word(&told.said));
            }
        }
    }
}

pub(crate) fn run(args: &Rivals) -> Result<u8> {
    let sentry = sentryward::version(&args.sentryward);
    match &sentry {
        Some(version) => println!("SentryWard {version}"),
        None => println!("SentryWard is left out: no program `{}`", args.sentryward.display()),
    }
    println!("\n| kernel | expected | {} | s |", TOOLS.join(" | s | "));
    println!("|---|---|---|---:|---|---:|---|---:|");
    let mut rows = Vec::new();
    for folder in args.paths.iter().filter(|path| path.exists()) {
        for path in below(folder, "ptx")? {
            let name = path.with_extension("").display().to_string();
            rows.push(row(name, expected::of(&path), &path, args, sentry.is_some())?);
            rows.last().into_iter().for_each(Row::print);
        }
    }
    match &args.tirx {
        Some(python) => tirx::rows(python, args, sentry.is_some(), &mut rows)?,
        None => println!("TIRx Harness is left out: --tirx names no Python"),
    }
    println!();
    summary(&rows);
    ahead(&rows);
    let bad = |row: &Row| matches!(row.fit(0), Some(Fit::Alarm | Fit::Missed));
    Ok(if rows.iter().any(bad) { exit::FINDING } else { exit::CLEAN })
}
