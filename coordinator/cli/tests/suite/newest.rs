//! Kernels of the newest compilers: `corpus/ptx/newest`, with what `EXPECT.tsv` there expects of each, with no option.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Kernels that take long: `tl-gemm` after its mistake has been found, `cu-staged` without an answer.
const LONG: &[&str] = &["tl-gemm", "cu-staged"];
/// Kernels that are not decided: executions of too many events.
const OPEN: &[&str] = &["tr-stream-k", "tr-stream-k-bug"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx/newest")
}

fn answer(name: &str) -> Value {
    let words = ["check", "--format", "json", "--explain-time", "0s"];
    let path = folder().join(format!("{name}.ptx"));
    let out =
        Command::new(env!("CARGO_BIN_EXE_moire")).args(words).arg(path).output().expect("the binary runs");
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The lines that findings name.
fn lines(value: &Value, all: &mut BTreeSet<u64>) {
    match value {
        Value::Object(map) => {
            all.extend(map.get("line").and_then(Value::as_u64));
            map.values().for_each(|v| lines(v, all));
        }
        Value::Array(list) => list.iter().for_each(|v| lines(v, all)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What is wrong with the answer for a row of the table, if anything.
fn fault(row: &str) -> Option<String> {
    let cells: Vec<&str> = row.split('\t').collect();
    let [name, _, expected, wanted, ..] = cells.as_slice() else { return Some(format!("no row: {row}")) };
    let told = answer(name);
    let said: Vec<&str> =
        told["verdicts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut named = BTreeSet::new();
    let parts = told["parts"].as_array().into_iter().flatten();
    for part in parts {
        lines(&part["findings"], &mut named);
        lines(&part["second"]["findings"], &mut named);
    }
    let any = |group: &str| group.split('|').any(|line| line.parse().is_ok_and(|line| named.contains(&line)));
    if OPEN.contains(name) {
        let open = said.iter().all(|word| word.starts_with("abstained"));
        return (!open).then(|| format!("{name}: {}, not abstained", said.join(", ")));
    }
    let clean = *expected == "clean" && said == ["clean"];
    // A hang says who waits and for what. Its line is that of the last event before, so it is not compared.
    let there = *expected == "hang" || wanted.split_whitespace().all(any);
    let found = *expected != "clean" && said.contains(expected) && there;
    (!clean && !found)
        .then(|| format!("{name}: {} at {named:?}, not {expected} at {wanted}", said.join(", ")))
}

#[test]
fn kernels_of_the_newest_compilers_have_the_expected_verdict() {
    let table = std::fs::read_to_string(folder().join("EXPECT.tsv")).expect("the table is there");
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(rows.len(), 32, "every kernel has a row");
    let asked = rows.iter().filter(|row| !LONG.iter().any(|name| row.starts_with(&format!("{name}\t"))));
    let wrong: Vec<String> = asked.filter_map(|row| fault(row)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
