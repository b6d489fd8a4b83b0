//! Threads with equal bodies, atomics and loads whose value is unused, stores that are never read: programs that reductions of an
//! exploration apply to.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;
use std::fmt::Write;

/// Draws a program. `None` if the drawn text is refused.
pub fn alike(d: &mut dyn Choose) -> Option<Program> {
    let threads = d.pick(&[2, 3, 3, 3, 4]);
    let templates: Vec<String> = (0..d.pick(&[1, 2, 2, 3])).map(|_| body(d, 7 / threads + 1)).collect();
    let mut text = String::from("moire \"alike\"\n");
    for name in ["x", "y", "z"] {
        let _ = writeln!(text, ".global .b32 {name};");
    }
    let style = d.below(4);
    for t in 0..threads {
        let cta = match style {
            0 => 0,
            1 => t / 2,
            _ => t,
        };
        let gpu = usize::from(style == 3 && t % 2 == 1);
        let body = &templates[d.below(templates.len())];
        let _ = writeln!(text, "P{t} (gpu {gpu}, cta {}, warp {t}) {{ {body} }}", cta + 8 * gpu);
    }
    read(&text)
}

fn body(d: &mut dyn Choose, most: usize) -> String {
    let mut out = String::new();
    for i in 0..1 + d.below(most) {
        // One location is picked more often than the others, so that threads meet there.
        let place = d.pick(&["x", "x", "x", "y", "z"]);
        let scope = d.pick(&["gpu", "gpu", "gpu", "sys", "cta"]);
        let value = d.pick(&["1", "2", "1", "r0"]);
        let update =
            d.pick(&["add.u32", "add.u32", "add.s32", "or.b32", "and.b32", "min.u32", "max.s32", "inc.u32"]);
        out += &match d.below(15) {
            0..=2 => format!("ld.relaxed.{scope}.u32 r{i}, [{place}]; "),
            3 => format!("ld.{}.u32 r{i}, [{place}]; ", d.pick(&["weak", "acquire.gpu"])),
            4 | 5 => format!("st.relaxed.{scope}.u32 [{place}], {value}; "),
            6 => format!("st.{}.u32 [{place}], {value}; ", d.pick(&["weak", "release.gpu"])),
            7 | 8 => {
                format!(
                    "red.{}.{scope}.{update} [{place}], {value}; ",
                    d.pick(&["relaxed", "relaxed", "release"])
                )
            }
            9 => {
                format!(
                    "atom.{}.{scope}.{update} r{i}, [{place}], {value}; ",
                    d.pick(&["relaxed", "acq_rel"])
                )
            }
            10 => format!("atom.relaxed.{scope}.exch.b32 r{i}, [{place}], {value}; "),
            // Message passing with an atomic as flag: whether the data races depends on the order of the atomics.
            11 => format!("st.weak.u32 [y], {value}; red.release.gpu.add.u32 [x], 1; "),
            12 => format!("atom.acq_rel.gpu.add.u32 r{i}, [x], 1; ld.weak.u32 s{i}, [y]; "),
            13 => format!("fence.{}.{scope}; ", d.pick(&["acq_rel", "sc"])),
            _ => format!("setp.eq.u32 p, r0, 1; @p st.relaxed.{scope}.u32 [{place}], 3; "),
        };
    }
    out
}
