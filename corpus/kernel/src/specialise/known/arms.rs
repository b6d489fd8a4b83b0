//! The arms of conditional branches: those that end the kernel because a check failed, and those without effect on
//! synchronisation.

use crate::ptx::{Kernel, Sort, Statement, What, sort};
use moire_isa::kinds::{self, Space as In};
use moire_isa::operand::Callee;
use moire_isa::{Call, Instr};
use moire_program::ir::{LoadOrder, Op, Space, StoreOrder};
use moire_program::registers::only_registers;

/// The function that a failed `assert` calls.
pub(crate) const ASSERT_FAIL: &str = "__assertfail";

/// Most statements in the arms of a branch without effect on synchronisation.
const ARMS: usize = 512;

/// The function that a call names.
pub(crate) fn called<'k>(kernel: &'k Kernel, call: &Call) -> Option<&'k str> {
    match call.callee {
        Callee::Named(index) => kernel.names.get(index as usize).map(String::as_str),
        Callee::Register(_) => None,
    }
}

/// Whether an instruction ends the launch: a trap, or a failed `assert`.
fn ends(kernel: &Kernel, instr: &Instr) -> bool {
    match sort(instr) {
        Sort::Trap => true,
        Sort::Call(call) => called(kernel, call) == Some(ASSERT_FAIL),
        _ => false,
    }
}

/// For each place of the body: whether the kernel runs from there into a trap or a failed `assert`, and does nothing else.
pub(crate) fn fails(kernel: &Kernel) -> Vec<bool> {
    let mut out = vec![false; kernel.body.len() + 1];
    for (pc, statement) in kernel.body.iter().enumerate().rev() {
        out[pc] = match &statement.what {
            _ if statement.guard.is_some() => false,
            What::Plain(instr) if ends(kernel, instr) => true,
            What::Plain(instr) => computes(instr) && out[pc + 1],
            What::Core(op) => only_registers(op) && out[pc + 1],
            What::Branch { target } => *target > pc && out.get(*target) == Some(&true),
            What::Table { .. } | What::Exit => false,
        };
    }
    out
}

/// For each place of the body, and its end: whether the kernel exits from there and does nothing else that others see.
pub(crate) fn leaves(kernel: &Kernel) -> Vec<bool> {
    let mut out = vec![true; kernel.body.len() + 1];
    for (pc, statement) in kernel.body.iter().enumerate().rev() {
        out[pc] = match &statement.what {
            _ if statement.guard.is_some() => false,
            What::Exit => true,
            What::Plain(instr) => computes(instr) && out[pc + 1],
            What::Core(op) => only_registers(op) && out[pc + 1],
            What::Branch { target } => *target > pc && out.get(*target) == Some(&true),
            What::Table { .. } => false,
        };
    }
    out
}

/// Whether an instruction computes, loads, or stores to parameters of calls and private memory.
fn computes(instr: &Instr) -> bool {
    match sort(instr) {
        Sort::Store(st) => matches!(st.space, In::Param | In::Local),
        Sort::Computes(_) | Sort::Load(_) | Sort::Uniform(_) | Sort::LoadMatrix(_) | Sort::Hint => true,
        Sort::Update(_) | Sort::StoreMatrix(_) | Sort::StoreAway(_) | Sort::StoreRange(_) | Sort::Call(_) => {
            false
        }
        Sort::Trap | Sort::Fence | Sort::Synchronises | Sort::Touches | Sort::Elsewhere => false,
    }
}

/// Whether a statement may be taken to run although it is not known whether it does: it computes, or moves data by
/// ordinary accesses. No order between threads depends on it. A store to shared memory is one only if nothing depends on the
/// word ([`stores_shared`]).
pub(crate) fn moves_data(statement: &Statement) -> bool {
    match &statement.what {
        What::Plain(instr) => match sort(instr) {
            Sort::Store(st) if st.space == In::Global => st.order.order == kinds::StoreOrder::Weak,
            _ => computes(instr),
        },
        What::Core(Op::Load { order, .. }) => *order == LoadOrder::Weak,
        What::Core(Op::Store { order, space, .. }) => *order == StoreOrder::Weak && *space == Space::Global,
        What::Core(op) => only_registers(op),
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}

/// Whether a statement is a weak store to shared memory of the CTA.
pub(crate) fn stores_shared(statement: &Statement) -> bool {
    match &statement.what {
        What::Plain(instr) => matches!(sort(instr), Sort::Store(st)
            if st.space == In::SharedCta && st.order.order == kinds::StoreOrder::Weak),
        What::Core(op) => matches!(op, Op::Store { order: StoreOrder::Weak, space: Space::SharedCta, .. }),
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}

/// For each branch, if all statements of both arms, up to where the arms meet, move data only, in no loop: the lines of the
/// stores to shared memory among them.
pub(crate) fn quiet(kernel: &Kernel, next: &[Vec<usize>], meets: &[usize]) -> Vec<Option<Vec<u32>>> {
    let quiet = |pc: usize| {
        let (mut stack, mut seen, mut stores) = (next[pc].clone(), Vec::new(), Vec::new());
        while let Some(at) = stack.pop() {
            if at == meets[pc] || seen.contains(&at) {
                continue;
            }
            let statement = kernel.body.get(at)?;
            let jumps = matches!(statement.what, What::Branch { .. });
            let shared = stores_shared(statement);
            let moves = jumps || shared || moves_data(statement);
            if !moves || seen.len() == ARMS || next[at].iter().any(|n| *n <= at) {
                return None;
            }
            stores.extend(shared.then_some(statement.line));
            seen.push(at);
            stack.extend(&next[at]);
        }
        Some(stores)
    };
    let branches =
        |pc: usize| matches!(kernel.body[pc].what, What::Branch { .. }) && kernel.body[pc].guard.is_some();
    let one = |pc: usize| if branches(pc) && meets[pc] > pc { quiet(pc) } else { None };
    (0..kernel.body.len()).map(one).collect()
}
