//! Programs that reductions apply to, each with a condition.

use super::reduced::questioned;
use moire_generate::core::alike;
use moire_generate::numbers::Draw;
use moire_program::ir::Program;
use moire_program::text::{Format, parse, print};

/// Gives some threads of a drawn program the code of one of them, and adds a condition. `None` if the result is
/// refused, for example because the code only fits the placement of its thread.
pub fn twins(mut program: Program, seed: u64) -> Option<Program> {
    let mut d = Draw::new(seed ^ 0x7317);
    let from = d.below(program.threads.len());
    let one = program.threads.get(from)?.clone();
    for thread in &mut program.threads {
        if d.chance(70) {
            (thread.body, thread.regs, thread.labels) =
                (one.body.clone(), one.regs.clone(), one.labels.clone());
        }
    }
    (program.conditions, program.filter) = (Vec::new(), None);
    let mut read = parse(&print(&program), Format::Native).ok()?;
    // The text cannot say that a second name has the same address, so the drawn addresses are put back.
    read.symbols.iter_mut().zip(&program.symbols).for_each(|(s, drawn)| s.virt = drawn.virt);
    Some(questioned(read, seed))
}

/// Draws the program of a seed, with a condition.
pub fn crowd(seed: u64) -> Option<Program> {
    alike(&mut Draw::new(seed)).map(|p| questioned(p, seed))
}
