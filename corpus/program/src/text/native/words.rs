//! The qualifiers of an instruction, in any order: each is taken once, and none may remain.

use super::qualifiers::scope_of;
use super::reader::Reader;
use crate::ir::{CtaGroup, Scope, Space};
use crate::text::scan::{Parsed, closest};

/// The qualifiers that are not yet taken.
pub(super) struct Words<'w> {
    /// Name of the instruction, for messages.
    name: String,
    left: Vec<&'w str>,
    /// The qualifiers looked up so far, all of which the instruction may have.
    asked: Vec<&'static str>,
}

impl<'w> Words<'w> {
    pub(super) fn new(name: &str, words: &[&'w str]) -> Self {
        Words { name: name.to_owned(), left: words.to_vec(), asked: Vec::new() }
    }

    /// Takes the word if it is there. Returns whether it was.
    pub(super) fn take(&mut self, word: &'static str) -> bool {
        self.asked.push(word);
        let at = self.left.iter().position(|w| *w == word);
        at.map(|at| self.left.remove(at)).is_some()
    }

    /// Whether the word is there. Does not take it.
    pub(super) fn has(&mut self, word: &'static str) -> bool {
        self.asked.push(word);
        self.left.contains(&word)
    }

    /// Takes the first word of the table that is there. Returns its value.
    pub(super) fn pick<T: Copy>(&mut self, table: &[(&'static str, T)]) -> Option<T> {
        table.iter().find(|(word, _)| self.take(word)).map(|(_, value)| *value)
    }

    /// Takes the first word for which `read` returns a value. Returns the value.
    pub(super) fn find<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let at = self.left.iter().position(|w| read(w).is_some())?;
        read(self.left.remove(at))
    }

    /// Takes a state space.
    pub(super) fn space(&mut self) -> Option<Space> {
        self.pick(&[
            ("shared::cta", Space::SharedCta),
            ("shared::cluster", Space::SharedCluster),
            ("shared", Space::SharedCta),
            ("global", Space::Global),
        ])
    }

    /// Takes a scope.
    pub(super) fn scope(&mut self) -> Option<Scope> {
        self.asked.extend(["cta", "cluster", "gpu", "sys"]);
        self.find(scope_of)
    }

    /// Takes `.cta_group::1` or `.cta_group::2`.
    pub(super) fn group(&mut self) -> Option<CtaGroup> {
        self.pick(&[("cta_group::1", CtaGroup::One), ("cta_group::2", CtaGroup::Two)])
    }

    /// Takes `.multicast::cluster`. Returns whether its mask has 32 bits.
    pub(super) fn multicast(&mut self) -> Option<bool> {
        self.pick(&[
            ("multicast::cluster", false),
            ("multicast::cluster::16b", false),
            ("multicast::cluster::32b", true),
        ])
    }

    /// Name of the instruction.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Reader<'_, '_> {
    /// Takes words that the instruction must have.
    pub(super) fn need(&self, words: &mut Words<'_>, needed: &[&'static str]) -> Parsed<()> {
        match needed.iter().find(|n| !words.take(n)) {
            None => Ok(()),
            Some(word) => self.fail(format!("{} needs .{word}", words.name), None),
        }
    }

    /// Takes the `.cta_group` that the instruction must have.
    pub(super) fn group(&self, words: &mut Words<'_>) -> Parsed<CtaGroup> {
        match words.group() {
            Some(group) => Ok(group),
            None => {
                let hint = "add .cta_group::1, or .cta_group::2 for a pair of CTAs".to_owned();
                self.fail(format!("{} needs .cta_group", words.name), Some(hint))
            }
        }
    }

    /// Refuses words that remain.
    pub(super) fn done(&self, words: &Words<'_>) -> Parsed<()> {
        let Some(word) = words.left.first() else { return Ok(()) };
        if words.asked.contains(word) {
            return self.fail(format!("`.{word}` occurs twice"), None);
        }
        let hint = closest(word, &words.asked).map(|k| format!("did you mean `.{k}`?"));
        self.fail(format!("`.{word}` is not a qualifier of {}", words.name), hint)
    }
}
