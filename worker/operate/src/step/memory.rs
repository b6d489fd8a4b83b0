//! Accesses to memory: which earlier ones must be ordered before them, and by what (PTX ISA 9.2, 8.7 and 8.9.5).

use super::launch::reach_out;
use crate::carrier::{Own, row};
use crate::engine::{At, Engine, address, drop_record, join, renew, span};
use crate::finding::{Kind, Stop};
use crate::forget::forget;
use crate::layout::Span;
use crate::planted::Planted;
use crate::record::{Access, AccessKind, Key, Object, Via, What};
use crate::rows::{self, add, both, without};
use crate::state::State;
use crate::value::{Val, low};
use moire_program::ir::{Address, Descriptor, Operand, Reg, Space, Ty};
use std::collections::BTreeSet;

/// Executes accesses of one instruction: checks each against what is there, and enters them. Returns their records.
pub(super) fn access(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    accesses: &[Access],
) -> Result<Vec<usize>, Stop> {
    let mut records = Vec::new();
    for access in accesses {
        let counted = e.mode.instances && !in_order(access.part);
        let first = if counted { s.threads[at.thread].copies } else { 0 };
        let what = What::Memory(*access);
        let mut record =
            e.record(Key { thread: at.thread, what: what.clone(), instance: first }, at.line())?;
        if !e.mode.instances && rows::has(&s.live, record) && apart(access) {
            let other = e.record(Key { thread: at.thread, what, instance: 1 }, at.line())?;
            record = spare(e, s, [record, other]);
        }
        let conflicts = both(&e.universe.conflicts[record], &s.live);
        if !rows::is_empty(&conflicts) {
            let mut left = without(&conflicts, &ordered(e, s, at, access));
            if e.has(Planted::StrongAnywhere) && matches!(access.part, AccessKind::Strong(_)) {
                left.fill(0);
            }
            report(e, at, access, &left);
        }
        bytes_as_data(e, s, at, access);
        records.push(record);
    }
    for (access, record) in accesses.iter().zip(&records) {
        if !e.has(Planted::StaysKnown) {
            renew(s, *record);
        }
        rows::insert(&mut s.live, *record);
        if matches!(
            access.part,
            AccessKind::Plain | AccessKind::Strong(_) | AccessKind::Slot | AccessKind::SlotRead
        ) {
            s.rows.set(e.carriers.thread(at.thread) + row::BASE, *record);
        }
    }
    Ok(records)
}

/// Whether a later instance of an access is known only where the earlier one is.
fn in_order(part: AccessKind) -> bool {
    matches!(part, AccessKind::Plain | AccessKind::Strong(_) | AccessKind::Multiplied)
}

/// The record for a new instance of an access whose instances complete independently. A copy that everyone knows is
/// forgotten. If two are left, one record stands for both: what it races with may race with one of them, and who knows it
/// knows both.
fn spare(e: &mut Engine<'_>, s: &mut State, [one, other]: [usize; 2]) -> usize {
    let free = |s: &State| [other, one].into_iter().find(|record| !rows::has(&s.live, *record));
    if free(s).is_none() {
        forget(e, s);
    }
    free(s).unwrap_or_else(|| {
        join(s, one, other);
        other
    })
}

/// Whether two instances of an access complete independently.
fn apart(access: &Access) -> bool {
    matches!(access.part, AccessKind::Copy | AccessKind::Reduction)
}

/// The row of its vector in which a thread must know an access before a later one of its own, wherever it makes that.
pub(crate) fn level_needed(
    e: &Engine<'_>,
    (issuer, earlier): (usize, &Access),
    (thread, later): (usize, &Access),
) -> usize {
    let cta = e.layout.cta_of[thread];
    let place = |span: &Span| e.layout.owner(span);
    match later.via {
        Via::Generic if matches!(earlier.part, AccessKind::Product { .. }) && e.settings.fenced_products => {
            row::LEFT
        }
        Via::Generic => row::BASE,
        Via::Async => {
            let multiplied = later.part == AccessKind::Multiplied;
            let own = |own: Own| e.carriers.vector() + own as usize;
            let near = if e.settings.stands_at_issue {
                e.layout.cta_of[issuer] == cta
            } else {
                let home = |t: usize| e.layout.cta_of[t];
                place(&earlier.span).unwrap_or(home(issuer)) == place(&later.span).unwrap_or(cta)
            };
            if earlier.via == Via::Async && near {
                return if multiplied { own(Own::Multiplied) } else { row::BASE };
            }
            if multiplied {
                return own(Own::MultipliedFenced);
            }
            e.carriers.fenced(fence_place(e, cta, later))
        }
        Via::Map => e.carriers.mapped(cta),
    }
}

/// The CTA in which a proxy fence for an access that a thread of a CTA makes stands (TQ17, Q4).
fn fence_place(e: &Engine<'_>, cta: usize, access: &Access) -> usize {
    let at_issue = e.settings.fence_at_instruction || e.settings.stands_at_issue;
    e.layout.owner(&access.span).filter(|_| !at_issue).unwrap_or(cta)
}

/// Memory records that are ordered before an access that a thread makes now.
fn ordered(e: &Engine<'_>, s: &State, at: At<'_>, access: &Access) -> Vec<u64> {
    let first = e.carriers.thread(at.thread);
    let multiplied = access.part == AccessKind::Multiplied && !e.has(Planted::FreeProducts);
    let base = match multiplied {
        true => s.rows.get(e.carriers.own(at.thread, Own::Multiplied)),
        false => s.rows.get(first + row::BASE),
    };
    let sets = &e.universe.sets;
    match access.via {
        Via::Generic => {
            let mut out = both(&base, &sets.generic);
            add(&mut out, &both(&base, &sets.copies));
            let products = both(&base, &sets.products);
            let left = s.rows.get(first + row::LEFT);
            add(&mut out, if e.settings.fenced_products { &left } else { &products });
            add(&mut out, &left);
            out
        }
        Via::Async if e.has(Planted::FreeProxy) => base,
        Via::Async => {
            let mut out = match multiplied {
                true => s.rows.get(e.carriers.own(at.thread, Own::MultipliedFenced)),
                false => s.rows.get(first + e.carriers.fenced(fence_place(e, at.cta, access))),
            };
            let near = if e.settings.stands_at_issue {
                &sets.issued[at.cta]
            } else {
                &sets.home[e.layout.owner(&access.span).unwrap_or(at.cta)]
            };
            add(&mut out, &both(&both(&base, &sets.asynchronous), near));
            if access.writes && e.settings.slot_in_order {
                add(&mut out, &both(&base, &sets.slots));
            }
            if access.writes && e.settings.free_write_after_read {
                add(&mut out, &both(&base, &sets.reads));
            }
            out
        }
        Via::Map => s.rows.get(first + e.carriers.mapped(at.cta)),
    }
}

fn report(e: &mut Engine<'_>, at: At<'_>, access: &Access, left: &[u64]) {
    for other in rows::members(left) {
        let theirs = (e.universe.keys[other].thread, e.universe.lines[other]);
        let What::Memory(earlier) = &e.universe.keys[other].what else { continue };
        let text = format!(
            "{}: {} by {} (line {}) and {} by {} (line {}) are not ordered",
            e.name_of(&access.span),
            word(earlier),
            e.thread_name(theirs.0),
            theirs.1,
            word(access),
            e.thread_name(at.thread),
            at.line(),
        );
        e.find(Kind::Race, text, vec![theirs, at.place()]);
    }
}

fn word(access: &Access) -> &'static str {
    match (access.writes, access.via) {
        (false, Via::Generic) => "a read",
        (true, Via::Generic) => "a write",
        (false, Via::Async) => "a read through the async proxy",
        (true, Via::Async) => "a write through the async proxy",
        (_, Via::Map) => "a read of the tensor map",
    }
}

/// Reports an access to the bytes of an mbarrier that is alive.
fn bytes_as_data(e: &mut Engine<'_>, s: &State, at: At<'_>, access: &Access) {
    let used: Vec<Object> = s.mbarriers.keys().copied().filter(|o| covers(&access.span, *o)).collect();
    for object in used {
        let own = |what: What| e.universe.find(usize::MAX, what).filter(|r| rows::has(&s.live, *r));
        let Some(_) = own(What::Init(object)) else { continue };
        let base = e.carriers.thread(at.thread) + row::BASE;
        if !own(What::Inval(object)).is_some_and(|inval| s.rows.has(base, inval)) {
            let name = e.name_of_object(object);
            e.find(Kind::Lifetime, format!("{name}: bytes of an mbarrier used as data"), vec![at.place()]);
        }
    }
}

fn covers(span: &Span, object: Object) -> bool {
    span.meets(&Span { copy: object.copy, offset: object.offset, bytes: 8 })
}

/// Reports accesses to the bytes of an mbarrier that are not ordered before its init.
pub(super) fn data_before_init(e: &mut Engine<'_>, s: &State, at: At<'_>, object: Object) {
    let base = s.rows.get(e.carriers.thread(at.thread) + row::BASE);
    let unordered = without(&both(&s.live, &e.universe.sets.memory), &base);
    for record in rows::members(&unordered) {
        if let What::Memory(access) = &e.universe.keys[record].what
            && covers(&access.span, object)
        {
            let theirs = (e.universe.keys[record].thread, e.universe.lines[record]);
            let text = format!("{}: bytes of an mbarrier used as data", e.name_of_object(object));
            e.find(Kind::Lifetime, text, vec![theirs, at.place()]);
        }
    }
}

/// Whether a qualifier allows the space of an object.
pub(super) fn admits(qualifier: Space, space: Space) -> bool {
    match qualifier {
        Space::Generic => space != Space::Tensor,
        Space::Global => space == Space::Global,
        Space::Tensor => space == Space::Tensor,
        Space::SharedCta | Space::SharedCluster => space == Space::SharedCta,
    }
}

/// The bytes of a matrix in the shared memory of the CTA.
pub(super) fn matrix(e: &Engine<'_>, s: &State, at: At<'_>, of: &Descriptor) -> Result<Span, Stop> {
    let Descriptor::Range { addr, bytes } = of else {
        return Err(at.abstain("a matrix descriptor in a register"));
    };
    let span = e.layout.locate(address(e, s, at, addr)?, *bytes);
    let here =
        |span: &Span| admits(Space::SharedCta, e.layout.space(span)) && e.layout.owner(span) == Some(at.cta);
    span.filter(here).ok_or_else(|| at.abstain("a matrix outside the shared memory of the CTA"))
}

fn elements(ty: Ty, count: usize) -> Option<(u32, u32)> {
    let bytes = ty.bytes() * u32::try_from(count).ok()?;
    (!ty.packed() && bytes > 0).then_some((ty.bytes(), bytes))
}

/// The bytes of a weak and generic access to so many values, and of each of them.
fn reached(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    (space, ty, addr): (Space, Ty, &Address),
    (count, name): (usize, &'static str),
) -> Result<(Span, u32), Stop> {
    let Some((each, bytes)) = elements(ty, count) else {
        return Err(at.abstain("an access to packed values"));
    };
    let whole = span(e, s, at, addr, bytes)?;
    if !admits(space, e.layout.space(&whole)) {
        return Err(at.abstain("an address outside the state space of the access"));
    }
    reach_out(e, s, at, &[e.layout.owner(&whole)], name)?;
    Ok((whole, each))
}

/// Refuses a strong access to one of these objects, which another strong access may synchronise with.
pub(super) fn strong(
    e: &Engine<'_>,
    s: &State,
    at: At<'_>,
    addr: &Address,
    meets: &BTreeSet<usize>,
    what: &'static str,
) -> Result<(), Stop> {
    let free = meets.is_empty()
        || e.layout.locate(address(e, s, at, addr)?, 1).is_some_and(|span| {
            let object = e.layout.copies[span.copy].object;
            !meets.contains(&object)
        });
    if free { Ok(()) } else { Err(at.abstain(what)) }
}

/// `ld`, generic: weak, or strong where nobody writes strongly. Then it synchronises with nothing.
pub(super) fn load(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    place: (Space, Ty, &Address),
    dst: &[Reg],
) -> Result<(), Stop> {
    let (whole, each) = reached(e, s, at, place, (dst.len(), "ld"))?;
    debug_assert_eq!(whole.bytes as usize, each as usize * dst.len(), "a vector has so many bytes");
    for (n, reg) in dst.iter().enumerate() {
        let part = piece(whole, each, n);
        let read = slot_read(e, s, at, &part);
        access(e, s, at, &[read])?;
        let value = content(e, s, &part, place.1);
        s.threads[at.thread].regs[reg.index()] = value;
    }
    Ok(())
}

/// `st`, generic: weak, or strong where nobody reads strongly. Then nothing synchronises with it.
pub(super) fn store(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    place: (Space, Ty, &Address),
    (src, part): (&[Operand], AccessKind),
) -> Result<(), Stop> {
    let (whole, each) = reached(e, s, at, place, (src.len(), "st"))?;
    debug_assert_eq!(whole.bytes as usize, each as usize * src.len(), "a vector has so many bytes");
    for (n, src) in src.iter().enumerate() {
        let span = piece(whole, each, n);
        let write = Access { span, writes: true, via: Via::Generic, part };
        let beside = concurrent(e, s, at, &write);
        access(e, s, at, &[write])?;
        let value = crate::engine::operand(e, s, at.thread, *src);
        let value = value.known().map_or(Val::Unknown, |v| Val::Known(low(v, 8 * each)));
        // Which of two strong stores remains is open.
        let same = s.contents.get(&(span.copy, span.offset, span.bytes)) == Some(&value);
        let value = if beside && !same { Val::Unknown } else { value };
        keep(e, s, &span, value);
    }
    Ok(())
}

/// Whether another thread has stored strongly to these bytes, not ordered before this store.
fn concurrent(e: &Engine<'_>, s: &State, at: At<'_>, write: &Access) -> bool {
    let known = s.rows.get(e.carriers.thread(at.thread) + row::BASE);
    let open = without(&both(&s.live, &e.universe.sets.memory), &known);
    let strong = |record: usize| match &e.universe.keys[record].what {
        What::Memory(other) => matches!(other.part, AccessKind::Strong(_)) && other.span.meets(&write.span),
        _ => false,
    };
    matches!(write.part, AccessKind::Strong(_)) && rows::members(&open).into_iter().any(strong)
}

fn piece(whole: Span, each: u32, n: usize) -> Span {
    let n = u32::try_from(n).unwrap_or(u32::MAX);
    debug_assert!(
        each.checked_mul(n).is_some_and(|at| at + each <= whole.bytes),
        "a piece is inside the whole"
    );
    Span { offset: whole.offset + each * n, bytes: each, ..whole }
}

/// A generic read. It is a read of the address of an allocation if the store of the address is ordered before it.
fn slot_read(e: &Engine<'_>, s: &State, at: At<'_>, span: &Span) -> Access {
    let base = s.rows.get(e.carriers.thread(at.thread) + row::BASE);
    let stored = both(&both(&base, &s.live), &e.universe.sets.slots);
    let here = |record: usize| match &e.universe.keys[record].what {
        What::Memory(access) => access.part == AccessKind::Slot && access.span.meets(span),
        _ => false,
    };
    let part =
        if rows::members(&stored).into_iter().any(here) { AccessKind::SlotRead } else { AccessKind::Plain };
    Access { span: *span, writes: false, via: Via::Generic, part }
}

/// Notes what is written, where that can decide something.
pub(super) fn keep(e: &Engine<'_>, s: &mut State, span: &Span, value: Val) {
    if !e.flows.read.contains(&e.layout.copies[span.copy].object) {
        return;
    }
    let meets = |k: &(usize, u32, u32)| span.meets(&Span { copy: k.0, offset: k.1, bytes: k.2 });
    for (key, old) in &mut s.contents {
        if meets(key) {
            *old = Val::Unknown;
        }
    }
    s.contents.insert((span.copy, span.offset, span.bytes), value);
}

/// What a load returns.
fn content(e: &Engine<'_>, s: &State, span: &Span, ty: Ty) -> Val {
    // What is known was stored last: a later store to one of these bytes makes it unknown.
    let covers = |k: &(usize, u32, u32)| {
        k.0 == span.copy && k.1 <= span.offset && span.offset + span.bytes <= k.1 + k.2
    };
    let stored = s.contents.iter().filter(|(key, _)| covers(key));
    let known = stored.filter_map(|(key, value)| Some(value.known()? >> (8 * (span.offset - key.1)))).next();
    if let Some(bits) = known {
        let bits = low(bits, 8 * span.bytes);
        return match ty {
            Ty::S(width) if width < 64 => Val::Known(extended(bits, u32::from(width))),
            _ => Val::Known(bits),
        };
    }
    let meets = |k: &(usize, u32, u32)| span.meets(&Span { copy: k.0, offset: k.1, bytes: k.2 });
    if s.contents.keys().any(meets) || !e.flows.read.contains(&e.layout.copies[span.copy].object) {
        return Val::Unknown;
    }
    let init = &e.program.objects[e.layout.copies[span.copy].object].init;
    let bits = init.value(span.offset, span.bytes);
    match ty {
        Ty::S(width) if width < 64 => Val::Known(extended(bits, u32::from(width))),
        _ => Val::Known(bits),
    }
}

fn extended(bits: u128, width: u32) -> u128 {
    let unused = 128 - width.clamp(1, 128);
    ((bits << unused).cast_signed() >> unused).cast_unsigned()
}

/// A write of unknown data, by a copy.
pub(super) fn overwritten(e: &Engine<'_>, s: &mut State, span: &Span) {
    keep(e, s, span, Val::Unknown);
}

/// The records of an object that start its life, or end it.
pub(super) fn life(e: &mut Engine<'_>, object: Object, line: u32) -> Result<(usize, usize), Stop> {
    Ok((e.fact(usize::MAX, What::Init(object), line)?, e.fact(usize::MAX, What::Inval(object), line)?))
}

/// Forgets that an object was invalidated.
pub(super) fn revive(s: &mut State, inval: usize) {
    drop_record(s, inval);
}
