//! The text of constants: `<i32: 3>`, `<f32: [[1.5, 0x7F800000], [0.0, 2.0]]>`, `<i1: true>`.
//!
//! A float prints as a decimal if reading it gives the same bits, otherwise as its bits in hexadecimal. For `tf32` and
//! formats of less than 16 bits only hexadecimal is read.

use super::reader::{Read, Reader, because};
use crate::{CONSTANT_ELEMENTS, Constant, Op, RANK, Reason, Scalar, Type};
use moire_program::text::scan::Parsed;

/// Reads the rest of a `constant`.
pub(super) fn constant(r: &mut Reader<'_>) -> Parsed<Read> {
    r.scan.expect("<")?;
    let elem = r.scalar()?;
    r.scan.expect(":")?;
    let at = r.scan.at;
    let mut bits = Vec::new();
    let shape = if r.scan.peek("[") {
        let mut shape = Vec::new();
        elements(r, elem, 0, &mut shape, &mut bits)?;
        Some(shape)
    } else {
        bits.push(read_element(r, elem)?);
        None
    };
    r.scan.expect(">")?;
    r.scan.expect(":")?;
    let tile = r.tile_type()?;
    if tile.elem.scalar() != Some(elem) {
        let message = format!("a constant of `{elem}` cannot have type `{tile}`");
        return Err(because(Reason::ElementType, r.scan.error_at(at, message, None)));
    }
    if shape.is_some_and(|shape| shape.as_slice() != tile.shape) {
        let message = format!("the elements do not have the shape of `{tile}`");
        return Err(because(Reason::Shape, r.scan.error_at(at, message, None)));
    }
    Ok((Op::Constant(Constant { bits }), vec![Type::Tile(tile)]))
}

/// `[..]`, nested. All lists of a level have the same length.
fn elements(
    r: &mut Reader<'_>,
    elem: Scalar,
    level: usize,
    shape: &mut Vec<u32>,
    bits: &mut Vec<u64>,
) -> Parsed<()> {
    r.scan.expect("[")?;
    if level == RANK {
        return Err(r.fault(Reason::Limit, format!("at most {RANK} dimensions")));
    }
    let mut count = 0u32;
    let numbers = !r.scan.peek("[");
    while !r.scan.take("]") {
        if count > 0 {
            r.scan.expect(",")?;
        }
        if numbers == r.scan.peek("[") || numbers && shape.get(level + 1).is_some() {
            return Err(r.fault(Reason::Shape, "numbers and lists are mixed".into()));
        }
        if numbers {
            bits.push(read_element(r, elem)?);
        } else {
            elements(r, elem, level + 1, shape, bits)?;
        }
        count += 1;
        if bits.len() > CONSTANT_ELEMENTS {
            let message = format!("a constant may have at most {CONSTANT_ELEMENTS} elements");
            return Err(r.fault(Reason::Limit, message));
        }
    }
    // The first list to be closed is an innermost one and fixes the number of levels.
    let missing = (level + 1).saturating_sub(shape.len());
    shape.extend(std::iter::repeat_n(u32::MAX, missing));
    match shape.get_mut(level) {
        Some(extent) if *extent == u32::MAX || *extent == count => *extent = count,
        _ => return Err(r.fault(Reason::Shape, "lists of one level have different lengths".into())),
    }
    Ok(())
}

fn read_element(r: &mut Reader<'_>, elem: Scalar) -> Parsed<u64> {
    if elem == Scalar::I1 && r.scan.keyword("true") {
        return Ok(1);
    }
    if elem == Scalar::I1 && r.scan.keyword("false") {
        return Ok(0);
    }
    if elem.integer() || r.scan.peek("0x") {
        return integer_bits(r, elem);
    }
    let at = r.scan.at;
    let rest = r.scan.rest();
    let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
    let word = &rest[..length];
    // Rust also parses `inf` and `nan`, which texts do not use.
    let plain = word.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let bits = word.parse::<f64>().ok().filter(|_| plain).and_then(|v| float_bits(v, elem));
    let Some(bits) = bits else {
        let message = format!("`{}` is not a constant of type `{elem}`", &word[..word.len().min(40)]);
        let hint = Some("the bits of any float can be given in hexadecimal".to_owned());
        return Err(because(Reason::Constant, r.scan.error_at(at, message, hint)));
    };
    r.scan.at += length;
    Ok(bits)
}

fn integer_bits(r: &mut Reader<'_>, elem: Scalar) -> Parsed<u64> {
    let at = r.scan.at;
    let number = r.scan.number()?;
    let (least, most) = (-(1i128 << (elem.bits() - 1)), (1i128 << elem.bits()) - 1);
    if !(least..=most).contains(&number) {
        let message = format!("{number} does not fit `{elem}`");
        return Err(because(Reason::Constant, r.scan.error_at(at, message, None)));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low bits are meant")]
    let bits = number as u64;
    Ok(bits & elem.mask())
}

/// The numbers of exponent and fraction bits, for formats that are read from decimals.
fn format(elem: Scalar) -> Option<(u32, u32)> {
    match elem {
        Scalar::F16 => Some((5, 10)),
        Scalar::BF16 => Some((8, 7)),
        Scalar::F32 => Some((8, 23)),
        Scalar::F64 => Some((11, 52)),
        _ => None,
    }
}

/// The bits of the value nearest to `value` in a format, ties to even.
fn float_bits(value: f64, elem: Scalar) -> Option<u64> {
    let (exponent_bits, fraction_bits) = format(elem)?;
    let bits = value.to_bits();
    if elem == Scalar::F64 {
        return Some(bits);
    }
    let sign = bits >> 63 << (exponent_bits + fraction_bits);
    let exponent = i64::try_from(bits >> 52 & 0x7ff).ok()? - 1023;
    let bias = (1i64 << (exponent_bits - 1)) - 1;
    if !value.is_finite() {
        return None;
    }
    // A number too small for the format's normal range loses bits of its fraction; nothing below 2^-1022 is left.
    let below = (1 - bias - exponent).clamp(0, 60);
    let fraction = (bits & ((1 << 52) - 1)) | u64::from(exponent > -1023) << 52;
    let drop = u32::try_from(below).ok()? + 52 - fraction_bits;
    let kept = if drop > 63 { 0 } else { fraction >> drop };
    let rest = if drop > 63 { 0 } else { fraction & ((1 << drop) - 1) };
    let half = 1u64 << (drop - 1).min(63);
    let up = drop <= 63 && (rest > half || rest == half && kept & 1 == 1);
    let hidden = if below > 0 { 0 } else { u64::try_from(exponent + bias - 1).ok()? << fraction_bits };
    let magnitude = hidden + kept + u64::from(up);
    let infinite = ((1u64 << exponent_bits) - 1) << fraction_bits;
    Some(sign | magnitude.min(infinite))
}

/// The value of these bits; `None` for infinities and NaN of the formats below 64 bits.
fn float_value(bits: u64, elem: Scalar) -> Option<f64> {
    let (exponent_bits, fraction_bits) = format(elem)?;
    if elem == Scalar::F64 {
        return Some(f64::from_bits(bits));
    }
    let fraction = bits & ((1 << fraction_bits) - 1);
    let exponent = i32::try_from(bits >> fraction_bits & ((1 << exponent_bits) - 1)).ok()?;
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let sign = if bits >> (exponent_bits + fraction_bits) & 1 == 1 { -1.0 } else { 1.0 };
    let whole = if exponent == 0 { fraction } else { fraction | 1 << fraction_bits };
    let scale = exponent.max(1) - bias - i32::try_from(fraction_bits).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "at most 24 bits")]
    let value = sign * whole as f64 * 2f64.powi(scale);
    (exponent < (1 << exponent_bits) - 1).then_some(value)
}

/// Prints an element.
pub(super) fn element(bits: u64, elem: Scalar) -> String {
    if elem == Scalar::I1 {
        return if bits & 1 == 1 { "true" } else { "false" }.to_owned();
    }
    if elem.integer() {
        let shift = 64 - elem.bits();
        return ((bits << shift).cast_signed() >> shift).to_string();
    }
    let digits = usize::try_from(elem.bits().div_ceil(4)).unwrap_or(0);
    let exact = float_value(bits, elem).map(scientific);
    let again = |text: &String| text.parse().ok().and_then(|v| float_bits(v, elem)) == Some(bits);
    exact.filter(again).unwrap_or_else(|| format!("0x{:0digits$X}", bits & elem.mask()))
}

/// `1.500000e+00`
fn scientific(value: f64) -> String {
    let text = format!("{value:.6e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_round_once_to_even() {
        let f16 = |v: f64| float_bits(v, Scalar::F16).unwrap();
        assert_eq!((f16(1.5), f16(-2.0), f16(65504.0), f16(65520.0)), (0x3e00, 0xc000, 0x7bff, 0x7c00));
        assert_eq!((f16(2f64.powi(-24)), f16(2f64.powi(-25)), f16(1.5 * 2f64.powi(-25))), (1, 0, 1));
        assert_eq!((f16(0.0), f16(-0.0), f16(5e-324)), (0, 0x8000, 0));
        assert_eq!((f16(1.0 + 2f64.powi(-11)), f16(1.0 + 3.0 * 2f64.powi(-11))), (0x3c00, 0x3c02));
        for v in [0.1f32, 3.0, -1e-40, f32::MIN_POSITIVE, f32::MAX, 1e-45] {
            assert_eq!(float_bits(f64::from(v), Scalar::F32), Some(u64::from(v.to_bits())), "{v}");
            assert_eq!(float_value(u64::from(v.to_bits()), Scalar::F32), Some(f64::from(v)), "{v}");
        }
        for bits in 0..1 << 16 {
            for elem in [Scalar::F16, Scalar::BF16] {
                if let Some(value) = float_value(bits, elem) {
                    assert_eq!(float_bits(value, elem), Some(bits), "{bits:x} {elem}");
                }
            }
        }
    }

    #[test]
    fn elements_print_as_the_disassembler_does() {
        let f32 = |v: f32| element(u64::from(v.to_bits()), Scalar::F32);
        assert_eq!(
            (f32(1.5), f32(-0.0), f32(0.1)),
            ("1.500000e+00".into(), "-0.000000e+00".into(), "1.000000e-01".into())
        );
        assert_eq!((f32(f32::INFINITY), f32(f32::NAN)), ("0x7F800000".into(), "0x7FC00000".into()));
        assert_eq!((element(0xff, Scalar::I8), element(0x7f, Scalar::I8)), ("-1".into(), "127".into()));
        assert_eq!(f32(1.000_000_1), "0x3F800001");
    }
}
