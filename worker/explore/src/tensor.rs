//! tcgen05 instructions as events: the issue, in program order; behind it the accesses, outside program order.
//!
//! Digest `tcgen05.md` sections 8 and 9 (PTX ISA 9.2, 9.7.16.6). The accesses of one instruction to tensor memory and its
//! completion are one event: nothing in the rules comes between them. Reads of shared memory are an event each, since
//! the core model judges them. Data in tensor memory is symbolic: these events have no source and no value, and a
//! loaded register holds unknown data (`unknown`).

use crate::event::{Emitted, Kind, labels};
use crate::interp::{Machine, TraceEnd, View};
use crate::mbarrier::{Act, Fault, MbarUse, Object};
use crate::memory::STRIDE;
use moire_cat::vocabulary::sets;
use moire_program::ir::*;
use moire_program::tensor::{Usage, touches};
use std::ops::Range;
use std::rc::Rc;

/// A rectangle of cells in the tensor memory of the CTA of the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    object: ObjectId,
    lanes: Range<u32>,
    columns: Range<u32>,
    writes: bool,
}

/// What kind of operation an event belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Load,
    Store,
    /// Accumulator, its shape, the element types.
    Mma {
        d: (ObjectId, u32),
        shape: (u16, u16),
        kind: MmaKind,
    },
    /// Whether it is `.4x256b`.
    Copy {
        four: bool,
    },
    Shift,
    WaitLoad,
    WaitStore,
    Commit,
    /// Issues and fences.
    Other,
}

/// See [`Emitted::tensor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorUse {
    work: Work,
    cells: Vec<Cells>,
    /// A warp's access to lanes of another.
    pub(crate) wrong_lanes: bool,
    /// Cells outside the allocation.
    pub(crate) wrong_columns: bool,
}

/// Whether two instructions pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pipe {
    Yes,
    /// If their kinds were the same.
    OtherKind,
}

impl TensorUse {
    fn of(work: Work) -> Self {
        TensorUse { work, cells: Vec::new(), wrong_lanes: false, wrong_columns: false }
    }

    /// Whether both touch a cell and one writes it.
    pub(crate) fn conflicts(&self, other: &Self, p: Option<&Placement>, q: Option<&Placement>) -> bool {
        let meet = |a: &Range<u32>, b: &Range<u32>| a.start < b.end && b.start < a.end;
        let near = p.zip(q).is_some_and(|(p, q)| p.same_cta(q));
        let pair = |a: &Cells, b: &Cells| {
            let cells = meet(&a.lanes, &b.lanes) && meet(&a.columns, &b.columns);
            a.object == b.object && (a.writes || b.writes) && cells
        };
        near && self.cells.iter().any(|a| other.cells.iter().any(|b| pair(a, b)))
    }

    /// 9.7.16.6.2: pairs that execute in order.
    pub(crate) fn pipe(&self, next: &Self, p: Option<&Placement>, q: Option<&Placement>) -> Option<Pipe> {
        let near = p.zip(q).is_some_and(|(p, q)| p.same_cta(q));
        match (&self.work, &next.work) {
            (Work::Mma { d, shape, kind }, Work::Mma { d: e, shape: other, kind: last }) => {
                let same = near && d == e && shape == other;
                same.then_some(if kind == last { Pipe::Yes } else { Pipe::OtherKind })
            }
            (Work::Copy { .. } | Work::Shift, Work::Mma { .. }) => Some(Pipe::Yes),
            (Work::Mma { .. }, Work::Shift) | (Work::Shift, Work::Copy { four: true }) => Some(Pipe::Yes),
            _ => None,
        }
    }

    /// Whether this wait or arrival follows the completion of `earlier`.
    pub(crate) fn tracks(&self, earlier: &Self) -> bool {
        match self.work {
            Work::WaitLoad => earlier.work == Work::Load,
            Work::WaitStore => earlier.work == Work::Store,
            Work::Commit => {
                matches!(earlier.work, Work::Mma { .. } | Work::Copy { .. } | Work::Shift)
            }
            _ => false,
        }
    }
}

impl<V: View> Machine<'_, V> {
    pub(crate) fn tensor(&mut self, op: &Tcgen05, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        if self.lanes.count() > 1 && op.by_one_thread() {
            let what = format!("{} by several lanes at once", op.name());
            return Err(TraceEnd::Unsupported(what, instr.line));
        }
        match op {
            Tcgen05::WaitLoad => self.tensor_event(instr, pc, &[sets::TC_WAIT], Work::WaitLoad),
            Tcgen05::WaitStore => self.tensor_event(instr, pc, &[sets::TC_WAIT], Work::WaitStore),
            Tcgen05::FenceBefore => self.tensor_event(instr, pc, &[sets::TC_BEFORE], Work::Other),
            Tcgen05::FenceAfter => self.tensor_event(instr, pc, &[sets::TC_AFTER], Work::Other),
            Tcgen05::Commit(commit) => return self.commit(commit, instr, pc),
            _ => return self.asynchronous(op, instr, pc),
        }
        Ok(())
    }

    fn tensor_event(&mut self, instr: &Instr, pc: usize, named: &[usize], work: Work) {
        let mut event = self.blank(instr, pc, Kind::Fence, labels(named), None);
        event.tensor = Some(Rc::new(TensorUse::of(work)));
        self.events.push(Some(event));
    }

    /// Issue, accesses to tensor memory, reads of shared memory.
    fn asynchronous(&mut self, op: &Tcgen05, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let wild = |why: &str| TraceEnd::Unsupported(why.into(), instr.line);
        let all = touches(op, None).ok_or_else(|| wild("the shape of this tcgen05 instruction"))?;
        let mut used = TensorUse::of(self.work(op, instr)?);
        for touch in all {
            let (object, at) = self.place_in_tensor(&touch.addr, instr)?;
            let columns = self.program.objects[object.index()].bytes / 4;
            for cells in touch.cells {
                let lanes = (at >> 16) + cells.lanes.start..(at >> 16) + cells.lanes.end;
                let wide = (at & 0xffff) + cells.columns.start..(at & 0xffff) + cells.columns.end;
                used.wrong_columns |= lanes.end > TENSOR_LANES || wide.end > columns;
                let warp = u32::from(self.program.threads[self.thread.index()].place.warp) % 4;
                let own = 32 * warp..32 * warp + 32;
                let moves = matches!(op, Tcgen05::Load(_) | Tcgen05::Store(_));
                used.wrong_lanes |= moves && (lanes.start < own.start || lanes.end > own.end);
                let writes = touch.usage != Usage::Read;
                used.cells.push(Cells { object, lanes, columns: wide, writes });
            }
        }
        let tensor = matches!(used.work, Work::Mma { .. } | Work::Copy { .. } | Work::Shift);
        let reads = self.shared_reads(op, instr)?;
        self.tensor_event(instr, pc, &[sets::TC_ISSUE], Work::Other);
        let work = used.work.clone();
        let mut named = vec![sets::TC_ACCESS];
        named.extend(tensor.then_some(sets::TC_TENSOR));
        let mut event = self.blank(instr, pc, Kind::Fence, labels(&named), None);
        event.tensor = Some(Rc::new(used));
        event.detached = true;
        self.events.push(Some(event));
        for access in reads {
            let named = [sets::TC_SHARED, sets::TC_TENSOR, sets::M, sets::R, sets::WEAK, sets::ASYNC];
            let mut event = self.blank(instr, pc, Kind::Fence, labels(&named), None);
            event.access = Some(access);
            event.home = self.layout.instances[access.instance as usize].owner;
            event.tensor = Some(Rc::new(TensorUse::of(work.clone())));
            event.detached = true;
            self.events.push(Some(event));
        }
        if let Tcgen05::Load(load) = op {
            self.forget(load.dst.iter().copied().chain(load.reduce.iter().map(|r| r.dst)));
        }
        Ok(())
    }

    fn work(&self, op: &Tcgen05, instr: &Instr) -> Result<Work, TraceEnd> {
        Ok(match op {
            Tcgen05::Load(_) => Work::Load,
            Tcgen05::Store(_) => Work::Store,
            Tcgen05::Copy { shape, .. } => Work::Copy { four: *shape == CopyShape::S4x256b },
            Tcgen05::Shift { .. } => Work::Shift,
            Tcgen05::Mma(mma) => {
                let ProductShape::Tile { m, n } = mma.shape else {
                    let what = "an instruction descriptor in a register";
                    return Err(TraceEnd::Unsupported(what.into(), instr.line));
                };
                Work::Mma { d: self.place_in_tensor(&mma.d, instr)?, shape: (m, n), kind: mma.kind }
            }
            other => return Err(TraceEnd::Unsupported(other.name().into(), instr.line)),
        })
    }

    /// Columns named in the text, and lane and column from there.
    fn place_in_tensor(&self, addr: &Address, instr: &Instr) -> Result<(ObjectId, u32), TraceEnd> {
        let at = self.address(addr);
        let Some(value) = at.value else { return Err(TraceEnd::Pending(at.deps)) };
        let stride = Value::from(STRIDE);
        let object = self.layout.locate(self.program, value - value % stride, 0).and_then(|access| {
            let object = self.layout.instances[access.instance as usize].object;
            (self.program.objects[object.index()].space == Space::Tensor).then_some(object)
        });
        match object.zip(u32::try_from(value % stride).ok()) {
            Some(found) => Ok(found),
            None => {
                let what = "an address in tensor memory that is not of a `.tmem` name";
                Err(TraceEnd::Unsupported(what.into(), instr.line))
            }
        }
    }

    fn shared_reads(&self, op: &Tcgen05, instr: &Instr) -> Result<Vec<crate::memory::Access>, TraceEnd> {
        let descriptors = match op {
            Tcgen05::Copy { src, .. } => vec![*src],
            Tcgen05::Mma(mma) => match mma.a {
                Factor::Shared(a) => vec![a, mma.b],
                Factor::Tensor(_) => vec![mma.b],
            },
            _ => vec![],
        };
        let wild = |why: &str| TraceEnd::Unsupported(why.into(), instr.line);
        let mut out = Vec::new();
        for descriptor in descriptors {
            let Descriptor::Range { addr, bytes } = descriptor else {
                return Err(wild("a matrix descriptor in a register"));
            };
            let at = self.address(&addr);
            let Some(value) = at.value else { return Err(TraceEnd::Pending(at.deps)) };
            let access = self.layout.locate(self.program, value, bytes);
            let access = access.ok_or_else(|| wild("a matrix outside every object"))?;
            out.push(self.own_shared(access, instr)?);
        }
        Ok(out)
    }

    /// An access that must be to shared memory of the thread's CTA.
    fn own_shared(
        &self,
        access: crate::memory::Access,
        instr: &Instr,
    ) -> Result<crate::memory::Access, TraceEnd> {
        let owner = self.layout.instances[access.instance as usize].owner;
        let place = |t: ThreadId| &self.program.threads[t.index()].place;
        if owner.is_some_and(|o| place(o).same_cta(place(self.thread))) {
            return Ok(access);
        }
        Err(TraceEnd::Unsupported(
            "a tcgen05 operand outside the shared memory of the CTA".into(),
            instr.line,
        ))
    }

    fn commit(&mut self, commit: &Commit, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let base = self.address(&commit.addr);
        let Some(value) = base.value else { return Err(TraceEnd::Pending(base.deps)) };
        let wild = |why: &str| TraceEnd::Unsupported(why.into(), instr.line);
        let access = self.layout.locate(self.program, value, MBARRIER_BYTES);
        let access = access.ok_or_else(|| wild("an mbarrier outside every object"))?;
        let access = self.own_shared(access, instr)?;
        if access.offset % MBARRIER_BYTES != 0 {
            return Err(wild("an mbarrier that is not aligned to 8 bytes"));
        }
        self.tensor_event(instr, pc, &[sets::TC_COMMIT], Work::Other);
        let object = Object { instance: access.instance, offset: access.offset };
        let act = Act::Add { arrivals: 1, tx: 0, drops: false, no_complete: false, returns: false };
        let used = MbarUse { object, act, fault: None::<Fault> };
        let named = [sets::MBAR, sets::MBAR_ARRIVE, sets::TC_ARRIVE, sets::CLUSTER];
        let mut event: Emitted =
            self.blank(instr, pc, Kind::Mbarrier(used), labels(&named), Some(Scope::Cluster));
        event.access = Some(access);
        event.addr = base.deps;
        event.home = self.layout.instances[access.instance as usize].owner;
        event.tensor = Some(Rc::new(TensorUse::of(Work::Commit)));
        event.detached = true;
        self.events.push(Some(event));
        Ok(())
    }
}
