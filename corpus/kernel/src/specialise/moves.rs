//! Loads and stores that are kept as words, and the values of parameters.

use super::Refusal;
use super::access::Access;
use super::alu::Int;
use super::heap::{LOCALS, PARAMS};
use super::run::{State, Step, Warp};
use super::value::{Base, Lanes, Val, Why};
use crate::ptx::{Arg, Plain, Statement};
use moire_program::ir::{Address, Operand, Reg, RemoteOrder, RemoteWrite, Space, Ty};

impl Warp<'_> {
    pub(super) fn plain_load(
        &mut self,
        state: &mut State,
        statement: &Statement,
        words: &[&str],
        plain: &Plain,
    ) -> Result<Step, Refusal> {
        let (dst, _) = super::flow::effects(statement);
        if words.iter().any(|w| w.starts_with("param")) {
            let mask = self.guarded(state, statement)?;
            return self.load_parameter(state, &dst, words, plain, mask);
        }
        let mask = self.guarded(state, statement)?;
        if mask == 0 {
            return Ok(Step::Next);
        }
        if words.contains(&"const") || words.contains(&"local") {
            for r in &dst {
                self.set(state, *r, Val::Unknown(Why::Loaded(statement.line)), mask);
            }
            return Ok(Step::Next);
        }
        let address = plain.args.get(1).map(|a| self.arg(state, a));
        let Some(address) = address else { return Ok(Step::Next) };
        let access = self.shape(words, dst.len().max(1));
        self.load(state, &access, &dst, &address, mask)
    }

    pub(super) fn plain_store(
        &mut self,
        state: &mut State,
        statement: &Statement,
        words: &[&str],
        plain: &Plain,
    ) -> Result<Step, Refusal> {
        let mask = self.guarded(state, statement)?;
        if mask == 0 || words.contains(&"local") || words.iter().any(|w| w.starts_with("param")) {
            return Ok(Step::Next);
        }
        if words.get(1) == Some(&"async") && words.contains(&"mbarrier::complete_tx::bytes") {
            return self.vector_away(state, words, plain, mask);
        }
        if words.contains(&"bulk") || words.contains(&"async") {
            return self.abstain(state, format!("`{}` is not interpreted", words.join(".")));
        }
        let (Some(at), Some(data)) = (plain.args.first(), plain.args.get(1)) else { return Ok(Step::Next) };
        let address = self.arg(state, at);
        let values: Vec<Val> = match data {
            Arg::Vector(all) => all.iter().map(|a| self.arg(state, a)).collect(),
            one => vec![self.arg(state, one)],
        };
        let access = self.shape(words, values.len());
        self.store(state, &access, &values, &address, mask)?;
        Ok(Step::Next)
    }

    /// `st.async` of a register that is a vector, whose elements are not looked at.
    fn vector_away(
        &mut self,
        state: &mut State,
        words: &[&str],
        plain: &Plain,
        mask: u32,
    ) -> Result<Step, Refusal> {
        let address = |arg: Option<&Arg>| match arg {
            Some(Arg::Address(base, offset)) => match **base {
                Arg::Reg(reg) => {
                    Some(Address { base: Operand::Reg(reg), offset: i32::try_from(*offset).ok()? })
                }
                _ => None,
            },
            _ => None,
        };
        let (Some(addr), Some(mbarrier)) = (address(plain.args.first()), address(plain.args.get(2))) else {
            return self.abstain(state, format!("`{}` is not interpreted", words.join(".")));
        };
        let count = [("v2", 2), ("v4", 4)].into_iter().find(|c| words.contains(&c.0)).map_or(1, |c| c.1);
        let shape = self.shape(words, count);
        let order = RemoteOrder::Mbarrier(mbarrier);
        let write = RemoteWrite { op: None, space: shape.space, ty: shape.ty, addr, src: Vec::new(), order };
        let values = vec![Val::Unknown(Why::Computed(self.line(state))); count];
        self.remote_of(state, &write, &values, mask)
    }

    fn shape(&self, words: &[&str], count: usize) -> Access {
        let space = words.iter().find_map(|w| match *w {
            "shared" | "shared::cta" => Some(Space::SharedCta),
            "shared::cluster" => Some(Space::SharedCluster),
            "global" => Some(Space::Global),
            _ => None,
        });
        let ty = words.last().and_then(|w| crate::ptx::type_of(w)).unwrap_or(Ty::B(32));
        let strong = ["relaxed", "acquire", "release", "volatile", "mmio"].iter().any(|w| words.contains(w));
        Access { space: space.unwrap_or(Space::Generic), ty, count, strong }
    }

    fn load_parameter(
        &mut self,
        state: &mut State,
        dst: &[Reg],
        words: &[&str],
        plain: &Plain,
        mask: u32,
    ) -> Result<Step, Refusal> {
        let line = self.line(state);
        let size = u64::from(words.last().and_then(|w| crate::ptx::type_of(w)).map_or(4, Ty::bytes));
        let at = plain.args.get(1).map(|a| self.arg(state, a));
        let at = at.as_ref().and_then(Val::known).and_then(|l| l.one(mask));
        for (i, r) in (0u64..).zip(dst) {
            let value =
                at.map(|at| self.parameter(at + i * size, size)).unwrap_or(Val::Unknown(Why::Loaded(line)));
            self.set(state, *r, value, mask);
        }
        Ok(Step::Next)
    }

    fn parameter(&self, at: u64, size: u64) -> Val {
        let found = self.map.params.iter().rposition(|p| *p <= at).filter(|_| (PARAMS..LOCALS).contains(&at));
        let Some(n) = found else { return Val::Unknown(Why::Computed(0)) };
        let index = u16::try_from(n).unwrap_or(u16::MAX);
        let inside = at - self.map.params[n];
        match self.launch.params.get(&index) {
            Some(v) => {
                let cut = Int { bits: u32::try_from(8 * size).unwrap_or(64).clamp(1, 64), signed: false };
                Val::same(if inside >= 8 { 0 } else { cut.cut(v >> (8 * inside)) })
            }
            None if self.kernel.params[n].pointer && inside == 0 && size == 8 => {
                Val::Based(Base::Param(index), Lanes::Same(0))
            }
            None => Val::Unknown(Why::Param(index)),
        }
    }
}
