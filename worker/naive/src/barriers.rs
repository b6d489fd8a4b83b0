//! Barriers of one candidate: the phases that each arrival can belong to, and the relations that follow.
//!
//! A named barrier is identified by CTA, number and (Dat3M dialect) instance. When a phase is complete:
//!
//! - with a count: it has as many arrivals as the count says;
//! - without one, native text: every thread of the CTA has arrived or exited;
//! - without one, Dat3M dialect: it has as many arrivals as the text of the CTA has `bar`s of that number and instance.
//!
//! A complete phase holds exactly that many arrivals, and every phase but the last is complete.
//! (PTX ISA 9.2, 9.7.13.1 to 9.7.13.3.)

use super::allocator::Readings;
use super::event::{Barrier, Path, Refusal, Stop};
use super::exchange::{Answer, Circle, Form, Gift, answer, takes_part};
use super::space::Memory;
use moire_program::ir::{BarRed, Op, Operand, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Most ways to deal out the uses of one barrier that are looked at, and most combinations of the ways of all barriers.
const WAYS: usize = 1 << 18;

/// A barrier event: thread and position in its path.
pub(super) type At = (usize, usize);

/// One assignment of the barrier events of a candidate to phases.
#[derive(Clone, Debug, Default)]
pub(super) struct Phases {
    pub(super) phase: BTreeMap<At, u16>,
    /// Arrival and waiting event of one complete phase; likewise for cluster and warp barriers, and exchanges.
    pub(super) named: BTreeSet<(At, At)>,
    pub(super) cluster: BTreeSet<(At, At)>,
    pub(super) warp: BTreeSet<(At, At)>,
    pub(super) rendezvous: BTreeSet<(At, At)>,
    /// Earlier to later phase of one barrier.
    pub(super) later: BTreeSet<(At, At)>,
    /// Waiting event, and an event that had to happen before the wait was passed.
    pub(super) needs: BTreeSet<(At, At)>,
    /// Waiting event, and a thread that had to exit before the wait was passed.
    pub(super) exits: BTreeSet<(At, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Named,
    Cluster,
    Warp,
    Exchange(Form),
}

/// A barrier: its kind, the first thread of its CTA, cluster or warp, its number or mask, and its instance.
pub(super) type Object = (Kind, usize, u128, Option<u32>);

/// One use of a barrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    at: At,
    arrives: bool,
    waits: bool,
    /// It is the last event of a path that ends waiting here.
    stuck: bool,
    count: Option<u128>,
    reduces: Option<(BarRed, bool, u128)>,
    /// Lanes that arrive: one bit each.
    lanes: u32,
    /// At an exchange: what they give, and the answer they assume.
    gives: Option<(Circle, Gift, Answer)>,
}

/// What all candidates of a program have in common.
pub(super) struct Scene<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a Memory<'a>,
    pub(super) readings: Readings,
}

impl Scene<'_> {
    /// All assignments of phases of these paths. `ways`: those of each barrier.
    pub(super) fn phases(&self, paths: &[&Path], ways: &[Rc<Vec<Phases>>]) -> Result<Vec<Phases>, Refusal> {
        let mut out = vec![Phases::default()];
        for ways in ways {
            if out.len().saturating_mul(ways.len()) > WAYS {
                return Err(Refusal::TooMany("combinations of barrier phases"));
            }
            out = out.iter().flat_map(|a| ways.iter().map(move |b| a.joined(b))).collect();
        }
        let ways = self.allocations(paths)?;
        out = out.iter().flat_map(|a| ways.iter().map(move |b| a.joined(b))).collect();
        out.retain(|phases| self.passable(phases));
        Ok(out)
    }

    /// All assignments of the uses of one barrier to phases. `done`: threads at their exit; only those that the barrier
    /// concerns matter.
    pub(super) fn ways(&self, object: Object, uses: &[Use], done: &[bool]) -> Result<Vec<Phases>, Refusal> {
        match object.0 {
            _ if uses.is_empty() => Ok(vec![Phases::default()]),
            Kind::Named if uses.iter().any(|u| u.count != uses[0].count) => {
                Err(Refusal::Unsupported("a barrier whose arrivals name different counts".into()))
            }
            Kind::Named => self.deal(object, uses, done),
            Kind::Cluster | Kind::Warp | Kind::Exchange(_) => {
                Ok(self.in_turn(object, uses, done).into_iter().collect())
            }
        }
    }

    /// Whether a thread may take part in the phases of a barrier, or keep them from being complete.
    pub(super) fn concerns(&self, (kind, first, ..): Object, t: usize) -> bool {
        match kind {
            Kind::Named => self.memory.cta[t] == first,
            Kind::Cluster => self.same_cluster(t, first),
            Kind::Warp | Kind::Exchange(_) => self.same_warp(t, first),
        }
    }

    /// Whether the waits can be passed one after another. Before a wait is passed, every arrival it needs has passed the
    /// waits in front of that arrival, and every thread it needs to have exited has passed all its waits.
    fn passable(&self, phases: &Phases) -> bool {
        let waits: Vec<At> =
            phases.needs.iter().map(|n| n.0).chain(phases.exits.iter().map(|e| e.0)).collect();
        let mut left: BTreeSet<At> = waits.into_iter().collect();
        loop {
            let ready = |w: &&At| {
                let in_front = |a: &At| left.iter().any(|v| v.0 == a.0 && v.1 < a.1);
                let arrived = phases.needs.iter().filter(|n| n.0 == **w).all(|n| !in_front(&n.1));
                let gone =
                    phases.exits.iter().filter(|e| e.0 == **w).all(|e| left.iter().all(|v| v.0 != e.1));
                !in_front(w) && arrived && gone
            };
            let Some(next) = left.iter().find(ready).copied() else { return left.is_empty() };
            left.remove(&next);
        }
    }

    /// What a path of a thread does to each barrier.
    pub(super) fn uses(&self, t: usize, path: &Path) -> BTreeMap<Object, Vec<Use>> {
        let mut out: BTreeMap<Object, Vec<Use>> = BTreeMap::new();
        for (i, event) in path.events.iter().enumerate() {
            let Some(barrier) = &event.barrier else { continue };
            let stuck = path.stop == Stop::AtBarrier && i + 1 == path.events.len();
            let lanes = event.lanes;
            let mut this = Use {
                at: (t, i),
                arrives: true,
                waits: true,
                stuck,
                count: None,
                reduces: None,
                lanes,
                gives: None,
            };
            let object = match barrier {
                Barrier::Named { id, instance, count, waits, reduces } => {
                    (this.waits, this.count, this.reduces) = (*waits, *count, *reduces);
                    (Kind::Named, self.memory.cta[t], *id, *instance)
                }
                Barrier::ClusterArrive => {
                    this.waits = false;
                    (Kind::Cluster, self.leader(t, true), 0, None)
                }
                Barrier::ClusterWait => {
                    this.arrives = false;
                    (Kind::Cluster, self.leader(t, true), 0, None)
                }
                Barrier::Warp { mask } => {
                    this.count = Some(*mask); // for warps: the lanes that take part
                    // Only arrivals with the same mask are of one phase.
                    (Kind::Warp, self.leader(t, false), *mask, None)
                }
                Barrier::Exchange { circle, gift, answer } => {
                    this.count = Some(u128::from(circle.1));
                    this.gives = Some((*circle, *gift, *answer));
                    (Kind::Exchange(circle.0), self.leader(t, false), u128::from(circle.1), None)
                }
            };
            out.entry(object).or_default().push(this);
        }
        out
    }

    /// First thread of the cluster, or of the warp.
    fn leader(&self, t: usize, cluster: bool) -> usize {
        (0..t).find(|s| if cluster { self.same_cluster(*s, t) } else { self.same_warp(*s, t) }).unwrap_or(t)
    }

    fn same_cluster(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.program.threads[a].place, &self.program.threads[b].place);
        let grid = |p: &moire_program::ir::Placement| (p.host, p.gpu, p.stream, p.grid, p.cluster);
        grid(a) == grid(b)
    }

    fn same_warp(&self, a: usize, b: usize) -> bool {
        let (p, q) = (&self.program.threads[a].place, &self.program.threads[b].place);
        self.memory.cta[a] == self.memory.cta[b]
            && p.warp == q.warp
            && (a == b || (p.lane().is_some() && q.lane().is_some()))
    }

    /// Number of `bar`s in the text of the CTA that name this barrier.
    fn written(&self, cta: usize, id: u128, instance: Option<u32>) -> usize {
        let members = (0..self.program.threads.len()).filter(|t| self.memory.cta[*t] == cta);
        members
            .flat_map(|t| &self.program.threads[t].body)
            .filter(|i| {
                let Op::Bar { id: of, instance: other, .. } = &i.op else { return false };
                let number = |n: &i128| super::arith::low(u128::from_ne_bytes(n.to_ne_bytes()), 32);
                *other == instance && !matches!(of, Operand::Imm(n) if number(n) != id)
            })
            .count()
    }

    /// All assignments of the uses of one named barrier.
    fn deal(&self, object: Object, uses: &[Use], done: &[bool]) -> Result<Vec<Phases>, Refusal> {
        let most = u16::try_from(self.most(object, uses)).expect("an execution has fewer events");
        let mut assignments: Vec<Vec<u16>> = vec![vec![]];
        for (i, this) in uses.iter().enumerate() {
            let previous = (0..i).rev().find(|j| uses[*j].at.0 == this.at.0);
            let mut longer = Vec::new();
            for a in &assignments {
                let least = previous.map_or(0, |j| a[j] + u16::from(uses[j].waits));
                for phase in least..most {
                    let mut a = a.clone();
                    a.push(phase);
                    longer.push(a);
                }
            }
            if longer.len() > WAYS {
                return Err(Refusal::TooMany("barrier phases"));
            }
            assignments = longer;
        }
        Ok(assignments.iter().filter_map(|a| self.check_named(object, (uses, done), a)).collect())
    }

    /// Most phases of a named barrier. All but the last are complete: each has as many lanes as the count says, or an arrival of
    /// each thread that uses the barrier then or later.
    fn most(&self, (_, cta, id, instance): Object, uses: &[Use]) -> usize {
        let of = |t: usize| uses.iter().filter(|u| u.at.0 == t).count();
        let lanes = uses.iter().map(|u| u128::from(u.lanes.count_ones())).sum::<u128>();
        let phases = match (uses.first().and_then(|u| u.count), instance) {
            (Some(count), _) => lanes.checked_div(count).map(|n| n + 1),
            (None, Some(_)) => uses.len().checked_div(self.written(cta, id, instance)).map(|n| n as u128 + 1),
            (None, None) => (0..self.memory.cta.len()).map(of).max().map(|n| n as u128),
        };
        phases.and_then(|n| usize::try_from(n).ok()).map_or(uses.len(), |n| n.min(uses.len()))
    }

    fn check_named(
        &self,
        (_, cta, id, instance): Object,
        (uses, done): (&[Use], &[bool]),
        phase: &[u16],
    ) -> Option<Phases> {
        let last = *phase.iter().max()?;
        let lanes =
            |here: &[usize]| here.iter().map(|i| u128::from(uses[*i].lanes.count_ones())).sum::<u128>();
        let mut complete = Vec::new();
        let mut exits: Vec<Vec<usize>> = Vec::new();
        for p in 0..=last {
            let here: Vec<usize> = (0..uses.len()).filter(|i| phase[*i] == p).collect();
            let first = *here.first()?;
            let mut gone = Vec::new();
            let full = match (uses[first].count, instance) {
                (Some(count), _) => lanes(&here) == count,
                (None, Some(_)) => here.len() == self.written(cta, id, instance),
                (None, None) => (0..done.len()).filter(|t| self.memory.cta[*t] == cta).all(|t| {
                    let arrived = here.iter().any(|i| uses[*i].at.0 == t);
                    let later = (0..uses.len()).any(|i| uses[i].at.0 == t && phase[i] >= p);
                    if !arrived {
                        gone.push(t);
                    }
                    arrived || (done[t] && !later)
                }),
            };
            let over = match (uses[first].count, instance) {
                (Some(count), _) => lanes(&here) > count,
                (None, Some(_)) => here.len() > self.written(cta, id, instance),
                (None, None) => false,
            };
            if over || (!full && p < last) {
                return None;
            }
            complete.push(full);
            exits.push(gone);
        }
        let fits = (0..uses.len()).all(|i| !uses[i].waits || complete[phase[i] as usize] != uses[i].stuck);
        let in_turn = instance.is_none();
        (fits && self.reductions_fit(uses, phase))
            .then(|| self.collect((uses, phase), &complete, &exits, in_turn))
    }

    fn reductions_fit(&self, uses: &[Use], phase: &[u16]) -> bool {
        (0..uses.len()).all(|i| {
            let Some((op, _, assumed)) = uses[i].reduces else { return true };
            let votes: Vec<bool> = (0..uses.len())
                .filter(|j| phase[*j] == phase[i])
                .flat_map(|j| {
                    vec![
                        uses[j].reduces.is_some_and(|(_, vote, _)| vote);
                        uses[j].lanes.count_ones() as usize
                    ]
                })
                .collect();
            let result = match op {
                BarRed::Popc => votes.iter().filter(|v| **v).count() as u128,
                BarRed::And => u128::from(votes.iter().all(|v| *v)),
                BarRed::Or => u128::from(votes.iter().any(|v| *v)),
            };
            uses[i].stuck || result == assumed
        })
    }

    /// `in_turn`: a phase is complete only when those before it are.
    fn collect(
        &self,
        (uses, phase): (&[Use], &[u16]),
        complete: &[bool],
        exits: &[Vec<usize>],
        in_turn: bool,
    ) -> Phases {
        let mut out = Phases::default();
        for (a, p) in uses.iter().zip(phase) {
            out.phase.insert(a.at, *p);
            if complete[*p as usize] && a.waits {
                out.exits.extend(exits[*p as usize].iter().map(|t| (a.at, *t)));
            }
            for (b, q) in uses.iter().zip(phase) {
                if p < q {
                    out.later.insert((a.at, b.at));
                    if in_turn && b.waits && complete[*q as usize] {
                        out.needs.insert((b.at, a.at));
                    }
                }
                if p == q && a.at != b.at && b.waits && complete[*p as usize] {
                    out.named.insert((a.at, b.at));
                    out.needs.insert((b.at, a.at));
                }
            }
        }
        out
    }

    /// Cluster and warp barriers: a use that comes after k waits of its thread, or of its first lane, belongs to generation k.
    fn in_turn(&self, object: Object, uses: &[Use], done: &[bool]) -> Option<Phases> {
        let lanes = |i: usize| uses[i].lanes;
        let number = |i: usize| {
            let shared =
                |j: usize| object.0 != Kind::Cluster || lanes(j) >> lanes(i).trailing_zeros() & 1 == 1;
            let earlier = (0..i).filter(|j| uses[*j].at.0 == uses[i].at.0);
            earlier.filter(|j| uses[*j].waits && shared(*j)).count()
        };
        let phase: Vec<usize> = (0..uses.len()).map(number).collect();
        let member = |i: usize, t: usize| match uses[i].count {
            None => self.same_cluster(t, object.1),
            Some(mask) => {
                let place = &self.program.threads[t].place;
                let named = match uses[i].gives {
                    Some((circle, ..)) => takes_part(&self.program.threads[t], circle),
                    None => place.mask == 0 || u128::from(place.mask) & mask != 0,
                };
                self.same_warp(t, object.1) && named
            }
        };
        let arrived = |t: usize, p: usize| {
            (0..uses.len()).any(|i| uses[i].at.0 == t && uses[i].arrives && phase[i] == p)
        };
        // Lanes that a mask names and that have come, the exited ones where nobody waits for them.
        let came = |t: usize, p: usize| {
            let here = (0..uses.len()).filter(|j| uses[*j].at.0 == t && phase[*j] == p);
            here.fold(0, |all, j| all | u128::from(lanes(j)))
        };
        let all_came = |i: usize, t: usize, p: usize| {
            let own = u128::from(self.program.threads[t].place.lanes());
            uses[i].count.unwrap_or(0) & own & !came(t, p) == 0
        };
        let waits_for_exited = self.readings.exited && object.0 == Kind::Warp;
        let complete = |i: usize, p: usize| {
            (0..done.len())
                .filter(|t| member(i, *t))
                .all(|t| if waits_for_exited { all_came(i, t, p) } else { arrived(t, p) || done[t] })
        };
        let mut out = Phases::default();
        for i in 0..uses.len() {
            let (a, p) = (uses[i], phase[i]);
            if a.waits && complete(i, p) == a.stuck {
                return None;
            }
            let here = || (0..uses.len()).filter(|j| phase[*j] == p).filter_map(|j| Some(uses[j].gives?.1));
            if let Some((circle, gift, assumed)) = a.gives
                && !a.stuck
                && answer(circle, &gift, &here().collect::<Vec<Gift>>()) != assumed
            {
                return None;
            }
            out.phase.insert(a.at, u16::try_from(p).expect("an execution has fewer events"));
            if a.waits && complete(i, p) {
                let gone = (0..done.len()).filter(|t| member(i, *t) && !arrived(*t, p));
                out.exits.extend(gone.map(|t| (a.at, t)));
            }
            for j in 0..uses.len() {
                let (b, q) = (uses[j], phase[j]);
                if p < q && a.gives.is_none() {
                    out.later.insert((a.at, b.at));
                }
                if p == q && a.at != b.at && a.arrives && b.waits && complete(j, p) {
                    let pairs = match object.0 {
                        Kind::Cluster => &mut out.cluster,
                        Kind::Exchange(_) => &mut out.rendezvous,
                        Kind::Named | Kind::Warp => &mut out.warp,
                    };
                    pairs.insert((a.at, b.at));
                    out.needs.insert((b.at, a.at));
                }
            }
        }
        Some(out)
    }
}

impl Phases {
    pub(super) fn joined(&self, other: &Phases) -> Phases {
        let mut out = self.clone();
        out.phase.extend(&other.phase);
        out.named.extend(&other.named);
        out.cluster.extend(&other.cluster);
        out.warp.extend(&other.warp);
        out.rendezvous.extend(&other.rendezvous);
        out.later.extend(&other.later);
        out.needs.extend(&other.needs);
        out.exits.extend(&other.exits);
        out
    }
}
