//! Accesses through a name of several memories, beside accesses to each of them.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;
use std::fmt::Write;

/// Draws a program. `None` if the drawn text is refused.
pub fn multimem(d: &mut dyn Choose) -> Option<Program> {
    let wide = d.chance(30);
    let bits = if wide { 64 } else { 32 };
    let mut out = format!(
        "moire \"multimem\"\n.global .b{bits} x0;\n.global .b{bits} x1;\n.global .b32 f;\n.multimem m = x0, x1;\n"
    );
    if d.chance(60) {
        return read(&(out + &handed(d, wide)));
    }
    let threads = d.pick(&[2, 2, 3]);
    for t in 0..threads {
        let gpu = usize::from(t == 1 && d.chance(30));
        let _ = writeln!(out, "P{t} (gpu {gpu}, cta {t}) {{\nmov.b{bits} v, {};", t + 1);
        for n in 0..d.pick(&[1, 2, 2, 3]) {
            out += &access(d, n, wide);
        }
        out += "}\n";
    }
    read(&out)
}

/// A thread that hands over what it writes to all memories, and one that waits and reads.
fn handed(d: &mut dyn Choose, wide: bool) -> String {
    let (bits, ty) = if wide { ("64", "u64") } else { ("32", "u32") };
    let scope = d.pick(&["gpu", "sys"]);
    let gpu = usize::from(scope == "sys" && d.chance(50));
    let write = [
        format!("multimem.st.weak.{ty} [m], v;"),
        format!("multimem.st.relaxed.{scope}.{ty} [m], v;"),
        format!("multimem.red.relaxed.{scope}.add.{ty} [m], v;"),
    ];
    let read = [
        format!("multimem.ld_reduce.weak.add.{ty} r, [m];"),
        format!("multimem.ld_reduce.relaxed.{scope}.add.{ty} r, [m];"),
        format!("fence.proxy.alias;\nld.relaxed.{scope}.{ty} r, [x0];"),
    ];
    let (write, read) = (&write[d.below(3)], &read[d.below(3)]);
    format!(
        "P0 (gpu 0, cta 0) {{\nmov.b{bits} v, 1;\n{write}\nst.release.{scope}.u32 [f], 1;\n}}\n\
         P1 (gpu {gpu}, cta 1) {{\nL:\nld.acquire.{scope}.u32 s, [f];\nsetp.eq.u32 p, s, 0;\n@p bra L;\n{read}\n}}\n"
    )
}

fn access(d: &mut dyn Choose, n: usize, wide: bool) -> String {
    let scope = d.pick(&["gpu", "sys", "cta", "cluster"]);
    let ty = if wide { d.pick(&["u64", "s64"]) } else { d.pick(&["u32", "u32", "s32"]) };
    let bits = if wide {
        d.pick(&["b64", "u64", "s64", "f64"])
    } else {
        d.pick(&["b32", "u32", "s32", "f32", "f16x2", "bf16x2"])
    };
    match d.below(9) {
        0 | 1 => {
            let order = d.pick(&["weak", "relaxed", "acquire"]);
            let scope = if order == "weak" { String::new() } else { format!(".{scope}") };
            let (op, ty) = match d.below(4) {
                0 | 1 => ("add", if wide { "u64" } else { d.pick(&["u32", "s32"]) }),
                2 => (d.pick(&["min", "max"]), ty),
                _ if wide => ("xor", "b64"),
                _ => d.pick(&[("and", "b32"), ("or", "b32"), ("add", "f16x2"), ("min", "bf16x2")]),
            };
            format!("multimem.ld_reduce.{order}{scope}.{op}.{ty} r{n}, [m];\n")
        }
        2 | 3 => {
            let order = d.pick(&["weak", "relaxed", "release"]);
            let scope = if order == "weak" { String::new() } else { format!(".{scope}") };
            format!("multimem.st.{order}{scope}.{bits} [m], v;\n")
        }
        4 => {
            let (order, op) = (d.pick(&["relaxed", "relaxed", "release"]), d.pick(&["add", "min", "max"]));
            let ty = if op == "add" && wide { "u64" } else { ty };
            format!("multimem.red.{order}.{scope}.{op}.{ty} [m], 1;\n")
        }
        5 => format!("fence.{}.{scope};\n", d.pick(&["acq_rel", "sc", "acquire", "release"])),
        6 => format!("st.{}.u32 [f], 1;\n", d.pick(&["release.gpu", "relaxed.sys"])),
        7 => format!("ld.{}.u32 s{n}, [f];\n", d.pick(&["acquire.gpu", "relaxed.sys"])),
        _ => {
            let (name, ty) = (d.pick(&["x0", "x1"]), if wide { "u64" } else { "u32" });
            match d.below(2) {
                0 => format!("st.relaxed.{scope}.{ty} [{name}], 7;\n"),
                _ => format!("ld.relaxed.{scope}.{ty} t{n}, [{name}];\n"),
            }
        }
    }
}
