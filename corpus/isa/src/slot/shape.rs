//! The shape of a product, as `.m64n128k16`.

use super::{Slot, Worded, Words, become_nth};
use crate::kind::EVER;
use crate::text::{Bag, Refusal};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Rows, columns, and the length of what is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mnk {
    /// Rows.
    pub m: u16,
    /// Columns.
    pub n: u16,
    /// Length.
    pub k: u16,
}

/// The words of all shapes that some product might have; made once.
static WORDS: LazyLock<BTreeMap<Mnk, &'static str>> = LazyLock::new(|| {
    let mut words = BTreeMap::new();
    for m in [8, 16, 32, 64] {
        for n in (8..=256).step_by(8) {
            for k in [4, 8, 16, 32, 64, 96, 128, 256, 512] {
                words.insert(Mnk { m, n, k }, &*format!("m{m}n{n}k{k}").leak());
            }
        }
    }
    words
});

impl Mnk {
    /// Reads a word. `None`: it is no shape.
    fn of(word: &str) -> Option<Mnk> {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        let shape = Mnk { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? };
        (WORDS.get(&shape) == Some(&word)).then_some(shape)
    }

    fn steps(self) -> Vec<Mnk> {
        let near = |shape: &&Mnk| {
            (shape.m == self.m && shape.n == self.n)
                != (shape.k == self.k && shape.m == self.m && shape.n.abs_diff(self.n) == 8)
        };
        WORDS.keys().filter(near).filter(|shape| **shape != self).copied().collect()
    }
}

impl Worded for Mnk {
    fn put(&self, _: &[&'static str], out: &mut Words) {
        out.extend(WORDS.get(self).map(|word| (*word, EVER)));
    }
    fn canon(&self, out: &mut Vec<u8>) {
        [self.m, self.n, self.k].iter().for_each(|n| out.extend(n.to_be_bytes()));
    }
    fn is_said(&self) -> bool {
        true
    }
    fn step(&mut self, weaker: bool, n: usize) -> bool {
        !weaker && become_nth(self, &self.steps(), n)
    }
}

impl Slot for Mnk {
    fn words() -> Vec<&'static str> {
        Vec::new()
    }
    fn kinds() -> Vec<&'static str> {
        vec!["Mnk"]
    }
    fn take(bag: &mut Bag<'_>, name: &str) -> Result<Mnk, Refusal> {
        let found = bag.words.iter().enumerate().find_map(|(i, (word, _))| Some((i, Mnk::of(word)?)));
        let Some((at, shape)) = found else {
            return Err(Refusal {
                at: bag.end,
                message: format!("{name} needs a shape such as .m16n8k16"),
                hint: None,
            });
        };
        bag.words.remove(at);
        Ok(shape)
    }
}
