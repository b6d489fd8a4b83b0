//! `moire check` on kernels of PTX modules: the launch that a verdict names, what of the kernel it covers, both profiles.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Exit code, stdout and stderr of `moire check` on a module.
fn check(text: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.ptx"), text).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_moire"))
        .args(["check", "k.ptx"])
        .args(args)
        .current_dir(folder.path())
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

/// The answer as JSON, which fits the schema that is published.
fn json(text: &str, args: &[&str]) -> Value {
    let (_, out, err) = check(text, &[args, &["--format", "json"]].concat());
    let answer = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    crate::cli::fits_schema(&answer);
    answer
}

/// A kernel of 32 threads whose first one stores the number of its CTA.
fn stores(place: &str) -> String {
    format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry ids(.param .u64 out)\n.reqntid 32\n{{\n\
         .reg .b32 %r<2>;\n.reg .b64 %rd<3>;\n.reg .pred %p;\nld.param.u64 %rd0, [out];\nmov.u32 %r0, %ctaid.x;\n\
         mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd2, %rd0, %rd1;\nsetp.ne.u32 %p, %r1, 0;\n\
         @%p bra DONE;\nst.global.u32 [{place}], %r0;\nDONE:\nret;\n}}\n"
    )
}

fn ours(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx").join(name);
    std::fs::read_to_string(path).expect("the module is there")
}

/// Two warps that store to one word behind a branch on data.
fn decided_race() -> String {
    let text = ours("data-branch.ptx").replace(".reqntid 32", ".reqntid 64");
    text.replace("OUT:\n", "OUT:\n    st.global.b32 [%rd0+4], %r0;\n")
}

#[test]
fn a_branch_on_data_is_explored_both_ways() {
    let (code, out, err) = check(&ours("data-branch.ptx"), &[]);
    assert!(code == Some(0) && out.starts_with("k.ptx: clean\n"), "{out}{err}");
    assert!(out.contains("for any data: a predicate (%p0) that depends on data loaded in line 13"), "{out}");
    assert!(out.contains("line 15 depends on data: both ways are explored"), "{out}");
    assert_eq!(json(&ours("data-branch.ptx"), &[])["launch"]["any_data"]["possible"], serde_json::json!([]));
    // Anything else than clean need not happen, so it is no finding.
    let (code, out, err) = check(&decided_race(), &[]);
    assert!(code == Some(11) && out.starts_with("k.ptx: abstained("), "{code:?} {out}{err}");
    assert!(out.contains("could happen, if data decides so: ") && out.contains("race (line 18)"), "{out}");
    assert!(!err.contains("race"), "{err}");
    let object = json(&decided_race(), &[]);
    assert!(object["launch"]["any_data"]["possible"].to_string().contains("race"), "{object}");
}

#[test]
fn every_verdict_names_its_launch() {
    let (code, out, err) = check(&ours("ring.ptx"), &["--param", "0=4"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let launch = "launch of ring: grid 1 (assumed), cluster 1 (assumed), block 64 (.reqntid), \
                  parameter 0 (ring_rounds) = 4 (given)";
    assert!(out.contains(launch), "{out}");
    assert!(out.contains("repeat with: moire check k.ptx --grid 1 --cluster 1 --param 0=4\n"), "{out}");
    assert!(out.contains("elect.sync elects the first active lane"), "{out}");
    assert!(out.contains("trip counts: lines "), "{out}");
    assert!(out.contains("one cluster only: nothing in the kernel tells clusters apart"), "{out}");
    let told = ["--param", "0=4", "--grid", "1", "--cluster", "1"];
    let (_, out, _) = check(&ours("ring.ptx"), &told);
    assert!(out.contains("grid 1 (given)") && !out.contains("repeat with"), "{out}");
    let launch = &json(&ours("ring.ptx"), &["--param", "0=2", "--profile", "letter"])["launch"];
    assert_eq!(launch["grid"]["size"], serde_json::json!([1, 1, 1]));
    assert_eq!(
        (&launch["grid"]["origin"], &launch["block"]["origin"]),
        (&"assumed".into(), &".reqntid".into())
    );
    assert_eq!(launch["parameters"][0]["value"], 2);
    assert_eq!(launch["command"], "moire check k.ptx --grid 1 --cluster 1 --param 0=2 --profile letter");
    assert!(
        launch["coverage"]["loops"]
            .as_array()
            .unwrap()
            .iter()
            .any(|l| l["passes"] == serde_json::json!([2, 2]))
    );
    // What no engine is asked about names its launch, too.
    let object = json(&decided_race(), &[]);
    assert!(object["verdicts"][0].as_str().unwrap().starts_with("abstained("), "{object}");
    assert_eq!(object["launch"]["grid"]["origin"], "assumed");
}

#[test]
fn loops_are_proved_for_every_value_of_a_parameter() {
    let (code, out, err) = check(&ours("every-ring.ptx"), &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    let said = "proved for every multiple of 32 of parameter 0 from 32 up to 2147483456 (loops in lines 44 to 66, 73 to 96): ";
    assert!(out.contains(&format!("    {said}")), "{out}");
    // Too long to be run ahead: a shorter one stands for it.
    let (code, out, err) = check(&ours("every-ring.ptx"), &["--param", "0=131072"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains("; the launch with 131072 is too long to be run ahead, and the proof stands for it"),
        "{out}"
    );
    assert_eq!(check(&ours("every-ring-release.ptx"), &["--param", "0=131072"]).0, Some(11));
    // The mistake comes in the second lap, and the launch that is asked for has one round.
    let one = ["--param", "0=32"];
    let (code, out, err) = check(&ours("every-ring-parity.ptx"), &one);
    assert_eq!(code, Some(11), "{out}{err}");
    assert!(out.contains("not proved for every multiple of 32 of parameter 0 (loops in lines "), "{out}");
    let every = &json(&ours("every-ring-parity.ptx"), &one)["launch"]["every"][0];
    assert_eq!((&every["proved"], &every["parameter"]), (&false.into(), &"0".into()), "{every}");
    assert!(every["why"].as_str().unwrap().contains("with 0 = 128"), "{every}");
}

#[test]
fn ctas_of_an_assumed_launch_meet() {
    let (code, out, err) = check(&stores("%rd0"), &[]);
    assert!(code == Some(10) && out.starts_with("k.ptx: race\n"), "{out}{err}");
    assert!(
        out.contains("grid 2 (assumed)") && out.contains("clean: moire check k.ptx --grid 1 --cluster 1\n"),
        "{out}"
    );
    assert_eq!(check(&stores("%rd0"), &["--grid", "1"]).0, Some(0));
    let (code, out, err) = check(&stores("%rd2"), &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("clusters 0, 1 touch nothing in common and run the same program"), "{out}");
    assert!(out.contains("ptx: 1 execution; "), "two clusters are no more work than one: {out}");
    let launch = &json(&stores("%rd2"), &["--grid", "3"])["launch"];
    assert_eq!(launch["parts"], serde_json::json!([[[0], [1], [2]]]));
    // A cluster that does something else is a part of its own, and one wrong part is enough.
    let other =
        stores("%rd2").replace("DONE:", "setp.ne.u32 %p, %r0, 1;\n@%p bra DONE;\nbar.sync 1, 64;\nDONE:");
    let (code, out, err) = check(&other, &["--grid", "3"]);
    assert!(code == Some(10) && out.starts_with("k.ptx: hang\n"), "{out}{err}");
    assert!(out.contains("  clusters 0, 2, clean: under ptx: 1 execution; "), "{out}");
    assert!(out.contains("  clusters 1, hang: under ptx: 0 executions that end, 1 that hang"), "{out}");
    assert_eq!(json(&other, &["--grid", "3"])["parts"].as_array().unwrap().len(), 2);
}

#[test]
fn a_clean_kernel_says_what_did_not_run() {
    let ring = ours("ring.ptx");
    let (code, one, _) = check(&ring, &["--param", "0=1"]);
    assert!(code == Some(11) && one.starts_with("k.ptx: bounded(coverage)\n"), "{one}");
    assert!(one.contains("    trip counts: lines 30 to 69: 1\n"), "a body that ran once: {one}");
    assert!(
        one.contains("not covered: loop to line 69 (line 30) never runs twice, it does with --param 0=2\n"),
        "{one}"
    );
    assert!(one.contains("coverage: ") && one.contains("no ring wraps"), "{one}");
    assert!(one.contains("loops around synchronisation that no warp runs twice: lines "), "{one}");
    let (code, none, _) = check(&ring, &["--param", "0=0"]);
    assert!(code == Some(11) && none.starts_with("k.ptx: bounded(coverage)\n"), "{none}");
    assert!(none.contains("synchronising instructions never reached: ") && none.contains("(line "), "{none}");
    let (_, four, _) = check(&ring, &["--param", "0=4"]);
    assert!(!four.contains("never reached") && !four.contains("no ring wraps"), "{four}");
    let coverage = &json(&ring, &["--param", "0=4"])["launch"]["coverage"];
    assert_eq!(coverage["synchronising"]["missed"], Value::Array(vec![]), "{coverage}");
    assert!(coverage["wrapped"].as_u64() > Some(0), "{coverage}");
    let coverage = &json(&ring, &["--param", "0=0"])["launch"]["coverage"];
    assert_ne!(coverage["uncovered"], Value::Array(vec![]), "{coverage}");
}

/// Kernels of 32 threads. `%rd0` is the memory of parameter 0, `%r0` the number of the CTA, `%r1` the number of CTAs; only the
/// first thread runs the body.
fn of_ctas(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 g)\n.reqntid 64\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd0, [g];\nmov.u32 %r0, %ctaid.x;\n\
         mov.u32 %r1, %nctaid.x;\nmov.u32 %r2, %tid.x;\nsetp.ne.u32 %p0, %r0, 0;\nsetp.ne.u32 %p1, %r0, 1;\n\
         setp.ne.u32 %p2, %r1, 1;\nsetp.ne.u32 %p3, %r2, 0;\n{body}\nDONE:\nret;\n}}\n"
    )
}

/// CTA 0 waits for a flag that CTA 1 sets.
const HANDOVER: &str = "@%p3 bra DONE;\n@%p0 bra ONE;\nL:\nld.acquire.gpu.global.u32 %r3, [%rd0+128];\n\
                        setp.eq.u32 %p4, %r3, 0;\n@%p4 bra L;\nld.global.u32 %r4, [%rd0];\nbra DONE;\nONE:\n\
                        @%p1 bra DONE;\nst.global.u32 [%rd0], 7;\nst.release.gpu.global.u32 [%rd0+128], 1;";

#[test]
fn a_launch_that_could_not_be_explored_is_not_replaced() {
    // With two CTAs a weak flag is polled: what happens depends on data. With one nobody polls.
    let weak = HANDOVER.replace("@%p0 bra ONE;", "@%p0 bra L;\nbra ONE;").replace("@%p1 bra", "@%p0 bra");
    let weak = weak.replace(".acquire.gpu", "").replace("st.release.gpu", "st");
    let (code, out, err) = check(&of_ctas(&weak), &[]);
    assert!(code == Some(11) && out.starts_with("k.ptx: abstained("), "{code:?} {out}{err}");
    assert!(out.contains("race (line ") && out.contains("grid 2 (assumed)"), "{out}");
    assert!(out.contains("    clean: moire check k.ptx --grid 1 --cluster 1\n"), "{out}");
    let object = json(&of_ctas(&weak), &[]);
    assert!(object["launch"]["any_data"]["possible"].to_string().contains("race"), "{object}");
    // One CTA alone waits for ever. Two do not, and a limit there says nothing about one.
    let (code, out, err) = check(&of_ctas(HANDOVER), &[]);
    assert!(code == Some(0) && out.starts_with("k.ptx: clean\n"), "{out}{err}");
    assert!(out.contains("    hang: moire check k.ptx --grid 1 --cluster 1\n"), "{out}");
    let (code, out, err) = check(&of_ctas(HANDOVER), &["--limit", "1"]);
    assert!(code == Some(11) && out.starts_with("k.ptx: bounded(the limit on executions)\n"), "{out}{err}");
    assert!(!out.contains("hang: P") && !out.contains("waits"), "{out}");
    for format in ["sarif", "junit"] {
        let (code, out, _) = check(&of_ctas(HANDOVER), &["--limit", "1", "--format", format]);
        assert!(code == Some(11) && out.contains("limit on executions") && !out.contains("hang:"), "{out}");
    }
}

#[test]
fn a_smaller_launch_adds_its_own_races_and_never_a_hang() {
    // A grid of one CTA has a race of two warps, and hangs.
    let alone = format!("@%p2 bra MORE;\nst.global.u32 [%rd0+256], %r2;\nMORE:\n{HANDOVER}");
    let alone = of_ctas(&alone);
    let (code, out, err) = check(&alone, &[]);
    assert!(code == Some(10) && out.starts_with("k.ptx: race\n"), "{out}{err}");
    assert!(out.contains("  in another launch, moire check k.ptx --grid 1 --cluster 1, race: "), "{out}");
    assert!(out.contains("grid 2 (assumed)") && !out.contains("  hang: "), "{out}");
    let object = json(&alone, &[]);
    assert_eq!(object["verdicts"], serde_json::json!(["race"]), "{object}");
    let parts = object["parts"].as_array().unwrap();
    assert_eq!(parts.last().unwrap()["launch"], "moire check k.ptx --grid 1 --cluster 1", "{object}");
    for format in ["sarif", "junit"] {
        let (code, out, _) = check(&alone, &["--format", format]);
        assert!(
            code == Some(10) && out.contains("moire check k.ptx --grid 1 --cluster 1: conflicting accesses"),
            "{out}"
        );
    }
}

#[test]
fn what_synchronises_and_never_runs_bounds_the_answer() {
    // Only the third CTA comes to the barrier: the grid grows until it does.
    let third = of_ctas("setp.lt.u32 %p5, %r0, 2;\n@%p5 bra DONE;\nbar.sync 1, 64;");
    let (code, out, err) = check(&third, &[]);
    assert!(code == Some(0) && out.contains("grid 3 (assumed)"), "{out}{err}");
    let (code, out, err) = check(&third, &["--grid", "2"]);
    assert!(code == Some(11) && out.starts_with("k.ptx: bounded(coverage)\n"), "{out}{err}");
    assert!(out.contains("synchronising instructions never reached: bar.sync (line "), "{out}");
    // No launch gets there, and this one neither.
    let never = of_ctas("setp.eq.u32 %p5, %r0, 77;\n@!%p5 bra DONE;\nbar.sync 1, 64;");
    let (code, out, err) = check(&never, &[]);
    assert!(code == Some(11) && out.starts_with("k.ptx: bounded(coverage)\n"), "{out}{err}");
    let object = json(&never, &[]);
    assert_eq!(object["verdicts"], serde_json::json!(["bounded(coverage)"]), "{object}");
    assert_eq!(object["launch"]["coverage"]["uncovered"][0]["text"], "bar.sync", "{object}");
    let (code, out, _) = check(&never, &["--format", "sarif"]);
    assert!(
        code == Some(11) && out.contains("not covered by the launches that were judged: bar.sync (line "),
        "{out}"
    );
    let (code, out, _) = check(&never, &["--format", "junit"]);
    assert!(code == Some(11) && out.contains("bounded(coverage)"), "{out}");
    // A finding is a finding, whatever else did not run.
    let racy =
        of_ctas("st.global.u32 [%rd0], %r0;\nsetp.eq.u32 %p5, %r0, 77;\n@!%p5 bra DONE;\nbar.sync 1, 64;");
    assert_eq!(check(&racy, &[]).0, Some(10));
}

/// Kernels of 64 threads. `%r0` is the parameter `n`, `%r1` the number of the thread, `%r2` and `%r3` those of the CTA along x and
/// y; thread 0 of a CTA owns a word of shared memory at `%r4`.
fn of_counts(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 g, .param .u32 n)\n.reqntid 64\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<12>;\n.reg .b64 %rd<4>;\n.shared .b32 word[4];\nld.param.u64 %rd0, [g];\n\
         ld.param.u32 %r0, [n];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ctaid.y;\nmov.u32 %r4, word;\n\
         setp.eq.u32 %p0, %r1, 0;\n{body}\nret;\n}}\n"
    )
}

/// Thread 0 writes a word, and all others read it behind a barrier that some launches leave out: `skip` sets `%p1` where they do.
fn skipping(skip: &str, other: &str) -> String {
    of_counts(&format!(
        "@%p0 st.shared.u32 [%r4], %r1;\n{skip}\n@%p1 bra A;\nbar.sync 0;\nbra B;\nA:\n{other}\nB:\nld.shared.u32 %r5, [%r4];"
    ))
}

#[test]
fn launches_are_looked_for_until_everything_has_run() {
    let cases = [
        ("and.b32 %r6, %r0, 3;\nsetp.eq.u32 %p1, %r6, 3;", "--grid 2 --cluster 1 --param 1=3"),
        ("setp.eq.u32 %p1, %r0, 0;", "--grid 2 --cluster 1 --param 1=0"),
        ("setp.eq.u32 %p1, %r3, 1;", "--grid 1,2 --cluster 1"),
        ("setp.eq.u32 %p1, %r2, 2;", "--grid 3 --cluster 1"),
        ("setp.gt.u32 %p1, %r0, 100;", "--grid 2 --cluster 1 --param 1=101"),
    ];
    for (skip, launch) in cases {
        let (code, out, err) = check(&skipping(skip, ""), &[]);
        assert!(code == Some(10) && out.starts_with("k.ptx: race\n"), "{skip}: {out}{err}");
        assert!(out.contains(&format!("  in another launch, moire check k.ptx {launch}")), "{skip}: {out}");
        let (code, out, err) = check(&skipping(skip, "bar.sync 0;"), &[]);
        let listed = format!(": moire check k.ptx {launch}\n");
        assert!(code == Some(0) && out.contains(&listed), "{skip}: {out}{err}");
    }
}

#[test]
fn a_launch_that_the_user_chose_is_covered_or_bounded() {
    let tail = skipping("and.b32 %r6, %r0, 3;\nsetp.eq.u32 %p1, %r6, 3;", "");
    let (code, out, err) = check(&tail, &["--param", "1=8"]);
    assert!(code == Some(11) && out.starts_with("k.ptx: bounded(coverage)\n"), "{out}{err}");
    assert!(out.contains("not covered: bra (line 21) is never taken, it does with --param 1=3\n"), "{out}");
    let uncovered = &json(&tail, &["--param", "1=8"])["launch"]["coverage"]["uncovered"][0];
    let said =
        serde_json::json!({"line": 21, "text": "bra", "misses": "is never taken", "options": "--param 1=3"});
    assert_eq!(*uncovered, said);
    for format in ["sarif", "junit"] {
        let (code, out, _) = check(&tail, &["--param", "1=8", "--format", format]);
        assert!(code == Some(11) && (format == "junit" || out.contains("--param 1=3")), "{out}");
    }
    let second = skipping("setp.eq.u32 %p1, %r3, 1;", "bar.sync 0;");
    let (code, out, _) = check(&second, &["--grid", "2", "--param", "1=1"]);
    assert!(code == Some(11) && out.contains("it does with --grid 1,2\n"), "{out}");
    assert_eq!(check(&second, &["--grid", "1,2"]).0, Some(0));
}

/// A loop of `n` rounds around one word: thread 0 writes it in each round but the last, the others read it behind a barrier.
/// `end` stands at the end of a round.
fn rounds(end: &str) -> String {
    of_counts(&format!(
        "mov.u32 %r5, 0;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 bra E;\nL:\nadd.u32 %r5, %r5, 1;\nsetp.ge.u32 %p2, %r5, %r0;\n\
         @%p2 bra A;\n@%p0 st.shared.u32 [%r4], %r5;\nA:\nbar.sync 0;\nld.shared.u32 %r6, [%r4];\n{end}\n\
         setp.lt.u32 %p3, %r5, %r0;\n@%p3 bra L;\nE:"
    ))
}

#[test]
fn what_a_loop_does_runs_in_two_passes() {
    // With two rounds the word is written in the first only, and nothing is wrong.
    let (code, out, err) = check(&rounds(""), &["--param", "1=2"]);
    assert!(
        code == Some(11) && out.contains("runs in one pass of its loop only, it does with --param 1=3\n"),
        "{out}{err}"
    );
    let (code, out, err) = check(&rounds(""), &[]);
    assert!(
        code == Some(10)
            && out.contains("in another launch, moire check k.ptx --grid 2 --cluster 1 --param 1=3"),
        "{out}{err}"
    );
    assert_eq!(check(&rounds("bar.sync 0;"), &[]).0, Some(0));
    // Both stages of a ring have to be used again.
    let stage = ours("ring.ptx")
        .replace("mbarrier.init.shared::cta.b64 [%r2+24], 1;", "mbarrier.init.shared::cta.b64 [%r2+24], 2;");
    assert_eq!(check(&stage, &["--param", "0=3"]).0, Some(11));
    let (code, out, err) = check(&stage, &[]);
    assert!(code == Some(10) && out.contains("--param 0=4, hang: "), "{out}{err}");
}

#[test]
fn a_count_of_zero_that_hangs_is_named() {
    // The second warp waits for rounds of the first one, and there are none.
    let waits = of_counts(
        "@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;\nbar.sync 0;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bra P;\nW:\n\
         mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;\n@!%p2 bra W;\nbra E;\nP:\nsetp.eq.u32 %p3, %r0, 0;\n\
         @%p3 bra E;\n@%p0 mbarrier.arrive.shared::cta.b64 _, [%r4];\nE:\nbar.sync 0;",
    );
    let (code, out, err) = check(&waits, &[]);
    assert!(
        code == Some(0) && out.contains("taken for granted: parameter 1 is not 0; with 0: hang\n"),
        "{out}{err}"
    );
    let (code, out, err) = check(&waits, &["--param", "1=0"]);
    assert!(code == Some(10) && out.starts_with("k.ptx: hang\n"), "{out}{err}");
}

#[test]
fn a_hang_of_a_small_count_is_one_of_the_kernel() {
    // Three rounds are clean, one round hangs for every grid.
    let wrong = "OUT:\nsetp.eq.u32 %p5, %r0, 1;\nselp.b32 %r17, 96, 64, %p5;\nbar.sync 1, %r17;";
    let small = ours("ring.ptx").replace("OUT:", wrong);
    let (code, out, err) = check(&small, &[]);
    assert!(code == Some(10) && out.contains("--param 0=1, hang: "), "{out}{err}");
}

#[test]
fn ctas_that_cannot_be_told_apart_meet_at_a_flag() {
    let flag = ours("flag-release.ptx");
    let (code, out, err) = check(&flag, &[]);
    assert!(code == Some(0) && out.contains("clean: moire check k.ptx --grid 2"), "{out}{err}");
    let narrow = flag.replace("st.release.gpu", "st.release.cta");
    let (code, out, err) = check(&narrow, &[]);
    assert!(code == Some(10) && out.starts_with("k.ptx: race\n"), "{out}{err}");
}

/// Nine parameters decide branches that lead nowhere, and the tenth how often a loop goes round. Two warps store to one word in its
/// second round.
fn many_parameters() -> String {
    let params: Vec<String> = (0..10).map(|n| format!(".param .u32 p{n}")).collect();
    let nowhere = |n: usize| {
        format!(
            "ld.param.u32 %r0, [p{n}];\nsetp.eq.u32 %p, %r0, 0;\n@%p bra L{n};\nadd.u32 %r1, %r1, 1;\nL{n}:\n"
        )
    };
    format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry many(.param .u64 out, {})\n.reqntid 64\n{{\n\
         .reg .b32 %r<6>;\n.reg .b64 %rd<2>;\n.reg .pred %p;\n{}ld.param.u64 %rd0, [out];\nld.param.u32 %r2, [p9];\n\
         mad.lo.u32 %r2, %r2, %r2, %r2;\nshr.u32 %r2, %r2, 6;\nmov.u32 %r3, 0;\nmov.u32 %r4, 0;\nLOOP:\nsetp.eq.u32 %p, %r4, 0;\n@%p bra NEXT;\n\
         st.global.u32 [%rd0], %r4;\nbar.sync 0;\nNEXT:\nadd.u32 %r4, %r4, 1;\nadd.u32 %r3, %r3, 64;\n\
         setp.lt.u32 %p, %r3, %r2;\n@%p bra LOOP;\nret;\n}}\n",
        params.join(", "),
        (0..9).map(nowhere).collect::<String>()
    )
}

/// The trials are not used up by parameters that change nothing.
#[test]
fn the_last_of_many_parameters_gets_its_turn() {
    let (code, out, err) = check(&many_parameters(), &[]);
    assert!(code == Some(10) && !out.contains("in another launch"), "{code:?} {out}{err}");
}

#[test]
fn missing_parameters_are_chosen_and_named() {
    let ring = ours("ring.ptx");
    let (code, out, err) = check(&ring, &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("parameter 0 (ring_rounds) = 3 (assumed)"), "{out}");
    assert!(out.contains("assumed: parameter 0 = 3, which decides whether line "), "{out}");
    assert!(out.contains("repeat with: moire check k.ptx --grid 1 --cluster 1 --param 0=3\n"), "{out}");
    assert!(out.contains("    clean: moire check k.ptx --grid 1 --cluster 1 --param 0=1\n"), "{out}");
    let object = json(&ring, &[]);
    assert_eq!(
        (&object["launch"]["coverage"]["uncovered"], &object["launch"]["parameters"][0]["origin"]),
        (&Value::Array(vec![]), &"assumed".into())
    );
    // A mistake that shows in the second round only.
    let late = ring.replace("bfe.u32 %r9, %r5, 1, 1;", "mov.b32 %r9, 0;");
    assert_eq!(check(&late, &["--param", "0=1"]).0, Some(11));
    let (code, out, err) = check(&late, &[]);
    assert_eq!(code, Some(10), "{out}{err}");
    // A field of a structure, and a module without directives beside metadata.
    let field = ring.replace(".param .u32 ring_rounds", ".param .align 4 .b8 ring_rounds[12]");
    let field = field.replace("[ring_rounds]", "[ring_rounds+8]").replace(".reqntid 64", "");
    let (code, out, err) = check(&field, &["--block", "64", "--param", "0+8=4"]);
    assert!(code == Some(0) && out.contains("parameter 0+8 (ring_rounds) = 4 (given)"), "{out}{err}");
    let (_, out, _) = check(&field, &["--block", "64"]);
    assert!(out.contains("--block 64 --param 0+8=3\n"), "{out}");
    assert_eq!(check(&field, &["--block", "64", "--param", "0+12=2"]).0, Some(2));
}

#[test]
fn metadata_beside_a_module_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let module = stores("%rd2").replace(".reqntid 32", "");
    std::fs::write(folder.path().join("k.ptx"), module).unwrap();
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_moire"));
        let out = command.args(["check", "k.ptx"]).current_dir(folder.path()).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    assert!(run().contains("block 128 (assumed)"), "{}", run());
    std::fs::write(folder.path().join("k.json"), r#"{"num_warps": 2, "cluster_dims": [2, 1, 1]}"#).unwrap();
    let out = run();
    assert!(
        out.contains("grid 4 (assumed), cluster 2 (metadata beside it), block 64 (metadata beside it)"),
        "{out}"
    );
}

#[test]
fn a_module_is_judged_under_both_profiles() {
    let module = ours("unfenced.ptx");
    let (code, out, err) = check(&module, &[]);
    assert!(code == Some(0) && out.starts_with("k.ptx: clean\n"), "{out}{err}");
    let note =
        "contested(profile): by the letter race, lifetime; --profile letter lists it, --strict counts it\n";
    assert!(out.contains(note) && out.matches("contested(profile)").count() == 1, "{out}");
    assert!(out.contains("    race, lines 24, 29: practice relies on TQ7=B: "), "{out}");
    assert_eq!(check(&module, &["--strict"]).0, Some(10));
    let (code, out, _) = check(&module, &["--profile", "letter"]);
    assert!(code == Some(10) && out.starts_with("k.ptx: race, lifetime\n"), "{out}");
    let (code, out, _) = check(&module, &["--profile", "practice", "--strict"]);
    assert!(code == Some(0) && !out.contains("contested"), "{out}");
    let profile = &json(&module, &[])["parts"][0]["profile"];
    assert_eq!((&profile["name"], &profile["letter_only"]), (&"letter".into(), &true.into()));
    // Explanations have a budget of their own; verdicts do not depend on it.
    let (code, out, _) = check(&module, &["--explain-time", "0s"]);
    assert!(
        code == Some(0) && out.contains(note) && out.contains("not looked for in the time for explanations"),
        "{out}"
    );
    let (code, out, _) = check(&module, &["--profile", "letter", "--explain-time", "0s"]);
    let order = "missing: an order between line 24 and line 29";
    assert!(code == Some(10) && out.contains(order) && !out.contains("mend, "), "{out}");
    // A litmus text keeps the letter.
    let folder = tempfile::tempdir().unwrap();
    let text = b"moire \"t\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; }\nP1 (gpu 0, cta 1) { st.weak.u32 [x], 2; }\n";
    std::fs::write(folder.path().join("k.litmus"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_moire"));
    let out = command.args(["check", "k.litmus", "--strict"]).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.code() == Some(10) && text.contains("  under practice: race\n"), "{text}");
}

#[test]
fn a_lane_may_be_late_by_the_letter() {
    for (name, line) in [("late.ptx", "line 21: reading LW=B"), ("late-flag.ptx", "line 22: reading LW=B")] {
        let (code, out, err) = check(&ours(name), &[]);
        assert!(code == Some(0) && out.contains(line), "{name}: {out}{err}");
        assert!(out.contains("contested(profile): by the letter hang"), "{name}: {out}");
        let (code, out, err) = check(&ours(name), &["--profile", "letter"]);
        assert!(code == Some(10) && out.contains("hang: warp0_lanes1to31 "), "{name}: {out}{err}");
    }
    let (_, out, _) = check(&ours("late-met.ptx"), &[]);
    assert!(out.contains("by the letter: clean") && !out.contains("reading LW"), "{out}");
}

#[test]
fn every_target_of_a_table_has_its_turn() {
    let text = stores("%rd2").replace("out)", "out, .param .u32 what)").replace("%r<2>", "%r<4>");
    let table = "ld.param.u32 %r2, [what];\nand.b32 %r2, %r2, 1;\nts: .branchtargets ONE, DONE;\nbrx.idx %r2, ts;\nONE:\n";
    let text =
        text.replace("@%p bra DONE;\n", &format!("@%p bra DONE;\n{table}ld.global.u32 %r3, [%rd0+64];\n"));
    let (code, out, err) = check(&text, &[]);
    assert!(code == Some(0) && out.contains("parameter 1 (what) = "), "{out}{err}");
    let (code, out, err) = check(&text, &["--param", "1=1"]);
    assert!(code == Some(11) && out.starts_with("k.ptx: bounded(coverage)"), "{out}{err}");
    assert!(out.contains("brx.idx (line 20) never goes to line 22") && out.contains("--param 1=0"), "{out}");
}

#[test]
fn a_way_that_is_hard_to_reach_is_not_taken_to_be_impossible() {
    for (right, wrong, n) in [
        ("lane-beyond.ptx", "lane-beyond-early.ptx", 4096),
        ("table-second.ptx", "table-second-early.ptx", 16384),
        ("negative.ptx", "negative-early.ptx", 2147483648u32),
    ] {
        let (code, out, err) = check(&ours(right), &[]);
        assert!(code == Some(0) && !out.contains("left out"), "{right}: {out}{err}");
        let (code, out, err) = check(&ours(wrong), &[]);
        assert!(code == Some(11) && out.starts_with("k.ptx: bounded(coverage)"), "{wrong}: {out}{err}");
        let left = "race is left out, because a parameter may be too large, or negative; if such a launch is allowed, \
                    this decides: moire check k.ptx ";
        assert!(out.contains(left) && out.contains(&format!("--param 1={n}")), "{wrong}: {out}");
        let (code, out, err) = check(&ours(wrong), &["--param", &format!("1={n}")]);
        assert!(code == Some(10) && out.starts_with("k.ptx: race\n"), "{wrong}: {out}{err}");
    }
}

/// Sixteen updates of one word in any order, and a word that all four warps write.
fn many_executions() -> String {
    let update = "@%p atom.relaxed.gpu.global.add.u32 %r0, [%rd0], 1;\n".repeat(4);
    let body =
        format!("and.b32 %r0, %r1, 31;\nsetp.eq.u32 %p, %r0, 0;\n{update}@%p st.global.u32 [%rd0+4], %r1;");
    let text = stores("%rd0").replace(".reqntid 32", ".reqntid 128");
    let (head, _) = text.split_once("mul.wide").expect("the kernel computes an address");
    format!("{head}mov.u32 %r1, %tid.x;\n{body}\nret;\n}}\n")
}

#[test]
fn what_is_wrong_is_told_before_all_executions_are_visited() {
    let (code, out, err) = check(&many_executions(), &["--explain-time", "0s"]);
    assert!(code == Some(10) && out.contains("race"), "{out}{err}");
    assert!(out.starts_with("k.ptx: race (not explored to the end)\n"), "{out}");
}

/// The launch is not taken as it stands, but what is found in it is wrong in any case.
#[test]
fn a_broken_promise_is_a_race() {
    let (code, out, err) = check(&ours("read-back-nc.ptx"), &[]);
    assert!(code == Some(10) && out.starts_with("k.ptx: race\n"), "{out}{err}");
    assert!(out.contains("line 21") && out.contains("line 23"), "{out}");
}

#[test]
fn lanes_that_ask_together_may_get_different_answers() {
    let (code, out, err) = check(&ours("polled.ptx"), &[]);
    assert!(code == Some(0) && out.contains("line 19: reading OA=B"), "{out}{err}");
    assert!(out.contains("by the letter: abstained(lanes of a warp that ask together"), "{out}");
    let (code, out, err) = check(&ours("polled-peek.ptx"), &[]);
    assert!(
        code == Some(0) && out.contains("by the letter: clean") && !out.contains("reading"),
        "{out}{err}"
    );
}

#[test]
fn a_chain_of_clusters_has_three() {
    let (code, out, err) = check(&ours("token.ptx"), &[]);
    assert!(code == Some(0) && out.contains("--grid 3"), "{out}{err}");
    let early = ours("token-early.ptx");
    let (code, out, err) = check(&early, &[]);
    assert!(code == Some(11) && out.contains("race is left out"), "{out}{err}");
    assert!(out.contains("there are never three, it does with --grid 3"), "{out}");
    assert!(check(&early, &["--grid", "2"]).0 == Some(0) && check(&early, &["--grid", "3"]).0 == Some(10));
}

#[test]
fn many_kernels_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (own, one) = (stores("%rd2"), stores("%rd0").replace("ids", "clash"));
    let body = one.split_once(".visible").unwrap().1;
    std::fs::create_dir(folder.path().join("in")).unwrap();
    std::fs::write(folder.path().join("in/two.ptx"), format!("{own}.visible{body}")).unwrap();
    std::fs::write(folder.path().join("in/bad.ptx"), "nothing").unwrap();
    std::fs::write(folder.path().join("in/notes.txt"), "nothing").unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_moire"));
        let out = command.arg("check").args(args).current_dir(folder.path()).output().unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    let (code, out) = run(&["in", "--jobs", "3"]);
    assert_eq!(code, Some(2), "{out}");
    assert!(out.contains("in/two.ptx (ids): clean\n") && out.contains("in/two.ptx (clash): race\n"), "{out}");
    let table = "rejected  in/bad.ptx\nclean     in/two.ptx (ids)\nrace      in/two.ptx (clash)\n\
                 3 answers: 1 clean; 1 race; 1 rejected\n";
    assert!(out.ends_with(table), "{out}");
    assert_eq!(run(&["in", "--jobs", "1"]).1, out, "the number of jobs does not show");
    let (code, out) = run(&["in/two.ptx", "--entry", "ids"]);
    assert!(code == Some(0) && out.contains("--entry ids") && !out.contains("answers"), "{out}");
    let (code, out) = run(&["in/two.ptx", "--format", "json"]);
    assert_eq!((code, out.lines().count()), (Some(10), 2), "{out}");
    assert_eq!(run(&["."]).0, Some(2));
}

/// The last of two CTAs adds up what both have stored: with a fence it sees both, without it may miss one.
#[test]
fn a_stale_value_is_noted() {
    let kernel = |fence: &str| {
        format!(
            ".version 9.0\n.target sm_100a\n.address_size 64\n.global .u32 counter;\n\
             .visible .entry last(.param .u64 out)\n.reqntid 1\n{{\n.reg .b32 %r<8>;\n.reg .b64 %rd<6>;\n.reg .pred %p;\n\
             ld.param.u64 %rd0, [out];\nmov.u32 %r0, %ctaid.x;\nmul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd2, %rd0, %rd1;\n\
             st.volatile.global.u32 [%rd2], 7;\n{fence}\nmov.u64 %rd3, counter;\n\
             atom.global.add.u32 %r1, [%rd3], 1;\nsetp.ne.u32 %p, %r1, 1;\n@%p bra DONE;\n{fence}\n\
             ld.volatile.global.u32 %r2, [%rd0];\nld.volatile.global.u32 %r3, [%rd0+4];\nDONE:\nret;\n}}\n"
        )
    };
    let (code, out, err) = check(&kernel(""), &[]);
    assert!(code == Some(0) && out.starts_with("k.ptx: clean\n"), "{out}{err}");
    let note = "no race between lines 15 and 22, because these accesses are strong; a stale value is allowed at line 22\n";
    assert!(out.contains(note), "{out}");
    assert_eq!(json(&kernel(""), &[])["parts"][0]["stale"].as_array().unwrap().len(), 2);
    let (code, out, err) = check(&kernel("membar.gl;"), &[]);
    assert!(code == Some(0) && !out.contains("stale"), "{out}{err}");
}

/// A kernel in which one warp stores and the other one does something to the same memory, with nothing between, is not clean,
/// whatever that is.
#[test]
fn nothing_that_touches_memory_is_passed_over() {
    let module = |instruction: &str| {
        format!(
            ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 g)\n.reqntid 64\n{{\n\
             .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<16>; .shared .align 128 .b8 word[1024];\n\
             ld.param.u64 %rd0, [g]; cvta.to.global.u64 %rd1, %rd0; mov.u32 %r0, %tid.x; mov.u32 %r3, word;\n\
             setp.ne.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32; setp.ne.u32 %p2, %r0, 32;\n\
             @!%p0 st.shared.b32 [word], 1;\n@!%p0 st.global.b32 [%rd1], 1;\n@%p1 bra DONE;\n{instruction}\nDONE:\nret;\n}}\n"
        )
    };
    let found = [
        "ld.shared.b32 %r1, [word];",
        "ldu.global.b32 %r1, [%rd1];",
        "ld.relaxed.sys.global.L1::no_allocate.b32 %r1, [%rd1];",
        "ld.global.nc.b32 %r1, [%rd1];",
        "st.global.wt.b32 [%rd1], 2;",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r3];",
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r1};",
        "cp.async.ca.shared.global [word], [%rd1], 4;",
        "@!%p2 red.global.add.u32 [%rd1], 1;",
    ];
    let refused = [
        "wmma.load.a.sync.aligned.m16n16k16.shared.row.f16 {%r1,%r2,%r4,%r5,%r6,%r7,%r1,%r2}, [%r3];",
        "wmma.store.d.sync.aligned.m16n16k16.shared.row.f32 [%r3], {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7};",
        "discard.global.L2 [%rd1], 128;",
        "suld.b.1d.b32.trap %r1, [%rd2, {%r1}];",
        "sust.b.1d.b32.trap [%rd2, {%r1}], %r2;",
        "tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%rd2, {%r1}];",
        "st.bulk.weak.shared::cta [%rd2], 64, 0;",
        "multimem.red.global.add.u32 [%rd1], 1;",
        "trap;",
    ];
    let harmless = ["prefetch.global.L2 [%rd1];", "applypriority.global.L2::evict_normal [%rd1], 128;"];
    let all =
        found.map(|i| (i, 10)).into_iter().chain(refused.map(|i| (i, 11))).chain(harmless.map(|i| (i, 0)));
    for (instruction, code) in all {
        let (got, out, err) = check(&module(instruction), &[]);
        assert_eq!(got, Some(code), "{instruction}\n{out}{err}");
    }
}

#[test]
fn ctas_are_named_in_the_order_in_which_they_draw_numbers() {
    let (code, out, err) = check(&ours("draw.ptx"), &[]);
    assert!(code == Some(0) && out.starts_with("k.ptx: clean\n"), "{out}{err}");
    let note = "taken for granted: line 13 draws a number: CTAs are named in the order in which they draw";
    assert!(out.contains(note), "{out}");
    let (code, out, err) = check(&ours("draw-relaxed.ptx"), &[]);
    assert!(code == Some(10) && out.contains("race: ") && out.contains("line 26"), "{out}{err}");
    // The number of a CTA is another name of it.
    let named = ours("draw.ptx").replace("mov.u32 %r1, 1;", "mov.u32 %r1, %ctaid.x;");
    let (code, out, err) = check(&named, &[]);
    assert!(code == Some(11) && out.contains("an address that depends on"), "{out}{err}");
    // A CTA that draws twice is not known by one number.
    let twice = "atom.global.add.u32 %r0, [%rd0], 1;\n";
    let (code, out, err) = check(&ours("draw.ptx").replace(twice, &twice.repeat(2)), &[]);
    assert!(code == Some(11) && out.contains("an address that depends on"), "{out}{err}");
}

#[test]
fn a_kernel_that_names_other_ctas_gets_clusters() {
    let (code, out, err) = check(&ours("peer-unsaid.ptx"), &[]);
    assert!(code == Some(0) && out.contains("cluster 2 (assumed)"), "{out}{err}");
    let (code, out, err) = check(&ours("peer-unsaid-early.ptx"), &[]);
    assert!(code == Some(10) && out.contains("race: "), "{out}{err}");
    let (code, out, err) = check(&ours("peer-unsaid.ptx"), &["--cluster", "1"]);
    assert!(code == Some(11) && out.contains("outside the cluster"), "{out}{err}");
}

#[test]
fn launches_are_chosen_for_which_an_assumption_holds() {
    let (code, out, err) = check(&ours("assumed-tail.ptx"), &[]);
    assert!(code == Some(10) && out.contains("race: ") && out.contains("line 37"), "{out}{err}");
    for said in ["count % 64 == 0", "1 % 64 == 0"] {
        let (code, out, err) = check(&ours("assumed-tail.ptx"), &["--assume", said]);
        assert!(code == Some(0) && out.contains(&format!("what --assume says: {said}")), "{out}{err}");
    }
    let (code, out, err) = check(&ours("assumed-tail.ptx"), &["--assume", "1 % 64 != 0"]);
    assert!(code == Some(10) && out.contains("race: "), "{out}{err}");
    let (_, out, err) = check(&ours("assumed-tail.ptx"), &["--assume", "1 >= 64", "--param", "1=3"]);
    assert!(format!("{out}{err}").contains("is not what is assumed of it"), "{out}{err}");
    let (_, out, err) = check(&ours("assumed-tail.ptx"), &["--assume", "rows == 1"]);
    assert!(format!("{out}{err}").contains("there is no parameter rows"), "{out}{err}");
    let (code, out, err) = check(&ours("assumed-tail.ptx"), &["--assume", "1 == 1", "--assume", "1 == 2"]);
    let none = "no value below 1048576 is what is assumed of parameter 1";
    assert!(code == Some(2) && format!("{out}{err}").contains(none), "{out}{err}");
}
