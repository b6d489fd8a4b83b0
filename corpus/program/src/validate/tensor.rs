//! Rules for tensor-core instructions that the assembler refuses: vectors, kinds and their modifiers, columns, CTA groups.
//! All are `PtxasEqual`; features of single architectures are in `targets`.

use super::report::Report;
use crate::ir::*;

pub(super) type Wrong = Option<(&'static str, String, Option<String>)>;

pub(super) fn wrong(id: &'static str, what: &str, hint: &str) -> Wrong {
    let hint = (!hint.is_empty()).then(|| hint.to_owned());
    Some((id, what.to_owned(), hint))
}

pub(super) fn check(report: &mut Report<'_>, thread: &Thread, instr: &Instr) {
    let found = if let Op::Tcgen05(op) = &instr.op {
        tcgen05(op)
    } else if let Op::Wgmma(Wgmma::Product(product)) = &instr.op {
        warpgroup(product)
    } else {
        None
    };
    if let Some((id, what, hint)) = found {
        report.at(id, thread, instr, &what, hint);
    }
}

/// Checks that a kernel has instructions for single CTAs or for pairs, not both. Threads of one grid are a kernel.
pub(super) fn groups(report: &mut Report<'_>) {
    let program = report.program;
    let mut first: Vec<(&Thread, CtaGroup)> = Vec::new();
    for thread in &program.threads {
        for instr in &thread.body {
            let Some(group) = instr.op.cta_group() else { continue };
            let same = |t: &Thread| {
                let key = |p: &Placement| (p.host, p.gpu, p.stream, p.grid);
                key(&t.place) == key(&thread.place)
            };
            match first.iter().find(|(t, _)| same(t)) {
                None => first.push((thread, group)),
                Some((_, other)) if *other != group => {
                    let what = "the kernel has both .cta_group::1 and .cta_group::2";
                    report.at("cta-group", thread, instr, what, None);
                    return;
                }
                Some(_) => {}
            }
        }
    }
}

fn tcgen05(op: &Tcgen05) -> Wrong {
    match op {
        Tcgen05::Alloc { exclusive, columns, .. } | Tcgen05::Dealloc { exclusive, columns, .. } => {
            self::columns(*exclusive, *columns)
        }
        Tcgen05::Load(load) => moved(load.shape, load.times, load.dst.len())
            .or_else(|| load.reduce.as_ref().and_then(|r| reduction(load, r))),
        Tcgen05::Store(store) => moved(store.shape, store.times, store.src.len()),
        Tcgen05::Mma(mma) => product(mma),
        Tcgen05::Commit(commit) => mask(commit.multicast),
        Tcgen05::Relinquish { .. } | Tcgen05::Copy { .. } | Tcgen05::Shift { .. } => None,
        Tcgen05::WaitLoad | Tcgen05::WaitStore | Tcgen05::FenceBefore | Tcgen05::FenceAfter => None,
    }
}

/// Checks that a literal multicast mask fits its width.
fn mask(multicast: Option<Multicast>) -> Wrong {
    let multicast = multicast?;
    let bits = if multicast.wide { 32 } else { 16 };
    match multicast.mask {
        Operand::Imm(n) if !(-(1i128 << (bits - 1))..1i128 << bits).contains(&n) => {
            wrong("tensor-form", &format!("the mask {n} has more than {bits} bits"), "a bit for each CTA")
        }
        _ => None,
    }
}

fn columns(exclusive: bool, columns: Operand) -> Wrong {
    let Operand::Imm(n) = columns else { return None };
    let unit = i128::from(TENSOR_UNIT);
    let most = i128::from(TENSOR_COLUMNS);
    let fits = n > 0 && n % unit == 0;
    let power = (unit..=most).contains(&n) && n & (n - 1) == 0;
    let hint = if exclusive { "a multiple of 32" } else { "32, 64, 128, 256 or 512" };
    let taken = fits && (exclusive || power);
    if taken { None } else { wrong("tensor-columns", &format!("{n} columns cannot be allocated"), hint) }
}

/// Registers of a thread for a shape and a repetition; none if this combination does not exist.
pub(super) fn vector(shape: MoveShape, times: u8) -> Option<usize> {
    let each = match shape {
        MoveShape::L32x32b | MoveShape::L16x64b | MoveShape::L16x32bx2 => 1,
        MoveShape::L16x128b => 2,
        MoveShape::L16x256b => 4,
    };
    Some(each * usize::from(times)).filter(|n| *n <= 128)
}

fn moved(shape: MoveShape, times: u8, registers: usize) -> Wrong {
    match vector(shape, times) {
        None => wrong("tensor-form", &format!("this shape has no .x{times}"), "at most 128 registers"),
        Some(n) if n != registers => {
            wrong("tensor-form", &format!("this shape has {n} registers, not {registers}"), "")
        }
        Some(_) => None,
    }
}

fn reduction(load: &TensorLoad, reduce: &TensorReduction) -> Wrong {
    if !matches!(load.shape, MoveShape::L32x32b | MoveShape::L16x32bx2) || load.times < 2 || load.pack {
        let hint = ".32x32b or .16x32bx2, .x2 or more, without .pack::16b";
        return wrong("tensor-form", "tcgen05.ld.red has no such shape", hint);
    }
    let float = reduce.ty == Ty::F(32);
    if (reduce.abs || reduce.nan) && !float {
        return wrong("tensor-form", ".abs and .NaN are for .f32", "");
    }
    None
}

fn product(mma: &Mma) -> Wrong {
    let bad = |what: &str, hint: &str| wrong("tensor-form", what, hint);
    if mma.kind.scaled() != mma.scales.is_some() {
        return if mma.scales.is_none() {
            bad("this kind needs its scale factors", "add .block_scale and the addresses of both")
        } else {
            bad("this kind has no scale factors", "")
        };
    }
    if mma.stationary && (mma.kind.scaled() || mma.group == CtaGroup::Two) {
        return bad(
            ".ws does not exist for this kind or for pairs",
            "use .cta_group::1 and no scale factors",
        );
    }
    if mma.stationary && (mma.ashift || mma.collector_a.is_some() || !mma.lanes_off.is_empty()) {
        return bad(".ws has no .ashift, no collector of A and no mask of lanes", "");
    }
    let numbered = mma.collector_b.is_some_and(|b| b.buffer.is_some());
    if mma.collector_b.is_some() && numbered != mma.stationary {
        return bad(
            "this product has no such collector",
            ".collector::b0 to b3 for .ws, .collector::b otherwise",
        );
    }
    if mma.kind.scaled() && (mma.ashift || mma.scale_input.is_some() || !mma.lanes_off.is_empty()) {
        return bad("a product with scale factors has no .ashift, no mask of lanes and no input scale", "");
    }
    shifted(mma).or_else(|| scale(mma)).or_else(|| lanes(mma))
}

fn shifted(mma: &Mma) -> Wrong {
    let kept = matches!(mma.collector_a, Some(CollectorUse::Fill | CollectorUse::Use));
    if mma.ashift && (matches!(mma.a, Factor::Shared(_)) || kept) {
        let hint = "without .collector::a::fill and .collector::a::use";
        return wrong("tensor-form", ".ashift is for A in tensor memory", hint);
    }
    None
}

fn scale(mma: &Mma) -> Wrong {
    let bad = |what: &str, hint: &str| wrong("tensor-form", what, hint);
    if mma.scale_input.is_some_and(|n| n > 15) {
        return bad("the input scale is between 0 and 15", "");
    }
    if mma.scale_input.is_some() && matches!(mma.kind, MmaKind::F8f6f4 | MmaKind::Ti16) {
        return bad("this kind has no input scale", "");
    }
    let size = mma.scales.map(|s| s.size)?;
    let known = match mma.kind {
        MmaKind::Mxf8f6f4 => matches!(size, ScaleSize::Default | ScaleSize::Block32 | ScaleSize::Times1),
        MmaKind::Mxf4 => matches!(size, ScaleSize::Default | ScaleSize::Block32 | ScaleSize::Times2),
        _ => !matches!(size, ScaleSize::Default | ScaleSize::Times1),
    };
    if known {
        None
    } else {
        bad("this kind has no such scale vector", "for example .block32, .block16 of mxf4nvf4")
    }
}

fn lanes(mma: &Mma) -> Wrong {
    let wanted = 4 * usize::from(mma.group.ctas());
    let have = mma.lanes_off.len();
    if have == 0 || have == wanted {
        return None;
    }
    wrong("tensor-form", &format!("the mask of lanes must have {wanted} registers"), "a bit for each lane")
}

/// Checks a warpgroup product: types, shape, registers and immediates.
fn warpgroup(product: &WgmmaProduct) -> Wrong {
    use WgmmaType::*;
    let bad = |what: &str| wrong("tensor-form", what, "");
    let [d, a, b] = product.types;
    let (k, results, step): (u16, &[WgmmaType], u16) = match (a, b) {
        (F16, F16) => (16, &[F16, F32], 8),
        (Bf16, Bf16) => (16, &[F32], 8),
        (Tf32, Tf32) => (8, &[F32], 8),
        (E4m3 | E5m2, E4m3 | E5m2) => (32, &[F16, F32], 8),
        (S8 | U8, S8 | U8) => (32, &[S32], 16),
        (B1, B1) => (256, &[S32], 16),
        _ => return bad("this combination of types does not exist"),
    };
    let n = product.n;
    let columns = (8..=256).contains(&n) && (n.is_multiple_of(step) || matches!(n, 8 | 24));
    if product.k != k || !results.contains(&d) || !columns {
        return bad("this shape does not exist for these types");
    }
    let wanted = if d == F16 { n / 4 } else { n / 2 };
    if product.d.len() != usize::from(wanted) {
        return bad(&format!("D must have {wanted} registers"));
    }
    let in_registers = matches!(&product.a, WgmmaFactor::Registers(_));
    if matches!(&product.a, WgmmaFactor::Registers(regs) if regs.len() != 4) {
        return bad("A must have four registers");
    }
    let wanted = match a {
        F16 | Bf16 => 4 - usize::from(in_registers),
        Tf32 | E4m3 | E5m2 => 2,
        _ => 0,
    };
    let signs = product.immediates.iter().take(2).all(|i| i.abs() == 1);
    let turns = product.immediates.iter().skip(2).all(|i| (0..=1).contains(i));
    if product.immediates.len() != wanted || !signs || !turns {
        return bad(&format!("there must be {wanted} immediates: signs 1 or -1, then 0 or 1"));
    }
    None
}
