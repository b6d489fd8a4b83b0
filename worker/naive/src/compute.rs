//! Instructions that touch registers only, run once for each active lane with the scalar rules.

use super::arith::{alu, bits as width, compare, low};
use super::book;
use super::lanes::{Lanes, bits};
use super::operands::{used, written};
use super::pairs::Events;
use super::state::{Runner, State};
use moire_program::ir::{Control, Instr, Op, Operand, Reg};
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, unit_op};

impl Runner<'_> {
    /// Register instructions.
    fn registers(&self, s: &mut State, instr: &Instr) {
        match &instr.op {
            Op::Mov { ty, dst, src } => {
                let (v, d) = self.operand(s, *src);
                let moved =
                    if *ty == moire_program::ir::Ty::Pred { u128::from(v != 0) } else { low(v, width(*ty)) };
                s.regs[dst.index()] = (moved, d);
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
                let value = low(if p != 0 { a } else { b }, width(*ty));
                s.regs[dst.index()] = (value, da | db | dp);
            }
            Op::Mapa { dst, src, rank, .. } => {
                let ((address, da), (rank, dr)) = (self.operand(s, *src), self.operand(s, *rank));
                let mapped = self.memory.mapped(address, low(rank, 32), self.thread);
                s.regs[dst.index()] = (mapped.unwrap_or(0), da | dr);
            }
            Op::Control(Control::Elect { dst, pred, mask }) => {
                let (mask, deps) = self.operand(s, *mask);
                // The lowest lane of the mask; 32 if the mask is empty.
                let leader = (0..32).find(|lane| mask >> lane & 1 == 1).unwrap_or(32u32);
                s.regs[pred.index()] = (u128::from(leader == s.lanes.lane()), deps);
                if let Some(dst) = dst {
                    s.regs[dst.index()] = (u128::from(leader), deps);
                }
            }
            // These touch more than registers.
            Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Tile(_) => {}
            multimem_op!() | Op::Control(_) | fence_op!() | barrier_op!() | unit_op!() | jump_op!() => {}
            Op::Book(told) => book::registers(self, s, told),
        }
    }

    /// A register instruction for all active lanes.
    pub(super) fn each_lane(&self, s: &mut State, instr: &Instr) {
        let written = written(&instr.op);
        let read = used(&instr.op);
        let everybody = s.lanes.everybody();
        if everybody.count_ones() == 1 {
            return self.registers(s, instr);
        }
        let holders = |lanes: &Lanes, r: &Reg| lanes.holders.get(r).copied().unwrap_or(u32::MAX);
        let known = read.iter().fold(s.lanes.active, |m, r| m & holders(&s.lanes, r));
        let before: Vec<(u128, Events)> = written.iter().map(|r| s.regs[r.index()]).collect();
        let mut columns: Vec<Vec<u128>> = written
            .iter()
            .zip(&before)
            .map(|(r, was)| s.lanes.columns.get(r).cloned().unwrap_or_else(|| vec![was.0; 32]))
            .collect();
        let partial = s.lanes.active != everybody;
        let mut deps: Vec<Events> = before.iter().map(|was| if partial { was.1 } else { 0 }).collect();
        for lane in bits(s.lanes.active) {
            s.lanes.one = u32::try_from(lane).ok();
            self.registers(s, instr);
            for (n, r) in written.iter().enumerate() {
                columns[n][lane] = s.regs[r.index()].0;
                deps[n] |= s.regs[r.index()].1;
                s.regs[r.index()] = before[n];
            }
        }
        s.lanes.one = None;
        for (n, r) in written.iter().enumerate() {
            let kept = holders(&s.lanes, r) & !s.lanes.active;
            let first = columns[n][s.lanes.lane() as usize];
            s.regs[r.index()] = (first, deps[n]);
            let same = bits(everybody).all(|l| columns[n][l] == first);
            s.lanes.columns.remove(r);
            if !same {
                s.lanes.columns.insert(*r, std::mem::take(&mut columns[n]));
            }
            s.lanes.holders.remove(r);
            if (known | kept) & everybody != everybody {
                s.lanes.holders.insert(*r, (known | kept) & everybody);
            }
        }
    }

    /// Runs an instruction whose guard holds for the lanes `taken` only, if it is a branch, an exit or a register
    /// instruction. Returns whether it is.
    pub(super) fn parted(&self, s: &mut State, instr: &Instr, taken: u32) -> bool {
        if let Op::Bra { target } = instr.op {
            s.lanes.branch(taken, target, self.flow.meets[&s.pc]);
        } else if instr.op == Op::Exit {
            let _ = s.lanes.exit(taken);
        } else if self.only_registers(s, &instr.op) {
            s.lanes.only(taken);
            self.each_lane(s, instr);
            s.lanes.again();
        } else {
            return false;
        }
        s.pc += 1;
        true
    }
}
