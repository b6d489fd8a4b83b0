//! Edits in words, with the lines of the text.

use crate::Step;
use moire_program::edit::{Added, Edit, WaitFor};
use moire_program::ir::{Address, Op, Operand, Program, Thread};
use moire_program::text::instruction;
use std::collections::BTreeSet;

/// One sentence for each step: what to do, and where. `program` is the one before the edits.
pub fn describe(program: &Program, steps: &[Step]) -> Vec<String> {
    steps.iter().filter_map(|step| sentence(program, step)).collect()
}

fn sentence(program: &Program, step: &Step) -> Option<String> {
    let first = step.first()?;
    let thread = program.threads.get(first.thread())?;
    let names: BTreeSet<usize> = step.iter().map(Edit::thread).collect();
    let names: Vec<&str> =
        names.iter().filter_map(|t| program.threads.get(*t)).map(|t| t.name.as_str()).collect();
    let of = names.join(", ");
    let text = |op: &Op| {
        let instr = moire_program::ir::Instr::new(op.clone());
        instruction(program, thread, &instr)
    };
    let line = |at: usize| thread.body.get(at).map_or(0, |i| i.line);
    Some(match first {
        Edit::Insert { at, what, .. } => {
            let (what, more) = match what {
                Added::Plain(op) => {
                    let rest = step.iter().skip(1).filter_map(|e| match e {
                        Edit::Insert { thread: t, at: a, what: Added::Plain(op) }
                            if *t == first.thread() && a == at =>
                        {
                            Some(text(op))
                        }
                        _ => None,
                    });
                    (text(op), rest.collect::<Vec<_>>())
                }
                Added::Wait(wait) => (waiting(program, wait), Vec::new()),
            };
            let all: Vec<String> = [what].into_iter().chain(more).collect();
            format!("add `{}` {} of {of}", all.join("; "), between(thread, *at))
        }
        Edit::Replace { at, op, .. } => {
            let now = thread.body.get(*at).map_or_else(String::new, |i| text(&i.op));
            format!("write `{}` instead of `{now}` in line {} of {of}", text(op), line(*at))
        }
        Edit::Delete { at, .. } => {
            let now = thread.body.get(*at).map_or_else(String::new, |i| text(&i.op));
            format!("remove `{now}`, line {} of {of}", line(*at))
        }
    })
}

/// `between lines 4 and 7`, `behind line 9`, `in front of line 3`
fn between(thread: &Thread, at: usize) -> String {
    let line = |at: Option<usize>| at.and_then(|at| thread.body.get(at)).map(|i| i.line).filter(|l| *l > 0);
    match (line(at.checked_sub(1)), line(Some(at))) {
        (Some(a), Some(b)) if a != b => format!("between lines {a} and {b}"),
        (Some(a), _) => format!("behind line {a}"),
        (None, Some(b)) => format!("in front of line {b}"),
        (None, None) => "at a place without a line".to_owned(),
    }
}

fn waiting(program: &Program, wait: &WaitFor) -> String {
    format!("a wait for parity {} of {}", wait.parity, address(program, &wait.addr))
}

fn address(program: &Program, addr: &Address) -> String {
    let base = match addr.base {
        Operand::Address(s) => program.symbols.get(s.index()).map_or("?", |s| s.name.as_str()),
        _ => "?",
    };
    if addr.offset == 0 { format!("[{base}]") } else { format!("[{base}+{}]", addr.offset) }
}
