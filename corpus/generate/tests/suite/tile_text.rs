//! Programs of tile blocks as litmus texts: printing and reading gives the same program, and errors have positions.

use moire_generate::lowering::draw;
use moire_generate::tile_seed;
use moire_program::text::{Format, parse, print};

#[test]
fn printed_programs_parse_back() {
    let mut programs = 0;
    for index in 0..300 {
        for drawn in [tile_seed(3, index), draw(3, index)] {
            let Some(program) = drawn.program() else { continue };
            let text = print(&program);
            let read = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{index}: {e}\n{text}"));
            assert!(read == program, "{index}\n{text}\n{}", print(&read));
            programs += 1;
        }
    }
    assert!(programs > 500, "{programs}");
}

#[test]
fn errors_have_a_position_and_a_reason() {
    for (instruction, says) in [
        ("tile.st.acquire.gpu.u32 {[x], 1}", "no such order or operation"),
        ("tile.ld.release.gpu.u32 {[x] -> r}", "no such order or operation"),
        ("tile.ld.volatile.u32 {[x] -> r}", "is not a qualifier"),
        ("tile.ld.weak.global.u32 {[x] -> r}", "is not a qualifier"),
        ("tile.st.weak.f16x2 {[x], 1}", "not packed"),
        ("tile.st.weak.u32 {[x] -> r, 1}", "does not fit its access"),
        ("tile.ld.weak.u32 {[x] -> r, 1, 2}", "does not fit its access"),
        ("tile.atom.relaxed.gpu.cas.u32 {[x] -> r, 1}", "does not fit its access"),
        ("tile.atom.relaxed.gpu.inc.u32 {[x] -> r, 1}", "no such order or operation"),
        ("tile.atom.relaxed.add.u32 {[x] -> r, 1}", "no such order or operation"),
        ("tile.mask r, {}", "not an instruction of a tile block"),
        ("tile.join t, {t1 t2}", "expected `,`"),
    ] {
        let text = format!("moire \"t\"\n.global .b32 x;\nB0 (gpu 0, cta 0) {{\n  {instruction};\n}}\n");
        let error = parse(&text, Format::Native).expect_err(instruction).to_string();
        assert!(error.contains(says) && error.starts_with("4:"), "{instruction}: {error}");
    }
}
