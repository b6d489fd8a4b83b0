//! Mbarriers: phases that count arrivals and transactions, and what a wait learns (PTX ISA 9.2, 9.7.13.15).
//!
//! # Conditions
//!
//! Let the operations of a phase be those that count in it in this run. In another run those that are there so far contain,
//! with each operation, what comes before it. The phase is *cut* if it completes there without one of its operations.
//!
//! - **D1** ([`observed`]) An operation of a later phase knows a wait that observed the phase before, so it does not count
//!   in an earlier phase. It does not count in a later one either if its phase is not cut.
//! - **D4** ([`announced`]) A part that completes a phase has all its arrivals, because each of them is needed. Each operation
//!   that only raises the transaction count, or leaves it, comes before some arrival, so the part has these as well. What
//!   it may lack lowers the count. If the count of the phase is at last zero or above, the count of the part is above
//!   zero: the phase is not cut. So D4 is decided once no arrival is missing, whether the phase completes or not: what is
//!   announced later comes before no arrival, and a count below zero stays there. While an arrival is missing no part is
//!   complete. An operation is noted before it counts, because it may complete the phase itself.
//! - **D2** ([`turn`]) A wait that answered for a phase comes before an operation of the next one, which is not complete
//!   without it. If that phase never completes in this run, it does not in another one (D4), and laps nobody.
//! - **D5** ([`wait`]) A wait asks for a parity, so it answers for the second phase before as well. It knows that the phase
//!   between is over, by a wait that observed it. The first phase of an object has no such phase before it.
//!
//! A life of an object ends and starts in order: each use comes after `init`, and before `inval`, or it is a finding.

use super::launch::reach_out;
use super::memory::{data_before_init, life, revive};
use crate::carrier::{Carrier, Class, row};
use crate::engine::{
    At, Engine, Reach, deliver, drop_record, empty, fresh_mbarrier, home, known, knows, learn, object,
    published, rename, renew, vector,
};
use crate::finding::{Condition, Kind, Stop};
use crate::planted::Planted;
use crate::record::{Key, Object, What};
use crate::rows::{self, Rows, both, without};
use crate::state::{self, Added, State};
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
        MbarrierOp::Init { .. } | MbarrierOp::Inval | MbarrierOp::Wait(_) => false,
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
    } else if rows::has(&s.live, inval) && !rows::has(&before(e, s, at.thread), inval) {
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
    let facts = |what: &What| {
        use What::{Answered, Expected, Observed, Passed};
        matches!(what, Observed(o) | Passed(o) | Answered(o) | Expected(o) if *o == of)
    };
    for record in rows::members(&s.live) {
        if facts(&e.universe.keys[record].what) {
            drop_record(s, record);
        }
    }
}

fn inval(e: &mut Engine<'_>, s: &mut State, at: At<'_>, of: Object) -> Result<(), Stop> {
    let (_, inval) = life(e, of, at.line())?;
    alive(e, s, at, of, How::Ordinary)?;
    let name = e.name_of_object(of);
    if at.lanes > 1 {
        e.find(Kind::Lifetime, format!("{name}: invalidated by several lanes"), vec![at.place()]);
    }
    let base = e.carriers.thread(at.thread) + row::BASE;
    let known = before(e, s, at.thread);
    for record in rows::members(&s.live) {
        let key = &e.universe.keys[record];
        if key.what == What::Use(of) && !rows::has(&known, record) {
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

/// How a thread uses an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// In program order.
    Ordinary,
    /// It asks, perhaps many times before it has its answer: the first time, only causality has ordered it after `init`.
    Asks,
    /// By an asynchronous arrival.
    Detached,
}

/// Operations on mbarriers that come before what a thread does next: by causality, and where lanes that meet order them (RV),
/// by any steps of causality, program order and meetings.
fn before(e: &Engine<'_>, s: &State, thread: usize) -> Vec<u64> {
    let first = e.carriers.thread(thread);
    let mut out = s.rows.get(first + row::BASE);
    if e.settings.lanes_order_life {
        rows::add(&mut out, &s.rows.get(first + row::MET));
    }
    out
}

/// Checks that an object is alive where a thread uses it. Returns whether there is an object at all.
pub(super) fn alive(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    of: Object,
    how: How,
) -> Result<bool, Stop> {
    let (init, _) = life(e, of, at.line())?;
    let name = e.name_of_object(of);
    let valid = s.mbarriers.get(&of).is_some_and(|m| m.valid);
    if !valid {
        e.find(Kind::Lifetime, format!("{name}: used before init or after inval"), vec![at.place()]);
        return Ok(false);
    }
    let known = match how {
        How::Detached if e.settings.fenced_init => knows(e, s, at.thread, row::INITS, init),
        How::Asks => knows(e, s, at.thread, row::BASE, init),
        How::Ordinary | How::Detached => rows::has(&before(e, s, at.thread), init),
    };
    if rows::has(&s.live, init) && !known {
        e.find(Kind::Lifetime, format!("{name}: used without order after its init"), vec![at.place()]);
    }
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
    if !(e.invalidates || detached && e.program.launched) {
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
    if !alive(e, s, at, of, How::Ordinary)? {
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
    add(e, s, at.place(), of, parts, added)
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
    let Some(before) = s.mbarriers.get(&of).copied() else { return Ok(()) };
    debug_assert!(before.phase <= 2, "a phase is the first, odd or even");
    debug_assert!(!parts.is_empty(), "an operation hands something on");
    e.arrivers.insert((of, place.0));
    observed(e, place, (of, before), &parts, added)?;
    let arrivals = e.carriers.first(Carrier::Arrivals(of));
    for (class, vector) in parts {
        if added.arrivals > 0 {
            s.rows.add(arrivals, &vector.get(row::FACTS));
        }
        e.carriers.classes.entry(of).or_default().insert(class);
        deliver(e, s, Carrier::Phase(of, false, class), &vector);
    }
    let after = count(e, place, (of, before), added);
    announced(e, s, place, (of, after), added)?;
    s.mbarriers.insert(of, after);
    if over(after) { turn(e, s, place, of, before) } else { Ok(()) }
}

/// Whether nothing is missing in a phase.
fn over(phase: state::Mbarrier) -> bool {
    phase.pending == 0 && phase.tx == 0
}

/// D1: an operation of a later phase knows that the phase before is complete.
fn observed(
    e: &mut Engine<'_>,
    place: (usize, u32),
    (of, m): (Object, state::Mbarrier),
    parts: &[(Class, Rows)],
    added: Added,
) -> Result<(), Stop> {
    let observed = e.fact(usize::MAX, What::Observed(of), place.1)?;
    let known = parts.iter().any(|(_, vector)| vector.has(row::FACTS, observed));
    if m.phase == 0 || known || m.observed_by_all {
        return Ok(());
    }
    let name = e.name_of_object(of);
    if added.observes {
        let text = format!("{name}: an arrival before any wait observed the previous phase");
        e.find(Kind::Protocol, text, vec![place]);
    } else if !e.mode.every_order {
        let by = e.thread_name(place.0);
        let text = format!("{name}: the completion by {by} is not ordered after the previous phase");
        e.broken(Condition::Observed, text, vec![place]);
    }
    Ok(())
}

/// The phase with an operation, complete or not.
fn count(
    e: &mut Engine<'_>,
    place: (usize, u32),
    (of, mut m): (Object, state::Mbarrier),
    added: Added,
) -> state::Mbarrier {
    let name = e.name_of_object(of);
    if added.arrivals > m.pending {
        e.find(Kind::Protocol, format!("{name}: more arrivals than the phase expects"), vec![place]);
    }
    m.pending = m.pending.saturating_sub(added.arrivals);
    debug_assert!(added.arrivals > 0 || !added.drops, "who drops out arrives");
    m.tx += added.tx;
    if m.tx.unsigned_abs() > u64::from(MBARRIER_COUNT) {
        e.find(Kind::Protocol, format!("{name}: a transaction count out of range"), vec![place]);
    }
    if added.drops {
        m.count = m.count.saturating_sub(added.arrivals);
    }
    m
}

/// D4: no phase is complete without an operation that announces bytes. Asked once no arrival is missing.
fn announced(
    e: &mut Engine<'_>,
    s: &mut State,
    place: (usize, u32),
    (of, m): (Object, state::Mbarrier),
    added: Added,
) -> Result<(), Stop> {
    let announces = added.arrivals == 0 && added.tx >= 0;
    if announces && !(e.has(Planted::ExpectedLate) && over(m)) {
        let record = e.fact(place.0, What::Expected(of), place.1)?;
        renew(s, record);
        s.rows.set(e.carriers.thread(place.0) + row::FACTS, record);
    }
    let decided = announces || added.arrivals > 0 || m.tx < 0;
    if m.pending > 0 || !decided || e.mode.every_order || (e.has(Planted::ExpectedAtEnd) && !over(m)) {
        return Ok(());
    }
    let name = e.name_of_object(of);
    let arrivals = e.carriers.first(Carrier::Arrivals(of));
    let arrived = s.rows.get(arrivals);
    for record in rows::members(&without(&both(&s.live, &e.universe.sets.facts), &arrived)) {
        let key = &e.universe.keys[record];
        if key.what == What::Expected(of) {
            let theirs = (key.thread, e.universe.lines[record]);
            let who = e.thread_name(theirs.0);
            let text = format!("{name}: {who} may raise the transaction count after the phase is complete");
            e.broken(Condition::Expected, text, vec![theirs, place]);
        }
    }
    if m.tx < 0 && !e.has(Planted::ExpectedLate) {
        let text = format!("{name}: more bytes are complete than the phase expects");
        e.broken(Condition::Expected, text, vec![place]);
    }
    Ok(())
}

/// A phase is complete: what it collected is what waits learn from now on.
fn turn(
    e: &mut Engine<'_>,
    s: &mut State,
    place: (usize, u32),
    of: Object,
    before: state::Mbarrier,
) -> Result<(), Stop> {
    let phase = if before.phase == 1 { 2 } else { 1 };
    debug_assert!(s.mbarriers.get(&of).is_some_and(|m| over(*m)), "a phase that is over turns");
    let reset = |m: &mut state::Mbarrier| {
        *m = state::Mbarrier { phase, pending: m.count, observed_by_all: false, ..*m }
    };
    s.mbarriers.entry(of).and_modify(reset);
    answered(e, s, place, of);
    let arrivals = e.carriers.first(Carrier::Arrivals(of));
    s.rows.replace(arrivals, &vec![0; s.rows.words]);
    passed(e, s, place, of, before)?;
    for class in e.carriers.classes.get(&of).cloned().unwrap_or_default() {
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

/// D2: every wait that answered for the phase before comes before an operation of this one. What was noted for both is over.
fn answered(e: &mut Engine<'_>, s: &mut State, place: (usize, u32), of: Object) {
    let mut known = vec![0; s.rows.words];
    for class in e.carriers.classes.get(&of).cloned().unwrap_or_default() {
        let first = e.carriers.first(Carrier::Phase(of, false, class));
        rows::add(&mut known, &s.rows.get(first + row::FACTS));
    }
    let name = e.name_of_object(of);
    for record in rows::members(&both(&s.live, &e.universe.sets.facts)) {
        let key = &e.universe.keys[record];
        if key.what == What::Answered(of) && !rows::has(&known, record) && !e.mode.every_order {
            let theirs = (key.thread, e.universe.lines[record]);
            let who = e.thread_name(theirs.0);
            let text =
                format!("{name}: {who} can be lapped: the next phase may complete before its wait answers");
            e.broken(Condition::Lapped, text, vec![theirs, place]);
        }
        if matches!(e.universe.keys[record].what, What::Answered(o) | What::Expected(o) if o == of) {
            drop_record(s, record);
        }
    }
}

/// The last complete phase is from now on the one before. Who knows that it was observed knows that it is over (D5).
fn passed(
    e: &mut Engine<'_>,
    s: &mut State,
    place: (usize, u32),
    of: Object,
    before: state::Mbarrier,
) -> Result<(), Stop> {
    let observed = e.fact(usize::MAX, What::Observed(of), place.1)?;
    let passed = e.fact(usize::MAX, What::Passed(of), place.1)?;
    drop_record(s, passed);
    if before.phase == 0 {
        drop_record(s, observed);
    } else if rows::has(&s.live, observed) {
        rename(s, observed, passed);
    } else if !before.observed_by_all {
        rows::insert(&mut s.live, passed);
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
    debug_assert!(!s.threads[at.thread].exited, "who has exited waits for nothing");
    let Some(m) = s.mbarriers.get(&of).copied().filter(|m| m.valid) else { return Ok(false) };
    if (m.phase & 1 == 1) == odd {
        return Ok(false);
    }
    alive(e, s, at, of, How::Asks)?;
    early(e, s, at, of)?;
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

/// A wait that answers with no. Returns whether it might have had to answer with yes: the phase is over, and the thread knows
/// every fact that its operations know. If it lacks one, some operation does not come before the wait.
pub(super) fn peek(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    (of, odd): (Object, bool),
) -> Result<bool, Stop> {
    e.waiters.insert((of, at.thread));
    if home(e, of) != at.cta || !alive(e, s, at, of, How::Asks)? {
        return Ok(false);
    }
    if let Some(record) = used(e, s, at, of, false)? {
        s.rows.set(e.carriers.thread(at.thread) + row::BASE, record);
    }
    let mut held = vec![0; s.rows.words];
    for class in e.carriers.classes.get(&of).cloned().unwrap_or_default() {
        let first = e.carriers.first(Carrier::Phase(of, true, class));
        rows::add(&mut held, &s.rows.get(first + row::FACTS));
    }
    let own = s.rows.get(e.carriers.thread(at.thread) + row::FACTS);
    let lacks = !rows::members(&without(&both(&held, &s.live), &own)).is_empty();
    Ok(!lacks && s.mbarriers.get(&of).is_some_and(|m| (m.phase & 1 == 1) != odd))
}

/// D5: a wait knows that the phase before the one that it answers for is complete.
fn early(e: &mut Engine<'_>, s: &State, at: At<'_>, of: Object) -> Result<(), Stop> {
    let passed = e.fact(usize::MAX, What::Passed(of), at.line())?;
    if rows::has(&s.live, passed) && !knows(e, s, at.thread, row::FACTS, passed) && !e.mode.every_order {
        let (name, who) = (e.name_of_object(of), e.thread_name(at.thread));
        let text = format!("{name}: the wait of {who} may answer for an earlier phase");
        e.broken(Condition::Passed, text, vec![at.place()]);
    }
    Ok(())
}

/// D5 for a thread that was to be told yes and never is: it knows that the last complete phase is over. Otherwise it may have
/// asked before, when the answer was that for the phase before that.
pub(super) fn missed(e: &mut Engine<'_>, s: &State, at: At<'_>, of: Object) -> Result<(), Stop> {
    let Some(m) = s.mbarriers.get(&of).filter(|m| m.valid) else { return Ok(()) };
    let observed = e.fact(usize::MAX, What::Observed(of), at.line())?;
    if m.phase == 0 || m.observed_by_all || knows(e, s, at.thread, row::FACTS, observed) {
        return Ok(());
    }
    let (name, who) = (e.name_of_object(of), e.thread_name(at.thread));
    let text = format!("{name}: {who} may ask before the phase that is complete, or behind it");
    e.broken(Condition::Passed, text, vec![at.place()]);
    Ok(())
}

/// What a wait learns from the operations of one class.
fn take(e: &mut Engine<'_>, s: &mut State, at: At<'_>, of: Object, class: Class, wait: &MbarrierWait) {
    let from = e.carriers.first(Carrier::Phase(of, true, class));
    let held = vector(e, s, from);
    let meets = include(e, (class.scope, class.cta), (wait.scope, at.cta));
    let ordered = meets || e.settings.any_scope;
    let released = class.release.filter(|r| meets && include(e, (*r, class.cta), (wait.scope, at.cta)));
    let levels = released.is_some() && (!wait.relaxed || e.has(Planted::RelaxedWaits));
    learn(e, s, at.thread, &held, Reach { ordered, levels, completed: false, met: false });
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
            let reach = Reach { ordered: false, levels: true, completed: false, met: false };
            learn(e, s, at.thread, &late, reach);
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
