//! The known values of the operands of a statement.

use super::Executing;
use crate::Refusal;
use crate::ptx::{self, Special, Variable};
use crate::specialise::known::map::RANK_SHIFT;
use crate::specialise::known::value::{Base, LANES, Lanes, Val, Why};
use moire_isa::Value;
use moire_isa::operand::{self, Pred};
use moire_program::ir::{Address, Operand, Reg};

/// The global memory that the CTAs of a cooperative launch synchronise in. It starts as zero.
const GRID_WORKSPACE: u64 = 0x1e00_0000_0000;

impl Executing<'_, '_> {
    pub(super) fn value(&self, operand: Operand) -> Val {
        match operand {
            Operand::Reg(r) => self.state.env[r.index()].of(self.mask),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an immediate is a bit pattern"
            )]
            Operand::Imm(v) => Val::same(v as u64),
            Operand::Address(s) => self.symbol(s.0),
        }
    }

    pub(super) fn address(&self, addr: &Address) -> Val {
        self.value(addr.base).add(&Lanes::Same(i64::from(addr.offset).cast_unsigned()))
    }

    /// The number of an operand on which all lanes agree.
    pub(super) fn number(&self, operand: Operand, what: &str) -> Result<Operand, Refusal> {
        let value = self.value(operand);
        match value.known().and_then(|l| l.one(self.mask)) {
            Some(v) => Ok(Operand::Imm(i128::from(v & 0xffff_ffff))),
            None => self.abstain(format!("{what} that depends on {}", self.warp.reason(&value))),
        }
    }

    /// The value as an operand of an item, if all lanes agree on it.
    pub(super) fn operand_of(&self, value: &Val) -> Option<Operand> {
        match value {
            Val::Known(l) => l.one(self.mask).map(|v| Operand::Imm(i128::from(v))),
            Val::Based(Base::Register(r), l) if l.one(self.mask) == Some(0) => Some(Operand::Reg(Reg(*r))),
            _ => None,
        }
    }

    /// The value of an operand of the book. Numbers of floating point are known to those who know their type.
    pub(super) fn read(&self, value: &Value) -> Val {
        let unknown = Val::Unknown(Why::Computed(self.line()));
        match value {
            Value::Reg(_) => ptx::reg(value).map_or(unknown, |r| self.state.env[r.index()].of(self.mask)),
            Value::Imm(n) => Val::same(n.cast_unsigned()),
            Value::Symbol(index, offset) => match u16::try_from(*index) {
                Ok(symbol) => self.symbol(symbol).add(&Lanes::Same(offset.cast_unsigned())),
                Err(_) => unknown,
            },
            Value::Special(named) => self.special((*named).into()),
            Value::Single(_) | Value::Double(_) | Value::Sink => unknown,
        }
    }

    /// The value of an operand of so many bits.
    pub(super) fn real(&self, value: &Value, bits: u16) -> Val {
        ptx::float(value, bits).map_or_else(|| self.read(value), Val::same)
    }

    /// The value of a predicate.
    pub(super) fn predicate(&self, pred: &Pred) -> Val {
        match self.read(&pred.value) {
            Val::Known(l) if pred.negated => Val::Known(l.map(|v| u64::from(v == 0))),
            other => other,
        }
    }

    /// The value of an address.
    pub(super) fn at(&self, address: &operand::Address) -> Val {
        self.read(&address.base).add(&Lanes::Same(address.offset.cast_unsigned()))
    }

    /// The address of a variable.
    pub(super) fn symbol(&self, symbol: u16) -> Val {
        let at = self.round().kernel.map().at.get(usize::from(symbol)).copied().flatten();
        match (self.round().kernel.variables.get(usize::from(symbol)), at) {
            (Some(Variable::Shared { .. }), Some(at)) => {
                Val::same(u64::from(self.warp.here.rank) << RANK_SHIFT | at)
            }
            (Some(_), Some(at)) => Val::same(at),
            _ => Val::Based(Base::Variable(self.round().launch.queued.variable(symbol)), Lanes::Same(0)),
        }
    }

    fn special(&self, special: Special) -> Val {
        let axis = |of: [u32; 3], n: u8| u64::from(of[usize::from(n) % 3]);
        let (launch, here) = (self.round().launch, &self.warp.here);
        let c = launch.cluster;
        let lane = |f: &dyn Fn(u64) -> u64| Val::Known(Lanes::from_fn(|l| f(l as u64)));
        let clusters = |n: u8| axis(launch.grid, n) / axis(c, n);
        Val::same(match special {
            Special::Tid(n) => return Val::Known(self.thread_ids(n)),
            Special::Ntid(n) => axis(launch.block, n),
            Special::Ctaid(n) => axis(here.ctaid, n),
            Special::Nctaid(n) => axis(launch.grid, n),
            Special::Clusterid(n) => axis(here.ctaid, n) / axis(c, n),
            Special::Nclusterid(n) => clusters(n),
            Special::ClusterCtaid(n) => axis(here.ctaid, n) % axis(c, n),
            Special::ClusterNctaid(n) => axis(c, n),
            Special::ClusterCtarank => u64::from(here.rank),
            Special::ClusterNctarank => c.iter().map(|n| u64::from(*n)).product(),
            Special::Warpid => u64::from(here.warp),
            Special::Nwarpid => launch.block.iter().map(|n| u64::from(*n)).product::<u64>().div_ceil(32),
            Special::Laneid => return lane(&|l| l),
            Special::LanemaskEq => return lane(&|l| 1 << l),
            Special::LanemaskLt => return lane(&|l| (1 << l) - 1),
            Special::LanemaskLe => return lane(&|l| (2 << l) - 1),
            Special::LanemaskGt => return lane(&|l| 0xffff_ffff & !((2 << l) - 1)),
            Special::LanemaskGe => return lane(&|l| 0xffff_ffff & !((1 << l) - 1)),
            // The address of what all CTAs of a cooperative launch share (cooperative groups read it from these two).
            Special::Envreg(1) => GRID_WORKSPACE >> 32,
            Special::Envreg(2) => GRID_WORKSPACE & 0xffff_ffff,
            Special::Envreg(_) | Special::DynamicSmemSize | Special::Unknown => {
                return Val::Unknown(Why::Computed(0));
            }
        })
    }

    /// `%tid` of each lane along an axis.
    pub(super) fn thread_ids(&self, axis: u8) -> Lanes {
        let [bx, by, _] = self.round().launch.block.map(u64::from);
        let first = u64::from(self.warp.here.warp) * LANES as u64;
        Lanes::from_fn(|l| {
            let t = first + l as u64;
            match axis {
                0 => t % bx,
                1 => t / bx % by,
                _ => t / bx / by,
            }
        })
    }
}
