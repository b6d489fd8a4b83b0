//! Loads whose value is compared with constants and used for nothing else.
//!
//! Two values that such comparisons answer alike lead a thread the same way, to the same events and dependencies; only the
//! register itself differs, and the predicates made of it do not. So runs need not be told apart by the value
//! ([`crate::thread::runs`]): a search loop over n cells has as many runs as places to stop at, not as values to find there. Final
//! registers are those of a run of their own ([`crate::finish::view`]).
//!
//! A register that is live at the head of a loop that may spin is none of these: whether an iteration changed anything is
//! seen by its value.

use super::num::{extended, number};
use super::operands::Regs;
use moire_execution::leaf::compare;
use moire_program::ir::{CmpOp, Instr, Op, Operand, Reg, Thread, Ty, Value};
use std::collections::BTreeSet;
use std::rc::Rc;

/// A comparison of a register with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Test {
    op: CmpOp,
    ty: Ty,
    constant: Value,
    /// The constant is the first operand.
    turned: bool,
}

/// The comparisons a loaded value is used for: at most 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tests {
    loaded: Ty,
    tests: Rc<[Test]>,
}

impl Tests {
    /// The answers for a value as it lies in memory, a bit each.
    pub(crate) fn answers(&self, value: Value) -> u64 {
        let value = extended(self.loaded, value);
        let answer = |test: &Test| {
            let (a, b) = if test.turned { (test.constant, value) } else { (value, test.constant) };
            compare(test.op, number(test.ty, a), number(test.ty, b))
        };
        self.tests.iter().rev().fold(0, |bits, test| bits << 1 | u64::from(answer(test)))
    }
}

/// By pc, what is asked of the value loaded there, if that is all it is used for. `reads`: the registers each instruction
/// reads; `kept`: those whose value matters.
pub(crate) fn tests(thread: &Thread, reads: &[Regs], kept: &BTreeSet<Reg>) -> Vec<Option<Tests>> {
    if thread.place.lanes().count_ones() != 1 {
        return vec![None; thread.body.len()];
    }
    let one = |i: &Instr| {
        let Op::Load { ty, dst, .. } = &i.op else { return None };
        let [dst] = dst[..] else { return None };
        let readers = thread.body.iter().zip(reads).filter(|(_, r)| r.contains(&dst)).map(|r| r.0);
        if kept.contains(&dst) { None } else { of_load(*ty, dst, readers) }
    };
    thread.body.iter().map(one).collect()
}

fn of_load<'i>(loaded: Ty, reg: Reg, readers: impl Iterator<Item = &'i Instr>) -> Option<Tests> {
    if loaded.packed() || loaded.bytes() > 8 {
        return None;
    }
    let mut tests: Vec<Test> = Vec::new();
    for reader in readers {
        let test = of_register(reader, reg)?;
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    (tests.len() <= 64).then(|| Tests { loaded, tests: tests.into() })
}

/// The comparison with a constant this instruction is, of `reg` and of nothing else.
fn of_register(instr: &Instr, reg: Reg) -> Option<Test> {
    let Op::Setp { op, ty, a, b, .. } = instr.op else { return None };
    if instr.guard.is_some_and(|g| g.reg == reg) {
        return None;
    }
    #[expect(clippy::cast_sign_loss, reason = "an immediate is a bit pattern")]
    let test = |constant: i128, turned| Some(Test { op, ty, constant: constant as Value, turned });
    match (a, b) {
        (Operand::Reg(r), Operand::Imm(c)) if r == reg => test(c, false),
        (Operand::Imm(c), Operand::Reg(r)) if r == reg => test(c, true),
        _ => None,
    }
}
