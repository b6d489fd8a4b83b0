//! `tcgen05.mma` in all its forms.
//!
//! PTX ISA 9.2, 9.7.16.10. Order of the operands: D, A, B, the metadata of `.sp`, the shape, the two scales of
//! `.block_scale`, the mask of disabled lanes, whether D is read, and the exponent of the input scale (for `.ws` the mask
//! of zero columns of B).

use super::reader::Reader;
use super::words::Words;
use crate::ir::*;
use crate::text::print::{COLLECTOR_USES, MMA_KINDS, SCALE_SIZES};
use crate::text::scan::Parsed;

/// The qualifiers of a product.
struct Form {
    group: CtaGroup,
    kind: MmaKind,
    stationary: bool,
    sparse: bool,
    ashift: bool,
    scale: Option<ScaleSize>,
    collector_a: Option<CollectorUse>,
    collector_b: Option<CollectorB>,
}

pub(super) fn product(r: &mut Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Tcgen05> {
    let form = product_form(r, w)?;
    r.done(w)?;
    let d = r.tensor_address()?;
    r.scan.expect(",")?;
    let a =
        if r.scan.peek("[") { Factor::Tensor(r.tensor_address()?) } else { Factor::Shared(r.descriptor()?) };
    r.scan.expect(",")?;
    let b = r.descriptor()?;
    let metadata = if form.sparse { Some(next_tensor(r)?) } else { None };
    r.scan.expect(",")?;
    let shape = shape(r)?;
    let scales = match form.scale {
        Some(size) => Some(BlockScale { size, a: next_tensor(r)?, b: next_tensor(r)? }),
        None => None,
    };
    r.scan.expect(",")?;
    let mut lanes_off = Vec::new();
    if r.scan.peek("{") {
        lanes_off = r.vector()?;
        r.scan.expect(",")?;
    }
    let input = r.enable_input()?;
    let (mut scale_input, mut zero_columns) = (None, None);
    if r.scan.take(",") {
        if form.stationary {
            zero_columns = Some(r.value("mask of columns", "a number")?);
        } else {
            scale_input = u8::try_from(r.range("a scale of", 0, 15)?).ok();
        }
    }
    let Form { group, kind, stationary, ashift, collector_a, collector_b, .. } = form;
    Ok(Tcgen05::Mma(Box::new(Mma {
        group,
        kind,
        stationary,
        ashift,
        collector_a,
        collector_b,
        d,
        a,
        b,
        metadata,
        shape,
        scales,
        lanes_off,
        input,
        scale_input,
        zero_columns,
    })))
}

fn product_form(r: &Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Form> {
    let (stationary, sparse) = (w.take("ws"), w.take("sp"));
    let group = r.group(w)?;
    let Some(kind) = w.pick(&MMA_KINDS) else {
        let known: Vec<&str> = MMA_KINDS.iter().map(|(k, _)| *k).collect();
        return r.fail("tcgen05.mma needs a kind".into(), Some(format!("one of {}", known.join(", "))));
    };
    let scale =
        if w.take("block_scale") { Some(w.pick(&SCALE_SIZES).unwrap_or(ScaleSize::Default)) } else { None };
    let usage = |text: &str| COLLECTOR_USES.iter().find(|(word, _)| *word == text).map(|(_, u)| *u);
    let collector_a = w.find(|word| usage(word.strip_prefix("collector::a::")?));
    let collector_b = w.find(|word| {
        let (buffer, text) = word.strip_prefix("collector::b")?.split_once("::")?;
        let buffer = match buffer {
            "" => None,
            "0" | "1" | "2" | "3" => Some(buffer.parse().ok()?),
            _ => return None,
        };
        Some(CollectorB { buffer, usage: usage(text)? })
    });
    let ashift = w.take("ashift");
    Ok(Form { group, kind, stationary, sparse, ashift, scale, collector_a, collector_b })
}

fn next_tensor(r: &mut Reader<'_, '_>) -> Parsed<Address> {
    r.scan.expect(",")?;
    r.tensor_address()
}

/// Reads `idesc(m, n)`, a register or a number.
fn shape(r: &mut Reader<'_, '_>) -> Parsed<ProductShape> {
    if !r.call("idesc") {
        return Ok(ProductShape::Packed(r.value("instruction descriptor", "idesc(m, n)")?));
    }
    let m = r.range("rows of", 32, 256)?;
    r.scan.expect(",")?;
    let n = r.range("columns of", 8, 256)?;
    r.scan.expect(")")?;
    let small = |v: i128| u16::try_from(v).expect("within the range");
    Ok(ProductShape::Tile { m: small(m), n: small(n) })
}
