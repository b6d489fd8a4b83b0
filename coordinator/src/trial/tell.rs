//! What the core tells of messages and commits.

use super::Event;
use crate::core::Core;
use crate::lease::WorkerId;
use moire_corpus::Write;
use moire_proto::v1::{self, from_worker::Message as Up};

impl Core {
    /// A message of a worker that is here.
    pub(crate) fn tell_heard(&self, worker: WorkerId, message: &v1::FromWorker) {
        if !self.fleet.knows(worker) {
            return;
        }
        self.trial.tell(|| {
            let beat = match &message.message {
                Some(Up::Heartbeat(beat)) => beat.leases.as_slice(),
                _ => &[],
            };
            Event::Heard { worker, ticks: beat.iter().map(|l| (l.lease, l.ticks)).collect() }
        });
        if let Some(Up::KillAck(ack)) = &message.message {
            self.trial.tell(|| Event::KillAcked { worker, lease: ack.lease });
        }
    }
}

impl super::Trial {
    /// The items of a batch, if anybody wants to know.
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
