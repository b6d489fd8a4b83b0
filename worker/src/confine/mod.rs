//! Leases in processes of their own, so that no program takes more memory than an item may, and none ends the worker.
//!
//! Contract: a child process gets one lease at a time and answers with the reports that `lease::run` makes. If it
//! ends before its lease, the item that ended it has no answer and says why; all other items are done by another child. A
//! range is then taken item by item until the item is found. A child that somebody kills says nothing about its item: the
//! lease is tried again, a few times, and then given back to the coordinator. Children are replaced after `LEASES_MAX` leases, because
//! an allocator gives back little of what many programs took.
//!
//! Frames on both pipes: the length as four bytes, least first, and a message of the worker service.

mod child;
mod frame;
mod lease;

pub use child::serve;

use child::Child;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Most leases of one child.
const LEASES_MAX: u32 = 256;

/// How children are started, and those that wait for a lease.
#[derive(Debug)]
pub struct Confine {
    program: PathBuf,
    args: Vec<OsString>,
    idle: Mutex<Vec<Child>>,
}

impl Confine {
    /// Children are `program` with `args`. It limits itself and calls [`serve`].
    pub fn new(program: PathBuf, args: Vec<OsString>) -> Self {
        Self { program, args, idle: Mutex::default() }
    }

    /// A child that waits for a lease.
    fn child(&self) -> std::io::Result<Child> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| Child::start(&self.program, &self.args), Ok)
    }

    /// Keeps a child that is done with its lease.
    fn keep(&self, child: Child) {
        if child.leases < LEASES_MAX {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(child);
        }
    }
}
