//! Kernels that are launched one after another on one stream.
//!
//! They are run ahead together and become one program, a grid each. A kernel that has `griddepcontrol.wait` is taken to be
//! launched as a dependent: it may start before the grids ahead of it are complete, and only its waits order it behind them
//! (PTX ISA 9.2, 9.7.13.16). Any other kernel starts when they are complete.
//!
//! Global memory is one. Memories have numbers: those behind the parameters of the first grid the numbers of these, those of
//! the others further ones, unless a parameter is said to be one of a grid ahead. Kernels of one module have its variables
//! in common, by name.

use super::Launch;
use super::item::{Item, Note, Placed, Trace};
use super::launch::Here;
use super::promised::{across, met};
use super::stream::Queued;
use super::touch::{Mem, Touch};
use crate::Refusal;
use crate::ptx::{Kernel, Variable, What};
use moire_program::ir::{Control, Op};
use moire_program::limits::THREADS;
use std::collections::BTreeMap;
use std::ops::Range;

/// Most grids.
const GRIDS: usize = 16;
/// The lowest bit of the number of a grid in the name of a tensor map.
const MAP_SHIFT: u32 = 58;

/// A kernel with its launch.
#[derive(Clone)]
pub struct Grid<'k> {
    /// The kernel.
    pub kernel: &'k Kernel,
    /// How it is launched.
    pub launch: Launch,
    /// Kernels with the same number are of one module.
    pub module: usize,
    /// Parameters that point where one of a grid ahead does, or are the same tensor map: the grid and its parameter.
    pub same: BTreeMap<u16, (usize, u16)>,
}

impl<'k> Grid<'k> {
    /// A kernel that is launched alone.
    pub(super) fn alone(kernel: &'k Kernel, launch: &Launch) -> Self {
        Grid { kernel, launch: launch.clone(), module: 0, same: BTreeMap::new() }
    }
}

/// Gives each launch its place.
pub(super) fn queue(grids: &mut [Grid<'_>]) -> Result<(), Refusal> {
    let warps = grids.iter().map(|g| g.launch.warps().len()).sum::<usize>();
    if grids.len() > GRIDS || warps > THREADS {
        return Err(Refusal::Launch(format!(
            "{} grids of {warps} warps together are more than {GRIDS} or {THREADS}; choose smaller grids",
            grids.len()
        )));
    }
    let mut next = (0, 0);
    for n in 0..grids.len() {
        let (ahead, rest) = grids.split_at_mut(n);
        let own = placed(ahead, &rest[0], &mut next)?;
        rest[0].launch.queued = Queued { followed: rest.len() > 1, ..own };
    }
    Ok(())
}

/// The place of a launch behind others. `next` are the numbers of the next memory behind a parameter and of the next variable.
fn placed(ahead: &[Grid<'_>], grid: &Grid<'_>, next: &mut (u16, u16)) -> Result<Queued, Refusal> {
    let number = u32::try_from(ahead.len()).unwrap_or(u32::MAX);
    let mut out = Queued { grid: number, ..Queued::default() };
    let map = grid.kernel.map();
    for (n, at) in (0..).zip(&map.params) {
        let shared = grid.same.get(&n).map(|of| same(ahead, grid, n, *of)).transpose()?;
        let own = (next.0, u64::from(number) << MAP_SHIFT | at);
        let (memory, stands) = shared.unwrap_or(own);
        out.memories.insert(n, memory);
        out.maps.insert(n, stands);
        next.0 += 1;
    }
    for (n, variable) in (0..).zip(&grid.kernel.variables) {
        if matches!(variable, Variable::Global) {
            let known = ahead.iter().filter(|a| a.module == grid.module).find_map(|a| named(a, grid, n));
            out.variables.insert(n, known.unwrap_or(next.1));
            next.1 += 1;
        }
    }
    Ok(out)
}

/// The memory and the tensor map of a parameter that is one of a grid ahead.
fn same(
    ahead: &[Grid<'_>],
    grid: &Grid<'_>,
    own: u16,
    (of, param): (usize, u16),
) -> Result<(u16, u64), Refusal> {
    let refuse =
        |why: &str| Err(Refusal::Launch(format!("parameter {}:{own} = {of}:{param}: {why}", ahead.len())));
    let known = |kernel: &Kernel, n: u16| kernel.params.get(usize::from(n)).map(|p| (p.pointer, p.bytes));
    let Some(first) = ahead.get(of) else { return refuse("the grid is not ahead of it") };
    match (known(first.kernel, param), known(grid.kernel, own)) {
        (None, _) | (_, None) => refuse("there is no such parameter"),
        (Some((false, a)), Some((false, b))) if a != b || a <= 8 => {
            refuse("these are no pointers and no tensor maps")
        }
        (Some((a, _)), Some((b, _))) if a != b => {
            refuse("one is a pointer and the other a tensor map, and nothing says which bytes both are about")
        }
        _ => {
            let queued = &first.launch.queued;
            let map = first.kernel.map();
            let at = map.params.get(usize::from(param)).copied().unwrap_or_default();
            Ok((queued.memory(param), queued.map(map, at)))
        }
    }
}

/// The number of a variable of a kernel ahead that has the same name.
fn named(ahead: &Grid<'_>, grid: &Grid<'_>, n: u16) -> Option<u16> {
    let name = |kernel: &'_ Kernel, n: u16| Some(kernel.program.symbols.get(usize::from(n))?.name.clone());
    let own = name(grid.kernel, n)?;
    let mut all = ahead.launch.queued.variables.iter();
    all.find(|(other, _)| name(ahead.kernel, **other).as_ref() == Some(&own)).map(|(_, memory)| *memory)
}

/// The grid and the parameter after which a memory is called.
pub(super) fn owner(grids: &[Grid<'_>], memory: u16) -> Option<(usize, u16)> {
    let of = |(n, grid): (usize, &Grid<'_>)| {
        let mut all = grid.launch.queued.memories.iter();
        all.find(|(_, own)| **own == memory).map(|(param, _)| (n, *param))
    };
    grids.iter().enumerate().find_map(of)
}

/// The line of a `griddepcontrol.wait` of a kernel.
pub(super) fn waits(kernel: &Kernel) -> Option<u32> {
    let waits = |what: &What| matches!(what, What::Core(Op::Control(Control::WaitDependencies)));
    kernel.body.iter().find(|s| waits(&s.what)).map(|s| s.line)
}

/// When each grid starts, in words.
pub(super) fn starts(grids: &[Grid<'_>]) -> Vec<Note> {
    let one = |(n, grid): (usize, &Grid<'_>)| {
        let name = &grid.kernel.name;
        match waits(grid.kernel) {
            Some(line) => Note::new(
                line,
                format!(
                    "grid {n} ({name}) is launched as a dependent, because it waits: it may start before those ahead of it are complete"
                ),
            ),
            None => Note::new(
                0,
                format!(
                    "grid {n} ({name}) starts when those ahead of it are complete: it has no griddepcontrol.wait"
                ),
            ),
        }
    };
    grids.iter().enumerate().skip(1).map(one).collect()
}

/// The warps of each grid.
pub(super) fn ranges(places: &[Here], grids: usize) -> Vec<Range<usize>> {
    let start = |n: usize| places.partition_point(|here| (here.grid as usize) < n);
    (0..grids).map(|n| start(n)..start(n + 1)).collect()
}

/// Why launches are not clean of which one writes what another one, which may run at the same time, reads on a promise.
pub(super) fn promises(grids: &[Grid<'_>], of: &[Range<usize>], traces: &[Trace]) -> Option<Refusal> {
    let late = |n: usize| waits(grids[n].kernel).is_some();
    let mut pairs = (1..grids.len()).filter(|n| late(*n)).flat_map(|n| (0..n).map(move |m| (m, n)));
    pairs.find_map(|(m, n)| {
        let (ahead, behind) = (&traces[of[m].clone()], &traces[of[n].clone()]);
        across(ahead, behind).or_else(|| across(behind, ahead))
    })
}

/// Why launches are not clean of which one could end before those ahead of it: it starts early, none of its threads waits, and
/// a grid behind it waits for it.
pub(super) fn passes(grids: &[Grid<'_>], of: &[Range<usize>], traces: &[Trace]) -> Option<Refusal> {
    let passes = |n: &usize| !traces[of[*n].clone()].iter().flat_map(|t| &t.items).any(is_wait);
    let n = (1..grids.len().saturating_sub(1)).filter(|n| waits(grids[*n].kernel).is_some()).find(passes)?;
    let what = "a kernel that waits for the grid ahead of it in no thread, and has another one behind it";
    Some(Refusal::Abstained { what: what.into(), line: waits(grids[n].kernel)? })
}

/// Why launches are not clean of which one waits for another one behind it.
pub(super) fn never(line: u32) -> Refusal {
    let what = "a wait for what only a grid behind this one writes, which may not start before this one ends";
    Refusal::Abstained { what: what.into(), line }
}

/// Why launches are not clean of which one has a memory in common with those ahead of it, and touches no byte of it that they do:
/// each is chosen as if it were alone.
pub(super) fn strangers(grids: &[Grid<'_>], of: &[Range<usize>], traces: &[Trace]) -> Option<Refusal> {
    let strange = |n: usize, param: u16| {
        let queued = &grids[n].launch.queued;
        let bytes = grids[n].kernel.params.get(usize::from(param)).map_or(0, |p| u64::from(p.bytes));
        let map = queued.maps.get(&param).map(|at| *at..*at + bytes);
        let about = |mem: Mem| match mem {
            Mem::Param(memory) => memory == queued.memory(param),
            Mem::Boxes(which) => map.as_ref().is_some_and(|map| map.contains(&which)),
            _ => false,
        };
        !met(&traces[..of[n].start], &traces[of[n].clone()], &about)
    };
    let mut all = (1..grids.len()).flat_map(|n| grids[n].same.keys().map(move |param| (n, *param)));
    let (n, param) = all.find(|(n, param)| strange(*n, *param))?;
    let what = format!(
        "parameter {n}:{param}, behind which no byte is touched that a grid ahead touches, too, in launches that are chosen apart (give their \
         sizes and parameters)"
    );
    Some(Refusal::Abstained { what, line: grids[n].kernel.body.first()?.line })
}

/// Refuses numbers as addresses of global memory in several grids: nothing says whether these are one place.
pub(super) fn apart(grids: &[Range<usize>], traces: &[Trace]) -> Result<(), Refusal> {
    let at = |p: &Placed| p.item.touches().iter().any(|t: &Touch| t.mem == Mem::Absolute).then_some(p.line);
    let line = |of: &Range<usize>| traces[of.clone()].iter().flat_map(|t| &t.items).find_map(at);
    match grids.iter().filter_map(line).nth(1) {
        Some(line) => {
            let what = "global memory at an address that is a number, as in a grid ahead of it".into();
            Err(Refusal::Abstained { what, line })
        }
        None => Ok(()),
    }
}

/// Whether an item is a wait for the grids ahead.
pub(super) fn is_wait(placed: &Placed) -> bool {
    matches!(&placed.item, Item::Op { op, .. } if matches!(**op, Op::Control(Control::WaitDependencies)))
}
