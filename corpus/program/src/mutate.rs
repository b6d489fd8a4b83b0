//! Mistakes in synchronisation: programs that differ from a given one in one instruction that synchronises.
//!
//! Contract: every instruction that orders, publishes or waits is deleted, weakened, narrowed, swapped with its neighbour,
//! and given another parity, count, number of bytes or barrier, each as far as it has one. A copy into shared memory is given
//! another buffer. Mutants come in the order of the text. They may be illegal: [`crate::validate`] says so.

use crate::ir::{
    Address, AsyncCopy, BulkEnd, Control, Instr, LoadOrder, MbarrierOp, Op, Operand, Program, ProxyOrder,
    Space, StoreOrder, SymbolId, Tcgen05, Wgmma,
};
use crate::reduce::passes::without;
use crate::registers::uses;

/// What was done to the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mistake {
    /// It is gone.
    Delete,
    /// Its order is weaker by one step.
    Weaken,
    /// Its scope is narrower by one step.
    Narrow,
    /// It has changed places with the next instruction.
    Move,
    /// It waits for the other parity.
    Parity,
    /// It names another number of arrivals, threads or groups.
    Count,
    /// It names another number of bytes.
    Bytes,
    /// It names another buffer.
    Buffer,
    /// It names another barrier.
    Barrier,
}

impl Mistake {
    /// All kinds, in the order of reports.
    pub const ALL: [Mistake; 9] = [
        Mistake::Delete,
        Mistake::Weaken,
        Mistake::Narrow,
        Mistake::Move,
        Mistake::Parity,
        Mistake::Count,
        Mistake::Bytes,
        Mistake::Buffer,
        Mistake::Barrier,
    ];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Mistake::Delete => "delete",
            Mistake::Weaken => "weaken",
            Mistake::Narrow => "narrow",
            Mistake::Move => "move",
            Mistake::Parity => "parity",
            Mistake::Count => "count",
            Mistake::Bytes => "bytes",
            Mistake::Buffer => "buffer",
            Mistake::Barrier => "barrier",
        }
    }
}

/// A program with one mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Its kind.
    pub mistake: Mistake,
    /// Index of the thread.
    pub thread: usize,
    /// Index of the instruction in its body, before the change.
    pub at: usize,
    /// The result.
    pub program: Program,
}

/// A change of one instruction.
#[derive(Clone, Debug)]
enum Change {
    Gone,
    Swapped,
    Another(Op),
}

/// One mistake, before it is made.
#[derive(Clone, Debug)]
pub struct Mutation {
    mistake: Mistake,
    thread: usize,
    at: usize,
    change: Change,
}

impl Mutation {
    /// Makes it in the program that it was listed for.
    pub fn made(self, program: &Program) -> Mutant {
        let Mutation { mistake, thread, at, change } = self;
        let in_body = |edit: &dyn Fn(&mut [Instr])| {
            let mut next = program.clone();
            edit(&mut next.threads[thread].body);
            next
        };
        let program = match change {
            Change::Gone => without(program, thread, at, at + 1),
            Change::Swapped => in_body(&|body| body.swap(at, at + 1)),
            Change::Another(op) => in_body(&|body| body[at].op = op.clone()),
        };
        Mutant { mistake, thread, at, program }
    }
}

/// Every mutant of `program`.
pub fn mutants(program: &Program) -> Vec<Mutant> {
    mutations(program).into_iter().map(|mutation| mutation.made(program)).collect()
}

/// Every mistake that makes a mutant, in the order of [`mutants`]. A large program has many mutants as large as itself: one who wants
/// few of them makes those.
pub fn mutations(program: &Program) -> Vec<Mutation> {
    let mut out = Vec::new();
    for (thread, code) in program.threads.iter().enumerate() {
        for (at, instr) in code.body.iter().enumerate() {
            let mut add = |mistake, change| out.push(Mutation { mistake, thread, at, change });
            if let Some(op) = elsewhere(program, &instr.op) {
                add(Mistake::Buffer, Change::Another(op));
            }
            if !synchronises(&instr.op) {
                if let Some(op) = renamed(program, &instr.op) {
                    add(Mistake::Barrier, Change::Another(op));
                }
                continue;
            }
            add(Mistake::Delete, Change::Gone);
            if swappable(program, thread, at) {
                add(Mistake::Move, Change::Swapped);
            }
            for (mistake, op) in changed(program, &instr.op) {
                add(mistake, Change::Another(op));
            }
        }
    }
    out
}

/// Whether an instruction orders, publishes or waits for something.
pub fn synchronises(op: &Op) -> bool {
    match op {
        Op::Load { order, .. } | Op::MultimemLoad { order, .. } => *order != LoadOrder::Weak,
        Op::Store { order, .. } | Op::MultimemStore { order, .. } => *order != StoreOrder::Weak,
        Op::Rmw { .. } | Op::MultimemRed { .. } => true,
        Op::Fence { .. }
        | Op::ProxyFence(_)
        | Op::Bar { .. }
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::WarpSync { .. }
        | Op::Mbarrier(_)
        | Op::MbarrierInitFence => true,
        Op::Tcgen05(op) => matches!(
            op,
            Tcgen05::WaitLoad
                | Tcgen05::WaitStore
                | Tcgen05::FenceBefore
                | Tcgen05::FenceAfter
                | Tcgen05::Commit(_)
                | Tcgen05::Dealloc { .. }
                | Tcgen05::Relinquish { .. }
        ),
        Op::AsyncCopy(copy) => {
            !matches!(copy, AsyncCopy::Small(_) | AsyncCopy::Bulk(_) | AsyncCopy::Prefetch(_))
        }
        Op::Wgmma(op) => !matches!(op, Wgmma::Product(_)),
        Op::ProxyOrder(order) => !matches!(order, ProxyOrder::ReplaceTensormap { .. }),
        Op::Control(control) => matches!(control, Control::WaitDependencies),
        register_op!() | Op::Tile(_) | jump_op!() => false,
        Op::Book(_) => false,
    }
}

/// Whether an instruction and the next can change places without a change of what registers hold: no jump, no label between
/// them, and neither reads or writes what the other writes.
fn swappable(program: &Program, thread: usize, at: usize) -> bool {
    let body = &program.threads[thread].body;
    let Some(next) = body.get(at + 1) else { return false };
    let jumps = |op: &Op| matches!(op, Op::Bra { .. } | Op::Exit);
    let target = body.iter().any(|i| matches!(i.op, Op::Bra { target } if target == at + 1));
    let reads = |i: &Instr| {
        let mut all = uses(&i.op).0;
        all.extend(i.guard.map(|g| g.reg));
        all
    };
    let clash = |writer: &Instr, other: &Instr| {
        let written = uses(&writer.op).1;
        reads(other).into_iter().chain(uses(&other.op).1).any(|r| written.contains(&r))
    };
    !target && !jumps(&next.op) && !clash(&body[at], next) && !clash(next, &body[at]) && body[at] != *next
}

/// Every variant of the instruction with one change.
fn changed(program: &Program, op: &Op) -> Vec<(Mistake, Op)> {
    let mut out = Vec::new();
    out.extend(op.weaker().into_iter().map(|op| (Mistake::Weaken, op)));
    out.extend(op.narrower().map(|op| (Mistake::Narrow, op)));
    out.extend(recounted(op));
    out.extend(renamed(program, op).map(|op| (Mistake::Barrier, op)));
    if let Op::Mbarrier(m) = op
        && let MbarrierOp::Wait(wait) = &m.op
        && let (true, Operand::Imm(parity)) = (wait.parity, wait.phase)
    {
        let (mut m, mut wait) = (m.clone(), wait.clone());
        wait.phase = Operand::Imm(parity ^ 1);
        m.op = MbarrierOp::Wait(wait);
        out.push((Mistake::Parity, Op::Mbarrier(m)));
    }
    out
}

/// Every variant of the instruction whose order is one step weaker or whose scope is one step narrower.
pub fn weakened(op: &Op) -> Vec<Op> {
    op.weaker().into_iter().chain(op.narrower()).collect()
}

/// The instruction with a number that is one step smaller or larger: arrivals by one, threads by a warp, bytes by 16.
fn recounted(op: &Op) -> Vec<(Mistake, Op)> {
    let bytes = |m: &MbarrierOp| match m {
        MbarrierOp::Arrive(arrive) => arrive.count.is_none(),
        MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => true,
        MbarrierOp::Init { .. } | MbarrierOp::Inval | MbarrierOp::Wait(_) => false,
    };
    let (mistake, step) = if matches!(op, Op::Mbarrier(m) if bytes(&m.op)) {
        (Mistake::Bytes, 16)
    } else {
        (Mistake::Count, if matches!(op, Op::Bar { .. }) { 32 } else { 1 })
    };
    let by = |by: i128| {
        let mut next = op.clone();
        let found = count(&mut next)?;
        let sum = found.get().checked_add(by).filter(|sum| *sum >= 0)?;
        found.set(sum);
        Some((mistake, next))
    };
    [-step, step].into_iter().filter_map(by).collect()
}

/// A number an instruction names.
enum Count<'o> {
    Operand(&'o mut Operand),
    Groups(&'o mut u32),
}

impl Count<'_> {
    fn get(&self) -> i128 {
        match self {
            Count::Operand(Operand::Imm(n)) => *n,
            Count::Operand(_) => 0,
            Count::Groups(n) => i128::from(**n),
        }
    }

    fn set(self, to: i128) {
        match self {
            Count::Operand(operand) => *operand = Operand::Imm(to),
            Count::Groups(n) => *n = u32::try_from(to).unwrap_or(*n),
        }
    }
}

/// The number that an instruction names as a constant.
fn count(op: &mut Op) -> Option<Count<'_>> {
    let operand = match op {
        Op::Bar { count, .. } => count.as_mut()?,
        Op::Mbarrier(m) => match &mut m.op {
            MbarrierOp::Init { count } => count,
            MbarrierOp::ExpectTx { bytes, .. } | MbarrierOp::CompleteTx { bytes, .. } => bytes,
            MbarrierOp::Arrive(arrive) => arrive.count.as_mut().or(arrive.tx.as_mut())?,
            MbarrierOp::Inval | MbarrierOp::Wait(_) => return None,
        },
        Op::AsyncCopy(AsyncCopy::Wait(groups) | AsyncCopy::BulkWait { groups, .. })
        | Op::Wgmma(Wgmma::Wait(groups)) => return Some(Count::Groups(groups)),
        Op::AsyncCopy(_) | Op::Wgmma(_) | Op::Tcgen05(_) | Op::Tile(_) | Op::Control(_) => return None,
        register_op!() | Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | jump_op!() => return None,
        multimem_op!() | fence_op!() => return None,
        Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } => return None,
        Op::Book(_) => return None,
    };
    matches!(operand, Operand::Imm(_)).then_some(Count::Operand(operand))
}

/// A copy into shared memory that fills the next object of the same size, the first behind the last. None if there is no other,
/// or the instruction is no such copy.
fn elsewhere(program: &Program, op: &Op) -> Option<Op> {
    let mut next = op.clone();
    let Op::AsyncCopy(copy) = &mut next else { return None };
    let dst = match copy {
        AsyncCopy::Small(copy) => &mut copy.dst,
        AsyncCopy::Bulk(copy) => match &mut copy.dst {
            BulkEnd::Bytes { addr, .. } => addr,
            BulkEnd::Tensor(_) => return None,
        },
        AsyncCopy::Commit | AsyncCopy::Wait(_) | AsyncCopy::WaitAll | AsyncCopy::Arrive { .. } => {
            return None;
        }
        AsyncCopy::BulkCommit | AsyncCopy::BulkWait { .. } => return None,
        AsyncCopy::Prefetch(_) | AsyncCopy::Remote(_) => return None,
    };
    let Address { base: Operand::Address(here), .. } = dst else { return None };
    let object = |symbol: SymbolId| &program.objects[program.symbols[symbol.index()].object.index()];
    let (space, bytes) = (object(*here).space, object(*here).bytes);
    let alike = |s: &SymbolId| object(*s).space == space && object(*s).bytes == bytes;
    let other = following((0..program.symbols.len()).map(SymbolId::at).filter(alike).collect(), *here)?;
    (space == Space::SharedCta).then(|| *here = other)?;
    Some(next)
}

/// The symbol behind this one, the first behind the last. None if there is no other.
fn following(symbols: Vec<SymbolId>, here: SymbolId) -> Option<SymbolId> {
    let behind = symbols.iter().find(|s| s.index() > here.index()).or(symbols.first());
    behind.copied().filter(|s| *s != here)
}

/// The instruction at another barrier: the next mbarrier that the program has, or the next number.
fn renamed(program: &Program, op: &Op) -> Option<Op> {
    let mut next = op.clone();
    if let Op::Bar { id: Operand::Imm(id), .. } = &mut next {
        *id = (*id + 1) % 16;
        return Some(next);
    }
    let addr = next.mbarrier_mut()?;
    addr.base = other_mbarrier(program, addr.base)?;
    Some(next)
}

/// The mbarrier declared behind this one, the first behind the last. None if the program has no other.
fn other_mbarrier(program: &Program, base: Operand) -> Option<Operand> {
    let Operand::Address(here) = base else { return None };
    let all = || program.threads.iter().flat_map(|t| &t.body);
    let named = |symbol: &SymbolId| {
        all().any(|i| matches!(&i.op, Op::Mbarrier(m) if m.addr.base == Operand::Address(*symbol)))
    };
    let symbols = (0..program.symbols.len()).map(SymbolId::at).filter(named).collect();
    following(symbols, here).map(Operand::Address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, parse, print};

    fn read(text: &str) -> Program {
        parse(text, Format::Native).expect("the program is legal")
    }

    #[test]
    fn each_kind_of_mistake_is_made_where_it_can_be() {
        let program = read(
            "moire \"ring\"\n.shared .b64 full;\n.shared .b64 empty;\n.shared .b32 x;\n\
             .shared .b8 s0[16];\n.shared .b8 s1[16];\n.global .b8 g[16];\n\
             P0 (gpu 0, cta 0) {\n  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 16;\n  \
             cp.async.ca.shared.global [s1], [g], 16;\n  mbarrier.init.shared::cta.b64 [full], 1;\n  mbarrier.init.shared::cta.b64 [empty], 1;\n  \
             bar.sync 0;\n  st.weak.shared.u32 [x], 1;\n  mbarrier.arrive.release.cta.shared::cta.b64 _, [full];\n}\n\
             P1 (gpu 0, cta 0) {\n  bar.sync 0;\nL:\n  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [full], 0;\n  \
             @!p bra L;\n  ld.weak.shared.u32 r0, [x];\n  fence.sc.gpu;\n}\n",
        );
        let all = mutants(&program);
        for mistake in Mistake::ALL {
            assert!(all.iter().any(|m| m.mistake == mistake), "no {}", mistake.name());
        }
        for mutant in &all {
            assert_ne!(mutant.program, program, "{mutant:?}");
            let text = print(&mutant.program);
            // A count of no arrivals, for example, is not legal.
            if let Ok(again) = parse(&text, Format::Native) {
                assert_eq!(again, mutant.program, "{text}");
            }
        }
    }

    #[test]
    fn a_wait_does_not_change_places_with_what_reads_its_answer() {
        let program = read(
            "moire \"w\"\n.shared .b64 b;\nP0 (gpu 0, cta 0) {\n  mbarrier.init.shared::cta.b64 [b], 1;\n  \
             mbarrier.test_wait.parity.shared::cta.b64 p, [b], 0;\n  selp.u32 r, 1, 0, p;\n}\n",
        );
        let moved = |m: &&Mutant| m.mistake == Mistake::Move;
        let places: Vec<usize> = mutants(&program).iter().filter(moved).map(|m| m.at).collect();
        assert_eq!(places, [0], "only the init and the wait");
    }
}
