//! Warpgroup products as events: issue, reads of shared memory, groups; and the registers they hold meanwhile.
//!
//! PTX ISA 9.2, 9.7.15 (wgmma): shared memory is read through the async proxy, and comes after what the thread did before
//! only behind a `wgmma.fence` (8.9.1). Between a product and the wait for its group its registers may be touched by
//! products with the same accumulator only; what others did to them needs a `wgmma.fence` before a product uses them.

use crate::event::{Kind, labels};
use crate::flow::{defines, uses};
use crate::interp::{Machine, TraceEnd, View};
use crate::leaf::flag;
use moire_cat::vocabulary::sets;
use moire_program::ir::*;
use std::collections::BTreeSet;

/// Registers of products that are not known to be complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// Instruction, accumulator, registers of the first factor.
    products: Vec<(u16, Vec<Reg>, Vec<Reg>)>,
    /// Registers nobody touched since the last `wgmma.fence`; `None` before the first.
    fenced: Option<BTreeSet<Reg>>,
}

fn factor(product: &WgmmaProduct) -> Vec<Reg> {
    match &product.a {
        WgmmaFactor::Registers(regs) => regs.clone(),
        WgmmaFactor::Shared(_) => vec![],
    }
}

impl Held {
    /// Whether an instruction disturbs a product, or a product meets what it should not.
    fn disturbed(&self, instr: &Instr) -> bool {
        let (mut written, mut read) = (defines(&instr.op), uses(instr));
        instr.op.registers(&mut |r, w| if w { &mut written } else { &mut read }.push(r));
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
    fn touch(&mut self, instr: &Instr) {
        let Some(fenced) = &mut self.fenced else { return };
        if !matches!(instr.op, Op::Wgmma(_)) {
            for r in defines(&instr.op).into_iter().chain(uses(instr)) {
                fenced.remove(&r);
            }
            instr.op.registers(&mut |r, _| fenced.retain(|f| *f != r));
        }
    }
}

impl<V: View> Machine<'_, V> {
    /// Looks at the registers of an instruction about to be executed.
    pub(crate) fn guard_registers(&mut self, instr: &Instr) {
        if !self.warpgroup {
            return;
        }
        if self.held.disturbed(instr) {
            self.flags.insert(flag::REGISTERS);
        }
        self.held.touch(instr);
    }

    pub(crate) fn wgmma(&mut self, op: &Wgmma, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        match op {
            Wgmma::Fence => {
                let all = 0..self.regs.len();
                self.held.fenced = Some(all.map(|r| Reg(u16::try_from(r).unwrap_or(u16::MAX))).collect());
                self.copy_issue(&[sets::WGMMA_FENCE], instr, pc);
            }
            Wgmma::Commit => self.copies.products.commit(),
            Wgmma::Wait(groups) => {
                let units = self.copies.products.complete(*groups);
                self.held.products.retain(|p| !units.contains(&p.0));
                self.copy_wait(units, false, instr, pc);
            }
            Wgmma::Product(product) => return self.product(product, instr, pc),
        }
        Ok(())
    }

    fn product(&mut self, product: &WgmmaProduct, instr: &Instr, pc: usize) -> Result<(), TraceEnd> {
        let mut matrices = vec![&product.b];
        if let WgmmaFactor::Shared(a) = &product.a {
            matrices.insert(0, a);
        }
        let mut ranges = Vec::new();
        for matrix in matrices {
            let Descriptor::Range { addr, bytes } = matrix else {
                let what = "a matrix descriptor in a register";
                return Err(TraceEnd::Unsupported(what.into(), instr.line));
            };
            ranges.push((self.address_now(addr)?, *bytes));
        }
        let event = self.blank(instr, pc, Kind::Fence, labels(&[sets::WGMMA_ISSUE]), None);
        self.events.push(Some(event));
        for range in ranges {
            self.copy_read(range, sets::ASYNC, instr, pc)?;
        }
        self.copies.products.add(self.unit);
        self.held.products.push((self.unit, product.d.clone(), factor(product)));
        self.forget(product.d.iter().copied());
        Ok(())
    }
}
