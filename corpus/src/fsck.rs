//! Checks a store: log frames, every record, every bundle; repairs on request.
//!
//! Without `repair` nothing is written, not even the lock: a store on a read-only file system can be checked.
//! With it: the recovery ladder of opening runs, damaged bundles are moved aside, unreadable records are copied
//! aside and taken out, and the log is compacted. Nothing is deleted without a copy beside the store.
//!
//! Cost: repairing a damaged log and checking a store read the whole log into memory. Opening, compaction and building the
//! index keep only the keys there.

use crate::bundle::BYTES_MAX;
use crate::check::{check_record, kind};
use crate::error::{OpenError, StoreError};
use crate::files::{self, Holder, LOG};
use crate::hash::Hash;
use crate::log;
use crate::loss::{Losses, Traces};
use crate::op::Op;
use crate::pairs::open::{Format, check_format, found, read_log, replay};
use crate::pairs::{Options, Pairs};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Most problems that are named; the others are counted.
const PROBLEMS_MAX: usize = 1000;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Intact commits.
    pub commits: u64,
    /// Records by kind.
    pub records: BTreeMap<String, u64>,
    /// Bundle files.
    pub bundles: u64,
    /// The problems, one line each; the last line counts those that are left out.
    pub problems: Vec<String>,
    /// The repairs, one line each.
    pub repairs: Vec<String>,
}

/// A report in the making, and what a repair needs to know.
#[derive(Default)]
struct Check {
    report: Report,
    left_out: u64,
    /// Bundles that records name.
    wanted: BTreeSet<Hash>,
    /// Records that cannot be read.
    unreadable: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bundle files whose content does not have the hash in their name.
    damaged_bundles: Vec<PathBuf>,
}

fn io(what: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::Io { what, source }
}

/// Checks the store in `dir` while no other process has it. With `repair` also repairs it.
pub fn fsck(dir: &Path, repair: bool) -> Result<Report, OpenError> {
    let mut check = Check::default();
    match check_format(dir, false)? {
        Format::Known => {}
        Format::Missing => check.problem("the FORMAT file is missing"),
        Format::Damaged => check.problem("the FORMAT file is damaged"),
    }
    let lock = files::lock_shared(dir)
        .map_err(io("locking the store"))?
        .map_err(|Holder(pid)| OpenError::Locked { path: dir.to_owned(), pid })?;
    check.log(dir)?;
    check.bundles(dir).map_err(io("checking bundles"))?;
    if let Some(lock) = lock {
        lock.unlock().map_err(io("unlocking the store"))?;
    }
    if repair {
        check.repair(dir)?;
    }
    if check.left_out > 0 {
        check.report.problems.push(format!("and {} more", check.left_out));
    }
    Ok(check.report)
}

impl Check {
    fn problem(&mut self, text: impl Into<String>) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(text.into());
        } else {
            self.left_out += 1;
        }
    }

    /// Reports losses: those that no operator has acknowledged, and those that a repair would find.
    fn losses(&mut self, dir: &Path, missing: Option<String>) -> Result<(), OpenError> {
        let losses = Losses::read(dir).map_err(io("reading the losses"))?;
        for loss in losses.all().iter().filter(|loss| loss.acknowledged.is_none()) {
            self.problem(format!("loss, not acknowledged: {loss}"));
        }
        missing.into_iter().for_each(|what| self.problem(what));
        Ok(())
    }

    fn log(&mut self, dir: &Path) -> Result<(), OpenError> {
        let traces = Traces::read(dir);
        if !dir.join(LOG).exists() {
            let missing = traces.without_log().unwrap_or_else(|| format!("the log {LOG} is missing"));
            return self.losses(dir, Some(missing));
        }
        let bytes = read_log(dir)?;
        let scan = log::scan(&bytes);
        let found = found(&bytes, &scan)?;
        self.losses(dir, traces.missing(found.last, found.frames, found.damaged))?;
        self.report.commits = scan.frames.len() as u64;
        if scan.header == log::Header::Damaged {
            self.problem("the log's header is damaged");
        }
        for hole in &scan.damaged {
            self.problem(format!("log bytes {}..{} are damaged", hole.start, hole.end));
        }
        if scan.end < bytes.len() {
            self.problem(format!("log has {} bytes of an unfinished commit", bytes.len() - scan.end));
        }
        for frame in &scan.frames {
            if log::decode(&bytes[frame.payload.clone()]).is_none() {
                self.problem(format!("commit {} is not readable", frame.sequence));
            }
        }
        for (key, value) in replay(&bytes, &scan) {
            *self.report.records.entry(kind(key).to_owned()).or_default() += 1;
            match check_record(key, value) {
                Ok(bundles) => self.wanted.extend(bundles),
                Err(error) => {
                    self.problem(error.to_string());
                    self.unreadable.push((key.to_vec(), value.to_vec()));
                }
            }
        }
        Ok(())
    }

    fn bundles(&mut self, dir: &Path) -> io::Result<()> {
        let mut intact = BTreeSet::new();
        for (hash, path) in files::bundles(dir)? {
            self.report.bundles += 1;
            match files::read_bounded(&path, BYTES_MAX as u64) {
                Ok(bytes) if Hash::of(&bytes) == hash => drop(intact.insert(hash)),
                Err(e) if e.kind() != io::ErrorKind::FileTooLarge => return Err(e),
                _ => {
                    self.problem(format!("bundle {hash} is damaged"));
                    self.damaged_bundles.push(path);
                }
            }
        }
        for hash in std::mem::take(&mut self.wanted).difference(&intact) {
            self.problem(format!("bundle {hash} is missing"));
        }
        Ok(())
    }

    fn repair(&mut self, dir: &Path) -> Result<(), OpenError> {
        let (mut pairs, recovery) = Pairs::open(dir, Options { create: false, ..Options::default() })?;
        let kept = |path: &Path| format!("kept the damaged part as {}", path.display());
        self.report.repairs.extend(recovery.moved_aside.iter().map(|p| kept(p)));
        for path in &self.damaged_bundles {
            let aside = files::move_aside(path).map_err(io("moving a bundle aside"))?;
            self.report.repairs.push(kept(&aside));
        }
        if !self.unreadable.is_empty() {
            let mut lines = String::new();
            for (key, value) in &self.unreadable {
                let _ = writeln!(lines, "{} {}", key.escape_ascii(), value.escape_ascii());
            }
            let aside = files::aside_name(&dir.join("records"));
            files::write_atomically(&aside, lines.as_bytes()).map_err(io("keeping unreadable records"))?;
            let removed = self.unreadable.drain(..).map(|(key, _)| Op::new(key, None));
            let removed = removed.collect::<Result<_, _>>().map_err(StoreError::from);
            match removed.and_then(|removed| pairs.commit(removed)) {
                Ok(()) => self.report.repairs.push(kept(&aside)),
                Err(error) => self.problem(error.to_string()),
            }
        }
        match pairs.compact() {
            Ok((before, after)) => {
                self.report.repairs.push(format!("log rewritten: {before} -> {after} bytes"));
            }
            Err(error) => self.problem(error.to_string()),
        }
        Ok(())
    }
}
