//! Mbarriers: phases that count arrivals and transactions, and what a wait learns (PTX ISA 9.2, 9.7.13.15).

use super::launch::reach_out;
use super::memory::{data_before_init, life, revive};
use crate::carrier::{Carrier, Class, row};
use crate::engine::{
    At, Engine, Reach, deliver, drop_record, empty, fresh_mbarrier, home, known, knows, learn, object,
    published, renew, vector,
};
use crate::finding::{Condition, Kind, Stop};
use crate::planted::Planted;
use crate::record::{Key, Object, What};
use crate::rows::{self, Rows, both};
use crate::state::{Added, State};
use crate::value::Val;
use moire_program::ir::{
    MBARRIER_COUNT, Mbarrier, MbarrierArrive, MbarrierOp, MbarrierWait, Operand, Placement, Scope, Space,
};

/// `mbarrier.*` but waits.
pub(super) fn operation(e: &mut Engine<'_>, s: &mut State, at: At<'_>, op: &Mbarrier) -> Result<(), Stop> {
    let of = object(e, s, at, &op.addr)?;
    let local = home(e, of) == at.cta;
    let takes_remote = match &op.op {
        MbarrierOp::Arrive(a) => a.dst.is_none() && op.space != Space::SharedCta,
        MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => op.space != Space::SharedCta,
        _ => false,
    };
    if !local && !takes_remote {
        let text = format!("{}: a form for the own CTA at the mbarrier of another", e.name_of_object(of));
        e.find(Kind::Protocol, text, vec![at.place()]);
        return lost(s, at, op);
    }
    reach_out(e, s, at, &[Some(home(e, of))], "mbarrier")?;
    match &op.op {
        MbarrierOp::Init { count } => {
            let count = counted(e, s, at, *count, 1)?;
            init(e, s, at, of, count)
        }
        MbarrierOp::Inval => inval(e, s, at, of),
        MbarrierOp::Arrive(arrive) => plain_arrive(e, s, at, of, arrive),
        MbarrierOp::ExpectTx { scope, bytes } => {
            let tx = i64::from(at.lanes) * i64::from(counted(e, s, at, *bytes, 0)?);
            let added = Added { arrivals: 0, tx, drops: false, observes: true };
            ordinary(e, s, at, of, (*scope, true), added)
        }
        MbarrierOp::CompleteTx { scope, bytes } => {
            let tx = -i64::from(at.lanes) * i64::from(counted(e, s, at, *bytes, 0)?);
            let added = Added { arrivals: 0, tx, drops: false, observes: false };
            ordinary(e, s, at, of, (*scope, true), added)
        }
        MbarrierOp::Wait(_) => Err(at.abstain("a wait that is executed as another operation")),
    }
}

/// An operation that has no effect because its form is wrong.
fn lost(s: &mut State, at: At<'_>, op: &Mbarrier) -> Result<(), Stop> {
    if let Some(dst) = op.dst() {
        s.threads[at.thread].regs[dst.index()] = Val::Unknown;
    }
    Ok(())
}

/// A count, with a finding if it is out of range.
fn counted(e: &mut Engine<'_>, s: &State, at: At<'_>, of: Operand, least: u32) -> Result<u32, Stop> {
    let value = crate::value::low(known(e, s, at, of)?, 32);
    let value = u32::try_from(value).unwrap_or(u32::MAX);
    if value < least || value > MBARRIER_COUNT {
        e.find(Kind::Protocol, format!("a count of {value} is out of range"), vec![at.place()]);
    }
    Ok(value.clamp(least, MBARRIER_COUNT))
}

fn init(e: &mut Engine<'_>, s: &mut State, at: At<'_>, of: Object, count: u32) -> Result<(), Stop> {
    let (init, inval) = life(e, of, at.line())?;
    let name = e.name_of_object(of);
    if at.lanes > 1 {
        e.find(Kind::Lifetime, format!("{name}: initialised by several lanes"), vec![at.place()]);
    }
    let base = e.carriers.thread(at.thread) + row::BASE;
    let alive = s.mbarriers.get(&of).is_some_and(|m| m.valid);
    if alive {
        e.find(Kind::Lifetime, format!("{name}: initialised while it is alive"), vec![at.place()]);
    } else if rows::has(&s.live, inval) && !s.rows.has(base, inval) {
        e.find(Kind::Lifetime, format!("{name}: init is not ordered after inval"), vec![at.place()]);
    }
    data_before_init(e, s, at, of);
    let fresh = fresh_mbarrier(count);
    s.mbarriers.insert(of, fresh);
    clear(e, s, of);
    revive(s, inval);
    renew(s, init);
    s.rows.set(base, init);
    s.rows.set(e.carriers.own(at.thread, crate::carrier::Own::Inits), init);
    Ok(())
}

/// Forgets what the phases of an object hold.
fn clear(e: &mut Engine<'_>, s: &mut State, of: Object) {
    let arrivals = e.carriers.first(Carrier::Arrivals(of));
    s.rows.replace(arrivals, &vec![0; s.rows.words]);
    for class in e.carriers.classes.get(&of).cloned().unwrap_or_default() {
        for last in [false, true] {
            let first = e.carriers.first(Carrier::Phase(of, last, class));
            empty(e, s, first);
        }
    }
    let facts =
        |what: &What| matches!(what, What::Observed(o) | What::Answered(o) | What::Expected(o) if *o == of);
    for record in rows::members(&s.live) {
        if facts(&e.universe.keys[record].what) {
            drop_record(s, record);
        }
    }
}

fn inval(e: &mut Engine<'_>, s: &mut State, at: At<'_>, of: Object) -> Result<(), Stop> {
    let (_, inval) = life(e, of, at.line())?;
    alive(e, s, at, of, true)?;
    let name = e.name_of_object(of);
    if at.lanes > 1 {
        e.find(Kind::Lifetime, format!("{name}: invalidated by several lanes"), vec![at.place()]);
    }
    let base = e.carriers.thread(at.thread) + row::BASE;
    for record in rows::members(&s.live) {
        let key = &e.universe.keys[record];
        if key.what == What::Use(of) && !s.rows.has(base, record) {
            let place = (key.thread, e.universe.lines[record]);
            let text = format!("{name}: inval is not ordered after a use by {}", e.thread_name(place.0));
            e.find(Kind::Lifetime, text, vec![place, at.place()]);
        }
    }
    if let Some(mbarrier) = s.mbarriers.get_mut(&of) {
        mbarrier.valid = false;
    }
    renew(s, inval);
    s.rows.set(base, inval);
    Ok(())
}

/// Checks that an object is alive where a thread uses it. Returns whether there is an object at all.
pub(super) fn alive(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    of: Object,
    ordinary: bool,
) -> Result<bool, Stop> {
    let (init, inval) = life(e, of, at.line())?;
    let name = e.name_of_object(of);
    let valid = s.mbarriers.get(&of).is_some_and(|m| m.valid);
    if !valid {
        e.find(Kind::Lifetime, format!("{name}: used before init or after inval"), vec![at.place()]);
        return Ok(false);
    }
    let late = !ordinary && e.settings.fenced_init;
    let level = if late { row::INITS } else { row::BASE };
    if rows::has(&s.live, init) && !knows(e, s, at.thread, level, init) {
        e.find(Kind::Lifetime, format!("{name}: used without order after its init"), vec![at.place()]);
    }
    let _ = inval;
    Ok(true)
}

/// Notes the use of an object that may be invalidated. Returns the record.
/// `detached`: by an asynchronous arrival, which completes independently of others.
pub(super) fn used(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    of: Object,
    detached: bool,
) -> Result<Option<usize>, Stop> {
    if !e.invalidates {
        return Ok(None);
    }
    let instance = match (detached, e.mode.instances) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 1 + s.threads[at.thread].copies,
    };
    let record = e.record(Key { thread: at.thread, what: What::Use(of), instance }, at.line())?;
    renew(s, record);
    Ok(Some(record))
}

fn plain_arrive(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    of: Object,
    arrive: &MbarrierArrive,
) -> Result<(), Stop> {
    if arrive.no_complete {
        return Err(at.abstain("mbarrier.arrive.noComplete"));
    }
    let arrivals = match arrive.count {
        Some(count) => counted(e, s, at, count, 1)?,
        None => 1,
    };
    let tx = match arrive.tx {
        Some(tx) => i64::from(counted(e, s, at, tx, 0)?),
        None => 0,
    };
    let (arrivals, tx) = (at.lanes * arrivals, i64::from(at.lanes) * tx);
    let phase = s.mbarriers.get(&of).map_or(0, |m| m.phase);
    let added = Added { arrivals, tx, drops: arrive.drop, observes: true };
    ordinary(e, s, at, of, (arrive.scope, arrive.relaxed), added)?;
    if let Some(dst) = arrive.dst {
        s.threads[at.thread].regs[dst.index()] = Val::Known(u128::from(phase & 1));
    }
    Ok(())
}

/// An operation of a thread in program order.
fn ordinary(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    of: Object,
    (scope, relaxed): (Scope, bool),
    added: Added,
) -> Result<(), Stop> {
    if !alive(e, s, at, of, true)? {
        return Ok(());
    }
    if let Some(record) = used(e, s, at, of, false)? {
        s.rows.set(e.carriers.thread(at.thread) + row::BASE, record);
    }
    let mut vector = published(e, s, at.thread);
    if e.settings.arrival_waits && added.arrivals > 0 {
        vector.add(row::ORDERED, &s.rows.get(e.carriers.own(at.thread, crate::carrier::Own::ProductsBefore)));
    }
    let mut parts = vec![(
        Class { scope, cta: at.cta, release: (!relaxed || e.has(Planted::RelaxedArrivals)).then_some(scope) },
        vector.clone(),
    )];
    if relaxed && !e.has(Planted::RelaxedArrivals) {
        let levels = row::BASE..e.carriers.vector();
        levels.for_each(|level| parts[0].1.replace(level, &vec![0; s.rows.words]));
        for fence in e.carriers.fences[at.thread].clone() {
            let first = e.carriers.first(Carrier::Released(at.thread, fence));
            let held = crate::engine::vector(e, s, first);
            parts.push((Class { scope, cta: at.cta, release: Some(fence) }, held));
        }
    }
    let expects = added.arrivals == 0 && added.tx > 0;
    add(e, s, at.place(), of, parts, added)?;
    if expects {
        let record = e.fact(at.thread, What::Expected(of), at.line())?;
        renew(s, record);
        s.rows.set(e.carriers.thread(at.thread) + row::FACTS, record);
    }
    Ok(())
}

/// Adds an operation with what it hands on to the phase that collects.
pub(crate) fn add(
    e: &mut Engine<'_>,
    s: &mut State,
    place: (usize, u32),
    of: Object,
    parts: Vec<(Class, Rows)>,
    added: Added,
) -> Result<(), Stop> {
    let Some(mut m) = s.mbarriers.get(&of).copied() else { return Ok(()) };
    e.arrivers.insert((of, place.0));
    let name = e.name_of_object(of);
    let observed = e.fact(usize::MAX, What::Observed(of), place.1)?;
    let known = parts.iter().any(|(_, vector)| vector.has(row::FACTS, observed));
    if m.phase > 0 && !known && !m.observed_by_all {
        if added.observes {
            let text = format!("{name}: an arrival before any wait observed the previous phase");
            e.find(Kind::Protocol, text, vec![place]);
        } else if !e.mode.every_order {
            let text = format!(
                "{name}: the completion by {} is not ordered after the previous phase",
                e.thread_name(place.0)
            );
            e.broken(Condition::Observed, text, vec![place]);
        }
    }
    let arrivals = e.carriers.first(Carrier::Arrivals(of));
    for (class, vector) in parts {
        if added.arrivals > 0 {
            s.rows.add(arrivals, &vector.get(row::FACTS));
        }
        e.carriers.classes.entry(of).or_default().insert(class);
        deliver(e, s, Carrier::Phase(of, false, class), &vector);
    }
    if added.arrivals > m.pending {
        e.find(Kind::Protocol, format!("{name}: more arrivals than the phase expects"), vec![place]);
    }
    m.pending = m.pending.saturating_sub(added.arrivals);
    m.tx += added.tx;
    if m.tx.unsigned_abs() > u64::from(MBARRIER_COUNT) {
        e.find(Kind::Protocol, format!("{name}: a transaction count out of range"), vec![place]);
    }
    if added.drops {
        m.count = m.count.saturating_sub(added.arrivals);
    }
    let complete = m.pending == 0 && m.tx == 0;
    if complete {
        m.phase = if m.phase == 1 { 2 } else { 1 };
        m.pending = m.count;
        m.observed_by_all = false;
    }
    s.mbarriers.insert(of, m);
    if complete {
        turn(e, s, place, of)?;
    }
    Ok(())
}

/// A phase is complete: what it collected is what waits learn from now on.
fn turn(e: &mut Engine<'_>, s: &mut State, place: (usize, u32), of: Object) -> Result<(), Stop> {
    let classes = e.carriers.classes.get(&of).cloned().unwrap_or_default();
    let mut facts = vec![0; s.rows.words];
    for class in &classes {
        let first = e.carriers.first(Carrier::Phase(of, false, *class));
        rows::add(&mut facts, &s.rows.get(first + row::FACTS));
    }
    let arrivals = e.carriers.first(Carrier::Arrivals(of));
    let arrived = s.rows.get(arrivals);
    s.rows.replace(arrivals, &vec![0; s.rows.words]);
    let name = e.name_of_object(of);
    for record in rows::members(&both(&s.live, &e.universe.sets.facts)) {
        let key = &e.universe.keys[record];
        let theirs = (key.thread, e.universe.lines[record]);
        let condition = match key.what {
            What::Answered(o) if o == of => Condition::Lapped,
            What::Expected(o) if o == of => Condition::Expected,
            _ => continue,
        };
        // An operation that only counts bytes does not keep the phase open for bytes that are announced later.
        let known = if condition == Condition::Expected { &arrived } else { &facts };
        if !rows::has(known, record) && !e.mode.every_order {
            let what = match condition {
                Condition::Lapped => "can be lapped: the next phase may complete before its wait answers",
                _ => "may raise the transaction count after the phase is complete",
            };
            e.broken(condition, format!("{name}: {} {what}", e.thread_name(theirs.0)), vec![theirs, place]);
        }
        drop_record(s, record);
    }
    let observed = e.fact(usize::MAX, What::Observed(of), place.1)?;
    drop_record(s, observed);
    for class in classes {
        let from = e.carriers.first(Carrier::Phase(of, false, class));
        let to = e.carriers.first(Carrier::Phase(of, true, class));
        let collected = vector(e, s, from);
        for at in 0..e.carriers.vector() {
            s.rows.replace(to + at, &collected.get(at));
        }
        empty(e, s, from);
    }
    Ok(())
}

/// Whether two operations, by scope and place, include each other.
pub(super) fn include(e: &Engine<'_>, (a, p): (Scope, usize), (b, q): (Scope, usize)) -> bool {
    let place = |cta: usize| -> &Placement { &e.program.threads[e.layout.ctas[cta][0]].place };
    e.has(Planted::AnyScope) || (place(p).includes(a, place(q)) && place(q).includes(b, place(p)))
}

/// A wait for a phase. Returns whether it has answered.
pub(super) fn wait(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    (of, odd): (Object, bool),
    wait: &MbarrierWait,
) -> Result<bool, Stop> {
    if home(e, of) != at.cta {
        let text = format!("{}: a wait at the mbarrier of another CTA", e.name_of_object(of));
        e.find(Kind::Protocol, text, vec![at.place()]);
        return Ok(false);
    }
    e.waiters.insert((of, at.thread));
    let Some(m) = s.mbarriers.get(&of).copied().filter(|m| m.valid) else { return Ok(false) };
    if (m.phase & 1 == 1) == odd {
        return Ok(false);
    }
    alive(e, s, at, of, true)?;
    for class in e.carriers.classes.get(&of).cloned().unwrap_or_default() {
        take(e, s, at, of, class, wait);
    }
    let first = e.carriers.thread(at.thread);
    if !m.observed_by_all {
        let observed = e.fact(usize::MAX, What::Observed(of), at.line())?;
        rows::insert(&mut s.live, observed);
        s.rows.set(first + row::FACTS, observed);
    }
    let answered = e.fact(at.thread, What::Answered(of), at.line())?;
    renew(s, answered);
    s.rows.set(first + row::FACTS, answered);
    if let Some(record) = used(e, s, at, of, false)? {
        s.rows.set(first + row::BASE, record);
    }
    Ok(true)
}

/// What a wait learns from the operations of one class.
fn take(e: &mut Engine<'_>, s: &mut State, at: At<'_>, of: Object, class: Class, wait: &MbarrierWait) {
    let from = e.carriers.first(Carrier::Phase(of, true, class));
    let held = vector(e, s, from);
    let meets = include(e, (class.scope, class.cta), (wait.scope, at.cta));
    let ordered = meets || e.settings.any_scope;
    let released = class.release.filter(|r| meets && include(e, (*r, class.cta), (wait.scope, at.cta)));
    let levels = released.is_some() && (!wait.relaxed || e.has(Planted::RelaxedWaits));
    learn(e, s, at.thread, &held, Reach { ordered, levels });
    if class.release.is_none() || levels {
        return;
    }
    if wait.relaxed && meets {
        e.carriers.taken[at.thread].insert(Some(class));
        deliver(e, s, Carrier::Acquired(at.thread, Some(class)), &held);
    }
    if e.settings.any_scope {
        let late = late(e, &held);
        if wait.relaxed {
            e.carriers.taken[at.thread].insert(None);
            deliver(e, s, Carrier::Acquired(at.thread, None), &late);
        } else {
            learn(e, s, at.thread, &late, Reach { ordered: false, levels: true });
        }
    }
}

/// What passes whatever the scopes are (TQ15): earlier reads, and completed operations of the tensor cores.
fn late(e: &Engine<'_>, held: &Rows) -> Rows {
    let mut out = Rows::new(held.words);
    out.add(row::COMPLETED, &held.get(row::COMPLETED));
    for level in (row::BASE..e.carriers.vector()).filter(|l| *l != row::COMPLETED) {
        out.add(level, &both(&held.get(level), &e.universe.sets.reads));
    }
    out
}
