//! A test of the contract with models: compares explorer and enumerator under models that lack checks or have other
//! switches.
//!
//! The explorer relies only on what checks of a model license ([`moire_cat::licence`]). So it must agree with the
//! enumerator whichever checks a model lacks. The work is cut into parts of a few hundred programs. A part depends only
//! on its number and the seed, so a run can be stopped and continued.

use super::campaign::{Campaign, Failure};
use super::in_order::in_order;
use moire_cat::{CheckId, Feature, Model};
use moire_generate::numbers::Draw;
use moire_generate::{Profile, Stream};
use moire_program::ir::Program;
use std::ops::ControlFlow;

/// Number of programs in a part.
const PART: u64 = 250;
/// Distance between the first seeds of two parts. A part draws fewer.
const STRIDE: u64 = 1 << 24;

/// How a mutant differs from the shipped model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It does not differ.
    Nothing,
    /// One check is removed.
    Check,
    /// One switch has another value.
    Switch,
    /// A drawn set of checks is removed.
    Checks,
}

impl Change {
    /// All changes.
    pub const ALL: [Change; 4] = [Change::Nothing, Change::Check, Change::Switch, Change::Checks];

    /// Returns the change in words.
    pub fn word(self) -> &'static str {
        match self {
            Change::Nothing => "as shipped",
            Change::Check => "a check removed",
            Change::Switch => "a switch flipped",
            Change::Checks => "checks drawn and removed",
        }
    }
}

/// A model to compare under.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Name of the shipped model.
    pub of: String,
    /// How it differs from that model.
    pub change: Change,
    /// The model. Its name says how it differs.
    pub model: Model,
    /// Programs to compare.
    pub programs: u64,
}

/// The amount of work: numbers of programs and of drawn sets of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Programs for each shipped model.
    pub shipped: u64,
    /// Programs for each removed check and each flipped switch.
    pub single: u64,
    /// Number of drawn sets of checks, over all models.
    pub sets: u64,
    /// Programs for each of these sets.
    pub drawn: u64,
}

/// Makes the mutants: each shipped model with every change. `flip` loads a shipped model with one switch set.
pub fn mutants(
    shipped: &[Model],
    counts: Counts,
    seed: u64,
    flip: &dyn Fn(&Model, &str, &str) -> Model,
) -> Vec<Mutant> {
    let mut out = Vec::new();
    for model in shipped {
        let mut push = |change: Change, model: Model, of: &Model, programs: u64| {
            out.push(Mutant { of: of.name().into(), change, model, programs });
        };
        push(Change::Nothing, model.clone(), model, counts.shipped);
        for id in (0..model.checks().len()).map(CheckId) {
            push(Change::Check, model.without(id), model, counts.single);
        }
        for switch in model.switches() {
            let others = switch.values.iter().filter(|v| model.variant(&switch.name) != Some(v));
            for value in others {
                push(Change::Switch, flip(model, &switch.name, value), model, counts.single);
            }
        }
    }
    let mut draw = Draw::new(seed);
    for _ in 0..counts.sets {
        let model = &shipped[draw.below(shipped.len())];
        let share = [20, 50, 80][draw.below(3)];
        let mut less = model.clone();
        for id in (0..model.checks().len()).rev().map(CheckId) {
            if draw.chance(share) {
                less = less.without(id);
            }
        }
        out.push(Mutant {
            of: model.name().into(),
            change: Change::Checks,
            model: less,
            programs: counts.drawn,
        });
    }
    out.retain(|m| m.programs > 0);
    out
}

/// The program at an index of a stream for which the model has rules.
fn program(model: &Model, index: u64) -> Program {
    let profile = if model.covers(Feature::TileBlocks) {
        Profile::Blocks
    } else if model.covers(Feature::TensorCores) && index.is_multiple_of(2) {
        Profile::Tensor
    } else {
        Profile::Core
    };
    Stream::new(1, profile).item(index)
}

/// A part of the work on one mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutantPart {
    /// Position among the mutants.
    pub mutant: usize,
    first_seed: u64,
    programs: u64,
}

/// The result of a part.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Programs compared.
    pub programs: u64,
    /// Executions in all comparisons.
    pub executions: u64,
    /// Programs drawn but not compared.
    pub skipped: u64,
    /// Differences.
    pub failures: Vec<Failure>,
}

/// Lists the parts of all mutants, in order.
pub fn parts(mutants: &[Mutant], seed: u64) -> Vec<MutantPart> {
    let of = |(mutant, m): (usize, &Mutant)| {
        let starts = (0..m.programs.div_ceil(PART)).map(|n| n * PART);
        starts.map(move |at| (mutant, PART.min(m.programs - at))).collect::<Vec<_>>()
    };
    let all = mutants.iter().enumerate().flat_map(of);
    let first = |n: u64| seed.wrapping_mul(1 << 48).wrapping_add(n.wrapping_mul(STRIDE));
    (0..)
        .zip(all)
        .map(|(n, (mutant, programs))| MutantPart { mutant, first_seed: first(n), programs })
        .collect()
}

/// Runs the parts from `done` on, and reports each with its number, in order.
pub fn try_parts(
    mutants: &[Mutant],
    parts: &[MutantPart],
    done: usize,
    workers: usize,
    tell: &mut (dyn FnMut(usize, Found) + Send),
) {
    let Some(rest) = parts.get(done..).filter(|rest| !rest.is_empty()) else { return };
    let one = |at: u64| {
        let part = usize::try_from(at).ok().and_then(|at| rest.get(at))?;
        Some(try_part(&mutants[part.mutant].model, *part))
    };
    in_order(workers, one, |at, found| {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if let Some(found) = found {
            tell(done + at, found);
        }
        if at + 1 >= rest.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
}

fn try_part(model: &Model, part: MutantPart) -> Found {
    let models = [model.clone()];
    let campaign = Campaign {
        models: &models,
        first_seed: part.first_seed,
        count: part.programs,
        workers: 1,
        failures: 1,
        source: &|index| Some(program(model, index)),
        ..Campaign::default()
    };
    let totals = campaign.run(&|_| {});
    Found {
        programs: totals.programs,
        executions: totals.leaves,
        skipped: totals.skipped.values().sum(),
        failures: totals.failures,
    }
}
