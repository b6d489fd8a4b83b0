//! The few executions that decide a judgement, by their paths: what those who explore parts of a program tell, and how one
//! who knows all of it judges.
//!
//! Contract: each thing a judgement keeps, it keeps of the first execution that shows it, in the order of the tree. So the
//! least path by which each thing is shown is a mark; marks of the parts together are, thing by thing, the least of the
//! parts; and judging the marked executions alone, in order, comes to what judging all of them comes to.

use super::{Judge, Judgement, Questions, reached};
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

#[cfg(test)]
mod tests {
    use super::super::{Verdict, judge};
    use super::*;
    use crate::search::share::{Piece, explore_piece};
    use moire_cat::Variants;
    use moire_program::text::{Format, parse};
    use std::path::Path;

    /// Three parts of the tree, each explored on its own, the last one first.
    fn in_parts(program: &Program, model: &Model, limits: &Limits) -> BTreeMap<String, Vec<u32>> {
        let mut paths: Vec<Vec<u32>> = Vec::new();
        let all = explore(program, model, &[], limits, &mut |leaf: &mut dyn LeafView| {
            paths.push(leaf.path().to_vec());
            ControlFlow::Continue(())
        });
        all.expect("it was judged");
        // Where there is nothing to cut, there is one part.
        let cuts = (1..3).filter_map(|n| paths.get(n * paths.len() / 3).cloned());
        let cuts: BTreeSet<Vec<u32>> = cuts.collect();
        let cuts: Vec<Vec<u32>> = if paths.len() < 3 { Vec::new() } else { cuts.into_iter().collect() };
        let (mut behind, mut until) = (vec![Vec::new()], cuts.clone());
        behind.extend(cuts);
        until.push(Vec::new());
        let mut merged: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (behind, until) in behind.into_iter().zip(until).rev() {
            let mut marks = Marks::new(program);
            let piece = Piece { behind, until };
            explore_piece(program, model, &piece, None, limits, &mut marks).expect("it was judged");
            for (name, path) in marks.paths {
                let least = merged.entry(name).or_insert_with(|| path.clone());
                if path < *least {
                    *least = path;
                }
            }
        }
        merged
    }

    #[test]
    fn what_is_marked_of_parts_decides_as_all_does() {
        let model = moire_models::load("ptx", &Variants::new()).expect("loads");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
        let (limits, mut judged, mut marked) = (Limits { leaves: 2_000, ..Limits::default() }, 0, 0);
        for family in ["mbarrier", "mp", "spin", "barriers", "rmw", "mixed"] {
            for entry in std::fs::read_dir(folder.join(family)).expect("the corpus is there") {
                let path = entry.expect("it lists").path();
                if path.extension().is_none_or(|e| e != "litmus") {
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("it reads");
                let program = parse(&text, Format::Native).expect("it parses");
                let questions = Questions { witnesses: true, about: crate::judge::About::All };
                let whole = judge(&program, &model, &limits, questions);
                if whole.verdicts.iter().any(|v| v.exit_code() == 11) || whole.summary.complete > 1_000 {
                    continue;
                }
                let marks = in_parts(&program, &model, &limits);
                judged += 1;
                marked += marks.len();
                let judged = |marks| {
                    judge_marked(&program, &model, marks, Ok(whole.summary), questions, limits.loop_bound)
                };
                assert_eq!(judged(marks.clone()), whole, "{}", path.display());
                // A name that the execution does not show, and a node that is no execution.
                for (name, mark) in marks.into_iter().filter(|(_, mark)| !mark.is_empty()) {
                    let inner = (name, mark[..mark.len().saturating_sub(1)].to_vec());
                    for lie in [("flag no-such".to_owned(), mark), inner] {
                        let verdicts = judged(BTreeMap::from([lie.clone()])).verdicts;
                        assert!(matches!(&verdicts[..], [Verdict::Abstained(_)]), "{lie:?}: {verdicts:?}");
                    }
                }
            }
        }
        assert!(judged > 30 && marked > 30, "{judged} programs, {marked} marks");
    }

    /// A loop that only stores has no answer to wait for: its bound is hit before there is a decision.
    #[test]
    fn a_loop_that_only_stores_hits_the_loop_bound() {
        let text = "moire \"x\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { mov.b32 r0, 0; L: st.weak.b32 [x], r0; \
                    add.u32 r0, r0, 1; setp.lt.u32 p, r0, 40; @p bra L; }\n";
        let program = parse(text, Format::Native).expect("it parses");
        let ptx = moire_models::load("ptx", &Variants::new()).expect("loads");
        let questions = Questions { witnesses: false, about: crate::judge::About::All };
        let judged = |loop_bound| {
            judge(&program, &ptx, &Limits { loop_bound, ..Limits::default() }, questions).verdicts
        };
        let bounded = crate::judge::Verdict::Bounded(crate::visit::Bound::Loop.to_string());
        assert_eq!(judged(38), [bounded]);
        assert!(matches!(judged(39)[..], [crate::judge::Verdict::Clean(_)]));
    }

    /// An empty set of executions is never clean, counted here or by workers, and however little is asked.
    #[test]
    fn nothing_is_clean_without_an_execution() {
        let text =
            "moire \"x\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; }\nforall ([x] == 1)\n";
        let program = parse(text, Format::Native).expect("it parses");
        let none = "\"no execution\"\nempty IW as Nothing\n";
        let none = moire_cat::load("none", none, &moire_models::Shipped, &Variants::new()).expect("it loads");
        let ptx = moire_models::load("ptx", &Variants::new()).expect("loads");
        for about in [crate::judge::About::All, crate::judge::About::Conditions, crate::judge::About::Hangs] {
            let (questions, limits) = (Questions { witnesses: false, about }, Limits::default());
            let judged = judge(&program, &none, &limits, questions);
            assert_eq!((judged.summary.executions(), judged.is_clean()), (None, false));
            assert_eq!(judged.verdicts, [crate::judge::Verdict::Undefined]);
            let told = judge_marked(&program, &ptx, [], Ok(Summary::default()), questions, 2);
            assert!(!told.is_clean(), "{:?}", told.verdicts);
            assert!(judge(&program, &ptx, &limits, questions).is_clean());
        }
    }
}
