//! Small kernels of PTX as real code has them, and each with one order weakened.
//!
//! Contract: a drawn kernel is a module that the assembler accepts, of one or two phases (`PHASES`) that follow each other in its
//! CTAs. It is right by the letter of the documents. A weakened one differs from it in one line: a barrier, a fence, a wait or an
//! arrival is missing, moved, repeated, relaxed or of a narrower scope; a parity, a count or the name of a barrier is another. It
//! may still be right. Both are launched as they say, and go through the front for modules.

mod cta;
mod elements;
mod grid;
mod pipeline;
mod ring;
mod text;

use crate::numbers::Choose;
use crate::protocol::Mutation;
use moire_kernel::ptx;
use moire_kernel::specialise::{Launch, lower};
use moire_program::ir::Program;
use std::collections::BTreeMap;
use text::{Script, Shape};

/// Kernels with a weakening, in percent.
const WEAKENED: usize = 50;
/// Phases that take the output of the one before as their input, in percent.
const CHAINED: usize = 40;

/// A part of a kernel.
struct Phase {
    name: &'static str,
    /// How often it is drawn, relative to the others.
    share: usize,
    /// The least numbers of CTAs and of warps.
    least: (u32, u32),
    /// Whether it copies its input asynchronously, so that a proxy fence stands before it.
    copies: bool,
    draw: fn(&mut Script, &mut dyn Choose),
}

/// The parts of kernels.
const PHASES: [Phase; 10] = [
    Phase { name: "tree", share: 3, least: (1, 2), copies: false, draw: cta::tree },
    Phase { name: "transpose", share: 2, least: (1, 2), copies: false, draw: cta::transpose },
    Phase { name: "histogram", share: 2, least: (1, 2), copies: false, draw: cta::histogram },
    Phase { name: "double_buffer", share: 3, least: (1, 2), copies: false, draw: cta::double },
    Phase { name: "ring", share: 4, least: (1, 2), copies: true, draw: ring::ring },
    Phase { name: "named", share: 3, least: (1, 2), copies: false, draw: ring::named },
    Phase { name: GRID_BARRIER, share: 3, least: (2, 1), copies: false, draw: grid::barrier },
    Phase { name: "split_k", share: 3, least: (2, 1), copies: false, draw: grid::split },
    Phase { name: "semaphore", share: 3, least: (2, 1), copies: false, draw: grid::turns },
    Phase { name: PIPELINE, share: 4, least: (1, 3), copies: true, draw: pipeline::pipeline },
];

/// The phase behind which all CTAs have done what stands before it.
const GRID_BARRIER: &str = "grid_barrier";

/// The phase that allocates tensor memory.
const PIPELINE: &str = "pipeline";

/// What makes a kernel weaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weakened {
    /// The kind.
    pub mutation: Mutation,
    /// The line as it was.
    pub line: String,
}

/// A kernel, how it is launched, and what is wrong with it, if anything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelDraw {
    /// The module.
    pub module: String,
    /// Its architecture.
    pub target: &'static str,
    /// CTAs; the kernel itself says how many threads they have.
    pub grid: u32,
    /// None: the kernel is right.
    pub weakened: Option<Weakened>,
    /// Its first phase.
    pub(crate) family: &'static str,
}

impl KernelDraw {
    /// Draws a kernel.
    pub fn draw(d: &mut dyn Choose) -> KernelDraw {
        let script = script(d);
        let newer = [("sm_80", 80), ("sm_90", 90), ("sm_100a", 100), ("sm_103a", 100), ("sm_120", 90)];
        let fit = |target: &&(&'static str, u32)| match script.least {
            100 => target.1 == 100,
            least => target.1 >= least,
        };
        let fit: Vec<&str> = newer.iter().filter(fit).map(|target| target.0).collect();
        let target = d.pick(&fit);
        let weaker = d.chance(WEAKENED).then(|| script.weakened(d.below(script.weakenings()))).flatten();
        let (script, weakened) = match weaker {
            Some((weaker, mutation, line)) => (weaker, Some(Weakened { mutation, line })),
            None => (script, None),
        };
        KernelDraw {
            module: script.module(target),
            target,
            grid: script.shape.grid,
            weakened,
            family: script.phases[0],
        }
    }

    /// The program of its launch; none if it cannot be run ahead.
    pub fn program(&self) -> Option<Program> {
        let module = ptx::parse(&self.module).ok()?;
        let kernel = module.kernels.first()?;
        let launch = Launch::of(kernel, Some([self.grid, 1, 1]), None, None, BTreeMap::new()).ok()?;
        Some(lower(kernel, &launch).ok()?.program)
    }

    /// The module, after comments that say how it is launched and what is weaker in it.
    pub fn text(&self) -> String {
        let weaker = self.weakened.as_ref().map_or(String::new(), |weakened| {
            format!("// weakened by {}: {}\n", weakened.mutation.name(), weakened.line)
        });
        format!("// moire check FILE --grid {}\n{weaker}{}", self.grid, self.module)
    }
}

/// A right kernel.
fn script(d: &mut dyn Choose) -> Script {
    let grid = d.pick(&[1, 1, 2, 2, 3]);
    let blocks: &[u32] = if grid == 1 { &[64, 64, 96, 128] } else { &[64, 64, 96] };
    let shape = Shape { grid, block: d.pick(blocks) };
    let mut script = Script::new(shape, d);
    let mut fit: Vec<&Phase> =
        PHASES.iter().filter(|p| p.least.0 <= shape.grid && p.least.1 * 32 <= shape.block).collect();
    let mut last = "";
    for _ in 0..d.pick(if grid < 3 { &[1, 1, 2] } else { &[1] }) {
        let phase = one(&fit, d);
        // CTAs meet once: of two such phases the front follows one. The right to allocate columns is given up once.
        let once = phase.least.0 > 1;
        fit.retain(|p| !(once && p.least.0 > 1) && (p.name != phase.name || p.name != PIPELINE));
        let met = shape.grid == 1 || last == GRID_BARRIER;
        let chained = !last.is_empty() && met && phase.least.0 == 1 && d.chance(CHAINED);
        if chained {
            if phase.copies {
                script.least = script.least.max(90);
                script.weak("fence.proxy.async;", &[(Mutation::Drop, "")]);
            }
            script.sync();
        }
        script.phase(phase.name, chained);
        (phase.draw)(&mut script, d);
        last = phase.name;
    }
    script
}

/// A phase, by its share.
fn one<'p>(from: &[&'p Phase], d: &mut dyn Choose) -> &'p Phase {
    let mut at = d.below(from.iter().map(|phase| phase.share).sum());
    let here = |phase: &&&Phase| {
        let here = at < phase.share;
        at = at.saturating_sub(phase.share);
        here
    };
    from.iter().find(here).unwrap_or(&from[0])
}
