//! Operations on mbarriers that are to be placed: which comes next, where it can go, and whether it can be put off.

use super::outlook::{Without, may_advance, outlook};
use crate::graph::graph::{Answers, Graph, Trial};
use crate::graph::ids::EventId;
use crate::graph::mbarriers::{OpenPhase, Stage};
use crate::thread::event::Emitted;
use crate::thread::event::mbarrier::Act;
use crate::thread::run::run;
use crate::thread::trace::TraceEnd;
use moire_program::ir::ThreadId;

/// The first event on an mbarrier that can take a place: `init` and `inval`, then arrivals, then completed transactions, then
/// waits. What announces transactions comes before what completes them, so that no phase seems to be over without them.
pub(crate) fn next_mbarrier<const W: usize>(g: &Graph<'_, W>) -> Option<EventId> {
    let rank = |act: &Act| match act {
        Act::Init { .. } | Act::Inval => 0,
        Act::Add { tx, .. } => 1 + usize::from(*tx < 0),
        Act::Wait { .. } => 3,
    };
    for wanted in 0..4 {
        for id in waiting_mbarriers(g) {
            let Some(used) = g.events[id].mbarrier() else { continue };
            if rank(&used.act) == wanted && !choices_for(g, id).is_empty() {
                return Some(id);
            }
        }
    }
    None
}

/// Events on mbarriers without a place.
pub(crate) fn waiting_mbarriers<const W: usize>(g: &Graph<'_, W>) -> impl Iterator<Item = EventId> {
    g.events
        .of_threads()
        .filter(move |id| g.events[*id].mbarrier().is_some() && g.mbarriers.places[*id].is_none())
}

pub(crate) fn choices_for<const W: usize>(g: &Graph<'_, W>, id: EventId) -> Vec<Stage> {
    let (Some(used), Some(thread)) = (g.events[id].mbarrier(), g.events[id].thread) else { return vec![] };
    let emitted = &g.events[id].emitted;
    let event = (thread, emitted.index, &emitted.lanes.arms, emitted.detached);
    let mut places = g.mbarriers.places_for(&g.events, used, event, &g.mbarriers.floors[id]);
    if matches!(used.act, Act::Wait { .. })
        && places.iter().any(|p| g.mbarriers.answer_at(&g.events, used, *p) == 0)
    {
        let vain = asked_in_vain(g, thread, emitted);
        places.retain(|p| !vain || g.mbarriers.answer_at(&g.events, used, *p) != 0);
    }
    places
}

/// Whether a failed test here is a failed iteration of a spin loop, which is no event: which phase it tests does not
/// change, and that phase is not over.
fn asked_in_vain<const W: usize>(g: &Graph<'_, W>, thread: ThreadId, emitted: &Emitted) -> bool {
    let waits = &g.events.threads[thread];
    let pending = matches!(&waits.trace.end, TraceEnd::Pending(deps) if deps.has(emitted.index));
    pending && waits.flow.asked_until_yes[emitted.pc] && {
        let inner = Answers { graph: g, thread };
        let view = Trial { inner, gate: u16::MAX, given: &[(emitted.index, 0)] };
        let trace = run(g.events.program, &g.events.layout, &waits.flow, thread, g.events.front, &view);
        trace.end == TraceEnd::SpinFail
    }
}

/// Whether putting `id` off can lead anywhere: without it, and without the thread that waits for its answer, the
/// phase may complete or the life of the object end.
pub(crate) fn may_put_off<const W: usize>(g: &Graph<'_, W>, id: EventId) -> bool {
    let Some(used) = g.events[id].mbarrier() else { return false };
    let event = &g.events[id];
    let waits = |t: &ThreadId| match &g.events.threads[*t].trace.end {
        TraceEnd::Pending(deps) => deps.has(event.emitted.index),
        _ => false,
    };
    let thread = event.thread.filter(waits);
    let outlook = outlook(g, Without { event: Some(id), thread });
    if used.act.ends() { outlook.may_end(used.object) } else { may_advance(g, used.object, &outlook) }
}

/// An event on an mbarrier that has one place, and cannot be put off.
pub(crate) fn settled_mbarrier<const W: usize>(g: &Graph<'_, W>) -> Option<EventId> {
    waiting_mbarriers(g).find(|id| choices_for(g, *id).len() == 1 && !may_put_off(g, *id))
}

/// Whether a later operation may join a phase that is kept open though it adds up.
pub(crate) fn may_join_open<const W: usize>(g: &Graph<'_, W>, open: &OpenPhase) -> bool {
    let single = |act: Act| matches!(act, Act::Add { arrivals: 1, tx: 0, .. });
    let phases = g.mbarriers.phases_of(&g.events, open.object, open.stage.era).unwrap_or_default();
    let Some(phase) = phases.get(usize::from(open.stage.level).saturating_sub(1)) else { return false };
    let singles = phase.members.iter().all(|m| g.events[*m].mbarrier().is_some_and(|u| single(u.act)));
    outlook(g, Without::default()).may_join(open.object, |act| !(singles && single(act)))
}

/// Whether every event on an mbarrier has its place and no phase was kept open for nothing.
pub(crate) fn mbarriers_settled<const W: usize>(g: &Graph<'_, W>) -> bool {
    let idle = |open: &OpenPhase| {
        let phases = g.mbarriers.phases_of(&g.events, open.object, open.stage.era).unwrap_or_default();
        let phase = phases.get(usize::from(open.stage.level) - 1);
        phase.is_some_and(|p| p.members.len() == open.members && p.adds_up())
    };
    waiting_mbarriers(g).next().is_none() && !g.mbarriers.kept_open.iter().any(idle)
}
