//! Texts of programs: native litmus, the Dat3M PTX dialect, the mixedproxy dialect.
//!
//! Contract: an error of a reader has a position and says what was expected. No input causes a panic, and every size has
//! a limit.

pub mod build;
pub mod dat3m;
mod diagnostic;
mod expect;
pub mod mixedproxy;
pub mod native;
mod print;
pub mod scan;

pub use diagnostic::{Diagnostic, ParseError, Severity};
pub use expect::{expectations, expecting};
pub(crate) use print::lanes_words;
pub(crate) use print::term_text;
pub use print::{instruction, print};

use crate::ir::Program;
use crate::limits::TEXT_BYTES;

/// The grammar of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own: `moire "name"`.
    Native,
    /// `PTX name { .. } P0@cta 0,gpu 0 | ..`
    Dat3m,
    /// `.global x; d0.b0.t0 { .. } permit (..) as r;`
    MixedProxy,
}

impl Format {
    /// Guesses the format from the file name and the first word after line comments.
    pub fn detect(name: &str, source: &str) -> Format {
        let mut first = source.trim_start();
        while first.starts_with("//") {
            first = first.split_once('\n').map_or("", |(_, rest)| rest.trim_start());
        }
        if name.ends_with(".test") {
            Format::MixedProxy
        } else if first.starts_with("moire") || first.starts_with('#') {
            Format::Native
        } else if first.get(..3).is_some_and(|w| w.eq_ignore_ascii_case("ptx")) {
            Format::Dat3m
        } else if first.starts_with('.') || source.trim_start().starts_with("//") {
            Format::MixedProxy
        } else {
            Format::Native
        }
    }
}

/// Reads a program.
pub fn parse(source: &str, format: Format) -> Result<Program, ParseError> {
    if source.len() > TEXT_BYTES {
        return Err(ParseError::at(
            source,
            0,
            format!("a program text may have at most {TEXT_BYTES} bytes"),
            None,
        ));
    }
    match format {
        Format::Native => native::parse(source),
        Format::Dat3m => dat3m::parse(source),
        Format::MixedProxy => mixedproxy::parse(source),
    }
}

/// The bytes of a file as text.
///
/// # Errors
/// At the first byte that is not UTF-8.
pub fn decode(bytes: &[u8]) -> Result<&str, ParseError> {
    std::str::from_utf8(bytes).map_err(|e| {
        let good = std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default();
        ParseError::at(
            good,
            good.len(),
            "this byte is not UTF-8".into(),
            Some("save the file as UTF-8".into()),
        )
    })
}
