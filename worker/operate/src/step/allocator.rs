//! Allocation of tensor memory: columns are taken, given back, and the right to take more is given up (PTX ISA 9.2, 9.7.16.7).
//!
//! Allocations of a CTA that might have to wait for each other are not decided here.

use super::launch::{Unstarted, reaching};
use super::memory::{access, keep};
use super::place::{address_of, next_slot, slot_of};
use super::tensor::{before_allocator, granularity};
use crate::carrier::row;
use crate::engine::{At, Engine, known, knows, renew, span};
use crate::finding::{Kind, Stop};
use crate::record::{Access, AccessKind, Home, Via, What};
use crate::rows::{self, without};
use crate::state::{Call, Columns, State, Suspect};
use crate::value::{Val, low};
use moire_program::ir::{Address, CtaGroup, Op, Operand, TENSOR_COLUMNS, Tcgen05};

/// Columns that an instruction names, and whether it may.
fn counted(e: &Engine<'_>, s: &State, at: At<'_>, of: Operand, exclusive: bool) -> Result<(u32, bool), Stop> {
    let value = low(known(e, s, at, of)?, 32);
    let most = if exclusive { TENSOR_COLUMNS + 64 } else { TENSOR_COLUMNS };
    let fits = value > 0 && value.is_multiple_of(32) && value <= u128::from(most);
    let fits = fits && (exclusive || value.is_power_of_two());
    Ok((u32::try_from(value).unwrap_or(most).min(most), fits))
}

/// Whether allocations of a CTA may have to wait for each other.
fn contended(e: &Engine<'_>, cta: usize) -> bool {
    let (mut total, mut count, mut exclusively) = (0i128, 0, false);
    for thread in &e.layout.ctas[cta] {
        let body = &e.program.threads[*thread].body;
        // What is run again lies between a jump back and its target.
        let again = |pc: usize| {
            let mut behind = body.iter().skip(pc);
            behind.any(|i| matches!(i.op, Op::Bra { target } if target <= pc))
        };
        for (pc, instr) in body.iter().enumerate() {
            let Op::Tcgen05(Tcgen05::Alloc { columns, exclusive, .. }) = &instr.op else { continue };
            let Operand::Imm(n) = columns else { return true };
            total += (*n).clamp(0, 1_024) * if again(pc) { 4 } else { 1 };
            count += 1;
            exclusively |= exclusive;
        }
    }
    total > i128::from(TENSOR_COLUMNS) || (exclusively && count > 1)
}

/// An instruction of the allocator. Returns whether the thread goes on.
pub(super) fn allocator(e: &mut Engine<'_>, s: &mut State, at: At<'_>, op: &Tcgen05) -> Result<bool, Stop> {
    let pair = op.group() == Some(CtaGroup::Two);
    let peer = match pair.then(|| e.layout.peer(at.cta)) {
        Some(None) => return Err(at.abstain("cta_group::2 without the other CTA of the pair")),
        Some(peer) => peer,
        None => None,
    };
    match op {
        Tcgen05::Alloc { exclusive, dst, columns, .. } => {
            let (columns, fits) = counted(e, s, at, *columns, *exclusive)?;
            get(e, s, at, op, (peer, columns, fits, *exclusive), dst)
        }
        Tcgen05::Dealloc { exclusive, addr, columns, .. } => {
            let (columns, fits) = counted(e, s, at, *columns, *exclusive)?;
            let value = known(e, s, at, *addr)?;
            let value = u32::try_from(value).ok().filter(|v| v >> 16 == 0);
            put(e, s, at, op, (peer, columns, fits, *exclusive), value.and_then(slot_of))
        }
        Tcgen05::Relinquish { .. } => relinquish(e, s, at, op, peer),
        Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::WaitLoad | Tcgen05::WaitStore => Ok(true),
        Tcgen05::Copy { .. } | Tcgen05::Shift { .. } | Tcgen05::Mma(_) | Tcgen05::Commit(_) => Ok(true),
        Tcgen05::FenceBefore | Tcgen05::FenceAfter => Ok(true),
    }
}

/// Calls an instruction that meets one of the other CTA. Returns whether the other one is there.
fn called(e: &mut Engine<'_>, s: &mut State, at: At<'_>, peer: usize, call: Call, columns: u32) -> bool {
    e.arrived |= s.calls.insert((at.cta, call), columns).is_none();
    let theirs = s.calls.get(&(peer, call)).copied();
    if theirs.is_some_and(|theirs| theirs != columns) {
        let text = "the CTAs of a pair name different numbers of columns".to_owned();
        e.find(Kind::Protocol, text, vec![at.place()]);
    }
    theirs.is_some()
}

fn get(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    op: &Tcgen05,
    (peer, columns, fits, exclusive): (Option<usize>, u32, bool, bool),
    dst: &Address,
) -> Result<bool, Stop> {
    if contended(e, at.cta) {
        return Err(at.abstain("allocations that may wait for each other"));
    }
    if !s.threads[at.thread].inside.is_empty() {
        return Err(at.abstain("an allocation in a loop"));
    }
    let slot = next_slot(e, s, at, peer.is_some())?;
    if let Some(peer) = peer
        && !called(e, s, at, peer, Call::Get(slot), columns)
    {
        return Ok(false);
    }
    granularity(e, at, op);
    let name = e.thread_name(at.thread).to_owned();
    if !fits {
        e.find(
            Kind::Protocol,
            format!("{name} takes a number of columns that none can have"),
            vec![at.place()],
        );
    }
    if s.relinquished.contains(&at.cta) {
        let text = format!("{name} takes columns after the right to them was given up");
        e.find(Kind::Protocol, text, vec![at.place()]);
    }
    for other in rows::members(&s.live) {
        let What::Got { cta, columns: theirs, .. } = e.universe.keys[other].what else { continue };
        let smaller = theirs < columns;
        if cta == at.cta && (smaller || (theirs > columns && !knows(e, s, at.thread, row::FACTS, other))) {
            let place = (e.universe.keys[other].thread, e.universe.lines[other]);
            let text = format!("{name} takes more columns than an earlier allocation");
            e.find(Kind::Protocol, text, vec![place, at.place()]);
        }
    }
    let _ = reaching(e, s, at, &[peer], (op.name(), None), Unstarted::Protocol)?
        .map(|record| s.rows.set(e.carriers.thread(at.thread) + row::FACTS, record));
    let got = e.fact(usize::MAX, What::Got { cta: at.cta, slot, columns }, at.line())?;
    renew(s, got);
    s.rows.set(e.carriers.thread(at.thread) + row::FACTS, got);
    s.columns.retain(|c| (c.cta, c.slot) != (at.cta, slot));
    s.columns.push(Columns { cta: at.cta, slot, columns, exclusive, pair: peer.is_some(), freed: false });
    s.columns.sort_unstable();
    justified(e, s, (at.cta, slot), columns);
    s.threads[at.thread].allocations += 1;
    let place = span(e, s, at, dst, 4)?;
    let write = Access { span: place, writes: true, via: Via::Generic, part: AccessKind::Slot };
    access(e, s, at, &[write])?;
    keep(e, s, &place, Val::Known(address_of(slot)));
    Ok(true)
}

fn put(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    op: &Tcgen05,
    (peer, columns, fits, exclusive): (Option<usize>, u32, bool, bool),
    place: Option<(u32, u32)>,
) -> Result<bool, Stop> {
    let call = Call::Put(place.map(|p| p.0));
    if let Some(peer) = peer {
        let there = called(e, s, at, peer, call, columns);
        if e.mode.together && !there {
            return Ok(false);
        }
    }
    granularity(e, at, op);
    let name = e.thread_name(at.thread).to_owned();
    if !fits {
        e.find(
            Kind::Protocol,
            format!("{name} gives back a number of columns that none can have"),
            vec![at.place()],
        );
    }
    let taken = place.and_then(|(slot, _)| s.columns.iter().position(|c| c.cta == at.cta && c.slot == slot));
    let (Some((slot, column)), Some(taken)) = (place, taken) else {
        let text = format!("{name} gives back columns that are not allocated");
        e.find(Kind::Lifetime, text, vec![at.place()]);
        return Ok(true);
    };
    let is = s.columns[taken];
    let suspect = Suspect { cta: at.cta, slot, end: None, place: at.place() };
    if is.freed {
        s.suspects.retain(|s| (s.cta, s.slot, s.end) != (at.cta, slot, None));
        e.find(Kind::Lifetime, format!("{name} gives columns back again"), vec![at.place()]);
    } else if column != 0 || columns != is.columns || exclusive != is.exclusive {
        s.suspects.insert(suspect);
    }
    after_everything(e, s, at, slot, peer);
    s.columns[taken].freed = true;
    Ok(true)
}

/// Checks that a dealloc comes after every access to its columns, and after the allocation, in each of its CTAs.
fn after_everything(e: &mut Engine<'_>, s: &State, at: At<'_>, slot: u32, peer: Option<usize>) {
    let here = |cta: usize| cta == at.cta || peer == Some(cta);
    let unordered = without(&s.live, &before_allocator(e, s, at.thread));
    for record in rows::members(&s.live) {
        let place = (e.universe.keys[record].thread, e.universe.lines[record]);
        let name = e.thread_name(at.thread).to_owned();
        match &e.universe.keys[record].what {
            What::Tensor(tensor)
                if rows::has(&unordered, record)
                    && tensor.cells.iter().any(|c| c.home == Home::Slot(slot) && here(c.cta)) =>
            {
                let text = format!("{name} gives back columns without order after line {}", place.1);
                e.find(Kind::Lifetime, text, vec![place, at.place()]);
            }
            What::Got { cta, slot: theirs, .. }
                if *theirs == slot && here(*cta) && !knows(e, s, at.thread, row::FACTS, record) =>
            {
                let text = format!("{name} gives back columns without order after their allocation");
                e.find(Kind::Lifetime, text, vec![place, at.place()]);
            }
            _ => {}
        }
    }
}

fn relinquish(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    op: &Tcgen05,
    peer: Option<usize>,
) -> Result<bool, Stop> {
    if let Some(peer) = peer {
        let there = called(e, s, at, peer, Call::Release, 0);
        if e.mode.together && !there {
            return Ok(false);
        }
    }
    granularity(e, at, op);
    for record in rows::members(&s.live) {
        let What::Got { cta, .. } = e.universe.keys[record].what else { continue };
        if cta == at.cta && !knows(e, s, at.thread, row::FACTS, record) {
            let place = (e.universe.keys[record].thread, e.universe.lines[record]);
            let text = "the right to columns is given up without order after an allocation".to_owned();
            e.find(Kind::Protocol, text, vec![place, at.place()]);
        }
    }
    s.relinquished.insert(at.cta);
    Ok(true)
}

/// Columns were taken: earlier accesses to them are none to columns that nobody has.
fn justified(e: &mut Engine<'_>, s: &mut State, (cta, slot): (usize, u32), columns: u32) {
    let here = |s: &Suspect| s.cta == cta && s.slot == slot && s.end.is_some();
    for suspect in s.suspects.iter().filter(|s| here(s)) {
        if suspect.end.is_some_and(|end| end > columns) {
            let text = format!("an access leaves its allocation by {}", e.thread_name(suspect.place.0));
            e.find(Kind::Lifetime, text, vec![suspect.place]);
        }
    }
    s.suspects.retain(|s| !here(s));
}

/// Reports, when a run is over, what no other thread has made right.
pub(crate) fn suspects(e: &mut Engine<'_>, s: &State) {
    for suspect in &s.suspects {
        let name = e.thread_name(suspect.place.0).to_owned();
        match suspect.end {
            Some(_) => {
                let text = format!("tensor memory that is not allocated is accessed by {name}");
                e.find(Kind::Lifetime, text, vec![suspect.place]);
            }
            None => {
                let text = format!("{name} gives back other columns than were taken");
                e.find(Kind::Protocol, text, vec![suspect.place]);
            }
        }
    }
}
