//! `moire bench attacks` in its short form: one small campaign under attack.

use crate::cli::moire;

#[test]
fn honest_workers_do_not_feel_hostile_ones() {
    let folder = tempfile::tempdir().unwrap();
    // Other tests run beside it, so a time says little here.
    let args = ["bench", "attacks", "--for", "1s", "--programs", "200", "--answer", "30s"];
    let out = moire(folder.path(), &args);
    let (table, said) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    println!("{table}");
    assert_eq!(out.status.code(), Some(0), "{table}\n{said}");
    assert!(table.contains("holds") && !table.contains("FAILED"), "{table}");
}
