//! Decisions about memory: which write each read takes, which open reads a write fills, how two writes are ordered.
//!
//! Contract: the alternatives of one decision exclude each other, and together they are all there are (`explorer` says why).
//! Each is undone before the next one is tried.

use super::explorer::{Found, Search, Then};
use crate::graph::events::Source;
use crate::graph::ids::{EventId, OpenRead};
use crate::graph::row;
use crate::planted::Planted;
use crate::thread::ids::CellId;
use moire_cat::bits;
use moire_cat::vocabulary::rels;
use smallvec::SmallVec;

/// Open reads that take the write that is placed.
type Reads = SmallVec<[OpenRead; 8]>;

impl<const W: usize> Search<'_, W> {
    /// Orders two writes in both ways.
    pub(super) fn order(&mut self, a: EventId, b: EventId) -> Found {
        debug_assert!(
            self.state.graph.events[a].is_write() && self.state.graph.events[b].is_write(),
            "writes are ordered"
        );
        for (choice, (x, y)) in [(a, b), (b, a)].into_iter().enumerate() {
            if choice == 1 && self.has(Planted::OneDirection) {
                continue;
            }
            if !self.take_as(u32::from(choice == 1), |search| Some(search.follows(x, y))) {
                continue;
            }
            let saved = self.state.graph.events.order_writes(x, y);
            let result = self.judge();
            self.state.graph.events.restore_order(saved);
            self.path.pop();
            result?;
        }
        Ok(())
    }

    /// Chooses the sources of a read, cell by cell; the last one resolves its value.
    pub(super) fn place_read(&mut self, id: EventId, slot: usize, then: Then<Self>) -> Found {
        if slot == 0 {
            debug_assert!(!row::has(&self.state.graph.events.present, id), "a read is placed once");
            row::set(&mut self.state.graph.events.present, id);
        }
        let result = self.decide(|search| search.source(id, slot, then));
        if slot == 0 {
            row::clear(&mut self.state.graph.events.present, id);
        }
        result
    }

    /// Gives one cell of a read each source it can have.
    fn source(&mut self, id: EventId, slot: usize, then: Then<Self>) -> Found {
        let access = self.state.graph.events[id].emitted.access.expect("a placed read has an address");
        let cell = access.cell_at(slot);
        let writers = *self.state.graph.events.writers(cell);
        let mut choice = 0;
        let mut result = Ok(());
        for write in row::events(&writers) {
            let initial = self.state.graph.events[write].thread.is_none();
            let forgotten = initial && bits::count(&writers) > 1 && self.has(Planted::ForgetsInitial);
            if result.is_ok()
                && !forgotten
                && !self.source_is_taken(id, write, cell)
                && self.take_as(choice, |search| Some(search.read_by(write, id)))
            {
                result = self.read_from(id, slot, Source::Write(write), then);
                self.path.pop();
            }
            choice += 1;
        }
        let never = self.has(Planted::NeverOpen);
        if result.is_ok() && !never && self.state.may_be_written(cell, id, None) && self.take(choice) {
            result = self.read_from(id, slot, Source::Open, then);
            self.path.pop();
        }
        result
    }

    /// Whether a read-modify-write reads this write already, and lets no other one.
    pub(super) fn source_is_taken(&mut self, read: EventId, write: EventId, cell: CellId) -> bool {
        if !self.state.graph.events[read].is_rmw() {
            return false;
        }
        let readers = *self.state.graph.events.related(rels::RF, write);
        row::events(&readers).any(|other| {
            self.state.graph.events[other].is_rmw() && self.state.exclusive(read, other, write, cell)
        })
    }

    pub(super) fn read_from(&mut self, id: EventId, slot: usize, source: Source, then: Then<Self>) -> Found {
        let access = self.state.graph.events[id].emitted.access.expect("a placed read has an address");
        let cell = access.cell_at(slot);
        let more = slot + 1 < access.cells as usize;
        self.state.graph.events.set_source(id, cell, source);
        let result = match (more, source) {
            (true, Source::Write(_)) if self.contradicts() => Ok(()),
            (true, _) => self.place_read(id, slot + 1, then),
            (false, Source::Open) => self.visit(),
            (false, Source::Write(write))
                if self.state.graph.events.writes_unknown(write) && self.contradicts() =>
            {
                Ok(())
            }
            (false, Source::Write(_)) => self.resolved(&[id], then),
        };
        self.state.graph.events.unset_source(id, cell, source);
        result
    }

    /// Adds a write as the source of every subset of the open reads of its cells.
    pub(super) fn place_write(&mut self, id: EventId, then: Then<Self>) -> Found {
        debug_assert!(self.state.graph.events.ready(id), "a write that is placed has a value");
        let access = self.state.graph.events[id].emitted.access.expect("a placed write has an address");
        self.state.graph.events.add_write(id);
        let (mut must, mut may) = (Reads::new(), Reads::new());
        for &open in &self.state.graph.events.open {
            let (read, cell) = (open.read, open.cell);
            let own = self.state.graph.events.is_own_read(id, read);
            if access.covers(cell) {
                let later = self.state.may_be_written(cell, read, Some(id));
                match (own, later) {
                    (true, true) => {}
                    (true, false) => {
                        self.state.graph.events.remove_write(id);
                        self.summary.dead_ends += 1;
                        return Ok(());
                    }
                    (false, true) => may.push(open),
                    (false, false) => must.push(open),
                }
            }
        }
        let clash = (1..must.len()).any(|i| self.clashes(id, must[i], &must[..i]));
        let (count, all) = (must.len(), must.len() + may.len());
        let result = if clash {
            self.summary.dead_ends += 1;
            Ok(())
        } else {
            self.claim_some(id, &may, &mut must, (count, all), then)
        };
        self.state.graph.events.remove_write(id);
        result
    }

    /// Whether a read cannot take the write `id` beside these.
    fn clashes(&mut self, id: EventId, open: OpenRead, beside: &[OpenRead]) -> bool {
        let (read, cell) = (open.read, open.cell);
        if !self.state.graph.events[read].is_rmw() {
            return false;
        }
        beside.iter().filter(|other| other.cell == open.cell).any(|other| {
            let other = other.read;
            self.state.graph.events[other].is_rmw() && self.state.exclusive(read, other, id, cell)
        })
    }

    /// Claims `claimed` with each subset of `may`, one read after another; of `all` reads the first ones have no choice.
    fn claim_some(
        &mut self,
        id: EventId,
        may: &[OpenRead],
        claimed: &mut Reads,
        (sure, all): (usize, usize),
        then: Then<Self>,
    ) -> Found {
        let Some((&read, rest)) = may.split_first() else {
            let (every, none) = (claimed.len() == all, claimed.len() == sure);
            if (self.has(Planted::AllOrNothing) && !every && !none)
                || (self.has(Planted::ClaimsAll) && !every)
            {
                return Ok(());
            }
            let claimed = claimed.clone();
            return self.claim(id, &claimed, then);
        };
        self.decide(|search| {
            for takes in [true, false] {
                let shape = |search: &Self| takes.then(|| search.read_by(id, read.read));
                if (takes && search.clashes(id, read, claimed)) || !search.take_as(u32::from(!takes), shape) {
                    continue;
                }
                if takes {
                    claimed.push(read);
                }
                let result = search.claim_some(id, rest, claimed, (sure, all), then);
                if takes {
                    claimed.pop();
                }
                search.path.pop();
                result?;
            }
            Ok(())
        })
    }

    fn claim(&mut self, write: EventId, claimed: &[OpenRead], then: Then<Self>) -> Found {
        for open in claimed {
            let (read, cell) = (open.read, open.cell);
            debug_assert!(self.state.graph.events.open.contains(open), "an open read is claimed");
            self.communicate(write, read);
            self.state.graph.events.unset_source(read, cell, Source::Open);
            self.state.graph.events.set_source(read, cell, Source::Write(write));
        }
        let mut reads: SmallVec<[EventId; 8]> = claimed.iter().map(|o| o.read).collect();
        reads.sort_unstable();
        reads.dedup();
        let unknown = !reads.is_empty() && self.state.graph.events.writes_unknown(write);
        let refused = unknown && self.contradicts();
        let result = if refused { Ok(()) } else { self.resolved(&reads, then) };
        for open in claimed.iter().rev() {
            let (read, cell) = (open.read, open.cell);
            self.state.graph.events.unset_source(read, cell, Source::Write(write));
            self.state.graph.events.set_source(read, cell, Source::Open);
        }
        self.state.graph.events.sort_open();
        result
    }
}
