//! Strategies: ways to run a kernel that make rare outcomes show. They differ in how instances are spread, how far apart they
//! lie, and how much other memory traffic there is.
//!
//! The knobs are those of the work on testing GPUs: shuffled placement and memory stress after Alglave et al., *GPU
//! Concurrency: Weak Behaviours and Programming Assumptions* (ASPLOS 2015), and Sorensen and Donaldson, *Exposing Errors
//! Related to Weak Memory in GPU Applications* (PLDI 2016); many instances at once that are matched in permuted order
//! after Levine et al., *MC Mutants* (ASPLOS 2023). No one setting is best, so a sweep goes through all.

use crate::kernel::{Kernel, LANES};

/// One way to run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Strategy {
    /// CTAs of the grid that play the program, in groups of as many as it has CTAs.
    pub groups: u32,
    /// Bytes between the copies of an object of two instances; a multiple of 64 keeps any object aligned.
    pub stride: u32,
    /// CTAs that only make traffic, for each group.
    pub stress: u32,
    /// Rounds of traffic that each of them makes.
    pub rounds: u32,
    /// Whether CTAs are shuffled.
    pub shuffle: bool,
}

/// The strategies of the sweep.
pub const STRATEGIES: [Strategy; 6] = [
    Strategy { groups: 256, stride: 64, stress: 0, rounds: 0, shuffle: false },
    Strategy { groups: 256, stride: 64, stress: 0, rounds: 0, shuffle: true },
    Strategy { groups: 1024, stride: 128, stress: 0, rounds: 0, shuffle: true },
    Strategy { groups: 256, stride: 64, stress: 1, rounds: 64, shuffle: true },
    Strategy { groups: 256, stride: 256, stress: 2, rounds: 256, shuffle: true },
    Strategy { groups: 128, stride: 1024, stress: 4, rounds: 512, shuffle: true },
];

impl Strategy {
    /// Instances of one launch.
    pub fn instances(&self) -> u32 {
        self.groups * LANES
    }
}

/// The next number of a stream that depends on the seed alone (SplitMix64).
pub(crate) fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The role of each CTA of the grid, or `u32::MAX` for memory traffic. Each role is given once. CTAs of one cluster stay
/// together, in their order.
pub fn roles(kernel: &Kernel, strategy: &Strategy, seed: u64) -> Vec<u32> {
    let together = if kernel.cluster { kernel.ctas } else { 1 };
    let playing = strategy.groups * kernel.ctas / together;
    let idle = (strategy.groups * strategy.stress).div_ceil(together);
    let mut parts: Vec<Option<u32>> = (0..playing).map(Some).chain((0..idle).map(|_| None)).collect();
    let mut state = seed;
    for last in (1..parts.len()).rev().filter(|_| strategy.shuffle) {
        let other = draw(&mut state) % (last as u64 + 1);
        parts.swap(last, usize::try_from(other).expect("below a length"));
    }
    let part = |part: Option<u32>| (0..together).map(move |n| part.map_or(u32::MAX, |p| p * together + n));
    parts.into_iter().flat_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_is_played_once() {
        let alone = Kernel {
            text: String::new(),
            ctas: 3,
            cluster: false,
            threads: 32,
            slots: 0,
            words: Vec::new(),
            objects: Vec::new(),
        };
        let cluster = Kernel { cluster: true, ..alone.clone() };
        for (strategy, kernel) in STRATEGIES.iter().flat_map(|s| [(s, &alone), (s, &cluster)]) {
            let mut all = roles(kernel, strategy, 7);
            assert_eq!(all, roles(kernel, strategy, 7));
            assert_eq!(all != roles(kernel, strategy, 8), strategy.shuffle);
            let whole =
                |c: &[u32]| c.iter().all(|r| *r == u32::MAX) || (c[0].is_multiple_of(3) && c[2] == c[0] + 2);
            assert!(!kernel.cluster || all.chunks(3).all(whole), "a cluster stays together");
            all.sort_unstable();
            let playing = strategy.groups * 3;
            assert!(all.iter().take(playing as usize).copied().eq(0..playing));
            assert!(all[playing as usize..].iter().all(|r| *r == u32::MAX));
            assert_eq!(strategy.stride % 64, 0);
        }
    }
}
