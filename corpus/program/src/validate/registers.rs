//! Lints about registers: never written, without a width that fits all uses, arithmetic on floating-point bits.

use super::report::Report;
use super::widths::{PREDICATE, extended};
use crate::ir::*;
use crate::registers::uses;
use crate::text::scan::closest;
use std::collections::BTreeMap;

pub(super) fn check(report: &mut Report<'_>) {
    let program = report.program;
    let mut told = BTreeMap::new();
    for (t, thread) in program.threads.iter().enumerate() {
        unwritten(report, t, thread, &mut told);
        let mut wants = vec![Want::default(); thread.regs.len()];
        for instr in &thread.body {
            floats(report, thread, instr);
            for (reg, bits, exact) in widths(&instr.op, instr.guard) {
                let want = &mut wants[reg.index()];
                let clash = want.add(bits, exact);
                if clash && !std::mem::replace(&mut want.told, true) {
                    let what = format!(
                        "`{}` is {} here and {} before",
                        thread.regs[reg.index()].name,
                        width_name(bits),
                        width_name(want.bits())
                    );
                    let hint = Some("PTX declares each register with one width".to_owned());
                    report.at("register-width", thread, instr, &what, hint);
                }
            }
        }
    }
}

/// Each name is remarked upon once: where it is first read. `told` has its remark, and how many other threads read it.
fn unwritten<'p>(
    report: &mut Report<'_>,
    t: usize,
    thread: &'p Thread,
    told: &mut BTreeMap<&'p str, (usize, usize)>,
) {
    let mut open: Vec<bool> = thread.regs.iter().map(|r| r.init == RegInit::Value(0)).collect();
    for instr in &thread.body {
        for reg in uses(&instr.op).1 {
            open[reg.index()] = false;
        }
    }
    for instr in &thread.body {
        for reg in uses(&instr.op).0.into_iter().chain(instr.guard.map(|g| g.reg)) {
            if std::mem::take(&mut open[reg.index()]) {
                let name = thread.regs[reg.index()].name.as_str();
                if let Some((remark, more)) = told.get_mut(name) {
                    *more += 1;
                    report.again(*remark, *more);
                    continue;
                }
                told.insert(name, (report.out.len(), 0));
                let what = format!("nothing writes `{name}`: it is 0");
                report.at(
                    "unwritten-register",
                    thread,
                    instr,
                    &what,
                    misspelt(report.program, &instr.op, (reg, name)),
                );
            }
        }
    }
    let mut asked = Vec::new();
    let program = report.program;
    let exprs = program.filter.iter().chain(program.conditions.iter().map(|c| &c.expr));
    exprs.for_each(|e| super::condition::terms(e, &mut |term| asked.push(term)));
    for term in asked {
        if let Term::Reg(owner, reg) = term
            && owner.index() == t
            && std::mem::take(&mut open[reg.index()])
        {
            let what = format!("nothing writes `{}:{}`", thread.name, thread.regs[reg.index()].name);
            report.about("unwritten-register", what, None);
        }
    }
}

/// An object of a name near that of a register that is used as an address.
fn misspelt(program: &Program, op: &Op, (reg, name): (Reg, &str)) -> Option<String> {
    let (Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Rmw { addr, .. }) = op else { return None };
    let known: Vec<&str> = program.symbols.iter().map(|s| s.name.as_str()).collect();
    let near = closest(name, &known).filter(|_| addr.base == Operand::Reg(reg))?;
    Some(format!("no object has this name, so it is a register; did you mean the object `{near}`?"))
}

fn floats(report: &mut Report<'_>, thread: &Thread, instr: &Instr) {
    let ty = match &instr.op {
        Op::Alu { ty, .. } | Op::Setp { ty, .. } => Some(*ty),
        Op::Rmw { ty, op, .. } | Op::MultimemLoad { ty, op, .. } | Op::MultimemRed { ty, op, .. } => {
            Some(*ty).filter(|_| !matches!(op, AtomOp::Exch | AtomOp::Cas))
        }
        Op::Mov { .. } | Op::Selp { .. } | Op::Mapa { .. } | jump_op!() => None,
        Op::Load { .. } | Op::Store { .. } | Op::MultimemStore { .. } | Op::Mbarrier(_) => None,
        fence_op!() | barrier_op!() | unit_op!() | Op::Tile(_) | Op::Control(_) => None,
        Op::Book(_) => None,
    };
    if matches!(ty, Some(Ty::F(_) | Ty::F16x2 | Ty::Bf16x2)) {
        report.at("float-arithmetic", thread, instr, "the bits are treated as integers", None);
    }
}

/// The widths that the uses of a register need so far, in bits.
#[derive(Clone, Copy, Default)]
struct Want {
    exact: Option<u32>,
    least: u32,
    /// Whether a clash has been reported.
    told: bool,
}

impl Want {
    fn bits(&self) -> u32 {
        self.exact.unwrap_or(self.least)
    }

    /// Adds the width of another use. Returns whether it contradicts the earlier ones; then it is not added.
    fn add(&mut self, bits: u32, exact: bool) -> bool {
        let clash = match (self.exact, exact) {
            (Some(have), true) => have != bits,
            (Some(have), false) => have < bits,
            (None, true) => self.least > bits,
            (None, false) => false,
        };
        if !clash && exact {
            self.exact = Some(bits);
        } else if !clash {
            self.least = self.least.max(bits);
        }
        clash
    }
}

/// The width with which PTX must declare each register of `thread`: `PREDICATE` for a predicate, 64 bits if its uses take
/// any width.
///
/// # Errors
/// The first register that no declaration fits.
pub fn classes(thread: &Thread) -> Result<Vec<u32>, Reg> {
    let mut wants = vec![Want::default(); thread.regs.len()];
    for instr in &thread.body {
        for (reg, bits, exact) in widths(&instr.op, instr.guard) {
            if wants[reg.index()].add(bits, exact) {
                return Err(reg);
            }
        }
    }
    Ok(wants.iter().map(|w| if w.bits() == 0 { 64 } else { w.bits() }).collect())
}

fn width_name(bits: u32) -> String {
    if bits == PREDICATE { "a predicate".into() } else { format!("{bits} bits wide") }
}

/// The width that each register operand needs, and whether exactly. `ld` and `st` also take wider registers.
fn widths(op: &Op, guard: Option<Guard>) -> Vec<(Reg, u32, bool)> {
    let bits = |ty: Ty| if ty == Ty::Pred { PREDICATE } else { (ty.bytes() * 8).max(16) };
    let mut out: Vec<(Reg, u32, bool)> = guard.iter().map(|g| (g.reg, PREDICATE, true)).collect();
    let mut see = |operand: Operand, bits: u32, exact: bool| {
        if let Operand::Reg(reg) = operand {
            out.push((reg, bits, exact));
        }
    };
    match op {
        Op::Mov { ty, dst, src } => [Operand::Reg(*dst), *src].iter().for_each(|o| see(*o, bits(*ty), true)),
        Op::Alu { op, ty, dst, a, b } => {
            [Operand::Reg(*dst), *a].iter().for_each(|o| see(*o, bits(*ty), true));
            let shift = matches!(op, AluOp::Shl | AluOp::Shr);
            see(*b, if shift { 32 } else { bits(*ty) }, true);
        }
        Op::Setp { ty, dst, a, b, .. } => {
            see(Operand::Reg(*dst), PREDICATE, true);
            [*a, *b].iter().for_each(|o| see(*o, bits(*ty), true));
        }
        Op::Selp { ty, dst, a, b, p } => {
            [Operand::Reg(*dst), *a, *b].iter().for_each(|o| see(*o, bits(*ty), true));
            see(Operand::Reg(*p), PREDICATE, true);
        }
        Op::Load { ty, dst, .. } => dst.iter().for_each(|d| see(Operand::Reg(*d), bits(*ty), false)),
        Op::Store { ty, src, .. } => src.iter().for_each(|s| see(*s, bits(*ty), false)),
        Op::Rmw { ty, dst, a, b, .. } => {
            let all = dst.map(Operand::Reg).into_iter().chain([*a]).chain(*b);
            all.for_each(|o| see(o, bits(*ty), true));
        }
        Op::MultimemLoad { ty, dst, .. } => see(Operand::Reg(*dst), bits(*ty), true),
        Op::MultimemStore { ty, src, .. } | Op::MultimemRed { ty, src, .. } => see(*src, bits(*ty), true),
        Op::Bar { kind, id, count, .. } => {
            see(*id, 32, true);
            count.iter().for_each(|c| see(*c, 32, true));
            if let BarKind::Red { op, dst, pred } = kind {
                see(Operand::Reg(*dst), if *op == BarRed::Popc { 32 } else { PREDICATE }, true);
                see(Operand::Reg(pred.reg), PREDICATE, true);
            }
        }
        Op::WarpSync { mask } => see(*mask, 32, true),
        Op::Mbarrier(m) => mbarrier(m).into_iter().for_each(|(o, bits)| see(o, bits, true)),
        Op::Mapa { ty, dst, src, rank, .. } => {
            [Operand::Reg(*dst), *src].iter().for_each(|o| see(*o, bits(*ty), true));
            see(*rank, 32, true);
        }
        Op::Tcgen05(_)
        | Op::AsyncCopy(_)
        | Op::Wgmma(_)
        | Op::ProxyOrder(_)
        | Op::Tile(_)
        | Op::Control(_) => {
            extended(op).into_iter().for_each(|(o, bits)| see(o, bits, true));
        }
        Op::MbarrierInitFence => {}
        Op::Fence { .. } | Op::ProxyFence(_) | Op::ClusterArrive { .. } | Op::ClusterWait => {}
        jump_op!() => {}
        Op::Book(book) => {
            book.widths().into_iter().for_each(|(reg, bits)| see(Operand::Reg(reg), bits, true))
        }
    }
    if let Some((space, address)) = op.place()
        && !matches!(space, Space::SharedCta | Space::SharedCluster)
    {
        see(address.base, 64, true);
    }
    out
}

/// Widths of the operands of an mbarrier instruction: 64 bits for a state; 32 for a count, a parity or a time limit; a
/// predicate for the result of a wait.
fn mbarrier(m: &Mbarrier) -> Vec<(Operand, u32)> {
    let state = |reg: Option<Reg>| reg.map(|r| (Operand::Reg(r), 64)).into_iter();
    match &m.op {
        MbarrierOp::Arrive(a) => state(a.dst).chain(m.operands().into_iter().map(|o| (o, 32))).collect(),
        MbarrierOp::Wait(w) => {
            let phase = (w.phase, if w.parity { 32 } else { 64 });
            let hint = w.hint.map(|h| (h, 32));
            [(Operand::Reg(w.dst), PREDICATE), phase].into_iter().chain(hint).collect()
        }
        MbarrierOp::Init { .. }
        | MbarrierOp::Inval
        | MbarrierOp::ExpectTx { .. }
        | MbarrierOp::CompleteTx { .. } => m.operands().into_iter().map(|o| (o, 32)).collect(),
    }
}
