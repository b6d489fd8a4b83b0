//! Fences between proxies of the published model, and barriers whose threads are those of the text.

use super::reader::Reader;
use crate::ir::*;
use crate::text::scan::Parsed;

/// Reads a fence between proxies if the words behind `fence.proxy` are proxies. Returns whether they are.
pub(super) fn proxy_fence(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<bool> {
    let of = |word: &&str| match *word {
        "alias" => Some(ProxyFence::Alias),
        "texture" => Some(ProxyFence::Of(Proxy::Texture)),
        "surface" => Some(ProxyFence::Of(Proxy::Surface)),
        "constant" => Some(ProxyFence::Of(Proxy::Constant)),
        "generic" => Some(ProxyFence::Of(Proxy::Generic)),
        "async" => Some(ProxyFence::Of(Proxy::Async)),
        "tensormap" => Some(ProxyFence::Of(Proxy::Tensormap)),
        _ => None,
    };
    match words.iter().map(of).collect() {
        Some(proxies) => r.push(Op::ProxyFence(proxies)).map(|()| true),
        None => Ok(false),
    }
}

/// Reads a barrier of a CTA; `aligned` says that its name is `barrier`, which takes that word.
pub(super) fn barrier(r: &mut Reader<'_, '_>, aligned: bool, words: &[&str]) -> Parsed<()> {
    let dropped = |word: &str| word == "cta" || (aligned && word == "aligned");
    let words: Vec<&str> = words.iter().copied().filter(|w| !dropped(w)).collect();
    let instance = words.first().and_then(|w| w.strip_prefix("instance")).and_then(|n| n.parse().ok());
    let words = if instance.is_some() { &words[1..] } else { &words[..] };
    match words {
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
        _ => {
            let hint = "known are bar.sync, bar.arrive, bar.red, bar.warp.sync, barrier.cluster.arrive, \
                        barrier.cluster.wait";
            r.fail("this is not a barrier instruction".into(), Some(hint.into()))
        }
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
