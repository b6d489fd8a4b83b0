//! Fences and barriers.

use super::proxy::proxy_order;
use super::qualifiers::scope_of;
use super::reader::Reader;
use crate::ir::*;
use crate::text::scan::{Parsed, closest};

pub(super) fn fence(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    match words {
        ["mbarrier_init", "release", "cluster"] => return r.push(Op::MbarrierInitFence),
        ["mbarrier_init", ..] => {
            let hint = "its one form is fence.mbarrier_init.release.cluster".to_owned();
            return r.fail("this is not a form of fence.mbarrier_init".into(), Some(hint));
        }
        _ => {}
    }
    if proxy_order(r, words)? {
        return Ok(());
    }
    if let ["proxy", kinds @ ..] = words {
        let mut out = Vec::new();
        for kind in kinds {
            out.push(match *kind {
                "alias" => ProxyFence::Alias,
                "texture" => ProxyFence::Of(Proxy::Texture),
                "surface" => ProxyFence::Of(Proxy::Surface),
                "constant" => ProxyFence::Of(Proxy::Constant),
                "generic" => ProxyFence::Of(Proxy::Generic),
                "async" => ProxyFence::Of(Proxy::Async),
                "tensormap" => ProxyFence::Of(Proxy::Tensormap),
                other => {
                    return r.fail(
                        format!("`fence.proxy.{other}` is not known"),
                        Some("known are alias, async, texture, surface, constant, generic".into()),
                    );
                }
            });
        }
        if out.is_empty() {
            return r
                .fail("fence.proxy needs a proxy".into(), Some("for example `fence.proxy.alias`".into()));
        }
        return r.push(Op::ProxyFence(out));
    }
    let (mut order, mut scope) = (None, None);
    for word in words {
        let old = match (*word, scope_of(word)) {
            (_, Some(s)) => scope.replace(s).is_some(),
            ("sc", _) => order.replace(FenceOrder::Sc).is_some(),
            ("acq_rel", _) => order.replace(FenceOrder::AcqRel).is_some(),
            ("acquire", _) => order.replace(FenceOrder::Acquire).is_some(),
            ("release", _) => order.replace(FenceOrder::Release).is_some(),
            (other, _) => {
                let known = ["sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys", "proxy"];
                let hint = closest(other, &known).map(|k| format!("did you mean `.{k}`?"));
                return r.fail(format!("`.{other}` is not a qualifier of fence"), hint);
            }
        };
        if old {
            return r.fail(format!("`.{word}` follows another qualifier of its kind"), None);
        }
    }
    let order = order.unwrap_or(FenceOrder::AcqRel);
    match scope {
        Some(scope) => r.push(Op::Fence { order, scope }),
        None => r.fail("a fence needs a scope".into(), Some("add .cta, .cluster, .gpu or .sys".into())),
    }
}

pub(super) fn membar(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let scope = match words {
        ["cta"] => Scope::Cta,
        ["gl"] => Scope::Gpu,
        ["sys"] => Scope::Sys,
        _ => return r.fail("expected membar.cta, membar.gl or membar.sys".into(), None),
    };
    r.push(Op::Fence { order: FenceOrder::Sc, scope })
}

pub(super) fn barrier(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let words: Vec<&str> = words.iter().copied().filter(|w| *w != "cta").collect();
    let instance = words.first().and_then(|w| w.strip_prefix("instance")).and_then(|n| n.parse().ok());
    let words = if instance.is_some() { &words[1..] } else { &words[..] };
    match words {
        ["cluster", "arrive"] | ["cluster", "arrive", "release"] => r.push(Op::ClusterArrive { relaxed: false }),
        ["cluster", "arrive", "relaxed"] => r.push(Op::ClusterArrive { relaxed: true }),
        ["cluster", "wait"] | ["cluster", "wait", "acquire"] => r.push(Op::ClusterWait),
        ["warp", "sync"] => {
            let mask = r.operand()?;
            r.push(Op::WarpSync { mask })
        }
        ["sync"] | ["arrive"] => {
            let id = r.operand()?;
            let count = if r.scan.take(",") { Some(r.operand()?) } else { None };
            let kind = if words[0] == "sync" { BarKind::Sync } else { BarKind::Arrive };
            r.push(Op::Bar { kind, id, count, instance })
        }
        ["red", op, ty] => {
            let op = match (*op, *ty) {
                ("popc", "u32") => BarRed::Popc,
                ("and", "pred") => BarRed::And,
                ("or", "pred") => BarRed::Or,
                _ => {
                    let hint = "it is .popc.u32, .and.pred or .or.pred".to_owned();
                    return r.fail("bar.red has no such form".into(), Some(hint));
                }
            };
            reduction(r, op, instance)
        }
        _ => r.fail("this is not a barrier instruction".into(), Some("known are bar.sync, bar.arrive, bar.red, bar.warp.sync, barrier.cluster.arrive, barrier.cluster.wait".into())),
    }
}

fn reduction(r: &mut Reader<'_, '_>, op: BarRed, instance: Option<u32>) -> Parsed<()> {
    let dst = r.reg()?;
    r.scan.expect(",")?;
    let id = r.operand()?;
    r.scan.expect(",")?;
    let mut negated = r.scan.take("!");
    let mut second = r.operand()?;
    let mut count = None;
    if r.scan.take(",") {
        count = Some(second);
        negated = r.scan.take("!");
        second = r.operand()?;
    }
    let Operand::Reg(reg) = second else {
        return r.fail("the last operand of bar.red is a predicate".into(), None);
    };
    let kind = BarKind::Red { op, dst, pred: Guard { reg, negated } };
    r.push(Op::Bar { kind, id, count, instance })
}
