//! Special registers, parameters, and loads and stores that litmus texts do not have, such as stores of a float.

use super::run::{Run, Val};
use crate::Done;
use crate::ptx::{Arg, Plain, Special, Variable, type_of};
use moire_program::ir::{Address, LoadOrder, Op, Operand, Proxy, Scope, Space, StoreOrder};

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
    pub(super) fn parameter(&self, plain: &Plain) -> Val {
        let unknown = Val::Unknown(self.pc);
        let Some(Arg::Address(base, 0)) = plain.args.get(1) else { return unknown };
        let (Arg::Symbol(symbol, 0), Some(Arg::Reg(_))) = (&**base, plain.args.first()) else {
            return unknown;
        };
        let Some(Variable::Param(n)) = self.kernel.variables.get(symbol.index()) else { return unknown };
        let pointer = self.kernel.params.get(*n).is_some_and(|p| p.pointer);
        if pointer { self.symbol(*symbol, 0) } else { unknown }
    }

    /// The access as an instruction of litmus texts.
    pub(super) fn access(&self, words: &[&str], plain: &Plain) -> Done<Op> {
        let refused = || self.refuse(&format!("`{}`", plain.words.join(".")));
        let (mut ty, mut space, mut scope, mut order) = (None, Space::Generic, None, "weak");
        for word in &words[1..] {
            match *word {
                "global" => space = Space::Global,
                "shared" | "shared::cta" => space = Space::SharedCta,
                "shared::cluster" => space = Space::SharedCluster,
                "cta" => scope = Some(Scope::Cta),
                "cluster" => scope = Some(Scope::Cluster),
                "gpu" => scope = Some(Scope::Gpu),
                "sys" => scope = Some(Scope::Sys),
                "weak" | "relaxed" | "acquire" | "release" | "volatile" => order = word,
                "v2" | "v4" | "v8" => {}
                other => ty = Some(type_of(other).ok_or_else(refused)?),
            }
        }
        let (at, value) = if words[0] == "ld" { (1, 0) } else { (0, 1) };
        let (Some(ty), Some(Arg::Address(base, offset)), Some(value)) =
            (ty, plain.args.get(at), plain.args.get(value))
        else {
            return Err(refused());
        };
        let (base, more) = match &**base {
            Arg::Reg(r) => (Operand::Reg(*r), 0),
            Arg::Symbol(s, more) => (Operand::Address(*s), *more),
            _ => return Err(refused()),
        };
        let offset = offset.checked_add(more).and_then(|o| i32::try_from(o).ok()).ok_or_else(refused)?;
        let (addr, proxy) = (Address { base, offset }, Proxy::Generic);
        let values = if let Arg::Vector(all) = value { all.as_slice() } else { std::slice::from_ref(value) };
        if words[0] == "ld" {
            let order = match (order, scope) {
                ("weak", None) => LoadOrder::Weak,
                ("volatile", None) => LoadOrder::Volatile,
                ("relaxed", Some(s)) => LoadOrder::Relaxed(s),
                ("acquire", Some(s)) => LoadOrder::Acquire(s),
                _ => return Err(refused()),
            };
            let dst = values.iter().map(|a| if let Arg::Reg(r) = a { Ok(*r) } else { Err(refused()) });
            return Ok(Op::Load { order, proxy, space, ty, dst: dst.collect::<Done<_>>()?, addr });
        }
        let order = match (order, scope) {
            ("weak", None) => StoreOrder::Weak,
            ("volatile", None) => StoreOrder::Volatile,
            ("relaxed", Some(s)) => StoreOrder::Relaxed(s),
            ("release", Some(s)) => StoreOrder::Release(s),
            _ => return Err(refused()),
        };
        let source = |a: &Arg| match a {
            Arg::Reg(r) => Ok(Operand::Reg(*r)),
            Arg::Imm(v) => Ok(Operand::Imm(i128::from(*v))),
            _ => Err(refused()),
        };
        Ok(Op::Store { order, proxy, space, ty, addr, src: values.iter().map(source).collect::<Done<_>>()? })
    }
}
