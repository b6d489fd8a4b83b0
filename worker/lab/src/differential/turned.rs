//! A program with its threads in reverse order and all names changed. An engine's answers about executions must depend
//! on neither.

use moire_cat::Model;
use moire_execution::leaf::LeafKind;
use moire_explore::search::{Bound, LeafView, Limits, explore};
use moire_program::ir::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Reverses the threads of a program and renames threads, memory, registers and labels. Conditions are dropped, because
/// they refer to threads by position.
pub fn turned(program: &Program) -> Program {
    let mut out = program.clone();
    out.conditions.clear();
    out.filter = None;
    out.threads.reverse();
    for (t, thread) in out.threads.iter_mut().enumerate() {
        thread.name = format!("T{t}");
        for (r, register) in thread.regs.iter_mut().enumerate() {
            register.name = format!("v{r}");
        }
        for (l, label) in thread.labels.iter_mut().enumerate() {
            label.name = format!("M{l}");
        }
    }
    let last = out.symbols.len();
    for (s, symbol) in out.symbols.iter_mut().enumerate() {
        let name = format!("m{}", last - s);
        let object = &mut out.objects[usize::from(symbol.object.0)];
        if object.name == symbol.name {
            object.name.clone_from(&name);
        }
        symbol.name = name;
    }
    out
}

/// The number of executions of each kind (true: blocked) with each set of flags.
pub type Tally = BTreeMap<(bool, BTreeSet<String>), u64>;

/// Returns the tallies of a program and of the turned program if they differ. `None` also if the explorer does not
/// finish.
pub fn differs_when_turned(program: &Program, model: &Model, limits: &Limits) -> Option<(Tally, Tally)> {
    let program = moire_program::lanes::literal(program);
    let here = tally(&program, model, limits)?;
    let there = tally(&turned(&program), model, limits)?;
    (here != there).then_some((here, there))
}

fn tally(program: &Program, model: &Model, limits: &Limits) -> Option<Tally> {
    let mut out = Tally::new();
    let result = explore(program, model, &[], limits, &mut |leaf: &mut dyn LeafView| {
        let kind = leaf.kind() == LeafKind::Blocked;
        *out.entry((kind, leaf.flags().clone())).or_default() += 1;
        ControlFlow::Continue(())
    });
    match result.ok()?.bounded {
        None | Some(Bound::Loop) => Some(out),
        Some(_) => None,
    }
}
