//! Programs that this engine does not decide, by what stands in their text.

use crate::finding::Stop;
use moire_program::ir::{Control, Ignored, Op, Program, Proxy};

/// Refuses a program that is outside the domain as a whole.
pub(crate) fn admit(program: &Program) -> Result<(), Stop> {
    let refuse = |what: &str| Err(Stop::abstain(what, 0));
    if !program.conditions.is_empty() || program.filter.is_some() {
        return refuse("a condition on final states");
    }
    let first = program.threads.first().map(|t| t.place);
    let one_grid = |p: &moire_program::ir::Placement| {
        first.is_some_and(|f| (p.gpu, p.stream, p.grid) == (f.gpu, f.stream, f.grid))
    };
    if program.threads.iter().any(|t| t.place.host || !one_grid(&t.place)) {
        return refuse("threads of several grids, or of the host");
    }
    let aliased = program
        .symbols
        .iter()
        .enumerate()
        .any(|(n, s)| s.virt.index() != n || s.proxy != Proxy::Generic || !s.multimem.is_empty());
    let shared = (0..program.symbols.len())
        .any(|n| program.symbols[..n].iter().any(|other| other.object == program.symbols[n].object));
    if aliased || shared {
        return refuse("several names of one object");
    }
    let waits =
        |op: &Op| matches!(op, Op::Control(Control::Ignored(Ignored::SetMaxRegisters { inc: true, .. })));
    let beyond = |op: &Op| match waits(op) {
        true => Some("setmaxnreg.inc"),
        false => matches!(op, Op::Tile(_)).then_some("a tile block"),
    };
    let mut all = program.threads.iter().flat_map(|t| &t.body);
    match all.find_map(|i| Some((beyond(&i.op)?, i.line))) {
        Some((what, line)) => Err(Stop::abstain(what, line)),
        None => Ok(()),
    }
}
