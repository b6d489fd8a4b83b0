//! Several values: vectors in braces, arguments of calls in parentheses.

use super::value::{value, value_or_symbol};
use super::{Known, Part, Piece, Reg, Shown, Value, Width, together};
use crate::text::{Cursor, Refusal};

/// Most values of one list: `tcgen05.st.x128` has 128, `wgmma` 128.
const LONGEST: usize = 512;

/// Whether braces stand around one element. Around several they always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Braces {
    /// They do not.
    Never,
    /// They may: `ld.global.b32 {%r1}, [%rd1]`, which Triton prints.
    May,
    /// They must.
    Must,
    /// They need not: one register may hold all elements, `st.async...v4.s32 [%r1], abcd, [%r2]` with
    /// `.reg .v4 .s32 abcd`, which CUTLASS prints.
    Whole,
}
pub(crate) use Braces::{May, Must, Never, Whole};

/// One operand, or several in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// The values.
    pub items: Vec<Value>,
    /// Whether braces stand around them.
    pub braced: bool,
}

impl Shown for List {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        let ends = if self.braced { ["{", "}"] } else { ["", ""] };
        see(Piece::Mark(ends[0]));
        for (i, item) in self.items.iter().enumerate() {
            if i > 0 {
                see(Piece::Mark(", "));
            }
            see(Piece::Value(item));
        }
        see(Piece::Mark(ends[1]));
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.items.iter_mut().for_each(change);
    }
}

impl Part for List {
    /// How many, 0 for any number; what fits; whether one stands in braces.
    type Spec = (usize, Width, Braces);
    fn read(at: &mut Cursor<'_, '_>, (count, width, braces): Self::Spec) -> Result<List, Refusal> {
        at.next()?;
        if count == 1 && (braces == Never || (matches!(braces, May | Whole) && !at.peek("{"))) {
            return Ok(List { items: vec![value(at, width)?], braced: false });
        }
        at.rest();
        let start = at.at;
        let items = match declared(at) {
            Some(items) => items,
            None if braces == Whole && !at.peek("{") => {
                return Ok(List { items: vec![value(at, Width::Any)?], braced: false });
            }
            None => elements(at)?,
        };
        if count != 0 && items.len() != count {
            let message = format!("{} elements stand here, and the qualifiers say {count}", items.len());
            return Err(Refusal { at: start, message, hint: None });
        }
        if !alike(&items, width) {
            return Err(Refusal { at: start, message: "the elements do not fit".into(), hint: None });
        }
        Ok(List { items, braced: true })
    }
    fn fits(&self, (count, width, braces): Self::Spec) -> bool {
        if braces == Whole && count > 1 && !self.braced {
            return true;
        }
        let one = if self.braced { braces != Never } else { braces != Must };
        (if count == 1 { one } else { self.braced })
            && (count == 0 || self.items.len() == count)
            && alike(&self.items, width)
    }
}

impl List {
    /// Whether an element is the sink `_`.
    #[must_use]
    pub fn has_sink(&self) -> bool {
        self.items.contains(&Value::Sink)
    }

    /// Whether an element is a predicate or a number with a point, which accesses to tensor memory do not take.
    #[must_use]
    pub fn has_odd(&self) -> bool {
        let odd = |item: &Value| match item {
            Value::Reg(reg) => reg.class.bits == 1,
            Value::Single(_) | Value::Double(_) => true,
            Value::Imm(_) | Value::Symbol(..) | Value::Special(_) | Value::Sink => false,
        };
        self.items.iter().any(odd)
    }

    /// Whether all elements are integers as numbers, which few vectors take.
    #[must_use]
    pub fn is_numbers(&self) -> bool {
        self.items.iter().all(|item| item.imm().is_some())
    }
}

/// Elements in braces.
fn elements(at: &mut Cursor<'_, '_>) -> Result<Vec<Value>, Refusal> {
    at.want("{")?;
    let mut items = vec![item(at, Width::Any)?];
    while at.eat(",") && items.len() < LONGEST {
        items.push(item(at, Width::Any)?);
    }
    at.want("}")?;
    Ok(items)
}

/// The elements of a vector that was declared as one, if its name comes next.
fn declared(at: &mut Cursor<'_, '_>) -> Option<Vec<Value>> {
    let before = at.at;
    if let Some(Known::Vector(first, count)) = at.token().ok().and_then(|name| at.env.resolve(name)) {
        let element = |i| Value::Reg(Reg { index: first.index + u32::from(i), ..first });
        return Some((0..count).map(element).collect());
    }
    at.at = before;
    None
}

/// An element in braces. The sink `_` is one whose register nobody needs.
fn item(at: &mut Cursor<'_, '_>, width: Width) -> Result<Value, Refusal> {
    let before = at.at;
    if at.token()? == "_" {
        return Ok(Value::Sink);
    }
    at.at = before;
    value_or_symbol(at, width)
}

/// Whether elements have one number of bits, and fit. `{%f1, %r2}` fits where integers do; predicates beside other registers
/// do, and never alone. ptxas looks at numbers only where no register stands beside them, but for registers of floating
/// point alone: `{%f1, 1}` and `{%f1, %p1}` are elements of different types.
fn alike(items: &[Value], width: Width) -> bool {
    let class = together(items);
    let bits = |reg: Reg| class.is_some_and(|class| reg.class.bits == 1 || class.bits == reg.class.bits);
    let fits = |item: &Value| match (item, class) {
        (Value::Sink, _) => true,
        (Value::Reg(reg), Some(class)) => bits(*reg) && !(class.float && reg.class.bits == 1),
        (Value::Reg(reg), None) => bits(*reg),
        (Value::Imm(_), Some(class)) if class.bits != 0 => !class.float && !matches!(width, Width::Half(_)),
        (Value::Single(_) | Value::Double(_), Some(class)) if class.bits != 0 => {
            !matches!(width, Width::Half(_))
        }
        // Registers of litmus texts have no type.
        (Value::Imm(_) | Value::Single(_) | Value::Double(_), Some(_)) => width.takes(*item),
        (Value::Symbol(..) | Value::Special(_), _) | (_, None) => width.takes(*item),
    };
    items.iter().all(fits) && class.is_none_or(|class| width.fits(class))
}

/// `(a, b)`, arguments or results of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args(pub Vec<Value>);

impl Shown for Args {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        see(Piece::Mark("("));
        for (i, item) in self.0.iter().enumerate() {
            if i > 0 {
                see(Piece::Mark(", "));
            }
            see(Piece::Value(item));
        }
        see(Piece::Mark(")"));
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.0.iter_mut().for_each(change);
    }
}

impl Part for Args {
    type Spec = ();
    fn read(at: &mut Cursor<'_, '_>, (): ()) -> Result<Args, Refusal> {
        at.next()?;
        at.want("(")?;
        let mut items = Vec::new();
        while !at.peek(")") && items.len() < LONGEST {
            items.push(item(at, Width::Any)?);
            if !at.eat(",") {
                break;
            }
        }
        at.want(")")?;
        Ok(Args(items))
    }
}

/// One value, a variable with bytes behind it, or any number of values in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed(pub List);

impl Packed {
    /// The value, if it is one.
    #[must_use]
    pub fn one(&self) -> Option<Value> {
        (!self.0.braced).then(|| self.0.items[0])
    }
}

impl Shown for Packed {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        self.0.pieces(see);
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.0.values(change);
    }
}

impl Part for Packed {
    /// What fits where it is one.
    type Spec = Width;
    fn read(at: &mut Cursor<'_, '_>, width: Width) -> Result<Packed, Refusal> {
        at.next()?;
        if let Some(items) = declared(at) {
            return Ok(Packed(List { items, braced: true }));
        }
        if !at.peek("{") {
            return Ok(Packed(List { items: vec![item(at, width)?], braced: false }));
        }
        Ok(Packed(List { items: elements(at)?, braced: true }))
    }
    fn fits(&self, width: Width) -> bool {
        self.0.braced || self.0.items[0].fits(width)
    }
}
