//! Control flow of one thread: successors, live registers, reconvergence points, and loops that may spin.
//!
//! A loop *may spin* when some path from its head back to it passes no instruction that always writes or
//! synchronises. Whether an iteration did spin is decided on its execution: nothing written, nothing synchronised,
//! live registers as before (Kokologiannakis, Ren, Vafeiadis, "Dynamic partial order reductions for spinloops",
//! FMCAD 2021, for the idea; failed iterations are dropped, never unrolled).

use super::operands::{Regs, defines, uses};
use super::tested::{Tests, tests};
use fixedbitset::FixedBitSet;
use moire_program::ir::{AsyncCopy, AtomOp, Instr, MbarrierOp, Op, Reg, Thread, TileKind, TileOp};
use moire_program::registers::only_registers;
use moire_program::{barrier_op, fence_op, jump_op, register_op, unit_op};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;

/// What is known of a body before it runs.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// By pc, registers whose value can still matter; nothing in a body that cannot spin.
    live: Vec<FixedBitSet>,
    /// Immediate post-dominator; `body.len()` is the exit.
    pub(crate) reconverge: Vec<usize>,
    /// Whether a loop with this head may spin.
    pub(crate) spin_head: Vec<bool>,
    /// By such a head, the positions that can lead to it; nothing for other positions.
    leading: Vec<FixedBitSet>,
    /// Per branch: registers defined between it and its reconvergence point, if nothing else happens there.
    pub(crate) quiet: Vec<Option<Vec<Reg>>>,
    /// Whether a loaded value is ever used.
    pub(crate) uses_loads: bool,
    /// Whether a loop with this head does nothing but ask one mbarrier.
    pub(crate) waits_only: Vec<bool>,
    /// Whether a question to an mbarrier at this pc is asked, in such a loop, until the answer is yes.
    pub(crate) asked_until_yes: Vec<bool>,
    /// Whether nothing depends on what an instruction loads.
    pub(crate) idle: Vec<bool>,
    /// Per load: the comparisons with constants its value is used for, if it is used for nothing else.
    pub(crate) tests: Vec<Option<Tests>>,
    /// Registers that may hold the values of another run: those that `tests` does not distinguish, or that are not run again.
    pub(crate) stale: Stale,
}

/// Registers of a kept run that are to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// None of them.
    None,
    /// Those that loads with tests write, each once.
    Loaded,
    /// Possibly any.
    Any,
}

/// An instruction that asks an mbarrier.
fn asks(op: &Op) -> bool {
    matches!(op, Op::Mbarrier(m) if matches!(m.op, MbarrierOp::Wait(_)))
}

/// Positions after one.
type Next = SmallVec<[usize; 2]>;

/// Possible next positions.
pub(crate) fn successors(body: &[Instr], pc: usize) -> Next {
    let exit = Some(body.len()).filter(|_| body[pc].op == Op::Exit);
    let jump = if let Op::Bra { target } = body[pc].op { Some(target) } else { exit };
    match (jump, body[pc].guard) {
        (Some(to), None) => smallvec![to],
        (Some(to), Some(_)) if body[pc].op == Op::Exit || to != pc + 1 => smallvec![pc + 1, to],
        (Some(_) | None, _) => smallvec![pc + 1],
    }
}

impl Flow {
    /// Registers whose value at a pc can still matter.
    pub(crate) fn live(&self, pc: usize) -> impl Iterator<Item = Reg> + '_ {
        self.live.get(pc).into_iter().flat_map(registers)
    }

    /// Whether there is a path from `pc` to the head of a loop that may spin.
    pub(crate) fn leads(&self, pc: usize, head: usize) -> bool {
        self.leading[head].contains(pc)
    }

    /// `seen`: the registers whose final value is observed.
    pub(crate) fn new(thread: &Thread, seen: impl FnOnce() -> BTreeSet<Reg>) -> Flow {
        let body = &thread.body;
        let n = body.len();
        let succ: Vec<Next> = (0..n).map(|pc| successors(body, pc)).collect();
        let (reads, writes): (Vec<Regs>, Vec<Regs>) = body.iter().map(|i| (uses(i), defines(&i.op))).unzip();
        let straight = succ.iter().enumerate().all(|(pc, next)| next[..] == [pc + 1]);
        let spin_head: Vec<bool> = (0..n).map(|head| !straight && may_spin(body, &succ, head)).collect();
        let leading = (0..n).map(|pc| if spin_head[pc] { leading(&succ, pc) } else { FixedBitSet::new() });
        // Live registers matter at the heads of loops only.
        let spins = spin_head.contains(&true);
        let live = match spins {
            true => matters(thread, &succ, &spin_head, (&reads, &writes), seen()),
            false => Vec::new(),
        };
        let reconverge = if straight { (1..=n).collect() } else { reconvergence(&succ) };
        let waits = |head| if straight { None } else { waits_only(body, &succ, head) };
        let waits: Vec<Option<usize>> = (0..n).map(waits).collect();
        let mut asked_until_yes = vec![false; n];
        waits.iter().flatten().for_each(|asked| asked_until_yes[*asked] = true);
        let waits_only = waits.iter().map(Option::is_some).collect();
        let quiet = (0..n).map(|pc| quiet_region(body, &succ, pc, reconverge[pc])).collect();
        let (mut used, mut loaded) = (vec![false; thread.regs.len()], vec![false; thread.regs.len()]);
        reads.iter().flatten().for_each(|r| used[r.index()] = true);
        let brings = body.iter().zip(&writes).filter(|(i, _)| !only_registers(&i.op));
        brings.flat_map(|(_, regs)| regs).for_each(|r| loaded[r.index()] = true);
        let uses_loads = used.iter().zip(&loaded).any(|(used, loaded)| *used && *loaded)
            || body.iter().any(|i| is_cas(&i.op) || self_modifying(&i.op));
        let idle = |i: &Instr| matches!(&i.op, Op::Load { dst, .. } if dst.iter().all(|r| !used[r.index()]));
        let idle = body.iter().map(idle).collect();
        let kept: BTreeSet<Reg> =
            (0..n).filter(|pc| spin_head[*pc]).flat_map(|pc| registers(&live[pc])).collect();
        let tests = tests(thread, &reads, &kept);
        // A thread that uses nothing it loads is not run again for what it loads.
        let brings =
            |pc: usize| !only_registers(&body[pc].op) && !writes[pc].is_empty() && tests[pc].is_none();
        let stale = if !uses_loads && (0..n).any(brings) {
            Stale::Any
        } else {
            stale(body, &writes, &tests, straight)
        };
        Flow {
            live,
            reconverge,
            leading: leading.collect(),
            spin_head,
            quiet,
            uses_loads,
            idle,
            waits_only,
            asked_until_yes,
            tests,
            stale,
        }
    }
}

/// See [`Flow::stale`].
fn stale(body: &[Instr], writes: &[Regs], tests: &[Option<Tests>], straight: bool) -> Stale {
    let mut loads = (0..body.len()).filter(|pc| tests[*pc].is_some()).peekable();
    if loads.peek().is_none() {
        return Stale::None;
    }
    let once = |pc: usize| {
        let writers = writes.iter().filter(|w| w.contains(&writes[pc][0])).count();
        body[pc].guard.is_none() && writers == 1
    };
    if straight && loads.all(once) { Stale::Loaded } else { Stale::Any }
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

/// The registers of a set of their positions.
fn registers(set: &FixedBitSet) -> impl Iterator<Item = Reg> + '_ {
    set.ones().map(|r| Reg(u16::try_from(r).expect("registers are numbered by 16 bits")))
}

/// Registers whose value can still matter: in the thread, and at heads those that the loop writes and that are observed.
fn matters(
    thread: &Thread,
    succ: &[Next],
    heads: &[bool],
    (reads, writes): (&[Regs], &[Regs]),
    seen: BTreeSet<Reg>,
) -> Vec<FixedBitSet> {
    let mut end = FixedBitSet::with_capacity(thread.regs.len());
    let mut live = liveness(&thread.body, succ, (reads, writes), end.clone());
    end.extend(seen.iter().map(|r| r.index()));
    let late = liveness(&thread.body, succ, (reads, writes), end);
    for head in (0..thread.body.len()).filter(|pc| heads[*pc]) {
        let inside = natural_loop(succ, head);
        let written = inside.iter().flat_map(|pc| &writes[*pc]).map(|r| r.index());
        live[head].extend(written.filter(|r| late[head].contains(*r)));
    }
    live
}

/// By pc the registers some path from there reads before it writes them; `end`: those that are observed after the exit.
fn liveness(
    body: &[Instr],
    succ: &[Next],
    (reads, writes): (&[Regs], &[Regs]),
    end: FixedBitSet,
) -> Vec<FixedBitSet> {
    let mut now = FixedBitSet::with_capacity(end.len());
    let mut live = vec![now.clone(); body.len()];
    live.push(end);
    loop {
        let mut changed = false;
        for pc in (0..body.len()).rev() {
            now.clear();
            succ[pc].iter().for_each(|s| now.union_with(&live[*s]));
            if body[pc].guard.is_none() {
                writes[pc].iter().for_each(|r| now.remove(r.index()));
            }
            now.extend(reads[pc].iter().map(|r| r.index()));
            if now != live[pc] {
                changed = true;
                std::mem::swap(&mut now, &mut live[pc]);
            }
        }
        if !changed {
            return live;
        }
    }
}

/// Immediate post-dominators by iteration over sets.
fn reconvergence(succ: &[Next]) -> Vec<usize> {
    let n = succ.len();
    let mut now = FixedBitSet::with_capacity(n + 1);
    let mut dominators = vec![now.clone(); n + 1];
    dominators[..n].iter_mut().for_each(|all| all.insert_range(..));
    dominators[n].insert(n);
    loop {
        let mut changed = false;
        for pc in (0..n).rev() {
            now.clone_from(&dominators[succ[pc][0]]);
            succ[pc][1..].iter().for_each(|s| now.intersect_with(&dominators[*s]));
            now.insert(pc);
            if now != dominators[pc] {
                changed = true;
                std::mem::swap(&mut now, &mut dominators[pc]);
            }
        }
        if !changed {
            break;
        }
    }
    let many: Vec<usize> = dominators.iter().map(|set| set.count_ones(..)).collect();
    let nearest =
        |pc: usize| dominators[pc].ones().filter(|d| *d != pc).max_by_key(|d| many[*d]).unwrap_or(n);
    (0..n).map(nearest).collect()
}

/// The positions from which there is a path to `head`, with itself.
fn leading(succ: &[Next], head: usize) -> FixedBitSet {
    let mut out = FixedBitSet::with_capacity(succ.len() + 1);
    out.insert(head);
    loop {
        let before = out.count_ones(..);
        for pc in
            (0..succ.len()).rev().filter(|pc| succ[*pc].iter().any(|s| out.contains(*s))).collect::<Vec<_>>()
        {
            out.insert(pc);
        }
        if out.count_ones(..) == before {
            return out;
        }
    }
}

/// Whether some path from `head` back to it always-writes and synchronises nothing.
fn may_spin(body: &[Instr], succ: &[Next], head: usize) -> bool {
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
            barrier_op!() => true,
            register_op!() | Op::Load { .. } | Op::MultimemLoad { .. } | fence_op!() | unit_op!() => false,
            Op::Control(_) | jump_op!() => false,
            Op::Book(book) => book.range().is_some(),
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

/// What comes to the end of the loop with this head without another round, and the head; nothing where no loop has it.
fn natural_loop(succ: &[Next], head: usize) -> BTreeSet<usize> {
    let mut stack: Vec<usize> = (head..succ.len()).filter(|pc| succ[*pc].contains(&head)).collect();
    if stack.is_empty() {
        return BTreeSet::new();
    }
    let mut inside = BTreeSet::from([head]);
    while let Some(pc) = stack.pop() {
        if inside.insert(pc) {
            stack.extend((0..succ.len()).filter(|before| succ[*before].contains(&pc)));
        }
    }
    inside
}

/// Where the loop with this head asks one mbarrier, once a round, if it does nothing else.
fn waits_only(body: &[Instr], succ: &[Next], head: usize) -> Option<usize> {
    let inside = natural_loop(succ, head);
    if inside.is_empty() {
        return None;
    }
    let idle = |pc: &usize| only_registers(&body[*pc].op) || matches!(body[*pc].op, Op::Bra { .. });
    let mut asked = inside.iter().copied().filter(|pc| asks(&body[*pc].op));
    let only = asked.next().filter(|_| asked.next().is_none())?;
    let rest = inside.iter().all(|pc| idle(pc) || (*pc == only && body[*pc].guard.is_none()));
    rest.then_some(only)
}

/// Registers defined between a forward branch and its reconvergence point, if nothing but registers changes there.
fn quiet_region(body: &[Instr], succ: &[Next], pc: usize, end: usize) -> Option<Vec<Reg>> {
    if !matches!(body[pc].op, Op::Bra { .. }) {
        return None;
    }
    let (mut stack, mut seen, mut defined) = (succ[pc].to_vec(), BTreeSet::new(), BTreeSet::new());
    while let Some(at) = stack.pop() {
        if at == end || !seen.insert(at) {
            continue;
        }
        let elects = |op: &Op| matches!(op, Op::Control(moire_program::ir::Control::Elect { .. }));
        let inside = at > pc && at < end && at < body.len() && !elects(&body[at].op);
        if !inside
            || !(only_registers(&body[at].op) || matches!(body[at].op, Op::Bra { target } if target > at))
        {
            return None;
        }
        defined.extend(defines(&body[at].op));
        stack.extend(&succ[at]);
    }
    Some(defined.into_iter().collect())
}
