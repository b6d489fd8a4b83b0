//! Random numbers for descents.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

/// Draws a number below `n`, each equally often.
pub(super) fn below(numbers: &mut ChaCha8Rng, n: u64) -> u64 {
    let whole = u64::MAX - u64::MAX % n.max(1);
    loop {
        let number = numbers.next_u64();
        if number < whole {
            return number % n.max(1);
        }
    }
}
