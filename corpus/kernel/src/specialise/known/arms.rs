//! The arms of conditional branches: those that end the kernel because a check failed, and those without effect on
//! synchronisation.

use crate::ptx::{Arg, Kernel, Plain, Statement, What};
use moire_program::ir::{LoadOrder, Op, Space, StoreOrder};
use moire_program::registers::only_registers;

/// The function that a failed `assert` calls.
pub(crate) const ASSERT_FAIL: &str = "__assertfail";

/// Most statements in the arms of a branch without effect on synchronisation.
const ARMS: usize = 512;

/// The function that a statement calls.
pub(crate) fn called(plain: &Plain) -> Option<&str> {
    // PTX ISA 9.2, 9.7.12.5: the results come before the function.
    plain.args.iter().find_map(|arg| match arg {
        Arg::Name(name) if plain.words[0] == "call" => Some(name.as_str()),
        _ => None,
    })
}

fn is_call_of(function: &str, plain: &Plain) -> bool {
    plain.words[0] == "call" && plain.args.iter().any(|a| matches!(a, Arg::Name(n) if n == function))
}

/// For each place of the body: whether the kernel runs from there into a trap or a failed `assert`, and does nothing else.
pub(crate) fn fails(kernel: &Kernel) -> Vec<bool> {
    let mut out = vec![false; kernel.body.len() + 1];
    for (pc, statement) in kernel.body.iter().enumerate().rev() {
        out[pc] = match &statement.what {
            _ if statement.guard.is_some() => false,
            What::Plain(plain) if plain.words[0] == "trap" || is_call_of(ASSERT_FAIL, plain) => true,
            What::Plain(plain) => computes(plain) && out[pc + 1],
            What::Core(op) => only_registers(op) && out[pc + 1],
            What::Branch { target } => *target > pc && out.get(*target) == Some(&true),
            What::Table { .. } | What::Exit => false,
        };
    }
    out
}

/// Whether an instruction computes, loads, or stores to parameters of calls and private memory.
fn computes(plain: &Plain) -> bool {
    let private = || plain.words.iter().any(|w| matches!(w.as_str(), "param" | "local"));
    match plain.words[0].as_str() {
        "st" => private(),
        "wmma" => plain.words.get(1).is_some_and(|w| w == "mma"),
        "call" | "brx" | "alloca" | "stacksave" | "stackrestore" | "atom" | "red" | "cp" | "multimem"
        | "tensormap" | "bar" | "barrier" | "mbarrier" | "sust" | "sured" | "suld" | "tex" | "tld4"
        | "discard" | "fence" | "stmatrix" | "trap" => false,
        _ => true,
    }
}

/// Whether a statement may be taken to run although it is not known whether it does: it computes, or moves data by
/// ordinary accesses. No order between threads depends on it.
pub(crate) fn moves_data(statement: &Statement) -> bool {
    match &statement.what {
        What::Plain(plain) => computes(plain),
        What::Core(Op::Load { order, .. }) => *order == LoadOrder::Weak,
        What::Core(Op::Store { order, space, .. }) => *order == StoreOrder::Weak && *space == Space::Global,
        What::Core(op) => only_registers(op),
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}

/// For each branch: whether all statements of both arms, up to where the arms meet, move data only, in no loop.
pub(crate) fn quiet(kernel: &Kernel, next: &[Vec<usize>], meets: &[usize]) -> Vec<bool> {
    let quiet = |pc: usize| {
        let (mut stack, mut seen) = (next[pc].clone(), Vec::new());
        while let Some(at) = stack.pop() {
            if at == meets[pc] || seen.contains(&at) {
                continue;
            }
            let Some(statement) = kernel.body.get(at) else { return false };
            let jumps = matches!(statement.what, What::Branch { .. });
            if !(jumps || moves_data(statement)) || seen.len() == ARMS || next[at].iter().any(|n| *n <= at) {
                return false;
            }
            seen.push(at);
            stack.extend(&next[at]);
        }
        true
    };
    let branches =
        |pc: usize| matches!(kernel.body[pc].what, What::Branch { .. }) && kernel.body[pc].guard.is_some();
    (0..kernel.body.len()).map(|pc| branches(pc) && meets[pc] > pc && quiet(pc)).collect()
}
