//! The table of fates, by kind of mistake.

use super::fate::Fate;
use moire_program::mutate::Mistake;
use std::collections::BTreeMap;

/// Counts of one kind of mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) illegal: usize,
    pub(super) caught: usize,
    pub(super) confirmed: usize,
    pub(super) argued: usize,
    pub(super) open: usize,
    pub(super) undecided: usize,
    pub(super) spent: usize,
    pub(super) wrong: usize,
}

impl Counts {
    fn columns(&self) -> [usize; 8] {
        let Counts { illegal, caught, confirmed, argued, open, undecided, spent, wrong } = *self;
        [illegal, caught, confirmed, argued, open, undecided, spent, wrong]
    }

    pub(super) fn plus(mut self, other: &Self) -> Self {
        self.illegal += other.illegal;
        self.caught += other.caught;
        self.confirmed += other.confirmed;
        self.argued += other.argued;
        self.open += other.open;
        self.undecided += other.undecided;
        self.spent += other.spent;
        self.wrong += other.wrong;
        self
    }
}

/// Counts by kind of mistake, and of the reasons for what is open, argued or undecided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    rows: BTreeMap<Mistake, Counts>,
    reasons: BTreeMap<String, usize>,
}

impl Table {
    pub(super) fn count(&mut self, mistake: Mistake, fate: &Fate) {
        let counts = self.rows.entry(mistake).or_default();
        let (counter, reason) = match fate {
            Fate::Illegal => (&mut counts.illegal, None),
            Fate::Caught => (&mut counts.caught, None),
            Fate::Confirmed(by) => (&mut counts.confirmed, Some(format!("confirmed by {by}"))),
            Fate::Argued(why) => (&mut counts.argued, Some(format!("argued: {why}"))),
            Fate::Open(why) => (&mut counts.open, Some(format!("open: {why}"))),
            Fate::Undecided(why) => (&mut counts.undecided, Some(format!("undecided: {why}"))),
            Fate::Spent => (&mut counts.spent, None),
            Fate::Wrong(_) => (&mut counts.wrong, None),
        };
        *counter += 1;
        if let Some(reason) = reason {
            *self.reasons.entry(without_numbers(&reason)).or_default() += 1;
        }
    }

    /// The sum of all kinds.
    pub(super) fn total(&self) -> Counts {
        self.rows.values().fold(Counts::default(), Counts::plus)
    }

    /// The table as Markdown, and the reasons.
    pub(super) fn print(&self, name: &str) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut out = format!(
            "| {name} | mutants | illegal | caught | confirmed | argued | open | undecided | over budget | wrong |\n|---|{}\n",
            "---:|".repeat(9)
        );
        let rows = self.rows.iter().map(|(mistake, counts)| (mistake.name(), *counts));
        for (kind, counts) in rows.chain([("all", self.total())]) {
            let columns = counts.columns();
            let cells: Vec<String> = columns.iter().map(ToString::to_string).collect();
            out.push_str(&format!(
                "| {kind} | {} | {} |\n",
                columns.iter().sum::<usize>(),
                cells.join(" | ")
            ));
        }
        for (reason, count) in &self.reasons {
            out.push_str(&format!("{count:6} {reason}\n"));
        }
        out
    }
}

/// A reason with `N` for its numbers, so that equal reasons about different lines are one.
fn without_numbers(reason: &str) -> String {
    let mut out = String::new();
    for c in reason.chars() {
        match c.is_ascii_digit() {
            true if out.ends_with('N') => {}
            true => out.push('N'),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fate_has_a_column_and_equal_reasons_are_one() {
        let mut table = Table::default();
        let words = || "line 12".to_owned();
        let fates = [
            Fate::Illegal,
            Fate::Caught,
            Fate::Confirmed(words()),
            Fate::Argued(words()),
            Fate::Open(words()),
            Fate::Undecided(words()),
            Fate::Spent,
            Fate::Wrong(words()),
        ];
        fates.iter().for_each(|fate| table.count(Mistake::Delete, fate));
        table.count(Mistake::Move, &Fate::Open("line 7".into()));
        assert_eq!(table.rows[&Mistake::Delete].columns(), [1; 8]);
        let text = table.print("modules");
        assert!(text.contains("| all | 9 | 1 | 1 | 1 | 1 | 2 | 1 | 1 | 1 |\n"), "{text}");
        assert!(text.contains("     2 open: line N\n"), "{text}");
    }
}
