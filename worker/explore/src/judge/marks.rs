//! The few executions that decide a judgement, by their paths: what those who explore parts of a program tell, and how one
//! who knows all of it judges.
//!
//! Contract: each thing a judgement keeps, it keeps of the first execution that shows it, in the order of the tree. So the
//! least path by which each thing is shown is a mark; marks of the parts together are, thing by thing, the least of the
//! parts; and judging the marked executions alone, in order, comes to what judging all of them comes to.

use super::{Judge, Judgement, Questions, is_left_out, reached};
use crate::search::{Abstain, LeafView, Limits, Summary, Visitor, explore};
use moire_cat::Model;
use moire_execution::leaf::LeafKind;
use moire_program::ir::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Things kept; beyond it those with the greatest names are left out, which are places: conditions, flags and hangs are
/// far fewer.
pub const MARKS_MAX: usize = 1024;

/// Adds up the numbers of executions, and marks those that decide.
pub struct Marks<'a> {
    program: &'a Program,
    /// Sum of the numbers of the executions seen; wraps.
    pub digest: u64,
    /// Path of the first execution seen of each thing, by its name.
    pub paths: BTreeMap<String, Vec<u32>>,
}

impl<'a> Marks<'a> {
    /// Nothing seen yet.
    pub fn new(program: &'a Program) -> Self {
        Marks { program, digest: 0, paths: BTreeMap::new() }
    }

    fn note(&mut self, name: String, leaf: &dyn LeafView) {
        // Executions come in the order of the tree: the first one stays.
        self.paths.entry(name).or_insert_with(|| leaf.path().to_vec());
        if self.paths.len() > MARKS_MAX {
            self.paths.pop_last();
        }
    }
}

impl Visitor for Marks<'_> {
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        self.digest = self.digest.wrapping_add(leaf.digest());
        if is_left_out(self.program, leaf) {
            return ControlFlow::Continue(());
        }
        if self.program.filter.is_some() {
            self.note("a filter".to_owned(), leaf);
        }
        if leaf.kind() == LeafKind::Blocked {
            self.note("blocked".to_owned(), leaf);
        } else {
            let name = |i: usize| format!("a condition {i}");
            let open = |i: usize| !self.paths.contains_key(&name(i));
            let decided = match (0..self.program.conditions.len()).any(open) {
                true => reached(self.program, leaf, open),
                false => BTreeSet::new(),
            };
            decided.into_iter().for_each(|i| self.note(name(i), leaf));
        }
        if !leaf.flags().is_empty() {
            for flag in leaf.flags().clone() {
                self.note(format!("flag {flag}"), leaf);
            }
            for finding in leaf.findings() {
                let places = finding.places.iter().map(|p| format!(" {}:{}", p.thread, p.line));
                self.note(format!("place {}{}", finding.flag, places.collect::<String>()), leaf);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Why there is no judgement: a marked execution is none, or does not show what its name says.
const FALSE_MARK: &str = "an execution was marked that does not show what it is marked for";

/// What [`super::judge`] says of a program, from what is marked of its executions (names and paths) and the totals of all of
/// them. It abstains if a marked execution does not show what its name says: another one that does may then be missing.
pub fn judge_marked(
    program: &Program,
    model: &Model,
    marked: impl IntoIterator<Item = (String, Vec<u32>)>,
    explored: Result<Summary, Abstain>,
    questions: Questions,
    loop_bound: u32,
) -> Judgement {
    let limits = Limits { loop_bound, ..Limits::default() };
    let mut judge = Judge::new(program, questions);
    let mut paths: BTreeMap<Vec<u32>, BTreeSet<String>> = BTreeMap::new();
    for (name, path) in marked {
        paths.entry(path).or_default().insert(name);
    }
    for (path, names) in paths {
        let mut shown = Marks::new(program);
        let visited = explore(program, model, &path, &limits, &mut |leaf: &mut dyn LeafView| {
            let _ = judge.leaf(leaf);
            let _ = shown.leaf(leaf);
            ControlFlow::Break(())
        });
        if let Err(abstain) = visited {
            return judge.end(Err(abstain));
        }
        if !names.iter().all(|name| shown.paths.get(name) == Some(&path)) {
            return judge.end(Err(Abstain { reason: FALSE_MARK.to_owned(), line: 0 }));
        }
    }
    judge.end(explored)
}
