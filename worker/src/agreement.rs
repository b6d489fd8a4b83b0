//! Compares the operational engine with the explorer: verdict and kinds of mistakes.
//!
//! The operational engine runs a program once and stops at the cause of a mistake, so it may name fewer kinds than the
//! explorer, which sees all executions. It never names another one. If the run breaks one of the conditions
//! under which it stands for all runs (D1 to D5), it proves nothing, and only its other findings are compared.

use moire_cat::Model;
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, Verdict, judge};
use moire_generate::numbers::Draw;
use moire_operate::{Condition, Kind, Outcome, Planted, Settings, operate, operate_planted};
use moire_program::ir::Program;
use moire_program::lanes::joined;
use moire_program::loops::{free, unroll};
use moire_program::mutate::mutations;
use std::collections::{BTreeMap, BTreeSet};

/// The model whose rules the operational engine executes.
pub const MODEL: &str = "ptx";

/// The kinds of mistakes in words.
pub type Kinds = BTreeSet<&'static str>;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The same verdict and the same kinds.
    Same,
    /// Both find mistakes. The explorer finds more kinds.
    Fewer {
        /// Of the operational engine.
        operational: Kinds,
        /// Of the explorer.
        explorer: Kinds,
    },
    /// The run breaks a condition. The explorer finds all its other findings.
    Broken {
        /// Which.
        conditions: BTreeSet<Condition>,
        /// Kinds of the explorer: none if no execution is wrong.
        explorer: Kinds,
    },
    /// The verdicts differ, or the operational engine names a kind that the explorer does not find.
    Different {
        /// Of the operational engine, with its sentences.
        operational: Box<Outcome>,
        /// Of the explorer.
        explorer: Kinds,
    },
    /// The operational engine does not decide the program.
    Abstained(String),
    /// The explorer does not.
    Undecided(String),
}

/// The explorer's kinds of mistakes.
///
/// An early pass is a reason for another mistake. A race of accesses of different sizes is a race.
///
/// # Errors
/// The reason why the explorer does not decide.
pub fn explored(program: &Program, model: &Model, limits: &Limits) -> Result<Kinds, String> {
    let program = &joined(program);
    let judgement = judge(program, model, limits, Questions { witnesses: false, about: About::All });
    let mut out = BTreeSet::new();
    for verdict in &judgement.verdicts {
        match verdict {
            Verdict::Clean(_) | Verdict::EarlyPass | Verdict::Condition(_) => {}
            Verdict::Abstained(why) | Verdict::Bounded(why) => return Err(why.clone()),
            Verdict::Undefined if judgement.summary.executions().is_none() => {
                return Err("a program without an execution".to_owned());
            }
            Verdict::Undefined => drop(out.insert("race")),
            other => drop(out.insert(other.word())),
        }
    }
    Ok(out)
}

/// The program without questions about final states, which the operational engine does not answer, and with few threads for
/// each warp.
pub fn unquestioned(program: &Program) -> Program {
    let program = Program { conditions: Vec::new(), filter: None, ..program.clone() };
    moire_program::lanes::joined(&program).into_owned()
}

/// The answer of the operational engine under the settings of a model, possibly with a planted bug.
///
/// # Errors
/// The reason why it does not decide.
pub fn operated(program: &Program, model: &Model, planted: Option<Planted>) -> Result<Outcome, String> {
    if model.name() != MODEL {
        return Err(format!("the model {}", model.name()));
    }
    let settings =
        Settings::of(|name| model.variant(name)).map_err(|switch| format!("the reading {switch}"))?;
    let limits = moire_operate::Limits::default();
    let program = &joined(program);
    let outcome = match planted {
        None => operate(program, &settings, &limits),
        Some(bug) => operate_planted(program, &settings, &limits, bug),
    };
    let outcome = outcome.map_err(|abstain| abstain.what)?;
    match &outcome.bounded {
        Some(bound) => Err(format!("bounded: {bound}")),
        None => Ok(outcome),
    }
}

/// Judges a program with both engines. One with free loops is unrolled for the explorer ([`compare_looped`]).
pub fn compare(program: &Program, model: &Model, limits: &Limits) -> Agreement {
    compare_planted(program, model, limits, None)
}

/// [`compare`], possibly with a bug planted in the operational engine.
pub fn compare_planted(
    program: &Program,
    model: &Model,
    limits: &Limits,
    planted: Option<Planted>,
) -> Agreement {
    let program = unquestioned(program);
    if !free(&program).is_empty() {
        return compare_looped(&program, model, limits, planted);
    }
    match operated(&program, model, planted) {
        Err(why) => Agreement::Abstained(why),
        Ok(operational) => match explored(&program, model, limits) {
            Ok(explorer) => agree(operational, explorer),
            Err(why) => Agreement::Undecided(why),
        },
    }
}

/// Most trips of a loop for which the explorer is asked.
const TRIPS: u32 = 4;

/// Judges a program with free loops with both engines: what is clean for every trip count is clean for 0 to 4 trips, of all
/// loops alike and above their least numbers, and a mistake shows with the trip counts of the finding.
pub fn compare_looped(
    program: &Program,
    model: &Model,
    limits: &Limits,
    planted: Option<Planted>,
) -> Agreement {
    let unrolled = |counts: &BTreeMap<String, Vec<u32>>| -> Result<Kinds, String> {
        explored(&unroll(program, counts).map_err(|why| why.to_string())?, model, limits)
    };
    let outcome = match operated(program, model, planted) {
        Ok(outcome) => outcome,
        Err(why) => return Agreement::Abstained(why),
    };
    let found = !outcome.kinds().is_empty();
    let alike =
        |more| outcome.classes.iter().map(|(name, least)| (name.clone(), vec![least + more])).collect();
    let trials = if found { vec![outcome.numbers.clone()] } else { (0..=TRIPS).map(alike).collect() };
    let mut kinds = Kinds::new();
    for (at, counts) in trials.iter().enumerate() {
        match unrolled(counts) {
            Ok(more) if more.is_empty() => {}
            Ok(more) => {
                kinds = more;
                break;
            }
            // Two trip counts at least are compared.
            Err(why) if at < 2 => return Agreement::Undecided(why),
            Err(_) => break,
        }
    }
    agree(outcome, kinds)
}

/// Compares two answers.
pub fn agree(operational: Outcome, explorer: Kinds) -> Agreement {
    let kinds: Kinds = operational.kinds().into_iter().map(Kind::word).collect();
    let conditions = operational.broken();
    if operational.differs.is_some() {
        Agreement::Different { operational: Box::new(operational), explorer }
    } else if kinds == explorer && conditions.is_empty() {
        Agreement::Same
    } else if !kinds.is_subset(&explorer) || (kinds.is_empty() && conditions.is_empty()) {
        Agreement::Different { operational: Box::new(operational), explorer }
    } else if conditions.is_empty() {
        Agreement::Fewer { operational: kinds, explorer }
    } else {
        Agreement::Broken { conditions, explorer }
    }
}

/// The mutant of a number: one mistake in the synchronisation of a program, drawn by number and seed. None if nothing in it
/// synchronises.
pub fn drawn_mutant(program: &Program, number: u64, seed: u64) -> Option<Program> {
    let mut all = mutations(program);
    let mut draw = Draw::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (!all.is_empty()).then(|| {
        let at = draw.below(all.len());
        all.swap_remove(at).made(program).program
    })
}

/// Counts of agreements, and lines about the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The same verdict and kinds.
    pub same: u64,
    /// Fewer kinds of the operational engine.
    pub fewer: u64,
    /// A broken condition, and a mistake that the explorer finds.
    pub broken: u64,
    /// A broken condition, and nothing that the explorer finds.
    pub alone: u64,
    /// Not decided by the explorer.
    pub undecided: u64,
    /// Not decided by the operational engine, by reason.
    pub abstained: BTreeMap<String, u64>,
    /// Programs with a broken condition alone, one line each.
    pub conditions: Vec<String>,
    /// Differences, with both answers.
    pub different: Vec<String>,
}

impl Tally {
    /// Counts a comparison.
    pub fn add(&mut self, name: &str, agreement: Agreement) {
        match agreement {
            Agreement::Same => self.same += 1,
            Agreement::Fewer { .. } => self.fewer += 1,
            Agreement::Broken { conditions, explorer } if explorer.is_empty() => {
                self.alone += 1;
                let words: Vec<&str> = conditions.iter().map(|c| c.text()).collect();
                self.conditions.push(format!("{name}: {}", words.join("; ")));
            }
            Agreement::Broken { .. } => self.broken += 1,
            Agreement::Undecided(_) => self.undecided += 1,
            Agreement::Abstained(why) => *self.abstained.entry(why).or_default() += 1,
            different @ Agreement::Different { .. } => {
                self.different.push(format!("{name}: {}", different.both()));
            }
        }
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: Tally) {
        self.same += other.same;
        self.fewer += other.fewer;
        self.broken += other.broken;
        self.alone += other.alone;
        self.undecided += other.undecided;
        for (why, count) in other.abstained {
            *self.abstained.entry(why).or_default() += count;
        }
        self.conditions.extend(other.conditions);
        self.different.extend(other.different);
    }

    /// Programs that the operational engine decides.
    pub fn accepted(&self) -> u64 {
        let different = self.different.len() as u64;
        self.same + self.fewer + self.broken + self.alone + self.undecided + different
    }

    /// All programs.
    pub fn all(&self) -> u64 {
        self.accepted() + self.abstained.values().sum::<u64>()
    }

    /// Names of the columns of [`Tally::row`].
    pub fn head() -> String {
        format!(
            "{:24} {:>8} {:>8} {:>8} {:>7} {:>7} {:>6} {:>9} {:>9}",
            "", "programs", "accepted", "same", "fewer", "broken", "alone", "undecided", "different"
        )
    }

    /// One row of a table.
    pub fn row(&self, name: &str) -> String {
        let (all, accepted, different) = (self.all(), self.accepted(), self.different.len());
        format!(
            "{name:24} {all:8} {accepted:8} {:8} {:7} {:7} {:6} {:9} {different:9}",
            self.same, self.fewer, self.broken, self.alone, self.undecided
        )
    }
}

impl Agreement {
    /// The answers of both engines in words, of a comparison that found a difference.
    pub fn both(&self) -> String {
        let Agreement::Different { operational, explorer } = self else { return String::new() };
        let words = |all: &BTreeSet<&'static str>| {
            let all: Vec<&str> = all.iter().copied().collect();
            if all.is_empty() { "clean".to_owned() } else { all.join(", ") }
        };
        let texts = operational.findings.iter().map(|f| f.text.as_str()).take(3);
        let texts: Vec<&str> = texts.chain(operational.differs.as_deref()).collect();
        let texts = if texts.is_empty() { String::new() } else { format!(" ({})", texts.join("; ")) };
        format!("operational engine {}{texts}, explorer {}", words(&operational.words()), words(explorer))
    }
}
