//! Programs with free loops: all states of the canonical schedule, for every sequence of decisions about trip counts.
//!
//! The thread with the least progress runs next, until it blocks, completes an iteration or has to decide whether its loop
//! goes on. States are stored there. The schedule depends on the state alone, so when no new state is left, every number of
//! trips has been run.

use crate::engine::Engine;
use crate::finding::{Abstain, Finding, Stop};
use crate::forget::{Needs, forget, registers, seen};
use crate::planted::Planted;
use crate::run::stuck;
use crate::state::State;
use crate::step::{Moved, complete_oldest, peeked, reconverge, step};
use crate::trips::{More, Position};
use moire_program::ir::{Control, Op, Trips};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// States of the first exploration, which only learns which records there are.
pub(crate) const WARM: usize = 400;
/// Most explorations until no new record is seen.
pub(crate) const ROUNDS: usize = 8;

/// What an exploration found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Explored {
    pub(crate) findings: BTreeSet<Finding>,
    /// Numbers of trips of the shortest way to them.
    pub(crate) numbers: BTreeMap<String, Vec<u32>>,
    pub(crate) states: usize,
    pub(crate) steps: u64,
    pub(crate) bounded: Option<&'static str>,
    /// Least number of iterations and decisions that any run reached.
    pub(crate) covered: u64,
    /// A branch that was not decided.
    pub(crate) abstained: Option<Abstain>,
}

/// Explores until what can be dropped was computed from all records.
pub(crate) fn prove(e: &mut Engine<'_>, states: usize, steps: u64) -> Result<Explored, Stop> {
    e.needs = None;
    explore(e, states.min(WARM), steps)?;
    let mut unsettled = None;
    for _ in 0..ROUNDS {
        let needs = Rc::new(Needs::new(e));
        e.needs = Some(Rc::clone(&needs));
        let explored = explore(e, states, steps)?;
        // Knowledge that was dropped too early might be missing to a finding as well.
        if needs.seen == seen(e) {
            return Ok(explored);
        }
        unsettled = Some(explored);
    }
    match unsettled {
        Some(explored) if !explored.findings.is_empty() => Ok(explored),
        // A dropped record might conflict with an unknown one.
        Some(explored) if explored.bounded.is_some() => Ok(Explored { covered: 0, ..explored }),
        _ => Err(Stop::abstain("a program whose records do not settle", 0)),
    }
}

fn explore(e: &mut Engine<'_>, most: usize, steps: u64) -> Result<Explored, Stop> {
    let mut out = Explored::default();
    (e.steps, e.findings) = (0, Default::default());
    let mut known: FxHashSet<u128> = FxHashSet::default();
    let first = e.start()?;
    known.insert(first.fingerprint());
    let mut todo = VecDeque::from([(first, 0)]);
    while let Some((state, depth)) = todo.pop_front() {
        out.covered = depth;
        let (numbers, doubtful) = (numbers(e, &state), state.doubtful);
        let next = match round(e, state, steps) {
            Ok(next) => next,
            Err(Stop::Abstain(abstain)) => {
                out.abstained.get_or_insert(abstain);
                continue;
            }
            Err(wider) => return Err(wider),
        };
        if let Some(doubt) = Abstain::doubt(&e.findings).filter(|_| doubtful) {
            e.findings.clear();
            out.abstained.get_or_insert(doubt);
            continue;
        }
        if !e.findings.is_empty() {
            (out.findings, out.numbers) = (std::mem::take(&mut e.findings), numbers);
            break;
        }
        for mut state in next {
            forget(e, &mut state);
            registers(e, &mut state);
            if known.insert(state.fingerprint()) {
                todo.push_back((state, depth + 1));
            }
        }
        out.bounded = if known.len() > most {
            Some("states")
        } else if e.steps > steps {
            Some("steps")
        } else {
            continue;
        };
        break;
    }
    (out.states, out.steps) = (known.len(), e.steps);
    Ok(out)
}

/// The numbers of trips decided so far, by name.
fn numbers(e: &Engine<'_>, s: &State) -> BTreeMap<String, Vec<u32>> {
    let each = e.loops.classes.iter().zip(&s.classes.trails);
    each.map(|((name, least), trail)| {
        let all = if trail.numbers.is_empty() { vec![*least] } else { trail.numbers.clone() };
        (name.clone(), all)
    })
    .collect()
}

/// Threads, those with the least progress first. A thread that completed an iteration without a wait comes last until
/// another one has moved: otherwise it could go round for ever while others are ready. `last`: the one that moved last, if
/// they take turns.
fn order(e: &Engine<'_>, s: &State, last: Option<usize>) -> Vec<usize> {
    let count = s.threads.len();
    // Later threads of the text come first: they are consumers more often.
    let rank = |t: usize| e.mode.schedule.rank(count - 1 - t, count, last.map(|last| count - 1 - last));
    let progress = |t: &usize| {
        let at = |class: &usize| {
            let none = Position { instance: u32::MAX, index: None };
            s.classes.all[*class].threads.get(t).copied().unwrap_or(none)
        };
        let positions: Vec<Position> = e.loops.order[*t].iter().map(at).collect();
        (s.demoted.contains(t), positions, rank(*t))
    };
    let mut all: Vec<usize> = (0..s.threads.len()).collect();
    all.sort_by_cached_key(progress);
    all
}

/// What a thread did at a loop.
enum Went {
    On,
    /// It completed an iteration.
    Round,
    /// It has to decide.
    Ask(usize),
}

/// Runs from a state to the next ones that are stored. There are none when more instructions than allowed were executed.
fn round(e: &mut Engine<'_>, mut s: State, most: u64) -> Result<Vec<State>, Stop> {
    let in_turns = e.mode.schedule.in_turns;
    // Threads that have waited since they last had to stop.
    let mut waiters: BTreeSet<usize> = s.waited.into_iter().collect();
    let mut last = None;
    loop {
        let mut moved = false;
        for thread in order(e, &s, last) {
            let mut progressed = false;
            // Otherwise a thread that does not wait runs ahead of what others wait for.
            if s.demoted.contains(&thread) && complete_oldest(e, &mut s, 0)? {
                moved = true;
                break;
            }
            loop {
                let went = match at_loop(e, &mut s, thread)? {
                    Some(went) => went,
                    None => match step(e, &mut s, thread)? {
                        Moved::Blocked => {
                            waiters.remove(&thread);
                            break;
                        }
                        Moved::Waited => {
                            waiters.insert(thread);
                            Went::On
                        }
                        Moved::On => Went::On,
                        Moved::Peeks => return peeked(e, s, thread).map(Vec::from),
                    },
                };
                progressed = true;
                // A loop of branches need not end.
                if e.steps > most {
                    return Ok(Vec::new());
                }
                let waited = waiters.contains(&thread);
                match went {
                    Went::On => {}
                    Went::Round => {
                        s.waited = None;
                        if waited {
                            s.demoted.clear();
                        } else {
                            s.demoted.insert(thread);
                        }
                        return Ok(vec![s]);
                    }
                    Went::Ask(class) => {
                        s.waited = waited.then_some(thread);
                        let mut on = s.clone();
                        s.classes.decide(class, thread, false);
                        on.classes.decide(class, thread, true);
                        return Ok(if e.has(Planted::NeverLeaves) { vec![on] } else { vec![s, on] });
                    }
                }
                if !e.findings.is_empty() {
                    return Ok(Vec::new());
                }
                if in_turns {
                    break;
                }
            }
            s.waited = None;
            progressed |= std::mem::take(&mut e.arrived);
            if progressed {
                if !s.demoted.contains(&thread) {
                    s.demoted.clear();
                }
                moved = true;
                last = in_turns.then_some(thread);
                break;
            }
        }
        if !moved && !complete_oldest(e, &mut s, 0)? {
            stuck(e, &s)?;
            return Ok(Vec::new());
        }
    }
}

/// Executes the start or the end of a loop.
fn at_loop(e: &mut Engine<'_>, s: &mut State, thread: usize) -> Result<Option<Went>, Stop> {
    if s.threads[thread].exited || s.threads[thread].held {
        return Ok(None);
    }
    let pc = s.threads[thread].pc;
    let Some(instr) = e.program.threads[thread].body.get(pc) else { return Ok(None) };
    let Op::Control(Control::Repeat(_) | Control::EndRepeat) = &instr.op else { return Ok(None) };
    e.steps += 1;
    reconverge(&mut s.threads[thread], e.has(Planted::ArmsKnow));
    let Some((number, found)) = e.loops.at(thread, pc) else {
        return Err(Stop::abstain("a loop that is not well formed", instr.line));
    };
    if s.threads[thread].arms.iter().any(|arm| (found.start..=found.end).contains(&arm.meet)) {
        return Err(Stop::abstain("lanes of a warp that go round a loop apart", instr.line));
    }
    let (start, end, trips) = (found.start, found.end, found.trips.clone());
    let ahead = || Stop::abstain("a loop of a thread that runs ahead without waiting", instr.line);
    let class = e.loops.class(&trips);
    if pc == end {
        s.threads[thread].pc = start;
        return match class {
            Some(class) => s.classes.next(class, thread).map(|()| Some(Went::Round)).map_err(|()| ahead()),
            None => {
                if let Some((_, index)) = s.threads[thread].inside.last_mut() {
                    *index += 1;
                }
                Ok(Some(Went::On))
            }
        };
    }
    if s.threads[thread].inside.last().map(|l| l.0) != Some(number) {
        s.threads[thread].inside.push((number, 0));
        if let Some(class) = class {
            let less = if let Trips::Free { less, .. } = trips { less } else { 0 };
            s.classes.enter(class, thread, (e.loops.classes[class].1, less));
        }
    }
    let more = match (&trips, class) {
        (Trips::Number(n), _) => {
            let index = s.threads[thread].inside.last().map_or(0, |l| l.1);
            if index < *n { More::Yes } else { More::No }
        }
        (_, Some(_)) if e.has(Planted::NeverEnters) && s.threads[thread].inside.len() > 1 => More::No,
        (_, Some(class)) => s.classes.more(class, thread),
        _ => More::No,
    };
    match (more, class) {
        (More::Yes, _) => s.threads[thread].pc = start + 1,
        (More::Ask, Some(class)) => return Ok(Some(Went::Ask(class))),
        (More::No | More::Ask, _) => {
            s.threads[thread].inside.pop();
            s.threads[thread].pc = end + 1;
            if let Some(class) = class {
                s.classes.leave(class, thread).map_err(|()| ahead())?;
            }
        }
    }
    Ok(Some(Went::On))
}
