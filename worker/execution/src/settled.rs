//! What no value of a read can change: a program without the dependencies that are none.
//!
//! PTX ISA 8.10.4 rules out values that come out of thin air "through chains of instruction dependencies" and does not say
//! what a dependency is. By the letter of an instruction, `xor r1, r0, r0` depends on `r0`. An assembler computes that it is 0,
//! and what is stored then no longer waits for the load: an H200 (driver 13.0) shows `corpus/litmus/dependencies/lb-false-data.litmus`
//! 2,161 times in 69,632. So a dependency is what some value of a read can change (switch Q17=B).
//!
//! This pass finds, for each thread, what is fixed whatever is read, by the bits that are known on every path (conditional
//! constant propagation; Wegman and Zadeck, *Constant Propagation with Conditional Branches*, TOPLAS 1991), and writes the
//! program so that engines see no dependency there:
//!
//! - an instruction with a fixed result moves that number;
//! - a guard that is fixed is gone, or what it keeps from computing or branching is;
//! - a branch around nothing is gone; one around instructions that only touch registers becomes their guard.
//!
//! Instructions keep their positions. Alone, each thread computes what it computed before. Arms of a branch that reach memory
//! stay as they are, so what follows them depends on the branch, although a compiler may move it in front (Q14).

use crate::leaf::{arithmetic, compare, sign_extend, truncate};
use moire_cat::Model;
use moire_cat::contract::Dependencies;
use moire_program::ir::{
    AluOp, CmpOp, Guard, Instr, Op, Operand, Program, Reg, RegInit, Tcgen05, Thread, Ty, Value,
};
use moire_program::registers::{only_registers, used, written};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// `program`, as the dependencies of `model` want it: without those that are none.
pub fn settled<'p>(program: &'p Program, model: &Model) -> Cow<'p, Program> {
    match model.settings().dependencies {
        Dependencies::Registers => Cow::Borrowed(program),
        Dependencies::Values => plain(program),
    }
}

/// `program`, without the dependencies that are none.
pub fn plain(program: &Program) -> Cow<'_, Program> {
    let mut out = Cow::Borrowed(program);
    for (t, thread) in program.threads.iter().enumerate() {
        if !thread.body.iter().any(|i| computes(&i.op) || i.guard.is_some()) || keeps(thread) {
            continue;
        }
        let mut next = thread.clone();
        arms(&mut next);
        fixed(&mut next);
        if next != *thread {
            out.to_mut().threads[t] = next;
        }
    }
    out
}

/// Whether it matters which registers a thread reads, or on which path: it has tokens, or registers that a unit still fills.
fn keeps(thread: &Thread) -> bool {
    let unit = |op: &Op| matches!(op, Op::Tile(_) | Op::Wgmma(_) | Op::Tcgen05(Tcgen05::Load(_)));
    thread.body.iter().any(|i| unit(&i.op))
}

/// Does nothing, in the place of the instruction at `pc`.
fn nothing(body: &mut [Instr], pc: usize) {
    body[pc] = Instr { guard: None, op: Op::Bra { target: pc + 1 }, ..body[pc].clone() };
}

/// Turns branches around register instructions into guards.
fn arms(thread: &mut Thread) {
    for pc in 0..thread.body.len() {
        let (Some(guard), Op::Bra { target }) = (thread.body[pc].guard, &thread.body[pc].op) else {
            continue;
        };
        let target = *target;
        if target == pc + 1 {
            nothing(&mut thread.body, pc);
        } else if target > pc {
            around(thread, pc, target, guard);
        }
    }
}

/// A branch at `pc` to `target`, forward: what it skips, and, where that ends in a jump over a second arm, that one too.
fn around(thread: &mut Thread, pc: usize, target: usize, guard: Guard) {
    let skips =
        |i: &Instr| if let (None, Op::Bra { target }) = (i.guard, &i.op) { Some(*target) } else { None };
    let last = skips(&thread.body[target - 1]).filter(|meet| *meet > target && target - 1 > pc);
    let (first, second) = match last {
        Some(meet) => (pc + 1..target - 1, target..meet),
        None => (pc + 1..target, target..target),
    };
    let end = second.end;
    let inside = |to: usize| to > pc && to < end && to != second.start;
    let entered = |(at, i): (usize, &Instr)| {
        let Op::Bra { target } = i.op else { return false };
        at != pc && (inside(target) || (target == second.start && last.is_some()))
    };
    if thread.body.iter().enumerate().any(entered) {
        return;
    }
    let all: Vec<usize> = first.clone().chain(second.clone()).collect();
    if !all.iter().all(|at| quiet(&thread.body[*at], guard.reg)) {
        return;
    }
    for at in all {
        let negated = guard.negated != first.contains(&at);
        thread.body[at].guard = Some(Guard { negated, ..guard });
    }
    if last.is_some() {
        nothing(&mut thread.body, target - 1);
    }
    nothing(&mut thread.body, pc);
}

/// An instruction that only touches registers, and not this one.
fn quiet(instr: &Instr, kept: Reg) -> bool {
    let mut changes = false;
    written(&instr.op, &mut |reg| changes |= reg == kept);
    instr.guard.is_none() && computes(&instr.op) && !changes
}

fn computes(op: &Op) -> bool {
    matches!(op, Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. }) && only_registers(op)
}

/// Bits that are the same on every path, whatever is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bits {
    known: Value,
    value: Value,
}

impl Bits {
    fn all(value: Value) -> Self {
        Bits { known: Value::MAX, value }
    }

    fn number(self) -> Option<Value> {
        (self.known == Value::MAX).then_some(self.value)
    }

    /// What both know.
    fn meet(self, other: Self) -> Self {
        let known = self.known & other.known & !(self.value ^ other.value);
        Bits { known, value: self.value & known }
    }

    /// The low bits; the others are zero.
    fn low(self, bits: u32) -> Self {
        let mask = truncate(Value::MAX, bits);
        Bits { known: self.known | !mask, value: self.value & mask }
    }

    /// The least and the greatest number.
    fn range(self) -> (Value, Value) {
        (self.value, self.value | !self.known)
    }
}

/// What is known at the start of each block that is reached, by register. A block ends in front of the next.
type Fronts = BTreeMap<usize, Vec<Bits>>;

/// Writes what is fixed as numbers.
fn fixed(thread: &mut Thread) {
    let (fronts, starts) = (fronts(thread), starts(thread));
    for (start, front) in fronts {
        let mut front = front;
        for pc in start..thread.body.len() {
            if pc > start && starts.contains(&pc) {
                break;
            }
            let after = behind(&front, &thread.body[pc]);
            settle(thread, pc, &front, &after);
            front = after;
        }
    }
}

/// Writes an instruction, between what is known before it and behind it.
fn settle(thread: &mut Thread, pc: usize, front: &[Bits], after: &[Bits]) {
    // What loads is observed, so it stays, whether or not it takes place.
    let goes = computes(&thread.body[pc].op) || matches!(thread.body[pc].op, Op::Bra { .. });
    match holds(front, &thread.body[pc]) {
        Some(Some(false)) if goes => return nothing(&mut thread.body, pc),
        Some(Some(true)) => thread.body[pc].guard = None,
        Some(Some(false)) | Some(None) | None => {}
    }
    let instr = &thread.body[pc];
    let mut reads = instr.guard.is_some();
    used(&instr.op, &mut |_| reads = true);
    if let Some((dst, ty)) = result(&instr.op)
        && reads
        && let Some(value) = after[dst.index()].number()
    {
        // Numbers of 128 bits are patterns.
        let src = Operand::Imm(value.cast_signed());
        thread.body[pc] = Instr { guard: None, op: Op::Mov { ty, dst, src }, ..instr.clone() };
    }
}

/// Of an instruction with a guard: whether it holds, if that is fixed.
fn holds(front: &[Bits], instr: &Instr) -> Option<Option<bool>> {
    instr.guard.map(|g| front[g.reg.index()].number().map(|v| (v != 0) != g.negated))
}

/// The register that a computation writes, and the type of what it holds then.
fn result(op: &Op) -> Option<(Reg, Ty)> {
    if let Op::Setp { dst, .. } = op {
        return Some((*dst, Ty::Pred));
    }
    let (Op::Mov { ty, dst, .. } | Op::Alu { ty, dst, .. } | Op::Selp { ty, dst, .. }) = op else {
        return None;
    };
    Some((*dst, *ty))
}

/// Where blocks start: at the first instruction, where branches lead, and behind them.
fn starts(thread: &Thread) -> BTreeSet<usize> {
    let mut out = BTreeSet::from([0]);
    for (pc, instr) in thread.body.iter().enumerate() {
        if let Op::Bra { target } = instr.op {
            out.extend([target, pc + 1]);
        } else if instr.op == Op::Exit {
            out.insert(pc + 1);
        }
    }
    out
}

/// Follows the paths that fixed guards leave until nothing is new.
fn fronts(thread: &Thread) -> Fronts {
    let start = |init: &RegInit| if let RegInit::Value(v) = init { Bits::all(*v) } else { Bits::default() };
    let starts = starts(thread);
    let mut all = Fronts::from([(0, thread.regs.iter().map(|r| start(&r.init)).collect())]);
    let mut todo = vec![0];
    while let Some(from) = todo.pop() {
        let (mut front, mut pc) = (all[&from].clone(), from);
        let (goes, stays) = loop {
            let Some(instr) = thread.body.get(pc) else { break (None, None) };
            let is = holds(&front, instr);
            let target = if let Op::Bra { target } = instr.op { Some(target) } else { None };
            front = behind(&front, instr);
            pc += 1;
            if target.is_some() || instr.op == Op::Exit {
                let stays = !matches!(is, None | Some(Some(true)));
                break (target.filter(|_| is != Some(Some(false))), stays.then_some(pc));
            }
            if starts.contains(&pc) {
                break (None, Some(pc));
            }
        };
        for to in goes.into_iter().chain(stays) {
            let met = match all.get(&to) {
                None => front.clone(),
                Some(old) => old.iter().zip(&front).map(|(a, b)| a.meet(*b)).collect(),
            };
            if all.get(&to) != Some(&met) {
                all.insert(to, met);
                todo.push(to);
            }
        }
    }
    all
}

/// What is known behind an instruction.
fn behind(front: &[Bits], instr: &Instr) -> Vec<Bits> {
    let mut out = front.to_vec();
    written(&instr.op, &mut |reg| out[reg.index()] = Bits::default());
    if let Some((dst, bits)) = known(front, &instr.op) {
        out[dst.index()] = bits;
    }
    if let Op::Load { ty: ty @ (Ty::B(_) | Ty::U(_)), dst, .. } = &instr.op {
        dst.iter().for_each(|reg| out[reg.index()] = Bits::default().low(8 * ty.bytes()));
    }
    if let Some(guard) = instr.guard
        && front[guard.reg.index()].number().is_none()
    {
        out.iter_mut().zip(front).for_each(|(new, old)| *new = new.meet(*old));
    }
    out
}

fn known(front: &[Bits], op: &Op) -> Option<(Reg, Bits)> {
    let of = |operand: &Operand| match operand {
        Operand::Reg(reg) => front[reg.index()],
        Operand::Imm(n) => Bits::all(n.cast_unsigned()),
        Operand::Address(_) => Bits::default(),
    };
    let truth = |is: Option<bool>| is.map_or(Bits::default().low(1), |is| Bits::all(is.into()));
    if let Op::Mov { ty, dst, src } = op {
        let is = *ty == Ty::Pred;
        Some((*dst, if is { truth(of(src).number().map(|v| v != 0)) } else { of(src).low(8 * ty.bytes()) }))
    } else if let Op::Alu { op, ty, dst, a, b } = op {
        Some((*dst, computed(*op, *ty, (a, of(a)), (b, of(b)))))
    } else if let Op::Setp { op, ty, dst, a, b } = op {
        Some((*dst, truth(compared(*op, *ty, (a, of(a)), (b, of(b))))))
    } else if let Op::Selp { ty, dst, a, b, p } = op {
        let (a, b) = (of(a).low(8 * ty.bytes()), of(b).low(8 * ty.bytes()));
        let chosen = front[p.index()].number().map(|p| if p != 0 { a } else { b });
        Some((*dst, chosen.unwrap_or_else(|| a.meet(b))))
    } else {
        None
    }
}

/// Known bits of arithmetic.
fn computed(op: AluOp, ty: Ty, (left, a): (&Operand, Bits), (right, b): (&Operand, Bits)) -> Bits {
    let bits = 8 * ty.bytes();
    if let (Some(a), Some(b)) = (a.number(), b.number()) {
        return Bits::all(arithmetic(op, ty, a, b));
    }
    let (a, b, same) = (a.low(bits), b.low(bits), left == right);
    let zero = |x: Bits| x.number() == Some(0);
    let shift = b.number().and_then(|n| u32::try_from(n).ok()).filter(|n| *n < bits);
    let of = |ones: Value, zeros: Value| Bits { known: ones | zeros, value: ones }.low(bits);
    let (ones, zeros) = (|x: Bits| x.known & x.value, |x: Bits| x.known & !x.value);
    match op {
        AluOp::Sub | AluOp::Xor if same => Bits::all(0),
        AluOp::Mul if zero(a) || zero(b) => Bits::all(0),
        AluOp::Min if !matches!(ty, Ty::S(_)) && (zero(a) || zero(b)) => Bits::all(0),
        AluOp::And => of(ones(a) & ones(b), zeros(a) | zeros(b)),
        AluOp::Or => of(ones(a) | ones(b), zeros(a) & zeros(b)),
        AluOp::Xor => {
            of((ones(a) & zeros(b)) | (zeros(a) & ones(b)), (ones(a) & ones(b)) | (zeros(a) & zeros(b)))
        }
        AluOp::Shl => shift
            .map_or(Bits::default(), |n| of(ones(a) << n, zeros(a) << n | truncate(Value::MAX, n)))
            .low(bits),
        AluOp::Shr if !matches!(ty, Ty::S(_)) => {
            shift.map_or(Bits::default(), |n| of(ones(a) >> n, zeros(a) >> n)).low(bits)
        }
        AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::Div | AluOp::Rem => Bits::default().low(bits),
        AluOp::Shr | AluOp::Min | AluOp::Max => Bits::default().low(bits),
    }
}

/// Whether a comparison has one answer, and which.
fn compared(op: CmpOp, ty: Ty, (left, a): (&Operand, Bits), (right, b): (&Operand, Bits)) -> Option<bool> {
    let bits = 8 * ty.bytes();
    let (a, b) = (a.low(bits), b.low(bits));
    if let (Some(a), Some(b)) = (a.number(), b.number()) {
        let of = |v: Value| match ty {
            Ty::S(_) => sign_extend(v, bits),
            _ => i128::try_from(v).unwrap_or(i128::MAX),
        };
        return Some(compare(op, of(a), of(b)));
    }
    if left == right {
        return Some(matches!(op, CmpOp::Eq | CmpOp::Le | CmpOp::Ge));
    }
    // Two numbers that differ in a bit are not equal.
    if a.known & b.known & (a.value ^ b.value) != 0 && matches!(op, CmpOp::Eq | CmpOp::Ne) {
        return Some(op == CmpOp::Ne);
    }
    if matches!(ty, Ty::S(_)) {
        return None;
    }
    let ((least, most), (low, high)) = (a.range(), b.range());
    match op {
        CmpOp::Lt | CmpOp::Ge if most < low => Some(op == CmpOp::Lt),
        CmpOp::Lt | CmpOp::Ge if least >= high => Some(op == CmpOp::Ge),
        CmpOp::Le | CmpOp::Gt if most <= low => Some(op == CmpOp::Le),
        CmpOp::Le | CmpOp::Gt if least > high => Some(op == CmpOp::Gt),
        CmpOp::Eq | CmpOp::Ne | CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_program::text::{Format, instruction, parse};

    /// The body of a thread that loads `r0`, without what depends on nothing.
    fn body(text: &str) -> Vec<String> {
        let text = format!(
            "moire \"t\"\n.global .b32 x;\nP0 (gpu 0, cta 0) {{ ld.relaxed.gpu.u32 r0, [x]; {text} }}\n"
        );
        let program = parse(&text, Format::Native).expect("a program");
        let thread = &plain(&program).threads[0];
        thread.body[1..].iter().map(|i| instruction(&program, thread, i)).collect()
    }

    #[test]
    fn what_is_fixed_is_a_number() {
        let fixed = [
            ("xor.b32 r1, r0, r0; add.u32 r1, r1, 1;", "mov.u32 r1, 1"),
            ("and.b32 r1, r0, 1; shr.u32 r1, r1, 1;", "mov.u32 r1, 0"),
            ("mul.lo.u32 r1, r0, 0;", "mov.u32 r1, 0"),
            ("and.b32 r1, r0, 3; setp.lt.u32 p, r1, 4; selp.u32 r1, 5, r0, p;", "mov.u32 r1, 5"),
            ("setp.eq.u32 p, r0, r0; @!p mov.u32 r0, 3; selp.u32 r1, 7, 8, p;", "mov.u32 r1, 7"),
            (
                "setp.eq.u32 p, r0, 2; mov.u32 r1, 1; @p bra M; mov.u32 r1, 1; M: add.u32 r2, r1, 1;",
                "mov.u32 r2, 2",
            ),
        ];
        for (text, last) in fixed {
            assert_eq!(body(text).last().map(String::as_str), Some(last), "{text}");
        }
        assert_eq!(
            body("setp.ne.u32 p, r0, r0; @p ld.relaxed.gpu.u32 r1, [x];")[1],
            "@p ld.relaxed.gpu.u32 r1, [x]"
        );
        for text in ["add.u32 r1, r0, 0;", "and.b32 r1, r0, 1; add.u32 r1, r1, 1;", "min.s32 r1, r0, 0;"] {
            assert!(body(text).iter().all(|i| !i.starts_with("mov")), "{text}");
        }
    }

    #[test]
    fn arms_that_touch_registers_are_guards() {
        let arm = "setp.eq.u32 p, r0, 0; @p bra M; mov.u32 r1, 1; M: st.relaxed.gpu.u32 [x], 1;";
        assert_eq!(body(arm)[2..], ["@!p mov.u32 r1, 1", "st.relaxed.gpu.u32 [x], 1"]);
        let both = "setp.eq.u32 p, r0, 0; @!p bra E; mov.u32 r1, 1; bra M; E: mov.u32 r1, 2; M: st.relaxed.gpu.u32 [x], r1;";
        assert_eq!(body(both)[2..][..3], ["@p mov.u32 r1, 1", "bra E", "@!p mov.u32 r1, 2"]);
        // An arm that somebody else jumps into, one that reaches memory, and one that changes the guard.
        let kept = [
            "setp.eq.u32 p, r0, 0; @p bra M; L: mov.u32 r1, 1; M: @!p bra L;",
            "setp.eq.u32 p, r0, 0; @p bra M; st.relaxed.gpu.u32 [x], 1; M:",
            "setp.eq.u32 p, r0, 0; @p bra M; setp.eq.u32 p, r0, 1; M:",
        ];
        for text in kept {
            assert!(body(text)[1].starts_with("@p bra"), "{text}");
        }
    }
}
