//! Is a spinning thread really stuck? Only if it may go on reading what keeps it spinning.
//!
//! A blocked execution with spinning threads is real iff it extends to a consistent one in which every spinning
//! thread runs one more iteration in vain and all its reads take co-maximal writes, jointly (fairness: a write that
//! stays the last one is eventually seen, and nothing else is).

use crate::graph::events::Source;
use crate::graph::ids::EventId;
use crate::graph::mbarriers::Stage;
use crate::graph::row;
use crate::prune::state::State;
use crate::thread::event::Kind;
use crate::thread::event::mbarrier::Act;
use crate::thread::ids::Id;
use crate::thread::trace::{Gate, TraceEnd};
use moire_cat::bits::{self, Row};
use moire_program::ir::ThreadId;

/// Whether the threads that spin in this finished graph can spin for ever, under this coherence.
pub(crate) fn hang_is_real<const W: usize>(s: &mut State<'_, W>, co: &[Row<W>]) -> bool {
    let spinning: Vec<(ThreadId, u16)> = s
        .graph
        .events
        .threads
        .ids()
        .filter_map(|t| match s.graph.events.threads[t].trace.end {
            TraceEnd::Gate(i) | TraceEnd::Stuck(i) => Some((t, i)),
            _ => None,
        })
        .collect();
    if spinning.is_empty() {
        return true;
    }
    let gates: Vec<_> =
        spinning.iter().map(|(thread, _)| s.graph.events.threads[*thread].gates.clone()).collect();
    for (thread, index) in &spinning {
        s.graph.events.threads[*thread].gates.retain(|g| g.0 != *index);
        s.graph.events.threads[*thread].gates.push((*index, Gate::Open));
    }
    let threads: Vec<ThreadId> = spinning.iter().map(|s| s.0).collect();
    let real = spin_in_vain(s, &threads, co);
    for ((thread, _), gates) in spinning.iter().zip(gates) {
        s.graph.events.threads[*thread].gates = gates;
    }
    real
}

fn spin_in_vain<const W: usize>(s: &mut State<'_, W>, threads: &[ThreadId], co: &[Row<W>]) -> bool {
    let Some((&thread, rest)) = threads.split_first() else { return vain_is_consistent(s) };
    let mark = s.graph.mark();
    let end = s.graph.refresh_thread(thread);
    let found = if end == Err(TraceEnd::SpinFail) {
        spin_in_vain(s, rest, co)
    } else {
        next_vain_read(s, thread).is_some_and(|read| read_in_vain(s, threads, read, co))
    };
    s.graph.reset(mark);
    found
}

fn next_vain_read<const W: usize>(s: &State<'_, W>, thread: ThreadId) -> Option<EventId> {
    let mut ids = s.graph.events.threads[thread].ids.iter().flatten().copied();
    let asks = |kind: Kind| kind == Kind::Read || matches!(kind, Kind::Mbarrier(_));
    ids.find(|i| asks(s.graph.events[*i].emitted.kind) && !row::has(&s.graph.events.present, *i))
}

/// Asks an mbarrier as it is left in the end.
fn ask_in_vain<const W: usize>(
    s: &mut State<'_, W>,
    threads: &[ThreadId],
    wait: EventId,
    co: &[Row<W>],
) -> bool {
    let Some(used) = s.graph.events[wait].mbarrier() else { return false };
    if !matches!(used.act, Act::Wait { .. }) {
        return false;
    }
    let era = s.graph.mbarriers.eras(&s.graph.events, used.object);
    let level = s.graph.mbarriers.level(&s.graph.events, used.object, era);
    s.graph.mbarriers.take_place(&mut s.graph.events, wait, Stage { era, level });
    let found = spin_in_vain(s, threads, co);
    s.graph.mbarriers.leave_place(&mut s.graph.events, wait);
    found
}

fn read_in_vain<const W: usize>(
    s: &mut State<'_, W>,
    threads: &[ThreadId],
    read: EventId,
    co: &[Row<W>],
) -> bool {
    if s.graph.events[read].mbarrier().is_some() {
        return ask_in_vain(s, threads, read, co);
    }
    row::set(&mut s.graph.events.present, read);
    let found = slots_in_vain(s, threads, read, 0, co);
    row::clear(&mut s.graph.events.present, read);
    found
}

fn slots_in_vain<const W: usize>(
    s: &mut State<'_, W>,
    threads: &[ThreadId],
    read: EventId,
    slot: usize,
    co: &[Row<W>],
) -> bool {
    let Some(access) = s.graph.events[read].emitted.access else { return false };
    if slot == usize::from(access.cells) {
        return spin_in_vain(s, threads, co);
    }
    let cell = access.cell_at(slot);
    let writers = *s.graph.events.writers(cell);
    let last = |w: &EventId| bits::is_empty(&bits::and(&co[w.index()], &writers));
    for write in row::events(&writers).filter(last) {
        s.graph.events.set_source(read, cell, Source::Write(write));
        let found = slots_in_vain(s, threads, read, slot + 1, co);
        s.graph.events.unset_source(read, cell, Source::Write(write));
        if found {
            return true;
        }
    }
    false
}

/// The extended graph is consistent and its spinning reads still take co-maximal writes.
fn vain_is_consistent<const W: usize>(s: &mut State<'_, W>) -> bool {
    let reads = s.graph.events.inputs.cells.reads.clone();
    let writers = s.graph.events.inputs.cells.writers.clone();
    let spinning = |state: &State<'_, W>, read: u16| {
        let event = &state.graph.events[EventId::numbered(read)];
        event.thread.is_some_and(|thread| {
            let thread = &state.graph.events.threads[thread];
            thread.trace.end == TraceEnd::SpinFail
                && thread.gates.last().is_some_and(|g| event.emitted.index >= g.0)
        })
    };
    let vain: Vec<(u16, u16, u16)> = reads.into_iter().filter(|r| spinning(s, r.0)).collect();
    let mut found = false;
    s.consistency.evaluate_leaf(&mut s.graph, |co, _, _| {
        let last =
            |r: &(u16, u16, u16)| bits::is_empty(&bits::and(&co[r.2 as usize], &writers[r.1 as usize]));
        found |= vain.iter().all(last);
    });
    found
}
