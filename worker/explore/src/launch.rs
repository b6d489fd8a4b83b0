//! CTAs that start and exit: the end of each thread as an event, and which events reach into the memory of another CTA.
//!
//! Digest `tcgen05.md` section 10 (peer): a CTA has started where something of it comes before, and lives as long as
//! one of its threads has not exited. Only in programs that say so (`.launch`): elsewhere all CTAs are there all the time.

use crate::columns;
use crate::event::{Emitted, Kind, labels};
use crate::interp::{Machine, TraceEnd, View};
use crate::relate::Event;
use crate::state::State;
use moire_cat::vocabulary::{rels, sets};
use moire_program::ir::{Instr, Op, Program, ThreadId};

impl<V: View> Machine<'_, V> {
    /// The exit of the thread.
    pub(crate) fn exit(&mut self, end: &TraceEnd) {
        if self.program.launched && *end == TraceEnd::Done {
            let pc = self.program.threads[self.thread.index()].body.len();
            let nothing = Instr { guard: None, op: Op::Exit, line: 0, column: 0 };
            let event = self.blank(&nothing, pc, Kind::Fence, labels(&[sets::EXIT]), None);
            self.events.push(Some(event));
        }
    }
}

impl<const W: usize> State<'_, W> {
    /// A thread of the other CTA whose memory an event touches.
    pub(crate) fn reached_cta(&self, event: &Event) -> Option<ThreadId> {
        let own = columns::leader(self.program, usize::from(event.thread.filter(|_| self.program.launched)?));
        let e = &event.emitted;
        let owner = e.access.and_then(|a| self.layout.instances[a.instance as usize].owner);
        let owner = owner.map(|o| columns::leader(self.program, o.index()));
        let cells = e.tensor.iter().flat_map(|t| &t.cells).map(|c| c.cta);
        let taken = if let Kind::Allocator(used) = e.kind { used.takes_from() } else { None };
        let other = owner.into_iter().chain(cells).chain(taken).find(|cta| *cta != own)?;
        Some(columns::leader_id(self.program, other))
    }
}

/// Events in program order of a CTA, to what is done in its memory by others.
pub(crate) fn relate(program: &Program, a: &Event, b: &Event, put: &mut impl FnMut(usize, bool)) {
    let place = |t: ThreadId| &program.threads[t.index()].place;
    let ordered = |e: &Emitted| !e.detached;
    let there = a.thread.filter(|_| ordered(&a.emitted)).map(|t| place(ThreadId(t)));
    let reached = b.emitted.reaches.map(place);
    put(rels::REACHES, there.zip(reached).is_some_and(|(p, q)| p.same_cta(q)));
}
