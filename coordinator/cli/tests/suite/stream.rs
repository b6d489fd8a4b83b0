//! Kernels of one stream: `corpus/ptx/stream`, with what `EXPECT.tsv` there expects of each command.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx/stream")
}

fn check(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_moire"))
        .arg("check")
        .args(words)
        .current_dir(folder())
        .output()
        .expect("the binary runs")
}

fn said(words: &[&str]) -> (Option<i32>, String) {
    let out = check(words);
    let text = [out.stdout, out.stderr].concat();
    (out.status.code(), String::from_utf8(text).unwrap())
}

/// The answer as JSON, which fits the schema that is published.
fn json(words: &[&str]) -> Value {
    let out = check(&[words, &["--format", "json", "--explain-time", "0s"]].concat());
    let answer = serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)));
    crate::cli::fits_schema(&answer);
    answer
}

/// The lines of each finding.
fn findings(answer: &Value) -> Vec<BTreeSet<u64>> {
    let all = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let lines = |finding: &Value| all(finding, "places").iter().filter_map(|p| p["line"].as_u64()).collect();
    all(answer, "parts").iter().flat_map(|p| all(p, "findings")).map(|f| lines(&f)).collect()
}

#[test]
fn kernels_of_one_stream_have_the_expected_verdict() {
    let table = std::fs::read_to_string(folder().join("EXPECT.tsv")).expect("the table is there");
    let mut wrong = Vec::new();
    for row in table.lines().skip(1) {
        let [command, expected, lines] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let answer = json(&command.split(' ').collect::<Vec<_>>());
        let wanted: BTreeSet<u64> = lines.split(' ').filter_map(|n| n.parse().ok()).collect();
        let found = findings(&answer);
        let right = if wanted.is_empty() { found.is_empty() } else { found.contains(&wanted) };
        let verdicts = answer["verdicts"].as_array().cloned().unwrap_or_default();
        let said = verdicts.iter().all(|v| v.as_str().is_some_and(|v| v.starts_with(expected)));
        if verdicts.is_empty() || !said || !right {
            wrong.push(format!("{command}: {} at {found:?}", answer["verdicts"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_kernels_have_in_common_is_said() {
    let (code, text) = said(&["produce.ptx", "--then", "consume.ptx"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("consume.ptx: nothing says which memory consume has in common"), "{text}");
    assert!(text.contains("produce has 0:0 (produce_in), 0:1 (produce_out)"), "{text}");
    for (wrong, why) in [
        ("1:0=1:1", "parameter 1:0 = 1:1: the grid is not ahead of it"),
        ("1:0=0:2", "there is no such parameter"),
        ("1:2=0:1", "there is no such parameter"),
        ("2:0=0:1", "there is no kernel 2"),
        ("0:0=0:1", "a parameter is one of a kernel ahead of its own"),
    ] {
        let (code, text) = said(&["produce.ptx", "--then", "consume.ptx", "--param", wrong]);
        assert!(code == Some(2) && text.contains(why), "{wrong}: {text}");
    }
    let twice = ["produce.ptx", "--then", "consume.ptx", "--param", "1:0=0:1", "--param", "1:0=64"];
    assert!(said(&twice).1.contains("a parameter is given twice"));
    let several = said(&["produce.ptx", "--then", "pair.ptx"]).1;
    assert!(several.contains("the module has several kernels, name one: fill, sum, sum_early"), "{several}");
}

#[test]
fn each_kernel_and_each_line_is_named() {
    let words = ["produce.ptx", "--then", "consume-early.ptx", "--param", "1:0=0:1"];
    let (code, text) = said(&words);
    assert_eq!(code, Some(10), "{text}");
    for line in [
        "produce.ptx, then consume-early.ptx: race",
        "  grid 1 is consume_early: grid 1",
        "parameter 0 is parameter 1 of grid 0",
        "repeat with: moire check produce.ptx --grid 2 --cluster 1 --then consume-early.ptx --grid 1:1 --cluster 1:1 --param 1:0=0:1",
        "line 1001 is the first of consume-early.ptx",
        "grid 1 (consume_early) is launched as a dependent",
        "the pointers in parameters 0:0, 0:1, 1:1 point to different memory",
        "consume-early.ptx:17",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(
        !text.contains("one grid is judged") && !text.contains("it is assumed that no grid ahead"),
        "{text}"
    );
    let answer = json(&words);
    assert_eq!(answer["lines"]["1017"]["file"]["line"], 17, "{answer:#}");
    assert_eq!(answer["launch"]["then"][0]["same"][0]["of"], 1, "{answer:#}");
    let sarif = said(&[&words[..], &["--format", "sarif"]].concat()).1;
    assert!(sarif.contains("produce.ptx"), "{sarif}");
}

#[test]
fn kernels_behind_others_are_covered() {
    let words = ["produce.ptx", "--then", "half.ptx", "--grid", "1:1", "--param", "1:0=0:1"];
    let (code, text) = said(&words);
    assert!(code == Some(11) && text.contains("bounded(coverage)"), "{text}");
    assert!(text.contains("coverage of grid 1"), "{text}");
}

#[test]
fn only_modules_are_launched_one_after_another() {
    let litmus = "../../litmus/grids/wait.litmus";
    for words in [["produce.ptx", "--then", litmus], [litmus, "--then", "produce.ptx"]] {
        let (code, text) = said(&words);
        assert!(code == Some(2) && text.contains("--then is about PTX modules"), "{text}");
    }
}
