//! Operations without memory: constants, shapes, pointers, arithmetic, views, tokens.

use super::{Read, Reader, because};
use crate::{
    Assumption, Convert, Elem, FloatOp, IntegerOp, Op, Overflow, Predicate, Reason, Rounding, Sign, Tile,
    Type, Value, extents,
};
use moire_program::text::scan::Parsed;

/// Words of this file.
pub(super) const WORDS: &[&str] = &[
    "constant",
    "iota",
    "reshape",
    "broadcast",
    "bitcast",
    "ptr_to_ptr",
    "offset",
    "addi",
    "subi",
    "muli",
    "andi",
    "ori",
    "xori",
    "maxi",
    "mini",
    "shli",
    "shri",
    "remi",
    "exti",
    "trunci",
    "addf",
    "subf",
    "mulf",
    "cmpi",
    "select",
    "assume",
    "make_tensor_view",
    "make_partition_view",
    "make_strided_view",
    "make_token",
    "join_tokens",
];

impl<'a> Reader<'a> {
    /// The operation `word`, whose word was read; nothing where it is not of this file.
    pub(super) fn arithmetic(&mut self, word: &str) -> Parsed<Option<Read>> {
        if let Some(to) = Convert::from_word(word) {
            let (value, ty) = self.converted()?;
            return Ok(Some((Op::Convert { to, value }, vec![ty])));
        }
        if let Some(op) = FloatOp::from_word(word) {
            return self.float(op).map(Some);
        }
        Ok(Some(match word {
            "constant" => self.constant()?,
            "iota" => {
                self.scan.expect(":")?;
                (Op::Iota, vec![Type::Tile(self.tile_type()?)])
            }
            "offset" => self.offset()?,
            "addi" | "subi" | "muli" | "andi" | "ori" | "xori" | "maxi" | "mini" | "shli" | "shri"
            | "remi" => self.integer(word)?,
            "exti" => {
                let value = self.value()?;
                let sign = self.sign()?;
                let ty = self.arrow(&[value])?;
                (Op::Extend { sign, value }, vec![ty])
            }
            "trunci" => {
                let value = self.value()?;
                let overflow = self.overflow()?;
                let ty = self.arrow(&[value])?;
                (Op::Truncate { overflow, value }, vec![ty])
            }
            "cmpi" => self.compare()?,
            "select" => self.select()?,
            "assume" => self.assume()?,
            "make_tensor_view" => self.tensor_view()?,
            "make_partition_view" | "make_strided_view" => self.make_view(word)?,
            "make_token" => {
                self.scan.expect(":")?;
                self.token_type()?;
                (Op::MakeToken, vec![Type::Token])
            }
            "join_tokens" => {
                let tokens = if self.scan.peek(":") { Vec::new() } else { self.values()? };
                let at = self.scan.at;
                self.scan.expect(":")?;
                self.token_type()?;
                self.agree(at, &tokens, &vec![Type::Token; tokens.len()])?;
                (Op::JoinTokens(tokens), vec![Type::Token])
            }
            _ => return Ok(None),
        }))
    }

    /// The word `token` as a type.
    pub(super) fn token_type(&mut self) -> Parsed<()> {
        let at = self.scan.at;
        match self.ty()? {
            Type::Token => Ok(()),
            other => {
                let message = format!("expected the type `token`, found `{other}`");
                Err(because(Reason::ValueType, self.scan.error_at(at, message, None)))
            }
        }
    }

    /// `%a : T -> U`
    fn converted(&mut self) -> Parsed<(Value, Type)> {
        let value = self.value()?;
        let ty = self.arrow(&[value])?;
        Ok((value, ty))
    }

    /// `: T, .. -> U` for these values.
    fn arrow(&mut self, values: &[Value]) -> Parsed<Type> {
        self.scan.expect(":")?;
        let at = self.scan.at;
        let stated = self.types()?;
        if stated.len() != values.len() {
            let message = format!("expected {} types, found {}", values.len(), stated.len());
            return Err(because(Reason::ValueType, self.scan.error_at(at, message, None)));
        }
        self.agree(at, values, &stated)?;
        self.scan.expect("->")?;
        self.ty()
    }

    /// `: T`, the type of these values and of the result.
    fn same(&mut self, values: &[Value]) -> Parsed<Type> {
        self.scan.expect(":")?;
        let at = self.scan.at;
        let ty = self.ty()?;
        self.agree(at, values, &vec![ty.clone(); values.len()])?;
        Ok(ty)
    }

    fn pair(&mut self) -> Parsed<[Value; 2]> {
        let a = self.value()?;
        self.scan.expect(",")?;
        Ok([a, self.value()?])
    }

    fn sign(&mut self) -> Parsed<Sign> {
        self.one_of("signedness", Sign::WORDS, Sign::from_word)
    }

    fn overflow(&mut self) -> Parsed<Overflow> {
        if !self.scan.keyword("overflow") {
            return Ok(Overflow::Wraps);
        }
        self.scan.expect("<")?;
        let overflow = self.one_of("promise about overflow", Overflow::WORDS, Overflow::from_word)?;
        self.scan.expect(">")?;
        Ok(overflow)
    }

    fn offset(&mut self) -> Parsed<Read> {
        let [pointer, offset] = self.pair()?;
        let ty = self.arrow(&[pointer, offset])?;
        Ok((Op::Offset { pointer, offset }, vec![ty]))
    }

    fn integer(&mut self, word: &str) -> Parsed<Read> {
        let [a, b] = self.pair()?;
        let op = match word {
            "addi" => IntegerOp::Add(self.overflow()?),
            "subi" => IntegerOp::Sub(self.overflow()?),
            "muli" => IntegerOp::Mul(self.overflow()?),
            "shli" => IntegerOp::Shl(self.overflow()?),
            "maxi" => IntegerOp::Max(self.sign()?),
            "mini" => IntegerOp::Min(self.sign()?),
            "shri" => IntegerOp::Shr(self.sign()?),
            "remi" => IntegerOp::Rem(self.sign()?),
            "andi" => IntegerOp::And,
            "ori" => IntegerOp::Or,
            _ => IntegerOp::Xor,
        };
        let ty = self.same(&[a, b])?;
        Ok((Op::Integer { op, a, b }, vec![ty]))
    }

    fn float(&mut self, op: FloatOp) -> Parsed<Read> {
        let [a, b] = self.pair()?;
        let mut rounding = Rounding::NearestEven;
        if self.scan.keyword("rounding") {
            self.scan.expect("<")?;
            rounding = self.one_of("rounding", Rounding::WORDS, Rounding::from_word)?;
            self.scan.expect(">")?;
        }
        let flush = self.scan.keyword("flush_to_zero");
        let ty = self.same(&[a, b])?;
        Ok((Op::Float { op, rounding, flush, a, b }, vec![ty]))
    }

    fn compare(&mut self) -> Parsed<Read> {
        let predicate = self.one_of("comparison", Predicate::WORDS, Predicate::from_word)?;
        let [a, b] = self.pair()?;
        self.scan.expect(",")?;
        let sign = self.sign()?;
        self.scan.expect(":")?;
        let at = self.scan.at;
        let ty = self.ty()?;
        self.agree(at, &[a, b], &[ty.clone(), ty])?;
        self.scan.expect("->")?;
        let ty = self.ty()?;
        Ok((Op::Compare { predicate, sign, a, b }, vec![ty]))
    }

    fn select(&mut self) -> Parsed<Read> {
        let condition = self.value()?;
        self.scan.expect(",")?;
        let [a, b] = self.pair()?;
        self.scan.expect(":")?;
        let at = self.scan.at;
        let stated = self.ty()?;
        self.scan.expect(",")?;
        let ty = self.ty()?;
        self.agree(at, &[condition, a, b], &[stated, ty.clone(), ty.clone()])?;
        Ok((Op::Select { condition, a, b }, vec![ty]))
    }

    fn assume(&mut self) -> Parsed<Read> {
        let that = if self.scan.keyword("div_by") {
            self.scan.expect("<")?;
            let divisor = self.digits()?;
            let mut every = None;
            if self.scan.take(",") {
                self.keyword("every")?;
                let length = self.signed()?;
                self.keyword("along")?;
                every = Some((length, self.signed()?));
            }
            Assumption::DivBy { divisor, every }
        } else if self.scan.keyword("bounded") {
            self.scan.expect("<")?;
            let low = self.bound()?;
            self.scan.expect(",")?;
            Assumption::Bounded { low, high: self.bound()? }
        } else {
            return Err(self.scan.expected("`div_by<..>` or `bounded<..>`"));
        };
        self.scan.expect(">")?;
        self.scan.expect(",")?;
        let value = self.value()?;
        let ty = self.same(&[value])?;
        Ok((Op::Assume { that, value }, vec![ty]))
    }

    fn bound(&mut self) -> Parsed<Option<i64>> {
        if self.scan.take("?") { Ok(None) } else { self.signed().map(Some) }
    }

    fn signed(&mut self) -> Parsed<i64> {
        let at = self.scan.at;
        let number = self.scan.number()?;
        i64::try_from(number)
            .map_err(|_| self.scan.error_at(at, "this number does not fit 64 bits with sign".into(), None))
    }

    /// A word that must stand here.
    pub(super) fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.scan.keyword(word) { Ok(()) } else { Err(self.scan.expected(&format!("`{word}`"))) }
    }

    /// `%base, shape = [%n, 4], strides = [4, 1] : tile<i64> -> tensor_view<?x4xf32, strides=[4,1]>`: the type of the
    /// dynamic extents is stated where there are any, that of the base where it is a multicast pointer.
    fn tensor_view(&mut self) -> Parsed<Read> {
        let base = self.value()?;
        self.scan.expect(",")?;
        self.keyword("shape")?;
        let (shape, known_shape) = self.mixed()?;
        self.scan.expect(",")?;
        self.keyword("strides")?;
        let (strides, known_strides) = self.mixed()?;
        self.scan.expect(":")?;
        let at = self.scan.at;
        let mut stated = vec![self.ty()?];
        while self.scan.take(",") {
            stated.push(self.ty()?);
        }
        let result = if self.scan.take("->") { self.ty()? } else { stated.pop().unwrap_or(Type::Token) };
        let Type::Tensor(view) = &result else {
            let message = format!("expected a type `tensor_view<..>`, found `{result}`");
            return Err(because(Reason::Type, self.scan.error_at(at, message, None)));
        };
        if view.shape != known_shape || view.strides != known_strides {
            let (shape, strides) = (extents(&view.shape), extents(&view.strides));
            let message =
                format!("the type has shape [{shape}] and strides [{strides}], the operation others");
            return Err(because(Reason::ViewShape, self.scan.error_at(at, message, None)));
        }
        let dynamic: Vec<Value> = shape.iter().chain(&strides).copied().collect();
        let pointer = Type::Tile(Tile::scalar(Elem::Pointer { to: view.elem, multicast: view.multicast }));
        let mut stated = stated.into_iter().peekable();
        let first = stated.next_if_eq(&pointer).unwrap_or(pointer);
        self.agree(at, &[base], &[first])?;
        if let Some(ty) = stated.next() {
            self.agree(at, &dynamic, &vec![ty; dynamic.len()])?;
        }
        Ok((Op::TensorView { base, shape, strides }, vec![result]))
    }

    /// `= [%n, 4]`: the values, and everything with a gap for each value.
    fn mixed(&mut self) -> Parsed<(Vec<Value>, Vec<Option<u64>>)> {
        self.scan.expect("=")?;
        self.scan.expect("[")?;
        let (mut values, mut all) = (Vec::new(), Vec::new());
        while !self.scan.take("]") {
            if !all.is_empty() {
                self.scan.expect(",")?;
            }
            if self.scan.peek("%") {
                values.push(self.value()?);
                all.push(None);
            } else {
                all.push(Some(self.digits()?));
            }
        }
        Ok((values, all))
    }

    fn make_view(&mut self, word: &str) -> Parsed<Read> {
        let tensor = self.value()?;
        self.scan.expect(":")?;
        let at = self.scan.at;
        let ty = self.ty()?;
        let fits =
            |ty: &Type| matches!(ty, Type::View(v) if v.steps.is_some() == (word == "make_strided_view"));
        if !fits(&ty) {
            let message = format!("`{word}` makes no `{ty}`");
            return Err(because(Reason::Type, self.scan.error_at(at, message, None)));
        }
        Ok((Op::MakeView { tensor }, vec![ty]))
    }
}
