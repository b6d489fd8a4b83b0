//! A store on this machine, and the report on its findings.

use crate::exit;
use crate::output::Format;
use anyhow::{Context, Result, bail};
use moire_coordinator::clock::{millis, unix_ms};
use moire_coordinator::report::{CampaignLine, Findings, Night, Stored};
use moire_corpus::{CampaignState, Counters, Loss, Options, Recovery, Snapshot, Store};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The default folder of a store.
pub const STORE: &str = ".moire/store";

/// Opens an existing store.
///
/// # Errors
/// There is no store, or it cannot be used.
pub fn open(dir: &Path) -> Result<Store> {
    if !dir.is_dir() {
        bail!(
            "there is no store at {}; `moire fuzz` makes one, --store names another, --coordinator HOST:PORT asks a running coordinator",
            dir.display()
        );
    }
    let (store, recovery) = Store::open(dir, Options { create: false, ..Options::default() })?;
    say(dir, &recovery, store.losses());
    Ok(store)
}

/// Whether a store that this process opened has losses that nobody has acknowledged.
static LOSSES: AtomicBool = AtomicBool::new(false);

/// Says on stderr what opening a store repaired, and what it lost.
pub fn say<'a>(dir: &Path, recovery: &Recovery, losses: impl IntoIterator<Item = &'a Loss>) {
    let repaired = recovery.to_string();
    if !repaired.is_empty() {
        eprintln!("store {}:\n{repaired}", dir.display());
    }
    let losses: Vec<&Loss> = losses.into_iter().collect();
    note(losses.iter().copied());
    if losses.is_empty() {
        return;
    }
    eprintln!("store {} lost something that nobody has acknowledged:", dir.display());
    losses.iter().for_each(|loss| eprintln!("  {loss}"));
    eprintln!(
        "`moire store repair --from-index` puts back what an index still has; `moire store acknowledge --why TEXT` ends \
         this message"
    );
}

/// Notes that a store has losses that nobody has acknowledged, for the exit code.
pub fn note<'a>(losses: impl IntoIterator<Item = &'a Loss>) {
    if losses.into_iter().next().is_some() {
        LOSSES.store(true, Ordering::Relaxed);
    }
}

/// The exit code of a command that ended with `code`: not 0 if a store that it opened has losses that nobody has
/// acknowledged.
pub fn code(code: u8) -> u8 {
    // What a program under `moire record` ends with is any number.
    if LOSSES.load(Ordering::Relaxed) { exit::worst([code, exit::INCOMPLETE]) } else { code }
}

/// Where a report goes.
#[derive(Clone, Copy, Debug)]
pub enum To<'a> {
    /// Into a folder, in all formats.
    Folder(&'a Path),
    /// To stdout, in one format.
    Stdout(Format),
}

/// Writes the report of a store into the folder `out`, and records a snapshot in the store. Without a folder it prints the
/// report in a format and records nothing: the next report compares with the same one. With a `window`, only findings seen or tested
/// within that time are reported. The findings stay in the store; memory holds one row for each.
///
/// # Errors
/// The store or the folder fails.
pub fn report(store: &mut Store, window: Option<Duration>, to: To<'_>) -> Result<()> {
    let at_ms = unix_ms();
    let mut counters = Counters::default();
    let mut campaigns = Vec::new();
    for campaign in store.campaigns()? {
        let progress = store.progress(&campaign.name)?;
        counters.add(&progress.counters);
        campaigns.push(CampaignLine {
            cut: CampaignLine::cut(campaign.state == CampaignState::Done),
            name: campaign.name,
            programs: (progress.done(), progress.done()),
            executions: progress.counters.executions,
            abstentions: progress.counters.abstentions,
        });
    }
    let snapshot = Snapshot { at_ms, counters, ..Snapshot::default() };
    let window = window.map_or(at_ms, millis);
    let losses = store.losses().map(ToString::to_string).collect();
    let night = Night { at_ms, last: store.last_snapshot()?, campaigns, losses, ..Night::default() };
    let findings = Stored::new(store, at_ms.saturating_sub(window), snapshot);
    let out = match to {
        To::Folder(out) => out,
        To::Stdout(format) => return show(&night, &findings, format),
    };
    write(&night, &findings, out)?.iter().for_each(|path| println!("{}", path.display()));
    let snapshot = findings.snapshot();
    store.save_snapshot(&snapshot)?;
    Ok(())
}

/// The file of a report that is of this format.
pub fn file(format: Format) -> &'static str {
    match format {
        Format::Text => "summary.md",
        Format::Json => "findings.jsonl",
        Format::Sarif => "report.sarif",
        Format::Junit => "junit.xml",
    }
}

/// Prints a report in one format.
///
/// # Errors
/// The findings cannot be read.
pub fn show(night: &Night, findings: &dyn Findings, format: Format) -> Result<()> {
    let mut lines = Vec::new();
    let files = night.write(findings, &mut lines)?;
    if format == Format::Json {
        print!("{}", String::from_utf8_lossy(&lines));
        return Ok(());
    }
    let file = files.into_iter().find(|(name, _)| *name == file(format));
    println!("{}", file.context("a report has all formats")?.1.trim_end());
    Ok(())
}

/// Writes the files of a report into `out`; their paths.
///
/// # Errors
/// The folder cannot be written, or the findings cannot be read.
pub fn write(night: &Night, findings: &dyn Findings, out: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let path = out.join("findings.jsonl");
    let failed = || format!("cannot write {}", path.display());
    let mut lines = BufWriter::new(File::create(&path).with_context(failed)?);
    let files = night.write(findings, &mut lines)?;
    lines.flush().with_context(failed)?;
    let mut paths = vec![path];
    for (name, text) in files {
        let path = out.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}
