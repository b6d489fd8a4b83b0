//! Small random programs whose threads stand for several lanes that are joined: elected lanes, branches that only some lanes take,
//! counts to which every lane adds.
//!
//! They are drawn as text and parsed, which also tests the parser.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;

/// Draws a program. `None` if the drawn text is refused.
pub fn lanes(d: &mut dyn Choose) -> Option<Program> {
    let threads = d.pick(&[2, 2, 3]);
    let widths: Vec<usize> = (0..threads).map(|_| d.pick(&[1, 2, 2, 3])).collect();
    let total: usize = widths.iter().sum();
    let mut out = String::from("moire \"lanes\"\n.shared .b64 b;\n.shared .b32 x;\n.global .b32 f;\n");
    let count = d.pick(&[1, 2, 2, 3, total]);
    for (t, width) in widths.iter().enumerate() {
        let place = if *width == 1 { String::new() } else { format!(", lanes 0-{} joined", width - 1) };
        out += &format!("P{t} (gpu 0, cta 0, warp {t}{place}) {{\n.reg lane = %laneid;\n");
        let mut w = LanesText { d, labels: 0, total };
        out += "elect.sync _|e, 0xffffffff;\nsetp.eq.u32 z, lane, 0;\nsetp.ge.u32 h, lane, 1;\n";
        if t == 0 {
            let only = if w.d.chance(80) { "@e " } else { "" };
            out += &format!("{only}mbarrier.init.shared::cta.b64 [b], {count};\n");
        }
        out += if w.d.chance(90) { "bar.sync 0;\n" } else { "" };
        for _ in 0..w.d.pick(&[2, 3, 3]) {
            out += &w.piece();
        }
        out += "}\n";
    }
    read(&out)
}

struct LanesText<'d> {
    d: &'d mut dyn Choose,
    labels: usize,
    total: usize,
}

impl LanesText<'_> {
    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn guard(&mut self) -> &'static str {
        self.d.pick(&["", "", "@e ", "@!e ", "@z ", "@h "])
    }

    /// Writes an instruction, a region that only some lanes enter, or a branch with two arms.
    fn piece(&mut self) -> String {
        let some = self.d.pick(&["e", "h", "z", "!e", "!h"]);
        match self.d.below(10) {
            0..5 => {
                let guard = self.guard();
                self.operation(guard)
            }
            5..7 => {
                let (end, inside) = (self.label(), self.operation("") + &self.operation(""));
                format!("@{some} bra {end};\n{inside}{end}:\n")
            }
            7 => {
                let (other, end) = (self.label(), self.label());
                let (a, b) = (self.operation(""), self.operation(""));
                format!("@{some} bra {other};\n{a}bra {end};\n{other}:\n{b}{end}:\n")
            }
            8 => {
                let guard = self.guard();
                format!("{guard}add.u32 lane, lane, 1;\nsetp.eq.u32 z, lane, 2;\n")
            }
            _ => {
                let guard = self.guard();
                format!("{guard}exit;\n")
            }
        }
    }

    fn operation(&mut self, guard: &str) -> String {
        let parity = self.d.pick(&[0, 0, 1]);
        match self.d.below(12) {
            0..4 => format!("{guard}mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\n"),
            4 => format!("{guard}mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 4;\n"),
            5 => format!("{guard}mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [b], 4;\n"),
            6 if guard.is_empty() => {
                let label = self.label();
                format!(
                    "{label}:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], {parity};\n@!p bra {label};\n"
                )
            }
            7 if guard.is_empty() => {
                let many = self.d.pick(&[2, 3, self.total]);
                let kind = self.d.pick(&["sync", "sync", "arrive"]);
                format!("bar.{kind} 1, {many};\n")
            }
            8 => format!("{guard}st.weak.shared.u32 [x], 1;\n"),
            9 => format!("{guard}ld.weak.shared.u32 r0, [x];\n"),
            10 => format!("{guard}st.relaxed.gpu.u32 [f], r0;\n"),
            _ => format!("{guard}ld.relaxed.gpu.u32 r0, [f];\n@e st.relaxed.gpu.u32 [f], 2;\n"),
        }
    }
}
