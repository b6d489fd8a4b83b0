//! Runs one thread on its own: every path it could take if a read of a cell could return any value ever written there.
//!
//! A path is a list of events with values, and how it ends. Which paths fit together is decided later. A loop
//! iteration that comes back to its head without a write or a barrier and with the live registers as they were is a
//! *spin*: the path ends there, and paths that leave the loop hold only its last iteration.
//! (PTX ISA 9.2, 8.2 to 8.9 for events; 9.7 for instructions.)

use super::allocator::Seize;
use super::arith::{alu, bits, compare, low};
use super::copies::{Fleet, Motion, Sphere};
use super::flow::Flow;
use super::lanes::Lanes;
use super::mbarrier::Count;
use super::pairs::Events;
use super::space::{Memory, Range};
use super::tags::{bit, proxy_tag, store_tags};
use super::tensor::{Effect, UNKNOWN};
use super::tile::Before;
use moire_cat::vocabulary::sets;
use moire_program::ir::{
    AsyncCopy, BarKind, BarRed, Control, FenceOrder, Guard, Instr, Op, Operand, Program, ProxyFence, Reg,
    RegInit, Scope, Tcgen05, ThreadId,
};
use moire_program::registers::only_registers;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

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
    Warp {
        mask: u128,
    },
}

/// One event of a path.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// Position of the instruction in the body.
    pub(super) pc: usize,
    /// Number in the path; a read-modify-write takes two whether or not it writes.
    pub(super) index: u16,
    /// Bit `s` is membership in the vocabulary set `s`.
    pub(super) tags: u128,
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
    /// Reads without which nothing here has been issued; no dependency of any model.
    pub(super) held: Events,
    pub(super) barrier: Option<Barrier>,
    pub(super) count: Option<Count>,
    pub(super) effect: Option<Effect>,
    pub(super) seizes: Option<Seize>,
    /// Of an asynchronous event: a thread of the CTA whose memory it touches.
    pub(super) home: Option<usize>,
    /// Lanes that take part.
    pub(super) lanes: u32,
    /// Partings of the lanes it happens inside of, and which arm.
    pub(super) arms: Vec<(usize, bool)>,
    /// Part in an asynchronous instruction other than of the tensor cores.
    pub(super) motion: Option<Motion>,
    /// Of a proxy fence: what it speaks of, if not of everything.
    pub(super) sphere: Option<Sphere>,
    /// Number of the instruction in its path.
    pub(super) turn: usize,
    /// Of an element of a tile: what came before by tokens, and the nearest of it.
    pub(super) token: Events,
    pub(super) token_nearest: Events,
}

impl Event {
    /// Asynchronous, and so outside program order.
    pub(super) fn loose(&self) -> bool {
        self.effect.as_ref().is_some_and(|e| e.later) || self.motion.as_ref().is_some_and(|m| m.late)
    }

    /// In the other arm of a branch.
    pub(super) fn beside(&self, other: &Event) -> bool {
        self.arms.iter().any(|(parting, arm)| other.arms.contains(&(*parting, !arm)))
    }

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
    pub(super) events: Vec<Rc<Event>>,
    /// Reads that decided which way the path went.
    pub(super) control: Events,
    /// Reads without which the path does not get to its end.
    pub(super) held: Events,
    pub(super) regs: Vec<u128>,
    /// What the thread did wrong on its own.
    pub(super) flags: BTreeSet<&'static str>,
    pub(super) stop: Stop,
    /// Number the next event would have (for a spin: the first of the failing iteration).
    pub(super) next: u16,
}

impl Path {
    /// The events that took place: those of a failing iteration did not.
    pub(super) fn kept(&self) -> &[Rc<Event>] {
        let end = if let Stop::Spin(since) = self.stop { since } else { self.events.len() };
        &self.events[..end]
    }
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
    /// A 128-bit load or store is one operation.
    pub(super) wide_whole: bool,
    /// A failed `cas` writes the old value back.
    pub(super) failed_cas_writes: bool,
    /// TOKIF=B: tokens yielded by both arms of an `if` count.
    pub(super) both_arms: bool,
    /// A product does nothing in lanes of the accumulator that are masked off.
    pub(super) masks: bool,
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

/// At a loop head: events so far, the next number, live registers.
type Visit = (usize, u16, Vec<(Reg, u128)>);

/// A path that is not at its end yet.
#[derive(Clone)]
pub(super) struct State {
    pub(super) pc: usize,
    pub(super) regs: Vec<(u128, Events)>,
    pub(super) events: Vec<Rc<Event>>,
    pub(super) next: u16,
    pub(super) control: Events,
    /// See [`Runner::hold`].
    pub(super) held: Events,
    /// Branches still open: reads they depend on, where they meet.
    pub(super) open: Vec<(Events, usize)>,
    /// By loop head: the latest visit.
    pub(super) seen: BTreeMap<usize, Visit>,
    pub(super) jumps: BTreeMap<usize, u32>,
    pub(super) instructions: usize,
    pub(super) lanes: Lanes,
    /// The instruction runs for some lanes only; the others join again behind it.
    pub(super) aside: bool,
    pub(super) fleet: Fleet,
    pub(super) flags: BTreeSet<&'static str>,
    /// Loads from tensor memory by number, with the registers nobody has read yet.
    pub(super) unread: Vec<(usize, Vec<Reg>)>,
    pub(super) tokens: BTreeMap<Reg, Before>,
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
/// Beginnings of paths that are looked at, for each path there may be.
const BEGUN: usize = 32;

impl Runner<'_> {
    /// Every path.
    pub(super) fn run(&self) -> Result<Paths, Refusal> {
        let thread = &self.program.threads[self.thread];
        let start = |init: &RegInit| match init {
            RegInit::Value(v) => *v,
            RegInit::Address(s) => self.memory.base(*s, self.thread),
            RegInit::Lane => u128::from(thread.place.lane.unwrap_or(0)),
        };
        let first = State {
            pc: 0,
            regs: thread.regs.iter().map(|r| (start(&r.init), 0)).collect(),
            events: Vec::new(),
            next: 0,
            control: 0,
            held: 0,
            open: Vec::new(),
            seen: BTreeMap::new(),
            jumps: BTreeMap::new(),
            instructions: 0,
            lanes: Lanes::of(thread),
            aside: false,
            fleet: Fleet::new(thread.regs.len()),
            flags: BTreeSet::new(),
            unread: Vec::new(),
            tokens: BTreeMap::new(),
        };
        let mut out = Paths::default();
        let (mut todo, mut begun) = (vec![first], 0);
        while let Some(state) = todo.pop() {
            begun += 1;
            // Most of them may lead nowhere: into a loop once too often.
            if begun > BEGUN * self.rules.paths {
                return Err(Refusal::TooMany("beginnings of paths of a thread"));
            }
            self.advance(state, &mut todo, &mut out)?;
            if out.paths.len() + todo.len() > self.rules.paths {
                return Err(Refusal::TooMany("paths of a thread"));
            }
        }
        Ok(out)
    }

    fn warpgroup(&self) -> bool {
        self.program.threads[self.thread].body.iter().any(|i| matches!(i.op, Op::Wgmma(_)))
    }

    fn arrive_at_exit(&self, s: State, out: &mut Paths) -> Result<(), Refusal> {
        let asked = moire_execution::leaf::asked(self.program);
        let unknown =
            |(t, r): &(ThreadId, Reg)| t.index() == self.thread && s.regs[r.index()].1 & UNKNOWN != 0;
        let object = |r: Range| self.memory.instances[r.instance].object;
        let veiled = |e: &Rc<Event>| {
            let about = e.range.is_some_and(|r| asked.objects.contains(&object(r)));
            e.is(sets::W) && about && e.data & UNKNOWN != 0
        };
        if asked.registers.iter().any(unknown) || s.events.iter().any(veiled) {
            return Err(Refusal::Unsupported("a question about unknown data".into()));
        }
        self.end(s, Stop::Done, out);
        Ok(())
    }

    /// Whether the path may go on with an instruction; counts it, and looks at the registers of products in flight.
    fn admit(&self, s: &mut State, instr: &Instr) -> Result<(), Refusal> {
        s.instructions += 1;
        if s.instructions > STEPS {
            return Err(Refusal::TooMany("instructions of a path"));
        }
        if s.events.len() > 100 {
            return Err(Refusal::TooMany("events of a thread"));
        }
        if !only_registers(&instr.op) && self.uses_unknown(s, instr) {
            return Err(Refusal::Unsupported("the use of unknown data".into()));
        }
        if self.warpgroup() && self.meddles(s, instr) {
            s.flags.insert(moire_execution::leaf::flag::REGISTERS);
        }
        Ok(())
    }

    /// Executes until the path ends or a read gives a choice.
    fn advance(&self, mut s: State, todo: &mut Vec<State>, out: &mut Paths) -> Result<(), Refusal> {
        let body = &self.program.threads[self.thread].body;
        loop {
            if std::mem::take(&mut s.aside) {
                s.lanes.again();
            }
            s.pc = s.lanes.meet(s.pc);
            let pc = s.pc;
            s.open.retain(|(_, meets)| *meets != pc);
            if self.may_wait(body, pc) && s.lanes.others_to_run() {
                return Err(Refusal::Unsupported("a wait in one of two arms".into()));
            }
            if self.flow.heads.contains_key(&pc) && self.arrive_at_head(&mut s, out) {
                return Ok(());
            }
            let Some(instr) = body.get(pc) else {
                return self.arrive_at_exit(s, out);
            };
            self.admit(&mut s, instr)?;
            if let Some(taken) = instr.guard.and_then(|g| s.lanes.disagree(g)) {
                if self.parted(&mut s, instr, taken) {
                    continue;
                }
                s.lanes.only(taken);
                s.aside = true;
            }
            if !only_registers(&instr.op)
                && let Some(refusal) = s.lanes.refuse(instr)
            {
                return Err(refusal);
            }
            let more = self.selection(&s, instr);
            let runs = self.guarded(&mut s, instr);
            if runs && (instr.guard.is_none() || !only_registers(&instr.op)) {
                self.reading(&mut s, instr);
            }
            if only_registers(&instr.op) {
                if runs {
                    self.each_lane(&mut s, instr);
                }
                for target in super::operands::written(&instr.op) {
                    s.regs[target.index()].1 |= more;
                }
                s.pc += 1;
                continue;
            }
            self.hold(&mut s, instr, runs);
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
                Op::Exit => s.pc = s.lanes.exit(s.lanes.active).unwrap_or(body.len()),
                Op::Rmw { .. } | Op::MultimemRed { .. } if s.lanes.active.count_ones() > 1 => {
                    return Err(Refusal::Unsupported("a read-modify-write by several lanes".into()));
                }
                Op::Load { .. } | Op::Rmw { .. } | Op::MultimemLoad { .. } | Op::MultimemRed { .. } => {
                    return self.read(s, instr, todo);
                }
                Op::AsyncCopy(AsyncCopy::Remote(w)) if w.op.is_some() => return self.update(s, w, todo),
                Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } => {
                    return self.barrier(s, instr, todo, out);
                }
                Op::Mbarrier(_) | Op::Tile(_) => return self.questions(s, instr, todo),
                op if super::allocator::concerns(op) => return self.allocation(s, instr, todo, out),
                _ => {
                    self.effect(&mut s, instr)?;
                    super::operands::written(&instr.op).into_iter().for_each(|r| s.lanes.assigned(r));
                    s.pc += 1;
                }
            }
        }
    }

    /// What goes on in one way for each answer.
    fn questions(&self, s: State, instr: &Instr, todo: &mut Vec<State>) -> Result<(), Refusal> {
        match instr.op {
            Op::Tile(_) => self.tile(s, instr, todo),
            _ => self.mbarrier(s, instr, todo),
        }
    }

    /// Whether a thread may have to wait at a place: for a barrier, or in a loop.
    fn may_wait(&self, body: &[Instr], pc: usize) -> bool {
        match body.get(pc).map(|i| &i.op) {
            Some(Op::Bar { kind, .. }) => *kind != BarKind::Arrive,
            Some(Op::ClusterWait | Op::WarpSync { .. }) => true,
            _ => self.flow.heads.contains_key(&pc),
        }
    }

    /// Evaluates the guard. In front of a register instruction it selects between the old and the new value, a data
    /// dependency; otherwise it is a branch around its instruction, and what follows is control dependent on it.
    fn guarded(&self, s: &mut State, instr: &Instr) -> bool {
        let Some(Guard { reg, negated }) = instr.guard else { return true };
        let (value, deps) = self.operand(s, Operand::Reg(reg));
        let selects = only_registers(&instr.op);
        if !selects {
            s.control |= deps;
            s.open.push((deps, self.flow.meets[&s.pc]));
        }
        (value != 0) != negated
    }

    /// What a register instruction under a guard adds to the dependencies of its target.
    fn selection(&self, s: &State, instr: &Instr) -> Events {
        let old = super::operands::written(&instr.op).iter().fold(0, |d, r| d | s.regs[r.index()].1);
        instr.guard.map_or(0, |g| old | s.regs[g.reg.index()].1 | self.operands(s, &instr.op))
    }

    fn operands(&self, s: &State, op: &Op) -> Events {
        super::operands::used(op).iter().fold(0, |d, r| d | s.regs[r.index()].1)
    }

    /// Whether the path ends here: it spins, or has gone round too often.
    fn arrive_at_head(&self, s: &mut State, out: &mut Paths) -> bool {
        let used = || self.flow.heads[&s.pc].iter().copied();
        let mut live: Vec<(Reg, u128)> = used().map(|r| (r, s.regs[r.index()].0)).collect();
        live.extend(s.lanes.live(used()));
        if let Some((since, number, then)) = s.seen.get(&s.pc) {
            let acts = |e: &Rc<Event>| {
                e.effect.is_some()
                    || e.motion.is_some()
                    || e.seizes.is_some()
                    || e.is(sets::W)
                    || e.is(sets::B)
                    || (e.is(sets::MBAR) && !e.is(sets::MBAR_WAIT))
            };
            let quiet = !s.events[*since..].iter().any(acts);
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

    pub(super) fn end(&self, mut s: State, stop: Stop, out: &mut Paths) {
        if stop == Stop::Done && self.program.launched {
            let exit = self.event(&s, bit(sets::EXIT), None);
            Self::push(&mut s, exit);
        }
        let regs = s.regs.into_iter().map(|r| if r.1 & UNKNOWN == 0 { r.0 } else { 0 }).collect();
        let (events, flags) = (s.events, s.flags);
        out.paths.push(Path { events, control: s.control, held: s.held, regs, flags, stop, next: s.next });
    }

    /// An instruction of a barrier, an mbarrier, a copy or a tensor core is issued in order, when it is known what it is
    /// about, and a loop is left when it is known that it ends; nothing of the thread comes before that, not even its end.
    fn hold(&self, s: &mut State, instr: &Instr, runs: bool) {
        if let (Op::Bra { .. }, Some(guard)) = (&instr.op, instr.guard) {
            let body = &self.program.threads[self.thread].body;
            let back =
                |(at, i): (usize, &Instr)| at >= s.pc && matches!(i.op, Op::Bra { target } if target <= s.pc);
            if body.iter().enumerate().any(back) {
                s.held |= s.regs[guard.reg.index()].1 & !UNKNOWN;
            }
        }
        if !runs {
            return;
        }
        let stored = match &instr.op {
            Op::Tcgen05(Tcgen05::Store(store)) => store.src.clone(),
            Op::Tcgen05(_) | Op::Mbarrier(_) | Op::AsyncCopy(_) | Op::Wgmma(_) | Op::ProxyOrder(_) => {
                Vec::new()
            }
            Op::Control(Control::TryCancel { .. }) | Op::Bar { .. } | Op::WarpSync { .. } => Vec::new(),
            _ => return,
        };
        let needed = super::operands::needed(&instr.op).into_iter().filter(|r| !stored.contains(r));
        s.held |= needed.fold(0, |d, r| d | s.regs[r.index()].1) & !UNKNOWN;
    }

    /// Appends an event; returns its position in the path.
    pub(super) fn push(s: &mut State, mut e: Event) -> usize {
        e.index = s.next;
        s.next += 1;
        s.events.push(Rc::new(e));
        s.events.len() - 1
    }

    pub(super) fn operand(&self, s: &State, o: Operand) -> (u128, Events) {
        match o {
            Operand::Reg(r) => {
                let (value, deps) = s.regs[r.index()];
                (s.lanes.of_register(r).unwrap_or(value), deps)
            }
            Operand::Imm(v) => (u128::from_ne_bytes(v.to_ne_bytes()), 0),
            Operand::Address(symbol) => (self.memory.base(symbol, self.thread), 0),
        }
    }

    /// Register instructions.
    pub(super) fn registers(&self, s: &mut State, instr: &Instr) {
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
                let (p, dp) = self.operand(s, Operand::Reg(*p));
                let ((a, da), (b, db)) = (self.operand(s, *a), self.operand(s, *b));
                let value = low(if p != 0 { a } else { b }, bits(*ty));
                s.regs[dst.index()] = (value, da | db | dp);
            }
            Op::Mapa { dst, src, rank, .. } => {
                let ((address, da), (rank, dr)) = (self.operand(s, *src), self.operand(s, *rank));
                let mapped = self.memory.mapped(address, low(rank, 32), self.thread);
                s.regs[dst.index()] = (mapped.unwrap_or(0), da | dr);
            }
            Op::Control(Control::Elect { dst, pred, mask }) => {
                let (mask, deps) = self.operand(s, *mask);
                // The lowest lane named; 32 is nobody.
                let leader = (0..32).find(|lane| mask >> lane & 1 == 1).unwrap_or(32u32);
                s.regs[pred.index()] = (u128::from(leader == s.lanes.lane()), deps);
                if let Some(dst) = dst {
                    s.regs[dst.index()] = (u128::from(leader), deps);
                }
            }
            _ => {}
        }
    }

    /// Stores and fences.
    fn effect(&self, s: &mut State, instr: &Instr) -> Result<(), Refusal> {
        match &instr.op {
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
                    self.place(&mut e, piece, (data & UNKNOWN == 0).then_some(value));
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
                    self.place(&mut e, piece, (data & UNKNOWN == 0).then_some(low(value, bits(*ty))));
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
            Op::MbarrierInitFence => {
                let e = self.event(s, bit(sets::F) | bit(sets::MBAR_FENCE), None);
                Self::push(s, e);
            }
            Op::Tcgen05(op) => self.tensor(s, op)?,
            Op::AsyncCopy(op) => self.copy(s, op)?,
            Op::Wgmma(op) => self.wgmma(s, op)?,
            Op::ProxyOrder(op) => self.proxies(s, op)?,
            Op::Control(Control::TryCancel { multicast, addr, mbarrier, .. }) => {
                self.cancel(s, *multicast, addr, mbarrier)?;
            }
            Op::Control(Control::QueryCancel { dst, .. }) => {
                dst.iter().flatten().for_each(|r| s.regs[r.index()] = (0, UNKNOWN));
            }
            Op::Control(Control::Ignored(_) | Control::LaunchDependents | Control::WaitDependencies) => {}
            other => return Err(Refusal::Unsupported(format!("{other:?}"))),
        }
        Ok(())
    }

    /// An event at this point of the path.
    pub(super) fn event(&self, s: &State, tags: u128, scope: Option<Scope>) -> Event {
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
            held: s.held,
            barrier: None,
            count: None,
            effect: None,
            seizes: None,
            home: None,
            lanes: s.lanes.active,
            arms: s.lanes.arms(),
            motion: None,
            sphere: None,
            turn: s.instructions,
            token: 0,
            token_nearest: 0,
        }
    }
}
