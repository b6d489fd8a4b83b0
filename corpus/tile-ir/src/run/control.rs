//! Runs blocks, `if`, `for` and `loop` of a tile block.
//!
//! - If the condition of an `if` is unknown and no arm leaves a loop, both arms are kept under masks.
//! - If an `if` yields tokens, the condition chooses between them. This holds for a known condition too, because readings
//!   of the specification differ on which arm counts. If the two tokens differ only in accesses of the arms themselves,
//!   they are joined instead: accesses of the arm not taken have no events.
//! - If an arm leaves a loop and the condition is unknown, the `if` becomes a branch, which is refused under a mask.

use super::value::{Held, Lane, register_type};
use super::view::views;
use super::{Block, Done};
use crate::{Block as Body, Elem, Instr, Op, Scalar, Sign, Tile, Type, Value};
use moire_program::ir::{
    Address, AluOp, CmpOp, Guard, Instr as Step, Op as Code, Operand, Reg, RegInit, TileOp, TileToken, Ty,
};
use std::collections::BTreeSet;

/// Most iterations of a `for`.
const ITERATIONS: u32 = 4_096;

/// A loop around the current operation.
pub(super) enum Turn {
    /// A `for`, which is unrolled.
    Unrolled,
    /// A `loop`.
    Repeats {
        head: usize,
        carried: Vec<Held>,
        results: Vec<Held>,
        /// Branches to the end of the loop, without target so far.
        breaks: Vec<usize>,
    },
}

/// How a block ends.
enum End {
    /// Execution continues behind the block, which yields these values.
    Falls(Vec<Held>),
    /// The next iteration of a `for` starts with these values.
    Continues(Vec<Held>),
    /// Execution does not continue behind the block.
    Gone,
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
    fn all(&self, values: &[Value]) -> Done<Vec<Held>> {
        values.iter().map(|v| self.held(*v).cloned()).collect()
    }

    fn define_all(&mut self, values: &[Value], held: Vec<Held>) {
        self.values.extend(values.iter().copied().zip(held));
    }

    /// Runs the body of the kernel.
    pub(super) fn block(&mut self, body: &Body) -> Done<()> {
        self.run_block(body).map(|_| ())
    }

    fn run_block(&mut self, body: &Body) -> Done<End> {
        for instr in &body.ops {
            self.line = instr.line;
            let ended = match &instr.op {
                Op::If { condition, then, otherwise } => {
                    self.choice(instr, *condition, then, otherwise.as_ref())?
                }
                Op::For { unsigned, bounds, inits, body } => {
                    self.counted(instr, (*unsigned, bounds), inits, body)?;
                    None
                }
                Op::Loop { inits, body } => {
                    self.repeated(instr, inits, body)?;
                    None
                }
                Op::Yield(values) => Some(End::Falls(self.all(values)?)),
                Op::Continue(values) => Some(self.next_turn(values)?),
                Op::Break(values) => Some(self.leave(values)?),
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
        let escapes = leaves(then) || leaves(otherwise);
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
        let (outer, start) = (self.mask, self.thread.body.len());
        self.mask = Some(self.both(Operand::Reg(when))?);
        let yes = self.run_block(then)?;
        self.mask = outer;
        let not = self.fresh("p")?;
        let (a, b) = (Operand::Reg(when), Operand::Imm(0));
        self.push(Code::Setp { op: CmpOp::Eq, ty: Ty::U(8), dst: not, a, b })?;
        self.mask = Some(self.both(Operand::Reg(not))?);
        let no = self.run_block(otherwise)?;
        self.mask = outer;
        let (End::Falls(yes), End::Falls(no)) = (yes, no) else {
            return self.refuse("an arm that leaves a loop");
        };
        for (i, (yes, no)) in yes.into_iter().zip(no).enumerate() {
            let chosen = match (yes, no) {
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
                    let elem = match instr.results.get(i) {
                        Some(result) => self.type_of(*result)?.elem,
                        None => return self.refuse("a yield of more than there are results"),
                    };
                    let p = Lane::Number(Operand::Reg(when));
                    let lanes = yes.into_iter().zip(no).map(|(a, b)| self.either(elem, p, a, b));
                    Held::Tile(lanes.collect::<Done<Vec<Lane>>>()?)
                }
                _ => return self.refuse("arms that yield different things"),
            };
            self.define(instr, i, chosen);
        }
        Ok(None)
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
    fn jump_unless(&mut self, reg: Reg, negated: bool) -> Done<usize> {
        let at = self.push(Code::Bra { target: 0 })?;
        self.thread.body[at].guard = Some(Guard { reg, negated });
        Ok(at)
    }

    fn land(&mut self, jumps: &[usize]) {
        let target = self.label();
        for at in jumps {
            if let Some(Step { op, .. }) = self.thread.body.get_mut(*at) {
                *op = Code::Bra { target };
            }
        }
    }

    fn branched(&mut self, instr: &Instr, when: Reg, then: &Body, otherwise: &Body) -> Done<Option<End>> {
        if self.mask.is_some() {
            return self.refuse("leaving a loop under two conditions");
        }
        // The arm behind which execution does not continue comes first.
        let swapped = !gone(then) && gone(otherwise);
        let (first, second) = if swapped { (otherwise, then) } else { (then, otherwise) };
        let over = self.jump_unless(when, !swapped)?;
        let one = self.run_block(first)?;
        let mut ends = Vec::new();
        match one {
            End::Gone => {}
            End::Falls(held) if held.is_empty() && instr.results.is_empty() => {
                ends.push(self.push(Code::Bra { target: 0 })?);
            }
            _ => return self.refuse("an arm that goes on beside one that leaves a loop"),
        }
        self.land(&[over]);
        let other = self.run_block(second)?;
        if !ends.is_empty() {
            self.land(&ends);
        }
        match other {
            End::Falls(held) => {
                self.define_all(&instr.results, held);
                Ok(None)
            }
            End::Gone if ends.is_empty() => Ok(Some(End::Gone)),
            End::Gone => Ok(None),
            End::Continues(_) => self.refuse("the next iteration of a for under a condition"),
        }
    }

    fn counted(
        &mut self,
        instr: &Instr,
        (unsigned, bounds): (bool, &[Value; 3]),
        inits: &[Value],
        body: &Body,
    ) -> Done<()> {
        let bits = self.scalar(bounds[0])?.bits().clamp(1, 64);
        let mut known = [0i128; 3];
        for (out, bound) in known.iter_mut().zip(bounds) {
            let Some(value) = self.lanes(*bound)?.first().and_then(|l| l.bits()) else {
                return self.refuse("a for whose bounds come from memory");
            };
            let value = i128::try_from(value).expect("an element has at most 64 bits");
            let negative = !unsigned && value >> (bits - 1) & 1 == 1;
            *out = if negative { value - (1 << bits) } else { value };
        }
        let ([mut at, end, step], mut carried) = (known, self.all(inits)?);
        let mut turns = 0;
        while at < end {
            turns += 1;
            if step <= 0 || turns > ITERATIONS {
                return self.refuse("a for with so many iterations");
            }
            let pattern = u128::try_from(at.rem_euclid(1 << bits)).expect("a remainder is not negative");
            let counter = std::iter::once(Held::number(pattern));
            self.define_all(&body.params, counter.chain(carried.iter().cloned()).collect());
            self.loops.push(Turn::Unrolled);
            let ended = self.run_block(body)?;
            self.loops.pop();
            carried = match ended {
                End::Falls(held) | End::Continues(held) => held,
                End::Gone => return self.refuse("a for that is left early"),
            };
            at += step;
        }
        self.define_all(&instr.results, carried);
        Ok(())
    }

    /// Allocates registers for the elements or the token of a value.
    fn place_for(&mut self, value: Value) -> Done<Held> {
        if matches!(self.shared.function.ty(value), Some(Type::Token)) {
            return Ok(Held::Token(self.fresh("t")?));
        }
        let Tile { elem, .. } = self.type_of(value)?;
        let count = self.type_of(value)?.elements();
        let lane = |block: &mut Self| {
            let base = Operand::Reg(block.fresh("v")?);
            Ok(match elem {
                Elem::Scalar(_) => Lane::Number(base),
                Elem::Pointer { .. } => Lane::Pointer(Address { base, offset: 0 }),
            })
        };
        Ok(Held::Tile((0..count).map(|_| lane(self)).collect::<Done<Vec<Lane>>>()?))
    }

    fn places_for(&mut self, values: &[Value]) -> Done<Vec<Held>> {
        values.iter().map(|v| self.place_for(*v)).collect()
    }

    fn assign(&mut self, to: &Held, from: &Held) -> Done<()> {
        match (to, from) {
            (Held::Token(dst), Held::Token(from)) => {
                let join = TileToken::Join { dst: *dst, from: vec![*from] };
                self.push(Code::Tile(TileOp::Token(join)))?;
            }
            (Held::Tile(to), Held::Tile(from)) => {
                let ty = register_type(Scalar::I64, Sign::Unsigned);
                for pair in to.iter().zip(from) {
                    match pair {
                        (Lane::Number(Operand::Reg(dst)), Lane::Number(src)) => {
                            self.push(Code::Mov { ty, dst: *dst, src: *src })?;
                        }
                        (Lane::Pointer(Address { base: Operand::Reg(dst), .. }), Lane::Pointer(from)) => {
                            let (a, b) = (from.base, Operand::Imm(i128::from(from.offset)));
                            self.push(Code::Alu { op: AluOp::Add, ty, dst: *dst, a, b })?;
                        }
                        _ => return self.refuse("this loop-carried value"),
                    }
                }
            }
            _ => return self.refuse("this loop-carried value"),
        }
        Ok(())
    }

    /// Assigns all values at once, through copies.
    fn assign_all(&mut self, names: &[Value], to: &[Held], from: &[Held]) -> Done<()> {
        let mut copies = Vec::new();
        for (name, from) in names.iter().zip(from) {
            let copy = self.place_for(*name)?;
            self.assign(&copy, from)?;
            copies.push(copy);
        }
        to.iter().zip(&copies).try_for_each(|(to, copy)| self.assign(to, copy))
    }

    fn repeated(&mut self, instr: &Instr, inits: &[Value], body: &Body) -> Done<()> {
        if self.mask.is_some() {
            return self.refuse("a loop under a condition");
        }
        let carried = self.places_for(&body.params)?;
        let results = self.places_for(&instr.results)?;
        let start = self.all(inits)?;
        carried.iter().zip(&start).try_for_each(|(to, from)| self.assign(to, from))?;
        self.define_all(&body.params, carried.clone());
        let head = self.label();
        let turn = Turn::Repeats { head, carried, results: results.clone(), breaks: Vec::new() };
        self.loops.push(turn);
        if let End::Falls(held) = self.run_block(body)? {
            self.around(&body.params, &held)?;
        }
        if let Some(Turn::Repeats { breaks, .. }) = self.loops.pop() {
            self.land(&breaks);
        }
        self.define_all(&instr.results, results);
        Ok(())
    }

    /// Branches to the head of the innermost loop.
    fn around(&mut self, names: &[Value], held: &[Held]) -> Done<()> {
        let Some(Turn::Repeats { head, carried, .. }) = self.loops.last() else {
            return self.refuse("continue outside a loop");
        };
        let (target, carried) = (*head, carried.clone());
        self.assign_all(names, &carried, held)?;
        self.push(Code::Bra { target })?;
        Ok(())
    }

    fn next_turn(&mut self, values: &[Value]) -> Done<End> {
        let held = self.all(values)?;
        match self.loops.last() {
            Some(Turn::Unrolled) => Ok(End::Continues(held)),
            _ if self.mask.is_some() => self.refuse("continue under a condition"),
            _ => {
                self.around(values, &held)?;
                Ok(End::Gone)
            }
        }
    }

    fn leave(&mut self, values: &[Value]) -> Done<End> {
        let held = self.all(values)?;
        let Some(Turn::Repeats { results, .. }) = self.loops.last() else {
            return self.refuse("break outside a loop");
        };
        if self.mask.is_some() {
            return self.refuse("break under a condition");
        }
        let results = results.clone();
        results.iter().zip(&held).try_for_each(|(to, from)| self.assign(to, from))?;
        let at = self.push(Code::Bra { target: 0 })?;
        if let Some(Turn::Repeats { breaks, .. }) = self.loops.last_mut() {
            breaks.push(at);
        }
        Ok(End::Gone)
    }
}
