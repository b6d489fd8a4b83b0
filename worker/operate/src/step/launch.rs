//! CTAs that start and exit: whose memory an instruction works on (PTX ISA 9.2, 9.7.16.5).
//!
//! Shared memory has the lifetime of its CTA. What the CTA issued there is over before its last thread exits (XC, XM) if some
//! thread of it has waited for that. So the rows of facts hold these operations once they are complete. What no thread knows
//! when the last one exits may be under way then.

use crate::carrier::row;
use crate::engine::{At, Engine, drop_record, home, knows, renew};
use crate::finding::{Kind, Stop};
use crate::record::{Key, Object, What};
use crate::rows;
use crate::state::State;
use std::collections::BTreeSet;

/// How a CTA that has not started is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unstarted {
    Protocol,
    Lifetime,
    /// Another access of the instruction reports it.
    Elsewhere,
}

/// Checks that the first other CTA among `owners` has started and not exited. Returns the record of the access.
pub(super) fn reaching(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    owners: &[Option<usize>],
    (name, done): (&'static str, Option<Object>),
    unstarted: Unstarted,
) -> Result<Option<usize>, Stop> {
    let other = owners.iter().flatten().copied().find(|cta| *cta != at.cta);
    let Some(cta) = other.filter(|_| e.program.launched) else { return Ok(None) };
    let started = e.fact(usize::MAX, What::Started(cta), 0)?;
    if !e.settings.unstarted && !knows(e, s, at.thread, row::FACTS, started) {
        let text =
            format!("{name} by {}: CTA {} may not have started", e.thread_name(at.thread), e.place(cta));
        match unstarted {
            Unstarted::Protocol => e.find(Kind::Protocol, text, vec![at.place()]),
            Unstarted::Lifetime => e.find(Kind::Lifetime, text, vec![at.place()]),
            Unstarted::Elsewhere => {}
        }
    }
    if s.all_exited(&e.layout.ctas[cta]) {
        exited(e, cta, at.place(), name);
        return Ok(None);
    }
    let instance = if e.mode.instances { s.threads[at.thread].copies } else { 0 };
    let what = What::Reaches(cta, name, done);
    let record = e.record(Key { thread: at.thread, what, instance }, at.line())?;
    renew(s, record);
    Ok(Some(record))
}

/// The same for an access in program order.
pub(super) fn reach_out(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    owners: &[Option<usize>],
    name: &'static str,
) -> Result<(), Stop> {
    if let Some(record) = reaching(e, s, at, owners, (name, None), Unstarted::Lifetime)? {
        s.rows.set(e.carriers.thread(at.thread) + row::FACTS, record);
    }
    Ok(())
}

fn exited(e: &mut Engine<'_>, cta: usize, place: (usize, u32), name: &str) {
    let text = format!("{name} by {}: CTA {} may have exited", e.thread_name(place.0), e.place(cta));
    e.find(Kind::Lifetime, text, vec![place]);
}

/// Whether an asynchronous operation on the shared memory of the CTA that issued it may be under way when that ends: no thread
/// of the CTA has seen that it is over. The order of execution is enough.
pub(crate) fn may_outlive(e: &Engine<'_>, s: &State, record: usize) -> bool {
    let (key, sets) = (&e.universe.keys[record], &e.universe.sets);
    let of = match &key.what {
        What::Memory(a) if !e.settings.copies_outlive => e
            .layout
            .owner(&a.span)
            .filter(|_| rows::has(&sets.copies, record) || rows::has(&sets.products, record)),
        What::Use(of) if !e.settings.arrivals_outlive && key.instance > 0 => Some(home(e, *of)),
        _ => None,
    };
    let Some(cta) = of.filter(|cta| e.program.launched && e.layout.cta_of[key.thread] == *cta) else {
        return false;
    };
    !e.layout.ctas[cta].iter().any(|t| knows(e, s, *t, row::FACTS, record))
}

/// A thread ends.
pub(crate) fn exit(e: &mut Engine<'_>, s: &mut State, thread: usize) -> Result<(), Stop> {
    s.threads[thread].exited = true;
    s.threads[thread].loads.clear();
    s.classes.exit(thread);
    let cta = e.layout.cta_of[thread];
    let last = s.all_exited(&e.layout.ctas[cta]);
    let facts = e.carriers.thread(thread) + row::FACTS;
    for record in rows::members(&s.live) {
        let key = &e.universe.keys[record];
        if !matches!(key.what, What::Reaches(to, ..) if to == cta) {
            continue;
        }
        let place = (key.thread, e.universe.lines[record]);
        if s.rows.has(facts, record) {
            drop_record(s, record);
        } else if last {
            if let What::Reaches(_, name, _) = key.what {
                exited(e, cta, place, name);
            }
            drop_record(s, record);
        }
    }
    if last && s.columns.iter().any(|c| c.cta == cta && !c.freed) {
        let text = format!("CTA {} exits while columns are allocated", e.place(cta));
        e.find(Kind::Protocol, text, vec![(thread, 0)]);
    }
    if last {
        outlived(e, s, cta);
    }
    Ok(())
}

/// Reports what may be under way in the shared memory of a CTA whose last thread exits.
fn outlived(e: &mut Engine<'_>, s: &State, cta: usize) {
    let own = |record: &usize| e.layout.cta_of.get(e.universe.keys[*record].thread) == Some(&cta);
    let late = rows::members(&s.live).into_iter().filter(own).filter(|record| may_outlive(e, s, *record));
    let late: BTreeSet<(usize, u32)> =
        late.map(|r| (e.universe.keys[r].thread, e.universe.lines[r])).collect();
    for (thread, line) in late {
        let name = e.thread_name(thread);
        let text =
            format!("what {name} issues in line {line} may be under way when CTA {} ends", e.place(cta));
        e.find(Kind::Lifetime, text, vec![(thread, line)]);
    }
}
