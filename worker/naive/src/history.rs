//! Mbarrier objects of one candidate: every order in which the operations on one object can take place, run literally.
//!
//! The object is a small machine: expected and pending arrivals, transactions, phase. An order of all operations on it fits
//! the candidate if it agrees with program order and the machine gives every answer that the paths assume.
//!
//! Many orders have the same phases, answers and end. They have one history if they are all the orders that keep certain
//! layers of operations. That history orders two operations only if their layers differ. A model that finds no cycle in it
//! finds none in at least one of the orders. Every other order has a history of its own; executions that differ only in
//! such orders have one key and are merged by it. (PTX ISA 9.2, 9.7.13.15, layout v0.)

use super::barriers::At;
use super::deed::{Count, Deed};
use super::event::{Arms, Event, Path, Refusal};
use moire_execution::leaf::flag;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Most orders of one object that are run.
const ORDERS: usize = 5_000;
/// Most operations that are run in all of them, and in orders that end with an answer that no path assumes.
const STEPS: usize = 100_000;
/// Most operations on one object of which orders are put together.
const TOGETHER: usize = 12;

/// One operation as it took place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// The operations on one object, in an order, and the state they lead to.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) steps: Vec<Took>,
    pub(super) flags: BTreeSet<&'static str>,
    machine: Machine,
    /// Pairs of operations of which the first comes first in each order that this one stands for.
    order: BTreeSet<(At, At)>,
    meaning: OnceCell<Meaning>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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
pub(super) type Histories = BTreeMap<(usize, u32), Rc<History>>;

/// Every history of each object.
pub(super) type Orders = BTreeMap<(usize, u32), Vec<Rc<History>>>;

impl History {
    /// The history with one more operation behind all others. `None` if its answer is not the one that the path assumes.
    pub(super) fn then(&self, at: At, count: &Count) -> Option<History> {
        let mut next = History { meaning: OnceCell::new(), ..self.clone() };
        next.order.extend(self.steps.iter().map(|before| (before.at, at)));
        next.take(at, count).then_some(next)
    }

    /// Relates the operations.
    pub(super) fn meaning(&self) -> &Meaning {
        self.meaning.get_or_init(|| meaning(self))
    }

    /// Runs the next operation. Whether its answer is the one that the path assumes; if not, nothing has changed.
    fn take(&mut self, at: At, count: &Count) -> bool {
        let m = &mut self.machine;
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
                    return false;
                }
            }
            Deed::Add { reported, .. } => {
                if reported.is_some_and(|r| r != u128::from(step.level - 1)) {
                    return false;
                }
                if m.valid {
                    self.add(&count.deed);
                }
            }
        }
        self.flags.extend(count.wrong);
        self.steps.push(step);
        true
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

/// A cache: by the operations on an object and what orders those of one thread, their histories.
pub(super) type Ordered = RefCell<BTreeMap<Vec<(At, Count, bool, Arms)>, Vec<Rc<History>>>>;

/// Every way to order the operations on each object, by object.
pub(super) fn orders(paths: &[&Path], known: &Ordered) -> Result<Orders, Refusal> {
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
        let told = |(at, count, event): &Todo<'_>| (*at, (*count).clone(), event.loose(), event.arms.clone());
        let key = threads.iter().flatten().map(told).collect();
        let found = known.borrow().get(&key).cloned();
        let ways = match found {
            Some(ways) => ways,
            None => {
                let ways = all_orders(&threads)?;
                known.borrow_mut().insert(key, ways.clone());
                ways
            }
        };
        out.insert(object, ways);
    }
    Ok(out)
}

fn all_orders(threads: &[Vec<Todo<'_>>]) -> Result<Vec<Rc<History>>, Refusal> {
    let mut alike = Alike::new();
    let mut done: Vec<Vec<bool>> = threads.iter().map(|t| vec![false; t.len()]).collect();
    extend(&mut History::default(), threads, &mut done, (&mut alike, &mut 0, &mut 0))?;
    Ok(alike.into_iter().flat_map(together).map(Rc::new).collect())
}

/// Orders with the same phases, answers, flags and end: their operations by place, and the order of each.
type Alike = BTreeMap<(Vec<Took>, BTreeSet<&'static str>, Machine), Vec<Vec<At>>>;

/// The histories that stand for orders that are alike.
fn together(
    ((steps, flags, machine), ways): ((Vec<Took>, BTreeSet<&'static str>, Machine), Vec<Vec<At>>),
) -> Vec<History> {
    let history = |way: &[At], order: BTreeSet<(At, At)>| {
        let step = |at: &At| steps.iter().find(|step| step.at == *at).cloned();
        let steps = way.iter().filter_map(step).collect();
        History { steps, flags: flags.clone(), machine: machine.clone(), order, meaning: OnceCell::new() }
    };
    if let Some(before) = layers(&steps, &ways) {
        let all = (0..steps.len()).flat_map(|a| (0..steps.len()).map(move |b| (a, b)));
        let first = all.filter(|(a, b)| before[*b] >> a & 1 == 1);
        let order = first.map(|(a, b)| (steps[a].at, steps[b].at)).collect();
        return vec![history(&ways[0], order)];
    }
    let pairs = |way: &[At]| {
        way.iter().enumerate().flat_map(|(i, a)| way[i + 1..].iter().map(move |b| (*a, *b))).collect()
    };
    ways.iter().map(|way| history(way, pairs(way))).collect()
}

/// For each operation, the operations of earlier layers, a bit each. `None` if the orders are not all those that keep such
/// layers. A cycle through layers and through a transitive relation has no more than two steps, so models that ask for such
/// cycles alone miss none.
fn layers(steps: &[Took], ways: &[Vec<At>]) -> Option<Vec<usize>> {
    let n = steps.len();
    if n > TOGETHER {
        return None;
    }
    let mut before = vec![(1usize << n) - 1; n];
    for way in ways {
        let mut done = 0;
        for at in way {
            let i = steps.iter().position(|step| step.at == *at)?;
            before[i] &= done;
            done |= 1 << i;
        }
    }
    let beside = |a: usize, b: usize| before[a] >> b & 1 == 0 && before[b] >> a & 1 == 0;
    let joined = |a: usize, b: usize| (0..n).all(|c| beside(a, c) == beside(b, c));
    let layered = (0..n).all(|a| (0..n).all(|b| !beside(a, b) || joined(a, b)));
    (layered && extensions(&before) == ways.len()).then_some(before)
}

/// The number of orders in which each operation comes after those before it.
fn extensions(before: &[usize]) -> usize {
    // By set of operations that took place: the orders of them.
    let mut ways = vec![0usize; 1 << before.len()];
    ways[0] = 1;
    for done in 0..ways.len() {
        for (i, first) in before.iter().enumerate() {
            if done >> i & 1 == 0 && first & !done == 0 {
                ways[done | 1 << i] += ways[done];
            }
        }
    }
    ways[ways.len() - 1]
}

/// Every choice of one history for each object, while `possible` holds of those chosen so far.
pub(super) fn histories(
    orders: &Orders,
    possible: &dyn Fn(&Histories) -> bool,
) -> Result<Vec<Histories>, Refusal> {
    let mut out = vec![Histories::new()];
    for (object, ways) in orders {
        let with = |h: &Histories, way: &Rc<History>| {
            let mut h = h.clone();
            h.insert(*object, Rc::clone(way));
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
    now: &mut History,
    threads: &[Vec<Todo<'_>>],
    done: &mut Vec<Vec<bool>>,
    (alike, found, steps): (&mut Alike, &mut usize, &mut usize),
) -> Result<(), Refusal> {
    *steps += 1;
    if *steps > STEPS {
        return Err(Refusal::TooMany("orders of operations on mbarriers"));
    }
    if done.iter().flatten().all(|d| *d) {
        let mut end = now.clone();
        end.finish();
        let way = end.steps.iter().map(|step| step.at).collect();
        end.steps.sort();
        alike.entry((end.steps, end.flags, end.machine)).or_default().push(way);
        *found += 1;
        return if *found > ORDERS {
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
            let (machine, flags) = (now.machine.clone(), now.flags.clone());
            if now.take(at, count) {
                done[t][i] = true;
                let result = extend(now, threads, done, (alike, found, steps));
                done[t][i] = false;
                now.steps.pop();
                (now.machine, now.flags) = (machine, flags);
                result?;
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
fn meaning(history: &History) -> Meaning {
    let mut out = Meaning { order: history.order.clone(), ..Meaning::default() };
    let ends = |s: &Took| matches!(s.deed, Deed::Init(_) | Deed::Inval);
    let adds = |s: &Took| matches!(s.deed, Deed::Add { .. });
    for (i, a) in history.steps.iter().enumerate() {
        for b in &history.steps[i + 1..] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_stand_for_each_other_only_if_layers_give_all_of_them() {
        let (a, b, c) = ((0, 0), (1, 0), (2, 0));
        let took = |at| Took { at, deed: Deed::Inval, era: 1, level: 1, valid: true };
        let steps = [a, b, c].map(took);
        let of = |ways: &[[At; 3]]| layers(&steps, &ways.iter().map(|way| way.to_vec()).collect::<Vec<_>>());
        assert_eq!(of(&[[a, b, c], [a, c, b]]), Some(vec![0, 1, 1]));
        assert_eq!(of(&[[a, b, c]]), Some(vec![0, 1, 3]));
        let all = [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]];
        assert_eq!(of(&all), Some(vec![0, 0, 0]));
        assert_eq!(of(&all[1..]), None, "one order is missing");
        assert_eq!(of(&[[a, b, c], [a, c, b], [c, a, b]]), None, "b follows a, but c is in no layer");
    }
}
