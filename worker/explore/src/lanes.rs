//! A thread that stands for several lanes of a warp: which of them are active, and registers that differ among them.
//!
//! Lanes run the same code together (PTX ISA 9.2, 9.7.13.14 for `elect.sync`). Where a predicate differs, the lanes for
//! which a branch is not taken go first, then the others, and all go on together where the branch reconverges. That they
//! do is what NVIDIA's compilers arrange and PTX does not promise: to check a program without it, write its lanes as
//! threads of their own. Program order is that of the warp; only the two arms of a branch are not ordered. What
//! single-lane threads do is untouched: they never diverge.
//!
//! A register holds one value, or one for each lane. A value that came from memory or a barrier while some lanes were
//! inactive is not known to the others: their use of it ends the trace by name.

use crate::flow::{Flow, defines, register_only, uses};
use crate::interp::{Machine, RegState, Step, TraceEnd, View};
use moire_program::ir::*;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Values by lane.
type Spread = [Value; 32];

/// The arms of branches an event stands in, outermost first: a number for each time lanes parted, and whether the
/// branch was taken. `None` where all lanes are together.
pub(crate) type Arms = Option<Rc<[(u16, bool)]>>;

/// Whether two events of a thread stand in different arms of one branch.
pub(crate) fn apart(a: &Arms, b: &Arms) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    a.iter().zip(b.iter()).find(|(x, y)| x != y).is_some_and(|(x, y)| x.0 == y.0)
}

/// Lanes that wait for others at a reconvergence point.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Diverged {
    meet: usize,
    /// All that meet there.
    lanes: u32,
    /// Those that run when the active ones have come: from where.
    next: Option<(usize, u32)>,
    /// Number of the parting, where there are two arms.
    number: Option<u16>,
}

/// State of the lanes of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Active lanes, a bit a lane; never none.
    pub(crate) active: u32,
    stack: Vec<Diverged>,
    spread: BTreeMap<Reg, Box<Spread>>,
    /// Lanes that know the value of a register, where not all do.
    known: BTreeMap<Reg, u32>,
    /// The lane whose values operands have.
    focus: Option<u32>,
    /// Partings so far.
    partings: u16,
    /// Arms the active lanes are in.
    pub(crate) arms: Arms,
}

impl Lanes {
    pub(crate) fn new(thread: &Thread) -> Self {
        let active = thread.place.lanes();
        let mut lanes = Lanes {
            active,
            stack: vec![],
            spread: BTreeMap::new(),
            known: BTreeMap::new(),
            focus: None,
            partings: 0,
            arms: None,
        };
        if active.count_ones() > 1 {
            let numbers: Spread = std::array::from_fn(|lane| lane as Value);
            for (n, reg) in thread.regs.iter().enumerate() {
                if reg.init == RegInit::Lane {
                    lanes.spread.insert(Reg(u16::try_from(n).unwrap_or(u16::MAX)), Box::new(numbers));
                }
            }
        }
        lanes
    }

    /// Value of a register in the lane looked at, if it differs among lanes.
    pub(crate) fn value(&self, reg: Reg) -> Option<Value> {
        let lane = self.looked_at().min(31);
        self.spread.get(&reg).map(|s| s[lane as usize])
    }

    /// Whether a register has one value in all active lanes.
    pub(crate) fn uniform(&self, reg: Reg) -> bool {
        let Some(values) = self.spread.get(&reg) else { return true };
        let mut active = values.iter().enumerate().filter(|(lane, _)| self.active >> lane & 1 == 1);
        let first = active.next();
        active.all(|(_, v)| first.is_none_or(|(_, f)| f == v))
    }

    /// Active lanes as a number: how often an instruction that acts for each lane acts.
    pub(crate) fn count(&self) -> u32 {
        self.active.count_ones()
    }

    /// The lane whose values operands have.
    pub(crate) fn looked_at(&self) -> u32 {
        self.focus.unwrap_or(self.active.trailing_zeros())
    }

    /// The registers of these that differ among lanes.
    pub(crate) fn kept(&self, regs: impl Iterator<Item = Reg>) -> Vec<(Reg, Box<Spread>)> {
        if self.spread.is_empty() {
            return vec![];
        }
        regs.filter_map(|r| Some((r, self.spread.get(&r)?.clone()))).collect()
    }

    /// Notes the arms of the active lanes, after a change.
    fn note_arms(&mut self) {
        let arms = self.stack.iter().filter_map(|d| Some((d.number?, d.next.is_none())));
        let arms: Vec<(u16, bool)> = arms.collect();
        self.arms = (!arms.is_empty()).then(|| arms.into());
    }

    /// Whether some lanes still have to run another arm before the active ones can be joined.
    pub(crate) fn held_up(&self) -> bool {
        self.stack.iter().any(|d| d.next.is_some_and(|(from, _)| from != d.meet))
    }

    /// A register was set for the active lanes alike.
    pub(crate) fn set(&mut self, reg: Reg) {
        self.spread.remove(&reg);
        self.known.remove(&reg);
        if let Some(bottom) = self.stack.first()
            && bottom.lanes != self.active
        {
            self.known.insert(reg, self.active);
        }
    }
}

impl<V: View> Machine<'_, V> {
    /// Whether lanes can differ at all.
    fn alone(&self) -> bool {
        self.lanes.active.count_ones() == 1 && self.lanes.stack.is_empty()
    }

    /// Where the trace goes on, when it comes to `pc`: the lanes that wait for this are joined or take their turn.
    pub(crate) fn reconverge(&mut self, mut pc: usize) -> usize {
        while let Some(top) = self.lanes.stack.last_mut()
            && top.meet == pc
        {
            match top.next.take() {
                Some((from, lanes)) => {
                    self.lanes.active = lanes;
                    pc = from;
                }
                None => {
                    self.lanes.active = top.lanes;
                    self.lanes.stack.pop();
                }
            }
            self.lanes.note_arms();
        }
        pc
    }

    /// The active lanes leave the program; where the others go on.
    pub(crate) fn leave(&mut self) -> Option<usize> {
        let gone = self.lanes.active;
        for waiting in &mut self.lanes.stack {
            waiting.lanes &= !gone;
        }
        while let Some(top) = self.lanes.stack.last_mut() {
            if let Some((from, lanes)) = top.next.take() {
                self.lanes.active = lanes;
                self.lanes.note_arms();
                return Some(from);
            }
            let (meet, lanes) = (top.meet, top.lanes);
            self.lanes.stack.pop();
            if lanes != 0 {
                self.lanes.active = lanes;
                self.lanes.note_arms();
                return Some(meet);
            }
        }
        None
    }

    /// The active lanes for which a guard holds, if it holds for some of them only.
    pub(crate) fn split(&self, guard: Guard) -> Option<u32> {
        let values = self.lanes.spread.get(&guard.reg)?;
        let holds = |lane: &usize| (values[*lane] != 0) != guard.negated;
        let taken = (0..32).filter(holds).fold(0, |mask, lane| mask | 1u32 << lane) & self.lanes.active;
        (taken != 0 && taken != self.lanes.active).then_some(taken)
    }

    /// An instruction under a guard that holds for the lanes `taken` only.
    pub(crate) fn diverge(&mut self, flow: &Flow, instr: &Instr, pc: usize, taken: u32) -> Step {
        let whole = self.lanes.active;
        match &instr.op {
            Op::Bra { target } => {
                let meet = flow.reconverge[pc];
                let rest = whole & !taken;
                let number = Some(self.lanes.partings);
                self.lanes.partings += 1;
                self.lanes.stack.push(Diverged { meet, lanes: whole, next: Some((*target, taken)), number });
                self.lanes.active = rest;
                self.lanes.note_arms();
                Step::Next
            }
            Op::Exit => {
                for waiting in &mut self.lanes.stack {
                    waiting.lanes &= !taken;
                }
                self.lanes.active = whole & !taken;
                Step::Next
            }
            op if register_only(op) => {
                self.lanes.active = taken;
                self.by_lane(op, whole);
                self.lanes.active = whole;
                Step::Next
            }
            _ => {
                let bottom = self.lanes.stack.len();
                self.lanes.stack.push(Diverged { meet: usize::MAX, lanes: whole, next: None, number: None });
                self.lanes.active = taken;
                let done = self.operation(instr, pc);
                self.lanes.active = whole;
                self.lanes.stack.truncate(bottom);
                match done {
                    Ok(()) => Step::Next,
                    Err(end) => Step::Stop(end),
                }
            }
        }
    }

    /// A register instruction, lane by lane where lanes differ.
    pub(crate) fn register_step(&mut self, op: &Op) {
        if self.alone() {
            self.registers(op);
            return;
        }
        let whole = self.lanes.stack.first().map_or(self.lanes.active, |bottom| bottom.lanes);
        let differs = |r: &Reg| self.lanes.spread.contains_key(r) || self.lanes.known.contains_key(r);
        let elects = matches!(op, Op::Control(Control::Elect { .. }));
        let sources = uses(&Instr::new(op.clone()));
        if whole == self.lanes.active && !elects && !sources.iter().any(differs) {
            self.registers(op);
            defines(op).iter().for_each(|r| self.lanes.set(*r));
        } else {
            self.by_lane(op, whole);
        }
    }

    fn by_lane(&mut self, op: &Op, whole: u32) {
        let (active, targets) = (self.lanes.active, defines(op));
        let all = |lanes: &Lanes, r: &Reg| lanes.known.get(r).copied().unwrap_or(u32::MAX);
        let sources = uses(&Instr::new(op.clone()));
        let known = sources.iter().fold(u32::MAX, |m, r| m & all(&self.lanes, r));
        let old: Vec<(RegState, Option<Spread>, u32)> = targets
            .iter()
            .map(|r| {
                let spread = self.lanes.spread.get(r).map(|s| **s);
                (self.regs[r.index()], spread, all(&self.lanes, r))
            })
            .collect();
        let mut new: Vec<Spread> =
            old.iter().map(|(s, spread, _)| spread.unwrap_or([s.value.unwrap_or(0); 32])).collect();
        let mut pending = vec![false; targets.len()];
        let mut deps = vec![[0; 4]; targets.len()];
        for lane in (0..32u32).filter(|lane| active >> lane & 1 == 1) {
            self.lanes.focus = Some(lane);
            self.registers(op);
            for (n, r) in targets.iter().enumerate() {
                let result = self.regs[r.index()];
                pending[n] |= result.value.is_none();
                new[n][lane as usize] = result.value.unwrap_or(0);
                deps[n] = crate::event::join(deps[n], result.deps);
                self.regs[r.index()] = old[n].0;
            }
        }
        self.lanes.focus = None;
        for (n, r) in targets.iter().enumerate() {
            let (was, _, knew) = old[n];
            let partial = active != whole;
            let lost = pending[n] || (partial && was.value.is_none());
            let knows = if pending[n] { known & active } else { (known & active) | (knew & !active) };
            let first = new[n][active.trailing_zeros().min(31) as usize];
            let state = RegState {
                value: (!lost).then_some(first),
                deps: if partial { crate::event::join(was.deps, deps[n]) } else { deps[n] },
            };
            self.regs[r.index()] = state;
            self.lanes.spread.remove(r);
            self.lanes.known.remove(r);
            let same = (0..32).all(|l| whole >> l & 1 == 0 || new[n][l] == first);
            if !lost && !same {
                self.lanes.spread.insert(*r, Box::new(new[n]));
            }
            if knows & whole != whole {
                self.lanes.known.insert(*r, knows);
            }
        }
    }

    /// Stops at a wait in one arm of a branch, when lanes of the same warp have yet to run the other.
    pub(crate) fn may_wait(&self, line: u32) -> Result<(), TraceEnd> {
        if self.lanes.held_up() {
            let what = "a wait in one arm of a branch of which other lanes of the warp take the other arm";
            return Err(TraceEnd::Unsupported(what.into(), line));
        }
        Ok(())
    }

    /// Stops at an instruction that needs one value where the lanes differ, or one that not all of them know.
    pub(crate) fn agreed(&self, instr: &Instr) -> Result<(), TraceEnd> {
        if self.lanes.spread.is_empty() && self.lanes.known.is_empty() {
            return Ok(());
        }
        let used = uses(instr);
        let missing = |r: &&Reg| self.lanes.known.get(r).is_some_and(|known| self.lanes.active & !known != 0);
        if let Some(reg) = used.iter().find(missing) {
            let name = &self.program.threads[self.thread.index()].regs[reg.index()].name;
            let what = format!("`{name}`, which only some lanes of the warp have");
            return Err(TraceEnd::Unsupported(what, instr.line));
        }
        if let Some(reg) = used.iter().find(|r| !self.lanes.uniform(**r)) {
            let name = &self.program.threads[self.thread.index()].regs[reg.index()].name;
            let what = format!("`{name}`, which differs among the lanes of the warp, in this instruction");
            return Err(TraceEnd::Unsupported(what, instr.line));
        }
        Ok(())
    }
}
