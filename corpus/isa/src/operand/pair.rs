//! Predicates, pairs `a|b`, and the size or predicate of a small copy.

use super::value::value;
use super::{Part, Piece, Register, Shown, Value, Width};
use crate::text::{Cursor, Refusal};

/// A predicate as a source, `%p` or `!%p`; a number stands for a constant one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pred {
    /// The register, or a number.
    pub value: Value,
    /// Whether `!` stands.
    pub negated: bool,
}

impl Shown for Pred {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        if self.negated {
            see(Piece::Mark("!"));
        }
        see(Piece::Value(&self.value));
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        change(&mut self.value);
    }
}

impl Part for Pred {
    type Spec = ();
    fn read(at: &mut Cursor<'_, '_>, (): ()) -> Result<Pred, Refusal> {
        at.next()?;
        let negated = at.eat("!");
        match value(at, Width::Bits(1))? {
            value @ (Value::Reg(_) | Value::Imm(_)) => Ok(Pred { value, negated }),
            _ => at.fail("expected a predicate".into()),
        }
    }
}

/// `a` or `a|b`, both written; either may be the sink `_` if there are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The first; `None` is the sink.
    pub first: Option<Register>,
    /// The second, if there is one; `Some(None)` is the sink.
    pub second: Option<Option<Register>>,
}

fn half(at: &mut Cursor<'_, '_>, width: Width) -> Result<Option<Register>, Refusal> {
    let before = at.at;
    if at.token()? == "_" {
        return Ok(None);
    }
    at.at = before;
    match value(at, width)? {
        reg @ Value::Reg(_) => Ok(Some(Register(reg))),
        _ => at.fail("expected a register".into()),
    }
}

fn half_pieces(half: Option<&Register>, see: &mut dyn FnMut(Piece<'_>)) {
    match half {
        Some(reg) => reg.pieces(see),
        None => see(Piece::Mark("_")),
    }
}

impl Shown for Answer {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        half_pieces(self.first.as_ref(), see);
        if let Some(second) = &self.second {
            see(Piece::Mark("|"));
            half_pieces(second.as_ref(), see);
        }
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.first.values(change);
        self.second.iter_mut().for_each(|second| second.values(change));
    }
}

impl Part for Answer {
    /// What the first fits; what the second fits, if one may stand.
    type Spec = (Width, Option<Width>);
    fn read(at: &mut Cursor<'_, '_>, (width, second): Self::Spec) -> Result<Answer, Refusal> {
        at.next()?;
        let first = half(at, width)?;
        if !at.eat("|") {
            return match first {
                Some(_) => Ok(Answer { first, second: None }),
                None => at.fail("the sink `_` stands in a pair".into()),
            };
        }
        match second {
            Some(width) => Ok(Answer { first, second: Some(half(at, width)?) }),
            None => at.fail("no second register stands here".into()),
        }
    }
    fn fits(&self, (width, second): Self::Spec) -> bool {
        let fits = |reg: &Option<Register>, width| reg.is_none_or(|reg| reg.fits(width));
        let second_fits = |reg: &Option<Register>| second.is_some_and(|width| fits(reg, width));
        fits(&self.first, width) && self.second.as_ref().is_none_or(second_fits)
    }
}

/// The third size of `cp.async`: bytes that are read, or a predicate that says "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SizeOrPred {
    /// Bytes that are read.
    Size(Value),
    /// Nothing is read if it holds.
    Ignore(Pred),
}

impl Shown for SizeOrPred {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        match self {
            SizeOrPred::Size(size) => size.pieces(see),
            SizeOrPred::Ignore(pred) => pred.pieces(see),
        }
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        match self {
            SizeOrPred::Size(size) => size.values(change),
            SizeOrPred::Ignore(pred) => pred.values(change),
        }
    }
}

impl Part for SizeOrPred {
    type Spec = ();
    fn read(at: &mut Cursor<'_, '_>, (): ()) -> Result<SizeOrPred, Refusal> {
        at.next()?;
        let negated = at.eat("!");
        let found = value(at, Width::Either(1, 32))?;
        if negated || found.has_bits(1) {
            return Ok(SizeOrPred::Ignore(Pred { value: found, negated }));
        }
        Ok(SizeOrPred::Size(found))
    }
}
