//! Instructions of the tensor cores: what they touch, which pairs pipeline, what waits, fences and commits hand on
//! (PTX ISA 9.2, 9.7.16.6).

use super::copy::{finish, stands};
use super::launch::{Unstarted, reaching};
use super::memory::{access, matrix};
use super::place::{masks, place_in_tensor, shape_of};
use crate::carrier::{Carrier, Class, Own, row};
use crate::engine::{At, Engine, home, known, object, renew};
use crate::finding::{Kind, Stop};
use crate::planted::Planted;
use crate::record::{Access, AccessKind, Cells, Home, Key, Object, Tensor, Via, What, Work};
use crate::rows::{self, Rows, add, both, without};
use crate::settings::Pipeline;
use crate::state::{Added, Columns, Completion, Loading, State, Suspect};
use crate::value::Val;
use moire_program::ir::{
    Commit, CopyShape, CtaGroup, Descriptor, Factor, Mma, MoveShape, Reg, Scope, TENSOR_LANES, Tcgen05,
};
use moire_program::tensor::{Usage, touches};

/// `tcgen05.*` but the allocator.
pub(super) fn tensor(e: &mut Engine<'_>, s: &mut State, at: At<'_>, op: &Tcgen05) -> Result<(), Stop> {
    granularity(e, at, op);
    match op {
        Tcgen05::FenceBefore => before(e, s, at.thread),
        Tcgen05::FenceAfter => {
            let first = e.carriers.thread(at.thread);
            s.rows.add_row(e.carriers.own(at.thread, Own::After), first + row::ORDERED);
            s.rows.add_row(e.carriers.own(at.thread, Own::IssuedAfter), first + row::ISSUED);
        }
        Tcgen05::WaitLoad => {
            let mut all = s.rows.get(e.carriers.own(at.thread, Own::Loads));
            if e.has(Planted::AnyWait) {
                add(&mut all, &s.rows.get(e.carriers.own(at.thread, Own::Stores)));
            }
            waited(e, s, at.thread, &all);
        }
        Tcgen05::WaitStore => {
            let all = s.rows.get(e.carriers.own(at.thread, Own::Stores));
            waited(e, s, at.thread, &all);
        }
        Tcgen05::Commit(commit) => return arrive(e, s, at, commit),
        Tcgen05::Load(_) | Tcgen05::Store(_) => return moves(e, s, at, op),
        Tcgen05::Copy { .. } | Tcgen05::Shift { .. } | Tcgen05::Mma(_) => return product(e, s, at, op),
        Tcgen05::Alloc { .. } | Tcgen05::Dealloc { .. } | Tcgen05::Relinquish { .. } => {
            return Err(at.abstain(op.name()));
        }
    }
    Ok(())
}

/// Reports an instruction executed by the wrong number of lanes (9.7.16.5).
pub(super) fn granularity(e: &mut Engine<'_>, at: At<'_>, op: &Tcgen05) {
    let whole = e.program.threads[at.thread].place.lanes().count_ones();
    let fences = matches!(op, Tcgen05::FenceBefore | Tcgen05::FenceAfter);
    let text = if op.by_one_thread() && at.lanes > 1 {
        format!("{} by {} is issued by {} lanes", op.name(), e.thread_name(at.thread), at.lanes)
    } else if !op.by_one_thread() && !fences && at.lanes != whole {
        format!("{} by {} needs the whole warp", op.name(), e.thread_name(at.thread))
    } else {
        return;
    };
    e.find(Kind::Protocol, text, vec![at.place()]);
}

fn before(e: &Engine<'_>, s: &mut State, thread: usize) {
    let own = |own| e.carriers.own(thread, own);
    s.rows.add_row(own(Own::Before), own(Own::Waited));
    s.rows.add_row(own(Own::IssuedBefore), own(Own::Issued));
    for group in [Own::One, Own::Two] {
        let products = both(&s.rows.get(own(group)), &e.universe.sets.tensor);
        s.rows.add(own(Own::ProductsBefore), &products);
    }
}

/// A wait follows the instructions in `all`.
fn waited(e: &Engine<'_>, s: &mut State, thread: usize, all: &[u64]) {
    let tensor = both(all, &e.universe.sets.tensor);
    s.rows.add(e.carriers.own(thread, Own::Waited), &tensor);
    let first = e.carriers.thread(thread);
    s.rows.add(first + row::COMPLETED, &tensor);
    s.rows.add(first + row::FACTS, &both(all, &e.universe.sets.facts));
}

/// Notes that an instruction reads registers. A load of which all registers are read is complete under TQ30.
pub(super) fn reading(e: &mut Engine<'_>, s: &mut State, at: At<'_>) {
    let whole = e.program.threads[at.thread].place.lanes().count_ones();
    if s.threads[at.thread].loads.is_empty() || at.lanes != whole {
        return;
    }
    let (mut read, lost) = moire_program::registers::uses(&at.instr.op);
    read.extend(at.instr.guard.map(|g| g.reg));
    let loads = std::mem::take(&mut s.threads[at.thread].loads);
    let mut done = vec![0; s.rows.words];
    for mut load in loads {
        load.unread.retain(|reg| !read.contains(reg));
        if load.unread.is_empty() {
            rows::insert(&mut done, load.record);
            let prior = e.carriers.first(Carrier::Prior(load.record));
            add(&mut done, &s.rows.get(prior));
        } else if !load.unread.iter().any(|reg| lost.contains(reg)) {
            s.threads[at.thread].loads.push(load);
        }
    }
    waited(e, s, at.thread, &done);
}

/// What is ordered before the accesses of an instruction that a thread issues now.
fn at_issue(e: &Engine<'_>, s: &State, thread: usize) -> Vec<u64> {
    let mut out = s.rows.get(e.carriers.own(thread, Own::Waited));
    add(&mut out, &s.rows.get(e.carriers.own(thread, Own::After)));
    if e.settings.released {
        add(&mut out, &s.rows.get(e.carriers.thread(thread) + row::COMPLETED));
    }
    if e.has(Planted::FreeAfter) {
        add(&mut out, &s.rows.get(e.carriers.thread(thread) + row::ORDERED));
    }
    out
}

/// Instructions issued before one that pipeline with it.
fn pipelined(e: &Engine<'_>, s: &State, thread: usize, record: usize) -> Vec<u64> {
    let mut issued = s.rows.get(e.carriers.own(thread, Own::IssuedAfter));
    if e.settings.near_pipelines {
        issued = both(&issued, &e.universe.sets.issued[e.layout.cta_of[thread]]);
    }
    add(&mut issued, &s.rows.get(e.carriers.own(thread, Own::Issued)));
    if e.has(Planted::AllPipeline) {
        return both(&issued, &s.live);
    }
    both(&both(&issued, &e.universe.before[record]), &s.live)
}

/// Checks and enters the accesses of one instruction to tensor memory. Returns the record and what is ordered before it.
fn enter(e: &mut Engine<'_>, s: &mut State, at: At<'_>, tensor: Tensor) -> Result<(usize, Vec<u64>), Stop> {
    let name = at.instr.op.extended().unwrap_or("tcgen05");
    freed(e, s, at, &tensor);
    let key = Key { thread: at.thread, what: What::Tensor(tensor), instance: 0 };
    let record = e.record(key, at.line())?;
    let mut before = at_issue(e, s, at.thread);
    let pipes = pipelined(e, s, at.thread, record);
    let closing = e.settings.pipeline == Pipeline::All || e.settings.moves_in_order;
    if closing {
        for earlier in rows::members(&pipes) {
            if let Some(prior) = e.carriers.known(&Carrier::Prior(earlier)) {
                add(&mut before, &s.rows.get(prior));
            }
        }
        add(&mut before, &pipes);
    }
    let before = both(&before, &s.live);
    let mut left = without(&both(&e.universe.conflicts[record], &s.live), &before);
    left = without(&left, &pipes);
    for other in rows::members(&left) {
        let theirs = (e.universe.keys[other].thread, e.universe.lines[other]);
        let text = format!(
            "tensor memory: {} by {} (line {}) is not ordered after line {} of {}{}",
            name,
            e.thread_name(at.thread),
            at.line(),
            theirs.1,
            e.thread_name(theirs.0),
            level(e, s, at.thread, other),
        );
        e.find(Kind::Race, text, vec![theirs, at.place()]);
    }
    renew(s, record);
    let before = both(&before, &s.live);
    let before = without(&before, &single(s, record));
    let prior = e.carriers.first(Carrier::Prior(record));
    s.rows.replace(prior, &before);
    s.rows.set(e.carriers.own(at.thread, Own::Issued), record);
    s.rows.set(e.carriers.own(at.thread, Own::Everything), record);
    s.rows.add(e.carriers.own(at.thread, Own::Everything), &before);
    Ok((record, before))
}

fn single(s: &State, record: usize) -> Vec<u64> {
    let mut out = vec![0; s.rows.words];
    rows::insert(&mut out, record);
    out
}

/// How far the order of an earlier access has come.
fn level(e: &Engine<'_>, s: &State, thread: usize, record: usize) -> &'static str {
    let first = e.carriers.thread(thread);
    if s.rows.has(first + row::ORDERED, record) {
        ": fence::after_thread_sync is missing"
    } else if s.rows.has(first + row::COMPLETED, record) {
        ": it is complete, and the tcgen05 fences are missing"
    } else if s.rows.has(e.carriers.own(thread, Own::IssuedAfter), record) {
        ": only its issue is ordered before"
    } else {
        ""
    }
}

/// Reports accesses to columns that are no longer allocated. Columns that are not allocated yet may be later.
fn freed(e: &mut Engine<'_>, s: &mut State, at: At<'_>, tensor: &Tensor) {
    for cells in &tensor.cells {
        let Home::Slot(slot) = cells.home else { continue };
        let found = s.columns.iter().find(|c| c.cta == cells.cta && c.slot == slot);
        let covers = |c: &Columns| c.cta == cells.cta || (c.pair && e.layout.peer(c.cta) == Some(cells.cta));
        let over = s.columns.iter().any(|c| c.slot == slot && c.freed && covers(c));
        let text = match found {
            None => {
                let end = Some(cells.columns.end);
                s.suspects.insert(Suspect { cta: cells.cta, slot, end, place: at.place() });
                continue;
            }
            Some(_) if over => "tensor memory is accessed after dealloc",
            Some(c) if cells.columns.end > c.columns => "an access leaves its allocation",
            Some(_) => continue,
        };
        e.find(Kind::Lifetime, format!("{text} by {}", e.thread_name(at.thread)), vec![at.place()]);
    }
}

/// `tcgen05.ld`, `tcgen05.st`.
fn moves(e: &mut Engine<'_>, s: &mut State, at: At<'_>, op: &Tcgen05) -> Result<(), Stop> {
    let tensor = used(e, s, at, op)?;
    let (record, before) = enter(e, s, at, tensor)?;
    let tracker = if matches!(op, Tcgen05::Load(_)) { Own::Loads } else { Own::Stores };
    let tracker = e.carriers.own(at.thread, tracker);
    s.rows.add(tracker, &before);
    s.rows.set(tracker, record);
    if let Tcgen05::Load(load) = op {
        let loaded: Vec<Reg> = load.dst.iter().copied().chain(load.reduce.iter().map(|r| r.dst)).collect();
        for reg in &loaded {
            s.threads[at.thread].regs[reg.index()] = Val::Unknown;
        }
        if e.settings.complete_by_use {
            s.threads[at.thread].loads.push(Loading { record, unread: loaded });
        }
    }
    Ok(())
}

/// `tcgen05.mma`, `cp`, `shift`.
fn product(e: &mut Engine<'_>, s: &mut State, at: At<'_>, op: &Tcgen05) -> Result<(), Stop> {
    s.threads[at.thread].copies += u32::from(e.mode.instances);
    let tensor = used(e, s, at, op)?;
    let pair = op.group() == Some(CtaGroup::Two);
    let (all, first) = if pair { (Own::Two, Own::FirstTwo) } else { (Own::One, Own::FirstOne) };
    let (all, first) = (e.carriers.own(at.thread, all), e.carriers.own(at.thread, first));
    let reads = shared(e, s, at, op)?;
    let cells = tensor.cells.iter().map(|c| Some(c.cta)).collect::<Vec<_>>();
    if let Some(record) = reaching(e, s, at, &cells, (op.name(), None), Unstarted::Protocol)? {
        s.rows.set(all, record);
    }
    let owners: Vec<Option<usize>> = reads.iter().map(|a| e.layout.owner(&a.span)).collect();
    if let Some(record) = reaching(e, s, at, &owners, ("tcgen05 operand", None), Unstarted::Elsewhere)? {
        s.rows.set(all, record);
    }
    let records = access(e, s, at, &reads)?;
    let (record, before) = enter(e, s, at, tensor)?;
    s.rows.add(all, &before);
    s.rows.set(all, record);
    for (read, record) in reads.iter().zip(records) {
        s.rows.set(all, record);
        if read.part == (AccessKind::Product { first: true }) {
            s.rows.set(first, record);
        }
    }
    Ok(())
}

/// The CTAs whose tensor memory an instruction works on.
fn ctas(e: &Engine<'_>, at: At<'_>, pair: bool) -> Result<Vec<usize>, Stop> {
    if !pair {
        return Ok(vec![at.cta]);
    }
    let peer =
        e.layout.peer(at.cta).ok_or_else(|| at.abstain("cta_group::2 without the other CTA of the pair"))?;
    Ok(vec![at.cta, peer])
}

/// What an instruction touches in tensor memory.
fn used(e: &mut Engine<'_>, s: &State, at: At<'_>, op: &Tcgen05) -> Result<Tensor, Stop> {
    let shape = shape_of(e, s, at, op)?;
    let all = touches(op, shape).ok_or_else(|| at.abstain("the shape of this tcgen05 instruction"))?;
    let pair = op.group() == Some(CtaGroup::Two);
    let ctas = ctas(e, at, pair)?;
    let (mut cells, mut accumulator) = (Vec::new(), None);
    for (number, touch) in all.into_iter().enumerate() {
        let off = if number == 0 { masks(e, s, at, op, &ctas)? } else { vec![0; ctas.len()] };
        let (home, start) = place_in_tensor(e, s, at, &touch.addr)?;
        let from = cells.len();
        for part in &touch.cells {
            let lanes = (start >> 16) + part.lanes.start..(start >> 16) + part.lanes.end;
            let columns = (start & 0xffff) + part.columns.start..(start & 0xffff) + part.columns.end;
            bounds(e, at, op, home, &lanes, columns.end);
            let Some(home) = home else { continue };
            let writes = touch.usage != Usage::Read;
            let others = moved_by_others(e, at, op, start >> 16);
            for (cta, off) in ctas.iter().zip(&off) {
                for lanes in super::place::without(lanes.clone(), *off | others) {
                    cells.push(Cells { cta: *cta, home, lanes, columns: columns.clone(), writes });
                }
            }
        }
        accumulator.get_or_insert_with(|| ((home, start), cells[from..].to_vec()));
    }
    let work = match op {
        Tcgen05::Load(_) => Work::Load,
        Tcgen05::Store(_) => Work::Store,
        Tcgen05::Copy { shape, .. } => Work::Copy { four: *shape == CopyShape::S4x256b },
        Tcgen05::Shift { .. } => Work::Shift,
        Tcgen05::Mma(mma) => {
            let (start, cells) = accumulator.unwrap_or(((None, 0), Vec::new()));
            Work::Product { kind: mma.kind, start, shape: shape.unwrap_or((0, 0)), cells }
        }
        Tcgen05::Alloc { .. }
        | Tcgen05::Dealloc { .. }
        | Tcgen05::Relinquish { .. }
        | Tcgen05::WaitLoad
        | Tcgen05::WaitStore
        | Tcgen05::Commit(_)
        | Tcgen05::FenceBefore
        | Tcgen05::FenceAfter => return Err(at.abstain(op.name())),
    };
    Ok(Tensor { work, pair, cells })
}

/// Lanes that other lanes of the warp move, where each moves its own.
fn moved_by_others(e: &Engine<'_>, at: At<'_>, op: &Tcgen05, start: u32) -> u128 {
    let mask = e.program.threads[at.thread].place.mask;
    let shape = MoveShape::L32x32b;
    let own = matches!(op, Tcgen05::Load(l) if l.shape == shape)
        || matches!(op, Tcgen05::Store(w) if w.shape == shape);
    if own && mask != 0 { !u128::from(mask).checked_shl(start).unwrap_or(0) } else { 0 }
}

/// Reports cells outside what an address belongs to, and lanes of another warp.
fn bounds(
    e: &mut Engine<'_>,
    at: At<'_>,
    op: &Tcgen05,
    home: Option<Home>,
    lanes: &std::ops::Range<u32>,
    end: u32,
) {
    let name = e.thread_name(at.thread).to_owned();
    let columns = match home {
        Some(Home::Named(object)) => e.layout.size(object) / 4,
        _ => u32::MAX,
    };
    if home.is_none() {
        let text = format!("tensor memory that is not allocated is accessed by {name}");
        e.find(Kind::Lifetime, text, vec![at.place()]);
    }
    if lanes.end > TENSOR_LANES || end > columns {
        e.find(Kind::Lifetime, format!("an access of {name} leaves its columns"), vec![at.place()]);
    }
    let warp = u32::from(e.program.threads[at.thread].place.warp) % 4;
    let moves = matches!(op, Tcgen05::Load(_) | Tcgen05::Store(_));
    if moves && (lanes.start < 32 * warp || lanes.end > 32 * warp + 32) {
        e.find(Kind::Protocol, format!("{name} accesses lanes of another warp"), vec![at.place()]);
    }
}

/// Reads of shared memory by an instruction.
fn shared(e: &Engine<'_>, s: &State, at: At<'_>, op: &Tcgen05) -> Result<Vec<Access>, Stop> {
    let mut descriptors = Vec::new();
    if let Tcgen05::Copy { src, .. } = op {
        descriptors.push((*src, false));
    } else if let Tcgen05::Mma(mma) = op {
        descriptors = factors(mma);
    }
    let ctas = ctas(e, at, op.group() == Some(CtaGroup::Two))?;
    let mut out = Vec::new();
    for (descriptor, first) in descriptors {
        let span = matrix(e, s, at, &descriptor)?;
        for cta in &ctas {
            if let Some(span) = e.layout.twin(span, *cta) {
                let access =
                    Access { span, writes: false, via: Via::Async, part: AccessKind::Product { first } };
                if !out.contains(&access) {
                    out.push(access);
                }
            }
        }
    }
    Ok(out)
}

fn factors(mma: &Mma) -> Vec<(Descriptor, bool)> {
    match mma.a {
        Factor::Shared(a) => vec![(a, true), (mma.b, false)],
        Factor::Tensor(_) => vec![(mma.b, false)],
    }
}

/// `tcgen05.commit`: arrives when what it follows is complete.
fn arrive(e: &mut Engine<'_>, s: &mut State, at: At<'_>, commit: &Commit) -> Result<(), Stop> {
    s.threads[at.thread].copies += u32::from(e.mode.instances);
    let of = object(e, s, at, &commit.addr)?;
    let targets = told(e, s, at, commit, of)?;
    let held = committed(e, s, at, commit);
    for of in targets {
        let mut vector = held.clone();
        let owner = [Some(home(e, of))];
        if let Some(record) = reaching(e, s, at, &owner, ("tcgen05.commit", Some(of)), Unstarted::Lifetime)? {
            vector.set(row::FACTS, record);
        }
        let class = Class { scope: Scope::Cluster, cta: stands(e, at, of), release: Some(Scope::Cluster) };
        let added = Added { arrivals: at.lanes, tx: 0, drops: false, observes: true };
        s.threads[at.thread].copies += u32::from(e.mode.instances);
        let used = finish(e, s, at, Completion { place: at.place(), of, class, added }, vector)?;
        if let Some(record) = used.filter(|_| e.settings.commits_in_order) {
            let last = e.carriers.first(Carrier::Committed(at.thread));
            s.rows.set(last + row::BASE, record);
        }
    }
    Ok(())
}

/// What the arrival of a commit hands on.
fn committed(e: &mut Engine<'_>, s: &mut State, at: At<'_>, commit: &Commit) -> Rows {
    let pair = commit.group == CtaGroup::Two;
    let own = |own| e.carriers.own(at.thread, own);
    let all = s.rows.get(own(if pair { Own::Two } else { Own::One }));
    let first = e.carriers.thread(at.thread);
    let followed = if e.has(Planted::EmptyCommit) {
        vec![0; s.rows.words]
    } else if commit.reads_only {
        s.rows.get(own(if pair { Own::FirstTwo } else { Own::FirstOne }))
    } else {
        all
    };
    let sets = &e.universe.sets;
    let tensor = both(&followed, &sets.tensor);
    let mut vector = Rows::new(s.rows.words);
    vector.add(row::FACTS, &s.rows.get(first + row::FACTS));
    vector.add(row::FACTS, &without(&followed, &sets.tensor));
    let relayed = if e.settings.asynchronous_commit { own(Own::After) } else { first + row::ORDERED };
    vector.add(row::ORDERED, &s.rows.get(relayed));
    vector.add(row::ORDERED, &s.rows.get(own(Own::Before)));
    vector.add(row::ORDERED, &tensor);
    if e.settings.commit_covers_waits {
        vector.add(row::ORDERED, &s.rows.get(own(Own::Waited)));
    }
    vector.add(row::ISSUED, &s.rows.get(own(Own::Issued)));
    if !e.settings.bare_commit {
        (row::BASE..e.carriers.vector()).for_each(|l| vector.add(l, &s.rows.get(first + l)));
    }
    vector.add(row::BASE, &both(&followed, &sets.memory));
    vector.add(row::COMPLETED, &tensor);
    if e.settings.commits_in_order {
        let last = e.carriers.first(Carrier::Committed(at.thread));
        let earlier = crate::engine::vector(e, s, last);
        for level in row::BASE..e.carriers.vector() {
            vector.add(level, &earlier.get(level));
            s.rows.add(last + level, &vector.get(level));
        }
    }
    vector
}

/// The mbarriers at which a commit arrives.
fn told(e: &mut Engine<'_>, s: &State, at: At<'_>, commit: &Commit, of: Object) -> Result<Vec<Object>, Stop> {
    let Some(multicast) = commit.multicast else { return Ok(vec![of]) };
    let bits = crate::value::low(known(e, s, at, multicast.mask)?, if multicast.wide { 32 } else { 16 });
    let cluster = e.layout.clusters[at.cta].clone();
    if bits >> cluster.len().min(127) != 0 {
        let text = "a mask names a CTA that the cluster does not have".to_owned();
        e.find(Kind::Protocol, text, vec![at.place()]);
    }
    let named = cluster.into_iter().enumerate().filter(|(rank, _)| bits >> rank & 1 == 1);
    let span = crate::layout::Span { copy: of.copy, offset: of.offset, bytes: 8 };
    let twins = named.filter_map(|(_, cta)| e.layout.twin(span, cta));
    Ok(twins.map(|span| Object { copy: span.copy, offset: span.offset }).collect())
}

/// Whether an allocator instruction of a thread comes after accesses to tensor memory.
pub(super) fn before_allocator(e: &Engine<'_>, s: &State, thread: usize) -> Vec<u64> {
    let mut out = s.rows.get(e.carriers.own(thread, Own::Waited));
    add(&mut out, &s.rows.get(e.carriers.own(thread, Own::After)));
    let first = e.carriers.thread(thread);
    if !e.settings.fenced_allocator {
        add(&mut out, &s.rows.get(first + row::ORDERED));
    }
    if e.settings.released {
        add(&mut out, &s.rows.get(first + row::COMPLETED));
    }
    if e.settings.allocator_waits {
        add(&mut out, &s.rows.get(e.carriers.own(thread, Own::Everything)));
    }
    out
}
