//! Instructions that touch registers only, lane by lane where lanes differ.

use super::book;
use super::event::deps::Deps;
use super::lanes::{Lanes, Spread};
use super::machine::Machine;
use super::num::number;
use super::operands::{defines, uses};
use super::trace::{RegState, TraceEnd, View};
use moire_execution::leaf::{arithmetic, compare, truncate};
use moire_program::ir::*;
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, unit_op};

/// Executes an instruction that touches registers only, for the lanes that are active.
fn registers<V: View>(m: &mut Machine<'_, V>, op: &Op) {
    compute(m, op);
    m.veil(&defines(op));
}

fn compute<V: View>(m: &mut Machine<'_, V>, op: &Op) {
    let two = |f: &dyn Fn(Value, Value) -> Value, a: RegState, b: RegState| RegState {
        value: a.value.zip(b.value).map(|(a, b)| f(a, b)),
        deps: a.deps.with(b.deps),
    };
    match op {
        Op::Mov { ty, dst, src } => {
            let s = m.operand(*src);
            // A predicate is true or false.
            let moved =
                |v: Value| if *ty == Ty::Pred { Value::from(v != 0) } else { truncate(v, ty.bytes() * 8) };
            m.regs[dst.index()] = RegState { value: s.value.map(moved), deps: s.deps };
        }
        Op::Alu { op, ty, dst, a, b } => {
            let (a, b) = (m.operand(*a), m.operand(*b));
            m.regs[dst.index()] = two(&|a, b| arithmetic(*op, *ty, a, b), a, b);
        }
        Op::Setp { op, ty, dst, a, b } => {
            let (a, b) = (m.operand(*a), m.operand(*b));
            m.regs[dst.index()] =
                two(&|a, b| Value::from(compare(*op, number(*ty, a), number(*ty, b))), a, b);
        }
        Op::Selp { ty, dst, a, b, p } => {
            let p = m.operand(Operand::Reg(*p));
            let (a, b) = (m.operand(*a), m.operand(*b));
            let chosen = p.value.map(|p| if p != 0 { a } else { b });
            let value = chosen.and_then(|c| c.value).map(|v| truncate(v, ty.bytes() * 8));
            let deps = p.deps.with(a.deps.with(b.deps));
            m.regs[dst.index()] = RegState { value, deps };
        }
        Op::Mapa { dst, src, rank, .. } => {
            let (src, rank) = (m.operand(*src), m.operand(*rank));
            // A rank or an address without a CTA gives an address that hits nothing.
            let map = |a, r| m.layout.mapped(m.program, a, truncate(r, 32), m.thread).unwrap_or(0);
            m.regs[dst.index()] = two(&map, src, rank);
        }
        Op::Control(Control::Elect { dst, pred, mask }) => {
            let mask = m.operand(*mask);
            // An empty mask elects no lane.
            let leader = mask.value.map(|mask| Value::from(truncate(mask, 32).trailing_zeros()));
            let own = Value::from(m.lanes.looked_at());
            let is = leader.map(|l| Value::from(l == own));
            m.regs[pred.index()] = RegState { value: is, deps: mask.deps };
            if let Some(dst) = dst {
                m.regs[dst.index()] = RegState { value: leader, deps: mask.deps };
            }
        }
        // These touch more than registers.
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Tile(_) => {}
        multimem_op!() | Op::Control(_) | fence_op!() | barrier_op!() | unit_op!() | jump_op!() => {}
        Op::Book(book) => book::compute(m, book),
    }
}

/// A register instruction, lane by lane where lanes differ.
pub(crate) fn register_step<V: View>(m: &mut Machine<'_, V>, op: &Op) {
    if m.lanes.alone() {
        registers(m, op);
        return;
    }
    let whole = m.lanes.whole();
    let differs = |r: &Reg| m.lanes.spread.contains_key(r) || m.lanes.known.contains_key(r);
    let elects = matches!(op, Op::Control(Control::Elect { .. }));
    let sources = uses(&Instr::new(op.clone()));
    if whole == m.lanes.active && !elects && !sources.iter().any(differs) {
        registers(m, op);
        defines(op).iter().for_each(|r| m.lanes.set(*r));
    } else {
        by_lane(m, op, whole);
    }
}

pub(crate) fn by_lane<V: View>(m: &mut Machine<'_, V>, op: &Op, whole: u32) {
    let (active, targets) = (m.lanes.active, defines(op));
    let all = |lanes: &Lanes, r: &Reg| lanes.known.get(r).copied().unwrap_or(u32::MAX);
    let sources = uses(&Instr::new(op.clone()));
    let known = sources.iter().fold(u32::MAX, |lanes, r| lanes & all(&m.lanes, r));
    let old: Vec<(RegState, Option<Spread>, u32)> = targets
        .iter()
        .map(|r| {
            let spread = m.lanes.spread.get(r).map(|s| **s);
            (m.regs[r.index()], spread, all(&m.lanes, r))
        })
        .collect();
    let mut new: Vec<Spread> =
        old.iter().map(|(s, spread, _)| spread.unwrap_or([s.value.unwrap_or(0); 32])).collect();
    let mut pending = vec![false; targets.len()];
    let mut deps = vec![Deps::NONE; targets.len()];
    for lane in (0..32u32).filter(|lane| active >> lane & 1 == 1) {
        m.lanes.focus = Some(lane);
        registers(m, op);
        for (n, r) in targets.iter().enumerate() {
            let result = m.regs[r.index()];
            pending[n] |= result.value.is_none();
            new[n][lane as usize] = result.value.unwrap_or(0);
            deps[n] = deps[n].with(result.deps);
            m.regs[r.index()] = old[n].0;
        }
    }
    m.lanes.focus = None;
    for (n, r) in targets.iter().enumerate() {
        let (was, _, knew) = old[n];
        let partial = active != whole;
        let lost = pending[n] || (partial && was.value.is_none());
        let knows = if pending[n] { known & active } else { (known & active) | (knew & !active) };
        let first = new[n][active.trailing_zeros().min(31) as usize];
        let state = RegState {
            value: (!lost).then_some(first),
            deps: if partial { was.deps.with(deps[n]) } else { deps[n] },
        };
        m.regs[r.index()] = state;
        m.lanes.spread.remove(r);
        m.lanes.known.remove(r);
        let same = (0..32).all(|l| whole >> l & 1 == 0 || new[n][l] == first);
        if !lost && !same {
            m.lanes.spread.insert(*r, Box::new(new[n]));
        }
        if knows & whole != whole {
            m.lanes.known.insert(*r, knows);
        }
    }
}

/// Stops at an instruction that needs one value where the lanes differ, or one that not all of them know.
pub(crate) fn agreed<V: View>(m: &Machine<'_, V>, instr: &Instr) -> Result<(), TraceEnd> {
    if m.lanes.spread.is_empty() && m.lanes.known.is_empty() {
        return Ok(());
    }
    let used = uses(instr);
    let missing = |r: &&Reg| m.lanes.known.get(r).is_some_and(|known| m.lanes.active & !known != 0);
    if let Some(reg) = used.iter().find(missing) {
        let name = &m.program.threads[m.thread.index()].regs[reg.index()].name;
        let what = format!("`{name}`, which only some lanes of the warp have");
        return Err(TraceEnd::Unsupported(what, instr.line));
    }
    if let Some(reg) = used.iter().find(|r| !m.lanes.uniform(**r)) {
        let name = &m.program.threads[m.thread.index()].regs[reg.index()].name;
        let what = format!("`{name}`, which differs among the lanes of the warp, in this instruction");
        return Err(TraceEnd::Unsupported(what, instr.line));
    }
    Ok(())
}
