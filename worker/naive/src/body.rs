//! Runs one thread on its own: every path it could take if a read of a cell could return any value ever written there.
//!
//! A path is a list of events with values, and how it ends. Which paths fit together is decided later. A loop iteration
//! is a *spin* if it comes back to its head with the same live registers and without a write or a barrier. The path ends
//! there, and paths that leave the loop hold only the last iteration.
//! (PTX ISA 9.2, 8.2 to 8.9 for events; 9.7 for instructions.)

use super::arith::{bits, low};
use super::book;
use super::event::{Event, Refusal, Stop, UNKNOWN};
use super::lanes::Lanes;
use super::motion::Fleet;
use super::pairs::Events;
use super::space::Range;
use super::state::{Paths, Runner, State};
use super::tags::{bit, proxy_tag, store_tags};
use super::{allocator, copies, exchange, mbarrier, proxies, tensor, tile, waits};
use moire_cat::vocabulary::sets;
use moire_program::barrier_op;
use moire_program::ir::{
    AsyncCopy, BarKind, Control, Exchange, FenceOrder, Guard, Instr, Op, Operand, ProxyFence, Reg, RegInit,
    Tcgen05, ThreadId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Most instructions on one path.
const STEPS: usize = 4_096;
/// Most beginnings of paths that are followed, for each path that the limits allow.
const BEGUN: usize = 32;

impl Runner<'_> {
    /// Every path.
    pub(super) fn run(&self) -> Result<Paths, Refusal> {
        let thread = &self.program.threads[self.thread];
        let start = |init: &RegInit| match init {
            RegInit::Value(v) => *v,
            RegInit::Address(s) => self.memory.base(*s, self.thread),
            RegInit::Lane => u128::from(thread.place.lane().unwrap_or(0)),
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
            // Most beginnings may end at the loop bound and give no path.
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

    /// Counts an instruction, refuses what is not modelled, and checks the registers of products in flight.
    fn admit(&self, s: &mut State, instr: &Instr) -> Result<(), Refusal> {
        s.instructions += 1;
        if s.instructions > STEPS {
            return Err(Refusal::TooMany("instructions of a path"));
        }
        if s.events.len() > 100 {
            return Err(Refusal::TooMany("events of a thread"));
        }
        if !self.only_registers(s, &instr.op) && tensor::uses_unknown(s, instr) {
            return Err(Refusal::Unsupported("the use of unknown data".into()));
        }
        if self.warpgroup() && copies::disturbs(s, instr) {
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
            let only_registers = self.only_registers(&s, &instr.op);
            self.admit(&mut s, instr)?;
            if let Some(taken) = instr.guard.and_then(|g| s.lanes.disagree(g)) {
                if self.parted(&mut s, instr, taken) {
                    continue;
                }
                s.lanes.only(taken);
                s.aside = true;
            }
            if !only_registers
                && !votes(&instr.op)
                && let Some(refusal) = s.lanes.refuse(instr)
            {
                return Err(refusal);
            }
            let more = self.selection(&s, instr);
            let runs = self.guarded(&mut s, instr);
            if runs && (instr.guard.is_none() || !only_registers) {
                tensor::reading(self, &mut s, instr);
            }
            if only_registers {
                self.register_step(&mut s, instr, runs, more);
                continue;
            }
            self.hold(&mut s, instr, runs);
            if runs {
                exchange::whole(self, &mut s, instr, out)?;
            }
            if !runs {
                s.pc += 1;
                continue;
            }
            let Some(on) = self.act(s, instr, todo, out)? else { return Ok(()) };
            s = on;
        }
    }

    /// Executes an instruction that is more than one of registers. None if a choice ends the way here.
    fn act(
        &self,
        mut s: State,
        instr: &Instr,
        todo: &mut Vec<State>,
        out: &mut Paths,
    ) -> Result<Option<State>, Refusal> {
        let ended = |done: Result<(), Refusal>| done.map(|()| None);
        match &instr.op {
            Op::Bra { target } => {
                *s.jumps.entry(s.pc).or_insert(0) += u32::from(*target <= s.pc);
                s.pc = *target;
            }
            Op::Exit => {
                let end = self.program.threads[self.thread].body.len();
                s.pc = s.lanes.exit(s.lanes.active).unwrap_or(end);
            }
            Op::Rmw { .. } | Op::MultimemRed { .. } if s.lanes.active.count_ones() > 1 => {
                return Err(Refusal::Unsupported("a read-modify-write by several lanes".into()));
            }
            Op::Load { .. } | Op::Rmw { .. } | Op::MultimemLoad { .. } | Op::MultimemRed { .. } => {
                return ended(self.read(s, instr, todo));
            }
            Op::AsyncCopy(AsyncCopy::Remote(w)) if w.op.is_some() => {
                return ended(copies::update(self, s, w, todo));
            }
            barrier_op!() => {
                return ended(waits::barrier(self, s, instr, todo, out));
            }
            Op::Mbarrier(_) => return ended(mbarrier::mbarrier(self, s, instr, todo)),
            Op::Tile(op) => return ended(tile::tile(self, s, op, todo)),
            Op::Control(Control::Elect { .. } | Control::Collective(_)) => {
                return ended(exchange::exchange(self, s, instr, todo, out));
            }
            Op::Tcgen05(
                op @ (Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. }),
            ) => {
                return ended(allocator::allocation(self, s, op, todo, out));
            }
            Op::Store { .. }
            | Op::MultimemStore { .. }
            | Op::Fence { .. }
            | Op::ProxyFence(_)
            | Op::MbarrierInitFence
            | Op::Tcgen05(_)
            | Op::AsyncCopy(_)
            | Op::Wgmma(_)
            | Op::ProxyOrder(_)
            | Op::Control(_)
            | Op::Mov { .. }
            | Op::Alu { .. }
            | Op::Setp { .. }
            | Op::Selp { .. }
            | Op::Mapa { .. } => {
                self.effect(&mut s, instr)?;
                super::operands::written(&instr.op).into_iter().for_each(|r| s.lanes.assigned(r));
                s.pc += 1;
            }
            Op::Book(_) => {
                self.effect(&mut s, instr)?;
                s.pc += 1;
            }
        }
        Ok(Some(s))
    }

    /// A register instruction; `more` are the dependencies that its guard adds.
    fn register_step(&self, s: &mut State, instr: &Instr, runs: bool, more: Events) {
        if runs {
            self.each_lane(s, instr);
        }
        for target in super::operands::written(&instr.op) {
            s.regs[target.index()].1 |= more;
        }
        s.pc += 1;
    }

    /// Whether an instruction touches nothing but registers of this thread.
    pub(super) fn only_registers(&self, s: &State, op: &Op) -> bool {
        moire_program::registers::only_registers(op) && !exchange::waits(self, s, op)
    }

    /// Whether a thread may have to wait at a place: for a barrier, or in a loop.
    fn may_wait(&self, body: &[Instr], pc: usize) -> bool {
        let op = body.get(pc).map(|i| &i.op);
        if let Some(Op::Bar { kind, .. }) = op {
            return *kind != BarKind::Arrive;
        }
        matches!(op, Some(Op::ClusterWait | Op::WarpSync { .. })) || self.flow.heads.contains_key(&pc)
    }

    /// Evaluates the guard. In front of a register instruction it selects between the old and the new value, a data
    /// dependency; otherwise it is a branch around its instruction, and what follows is control dependent on it.
    fn guarded(&self, s: &mut State, instr: &Instr) -> bool {
        let Some(Guard { reg, negated }) = instr.guard else { return true };
        let (value, deps) = self.operand(s, Operand::Reg(reg));
        let selects = self.only_registers(s, &instr.op);
        if !selects {
            s.control |= deps;
            s.open.push((deps, self.flow.meets[&s.pc]));
        }
        (value != 0) != negated
    }

    /// The dependencies that a guard adds to the targets of a register instruction.
    fn selection(&self, s: &State, instr: &Instr) -> Events {
        let old = super::operands::written(&instr.op).iter().fold(0, |d, r| d | s.regs[r.index()].1);
        instr.guard.map_or(0, |g| old | s.regs[g.reg.index()].1 | self.operands(s, &instr.op))
    }

    fn operands(&self, s: &State, op: &Op) -> Events {
        super::operands::used(op).iter().fold(0, |d, r| d | s.regs[r.index()].1)
    }

    /// Whether the path ends here, because it spins or has reached the loop bound.
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
            out.cut.push(std::mem::take(&mut s.events));
            return true;
        }
        s.seen.insert(s.pc, (s.events.len(), s.next, live));
        false
    }

    /// Adds the reads that the rest of the thread, its exit included, has to wait for. An instruction of a barrier, an
    /// mbarrier, a copy or a tensor core is issued in order once the operands it must know are known. A loop is left once
    /// the guard of its branch is known.
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
        let in_order = matches!(
            &instr.op,
            Op::Tcgen05(_)
                | Op::Mbarrier(_)
                | Op::AsyncCopy(_)
                | Op::Wgmma(_)
                | Op::ProxyOrder(_)
                | Op::Control(Control::TryCancel { .. } | Control::Elect { .. } | Control::Collective(_))
                | Op::Bar { .. }
                | Op::WarpSync { .. }
        );
        if in_order {
            let needed = super::operands::needed(&instr.op);
            s.held |= needed.iter().fold(0, |d, r| d | s.regs[r.index()].1) & !UNKNOWN;
        }
    }

    /// Stores and fences.
    pub(super) fn effect(&self, s: &mut State, instr: &Instr) -> Result<(), Refusal> {
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
            Op::Tcgen05(op) => tensor::tensor(self, s, op)?,
            Op::AsyncCopy(op) => copies::copy(self, s, op)?,
            Op::Wgmma(op) => copies::wgmma(self, s, op)?,
            Op::ProxyOrder(op) => proxies::proxies(self, s, op)?,
            Op::Control(control) => self.launch(s, control)?,
            Op::Mov { .. }
            | Op::Alu { .. }
            | Op::Setp { .. }
            | Op::Selp { .. }
            | Op::Mapa { .. }
            | Op::Load { .. }
            | Op::Rmw { .. }
            | Op::MultimemLoad { .. }
            | Op::MultimemRed { .. }
            | Op::Bar { .. }
            | Op::ClusterArrive { .. }
            | Op::ClusterWait
            | Op::WarpSync { .. }
            | Op::Mbarrier(_)
            | Op::Tile(_)
            | Op::Bra { .. }
            | Op::Exit => return Err(Refusal::Unsupported(format!("{:?}", instr.op))),
            Op::Book(told) => book::effect(self, s, told)?,
        }
        Ok(())
    }

    /// Launch control, and what has no meaning here.
    fn launch(&self, s: &mut State, control: &Control) -> Result<(), Refusal> {
        match control {
            Control::TryCancel { multicast, addr, mbarrier, .. } => {
                copies::cancel(self, s, *multicast, addr, mbarrier)?;
            }
            Control::QueryCancel { dst, .. } => {
                dst.iter().flatten().for_each(|r| s.regs[r.index()] = (0, UNKNOWN));
            }
            Control::WaitDependencies => {
                if self.program.starts_early(&self.program.threads[self.thread].place) {
                    let e = self.event(s, bit(sets::GRID_WAIT), None);
                    Self::push(s, e);
                }
            }
            Control::Ignored(_) | Control::LaunchDependents => {}
            Control::Elect { .. } | Control::Collective(_) | Control::Repeat(_) | Control::EndRepeat => {
                return Err(Refusal::Unsupported(control.name().to_owned()));
            }
        }
        Ok(())
    }
}

/// Whether lanes may give different predicates to an instruction.
fn votes(op: &Op) -> bool {
    matches!(op, Op::Control(Control::Collective(c)) if matches!(c.form, Exchange::Vote(_)))
}
