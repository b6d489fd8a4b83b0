//! Loops of a kernel: branches back to an earlier statement.

use crate::ptx::{Kernel, What};
use std::collections::BTreeMap;

/// The last branch back of each loop, by its first statement.
pub(crate) fn spans(kernel: &Kernel) -> BTreeMap<usize, usize> {
    let mut out: BTreeMap<usize, usize> = BTreeMap::new();
    for (pc, statement) in kernel.body.iter().enumerate() {
        let back = targets(kernel, &statement.what).into_iter().filter(|to| *to <= pc);
        out.extend(back.map(|to| (to, pc)));
    }
    out
}

/// For each place, the loops around it, by their first statements.
pub(crate) fn around(spans: &BTreeMap<usize, usize>, places: usize) -> Vec<Vec<usize>> {
    let inside = |pc: usize| spans.iter().filter(move |(first, last)| (**first..=**last).contains(&pc));
    (0..places).map(|pc| inside(pc).map(|(first, _)| *first).collect()).collect()
}

/// The places that a statement can jump to.
fn targets(kernel: &Kernel, what: &What) -> Vec<usize> {
    match what {
        What::Branch { target } => vec![*target],
        What::Table { table, .. } => kernel.tables.get(*table).cloned().unwrap_or_default(),
        What::Core(_) | What::Plain(_) | What::Exit => Vec::new(),
    }
}
