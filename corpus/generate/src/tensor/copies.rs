//! Small random programs of asynchronous copies: loads that report to mbarriers, stores and small copies in groups,
//! copies to other CTAs, warpgroup products, launch control. Each wait, fence and group of a correct program is
//! sometimes left out.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;
use std::fmt::Write as _;

struct CopiesText<'d> {
    d: &'d mut dyn Choose,
    labels: usize,
    /// Operations on each of two mbarriers so far. They are few, because their orders are factorial in number.
    used: [usize; 2],
    /// Writes so far. They are few, because the sources of reads multiply.
    writes: usize,
    clusters: bool,
    cta: usize,
}

/// Draws a program. `None` if the drawn text is refused.
pub fn copies(draw: &mut dyn Choose) -> Option<Program> {
    let threads = draw.pick(&[1, 2, 2, 2, 3]);
    let clusters = threads > 1 && draw.chance(40);
    let mut w = CopiesText { d: draw, labels: 0, used: [1, 1], writes: 0, clusters, cta: 0 };
    let mut out = String::from(
        "moire \"copies\"\n.global .b8 g[32];\n.global .b8 m[128];\n.global .b32 f;\n\
         .shared .b8 s[32];\n.shared .b64 b0;\n.shared .b64 b1;\n",
    );
    let operations = w.d.pick(&[3, 4, 5, 6]) / threads + 2;
    let synchronised = w.d.chance(85);
    for t in 0..threads {
        w.cta = if clusters { t % 2 } else { 0 };
        let _ = writeln!(out, "P{t} (gpu 0, cta {}, warp {t}) {{\n.reg r0, r1, r2, r3, r4;", w.cta);
        if t < if clusters { 2 } else { 1 } {
            for b in 0..2 {
                let count = w.d.pick(&[1, 1, 1, 2]);
                let _ = writeln!(out, "mbarrier.init.shared::cta.b64 [b{b}], {count};");
            }
            out += w.maybe("fence.mbarrier_init.release.cluster;\n");
        }
        if synchronised {
            out +=
                if clusters { "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" } else { "bar.sync 0;\n" };
        }
        for name in if clusters { ["s", "b0", "b1"].as_slice() } else { &[] } {
            let _ = writeln!(out, "mapa.shared::cluster.u32 far_{name}, {name}, {};", 1 - w.cta);
        }
        for _ in 0..operations {
            out += &w.step();
        }
        out += "}\n";
    }
    read(&out)
}

impl CopiesText<'_> {
    fn maybe(&mut self, text: &'static str) -> &'static str {
        if self.d.chance(75) { text } else { "" }
    }

    fn step(&mut self) -> String {
        if self.writes > 4 {
            return self.wait();
        }
        match self.d.below(100) {
            0..22 => self.load(),
            22..34 => self.store(),
            34..46 => self.small(),
            46..54 => self.remote(),
            54..60 => self.product(),
            60..76 => self.wait(),
            76..82 => self.generic(),
            82..88 => self.fence().into(),
            88..92 => self.arrive(),
            92..95 => self.map(),
            95..98 => self.flag().into(),
            _ => "bar.sync 1;\n".into(),
        }
    }

    fn object(&mut self) -> Option<usize> {
        let b = self.d.below(2);
        self.used[b] += 2;
        (self.used[b] <= 6).then_some(b)
    }

    fn expect(&mut self, b: usize, bytes: u32) -> String {
        let bytes = if self.d.chance(93) { bytes } else { 8 };
        match self.d.below(10) {
            0..7 => format!("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b{b}], {bytes};\n"),
            7 => format!("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b{b}], {bytes};\n"),
            _ => String::new(),
        }
    }

    /// Writes a copy from global memory to the shared memory of one CTA or both, or a launch control request, whose
    /// answer goes there.
    fn load(&mut self) -> String {
        let Some(b) = self.object() else { return String::new() };
        self.writes += 1;
        let (at, bytes) = self.d.pick(&[("", 32), ("", 32), ("", 16), ("+16", 16)]);
        let expect = self.expect(b, bytes);
        let bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
        let copy = match self.d.below(10) {
            0 => format!(
                "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [s], [b{b}];\n"
            ),
            1 => {
                let tensor = bulk.replace("bulk", "bulk.tensor.1d").replace("global", "global.tile");
                format!("{tensor} [s], [m as tile(g, 32), {{0}}], [b{b}];\n")
            }
            2..6 if self.clusters => {
                let mask = self.d.pick(&[3, 3, 1, 2]);
                format!("{bulk}.multicast::cluster [s{at}], [g{at}], {bytes}, [b{b}], {mask};\n")
            }
            _ => format!("{bulk} [s{at}], [g{at}], {bytes}, [b{b}];\n"),
        };
        format!("{expect}{copy}")
    }

    /// Writes a copy out of shared memory, in a group.
    fn store(&mut self) -> String {
        self.writes += 1;
        let fence = self.maybe("fence.proxy.async;\n");
        let how = self.d.pick(&["cp.async.bulk", "cp.async.bulk", "cp.reduce.async.bulk"]);
        let op = if how.contains("reduce") { ".add.u32" } else { "" };
        let commit = self.maybe("cp.async.bulk.commit_group;\n");
        let wait = self.d.pick(&[
            "cp.async.bulk.wait_group 0;\n",
            "cp.async.bulk.wait_group.read 0;\n",
            "cp.async.bulk.wait_group 1;\n",
            "",
        ]);
        format!("{fence}{how}.global.shared::cta.bulk_group{op} [g], [s], 32;\n{commit}{wait}")
    }

    fn small(&mut self) -> String {
        self.writes += 1;
        let at = self.d.pick(&["", "+16"]);
        let end = match self.d.below(8) {
            0..3 => "cp.async.commit_group;\ncp.async.wait_group 0;\n".into(),
            3 => "cp.async.wait_group 0;\n".into(),
            4..6 => "cp.async.wait_all;\n".into(),
            _ => match self.object() {
                Some(b) => {
                    let how = self.d.pick(&["", ".noinc"]);
                    format!("cp.async.mbarrier.arrive{how}.shared::cta.b64 [b{b}];\n")
                }
                None => String::new(),
            },
        };
        format!("cp.async.ca.shared::cta.global [s{at}], [g{at}], 16;\n{end}")
    }

    fn remote(&mut self) -> String {
        self.writes += 1;
        if !self.clusters {
            let how = [
                "st.async.release.gpu.global.u32 [f], 1;\n",
                "red.async.release.gpu.global.add.u32 [f], 1;\n",
            ];
            return self.d.pick(&how).into();
        }
        let Some(b) = self.object() else { return String::new() };
        match self.d.below(4) {
            3 => format!(
                "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [far_s], 1, [far_b{b}];\n"
            ),
            0 => format!(
                "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [far_s], [s], 32, [far_b{b}];\n"
            ),
            1 => format!("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [far_b{b}];\n"),
            _ => {
                format!("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [far_s], 7, [far_b{b}];\n")
            }
        }
    }

    fn product(&mut self) -> String {
        let fence = self.maybe("wgmma.fence.sync.aligned;\n");
        let wait = self.maybe("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
        format!(
            "{fence}wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{r1, r2, r3, r4}}, desc(s, 16), desc(s+16, 16), 1, 1, 1, 0, 0;\n{wait}"
        )
    }

    fn wait(&mut self) -> String {
        let Some(b) = self.object() else { return String::new() };
        self.labels += 1;
        let how = self.d.pick(&["acquire.cta", "acquire.cta", "relaxed.cluster"]);
        let parity = self.d.pick(&[0, 0, 0, 1]);
        let ask = format!("mbarrier.try_wait.parity.{how}.shared::cta.b64 p, [b{b}], {parity};\n");
        format!("L{0}:\n{ask}@!p bra L{0};\n", self.labels)
    }

    fn arrive(&mut self) -> String {
        let Some(b) = self.object() else { return String::new() };
        format!("mbarrier.arrive.release.cta.shared::cta.b64 _, [b{b}];\n")
    }

    fn generic(&mut self) -> String {
        let space = self.d.pick(&[
            "shared::cta.u32 {r}[s]{v}",
            "shared::cta.u32 {r}[s+16]{v}",
            "global.u32 {r}[g]{v}",
        ]);
        if self.d.chance(50) {
            let reg = self.d.pick(&["r0", "r0", "r1"]);
            return format!("ld.weak.{};\n", space.replace("{r}", &format!("{reg}, ")).replace("{v}", ""));
        }
        self.writes += 1;
        let value = self.d.pick(&["1", "1", "r0"]);
        format!("st.weak.{};\n", space.replace("{r}", "").replace("{v}", &format!(", {value}")))
    }

    fn fence(&mut self) -> &'static str {
        self.d.pick(&[
            "fence.proxy.async;\n",
            "fence.proxy.async;\n",
            "fence.proxy.async.shared::cta;\n",
            "fence.proxy.async.shared::cluster;\n",
            "fence.proxy.async.global;\n",
            "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\n",
            "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;\n",
            "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cta;\n",
            "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster;\n",
            "fence.acq_rel.cluster;\n",
            "fence.release.sync_restrict::shared::cta.cluster;\n",
            "fence.acquire.sync_restrict::shared::cluster.cluster;\n",
        ])
    }

    fn map(&mut self) -> String {
        let (release, acquire) = (
            self.maybe("fence.proxy.tensormap::generic.release.gpu;\n"),
            self.maybe("fence.proxy.tensormap::generic.acquire.gpu [m], 128;\n"),
        );
        format!("tensormap.replace.tile.global_address.global.b1024.b64 [m], 0;\n{release}{acquire}")
    }

    /// Writes one half of message passing through a word.
    fn flag(&mut self) -> &'static str {
        self.d.pick(&[
            "st.release.gpu.global.u32 [f], 1;\n",
            "ld.acquire.gpu.global.u32 r0, [f];\n",
            "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [f], 1;\n",
        ])
    }
}
