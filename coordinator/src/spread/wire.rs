//! Converts messages about explorations to records and back, and checks them.
//!
//! Contract: a message that is no exploration, or no step of one, is refused. What is accepted fits a record of the store
//! and a commit.

use crate::v1;
use moire_corpus::{Exploration, Explored, Hash, MARK_BYTES_MAX, Stretch, VALUE_BYTES_MAX};
use moire_proto::{NODE_MAX, NODES_MAX};
use std::collections::BTreeMap;

/// Most marks of one exploration.
pub(super) const MARKS_MAX: usize = 1024;
/// Longest name of a model, a switch, a file or a capability, in bytes.
const NAME_BYTES_MAX: usize = 500;
/// Longest reason, in bytes.
const REASON_BYTES_MAX: usize = 1000;
/// Bytes kept free in the record of an exploration.
const MARGIN: usize = 1024;

/// One step of an explore lease.
#[derive(Debug)]
pub(super) enum PieceStep {
    /// The piece begins behind this node from now on.
    Reached(Vec<u32>),
    /// The piece ends with this node from now on.
    Given(Vec<u32>),
    /// Nothing is left of the piece.
    Over,
    /// The program has something that no engine models.
    Unsupported {
        /// What, and why.
        reason: String,
        /// The line of the program.
        line: u32,
    },
}

fn short(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX
}

fn cut(mut text: String) -> String {
    let end = (0..=REASON_BYTES_MAX.min(text.len())).rfind(|i| text.is_char_boundary(*i)).unwrap_or(0);
    text.truncate(end);
    text
}

/// The reason why a request for an exploration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExplorationError {
    #[error("a model, a switch, a file and a capability have names of at most {NAME_BYTES_MAX} bytes")]
    Names,
    #[error("an exploration has a program and names its tree of decisions")]
    Incomplete,
    #[error("a fingerprint has 32 bytes")]
    Fingerprint,
    #[error("program and model together have at most {} KiB", VALUE_BYTES_MAX >> 10)]
    TooLarge,
}

/// Reads the request for an exploration.
pub(super) fn exploration(asked: v1::Exploration) -> Result<Exploration, ExplorationError> {
    let names = asked.switches.iter().flat_map(|(k, v)| [k, v]).chain(asked.files.keys());
    if !short(&asked.model) || !short(&asked.tree) || !names.into_iter().all(|n| short(n)) {
        return Err(ExplorationError::Names);
    }
    if asked.tree.is_empty() || asked.program.is_empty() {
        return Err(ExplorationError::Incomplete);
    }
    let fingerprint = asked.fingerprint.try_into().map(Hash).map_err(|_| ExplorationError::Fingerprint)?;
    let out = Exploration {
        program: asked.program,
        model: asked.model,
        switches: asked.switches,
        files: asked.files,
        fingerprint,
        tree: asked.tree,
        loop_bound: asked.loop_bound,
        executions: asked.executions,
    };
    match serde_json::to_vec(&out).is_ok_and(|record| record.len() + MARGIN <= VALUE_BYTES_MAX) {
        true => Ok(out),
        false => Err(ExplorationError::TooLarge),
    }
}

/// The message of an exploration, for workers.
pub(super) fn message(exploration: &Exploration) -> v1::Exploration {
    let e = exploration.clone();
    v1::Exploration {
        program: e.program,
        model: e.model,
        switches: e.switches,
        files: e.files,
        fingerprint: e.fingerprint.0.to_vec(),
        tree: e.tree,
        loop_bound: e.loop_bound,
        executions: e.executions,
    }
}

/// The message of a piece.
pub(super) fn piece(stretch: &Stretch) -> v1::Piece {
    v1::Piece { behind: stretch.behind.clone(), until: stretch.until.clone() }
}

/// The message of totals, and of marks.
pub(super) fn explored(totals: &Explored, marks: &BTreeMap<String, Vec<u32>>) -> v1::Explored {
    let node = |path: &Vec<u32>| v1::Node { path: path.clone() };
    v1::Explored {
        complete: totals.complete,
        blocked: totals.blocked,
        dead_ends: totals.dead_ends,
        checks: totals.checks,
        digest: totals.digest,
        bounded: totals.bounded.as_ref().map(|b| b.1.clone()).unwrap_or_default(),
        marks: marks.iter().map(|(name, path)| (name.clone(), node(path))).collect(),
    }
}

/// Reads a report on an explore lease: its step, its numbers, and its approximate size in bytes.
pub(super) fn step(report: v1::Report) -> Result<(PieceStep, v1::Explored, usize), &'static str> {
    use v1::explore_step::Step as Said;
    if !report.items.is_empty() || report.verify.is_some() || report.minimise.is_some() {
        return Err("an explore lease is answered with steps");
    }
    let said = report.explore.ok_or("an explore lease is answered with steps")?;
    let mut explored = said.explored.unwrap_or_default();
    explored.bounded = cut(explored.bounded);
    let step = match (said.step, report.done) {
        (Some(Said::Reached(node)), false) => PieceStep::Reached(node.path),
        (Some(Said::Given(node)), false) => PieceStep::Given(node.path),
        (Some(Said::Unsupported(why)), _) => {
            PieceStep::Unsupported { reason: cut(why.reason), line: why.line }
        }
        (None, true) => PieceStep::Over,
        _ => return Err("a report on a piece has one step, except the last one, which has none"),
    };
    let own = match &step {
        PieceStep::Reached(path) | PieceStep::Given(path) => path.len(),
        PieceStep::Over | PieceStep::Unsupported { .. } => 0,
    };
    let marks = explored.marks.iter();
    let all = marks.clone().map(|(_, node)| node.path.len()).fold(own, usize::saturating_add);
    let fits = explored.marks.len() <= MARKS_MAX
        && all <= NODES_MAX
        && own <= NODE_MAX
        && marks.into_iter().all(|(name, node)| name.len() <= MARK_BYTES_MAX && node.path.len() <= NODE_MAX);
    // A decision takes at most five bytes, or ten as text.
    match fits {
        true => Ok((step, explored, 10 * all)),
        false => Err("a step has at most 1024 marks, and a node at most 2048 decisions"),
    }
}
