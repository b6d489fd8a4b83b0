//! Small random programs of tcgen05 instructions: two or three warps of a CTA that synchronise by barriers and
//! mbarriers. Each fence, wait and commit of a correct program is sometimes left out. Some or all registers of a load
//! may be read before its wait, or without one. Waits may be repeated.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;
use std::fmt::Write as _;

struct TensorText<'d> {
    d: &'d mut dyn Choose,
    labels: usize,
    /// Operations on each of two mbarriers so far. They are few, because their orders are factorial in number.
    used: [usize; 2],
    warp: usize,
}

/// Draws a program. `None` if the drawn text is refused.
pub fn cells(draw: &mut dyn Choose) -> Option<Program> {
    let threads = draw.pick(&[1, 2, 2, 2, 3]);
    let mut w = TensorText { d: draw, labels: 0, used: [1, 1], warp: 0 };
    let mut out = String::from(
        "moire \"tensor\"\n.tmem t[32];\n.tmem u[32];\n.shared .b8 a[64];\n.shared .b32 x;\n\
         .shared .b64 b0;\n.shared .b64 b1;\n",
    );
    let operations = w.d.pick(&[4, 5, 6, 7]) / threads.max(1) + 2;
    let synchronised = w.d.chance(85);
    for t in 0..threads {
        // Sometimes two threads are warps of the same rank in their warpgroups, and may access the same lanes.
        w.warp = if w.d.chance(60) { t } else { 4 * t };
        let warp = w.warp;
        let _ = writeln!(out, "P{t} (gpu 0, cta 0, warp {warp}) {{\n.reg r0, r1, r2, r3;");
        if t == 0 {
            for b in 0..2 {
                let count = w.d.pick(&[1, 1, 1, 2]);
                let _ = writeln!(out, "mbarrier.init.shared::cta.b64 [b{b}], {count};");
            }
            if w.d.chance(50) {
                out += "st.weak.shared::cta.b8 [a], 1;\n";
                out += w.maybe("fence.proxy.async;\n");
            }
        }
        if synchronised {
            out += "bar.sync 0;\n";
        }
        for _ in 0..operations {
            out += &w.step();
        }
        out += "}\n";
    }
    read(&out)
}

impl TensorText<'_> {
    fn maybe(&mut self, text: &'static str) -> &'static str {
        if self.d.chance(75) { text } else { "" }
    }

    fn step(&mut self) -> String {
        match self.d.below(100) {
            0..24 => self.moved(),
            24..48 => self.tensor(),
            48..60 => {
                let fence = self.maybe("tcgen05.fence::before_thread_sync;\n");
                format!("{fence}{}", self.arrive())
            }
            60..76 => {
                let wait = self.wait();
                format!("{wait}{}", self.maybe("tcgen05.fence::after_thread_sync;\n"))
            }
            76..82 => {
                let (before, after) = (
                    self.maybe("tcgen05.fence::before_thread_sync;\n"),
                    self.maybe("tcgen05.fence::after_thread_sync;\n"),
                );
                format!("{before}bar.sync 1;\n{after}")
            }
            82..87 => format!("st.weak.shared::cta.b8 [a], 2;\n{}", self.maybe("fence.proxy.async;\n")),
            87..90 => "ld.weak.shared::cta.b8 r0, [a];\n".into(),
            90..93 => "st.weak.shared::cta.u32 [x], 1;\n".into(),
            93..96 => "ld.weak.shared::cta.u32 r0, [x];\n".into(),
            96..98 => "tcgen05.fence::before_thread_sync;\n".into(),
            _ => "tcgen05.fence::after_thread_sync;\n".into(),
        }
    }

    /// Writes a load or store of the warp's own lanes, with its wait.
    fn moved(&mut self) -> String {
        let warp = if self.d.chance(97) { self.warp % 4 } else { 1 };
        let at = format!("{}+{}", self.d.pick(&["t", "t", "u"]), (32 * warp) << 16);
        if self.d.chance(50) {
            return self.loaded(&at);
        }
        let wait = self.maybe("tcgen05.wait::st.sync.aligned;\n");
        format!("tcgen05.st.sync.aligned.32x32b.x1.b32 [{at}], {{r1}};\n{wait}")
    }

    /// Writes a load, instructions that read its registers, and its wait, in some order; parts may be missing.
    fn loaded(&mut self, at: &str) -> String {
        let (count, registers) = self.d.pick(&[("x1", "r1"), ("x1", "r1"), ("x2", "r1, r2")]);
        let load = format!("tcgen05.ld.sync.aligned.32x32b.{count}.b32 {{{registers}}}, [{at}];\n");
        let mut after = Vec::new();
        let mut waits = vec![self.maybe("tcgen05.wait::ld.sync.aligned;\n")];
        if self.d.chance(10) {
            waits.push("tcgen05.wait::ld.sync.aligned;\n");
        }
        if self.d.chance(40) {
            after.push(self.d.pick(&["mov.b32 r3, r1;\n", "mov.b32 r3, r1;\n", "add.u32 r3, r1, 1;\n"]));
            if count == "x2" && self.d.chance(70) {
                after.push("mov.b32 r3, r2;\n");
            }
        }
        if self.d.chance(60) {
            after.extend(waits);
        } else {
            after.splice(0..0, waits);
        }
        format!("{load}{}", after.concat())
    }

    fn tensor(&mut self) -> String {
        let name = self.d.pick(&["t", "t", "t", "u"]);
        let op = match self.d.below(10) {
            0..6 => {
                let kind = self.d.pick(&["f16", "f16", "f16", "tf32"]);
                let n = self.d.pick(&[16, 16, 16, 32]);
                let input = self.d.pick(&[0, 1]);
                let first = self.d.pick(&["desc(a, 32)", "desc(a, 32)", "[u]"]);
                format!(
                    "mma.cta_group::1.kind::{kind} [{name}], {first}, desc(a+32, 32), idesc(128, {n}), {input}"
                )
            }
            6..8 => {
                let shape = self.d.pick(&["128x256b", "4x256b"]);
                format!("cp.cta_group::1.{shape} [{name}], desc(a, 64)")
            }
            _ => format!("shift.cta_group::1.down [{name}]"),
        };
        let commit = if self.d.chance(55) { self.commit() } else { String::new() };
        format!("tcgen05.{op};\n{commit}")
    }

    fn object(&mut self) -> Option<usize> {
        let b = self.d.below(2);
        self.used[b] += 1;
        (self.used[b] <= 6).then_some(b)
    }

    fn commit(&mut self) -> String {
        let Some(b) = self.object() else { return String::new() };
        format!("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [b{b}];\n")
    }

    fn arrive(&mut self) -> String {
        let Some(b) = self.object() else { return String::new() };
        let how = self.d.pick(&["release.cta", "release.cta", "relaxed.cluster"]);
        format!("mbarrier.arrive.{how}.shared::cta.b64 _, [b{b}];\n")
    }

    /// Writes a wait for a phase. Sometimes a second wait for the same phase follows, perhaps after another
    /// instruction.
    fn wait(&mut self) -> String {
        let Some(b) = self.object() else { return String::new() };
        let parity = self.d.pick(&[0, 0, 0, 1]);
        let once = self.asked(b, parity);
        if self.used[b] > 4 || !self.d.chance(25) {
            return once;
        }
        self.used[b] += 1;
        let between = match self.d.below(4) {
            0 => self.moved(),
            1 => "tcgen05.fence::after_thread_sync;\n".to_owned(),
            _ => String::new(),
        };
        let again = self.asked(b, parity);
        format!("{once}{between}{again}")
    }

    fn asked(&mut self, b: usize, parity: u8) -> String {
        self.labels += 1;
        let how = self.d.pick(&["acquire.cta", "acquire.cta", "relaxed.cluster"]);
        let ask = format!("mbarrier.try_wait.parity.{how}.shared::cta.b64 p, [b{b}], {parity};\n");
        format!("L{0}:\n{ask}@!p bra L{0};\n", self.labels)
    }
}
