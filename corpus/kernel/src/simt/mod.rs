//! Runs a compiled kernel thread by thread: turns the PTX of one launch into a program of ordinary instructions.
//!
//! [`crate::specialise`] runs warps ahead to find out how they synchronise. This module keeps every access of every
//! thread, because it is used to compare the behaviour of a compiler's output with that of its input. Each thread is
//! specialised on its own: its place in the grid and the addresses of its parameters are constants. Arithmetic on
//! constants is evaluated, branches on them are taken, loops over them are unrolled.
//!
//! Values that depend on memory are computed by instructions of the program. A branch on such a value is followed in both
//! directions. A path that reaches a place in a state seen before jumps back to it, so a wait loop remains a loop. Only
//! dead arithmetic and dead weak loads are dropped.
//!
//! Parameter `n` is the address of the object `argn`, as in `moire_tile_ir::run`. Each CTA has its own shared variables.
//! An instruction that is not interpreted is refused by name and line. If it only writes registers, it is refused only
//! if its result reaches a branch, an address or memory.
//! [`slice()`] cuts the program, together with the one it was compiled from, down to a few threads and locations.

mod access;
mod fold;
mod matrix;
mod names;
mod run;
mod size;
mod slice;
mod tidy;

pub use size::log2_executions;
pub use slice::{Pair, slice, slice_least};

use crate::Done;
use crate::Refusal;
use crate::ptx::{Kernel, Variable};
use matrix::Rows;
use moire_program::ir::{
    Content, Object, ObjectId, Placement, Program, Proxy, Space, Symbol, SymbolId, Thread,
};
use names::Names;
use run::{Here, Run};

/// Most threads of one launch.
pub const THREADS: u32 = 4_096;
/// Most instructions in all threads together.
pub const TOTAL: usize = 1 << 20;

/// Makes the program for `blocks` tile blocks in one dimension, with objects of the given sizes behind the parameters.
///
/// # Errors
/// The kernel has something that is not interpreted, or a limit is exceeded.
pub fn threads(kernel: &Kernel, blocks: u32, sizes: &[u32]) -> Done<Program> {
    let Some([width, 1, 1]) = kernel.threads else {
        return Err(Refusal::about("a kernel without .reqntid, or with more than one row of threads"));
    };
    let [rank, 1, 1] = kernel.cluster.unwrap_or([1; 3]) else {
        return Err(Refusal::about("a cluster with more than one row of CTAs"));
    };
    let total = u64::from(width) * u64::from(rank) * u64::from(blocks);
    if total == 0 || total > u64::from(THREADS) {
        return Err(Refusal::Bounded(format!("{total} threads; 1 to {THREADS} can be followed")));
    }
    let (mut program, symbols) = memory(kernel, sizes)?;
    let targets = run::targets(kernel);
    let all = (0..blocks * rank).flat_map(|cta| (0..width).map(move |tid| (cta, tid)));
    let all: Vec<Here> = all.map(|(cta, tid)| Here { tid, width, cta, rank, blocks }).collect();
    let follow = |rows: &Rows| -> Done<Vec<Thread>> {
        let mut left = TOTAL;
        let run = |here: &Here| Run::new(kernel, &targets, (&symbols, rows), *here)?.run(&mut left);
        all.iter().map(run).collect()
    };
    let (mut rows, noting) = Rows::new(kernel);
    if noting {
        follow(&rows)?;
        rows = rows.noted();
    }
    for (mut thread, here) in follow(&rows)?.into_iter().zip(&all) {
        thread.name = format!("c{}t{}", here.cta, here.tid);
        thread.place = place(here)?;
        program.threads.push(thread);
    }
    Ok(program)
}

fn place(here: &Here) -> Done<Placement> {
    let small = |n: u32| u16::try_from(n).map_err(|_| Refusal::Bounded("too many CTAs or warps".to_owned()));
    Ok(Placement {
        cluster: small(here.cta / here.rank)?,
        cta: small(here.cta)?,
        warp: small(here.tid / 32)?,
        mask: 1 << (here.tid % 32),
        ..Placement::default()
    })
}

/// Makes a program with the objects of the parameters, followed by the shared variables.
fn memory(kernel: &Kernel, sizes: &[u32]) -> Done<(Program, Names)> {
    let mut program = Program { name: kernel.name.clone(), ..Program::default() };
    let mut add = |name: String, space: Space, bytes: u32| -> Done<SymbolId> {
        let number = u16::try_from(program.objects.len())
            .map_err(|_| Refusal::Bounded("too many objects".to_owned()))?;
        let (object, virt, proxy) = (ObjectId(number), SymbolId(number), Proxy::Generic);
        program.objects.push(Object { name: name.clone(), space, bytes, init: Content::default() });
        program.symbols.push(Symbol { name, object, virt, proxy, multimem: Vec::new() });
        Ok(virt)
    };
    let args =
        (0..).zip(sizes).map(|(n, bytes): (usize, &u32)| add(format!("arg{n}"), Space::Global, *bytes));
    let args = args.collect::<Done<Vec<SymbolId>>>()?;
    let mut names = Vec::new();
    for (variable, symbol) in kernel.variables.iter().zip(&kernel.program.symbols) {
        names.push(match variable {
            Variable::Shared { bytes: Some(bytes), .. } => {
                Some(add(symbol.name.clone(), Space::SharedCta, *bytes)?)
            }
            Variable::Param(n) => args.get(*n).copied(),
            Variable::Shared { bytes: None, .. } | Variable::Global | Variable::Local { .. } => None,
        });
    }
    let shared = u16::try_from(args.len()).map_err(|_| Refusal::Bounded("too many objects".to_owned()))?;
    Ok((program, Names { known: names, shared }))
}
