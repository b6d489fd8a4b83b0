//! Outside suites and tools, and the one line that a test prints where one of them is missing.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Says that a test did not run. The line goes past the capture of the test harness, so a test that passes says it too.
pub(crate) fn skipped(what: &str) {
    let line = format!("skipped: {what} is not here\n");
    std::io::stderr().write_all(line.as_bytes()).expect("the tests have a standard error");
}

/// A file or folder beside this checkout, such as `shared/litmus`; says so where it is missing.
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
