//! Operands that need not stand.

use super::{Part, Piece, Shown, Value};
use crate::text::{Cursor, Refusal};

/// An operand or the sink `_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrSink<P>(pub Option<P>);

impl<P: Shown> Shown for OrSink<P> {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        match &self.0 {
            Some(part) => part.pieces(see),
            None => see(Piece::Mark("_")),
        }
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.0.iter_mut().for_each(|part| part.values(change));
    }
}

impl<P: Part> Part for OrSink<P> {
    type Spec = P::Spec;
    fn read(at: &mut Cursor<'_, '_>, spec: P::Spec) -> Result<Self, Refusal> {
        let before = (at.at, at.count);
        at.next()?;
        if at.token().is_ok_and(|token| token == "_") && !at.peek("|") {
            return Ok(OrSink(None));
        }
        (at.at, at.count) = before;
        P::read(at, spec).map(|part| OrSink(Some(part)))
    }
    fn fits(&self, spec: P::Spec) -> bool {
        self.0.as_ref().is_none_or(|part| part.fits(spec))
    }
}

/// There where the qualifiers say so.
impl<P: Part> Part for Option<P> {
    type Spec = (bool, P::Spec);
    fn read(at: &mut Cursor<'_, '_>, (stands, spec): Self::Spec) -> Result<Self, Refusal> {
        if stands { P::read(at, spec).map(Some) } else { Ok(None) }
    }
    fn fits(&self, (stands, spec): Self::Spec) -> bool {
        self.as_ref().map_or(!stands, |part| stands && part.fits(spec))
    }
}

impl<P: Shown> Shown for Option<P> {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        self.iter().for_each(|part| part.pieces(see));
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.iter_mut().for_each(|part| part.values(change));
    }
}

/// There where the writer wants it: so many operands follow it in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maybe<P>(pub Option<P>);

impl<P: Shown> Shown for Maybe<P> {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        self.0.pieces(see);
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.0.values(change);
    }
}

impl<P: Part> Part for Maybe<P> {
    /// How many operands follow; `usize::MAX` where none may stand.
    type Spec = (usize, P::Spec);
    fn read(at: &mut Cursor<'_, '_>, (after, spec): Self::Spec) -> Result<Self, Refusal> {
        if at.left() > after { P::read(at, spec).map(|part| Maybe(Some(part))) } else { Ok(Maybe(None)) }
    }
    fn fits(&self, (after, spec): Self::Spec) -> bool {
        self.0.as_ref().is_none_or(|part| after != usize::MAX && part.fits(spec))
    }
}

/// There where the next operand begins with a mark, or, with `false`, where it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Early<P>(pub Option<P>);

impl<P: Shown> Shown for Early<P> {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        self.0.pieces(see);
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.0.values(change);
    }
}

impl<P: Part> Part for Early<P> {
    type Spec = (&'static str, bool, P::Spec);
    fn read(at: &mut Cursor<'_, '_>, (mark, stands, spec): Self::Spec) -> Result<Self, Refusal> {
        if at.begins(mark) == stands && !at.done() {
            P::read(at, spec).map(|part| Early(Some(part)))
        } else {
            Ok(Early(None))
        }
    }
    fn fits(&self, (_, _, spec): Self::Spec) -> bool {
        self.0.as_ref().is_none_or(|part| part.fits(spec))
    }
}
