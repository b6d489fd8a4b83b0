//! Accesses, updates and arithmetic of every type and length, handed over by a flag or beside it: in one CTA, in two CTAs of a
//! cluster, or further apart.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;

const MEMORY: &str =
    ".global .b8 x[32];\n.global .b8 own0[96];\n.global .b8 own1[96];\n.shared .b8 z[32];\n.global .b32 f;\n";
/// The places that are a thread's own. Each is accessed once.
const OWN: [[&str; 2]; 3] = [["[own0]", "[own1]"], ["[own0+32]", "[own1+32]"], ["[own0+64]", "[own1+64]"]];
const TYPES: [&str; 16] = [
    "b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64", "f16x2",
    "bf16x2",
];
const MOVED: [&str; 13] =
    ["b16", "b32", "b64", "b128", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64", "pred"];
const INTEGERS: [&str; 6] = ["u16", "u32", "u64", "s16", "s32", "s64"];

/// A space, and the address for each thread.
type Place = (&'static str, [&'static str; 2]);

struct TypedText<'d> {
    d: &'d mut dyn Choose,
    /// The threads run in two CTAs.
    apart: bool,
    /// These are of one cluster, and one accesses memory of the other.
    far: bool,
}

/// Draws a program. `None` if the drawn text is refused.
pub fn typed(d: &mut dyn Choose) -> Option<Program> {
    let (apart, cluster) = (d.chance(50), d.chance(60));
    let mut w = TypedText { d, apart, far: apart && cluster };
    let second = match (apart, cluster) {
        (true, true) => "cluster 0, cta 1",
        (true, false) => "cluster 1, cta 1",
        (false, _) => "cluster 0, cta 0",
    };
    let (mut bodies, mut all) = (Vec::new(), String::new());
    let handed = w.d.chance(80);
    let place = w.place();
    for t in 0..2 {
        let mut body = "mov.b64 v, 3;\n".to_owned();
        if w.far && t == 1 {
            body += "mapa.shared::cluster.u32 far, z, 0;\n";
        }
        for _ in 0..10 {
            body += &w.arithmetic();
        }
        for own in OWN {
            let kind = w.d.pick(&[0, 1, 2, 3, 4, 5, 5, 5]);
            body += &w.access(kind, t == 1, ("global", own));
        }
        if handed {
            body += &w.handed(t == 1, place);
            bodies.push(body);
            continue;
        }
        let (one, other) = (w.any(t == 1), w.any(t == 1));
        body += &match (t, w.d.chance(70)) {
            (0, true) => format!("{one}st.release.gpu.global.u32 [f], 1;\n{other}"),
            (_, true) => format!("ld.acquire.gpu.global.u32 g, [f];\n{one}{other}"),
            _ => format!("{one}fence.acq_rel.gpu;\n{other}"),
        };
        bodies.push(body);
    }
    for (t, (place, body)) in ["cluster 0, cta 0", second].into_iter().zip(bodies).enumerate() {
        all += &format!("P{t} (gpu 0, {place}, warp {t}) {{\n{body}}}\n");
    }
    read(&format!("moire \"typed\"\n{MEMORY}{all}"))
}

impl TypedText<'_> {
    /// A space, and the address for each thread.
    fn place(&mut self) -> Place {
        match self.d.below(4) {
            0 if !self.apart => ("shared::cta", ["[z]"; 2]),
            1 if self.far => ("shared::cluster", ["[z]", "[far]"]),
            _ => ("global", ["[x]"; 2]),
        }
    }

    /// A write that the first thread hands over, or the wait for it and a read.
    fn handed(&mut self, second: bool, place: Place) -> String {
        let kind = if second { self.d.pick(&[1, 1, 3, 3, 4]) } else { self.d.pick(&[0, 0, 2, 2, 4, 5]) };
        let access = self.access(kind, second, place);
        if !second {
            return format!("{access}st.release.gpu.global.u32 [f], 1;\n");
        }
        let last = if self.d.chance(50) { self.any(second) } else { String::new() };
        format!("L:\nld.acquire.gpu.global.u32 g, [f];\nsetp.eq.u32 q, g, 0;\n@q bra L;\n{access}{last}")
    }

    fn any(&mut self, second: bool) -> String {
        let (kind, place) = (self.d.below(6), self.place());
        self.access(kind, second, place)
    }

    fn scope(&mut self) -> &'static str {
        self.d.pick(&["cta", "cluster", "gpu", "gpu", "sys"])
    }

    fn access(&mut self, kind: usize, second: bool, (space, addr): Place) -> String {
        let (addr, scope) = (addr[usize::from(second)], self.scope());
        match kind {
            0 => {
                let (vec, ty, n) = self.vector(space);
                format!("st.weak.{space}{vec}.{ty} {addr}, {};\n", list("v", n))
            }
            1 => {
                let (vec, ty, n) = self.vector(space);
                format!("ld.weak.{space}{vec}.{ty} {}, {addr};\n", list("a", n))
            }
            2 => {
                let (order, ty) = (self.d.pick(&["relaxed", "release"]), self.d.pick(&TYPES));
                format!("st.{order}.{scope}.{space}.{ty} {addr}, v;\n")
            }
            3 => {
                let (order, ty) = (self.d.pick(&["relaxed", "acquire"]), self.d.pick(&TYPES));
                format!("ld.{order}.{scope}.{space}.{ty} a, {addr};\n")
            }
            4 => {
                let (order, op) = (self.d.pick(&["relaxed", "acquire", "release", "acq_rel"]), self.update());
                format!("atom.{order}.{scope}.{space}.{op} a, {addr}, v;\n")
            }
            _ => {
                let (order, op) = (self.d.pick(&["relaxed", "release"]), self.update());
                format!("red.{order}.{scope}.{space}.{op} {addr}, v;\n")
            }
        }
    }

    /// Words and elements of a vector, or of one element.
    fn vector(&mut self, space: &str) -> (&'static str, &'static str, usize) {
        match self.d.below(5) {
            // Vectors of 256 bits are of global memory.
            1 if space == "global" && self.d.chance(25) => (".v4", "b64", 4),
            2 if space == "global" => (".v8", self.d.pick(&["b32", "f32"]), 8),
            0 => (".v2", self.d.pick(&["b8", "u16", "b32", "s64", "f32", "f64"]), 2),
            1 => (".v4", self.d.pick(&["u8", "b32", "f32"]), 4),
            _ => ("", self.d.pick(&TYPES), 1),
        }
    }

    /// What an update does, and its type.
    fn update(&mut self) -> &'static str {
        self.d.pick(&[
            "add.u32",
            "add.s32",
            "add.u64",
            "add.f32",
            "add.f64",
            "add.noftz.f16",
            "add.noftz.f16x2",
            "add.noftz.bf16x2",
            "min.s64",
            "max.u64",
            "min.s32",
            "and.b64",
            "or.b32",
            "xor.b64",
            "inc.u32",
            "dec.u32",
        ])
    }

    fn arithmetic(&mut self) -> String {
        let ty = self.d.pick(&INTEGERS);
        let bits = self.d.pick(&["b16", "b32", "b64"]);
        let other = self.d.pick(&["v", "1"]);
        match self.d.below(6) {
            0 | 1 => {
                let op = self.d.pick(&["add", "sub", "mul.lo", "div", "rem", "min", "max", "shr"]);
                format!("{op}.{ty} v, v, {other};\n")
            }
            2 => format!("{}.{bits} v, v, {other};\n", self.d.pick(&["and", "or", "xor", "shl", "shr"])),
            3 => {
                let compare = self.d.pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
                format!("setp.{compare}.{ty} p, v, 1;\nselp.{ty} v, v, 2, p;\n")
            }
            4 => format!("selp.{} v, v, v, p;\n", self.d.pick(&["b16", "b32", "b64", "f32", "f64"])),
            _ => format!("mov.{} w, v;\n", self.d.pick(&MOVED)),
        }
    }
}

/// One register, or as many in braces.
fn list(name: &str, n: usize) -> String {
    if n == 1 { name.to_owned() } else { format!("{{{}}}", vec![name; n].join(", ")) }
}
