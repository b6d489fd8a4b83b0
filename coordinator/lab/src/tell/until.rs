//! The number of programs until a planted weakening is found.

use super::planted::{Bug, Planting};
use super::seen::{Models, breaks, executions, meaning};
use moire_generate::{Profile, Stream};
use moire_source::mapping::mapped;
use moire_worker::job::{Cancel, Engine as _, Item, Plan, Source};
use moire_worker::oracle::{LOWERING, Oracles};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Of each planting, by seed, the programs until one tells it from the right.
pub(super) fn firsts(
    models: &Models,
    planted: &[Planting],
    seeds: Range<u64>,
    most: u64,
) -> Vec<Vec<Option<u64>>> {
    let mut out = vec![Vec::new(); planted.len()];
    for seed in seeds {
        for (all, first) in out.iter_mut().zip(of_seed(models, planted, seed, most)) {
            all.push(first);
        }
    }
    out
}

fn of_seed(models: &Models, planted: &[Planting], seed: u64, most: u64) -> Vec<Option<u64>> {
    let mut firsts = vec![None; planted.len()];
    let mut open: BTreeSet<usize> = (0..planted.len()).collect();
    for index in 0..most {
        let found = [programs, sources, kernels].map(|told| told(models, planted, &open, (seed, index)));
        for at in found.into_iter().flatten() {
            firsts[at] = Some(index + 1);
            open.remove(&at);
        }
    }
    firsts
}

/// The plantings that the program of `core` tells.
fn programs(
    models: &Models,
    planted: &[Planting],
    open: &BTreeSet<usize>,
    (seed, index): (u64, u64),
) -> Vec<usize> {
    let asked: Vec<usize> =
        open.iter().copied().filter(|at| matches!(planted[*at].bug, Bug::Engine(..))).collect();
    let program = Stream::new(seed, Profile::Core).item(index);
    let right = if asked.is_empty() { None } else { executions(&program, (&models.ptx, None)) };
    let Some(right) = right else { return Vec::new() };
    let tells = |at: &usize| match &planted[*at].bug {
        Bug::Engine(model, bug) => executions(&program, (model, *bug)).is_some_and(|wrong| wrong != right),
        Bug::Meaning(_) | Bug::Mapping(_) | Bug::Lowering(_) => false,
    };
    asked.into_iter().filter(tells).collect()
}

/// The plantings that the program of `source` tells.
fn sources(
    models: &Models,
    planted: &[Planting],
    open: &BTreeSet<usize>,
    (seed, index): (u64, u64),
) -> Vec<usize> {
    let is = |at: &usize| matches!(planted[*at].bug, Bug::Meaning(_) | Bug::Mapping(_));
    let asked: Vec<usize> = open.iter().copied().filter(is).collect();
    let source = Stream::new(seed, Profile::Source).source(index).filter(|_| !asked.is_empty());
    let Some(source) = source else { return Vec::new() };
    let Some(right) = meaning(&source, &models.source) else { return Vec::new() };
    let made = mapped(&source, &|_| None);
    let defined = right.flags.is_empty() && breaks(&made, &right, &models.ptx) == Some(false);
    let tells = |at: &usize| match &planted[*at].bug {
        Bug::Meaning(model) => meaning(&source, model).is_some_and(|wrong| wrong != right),
        Bug::Mapping(lost) => {
            let other = mapped(&source, lost);
            defined && other != made && breaks(&other, &right, &models.ptx) == Some(true)
        }
        Bug::Engine(..) | Bug::Lowering(_) => false,
    };
    asked.into_iter().filter(tells).collect()
}

/// The plantings that the kernel of the lowering oracle tells.
fn kernels(
    _: &Models,
    planted: &[Planting],
    open: &BTreeSet<usize>,
    (seed, index): (u64, u64),
) -> Vec<usize> {
    let tells = |at: &usize| match &planted[*at].bug {
        Bug::Lowering(oracles) => claims(oracles, seed, index),
        Bug::Engine(..) | Bug::Meaning(_) | Bug::Mapping(_) => false,
    };
    open.iter().copied().filter(tells).collect()
}

fn claims(oracles: &Oracles, seed: u64, index: u64) -> bool {
    let plan = Plan { oracles: vec![LOWERING.name.to_owned()], ..Plan::default() };
    let source = Source::Generated { seed, profile: Profile::TileIr.name().to_owned(), index };
    let report = oracles.run(&Item { plan: Arc::new(plan), index, source }, &Cancel::new());
    !report.claims.is_empty()
}
