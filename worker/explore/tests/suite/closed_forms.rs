//! Closed forms: the explorer finds exactly as many executions of each family as its formula says.

use moire_cat::Variants;
use moire_execution::leaf::LeafKey;
use moire_explore::search::LeafView;
use moire_explore::search::share::{Piece, explore_piece, explore_shared, is_empty};
use moire_explore::{Limits, Summary, Visitor, explore};
use moire_generate::families::{FAMILIES, Family, named};
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

fn program(text: &str) -> Program {
    parse(text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn count(program: &Program, model: &str) -> Summary {
    let model = moire_models::load(model, &Variants::new()).expect("loads");
    let mut keys: BTreeSet<LeafKey> = BTreeSet::new();
    let summary = explore(program, &model, &[], &Limits::default(), &mut |leaf: &mut dyn LeafView| {
        assert!(keys.insert(leaf.facts().key), "an execution was visited twice");
        ControlFlow::Continue(())
    });
    summary.expect("supported")
}

fn family(name: &str) -> &'static Family {
    named(name).unwrap_or_else(|| panic!("no family {name}"))
}

#[test]
fn every_family_has_its_number_of_executions() {
    for family in FAMILIES {
        for n in family.least..=family.quick {
            let summary = count(&program(&family.text(n)), "ptx");
            let (name, expected) = (family.name, family.executions(n));
            assert_eq!(
                (summary.complete, summary.blocked, summary.bounded),
                (expected, 0, None),
                "{name}({n})"
            );
        }
    }
}

/// The formulas give the published numbers, at the sizes for which tools were compared.
#[test]
fn formulas_give_the_published_numbers() {
    let published = [
        ("sb", 14, 16_384),
        ("lb", 14, 16_384),
        ("nw1r", 8, 362_880),
        ("readers", 14, 16_384),
        ("ainc", 8, 40_320),
        ("casrot", 8, 2_048),
        ("lastzero", 12, 15_360),
        ("lastzero", 14, 69_632),
        ("iriw", 3, 4_096),
        ("iriw", 4, 65_536),
        ("mp", 12, 13),
        ("ttas", 4, 576),
        ("ticket", 6, 720),
        ("seqlock", 3, 27),
        ("mpmc", 6, 36),
        ("barrier", 10, 1),
    ];
    for (name, n, expected) in published {
        assert_eq!(family(name).executions(n), expected, "{name}({n})");
    }
}

/// Counts executions and adds up their digests.
#[derive(Default)]
struct Tally {
    leaves: u64,
    sum: u64,
}

impl Visitor for Tally {
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        self.leaves += 1;
        self.sum = self.sum.wrapping_add(leaf.digest());
        ControlFlow::Continue(())
    }
}

#[test]
fn several_threads_visit_the_leaves_of_one_thread() {
    let model = moire_models::load("ptx", &Variants::new()).expect("loads");
    for (name, n) in
        [("lb", 9), ("ainc", 5), ("sb", 8), ("lastzero", 6), ("ttas", 3), ("mpmc", 4), ("barrier", 5)]
    {
        let program = program(&family(name).text(n));
        let mut one = Tally::default();
        let alone = explore(&program, &model, &[], &Limits::default(), &mut one).expect("supported");
        for threads in [1, 2, 3] {
            let mut visitors: Vec<Tally> = (0..threads).map(|_| Tally::default()).collect();
            let (all, _) =
                explore_shared(&program, &model, &Limits::default(), &mut visitors).expect("supported");
            let leaves: u64 = visitors.iter().map(|v| v.leaves).sum();
            let sum = visitors.iter().fold(0, |all: u64, v| all.wrapping_add(v.sum));
            assert_eq!(
                (all.complete, leaves, sum),
                (alone.complete, one.leaves, one.sum),
                "{name}({n}), {threads}"
            );
        }
    }
}

/// Every leaf splits the tree in two: the leaves up to it, and the piece behind it.
#[test]
fn a_piece_holds_the_leaves_left() {
    let model = moire_models::load("ptx", &Variants::new()).expect("loads");
    let program = program(&family("lb").text(5));
    let mut paths: Vec<Vec<u32>> = Vec::new();
    let all = explore(&program, &model, &[], &Limits::default(), &mut |leaf: &mut dyn LeafView| {
        paths.push(leaf.path().to_vec());
        ControlFlow::Continue(())
    });
    assert_eq!(all.expect("supported").complete, paths.len() as u64);
    for (seen, path) in paths.iter().enumerate() {
        let limits = Limits::default();
        let visited = |behind: &[u32], until: &[u32]| {
            let piece = Piece { behind: behind.to_vec(), until: until.to_vec() };
            let mut tally = Tally::default();
            explore_piece(&program, &model, &piece, None, &limits, &mut tally).expect("supported");
            assert!(tally.leaves == 0 || !is_empty(&program, &model, &piece, &limits).expect("supported"));
            tally.leaves
        };
        let rest = visited(path, &[]);
        assert_eq!(visited(&[], path), seen as u64 + 1, "up to {path:?}");
        // For each node above the leaf: pieces that end at the node, begin at it, or are all below it.
        for depth in 1..path.len() {
            let node = &path[..depth];
            let under = paths.iter().filter(|p| p.starts_with(node)).count() as u64;
            let left = paths[seen + 1..].iter().filter(|p| p.starts_with(node)).count() as u64;
            assert_eq!(visited(path, node), left, "{path:?} to {node:?}");
            assert_eq!(visited(node, &[]) + left + seen as u64 + 1, paths.len() as u64);
            let all = Piece::of(node);
            assert_eq!(visited(&all.behind, &all.until), under, "{node:?}");
        }
        assert_eq!(seen as u64 + 1 + rest, paths.len() as u64, "{path:?}");
    }
}

#[test]
fn the_rings_lose_one_execution_to_sequential_consistency() {
    for name in ["sb", "lb"] {
        for n in 2..=8 {
            assert_eq!(count(&program(&family(name).text(n)), "sc").complete, (1 << n) - 1, "{name}({n})");
        }
    }
}

#[test]
fn a_spin_without_a_writer_hangs() {
    let text = "moire \"stuck\"\n.global .b32 x;\n\
                P0 (gpu 0, cta 0) { L: ld.relaxed.gpu.u32 r, [x]; setp.eq.u32 p, r, 0; @p bra L; }\n";
    let summary = count(&program(text), "ptx");
    assert_eq!((summary.complete, summary.blocked), (0, 1));
}

/// If a thread hits the bound of a loop and then a bound of the whole exploration, the other thread still ends.
#[test]
fn a_loop_bound_and_a_bound_on_leaves_end_all_threads() {
    let count = |n: u32| {
        format!(
            "P{n} (gpu 0, cta {n}) {{ L0: atom.add.relaxed.gpu.u32 r0, [x], 1; setp.lt.u32 p, r0, 40; @p bra L0; }}\n"
        )
    };
    let program = program(&format!("moire \"long\"\n.global .b32 x;\n{}{}", count(0), count(1)));
    let model = moire_models::load("ptx", &Variants::new()).expect("loads");
    for leaves in 1..6 {
        let limits = Limits { leaves, ..Limits::default() };
        let mut visitors = [(); 2].map(|()| |_: &mut dyn LeafView| ControlFlow::Continue(()));
        let (all, _) = explore_shared(&program, &model, &limits, &mut visitors).expect("supported");
        assert!(all.bounded.is_some());
    }
}

#[test]
fn a_barrier_in_a_loop_with_a_high_bound_has_few_phases() {
    let text = "moire \"loop\"\n.global .b32 x;\n\
                P0 (gpu 0, cta 0, warp 0) { mov.u32 i, 0; L: bar.sync 0, 1; add.u32 i, i, 1; \
                setp.ne.u32 p, i, 2; @p bra L; }\n\
                P1 (gpu 0, cta 0, warp 1) { st.weak.u32 [x], 1; }\n";
    let model = moire_models::load("ptx", &Variants::new()).expect("it loads");
    let limits = Limits { loop_bound: 4_000_000, ..Limits::default() };
    let mut visitor = |_: &mut dyn LeafView| ControlFlow::Continue(());
    let summary = explore(&program(text), &model, &[], &limits, &mut visitor).expect("it is modelled");
    assert_eq!((summary.complete, summary.blocked, summary.bounded), (1, 0, None));
}

/// No address names anything where there is no memory.
#[test]
fn an_address_without_memory_is_abstained_from() {
    let model = moire_models::load("ptx", &Variants::new()).expect("it loads");
    for address in [0, 1u64 << 33, u64::MAX] {
        let text = format!(
            "moire \"none\"\nP0 (gpu 0, cta 0) {{ mov.b64 r, {address}; ld.relaxed.gpu.u32 v, [r]; }}\n"
        );
        let mut visitor = |_: &mut dyn LeafView| ControlFlow::Continue(());
        let found = explore(&program(&text), &model, &[], &Limits::default(), &mut visitor);
        assert!(found.is_err_and(|abstain| abstain.reason.contains("outside every object")), "{address}");
    }
}

/// Rings of copies, their consumers, pipelines and handshakes take few checks a step, and no dead end.
#[test]
fn rings_and_handshakes_do_not_explode() {
    for (name, size, checks) in
        [("handshake", 8, 2), ("ring", 32, 1_100), ("consumers", 16, 200), ("pipeline", 8, 200)]
    {
        let summary = count(&program(&family(name).text(size)), "ptx");
        assert_eq!((summary.complete, summary.dead_ends), (1, 0), "{name}");
        assert!(summary.checks <= checks, "{name}: {} checks", summary.checks);
    }
}

/// A search is as deep as the execution has events, whatever stack the caller has.
#[test]
fn a_long_execution_needs_no_long_stack() {
    let stores = "  st.relaxed.gpu.u32 [x], 1;\n  ld.relaxed.gpu.u32 r, [x];\n".repeat(300);
    let text = format!("moire \"long\"\n.global .b32 x;\nP0 (gpu 0, cta 0) {{\n{stores}}}\n");
    let explored =
        std::thread::Builder::new().stack_size(192 << 10).spawn(move || count(&program(&text), "ptx"));
    assert_eq!(explored.expect("a thread").join().expect("no overflow").complete, 1);
}
