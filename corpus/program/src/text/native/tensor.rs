//! Reads `tcgen05.*` except products.
//!
//! ```text
//! .tmem t[64];                                        columns of tensor memory, allocated from start to end
//! .shared .b8 a[4096];
//! tcgen05.ld.sync.aligned.32x32b.x2.b32 {r0, r1}, [t+lane 32+8];      lane 32, column 8
//! tcgen05.cp.cta_group::1.128x256b [t], desc(a, 4096);                all bytes of `a`
//! tcgen05.mma.cta_group::1.kind::f16 [t], desc(a, 2048), desc(a+2048, 2048), idesc(128, 64), 1;
//! ```
//!
//! Addresses in tensor memory are those of PTX: `[t+2097160]` is `[t+lane 32+8]`, and a register with the address that
//! `tcgen05.alloc` wrote can replace a name. A 64-bit register with a real descriptor can replace `desc`, a 32-bit one
//! `idesc`. The reader accepts more than the assembler; `validate` refuses the rest.

use super::product::product;
use super::reader::Reader;
use super::words::Words;
use crate::ir::*;
use crate::text::print::{COPY_SHAPES, MOVE_SHAPES};
use crate::text::scan::{Parsed, closest};

const FORMS: [&str; 11] = [
    "alloc",
    "dealloc",
    "relinquish_alloc_permit",
    "ld",
    "st",
    "wait::ld",
    "wait::st",
    "cp",
    "shift",
    "mma",
    "commit",
];

pub(super) fn tcgen05(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let (form, rest) = words.split_first().map_or(("", &words[..0]), |(f, rest)| (*f, rest));
    let mut w = Words::new(&format!("tcgen05.{form}"), rest);
    let op = match form {
        "alloc" => allocation(r, &mut w)?,
        "dealloc" => deallocation(r, &mut w)?,
        "relinquish_alloc_permit" => {
            r.need(&mut w, &["sync", "aligned"])?;
            Tcgen05::Relinquish { group: r.group(&mut w)? }
        }
        "ld" => tensor_load(r, &mut w)?,
        "st" => tensor_store(r, &mut w)?,
        "wait::ld" | "wait::st" => {
            r.need(&mut w, &["sync", "aligned"])?;
            if form == "wait::ld" { Tcgen05::WaitLoad } else { Tcgen05::WaitStore }
        }
        "cp" => tensor_copy(r, &mut w)?,
        "shift" => {
            r.need(&mut w, &["down"])?;
            let group = r.group(&mut w)?;
            r.done(&w)?;
            Tcgen05::Shift { group, addr: r.tensor_address()? }
        }
        "mma" => product(r, &mut w)?,
        "commit" => commit(r, &mut w)?,
        "fence::before_thread_sync" => Tcgen05::FenceBefore,
        "fence::after_thread_sync" => Tcgen05::FenceAfter,
        other => {
            let mut known = FORMS.to_vec();
            known.extend(["fence::before_thread_sync", "fence::after_thread_sync"]);
            let hint = closest(other, &known).map_or_else(
                || format!("known are {}", known.join(", ")),
                |k| format!("did you mean `tcgen05.{k}`?"),
            );
            return r.fail(format!("`tcgen05.{other}` is not known"), Some(hint));
        }
    };
    r.done(&w)?;
    r.push(Op::Tcgen05(op))
}

fn allocation(r: &mut Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Tcgen05> {
    r.need(w, &["sync", "aligned", "b32"])?;
    let (exclusive, group) = (w.take("exclusive"), r.group(w)?);
    let space = w.space().unwrap_or(Space::Generic);
    if matches!(space, Space::SharedCluster | Space::Global) {
        let hint = "use .shared::cta".to_owned();
        return r.fail("tcgen05.alloc writes to the shared memory of its CTA".into(), Some(hint));
    }
    r.done(w)?;
    let dst = r.address()?;
    r.scan.expect(",")?;
    let columns = r.value("number of columns", "a number")?;
    Ok(Tcgen05::Alloc { exclusive, group, space, dst, columns })
}

fn deallocation(r: &mut Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Tcgen05> {
    r.need(w, &["sync", "aligned", "b32"])?;
    let (exclusive, group) = (w.take("exclusive"), r.group(w)?);
    r.done(w)?;
    let addr = r.operand()?;
    r.scan.expect(",")?;
    let columns = r.value("number of columns", "a number")?;
    Ok(Tcgen05::Dealloc { exclusive, group, addr, columns })
}

/// Reads the shape and the repetition of a load or a store.
fn moved(r: &Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<(MoveShape, u8)> {
    let Some(shape) = w.pick(&MOVE_SHAPES) else {
        let known: Vec<&str> = MOVE_SHAPES.iter().map(|(s, _)| *s).collect();
        return r.fail(format!("{} needs a shape", w.name()), Some(format!("one of {}", known.join(", "))));
    };
    let times = w.find(|word| {
        let n: u8 = word.strip_prefix('x')?.parse().ok()?;
        (n.is_power_of_two() && !word.starts_with("x0")).then_some(n)
    });
    match times {
        Some(times) => Ok((shape, times)),
        None => r.fail(format!("{} needs .x1 to .x128", w.name()), Some("a power of two".into())),
    }
}

/// Reads the number after the address of `.16x32bx2`.
fn split(r: &mut Reader<'_, '_>, shape: MoveShape) -> Parsed<Option<i32>> {
    if shape != MoveShape::L16x32bx2 {
        return Ok(None);
    }
    r.scan.expect(",")?;
    let n = r.range("columns of", i128::from(i32::MIN), i128::from(i32::MAX))?;
    Ok(i32::try_from(n).ok())
}

fn tensor_load(r: &mut Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Tcgen05> {
    r.need(w, &["sync", "aligned"])?;
    let reduced = w.take("red");
    let (shape, times) = moved(r, w)?;
    let pack = w.take("pack::16b");
    let mut reduce = None;
    if reduced {
        let max = w.pick(&[("max", true), ("min", false)]);
        let ty = w.pick(&[("f32", Ty::F(32)), ("u32", Ty::U(32)), ("s32", Ty::S(32))]);
        let (Some(max), Some(ty)) = (max, ty) else {
            let hint = "for example `.max.f32`".to_owned();
            return r.fail("tcgen05.ld.red needs an operation and a type".into(), Some(hint));
        };
        reduce = Some((max, w.take("abs"), w.take("NaN"), ty));
    } else {
        r.need(w, &["b32"])?;
    }
    r.done(w)?;
    let dst = r.vector()?;
    r.scan.expect(",")?;
    let reduce = match reduce {
        Some((max, abs, nan, ty)) => {
            let dst = r.reg()?;
            r.scan.expect(",")?;
            Some(TensorReduction { max, abs, nan, ty, dst })
        }
        None => None,
    };
    let addr = r.tensor_address()?;
    let split = split(r, shape)?;
    Ok(Tcgen05::Load(TensorLoad { shape, times, pack, dst, reduce, addr, split }))
}

fn tensor_store(r: &mut Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Tcgen05> {
    r.need(w, &["sync", "aligned", "b32"])?;
    let (shape, times) = moved(r, w)?;
    let unpack = w.take("unpack::16b");
    r.done(w)?;
    let addr = r.tensor_address()?;
    let split = split(r, shape)?;
    r.scan.expect(",")?;
    let src = r.vector()?;
    Ok(Tcgen05::Store(TensorStore { shape, times, unpack, addr, split, src }))
}

fn tensor_copy(r: &mut Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Tcgen05> {
    let group = r.group(w)?;
    let shape = COPY_SHAPES.iter().find(|(words, _)| words.split('.').all(|word| w.has(word)));
    let Some((words, shape)) = shape else {
        let known: Vec<&str> = COPY_SHAPES.iter().map(|(s, _)| *s).collect();
        let hint = format!("one of {}", known.join(", "));
        return r.fail("tcgen05.cp needs a shape, with the warps that receive it".into(), Some(hint));
    };
    for word in words.split('.') {
        w.take(word);
    }
    let widen = if w.take("b8x16") {
        let from = w.pick(&[("b6x16_p32", Widening::Six), ("b4x16_p64", Widening::Four)]);
        if from.is_none() {
            let hint = "add .b6x16_p32 or .b4x16_p64".to_owned();
            return r.fail("`.b8x16` needs the format it comes from".into(), Some(hint));
        }
        from
    } else {
        None
    };
    r.done(w)?;
    let dst = r.tensor_address()?;
    r.scan.expect(",")?;
    let src = r.descriptor()?;
    Ok(Tcgen05::Copy { group, shape: *shape, widen, dst, src })
}

fn commit(r: &mut Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Tcgen05> {
    r.need(w, &["mbarrier::arrive::one", "b64"])?;
    let group = r.group(w)?;
    let reads_only = w.take("sync_restrict::shared::read::mma::a");
    let space = w.space().unwrap_or(Space::Generic);
    if matches!(space, Space::SharedCta | Space::Global) {
        let hint = "use .shared::cluster or no space".to_owned();
        return r.fail("tcgen05.commit takes an mbarrier of the cluster".into(), Some(hint));
    }
    let cast = w.multicast();
    r.done(w)?;
    let addr = r.address()?;
    let multicast = r.multicast(cast)?;
    Ok(Tcgen05::Commit(Commit { group, reads_only, space, addr, multicast }))
}
