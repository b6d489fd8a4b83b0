//! The events of messages and commits.

use super::{Event, Trial};
use crate::lease::{LeaseId, LeaseTicks, WorkerId};
use moire_corpus::Write;
use moire_proto::v1::{self, from_worker::Message as Up};

impl Trial {
    /// Tells a message of a connected worker.
    pub(crate) fn heard(&self, worker: WorkerId, message: &v1::FromWorker) {
        self.tell(|| {
            let beat = match &message.message {
                Some(Up::Heartbeat(beat)) => beat.leases.as_slice(),
                _ => &[],
            };
            let ticks = beat.iter().map(|l| LeaseTicks { lease: LeaseId(l.lease), ticks: l.ticks });
            Event::Heard { worker, ticks: ticks.collect() }
        });
        if let Some(Up::KillAck(ack)) = &message.message {
            self.tell(|| Event::KillAcked { worker, lease: LeaseId(ack.lease) });
        }
    }

    /// The items of a batch as events, if the trial listens.
    pub(crate) fn items(&self, writes: &[Write]) -> Vec<Event> {
        let items = |write: &Write| match write {
            Write::Items { campaign, items } => {
                let items = items.iter().map(|i| i.item).collect();
                Some(Event::Committed { campaign: campaign.clone(), items })
            }
            _ => None,
        };
        match self.tell {
            Some(_) => writes.iter().filter_map(items).collect(),
            None => Vec::new(),
        }
    }
}
