//! `elect`, `griddepcontrol`, `clusterlaunchcontrol`, `wgmma`, and instructions that are read and ignored.

use super::reader::Reader;
use super::words::Words;
use crate::ir::*;
use crate::text::print::WGMMA_TYPES;
use crate::text::scan::Parsed;

/// `elect.sync d|p, mask`
pub(super) fn elect(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    if words != ["sync"] {
        return r.fail("elect has the one form elect.sync".into(), None);
    }
    let dst = if r.scan.keyword("_") { None } else { Some(r.reg()?) };
    r.scan.expect("|")?;
    let pred = r.reg()?;
    r.scan.expect(",")?;
    let mask = r.value("mask of lanes", "a number")?;
    r.push(Op::Control(Control::Elect { dst, pred, mask }))
}

pub(super) fn grid_dependency(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let op = match words {
        ["launch_dependents"] => Control::LaunchDependents,
        ["wait"] => Control::WaitDependencies,
        _ => {
            let hint = "known are griddepcontrol.launch_dependents and griddepcontrol.wait".to_owned();
            return r.fail("this is not a form of griddepcontrol".into(), Some(hint));
        }
    };
    r.push(Op::Control(op))
}

pub(super) fn cluster_launch(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let op = match words {
        ["try_cancel", rest @ ..] => {
            let mut w = Words::new("clusterlaunchcontrol.try_cancel", rest);
            r.need(&mut w, &["async", "mbarrier::complete_tx::bytes", "b128"])?;
            let multicast = w.take("multicast::cluster::all");
            let space = w.space().unwrap_or(Space::Generic);
            if matches!(space, Space::SharedCluster | Space::Global) {
                let what = "clusterlaunchcontrol.try_cancel writes to its own CTA";
                return r.fail(what.into(), Some("use .shared::cta".into()));
            }
            r.done(&w)?;
            let addr = r.address()?;
            r.scan.expect(",")?;
            Control::TryCancel { multicast, space, addr, mbarrier: r.address()? }
        }
        ["query_cancel", "is_canceled", "pred", "b128"] => query(r, CancelQuery::IsCanceled, 1)?,
        ["query_cancel", "get_first_ctaid", "v4", "b32", "b128"] => query(r, CancelQuery::FirstCta, 4)?,
        ["query_cancel", "get_first_ctaid::x", "b32", "b128"] => query(r, CancelQuery::FirstCtaAxis(0), 1)?,
        ["query_cancel", "get_first_ctaid::y", "b32", "b128"] => query(r, CancelQuery::FirstCtaAxis(1), 1)?,
        ["query_cancel", "get_first_ctaid::z", "b32", "b128"] => query(r, CancelQuery::FirstCtaAxis(2), 1)?,
        _ => {
            let hint = "known are .try_cancel.async, .query_cancel.is_canceled.pred.b128 and \
                        .query_cancel.get_first_ctaid";
            return r.fail("this is not a form of clusterlaunchcontrol".into(), Some(hint.into()));
        }
    };
    r.push(Op::Control(op))
}

fn query(r: &mut Reader<'_, '_>, ask: CancelQuery, count: usize) -> Parsed<Control> {
    let dst = r.list(reg_or_sink)?;
    if dst.len() != count || (count == 1 && dst[0].is_none()) {
        return r.fail(format!("this query has {count} destinations"), None);
    }
    r.scan.expect(",")?;
    let src = Operand::Reg(r.reg()?);
    Ok(Control::QueryCancel { ask, dst, src })
}

fn reg_or_sink(r: &mut Reader<'_, '_>) -> Parsed<Option<Reg>> {
    if r.scan.keyword("_") { Ok(None) } else { r.reg().map(Some) }
}

/// Reads `setmaxnreg`, `nanosleep`, `pmevent` and `prefetch`, which the model ignores.
pub(super) fn ignored(r: &mut Reader<'_, '_>, name: &str, words: &[&str]) -> Parsed<()> {
    let what = match (name, words) {
        ("setmaxnreg", [way @ ("inc" | "dec"), "sync", "aligned", "u32"]) => {
            let count = r.range("a register count of", 24, 256)?;
            if count % 8 != 0 {
                return r.fail(format!("{count} is not a multiple of 8"), None);
            }
            let count = u16::try_from(count).expect("within the range");
            Ignored::SetMaxRegisters { inc: *way == "inc", count }
        }
        ("nanosleep", ["u32"]) => Ignored::Nanosleep(r.value("time", "a number")?),
        ("pmevent", []) => {
            let n = r.range("an event of", 0, 15)?;
            Ignored::PerformanceEvent(u8::try_from(n).expect("within the range"))
        }
        ("prefetch", ["tensormap"] | ["param", "tensormap"]) => Ignored::PrefetchTensormap(r.address()?),
        ("prefetch", ["global", "L1" | "L2"] | ["L1" | "L2"]) | ("prefetchu", ["L1"]) => {
            Ignored::Prefetch(r.address()?)
        }
        _ => {
            let hint = "known are setmaxnreg.inc.sync.aligned.u32, setmaxnreg.dec.sync.aligned.u32, \
                        nanosleep.u32, pmevent, prefetch.global.L2, prefetch.tensormap";
            return r.fail(format!("this is not a form of {name}"), Some(hint.into()));
        }
    };
    r.push(Op::Control(Control::Ignored(what)))
}

pub(super) fn wgmma(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let (form, rest) = words.split_first().map_or(("", &words[..0]), |(f, rest)| (*f, rest));
    let mut w = Words::new(&format!("wgmma.{form}"), rest);
    r.need(&mut w, &["sync", "aligned"])?;
    let op = match form {
        "fence" => Wgmma::Fence,
        "commit_group" => Wgmma::Commit,
        "wait_group" => {
            let groups = r.range("a number of groups of", 0, i128::from(u32::MAX))?;
            Wgmma::Wait(u32::try_from(groups).expect("within the range"))
        }
        "mma_async" => warpgroup_product(r, &mut w)?,
        _ => {
            let hint = "known are fence, commit_group, wait_group, mma_async".to_owned();
            return r.fail(format!("`wgmma.{form}` is not known"), Some(hint));
        }
    };
    r.done(&w)?;
    r.push(Op::Wgmma(op))
}

fn warpgroup_product(r: &mut Reader<'_, '_>, w: &mut Words<'_>) -> Parsed<Wgmma> {
    let shape = w.find(|word| {
        let (n, k) = word.strip_prefix("m64n")?.split_once('k')?;
        Some((n.parse::<u16>().ok()?, k.parse::<u16>().ok()?))
    });
    let mut types = Vec::new();
    let known = |word: &str| WGMMA_TYPES.iter().find(|(t, _)| *t == word).map(|(_, t)| *t);
    while let Some(ty) = w.find(known) {
        types.push(ty);
    }
    let (Some((n, k)), &[d_ty, a_ty, b_ty]) = (shape, &types[..]) else {
        let hint = "for example .m64n8k16.f32.f16.f16".to_owned();
        return r.fail("wgmma.mma_async needs a shape and three types".into(), Some(hint));
    };
    if a_ty == WgmmaType::B1 {
        r.need(w, &["and", "popc"])?;
    }
    r.done(w)?;
    let d = r.vector()?;
    r.scan.expect(",")?;
    let a = if r.scan.peek("{") {
        WgmmaFactor::Registers(r.vector()?)
    } else {
        WgmmaFactor::Shared(r.descriptor()?)
    };
    r.scan.expect(",")?;
    let b = r.descriptor()?;
    r.scan.expect(",")?;
    let input = r.enable_input()?;
    let mut immediates = Vec::new();
    while immediates.len() < 4 && r.scan.take(",") {
        let n = r.range("an immediate of", -1, 1)?;
        immediates.push(i8::try_from(n).expect("within the range"));
    }
    let types = [d_ty, a_ty, b_ty];
    Ok(Wgmma::Product(Box::new(WgmmaProduct { n, k, types, d, a, b, input, immediates })))
}
