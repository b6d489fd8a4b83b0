//! Stale values: strong accesses are in no race, and still a read may miss a write that others have already acted upon.
//!
//! A read is *stale* if it reads from before a write that reaches it over program order, reads-from and barriers. With the
//! fences or orders that the kernel lacks no execution has such a read. Classic case: a block writes its part, counts
//! itself with an atomic, and the last one adds up all parts, without a fence between.

use anyhow::Result;
use moire_cat::{Model, Variants};
use moire_execution::leaf::Finding;
use moire_explore::judge::Judgement;
use moire_models::Beside;
use moire_program::ir::{LoadOrder, Op, Program};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// The model to which the flag is added.
pub(crate) const OF: &str = "ptx";
const FLAG: &str = "stale-read";
const TEXT: &str = r#""PTX, with a flag for stale reads"
include "ptx.cat"
let reaches = (po | (rf \ int) | syncbar | sync_cluster)+
flag ~empty fr & reaches^-1 as stale-read
"#;

/// The model with the flag.
pub(crate) fn model(variants: &Variants) -> Result<Model> {
    Ok(moire_cat::load("stale.cat", TEXT, &Beside(|_: &Path| None), variants)?)
}

/// Whether a program loads with an order that orders nothing: relaxed, as volatile loads are.
pub(crate) fn is_possible(program: &Program) -> bool {
    let relaxed = |op: &Op| matches!(op, Op::Load { order, .. } if is_relaxed(*order));
    program.threads.iter().any(|t| t.body.iter().any(|i| relaxed(&i.op)))
}

fn is_relaxed(order: LoadOrder) -> bool {
    matches!(order, LoadOrder::Relaxed(_) | LoadOrder::Volatile | LoadOrder::MmioRelaxed)
}

/// A read that may be stale.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Stale {
    /// Line of the read.
    pub read: u32,
    /// Line of the write that it may miss.
    pub write: u32,
}

/// The stale reads that a judgement under [`model`] has found.
pub(crate) fn found(program: &Program, judgement: &Judgement) -> Vec<Stale> {
    let one = |finding: &Finding| {
        let [a, b] = finding.places.as_slice() else { return None };
        let reads = |p: &moire_execution::leaf::Place| {
            let body = program.threads.get(usize::from(p.thread)).map(|t| t.body.as_slice());
            let mut here = body.unwrap_or_default().iter().filter(|i| i.line == p.line);
            here.any(|i| matches!(i.op, Op::Load { .. }))
        };
        let (read, write) = if reads(a) { (a, b) } else { (b, a) };
        reads(read).then_some(Stale { read: read.line, write: write.line })
    };
    let all = judgement.findings.iter().filter(|f| f.flag == FLAG);
    all.filter_map(one).collect::<BTreeSet<Stale>>().into_iter().collect()
}
