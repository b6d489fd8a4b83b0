//! Runs `stmatrix` of one 8x8 matrix, which the lanes of a warp store together.
//!
//! Lanes 0 to 7 name the rows, 16 bytes each. Lane `t` holds elements `2 (t mod 4)` and `2 (t mod 4) + 1` of row `t / 4`
//! (PTX ISA 9.2, 9.7.14.5.16). So a lane stores two elements of 16 bits at an address that another lane names. Threads
//! are specialised one by one, so a first round runs every thread to record the addresses. A lane that names different
//! addresses at one place of the text is refused. Each element becomes its own weak store; they are unordered.

use super::run::{Run, Val, When};
use crate::Done;
use crate::ptx::{self, Kernel, What, mnemonic};
use moire_isa::kinds::{MatrixCount, MatrixShape, MatrixTy, SharedSpace};
use moire_isa::{Instr, StMatrix};
use moire_program::ir::{AluOp, Op, Operand, Proxy, Space, StoreOrder, Ty};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Addresses of rows by CTA, thread in the CTA and place in the text; `None` if there are several.
type Named = BTreeMap<(u32, u32, usize), Option<Val>>;

/// Addresses of rows, in the recording round and afterwards.
#[derive(Debug)]
pub(super) enum Rows {
    Noting(RefCell<Named>),
    Known(Named),
}

impl Rows {
    /// Starts without addresses. Returns also whether the kernel needs any.
    pub(super) fn new(kernel: &Kernel) -> (Rows, bool) {
        let stores =
            |what: &What| matches!(what, What::Plain(instr) if matches!(**instr, Instr::StMatrix(_)));
        let needed = kernel.body.iter().any(|s| stores(&s.what));
        (if needed { Rows::Noting(RefCell::default()) } else { Rows::Known(Named::new()) }, needed)
    }

    /// Ends the recording round.
    pub(super) fn noted(self) -> Rows {
        match self {
            Rows::Noting(named) => Rows::Known(named.into_inner()),
            known @ Rows::Known(_) => known,
        }
    }
}

impl Run<'_> {
    pub(super) fn stmatrix(&mut self, st: &StMatrix, when: When) -> Done<()> {
        let refused = |run: &Self| Err(run.refuse(&format!("`{}`", mnemonic(&Instr::StMatrix(st.clone())))));
        let one = (st.shape, st.count, st.ty) == (MatrixShape::M8n8, MatrixCount::X1, MatrixTy::B16);
        let usual = one && st.space == SharedSpace::SharedCta && !st.trans.is();
        let ([source], When::Always, true) = (&st.src.items[..], when, usual) else {
            return refused(self);
        };
        let Some(value) = ptx::reg(source) else { return refused(self) };
        let (cta, tid, pc) = (self.here.cta, self.here.tid, self.pc);
        let rows = self.rows;
        let named = match rows {
            Rows::Noting(named) => {
                let own = Some(self.located(&st.addr));
                let mut named = named.borrow_mut();
                let known = named.entry((cta, tid, pc)).or_insert(own);
                if *known != own {
                    *known = None;
                }
                return Ok(());
            }
            Rows::Known(named) => named,
        };
        let lane = tid % 32;
        let Some(Some(row)) = named.get(&(cta, tid - lane + lane / 4, pc)) else { return refused(self) };
        let start = i64::from(4 * (lane % 4));
        let (first, second) = (self.at(*row, start)?, self.at(*row, start + 2)?);
        let low = self.source(Operand::Reg(value))?;
        let high = self.temp()?;
        self.emit(None, Op::Alu { op: AluOp::Shr, ty: Ty::U(32), dst: high, a: low, b: Operand::Imm(16) });
        for (addr, src) in [(first, low), (second, Operand::Reg(high))] {
            let (order, proxy) = (StoreOrder::Weak, Proxy::Generic);
            let (space, ty) = (Space::SharedCta, Ty::B(16));
            self.emit(None, Op::Store { order, proxy, space, ty, addr, src: vec![src] });
        }
        Ok(())
    }
}
