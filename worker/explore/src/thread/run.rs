//! A run of a thread: from its start through branches and loops as far as the answers reach.
//!
//! Branches on pending values end the trace. Where control dependencies end at reconvergence, one whose arms only touch
//! registers is passed; elsewhere what follows depends on it, and a cycle of dependencies is no execution. Loops that may
//! spin stop at a *gate* in front of each iteration. A read-modify-write takes two indices whether or not it writes, so that
//! a pending compare-and-swap hides nothing.
//!
//! An instruction of a barrier, an mbarrier, a copy or a tensor core holds its thread until its operands are known, as
//! issue in program order would. A load or store with a pending address holds nothing. Both engines do this; no model
//! says it.

use super::arith;
use super::collective::only_registers;
use super::event::Kind;
use super::event::deps::{Deps, THREAD_EVENTS};
use super::event::labels::labels;
use super::event::mbarrier::Act;
use super::execute;
use super::flow::Flow;
use super::ids::InstanceId;
use super::layout::Layout;
use super::machine::Machine;
use super::operands::{defines, uses};
use super::tensor;
use super::trace::{FrontEnd, Gate, RegState, Trace, TraceEnd, View};
use super::warpgroup;
use moire_cat::vocabulary::sets;
use moire_execution::leaf::asked;
use moire_program::ir::*;
use std::cell::OnceCell;

/// Head, events before the iteration, live registers at its start, and those of them that differ among lanes.
type Snapshot = (usize, usize, Vec<(Reg, RegState)>, Vec<(Reg, Box<[Value; 32]>)>);

/// Runs `thread` as far as the view allows.
pub(crate) fn run<V: View>(
    program: &Program,
    layout: &Layout,
    flow: &Flow,
    thread: ThreadId,
    front: FrontEnd,
    view: &V,
) -> Trace {
    let mut machine = Machine::new(program, layout, thread, front, view);
    let m = &mut machine;
    let (end, pc) = walk(m, flow);
    let end = resolved(m, end);
    exit(m, &end);
    let Machine { events, unsure, regs, flags, .. } = machine;
    Trace { events, unsure, regs, flags, end, pc, run_ahead: OnceCell::new() }
}

/// Where a run goes after an instruction.
enum Continuation {
    Behind,
    Jump(usize),
    Stop(TraceEnd),
}

fn walk<V: View>(m: &mut Machine<'_, V>, flow: &Flow) -> (TraceEnd, usize) {
    let body = &m.program.threads[m.thread.index()].body;
    let mut loops: Vec<Snapshot> = Vec::new();
    let mut jumps = vec![0u32; body.len()];
    let mut pc = 0;
    loop {
        pc = m.lanes.reconverge(pc);
        debug_assert!(m.lanes.active != 0, "some lane is active");
        if pc >= body.len() {
            return (TraceEnd::Done, body.len());
        }
        m.control.retain(|c| !m.front.reconverging || c.1 != pc);
        if flow.spin_head[pc]
            && let Some(end) = enter_loop(m, flow, pc, &mut loops)
        {
            return (end, pc);
        }
        let next = match step(m, flow, &body[pc], pc) {
            Continuation::Behind => pc + 1,
            Continuation::Jump(target) => target,
            Continuation::Stop(end) => return (end, pc),
        };
        if m.events.len() > THREAD_EVENTS - 8 {
            let reason = format!("a thread with more than {} events", THREAD_EVENTS - 8);
            return (TraceEnd::Unsupported(reason, body[pc].line), pc);
        }
        if next <= pc {
            debug_assert!(m.lanes.active & !m.lanes.whole() == 0, "an active lane is not over");
            jumps[pc] += 1;
            if spun(m, next, &loops) {
                return (TraceEnd::SpinFail, pc);
            }
            if jumps[pc] > m.front.loop_bound {
                return (TraceEnd::Bound, pc);
            }
        }
        pc = next;
    }
}

fn enter_loop<V: View>(
    m: &mut Machine<'_, V>,
    flow: &Flow,
    head: usize,
    loops: &mut Vec<Snapshot>,
) -> Option<TraceEnd> {
    let line = m.program.threads[m.thread.index()].body[head].line;
    if let Err(end) = m.lanes.may_wait(line) {
        return Some(end);
    }
    let index = m.next_index();
    match m.view.gate(index) {
        Gate::Closed => return Some(TraceEnd::Gate(index)),
        Gate::Stuck => return Some(TraceEnd::Stuck(index)),
        Gate::Open => {}
    }
    let live = flow.live(head).map(|r| (r, m.regs[r.index()])).collect();
    loops.retain(|l| l.0 != head);
    let spread = m.lanes.kept(flow.live(head));
    loops.push((head, m.events.len(), live, spread));
    None
}

/// Whether the iteration that ends by jumping to `head` changed nothing.
fn spun<V: View>(m: &Machine<'_, V>, head: usize, loops: &[Snapshot]) -> bool {
    let Some((_, since, live, spread)) = loops.iter().find(|l| l.0 == head) else { return false };
    if *spread != m.lanes.kept(live.iter().map(|l| l.0)) {
        return false;
    }
    let idle = |kind: Kind| match kind {
        Kind::Read | Kind::Fence => true,
        Kind::Mbarrier(u) => matches!(u.act, Act::Wait { .. }),
        Kind::Write | Kind::Barrier(_) | Kind::Allocator(_) => false,
    };
    let silent = m.events[*since..].iter().flatten().all(|e| idle(e.kind) && e.tensor().is_none());
    // What may be a write may change something.
    let unsure = m.unsure.iter().any(|e| usize::from(e.index) >= *since);
    let same = |(r, was): &(Reg, RegState)| {
        let now = m.regs[r.index()];
        (was.value.is_some() || was.deps.unknown())
            && (now.value, now.deps.unknown()) == (was.value, was.deps.unknown())
    };
    silent && !unsure && live.iter().all(same)
}

fn step<V: View>(m: &mut Machine<'_, V>, flow: &Flow, instr: &Instr, pc: usize) -> Continuation {
    if let Some(guard) = instr.guard {
        if let Some(taken) = m.lanes.split(guard) {
            return diverge(m, flow, instr, pc, taken);
        }
        let state = m.operand(Operand::Reg(guard.reg));
        match state.value.filter(|_| !state.deps.unknown()) {
            // A predicated register instruction is a selection: a data dependency, whatever the predicate is.
            value if only_registers(m, &instr.op) => {
                let read = uses(instr).into_iter().chain(defines(&instr.op));
                let deps = read.fold(state.deps, |d, r| d.with(m.regs[r.index()].deps));
                match value {
                    None => blur(m, &defines(&instr.op), deps),
                    Some(v) if (v != 0) != guard.negated => arith::register_step(m, &instr.op),
                    Some(_) => {}
                }
                for r in defines(&instr.op) {
                    m.regs[r.index()].deps = deps;
                }
                return Continuation::Behind;
            }
            None => return branch_on_pending(m, flow, pc, state.deps),
            Some(v) => {
                if state.deps != Deps::NONE {
                    let until = if matches!(instr.op, Op::Bra { .. } | Op::Exit) {
                        flow.reconverge[pc]
                    } else {
                        pc + 1
                    };
                    m.control.push((state.deps, until));
                }
                if (v != 0) == guard.negated {
                    return Continuation::Behind;
                }
            }
        }
    }
    warpgroup::guard_registers(m, instr);
    tensor::consume(m, instr, pc);
    if let Op::Bra { target } = instr.op {
        return Continuation::Jump(target);
    }
    if instr.op == Op::Exit {
        return Continuation::Jump(m.lanes.leave().unwrap_or(usize::MAX));
    }
    if only_registers(m, &instr.op) {
        arith::register_step(m, &instr.op);
        return Continuation::Behind;
    }
    execute::operation(m, instr, pc).map_or_else(Continuation::Stop, |()| Continuation::Behind)
}

/// Ends the trace. But where the dependency ends with the arms and these only touch registers, the trace goes on behind them with
/// those registers pending.
fn branch_on_pending<V: View>(m: &mut Machine<'_, V>, flow: &Flow, pc: usize, deps: Deps) -> Continuation {
    if !m.front.reconverging {
        return Continuation::Stop(TraceEnd::Pending(deps));
    }
    let Some(defined) = &flow.quiet[pc] else {
        let line = m.program.threads[m.thread.index()].body[pc].line;
        let reason =
            "memory operations under a branch on an undecided value whose arms meet again".to_owned();
        return Continuation::Stop(TraceEnd::Unsupported(reason, line));
    };
    blur(m, defined, deps);
    Continuation::Jump(flow.reconverge[pc])
}

fn blur<V: View>(m: &mut Machine<'_, V>, regs: &[Reg], deps: Deps) {
    for r in regs {
        let old = m.regs[r.index()].deps;
        m.regs[r.index()] = RegState { value: None, deps: old.with(deps) };
    }
}

/// An instruction under a guard that holds for the lanes `taken` only.
fn diverge<V: View>(
    m: &mut Machine<'_, V>,
    flow: &Flow,
    instr: &Instr,
    pc: usize,
    taken: u32,
) -> Continuation {
    let whole = m.lanes.active;
    if let Op::Bra { target } = instr.op {
        m.lanes.part(flow.reconverge[pc], target, taken);
    } else if instr.op == Op::Exit {
        m.lanes.drop_out(taken);
    } else if only_registers(m, &instr.op) {
        m.lanes.active = taken;
        arith::by_lane(m, &instr.op, whole);
        m.lanes.active = whole;
    } else {
        let depth = m.lanes.narrow(taken);
        let done = execute::operation(m, instr, pc);
        m.lanes.widen(depth, whole);
        return done.map_or_else(Continuation::Stop, |()| Continuation::Behind);
    }
    Continuation::Behind
}

/// The end of a trace: no branch and no condition may depend on unknown data.
fn resolved<V: View>(m: &Machine<'_, V>, end: TraceEnd) -> TraceEnd {
    let branch = matches!(&end, TraceEnd::Pending(d) if d.unknown());
    let held = m.regs.iter().any(|r| r.deps.unknown());
    let mut written =
        m.events.iter().flatten().filter(|e| e.needs.data.unknown() && e.is_in(sets::W)).peekable();
    if !branch && !held && written.peek().is_none() {
        return end;
    }
    let asked = asked(m.program);
    let register = end == TraceEnd::Done
        && asked.registers.iter().any(|(t, r)| *t == m.thread && m.regs[r.index()].deps.unknown());
    let object = |i: InstanceId| m.layout.instances[i].object;
    let memory = written.any(|e| e.access.is_some_and(|a| asked.objects.contains(&object(a.instance))));
    if branch || register || memory {
        return TraceEnd::Unsupported("a branch or a question about copied or computed data".into(), 0);
    }
    end
}

/// The exit of the thread.
fn exit<V: View>(m: &mut Machine<'_, V>, end: &TraceEnd) {
    if m.program.launched && *end == TraceEnd::Done {
        let pc = m.program.threads[m.thread.index()].body.len();
        let nothing = Instr { guard: None, op: Op::Exit, line: 0, column: 0 };
        let event = m.blank(&nothing, pc, Kind::Fence, labels(&[sets::EXIT]), None);
        m.events.push(Some(event));
    }
}
