//! Tile IR for NVIDIA's compiler: the bytecode it reads, written and read here, and `tileiras` itself.
//!
//! [`write()`] makes a file of a module, [`read()`] a module of a file; [`Tileiras`] compiles it and keeps the PTX on its
//! way, and [`batch`] does so with many kernels at once. Source: binary format chapter of the Tile IR
//! specification and the open dialect; checked against files that the compiler takes.

pub mod batch;
mod bay;
mod bytes;
mod codes;
mod items;
mod read;
mod read_memory;
mod read_ops;
mod tileiras;
mod write;
mod write_ops;

pub use items::{Item, Numbering};
pub use read::{ReadError, read};
pub use tileiras::{Compiled, Failure, Stage, Tileiras};
pub use write::{WriteError, write, write_numbered};

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

    /// What the header says, where it is known.
    pub fn of(major: u8, minor: u8) -> Option<Bytecode> {
        Self::ALL.into_iter().find(|v| (major, minor) == (13, v.minor()))
    }
}

impl fmt::Display for Bytecode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "13.{}", self.minor())
    }
}
