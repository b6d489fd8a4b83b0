//! The bytecode: the form in which NVIDIA's compiler takes a module.
//!
//! [`write()`] turns a module into a file, [`read()`] a file into a module. The layout of an operation follows from the
//! kinds of its fields (`body`). The format leaves numbers of types and constants free. So a numbering can be given, and
//! that of a file is kept when it is read. Source: binary format chapter of the Tile IR specification and the open
//! dialect; it was checked against files that the compiler accepts.

mod body;
mod bytes;
mod codes;
mod error;
mod hints;
mod numbering;
mod read;
mod read_ops;
mod types;
mod write;
mod write_ops;

pub use error::{ReadError, WriteError};
pub use numbering::{Item, Numbering};
pub use read::read;
pub use write::{write, write_numbered};

use std::fmt;

/// A version of the bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bytecode {
    /// 13.1
    V13_1,
    /// 13.2
    V13_2,
    /// 13.3
    V13_3,
    /// 13.4
    V13_4,
    /// 13.5
    V13_5,
}

impl Bytecode {
    /// Oldest first.
    pub const ALL: [Bytecode; 5] =
        [Bytecode::V13_1, Bytecode::V13_2, Bytecode::V13_3, Bytecode::V13_4, Bytecode::V13_5];

    /// The number after `13.`.
    pub fn minor(self) -> u8 {
        self as u8 + 1
    }

    /// The version with these numbers in the header; `None` if it is unknown.
    pub fn of(major: u8, minor: u8) -> Option<Bytecode> {
        Self::ALL.into_iter().find(|v| (major, minor) == (13, v.minor()))
    }
}

impl fmt::Display for Bytecode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "13.{}", self.minor())
    }
}
