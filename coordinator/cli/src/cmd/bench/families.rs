//! `moire bench families`: what one execution costs, on programs whose number of executions is known.
//!
//! Contract: the numbers of executions, checks and dead ends depend on the model and the size alone; seconds do not.
//! Under the default model a number of executions that is not the one of the closed form is a finding.

use crate::args::OutputFormat;
use crate::exit;
use crate::input::load_model;
use anyhow::{Context, Result, bail};
use moire_cat::{Model, Variants};
use moire_explore::explorer::LeafView;
use moire_explore::families::{FAMILIES, Family};
use moire_explore::{Limits, Summary, explore};
use moire_program::text::{Format, parse};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::Instant;

/// The model the closed forms are about.
const MODEL: &str = "ptx";

#[derive(Debug, clap::Args)]
pub(crate) struct Families {
    /// Only these families (repeatable)
    #[arg(long, value_name = "FAMILY")]
    only: Vec<String>,
    /// Size of every program [default: the size at which published tools are compared]
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// Small sizes: a second for all of them
    #[arg(long, conflicts_with = "size")]
    quick: bool,
    /// A shipped model, or a file that ends in .cat
    #[arg(long, default_value = MODEL)]
    model: String,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

/// What one family gave.
struct Row {
    family: &'static Family,
    size: usize,
    summary: Summary,
    seconds: f64,
}

impl Row {
    fn measure(family: &'static Family, size: usize, model: &Model) -> Result<Self> {
        let named = || format!("{}({size})", family.name);
        let program = parse(&family.text(size), Format::Native).with_context(named)?;
        let mut visitor = |_: &mut dyn LeafView| ControlFlow::Continue(());
        let begin = Instant::now();
        let summary = explore(&program, model, &[], &Limits::default(), &mut visitor).with_context(named)?;
        Ok(Row { family, size, summary, seconds: begin.elapsed().as_secs_f64() })
    }

    fn executions(&self) -> u64 {
        self.summary.complete + self.summary.blocked
    }

    fn rate(&self) -> f64 {
        ratio(self.executions(), 1) / self.seconds.max(1e-9)
    }

    /// The closed form does not hold.
    fn wrong(&self) -> bool {
        self.summary.bounded.is_none()
            && (self.summary.complete, self.summary.blocked) != (self.family.executions(self.size), 0)
    }

    fn text(&self) -> String {
        let s = &self.summary;
        format!(
            "{:14} {:>10} {:>10} {:>10} {:>8.2} {:>9.3} {:>10.0}",
            format!("{}({})", self.family.name, self.size),
            self.executions(),
            s.checks,
            s.dead_ends,
            ratio(s.checks, self.executions()),
            self.seconds,
            self.rate()
        )
    }

    fn object(&self) -> Value {
        let s = &self.summary;
        json!({
            "family": self.family.name, "size": self.size, "complete": s.complete, "blocked": s.blocked,
            "dead_ends": s.dead_ends, "checks": s.checks, "seconds": self.seconds,
            "executions_per_second": self.rate(), "bounded": s.bounded.map(|b| b.to_string()),
        })
    }
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

pub(crate) fn run(args: &Families) -> Result<u8> {
    for name in &args.only {
        if !FAMILIES.iter().any(|f| f.name == name) {
            let known: Vec<&str> = FAMILIES.iter().map(|f| f.name).collect();
            bail!("`{name}` is no family; there are {}", known.join(", "));
        }
    }
    if args.size.is_some_and(|n| n > 64) {
        bail!("a size is at most 64");
    }
    let model = load_model(&args.model, &Variants::new())?;
    if args.format == OutputFormat::Text {
        println!(
            "{:14} {:>10} {:>10} {:>10} {:>8} {:>9} {:>10}",
            "family", "executions", "checks", "dead ends", "checks/e", "seconds", "e/s"
        );
    }
    let mut codes = Vec::new();
    let chosen = FAMILIES.iter().filter(|f| args.only.is_empty() || args.only.iter().any(|n| n == f.name));
    let mut objects = Vec::new();
    for family in chosen {
        let size = args.size.unwrap_or(if args.quick { family.bench } else { family.full }).max(family.least);
        let row = Row::measure(family, size, &model)?;
        match args.format {
            OutputFormat::Text => println!("{}", row.text()),
            OutputFormat::Json => objects.push(row.object()),
        }
        if row.summary.bounded.is_some() {
            codes.push(exit::INCOMPLETE);
        }
        if args.model == MODEL && row.wrong() {
            let expected = family.executions(size);
            eprintln!("{}({size}): {expected} executions and no blocked one are right", family.name);
            codes.push(exit::FINDING);
        }
    }
    if args.format == OutputFormat::Json {
        println!("{}", json!({"version": 1, "model": args.model, "families": objects}));
    }
    Ok(exit::worst(codes))
}
