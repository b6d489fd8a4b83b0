//! Small random programs in which two or three lanes of a warp meet between what they do in tensor memory or at an mbarrier
//! and what one of them does next: it tells another warp, ends the life of the mbarrier, or gives it another count.
//!
//! They tell apart what a meeting orders: `bar.warp.sync` orders memory, an exchange or an election at most execution.
//! They are drawn as text and parsed, which also tests the parser.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;

/// Draws a program. `None` if the drawn text is refused.
pub fn meetings(draw: &mut dyn Choose) -> Option<Program> {
    read(&text(draw))
}

fn text(draw: &mut dyn Choose) -> String {
    let lanes = draw.pick(&[2, 2, 2, 3]);
    let count = draw.pick(&[1, 1, lanes, lanes, lanes + 1]);
    let mut w = MeetingText { d: draw, lanes, told: false, labels: 0 };
    let (first, meeting, second) = (w.deeds(""), w.meeting(), w.sequel());
    let more = if w.d.chance(25) { w.meeting() + &w.sequel() } else { String::new() };
    let other = w.other();
    format!(
        "moire \"meetings\"\n.tmem t[32];\n.shared .b8 a[64];\n.shared .b8 x[4];\n.shared .b64 b;\n\
         P (gpu 0, cta 0, warp 0, lanes 0-{}) {{\n.reg lane = %laneid, r0, r1;\nsetp.eq.u32 z, lane, 0;\nmov.u32 e, z;\n\
         mov.u64 xs, x;\nadd.u64 x0, lane, xs;\n@z mbarrier.init.shared::cta.b64 [b], {count};\nbar.sync 0;\n\
         {first}{meeting}{second}{more}}}\nQ (gpu 0, cta 0, warp 1) {{\nbar.sync 0;\n{other}}}\n",
        lanes - 1
    )
}

struct MeetingText<'d> {
    d: &'d mut dyn Choose,
    lanes: u32,
    /// The warp arrives at the mbarrier.
    told: bool,
    labels: usize,
}

impl MeetingText<'_> {
    fn maybe(&mut self, text: &'static str) -> &'static str {
        if self.d.chance(75) { text } else { "" }
    }

    /// A deed of all lanes or of some, and perhaps another.
    fn deeds(&mut self, guard: &str) -> String {
        let first = self.deed(guard);
        if self.d.chance(35) { first + &self.deed("") } else { first }
    }

    fn deed(&mut self, guard: &str) -> String {
        match self.d.below(10) {
            0..3 => {
                let (wait, fence) = (
                    self.maybe("tcgen05.wait::ld.sync.aligned;\n"),
                    self.maybe("tcgen05.fence::before_thread_sync;\n"),
                );
                format!("tcgen05.ld.sync.aligned.32x32b.x1.b32 {{r1}}, [t];\n{wait}{fence}")
            }
            3..5 => {
                let (wait, fence) = (
                    self.maybe("tcgen05.wait::st.sync.aligned;\n"),
                    self.maybe("tcgen05.fence::before_thread_sync;\n"),
                );
                format!("tcgen05.st.sync.aligned.32x32b.x1.b32 [t], {{r0}};\n{wait}{fence}")
            }
            5..8 => self.arrival(guard),
            8 => format!("{guard}st.weak.shared.u8 [{}], 1;\n", self.d.pick(&["x", "x0", "x0"])),
            _ => self.wait(),
        }
    }

    fn arrival(&mut self, guard: &str) -> String {
        self.told = true;
        match self.d.below(6) {
            0 => format!(
                "{guard}mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 4;\n\
                 {guard}mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [b], 4;\n"
            ),
            1 => format!("{guard}mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [b];\n"),
            _ => format!("{guard}mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\n"),
        }
    }

    fn wait(&mut self) -> String {
        self.labels += 1;
        let (n, parity) = (self.labels, self.d.pick(&[0, 0, 0, 1]));
        let how = self.d.pick(&["acquire.cta", "acquire.cta", "relaxed.cluster"]);
        format!(
            "L{n}:\nmbarrier.try_wait.parity.{how}.shared::cta.b64 p, [b], {parity};\n@!p bra L{n};\n{}",
            self.maybe("tcgen05.fence::after_thread_sync;\n")
        )
    }

    /// An instruction in which lanes meet, perhaps not all of them, or none.
    fn meeting(&mut self) -> String {
        let all = (1u32 << self.lanes) - 1;
        let (guard, mask) =
            self.d.pick(&[("", all), ("", all), ("", all), ("", u32::MAX), ("@!z ", all - 1)]);
        match self.d.below(9) {
            0..2 => format!("{guard}elect.sync _|e, {mask};\n"),
            2..4 => format!("{guard}vote.sync.any.pred q, z, {mask};\n"),
            4 => format!("{guard}shfl.sync.idx.b32 r0, lane, 0, 31, {mask};\n"),
            5 => format!("{guard}redux.sync.add.u32 r0, lane, {mask};\n"),
            6 => format!("{guard}match.any.sync.b32 r0, z, {mask};\n"),
            7 => format!("{guard}bar.warp.sync {mask};\n"),
            _ => String::new(),
        }
    }

    /// What one lane does behind a meeting, or all do.
    fn sequel(&mut self) -> String {
        let guard = self.d.pick(&["@z ", "@z ", "@e ", "@e ", ""]);
        match self.d.below(9) {
            0..3 => self.arrival(guard),
            3..5 => format!("{guard}mbarrier.inval.shared::cta.b64 [b];\n"),
            5 => format!(
                "{guard}mbarrier.inval.shared::cta.b64 [b];\n{guard}mbarrier.init.shared::cta.b64 [b], 1;\n"
            ),
            6 => format!("{guard}ld.weak.shared.u8 r0, [x];\n"),
            _ => self.deeds(guard),
        }
    }

    /// Another warp waits for the phase and uses the memory.
    fn other(&mut self) -> String {
        let mut out = String::new();
        if self.told && self.d.chance(85) {
            out += &self.wait();
        }
        out += match self.d.below(6) {
            0..3 => "tcgen05.cp.cta_group::1.128x256b [t], desc(a, 64);\n",
            3 => "st.weak.shared.u8 [x], 2;\n",
            4 => "mbarrier.inval.shared::cta.b64 [b];\n",
            _ => "",
        };
        out
    }
}
