//! Reads one operation with the file that knows its word.

use super::arith::{self, arithmetic};
use super::control::{self, control};
use super::generic::generic;
use super::memory::{self, memory};
use super::parallel::{self, parallel};
use super::reader::{Read, Reader, because};
use crate::Reason;
use moire_program::text::scan::{Parsed, closest};

pub(super) fn operation(r: &mut Reader<'_>) -> Parsed<Read> {
    if r.scan.peek("\"") {
        return generic(r);
    }
    let at = r.scan.at;
    let full = r.scan.word("an operation", ".")?;
    let word = full.strip_prefix("cuda_tile.").unwrap_or(full);
    if let Some(read) = arithmetic(r, word)? {
        return Ok(read);
    }
    if let Some(read) = memory(r, word)? {
        return Ok(read);
    }
    if let Some(read) = parallel(r, word)? {
        return Ok(read);
    }
    if let Some(read) = control(r, word)? {
        return Ok(read);
    }
    let known: Vec<&str> = [arith::WORDS, memory::WORDS, parallel::WORDS, control::WORDS]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    let hint = closest(word, &known).map(|k| format!("did you mean `{k}`?"));
    Err(because(Reason::Operation, r.scan.error_at(at, format!("unknown operation `{word}`"), hint)))
}
