//! PTX modules: reading them, and what the static rules reject.

use moire_kernel::Refusal;
use moire_kernel::ptx::parse;
use moire_kernel::specialise::{
    Apart, Class, Cover, Coverage, Free, Goal, Goals, Launch, Met, entry, lower, lower_apart, sweep,
};
use moire_program::text::{self, Format, print};
use std::path::Path;

/// The modules of a folder outside this repository.
fn modules(folder: &str) -> Vec<(String, String)> {
    inside(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder))
}

/// The modules of this repository.
fn ours() -> Vec<(String, String)> {
    inside(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../ptx"))
}

fn inside(folder: &Path) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        eprintln!("skipped: no modules at {}", folder.display());
        return Vec::new();
    };
    let mut out: Vec<(String, String)> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "ptx"))
        .map(|p| {
            let text = std::fs::read_to_string(&p).expect("a module is text");
            (p.file_stem().unwrap_or_default().to_string_lossy().into_owned(), text)
        })
        .collect();
    out.sort();
    out
}

/// The first error in a module.
fn rejection(text: &str) -> Option<String> {
    match parse(text) {
        Err(e) => Some(e.to_string()),
        Ok(module) => module.kernels.iter().flat_map(|k| k.rejected(&module)).next().map(|d| d.to_string()),
    }
}

#[test]
fn our_modules_read() {
    let all = ours();
    assert!(all.len() > 6, "they are there");
    for (name, text) in all {
        assert_eq!(rejection(&text), None, "{name}");
    }
}

#[test]
fn modules_that_the_assembler_accepts_are_accepted() {
    let mut wrong = Vec::new();
    for folder in ["spec/examples-ptx/ok", "spec/examples-ptx/hazard", "kernels"] {
        wrong.extend(
            modules(folder)
                .into_iter()
                .filter_map(|(name, text)| rejection(&text).map(|why| format!("{folder}/{name}:{why}"))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_that_the_assembler_rejects_are_rejected() {
    for (name, text) in modules("spec/examples-ptx/rejected") {
        assert!(rejection(&text).is_some(), "{name}");
    }
}

/// Kernels that can be lowered, with the parameters of the smallest interesting launch.
const LOWERED: &[(&str, &[(u16, u64)])] = &[
    ("cuda-copy-chain", &[(2, 3)]),
    ("gluon-mma-pipelined", &[(15, 192)]),
    ("gluon-tmem-ldst", &[]),
    ("gluon-ws-persistent", &[(15, 128), (16, 128), (17, 192)]),
    ("triton-mm-ws", &[(15, 128), (16, 128), (17, 192)]),
];

#[test]
fn kernels_become_programs() {
    for (name, text) in modules("kernels") {
        let Some((_, params)) = LOWERED.iter().find(|l| name.starts_with(l.0)) else { continue };
        let module = parse(&text).expect("it reads");
        let kernel = entry(&module, None).expect("one kernel");
        let launch = Launch::of(kernel, None, None, None, params.iter().copied().collect());
        let lowered =
            lower(kernel, &launch.expect("the launch fits")).unwrap_or_else(|e| panic!("{name}: {e}"));
        let program = lowered.program;
        assert!(program.threads.iter().all(|t| t.body.len() < 200), "{name}: arithmetic is sliced away");
        // The printed program reads back.
        let text = print(&program);
        let again = text::parse(&text, Format::Native).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        assert_eq!(print(&again), text, "{name}");
    }
}

#[test]
fn the_launch_must_fit() {
    let Some((_, text)) = ours().into_iter().find(|m| m.0 == "ring") else { panic!("the module is there") };
    let module = parse(&text).expect("it reads");
    let kernel = &module.kernels[0];
    let of = |grid, block, cluster, params: &[(u16, u64)]| {
        Launch::of(kernel, grid, block, cluster, params.iter().copied().collect())
    };
    assert!(of(None, None, None, &[(0, 1)]).is_ok());
    let refused = [
        of(None, Some([32, 1, 1]), None, &[]),
        of(Some([3, 1, 1]), None, Some([2, 1, 1]), &[]),
        of(Some([1_000_000, 1_000_000, 1_000_000]), None, None, &[]),
        of(None, None, None, &[(1, 1)]),
        of(Some([0, 1, 1]), None, None, &[]),
    ];
    assert!(refused.iter().all(|r| matches!(r, Err(Refusal::Launch(_)))), "{refused:?}");
    let launch = of(None, None, None, &[]).expect("a launch");
    let why = lower(kernel, &launch).expect_err("the number of rounds is not known").to_string();
    assert!(why.contains("--param 0=VALUE"), "{why}");
}

/// A random number generator without a dependency.
struct Draw(u64);

impl Draw {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % below.max(1)
    }
}

fn survive(text: &str) {
    let Ok(module) = parse(text) else { return };
    for kernel in &module.kernels {
        let _ = kernel.rejected(&module);
        let params = (0..u16::try_from(kernel.params.len()).expect("few")).map(|n| (n, 2)).collect();
        if let Ok(launch) = Launch::of(kernel, None, None, None, params) {
            let _ = lower(kernel, &launch);
        }
    }
}

#[test]
fn damaged_modules_are_survived() {
    let mut draw = Draw(7);
    for (_, text) in ours() {
        for _ in 0..400 {
            let mut bytes = text.clone().into_bytes();
            match draw.next(4) {
                0 => bytes.truncate(draw.next(bytes.len())),
                1 => {
                    let at = draw.next(bytes.len());
                    bytes[at] ^= 1 << draw.next(7);
                }
                2 => {
                    let (at, length) = (draw.next(bytes.len()), draw.next(40));
                    let end = (at + length).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    // A copied line elsewhere gives endless loops, and misplaced labels and registers.
                    let lines: Vec<&str> = text.lines().collect();
                    let mut moved = lines.clone();
                    moved.insert(draw.next(lines.len()), lines[draw.next(lines.len())]);
                    bytes = moved.join("\n").into_bytes();
                }
            }
            if let Ok(text) = String::from_utf8(bytes) {
                survive(&text);
            }
        }
    }
}

#[test]
fn hostile_modules_are_refused() {
    let head = ".version 9.0\n.target sm_100a\n.address_size 64\n";
    let body = |inside: &str| format!("{head}.visible .entry k()\n.reqntid 32\n{{\n{inside}\n}}\n");
    let wrong = [
        (body(&"{".repeat(100_000)), "nested"),
        (body(".reg .b32 r; mov.b32 r, %tid.x"), "`;`"),
        (body("add.s32 %r1, %r2, 3;"), "not declared"),
        (body(".reg .b32 %r<4>; ad.s32 %r1, %r2, 3;"), "did you mean `add`?"),
        (body(".reg .b32 %r<4>; ld.shraed.b32 %r1, [%r2];"), "did you mean `.shared`?"),
        (body(".reg .b32 %r<4>; st.global.wbb.b32 [%r2], %r1;"), "`.wbb` is not a qualifier of st"),
        (body("bra NOWHERE;"), "not in this kernel"),
        (body("{ here: } bra here;"), "not in this kernel"),
        (body("here: here: ret;"), "twice"),
        (body("fence.proxy.asinc;"), "did you mean `.async`?"),
        (format!("{head}.visible .entry k() {{"), "never closed"),
        (format!("{head}.visible .entri k() {{ ret; }}"), "did you mean `.entry`?"),
        (format!("{head}.visible .entry k() .reqntid 32 {{ .shared .b8 a[4294967295]; ret; }}"), "bytes"),
        (head.to_owned(), "no kernel"),
        (String::new(), ".version"),
    ];
    for (text, want) in wrong {
        let error = parse(&text).expect_err("no module").to_string();
        assert!(error.contains(want), "{error:?} does not say {want:?}");
    }
    // An endless loop hits a limit and does not hang.
    let text = body(".reg .b32 %r<2>; mov.b32 %r0, 0; L: add.s32 %r0, %r0, 1; fence.sc.cta; bra L;");
    let module = parse(&text).expect("it reads");
    let launch = Launch::of(&module.kernels[0], None, None, None, [].into()).expect("it fits");
    assert!(lower(&module.kernels[0], &launch).is_ok(), "an unused counter is sliced away");
    let text = body(".reg .b32 %r<2>; mov.b32 %r0, 0; L: add.s32 %r0, %r0, 1; bar.sync %r0; bra L;");
    let module = parse(&text).expect("it reads");
    let refusal = lower(&module.kernels[0], &launch).expect_err("it never ends");
    assert!(matches!(refusal, Refusal::Bounded(_)), "{refusal}");
    // One limit bounds the loops of all warps together.
    let long = "add.s32 %r1, %r1, %r0;".repeat(300);
    let text = body(&format!(
        ".reg .b32 %r<2>; .reg .pred %p; mov.b32 %r0, 0; mov.b32 %r1, 0; L: {long} add.s32 %r0, %r0, 1; \
         setp.lt.s32 %p, %r0, 12000; @%p bra L; bar.sync %r1;"
    ));
    let module = parse(&text.replace(".reqntid 32", ".reqntid 256")).expect("it reads");
    let launch = Launch::of(&module.kernels[0], None, None, None, [].into()).expect("it fits");
    let refusal = lower(&module.kernels[0], &launch).expect_err("thirty million statements").to_string();
    assert!(refusal.contains("fewer warps"), "{refusal}");
}

#[test]
fn blanks_before_a_suffix_are_read_as_the_assembler_reads_them() {
    let module = |text: &str| {
        parse(&format!(
            ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n{text}\nret;\n}}\n"
        ))
    };
    let whats = |text: &str| {
        let module = module(text).expect("the module is legal");
        module.kernels[0].body.iter().map(|s| format!("{:?}", s.what)).collect::<Vec<_>>()
    };
    let close = "ld.param.u64 %rd1, [p];\nld.relaxed.gpu.global.u32 %r1, [%rd1];\nfence.acq_rel.gpu;";
    let apart = "ld.param .u64 %rd1, [p];\nld .relaxed\t.gpu .global.u32 %r1, [%rd1];\nfence.acq_rel\n.gpu;";
    assert_eq!(whats(close), whats(apart));
    assert!(module("ld.relaxed. gpu.global.u32 %r1, [%rd1];").is_err());
}

/// The kernel of a module with this body, launched with so many CTAs of 32 threads.
fn apart(body: &str, ctas: u32) -> Apart {
    let text = format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n\
         .reqntid 32\n{{\n.reg .b32 %r<4>;\n.reg .b64 %rd<6>;\n.reg .pred %p<4>;\n\
         ld.param.u64 %rd0, [in];\nld.param.u64 %rd1, [out];\nmov.u32 %r0, %ctaid.x;\n\
         mul.wide.u32 %rd2, %r0, 4;\nadd.s64 %rd3, %rd1, %rd2;\n{body}\nret;\n}}\n"
    );
    let module = parse(&text).expect("it reads");
    let kernel = &module.kernels[0];
    let launch = Launch::of(kernel, Some([ctas, 1, 1]), None, None, [].into()).expect("it fits");
    lower_apart(kernel, &launch).expect("it is run ahead")
}

#[test]
fn clusters_with_nothing_in_common_are_apart() {
    let clusters =
        |body: &str| -> Vec<Vec<Vec<u32>>> { apart(body, 4).parts.into_iter().map(|p| p.clusters).collect() };
    let each = vec![vec![vec![0], vec![1], vec![2], vec![3]]];
    let own = "st.global.u32 [%rd3], %r0;";
    assert_eq!(clusters(own), each, "each has a word of its own");
    assert_eq!(clusters(&format!("ld.global.u32 %r1, [%rd0]; {own}")), each, "all read one word");
    assert_eq!(clusters("st.global.u32 [%rd1], %r0;"), [vec![vec![0, 1, 2, 3]]], "all write one word");
    let next = "ld.global.u32 %r1, [%rd3+4]; st.global.u32 [%rd3], %r0;";
    assert_eq!(clusters(next), [vec![vec![0, 1, 2, 3]]], "each reads what the next one writes");
    let pairs = "and.b32 %r1, %r0, 2; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; \
                 st.global.u32 [%rd3], %r0;";
    assert_eq!(clusters(pairs), [vec![vec![0, 1], vec![2, 3]]], "two and two");
    let first = format!("setp.ne.u32 %p0, %r0, 0; @%p0 bra OUT; bar.sync 0; OUT: {own}");
    assert_eq!(clusters(&first), [vec![vec![0]], vec![vec![1], vec![2], vec![3]]], "one has a barrier");
}

#[test]
fn coverage_says_what_does_not_run() {
    let ring = |rounds: u64| -> Coverage {
        let (_, text) = ours().into_iter().find(|m| m.0 == "ring").expect("the module is there");
        let module = parse(&text).expect("it reads");
        let kernel = &module.kernels[0];
        let launch = Launch::of(kernel, None, None, None, [(0, rounds)].into()).expect("it fits");
        lower(kernel, &launch).expect("it is run ahead").coverage
    };
    let none = ring(0);
    assert!(
        none.missed.iter().any(|m| m.class == Class::Synchronises && m.text.contains("wait")),
        "{none:?}"
    );
    let one = ring(1);
    assert_eq!((one.once().count(), one.wrapped), (1, 0), "{one:?}");
    assert!(one.missed.is_empty(), "{one:?}");
    let two = ring(2);
    assert_eq!((two.once().count(), two.wrapped), (0, 0), "two stages for two rounds: {two:?}");
    let four = ring(4);
    assert!(four.once().next().is_none() && four.wrapped == four.awaited, "{four:?}");
    let passes: Vec<(u32, u32)> = four.loops.iter().filter(|l| !l.waits).map(|l| l.passes).collect();
    assert_eq!(passes, [(4, 4)]);
    assert!(four.loops.iter().any(|l| l.waits && l.synchronises), "{four:?}");
    let dead = apart("setp.gt.u32 %p0, %r0, 9; @%p0 st.global.u32 [%rd3], %r0; @%p0 membar.gl;", 1)
        .coverage
        .remove(0);
    let missed: Vec<&str> = dead.missed.iter().map(|m| m.text.as_str()).collect();
    assert!(missed.len() == 2 && missed.iter().any(|m| m.starts_with("st.")), "{missed:?}");
}

#[test]
fn small_values_are_chosen_for_what_is_missing() {
    let values = |text: &str| -> (Vec<Vec<u64>>, Vec<String>) {
        let module = parse(text).expect("it reads");
        let kernel = &module.kernels[0];
        let launch = Launch::of(kernel, None, None, None, [].into()).expect("it fits");
        let found = sweep(kernel, &Goals::new(kernel), &launch);
        let all = |l: &Launch| l.params.values().chain(l.fields.values()).copied().collect();
        (found.launches.iter().map(all).collect(), found.needs.into_iter().map(|n| n.decides).collect())
    };
    let (_, ring) = ours().into_iter().find(|m| m.0 == "ring").expect("the module is there");
    let (launches, decides) = values(&ring);
    assert_eq!(launches, [[1], [3]], "three rounds are the fewest in which a ring of two stages wraps");
    assert!(decides[0].starts_with("whether line 28 branches to line "), "{decides:?}");
    let field = ring.replace(".param .u32 ring_rounds", ".param .align 4 .b8 ring_rounds[12]");
    assert_eq!(values(&field.replace("[ring_rounds]", "[ring_rounds+4]")).0, [[1], [3]]);
    let kernel = |body: &str| {
        format!(
            ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 n, .param .u32 m)\n\
             .reqntid 32\n{{\n.reg .b32 %r<6>;\n.reg .b64 %rd<6>;\n.reg .pred %p<4>;\n.shared .b64 bar;\n\
             ld.param.u64 %rd0, [out];\nld.param.u32 %r0, [n];\nld.param.u32 %r1, [m];\nmov.u32 %r2, %ctaid.x;\n{body}\nret;\n}}\n"
        )
    };
    // Rows of length n, m of them: both are named at once, and rows do not overlap.
    let rows = kernel(
        "mov.b32 %r3, 0;\nL: mad.lo.s32 %r4, %r3, %r0, %r2;\nmul.wide.u32 %rd1, %r4, 4;\nadd.s64 %rd2, %rd0, %rd1;\n\
         st.global.u32 [%rd2], %r2;\nbar.sync 0;\nadd.s32 %r3, %r3, 1;\nsetp.lt.s32 %p0, %r3, %r1;\n@%p0 bra L;",
    );
    let (launches, decides) = values(&rows);
    assert_eq!(launches, [[128, 1], [128, 2]], "{decides:?}");
    assert!(decides[0].starts_with("an address") || decides[1].starts_with("an address"), "{decides:?}");
    assert!(decides.iter().any(|d| d.starts_with("how often the loop in lines ")), "{decides:?}");
    assert_eq!(values(&kernel("bar.sync 0;")).0, [Vec::<u64>::new()], "nothing is missing");
}

/// A kernel of 64 threads with a parameter `n` in `%r0`, the number of the thread in `%r1`, and of the CTA in `%r2` and `%r3`.
fn counted(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 n)\n\
         .reqntid 64\n{{\n.reg .b32 %r<12>;\n.reg .b64 %rd<6>;\n.reg .pred %p<6>;\n.shared .b32 word[64];\n\
         ld.param.u64 %rd0, [out];\nld.param.u32 %r0, [n];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
         mov.u32 %r3, %ctaid.y;\nmov.u32 %r4, word;\n{body}\nret;\n}}\n"
    )
}

/// The goals that a launch with these values of `n` leaves, and for each the values of `n` and the grid of a launch that meets
/// it, if one is found.
fn left(body: &str, counts: &[u64]) -> Vec<(Goal, Option<(u64, [u32; 3])>)> {
    let module = parse(&counted(body)).expect("it reads");
    let kernel = &module.kernels[0];
    let goals = Goals::new(kernel);
    let launch = |n: u64| Launch::of(kernel, None, None, None, [(1, n)].into()).expect("it fits");
    let needs =
        sweep(kernel, &goals, &Launch::of(kernel, None, None, None, [].into()).expect("it fits")).needs;
    let mut met = Met::default();
    counts.iter().for_each(|n| met.join(&lower(kernel, &launch(*n)).expect("it is run ahead").coverage.met));
    let mut cover = Cover::new(
        (kernel, &goals),
        vec![launch(counts[0])],
        &Free { needs, grid: true, block: false },
        false,
    );
    let left: Vec<Goal> = goals.left(&met, &[].into()).into_iter().collect();
    let found = |goal: Goal| match cover.find(goal, &met, &[]) {
        Some(found) => Some(Some((found.launch.params[&1], found.launch.grid))),
        None if cover.impossible(goal, &met).is_some() => None,
        None => Some(None),
    };
    let mut found = found;
    left.into_iter().filter_map(|goal| Some((goal, found(goal)?))).collect()
}

#[test]
fn launches_are_found_for_what_is_left() {
    let launches = |body: &str, counts: &[u64]| -> Vec<Option<(u64, [u32; 3])>> {
        left(body, counts).into_iter().map(|l| l.1).collect()
    };
    let tail = "and.b32 %r5, %r0, 3; setp.eq.u32 %p0, %r5, 3; @%p0 bra A; bar.sync 0; A: bar.sync 0;";
    assert_eq!(launches(tail, &[1]), [Some((3, [1, 1, 1]))], "the smallest that branches");
    assert_eq!(launches(tail, &[1, 3]), []);
    let row = "setp.eq.u32 %p0, %r3, 0; @%p0 bra A; bar.sync 0; A: setp.eq.u32 %p1, %r0, 9; @%p1 bar.sync 0;";
    let found = launches(row, &[1]);
    assert!(found.contains(&Some((1, [1, 2, 1]))) && found.contains(&Some((9, [1, 1, 1]))), "{found:?}");
    // The loop has to pass twice, and what is not in each pass has to run in two.
    let pass = "mov.u32 %r5, 0; L: add.u32 %r5, %r5, 1; setp.ge.u32 %p0, %r5, %r0; @%p0 bra A; bar.sync 0; \
                A: bar.sync 0; setp.lt.u32 %p1, %r5, %r0; @%p1 bra L;";
    assert!(launches(pass, &[1]).iter().all(Option::is_some) && launches(pass, &[1]).len() > 2);
    assert_eq!(launches(pass, &[1, 2]), [Some((3, [1, 1, 1]))], "the barrier in all passes but the last");
    assert_eq!(launches(pass, &[3]), []);
    // What only computes and loads until both ways meet does not matter once it has run.
    let quiet = "setp.gt.u32 %p0, %r0, 2; @!%p0 bra A; ld.global.u32 %r5, [%rd0]; A: bar.sync 0;";
    assert_eq!((launches(quiet, &[1]).len(), launches(quiet, &[3]).len()), (1, 0));
}

#[test]
fn a_way_that_only_some_launch_comes_to_is_looked_for() {
    let found = |body: &str, counts: &[u64]| -> Vec<Option<u64>> {
        left(body, counts).into_iter().map(|l| l.1.map(|l| l.0)).collect()
    };
    // Lane 40 comes to its branch if there are 41 times 64. The number of the lane alone decides the branch.
    let lane = |shift: u32| {
        format!(
            "shr.u32 %r5, %r0, {shift}; setp.ge.u32 %p0, %r1, %r5; @%p0 bra A; setp.ne.u32 %p1, %r1, 40; @%p1 bra A; \
             st.shared.u32 [%r4], %r1; A: bar.sync 0;"
        )
    };
    assert!(found(&lane(6), &[64]).contains(&Some(4096)), "{:?}", found(&lane(6), &[64]));
    assert_eq!(found(&lane(6), &[64, 4096]), []);
    assert!(found(&lane(31), &[1 << 31]).contains(&None), "no number has lane 40 come there");
    // A branch that numbers in the kernel alone decide goes one way.
    let always =
        "setp.ge.u32 %p0, %r0, 1; @!%p0 bra A; setp.eq.u32 %p1, 1, 2; @%p1 bra A; bar.sync 0; A: bar.sync 0;";
    assert_eq!(found(always, &[0, 1]), []);
    let table = "shr.u32 %r5, %r0, 9; min.u32 %r5, %r5, 1; ts: .branchtargets A, B; brx.idx %r5, ts; A: bar.sync 0; \
                 B: ld.shared.u32 %r6, [%r4];";
    assert_eq!(found(table, &[1]), [Some(512)], "the second target is also come to from the first one");
}

#[test]
fn ways_that_no_launch_goes_are_not_asked() {
    // In a loop that goes up by four, as far as a multiple of four, there is always a next one.
    let four = "and.b32 %r5, %r0, 3; sub.u32 %r6, %r0, %r5; setp.eq.u32 %p0, %r6, 0; @%p0 bra E; mov.u32 %r7, 0; \
                L: add.u32 %r8, %r7, 3; setp.ge.u32 %p1, %r8, %r0; @%p1 bra A; bar.sync 0; A: add.u32 %r7, %r7, 4; \
                setp.ne.u32 %p2, %r7, %r6; @%p2 bra L; E: bar.sync 0;";
    assert_eq!(left(four, &[0, 8]), []);
    // Threads are fixed for the kernel, and a failed check and an exit with nothing before it are not asked for.
    for fixed in [
        "setp.gt.u32 %p0, %r1, 63; @%p0 bra A; bar.sync 0; A: bar.sync 0;",
        "setp.gt.u32 %p0, %r0, 9; @%p0 bra A; bar.sync 0; ret; A: trap;",
        "setp.gt.u32 %p0, %r0, 9; @%p0 bra A; bar.sync 0; A: ret;",
    ] {
        assert_eq!(left(fixed, &[1]), [], "{fixed}");
    }
    // A large number is found if a far larger one does the same, and nothing is shown if none does.
    let large =
        |how: &str| format!("setp.{how}.u32 %p0, %r0, 100000; @%p0 bra A; bar.sync 0; A: bar.sync 0;");
    let found = |body: &str| left(body, &[1]).into_iter().map(|l| l.1.map(|l| l.0)).collect::<Vec<_>>();
    assert_eq!(found(&large("gt")), [Some(1 << 18)]);
    assert_eq!(found(&large("eq")), [None]);
    // Values that are chosen by a branch depend on what it depends on.
    let chosen = "mov.u32 %r5, 0; setp.ne.u32 %p0, %r0, 5; @%p0 bra A; mov.u32 %r5, 1; A: setp.eq.u32 %p1, %r5, 1; \
                  @%p1 bra B; bar.sync 0; B: bar.sync 0;";
    assert_eq!(left(chosen, &[1]).into_iter().map(|l| l.1).collect::<Vec<_>>(), [Some((5, [1, 1, 1]))]);
}

/// A kernel that calls the function `f`, behind the text of functions.
fn calling(functions: &str) -> String {
    format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n{functions}\n.visible .entry k()\n.reqntid 32\n{{\n\
         .reg .b32 %r<4>;\n.reg .pred %p;\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p, %r1, 0;\n\
         {{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; @%p call (b), f, (a); ld.param.b32 %r2, [b]; }}\n\
         bar.sync 0;\nret;\n}}\n"
    )
}

#[test]
fn calls_of_functions_of_the_module_are_inlined() {
    let lowered = |functions: &str| {
        let module = parse(&calling(functions)).unwrap_or_else(|e| panic!("{e}"));
        let launch = Launch::of(&module.kernels[0], Some([1; 3]), None, None, [].into()).expect("fits");
        lower(&module.kernels[0], &launch).map(|l| print(&l.program)).map_err(|e| e.to_string())
    };
    let body = "ld.param.b32 %r1, [x]; add.u32 %r2, %r1, 1; st.param.b32 [y], %r2; \
                @%q ret; st.shared.b32 [word], %r2;";
    let f = |body: &str| {
        format!(
            ".shared .align 4 .b32 word;\n.func (.param .b32 y) f(.param .b32 x)\n\
             {{ .reg .b32 %r<4>; .reg .pred %q; setp.ne.u32 %q, 0, 0; {body} ret; }}"
        )
    };
    let text = lowered(&f(body)).expect("the function is read");
    assert!(text.contains("bar.sync"), "{text}");
    // A prototype before it, and a body behind the kernel.
    let (word, function) =
        f(body).split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("two lines");
    let behind = calling(&format!("{word}\n.func (.param .b32 y) f(.param .b32 x);")) + &function;
    let module = parse(&behind).unwrap_or_else(|e| panic!("{e}"));
    let calls = |k: &moire_kernel::ptx::Kernel| {
        let name = |s: &&moire_kernel::ptx::Statement| matches!(&s.what, moire_kernel::ptx::What::Plain(i) if matches!(**i, moire_isa::Instr::Call(_)));
        k.body.iter().filter(name).count()
    };
    assert_eq!(calls(&module.kernels[0]), 0);
    // What is outside the module, calls itself, or is not read, stays a call, which is abstained from by name.
    let recursive = "{ .param .b32 c; st.param.b32 [c], 1; .param .b32 d; call (d), f, (c); }";
    for functions in [
        ".extern .func (.param .b32 y) f(.param .b32 x);".to_owned(),
        f(recursive),
        f("this is no instruction;"),
        f("bra nowhere;"),
        f("").replace(".param .b32 x", ".reg .b32 x"),
    ] {
        let why = lowered(&functions).expect_err(&functions);
        assert!(why.contains("a call of `f`"), "{why}\n{functions}");
    }
}

#[test]
fn parameters_of_calls_are_registers() {
    // Parts that are stored and loaded alike have their value; others are not known.
    let kernel = |store: &str, load: &str| {
        format!(
            ".version 9.0\n.target sm_100a\n.address_size 64\n\
             .func (.param .align 8 .b8 y[8]) f(.param .align 8 .b8 x[16])\n\
             {{ .reg .b32 %r<4>; .reg .b64 %d<2>; {load} st.param.b32 [y+4], %r1; ret; }}\n\
             .visible .entry k()\n.reqntid 32\n{{\n.reg .b32 %r<4>;\n.reg .b64 %d<2>;\n.shared .align 8 .b64 bars[4];\n\
             {{ .param .align 8 .b8 a[16]; {store} .param .align 8 .b8 b[8]; call (b), f, (a); ld.param.b32 %r2, [b+4]; }}\n\
             mov.u32 %r3, bars;\nadd.u32 %r3, %r3, %r2;\nmbarrier.init.shared::cta.b64 [%r3], 1;\nret;\n}}\n"
        )
    };
    let lowered = |store: &str, load: &str| {
        let module = parse(&kernel(store, load)).unwrap_or_else(|e| panic!("{e}"));
        let launch = Launch::of(&module.kernels[0], Some([1; 3]), None, None, [].into()).expect("fits");
        lower(&module.kernels[0], &launch).map(|l| print(&l.program)).map_err(|e| e.to_string())
    };
    assert!(lowered("st.param.b32 [a+8], 8;", "ld.param.b32 %r1, [x+8];").is_ok());
    assert!(lowered("st.param.v2.b32 [a+4], {0, 16};", "ld.param.b32 %r1, [x+8];").is_ok());
    for (store, load) in [
        ("st.param.b64 [a+8], 8;", "ld.param.b32 %r1, [x+8];"),
        ("st.param.b32 [a+4], 8;", "ld.param.b32 %r1, [x+8];"),
        ("st.param.b32 [a+8], 8; st.param.b8 [a+9], 1;", "ld.param.b32 %r1, [x+8];"),
    ] {
        assert!(lowered(store, load).is_err(), "{store} {load}");
    }
}

#[test]
fn families_of_registers_are_local_to_their_braces() {
    // The inner %r1 is another register, so the address is that of the second mbarrier.
    let text = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n.reqntid 32\n{\n\
                .reg .b32 %r<4>;\n.shared .align 8 .b64 bars[4];\nmov.u32 %r1, 8;\nmov.u32 %r2, bars;\n\
                { .reg .b32 %r<3>; mov.u32 %r1, 24; { add.u32 %r2, %r1, 1; } }\n\
                add.u32 %r3, %r2, %r1;\nmbarrier.init.shared::cta.b64 [%r3], 1;\nret;\n}\n";
    let module = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let launch = Launch::of(&module.kernels[0], Some([1; 3]), None, None, [].into()).expect("fits");
    let program = lower(&module.kernels[0], &launch).expect("it is read").program;
    assert!(print(&program).contains("bars_8"), "{}", print(&program));
}

/// A kernel of 64 threads with a pointer in `%d1`, where warp 0 runs the first text and warp 1 the second one.
fn two(head: &str, first: &str, second: &str) -> Result<moire_kernel::specialise::Lowered, Refusal> {
    let text = format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 p) {head}\n{{\n.reg .b32 %r<9>; \
         .reg .b64 %d<9>; .reg .pred %p<9>;\nld.param.u64 %d1, [p];\nmov.u64 %d2, 0;\nmov.u32 %r0, %tid.x;\n\
         setp.ge.u32 %p2, %r0, 32;\n@%p2 bra B;\n{first}\nret;\nB:\n{second}\nret;\n}}\n"
    );
    let module = parse(&text).expect("the module reads");
    let kernel = entry(&module, None).expect("there is one kernel");
    let launch = Launch::of(kernel, None, Some([64, 1, 1]), None, std::collections::BTreeMap::new());
    lower(kernel, &launch.expect("the launch fits"))
}

#[test]
fn cache_hints_change_no_access() {
    let orders = [("st.release.gpu", "ld.acquire.gpu"), ("st.relaxed.sys", "ld.relaxed.sys"), ("st", "ld")];
    // Of a store, an update and a load: each takes hints of its own.
    let hints = [
        (".L1::no_allocate", "", ".L1::no_allocate", ""),
        (".L1::evict_last", "", ".L1::evict_last.L2::128B", ""),
        (".L2::cache_hint", ".L2::cache_hint", ".L2::cache_hint", ", %d2"),
    ];
    let plain = |st: &str, ld: &str, (stored, updated, loaded, policy): (&str, &str, &str, &str)| {
        let store = format!("{st}.global{stored}.b32 [%d1], %r0{policy};");
        let update = format!("atom.relaxed.gpu.global.add{updated}.u32 %r2, [%d1+8], %r0{policy};");
        let load =
            format!("L:\n{ld}.global{loaded}.b32 %r1, [%d1]{policy};\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;");
        two("", &(store + &update), &load).map(|l| print(&l.program))
    };
    for (st, ld) in orders {
        let without = plain(st, ld, ("", "", "", ""));
        for hint in hints {
            assert_eq!(plain(st, ld, hint), without, "{st} {ld} {hint:?}");
        }
    }
}

#[test]
fn memory_that_is_read_on_a_promise_is_not_written() {
    for load in ["ld.global.nc.b32", "ldu.global.b32", "ld.global.nc.L1::no_allocate.b32"] {
        let reads = |at: u32| format!("bar.sync 0; {load} %r1, [%d1+{at}];");
        let writes = "st.global.b32 [%d1], 1; bar.sync 0;";
        let refused = two("", writes, &reads(0)).expect_err("it is written");
        assert!(
            matches!(&refused, Refusal::Abstained { what, .. } if what.contains("read-only")),
            "{refused}"
        );
        assert!(two("", writes, &reads(256)).is_ok(), "other bytes are written");
    }
}

#[test]
fn registers_suffice_or_the_launch_is_abstained_from() {
    let head = ".reqntid 64, 1, 1 .maxnreg 128";
    let set = |way: &str, n: u32| format!("setmaxnreg.{way}.sync.aligned.u32 {n};");
    let (dec, inc) = (set("dec", 40), set("inc", 216));
    let holds = |head: &str, first: &str, second: &str| two(head, first, second).is_ok();
    assert!(holds(head, &dec, &inc), "what one gives back is enough for the other");
    assert!(!holds(head, &inc, &inc), "nobody gives registers back");
    assert!(!holds(head, &dec, &set("inc", 224)), "too few are given back");
    assert!(
        !holds(head, &format!("bar.sync 0; {dec}"), &format!("{inc} bar.sync 0;")),
        "each waits for the other"
    );
    assert!(
        holds(head, &format!("bar.sync 0; {dec}"), &format!("bar.sync 0; {inc}")),
        "both have met before"
    );
    assert!(
        !holds(head, &format!("bar.sync 1, 64; bar.sync 2, 32; {dec}"), &inc),
        "a barrier of some threads"
    );
    assert!(holds(".reqntid 64, 1, 1", &inc, &inc), "without a number at entry ptxas ignores it");
    assert!(
        !holds(".reqntid 64, 1, 1 .minnctapersm 8", &inc, &inc),
        "65,536 registers by 512 threads are 128"
    );
}

#[test]
fn a_trap_ends_no_warp_alone() {
    let refused = two("", "trap;", "bar.sync 0;").expect_err("the launch traps");
    assert!(matches!(&refused, Refusal::Abstained { what, .. } if what.contains("trap")), "{refused}");
    let check = "ld.global.b32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra F; bra G;\nF:\ntrap;\nG:";
    assert!(two("", check, "").is_ok(), "a check is taken to hold");
}

#[test]
fn clusters_that_wait_for_each_other_are_taken_to_run_together() {
    let poll = "W: ld.acquire.gpu.global.u32 %r1, [%rd0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra W;";
    let first = "setp.ne.u32 %p0, %r0, 0; @%p0 bra W; mov.u32 %r2, %tid.x; setp.eq.u32 %p2, %r2, 0;\n\
                 @%p2 st.release.gpu.global.u32 [%rd0], 1; ret;";
    let lines = |body: &str, ctas: u32| -> Vec<u32> {
        let notes = apart(body, ctas).notes.into_iter();
        notes.filter(|n| n.text.contains("run at the same time")).map(|n| n.line).collect()
    };
    let both = format!("{first}\n{poll}");
    assert_eq!(lines(&both, 2), [both_line(&both)]);
    assert_eq!(
        lines("st.release.gpu.global.u32 [%rd3], 1; ld.acquire.gpu.global.u32 %r1, [%rd3];", 2),
        [] as [u32; 0]
    );
}

/// The line of the poll in the module that `apart` makes.
fn both_line(body: &str) -> u32 {
    let before = body.lines().take_while(|l| !l.starts_with("W:")).count();
    u32::try_from(15 + before).expect("a small module")
}

#[test]
fn a_pool_of_registers_that_suffices_is_said() {
    let text = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n.maxnreg 64\n.reqntid 256\n{\n\
                .reg .b32 %r<2>;\n.reg .pred %p;\nmov.u32 %r0, %tid.x;\nsetp.lt.u32 %p, %r0, 128;\n@%p bra B;\n\
                setmaxnreg.dec.sync.aligned.u32 40;\nret;\nB: setmaxnreg.inc.sync.aligned.u32 88;\nret;\n}\n";
    let module = parse(text).expect("it reads");
    let kernel = &module.kernels[0];
    let launch = Launch::of(kernel, None, None, None, [].into()).expect("it fits");
    let notes = lower_apart(kernel, &launch).expect("it is run ahead").notes;
    let pool: Vec<u32> =
        notes.iter().filter(|n| n.text.contains("pool of registers")).map(|n| n.line).collect();
    assert_eq!(pool, [15]);
}
