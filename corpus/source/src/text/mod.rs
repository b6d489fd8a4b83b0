//! The text form of source programs.
//!
//! ```text
//! source "mp"
//! .global .b32 x, y = 0;
//! P0 (gpu 0, cluster 0, cta 0) { store.plain x, 1; store.release.gpu y, 1; }
//! P1 (gpu 0, cluster 0, cta 1) { r0 = load.acquire.gpu y; if r0 == 1 { r1 = load.plain x; } }
//! ~exists (P1:r0 == 1 /\ P1:r1 == 0)
//! ```
//!
//! - objects: `.global`, `.generic` (global memory through generic pointers) or `.shared`, then `.b8` to `.b128`;
//! - loads and stores: `plain`, or an order and a scope, with `volatile` in front if they are;
//! - updates: `add and or xor min max exch` with order and scope, with or without a register that gets the old value;
//! - `r = cas.SUCCESS.FAILURE.SCOPE x, EXPECTED, NEW`;
//! - `fence.ORDER.SCOPE`; `if r == NUMBER { .. }`.
//!
//! [`print()`] and [`parse`] are inverse to each other.

mod condition;
pub(crate) mod print;
mod read;

pub use print::print;

use crate::limits::TEXT_BYTES;
use crate::syntax::Source;
use moire_program::text::ParseError;
use moire_program::text::scan::{Comments, Scan};

/// Reads a program, and checks it.
///
/// # Errors
/// The first fault, with its position; see [`crate::validate`] for the rules.
pub fn parse(text: &str) -> Result<Source, ParseError> {
    if text.len() > TEXT_BYTES {
        let message = format!("the text of a source program may have at most {TEXT_BYTES} bytes");
        return Err(ParseError::at(text, 0, message, None));
    }
    let mut scan = Scan::new(text, Comments::C);
    scan.longest = crate::limits::NAME_BYTES;
    read::program(&mut scan)
}

/// Whether a text begins as a source program does.
pub fn is_source(text: &str) -> bool {
    Scan::new(text, Comments::C).keyword("source")
}
