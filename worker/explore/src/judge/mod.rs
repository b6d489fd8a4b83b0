//! What is true of all executions of a program: the verdicts of one model.
//!
//! The checker, the oracles, the tests, the reports and the exit codes all use these words for verdicts.

use crate::reduce::symmetry::Alike;
use crate::search::{Abstain, Descents, LeafView, Limits, Sample, Summary, Visitor, descend, explore};
use moire_cat::Model;
use moire_execution::leaf::{ColumnStall, End, Finding, LeafKind, Stall, Witness};
use moire_program::ir::{Program, Quantifier};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::ops::ControlFlow;

mod marks;
pub use marks::{MARKS_MAX, Marks, judge_marked};

/// Executions from one report of [`judge_watched`] to the next.
const REPORT_INTERVAL: u64 = 256;

/// A verdict about a program under a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Verdict {
    /// Explored completely, with this many executions; nothing wrong, conditions as stated.
    Clean(NonZeroU64),
    /// A stated condition does not hold.
    Condition(String),
    /// Conflicting accesses without the order the model wants.
    Race,
    /// A blocked end state.
    Hang,
    /// An object used outside its life.
    Lifetime,
    /// A documented precondition is broken.
    Protocol,
    /// A wait returned before the event it stands for.
    EarlyPass,
    /// The model gives the program no meaning (a race of tile blocks, of accesses of different sizes), or no execution.
    Undefined,
    /// A limit was hit.
    Bounded(String),
    /// Something no engine models.
    Abstained(String),
}

impl Verdict {
    /// The word of the vocabulary.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Clean(_) => "clean",
            Verdict::Condition(_) => "condition",
            Verdict::Race => "race",
            Verdict::Hang => "hang",
            Verdict::Lifetime => "lifetime",
            Verdict::Protocol => "protocol",
            Verdict::EarlyPass => "early-pass",
            Verdict::Undefined => "undefined",
            Verdict::Bounded(_) => "bounded",
            Verdict::Abstained(_) => "abstained",
        }
    }

    /// Exit code of a command whose worst verdict this is: 0, 10 or 11.
    pub fn exit_code(&self) -> u8 {
        match self {
            Verdict::Clean(_) => 0,
            Verdict::Bounded(_) | Verdict::Abstained(_) => 11,
            _ => 10,
        }
    }
}

/// The answer to one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionResult {
    /// Its name in the text, possibly empty.
    pub name: String,
    /// Its quantifier.
    pub quantifier: Quantifier,
    /// Whether some complete execution satisfies the expression (for `forall`: its negation).
    pub reachable: bool,
    /// Whether the condition as stated holds.
    pub holds: bool,
    /// The first execution that decides it, if one does.
    pub witness: Option<Witness>,
}

/// Everything [`judge`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Never empty; sorted, without duplicates.
    pub verdicts: Vec<Verdict>,
    /// In the order of the text.
    pub conditions: Vec<ConditionResult>,
    /// The first blocked execution: how each thread ended, and the execution.
    pub hang: Option<(Vec<End>, Witness)>,
    /// At the first blocked execution: who waits for which mbarrier, and what its phase lacks.
    pub stalls: Vec<Stall>,
    /// At the same: who waits for columns of tensor memory.
    pub column_stalls: Vec<ColumnStall>,
    /// The first racy execution: the flag raised, and the execution.
    pub race: Option<(String, Witness)>,
    /// For each other flag (`lifetime-..`, `protocol-..`) the first execution that raises it.
    pub broken: BTreeMap<String, Witness>,
    /// What all flags are about, in any execution; nothing unless [`About::All`] is asked.
    pub findings: BTreeSet<Finding>,
    /// Totals.
    pub summary: Summary,
}

impl Judgement {
    /// Whether it was explored completely and nothing is wrong.
    pub fn is_clean(&self) -> bool {
        matches!(self.verdicts[..], [Verdict::Clean(_)])
    }
}

/// What [`judge`] should find out. Asking for less is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Questions {
    /// Keep executions for people.
    pub witnesses: bool,
    /// What is wanted.
    pub about: About,
}

/// What a judgement is about. The totals count what was explored for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// Everything: conditions, hangs, flags.
    All,
    /// The conditions. The exploration ends when each is decided.
    Conditions,
    /// Whether it can hang. The exploration ends at the first hang.
    Hangs,
}

struct Judge<'a> {
    program: &'a Program,
    questions: Questions,
    conditions: Vec<ConditionResult>,
    hang: Option<(Vec<End>, Witness)>,
    stalls: Vec<Stall>,
    column_stalls: Vec<ColumnStall>,
    race: Option<(String, Witness)>,
    broken: BTreeMap<String, Witness>,
    findings: BTreeSet<Finding>,
    mixed: bool,
    /// Some execution is one that the filter of the program leaves in.
    admitted: bool,
}

impl<'a> Judge<'a> {
    fn new(program: &'a Program, questions: Questions) -> Self {
        let conditions = program
            .conditions
            .iter()
            .map(|c| ConditionResult {
                name: c.name.clone(),
                quantifier: c.quantifier,
                reachable: false,
                holds: c.quantifier != Quantifier::Exists,
                witness: None,
            })
            .collect();
        Judge {
            program,
            questions,
            conditions,
            hang: None,
            stalls: Vec::new(),
            column_stalls: Vec::new(),
            race: None,
            broken: BTreeMap::new(),
            findings: BTreeSet::new(),
            mixed: false,
            admitted: program.filter.is_none(),
        }
    }

    fn end(self, explored: Result<Summary, Abstain>) -> Judgement {
        let (summary, abstained) = match explored {
            Ok(summary) => (summary, None),
            Err(abstain) => (Summary::default(), Some(abstain)),
        };
        let verdicts = verdicts(self.program, &self, &summary, abstained.as_ref());
        let Judge { conditions, hang, stalls, column_stalls, race, broken, findings, .. } = self;
        Judgement { verdicts, conditions, hang, stalls, column_stalls, race, broken, findings, summary }
    }

    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        let about = self.questions.about;
        if is_left_out(self.program, leaf) {
            return ControlFlow::Continue(());
        }
        self.admitted = true;
        if leaf.kind() == LeafKind::Blocked {
            if self.hang.is_none() && about != About::Conditions {
                let ends = leaf.facts().key.ends;
                self.hang = Some((ends, self.witness(leaf)));
                self.stalls = leaf.stalls();
                self.column_stalls = leaf.column_stalls();
            }
        } else if about != About::Hangs && self.conditions.iter().any(|c| !c.reachable) {
            self.decide(leaf);
        }
        if about == About::All {
            self.mixed |=
                leaf.flags().iter().any(|f| f.ends_with("-race") && flag_verdict(f) == Verdict::Undefined);
            if !leaf.flags().is_empty() {
                self.findings.extend(leaf.findings());
            }
            for flag in leaf.flags().clone() {
                if !flag.ends_with("-race") {
                    if !self.broken.contains_key(&flag) {
                        let witness = self.witness(leaf);
                        self.broken.insert(flag, witness);
                    }
                } else if self.race.is_none() {
                    self.race = Some((flag, self.witness(leaf)));
                }
            }
        }
        let decided = match about {
            About::All => false,
            About::Conditions => self.conditions.iter().all(|c| c.reachable),
            About::Hangs => self.hang.is_some(),
        };
        if decided { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn witness(&self, leaf: &mut dyn LeafView) -> Witness {
        if self.questions.witnesses { leaf.witness() } else { Witness::default() }
    }

    fn decide(&mut self, leaf: &mut dyn LeafView) {
        for i in reached(self.program, leaf, |i| !self.conditions[i].reachable) {
            let witness = self.questions.witnesses.then(|| leaf.witness());
            let result = &mut self.conditions[i];
            result.reachable = true;
            result.holds = self.program.conditions[i].quantifier == Quantifier::Exists;
            result.witness = witness;
        }
    }
}

/// Whether an execution is complete, and the filter of the program leaves out all its final states.
fn is_left_out(program: &Program, leaf: &mut dyn LeafView) -> bool {
    let filter = program.filter.as_ref().filter(|_| leaf.kind() == LeafKind::Complete);
    filter.is_some_and(|f| !leaf.states().iter().any(|state| state.satisfies(program, f)))
}

/// The conditions, of those that are `open`, that a complete execution decides.
fn reached(program: &Program, leaf: &mut dyn LeafView, open: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    let mut out = BTreeSet::new();
    for state in leaf.states() {
        if program.filter.as_ref().is_some_and(|f| !state.satisfies(program, f)) {
            continue;
        }
        for (i, condition) in program.conditions.iter().enumerate() {
            let wanted = condition.quantifier != Quantifier::ForAll;
            if open(i) && !out.contains(&i) && state.satisfies(program, &condition.expr) == wanted {
                out.insert(i);
            }
        }
    }
    out
}

/// Explores `program` under `model` and says what is true of all its executions.
pub fn judge(program: &Program, model: &Model, limits: &Limits, questions: Questions) -> Judgement {
    judge_watched(program, model, limits, questions, &mut |_| ControlFlow::Continue(()))
}

/// A report of progress: the executions so far, and what is wrong in them.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'j> {
    /// Executions visited.
    pub executions: u64,
    /// Some execution is blocked.
    pub hangs: bool,
    /// The findings so far.
    pub findings: &'j BTreeSet<Finding>,
}

/// The same, with reports of progress: `watch` is called from time to time, and after each execution once something is wrong.
/// Its `Break` ends the exploration soon, as [`crate::Bound::Ended`].
pub fn judge_watched(
    program: &Program,
    model: &Model,
    limits: &Limits,
    questions: Questions,
    watch: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
) -> Judgement {
    let mut watched = Watched { judge: Judge::new(program, questions), executions: 0, watch };
    let explored = explore(program, model, &[], limits, &mut watched);
    let mut judge = watched.judge;
    if limits.reductions.threads {
        judge.findings = Alike::new(program).findings(program, std::mem::take(&mut judge.findings));
    }
    judge.end(explored)
}

/// A judge that reports its progress.
struct Watched<'a> {
    judge: Judge<'a>,
    executions: u64,
    watch: &'a mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
}

impl Watched<'_> {
    fn report(&mut self) -> ControlFlow<()> {
        let hangs = self.judge.hang.is_some();
        (self.watch)(Seen { executions: self.executions, hangs, findings: &self.judge.findings })
    }
}

impl Visitor for Watched<'_> {
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        self.executions += 1;
        let flow = self.judge.leaf(leaf);
        let wrong = self.judge.hang.is_some() || !self.judge.findings.is_empty();
        if wrong || self.executions.is_multiple_of(REPORT_INTERVAL) {
            // Whether it ends is asked again at once, where the exploration can say that it ended.
            let _ = self.report();
        }
        flow
    }

    fn meanwhile(&mut self) -> ControlFlow<()> {
        self.report()
    }
}

/// The same for executions found by random descents. A fact that some of them show is found; one that none shows is not
/// known. There is no estimate of the number of executions if the engine abstains.
pub fn judge_some(
    program: &Program,
    model: &Model,
    descents: Descents<'_>,
    limits: &Limits,
    questions: Questions,
) -> (Judgement, Option<Sample>) {
    let mut judge = Judge::new(program, questions);
    let visitor = &mut |leaf: &mut dyn LeafView| judge.leaf(leaf);
    match descend(program, model, descents, limits, visitor) {
        Ok(sample) => (judge.end(Ok(sample.summary)), Some(sample)),
        Err(abstain) => (judge.end(Err(abstain)), None),
    }
}

/// The verdict a flag stands for: its name starts with it, or ends in `-race`.
pub fn flag_verdict(flag: &str) -> Verdict {
    match flag.split('-').next() {
        Some("lifetime") => Verdict::Lifetime,
        Some("protocol") => Verdict::Protocol,
        Some("early") => Verdict::EarlyPass,
        Some("mixed" | "undefined") => Verdict::Undefined,
        _ => Verdict::Race,
    }
}

fn verdicts(
    program: &Program,
    judge: &Judge<'_>,
    summary: &Summary,
    abstained: Option<&Abstain>,
) -> Vec<Verdict> {
    if let Some(abstain) = abstained {
        return vec![Verdict::Abstained(abstain.to_string())];
    }
    let mut out = Vec::new();
    for (condition, result) in program.conditions.iter().zip(&judge.conditions) {
        // An answer "none does" is only an answer when everything was explored.
        if !result.holds && (result.reachable || summary.bounded.is_none()) {
            out.push(Verdict::Condition(condition.name.clone()));
        }
    }
    if judge.hang.is_some() {
        out.push(Verdict::Hang);
    }
    if judge.mixed {
        out.push(Verdict::Undefined);
    } else if judge.race.is_some() {
        out.push(Verdict::Race);
    }
    out.extend(judge.broken.keys().map(|flag| flag_verdict(flag)));
    out.extend(summary.bounded.map(|b| Verdict::Bounded(b.to_string())));
    match summary.executions() {
        Some(_) if out.is_empty() && !judge.admitted => {
            out.push(Verdict::Bounded("the filter leaves out every execution".to_owned()));
        }
        Some(all) if out.is_empty() => out.push(Verdict::Clean(all)),
        // A dead end need not be the model's.
        None if summary.bounded.is_none() && summary.dead_ends > 0 => {
            out.push(Verdict::Bounded(format!("no execution found, {} dead ends", summary.dead_ends)));
        }
        None if summary.bounded.is_none() => out.push(Verdict::Undefined),
        _ => {}
    }
    out.sort();
    out.dedup();
    out
}
