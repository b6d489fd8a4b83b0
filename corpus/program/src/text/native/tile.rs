//! Memory instructions of tile blocks, and tokens.
//!
//! ```text
//! tile.st.release.gpu.u32 {[f], 1} after t1 gives t2
//! tile.ld.weak.u32 {@p [x] -> r0, 7; [x+4] -> r1} gives t3
//! tile.atom.relaxed.gpu.cas.u32 {[x] -> r2, 0, 1}
//! tile.join t4, {t2, t3}
//! tile.choose t5, p, t3, t4
//! ```
//!
//! An element is `@mask [address] -> register, operands`. The operands are the value of a store or an atomic, the compared
//! and the new value of a cas, or the padding of a load. `.cta` is the tile block, `.gpu` the device.

use super::qualifiers::{Qualifiers, Takes};
use super::reader::Reader;
use crate::ir::*;
use crate::text::scan::Parsed;

pub(super) fn tile_block(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let op = match words {
        ["join"] => TileOp::Token(joined(r)?),
        ["choose"] => TileOp::Token(chosen(r)?),
        [kind @ ("ld" | "st" | "atom"), rest @ ..] => TileOp::Access(Box::new(tile_access(r, kind, rest)?)),
        _ => {
            let hint = "one of tile.ld, tile.st, tile.atom, tile.join, tile.choose".to_owned();
            return r.fail("this is not an instruction of a tile block".into(), Some(hint));
        }
    };
    r.push(Op::Tile(op))
}

fn joined(r: &mut Reader<'_, '_>) -> Parsed<TileToken> {
    let dst = r.reg()?;
    r.scan.expect(",")?;
    r.scan.expect("{")?;
    let mut from = Vec::new();
    while !r.scan.take("}") {
        if !from.is_empty() {
            r.scan.expect(",")?;
        }
        from.push(r.reg()?);
    }
    Ok(TileToken::Join { dst, from })
}

fn chosen(r: &mut Reader<'_, '_>) -> Parsed<TileToken> {
    let dst = r.reg()?;
    r.scan.expect(",")?;
    let when = r.reg()?;
    r.scan.expect(",")?;
    let yes = r.reg()?;
    r.scan.expect(",")?;
    Ok(TileToken::Choose { dst, when, yes, no: r.reg()? })
}

fn tile_access(r: &mut Reader<'_, '_>, kind: &str, words: &[&str]) -> Parsed<TileAccess> {
    let q = r.qualifiers(words, Takes { access: true, op: kind == "atom", lo: false })?;
    let ty = r.ty(&q)?;
    if ty == Ty::Pred || ty.packed() || ty.bytes() > 8 {
        return r.fail("an element of a tile has one to eight bytes and is not packed".into(), None);
    }
    let Some(kind) = tile_kind(kind, &q) else {
        let hint = match kind {
            "ld" => "a load is .weak, or .relaxed or .acquire with a scope",
            "st" => "a store is .weak, or .relaxed or .release with a scope",
            _ => "an atomic has an order, a scope, and one of add, and, or, xor, min, max, exch, cas",
        };
        return r.fail("this access of a tile has no such order or operation".into(), Some(hint.into()));
    };
    r.scan.expect("{")?;
    let mut elements = Vec::new();
    while !r.scan.take("}") {
        if !elements.is_empty() {
            r.scan.expect(";")?;
        }
        elements.push(tile_element(r, kind)?);
    }
    let after = if r.scan.keyword("after") { Some(r.reg()?) } else { None };
    let token = if r.scan.keyword("gives") { Some(r.reg()?) } else { None };
    Ok(TileAccess { kind, ty, elements, after, token })
}

fn tile_kind(kind: &str, q: &Qualifiers<'_>) -> Option<TileKind> {
    let order = q.order.unwrap_or(if kind == "atom" { "relaxed" } else { "weak" });
    Some(match (kind, order, q.scope) {
        ("ld", "weak", None) => TileKind::Load(LoadOrder::Weak),
        ("ld", "relaxed", Some(scope)) => TileKind::Load(LoadOrder::Relaxed(scope)),
        ("ld", "acquire", Some(scope)) => TileKind::Load(LoadOrder::Acquire(scope)),
        ("st", "weak", None) => TileKind::Store(StoreOrder::Weak),
        ("st", "relaxed", Some(scope)) => TileKind::Store(StoreOrder::Relaxed(scope)),
        ("st", "release", Some(scope)) => TileKind::Store(StoreOrder::Release(scope)),
        ("atom", _, Some(scope)) => {
            let order = match order {
                "relaxed" => RmwOrder::Relaxed,
                "acquire" => RmwOrder::Acquire,
                "release" => RmwOrder::Release,
                "acq_rel" => RmwOrder::AcqRel,
                _ => return None,
            };
            let op = q.op.filter(|op| !matches!(op, AtomOp::Sub | AtomOp::Inc | AtomOp::Dec))?;
            TileKind::Rmw { op, order, scope }
        }
        _ => return None,
    })
}

fn tile_element(r: &mut Reader<'_, '_>, kind: TileKind) -> Parsed<TileElement> {
    let mask = if r.scan.take("@") { Some(r.reg()?) } else { None };
    let addr = r.address()?;
    let dst = if r.scan.take("->") { Some(r.reg()?) } else { None };
    let mut operands = Vec::new();
    while r.scan.take(",") {
        operands.push(r.operand()?);
    }
    let fits = match kind {
        TileKind::Load(_) => operands.len() <= 1,
        TileKind::Store(_) => operands.len() == 1 && dst.is_none(),
        TileKind::Rmw { op, .. } => operands.len() == if op == AtomOp::Cas { 2 } else { 1 },
    };
    if !fits {
        let hint = "`[x], 1` of a store, `[x] -> r` of a load, `[x] -> r, 0, 1` of a cas".to_owned();
        return r.fail("this element does not fit its access".into(), Some(hint));
    }
    let mut operands = operands.into_iter();
    Ok(TileElement { addr, mask, dst, a: operands.next(), b: operands.next() })
}
