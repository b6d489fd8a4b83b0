//! Facts about an oracle that are known before it runs.

use crate::job::Source;
use moire_generate::Profile;
use moire_source::text::is_source;
use moire_tile_ir::run::TileLaunch;
use std::fmt;

/// Facts about an oracle that are known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name in plans, claims and reports.
    pub name: &'static str,
    /// The items it takes.
    pub takes: Takes,
    /// Whether it runs for a plan that names no oracle.
    pub by_default: bool,
    /// Whether its rule is tried under the models that a claim names.
    pub under_models: bool,
    /// The outside tool it needs.
    pub tool: Option<Tool>,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A tool that not every worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The capability of a worker that has the tool. It also starts the names of sides of claims that are the tool, except
    /// where the tool is two others.
    pub capability: &'static str,
    /// How to install it.
    pub how: &'static str,
}

/// Kinds of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Litmus programs.
    Programs,
    /// Kernels of Tile IR.
    Kernels,
    /// Source programs.
    Sources,
}

impl Takes {
    /// The kind of an item with this source.
    pub(super) fn of(source: &Source) -> Self {
        match source {
            Source::Generated { profile, .. } => Self::of_profile(profile),
            Source::Text(text) if is_source(text) => Self::Sources,
            Source::Text(text) if TileLaunch::noted(text).is_some() => Self::Kernels,
            Source::Text(_) => Self::Programs,
        }
    }

    /// The kind of the items of a stream.
    pub fn of_profile(profile: &str) -> Self {
        if profile == Profile::TileIr.name() {
            Self::Kernels
        } else if profile == Profile::Source.name() {
            Self::Sources
        } else {
            Self::Programs
        }
    }
}
