//! Instructions that can be read but that no engine models under the given model. The engines abstain from a program that
//! has one, by its name and line, before they start. It does not matter whether the instruction is reachable.

use moire_cat::{Feature, Model};
use moire_program::ir::{
    Access, Book, Control, FenceOrder, Ignored, Instr, LoadOrder, ObjectId, Op, Operand, Parts, Program,
    Proxy, ProxyOrder, RegDecl, RegInit, RmwOrder, StoreOrder, Thread, ThreadId, TileOp, Told, Ty,
};
use moire_program::{barrier_op, jump_op, multimem_op};

/// The first such instruction, and its line.
pub fn unmodelled(program: &Program, model: &Model) -> Option<(String, u32)> {
    // A model with tile blocks has rules for few instructions of PTX threads.
    let tiles = model.covers(Feature::TileBlocks);
    let mut instrs = program.threads.iter().flat_map(|t| &t.body);
    let found = instrs.find_map(|i| reason(&i.op, model, tiles).map(|reason| (reason, i.line)));
    let found = found.or_else(|| multimem(program)).or_else(|| awaits_later(program));
    let found = found.or_else(|| if tiles { beside_tiles(program) } else { None });
    found.or_else(|| if !model.covers(Feature::MixedCounts) { mixed_counts(program) } else { None })
}

/// A multimem name outside `multimem` instructions: access through it by any other instruction is undefined (PTX ISA 9.2,
/// 9.7.9.14).
fn multimem(program: &Program) -> Option<(String, u32)> {
    let names =
        |o: &Operand| matches!(o, Operand::Address(s) if !program.symbols[s.index()].multimem.is_empty());
    let meant = |op: &Op| matches!(op, multimem_op!());
    let held = |r: &RegDecl| matches!(r.init, RegInit::Address(s) if names(&Operand::Address(s)));
    let found = program.threads.iter().find_map(|t| {
        let first = t.regs.iter().any(held).then(|| t.body.first().map_or(0, |i| i.line));
        let other = |i: &&Instr| !meant(&i.op) && i.op.sources().iter().any(names);
        first.or_else(|| t.body.iter().find(other).map(|i| i.line))
    })?;
    Some(("a multimem address outside multimem instructions".to_owned(), found))
}

/// A loop that reads what a grid behind its own writes. That grid may never start, if the loop never ends; in an execution all threads
/// run, and a loop is taken to see the last write in the end, so the engines would not find the hang.
fn awaits_later(program: &Program) -> Option<(String, u32)> {
    let stream = |t: &Thread| (t.place.host, t.place.gpu, t.place.stream);
    let later = |t: &&Thread, of: &Thread| stream(t) == stream(of) && t.place.grid > of.place.grid;
    let meets = |a: Option<ObjectId>, b: Option<ObjectId>| a.is_none() || b.is_none() || a == b;
    for thread in &program.threads {
        let mut behind = program.threads.iter().filter(|t| later(t, thread)).peekable();
        if behind.peek().is_none() {
            continue;
        }
        let written: Vec<_> = behind.flat_map(|t| &t.body).filter_map(|i| written(program, &i.op)).collect();
        let loops = (0..).zip(&thread.body).filter_map(|(at, i): (usize, &Instr)| {
            let Op::Bra { target } = i.op else { return None };
            thread.body.get(target..at)
        });
        let reads = loops.flatten().filter(|i| !matches!(i.op.access(), None | Some(Access::Store(_))));
        let found = reads.into_iter().find(|i| written.iter().any(|w| meets(*w, object(program, &i.op))));
        if let Some(read) = found {
            return Some(("a loop that reads what a grid behind it writes".to_owned(), read.line));
        }
    }
    None
}

/// The object that an instruction accesses; none if that is not known.
fn object(program: &Program, op: &Op) -> Option<ObjectId> {
    let Operand::Address(symbol) = op.place()?.1.base else { return None };
    Some(program.symbols.get(symbol.index())?.object)
}

/// The object that an instruction writes, if it writes memory.
fn written(program: &Program, op: &Op) -> Option<Option<ObjectId>> {
    let anywhere = matches!(op, Op::AsyncCopy(_) | Op::Tile(_) | Op::Book(_));
    let writes = matches!(op.access(), Some(Access::Store(_) | Access::Update));
    (anywhere || writes).then(|| if anywhere { None } else { object(program, op) })
}

/// The first thing that the Tile IR model does not cover in a program of tile blocks and PTX threads: threads or CTAs with both, and
/// aliases.
fn beside_tiles(program: &Program) -> Option<(String, u32)> {
    let line = |t: &Thread| t.body.first().map_or(0, |i| i.line);
    let tile = |t: &&Thread| t.body.iter().any(|i| matches!(i.op, Op::Tile(TileOp::Access(_))));
    let plain = |t: &&Thread| t.body.iter().any(|i| interoperates(&i.op));
    if let Some(both) = program.threads.iter().find(|t| tile(t) && plain(t)) {
        return Some(("a thread with accesses of a tile block and of PTX".to_owned(), line(both)));
    }
    let threads: Vec<&Thread> = program.threads.iter().filter(plain).collect();
    let shares = |t: &&&Thread| program.threads.iter().any(|u| tile(&u) && u.place.same_cta(&t.place));
    if let Some(shared) = threads.iter().find(shares) {
        return Some(("a thread of PTX in the CTA of a tile block".to_owned(), line(shared)));
    }
    let aliased = |(n, s): (usize, &moire_program::ir::Symbol)| {
        let mut others = program.symbols.iter().skip(n + 1);
        others.any(|o| o.object == s.object && o.virt != s.virt)
    };
    let first = threads.first().filter(|_| program.symbols.iter().enumerate().any(aliased))?;
    Some(("virtual aliases beside tile blocks".to_owned(), line(first)))
}

/// A barrier that may be used with different counts. Only a model with execution order can judge it.
fn mixed_counts(program: &Program) -> Option<(String, u32)> {
    for (t, thread) in program.threads.iter().enumerate() {
        for instr in &thread.body {
            let Op::Bar { id, count, instance: None, .. } = &instr.op else { continue };
            let others = program.threads.iter().skip(t).filter(|u| u.place.same_cta(&thread.place));
            let lanes = crate::columns::cta_lanes(program, ThreadId::at(t));
            let whole = |c: &Option<Operand>| c.filter(|c| *c != Operand::Imm(i128::from(lanes)));
            let differs = |i: &Instr| {
                let Op::Bar { id: other, count: theirs, instance: None, .. } = &i.op else { return false };
                let apart = matches!((id, other), (Operand::Imm(a), Operand::Imm(b)) if a != b);
                !apart && whole(theirs) != whole(count)
            };
            if others.flat_map(|u| &u.body).any(differs) {
                return Some(("a barrier whose arrivals name different counts".to_owned(), instr.line));
            }
        }
    }
    None
}

fn reason(op: &Op, model: &Model, tiles: bool) -> Option<String> {
    let under = |name: &str| Some(format!("{name} under the model {}", model.name()));
    match op {
        Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } | jump_op!() => None,
        Op::Tile(_) if tiles => None,
        Op::Tile(op) => under(op.name()),
        Op::Control(Control::Repeat(_) | Control::EndRepeat) => Some("repeat".to_owned()),
        op if tiles && interoperates(op) => None,
        op if tiles => under(beyond_tiles(op)),
        Op::Control(Control::Ignored(Ignored::SetMaxRegisters { inc: true, .. })) => {
            Some("setmaxnreg.inc, which waits for registers that no text declares".to_owned())
        }
        Op::Control(Control::Ignored(_) | Control::Elect { .. } | Control::Collective(_)) => None,
        op if is_seq_cst(op) && !model.covers(Feature::SeqCstAccesses) => under("seq_cst"),
        Op::Tcgen05(op) if !model.covers(Feature::TensorCores) => under(op.name()),
        Op::AsyncCopy(_) | Op::Wgmma(_) | Op::ProxyOrder(_) | Op::Control(_) => beyond(op, model),
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mapa { .. } | Op::Tcgen05(_) => None,
        multimem_op!() => None,
        Op::Fence { .. } | Op::ProxyFence(_) | Op::MbarrierInitFence | Op::Mbarrier(_) => None,
        barrier_op!() => None,
        Op::Book(book) => told(book),
    }
}

/// Why engines abstain from an instruction that the book tells alone.
fn told(book: &Book) -> Option<String> {
    let abstain = |why: &str| Some(format!("{} ({why})", book.name()));
    match book.told() {
        Told::StBulk(_) if book.range().is_some() => None,
        Told::StBulk(_) => abstain("its size is no number, or a large one"),
        Told::MbarrierPending(_) => abstain("the arrivals of a phase have no order here"),
        Told::Ternary(_) if book.product().is_some() => None,
        Told::Ternary(_) => abstain("a form other than `mad.lo` of integers"),
    }
}

/// Whether an access has the order seq_cst, which only source programs have.
fn is_seq_cst(op: &Op) -> bool {
    matches!(
        op,
        Op::Load { order: LoadOrder::SeqCst(_), .. }
            | Op::MultimemLoad { order: LoadOrder::SeqCst(_), .. }
            | Op::Store { order: StoreOrder::SeqCst(_), .. }
            | Op::MultimemStore { order: StoreOrder::SeqCst(_), .. }
            | Op::Rmw { order: RmwOrder::SeqCst, .. }
            | Op::MultimemRed { order: RmwOrder::SeqCst, .. }
    )
}

/// The name of an instruction that the models of tile blocks have no rules for.
fn beyond_tiles(op: &Op) -> &'static str {
    match op {
        Op::Fence { .. } => "fence.sc",
        Op::ProxyFence(_) => "fence.proxy",
        Op::Bar { .. } => "bar",
        Op::ClusterArrive { .. } | Op::ClusterWait => "barrier.cluster",
        Op::WarpSync { .. } => "bar.warp.sync",
        Op::Mbarrier(_) | Op::MbarrierInitFence => "mbarrier",
        Op::Mapa { .. } => "mapa",
        multimem_op!() => "multimem",
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } => {
            "an access that is volatile, mmio, of another proxy, of a vector or packed"
        }
        Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. } => "an instruction of PTX",
        jump_op!() => "an instruction of PTX",
        Op::Tcgen05(op) => op.name(),
        Op::AsyncCopy(op) => op.name(),
        Op::Wgmma(op) => op.name(),
        Op::ProxyOrder(op) => op.name(),
        Op::Control(op) => op.name(),
        Op::Tile(op) => op.name(),
        Op::Book(book) => book.name(),
    }
}

/// Whether a PTX thread may execute an instruction in a program with tile blocks: accesses through the generic proxy, and all
/// fences but the strongest.
fn interoperates(op: &Op) -> bool {
    use LoadOrder as L;
    use StoreOrder as S;
    let single = |ty: &Ty, elements: usize| elements == 1 && !ty.packed() && ty.bytes() <= 8;
    if let Op::Load { order, proxy: Proxy::Generic, ty, dst, .. } = op {
        matches!(order, L::Weak | L::Relaxed(_) | L::Acquire(_)) && single(ty, dst.len())
    } else if let Op::Store { order, proxy: Proxy::Generic, ty, src, .. } = op {
        matches!(order, S::Weak | S::Relaxed(_) | S::Release(_)) && single(ty, src.len())
    } else if let Op::Rmw { proxy: Proxy::Generic, order, ty, .. } = op {
        *order != RmwOrder::SeqCst && single(ty, 1)
    } else {
        matches!(op, Op::Fence { order, .. } if *order != FenceOrder::Sc)
    }
}

/// The name of a copy, warpgroup product, proxy fence or launch control that the engines have no events for, or the model no
/// rules.
fn beyond(op: &Op, model: &Model) -> Option<String> {
    let name = op.extended()?;
    if matches!(op, Op::ProxyOrder(ProxyOrder::AliasOneSided(_) | ProxyOrder::Fabric { .. })) {
        return Some(name.to_owned());
    }
    (!model.covers(Feature::Copies)).then(|| format!("{name} under the model {}", model.name()))
}
