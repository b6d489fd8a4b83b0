//! Warpgroup products: descriptors become the bytes they name, and registers that the same products use become one.
//!
//! Each of the four warps issues the product, and is taken to read the whole matrices. What the registers of a product hold
//! is nobody's business here; that they are left alone while it may run is (`wgmma.fence`, `wgmma.wait_group`), so every
//! instruction that touches them leaves a trace. PTX ISA 9.2, 9.7.15.

use super::Refusal;
use super::effect::Made;
use super::flow;
use super::run::{Item, State, Step, Warp};
use super::value::{Val, Why};
use crate::ptx::{Kernel, Statement, What};
use moire_program::ir::*;
use moire_program::tensor::{Extent, Major, SharedMatrix};
use std::collections::BTreeMap;

/// By register of the kernel: the class of those that the same products use, if any does.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes(Vec<Option<usize>>);

impl Classes {
    pub(super) fn new(kernel: &Kernel) -> Self {
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

    fn of(&self, reg: Reg) -> Option<usize> {
        self.0.get(reg.index()).copied().flatten()
    }
}

fn factor(product: &WgmmaProduct) -> &[Reg] {
    match &product.a {
        WgmmaFactor::Registers(regs) => regs,
        WgmmaFactor::Shared(_) => &[],
    }
}

impl Warp<'_> {
    /// The register of the items that stands for a class.
    fn stands_for(&mut self, class: usize) -> Reg {
        self.slot(&nowhere(self.kernel), 1 + class)
    }

    /// Leaves a trace of the registers of products that a statement touches.
    pub(super) fn touch_registers(&mut self, state: &State, statement: &Statement) -> Result<(), Refusal> {
        if self.classes.0.is_empty() || matches!(statement.what, What::Core(Op::Wgmma(_))) {
            return Ok(());
        }
        let (writes, reads) = flow::effects(statement);
        let mut touched: BTreeMap<usize, bool> = BTreeMap::new();
        for (reg, written) in
            reads.into_iter().map(|r| (r, false)).chain(writes.into_iter().map(|r| (r, true)))
        {
            if let Some(class) = self.classes.of(reg) {
                *touched.entry(class).or_default() |= written;
            }
        }
        if touched.is_empty() || self.guarded(state, statement).is_ok_and(|mask| mask == 0) {
            return Ok(());
        }
        for (class, written) in touched {
            let src = self.stands_for(class);
            let dst = if written { src } else { self.slot(&nowhere(self.kernel), 0) };
            let op = Op::Mov { ty: Ty::B(32), dst, src: Operand::Reg(src) };
            if !self.touched_before(&op) {
                self.emit(state, state.active, Item::Op { op: Box::new(op), touches: vec![] })?;
            }
        }
        Ok(())
    }

    /// Whether the same trace was left since the last instruction of a warpgroup, with no branch in between.
    fn touched_before(&self, trace: &Op) -> bool {
        let straight = |item: &&Item| match item {
            Item::Op { op, .. } => !matches!(**op, Op::Wgmma(_)),
            Item::Data { .. } => true,
            _ => false,
        };
        let mut before = self.out.items.iter().rev().map(|p| &p.item).take_while(straight);
        before.any(|item| matches!(item, Item::Op { op, .. } if **op == *trace))
    }

    pub(super) fn warpgroup(&mut self, state: &mut State, op: &Wgmma, mask: u32) -> Result<Step, Refusal> {
        let mut made = Made::default();
        let mut new = op.clone();
        if let Wgmma::Product(product) = &mut new {
            let regs = match &mut product.a {
                WgmmaFactor::Registers(regs) => regs.as_mut_slice(),
                WgmmaFactor::Shared(_) => &mut [],
            };
            for reg in &product.d {
                self.set(state, *reg, Val::Unknown(Why::Computed(self.line(state))), mask);
            }
            for reg in product.d.iter_mut().chain(regs) {
                let class = self.classes.of(*reg).unwrap_or(0);
                *reg = self.stands_for(class);
            }
            // Whether it adds is about what the accumulator holds.
            product.input = EnableInput::Always(true);
            self.matrices(state, product, mask, &mut made)?;
        }
        self.leave(state, mask, Op::Wgmma(new), made)
    }

    fn matrices(
        &mut self,
        state: &State,
        product: &mut WgmmaProduct,
        mask: u32,
        made: &mut Made,
    ) -> Result<(), Refusal> {
        let flipped = |from_end: usize| {
            let all = &product.immediates;
            let given = all.len() > 2;
            given && all.len().checked_sub(from_end).and_then(|n| all.get(n)) == Some(&1)
        };
        let major = |flipped: bool| if flipped { Major::Mn } else { Major::K };
        let (a_major, b_major) = (major(all_four(product) && flipped(2)), major(flipped(1)));
        let (k, n) = (u32::from(product.k), u32::from(product.n));
        let [_, a_type, b_type] = product.types;
        if let WgmmaFactor::Shared(a) = &product.a {
            let extent = Extent { mn: 64, k, bits: a_type.bits(), major: a_major };
            product.a = WgmmaFactor::Shared(self.factor_at(state, a, extent, mask, made)?);
        }
        let extent = Extent { mn: n, k, bits: b_type.bits(), major: b_major };
        product.b = self.factor_at(state, &product.b, extent, mask, made)?;
        Ok(())
    }

    fn factor_at(
        &mut self,
        state: &State,
        descriptor: &Descriptor,
        extent: Extent,
        mask: u32,
        made: &mut Made,
    ) -> Result<Descriptor, Refusal> {
        let Descriptor::Packed(operand) = descriptor else {
            return self.abstain(state, "a matrix that is no descriptor");
        };
        let value = self.value(state, *operand);
        let Some(bits) = value.known().and_then(|l| l.one(mask)) else {
            return self
                .abstain(state, format!("a matrix descriptor that depends on {}", self.reason(&value)));
        };
        Ok(self.matrix_of(state, SharedMatrix::decode_warpgroup(bits), extent, made))
    }
}

/// Both factors may be along their rows: there are four immediates.
fn all_four(product: &WgmmaProduct) -> bool {
    product.immediates.len() == 4
}

/// Behind the last statement.
fn nowhere(kernel: &Kernel) -> State {
    State { pc: kernel.body.len(), active: 0, env: Vec::new() }
}
