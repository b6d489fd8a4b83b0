//! The thread of a part: one program order for all its lanes, with a register for each lane where lanes differ.
//!
//! What lanes agree on is executed once. A plain access whose place or value differs is executed once for each lane, with
//! the registers of that lane; so are copies and quiet reductions, each by its lane alone, because they count.

use super::control::holds;
use super::exchange::sources;
use super::flow::{elected, will_run};
use super::part::{SomeLanes, State, States};
use super::planted::Planted;
use super::releases::quiet;
use crate::edit::retarget;
use crate::ir::*;
use crate::registers::{only_registers, rewrite, uses, written};
use std::collections::BTreeMap;

/// The copies of the registers that differ among lanes, by lane of the part. The first lane has the register itself.
struct Copies {
    of: BTreeMap<Reg, Vec<Reg>>,
    /// Predicates that single out a lane of the part, if any instruction needs them.
    alone: Vec<Reg>,
}

struct Builder<'a, 'p> {
    part: &'a SomeLanes<'p>,
    copies: Copies,
    code: Thread,
}

/// The thread of some lanes of a part, of which `states` knows the registers. None if it has too many registers.
pub(super) fn thread(part: &SomeLanes<'_>, states: &States) -> Option<Thread> {
    let old = part.code();
    let mut code = Thread { body: Vec::new(), ..old.clone() };
    code.place.mask = part.lanes.iter().fold(0, |mask, lane| mask | 1 << lane);
    code.place.joined = part.several();
    if !part.several() {
        code.body = old.body.clone();
        return Some(code);
    }
    let copies = Copies { of: BTreeMap::new(), alone: Vec::new() };
    let mut builder = Builder { part, copies, code };
    builder.registers(states)?;
    let mut starts = Vec::with_capacity(old.body.len() + 1);
    for (pc, state) in states.iter().enumerate() {
        starts.push(builder.code.body.len());
        if let (Some(state), Some(instr)) = (state, old.body.get(pc)) {
            builder.instruction(state, instr, pc);
        }
    }
    Some(builder.targets(&starts))
}

impl Builder<'_, '_> {
    /// Makes a register for each lane where lanes differ, and predicates of lanes where they are needed.
    fn registers(&mut self, states: &States) -> Option<()> {
        let several = |r: usize| states.iter().flatten().any(|s| s.regs[r].differs());
        for r in (0..self.code.regs.len()).filter(|r| several(*r)) {
            let init = self.code.regs[r].init.clone();
            let first = self.part.lanes[0];
            self.code.regs[r].init = of_lane(&init, first);
            let mut all = vec![Reg::at(r)];
            for lane in &self.part.lanes[1..] {
                all.push(
                    self.register(
                        &format!("{}_{lane}", self.part.code().regs[r].name),
                        of_lane(&init, *lane),
                    )?,
                );
            }
            self.copies.of.insert(Reg::at(r), all);
        }
        let body = &self.part.code().body;
        let counts = |i: &Instr| {
            matches!(i.op, Op::AsyncCopy(_) | Op::Rmw { .. } | Op::Control(Control::Collective(_)))
        };
        if body.iter().any(counts) {
            self.predicates()?;
        }
        Some(())
    }

    fn predicates(&mut self) -> Option<()> {
        let own = self.register("lane", RegInit::Lane)?;
        for lane in self.part.lanes.clone() {
            let dst = self.register(&format!("is_{lane}"), RegInit::Value(0))?;
            self.copies.alone.push(dst);
            let (a, b) = (Operand::Reg(own), Operand::Imm(lane.into()));
            self.code.body.push(Instr::new(Op::Setp { op: CmpOp::Eq, ty: Ty::U(32), dst, a, b }));
        }
        Some(())
    }

    fn register(&mut self, name: &str, init: RegInit) -> Option<Reg> {
        let mut name = name.to_owned();
        while self.code.regs.iter().any(|r| r.name == name) {
            name.push('_');
        }
        let reg = u16::try_from(self.code.regs.len()).ok()?;
        self.code.regs.push(RegDecl { name, init });
        (usize::from(reg) < crate::limits::REGISTERS).then_some(Reg(reg))
    }

    fn instruction(&mut self, state: &State, instr: &Instr, pc: usize) {
        let branches = matches!(instr.op, Op::Bra { .. });
        if !branches && !only_registers(&instr.op) && !will_run(self.part, state, pc) {
            return;
        }
        let plain = matches!(instr.op, Op::Load { .. } | Op::Store { .. });
        if matches!(instr.op, Op::Control(Control::Elect { .. })) {
            self.elect(state, instr, pc);
        } else if let Op::Control(Control::Collective(collective)) = &instr.op {
            self.exchange(state, instr, collective);
        } else if only_registers(&instr.op) {
            self.registers_of(instr);
        } else if self.counted(state, &instr.op) {
            self.by_lane(instr, Some(state));
        } else if plain && self.differs(state, &instr.op) {
            self.by_lane(instr, None);
        } else {
            self.once(instr);
        }
    }

    /// Whether an instruction is executed by each lane alone.
    fn counted(&self, state: &State, op: &Op) -> bool {
        let copies =
            matches!(op, Op::AsyncCopy(AsyncCopy::Small(_) | AsyncCopy::Bulk(_) | AsyncCopy::Remote(_)));
        (copies && self.differs(state, op)) || quiet(self.part, state, op).is_some()
    }

    fn differs(&self, state: &State, op: &Op) -> bool {
        uses(op).0.iter().any(|r| state.regs[r.index()].differs())
    }

    /// Executes an instruction once, in the registers of the first lane, and copies what it wrote to the others.
    fn once(&mut self, instr: &Instr) {
        self.code.body.push(instr.clone());
        let mut targets = Vec::new();
        written(&instr.op, &mut |reg| targets.push(reg));
        for dst in targets {
            for copy in self.copies.of.get(&dst).into_iter().flatten().skip(1) {
                let op = Op::Mov { ty: Ty::B(128), dst: *copy, src: Operand::Reg(dst) };
                self.code.body.push(Instr { guard: instr.guard, op, ..*instr });
            }
        }
    }

    /// Executes a register instruction in the registers of each lane, if it writes one that differs.
    fn registers_of(&mut self, instr: &Instr) {
        let mut differs = false;
        written(&instr.op, &mut |reg| differs |= self.copies.of.contains_key(&reg));
        if differs { self.by_lane(instr, None) } else { self.code.body.push(instr.clone()) }
    }

    /// Executes an instruction once for each lane; with a state, by the lane alone.
    fn by_lane(&mut self, instr: &Instr, alone: Option<&State>) {
        let once = matches!(instr.op, Op::Rmw { .. }) && self.part.has(Planted::OneReduction);
        for n in 0..if once { 1 } else { self.part.lanes.len() } {
            let mut new = self.renamed(instr, n);
            if let Some(state) = alone {
                new.guard = Some(self.alone(state, instr.guard, n));
            }
            self.code.body.push(new);
        }
    }

    fn renamed(&self, instr: &Instr, lane: usize) -> Instr {
        let name = |r: Reg| self.copies.of.get(&r).map_or(r, |all| all[lane]);
        let mut new = instr.clone();
        new.guard = instr.guard.map(|g| Guard { reg: name(g.reg), ..g });
        rewrite(&mut new.op, &mut |r| name(r), &mut |operand| match operand {
            Operand::Reg(r) => Operand::Reg(name(r)),
            other => other,
        });
        new
    }

    /// A guard that holds for one lane of the part, and only if the guard of the instruction does.
    fn alone(&mut self, state: &State, guard: Option<Guard>, lane: usize) -> Guard {
        let is = self.copies.alone[lane];
        let plain = Guard { reg: is, negated: false };
        let Some(guard) = guard.filter(|g| holds(state, *g).one().is_none()) else { return plain };
        let Some(dst) = self.register("both", RegInit::Value(0)) else { return plain };
        let (yes, no) = (Operand::Reg(is), Operand::Imm(0));
        let (a, b) = if guard.negated { (no, yes) } else { (yes, no) };
        self.code.body.push(Instr::new(Op::Selp { ty: Ty::B(32), dst, a, b, p: guard.reg }));
        Guard { reg: dst, negated: false }
    }

    /// An election is executed once, because it waits; where its result differs it is a constant in each lane.
    fn elect(&mut self, state: &State, instr: &Instr, pc: usize) {
        let Op::Control(Control::Elect { dst, pred, mask }) = &instr.op else { return };
        let Some(copies) = self.copies.of.get(pred).cloned() else { return self.once(instr) };
        self.code.body.push(instr.clone());
        let leader = elected(self.part, state, pc, *mask).map_or(32, u32::from);
        let mut moves: Vec<(Reg, u32)> = Vec::new();
        for (copy, lane) in copies.iter().zip(&self.part.lanes) {
            moves.push((*copy, u32::from(u32::from(*lane) == leader)));
        }
        for copy in dst.iter().filter_map(|d| self.copies.of.get(d)).flatten() {
            moves.push((*copy, leader));
        }
        for (dst, value) in moves {
            let op = Op::Mov { ty: Ty::B(32), dst, src: Operand::Imm(value.into()) };
            self.code.body.push(Instr { guard: instr.guard, op, ..*instr });
        }
    }

    /// A shuffle among the lanes of the part is moves between their registers. A vote is executed once, on one register
    /// that has the predicate of each lane.
    fn exchange(&mut self, state: &State, instr: &Instr, collective: &Collective) {
        if let Some(from) = sources(self.part, state, collective) {
            return self.shuffle(instr, collective, &from);
        }
        let mut new = instr.clone();
        let Op::Control(Control::Collective(voted)) = &mut new.op else { return };
        if let Operand::Reg(src) = collective.src
            && let Some(copies) = self.copies.of.get(&src).cloned()
            && let Some(dst) = self.register("vote", RegInit::Value(0))
        {
            for (copy, lane) in copies.into_iter().zip(self.copies.alone.clone()) {
                let guard = Some(Guard { reg: lane, negated: false });
                let op = Op::Mov { ty: Ty::B(32), dst, src: Operand::Reg(copy) };
                self.code.body.push(Instr { guard, op, ..*instr });
            }
            voted.src = Operand::Reg(dst);
        }
        self.once(&new);
    }

    fn shuffle(&mut self, instr: &Instr, collective: &Collective, from: &[(usize, bool)]) {
        let copy = |this: &Self, operand: Operand, lane: usize| match operand {
            Operand::Reg(r) => Operand::Reg(this.copies.of.get(&r).map_or(r, |all| all[lane])),
            other => other,
        };
        let kept: Vec<Operand> = (0..from.len()).map(|lane| copy(self, collective.src, lane)).collect();
        let mut moves = Vec::new();
        for (source, _) in from {
            let Some(fresh) = self.register("got", RegInit::Value(0)) else { return };
            moves.push((Operand::Reg(fresh), kept[*source]));
        }
        let fresh: Vec<Operand> = moves.iter().map(|(to, _)| *to).collect();
        for (lane, got) in fresh.into_iter().enumerate() {
            moves.push((copy(self, Operand::Reg(collective.dst), lane), got));
        }
        if let Some(pred) = collective.pred {
            for (lane, (_, asked)) in from.iter().enumerate() {
                moves.push((copy(self, Operand::Reg(pred), lane), Operand::Imm((*asked).into())));
            }
        }
        for (to, src) in moves {
            let Operand::Reg(dst) = to else { continue };
            self.code.body.push(Instr {
                guard: instr.guard,
                op: Op::Mov { ty: Ty::B(32), dst, src },
                ..*instr
            });
        }
    }

    /// The code with its branches and labels put right: `starts` says where each instruction went.
    fn targets(mut self, starts: &[usize]) -> Thread {
        retarget(&mut self.code, |at| starts[at]);
        self.code
    }
}

/// What a register holds at the start in one lane.
fn of_lane(init: &RegInit, lane: u8) -> RegInit {
    match init {
        RegInit::Lane => RegInit::Value(Value::from(lane)),
        other => other.clone(),
    }
}
