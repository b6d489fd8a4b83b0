//! Instructions that the book alone has: evaluated if all operands are known, otherwise written as register arithmetic.
//!
//! The result of any other instruction (floats, exchanges between lanes) is unknown. It is refused if a branch, an
//! address or memory depends on it.

use super::run::{Run, Val, When};
use crate::Done;
use crate::ptx::{self, Sort, Sum, mnemonic, sort, sources};
use crate::specialise::known::alu::{self, Int};
use crate::specialise::known::flow::effects;
use crate::specialise::known::integer;
use crate::specialise::known::value::Lanes;
use moire_isa::kinds::{self, BinaryForm, Cmp, CvtForm, Half, Join, TernaryForm, UnaryForm, WindowSpace};
use moire_isa::operand::Pred;
use moire_isa::{Cvt, Instr, Mov, Selp, Setp, Ternary, Value};
use moire_program::ir::{AluOp, CmpOp, Op, Operand, Reg, Ty};

/// Whether nothing but types and parts of products qualifies an instruction: it is evaluated.
fn usual(sum: Sum<'_>) -> bool {
    match sum {
        Sum::Mov(_) | Sum::Bfi(_) | Sum::Shf(_) => true,
        Sum::Binary(i) => !(i.sat.is() || i.relu.is() || i.carry.is()),
        Sum::Unary(i) => !i.shiftamt.is(),
        Sum::Ternary(i) => !(i.sat.is() || i.relu.is() || i.carry.is() || i.oob.is()),
        Sum::Prmt(i) => i.mode.is_none(),
        Sum::Lop3(i) => i.join.is_none(),
        Sum::Cvt(i) => {
            i.form == CvtForm::Cvt && i.round.is_none() && !(i.ftz.is() || i.sat.is() || i.relu.is())
        }
        Sum::Cvta(i) => !matches!(i.space, WindowSpace::Local | WindowSpace::Param),
        Sum::Setp(_) | Sum::Selp(_) => true,
        Sum::Shfl(_) | Sum::Vote(_) | Sum::Match(_) | Sum::Redux(_) | Sum::Activemask => false,
        Sum::Product | Sum::Other => false,
    }
}

/// What parameters point to is aligned to so many bytes at least.
const ALIGNMENT: u64 = 16;

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
    pub(super) fn plain(&mut self, instr: &Instr, when: When) -> Done<()> {
        let refused = || Err(self.refuse(&format!("`{}`", mnemonic(instr))));
        let sum = match sort(instr) {
            Sort::Hint => return Ok(()),
            Sort::StoreMatrix(st) => return self.stmatrix(st, when),
            Sort::Load(ld) if ld.space == kinds::Space::Param => Err(ld),
            Sort::Computes(Sum::Product) => return refused(),
            Sort::Computes(sum) => Ok(sum),
            Sort::Load(_) | Sort::Uniform(_) | Sort::Store(_) | Sort::Update(_) | Sort::LoadMatrix(_) => {
                return refused();
            }
            Sort::StoreAway(_) | Sort::StoreRange(_) | Sort::Call(_) | Sort::Trap | Sort::Fence => {
                return refused();
            }
            Sort::Synchronises | Sort::Touches | Sort::Elsewhere => return refused(),
        };
        let Some(statement) = self.kernel.body.get(self.pc) else { return Ok(()) };
        let written = effects(statement).0;
        let mut results = match (when, sum) {
            (When::Unknown(pc), _) => vec![Rhs::Val(Val::Unknown(pc)); written.len()],
            (_, Err(ld)) => vec![Rhs::Val(self.parameter(ld))],
            (_, Ok(sum)) => self.results(instr, sum)?,
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

    fn operand(&mut self, of: &Value) -> Done<Operand> {
        let value = self.argument(of);
        self.place(value, ptx::reg(of).map_or(Operand::Imm(0), Operand::Reg))
    }

    /// The knowledge about a predicate.
    fn truth(&self, of: &Pred) -> Val {
        match self.argument(&of.value) {
            Val::Known(v) if of.negated => Val::Known(u64::from(v == 0)),
            other => other,
        }
    }

    fn predicate(&mut self, of: &Pred) -> Done<Operand> {
        match (ptx::reg(&of.value), self.truth(of)) {
            (Some(r), Val::Dynamic) if of.negated => {
                self.alu(AluOp::Xor, Ty::Pred, Operand::Reg(r), Operand::Imm(1))
            }
            (reg, value) => self.place(value, reg.map_or(Operand::Imm(0), Operand::Reg)),
        }
    }

    /// The first of some operands that is not known, and why.
    fn lacking(&self, values: &[Val]) -> Option<Rhs> {
        let lacks = values.iter().find(|v| matches!(v, Val::Unknown(_) | Val::Unset))?;
        Some(Rhs::Val(if let Val::Unknown(_) = lacks { *lacks } else { Val::Unknown(self.pc) }))
    }

    /// The results for the registers that are written. Missing ones are unknown.
    fn results(&mut self, instr: &Instr, sum: Sum<'_>) -> Done<Vec<Rhs>> {
        match sum {
            Sum::Mov(mov) if mov.dst.0.braced || mov.a.0.braced => return self.packed(mov),
            Sum::Setp(setp) => return self.compared(setp),
            Sum::Selp(selp) => return Ok(vec![self.selected(selp)?]),
            _ => {}
        }
        let bits = if let Sum::Mov(mov) = sum { mov.ty.bits() } else { 0 };
        let sources = sources(instr);
        let values: Vec<Val> = sources.iter().map(|value| self.datum(value, bits)).collect();
        if let Some(unknown) = self.lacking(&values) {
            return Ok(vec![unknown]);
        }
        let unknown = Rhs::Val(Val::Unknown(self.pc));
        if !usual(sum) || sources.is_empty() {
            return Ok(vec![unknown]);
        }
        if let Some(v) = moved(sum, &values).or_else(|| self.masked(sum, &values)) {
            return Ok(vec![match v {
                Val::Dynamic => {
                    Rhs::Mov(Ty::B(if bits == 128 { 128 } else { 64 }), self.operand(&sources[0])?)
                }
                v => Rhs::Val(v),
            }]);
        }
        let Some(t) = integer::operands(sum) else { return Ok(vec![unknown]) };
        let number = |v: &Val| if let Val::Known(n) = self.bits(*v) { Some(Lanes::Same(n)) } else { None };
        let known: Option<Vec<Lanes>> = values.iter().map(number).collect();
        if let Some(known) = known {
            let known: Vec<&Lanes> = known.iter().collect();
            let found = integer::integer(sum, &known);
            return Ok(vec![found.map_or(unknown, |l| Rhs::Val(Val::Known(l.get(0))))]);
        }
        let adds = matches!(sum, Sum::Binary(i) if i.form == BinaryForm::Add);
        if values.iter().any(|v| matches!(v, Val::Address(..))) && !adds {
            return Ok(vec![unknown]);
        }
        let operands = sources.iter().map(|a| self.operand(a)).collect::<Done<Vec<Operand>>>()?;
        Ok(vec![self.computed(sum, t, &operands)?.unwrap_or(unknown)])
    }

    /// The lowest bits of an address, or the address without them. Parameters point to aligned memory, as allocations of
    /// devices are.
    fn masked(&self, sum: Sum<'_>, values: &[Val]) -> Option<Val> {
        let (
            Sum::Binary(i),
            [Val::Address(s, at), Val::Known(mask)] | [Val::Known(mask), Val::Address(s, at)],
        ) = (sum, values)
        else {
            return None;
        };
        let t = Int::of(i.ty.first).filter(|_| i.form == BinaryForm::And)?;
        let low = self.names.number(*s, *at).unwrap_or(at.cast_unsigned()) % ALIGNMENT;
        let (kept, lost) = (t.cut(*mask), t.cut(!*mask));
        if kept < ALIGNMENT {
            return Some(Val::Known(low & kept));
        }
        (lost < ALIGNMENT).then(|| Val::Address(*s, at.wrapping_sub_unsigned(low & lost)))
    }

    /// Turns an address in shared memory into a number.
    fn bits(&self, value: Val) -> Val {
        match value {
            Val::Address(symbol, offset) => self.names.number(symbol, offset).map_or(value, Val::Known),
            other => other,
        }
    }

    fn selected(&mut self, selp: &Selp) -> Done<Rhs> {
        let p = self.truth(&selp.c);
        let (Val::Known(_) | Val::Dynamic) = p else {
            return Ok(Rhs::Val(if let Val::Unknown(_) = p { p } else { Val::Unknown(self.pc) }));
        };
        let width = selp.ty.bits();
        let bare = Ty::B(bits(u32::from(width)));
        if let Val::Known(p) = p {
            let one = if p == 0 { &selp.b } else { &selp.a };
            return Ok(match self.datum(one, width) {
                Val::Dynamic => Rhs::Mov(bare, self.operand(one)?),
                Val::Unset => Rhs::Val(Val::Unknown(self.pc)),
                v => Rhs::Val(v),
            });
        }
        let (a, b) = (self.datum(&selp.a, width), self.datum(&selp.b, width));
        if let Some(unknown) = self.lacking(&[a, b]) {
            return Ok(unknown);
        }
        let was = |of: &Value| ptx::reg(of).map_or(Operand::Imm(0), Operand::Reg);
        let (a, b) = (self.place(a, was(&selp.a))?, self.place(b, was(&selp.b))?);
        Ok(match self.predicate(&selp.c)? {
            Operand::Reg(p) => Rhs::Selp(bare, a, b, p),
            _ => Rhs::Val(Val::Unknown(self.pc)),
        })
    }

    /// `mov.b64 {a, b}, c` and `mov.b64 c, {a, b}`, and those of 128 bits.
    fn packed(&mut self, mov: &Mov) -> Done<Vec<Rhs>> {
        let unknown = vec![Rhs::Val(Val::Unknown(self.pc))];
        let (to, from) = (&mov.dst.0, &mov.a.0);
        let parts = if to.braced { &to.items } else { &from.items };
        let Ok(count) = u32::try_from(parts.len().max(1)) else { return Ok(unknown) };
        let total = u32::from(mov.ty.bits());
        let width = total / count;
        if total > 128 || !(8..=64).contains(&width) {
            return Ok(unknown);
        }
        let wide = if total > 64 { 128 } else { 64 };
        let shift = |i: usize| Operand::Imm(i128::from(width) * i as i128);
        for one in &from.items {
            if let v @ (Val::Unknown(_) | Val::Unset | Val::Address(..)) = self.argument(one) {
                let why = if let Val::Unknown(_) = v { v } else { Val::Unknown(self.pc) };
                return Ok(vec![Rhs::Val(why); parts.len()]);
            }
        }
        let mut out = Vec::new();
        if to.braced {
            let value = self.operand(&from.items[0])?;
            for (i, _) in parts.iter().enumerate().filter(|(_, p)| p.reg().is_some()) {
                let low = self.shifted(AluOp::Shr, wide, value, shift(i))?;
                out.push(self.folded(AluOp::And, wide, low, Operand::Imm((1i128 << width) - 1))?);
            }
            return Ok(out);
        }
        let mut all = Operand::Imm(0);
        for (i, part) in parts.iter().enumerate() {
            let value = self.operand(part)?;
            let low = self.folded(AluOp::And, wide, value, Operand::Imm((1i128 << width) - 1))?;
            let low = self.calculate(low)?;
            let high = self.shifted(AluOp::Shl, wide, low, shift(i))?;
            let both = self.folded(AluOp::Or, wide, all, high)?;
            all = self.calculate(both)?;
        }
        Ok(vec![if wide == 64 { as_value(all) } else { Rhs::Mov(Ty::B(wide), all) }])
    }

    fn shifted(&mut self, op: AluOp, wide: u8, a: Operand, by: Operand) -> Done<Operand> {
        let result = self.folded(op, wide, a, by)?;
        self.calculate(result)
    }

    /// Arithmetic on 64 or 128 bits; on 64 it is evaluated if both operands are numbers.
    fn folded(&mut self, op: AluOp, wide: u8, a: Operand, b: Operand) -> Done<Rhs> {
        let form = match op {
            AluOp::Shl => BinaryForm::Shl,
            AluOp::Shr => BinaryForm::Shr,
            AluOp::Or => BinaryForm::Or,
            _ => BinaryForm::And,
        };
        Ok(match (a, b) {
            (Operand::Imm(x), Operand::Imm(y)) if wide == 64 => {
                let t = Int { bits: 64, signed: false };
                alu::two(form, t, t.pattern(x), t.pattern(y))
                    .map_or(Rhs::Val(Val::Unknown(self.pc)), |v| Rhs::Val(Val::Known(v)))
            }
            (Operand::Imm(0), other) if op == AluOp::Or => Rhs::Mov(Ty::B(wide), other),
            _ => Rhs::Alu(op, if op == AluOp::Shr { Ty::U(wide) } else { Ty::B(wide) }, a, b),
        })
    }

    /// `setp.cmp{.bool}.type p{|q}, a, b{, c}`
    fn compared(&mut self, setp: &Setp) -> Done<Vec<Rhs>> {
        let unknown = vec![Rhs::Val(Val::Unknown(self.pc)); 2];
        let (Some(t), false) = (Int::of(setp.ty), setp.ftz.is()) else { return Ok(unknown) };
        let (a, b) = (self.argument(&setp.a), self.argument(&setp.b));
        let c = setp.c.as_ref().map(|c| self.truth(c));
        if let Some(why) = self.lacking(&[Some(a), Some(b), c].into_iter().flatten().collect::<Vec<_>>()) {
            return Ok(vec![why; 2]);
        }
        let cmp = setp.cmp;
        let first = match (a, b) {
            (Val::Known(a), Val::Known(b)) => alu::compare(cmp, t, a, b).map(known),
            (Val::Address(p, a), Val::Address(q, b)) if p == q => {
                let signed = Int { bits: 64, signed: true };
                alu::compare(cmp, signed, a.cast_unsigned(), b.cast_unsigned()).map(known)
            }
            // An address is never null.
            (Val::Address(..), Val::Known(0)) if matches!(cmp, Cmp::Eq | Cmp::Ne) => {
                Some(known(cmp == Cmp::Ne))
            }
            (Val::Address(..), _) | (_, Val::Address(..)) => None,
            _ => {
                let (a, b) = (self.operand(&setp.a)?, self.operand(&setp.b)?);
                comparison(cmp, t).map(|(op, ty)| Rhs::Setp(op, ty, a, b))
            }
        };
        let Some(first) = first else { return Ok(unknown) };
        let join = setp.join.map(|join| match join {
            Join::And => AluOp::And,
            Join::Or => AluOp::Or,
            Join::Xor => AluOp::Xor,
        });
        if setp.dst.second.is_none() && join.is_none() {
            return Ok(vec![first]);
        }
        let yes = self.calculate(first)?;
        let no = self.logic(AluOp::Xor, yes, Operand::Imm(1))?;
        let no = self.calculate(no)?;
        let mut out = vec![as_value(yes), as_value(no)];
        if let (Some(op), Some(c)) = (join, &setp.c) {
            let c = self.predicate(c)?;
            out = vec![self.logic(op, yes, c)?, self.logic(op, no, c)?];
        }
        if setp.dst.first.is_none() {
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
    fn computed(&mut self, sum: Sum<'_>, t: Int, args: &[Operand]) -> Done<Option<Rhs>> {
        let wide = bits(t.bits);
        let number = if t.signed { Ty::S(wide) } else { Ty::U(wide) };
        let bit = if t.bits == 1 { Ty::Pred } else { Ty::B(wide) };
        let bare = |op| matches!(op, AluOp::And | AluOp::Or | AluOp::Xor | AluOp::Shl);
        Ok(match (sum, args) {
            (Sum::Binary(i), [a, b]) => match (two(i.form), i.half) {
                (Some(op), _) => {
                    let decided = if t.bits == 1 { decided(op, args) } else { None };
                    decided.or(Some(Rhs::Alu(op, if bare(op) { bit } else { number }, *a, *b)))
                }
                (None, Some(half)) if i.form == BinaryForm::Mul => {
                    self.multiplied(half, t, (*a, *b), None)?
                }
                (None, _) => None,
            },
            (Sum::Unary(i), [a]) => match i.form {
                UnaryForm::Not => {
                    let mask = if t.bits == 1 { 1 } else { (1i128 << t.bits) - 1 };
                    Some(Rhs::Alu(AluOp::Xor, bit, *a, Operand::Imm(mask)))
                }
                UnaryForm::Neg => Some(Rhs::Alu(AluOp::Sub, number, Operand::Imm(0), *a)),
                _ => None,
            },
            (Sum::Cvt(i), [a]) => self.converted(i, t, *a)?,
            (Sum::Ternary(i), [a, b, c]) => self.ternary(i, t, [*a, *b, *c])?,
            _ => None,
        })
    }

    fn converted(&mut self, cvt: &Cvt, from: Int, a: Operand) -> Done<Option<Rhs>> {
        match Int::of(cvt.ty.at(0)) {
            Some(to) if to.bits >= 8 && from.bits >= 8 => {
                let value = self.widened(from, a)?;
                Ok(Some(Rhs::Mov(Ty::B(bits(to.bits)), value)))
            }
            _ => Ok(None),
        }
    }

    fn ternary(&mut self, i: &Ternary, t: Int, [a, b, c]: [Operand; 3]) -> Done<Option<Rhs>> {
        match (i.form, i.half, b, c) {
            (TernaryForm::Mad, Some(half), ..) => self.multiplied(half, t, (a, b), Some(c)),
            (TernaryForm::Bfe, _, Operand::Imm(from), Operand::Imm(count)) if !t.signed && count < 64 => {
                let wide = bits(t.bits);
                let low = self.alu(AluOp::Shr, Ty::U(wide), a, Operand::Imm(from & 0xff))?;
                let mask = Operand::Imm((1i128 << (count & 0x3f)) - 1);
                Ok(Some(Rhs::Alu(AluOp::And, Ty::B(wide), low, mask)))
            }
            _ => Ok(None),
        }
    }

    /// A product, or a product and a sum. The high half of 64 bits is not computed.
    fn multiplied(
        &mut self,
        half: Half,
        t: Int,
        (a, b): (Operand, Operand),
        c: Option<Operand>,
    ) -> Done<Option<Rhs>> {
        let wide = bits(t.bits);
        if half == Half::Lo && c.is_none() {
            return Ok(Some(Rhs::Alu(AluOp::Mul, Ty::U(wide), a, b)));
        }
        if t.bits > 32 && half != Half::Lo {
            return Ok(None);
        }
        let (a, b) = (self.widened(t, a)?, self.widened(t, b)?);
        let mut out = Rhs::Alu(AluOp::Mul, Ty::U(64), a, b);
        if half == Half::Hi {
            let all = self.calculate(out)?;
            let by = Operand::Imm(i128::from(t.bits));
            let shift = if t.signed { Ty::S(64) } else { Ty::U(64) };
            let high = self.alu(AluOp::Shr, shift, all, by)?;
            out = Rhs::Mov(Ty::B(wide), high);
        }
        if let Some(c) = c {
            let product = self.calculate(out)?;
            let ty = if half == Half::Wide { Ty::U(64) } else { Ty::U(wide) };
            out = Rhs::Alu(AluOp::Add, ty, product, c);
        }
        Ok(Some(out))
    }
}

/// The operation of litmus texts with two operands of one type.
fn two(form: BinaryForm) -> Option<AluOp> {
    Some(match form {
        BinaryForm::Add => AluOp::Add,
        BinaryForm::Sub => AluOp::Sub,
        BinaryForm::And => AluOp::And,
        BinaryForm::Or => AluOp::Or,
        BinaryForm::Xor => AluOp::Xor,
        BinaryForm::Shl => AluOp::Shl,
        BinaryForm::Shr => AluOp::Shr,
        BinaryForm::Min => AluOp::Min,
        BinaryForm::Max => AluOp::Max,
        BinaryForm::Div => AluOp::Div,
        BinaryForm::Rem => AluOp::Rem,
        BinaryForm::Mul | BinaryForm::Mul24 | BinaryForm::Addc | BinaryForm::Subc => return None,
        BinaryForm::Copysign | BinaryForm::Bmsk | BinaryForm::Szext => return None,
    })
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

fn comparison(cmp: Cmp, t: Int) -> Option<(CmpOp, Ty)> {
    let (unsigned, own) =
        (Ty::U(bits(t.bits)), if t.signed { Ty::S(bits(t.bits)) } else { Ty::U(bits(t.bits)) });
    Some(match cmp {
        Cmp::Eq => (CmpOp::Eq, unsigned),
        Cmp::Ne => (CmpOp::Ne, unsigned),
        Cmp::Lt => (CmpOp::Lt, own),
        Cmp::Le => (CmpOp::Le, own),
        Cmp::Gt => (CmpOp::Gt, own),
        Cmp::Ge => (CmpOp::Ge, own),
        Cmp::Lo => (CmpOp::Lt, unsigned),
        Cmp::Ls => (CmpOp::Le, unsigned),
        Cmp::Hi => (CmpOp::Gt, unsigned),
        Cmp::Hs => (CmpOp::Ge, unsigned),
        Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan => return None,
    })
}

/// Evaluates moves and offsets of addresses.
fn moved(sum: Sum<'_>, values: &[Val]) -> Option<Val> {
    let add = |s, o: i64, k: u64| Val::Address(s, o.wrapping_add(k.cast_signed()));
    match (sum, values) {
        (Sum::Mov(_) | Sum::Cvta(_), [v]) => Some(*v),
        (Sum::Cvt(_), [v @ Val::Address(..)]) => Some(*v),
        (Sum::Binary(i), values) => match (i.form, values) {
            (BinaryForm::Add, [Val::Address(s, o), Val::Known(k)] | [Val::Known(k), Val::Address(s, o)]) => {
                Some(add(*s, *o, *k))
            }
            (BinaryForm::Sub, [Val::Address(s, o), Val::Known(k)]) => Some(add(*s, *o, k.wrapping_neg())),
            (BinaryForm::Sub, [Val::Address(s, a), Val::Address(t, b)]) if s == t => {
                Some(Val::Known(a.wrapping_sub(*b).cast_unsigned()))
            }
            _ => None,
        },
        (Sum::Ternary(i), [Val::Known(a), Val::Known(b), Val::Address(s, o)])
            if i.form == TernaryForm::Mad =>
        {
            let t = Int::of(i.ty.first)?;
            Some(add(*s, *o, alu::product(i.half?, t, *a, *b)?))
        }
        _ => None,
    }
}
