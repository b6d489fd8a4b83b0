//! The static relations of one choice of paths, by definition over all pairs.

use super::barriers::{At, Phases};
use super::effect::Effect;
use super::event::{Event, Path};
use super::graph::{Graph, all};
use super::history::Meaning;
use super::motion::Sphere;
use super::pairs::{EVENTS, Events, Pairs, members, one};
use super::seize::{Seize, Seizure};
use super::space::{Memory, Range};
use moire_cat::vocabulary::{rels, sets};
use moire_program::ir::{Placement, Program, Scope, SymbolId};
use std::collections::BTreeSet;

/// An event of the graph and where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    /// `None` for initial writes.
    pub(super) thread: Option<usize>,
    /// Position in the thread's path.
    pub(super) local: usize,
    pub(super) tags: u128,
    pub(super) range: Option<Range>,
    /// `None` for initial writes.
    pub(super) event: Option<&'a Event>,
    pub(super) cells: &'a [(usize, u128)],
}

/// The events of one choice of paths, those of failing iterations last.
pub(super) struct Scenery<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// Events before the failing iterations.
    pub(super) base: usize,
    /// By thread: position of its first event, the number of its events, and position of the first of a failing iteration.
    spans: Vec<(usize, usize, usize)>,
    program: &'a Program,
    /// By instance of memory: a thread of the CTA it belongs to.
    ctas: Vec<Option<usize>>,
}

impl<'a> Scenery<'a> {
    /// `None` when there are too many events.
    pub(super) fn new(
        program: &'a Program,
        memory: &'a Memory<'_>,
        paths: &[&'a Path],
        failing: bool,
    ) -> Option<Self> {
        let mut nodes = Vec::new();
        let from_thread = |t: usize, local: usize| {
            let event: &'a Event = &paths[t].events[local];
            let (tags, range, cells) = (event.tags, event.range, &event.cells[..]);
            Node { thread: Some(t), local, tags, range, event: Some(event), cells }
        };
        let mut spans = Vec::new();
        for (t, path) in paths.iter().enumerate() {
            spans.push((nodes.len(), path.kept().len(), EVENTS));
            nodes.extend((0..path.kept().len()).map(|local| from_thread(t, local)));
        }
        for (instance, place) in memory.instances.iter().enumerate() {
            let object = place.object;
            let virt = program.symbols.iter().position(|s| s.object == object).map_or(0, |p| p);
            let virt = SymbolId::at(virt);
            let bytes = program.objects[object.index()].bytes;
            nodes.push(Node {
                thread: None,
                local: 0,
                tags: 1 << sets::ANY | 1 << sets::M | 1 << sets::W | 1 << sets::IW,
                range: Some(Range { instance, virt, offset: 0, bytes }),
                event: None,
                cells: &memory.starts[instance],
            });
        }
        let base = nodes.len();
        if failing {
            for (t, path) in paths.iter().enumerate() {
                spans[t].2 = nodes.len();
                nodes.extend((path.kept().len()..path.events.len()).map(|local| from_thread(t, local)));
            }
        }
        let ctas: Vec<Option<usize>> = memory.instances.iter().map(|i| i.cta).collect();
        for node in &mut nodes {
            let shared = node.range.is_some_and(|r| ctas[r.instance].is_some());
            let place = |t: usize| &program.threads[t].place;
            let far = node.event.and_then(|e| e.home).zip(node.thread);
            if shared && node.tags >> sets::M & 1 == 1 {
                node.tags |= 1 << sets::SHARED;
            }
            if far.is_some_and(|(home, t)| !place(home).same_cta(place(t))) {
                node.tags |= 1 << sets::FAR;
            }
        }
        (nodes.len() <= EVENTS).then_some(Scenery { nodes, base, spans, program, ctas })
    }

    /// Position of an event of a thread.
    pub(super) fn find(&self, thread: usize, local: usize) -> Option<usize> {
        let (first, kept, failing) = self.spans[thread];
        let at = if local < kept { first + local } else { failing + (local - kept) };
        self.nodes.get(at).filter(|n| n.thread == Some(thread) && n.local == local).map(|_| at)
    }

    /// Sets and static relations; reads-from, barriers and coherence are still empty.
    pub(super) fn graph(&self, cells: usize) -> Graph {
        let n = self.nodes.len();
        let in_set =
            |s: usize| (0..n).filter(|i| self.nodes[*i].tags >> s & 1 == 1).fold(0, |set, i| set | one(i));
        let mut relations = vec![Pairs::none(n); rels::ALL.len()];
        let mut define = |relation: usize, (from, to): (Events, Events), holds: &Holds<'_>| {
            relations[relation] = Pairs::among(n, from, to, |i, j| holds(&self.nodes[i], &self.nodes[j]));
        };
        // Which events can be in a relation at all.
        let any = (all(n), all(n));
        let places = self.those(|node| node.range.is_some());
        let touch = (places, places);
        let scoped = self.those(|node| node.event.is_some_and(|e| e.scope.is_some()));
        let scoped = (scoped, scoped);
        let split = self.those(|node| node.event.is_some_and(|e| e.piece.is_some()));
        let split = (split, split);
        let second = (all(n), self.those(|node| node.event.is_some_and(|e| e.reads_first.is_some())));
        let ranges = |a: &Node<'_>, b: &Node<'_>| a.range.zip(b.range);
        let loc = |a: &Node<'_>, b: &Node<'_>| ranges(a, b).is_some_and(|(p, q)| p.meets(&q));
        let vloc = |a: &Node<'_>, b: &Node<'_>| {
            a.thread.is_some()
                && b.thread.is_some()
                && ranges(a, b).is_some_and(|(p, q)| p.meets_virtually(&q))
        };
        let bytes = |r: Range| (r.instance, r.offset, r.bytes);
        let same_range = |a: &Node<'_>, b: &Node<'_>| ranges(a, b).is_some_and(|(p, q)| bytes(p) == bytes(q));
        let placed = |a: &Node<'_>, b: &Node<'_>| {
            let place = |t: usize| &self.program.threads[t].place;
            a.thread.map(place).zip(b.thread.map(place))
        };
        let near = |a: &Node<'_>, b: &Node<'_>, f: &dyn Fn(&Placement, &Placement) -> bool| {
            placed(a, b).is_some_and(|(p, q)| f(p, q))
        };
        define(rels::UNORDERED, split, &pieces);
        define(rels::LOC, touch, &loc);
        define(rels::VLOC, touch, &vloc);
        define(rels::SAME_RANGE, touch, &same_range);
        let mutual = |a: &Node<'_>, b: &Node<'_>, p: &Placement, q: &Placement| {
            let scope = |x: &Node<'_>| x.event.and_then(|e| e.scope);
            let reach = |s: Scope, p: &Placement, q: &Placement| p == q || p.includes(s, q);
            scope(a).zip(scope(b)).is_some_and(|(s, r)| reach(s, p, q) && reach(r, q, p))
        };
        define(rels::SR, scoped, &|a, b| near(a, b, &|p, q| mutual(a, b, p, q)));
        let stands = |n: &Node<'_>| {
            let thread = n.event.and_then(|e| e.home).or(n.thread);
            thread.map(|t| &self.program.threads[t].place)
        };
        let homes = |a: &Node<'_>, b: &Node<'_>| stands(a).zip(stands(b));
        define(rels::SR_HOME, scoped, &|a, b| homes(a, b).is_some_and(|(p, q)| mutual(a, b, p, q)));
        let halves = |a: &Node<'_>, b: &Node<'_>| {
            let first = b.event.and_then(|e| e.reads_first);
            first.filter(|(read, _)| a.thread == b.thread && a.local == *read)
        };
        define(rels::RMW, second, &|a, b| halves(a, b).is_some());
        define(rels::RMW_DEP, second, &|a, b| halves(a, b).is_some_and(|(_, needed)| needed));
        self.threads(&mut relations);
        let mut depend = |relation: usize, of: fn(&Event) -> Events| {
            relations[relation] = self.depending(of);
        };
        depend(rels::TOKEN, |e| e.token);
        depend(rels::TOKEN_DIRECT, |e| e.token_nearest);
        depend(rels::ADDR, |e| e.address);
        depend(rels::DATA, |e| e.data);
        depend(rels::CTRL, |e| e.control);
        depend(rels::CTRL_RECONV, |e| e.nearby);
        relations[rels::PO_LOC] = relations[rels::PO].with(&relations[rels::VLOC], |a, b| a & b);
        relations[rels::COMPLETE] = relations[rels::VLOC].with(&relations[rels::SAME_RANGE], |a, b| a & b);
        let starts = if self.program.launched { any } else { (0, 0) };
        relations[rels::REACHES] = Pairs::among(n, starts.0, starts.1, |i, j| self.reaches(i, j));
        self.effects(&mut relations);
        self.motions(&mut relations);
        let sets = (0..sets::ALL.len()).map(in_set).collect();
        Graph { n, sets, relations, writers: self.writers(cells), reads: Vec::new() }
    }

    /// Relations that threads decide, and program order.
    fn threads(&self, relations: &mut [Pairs]) {
        let n = self.nodes.len();
        let own = |i: usize| self.nodes[i].thread;
        let home = |i: usize| self.nodes[i].event.and_then(|e| e.home).or(self.nodes[i].thread);
        let near = |of: &dyn Fn(usize) -> Option<usize>, holds: &dyn Fn(&Placement, &Placement) -> bool| {
            let place = |t: usize| &self.program.threads[t].place;
            let mut there = vec![0; self.program.threads.len()];
            (0..n).for_each(|i| of(i).into_iter().for_each(|t| there[t] |= one(i)));
            let row = |t: usize| {
                let others = (0..there.len()).filter(|u| holds(place(t), place(*u)));
                others.fold(0, |row, u| row | there[u])
            };
            let rows: Vec<Events> = (0..there.len()).map(row).collect();
            Pairs::of(n, |i| of(i).map_or(0, |t| rows[t]))
        };
        let same = Pairs::of(n, |i| self.those(|node| node.thread == own(i)));
        relations[rels::INT] = Pairs::of(n, |i| own(i).map_or(0, |_| same.0[i]));
        relations[rels::EXT] = Pairs::of(n, |i| all(n) & !same.0[i]);
        relations[rels::PO] = Pairs::of(n, |i| {
            let after = |j: &usize| before(&self.nodes[i], &self.nodes[*j]);
            members(relations[rels::INT].0[i]).filter(after).fold(0, |row, j| row | one(j))
        });
        relations[rels::SCTA] = near(&own, &|p, q| p.same_cta(q));
        relations[rels::SCLUSTER] = near(&own, &|p, q| p.includes(Scope::Cluster, q));
        relations[rels::SGPU] = near(&own, &|p, q| p.includes(Scope::Gpu, q));
        relations[rels::SCTA_HOME] = near(&home, &|p, q| p.same_cta(q));
        let stream = |p: &Placement| (p.gpu, p.stream);
        let behind =
            |p: &Placement, q: &Placement| !p.host && !q.host && stream(p) == stream(q) && p.grid < q.grid;
        let later = near(&own, &behind);
        let complete = near(&own, &|p, q| behind(p, q) && p.grid < self.program.starts_behind(q));
        let waits = self.those(|b| b.tags >> sets::GRID_WAIT & 1 == 1);
        relations[rels::SYNC_API] = Pairs::of(n, |i| complete.0[i] | later.0[i] & waits);
    }

    /// The events for which `test` holds.
    fn those(&self, test: impl Fn(&Node<'_>) -> bool) -> Events {
        (0..self.nodes.len()).filter(|i| test(&self.nodes[*i])).fold(0, |set, i| set | one(i))
    }

    /// From the events of its thread that `of` names, to the event.
    fn depending(&self, of: fn(&Event) -> Events) -> Pairs {
        let mut out = Pairs::none(self.nodes.len());
        for (b, node) in self.nodes.iter().enumerate() {
            let (Some(thread), Some(event)) = (node.thread, node.event) else { continue };
            members(of(event)).filter_map(|l| self.find(thread, l)).for_each(|a| out.add(a, b));
        }
        out
    }

    /// By cell: the events that write it.
    fn writers(&self, cells: usize) -> Vec<Events> {
        let mut out = vec![0; cells];
        for (i, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.tags >> sets::W & 1 == 1) {
            node.cells.iter().for_each(|(cell, _)| out[*cell] |= one(i));
        }
        out
    }

    /// Whether `j` touches memory of the CTA of the thread of `i`, while its own thread is in another CTA.
    fn reaches(&self, i: usize, j: usize) -> bool {
        let (Some(s), Some(t)) = (self.nodes[i].thread, self.nodes[j].thread) else { return false };
        let Some((e, f)) = self.nodes[i].event.zip(self.nodes[j].event) else { return false };
        let leader = |t: usize| moire_execution::columns::leader(self.program, t);
        let owner = self.nodes[j].range.and_then(|r| self.ctas[r.instance]);
        let mut touched: Vec<usize> = owner.into_iter().collect();
        touched.extend(f.effect.iter().flat_map(|e| e.ctas()));
        touched.extend(f.seizes.iter().filter(|s| matches!(s.what, Seizure::Get(_))).flat_map(|s| &s.ctas));
        let other = |c: &usize| leader(*c) != leader(t) && leader(*c) == leader(s);
        self.program.launched && !e.loose() && touched.iter().any(other)
    }

    /// Relations between tcgen05 events.
    fn effects(&self, relations: &mut [Pairs]) {
        let (n, tensor) = (self.nodes.len(), self.those(|node| effect(node).is_some()));
        let mut define = |relation: usize, holds: &dyn Fn(&Effect, &Effect, bool) -> bool| {
            relations[relation] = Pairs::among(n, tensor, tensor, |i, j| {
                let (a, b) = (&self.nodes[i], &self.nodes[j]);
                let both = effect(a).zip(effect(b));
                i != j && both.is_some_and(|(x, y)| holds(x, y, a.thread == b.thread))
            });
        };
        define(rels::ISSUE, &|x, y, same| same && x.issues(y));
        define(rels::TC_CONFLICT, &|x, y, _| x.clashes(y));
        define(rels::TC_PIPE, &|x, y, _| x.pipelines(y));
        let other = |x: &Effect, y: &Effect, same: bool| x.products(y) && !(same && x.one_with(y));
        define(rels::TC_SAME_SHAPE, &|x, y, s| other(x, y, s) && x.same_shape(y));
        define(rels::TC_SAME_BASE, &|x, y, s| other(x, y, s) && x.same_base(y));
        define(rels::TC_SAME_CELL, &|x, y, s| other(x, y, s) && x.same_cell(y));
        define(rels::TC_SAME_KIND, &|x, y, s| other(x, y, s) && x.same_kind(y));
        define(rels::TC_USED, &|x, y, same| same && y.spends(x));
        define(rels::TC_TRACKED, &|x, y, same| same && x.precedes(y) && y.follows(x));
        self.seizures(relations);
    }

    /// Relations of events of allocators to accesses and to each other.
    fn seizures(&self, relations: &mut [Pairs]) {
        let (n, every) = (self.nodes.len(), all(self.nodes.len()));
        let seize = |i: usize| self.nodes[i].event.and_then(|e| e.seizes.as_ref());
        let seizing = self.those(|node| node.event.is_some_and(|e| e.seizes.is_some()));
        let touches = |i: usize, s: &Seize, ctas: &[usize]| {
            let effect = effect(&self.nodes[i]).filter(|e| e.later);
            let mine = |(cta, slot, _): (usize, u32, u32)| Some(slot) == s.slot() && ctas.contains(&cta);
            effect.is_some_and(|e| e.allocated().into_iter().any(mine))
        };
        let gets = |s: &Seize| matches!(s.what, Seizure::Get(_));
        let puts = |s: &Seize| matches!(s.what, Seizure::Put(_));
        relations[rels::TC_GOT] = Pairs::among(n, seizing, every, |i, j| {
            seize(i).is_some_and(|s| gets(s) && touches(j, s, &s.ctas[..1]))
        });
        relations[rels::TC_FREED] = Pairs::among(n, every, seizing, |i, j| {
            seize(j).is_some_and(|s| puts(s) && touches(i, s, &s.ctas))
        });
        relations[rels::TC_GROWS] = Pairs::among(n, seizing, seizing, |i, j| {
            let grows =
                |a: &Seize, b: &Seize| gets(a) && gets(b) && a.ctas[0] == b.ctas[0] && b.columns > a.columns;
            seize(i).zip(seize(j)).is_some_and(|(a, b)| grows(a, b))
        });
        relations[rels::TC_TAKEN] = Pairs::among(n, seizing, seizing, |i, j| {
            let taken = |a: &Seize, b: &Seize| {
                let crosswise = a.pair() && b.pair() && a.ctas[0] == b.ctas[1];
                gets(a) && puts(b) && (crosswise || a.ctas[0] == b.ctas[0]) && a.slot() == b.slot()
            };
            seize(i).zip(seize(j)).is_some_and(|(a, b)| taken(a, b))
        });
    }

    /// Relations between asynchronous events and proxy fences.
    fn motions(&self, relations: &mut [Pairs]) {
        let (n, every) = (self.nodes.len(), all(self.nodes.len()));
        let late = self.those(|node| node.event.is_some_and(Event::loose));
        let moving = self.those(|node| node.event.is_some_and(|e| e.motion.is_some()));
        let fences = self.those(|node| node.event.is_some_and(|e| e.is(sets::PF)));
        let both = |i: usize, j: usize| {
            let (a, b) = (&self.nodes[i], &self.nodes[j]);
            a.event.zip(b.event).filter(|_| a.thread == b.thread)
        };
        let issue = Pairs::among(n, every, late, |i, j| {
            both(i, j).is_some_and(|(a, b)| a.turn == b.turn && !a.loose() && b.loose())
        });
        relations[rels::ISSUE] = relations[rels::ISSUE].or(&issue);
        relations[rels::COPY_TRACKED] = Pairs::among(n, moving, moving, |i, j| {
            let ends = |(a, b): (&Event, &Event)| {
                let parts = a.motion.as_ref().zip(b.motion.as_ref());
                parts.is_some_and(|(x, y)| x.ends_with(a.home, y))
            };
            self.nodes[i].local < self.nodes[j].local && both(i, j).is_some_and(ends)
        });
        let cta = |n: &Node<'_>| n.range.and_then(|r| self.ctas[r.instance]);
        let near = |f: &Node<'_>, owner: usize| {
            let place = |t: usize| &self.program.threads[t].place;
            f.thread.is_some_and(|t| place(t).same_cta(place(owner)))
        };
        relations[rels::COVERS] = Pairs::among(n, fences, every, |i, j| {
            let (f, x) = (&self.nodes[i], &self.nodes[j]);
            let (Some(fence), Some(range)) = (f.event.filter(|e| e.is(sets::PF)), x.range) else {
                return false;
            };
            match fence.sphere {
                None => true,
                Some(Sphere::NotShared) => cta(x).is_none(),
                Some(Sphere::AnyShared) => cta(x).is_some(),
                Some(Sphere::OwnShared) => cta(x).is_some_and(|owner| near(f, owner)),
                Some(Sphere::Only(bytes)) => bytes.meets(&range),
            }
        });
    }

    /// Enters one way of dealing out barrier phases.
    pub(super) fn set_phases(&self, graph: &mut Graph, phases: &Phases) {
        let pairs = |of: &BTreeSet<(At, At)>| {
            let mut out = Pairs::none(graph.n);
            for (a, b) in of {
                if let Some((a, b)) = self.find(a.0, a.1).zip(self.find(b.0, b.1)) {
                    out.add(a, b);
                }
            }
            out
        };
        graph.relations[rels::SYNCBAR] = pairs(&phases.named);
        graph.relations[rels::SYNC_CLUSTER] = pairs(&phases.cluster);
        graph.relations[rels::SYNC_WARP] = pairs(&phases.warp);
        graph.relations[rels::RENDEZVOUS] = pairs(&phases.rendezvous);
        graph.relations[rels::BAR_PHASE] = pairs(&phases.later);
    }

    /// Enters what the histories of the mbarriers mean.
    pub(super) fn set_histories(&self, graph: &mut Graph, meaning: &[&Meaning]) {
        let pairs = |of: &dyn Fn(&Meaning) -> &BTreeSet<(At, At)>| {
            let mut out = Pairs::none(graph.n);
            for (a, b) in meaning.iter().flat_map(|m| of(m)) {
                if let Some((a, b)) = self.find(a.0, a.1).zip(self.find(b.0, b.1)) {
                    out.add(a, b);
                }
            }
            out
        };
        let sync = pairs(&|m| &m.sync);
        let mutual = &graph.relations[rels::SR_HOME];
        let arrivals = sync.inverse();
        let chain = Pairs::of(graph.n, |a| {
            members(sync.0[a])
                .filter(|wait| arrivals.0[*wait] & !mutual.0[a] == 0)
                .fold(0, |row, wait| row | one(wait))
        });
        graph.relations[rels::MBAR_CHAIN] = chain;
        graph.relations[rels::MBAR_SYNC] = sync;
        graph.relations[rels::MBAR_ORDER] = pairs(&|m| &m.order);
        graph.relations[rels::MBAR_LIFE] = pairs(&|m| &m.life);
        graph.relations[rels::MBAR_STEP] = pairs(&|m| &m.step);
        graph.relations[rels::MBAR_SEEN] = pairs(&|m| &m.seen);
        graph.relations[rels::MBAR_AGAIN] = pairs(&|m| &m.again);
    }

    /// Events that had to happen for the answers of mbarriers.
    pub(super) fn answered(&self, meaning: &[&Meaning], n: usize) -> Pairs {
        let mut out = Pairs::none(n);
        for (a, b) in meaning.iter().flat_map(|m| &m.needs) {
            if let Some((a, b)) = self.find(a.0, a.1).zip(self.find(b.0, b.1)) {
                out.add(a, b);
            }
        }
        out
    }

    /// Pairs of events of which the second cannot exist, or have its value, without the first: dependencies, reads that
    /// instructions issued in order waited for, and events that passed barriers waited for. Reads-from is not included.
    pub(super) fn needs(
        &self,
        graph: &Graph,
        phases: &Phases,
        paths: &[&Path],
        control_meets: bool,
    ) -> Pairs {
        let control = if control_meets { rels::CTRL_RECONV } else { rels::CTRL };
        let mut out = Pairs::none(graph.n);
        for relation in [rels::ADDR, rels::DATA, control, rels::RMW_DEP] {
            out = out.or(&graph.relations[relation]);
        }
        let later = |wait: (usize, usize)| {
            let of = move |n: &Node<'_>| n.thread == Some(wait.0) && n.local > wait.1;
            (0..graph.n).filter(move |i| of(&self.nodes[*i]))
        };
        for (wait, arrival) in &phases.needs {
            let Some(a) = self.find(arrival.0, arrival.1) else { continue };
            later(*wait).for_each(|b| out.add(a, b));
        }
        for (b, node) in self.nodes.iter().enumerate() {
            let (Some(thread), Some(event)) = (node.thread, node.event) else { continue };
            members(event.held).filter_map(|l| self.find(thread, l)).for_each(|a| out.add(a, b));
        }
        for (wait, gone) in &phases.exits {
            // At the exit all branches have met.
            let control = if control_meets { 0 } else { paths[*gone].control };
            let mut causes: Vec<usize> =
                members(control | paths[*gone].held).filter_map(|l| self.find(*gone, l)).collect();
            for (passed, arrival) in phases.needs.iter().filter(|(passed, _)| passed.0 == *gone) {
                causes.extend(self.find(arrival.0, arrival.1));
                causes.extend(self.find(passed.0, passed.1));
            }
            for a in causes {
                later(*wait).for_each(|b| out.add(a, b));
            }
        }
        out
    }
}

/// Whether one event is related to another.
type Holds<'a> = dyn Fn(&Node<'_>, &Node<'_>) -> bool + 'a;

fn effect<'a>(n: &Node<'a>) -> Option<&'a Effect> {
    n.event.and_then(|e| e.effect.as_ref())
}

/// Different pieces of one instruction.
fn pieces(a: &Node<'_>, b: &Node<'_>) -> bool {
    let of = |n: &Node<'_>| n.event.and_then(|e| e.piece);
    a.thread.is_some()
        && a.thread == b.thread
        && of(a).zip(of(b)).is_some_and(|((x, i), (y, j))| x == y && i != j)
}

/// Program order: pieces of one instruction are unordered, the halves of one read-modify-write are not.
fn before(a: &Node<'_>, b: &Node<'_>) -> bool {
    let loose = |n: &Node<'_>| n.event.is_some_and(Event::loose);
    if a.thread.is_none() || a.thread != b.thread || a.local >= b.local || loose(a) || loose(b) {
        return false;
    }
    if a.event.zip(b.event).is_some_and(|(x, y)| x.beside(y)) {
        return false;
    }
    match a.event.and_then(|e| e.piece).zip(b.event.and_then(|e| e.piece)) {
        Some(((x, i), (y, j))) => x != y || i == j,
        None => true,
    }
}
