//! The paths of a code: which steps are done in which order, for each way through its branches.
//!
//! A condition that was decided stays decided, and one that is a number is no choice. A loop is followed a few times. What
//! has more than [`MAX_PATHS`] paths is not read.

use super::step::{Act, Step};
use super::unread::Unread;
use super::value::{State, Value};
use std::collections::BTreeSet;

/// Most times that a path comes to one instruction; fewer, where there are too many paths.
const VISITS: [u8; 3] = [3, 2, 1];
/// Most different paths.
const MAX_PATHS: usize = 32;
/// Most instructions that are followed on all paths together.
const MAX_WORK: usize = 4_000;

/// The steps of a path.
pub(super) type Path = Vec<Step>;

/// Where a path goes on.
pub(super) enum Flow {
    Next,
    To(usize),
    End,
}

/// A code, in instructions that are counted from 0.
pub(super) trait Code {
    /// The number of instructions.
    fn len(&self) -> usize;

    /// The truth value under which an instruction is done; `None`: always.
    fn guard(&self, at: usize, state: &mut State) -> Option<Value>;

    /// Does an instruction; its steps are added.
    fn go(&self, at: usize, state: &mut State, steps: &mut Vec<Step>) -> Result<Flow, Unread>;
}

struct Walk {
    at: usize,
    visits: Vec<u8>,
    state: State,
    steps: Vec<Step>,
}

impl Walk {
    /// The path, with what is known of its values.
    fn ended(mut self) -> Path {
        for step in &mut self.steps {
            let Some(value) = step.value.take() else { continue };
            if step.act == Act::Invalidate {
                step.dead = self.state.truth(value) != Some(true);
                continue;
            }
            let weak = step.access().is_some_and(|a| a.scope.is_none());
            let counted = step.access().is_some_and(|a| a.counted);
            step.dead = !counted && !self.state.is_used(value) || weak && self.state.settled.contains(&value);
        }
        self.steps
    }
}

/// All paths that end, in a loop after a few rounds at most.
pub(super) fn paths(code: &impl Code) -> Result<Vec<Path>, Unread> {
    // What is not read is known before anything is followed.
    (0..code.len()).try_for_each(|at| code.go(at, &mut State::default(), &mut Vec::new()).map(drop))?;
    let all = VISITS.iter().map(|most| visiting(code, *most));
    let fits = |found: &Result<Vec<Path>, Unread>| !matches!(found, Err(Unread::Paths));
    all.into_iter().find(fits).unwrap_or(Err(Unread::Paths))
}

/// All paths that end and come to no instruction more than `most` times.
fn visiting(code: &impl Code, most: u8) -> Result<Vec<Path>, Unread> {
    let first = Walk { at: 0, visits: vec![0; code.len()], state: State::default(), steps: Vec::new() };
    let (mut open, mut out, mut work) = (vec![first], BTreeSet::new(), 0);
    while let Some(mut walk) = open.pop() {
        work += 1;
        if work > MAX_WORK || out.len() > MAX_PATHS {
            return Err(Unread::Paths);
        }
        if walk.at >= code.len() {
            out.insert(walk.ended());
            continue;
        }
        walk.visits[walk.at] += 1;
        if walk.visits[walk.at] > most {
            continue;
        }
        follow(code, walk, &mut open)?;
    }
    Ok(out.into_iter().collect())
}

/// The ways on from an instruction.
fn follow(code: &impl Code, mut walk: Walk, open: &mut Vec<Walk>) -> Result<(), Unread> {
    let guard = code.guard(walk.at, &mut walk.state);
    let holds = guard.map_or(Some(true), |value| walk.state.truth(value));
    if holds != Some(true) {
        let mut state = walk.state.clone();
        guard.into_iter().for_each(|value| state.decide(value, false));
        open.push(Walk { at: walk.at + 1, visits: walk.visits.clone(), state, steps: walk.steps.clone() });
    }
    if holds == Some(false) {
        return Ok(());
    }
    guard.into_iter().for_each(|value| walk.state.decide(value, true));
    let known = walk.steps.len();
    let flow = code.go(walk.at, &mut walk.state, &mut walk.steps)?;
    walk.steps[known..].iter_mut().for_each(|step| step.at = walk.at);
    walk.at = match flow {
        Flow::Next => walk.at + 1,
        Flow::To(at) => at,
        Flow::End => code.len(),
    };
    open.push(walk);
    Ok(())
}
