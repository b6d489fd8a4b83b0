//! Limits the work of running ahead: one allowance for all warps of a launch and all rounds. A hostile module is refused in
//! seconds, however many warps, loops and registers it has.

use crate::Refusal;
use std::cell::Cell;

/// The price of an item, in statements: later passes visit it many times before it is an instruction.
const ITEM: usize = 16;
/// How many looks cost as much as one statement. A look is a register hashed, compared or copied, or an entry of the heap
/// visited.
const LOOKS: usize = 16;

/// What is left of the allowance, in statements.
pub(super) struct Budget {
    left: Cell<u64>,
}

impl Budget {
    pub(super) fn new(whole: u64) -> Self {
        Self { left: Cell::new(whole) }
    }

    fn take(&self, statements: usize) {
        self.left.set(self.left.get().saturating_sub(statements as u64));
    }

    /// Takes the price of looks at so many registers; if that was too much, the next statement is refused.
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

    /// Takes the price of an item, beside a heap of so many entries.
    pub(super) fn item(&self, heap: usize) {
        self.take(ITEM + heap / LOOKS);
    }
}
