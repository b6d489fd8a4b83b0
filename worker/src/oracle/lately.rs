//! Answers found lately, by the text that they are about.
//!
//! Contract: an answer depends on its text alone, so it makes no difference which thread found it, or whether it was still
//! kept. So does the reason why there is none, which costs the most to find: it is kept in words.

use super::abstention::Abstention;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Most answers kept.
const MAX_KEPT: usize = 256;

/// An answer, or the words of an abstention.
type Said<A> = Result<A, String>;

/// The latest answers, oldest first.
#[derive(Debug)]
pub(super) struct Lately<A>(Mutex<VecDeque<([u8; 32], Said<A>)>>);

impl<A> Default for Lately<A> {
    fn default() -> Self {
        Lately(Mutex::default())
    }
}

impl<A: Clone> Lately<A> {
    /// The answer about a text, which `find` finds if it is not kept.
    pub(super) fn get(
        &self,
        text: &str,
        find: impl FnOnce() -> Result<A, Abstention>,
    ) -> Result<A, Abstention> {
        let key = *blake3::hash(text.as_bytes()).as_bytes();
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().iter().rev().find(|(k, _)| *k == key).map(|(_, said)| said.clone());
        let said = known.unwrap_or_else(|| {
            let said = find().map_err(|why| why.to_string());
            let mut kept = kept();
            if kept.len() >= MAX_KEPT {
                kept.pop_front();
            }
            kept.push_back((key, said.clone()));
            said
        });
        said.map_err(Abstention::Undecided)
    }
}
