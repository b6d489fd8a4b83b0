//! `moire check` on kernels that words of global memory steer: their numbers are chosen, stated and covered as those of parameters.

use std::path::Path;
use std::process::Command;

/// Exit code and output of `moire check` on a kernel of ours.
fn check(name: &str, args: &[&str]) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx");
    let out = Command::new(env!("CARGO_BIN_EXE_moire"))
        .args(["check", name, "--explain-time", "0s"])
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout) + &text(out.stderr))
}

/// Asserts the answer of a kernel, and that something stands in it.
fn answers(name: &str, args: &[&str], (code, verdict): (i32, &str), stands: &[&str]) {
    let (found, out) = check(name, args);
    assert!(
        found == Some(code) && out.starts_with(&format!("{name}: {verdict}")),
        "{args:?} {found:?} {out}"
    );
    stands.iter().for_each(|text| assert!(out.contains(text), "{name} {args:?}: no {text}\n{out}"));
}

const LENGTHS: &str = "words behind parameter 0 (lengths) = ";

#[test]
fn a_length_behind_a_pointer_is_chosen_and_stated() {
    let decides = "which decides whether line 28 branches to line ";
    answers(
        "words-length.ptx",
        &[],
        (0, "clean"),
        &[LENGTHS, "(assumed)", decides, "CTAs read different words"],
    );
    // The mistake needs a second round.
    answers("words-length-early.ptx", &[], (10, "race"), &[LENGTHS, "(assumed)", "--param '0[]'="]);
}

#[test]
fn lengths_are_given() {
    let given = "(lengths) = 1 (given)";
    answers("words-length-early.ptx", &["--param", "0[]=2"], (10, "race"), &["(lengths) = 2 (given)"]);
    // One round is no launch that covers the loop.
    answers("words-length-early.ptx", &["--param", "0[]=1"], (11, "bounded(coverage)"), &[given]);
    let args = ["--grid", "2", "--param", "0[0]=1", "--param", "0[4]=2"];
    let words = [
        "word 0 behind parameter 0 (lengths) = 1 (given)",
        "word 4 behind parameter 0 (lengths) = 2 (given)",
    ];
    answers("words-length-early.ptx", &args, (10, "race"), &words);
    let args = ["--grid", "2", "--param", "0[0]=1", "--param", "0[4]=1"];
    answers("words-length-early.ptx", &args, (11, "bounded(coverage)"), &[]);
}

#[test]
fn a_word_that_is_written_is_data() {
    let why = "abstained(a predicate (%p0) that depends on data loaded in line 19 (line 28))";
    answers("words-written.ptx", &[], (11, why), &[]);
}

#[test]
fn a_length_comes_into_shared_memory_by_a_copy() {
    let words = "words behind parameter 0+8 (lengths) = ";
    answers("words-copy.ptx", &[], (0, "clean"), &[words]);
    answers("words-copy-early.ptx", &[], (10, "race"), &[words]);
}

#[test]
fn words_that_decide_places_need_not_be_alike() {
    answers("words-row.ptx", &["--grid", "2", "--param", "0[]=1"], (11, "abstained(whether accesses"), &[]);
    let two = |a, b| answers("words-row.ptx", &["--grid", "2", "--param", "0[0]=3", "--param", a], b, &[]);
    two("0[4]=3", (10, "race"));
    two("0[4]=4", (0, "clean"));
}

#[test]
fn words_that_are_alike_hide_nothing() {
    let why = "abstained(words that are assumed to be alike and need not be";
    // One thread, or one warp, may make fewer rounds than the others.
    answers("words-lane.ptx", &[], (11, why), &[LENGTHS]);
    answers("words-warp.ptx", &[], (11, why), &[LENGTHS]);
    let two = |a, b| answers("words-warp.ptx", &["--param", "0[0]=2", "--param", a], b, &[]);
    two("0[4]=2", (11, "bounded(coverage)"));
    two("0[4]=1", (10, "race"));
    // Two CTAs may store to one row.
    answers("words-far.ptx", &["--grid", "2", "--param", "0[]=1"], (11, why), &[]);
    let two = |a, b| answers("words-far.ptx", &["--grid", "2", "--param", "0[0]=3", "--param", a], b, &[]);
    two("0[4]=3", (0, "clean"));
    two("0[4]=2", (10, "race"));
}

#[test]
fn words_are_data_where_kernels_come_one_after_another() {
    let args = ["--then", "words-row.ptx", "--param", "1:0=0:1", "--param", "0[]=1"];
    let (code, out) = check("words-length.ptx", &args);
    assert!(
        code == Some(2) && out.contains("a word behind a pointer has no value with --then"),
        "{code:?} {out}"
    );
}
