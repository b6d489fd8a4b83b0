//! CTAs that start and exit: which events reach into the memory of another CTA.
//!
//! PTX ISA 9.2, 9.7.16.5 (peer CTA): a CTA has started where something of it comes before, and lives as long as
//! one of its threads has not exited. Only in programs that say so (`.launch`): elsewhere all CTAs are there all the time.

use super::event::Event;
use crate::thread::event::Emitted;
use moire_cat::vocabulary::rels;
use moire_program::ir::{Program, ThreadId};

/// Relates events in program order of a CTA to events of others that touch its memory.
pub(crate) fn relate(program: &Program, a: &Event, b: &Event, put: &mut impl FnMut(usize, bool)) {
    let place = |t: ThreadId| &program.threads[t.index()].place;
    let ordered = |e: &Emitted| !e.detached;
    let there = a.thread.filter(|_| ordered(&a.emitted)).map(place);
    let reached = b.emitted.ctas.reaches.map(place);
    put(rels::REACHES, there.zip(reached).is_some_and(|(p, q)| p.same_cta(q)));
}
