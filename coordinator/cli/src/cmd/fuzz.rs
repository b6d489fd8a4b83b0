//! `moire fuzz`: a whole campaign in one process, with a summary a person can read.

use crate::device::Lent;
use crate::scores;
use anyhow::{Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use moire_console::campaign::{self, Settings, Totals};
use moire_console::stored::STORE;
use moire_console::streams::StreamName;
use moire_console::time::duration;
use moire_console::{claim, ending, exit};
use moire_coordinator::report::{DIFFERENCE, Grade};
use moire_coordinator::{grouped, judged, many};
use moire_corpus::Finding;
use moire_generate::Profile;
use moire_worker::job::Engine;
use moire_worker::oracle::{
    self, COMPILER, DEVICE, LIBNVVM, LLVM, LOWERING, NVCC, Oracles, STAND_IN, TRITON, Takes, Tool,
};
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
    /// What is drawn [default: all streams, one after the other, source where llc or nvcc is here; core with --oracle or --model]
    #[arg(long, value_parser = StreamName)]
    pub(crate) stream: Option<Profile>,
    /// Only these oracles: self, model-pair, metamorphic, patterns, assembler, sass, compiler, lowering, operational, llvm, nvcc,
    /// mixing, sass-source, device, stand-in (repeatable)
    #[arg(long)]
    pub(crate) oracle: Vec<String>,
    /// Compare these models, NAME or NAME:SWITCH=VALUE,.. in order (repeatable)
    #[arg(long = "model")]
    pub(crate) models: Vec<String>,
    #[command(flatten)]
    pub(crate) lent: Lent,
    /// Worker threads [default: all processors]
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// Where findings are kept
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

/// Time of `moire fuzz` without limits, in seconds.
const DEFAULT_SECONDS: u64 = 60;
/// Least time that claims have to be verified after the time of a campaign.
const SETTLING_LEAST: Duration = Duration::from_secs(20);
/// Most findings shown in full.
const SHOWN: usize = 10;

/// Reasons of abstentions that are listed of each stream of such a run.
const REASONS: usize = 3;

pub(crate) fn run(args: &Fuzz) -> Result<u8> {
    // Compilers are looked for first, and that takes seconds.
    ending::listen(campaign::STOPPING);
    let plans = plans(args)?;
    let mut codes = Vec::new();
    let mut rows = Vec::new();
    for (n, settings) in plans.iter().enumerate() {
        if ending::is_asked() {
            println!("interrupted; not begun: {}", names(&plans[n..]));
            codes.push(exit::INCOMPLETE);
            break;
        }
        let differences = plans.len() == 1;
        let totals = one(settings, differences)?;
        print!("{}", summary(&totals, settings, differences));
        codes.push(code(&totals));
        rows.push(row(&settings.profile, &totals));
    }
    if plans.len() > 1 && !rows.is_empty() {
        println!("in all:");
        rows.iter().for_each(|row| println!("  {row}"));
    }
    Ok(exit::worst(codes))
}

fn names(plans: &[Settings]) -> String {
    plans.iter().map(|p| p.profile.as_str()).collect::<Vec<_>>().join(", ")
}

/// Runs one campaign, with progress on stderr.
fn one(settings: &Settings, differences: bool) -> Result<Totals> {
    let mut shown = Instant::now();
    let bar = std::io::stderr().is_terminal().then(|| bar(settings));
    let above = bar.clone();
    let announce = move |finding: &Finding| match &above {
        _ if finding.rule == DIFFERENCE && !differences => {}
        Some(bar) => bar.println(claim::announcement(finding)),
        None => eprintln!("{}", claim::announcement(finding)),
    };
    let totals = campaign::run(settings, Box::new(announce), &mut |totals| match &bar {
        Some(bar) => {
            bar.set_position(if settings.programs.is_some() {
                totals.status.programs
            } else {
                Duration::from_secs_f64(totals.seconds.max(0.0)).as_secs()
            });
            bar.set_message(format!("{}: {}", settings.profile, line(totals)));
        }
        None if shown.elapsed() >= Duration::from_secs(10) => {
            shown = Instant::now();
            eprintln!("{}: {}", settings.profile, line(totals));
        }
        None => {}
    })?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(totals)
}

/// The campaigns of a run: that of the stream which is named, or one of each language.
fn plans(args: &Fuzz) -> Result<Vec<Settings>> {
    for oracle in &args.oracle {
        if oracle::named(oracle).is_none() {
            let known: Vec<&str> = oracle::oracles().map(|about| about.name).collect();
            bail!("there is no oracle `{oracle}`; there are {}", known.join(", "));
        }
    }
    let device = args.lent.host()?;
    let engine = Oracles::with_device(device.clone());
    let time = match (&args.time, args.programs) {
        (Some(text), _) => Some(duration(text)?),
        (None, Some(_)) => None,
        (None, None) => Some(Duration::from_secs(DEFAULT_SECONDS)),
    };
    // Oracles and models belong to one language.
    let one = !args.oracle.is_empty() || !args.models.is_empty() || device.is_some();
    let named = args.stream.or(one.then_some(Profile::Core));
    let capabilities = engine.capabilities();
    let compilers =
        [LLVM, NVCC, LIBNVVM, TRITON].iter().any(|tool| capabilities.iter().any(|c| c == tool.capability));
    let all = Profile::ALL.into_iter().filter(|p| compilers || *p != Profile::Source);
    let shares: Vec<(Profile, u32)> = match named {
        Some(profile) => vec![(profile, 1)],
        None => all.map(|p| (p, p.about().share)).filter(|(_, share)| *share > 0).collect(),
    };
    let sum: u32 = shares.iter().map(|(_, share)| share).sum();
    let settling = time.unwrap_or_default().max(SETTLING_LEAST);
    let part = |(profile, share): (Profile, u32)| {
        let programs = args.programs.map(|n| (n.saturating_mul(share.into()) / u64::from(sum)).max(1));
        let run = settings(args, profile, &engine, programs, time.map(|t| t * share / sum));
        Ok(Settings { device: device.clone(), settling, ..run? })
    };
    shares.into_iter().map(part).collect()
}

fn settings(
    args: &Fuzz,
    profile: Profile,
    engine: &Oracles,
    programs: Option<u64>,
    time: Option<Duration>,
) -> Result<Settings> {
    let oracles = oracles(args, profile, &engine.capabilities())?;
    for spec in &args.models {
        engine.side_fingerprint(spec)?;
    }
    Ok(Settings {
        seed: args.seed,
        profile: profile.name().to_owned(),
        oracles,
        models: args.models.clone(),
        programs,
        time,
        settling: Duration::ZERO,
        workers: args
            .workers
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get)),
        store: args.store.clone(),
        device: None,
    })
}

/// The oracles that were asked for and whose tools are installed. Tile IR kernels are for the compiler and the reference
/// lowering, source programs for the compilers that are here.
fn oracles(args: &Fuzz, profile: Profile, capabilities: &[String]) -> Result<Vec<String>> {
    let takes = Takes::of_profile(profile.name());
    let mut oracles = args.oracle.clone();
    if oracles.is_empty() && args.lent.device.is_some() {
        let lent = |tool: &Tool| capabilities.iter().any(|c| c == tool.capability);
        oracles.extend([DEVICE, STAND_IN].iter().filter(|t| lent(t)).map(|t| t.capability.to_owned()));
    }
    if takes == Takes::Kernels && oracles.is_empty() {
        // A run that names no stream uses the compilers that are installed.
        let compiles = COMPILER.tool.is_none_or(|tool| capabilities.iter().any(|c| c == tool.capability));
        let here = args.stream.is_some() || compiles;
        oracles.push(if here { COMPILER.name } else { LOWERING.name }.to_owned());
    }
    if takes == Takes::Sources && oracles.is_empty() {
        let here = |tool: Tool| capabilities.iter().any(|c| c == tool.capability);
        let all = oracle::oracles().filter(|about| about.takes == Takes::Sources && about.by_default);
        oracles.extend(all.filter(|about| about.tool.is_some_and(here)).map(|about| about.name.to_owned()));
        if oracles.is_empty() {
            bail!("no compiler of source programs is here: {}; or {}", LLVM.how, NVCC.how);
        }
    }
    for about in oracles.iter().filter_map(|name| oracle::named(name)) {
        match about.takes {
            own if own == takes => {}
            Takes::Sources => {
                bail!("the oracle `{about}` belongs to --stream {} only", Profile::Source);
            }
            _ if takes == Takes::Sources => {
                bail!("the oracle `{about}` does not belong to --stream {profile}");
            }
            _ => {
                bail!("the oracles `{COMPILER}` and `{LOWERING}` belong to --stream {} only", Profile::TileIr)
            }
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
    let open = match totals.status.unverified {
        0 => String::new(),
        n => format!(", claims of {} open", many(n, "program")),
    };
    format!(
        "{}, {}/s, {} executions/s, {}{open}",
        many(programs, "program"),
        grouped(format!("{:.0}", per_second(programs))),
        grouped(format!("{:.0}", per_second(executions))),
        many(totals.status.findings, "finding"),
    )
}

/// What a campaign did. Of a run of several (not `whole`) it is short: differences between models are counted and not listed.
fn summary(totals: &Totals, settings: &Settings, whole: bool) -> String {
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
    out.push_str(&abstentions(totals, whole));
    for score in scores::of(s) {
        let grade = if score.grade == Grade::Good { String::new() } else { format!(" ({:?})", score.grade) };
        let _ = writeln!(out, "{}: {}{}", score.name, score.says, grade.to_uppercase());
    }
    for (mutant, n) in s.mutants.iter().filter(|_| whole) {
        let _ = writeln!(out, "  {n:8}  {}", mutant.replacen('/', ": ", 1));
    }
    out.push_str(&compiled(&totals.tally));
    if whole {
        let _ = writeln!(out, "claims: {}", if totals.tally.claims.is_empty() { "none" } else { "" });
    }
    for (kind, n) in totals.tally.claims.iter().filter(|_| whole) {
        let _ = writeln!(out, "  {n:8}  {kind}");
    }
    out.push_str(&findings(totals, whole));
    let _ = writeln!(out, "digest {}", totals.digest);
    out
}

/// Why engines did not answer, the most frequent reasons first.
fn abstentions(totals: &Totals, whole: bool) -> String {
    let mut all: Vec<_> = totals.status.abstentions.iter().collect();
    all.sort_by_key(|(reason, n)| (std::cmp::Reverse(**n), *reason));
    let shown = if whole { all.len() } else { REASONS.min(all.len()) };
    let mut out = format!("abstentions: {}\n", if all.is_empty() { "none" } else { "" });
    for (reason, n) in &all[..shown] {
        let _ = writeln!(out, "  {n:8}  {reason}");
    }
    if shown < all.len() {
        let _ = writeln!(
            out,
            "            and {}: moire campaign show {}",
            many(all.len() - shown, "more reason"),
            totals.campaign
        );
    }
    out
}

/// A campaign in one line.
fn row(stream: &str, totals: &Totals) -> String {
    let (programs, executions) = done(totals);
    let broken = totals.findings.iter().filter(|f| f.rule != DIFFERENCE).count();
    let differences = totals.findings.len() - broken;
    let broken = broken + under_way(totals).count();
    format!(
        "{stream:8} {}, {}, {}, {} between models",
        many(programs, "program"),
        many(executions, "execution"),
        many(broken, "broken rule"),
        many(differences, "difference")
    )
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

fn findings(totals: &Totals, listed: bool) -> String {
    let mut all: Vec<_> = totals.findings.iter().collect();
    all.sort_by_key(|f| (f.rule == DIFFERENCE, f.reduced.len(), f.id));
    let differences = all.iter().filter(|f| f.rule == DIFFERENCE).count();
    let mut out = match all.len() {
        0 if judged(&totals.status) == 0 => "findings: unknown, because no program was judged\n".to_owned(),
        0 if totals.status.unverified > 0 => "findings: none recorded yet\n".to_owned(),
        0 => "findings: none\n".to_owned(),
        n => format!(
            "findings: {n}; {}, {} between models\n",
            many(n - differences, "broken rule"),
            many(differences, "difference")
        ),
    };
    if totals.status.unverified > 0 {
        let _ = writeln!(
            out,
            "claims of {} are open; run it again to continue",
            many(totals.status.unverified, "program")
        );
    }
    if !listed {
        all.retain(|f| f.rule != DIFFERENCE);
        if differences > 0 {
            out.push_str(
                "  differences between models and between readings are not mistakes: `moire findings list` has them\n",
            );
        }
    }
    for f in all.iter().take(SHOWN) {
        out.push_str(&super::findings::show_finding(f));
    }
    if all.len() > SHOWN {
        let _ = writeln!(out, "  and {} more: moire findings list", all.len() - SHOWN);
    }
    let headings = [
        (true, "verified and reduced, not recorded before earlier programs are judged"),
        (false, "verified, but not reduced in time"),
    ];
    for (reduced, heading) in headings {
        let some: Vec<&Finding> = under_way(totals).filter(|f| f.1 == reduced).map(|f| &f.0).collect();
        if !some.is_empty() {
            let _ = writeln!(out, "{heading}: {}", many(some.len(), "broken rule"));
        }
        for f in some.iter().take(SHOWN) {
            out.push_str(&super::findings::show_finding(f));
        }
    }
    out
}

/// Broken rules that were verified and are not recorded; with `true` those that are reduced.
fn under_way(totals: &Totals) -> impl Iterator<Item = &(Finding, bool)> {
    totals.under_way.iter().filter(|(f, _)| f.rule != DIFFERENCE)
}

/// Whether a finding is more than a difference between two versions of a model, which need not agree.
fn code(totals: &Totals) -> u8 {
    let broken = under_way(totals).next().is_some() || totals.findings.iter().any(|f| f.rule != DIFFERENCE);
    let red = scores::of(&totals.status).iter().any(|s| s.grade == Grade::Alarm);
    let blind = judged(&totals.status) == 0;
    match (broken || red, totals.interrupted || totals.status.unverified > 0 || blind) {
        (true, _) => exit::FINDING,
        (false, true) => exit::INCOMPLETE,
        (false, false) => exit::CLEAN,
    }
}
