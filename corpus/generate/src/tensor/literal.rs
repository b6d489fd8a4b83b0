//! Small random programs with one warp of two to four lanes, each a thread: divergence on the lane number and on data, masks,
//! exchanges, elections, barriers of the warp and of the CTA, mbarriers to which each lane arrives, flags of each lane.
//!
//! They are drawn as text and parsed, which also tests the parser. Memory is accessed byte by byte: it has few cells.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;

/// Draws a program. `None` if the drawn text is refused.
pub(super) fn literal(d: &mut dyn Choose) -> Option<Program> {
    read(&text(d))
}

fn text(d: &mut dyn Choose) -> String {
    let lanes = d.pick(&[2, 2, 2, 3, 3, 4]);
    let other = d.chance(50);
    let mut out = String::from("moire \"literal\"\n.shared .b8 x[4];\n.global .b8 f[4];\n.shared .b64 b;\n");
    let count = d.pick(&[1, lanes, lanes, lanes + 1]);
    let mut w = LiteralText { d, lanes, labels: 0, arrives: false };
    let pieces = if lanes > 2 { w.d.pick(&[1, 2, 2]) } else { w.d.pick(&[2, 2, 3]) };
    let mut body: String = (0..pieces).map(|_| w.piece()).collect();
    body += &if w.d.chance(70) { w.access("") } else { String::new() };
    let there = if other { w.elsewhere() } else { String::new() };
    let set_up = if w.arrives {
        format!("@z mbarrier.init.shared::cta.b64 [b], {count};\nbar.sync 0;\n")
    } else {
        String::new()
    };
    let parts = if w.d.chance(15) && lanes > 2 { vec![(0, 1), (1, lanes)] } else { vec![(0, lanes)] };
    for (from, to) in parts {
        let joined = if to - from > 1 && w.d.chance(10) { " joined" } else { "" };
        let place =
            if to - from == 1 { "lane 0".to_owned() } else { format!("lanes {from}-{}{joined}", to - 1) };
        out += &format!("P{from} (gpu 0, cta 0, warp 0, {place}) {{\n{PROLOGUE}{set_up}{body}}}\n");
    }
    if other {
        let meets = if w.arrives { "bar.sync 0;\n" } else { "" };
        out += &format!("Q (gpu 0, cta 0, warp 1) {{\n{meets}{there}}}\n");
    }
    out
}

/// The lane's number, predicates of some lanes, and its own and its neighbour's place of each array.
const PROLOGUE: &str = ".reg lane = %laneid;\nsetp.eq.u32 z, lane, 0;\nsetp.ge.u32 h, lane, 1;\nxor.b64 n, lane, 1;\n\
                        mov.u64 xs, x;\nadd.u64 x0, lane, xs;\nadd.u64 x1, n, xs;\nmov.u64 fs, f;\nadd.u64 f0, lane, fs;\n\
                        add.u64 f1, n, fs;\nmov.u32 r, 0;\nsetp.eq.u32 q, lane, 1;\n";

struct LiteralText<'d> {
    d: &'d mut dyn Choose,
    lanes: usize,
    labels: usize,
    /// Something uses the mbarrier.
    arrives: bool,
}

impl LiteralText<'_> {
    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn guard(&mut self) -> &'static str {
        self.d.pick(&["", "", "", "@z ", "@h ", "@q ", "@!q "])
    }

    /// All lanes, most of the time.
    fn mask(&mut self) -> u32 {
        let all = (1u32 << self.lanes) - 1;
        self.d.pick(&[all, all, all, all, u32::MAX, all - 1, 1, 3])
    }

    fn place(&mut self, name: &str) -> String {
        match self.d.below(4) {
            0 => format!("[{name}]"),
            1 => format!("[{name}1]"),
            _ => format!("[{name}0]"),
        }
    }

    fn access(&mut self, guard: &str) -> String {
        let place = self.place("x");
        match self.d.below(2) {
            0 => format!("{guard}st.weak.shared.u8 {place}, 1;\n"),
            _ => format!("{guard}ld.weak.shared.u8 r, {place};\n"),
        }
    }

    fn strong(&mut self, guard: &str) -> String {
        let place = self.place("f");
        match self.d.below(4) {
            0 => format!("{guard}st.relaxed.gpu.global.u8 {place}, 1;\n"),
            1 => format!("{guard}st.release.gpu.global.u8 {place}, 1;\n"),
            _ => format!("{guard}ld.acquire.gpu.global.u8 r, {place};\nsetp.ne.u32 q, r, 0;\n"),
        }
    }

    fn exchange(&mut self) -> String {
        let mask = self.mask();
        let guard = self.d.pick(&["", "", "", "", "@h "]);
        let value = self.d.pick(&["lane", "r", "5"]);
        match self.d.below(10) {
            0..4 => {
                let (mode, not) = (self.d.pick(&["any", "all", "uni"]), self.d.pick(&["", "", "!"]));
                format!("{guard}vote.sync.{mode}.pred q, {not}q, {mask};\n")
            }
            4 => format!("{guard}vote.sync.ballot.b32 r, q, {mask};\nsetp.eq.u32 q, r, 1;\n"),
            5..7 => {
                let (way, by) = (self.d.pick(&["idx", "idx", "up", "down", "bfly"]), self.d.pick(&[0, 0, 1]));
                let clamp = if way == "up" { 0 } else { 31 };
                format!(
                    "{guard}shfl.sync.{way}.b32 r|p, {value}, {by}, {clamp}, {mask};\nsetp.ne.u32 q, r, 0;\n"
                )
            }
            7 => format!("{guard}match.any.sync.b32 r, {value}, {mask};\nsetp.eq.u32 q, r, 1;\n"),
            8 => {
                let op = self.d.pick(&["add.u32", "max.s32", "or.b32"]);
                format!("{guard}redux.sync.{op} r, {value}, {mask};\nsetp.eq.u32 q, r, 1;\n")
            }
            _ => format!("{guard}elect.sync _|q, {mask};\n"),
        }
    }

    /// An instruction or two, perhaps for some lanes only.
    fn piece(&mut self) -> String {
        let guard = self.guard();
        match self.d.below(20) {
            0..4 => self.access(guard),
            4..8 => self.exchange(),
            8 | 9 => {
                let mask = self.mask();
                format!("bar.warp.sync {mask};\n")
            }
            10 | 11 => self.strong(guard),
            12 | 13 => {
                self.arrives = true;
                format!("{guard}mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\n")
            }
            14 => {
                self.arrives = true;
                let label = self.label();
                format!(
                    "{label}:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n@!p bra {label};\n"
                )
            }
            15 => {
                let many = self.d.pick(&[self.lanes, self.lanes + 1, 1]);
                format!("{guard}bar.sync 1, {many};\n")
            }
            16 => "bar.sync 2;\n".to_owned(),
            17 => {
                let some = self.d.pick(&["z", "h", "q"]);
                let (end, first, second) = (self.label(), self.access(""), self.exchange());
                format!("@{some} bra {end};\n{first}{second}{end}:\n")
            }
            18 => format!("{guard}red.relaxed.gpu.global.add.u32 [f], 1;\n"),
            _ => format!("{}exit;\n", self.d.pick(&["@z ", "@h ", "@q "])),
        }
    }

    /// What a thread of another warp does.
    fn elsewhere(&mut self) -> String {
        let at = self.d.pick(&[0, 0, 1]);
        match self.d.below(6) {
            0 => format!("st.weak.shared.u8 [x+{at}], 2;\nst.release.gpu.global.u8 [f+{at}], 1;\n"),
            1 => format!("ld.acquire.gpu.global.u8 s, [f+{at}];\nld.weak.shared.u8 t, [x];\n"),
            2 if self.arrives => "mbarrier.arrive.release.cta.shared::cta.b64 _, [b];\n".to_owned(),
            3 if self.arrives => format!(
                "L:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n@!p bra L;\nld.weak.shared.u8 t, [x+{at}];\n"
            ),
            4 => "bar.sync 2;\n".to_owned(),
            _ => format!("ld.weak.shared.u8 t, [x+{at}];\n"),
        }
    }
}
