//! What may still happen to an mbarrier: how far each thread can get without an operation that is put off.
//!
//! A thread is run ahead as if every wait were answered with yes. What it then does to mbarriers, in order, is an upper
//! bound of what it can do; the waits in between hold it as long as the phase they ask for cannot complete. Threads are
//! let go on until none can: what they came by may happen, nothing else. A thread that cannot be run ahead (its way
//! depends on values nobody knows yet) may do anything.
//!
//! A thread asks one mbarrier in order: behind a wait that can have been answered in some phase at the earliest, the next
//! one is not answered in an earlier phase, where the same parity may have meant an older one.

use crate::event::Kind;
use crate::flow::Flow;
use crate::interp::{Gate, TraceEnd, View as Reads, run};
use crate::mbarrier::{Act, Floor, MbarUse, Object, Place};
use crate::state::State;
use crate::view::ThreadView;
use moire_cat::bits;
use moire_program::ir::*;
use std::collections::{BTreeMap, BTreeSet};

/// Sums of arrivals and bytes that are told apart; with more of them a phase may complete.
const SUMS: usize = 1_024;

/// Operations of one thread on mbarriers from its start to its end, its waits answered with yes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Future {
    items: Vec<Item>,
    /// Whether it does these in this order and nothing else before.
    sure: bool,
    /// Whether this is all.
    complete: bool,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Item {
    index: u16,
    used: MbarUse,
    /// By all lanes of the thread, so that it is ordered with all others.
    whole: bool,
}

/// Everything that may happen as far as threads can get.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlook {
    /// Some thread may do anything.
    unknown: bool,
    acts: BTreeMap<Object, Vec<Act>>,
}

/// Leaves out an event, or a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Without {
    pub(crate) event: Option<usize>,
    pub(crate) thread: Option<usize>,
}

/// A thread whose waits are all answered.
struct Hopeful<'s, 'a, const W: usize>(ThreadView<'s, 'a, W>);

impl<const W: usize> Reads for Hopeful<'_, '_, W> {
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

/// Whether what a thread does is told by running it ahead: nothing hangs on what an arrival or a barrier hands back, and
/// every question to an mbarrier is asked until the answer is yes.
fn foreseeable(thread: &Thread, flow: &Flow) -> bool {
    thread.body.iter().enumerate().all(|(pc, instr)| match &instr.op {
        Op::Bar { kind: BarKind::Red { .. }, .. } => false,
        Op::Mbarrier(m) => match m.op {
            MbarrierOp::Wait(_) => flow.asked_until_yes[pc],
            _ => m.dst().is_none(),
        },
        _ => true,
    })
}

impl Outlook {
    /// What may happen to an object.
    fn on(&self, object: Object) -> &[Act] {
        self.acts.get(&object).map_or(&[], Vec::as_slice)
    }

    /// Whether an `init` or `inval` may happen.
    pub(crate) fn may_end(&self, object: Object) -> bool {
        self.unknown || self.on(object).iter().any(Act::ends)
    }

    /// Whether an operation that `joins` may happen.
    pub(crate) fn may_join(&self, object: Object, joins: impl Fn(Act) -> bool) -> bool {
        let adds = |a: &Act| matches!(a, Act::Add { .. }) && joins(*a);
        self.unknown || self.on(object).iter().any(adds)
    }
}

impl<const W: usize> State<'_, W> {
    fn future(&self, thread: usize) -> &Future {
        self.threads[thread].trace.future.get_or_init(|| {
            let id = ThreadId(u16::try_from(thread).unwrap_or(u16::MAX));
            let flow = &self.threads[thread].flow;
            let view = Hopeful(ThreadView { state: self, thread });
            let trace = run(self.program, &self.layout, flow, id, self.front, &view);
            let ops = trace.events.iter().flatten();
            let items = ops.filter_map(|e| match e.kind {
                Kind::Mbarrier(used) => Some(Item { index: e.index, used, whole: e.arms.is_none() }),
                _ => None,
            });
            let sure = foreseeable(&self.program.threads[thread], flow);
            Future { items: items.collect(), sure, complete: trace.end == TraceEnd::Done }
        })
    }

    /// What may happen without an event and a thread.
    pub(crate) fn outlook(&self, without: Without) -> Outlook {
        let mut out = Outlook::default();
        // What is over, or left out, still has what it has come by.
        let stays = |t: usize| {
            Some(t) == without.thread
                || matches!(self.threads[t].trace.end, TraceEnd::Done | TraceEnd::Stuck(_))
        };
        let mut cursors = vec![0; self.threads.len()];
        let mut floors: BTreeMap<(usize, Object), Place> = BTreeMap::new();
        loop {
            let mut moved = false;
            for (thread, at) in cursors.iter_mut().enumerate() {
                let (future, stays) = (self.future(thread), stays(thread));
                while let Some(Item { index, used, whole }) = future.items.get(*at) {
                    let id =
                        self.threads[thread].ids.get(*index as usize).copied().flatten().map(usize::from);
                    let seen = id.is_some_and(|id| bits::has(&self.present, id) || Some(id) == without.event);
                    if matches!(used.act, Act::Wait { .. }) {
                        if !seen && !stays {
                            let key = (thread, used.object);
                            let floor = floors.get(&key).copied().filter(|_| *whole);
                            let Some(passes) = self.may_pass(*used, (thread, *index), floor, &out) else {
                                break;
                            };
                            if *whole {
                                floors.insert(key, passes);
                            }
                        }
                    } else if !seen && (id.is_some() || !stays) {
                        out.acts.entry(used.object).or_default().push(used.act);
                    }
                    (*at, moved) = (*at + 1, true);
                }
                let lost = !future.sure || (*at >= future.items.len() && !future.complete);
                if lost && !stays && !out.unknown {
                    (out.unknown, moved) = (true, true);
                }
            }
            if !moved {
                return out;
            }
        }
    }

    /// Where a wait may be answered with yes at the earliest: in a phase it can still have asked in, or in one to come.
    fn may_pass(
        &self,
        used: MbarUse,
        (thread, index): (usize, u16),
        floor: Option<Place>,
        outlook: &Outlook,
    ) -> Option<Place> {
        let object = used.object;
        let allowed = |p: &Place| floor.is_none_or(|f| f <= *p);
        let places = self.places_for(used, (thread, index, &None, false), &Floor::default());
        let yes = |p: &Place| allowed(p) && self.answer_at(used, *p) != 0;
        let known = places.into_iter().filter(yes);
        let eras = self.eras(object);
        let lives = (0..=eras).filter_map(|era| {
            let now = Place { era, level: self.level(object, era) };
            self.phases_of(object, era)?;
            let later = (now.level + 1..).map(|level| Place { era, level });
            // The answer is yes in every other phase.
            let first = later.take(usize::from(floor.map_or(0, |f| f.level)) + 2).find(yes)?;
            let phases = u64::from(first.level - now.level);
            (outlook.unknown || self.may_add_up(object, era, phases, outlook)).then_some(first)
        });
        let ends = outlook.unknown || outlook.may_end(object);
        let reborn = ends.then_some(Place { era: eras + 1, level: 0 });
        known.chain(lives).chain(reborn).min()
    }

    /// Whether the current phase of some life of an object may complete, or a life end: whether some of what may happen
    /// adds up with what is there, arrivals and bytes.
    pub(crate) fn may_advance(&self, object: Object, outlook: &Outlook) -> bool {
        let joins = outlook.may_join(object, |_| true);
        outlook.may_end(object)
            || outlook.unknown
            || (joins && (0..=self.eras(object)).any(|era| self.may_add_up(object, era, 1, outlook)))
    }

    /// Whether so many phases of an era may complete, the current one first: some of what may happen adds up to all their
    /// arrivals, and to no bytes. Every subset counts, in whatever order: more than can happen, never less.
    fn may_add_up(&self, object: Object, era: u16, phases: u64, outlook: &Outlook) -> bool {
        let known = self.phases_of(object, era).unwrap_or_default();
        let Some(now) = known.last() else { return false };
        let drops = |a: &Act| matches!(a, Act::Add { drops: true, .. });
        let dropped = now.members.iter().filter_map(|m| self.mbar_use(*m)).any(|u| drops(&u.act));
        // What drops out is not waited for again.
        let phases = if dropped || outlook.on(object).iter().any(drops) { 1 } else { phases };
        let expected = now.expected.saturating_mul(phases);
        let mut sums = BTreeSet::from([(now.arrivals.min(expected), now.tx)]);
        // A phase that is open though it adds up wants something more.
        let mut enough = false;
        for act in outlook.on(object) {
            let Act::Add { arrivals, tx, .. } = act else { continue };
            let with = |sum: &(u64, i64)| ((sum.0 + u64::from(*arrivals)).min(expected), sum.1 + tx);
            let more: Vec<(u64, i64)> = sums.iter().map(with).collect();
            enough |= more.contains(&(expected, 0)) || sums.len() > SUMS;
            if enough {
                break;
            }
            sums.extend(more);
        }
        enough
    }
}
