//! Registers of warpgroup products that are not known to be complete (PTX ISA 9.2, 9.7.15).
//!
//! Between a product and the wait for its group its registers may be touched by products with the same accumulator only;
//! what others did to them needs a `wgmma.fence` before a product uses them.

use moire_program::ir::*;
use moire_program::registers::uses;
use std::collections::BTreeSet;

/// Registers of products that are not known to be complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusyRegisters {
    /// Instruction, accumulator, registers of the first factor.
    pub(crate) products: Vec<(u16, Vec<Reg>, Vec<Reg>)>,
    /// Registers that nothing touched since the last `wgmma.fence`; `None` before the first.
    pub(crate) fenced: Option<BTreeSet<Reg>>,
}

pub(crate) fn factor(product: &WgmmaProduct) -> Vec<Reg> {
    match &product.a {
        WgmmaFactor::Registers(regs) => regs.clone(),
        WgmmaFactor::Shared(_) => vec![],
    }
}

impl BusyRegisters {
    /// Whether an instruction disturbs a product, or a product meets what it should not.
    pub(crate) fn disturbed(&self, instr: &Instr) -> bool {
        let (mut read, written) = uses(&instr.op);
        read.extend(instr.guard.map(|g| g.reg));
        if let Op::Wgmma(Wgmma::Product(product)) = &instr.op {
            let a = factor(product);
            let mine = |r: &Reg| product.d.contains(r) || a.contains(r);
            let fresh =
                self.fenced.as_ref().is_some_and(|f| product.d.iter().chain(&a).all(|r| f.contains(r)));
            let clash = |(_, d, b): &(u16, Vec<Reg>, Vec<Reg>)| {
                (*d != product.d && d.iter().any(mine))
                    || d.iter().any(|r| a.contains(r))
                    || b.iter().any(|r| product.d.contains(r))
            };
            return !fresh || self.products.iter().any(clash);
        }
        let touches = |(_, d, a): &(u16, Vec<Reg>, Vec<Reg>)| {
            d.iter().any(|r| written.contains(r) || read.contains(r)) || a.iter().any(|r| written.contains(r))
        };
        self.products.iter().any(touches)
    }

    /// Takes note of what an instruction other than a product touches.
    pub(crate) fn touch(&mut self, instr: &Instr) {
        let Some(fenced) = &mut self.fenced else { return };
        if !matches!(instr.op, Op::Wgmma(_)) {
            let (read, written) = uses(&instr.op);
            for r in read.into_iter().chain(written).chain(instr.guard.map(|g| g.reg)) {
                fenced.remove(&r);
            }
        }
    }
}
