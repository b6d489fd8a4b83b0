//! The progress of a self check in a file, so that a stopped run resumes from the last stop.
//!
//! The file is JSON with a schema number, written every few seconds. A run resumes only with the arguments it began
//! with, because they determine the programs. Only the numbers of programs and threads may differ.

use super::SelfCheck;
use crate::kept;
use anyhow::{Result, bail};
use moire_lab::differential::campaign::Totals;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SCHEMA: u32 = 4;

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    schema: u32,
    /// The arguments of the command.
    words: Words,
    next_seed: u64,
    programs: u64,
    repeated: u64,
    comparisons: u64,
    leaves: u64,
    candidates: u64,
    skipped: BTreeMap<String, u64>,
    six_events: u64,
    beyond: u64,
    rmw: u64,
    dependency: u64,
    load_buffering: u64,
    awaits: u64,
    operated: u64,
    /// The differences, one line each.
    differences: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    stream: String,
    models: Vec<String>,
    settings: usize,
    settings_from: Option<u64>,
    seed: u64,
    first: u64,
    candidates: u64,
    least: u64,
    pruned: bool,
}

impl Words {
    fn of(args: &SelfCheck) -> Words {
        Words {
            stream: args.stream.map_or(String::new(), |profile| profile.name().to_owned()),
            models: args.models.clone(),
            settings: args.settings,
            settings_from: args.settings_from,
            seed: args.seed,
            first: args.first,
            candidates: args.candidates,
            least: args.least,
            pruned: args.pruned,
        }
    }
}

/// The file of a run.
pub(super) struct Keep {
    path: PathBuf,
    words: Words,
    /// Differences of earlier runs, one line each.
    pub(super) earlier: Vec<String>,
    _held: std::fs::File,
}

impl Keep {
    /// Opens the file that a command names, and reads the progress in it.
    ///
    /// # Errors
    /// The file cannot be read, holds something else, belongs to another command, or another command is writing it.
    pub(super) fn open(path: &Path, args: &SelfCheck) -> Result<(Keep, Option<Totals>)> {
        let (words, earlier, _held) = (Words::of(args), Vec::new(), kept::hold(path)?);
        let mut keep = Keep { path: path.to_owned(), words, earlier, _held };
        let shown = path.display();
        let Some(kept) = kept::read::<Kept>(path, "a self check")? else { return Ok((keep, None)) };
        if kept.schema != SCHEMA {
            bail!("{shown} was written by another version (schema {}, not {SCHEMA})", kept.schema);
        }
        if kept.words != keep.words {
            bail!(
                "{shown} belongs to another command: the arguments that decide what is drawn and compared must be the same"
            );
        }
        if kept.next_seed.wrapping_sub(args.first) < kept.programs {
            bail!("{shown} is damaged: more programs than positions");
        }
        keep.earlier = kept.differences;
        let totals = Totals {
            programs: kept.programs,
            repeated: kept.repeated,
            comparisons: kept.comparisons,
            leaves: kept.leaves,
            candidates: kept.candidates,
            skipped: kept.skipped,
            six_events: kept.six_events,
            beyond: kept.beyond,
            rmw: kept.rmw,
            dependency: kept.dependency,
            load_buffering: kept.load_buffering,
            awaits: kept.awaits,
            operated: kept.operated,
            failures: Vec::new(),
            next_seed: kept.next_seed,
        };
        Ok((keep, Some(totals)))
    }

    /// Writes the progress.
    ///
    /// # Errors
    /// The file cannot be written; the old one is still there.
    pub(super) fn note(&self, totals: &Totals) -> Result<()> {
        let line = |f: &moire_lab::differential::campaign::Failure| {
            format!("program {}, {}: {}", f.seed, f.model, f.difference.kind())
        };
        let kept = Kept {
            schema: SCHEMA,
            words: self.words.clone(),
            next_seed: totals.next_seed,
            programs: totals.programs,
            repeated: totals.repeated,
            comparisons: totals.comparisons,
            leaves: totals.leaves,
            candidates: totals.candidates,
            skipped: totals.skipped.clone(),
            six_events: totals.six_events,
            beyond: totals.beyond,
            rmw: totals.rmw,
            dependency: totals.dependency,
            load_buffering: totals.load_buffering,
            awaits: totals.awaits,
            operated: totals.operated,
            differences: self.earlier.iter().cloned().chain(totals.failures.iter().map(line)).collect(),
        };
        kept::write(&self.path, &kept)
    }
}
