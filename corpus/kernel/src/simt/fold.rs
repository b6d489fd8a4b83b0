//! Instructions kept as words: evaluated if all operands are known, otherwise written as register arithmetic.
//!
//! The result of any other instruction (floats, exchanges between lanes) is unknown. It is refused if a branch, an
//! address or memory depends on it.

use super::run::{Run, Val, When};
use crate::Done;
use crate::ptx::{Arg, Plain, type_of};
use crate::specialise::known::alu::{self, Int};
use crate::specialise::known::flow::effects;
use crate::specialise::known::integer;
use crate::specialise::known::value::Lanes;
use moire_program::ir::{AluOp, CmpOp, Op, Operand, Reg, Ty};

/// Instructions that have effects beyond registers and are not interpreted.
const EFFECTS: [&str; 25] = [
    "alloca",
    "applypriority",
    "atom",
    "bar",
    "barrier",
    "brx",
    "call",
    "cp",
    "discard",
    "fence",
    "ldmatrix",
    "mbarrier",
    "mma",
    "multimem",
    "red",
    "st.bulk",
    "stackrestore",
    "stacksave",
    "suld",
    "sured",
    "sust",
    "tensormap",
    "trap",
    "wmma",
    "tex",
];
/// Qualifiers, beside types, under which arithmetic is evaluated.
const PLAIN: [&str; 13] = [
    "lo",
    "hi",
    "wide",
    "l",
    "r",
    "wrap",
    "clamp",
    "to",
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "const",
];

/// The right-hand side of an assignment to a register.
#[derive(Clone, Copy)]
enum Rhs {
    Val(Val),
    Mov(Ty, Operand),
    Alu(AluOp, Ty, Operand, Operand),
    Setp(CmpOp, Ty, Operand, Operand),
    Selp(Ty, Operand, Operand, Reg),
}

impl Rhs {
    fn op(self, dst: Reg) -> Option<Op> {
        Some(match self {
            Rhs::Val(_) => return None,
            Rhs::Mov(ty, src) => Op::Mov { ty, dst, src },
            Rhs::Alu(op, ty, a, b) => Op::Alu { op, ty, dst, a, b },
            Rhs::Setp(op, ty, a, b) => Op::Setp { op, ty, dst, a, b },
            Rhs::Selp(ty, a, b, p) => Op::Selp { ty, dst, a, b, p },
        })
    }
}

fn bits(n: u32) -> u8 {
    u8::try_from(n.clamp(8, 64)).unwrap_or(64)
}

impl Run<'_> {
    pub(super) fn plain(&mut self, plain: &Plain, when: When) -> Done<()> {
        let words: Vec<&str> = plain.words.iter().map(String::as_str).collect();
        let of_param = words.get(1).is_some_and(|w| w.starts_with("param"));
        match words[0] {
            "brkpt" => return Ok(()),
            "ld" | "st" if !(of_param && words[0] == "ld") => {
                let op = self.access(&words, plain)?;
                return self.core(op, when);
            }
            "stmatrix" => return self.stmatrix(&words, plain, when),
            name if EFFECTS.contains(&name) => {
                return Err(self.refuse(&format!("`{}`", plain.words.join("."))));
            }
            _ => {}
        }
        let Some(statement) = self.kernel.body.get(self.pc) else { return Ok(()) };
        let written = effects(statement).0;
        let mut results = match when {
            When::Unknown(pc) => vec![Rhs::Val(Val::Unknown(pc)); written.len()],
            _ => self.results(&words, plain)?,
        };
        results.resize(written.len(), Rhs::Val(Val::Unknown(self.pc)));
        if results.len() > 1 {
            // No destination may be written before the last source is read.
            for result in &mut results {
                if !matches!(result, Rhs::Val(_)) {
                    *result = Rhs::Mov(Ty::B(64), self.calculate(*result)?);
                }
            }
        }
        for (reg, result) in written.into_iter().zip(results) {
            self.assign(reg, result, when)?;
        }
        Ok(())
    }

    fn assign(&mut self, reg: Reg, result: Rhs, when: When) -> Done<()> {
        let result = match result {
            Rhs::Val(Val::Known(v)) => {
                let width = if self.width(reg) == Ty::Pred { 1 } else { self.width(reg).bytes() * 8 };
                Rhs::Val(Val::Known(Int { bits: width.min(64), signed: false }.cut(v)))
            }
            other => other,
        };
        match (result, when) {
            (Rhs::Val(value), When::Always) => self.env[reg.index()] = value,
            (Rhs::Val(Val::Unknown(pc)), _) => self.env[reg.index()] = Val::Unknown(pc),
            (Rhs::Val(value), _) => {
                let src = self.place(value, Operand::Reg(reg))?;
                let op = Op::Mov { ty: self.width(reg), dst: reg, src };
                self.write(&[reg], when, op)?;
            }
            (other, _) => {
                if let Some(op) = other.op(reg) {
                    self.write(&[reg], when, op)?;
                }
            }
        }
        Ok(())
    }

    /// Computes a result into a new register.
    fn calculate(&mut self, result: Rhs) -> Done<Operand> {
        if let Rhs::Val(value) = result {
            return self.place(value, Operand::Imm(0));
        }
        let dst = self.temp()?;
        if let Some(op) = result.op(dst) {
            self.emit(None, op);
        }
        Ok(Operand::Reg(dst))
    }

    fn alu(&mut self, op: AluOp, ty: Ty, a: Operand, b: Operand) -> Done<Operand> {
        self.calculate(Rhs::Alu(op, ty, a, b))
    }

    fn operand(&mut self, arg: &Arg) -> Done<Operand> {
        match (arg, self.argument(arg)) {
            (Arg::Not(r), Val::Dynamic) => self.alu(AluOp::Xor, Ty::Pred, Operand::Reg(*r), Operand::Imm(1)),
            (Arg::Reg(r), value) => self.place(value, Operand::Reg(*r)),
            (_, value) => self.place(value, Operand::Imm(0)),
        }
    }

    /// The results for the registers that are written. Missing ones are unknown.
    fn results(&mut self, words: &[&str], plain: &Plain) -> Done<Vec<Rhs>> {
        let args = &plain.args;
        let ty = words.last().and_then(|w| type_of(w));
        let sources = args.get(1..).unwrap_or_default();
        let vector = |a: &Arg| matches!(a, Arg::Vector(_));
        match words[0] {
            "ld" => return Ok(vec![Rhs::Val(self.parameter(plain))]),
            "mov" if args.iter().any(vector) => return self.packed(words, plain),
            "setp" => return self.compared(words, plain),
            "selp" if sources.len() == 3 => {
                return Ok(vec![self.selected(ty.unwrap_or(Ty::B(64)), sources)?]);
            }
            _ => {}
        }
        let values: Vec<Val> = sources.iter().map(|a| self.argument(a)).collect();
        if let Some(v) = values.iter().find(|v| matches!(v, Val::Unknown(_) | Val::Unset)) {
            return Ok(vec![Rhs::Val(if let Val::Unknown(_) = v { *v } else { Val::Unknown(self.pc) })]);
        }
        let unknown = Rhs::Val(Val::Unknown(self.pc));
        let usual = words[1..].iter().all(|w| type_of(w).is_some() || PLAIN.contains(w));
        if !usual || plain.args.len() < 2 {
            return Ok(vec![unknown]);
        }
        if let Some(v) = moved(words, &values) {
            return Ok(vec![match v {
                Val::Dynamic => Rhs::Mov(Ty::B(64), self.operand(&sources[0])?),
                v => Rhs::Val(v),
            }]);
        }
        let Some(ty) = ty.filter(|t| Int::of(*t).is_some()) else { return Ok(vec![unknown]) };
        let number = |v: &Val| if let Val::Known(n) = self.bits(*v) { Some(Lanes::Same(n)) } else { None };
        let known: Option<Vec<Lanes>> = values.iter().map(number).collect();
        if let Some(known) = known {
            let known: Vec<&Lanes> = known.iter().collect();
            let found = integer::integer(words[0], words, ty, &known);
            return Ok(vec![found.map_or(unknown, |l| Rhs::Val(Val::Known(l.get(0))))]);
        }
        if values.iter().any(|v| matches!(v, Val::Address(..))) && words[0] != "add" {
            return Ok(vec![unknown]);
        }
        let operands = sources.iter().map(|a| self.operand(a)).collect::<Done<Vec<Operand>>>()?;
        Ok(vec![self.computed(words, ty, &operands)?.unwrap_or(unknown)])
    }

    /// Turns an address in shared memory into a number.
    fn bits(&self, value: Val) -> Val {
        match value {
            Val::Address(symbol, offset) => self.names.number(symbol, offset).map_or(value, Val::Known),
            other => other,
        }
    }

    fn selected(&mut self, ty: Ty, sources: &[Arg]) -> Done<Rhs> {
        let p = self.argument(&sources[2]);
        let (Val::Known(_) | Val::Dynamic) = p else {
            return Ok(Rhs::Val(if let Val::Unknown(_) = p { p } else { Val::Unknown(self.pc) }));
        };
        let bare = Ty::B(bits(ty.bytes() * 8));
        if let Val::Known(p) = p {
            let one = &sources[usize::from(p == 0)];
            return Ok(match self.argument(one) {
                Val::Dynamic => Rhs::Mov(bare, self.operand(one)?),
                Val::Unset => Rhs::Val(Val::Unknown(self.pc)),
                v => Rhs::Val(v),
            });
        }
        for one in &sources[..2] {
            if let v @ (Val::Unknown(_) | Val::Unset) = self.argument(one) {
                return Ok(Rhs::Val(if let Val::Unknown(_) = v { v } else { Val::Unknown(self.pc) }));
            }
        }
        let (a, b) = (self.operand(&sources[0])?, self.operand(&sources[1])?);
        Ok(match self.operand(&sources[2])? {
            Operand::Reg(p) => Rhs::Selp(bare, a, b, p),
            _ => Rhs::Val(Val::Unknown(self.pc)),
        })
    }

    /// `mov.b64 {a, b}, c` and `mov.b64 c, {a, b}`.
    fn packed(&mut self, words: &[&str], plain: &Plain) -> Done<Vec<Rhs>> {
        let unknown = vec![Rhs::Val(Val::Unknown(self.pc))];
        let total = words.last().and_then(|w| type_of(w)).map_or(0, Ty::bytes) * 8;
        let (Some(to), Some(from)) = (plain.args.first(), plain.args.get(1)) else { return Ok(unknown) };
        let ((Arg::Vector(parts), _) | (_, Arg::Vector(parts))) = (to, from) else { return Ok(unknown) };
        let Ok(count) = u32::try_from(parts.len().max(1)) else { return Ok(unknown) };
        let width = total / count;
        if total > 64 || width < 8 {
            return Ok(unknown);
        }
        let shift = |i: usize| Operand::Imm(i128::from(width) * i as i128);
        let sources = if let Arg::Vector(all) = from { all.as_slice() } else { std::slice::from_ref(from) };
        for one in sources {
            if let v @ (Val::Unknown(_) | Val::Unset | Val::Address(..)) = self.argument(one) {
                let why = if let Val::Unknown(_) = v { v } else { Val::Unknown(self.pc) };
                return Ok(vec![Rhs::Val(why); parts.len()]);
            }
        }
        let mut out = Vec::new();
        if let Arg::Vector(_) = to {
            let value = self.operand(from)?;
            for (i, _) in parts.iter().enumerate().filter(|(_, p)| matches!(p, Arg::Reg(_))) {
                let low = self.shifted(AluOp::Shr, value, shift(i))?;
                out.push(self.folded(AluOp::And, low, Operand::Imm((1i128 << width) - 1))?);
            }
            return Ok(out);
        }
        let mut all = Operand::Imm(0);
        for (i, part) in parts.iter().enumerate() {
            let value = self.operand(part)?;
            let low = self.folded(AluOp::And, value, Operand::Imm((1i128 << width) - 1))?;
            let low = self.calculate(low)?;
            let high = self.shifted(AluOp::Shl, low, shift(i))?;
            let both = self.folded(AluOp::Or, all, high)?;
            all = self.calculate(both)?;
        }
        Ok(vec![as_value(all)])
    }

    fn shifted(&mut self, op: AluOp, a: Operand, by: Operand) -> Done<Operand> {
        let result = self.folded(op, a, by)?;
        self.calculate(result)
    }

    /// Arithmetic on 64 bits; evaluates it if both operands are numbers.
    fn folded(&mut self, op: AluOp, a: Operand, b: Operand) -> Done<Rhs> {
        let name = match op {
            AluOp::Shl => "shl",
            AluOp::Shr => "shr",
            AluOp::Or => "or",
            _ => "and",
        };
        Ok(match (a, b) {
            (Operand::Imm(x), Operand::Imm(y)) => {
                let t = Int { bits: 64, signed: false };
                alu::two(name, t, t.pattern(x), t.pattern(y))
                    .map_or(Rhs::Val(Val::Unknown(self.pc)), |v| Rhs::Val(Val::Known(v)))
            }
            (Operand::Imm(0), other) if op == AluOp::Or => Rhs::Mov(Ty::B(64), other),
            _ => Rhs::Alu(op, if op == AluOp::Shr { Ty::U(64) } else { Ty::B(64) }, a, b),
        })
    }

    /// `setp.cmp{.bool}.type p{|q}, a, b{, c}`
    fn compared(&mut self, words: &[&str], plain: &Plain) -> Done<Vec<Rhs>> {
        let unknown = vec![Rhs::Val(Val::Unknown(self.pc)); 2];
        let (Some(ty), Some(a), Some(b)) =
            (words.last().and_then(|w| type_of(w)), plain.args.get(1), plain.args.get(2))
        else {
            return Ok(unknown);
        };
        let Some(t) = Int::of(ty) else { return Ok(unknown) };
        let name = words.get(1).copied().unwrap_or_default();
        for one in &plain.args[1..] {
            if let v @ (Val::Unknown(_) | Val::Unset) = self.argument(one) {
                let why = if let Val::Unknown(_) = v { v } else { Val::Unknown(self.pc) };
                return Ok(vec![Rhs::Val(why); 2]);
            }
        }
        let first = match (self.argument(a), self.argument(b)) {
            (Val::Known(a), Val::Known(b)) => alu::compare(name, t, a, b).map(known),
            (Val::Address(p, a), Val::Address(q, b)) if p == q => {
                let signed = Int { bits: 64, signed: true };
                alu::compare(name, signed, a.cast_unsigned(), b.cast_unsigned()).map(known)
            }
            // An address is never null.
            (Val::Address(..), Val::Known(0)) if matches!(name, "eq" | "ne") => Some(known(name == "ne")),
            (Val::Address(..), _) | (_, Val::Address(..)) => None,
            _ => {
                let (a, b) = (self.operand(a)?, self.operand(b)?);
                comparison(name, t).map(|(op, ty)| Rhs::Setp(op, ty, a, b))
            }
        };
        let Some(first) = first else { return Ok(unknown) };
        let pair = matches!(plain.args[0], Arg::Pair(..));
        let connective = match (words.len(), words.get(2).copied()) {
            (3, _) => None,
            (4, Some("and")) => Some(AluOp::And),
            (4, Some("or")) => Some(AluOp::Or),
            (4, Some("xor")) => Some(AluOp::Xor),
            _ => return Ok(unknown),
        };
        if !pair && connective.is_none() {
            return Ok(vec![first]);
        }
        let yes = self.calculate(first)?;
        let no = self.logic(AluOp::Xor, yes, Operand::Imm(1))?;
        let no = self.calculate(no)?;
        let mut out = vec![as_value(yes), as_value(no)];
        if let (Some(op), Some(c)) = (connective, plain.args.get(3)) {
            let c = self.operand(c)?;
            out = vec![self.logic(op, yes, c)?, self.logic(op, no, c)?];
        }
        if let Arg::Pair(None, _) = plain.args[0] {
            out.remove(0);
        }
        Ok(out)
    }

    fn logic(&mut self, op: AluOp, a: Operand, b: Operand) -> Done<Rhs> {
        Ok(match (a, b) {
            (Operand::Imm(a), Operand::Imm(b)) => known(match op {
                AluOp::And => a & b & 1 == 1,
                AluOp::Or => (a | b) & 1 == 1,
                _ => (a ^ b) & 1 == 1,
            }),
            _ => decided(op, &[a, b]).unwrap_or(Rhs::Alu(op, Ty::Pred, a, b)),
        })
    }

    /// Extends a narrow operand to 64 bits.
    fn widened(&mut self, t: Int, a: Operand) -> Done<Operand> {
        if let Operand::Imm(v) = a {
            return Ok(Operand::Imm(t.number(Int { bits: 64, signed: false }.pattern(v))));
        }
        if !t.signed || t.bits >= 64 {
            return self.calculate(Rhs::Mov(Ty::B(bits(t.bits)), a));
        }
        let by = Operand::Imm(i128::from(64 - t.bits));
        let high = self.alu(AluOp::Shl, Ty::B(64), a, by)?;
        self.alu(AluOp::Shr, Ty::S(64), high, by)
    }

    /// Arithmetic on operands of which at least one is unknown.
    fn computed(&mut self, words: &[&str], ty: Ty, args: &[Operand]) -> Done<Option<Rhs>> {
        let Some(t) = Int::of(ty) else { return Ok(None) };
        let wide = bits(t.bits);
        let number = if t.signed { Ty::S(wide) } else { Ty::U(wide) };
        let bit = if t.bits == 1 { Ty::Pred } else { Ty::B(wide) };
        let bare = |op| matches!(op, AluOp::And | AluOp::Or | AluOp::Xor | AluOp::Shl);
        let part = words.get(1).copied().unwrap_or_default();
        let two = match words[0] {
            "add" => Some(AluOp::Add),
            "sub" => Some(AluOp::Sub),
            "and" => Some(AluOp::And),
            "or" => Some(AluOp::Or),
            "xor" => Some(AluOp::Xor),
            "shl" => Some(AluOp::Shl),
            "shr" => Some(AluOp::Shr),
            "min" => Some(AluOp::Min),
            "max" => Some(AluOp::Max),
            "div" => Some(AluOp::Div),
            "rem" => Some(AluOp::Rem),
            _ => None,
        };
        Ok(match (words[0], args) {
            (_, [a, b]) if two.is_some() => {
                let decided = two.filter(|_| t.bits == 1).and_then(|op| decided(op, args));
                decided.or(two.map(|op| Rhs::Alu(op, if bare(op) { bit } else { number }, *a, *b)))
            }
            ("not", [a]) => {
                let mask = if t.bits == 1 { 1 } else { (1i128 << t.bits) - 1 };
                Some(Rhs::Alu(AluOp::Xor, bit, *a, Operand::Imm(mask)))
            }
            ("neg", [a]) => Some(Rhs::Alu(AluOp::Sub, number, Operand::Imm(0), *a)),
            ("cvt", [a]) => match words.get(1).and_then(|w| type_of(w)).and_then(Int::of) {
                Some(to) if words.len() == 3 && to.bits >= 8 && t.bits >= 8 => {
                    let value = self.widened(t, *a)?;
                    Some(Rhs::Mov(Ty::B(bits(to.bits)), value))
                }
                _ => None,
            },
            ("mul", [a, b]) if part == "lo" => Some(Rhs::Alu(AluOp::Mul, Ty::U(wide), *a, *b)),
            ("mul" | "mad", [a, b, rest @ ..]) if t.bits <= 32 || part == "lo" => {
                let (a, b) = (self.widened(t, *a)?, self.widened(t, *b)?);
                let mut out = Rhs::Alu(AluOp::Mul, Ty::U(64), a, b);
                if part == "hi" {
                    let all = self.calculate(out)?;
                    let by = Operand::Imm(i128::from(t.bits));
                    let shift = if t.signed { Ty::S(64) } else { Ty::U(64) };
                    let high = self.alu(AluOp::Shr, shift, all, by)?;
                    out = Rhs::Mov(Ty::B(wide), high);
                }
                if let [c] = rest {
                    let product = self.calculate(out)?;
                    let ty = if part == "wide" { Ty::U(64) } else { Ty::U(wide) };
                    out = Rhs::Alu(AluOp::Add, ty, product, *c);
                }
                Some(out)
            }
            ("bfe", [a, Operand::Imm(from), Operand::Imm(count)]) if !t.signed && *count < 64 => {
                let low = self.alu(AluOp::Shr, Ty::U(wide), *a, Operand::Imm(*from & 0xff))?;
                let mask = Operand::Imm((1i128 << (*count & 0x3f)) - 1);
                Some(Rhs::Alu(AluOp::And, bit, low, mask))
            }
            _ => None,
        })
    }
}

/// The result of a connective, if one side decides it.
fn decided(op: AluOp, sides: &[Operand]) -> Option<Rhs> {
    let by = match op {
        AluOp::And => 0,
        AluOp::Or => 1,
        _ => return None,
    };
    let decides = |o: &Operand| matches!(o, Operand::Imm(v) if v & 1 == by);
    sides.iter().any(decides).then(|| known(op == AluOp::Or))
}

fn known(truth: bool) -> Rhs {
    Rhs::Val(Val::Known(u64::from(truth)))
}

fn as_value(operand: Operand) -> Rhs {
    match operand {
        Operand::Imm(v) => Rhs::Val(Val::Known(Int { bits: 64, signed: false }.pattern(v))),
        other => Rhs::Mov(Ty::B(64), other),
    }
}

fn comparison(name: &str, t: Int) -> Option<(CmpOp, Ty)> {
    let (unsigned, own) =
        (Ty::U(bits(t.bits)), if t.signed { Ty::S(bits(t.bits)) } else { Ty::U(bits(t.bits)) });
    Some(match name {
        "eq" => (CmpOp::Eq, unsigned),
        "ne" => (CmpOp::Ne, unsigned),
        "lt" => (CmpOp::Lt, own),
        "le" => (CmpOp::Le, own),
        "gt" => (CmpOp::Gt, own),
        "ge" => (CmpOp::Ge, own),
        "lo" => (CmpOp::Lt, unsigned),
        "ls" => (CmpOp::Le, unsigned),
        "hi" => (CmpOp::Gt, unsigned),
        "hs" => (CmpOp::Ge, unsigned),
        _ => return None,
    })
}

/// Evaluates moves and offsets of addresses.
fn moved(words: &[&str], values: &[Val]) -> Option<Val> {
    let add = |s, o: i64, k: u64| Val::Address(s, o.wrapping_add(k.cast_signed()));
    match (words[0], values) {
        ("mov" | "cvta", [v]) => Some(*v),
        ("cvt", [v @ Val::Address(..)]) => Some(*v),
        ("add", [Val::Address(s, o), Val::Known(k)] | [Val::Known(k), Val::Address(s, o)]) => {
            Some(add(*s, *o, *k))
        }
        ("sub", [Val::Address(s, o), Val::Known(k)]) => Some(add(*s, *o, k.wrapping_neg())),
        ("sub", [Val::Address(s, a), Val::Address(t, b)]) if s == t => {
            Some(Val::Known(a.wrapping_sub(*b).cast_unsigned()))
        }
        ("mad", [Val::Known(a), Val::Known(b), Val::Address(s, o)]) => {
            let t = words.last().and_then(|w| type_of(w)).and_then(Int::of)?;
            Some(add(*s, *o, alu::product(words.get(1)?, t, *a, *b)?))
        }
        _ => None,
    }
}
