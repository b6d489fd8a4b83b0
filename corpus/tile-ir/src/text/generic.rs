//! The generic form, of loads and stores through views only: what NVIDIA's tests need it for is that it checks nothing.
//!
//! `"cuda_tile.load_view_tko"(%v, %i) <{memory_ordering_semantics = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 0>}>
//! : (T, U) -> (V, token)`

use super::{Read, Reader, because};
use crate::{Access, Hints, Op, Order, Place, Reason, Scope, Value};
use moire_program::text::ParseError;
use moire_program::text::scan::Parsed;

/// What stands in `<{..}>`.
#[derive(Default)]
struct Attributes {
    order: Option<Order>,
    scope: Option<Scope>,
    segments: Vec<usize>,
}

impl<'a> Reader<'a> {
    /// An operation in generic form.
    pub(super) fn generic(&mut self) -> Parsed<Read> {
        let at = self.scan.at;
        self.scan.expect("\"")?;
        let name = self.scan.word("an operation", ".")?;
        let store = match name {
            "cuda_tile.load_view_tko" => false,
            "cuda_tile.store_view_tko" => true,
            _ => {
                let message = format!("`{name}` is not read in generic form");
                return Err(because(Reason::Operation, self.scan.error_at(at, message, None)));
            }
        };
        self.scan.expect("\"")?;
        self.scan.expect("(")?;
        let operands = if self.scan.peek(")") { Vec::new() } else { self.values()? };
        self.scan.expect(")")?;
        let attributes = self.attributes()?;
        self.scan.expect(":")?;
        let here = self.scan.at;
        self.scan.expect("(")?;
        let stated = if self.scan.peek(")") { Vec::new() } else { self.types()? };
        self.scan.expect(")")?;
        if stated.len() != operands.len() {
            let message = format!("{} operands have {} types", operands.len(), stated.len());
            return Err(because(Reason::ValueType, self.scan.error_at(here, message, None)));
        }
        self.agree(here, &operands, &stated)?;
        self.scan.expect("->")?;
        let types = self.type_list()?;
        let op = assemble(store, &operands, &attributes);
        let op = op.ok_or_else(|| self.segments_wrong(at))?;
        Ok((op, types))
    }

    fn segments_wrong(&self, at: usize) -> ParseError {
        let message = "`operandSegmentSizes` does not fit the operation and its operands".to_owned();
        because(Reason::Syntax, self.scan.error_at(at, message, None))
    }

    fn attributes(&mut self) -> Parsed<Attributes> {
        self.scan.expect("<")?;
        self.scan.expect("{")?;
        let mut out = Attributes::default();
        let mut first = true;
        while !self.scan.take("}") {
            if !first {
                self.scan.expect(",")?;
            }
            first = false;
            let at = self.scan.at;
            let name = self.scan.word("an attribute", "")?;
            self.scan.expect("=")?;
            match name {
                "memory_ordering_semantics" => out.order = Order::from_code(self.code()?),
                "memory_scope" => out.scope = Scope::from_code(self.code()?),
                "operandSegmentSizes" => out.segments = self.segments()?,
                _ => {
                    let message = format!("the attribute `{name}` is not known here");
                    return Err(because(Reason::Syntax, self.scan.error_at(at, message, None)));
                }
            }
        }
        self.scan.expect(">")?;
        Ok(out)
    }

    /// `1 : i32`
    fn code(&mut self) -> Parsed<u8> {
        let number = self.digits()?;
        self.scan.expect(":")?;
        self.keyword("i32")?;
        Ok(u8::try_from(number).unwrap_or(u8::MAX))
    }

    /// `array<i32: 1, 2, 0>`
    fn segments(&mut self) -> Parsed<Vec<usize>> {
        self.keyword("array")?;
        self.scan.expect("<")?;
        self.keyword("i32")?;
        self.scan.expect(":")?;
        let mut out = vec![self.digits()?];
        while self.scan.take(",") {
            out.push(self.digits()?);
        }
        self.scan.expect(">")?;
        Ok(out.into_iter().map(|n| usize::try_from(n).unwrap_or(usize::MAX)).collect())
    }
}

/// The operation of these operands, cut up as the segments say.
fn assemble(store: bool, operands: &[Value], attributes: &Attributes) -> Option<Op> {
    let access = Access { order: attributes.order?, scope: attributes.scope };
    let mut rest = operands;
    let mut parts: Vec<&[Value]> = Vec::new();
    for size in &attributes.segments {
        let (part, after) = rest.split_at_checked(*size)?;
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        return None;
    }
    let place = |view: Value, index: &[Value]| Place {
        view,
        index: index.to_vec(),
        inbounds: vec![false; index.len()],
    };
    let (value, view, index, token) = match (store, parts.as_slice()) {
        (false, [[view], index, token]) => (None, *view, *index, *token),
        (true, [[value], [view], index, token]) => (Some(*value), *view, *index, *token),
        _ => return None,
    };
    let token = match token {
        [] => None,
        [one] => Some(*one),
        _ => return None,
    };
    let (place, hints) = (place(view, index), Hints::new());
    Some(match value {
        Some(value) => Op::StoreView { place, value, access, hints, token },
        None => Op::LoadView { place, access, hints, token },
    })
}
