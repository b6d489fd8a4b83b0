//! The pinned stream of source programs.

use arbitrary::Unstructured;
use moire_source::Source;
use moire_source::draw::{BYTES, draw};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Name of the stream. A test compares the first programs with a recorded hash: if it fails, raise the number.
pub const SOURCE_FINGERPRINT: &str = "source-3";

/// The program at `index` of the stream of `seed`.
pub fn source_seed(seed: u64, index: u64) -> Source {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    let mut bytes = vec![0u8; BYTES];
    rng.fill_bytes(&mut bytes);
    // This cannot fail: `arbitrary` returns the least value when the bytes run out.
    let mut source = draw(&mut Unstructured::new(&bytes)).unwrap_or_default();
    source.name = format!("{}-{seed}-{index}", source.name);
    source
}
