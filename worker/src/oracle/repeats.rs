//! Which programs of a stream are not judged, because the stream drew an equal one shortly before.
//!
//! Contract: the answer depends on the item alone, so that a result does not depend on who judged what. So a program is looked
//! for in its block of [`BLOCK`] or [`MODULES`] indices, which each process draws once. Programs are equal if their canonical texts are.

use super::batches::Batches;
use crate::job::Source;
use moire_generate::{Profile, Stream};
use moire_program::canon::canonical;
use std::collections::BTreeSet;

/// Programs among which repeats are looked for.
const BLOCK: usize = 256;
/// The same of modules: 256 of them take a quarter of a minute, which the first one judged would wait for.
const MODULES: usize = 16;

/// The blocks drawn last: of each, which of its programs are repeats.
#[derive(Debug, Default)]
pub(super) struct Repeats(Batches<Profile, bool>);

impl Repeats {
    /// Whether an equal program stands before this one in its block.
    pub(super) fn has(&self, source: &Source) -> bool {
        let Source::Generated { seed, profile, index } = source else { return false };
        let Ok(profile) = profile.parse::<Profile>() else { return false };
        let stream = Stream::new(*seed, profile);
        let block = if profile == Profile::Kernel { MODULES } else { BLOCK };
        self.0.item(block, &profile, (*seed, *index), |block| {
            let mut known = BTreeSet::new();
            block.map(|index| !known.insert(canonical(&stream.item(index)).id)).collect()
        })
    }
}
