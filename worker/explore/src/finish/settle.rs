//! Mbarrier objects of a finished graph: an order inside each phase, the flags raised, and the threads that wait for ever.
//!
//! Operations of one phase commute, except that no earlier part of them may complete the phase, and that a wait which
//! asked during the phase came before the operation that completed it. Some order is enough; it is looked for here,
//! phase by phase, and judged by the model through `mbar-order`. Of a phase with many operations one order is looked for
//! instead of all: first one that follows the order in which the events became known, which causality agrees with unless
//! that completes the phase too early; then one among the pairs that the model does not refuse one by one. If the one
//! found will not do, that is said (a bound); if there is none, there is no such execution.

use crate::graph::event::{Faults, raise};
use crate::graph::ids::EventId;
use crate::graph::mbarriers::{Phase, Stage};
use crate::graph::row;
use crate::prune::state::State;
use crate::thread::event::lanes::parted;
use crate::thread::event::mbarrier::{Act, Fault, Object};
use crate::thread::ids::Id;
use crate::thread::trace::TraceEnd;
use moire_cat::bits::Row;
use moire_cat::vocabulary::{rels, sets};
use moire_cat::{CheckId, Model, Type};
use moire_execution::leaf::{Place, Stall, flag};
use moire_program::ir::MBARRIER_COUNT;
use std::collections::{BTreeMap, BTreeSet};

/// Most operations of a phase whose orders are tried one by one.
const MAX_ORDERED: usize = 7;
/// Most operations of a phase for which some order is searched.
const MAX_MEMBERS: usize = 16;
/// Most combinations of orders, one for every phase, tried at one leaf.
const MAX_CHOICES: usize = 10_000;

/// One way to order a phase: the pairs it needs, and whether a `noComplete` comes last.
#[derive(Clone, Debug)]
struct PhaseOrder {
    pairs: Vec<(EventId, EventId)>,
    ends_badly: bool,
}

/// The ways to order a phase, or some of them.
#[derive(Clone, Debug)]
struct Ways {
    orders: Vec<PhaseOrder>,
    /// The phase and the waits that asked in it, where not all orders are there.
    large: Option<(Phase, Vec<EventId>)>,
}

/// Flags and the pairs they name.
pub(crate) type Raised = BTreeMap<CheckId, BTreeSet<(EventId, EventId)>>;

/// A coherence of the finished graph with what is said of it.
pub(crate) struct Settled<const W: usize> {
    pub(crate) co: Vec<Row<W>>,
    pub(crate) fence: Vec<Row<W>>,
    /// Flags with the pairs each names; one event twice where the flag is on a set.
    pub(crate) flags: Raised,
    /// Some order has a `noComplete` arrival complete its phase.
    pub(crate) ends_badly: bool,
}

/// Flags as an evaluation names them.
pub(crate) fn raised<const W: usize>(model: &Model, flags: &[(CheckId, Vec<Row<W>>)], n: usize) -> Raised {
    let pairs = |check: &CheckId, rows: &[Row<W>]| -> BTreeSet<(EventId, EventId)> {
        if model.facts(model.checks()[check.0].node).ty == Type::Set {
            return rows.first().map(|r| row::events(r).map(|e| (e, e)).collect()).unwrap_or_default();
        }
        let all = rows.iter().take(n).enumerate();
        all.flat_map(|(a, row)| row::events(row).map(move |b| (EventId::at(a), b))).collect()
    };
    flags.iter().map(|(check, rows)| (*check, pairs(check, rows))).collect()
}

/// Every coherence the finished graph can have under some order of each phase, of which at most so many are tried; whether
/// something was left untried; and how many were tried.
pub(crate) fn settle<const W: usize>(s: &mut State<'_, W>, most: u64) -> (Vec<Settled<W>>, bool, u64) {
    let mut found = Vec::new();
    let ways = orders(s);
    let large = ways.iter().any(|w| w.large.is_some());
    let mut orders: Vec<Vec<PhaseOrder>> = Vec::new();
    let untried = ways.iter().filter_map(|w| w.large.as_ref()).any(|l| l.0.members.len() > MAX_MEMBERS);
    for Ways { orders: some, large } in ways {
        let mut kept: Vec<PhaseOrder> = some.into_iter().filter(|t| allows(s, t)).collect();
        if let (true, Some((phase, asked))) = (kept.is_empty(), &large) {
            kept.extend(allowed_order(s, phase, asked));
        }
        orders.push(kept);
    }
    let hopeless = orders.iter().any(Vec::is_empty);
    let all = fences_decide(s) || orders.iter().flatten().any(|t| t.ends_badly);
    let most = usize::try_from(most).unwrap_or(MAX_CHOICES).clamp(1, MAX_CHOICES);
    let (mut left, mut cut) = (most, false);
    choose(s, &orders, (all, false), &mut left, &mut found, &mut cut);
    cut |= untried || (large && !hopeless && (all || found.is_empty()));
    (found, cut, (most - left) as u64)
}

/// Relations that lead from an event to what comes after it in some way.
const ONWARD: [usize; 21] = [
    rels::PO,
    rels::RMW,
    rels::SYNC_API,
    rels::ISSUE,
    rels::TC_TRACKED,
    rels::COPY_TRACKED,
    rels::COVERS,
    rels::TC_USED,
    rels::TOKEN,
    rels::REACHES,
    rels::RF,
    rels::CO,
    rels::FR,
    rels::SYNCBAR,
    rels::SYNC_CLUSTER,
    rels::SYNC_WARP,
    rels::RENDEZVOUS,
    rels::BAR_PHASE,
    rels::MBAR_SYNC,
    rels::MBAR_STEP,
    rels::MBAR_SEEN,
];

/// Whether the order of the `fence.sc` can decide which order of a phase is allowed: one of several comes before an operation
/// whose place in its phase is open. Otherwise one order of each phase goes with every order of the fences, since what is
/// ordered before such an operation is the same under all of them.
fn fences_decide<const W: usize>(s: &State<'_, W>) -> bool {
    let events = &s.graph.events;
    let fence = |id: &EventId| events[*id].emitted.labels >> sets::SC & 1 == 1;
    let mut todo: Vec<EventId> = row::events(&events.present).filter(fence).collect();
    let open = |id: EventId| {
        matches!(events[id].mbarrier().map(|u| u.act), Some(Act::Add { .. } | Act::Wait { .. }))
    };
    let mut seen: BTreeSet<EventId> = todo.iter().copied().collect();
    let several = seen.len() > 1;
    while let Some(event) = todo.pop().filter(|_| several) {
        if open(event) {
            return true;
        }
        let next = ONWARD.iter().flat_map(|r| row::events(events.related(*r, event)));
        todo.extend(next.filter(|id| seen.insert(*id)));
    }
    false
}

/// Whether the model has nothing against the pairs of a order.
fn allows<const W: usize>(s: &mut State<'_, W>, order: &PhaseOrder) -> bool {
    under(s, order, |s| !s.contradicts())
}

fn choose<const W: usize>(
    s: &mut State<'_, W>,
    orders: &[Vec<PhaseOrder>],
    (all, bad): (bool, bool),
    left: &mut usize,
    found: &mut Vec<Settled<W>>,
    cut: &mut bool,
) {
    let Some((first, rest)) = orders.split_first() else {
        *left = left.saturating_sub(1);
        let n = s.graph.events.inputs.n;
        let model = s.model;
        *cut |= s.consistency.evaluate_leaf(&mut s.graph, |co, fence, flags| {
            match found.iter_mut().find(|s| s.co == co) {
                Some(known) => {
                    for (flag, pairs) in raised(model, flags, n) {
                        known.flags.entry(flag).or_default().extend(pairs);
                    }
                    known.ends_badly |= bad;
                }
                None => found.push(Settled {
                    co: co.to_vec(),
                    fence: fence.to_vec(),
                    flags: raised(model, flags, n),
                    ends_badly: bad,
                }),
            }
        });
        return;
    };
    for order in first {
        if *left == 0 {
            *cut = true;
            return;
        }
        under(s, order, |s| choose(s, rest, (all, bad || order.ends_badly), left, found, cut));
        if !all && !found.is_empty() {
            return;
        }
    }
}

/// Runs `then` with the pairs of a order entered.
fn under<const W: usize, T>(
    s: &mut State<'_, W>,
    order: &PhaseOrder,
    then: impl FnOnce(&mut State<'_, W>) -> T,
) -> T {
    for (a, b) in &order.pairs {
        row::set(s.graph.events.related_mut(rels::MBAR_ORDER, *a), *b);
    }
    let result = then(s);
    for (a, b) in &order.pairs {
        row::clear(s.graph.events.related_mut(rels::MBAR_ORDER, *a), *b);
    }
    result
}

fn objects<const W: usize>(s: &State<'_, W>) -> BTreeSet<Object> {
    let placed = s.graph.events.ids().filter(|id| s.graph.mbarriers.places[*id].is_some());
    placed.filter_map(|id| Some(s.graph.events[id].mbarrier()?.object)).collect()
}

/// The ways to order each phase whose order matters.
fn orders<const W: usize>(s: &State<'_, W>) -> Vec<Ways> {
    let mut out = Vec::new();
    for object in objects(s) {
        for era in 0..=s.graph.mbarriers.eras(&s.graph.events, object) {
            for (n, phase) in
                s.graph.mbarriers.phases_of(&s.graph.events, object, era).into_iter().flatten().enumerate()
            {
                let level = u16::try_from(n + 1).expect("phases are numbered by 16 bits");
                let asked: Vec<EventId> = s
                    .graph
                    .mbarriers
                    .placed_on(&s.graph.events, object)
                    .filter(|(_, act, place)| {
                        matches!(act, Act::Wait { .. }) && *place == Stage { era, level }
                    })
                    .map(|p| p.0)
                    .collect();
                if order_matters(s, &phase) && phase.members.len() > MAX_ORDERED {
                    let orders = one_order(s, &phase, &asked, &|a, b| po(s, a, b));
                    out.push(Ways { orders: orders.into_iter().collect(), large: Some((phase, asked)) });
                } else if order_matters(s, &phase) {
                    out.push(Ways { orders: ordered(s, &phase, &asked), large: None });
                } else if phase.adds_up()
                    && (!asked.is_empty() || phase.members.iter().any(|m| no_complete(s, *m)))
                {
                    out.push(Ways { orders: completed(s, &phase, &asked), large: None });
                }
            }
        }
    }
    out
}

/// An order of a large phase whose pairs the model allows one by one.
fn allowed_order<const W: usize>(
    s: &mut State<'_, W>,
    phase: &Phase,
    asked: &[EventId],
) -> Option<PhaseOrder> {
    let mut refused = BTreeSet::new();
    for a in phase.members.iter().chain(asked) {
        for b in phase.members.iter().filter(|b| *b != a) {
            let pair = PhaseOrder { pairs: vec![(*a, *b)], ends_badly: false };
            if !allows(s, &pair) {
                refused.insert((*b, *a));
            }
        }
    }
    one_order(s, phase, asked, &|a, b| refused.contains(&(a, b)) || po(s, a, b))
}

/// An order of the operations in which no earlier part adds up and nothing comes before what must precede it.
fn one_order<const W: usize>(
    s: &State<'_, W>,
    phase: &Phase,
    asked: &[EventId],
    precedes: &dyn Fn(EventId, EventId) -> bool,
) -> Option<PhaseOrder> {
    let members = &phase.members;
    if members.len() > MAX_MEMBERS {
        return None;
    }
    let earlier =
        |m: &EventId| (0..members.len()).filter(|o| precedes(members[*o], *m)).map(|o| 1 << o).sum();
    let needs: Vec<u32> = members.iter().map(earlier).collect();
    let (mut order, mut vain) = (Vec::new(), BTreeSet::new());
    let may_end = |m: usize| !phase.adds_up() || asked.iter().all(|a| !precedes(members[m], *a));
    extend_one(s, phase, (&needs, &may_end), &mut order, &mut vain).then(|| {
        let order: Vec<EventId> = order.iter().map(|m| members[*m]).collect();
        let later = |i: usize| order[i + 1..].iter().map(move |b| (i, *b));
        let mut pairs: Vec<(EventId, EventId)> =
            (0..order.len()).flat_map(later).map(|(i, b)| (order[i], b)).collect();
        let last = order.last().copied().filter(|_| phase.adds_up());
        pairs.extend(last.iter().flat_map(|l| asked.iter().map(move |a| (*a, *l))));
        PhaseOrder { pairs, ends_badly: last.is_some_and(|l| no_complete(s, l)) }
    })
}

/// Completes an order of members by number, each after those it needs and one at the end that may be there; `vain`:
/// sets that lead nowhere.
fn extend_one<const W: usize>(
    s: &State<'_, W>,
    phase: &Phase,
    (needs, may_end): (&[u32], &dyn Fn(usize) -> bool),
    order: &mut Vec<usize>,
    vain: &mut BTreeSet<u32>,
) -> bool {
    let done: u32 = order.iter().map(|m| 1 << m).sum();
    let ids: Vec<EventId> = order.iter().map(|m| phase.members[*m]).collect();
    let (arrivals, tx) = sums(s, &ids);
    if order.len() == needs.len() {
        return order.last().is_none_or(|m| may_end(*m));
    }
    let early = !order.is_empty() && arrivals >= phase.expected && tx == 0;
    if early || !vain.insert(done) {
        return false;
    }
    (0..needs.len()).filter(|m| done >> m & 1 == 0 && needs[*m] & !done == 0).any(|m| {
        order.push(m);
        let found = extend_one(s, phase, (needs, may_end), order, vain);
        if !found {
            order.pop();
        }
        found
    })
}

fn no_complete<const W: usize>(s: &State<'_, W>, id: EventId) -> bool {
    matches!(s.graph.events[id].mbarrier().map(|u| u.act), Some(Act::Add { no_complete: true, .. }))
}

fn sums<const W: usize>(s: &State<'_, W>, ids: &[EventId]) -> (u64, i64) {
    ids.iter().fold((0, 0), |(n, tx), id| match s.graph.events[*id].mbarrier().map(|u| u.act) {
        Some(Act::Add { arrivals, tx: more, .. }) => (n + u64::from(arrivals), tx + more),
        _ => (n, tx),
    })
}

/// Whether a part of the phase adds up, so that it must not come first.
fn order_matters<const W: usize>(s: &State<'_, W>, phase: &Phase) -> bool {
    if phase.arrivals < phase.expected {
        return false;
    }
    let spare: Vec<EventId> = if phase.arrivals == phase.expected {
        // No part without an arrival adds up, nor one without what comes before an arrival in its thread.
        let arrives = |id: &&EventId| sums(s, &[**id]).0 > 0;
        let arrivals: Vec<&EventId> = phase.members.iter().filter(arrives).collect();
        let needed = |id: &EventId| arrivals.iter().any(|a| *a == id || po(s, *id, **a));
        phase.members.iter().copied().filter(|id| !needed(id)).collect()
    } else {
        phase.members.clone()
    };
    let of_sign = |sign: i64| spare.iter().all(|id| sums(s, &[*id]).1.signum() == sign);
    if phase.arrivals == phase.expected && phase.tx == 0 && (of_sign(1) || of_sign(-1)) {
        return false;
    }
    if spare.len() > 16 {
        return true;
    }
    (1u32..1 << spare.len()).any(|subset| {
        let left_out: Vec<EventId> =
            (0..spare.len()).filter(|i| subset >> i & 1 == 1).map(|i| spare[i]).collect();
        let (arrivals, tx) = sums(s, &left_out);
        let some = left_out.len() < phase.members.len();
        some && phase.arrivals - arrivals >= phase.expected && phase.tx == tx
    })
}

fn po<const W: usize>(s: &State<'_, W>, a: EventId, b: EventId) -> bool {
    let (x, y) = (&s.graph.events[a], &s.graph.events[b]);
    let together = !parted(&x.emitted.lanes.arms, &y.emitted.lanes.arms);
    let issued = together && y.emitted.detached && !x.emitted.detached && x.emitted.index < y.emitted.index;
    row::has(s.graph.events.related(rels::PO, a), b) || (x.thread == y.thread && issued)
}

/// Each operation that can have completed the phase.
fn completed<const W: usize>(s: &State<'_, W>, phase: &Phase, asked: &[EventId]) -> Vec<PhaseOrder> {
    let last = |c: &EventId| {
        let pairs: Vec<(EventId, EventId)> =
            phase.members.iter().chain(asked).filter(|x| *x != c).map(|x| (*x, *c)).collect();
        let fits = pairs.iter().all(|(x, _)| !po(s, *c, *x));
        fits.then(|| PhaseOrder { pairs, ends_badly: no_complete(s, *c) })
    };
    // An operation that comes after a wait in its thread is the likely one.
    let mut out: Vec<(bool, PhaseOrder)> = Vec::new();
    for c in &phase.members {
        let likely = asked.iter().any(|a| po(s, *a, *c));
        out.extend(last(c).map(|t| (!likely, t)));
    }
    out.sort_by_key(|t| t.0);
    out.into_iter().map(|t| t.1).collect()
}

/// Every order of the operations in which no earlier part of them adds up.
fn ordered<const W: usize>(s: &State<'_, W>, phase: &Phase, asked: &[EventId]) -> Vec<PhaseOrder> {
    let mut out = Vec::new();
    extend_order(s, phase, asked, &mut Vec::new(), &mut out);
    out
}

fn extend_order<const W: usize>(
    s: &State<'_, W>,
    phase: &Phase,
    asked: &[EventId],
    order: &mut Vec<EventId>,
    out: &mut Vec<PhaseOrder>,
) {
    let left: Vec<EventId> = phase.members.iter().copied().filter(|m| !order.contains(m)).collect();
    let (arrivals, tx) = sums(s, order);
    if !order.is_empty() && !left.is_empty() && arrivals >= phase.expected && tx == 0 {
        return;
    }
    if left.is_empty() {
        let mut pairs = Vec::new();
        for (i, a) in order.iter().enumerate() {
            pairs.extend(order[i + 1..].iter().map(|b| (*a, *b)));
        }
        let last = order.last().copied().filter(|_| phase.adds_up());
        pairs.extend(last.iter().flat_map(|l| asked.iter().map(move |a| (*a, *l))));
        if pairs.iter().all(|(a, b)| !po(s, *b, *a)) {
            out.push(PhaseOrder { pairs, ends_badly: last.is_some_and(|l| no_complete(s, l)) });
        }
        return;
    }
    for next in &left {
        if left.iter().all(|l| !po(s, *l, *next)) {
            order.push(*next);
            extend_order(s, phase, asked, order, out);
            order.pop();
        }
    }
}

/// What is wrong whatever the order inside the phases is.
pub(crate) fn faults<const W: usize>(s: &State<'_, W>) -> Faults {
    let mut out = Faults::new();
    phase_faults(s, &mut out);
    for id in s.graph.events.ids().filter(|id| s.graph.mbarriers.places[*id].is_some()) {
        let event = &s.graph.events[id];
        match event.mbarrier().and_then(|u| u.fault) {
            Some(Fault::Range) => raise(&mut out, flag::RANGE, event.place()),
            Some(Fault::Target) => raise(&mut out, flag::TARGET, event.place()),
            Some(Fault::Repeated) => raise(&mut out, flag::REPEATED, event.place()),
            None => {}
        }
    }
    for event in s.graph.events.iter() {
        let Some(used) = event.emitted.tensor() else { continue };
        if used.wrong_lanes {
            raise(&mut out, flag::LANES, event.place());
        }
        if used.wrong_columns {
            raise(&mut out, flag::COLUMNS, event.place());
        }
    }
    for thread in s.graph.events.threads.ids() {
        for (flag, line) in &s.graph.events.threads[thread].trace.flags {
            raise(&mut out, flag, Some(Place { thread: thread.0, line: *line }));
        }
    }
    s.graph.allocations.allocator_flags(&s.graph.events, &mut out);
    if stalls(s).iter().any(|s| !s.valid) {
        raise(&mut out, flag::OUTSIDE, None);
    }
    out
}

/// Phases with more arrivals than they expect, or bytes out of range: all operations of the object in that phase.
fn phase_faults<const W: usize>(s: &State<'_, W>, out: &mut Faults) {
    for object in objects(s) {
        for era in 0..=s.graph.mbarriers.eras(&s.graph.events, object) {
            let phases = s.graph.mbarriers.phases_of(&s.graph.events, object, era).into_iter().flatten();
            for (level, phase) in phases.enumerate() {
                let at = s.graph.events.ids().filter(|id| {
                    let here = s.graph.mbarriers.places[*id];
                    let here = here.is_some_and(|p| p.era == era && usize::from(p.level) == level + 1);
                    let used = s.graph.events[*id].mbarrier();
                    here && used.is_some_and(|u| u.object == object && matches!(u.act, Act::Add { .. }))
                });
                let places: Vec<Place> = at.filter_map(|id| s.graph.events[id].place()).collect();
                let flags = [
                    (flag::OVERARRIVAL, phase.arrivals > phase.expected),
                    (flag::RANGE, phase.tx.unsigned_abs() > u64::from(MBARRIER_COUNT)),
                ];
                for (flag, _) in flags.into_iter().filter(|f| f.1) {
                    out.entry(flag.to_owned()).or_default().extend(places.iter().copied());
                }
            }
        }
    }
}

/// For each thread that waits at an mbarrier for ever: which one, and what its phase lacks.
pub(crate) fn stalls<const W: usize>(s: &State<'_, W>) -> Vec<Stall> {
    let mut out = Vec::new();
    for thread in s.graph.events.threads.ids() {
        let (TraceEnd::Gate(index) | TraceEnd::Stuck(index)) = s.graph.events.threads[thread].trace.end
        else {
            continue;
        };
        if let Some(object) = s.gates.awaited(&s.graph, thread, index).map(|used| used.object) {
            let instance = s.graph.events.layout.instances[object.instance];
            let mut stall = Stall {
                thread: thread.index(),
                object: instance.object,
                owner: instance.owner,
                offset: object.offset,
                valid: false,
                phase: 0,
                pending: 0,
                tx: 0,
            };
            if let Some(phases) = s.graph.mbarriers.phases_of(
                &s.graph.events,
                object,
                s.graph.mbarriers.eras(&s.graph.events, object),
            ) {
                let now = &phases[phases.len() - 1];
                stall.valid = true;
                stall.phase = phases.len() - 1;
                stall.pending = now.expected.saturating_sub(now.arrivals);
                stall.tx = now.tx;
            }
            out.push(stall);
        }
    }
    out
}
