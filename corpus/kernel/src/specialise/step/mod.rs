//! Runs one statement by some lanes of a warp in one state.
//!
//! Each file has the statements of one kind as functions on a [`Executing`]. They read and write the state, emit items, and
//! return how the run continues ([`Then`]). They never choose the next statement: `run` does.

mod access;
mod arithmetic;
mod barrier;
pub(super) mod choice;
mod control;
pub(super) mod copies;
mod drawn;
mod followed;
mod instruction;
mod lanes;
mod loaded;
mod matrix;
mod moves;
mod operand;
mod ordered;
pub(super) mod place;
mod plain;
mod remote;
mod small;
pub(super) mod statement;
mod tensor;
mod told;
mod warpgroup;

use super::item::{Content, Item, Note, Stored};
use super::known::line::Forms;
use super::known::value::Val;
use super::practice::Practice;
use super::touch::{Mem, Touch};
use super::warp::{Round, State, Warp};
use crate::Refusal;
use crate::ptx::{What, mnemonic};
use moire_program::ir::{Address, Guard, Op, Operand, Reg, Ty};

/// How the run continues after a statement.
pub(super) enum Then {
    /// With the next statement.
    Next,
    /// Not at all: the lanes have exited, or load a word for which no store is known yet.
    End,
    /// In several ways: the state of each, and the register that is true if it is taken. The last way has no register and
    /// is taken otherwise.
    Ways(Vec<(Option<Reg>, State)>),
}

/// A statement that some lanes of a warp run in one state.
pub(super) struct Executing<'s, 'r> {
    pub(super) warp: &'s mut Warp<'r>,
    pub(super) state: &'s mut State,
    /// The lanes that run the statement.
    pub(super) mask: u32,
}

/// The touches of an instruction under construction. An immediate address `n` in it stands for touch `n`.
#[derive(Default)]
pub(super) struct Made {
    pub(super) touches: Vec<Touch>,
}

impl Made {
    pub(super) fn touch(&mut self, touch: Touch) -> Address {
        self.touches.push(touch);
        Address { base: Operand::Imm(self.touches.len() as i128 - 1), offset: 0 }
    }
}

impl<'r> Executing<'_, 'r> {
    pub(super) fn round(&self) -> &'r Round<'r> {
        self.warp.round
    }

    /// Arithmetic on numbers that grow.
    pub(super) fn forms(&self) -> Forms<'r> {
        Forms { cone: self.warp.cone, mask: self.mask, reach: self.round().plan.map(|p| &p.reach) }
    }

    /// The same statement by some of the lanes.
    pub(super) fn only(&mut self, mask: u32) -> Executing<'_, 'r> {
        Executing { warp: self.warp, state: self.state, mask }
    }

    pub(super) fn line(&self) -> u32 {
        self.warp.line(self.state.pc)
    }

    pub(super) fn abstain<T>(&self, what: impl Into<String>) -> Result<T, Refusal> {
        self.warp.abstain(self.state, what)
    }

    /// The mnemonic of the statement with its qualifiers, if the book alone reads it.
    pub(super) fn mnemonic(&self) -> String {
        match self.round().kernel.body.get(self.state.pc).map(|s| &s.what) {
            Some(What::Plain(instr)) => mnemonic(instr),
            _ => String::new(),
        }
    }

    /// Adds a remark about the statement.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let line = self.line();
        self.warp.out.notes.insert(Note::new(line, text));
    }

    /// Whether a reading of practice holds, with a remark that the statement relies on it.
    pub(super) fn relies(&mut self, practice: Practice) -> bool {
        let holds = !self.round().launch.letter;
        if holds {
            let note = Note::reading(self.line(), practice);
            self.warp.out.notes.insert(note);
        }
        holds
    }

    /// The lanes meet in an exchange of registers, which orders nothing.
    pub(super) fn meet(&mut self, here: u32, named: u32) -> Result<(), Refusal> {
        let lanes = named & (here | self.state.alive);
        let again = self.warp.out.items.last().is_some_and(|p| matches!(p.item, Item::Met(l) if l == lanes));
        if again { Ok(()) } else { self.warp.emit(self.state, lanes & here, Item::Met(lanes)) }
    }

    /// Whether a register can affect a branch, an address or an operand of synchronisation.
    pub(super) fn matters(&self, reg: Reg) -> bool {
        self.round().kernel.flow().matters.get(reg.index()) == Some(&true)
    }

    /// Writes a register in the lanes of the step.
    pub(super) fn set(&mut self, reg: Reg, value: Val) {
        self.warp.set(self.state, reg, value, self.mask);
    }

    pub(super) fn slot(&mut self, n: usize) -> Result<Reg, Refusal> {
        self.warp.slot(self.state, n)
    }

    /// Emits an item for the lanes of the step.
    pub(super) fn emit(&mut self, item: Item) -> Result<(), Refusal> {
        self.warp.emit(self.state, self.mask, item)
    }

    /// Emits an instruction that touches no memory.
    pub(super) fn leave_op(&mut self, op: Op) -> Result<(), Refusal> {
        self.emit(Item::Op { op: Box::new(op), touches: Vec::new() })
    }

    /// Emits an instruction and continues with the next statement.
    pub(super) fn leave(&mut self, op: Op, made: Made) -> Result<Then, Refusal> {
        self.emit(Item::Op { op: Box::new(op), touches: made.touches })?;
        Ok(Then::Next)
    }

    /// Tells other warps what is stored in the shared memory of a CTA.
    pub(super) fn stored(&mut self, cta: u32, at: u64, bytes: u64, content: Content) -> Result<(), Refusal> {
        let (at, bytes) = (self.shared_offset(at)?, self.shared_offset(bytes)?);
        let line = self.line();
        self.warp.out.stores.push(Stored { cta, at, bytes, content, line });
        Ok(())
    }

    /// The CTAs that receive asynchronous data for one of them: if it is multicast, all CTAs of the cluster.
    pub(super) fn receivers(&self, own: u32, multicast: bool) -> Vec<u32> {
        let others = self.warp.here.peers.iter().copied().filter(|p| multicast && *p != own);
        others.chain([own]).collect()
    }

    /// Tells other warps that data overwrites the bytes of a touch in shared memory. Other memory is ignored.
    pub(super) fn overwritten(&mut self, touch: &Touch) -> Result<(), Refusal> {
        let Mem::Shared(cta) = touch.mem else { return Ok(()) };
        touch
            .ranges
            .iter()
            .try_for_each(|(start, end)| self.stored(cta, *start, end - start, Content::Opaque))
    }

    /// The size in bytes of a vector of `count` elements.
    pub(super) fn vector_bytes(&self, ty: Ty, count: usize) -> Result<u32, Refusal> {
        let bytes = u32::try_from(count).ok().and_then(|count| ty.bytes().checked_mul(count));
        bytes.map_or_else(|| self.abstain("a vector with too many elements"), Ok)
    }

    /// The untyped type of the same width.
    pub(super) fn untyped(&self, ty: Ty) -> Result<Ty, Refusal> {
        u8::try_from(8 * ty.bytes()).map(Ty::B).or_else(|_| self.abstain("an access that is too wide"))
    }

    /// Narrows an offset in shared memory, which has far fewer than 2^32 bytes.
    pub(super) fn shared_offset(&self, at: u64) -> Result<u32, Refusal> {
        u32::try_from(at).or_else(|_| self.abstain("an address far beyond shared memory"))
    }

    /// The lanes for which a guard holds.
    pub(super) fn guarded(&self, guard: Option<Guard>) -> Result<u32, Refusal> {
        self.warp.guarded(self.state, guard)
    }

    /// Splits the run in two: the registers are 1 if `q` is true, otherwise 0.
    pub(super) fn both(&mut self, q: Reg, regs: &[Reg]) -> Then {
        let way = |value: u64| {
            let mut next = self.state.clone();
            regs.iter().for_each(|r| self.warp.set(&mut next, *r, Val::same(value), self.mask));
            next
        };
        Then::Ways(vec![(Some(q), way(1)), (None, way(0))])
    }
}
