//! Bounds on numbers and rates: slots, token buckets, and a pace.
//!
//! Contract: memory is bounded by [`PEERS_MAX`] peers, however many there are; a slot is freed when its holder is
//! dropped. Time is monotonic and passed in, so that tests need no clock.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Peers remembered; beyond it a new peer is refused until others have been quiet.
const PEERS_MAX: usize = 65_536;
/// Calls at once, as a multiple of the rate a second.
const CALLS_AT_ONCE: u32 = 10;
/// Messages at once, as a multiple of the rate a second.
const MESSAGES_AT_ONCE: u32 = 4;

/// Slots: so many in all, and so many for each peer.
pub(super) struct Slots {
    total: usize,
    each: usize,
    taken: Mutex<(usize, HashMap<IpAddr, usize>)>,
}

/// A slot that is taken; dropping it gives it back.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    peer: IpAddr,
}

impl Slots {
    pub(super) fn new(total: usize, each: usize) -> Self {
        Self { total, each, taken: Mutex::default() }
    }
    /// A slot for `peer`, if there is one.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Slot> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, own) = (taken.0, taken.1.get(&peer).copied().unwrap_or(0));
        if all >= self.total || own >= self.each {
            return None;
        }
        taken.0 += 1;
        taken.1.insert(peer, own + 1);
        Some(Slot { slots: self.clone(), peer })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.0 = taken.0.saturating_sub(1);
        if let Some(own) = taken.1.get_mut(&self.peer) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.1.remove(&self.peer);
            }
        }
    }
}

/// An allowance that grows back with time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn fill(&mut self, rate: f64, full: f64, now: Instant) {
        let grown = now.saturating_duration_since(self.at).as_secs_f64() * rate;
        (self.left, self.at) = ((self.left + grown).min(full), now);
    }
}

/// One bucket for each peer.
pub(super) struct Buckets {
    rate: f64,
    full: f64,
    peers: Mutex<HashMap<IpAddr, Bucket>>,
}

impl Buckets {
    pub(super) fn new(per_second: u32) -> Self {
        let (rate, full) = (f64::from(per_second), f64::from(per_second.saturating_mul(CALLS_AT_ONCE)));
        Self { rate, full, peers: Mutex::default() }
    }
    /// Whether `peer` may call once more now.
    pub(super) fn allow(&self, peer: IpAddr, now: Instant) -> bool {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.len() >= PEERS_MAX && !peers.contains_key(&peer) {
            // A peer whose bucket is full again is the same as a new one.
            peers.retain(|_, b| {
                b.fill(self.rate, self.full, now);
                b.left < self.full
            });
            if peers.len() >= PEERS_MAX {
                return false;
            }
        }
        let bucket = peers.entry(peer).or_insert(Bucket { left: self.full, at: now });
        bucket.fill(self.rate, self.full, now);
        let allowed = bucket.left >= 1.0;
        if allowed {
            bucket.left -= 1.0;
        }
        allowed
    }
}

/// Holds back one stream of messages to its rate.
pub(crate) struct Pace {
    bucket: Bucket,
    rate: f64,
    full: f64,
}

impl Pace {
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        let (rate, full) = (f64::from(per_second), f64::from(per_second.saturating_mul(MESSAGES_AT_ONCE)));
        Self { bucket: Bucket { left: full, at: now }, rate, full }
    }
    /// How long the next message has to wait.
    pub(crate) fn next(&mut self, now: Instant) -> Duration {
        self.bucket.fill(self.rate, self.full, now);
        self.bucket.left -= 1.0;
        Duration::from_secs_f64((-self.bucket.left).max(0.0) / self.rate.max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u32) -> IpAddr {
        IpAddr::V4(n.into())
    }

    #[test]
    fn slots_are_bounded_in_all_and_a_peer_and_come_back() {
        let slots = Arc::new(Slots::new(3, 2));
        let held: Vec<_> = [1, 1, 2].map(|n| slots.take(peer(n)).unwrap()).into();
        assert!(slots.take(peer(3)).is_none(), "three in all");
        drop(held);
        let one = slots.take(peer(1)).unwrap();
        let _two = slots.take(peer(1)).unwrap();
        assert!(slots.take(peer(1)).is_none(), "two a peer");
        drop(one);
        assert!(slots.take(peer(1)).is_some());
        assert_eq!(slots.taken.lock().unwrap().1.len(), 1, "nothing is kept of those who left");
    }

    #[test]
    fn a_bucket_runs_dry_for_its_peer_alone_and_fills_again() {
        let (buckets, start) = (Buckets::new(2), Instant::now());
        let spent = (0..100).filter(|_| buckets.allow(peer(1), start)).count();
        assert_eq!(spent, 20);
        assert!(buckets.allow(peer(2), start));
        assert!(!buckets.allow(peer(1), start + Duration::from_millis(400)));
        assert!(buckets.allow(peer(1), start + Duration::from_millis(600)));
    }

    #[test]
    fn peers_beyond_the_bound_wait_for_quiet() {
        let (buckets, start) = (Buckets::new(1), Instant::now());
        let all = u32::try_from(PEERS_MAX).unwrap();
        assert!((0..all).all(|n| buckets.allow(peer(n), start)));
        assert!(!buckets.allow(peer(all), start));
        assert!(buckets.allow(peer(all), start + Duration::from_secs(2)));
    }

    #[test]
    fn a_flood_is_slowed_to_its_rate() {
        let (start, mut pace) = (Instant::now(), Pace::new(10, Instant::now()));
        let waits: Vec<_> = (0..50).map(|_| pace.next(start)).collect();
        assert!(waits[..40].iter().all(Duration::is_zero), "{waits:?}");
        assert!((waits[49].as_secs_f64() - 1.0).abs() < 0.05, "ten too many take a second: {waits:?}");
    }
}
