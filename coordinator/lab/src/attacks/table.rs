//! The table of all attacks: what was done, what had to hold, and what was seen.

use super::clients::{GIVEN_UP, LARGE, SILENT, SLOW};
use super::hostile::Attack;
use super::{Attacked, MEMORY_MIB, Told};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One expectation, over all campaigns.
#[derive(Debug, Default)]
struct Row {
    /// The latest observation, or the first one that was not as expected.
    seen: String,
    failed: bool,
}

/// The rows, by attack and expectation.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: BTreeMap<(String, &'static str), Row>,
    done: BTreeMap<&'static str, u64>,
}

impl Table {
    fn row(&mut self, attack: &str, expected: &'static str, seen: String, holds: bool) {
        let row = self.rows.entry((attack.to_owned(), expected)).or_default();
        if !row.failed {
            *row = Row { seen, failed: !holds };
        }
    }

    /// Adds a campaign that must end as if nobody had attacked it. `answer`: the longest time until an honest client has its
    /// answer.
    pub(super) fn undisturbed(&mut self, quiet: &Told, attacked: &Attacked, answer: Duration) {
        let all = "all at once";
        let told = &attacked.told;
        self.row(all, "the digest of a quiet run", told.digest[..12].to_owned(), told.digest == quiet.digest);
        let (found, wanted) = (told.findings.len(), quiet.findings.len());
        let same = told.findings == quiet.findings;
        self.row(all, "the findings of a quiet run", format!("{found} of {wanted}"), same);
        let (slowest, answers) = (attacked.slowest, attacked.answers);
        let seen = format!("{} ms at most, {answers} answers", slowest.as_millis());
        self.row(all, "an honest client is answered in time", seen, slowest <= answer);
        let peak = attacked.peak_mib;
        self.row(all, "the coordinator stays below 256 MiB", format!("{peak} MiB"), peak < MEMORY_MIB);
        for name in Attack::HARMLESS.map(Attack::name).into_iter().chain([SLOW, SILENT, GIVEN_UP, LARGE]) {
            let n = attacked.counts.all().get(name).copied().unwrap_or(0);
            *self.done.entry(name).or_default() += n;
            let n = self.done[name];
            // In a short run a worker may get no lease for what it does.
            self.row(name, "counted", format!("{n} times"), true);
        }
    }

    /// Adds a campaign in which a worker answers wrongly.
    pub(super) fn believed(&mut self, attacked: &Attacked) {
        let name = Attack::WrongAnswers.name();
        let n = attacked.counts.all().get(name).copied().unwrap_or(0);
        self.row(name, "it is tried", format!("{n} times"), n > 0);
        let seen = format!("{} findings about the fleet", attacked.told.fleet);
        self.row(name, "the store says that workers differ", seen, attacked.told.fleet > 0);
    }

    /// The number of rows that are not as expected.
    pub(super) fn failed(&self) -> usize {
        self.rows.values().filter(|row| row.failed).count()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<36}{:<48}{:<34}outcome", "attack", "expectation", "seen")?;
        for ((attack, expected), row) in &self.rows {
            let outcome = if row.failed { "FAILED" } else { "holds" };
            writeln!(f, "{attack:<36}{expected:<48}{:<34}{outcome}", row.seen)?;
        }
        Ok(())
    }
}
