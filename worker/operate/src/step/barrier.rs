//! Barriers of a CTA, a warp and a cluster (PTX ISA 9.2, 9.7.13.1 to 9.7.13.3).
//!
//! D3: an arrival knows the last generation, so it counts in no earlier one, and no generation is complete without one of
//! its arrivals. Generations that name different counts are generations of one barrier. A barrier that names no number waits for the threads that have not exited: an exit counts in every
//! generation to come. A barrier that names a number waits for so many arrivals, even if it is that of all threads. If
//! both kinds meet, an exit would release one of them and not the other, which is not decided here. At the barrier of a
//! cluster and of a warp each thread that it waits for takes part in every generation, until it exits.

use super::fence::fenced_inits;
use crate::carrier::{Carrier, row};
use crate::engine::{At, Engine, Reach, deliver, drop_record, empty, known, knows, learn, published, vector};
use crate::finding::{Condition, Kind, Stop};
use crate::planted::Planted;
use crate::record::{Barrier, What};
use crate::rows;
use crate::state::{Meeting, State};
use moire_program::ir::{BarKind, Exchange, Instr, Operand};

/// Lanes of all threads of a CTA.
fn lanes_of(e: &Engine<'_>, cta: usize) -> u32 {
    e.layout.ctas[cta].iter().map(|t| e.program.threads[*t].place.lanes().count_ones()).sum()
}

/// `bar` of a kind, a number and perhaps a count. Returns whether the thread goes on.
pub(super) fn bar(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    (kind, id, count): (BarKind, Operand, Option<Operand>),
) -> Result<bool, Stop> {
    if matches!(kind, BarKind::Red { .. }) {
        return Err(at.abstain("bar.red"));
    }
    let id = known(e, s, at, id)?.cast_signed();
    let threads =
        |n| u32::try_from(n).map_err(|_| at.abstain("a barrier count that is no number of threads"));
    let count = count.map(|count| threads(known(e, s, at, count)?)).transpose()?;
    let part = count.filter(|n| *n != lanes_of(e, at.cta));
    come(e, s, at, (Barrier::Cta { cta: at.cta, id, part }, count, kind == BarKind::Sync))
}

/// `bar.warp.sync`. Returns whether the thread goes on.
pub(super) fn warp(e: &mut Engine<'_>, s: &mut State, at: At<'_>, mask: Operand) -> Result<bool, Stop> {
    let mask = crate::value::low(known(e, s, at, mask)?, 32);
    let place = &e.program.threads[at.thread].place;
    let alone = place.lane().is_none().then_some(at.thread);
    let mask = u32::try_from(mask).unwrap_or(u32::MAX);
    if place.mask & !mask != 0 {
        return Err(at.abstain("a lane at a barrier of others"));
    }
    come(e, s, at, (Barrier::Warp { cta: at.cta, warp: place.warp, mask, alone }, None, true))
}

/// An exchange of a form, or an election, among the lanes of a mask. Returns whether the thread goes on.
pub(super) fn exchange(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    among: (Option<Exchange>, Operand),
) -> Result<bool, Stop> {
    match lanes_meet(e, s, at, among)? {
        Some(barrier) => come(e, s, at, (barrier, None, true)),
        None => Ok(true),
    }
}

/// Arrives at a barrier that names so many threads, or none, and may wait there. Returns whether the thread goes on.
fn come(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    (barrier, count, waits): (Barrier, Option<u32>, bool),
) -> Result<bool, Stop> {
    if count == Some(0) {
        return Err(at.abstain("a barrier count of zero"));
    }
    if count.is_some_and(|n| at.lanes > n) {
        against(e, at, "arrives at a barrier with more lanes than its count");
        return Ok(true);
    }
    apart(e, s, at, barrier)?;
    let mut meeting = s.meetings.get(&barrier).cloned().unwrap_or_default();
    if meeting.members.iter().any(|m| m.0 == at.thread) && count.is_none() {
        return Err(at.abstain("a thread that arrives twice at a barrier for all threads"));
    }
    if count.is_some_and(|n| meeting.lanes + at.lanes > n) {
        return Err(at.abstain("more arrivals at a barrier than its count"));
    }
    let generation = e.fact(usize::MAX, What::Generation(barrier), at.line())?;
    debug_assert!(!s.threads[at.thread].held, "a thread that waits arrives nowhere");
    if meeting.again && !e.mode.every_order && !knows(e, s, at.thread, row::FACTS, generation) {
        let text =
            format!("{} arrives at a barrier without order after its last use", e.thread_name(at.thread));
        e.broken(Condition::Generation, text, vec![at.place()]);
    }
    let held = published(e, s, at.thread);
    deliver(e, s, Carrier::Meeting(barrier), &held);
    meeting.lanes += at.lanes;
    meeting.count = count.or(meeting.count);
    meeting.open |= count.is_none();
    meeting.members.push((at.thread, waits));
    debug_assert!(meeting.count.is_none_or(|n| meeting.lanes <= n), "no more lanes than the count");
    meeting.members.sort_unstable();
    s.meetings.insert(barrier, meeting);
    s.threads[at.thread].held = waits;
    e.arrived = true;
    complete(e, s, barrier, at.line())?;
    Ok(!waits || !s.threads[at.thread].held)
}

/// Where lanes of several threads meet in an exchange or an election. `None` if the thread is alone: nothing waits.
fn lanes_meet(
    e: &Engine<'_>,
    s: &State,
    at: At<'_>,
    (form, mask): (Option<Exchange>, Operand),
) -> Result<Option<Barrier>, Stop> {
    let mask = u32::try_from(crate::value::low(known(e, s, at, mask)?, 32)).unwrap_or(u32::MAX);
    let place = &e.program.threads[at.thread].place;
    if place.mask & !mask != 0 {
        return Err(at.abstain("a lane at an exchange of others"));
    }
    let other = |t: &usize| {
        let p = &e.program.threads[*t].place;
        *t != at.thread && p.warp == place.warp && p.mask & mask != 0
    };
    let company = place.mask != 0 && e.layout.ctas[at.cta].iter().any(other);
    Ok(company.then_some(Barrier::Lanes { cta: at.cta, warp: place.warp, mask, form }))
}

/// Waits for the other threads of the warp before an instruction that the whole warp executes (`.sync.aligned`). Returns whether
/// the thread waits.
pub(super) fn gather(
    e: &mut Engine<'_>,
    s: &mut State,
    at: At<'_>,
    name: &'static str,
) -> Result<bool, Stop> {
    let warp = e.program.threads[at.thread].place.warp;
    if s.threads[at.thread].met {
        return Ok(false);
    }
    let other = |t: &usize| *t != at.thread && takes_part(e, *t, (warp, name));
    if !takes_part(e, at.thread, (warp, name)) || !e.layout.ctas[at.cta].iter().any(other) {
        return Ok(false);
    }
    let goes = come(e, s, at, (Barrier::Whole { cta: at.cta, warp, name }, None, true))?;
    Ok(!goes)
}

/// Whether a thread has named lanes of a warp, and an instruction of this name.
fn takes_part(e: &Engine<'_>, thread: usize, (warp, name): (u16, &str)) -> bool {
    let thread = &e.program.threads[thread];
    let has = |i: &Instr| i.op.extended() == Some(name);
    thread.place.warp == warp && thread.place.mask != 0 && thread.body.iter().any(has)
}

/// Whether other threads take part in an election.
pub(super) fn elects_together(e: &Engine<'_>, s: &State, at: At<'_>, mask: Operand) -> bool {
    !matches!(lanes_meet(e, s, at, (None, mask)), Ok(None))
}

/// The uses of a barrier of a CTA that name another count: one has them one after the other, so an arrival knows the last
/// generation of each. Abstains where they meet.
fn apart(e: &mut Engine<'_>, s: &State, at: At<'_>, barrier: Barrier) -> Result<(), Stop> {
    let Barrier::Cta { cta, id, part } = barrier else { return Ok(()) };
    let other = |b: &Barrier| matches!(b, Barrier::Cta { cta: c, id: i, part: p } if *c == cta && *i == id && *p != part);
    for (other, meeting) in s.meetings.iter().filter(|(b, _)| other(b)) {
        if !meeting.members.is_empty() {
            return Err(at.abstain("a barrier whose arrivals name different counts"));
        }
        let generation = e.fact(usize::MAX, What::Generation(*other), at.line())?;
        let apart = e.mode.every_order || e.has(Planted::CountsApart);
        if meeting.again && !apart && !knows(e, s, at.thread, row::FACTS, generation) {
            let name = e.thread_name(at.thread);
            let text =
                format!("{name} arrives at a barrier without order after its last use with another count");
            e.broken(Condition::Generation, text, vec![at.place()]);
        }
    }
    Ok(())
}

/// Whether everyone a barrier without a count waits for is there.
fn all_there(e: &Engine<'_>, s: &State, barrier: Barrier) -> bool {
    let meeting = &s.meetings[&barrier];
    let awaited = matches!(barrier, Barrier::Warp { .. }) && !e.settings.exited_skipped;
    let gone = |t: usize| s.threads[t].exited && !awaited;
    let there = |t: usize| gone(t) || meeting.members.iter().any(|m| m.0 == t);
    match barrier {
        Barrier::Cta { cta, .. } => e.layout.ctas[cta].iter().all(|t| there(*t)),
        Barrier::Warp { alone: Some(_), .. } => true,
        Barrier::Warp { cta, warp, mask, .. } | Barrier::Lanes { cta, warp, mask, .. } => {
            e.layout.ctas[cta].iter().all(|t| {
                let place = &e.program.threads[*t].place;
                let named = place.mask & mask != 0;
                place.warp != warp || !named || there(*t)
            })
        }
        Barrier::Whole { cta, warp, name } => {
            e.layout.ctas[cta].iter().all(|t| !takes_part(e, *t, (warp, name)) || there(*t))
        }
    }
}

/// Whether a barrier has all it waits for.
fn over(e: &Engine<'_>, s: &State, barrier: Barrier, line: u32) -> Result<bool, Stop> {
    let meeting = &s.meetings[&barrier];
    let all = !matches!(barrier, Barrier::Cta { part: Some(_), .. });
    let open = meeting.open || (all && e.has(Planted::CountedExits));
    let enough = meeting.count.is_none_or(|count| meeting.lanes >= count);
    let there = !open || all_there(e, s, barrier);
    if meeting.open && there && !enough {
        return Err(Stop::abstain(
            "a thread that exits, of a barrier with and without a number of threads",
            line,
        ));
    }
    Ok(there && (enough || open) && !meeting.members.is_empty())
}

/// Lets everyone go if a barrier has all it waits for.
fn complete(e: &mut Engine<'_>, s: &mut State, barrier: Barrier, line: u32) -> Result<(), Stop> {
    if !over(e, s, barrier, line)? {
        return Ok(());
    }
    let generation = e.fact(usize::MAX, What::Generation(barrier), 0)?;
    drop_record(s, generation);
    rows::insert(&mut s.live, generation);
    let first = e.carriers.first(Carrier::Meeting(barrier));
    let held = vector(e, s, first);
    empty(e, s, first);
    let warp = matches!(barrier, Barrier::Warp { .. });
    let whole = matches!(barrier, Barrier::Whole { .. });
    let bare = whole || matches!(barrier, Barrier::Lanes { .. });
    let reach = Reach {
        ordered: !(bare || warp && e.settings.unordered_warp_barrier),
        levels: !(bare && !e.has(Planted::MeetingsOrder) || warp && e.settings.bare_warp_barrier),
        completed: bare && e.settings.lanes_complete,
        met: bare && e.settings.lanes_order_life,
    };
    let meeting = s.meetings.entry(barrier).or_default();
    let members = std::mem::take(&mut meeting.members);
    if let Barrier::Lanes { mask, form: None, .. } = barrier {
        let lanes = members.iter().fold(0, |all, m| all | e.program.threads[m.0].place.lanes());
        // An election is answered when a lane arrives, before it is known who comes.
        if lanes & mask & mask.wrapping_neg() == 0 {
            return Err(Stop::abstain("an election to which the first lane of its mask does not come", line));
        }
    }
    *meeting = Meeting { again: true, ..Meeting::default() };
    for (thread, waits) in members {
        if !waits {
            continue;
        }
        learn(e, s, thread, &held, reach);
        s.rows.set(e.carriers.thread(thread) + row::FACTS, generation);
        if s.threads[thread].held {
            s.threads[thread].held = false;
            s.threads[thread].met = whole;
            s.threads[thread].pc += usize::from(!whole);
        }
    }
    Ok(())
}

/// `barrier.cluster.arrive`
pub(super) fn cluster_arrive(e: &mut Engine<'_>, s: &mut State, at: At<'_>, relaxed: bool) {
    let cluster = e.layout.clusters[at.cta][0];
    let barrier = s.clusters.entry(cluster).or_default();
    if barrier.arrived.contains(&at.thread) || barrier.open.contains(&at.thread) {
        return against(e, at, "arrives at the cluster barrier again, without a wait for its last arrival");
    }
    barrier.arrived.insert(at.thread);
    let bare = relaxed && !e.settings.relaxed_cluster_synchronises;
    let mut held = published(e, s, at.thread);
    if bare {
        let none = vec![0; s.rows.words];
        (row::BASE..e.carriers.vector()).for_each(|level| held.replace(level, &none));
    }
    deliver(e, s, Carrier::Cluster(cluster, false), &held);
    if relaxed {
        fenced_inits(e, s, at.thread, cluster);
    }
    cluster_complete(e, s, cluster);
}

/// `barrier.cluster.wait`. Returns whether the thread goes on.
pub(super) fn cluster_wait(e: &mut Engine<'_>, s: &mut State, at: At<'_>) -> bool {
    let cluster = e.layout.clusters[at.cta][0];
    let barrier = s.clusters.entry(cluster).or_default();
    if barrier.arrived.contains(&at.thread) {
        return false;
    }
    if !barrier.open.remove(&at.thread) {
        against(e, at, "waits at the cluster barrier without an arrival");
        return false;
    }
    let over = barrier.open.is_empty();
    let first = e.carriers.first(Carrier::Cluster(cluster, true));
    let held = vector(e, s, first);
    learn(e, s, at.thread, &held, Reach { ordered: true, levels: true, completed: false, met: false });
    if over {
        empty(e, s, first);
    }
    true
}

/// A rule of a barrier that an arrival breaks (9.7.13.1, 9.7.13.3). The arrival counts for nothing.
fn against(e: &mut Engine<'_>, at: At<'_>, what: &str) {
    let text = format!("{} {what}", e.thread_name(at.thread));
    e.find(Kind::Protocol, text, vec![at.place()]);
}

fn cluster_complete(e: &mut Engine<'_>, s: &mut State, cluster: usize) {
    let Some(barrier) = s.clusters.get_mut(&cluster) else { return };
    let members = e.layout.clusters[cluster].iter().flat_map(|c| &e.layout.ctas[*c]);
    let mut waited_for = members.filter(|t| !s.threads[**t].exited);
    if barrier.arrived.is_empty() || !waited_for.all(|t| barrier.arrived.contains(t)) {
        return;
    }
    barrier.open = std::mem::take(&mut barrier.arrived);
    let from = e.carriers.first(Carrier::Cluster(cluster, false));
    let to = e.carriers.first(Carrier::Cluster(cluster, true));
    let held = vector(e, s, from);
    for at in 0..e.carriers.vector() {
        s.rows.replace(to + at, &held.get(at));
    }
    empty(e, s, from);
}

/// A thread has exited: barriers no longer wait for it.
pub(crate) fn without(e: &mut Engine<'_>, s: &mut State, thread: usize) -> Result<(), Stop> {
    let cta = e.layout.cta_of[thread];
    let uncounted: Vec<Barrier> = s
        .meetings
        .keys()
        .copied()
        .filter(|b| match b {
            Barrier::Cta { cta: c, part: None, .. } => *c == cta,
            Barrier::Warp { cta: c, .. } | Barrier::Lanes { cta: c, .. } | Barrier::Whole { cta: c, .. } => {
                *c == cta
            }
            Barrier::Cta { .. } => false,
        })
        .collect();
    for barrier in uncounted {
        complete(e, s, barrier, 0)?;
    }
    let cluster = e.layout.clusters[cta][0];
    cluster_complete(e, s, cluster);
    Ok(())
}
