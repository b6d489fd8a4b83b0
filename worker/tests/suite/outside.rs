//! Outside suites and tools, and the line that a test prints if one is missing.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Prints that a test did not run. The line bypasses the capture of the test harness, so passing tests show it too.
pub(crate) fn skipped(what: &str) {
    let line = format!("skipped: {what} is missing\n");
    std::io::stderr().write_all(line.as_bytes()).expect("the tests have a standard error");
}

/// Finds a file or folder beside this checkout, such as `shared/litmus`; prints a line if it is missing.
pub(crate) fn beside(path: &str) -> Option<PathBuf> {
    let checkout =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    let found = checkout.expect("tests run in a checkout").parent()?.join(path);
    if found.exists() {
        return Some(found);
    }
    skipped(&format!("../{path}"));
    None
}
