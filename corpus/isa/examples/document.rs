//! Prints the page of the documentation, `deploy/guide/instructions.md`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(moire_isa::page().as_bytes())
}
