//! Canonical form: one text for all programs that differ only in thread order, names, numbering, or values that are only
//! copied.
//!
//! Contract: `canonical` is idempotent and never changes the meaning. If `exact`, programs that are renamings of each other
//! have equal texts. Method: the thread order determines everything else, which is numbered by first use. Colour
//! refinement distinguishes threads, and the remaining orders (at most [`ORDERS_MAX`]) are searched for the least
//! text. Values are renamed only if they are merely copied or compared for equality (`values`).

mod arrange;
mod condition;
pub mod names;
mod order;
pub mod spell;
mod values;

use std::fmt;

use crate::ir::Program;

/// Most thread orders tried for one program. If there are more, the form is not exact and must not merge findings.
pub const ORDERS_MAX: usize = 100_000;

/// BLAKE3 of the canonical text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramId(pub [u8; 32]);

impl ProgramId {
    /// The first 16 hexadecimal digits: enough for a reader to distinguish the programs of a store.
    pub fn short(&self) -> String {
        self.to_string().chars().take(16).collect()
    }
}

impl fmt::Display for ProgramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ProgramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgramId({self})")
    }
}

/// The canonical form of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// The program in canonical form.
    pub program: Program,
    /// Its text.
    pub text: String,
    /// Hash of the text.
    pub id: ProgramId,
    /// False if there were too many thread orders to try (`uncanonical`).
    pub exact: bool,
}

/// The canonical form of `program`.
pub fn canonical(program: &Program) -> Canonical {
    let (program, text, exact) = least(program);
    let id = ProgramId(*blake3::hash(text.as_bytes()).as_bytes());
    Canonical { program, text, id, exact }
}

/// The canonical program without its text, and whether it is exact. Enumeration and reduction compare these programs.
pub fn normal(program: &Program) -> (Program, bool) {
    let (program, _, exact) = least(program);
    (program, exact)
}

/// The arrangement with the least text, that text, and whether all orders of the threads were tried.
fn least(program: &Program) -> (Program, String, bool) {
    let free = values::free(program);
    let (orders, exact) = order::orders(program, free);
    let candidates = orders.iter().map(|order| {
        let candidate = arrange::arrange(program, order, free);
        (key(&candidate), candidate)
    });
    let ((_, text), program) =
        candidates.min_by(|(one, _), (other, _)| one.cmp(other)).expect("there is an order");
    (program, text, exact)
}

/// What the order of programs goes by: the lengths of the threads, then the text. No instruction is told here: the text is
/// read back as the same program, so equal texts mean equal programs up to names and lines.
fn key(arranged: &Program) -> (Vec<usize>, String) {
    (arranged.threads.iter().map(|thread| thread.body.len()).collect(), crate::text::print(arranged))
}
