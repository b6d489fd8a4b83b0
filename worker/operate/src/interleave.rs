//! Every order of steps and completions: what the canonical run must agree with.
//!
//! Each thread may take the next step, and each asynchronous operation under way may complete. States are stored by their
//! fingerprint. This is a check of the theorem on small programs, and not a way to judge large ones.

use crate::engine::Engine;
use crate::finding::Stop;
use crate::run::{Ended, stuck};
use crate::state::State;
use crate::step::{Moved, complete, step};
use rustc_hash::FxHashSet;

/// Most asynchronous operations under way.
const PENDING: usize = 24;

/// Runs in every order.
pub(crate) fn run(e: &mut Engine<'_>, first: State, most: u64) -> Result<Ended, Stop> {
    let mut known: FxHashSet<u128> = FxHashSet::from_iter([first.fingerprint()]);
    let mut todo = vec![first];
    while let Some(state) = todo.pop() {
        let mut moved = false;
        let mut next = Vec::new();
        for thread in 0..state.threads.len() {
            let mut after = state.clone();
            e.arrived = false;
            if step(e, &mut after, thread)? != Moved::Blocked || std::mem::take(&mut e.arrived) {
                next.push(after);
            }
        }
        for at in 0..state.pending.len() {
            let mut after = state.clone();
            let completion = after.pending.remove(at);
            complete(e, &mut after, completion)?;
            next.push(after);
        }
        for after in next {
            moved = true;
            if after.pending.len() > PENDING {
                return Err(Stop::abstain("more than 24 asynchronous operations under way", 0));
            }
            if known.insert(after.fingerprint()) {
                todo.push(after);
            }
        }
        if !moved {
            stuck(e, &state);
        }
        if e.steps > most {
            return Ok(Ended::Cut);
        }
    }
    Ok(Ended::Complete)
}
