//! What the explorer sees of a program, and whether what was made of a source program breaks a rule.

use anyhow::Result;
use moire_cat::{Model, Variants};
use moire_execution::leaf::{LeafKey, LeafKind, Outcome};
use moire_explore::Limits;
use moire_explore::planted::Planted;
use moire_explore::search::{Bound, LeafView, explore_planted};
use moire_program::ir::Program;
use moire_source::Source;
use moire_source::lower::{Lowered, lower};
use moire_source::state::State;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The right models.
pub(super) struct Models {
    pub(super) ptx: Model,
    pub(super) source: Model,
}

impl Models {
    pub(super) fn load() -> Result<Self> {
        let load = |name| moire_console::input::load_model(name, &Variants::new());
        Ok(Models { ptx: load("ptx")?, source: load("rc11-scoped")? })
    }
}

/// What was seen of all executions.
#[derive(PartialEq, Eq)]
pub(super) struct Seen<K> {
    pub(super) ends: BTreeSet<K>,
    pub(super) flags: BTreeSet<String>,
    pub(super) hangs: bool,
}

fn limits() -> Limits {
    Limits { leaves: 4_000, checks: 20_000, steps: 100_000, ..Limits::default() }
}

/// All executions, each with what `of` says of it; none where the explorer abstains or reaches a limit. An execution of which `of`
/// says nothing is none of the program.
fn seen<K: Ord>(
    program: &Program,
    (model, bug): (&Model, Option<Planted>),
    of: &mut dyn FnMut(&mut dyn LeafView) -> Vec<K>,
) -> Option<Seen<K>> {
    let mut out = Seen { ends: BTreeSet::new(), flags: BTreeSet::new(), hangs: false };
    let summary = explore_planted(program, model, bug, &limits(), &mut |leaf: &mut dyn LeafView| {
        let (ends, blocked) = (of(leaf), leaf.kind() == LeafKind::Blocked);
        if blocked || !ends.is_empty() {
            out.flags.extend(leaf.flags().iter().cloned());
        }
        out.hangs |= blocked;
        out.ends.extend(ends);
        ControlFlow::Continue(())
    });
    let bounded = summary.ok()?.bounded;
    matches!(bounded, None | Some(Bound::Loop)).then_some(out)
}

/// The final states of a program.
pub(super) fn outcomes(program: &Program, model: &Model) -> Option<Seen<Outcome>> {
    seen(program, (model, None), &mut |leaf| leaf.facts().outcomes.into_iter().collect())
}

/// The executions of a program, each with the flags that it raises.
pub(super) fn executions(
    program: &Program,
    by: (&Model, Option<Planted>),
) -> Option<Seen<(LeafKey, Vec<String>)>> {
    seen(program, by, &mut |leaf| vec![(leaf.facts().key, leaf.flags().iter().cloned().collect())])
}

fn states(source: &Source, lowered: &Lowered, model: &Model) -> Option<Seen<State>> {
    let state = |leaf: &mut dyn LeafView| {
        let ends = leaf.states();
        ends.iter().filter_map(|end| lowered.state(source, &end.regs, &end.memory)).collect()
    };
    seen(&lowered.program, (model, None), &mut { state })
}

/// What a source program means.
pub(super) fn meaning(source: &Source, model: &Model) -> Option<Seen<State>> {
    states(source, &lower(source).ok()?, model)
}

/// Whether what was made of a program without a race does more than it means, or has a race.
pub(super) fn breaks(made: &Source, meaning: &Seen<State>, ptx: &Model) -> Option<bool> {
    let done = states(made, &lower(made).ok()?, ptx)?;
    Some(!done.flags.is_empty() || !done.ends.is_subset(&meaning.ends))
}
