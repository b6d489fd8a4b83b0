//! What may still happen to an mbarrier or a barrier: how far each thread can get without an operation that is put off.
//!
//! Each thread is run ahead as if every wait were answered with yes. What it then does to mbarriers, in order, is an upper
//! bound of what it can do. A wait holds a thread as long as the phase it asks for cannot complete; a barrier of the CTA, the
//! cluster or the warp holds it until enough others can have arrived. Threads advance until none can: what they passed may
//! happen, and nothing else. A thread that cannot be run ahead, because its next step depends on unknown values, may do
//! whatever the rest of its text names (`thread::may_arrive`), once it gets there.
//!
//! A thread asks an mbarrier in order. If a wait cannot be answered before some phase, neither can the next wait of the
//! thread, although its parity may also stand for an older phase.
//!
//! For example, the worker warps of compiled kernels loop on a word of shared memory behind a barrier of the CTA. They
//! leave no choice open, because they get there only once the barrier lets them.

use crate::graph::graph::{Answers, Graph};
use crate::graph::ids::EventId;
use crate::graph::mbarriers::{Floor, Stage};
use crate::graph::row;
use crate::planted::Planted;
use crate::prune::sums::add_up;
use crate::thread::event::Kind;
use crate::thread::event::barrier::{BarrierObject, BarrierUse, meet, names};
use crate::thread::event::mbarrier::{Act, MbarUse, Object};
use crate::thread::flow::Flow;
use crate::thread::ids::Table;
use crate::thread::may_arrive::MayArrive;
use crate::thread::run::run;
use crate::thread::run_ahead::Item;
use crate::thread::run_ahead::{Operation, RunAhead};
use crate::thread::trace::{Gate, Trace, TraceEnd, View};
use moire_program::ir::*;
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, register_op, unit_op};
use std::collections::{BTreeMap, BTreeSet};

/// Arrivals that may happen: for each barrier and thread their number, and the number of their lanes.
type Arrivals = BTreeMap<(BarrierObject, ThreadId), (u32, u32)>;

/// Threads run ahead, as far as they have got.
#[derive(Default)]
struct Progress {
    without: Without,
    out: Outlook,
    cursors: Table<ThreadId, Cursor>,
    /// For each thread and object the earliest phase in which the last wait was answered.
    floors: BTreeMap<(ThreadId, Object), Stage>,
    arrivals: Arrivals,
    /// Threads that cannot be run ahead from where they are.
    lost: BTreeSet<ThreadId>,
}

/// How far a thread gets.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    at: usize,
    /// Whether the arrival it stands at is counted.
    counted: bool,
}

/// Everything that may happen as far as threads can get.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlook {
    /// By threads that cannot be run ahead from where they got to.
    may_arrive: MayArrive,
    acts: BTreeMap<Object, Vec<Act>>,
}

/// Leaves out an event, or a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Without {
    pub(crate) event: Option<EventId>,
    pub(crate) thread: Option<ThreadId>,
}

/// A thread whose waits are all answered.
struct Hopeful<'s, 'a, const W: usize>(Answers<'s, 'a, W>);

impl<const W: usize> View for Hopeful<'_, '_, W> {
    fn read(&self, index: u16) -> Option<Value> {
        self.0.read(index)
    }

    fn unknown(&self, index: u16) -> bool {
        self.0.unknown(index)
    }

    fn passed(&self, index: u16) -> Option<Value> {
        self.0.passed(index).or(Some(0))
    }

    fn answer(&self, index: u16) -> Option<Value> {
        self.0.answer(index).or(Some(1))
    }

    fn gate(&self, _: u16) -> Gate {
        Gate::Open
    }
}

/// Whether a thread goes on after an instruction as if its answer were yes. It does if nothing depends on what an arrival or
/// a barrier hands back, and if it asks an mbarrier until the answer is yes.
fn foreseeable(thread: &Thread, flow: &Flow, pc: usize) -> bool {
    match &thread.body[pc].op {
        Op::Bar { kind: BarKind::Red { .. }, .. }
        | Op::Control(Control::Elect { .. } | Control::Collective(_)) => false,
        Op::Mbarrier(m) => match m.op {
            MbarrierOp::Wait(_) => flow.asked_until_yes[pc],
            MbarrierOp::Init { .. } | MbarrierOp::Inval | MbarrierOp::Arrive(_) => m.dst().is_none(),
            MbarrierOp::ExpectTx { .. } | MbarrierOp::CompleteTx { .. } => m.dst().is_none(),
        },
        register_op!() | Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Tile(_) => true,
        multimem_op!() | barrier_op!() | fence_op!() | unit_op!() | Op::Control(_) | jump_op!() => true,
        Op::Book(_) => true,
    }
}

impl Outlook {
    /// What may happen to an object.
    fn on(&self, object: Object) -> &[Act] {
        self.acts.get(&object).map_or(&[], Vec::as_slice)
    }

    /// Whether an `init` or `inval` may happen.
    pub(crate) fn may_end(&self, object: Object) -> bool {
        self.may_arrive.ends.has(object.instance) || self.on(object).iter().any(Act::ends)
    }

    /// Whether an operation that `joins` may happen.
    pub(crate) fn may_join(&self, object: Object, joins: impl Fn(Act) -> bool) -> bool {
        let adds = |a: &Act| matches!(a, Act::Add { .. }) && joins(*a);
        self.may_arrive.adds.has(object.instance) || self.on(object).iter().any(adds)
    }
}

fn future<'g, const W: usize>(g: &'g Graph<'_, W>, thread: ThreadId) -> &'g RunAhead {
    g.events.threads[thread].trace.run_ahead.get_or_init(|| {
        let flow = &g.events.threads[thread].flow;
        let view = Hopeful(Answers { graph: g, thread });
        let trace = run(g.events.program, &g.events.layout, flow, thread, g.events.front, &view);
        let real = &g.events.threads[thread].trace;
        let mut waits: BTreeMap<BarrierObject, u32> = BTreeMap::new();
        let (mut items, mut guessed) = (Vec::new(), false);
        for e in trace.events.iter().flatten() {
            // The thread does what it has passed, whatever the answers are.
            if guessed && real.events.len() <= e.index as usize {
                break;
            }
            let operation = match e.kind {
                Kind::Mbarrier(used) => Operation::Mbarrier(used),
                Kind::Barrier(used) => {
                    let before = waits.entry(used.object).or_default();
                    let waits = *before;
                    *before += u32::from(used.waits && e.lanes.arms.is_none());
                    Operation::Barrier { used, lanes: e.lanes.count(), waits }
                }
                _ => continue,
            };
            // A known answer is no guess, but what an arrival hands back may still change. A thread that does not ask
            // until the answer is yes is not held.
            let asks = matches!(operation, Operation::Mbarrier(MbarUse { act: Act::Wait { .. }, .. }));
            let foreseen = foreseeable(g.events.code(thread), flow, e.pc);
            let exchanges =
                matches!(e.kind, Kind::Barrier(b) if matches!(b.object, BarrierObject::Collective { .. }));
            let answered =
                asks && view.0.answer(e.index).is_some() || exchanges && view.0.passed(e.index).is_some();
            guessed |= !foreseen && !answered;
            if foreseen || !asks {
                items.push(Item {
                    index: e.index,
                    operation,
                    arms: e.lanes.arms.clone(),
                    whole: e.lanes.arms.is_none(),
                });
            }
        }
        let end = if guessed { real } else { &trace };
        let rest = (end.end != TraceEnd::Done).then(|| loose(g, thread, end.pc, &trace));
        RunAhead { items, rest }
    })
}

/// What the text behind a place of a thread may do.
fn loose<const W: usize>(g: &Graph<'_, W>, thread: ThreadId, pc: usize, trace: &Trace) -> MayArrive {
    // Lanes that parted may still be at several places.
    let parted = trace.events.iter().flatten().any(|e| e.lanes.arms.is_some());
    let start = if parted { 0 } else { g.events.reachable_from(thread, pc) };
    MayArrive::of(g.events.program, &g.events.layout, &g.events.code(thread).body[start..])
}

/// What may happen without an event and a thread.
pub(crate) fn outlook<const W: usize>(g: &Graph<'_, W>, without: Without) -> Outlook {
    run_ahead(g, without).out
}

/// The most lanes that may arrive at the barrier of an event before the event. Its own thread does nothing more; all others do
/// what they can without it. `None` if that is unknown.
pub(crate) fn arrivals_without<const W: usize>(g: &Graph<'_, W>, event: EventId) -> Option<u64> {
    let (thread, object) = (g.events[event].thread?, g.events[event].barrier()?.object);
    let run = run_ahead(g, Without { event: Some(event), thread: Some(thread) });
    debug_assert!(!run.lost.contains(&thread), "its own thread does no more");
    let mut here = g.events.threads.ids().filter(|t| meet(g.events.program, &object, thread, *t));
    let of = |t: ThreadId| run.arrivals.get(&(object, t)).map_or(0, |arrivals| u64::from(arrivals.1));
    let bounded =
        |t: ThreadId| g.events.front.planted == Some(Planted::LostArrivesNot) || !run.lost.contains(&t);
    here.try_fold(0, |sum, t| bounded(t).then(|| sum + of(t)))
}

/// Runs all threads ahead until none gets any further.
fn run_ahead<const W: usize>(g: &Graph<'_, W>, without: Without) -> Progress {
    let cursors = g.events.threads.iter().map(|_| Cursor::default()).collect();
    let mut run = Progress { without, cursors, ..Progress::default() };
    loop {
        let mut moved = false;
        for thread in g.events.threads.ids() {
            let future = future(g, thread);
            while let Some(item) = future.items.get(run.cursors[thread].at) {
                let before = run.cursors[thread].counted;
                if !passes(g, thread, item, &mut run) {
                    moved |= before != run.cursors[thread].counted;
                    break;
                }
                run.cursors[thread] = Cursor { at: run.cursors[thread].at + 1, ..Cursor::default() };
                moved = true;
            }
            let at_end = run.cursors[thread].at >= future.items.len();
            if let Some(rest) = future.rest.as_ref().filter(|_| at_end)
                && !stays(g, thread, without)
                && run.lost.insert(thread)
            {
                run.out.may_arrive.join(rest);
                moved = true;
            }
        }
        if !moved {
            return run;
        }
    }
}

/// Whether a thread does no more than it has passed, because it is over or left out.
fn stays<const W: usize>(g: &Graph<'_, W>, thread: ThreadId, without: Without) -> bool {
    let end = &g.events.threads[thread].trace.end;
    Some(thread) == without.thread || matches!(end, TraceEnd::Done | TraceEnd::Stuck(_))
}

/// Takes note of what a thread does next, and says whether it may get past it.
fn passes<const W: usize>(g: &Graph<'_, W>, thread: ThreadId, item: &Item, run: &mut Progress) -> bool {
    let stays = stays(g, thread, run.without);
    let id = g.events.threads[thread].ids.get(item.index as usize).copied().flatten();
    let seen = id.is_some_and(|id| row::has(&g.events.present, id) || Some(id) == run.without.event);
    match item.operation {
        Operation::Mbarrier(used) if matches!(used.act, Act::Wait { .. }) => {
            if seen || stays {
                return true;
            }
            let key = (thread, used.object);
            let floor = run.floors.get(&key).copied().filter(|_| item.whole);
            let passes = may_pass(g, used, (thread, item), floor, &run.out);
            if let Some(place) = passes.filter(|_| item.whole) {
                run.floors.insert(key, place);
            }
            passes.is_some()
        }
        Operation::Mbarrier(used) => {
            let behind = run.without.event.is_some_and(|e| behind(g, thread, item, used.object, e));
            if !seen && !behind && (id.is_some() || !stays) {
                run.out.acts.entry(used.object).or_default().push(used.act);
            }
            true
        }
        Operation::Barrier { .. } if id.is_some() && id == run.without.event => false,
        Operation::Barrier { used, lanes, waits } => {
            if !run.cursors[thread].counted && (id.is_some() || !stays) {
                let sum = run.arrivals.entry((used.object, thread)).or_default();
                *sum = (sum.0 + u32::from(used.arrives), sum.1.saturating_add(lanes));
                run.cursors[thread].counted = true;
            }
            let past = id.is_some() && g.events.threads[thread].trace.end != TraceEnd::Barrier(item.index);
            let free = !item.whole || !used.waits || past || stays;
            free || may_complete(g, thread, &used, waits, run)
        }
    }
}

/// Whether an operation comes after an event of the same thread on the same object in any case, so that the event cannot
/// be put off past it.
fn behind<const W: usize>(
    g: &Graph<'_, W>,
    thread: ThreadId,
    item: &Item,
    object: Object,
    event: EventId,
) -> bool {
    let (e, used) = (&g.events[event], g.events[event].mbarrier());
    let same = e.thread == Some(thread) && used.is_some_and(|u| u.object == object);
    same && e.emitted.index < item.index
        && !e.emitted.detached
        && e.emitted.lanes.arms.is_none()
        && item.whole
}

/// Whether a thread that has waited `waits` times at a barrier may pass it once more: whether enough arrivals for that are
/// possible.
fn may_complete<const W: usize>(
    g: &Graph<'_, W>,
    thread: ThreadId,
    used: &BarrierUse,
    waits: u32,
    run: &Progress,
) -> bool {
    let of = |t: ThreadId| run.arrivals.get(&(used.object, t)).copied().unwrap_or_default();
    let mut here = g.events.threads.ids().filter(|t| meet(g.events.program, &used.object, thread, *t));
    let lanes = || here.clone().map(|t| u64::from(of(t).1)).sum::<u64>();
    // Over, or lost.
    let ended = |t: ThreadId| {
        let all = run.cursors[t].at >= future(g, t).items.len() && Some(t) != run.without.thread;
        all || g.events.threads[t].trace.end == TraceEnd::Done
    };
    match (used.object, used.count) {
        (BarrierObject::Cta { instance: Some(_), .. }, _) => true,
        (BarrierObject::Cta { .. }, Some(count)) => {
            lanes() >= u64::from(count) * (u64::from(waits) + 1) || here.any(|t| run.lost.contains(&t))
        }
        (object, _) => here.all(|t| !names(g.events.program, &object, t) || of(t).0 > waits || ended(t)),
    }
}

/// The earliest phase in which a wait may be answered with yes: one in which it can still have asked, or a later one.
fn may_pass<const W: usize>(
    g: &Graph<'_, W>,
    used: MbarUse,
    (thread, item): (ThreadId, &Item),
    floor: Option<Stage>,
    outlook: &Outlook,
) -> Option<Stage> {
    let object = used.object;
    let allowed = |p: &Stage| floor.is_none_or(|f| f <= *p);
    let places =
        g.mbarriers.places_for(&g.events, used, (thread, item.index, &item.arms, false), &Floor::default());
    let yes = |p: &Stage| allowed(p) && g.mbarriers.answer_at(&g.events, used, *p) != 0;
    let known = places.into_iter().filter(yes);
    let eras = g.mbarriers.eras(&g.events, object);
    let lives = (0..=eras).filter_map(|era| {
        let now = Stage { era, level: g.mbarriers.level(&g.events, object, era) };
        g.mbarriers.phases_of(&g.events, object, era)?;
        let later = (now.level + 1..).map(|level| Stage { era, level });
        // The answer is yes in every other phase.
        let first = later.take(usize::from(floor.map_or(0, |f| f.level)) + 2).find(yes)?;
        let phases = u64::from(first.level - now.level);
        may_add_up(g, object, era, phases, outlook).then_some(first)
    });
    let reborn = outlook.may_end(object).then_some(Stage { era: eras + 1, level: 0 });
    known.chain(lives).chain(reborn).min()
}

/// Whether the current phase of some life of an object may complete, or a life may end. It may if what is there and some of
/// what may happen add up, in arrivals and in bytes.
pub(crate) fn may_advance<const W: usize>(g: &Graph<'_, W>, object: Object, outlook: &Outlook) -> bool {
    let joins = outlook.may_join(object, |_| true);
    outlook.may_end(object)
        || (joins
            && (0..=g.mbarriers.eras(&g.events, object)).any(|era| may_add_up(g, object, era, 1, outlook)))
}

/// Whether so many phases of an era may complete, the current one first. They may if some of what may happen adds up to all
/// their arrivals and leaves no bytes. Every subset counts, in any order: the answer covers more than can happen, never less.
fn may_add_up<const W: usize>(
    g: &Graph<'_, W>,
    object: Object,
    era: u16,
    phases: u64,
    outlook: &Outlook,
) -> bool {
    let known = g.mbarriers.phases_of(&g.events, object, era).unwrap_or_default();
    let Some(now) = known.last() else { return false };
    if outlook.may_arrive.adds.has(object.instance) {
        return true;
    }
    let drops = |a: &Act| matches!(a, Act::Add { drops: true, .. });
    let dropped = now.members.iter().filter_map(|m| g.events[*m].mbarrier()).any(|u| drops(&u.act));
    // What drops out is not waited for again.
    let phases = if dropped || outlook.on(object).iter().any(drops) { 1 } else { phases };
    let expected = now.expected.saturating_mul(phases);
    let adds = outlook.on(object).iter().filter_map(|act| match act {
        Act::Add { arrivals, tx, .. } => Some((u64::from(*arrivals), *tx)),
        _ => None,
    });
    // A phase that adds up and is still open waits for something else.
    add_up((now.arrivals, now.tx), adds, expected)
}
