//! Choices, from a seed or from bytes.

use arbitrary::Unstructured;

/// What a drawer asks: a stream of numbers from a seed, or bytes.
pub trait Choose {
    /// Draws a number below `n` (0 if `n` is 0).
    fn below(&mut self, n: usize) -> usize;

    /// Returns true in `percent` of 100 cases.
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

impl dyn Choose + '_ {
    /// Picks a member. There must be at least one.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// When the bytes run out, each choice is the first one.
impl Choose for Unstructured<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.int_in_range(0..=n.saturating_sub(1)).unwrap_or(0)
    }
}

impl Choose for Draw {
    fn below(&mut self, n: usize) -> usize {
        Draw::below(self, n)
    }
}

/// A drawer that takes a seed.
pub fn seeded<T>(draw: fn(&mut dyn Choose) -> T) -> impl Fn(u64) -> T {
    move |seed| draw(&mut Draw::new(seed))
}

/// A stream of numbers from a seed (splitmix64, Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// Starts the stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Draw(seed)
    }

    /// Draws the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Draws a number below `n` (0 if `n` is 0).
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.bits() % (n.max(1) as u64)).unwrap_or(0)
    }

    /// Returns true in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Picks a member. There must be at least one.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
