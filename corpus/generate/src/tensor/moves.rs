//! Loads, stores and copies of tensor memory, of every shape and length: one warp moves, another one copies, stores or multiplies
//! there once it has heard of it.

use super::pair::Pair;
use crate::numbers::Choose;
use moire_program::ir::Program;

/// Shapes, each with the registers of a repetition and its columns.
const SHAPES: [(&str, usize, usize); 5] =
    [("32x32b", 1, 1), ("16x64b", 1, 2), ("16x128b", 2, 4), ("16x256b", 4, 8), ("16x32bx2", 1, 1)];
/// Registers of a move.
const REGISTERS: usize = 128;

/// Draws a program. `None` if the drawn text is refused.
pub fn moves(d: &mut dyn Choose) -> Option<Program> {
    let mut w = Pair { d, clusters: false };
    let (first, waited) = moved(&mut w);
    let fence = w.maybe("tcgen05.fence::before_thread_sync;\n");
    let first = first + &w.maybe(waited) + &fence + &w.arrive();
    let fence = w.maybe("tcgen05.fence::after_thread_sync;\n");
    let second = w.wait("L") + &fence + &second(&mut w);
    w.program(".tmem t[512];\n.shared .b8 a[128];\n", &first, &second)
}

/// A load or a store, and the wait for it.
fn moved(w: &mut Pair<'_>) -> (String, &'static str) {
    let (shape, registers, _) = w.d.pick(&SHAPES);
    let times = w.d.pick(&[1, 1, 2, 4, 8, 16, 32, 64, 128]).min(REGISTERS / registers);
    let half = if shape == "16x32bx2" { format!(", {}", w.d.pick(&[64, 128])) } else { String::new() };
    let names = |count: usize| (0..count).map(|n| format!("r{n}")).collect::<Vec<_>>().join(", ");
    let list = names(registers * times);
    match w.d.below(6) {
        0 | 1 => {
            let pack = w.d.pick(&["", "", ".pack::16b"]);
            let load = format!("tcgen05.ld.sync.aligned.{shape}.x{times}{pack}.b32 {{{list}}}, [t]{half};\n");
            (load, "tcgen05.wait::ld.sync.aligned;\n")
        }
        2 | 3 => {
            let pack = w.d.pick(&["", "", ".unpack::16b"]);
            let store =
                format!("tcgen05.st.sync.aligned.{shape}.x{times}{pack}.b32 [t]{half}, {{{list}}};\n");
            (store, "tcgen05.wait::st.sync.aligned;\n")
        }
        _ => {
            let (shape, half) = if half.is_empty() { ("32x32b", "") } else { (shape, &*half) };
            let (times, op) = (times.max(2), w.d.pick(&["min", "max"]));
            let how =
                w.d.pick(&[".f32", ".abs.f32", ".NaN.f32", ".abs.NaN.f32", ".u32", ".u32", ".s32", ".s32"]);
            let list = names(times);
            let load = format!(
                "tcgen05.ld.red.sync.aligned.{shape}.x{times}.{op}{how} {{{list}}}, red, [t]{half};\n"
            );
            (load, "tcgen05.wait::ld.sync.aligned;\n")
        }
    }
}

/// What the other warp does with the same columns.
fn second(w: &mut Pair<'_>) -> String {
    let at = w.d.pick(&["t", "t", "t+2", "t+64"]);
    match w.d.below(4) {
        0 => {
            let shape = w.d.pick(&[
                "128x256b",
                "4x256b",
                "128x128b",
                "64x128b.warpx2::02_13",
                "64x128b.warpx2::01_23",
                "32x128b.warpx4",
            ]);
            let widened = w.d.pick(&["", "", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"]);
            format!("tcgen05.cp.cta_group::1.{shape}{widened} [{at}], desc(a, 64);\n")
        }
        1 => format!("tcgen05.shift.cta_group::1.down [{at}];\n"),
        2 => format!(
            "tcgen05.mma.cta_group::1.kind::f16 [{at}], desc(a, 32), desc(a+32, 32), idesc(128, 16), 1;\n"
        ),
        _ => format!("tcgen05.st.sync.aligned.32x32b.x2.b32 [{at}+lane 32], {{r0, r1}};\n"),
    }
}
