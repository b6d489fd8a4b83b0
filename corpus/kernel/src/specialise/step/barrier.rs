//! Runs barriers of a CTA, with and without predicates, and mbarriers.
//!
//! PTX ISA 9.2, 9.7.13.1 and 9.7.13.15.

use super::{Executing, Made, Then};
use crate::Refusal;
use crate::specialise::known::value::{Base, Lanes, Val};
use crate::specialise::practice::Practice;
use crate::specialise::touch::Kind;
use moire_program::ir::*;

/// Runs `bar` and `barrier`. The run splits on the answer of `red.and` and `red.or`.
pub(super) fn bar(step: &mut Executing<'_, '_>, op: Op) -> Result<Then, Refusal> {
    if let Op::Bar { kind, count, .. } = &op
        && *kind != BarKind::Arrive
    {
        let all: u32 = step.round().launch.block.iter().product();
        step.state.behind.wait(count.is_none_or(|c| c == Operand::Imm(i128::from(all))));
    }
    let Op::Bar { kind: BarKind::Red { op: how, dst, pred }, id, count, instance } = op else {
        return step.leave(op, Made::default());
    };
    let value = &step.state.env[pred.reg.index()];
    let Val::Known(known) = value else {
        return step.abstain(format!("bar.red of a predicate that depends on {}", step.warp.reason(value)));
    };
    let truth = if pred.negated { step.mask & !known.truth(step.mask) } else { known.truth(step.mask) };
    let holds = match how {
        BarRed::And => truth == step.mask,
        BarRed::Or => truth != 0,
        BarRed::Popc if truth == 0 || truth == step.mask => truth != 0,
        BarRed::Popc => {
            return step.abstain("bar.red.popc of a predicate that differs among the lanes of a warp");
        }
    };
    let (p, q) = (step.slot(1)?, step.slot(0)?);
    let (a, b) = (Operand::Imm(i128::from(holds)), Operand::Imm(1));
    let set = Op::Setp { op: CmpOp::Eq, ty: Ty::U(32), dst: p, a, b };
    step.leave_op(set)?;
    let kind = BarKind::Red { op: how, dst: q, pred: Guard { reg: p, negated: false } };
    step.leave(Op::Bar { kind, id, count, instance }, Made::default())?;
    if !step.matters(dst) {
        return Ok(Then::Next);
    }
    if how != BarRed::Popc {
        return Ok(step.both(q, &[dst]));
    }
    step.set(dst, Val::Based(Base::Register(q.0), Lanes::Same(0)));
    Ok(Then::Next)
}

pub(super) fn mbarrier(step: &mut Executing<'_, '_>, m: &Mbarrier) -> Result<Then, Refusal> {
    let address = step.address(&m.addr);
    let groups = step.alike(&address);
    if groups.len() > 1 && m.dst().is_none_or(|dst| !step.matters(dst)) {
        // Lanes with mbarriers of their own.
        groups.into_iter().try_for_each(|lanes| mbarrier(&mut step.only(lanes), m).map(drop))?;
        return Ok(Then::Next);
    }
    let several = step.mask.count_ones() > 1 && matches!(m.op, MbarrierOp::Init { .. });
    if several && step.relies(Practice::OneValue) {
        let first = step.mask & step.mask.wrapping_neg();
        return mbarrier(&mut step.only(first), m);
    }
    let touch = step.shared(m.space, &address, MBARRIER_BYTES, Kind::Barrier)?;
    let mut new = m.clone();
    let mut made = Made::default();
    let place = touch.mem.cta().zip(touch.ranges.first().map(|r| r.0));
    new.addr = made.touch(touch);
    let mut failed = None;
    new.map_operands(&mut |o| {
        let value = step.value(o);
        match step.operand_of(&value) {
            Some(Operand::Imm(v)) => Operand::Imm(v & 0xffff_ffff),
            Some(reg) => reg,
            None => {
                failed = Some(value);
                Operand::Imm(0)
            }
        }
    });
    if let MbarrierOp::Wait(wait) = &mut new.op {
        wait.hint = None;
    }
    if let (MbarrierOp::Wait(wait), Some((cta, at))) = (&new.op, place) {
        let parity =
            if let (true, Operand::Imm(n)) = (wait.parity, wait.phase) { Some(n & 1 == 1) } else { None };
        let here = (step.state.pc, cta, at);
        step.warp.out.course.wait_for(step.state.pc, (cta, at), parity, step.state.waited.contains(&here));
        step.state.waited.push(here);
    }
    if let Some(value) = failed {
        return step.abstain(format!("an mbarrier operand that depends on {}", step.warp.reason(&value)));
    }
    let waits = matches!(m.op, MbarrierOp::Wait(_));
    let Some(dst) = m.dst().filter(|dst| waits || step.matters(*dst)) else {
        // An unused state is dropped.
        if let MbarrierOp::Arrive(arrive) = &mut new.op {
            arrive.dst = None;
        }
        return step.leave(Op::Mbarrier(new), made);
    };
    let slot = step.slot(0)?;
    new.dst_mut().into_iter().for_each(|d| *d = slot);
    step.leave(Op::Mbarrier(new), made)?;
    if waits && (step.round().plan.is_none() || step.round().kernel.flow().spins[step.state.pc]) {
        return Ok(step.both(slot, &[dst]));
    }
    step.set(dst, Val::Based(Base::Register(slot.0), Lanes::Same(0)));
    Ok(Then::Next)
}
