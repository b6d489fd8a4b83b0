//! Mbarrier objects of one candidate: every order in which the operations on one object can take place, run literally.
//!
//! The object is a small machine: expected and pending arrivals, transactions, phase. An order of all operations on it fits
//! the candidate if it agrees with program order and the machine gives every answer that the paths assume.
//!
//! Many orders have the same phases, answers and end. They have one history if they are all the orders that keep certain
//! layers of operations. That history orders two operations only if their layers differ. A model that finds no cycle in it
//! finds none in at least one of the orders. Every other order has a history of its own; executions that differ only in
//! such orders have one key and are merged by it. (PTX ISA 9.2, 9.7.13.15, layout v0.)
//!
//! The orders are not run one by one. Those that begin with the same operations, in the same phases and with the same state of
//! the object, go on alike: of them it is kept how many there are, and which operations come first in all of them.

use super::barriers::At;
use super::deed::{Count, Deed};
use super::event::{Event, Path, Refusal};
use super::pairs::{Events, members, one};
use moire_execution::leaf::flag;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Most orders of one object that stand for themselves, and most combinations of histories of all objects.
const ORDERS: usize = 5_000;
/// Most operations on one object that are run.
const STEPS: usize = 30_000;
/// Most operations on one object in one order.
const LONGEST: usize = 128;

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
    end: State,
    /// Pairs of operations of which the first comes first in each order that this one stands for.
    order: BTreeSet<(At, At)>,
    meaning: OnceCell<Meaning>,
}

/// The object, and the flags that were raised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    machine: Machine,
    flags: BTreeSet<&'static str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
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
pub(super) type Orders = BTreeMap<(usize, u32), Rc<Vec<Rc<History>>>>;

impl History {
    /// The history with one more operation behind all others. `None` if its answer is not the one that the path assumes.
    pub(super) fn then(&self, at: At, count: &Count) -> Option<History> {
        let mut next = History { meaning: OnceCell::new(), ..self.clone() };
        next.order.extend(self.steps.iter().map(|before| (before.at, at)));
        next.steps.push(next.end.take(at, count)?);
        Some(next)
    }

    /// Relates the operations.
    pub(super) fn meaning(&self) -> &Meaning {
        self.meaning.get_or_init(|| meaning(self))
    }

    /// The flags that the operations raise.
    pub(super) fn flags(&self) -> &BTreeSet<&'static str> {
        &self.end.flags
    }

    /// Whether the object is valid in the end.
    pub(super) fn valid(&self) -> bool {
        self.end.machine.valid
    }
}

impl State {
    /// Runs the next operation. `None` if its answer is not the one that the path assumes; then nothing has changed.
    fn take(&mut self, at: At, count: &Count) -> Option<Took> {
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
                    return None;
                }
            }
            Deed::Add { reported, .. } => {
                if reported.is_some_and(|r| r != u128::from(step.level - 1)) {
                    return None;
                }
                if m.valid {
                    self.add(&count.deed);
                }
            }
        }
        self.flags.extend(count.wrong);
        Some(step)
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
}

/// Every way to order the operations of these paths on one object.
pub(super) fn orders(object: (usize, u32), paths: &[&Path]) -> Result<Vec<Rc<History>>, Refusal> {
    let todo: Vec<Todo<'_>> = paths.iter().enumerate().flat_map(|(t, path)| on(object, t, path)).collect();
    if todo.len() > LONGEST {
        return Err(TOO_MANY);
    }
    let first: Vec<Events> = (0..todo.len()).map(|i| before(&todo, i)).collect();
    let (mut past, mut steps) = (vec![vec![start(todo.len())]], 0);
    for _ in &todo {
        let now = &past[past.len() - 1];
        let mut next: FxHashMap<Point, Reached> = FxHashMap::default();
        for (from, (point, reached)) in now.iter().enumerate() {
            for (i, (at, count, _)) in todo.iter().enumerate() {
                if point.done & one(i) != 0 || first[i] & !point.done != 0 {
                    continue;
                }
                steps += 1;
                if let Some(then) = point.then(i, *at, count) {
                    next.entry(then).or_default().join(reached, point.done, (from, i));
                }
            }
        }
        if steps > STEPS {
            return Err(TOO_MANY);
        }
        past.push(next.into_iter().collect());
    }
    let mut out = Vec::new();
    for (end, (point, reached)) in past[todo.len()].iter().enumerate() {
        let most = if reached.layered() { 1 } else { ORDERS + 1 };
        let mut ways = Vec::new();
        trace(&past, (todo.len(), end), &mut Vec::new(), (most, &mut ways));
        if out.len() + ways.len() > ORDERS {
            return Err(TOO_MANY);
        }
        let layers = (most == 1).then_some(&reached.before);
        out.extend(ways.iter().map(|way| Rc::new(point.history(&todo, way, layers))));
    }
    Ok(out)
}

/// The refusal of an object with too many orders.
const TOO_MANY: Refusal = Refusal::TooMany("orders of operations on mbarriers");

/// Operations that took place, and what is known of each and of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Point {
    done: Events,
    state: State,
    /// Era, level and validity of each, as in [`Took`]; nothing of those that are still to come.
    took: Vec<(u16, u16, bool)>,
}

/// The orders that lead to a point.
#[derive(Clone, Debug, Default)]
struct Reached {
    /// How many there are; `None`: more than can be counted.
    orders: Option<u128>,
    /// By operation: those that took place before it in all orders. For one that is still to come: all.
    before: Vec<Events>,
    /// The point before, by position, and the operation in between.
    from: Vec<(usize, usize)>,
}

/// An operation comes after these of its thread: after all before it that are not asynchronous and not in the other arm.
fn before(todo: &[Todo<'_>], i: usize) -> Events {
    let ((thread, _), _, event) = todo[i];
    let first = |j: &usize| {
        let (at, _, e) = todo[*j];
        at.0 == thread && !e.loose() && !e.beside(event)
    };
    (0..i).filter(first).fold(0, |set, j| set | one(j))
}

impl Point {
    /// The point after one more operation.
    fn then(&self, i: usize, at: At, count: &Count) -> Option<Point> {
        let mut next = self.clone();
        next.done |= one(i);
        let Took { era, level, valid, .. } = next.state.take(at, count)?;
        next.took[i] = (era, level, valid);
        Some(next)
    }

    /// The history of one order. `layers`: by operation those before it, if it stands for others.
    fn history(&self, todo: &[Todo<'_>], way: &[usize], layers: Option<&Vec<Events>>) -> History {
        let mut order = BTreeSet::new();
        let mut earlier = 0;
        for i in way {
            let first = layers.map_or(earlier, |before| before[*i]);
            order.extend(members(first).map(|a| (todo[a].0, todo[*i].0)));
            earlier |= one(*i);
        }
        let step = |i: &usize| {
            let ((at, count, _), (era, level, valid)) = (todo[*i], self.took[*i]);
            Took { at, deed: count.deed.clone(), era, level, valid }
        };
        let mut end = self.state.clone();
        end.finish();
        History { steps: way.iter().map(step).collect(), end, order, meaning: OnceCell::new() }
    }
}

/// Nothing has taken place.
fn start(n: usize) -> (Point, Reached) {
    let point = Point { took: vec![Default::default(); n], ..Point::default() };
    (point, Reached { orders: Some(1), before: vec![!0; n], from: Vec::new() })
}

impl Reached {
    /// Adds the orders that lead to a point, followed by one operation. `done`: what took place before it.
    fn join(&mut self, earlier: &Reached, done: Events, (from, i): (usize, usize)) {
        let fresh = self.from.is_empty();
        let mut before = earlier.before.clone();
        before[i] = done;
        self.orders = if fresh {
            earlier.orders
        } else {
            before.iter_mut().zip(&self.before).for_each(|(mine, theirs)| *mine &= theirs);
            self.orders.zip(earlier.orders).and_then(|(a, b)| a.checked_add(b))
        };
        self.before = before;
        self.from.push((from, i));
    }

    /// Whether the orders are all those that keep certain layers of operations. A cycle through layers and through a transitive
    /// relation has no more than two steps, so models that ask for such cycles alone miss none.
    fn layered(&self) -> bool {
        let n = self.before.len();
        let beside = |a: usize, b: usize| self.before[a] & one(b) == 0 && self.before[b] & one(a) == 0;
        let layer = |a: usize| (0..n).filter(|b| beside(a, *b)).fold(0, |set: Events, b| set | one(b));
        let layers: Vec<Events> = (0..n).map(layer).collect();
        let whole = (0..n).all(|a| members(layers[a]).all(|b| layers[a] == layers[b]));
        // Each operation multiplies the orders by its place in its layer.
        let place = |a: usize| u128::from((layers[a] & (!0 >> (LONGEST - 1 - a))).count_ones());
        whole
            && self.orders == (0..n).try_fold(1u128, |all, a| all.checked_mul(place(a)))
            && self.orders.is_some()
    }
}

/// The orders that lead to a point, no more than `most`. `rest`: the operations after it, the last one first.
fn trace(
    past: &[Vec<(Point, Reached)>],
    (level, at): (usize, usize),
    rest: &mut Vec<usize>,
    (most, out): (usize, &mut Vec<Vec<usize>>),
) {
    if level == 0 {
        out.push(rest.iter().rev().copied().collect());
        return;
    }
    for (from, i) in &past[level][at].1.from {
        if out.len() < most {
            rest.push(*i);
            trace(past, (level - 1, *from), rest, (most, &mut *out));
            rest.pop();
        }
    }
}

/// The operations of a path on one object.
fn on(object: (usize, u32), t: usize, path: &Path) -> Vec<Todo<'_>> {
    let events = path.kept().iter().enumerate();
    let counts = events.filter_map(|(i, event)| Some(((t, i), event.count.as_ref()?, &**event)));
    counts.filter(|(_, count, _)| count.object == object).collect()
}

/// By object, all of a path that its histories depend on.
pub(super) fn told(path: &Path) -> BTreeMap<(usize, u32), String> {
    let mut out: BTreeMap<(usize, u32), String> = BTreeMap::new();
    for (i, event) in path.kept().iter().enumerate() {
        let Some(count) = &event.count else { continue };
        let one = format!("{i} {count:?} {} {:?};", event.loose(), event.arms);
        out.entry(count.object).or_default().push_str(&one);
    }
    out
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
            return Err(TOO_MANY);
        }
    }
    Ok(out)
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
