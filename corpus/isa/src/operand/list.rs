//! Several values: vectors in braces, arguments of calls in parentheses.

use super::value::{bytes_behind, value};
use super::{Part, Piece, Shown, Value, Width};
use crate::text::{Cursor, Refusal};

/// Most values of one list: `tcgen05.st.x128` has 128, `wgmma` 128.
const LONGEST: usize = 512;

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
    /// How many; what fits; whether one stands in braces.
    type Spec = (usize, Width, bool);
    fn read(at: &mut Cursor<'_, '_>, (count, width, braced): Self::Spec) -> Result<List, Refusal> {
        at.next()?;
        let braced = braced || count != 1;
        if !braced {
            return Ok(List { items: vec![value(at, width)?], braced });
        }
        at.want("{")?;
        let mut items = vec![item(at, width)?];
        while at.eat(",") && items.len() < LONGEST {
            items.push(item(at, width)?);
        }
        if items.len() != count {
            return at.fail(format!("{} elements stand here, and the qualifiers say {count}", items.len()));
        }
        at.want("}")?;
        Ok(List { items, braced })
    }
    fn fits(&self, (count, width, braced): Self::Spec) -> bool {
        self.braced == (braced || count != 1)
            && self.items.len() == count
            && self.items.iter().all(|item| item.fits(width))
    }
}

/// An element in braces. The sink `_` is one whose register nobody needs.
fn item(at: &mut Cursor<'_, '_>, width: Width) -> Result<Value, Refusal> {
    let before = at.at;
    if at.token()? == "_" {
        return Ok(Value::Sink);
    }
    at.at = before;
    let found = value(at, width)?;
    let Value::Symbol(index, _) = found else { return Ok(found) };
    Ok(Value::Symbol(index, bytes_behind(at)?))
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
