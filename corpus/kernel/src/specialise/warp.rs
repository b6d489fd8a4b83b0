//! One warp while it is run ahead: its knowledge, and its items so far.

use super::budget::Budget;
use super::item::{Item, Placed, Trace};
use super::known::classes::Classes;
use super::known::heap::Heap;
use super::known::line::Cone;
use super::known::value::{Base, Val, Why};
use super::launch::{Here, Launch};
use super::need::{Named, Need};
use super::plan::Plan;
use super::registers::Behind;
use super::touch::Mem;
use crate::Refusal;
use crate::ptx::Kernel;
use moire_program::ir::{Guard, Reg};
use moire_program::limits::INSTRUCTIONS;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The data that all warps of a round share.
pub(super) struct Round<'r> {
    pub(super) kernel: &'r Kernel,
    pub(super) launch: &'r Launch,
    /// The stores of all warps in the previous round.
    pub(super) heap: &'r Heap,
    pub(super) budget: &'r Budget,
    /// Whether predicates that depend on data are explored both ways.
    pub(super) choosing: bool,
    /// Whether a comparison of a word of global memory has only the answers that the numbers stored there can give.
    pub(super) counting: bool,
    /// Whether CTAs are named in the order in which a counter gives them numbers (`drawn`).
    pub(super) drawing: bool,
    /// Whether a word of shared memory that nothing writes is data: all that is stored is known.
    pub(super) unset: bool,
    /// What the size of the launch is, if it may be any.
    pub(super) plan: Option<&'r Plan>,
    /// The parameter that a reason named last.
    pub(super) named: &'r RefCell<Option<Named>>,
}

/// The place of the lanes that are together, and the values of registers.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) pc: usize,
    pub(super) active: u32,
    /// The lanes of the warp that have not exited, as far as the order of the run shows it.
    pub(super) alive: u32,
    pub(super) env: Vec<Val>,
    /// Loads from tensor memory that are not known to be complete, in order of issue.
    pub(super) loads: Vec<Unread>,
    /// Loops on the way here, by position of their first statement, and the passes so far.
    pub(super) passes: Vec<(usize, u32)>,
    /// For a statement and a loop around it, the passes of the loop when the statement ran first since the loop was entered.
    pub(super) ran: BTreeMap<(usize, usize), u32>,
    /// The last step was a branch back.
    pub(super) back: bool,
    /// Waits on the way here: position of the statement, CTA and address of the mbarrier.
    pub(super) waited: Vec<(usize, u32, u64)>,
    /// What it has waited for before its first `setmaxnreg`.
    pub(super) behind: Behind,
    /// What operations that hand out numbers have read, by their places.
    pub(super) tickets: BTreeMap<usize, Ticket>,
    /// How often a statement has read an answer about other clusters, by its position and the address.
    pub(super) answers: BTreeMap<(usize, u64), usize>,
    /// The numbers that registers of the items may hold, where they are known ([`Round::counting`]).
    pub(super) numbers: BTreeMap<u16, BTreeSet<u64>>,
}

impl State {
    /// A state with no loops behind it.
    pub(super) fn new(pc: usize, active: u32, env: Vec<Val>) -> Self {
        State {
            pc,
            active,
            alive: active,
            env,
            loads: Vec::new(),
            passes: Vec::new(),
            ran: BTreeMap::new(),
            back: false,
            waited: Vec::new(),
            behind: Behind::Barriers(0),
            tickets: BTreeMap::new(),
            answers: BTreeMap::new(),
            numbers: BTreeMap::new(),
        }
    }
}

/// What an operation that hands out numbers has read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ticket {
    /// Where the counter is.
    pub(super) counter: (Mem, u64),
    /// The register of the items, if the exploration knows the number.
    pub(super) slot: Option<u16>,
    /// The lanes that asked.
    pub(super) lanes: u32,
    /// For how many numbers, if that is known.
    pub(super) count: Option<u64>,
    /// The stores that have used it.
    pub(super) spent: BTreeSet<usize>,
}

/// A load from tensor memory of which the warp has not read all registers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Unread {
    /// The register of the items that stands for all of its registers.
    pub(super) stands: Reg,
    /// Those not read yet.
    pub(super) left: Vec<Reg>,
}

/// The `cp.async` of the lanes of a warp so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Copying {
    /// Lanes that copied.
    pub(super) copied: u32,
    /// Lanes that took part in a commit.
    pub(super) committed: Option<u32>,
}

/// A warp that is run ahead.
pub(super) struct Warp<'r> {
    pub(super) round: &'r Round<'r>,
    pub(super) here: Here,
    pub(super) out: Trace,
    pub(super) copying: Copying,
    /// Boxes of tensor maps at unknown coordinates so far.
    pub(super) unknown_boxes: u64,
    /// Choices so far.
    pub(super) choices: u32,
    pub(super) classes: Classes,
    /// Registers of the items, and how far behind an allocation of tensor memory the address is that they surely hold.
    pub(super) allocated: BTreeMap<u16, Option<u64>>,
    /// For which numbers of periods the run stands.
    pub(super) cone: Cone,
    /// Lanes that are together.
    pub(super) together: u32,
    labels: u32,
    /// The registers of the items, by place of the statement, number of the result, and version.
    slots: BTreeMap<(usize, usize, usize), u16>,
}

impl<'r> Warp<'r> {
    pub(super) fn new(round: &'r Round<'r>, here: Here) -> Self {
        let warp = here.cta << 8 | here.warp;
        let (together, out) = (here.lanes, Trace { warp, ..Trace::default() });
        Warp {
            round,
            here,
            out,
            copying: Copying::default(),
            unknown_boxes: 0,
            choices: 0,
            classes: Classes::new(round.kernel),
            allocated: BTreeMap::new(),
            cone: Cone::Outside,
            together,
            labels: 0,
            slots: BTreeMap::new(),
        }
    }

    /// The line of the statement at a place of the kernel; 0 behind the last one.
    pub(super) fn line(&self, pc: usize) -> u32 {
        self.round.kernel.body.get(pc).map_or(0, |s| s.line)
    }

    pub(super) fn abstain<T>(&self, state: &State, what: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal::Abstained { what: what.into(), line: self.line(state.pc) })
    }

    /// A new label.
    pub(super) fn fresh(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// The register for result `n` of the current statement. If a live value still depends on that register, another one.
    pub(super) fn slot(&mut self, state: &State, n: usize) -> Result<Reg, Refusal> {
        let next_pc = (state.pc + 1).min(self.round.kernel.body.len());
        let live = &self.round.kernel.flow().live[next_pc];
        let mut version = 0;
        loop {
            let next = u16::try_from(self.slots.len())
                .map_err(|_| Refusal::Bounded("a warp with too many registers".into()))?;
            let slot = *self.slots.entry((state.pc, n, version)).or_insert(next);
            self.round.budget.looks(live.len());
            if !live.iter().any(|r| state.env[r.index()].uses(slot)) {
                return Ok(Reg(slot));
            }
            version += 1;
        }
    }

    /// A register that belongs to no statement.
    pub(super) fn spare(&mut self, n: usize) -> Result<Reg, Refusal> {
        let end = State::new(self.round.kernel.body.len(), 0, Vec::new());
        self.slot(&end, n)
    }

    /// A register of the items gets an address so far behind an allocation of tensor memory, or something else.
    pub(super) fn allocates(&mut self, register: Reg, behind: Option<u64>) {
        let known = self.allocated.entry(register.0).or_insert(behind);
        *known = known.filter(|_| *known == behind);
    }

    /// The number of registers so far.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Emits an item for the lanes of the mask.
    pub(super) fn emit(&mut self, state: &State, mask: u32, item: Item) -> Result<(), Refusal> {
        if self.out.items.len() >= INSTRUCTIONS {
            let what =
                format!("a warp with more than {INSTRUCTIONS} instructions after its loops are unrolled");
            return Err(Refusal::Bounded(what));
        }
        self.round.budget.item(self.round.heap.size());
        let (lanes, mask) = (mask, (mask != self.together).then_some(mask));
        self.out.items.push(Placed { item, mask, lanes, line: self.line(state.pc) });
        Ok(())
    }

    /// Describes what an unknown value depends on.
    pub(super) fn reason(&self, value: &Val) -> String {
        match value {
            Val::Unknown(Why::Param(n, at)) => self.named(Need::of((*n, *at))),
            Val::Unknown(Why::Word(n, at)) => self.named(Need::behind((*n, *at))),
            Val::Unknown(Why::Loaded(line)) => format!("data loaded in line {line}"),
            Val::Unknown(Why::Computed(line)) => format!("what line {line} computes"),
            Val::Unknown(Why::Ticket { update, .. }) => format!("what line {} reads", self.line(*update)),
            Val::Unknown(Why::Unset) => "a register that was never written".into(),
            Val::Based(Base::Line(_) | Base::Along(..) | Base::Behind(_), _) => {
                "how often a loop runs".into()
            }
            Val::Based(..) => "a value that only the exploration knows".into(),
            Val::Known(_) | Val::Parted(..) => "values that differ from lane to lane".into(),
        }
    }

    /// Names what has no value.
    fn named(&self, need: Need) -> String {
        let named = Named::new(self.round.kernel, need);
        let text = named.text.clone();
        *self.round.named.borrow_mut() = Some(named);
        text
    }

    /// The lanes of the state for which a guard holds.
    pub(super) fn guarded(&self, state: &State, guard: Option<Guard>) -> Result<u32, Refusal> {
        let Some(Guard { reg, negated }) = guard else { return Ok(state.active) };
        match &state.env[reg.index()] {
            Val::Known(l) => {
                let truth = l.truth(state.active);
                Ok(if negated { state.active & !truth } else { truth })
            }
            other => {
                let name = &self.round.kernel.program.threads[0].regs[reg.index()].name;
                self.abstain(state, format!("a predicate ({name}) that depends on {}", self.reason(other)))
            }
        }
    }

    /// Writes a register of a state in the lanes of the mask.
    pub(super) fn set(&self, state: &mut State, reg: Reg, value: Val, mask: u32) {
        if self.round.kernel.flow().matters.get(reg.index()) == Some(&true) {
            let old = std::mem::replace(&mut state.env[reg.index()], Val::Unknown(Why::Unset));
            // Lanes that are not active in the state never matter there: where lanes join, each side has its own state.
            let mask = mask | !state.active;
            state.env[reg.index()] = value.over(mask, &old);
        }
    }
}
