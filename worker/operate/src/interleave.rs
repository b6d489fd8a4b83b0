//! Every order of steps and completions: what the canonical run must agree with.
//!
//! Each thread may take the next step, and each asynchronous operation under way may complete. States are stored by their
//! fingerprint. This is a check of the theorem on small programs, and not a way to judge large ones.

use crate::engine::Engine;
use crate::finding::Stop;
use crate::run::{Ended, stuck};
use crate::state::{Completion, State};
use crate::step::{Moved, complete, step};
use moire_program::ir::Scope;
use rustc_hash::FxHashSet;

/// Most asynchronous operations under way.
const PENDING: usize = 24;

/// Whether an operation under way may complete now: commits of one thread may have to complete in order (TQ33).
fn ready(e: &Engine<'_>, s: &State, at: usize) -> bool {
    let commit = |c: &Completion| c.added.arrivals > 0 && c.class.scope == Scope::Cluster;
    let this = s.pending[at].0;
    let mut earlier = s.pending[..at].iter().map(|p| p.0);
    !(e.settings.commits_in_order
        && commit(&this)
        && earlier.any(|c| commit(&c) && c.place.0 == this.place.0))
}

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
        let completing: Vec<usize> = (0..state.pending.len()).filter(|at| ready(e, &state, *at)).collect();
        for at in completing {
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
            stuck(e, &state)?;
        }
        if e.steps > most {
            return Ok(Ended::Cut);
        }
    }
    Ok(Ended::Complete)
}
