//! Two phases of one barrier, and an arrival that another one comes before: it joins no earlier phase, and who waits for the first
//! phase sees what came before the first arrival.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;

/// Draws a program. `None` if the drawn text is refused.
pub fn phases(d: &mut dyn Choose) -> Option<Program> {
    let scope = d.pick(&["cta", "cta", "gpu", "sys"]);
    let space = d.pick(&["global", "shared::cta"]);
    let (hands, takes) = match d.below(6) {
        0 => (
            format!("st.relaxed.{scope}.{space}.u32 [f], 1;"),
            format!("ld.relaxed.{scope}.{space}.u32 r, [f];"),
        ),
        1 => (
            format!("fence.release.{scope};\nst.relaxed.{scope}.{space}.u32 [f], 1;"),
            format!("ld.relaxed.{scope}.{space}.u32 r, [f];\nfence.acquire.{scope};"),
        ),
        _ => (
            format!("st.release.{scope}.{space}.u32 [f], 1;"),
            format!("ld.acquire.{scope}.{space}.u32 r, [f];"),
        ),
    };
    let takes = if d.chance(50) { format!("L:\n{takes}\nsetp.eq.u32 p, r, 0;\n@p bra L;") } else { takes };
    let (before, after) = if d.chance(50) {
        ("st.weak.global.u32 [x], 1;\n", "ld.weak.global.u32 s, [x];\n")
    } else {
        ("", "")
    };
    let arrive = d.pick(&["bar.arrive 1, 2;", "bar.arrive 1, 2;", "bar.sync 1, 2;"]);
    let all = [
        format!("{before}{arrive}\n{hands}\n"),
        format!("{takes}\n{arrive}\n"),
        format!("bar.sync 1, 2;\n{after}bar.sync 1, 2;\n"),
    ];
    let mut text =
        format!("moire \"phases\"\n.global .b32 x;\n.{} .b32 f;\n", space.split(':').next().unwrap_or(space));
    for (warp, body) in all.iter().enumerate() {
        text += &format!("P{warp} (gpu 0, cta 0, warp {warp}) {{\n{body}}}\n");
    }
    read(&text)
}
