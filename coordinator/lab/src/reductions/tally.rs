//! Sums over a run of `moire bench reductions`, as noted in its file and printed at its end.

use super::drawn::Drawn;
use crate::kept;
use anyhow::{Result, bail};
use moire_explore::reduce::Reductions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const SCHEMA: u32 = 1;

/// The arguments of the command that decide what is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    pub(super) draw: String,
    pub(super) models: Vec<String>,
    pub(super) settings: usize,
    pub(super) settings_from: u64,
    pub(super) seed: u64,
}

/// The sums for one kind of program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sums {
    pub(super) programs: u64,
    pub(super) comparisons: u64,
    /// Comparisons in which a reduction left out executions.
    pub(super) less: u64,
    /// Executions without reductions, then with each setting.
    pub(super) executions: Vec<u64>,
}

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Totals {
    /// Programs drawn, from the first seed on.
    pub(super) done: u64,
    /// The sums by kind of program.
    pub(super) sums: BTreeMap<String, Sums>,
    /// Number of programs not compared, by reason.
    pub(super) skipped: BTreeMap<String, u64>,
    /// The differences, one line each.
    pub(super) differences: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    schema: u32,
    words: Words,
    totals: Totals,
}

impl Totals {
    /// Reads the progress from a file; no progress if there is no file yet.
    ///
    /// # Errors
    /// The file cannot be read, holds something else, or belongs to another command.
    pub(super) fn read(path: &Path, words: &Words) -> Result<Totals> {
        let shown = path.display();
        let Some(kept) = kept::read::<Kept>(path, "`moire bench reductions`")? else {
            return Ok(Totals::default());
        };
        if kept.schema != SCHEMA {
            bail!("{shown} was written by another version (schema {}, not {SCHEMA})", kept.schema);
        }
        if kept.words != *words {
            bail!(
                "{shown} belongs to another command: the arguments that decide what is drawn and compared must be the same"
            );
        }
        Ok(kept.totals)
    }

    /// Notes the progress.
    ///
    /// # Errors
    /// The file cannot be written; the old one is still there.
    pub(super) fn write(&self, path: &Path, words: &Words) -> Result<()> {
        kept::write(path, &Kept { schema: SCHEMA, words: words.clone(), totals: self.clone() })
    }

    /// Returns the sums of one kind.
    pub(super) fn of(&mut self, drawn: Drawn) -> &mut Sums {
        let sums = self.sums.entry(drawn.name()).or_default();
        sums.executions.resize(1 + Reductions::settings().len(), 0);
        sums
    }

    pub(super) fn comparisons(&self) -> u64 {
        self.sums.values().map(|s| s.comparisons).sum()
    }

    pub(super) fn add(&mut self, other: Totals) {
        for (name, more) in other.sums {
            let sums = self.sums.entry(name).or_default();
            sums.programs += more.programs;
            sums.comparisons += more.comparisons;
            sums.less += more.less;
            sums.executions.resize(more.executions.len(), 0);
            sums.executions.iter_mut().zip(more.executions).for_each(|(sum, n)| *sum += n);
        }
        for (reason, n) in other.skipped {
            *self.skipped.entry(reason).or_default() += n;
        }
        self.differences.extend(other.differences);
    }

    /// Prints the table, and the programs not compared.
    pub(super) fn tell(&self) {
        let (programs, less) = self.sums.values().fold((0, 0), |(p, l), s| (p + s.programs, l + s.less));
        println!(
            "{programs} programs, {} comparisons of five settings each; {less} left out executions",
            self.comparisons()
        );
        let word = |on: &Reductions| if *on == Reductions::ALL { "all".to_owned() } else { on.to_string() };
        let settings: String = Reductions::settings().iter().map(|on| format!(" {:>10}", word(on))).collect();
        println!("drawn       programs comparisons   less in   executions{settings}");
        for (name, s) in &self.sums {
            let executions: String = s.executions.iter().skip(1).map(|n| format!(" {n:>10}")).collect();
            let all = s.executions.first().copied().unwrap_or(0);
            let Sums { programs, comparisons, less, .. } = s;
            println!("{name:10} {programs:>9} {comparisons:>11} {less:>9} {all:>12}{executions}");
        }
        println!("{} not compared", self.skipped.values().sum::<u64>());
        self.skipped.iter().for_each(|(reason, n)| println!("  {n:8} {reason}"));
        self.differences.iter().for_each(|line| println!("{line}"));
        println!("{} differences", self.differences.len());
    }
}
