//! Special registers and parameters.

use super::run::{Run, Val};
use crate::ptx::{Special, Variable};
use moire_isa::{Ld, Value};
use moire_program::ir::SymbolId;

impl Run<'_> {
    /// The value of a special register, if the launch fixes it.
    pub(super) fn special(&self, special: Special) -> Val {
        let h = &self.here;
        let (lane, cta) = (h.tid % 32, h.cta);
        let axis = |n: u8, x: u32, else_: u32| if n == 0 { x } else { else_ };
        let low = |n: u32| u32::try_from((1u64 << n) - 1).unwrap_or(u32::MAX);
        Val::Known(u64::from(match special {
            Special::Tid(n) => axis(n, h.tid, 0),
            Special::Ntid(n) => axis(n, h.width, 1),
            Special::Ctaid(n) => axis(n, cta, 0),
            Special::Nctaid(n) => axis(n, h.blocks * h.rank, 1),
            Special::Clusterid(n) => axis(n, cta / h.rank, 0),
            Special::Nclusterid(n) => axis(n, h.blocks, 1),
            Special::ClusterCtaid(n) => axis(n, cta % h.rank, 0),
            Special::ClusterNctaid(n) => axis(n, h.rank, 1),
            Special::ClusterCtarank => cta % h.rank,
            Special::ClusterNctarank => h.rank,
            Special::Warpid => h.tid / 32,
            Special::Nwarpid => h.width.div_ceil(32),
            Special::Laneid => lane,
            Special::LanemaskEq => 1 << lane,
            Special::LanemaskLt => low(lane),
            Special::LanemaskLe => low(lane + 1),
            Special::LanemaskGt => !low(lane + 1),
            Special::LanemaskGe => !low(lane),
            Special::Envreg(_) | Special::DynamicSmemSize | Special::Unknown => return Val::Unknown(self.pc),
        }))
    }

    /// `ld.param`: a pointer gives the address of its object, any other parameter is unknown.
    pub(super) fn parameter(&self, ld: &Ld) -> Val {
        let unknown = Val::Unknown(self.pc);
        let (Value::Symbol(symbol, 0), 0, [_]) =
            (ld.addr.address.base, ld.addr.address.offset, &ld.dst.items[..])
        else {
            return unknown;
        };
        let Ok(symbol) = u16::try_from(symbol) else { return unknown };
        let Some(Variable::Param(n)) = self.kernel.variables.get(usize::from(symbol)) else { return unknown };
        let pointer = self.kernel.params.get(*n).is_some_and(|p| p.pointer);
        if pointer { self.symbol(SymbolId(symbol), 0) } else { unknown }
    }
}
