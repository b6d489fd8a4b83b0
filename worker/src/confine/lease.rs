//! A lease that a child does, and what is answered where the child ends before it.

use super::Confine;
use super::child::Child;
use crate::job::{ItemReport, Parted, Verification};
use crate::lease::Desk;
use crate::{failpoints, wire};
use moire_explore::Abstain;
use moire_proto::v1::{
    self, explore_step::Step, from_worker::Message as Up, lease::Work, to_worker::Message as Down,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Time between two looks at the requests to a lease.
const LOOK: Duration = Duration::from_millis(5);
/// Time that a child has to end a cancelled lease.
const GRACE: Duration = Duration::from_secs(1);

/// How a child left a lease.
enum Left {
    /// It is over, or cancelled.
    Over,
    /// The child ended before it, for this reason.
    Ended(String),
}

/// How far a lease is.
struct Passed {
    /// The lease is a part of a range: its last report is not the last of the range.
    range: bool,
    /// First item without a report, of a range.
    next: u64,
    /// Whether the last report went out.
    done: bool,
}

impl Confine {
    /// Has a child do a lease, and reports it.
    pub(crate) async fn run(&self, lease: v1::Lease, desk: &Desk<'_>) {
        failpoints::hit(failpoints::LEASE);
        if let Some(Work::Range(range)) = &lease.work {
            return self.range(&lease, range, desk).await;
        }
        // A piece that was begun has changed; anything else gets a second child, in case the first was killed from outside.
        let tries = if matches!(lease.work, Some(Work::Explore(_))) { 1 } else { 2 };
        let mut passed = Passed { range: false, next: 0, done: false };
        let mut left = Left::Over;
        for _ in 0..tries {
            left = self.part(&lease, desk, &mut passed).await;
            if passed.done || matches!(left, Left::Over) {
                return;
            }
        }
        if let Left::Ended(why) = left {
            desk.deliver(unanswered(lease, why)).await;
        }
    }

    /// A range: as a whole, and item by item from where a child ended until the item that ends one is found.
    async fn range(&self, lease: &v1::Lease, range: &v1::Range, desk: &Desk<'_>) {
        let blank = v1::Report { lease: lease.lease, epoch: lease.epoch, ..v1::Report::default() };
        let mut passed = Passed { range: true, next: range.from, done: false };
        let mut alone = false;
        while passed.next < range.to && !desk.is_cancelled() {
            let first = passed.next;
            let to = if alone { first + 1 } else { range.to };
            let work = Work::Range(v1::Range { from: first, to, ..range.clone() });
            let part = v1::Lease { work: Some(work), ..lease.clone() };
            match self.part(&part, desk, &mut passed).await {
                Left::Over if passed.next < to => return,
                Left::Over => {}
                Left::Ended(why) if alone && passed.next == first => {
                    let items = vec![wire::item_result(first, without(why))];
                    desk.deliver(v1::Report { items, ..blank.clone() }).await;
                    (passed.next, alone) = (first + 1, false);
                }
                Left::Ended(_) => alone = true,
            }
        }
        desk.deliver(v1::Report { done: true, ..blank }).await;
    }

    /// Waits until the lease is cancelled: without children there is no answer, and the lease goes to another worker.
    async fn wait(&self, desk: &Desk<'_>, why: &std::io::Error) -> Left {
        tracing::error!(%why, "no process for a lease");
        while !desk.is_cancelled() {
            tokio::time::sleep(LOOK * 10).await;
        }
        Left::Over
    }

    /// Has a child do a lease; its reports go out as they come.
    async fn part(&self, lease: &v1::Lease, desk: &Desk<'_>, passed: &mut Passed) -> Left {
        let mut child = match self.child() {
            Ok(child) => child,
            Err(why) => return self.wait(desk, &why).await,
        };
        child.leases += 1;
        child.send(Down::Lease(lease.clone()));
        let (mut asked, mut stopped, mut ticks) = (false, None::<Instant>, 0);
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = child.frames.recv() => match message.map(|m| m.message) {
                    Some(Some(Up::Report(report))) => {
                        if gives(&report) {
                            desk.cancel.gave();
                            asked = false;
                        }
                        passed.pass(report, desk).await;
                    }
                    Some(Some(Up::Heartbeat(beat))) => {
                        let now = beat.leases.first().map_or(0, |lease| lease.ticks);
                        if now > ticks {
                            ticks = now;
                            desk.cancel.tick();
                        }
                    }
                    Some(Some(Up::KillAck(_))) => {
                        self.keep(child);
                        return Left::Over;
                    }
                    Some(_) => {}
                    None if desk.is_cancelled() => return Left::Over,
                    None => return Left::Ended(ended(child).await),
                },
                _ = looks.tick() => {
                    if desk.cancel.is_wanted() && !asked {
                        asked = true;
                        child.send(Down::Give(v1::Give { lease: lease.lease }));
                    }
                    if desk.is_cancelled() {
                        match stopped {
                            None => child.send(Down::Cancel(v1::CancelLease { lease: lease.lease, ..Default::default() })),
                            Some(since) if since.elapsed() > GRACE => return Left::Over,
                            Some(_) => {}
                        }
                        stopped = stopped.or_else(|| Some(Instant::now()));
                    }
                }
            }
        }
    }
}

/// The reason why a child ended; waits for its end.
async fn ended(child: Child) -> String {
    let why = tokio::task::spawn_blocking(|| child.why()).await;
    why.unwrap_or_else(|e| format!("the engine ended: {e}"))
}

impl Passed {
    /// Passes a report of the child on.
    async fn pass(&mut self, mut report: v1::Report, desk: &Desk<'_>) {
        desk.cancel.tick();
        if self.range {
            report.done = false;
            let Some(last) = report.items.last() else { return };
            self.next = last.item + 1;
        }
        self.done |= report.done;
        desk.deliver(report).await;
    }
}

/// Whether a report gives a part of a piece away.
fn gives(report: &v1::Report) -> bool {
    let step = report.explore.as_ref().and_then(|explore| explore.step.as_ref());
    matches!(step, Some(Step::Given(_)))
}

/// The answer for an item that ended its process.
fn without(why: String) -> ItemReport {
    ItemReport { abstentions: BTreeMap::from([(why, 1)]), ..ItemReport::default() }
}

/// The report of a lease that ended its process.
fn unanswered(lease: v1::Lease, why: String) -> v1::Report {
    let last = v1::Report { lease: lease.lease, epoch: lease.epoch, done: true, ..v1::Report::default() };
    match lease.work {
        Some(Work::Verify(_)) => {
            v1::Report { verify: Some(wire::verify_result(Verification::Abstained(why))), ..last }
        }
        Some(Work::Minimise(job)) => {
            let result = match wire::part(&job) {
                Some(_) => wire::parted(Parted::default()),
                None => v1::MinimiseResult { claim: job.claim, ..v1::MinimiseResult::default() },
            };
            v1::Report { minimise: Some(result), ..last }
        }
        Some(Work::Replay(_)) => v1::Report { items: vec![wire::item_result(0, without(why))], ..last },
        Some(Work::Explore(_)) => {
            v1::Report { explore: Some(wire::end(Err(Abstain { reason: why, line: 0 }))), ..last }
        }
        Some(Work::Range(_)) | None => last,
    }
}
