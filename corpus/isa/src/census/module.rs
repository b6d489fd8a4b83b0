//! Modules around forms: the registers and variables of a census, and a form a line.

use super::TARGETS;
use std::fmt::Write;

/// The first letter of each register, its type, and how many are declared.
const REGISTERS: [(char, &str, u32); 8] = [
    ('p', "pred", 40),
    ('b', "b8", 40),
    ('h', "b16", 300),
    ('r', "b32", 300),
    ('f', "f32", 300),
    ('d', "b64", 300),
    ('g', "f64", 300),
    ('q', "b128", 40),
];

/// A line that no target accepts: if ptxas reports it, it has read all lines before.
pub const POISON: &str = "fence.poison";

/// The name of a target, with everything that it has: `sm_90a`.
#[must_use]
pub fn target(sm: u16) -> String {
    format!("sm_{sm}{}", if sm == 80 { "" } else { "a" })
}

/// The versions that are asked for, in their order: 83 is 8.3.
pub const VERSIONS: [u16; 24] =
    [70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94, 95];

/// The newest of them.
pub const NEWEST: u16 = 95;

/// The version that first has a target.
#[must_use]
pub fn introduced(sm: u16) -> u16 {
    match sm {
        90 => 80,
        100 => 86,
        103 => 88,
        107 => 93,
        110 => 90,
        120 => 87,
        _ => 70,
    }
}

/// A module of a version for a target, and the line of its first form, counted from 1.
#[must_use]
pub fn module<'f>(
    sm: u16,
    version: u16,
    forms: impl IntoIterator<Item = &'f str>,
    last: &str,
) -> (String, usize) {
    let (major, minor) = (version / 10, version % 10);
    let mut text = format!(".version {major}.{minor}\n.target {}\n.address_size 64\n", target(sm));
    text.push_str(".const .align 8 .b8 cm[64];\n.global .align 16 .b8 gm[64];\n");
    text.push_str(".func (.reg .b32 o) fn (.reg .b32 i) { mov.b32 o, i; ret; }\n.func fn2 () { ret; }\n");
    text.push_str(".visible .entry k(.param .u64 p0)\n{\n");
    for (letter, ty, count) in REGISTERS {
        // `.b128` is of 8.3.
        if letter != 'q' || version >= 83 {
            let _ = writeln!(text, ".reg .{ty} %{letter}<{count}>;");
        }
    }
    text.push_str(".shared .align 1024 .b8 sm[16384];\n.local .align 8 .b8 lm[64];\n");
    let first = text.lines().count() + 1;
    for form in forms {
        let _ = writeln!(text, "{form};");
    }
    let _ = writeln!(text, "L0: {last}\nret;\n}}");
    (text, first)
}

/// The position of a target in [`TARGETS`] that a form is tried on alone: the first that accepts it, or `sm_100a`.
#[must_use]
pub fn alone(targets: [bool; 7]) -> u16 {
    targets.iter().position(|accepts| *accepts).map_or(100, |at| TARGETS[at])
}
