//! The operational engine: a program of threads that synchronise through counting objects is run once, and that run
//! stands for all.
//!
//! Pure: no I/O, no clock, no environment.

mod admit;
mod carrier;
mod engine;
mod finding;
mod flow;
mod interleave;
mod layout;
mod record;
mod rows;
mod run;
mod settings;
mod state;
mod step;
mod value;

pub use finding::{Abstain, Condition, Finding, Kind};
pub use settings::{Accumulator, PairRelease, Pipeline, Settings};

use engine::{Engine, Mode};
use finding::Stop;
use flow::Flows;
use layout::Layout;
use moire_program::ir::Program;
use run::Ended;
use std::collections::{BTreeMap, BTreeSet};

/// Runs a program in every order: a check of the theorem, for small programs.
///
/// # Errors
/// What this engine does not decide.
pub fn operate_in_every_order(
    program: &Program,
    settings: &Settings,
    limits: &Limits,
) -> Result<Outcome, Abstain> {
    judged(program, settings, limits, true)
}

/// Bounds of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most instructions executed.
    pub steps: u64,
    /// Most kinds of accesses and facts that are told apart.
    pub records: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { steps: 10_000_000, records: 1 << 14 }
    }
}

/// What a program does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What is wrong.
    pub findings: BTreeSet<Finding>,
    /// The limit that was hit.
    pub bounded: Option<String>,
    /// Instructions executed.
    pub steps: u64,
}

impl Outcome {
    /// Kinds of the findings that are more than a broken condition.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        self.findings.iter().filter(|f| f.condition.is_none()).map(|f| f.kind).collect()
    }

    /// Conditions that the run breaks: other runs may do anything.
    pub fn broken(&self) -> BTreeSet<Condition> {
        self.findings.iter().filter_map(|f| f.condition).collect()
    }

    /// The verdicts in words, sorted.
    pub fn words(&self) -> BTreeSet<&'static str> {
        let mut out: BTreeSet<&'static str> = self.findings.iter().map(|f| f.kind.word()).collect();
        if self.bounded.is_some() {
            out.insert("bounded");
        }
        if out.is_empty() {
            out.insert("clean");
        }
        out
    }
}

/// Runs a program.
///
/// # Errors
/// What this engine does not decide.
pub fn operate(program: &Program, settings: &Settings, limits: &Limits) -> Result<Outcome, Abstain> {
    judged(program, settings, limits, false)
}

fn judged(
    program: &Program,
    settings: &Settings,
    limits: &Limits,
    every_order: bool,
) -> Result<Outcome, Abstain> {
    let run = || {
        admit::admit(program)?;
        let (layout, flows) = (Layout::new(program), Flows::new(program)?);
        let together: &[bool] = match settings.pair_release {
            PairRelease::Alone => &[false],
            PairRelease::Together => &[true],
            PairRelease::Either => &[false, true],
        };
        let mut outcome = Outcome::default();
        for together in together {
            let mode = Mode { together: *together, instances: true, every_order };
            let part = widening(limits, |words| {
                let mut engine = Engine::new(program, settings, mode, (&layout, &flows), words);
                let mut state = engine.start()?;
                let ended = if every_order {
                    interleave::run(&mut engine, state, limits.steps)?
                } else {
                    run::run(&mut engine, &mut state, limits.steps)?
                };
                Ok((engine.findings.all, ended, engine.steps))
            })?;
            merge(&mut outcome, part);
        }
        Ok(outcome)
    };
    run().map_err(|stop| match stop {
        Stop::Abstain(abstain) => abstain,
        Stop::Wider => Abstain { what: "more kinds of accesses than the limit".to_owned(), line: 0 },
    })
}

fn merge(outcome: &mut Outcome, (found, ended, steps): (BTreeMap<Finding, usize>, Ended, u64)) {
    outcome.findings.extend(found.into_keys());
    outcome.steps += steps;
    if ended == Ended::Cut {
        outcome.bounded = Some("steps".to_owned());
    }
}

/// Tries wider and wider rows.
fn widening<T>(limits: &Limits, mut run: impl FnMut(usize) -> Result<T, Stop>) -> Result<T, Stop> {
    let mut words = 2;
    loop {
        match run(words) {
            Err(Stop::Wider) if 128 * words <= limits.records => words *= 2,
            done => return done,
        }
    }
}
