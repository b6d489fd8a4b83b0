//! A lease that a child does, and what is answered where the child ends before it.

use super::Confine;
use super::child::{Child, End};
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
/// Children that are killed from outside, one after the other without progress, before a lease is given back.
const KILLS_MAX: u32 = 3;
/// Time after such a kill, and once more after each further one: what killed it may pass.
const PAUSE: Duration = Duration::from_millis(200);

/// How a child left a lease.
enum Left {
    /// It is over, or cancelled.
    Over,
    /// The child ended before it.
    Ended(End),
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
        // A piece that was begun has changed; anything else gets a second child.
        let begun = matches!(lease.work, Some(Work::Explore(_)));
        let (tries, kills) = if begun { (1, 1) } else { (2, KILLS_MAX) };
        let mut passed = Passed { range: false, next: 0, done: false };
        let (mut ended, mut killed) = (0, 0);
        loop {
            let left = self.part(&lease, desk, &mut passed).await;
            let Left::Ended(end) = left else { return };
            if passed.done {
                return;
            }
            match end {
                End::Own(_) => ended += 1,
                End::Killed(_) => killed += 1,
            }
            match end {
                End::Own(why) if ended >= tries => return desk.deliver(unanswered(lease, why)).await,
                End::Killed(why) if killed >= kills => return desk.deliver(aborted(&lease, why)).await,
                End::Own(_) => {}
                End::Killed(_) => tokio::time::sleep(PAUSE * killed).await,
            }
        }
    }

    /// A range: as a whole, and item by item from where a child ended until the item that ends one is found.
    async fn range(&self, lease: &v1::Lease, range: &v1::Range, desk: &Desk<'_>) {
        let blank = v1::Report { lease: lease.lease, epoch: lease.epoch, ..v1::Report::default() };
        let mut passed = Passed { range: true, next: range.from, done: false };
        let (mut alone, mut killed) = (false, 0);
        while passed.next < range.to && !desk.is_cancelled() {
            let first = passed.next;
            let to = if alone { first + 1 } else { range.to };
            let work = Work::Range(v1::Range { from: first, to, ..range.clone() });
            let part = v1::Lease { work: Some(work), ..lease.clone() };
            match self.part(&part, desk, &mut passed).await {
                Left::Over if passed.next < to => return,
                Left::Over => {}
                Left::Ended(End::Killed(why)) => {
                    killed = if passed.next > first { 1 } else { killed + 1 };
                    // Items that are reported one by one are not lost again.
                    alone = true;
                    if killed >= KILLS_MAX {
                        return desk.deliver(aborted(lease, why)).await;
                    }
                    tokio::time::sleep(PAUSE * killed).await;
                }
                Left::Ended(End::Own(why)) if alone && passed.next == first => {
                    let items = vec![wire::item_result(first, without(why))];
                    desk.deliver(v1::Report { items, ..blank.clone() }).await;
                    (passed.next, alone) = (first + 1, false);
                }
                Left::Ended(End::Own(_)) => alone = true,
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

/// How a child ended; waits for its end.
async fn ended(child: Child) -> End {
    let end = tokio::task::spawn_blocking(|| child.end()).await;
    end.unwrap_or_else(|e| End::Own(format!("the engine ended: {e}")))
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

/// The report of a lease that is given back, for another worker or another time.
fn aborted(lease: &v1::Lease, why: String) -> v1::Report {
    v1::Report { lease: lease.lease, epoch: lease.epoch, aborted: why, ..v1::Report::default() }
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
