//! Reads one instruction: dispatches on its mnemonic.

use super::arithmetic::{arithmetic, branch, mov, selp, setp};
use super::book::{book, read};
use super::notation::Notes;
use super::reader::Reader;
use super::sync::{barrier, proxy_fence};
use super::tile::tile_block;
use crate::ir::*;
use crate::text::build::{Builder, ThreadBuilder};
use crate::text::print::ALU_OPS;
use crate::text::scan::{Comments, Parsed, Scan, Spot};

/// Reads one instruction without its guard and its semicolon. `text` is the mnemonic with its qualifiers, already read: it
/// starts at `at` and ends at the cursor.
pub fn instruction(
    scan: &mut Scan<'_>,
    builder: &Builder,
    thread: &mut ThreadBuilder,
    (at, spot): (usize, Spot),
    guard: Option<Guard>,
    text: &str,
) -> Parsed<()> {
    dispatch(&mut Reader { scan, builder, thread, at, spot, guard }, text)
}

/// The book reads all but what has a meaning of its own in litmus texts: values have no types there, a name is a number, the
/// threads of a barrier are those of the text, any two proxies may be fenced.
fn dispatch(r: &mut Reader<'_, '_>, text: &str) -> Parsed<()> {
    let (name, rest) = text.split_once('.').unwrap_or((text, ""));
    let quals: Vec<&str> = rest.split('.').filter(|word| !word.is_empty()).collect();
    match (name, &quals[..]) {
        ("bar" | "barrier", [first, ..]) if !matches!(*first, "cluster" | "warp") => {
            barrier(r, name == "barrier", &quals)
        }
        ("fence", ["proxy", proxies @ ..]) if !proxies.is_empty() && proxy_fence(r, proxies)? => Ok(()),
        ("tile", _) => tile_block(r, &quals),
        ("bra", _) => branch(r),
        ("mov", _) => mov(r, &quals),
        ("setp", _) => setp(r, &quals),
        ("selp", _) => selp(r, &quals),
        _ => match ALU_OPS.iter().find(|(word, _)| *word == name) {
            Some((_, op)) => arithmetic(r, *op, &quals),
            None => book(r, text),
        },
    }
}

/// Whether the book takes an instruction, printed without a guard.
///
/// # Errors
/// What the book says against it.
pub fn form(builder: &Builder, thread: &mut ThreadBuilder, text: &str) -> Parsed<()> {
    let mut scan = Scan::new(text, Comments::C);
    scan.longest = text.len();
    let spot = scan.spot();
    let name = scan.word("an instruction", ".:")?;
    let mut reader = Reader { scan: &mut scan, builder, thread, at: 0, spot, guard: None };
    let (_, own) = read(&mut reader, name, &mut Notes::default())?;
    match own.beyond() {
        Some(message) => Err(scan.error_at(0, message.to_owned(), None)),
        None => Ok(()),
    }
}
