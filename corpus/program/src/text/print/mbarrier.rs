//! Prints `mbarrier.*` with every qualifier.

use super::operands::Printer;
use super::words::{scope, space};
use crate::ir::{Mbarrier, MbarrierArrive, MbarrierOp, Scope, Space};

pub(super) fn mbarrier(p: &Printer<'_>, m: &Mbarrier) -> String {
    let at = p.address(&m.addr);
    let place = if m.space == Space::Generic { String::new() } else { space(m.space).to_owned() };
    let ordered = |plain: &str, relaxed: bool, s: Scope| {
        format!(".{}.{}", if relaxed { "relaxed" } else { plain }, scope(s))
    };
    match &m.op {
        MbarrierOp::Init { count } => format!("mbarrier.init{place}.b64 {at}, {}", p.operand(*count)),
        MbarrierOp::Inval => format!("mbarrier.inval{place}.b64 {at}"),
        MbarrierOp::Arrive(a) => {
            let order = ordered("release", a.relaxed, a.scope);
            format!("{}{order}{place}.b64 {}", arrive(a), arrival(p, a, &at))
        }
        MbarrierOp::ExpectTx { scope: s, bytes } => {
            let order = ordered("", true, *s);
            format!("mbarrier.expect_tx{order}{place}.b64 {at}, {}", p.operand(*bytes))
        }
        MbarrierOp::CompleteTx { scope: s, bytes } => {
            let order = ordered("", true, *s);
            format!("mbarrier.complete_tx{order}{place}.b64 {at}, {}", p.operand(*bytes))
        }
        MbarrierOp::Wait(w) => {
            let form = if w.suspends { "try_wait" } else { "test_wait" };
            let parity = if w.parity { ".parity" } else { "" };
            let order = ordered("acquire", w.relaxed, w.scope);
            let hint = w.hint.map_or(String::new(), |h| format!(", {}", p.operand(h)));
            let (dst, phase) = (p.reg(w.dst), p.operand(w.phase));
            format!("mbarrier.{form}{parity}{order}{place}.b64 {dst}, {at}, {phase}{hint}")
        }
    }
}

fn arrival(p: &Printer<'_>, a: &MbarrierArrive, at: &str) -> String {
    let dst = a.dst.map_or("_", |d| p.reg(d));
    let more: String = a.tx.iter().chain(&a.count).map(|o| format!(", {}", p.operand(*o))).collect();
    format!("{dst}, {at}{more}")
}

fn arrive(a: &MbarrierArrive) -> String {
    let drop = if a.drop { "_drop" } else { "" };
    let expect = if a.tx.is_some() { ".expect_tx" } else { "" };
    let no_complete = if a.no_complete { ".noComplete" } else { "" };
    format!("mbarrier.arrive{drop}{expect}{no_complete}")
}
