//! Outside kernels whose right answer is known: `../shared/pairs`, `../shared/false-clean`, and the kernels that rely on
//! readings of practice. Where they are not there, the tests say so and pass.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Halves that take minutes: 64 remote reductions of single words, one of them for each lane.
const LONG: &[&str] = &["redasync.right", "redasync.wrong"];

/// Halves that are not decided, each with the reason. The list may only shrink.
const UNDECIDED: &[(&str, &str)] = &[
    ("dataaddr.wrong", "whether accesses to places that data decides meet"),
    ("datauniform.wrong", "a predicate (p) that depends on data"),
    ("weakspin.wrong", "a predicate (p) that depends on data"),
];

/// Right halves that are wrong. In `clc` lane `i` stores eight bytes at 4 `i`: its upper half overlaps the lower half of the
/// next lane, and the address of each second lane is not aligned.
const MISTAKEN: &[(&str, &str)] = &[("clc.right", "race")];

/// Wrong halves that are wrong by the letter only, and wrong halves whose mistake no launch shows that is tried.
const NOT_SHOWN: &[&str] = &["tmem-waitld.wrong", "tailpath.wrong"];

fn shared(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder);
    let Ok(entries) = std::fs::read_dir(&root) else {
        eprintln!("skipped: no modules at {}", root.display());
        return Vec::new();
    };
    let mut out: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    out.retain(|p| p.extension().is_some_and(|e| e == "ptx"));
    out.sort();
    out
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The answer of `moire check` as JSON.
fn answer(path: &Path, args: &[&str]) -> Value {
    let out = Command::new(env!("CARGO_BIN_EXE_moire"))
        .args(["check", "--format", "json"])
        .args(args)
        .arg(path)
        .output()
        .expect("the binary runs");
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn verdicts(answer: &Value) -> Vec<String> {
    let all = answer["verdicts"].as_array().expect("an answer has verdicts");
    all.iter().map(|v| v.as_str().unwrap_or_default().to_owned()).collect()
}

/// What is wrong with the answer for a half, if anything.
fn fault(path: &Path) -> Option<String> {
    let name = stem(path);
    let got = verdicts(&answer(path, &[]));
    let clean = got == ["clean"];
    let (right, said) = (name.ends_with(".right"), got.join(", "));
    let listed = |all: &[(&str, &str)]| all.iter().find(|l| l.0 == name).map(|l| l.1.to_owned());
    let fits = match (listed(UNDECIDED), listed(MISTAKEN)) {
        (Some(why), _) => said.starts_with("abstained(") && said.contains(&why),
        (None, Some(want)) => said == want,
        (None, None) if right => clean,
        (None, None) if NOT_SHOWN.contains(&name.as_str()) => true,
        (None, None) => !clean && !said.starts_with("abstained("),
    };
    (!fits).then(|| format!("{name}: {said}"))
}

#[test]
fn pairs_have_the_verdict_of_their_half() {
    let mut all = shared("pairs");
    all.retain(|p| !LONG.contains(&stem(p).as_str()));
    let wrong: Vec<String> = all.iter().filter_map(|p| fault(p)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Mutants that were clean once. One of them is right: only thread 0 acts behind the barrier that it lacks.
#[test]
fn what_was_falsely_clean_is_not_clean() {
    let clean = |p: &PathBuf| verdicts(&answer(p, &[])) == ["clean"];
    let left: Vec<String> = shared("false-clean").iter().filter(|p| clean(p)).map(|p| stem(p)).collect();
    assert!(left.is_empty() || left == ["hcl.gridgen.del-bar.67"], "{left:?}");
}

/// A row of the table in the guide: kernel, what moire check gets behind it, reading, lines.
struct Row {
    kernel: String,
    arguments: Vec<String>,
    reading: String,
    lines: BTreeSet<u64>,
}

fn rows() -> Vec<Row> {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/guide/readings.md");
    let text = std::fs::read_to_string(guide).expect("the guide has the table");
    let cell = |c: &str| c.trim().trim_matches('`').to_owned();
    let row = |line: &str| {
        let cells: Vec<String> = line.trim_matches('|').split('|').map(cell).collect();
        let [kernel, arguments, reading, lines, ..] = cells.as_slice() else { return None };
        let lines: BTreeSet<u64> = lines.split(", ").filter_map(|l| l.parse().ok()).collect();
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        let (kernel, reading) = (kernel.clone(), reading.clone());
        (!lines.is_empty()).then_some(Row { kernel, arguments, reading, lines })
    };
    text.lines().filter(|l| l.starts_with("| `")).filter_map(row).collect()
}

/// The readings on which a kernel relies, each with its lines: `BW=B`, or `mistake` for what is wrong under practice, too.
fn relied(answer: &Value) -> Vec<(String, BTreeSet<u64>)> {
    let lines = |findings: &Value| -> BTreeSet<u64> {
        let all = findings.as_array().into_iter().flatten();
        all.flat_map(|f| f["places"].as_array().into_iter().flatten())
            .filter_map(|p| p["line"].as_u64())
            .collect()
    };
    let mut out = Vec::new();
    for part in answer["parts"].as_array().into_iter().flatten() {
        out.push(("mistake".to_owned(), lines(&part["findings"])));
        for unwritten in part["profile"]["contested"].as_array().into_iter().flatten() {
            let all = unwritten["relies"].as_array().into_iter().flatten();
            let settings: Vec<&str> = all.filter_map(|r| r["setting"].as_str()).collect();
            out.push((settings.join(" "), lines(&unwritten["findings"])));
        }
    }
    out
}

/// Readings are told apart by explorations. Their number is enough of a bound here, so that a busy machine changes nothing.
const EXPLAIN: [&str; 2] = ["--explain-time", "3600"];

#[test]
fn kernels_rely_on_the_readings_of_the_table() {
    let rows = rows();
    assert!(rows.len() > 3, "the table is read");
    let (mut answers, mut wrong) = (BTreeMap::new(), Vec::new());
    for Row { kernel, arguments, reading, lines } in rows {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(&kernel);
        if !path.exists() {
            eprintln!("skipped: no {kernel}");
            continue;
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(EXPLAIN).collect();
        let key = (kernel.clone(), arguments.join(" "));
        let found = answers.entry(key).or_insert_with(|| relied(&answer(&path, &arguments)));
        if !found.iter().any(|(r, l)| *r == reading && lines.is_subset(l)) {
            wrong.push(format!("{kernel}: {reading} at {lines:?} is not among {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
