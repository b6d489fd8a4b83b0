//! tcgen05 instructions as events: the issue, which is in program order, and its accesses, which are not (PTX ISA 9.2,
//! 9.7.16.6).
//!
//! The accesses of one instruction to tensor memory and its completion are one event, because no rule puts anything
//! between them. Each read of shared memory is an event of its own, because the core model judges it. Data in tensor
//! memory is symbolic: these events have no source and no value, and a loaded register holds unknown data
//! (`event::deps`). Programs in which such a value decides a branch, or reaches anything else, are abstained from.
//!
//! Every rule of order is in `lib-tcgen05.cat`.

use super::collective;
use super::event::Family;
use super::event::deps::Deps;
use super::event::labels::labels;
use super::event::mbarrier::{Act, Fault, MbarUse, Object};
use super::event::tensor::{Accumulator, Cells, Home, TensorUse, Work};
use super::event::{Emitted, Kind};
use super::layout::{Access, STRIDE};
use super::machine::Machine;
use super::operands::{defines, reads};
use super::trace::{TraceEnd, View};

use moire_cat::vocabulary::sets;
use moire_execution::columns;
use moire_execution::leaf::{Instance, flag, truncate};
use moire_program::ir::*;
use moire_program::tensor::{InstructionDescriptor, Usage, touches};
use std::ops::Range;
use std::rc::Rc;

/// Upper bound on the events of an instruction. The event for the first use of all registers of a load ([`consume`]) is
/// counted with the load.
pub(crate) fn most_events(op: &Tcgen05, threads: usize) -> usize {
    match op {
        Tcgen05::FenceBefore | Tcgen05::FenceAfter => 1,
        Tcgen05::WaitLoad | Tcgen05::WaitStore => 2,
        Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => 2,
        Tcgen05::Commit(Commit { multicast: None, .. }) => 2,
        Tcgen05::Store(_) => 3,
        Tcgen05::Commit(Commit { multicast: Some(Multicast { mask: Operand::Imm(mask), .. }), .. }) => {
            1 + threads.min(mask.count_ones() as usize)
        }
        Tcgen05::Commit(_) => 1 + threads,
        Tcgen05::Alloc { .. } | Tcgen05::Load(_) => 4,
        Tcgen05::Copy { .. } | Tcgen05::Shift { .. } | Tcgen05::Mma(_) => 6,
    }
}

/// The lanes of a range that the mask `off` leaves, as ranges.
fn without(lanes: Range<u32>, off: u128) -> Vec<Range<u32>> {
    let masked = |lane: u32| off.checked_shr(lane).is_some_and(|rest| rest & 1 == 1);
    let mut out: Vec<Range<u32>> = Vec::new();
    for lane in lanes.filter(|lane| !masked(*lane)) {
        match out.last_mut() {
            Some(last) if last.end == lane => last.end += 1,
            _ => out.push(lane..lane + 1),
        }
    }
    out
}

pub(crate) fn tensor<V: View>(
    m: &mut Machine<'_, V>,
    op: &Tcgen05,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    if matches!(op, Tcgen05::WaitLoad | Tcgen05::WaitStore | Tcgen05::Load(_) | Tcgen05::Store(_)) {
        collective::aligned(m, op.name(), instr, pc)?;
    }
    match op {
        Tcgen05::WaitLoad => tensor_event(m, instr, pc, &[sets::TC_WAIT], Work::WaitLoad),
        Tcgen05::WaitStore => tensor_event(m, instr, pc, &[sets::TC_WAIT], Work::WaitStore),
        Tcgen05::FenceBefore => tensor_event(m, instr, pc, &[sets::TC_BEFORE], Work::Other),
        Tcgen05::FenceAfter => tensor_event(m, instr, pc, &[sets::TC_AFTER], Work::Other),
        Tcgen05::Commit(commit) => return arrive(m, commit, instr, pc),
        Tcgen05::Load(_) | Tcgen05::Store(_) | Tcgen05::Copy { .. } => return asynchronous(m, op, instr, pc),
        Tcgen05::Shift { .. } | Tcgen05::Mma(_) => return asynchronous(m, op, instr, pc),
        Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => {
            return Err(m.wrong(instr, op.name()));
        }
    }
    Ok(())
}

/// The flag for an instruction issued by the wrong lanes (9.7.16.5): mma, cp, shift and commit need one lane, loads and
/// stores the whole warp.
pub(crate) fn granularity<V: View>(m: &Machine<'_, V>, op: &Tcgen05) -> Option<&'static str> {
    let fences = matches!(op, Tcgen05::FenceBefore | Tcgen05::FenceAfter);
    let whole = m.program.threads[m.thread.index()].place.lanes();
    match op.by_one_thread() {
        true => (m.lanes.count() > 1).then_some(flag::ISSUE),
        false => (!fences && m.lanes.active != whole).then_some(flag::CONVERGED),
    }
}

/// Notes that an instruction reads registers which tensor-memory loads wrote, and adds an event once all registers of a load
/// are read. A read counts only if the whole warp executes it. A load of which a register is overwritten unread gets none.
pub(crate) fn consume<V: View>(m: &mut Machine<'_, V>, instr: &Instr, pc: usize) {
    let place = m.program.threads[m.thread.index()].place;
    if m.loads.is_empty() || m.lanes.active != place.lanes() {
        return;
    }
    let read = reads(instr);
    m.loads.iter_mut().for_each(|(_, left)| left.retain(|r| !read.contains(r)));
    let spent: Vec<u16> = m.loads.iter().filter(|l| l.1.is_empty()).map(|l| l.0).collect();
    let lost = defines(&instr.op);
    m.loads.retain(|(_, left)| !left.is_empty() && left.iter().all(|r| !lost.contains(r)));
    if !spent.is_empty() {
        m.unit += 1;
        tensor_event(m, instr, pc, &[sets::TC_USE], Work::Use(spent));
        m.unit += 1;
    }
}

fn tensor_event<V: View>(m: &mut Machine<'_, V>, instr: &Instr, pc: usize, named: &[usize], work: Work) {
    let mut event = m.blank(instr, pc, Kind::Fence, labels(named), None);
    let granularity = if let Op::Tcgen05(op) = &instr.op { granularity(m, op) } else { None };
    event.family = Family::Tensor(Rc::new(TensorUse { granularity, ..TensorUse::of(work) }));
    m.events.push(Some(event));
}

/// Adds the events of an asynchronous instruction: issue, accesses to tensor memory, reads of shared memory.
fn asynchronous<V: View>(
    m: &mut Machine<'_, V>,
    op: &Tcgen05,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let shape = decoded(m, op)?;
    let used = accesses(m, op, instr, shape)?;
    let tensor = matches!(used.work, Work::Mma { .. } | Work::Copy { .. } | Work::Shift);
    let reads = shared_reads(m, op, instr, shape)?;
    tensor_event(m, instr, pc, &[sets::TC_ISSUE], Work::Other);
    let (work, pair) = (used.work.clone(), used.pair);
    let mut named = vec![sets::TC_ACCESS];
    named.extend(tensor.then_some(sets::TC_TENSOR));
    named.extend(matches!(work, Work::Mma { .. }).then_some(sets::TC_MMA));
    let mut event = m.blank(instr, pc, Kind::Fence, labels(&named), None);
    event.family = Family::Tensor(Rc::new(used));
    event.detached = true;
    let accesses = event.index;
    m.events.push(Some(event));
    for (access, reads_a) in reads {
        let named = [sets::TC_SHARED, sets::TC_TENSOR, sets::M, sets::R, sets::WEAK, sets::ASYNC];
        let mut event = m.blank(instr, pc, Kind::Fence, labels(&named), None);
        event.access = Some(access);
        event.ctas.home = m.layout.instances[access.instance].owner;
        event.family = Family::Tensor(Rc::new(TensorUse { pair, reads_a, ..TensorUse::of(work.clone()) }));
        event.detached = true;
        m.events.push(Some(event));
    }
    if let Tcgen05::Load(load) = op {
        let loaded: Vec<Reg> = load.dst.iter().copied().chain(load.reduce.iter().map(|r| r.dst)).collect();
        m.forget(loaded.iter().copied());
        m.loads.push((accesses, loaded));
    }
    Ok(())
}

/// Rows and columns of a product.
fn decoded<V: View>(m: &Machine<'_, V>, op: &Tcgen05) -> Result<Option<(u16, u16)>, TraceEnd> {
    let Tcgen05::Mma(mma) = op else { return Ok(None) };
    match mma.shape {
        ProductShape::Tile { m, n } => Ok(Some((m, n))),
        ProductShape::Packed(word) => {
            let word = m.operand(word);
            let Some(bits) = word.value else { return Err(TraceEnd::Pending(word.deps)) };
            let bits = u32::try_from(truncate(bits, 32)).unwrap_or(0);
            let shape = InstructionDescriptor::decode(bits, mma.kind);
            Ok(Some((shape.m, shape.n)))
        }
    }
}

/// The CTAs whose tensor memory an instruction accesses, each by its first thread.
pub(crate) fn ctas<V: View>(
    m: &Machine<'_, V>,
    pair: bool,
    instr: &Instr,
) -> Result<Vec<ThreadId>, TraceEnd> {
    let own = columns::leader_id(m.program, m.thread.index());
    if !pair {
        return Ok(vec![own]);
    }
    let what = "cta_group::2 without the other CTA of the pair";
    let peer = columns::peer(m.program, m.thread.index());
    peer.map(|p| vec![own, ThreadId::at(p)]).ok_or_else(|| TraceEnd::Unsupported(what.into(), instr.line))
}

/// The accesses of an instruction to tensor memory.
fn accesses<V: View>(
    m: &Machine<'_, V>,
    op: &Tcgen05,
    instr: &Instr,
    shape: Option<(u16, u16)>,
) -> Result<TensorUse, TraceEnd> {
    let wild = |why: &str| TraceEnd::Unsupported(why.into(), instr.line);
    let all = touches(op, shape).ok_or_else(|| wild("the shape of this tcgen05 instruction"))?;
    let mut used = TensorUse::of(Work::Other);
    used.pair = op.group() == Some(CtaGroup::Two);
    let ctas = ctas(m, used.pair, instr)?;
    let mut accumulator = None;
    for (number, touch) in all.into_iter().enumerate() {
        let off = if number == 0 { lanes_off(m, op, &ctas)? } else { vec![0; ctas.len()] };
        let (home, at) = place_in_tensor(m, &touch.addr, instr)?;
        let first = used.cells.len();
        for cells in &touch.cells {
            let lanes = (at >> 16) + cells.lanes.start..(at >> 16) + cells.lanes.end;
            let wide = (at & 0xffff) + cells.columns.start..(at & 0xffff) + cells.columns.end;
            let end = match home {
                Some(Home::Named(object)) => m.program.objects[object.index()].bytes / 4,
                _ => u32::MAX,
            };
            used.unallocated |= home.is_none();
            used.wrong_columns |= lanes.end > TENSOR_LANES || wide.end > end;
            let warp = u32::from(m.program.threads[m.thread.index()].place.warp) % 4;
            let own = 32 * warp..32 * warp + 32;
            let moves = matches!(op, Tcgen05::Load(_) | Tcgen05::Store(_));
            used.wrong_lanes |= moves && (lanes.start < own.start || lanes.end > own.end);
            let writes = touch.usage != Usage::Read;
            let Some(home) = home else { continue };
            for (cta, off) in ctas.iter().zip(&off) {
                for lanes in without(lanes.clone(), *off | not_ours(m, op, at >> 16)) {
                    used.cells.push(Cells { cta: *cta, home, lanes, columns: wide.clone(), writes });
                }
            }
        }
        accumulator.get_or_insert_with(|| ((home, at), used.cells[first..].to_vec()));
    }
    used.work = match op {
        Tcgen05::Load(_) => Work::Load,
        Tcgen05::Store(_) => Work::Store,
        Tcgen05::Copy { shape, .. } => Work::Copy { four: *shape == CopyShape::S4x256b },
        Tcgen05::Shift { .. } => Work::Shift,
        Tcgen05::Mma(mma) => {
            let (start, cells) = accumulator.unwrap_or(((None, 0), Vec::new()));
            let shape = shape.unwrap_or((0, 0));
            Work::Mma { d: Rc::new(Accumulator { start, shape, cells }), kind: mma.kind }
        }
        Tcgen05::Alloc { .. }
        | Tcgen05::Dealloc { .. }
        | Tcgen05::Relinquish { .. }
        | Tcgen05::WaitLoad
        | Tcgen05::WaitStore
        | Tcgen05::Commit(_)
        | Tcgen05::FenceBefore
        | Tcgen05::FenceAfter => return Err(wild(op.name())),
    };
    Ok(used)
}

/// Lanes of tensor memory that the others of the warp move, where lane for lane is moved (9.7.16.2.3.1: `.32x32b`).
fn not_ours<V: View>(m: &Machine<'_, V>, op: &Tcgen05, start: u32) -> u128 {
    let lanes = MoveShape::L32x32b;
    let own = matches!(op, Tcgen05::Load(l) if l.shape == lanes)
        || matches!(op, Tcgen05::Store(w) if w.shape == lanes);
    if !own || m.place().mask == 0 {
        return 0;
    }
    !u128::from(m.lanes.active).checked_shl(start).unwrap_or(0)
}

/// Lanes of the accumulator that a product does not write, as one mask a CTA. Four registers hold the mask of the CTA with
/// even rank, the next four that of the other.
fn lanes_off<V: View>(m: &Machine<'_, V>, op: &Tcgen05, ctas: &[ThreadId]) -> Result<Vec<u128>, TraceEnd> {
    let Tcgen05::Mma(mma) = op else { return Ok(vec![0; ctas.len()]) };
    let place = |t: ThreadId| m.program.threads[t.index()].place.cta;
    let mask = |cta: &ThreadId| {
        let first = 4 * ctas.iter().filter(|c| place(**c) < place(*cta)).count();
        let mut all = 0;
        for (i, reg) in mma.lanes_off.iter().skip(first).take(4).enumerate() {
            let state = m.operand(Operand::Reg(*reg));
            let Some(bits) = state.value else { return Err(TraceEnd::Pending(state.deps)) };
            all |= truncate(bits, 32) << (32 * i);
        }
        // The instruction waits for its masks even where they have no effect.
        Ok(if m.front.masked_too { 0 } else { all })
    };
    ctas.iter().map(mask).collect()
}

/// The allocation or `.tmem` name that an address in tensor memory belongs to, and the lane and column in it.
fn place_in_tensor<V: View>(
    m: &Machine<'_, V>,
    addr: &Address,
    instr: &Instr,
) -> Result<(Option<Home>, u32), TraceEnd> {
    let at = m.address(addr);
    let Some(value) = at.value else { return Err(TraceEnd::Pending(at.deps)) };
    let stride = Value::from(STRIDE);
    let low = u32::try_from(value % stride).expect("ranges of addresses are 2^32 apart");
    if value < stride {
        let slot = columns::of_column(low & 0xffff);
        return Ok(match slot {
            Some((slot, column)) => (Some(Home::Slot(slot)), low & 0xffff_0000 | column),
            None => (None, low),
        });
    }
    let object = m.layout.locate(m.program, value - value % stride, 0).and_then(|access| {
        let object = m.layout.instances[access.instance].object;
        (m.program.objects[object.index()].space == Space::Tensor).then_some(object)
    });
    match object {
        Some(object) => Ok((Some(Home::Named(object)), low)),
        None => {
            let what = "an address in tensor memory that is neither allocated nor of a `.tmem` name";
            Err(TraceEnd::Unsupported(what.into(), instr.line))
        }
    }
}

/// The accesses of an instruction to shared memory; true marks those of the factor A.
fn shared_reads<V: View>(
    m: &Machine<'_, V>,
    op: &Tcgen05,
    instr: &Instr,
    _shape: Option<(u16, u16)>,
) -> Result<Vec<(Access, bool)>, TraceEnd> {
    let mut descriptors = Vec::new();
    if let Tcgen05::Copy { src, .. } = op {
        descriptors.push((*src, false));
    } else if let Tcgen05::Mma(mma) = op {
        let first = if let Factor::Shared(a) = mma.a { Some((a, true)) } else { None };
        descriptors.extend(first.into_iter().chain([(mma.b, false)]));
    }
    let wild = |why: &str| TraceEnd::Unsupported(why.into(), instr.line);
    let pair = op.group() == Some(CtaGroup::Two);
    let mut out = Vec::new();
    for (descriptor, a) in descriptors {
        let Descriptor::Range { addr, bytes } = descriptor else {
            return Err(wild("a matrix descriptor in a register"));
        };
        let at = m.address(&addr);
        let Some(value) = at.value else { return Err(TraceEnd::Pending(at.deps)) };
        let access = m.layout.locate(m.program, value, bytes);
        let access = access.ok_or_else(|| wild("a matrix outside every object"))?;
        let access = own_shared(m, access, instr)?;
        for cta in ctas(m, pair, instr)? {
            out.extend(twin(m, access, cta).map(|access| (access, a)));
        }
    }
    Ok(out)
}

/// The same bytes of shared memory in another CTA.
fn twin<V: View>(m: &Machine<'_, V>, access: Access, cta: ThreadId) -> Option<Access> {
    let object = m.layout.instances[access.instance].object;
    let place = |t: ThreadId| &m.program.threads[t.index()].place;
    let owned = |o: ThreadId| place(o).same_cta(place(cta));
    let there = |i: &Instance| i.object == object && i.owner.is_some_and(owned);
    let (instance, _) = m.layout.instances.entries().find(|(_, i)| there(i))?;
    Some(Access { instance, ..access })
}

/// Passes on an access to shared memory of the thread's own CTA; any other is abstained from.
fn own_shared<V: View>(m: &Machine<'_, V>, access: Access, instr: &Instr) -> Result<Access, TraceEnd> {
    let owner = m.layout.instances[access.instance].owner;
    let place = |t: ThreadId| &m.program.threads[t.index()].place;
    if owner.is_some_and(|o| place(o).same_cta(place(m.thread))) {
        return Ok(access);
    }
    let what = "a tcgen05 operand outside the shared memory of the CTA";
    Err(TraceEnd::Unsupported(what.into(), instr.line))
}

fn arrive<V: View>(
    m: &mut Machine<'_, V>,
    commit: &Commit,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let base = m.address(&commit.addr);
    let Some(value) = base.value else { return Err(TraceEnd::Pending(base.deps)) };
    let wild = |why: &str| TraceEnd::Unsupported(why.into(), instr.line);
    let access = m.layout.locate(m.program, value, MBARRIER_BYTES);
    let access = access.ok_or_else(|| wild("an mbarrier outside every object"))?;
    if m.layout.instances[access.instance].owner.is_none() {
        return Err(wild("an mbarrier outside shared memory"));
    }
    if access.offset % MBARRIER_BYTES != 0 {
        return Err(wild("an mbarrier that is not aligned to 8 bytes"));
    }
    let (targets, wrong_mask, mask) = told(m, commit, access)?;
    tensor_event(m, instr, pc, &[sets::TC_COMMIT], Work::Other);
    let work = Work::Commit { reads_only: commit.reads_only };
    let pair = commit.group == CtaGroup::Two;
    let used = Rc::new(TensorUse { pair, wrong_mask, ..TensorUse::of(work) });
    for access in targets {
        let object = Object { instance: access.instance, offset: access.offset };
        let arrivals = m.lanes.count();
        let act = Act::Add { arrivals, tx: 0, drops: false, no_complete: false, returns: false };
        let fault = wrong_mask.then_some(Fault::Target);
        let named = [sets::MBAR, sets::MBAR_ARRIVE, sets::TC_ARRIVE, sets::CLUSTER];
        let kind = Kind::Mbarrier(MbarUse { object, act, fault });
        let mut event: Emitted = m.blank(instr, pc, kind, labels(&named), Some(Scope::Cluster));
        event.ctas.home = m.layout.instances[access.instance].owner;
        event.access = Some(access);
        event.needs.addr = base.deps.with(mask);
        event.family = Family::Tensor(Rc::clone(&used));
        event.detached = true;
        m.events.push(Some(event));
    }
    Ok(())
}

/// The mbarriers at which a commit arrives, whether its mask names a rank that no CTA of the cluster has, and the
/// dependencies of the mask.
fn told<V: View>(
    m: &Machine<'_, V>,
    commit: &Commit,
    access: Access,
) -> Result<(Vec<Access>, bool, Deps), TraceEnd> {
    let Some(multicast) = commit.multicast else { return Ok((vec![access], false, Deps::NONE)) };
    let mask = m.operand(multicast.mask);
    let Some(bits) = mask.value else { return Err(TraceEnd::Pending(mask.deps)) };
    let bits = truncate(bits, if multicast.wide { 32 } else { 16 });
    let cluster = columns::cluster(m.program, m.thread.index());
    let wrong = bits >> cluster.len().min(127) != 0;
    let named = cluster.into_iter().enumerate().filter(|(rank, _)| bits >> rank & 1 == 1);
    let targets = named.filter_map(|(_, cta)| twin(m, access, ThreadId::at(cta))).collect();
    Ok((targets, wrong, mask.deps))
}
