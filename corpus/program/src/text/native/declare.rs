//! Declarations: memory objects, second names for them, multicast groups.

use super::qualifiers::parse_type;
use crate::ir::*;
use crate::limits::OBJECT_BYTES;
use crate::text::build::Builder;
use crate::text::scan::{Parsed, Scan, closest};

pub(super) fn declaration(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<()> {
    scan.expect(".")?;
    let at = scan.at;
    let word = scan.word("global, shared, tmem, alias, texture, surface, constant or multimem", ":")?;
    match word {
        "global" => object(scan, builder, Space::Global)?,
        "shared" | "shared::cta" => object(scan, builder, Space::SharedCta)?,
        "tmem" => tensor_memory(scan, builder)?,
        "alias" => alias(scan, builder, Proxy::Generic)?,
        "texture" => alias(scan, builder, Proxy::Texture)?,
        "surface" => alias(scan, builder, Proxy::Surface)?,
        "constant" => alias(scan, builder, Proxy::Constant)?,
        "multimem" => multimem(scan, builder)?,
        "launch" => builder.program.launched = true,
        other => {
            let known =
                ["launch", "global", "shared", "tmem", "alias", "texture", "surface", "constant", "multimem"];
            let hint = closest(other, &known).map_or_else(
                || format!("known are {}", known.join(", ")),
                |k| format!("did you mean `.{k}`?"),
            );
            return Err(scan.error_at(at, format!("`.{other}` is not a known declaration"), Some(hint)));
        }
    }
    scan.expect(";")
}

fn object(scan: &mut Scan<'_>, builder: &mut Builder, space: Space) -> Parsed<()> {
    let at = scan.at;
    scan.expect(".")?;
    let word = scan.word("a type such as b32", "")?;
    let element = parse_type(word).filter(|t| t.bytes() <= 8).ok_or_else(|| {
        scan.error_at(
            at,
            format!("`.{word}` is not a type of memory"),
            Some("use .b8, .b16, .b32 or .b64".into()),
        )
    })?;
    let name = scan.name("a name")?.to_owned();
    if builder.symbol(&name).is_some() {
        return Err(scan.error(format!("`{name}` is declared twice"), None));
    }
    let count = if scan.take("[") {
        let n = scan.number()?;
        scan.expect("]")?;
        u32::try_from(n).ok().filter(|n| *n > 0)
    } else {
        Some(1)
    };
    let bytes = count.and_then(|c| c.checked_mul(element.bytes())).filter(|b| *b <= OBJECT_BYTES);
    let bytes = bytes.ok_or_else(|| {
        scan.error_at(at, format!("an object has between 1 and {OBJECT_BYTES} bytes"), None)
    })?;
    let mut init = Vec::new();
    if scan.take("=") {
        let mut values = Vec::new();
        if scan.take("{") {
            while !scan.take("}") {
                values.push(scan.number()?);
                scan.take(",");
            }
        } else {
            values.push(scan.number()?);
        }
        for value in values {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "one byte is wanted"
            )]
            init.extend((0..element.bytes()).map(|i| (value >> (8 * i)) as u8));
        }
        if init.len() > bytes as usize {
            return Err(scan.error_at(at, "more initial values than the object has room for".into(), None));
        }
    }
    builder.object(scan, &name, space, bytes, init.into())?;
    Ok(())
}

/// Reads `.tmem name[columns];`: columns of tensor memory that each CTA holds during the whole program.
fn tensor_memory(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<()> {
    let name = scan.name("a name")?.to_owned();
    if builder.symbol(&name).is_some() {
        return Err(scan.error(format!("`{name}` is declared twice"), None));
    }
    scan.expect("[")?;
    scan.rest();
    let at = scan.at;
    let columns = scan.number()?;
    let columns = u32::try_from(columns).ok().filter(|n| *n > 0 && n.is_multiple_of(TENSOR_UNIT));
    let used: u32 =
        builder.program.objects.iter().filter(|o| o.space == Space::Tensor).map(|o| o.bytes / 4).sum();
    let columns = columns.filter(|n| used.saturating_add(*n) <= TENSOR_COLUMNS).ok_or_else(|| {
        let message =
            format!("a CTA has {TENSOR_COLUMNS} columns of tensor memory, in multiples of {TENSOR_UNIT}");
        let hint = (used > 0).then(|| format!("{used} are taken already"));
        scan.error_at(at, message, hint)
    })?;
    scan.expect("]")?;
    builder.object(scan, &name, Space::Tensor, columns * 4, Content::default())?;
    Ok(())
}

pub(super) fn named(scan: &mut Scan<'_>, builder: &Builder) -> Parsed<SymbolId> {
    let at = scan.at;
    let name = scan.name("a declared name")?;
    builder.symbol(name).ok_or_else(|| {
        let known: Vec<&str> = builder.program.symbols.iter().map(|s| s.name.as_str()).collect();
        let hint = closest(name, &known).map(|k| format!("did you mean `{k}`?"));
        scan.error_at(at, format!("`{name}` is not declared before this"), hint)
    })
}

fn alias(scan: &mut Scan<'_>, builder: &mut Builder, proxy: Proxy) -> Parsed<()> {
    let name = scan.name("a name")?.to_owned();
    scan.expect("=")?;
    let of = addressed(scan, builder)?;
    builder.alias(scan, &name, of, proxy)?;
    Ok(())
}

/// Reads a declared name of memory that ordinary accesses can access.
fn addressed(scan: &mut Scan<'_>, builder: &Builder) -> Parsed<SymbolId> {
    scan.rest();
    let at = scan.at;
    let id = named(scan, builder)?;
    let object = builder.program.symbols[id.index()].object;
    if builder.program.objects[object.index()].space == Space::Tensor {
        return Err(scan.error_at(at, "tensor memory has only one name".into(), None));
    }
    Ok(id)
}

fn multimem(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<()> {
    let name = scan.name("a name")?.to_owned();
    scan.expect("=")?;
    let first = addressed(scan, builder)?;
    let mut more = Vec::new();
    while scan.take(",") {
        more.push(addressed(scan, builder)?);
    }
    let id = builder.alias(scan, &name, first, Proxy::Generic)?;
    let objects: Vec<ObjectId> = more.iter().map(|s| builder.program.symbols[s.index()].object).collect();
    if objects.is_empty() {
        return Err(scan.error("a multimem name needs at least two objects".into(), None));
    }
    builder.program.symbols[id.index()].multimem = objects;
    Ok(())
}
