//! Kernels: PTX modules and Tile IR, launched.

mod covering;
mod launched;
mod lowered;
mod metadata;
mod ptx;
mod queued;
mod source_place;
mod tile;
mod wanted;

use crate::input::File;
use anyhow::{Result, bail};

pub use covering::Covering;
pub(crate) use covering::{Run, Search};
pub use launched::{
    AnyData, Argument, Covered, Every, EveryConfirmed, Launched, Looped, Origin, Reached, Shared, Size,
    Smaller, Statement, Taken, Uncovered, quoted,
};
pub use lowered::{Candidate, Kernel};
pub(crate) use ptx::taken;
pub(crate) use queued::{Piece, piece_of, pieces};

pub(crate) use source_place::source_places;
pub use source_place::{Call, SourcePlace};
pub use tile::{has_blocks, is_text, text};
pub use wanted::{Behind, Recorded, Supposed, Wanted};

/// Whether a file is a module of kernels by its name: PTX or Tile IR.
pub fn is_module(file: &File) -> bool {
    is_compiled(file) || is_text(&file.path, &file.bytes)
}

/// Whether a file is a module as compilers of PTX print it: by its name, or because it begins with `.version`.
pub fn is_compiled(file: &File) -> bool {
    file.path.extension().is_some_and(|e| e == "ptx") || begins_with(&file.bytes, ".version")
}

/// The model of a file where none is named.
pub fn usual_model(file: &File) -> &'static str {
    match file {
        file if has_blocks(file) => "tile-ir",
        file if crate::input::is_source(&file.bytes) => "rc11-scoped",
        _ => "ptx",
    }
}

/// Whether the first word of a text, after blanks and comments, is `word`.
fn begins_with(bytes: &[u8], word: &str) -> bool {
    let mut rest = bytes;
    loop {
        rest = rest.trim_ascii_start();
        if rest.starts_with(b"//") {
            rest = rest.iter().position(|b| *b == b'\n').map_or(&[], |end| &rest[end..]);
        } else if rest.starts_with(b"/*") {
            rest = rest.windows(2).skip(2).position(|w| w == b"*/").map_or(&[], |end| &rest[end + 4..]);
        } else {
            let end = rest.strip_prefix(word.as_bytes());
            return end.is_some_and(|after| after.first().is_none_or(u8::is_ascii_whitespace));
        }
    }
}

/// The kernels of a PTX module. None for any other file, and for one that is no module.
pub fn entries(file: &File) -> Vec<String> {
    if is_compiled(file) { ptx::entries(file) } else { Vec::new() }
}

/// Lowers the kernel of a module for the launch asked for, or for those that are assumed.
pub fn read(file: &File, args: &Wanted) -> Result<Kernel> {
    let tile = |file: &File| is_text(&file.path, &file.bytes);
    if let Some(other) = args.then.iter().map(|b| &b.file).find(|other| tile(file) || !is_compiled(other)) {
        bail!("{}: --then is about PTX modules", if tile(file) { file.name() } else { other.name() });
    }
    if tile(file) { tile::read(file, args) } else { ptx::read(file, args) }
}
