//! Collective instructions of a warp as events: `vote`, `shfl`, `match`, `redux` and `elect.sync` (PTX ISA 9.2, 9.7.9.6, 9.7.13.9
//! to 9.7.13.14). Each waits for the lanes of its mask that have not exited, orders nothing, and hands back what these lanes gave.
//!
//! A thread that is the only one of its warp that the mask names waits for nobody: it gets its answer at once, and there is no event.

use super::arith;
use super::barrier::{arrive, within};
use super::event::barrier::{BarrierObject, BarrierUse, Form, meet, names};
use super::event::deps::Deps;
use super::machine::Machine;
use super::trace::{RegState, TraceEnd, View};
use moire_execution::leaf::{arithmetic, truncate};
use moire_program::ir::*;

/// Set in an answer: the second result, a predicate.
const PREDICATE: u32 = 32;
/// Set in an answer: it is the value of a lane that does not take part.
const NOBODY: u32 = 33;

/// What one thread gives: its lanes that take part, and how it uses the rendezvous.
pub(crate) type Gift = (u32, BarrierUse);

/// Whether another thread of the warp has lanes of the mask.
fn company<V: View>(m: &Machine<'_, V>, mask: u32) -> bool {
    let place = m.place();
    let other = |(t, thread): (usize, &Thread)| {
        let p = &thread.place;
        t != m.thread.index() && p.same_cta(place) && p.warp == place.warp && p.mask & mask != 0
    };
    place.mask != 0 && m.program.threads.iter().enumerate().any(other)
}

/// Whether an instruction touches nothing but registers of this thread.
pub(crate) fn only_registers<V: View>(m: &Machine<'_, V>, op: &Op) -> bool {
    let waits = |mask: Operand| m.operand(mask).value.is_none_or(|mask| company(m, low(mask)));
    moire_program::registers::only_registers(op)
        && !matches!(op, Op::Control(Control::Elect { mask, .. }) if waits(*mask))
}

fn low(value: Value) -> u32 {
    u32::try_from(truncate(value, 32)).expect("32 bits are left")
}

/// Waits for the other threads of the warp that have such an instruction, which the whole warp executes (`.sync.aligned`).
pub(crate) fn aligned<V: View>(
    m: &mut Machine<'_, V>,
    name: &'static str,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let object = BarrierObject::Collective { form: Form::Aligned(name), mask: u32::MAX };
    let (own, place) = (m.thread, m.place());
    let other = |t: &usize| {
        let t = ThreadId::at(*t);
        t != own && meet(m.program, &object, own, t) && names(m.program, &object, t)
    };
    if place.mask == 0 || !(0..m.program.threads.len()).any(|t| other(&t)) {
        return Ok(());
    }
    arrive(m, instr, pc, (BarrierUse { object, ..used_by_all() }, Deps::NONE, false))?;
    m.unit += 1;
    Ok(())
}

/// A rendezvous without values.
fn used_by_all() -> BarrierUse {
    let object = BarrierObject::Cluster;
    BarrierUse { object, count: None, arrives: true, waits: true, votes: 0, given: 0, from: [0; 2] }
}

/// Executes a collective instruction.
pub(crate) fn collective<V: View>(m: &mut Machine<'_, V>, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
    let (used, mask, deps) = used(m, instr)?;
    let answer = match within(m, mask, instr.line) && company(m, mask) {
        true => arrive(m, instr, pc, (used, deps, false))?.unwrap_or(0),
        false => result(m.lanes.active.trailing_zeros(), &used, &[(m.lanes.active, used)]),
    };
    if answer >> NOBODY & 1 == 1 && m.lanes.active & mask != 0 {
        return Err(m.wrong(instr, "a shuffle from a lane that does not take part"));
    }
    hand_back(m, &instr.op, answer, deps);
    Ok(())
}

/// Puts an answer into the registers of the active lanes.
fn hand_back<V: View>(m: &mut Machine<'_, V>, op: &Op, answer: Value, deps: Deps) {
    let first = Value::from(m.lanes.looked_at());
    let mut set = |reg: Reg, value: Value| {
        m.regs[reg.index()] = RegState { value: Some(value), deps };
        m.lanes.set(reg);
    };
    if let Op::Control(Control::Collective(c)) = op {
        set(c.dst, truncate(answer, 32));
        c.pred.iter().for_each(|pred| set(*pred, answer >> PREDICATE & 1));
    } else if let Op::Control(Control::Elect { dst, pred, .. }) = op {
        dst.iter().for_each(|dst| set(*dst, answer));
        set(*pred, Value::from(first == answer));
        if m.lanes.count() > 1 {
            let chosen = std::array::from_fn(|lane| Value::from(lane as Value == answer));
            m.lanes.spread.insert(*pred, Box::new(chosen));
        }
    }
}

/// How the instruction uses its rendezvous, its mask, and what that depends on.
fn used<V: View>(m: &Machine<'_, V>, instr: &Instr) -> Result<(BarrierUse, u32, Deps), TraceEnd> {
    let mut all = Deps::NONE;
    let mut known = |o: Operand| {
        let state = m.operand(o);
        all = all.with(state.deps);
        state.value.map(low).ok_or(TraceEnd::Pending(state.deps))
    };
    let mut used = used_by_all();
    let (form, mask) = if let Op::Control(Control::Elect { mask, .. }) = &instr.op {
        (Form::Elect, known(*mask)?)
    } else if let Op::Control(Control::Collective(c)) = &instr.op {
        used.given = known(c.src)?;
        used.from = [known(c.from[0])?, known(c.from[1])?];
        used.votes = votes(m, c);
        (Form::Exchange(c.form), known(c.mask)?)
    } else {
        return Err(m.wrong(instr, "this exchange"));
    };
    used.object = BarrierObject::Collective { form, mask };
    several(m, instr, &used)?;
    Ok((used, mask, all))
}

/// The active lanes whose predicate holds.
fn votes<V: View>(m: &Machine<'_, V>, c: &Collective) -> u32 {
    let Operand::Reg(reg) = c.src else { return 0 };
    let holds = |lane: &u32| {
        let own = m.lanes.spread.get(&reg).map(|s| s[*lane as usize]);
        own.or(m.regs[reg.index()].value).is_some_and(|v| (v != 0) != c.negated)
    };
    (0..32).filter(|lane| m.lanes.active >> lane & 1 == 1 && holds(lane)).fold(0, |all, lane| all | 1 << lane)
}

/// Abstains where the lanes of this thread give, or get, different values.
fn several<V: View>(m: &Machine<'_, V>, instr: &Instr, used: &BarrierUse) -> Result<(), TraceEnd> {
    if m.lanes.count() == 1 {
        return Ok(());
    }
    let alike = match used.object {
        BarrierObject::Collective { form: Form::Exchange(Exchange::Vote(_)), .. } => return Ok(()),
        BarrierObject::Collective { form: Form::Exchange(form), .. } => match form {
            Exchange::Shuffle(way) => way == Shuffle::Index && used.from[1] >> 8 & 31 == 0,
            other => other != Exchange::MatchAny,
        },
        _ => true,
    };
    match alike {
        true => arith::agreed(m, instr),
        false => Err(m.wrong(instr, "an exchange whose result differs among the lanes of the thread")),
    }
}

/// What a lane gets, of those who take part.
pub(crate) fn result(lane: u32, own: &BarrierUse, gifts: &[Gift]) -> Value {
    let BarrierObject::Collective { form, mask } = own.object else { return 0 };
    let here = gifts.iter().fold(0, |all, (lanes, _)| all | lanes) & mask;
    let votes = gifts.iter().fold(0, |all, (lanes, gift)| all | gift.votes & lanes) & mask;
    let of = |lane: u32| gifts.iter().find(|(lanes, _)| lanes >> lane & 1 == 1).map(|(_, gift)| gift.given);
    let mut given = (0..32u32).filter(|l| here >> l & 1 == 1).filter_map(of);
    let same = |value: &u32| *value == own.given;
    match form {
        Form::Aligned(_) => 0,
        Form::Elect => Value::from(here.trailing_zeros()),
        Form::Exchange(Exchange::Vote(vote)) => Value::from(match vote {
            Vote::All => u32::from(votes == here),
            Vote::Any => u32::from(votes != 0),
            Vote::Uni => u32::from(votes == here || votes == 0),
            Vote::Ballot => votes,
        }),
        Form::Exchange(Exchange::Shuffle(way)) => shuffled(way, lane, own.from, |j| {
            let takes_part = here >> j & 1 == 1;
            of(j).filter(|_| takes_part)
        }),
        Form::Exchange(Exchange::MatchAny) => {
            let alike = (0..32u32).filter(|l| here >> l & 1 == 1 && of(*l).as_ref().is_some_and(same));
            alike.fold(0, |all, l| all | 1 << l)
        }
        Form::Exchange(Exchange::MatchAll) => match given.all(|v| same(&v)) {
            true => Value::from(here) | 1 << PREDICATE,
            false => 0,
        },
        Form::Exchange(Exchange::Reduce(op, ty)) => {
            given.map(Value::from).reduce(|a, b| reduced(op, ty, a, b)).unwrap_or(0)
        }
    }
}

/// `shfl.sync`, by the pseudo code of its page.
fn shuffled(way: Shuffle, lane: u32, [by, clamp]: [u32; 2], of: impl Fn(u32) -> Option<u32>) -> Value {
    let (by, most, segment) = (by & 31, clamp & 31, clamp >> 8 & 31);
    let (first, last) = (lane & segment, lane & segment | most & !segment);
    let (j, inside) = match way {
        Shuffle::Up => (lane.wrapping_sub(by), lane >= by && lane - by >= last),
        Shuffle::Down => (lane + by, lane + by <= last),
        Shuffle::Butterfly => (lane ^ by, lane ^ by <= last),
        Shuffle::Index => (first | by & !segment, first | by & !segment <= last),
    };
    let value = of(if inside { j } else { lane });
    let nobody = Value::from(value.is_none()) << NOBODY;
    Value::from(value.unwrap_or(0)) | Value::from(inside) << PREDICATE | nobody
}

fn reduced(op: AtomOp, ty: Ty, a: Value, b: Value) -> Value {
    let op = match op {
        AtomOp::Min => AluOp::Min,
        AtomOp::Max => AluOp::Max,
        AtomOp::And => AluOp::And,
        AtomOp::Or => AluOp::Or,
        AtomOp::Xor => AluOp::Xor,
        _ => AluOp::Add,
    };
    arithmetic(op, ty, a, b)
}
