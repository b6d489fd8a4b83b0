//! Exchanges between lanes. Kernels compute these before a program is made of them.

use super::parts::{element, register, value};
use crate::ir::{AtomOp, Collective, Control, Exchange, Op, Operand, Reg, Shuffle, Ty, Vote as Asked};
use moire_isa::kinds::{Abs, MatchForm, MatchTy, NaN, ReduxOp, ReduxTy, ShflMode, VoteMode};
use moire_isa::operand::Answer;
use moire_isa::{Match, Redux, Shfl, Value, Vote};

fn exchange(
    form: Exchange,
    (dst, pred): (Reg, Option<Reg>),
    (src, negated): (Operand, bool),
    from: [Operand; 2],
    mask: &Value,
) -> Option<Op> {
    let mask = value(mask)?;
    Some(Op::Control(Control::Collective(Collective { form, dst, pred, src, negated, from, mask })))
}

/// No lane is named.
const NONE: [Operand; 2] = [Operand::Imm(0); 2];

/// The registers of an answer. None for a sink, which litmus texts do not have there.
fn results(of: &Answer) -> Option<(Reg, Option<Reg>)> {
    let second = match of.second {
        Some(second) => Some(register(&second?)?),
        None => None,
    };
    Some((register(&of.first?)?, second))
}

pub(super) fn shuffled(shfl: &Shfl) -> Option<Op> {
    let Shfl { mode, dst, a, b, c, mask, spelling: _ } = shfl;
    let form = match mode {
        ShflMode::Up => Shuffle::Up,
        ShflMode::Down => Shuffle::Down,
        ShflMode::Bfly => Shuffle::Butterfly,
        ShflMode::Idx => Shuffle::Index,
    };
    let from = [value(b)?, value(c)?];
    exchange(Exchange::Shuffle(form), results(dst)?, (value(a)?, false), from, mask)
}

pub(super) fn voted(vote: &Vote) -> Option<Op> {
    let Vote { mode, ty: _, dst, a, mask, spelling: _ } = vote;
    let form = match mode {
        VoteMode::All => Asked::All,
        VoteMode::Any => Asked::Any,
        VoteMode::Uni => Asked::Uni,
        VoteMode::Ballot => Asked::Ballot,
    };
    let source = (Operand::Reg(element(&a.value)?), a.negated);
    exchange(Exchange::Vote(form), (register(dst)?, None), source, NONE, mask)
}

pub(super) fn matched(i: &Match) -> Option<Op> {
    let Match { form, ty: MatchTy::B32, dst, a, mask, spelling: _ } = i else { return None };
    let form = match form {
        MatchForm::Any => Exchange::MatchAny,
        MatchForm::All => Exchange::MatchAll,
    };
    exchange(form, results(dst)?, (value(a)?, false), NONE, mask)
}

pub(super) fn combined(redux: &Redux) -> Option<Op> {
    let Redux { op, abs: Abs::No, nan: NaN::No, ty, dst, a, mask, spelling: _ } = redux else { return None };
    let ty = match ty {
        ReduxTy::B32 => Ty::B(32),
        ReduxTy::U32 => Ty::U(32),
        ReduxTy::S32 => Ty::S(32),
        ReduxTy::F32 => return None,
    };
    let op = match op {
        ReduxOp::Add => AtomOp::Add,
        ReduxOp::Min => AtomOp::Min,
        ReduxOp::Max => AtomOp::Max,
        ReduxOp::And => AtomOp::And,
        ReduxOp::Or => AtomOp::Or,
        ReduxOp::Xor => AtomOp::Xor,
    };
    exchange(Exchange::Reduce(op, ty), (register(dst)?, None), (value(a)?, false), NONE, mask)
}
