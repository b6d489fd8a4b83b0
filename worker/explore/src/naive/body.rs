//! Runs one thread on its own: every path it could take if a read of a cell could return any value ever written there.
//!
//! A path is a list of events with values, and how it ends. Which paths fit together is decided later. A loop
//! iteration that comes back to its head without a write or a barrier and with the live registers as they were is a
//! *spin*: the path ends there, and paths that leave the loop hold only its last iteration.
//! (PTX ISA 9.2, 8.2 to 8.9 for events; 9.7 for instructions.)

use super::arith::{alu, atomic, bits, compare, low};
use super::flow::Flow;
use super::pairs::{Events, one};
use super::space::{Memory, Range};
use moire_cat::vocabulary::sets;
use moire_program::ir::{
    Address, AtomOp, BarKind, BarRed, FenceOrder, Guard, Instr, LoadOrder, ObjectId, Op, Operand, Program, Proxy, ProxyFence, Reg,
    RegInit, RmwOrder, Scope, StoreOrder, Ty,
};
use std::collections::{BTreeMap, BTreeSet};

/// Values a cell may hold, by cell.
pub(super) type Domain = Vec<BTreeSet<u128>>;

/// What a barrier event takes part in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    Named {
        id: u128,
        instance: Option<u32>,
        count: Option<u128>,
        /// Waits for its phase.
        waits: bool,
        /// `bar.red`: operation, this thread's predicate, and the result the path assumes.
        reduces: Option<(BarRed, bool, u128)>,
    },
    ClusterArrive,
    ClusterWait,
    Warp { mask: u128 },
}

/// One event of a path.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// Position of the instruction in the body.
    pub(super) pc: usize,
    /// Number in the path; a read-modify-write takes two whether or not it writes.
    pub(super) index: u16,
    /// Bit `s` is membership in the vocabulary set `s`.
    pub(super) tags: u64,
    pub(super) scope: Option<Scope>,
    pub(super) range: Option<Range>,
    /// Value read or written, by cell.
    pub(super) cells: Vec<(usize, u128)>,
    /// On the write half of a read-modify-write: its read half, and whether the write needs the value read.
    pub(super) reads_first: Option<(usize, bool)>,
    /// Pieces of one instruction: instruction occurrence and piece.
    pub(super) piece: Option<(usize, usize)>,
    pub(super) address: Events,
    pub(super) data: Events,
    pub(super) control: Events,
    /// Control, up to where the branches meet.
    pub(super) nearby: Events,
    pub(super) barrier: Option<Barrier>,
}

impl Event {
    pub(super) fn is(&self, set: usize) -> bool {
        self.tags >> set & 1 == 1
    }
}

/// How a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stop {
    /// At the exit.
    Done,
    /// Its last event is a barrier event that never completes.
    AtBarrier,
    /// Spins; the events from this one on are one failing iteration.
    Spin(usize),
}

/// One way through a thread.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) events: Vec<Event>,
    /// Reads that decided which way the path went.
    pub(super) control: Events,
    pub(super) regs: Vec<u128>,
    pub(super) stop: Stop,
    /// Number the next event would have (for a spin: the first of the failing iteration).
    pub(super) next: u16,
}

/// Why paths are not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// More paths, events or values than the limits allow.
    TooMany(&'static str),
    /// An address that reaches no object, or an instruction without a meaning here.
    Unsupported(String),
}

/// Switches and limits of the front end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Q2=A: a 128-bit load or store is one operation.
    pub(super) wide_whole: bool,
    /// Q16=B: a failed `cas` writes the old value back.
    pub(super) failed_cas_writes: bool,
    /// Backward jumps of one instruction.
    pub(super) loop_bound: u32,
    /// Paths of one thread.
    pub(super) paths: usize,
}

/// All paths of one thread, and whether some were cut at the loop bound.
#[derive(Default)]
pub(super) struct Paths {
    pub(super) paths: Vec<Path>,
    pub(super) cut: bool,
}

#[derive(Clone)]
struct State {
    pc: usize,
    regs: Vec<(u128, Events)>,
    events: Vec<Event>,
    next: u16,
    control: Events,
    /// Branches still open: reads they depend on, where they meet.
    open: Vec<(Events, usize)>,
    /// By loop head: events then, their next number, live registers then.
    seen: BTreeMap<usize, (usize, u16, Vec<(Reg, u128)>)>,
    jumps: BTreeMap<usize, u32>,
    instructions: usize,
}

/// A scalar piece of an access: its range, cells, and number.
struct Piece {
    range: Range,
    cells: Vec<usize>,
}

/// Runs one thread.
pub(super) struct Runner<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a Memory<'a>,
    pub(super) thread: usize,
    pub(super) flow: &'a Flow,
    pub(super) domain: &'a Domain,
    pub(super) rules: Rules,
}

/// Instructions one path may execute.
const STEPS: usize = 4_096;

impl Runner<'_> {
    /// Every path.
    pub(super) fn run(&self) -> Result<Paths, Refusal> {
        let thread = &self.program.threads[self.thread];
        let start = |init: &RegInit| match init {
            RegInit::Value(v) => *v,
            RegInit::Address(s) => self.memory.base(*s, self.thread),
        };
        let first = State {
            pc: 0,
            regs: thread.regs.iter().map(|r| (start(&r.init), 0)).collect(),
            events: Vec::new(),
            next: 0,
            control: 0,
            open: Vec::new(),
            seen: BTreeMap::new(),
            jumps: BTreeMap::new(),
            instructions: 0,
        };
        let mut out = Paths::default();
        let mut todo = vec![first];
        while let Some(state) = todo.pop() {
            self.advance(state, &mut todo, &mut out)?;
            if out.paths.len() + todo.len() > self.rules.paths {
                return Err(Refusal::TooMany("paths of a thread"));
            }
        }
        Ok(out)
    }

    /// Executes until the path ends or a read gives a choice.
    fn advance(&self, mut s: State, todo: &mut Vec<State>, out: &mut Paths) -> Result<(), Refusal> {
        let body = &self.program.threads[self.thread].body;
        loop {
            let pc = s.pc;
            s.open.retain(|(_, meets)| *meets != pc);
            if self.flow.heads.contains(&pc) && self.arrive_at_head(&mut s, out) {
                return Ok(());
            }
            let Some(instr) = body.get(pc) else {
                self.end(s, Stop::Done, out);
                return Ok(());
            };
            s.instructions += 1;
            if s.instructions > STEPS {
                return Err(Refusal::TooMany("instructions of a path"));
            }
            if s.events.len() > 100 {
                return Err(Refusal::TooMany("events of a thread"));
            }
            let more = self.selection(&s, instr);
            let runs = self.guarded(&mut s, instr);
            if matches!(instr.op, Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. }) {
                if runs {
                    self.simple(&mut s, instr)?;
                }
                for target in super::flow::targets(&instr.op) {
                    s.regs[target.index()].1 |= more;
                }
                s.pc += 1;
                continue;
            }
            if !runs {
                s.pc += 1;
                continue;
            }
            match &instr.op {
                Op::Bra { target } => {
                    if *target <= pc {
                        let jumps = s.jumps.entry(pc).or_insert(0);
                        *jumps += 1;
                    }
                    s.pc = *target;
                }
                Op::Exit => s.pc = body.len(),
                Op::Load { .. } | Op::Rmw { .. } | Op::MultimemLoad { .. } | Op::MultimemRed { .. } => {
                    return self.read(s, instr, todo);
                }
                Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } => {
                    return self.barrier(s, instr, todo, out);
                }
                _ => {
                    self.simple(&mut s, instr)?;
                    s.pc += 1;
                }
            }
        }
    }

    /// Evaluates the guard. In front of a register instruction it selects between the old and the new value, a data
    /// dependency; otherwise it is a branch around its instruction, and what follows is control dependent on it.
    fn guarded(&self, s: &mut State, instr: &Instr) -> bool {
        let Some(Guard { reg, negated }) = instr.guard else { return true };
        let (value, deps) = s.regs[reg.index()];
        let selects = matches!(instr.op, Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. });
        if !selects {
            s.control |= deps;
            s.open.push((deps, self.flow.meets[s.pc]));
        }
        (value != 0) != negated
    }

    /// What a register instruction under a guard adds to the dependencies of its target.
    fn selection(&self, s: &State, instr: &Instr) -> Events {
        let old = super::flow::targets(&instr.op).iter().fold(0, |d, r| d | s.regs[r.index()].1);
        instr.guard.map_or(0, |g| old | s.regs[g.reg.index()].1 | self.operands(s, &instr.op))
    }

    fn operands(&self, s: &State, op: &Op) -> Events {
        super::flow::read_registers(op).iter().fold(0, |d, r| d | s.regs[r.index()].1)
    }

    /// Whether the path ends here: it spins, or has gone round too often.
    fn arrive_at_head(&self, s: &mut State, out: &mut Paths) -> bool {
        let live: Vec<(Reg, u128)> = self.flow.live[s.pc].iter().map(|r| (*r, s.regs[r.index()].0)).collect();
        if let Some((since, number, then)) = s.seen.get(&s.pc) {
            let quiet = s.events[*since..].iter().all(|e| !e.is(sets::W) && !e.is(sets::B));
            if quiet && *then == live {
                let (since, number) = (*since, *number);
                self.end(State { next: number, ..s.clone() }, Stop::Spin(since), out);
                return true;
            }
        }
        if s.jumps.values().any(|j| *j > self.rules.loop_bound) {
            out.cut = true;
            return true;
        }
        s.seen.insert(s.pc, (s.events.len(), s.next, live));
        false
    }

    fn end(&self, s: State, stop: Stop, out: &mut Paths) {
        let regs = s.regs.into_iter().map(|r| r.0).collect();
        out.paths.push(Path { events: s.events, control: s.control, regs, stop, next: s.next });
    }

    /// Appends an event; returns its position in the path.
    fn push(s: &mut State, mut e: Event) -> usize {
        e.index = s.next;
        s.next += 1;
        s.events.push(e);
        s.events.len() - 1
    }

    fn operand(&self, s: &State, o: Operand) -> (u128, Events) {
        match o {
            Operand::Reg(r) => s.regs[r.index()],
            Operand::Imm(v) => (u128::from_ne_bytes(v.to_ne_bytes()), 0),
            Operand::Address(symbol) => (self.memory.base(symbol, self.thread), 0),
        }
    }

    /// Register instructions, stores and fences.
    fn simple(&self, s: &mut State, instr: &Instr) -> Result<(), Refusal> {
        match &instr.op {
            Op::Mov { ty, dst, src } => {
                let (v, d) = self.operand(s, *src);
                s.regs[dst.index()] = (low(v, bits(*ty)), d);
            }
            Op::Alu { op, ty, dst, a, b } => {
                let ((a, da), (b, db)) = (self.operand(s, *a), self.operand(s, *b));
                s.regs[dst.index()] = (alu(*op, *ty, a, b), da | db);
            }
            Op::Setp { op, ty, dst, a, b } => {
                let ((a, da), (b, db)) = (self.operand(s, *a), self.operand(s, *b));
                s.regs[dst.index()] = (u128::from(compare(*op, *ty, a, b)), da | db);
            }
            Op::Selp { ty, dst, a, b, p } => {
                let (p, dp) = s.regs[p.index()];
                let ((a, da), (b, db)) = (self.operand(s, *a), self.operand(s, *b));
                let value = low(if p != 0 { a } else { b }, bits(*ty));
                s.regs[dst.index()] = (value, da | db | dp);
            }
            Op::Store { order, proxy, ty, addr, src, .. } => {
                let (tags, scope) = store_tags(*order);
                let mut values = Vec::new();
                for operand in src {
                    let (v, d) = self.operand(s, *operand);
                    values.extend(self.split(*ty, false, v).into_iter().map(|v| (v, d)));
                }
                let (pieces, address) = self.pieces(s, *ty, src.len(), *addr, false, false)?;
                for (i, (piece, (value, data))) in pieces.iter().zip(values).enumerate() {
                    let mut e = self.event(s, tags | bit(sets::W) | bit(sets::M) | proxy_tag(*proxy), scope);
                    (e.address, e.data, e.piece) = (address, data, Some((s.instructions, i)));
                    self.place(&mut e, piece, value);
                    Self::push(s, e);
                }
            }
            Op::MultimemStore { order, ty, addr, src } => {
                let (tags, scope) = store_tags(*order);
                let (value, data) = self.operand(s, *src);
                let (pieces, address) = self.pieces(s, *ty, 1, *addr, true, true)?;
                for (i, piece) in pieces.iter().enumerate() {
                    let mut e = self.event(s, tags | bit(sets::W) | bit(sets::M) | bit(sets::GEN), scope);
                    (e.address, e.data, e.piece) = (address, data, Some((s.instructions, i)));
                    self.place(&mut e, piece, low(value, bits(*ty)));
                    Self::push(s, e);
                }
            }
            Op::Fence { order, scope } => {
                let order = match order {
                    FenceOrder::Acquire => bit(sets::ACQ),
                    FenceOrder::Release => bit(sets::REL),
                    FenceOrder::AcqRel => bit(sets::ACQ_REL),
                    FenceOrder::Sc => bit(sets::SC) | bit(sets::ACQ_REL),
                };
                let tags = bit(sets::F) | bit(sets::MF) | bit(sets::GEN) | order;
                let e = self.event(s, tags, Some(*scope));
                Self::push(s, e);
            }
            Op::ProxyFence(kinds) => {
                let named = kinds.iter().fold(0, |tags, kind| {
                    tags | match kind {
                        ProxyFence::Alias => bit(sets::ALIAS),
                        ProxyFence::Of(proxy) => proxy_tag(*proxy),
                    }
                });
                let e = self.event(s, bit(sets::F) | bit(sets::PF) | named, None);
                Self::push(s, e);
            }
            other => return Err(Refusal::Unsupported(format!("{other:?}"))),
        }
        Ok(())
    }

    /// An event at this point of the path.
    fn event(&self, s: &State, tags: u64, scope: Option<Scope>) -> Event {
        let scope_tag = scope.map_or(0, |scope| {
            bit(match scope {
                Scope::Cta => sets::CTA,
                Scope::Cluster => sets::CLUSTER,
                Scope::Gpu => sets::GPU,
                Scope::Sys => sets::SYS,
            })
        });
        let host = if self.program.threads[self.thread].place.host { bit(sets::HOST) } else { 0 };
        Event {
            pc: s.pc,
            index: 0,
            tags: tags | bit(sets::ANY) | scope_tag | host,
            scope,
            range: None,
            cells: Vec::new(),
            reads_first: None,
            piece: None,
            address: 0,
            data: 0,
            control: s.control,
            nearby: s.open.iter().fold(0, |all, (deps, _)| all | deps),
            barrier: None,
        }
    }

    fn place(&self, e: &mut Event, piece: &Piece, value: u128) {
        e.range = Some(piece.range);
        for cell in &piece.cells {
            let part = self.memory.cells[*cell];
            let shift = 8 * (part.first - piece.range.offset);
            e.cells.push((*cell, low(value >> shift, 8 * part.bytes)));
        }
    }

    /// The scalar values of one element.
    fn split(&self, ty: Ty, rmw: bool, value: u128) -> Vec<u128> {
        let width = bits(ty);
        if ty.packed() || (width == 128 && !rmw && !self.rules.wide_whole) {
            vec![low(value, width / 2), low(value >> (width / 2), width / 2)]
        } else {
            vec![low(value, width)]
        }
    }

    /// The scalar accesses of an instruction in order, and what their address depends on.
    fn pieces(
        &self,
        s: &State,
        ty: Ty,
        elements: usize,
        addr: Address,
        rmw: bool,
        multimem: bool,
    ) -> Result<(Vec<Piece>, Events), Refusal> {
        let per_element = self.split(ty, rmw, 0).len();
        let bytes = ty.bytes() / u32::try_from(per_element).unwrap_or(1);
        let wild = || Refusal::Unsupported(format!("address of {addr:?} in thread {}", self.thread));
        let mut out = Vec::new();
        let deps = match addr.base {
            Operand::Reg(r) => s.regs[r.index()].1,
            Operand::Imm(_) | Operand::Address(_) => 0,
        };
        let offset = i128::from(addr.offset);
        let offset = u128::from_ne_bytes(offset.to_ne_bytes());
        for i in 0..elements * per_element {
            let step = u32::try_from(i).unwrap_or(0) * bytes;
            let virtual_address = self.operand(s, addr.base).0.wrapping_add(offset);
            let virtual_address = low(virtual_address, 64) + u128::from(step);
            let range = self.memory.resolve(virtual_address, bytes).ok_or_else(wild)?;
            let mut ranges = vec![range];
            if multimem {
                let symbol = self.program.symbols.iter().enumerate().find(|(k, _)| *k == range.virt.index());
                let more: Vec<ObjectId> = symbol.map(|(_, s)| s.multimem.clone()).unwrap_or_default();
                for object in more {
                    let twin = self.memory.named(range.virt, object, self.thread, i64::from(range.offset), bytes);
                    ranges.push(twin.ok_or_else(wild)?);
                }
            }
            for range in ranges {
                let cells = self.memory.cells_of(&range).ok_or_else(wild)?;
                out.push(Piece { range, cells });
            }
        }
        Ok((out, deps))
    }

    /// Values a piece may have when read.
    fn candidates(&self, piece: &Piece) -> Vec<u128> {
        let mut values = vec![0];
        for cell in &piece.cells {
            let part = self.memory.cells[*cell];
            let shift = 8 * (part.first - piece.range.offset);
            let longer = values.iter().flat_map(|v| self.domain[*cell].iter().map(move |d| v | d << shift));
            values = longer.collect();
        }
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Loads and atomics: one continuation for each combination of values read.
    fn read(&self, s: State, instr: &Instr, todo: &mut Vec<State>) -> Result<(), Refusal> {
        let (ty, elements, addr, rmw, multimem) = match &instr.op {
            Op::Load { ty, dst, addr, .. } => (*ty, dst.len(), *addr, false, false),
            Op::Rmw { ty, addr, .. } => (*ty, 1, *addr, true, false),
            Op::MultimemLoad { ty, addr, .. } | Op::MultimemRed { ty, addr, .. } => (*ty, 1, *addr, true, true),
            _ => return Ok(()),
        };
        let (pieces, address) = self.pieces(&s, ty, elements, addr, rmw, multimem)?;
        let mut choices: Vec<Vec<u128>> = vec![vec![]];
        for piece in &pieces {
            let values = self.candidates(piece);
            let longer = choices.iter().flat_map(|c| {
                values.iter().map(move |v| {
                    let mut c = c.clone();
                    c.push(*v);
                    c
                })
            });
            choices = longer.collect();
            if choices.len() > self.rules.paths {
                return Err(Refusal::TooMany("values of a read"));
            }
        }
        for values in choices {
            let mut next = s.clone();
            self.perform(&mut next, instr, &pieces, address, &values)?;
            next.pc += 1;
            todo.push(next);
        }
        Ok(())
    }

    fn perform(&self, s: &mut State, instr: &Instr, pieces: &[Piece], address: Events, values: &[u128]) -> Result<(), Refusal> {
        let mut reads = Vec::new();
        for (i, (piece, value)) in pieces.iter().zip(values).enumerate() {
            let (tags, scope) = read_tags(&instr.op);
            let mut e = self.event(s, tags | bit(sets::R) | bit(sets::M), scope);
            (e.address, e.piece) = (address, Some((s.instructions, i)));
            self.place(&mut e, piece, *value);
            let read = Self::push(s, e);
            reads.push(read);
            self.store_back(s, instr, piece, (read, i, *value), address)?;
        }
        let all = reads.iter().fold(0, |deps, r| deps | one(*r));
        match &instr.op {
            Op::Load { ty, dst, .. } => {
                let per = pieces.len() / dst.len();
                for (i, reg) in dst.iter().enumerate() {
                    let value = widen(*ty, join(*ty, &values[i * per..(i + 1) * per]));
                    let deps = reads[i * per..(i + 1) * per].iter().fold(0, |d, r| d | one(*r));
                    s.regs[reg.index()] = (value, deps);
                }
            }
            Op::Rmw { ty, dst: Some(dst), .. } => s.regs[dst.index()] = (widen(*ty, join(*ty, values)), all),
            Op::MultimemLoad { op, ty, dst, .. } => {
                let mut value = values[0];
                for v in &values[1..] {
                    value = atomic(*op, *ty, value, *v).ok_or_else(|| Refusal::Unsupported(format!("{op:?}")))?;
                }
                s.regs[dst.index()] = (value, all);
            }
            _ => {}
        }
        Ok(())
    }

    /// The write half of an atomic, if there is one.
    fn store_back(
        &self,
        s: &mut State,
        instr: &Instr,
        piece: &Piece,
        (read, i, old): (usize, usize, u128),
        address: Events,
    ) -> Result<(), Refusal> {
        let (op, ty, order, scope, a, b, red, proxy) = match &instr.op {
            Op::Rmw { op, ty, order, scope, a, b, red, proxy, .. } => (*op, *ty, *order, *scope, *a, *b, *red, *proxy),
            Op::MultimemRed { op, ty, order, scope, src, .. } => {
                (*op, *ty, *order, *scope, *src, None, true, Proxy::Generic)
            }
            _ => return Ok(()),
        };
        let part = if ty.packed() { Ty::U(16) } else { ty };
        let (a, mut data) = self.operand(s, a);
        let a = self.split(ty, true, a).get(i % 2).copied().unwrap_or(a);
        let new = if op == AtomOp::Cas {
            let (b, deps) = b.map_or((0, 0), |b| self.operand(s, b));
            data |= deps;
            let matches = low(old, bits(part)) == low(a, bits(part));
            match (matches, self.rules.failed_cas_writes) {
                (true, _) => Some(low(b, bits(part))),
                (false, true) => Some(old),
                (false, false) => None,
            }
        } else {
            atomic(op, part, old, a)
        };
        let Some(new) = new else {
            s.next += 1;
            return Ok(());
        };
        let order = match order {
            RmwOrder::Release | RmwOrder::AcqRel => bit(sets::REL),
            RmwOrder::Relaxed | RmwOrder::Acquire => bit(sets::RLX),
        };
        let kind = bit(if red { sets::RED } else { sets::ATOM });
        let tags = order | kind | proxy_tag(proxy) | bit(sets::W) | bit(sets::M);
        let mut e = self.event(s, tags, Some(scope));
        (e.address, e.data, e.piece) = (address, data, Some((s.instructions, i)));
        e.reads_first = Some((read, op != AtomOp::Exch));
        self.place(&mut e, piece, new);
        Self::push(s, e);
        Ok(())
    }

    /// Barriers: passed, or (where they wait) never passed.
    fn barrier(&self, mut s: State, instr: &Instr, todo: &mut Vec<State>, out: &mut Paths) -> Result<(), Refusal> {
        let (tag, barrier, data, waits) = match &instr.op {
            Op::Bar { kind, id, count, instance } => return self.named(s, (*kind, *id, *count, *instance), todo, out),
            Op::ClusterArrive { relaxed } => {
                let relaxed = if *relaxed { bit(sets::CLUSTER_RELAXED) } else { 0 };
                (bit(sets::CLUSTER_ARRIVE) | relaxed, Barrier::ClusterArrive, 0, false)
            }
            Op::ClusterWait => (bit(sets::CLUSTER_WAIT), Barrier::ClusterWait, 0, true),
            Op::WarpSync { mask } => {
                let (mask, data) = self.operand(&s, *mask);
                (bit(sets::WARP_SYNC), Barrier::Warp { mask: low(mask, 32) }, data, true)
            }
            _ => return Ok(()),
        };
        let mut e = self.event(&s, bit(sets::B) | tag, None);
        (e.barrier, e.data) = (Some(barrier), data);
        Self::push(&mut s, e);
        if waits {
            self.end(s.clone(), Stop::AtBarrier, out);
        }
        s.pc += 1;
        todo.push(s);
        Ok(())
    }

    fn named(
        &self,
        s: State,
        (kind, id, count, instance): (BarKind, Operand, Option<Operand>, Option<u32>),
        todo: &mut Vec<State>,
        out: &mut Paths,
    ) -> Result<(), Refusal> {
        let (id, mut data) = self.operand(&s, id);
        let count = count.map(|c| self.operand(&s, c));
        data |= count.map_or(0, |c| c.1);
        let count = count.map(|c| low(c.0, 32));
        let waits = !matches!(kind, BarKind::Arrive);
        let results: Vec<Option<(BarRed, bool, u128)>> = match kind {
            BarKind::Red { op, pred, .. } => {
                let (value, deps) = s.regs[pred.reg.index()];
                data |= deps;
                let mine = (value != 0) != pred.negated;
                let most = if op == BarRed::Popc { self.program.threads.len() } else { 1 };
                (0..=most).map(|v| Some((op, mine, v as u128))).collect()
            }
            BarKind::Sync | BarKind::Arrive => vec![None],
        };
        for (i, reduces) in results.into_iter().enumerate() {
            let mut next = s.clone();
            let tag = if waits { sets::BAR_SYNC } else { sets::BAR_ARRIVE };
            let mut e = self.event(&next, bit(sets::B) | bit(tag), None);
            e.data = data;
            e.barrier = Some(Barrier::Named { id: low(id, 32), instance, count, waits, reduces });
            Self::push(&mut next, e);
            if waits && i == 0 {
                self.end(next.clone(), Stop::AtBarrier, out);
            }
            if let (BarKind::Red { dst, .. }, Some((_, _, value))) = (kind, reduces) {
                next.regs[dst.index()] = (value, data);
            }
            next.pc += 1;
            todo.push(next);
        }
        Ok(())
    }
}

fn join(ty: Ty, parts: &[u128]) -> u128 {
    let width = bits(ty) / u32::try_from(parts.len()).unwrap_or(1);
    parts.iter().rev().fold(0, |value, part| if width >= 128 { *part } else { value << width | part })
}

/// Signed values fill 64-bit registers (9.7.9: `ld` sign-extends to the destination).
fn widen(ty: Ty, value: u128) -> u128 {
    let width = bits(ty);
    let negative = matches!(ty, Ty::S(_)) && width < 64 && value >> (width - 1) & 1 == 1;
    if negative { low(value | (u128::MAX << width), 64) } else { value }
}

fn bit(set: usize) -> u64 {
    1 << set
}

fn proxy_tag(proxy: Proxy) -> u64 {
    bit(match proxy {
        Proxy::Generic => sets::GEN,
        Proxy::Texture => sets::TEX,
        Proxy::Surface => sets::SUR,
        Proxy::Constant => sets::CON,
        Proxy::Async => sets::ASYNC,
        Proxy::Tensormap => sets::TMAP,
    })
}

fn load_tags(order: LoadOrder) -> (u64, Option<Scope>) {
    match order {
        LoadOrder::Weak => (bit(sets::WEAK), None),
        LoadOrder::Relaxed(scope) => (bit(sets::RLX), Some(scope)),
        LoadOrder::Acquire(scope) => (bit(sets::ACQ), Some(scope)),
        LoadOrder::Volatile => (bit(sets::RLX) | bit(sets::VOLATILE), Some(Scope::Sys)),
        LoadOrder::MmioRelaxed => (bit(sets::RLX) | bit(sets::MMIO), Some(Scope::Sys)),
        LoadOrder::MmioAcquire => (bit(sets::ACQ) | bit(sets::MMIO), Some(Scope::Sys)),
    }
}

fn store_tags(order: StoreOrder) -> (u64, Option<Scope>) {
    match order {
        StoreOrder::Weak => (bit(sets::WEAK), None),
        StoreOrder::Relaxed(scope) => (bit(sets::RLX), Some(scope)),
        StoreOrder::Release(scope) => (bit(sets::REL), Some(scope)),
        StoreOrder::Volatile => (bit(sets::RLX) | bit(sets::VOLATILE), Some(Scope::Sys)),
        StoreOrder::MmioRelaxed => (bit(sets::RLX) | bit(sets::MMIO), Some(Scope::Sys)),
        StoreOrder::MmioRelease => (bit(sets::REL) | bit(sets::MMIO), Some(Scope::Sys)),
    }
}

/// Tags and scope of the read an instruction makes.
fn read_tags(op: &Op) -> (u64, Option<Scope>) {
    let half = |order: RmwOrder| match order {
        RmwOrder::Acquire | RmwOrder::AcqRel => bit(sets::ACQ),
        RmwOrder::Relaxed | RmwOrder::Release => bit(sets::RLX),
    };
    match op {
        Op::Load { order, proxy, .. } => {
            let (tags, scope) = load_tags(*order);
            (tags | proxy_tag(*proxy), scope)
        }
        Op::MultimemLoad { order, .. } => {
            let (tags, scope) = load_tags(*order);
            (tags | bit(sets::GEN), scope)
        }
        Op::Rmw { red, order, scope, proxy, .. } => {
            let kind = bit(if *red { sets::RED } else { sets::ATOM });
            (half(*order) | kind | proxy_tag(*proxy), Some(*scope))
        }
        Op::MultimemRed { order, scope, .. } => (half(*order) | bit(sets::RED) | bit(sets::GEN), Some(*scope)),
        _ => (0, None),
    }
}
