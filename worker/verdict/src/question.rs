//! What is asked about a program: the readings of its model, the limits, and what is wanted beside the verdict.

use crate::input::Source;
use anyhow::Result;
use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{Judgement, Questions, Seen, judge_watched};
use moire_explore::search::Sample;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// What is asked about every program.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The model as it is named, with its switches, if it is named.
    pub model: Option<String>,
    /// The switches that are set.
    pub switches: Variants,
    /// Readings taken together, if they are named.
    pub profile: Option<String>,
    /// Whether the verdicts under contesting settings of switches are wanted.
    pub contest: bool,
    /// Whether it is wanted which synchronisation can go.
    pub redundant: bool,
    /// Trip counts of free loops: `NAME=N` or `NAME=N,N,..`.
    pub trips: Vec<String>,
    /// Bounds of each exploration.
    pub limits: Limits,
    /// Processor time that an exploration goes on after its first finding.
    pub after_finding: Duration,
}

impl Question {
    /// The model and the readings, as options of the command that repeats a verdict.
    pub(crate) fn options(&self) -> String {
        let model = self.model.iter().map(|m| format!(" --model {m}"));
        model.chain(self.profile.iter().map(|p| format!(" --profile {p}"))).collect()
    }
}

/// How models are read.
#[derive(Clone, Copy)]
pub struct Library {
    /// A model by its name and the settings of its switches.
    pub load: fn(&str, &Variants) -> Result<Model>,
    /// The text of a file beside a model; none if there is no such file.
    pub beside: fn(&Path) -> Option<String>,
}

/// The process that judges one file: it explores, keeps the time, and may tell what is found so far.
pub trait Host {
    /// Explores a program under a model, which the user calls `name`. With `telling`, what is found may be told at once.
    ///
    /// # Errors
    /// Those that explore for this process are lost.
    fn judge(
        &self,
        source: &Source,
        model: (&str, &Model),
        limits: &Limits,
        questions: Questions,
        telling: bool,
    ) -> Result<(Judgement, Option<Sample>)>;

    /// Whether explanations have time left.
    fn more(&self) -> bool;

    /// From now on, whether a larger launch decides if a hang stands.
    fn doubt(&self, larger: bool);

    /// Forgets what is found and not told yet: a larger launch decides.
    fn forget(&self);
}

/// A process that tells nothing. Explanations have a number of steps instead of a time, so that an answer depends on no clock.
pub struct Quiet<'a> {
    left: Cell<u32>,
    stops: &'a dyn Fn() -> bool,
}

impl<'a> Quiet<'a> {
    /// `steps` is how often explanations may ask whether they have time; an exploration ends when `stops` says so.
    pub fn new(steps: u32, stops: &'a dyn Fn() -> bool) -> Self {
        Quiet { left: Cell::new(steps), stops }
    }
}

impl Host for Quiet<'_> {
    fn judge(
        &self,
        source: &Source,
        (_, model): (&str, &Model),
        limits: &Limits,
        questions: Questions,
        _: bool,
    ) -> Result<(Judgement, Option<Sample>)> {
        let watch = &mut |_: Seen<'_>| {
            if (self.stops)() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        Ok((judge_watched(&source.program, model, limits, questions, watch), None))
    }

    fn more(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    fn doubt(&self, _: bool) {}

    fn forget(&self) {}
}
