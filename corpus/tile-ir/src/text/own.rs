//! What is written in a syntax of its own: assumptions, and tensor views.

use super::reader::{Read, Reader, because};
use crate::{Assumption, Elem, Op, Reason, Tile, Type, Value, extents};
use moire_program::text::scan::Parsed;

/// `div_by<16, every 4 along 0>` or `bounded<?, 7>`
pub(super) fn assumption(r: &mut Reader<'_>) -> Parsed<Assumption> {
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
    Ok(that)
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
pub(super) fn tensor_view(r: &mut Reader<'_>) -> Parsed<Read> {
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
