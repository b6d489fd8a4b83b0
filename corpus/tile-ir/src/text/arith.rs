//! Operations without memory: constants, shapes, pointers, arithmetic, views, tokens.

use super::literal::constant;
use super::reader::{Read, Reader, because};
use crate::{
    Assumption, Convert, Elem, FloatOp, IntegerOp, Op, Overflow, Predicate, Reason, Rounding, Sign, Tile,
    Type, Value, extents,
};
use moire_program::text::scan::Parsed;

/// The operations that this file reads.
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

/// Reads the rest of the operation `word`; `None` if another file reads it.
pub(super) fn arithmetic(r: &mut Reader<'_>, word: &str) -> Parsed<Option<Read>> {
    if let Some(to) = Convert::from_word(word) {
        let (value, ty) = converted(r)?;
        return Ok(Some((Op::Convert { to, value }, vec![ty])));
    }
    if let Some(op) = FloatOp::from_word(word) {
        return float(r, op).map(Some);
    }
    Ok(Some(match word {
        "constant" => constant(r)?,
        "iota" => {
            r.scan.expect(":")?;
            (Op::Iota, vec![Type::Tile(r.tile_type()?)])
        }
        "offset" => offset(r)?,
        "addi" | "subi" | "muli" | "andi" | "ori" | "xori" | "maxi" | "mini" | "shli" | "shri" | "remi" => {
            integer(r, word)?
        }
        "exti" => {
            let value = r.value()?;
            let sign = sign(r)?;
            let ty = arrow(r, &[value])?;
            (Op::Extend { sign, value }, vec![ty])
        }
        "trunci" => {
            let value = r.value()?;
            let overflow = overflow(r)?;
            let ty = arrow(r, &[value])?;
            (Op::Truncate { overflow, value }, vec![ty])
        }
        "cmpi" => compare(r)?,
        "select" => select(r)?,
        "assume" => assume(r)?,
        "make_tensor_view" => tensor_view(r)?,
        "make_partition_view" | "make_strided_view" => make_view(r, word)?,
        "make_token" => {
            r.scan.expect(":")?;
            r.token_type()?;
            (Op::MakeToken, vec![Type::Token])
        }
        "join_tokens" => {
            let tokens = if r.scan.peek(":") { Vec::new() } else { r.values()? };
            let at = r.scan.at;
            r.scan.expect(":")?;
            r.token_type()?;
            r.agree(at, &tokens, &vec![Type::Token; tokens.len()])?;
            (Op::JoinTokens(tokens), vec![Type::Token])
        }
        _ => return Ok(None),
    }))
}

/// `%a : T -> U`
fn converted(r: &mut Reader<'_>) -> Parsed<(Value, Type)> {
    let value = r.value()?;
    let ty = arrow(r, &[value])?;
    Ok((value, ty))
}

/// `: T, .. -> U`: a type for each of these values, then that of the result.
fn arrow(r: &mut Reader<'_>, values: &[Value]) -> Parsed<Type> {
    r.scan.expect(":")?;
    let at = r.scan.at;
    let stated = r.types()?;
    if stated.len() != values.len() {
        let message = format!("expected {} types, found {}", values.len(), stated.len());
        return Err(because(Reason::ValueType, r.scan.error_at(at, message, None)));
    }
    r.agree(at, values, &stated)?;
    r.scan.expect("->")?;
    r.ty()
}

/// `: T`: the one type of these values and of the result.
fn same(r: &mut Reader<'_>, values: &[Value]) -> Parsed<Type> {
    r.scan.expect(":")?;
    let at = r.scan.at;
    let ty = r.ty()?;
    r.agree(at, values, &vec![ty.clone(); values.len()])?;
    Ok(ty)
}

fn pair(r: &mut Reader<'_>) -> Parsed<[Value; 2]> {
    let a = r.value()?;
    r.scan.expect(",")?;
    Ok([a, r.value()?])
}

fn sign(r: &mut Reader<'_>) -> Parsed<Sign> {
    r.one_of("signedness", Sign::WORDS, Sign::from_word)
}

fn overflow(r: &mut Reader<'_>) -> Parsed<Overflow> {
    if !r.scan.keyword("overflow") {
        return Ok(Overflow::Wraps);
    }
    r.scan.expect("<")?;
    let overflow = r.one_of("promise about overflow", Overflow::WORDS, Overflow::from_word)?;
    r.scan.expect(">")?;
    Ok(overflow)
}

fn offset(r: &mut Reader<'_>) -> Parsed<Read> {
    let [pointer, offset] = pair(r)?;
    let ty = arrow(r, &[pointer, offset])?;
    Ok((Op::Offset { pointer, offset }, vec![ty]))
}

fn integer(r: &mut Reader<'_>, word: &str) -> Parsed<Read> {
    let [a, b] = pair(r)?;
    let op = match word {
        "addi" => IntegerOp::Add(overflow(r)?),
        "subi" => IntegerOp::Sub(overflow(r)?),
        "muli" => IntegerOp::Mul(overflow(r)?),
        "shli" => IntegerOp::Shl(overflow(r)?),
        "maxi" => IntegerOp::Max(sign(r)?),
        "mini" => IntegerOp::Min(sign(r)?),
        "shri" => IntegerOp::Shr(sign(r)?),
        "remi" => IntegerOp::Rem(sign(r)?),
        "andi" => IntegerOp::And,
        "ori" => IntegerOp::Or,
        _ => IntegerOp::Xor,
    };
    let ty = same(r, &[a, b])?;
    Ok((Op::Integer { op, a, b }, vec![ty]))
}

fn float(r: &mut Reader<'_>, op: FloatOp) -> Parsed<Read> {
    let [a, b] = pair(r)?;
    let mut rounding = Rounding::NearestEven;
    if r.scan.keyword("rounding") {
        r.scan.expect("<")?;
        rounding = r.one_of("rounding", Rounding::WORDS, Rounding::from_word)?;
        r.scan.expect(">")?;
    }
    let flush = r.scan.keyword("flush_to_zero");
    let ty = same(r, &[a, b])?;
    Ok((Op::Float { op, rounding, flush, a, b }, vec![ty]))
}

fn compare(r: &mut Reader<'_>) -> Parsed<Read> {
    let predicate = r.one_of("comparison", Predicate::WORDS, Predicate::from_word)?;
    let [a, b] = pair(r)?;
    r.scan.expect(",")?;
    let sign = sign(r)?;
    r.scan.expect(":")?;
    let at = r.scan.at;
    let ty = r.ty()?;
    r.agree(at, &[a, b], &[ty.clone(), ty])?;
    r.scan.expect("->")?;
    let ty = r.ty()?;
    Ok((Op::Compare { predicate, sign, a, b }, vec![ty]))
}

fn select(r: &mut Reader<'_>) -> Parsed<Read> {
    let condition = r.value()?;
    r.scan.expect(",")?;
    let [a, b] = pair(r)?;
    r.scan.expect(":")?;
    let at = r.scan.at;
    let stated = r.ty()?;
    r.scan.expect(",")?;
    let ty = r.ty()?;
    r.agree(at, &[condition, a, b], &[stated, ty.clone(), ty.clone()])?;
    Ok((Op::Select { condition, a, b }, vec![ty]))
}

fn assume(r: &mut Reader<'_>) -> Parsed<Read> {
    let that = if r.scan.keyword("div_by") {
        r.scan.expect("<")?;
        let divisor = r.digits()?;
        let mut every = None;
        if r.scan.take(",") {
            r.keyword("every")?;
            let length = signed(r)?;
            r.keyword("along")?;
            every = Some((length, signed(r)?));
        }
        Assumption::DivBy { divisor, every }
    } else if r.scan.keyword("bounded") {
        r.scan.expect("<")?;
        let low = bound(r)?;
        r.scan.expect(",")?;
        Assumption::Bounded { low, high: bound(r)? }
    } else {
        return Err(r.scan.expected("`div_by<..>` or `bounded<..>`"));
    };
    r.scan.expect(">")?;
    r.scan.expect(",")?;
    let value = r.value()?;
    let ty = same(r, &[value])?;
    Ok((Op::Assume { that, value }, vec![ty]))
}

fn bound(r: &mut Reader<'_>) -> Parsed<Option<i64>> {
    if r.scan.take("?") { Ok(None) } else { signed(r).map(Some) }
}

fn signed(r: &mut Reader<'_>) -> Parsed<i64> {
    let at = r.scan.at;
    let number = r.scan.number()?;
    i64::try_from(number)
        .map_err(|_| r.scan.error_at(at, "this number does not fit a signed 64-bit integer".into(), None))
}

/// `%base, shape = [%n, 4], strides = [4, 1] : tile<i64> -> tensor_view<?x4xf32, strides=[4,1]>`. The type of the
/// dynamic extents and strides is stated if there are any, and the type of the base if it is a multicast pointer.
fn tensor_view(r: &mut Reader<'_>) -> Parsed<Read> {
    let base = r.value()?;
    r.scan.expect(",")?;
    r.keyword("shape")?;
    let (shape, known_shape) = mixed(r)?;
    r.scan.expect(",")?;
    r.keyword("strides")?;
    let (strides, known_strides) = mixed(r)?;
    r.scan.expect(":")?;
    let at = r.scan.at;
    let mut stated = vec![r.ty()?];
    while r.scan.take(",") {
        stated.push(r.ty()?);
    }
    let result = if r.scan.take("->") { r.ty()? } else { stated.pop().unwrap_or(Type::Token) };
    let Type::Tensor(view) = &result else {
        let message = format!("expected a type `tensor_view<..>`, found `{result}`");
        return Err(because(Reason::Type, r.scan.error_at(at, message, None)));
    };
    if view.shape != known_shape || view.strides != known_strides {
        let (shape, strides) = (extents(&view.shape), extents(&view.strides));
        let message = format!(
            "the operation and its type differ: the type has shape [{shape}] and strides [{strides}]"
        );
        return Err(because(Reason::ViewShape, r.scan.error_at(at, message, None)));
    }
    let dynamic: Vec<Value> = shape.iter().chain(&strides).copied().collect();
    let pointer = Type::Tile(Tile::scalar(Elem::Pointer { to: view.elem, multicast: view.multicast }));
    let mut stated = stated.into_iter().peekable();
    let first = stated.next_if_eq(&pointer).unwrap_or(pointer);
    r.agree(at, &[base], &[first])?;
    if let Some(ty) = stated.next() {
        r.agree(at, &dynamic, &vec![ty; dynamic.len()])?;
    }
    Ok((Op::TensorView { base, shape, strides }, vec![result]))
}

/// `= [%n, 4]`. Returns the values, and all entries with `None` in place of each value.
fn mixed(r: &mut Reader<'_>) -> Parsed<(Vec<Value>, Vec<Option<u64>>)> {
    r.scan.expect("=")?;
    r.scan.expect("[")?;
    let (mut values, mut all) = (Vec::new(), Vec::new());
    while !r.scan.take("]") {
        if !all.is_empty() {
            r.scan.expect(",")?;
        }
        if r.scan.peek("%") {
            values.push(r.value()?);
            all.push(None);
        } else {
            all.push(Some(r.digits()?));
        }
    }
    Ok((values, all))
}

fn make_view(r: &mut Reader<'_>, word: &str) -> Parsed<Read> {
    let tensor = r.value()?;
    r.scan.expect(":")?;
    let at = r.scan.at;
    let ty = r.ty()?;
    let fits = |ty: &Type| matches!(ty, Type::View(v) if v.steps.is_some() == (word == "make_strided_view"));
    if !fits(&ty) {
        let message = format!("`{word}` cannot make a `{ty}`");
        return Err(because(Reason::Type, r.scan.error_at(at, message, None)));
    }
    Ok((Op::MakeView { tensor }, vec![ty]))
}
