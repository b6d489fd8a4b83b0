//! A run of a program without free loops: each thread goes on until it blocks, in turn, until all have exited or none can.

use crate::engine::Engine;
use crate::finding::{Kind, Stop};
use crate::state::State;
use crate::step::{Moved, complete_oldest, step, suspects, waits_for};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Complete,
    /// More instructions than allowed.
    Cut,
}

/// Runs to the end. One schedule is as good as any other (see the crate's page).
pub(crate) fn run(e: &mut Engine<'_>, s: &mut State, most: u64) -> Result<Ended, Stop> {
    let (schedule, count) = (e.mode.schedule, s.threads.len());
    let mut threads: Vec<usize> = (0..count).collect();
    threads.sort_by_key(|t| schedule.rank(*t, count, None));
    loop {
        let mut moved = false;
        for thread in &threads {
            while step(e, s, *thread)? != Moved::Blocked {
                moved = true;
                if e.steps > most {
                    return Ok(Ended::Cut);
                }
                if schedule.in_turns {
                    break;
                }
            }
            moved |= std::mem::take(&mut e.arrived);
        }
        if !moved && !complete_oldest(e, s, 0)? {
            stuck(e, s);
            return Ok(Ended::Complete);
        }
    }
}

/// Reports threads that wait for ever, and faults that no other thread has made right.
pub(crate) fn stuck(e: &mut Engine<'_>, s: &State) {
    suspects(e, s);
    let waiting: Vec<usize> = (0..s.threads.len()).filter(|t| !s.threads[*t].exited).collect();
    if waiting.is_empty() {
        return;
    }
    let each = waiting.iter().map(|t| format!("{} {}", e.thread_name(*t), waits_for(e, s, *t)));
    let text = each.collect::<Vec<_>>().join("; ");
    let line = |t: usize| e.program.threads[t].body.get(s.threads[t].pc).map_or(0, |i| i.line);
    let places = waiting.iter().map(|t| (*t, line(*t))).collect();
    e.find(Kind::Hang, text, places);
}
