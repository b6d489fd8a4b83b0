//! Instructions that are read and that the engines have no model of: they abstain by name before they start, whatever
//! the place of the instruction, so that nothing about it is guessed.

use moire_cat::Model;
use moire_program::ir::{Control, Instr, Op, Operand, Program, ProxyOrder, ThreadId};

/// The first such instruction, and its line.
pub(crate) fn unmodelled(program: &Program, model: &Model) -> Option<(String, u32)> {
    let mut instrs = program.threads.iter().flat_map(|t| &t.body);
    let found = instrs.find_map(|i| reason(&i.op, model).map(|reason| (reason, i.line)));
    found.or_else(|| if model.definition("tc-ran").is_none() { mixed_counts(program) } else { None })
}

/// A barrier with one number that may be given different counts, which only a model with execution order can judge.
fn mixed_counts(program: &Program) -> Option<(String, u32)> {
    for (t, thread) in program.threads.iter().enumerate() {
        for instr in &thread.body {
            let Op::Bar { id, count, instance: None, .. } = &instr.op else { continue };
            let others = program.threads.iter().skip(t).filter(|u| u.place.same_cta(&thread.place));
            let lanes = crate::barriers::cta_lanes(program, ThreadId(u16::try_from(t).unwrap_or(u16::MAX)));
            let whole = |c: &Option<Operand>| c.filter(|c| *c != Operand::Imm(i128::from(lanes)));
            let differs = |i: &Instr| match &i.op {
                Op::Bar { id: other, count: theirs, instance: None, .. } => {
                    let apart = matches!((id, other), (Operand::Imm(a), Operand::Imm(b)) if a != b);
                    !apart && whole(theirs) != whole(count)
                }
                _ => false,
            };
            if others.flat_map(|u| &u.body).any(differs) {
                return Some(("a barrier whose arrivals name different counts".to_owned(), instr.line));
            }
        }
    }
    None
}

fn reason(op: &Op, model: &Model) -> Option<String> {
    let under = |name: &str| Some(format!("{name} under the model {}", model.name()));
    let tiles = model.definition("token-order").is_some();
    match op {
        Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } | Op::Bra { .. } | Op::Exit => {
            None
        }
        Op::Tile(_) if tiles => None,
        Op::Tile(op) => under(op.name()),
        op if tiles => under(op.extended().unwrap_or("an instruction of PTX")),
        Op::Control(Control::Ignored(_) | Control::Elect { .. }) => None,
        Op::Tcgen05(op) if model.definition("tcause").is_none() => under(op.name()),
        Op::Tcgen05(_) => None,
        op => beyond(op, model),
    }
}

/// Copies, warpgroup products, proxy fences and launch control: those without events, and models without rules.
fn beyond(op: &Op, model: &Model) -> Option<String> {
    let name = op.extended()?;
    match op {
        Op::Control(Control::Elect { .. })
        | Op::ProxyOrder(ProxyOrder::AliasOneSided(_) | ProxyOrder::Fabric { .. }) => Some(name.to_owned()),
        _ if model.definition("copy-steps").is_none() => {
            Some(format!("{name} under the model {}", model.name()))
        }
        _ => None,
    }
}
