//! Mbarrier objects of one candidate: every order in which the operations on one object can take place, run literally.
//!
//! The object is a small machine: expected and pending arrivals, transactions, phase. An order of all operations on it fits
//! the candidate if it agrees with program order and the machine gives every answer that the paths assume. Orders that
//! mean the same are not recognised here; executions that differ only in them have one key and are merged by it.
//! (PTX ISA 9.2, 9.7.13.15, layout v0.)

use super::barriers::At;
use super::deed::{Count, Deed};
use super::event::{Event, Path, Refusal};
use moire_execution::leaf::flag;
use std::collections::{BTreeMap, BTreeSet};

/// Most orders of one object that are run.
const ORDERS: usize = 5_000;

/// One operation as it took place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Took {
    pub(super) at: At,
    pub(super) deed: Deed,
    /// How many `init`s and `inval`s there were, this one included.
    pub(super) era: u16,
    /// 0 for `init` and `inval`, otherwise one more than the phase that was current.
    pub(super) level: u16,
    /// Whether the object was valid.
    pub(super) valid: bool,
}

/// The operations on one object, in order, and the state they lead to.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) steps: Vec<Took>,
    pub(super) flags: BTreeSet<&'static str>,
    machine: Machine,
}

#[derive(Clone, Debug, Default)]
struct Machine {
    era: u16,
    valid: bool,
    expected: u64,
    pending: u64,
    tx: i64,
    phase: u16,
}

/// An operation to be put in order, and its event.
type Todo<'a> = (At, &'a Count, &'a Event);

/// The histories of all objects.
pub(super) type Histories = BTreeMap<(usize, u32), History>;

impl History {
    /// Runs the next operation. `None` if its answer is not the one that the path assumes.
    pub(super) fn then(&self, at: At, count: &Count) -> Option<History> {
        let mut next = self.clone();
        next.flags.extend(count.wrong);
        let m = &mut next.machine;
        let mut step = Took { at, deed: count.deed.clone(), era: m.era, level: 1, valid: m.valid };
        if m.valid {
            step.level = 1 + m.phase;
        }
        match count.deed {
            Deed::Init(n) => {
                *m = Machine { era: m.era + 1, valid: true, expected: n, pending: n, tx: 0, phase: 0 };
                (step.era, step.level) = (m.era, 0);
            }
            Deed::Inval => {
                *m = Machine { era: m.era + 1, ..Machine::default() };
                (step.era, step.level) = (m.era, 0);
            }
            Deed::Ask { odd, answer } => {
                let is = m.valid && (m.phase % 2 == 1) != odd;
                if is != answer {
                    return None;
                }
            }
            Deed::Add { reported, .. } => {
                if reported.is_some_and(|r| r != u128::from(step.level - 1)) {
                    return None;
                }
                if m.valid {
                    next.add(&count.deed);
                }
            }
        }
        next.steps.push(step);
        Some(next)
    }

    fn add(&mut self, deed: &Deed) {
        let Deed::Add { arrivals, tx, drops, must_not_complete, .. } = *deed else { return };
        let m = &mut self.machine;
        if arrivals > m.pending {
            self.flags.insert(flag::OVERARRIVAL);
        }
        m.pending = m.pending.saturating_sub(arrivals);
        m.tx += tx;
        if drops {
            m.expected = m.expected.saturating_sub(arrivals);
        }
        if m.pending == 0 && m.tx == 0 {
            if must_not_complete {
                self.flags.insert(flag::NO_COMPLETE);
            }
            m.phase += 1;
            m.pending = m.expected;
        }
    }

    /// Raises the flags of the final state.
    fn finish(&mut self) {
        if self.machine.tx.unsigned_abs() > u64::from(moire_program::ir::MBARRIER_COUNT) {
            self.flags.insert(flag::RANGE);
        }
    }

    /// Whether the object is valid in the end.
    pub(super) fn valid(&self) -> bool {
        self.machine.valid
    }
}

/// Every way to order the operations on each object, by object.
pub(super) fn orders(paths: &[&Path]) -> Result<BTreeMap<(usize, u32), Vec<History>>, Refusal> {
    let mut uses: BTreeMap<(usize, u32), Vec<Vec<Todo<'_>>>> = BTreeMap::new();
    for (t, path) in paths.iter().enumerate() {
        for (i, event) in path.kept().iter().enumerate() {
            let Some(count) = &event.count else { continue };
            let threads = uses.entry(count.object).or_insert_with(|| vec![Vec::new(); paths.len()]);
            threads[t].push(((t, i), count, event));
        }
    }
    let mut out = BTreeMap::new();
    for (object, threads) in uses {
        let mut ways = Vec::new();
        let mut done: Vec<Vec<bool>> = threads.iter().map(|t| vec![false; t.len()]).collect();
        extend(&History::default(), &threads, &mut done, &mut ways)?;
        out.insert(object, ways);
    }
    Ok(out)
}

/// Every choice of one history for each object, while `possible` holds of those chosen so far.
pub(super) fn histories(
    orders: &BTreeMap<(usize, u32), Vec<History>>,
    possible: &dyn Fn(&Histories) -> bool,
) -> Result<Vec<Histories>, Refusal> {
    let mut out = vec![Histories::new()];
    for (object, ways) in orders {
        let with = |h: &Histories, way: &History| {
            let mut h = h.clone();
            h.insert(*object, way.clone());
            h
        };
        let longer = out.iter().flat_map(|h| ways.iter().map(move |way| with(h, way)));
        out = longer.filter(|h| possible(h)).collect();
        if out.len() > ORDERS {
            return Err(Refusal::TooMany("orders of operations on mbarriers"));
        }
    }
    Ok(out)
}

fn extend(
    now: &History,
    threads: &[Vec<Todo<'_>>],
    done: &mut Vec<Vec<bool>>,
    out: &mut Vec<History>,
) -> Result<(), Refusal> {
    if done.iter().flatten().all(|d| *d) {
        let mut way = now.clone();
        way.finish();
        out.push(way);
        return if out.len() > ORDERS {
            Err(Refusal::TooMany("orders of operations on mbarriers"))
        } else {
            Ok(())
        };
    }
    for t in 0..threads.len() {
        for i in 0..threads[t].len() {
            // An asynchronous operation comes after all before it in its thread, but none comes after it.
            let (at, count, event) = threads[t][i];
            let first = |e: &Event| !e.loose() && !e.beside(event);
            let held = (0..i).any(|j| !done[t][j] && first(threads[t][j].2));
            if done[t][i] || held {
                continue;
            }
            if let Some(next) = now.then(at, count) {
                done[t][i] = true;
                extend(&next, threads, done, out)?;
                done[t][i] = false;
            }
        }
    }
    Ok(())
}

/// Pairs of operations of one history, by relation.
#[derive(Clone, Debug, Default)]
pub(super) struct Meaning {
    pub(super) order: BTreeSet<(At, At)>,
    pub(super) sync: BTreeSet<(At, At)>,
    pub(super) life: BTreeSet<(At, At)>,
    pub(super) step: BTreeSet<(At, At)>,
    pub(super) seen: BTreeSet<(At, At)>,
    /// Answered true for the same phase.
    pub(super) again: BTreeSet<(At, At)>,
    /// Operations that had to happen before an answer.
    pub(super) needs: BTreeSet<(At, At)>,
}

/// Relates the operations of a history.
pub(super) fn meaning(history: &History) -> Meaning {
    let mut out = Meaning::default();
    let ends = |s: &Took| matches!(s.deed, Deed::Init(_) | Deed::Inval);
    let adds = |s: &Took| matches!(s.deed, Deed::Add { .. });
    for (i, a) in history.steps.iter().enumerate() {
        for b in &history.steps[i + 1..] {
            out.order.insert((a.at, b.at));
            let next_end = ends(b) && b.era == a.era + 1;
            if matches!(a.deed, Deed::Init(_)) && (b.era == a.era || next_end) {
                out.life.insert((a.at, b.at));
            }
        }
        for b in &history.steps {
            let same = a.era == b.era && a.valid && b.valid;
            let next = same && a.level + 1 == b.level && adds(a);
            let yes = matches!(b.deed, Deed::Ask { answer: true, .. });
            if next && adds(b) {
                out.step.insert((a.at, b.at));
            }
            if next && yes {
                out.sync.insert((a.at, b.at));
            }
            let too = matches!(a.deed, Deed::Ask { answer: true, .. });
            if same && a.level == b.level && yes && too && a.at != b.at {
                out.again.insert((a.at, b.at));
            }
            if same && a.level == b.level && adds(a) && yes {
                out.seen.insert((b.at, a.at));
            }
            let hands_back = match b.deed {
                Deed::Ask { .. } => true,
                Deed::Add { reported, .. } => reported.is_some(),
                Deed::Init(_) | Deed::Inval => false,
            };
            let needed = (ends(a) && a.era <= b.era) || (adds(a) && a.era == b.era && a.level < b.level);
            if hands_back && needed && a.at != b.at {
                out.needs.insert((a.at, b.at));
            }
        }
    }
    out
}
