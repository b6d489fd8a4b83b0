//! `moire bench families`: measures the cost of one execution, on programs whose number of executions is known.
//!
//! Contract: the numbers of executions, checks and dead ends depend only on the model and the size; the instructions
//! also depend on the build; the seconds depend on the machine. Each family runs in its own process, so that families
//! do not affect each other's peak of memory. Under the default model, a number of executions other than that of the
//! closed form is a finding.

use super::cost::{instructions, memory};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use moire_cat::{Model, Variants};
use moire_console::exit;
use moire_console::input::load_model;
use moire_console::output::OutputFormat;
use moire_explore::reduce::Reductions;
use moire_explore::search::LeafView;
use moire_explore::search::share::explore_shared;
use moire_explore::{Abstain, Limits, Summary, Visitor};
use moire_generate::families::{FAMILIES, Family};
use moire_program::text::{Format, parse};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The model that the closed forms hold for.
const MODEL: &str = "ptx";

#[derive(Debug, clap::Args)]
pub(crate) struct Families {
    /// Only these families (repeatable)
    #[arg(long, value_name = "FAMILY")]
    only: Vec<String>,
    /// Size of every program [default: the size at which published tools are compared]
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// Threads that share each exploration
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Use small sizes: all of them together take a second
    #[arg(long, conflicts_with = "size")]
    quick: bool,
    /// Explore each program again with these reductions: all, or some of threads, reads, writes, atomics
    #[arg(long, value_name = "REDUCTIONS", default_value = "none")]
    reduce: Reductions,
    /// Also count instructions per execution, at small sizes: needs valgrind, takes a minute
    #[arg(long)]
    instructions: bool,
    /// A shipped model, or a file that ends in .cat
    #[arg(long, default_value = MODEL)]
    model: String,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

/// The measures of one family.
struct Row {
    family: &'static Family,
    size: usize,
    summary: Summary,
    /// Checks of the busiest thread.
    busiest: u64,
    /// The sum of the executions' digests, which is the same for any number of threads.
    digest: u64,
    threads: u8,
    seconds: f64,
    /// The peak of memory of the process until then, in MiB.
    peak: Option<u64>,
    /// Instructions per execution, if asked for and if they can be separated from those of the start.
    instructions: Option<u64>,
    /// The summary and the seconds with reductions, if asked for.
    reduced: Option<(Summary, f64)>,
}

/// Adds up the digests of executions.
#[derive(Default)]
struct Digest(u64);

impl Visitor for Digest {
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        self.0 = self.0.wrapping_add(leaf.digest());
        ControlFlow::Continue(())
    }
}

impl Row {
    fn measure(
        family: &'static Family,
        size: usize,
        model: &Model,
        threads: u8,
        on: Reductions,
    ) -> Result<Self> {
        let named = || format!("{}({size})", family.name);
        let program = parse(&family.text(size), Format::Native).with_context(named)?;
        let mut visitors: Vec<Digest> = (0..threads).map(|_| Digest::default()).collect();
        let begin = Instant::now();
        let (summary, each) =
            explore_shared(&program, model, &Limits::default(), &mut visitors).with_context(named)?;
        let seconds = begin.elapsed().as_secs_f64();
        let peak = memory("VmHWM");
        let digest = visitors.iter().fold(0, |all: u64, v| all.wrapping_add(v.0));
        let reduced = (on != Reductions::NONE)
            .then(|| {
                let limits = Limits { reductions: on, ..Limits::default() };
                let mut visitors: Vec<Digest> = (0..threads).map(|_| Digest::default()).collect();
                let begin = Instant::now();
                let (summary, _) = explore_shared(&program, model, &limits, &mut visitors)?;
                Ok((summary, begin.elapsed().as_secs_f64()))
            })
            .transpose()
            .map_err(|abstain: Abstain| anyhow::Error::new(abstain).context(named()))?;
        let busiest = each.iter().map(|s| s.checks).max().unwrap_or(0);
        Ok(Row {
            family,
            size,
            summary,
            busiest,
            digest,
            threads,
            seconds,
            peak,
            instructions: None,
            reduced,
        })
    }

    fn executions(&self) -> u64 {
        self.summary.complete + self.summary.blocked
    }

    fn rate(&self) -> f64 {
        ratio(self.executions(), 1) / self.seconds.max(1e-9)
    }

    /// Whether the closed form does not hold.
    fn wrong(&self) -> bool {
        self.summary.bounded.is_none()
            && (self.summary.complete, self.summary.blocked) != (self.family.executions(self.size), 0)
    }

    fn text(&self) -> String {
        let s = &self.summary;
        format!(
            "{:14} {:>10} {:>10} {:>10} {:>10} {:>8.2} {:>9.3} {:>10.0} {:>9} {:>5} {:016x} {:>6.2}",
            format!("{}({})", self.family.name, self.size),
            self.executions(),
            s.blocked,
            s.checks,
            s.dead_ends,
            ratio(s.checks, self.executions()),
            self.seconds,
            self.rate(),
            self.instructions.map_or_else(|| "-".to_owned(), |n| n.to_string()),
            self.peak.map_or_else(|| "-".to_owned(), |m| m.to_string()),
            self.digest,
            ratio(self.busiest * u64::from(self.threads), s.checks),
        ) + &self.reduced.map_or(String::new(), |(s, seconds)| {
            format!(" {:>10} {:>10} {seconds:>9.3}", s.complete + s.blocked, s.checks)
        })
    }

    fn object(&self) -> Value {
        let s = &self.summary;
        let reduced = self.reduced.map(|(s, seconds)| {
            json!({"complete": s.complete, "blocked": s.blocked, "dead_ends": s.dead_ends, "checks": s.checks,
                "cut_threads": s.cut.threads, "cut_unseen": s.cut.unseen, "seconds": seconds})
        });
        json!({
            "reduced": reduced,
            "family": self.family.name, "size": self.size, "complete": s.complete, "blocked": s.blocked,
            "dead_ends": s.dead_ends, "checks": s.checks, "seconds": self.seconds,
            "instructions": self.instructions, "peak_mib": self.peak,
            "executions_per_second": self.rate(), "digest": format!("{:016x}", self.digest), "busiest": self.busiest, "bounded": s.bounded.map(|b| b.to_string()),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

/// Counts the instructions per execution: the difference between a small size and the least size, which cancels the
/// instructions of the start.
fn each(family: &Family, model: &str) -> Result<Option<u64>> {
    let (least, more) = (family.executions(family.least), family.executions(family.bench));
    if more <= least {
        return Ok(None);
    }
    let count = |size: usize| {
        let size = size.to_string();
        instructions(&["bench", "families", "--only", family.name, "--size", &size, "--model", model])
    };
    Ok(Some(count(family.bench)?.saturating_sub(count(family.least)?) / (more - least)))
}

/// Prints the header of the table.
fn head(on: Reductions) {
    let reduced = if on == Reductions::NONE {
        String::new()
    } else {
        format!(" {:>10} {:>10} {:>9}  with {on}", "executions", "checks", "seconds")
    };
    println!(
        "{:14} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9} {:>10} {:>9} {:>5} {:16} {:>6}{reduced}",
        "family",
        "executions",
        "blocked",
        "checks",
        "dead ends",
        "checks/e",
        "seconds",
        "e/s",
        "instr./e",
        "MiB",
        "digest",
        "skew"
    );
}

/// Measures one family in this process, and returns its row and the exit code.
fn here(args: &Families, family: &'static Family, model: &Model) -> Result<(Row, u8)> {
    let size = args.size.unwrap_or(if args.quick { family.bench } else { family.full }).max(family.least);
    let mut row = Row::measure(family, size, model, args.threads, args.reduce)?;
    if args.instructions {
        row.instructions = each(family, &args.model)?;
    }
    let wrong = args.model == MODEL && row.wrong();
    if wrong {
        let expected = family.executions(size);
        eprintln!("{}({size}): expected {expected} executions and no blocked one", family.name);
    }
    let incomplete = row.summary.bounded.map(|_| exit::INCOMPLETE);
    let code = exit::worst(incomplete.into_iter().chain(wrong.then_some(exit::FINDING)));
    Ok((row, code))
}

/// Measures one family in its own process, and returns its output and the exit code.
fn apart(args: &Families, family: &Family) -> Result<(String, u8)> {
    let format = args.format.to_possible_value().context("a format has a name")?;
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(["bench", "families", "--only", family.name, "--model", &args.model]);
    command.args(["--threads", &args.threads.to_string(), "--reduce", &args.reduce.to_string()]);
    command.args(["--format", format.get_name()]);
    command.args(args.size.map(|n| format!("--size={n}")));
    command.args(args.quick.then_some("--quick")).args(args.instructions.then_some("--instructions"));
    let ran = command.stderr(Stdio::inherit()).output().context("cannot start this program again")?;
    let code = ran.status.code().and_then(|c| u8::try_from(c).ok());
    match code.filter(|c| ![exit::USAGE, exit::INTERNAL].contains(c)) {
        Some(code) => Ok((String::from_utf8(ran.stdout)?, code)),
        None => bail!("`moire bench families --only {}` ended with {}", family.name, ran.status),
    }
}

pub(crate) fn run(args: &Families) -> Result<u8> {
    for name in &args.only {
        if !FAMILIES.iter().any(|f| f.name == name) {
            let known: Vec<&str> = FAMILIES.iter().map(|f| f.name).collect();
            bail!("`{name}` is not a family; there are {}", known.join(", "));
        }
    }
    if args.size.is_some_and(|n| n > 64) {
        bail!("a size is at most 64");
    }
    let model = load_model(&args.model, &Variants::new())?;
    let wanted = |f: &&Family| args.only.is_empty() || args.only.iter().any(|n| n == f.name);
    let chosen: Vec<&Family> = FAMILIES.iter().filter(wanted).collect();
    let text = args.format == OutputFormat::Text;
    if text {
        head(args.reduce);
    }
    let mut codes = Vec::new();
    let mut objects = Vec::new();
    for family in &chosen {
        let (line, object, code) = if let [_] = chosen[..] {
            let (row, code) = here(args, family, &model)?;
            (row.text(), row.object(), code)
        } else {
            let (printed, code) = apart(args, family)?;
            let line = printed.lines().last().unwrap_or_default().to_owned();
            let object = if text {
                Value::Null
            } else {
                serde_json::from_str::<Value>(&printed)?["families"][0].take()
            };
            (line, object, code)
        };
        if text {
            println!("{line}");
        }
        objects.push(object);
        codes.push(code);
    }
    if !text {
        println!("{}", json!({"version": 1, "model": args.model, "families": objects}));
    }
    Ok(exit::worst(codes))
}
