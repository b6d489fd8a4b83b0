//! Small random programs about warpgroup products: stages that are filled, multiplied and filled again, in rounds.
//!
//! A stage is filled by a bulk copy, or by a store and a proxy fence. One or two threads multiply it, with the first factor in
//! memory or in registers, and free it once the wait for its group has answered. They read the accumulator before or after. A
//! few instructions are then deleted, repeated, swapped or moved. The rounds are in a loop with a free number.

use super::counting::rounds;
use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;

const FENCE: &str = "wgmma.fence.sync.aligned;\n";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;\n";

struct ProductText<'d> {
    d: &'d mut dyn Choose,
    stages: usize,
    labels: usize,
    /// Stages are filled by copies.
    copied: bool,
}

/// Draws a program in a loop. `None` if the drawn text is refused.
pub fn looped(draw: &mut dyn Choose) -> Option<Program> {
    read(&text(draw, true))
}

/// Draws a program with one or two rounds. `None` if the drawn text is refused.
pub fn products(draw: &mut dyn Choose) -> Option<Program> {
    let program = read(&text(draw, false))?;
    rounds(&program, 1 + draw.below(2))
}

/// The text. With `halves`, consumers may be the lanes of one warp, each of which counts: too many to enumerate.
fn text(draw: &mut dyn Choose, halves: bool) -> String {
    let (stages, copied) = (draw.pick(&[1, 1, 2]), draw.chance(60));
    let mut w = ProductText { d: draw, stages, labels: 0, copied };
    let consumers = w.d.pick(&[1, 1, 1, 2]);
    let mut bodies = vec![w.producer()];
    bodies.extend((0..consumers).map(|_| w.consumer()));
    for _ in 0..w.d.pick(&[0, 0, 1, 1, 2]) {
        w.mistake(&mut bodies);
    }
    let mut out = String::from("moire \"products\"\n");
    for s in 0..stages {
        out += &format!(".shared .b64 full{s};\n.shared .b64 empty{s};\n.shared .b8 a{s}[32];\n");
    }
    out += ".global .b8 g[32];\n.global .b32 o;\n";
    // Two threads of one warp, which meet at each of its instructions.
    let halves = halves && consumers == 2 && w.d.chance(50);
    for (t, (inside, after)) in bodies.iter().enumerate() {
        let place = match t {
            0 => "warp 0".to_owned(),
            _ if halves => format!("warp 1, lanes {}", ["0-15", "16-31"][t - 1]),
            _ => format!("warp {t}"),
        };
        out += &format!(
            "P{t} (gpu 0, cta 0, {place}) {{\n.reg p, r, pf, pe = 1, d1, d2, d3, d4, e1, e2, e3, e4;\n"
        );
        if t == 0 {
            for s in 0..stages {
                let arrivals = if halves { 32 } else { consumers };
                out += &format!("mbarrier.init.shared::cta.b64 [full{s}], 1;\n");
                out += &format!("mbarrier.init.shared::cta.b64 [empty{s}], {arrivals};\n");
            }
        }
        let flips = "xor.b32 pf, pf, 1;\nxor.b32 pe, pe, 1;\n";
        out += &format!("bar.sync 0;\nrepeat K {{\n{}{flips}}}\n{}}}\n", inside.concat(), after.concat());
    }
    out
}

/// What a thread executes in its loop, and after it. Each text is of one instruction, or of one wait.
type Body = (Vec<String>, Vec<String>);

impl ProductText<'_> {
    fn wait(&mut self, name: &str, parity: &str) -> String {
        self.labels += 1;
        let label = format!("L{}", self.labels);
        let ask = format!("mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [{name}], {parity};");
        format!("{label}:\n{ask}\n@!p bra {label};\n")
    }

    fn producer(&mut self) -> Body {
        let mut all = Vec::new();
        for s in 0..self.stages {
            all.push(self.wait(&format!("empty{s}"), "pe"));
            let arrive = "mbarrier.arrive";
            if self.copied {
                let bulk = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes";
                all.push(format!("{arrive}.expect_tx.release.cta.shared::cta.b64 _, [full{s}], 32;\n"));
                all.push(format!("{bulk} [a{s}], [g], 32, [full{s}];\n"));
            } else {
                all.push(format!("st.weak.shared::cta.b8 [a{s}+{}], 1;\n", self.d.pick(&[0, 16])));
                all.push("fence.proxy.async;\n".to_owned());
                all.push(format!("{arrive}.release.cta.shared::cta.b64 _, [full{s}];\n"));
            }
        }
        (all, Vec::new())
    }

    fn multiply(&mut self, s: usize) -> String {
        let stem = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16";
        let d = if s == 0 || self.d.chance(50) { "d1, d2, d3, d4" } else { "e1, e2, e3, e4" };
        let a =
            self.d.pick(&["desc(a, 16)", "desc(a, 16)", "{e1, e2, e3, e4}"]).replace("(a", &format!("(a{s}"));
        let flags = if a.starts_with('{') { "1, 1, 1, 0" } else { "1, 1, 1, 0, 0" };
        format!("{stem} {{{d}}}, {a}, desc(a{s}+16, 16), {flags};\n")
    }

    /// Multiplies all stages, and frees each when its group is complete.
    fn consumer(&mut self) -> Body {
        let mut all = Vec::new();
        for s in 0..self.stages {
            all.push(self.wait(&format!("full{s}"), "pf"));
            if s == 0 || self.d.chance(70) {
                all.push(FENCE.to_owned());
            }
            all.push(self.multiply(s));
            all.push(COMMIT.to_owned());
        }
        for s in 0..self.stages {
            all.push(format!("wgmma.wait_group.sync.aligned {};\n", self.stages - 1 - s));
            all.push(format!("mbarrier.arrive.release.cta.shared::cta.b64 _, [empty{s}];\n"));
        }
        let uses = ["add.u32 r, d1, 1;\n", "mov.b32 e2, 0;\n", "mov.b32 d2, 0;\n"];
        for _ in 0..self.d.pick(&[0, 0, 1]) {
            all.push(self.d.pick(&uses).to_owned());
        }
        (
            all,
            vec!["st.weak.global.b32 [o], d3;\n".to_owned()]
                .into_iter()
                .filter(|_| self.d.chance(10))
                .collect(),
        )
    }

    /// Deletes, repeats, swaps or moves an instruction.
    fn mistake(&mut self, bodies: &mut [Body]) {
        let t = self.d.below(bodies.len());
        let (inside, after) = &mut bodies[t];
        let at = self.d.below(inside.len());
        let next = (at + 1) % inside.len();
        match self.d.below(6) {
            0 | 1 => drop(inside.remove(at)),
            2 if !inside[at].starts_with('L') => inside.insert(at, inside[at].clone()),
            3 => inside.swap(at, next),
            4 => after.push(inside.remove(at)),
            _ => inside[at] = inside[at].replace("aligned 0", "aligned 1").replace("release", "relaxed"),
        }
    }
}
