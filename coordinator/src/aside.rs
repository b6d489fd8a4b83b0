//! Records that this coordinator cannot use or store. They are set aside: said once, listed for operators, and everything
//! else is served.

use std::collections::BTreeMap;
use std::fmt::Display;

/// Most of them that are listed; the others are counted.
const LISTED_MAX: usize = 1_000;

/// What is set aside since this process started.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    listed: BTreeMap<String, String>,
    count: u64,
}

impl Aside {
    /// Notes that something is set aside, and why.
    pub(crate) fn note(&mut self, what: &str, why: &dyn Display) {
        tracing::error!(what, %why, "set aside; `moire store fsck` says more");
        self.count += 1;
        if self.listed.len() < LISTED_MAX || self.listed.contains_key(what) {
            self.listed.insert(what.to_owned(), why.to_string());
        }
    }
    /// Why this is set aside, if it is.
    pub(crate) fn why(&self, what: &str) -> Option<&str> {
        self.listed.get(what).map(String::as_str)
    }
    /// The listed ones, with their reasons.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, &str)> {
        self.listed.iter().map(|(what, why)| (what.as_str(), why.as_str()))
    }
    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// The words for a campaign that is set aside.
pub(crate) fn campaign(name: &str) -> String {
    format!("campaign {name}")
}
