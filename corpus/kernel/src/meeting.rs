//! Where threads of a CTA can meet: statements that all of them come to equally often, whatever data and launch are.
//!
//! Contract: a place is *level* if no branch that decides whether it is reached, or how often, depends on the number of a thread or
//! on data. A barrier of the CTA in front of a level statement is waited at by all threads, or by none.

use crate::ptx::{Kernel, What};
use crate::specialise::known::depends::Slices;
use crate::specialise::known::flow::{stores, successors};
use moire_program::ir::{BarKind, Op};
use moire_program::registers::only_registers;
use std::collections::{BTreeSet, VecDeque};

/// The level places of a kernel.
pub struct Meetings<'k> {
    kernel: &'k Kernel,
    slices: Slices<'k>,
    /// Places behind an access or a branch, or to which something jumps: all threads come there equally often.
    starts: Vec<bool>,
}

impl<'k> Meetings<'k> {
    /// Looks at a kernel.
    pub fn new(kernel: &'k Kernel) -> Self {
        let mut out = Meetings { kernel, slices: Slices::new(kernel), starts: Vec::new() };
        let mut begins = vec![false; kernel.body.len()];
        for pc in 0..kernel.body.len() {
            let quiet = out.is_quiet(pc);
            for next in successors(kernel, pc).into_iter().filter(|next| !quiet || *next != pc + 1) {
                begins.get_mut(next).into_iter().for_each(|begins| *begins = true);
            }
        }
        let line = |pc: usize| kernel.body[pc].line;
        // One line may have several statements.
        let own = |pc: usize| pc == 0 || line(pc - 1) != line(pc);
        out.starts = (0..begins.len()).map(|pc| begins[pc] && own(pc) && out.front(line(pc))).collect();
        out
    }

    /// Whether the kernel has a statement in this line.
    pub fn has(&self, line: u32) -> bool {
        !self.of(line).is_empty()
    }

    /// Whether all threads come to the front of a line equally often.
    pub fn front(&self, line: u32) -> bool {
        self.has(line) && self.of(line).iter().all(|pc| self.slices.is_level(*pc))
    }

    /// Whether all threads come to the end of a line equally often.
    pub fn behind(&self, line: u32) -> bool {
        self.has(line) && self.of(line).iter().all(|pc| self.slices.is_level(*pc + 1))
    }

    /// Lines with a level front that is on each way from line `x` to line `y` without a barrier of all threads: the next behind `x`
    /// first. Of places with no access between them only the first.
    pub fn between(&self, x: u32, y: u32) -> Vec<u32> {
        let (from, to) = (self.of(x), self.of(y));
        let comes = |ways: &[usize]| to.iter().any(|pc| ways.contains(pc));
        let ways = self.reached(&from, None);
        if !comes(&ways) {
            return Vec::new();
        }
        let level = ways.iter().copied().filter(|pc| self.starts.get(*pc) == Some(&true));
        let between = level.filter(|pc| !comes(&self.reached(&from, Some(*pc))));
        between.map(|pc| self.kernel.body[pc].line).collect()
    }

    /// All lines with a level front that stand behind an access or a branch, or to which something jumps.
    pub fn lines(&self) -> Vec<u32> {
        let all = self.kernel.body.iter().zip(&self.starts).filter(|(_, starts)| **starts);
        all.map(|(statement, _)| statement.line).collect()
    }

    fn of(&self, line: u32) -> BTreeSet<usize> {
        (0..self.kernel.body.len()).filter(|pc| self.kernel.body[*pc].line == line).collect()
    }

    /// What can be run behind these statements without coming to a barrier of all threads or to the front of `but`, in the order of the number of
    /// steps.
    fn reached(&self, from: &BTreeSet<usize>, but: Option<usize>) -> Vec<usize> {
        let mut seen = vec![false; self.kernel.body.len() + 1];
        let mut out: Vec<usize> = Vec::new();
        let mut work: VecDeque<usize> = from.iter().flat_map(|pc| successors(self.kernel, *pc)).collect();
        while let Some(pc) = work.pop_front() {
            if Some(pc) == but || std::mem::replace(&mut seen[pc], true) {
                continue;
            }
            out.push(pc);
            if pc < self.kernel.body.len() && !self.is_barrier(pc) {
                work.extend(successors(self.kernel, pc));
            }
        }
        out
    }

    /// Whether all threads of the CTA meet at a statement.
    fn is_barrier(&self, pc: usize) -> bool {
        let statement = &self.kernel.body[pc];
        let whole = |op: &Op| matches!(op, Op::Bar { kind: BarKind::Sync, count: None, .. });
        statement.guard.is_none() && matches!(&statement.what, What::Core(op) if whole(op))
    }

    /// Whether a statement accesses nothing that others see, and decides nothing.
    fn is_quiet(&self, pc: usize) -> bool {
        match &self.kernel.body[pc].what {
            What::Core(op) => only_registers(op),
            What::Plain(instr) => !stores(instr) && !self.slices.is_load(pc),
            What::Branch { .. } | What::Table { .. } | What::Exit => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::parse;

    const TEXT: &str = "\
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .shared .align 4 .b8 s[256];
  mov.u32 %r0, %tid.x;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, s;
L:
  setp.gt.u32 %p0, %r0, %r1;
  @%p0 bra S;
  ld.shared.u32 %r3, [%r2];
  add.u32 %r3, %r3, 1;
  st.shared.u32 [%r2], %r3;
S:
  shr.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra L;
  ld.shared.u32 %r4, [%r2];
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra E;
  st.shared.u32 [%r2], %r0;
E:
  ret;
}
";

    #[test]
    fn threads_meet_where_neither_their_number_nor_data_decides() {
        let module = parse(TEXT).expect("the module is legal");
        let meetings = Meetings::new(&module.kernels[0]);
        let level: Vec<u32> = (9..30).filter(|line| meetings.front(*line)).collect();
        assert_eq!(level, [9, 10, 11, 13, 14, 19, 20, 21, 22, 23, 24, 27]);
        assert!(meetings.behind(17) && !meetings.behind(14) && !meetings.behind(24));
    }

    #[test]
    fn a_place_between_is_on_each_way() {
        let module = parse(TEXT).expect("the module is legal");
        let meetings = Meetings::new(&module.kernels[0]);
        // Round the loop; out of it; and there is no way back.
        assert_eq!(meetings.between(17, 15), [19, 13]);
        assert_eq!(meetings.between(17, 22), [19, 22]);
        assert!(meetings.between(22, 17).is_empty() && meetings.between(15, 17).is_empty());
        // A barrier that is there is enough.
        let module = parse(&TEXT.replace("S:\n", "S: bar.sync 0;\n")).expect("the module is legal");
        assert!(Meetings::new(&module.kernels[0]).between(17, 15).is_empty());
    }
}
