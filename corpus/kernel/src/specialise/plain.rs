//! Instructions that are kept as words: arithmetic, moves, conversions, exchanges between lanes.

use super::alu::{self, Int};
use super::heap::{RANK_SHIFT, SHARED_WINDOW};
use super::run::{State, Step, Warp};
use super::value::{Base, Lanes, Val, Why};
use super::{Refusal, integer};
use crate::ptx::{Arg, Plain, Special, Statement, Variable};
use moire_program::ir::{Op, Reg, Ty};

impl Warp<'_> {
    pub(super) fn plain(
        &mut self,
        state: &mut State,
        statement: &Statement,
        plain: &Plain,
    ) -> Result<Step, Refusal> {
        let words: Vec<&str> = plain.words.iter().map(String::as_str).collect();
        match words[0] {
            "ld" | "ldu" => return self.plain_load(state, statement, &words, plain),
            "st" => return self.plain_store(state, statement, &words, plain),
            "brkpt" | "discard" | "applypriority" => return Ok(Step::Next),
            "fence" => {
                // Less order than there is: what is clean without it is clean.
                let text = format!("{} is ignored: it is taken to order nothing", plain.words.join("."));
                self.note(statement.line, text);
                return Ok(Step::Next);
            }
            "trap" => {
                let mask = self.guarded(state, statement)?;
                if mask == 0 {
                    return Ok(Step::Next);
                }
                self.emit(state, mask, super::run::Item::Exit)?;
                state.active &= !mask;
                return Ok(if state.active == 0 { Step::End } else { Step::Next });
            }
            "ldmatrix" | "stmatrix" => return self.matrix(state, statement, &words, plain),
            "call" | "brx" | "alloca" | "stacksave" | "stackrestore" | "atom" | "red" | "cp" | "multimem"
            | "tensormap" | "bar" | "barrier" | "mbarrier" | "sust" | "sured" => {
                let mask = self.guarded(state, statement)?;
                if mask == 0 {
                    return Ok(Step::Next);
                }
                return self.abstain(state, format!("`{}` is not interpreted", plain.words.join(".")));
            }
            _ => {}
        }
        let (written, _) = super::flow::effects(statement);
        if !written.iter().any(|r| self.flow.matters.get(r.index()) == Some(&true)) {
            return Ok(Step::Next);
        }
        let mask = match self.guarded(state, statement) {
            Ok(mask) => mask,
            Err(_) => {
                for r in written {
                    self.set(state, r, Val::Unknown(Why::Computed(statement.line)), state.active);
                }
                return Ok(Step::Next);
            }
        };
        if mask == 0 {
            return Ok(Step::Next);
        }
        if let Some(step) = self.dynamic(state, &words, plain, mask)? {
            return Ok(step);
        }
        let values = self.results(state, &words, plain, mask, written.len());
        for (reg, value) in written.into_iter().zip(values) {
            let value = self.cut(reg, value);
            self.set(state, reg, value, mask);
        }
        Ok(Step::Next)
    }

    /// Known bits beyond a register's declared width do not exist.
    fn cut(&self, reg: Reg, value: Val) -> Val {
        let width = self.kernel.types.get(reg.index()).map_or(8, |t| t.bytes());
        match value {
            Val::Known(l) if width < 8 => {
                let mask = (1u64 << (8 * width)) - 1;
                Val::Known(l.map(|v| v & mask))
            }
            other => other,
        }
    }

    /// A value for each destination.
    fn results(&mut self, state: &State, words: &[&str], plain: &Plain, mask: u32, count: usize) -> Vec<Val> {
        // What does not come out depends on the first operand that is not known.
        let why = plain.args.iter().skip(1).find_map(|a| match self.arg(state, a) {
            Val::Unknown(why @ (Why::Param(_) | Why::Loaded(_) | Why::Computed(1..))) => Some(why),
            _ => None,
        });
        let unknown = Val::Unknown(why.unwrap_or(Why::Computed(self.line(state))));
        let found = match words[0] {
            "mov" => self.moved(state, words, plain),
            "setp" => self.compared(state, words, plain),
            "shfl" => self.shuffled(state, words, plain, mask),
            "vote" | "activemask" | "match" | "redux" => self.voted(state, words, plain, mask),
            _ => self.computed(state, words, plain).map(|v| vec![v]),
        };
        let mut found = found.unwrap_or_default();
        found.resize(count, unknown);
        found
    }

    /// The value of an operand.
    pub(super) fn arg(&self, state: &State, arg: &Arg) -> Val {
        match arg {
            Arg::Reg(r) => state.env[r.index()].clone(),
            Arg::Not(r) => match &state.env[r.index()] {
                Val::Known(l) => Val::Known(l.map(|v| u64::from(v == 0))),
                other => other.clone(),
            },
            Arg::Imm(v) => Val::same(*v),
            Arg::Symbol(s, offset) => self.symbol(s.0).add(&Lanes::Same(offset.cast_unsigned())),
            Arg::Special(s) => self.special(*s),
            Arg::Address(base, offset) => self.arg(state, base).add(&Lanes::Same(offset.cast_unsigned())),
            _ => Val::Unknown(Why::Computed(self.line(state))),
        }
    }

    /// The address of a variable.
    pub(super) fn symbol(&self, symbol: u16) -> Val {
        let at = self.map.at.get(usize::from(symbol)).copied().flatten();
        match (self.kernel.variables.get(usize::from(symbol)), at) {
            (Some(Variable::Shared { .. }), Some(at)) => {
                Val::same(u64::from(self.here.rank) << RANK_SHIFT | at)
            }
            (Some(_), Some(at)) => Val::same(at),
            _ => Val::Based(Base::Variable(symbol), Lanes::Same(0)),
        }
    }

    fn special(&self, special: Special) -> Val {
        let axis = |of: [u32; 3], n: u8| u64::from(of[usize::from(n) % 3]);
        let (launch, here) = (self.launch, &self.here);
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
            Special::DynamicSmemSize | Special::Unknown => return Val::Unknown(Why::Computed(0)),
        })
    }

    /// `mov`, with packing and unpacking of vectors.
    fn moved(&self, state: &State, words: &[&str], plain: &Plain) -> Option<Vec<Val>> {
        let bits = 8 * words.last().and_then(|w| crate::ptx::type_of(w))?.bytes();
        match (plain.args.first()?, plain.args.get(1)?) {
            (Arg::Vector(parts), source) => {
                let width = bits / u32::try_from(parts.len()).ok()?;
                let Val::Known(all) = self.arg(state, source) else { return None };
                let shift = |i: usize| width.saturating_mul(u32::try_from(i).unwrap_or(64)).min(63);
                let cut = Int { bits: width.clamp(1, 64), signed: false };
                let part = |(i, a): (usize, &Arg)| {
                    matches!(a, Arg::Reg(_)).then(|| Val::Known(all.map(|v| cut.cut(v >> shift(i)))))
                };
                Some(parts.iter().enumerate().filter_map(part).collect())
            }
            (_, Arg::Vector(parts)) => {
                let width = bits / u32::try_from(parts.len()).ok()?;
                let cut = Int { bits: width.clamp(1, 64), signed: false };
                let mut total = Lanes::Same(0);
                for (i, part) in parts.iter().enumerate() {
                    let Val::Known(one) = self.arg(state, part) else { return None };
                    let shift = width.checked_mul(u32::try_from(i).ok()?).filter(|s| *s < 64)?;
                    total = total.zip(&one, |t, v| t | cut.cut(v) << shift);
                }
                Some(vec![Val::Known(total)])
            }
            (_, source) => match self.arg(state, source) {
                Val::Known(l) if bits == 1 || words.last() == Some(&"pred") => {
                    Some(vec![Val::Known(l.map(|v| u64::from(v != 0)))])
                }
                other => Some(vec![other]),
            },
        }
    }

    /// `setp.cmp{.bool}.type p{|q}, a, b{, c}`
    fn compared(&self, state: &State, words: &[&str], plain: &Plain) -> Option<Vec<Val>> {
        let t = Int::of(crate::ptx::type_of(words.last()?)?)?;
        let (a, b) = (self.arg(state, plain.args.get(1)?), self.arg(state, plain.args.get(2)?));
        let name = words.get(1)?;
        let found = match (&a, &b) {
            (Val::Known(a), Val::Known(b)) => {
                alu::compare(name, t, 0, 0)?;
                a.zip(b, |a, b| u64::from(alu::compare(name, t, a, b).unwrap_or(false)))
            }
            (Val::Based(p, a), Val::Based(q, b)) if p == q && matches!(*name, "eq" | "ne") => {
                a.zip(b, |a, b| u64::from((a == b) == (*name == "eq")))
            }
            // An address is never null.
            (Val::Based(Base::Param(_) | Base::Variable(_), _), Val::Known(z))
                if *z == Lanes::Same(0) && matches!(*name, "eq" | "ne") =>
            {
                Lanes::Same(u64::from(*name == "ne"))
            }
            _ => return None,
        };
        let not = found.map(|v| u64::from(v == 0));
        let both = match (words.get(2), plain.args.get(3)) {
            (Some(op @ (&"and" | &"or" | &"xor")), Some(c)) => {
                let Val::Known(c) = self.arg(state, c) else { return None };
                let with = |v: &Lanes| {
                    v.zip(&c, |a, b| alu::two(op, Int { bits: 1, signed: false }, a, b).unwrap_or(0))
                };
                [with(&found), with(&not)]
            }
            (Some(&"and" | &"or" | &"xor"), None) => return None,
            _ => [found, not],
        };
        let [first, second] = both.map(Val::Known);
        Some(match plain.args.first()? {
            Arg::Pair(None, Some(_)) => vec![second],
            _ => vec![first, second],
        })
    }

    fn shuffled(&self, state: &State, words: &[&str], plain: &Plain, mask: u32) -> Option<Vec<Val>> {
        let source = self.arg(state, plain.args.get(1)?);
        let Val::Known(by) = self.arg(state, plain.args.get(2)?) else { return None };
        let Val::Known(clamp) = self.arg(state, plain.args.get(3)?) else { return None };
        let mode = *words.get(2)?;
        let from = |l: usize| -> usize {
            let (b, c) = (by.get(l), clamp.get(l));
            let (segment, bound) = (c >> 8 & 31, c & 31);
            let lane = l as u64;
            let most = (lane & segment) | (bound & !segment & 31);
            let j = match mode {
                "idx" => (lane & segment) | (b & !segment & 31),
                "bfly" => lane ^ b,
                "down" => lane + (b & 31),
                _ => lane.wrapping_sub(b & 31),
            };
            let inside = if mode == "up" { j < 32 && j >= most } else { j <= most && j < 32 };
            if inside { usize::try_from(j).unwrap_or(l) } else { l }
        };
        let value = match &source {
            Val::Known(s) => Val::Known(Lanes::from_fn(|l| s.get(from(l)))),
            Val::Based(b, s) => Val::Based(*b, Lanes::from_fn(|l| s.get(from(l)))),
            Val::Unknown(_) => return None,
        };
        let all = super::value::lanes(mask).all(|l| mask >> from(l) & 1 == 1);
        all.then(|| vec![value, Val::same(1)])
    }

    fn voted(&self, state: &State, words: &[&str], plain: &Plain, mask: u32) -> Option<Vec<Val>> {
        if words[0] == "activemask" {
            return Some(vec![Val::same(u64::from(mask))]);
        }
        let Val::Known(v) = self.arg(state, plain.args.get(1)?) else { return None };
        let truth = v.truth(mask);
        // Lanes that are named and not here say what they say elsewhere.
        let members = self.arg(state, plain.args.get(2)?);
        let named = members.known().and_then(|m| m.one(mask))? & 0xffff_ffff;
        if words.contains(&"sync") && named & u64::from(self.here.lanes) != u64::from(mask) {
            return None;
        }
        let value = match (words[0], words.get(2).copied()?) {
            ("vote", "all") => u64::from(truth == mask),
            ("vote", "any") => u64::from(truth != 0),
            ("vote", "uni") => u64::from(truth == mask || truth == 0),
            ("vote", "ballot") => u64::from(truth),
            ("match", _) if words.get(1) == Some(&"any") => {
                let alike = |l: usize, o: usize| if v.get(o) == v.get(l) { 1 << o } else { 0 };
                let with = |l: usize| super::value::lanes(mask).fold(0, |m, o| m | alike(l, o));
                return Some(vec![Val::Known(Lanes::from_fn(with))]);
            }
            ("match", _) => {
                let all = v.one(mask).is_some();
                let found = Val::same(if all { u64::from(mask) } else { 0 });
                return Some(vec![found, Val::same(u64::from(all))]);
            }
            ("redux", name) => {
                let t = Int::of(crate::ptx::type_of(words.last()?)?)?;
                let mut all = super::value::lanes(mask).map(|l| v.get(l));
                let first = all.next()?;
                all.try_fold(first, |a, b| alu::two(name, t, a, b))?
            }
            _ => return None,
        };
        Some(vec![Val::same(value)])
    }

    /// Everything with one destination.
    fn computed(&mut self, state: &State, words: &[&str], plain: &Plain) -> Option<Val> {
        let args: Vec<Val> = plain.args.iter().skip(1).map(|a| self.arg(state, a)).collect();
        let name = words[0];
        if name == "cvta" {
            return self.converted_address(words, args.first()?);
        }
        if name == "mapa" || name == "getctarank" {
            return None;
        }
        let ty = words.last().and_then(|w| crate::ptx::type_of(w))?;
        if name == "selp" {
            let Val::Known(p) = args.get(2)? else { return None };
            let (a, b) = (args.first()?.clone(), args.get(1)?);
            let truth = p.truth(u32::MAX);
            return Some(match truth {
                u32::MAX => a,
                0 => b.clone(),
                some => a.over(some, b),
            });
        }
        if name == "isspacep" {
            return None;
        }
        if let Some(v) = integer::shifted_base(name, words, &args) {
            return Some(v);
        }
        let known: Option<Vec<&Lanes>> = args.iter().map(Val::known).collect();
        let known = match known {
            Some(known) => known,
            None => return self.simplified(name, ty, &args),
        };
        integer::integer(name, words, ty, &known).map(Val::Known)
    }

    /// Products with zero and the like are known whatever the other side is.
    fn simplified(&self, name: &str, ty: Ty, args: &[Val]) -> Option<Val> {
        Int::of(ty)?;
        let zero = |v: &Val| v.known() == Some(&Lanes::Same(0));
        match (name, args) {
            ("and", [a, b]) if zero(a) || zero(b) => Some(Val::same(0)),
            ("and" | "or", [a, b]) if a == b => Some(a.clone()),
            ("or" | "xor" | "add" | "shl" | "shr", [a, b]) if zero(b) => Some(a.clone()),
            ("or" | "xor" | "add", [a, b]) if zero(a) => Some(b.clone()),
            _ => match args.iter().find(|a| matches!(a, Val::Unknown(_))) {
                Some(Val::Unknown(why)) => Some(Val::Unknown(*why)),
                _ => None,
            },
        }
    }

    /// `cvta`: from and to the window of shared memory.
    fn converted_address(&self, words: &[&str], value: &Val) -> Option<Val> {
        let to = words.contains(&"to");
        let shared = words.iter().any(|w| w.starts_with("shared"));
        match value {
            Val::Known(l) if shared && to => Some(Val::Known(l.map(|v| v.wrapping_sub(SHARED_WINDOW)))),
            Val::Known(l) if shared => Some(Val::Known(l.map(|v| v.wrapping_add(SHARED_WINDOW)))),
            other => Some(other.clone()),
        }
    }

    /// A comparison with a register of the exploration goes on both ways.
    fn dynamic(
        &mut self,
        state: &mut State,
        words: &[&str],
        plain: &Plain,
        mask: u32,
    ) -> Result<Option<Step>, Refusal> {
        let ("setp", [Arg::Reg(dst), a, b]) = (words[0], plain.args.as_slice()) else { return Ok(None) };
        let Some(ty) = words.last().and_then(|w| crate::ptx::type_of(w)) else { return Ok(None) };
        let compare = match words.get(1) {
            Some(&"eq") => moire_program::ir::CmpOp::Eq,
            Some(&"ne") => moire_program::ir::CmpOp::Ne,
            Some(&"lt") => moire_program::ir::CmpOp::Lt,
            Some(&"le") => moire_program::ir::CmpOp::Le,
            Some(&"gt") => moire_program::ir::CmpOp::Gt,
            Some(&"ge") => moire_program::ir::CmpOp::Ge,
            _ => return Ok(None),
        };
        let (a, b) = (self.arg(state, a), self.arg(state, b));
        if !matches!(
            (&a, &b),
            (Val::Based(Base::Register(_), _), Val::Known(_))
                | (Val::Known(_), Val::Based(Base::Register(_), _))
        ) {
            return Ok(None);
        }
        let (Some(a), Some(b)) = (self.operand_of(&a, mask), self.operand_of(&b, mask)) else {
            return Ok(None);
        };
        let q = self.slot(state, 0);
        let op = Op::Setp { op: compare, ty, dst: q, a, b };
        self.emit(state, mask, super::run::Item::Op { op: Box::new(op), touches: vec![] })?;
        Ok(Some(self.both(state, q, &[*dst], mask)))
    }

    /// Two ways: the registers are 1 where `q` is true, 0 where it is not.
    pub(super) fn both(&mut self, state: &State, q: Reg, regs: &[Reg], mask: u32) -> Step {
        let way = |value: u64| {
            let mut next = state.clone();
            regs.iter().for_each(|r| self.set(&mut next, *r, Val::same(value), mask));
            next
        };
        Step::Ways(vec![(Some(q), way(1)), (None, way(0))])
    }
}
