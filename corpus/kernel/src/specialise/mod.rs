//! A kernel of a PTX module, launched: from instructions to a program that can be explored.
//!
//! Every warp of the launch is run ahead, once: special registers and parameters are constants, arithmetic on them is
//! done here, branches on them are taken and loops unrolled, so that a body is left that holds what synchronises and
//! what touches memory, in the order of the kernel. What only the exploration can know stays in the program: the answer of a wait
//! (the run goes on both ways, and what comes back to a place in the same state becomes a loop), a word of shared memory
//! that decides a branch (the run goes on once for each value some warp stores there), an address that an allocation
//! returns. Lanes that differ are told apart by predicates. Arithmetic that reaches none of this is not looked at.
//!
//! Taken for granted, and said in the notes: lanes elected by `elect.sync` are the first of their warp; different
//! pointer parameters point to different memory; boxes of a tensor map at different coordinates are different memory,
//! and have as many bytes as the barrier they report to is told to expect.
//!
//! Abstained from by name and line: `multimem` (the module does not say which memories are behind an address), calls,
//! texture and surface writes, and lanes of a warp that wait in one arm of a branch.

mod access;
mod agree;
pub(crate) mod alu;
mod boxes;
mod budget;
mod build;
mod control;
mod copies;
mod effect;
pub(crate) mod flow;
mod heap;
pub(crate) mod integer;
mod layout;
mod moves;
mod plain;
mod remote;
mod run;
mod small;
mod tensor;
mod tidy;
pub(crate) mod value;
mod warpgroup;

use crate::ptx::{Kernel, Module};
use budget::Budget;
use flow::Flow;
use heap::Heap;
use moire_program::ir::Program;
use moire_program::limits::THREADS;
use run::{Here, Warp};
use std::collections::{BTreeMap, BTreeSet};

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// CTAs of a cluster.
    pub cluster: [u32; 3],
    /// Values of parameters, by position.
    pub params: BTreeMap<u16, u64>,
}

/// A remark about how the kernel was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// 1-based; 0 when it is about no single line.
    pub line: u32,
    /// The remark, one sentence.
    pub text: String,
}

/// The result of lowering a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// Lines are those of the module.
    pub program: Program,
    /// Sorted.
    pub notes: Vec<Note>,
}

/// The reason why a kernel has no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The launch does not fit the kernel.
    #[error("{0}")]
    Launch(String),
    /// Something that may decide the verdict and is not interpreted.
    #[error("{what} (line {line})")]
    Abstained {
        /// The instruction or property, in words.
        what: String,
        /// Line of the module.
        line: u32,
    },
    /// A limit was hit.
    #[error("{0}")]
    Bounded(String),
}

/// Work of all warps in all rounds together, in statements; what takes longer counts for more of them (`Budget`).
pub const STEPS: u64 = 4_000_000;
/// Rounds until no warp stores anything new.
const ROUNDS: usize = 12;

/// The kernel of that name, or the only one.
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

impl Launch {
    /// The launch with what the directives of the kernel fix filled in: `None` where nothing was said.
    pub fn of(
        kernel: &Kernel,
        grid: Option<[u32; 3]>,
        block: Option<[u32; 3]>,
        cluster: Option<[u32; 3]>,
        params: BTreeMap<u16, u64>,
    ) -> Result<Launch, Refusal> {
        let cluster = cluster.or(kernel.cluster).unwrap_or([1; 3]);
        let launch = Launch {
            grid: grid.unwrap_or(cluster),
            block: block.or(kernel.threads).or(kernel.most_threads).ok_or_else(|| {
                Refusal::Launch("the kernel does not say how many threads a CTA has; give --block".into())
            })?,
            cluster,
            params,
        };
        launch.fits(kernel)?;
        Ok(launch)
    }

    fn fits(&self, kernel: &Kernel) -> Result<(), Refusal> {
        let refuse = |text: String| Err(Refusal::Launch(text));
        let shape = |s: [u32; 3]| format!("{},{},{}", s[0], s[1], s[2]);
        if self.grid.iter().chain(&self.block).chain(&self.cluster).any(|n| *n == 0) {
            return refuse("sizes of a launch are at least 1".into());
        }
        for (what, wanted, given) in
            [("block", kernel.threads, self.block), ("cluster", kernel.cluster, self.cluster)]
        {
            if let Some(wanted) = wanted.filter(|w| *w != given) {
                return refuse(format!(
                    "the kernel asks for --{what} {}, not {}",
                    shape(wanted),
                    shape(given)
                ));
            }
        }
        let count = |s: [u32; 3]| s.iter().map(|n| u64::from(*n)).product::<u64>();
        if kernel.most_threads.is_some_and(|most| count(self.block) > count(most)) || count(self.block) > 1024
        {
            return refuse(format!("a CTA of {} threads is more than the kernel allows", count(self.block)));
        }
        if self.grid.iter().zip(&self.cluster).any(|(g, c)| g % c != 0) {
            return refuse(format!(
                "a grid of {} has no whole clusters of {}",
                shape(self.grid),
                shape(self.cluster)
            ));
        }
        let warps = count(self.grid).saturating_mul(count(self.block).div_ceil(32));
        if warps > THREADS as u64 {
            return refuse(format!("{warps} warps are more than {THREADS}; choose a smaller grid"));
        }
        if let Some(index) = self.params.keys().find(|i| usize::from(**i) >= kernel.params.len()) {
            return refuse(format!("there is no parameter {index}; the kernel has {}", kernel.params.len()));
        }
        Ok(())
    }

    /// Every warp, in order of CTAs.
    fn warps(&self) -> Vec<Here> {
        let [gx, gy, gz] = self.grid;
        let mut out = Vec::new();
        let threads: u32 = self.block.iter().product();
        for (z, y, x) in (0..gz).flat_map(|z| (0..gy).flat_map(move |y| (0..gx).map(move |x| (z, y, x)))) {
            for warp in 0..threads.div_ceil(32) {
                let lanes = (threads - 32 * warp).min(32);
                out.push(Here::new(self, [x, y, z], warp, lanes));
            }
        }
        out
    }
}

/// Runs every warp of the launch ahead and puts what is left together.
pub fn lower(kernel: &Kernel, launch: &Launch) -> Result<Lowered, Refusal> {
    launch.fits(kernel)?;
    let flow = Flow::new(kernel);
    let places = launch.warps();
    let map = heap::Map::new(kernel);
    let mut heap = Heap::default();
    let budget = Budget::new(STEPS);
    for round in 0..ROUNDS {
        let mut next = Heap::default();
        let mut traces = Vec::new();
        let mut notes = BTreeSet::new();
        let mut starved = None;
        for here in &places {
            let warp = Warp::new(kernel, &flow, launch, &map, here.clone(), &heap, &budget);
            let trace = warp.run()?;
            next.absorb(&trace);
            notes.extend(trace.notes.iter().cloned());
            starved = starved.or(trace.starved);
            traces.push(trace);
        }
        if next == heap {
            if let Some(line) = starved {
                let what = "a branch or an address depends on a word of shared memory that nothing writes";
                return Err(Refusal::Abstained { what: what.into(), line });
            }
            return build::program(kernel, &map, &places, traces, notes);
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
