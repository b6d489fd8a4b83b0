//! Numbers that grow with the number of rounds of a loop: `offset + turn * t + size * u`.
//!
//! `u` is how many periods of a loop a launch has (`every`), and `t` how many of them a warp has gone through. In the loop
//! `t >= 0` and `u >= t + 1`, and elsewhere `u >= 0` with no `t` (`Cone`). Arithmetic keeps a number in this form only where
//! the result has it for all `t` and `u` of the cone, and a comparison has an answer only where it is the same for all of
//! them. Anything else is unknown, and who needs it refuses the proof.
//!
//! The form is a number and not a pattern of bits. Up to which `u` each number fits its register, with its sign, is noted
//! ([`Reach`]): the run ahead stands for those `u`. An operand that is read as unsigned must not be negative in the cone.

use super::alu::{self, Int};
use super::integer::operands;
use super::value::{Base, Lanes, Val, lanes};
use crate::ptx::Sum;
use moire_isa::kinds::{BinaryForm, Cmp, CvtForm, Half, TernaryForm, UnaryForm};
use moire_isa::{Binary, Cvt, Ternary};
use std::cell::Cell;

/// For how many periods a quotient has to be a form.
const ENOUGH: i128 = 1 << 16;

/// The growth of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line {
    /// With each period that the warp has gone through.
    pub(crate) turn: i64,
    /// With each period that the launch has.
    pub(crate) size: i64,
}

/// For which `t` and `u` something has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cone {
    /// `u >= 0`, and no `t`.
    Outside,
    /// `t >= 0` and `u >= t + 1`.
    Inside,
}

/// The largest `u` for which all numbers so far fit their registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach(Cell<i128>);

impl Default for Reach {
    fn default() -> Self {
        Reach(Cell::new(i128::from(i64::MAX)))
    }
}

impl Reach {
    /// None if not even the least of the cone fits.
    pub(crate) fn most(&self) -> Option<u64> {
        u64::try_from(self.0.get()).ok()
    }

    /// Notes that a form is in a register of so many bits.
    pub(crate) fn note(&self, cone: Cone, line: Line, offset: i128, bits: u32) {
        self.cut(within(cone, line, offset, (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)));
    }

    fn cut(&self, most: i128) {
        self.0.set(self.0.get().min(most));
    }
}

/// The largest `u` up to which a form stays between two numbers: it is largest and least at the corners of the cone.
fn within(cone: Cone, Line { turn, size }: Line, offset: i128, (least, most): (i128, i128)) -> i128 {
    let (turn, size) = (i128::from(turn), i128::from(size));
    // The least `u`, and the form at two corners: a number, and how it changes with `u`.
    let (first, corners) = match cone {
        Cone::Outside => (0, [(offset, size); 2]),
        Cone::Inside => (1, [(offset, size), (offset - turn, turn + size)]),
    };
    let upto = |(at, step): (i128, i128)| match step {
        _ if !(least..=most).contains(&(at + step * first)) => first - 1,
        0 => i128::MAX,
        1.. => (most - at) / step,
        _ => (at - least) / -step,
    };
    upto(corners[0]).min(upto(corners[1]))
}

/// The least of a form in the cone and how it grows along the edges, or nothing if the cone has no such form.
fn edges(cone: Cone, Line { turn, size }: Line, offset: i128) -> Option<[i128; 3]> {
    let (turn, size) = (i128::from(turn), i128::from(size));
    match cone {
        Cone::Outside if turn != 0 => None,
        Cone::Outside => Some([offset, size, size]),
        Cone::Inside => Some([offset + size, turn + size, size]),
    }
}

/// How a form stands to zero everywhere in the cone: `Some(true)` for at least `least`, `Some(false)` for less.
fn at_least(cone: Cone, line: Line, offset: i128, least: i128) -> Option<bool> {
    let [first, rest @ ..] = edges(cone, line, offset)?;
    if first >= least && rest.iter().all(|e| *e >= 0) {
        Some(true)
    } else if first < least && rest.iter().all(|e| *e <= 0) {
        Some(false)
    } else {
        None
    }
}

impl Line {
    pub(crate) fn is_none(self) -> bool {
        self == Line::default()
    }

    fn map(self, f: impl Fn(i64) -> Option<i64>) -> Option<Line> {
        Some(Line { turn: f(self.turn)?, size: f(self.size)? })
    }

    fn zip(self, other: Line, f: impl Fn(i64, i64) -> Option<i64>) -> Option<Line> {
        Some(Line { turn: f(self.turn, other.turn)?, size: f(self.size, other.size)? })
    }

    fn times(self, by: i128) -> Option<Line> {
        let by = i64::try_from(by).ok()?;
        self.map(|c| c.checked_mul(by))
    }

    /// The growth in parts of `by`, if it has only whole ones.
    fn over(self, by: i128) -> Option<Line> {
        let by = i64::try_from(by).ok().filter(|by| *by > 0)?;
        self.map(|c| (c % by == 0).then_some(c / by))
    }

    /// The growth in whole parts of `by`, as near as they come.
    fn nearest(self, by: i128) -> Option<Line> {
        let by = i64::try_from(by).ok().filter(|by| (1..=i64::MAX / 4).contains(by))?;
        self.map(|c| Some(c.checked_add(by / 2)?.div_euclid(by)))
    }

    /// What [`Line::nearest`] leaves.
    fn left(self, by: i128) -> Option<Line> {
        self.zip(self.nearest(by)?.times(by)?, i64::checked_sub)
    }

    /// What it is behind the loop, where `t` is `u`.
    pub(crate) fn passed(self) -> Option<Line> {
        Some(Line { turn: 0, size: self.turn.checked_add(self.size)? })
    }
}

/// A number of each lane in this form.
#[derive(Clone)]
struct Form {
    line: Line,
    offset: Lanes,
}

/// Arithmetic on forms of some lanes in a cone.
pub(crate) struct Forms<'r> {
    pub(crate) cone: Cone,
    pub(crate) mask: u32,
    pub(crate) reach: Option<&'r Reach>,
}

/// Whether a value grows: a number, or an address.
pub(crate) fn grows(value: &Val) -> bool {
    matches!(value, Val::Based(Base::Line(_) | Base::Along(..) | Base::Behind(_), _))
}

/// Whether a value grows in some lanes.
pub(crate) fn grows_in_part(value: &Val) -> bool {
    match value {
        Val::Parted(_, both) => grows_in_part(&both.0) || grows_in_part(&both.1),
        other => grows(other),
    }
}

/// A number, or an address behind a parameter: the parameter, the growth, and the offset.
pub(crate) fn parts(value: &Val) -> Option<(Option<u16>, Line, &Lanes)> {
    match value {
        Val::Known(at) => Some((None, Line::default(), at)),
        Val::Based(Base::Line(line), at) => Some((None, *line, at)),
        Val::Based(Base::Param(n), at) => Some((Some(*n), Line::default(), at)),
        Val::Based(Base::Along(n, line), at) => Some((Some(*n), *line, at)),
        Val::Based(Base::Variable(_) | Base::Register(_) | Base::Behind(_), _) => None,
        Val::Parted(..) | Val::Unknown(_) => None,
    }
}

/// The value of such parts.
pub(crate) fn whole(param: Option<u16>, line: Line, at: Lanes) -> Val {
    match (param, line.is_none()) {
        (None, true) => Val::Known(at),
        (None, false) => Val::Based(Base::Line(line), at),
        (Some(n), true) => Val::Based(Base::Param(n), at),
        (Some(n), false) => Val::Based(Base::Along(n, line), at),
    }
}

/// The parameter behind which an address points.
pub(crate) fn memory(value: &Val) -> Option<u16> {
    match value {
        Val::Based(Base::Param(n) | Base::Along(n, _) | Base::Behind(n), _) => Some(*n),
        Val::Parted(_, both) => memory(&both.0).filter(|n| memory(&both.1) == Some(*n)),
        Val::Based(Base::Variable(_) | Base::Register(_) | Base::Line(_), _) => None,
        Val::Known(_) | Val::Unknown(_) => None,
    }
}

fn signed(bits: u32) -> Int {
    Int { bits, signed: true }
}

fn number(n: u64) -> i128 {
    i128::from(n.cast_signed())
}

impl Forms<'_> {
    /// The result of an instruction some of whose operands grow.
    pub(crate) fn computed(&self, sum: Sum<'_>, args: &[Val]) -> Option<Val> {
        let t = operands(sum)?;
        match (sum, args) {
            (Sum::Binary(i), [a, b]) => self.binary(i, t, a, b),
            (Sum::Unary(i), [a]) => self.unary(i.form, t, a),
            (Sum::Ternary(i), [a, b, c]) => self.ternary(i, t, [a, b, c]),
            (Sum::Cvt(i), [a]) => self.converted(i, t, a),
            _ => None,
        }
    }

    /// The number of a value as an operand of this type reads it.
    fn form(&self, value: &Val, t: Int) -> Option<Form> {
        match value {
            Val::Known(l) => {
                Some(Form { line: Line::default(), offset: self.each(|n| Some(t.number(l.get(n))))? })
            }
            Val::Based(Base::Line(line), l) => {
                let form = Form { line: *line, offset: l.clone() };
                (t.signed || self.all_at_least(&form, 0) == Some(true)).then_some(form)
            }
            Val::Based(..) | Val::Parted(..) | Val::Unknown(_) => None,
        }
    }

    /// Numbers of the lanes that count. Other lanes get that of the first one.
    fn each(&self, f: impl Fn(usize) -> Option<i128>) -> Option<Lanes> {
        let mut all = [0; 32];
        for lane in lanes(self.mask) {
            all[lane] = i64::try_from(f(lane)?).ok()?.cast_unsigned();
        }
        let first = all[self.mask.trailing_zeros() as usize % 32];
        Some(Lanes::from_fn(|l| if self.mask >> l & 1 == 1 { all[l] } else { first }))
    }

    fn zip(&self, a: &Form, b: &Form, f: impl Fn(i128, i128) -> Option<i128>) -> Option<Lanes> {
        self.each(|l| f(number(a.offset.get(l)), number(b.offset.get(l))))
    }

    fn all_at_least(&self, form: &Form, least: i128) -> Option<bool> {
        let mut found = None;
        for lane in lanes(self.mask) {
            let one = at_least(self.cone, form.line, number(form.offset.get(lane)), least)?;
            if *found.get_or_insert(one) != one {
                return None;
            }
        }
        found
    }

    /// A form as the value of a register of so many bits.
    fn value(&self, line: Line, offset: Lanes, bits: u32) -> Option<Val> {
        if line.is_none() {
            return Some(Val::Known(offset.map(|n| signed(bits).cut(n))));
        }
        let fits = |n: u64| number(n) == signed(bits).number(n);
        lanes(self.mask).all(|l| fits(offset.get(l))).then_some(())?;
        if let Some(reach) = self.reach {
            lanes(self.mask).for_each(|l| reach.note(self.cone, line, number(offset.get(l)), bits));
        }
        Some(Val::Based(Base::Line(line), offset))
    }

    /// The sum of an address behind a parameter and a number, or their difference.
    fn moved(&self, pointer: &Val, by: &Val, sign: i64) -> Option<Val> {
        let n = memory(pointer)?;
        let by = self.form(by, signed(64))?;
        if *pointer == Val::Based(Base::Behind(n), Lanes::Same(0)) {
            return Some(pointer.clone());
        }
        let (param, line, at) = parts(pointer)?;
        let line = line.zip(by.line.times(i128::from(sign))?, i64::checked_add)?;
        let offset = self.each(|l| Some(number(at.get(l)) + i128::from(sign) * number(by.offset.get(l))))?;
        if let Some(reach) = self.reach {
            lanes(self.mask).for_each(|l| reach.note(self.cone, line, number(offset.get(l)), 64));
        }
        Some(whole(param, line, offset))
    }

    /// The number of an operand that all lanes know.
    fn one(&self, value: &Val, t: Int) -> Option<i128> {
        value.known()?.one(self.mask).map(|v| t.number(v))
    }

    fn binary(&self, i: &Binary, t: Int, a: &Val, b: &Val) -> Option<Val> {
        if i.sat.is() || i.relu.is() || i.carry.is() {
            return None;
        }
        let s = signed(t.bits);
        let address = match i.form {
            BinaryForm::Add => self.moved(a, b, 1).or_else(|| self.moved(b, a, 1)),
            BinaryForm::Sub => self.moved(a, b, -1),
            _ => None,
        };
        if t.bits == 64 && address.is_some() {
            return address;
        }
        match i.form {
            BinaryForm::Add | BinaryForm::Sub => {
                let minus = i.form == BinaryForm::Sub;
                let (a, b) = (self.form(a, s)?, self.form(b, s)?);
                let line =
                    a.line.zip(b.line, |a, b| if minus { a.checked_sub(b) } else { a.checked_add(b) })?;
                let offset = self.zip(&a, &b, |a, b| Some(if minus { a - b } else { a + b }))?;
                self.value(line, offset, t.bits)
            }
            BinaryForm::Mul => self.product(i.half?, t, a, b),
            BinaryForm::Shl => {
                let by = self
                    .one(b, Int { bits: 32, signed: false })
                    .filter(|by| *by < i128::from(t.bits.min(62)))?;
                let a = self.form(a, s)?;
                self.scaled(&a, 1 << by, t.bits)
            }
            BinaryForm::Shr => {
                let by = self.one(b, Int { bits: 32, signed: false }).filter(|by| *by < 62)?;
                self.divided(&self.form(a, t)?, 1 << by, t)
            }
            BinaryForm::And | BinaryForm::Or | BinaryForm::Xor => self.bits(i.form, t, a, b),
            BinaryForm::Div | BinaryForm::Rem => {
                let (by, a) = (self.one(b, t).filter(|by| *by > 0)?, self.form(a, t)?);
                self.all_at_least(&a, 0)?.then_some(())?;
                if i.form == BinaryForm::Div {
                    return self.divided(&a, by, t);
                }
                a.line.over(by)?;
                let rest = self.each(|l| Some(number(a.offset.get(l)).rem_euclid(by)))?;
                self.value(Line::default(), rest, t.bits)
            }
            BinaryForm::Min | BinaryForm::Max => {
                let less = self.compared(Cmp::Lt, t, a, b)?;
                let less = less.truth(self.mask);
                let first = if i.form == BinaryForm::Min { self.mask } else { 0 };
                match less {
                    0 => Some(if first == 0 { a } else { b }.clone()),
                    all if all == self.mask => Some(if first == 0 { b } else { a }.clone()),
                    _ => None,
                }
            }
            BinaryForm::Mul24 | BinaryForm::Addc | BinaryForm::Subc => None,
            BinaryForm::Copysign | BinaryForm::Bmsk | BinaryForm::Szext => None,
        }
    }

    /// A product with a number that all lanes know.
    fn product(&self, half: Half, t: Int, a: &Val, b: &Val) -> Option<Val> {
        let (by, other) = match (a, b) {
            (Val::Known(_), other) => (a, other),
            (other, _) => (b, other),
        };
        let wide = (2 * t.bits).min(64);
        let (form, by) = match half {
            Half::Lo => (self.form(other, signed(t.bits))?, self.one(by, signed(t.bits))?),
            Half::Wide | Half::Hi => (self.form(other, t)?, self.one(by, t)?),
        };
        match half {
            Half::Lo => self.scaled(&form, by, t.bits),
            Half::Wide => self.scaled(&form, by, wide),
            Half::Hi if t.bits == 32 => {
                let whole = self.scaled(&form, by, wide)?;
                self.divided(&self.form(&whole, signed(wide))?, 1 << 32, signed(wide))
            }
            Half::Hi => None,
        }
    }

    fn scaled(&self, a: &Form, by: i128, bits: u32) -> Option<Val> {
        let offset = self.each(|l| number(a.offset.get(l)).checked_mul(by))?;
        self.value(a.line.times(by)?, offset, bits)
    }

    /// Rounded down. What is left of the growth may add up, as it does where a compiler multiplies by the inverse of a number,
    /// while it does not reach the divisor. A number that is less than the divisor everywhere in the cone gives 0.
    fn divided(&self, a: &Form, by: i128, t: Int) -> Option<Val> {
        // The sign: no number that fits its register reaches half of its range.
        if by >= 1 << (t.bits - 1) && self.all_at_least(a, 0) == Some(true) {
            return self.each(|_| Some(0)).and_then(|zero| self.value(Line::default(), zero, t.bits));
        }
        let (line, left) = (a.line.nearest(by)?, a.line.left(by)?);
        for lane in lanes(self.mask).filter(|_| !left.is_none()) {
            let most = within(self.cone, left, number(a.offset.get(lane)).rem_euclid(by), (0, by - 1));
            self.reach.filter(|_| most >= ENOUGH)?.cut(most);
        }
        let offset = self.each(|l| Some(number(a.offset.get(l)).div_euclid(by)))?;
        self.value(line, offset, t.bits)
    }

    /// `and`, `or` and `xor` with bits that no growth reaches, or `and` with all but such bits.
    fn bits(&self, form: BinaryForm, t: Int, a: &Val, b: &Val) -> Option<Val> {
        let (other, mask) = match (a, b) {
            (other, Val::Known(mask)) | (Val::Known(mask), other) => {
                (self.form(other, signed(t.bits))?, mask)
            }
            _ => return None,
        };
        let mask = self.each(|l| Some(signed(t.bits).number(mask.get(l))))?;
        let low: Vec<i128> = lanes(self.mask).map(|l| number(mask.get(l))).collect();
        let reach = |m: i128| {
            m.checked_add(1).filter(|_| m >= 0).map(|m| m.cast_unsigned().next_power_of_two().cast_signed())
        };
        let and = form == BinaryForm::And;
        let offset = self.each(|l| {
            let (a, m) = (number(other.offset.get(l)), number(mask.get(l)));
            Some(match form {
                BinaryForm::And => a & m,
                BinaryForm::Or => a | m,
                _ => a ^ m,
            })
        })?;
        if let Some(most) = low
            .iter()
            .copied()
            .map(reach)
            .collect::<Option<Vec<i128>>>()
            .and_then(|all| all.into_iter().max())
        {
            other.line.over(most)?;
            let line = if and { Line::default() } else { other.line };
            return self.value(line, offset, t.bits);
        }
        // All but the low bits.
        let one = self.mask.trailing_zeros() as usize % 32;
        let keeps = number(mask.get(one));
        let whole = and && low.iter().all(|m| *m == keeps) && keeps < 0 && (-keeps).count_ones() == 1;
        other.line.over(-keeps).filter(|_| whole).and_then(|_| self.value(other.line, offset, t.bits))
    }

    fn unary(&self, form: UnaryForm, t: Int, a: &Val) -> Option<Val> {
        let a = self.form(a, signed(t.bits))?;
        match form {
            UnaryForm::Neg => self.scaled(&a, -1, t.bits),
            UnaryForm::Abs if self.all_at_least(&a, 0)? => self.value(a.line, a.offset, t.bits),
            UnaryForm::Not => {
                let offset = self.each(|l| Some(-1 - number(a.offset.get(l))))?;
                self.value(a.line.times(-1)?, offset, t.bits)
            }
            _ => None,
        }
    }

    fn ternary(&self, i: &Ternary, t: Int, [a, b, c]: [&Val; 3]) -> Option<Val> {
        match (i.form, i.half) {
            (TernaryForm::Mad, Some(half)) if !i.sat.is() && !i.relu.is() && !i.carry.is() => {
                let bits = if half == Half::Wide { (2 * t.bits).min(64) } else { t.bits };
                let product = if grows(a) || grows(b) {
                    self.product(half, t, a, b)?
                } else {
                    let (a, b) = (a.known()?, b.known()?);
                    alu::product(half, t, 0, 0)?;
                    Val::Known(a.zip(b, |a, b| alu::product(half, t, a, b).unwrap_or(0)))
                };
                if let Some(address) = self.moved(c, &product, 1).filter(|_| bits == 64) {
                    return Some(address);
                }
                let (p, c) = (self.form(&product, signed(bits))?, self.form(c, signed(bits))?);
                let line = p.line.zip(c.line, i64::checked_add)?;
                self.value(line, self.zip(&p, &c, |a, b| Some(a + b))?, bits)
            }
            (TernaryForm::Bfe, _) => {
                let byte = Int { bits: 8, signed: false };
                let (from, count) = (self.one(b, byte)?, self.one(c, byte)?);
                let a = self.form(a, signed(t.bits))?;
                (from + count < 62).then(|| a.line.over(1 << (from + count)))??;
                let (from, count) = (u64::try_from(from).ok()?, u64::try_from(count).ok()?);
                Some(Val::Known(a.offset.map(|n| t.cut(alu::extract(t, n, from, count)))))
            }
            _ => None,
        }
    }

    /// A conversion keeps the number.
    fn converted(&self, i: &Cvt, from: Int, a: &Val) -> Option<Val> {
        let to = Int::of(i.ty.at(0))?;
        if i.form != CvtForm::Cvt || i.sat.is() || i.relu.is() || from.bits < 32 || to.bits < 32 {
            return None;
        }
        if memory(a).is_some() {
            return (from.bits == 64 && to.bits == 64).then(|| a.clone());
        }
        let from = if to.bits > from.bits { from } else { signed(from.bits) };
        let a = self.form(a, from)?;
        self.value(a.line, a.offset, to.bits)
    }

    /// Which lanes answer a comparison with yes, if each gives the same answer everywhere in the cone.
    pub(crate) fn compared(&self, cmp: Cmp, t: Int, a: &Val, b: &Val) -> Option<Lanes> {
        let t = match cmp {
            Cmp::Eq | Cmp::Ne => signed(t.bits),
            Cmp::Lo | Cmp::Ls | Cmp::Hi | Cmp::Hs => Int { signed: false, ..t },
            _ => t,
        };
        let (a, b) = (self.form(a, t)?, self.form(b, t)?);
        let line = a.line.zip(b.line, i64::checked_sub)?;
        let offset = self.zip(&a, &b, |a, b| Some(a - b))?;
        self.each(|l| {
            let least = |least| at_least(self.cone, line, number(offset.get(l)), least);
            let equal = || match (least(0), least(1)) {
                (Some(true), Some(false)) => Some(true),
                (Some(false), _) | (_, Some(true)) => Some(false),
                _ => None,
            };
            let yes = match cmp {
                Cmp::Eq => equal()?,
                Cmp::Ne => !equal()?,
                Cmp::Lt | Cmp::Lo => !least(0)?,
                Cmp::Le | Cmp::Ls => !least(1)?,
                Cmp::Gt | Cmp::Hi => least(1)?,
                Cmp::Ge | Cmp::Hs => least(0)?,
                Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan => {
                    return None;
                }
            };
            Some(i128::from(yes))
        })
    }

    /// Numbers of `width` bits in one register.
    pub(crate) fn packed(&self, parts: &[Val], width: u32) -> Option<Val> {
        let part = Int { bits: width, signed: false };
        let (mut line, mut offset) = (Line::default(), self.each(|_| Some(0))?);
        for (value, n) in parts.iter().zip(0u32..) {
            let scale = 1i128.checked_shl(n * width).filter(|_| n * width < 63)?;
            let form = self.form(value, part)?;
            line = line.zip(form.line.times(scale)?, i64::checked_add)?;
            offset = self.each(|l| {
                number(form.offset.get(l)).checked_mul(scale)?.checked_add(number(offset.get(l)))
            })?;
        }
        self.value(line, offset, 64)
    }

    /// Part `n` of `count` numbers in one register.
    pub(crate) fn unpacked(&self, whole: &Val, width: u32, n: u32, count: u32) -> Option<Val> {
        let form = self.form(whole, signed(64))?;
        let scale = 1i128.checked_shl(n * width).filter(|_| n * width < 63)?;
        let line = form.line.over(scale)?;
        let offset = self.each(|l| Some(number(form.offset.get(l)).div_euclid(scale)))?;
        if n + 1 == count {
            return self.value(line, offset, width);
        }
        line.over(1i128.checked_shl(width)?)?;
        Some(Val::Known(offset.map(|n| signed(width).cut(n))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of a form in a cone for the first sizes, and for sizes about the last one for which it is noted.
    fn sizes(cone: Cone, reach: &Reach) -> Vec<(i128, i128)> {
        let most = reach.most().map_or(0, i128::from).min(1 << 40);
        let first = i128::from(cone == Cone::Inside);
        let all = (first..200).chain((most - 3).max(200)..=most);
        let turns = |u: i128| match cone {
            Cone::Outside => vec![0],
            Cone::Inside => vec![0, 1.min(u - 1), u / 2, u - 1],
        };
        all.filter(|u| *u <= most).flat_map(|u| turns(u).into_iter().map(move |t| (t, u))).collect()
    }

    #[test]
    fn quotients_are_those_of_each_number() {
        let bits = Int { bits: 32, signed: false };
        for (by, inverse, shift) in [(3, 0xaaaa_aaabi64, 33), (5, 0xcccc_cccd, 34), (10, 0xcccc_cccd, 35)] {
            for (cone, turn, offset) in
                [(Cone::Inside, by, 0), (Cone::Inside, 4 * by, 7), (Cone::Outside, 0, 2)]
            {
                let reach = Reach::default();
                let forms = Forms { cone, mask: 1, reach: Some(&reach) };
                let line = Line { turn, size: 2 * by };
                let grown = Val::Based(Base::Line(line), Lanes::Same(offset));
                let inverse = Val::same(inverse.cast_unsigned());
                let product = forms.product(Half::Wide, bits, &grown, &inverse).expect("a form");
                let halves = forms.product(Half::Hi, bits, &grown, &inverse).expect("a form");
                let quotient = |whole: &Val, bits: u32, shift: u32| {
                    let t = Int { bits, signed: false };
                    let form = forms.form(whole, t).expect("a number");
                    forms.divided(&form, 1 << shift, t).expect("a quotient")
                };
                let found = quotient(&product, 64, shift);
                assert_eq!(quotient(&halves, 32, shift - 32), found);
                let Val::Based(Base::Line(found), at) = found else { panic!("{found:?}") };
                assert!(reach.most().is_some_and(|most| most > 1 << 20), "{reach:?}");
                for (t, u) in sizes(cone, &reach) {
                    let of = |l: Line, at: u64| i128::from(l.turn) * t + i128::from(l.size) * u + number(at);
                    assert_eq!(of(found, at.get(0)), of(line, offset) / i128::from(by), "{by} {t} {u}");
                }
            }
        }
    }

    #[test]
    fn a_quotient_that_grows_by_parts_is_none() {
        let reach = Reach::default();
        let forms = Forms { cone: Cone::Inside, mask: 1, reach: Some(&reach) };
        let grown = Val::Based(Base::Line(Line { turn: 1, size: 0 }), Lanes::Same(0));
        let form = forms.form(&grown, signed(32)).expect("a number");
        assert!(forms.divided(&form, 4, signed(32)).is_none());
    }

    #[test]
    fn the_reach_is_the_last_size_that_fits() {
        let bits = 8;
        let fits = |n: i128| (-128..128).contains(&n);
        for (cone, turn, size, offset) in [
            (Cone::Outside, 0, 3, 5),
            (Cone::Outside, 0, -3, 5),
            (Cone::Inside, 2, 0, -128),
            (Cone::Inside, -2, 3, 1),
            (Cone::Inside, -5, 4, 1),
            (Cone::Inside, 4, -3, 127),
        ] {
            let reach = Reach::default();
            reach.note(cone, Line { turn, size }, offset, bits);
            let most = i128::from(reach.most().expect("the least fits"));
            let all = |u: i128| {
                let turns = if cone == Cone::Inside { 0..u } else { 0..1 };
                turns.into_iter().all(|t| fits(offset + i128::from(turn) * t + i128::from(size) * u))
            };
            assert!((0..=most).all(all) && !all(most + 1), "{turn} {size} {offset}: {most}");
        }
    }
}
