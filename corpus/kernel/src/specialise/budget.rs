//! Limits the work of running ahead, with one allowance for all warps and rounds of a launch. A hostile module is refused
//! in seconds, however many warps, loops and registers it has.

use crate::Refusal;
use std::cell::Cell;

/// The price of an item, in statements. Later passes visit an item many times before it becomes an instruction.
const ITEM: usize = 16;
/// How many visits cost as much as one statement. Hashing, comparing or copying a register is a visit, and so is a look at
/// an entry of the heap.
const LOOKS: usize = 16;

/// The remaining allowance, in statements.
pub(super) struct Budget {
    left: Cell<u64>,
}

impl Budget {
    pub(super) fn new(whole: u64) -> Self {
        Self { left: Cell::new(whole) }
    }

    /// What is left, in statements.
    pub(super) fn left(&self) -> u64 {
        self.left.get()
    }

    /// A smaller allowance for one launch. What it uses is to be taken from here by [`Budget::spend`].
    pub(super) fn part(&self, most: u64) -> Budget {
        Budget::new(most.min(self.left()))
    }

    pub(super) fn spend(&self, work: u64) {
        self.left.set(self.left.get().saturating_sub(work));
    }

    fn take(&self, statements: usize) {
        self.left.set(self.left.get().saturating_sub(statements as u64));
    }

    /// Takes the price of visiting this many registers. If the allowance is used up, the next statement is refused.
    pub(super) fn looks(&self, registers: usize) {
        self.take(registers / LOOKS);
    }

    /// Takes the price of a statement.
    pub(super) fn statement(&self) -> Result<(), Refusal> {
        self.take(1);
        match self.left.get() {
            0 => {
                let text =
                    "running the launch ahead takes too much work; choose fewer warps or shorter loops";
                Err(Refusal::Bounded(text.into()))
            }
            _ => Ok(()),
        }
    }

    /// Takes the price of an item, and of visiting a heap of this many entries.
    pub(super) fn item(&self, heap: usize) {
        self.take(ITEM + heap / LOOKS);
    }
}
