//! The faults of a run and their times, as a function of its seed.

use std::collections::BTreeMap;

/// The random number generator SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Splits off an independent stream with this number.
    pub(super) fn fork(&self, number: u64) -> Self {
        let mut fork = Self(self.0 ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        fork.below(1);
        fork
    }
    /// Draws a number below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n.max(1)
    }
    pub(super) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }
    /// Returns true once in `n` times; never for 0.
    pub(super) fn once_in(&mut self, n: u64) -> bool {
        n > 0 && self.below(n) == 0
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("an index of a slice")]
    }
}

/// A fault, or the end of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Messages between a worker and the coordinator are held back.
    Hold(usize),
    /// Held messages arrive, all at once.
    Release(usize),
    /// Messages are lost, both ways.
    Cut(usize),
    /// Only what the worker sends is lost.
    CutUp(usize),
    /// Only what the coordinator sends is lost.
    CutDown(usize),
    /// Messages are no longer lost.
    Repair(usize),
    /// The connections of a worker end.
    Reset(usize),
    /// A worker's process is killed.
    Kill(usize),
    /// A worker's process is started again.
    Start(usize),
    /// A worker is asked to stop; its service manager starts it again.
    Drain(usize),
    /// The coordinator's process is killed; if true, with half a commit in its log.
    KillCoordinator(bool),
    /// The coordinator's process is started again, on its store.
    StartCoordinator,
}

impl Deed {
    /// Returns the name under which it is counted. The end of a fault is not counted.
    pub(super) fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Hold(_) => "messages held back",
            Self::Cut(_) => "partition",
            Self::CutUp(_) | Self::CutDown(_) => "one-way partition",
            Self::Reset(_) => "connection dropped",
            Self::Kill(_) => "worker killed",
            Self::Drain(_) => "worker drained",
            Self::KillCoordinator(false) => "coordinator killed",
            Self::KillCoordinator(true) => "coordinator killed in a commit",
            Self::Release(_) | Self::Repair(_) | Self::Start(_) | Self::StartCoordinator => return None,
        })
    }
}

/// The properties of a worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Nature {
    pub(super) threads: u32,
    /// Mean time of an item.
    pub(super) item_ms: u64,
    /// One item in this many takes longer than a lease may show no progress.
    pub(super) stuck: u64,
    /// One report in this many is sent twice.
    pub(super) again: u64,
    /// One report in this many is sent once more on the next connection.
    pub(super) later: u64,
    /// How much its clock is slow.
    pub(super) drift: f64,
    /// One in so many items comes with a false claim.
    pub(super) lies: u64,
    /// A lie of every answer.
    pub(super) lie: Option<Lie>,
}

/// What a worker says wrongly, always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// Items need too much memory.
    Memory,
    /// No execution decides anything.
    Unmarked,
    /// Findings do not show any more.
    Refuted,
}

/// From this seed on, workers come from elsewhere and one of them lies; there are no other faults, and everything is done
/// again by another source.
pub(super) const APART: u64 = 1 << 32;

/// The plan of a run: its workers and its faults.
#[derive(Clone, Debug)]
pub(super) struct FaultPlan {
    pub(super) seed: u64,
    pub(super) programs: u64,
    /// Whether all workers also explore one program, besides the campaign.
    pub(super) explores: bool,
    /// Longest latency of a message.
    pub(super) latency_ms: u64,
    pub(super) workers: Vec<Nature>,
    /// The deeds in order of time, with times in milliseconds.
    pub(super) deeds: Vec<(u64, Deed)>,
    /// Whether workers come from elsewhere.
    pub(super) apart: bool,
}

/// Sizes of campaigns.
pub(super) const SIZES: [u64; 3] = [90, 170, 260];

impl FaultPlan {
    /// Makes a plan without faults.
    pub(super) fn quiet(programs: u64) -> Self {
        let worker = Nature { threads: 2, item_ms: 20, ..Nature::default() };
        let workers = vec![worker.clone(), worker];
        Self { seed: 0, programs, explores: true, latency_ms: 10, workers, deeds: Vec::new(), apart: false }
    }

    /// Makes a plan in which the first of three workers lies.
    fn apart(seed: u64) -> Self {
        let mut random = Random(seed).fork(1);
        let lie = [Lie::Memory, Lie::Unmarked, Lie::Refuted][usize::try_from(seed % 3).expect("below 3")];
        let worker = |random: &mut Random| Nature {
            threads: 1,
            item_ms: random.pick(&[15, 40, 90]),
            ..Nature::default()
        };
        let mut workers: Vec<_> = (0..3).map(|_| worker(&mut random)).collect();
        workers[0].lie = Some(lie);
        Self { seed, workers, apart: true, ..Self::quiet(random.pick(&SIZES)) }
    }

    pub(super) fn of(seed: u64) -> Self {
        if seed >= APART {
            return Self::apart(seed);
        }
        let mut random = Random(seed).fork(1);
        let programs = random.pick(&SIZES);
        let latency_ms = random.pick(&[10, 60, 250]);
        let count = random.between(2, 4);
        let workers: Vec<_> = (0..count).map(|_| nature(&mut random)).collect();
        let speed: u64 = workers.iter().map(|w| 10_000 * u64::from(w.threads) / w.item_ms.max(1)).sum();
        // About the time that the campaign takes without faults, and some more.
        let span = programs * 10_000 / speed.max(1) + 6_000;
        let mut deeds = Vec::new();
        for _ in 0..random.between(1, 9) {
            let (at, whom) = (random.between(200, span), random.below(count));
            let whom = usize::try_from(whom).expect("a few workers");
            fault(&mut random, at, whom, &mut deeds);
        }
        let mut apart = Random(seed).fork(3);
        let mut workers = workers;
        if apart.once_in(3) {
            workers[0].lies = apart.pick(&[2, 3, 7]);
        }
        if apart.once_in(4) {
            flap(&mut apart, span, &mut deeds);
        }
        deeds.sort_by_key(|(at, _)| *at);
        let explores = Random(seed).fork(2).once_in(2);
        Self { seed, programs, explores, latency_ms, workers, deeds, apart: false }
    }

    /// Counts the workers of each nature.
    pub(super) fn natures(&self, counts: &mut BTreeMap<&'static str, u64>) {
        let slowest = self.workers.iter().map(|w| w.item_ms).max().unwrap_or(0);
        for worker in &self.workers {
            if worker.item_ms == slowest && slowest > 100 {
                *counts.entry("slow worker").or_default() += 1;
            }
            if worker.lies > 0 {
                *counts.entry("worker with false claims").or_default() += 1;
            }
            if worker.lie.is_some() {
                *counts.entry("worker that always lies").or_default() += 1;
            }
            if worker.drift > 0.0 {
                *counts.entry("slow clock").or_default() += 1;
            }
        }
        if self.latency_ms > 100 {
            *counts.entry("slow network").or_default() += 1;
        }
    }
}

fn nature(random: &mut Random) -> Nature {
    let threads = 1 + u32::from(random.once_in(2));
    let drift = if random.once_in(4) { random.pick(&[0.5, 2.0, 2.9, 4.0]) } else { 0.0 };
    Nature {
        threads,
        item_ms: random.pick(&[15, 40, 90, 300]),
        stuck: random.pick(&[0, 0, 60, 150]),
        again: random.pick(&[0, 4, 12]),
        later: random.pick(&[0, 2, 5]),
        drift,
        lies: 0,
        lie: None,
    }
}

/// A worker that ends soon after each start.
fn flap(random: &mut Random, span: u64, deeds: &mut Vec<(u64, Deed)>) {
    let mut at = random.between(200, span / 2);
    for _ in 0..random.between(10, 40) {
        deeds.push((at, Deed::Kill(0)));
        at += 50;
        deeds.push((at, Deed::Start(0)));
        at += random.between(150, 600);
    }
}

/// Draws a fault and its end.
fn fault(random: &mut Random, at: u64, whom: usize, deeds: &mut Vec<(u64, Deed)>) {
    let long = random.pick(&[150, 1_000, 2_500, 5_000, 9_000]);
    let until = at + random.between(50, long);
    match random.below(10) {
        0 => deeds.extend([(at, Deed::Hold(whom)), (until, Deed::Release(whom))]),
        1 => deeds.extend([(at, Deed::Cut(whom)), (until, Deed::Repair(whom))]),
        2 => deeds.extend([(at, Deed::CutUp(whom)), (until, Deed::Repair(whom))]),
        3 => deeds.extend([(at, Deed::CutDown(whom)), (until, Deed::Repair(whom))]),
        4 => deeds.push((at, Deed::Reset(whom))),
        5 | 6 => deeds.extend([(at, Deed::Kill(whom)), (until, Deed::Start(whom))]),
        7 => deeds.push((at, Deed::Drain(whom))),
        _ => {
            let half = random.once_in(3);
            deeds.extend([(at, Deed::KillCoordinator(half)), (until, Deed::StartCoordinator)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_plan_is_a_function_of_its_seed_and_every_fault_is_drawn() {
        let show = |seed| format!("{:?}", FaultPlan::of(seed));
        assert_eq!(show(7), show(7));
        assert_ne!(show(7), show(8));
        let names: BTreeSet<_> =
            (0..60).flat_map(|s| FaultPlan::of(s).deeds).filter_map(|d| d.1.name()).collect();
        assert_eq!(names.len(), 8, "{names:?}");
        for (at, deed) in (0..60).flat_map(|s| FaultPlan::of(s).deeds) {
            assert!(at < 120_000, "{deed:?} at {at}");
        }
    }
}
