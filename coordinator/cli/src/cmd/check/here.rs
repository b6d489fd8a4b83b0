//! This process as the one that judges a file: it explores, asks a fleet, or draws descents, and keeps the time.

use super::args::Check;
use super::draw::below;
use super::patience::Patience;
use super::progress::Progress;
use super::spread::Fleet;
use super::telling::Teller;
use anyhow::Result;
use moire_cat::Model;
use moire_console::input::Source;
use moire_explore::Limits;
use moire_explore::judge::{Judgement, Questions, Seen, judge_some, judge_watched};
use moire_explore::search::{Descents, Sample};
use moire_verdict::question::Host;
use moire_worker::job::Cancel;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::cell::RefCell;
use std::ops::ControlFlow;

/// What judges one file.
pub(super) struct Here<'a> {
    args: &'a Check,
    fleet: Option<&'a Fleet>,
    teller: Teller,
    interrupt: &'a Cancel,
}

impl<'a> Here<'a> {
    pub(super) fn new(args: &'a Check, fleet: Option<&'a Fleet>, interrupt: &'a Cancel) -> Self {
        Here { args, fleet, teller: Teller::new(args.format, args.explain_time), interrupt }
    }
}

impl Host for Here<'_> {
    fn judge(
        &self,
        source: &Source,
        (name, model): (&str, &Model),
        limits: &Limits,
        questions: Questions,
        telling: bool,
    ) -> Result<(Judgement, Option<Sample>)> {
        if let Some(fleet) = self.fleet {
            return fleet.judge(source, name, model, limits, questions).map(|j| (j, None));
        }
        let program = &source.program;
        Ok(match self.args.limits.descents {
            None => {
                let mut progress = Progress::new(program, model);
                let mut patience = Patience::new(self.args.after_finding);
                let watch = &mut |seen: Seen<'_>| {
                    progress.at(seen.executions);
                    telling.then(|| self.teller.see(&source.name, program, &seen));
                    match self.interrupt.is_cancelled() || patience.ends(&seen) {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                };
                (judge_watched(program, model, limits, questions, watch), None)
            }
            Some(count) => {
                let numbers = RefCell::new(ChaCha8Rng::seed_from_u64(self.args.limits.seed));
                let below = |n| below(&mut numbers.borrow_mut(), n);
                judge_some(program, model, Descents { count, below: &below }, limits, questions)
            }
        })
    }

    fn more(&self) -> bool {
        self.teller.more()
    }

    fn doubt(&self, larger: bool) {
        self.teller.doubt(larger);
    }

    fn forget(&self) {
        self.teller.forget();
    }
}
