//! Instructions that are read and that the engines have no model of: they abstain by name before they start, whatever
//! the place of the instruction, so that nothing about it is guessed.

use moire_cat::Model;
use moire_program::ir::{Control, Op, Program, ProxyOrder};

/// The first such instruction, and its line.
pub(crate) fn unmodelled(program: &Program, model: &Model) -> Option<(String, u32)> {
    let mut instrs = program.threads.iter().flat_map(|t| &t.body);
    instrs.find_map(|i| reason(&i.op, model).map(|reason| (reason, i.line)))
}

fn reason(op: &Op, model: &Model) -> Option<String> {
    let op = match op {
        Op::Control(Control::Ignored(_) | Control::Elect { .. }) => return None,
        Op::Tcgen05(op) => op,
        op => return beyond(op, model),
    };
    let name = op.name();
    if model.definition("tcause").is_none() {
        return Some(format!("{name} under the model {}", model.name()));
    }
    None
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
