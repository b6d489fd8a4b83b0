//! Values: registers, numbers, addresses of variables; and the operands that are one value.

use super::{Class, Known, Part, Piece, Reg, Shown, Special, Width};
use crate::kinds::Space;
use crate::text::{Cursor, Names, Refusal};

/// One value. Numbers of 64 bits without a sign are kept as their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A register.
    Reg(Reg),
    /// An integer.
    Imm(i64),
    /// The bits of a number in single precision, `0f3F800000`.
    Single(u32),
    /// The bits of a number in double precision, `0d3FF0000000000000` or `1.0`.
    Double(u64),
    /// The address of a variable or parameter, and bytes behind it.
    Symbol(u32, i64),
    /// A special register.
    Special(Special),
    /// `_` among the elements of a vector: this one is not wanted.
    Sink,
}

/// Tags of canonical bytes above all marks.
pub(super) const LABEL: u8 = 0x86;

impl Value {
    /// The number, if it is an integer.
    #[must_use]
    pub fn imm(&self) -> Option<i64> {
        if let Value::Imm(n) = self { Some(*n) } else { None }
    }

    /// The register, if it is one.
    #[must_use]
    pub fn reg(&self) -> Option<Reg> {
        if let Value::Reg(reg) = self { Some(*reg) } else { None }
    }

    /// Whether it is a register declared with that width.
    #[must_use]
    pub fn has_bits(&self, width: u16) -> bool {
        self.reg().is_some_and(|reg| reg.class.bits == width)
    }

    pub(crate) fn print(self, names: &dyn Names, out: &mut String) {
        match self {
            Value::Reg(reg) => out.push_str(&names.register(reg.index)),
            Value::Imm(n) => out.push_str(&n.to_string()),
            Value::Single(bits) => out.push_str(&format!("0f{bits:08X}")),
            Value::Double(bits) => out.push_str(&double(bits)),
            Value::Symbol(index, offset) => {
                out.push_str(&names.symbol(index));
                if offset != 0 {
                    out.push_str(&format!("+{offset}"));
                }
            }
            Value::Special(special) => out.push_str(&special.name()),
            Value::Sink => out.push('_'),
        }
    }

    pub(super) fn canon(self, out: &mut Vec<u8>) {
        let (tag, bits) = match self {
            Value::Imm(n) => (0x80, n.cast_unsigned()),
            Value::Reg(reg) => (0x81, u64::from(reg.index)),
            Value::Symbol(index, offset) => {
                out.push(0x82);
                out.extend(index.to_be_bytes());
                (0x80, offset.cast_unsigned())
            }
            Value::Single(bits) => (0x83, u64::from(bits)),
            Value::Double(bits) => (0x84, bits),
            Value::Special(special) => (0x85, u64::from(special.tag())),
            Value::Sink => (0x87, 0),
        };
        out.push(tag);
        out.extend(bits.to_be_bytes());
    }
}

/// Short decimal numbers as such, others as bits.
fn double(bits: u64) -> String {
    let text = format!("{:?}", f64::from_bits(bits));
    let plain = text.len() < 18 && !text.contains(['e', 'N', 'i']);
    if plain { text } else { format!("0d{bits:016X}") }
}

/// Reads the token of a number.
fn number(token: &str) -> Option<Value> {
    let (negative, digits) = token.strip_prefix('-').map_or((false, token), |d| (true, d));
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some(value) = real(digits) {
        return Some(if negative { negated(value) } else { value });
    }
    let digits = digits.trim_end_matches('U');
    let prefix = |p: [&str; 2]| p.iter().find_map(|p| digits.strip_prefix(p));
    let value = if let Some(hex) = prefix(["0x", "0X"]) {
        u64::from_str_radix(hex, 16)
    } else if let Some(binary) = prefix(["0b", "0B"]) {
        u64::from_str_radix(binary, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8)
    } else {
        digits.parse()
    };
    let value = value.ok()?.cast_signed();
    Some(Value::Imm(if negative { value.wrapping_neg() } else { value }))
}

/// `0f..`, `0d..`, and decimal numbers with a point or an exponent.
fn real(digits: &str) -> Option<Value> {
    let bits =
        |p: [&str; 2], n: usize| p.iter().find_map(|p| digits.strip_prefix(p)).filter(|d| d.len() == n);
    if let Some(single) = bits(["0f", "0F"], 8) {
        return u32::from_str_radix(single, 16).ok().map(Value::Single);
    }
    if let Some(double) = bits(["0d", "0D"], 16) {
        return u64::from_str_radix(double, 16).ok().map(Value::Double);
    }
    let decimal = digits.contains('.') || (digits.contains(['e', 'E']) && !digits.starts_with("0x"));
    decimal.then(|| digits.parse::<f64>().ok()).flatten().map(|n| Value::Double(n.to_bits()))
}

fn negated(value: Value) -> Value {
    match value {
        Value::Single(bits) => Value::Single(bits ^ (1 << 31)),
        Value::Double(bits) => Value::Double(bits ^ (1 << 63)),
        other => other,
    }
}

/// Reads a value without the comma before it.
pub(super) fn value(at: &mut Cursor<'_, '_>, width: Width) -> Result<Value, Refusal> {
    at.rest();
    let start = at.at;
    let token = at.token()?;
    let refuse = |message: String| Err(Refusal { at: start, message, hint: None });
    if let Some(value) = number(token).or_else(|| Special::of(token).map(Value::Special)) {
        return if width.takes(value) { Ok(value) } else { refuse(format!("`{token}` does not fit here")) };
    }
    match at.env.resolve(token) {
        Some(Known::Reg(reg)) if !width.fits(reg.class) => refuse(unfit(token, reg.class)),
        Some(Known::Reg(reg)) => Ok(Value::Reg(reg)),
        Some(Known::Symbol(index, home)) if symbol_fits(width, home) => Ok(Value::Symbol(index, 0)),
        Some(Known::Symbol(..)) => refuse(format!("`{token}` is a variable, and a register stands here")),
        Some(Known::Number(n)) => Ok(Value::Imm(n)),
        Some(Known::Vector(..)) => refuse(format!("`{token}` is a vector, and one register stands here")),
        None => refuse(format!("`{token}` is not declared")),
    }
}

/// Whether a variable stands where registers of that width do.
fn symbol_fits(width: Width, home: Option<Space>) -> bool {
    width.takes(Value::Symbol(0, 0)) && (width != Width::Map || home.is_none_or(|home| home == Space::Global))
}

fn unfit(token: &str, class: Class) -> String {
    let what = if class.float { " of floating point" } else { "" };
    format!("`{token}` has {} bits{what}, which does not fit", class.bits)
}

impl Shown for Value {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        see(Piece::Value(self));
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        change(self);
    }
}

impl Part for Value {
    type Spec = Width;
    fn read(at: &mut Cursor<'_, '_>, width: Width) -> Result<Value, Refusal> {
        at.next()?;
        value(at, width)
    }
    fn fits(&self, width: Width) -> bool {
        width.takes(*self)
    }
}

/// A register, no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Register(pub Value);

impl Shown for Register {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        see(Piece::Value(&self.0));
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        change(&mut self.0);
    }
}

impl Part for Register {
    type Spec = Width;
    fn read(at: &mut Cursor<'_, '_>, width: Width) -> Result<Self, Refusal> {
        at.next()?;
        match value(at, width)? {
            found @ Value::Reg(_) => Ok(Register(found)),
            _ => at.fail("expected a register".into()),
        }
    }
    fn fits(&self, width: Width) -> bool {
        self.0.fits(width)
    }
}

impl Register {
    /// The register. A renaming keeps it one.
    #[must_use]
    pub fn reg(&self) -> Option<Reg> {
        self.0.reg()
    }
}

/// A value, or a variable with bytes behind it: `sym+4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(pub Value);

impl Shown for Source {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        see(Piece::Value(&self.0));
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        change(&mut self.0);
    }
}

impl Part for Source {
    type Spec = Width;
    fn read(at: &mut Cursor<'_, '_>, width: Width) -> Result<Source, Refusal> {
        at.next()?;
        value_or_symbol(at, width).map(Source)
    }
    fn fits(&self, width: Width) -> bool {
        matches!(self.0, Value::Symbol(..)) || width.takes(self.0)
    }
}

/// Reads a value that fits, or a variable with bytes behind it.
pub(super) fn value_or_symbol(at: &mut Cursor<'_, '_>, width: Width) -> Result<Value, Refusal> {
    match symbol(at)? {
        Some((index, _)) => Ok(Value::Symbol(index, bytes_behind(at)?)),
        None => value(at, width),
    }
}

/// Steps over a variable, if one comes next: its index, and where it lives.
pub(super) fn symbol(at: &mut Cursor<'_, '_>) -> Result<Option<(u32, Option<Space>)>, Refusal> {
    let before = at.at;
    let name = at.token()?;
    if number(name).is_none()
        && Special::of(name).is_none()
        && let Some(Known::Symbol(index, home)) = at.env.resolve(name)
    {
        return Ok(Some((index, home)));
    }
    at.at = before;
    Ok(None)
}

/// `+4`, `+-4`, `+4+4`, or nothing. ptxas takes no `-4`.
pub(super) fn bytes_behind(at: &mut Cursor<'_, '_>) -> Result<i64, Refusal> {
    let mut bytes = 0i64;
    while at.eat("+") {
        match value(at, Width::Any)? {
            Value::Imm(n) => bytes = bytes.wrapping_add(n),
            _ => return at.fail("expected a number".into()),
        }
    }
    Ok(bytes)
}

/// A number that must stand as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number(pub i64);

impl Shown for Number {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        see(Piece::Value(&Value::Imm(self.0)));
    }
    fn values(&mut self, _: &mut dyn FnMut(&mut Value)) {}
}

impl Part for Number {
    type Spec = ();
    fn read(at: &mut Cursor<'_, '_>, (): ()) -> Result<Number, Refusal> {
        at.next()?;
        match value(at, Width::Any)? {
            Value::Imm(n) => Ok(Number(n)),
            _ => at.fail("expected a number".into()),
        }
    }
}

/// Whether it may be the name of a label or a function.
fn is_name(name: &str) -> bool {
    name != "_" && !name.starts_with(|c: char| c == '%' || c == '-' || c.is_ascii_digit())
}

/// A label, a function, a table or a prototype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(pub u32);

impl Shown for Label {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        see(Piece::Label(self.0));
    }
    fn values(&mut self, _: &mut dyn FnMut(&mut Value)) {}
}

impl Part for Label {
    type Spec = ();
    fn read(at: &mut Cursor<'_, '_>, (): ()) -> Result<Label, Refusal> {
        at.next()?;
        let name = at.token()?;
        if !is_name(name) {
            return at.fail(format!("`{name}` is no label"));
        }
        Ok(Label(at.env.label(name)))
    }
}

/// What is called: a function by name, or one whose address a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A function by name.
    Named(u32),
    /// A register that holds its address.
    Register(Value),
}

impl Shown for Callee {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        match self {
            Callee::Named(index) => see(Piece::Label(*index)),
            Callee::Register(value) => see(Piece::Value(value)),
        }
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        if let Callee::Register(value) = self {
            change(value);
        }
    }
}

impl Part for Callee {
    type Spec = ();
    fn read(at: &mut Cursor<'_, '_>, (): ()) -> Result<Callee, Refusal> {
        at.next()?;
        let name = at.token()?;
        match at.env.resolve(name) {
            Some(Known::Reg(reg)) if Width::Int(64).fits(reg.class) => Ok(Callee::Register(Value::Reg(reg))),
            Some(Known::Symbol(_, Some(_)) | Known::Reg(_)) => at.fail("expected a function".into()),
            _ if !is_name(name) => at.fail("expected a function".into()),
            _ => Ok(Callee::Named(at.env.label(name))),
        }
    }
}
