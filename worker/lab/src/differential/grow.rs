//! Makes a drawn program larger: repeats some of its accesses and fences later in their threads.
//!
//! A copy uses the registers and locations of its thread, so the guarantees of the drawer still hold (protocols,
//! address spaces, tokens defined before their use).
//!
//! With `moire bench selfcheck --pruned --least N --candidates M` a program grows until it has that many candidates. If
//! its enumeration would take more than a second, it is left out, and the report counts that reason.

use moire_generate::numbers::Draw;
use moire_program::ir::{Op, Program};

/// Most copies in one program.
const COPIES: usize = 8;

/// Adds one to eight copies to `program`. A program without accesses and fences stays as it is.
pub fn grow(mut program: Program, seed: u64) -> Program {
    // Drawers start from the seed itself, so this starts from its complement.
    let mut draw = Draw::new(!seed);
    for _ in 0..=draw.below(COPIES) {
        let bodies = program.threads.iter().enumerate();
        let all = bodies.flat_map(|(t, thread)| (0..thread.body.len()).map(move |at| (t, at)));
        let some: Vec<(usize, usize)> =
            all.filter(|(t, at)| copied(&program.threads[*t].body[*at].op)).collect();
        if some.is_empty() {
            return program;
        }
        let (t, at) = draw.pick(&some);
        let to = at + 1 + draw.below(program.threads[t].body.len() - at);
        again(&mut program, t, at, to);
    }
    program
}

fn copied(op: &Op) -> bool {
    matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Fence { .. } | Op::Tile(_))
}

/// Inserts a copy of the instruction `at` in front of `to`. Targets of jumps behind `to` move down by one; a jump to
/// `to` now reaches the copy.
fn again(program: &mut Program, t: usize, at: usize, to: usize) {
    let thread = &mut program.threads[t];
    let copy = thread.body[at].clone();
    let moved = |target: usize| target + usize::from(target > to);
    for instr in &mut thread.body {
        if let Op::Bra { target } = &mut instr.op {
            *target = moved(*target);
        }
    }
    thread.labels.iter_mut().for_each(|l| l.at = moved(l.at));
    thread.body.insert(to, copy);
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_generate::{Profile, Stream};

    #[test]
    fn jumps_keep_their_targets() {
        let mut jumps = 0;
        for seed in 0..400 {
            let program = Stream::new(1, Profile::Core).item(seed);
            let larger = grow(program.clone(), seed);
            for (old, new) in program.threads.iter().zip(&larger.threads) {
                let targets = |body: &[moire_program::ir::Instr]| -> Vec<usize> {
                    let target = |i: &moire_program::ir::Instr| match i.op {
                        Op::Bra { target } => Some(target),
                        _ => None,
                    };
                    body.iter().filter_map(target).collect()
                };
                for (was, is) in targets(&old.body).into_iter().zip(targets(&new.body)) {
                    jumps += 1;
                    assert!(is >= was && is <= new.body.len(), "seed {seed}");
                    let Some(there) = old.body.get(was) else { continue };
                    // Copies may come first; the old target must follow them.
                    let found = new.body[is..].iter().find(|i| *i == there || !copied(&i.op));
                    assert_eq!(found, Some(there), "seed {seed}");
                }
            }
        }
        assert!(jumps > 20, "only {jumps} jumps");
    }
}
