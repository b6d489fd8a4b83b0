//! Advice on the command line: patches that make programs clean, and what could go.

use crate::cli::moire;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const EARLY: &str = "// A load in front of the wait for the copy.
moire \"early\"
.shared .b8 S[128];
.shared .b64 b;
.global .b8 source[1024];
t (gpu 0, cta 0, warp 0) {
  mbarrier.init.shared::cta.b64 [b], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 128;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [S], [source], 128, [b];
  ld.weak.shared::cta.b32 r0, [S];   // too early
L1:
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;
  @!p bra L1;
}
";

const SPARE: &str = "moire \"spare\"
.shared .b32 x;
P0 (gpu 0, cta 0) {
  st.weak.shared::cta.u32 [x], 1;
  fence.sc.sys;
  bar.sync 0;
}
P1 (gpu 0, cta 0) {
  bar.sync 0;
  ld.weak.shared::cta.u32 r0, [x];
}
";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Applies a patch in a folder, as people do.
fn patched(folder: &Path, program: &str, args: &[&str], diff: &str) {
    let mut child =
        Command::new(program).args(args).current_dir(folder).stdin(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().unwrap().write_all(diff.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{program} refuses\n{diff}");
}

fn verdict(folder: &Path, file: &str) -> (Option<i32>, String) {
    let out = moire(folder, &["check", file]);
    (out.status.code(), text(out.stdout))
}

/// A patch is all of stdout, `git apply` takes it, and the file is clean with it.
#[test]
fn a_patch_makes_the_file_clean() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("early.litmus"), EARLY).unwrap();
    let (code, report) = verdict(folder.path(), "early.litmus");
    assert!(code == Some(10) && report.contains("mend, explored again and clean"), "{report}");
    let out = moire(folder.path(), &["check", "--fix", "early.litmus"]);
    assert_eq!(out.status.code(), Some(10));
    let diff = text(out.stdout);
    assert!(diff.starts_with("--- early.litmus\n+++ early.litmus\n"), "{diff}");
    assert!(diff.lines().filter(|l| l.starts_with(['+', '-'])).count() <= 8, "{diff}");
    patched(folder.path(), "git", &["apply", "-p0"], &diff);
    let (code, report) = verdict(folder.path(), "early.litmus");
    assert_eq!(code, Some(0), "{report}");
    let fixed = std::fs::read_to_string(folder.path().join("early.litmus")).unwrap();
    assert!(fixed.starts_with("// A load in front"), "{fixed}");
}

#[test]
fn a_patch_goes_into_a_file_beside_any_format() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("early.litmus"), EARLY).unwrap();
    let out = moire(folder.path(), &["check", "--fix", "--format", "json", "early.litmus"]);
    assert_eq!(out.status.code(), Some(2));
    let out = moire(folder.path(), &["check", "--fix=p.diff", "--format", "json", "early.litmus"]);
    let object: serde_json::Value = serde_json::from_str(text(out.stdout).lines().next().unwrap()).unwrap();
    assert_eq!(object["parts"][0]["advice"]["weakest"], true, "{object}");
    let diff = std::fs::read_to_string(folder.path().join("p.diff")).unwrap();
    assert_eq!(object["parts"][0]["advice"]["patch"].as_str(), Some(diff.as_str()));
    // Nothing wrong, nothing to patch.
    std::fs::write(folder.path().join("spare.litmus"), SPARE).unwrap();
    let out = moire(folder.path(), &["check", "--fix", "spare.litmus"]);
    assert_eq!((out.status.code(), text(out.stdout).as_str()), (Some(0), ""));
}

#[test]
fn what_can_go_is_named_with_its_assumptions() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("spare.litmus"), SPARE).unwrap();
    let out = text(moire(folder.path(), &["check", "--redundant", "spare.litmus"]).stdout);
    assert!(out.contains("remove `fence.sc.sys`, line 5 of P0"), "{out}");
    assert!(!out.contains("remove `bar.sync 0`"), "{out}");
    assert!(out.contains("assumed: "), "{out}");
    let out = text(moire(folder.path(), &["check", "spare.litmus"]).stdout);
    assert!(!out.contains("redundant"), "{out}");
}

/// The patch of a module is lowered for the same launch and explored before it is printed.
#[test]
fn a_patch_of_a_module_makes_it_clean() {
    let folder = tempfile::tempdir().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx/unfenced.ptx");
    std::fs::copy(path, folder.path().join("unfenced.ptx")).unwrap();
    let letter = ["check", "--profile", "letter", "--explain-time", "60s"];
    let args = [&letter[..], &["--fix", "unfenced.ptx"]].concat();
    let out = moire(folder.path(), &args);
    let diff = text(out.stdout);
    assert_eq!(out.status.code(), Some(10), "{diff}");
    assert!(diff.contains("\n+    tcgen05.fence::before_thread_sync;\n"), "{diff}{}", text(out.stderr));
    patched(folder.path(), "patch", &["-p0", "-s"], &diff);
    let out = moire(folder.path(), &[&letter[..], &["unfenced.ptx"]].concat());
    assert_eq!(out.status.code(), Some(0), "{diff}{}", text(out.stdout));
}

/// Findings are in the words of the reader, and each has its line, those that only the engine knows too.
#[test]
fn findings_name_accesses_and_lines() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
    let report = |file: &str| {
        let out = text(moire(&corpus, &["check", "--explain-time", "0s", file]).stdout);
        out.lines().take_while(|l| !l.contains("in this execution, ")).collect::<Vec<_>>().join("\n")
    };
    let all = [
        ("consan/row20a-buggy.litmus", "generic write against async-proxy read of `"),
        ("tcgen05/no-dealloc.litmus", "tcgen05.alloc of `slot`"),
        ("tcgen05/dealloc-twice.litmus", "tcgen05.dealloc"),
        ("mbarrier/over-arrival.litmus", "mbarrier.arrive"),
        ("copies/wgmma-register.litmus", "race: "),
    ];
    for (file, says) in all {
        let out = report(file);
        let found = out.lines().find(|l| l.contains(says)).unwrap_or_else(|| panic!("{file}: {out}"));
        assert!(found.contains("line "), "{file}: {out}");
        assert!(out.contains(" | "), "{file} quotes no line: {out}");
    }
}

/// A kernel in which each thread stores a word and loads that of the thread with the opposite number.
const EXCHANGE: &str = ".version 9.0
.target sm_100a
.address_size 64
.visible .entry exchange(.param .u64 out)
.reqntid 64
{
    .reg .b32 %r<9>; .reg .b64 %d<4>;
    .shared .align 4 .b8 s[256];
    ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, s;
    shl.b32 %r2, %r0, 2;
    add.u32 %r3, %r1, %r2;
    st.shared.u32 [%r3], %r0;
    xor.b32 %r4, %r2, 252;
    add.u32 %r4, %r4, %r1;
    ld.shared.u32 %r5, [%r4];
    ret;
}
";

/// What every thread of a CTA runs is mended by one barrier of the CTA, in a line that all of them run.
#[test]
fn a_line_that_all_threads_run_gets_one_barrier() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("exchange.ptx"), EXCHANGE).unwrap();
    for launch in [&[][..], &["--grid", "2"]] {
        let out = moire(folder.path(), &[&["check", "--fix"], launch, &["exchange.ptx"]].concat());
        let diff = text(out.stdout);
        let added: Vec<&str> = diff.lines().skip(2).filter(|l| l.starts_with(['+', '-'])).collect();
        assert_eq!(added, ["+    bar.sync 0;"], "{launch:?} {diff}{}", text(out.stderr));
    }
    let out = moire(folder.path(), &["check", "--redundant", "exchange.ptx"]);
    assert!(text(out.stdout).contains("redundant: not asked: lanes of a warp are taken to move together"));
}

/// Updates that are lost need an order that no edit of the synchronisation adds. The answer names it, and `--fix` says why there is
/// no patch.
#[test]
fn what_has_no_advice_names_the_missing_order() {
    let folder = tempfile::tempdir().unwrap();
    let update = "ld.weak.u32 r0, [x];\n  add.u32 r0, r0, 1;\n  st.weak.u32 [x], r0;";
    let threads = [0, 1].map(|n| format!("P{n} (gpu 0, cta {n}) {{\n  {update}\n}}\n")).concat();
    std::fs::write(folder.path().join("lost.litmus"), format!("moire \"lost\"\n.global .b32 x;\n{threads}"))
        .unwrap();
    let out = moire(folder.path(), &["check", "lost.litmus"]);
    let report = text(out.stdout);
    assert!(
        report.contains("no advice: ") && report.contains("missing: an order between line 4 and line 11"),
        "{report}"
    );
    let out = moire(folder.path(), &["check", "--fix", "lost.litmus"]);
    assert_eq!(text(out.stdout), "");
    assert!(text(out.stderr).contains("lost.litmus: no patch: "));
}

/// A message between two CTAs, whose flag has this scope: nothing orders the data.
fn message(places: [&str; 2], scope: &str) -> String {
    let [p, q] = places;
    format!(
        "moire \"message\"\n.global .b32 data;\n.global .b32 flag;\n\
         P0 (gpu 0, {p}) {{ st.weak.u32 [data], 1; st.relaxed.{scope}.u32 [flag], 1; }}\n\
         P1 (gpu 0, {q}) {{ ld.relaxed.{scope}.u32 r0, [flag]; setp.ne.u32 p, r0, 1; @p bra E; ld.weak.u32 r1, [data]; E: }}\n"
    )
}

/// CTAs without a cluster are in none, so no advice speaks of one; those that the text puts into one are.
#[test]
fn advice_uses_clusters_only_where_the_text_does() {
    let folder = tempfile::tempdir().unwrap();
    let advice = |places: [&str; 2], scope: &str| {
        std::fs::write(folder.path().join("m.litmus"), message(places, scope)).unwrap();
        verdict(folder.path(), "m.litmus").1
    };
    let none = advice(["cta 0", "cta 1"], "gpu");
    assert!(
        none.contains("  mend, ") && none.contains(".release.gpu") && !none.contains(".cluster"),
        "{none}"
    );
    assert!(!none.contains("taken for granted"), "{none}");
    let one = advice(["cluster 0, cta 0", "cluster 0, cta 1"], "cluster");
    assert!(one.contains(".release.cluster") && !one.contains("taken for granted"), "{one}");
    // The scope is not narrower than that of the flag.
    let wide = advice(["cluster 0, cta 0", "cluster 0, cta 1"], "gpu");
    assert!(wide.contains(".release.gpu") && !wide.contains(".release.cluster"), "{wide}");
    let two = advice(["cluster 0, cta 0", "cluster 1, cta 1"], "gpu");
    assert!(two.contains(".release.gpu") && !two.contains(".release.cluster"), "{two}");
    // The scope `.cluster` in the text needs a cluster: one is taken, and said.
    let used = message(["cta 0", "cta 1"], "gpu").replace("st.relaxed.gpu", "st.release.cluster");
    std::fs::write(folder.path().join("m.litmus"), used.replace("ld.relaxed.gpu", "ld.acquire.cluster"))
        .unwrap();
    let (code, used) = verdict(folder.path(), "m.litmus");
    let said = "  taken for granted: line 4: the CTAs of a grid are one cluster: no thread names its `cluster`, and \
                `st.release.cluster.u32` uses it\n";
    assert!(code == Some(0) && used.contains(said), "{used}");
    let out = text(moire(folder.path(), &["check", "m.litmus", "--format", "json"]).stdout);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["taken"][0]["line"], 4, "{object}");
}

/// Two threads of a warp that do not name their lanes would each be alone at a barrier of the warp.
#[test]
fn an_ambiguous_warp_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let check = |places: [&str; 2]| {
        let [p, q] = places;
        let sync = "bar.warp.sync 3;";
        let text = format!(
            "moire \"w\"\n.shared .b32 x;\nP0 (gpu 0, cta 0{p}) {{ st.weak.u32 [x], 1; {sync} }}\n\
             P1 (gpu 0, cta 0{q}) {{ {sync} ld.weak.u32 r0, [x]; }}\n"
        );
        std::fs::write(folder.path().join("w.litmus"), text).unwrap();
        let out = moire(folder.path(), &["check", "w.litmus"]);
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    for places in [["", ""], [", lane 0", ""], [", warp 2", ", warp 2, lane 1"]] {
        let (code, said) = check(places);
        assert!(
            code == Some(2) && said.contains("w.litmus:3:") && said.contains("[ambiguous-warp]"),
            "{said}"
        );
        assert!(
            said.contains("write `lane 0`, `lane 1`, ..") && said.contains("P1 is in this warp too"),
            "{said}"
        );
    }
    assert_eq!(check([", lane 0", ", lane 1"]).0, Some(0));
}
