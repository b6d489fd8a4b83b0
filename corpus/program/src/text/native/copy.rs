//! Reads `cp.async`, `cp.async.bulk`, `cp.reduce.async.bulk`, `st.async` and `red.async`.
//!
//! ```text
//! cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 128, [bar];
//! cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [tile(g, 128), {0, 0}], [bar];
//! ```
//!
//! A box of a tensor is `[map, {coordinates}]` as in PTX, or names its bytes: `[tile(name+offset, bytes), {..}]`, or
//! `[map as tile(name, bytes), {..}]` if the tensor map is an object too. Cache hints and their operands are read and
//! dropped. The predicate of `cp.async` is written `@p` or `!p`, because a register alone is a size.

use super::qualifiers::parse_type;
use super::reader::Reader;
use super::words::Words;
use crate::ir::*;
use crate::text::print::{ATOM_OPS, TILE_MODES};
use crate::text::scan::Parsed;

/// The qualifiers of a bulk copy.
struct Form {
    dims: Option<u8>,
    mode: TileMode,
    spaces: Vec<Space>,
    to_mbarrier: bool,
    multicast: Option<bool>,
    group: Option<CtaGroup>,
    hint: bool,
    relaxed: Option<Scope>,
    byte_mask: bool,
    ignores: bool,
    reduce: Option<(AtomOp, Option<Ty>)>,
}

/// `cp.*`
pub(super) fn copy(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    match words {
        ["async", "bulk", rest @ ..] => bulk(r, false, rest),
        ["reduce", "async", "bulk", rest @ ..] => bulk(r, true, rest),
        ["async", "commit_group"] => r.push(Op::AsyncCopy(AsyncCopy::Commit)),
        ["async", "wait_all"] => r.push(Op::AsyncCopy(AsyncCopy::WaitAll)),
        ["async", "wait_group"] => {
            let groups = pending_groups(r)?;
            r.push(Op::AsyncCopy(AsyncCopy::Wait(groups)))
        }
        ["async", "mbarrier", "arrive", rest @ ..] => copy_arrive(r, rest),
        ["async", rest @ ..] => small_copy(r, rest),
        _ => {
            let hint = "known are cp.async, cp.async.bulk and cp.reduce.async.bulk".to_owned();
            r.fail("this is not a copy".into(), Some(hint))
        }
    }
}

fn pending_groups(r: &mut Reader<'_, '_>) -> Parsed<u32> {
    let n = r.range("a number of groups of", 0, i128::from(u32::MAX))?;
    Ok(u32::try_from(n).expect("within the range"))
}

fn copy_arrive(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let mut w = Words::new("cp.async.mbarrier.arrive", words);
    r.need(&mut w, &["b64"])?;
    let (noinc, space) = (w.take("noinc"), w.space().unwrap_or(Space::Generic));
    if matches!(space, Space::SharedCluster | Space::Global) {
        let what = "cp.async.mbarrier.arrive takes an mbarrier of its own CTA";
        return r.fail(what.into(), Some("use .shared::cta".into()));
    }
    r.done(&w)?;
    let addr = r.address()?;
    r.push(Op::AsyncCopy(AsyncCopy::Arrive { noinc, space, addr }))
}

fn small_copy(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let mut w = Words::new("cp.async", words);
    let Some(all_levels) = w.pick(&[("ca", true), ("cg", false)]) else {
        return r.fail("cp.async needs .ca or .cg".into(), None);
    };
    if spaces(&mut w) != [Space::SharedCta, Space::Global] {
        let hint = "write .shared::cta.global".to_owned();
        return r.fail("cp.async copies from global to shared memory".into(), Some(hint));
    }
    prefetch_size(&mut w);
    let cached = w.take("L2::cache_hint");
    r.done(&w)?;
    let dst = r.address()?;
    r.scan.expect(",")?;
    let src = r.address()?;
    r.scan.expect(",")?;
    let bytes = r.range("a size of", 0, 255)?;
    let mut part = SmallPart::All;
    if cached {
        policy(r, true)?;
    } else if r.scan.take(",") {
        part = small_part(r)?;
    }
    let bytes = u8::try_from(bytes).expect("within the range");
    r.push(Op::AsyncCopy(AsyncCopy::Small(SmallCopy { all_levels, dst, src, bytes, part })))
}

/// Reads a size, or after `@` or `!` a predicate. PTX distinguishes the two by the declaration of the register.
fn small_part(r: &mut Reader<'_, '_>) -> Parsed<SmallPart> {
    let marked = r.scan.take("@");
    let negated = r.scan.take("!");
    if marked || negated {
        return Ok(SmallPart::IgnoredWhen(Guard { reg: r.reg()?, negated }));
    }
    Ok(SmallPart::Bytes(r.value("size", "a number")?))
}

fn prefetch_size(w: &mut Words<'_>) {
    let _ = w.take("L2::64B") || w.take("L2::128B") || w.take("L2::256B");
}

/// Takes all state spaces, in the order of the text.
fn spaces(w: &mut Words<'_>) -> Vec<Space> {
    let space = |word: &str| match word {
        "shared" | "shared::cta" => Some(Space::SharedCta),
        "shared::cluster" => Some(Space::SharedCluster),
        "global" => Some(Space::Global),
        _ => None,
    };
    std::iter::from_fn(|| w.find(space)).collect()
}

fn bulk(r: &mut Reader<'_, '_>, reduce: bool, words: &[&str]) -> Parsed<()> {
    match words {
        ["commit_group"] if !reduce => return r.push(Op::AsyncCopy(AsyncCopy::BulkCommit)),
        ["wait_group", rest @ ..] if !reduce && matches!(rest, [] | ["read"]) => {
            let groups = pending_groups(r)?;
            let reads_only = !rest.is_empty();
            return r.push(Op::AsyncCopy(AsyncCopy::BulkWait { groups, reads_only }));
        }
        ["prefetch", rest @ ..] if !reduce => return bulk_prefetch(r, rest),
        _ => {}
    }
    let mut w = Words::new(if reduce { "cp.reduce.async.bulk" } else { "cp.async.bulk" }, words);
    let form = bulk_form(r, &mut w, reduce)?;
    r.done(&w)?;
    let copy = match form.spaces[..] {
        [dst @ (Space::SharedCta | Space::SharedCluster), src] => bulk_load(r, &form, dst, src)?,
        [Space::Global, Space::SharedCta] => bulk_store(r, &form)?,
        _ => {
            let hint = "for example .shared::cluster.global or .global.shared::cta".to_owned();
            return r.fail(format!("{} needs the spaces of destination and source", w.name()), Some(hint));
        }
    };
    r.push(Op::AsyncCopy(AsyncCopy::Bulk(Box::new(copy))))
}

fn bulk_form(r: &Reader<'_, '_>, w: &mut Words<'_>, reduce: bool) -> Parsed<Form> {
    let dims = dimensions(r, w)?;
    let mode = w.pick(&TILE_MODES).unwrap_or(TileMode::Tile);
    let spaces = spaces(w);
    let to_mbarrier = w.take("mbarrier::complete_tx::bytes");
    let to_group = w.take("bulk_group");
    if to_mbarrier == to_group {
        let hint = "either .mbarrier::complete_tx::bytes or .bulk_group".to_owned();
        return r.fail(format!("{} needs one way of completion", w.name()), Some(hint));
    }
    let (multicast, group, hint) = (w.multicast(), w.group(), w.take("L2::cache_hint"));
    let relaxed = if w.take("relaxed") { w.scope() } else { None };
    let _ = w.take("weak");
    if relaxed.is_some() {
        r.need(w, &["b128"])?;
    }
    let (byte_mask, ignores) = (w.take("cp_mask"), w.take("ignore_oob"));
    let reduce = if reduce {
        let op = ATOM_OPS.iter().find(|(word, _)| w.take(word)).map(|(_, op)| *op);
        let noftz = w.take("noftz");
        let ty = w.find(|word| if word == "bf16" { Some(Ty::F(16)) } else { parse_type(word) });
        if op == Some(AtomOp::Add) && ty == Some(Ty::F(16)) && !noftz {
            return r.fail("an addition of 16-bit floating point needs .noftz".into(), None);
        }
        match (op, ty) {
            (Some(op), Some(_)) if dims.is_none() => Some((op, ty)),
            (Some(op), None) if dims.is_some() => Some((op, None)),
            (None, _) => return r.fail(format!("{} needs an operation", w.name()), None),
            _ => return r.fail("a type is needed without a tensor map, and refused with one".into(), None),
        }
    } else {
        None
    };
    Ok(Form { dims, mode, spaces, to_mbarrier, multicast, group, hint, relaxed, byte_mask, ignores, reduce })
}

/// `.tensor.Nd`
fn dimensions(r: &Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Option<u8>> {
    if !w.take("tensor") {
        return Ok(None);
    }
    match w.pick(&[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)]) {
        Some(dims) => Ok(Some(dims)),
        None => r.fail("a tensor has .1d to .5d".into(), None),
    }
}

fn bulk_load(r: &mut Reader<'_, '_>, form: &Form, to: Space, from: Space) -> Parsed<BulkCopy> {
    if !form.to_mbarrier {
        let hint = "use .mbarrier::complete_tx::bytes".to_owned();
        return r.fail("a copy into shared memory completes at an mbarrier".into(), Some(hint));
    }
    let dst = BulkEnd::Bytes { space: to, addr: r.address()? };
    r.scan.expect(",")?;
    let (mut src, bytes) = bulk_source(r, form, from)?;
    let mut ignored = None;
    if form.ignores {
        r.scan.expect(",")?;
        let left = r.value("size", "a number")?;
        r.scan.expect(",")?;
        ignored = Some([left, r.value("size", "a number")?]);
    }
    r.scan.expect(",")?;
    let done = BulkDone::Mbarrier(r.address()?);
    if let BulkEnd::Tensor(tensor) = &mut src {
        let mut ahead = r.scan.clone();
        if ahead.take(",") && ahead.peek("{") {
            r.scan.expect(",")?;
            tensor.offsets = r.list(Reader::operand)?;
        }
    }
    let multicast = r.multicast(form.multicast)?;
    policy(r, form.hint)?;
    let Form { group, relaxed, reduce, .. } = *form;
    if form.byte_mask {
        return r.fail("`.cp_mask` is for copies to global memory".into(), None);
    }
    Ok(BulkCopy { dst, src, bytes, reduce, done, multicast, group, relaxed, byte_mask: None, ignored })
}

/// Reads the source of a load and its size.
fn bulk_source(r: &mut Reader<'_, '_>, form: &Form, space: Space) -> Parsed<(BulkEnd, Option<Operand>)> {
    if let Some(dims) = form.dims {
        let tensor = tensor_box(r, dims, form.mode)?;
        return Ok((BulkEnd::Tensor(tensor), None));
    }
    let addr = r.address()?;
    r.scan.expect(",")?;
    let bytes = r.value("size", "a number")?;
    Ok((BulkEnd::Bytes { space, addr }, Some(bytes)))
}

fn bulk_store(r: &mut Reader<'_, '_>, form: &Form) -> Parsed<BulkCopy> {
    if form.to_mbarrier || form.multicast.is_some() || form.group.is_some() || form.ignores {
        let hint = "use .bulk_group, and no multicast or CTA group".to_owned();
        return r.fail("a copy into global memory completes with its group".into(), Some(hint));
    }
    let dst = match form.dims {
        Some(dims) => BulkEnd::Tensor(tensor_box(r, dims, form.mode)?),
        None => BulkEnd::Bytes { space: Space::Global, addr: r.address()? },
    };
    r.scan.expect(",")?;
    let src = BulkEnd::Bytes { space: Space::SharedCta, addr: r.address()? };
    let bytes = if form.dims.is_none() {
        r.scan.expect(",")?;
        Some(r.value("size", "a number")?)
    } else {
        None
    };
    policy(r, form.hint)?;
    let byte_mask = if form.byte_mask {
        r.scan.expect(",")?;
        Some(r.value("mask of bytes", "a number")?)
    } else {
        None
    };
    let (done, reduce, relaxed) = (BulkDone::Group, form.reduce, form.relaxed);
    Ok(BulkCopy {
        dst,
        src,
        bytes,
        reduce,
        done,
        multicast: None,
        group: None,
        relaxed,
        byte_mask,
        ignored: None,
    })
}

/// Reads and drops the operand of `.L2::cache_hint`.
fn policy(r: &mut Reader<'_, '_>, hint: bool) -> Parsed<()> {
    if hint {
        r.scan.expect(",")?;
        r.operand()?;
    }
    Ok(())
}

fn bulk_prefetch(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let mut w = Words::new("cp.async.bulk.prefetch", words);
    r.need(&mut w, &["L2", "global"])?;
    let dims = dimensions(r, &mut w)?;
    let mode = w.pick(&TILE_MODES).unwrap_or(TileMode::Tile);
    let hint = w.take("L2::cache_hint");
    r.done(&w)?;
    let (src, bytes) = match dims {
        Some(dims) => {
            let mut tensor = tensor_box(r, dims, mode)?;
            let mut ahead = r.scan.clone();
            if ahead.take(",") && ahead.peek("{") {
                r.scan.expect(",")?;
                tensor.offsets = r.list(Reader::operand)?;
            }
            (BulkEnd::Tensor(tensor), None)
        }
        None => {
            let addr = r.address()?;
            r.scan.expect(",")?;
            let bytes = r.value("size", "a number")?;
            (BulkEnd::Bytes { space: Space::Global, addr }, Some(bytes))
        }
    };
    policy(r, hint)?;
    r.push(Op::AsyncCopy(AsyncCopy::Prefetch(Box::new(BulkPrefetch { src, bytes }))))
}

/// `[map, {..}]`, `[tile(x, bytes), {..}]`, `[map as tile(x, bytes), {..}]`
fn tensor_box(r: &mut Reader<'_, '_>, dims: u8, mode: TileMode) -> Parsed<TensorBox> {
    r.scan.expect("[")?;
    let (mut map, mut tile) = (None, box_bytes(r)?);
    if tile.is_none() {
        let base = r.operand()?;
        if matches!(base, Operand::Imm(_)) {
            let hint = "use a name or a register".to_owned();
            return r.fail("a number is not an address of a tensor map".into(), Some(hint));
        }
        map = Some(Address { base, offset: r.offset()? });
        if r.scan.keyword("as") {
            tile = box_bytes(r)?;
            if tile.is_none() {
                return Err(r.scan.expected("`tile(name, bytes)`"));
            }
        }
    }
    r.scan.expect(",")?;
    if !r.scan.peek("{") {
        return Err(r.scan.expected("coordinates such as `{0, 0}`"));
    }
    let coordinates = r.list(coordinate)?;
    r.scan.expect("]")?;
    Ok(TensorBox { map, tile, dims, mode, coordinates, offsets: Vec::new() })
}

fn coordinate(r: &mut Reader<'_, '_>) -> Parsed<Operand> {
    r.value("coordinate", "a number")
}

fn box_bytes(r: &mut Reader<'_, '_>) -> Parsed<Option<Tile>> {
    if !r.call("tile") {
        return Ok(None);
    }
    let (addr, bytes) = r.bytes_of()?;
    Ok(Some(Tile { addr, bytes }))
}

/// `st.async`, `red.async`
pub(super) fn remote(r: &mut Reader<'_, '_>, update: bool, words: &[&str]) -> Parsed<()> {
    let mut w = Words::new(if update { "red.async" } else { "st.async" }, words);
    let reported = w.take("mbarrier::complete_tx::bytes");
    let mmio = w.take("mmio");
    let release = w.take("release");
    let relaxed = update && w.take("relaxed");
    let _ = !update && w.take("weak");
    let space = w.space().unwrap_or(Space::Generic);
    let scope = w.scope();
    let vector = w.pick(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
    let op = if update {
        let found = ATOM_OPS.iter().find(|(word, _)| w.take(word));
        let Some((_, op)) = found else {
            return r.fail("red.async needs an operation such as `.add`".into(), None);
        };
        Some(*op)
    } else {
        None
    };
    let Some(ty) = w.find(parse_type) else {
        return r.fail(format!("{} needs a type", w.name()), Some("for example `.u32`".into()));
    };
    let taken = if reported {
        !release && !mmio && relaxed == update && scope == update.then_some(Scope::Cluster)
    } else {
        release && !relaxed && (!mmio || scope == Some(Scope::Sys))
    };
    if !taken {
        let hint = if update {
            ".relaxed.cluster with .mbarrier::complete_tx::bytes, or .release.gpu or .release.sys"
        } else {
            ".mbarrier::complete_tx::bytes and no order, or .release.gpu or .release.sys"
        };
        let message = format!("{} has no such order", w.name());
        return r.fail(message, Some(hint.into()));
    }
    r.done(&w)?;
    let addr = r.address()?;
    r.scan.expect(",")?;
    let src = r.list(remote_value)?;
    if src.len() != vector {
        return r.fail(format!("{} operands do not match the vector qualifier", src.len()), None);
    }
    let order = if reported {
        r.scan.expect(",")?;
        RemoteOrder::Mbarrier(r.address()?)
    } else if mmio {
        RemoteOrder::MmioRelease
    } else {
        match scope {
            Some(scope) => RemoteOrder::Release(scope),
            None => return r.fail("a release needs a scope".into(), Some("add .gpu or .sys".into())),
        }
    };
    r.push(Op::AsyncCopy(AsyncCopy::Remote(Box::new(RemoteWrite { op, space, ty, addr, src, order }))))
}

fn remote_value(r: &mut Reader<'_, '_>) -> Parsed<Operand> {
    r.value("value", "a number")
}
