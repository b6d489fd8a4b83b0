//! State of a thread while it runs: registers, lanes, events so far; and what all families of instructions share.
//!
//! A register may be *pending*: it depends on a read whose source is not chosen. Later events that do not need it are
//! still emitted, with the index they will always have; what needs it waits. A register that holds unknown data
//! ([`Deps::UNKNOWN`]) has no value either: arithmetic hands the mark on, a store writes it to memory, a load of it marks its
//! register. A branch, an address, a count or a condition that depends on it is an abstention by name.

use super::busy::BusyRegisters;
use super::event::deps::Deps;
use super::event::lanes::LaneInfo;
use super::event::{CtaInfo, Emitted, Family, Kind, Needs, TokenInfo};
use super::groups::Copies;
use super::lanes::Lanes;
use super::layout::{Access, Layout, space_admits};
use super::operands::must_know;
use super::token::Token;
use super::trace::{FrontEnd, RegState, TraceEnd, View};
use moire_cat::vocabulary::sets;
use moire_execution::leaf::truncate;
use moire_program::ir::*;
use std::collections::{BTreeMap, BTreeSet};

/// A thread and all it has done so far.
pub(crate) struct Machine<'a, V> {
    pub(crate) program: &'a Program,
    pub(crate) layout: &'a Layout,
    pub(crate) thread: ThreadId,
    pub(crate) front: FrontEnd,
    pub(crate) view: &'a V,
    pub(crate) events: Vec<Option<Emitted>>,
    /// See [`super::trace::Trace::unsure`].
    pub(crate) unsure: Vec<Emitted>,
    pub(crate) regs: Vec<RegState>,
    /// Control dependencies, each with the position where the arms of its branch meet.
    pub(crate) control: Vec<(Deps, usize)>,
    /// Instructions executed so far: see [`Emitted::unit`].
    pub(crate) unit: u16,
    pub(crate) lanes: Lanes,
    /// Lanes that arrived at the cluster barrier and have not waited since.
    pub(crate) arrived: u32,
    pub(crate) copies: Copies,
    /// Registers of warpgroup products; `None` in a thread without any.
    pub(crate) busy: Option<BusyRegisters>,
    pub(crate) flags: BTreeSet<(&'static str, u32)>,
    /// Loads from tensor memory: their accesses, and those of their registers that nothing has read yet.
    pub(crate) loads: Vec<(u16, Vec<Reg>)>,
    pub(crate) tokens: BTreeMap<Reg, Token>,
}

impl<'a, V: View> Machine<'a, V> {
    /// A thread that has done nothing.
    pub(crate) fn new(
        program: &'a Program,
        layout: &'a Layout,
        thread: ThreadId,
        front: FrontEnd,
        view: &'a V,
    ) -> Self {
        let code = &program.threads[thread.index()];
        let initial = |r: &RegDecl| match r.init {
            RegInit::Value(v) => v,
            RegInit::Address(s) => layout.address(program, s, thread),
            RegInit::Lane => Value::from(code.place.lane().unwrap_or(0)),
        };
        let regs = code.regs.iter().map(|r| RegState::known(initial(r))).collect();
        let products = code.body.iter().any(|i| matches!(i.op, Op::Wgmma(_)));
        Machine {
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
            arrived: 0,
            copies: Copies::default(),
            busy: products.then(BusyRegisters::default),
            flags: BTreeSet::new(),
            loads: Vec::new(),
            tokens: BTreeMap::new(),
        }
    }

    /// Where the thread runs.
    pub(crate) fn place(&self) -> &'a Placement {
        &self.program.threads[self.thread.index()].place
    }

    /// Index of the event that is emitted next.
    pub(crate) fn next_index(&self) -> u16 {
        u16::try_from(self.events.len()).expect("a run ends soon after THREAD_EVENTS events")
    }

    /// Appends an event.
    pub(crate) fn emit(&mut self, event: Emitted) {
        debug_assert_eq!(event.index, self.next_index(), "events are numbered as they come");
        self.events.push(Some(event));
    }

    /// What an operand holds, in the lane looked at.
    pub(crate) fn operand(&self, operand: Operand) -> RegState {
        match operand {
            Operand::Reg(r) => {
                let state = self.regs[r.index()];
                RegState { value: self.lanes.value(r).or(state.value), deps: state.deps }
            }
            #[expect(clippy::cast_sign_loss, reason = "an immediate is a bit pattern")]
            Operand::Imm(v) => RegState { value: Some(v as Value), deps: Deps::NONE },
            Operand::Address(s) => {
                RegState { value: Some(self.layout.address(self.program, s, self.thread)), deps: Deps::NONE }
            }
        }
    }

    /// Control dependencies of an event at `pc`.
    fn control(&self, reconverging: bool, pc: usize) -> Deps {
        let kept = self.control.iter().filter(|c| !reconverging || c.1 > pc);
        kept.fold(Deps::NONE, |d, c| d.with(c.0))
    }

    /// An event of this instruction that has nothing yet but what all have.
    pub(crate) fn blank(
        &self,
        instr: &Instr,
        pc: usize,
        kind: Kind,
        labels: u128,
        scope: Option<Scope>,
    ) -> Emitted {
        let host = u128::from(self.place().host) << sets::HOST;
        Emitted {
            index: self.next_index(),
            unit: self.unit,
            pc,
            line: instr.line,
            kind,
            labels: labels | host,
            scope,
            access: None,
            value: None,
            needs: Needs {
                ctrl: self.control(false, pc),
                ctrl_reconv: self.control(true, pc),
                ..Needs::default()
            },
            mate: None,
            detached: false,
            ctas: CtaInfo::default(),
            lanes: LaneInfo { active: self.lanes.active, arms: self.lanes.arms.clone() },
            family: Family::Plain,
            token: TokenInfo::default(),
        }
    }

    /// The address an operand names.
    pub(crate) fn address(&self, addr: &Address) -> RegState {
        let base = self.operand(addr.base);
        #[expect(clippy::cast_sign_loss, reason = "offsets wrap like addresses do")]
        let offset = i128::from(addr.offset) as Value;
        RegState { value: base.value.map(|v| truncate(v.wrapping_add(offset), 64)), deps: base.deps }
    }

    /// Resolves `base + offset`; `Ok(None)` while pending.
    pub(crate) fn access(
        &mut self,
        instr: &Instr,
        space: Space,
        base: RegState,
        offset: u32,
        bytes: u32,
    ) -> Result<Option<Access>, TraceEnd> {
        let Some(value) = base.value else { return Ok(None) };
        let wild = |why: &str| TraceEnd::Unsupported(why.into(), instr.line);
        let access = self.layout.resolve(self.program, value.wrapping_add(Value::from(offset)), bytes);
        let access = access.ok_or_else(|| wild("an address outside every object, or not aligned"))?;
        let object = self.layout.instances[access.instance].object;
        if !space_admits(space, self.program.objects[object.index()].space) {
            return Err(wild("an address outside the state space of the access"));
        }
        Ok(Some(access))
    }

    /// Emits a write; one whose address is pending, or of which it is not known whether it `exists`, may still come.
    pub(crate) fn write(&mut self, event: Emitted, exists: bool) {
        debug_assert_eq!(event.index, self.next_index(), "events are numbered as they come");
        debug_assert!(event.kind == Kind::Write, "only a write may still come");
        if exists && event.access.is_some() {
            self.events.push(Some(event));
        } else {
            self.unsure.push(event);
            self.events.push(None);
        }
    }

    /// A value that must be known now.
    pub(crate) fn now(&self, operand: Operand) -> Result<Value, TraceEnd> {
        let state = self.operand(operand);
        state.value.ok_or(TraceEnd::Pending(state.deps))
    }

    /// An address that must be known now.
    pub(crate) fn address_now(&self, addr: &Address) -> Result<Value, TraceEnd> {
        let state = self.address(addr);
        state.value.ok_or(TraceEnd::Pending(state.deps))
    }

    /// The end of a trace at something no engine models.
    pub(crate) fn wrong(&self, instr: &Instr, what: &str) -> TraceEnd {
        TraceEnd::Unsupported(what.into(), instr.line)
    }

    /// What the operands of an instruction depend on, data aside.
    pub(crate) fn needs(&self, instr: &Instr) -> Deps {
        must_know(instr).iter().fold(Deps::NONE, |d, r| d.with(self.regs[r.index()].deps))
    }

    /// Stops at an instruction that would have to know unknown data.
    pub(crate) fn known(&self, instr: &Instr) -> Result<(), TraceEnd> {
        let unknown = |state: &RegState| state.deps.unknown();
        if self.regs.iter().any(unknown) && must_know(instr).iter().any(|r| unknown(&self.regs[r.index()])) {
            let what = "an address, a count or a choice that depends on copied or computed data";
            return Err(TraceEnd::Unsupported(what.into(), instr.line));
        }
        Ok(())
    }

    /// A register that holds unknown data has no value.
    pub(crate) fn veil(&mut self, regs: &[Reg]) {
        for r in regs {
            let state = &mut self.regs[r.index()];
            if state.deps.unknown() {
                state.value = None;
            }
        }
    }

    /// Puts unknown data into registers.
    pub(crate) fn forget(&mut self, regs: impl IntoIterator<Item = Reg>) {
        for r in regs {
            self.regs[r.index()] = RegState { value: None, deps: Deps::UNKNOWN };
        }
    }
}
