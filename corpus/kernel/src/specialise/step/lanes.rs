//! Evaluates exchanges between the lanes of a warp: shuffles, votes, matches, reductions.

use super::Executing;
use crate::ptx::Sum;
use crate::specialise::known::alu::{self, Int};
use crate::specialise::known::value::{Lanes, Val, Why, lanes};
use moire_isa::kinds::{BinaryForm, MatchForm, Num, ReduxOp, ReduxTy, ShflMode, VoteMode};
use moire_isa::{Redux, Shfl, Value, Vote};

pub(super) fn shuffled(step: &Executing<'_, '_>, shfl: &Shfl) -> Option<Vec<Val>> {
    let (given, known) = (step.read(&shfl.a), step.read(&shfl.b));
    let Val::Known(by) = known else { return None };
    let Val::Known(clamp) = step.read(&shfl.c) else { return None };
    let mode = shfl.mode;
    // The lane that the value comes from, and whether it is in range: otherwise the lane keeps its own.
    let source_of = |l: usize| -> (usize, bool) {
        let (b, c) = (by.get(l), clamp.get(l));
        let (segment, bound) = (c >> 8 & 31, c & 31);
        let lane = l as u64;
        let most = (lane & segment) | (bound & !segment & 31);
        let j = match mode {
            ShflMode::Idx => (lane & segment) | (b & !segment & 31),
            ShflMode::Bfly => lane ^ (b & 31),
            ShflMode::Down => lane + (b & 31),
            ShflMode::Up => lane.wrapping_sub(b & 31),
        };
        let inside = if mode == ShflMode::Up { j < 32 && j >= most } else { j <= most && j < 32 };
        (usize::try_from(j).ok().filter(|_| inside).unwrap_or(l), inside)
    };
    let from = |l: usize| source_of(l).0;
    let givers = lanes(step.mask).fold(0, |all, l| all | 1 << from(l));
    let value = match &given.of(givers) {
        Val::Known(s) => Val::Known(Lanes::from_fn(|l| s.get(from(l)))),
        Val::Based(b, s) => Val::Based(*b, Lanes::from_fn(|l| s.get(from(l)))),
        Val::Unknown(Why::Ticket { update, .. }) => {
            let asked = step.state.tickets.get(update).is_some_and(|t| t.lanes & givers != 0);
            if givers.count_ones() != 1 || !asked {
                return None;
            }
            Val::Unknown(Why::Ticket { update: *update, shared: true })
        }
        Val::Unknown(_) | Val::Parted(..) => return None,
    };
    let all = lanes(step.mask).all(|l| step.mask >> from(l) & 1 == 1);
    let inside = Lanes::from_fn(|l| u64::from(source_of(l).1));
    all.then(|| vec![value, Val::Known(inside)])
}

pub(super) fn voted(step: &Executing<'_, '_>, sum: Sum<'_>) -> Option<Vec<Val>> {
    match sum {
        Sum::Activemask => Some(vec![Val::same(u64::from(step.mask))]),
        Sum::Vote(i) => {
            given(step, step.predicate(&i.a), &i.mask).map(|v| vec![Val::same(vote(step, i, &v))])
        }
        Sum::Match(i) => Some(matched(step, i.form, &given(step, step.read(&i.a), &i.mask)?)),
        Sum::Redux(i) => {
            reduced(step, i, &given(step, step.read(&i.a), &i.mask)?).map(|v| vec![Val::same(v)])
        }
        _ => None,
    }
}

/// What the lanes give. If a named lane is not active here, it contributes a value from elsewhere, which is unknown.
fn given(step: &Executing<'_, '_>, value: Val, mask: &Value) -> Option<Lanes> {
    let Val::Known(value) = value else { return None };
    let members = step.read(mask);
    let named = members.known().and_then(|m| m.one(step.mask))? & 0xffff_ffff;
    (named & u64::from(step.warp.here.lanes) == u64::from(step.mask)).then_some(value)
}

fn vote(step: &Executing<'_, '_>, vote: &Vote, value: &Lanes) -> u64 {
    let truth = value.truth(step.mask);
    match vote.mode {
        VoteMode::All => u64::from(truth == step.mask),
        VoteMode::Any => u64::from(truth != 0),
        VoteMode::Uni => u64::from(truth == step.mask || truth == 0),
        VoteMode::Ballot => u64::from(truth),
    }
}

fn matched(step: &Executing<'_, '_>, form: MatchForm, value: &Lanes) -> Vec<Val> {
    if form == MatchForm::Any {
        let alike = |l: usize, o: usize| if value.get(o) == value.get(l) { 1 << o } else { 0 };
        let with = |l: usize| lanes(step.mask).fold(0, |m, o| m | alike(l, o));
        return vec![Val::Known(Lanes::from_fn(with))];
    }
    let all = value.one(step.mask).is_some();
    vec![Val::same(if all { u64::from(step.mask) } else { 0 }), Val::same(u64::from(all))]
}

fn reduced(step: &Executing<'_, '_>, redux: &Redux, value: &Lanes) -> Option<u64> {
    let t = Int::of(match redux.ty {
        ReduxTy::B32 => Num::B32,
        ReduxTy::U32 => Num::U32,
        ReduxTy::S32 => Num::S32,
        ReduxTy::F32 => Num::F32,
    })?;
    let op = match redux.op {
        ReduxOp::Add => BinaryForm::Add,
        ReduxOp::Min => BinaryForm::Min,
        ReduxOp::Max => BinaryForm::Max,
        ReduxOp::And => BinaryForm::And,
        ReduxOp::Or => BinaryForm::Or,
        ReduxOp::Xor => BinaryForm::Xor,
    };
    let mut all = lanes(step.mask).map(|l| value.get(l));
    let first = all.next()?;
    all.try_fold(first, |a, b| alu::two(op, t, a, b))
}
