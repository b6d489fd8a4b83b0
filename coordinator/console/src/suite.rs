//! Suites of litmus tests with published answers: a folder with `expected.csv`.
//!
//! Contract: `expected.csv` has a header line and the columns file, model, property and expected. If there is a
//! `debated.csv`, the answers of the files in its first column are disputed.

use anyhow::{Context, Result, bail};
use moire_explore::judge::{About, Judgement};
use std::collections::BTreeSet;
use std::path::Path;

/// One row of `expected.csv`.
pub struct Row {
    /// The path of the program from the folder.
    pub file: String,
    /// The shipped model that the suite's model name stands for, if there is one.
    pub model: Option<&'static str>,
    /// The question; its kind follows the last colon.
    pub property: String,
    /// The published answer.
    pub expected: String,
    /// Whether the answer is disputed.
    pub disputed: bool,
}

impl Row {
    /// Reads all rows of a suite.
    ///
    /// # Errors
    /// A file cannot be read, or a row does not have four columns.
    pub fn all(dir: &Path) -> Result<Vec<Row>> {
        let debated = dir.join("debated.csv");
        let debated: BTreeSet<String> = if debated.is_file() {
            rows(&debated)?.into_iter().filter_map(|r| r.into_iter().next()).collect()
        } else {
            BTreeSet::new()
        };
        let one = |row: Vec<String>| match <[String; 4]>::try_from(row) {
            Ok([file, model, property, expected]) => {
                Ok(Row { disputed: debated.contains(&file), model: ours(&model), file, property, expected })
            }
            Err(row) => {
                bail!("expected.csv: a row must have four columns, not {}: {row:?}", row.len())
            }
        };
        rows(&dir.join("expected.csv"))?.into_iter().map(one).collect()
    }

    /// Returns the question about the program.
    pub fn about(&self) -> About {
        if self.kind() == "termination" { About::Hangs } else { About::Conditions }
    }

    fn kind(&self) -> &str {
        self.property.rsplit(':').next().unwrap_or(&self.property)
    }

    /// Words the answer in the vocabulary of `expected.csv`.
    pub fn answer(&self, judgement: &Judgement) -> String {
        if let Some(v) = judgement.verdicts.iter().find(|v| matches!(v.exit_code(), 11)) {
            return format!("{v:?}");
        }
        if judgement.summary.executions().is_none() {
            return "no execution".into();
        }
        let kind = self.kind();
        if kind == "termination" {
            return if judgement.hang.is_some() { "FAIL" } else { "PASS" }.into();
        }
        let holds = judgement.conditions.first().is_some_and(|c| c.holds);
        match (kind, holds) {
            ("assert", true) => "VALID",
            ("assert", false) => "INVALID",
            ("permit" | "check", true) => "SAT",
            ("permit" | "check", false) => "UNSAT",
            (_, true) => "PASS",
            (_, false) => "FAIL",
        }
        .into()
    }
}

fn rows(path: &Path) -> Result<Vec<Vec<String>>> {
    let text =
        crate::bounded::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text
        .lines()
        .skip(1)
        .filter(|l| !l.trim().is_empty())
        .map(|l| l.splitn(4, ',').map(|w| w.trim().to_owned()).collect())
        .collect())
}

/// Maps a suite's model name to the shipped model.
fn ours(theirs: &str) -> Option<&'static str> {
    match theirs {
        "ptx-v6.0" => Some("ptx-6.0"),
        "ptx-v7.5" | "mixedproxy-alloy(ptx7.5)" => Some("ptx-7.5"),
        _ => None,
    }
}
