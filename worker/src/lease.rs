//! One lease: its job, run on an engine, and the reports of its answers.
//!
//! Contract: results go out in item order, and each report names its lease and epoch. A cancelled lease reports nothing more.

use crate::job::{Budget, Cancel, Engine, Item, ItemReport, Plan, Reduced, Source, Verification};
use crate::trial::{Again, Planted, Seen, Slowly, Trial};
use crate::{failpoints, wire};
use moire_explore::Abstain;
use moire_proto::v1::{self, from_worker::Message as Up, lease::Work};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Most items of one report.
const MAX_REPORT_ITEMS: usize = 32;
/// Longest time a result waits for others before it is reported.
const REPORT_AFTER: Duration = Duration::from_millis(200);

/// The way out for the answers of one lease.
pub(crate) struct Desk<'a> {
    pub(crate) cancel: &'a Cancel,
    pub(crate) up: &'a mpsc::Sender<v1::FromWorker>,
    pub(crate) trial: &'a Trial,
}

impl Desk<'_> {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
            && !self.trial.has(Planted::ReportsRevoked)
            && !self.trial.has(Planted::AcksKillEarly)
    }

    /// Waits for the time that an item, or a job, takes in a trial.
    async fn pause(&self, item: u64) {
        if let Some(pace) = &self.trial.pace {
            tokio::time::sleep(pace(item)).await;
        }
    }

    pub(crate) async fn deliver(&self, report: v1::Report) {
        if self.is_cancelled() {
            return;
        }
        let seen = Seen::Report { lease: report.lease, epoch: report.epoch };
        let message = v1::FromWorker { message: Some(Up::Report(report)) };
        let again = match self.trial.again() {
            Again::Never => None,
            Again::Now => Some(message.clone()),
            Again::Later => {
                self.trial.keep(message.clone());
                None
            }
        };
        failpoints::hit(failpoints::REPORT_BEFORE);
        self.trial.tell(|| seen);
        // Fails only when the stream is gone; the lease is then lost as a whole.
        let _ = self.up.send(message).await;
        failpoints::hit(failpoints::REPORT_AFTER);
        if let Some(again) = again {
            let _ = self.up.send(again).await;
        }
    }
}

/// Runs one lease and reports it. Blocks its thread while an engine works.
pub(crate) async fn run(engine: Arc<dyn Engine>, lease: v1::Lease, desk: &Desk<'_>) {
    failpoints::hit(failpoints::LEASE);
    let cancel = desk.cancel;
    let blank = v1::Report { lease: lease.lease, epoch: lease.epoch, ..v1::Report::default() };
    let plan = Arc::new(Plan::from(lease.plan.unwrap_or_default()));
    let last = v1::Report { done: true, ..blank.clone() };
    if !matches!(lease.work, Some(Work::Range(_))) {
        desk.pause(u64::MAX).await;
    }
    match lease.work {
        Some(Work::Range(range)) => {
            let mut report = blank.clone();
            let mut since = Instant::now();
            for index in range.from..range.to {
                if desk.is_cancelled() {
                    return;
                }
                failpoints::hit(failpoints::ITEM);
                let source = Source::Generated { seed: range.seed, profile: range.profile.clone(), index };
                let item = Item { plan: plan.clone(), index, source };
                let answer = caught(unanswered, || engine.run(&item, cancel));
                desk.pause(index).await;
                cancel.tick();
                report.items.push(wire::item_result(index, answer));
                if report.items.len() >= MAX_REPORT_ITEMS || since.elapsed() > REPORT_AFTER {
                    desk.deliver(std::mem::replace(&mut report, blank.clone())).await;
                    since = Instant::now();
                }
            }
            desk.deliver(v1::Report { done: true, ..report }).await;
        }
        Some(Work::Verify(claim)) => {
            let verify = |claim| caught(Verification::Abstained, || engine.verify(&claim, cancel));
            let answer = claim.try_into().map(verify);
            let answer = answer.unwrap_or_else(|e| Verification::Abstained(e.to_string()));
            desk.deliver(v1::Report { verify: Some(wire::verify_result(answer)), ..last }).await;
        }
        Some(Work::Minimise(job)) => {
            let part = wire::part(&job);
            let Ok(claim) = job.claim.unwrap_or_default().try_into() else { return desk.deliver(last).await };
            if let Some(answer) = part.and_then(|part| engine.part(&claim, &part, cancel)) {
                return desk.deliver(v1::Report { minimise: Some(wire::parted(answer)), ..last }).await;
            }
            let budget = Budget { candidates: job.candidates };
            let as_it_is = |_| Reduced { claim: claim.clone(), tried: 0, normal: false };
            let reduced =
                caught(as_it_is, || engine.minimise(&claim, budget, cancel, &mut |_| cancel.tick()));
            let (claim, tried, normal) = (Some(reduced.claim.into()), reduced.tried, reduced.normal);
            let result = v1::MinimiseResult { claim, tried, normal, ..v1::MinimiseResult::default() };
            desk.deliver(v1::Report { minimise: Some(result), ..last }).await;
        }
        Some(Work::Replay(job)) => {
            let item = Item { plan, index: 0, source: Source::Text(job.program) };
            let answer = caught(unanswered, || engine.run(&item, cancel));
            desk.deliver(v1::Report { items: vec![wire::item_result(0, answer)], ..last }).await;
        }
        Some(Work::Explore(job)) => explore(engine, job, &blank, desk).await,
        None => desk.deliver(last).await,
    }
}

/// The answer of an engine. One that panics has a mistake: that costs the item its answer, and not the worker its thread.
fn caught<T>(ended: impl FnOnce(String) -> T, answer: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked");
        ended(format!("the engine ended: {text}"))
    })
}

fn unanswered(why: String) -> ItemReport {
    ItemReport { abstentions: [(why, 1)].into(), ..ItemReport::default() }
}

/// Explores a piece on another thread and reports each change when it comes. In a trial, one change at a time.
async fn explore(engine: Arc<dyn Engine>, job: v1::ExploreJob, blank: &v1::Report, desk: &Desk<'_>) {
    let report = |step, done| v1::Report { explore: Some(step), done, ..blank.clone() };
    let (asked, piece) = match wire::explore_job(job) {
        Ok(job) => job,
        Err(error) => {
            let refused = Abstain { reason: error.to_string(), line: 0 };
            return desk.deliver(report(wire::end(Err(refused)), true)).await;
        }
    };
    if desk.trial.pace.is_some() {
        let mut slowly = Slowly::new(engine, asked, piece);
        while !desk.is_cancelled() {
            match slowly.next(desk.cancel, desk.trial) {
                ControlFlow::Continue(step) => desk.deliver(report(wire::step(step), false)).await,
                ControlFlow::Break(answer) => return desk.deliver(report(wire::end(answer), true)).await,
            }
            desk.pause(u64::MAX).await;
            desk.cancel.tick();
        }
        return;
    }
    let (teller, mut told) = mpsc::unbounded_channel();
    let cancel = desk.cancel.clone();
    let exploring = tokio::task::spawn_blocking(move || {
        // Sending fails only when the connection is gone, and the piece with it.
        let tell = |step| _ = teller.send(step);
        engine.explore(&asked, &piece, &cancel, &tell)
    });
    while let Some(step) = told.recv().await {
        desk.deliver(report(wire::step(step), false)).await;
    }
    match exploring.await {
        Ok(answer) => desk.deliver(report(wire::end(answer), true)).await,
        Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_panics_costs_its_item() {
        let kept = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let nothing: [u8; 0] = [];
        let at = std::hint::black_box(3);
        let report =
            caught(unanswered, || ItemReport { program: [nothing[at]; 32], ..ItemReport::default() });
        let other = caught(Verification::Abstained, || panic!("a mistake"));
        std::panic::set_hook(kept);
        let why: Vec<&String> = report.abstentions.keys().collect();
        assert_eq!(why, ["the engine ended: index out of bounds: the len is 0 but the index is 3"]);
        assert_eq!(other, Verification::Abstained("the engine ended: a mistake".to_owned()));
        assert_eq!(caught(|_| 1, || 2), 2);
    }
}
