//! Messages about explorations to records and back, looked at before anything of them is believed.
//!
//! Contract: what is no exploration, or no step of one, is refused; nothing here outgrows a record of the store or a
//! commit.

use crate::v1;
use moire_corpus::{Exploration, Explored, Hash, Stretch, VALUE_BYTES_MAX};
use moire_proto::{NODE_MAX, NODES_MAX};
use std::collections::BTreeMap;

/// Things one exploration marks.
pub(super) const MARKS_MAX: usize = 1024;
/// Longest name, of a thing, a model, a switch, a file or a capability.
const NAME_BYTES_MAX: usize = 500;
/// Longest reason.
const REASON_BYTES_MAX: usize = 1000;
/// Room left in the record of an exploration for its punctuation.
const MARGIN: usize = 1024;

/// One step of an explore lease.
#[derive(Debug)]
pub(super) enum Step {
    /// The piece begins behind this node now.
    Reached(Vec<u32>),
    /// It ends with this node now.
    Given(Vec<u32>),
    /// Nothing is left of it.
    Over,
    /// No engine models this: what, and the line.
    Unsupported(String, u32),
}

fn short(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX
}

fn cut(mut text: String) -> String {
    let end = (0..=REASON_BYTES_MAX.min(text.len())).rfind(|i| text.is_char_boundary(*i)).unwrap_or(0);
    text.truncate(end);
    text
}

/// An exploration that a client asks for.
pub(super) fn exploration(asked: v1::Exploration) -> Result<Exploration, String> {
    let names = asked.switches.iter().flat_map(|(k, v)| [k, v]).chain(asked.files.keys());
    if !short(&asked.model) || !short(&asked.tree) || !names.into_iter().all(|n| short(n)) {
        return Err("a model, a switch, a file and a capability have names of at most 500 bytes".to_owned());
    }
    if asked.tree.is_empty() || asked.program.is_empty() {
        return Err("an exploration has a program and names its tree of decisions".to_owned());
    }
    let fingerprint = asked.fingerprint.try_into().map(Hash).map_err(|_| "a fingerprint has 32 bytes")?;
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
    let size = serde_json::to_vec(&out).map_or(usize::MAX, |v| v.len());
    match size + MARGIN <= VALUE_BYTES_MAX {
        true => Ok(out),
        false => Err(format!("program and model together have at most {} KiB", VALUE_BYTES_MAX >> 10)),
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

/// Reads a report on an explore lease: its step, its numbers, and how many bytes it takes, about.
pub(super) fn step(report: v1::Report) -> Result<(Step, v1::Explored, usize), &'static str> {
    use v1::explore_step::Step as Said;
    if !report.items.is_empty() || report.verify.is_some() || report.minimise.is_some() {
        return Err("an explore lease is answered with steps");
    }
    let said = report.explore.ok_or("an explore lease is answered with steps")?;
    let mut explored = said.explored.unwrap_or_default();
    explored.bounded = cut(explored.bounded);
    let step = match (said.step, report.done) {
        (Some(Said::Reached(node)), false) => Step::Reached(node.path),
        (Some(Said::Given(node)), false) => Step::Given(node.path),
        (Some(Said::Unsupported(why)), _) => Step::Unsupported(cut(why.reason), why.line),
        (None, true) => Step::Over,
        _ => return Err("a step of an exploration is one of its kinds, and the last one is none"),
    };
    let own = match &step {
        Step::Reached(path) | Step::Given(path) => path.len(),
        Step::Over | Step::Unsupported(..) => 0,
    };
    let marks = explored.marks.iter();
    let all = marks.clone().map(|(_, node)| node.path.len()).fold(own, usize::saturating_add);
    let fits = explored.marks.len() <= MARKS_MAX
        && all <= NODES_MAX
        && own <= NODE_MAX
        && marks.into_iter().all(|(name, node)| short(name) && node.path.len() <= NODE_MAX);
    // A decision takes at most five bytes, or ten as text.
    match fits {
        true => Ok((step, explored, 10 * all)),
        false => Err("a step has at most 1024 marks, and a node at most 2048 decisions"),
    }
}
