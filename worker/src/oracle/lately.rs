//! Answers found lately, by the text that they are about.
//!
//! Contract: an answer depends on its text alone, so it makes no difference which thread found it, or whether it was still
//! kept. What could not be answered is asked again.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Most answers kept.
const MAX_KEPT: usize = 256;

/// The latest answers, oldest first.
#[derive(Debug)]
pub(super) struct Lately<A>(Mutex<VecDeque<([u8; 32], A)>>);

impl<A> Default for Lately<A> {
    fn default() -> Self {
        Lately(Mutex::default())
    }
}

impl<A: Clone> Lately<A> {
    /// The answer about a text, which `find` finds if it is not kept.
    pub(super) fn get<E>(&self, text: &str, find: impl FnOnce() -> Result<A, E>) -> Result<A, E> {
        let key = *blake3::hash(text.as_bytes()).as_bytes();
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = kept().iter().rev().find(|(k, _)| *k == key) {
            return Ok(answer.clone());
        }
        let answer = find()?;
        let mut kept = kept();
        if kept.len() >= MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back((key, answer.clone()));
        Ok(answer)
    }
}
