//! A thread that stands for several lanes of a warp: which of them are active, and registers that differ among them.
//!
//! Lanes run the same code together (PTX ISA 9.2, 9.7.13.14 for `elect.sync`). Where a predicate differs among lanes, those
//! that do not take the branch run first, then those that take it. All go on together where the branch reconverges. NVIDIA's
//! compilers arrange this; PTX does not promise it. To check a program without that promise, write each lane as a thread.
//! Program order is that of the warp, but the two arms of a branch are not ordered. A thread of one lane never diverges.
//!
//! A register holds one value, or one for each lane. A value that came from memory or a barrier while some lanes were
//! inactive is not known to the others: their use of it ends the trace by name.

use super::event::lanes::Arms;
use super::trace::TraceEnd;
use moire_program::ir::*;
use std::collections::BTreeMap;

/// A value for each lane.
pub(crate) type Spread = [Value; 32];

/// Lanes that wait for others at a reconvergence point.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Diverged {
    meet: usize,
    /// All that meet there.
    lanes: u32,
    /// Those that run when the active ones have come: from where.
    next: Option<(usize, u32)>,
    /// The number of the branch that parted them, if both arms have lanes.
    number: Option<u16>,
}

/// State of the lanes of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Active lanes, a bit a lane; never none.
    pub(crate) active: u32,
    stack: Vec<Diverged>,
    /// Values of the registers that differ among lanes.
    pub(crate) spread: BTreeMap<Reg, Box<Spread>>,
    /// Lanes that know the value of a register, where not all do.
    pub(crate) known: BTreeMap<Reg, u32>,
    /// The lane whose values operands have.
    pub(crate) focus: Option<u32>,
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
                    lanes.spread.insert(
                        Reg(u16::try_from(n).expect("registers are numbered by 16 bits")),
                        Box::new(numbers),
                    );
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

    /// The number of active lanes. An instruction that acts for each lane acts that often.
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

    /// Stops at a wait in one arm of a branch, when lanes of the same warp have yet to run the other.
    pub(crate) fn may_wait(&self, line: u32) -> Result<(), TraceEnd> {
        if self.held_up() {
            let what = "a wait in one arm of a branch of which other lanes of the warp take the other arm";
            return Err(TraceEnd::Unsupported(what.into(), line));
        }
        Ok(())
    }

    /// Where the trace goes on after it comes to `pc`. The lanes that wait there join the active ones, or run now.
    pub(crate) fn reconverge(&mut self, mut pc: usize) -> usize {
        while let Some(top) = self.stack.last_mut()
            && top.meet == pc
        {
            match top.next.take() {
                Some((from, lanes)) => {
                    self.active = lanes;
                    pc = from;
                }
                None => {
                    self.active = top.lanes;
                    self.stack.pop();
                }
            }
            self.note_arms();
        }
        pc
    }

    /// The active lanes leave the program. Returns where the others go on.
    pub(crate) fn leave(&mut self) -> Option<usize> {
        let gone = self.active;
        for waiting in &mut self.stack {
            waiting.lanes &= !gone;
        }
        while let Some(top) = self.stack.last_mut() {
            if let Some((from, lanes)) = top.next.take() {
                self.active = lanes;
                self.note_arms();
                return Some(from);
            }
            let (meet, lanes) = (top.meet, top.lanes);
            self.stack.pop();
            if lanes != 0 {
                self.active = lanes;
                self.note_arms();
                return Some(meet);
            }
        }
        None
    }

    /// The active lanes for which a guard holds, if it holds for some of them only.
    pub(crate) fn split(&self, guard: Guard) -> Option<u32> {
        let values = self.spread.get(&guard.reg)?;
        let holds = |lane: &usize| (values[*lane] != 0) != guard.negated;
        let taken = (0..32).filter(holds).fold(0, |mask, lane| mask | 1u32 << lane) & self.active;
        (taken != 0 && taken != self.active).then_some(taken)
    }

    /// Some of the active lanes take a branch. The others run first, these later, and all meet.
    pub(crate) fn part(&mut self, meet: usize, target: usize, taken: u32) {
        let whole = self.active;
        debug_assert!(taken != 0 && taken & !whole == 0 && taken != whole, "some of the active lanes part");
        let number = Some(self.partings);
        self.partings += 1;
        self.stack.push(Diverged { meet, lanes: whole, next: Some((target, taken)), number });
        self.active = whole & !taken;
        self.note_arms();
    }

    /// Some of the active lanes leave the program; the others go on.
    pub(crate) fn drop_out(&mut self, taken: u32) {
        debug_assert!(taken & !self.active == 0 && taken != self.active, "some of the active lanes go");
        for waiting in &mut self.stack {
            waiting.lanes &= !taken;
        }
        self.active &= !taken;
    }

    /// Only some of the active lanes execute the next instruction; returns what [`Lanes::widen`] needs.
    pub(crate) fn narrow(&mut self, taken: u32) -> usize {
        let depth = self.stack.len();
        debug_assert!(taken != 0 && taken & !self.active == 0, "some of the active lanes act");
        self.stack.push(Diverged { meet: usize::MAX, lanes: self.active, next: None, number: None });
        self.active = taken;
        depth
    }

    pub(crate) fn widen(&mut self, depth: usize, whole: u32) {
        debug_assert!(depth <= self.stack.len() && whole != 0, "what is undone was done");
        self.active = whole;
        self.stack.truncate(depth);
    }

    /// Whether lanes cannot differ.
    pub(crate) fn alone(&self) -> bool {
        self.active.count_ones() == 1 && self.stack.is_empty()
    }

    /// All lanes that are not over, inactive ones included.
    pub(crate) fn whole(&self) -> u32 {
        self.stack.first().map_or(self.active, |bottom| bottom.lanes)
    }

    /// A register was set, to one value for all active lanes.
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
