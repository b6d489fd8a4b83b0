//! Rules of operations without memory accesses and blocks.

use super::{Check, Checked, Reason, broken};
use crate::words::{Convert, Overflow, Sign};
use crate::{Assumption, Constant, Elem, Instr, Scalar, Tile, Type, Value};

impl<'f> Check<'f> {
    fn result_tile(&self, instr: &Instr) -> Result<&'f Tile, super::Broken> {
        match self.single(instr)? {
            Type::Tile(tile) => Ok(tile),
            other => broken(Reason::Results, format!("the result is a tile, not `{other}`")),
        }
    }

    pub(super) fn constant(&self, instr: &Instr, constant: &Constant) -> Checked {
        let bits = &constant.bits;
        let tile = self.result_tile(instr)?;
        let Some(elem) = tile.elem.scalar() else {
            return broken(Reason::ElementType, "a constant is made of numbers");
        };
        if bits.len() != 1 && u64::try_from(bits.len()) != Ok(tile.elements()) {
            return broken(Reason::Shape, format!("{} elements do not fill `{tile}`", bits.len()));
        }
        if bits.iter().any(|b| *b & !elem.mask() != 0) {
            return broken(Reason::Constant, format!("an element does not fit `{elem}`"));
        }
        Ok(())
    }

    pub(super) fn iota(&self, instr: &Instr) -> Checked {
        let tile = self.result_tile(instr)?;
        let Some(elem) = tile.elem.scalar().filter(|e| e.integer()) else {
            return broken(Reason::ElementType, "`iota` gives integers");
        };
        let [length] = tile.shape.as_slice() else {
            return broken(Reason::Shape, format!("a tile of one dimension is needed, not `{tile}`"));
        };
        if elem.bits() < 32 && *length > 1 << elem.bits() {
            return broken(Reason::Shape, format!("`{elem}` cannot count to {length}"));
        }
        Ok(())
    }

    pub(super) fn convert(&self, instr: &Instr, to: &Convert, value: &Value) -> Checked {
        let (from, into) = (self.tile(*value)?, self.result_tile(instr)?);
        let wrong = |reason| broken(reason, format!("`{}` does not make `{into}` of `{from}`", to.word()));
        match to {
            Convert::Reshape | Convert::Broadcast if from.elem != into.elem => wrong(Reason::ElementType),
            Convert::Reshape if from.elements() != into.elements() => wrong(Reason::Shape),
            Convert::Reshape => Ok(()),
            Convert::Broadcast => {
                let fits = |(a, b): (&u32, &u32)| a == b || *a == 1;
                let all =
                    from.shape.len() == into.shape.len() && from.shape.iter().zip(&into.shape).all(fits);
                if all { Ok(()) } else { wrong(Reason::Shape) }
            }
            Convert::Bitcast | Convert::PtrToPtr if from.shape != into.shape => wrong(Reason::Shape),
            Convert::Bitcast => match (from.elem, into.elem) {
                (Elem::Scalar(a), Elem::Scalar(b)) if a.bits() == b.bits() => Ok(()),
                _ => wrong(Reason::ElementType),
            },
            Convert::PtrToPtr => match (from.elem, into.elem) {
                (Elem::Pointer { multicast: a, .. }, Elem::Pointer { multicast: b, .. }) if a == b => Ok(()),
                _ => wrong(Reason::Pointer),
            },
        }
    }

    pub(super) fn wider(&self, instr: &Instr, value: &Value) -> Checked {
        self.resized(instr, *value, |from, to| from < to)
    }

    pub(super) fn narrower(&self, instr: &Instr, value: &Value) -> Checked {
        self.resized(instr, *value, |from, to| from > to)
    }

    fn resized(&self, instr: &Instr, value: Value, fits: fn(u32, u32) -> bool) -> Checked {
        let (from, into) = (self.integers(value)?, self.result_tile(instr)?);
        match (from.elem.scalar(), into.elem.scalar()) {
            (Some(a), Some(b)) if b.integer() && fits(a.bits(), b.bits()) => {}
            _ => return broken(Reason::ElementType, format!("`{from}` does not become `{into}`")),
        }
        if from.shape != into.shape {
            return broken(Reason::Shape, format!("`{from}` and `{into}` have different shapes"));
        }
        Ok(())
    }

    pub(super) fn moved(&self, instr: &Instr, pointer: &Value, offset: &Value) -> Checked {
        let (pointers, offsets) = (self.tile(*pointer)?, self.integers(*offset)?);
        if !matches!(pointers.elem, Elem::Pointer { .. }) {
            return broken(Reason::Pointer, format!("`offset` moves pointers, not `{pointers}`"));
        }
        if pointers.shape != offsets.shape {
            return broken(Reason::Shape, format!("`{pointers}` and `{offsets}` have different shapes"));
        }
        self.gives(instr, self.ty(*pointer))
    }

    /// Checks that both operands and the result have one type.
    pub(super) fn pair(&self, instr: &Instr, a: &Value, b: &Value) -> Checked {
        self.alike_pair(*a, *b)?;
        self.gives(instr, self.ty(*a))
    }

    fn alike_pair(&self, a: Value, b: Value) -> Checked {
        if self.ty(a) == self.ty(b) {
            return Ok(());
        }
        broken(Reason::ValueType, format!("`{}` and `{}` differ", self.ty(a), self.ty(b)))
    }

    pub(super) fn whole(&self, _: &Instr, a: &Value) -> Checked {
        self.integers(*a).map(|_| ())
    }

    /// A negation is one of signed integers.
    pub(super) fn negates(&self, _: &Instr, overflow: &Overflow) -> Checked {
        if *overflow == Overflow::NoUnsigned {
            return broken(Reason::Word, "a negation cannot promise `no_unsigned_wrap`");
        }
        Ok(())
    }

    /// The result has the type of the operand.
    pub(super) fn keeps(&self, instr: &Instr, value: &Value) -> Checked {
        self.gives(instr, self.ty(*value))
    }

    pub(super) fn real(&self, _: &Instr, flush: &bool, a: &Value) -> Checked {
        let tile = self.tile(*a)?;
        let known = [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64];
        match tile.elem.scalar() {
            Some(Scalar::F32) => Ok(()),
            Some(s) if known.contains(&s) && !*flush => Ok(()),
            Some(s) if known.contains(&s) => broken(Reason::ElementType, "only `f32` is flushed to zero"),
            _ => broken(Reason::ElementType, format!("floats are needed, not `{tile}`")),
        }
    }

    pub(super) fn compared(&self, instr: &Instr, a: &Value, b: &Value) -> Checked {
        let tile = self.integers(*a)?;
        self.alike_pair(*a, *b)?;
        self.gives(instr, &Type::Tile(tile.of(Elem::Scalar(Scalar::I1))))
    }

    /// A condition for each element.
    pub(super) fn chooses(&self, _: &Instr, condition: &Value, a: &Value) -> Checked {
        let (chooses, tile) = (self.tile(*condition)?, self.tile(*a)?);
        if chooses.elem != Elem::Scalar(Scalar::I1) {
            return broken(Reason::ElementType, format!("a condition is made of `i1`, not `{chooses}`"));
        }
        if chooses.shape != tile.shape {
            return broken(Reason::Shape, format!("`{chooses}` and `{tile}` have different shapes"));
        }
        if tile.elem == Elem::Scalar(Scalar::F4E2M1FN) {
            return broken(Reason::ElementType, format!("`select` does not choose among `{tile}`"));
        }
        Ok(())
    }

    pub(super) fn assumed(&self, instr: &Instr, that: &Assumption, value: &Value) -> Checked {
        let value = *value;
        let ty = self.ty(value);
        let pointers = matches!(ty, Type::Tile(Tile { elem: Elem::Pointer { .. }, .. }));
        match that {
            Assumption::DivBy { divisor, every } => {
                if !pointers && !matches!(ty, Type::Tensor(_)) {
                    self.integers(value)?;
                }
                if !divisor.is_power_of_two() || *divisor > 1 << 62 {
                    return broken(
                        Reason::Constant,
                        format!("divisors are powers of two up to 2^62, not {divisor}"),
                    );
                }
                if let Some((every, along)) = every {
                    let extent = ty.tile().and_then(|t| t.shape.get(usize::try_from(*along).ok()?));
                    if extent.is_none_or(|e| *every < 0 || *every > i64::from(*e)) {
                        return broken(Reason::Shape, "runs lie inside a dimension of the tile");
                    }
                }
            }
            Assumption::Bounded { low, high } => {
                let bits = self.integers(value)?.elem.scalar().map_or(64, Scalar::bits);
                let fits = |bound: &i64| bound >> (bits - 1) == bound >> 63;
                if ![low, high].into_iter().flatten().all(fits) {
                    return broken(
                        Reason::Constant,
                        format!("a bound does not fit a signed {bits}-bit integer"),
                    );
                }
                if low.zip(*high).is_some_and(|(low, high)| low > high) {
                    return broken(Reason::Constant, "the interval is empty");
                }
            }
        }
        self.gives(instr, ty)
    }

    pub(super) fn coordinates(&self, instr: &Instr) -> Checked {
        let ty = Type::scalar(Scalar::I32);
        match instr.results.as_slice() {
            [x, y, z] if [x, y, z].into_iter().all(|v| *self.ty(*v) == ty) => Ok(()),
            _ => broken(Reason::Results, "three results of type `tile<i32>` are needed"),
        }
    }

    pub(super) fn tensor_view(
        &self,
        instr: &Instr,
        base: &Value,
        shape: &[Value],
        strides: &[Value],
    ) -> Checked {
        let Type::Tensor(view) = self.single(instr)? else {
            return broken(Reason::Results, "the result is a `tensor_view`");
        };
        let want = Tile::scalar(Elem::Pointer { to: view.elem, multicast: view.multicast });
        let pointer = self.tile(*base)?;
        if *pointer != want {
            return broken(Reason::Pointee, format!("the base is `{want}`, not `{pointer}`"));
        }
        let open = |list: &[Option<u64>]| list.iter().filter(|d| d.is_none()).count();
        if (open(&view.shape), open(&view.strides)) != (shape.len(), strides.len()) {
            return broken(Reason::ViewShape, "a value is needed for each open extent and stride");
        }
        let mut all = shape.iter().chain(strides);
        let first = all.next().map(|v| self.ty(*v));
        for value in shape.iter().chain(strides) {
            let tile = self.integers(*value)?;
            if !tile.shape.is_empty() || Some(self.ty(*value)) != first {
                return broken(Reason::ValueType, "extents and strides are integers of one type");
            }
        }
        Ok(())
    }

    pub(super) fn cut(&self, instr: &Instr, tensor: &Value) -> Checked {
        let Type::View(view) = self.single(instr)? else {
            return broken(Reason::Results, "the result is a partition or strided view");
        };
        match self.ty(*tensor) {
            Type::Tensor(of) if *of == view.tensor => Ok(()),
            other => broken(Reason::ValueType, format!("the view is of `{}`, not `{other}`", view.tensor)),
        }
    }

    pub(super) fn joins(&self, _: &Instr, tokens: &[Value]) -> Checked {
        if tokens.len() < 2 {
            return broken(Reason::Tokens, "`join_tokens` needs two or more tokens");
        }
        tokens.iter().try_for_each(|t| self.token(Some(*t)))
    }
}

impl Sign {
    /// Whether this is `Signed`.
    pub fn signed(self) -> bool {
        self == Sign::Signed
    }
}
