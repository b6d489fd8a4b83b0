//! Draws kernels that test the lowering. They are small enough to be explored in full, before and after it.

use crate::tile::{TileDraw, TileKnobs, tile};
use arbitrary::Unstructured;
use moire_tile_ir::Scalar;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Bytes one kernel may consume.
const BYTES: usize = 4096;

/// The kernel at `index` of the stream of `seed`, independent of every other index. One in twelve is injured; the others
/// are free of races under the default reading.
pub fn draw(seed: u64, index: u64) -> TileDraw {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    let mut bytes = vec![0u8; BYTES];
    rng.fill_bytes(&mut bytes);
    let mut u = Unstructured::new(&bytes);
    let knobs = knobs(&mut u);
    tile(&mut u, &knobs)
}

fn knobs(u: &mut Unstructured<'_>) -> TileKnobs {
    let mut of = |list: &[u8]| -> u8 {
        let last = list.len().saturating_sub(1);
        list.get(u.int_in_range(0..=last).unwrap_or(0)).copied().unwrap_or(0)
    };
    TileKnobs {
        widths: vec![2, 2, 2, 4],
        elems: vec![Scalar::I32],
        memory_max: usize::from(of(&[3, 4, 4, 5])),
        unsafe_percent: 8,
        handed_percent: 25,
        bound_percent: 8,
        uniform_percent: 20,
        wide_percent: of(&[0, 0, 30, 50, 70]),
        mask_percent: of(&[0, 0, 20, 40]),
        token_percent: of(&[0, 40, 60, 80, 100, 100]),
        atomic_percent: of(&[0, 0, 10, 25, 50]),
        if_percent: of(&[0, 0, 20, 40]),
        for_percent: of(&[0, 0, 0, 20]),
        data_percent: of(&[0, 0, 20, 40]),
        view_percent: of(&[0, 0, 40]),
        rows_percent: of(&[0, 30]),
        moved_percent: of(&[0, 0, 20]),
        half_percent: of(&[0, 0, 20]),
        skip_percent: 50,
        tries_percent: of(&[0, 0, 20]),
    }
}
