//! Control flow of one thread: successors, live registers, reconvergence points, and loops that may spin.
//!
//! A loop *may spin* when some path from its head back to it passes no instruction that always writes or
//! synchronises. Whether an iteration did spin is decided on its execution: nothing written, nothing synchronised,
//! live registers as before (Kokologiannakis, Ren, Vafeiadis, "Dynamic partial order reductions for spinloops",
//! FMCAD 2021, for the idea; failed iterations are dropped, never unrolled).

use crate::tested::{Tests, tests};
use moire_program::ir::{
    AsyncCopy, AtomOp, BarKind, Control, Instr, MbarrierOp, Op, Operand, Reg, Thread, TileKind, TileOp,
};
use std::collections::BTreeSet;

/// What is known of a body before it runs.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Registers whose value at a pc can still matter, in a body that may spin.
    pub(crate) live: Vec<BTreeSet<Reg>>,
    /// Immediate post-dominator; `body.len()` is the exit.
    pub(crate) reconverge: Vec<usize>,
    /// Whether a loop with this head may spin.
    pub(crate) spin_head: Vec<bool>,
    /// Per branch: registers defined between it and its reconvergence point, if nothing else happens there.
    pub(crate) quiet: Vec<Option<Vec<Reg>>>,
    /// Whether a loaded value is ever used.
    pub(crate) uses_loads: bool,
    /// Whether a loop with this head does nothing but ask one mbarrier.
    pub(crate) waits_only: Vec<bool>,
    /// Whether a question to an mbarrier at this pc is asked, in such a loop, until the answer is yes.
    pub(crate) asked_until_yes: Vec<bool>,
    /// Per load: what is asked of its value, if that is all it is used for.
    pub(crate) tests: Vec<Option<Tests>>,
}

/// Registers an instruction writes.
pub(crate) fn defines(op: &Op) -> Vec<Reg> {
    match op {
        Op::Mov { dst, .. }
        | Op::Alu { dst, .. }
        | Op::Setp { dst, .. }
        | Op::Selp { dst, .. }
        | Op::MultimemLoad { dst, .. }
        | Op::Rmw { dst: Some(dst), .. }
        | Op::Bar { kind: BarKind::Red { dst, .. }, .. } => vec![*dst],
        Op::Load { dst, .. } => dst.clone(),
        Op::Mapa { dst, .. } => vec![*dst],
        Op::Mbarrier(m) => m.dst().into_iter().collect(),
        op => {
            let mut out = Vec::new();
            op.registers(&mut |r, written| out.extend(written.then_some(r)));
            out
        }
    }
}

/// Registers an instruction reads, its guard included.
pub(crate) fn uses(instr: &Instr) -> Vec<Reg> {
    let mut operands: Vec<Operand> = Vec::new();
    let mut out: Vec<Reg> = instr.guard.iter().map(|g| g.reg).collect();
    match &instr.op {
        Op::Mov { src, .. } => operands.push(*src),
        Op::Alu { a, b, .. } | Op::Setp { a, b, .. } => operands.extend([*a, *b]),
        Op::Selp { a, b, p, .. } => {
            operands.extend([*a, *b]);
            out.push(*p);
        }
        Op::Load { addr, .. } | Op::MultimemLoad { addr, .. } => operands.push(addr.base),
        Op::Store { addr, src, .. } => {
            operands.push(addr.base);
            operands.extend(src);
        }
        Op::Rmw { addr, a, b, .. } => {
            operands.extend([addr.base, *a]);
            operands.extend(b);
        }
        Op::MultimemStore { addr, src, .. } | Op::MultimemRed { addr, src, .. } => {
            operands.extend([addr.base, *src])
        }
        Op::Bar { kind, id, count, .. } => {
            operands.push(*id);
            operands.extend(count);
            if let BarKind::Red { pred, .. } = kind {
                out.push(pred.reg);
            }
        }
        Op::WarpSync { mask } => operands.push(*mask),
        Op::Mapa { src, rank, .. } => operands.extend([*src, *rank]),
        Op::Mbarrier(m) => {
            operands.push(m.addr.base);
            operands.extend(m.operands());
        }
        Op::Tcgen05(_) | Op::AsyncCopy(_) | Op::Wgmma(_) | Op::ProxyOrder(_) | Op::Control(_) => {
            operands.extend(instr.op.sources());
        }
        Op::Tile(op) => out.extend(op.read()),
        Op::Fence { .. }
        | Op::ProxyFence(_)
        | Op::MbarrierInitFence
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::Bra { .. }
        | Op::Exit => {}
    }
    out.extend(operands.iter().filter_map(|o| if let Operand::Reg(r) = o { Some(*r) } else { None }));
    out
}

/// Instructions that only touch registers.
pub(crate) fn register_only(op: &Op) -> bool {
    let elects = matches!(op, Op::Control(Control::Elect { .. }));
    elects
        || matches!(op, Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } | Op::Mapa { .. })
}

/// An instruction that asks an mbarrier.
fn asks(op: &Op) -> bool {
    matches!(op, Op::Mbarrier(m) if matches!(m.op, MbarrierOp::Wait(_)))
}

/// Possible next positions.
pub(crate) fn successors(body: &[Instr], pc: usize) -> Vec<usize> {
    let exit = body.len();
    match (&body[pc].op, body[pc].guard) {
        (Op::Bra { target }, None) => vec![*target],
        (Op::Bra { target }, Some(_)) if *target != pc + 1 => vec![pc + 1, *target],
        (Op::Exit, None) => vec![exit],
        (Op::Exit, Some(_)) => vec![pc + 1, exit],
        _ => vec![pc + 1],
    }
}

impl Flow {
    pub(crate) fn new(thread: &Thread) -> Flow {
        let body = &thread.body;
        let succ: Vec<Vec<usize>> = (0..body.len()).map(|pc| successors(body, pc)).collect();
        let straight = succ.iter().enumerate().all(|(pc, next)| next[..] == [pc + 1]);
        let spin_head: Vec<bool> =
            (0..body.len()).map(|head| !straight && may_spin(body, &succ, head)).collect();
        // Nobody asks without a loop.
        let spins = spin_head.contains(&true);
        let live = if spins { liveness(body, &succ) } else { vec![BTreeSet::new(); body.len() + 1] };
        let reconverge = if straight { (1..=body.len()).collect() } else { reconvergence(&succ) };
        let waits = |head| if straight { None } else { waits_only(body, &succ, head) };
        let waits: Vec<Option<usize>> = (0..body.len()).map(waits).collect();
        let mut asked_until_yes = vec![false; body.len()];
        waits.iter().flatten().for_each(|asked| asked_until_yes[*asked] = true);
        let waits_only = waits.iter().map(Option::is_some).collect();
        let quiet = (0..body.len()).map(|pc| quiet_region(body, &succ, pc, reconverge[pc])).collect();
        let loaded: BTreeSet<Reg> =
            body.iter().filter(|i| !register_only(&i.op)).flat_map(|i| defines(&i.op)).collect();
        let uses_loads = body
            .iter()
            .any(|i| uses(i).iter().any(|r| loaded.contains(r)) || is_cas(&i.op) || self_modifying(&i.op));
        let kept = (0..body.len()).filter(|pc| spin_head[*pc]).flat_map(|pc| live[pc].iter().copied());
        let tests = tests(thread, &kept.collect());
        Flow { live, reconverge, spin_head, quiet, uses_loads, waits_only, asked_until_yes, tests }
    }
}

/// Every atomic of a tile block counts.
fn is_cas(op: &Op) -> bool {
    let tile = |op: &TileOp| matches!(op, TileOp::Access(a) if matches!(a.kind, TileKind::Rmw { .. }));
    matches!(op, Op::Rmw { op: AtomOp::Cas, .. }) || matches!(op, Op::Tile(op) if tile(op))
}

/// Whether the value an instruction writes depends on what it reads.
fn self_modifying(op: &Op) -> bool {
    let later = matches!(op, Op::AsyncCopy(AsyncCopy::Remote(write)) if write.op.is_some());
    later || matches!(op, Op::Rmw { .. } | Op::MultimemRed { .. } | Op::MultimemLoad { .. } | Op::Bar { .. })
}

fn liveness(body: &[Instr], succ: &[Vec<usize>]) -> Vec<BTreeSet<Reg>> {
    let mut live: Vec<BTreeSet<Reg>> = vec![BTreeSet::new(); body.len() + 1];
    loop {
        let mut changed = false;
        for pc in (0..body.len()).rev() {
            let mut now: BTreeSet<Reg> = succ[pc].iter().flat_map(|s| live[*s].iter().copied()).collect();
            if body[pc].guard.is_none() {
                for r in defines(&body[pc].op) {
                    now.remove(&r);
                }
            }
            now.extend(uses(&body[pc]));
            changed |= now != live[pc];
            live[pc] = now;
        }
        if !changed {
            return live;
        }
    }
}

/// Immediate post-dominators by iteration over sets.
fn reconvergence(succ: &[Vec<usize>]) -> Vec<usize> {
    let n = succ.len();
    let all: BTreeSet<usize> = (0..=n).collect();
    let mut dominators = vec![all; n];
    dominators.push(BTreeSet::from([n]));
    loop {
        let mut changed = false;
        for pc in (0..n).rev() {
            let mut common = succ[pc].iter().map(|s| dominators[*s].clone());
            let mut now = common.next().unwrap_or_default();
            for other in common {
                now = now.intersection(&other).copied().collect();
            }
            now.insert(pc);
            changed |= now != dominators[pc];
            dominators[pc] = now;
        }
        if !changed {
            break;
        }
    }
    let nearest = |pc: usize| {
        let strict = dominators[pc].iter().copied().filter(|d| *d != pc);
        strict.max_by_key(|d| dominators[*d].len()).unwrap_or(n)
    };
    (0..n).map(nearest).collect()
}

/// Whether some path from `head` back to it always-writes and synchronises nothing.
fn may_spin(body: &[Instr], succ: &[Vec<usize>], head: usize) -> bool {
    let is_head = (head..body.len()).any(|pc| succ[pc].contains(&head));
    if !is_head {
        return false;
    }
    let blocks = |pc: usize| {
        let always = body[pc].guard.is_none();
        let effect = match &body[pc].op {
            Op::Rmw { op, .. } => *op != AtomOp::Cas,
            Op::Store { .. } | Op::MultimemStore { .. } | Op::MultimemRed { .. } => true,
            Op::Tile(op) => op.always_writes(),
            Op::Mbarrier(_) => !asks(&body[pc].op),
            Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } => true,
            _ => false,
        };
        always && effect
    };
    let (mut stack, mut seen) = (vec![head], BTreeSet::new());
    while let Some(pc) = stack.pop() {
        if pc >= body.len() || blocks(pc) || !seen.insert(pc) {
            continue;
        }
        for &s in &succ[pc] {
            if s == head && s <= pc {
                return true;
            }
            stack.push(s);
        }
    }
    false
}

/// Where the loop with this head asks one mbarrier, once a round, if it does nothing else.
fn waits_only(body: &[Instr], succ: &[Vec<usize>], head: usize) -> Option<usize> {
    let ends: Vec<usize> = (head..body.len()).filter(|pc| succ[*pc].contains(&head)).collect();
    if ends.is_empty() {
        return None;
    }
    // The natural loop: what comes to its end without another round.
    let (mut stack, mut inside) = (ends, BTreeSet::from([head]));
    while let Some(pc) = stack.pop() {
        if inside.insert(pc) {
            stack.extend((0..body.len()).filter(|before| succ[*before].contains(&pc)));
        }
    }
    let idle = |pc: &usize| register_only(&body[*pc].op) || matches!(body[*pc].op, Op::Bra { .. });
    let mut asked = inside.iter().copied().filter(|pc| asks(&body[*pc].op));
    let only = asked.next().filter(|_| asked.next().is_none())?;
    let rest = inside.iter().all(|pc| idle(pc) || (*pc == only && body[*pc].guard.is_none()));
    rest.then_some(only)
}

/// Registers defined between a forward branch and its reconvergence point, if nothing but registers changes there.
fn quiet_region(body: &[Instr], succ: &[Vec<usize>], pc: usize, end: usize) -> Option<Vec<Reg>> {
    if !matches!(body[pc].op, Op::Bra { .. }) {
        return None;
    }
    let (mut stack, mut seen, mut defined) = (succ[pc].clone(), BTreeSet::new(), BTreeSet::new());
    while let Some(at) = stack.pop() {
        if at == end || !seen.insert(at) {
            continue;
        }
        let inside = at > pc && at < end && at < body.len();
        if !inside
            || !(register_only(&body[at].op) || matches!(body[at].op, Op::Bra { target } if target > at))
        {
            return None;
        }
        defined.extend(defines(&body[at].op));
        stack.extend(&succ[at]);
    }
    Some(defined.into_iter().collect())
}
