//! The command line as scripts see it: exit codes, where data goes, what bad input gets.

use std::path::Path;
use std::process::{Command, Output};

pub(crate) fn moire(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_moire"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the binary runs")
}

/// Exit code, and a part of what stderr says.
pub(crate) fn check(args: &[&str], files: &[(&str, &[u8])], code: i32, says: &str) {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let out = moire(folder.path(), args);
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.status.code(), Some(code), "{args:?}\n{stdout}\n{stderr}");
    assert!(
        stderr.contains(says) || stdout.contains(says),
        "{args:?} does not say {says}\n{stdout}\n{stderr}"
    );
}

const PROGRAM: &[u8] = b"moire \"t\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; }\n";

#[test]
fn usage() {
    check(&["--help"], &[], 0, "Exit codes");
    check(&["chek"], &[], 2, "check");
    check(
        &["fuzz", "--oracle", "slef"],
        &[],
        2,
        "there are self, model-pair, metamorphic, patterns, assembler",
    );
    check(&["fuzz", "--for", "5 days"], &[], 2, "no");
    check(&["replay", "nothing"], &[], 2, "no file, no id");
    check(&["replay", "m1.AAAA"], &[], 2, "damaged");
    check(&["replay", "m9.AAAA"], &[], 2, "format");
    check(&["findings", "list"], &[], 2, "there is no store");
    check(&["bisect", "p.litmus"], &[("p.litmus", PROGRAM)], 0, "every oracle agrees");
    check(&["nightly"], &[], 2, "--out");
    check(&["nightly", "--out", "o", "--campaign", "core"], &[], 2, "write STREAM=PROGRAMS");
    check(&["nightly", "--out", "o", "--runs", "0"], &[], 2, "--runs is 1 to 64");
    check(&["generate", "--count", "99999999999999999999999"], &[], 2, "99999999999999999999999");
    check(&["models", "show", "ptx-9"], &[], 2, "shipped are");
}

/// A copy and its reader share one stage.
const LOOPED: &str = "moire \"loop\"\n.shared .b8 a[64];\n.shared .b64 full;\n.shared .b64 empty;\n.global .b8 g[64];\n\
    P0 (gpu 0, cta 0) {\n  .reg ph = 1, p;\n  mbarrier.init.shared::cta.b64 [full], 1;\n  \
    mbarrier.init.shared::cta.b64 [empty], 1;\n  bar.sync 0;\n  repeat K {\nE:\n    \
    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [empty], ph;\n    @!p bra E;\n    \
    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [full], 64;\n    fence.proxy.async;\n    \
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a], [g], 64, [full];\n    xor.b32 ph, ph, 1;\n  }\n}\n\
    P1 (gpu 0, cta 0, warp 1) {\n  .reg ph, p, r;\n  bar.sync 0;\n  repeat K {\nF:\n    \
    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [full], ph;\n    @!p bra F;\n    ld.weak.shared::cta.b8 r, [a];\n    \
    mbarrier.arrive.release.cta.shared::cta.b64 _, [empty];\n    xor.b32 ph, ph, 1;\n  }\n}\n";

#[test]
fn loops_with_a_free_number() {
    let run = |text: &str, more: &[&str], code, says| {
        check(&[&["check", "l.litmus"], more].concat(), &[("l.litmus", text.as_bytes())], code, says);
    };
    run(LOOPED, &[], 0, "clean for every trip count: K (lines 11, 24)");
    run(LOOPED, &["--profile", "practice"], 0, "operational engine, practice:");
    run(LOOPED, &["--contest"], 0, "l.litmus: clean");
    run(LOOPED, &["--format", "json"], 0, "\"proved\":true");
    run(LOOPED, &["--trips", "K=2"], 0, "l.litmus: clean");
    run(LOOPED, &["--trips", "K=2", "--lowered"], 0, "bra U");
    run(LOOPED, &["--trips", "T=2"], 2, "there is no loop `T`; the free loops are K");
    let stuck = LOOPED.replace("ph = 1, p;", "ph, p;");
    run(&stuck, &[], 10, "confirmed by the explorer for K = 1");
    run(&stuck, &[], 10, "again: moire check l.litmus --trips K=1");
    run(&stuck, &["--trips", "K=1"], 10, "l.litmus: hang");
    let deaf = LOOPED.replace("    mbarrier.arrive.release.cta.shared::cta.b64 _, [empty];\n", "");
    run(&deaf, &[], 10, "confirmed by the explorer for K = 2");
    run(&deaf, &["--format", "json"], 10, "\"confirmed\":true");
    run(&LOOPED.replace("repeat K", "repeat 2"), &[], 0, "clean");
    run(&LOOPED.replace("repeat K {\nE", "repeat K { fence.sc.gpu;\nE"), &[], 11, "fence.sc");
    let ring = include_str!("../../../../corpus/litmus/loops/ring.litmus");
    run(ring, &[], 0, "clean for every trip count: K (lines ");
    run(ring, &[], 0, "confirmed by the explorer for 3 of 3 trip counts from K = 0 to K = 2");
    let early = include_str!("../../../../corpus/litmus/loops/arrive-before-expect.litmus");
    run(early, &[], 10, "[D4: a phase that may complete before an expect_tx]");
    run(early, &[], 10, "l.litmus: race, hang, protocol, early-pass");
    run(include_str!("../../../../corpus/litmus/loops/round-more.litmus"), &[], 10, "l.litmus: hang");
    let lapped = include_str!("../../../../corpus/litmus/loops/ring-lapped.litmus");
    run(lapped, &[], 10, "[D2: a wait that can be lapped]");
    run(lapped, &[], 10, "l.litmus: hang");
    run(lapped, &["--trips", "K=1"], 0, "l.litmus: clean");
    run(LOOPED, &["--model", "sc"], 11, "for the model sc");
    run(LOOPED, &["--model", "ptx:TQ4=B"], 11, "TQ4=B");
}

#[test]
fn kernels() {
    let file = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx").join(name);
        std::fs::read(path).expect("the module is there")
    };
    let ring = file("ring.ptx");
    let files: &[(&str, &[u8])] = &[("ring.ptx", &ring)];
    check(&["check", "ring.ptx", "--param", "0=4"], files, 0, "ring.ptx: clean");
    check(&["check", "ring.ptx"], files, 0, "--param 0=3");
    check(&["check", "ring.ptx", "--block", "32"], files, 2, "the kernel asks for --block 64,1,1");
    check(&["check", "ring.ptx", "--block", "0"], files, 2, "`0` is no size");
    check(&["check", "ring.ptx", "--param", "7=1"], files, 2, "there is no parameter 7");
    check(&["check", "ring.ptx", "--param", "0"], files, 2, "write INDEX=VALUE");
    check(&["check", "ring.ptx", "--entry", "rong"], files, 2, "the module has ring");
    check(&["check", "ring.ptx", "--param", "0=1", "--lowered"], files, 0, "mbarrier.try_wait");
    check(&["check", "ring.ptx", "--param", "0=4", "--format", "json"], files, 0, "\"clean\"");
    let stuck = file("stuck.ptx");
    check(&["check", "stuck.ptx"], &[("stuck.ptx", &stuck)], 10, "stuck.ptx: hang");
    let typo = String::from_utf8(ring.clone()).expect("text").replace("bar.warp.sync", "bar.wrap.sync");
    check(
        &["check", "ring.ptx"],
        &[("ring.ptx", typo.as_bytes())],
        2,
        "`bar.wrap.sync` is no instruction of PTX",
    );
    let target = String::from_utf8(ring).expect("text").replace("elect.sync", "elect.synk");
    check(&["check", "ring.ptx"], &[("ring.ptx", target.as_bytes())], 2, "ring.ptx:25:");
    check(&["check", "t.litmus", "--lowered"], &[("t.litmus", PROGRAM)], 2, "is about PTX modules and");
}

#[test]
fn tile_kernels() {
    let file = |name: &str| {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/tile").join(name))
            .expect("readable")
    };
    let (good, bad) = (file("mp_weak_token.tile"), file("mp_weak_bare.tile"));
    let files: &[(&str, &[u8])] = &[("good.tile", &good), ("bad.tile", &bad)];
    let two = ["--grid", "2"];
    let with = |name| [&["check", name][..], &two].concat();
    check(&with("good.tile"), files, 0, "good.tile: clean");
    check(&with("bad.tile"), files, 10, "bad.tile: undefined");
    check(&["check", "good.tile", "--model", "ptx"], files, 11, "under the model ptx");
    let views = String::from_utf8(good.clone()).expect("text").replace("%one = constant", "%one = constint");
    check(&with("typo.tile"), &[("typo.tile", views.as_bytes())], 2, "typo.tile:");
    // Floats that an atomic adds are bits, and that is said.
    let adds = b"entry @adds(%p: tile<ptr<f32>>) {
  %v = constant <f32: 1.0> : tile<f32>
  %r, %t = atomic_rmw_tko relaxed device %p, addf, %v : tile<ptr<f32>>, tile<f32> -> tile<f32>, token
  return
}
";
    let files: &[(&str, &[u8])] = &[("adds.tile", adds)];
    check(&with("adds.tile"), files, 0, "their bits are added as integers");
    // A litmus text with tile blocks is judged by their model, too.
    let across = file("../litmus/tile/atomics-across.litmus");
    let files: &[(&str, &[u8])] = &[("across.litmus", &across)];
    check(&["check", "across.litmus"], files, 0, "across.litmus: clean\n  under tile-ir:");
    check(&["check", "across.litmus", "--model", "ptx"], files, 11, "~exists is not decided");
}

#[test]
fn models() {
    check(
        &["models", "list", "--checks"],
        &[],
        0,
        "uniform-race             not empty (flag, reported at leaves)",
    );
    check(&["models", "show", "ptx"], &[], 0, "CausalityFR              irreflexive (monotone, prunes)");
    let cat: &[u8] = b"\"m\"\nempty rf as Mine\n";
    check(
        &["models", "show", "m.cat"],
        &[("m.cat", cat)],
        0,
        "Mine                     empty (monotone, prunes)",
    );
    check(&["models", "diff", "ptx-6.0", "ptx"], &[], 10, ": 1 thread, 2 memory events, 3 instructions\n");
    check(
        &["models", "diff", "m.cat", "sc:Q2=A"],
        &[("m.cat", cat)],
        10,
        "outcomes sc:Q2=A alone allows: 1\n",
    );
    check(
        &["models", "diff", "ptx", "ptx:Q7=B", "--size", "2"],
        &[],
        11,
        "ptx and ptx:Q7=B allow the same outcomes",
    );
    check(
        &["models", "diff", "ptx", "ptx", "--limit", "9"],
        &[],
        11,
        "cut by --limit 9 among the programs of 1 thread",
    );
    check(
        &["models", "diff", "tile-ir", "tile-ir:CAS=B"],
        &[],
        10,
        ": 1 thread, 3 memory events, 2 instructions\n",
    );
    check(
        &["models", "diff", "tile-ir", "tile-ir:CO=total", "--size", "3"],
        &[],
        11,
        "a race leaves this one undefined",
    );
    check(&["models", "diff", "tile-ir", "tile-ir:NTA=1", "--size", "9"], &[], 2, "can be tried up to");
    check(&["models", "diff", "ptx", "ptxx"], &[], 2, "did you mean `ptx`?");
    check(&["models", "diff", "ptx", "ptx:Q55=B"], &[], 2, "did you mean `Q15`?");
    check(&["models", "diff", "ptx", "ptx:Q5=C"], &[], 2, "its values are A, B");
    check(&["models", "diff", "ptx", "ptx:Q5"], &[], 2, "SWITCH=VALUE");
    check(&["models", "diff", "ptx", "m.cat"], &[], 2, "m.cat");
    check(&["models", "diff", "ptx", "sc", "--size", "99999999999999"], &[], 2, "can be tried up to");
}

/// Two products of different kinds pipeline in one of two published wordings only.
#[test]
fn a_disputed_reading_is_named() {
    let text = include_bytes!("../../../../corpus/litmus/tcgen05/mma-mma-kinds.litmus");
    let files: &[(&str, &[u8])] = &[("k.litmus", text)];
    check(&["check", "--contest", "k.litmus"], files, 10, "  contested(TQ1=B): clean\n");
    check(&["check", "--contest", "--model", "ptx:TQ1=B", "k.litmus"], files, 10, "contested(TQ1=A): race");
    check(
        &["check", "--contest", "--format", "json", "k.litmus"],
        files,
        10,
        "{\"setting\":\"TQ11=B\",\"verdicts\":[\"clean\"]}",
    );
}

/// `moire .. | head` and a full disk: no panic, and only the second is worth a word.
#[test]
fn nobody_reads_on() {
    let run = |out: std::process::Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_moire"));
        let child = command.args(["models", "show", "ptx"]).stdout(out).stderr(std::process::Stdio::piped());
        child.spawn().unwrap().wait_with_output().unwrap()
    };
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let out = run(writer.into());
    assert_eq!((out.status.code(), String::from_utf8_lossy(&out.stderr).as_ref()), (Some(0), ""));
    if let Ok(full) = std::fs::File::options().write(true).open("/dev/full") {
        let out = run(full.into());
        assert_eq!(out.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&out.stderr).starts_with("moire: cannot write the output"));
    }
}

#[test]
fn benches() {
    check(&["bench", "families", "--only", "mp", "--size", "4"], &[], 0, "mp(4)");
    check(
        &["bench", "families", "--only", "casrot", "--size", "3", "--format", "json"],
        &[],
        0,
        "\"complete\":5",
    );
    // Several are a process each.
    let two = ["bench", "families", "--only", "sb", "--only", "ainc", "--size", "4"];
    check(&two, &[], 0, "sb(4)");
    check(&two, &[], 0, "ainc(4)");
    check(&[&two[..], &["--format", "json"]].concat(), &[], 0, "},{\"blocked\":0,");
    check(&[&two[..], &["--model", "nothing"]].concat(), &[], 2, "nothing");
    let reduced =
        ["bench", "families", "--only", "ainc", "--size", "4", "--reduce", "all", "--format", "json"];
    check(&reduced, &[], 0, "\"complete\":24");
    check(&reduced, &[], 0, "\"complete\":1,");
    check(
        &["bench", "families", "--reduce", "reads,all"],
        &[],
        2,
        "`all` is no reduction; there are threads,",
    );
    check(&["bench", "reductions", "--programs", "16", "--workers", "2"], &[], 0, "0 differences");
    // Neither the fleet nor descents leave executions out.
    for other in [["--coordinator", "127.0.0.1:1"], ["--descents", "5"]] {
        let words = ["check", "t.litmus", "--reduce", "all", other[0], other[1]];
        check(&words, &[("t.litmus", PROGRAM)], 2, "cannot be used with");
    }
    check(&["bench", "families", "--only", "mq"], &[], 2, "`mq` is not a family; there are sb, lb,");
    check(&["bench", "families", "--size", "65"], &[], 2, "at most 64");
    check(&["bench", "selfcheck", "--programs", "0"], &[], 2, "compares nothing");
    let scale =
        ["bench", "scale", "--workers", "60", "--campaigns", "7", "--rounds", "2", "--findings", "2500"];
    check(&scale, &[], 0, "a report of all of them");
    check(&["bench", "minimise", "--findings", "1"], &[], 0, "ddmin");
}

/// A record says what the run said, and only of what was run.
#[test]
fn the_gpu_lane_runs_on_its_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    let run = |rest: &[&str]| {
        let small = ["gpu", "--count", "2", "--probability", "0.05"];
        let out = moire(folder.path(), &[&small[..], rest].concat());
        (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let seen = run(&["--stand-in", "--record", "runs.jsonl"]);
    assert!(seen.1.ends_with("2 programs run, 0 with a forbidden outcome\n"), "{seen:?}");
    assert_eq!((seen.0, &seen), (Some(0), &run(&["--replay", "runs.jsonl"])));
    let other = run(&["--replay", "runs.jsonl", "--seed", "2"]);
    assert!(other.0 == Some(2) && other.2.contains("of another program, strategy or seed"), "{other:?}");
    let fence =
        b"moire \"s\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; fence.proxy.alias; }\n";
    check(
        &["gpu", "s.litmus", "--stand-in"],
        &[("s.litmus", fence)],
        11,
        "1 not run: the GPU lane does not run fences of other proxies",
    );
    check(&["gpu", "p.litmus", "--kernel"], &[("p.litmus", PROGRAM)], 0, ".visible .entry run");
    check(&["gpu", "p.litmus"], &[("p.litmus", PROGRAM)], 2, "--stand-in");
    check(&["doctor"], &[], 0, "`moire gpu`");
}

/// The number of threads does not show.
#[test]
fn selfcheck_is_a_function_of_its_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let run = |workers: &str| {
        let args = [
            "bench",
            "selfcheck",
            "--stream",
            "core",
            "--programs",
            "40",
            "--seed",
            "5",
            "--model",
            "ptx",
            "--workers",
            workers,
        ];
        let out = moire(folder.path(), &args);
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    let one = run("1");
    assert!(one.1.contains("40 distinct programs under each of ptx"), "{}", one.1);
    assert!(one.1.ends_with("\n0 differences\n"), "{}", one.1);
    assert_eq!(one, run("3"));
}

/// What is noted after a part is what the whole finds, and only the same command goes on.
#[test]
fn reductions_are_compared_on_from_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let run = |programs: &str, rest: &[&str]| {
        let words = ["bench", "reductions", "--draw", "beside", "--programs", programs];
        let out = moire(folder.path(), &[&words[..], rest].concat());
        (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    assert_eq!(run("20", &["--keep", "done.json"]).0, Some(0));
    let rest = run("50", &["--keep", "done.json"]);
    assert_eq!((rest.0, &rest.1), (Some(0), &run("50", &["--workers", "1"]).1), "{}", rest.2);
    let other = run("50", &["--keep", "done.json", "--seed", "2"]);
    assert!(other.0 == Some(2) && other.2.contains("another command"), "{}", other.2);
}

/// A run that was stopped and goes on says what one run says, and goes on with nothing else.
#[test]
fn selfcheck_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let run = |programs: &str, rest: &[&str]| {
        let all = ["bench", "selfcheck", "--settings", "3", "--programs", programs];
        let out = moire(folder.path(), &[&all[..], rest].concat());
        (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let once = run("45", &[]);
    assert!(once.0 == Some(0) && once.1.starts_with("45 distinct programs under one of "), "{once:?}");
    assert_eq!(run("20", &["--keep", "done.json"]).0, Some(0));
    let rest = run("45", &["--keep", "done.json"]);
    assert!(rest.2.contains("20 programs are done"), "{}", rest.2);
    assert_eq!((rest.0, rest.1), (once.0, once.1));
    let other = run("45", &["--keep", "done.json", "--seed", "2"]);
    assert!(other.0 == Some(2) && other.2.contains("belongs to another command"), "{other:?}");
    std::fs::write(folder.path().join("done.json"), "{\"schema\":1}").unwrap();
    let broken = run("45", &["--keep", "done.json"]);
    assert!(broken.0 == Some(2) && broken.2.contains("is not a file of a self check"), "{broken:?}");
    let nowhere = run("3", &["--keep", "absent/done.json"]);
    assert!(nowhere.0 == Some(2) && nowhere.2.contains("writing absent/done.json"), "{nowhere:?}");
    let lock = std::fs::File::create(folder.path().join("held.json.lock")).unwrap();
    lock.lock().unwrap();
    let held = run("3", &["--keep", "held.json"]);
    assert!(held.0 == Some(2) && held.2.contains("another running command"), "{held:?}");
    // More candidates than most have, and another enumerator.
    let large = ["--pruned", "--candidates", "40000", "--least", "2000"];
    let large = run("3", &large);
    assert!(large.0 == Some(0) && large.1.contains("fewer candidates than wanted"), "{large:?}");
    check(&["bench", "selfcheck", "--least", "9", "--candidates", "8"], &[], 2, "nothing would count");
}

#[test]
fn bad_programs_and_models() {
    check(&["check", "p.litmus"], &[("p.litmus", PROGRAM)], 0, "clean");
    check(
        &["check", "p.litmus"],
        &[("p.litmus", b"moire \"t\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weaj.u32 [x], 1; }\n")],
        2,
        "p.litmus:3:",
    );
    check(
        &["check", "p.litmus"],
        &[("p.litmus", b"moire \"t\"\nP0 (gpu 0, cta 0) { fence.sc.galaxy; }\n")],
        2,
        "p.litmus:2:",
    );
    check(&["check", "p.litmus"], &[("p.litmus", b"moire \"\xff\"")], 2, "UTF-8");
    check(&["check", "absent.litmus"], &[], 2, "absent.litmus");
    // No model is chosen for a file that cannot be read, so the switch of another model is no error.
    check(&["check", "absent.tile", "--model", "tile-ir:CAS=B"], &[], 2, "cannot read absent.tile");
    let cat: &[u8] = b"\"m\"\ninclude \"m.cat\"\n";
    check(&["check", "--model", "m.cat", "p.litmus"], &[("m.cat", cat), ("p.litmus", PROGRAM)], 2, "m.cat:");
    let cat: &[u8] = b"\"m\"\nacyclic po | rrf as Broken\n";
    check(
        &["check", "--model", "m.cat", "p.litmus"],
        &[("m.cat", cat), ("p.litmus", PROGRAM)],
        2,
        "m.cat:2:",
    );
}

/// A model includes the file beside it; a shipped one only where there is none, and that is said.
#[test]
fn a_file_beside_the_model_comes_before_a_shipped_one() {
    let cat: &[u8] = b"\"m\"\ninclude \"lib-ptx.cat\"\n";
    let note = "include \"lib-ptx.cat\": the shipped one (none beside m.cat)";
    check(&["models", "show", "m.cat"], &[("m.cat", cat)], 0, note);
    let own: &[u8] = b"acyclic po | rrf as Broken\n";
    check(&["models", "show", "m.cat"], &[("m.cat", cat), ("lib-ptx.cat", own)], 2, "lib-ptx.cat:1:");
}

/// Static rules: errors reject, advice stands beside the verdict, each with its place.
#[test]
fn static_rules_have_places() {
    let illegal: &[u8] =
        b"moire \"t\"\n.global .b32 x;\nP0 (gpu 0, cta 0) {\n  bar.sync 16;\n  st.weak.u32 [x], 1;\n}\n";
    check(&["check", "p.litmus"], &[("p.litmus", illegal)], 2, "p.litmus:4:3: error: ");
    check(&["check", "p.litmus"], &[("p.litmus", illegal)], 2, "[form]\n4 |   bar.sync 16;\n  |   ^");
    let idle: &[u8] =
        b"moire \"t\"\n.global .b32 x;\nP0 (gpu 0, cta 0) {\n  fence.acq_rel.gpu;\n  st.weak.u32 [x], 1;\n}\n";
    check(&["check", "p.litmus"], &[("p.litmus", idle)], 0, "p.litmus:4:3: warning: ");
}

const HANGS: &[u8] =
    b"moire \"h\"\nP0 (gpu 0, cta 0) {\n  bar.sync 1, 64;\n}\nP1 (gpu 0, cta 0) {\n  bar.arrive 2, 64;\n}\n";

#[test]
fn reports_for_other_tools() {
    let folder = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8]); 3] = [
        ("good.litmus", PROGRAM),
        ("bad.litmus", b"moire \"t\"\nP0 {\n  st.weaj;\n}\n"),
        ("h&ng.litmus", HANGS),
    ];
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let run = |format: &str| {
        let args = ["check", "--format", format, "good.litmus", "bad.litmus", "h&ng.litmus", "absent.litmus"];
        let out = moire(folder.path(), &args);
        assert_eq!(out.status.code(), Some(2), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let sarif: serde_json::Value = serde_json::from_str(&run("sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let run_of = &sarif["runs"][0];
    let known: Vec<&str> = run_of["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["id"].as_str().unwrap())
        .collect();
    let results = run_of["results"].as_array().unwrap();
    for result in results {
        assert!(known.contains(&result["ruleId"].as_str().unwrap()), "{result}");
    }
    let of = |file: &str| -> Vec<(&str, Option<u64>)> {
        let place =
            |r: &'static str| move |v: &serde_json::Value| v["locations"][0]["physicalLocation"][r].clone();
        let here = results.iter().filter(|r| place("artifactLocation")(r)["uri"] == file);
        here.map(|r| (r["ruleId"].as_str().unwrap(), place("region")(r)["startLine"].as_u64())).collect()
    };
    assert_eq!(of("good.litmus"), []);
    assert_eq!(of("bad.litmus").len(), 1);
    assert!(of("h&ng.litmus").contains(&("hang", Some(3))), "{results:?}");
    assert_eq!(of("absent.litmus"), [("unread", None)]);

    let junit = run("junit");
    assert!(
        junit.contains("tests=\"4\"") && junit.contains("failures=\"1\"") && junit.contains("errors=\"2\""),
        "{junit}"
    );
    assert!(junit.contains("h&amp;ng.litmus"), "{junit}");
}

#[test]
fn a_campaign_ends_with_one_digest_and_its_lines_replay() {
    let folder = tempfile::tempdir().unwrap();
    let digest = |store: &str, workers: &str| {
        let out = moire(
            folder.path(),
            &["fuzz", "--stream", "core", "--programs", "600", "--store", store, "--workers", workers],
        );
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        let digest = text.lines().last().unwrap().to_owned();
        assert!(digest.starts_with("digest "), "{text}");
        (digest, text)
    };
    let (one, text) = digest("a", "1");
    assert_eq!(digest("b", "3").0, one);
    // Run again: nothing left to do, the same answer.
    assert_eq!(digest("a", "1").0, one);
    let empty = tempfile::tempdir().unwrap();
    for line in text.lines().filter_map(|l| l.trim().strip_prefix("moire replay ")) {
        let out = moire(empty.path(), &["replay", line]);
        assert_eq!(out.status.code(), Some(10), "{line}");
    }
    let line = text.lines().find_map(|l| l.trim().strip_prefix("moire replay ")).expect("models differ");
    let out = moire(empty.path(), &["bisect", line, "--format", "json"]);
    let tries = String::from_utf8(out.stdout).unwrap();
    tries.lines().for_each(|l| crate::formats::fits(l, "#/$defs/try"));
    assert!(
        tries.lines().all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok())
            && tries.contains("\"version\"")
    );
    let out = moire(folder.path(), &["store", "fsck", "--store", "a"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
}

/// What a store says of its findings, a coordinator on it says too; and it marks them.
#[test]
fn findings_of_a_coordinator_are_those_of_its_store() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let here = |args: &[&str]| {
        let out = moire(folder.path(), args);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    here(&["fuzz", "--stream", "core", "--programs", "600", "--workers", "2", "--store", "s"]);
    let list = here(&["findings", "list", "--store", "s"]);
    let id = list.split(' ').next().unwrap().to_owned();
    let shown = here(&["findings", "show", &id, "--store", "s"]);
    let mut server = Command::new(env!("CARGO_BIN_EXE_moire"))
        .args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--store", "s"])
        .current_dir(folder.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let says = lines.find(|l| l.as_ref().unwrap().starts_with("serving ")).unwrap().unwrap();
    let port = says.split("127.0.0.1:").nth(1).unwrap().split(|c: char| !c.is_ascii_digit()).next().unwrap();
    let there = format!("127.0.0.1:{port}");
    assert_eq!(here(&["findings", "list", "--coordinator", &there]), list);
    assert_eq!(here(&["findings", "show", &id, "--coordinator", &there]), shown);
    here(&["findings", "export", &id, "f.bundle", "--coordinator", &there]);
    let marked =
        ["findings", "mark", &id, "invalid", "--why", "a trial", "--who", "me", "--coordinator", &there];
    assert!(here(&marked).contains("invalid"));
    let unknown = moire(folder.path(), &["findings", "show", "00000000", "--coordinator", &there]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("the coordinator says"), "{unknown:?}");
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(here(&["findings", "show", &id, "--store", "s"]).contains("invalid by me: a trial"));
    assert_eq!(moire(folder.path(), &["replay", "f.bundle"]).status.code(), Some(10));
    let nobody = moire(folder.path(), &["findings", "list", "--coordinator", &there]);
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("`moire serve` starts one"), "{nobody:?}");
}

/// The answer of `moire check` as JSON fits the schema that is published.
pub(crate) fn fits_schema(answer: &serde_json::Value) {
    let schema = serde_json::from_str(include_str!("../../../../deploy/schema/check.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        schema.iter_errors(answer).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new(), "{answer:#}");
}
