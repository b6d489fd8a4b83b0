//! Prints one instruction: dispatches on its kind. Arithmetic, fences and barriers are printed here.

use super::access::memory;
use super::control::{control, wgmma};
use super::copy::copy;
use super::mbarrier::mbarrier;
use super::operands::Printer;
use super::proxy::proxy_order;
use super::tensor::tcgen05;
use super::tile::tile;
use super::words::{ALU_OPS, CMP_OPS, scope, type_name, word};
use crate::ir::*;

/// One instruction as PTX.
pub fn instruction(program: &Program, thread: &Thread, instr: &Instr) -> String {
    let p = Printer { program, thread };
    let guard = instr
        .guard
        .map_or(String::new(), |g| format!("@{}{} ", if g.negated { "!" } else { "" }, p.reg(g.reg)));
    format!("{guard}{}", op(&p, &instr.op))
}

fn op(p: &Printer<'_>, op: &Op) -> String {
    match op {
        Op::Mov { ty: t, dst, src } => {
            format!("mov{} {}, {}", type_name(*t), p.reg(*dst), p.operand(*src))
        }
        Op::Alu { op, ty: t, dst, a, b } => {
            let lo = if *op == AluOp::Mul { ".lo" } else { "" };
            let name = word(&ALU_OPS, op);
            format!("{name}{lo}{} {}, {}, {}", type_name(*t), p.reg(*dst), p.operand(*a), p.operand(*b))
        }
        Op::Setp { op, ty: t, dst, a, b } => {
            format!(
                "setp.{}{} {}, {}, {}",
                word(&CMP_OPS, op),
                type_name(*t),
                p.reg(*dst),
                p.operand(*a),
                p.operand(*b)
            )
        }
        Op::Selp { ty: t, dst, a, b, p: when } => {
            format!(
                "selp{} {}, {}, {}, {}",
                type_name(*t),
                p.reg(*dst),
                p.operand(*a),
                p.operand(*b),
                p.reg(*when)
            )
        }
        Op::Bra { target } => {
            let label = p.thread.labels.iter().find(|l| l.at == *target);
            format!("bra {}", label.map_or("?", |l| &l.name))
        }
        Op::Exit => "exit".into(),
        Op::Fence { order, scope: s } => {
            let order = match order {
                FenceOrder::Acquire => "acquire",
                FenceOrder::Release => "release",
                FenceOrder::AcqRel => "acq_rel",
                FenceOrder::Sc => "sc",
            };
            format!("fence.{order}.{}", scope(*s))
        }
        Op::ProxyFence(kinds) => {
            let name = |k: &ProxyFence| match k {
                ProxyFence::Alias => ".alias",
                ProxyFence::Of(Proxy::Texture) => ".texture",
                ProxyFence::Of(Proxy::Surface) => ".surface",
                ProxyFence::Of(Proxy::Constant) => ".constant",
                ProxyFence::Of(Proxy::Async) => ".async",
                ProxyFence::Of(Proxy::Tensormap) => ".tensormap",
                ProxyFence::Of(Proxy::Generic) => ".generic",
            };
            format!("fence.proxy{}", kinds.iter().map(name).collect::<String>())
        }
        Op::Bar { kind, id, count, instance } => bar(p, *kind, *id, (*count, *instance)),
        Op::ClusterArrive { relaxed: false } => "barrier.cluster.arrive".into(),
        Op::ClusterArrive { relaxed: true } => "barrier.cluster.arrive.relaxed".into(),
        Op::ClusterWait => "barrier.cluster.wait".into(),
        Op::WarpSync { mask } => format!("bar.warp.sync {}", p.operand(*mask)),
        Op::Mbarrier(m) => mbarrier(p, m),
        Op::MbarrierInitFence => "fence.mbarrier_init.release.cluster".into(),
        Op::Mapa { ty: t, shared, dst, src, rank } => {
            let shared = if *shared { ".shared::cluster" } else { "" };
            let (dst, src, rank) = (p.reg(*dst), p.operand(*src), p.operand(*rank));
            format!("mapa{shared}{} {dst}, {src}, {rank}", type_name(*t))
        }
        Op::Tcgen05(op) => tcgen05(p, op),
        Op::AsyncCopy(op) => copy(p, op),
        Op::Wgmma(op) => wgmma(p, op),
        Op::ProxyOrder(op) => proxy_order(p, op),
        Op::Control(op) => control(p, op),
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | multimem_op!() => memory(p, op),
        Op::Tile(op) => tile(p, op),
        Op::Book(book) => p.book(book),
    }
}

fn bar(
    p: &Printer<'_>,
    kind: BarKind,
    id: Operand,
    (count, instance): (Option<Operand>, Option<u32>),
) -> String {
    let instance = instance.map_or(String::new(), |i| format!(".instance{i}"));
    let id = p.operand(id);
    let count = count.map_or(String::new(), |c| format!(", {}", p.operand(c)));
    match kind {
        BarKind::Sync => format!("bar{instance}.sync {id}{count}"),
        BarKind::Arrive => format!("bar{instance}.arrive {id}{count}"),
        BarKind::Red { op, dst, pred } => {
            let (op, ty) = match op {
                BarRed::Popc => ("popc", "u32"),
                BarRed::And => ("and", "pred"),
                BarRed::Or => ("or", "pred"),
            };
            let not = if pred.negated { "!" } else { "" };
            format!("bar{instance}.red.{op}.{ty} {}, {id}{count}, {not}{}", p.reg(dst), p.reg(pred.reg))
        }
    }
}
