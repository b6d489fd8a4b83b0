//! Mbarrier objects at a finished graph: is there an order inside each phase, what is wrong, who waits for what.
//!
//! Operations of one phase commute, except that no earlier part of them may complete the phase, and that a wait which
//! asked during the phase came before the operation that completed it. Some order is enough; it is looked for here,
//! phase by phase, and judged by the model through `mbar-order`. Of a phase with many operations one order is looked for
//! instead of all: first one that follows the order in which the events became known, which causality agrees with unless
//! that completes the phase too early; then one among the pairs that the model does not refuse one by one. If the one
//! found will not do, that is said (a bound); if there is none, there is no such execution.

use crate::interp::TraceEnd;
use crate::leaf::{Stall, flag};
use crate::mbarrier::{Act, Fault, Object, Phase, Place};
use crate::state::State;
use moire_cat::bits::{self, Row};
use moire_cat::vocabulary::{rels, sets};
use moire_cat::{CheckId, Model, Type};
use moire_program::ir::MBARRIER_COUNT;
use std::collections::{BTreeMap, BTreeSet};

/// Operations of a phase whose orders are tried one by one, where it matters.
const ORDERED: usize = 7;
/// Operations of a phase of which an order is looked for.
const MEMBERS: usize = 16;
/// Choices of one order for every phase that are tried at one leaf.
const CHOICES: usize = 10_000;

/// One way to order a phase: the pairs it needs, and whether a `noComplete` comes last.
#[derive(Clone, Debug)]
struct Tail {
    pairs: Vec<(usize, usize)>,
    ends_badly: bool,
}

/// The ways to order a phase, or some of them.
#[derive(Clone, Debug)]
struct Ways {
    tails: Vec<Tail>,
    /// The phase and the waits that asked in it, where not all orders are there.
    large: Option<(Phase, Vec<usize>)>,
}

/// Flags and the pairs they name.
pub(crate) type Raised = BTreeMap<CheckId, BTreeSet<(usize, usize)>>;

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
    let pairs = |check: &CheckId, rows: &[Row<W>]| -> BTreeSet<(usize, usize)> {
        if model.facts(model.checks()[check.0].node).ty == Type::Set {
            return rows.first().map(|r| bits::iter(r).map(|e| (e, e)).collect()).unwrap_or_default();
        }
        rows.iter().take(n).enumerate().flat_map(|(a, row)| bits::iter(row).map(move |b| (a, b))).collect()
    };
    flags.iter().map(|(check, rows)| (*check, pairs(check, rows))).collect()
}

impl<const W: usize> State<'_, W> {
    /// Every coherence the finished graph can have under some order of each phase; whether something was left untried.
    pub(crate) fn settle(&mut self) -> (Vec<Settled<W>>, bool) {
        let mut found = Vec::new();
        let ways = self.tails();
        let large = ways.iter().any(|w| w.large.is_some());
        let mut tails: Vec<Vec<Tail>> = Vec::new();
        let untried = ways.iter().filter_map(|w| w.large.as_ref()).any(|l| l.0.members.len() > MEMBERS);
        for Ways { tails: some, large } in ways {
            let mut kept: Vec<Tail> = some.into_iter().filter(|t| self.allows(t)).collect();
            if let (true, Some((phase, asked))) = (kept.is_empty(), &large) {
                kept.extend(self.allowed_order(phase, asked));
            }
            tails.push(kept);
        }
        let hopeless = tails.iter().any(Vec::is_empty);
        let fences = self.events.iter().filter(|e| e.emitted.labels >> sets::SC & 1 == 1).count();
        let all = fences > 1 || tails.iter().flatten().any(|t| t.ends_badly);
        let (mut tried, mut cut) = (0, false);
        self.choose(&tails, (all, false), &mut tried, &mut found, &mut cut);
        cut |= untried || (large && !hopeless && (all || found.is_empty()));
        (found, cut)
    }

    /// Whether the model has nothing against the pairs of a tail.
    fn allows(&mut self, tail: &Tail) -> bool {
        self.under(tail, |s| !s.contradicts())
    }

    fn choose(
        &mut self,
        tails: &[Vec<Tail>],
        (all, bad): (bool, bool),
        tried: &mut usize,
        found: &mut Vec<Settled<W>>,
        cut: &mut bool,
    ) {
        let Some((first, rest)) = tails.split_first() else {
            *tried += 1;
            let n = self.inputs.n;
            let model = self.model;
            *cut |= self.evaluate_leaf(|co, fence, flags| match found.iter_mut().find(|s| s.co == co) {
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
            });
            return;
        };
        for tail in first {
            if *tried >= CHOICES {
                *cut = true;
                return;
            }
            self.under(tail, |s| s.choose(rest, (all, bad || tail.ends_badly), tried, found, cut));
            if !all && !found.is_empty() {
                return;
            }
        }
    }

    /// Runs `then` with the pairs of a tail entered.
    fn under<T>(&mut self, tail: &Tail, then: impl FnOnce(&mut Self) -> T) -> T {
        for (a, b) in &tail.pairs {
            bits::set(&mut self.inputs.rels[rels::MBAR_ORDER][*a], *b);
        }
        let result = then(self);
        for (a, b) in &tail.pairs {
            bits::clear(&mut self.inputs.rels[rels::MBAR_ORDER][*a], *b);
        }
        result
    }

    fn objects(&self) -> BTreeSet<Object> {
        let placed = (0..self.events.len()).filter(|id| self.mbarriers[*id].is_some());
        placed.filter_map(|id| Some(self.mbar_use(id)?.object)).collect()
    }

    /// The ways to order each phase whose order matters.
    fn tails(&self) -> Vec<Ways> {
        let mut out = Vec::new();
        for object in self.objects() {
            for era in 0..=self.eras(object) {
                for (n, phase) in self.phases_of(object, era).into_iter().flatten().enumerate() {
                    let level = u16::try_from(n + 1).unwrap_or(u16::MAX);
                    let asked: Vec<usize> = self
                        .placed_on(object)
                        .filter(|(_, act, place)| {
                            matches!(act, Act::Wait { .. }) && *place == Place { era, level }
                        })
                        .map(|p| p.0)
                        .collect();
                    if self.order_matters(&phase) && phase.members.len() > ORDERED {
                        let tails = self.one_order(&phase, &asked, &|a, b| self.po(a, b));
                        out.push(Ways { tails: tails.into_iter().collect(), large: Some((phase, asked)) });
                    } else if self.order_matters(&phase) {
                        out.push(Ways { tails: self.ordered(&phase, &asked), large: None });
                    } else if phase.adds_up()
                        && (!asked.is_empty() || phase.members.iter().any(|m| self.no_complete(*m)))
                    {
                        out.push(Ways { tails: self.completed(&phase, &asked), large: None });
                    }
                }
            }
        }
        out
    }

    /// An order of a large phase whose pairs the model allows one by one.
    fn allowed_order(&mut self, phase: &Phase, asked: &[usize]) -> Option<Tail> {
        let mut refused = BTreeSet::new();
        for a in phase.members.iter().chain(asked) {
            for b in phase.members.iter().filter(|b| *b != a) {
                let pair = Tail { pairs: vec![(*a, *b)], ends_badly: false };
                if !self.allows(&pair) {
                    refused.insert((*b, *a));
                }
            }
        }
        self.one_order(phase, asked, &|a, b| refused.contains(&(a, b)) || self.po(a, b))
    }

    /// An order of the operations in which no earlier part adds up and nothing comes before what must precede it.
    fn one_order(
        &self,
        phase: &Phase,
        asked: &[usize],
        precedes: &dyn Fn(usize, usize) -> bool,
    ) -> Option<Tail> {
        let members = &phase.members;
        if members.len() > MEMBERS {
            return None;
        }
        let earlier =
            |m: &usize| (0..members.len()).filter(|o| precedes(members[*o], *m)).map(|o| 1 << o).sum();
        let needs: Vec<u32> = members.iter().map(earlier).collect();
        let (mut order, mut vain) = (Vec::new(), BTreeSet::new());
        let may_end = |m: usize| !phase.adds_up() || asked.iter().all(|a| !precedes(members[m], *a));
        self.extend_one(phase, (&needs, &may_end), &mut order, &mut vain).then(|| {
            let order: Vec<usize> = order.iter().map(|m| members[*m]).collect();
            let later = |i: usize| order[i + 1..].iter().map(move |b| (i, *b));
            let mut pairs: Vec<(usize, usize)> =
                (0..order.len()).flat_map(later).map(|(i, b)| (order[i], b)).collect();
            let last = order.last().copied().filter(|_| phase.adds_up());
            pairs.extend(last.iter().flat_map(|l| asked.iter().map(move |a| (*a, *l))));
            Tail { pairs, ends_badly: last.is_some_and(|l| self.no_complete(l)) }
        })
    }

    /// Completes an order of members by number, each after those it needs and one at the end that may be there; `vain`:
    /// sets that lead nowhere.
    fn extend_one(
        &self,
        phase: &Phase,
        (needs, may_end): (&[u32], &dyn Fn(usize) -> bool),
        order: &mut Vec<usize>,
        vain: &mut BTreeSet<u32>,
    ) -> bool {
        let done: u32 = order.iter().map(|m| 1 << m).sum();
        let ids: Vec<usize> = order.iter().map(|m| phase.members[*m]).collect();
        let (arrivals, tx) = self.sums(&ids);
        if order.len() == needs.len() {
            return order.last().is_none_or(|m| may_end(*m));
        }
        let early = !order.is_empty() && arrivals >= phase.expected && tx == 0;
        if early || !vain.insert(done) {
            return false;
        }
        (0..needs.len()).filter(|m| done >> m & 1 == 0 && needs[*m] & !done == 0).any(|m| {
            order.push(m);
            let found = self.extend_one(phase, (needs, may_end), order, vain);
            if !found {
                order.pop();
            }
            found
        })
    }

    fn no_complete(&self, id: usize) -> bool {
        matches!(self.mbar_use(id).map(|u| u.act), Some(Act::Add { no_complete: true, .. }))
    }

    fn sums(&self, ids: &[usize]) -> (u64, i64) {
        ids.iter().fold((0, 0), |(n, tx), id| match self.mbar_use(*id).map(|u| u.act) {
            Some(Act::Add { arrivals, tx: more, .. }) => (n + u64::from(arrivals), tx + more),
            _ => (n, tx),
        })
    }

    /// Whether a part of the phase adds up, so that it must not come first.
    fn order_matters(&self, phase: &Phase) -> bool {
        if phase.arrivals < phase.expected {
            return false;
        }
        let idle = |id: &usize| self.sums(&[*id]).0 == 0;
        let spare: Vec<usize> = if phase.arrivals == phase.expected {
            phase.members.iter().copied().filter(idle).collect()
        } else {
            phase.members.clone()
        };
        if spare.len() > 16 {
            return true;
        }
        (1u32..1 << spare.len()).any(|subset| {
            let left_out: Vec<usize> =
                (0..spare.len()).filter(|i| subset >> i & 1 == 1).map(|i| spare[i]).collect();
            let (arrivals, tx) = self.sums(&left_out);
            let some = left_out.len() < phase.members.len();
            some && phase.arrivals - arrivals >= phase.expected && phase.tx == tx
        })
    }

    fn po(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.events[a], &self.events[b]);
        let together = !crate::lanes::apart(&x.emitted.arms, &y.emitted.arms);
        let issued =
            together && y.emitted.detached && !x.emitted.detached && x.emitted.index < y.emitted.index;
        bits::has(&self.inputs.rels[rels::PO][a], b) || (x.thread == y.thread && issued)
    }

    /// Each operation that can have completed the phase.
    fn completed(&self, phase: &Phase, asked: &[usize]) -> Vec<Tail> {
        let last = |c: &usize| {
            let pairs: Vec<(usize, usize)> =
                phase.members.iter().chain(asked).filter(|x| *x != c).map(|x| (*x, *c)).collect();
            let fits = pairs.iter().all(|(x, _)| !self.po(*c, *x));
            fits.then(|| Tail { pairs, ends_badly: self.no_complete(*c) })
        };
        // An operation that comes after a wait in its thread is the likely one.
        let mut out: Vec<(bool, Tail)> = Vec::new();
        for c in &phase.members {
            let likely = asked.iter().any(|a| self.po(*a, *c));
            out.extend(last(c).map(|t| (!likely, t)));
        }
        out.sort_by_key(|t| t.0);
        out.into_iter().map(|t| t.1).collect()
    }

    /// Every order of the operations in which no earlier part of them adds up.
    fn ordered(&self, phase: &Phase, asked: &[usize]) -> Vec<Tail> {
        let mut out = Vec::new();
        self.extend_order(phase, asked, &mut Vec::new(), &mut out);
        out
    }

    fn extend_order(&self, phase: &Phase, asked: &[usize], order: &mut Vec<usize>, out: &mut Vec<Tail>) {
        let left: Vec<usize> = phase.members.iter().copied().filter(|m| !order.contains(m)).collect();
        let (arrivals, tx) = self.sums(order);
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
            if pairs.iter().all(|(a, b)| !self.po(*b, *a)) {
                out.push(Tail { pairs, ends_badly: last.is_some_and(|l| self.no_complete(l)) });
            }
            return;
        }
        for next in &left {
            if left.iter().all(|l| !self.po(*l, *next)) {
                order.push(*next);
                self.extend_order(phase, asked, order, out);
                order.pop();
            }
        }
    }

    /// What is wrong whatever the order inside the phases is.
    pub(crate) fn mbarrier_flags(&self) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        for object in self.objects() {
            for era in 0..=self.eras(object) {
                for phase in self.phases_of(object, era).into_iter().flatten() {
                    if phase.arrivals > phase.expected {
                        out.insert(flag::OVERARRIVAL.to_owned());
                    }
                    if phase.tx.unsigned_abs() > u64::from(MBARRIER_COUNT) {
                        out.insert(flag::RANGE.to_owned());
                    }
                }
            }
        }
        for id in (0..self.events.len()).filter(|id| self.mbarriers[*id].is_some()) {
            match self.mbar_use(id).and_then(|u| u.fault) {
                Some(Fault::Range) => drop(out.insert(flag::RANGE.to_owned())),
                Some(Fault::Target) => drop(out.insert(flag::TARGET.to_owned())),
                Some(Fault::Repeated) => drop(out.insert(flag::REPEATED.to_owned())),
                None => {}
            }
        }
        if self.events.iter().any(|e| e.emitted.tensor.as_ref().is_some_and(|t| t.wrong_lanes)) {
            out.insert(flag::LANES.to_owned());
        }
        if self.events.iter().any(|e| e.emitted.tensor.as_ref().is_some_and(|t| t.wrong_columns)) {
            out.insert(flag::COLUMNS.to_owned());
        }
        out.extend(self.threads.iter().flat_map(|t| &t.trace.flags).map(|f| (*f).to_owned()));
        self.allocator_flags(&mut out);
        if self.stalls().iter().any(|s| !s.valid) {
            out.insert(flag::OUTSIDE.to_owned());
        }
        out
    }

    /// For each thread that waits at an mbarrier for ever: which one, and what its phase lacks.
    pub(crate) fn stalls(&self) -> Vec<Stall> {
        let mut out = Vec::new();
        for thread in 0..self.threads.len() {
            let (TraceEnd::Gate(index) | TraceEnd::Stuck(index)) = self.threads[thread].trace.end else {
                continue;
            };
            if let Some(object) = self.awaited(thread, index).map(|used| used.object) {
                let instance = self.layout.instances[object.instance as usize];
                let mut stall = Stall {
                    thread,
                    object: instance.object,
                    owner: instance.owner,
                    offset: object.offset,
                    valid: false,
                    phase: 0,
                    pending: 0,
                    tx: 0,
                };
                if let Some(phases) = self.phases_of(object, self.eras(object)) {
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
}
