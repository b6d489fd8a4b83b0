//! The book of instructions: one entry tells an instruction's name, section, versions and targets, slots of qualifiers,
//! operands with roles, rules of form, and a tag that never changes.
//!
//! From an entry follow the type of the instruction, its reader and printer, canonical bytes, registers and their renaming, the
//! refusals of one instruction, the least version and the targets, weaker forms, neighbours, and the documentation. What an
//! instruction means is not here. Source: PTX ISA 9.2, chapters 9 and 10; where it is silent or ptxas 13.5 takes something
//! else, ptxas decides, and a comment holds the form that taught it.

#[macro_use]
mod kind;
#[macro_use]
mod entry;
mod book;
pub mod census;
mod document;
mod instr;
pub mod kinds;
pub mod operand;
mod slot;
mod text;

pub use book::*;
pub use document::page;
pub use entry::{Entry, Instruction, PartInfo, Rule, Seen, SlotInfo, Spelling, Standing, Tagged};
pub use instr::entry_of;
pub use kind::{EVER, Kind, Lattice, On, Row, Since};
pub use operand::{Class, Known, Reg, Role, Value};
pub use slot::{Mnk, Pair, Scoped, Slot, Strong, Then, Types, Worded, Words};
pub use text::{Bag, Cursor, Env, Names, OF_CALLS, Refusal};
