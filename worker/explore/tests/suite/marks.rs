//! What is marked of the executions of parts of a program decides as all of them do.

use moire_cat::{Model, Variants};
use moire_explore::judge::{About, Marks, Questions, Verdict, judge, judge_marked};
use moire_explore::search::share::{Piece, explore_piece};
use moire_explore::search::{Bound, LeafView};
use moire_explore::{Limits, Summary, explore};
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
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
            let questions = Questions { witnesses: true, about: About::All };
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
    let questions = Questions { witnesses: false, about: About::All };
    let judged =
        |loop_bound| judge(&program, &ptx, &Limits { loop_bound, ..Limits::default() }, questions).verdicts;
    let bounded = Verdict::Bounded(Bound::Loop.to_string());
    assert_eq!(judged(38), [bounded]);
    assert!(matches!(judged(39)[..], [Verdict::Clean(_)]));
}

/// An empty set of executions is never clean, counted here or by workers, and however little is asked.
#[test]
fn nothing_is_clean_without_an_execution() {
    let text = "moire \"x\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; }\nforall ([x] == 1)\n";
    let program = parse(text, Format::Native).expect("it parses");
    let none = "\"no execution\"\nempty IW as Nothing\n";
    let none = moire_cat::load("none", none, &moire_models::Shipped, &Variants::new()).expect("it loads");
    let ptx = moire_models::load("ptx", &Variants::new()).expect("loads");
    for about in [About::All, About::Conditions, About::Hangs] {
        let (questions, limits) = (Questions { witnesses: false, about }, Limits::default());
        let judged = judge(&program, &none, &limits, questions);
        assert_eq!((judged.summary.executions(), judged.is_clean()), (None, false));
        assert_eq!(judged.verdicts, [Verdict::Undefined]);
        let told = judge_marked(&program, &ptx, [], Ok(Summary::default()), questions, 2);
        assert!(!told.is_clean(), "{:?}", told.verdicts);
        assert!(judge(&program, &ptx, &limits, questions).is_clean());
    }
}

/// A race in the executions in which a flag is seen, and what a filter leaves in of them; also where it leaves in nothing.
#[test]
fn executions_outside_a_filter_do_not_count_and_none_left_in_is_no_answer() {
    let model = moire_models::load("ptx", &Variants::new()).expect("loads");
    let limits = Limits::default();
    let questions = Questions { witnesses: false, about: About::All };
    let words = |filter: &str| {
        let text = format!(
            "moire \"f\"\n.global .b32 x;\n.global .b32 f;\nP0 (gpu 0, cta 0) {{ st.weak.u32 [x], 1; st.relaxed.gpu.u32 [f], 1; }}\n\
             P1 (gpu 0, cta 1) {{\n  ld.relaxed.gpu.u32 r0, [f];\n  setp.ne.u32 p, r0, 1;\n  @p exit;\n  ld.weak.u32 r1, [x];\n}}\n{filter}\n"
        );
        let program = parse(&text, Format::Native).expect("it parses");
        let whole = judge(&program, &model, &limits, questions);
        let marks = in_parts(&program, &model, &limits);
        assert_eq!(judge_marked(&program, &model, marks, Ok(whole.summary), questions, 2), whole, "{filter}");
        whole.verdicts.iter().map(Verdict::word).collect::<Vec<_>>()
    };
    assert_eq!(words(""), ["race"]);
    assert_eq!(words("filter (P1:r0 == 1)"), ["race"]);
    assert_eq!(words("filter (P1:r0 == 0)"), ["clean"]);
    assert_eq!(words("filter (P1:r0 == 7)"), ["bounded"]);
}
