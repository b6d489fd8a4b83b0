//! Symbols of a kernel in its program, and numbers that stand for addresses in shared memory.

use moire_program::ir::SymbolId;

/// The symbols of the kernel as symbols of the program.
pub(super) struct Names {
    /// None for those that nothing is known about.
    pub(super) known: Vec<Option<SymbolId>>,
    /// Symbols from this one on are variables of a CTA.
    pub(super) shared: u16,
}

/// Distance in bytes between the numbers of two shared variables. PTX fixes their alignment and not their addresses, so a
/// number is chosen when code looks at the bits of an address.
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
