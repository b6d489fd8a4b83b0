//! What fuzzers found, run again: each target's claim over the inputs that are kept beside it (`fuzz/kept/TARGET`).
//!
//! The claims are the functions of the fuzz crates, so a target, its kept inputs and this test say the same.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[path = "../../../../worker/cat/fuzz/src/lib.rs"]
mod cat;
#[path = "../../../fuzz/src/lib.rs"]
mod coordinator;
#[path = "../../../../corpus/fuzz/src/lib.rs"]
mod corpus;
#[path = "../../../../corpus/program/fuzz/src/lib.rs"]
mod program;
#[path = "../../../../worker/fuzz/src/lib.rs"]
mod worker;

/// A target: the folder of its crate, its name, and what it claims of any bytes.
type Target = (&'static str, &'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("corpus/program/fuzz", "read", program::read),
    ("corpus/program/fuzz", "ptx", program::ptx),
    ("corpus/program/fuzz", "tile", program::tile),
    ("corpus/fuzz", "log", corpus::log),
    ("corpus/fuzz", "bundle", corpus::bundle),
    ("corpus/fuzz", "record", corpus::record),
    ("corpus/fuzz", "export", corpus::export),
    ("worker/cat/fuzz", "load", cat::load),
    ("worker/fuzz", "lease", worker::lease),
    ("worker/fuzz", "bytecode", worker::bytecode),
    ("worker/fuzz", "listing", worker::listing),
    ("worker/fuzz", "launches", worker::launches),
    ("coordinator/fuzz", "talk", coordinator::talk),
    ("coordinator/fuzz", "words", coordinator::words),
    ("coordinator/fuzz", "answer", coordinator::answer),
    ("coordinator/fuzz", "report", coordinator::report),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut out: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    out.sort();
    out
}

#[test]
fn kept_inputs_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut broken = Vec::new();
    for (folder, name, claim) in TARGETS {
        let inputs = files(&root.join(folder).join("kept").join(name));
        assert!(!inputs.is_empty(), "{folder}: nothing is kept of {name}");
        for input in inputs {
            let bytes = std::fs::read(&input).unwrap();
            if std::panic::catch_unwind(|| claim(&bytes)).is_err() {
                broken.push(input);
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_target_is_here() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders: BTreeSet<&str> = TARGETS.iter().map(|t| t.0).collect();
    let mut there = BTreeSet::new();
    for folder in folders {
        let targets = files(&root.join(folder).join("fuzz_targets"));
        there.extend(targets.iter().map(|t| format!("{folder} {}", t.file_stem().unwrap().display())));
    }
    let here: BTreeSet<String> = TARGETS.iter().map(|t| format!("{} {}", t.0, t.1)).collect();
    assert_eq!(here, there);
}
