//! Runs ordinary loads and stores. Words that decide something keep their values; other data keeps only its footprint.

use super::arithmetic::cut;
use super::control::answer;
use super::followed::operand_left;
use super::ordered::number;
use super::place::Place;
use super::told::{heard, leads, tell, told};
use super::{Executing, Then};
use crate::Refusal;
use crate::specialise::item::{Content, Item, Manner, Stored};
use crate::specialise::known::tickets::Ticketed;
use crate::specialise::known::value::{Base, Lanes, Val, Why, lanes};
use crate::specialise::practice::Practice;
use crate::specialise::residual::{AGREED, strange};
use crate::specialise::touch::{Kind, Mem, Spread, Touch};
use crate::specialise::warp::State;
use moire_program::ir::*;
use std::collections::{BTreeMap, BTreeSet};

/// The form of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) space: Space,
    pub(super) ty: Ty,
    /// The number of elements.
    pub(super) count: usize,
    /// Whether it has an order or is volatile.
    pub(super) strong: bool,
}

impl Access {
    pub(super) fn bytes(&self, step: &Executing<'_, '_>) -> Result<u32, Refusal> {
        step.vector_bytes(self.ty, self.count)
    }
}

/// Numbers of the registers of a statement that hand on a value, and that tells whether one has other data.
const HANDED: usize = 5_000;
const STRANGE: usize = 6_000;
/// The number of the choice that stands for such data.
const TRAP: u32 = u32::MAX;
/// Most values of a word for which the run splits. A word with more values is unknown.
const WAYS: usize = 16;

pub(super) fn load(
    step: &mut Executing<'_, '_>,
    access: &Access,
    dst: &[Reg],
    address: &Val,
) -> Result<Then, Refusal> {
    let (line, mask, ranks) = (step.line(), step.mask, step.by_rank(access.space, address));
    for lanes in ranks.iter().filter(|_| ranks.len() > 1) {
        step.mask = *lanes;
        if !matches!(load(step, access, dst, address)?, Then::Next) {
            return step.abstain("a word that decides something, read by lanes in several CTAs");
        }
        step.mask = mask;
    }
    if ranks.len() > 1 {
        return Ok(Then::Next);
    }
    let unknown = Val::Unknown(Why::Loaded(line));
    if matches!(address, Val::Unknown(Why::Word(..))) && leads(step) {
        return step.abstain(format!("an address that depends on {}", step.warp.reason(address)));
    }
    if loose(step, false, None, address)? {
        dst.iter().for_each(|r| step.set(*r, unknown.clone()));
        return Ok(Then::Next);
    }
    let Place::In(mem, at) = step.place(access.space, address)? else {
        dst.iter().for_each(|r| step.set(*r, unknown.clone()));
        return Ok(Then::Next);
    };
    let decides = dst.iter().any(|r| step.matters(*r));
    let pc = step.state.pc;
    if decides
        && let (Mem::Shared(cta), Some(one)) = (mem, at.one(step.mask))
        && let Some(then) = load_answer(step, access, dst, (cta, one))?
    {
        return Ok(then);
    }
    if decides
        && let (Mem::Shared(cta), Some(one)) = (mem, at.one(step.mask))
        && let Some(then) = load_word(step, access, dst, (cta, one))?
    {
        return Ok(then);
    }
    step.warp.out.course.word(pc, None);
    let bytes = access.bytes(step)?;
    data(step, false, mem, &at, bytes)?;
    let words = if decides { told(step, access, dst.len(), (mem, &at)) } else { Vec::new() };
    for (n, r) in dst.iter().enumerate() {
        let value = words.get(n).cloned().unwrap_or_else(|| unknown.clone());
        let value = cut(step, *r, value);
        step.set(*r, value);
    }
    Ok(Then::Next)
}

/// Loads an answer of `clusterlaunchcontrol.try_cancel`, that of the last phase that this warp has waited for. `None` if it is none.
fn load_answer(
    step: &mut Executing<'_, '_>,
    access: &Access,
    dst: &[Reg],
    (cta, at): (u32, u64),
) -> Result<Option<Then>, Refusal> {
    // Parts of 32 bits may be looked at without `query_cancel`: what they hold is not known.
    let Some(mbarrier) = step.round().heap.told_by(cta, at).filter(|_| access.ty.bytes() >= 8) else {
        return Ok(None);
    };
    if step.round().plan.is_some() {
        return step.abstain("an answer of `clusterlaunchcontrol` in a launch of any size");
    }
    let bytes = access.bytes(step)?;
    let here = |w: &&(usize, u32, u64)| (w.1, w.2) == (cta, mbarrier);
    let mut waits: BTreeMap<usize, usize> = BTreeMap::new();
    step.state.waited.iter().filter(here).for_each(|w| *waits.entry(w.0).or_default() += 1);
    // Who does not wait itself reads one answer after the other.
    let read = step.state.answers.entry((step.state.pc, at)).or_default();
    let last = waits.into_values().max().map_or(*read, |n| n - 1);
    *read += 1;
    let Some(n) = step.round().heap.answer(cta, at, last) else {
        step.warp.out.starved = step.warp.out.starved.or(Some(step.line()));
        return Ok(Some(Then::End));
    };
    let answer = answer(step, n);
    step.warp.out.course.word(step.state.pc, None);
    data(step, false, Mem::Shared(cta), &Lanes::Same(at), bytes)?;
    // The number stands in the first register; the others have nothing of it.
    for (i, reg) in dst.iter().enumerate() {
        step.set(*reg, Val::same(if i == 0 { answer } else { 0 }));
    }
    Ok(Some(Then::Next))
}

/// Loads words that decide something, with one way for each value. `None` if they may hold any value.
fn load_word(
    step: &mut Executing<'_, '_>,
    access: &Access,
    dst: &[Reg],
    (cta, at): (u32, u64),
) -> Result<Option<Then>, Refusal> {
    let line = step.line();
    let bytes = access.ty.bytes();
    let mut ways = vec![(None, step.state.clone())];
    let starts: Vec<u32> = (0..dst.len() as u64)
        .map(|i| step.shared_offset(at + u64::from(bytes) * i))
        .collect::<Result<_, _>>()?;
    let flag = flag(step, dst, cta, &starts, bytes);
    for (i, reg) in dst.iter().enumerate() {
        if !step.matters(*reg) {
            continue;
        }
        let start = starts[i];
        step.warp.out.wanted.insert((cta, start, start.saturating_add(bytes)));
        let contents = step.round().heap.contents(cta, start, bytes);
        heard(step, (cta, start, bytes));
        let known = contents.iter().all(|content| matches!(content, Content::Known(_)));
        let lines = known.then(|| step.round().heap.lines(cta, start, bytes));
        let pc = step.state.pc;
        step.warp.out.course.word(pc, lines);
        if contents.is_empty() {
            step.warp.out.starved = step.warp.out.starved.or((!step.round().unset).then_some(line));
            return Ok((!step.round().unset).then_some(Then::End));
        }
        let alone = contents.len() == 1;
        // The exploration finds out whether the word holds the allocation or other data.
        let allocated = contents.contains(&Content::Allocation);
        let contents = if allocated { [Content::Allocation].into() } else { contents };
        let data = contents.contains(&Content::Opaque);
        // Addresses are not told from each other, nor from numbers.
        let address = contents.iter().any(|c| matches!(c, Content::Address(..)));
        let lacking = contents.iter().any(|c| matches!(c, Content::Word(_)));
        if lacking || address && contents.len() > 1 {
            return Ok(None);
        }
        // Only data of four bytes and more is told from numbers.
        let told = bytes >= 4 && step.steers();
        let held = contents.contains(&Content::Held) && (!data || told);
        let loose = flag.is_some_and(|flag| flag != i) && !held && (data || contents.len() > 1);
        if !loose && (!held && (data || contents.len() > WAYS) || ways.len() > 1) {
            return Ok(None);
        }
        let word = step.slot(2 * i)?;
        step.warp.allocates(word, (allocated && alone).then_some(0));
        let touch = Touch::one(Mem::Shared(cta), u64::from(start), bytes, Kind::Word);
        let space = if cta == step.warp.here.cta { Space::SharedCta } else { Space::SharedCluster };
        let addr = Address { base: Operand::Imm(0), offset: 0 };
        let ty = step.untyped(access.ty)?;
        let order = LoadOrder::Weak;
        let op = Op::Load { order, proxy: Proxy::Generic, space, ty, dst: vec![word], addr };
        step.emit(Item::Op { op: Box::new(op), touches: vec![touch] })?;
        if loose {
            let unknown = Val::Unknown(Why::Loaded(line));
            ways.iter_mut().for_each(|(_, state)| step.warp.set(state, *reg, unknown.clone(), step.mask));
            continue;
        }
        if held && data {
            trap(step, (word, ty))?;
        }
        if held {
            // The exploration knows the number.
            let value = Val::Based(Base::Register(word.0), Lanes::Same(0));
            for (_, state) in &mut ways {
                state.numbers.remove(&word.0);
                step.warp.set(state, *reg, value.clone(), step.mask);
            }
            continue;
        }
        ways = choose(step, ways, *reg, word, ty, &contents)?;
    }
    Ok(gone(step, ways))
}

/// One way goes on as it is.
fn gone(step: &mut Executing<'_, '_>, mut ways: Vec<(Option<Reg>, State)>) -> Option<Then> {
    match ways.pop()? {
        (_, last) if ways.is_empty() => {
            *step.state = last;
            Some(Then::Next)
        }
        last => {
            ways.push(last);
            Some(Then::Ways(ways))
        }
    }
}

/// The element of a vector that says whether there is more work: the last one that is 0 or 1, where others have several values, too,
/// such as the coordinates of a tile. The run splits for it alone, and the others are unknown.
fn flag(step: &Executing<'_, '_>, dst: &[Reg], cta: u32, starts: &[u32], bytes: u32) -> Option<usize> {
    let several = |(i, reg): (usize, &Reg)| {
        let contents = step.round().heap.contents(cta, starts[i], bytes);
        let open = contents.len() > 1 || contents.contains(&Content::Opaque);
        (open && step.matters(*reg)).then_some((i, contents))
    };
    let open: Vec<(usize, BTreeSet<Content>)> = dst.iter().enumerate().filter_map(several).collect();
    let truth = |all: &BTreeSet<Content>| all.iter().all(|c| matches!(c, Content::Known(0 | 1)));
    let last = open.iter().rev().find(|(_, contents)| truth(contents))?;
    (open.len() > 1).then_some(last.0)
}

/// Leaves a mistake behind where a word has other data than the number that one lane hands on: a store that nothing orders with
/// that of the thread that sets choices. A launch in which it happens is not decided.
fn trap(step: &mut Executing<'_, '_>, (word, ty): (Reg, Ty)) -> Result<(), Refusal> {
    let q = step.slot(STRANGE)?;
    let (a, b) = (Operand::Reg(word), Operand::Imm(strange(ty)));
    step.leave_op(Op::Setp { op: CmpOp::Eq, ty, dst: q, a, b })?;
    let (other, on) = (step.warp.fresh(), step.warp.fresh());
    step.emit(Item::Branch { reg: q, to: other })?;
    step.emit(Item::Jump(on))?;
    step.emit(Item::Label(other))?;
    let touch = Touch::one(Mem::Choice(step.warp.out.warp, TRAP), 0, 4, Kind::Word);
    let addr = Address { base: Operand::Imm(0), offset: 0 };
    let (order, proxy, space, src) = (StoreOrder::Weak, Proxy::Generic, Space::Global, vec![Operand::Imm(0)]);
    let op = Op::Store { order, proxy, space, ty: Ty::U(32), addr, src };
    step.emit(Item::Op { op: Box::new(op), touches: vec![touch] })?;
    step.emit(Item::Label(on))
}

fn choose(
    step: &mut Executing<'_, '_>,
    ways: Vec<(Option<Reg>, State)>,
    reg: Reg,
    word: Reg,
    ty: Ty,
    contents: &BTreeSet<Content>,
) -> Result<Vec<(Option<Reg>, State)>, Refusal> {
    let mut out = Vec::new();
    let Some((_, base)) = ways.into_iter().next() else { return Ok(out) };
    let last = contents.len() - 1;
    for (n, content) in contents.iter().enumerate() {
        let mut next = base.clone();
        let value = match content {
            Content::Known(v) => Val::same(*v),
            Content::Address(base, at) => Val::Based(*base, Lanes::Same(*at)),
            Content::Allocation | Content::Held | Content::Word(_) | Content::Opaque => {
                Val::Based(Base::Register(word.0), Lanes::Same(0))
            }
        };
        step.warp.set(&mut next, reg, value, step.mask);
        let mut test = None;
        if n < last
            && let Content::Known(v) = content
        {
            let q = step.slot(1_000 + n)?;
            let op = Op::Setp {
                op: CmpOp::Eq,
                ty,
                dst: q,
                a: Operand::Reg(word),
                b: Operand::Imm(i128::from(*v)),
            };
            step.leave_op(op)?;
            test = Some(q);
        }
        out.push((test, next));
    }
    Ok(out)
}

/// Runs a store. `regs` has the register of each value that is in one.
pub(super) fn store(
    step: &mut Executing<'_, '_>,
    access: &Access,
    (values, regs): (&[Val], &[Option<Reg>]),
    address: &Val,
) -> Result<(), Refusal> {
    if access.strong {
        return step.abstain("a store with this combination of qualifiers");
    }
    let mask = step.mask;
    for lanes in step.by_rank(access.space, address) {
        step.mask = lanes;
        stored(step, access, (values, regs), address)?;
    }
    step.mask = mask;
    Ok(())
}

/// Runs a store of lanes that name the shared memory of one CTA, or other memory.
fn stored(
    step: &mut Executing<'_, '_>,
    access: &Access,
    (values, regs): (&[Val], &[Option<Reg>]),
    address: &Val,
) -> Result<(), Refusal> {
    let ticket = ticketed(step, u64::from(access.bytes(step)?), address);
    if loose(step, true, ticket, address)? {
        return Ok(());
    }
    let Place::In(mem, at) = step.place(access.space, address)? else { return Ok(()) };
    let line = step.line();
    let whole = access.bytes(step)?;
    if !matches!(mem, Mem::Shared(_)) && lanes(step.mask).any(|l| asked(step, mem, at.get(l), whole)) {
        return store_asked(step, access, values, (mem, &at));
    }
    let bytes = access.ty.bytes();
    let numbers = one_value(step, values, &at, bytes);
    let (Mem::Shared(cta), Some(one)) = (mem, at.one(step.mask)) else {
        let several = step.mask.count_ones() > 1;
        let agreed = numbers.filter(|_| several && step.relies(Practice::OneValue));
        let manner = agreed.map_or_else(|| unknown(step, (values, regs), &at, whole), Manner::Agreed);
        return moved(step, (true, manner), mem, &at, whole);
    };
    let mut several = step.mask.count_ones() > 1;
    let mut words = Vec::new();
    for (i, value) in (0u32..).zip(values) {
        let start = step.shared_offset(one + u64::from(bytes * i))?;
        let content = match value {
            Val::Known(l) if bytes <= 8 => l.one(step.mask).map_or(Content::Opaque, Content::Known),
            Val::Unknown(Why::Word(n, at)) if bytes <= 8 => Content::Word((*n, *at)),
            Val::Based(base @ (Base::Param(_) | Base::Variable(_)), l) if bytes == 8 => {
                l.one(step.mask).map_or(Content::Opaque, |at| Content::Address(*base, at))
            }
            // What one lane hands on, such as what its atomic operation has read.
            Val::Based(Base::Register(_), _) if matches!(bytes, 4 | 8) && step.mask.is_power_of_two() => {
                Content::Held
            }
            _ => Content::Opaque,
        };
        let stored = Stored { cta, at: start, bytes, content, line };
        several |= step.round().heap.repeated(&stored, step.warp.out.warp);
        tell(step, (cta, start, bytes));
        step.warp.out.stores.push(stored);
        words.push((start, content));
    }
    let alike = || numbers_of_all(step, (values, regs), (cta, one, bytes));
    let (numbers, several) = match numbers {
        Some(numbers) => (Some(numbers), several),
        None => (alike(), true),
    };
    let agreed = numbers.filter(|_| several && step.relies(Practice::OneValue));
    let data = words.iter().all(|w| w.1 == Content::Opaque);
    if data || !words.iter().any(|w| step.round().heap.wanted(cta, w.0, bytes)) {
        let by = Spread { at: Lanes::Same(one), bytes: u64::from(whole), mask: step.mask };
        let touch = Touch::spread(mem, Kind::Data, vec![by]);
        let manner = agreed.map_or_else(|| unknown(step, (values, regs), &at, whole), Manner::Agreed);
        return step.emit(Item::Data { write: true, manner, touch });
    }
    for (n, (start, content)) in words.into_iter().enumerate() {
        let kind = if agreed.is_some() { Kind::Agreed } else { Kind::Word };
        let touch = Touch::one(mem, u64::from(start), bytes, kind);
        let ty = step.untyped(access.ty)?;
        let value = match content {
            Content::Known(v) => Operand::Imm(i128::from(v)),
            Content::Held => operand_left(step, &values[n], ty, HANDED + n)?.unwrap_or(Operand::Imm(0)),
            Content::Address(..) | Content::Allocation | Content::Word(_) | Content::Opaque => {
                Operand::Imm(strange(ty))
            }
        };
        let space = if cta == step.warp.here.cta { Space::SharedCta } else { Space::SharedCluster };
        let order = if agreed.is_some() { StoreOrder::Relaxed(AGREED) } else { StoreOrder::Weak };
        let addr = Address { base: Operand::Imm(0), offset: 0 };
        let src = vec![value];
        let op = Op::Store { order, proxy: Proxy::Generic, space, ty, addr, src };
        step.emit(Item::Op { op: Box::new(op), touches: vec![touch] })?;
    }
    Ok(())
}

/// The numbers that a store writes, if all lanes write the same to the same address.
fn one_value(step: &Executing<'_, '_>, values: &[Val], at: &Lanes, bytes: u32) -> Option<Vec<i128>> {
    at.one(step.mask).filter(|_| bytes <= 8)?;
    let one = |value: &Val| value.known()?.one(step.mask).map(i128::from);
    values.iter().map(one).collect()
}

/// What stands for the numbers of a store that are not known, if other warps of the CTA store there by the same line, and all of
/// them surely store the same, once.
fn numbers_of_all(
    step: &Executing<'_, '_>,
    (values, regs): (&[Val], &[Option<Reg>]),
    (cta, at, bytes): (u32, u64, u32),
) -> Option<Vec<i128>> {
    let (round, line) = (step.round(), step.line());
    let once = round.kernel.flow().around[step.state.pc].is_empty() && step.mask == u32::MAX;
    let stored = Stored { cta, at: u32::try_from(at).ok()?, bytes, content: Content::Opaque, line };
    let others = round.heap.others(&stored, step.warp.out.warp);
    if !round.launch.is_flat()
        || !once
        || others.is_empty()
        || others.iter().any(|w| w >> 8 != step.warp.here.cta)
    {
        return None;
    }
    let equal = round.kernel.equal(true);
    let thread = |warp: u32, lane: usize| (warp & 0xff) as usize * 32 + lane;
    let own = step.warp.out.warp;
    let all = || others.iter().copied().chain([own]).flat_map(|w| lanes(u32::MAX).map(move |l| thread(w, l)));
    let first = thread(own, 0);
    let same = |(value, reg): (&Val, &Option<Reg>)| match value {
        Val::Known(_) => false,
        _ => reg.is_some_and(|r| all().all(|t| equal.same(r, first, t))),
    };
    let alike = values.iter().zip(regs).all(same);
    alike.then(|| vec![strange(Ty::U(32)) ^ i128::from(line); values.len()])
}

/// How numbers are stored that are not known: whether lanes that write one byte surely write the same.
fn unknown(step: &mut Executing<'_, '_>, of: (&[Val], &[Option<Reg>]), at: &Lanes, bytes: u32) -> Manner {
    let meet = |a: usize, b: usize| at.get(a).abs_diff(at.get(b)) < u64::from(bytes);
    let pairs =
        || lanes(step.mask).flat_map(|a| lanes(step.mask).filter(move |b| a < *b).map(move |b| (a, b)));
    let mut meeting = pairs().filter(|(a, b)| meet(*a, *b)).peekable();
    let together = step.mask == step.warp.here.lanes && meeting.peek().is_some();
    let same = |(a, b): (usize, usize)| at.get(a) == at.get(b) && holds_same(step, of, (a, b));
    match together && meeting.all(same) && step.relies(Practice::OneValue) {
        true => Manner::Same(step.warp.out.items.len()),
        false => Manner::Weak,
    }
}

/// Whether two lanes surely have the same values.
fn holds_same(
    step: &Executing<'_, '_>,
    (values, regs): (&[Val], &[Option<Reg>]),
    (a, b): (usize, usize),
) -> bool {
    let round = step.round();
    let equal = || round.kernel.equal(round.launch.is_flat());
    let one = |(value, reg): (&Val, &Option<Reg>)| match value {
        Val::Known(l) => l.get(a) == l.get(b),
        _ => reg.is_some_and(|r| equal().same(r, a, b)),
    };
    values.iter().zip(regs).all(one)
}

fn asked(step: &Executing<'_, '_>, mem: Mem, at: u64, bytes: u32) -> bool {
    step.round().heap.asked(mem, at, at.saturating_add(u64::from(bytes)))
}

/// Stores to a word of global memory that some ordered access touches.
fn store_asked(
    step: &mut Executing<'_, '_>,
    access: &Access,
    values: &[Val],
    (mem, at): (Mem, &Lanes),
) -> Result<(), Refusal> {
    let Some(one) = at.one(step.mask) else {
        return step.abstain("a store of several lanes to a word that is loaded with an order");
    };
    let mut src = Vec::new();
    for (n, value) in (0u64..).zip(values) {
        let known = step.operand_of(value);
        let bytes = access.ty.bytes();
        let start = one.saturating_add(n * u64::from(bytes));
        let place = (mem, start, start.saturating_add(u64::from(bytes)));
        match known {
            None => drop(step.warp.out.opaque.insert(place)),
            Some(operand) => drop(step.warp.out.numbers.insert((place, number(operand, bytes)))),
        }
        src.push(known.unwrap_or(Operand::Imm(0)));
    }
    let touch = Touch::one(mem, one, access.bytes(step)?, Kind::Word);
    let addr = Address { base: Operand::Imm(0), offset: 0 };
    let (order, proxy, space, ty) = (StoreOrder::Weak, Proxy::Generic, Space::Global, access.ty);
    let op = Op::Store { order, proxy, space, ty, addr, src };
    step.emit(Item::Op { op: Box::new(op), touches: vec![touch] })
}

/// Runs an access whose address data decides: one somewhere in its memory. Of a weak one it is not known whether it meets
/// another one of that kind, and of one in a CTA of the cluster that is not followed whether it meets any. Whether there is such an
/// access.
pub(super) fn loose(
    step: &mut Executing<'_, '_>,
    write: bool,
    strong: Option<Scope>,
    address: &Val,
) -> Result<bool, Refusal> {
    let Some(region) = step.somewhere(address) else { return Ok(false) };
    let (line, ticket) = (step.line(), step.regions().tickets.contains_key(&step.state.pc));
    let any_peer = step.any_peer();
    if strong.is_none() || ticket || !any_peer {
        step.warp.out.loose.insert((line, region.0.cta().is_none() || !any_peer));
    }
    step.anywhere(address);
    for (mem, start, end) in step.peers(region) {
        let touch = Touch { mem, ranges: vec![(start, end)], kind: Kind::Data, by: Vec::new() };
        if write {
            step.overwritten(&touch)?;
            if mem.cta().is_none() && step.round().heap.asked(mem, start, end) {
                step.warp.out.opaque.insert((mem, start, end));
            }
        }
        step.warp.out.relaxed.extend((strong.is_some() && !ticket).then_some(mem));
        let manner = strong.map_or(Manner::Weak, Manner::Relaxed);
        step.emit(Item::Data { write, manner, touch })?;
    }
    Ok(true)
}

/// Whether a counter hands out the place of a weak store whose address data decides ([`crate::specialise::known::tickets`]): the
/// scope in which no two stores have one place. Such stores are relaxed ones, which do not race with each other.
fn ticketed(step: &mut Executing<'_, '_>, bytes: u64, address: &Val) -> Option<Scope> {
    let pc = step.state.pc;
    let (mem, ..) = step.somewhere(address)?;
    let found = step.regions().tickets.get(&pc).filter(|t| bytes <= t.scale)?.clone();
    let update = ticket_of(step, &found)?;
    let ticket = step.state.tickets.get_mut(&update)?;
    // Another store of shared numbers may give a lane the rank that a different one had.
    let fresh = found.own.is_some() || ticket.spent.is_empty();
    let (counter, fresh) = (ticket.counter, ticket.spent.insert(pc) && fresh);
    let handed = (counter, found.scale, found.more);
    step.warp.out.ticketed.insert((mem, handed));
    let alone = fresh && step.round().heap.hands_out(mem, handed);
    alone.then(|| {
        let line = step.line();
        step.note(format!("line {line} stores at places that a counter hands out: it does not wrap around"));
        if matches!(counter.0, Mem::Shared(_)) { Scope::Cta } else { Scope::Sys }
    })
}

/// The operation that has handed out the places of a store by these lanes, no two of them the same.
fn ticket_of(step: &Executing<'_, '_>, found: &Ticketed) -> Option<usize> {
    let (mask, tickets) = (step.mask, &step.state.tickets);
    if let Some(update) = found.own {
        return tickets.get(&update).filter(|t| mask & !t.lanes == 0).map(|_| update);
    }
    let value = |reg: Reg| step.value(Operand::Reg(reg));
    let of = |reg: Reg| match value(reg) {
        Val::Based(Base::Register(slot), Lanes::Same(0)) => {
            tickets.iter().find(|t| t.1.slot == Some(slot) && t.1.lanes.count_ones() == 1).map(|t| *t.0)
        }
        Val::Unknown(Why::Ticket { update, shared: true }) => Some(update),
        _ => None,
    };
    let (at, update) = found.terms.iter().enumerate().find_map(|(n, reg)| Some((n, of(*reg)?)))?;
    if let Some(rank) =
        found.rank.as_ref().filter(|r| r.ticket == found.terms[at] && r.updates.contains(&update))
    {
        let below = value(rank.below);
        let all = below.known().is_some_and(|m| lanes(mask).all(|l| m.get(l) & 0xffff_ffff == (1 << l) - 1));
        return all.then_some(update);
    }
    let count = tickets.get(&update)?.count?;
    let rank = found.terms.iter().enumerate().find(|(n, _)| *n != at).map(|(_, reg)| value(*reg));
    let rank = rank.unwrap_or_else(|| Val::same(0));
    let ranks: BTreeSet<u64> = lanes(mask).filter_map(|l| Some(rank.known()?.get(l) & 0xffff_ffff)).collect();
    let apart = ranks.len() == mask.count_ones() as usize && ranks.last().is_some_and(|r| *r < count);
    apart.then_some(update)
}

/// Reads or writes this many bytes of data at the address of each lane.
pub(super) fn data(
    step: &mut Executing<'_, '_>,
    write: bool,
    mem: Mem,
    at: &Lanes,
    bytes: u32,
) -> Result<(), Refusal> {
    moved(step, (write, Manner::Weak), mem, at, bytes)
}

/// Reads or writes this many bytes of data at the address of each lane, in some manner.
pub(super) fn moved(
    step: &mut Executing<'_, '_>,
    (write, manner): (bool, Manner),
    mem: Mem,
    at: &Lanes,
    bytes: u32,
) -> Result<(), Refusal> {
    let by = Spread { at: at.clone(), bytes: u64::from(bytes), mask: step.mask };
    let touch = Touch::spread(mem, Kind::Data, vec![by]);
    step.warp.out.relaxed.extend(matches!(manner, Manner::Relaxed(_)).then_some(mem));
    if write {
        step.overwritten(&touch)?;
        let followed = |start, end| manner.is_strong() || step.round().heap.asked(mem, start, end);
        let ranges = touch.ranges.iter().filter(|(start, end)| followed(*start, *end));
        if touch.mem.cta().is_none() {
            let opaque: Vec<_> = ranges.map(|(start, end)| (mem, *start, *end)).collect();
            step.warp.out.opaque.extend(opaque);
        }
    }
    step.emit(Item::Data { write, manner, touch })
}
