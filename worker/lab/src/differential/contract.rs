//! The contract with models, tried: explorer against enumerator under models that lack checks or read switches otherwise.
//!
//! What the explorer relies on is licensed by checks ([`moire_cat::licence`]). So it must find what the enumerator finds
//! whichever checks a model lacks. Work is cut into parts of a few hundred programs, each a function of its number and the
//! seed, so that a run can be stopped and taken up again.

use super::campaign::{Campaign, Failure, mixed, tcgen05};
use super::draw::Draw;
use super::draw_tile::{tile_mixed, tile_program};
use super::in_order::in_order;
use moire_cat::{CheckId, Feature, Model};
use moire_program::ir::Program;
use std::ops::ControlFlow;

/// Programs of one part.
const PART: u64 = 250;
/// Seeds between the first ones of two parts: more than are drawn in one.
const STRIDE: u64 = 1 << 24;

/// What was done to a shipped model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing.
    Nothing,
    /// One check is removed.
    Check,
    /// One switch has another value.
    Switch,
    /// A drawn set of checks is removed.
    Checks,
}

impl Change {
    /// All of them.
    pub const ALL: [Change; 4] = [Change::Nothing, Change::Check, Change::Switch, Change::Checks];

    /// In words.
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
    /// What was done to it.
    pub change: Change,
    /// The model, whose name says what is different.
    pub model: Model,
    /// Programs to compare.
    pub programs: u64,
}

/// How many programs are compared, and under how many drawn sets of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// For each shipped model.
    pub shipped: u64,
    /// For each check removed and each switch flipped.
    pub single: u64,
    /// Drawn sets of checks in all.
    pub sets: u64,
    /// For each of these sets.
    pub drawn: u64,
}

/// The models to try: each of `shipped` changed in every way. `flip` loads a shipped model with one switch set.
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

/// The program of a seed in a language the model gives meaning to.
fn program(model: &Model, seed: u64) -> Option<Program> {
    if model.covers(Feature::TileBlocks) {
        return if seed.is_multiple_of(4) { tile_mixed(seed / 4) } else { tile_program(seed) };
    }
    if model.covers(Feature::TensorCores) && seed.is_multiple_of(2) {
        tcgen05(seed / 2)
    } else {
        Some(mixed(seed))
    }
}

/// A part of the work on one mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Position among the mutants.
    pub mutant: usize,
    first_seed: u64,
    programs: u64,
}

/// What a part found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Programs compared.
    pub programs: u64,
    /// Executions in all comparisons.
    pub executions: u64,
    /// Programs drawn and not compared.
    pub skipped: u64,
    /// Differences.
    pub failures: Vec<Failure>,
}

/// The parts of all mutants, in order.
pub fn parts(mutants: &[Mutant], seed: u64) -> Vec<Part> {
    let of = |(mutant, m): (usize, &Mutant)| {
        let starts = (0..m.programs.div_ceil(PART)).map(|n| n * PART);
        starts.map(move |at| (mutant, PART.min(m.programs - at))).collect::<Vec<_>>()
    };
    let all = mutants.iter().enumerate().flat_map(of);
    let first = |n: u64| seed.wrapping_mul(1 << 48).wrapping_add(n.wrapping_mul(STRIDE));
    (0..).zip(all).map(|(n, (mutant, programs))| Part { mutant, first_seed: first(n), programs }).collect()
}

/// Does the parts from `done` on, each told with its number in order.
pub fn try_parts(
    mutants: &[Mutant],
    parts: &[Part],
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

fn try_part(model: &Model, part: Part) -> Found {
    let models = [model.clone()];
    let campaign = Campaign {
        models: &models,
        first_seed: part.first_seed,
        count: part.programs,
        workers: 1,
        failures: 1,
        source: &|seed| program(model, seed),
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
