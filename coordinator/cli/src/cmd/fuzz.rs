//! `moire fuzz`: a whole campaign in one process, with a summary a person can read.

use crate::scores;
use anyhow::{Result, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use moire_console::campaign::{self, Settings, Totals};
use moire_console::stored::STORE;
use moire_console::time::duration;
use moire_console::{claim, exit};
use moire_coordinator::many;
use moire_coordinator::report::{DIFFERENCE, Grade};
use moire_corpus::Finding;
use moire_generate::Profile;
use moire_worker::job::Engine;
use moire_worker::oracle::{self, COMPILER, LOWERING, Takes, Tool};
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// Stop after this time: 90s, 10m, 2h [default: 60s without --programs]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Stop when this many programs of the stream are done
    #[arg(long, value_name = "N")]
    pub(crate) programs: Option<u64>,
    /// Seed of the stream
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Profile of the stream: random, shapes, mixed, tensor, tile-ir
    #[arg(long, default_value = "mixed")]
    pub(crate) profile: String,
    /// Only these oracles: self, model-pair, metamorphic, patterns, assembler, compiler, lowering (repeatable)
    #[arg(long)]
    pub(crate) oracle: Vec<String>,
    /// Compare these models, NAME or NAME:SWITCH=VALUE,.. in order (repeatable)
    #[arg(long = "model")]
    pub(crate) models: Vec<String>,
    /// Worker threads [default: all processors]
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// Where findings are kept
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

/// Time of `moire fuzz` without limits, in seconds.
const DEFAULT_SECONDS: u64 = 60;
/// Most findings shown in full.
const SHOWN: usize = 10;

pub(crate) fn run(args: &Fuzz) -> Result<u8> {
    let settings = settings(args)?;
    let mut shown = Instant::now();
    let bar = std::io::stderr().is_terminal().then(|| bar(&settings));
    let above = bar.clone();
    let announce = move |finding: &Finding| match &above {
        Some(bar) => bar.println(claim::announcement(finding)),
        None => eprintln!("{}", claim::announcement(finding)),
    };
    let totals = campaign::run(&settings, Box::new(announce), &mut |totals| match &bar {
        Some(bar) => {
            bar.set_position(if settings.programs.is_some() {
                totals.status.programs
            } else {
                Duration::from_secs_f64(totals.seconds.max(0.0)).as_secs()
            });
            bar.set_message(line(totals));
        }
        None if shown.elapsed() >= Duration::from_secs(10) => {
            shown = Instant::now();
            eprintln!("{}", line(totals));
        }
        None => {}
    })?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    print!("{}", summary(&totals, &settings));
    Ok(code(&totals))
}

fn settings(args: &Fuzz) -> Result<Settings> {
    let profile: Profile = args.profile.parse().map_err(|e| anyhow!("{e}"))?;
    for oracle in &args.oracle {
        if oracle::named(oracle).is_none() {
            let known: Vec<&str> = oracle::oracles().map(|about| about.name).collect();
            bail!("there is no oracle `{oracle}`; there are {}", known.join(", "));
        }
    }
    let engine = moire_worker::oracle::Oracles::new();
    let oracles = oracles(args, profile, &engine.capabilities())?;
    for spec in &args.models {
        match profile {
            Profile::TileIr => drop(engine.side_fingerprint(spec)?),
            _ => drop(engine.model(spec)?),
        }
    }
    let time = match (&args.time, args.programs) {
        (Some(text), _) => Some(duration(text)?),
        (None, Some(_)) => None,
        (None, None) => Some(Duration::from_secs(DEFAULT_SECONDS)),
    };
    Ok(Settings {
        seed: args.seed,
        profile: profile.name().to_owned(),
        oracles,
        models: args.models.clone(),
        programs: args.programs,
        time,
        workers: args
            .workers
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get)),
        store: args.store.clone(),
    })
}

/// The oracles that were asked for and whose tools are installed. Tile IR kernels are for the compiler and the reference
/// lowering.
fn oracles(args: &Fuzz, profile: Profile, capabilities: &[String]) -> Result<Vec<String>> {
    let kernels = profile == Profile::TileIr;
    let mut oracles = args.oracle.clone();
    if kernels && oracles.is_empty() {
        oracles.push(COMPILER.name.to_owned());
    }
    for about in oracles.iter().filter_map(|name| oracle::named(name)) {
        if (about.takes == Takes::Kernels) != kernels {
            let profile = Profile::TileIr;
            bail!(
                "the oracles `{COMPILER}` and `{LOWERING}` are those of --profile {profile}, and of no other"
            );
        }
    }
    for about in oracles.iter().filter_map(|name| oracle::named(name)) {
        if let Some(Tool { capability, how }) = about.tool
            && !capabilities.iter().any(|c| c == capability)
        {
            bail!("the oracle `{about}` needs {capability}, which is not here: {how}");
        }
    }
    Ok(oracles)
}

fn bar(settings: &Settings) -> ProgressBar {
    let length = settings.programs.or(settings.time.map(|t| t.as_secs()));
    let bar = length.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    bar.set_style(
        ProgressStyle::with_template("{wide_bar} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

/// Programs and executions of this run alone.
fn done(totals: &Totals) -> (u64, u64) {
    let s = &totals.status;
    (s.programs.saturating_sub(totals.before.0), s.executions.saturating_sub(totals.before.1))
}

fn line(totals: &Totals) -> String {
    let (programs, executions) = done(totals);
    let per_second = |n: u64| n as f64 / totals.seconds.max(0.001);
    format!(
        "{}, {:.0}/s, {:.0} executions/s, {}, {}",
        many(programs, "program"),
        per_second(programs),
        per_second(executions),
        many(totals.status.findings, "finding"),
        many(totals.tally.broken, "broken rule")
    )
}

fn summary(totals: &Totals, settings: &Settings) -> String {
    let s = &totals.status;
    let mut out = format!(
        "campaign {} in {}: {:.1} s, {}",
        totals.campaign,
        settings.store.display(),
        totals.seconds,
        many(settings.workers, "worker")
    );
    if totals.interrupted {
        out.push_str(", interrupted (run it again to continue)");
    }
    let _ = write!(out, "\n  {}\n", line(totals));
    if totals.before.0 > 0 {
        let _ = writeln!(out, "  already recorded by an earlier run: {}", many(totals.before.0, "program"));
    }
    let _ = writeln!(out, "abstentions: {}", if s.abstentions.is_empty() { "none" } else { "" });
    for (reason, n) in &s.abstentions {
        let _ = writeln!(out, "  {n:8}  {reason}");
    }
    for score in scores::of(s) {
        let grade = if score.grade == Grade::Good { String::new() } else { format!(" ({:?})", score.grade) };
        let _ = writeln!(out, "{}: {}{}", score.name, score.says, grade.to_uppercase());
    }
    for (mutant, n) in &s.mutants {
        let _ = writeln!(out, "  {n:8}  {}", mutant.replacen('/', ": ", 1));
    }
    out.push_str(&compiled(&totals.tally));
    let _ = writeln!(out, "claims: {}", if totals.tally.claims.is_empty() { "none" } else { "" });
    for (kind, n) in &totals.tally.claims {
        let _ = writeln!(out, "  {n:8}  {kind}");
    }
    out.push_str(&findings(totals));
    let _ = writeln!(out, "digest {}", totals.digest);
    out
}

/// Verdicts on the kernels of each compiler. A kernel with a race proves nothing, and one with silent blocks little.
fn compiled(tally: &campaign::Tally) -> String {
    let mut out = String::new();
    for (compiler, verdicts) in &tally.compiled {
        let rows: Vec<String> = verdicts.iter().map(|(verdict, n)| format!("{n} {verdict}")).collect();
        let _ = writeln!(out, "{compiler}: {}", rows.join(", "));
    }
    out
}

fn findings(totals: &Totals) -> String {
    let mut all: Vec<_> = totals.findings.iter().collect();
    all.sort_by_key(|f| (f.rule == DIFFERENCE, f.reduced.len(), f.id));
    let mut out = format!("findings: {}\n", all.len());
    for f in all.iter().take(SHOWN) {
        out.push_str(&super::findings::show_finding(f));
    }
    if all.len() > SHOWN {
        let _ = writeln!(out, "  and {} more: moire findings list", all.len() - SHOWN);
    }
    out
}

/// Whether a finding is more than a difference between two versions of a model, which need not agree.
fn code(totals: &Totals) -> u8 {
    let broken = totals.findings.iter().any(|f| f.rule != DIFFERENCE);
    let red = scores::of(&totals.status).iter().any(|s| s.grade == Grade::Alarm);
    match (broken || red, totals.interrupted) {
        (true, _) => exit::FINDING,
        (false, true) => exit::INCOMPLETE,
        (false, false) => exit::CLEAN,
    }
}
