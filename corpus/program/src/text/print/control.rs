//! Prints election, launch control, warpgroup products and ignored instructions.

use super::operands::Printer;
use super::words::{space, word};
use crate::ir::*;

/// Element types of warpgroup products.
pub(crate) const WGMMA_TYPES: [(&str, WgmmaType); 10] = [
    ("f16", WgmmaType::F16),
    ("bf16", WgmmaType::Bf16),
    ("tf32", WgmmaType::Tf32),
    ("f32", WgmmaType::F32),
    ("e4m3", WgmmaType::E4m3),
    ("e5m2", WgmmaType::E5m2),
    ("s8", WgmmaType::S8),
    ("u8", WgmmaType::U8),
    ("b1", WgmmaType::B1),
    ("s32", WgmmaType::S32),
];

pub(super) fn control(p: &Printer<'_>, op: &Control) -> String {
    let sink = |dst: &Option<Reg>| dst.map_or("_".to_owned(), |d| p.reg(d).to_owned());
    match op {
        Control::Elect { dst, pred, mask } => {
            format!("elect.sync {}|{}, {}", sink(dst), p.reg(*pred), p.operand(*mask))
        }
        Control::Collective(collective) => exchange(p, collective),
        Control::LaunchDependents | Control::WaitDependencies => op.name().to_owned(),
        Control::TryCancel { multicast, space: s, addr, mbarrier } => {
            let all = if *multicast { ".multicast::cluster::all" } else { "" };
            format!(
                "{}.async{}.mbarrier::complete_tx::bytes{all}.b128 {}, {}",
                op.name(),
                space(*s),
                p.address(addr),
                p.address(mbarrier)
            )
        }
        Control::QueryCancel { ask, dst, src } => {
            let all: Vec<String> = dst.iter().map(sink).collect();
            let form = match ask {
                CancelQuery::IsCanceled => "is_canceled.pred",
                CancelQuery::FirstCta => "get_first_ctaid.v4.b32",
                CancelQuery::FirstCtaAxis(0) => "get_first_ctaid::x.b32",
                CancelQuery::FirstCtaAxis(1) => "get_first_ctaid::y.b32",
                CancelQuery::FirstCtaAxis(_) => "get_first_ctaid::z.b32",
            };
            let dst = if all.len() == 1 { all[0].clone() } else { format!("{{{}}}", all.join(", ")) };
            format!("{}.{form}.b128 {dst}, {}", op.name(), p.operand(*src))
        }
        Control::Repeat(Trips::Number(number)) => format!("repeat {number} {{"),
        Control::Repeat(Trips::Free { name, least, less }) => {
            let fewer = if *less == 0 { String::new() } else { format!(" - {less}") };
            let more = if least == less { String::new() } else { format!(" >= {}", least - less) };
            format!("repeat {name}{fewer}{more} {{")
        }
        Control::EndRepeat => "}".to_owned(),
        Control::Ignored(what) => ignored(p, what),
    }
}

/// The qualifiers of an exchange, behind the name of its family.
pub(crate) const EXCHANGES: [(&str, Exchange); 10] = [
    ("vote.sync.all.pred", Exchange::Vote(Vote::All)),
    ("vote.sync.any.pred", Exchange::Vote(Vote::Any)),
    ("vote.sync.uni.pred", Exchange::Vote(Vote::Uni)),
    ("vote.sync.ballot.b32", Exchange::Vote(Vote::Ballot)),
    ("shfl.sync.up.b32", Exchange::Shuffle(Shuffle::Up)),
    ("shfl.sync.down.b32", Exchange::Shuffle(Shuffle::Down)),
    ("shfl.sync.bfly.b32", Exchange::Shuffle(Shuffle::Butterfly)),
    ("shfl.sync.idx.b32", Exchange::Shuffle(Shuffle::Index)),
    ("match.any.sync.b32", Exchange::MatchAny),
    ("match.all.sync.b32", Exchange::MatchAll),
];

/// Reductions of `redux.sync`.
pub(crate) const REDUCTIONS: [(&str, AtomOp, Ty); 9] = [
    ("add.u32", AtomOp::Add, Ty::U(32)),
    ("add.s32", AtomOp::Add, Ty::S(32)),
    ("min.u32", AtomOp::Min, Ty::U(32)),
    ("min.s32", AtomOp::Min, Ty::S(32)),
    ("max.u32", AtomOp::Max, Ty::U(32)),
    ("max.s32", AtomOp::Max, Ty::S(32)),
    ("and.b32", AtomOp::And, Ty::B(32)),
    ("or.b32", AtomOp::Or, Ty::B(32)),
    ("xor.b32", AtomOp::Xor, Ty::B(32)),
];

fn exchange(p: &Printer<'_>, c: &Collective) -> String {
    let name = match c.form {
        Exchange::Reduce(op, ty) => {
            let form = REDUCTIONS.iter().find(|r| (r.1, r.2) == (op, ty)).map_or("?", |r| r.0);
            format!("redux.sync.{form}")
        }
        form => word(&EXCHANGES, &form).to_owned(),
    };
    let pred = c.pred.map_or(String::new(), |pred| format!("|{}", p.reg(pred)));
    let not = if c.negated { "!" } else { "" };
    let from = match c.form {
        Exchange::Shuffle(_) => format!(", {}, {}", p.operand(c.from[0]), p.operand(c.from[1])),
        _ => String::new(),
    };
    format!("{name} {}{pred}, {not}{}{from}, {}", p.reg(c.dst), p.operand(c.src), p.operand(c.mask))
}

fn ignored(p: &Printer<'_>, what: &Ignored) -> String {
    match what {
        Ignored::SetMaxRegisters { inc, count } => {
            format!("setmaxnreg.{}.sync.aligned.u32 {count}", if *inc { "inc" } else { "dec" })
        }
        Ignored::Nanosleep(time) => format!("nanosleep.u32 {}", p.operand(*time)),
        Ignored::PerformanceEvent(n) => format!("pmevent {n}"),
        Ignored::Prefetch(addr) => format!("prefetch.global.L2 {}", p.address(addr)),
        Ignored::PrefetchTensormap(addr) => format!("prefetch.tensormap {}", p.address(addr)),
    }
}

pub(super) fn wgmma(p: &Printer<'_>, op: &Wgmma) -> String {
    let name = op.name();
    match op {
        Wgmma::Fence | Wgmma::Commit => format!("{name}.sync.aligned"),
        Wgmma::Wait(groups) => format!("{name}.sync.aligned {groups}"),
        Wgmma::Product(product) => {
            let types: Vec<&str> = product.types.iter().map(|t| word(&WGMMA_TYPES, t)).collect();
            let bits = if product.types[1] == WgmmaType::B1 { ".and.popc" } else { "" };
            let a = match &product.a {
                WgmmaFactor::Shared(matrix) => p.descriptor(matrix),
                WgmmaFactor::Registers(regs) => p.braces(regs),
            };
            let immediates: String = product.immediates.iter().map(|n| format!(", {n}")).collect();
            format!(
                "{name}.sync.aligned.m64n{}k{}.{}{bits} {}, {a}, {}, {}{immediates}",
                product.n,
                product.k,
                types.join("."),
                p.braces(&product.d),
                p.descriptor(&product.b),
                p.enable_input(product.input)
            )
        }
    }
}
