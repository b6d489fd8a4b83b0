//! What may still happen to an mbarrier: how far each thread can get without an operation that is put off.
//!
//! A thread is run ahead as if every wait were answered with yes. What it then does to mbarriers, in order, is an upper
//! bound of what it can do; the waits in between hold it as long as the phase they ask for cannot complete. Threads are
//! let go on until none can: what they came by may happen, nothing else. A thread that cannot be run ahead (its way
//! depends on values nobody knows yet) may do anything.

use crate::event::Kind;
use crate::flow::Flow;
use crate::interp::{Gate, TraceEnd, View as Reads, run};
use crate::mbarrier::{Act, Floor, MbarUse, Object};
use crate::state::State;
use crate::view::ThreadView;
use moire_cat::bits;
use moire_program::ir::*;
use std::collections::BTreeMap;

/// Operations of one thread on mbarriers from its start to its end, its waits answered with yes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Future {
    items: Vec<(u16, MbarUse)>,
    /// Whether it does these in this order and nothing else before.
    sure: bool,
    /// Whether this is all.
    complete: bool,
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
                Kind::Mbarrier(used) => Some((e.index, used)),
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
        loop {
            let mut moved = false;
            for (thread, at) in cursors.iter_mut().enumerate() {
                let (future, stays) = (self.future(thread), stays(thread));
                while let Some((index, used)) = future.items.get(*at) {
                    let id =
                        self.threads[thread].ids.get(*index as usize).copied().flatten().map(usize::from);
                    let seen = id.is_some_and(|id| bits::has(&self.present, id) || Some(id) == without.event);
                    if matches!(used.act, Act::Wait { .. }) {
                        if !seen && !stays && !self.may_pass(*used, (thread, *index), &out) {
                            break;
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

    /// Whether a wait may be answered with yes: in a phase it can still have asked in, or in one to come.
    fn may_pass(&self, used: MbarUse, (thread, index): (usize, u16), outlook: &Outlook) -> bool {
        let places = self.places_for(used, (thread, index, &None, false), &Floor::default());
        let yes = places.iter().any(|place| self.answer_at(used, *place) != 0);
        yes || self.may_advance(used.object, outlook)
    }

    /// Whether the current phase of some life of an object may complete, or a life end: as far as arrivals go, and bytes.
    pub(crate) fn may_advance(&self, object: Object, outlook: &Outlook) -> bool {
        let (mut more, mut expected, mut completed) = (0, 0, 0);
        for act in outlook.on(object) {
            if let Act::Add { arrivals, tx, .. } = act {
                more += u64::from(*arrivals);
                expected += (*tx).max(0);
                completed += (-*tx).max(0);
            }
        }
        let enough = |era: u16| {
            self.phases_of(object, era).is_some_and(|phases| {
                phases.last().is_some_and(|now| {
                    let bytes = now.tx - completed <= 0 && now.tx + expected >= 0;
                    bytes && now.arrivals + more >= now.expected
                })
            })
        };
        let joins = outlook.may_join(object, |_| true);
        outlook.may_end(object) || outlook.unknown || (joins && (0..=self.eras(object)).any(enough))
    }
}
