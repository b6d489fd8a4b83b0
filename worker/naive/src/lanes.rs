//! The lanes a thread stands for, on one path: which are active, whose registers differ, which wait where branches meet.
//!
//! A register whose value differs is a column of 32 numbers; a register instruction is run once for each active lane
//! with the scalar rules, and the results are put together again. (PTX ISA 9.2, 9.7.13.14; `%laneid`.)

use super::event::Refusal;
use super::operands::used;
use moire_program::ir::{Guard, Instr, Reg, RegInit, Thread};
use std::collections::BTreeMap;

/// Lanes that join at `at` after a branch has parted them.
#[derive(Clone, Debug)]
struct Meeting {
    at: usize,
    everybody: u32,
    to_run: Option<(usize, u32)>,
    /// Number of the branch on the path that parted them, if a branch did.
    parting: Option<usize>,
}

/// Lanes of a path.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    pub(super) active: u32,
    meetings: Vec<Meeting>,
    pub(super) columns: BTreeMap<Reg, Vec<u128>>,
    /// Lanes that have a value of a register; all lanes, if there is no entry.
    pub(super) holders: BTreeMap<Reg, u32>,
    /// The lane being run.
    pub(super) one: Option<u32>,
    partings: usize,
}

/// Positions of the lanes of a mask.
pub(super) fn bits(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

impl Lanes {
    pub(super) fn of(thread: &Thread) -> Self {
        let active = thread.place.lanes();
        let mut columns = BTreeMap::new();
        for (n, reg) in thread.regs.iter().enumerate() {
            if active.count_ones() > 1 && reg.init == RegInit::Lane {
                columns.insert(Reg::at(n), (0..32).collect());
            }
        }
        Lanes { active, meetings: Vec::new(), columns, holders: BTreeMap::new(), one: None, partings: 0 }
    }

    pub(super) fn everybody(&self) -> u32 {
        self.meetings.first().map_or(self.active, |m| m.everybody)
    }

    pub(super) fn lane(&self) -> u32 {
        self.one.unwrap_or_else(|| self.active.trailing_zeros())
    }

    pub(super) fn of_register(&self, reg: Reg) -> Option<u128> {
        self.columns.get(&reg).and_then(|c| c.get(self.lane() as usize)).copied()
    }

    /// Values of the registers in which lanes differ, for comparing visits of a loop head.
    pub(super) fn live(&self, regs: impl Iterator<Item = Reg>) -> Vec<(Reg, u128)> {
        let column = |r: Reg| self.columns.get(&r).into_iter().flatten().map(move |v| (r, *v));
        regs.flat_map(column).collect()
    }

    /// Notes that all active lanes have one new value.
    pub(super) fn assigned(&mut self, reg: Reg) {
        self.columns.remove(&reg);
        self.holders.remove(&reg);
        if self.everybody() != self.active {
            self.holders.insert(reg, self.active);
        }
    }

    /// Where the path goes on after its active lanes have come to `pc`. Another arm of a branch may have to run first.
    pub(super) fn meet(&mut self, mut pc: usize) -> usize {
        loop {
            let Some(meeting) = self.meetings.last_mut() else { return pc };
            if meeting.at != pc {
                return pc;
            }
            if let Some((from, lanes)) = meeting.to_run.take() {
                (pc, self.active) = (from, lanes);
            } else {
                self.active = meeting.everybody;
                self.meetings.pop();
            }
        }
    }

    /// The lanes `gone` exit. Returns where the others go on, if no active lane is left.
    pub(super) fn exit(&mut self, gone: u32) -> Option<usize> {
        for meeting in &mut self.meetings {
            meeting.everybody &= !gone;
        }
        self.active &= !gone;
        let mut resume = None;
        while self.active == 0 {
            let mut meeting = self.meetings.pop()?;
            if let Some((from, lanes)) = meeting.to_run.take() {
                (self.active, resume) = (lanes, Some(from));
                self.meetings.push(meeting);
            } else {
                (self.active, resume) = (meeting.everybody, Some(meeting.at));
            }
        }
        resume
    }

    /// Active lanes for which the guard holds, where they disagree.
    pub(super) fn disagree(&self, guard: Guard) -> Option<u32> {
        let column = self.columns.get(&guard.reg)?;
        let yes = bits(self.active).filter(|l| (column[*l] != 0) != guard.negated).fold(0, |m, l| m | 1 << l);
        (yes != 0 && yes != self.active).then_some(yes)
    }

    /// The lanes `taken` branch to `target`, the others go on; all meet at `at`.
    pub(super) fn branch(&mut self, taken: u32, target: usize, at: usize) {
        let (everybody, parting) = (self.active, Some(self.partings));
        self.partings += 1;
        self.meetings.push(Meeting { at, everybody, to_run: Some((target, taken)), parting });
        self.active &= !taken;
    }

    /// For one instruction only `some` are active.
    pub(super) fn only(&mut self, some: u32) {
        let everybody = self.active;
        self.meetings.push(Meeting { at: usize::MAX, everybody, to_run: None, parting: None });
        self.active = some;
    }

    pub(super) fn again(&mut self) {
        if let Some(meeting) = self.meetings.pop() {
            self.active = meeting.everybody;
        }
    }

    /// The branches whose arms have not joined yet, and whether the active lanes are in the second arm.
    pub(super) fn arms(&self) -> Vec<(usize, bool)> {
        self.meetings.iter().filter_map(|m| Some((m.parting?, m.to_run.is_none()))).collect()
    }

    /// Whether lanes have another arm of a branch to run before these are joined.
    pub(super) fn others_to_run(&self) -> bool {
        self.meetings.iter().any(|m| m.to_run.is_some_and(|(from, _)| from != m.at))
    }

    /// Why an instruction that takes one value for all active lanes cannot run.
    pub(super) fn refuse(&self, instr: &Instr) -> Option<Refusal> {
        let guard = instr.guard.map(|g| g.reg);
        let one_value = |r: &Reg| {
            let column = self.columns.get(r);
            let same = column.is_none_or(|c| bits(self.active).all(|l| c[l] == c[self.lane() as usize]));
            same && self.holders.get(r).is_none_or(|h| self.active & !h == 0)
        };
        let wrong = used(&instr.op).into_iter().chain(guard).find(|r| !one_value(r))?;
        Some(Refusal::Unsupported(format!("register {} in this instruction: lanes differ", wrong.0)))
    }
}
