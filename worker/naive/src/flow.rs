//! Static facts of one thread body: registers that can still matter, where branches meet again, heads of loops.
//!
//! Each is found as its definition says, by walking the ways through the body once for every question. The explorer
//! computes the same facts by iterating over sets of positions; comparing the engines compares these too.

use super::operands::{used, written};
use moire_program::ir::{Op, Reg, Thread};
use std::collections::{BTreeMap, BTreeSet};

/// Facts by position in the body; `body.len()` is the exit.
pub(super) struct Flow {
    /// By target of a backward branch: the registers whose value may still be used.
    pub(super) heads: BTreeMap<usize, Vec<Reg>>,
    /// By guarded instruction: the nearest position that every way from it to the exit passes.
    pub(super) meets: BTreeMap<usize, usize>,
}

impl Flow {
    /// `kept` are the registers that are observed after the exit.
    pub(super) fn new(thread: &Thread, kept: &BTreeSet<Reg>) -> Self {
        let body =
            Body { thread, kept, next: (0..thread.body.len()).map(|pc| successors(thread, pc)).collect() };
        let back = |pc: usize| if let Op::Bra { target } = thread.body[pc].op { Some(target) } else { None };
        let back = |pc: usize| back(pc).filter(|target| *target <= pc);
        let all = 0..thread.body.len();
        let guarded = all.clone().filter(|pc| thread.body[*pc].guard.is_some());
        Flow {
            heads: all.filter_map(back).map(|head| (head, body.live(head))).collect(),
            meets: guarded.map(|pc| (pc, body.meet(pc))).collect(),
        }
    }
}

/// A body and the positions that may follow each of its positions.
struct Body<'a> {
    thread: &'a Thread,
    kept: &'a BTreeSet<Reg>,
    next: Vec<Vec<usize>>,
}

impl Body<'_> {
    /// Which positions the ways from `from` come to; a way ends at the exit and where `ends` says, `from` included.
    fn reached(&self, from: usize, ends: impl Fn(usize) -> bool) -> Vec<bool> {
        let (mut reached, mut open) = (vec![false; self.next.len() + 1], vec![from]);
        while let Some(pc) = open.pop() {
            if !std::mem::replace(&mut reached[pc], true) && pc < self.next.len() && !ends(pc) {
                open.extend(&self.next[pc]);
            }
        }
        reached
    }

    /// Registers that some way from `from` uses before it writes them.
    fn live(&self, from: usize) -> Vec<Reg> {
        let uses = |pc: usize, reg: Reg| match self.thread.body.get(pc) {
            Some(instr) => instr.guard.is_some_and(|g| g.reg == reg) || used(&instr.op).contains(&reg),
            None => self.kept.contains(&reg),
        };
        let writes = |pc: usize, reg: Reg| {
            let instr = &self.thread.body[pc];
            instr.guard.is_none() && written(&instr.op).contains(&reg)
        };
        let live = |reg: &Reg| {
            let reached = self.reached(from, |pc| writes(pc, *reg));
            (0..reached.len()).any(|pc| reached[pc] && uses(pc, *reg))
        };
        (0..self.thread.regs.len()).map(Reg::at).filter(live).collect()
    }

    /// Whether every way from `from` to the exit passes `by`.
    fn always_passes(&self, from: usize, by: usize) -> bool {
        let exit = self.next.len();
        by == exit || !self.reached(from, |pc| pc == by)[exit]
    }

    /// Of the positions that every way from `from` passes, `from` aside, the one that is in front of all the others.
    fn meet(&self, from: usize) -> usize {
        let exit = self.next.len();
        let passed: Vec<usize> = (0..=exit).filter(|q| *q != from && self.always_passes(from, *q)).collect();
        let first = |q: &usize| passed.iter().all(|other| self.always_passes(*q, *other));
        passed.iter().copied().rfind(first).unwrap_or(exit)
    }
}

fn successors(thread: &Thread, pc: usize) -> Vec<usize> {
    let instr = &thread.body[pc];
    let end = Some(thread.body.len()).filter(|_| instr.op == Op::Exit);
    let jump = if let Op::Bra { target } = instr.op { Some(target) } else { end };
    match (jump, instr.guard) {
        (None, _) => vec![pc + 1],
        (Some(to), None) => vec![to],
        (Some(to), Some(_)) => vec![pc + 1, to],
    }
}
