//! Checks a store: log frames, every record, every bundle; repairs on request.
//!
//! Without `repair` nothing is changed. With it: the recovery ladder of opening runs, damaged bundles are moved
//! aside and the log is compacted.

use crate::files::{self, LOG};
use crate::items::Progress;
use crate::log;
use crate::record::{Campaign, Finding, Hash, Regression};
use crate::store::keys::{parse, read_chunk, show};
use crate::store::open::{check_format, replay};
use crate::store::{OpenError, Options, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Intact commits.
    pub commits: u64,
    /// Records by kind.
    pub records: BTreeMap<String, u64>,
    /// Bundle files.
    pub bundles: u64,
    /// What is wrong, one line each.
    pub problems: Vec<String>,
    /// What was done about it, one line each.
    pub repairs: Vec<String>,
}

/// Kind of a record by its key.
pub(crate) fn kind(key: &[u8]) -> &'static str {
    match key.get(..2) {
        Some(b"c/") => "campaigns",
        Some(b"f/") => "findings",
        Some(b"i/") => "item chunks",
        Some(b"p/") => "progress",
        Some(b"r/") => "regressions",
        Some(b"s/") => "sightings",
        Some(b"t/") => "snapshots",
        _ => "unknown",
    }
}

fn check_record(key: &[u8], value: &[u8], wanted: &mut BTreeSet<Hash>) -> Result<(), StoreError> {
    match kind(key) {
        "campaigns" => parse::<Campaign>(key, value).map(drop),
        "progress" => parse::<Progress>(key, value).map(drop),
        "regressions" => parse::<Regression>(key, value).map(drop),
        "findings" => parse::<Finding>(key, value).map(|f| wanted.extend(f.bundle)),
        "snapshots" => parse::<Hash>(key, value).map(|h| wanted.extend([h])),
        "sightings" if value.is_empty() => Ok(()),
        "item chunks" => {
            let prefix = key.len().saturating_sub(8);
            read_chunk(key, &key[..prefix], value).map(drop)
        }
        _ => Err(StoreError::Decode { key: show(key), reason: "unknown kind".to_owned() }),
    }
}

/// Checks the store in `dir`; takes its lock. With `repair` also repairs it.
pub fn fsck(dir: &Path, repair: bool) -> Result<Report, OpenError> {
    let io = |what| move |source| OpenError::Io { what, source };
    let mut report = Report::default();
    if !dir.is_dir() {
        return Err(OpenError::NotAStore {
            path: dir.to_owned(),
            why: "there is no such directory".to_owned(),
        });
    }
    if check_format(dir, false)? {
        report.problems.push("the FORMAT file is missing or damaged".to_owned());
    }
    let lock = files::lock(dir)
        .map_err(io("locking the store"))?
        .map_err(|pid| OpenError::Locked { path: dir.to_owned(), pid })?;
    let bytes = fs::read(dir.join(LOG)).map_err(io("reading the log"))?;
    let scan = log::scan(&bytes);
    report.commits = scan.frames.len() as u64;
    match scan.header {
        log::Header::Good { .. } => {}
        log::Header::Version(found) => return Err(OpenError::Newer { found: found.to_string() }),
        log::Header::Damaged => report.problems.push("the log's header is damaged".to_owned()),
    }
    for hole in &scan.damaged {
        report.problems.push(format!("log bytes {}..{} are damaged", hole.start, hole.end));
    }
    if scan.end < bytes.len() {
        report.problems.push(format!("log has {} bytes of an unfinished commit", bytes.len() - scan.end));
    }
    for frame in &scan.frames {
        if log::decode(&bytes[frame.payload.clone()]).is_none() {
            report.problems.push(format!("commit {} is not readable", frame.sequence));
        }
    }
    let mut wanted = BTreeSet::new();
    for (key, value) in replay(&bytes, &scan) {
        *report.records.entry(kind(&key).to_owned()).or_default() += 1;
        if let Err(error) = check_record(&key, &value, &mut wanted) {
            report.problems.push(error.to_string());
        }
    }
    check_bundles(dir, repair, &wanted, &mut report).map_err(io("checking bundles"))?;
    drop(lock);
    if repair {
        let (mut store, recovery) = Store::open(dir, Options { create: false, ..Options::default() })?;
        for path in recovery.moved_aside {
            report.repairs.push(format!("kept the damaged part as {}", path.display()));
        }
        match store.compact() {
            Ok((before, after)) => report.repairs.push(format!("log rewritten: {before} -> {after} bytes")),
            Err(error) => report.problems.push(error.to_string()),
        }
    }
    Ok(report)
}

fn check_bundles(
    dir: &Path,
    repair: bool,
    wanted: &BTreeSet<Hash>,
    report: &mut Report,
) -> std::io::Result<()> {
    let mut intact = BTreeSet::new();
    for (hash, path) in files::bundles(dir)? {
        report.bundles += 1;
        if Hash::of(&fs::read(&path)?) == hash {
            intact.insert(hash);
            continue;
        }
        report.problems.push(format!("bundle {hash} is damaged"));
        if repair {
            report.repairs.push(format!("moved to {}", files::move_aside(&path)?.display()));
        }
    }
    for hash in wanted.difference(&intact) {
        report.problems.push(format!("bundle {hash} is missing"));
    }
    Ok(())
}
