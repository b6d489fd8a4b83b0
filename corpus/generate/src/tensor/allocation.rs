//! Small random programs that allocate tensor memory, in one CTA and in pairs of CTAs: collective operations before and
//! after barriers, products of both CTAs, commits to one CTA or both. Parts of correct programs are sometimes left out.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;
use std::fmt::Write as _;

struct AllocationText<'d> {
    d: &'d mut dyn Choose,
    group: u8,
    warp: usize,
    labels: usize,
    /// Allocations of this thread so far.
    taken: usize,
    /// Operations on the mbarrier so far. They are few, because their orders are factorial in number.
    used: usize,
    barrier: &'static str,
}

/// Draws a program. `None` if the drawn text is refused.
pub fn allocation(draw: &mut dyn Choose) -> Option<Program> {
    let pair = draw.chance(55);
    let mut out = String::from("moire \"pairs\"\n.shared .b8 a[64];\n.shared .b64 bar;\n");
    for slot in 0..4 {
        let _ = writeln!(out, ".shared .b32 s{slot};");
    }
    let places: &[(usize, usize)] = if pair {
        draw.pick(&[&[(0, 0), (1, 0)][..], &[(0, 0), (1, 0)], &[(0, 0), (1, 0), (0, 1)]])
    } else {
        draw.pick(&[&[(0, 0)][..], &[(0, 0), (0, 1)], &[(0, 0), (0, 1)]])
    };
    let (prologue, operations) = (draw.chance(85), draw.pick(&[3, 4, 5, 6]) / places.len() + 2);
    for (t, (cta, warp)) in places.iter().enumerate() {
        let mut w = AllocationText {
            d: &mut *draw,
            group: 1 + u8::from(pair),
            warp: *warp,
            labels: 0,
            taken: 0,
            used: 1,
            barrier: if pair { "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" } else { "bar.sync 0;\n" },
        };
        let _ = writeln!(out, "P{t} (gpu 0, cta {cta}, warp {warp}) {{\n.reg r0, r1, r2, r7;");
        if *warp == 0 {
            out += "mbarrier.init.shared::cta.b64 [bar], 1;\n";
        }
        if prologue {
            out += w.barrier;
            if *warp == 0 {
                out += &w.take();
                out += w.maybe("ld.weak.shared::cta.u32 r0, [s0];\n");
            }
        }
        for _ in 0..operations {
            out += &w.step();
        }
        if prologue && *warp == 0 {
            out += w.maybe(w.barrier);
            let columns = w.d.pick(&[64, 64, 64, 64, 32]);
            let give = format!("tcgen05.dealloc.cta_group::{}.sync.aligned.b32 r0, {columns};\n", w.group);
            if w.d.chance(85) {
                out += &give;
            }
        }
        out += "}\n";
    }
    read(&out)
}

impl AllocationText<'_> {
    fn maybe(&mut self, text: &'static str) -> &'static str {
        if self.d.chance(75) { text } else { "" }
    }

    fn take(&mut self) -> String {
        // Both CTAs of a pair use the same numbers. Two warps of a CTA never share one.
        let slot = (self.taken + 2 * self.warp).min(3);
        let columns =
            if self.taken == 0 && self.group == 2 { 64 } else { self.d.pick(&[64, 64, 32, 256, 512]) };
        let columns = if self.taken == 0 && self.d.chance(60) { 64 } else { columns };
        self.taken += 1;
        format!(
            "tcgen05.alloc.cta_group::{}.sync.aligned.shared::cta.b32 [s{slot}], {columns};\n",
            self.group
        )
    }

    fn step(&mut self) -> String {
        let g = self.group;
        match self.d.below(100) {
            0..9 => self.take(),
            9..16 => {
                format!("ld.weak.shared::cta.u32 r{}, [s{}];\n", self.d.below(3), self.d.pick(&[0, 0, 1, 2]))
            }
            16..25 => {
                let (reg, columns) =
                    (self.d.pick(&["r0", "r0", "r1", "r2"]), self.d.pick(&[64, 64, 32, 512]));
                format!("tcgen05.dealloc.cta_group::{g}.sync.aligned.b32 {reg}, {columns};\n")
            }
            25..30 => format!("tcgen05.relinquish_alloc_permit.cta_group::{g}.sync.aligned;\n"),
            30..42 => {
                let wait = self.maybe("tcgen05.wait::ld.sync.aligned;\n");
                format!(
                    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{r7}}, [r0+{}];\n{wait}",
                    (32 * self.warp) << 16
                )
            }
            42..48 => {
                let wait = self.maybe("tcgen05.wait::st.sync.aligned;\n");
                format!(
                    "tcgen05.st.sync.aligned.32x32b.x1.b32 [r0+{}], {{r7}};\n{wait}",
                    (32 * self.warp) << 16
                )
            }
            48..64 => self.product(),
            64..72 => self.wait(),
            72..82 => {
                let before = self.maybe("tcgen05.fence::before_thread_sync;\n");
                let after = self.maybe("tcgen05.fence::after_thread_sync;\n");
                format!("{before}{}{after}", self.barrier)
            }
            82..88 => format!("st.weak.shared::cta.b8 [a], 2;\n{}", self.maybe("fence.proxy.async;\n")),
            88..94 => "tcgen05.fence::before_thread_sync;\n".into(),
            _ => "tcgen05.fence::after_thread_sync;\n".into(),
        }
    }

    fn product(&mut self) -> String {
        let g = self.group;
        let rows = if g == 2 { 256 } else { 128 };
        let (n, kind) = (self.d.pick(&[16, 16, 16, 32]), self.d.pick(&["f16", "f16", "f16", "tf32"]));
        let at = self.d.pick(&["r0", "r0", "r0", "r0+8"]);
        let work = match self.d.below(10) {
            0..8 => format!(
                "mma.cta_group::{g}.kind::{kind} [{at}], desc(a, 32), desc(a+32, 32), idesc({rows}, {n}), 1"
            ),
            8 => format!("cp.cta_group::{g}.128x256b [{at}], desc(a, 64)"),
            _ => format!("shift.cta_group::{g}.down [{at}]"),
        };
        self.used += 1;
        let commit = match self.d.below(10) {
            _ if self.used > 4 => String::new(),
            0..4 if g == 2 => format!(
                "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar], {};\n",
                self.d.pick(&[3, 3, 3, 2, 1])
            ),
            0..5 => {
                format!("tcgen05.commit.cta_group::{g}.mbarrier::arrive::one.shared::cluster.b64 [bar];\n")
            }
            5 => format!(
                "tcgen05.commit.cta_group::{g}.sync_restrict::shared::read::mma::a.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
            ),
            _ => String::new(),
        };
        format!("tcgen05.{work};\n{commit}")
    }

    fn wait(&mut self) -> String {
        self.used += 1;
        if self.used > 4 {
            return String::new();
        }
        self.labels += 1;
        let how = self.d.pick(&["acquire.cta", "acquire.cta", "relaxed.cluster"]);
        let parity = self.d.pick(&[0, 0, 0, 1]);
        let after = self.maybe("tcgen05.fence::after_thread_sync;\n");
        let ask = format!("mbarrier.try_wait.parity.{how}.shared::cta.b64 p, [bar], {parity};\n");
        format!("L{0}:\n{ask}@!p bra L{0};\n{after}", self.labels)
    }
}
