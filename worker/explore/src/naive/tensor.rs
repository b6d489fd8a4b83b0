//! tcgen05 instructions of one thread: an issue, and what happens later, outside program order.
//!
//! Cells are looked up one by one: a lane is a bit, a column a number. Which pairs pipeline and what a wait or a commit
//! follows is the table of the PTX ISA (9.2, 9.7.16.6.2), read pair by pair.

use super::arith::low;
use super::body::{Event, Refusal, Runner, State};
use super::mbarrier::{Count, Deed};
use super::pairs::Events;
use super::space::Range;
use super::tags::bit;
use crate::leaf::flag;
use moire_cat::vocabulary::sets;
use moire_program::ir::*;
use moire_program::tensor::{Usage, touches};

/// In the dependencies of a register: it holds what came out of tensor memory.
pub(super) const UNKNOWN: Events = 1 << 127;

/// Some lanes of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    object: ObjectId,
    column: u32,
    lanes: u128,
    written: bool,
}

/// What a tcgen05 event is for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    /// Number of the instruction in its path.
    instruction: usize,
    op: Tcgen05,
    /// Where the accumulator of a product starts.
    accumulator: Option<(ObjectId, u32)>,
    columns: Vec<Column>,
    /// After its issue and outside program order.
    pub(super) later: bool,
    pub(super) flags: Vec<&'static str>,
}

impl Effect {
    fn tensor(&self) -> bool {
        matches!(self.op, Tcgen05::Mma(_) | Tcgen05::Copy { .. } | Tcgen05::Shift { .. })
    }

    /// `later` events of one thread belong to the issue of their instruction.
    pub(super) fn issues(&self, other: &Effect) -> bool {
        !self.later && other.later && self.instruction == other.instruction
    }

    /// Parts of one instruction, in one thread.
    pub(super) fn one_with(&self, other: &Effect) -> bool {
        self.instruction == other.instruction
    }

    /// Of an earlier instruction of the same thread.
    pub(super) fn precedes(&self, other: &Effect) -> bool {
        self.instruction < other.instruction
    }

    /// Whether both touch a cell that one of them writes.
    pub(super) fn clashes(&self, other: &Effect) -> bool {
        self.columns.iter().any(|a| {
            other.columns.iter().any(|b| {
                let here = a.object == b.object && a.column == b.column && a.lanes & b.lanes != 0;
                here && (a.written || b.written)
            })
        })
    }

    /// Whether this executes before `next` when it is issued before; `kinds`: different ones do no harm.
    pub(super) fn pipelines(&self, next: &Effect, same_cta: bool, kinds: bool) -> bool {
        if !self.later || !next.later {
            return false;
        }
        match (&self.op, &next.op) {
            (Tcgen05::Mma(a), Tcgen05::Mma(b)) => {
                let place = same_cta && self.accumulator == next.accumulator;
                place && a.shape == b.shape && (a.kind == b.kind) != kinds
            }
            (Tcgen05::Copy { .. }, Tcgen05::Mma(_)) => !kinds,
            (Tcgen05::Shift { .. }, Tcgen05::Mma(_)) => !kinds,
            (Tcgen05::Mma(_), Tcgen05::Shift { .. }) => !kinds,
            (Tcgen05::Shift { .. }, Tcgen05::Copy { shape, .. }) => *shape == CopyShape::S4x256b && !kinds,
            _ => false,
        }
    }

    /// Whether this wait, or this arrival of a commit, comes after the end of an earlier instruction of its thread.
    pub(super) fn follows(&self, earlier: &Effect) -> bool {
        earlier.later
            && match self.op {
                Tcgen05::WaitLoad => matches!(earlier.op, Tcgen05::Load(_)),
                Tcgen05::WaitStore => matches!(earlier.op, Tcgen05::Store(_)),
                Tcgen05::Commit(_) => self.later && earlier.tensor(),
                _ => false,
            }
    }
}

impl Runner<'_> {
    /// Whether the instruction would use what came out of tensor memory.
    pub(super) fn uses_unknown(&self, s: &State, instr: &Instr) -> bool {
        let guard = instr.guard.map_or(0, |g| s.regs[g.reg.index()].1);
        let read = super::unknown::needed(&instr.op);
        (read.iter().fold(guard, |d, r| d | s.regs[r.index()].1)) & UNKNOWN != 0
    }

    pub(super) fn tensor(&self, s: &mut State, op: &Tcgen05) -> Result<(), Refusal> {
        if s.lanes.active.count_ones() > 1 && op.by_one_thread() {
            return Err(Refusal::Unsupported(format!("{} by several lanes", op.name())));
        }
        let mut effect = Effect {
            instruction: s.instructions,
            op: op.clone(),
            accumulator: None,
            columns: Vec::new(),
            later: false,
            flags: Vec::new(),
        };
        let set = match op {
            Tcgen05::WaitLoad | Tcgen05::WaitStore => sets::TC_WAIT,
            Tcgen05::FenceBefore => sets::TC_BEFORE,
            Tcgen05::FenceAfter => sets::TC_AFTER,
            Tcgen05::Commit(_) => sets::TC_COMMIT,
            _ => sets::TC_ISSUE,
        };
        let mut issue = self.event(s, bit(set), None);
        issue.effect = Some(effect.clone());
        Self::push(s, issue);
        effect.later = true;
        match op {
            Tcgen05::Commit(commit) => self.arrival(s, commit, effect),
            _ if set == sets::TC_ISSUE => self.later(s, op, effect),
            _ => Ok(()),
        }
    }

    fn arrival(&self, s: &mut State, commit: &Commit, effect: Effect) -> Result<(), Refusal> {
        let (range, address) = self.own_bytes(s, &commit.addr, MBARRIER_BYTES)?;
        if range.offset % MBARRIER_BYTES != 0 {
            return Err(Refusal::Unsupported("an mbarrier that is not aligned".into()));
        }
        let deed = Deed::Add { arrivals: 1, tx: 0, drops: false, must_not_complete: false, reported: None };
        let tags = bit(sets::MBAR) | bit(sets::MBAR_ARRIVE) | bit(sets::TC_ARRIVE);
        let mut e: Event = self.event(s, tags, Some(Scope::Cluster));
        (e.range, e.address) = (Some(range), address);
        e.home = self.memory.instances[range.instance].cta;
        e.count = Some(Count { object: (range.instance, range.offset), deed, wrong: None });
        e.effect = Some(effect);
        Self::push(s, e);
        Ok(())
    }

    /// Accesses to tensor memory, then reads of shared memory.
    fn later(&self, s: &mut State, op: &Tcgen05, mut effect: Effect) -> Result<(), Refusal> {
        let unknown = |what: &str| Refusal::Unsupported(what.to_owned());
        if let Tcgen05::Mma(mma) = op {
            if !matches!(mma.shape, ProductShape::Tile { .. }) {
                return Err(unknown("an instruction descriptor in a register"));
            }
            effect.accumulator = Some(self.cell(s, &mma.d)?);
        }
        let quiet = effect.clone();
        let warp = self.program.threads[self.thread].place.warp % 4;
        let own = 32 * u32::from(warp)..32 * u32::from(warp) + 32;
        let moves = matches!(op, Tcgen05::Load(_) | Tcgen05::Store(_));
        for touch in touches(op, None).ok_or_else(|| unknown("the shape of a tcgen05 instruction"))? {
            let (object, at) = self.cell(s, &touch.addr)?;
            let size = self.program.objects[object.index()].bytes / 4;
            for cells in touch.cells {
                let mut lanes = 0u128;
                for lane in cells.lanes.clone().map(|lane| lane + (at >> 16)) {
                    if moves && !own.contains(&lane) {
                        effect.flags.push(flag::LANES);
                    }
                    match lane {
                        0..128 => lanes |= 1 << lane,
                        _ => effect.flags.push(flag::COLUMNS),
                    }
                }
                for column in cells.columns {
                    let column = column + (at & 0xffff);
                    if column >= size {
                        effect.flags.push(flag::COLUMNS);
                    }
                    let written = touch.usage != Usage::Read;
                    effect.columns.push(Column { object, column, lanes, written });
                }
            }
        }
        let tensor = if effect.tensor() { bit(sets::TC_TENSOR) } else { 0 };
        let mut access = self.event(s, bit(sets::TC_ACCESS) | tensor, None);
        access.effect = Some(effect);
        Self::push(s, access);
        let matrices = match op {
            Tcgen05::Copy { src, .. } => vec![src],
            Tcgen05::Mma(mma) => match &mma.a {
                Factor::Shared(a) => vec![a, &mma.b],
                Factor::Tensor(_) => vec![&mma.b],
            },
            _ => vec![],
        };
        for matrix in matrices {
            let Descriptor::Range { addr, bytes } = matrix else {
                return Err(unknown("a matrix descriptor in a register"));
            };
            let (range, _) = self.own_bytes(s, addr, *bytes)?;
            let in_sets = [sets::TC_SHARED, sets::TC_TENSOR, sets::M, sets::R, sets::WEAK, sets::ASYNC];
            let mut read = self.event(s, in_sets.iter().fold(0, |t, set| t | bit(*set)), None);
            read.range = Some(range);
            read.home = self.memory.instances[range.instance].cta;
            read.effect = Some(quiet.clone());
            Self::push(s, read);
        }
        if let Tcgen05::Load(load) = op {
            let reduced = load.reduce.as_ref().map(|r| r.dst);
            for reg in load.dst.iter().copied().chain(reduced) {
                s.regs[reg.index()] = (0, UNKNOWN);
                s.lanes.assigned(reg);
            }
        }
        Ok(())
    }

    fn pointed(&self, s: &State, addr: &Address) -> (u128, Events) {
        let (base, deps) = self.operand(s, addr.base);
        let offset = u128::from_ne_bytes(i128::from(addr.offset).to_ne_bytes());
        (low(base.wrapping_add(offset), 64), deps)
    }

    /// Bytes of shared memory of the thread's CTA.
    fn own_bytes(&self, s: &State, addr: &Address, bytes: u32) -> Result<(Range, Events), Refusal> {
        let (address, deps) = self.pointed(s, addr);
        let range = self.memory.resolve(address, bytes);
        let own = |r: &Range| self.memory.instances[r.instance].cta == Some(self.memory.cta[self.thread]);
        match range.filter(own) {
            Some(range) => Ok((range, deps)),
            None => Err(Refusal::Unsupported(format!("a tcgen05 operand at {addr:?}"))),
        }
    }

    /// The object in tensor memory an address belongs to, with lane and column.
    fn cell(&self, s: &State, addr: &Address) -> Result<(ObjectId, u32), Refusal> {
        let (address, _) = self.pointed(s, addr);
        let (base, at) = (address >> 32 << 32, low(address, 32));
        let object = self.memory.resolve(base, 0).map(|r| self.memory.instances[r.instance].object);
        match object.filter(|o| self.program.objects[o.index()].space == Space::Tensor) {
            Some(object) => Ok((object, u32::try_from(at).unwrap_or(u32::MAX))),
            None => Err(Refusal::Unsupported(format!("tensor memory at {addr:?}"))),
        }
    }
}
