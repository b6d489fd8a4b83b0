//! Runs blocks and `if` of a tile block.
//!
//! - If the condition of an `if` is unknown and no arm leaves a `loop` or the kernel, both arms are kept under masks. What
//!   follows a `continue` of a `for` is kept under the mask of the iterations that reach it.
//! - If an `if` yields tokens, the condition chooses between them. This holds for a known condition too, because readings
//!   of the specification differ on which arm counts. If the two tokens differ only in accesses of the arms themselves,
//!   they are joined instead: accesses of the arm not taken have no events.
//! - If an arm leaves a `loop` or the kernel, also under a second condition, and the condition is unknown, the `if` becomes
//!   a branch. Its results are those of the arm that ran.

use super::loops::{assign_each, counted, leave, next_turn, places_for, repeated};
use super::value::{Held, Lane};
use super::view::views;
use super::{Block, Done, Turn};
use crate::{Block as Body, Instr, Op, Type, Value};
use moire_program::ir::{
    AluOp, CmpOp, Guard, Instr as Step, Op as Code, Operand, Reg, RegInit, TileOp, TileToken, Ty,
};
use std::collections::BTreeSet;

/// How a block ends.
pub(super) enum End {
    /// Execution continues behind the block, which yields these values.
    Falls(Vec<Held>),
    /// Execution does not continue behind the block.
    Gone,
}

/// An arm that was run under a mask.
struct Arm {
    end: End,
    /// The mask of the arm, and the mask under which its end is reached.
    masks: [Option<Reg>; 2],
}

fn leaves(block: &Body) -> bool {
    block.ops.iter().any(|i| match &i.op {
        Op::Break(_) | Op::Continue(_) | Op::Return(_) => true,
        Op::If { .. } => i.op.blocks().into_iter().any(leaves),
        Op::For { .. } | Op::Loop { .. } => i.op.blocks().into_iter().any(returns),
        Op::Yield(_) | plain_op!() | token_op!() | access_op!() => false,
    })
}

fn returns(block: &Body) -> bool {
    block.ops.iter().any(|i| matches!(i.op, Op::Return(_)) || i.op.blocks().into_iter().any(returns))
}

/// Whether execution never continues behind the block.
fn gone(block: &Body) -> bool {
    let Some(last) = block.ops.last().map(|i| &i.op) else { return false };
    let both = |op: &Op| matches!(op, Op::If { then, otherwise: Some(otherwise), .. } if gone(then) && gone(otherwise));
    matches!(last, Op::Break(_) | Op::Continue(_) | Op::Return(_)) || both(last)
}

impl Block<'_, '_> {
    pub(super) fn all(&self, values: &[Value]) -> Done<Vec<Held>> {
        values.iter().map(|v| self.held(*v).cloned()).collect()
    }

    pub(super) fn define_all(&mut self, values: &[Value], held: Vec<Held>) {
        self.values.extend(values.iter().copied().zip(held));
    }

    /// Runs the body of the kernel.
    pub(super) fn block(&mut self, body: &Body) -> Done<()> {
        self.run_block(body).map(|_| ())
    }

    pub(super) fn run_block(&mut self, body: &Body) -> Done<End> {
        for instr in &body.ops {
            self.line = instr.line;
            let ended = match &instr.op {
                Op::If { condition, then, otherwise } => {
                    self.choice(instr, *condition, then, otherwise.as_ref())?
                }
                Op::For { unsigned, bounds, inits, body } => {
                    counted(self, instr, (*unsigned, bounds), inits, body)?;
                    None
                }
                Op::Loop { inits, body } => {
                    repeated(self, instr, inits, body)?;
                    None
                }
                Op::Yield(values) => Some(End::Falls(self.all(values)?)),
                Op::Continue(values) => Some(next_turn(self, values)?),
                Op::Break(values) => Some(leave(self, values)?),
                Op::Return(_) if self.mask.is_some() => return self.refuse("a return under a condition"),
                Op::Return(_) => {
                    self.push(Code::Exit)?;
                    Some(End::Gone)
                }
                plain_op!() | token_op!() | access_op!() => {
                    self.plain(instr)?;
                    None
                }
            };
            if let Some(end) = ended {
                return Ok(end);
            }
        }
        Ok(End::Falls(Vec::new()))
    }

    fn plain(&mut self, instr: &Instr) -> Done<()> {
        let launch = self.shared.launch.grid;
        let own = (instr.op == Op::TileBlockId).then_some(self.id);
        let three = own.or((instr.op == Op::NumTileBlocks).then_some(launch));
        if let Some(numbers) = three {
            let held = numbers.map(|n| Held::number(u128::from(n))).to_vec();
            self.define_all(&instr.results, held);
            return Ok(());
        }
        if let Some(result) = instr.results.first()
            && let Some(lanes) = self.pure(&instr.op, *result)?
        {
            self.define(instr, 0, Held::Tile(lanes));
            return Ok(());
        }
        if views(self, instr)? || self.memory(instr)? {
            return Ok(());
        }
        let text = format!("{:?}", instr.op);
        let name = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        self.refuse(&format!("the operation {name}"))
    }

    fn choice(
        &mut self,
        instr: &Instr,
        condition: Value,
        then: &Body,
        otherwise: Option<&Body>,
    ) -> Done<Option<End>> {
        let nothing = Body::default();
        let otherwise = otherwise.unwrap_or(&nothing);
        let Some(lane) = self.lanes(condition)?.first().copied() else {
            return self.refuse("a condition without elements");
        };
        // What follows a `continue` of an unrolled loop is masked.
        let escapes =
            !matches!(self.loops.last(), Some(Turn::Masked(_))) && (leaves(then) || leaves(otherwise));
        let token = |v: &Value| matches!(self.shared.function.ty(*v), Some(Type::Token));
        let tokens = instr.results.iter().any(token);
        match (lane.bits(), self.number(lane)?) {
            (Some(known), _) if escapes || !tokens => {
                match self.run_block(if known != 0 { then } else { otherwise })? {
                    End::Falls(held) => {
                        self.define_all(&instr.results, held);
                        Ok(None)
                    }
                    end => Ok(Some(end)),
                }
            }
            (Some(known), _) => {
                let when = self.fresh("c")?;
                self.thread.regs[when.index()].init = RegInit::Value(known);
                self.masked_arms(instr, when, then, otherwise)
            }
            (None, Operand::Reg(when)) if escapes => self.branched(instr, when, then, otherwise),
            (None, Operand::Reg(when)) => self.masked_arms(instr, when, then, otherwise),
            (None, _) => self.refuse("this condition"),
        }
    }

    fn masked_arms(&mut self, instr: &Instr, when: Reg, then: &Body, otherwise: &Body) -> Done<Option<End>> {
        let start = self.thread.body.len();
        let yes = self.arm(when, then)?;
        let not = self.fresh("p")?;
        let (a, b) = (Operand::Reg(when), Operand::Imm(0));
        self.push(Code::Setp { op: CmpOp::Eq, ty: Ty::U(8), dst: not, a, b })?;
        let no = self.arm(not, otherwise)?;
        let whole = |arm: &Arm| arm.masks[0] == arm.masks[1];
        let all = whole(&yes) && whole(&no);
        let (held, reached) = match (yes.end, no.end) {
            (End::Gone, End::Gone) => return Ok(Some(End::Gone)),
            (End::Gone, End::Falls(held)) => (held, no.masks[1]),
            (End::Falls(held), End::Gone) => (held, yes.masks[1]),
            (End::Falls(a), End::Falls(b)) => {
                let held = self.merged(&instr.results, (when, start), a, b)?;
                (held, if all { self.mask } else { self.or(yes.masks[1], no.masks[1])? })
            }
        };
        self.define_all(&instr.results, held);
        if reached != self.mask {
            (self.mask, self.masked_since) = (reached, self.thread.body.len());
        }
        Ok(None)
    }

    /// Runs an arm under the condition in a register.
    fn arm(&mut self, when: Reg, body: &Body) -> Done<Arm> {
        let outer = (self.mask, self.masked_since);
        let mask = Some(self.both(Operand::Reg(when))?);
        (self.mask, self.masked_since) = (mask, self.thread.body.len());
        let end = self.run_block(body)?;
        let masks = [mask, self.mask];
        (self.mask, self.masked_since) = outer;
        Ok(Arm { end, masks })
    }

    /// A mask that holds where one of two does.
    fn or(&mut self, a: Option<Reg>, b: Option<Reg>) -> Done<Option<Reg>> {
        let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
        let dst = self.fresh("p")?;
        let (a, b) = (Operand::Reg(a), Operand::Reg(b));
        self.push(Code::Alu { op: AluOp::Or, ty: Ty::U(8), dst, a, b })?;
        Ok(Some(dst))
    }

    /// Values with the types of `names`: `yes` where the register holds, otherwise `no`. Accesses from `start` on happen
    /// only where the register holds if `yes` names them, and only where it does not if `no` does.
    pub(super) fn merged(
        &mut self,
        names: &[Value],
        (when, start): (Reg, usize),
        yes: Vec<Held>,
        no: Vec<Held>,
    ) -> Done<Vec<Held>> {
        let mut out = Vec::new();
        for (name, pair) in names.iter().zip(yes.into_iter().zip(no)) {
            out.push(match pair {
                (Held::Token(yes), Held::Token(no)) => {
                    let dst = self.fresh("t")?;
                    let token = match self.same_before(start, yes, no) {
                        true => TileToken::Join { dst, from: vec![yes, no] },
                        false => TileToken::Choose { dst, when, yes, no },
                    };
                    self.push(Code::Tile(TileOp::Token(token)))?;
                    Held::Token(dst)
                }
                (Held::Tile(yes), Held::Tile(no)) => {
                    let (elem, p) = (self.type_of(*name)?.elem, Lane::Number(Operand::Reg(when)));
                    let lanes = yes.into_iter().zip(no).map(|(a, b)| self.either(elem, p, a, b));
                    Held::Tile(lanes.collect::<Done<Vec<Lane>>>()?)
                }
                _ => return self.refuse("arms that yield different things"),
            });
        }
        Ok(out)
    }

    /// Whether both tokens stand for the same accesses before `start`.
    fn same_before(&self, start: usize, yes: Reg, no: Reg) -> bool {
        let before = |token| {
            let mut all = BTreeSet::new();
            self.stands_for(token, &mut all).then(|| all.range(..start).copied().collect::<Vec<usize>>())
        };
        before(yes).is_some_and(|yes| before(no) == Some(yes))
    }

    /// Adds the accesses that a token stands for. Returns false if a condition chooses them or the token is written twice.
    fn stands_for(&self, token: Reg, out: &mut BTreeSet<usize>) -> bool {
        let made = |i: &Step| matches!(&i.op, Code::Tile(op) if op.token() == Some(token));
        let mut makers = (0..self.thread.body.len()).filter(|at| made(&self.thread.body[*at]));
        let (Some(at), None) = (makers.next(), makers.next()) else { return false };
        let Code::Tile(op) = &self.thread.body[at].op else { return false };
        match op {
            TileOp::Access(access) => {
                !out.insert(at) || access.after.is_none_or(|after| self.stands_for(after, out))
            }
            TileOp::Token(TileToken::Join { from, .. }) => from.iter().all(|t| self.stands_for(*t, out)),
            TileOp::Token(TileToken::Choose { .. }) => false,
        }
    }

    /// Adds a branch guarded by the register, or by its negation if `negated`. The target is filled in later.
    pub(super) fn jump_unless(&mut self, reg: Reg, negated: bool) -> Done<usize> {
        let at = self.push(Code::Bra { target: 0 })?;
        self.thread.body[at].guard = Some(Guard { reg, negated });
        Ok(at)
    }

    pub(super) fn land(&mut self, jumps: &[usize]) {
        let target = self.label();
        for at in jumps {
            if let Some(Step { op, .. }) = self.thread.body.get_mut(*at) {
                *op = Code::Bra { target };
            }
        }
    }

    fn branched(&mut self, instr: &Instr, when: Reg, then: &Body, otherwise: &Body) -> Done<Option<End>> {
        if self.mask.is_some() {
            return self.refuse("leaving a loop from an arm under a mask");
        }
        // The arm behind which execution does not continue comes first.
        let swapped = !gone(then) && gone(otherwise);
        let (first, second) = if swapped { (otherwise, then) } else { (then, otherwise) };
        let over = self.jump_unless(when, !swapped)?;
        let one = self.run_block(first)?;
        let End::Falls(held) = one else {
            self.land(&[over]);
            return match self.run_block(second)? {
                End::Gone => Ok(Some(End::Gone)),
                End::Falls(held) => {
                    self.define_all(&instr.results, held);
                    Ok(None)
                }
            };
        };
        let places = places_for(self, &instr.results)?;
        assign_each(self, &places, &held)?;
        let end = self.push(Code::Bra { target: 0 })?;
        self.land(&[over]);
        if let End::Falls(held) = self.run_block(second)? {
            assign_each(self, &places, &held)?;
        }
        self.land(&[end]);
        self.define_all(&instr.results, places);
        Ok(None)
    }
}
