//! Reads declarations of variables: type, alignment, extents.

use super::module::Variable;
use moire_program::ir::{Content, Space, Ty};
use moire_program::limits::OBJECT_BYTES;
use moire_program::text::build::Builder;
use moire_program::text::scan::{Parsed, Scan};

/// Reads a number of bytes, elements, registers or threads.
pub(super) fn small(scan: &mut Scan<'_>) -> Parsed<u32> {
    scan.rest();
    let at = scan.at;
    let number = scan.number()?;
    u32::try_from(number).map_err(|_| scan.error_at(at, format!("{number} does not fit 32 bits"), None))
}

/// A fundamental or packed type.
pub(super) fn type_of(word: &str) -> Option<Ty> {
    Some(match word {
        "pred" => Ty::Pred,
        "b8" => Ty::B(8),
        "b16" => Ty::B(16),
        "b32" => Ty::B(32),
        "b64" => Ty::B(64),
        "b128" => Ty::B(128),
        "u8" => Ty::U(8),
        "u16" => Ty::U(16),
        "u32" => Ty::U(32),
        "u64" => Ty::U(64),
        "s8" => Ty::S(8),
        "s16" => Ty::S(16),
        "s32" => Ty::S(32),
        "s64" => Ty::S(64),
        "f16" | "bf16" => Ty::F(16),
        "f32" | "tf32" => Ty::F(32),
        "f64" => Ty::F(64),
        "f16x2" => Ty::F16x2,
        "bf16x2" => Ty::Bf16x2,
        _ => return None,
    })
}

/// `.align n`, `.b32`, `.ptr .global .align n` in any order. Returns the element type and the alignment.
pub(super) fn element(scan: &mut Scan<'_>) -> Parsed<(Option<Ty>, u32)> {
    let (mut ty, mut align) = (None, 0);
    while scan.take(".") {
        let at = scan.at;
        match scan.word("a type or .align", ":")? {
            "align" => align = small(scan)?,
            "ptr" | "global" | "shared" | "const" | "local" | "generic" | "attribute" | "v2" | "v4"
            | "managed" | "unified" => {}
            "texref" | "samplerref" | "surfref" => ty = Some(Ty::B(64)),
            word => match type_of(word) {
                Some(found) => ty = Some(found),
                None => {
                    return Err(scan.error_at(
                        at,
                        format!("unknown type `.{word}`"),
                        Some("for example .b32".into()),
                    ));
                }
            },
        }
    }
    Ok((ty, align))
}

/// `[n][m]`. Returns the number of elements: the outer `None` without brackets, the inner one for `[]`.
pub(super) fn extent(scan: &mut Scan<'_>) -> Parsed<Option<Option<u32>>> {
    let mut count: Option<Option<u32>> = None;
    while scan.take("[") {
        if scan.take("]") {
            count = Some(None);
            continue;
        }
        // With more elements it is larger than any object.
        let n = u32::try_from(scan.number()?).unwrap_or(u32::MAX);
        scan.expect("]")?;
        let before = count.flatten().unwrap_or(1);
        count = Some(Some(before.saturating_mul(n)));
    }
    Ok(count)
}

/// `.align 8 .b64 name[4];`, the rest of a declaration behind its space.
pub(super) fn variable(
    scan: &mut Scan<'_>,
    builder: &mut Builder,
    variables: &mut Vec<Variable>,
    space: &str,
) -> Parsed<()> {
    let (ty, align) = element(scan)?;
    let Some(ty) = ty else { return Err(scan.expected("a type such as .b32")) };
    loop {
        scan.rest();
        let at = scan.at;
        let name = scan.name("the name of a variable")?.to_owned();
        if builder.symbol(&name).is_some() {
            return Err(scan.error_at(at, format!("`{name}` is declared twice"), None));
        }
        let count = extent(scan)?;
        if scan.take("=") {
            initial(scan);
        }
        let bytes = match count {
            None => Some(ty.bytes()),
            Some(n) => n.map(|n| n.saturating_mul(ty.bytes())),
        };
        if bytes.is_some_and(|b| b == 0 || b > OBJECT_BYTES) && space != "global" && space != "const" {
            let message = format!("a variable has between 1 and {OBJECT_BYTES} bytes");
            return Err(scan.error_at(at, message, None));
        }
        let align = align.max(ty.bytes()).max(1);
        let (kind, place) = match space {
            "shared" => (Variable::Shared { bytes, align }, Space::SharedCta),
            "local" => (Variable::Local { bytes: bytes.unwrap_or(0) }, Space::Global),
            _ => (Variable::Global, Space::Global),
        };
        builder.object(
            scan,
            &name,
            place,
            bytes.unwrap_or(OBJECT_BYTES).clamp(1, OBJECT_BYTES),
            Content::default(),
        )?;
        variables.push(kind);
        if !scan.take(",") {
            return scan.expect(";");
        }
    }
}

/// Skips initial values, which do not matter for synchronisation.
fn initial(scan: &mut Scan<'_>) {
    let mut depth = 0usize;
    while let Some(c) = scan.rest().chars().next() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ';' | ',' if depth == 0 => return,
            _ => {}
        }
        scan.at += c.len_utf8();
    }
}
