//! `moire bench mutants` from outside: a sample of mistakes in our own texts and modules.

use crate::cli::moire;
use std::path::{Path, PathBuf};
use std::process::Output;

fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(path)
}

/// A run of the sample, as far as the time given to it.
fn sample(folder: &Path, time: &str) -> (Option<i32>, String) {
    let texts = own("litmus/mp").display().to_string();
    let modules =
        ["handoff.ptx", "product.ptx", "remote.ptx"].map(|m| own("ptx").join(m).display().to_string());
    let (modules, sizes) = (modules.join(","), ["--protocols", "2", "--mutants", "48", "--budget", "120s"]);
    let words = [
        "bench",
        "mutants",
        "--list",
        "--keep",
        "notes",
        "--for",
        time,
        "--from",
        &texts,
        "--modules",
        &modules,
    ];
    let out: Output = moire(folder, &[&words[..], &sizes].concat());
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned() + &said)
}

#[test]
fn a_sample_of_mistakes_is_found_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = sample(folder.path(), "0s");
    assert_eq!(code, Some(11), "{said}");
    assert!(said.contains("0 of 48 mutants tried"), "{said}");
    let (code, first) = sample(folder.path(), "1h");
    println!("{first}");
    assert!(matches!(code, Some(0 | 11)), "{first}");
    assert!(first.contains("48 of 48 mutants tried"), "{first}");
    for table in ["| programs |", "| modules |"] {
        let rows = first.split(table).nth(1).unwrap();
        let all = rows.lines().find(|row| row.starts_with("| all |")).unwrap();
        let caught: u32 = all.split(" | ").nth(3).unwrap().parse().unwrap();
        assert!(caught > 0, "{table} {first}");
    }
    // All of it is noted, and nothing is judged again.
    let (_, second) = sample(folder.path(), "0s");
    assert!(second.contains("48 of 48 mutants tried"), "{second}");
}
