//! Interpreting a thread body: from registers and the values of reads to events with their dependencies.
//!
//! A register may be *pending*: it depends on a read whose source is not chosen. Later events that do not need it are
//! still emitted, with the index they will always have; what needs it waits. A read-modify-write takes two indices
//! whether or not it writes, so that a pending compare-and-swap hides nothing. Branches on pending values end the
//! trace, unless both arms only touch registers. Loops that may spin stop at a *gate* in front of each iteration.

use crate::copies::Copies;
use crate::event::*;
use crate::flow::{Flow, defines, register_only, uses};
use crate::future::Future;
use crate::lanes::Lanes;
use crate::leaf::{arithmetic, compare, sign_extend, truncate};
use crate::mbarrier::{Act, Fault, MbarUse, Object};
use crate::memory::Layout;
use crate::rmw::Update;
use crate::tested::number;
use crate::tile::Token;
use crate::unknown::marked;
use crate::warpgroup::Held;
use moire_program::ir::*;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// What the graph says about a thread's events, by index.
pub(crate) trait View {
    /// Value of a read whose source is chosen.
    fn read(&self, index: u16) -> Option<Value>;
    /// The same of the load at `pc`, of which [`Flow::tests`] says what its value is used for.
    fn loaded(&self, index: u16, _pc: usize) -> Option<Value> {
        self.read(index)
    }
    /// Whether the phase of a barrier event is complete; for `bar.red` with the combined value.
    fn passed(&self, index: u16) -> Option<Value>;
    /// What an operation on an mbarrier hands back, once it has its place.
    fn answer(&self, index: u16) -> Option<Value>;
    /// Whether a read whose source is chosen returns unknown data; it has no value then, and one with a value does not.
    fn unknown(&self, index: u16) -> bool;
    /// State of the gate in front of the loop iteration that starts at this event index.
    fn gate(&self, index: u16) -> Gate;
}

/// Whether an iteration of a loop that may spin is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Gate {
    Closed,
    Open,
    Stuck,
}

/// Why a trace stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TraceEnd {
    Done,
    /// Needs a value that depends on these reads.
    Pending(Deps),
    /// Waits at the barrier event of this index.
    Barrier(u16),
    /// Stands at a closed gate.
    Gate(u16),
    /// Spins for ever from this index on.
    Stuck(u16),
    /// Went around a spin loop for nothing.
    SpinFail,
    /// Went around a changing loop more often than allowed.
    Bound,
    /// Did something no engine models, with the reason and the line.
    Unsupported(String, u32),
}

/// One thread's run under a [`View`].
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// By index; `None` where the event is absent or its address is pending.
    pub(crate) events: Vec<Option<Emitted>>,
    /// Writes that may come: their address is pending, or whether they happen.
    pub(crate) unsure: Vec<Emitted>,
    pub(crate) regs: Vec<RegState>,
    /// What the thread did wrong on its own.
    pub(crate) flags: BTreeSet<&'static str>,
    pub(crate) end: TraceEnd,
    /// Where the trace stopped.
    pub(crate) pc: usize,
    /// What the thread would do on from here, once asked.
    pub(crate) future: OnceCell<Future>,
}

impl Trace {
    /// Whether the thread may do more than its events say.
    pub(crate) fn restless(&self) -> bool {
        matches!(self.end, TraceEnd::Pending(_) | TraceEnd::Barrier(_) | TraceEnd::Gate(_))
            || !self.unsure.is_empty()
    }
}

/// A register: its value unless pending, and what it depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegState {
    pub(crate) value: Option<Value>,
    pub(crate) deps: Deps,
}

/// Switches of the front end, taken from the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrontEnd {
    /// A bug planted for tests.
    pub(crate) planted: Option<crate::planted::Planted>,
    /// Q2=A: a 128-bit load or store is one operation.
    pub(crate) wide_whole: bool,
    /// Q16=B: a failed cas writes the old value back.
    pub(crate) cas_writes_back: bool,
    /// Q14=B: control dependencies end at reconvergence.
    pub(crate) reconverging: bool,
    /// TQ21=B: lanes of an accumulator that are masked off count as written.
    pub(crate) masked_too: bool,
    /// TOKIF=B: of the tokens an `if` yields both arms count.
    pub(crate) both_arms: bool,
    /// Iterations of a changing loop.
    pub(crate) loop_bound: u32,
}

pub(crate) struct Machine<'a, V> {
    pub(crate) program: &'a Program,
    pub(crate) layout: &'a Layout,
    pub(crate) thread: ThreadId,
    pub(crate) front: FrontEnd,
    pub(crate) view: &'a V,
    pub(crate) events: Vec<Option<Emitted>>,
    pub(crate) unsure: Vec<Emitted>,
    pub(crate) regs: Vec<RegState>,
    control: Vec<(Deps, usize)>,
    pub(crate) unit: u16,
    pub(crate) lanes: Lanes,
    pub(crate) copies: Copies,
    pub(crate) held: Held,
    /// Whether the thread has warpgroup products.
    pub(crate) warpgroup: bool,
    pub(crate) flags: BTreeSet<&'static str>,
    /// Loads from tensor memory: their accesses, registers nobody has read yet.
    pub(crate) loads: Vec<(u16, Vec<Reg>)>,
    /// What tokens stand for.
    pub(crate) tokens: BTreeMap<Reg, Token>,
}

/// Head, events before the iteration, live registers at its start, and those of them that differ among lanes.
type Snapshot = (usize, usize, Vec<(Reg, RegState)>, Vec<(Reg, Box<[Value; 32]>)>);

/// Runs `thread` as far as the view allows.
pub(crate) fn run<V: View>(
    program: &Program,
    layout: &Layout,
    flow: &Flow,
    thread: ThreadId,
    front: FrontEnd,
    view: &V,
) -> Trace {
    let code = &program.threads[thread.index()];
    let initial = |r: &RegDecl| match r.init {
        RegInit::Value(v) => v,
        RegInit::Address(s) => layout.address(program, s, thread),
        RegInit::Lane => Value::from(code.place.lane.unwrap_or(0)),
    };
    let regs = code.regs.iter().map(|r| RegState { value: Some(initial(r)), deps: [0; 4] }).collect();
    let mut m = Machine {
        program,
        layout,
        thread,
        front,
        view,
        events: Vec::new(),
        unsure: Vec::new(),
        regs,
        control: Vec::new(),
        unit: 0,
        lanes: Lanes::new(code),
        copies: Copies::default(),
        held: Held::default(),
        warpgroup: code.body.iter().any(|i| matches!(i.op, Op::Wgmma(_))),
        flags: BTreeSet::new(),
        loads: Vec::new(),
        tokens: BTreeMap::new(),
    };
    let (end, pc) = m.walk(flow);
    let end = m.resolved(end);
    m.exit(&end);
    Trace {
        events: m.events,
        unsure: m.unsure,
        regs: m.regs,
        flags: m.flags,
        end,
        pc,
        future: OnceCell::new(),
    }
}

pub(crate) enum Step {
    Next,
    Jump(usize),
    Stop(TraceEnd),
}

impl<V: View> Machine<'_, V> {
    fn walk(&mut self, flow: &Flow) -> (TraceEnd, usize) {
        let body = &self.program.threads[self.thread.index()].body;
        let mut loops: Vec<Snapshot> = Vec::new();
        let mut jumps = vec![0u32; body.len()];
        let mut pc = 0;
        loop {
            pc = self.reconverge(pc);
            if pc >= body.len() {
                return (TraceEnd::Done, body.len());
            }
            self.control.retain(|c| !self.front.reconverging || c.1 != pc);
            if flow.spin_head[pc]
                && let Some(end) = self.enter_loop(flow, pc, &mut loops)
            {
                return (end, pc);
            }
            let next = match self.step(flow, &body[pc], pc) {
                Step::Next => pc + 1,
                Step::Jump(target) => target,
                Step::Stop(end) => return (end, pc),
            };
            if self.events.len() > THREAD_EVENTS - 8 {
                let reason = format!("a thread with more than {} events", THREAD_EVENTS - 8);
                return (TraceEnd::Unsupported(reason, body[pc].line), pc);
            }
            if next <= pc {
                jumps[pc] += 1;
                if self.spun(next, &loops) {
                    return (TraceEnd::SpinFail, pc);
                }
                if jumps[pc] > self.front.loop_bound {
                    return (TraceEnd::Bound, pc);
                }
            }
            pc = next;
        }
    }

    fn enter_loop(&mut self, flow: &Flow, head: usize, loops: &mut Vec<Snapshot>) -> Option<TraceEnd> {
        let line = self.program.threads[self.thread.index()].body[head].line;
        if let Err(end) = self.may_wait(line) {
            return Some(end);
        }
        let index = u16::try_from(self.events.len()).unwrap_or(u16::MAX);
        match self.view.gate(index) {
            Gate::Closed => return Some(TraceEnd::Gate(index)),
            Gate::Stuck => return Some(TraceEnd::Stuck(index)),
            Gate::Open => {}
        }
        let live = flow.live(head).map(|r| (r, self.regs[r.index()])).collect();
        loops.retain(|l| l.0 != head);
        let spread = self.lanes.kept(flow.live(head));
        loops.push((head, self.events.len(), live, spread));
        None
    }

    /// Whether the iteration that ends by jumping to `head` changed nothing.
    fn spun(&self, head: usize, loops: &[Snapshot]) -> bool {
        let Some((_, since, live, spread)) = loops.iter().find(|l| l.0 == head) else { return false };
        if *spread != self.lanes.kept(live.iter().map(|l| l.0)) {
            return false;
        }
        let idle = |kind: Kind| match kind {
            Kind::Read | Kind::Fence => true,
            Kind::Mbarrier(u) => matches!(u.act, Act::Wait { .. }),
            Kind::Write | Kind::Barrier(_) | Kind::Allocator(_) => false,
        };
        let silent = self.events[*since..].iter().flatten().all(|e| idle(e.kind) && e.tensor.is_none());
        // What may be a write may change something.
        let unsure = self.unsure.iter().any(|e| usize::from(e.index) >= *since);
        let same = |(r, was): &(Reg, RegState)| {
            let now = self.regs[r.index()];
            (was.value.is_some() || marked(&was.deps))
                && (now.value, marked(&now.deps)) == (was.value, marked(&was.deps))
        };
        silent && !unsure && live.iter().all(same)
    }

    fn step(&mut self, flow: &Flow, instr: &Instr, pc: usize) -> Step {
        if let Some(guard) = instr.guard {
            if let Some(taken) = self.split(guard) {
                return self.diverge(flow, instr, pc, taken);
            }
            let state = self.operand(Operand::Reg(guard.reg));
            match state.value.filter(|_| !marked(&state.deps)) {
                // A predicated register instruction is a selection: a data dependency, whatever the predicate is.
                value if register_only(&instr.op) => {
                    let read = uses(instr).into_iter().chain(defines(&instr.op));
                    let deps = read.fold(state.deps, |d, r| join(d, self.regs[r.index()].deps));
                    match value {
                        None => self.blur(&defines(&instr.op), deps),
                        Some(v) if (v != 0) != guard.negated => self.register_step(&instr.op),
                        Some(_) => {}
                    }
                    for r in defines(&instr.op) {
                        self.regs[r.index()].deps = deps;
                    }
                    return Step::Next;
                }
                None => return self.branch_on_pending(flow, pc, state.deps),
                Some(v) => {
                    if state.deps != [0; 4] {
                        let until = if matches!(instr.op, Op::Bra { .. } | Op::Exit) {
                            flow.reconverge[pc]
                        } else {
                            pc + 1
                        };
                        self.control.push((state.deps, until));
                    }
                    if (v != 0) == guard.negated {
                        return Step::Next;
                    }
                }
            }
        }
        self.guard_registers(instr);
        self.consume(instr, pc);
        match &instr.op {
            Op::Bra { target } => Step::Jump(*target),
            Op::Exit => Step::Jump(self.leave().unwrap_or(usize::MAX)),
            op if register_only(op) => {
                self.register_step(op);
                Step::Next
            }
            _ => match self.operation(instr, pc) {
                Ok(()) => Step::Next,
                Err(end) => Step::Stop(end),
            },
        }
    }

    /// Both arms only touch registers: go on behind them with those registers pending.
    fn branch_on_pending(&mut self, flow: &Flow, pc: usize, deps: Deps) -> Step {
        let Some(defined) = &flow.quiet[pc] else {
            if self.front.reconverging {
                let line = self.program.threads[self.thread.index()].body[pc].line;
                let reason = "Q14=B with memory operations under a branch on an undecided value".to_owned();
                return Step::Stop(TraceEnd::Unsupported(reason, line));
            }
            return Step::Stop(TraceEnd::Pending(deps));
        };
        self.blur(defined, deps);
        self.control.push((deps, flow.reconverge[pc]));
        Step::Jump(flow.reconverge[pc])
    }

    fn blur(&mut self, regs: &[Reg], deps: Deps) {
        for r in regs {
            let old = self.regs[r.index()].deps;
            self.regs[r.index()] = RegState { value: None, deps: join(old, deps) };
        }
    }

    pub(crate) fn operand(&self, operand: Operand) -> RegState {
        match operand {
            Operand::Reg(r) => {
                let state = self.regs[r.index()];
                RegState { value: self.lanes.value(r).or(state.value), deps: state.deps }
            }
            #[allow(clippy::cast_sign_loss, reason = "an immediate is a bit pattern")]
            Operand::Imm(v) => RegState { value: Some(v as Value), deps: [0; 4] },
            Operand::Address(s) => {
                RegState { value: Some(self.layout.address(self.program, s, self.thread)), deps: [0; 4] }
            }
        }
    }

    pub(crate) fn registers(&mut self, op: &Op) {
        self.compute(op);
        self.veil(&defines(op));
    }

    fn compute(&mut self, op: &Op) {
        let two = |f: &dyn Fn(Value, Value) -> Value, a: RegState, b: RegState| RegState {
            value: a.value.zip(b.value).map(|(a, b)| f(a, b)),
            deps: join(a.deps, b.deps),
        };
        match op {
            Op::Mov { ty, dst, src } => {
                let s = self.operand(*src);
                self.regs[dst.index()] =
                    RegState { value: s.value.map(|v| truncate(v, ty.bytes() * 8)), deps: s.deps };
            }
            Op::Alu { op, ty, dst, a, b } => {
                let (a, b) = (self.operand(*a), self.operand(*b));
                self.regs[dst.index()] = two(&|a, b| arithmetic(*op, *ty, a, b), a, b);
            }
            Op::Setp { op, ty, dst, a, b } => {
                let (a, b) = (self.operand(*a), self.operand(*b));
                self.regs[dst.index()] =
                    two(&|a, b| Value::from(compare(*op, number(*ty, a), number(*ty, b))), a, b);
            }
            Op::Selp { ty, dst, a, b, p } => {
                let p = self.operand(Operand::Reg(*p));
                let (a, b) = (self.operand(*a), self.operand(*b));
                let chosen = p.value.map(|p| if p != 0 { a } else { b });
                let value = chosen.and_then(|c| c.value).map(|v| truncate(v, ty.bytes() * 8));
                let deps = join(p.deps, join(a.deps, b.deps));
                self.regs[dst.index()] = RegState { value, deps };
            }
            Op::Mapa { dst, src, rank, .. } => {
                let (src, rank) = (self.operand(*src), self.operand(*rank));
                // A rank or an address without a CTA gives an address that hits nothing.
                let map =
                    |a, r| self.layout.mapped(self.program, a, truncate(r, 32), self.thread).unwrap_or(0);
                self.regs[dst.index()] = two(&map, src, rank);
            }
            Op::Control(Control::Elect { dst, pred, mask }) => {
                let mask = self.operand(*mask);
                // An empty mask elects nobody.
                let leader = mask.value.map(|m| Value::from(truncate(m, 32).trailing_zeros()));
                let own = Value::from(self.lanes.looked_at());
                let is = leader.map(|l| Value::from(l == own));
                self.regs[pred.index()] = RegState { value: is, deps: mask.deps };
                if let Some(dst) = dst {
                    self.regs[dst.index()] = RegState { value: leader, deps: mask.deps };
                }
            }
            _ => {}
        }
    }

    fn control(&self, reconverging: bool, pc: usize) -> Deps {
        let kept = self.control.iter().filter(|c| !reconverging || c.1 > pc);
        kept.fold([0; 4], |d, c| join(d, c.0))
    }

    pub(crate) fn blank(
        &self,
        instr: &Instr,
        pc: usize,
        kind: Kind,
        labels: u128,
        scope: Option<Scope>,
    ) -> Emitted {
        let host = if self.program.threads[self.thread.index()].place.host {
            1 << moire_cat::vocabulary::sets::HOST
        } else {
            0
        };
        Emitted {
            index: u16::try_from(self.events.len()).unwrap_or(u16::MAX),
            pc,
            line: instr.line,
            kind,
            access: None,
            value: None,
            labels: labels | host,
            scope,
            addr: [0; 4],
            data: [0; 4],
            ctrl: self.control(false, pc),
            ctrl_reconv: self.control(true, pc),
            mate: None,
            rmw_dep: false,
            unit: self.unit,
            detached: false,
            reaches: None,
            home: None,
            owner: None,
            copy: None,
            covers: None,
            tensor: None,
            token: [0; 4],
            token_direct: [0; 4],
            lanes: self.lanes.active,
            arms: self.lanes.arms.clone(),
        }
    }

    pub(crate) fn operation(&mut self, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        self.unit += 1;
        self.known(instr)?;
        self.agreed(instr)?;
        let done = self.emit(instr, pc);
        for reg in defines(&instr.op) {
            self.lanes.set(reg);
        }
        done
    }

    fn emit(&mut self, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        match &instr.op {
            Op::Fence { order, scope } => {
                let event = self.blank(instr, pc, Kind::Fence, fence_labels(*order, *scope), Some(*scope));
                self.events.push(Some(event));
                Ok(())
            }
            Op::ProxyFence(kinds) => {
                let event = self.blank(instr, pc, Kind::Fence, proxy_fence_labels(kinds), None);
                self.events.push(Some(event));
                Ok(())
            }
            Op::Load { order, proxy, space, ty, dst, addr } => {
                let (labels, scope) = load_labels(*order, *proxy);
                self.load(instr, pc, (labels, scope), *space, *ty, dst, addr)
            }
            Op::Store { order, proxy, space, ty, addr, src } => {
                let (labels, scope) = store_labels(*order, *proxy);
                self.store(instr, pc, (labels, scope), *space, *ty, src, addr)
            }
            Op::Rmw { .. } | Op::MultimemRed { .. } if self.lanes.count() > 1 => {
                let what = "a read-modify-write by several lanes at once";
                Err(TraceEnd::Unsupported(what.into(), instr.line))
            }
            Op::Rmw { red, order, scope, proxy, space, op, ty, dst, addr, a, b } => {
                let labels = rmw_labels(*order, *scope, *proxy, *red);
                let update = Update { labels, scope: *scope, space: *space, op: *op, ty: *ty, a: *a, b: *b };
                let base = self.address(addr);
                self.update(instr, pc, &update, base, *dst)
            }
            Op::MultimemLoad { order, op, ty, dst, addr } => {
                self.multimem_load(instr, pc, *order, *op, *ty, *dst, addr)
            }
            Op::MultimemStore { order, ty, addr, src } => {
                let (labels, scope) = store_labels(*order, Proxy::Generic);
                for base in self.multimem(addr, instr)? {
                    self.element(instr, pc, (labels, scope), Space::Generic, base, 0, ty.bytes(), *src)?;
                }
                Ok(())
            }
            Op::MultimemRed { order, scope, op, ty, addr, src } => {
                let labels = rmw_labels(*order, *scope, Proxy::Generic, true);
                let update = Update {
                    labels,
                    scope: *scope,
                    space: Space::Generic,
                    op: *op,
                    ty: *ty,
                    a: *src,
                    b: None,
                };
                for base in self.multimem(addr, instr)? {
                    self.update(instr, pc, &update, base, None)?;
                }
                Ok(())
            }
            Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } => {
                self.barrier(instr, pc)
            }
            Op::Mbarrier(m) => self.mbarrier(m, instr, pc),
            Op::MbarrierInitFence => {
                let event = self.blank(instr, pc, Kind::Fence, init_fence_labels(), None);
                self.events.push(Some(event));
                Ok(())
            }
            Op::Tcgen05(op) => self.tensor(op, instr, pc),
            Op::AsyncCopy(op) => self.copy(op, instr, pc),
            Op::Wgmma(op) => self.wgmma(op, instr, pc),
            Op::ProxyOrder(op) => self.proxy_order(op, instr, pc),
            Op::Tile(op) => self.tile(op, instr, pc),
            _ => self.launch_control(instr, pc),
        }
    }

    fn mbarrier(&mut self, m: &Mbarrier, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let base = self.address(&m.addr);
        let Some(address) = base.value else { return Err(TraceEnd::Pending(base.deps)) };
        let wild = |why: &str| TraceEnd::Unsupported(why.into(), instr.line);
        let access = self.layout.locate(self.program, address, MBARRIER_BYTES);
        let access = access.ok_or_else(|| wild("an mbarrier outside every object"))?;
        let home = self.layout.instances[access.instance as usize];
        if self.program.objects[home.object.index()].space != Space::SharedCta {
            return Err(wild("an mbarrier outside shared memory"));
        }
        if access.offset % MBARRIER_BYTES != 0 {
            return Err(wild("an mbarrier that is not aligned to 8 bytes"));
        }
        let here = self.program.threads[self.thread.index()].place;
        let local = home.owner.is_some_and(|o| self.program.threads[o.index()].place.same_cta(&here));
        let (mut act, mut fault, deps) = self.act(m)?;
        let takes_remote = match &m.op {
            MbarrierOp::Arrive(a) => a.dst.is_none() && m.space != Space::SharedCta,
            MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => m.space != Space::SharedCta,
            _ => false,
        };
        if !local && !takes_remote {
            fault = Some(Fault::Target);
            act = act.lost();
        }
        let object = Object { instance: access.instance, offset: access.offset };
        let (labels, scope) = mbarrier_labels(&m.op, act);
        let mut event = self.blank(instr, pc, Kind::Mbarrier(MbarUse { object, act, fault }), labels, scope);
        event.access = Some(access);
        event.addr = base.deps;
        event.data = deps;
        let index = event.index;
        self.events.push(Some(event));
        if let Some(dst) = m.dst() {
            self.regs[dst.index()] = RegState { value: self.view.answer(index), deps: dep(index) };
        }
        Ok(())
    }

    /// The effect of an mbarrier instruction, what is wrong with its operands, and what they depend on.
    fn act(&self, m: &Mbarrier) -> Result<(Act, Option<Fault>, Deps), TraceEnd> {
        let mut deps = [0; 4];
        let mut known = |o: Operand| {
            let state = self.operand(o);
            deps = join(deps, state.deps);
            state.value.map(|v| truncate(v, 32)).ok_or(TraceEnd::Pending(state.deps))
        };
        let most = Value::from(MBARRIER_COUNT);
        let mut fault = None;
        let mut fits = |v: Value, least: Value| {
            if v < least || v > most {
                fault = Some(Fault::Range);
            }
            u32::try_from(v.clamp(least, most)).unwrap_or(MBARRIER_COUNT)
        };
        let lanes = self.lanes.count();
        let add = |arrivals, tx| Act::Add { arrivals, tx, drops: false, no_complete: false, returns: false };
        let act = match &m.op {
            MbarrierOp::Init { count } => Act::Init { count: fits(known(*count)?, 1) },
            MbarrierOp::Inval => Act::Inval,
            MbarrierOp::Arrive(a) => Act::Add {
                arrivals: lanes * a.count.map_or(Ok(1), |c| known(c).map(|c| fits(c, 1)))?,
                tx: i64::from(lanes) * a.tx.map_or(Ok(0), |t| known(t).map(|t| i64::from(fits(t, 0))))?,
                drops: a.drop,
                no_complete: a.no_complete,
                returns: a.dst.is_some(),
            },
            MbarrierOp::ExpectTx { bytes, .. } => {
                add(0, i64::from(lanes) * i64::from(fits(known(*bytes)?, 0)))
            }
            MbarrierOp::CompleteTx { bytes, .. } => {
                add(0, -i64::from(lanes) * i64::from(fits(known(*bytes)?, 0)))
            }
            MbarrierOp::Wait(w) => Act::Wait { odd: known(w.phase)? & 1 == 1 },
        };
        if lanes > 1 && act.ends() {
            fault = Some(Fault::Repeated);
        }
        Ok((act, fault, deps))
    }

    fn barrier(&mut self, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let (barrier, deps, relaxed) = self.barrier_use(instr)?;
        if barrier.waits {
            self.may_wait(instr.line)?;
        }
        let mut event = self.blank(instr, pc, Kind::Barrier(barrier), barrier_labels(barrier, relaxed), None);
        event.ctrl = join(event.ctrl, deps);
        let index = event.index;
        self.events.push(Some(event));
        if !barrier.waits {
            return Ok(());
        }
        let Some(value) = self.view.passed(index) else { return Err(TraceEnd::Barrier(index)) };
        if let Op::Bar { kind: BarKind::Red { dst, .. }, .. } = instr.op {
            self.regs[dst.index()] = RegState { value: Some(value), deps: [0; 4] };
        }
        Ok(())
    }

    fn barrier_use(&self, instr: &Instr) -> Result<(BarrierUse, Deps, bool), TraceEnd> {
        let known = |o: Operand| {
            let state = self.operand(o);
            state.value.map(|v| (sign_extend(v, 64), state.deps)).ok_or(TraceEnd::Pending(state.deps))
        };
        let plain = |object, arrives, waits| BarrierUse { object, count: None, arrives, waits, pred: false };
        match &instr.op {
            Op::Bar { kind, id, count, instance } => {
                let (id, mut deps) = known(*id)?;
                let mut total = None;
                if let Some(count) = count {
                    let (count, more) = known(*count)?;
                    total = Some(u32::try_from(count).unwrap_or(u32::MAX));
                    deps = join(deps, more);
                }
                let part = total.filter(|n| {
                    instance.is_none() && *n != crate::barriers::cta_lanes(self.program, self.thread)
                });
                let id = i64::try_from(id).unwrap_or(i64::MAX);
                let object = BarrierObject::Cta { id, instance: *instance, count: part };
                let mut barrier = plain(object, true, *kind != BarKind::Arrive);
                barrier.count = total;
                if let BarKind::Red { pred, .. } = kind {
                    let (value, more) = known(Operand::Reg(pred.reg))?;
                    barrier.pred = (value != 0) != pred.negated;
                    deps = join(deps, more);
                }
                Ok((barrier, deps, false))
            }
            Op::ClusterArrive { relaxed } => {
                Ok((plain(BarrierObject::Cluster, true, false), [0; 4], *relaxed))
            }
            Op::ClusterWait => Ok((plain(BarrierObject::Cluster, false, true), [0; 4], false)),
            Op::WarpSync { mask } => {
                let (mask, deps) = known(*mask)?;
                let mask = u32::try_from(mask & 0xffff_ffff).unwrap_or(u32::MAX);
                Ok((plain(BarrierObject::Warp { mask }, true, true), deps, false))
            }
            _ => Err(TraceEnd::Unsupported("this barrier".into(), instr.line)),
        }
    }
}
