//! Reads fences of the async and tensormap proxies with a space, a direction or a range, and `tensormap.*`.

use super::reader::Reader;
use super::words::Words;
use crate::ir::*;
use crate::text::print::{RESTRICTIONS, TENSORMAP_FIELDS};
use crate::text::scan::Parsed;

/// Reads a fence if `words`, the qualifiers after `fence`, are a form of this module. Returns whether they are.
pub(super) fn proxy_order(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<bool> {
    let directions = ["async::generic", "tensormap::generic", "generic::fabric", "fabric::generic"];
    let op = match words {
        ["proxy", "async", space @ ("global" | "shared::cta" | "shared::cluster")] => {
            ProxyOrder::AsyncSpace(match *space {
                "global" => Space::Global,
                "shared::cta" => Space::SharedCta,
                _ => Space::SharedCluster,
            })
        }
        ["proxy", "alias", "acquire", "sys"] => ProxyOrder::AliasOneSided(Side::Acquire),
        ["proxy", "alias", "release", "sys"] => ProxyOrder::AliasOneSided(Side::Release),
        ["proxy", rest @ ..] if rest.iter().any(|w| directions.contains(w)) => one_sided(r, rest)?,
        rest if rest.iter().any(|w| w.starts_with("sync_restrict::")) => restricted(r, rest)?,
        _ => return Ok(false),
    };
    r.push(Op::ProxyOrder(op))?;
    Ok(true)
}

fn side(r: &Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Side> {
    match w.pick(&[("acquire", Side::Acquire), ("release", Side::Release)]) {
        Some(side) => Ok(side),
        None => r.fail(format!("{} needs .acquire or .release", w.name()), None),
    }
}

fn fence_scope(r: &Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Scope> {
    match w.scope() {
        Some(scope) => Ok(scope),
        None => r.fail(format!("{} needs a scope", w.name()), None),
    }
}

fn restriction(r: &Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Restrict> {
    match w.pick(&RESTRICTIONS) {
        Some(restrict) => Ok(restrict),
        None => {
            let hint = "for example .release.sync_restrict::shared::cta.cluster".to_owned();
            r.fail(format!("{} needs .sync_restrict", w.name()), Some(hint))
        }
    }
}

fn one_sided(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<ProxyOrder> {
    let mut w = Words::new("this proxy fence", words);
    if w.take("async::generic") {
        let (side, restrict) = (side(r, &mut w)?, restriction(r, &mut w)?);
        let scope = fence_scope(r, &mut w)?;
        r.done(&w)?;
        return Ok(ProxyOrder::AsyncRestricted { side, restrict, scope });
    }
    let fabric = w.pick(&[("generic::fabric", false), ("fabric::generic", true)]);
    if let Some(from_fabric) = fabric {
        r.need(&mut w, &["alias", "sys"])?;
        let side = side(r, &mut w)?;
        r.done(&w)?;
        return Ok(ProxyOrder::Fabric { side, from_fabric });
    }
    r.need(&mut w, &["tensormap::generic"])?;
    let (side, scope) = (side(r, &mut w)?, fence_scope(r, &mut w)?);
    r.done(&w)?;
    if side == Side::Release {
        return Ok(ProxyOrder::TensormapRelease { scope });
    }
    let addr = r.address()?;
    map_size(r)?;
    Ok(ProxyOrder::TensormapAcquire { scope, addr })
}

/// `, 128`
fn map_size(r: &mut Reader<'_, '_>) -> Parsed<()> {
    r.scan.expect(",")?;
    let size = i128::from(TENSORMAP_BYTES);
    r.range("a tensor map of", size, size).map(drop)
}

fn restricted(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<ProxyOrder> {
    let mut w = Words::new("this fence", words);
    let (side, restrict) = (side(r, &mut w)?, restriction(r, &mut w)?);
    r.need(&mut w, &["cluster"])?;
    r.done(&w)?;
    Ok(ProxyOrder::Restricted { side, restrict })
}

/// `tensormap.*`
pub(super) fn tensormap(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let op = match words {
        ["cp_fenceproxy", rest @ ..] => {
            let mut w = Words::new("tensormap.cp_fenceproxy", rest);
            let needed = ["global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"];
            r.need(&mut w, &needed)?;
            let scope = fence_scope(r, &mut w)?;
            r.done(&w)?;
            let dst = r.address()?;
            r.scan.expect(",")?;
            let src = r.address()?;
            map_size(r)?;
            ProxyOrder::CopyTensormap { scope, dst, src }
        }
        ["replace", rest @ ..] => replace_tensormap(r, rest)?,
        _ => {
            let hint = "known are tensormap.replace and tensormap.cp_fenceproxy".to_owned();
            return r.fail("this is not a tensormap instruction".into(), Some(hint));
        }
    };
    r.push(Op::ProxyOrder(op))
}

fn replace_tensormap(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<ProxyOrder> {
    let mut w = Words::new("tensormap.replace", words);
    r.need(&mut w, &["tile", "b1024"])?;
    let Some(field) = w.pick(&TENSORMAP_FIELDS) else {
        let known: Vec<&str> = TENSORMAP_FIELDS.iter().map(|(f, _)| *f).collect();
        return r
            .fail("tensormap.replace needs a field".into(), Some(format!("one of {}", known.join(", "))));
    };
    let space = w.space().unwrap_or(Space::Generic);
    let Some(ty) = w.pick(&[("b32", Ty::B(32)), ("b64", Ty::B(64))]) else {
        return r.fail("tensormap.replace needs .b32 or .b64".into(), None);
    };
    r.done(&w)?;
    let addr = r.address()?;
    r.scan.expect(",")?;
    let by_dimension = matches!(
        field,
        TensormapField::BoxDim
            | TensormapField::GlobalDim
            | TensormapField::GlobalStride
            | TensormapField::ElementStride
    );
    let ordinal = if by_dimension {
        let n = r.range("a dimension of", 0, 4)?;
        r.scan.expect(",")?;
        u8::try_from(n).ok()
    } else {
        None
    };
    let value = r.operand()?;
    Ok(ProxyOrder::ReplaceTensormap { field, space, ty, addr, ordinal, value })
}
