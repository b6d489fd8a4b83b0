//! Random Tile IR kernels: litmus shapes and free compositions over a few tile blocks, inside the constructs that
//! compilers see in real code: index tiles, views, masks, tokens, `if`, `for`, loops.
//!
//! Contract: total and pure. Every module passes the verifier and is one kernel `k`. Each load stores its result to
//! memory of its own, behind the last parameters. A draw that is `safe` has no race under any reading of the model, and
//! a strong access passes a value from one block to another. The other draws are injured kernels, and kernels that hand
//! over weak data behind a flag; the latter race under readings whose token order does not span locations.
//!
//! Draws are small enough to be explored. Their number of executions is bounded from above by the writes to each place and
//! by the stores that a compiler repeats. In a large tile only one thing distinguishes elements (reversed, halved or
//! square order), because two such things would connect all elements.

mod decorate;
mod emit;
mod mutate;
mod plan;
mod shapes;

use arbitrary::Unstructured;
use moire_kernel::simt::log2_executions;
use moire_program::ir::Program;
use moire_tile_ir::run::{TileLaunch, lower, tile_entry};
use moire_tile_ir::text::print;
use moire_tile_ir::{Module, Scalar};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Name of the stream of [`tile_seed`]. A test compares kernels with a recorded hash: if it fails, raise the number.
pub const TILE_FINGERPRINT: &str = "tile-6";

/// Bytes that one kernel may consume: several times the observed maximum.
const BYTES: usize = 32_768;
/// Widest tile of which all elements count in the size of a kernel; of wider tiles two count.
const FEW: usize = 8;
/// Limits on the number of executions of a kernel, as logarithms to base two; one is drawn.
const EXECUTIONS: [f64; 6] = [4.0, 6.0, 7.0, 8.0, 8.0, 9.0];
/// Reads that a scalar load counts as. A compiler repeats it in several threads, and this many of each kind are explored.
const SPREAD: u32 = 2;
/// Addition to the size of a kernel that is not safe, because a kernel that may race is explored to its end.
const INJURED: f64 = 2.0;
/// Most kernels drawn to find one with few enough executions.
const DRAWS: usize = 12;

/// A kernel and how it is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileDraw {
    /// One kernel, `k`.
    pub module: Module,
    /// Two or three tile blocks.
    pub launch: TileLaunch,
    /// Free of races by construction, under every reading.
    pub safe: bool,
}

impl TileDraw {
    /// The program to explore; none if the kernel cannot be launched.
    pub fn program(&self) -> Option<Program> {
        lower(tile_entry(&self.module, None).ok()?, &self.launch).ok()
    }

    /// The text of the module, after a note with its launch.
    pub fn text(&self) -> String {
        self.launch.note() + &print(&self.module)
    }
}

/// Features of a kernel and how often they are drawn, in percent of decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileKnobs {
    /// Widths of tiles, powers of two; a kernel has one of them.
    pub widths: Vec<u32>,
    /// Types of elements; a kernel has mostly one of them.
    pub elems: Vec<Scalar>,
    /// Most memory instructions of a kernel, including those that store what was read; some shapes need a few more.
    pub memory_max: usize,
    /// Kernels that are injured.
    pub unsafe_percent: u8,
    /// Kernels that hand over weak data.
    pub handed_percent: u8,
    /// Kernels in which a token alone orders what blocks see.
    pub bound_percent: u8,
    /// Kernels in which all blocks run the same code.
    pub uniform_percent: u8,
    /// Accesses of a tile instead of a scalar.
    pub wide_percent: u8,
    /// Tiles that are masked.
    pub mask_percent: u8,
    /// Accesses that wait for a token.
    pub token_percent: u8,
    /// Accesses that are atomics.
    pub atomic_percent: u8,
    /// Scalar loads followed by an `if` on their value.
    pub if_percent: u8,
    /// Accesses in a `for`.
    pub for_percent: u8,
    /// Stores of a value that was read.
    pub data_percent: u8,
    /// Tiles accessed through a view.
    pub view_percent: u8,
    /// Views that gather.
    pub rows_percent: u8,
    /// Views whose index comes from memory.
    pub moved_percent: u8,
    /// Blocks that store and load elements of four bits.
    pub half_percent: u8,
    /// Loads in a `for` followed by a `continue` on their value.
    pub skip_percent: u8,
    /// Kernels with a loop that has a result.
    pub tries_percent: u8,
}

impl Default for TileKnobs {
    fn default() -> Self {
        TileKnobs {
            widths: vec![2, 2, 4, 4, 4, 64, 128, 128, 256],
            elems: vec![Scalar::I32; 1],
            memory_max: 7,
            unsafe_percent: 6,
            handed_percent: 3,
            bound_percent: 0,
            uniform_percent: 20,
            wide_percent: 50,
            mask_percent: 12,
            token_percent: 60,
            atomic_percent: 15,
            if_percent: 20,
            for_percent: 6,
            data_percent: 20,
            view_percent: 20,
            rows_percent: 20,
            moved_percent: 6,
            half_percent: 25,
            skip_percent: 50,
            tries_percent: 6,
        }
    }
}

impl TileKnobs {
    /// Draws knobs that switch whole features off for some of the kernels.
    fn draw(dice: &mut Dice<'_, '_>) -> TileKnobs {
        TileKnobs {
            elems: {
                let mut elems = vec![Scalar::I32; 24];
                elems.extend([Scalar::I64, Scalar::I64, Scalar::I64, Scalar::I16, Scalar::I8, Scalar::I1]);
                elems
            },
            memory_max: dice.of(&[4, 5, 5, 6, 6]),
            wide_percent: dice.of(&[0, 30, 50, 50, 70, 100]),
            mask_percent: dice.of(&[0, 0, 15, 30]),
            token_percent: dice.of(&[0, 40, 60, 80, 100, 100]),
            atomic_percent: dice.of(&[0, 0, 20, 40, 70]),
            if_percent: dice.of(&[0, 0, 20, 40]),
            for_percent: dice.of(&[0, 0, 0, 20]),
            data_percent: dice.of(&[0, 0, 20, 40]),
            view_percent: dice.of(&[0, 0, 30, 80]),
            ..TileKnobs::default()
        }
    }
}

/// Choices drawn from bytes. When the bytes run out, each choice is the first one.
struct Dice<'d, 'u>(&'d mut Unstructured<'u>);

impl Dice<'_, '_> {
    /// A number below `n`.
    fn below(&mut self, n: u32) -> u32 {
        self.0.int_in_range(0..=n.saturating_sub(1)).unwrap_or(0)
    }

    fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < u32::from(percent)
    }

    /// An item of a list that is not empty.
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        let at = self.below(u32::try_from(list.len()).unwrap_or(1)) as usize;
        list[at.min(list.len() - 1)]
    }
}

/// A kernel drawn under `knobs`.
pub fn tile(u: &mut Unstructured<'_>, knobs: &TileKnobs) -> TileDraw {
    drawn(u, knobs).0
}

/// A kernel drawn under `knobs`, and its [`plan::Plan::narrow`].
fn drawn(u: &mut Unstructured<'_>, knobs: &TileKnobs) -> (TileDraw, u32) {
    let mut dice = Dice(u);
    let plan = decorate::plan(&mut dice, knobs);
    let mut module = emit::module(&plan);
    let mut safe = plan.safe;
    if dice.percent(knobs.unsafe_percent) {
        module = mutate::injured(&mut dice, module);
        safe = false;
    }
    (TileDraw { module, launch: TileLaunch::row(plan.blocks), safe }, plan.narrow())
}

/// The kernel at `index` of the stream of `seed`, under random knobs, with few executions; independent of every other
/// index.
pub fn tile_seed(seed: u64, index: u64) -> TileDraw {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    let mut bytes = vec![0u8; BYTES];
    rng.fill_bytes(&mut bytes);
    let mut u = Unstructured::new(&bytes);
    let knobs = TileKnobs::draw(&mut Dice(&mut u));
    let most = Dice(&mut u).of(&EXECUTIONS);
    let mut least: Option<(f64, TileDraw)> = None;
    for _ in 0..DRAWS {
        let (draw, narrow) = drawn(&mut u, &knobs);
        let size = draw.program().map_or(f64::INFINITY, |p| log2_executions(&p, FEW, SPREAD));
        let size = size + f64::from(narrow) + if draw.safe { 0.0 } else { INJURED };
        if size <= most {
            return draw;
        }
        if least.as_ref().is_none_or(|l| size < l.0) {
            least = Some((size, draw));
        }
    }
    least.map_or_else(|| tile(&mut u, &knobs), |l| l.1)
}
