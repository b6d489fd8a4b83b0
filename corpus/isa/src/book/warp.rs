//! Instructions of a warp.

use crate::entry::refuse;
use crate::kind::On::{Any, From as Sm};
use crate::kinds::*;
use crate::operand::*;

instructions! {
    #[doc = "Elects one lane of those in the mask."]
    Elect = "elect.sync", section "elect-sync", since (80, Sm(90));
    slots {}
    operands {
        write leader: Answer = (Width::Bits(32), Some(Width::Bits(1)));
        known mask: Value = Width::Int(32);
    }
    rules {
        leader.second.is_none() => refuse("it writes a pair: lane and predicate");
        leader.second == Some(None) => refuse("the predicate is wanted");
    }

    #[doc = "Takes the value of another lane."]
    Shfl = "shfl.sync", section "shfl-sync", since (70, Any);
    ends ["b32"]
    slots { keep mode: ShflMode; }
    operands {
        write dst: Answer = (Width::Bits(32), Some(Width::Bits(1)));
        data a: Value = Width::Bits(32);
        known b: Value = Width::Bits(32);
        known c: Value = Width::Bits(32);
        known mask: Value = Width::Int(32);
    }
    rules { dst.first.is_none() => refuse("the value is wanted"); }

    #[doc = "Combines the predicates of the lanes in the mask."]
    Vote = "vote.sync", section "vote-sync", since (70, Any);
    slots { keep mode: VoteMode; keep ty: VoteTy; }
    operands {
        write dst: Register = Width::Bits(if ty == VoteTy::Pred { 1 } else { 32 });
        known a: Pred = ();
        known mask: Value = Width::Int(32);
    }
    rules {
        (mode == VoteMode::Ballot) != (ty == VoteTy::B32)
            => refuse("it is .ballot.b32, or .pred with the others");
    }

    #[doc = "Finds the lanes in the mask that have the same value."]
    Match = form: MatchForm, section "match-sync", since (70, Any);
    slots { keep ty: MatchTy; }
    operands {
        write dst: Answer = (Width::Int(32), (form == MatchForm::All).then_some(Width::Bits(1)));
        known a: Value = Width::Bits(if ty == MatchTy::B32 { 32 } else { 64 });
        known mask: Value = Width::Int(32);
    }
    rules {}

    #[doc = "Combines the values of the lanes in the mask."]
    Redux = "redux.sync", section "redux-sync", since (70, Any);
    slots { keep op: ReduxOp; keep abs: Abs; keep nan: NaN; keep ty: ReduxTy; }
    operands {
        write dst: Register = redux_width(ty);
        known a: Value = redux_width(ty);
        known mask: Value = Width::Int(32);
    }
    rules {
        (abs.is() || nan.is()) && ty != ReduxTy::F32 => refuse("`.abs` and `.NaN` go with .f32");
        !redux_takes(op, ty) => refuse("the operation does not take this type");
    }

    #[doc = "Tells which lanes of the warp are active."]
    Activemask = "activemask", section "activemask", since (70, Any);
    ends ["b32"]
    slots {} operands { write dst: Register = Width::Bits(32); } rules {}

    #[doc = "Changes the number of registers of a warp."]
    Setmaxnreg = "setmaxnreg", section "setmaxnreg", since (80, Sm(90));
    ends ["sync", "aligned", "u32"]
    slots { keep change: RegChange; }
    operands { known count: Number = (); }
    rules {
        !(24..=256).contains(&count.0) || count.0 % 8 != 0
            => refuse("the count is a multiple of 8 from 24 to 256");
    }
}

/// `redux.sync.min.f32 %r1, %r2, -1` is a form, and so is the one with `.f32` registers.
fn redux_width(ty: ReduxTy) -> Width {
    Width::Of { bits: 32, float: ty == ReduxTy::F32, untyped: false, wider: false }
}

fn redux_takes(op: ReduxOp, ty: ReduxTy) -> bool {
    match op {
        ReduxOp::Add => matches!(ty, ReduxTy::U32 | ReduxTy::S32),
        ReduxOp::Min | ReduxOp::Max => ty != ReduxTy::B32,
        ReduxOp::And | ReduxOp::Or | ReduxOp::Xor => ty == ReduxTy::B32,
    }
}
