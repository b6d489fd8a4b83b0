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
use moire_cat::vocabulary::sets;
use moire_execution::columns;
use moire_execution::leaf::flag;
use moire_program::ir::*;
use moire_program::tensor::{InstructionDescriptor, Touch, Usage, touches};

/// In the dependencies of a register: it holds what came out of tensor memory.
pub(super) const UNKNOWN: Events = 1 << 127;

/// What an address in tensor memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Allocated from start to end.
    Named(ObjectId),
    /// An allocation, by number.
    Allocated(u32),
}

/// Some lanes of one column, in the CTA of this first thread.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    cta: usize,
    block: Block,
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
    /// Of a product: where the accumulator starts, its rows and columns, its cells.
    accumulator: Option<Block>,
    start: u32,
    shape: Option<(u16, u16)>,
    result: Vec<Column>,
    columns: Vec<Column>,
    /// Reads the first factor.
    first_factor: bool,
    /// After its issue and outside program order.
    pub(super) later: bool,
    pub(super) flags: Vec<&'static str>,
    /// Numbers of loads whose registers have all been read by now; no instruction of its own.
    spent: Vec<usize>,
}

impl Effect {
    /// An instruction that touches nothing yet.
    fn of(instruction: usize, op: &Tcgen05) -> Effect {
        Effect {
            instruction,
            op: op.clone(),
            accumulator: None,
            start: 0,
            shape: None,
            result: Vec::new(),
            columns: Vec::new(),
            first_factor: false,
            later: false,
            flags: Vec::new(),
            spent: Vec::new(),
        }
    }

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
        let clash = |a: &Column, b: &Column| shared(a, b) && (a.written || b.written);
        self.columns.iter().any(|a| other.columns.iter().any(|b| clash(a, b)))
    }

    /// Whether this executes before `next` when it is issued before, two products aside.
    pub(super) fn pipelines(&self, next: &Effect) -> bool {
        let pairs = match (&self.op, &next.op) {
            (Tcgen05::Copy { .. }, Tcgen05::Mma(_)) => true,
            (Tcgen05::Shift { .. }, Tcgen05::Mma(_)) => true,
            (Tcgen05::Mma(_), Tcgen05::Shift { .. }) => true,
            (Tcgen05::Shift { .. }, Tcgen05::Copy { shape, .. }) => *shape == CopyShape::S4x256b,
            _ => false,
        };
        pairs && self.later && next.later && self.op.group() == next.op.group()
    }

    /// Both accesses of products that work on as many CTAs.
    pub(super) fn products(&self, next: &Effect) -> bool {
        let both = matches!((&self.op, &next.op), (Tcgen05::Mma(_), Tcgen05::Mma(_)));
        both && self.later && next.later && self.op.group() == next.op.group()
    }

    pub(super) fn same_base(&self, next: &Effect) -> bool {
        let near = self.result.iter().any(|a| next.result.iter().any(|b| a.cta == b.cta));
        near && (self.accumulator, self.start) == (next.accumulator, next.start)
    }

    pub(super) fn same_shape(&self, next: &Effect) -> bool {
        self.same_base(next) && self.shape == next.shape
    }

    pub(super) fn same_cell(&self, next: &Effect) -> bool {
        self.result.iter().any(|a| next.result.iter().any(|b| shared(a, b)))
    }

    pub(super) fn same_kind(&self, next: &Effect) -> bool {
        matches!((&self.op, &next.op), (Tcgen05::Mma(a), Tcgen05::Mma(b)) if a.kind == b.kind)
    }

    /// Whether the registers of that load have all been read here.
    pub(super) fn spends(&self, load: &Effect) -> bool {
        load.later && matches!(load.op, Tcgen05::Load(_)) && self.spent.contains(&load.instruction)
    }

    /// Whether this wait, or this arrival of a commit, comes after the end of an earlier instruction of its thread.
    pub(super) fn follows(&self, earlier: &Effect) -> bool {
        earlier.later
            && self.spent.is_empty()
            && match &self.op {
                Tcgen05::WaitLoad => matches!(earlier.op, Tcgen05::Load(_)),
                Tcgen05::WaitStore => matches!(earlier.op, Tcgen05::Store(_)),
                Tcgen05::Commit(commit) => {
                    let tracked = if commit.reads_only { earlier.first_factor } else { earlier.tensor() };
                    self.later && tracked && Some(commit.group) == earlier.op.group()
                }
                _ => false,
            }
    }

    /// First threads of the CTAs whose tensor memory it touches.
    pub(super) fn ctas(&self) -> Vec<usize> {
        self.columns.iter().map(|c| c.cta).collect()
    }

    /// Columns of allocations: first thread of the CTA, number of the allocation, columns from its start.
    pub(super) fn allocated(&self) -> Vec<(usize, u32, u32)> {
        let of = |c: &Column| match c.block {
            Block::Allocated(slot) => Some((c.cta, slot, c.column + 1)),
            Block::Named(_) => None,
        };
        self.columns.iter().filter_map(of).collect()
    }
}

fn shared(a: &Column, b: &Column) -> bool {
    (a.cta, a.block, a.column) == (b.cta, b.block, b.column) && a.lanes & b.lanes != 0
}

impl Runner<'_> {
    /// Whether the instruction would use what came out of tensor memory.
    pub(super) fn uses_unknown(&self, s: &State, instr: &Instr) -> bool {
        let guard = instr.guard.map_or(0, |g| s.regs[g.reg.index()].1);
        let read = super::operands::needed(&instr.op);
        (read.iter().fold(guard, |d, r| d | s.regs[r.index()].1)) & UNKNOWN != 0
    }

    /// Takes the registers that the whole warp reads off the loads that wrote them; what is overwritten unread stays
    /// unread for ever.
    pub(super) fn reading(&self, s: &mut State, instr: &Instr) {
        if s.unread.is_empty() || s.lanes.active != self.program.threads[self.thread].place.lanes() {
            return;
        }
        let mut read = super::operands::used(&instr.op);
        read.extend(instr.guard.map(|g| g.reg));
        let written = super::operands::written(&instr.op);
        let mut spent = Vec::new();
        for (load, mut left) in std::mem::take(&mut s.unread) {
            left.retain(|r| !read.contains(r));
            if left.is_empty() {
                spent.push(load);
            } else if !left.iter().any(|r| written.contains(r)) {
                s.unread.push((load, left));
            }
        }
        if spent.is_empty() {
            return;
        }
        let mut event = self.event(s, bit(sets::TC_USE), None);
        event.effect = Some(Effect { spent, ..Effect::of(s.instructions, &Tcgen05::WaitLoad) });
        Self::push(s, event);
        s.instructions += 1;
    }

    pub(super) fn tensor(&self, s: &mut State, op: &Tcgen05) -> Result<(), Refusal> {
        let mut effect = Effect::of(s.instructions, op);
        let set = match op {
            Tcgen05::WaitLoad | Tcgen05::WaitStore => sets::TC_WAIT,
            Tcgen05::FenceBefore => sets::TC_BEFORE,
            Tcgen05::FenceAfter => sets::TC_AFTER,
            Tcgen05::Commit(_) => sets::TC_COMMIT,
            _ => sets::TC_ISSUE,
        };
        effect.flags.extend(self.lanes_wrong(s, op));
        let mut issue = self.event(s, bit(set), None);
        issue.effect = Some(effect.clone());
        Self::push(s, issue);
        effect.flags.clear();
        effect.later = true;
        match op {
            Tcgen05::Commit(commit) => self.arrival(s, commit, effect),
            _ if set == sets::TC_ISSUE => self.later(s, op, effect),
            _ => Ok(()),
        }
    }

    /// What is wrong with the lanes that run an instruction.
    pub(super) fn lanes_wrong(&self, s: &State, op: &Tcgen05) -> Option<&'static str> {
        if op.by_one_thread() {
            return (s.lanes.active.count_ones() > 1).then_some(flag::ISSUE);
        }
        let all = self.program.threads[self.thread].place.lanes();
        let fence = matches!(op, Tcgen05::FenceBefore | Tcgen05::FenceAfter);
        (s.lanes.active != all && !fence).then_some(flag::CONVERGED)
    }

    /// One arrival in each CTA the commit names, by rank.
    fn arrival(&self, s: &mut State, commit: &Commit, mut effect: Effect) -> Result<(), Refusal> {
        let (address, mut depends) = self.pointed(s, &commit.addr);
        let wild = || Refusal::Unsupported(format!("a commit to {:?}", commit.addr));
        let range = self.memory.resolve(address, MBARRIER_BYTES).ok_or_else(wild)?;
        let home = self.memory.instances[range.instance].cta;
        if range.offset % MBARRIER_BYTES != 0 || home.is_none() {
            return Err(wild());
        }
        let mut ctas: Vec<Option<usize>> = vec![home];
        let mut wrong = None;
        if let Some(multicast) = commit.multicast {
            let (mask, more) = self.operand(s, multicast.mask);
            depends |= more;
            let members = columns::cluster(self.program, self.thread);
            let bits = low(mask, if multicast.wide { 32 } else { 16 });
            ctas.clear();
            for rank in 0..32 {
                let named = bits >> rank & 1 == 1;
                match members.get(rank) {
                    Some(cta) if named => ctas.push(Some(*cta)),
                    None if named => wrong = Some(flag::TARGET),
                    _ => {}
                }
            }
        }
        effect.flags.extend(wrong);
        for cta in ctas {
            let object = self.memory.instances[range.instance].object;
            let at = self.memory.instances.iter().position(|i| i.object == object && i.cta == cta);
            let range = Range { instance: at.ok_or_else(wild)?, ..range };
            let arrivals = u64::from(s.lanes.active.count_ones());
            let deed = Deed::Add { arrivals, tx: 0, drops: false, must_not_complete: false, reported: None };
            let tags = bit(sets::MBAR) | bit(sets::MBAR_ARRIVE) | bit(sets::TC_ARRIVE);
            let mut e: Event = self.event(s, tags, Some(Scope::Cluster));
            (e.range, e.address) = (Some(range), depends);
            e.count = Some(Count { object: (range.instance, range.offset), deed, wrong });
            e.home = cta;
            e.effect = Some(effect.clone());
            Self::push(s, e);
        }
        Ok(())
    }

    /// Accesses to tensor memory, then reads of shared memory.
    fn later(&self, s: &mut State, op: &Tcgen05, mut effect: Effect) -> Result<(), Refusal> {
        let unknown = |what: &str| Refusal::Unsupported(what.to_owned());
        if let Tcgen05::Mma(mma) = op {
            effect.shape = Some(match mma.shape {
                ProductShape::Tile { m, n } => (m, n),
                ProductShape::Packed(word) => {
                    let bits = u32::try_from(low(self.operand(s, word).0, 32)).unwrap_or(0);
                    let fields = InstructionDescriptor::decode(bits, mma.kind);
                    (fields.m, fields.n)
                }
            });
        }
        let ctas = self.both(op)?;
        let mut quiet = effect.clone();
        let mut all =
            touches(op, effect.shape).ok_or_else(|| unknown("the shape of a tcgen05 instruction"))?;
        let first = all.first().map(|t| t.addr);
        for (number, touch) in all.drain(..).enumerate() {
            let mut columns = self.columns(s, op, &touch, &ctas, &mut effect.flags)?;
            if number == 0
                && let Tcgen05::Mma(mma) = op
            {
                columns.iter_mut().for_each(|c| c.lanes &= !self.masked(s, mma, &ctas, c.cta));
                columns.retain(|c| c.lanes != 0);
                effect.result = columns.clone();
            }
            effect.columns.extend(columns);
        }
        if let (Tcgen05::Mma(_), Some(addr)) = (op, first) {
            (effect.accumulator, effect.start) = self.cell(s, &addr)?;
        }
        (quiet.accumulator, quiet.start) = (effect.accumulator, effect.start);
        quiet.result = effect.result.clone();
        let tensor = if effect.tensor() { bit(sets::TC_TENSOR) } else { 0 };
        let tensor = if matches!(op, Tcgen05::Mma(_)) { tensor | bit(sets::TC_MMA) } else { tensor };
        let mut access = self.event(s, bit(sets::TC_ACCESS) | tensor, None);
        access.effect = Some(effect);
        Self::push(s, access);
        let matrices = match op {
            Tcgen05::Copy { src, .. } => vec![(src, false)],
            Tcgen05::Mma(mma) => match &mma.a {
                Factor::Shared(a) => vec![(a, true), (&mma.b, false)],
                Factor::Tensor(_) => vec![(&mma.b, false)],
            },
            _ => vec![],
        };
        for (matrix, first_factor) in matrices {
            let Descriptor::Range { addr, bytes } = matrix else {
                return Err(unknown("a matrix descriptor in a register"));
            };
            let (range, _) = self.own_bytes(s, addr, *bytes)?;
            let object = self.memory.instances[range.instance].object;
            for cta in &ctas {
                let here = |i: &super::space::Instance| i.object == object && i.cta == Some(*cta);
                let Some(instance) = self.memory.instances.iter().position(here) else { continue };
                let tags = bit(sets::TC_SHARED) | bit(sets::TC_TENSOR) | bit(sets::ASYNC);
                let mut read = self.event(s, tags | bit(sets::M) | bit(sets::R) | bit(sets::WEAK), None);
                read.range = Some(Range { instance, ..range });
                read.home = Some(*cta);
                read.effect = Some(Effect { first_factor, ..quiet.clone() });
                Self::push(s, read);
            }
        }
        if let Tcgen05::Load(load) = op {
            let reduced = load.reduce.as_ref().map(|r| r.dst);
            s.unread.push((s.instructions, load.dst.iter().copied().chain(reduced).collect()));
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

    /// Lanes of the accumulator in a CTA that the product leaves as they are.
    fn masked(&self, s: &State, mma: &Mma, ctas: &[usize], cta: usize) -> u128 {
        let number = |t: usize| self.program.threads[t].place.cta;
        let even = ctas.iter().all(|c| number(*c) >= number(cta));
        let registers = mma.lanes_off.chunks(4).nth(usize::from(!even)).unwrap_or(&[]);
        let words = registers.iter().map(|r| low(self.operand(s, Operand::Reg(*r)).0, 32));
        let all = words.rev().fold(0, |all, word| all << 32 | word);
        if self.rules.masks { all } else { 0 }
    }

    /// The columns behind one address of an instruction, in each CTA.
    fn columns(
        &self,
        s: &State,
        op: &Tcgen05,
        touch: &Touch,
        ctas: &[usize],
        flags: &mut Vec<&'static str>,
    ) -> Result<Vec<Column>, Refusal> {
        let (block, at) = self.cell(s, &touch.addr)?;
        let size = match block {
            Some(Block::Named(object)) => self.program.objects[object.index()].bytes / 4,
            _ => u32::MAX,
        };
        let warp = self.program.threads[self.thread].place.warp % 4;
        let own = 32 * u32::from(warp)..32 * u32::from(warp) + 32;
        let moves = matches!(op, Tcgen05::Load(_) | Tcgen05::Store(_));
        let mut out = Vec::new();
        for cells in &touch.cells {
            let mut lanes = 0u128;
            for lane in cells.lanes.clone().map(|lane| lane + (at >> 16)) {
                if moves && !own.contains(&lane) {
                    flags.push(flag::LANES);
                }
                match lane {
                    0..128 => lanes |= 1 << lane,
                    _ => flags.push(flag::COLUMNS),
                }
            }
            for column in cells.columns.clone().map(|column| column + (at & 0xffff)) {
                if column >= size {
                    flags.push(flag::COLUMNS);
                }
                let Some(block) = block else {
                    flags.push(flag::UNALLOCATED);
                    continue;
                };
                let written = touch.usage != Usage::Read;
                out.extend(ctas.iter().map(|cta| Column { cta: *cta, block, column, lanes, written }));
            }
        }
        Ok(out)
    }

    /// What an address in tensor memory belongs to, with lane and column.
    fn cell(&self, s: &State, addr: &Address) -> Result<(Option<Block>, u32), Refusal> {
        let (address, _) = self.pointed(s, addr);
        let (base, at) = (address >> 32 << 32, u32::try_from(low(address, 32)).unwrap_or(u32::MAX));
        if base == 0 {
            let found = columns::of_column(at & 0xffff);
            let lanes = at >> 16 << 16;
            return Ok(
                found.map_or((None, at), |(slot, column)| (Some(Block::Allocated(slot)), lanes | column))
            );
        }
        let object = self.memory.resolve(base, 0).map(|r| self.memory.instances[r.instance].object);
        match object.filter(|o| self.program.objects[o.index()].space == Space::Tensor) {
            Some(object) => Ok((Some(Block::Named(object)), at)),
            None => Err(Refusal::Unsupported(format!("tensor memory at {addr:?}"))),
        }
    }
}
