//! tcgen05 instructions of one thread: an issue, and what happens later, outside program order.
//!
//! How the events relate to each other is in [`super::effect`]. (PTX ISA 9.2, 9.7.16.)

use super::allocator;
use super::arith::low;
use super::deed::{Count, Deed};
use super::effect::{Block, Column, Effect};
use super::event::{Event, Refusal, UNKNOWN};
use super::pairs::Events;
use super::space::Range;
use super::state::{Runner, State};
use super::tags::bit;
use moire_cat::vocabulary::sets;
use moire_execution::columns;
use moire_execution::leaf::flag;
use moire_program::ir::*;
use moire_program::tensor::{InstructionDescriptor, Touch, Usage, touches};

/// Whether an instruction must know unknown data.
pub(super) fn uses_unknown(s: &State, instr: &Instr) -> bool {
    let guard = instr.guard.map_or(0, |g| s.regs[g.reg.index()].1);
    let read = super::operands::needed(&instr.op);
    (read.iter().fold(guard, |d, r| d | s.regs[r.index()].1)) & UNKNOWN != 0
}

/// Removes registers that the whole warp reads from the loads that wrote them. A load with a register that is overwritten
/// before it is read never counts as read.
pub(super) fn reading(run: &Runner<'_>, s: &mut State, instr: &Instr) {
    if s.unread.is_empty() || s.lanes.active != run.program.threads[run.thread].place.lanes() {
        return;
    }
    let mut read = super::operands::read(&instr.op);
    read.extend(instr.guard.map(|g| g.reg));
    let written = super::operands::written(&instr.op);
    let mut spent = Vec::new();
    for (load, mut left) in std::mem::take(&mut s.unread) {
        left.retain(|r| !read.contains(r));
        if left.is_empty() {
            spent.push(load);
        } else if !left.iter().any(|r| written.contains(r)) {
            s.unread.push((load, left));
        }
    }
    if spent.is_empty() {
        return;
    }
    let mut event = run.event(s, bit(sets::TC_USE), None);
    event.effect = Some(Effect { spent, ..Effect::of(s.instructions, &Tcgen05::WaitLoad) });
    Runner::push(s, event);
    s.instructions += 1;
}

pub(super) fn tensor(run: &Runner<'_>, s: &mut State, op: &Tcgen05) -> Result<(), Refusal> {
    let mut effect = Effect::of(s.instructions, op);
    let set = match op {
        Tcgen05::WaitLoad | Tcgen05::WaitStore => sets::TC_WAIT,
        Tcgen05::FenceBefore => sets::TC_BEFORE,
        Tcgen05::FenceAfter => sets::TC_AFTER,
        Tcgen05::Commit(_) => sets::TC_COMMIT,
        Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::Copy { .. } => sets::TC_ISSUE,
        Tcgen05::Shift { .. } | Tcgen05::Mma(_) => sets::TC_ISSUE,
        Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => {
            return Err(Refusal::Unsupported(op.name().to_owned()));
        }
    };
    effect.flags.extend(lanes_wrong(run, s, op));
    let mut issue = run.event(s, bit(set), None);
    issue.effect = Some(effect.clone());
    Runner::push(s, issue);
    effect.flags.clear();
    effect.later = true;
    if let Tcgen05::Commit(commit) = op {
        return arrival(run, s, commit, effect);
    }
    if set == sets::TC_ISSUE { later(run, s, op, effect) } else { Ok(()) }
}

/// The flag to raise if the wrong lanes run an instruction.
pub(super) fn lanes_wrong(run: &Runner<'_>, s: &State, op: &Tcgen05) -> Option<&'static str> {
    if op.by_one_thread() {
        return (s.lanes.active.count_ones() > 1).then_some(flag::ISSUE);
    }
    let all = run.program.threads[run.thread].place.lanes();
    let fence = matches!(op, Tcgen05::FenceBefore | Tcgen05::FenceAfter);
    (s.lanes.active != all && !fence).then_some(flag::CONVERGED)
}

/// One arrival in each CTA the commit names, by rank.
fn arrival(run: &Runner<'_>, s: &mut State, commit: &Commit, mut effect: Effect) -> Result<(), Refusal> {
    let (address, mut depends) = pointed(run, s, &commit.addr);
    let wild = || Refusal::Unsupported(format!("a commit to {:?}", commit.addr));
    let range = run.memory.resolve(address, MBARRIER_BYTES).ok_or_else(wild)?;
    let home = run.memory.instances[range.instance].cta;
    if range.offset % MBARRIER_BYTES != 0 || home.is_none() {
        return Err(wild());
    }
    let mut ctas: Vec<Option<usize>> = vec![home];
    let mut wrong = None;
    if let Some(multicast) = commit.multicast {
        let (mask, more) = run.operand(s, multicast.mask);
        depends |= more;
        let members = columns::cluster(run.program, run.thread);
        let bits = low(mask, if multicast.wide { 32 } else { 16 });
        ctas.clear();
        for rank in 0..32 {
            let named = bits >> rank & 1 == 1;
            match members.get(rank) {
                Some(cta) if named => ctas.push(Some(*cta)),
                None if named => wrong = Some(flag::TARGET),
                _ => {}
            }
        }
    }
    effect.flags.extend(wrong);
    for cta in ctas {
        let object = run.memory.instances[range.instance].object;
        let at = run.memory.instances.iter().position(|i| i.object == object && i.cta == cta);
        let range = Range { instance: at.ok_or_else(wild)?, ..range };
        let arrivals = u64::from(s.lanes.active.count_ones());
        let deed = Deed::Add { arrivals, tx: 0, drops: false, must_not_complete: false, reported: None };
        let tags = bit(sets::MBAR) | bit(sets::MBAR_ARRIVE) | bit(sets::TC_ARRIVE);
        let mut e: Event = run.event(s, tags, Some(Scope::Cluster));
        (e.range, e.address) = (Some(range), depends);
        e.count = Some(Count { object: (range.instance, range.offset), deed, wrong });
        e.home = cta;
        e.effect = Some(effect.clone());
        Runner::push(s, e);
    }
    Ok(())
}

/// Accesses to tensor memory, then reads of shared memory.
fn later(run: &Runner<'_>, s: &mut State, op: &Tcgen05, mut effect: Effect) -> Result<(), Refusal> {
    let unknown = |what: &str| Refusal::Unsupported(what.to_owned());
    if let Tcgen05::Mma(mma) = op {
        effect.shape = Some(match mma.shape {
            ProductShape::Tile { m, n } => (m, n),
            ProductShape::Packed(word) => {
                let bits = u32::try_from(low(run.operand(s, word).0, 32)).unwrap_or(0);
                let fields = InstructionDescriptor::decode(bits, mma.kind);
                (fields.m, fields.n)
            }
        });
    }
    let ctas = allocator::both(run, op)?;
    let mut quiet = effect.clone();
    let mut all = touches(op, effect.shape).ok_or_else(|| unknown("the shape of a tcgen05 instruction"))?;
    let first = all.first().map(|t| t.addr);
    for (number, touch) in all.drain(..).enumerate() {
        let mut columns = columns(run, s, op, &touch, &ctas, &mut effect.flags)?;
        if number == 0
            && let Tcgen05::Mma(mma) = op
        {
            columns.iter_mut().for_each(|c| c.lanes &= !masked(run, s, mma, &ctas, c.cta));
            columns.retain(|c| c.lanes != 0);
            effect.result = columns.clone();
        }
        effect.columns.extend(columns);
    }
    if let (Tcgen05::Mma(_), Some(addr)) = (op, first) {
        (effect.accumulator, effect.start) = cell(run, s, &addr)?;
    }
    (quiet.accumulator, quiet.start) = (effect.accumulator, effect.start);
    quiet.result = effect.result.clone();
    let tensor = if effect.tensor() { bit(sets::TC_TENSOR) } else { 0 };
    let tensor = if matches!(op, Tcgen05::Mma(_)) { tensor | bit(sets::TC_MMA) } else { tensor };
    let mut access = run.event(s, bit(sets::TC_ACCESS) | tensor, None);
    access.effect = Some(effect);
    Runner::push(s, access);
    let mut matrices = Vec::new();
    if let Tcgen05::Copy { src: matrix, .. } = op {
        matrices.push((matrix, false));
    } else if let Tcgen05::Mma(mma) = op {
        let first = if let Factor::Shared(a) = &mma.a { Some((a, true)) } else { None };
        matrices.extend(first.into_iter().chain([(&mma.b, false)]));
    }
    for (matrix, first_factor) in matrices {
        let Descriptor::Range { addr, bytes } = matrix else {
            return Err(unknown("a matrix descriptor in a register"));
        };
        let (range, _) = own_bytes(run, s, addr, *bytes)?;
        let object = run.memory.instances[range.instance].object;
        for cta in &ctas {
            let here = |i: &super::space::Instance| i.object == object && i.cta == Some(*cta);
            let Some(instance) = run.memory.instances.iter().position(here) else { continue };
            let tags = bit(sets::TC_SHARED) | bit(sets::TC_TENSOR) | bit(sets::ASYNC);
            let mut read = run.event(s, tags | bit(sets::M) | bit(sets::R) | bit(sets::WEAK), None);
            read.range = Some(Range { instance, ..range });
            read.home = Some(*cta);
            read.effect = Some(Effect { first_factor, ..quiet.clone() });
            Runner::push(s, read);
        }
    }
    if let Tcgen05::Load(load) = op {
        let reduced = load.reduce.as_ref().map(|r| r.dst);
        s.unread.push((s.instructions, load.dst.iter().copied().chain(reduced).collect()));
        for reg in load.dst.iter().copied().chain(reduced) {
            s.regs[reg.index()] = (0, UNKNOWN);
            s.lanes.assigned(reg);
        }
    }
    Ok(())
}

fn pointed(run: &Runner<'_>, s: &State, addr: &Address) -> (u128, Events) {
    let (base, deps) = run.operand(s, addr.base);
    let offset = u128::from_ne_bytes(i128::from(addr.offset).to_ne_bytes());
    (low(base.wrapping_add(offset), 64), deps)
}

/// Bytes of shared memory of the thread's CTA.
fn own_bytes(run: &Runner<'_>, s: &State, addr: &Address, bytes: u32) -> Result<(Range, Events), Refusal> {
    let (address, deps) = pointed(run, s, addr);
    let range = run.memory.resolve(address, bytes);
    let own = |r: &Range| run.memory.instances[r.instance].cta == Some(run.memory.cta[run.thread]);
    match range.filter(own) {
        Some(range) => Ok((range, deps)),
        None => Err(Refusal::Unsupported(format!("a tcgen05 operand at {addr:?}"))),
    }
}

/// Lanes of the accumulator in a CTA that the product leaves as they are.
fn masked(run: &Runner<'_>, s: &State, mma: &Mma, ctas: &[usize], cta: usize) -> u128 {
    let number = |t: usize| run.program.threads[t].place.cta;
    let even = ctas.iter().all(|c| number(*c) >= number(cta));
    let registers = mma.lanes_off.chunks(4).nth(usize::from(!even)).unwrap_or(&[]);
    let words = registers.iter().map(|r| low(run.operand(s, Operand::Reg(*r)).0, 32));
    let all = words.rev().fold(0, |all, word| all << 32 | word);
    if run.rules.masks { all } else { 0 }
}

/// Whether the active lanes of this thread move a lane of tensor memory, of which each lane of the warp moves its own.
fn moved_here(run: &Runner<'_>, s: &State, op: &Tcgen05, lane: u32) -> bool {
    let shape = MoveShape::L32x32b;
    let own = matches!(op, Tcgen05::Load(l) if l.shape == shape)
        || matches!(op, Tcgen05::Store(w) if w.shape == shape);
    !own || run.program.threads[run.thread].place.mask == 0 || s.lanes.active >> lane & 1 == 1
}

/// The columns behind one address of an instruction, in each CTA.
fn columns(
    run: &Runner<'_>,
    s: &State,
    op: &Tcgen05,
    touch: &Touch,
    ctas: &[usize],
    flags: &mut Vec<&'static str>,
) -> Result<Vec<Column>, Refusal> {
    let (block, at) = cell(run, s, &touch.addr)?;
    let size = match block {
        Some(Block::Named(object)) => run.program.objects[object.index()].bytes / 4,
        _ => u32::MAX,
    };
    let warp = run.program.threads[run.thread].place.warp % 4;
    let own = 32 * u32::from(warp)..32 * u32::from(warp) + 32;
    let moves = matches!(op, Tcgen05::Load(_) | Tcgen05::Store(_));
    let mut out = Vec::new();
    for cells in &touch.cells {
        let mut lanes = 0u128;
        for lane in cells.lanes.clone().map(|lane| lane + (at >> 16)) {
            if moves && !own.contains(&lane) {
                flags.push(flag::LANES);
            }
            if !moved_here(run, s, op, lane - (at >> 16)) {
                continue;
            }
            match lane {
                0..128 => lanes |= 1 << lane,
                _ => flags.push(flag::COLUMNS),
            }
        }
        for column in cells.columns.clone().map(|column| column + (at & 0xffff)) {
            if column >= size {
                flags.push(flag::COLUMNS);
            }
            let Some(block) = block else {
                flags.push(flag::UNALLOCATED);
                continue;
            };
            let written = touch.usage != Usage::Read;
            out.extend(ctas.iter().map(|cta| Column { cta: *cta, block, column, lanes, written }));
        }
    }
    Ok(out)
}

/// What an address in tensor memory belongs to, with lane and column.
fn cell(run: &Runner<'_>, s: &State, addr: &Address) -> Result<(Option<Block>, u32), Refusal> {
    let (address, _) = pointed(run, s, addr);
    let (base, at) = (address >> 32 << 32, u32::try_from(low(address, 32)).unwrap_or(u32::MAX));
    if base == 0 {
        let found = columns::of_column(at & 0xffff);
        let lanes = at >> 16 << 16;
        return Ok(found.map_or((None, at), |(slot, column)| (Some(Block::Allocated(slot)), lanes | column)));
    }
    let object = run.memory.resolve(base, 0).map(|r| run.memory.instances[r.instance].object);
    match object.filter(|o| run.program.objects[o.index()].space == Space::Tensor) {
        Some(object) => Ok((Some(Block::Named(object)), at)),
        None => Err(Refusal::Unsupported(format!("tensor memory at {addr:?}"))),
    }
}
