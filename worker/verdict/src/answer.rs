//! The answer for one file: verdicts, findings, executions, assumptions, coverage and advice, each fact once. Text, JSON, SARIF,
//! JUnit and the Python module say it in their ways.

use crate::door::Second;
use crate::execution::Execution;
use crate::finding::Finding;
use crate::input::Rejected;
use crate::kernel::{Call, Launched, Piece, SourcePlace, Taken, piece_of, source_places};
use crate::mending::{Advice, Redundant};
use crate::problem::Problem;
use crate::proof::Operational;
use crate::readings::Profile;
use crate::stale::Stale;
use crate::verdicts::{Verdicts, union};
use crate::waiting::Waits;
use anyhow::Error;
use moire_cat::{Model, Variants};
use moire_explore::Summary;
use moire_explore::judge::Verdict;
use moire_explore::search::Sample;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the form.
pub const VERSION: u32 = 2;

/// The answer for one file, or for one kernel of a module.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    /// The version of this form.
    #[schemars(range(min = 2, max = 2))]
    pub version: u32,
    /// The file.
    pub file: String,
    /// The kernel, where the module has several.
    pub kernel: Option<String>,
    /// Those of all parts together. What no launch runs bounds a clean answer.
    pub verdicts: Verdicts,
    /// Errors and advice of the static rules, or the reason why the file is not read.
    pub remarks: Vec<Rejected>,
    /// The model.
    pub model: Option<String>,
    /// Its switches.
    pub switches: Variants,
    /// What was explored on its own: clusters that have nothing in common, and other launches that show more. None if the
    /// file is rejected.
    pub parts: Vec<Part>,
    /// The answer of the operational engine, for a text with free loops.
    pub operational: Option<Operational>,
    /// What is taken for granted, by line.
    pub taken: Vec<Taken>,
    /// The launch that the verdicts are about, of a kernel.
    pub launch: Option<Launched>,
    /// The settings of single switches that change the verdicts.
    pub contested: Vec<Contest>,
    /// What is wrong, each once.
    pub problems: Vec<Problem>,
    /// The lines that findings, waits and executions name.
    pub lines: BTreeMap<u32, Line>,
    /// What the command line says beside the launch, for the command that repeats the verdict.
    #[serde(skip)]
    pub(crate) options: String,
    /// The files whose lines are counted through, with the lines before each.
    #[serde(skip)]
    pub(crate) files: Vec<(String, u32)>,
}

/// What is known of a program that was explored on its own.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Part {
    /// Its verdicts.
    pub verdicts: Verdicts,
    /// The command of the launch that it belongs to, if that is not the launch of the answer.
    pub launch: Option<String>,
    /// Its threads, in order.
    pub threads: Vec<String>,
    /// What was visited.
    pub visited: Visited,
    /// Its conditions, in the order of the text.
    pub conditions: Vec<Condition>,
    /// The threads that wait for ever.
    pub hang: Option<Hang>,
    /// The executions that show what is wrong, each once.
    pub executions: Vec<Shown>,
    /// What is wrong in any execution.
    pub findings: Vec<Finding>,
    /// The answer under the readings that are not in use.
    pub profile: Option<Profile>,
    /// Reads of a kernel without a finding that may be stale.
    pub stale: Vec<Stale>,
    /// The edits that mend it.
    pub advice: Option<Advice>,
    /// The synchronisation that can go, if it was asked for.
    pub redundant: Option<Redundant>,
    /// What the operational engine says of it, and which engine answered.
    pub second: Option<Second>,
    /// Of random descents.
    pub descents: Option<Descended>,
}

/// What an exploration visited.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Visited {
    /// Complete executions.
    pub executions: u64,
    /// Executions that end blocked.
    pub blocked: u64,
    /// States that led to no execution.
    pub dead_ends: u64,
    /// Consistency checks.
    pub checks: u64,
    /// Parts that were left out for symmetric threads.
    pub cut_threads: u64,
    /// Parts that were left out for accesses that no condition observes.
    pub cut_unseen: u64,
}

impl From<Summary> for Visited {
    fn from(s: Summary) -> Self {
        Visited {
            executions: s.complete,
            blocked: s.blocked,
            dead_ends: s.dead_ends,
            checks: s.checks,
            cut_threads: s.cut.threads,
            cut_unseen: s.cut.unseen,
        }
    }
}

/// A condition of a litmus text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Condition {
    /// Its name, possibly empty.
    pub name: String,
    /// `exists`, `~exists` or `forall`.
    pub quantifier: &'static str,
    /// Whether some complete execution satisfies the expression (for `forall`: its negation).
    pub reachable: bool,
    /// Whether it holds as stated; none if it is not decided: what was not seen may still be there.
    pub holds: Option<bool>,
    /// The first execution that decides it.
    pub execution: Option<Execution>,
}

/// A blocked execution.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Hang {
    /// Who waits, and for what.
    pub who: String,
    /// The line at which the first of them waits; 0 if it is not known.
    pub line: u32,
    /// The threads that wait.
    pub waits: Vec<Waits>,
}

/// An execution that shows something wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Shown {
    /// What it shows: `hang`, or the rules that are broken in it.
    pub shows: Vec<String>,
    /// The execution.
    #[serde(flatten)]
    pub execution: Execution,
}

/// What random descents gave.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Descended {
    /// Those that were made.
    pub made: u64,
    /// Those of them that ended at no execution.
    pub lost: u64,
    /// Different executions that were visited.
    pub different: u64,
    /// Ways in which two events communicated.
    pub communications: usize,
    /// About how many executions there are.
    pub estimate: f64,
    /// The standard error of the estimate.
    pub standard_error: f64,
}

impl From<Sample> for Descended {
    fn from(s: Sample) -> Self {
        Descended {
            made: s.descents,
            lost: s.lost,
            different: s.different,
            communications: s.communications,
            estimate: s.executions.mean,
            standard_error: s.executions.error,
        }
    }
}

/// A setting of one switch, and the verdicts it gives instead.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Contest {
    /// `SWITCH=VALUE`.
    pub setting: String,
    /// The verdicts.
    pub verdicts: Verdicts,
}

/// A line of the text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Line {
    /// As it stands there, without the blanks around it.
    pub text: String,
    /// The column at which it begins, in characters from 1.
    pub column: usize,
    /// Where it is, if that is not the file of the answer: the lines of several files are counted through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Call>,
    /// The place in the source of a kernel that it comes from, if the module says.
    pub source: Option<SourcePlace>,
}

impl Part {
    /// Everything that is wrong with it, under any reading.
    fn all_findings(&self) -> impl Iterator<Item = &Finding> {
        let contested = self.profile.iter().flat_map(|p| &p.contested).flat_map(|c| &c.findings);
        self.findings.iter().chain(contested)
    }

    /// The lines of findings, waits and executions.
    fn lines(&self) -> Vec<u32> {
        let waits = self.hang.iter().flat_map(|h| &h.waits).map(|w| w.line);
        let decided = self.conditions.iter().filter_map(|c| c.execution.as_ref());
        let executions = self.executions.iter().map(|e| &e.execution).chain(decided);
        let events = executions.flat_map(|e| &e.events).map(|e| e.line);
        self.all_findings().flat_map(Finding::lines).chain(waits).chain(events).collect()
    }
}

impl Answer {
    /// An answer about a program of this text. It has no verdicts before it is complete.
    pub(crate) fn new(name: &str, model: &Model, parts: Vec<Part>, options: String) -> Self {
        Answer {
            model: Some(model.name().to_owned()),
            switches: model.variants().clone(),
            parts,
            options,
            ..Answer::rejected(name, Vec::new())
        }
    }

    /// The answer for a file that is no program, or one that is statically illegal: every error.
    pub fn rejected(file: &str, remarks: Vec<Rejected>) -> Self {
        Answer {
            version: VERSION,
            file: file.to_owned(),
            kernel: None,
            verdicts: Verdicts(Vec::new()),
            remarks,
            model: None,
            switches: Variants::new(),
            parts: Vec::new(),
            operational: None,
            taken: Vec::new(),
            launch: None,
            contested: Vec::new(),
            problems: Vec::new(),
            lines: BTreeMap::new(),
            options: String::new(),
            files: Vec::new(),
        }
    }

    /// The answer for a file that is not judged.
    pub fn failed(file: &str, error: Error) -> Self {
        let remark = error.downcast::<Rejected>().unwrap_or_else(|error| Rejected::unread(file, &error));
        Answer::rejected(file, vec![remark])
    }

    /// The answer with what follows from its parts: verdicts, the command that repeats it, and the lines of the files that it names.
    pub(crate) fn complete(mut self, pieces: &[Piece]) -> Self {
        if self.parts.is_empty() {
            return self;
        }
        if let Some(launch) = &mut self.launch {
            self.taken.append(&mut launch.taken);
            launch.complete(&self.options);
            self.kernel = launch.recorded.clone().or_else(|| launch.several.then(|| launch.entry.clone()));
        }
        self.verdicts = Verdicts(self.all_verdicts());
        self.files = pieces.iter().map(|p| (p.name.clone(), p.before)).collect();
        let lines: BTreeSet<u32> = self.parts.iter().flat_map(Part::lines).collect();
        self.lines = pieces.iter().flat_map(|piece| named(pieces, piece, &lines)).collect();
        self
    }

    /// The verdicts of all parts. What the launch does not run bounds a clean answer, and that of a launch that was refused.
    fn all_verdicts(&self) -> Vec<Verdict> {
        let all = union(self.parts.iter().map(|p| &p.verdicts.0));
        let coverage = [Verdict::Bounded("coverage".to_owned())];
        let mut covered = self.launch.iter().flat_map(Launched::all).filter_map(|l| l.coverage.as_ref());
        match covered.find(|c| !c.uncovered.is_empty()).map(|c| c.of.is_some()) {
            Some(_) if matches!(all[..], [Verdict::Clean(_)]) => coverage.into(),
            Some(true) if !Verdicts(all.clone()).has_finding() => all.into_iter().chain(coverage).collect(),
            _ => all,
        }
    }

    /// The file of a line, and which of its lines it is.
    pub fn place(&self, line: u32) -> (&str, u32) {
        let of = self.files.iter().rev().find(|f| f.1 > 0 && f.1 < line);
        of.map_or((&self.file, line), |(file, before)| (file, line - before))
    }

    /// The exit codes of the answer; with `strict`, what is wrong by the letter only counts. There is none of a finding if every
    /// problem that counts is known or suppressed.
    pub fn codes(&self, strict: bool) -> Vec<u8> {
        let letter = strict && self.parts.iter().any(|p| p.profile.as_ref().is_some_and(|p| p.is_worse()));
        let contested = (letter || !self.contested.is_empty()).then_some(crate::exit::FINDING);
        let mut counted = self.problems.iter().filter(|p| p.counts(strict)).peekable();
        let known = counted.peek().is_some() && !counted.any(|p| p.fails(strict));
        let all = self.verdicts.codes().into_iter().chain(contested);
        all.filter(|code| !known || *code != crate::exit::FINDING).collect()
    }

    /// The file, with the kernel where the module has several.
    pub fn title(&self) -> String {
        let own = match &self.kernel {
            Some(kernel) => format!("{} ({kernel})", self.file),
            None => self.file.clone(),
        };
        let then = self.launch.iter().flat_map(|l| &l.then).map(|l| match l.several {
            true => format!(", then {} ({})", l.file, l.entry),
            false => format!(", then {}", l.file),
        });
        own + &then.collect::<String>()
    }

    /// The clusters of a part, where there are several parts, or the other launch that it belongs to.
    pub fn part_title(&self, part: usize) -> Option<String> {
        if let Some(command) = self.parts.get(part).and_then(|p| p.launch.as_ref()) {
            return Some(format!("in another launch, {command}"));
        }
        let clusters = self.launch.as_ref()?.parts.get(part).filter(|_| self.parts.len() > 1)?;
        let one = |c: &Vec<u32>| c.iter().map(u32::to_string).collect::<Vec<_>>().join("+");
        Some(format!("clusters {}", clusters.iter().map(one).collect::<Vec<_>>().join(", ")))
    }
}

/// Those of the lines that are in a piece.
fn named(pieces: &[Piece], piece: &Piece, lines: &BTreeSet<u32>) -> Vec<(u32, Line)> {
    let here = lines.iter().filter(|l| std::ptr::eq(piece_of(pieces, **l), piece));
    let own: BTreeSet<u32> = here.filter_map(|l| l.checked_sub(piece.before)).collect();
    let mut sources = source_places(&piece.text, &own);
    let one = |(n, text): (u32, &str)| {
        let file = (piece.before > 0).then(|| Call { file: piece.name.clone(), line: n });
        let column = text.chars().take_while(|c| c.is_whitespace()).count() + 1;
        let line = Line { text: text.trim().to_owned(), column, file, source: sources.remove(&n) };
        (piece.before + n, line)
    };
    (1..).zip(piece.text.lines()).filter(|(n, _)| own.contains(n)).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// `MOIRE_SCHEMA=write` writes it.
    #[test]
    fn the_published_schema_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/schema/check.json");
        let current = schemars::generate::SchemaSettings::draft2020_12().for_serialize().into_generator();
        let current = serde_json::to_string_pretty(&current.into_root_schema_for::<Answer>()).unwrap() + "\n";
        if std::env::var("MOIRE_SCHEMA").is_ok_and(|v| v == "write") {
            std::fs::write(&path, &current).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == current,
            "run this test with MOIRE_SCHEMA=write, and raise VERSION if a reader breaks"
        );
    }
}
