//! Every command that prints results prints them as text, JSON, SARIF and JUnit, and JSON is of one schema: `deploy/schema/moire.json`.

use super::cli::moire;
use serde_json::{Value, json};
use std::path::Path;

/// The schema of all commands, with the schemas that it names.
fn schema(of: &str) -> Value {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let mut all = read(include_str!("../../../../deploy/schema/moire.json"));
    let named = [
        ("check.json", include_str!("../../../../deploy/schema/check.json")),
        ("findings.json", include_str!("../../../../deploy/schema/findings.json")),
    ];
    for (name, text) in named {
        let mut own = read(text);
        own["$id"] = name.into();
        all["$defs"][name] = own;
    }
    if of != "#" {
        all["anyOf"] = json!([{"$ref": of}]);
    }
    all
}

/// That a line is an object of a part of the schema.
pub(crate) fn fits(line: &str, of: &str) {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    let validator = jsonschema::validator_for(&schema(of)).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new(), "{of}: {value:#}");
    let whole = jsonschema::validator_for(&schema("#")).unwrap();
    assert!(whole.is_valid(&value), "{value:#}");
}

fn out(folder: &Path, words: &[&str]) -> String {
    let out = moire(folder, words);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(!text.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    text
}

/// What a command prints in each format. All lines of JSON are of one part of the schema.
fn formats(folder: &Path, words: &[&str], of: &str) {
    let print = |format: &str| out(folder, &[words, &["--format", format]].concat());
    assert!(serde_json::from_str::<Value>(&print("text")).is_err(), "{words:?}");
    let lines = print("json");
    assert!(lines.lines().count() > 0);
    lines.lines().for_each(|line| fits(line, of));
    let sarif: Value = serde_json::from_str(&print("sarif")).unwrap();
    let standard = include_str!("../../../tests/data/sarif-2.1.0.schema.json");
    let standard = jsonschema::validator_for(&serde_json::from_str(standard).unwrap()).unwrap();
    assert!(standard.is_valid(&sarif), "{words:?}: {sarif:#}");
    let junit = print("junit");
    assert!(junit.starts_with("<?xml") && junit.contains("<testsuites"), "{words:?}: {junit}");
}

#[test]
fn results_have_four_formats() {
    let folder = tempfile::tempdir().unwrap();
    let race = include_str!("../../../../deploy/examples/message.litmus");
    std::fs::write(folder.path().join("m.litmus"), race).unwrap();
    std::fs::write(folder.path().join("n.litmus"), race.replace("2 0 race", "2 0 clean")).unwrap();
    std::fs::write(folder.path().join("bad.litmus"), "moire \"t\"\nP0 {\n  st.weaj;\n}\n").unwrap();
    formats(folder.path(), &["check", "m.litmus", "bad.litmus"], "check.json");
    std::fs::remove_file(folder.path().join("bad.litmus")).unwrap();
    formats(folder.path(), &["test", "."], "#/$defs/case");
    let states = out(folder.path(), &["check", "--states", "m.litmus", "--format", "json"]);
    fits(states.trim(), "#/$defs/states");
    let fuzz = [
        "fuzz",
        "--oracle",
        "model-pair",
        "--model",
        "ptx-7.5",
        "--model",
        "any",
        "--programs",
        "60",
        "--store",
        "store",
    ];
    out(folder.path(), &fuzz);
    for words in [&["findings", "list", "--store", "store"][..], &["report", "--store", "store"]] {
        formats(folder.path(), words, "findings.json");
    }
    let night = [
        "nightly",
        "--campaign",
        "core=20",
        "--out",
        "out",
        "--store",
        "store",
        "--workers",
        "1",
        "--format",
        "json",
    ];
    out(folder.path(), &night).lines().for_each(|line| fits(line, "findings.json"));
}
