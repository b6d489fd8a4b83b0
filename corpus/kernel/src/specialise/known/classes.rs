//! Classes of registers of warpgroup products: registers that the same products use in the same way form one class.

use crate::ptx::{Kernel, What};
use moire_program::ir::{Op, Reg, Wgmma, WgmmaFactor, WgmmaProduct};
use std::collections::BTreeMap;

/// For each register of the kernel, the number of its class, if a product uses it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes(Vec<Option<usize>>);

impl Classes {
    pub(crate) fn new(kernel: &Kernel) -> Self {
        let mut used: BTreeMap<Reg, Vec<(usize, bool)>> = BTreeMap::new();
        for (at, statement) in kernel.body.iter().enumerate() {
            let What::Core(Op::Wgmma(Wgmma::Product(product))) = &statement.what else { continue };
            let factor = factor(product).iter().map(|r| (r, false));
            for (reg, accumulates) in product.d.iter().map(|r| (r, true)).chain(factor) {
                used.entry(*reg).or_default().push((at, accumulates));
            }
        }
        let mut numbers: BTreeMap<Vec<(usize, bool)>, usize> = BTreeMap::new();
        let mut out = vec![None; if used.is_empty() { 0 } else { kernel.types.len() }];
        for (reg, uses) in used {
            let next = numbers.len();
            let number = *numbers.entry(uses).or_insert(next);
            if let Some(class) = out.get_mut(reg.index()) {
                *class = Some(number);
            }
        }
        Classes(out)
    }

    /// The class of a register.
    pub(crate) fn of(&self, reg: Reg) -> Option<usize> {
        self.0.get(reg.index()).copied().flatten()
    }

    /// Whether the kernel has no warpgroup product on registers.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn factor(product: &WgmmaProduct) -> &[Reg] {
    match &product.a {
        WgmmaFactor::Registers(regs) => regs,
        WgmmaFactor::Shared(_) => &[],
    }
}
