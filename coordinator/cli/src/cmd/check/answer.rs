//! The answer of `moire check` for one file.

use super::notes::Notes;
use super::verdicts::undecided;
use anyhow::Error;
use moire_cat::Model;
use moire_console::input::{Rejected, Source};
use moire_explore::judge::{Judgement, Verdict};
use moire_explore::search::Sample;

/// The answer for one file.
pub(super) enum Answer<'m> {
    /// No program, or one that is statically illegal: every error.
    Rejected(Vec<Rejected>),
    /// Not read at all.
    Unread(String, Error),
    /// Explored; with the advice of the static rules.
    Judged {
        source: Box<Source>,
        model: &'m Model,
        advice: Vec<Rejected>,
        judgement: Box<Judgement>,
        contested: Vec<Contest>,
        notes: Box<Notes>,
        /// Of random descents.
        sample: Option<Sample>,
    },
}

/// A setting of one switch, and the verdicts it gives instead.
pub(super) struct Contest {
    pub(super) setting: String,
    pub(super) verdicts: Vec<String>,
}

impl<'m> Answer<'m> {
    /// A verdict that no engine was asked for.
    pub(super) fn unasked(source: Box<Source>, model: &'m Model, verdict: Verdict) -> Self {
        let judgement = undecided(verdict);
        Answer::Judged {
            source,
            model,
            advice: Vec::new(),
            judgement: Box::new(judgement),
            contested: Vec::new(),
            notes: Box::default(),
            sample: None,
        }
    }

    /// The answer for a file that is no program.
    pub(super) fn failed(file: &str, error: Error) -> Self {
        match error.downcast::<Rejected>() {
            Ok(rejected) => Answer::Rejected(vec![rejected]),
            Err(error) => Answer::Unread(file.to_owned(), error),
        }
    }
}
