//! Words of instructions of a warp.

use crate::kind::On::Only;

words! {
    /// Which lane a lane takes its value from.
    ShflMode { Up = 0 "up"; Down = 1 "down"; Bfly = 2 "bfly"; Idx = 3 "idx"; }
    /// What a vote answers.
    VoteMode { All = 0 "all"; Any = 1 "any"; Uni = 2 "uni"; Ballot = 3 "ballot"; }
    /// Type of that answer.
    VoteTy { Pred = 0 "pred"; B32 = 1 "b32"; }
    /// Which lanes match.
    MatchForm { Any = 0 "match.any.sync"; All = 1 "match.all.sync"; }
    /// Type of what is matched.
    MatchTy { B32 = 0 "b32"; B64 = 1 "b64"; }
    /// What a warp computes of the values of its lanes.
    ReduxOp { Add = 0 "add"; Min = 1 "min"; Max = 2 "max"; And = 3 "and"; Or = 4 "or"; Xor = 5 "xor"; }
    /// Type of that.
    ReduxTy { B32 = 0 "b32"; U32 = 1 "u32"; S32 = 2 "s32"; F32 = 3 "f32" @ (86, Only(&[100, 103, 107])); }
    /// More or fewer registers.
    RegChange { Inc = 0 "inc"; Dec = 1 "dec"; }
}

flags! {
    Abs = "abs";
    NaN = "NaN";
}
