//! A finished execution as a visitor sees it: its key, final states, flags, witness and digest.

use super::settle::stalls;
use crate::graph::digest::mixed;
use crate::graph::event::{Event, Faults};
use crate::graph::events::{Events, ThreadState};
use crate::graph::graph::Answers;
use crate::graph::ids::EventId;
use crate::graph::row;
use crate::prune::state::State;
use crate::search::LeafView;
use crate::thread::event::Kind;
use crate::thread::flow::Stale;
use crate::thread::ids::{CellId, Id};
use crate::thread::num::extended;
use crate::thread::run::run;
use crate::thread::trace::{Trace, TraceEnd, View as _};
use moire_cat::bits::{self, Row};
use moire_cat::vocabulary::{rels, sets};
use moire_execution::leaf::*;
use moire_program::ir::*;
use rustc_hash::FxHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// A finished execution as shown to a visitor.
pub(crate) struct Leaf<'s, 'a, 'p, const W: usize> {
    pub(crate) state: &'s State<'a, W>,
    pub(crate) co: &'s [Row<W>],
    pub(crate) fence: &'s [Row<W>],
    pub(crate) flags: BTreeSet<String>,
    /// By flag of the model, the pairs it names.
    pub(crate) pairs: BTreeMap<String, BTreeSet<(EventId, EventId)>>,
    /// By flag of the engine, the instructions that it is about.
    pub(crate) faults: Faults,
    pub(crate) kind: LeafKind,
    pub(crate) limit: usize,
    pub(crate) path: &'p [u32],
    /// Set when `limit` cut the final states.
    pub(crate) cut: bool,
}

impl<const W: usize> Leaf<'_, '_, '_, W> {
    fn key(&self) -> LeafKey {
        let s = self.state;
        let end = |t: &ThreadState| match t.trace.end {
            TraceEnd::Barrier(i) => End::Barrier(i),
            TraceEnd::Gate(i) | TraceEnd::Stuck(i) => End::Spin(i),
            _ => End::Done,
        };
        let mut key =
            LeafKey { ends: s.graph.events.threads.iter().map(end).collect(), ..LeafKey::default() };
        for &(read, cell, write) in &s.graph.events.inputs.cells.reads {
            let c = s.graph.events.layout.cells[CellId::at(cell.into())];
            key.rf.push((
                s.graph.events.reference(EventId::numbered(read)),
                c.instance.number(),
                c.offset,
                c.bytes,
                s.graph.events.reference(EventId::numbered(write)),
            ));
        }
        let writes = || {
            s.graph
                .events
                .ids()
                .filter(|e| s.graph.events[*e].is_write() && s.graph.events[*e].thread.is_some())
        };
        for a in writes() {
            for b in writes().filter(|b| row::has(&self.co[a.index()], *b)) {
                let overlap = s.graph.events[a]
                    .emitted
                    .access
                    .zip(s.graph.events[b].emitted.access)
                    .is_some_and(|(x, y)| x.overlaps(&y));
                if overlap {
                    key.co.push((s.graph.events.reference(a), s.graph.events.reference(b)));
                }
            }
        }
        key.phases = s
            .graph
            .events
            .ids()
            .filter_map(|e| s.graph.phases.of[e].map(|p| (s.graph.events.reference(e), p)))
            .collect();
        let turns = s.graph.events.ids().filter_map(|e| {
            Some((s.graph.events.reference(e), s.graph.allocations.allocator_phase(&s.graph.events, e)?))
        });
        key.phases.extend(turns);
        let places = s
            .graph
            .events
            .ids()
            .filter_map(|e| Some((s.graph.events.reference(e), s.graph.mbarriers.places[e]?)));
        key.phases.extend(places.map(|(e, place)| (e, mbarrier_phase(place.era, place.level))));
        key.normalise()
    }

    /// The instruction of an event.
    fn place(&self, e: EventId) -> Option<Place> {
        self.state.graph.events[e].place()
    }

    /// Final registers of each thread.
    fn registers(&self) -> Vec<Vec<Value>> {
        let s = self.state;
        let values = |trace: &Trace| trace.regs.iter().map(|r| r.value.unwrap_or(0)).collect();
        let one = |thread: ThreadId| -> Vec<Value> {
            let ThreadState { flow, trace, .. } = &s.graph.events.threads[thread];
            let view = Answers { graph: &s.graph, thread };
            if flow.stale == Stale::Any {
                return values(&run(
                    s.graph.events.program,
                    &s.graph.events.layout,
                    flow,
                    thread,
                    s.graph.events.front,
                    &view,
                ));
            }
            let mut out: Vec<Value> = values(trace);
            for event in trace.events.iter().flatten().filter(|e| e.kind == Kind::Read) {
                if flow.tests[event.pc].is_some()
                    && let Op::Load { ty, dst, .. } =
                        &s.graph.events.program.threads[thread.index()].body[event.pc].op
                {
                    out[dst[0].index()] = view.read(event.index).map_or(0, |v| extended(*ty, v));
                }
            }
            out
        };
        s.graph.events.threads.ids().map(one).collect()
    }

    fn final_memories(&mut self) -> Vec<Memory> {
        let s = self.state;
        let Events { program, layout, .. } = &s.graph.events;
        let initial = |(_, i): (_, &Instance)| program.objects[i.object.index()].init.clone();
        let mut memories: Vec<Memory> = vec![layout.instances.entries().map(initial).collect()];
        for (c, cell) in layout.cells.entries() {
            let writers = *s.graph.events.writers(c);
            let is_last = |w: &EventId| bits::is_empty(&bits::and(&self.co[w.index()], &writers));
            let last: Vec<EventId> = row::events(&writers).filter(is_last).collect();
            if last.len() == 1 && s.graph.events[last[0]].thread.is_none() {
                continue;
            }
            let mut values = last
                .iter()
                .map(|w| s.graph.events.cell_value(*w, c))
                .collect::<BTreeSet<Value>>()
                .into_iter();
            if memories.len() * values.len() > self.limit {
                self.cut = true;
                continue;
            }
            let write = |memory: &mut Memory, value: Value| {
                memory[cell.instance.index()].put_value(cell.offset, cell.bytes, value);
            };
            let first = values.next();
            let mut others = Vec::new();
            for value in values {
                let copies = memories.clone().into_iter().map(|mut memory| {
                    write(&mut memory, value);
                    memory
                });
                others.extend(copies);
            }
            if let Some(first) = first {
                memories.iter_mut().for_each(|memory| write(memory, first));
            }
            memories.extend(others);
        }
        memories
    }
}

impl<const W: usize> LeafView for Leaf<'_, '_, '_, W> {
    fn kind(&self) -> LeafKind {
        self.kind
    }

    fn states(&mut self) -> Vec<FinalState> {
        let memories = self.memories();
        // Only where there is a state.
        let regs = if memories.is_empty() { Vec::new() } else { self.registers() };
        memories.into_iter().map(|memory| FinalState { regs: regs.clone(), memory }).collect()
    }

    fn memories(&mut self) -> Vec<Memory> {
        if self.kind == LeafKind::Blocked { Vec::new() } else { self.final_memories() }
    }

    fn flags(&self) -> &BTreeSet<String> {
        &self.flags
    }

    fn facts(&mut self) -> LeafFacts {
        let s = self.state;
        let observed = &s.graph.events.layout.observed;
        let memories = self.memories();
        // Only where there is a state.
        let all = if memories.is_empty() { Vec::new() } else { self.registers() };
        let seen = observed.iter().filter(|_| !all.is_empty()).map(|(t, r)| all[t.index()][r.index()]);
        let regs: Vec<Value> = seen.collect();
        let outcomes = memories.into_iter().map(|memory| Outcome { regs: regs.clone(), memory }).collect();
        LeafFacts { key: self.key(), kind: self.kind, outcomes, flags: self.flags.clone() }
    }

    fn pairs(&self, flag: &str) -> BTreeSet<(Place, Place)> {
        let named = self.pairs.get(flag).into_iter().flatten();
        named.filter_map(|(a, b)| Some((self.place(*a)?, self.place(*b)?))).collect()
    }

    fn findings(&self) -> BTreeSet<Finding> {
        let place = |e: EventId| self.place(e);
        let mut out = BTreeSet::new();
        for flag in &self.flags {
            if let Some(places) = self.faults.get(flag).filter(|places| !places.is_empty()) {
                let one = |place: &Place| Finding { flag: flag.clone(), places: vec![*place] };
                out.extend(places.iter().map(one));
            } else if !self.pairs.contains_key(flag) {
                out.insert(Finding { flag: flag.clone(), places: Vec::new() });
            }
            let Some(pairs) = self.pairs.get(flag) else { continue };
            for (a, b) in pairs {
                let mut places: Vec<Place> = [place(*a), place(*b)].into_iter().flatten().collect();
                places.sort();
                if a == b {
                    places.dedup();
                }
                out.insert(Finding { flag: flag.clone(), places });
            }
        }
        out
    }

    fn witness(&mut self) -> Witness {
        let s = self.state;
        let mut out = Witness::default();
        let value = |e: EventId| match s.graph.events[e].emitted.kind {
            Kind::Read => {
                let thread = s.graph.events[e].thread?;
                Answers { graph: &s.graph, thread }.read(s.graph.events[e].emitted.index)
            }
            Kind::Write => s.graph.events.current(e).and_then(|c| c.value),
            _ => None,
        };
        for e in s.graph.events.ids() {
            let event = &s.graph.events[e];
            let object = event.emitted.access.map(|a| s.graph.events.layout.instances[a.instance].object);
            out.events.push(WitnessEvent {
                event: s.graph.events.reference(e),
                line: event.emitted.line,
                kind: event_word(event).into(),
                location: object.map(|o| {
                    let offset = event.emitted.access.map_or(0, |a| a.offset);
                    let name = &s.graph.events.program.objects[o.index()].name;
                    if offset == 0 { name.clone() } else { format!("{name}+{offset}") }
                }),
                value: value(e).filter(|_| !event.emitted.detached).and_then(|v| u64::try_from(v).ok()),
            });
        }
        let n = s.graph.events.len();
        let mut edges = |name: &str, rows: &[Row<W>]| {
            for (i, row) in rows.iter().enumerate().take(n) {
                out.edges.extend(bits::iter(row).filter(|j| *j < n).map(|j| (name.to_owned(), i, j)));
            }
        };
        edges("rf", &s.graph.events.inputs.rels[rels::RF]);
        let after = |e: EventId| match s.graph.events[e].thread {
            Some(_) => self.co[e.index()],
            None => bits::empty(),
        };
        let co: Vec<Row<W>> = s.graph.events.ids().map(after).collect();
        edges("co", &co);
        edges("rmw", &s.graph.events.inputs.rels[rels::RMW]);
        edges("mbar-sync", &s.graph.events.inputs.rels[rels::MBAR_SYNC]);
        edges("syncbar", &s.graph.events.inputs.rels[rels::SYNCBAR]);
        edges("sync_fence", self.fence);
        out
    }

    fn stalls(&self) -> Vec<Stall> {
        stalls(self.state)
    }

    fn column_stalls(&self) -> Vec<ColumnStall> {
        self.state.graph.allocations.column_stalls(&self.state.graph.events)
    }

    fn digest(&mut self) -> u64 {
        let s = self.state;
        if s.graph.events.universe.special > 0 || self.kind == LeafKind::Blocked {
            let mut hasher = FxHasher::default();
            self.key().hash(&mut hasher);
            return mixed(hasher.finish());
        }
        // One path leads to an execution, and the path decides the numbers of events; so they say which is meant.
        let wide = |n: u16| u64::from(n);
        let read = |(read, cell, write): &(u16, u16, u16)| {
            mixed(wide(*read) << 32 | wide(*cell) << 16 | wide(*write))
        };
        let mut sum = s
            .graph
            .events
            .inputs
            .cells
            .reads
            .iter()
            .map(read)
            .fold(s.graph.events.universe.identity(), u64::wrapping_add);
        for (event, row) in self.co.iter().enumerate().take(s.graph.events.len()) {
            let row = row.iter().fold(event as u64 + 1, |all, word| mixed(all ^ word.rotate_left(17)));
            sum = sum.wrapping_add(row);
        }
        mixed(sum)
    }

    fn path(&self) -> &[u32] {
        self.path
    }
}

/// What an event is, in a word for people.
fn event_word(event: &Event) -> &'static str {
    let has = |set: usize| event.emitted.labels >> set & 1 == 1;
    match event.emitted.kind {
        _ if event.emitted.detached && has(sets::TC_ACCESS) => "tmem",
        _ if event.emitted.detached && has(sets::W) => "async W",
        _ if event.emitted.detached && has(sets::R) => "async R",
        _ if event.emitted.detached => "async M",
        _ if has(sets::TC_ISSUE) || has(sets::COPY_ISSUE) || has(sets::WGMMA_ISSUE) => "issue",
        _ if has(sets::EXIT) => "exit",
        Kind::Read => "R",
        Kind::Write if event.thread.is_none() => "init",
        Kind::Write => "W",
        Kind::Fence => "F",
        Kind::Barrier(_) => "B",
        Kind::Mbarrier(_) => "M",
        Kind::Allocator(_) => "A",
    }
}
