//! The progress of a long exploration, on a terminal.
//!
//! Contract: nothing is printed within the first second, nor if stderr is no terminal. The number of executions is estimated
//! by random descents, so it is printed with its standard error; the remaining time follows from it.

use super::draw::below;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use moire_cat::Model;
use moire_explore::Limits;
use moire_explore::search::{Descents, Estimate, LeafView, descend};
use moire_program::ir::Program;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::cell::RefCell;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Time before anything is printed; most programs are done by then.
const PATIENCE: Duration = Duration::from_secs(1);
/// Descents an estimate is made of, and checks they may take.
const DESCENTS: u64 = 400;
const CHECKS: u64 = 40_000;

/// Of one exploration.
pub(super) struct Progress<'a> {
    program: &'a Program,
    model: &'a Model,
    begin: Instant,
    terminal: bool,
    shown: Option<(ProgressBar, Estimate)>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(program: &'a Program, model: &'a Model) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Progress { program, model, begin: Instant::now(), terminal, shown: None }
    }

    /// Reports the number of executions visited.
    pub(super) fn at(&mut self, executions: u64) {
        let passed = self.begin.elapsed();
        if !self.terminal || passed < PATIENCE {
            return;
        }
        let (program, model) = (self.program, self.model);
        let (bar, of) = self.shown.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{spinner} {msg}").unwrap_or(ProgressStyle::default_spinner());
            (ProgressBar::new_spinner().with_style(style), estimate(program, model))
        });
        bar.set_message(line(executions, *of, passed));
        bar.tick();
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if let Some((bar, _)) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn estimate(program: &Program, model: &Model) -> Estimate {
    let numbers = RefCell::new(ChaCha8Rng::seed_from_u64(0));
    let below = |n| below(&mut numbers.borrow_mut(), n);
    let limits = Limits { checks: CHECKS, ..Limits::default() };
    let nobody = &mut |_: &mut dyn LeafView| ControlFlow::Continue(());
    let sample = descend(program, model, Descents { count: DESCENTS, below: &below }, &limits, nobody);
    sample.map(|s| s.executions).unwrap_or_default()
}

/// `1200 of about 5.1e6 executions (standard error 2e5), 3 minutes left`
fn line(executions: u64, of: Estimate, passed: Duration) -> String {
    let left = (of.mean - executions as f64) / executions.max(1) as f64 * passed.as_secs_f64();
    let left = match Duration::try_from_secs_f64(left) {
        Ok(left) if left > Duration::ZERO => format!(", {} left", HumanDuration(left)),
        _ => String::new(),
    };
    format!("{executions} of about {:.2e} executions (standard error {:.0e}){left}", of.mean, of.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_is_done() {
        let of = Estimate { mean: 3_000.0, error: 20.0 };
        let line = |executions| line(executions, of, Duration::from_secs(60));
        assert_eq!(line(1_000), "1000 of about 3.00e3 executions (standard error 2e1), 2 minutes left");
        assert_eq!(line(3_100), "3100 of about 3.00e3 executions (standard error 2e1)");
    }
}
