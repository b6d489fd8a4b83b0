//! `moire fuzz`: a whole campaign in one process, with a summary a person can read.

use crate::args::Fuzz;
use crate::exit;
use crate::local::{self, Settings, Totals};
use crate::scores;
use anyhow::{Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use moire_coordinator::many;
use moire_coordinator::report::{DIFFERENCE, Grade};
use moire_corpus::Finding;
use moire_program::generate::Profile;
use moire_worker::job::Engine;
use moire_worker::oracle::{
    ASSEMBLER, ASSEMBLER_CAPABILITY, ASSEMBLER_HOW, COMPILER, COMPILER_CAPABILITY, COMPILER_HOW, LOWERING,
    ORACLES,
};
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Run of `moire fuzz` without limits, in seconds.
const DEFAULT_SECONDS: u64 = 60;
/// Findings shown in full.
const SHOWN: usize = 10;

pub(crate) fn run(args: &Fuzz) -> Result<u8> {
    let settings = settings(args)?;
    let mut shown = Instant::now();
    let bar = std::io::stderr().is_terminal().then(|| bar(&settings));
    let above = bar.clone();
    let announce = move |finding: &Finding| match &above {
        Some(bar) => bar.println(local::announcement(finding)),
        None => eprintln!("{}", local::announcement(finding)),
    };
    let totals = local::run(&settings, Box::new(announce), &mut |totals| match &bar {
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
        if !ORACLES.contains(&oracle.as_str()) {
            bail!("there is no oracle `{oracle}`; there are {}", ORACLES.join(", "));
        }
    }
    let engine = moire_worker::oracle::Oracles::new();
    let oracles = oracles(args, profile, &engine.capabilities())?;
    for spec in &args.models {
        match profile {
            Profile::TileIr => engine.side_fingerprint(spec).map(drop),
            _ => engine.model(spec).map(drop),
        }
        .map_err(|e| anyhow!("{e}"))?;
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

/// Those asked for, if their tools are here. Kernels of Tile IR are for the compiler and the reference lowering.
fn oracles(args: &Fuzz, profile: Profile, capabilities: &[String]) -> Result<Vec<String>> {
    let kernels = profile == Profile::TileIr;
    let mut oracles = args.oracle.clone();
    if kernels && oracles.is_empty() {
        oracles.push(COMPILER.to_owned());
    }
    for oracle in &oracles {
        if [COMPILER, LOWERING].contains(&oracle.as_str()) != kernels {
            let profile = Profile::TileIr;
            bail!(
                "the oracles `{COMPILER}` and `{LOWERING}` are those of --profile {profile}, and of no other"
            );
        }
    }
    for (oracle, tool, how) in
        [(ASSEMBLER, ASSEMBLER_CAPABILITY, ASSEMBLER_HOW), (COMPILER, COMPILER_CAPABILITY, COMPILER_HOW)]
    {
        if oracles.iter().any(|o| o == oracle) && !capabilities.iter().any(|c| c == tool) {
            bail!("the oracle `{oracle}` needs {tool}, which is not here: {how}");
        }
    }
    Ok(oracles)
}

/// `90`, `90s`, `10m`, `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        unit => bail!("`{unit}` is no unit of time; write 90s, 10m or 2h"),
    };
    let n: u64 = digits.parse().map_err(|_| anyhow!("`{text}` is no time; write 90s, 10m or 2h"))?;
    n.checked_mul(factor).map(Duration::from_secs).ok_or_else(|| anyhow!("`{text}` is too long"))
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

/// What became of the kernels of each compiler: those with a race say nothing, and silent blocks little.
fn compiled(tally: &local::Tally) -> String {
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

/// A difference between two versions of a model is worth showing, but nothing that should agree disagrees.
fn code(totals: &Totals) -> u8 {
    let broken = totals.findings.iter().any(|f| f.rule != DIFFERENCE);
    let red = scores::of(&totals.status).iter().any(|s| s.grade == Grade::Alarm);
    match (broken || red, totals.interrupted) {
        (true, _) => exit::FINDING,
        (false, true) => exit::INCOMPLETE,
        (false, false) => exit::CLEAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("90").unwrap(), duration("90s").unwrap());
        assert_eq!(duration("2m").unwrap().as_secs(), 120);
        for bad in ["", "x", "5d", "99999999999999999999s", "9999999999999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
