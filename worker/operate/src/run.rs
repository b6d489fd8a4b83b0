//! A run of a program without free loops: each thread goes on until it blocks, in turn, until all have exited or none can.
//!
//! Where a thread asks once whether a phase is over, there is a run for each answer ([`peeked`]). Runs that come to equal states
//! go on as one. A thread that comes round to a state of its own is cut at once, as it would be in the end ([`Round`]).

use crate::engine::Engine;
use crate::finding::{Abstain, Kind, Stop};
use crate::forget::{Needs, registers, seen};
use crate::prove::{ROUNDS, WARM};
use crate::state::{State, ThreadState};
use crate::step::{Moved, complete_oldest, missed, peeked, step, suspects, waits_for};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Complete,
    /// More instructions than allowed.
    Cut,
    /// More states than allowed.
    Many,
}

/// Runs to the end. One schedule is as good as any other (see the crate's page). Where there are many answers, what can be
/// dropped from states is computed first, as for free loops.
pub(crate) fn run(e: &mut Engine<'_>, first: &State, steps: u64, states: usize) -> Result<Ended, Stop> {
    let ended = all(e, first, None, (steps, states.min(WARM)))?;
    if ended != Ended::Many {
        return Ok(ended);
    }
    for _ in 0..ROUNDS {
        let needs = Needs::new(e);
        (e.steps, e.findings) = (0, BTreeSet::new());
        let ended = all(e, first, Some(&needs), (steps, states))?;
        if needs.seen == seen(e) {
            return Ok(ended);
        }
    }
    Err(Stop::abstain("a program whose records do not settle", 0))
}

/// All runs, one for each sequence of answers.
fn all(
    e: &mut Engine<'_>,
    first: &State,
    needs: Option<&Needs>,
    (steps, states): (u64, usize),
) -> Result<Ended, Stop> {
    let mut known: FxHashSet<u128> = FxHashSet::default();
    let (mut todo, mut doubt) = (vec![first.clone()], None);
    while let Some(mut state) = todo.pop() {
        let certain = state.doubtful.then(|| std::mem::take(&mut e.findings));
        let asks = until_asked(e, &mut state, steps)?;
        if let Some(certain) = certain {
            doubt = doubt.or(Abstain::doubt(&std::mem::replace(&mut e.findings, certain)));
        }
        if e.steps > steps {
            return Ok(Ended::Cut);
        }
        let Some(thread) = asks else { continue };
        if let Some(needs) = needs {
            needs.apply(e, &mut state);
        }
        registers(e, &mut state);
        if known.insert(state.fingerprint()) {
            // The run without doubt comes first, so that it stands for both where they meet.
            todo.extend(peeked(e, state, thread)?);
        }
        if known.len() > states {
            return Ok(Ended::Many);
        }
    }
    match doubt.filter(|_| e.findings.is_empty()) {
        Some(doubt) => Err(Stop::Abstain(doubt)),
        None => Ok(Ended::Complete),
    }
}

/// Runs until a thread asks whether a phase is over, or to the end.
fn until_asked(e: &mut Engine<'_>, s: &mut State, most: u64) -> Result<Option<usize>, Stop> {
    let (schedule, count) = (e.mode.schedule, s.threads.len());
    let mut threads: Vec<usize> = (0..count).collect();
    threads.sort_by_key(|t| schedule.rank(*t, count, None));
    loop {
        let mut moved = false;
        for thread in &threads {
            let mut round = Round::default();
            loop {
                match step(e, s, *thread)? {
                    Moved::Blocked => break,
                    Moved::Peeks => return Ok(Some(*thread)),
                    Moved::On | Moved::Waited => moved = true,
                }
                if round.closes(e, s, *thread) {
                    e.steps = most.saturating_add(1);
                }
                if e.steps > most {
                    return Ok(None);
                }
                if schedule.in_turns {
                    break;
                }
            }
            moved |= std::mem::take(&mut e.arrived);
        }
        if !moved && !complete_oldest(e, s, 0)? {
            stuck(e, s)?;
            return Ok(None);
        }
    }
}

/// Steps of a thread before its rounds are looked for.
const STRAIGHT: u64 = 1 << 10;

/// The steps of a thread while no other moves, and where it was when their number was last a power of two. What it does there
/// depends on the state and on what the run has learnt, which only grows. So it goes on for ever if both are the same again.
#[derive(Default)]
struct Round {
    steps: u64,
    kept: Option<(ThreadState, u128, [usize; 4])>,
}

impl Round {
    /// Whether the thread goes round for ever.
    fn closes(&mut self, e: &Engine<'_>, s: &State, thread: usize) -> bool {
        self.steps += 1;
        if self.steps < STRAIGHT {
            return false;
        }
        let (own, learnt) = (&s.threads[thread], e.learnt());
        if self.steps.is_power_of_two() {
            self.kept = Some((own.clone(), s.fingerprint(), learnt));
            return false;
        }
        let again = |(thread, state, known): &(ThreadState, u128, [usize; 4])| {
            thread == own && *known == learnt && *state == s.fingerprint()
        };
        self.kept.as_ref().is_some_and(again)
    }
}

/// Reports threads that wait for ever, and faults that no other thread has made right.
pub(crate) fn stuck(e: &mut Engine<'_>, s: &State) -> Result<(), Stop> {
    // A wait that was to answer with yes never does: there is no such run, or it asked earlier.
    let unanswered = |t: &usize| s.threads[*t].awaits && !s.threads[*t].exited;
    let asked: Vec<usize> = (0..s.threads.len()).filter(unanswered).collect();
    if !asked.is_empty() {
        return asked.into_iter().try_for_each(|t| missed(e, s, t));
    }
    suspects(e, s);
    let waiting: Vec<usize> = (0..s.threads.len()).filter(|t| !s.threads[*t].exited).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let each = waiting.iter().map(|t| format!("{} {}", e.thread_name(*t), waits_for(e, s, *t)));
    let text = each.collect::<Vec<_>>().join("; ");
    let line = |t: usize| e.program.threads[t].body.get(s.threads[t].pc).map_or(0, |i| i.line);
    let places = waiting.iter().map(|t| (*t, line(*t))).collect();
    e.find(Kind::Hang, text, places);
    Ok(())
}
