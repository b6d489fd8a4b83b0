//! Instructions by which lanes of a warp exchange values. Each waits for the lanes of its mask that have not exited, and orders
//! no memory.
//!
//! PTX ISA 9.2, 9.7.9.6 (`shfl.sync`), 9.7.13.9 (`vote.sync`), 9.7.13.10 (`match.sync`), 9.7.13.12 (`redux.sync`). The CUDA
//! C++ guide says of them that they "do not imply a memory barrier".

use super::parts::{Part, Role, parts_of};
use super::{AtomOp, Operand, Reg, Ty};

/// One such instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// What is exchanged. Only lanes with equal forms meet.
    pub form: Exchange,
    /// Receives the result.
    pub dst: Reg,
    /// The second result of `shfl` and `match.all`, a predicate.
    pub pred: Option<Reg>,
    /// What the lane gives; a predicate for `vote`.
    pub src: Operand,
    /// `vote` of `!p`.
    pub negated: bool,
    /// Of `shfl`: the lane or distance, and the clamp with the mask of segments; zero elsewhere.
    pub from: [Operand; 2],
    /// Lanes taking part.
    pub mask: Operand,
}

/// What lanes exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exchange {
    /// `vote.sync`
    Vote(Vote),
    /// `shfl.sync`
    Shuffle(Shuffle),
    /// `match.any.sync`
    MatchAny,
    /// `match.all.sync`
    MatchAll,
    /// `redux.sync`: the operation is one of add, min, max, and, or, xor.
    Reduce(AtomOp, Ty),
}

/// What a vote tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vote {
    /// Whether the predicate of each lane holds.
    All,
    /// Whether that of some lane holds.
    Any,
    /// Whether all lanes agree.
    Uni,
    /// The lanes for which it holds, a bit a lane.
    Ballot,
}

/// Which lane a lane takes the value of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shuffle {
    /// One so far below.
    Up,
    /// One so far above.
    Down,
    /// The one whose number differs in these bits.
    Butterfly,
    /// The one of this number.
    Index,
}

impl Collective {
    /// Name without qualifiers.
    pub fn name(&self) -> &'static str {
        match self.form {
            Exchange::Vote(_) => "vote.sync",
            Exchange::Shuffle(_) => "shfl.sync",
            Exchange::MatchAny => "match.any.sync",
            Exchange::MatchAll => "match.all.sync",
            Exchange::Reduce(..) => "redux.sync",
        }
    }
}

parts_of!(Collective, |collective, see| {
    let Collective { dst, pred, src, from: [by, clamp], mask, .. } = collective;
    see(Part::Source(src, Role::Known));
    see(Part::Source(by, Role::Known));
    see(Part::Source(clamp, Role::Known));
    see(Part::Source(mask, Role::Known));
    see(Part::Write(dst));
    if let Some(pred) = pred {
        see(Part::Write(pred));
    }
});
