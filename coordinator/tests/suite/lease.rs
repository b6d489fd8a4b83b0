//! Properties of the lease state machine under random workers: no item is lost or taken twice, clocks and epochs are
//! respected, shares are fair, priorities hold.

use moire_coordinator::lease::*;
use std::collections::{BTreeMap, BTreeSet};

/// SplitMix64, so that the faults of a run are a function of its seed.
struct Random(u64);
impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

fn spec(to: u64, batch: u64, weight: u32) -> CampaignSpec {
    CampaignSpec {
        epoch: 7,
        weight,
        missing: std::iter::once(0..to).collect(),
        batch,
        ..CampaignSpec::default()
    }
}

/// Simulates a random fleet. Returns the items taken and the items quarantined.
fn live(seed: u64, items: u64) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let mut random = Random(seed);
    let config = Config { liveness_ms: 50, progress_ms: 80, kill_ms: 30, ..Config::default() };
    let mut fleet = Scheduler::new(config);
    fleet.campaign("c", spec(items, 1 + random.below(9), 1));
    let (mut taken, mut given_up) = (BTreeSet::new(), BTreeSet::new());
    let mut held: BTreeMap<LeaseId, (WorkerId, u64, u64)> = BTreeMap::new();
    let mut workers = BTreeSet::new();
    for now in 0..200_000 {
        let faulty = now < 5_000;
        for action in fleet.poll(now) {
            match action {
                Action::Grant { worker, lease, epoch, grant } => {
                    let Work::Range { from, to } = grant.work else { panic!("no jobs here") };
                    assert_eq!(epoch, 7);
                    assert!((from..to).all(|i| !taken.contains(&i)), "a taken item is leased again");
                    held.insert(lease, (worker, from, to));
                }
                Action::Cancel { worker, lease, .. } => {
                    held.remove(&lease);
                    if !faulty || random.below(4) > 0 {
                        fleet.kill_ack(worker, lease, now);
                    }
                }
                Action::Disconnect { worker, .. } => {
                    assert!(workers.remove(&worker));
                    held.retain(|_, l| l.0 != worker);
                }
                Action::Quarantine { item, .. } => assert!(given_up.insert(item) && !taken.contains(&item)),
                Action::JobFailed { .. } => panic!("no jobs here"),
            }
        }
        let ranges: Vec<_> = held.values().collect();
        let disjoint = |a: &&(WorkerId, u64, u64), b: &&(WorkerId, u64, u64)| a.2 <= b.1 || b.2 <= a.1;
        assert!(ranges.iter().enumerate().all(|(i, a)| ranges[i + 1..].iter().all(|b| disjoint(a, b))));
        if taken.len() + given_up.len() == usize::try_from(items).unwrap() && held.is_empty() {
            break;
        }
        if workers.len() < 3 {
            let id = fleet.hello(BTreeSet::new(), "f", now).unwrap();
            fleet.credit(id, 2, now);
            workers.insert(id);
        }
        let Some((&lease, &(worker, from, to))) = held.iter().nth(usize::try_from(random.below(4)).unwrap())
        else {
            continue;
        };
        match random.below(if faulty { 12 } else { 6 }) {
            0..=3 => {
                fleet.heartbeat(worker, &[LeaseTicks { lease, ticks: now }], now);
                assert!(fleet.check(worker, lease, 8, now).is_none(), "a wrong epoch is refused");
                assert!(
                    fleet.check(WorkerId(worker.0 + 1_000_000), lease, 7, now).is_none(),
                    "a foreign lease is refused"
                );
                assert!(fleet.check(worker, lease, 7, now).is_some());
                if let Some(item) = (from..to).find(|i| !taken.contains(i)) {
                    assert!(fleet.take_item(lease, item) && taken.insert(item));
                    assert!(!fleet.take_item(lease, item), "repeating is harmless");
                }
            }
            4..=7 if (from..to).all(|i| taken.contains(&i)) => {
                fleet.done(lease);
                fleet.credit(worker, 1, now);
                held.remove(&lease);
            }
            4..=7 => {}
            8 => {
                fleet.disconnect(worker);
                workers.remove(&worker);
                held.retain(|_, l| l.0 != worker);
            }
            _ => {} // A silent worker, which the clocks find.
        }
    }
    (taken, given_up)
}

#[test]
fn every_item_is_taken_once_or_quarantined() {
    for seed in 0..300 {
        let items = 1 + seed % 60;
        let (taken, given_up) = live(seed, items);
        assert!(taken.is_disjoint(&given_up));
        assert_eq!(taken.union(&given_up).count() as u64, items, "seed {seed}");
    }
}

/// `Draining` once did not count as a sign of life (`moire bench cluster --runs 1 --seed 101820`).
#[test]
fn every_message_is_a_sign_of_life() {
    let config = Config { liveness_ms: 100, progress_ms: 10_000, ..Config::default() };
    let say: [fn(&mut Scheduler, WorkerId, u64); 5] = [
        |fleet, worker, now| fleet.credit(worker, 0, now),
        |fleet, worker, now| fleet.heartbeat(worker, &[], now),
        |fleet, worker, now| fleet.drain(worker, now),
        |fleet, worker, now| fleet.kill_ack(worker, LeaseId(99), now),
        |fleet, worker, now| assert!(fleet.check(worker, LeaseId(99), 1, now).is_none()),
    ];
    for (message, say) in say.into_iter().enumerate() {
        let mut fleet = Scheduler::new(config);
        let worker = fleet.hello(BTreeSet::new(), "f", 0).unwrap();
        say(&mut fleet, worker, 90);
        assert!(fleet.poll(150).is_empty(), "message {message}");
        assert_eq!(fleet.poll(191), [Action::Disconnect { worker, clock: "liveness" }]);
    }
}

#[test]
fn an_item_that_kills_its_workers_is_quarantined_alone() {
    let mut fleet = Scheduler::new(Config::default());
    fleet.campaign("c", spec(8, 8, 1));
    let mut quarantined = Vec::new();
    for now in 0..100 {
        let id = fleet.hello(BTreeSet::new(), "f", now).unwrap();
        fleet.credit(id, 1, now);
        for action in fleet.poll(now) {
            match action {
                Action::Grant { lease, grant: Grant { work: Work::Range { from, to }, .. }, .. } => {
                    (from..to).take_while(|i| *i != 3).for_each(|i| assert!(fleet.take_item(lease, i)));
                    if !(from..to).contains(&3) {
                        fleet.done(lease);
                    }
                }
                Action::Quarantine { item, .. } => quarantined.push(item),
                other => panic!("{other:?}"),
            }
        }
        fleet.disconnect(id);
    }
    assert_eq!(quarantined, [3]);
}

#[test]
fn urgent_jobs_first_and_verification_elsewhere() {
    let mut fleet = Scheduler::new(Config::default());
    fleet.campaign("c", spec(100, 10, 1));
    let [a, b] = [0, 1].map(|_| fleet.hello(BTreeSet::new(), "f", 0).unwrap());
    let verify = fleet.job("c", Kind::Verify, Some(a));
    let minimise = fleet.job("c", Kind::Minimise, None);
    fleet.credit(a, 2, 0);
    let works = |actions: Vec<Action>| {
        let work = |a: Action| {
            if let Action::Grant { worker, grant, .. } = a { Some((worker, grant.work)) } else { None }
        };
        actions.into_iter().filter_map(work).collect::<Vec<_>>()
    };
    assert_eq!(works(fleet.poll(0)), [(a, Work::Job(minimise)), (a, Work::Range { from: 0, to: 10 })]);
    fleet.credit(b, 1, 0);
    assert_eq!(works(fleet.poll(0)), [(b, Work::Job(verify))]);
    fleet.drain(b, 0);
    let again = fleet.job("c", Kind::Verify, Some(a));
    fleet.credit(a, 1, 0);
    assert_eq!(works(fleet.poll(0)), [(a, Work::Job(again))], "the only worker verifies itself");
    let c = fleet.hello(BTreeSet::new(), "f", 0).unwrap();
    fleet.run_campaign("c", false);
    let waits = fleet.job("", Kind::Verify, Some(a));
    fleet.credit(a, 1, 0);
    assert_eq!(works(fleet.poll(0)), [], "it waits for another worker");
    fleet.heartbeat(a, &[], 10_001);
    fleet.heartbeat(c, &[], 10_001);
    assert_eq!(works(fleet.poll(10_001)), [(a, Work::Job(waits))], "no other worker has come");
}

/// Who takes a job and goes away takes none of its time: the others are waited for as long as before.
#[test]
fn a_job_that_was_lost_has_waited_for_nobody() {
    let mut fleet = Scheduler::new(Config::default());
    let [claims, freezes, honest] = [0; 3].map(|_| fleet.hello(BTreeSet::new(), "f", 0).unwrap());
    let job = fleet.job("", Kind::Verify, Some(claims));
    fleet.avoid(job, [], true);
    fleet.credit(freezes, 1, 0);
    assert_eq!(fleet.poll(0).len(), 1, "it is taken");
    let late = 20_000;
    [claims, honest].iter().for_each(|w| fleet.heartbeat(*w, &[], late));
    fleet.poll(late);
    assert!(fleet.knows_job(job) && !fleet.in_vain(job, late + 1), "nobody has had the time to take it");
    fleet.credit(honest, 1, late);
    let granted = fleet.poll(late + 1);
    let honest_has = |a: &Action| matches!(a, Action::Grant { worker, .. } if *worker == honest);
    assert!(granted.iter().any(honest_has), "{granted:?}");
}

#[test]
fn a_job_waits_for_a_worker_with_its_tool_while_one_is_connected() {
    let mut fleet = Scheduler::new(Config::default());
    let bare = fleet.hello(BTreeSet::new(), "f", 0).unwrap();
    let equipped = fleet.hello(["tileiras".to_owned()].into(), "f", 0).unwrap();
    let granted = |actions: Vec<Action>| {
        let grant =
            |a| if let Action::Grant { worker, grant, .. } = a { Some((worker, grant.work)) } else { None };
        actions.into_iter().filter_map(grant).collect::<Vec<_>>()
    };
    // A side of a claim may be a model, which no worker has as a capability.
    let sides = || ["tileiras".to_owned(), "tile-ir".to_owned()];
    let (job, plain) = (fleet.job("", Kind::Verify, None), fleet.job("", Kind::Verify, None));
    fleet.takes(job, sides());
    fleet.credit(bare, 2, 0);
    assert_eq!(granted(fleet.poll(0)), [(bare, Work::Job(plain))]);
    fleet.credit(equipped, 1, 0);
    assert_eq!(granted(fleet.poll(0)), [(equipped, Work::Job(job))]);
    let last = fleet.job("", Kind::Verify, None);
    fleet.takes(last, sides());
    assert_eq!(granted(fleet.poll(0)), []);
    fleet.disconnect(equipped);
    let mut left = granted(fleet.poll(0));
    fleet.credit(bare, 2, 0);
    left.extend(granted(fleet.poll(0)));
    assert!(
        left.contains(&(bare, Work::Job(last))),
        "no worker with the tool is left, so another one must abstain: {left:?}"
    );
    // Without a worker that has the needed class, the job waits.
    let class = || BTreeSet::from(["sm_100a".to_owned()]);
    let device = fleet.job("", Kind::Verify, None);
    fleet.needs(device, class());
    assert!(!fleet.suited(&class(), &BTreeSet::new()));
    assert_eq!(granted(fleet.poll(0)), []);
    let right = fleet.hello(["sm_100a".to_owned(), "ptx".to_owned()].into(), "f", 0).unwrap();
    fleet.credit(right, 1, 0);
    assert!(fleet.suited(&class(), &BTreeSet::new()));
    assert_eq!(granted(fleet.poll(0)), [(right, Work::Job(device))]);
}

#[test]
fn fair_share_follows_weights_and_capabilities_are_matched() {
    let mut fleet = Scheduler::new(Config { credit_max: 1000, ..Config::default() });
    fleet.campaign("a", spec(100_000, 10, 1));
    fleet.campaign("b", spec(100_000, 10, 3));
    fleet.campaign("gpu", CampaignSpec { needs: ["sm_100a".to_owned()].into(), ..spec(100_000, 10, 100) });
    fleet.campaign("other", CampaignSpec { fingerprint: "else".to_owned(), ..spec(100_000, 10, 100) });
    let id = fleet.hello(BTreeSet::new(), "f", 0).unwrap();
    fleet.credit(id, 400, 0);
    let mut count = BTreeMap::new();
    for action in fleet.poll(0) {
        let Action::Grant { grant, .. } = action else { panic!("only grants") };
        *count.entry(grant.campaign).or_insert(0) += 1;
    }
    assert_eq!(count, BTreeMap::from([("a".to_owned(), 100), ("b".to_owned(), 300)]));
}

/// A worker that ends again and again beside one that works does not put items into quarantine.
#[test]
fn a_flapping_worker_costs_no_item() {
    for shared in [false, true] {
        let mut fleet = Scheduler::new(Config::default());
        fleet.campaign("c", spec(2_000, 64, 1));
        // Both have the same credential on the same host, as two processes of one machine have.
        let source = || Source::Known("worker at 127.0.0.1".to_owned());
        let good = fleet.hello(BTreeSet::new(), "f", 0).unwrap();
        if shared {
            fleet.comes_from(good, source());
        }
        fleet.credit(good, 1, 0);
        let (mut taken, mut given_up, mut held, mut bad) = (0, 0, BTreeMap::new(), None);
        for now in 0..10_000 {
            for action in fleet.poll(now) {
                match action {
                    Action::Grant {
                        worker,
                        lease,
                        grant: Grant { work: Work::Range { from, to }, .. },
                        ..
                    } => {
                        held.insert(lease, (worker, from, to));
                    }
                    Action::Quarantine { .. } => given_up += 1,
                    other => panic!("{other:?}"),
                }
            }
            // The good one does an item at a time.
            if let Some((lease, (_, from, to))) =
                held.iter().find(|(_, l)| l.0 == good).map(|(id, l)| (*id, *l))
            {
                taken += u64::from(fleet.take_item(lease, from));
                match from + 1 == to {
                    true => {
                        assert!(fleet.done(lease));
                        held.remove(&lease);
                        fleet.credit(good, 1, now);
                    }
                    false => _ = held.insert(lease, (good, from + 1, to)),
                }
            }
            // The bad one comes, takes many leases, and ends; sometimes it delivers something first.
            match bad.take() {
                None => {
                    let id = fleet.hello(BTreeSet::new(), "f", now).unwrap();
                    if shared {
                        fleet.comes_from(id, source());
                    }
                    fleet.credit(id, 8, now);
                    bad = Some(id);
                }
                Some(id) => {
                    if now % 6 == 1
                        && let Some((lease, from)) =
                            held.iter().find(|(_, l)| l.0 == id).map(|(l, r)| (*l, r.1))
                    {
                        taken += u64::from(fleet.take_item(lease, from));
                    }
                    held.retain(|_, l| l.0 != id);
                    fleet.disconnect(id);
                }
            }
            if taken == 2_000 {
                break;
            }
        }
        assert_eq!((taken, given_up), (2_000, 0), "shared: {shared}");
    }
}

/// An item that does end its workers is given up after some of them, also if each of them delivers other things.
#[test]
fn an_item_that_ends_its_workers_is_given_up_beside_others() {
    let mut fleet = Scheduler::new(Config::default());
    fleet.campaign("c", spec(40, 4, 1));
    let (mut taken, mut given_up, mut ended) = (BTreeSet::new(), Vec::new(), 0);
    let mut workers = BTreeSet::new();
    let mut held: BTreeMap<LeaseId, (WorkerId, u64, u64)> = BTreeMap::new();
    for now in 0..2_000 {
        while workers.len() < 4 {
            let id = fleet.hello(BTreeSet::new(), "f", now).unwrap();
            fleet.credit(id, 1, now);
            workers.insert(id);
        }
        for action in fleet.poll(now) {
            match action {
                Action::Grant {
                    worker, lease, grant: Grant { work: Work::Range { from, to }, .. }, ..
                } => {
                    held.insert(lease, (worker, from, to));
                }
                Action::Quarantine { item, .. } => given_up.push(item),
                other => panic!("{other:?}"),
            }
        }
        for (lease, (worker, from, to)) in held.clone() {
            if from == 9 {
                ended += 1;
                held.retain(|_, l| l.0 != worker);
                workers.remove(&worker);
                fleet.disconnect(worker);
                continue;
            }
            if fleet.take_item(lease, from) {
                taken.insert(from);
            }
            held.insert(lease, (worker, from + 1, to));
            if from + 1 == to {
                fleet.done(lease);
                held.remove(&lease);
                fleet.credit(worker, 1, now);
            }
        }
        if taken.len() + given_up.len() == 40 {
            break;
        }
    }
    assert_eq!((taken.len(), given_up), (39, vec![9]));
    assert!(ended <= 80, "{ended} workers were lost");
}

/// A worker with credit, of a source of this name, or of none.
fn joined(fleet: &mut Scheduler, source: Option<&str>) -> WorkerId {
    let id = fleet.hello(BTreeSet::new(), "f", 0).unwrap();
    if let Some(name) = source {
        fleet.comes_from(id, Source::Known(name.to_owned()));
    }
    fleet.credit(id, 8, 0);
    id
}

/// The leases on ranges that are given out: worker, lease, first item and one past the last.
fn ranges(fleet: &mut Scheduler, now: u64) -> Vec<(WorkerId, LeaseId, u64, u64)> {
    let range = |action| match action {
        Action::Grant { worker, lease, grant, .. } => match grant.work {
            Work::Range { from, to } => Some((worker, lease, from, to)),
            Work::Job(_) => None,
        },
        _ => None,
    };
    fleet.poll(now).into_iter().filter_map(range).collect()
}

#[test]
fn an_item_without_memory_for_it_is_asked_of_another_source() {
    let config = Config { avoid_ms: 100, liveness_ms: 9_000, progress_ms: 9_000, ..Config::default() };
    let mut fleet = Scheduler::new(config);
    fleet.campaign("c", spec(2, 2, 1));
    let (first, second) = (joined(&mut fleet, Some("a")), joined(&mut fleet, Some("b")));
    assert!(!fleet.at_home());
    let [(worker, lease, 0, 2)] = ranges(&mut fleet, 0)[..] else { panic!("one lease") };
    assert_eq!(worker, first);
    assert!(fleet.elsewhere(lease, 0, 0));
    assert!(!fleet.take_item(lease, 0), "it is not this lease's any more");
    assert!(fleet.take_item(lease, 1) && fleet.done(lease));
    let [(worker, lease, 0, 1)] = ranges(&mut fleet, 0)[..] else { panic!("the other source") };
    assert_eq!(worker, second);
    // A third one may come, for a while.
    assert!(fleet.elsewhere(lease, 0, 10) && fleet.done(lease));
    let patience = 100 * PATIENCE;
    assert_eq!(ranges(&mut fleet, 10 + patience), []);
    let [(_, lease, 0, 1)] = ranges(&mut fleet, 11 + patience)[..] else { panic!("nobody else came") };
    assert!(!fleet.elsewhere(lease, 0, 11 + patience), "there is no better answer");
    assert!(fleet.take_item(lease, 0) && fleet.done(lease));
    assert_eq!((fleet.counts().elsewhere, fleet.counts().quarantined), (2, 0));
}

#[test]
fn at_home_items_without_memory_wait_for_a_moment() {
    let config = Config { avoid_ms: 100, liveness_ms: 9_000, progress_ms: 9_000, ..Config::default() };
    let mut fleet = Scheduler::new(config);
    fleet.campaign("c", spec(4, 4, 1));
    let first = joined(&mut fleet, None);
    assert!(fleet.at_home());
    let [(_, lease, 0, 4)] = ranges(&mut fleet, 0)[..] else { panic!("one lease") };
    assert!((0..4).all(|item| fleet.elsewhere(lease, item, 0)) && fleet.done(lease));
    assert_eq!(ranges(&mut fleet, 100), [], "somebody may come");
    let [(_, lease, 0, 4)] = ranges(&mut fleet, 101)[..] else { panic!("nobody came") };
    assert!(!fleet.elsewhere(lease, 0, 101) && fleet.take_item(lease, 0));
    // Somebody came meanwhile.
    let second = joined(&mut fleet, None);
    assert!((1..4).all(|item| fleet.elsewhere(lease, item, 101)) && fleet.done(lease));
    let [(worker, lease, 1, 4)] = ranges(&mut fleet, 101)[..] else { panic!("the other one") };
    assert_eq!(worker, second);
    assert!((1..4).all(|item| fleet.take_item(lease, item)) && fleet.done(lease));
    let here = |who: &str| Source::Here { who: who.to_owned(), at: [127, 0, 0, 1].into() };
    fleet.comes_from(first, here("me"));
    fleet.comes_from(second, here("me"));
    assert!(fleet.at_home(), "one owner");
    fleet.comes_from(second, here("you"));
    assert!(!fleet.at_home(), "two owners");
}

#[test]
fn a_lease_that_is_given_back_goes_to_others() {
    let mut fleet = Scheduler::new(Config::default());
    fleet.campaign("c", spec(4, 4, 1));
    let first = joined(&mut fleet, Some("a"));
    let [(_, lease, 0, 4)] = ranges(&mut fleet, 0)[..] else { panic!("one lease") };
    let second = joined(&mut fleet, Some("b"));
    assert!(fleet.take_item(lease, 0));
    fleet.abort(lease);
    assert!(fleet.check(first, lease, 7, 0).is_none(), "it is over");
    let mut all = ranges(&mut fleet, 0);
    all.sort_by_key(|range| range.2);
    let items: Vec<_> = all.iter().map(|(worker, _, from, to)| (*worker == second, *from, *to)).collect();
    assert_eq!((items[0].1..items[0].2, items[1].1..items[1].2), (1..2, 2..4), "{items:?}");
    assert_eq!((fleet.counts().aborted, fleet.counts().lost), (1, 1));
    // What ends a lease everywhere is given up, and said.
    let mut fleet = Scheduler::new(Config { attempts_max: 3, ..Config::default() });
    fleet.campaign("c", spec(1, 1, 1));
    joined(&mut fleet, Some("a"));
    for _ in 0..3 {
        let [(_, lease, 0, 1)] = ranges(&mut fleet, 0)[..] else { panic!("one lease") };
        fleet.abort(lease);
    }
    let given_up = Action::Quarantine { campaign: "c".to_owned(), item: 0 };
    assert_eq!(fleet.poll(0), [given_up]);
}
