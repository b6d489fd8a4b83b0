//! Rules of blocks: loop-carried values, terminators, results.

use super::{Check, Checked, Reason, broken};
use crate::{Block, Elem, Instr, Op, Scalar, Tile, Type, Value};

/// One construct that encloses a block.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    /// The function.
    Function,
    /// An arm of an `if` with these results.
    If(Vec<Value>),
    /// A `for` that carries these values.
    For(Vec<Value>),
    /// A `loop` with these carried values and these results.
    Loop(Vec<Value>, Vec<Value>),
}

impl Frame {
    /// The frame of the blocks of an operation.
    pub(super) fn of(instr: &Instr) -> Frame {
        match &instr.op {
            Op::For { inits, .. } => Frame::For(inits.clone()),
            Op::Loop { inits, .. } => Frame::Loop(inits.clone(), instr.results.clone()),
            Op::If { .. } | plain_op!() | token_op!() | access_op!() | end_op!() => {
                Frame::If(instr.results.clone())
            }
        }
    }
}

impl<'f> Check<'f> {
    /// An `if` has a condition, arms without parameters, and an `else` if it gives something.
    pub(super) fn branch(
        &self,
        instr: &Instr,
        condition: &Value,
        then: &Block,
        otherwise: &Option<Block>,
    ) -> Checked {
        if *self.ty(*condition) != Type::Tile(Tile::scalar(Elem::Scalar(Scalar::I1))) {
            let message = format!("a condition is `tile<i1>`, not `{}`", self.ty(*condition));
            return broken(Reason::ValueType, message);
        }
        if otherwise.is_none() && !instr.results.is_empty() {
            return broken(Reason::Results, "an `if` with results needs an `else`");
        }
        self.params(then, &[])?;
        otherwise.as_ref().map_or(Ok(()), |block| self.params(block, &[]))
    }

    /// The bounds of a `for` are integers of one type. Its results are what it carries.
    pub(super) fn counted(
        &self,
        instr: &Instr,
        bounds: &[Value; 3],
        inits: &[Value],
        body: &Block,
    ) -> Checked {
        let [low, high, step] = bounds;
        if !self.integers(*low)?.shape.is_empty() {
            return broken(Reason::Shape, "bounds are tiles without dimensions");
        }
        if self.ty(*low) != self.ty(*high) || self.ty(*low) != self.ty(*step) {
            return broken(Reason::ValueType, "bounds and step must have one type");
        }
        self.carries(inits)?;
        self.carries(&instr.results)?;
        let params: Vec<&Type> = std::iter::once(low).chain(inits).map(|v| self.ty(*v)).collect();
        self.params(body, &params)?;
        self.alike(&instr.results, inits, "the results of a `for` have the types of its carried values")
    }

    pub(super) fn repeated(&self, instr: &Instr, inits: &[Value], body: &Block) -> Checked {
        self.carries(inits)?;
        self.carries(&instr.results)?;
        let params: Vec<&Type> = inits.iter().map(|v| self.ty(*v)).collect();
        self.params(body, &params)
    }

    fn params(&self, block: &Block, want: &[&Type]) -> Checked {
        let fits = |(p, want): (&Value, &&Type)| self.function.ty(*p) == Some(want);
        if block.params.len() == want.len() && block.params.iter().zip(want).all(fits) {
            return Ok(());
        }
        broken(Reason::Block, "the parameters of a block have the wrong number or types")
    }

    /// Checks that a loop carries no views.
    fn carries(&self, values: &[Value]) -> Checked {
        match values.iter().map(|v| self.ty(*v)).find(|ty| matches!(ty, Type::Tensor(_) | Type::View(_))) {
            Some(ty) => broken(Reason::Type, format!("a loop cannot carry `{ty}`")),
            None => Ok(()),
        }
    }

    fn alike(&self, values: &[Value], want: &[Value], message: &str) -> Checked {
        if values.len() == want.len() && values.iter().zip(want).all(|(a, b)| self.ty(*a) == self.ty(*b)) {
            return Ok(());
        }
        broken(Reason::Results, message)
    }

    /// The loop around this block, if there is one.
    fn around(&self) -> Option<&Frame> {
        self.frames.iter().rev().find(|f| matches!(f, Frame::For(_) | Frame::Loop(..)))
    }

    pub(super) fn yields(&self, _: &Instr, values: &[Value]) -> Checked {
        match self.frames.last() {
            Some(Frame::If(results)) => {
                self.alike(values, results, "`yield` does not match the results of the `if`")
            }
            _ => broken(Reason::Block, "only arms of an `if` end with `yield`"),
        }
    }

    pub(super) fn continues(&self, _: &Instr, values: &[Value]) -> Checked {
        match self.around() {
            Some(Frame::For(carried) | Frame::Loop(carried, _)) => {
                self.alike(values, carried, "`continue` does not match the carried values of the loop")
            }
            _ => broken(Reason::Block, "no enclosing loop takes this terminator"),
        }
    }

    pub(super) fn breaks(&self, _: &Instr, values: &[Value]) -> Checked {
        match self.around() {
            Some(Frame::Loop(_, results)) => {
                self.alike(values, results, "`break` does not match the results of the loop")
            }
            _ => broken(Reason::Block, "no enclosing loop takes this terminator"),
        }
    }

    pub(super) fn returns(&self, _: &Instr, values: &[Value]) -> Checked {
        if self.frames.iter().any(|frame| matches!(frame, Frame::For(_))) {
            return broken(Reason::Block, "`return` cannot leave a `for`");
        }
        let types: Vec<&Type> = values.iter().map(|v| self.ty(*v)).collect();
        if types.iter().copied().eq(&self.function.results) {
            return Ok(());
        }
        broken(Reason::Results, "`return` does not match the results of the function")
    }
}
