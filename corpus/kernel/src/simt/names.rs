//! Maps symbols of a kernel to symbols of the program, and addresses in shared memory to numbers.

use moire_program::ir::SymbolId;

/// The symbols of the kernel as symbols of the program.
pub(super) struct Names {
    /// For each symbol of the kernel its symbol in the program, or `None` for memory that is not modelled.
    pub(super) known: Vec<Option<SymbolId>>,
    /// The first symbol of a shared variable.
    pub(super) shared: u16,
}

/// The distance in bytes between the numbers of two shared variables. PTX does not fix their addresses, only their
/// alignment, so we choose a number when code uses the bits of an address.
const WINDOW: u64 = 1 << 20;

impl Names {
    /// The number of an address in shared memory.
    pub(super) fn number(&self, symbol: SymbolId, offset: i64) -> Option<u64> {
        let place = u64::from(symbol.0.checked_sub(self.shared)?) + 1;
        let offset = u64::try_from(offset).ok().filter(|o| *o < WINDOW)?;
        Some(place * WINDOW + offset)
    }

    /// The variable and the offset that a number stands for.
    pub(super) fn shared(&self, number: u64) -> Option<(SymbolId, i64)> {
        let place = u16::try_from((number / WINDOW).checked_sub(1)?).ok()?;
        let symbol = SymbolId(self.shared.checked_add(place)?);
        let there = self.known.contains(&Some(symbol));
        there.then_some((symbol, i64::try_from(number % WINDOW).ok()?))
    }
}
