//! Some lanes of one thread, and what is known of their registers at a place of the body.

use super::planted::Planted;
use super::value::{Known, Val};
use crate::ir::{Address, Operand, Program, RegInit, Thread, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Lanes of a thread that are looked at together.
#[derive(Clone, Debug)]
pub(super) struct SomeLanes<'p> {
    pub(super) program: &'p Program,
    pub(super) thread: usize,
    /// Ascending.
    pub(super) lanes: Vec<u8>,
    pub(super) bug: Option<Planted>,
    /// What is known of single lanes of the thread, for all its parts.
    pub(super) alone: Rc<RefCell<Alone>>,
}

/// The states of each lane that was run alone. None while it runs, and if it has none.
pub(super) type Alone = BTreeMap<u8, Option<Rc<States>>>;

/// The registers of a part at a place of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) regs: Vec<Val>,
    /// A fence may have been executed.
    pub(super) fenced: bool,
    /// A wait may have been executed since the lanes last met: other lanes may be behind it, or not yet.
    pub(super) waited: bool,
}

/// What is known at each place of the body that the part comes to, and at its end.
pub(super) type States = Vec<Option<State>>;

/// The lanes cannot stay in one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Apart {
    /// Those with equal numbers may.
    By(Vec<usize>),
    /// Each for itself.
    All,
}

/// What a step of the analysis gives.
pub(super) type Done<T> = Result<T, Apart>;

impl<'p> SomeLanes<'p> {
    pub(super) fn of(program: &'p Program, thread: usize, mask: u32, bug: Option<Planted>) -> Self {
        let lanes = (0..32).filter(|l| mask >> l & 1 == 1).collect();
        SomeLanes { program, thread, lanes, bug, alone: Rc::default() }
    }

    /// Other lanes of the same thread.
    pub(super) fn of_lanes(&self, lanes: Vec<u8>) -> Self {
        SomeLanes { lanes, ..self.clone() }
    }

    pub(super) fn code(&self) -> &'p Thread {
        &self.program.threads[self.thread]
    }

    /// The lanes of the warp that the program has.
    pub(super) fn warp(&self) -> u32 {
        let here = self.code().place;
        let same = |t: &&Thread| t.place.same_cta(&here) && t.place.warp == here.warp;
        self.program.threads.iter().filter(same).fold(0, |all, t| all | t.place.mask)
    }

    pub(super) fn has(&self, bug: Planted) -> bool {
        self.bug == Some(bug)
    }

    pub(super) fn several(&self) -> bool {
        self.lanes.len() > 1
    }

    /// The registers at the start.
    pub(super) fn start(&self) -> State {
        let numbers = || self.lanes.iter().map(|l| Known::number(Value::from(*l))).collect();
        let init = |init: &RegInit| match init {
            RegInit::Value(v) => self.constant(Known::number(*v)),
            RegInit::Address(s) => self.constant(Known::address(*s)),
            RegInit::Lane => Val::Known(numbers()),
        };
        State { regs: self.code().regs.iter().map(|r| init(&r.init)).collect(), fenced: false, waited: false }
    }

    pub(super) fn constant(&self, known: Known) -> Val {
        Val::constant(known, self.lanes.len())
    }

    /// An operand at a place.
    pub(super) fn operand(&self, state: &State, operand: Operand) -> Val {
        match operand {
            Operand::Reg(r) => state.regs[r.index()].clone(),
            #[expect(clippy::cast_sign_loss, reason = "an immediate is a bit pattern")]
            Operand::Imm(v) => self.constant(Known::number(v as Value)),
            Operand::Address(s) => self.constant(Known::address(s)),
        }
    }

    /// An address at a place; offsets are numbers of 64 bits.
    pub(super) fn address(&self, state: &State, address: &Address) -> Val {
        #[expect(clippy::cast_sign_loss, reason = "offsets wrap like addresses do")]
        let offset = i128::from(address.offset) as Value;
        Val::computed([&self.operand(state, address.base)], |[k]| {
            Some(Known { number: k.number.wrapping_add(offset) & Value::from(u64::MAX), ..k })
        })
    }
}

/// Passes if all lanes have one value.
pub(super) fn agreed(value: &Val) -> Done<()> {
    match value {
        Val::Known(all) if value.differs() => {
            let mut kinds = all.to_vec();
            kinds.sort_unstable();
            kinds.dedup();
            Err(Apart::By(all.iter().map(|k| kinds.partition_point(|other| other < k)).collect()))
        }
        Val::Known(_) | Val::Same => Ok(()),
        Val::Each | Val::Open => Err(Apart::All),
    }
}
