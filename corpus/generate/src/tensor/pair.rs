//! The frame of small programs of two warps: the first works and arrives at an mbarrier, the second waits and uses what it did.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;

/// Two warps of a CTA, or of two CTAs of a pair.
pub(super) struct Pair<'d> {
    pub(super) d: &'d mut dyn Choose,
    /// The warps run in two CTAs of a cluster.
    pub(super) clusters: bool,
}

impl Pair<'_> {
    /// The text, or nothing in one of four cases.
    pub(super) fn maybe(&mut self, text: &str) -> String {
        if self.d.chance(75) { text.to_owned() } else { String::new() }
    }

    /// An arrival at `b` of the first warp's CTA.
    pub(super) fn arrive(&mut self) -> String {
        let how = self.d.pick(&["release.cta", "release.cta", "relaxed.cluster"]);
        format!("mbarrier.arrive.{how}.shared::cta.b64 _, [b];\n")
    }

    /// A wait for the first phase of `b`.
    pub(super) fn wait(&mut self, label: &str) -> String {
        let how = self.d.pick(&["acquire.cta", "acquire.cluster", "relaxed.cluster"]);
        format!("{label}:\nmbarrier.try_wait.parity.{how}.shared::cta.b64 p, [b], 0;\n@!p bra {label};\n")
    }

    /// The program with this memory and these two warps. `b` expects one arrival. `None` if the text is refused.
    pub(super) fn program(&mut self, memory: &str, first: &str, second: &str) -> Option<Program> {
        let meets = match self.clusters {
            true => "fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
            false => "bar.sync 0;\n",
        };
        let (cta, init) = match self.clusters {
            true => (1, "mbarrier.init.shared::cta.b64 [b], 1;\n"),
            false => (0, ""),
        };
        let text = format!(
            "moire \"pair\"\n.shared .b64 b;\n{memory}\
             P0 (gpu 0, cta 0, warp 0) {{\nmbarrier.init.shared::cta.b64 [b], 1;\n{meets}{first}}}\n\
             P1 (gpu 0, cta {cta}, warp 1) {{\n{init}{meets}{second}}}\n"
        );
        read(&text)
    }
}
