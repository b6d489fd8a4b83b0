//! Several types in a row, as `.f32.f16.f16.f32`.

use super::{Slot, Worded, Words, become_nth};
use crate::kind::Lattice;
use crate::kinds::Num;
use crate::text::{Bag, Refusal};

/// From `MIN` to `MAX` types, in the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types<const MIN: usize, const MAX: usize>([Option<Num>; MAX]);

impl<const MIN: usize, const MAX: usize> Types<MIN, MAX> {
    /// The type at a position; the last one where there are fewer.
    #[must_use]
    pub fn at(&self, position: usize) -> Num {
        self.0[..=position.min(MAX - 1)].iter().rev().find_map(|ty| *ty).unwrap_or(Num::B32)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().flatten().count()
    }

    fn steps(self, weaker: bool) -> Vec<Self> {
        let one = |i: usize| self.0[i].map_or(Vec::new(), |ty| Num::KIND.steps(ty.tag(), weaker));
        let change = |(i, tag)| {
            let mut next = self;
            next.0[i] = Some(Num::of(tag));
            next
        };
        (0..MAX).flat_map(|i| one(i).into_iter().map(move |tag| (i, tag))).map(change).collect()
    }
}

impl<const MIN: usize, const MAX: usize> Worded for Types<MIN, MAX> {
    fn put(&self, spelled: &[&'static str], out: &mut Words) {
        self.0.iter().flatten().for_each(|ty| ty.put(spelled, out));
    }
    fn canon(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|ty| ty.canon(out));
    }
    fn is_said(&self) -> bool {
        true
    }
    fn step(&mut self, weaker: bool, n: usize) -> bool {
        become_nth(self, &self.steps(weaker), n)
    }
}

impl<const MIN: usize, const MAX: usize> Slot for Types<MIN, MAX> {
    fn words() -> Vec<&'static str> {
        Num::KIND.words().collect()
    }
    fn kinds() -> Vec<&'static str> {
        vec![Num::NAME]
    }
    fn take(bag: &mut Bag<'_>, name: &str) -> Result<Self, Refusal> {
        let mut out = [None; MAX];
        for (i, ty) in out.iter_mut().enumerate() {
            *ty = bag.take(Num::KIND, 0).map(|(_, tag)| Num::of(tag));
            if ty.is_none() && i < MIN {
                return Err(bag.missing(Num::KIND, name));
            }
        }
        Ok(Types(out))
    }
}
