//! Specialises a kernel of a PTX module for one launch: from instructions to a residual program that can be explored.
//!
//! Every warp of the launch is run ahead. Special registers and parameters are constants. Arithmetic on constants is
//! evaluated, branches on them are taken, loops are unrolled. Instructions that synchronise or access memory stay, in the
//! order of the kernel. So do values that only the exploration knows:
//!
//! - the answer of a wait: the run follows both ways, and a way that comes back to a place in the same state becomes a
//!   loop;
//! - a word of shared memory that decides a branch: the run splits once for each value that some warp stores there, in
//!   rounds over all warps until no warp stores anything new;
//! - an address that an allocation returns.
//!
//! If that has no end, the run is done again, and a comparison of a word of global memory has only the answers that the
//! numbers stored there can give (`Round::counting`).
//!
//! Lanes that diverge are told apart by predicates. Arithmetic that affects none of this is not evaluated.
//!
//! Clusters that have nothing in common become programs of their own, equal ones once (`residual/apart`).
//!
//! `known` has the facts from before a warp runs, `warp` the state of one warp, `step` the effect of a statement, `run` the
//! choice of the next statement, `coverage` what of the kernel a launch runs, `goals` what is asked of it, `sweep` and `cover` the
//! choice of launches, `lanes` which lanes of a warp run in one order, and `residual` turns items into a program. `queue` has
//! kernels that are launched one after another.
//!
//! An access whose address data decides is one to any place of its memory (`known/region`).
//!
//! Assumed: `elect.sync` elects the first active lane; different pointer parameters point to different memory; words there that
//! are read with an order or atomically are 0 at the start; boxes of a
//! tensor map at different coordinates are different memory, and have as many bytes as their barrier expects.
//!
//! Abstained from by name and line: `multimem` (the module does not say which memories an address names), calls of functions outside the module or of themselves, texture
//! and surface writes, and lanes of a warp that wait in one arm of a branch.

mod actual;
mod along;
mod assumed;
mod budget;
mod columns;
mod cover;
mod coverage;
mod dependent;
mod drawn;
mod every;
mod goals;
mod item;
pub(crate) mod known;
mod lanes;
mod launch;
mod led;
mod need;
mod overlap;
mod periods;
mod plan;
mod practice;
mod promised;
mod queue;
mod registers;
mod resident;
mod residual;
mod run;
mod step;
mod stream;
mod sweep;
mod taken;
mod touch;
mod warp;
mod word;
mod words;

pub use actual::{About, Actual};
pub use assumed::{Assumed, COMPARISONS};
pub use cover::{Cover, Found, Free, Impossible};
pub use coverage::{Class, Coverage, Loop, Met, Missed};
pub use every::{Every, decides_addresses, every};
pub use goals::{Goal, Goals};
pub use item::Note;
pub use launch::Launch;
pub use need::{Need, placed};
pub use plan::PERIODS;
pub use practice::Practice;
pub use queue::Grid;
pub use residual::CHOOSER;
pub use stream::Queued;
pub use sweep::{Sweep, sweep};
pub use word::{Pointer, Word};

use crate::Refusal;
use crate::ptx::{Kernel, Module};
use budget::Budget;
use item::Trace;
use known::heap::Heap;
use launch::Here;
use moire_program::ir::Program;
use need::{Named, Stopped};
use plan::Plan;
use residual::{Names, Residue, apart, residue};
use run::run;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use taken::taken;
use warp::Round;

/// The program of a launch, with remarks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The program; its lines are those of the module.
    pub program: Program,
    /// The remarks, sorted.
    pub notes: Vec<Note>,
    /// What of the kernel the launch runs.
    pub coverage: Coverage,
    /// See [`Apart::loose`].
    pub loose: BTreeSet<(u32, bool)>,
}

/// A launch as programs that are independent of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// In the order of their first clusters.
    pub parts: Vec<Part>,
    /// Sorted.
    pub notes: Vec<Note>,
    /// What of each kernel its launch runs.
    pub coverage: Vec<Coverage>,
    /// What keeps the launch from being clean although its programs are: it is abstained from then. What is wrong with
    /// them is wrong with it in any case.
    pub reserve: Option<Refusal>,
    /// Weak accesses to places that data decides: the line, and whether the place is in global memory. Two of them may have
    /// different places whatever the data, and one in global memory may keep clear of all others. So such races are none for
    /// sure.
    pub loose: BTreeSet<(u32, bool)>,
}

/// A program of some clusters of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Lines are those of the module.
    pub program: Program,
    /// The clusters that run it together, by number; further ones run the same program apart from these. Those of several
    /// grids are counted through.
    pub clusters: Vec<Vec<u32>>,
}

/// Most work in all warps and rounds together, in statements. Costly steps count as several statements (`Budget`).
pub const STEPS: u64 = 24_000_000;
/// Most rounds until no warp stores anything new.
const ROUNDS: usize = 12;

/// Finds the kernel with this name, or the only kernel.
///
/// # Errors
/// There is no such kernel, or there are several and no name is given.
pub fn entry<'m>(module: &'m Module, name: Option<&str>) -> Result<&'m Kernel, Refusal> {
    let known = || module.kernels.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(", ");
    match (name, module.kernels.as_slice()) {
        (Some(name), all) => all.iter().find(|k| k.name == name).ok_or_else(|| {
            Refusal::Launch(format!("no kernel is called `{name}`; the module has {}", known()))
        }),
        (None, [one]) => Ok(one),
        (None, _) => Err(Refusal::Launch(format!("the module has several kernels, name one: {}", known()))),
    }
}

/// Runs every warp of the launch ahead and makes one program of their items.
///
/// # Errors
/// The launch does not fit, the kernel has something that is not interpreted, or a limit is exceeded.
pub fn lower(kernel: &Kernel, launch: &Launch) -> Result<Lowered, Refusal> {
    lowered(kernel, launch, false)
}

/// Does the same, but explores predicates that depend on data both ways instead of abstaining.
///
/// Every run of the kernel on some data is among those of the program, so the kernel is clean if the program is. A violation
/// need not be one of the kernel: predicates that depend on the same data are independent in the program.
///
/// # Errors
/// As for [`lower`].
pub fn lower_for_any_data(kernel: &Kernel, launch: &Launch) -> Result<Lowered, Refusal> {
    lowered(kernel, launch, true)
}

fn lowered(kernel: &Kernel, launch: &Launch, choosing: bool) -> Result<Lowered, Refusal> {
    let grids = [Grid::alone(kernel, launch)];
    let mut ahead = to_its_end(&grids, choosing)?;
    if let Some(refusal) = ahead.reserve {
        return Err(refusal);
    }
    let all: Vec<usize> = (0..ahead.places.len()).collect();
    let names = Names { grids: &grids };
    let program = residual::program(&names, &ahead.places, &ahead.residue, &all)?;
    Ok(Lowered { program, notes: ahead.notes, coverage: ahead.coverage.remove(0), loose: ahead.loose })
}

/// The same as programs of clusters that have nothing in common, equal ones once.
///
/// # Errors
/// Those of [`lower`].
pub fn lower_apart(kernel: &Kernel, launch: &Launch) -> Result<Apart, Refusal> {
    apart_of(kernel, launch, false)
}

/// Does the same, but explores predicates that depend on data both ways, as [`lower_for_any_data`] does.
///
/// # Errors
/// Those of [`lower`].
pub fn lower_apart_for_any_data(kernel: &Kernel, launch: &Launch) -> Result<Apart, Refusal> {
    apart_of(kernel, launch, true)
}

fn apart_of(kernel: &Kernel, launch: &Launch, choosing: bool) -> Result<Apart, Refusal> {
    let grids = [Grid::alone(kernel, launch)];
    parted(&grids, to_its_end(&grids, choosing)?)
}

/// The same for kernels that are launched one after another on one stream; with `choosing`, for any data.
///
/// # Errors
/// Those of [`lower`], and that the launches do not fit together.
pub fn lower_queue(mut grids: Vec<Grid<'_>>, choosing: bool) -> Result<Apart, Refusal> {
    queue::queue(&mut grids)?;
    parted(&grids, to_its_end(&grids, choosing)?)
}

fn parted(grids: &[Grid<'_>], ahead: Ahead) -> Result<Apart, Refusal> {
    let Ahead { places, residue, notes, coverage, reserve, loose } = ahead;
    let names = Names { grids };
    let mut parts: Vec<(Program, Part)> = Vec::new();
    // By the numbers of the grid and of the cluster.
    let units: BTreeSet<u32> = places.iter().map(Here::unit).collect();
    let number = |unit: u32| (0u32..).zip(&units).find(|(_, u)| **u == unit).map_or(0, |(n, _)| n);
    for warps in apart::groups(&places, &residue.items) {
        let program = residual::program(&names, &places, &residue, &warps)?;
        let clusters: BTreeSet<u32> = warps.iter().map(|w| number(places[*w].unit())).collect();
        let clusters: Vec<u32> = clusters.into_iter().collect();
        let shape = apart::shape(&program);
        match parts.iter_mut().find(|p| p.0 == shape) {
            Some((_, part)) => part.clusters.push(clusters),
            None => parts.push((shape, Part { program, clusters: vec![clusters] })),
        }
    }
    Ok(Apart { parts: parts.into_iter().map(|p| p.1).collect(), notes, coverage, reserve, loose })
}

/// What of a kernel a launch runs, or why it is refused, with the parameter that is missing if one is. The work is taken
/// from `budget`.
fn survey(kernel: &Kernel, launch: &Launch, budget: &Budget, choosing: bool) -> Result<Coverage, Stopped> {
    let named: RefCell<Option<Named>> = RefCell::default();
    let grids = [Grid::alone(kernel, launch)];
    complete(&grids, |how| ahead(&grids, budget, &named, Reading { choosing, ..how }))
        .map(|mut ahead| ahead.coverage.remove(0))
        .map_err(|refusal| {
            let need = named.borrow().as_ref().and_then(|n| n.need(kernel, &refusal));
            Stopped { refusal, need }
        })
}

/// Launches whose warps have all been run ahead.
struct Ahead {
    places: Vec<Here>,
    residue: Residue,
    notes: Vec<Note>,
    coverage: Vec<Coverage>,
    /// See [`Apart::reserve`].
    reserve: Option<Refusal>,
    /// See [`Apart::loose`].
    loose: BTreeSet<(u32, bool)>,
}

/// How what only the exploration knows is read ahead of it.
#[derive(Clone, Copy, Debug, Default)]
struct Reading<'p> {
    /// See [`Round::choosing`].
    choosing: bool,
    /// See [`Round::counting`].
    counting: bool,
    /// See [`Round::drawing`].
    drawing: bool,
    /// See [`Round::plan`].
    plan: Option<&'p Plan>,
    /// What the warps of a similar launch store. More than the warps of this one store adds ways and leaves out none.
    stored: Option<&'p RefCell<Heap>>,
}

/// Runs every warp of launches that are judged ahead.
fn to_its_end(grids: &[Grid<'_>], choosing: bool) -> Result<Ahead, Refusal> {
    let named = RefCell::default();
    complete(grids, |how| ahead(grids, &Budget::new(STEPS), &named, Reading { choosing, ..how }))
}

/// Runs every warp ahead. If that has no end, once more with the numbers that are stored in global memory: a loop may end
/// with them only. If it is refused, once more with numbers for the CTAs of one grid (`drawn`).
fn complete<'p>(
    grids: &[Grid<'_>],
    run: impl Fn(Reading<'p>) -> Result<Ahead, Refusal>,
) -> Result<Ahead, Refusal> {
    let ended = |drawing: bool| {
        let how = Reading { drawing, ..Reading::default() };
        run(how).or_else(|first| match first {
            Refusal::Bounded(_) => run(Reading { counting: true, ..how }).map_err(|_| first),
            other => Err(other),
        })
    };
    let draws = || matches!(grids, [one] if drawn::may_be(one.kernel, &one.launch));
    ended(false).or_else(|first| match first {
        Refusal::Abstained { .. } if draws() => ended(true).map_err(|_| first),
        other => Err(other),
    })
}

/// Why a launch is not clean by the letter in which lanes that ask together may get different answers.
fn steered(traces: &[Trace]) -> Option<Refusal> {
    let line = traces.iter().find_map(|t| t.steered)?;
    let what = "lanes of a warp that ask together may get different answers, and then do different things";
    Some(Refusal::Abstained { what: what.into(), line })
}

/// Runs every warp ahead, in rounds until no warp stores anything new.
fn ahead(
    grids: &[Grid<'_>],
    budget: &Budget,
    named: &RefCell<Option<Named>>,
    Reading { choosing, counting, drawing, plan, stored }: Reading<'_>,
) -> Result<Ahead, Refusal> {
    grids.iter().try_for_each(|g| g.launch.fits(g.kernel))?;
    let places: Vec<Here> = grids.iter().flat_map(|g| g.launch.warps()).collect();
    let mut heap = stored.map_or_else(Heap::default, |stored| stored.borrow().clone());
    let told = grids.iter().any(|g| g.launch.words.is_some());
    let mut unset = false;
    for round in 0..ROUNDS {
        let mut next = Heap::default();
        let mut traces = Vec::new();
        let mut notes = BTreeSet::new();
        let mut starved = None;
        for here in &places {
            let grid = &grids[here.grid as usize];
            let round = Round {
                kernel: grid.kernel,
                launch: &grid.launch,
                heap: &heap,
                budget,
                named,
                choosing,
                counting,
                drawing,
                unset,
                plan,
            };
            let trace = run(&round, here.clone())?;
            next.absorb(&trace);
            notes.extend(trace.notes.iter().cloned());
            starved = starved.or(trace.starved);
            traces.push(trace);
        }
        next.change(words::changed(&heap, &traces));
        // What a word holds that nothing writes may decide nothing.
        if next == heap && starved.is_some() && told && !unset {
            unset = true;
            continue;
        }
        if next == heap {
            if let Some(line) = starved {
                let what = "a branch or an address depends on a word of shared memory that nothing writes";
                return Err(Refusal::Abstained { what: what.into(), line });
            }
            stored.into_iter().for_each(|stored| drop(stored.replace(heap.clone())));
            if let (Some(_), [one]) = (plan, grids) {
                along::fold(&mut traces, &one.launch.actual)?;
                every::one_place(&mut traces)?;
            }
            if let [one] = grids
                && one.launch.words.is_some()
            {
                notes.extend(words::taken(one.kernel, &mut traces));
            }
            return closed(grids, places, traces, notes);
        }
        heap = next;
        if round + 1 == ROUNDS {
            break;
        }
    }
    Err(Refusal::Bounded(format!(
        "words of shared memory that decide branches still change after {ROUNDS} rounds"
    )))
}

/// What the last round gave.
fn closed(
    grids: &[Grid<'_>],
    places: Vec<Here>,
    mut traces: Vec<Trace>,
    mut notes: BTreeSet<Note>,
) -> Result<Ahead, Refusal> {
    columns::counted(&places, &traces)?;
    drawn::once(&places, &traces)?;
    let of: Vec<Range<usize>> = queue::ranges(&places, grids.len());
    queue::apart(&of, &traces)?;
    let loose = item::loose(&traces);
    let mut coverage = Vec::new();
    let mut reserve = None;
    for (n, Grid { kernel, launch, .. }) in grids.iter().enumerate() {
        let (own, here) = (&mut traces[of[n].clone()], &places[of[n].clone()]);
        let courses: Vec<_> = own.iter().map(|t| &t.course).collect();
        coverage.push(Coverage::of(kernel, &courses));
        let promise = promised::kept(own).err();
        let pool = || registers::suffice(kernel.entry_registers()?, here, own).err();
        reserve = reserve.or(promise).or_else(pool).or_else(|| steered(own));
        reserve = reserve.or_else(|| overlap::none(&launch.actual, grids[n].kernel.map(), own).err());
        notes.extend(registers::taken(kernel.entry_registers(), own));
    }
    reserve = reserve.or_else(|| queue::promises(grids, &of, &traces));
    reserve = reserve.or_else(|| queue::passes(grids, &of, &traces));
    reserve = reserve.or_else(|| queue::strangers(grids, &of, &traces));
    let alike: Vec<_> = traces.iter_mut().map(|t| std::mem::take(&mut t.common)).collect();
    let residue = residue(&places, traces)?;
    reserve = reserve.or_else(|| words::uneven(&places, &residue.items, &alike));
    notes.extend(words::each_its_own(&places, &alike));
    notes.extend(taken(grids, &residue.items));
    notes.extend(queue::starts(grids));
    let behind = resident::waits_behind(&places, &residue.items);
    reserve = reserve.or_else(|| behind.map(queue::never));
    for (n, (Grid { launch, .. }, coverage)) in grids.iter().zip(&mut coverage).enumerate() {
        let awaits = resident::waits(&places[of[n].clone()], &residue.items[of[n].clone()]);
        notes.extend(resident::taken(&awaits));
        coverage.met.clusters = std::array::from_fn(|n| launch.grid[n] / launch.cluster[n]);
        coverage.met.awaits = awaits;
    }
    let notes = notes.into_iter().collect();
    Ok(Ahead { places, residue, notes, coverage, reserve, loose })
}
