//! The facts of one execution: its key, how it ended, its final states and flags.

use super::Search;
use super::allocator::wrongs;
use super::barriers::Phases;
use super::event::{Path, Stop, VEIL};
use super::graph::Graph;
use super::history::Histories;
use super::judge::Execution;
use super::pairs::{Pairs, members};
use super::scene::Scenery;
use moire_cat::vocabulary::rels;
use moire_execution::leaf::{
    End, EventRef, FinalState, LeafFacts, LeafKey, LeafKind, Outcome, flag, initial_memory, mbarrier_phase,
    observed_registers,
};
use moire_program::ir::ThreadId;
use std::collections::BTreeSet;

impl Search<'_> {
    pub(super) fn facts(
        &self,
        scenery: &Scenery<'_>,
        paths: &[&Path],
        (phases, past): (&Phases, &Histories),
        graph: &Graph,
        e: &Execution,
    ) -> LeafFacts {
        let refer = |i: usize| match (scenery.nodes[i].thread, scenery.nodes[i].event) {
            (Some(t), Some(event)) => EventRef { thread: ThreadId::at(t).0, index: event.index },
            _ => EventRef::init(),
        };
        let instance = |cell: usize| {
            u16::try_from(self.memory.cells[cell].instance).expect("`Search::new` refuses more")
        };
        let mut key = LeafKey { ends: paths.iter().map(|p| end(p)).collect(), ..LeafKey::default() };
        for (read, cell, source) in &graph.reads {
            let part = self.memory.cells[*cell];
            key.rf.push((refer(*read), instance(*cell), part.first, part.bytes, refer(*source)));
        }
        for (a, b) in e.co.iter() {
            if scenery.nodes[a].thread.is_some() && graph.relations[rels::LOC].has(a, b) {
                key.co.push((refer(a), refer(b)));
            }
        }
        for ((t, local), phase) in &phases.phase {
            if let Some(i) = scenery.find(*t, *local) {
                key.phases.push((refer(i), *phase));
            }
        }
        for step in past.values().flat_map(|h| &h.steps) {
            if let Some(i) = scenery.find(step.at.0, step.at.1) {
                key.phases.push((refer(i), mbarrier_phase(step.era, step.level)));
            }
        }
        let complete = paths.iter().all(|p| p.stop == Stop::Done);
        let mut flags: BTreeSet<String> =
            e.flags.keys().map(|c| self.judge.model().checks()[*c].name.clone()).collect();
        flags.extend(past.values().flat_map(|h| h.flags()).map(|f| (*f).to_owned()));
        flags.extend(paths.iter().flat_map(|p| &p.flags).map(|f| (*f).to_owned()));
        let effects = scenery.nodes[..scenery.base].iter().filter_map(|n| n.event?.effect.as_ref());
        flags.extend(effects.flat_map(|e| &e.flags).map(|f| (*f).to_owned()));
        let same_cta = |a: usize, b: usize| self.memory.cta[a] == self.memory.cta[b];
        flags.extend(wrongs(paths, self.readings, &same_cta).into_iter().map(str::to_owned));
        if paths.iter().any(|p| waits_for_nothing(p, past)) {
            flags.insert(flag::OUTSIDE.to_owned());
        }
        LeafFacts {
            key: key.normalise(),
            kind: if complete { LeafKind::Complete } else { LeafKind::Blocked },
            outcomes: if complete { self.outcomes(scenery, paths, graph, &e.co) } else { BTreeSet::new() },
            flags,
        }
    }

    /// Every combination of coherence-maximal writes, cell by cell.
    fn outcomes(
        &self,
        scenery: &Scenery<'_>,
        paths: &[&Path],
        graph: &Graph,
        co: &Pairs,
    ) -> BTreeSet<Outcome> {
        let observed = observed_registers(self.program);
        let regs: Vec<Vec<u128>> = paths.iter().map(|p| p.regs.clone()).collect();
        let mut memories = vec![initial_memory(self.program)];
        for (cell, part) in self.memory.cells.iter().enumerate() {
            let last = members(graph.writers[cell]).filter(|w| co.0[*w] & graph.writers[cell] == 0);
            let value =
                |w: usize| scenery.nodes[w].cells.iter().find(|(c, _)| *c == cell).map(|(_, v)| shown(*v));
            let values: BTreeSet<u128> =
                last.filter(|w| scenery.nodes[*w].event.is_some()).filter_map(value).collect();
            if values.is_empty() {
                continue;
            }
            let longer = memories.iter().flat_map(|m| {
                values.iter().map(move |v| {
                    let mut m = m.clone();
                    m[part.instance].put_value(part.first, part.bytes, *v);
                    m
                })
            });
            memories = longer.take(self.limits.outcomes).collect();
        }
        let states = memories.into_iter().map(|memory| FinalState { regs: regs.clone(), memory });
        states.map(|s| s.outcome(&observed)).collect()
    }
}

/// A value as it appears in final states.
fn shown(value: u128) -> u128 {
    if value == VEIL { 0 } else { value }
}

/// Whether a path spins on an mbarrier that is not valid in the end.
fn waits_for_nothing(path: &Path, past: &Histories) -> bool {
    let Stop::Spin(since) = path.stop else { return false };
    let asked = path.events.get(since).and_then(|e| e.count.as_ref());
    asked.is_some_and(|count| !past.get(&count.object).is_some_and(|history| history.valid()))
}

/// How a path ends, in the words of a key.
fn end(path: &Path) -> End {
    match path.stop {
        Stop::Done => End::Done,
        Stop::AtBarrier => End::Barrier(path.events.last().map_or(0, |e| e.index)),
        Stop::Spin(_) => End::Spin(path.next),
    }
}
