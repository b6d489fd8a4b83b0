//! Is a spinning thread really stuck? Only if it may go on reading what keeps it spinning.
//!
//! A blocked execution with spinning threads is real iff it extends to a consistent one in which every spinning
//! thread runs one more iteration in vain and all its reads take co-maximal writes, jointly (fairness: a write that
//! stays the last one is eventually seen, and nothing else is).

use crate::event::Kind;
use crate::interp::{Gate, TraceEnd};
use crate::mbarrier::{Act, Place};
use crate::state::{Source, State};
use moire_cat::bits::{self, Row};

impl<const W: usize> State<'_, W> {
    /// Whether the threads that spin in this finished graph can spin for ever, under this coherence.
    pub(crate) fn hang_is_real(&mut self, co: &[Row<W>]) -> bool {
        let spinning: Vec<(usize, u16)> = (0..self.threads.len())
            .filter_map(|t| match self.threads[t].trace.end {
                TraceEnd::Gate(i) | TraceEnd::Stuck(i) => Some((t, i)),
                _ => None,
            })
            .collect();
        if spinning.is_empty() {
            return true;
        }
        let gates: Vec<_> = spinning.iter().map(|(thread, _)| self.threads[*thread].gates.clone()).collect();
        for (thread, index) in &spinning {
            self.threads[*thread].gates.retain(|g| g.0 != *index);
            self.threads[*thread].gates.push((*index, Gate::Open));
        }
        let threads: Vec<usize> = spinning.iter().map(|s| s.0).collect();
        let real = self.spin_in_vain(&threads, co);
        for ((thread, _), gates) in spinning.iter().zip(gates) {
            self.threads[*thread].gates = gates;
        }
        real
    }

    fn spin_in_vain(&mut self, threads: &[usize], co: &[Row<W>]) -> bool {
        let Some((&thread, rest)) = threads.split_first() else { return self.vain_is_consistent() };
        let mark = self.mark();
        let end = self.refresh_thread(thread);
        let found = if end == Err(TraceEnd::SpinFail) {
            self.spin_in_vain(rest, co)
        } else {
            self.next_vain_read(thread).is_some_and(|read| self.read_in_vain(threads, read, co))
        };
        self.reset(mark);
        found
    }

    fn next_vain_read(&self, thread: usize) -> Option<usize> {
        let ids = self.threads[thread].ids.iter().flatten().map(|i| *i as usize);
        let asks = |kind: Kind| kind == Kind::Read || matches!(kind, Kind::Mbarrier(_));
        ids.into_iter().find(|i| asks(self.events[*i].emitted.kind) && !bits::has(&self.present, *i))
    }

    /// Asks an mbarrier as it is left in the end.
    fn ask_in_vain(&mut self, threads: &[usize], wait: usize, co: &[Row<W>]) -> bool {
        let Some(used) = self.mbar_use(wait) else { return false };
        if !matches!(used.act, Act::Wait { .. }) {
            return false;
        }
        let era = self.eras(used.object);
        self.take_place(wait, Place { era, level: self.level(used.object, era) });
        let found = self.spin_in_vain(threads, co);
        self.leave_place(wait);
        found
    }

    fn read_in_vain(&mut self, threads: &[usize], read: usize, co: &[Row<W>]) -> bool {
        if self.mbar_use(read).is_some() {
            return self.ask_in_vain(threads, read, co);
        }
        bits::set(&mut self.present, read);
        let found = self.slots_in_vain(threads, read, 0, co);
        bits::clear(&mut self.present, read);
        found
    }

    fn slots_in_vain(&mut self, threads: &[usize], read: usize, slot: u16, co: &[Row<W>]) -> bool {
        let Some(access) = self.events[read].emitted.access else { return false };
        if slot == access.cells {
            return self.spin_in_vain(threads, co);
        }
        let cell = (access.cell + slot) as usize;
        let writers = self.inputs.cells.writers[cell];
        let last = |w: &usize| bits::is_empty(&bits::and(&co[*w], &writers));
        for write in bits::iter(&writers).filter(last) {
            self.set_source(read, cell, Source::Write(write));
            let found = self.slots_in_vain(threads, read, slot + 1, co);
            self.unset_source(read, cell, Source::Write(write));
            if found {
                return true;
            }
        }
        false
    }

    /// The extended graph is consistent and its spinning reads still take co-maximal writes.
    fn vain_is_consistent(&mut self) -> bool {
        let reads = self.inputs.cells.reads.clone();
        let writers = self.inputs.cells.writers.clone();
        let spinning = |state: &Self, read: u16| {
            let event = &state.events[read as usize];
            let thread = event.thread.unwrap_or(0) as usize;
            state.threads[thread].trace.end == TraceEnd::SpinFail
                && state.threads[thread].gates.last().is_some_and(|g| event.emitted.index >= g.0)
        };
        let vain: Vec<(u16, u16, u16)> = reads.into_iter().filter(|r| spinning(self, r.0)).collect();
        let mut found = false;
        self.evaluate_leaf(|co, _, _| {
            let last =
                |r: &(u16, u16, u16)| bits::is_empty(&bits::and(&co[r.2 as usize], &writers[r.1 as usize]));
            found |= vain.iter().all(last);
        });
        found
    }
}
