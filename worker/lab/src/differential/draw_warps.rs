//! Small random programs with warps of two to four lanes, of the shapes that kernels are made of: acquire, touch, meet,
//! touch, release; and soup. Lanes differ in masks, guards, places and objects.
//!
//! They are drawn as text, an instruction a line, so that lines name instructions however a warp is split.

use moire_generate::numbers::Draw;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};

/// Draws the program of a seed. `None` if the drawn text is refused.
pub fn warps_program(seed: u64) -> Option<Program> {
    let text = warps_text(seed);
    parse(&text, Format::Native).ok()
}

/// The text of [`warps_program`].
fn warps_text(seed: u64) -> String {
    let mut draw = Draw::new(seed);
    let d = &mut draw;
    let lanes = d.pick(&[2, 2, 3, 3, 4]);
    let others = d.pick(&[0, 1, 1, 1, 2]);
    let mut w =
        WarpText { d, lanes, labels: 0, regs: 0, barriers: false, arrivals: [[0; 4]; 2], told: Vec::new() };
    let (mut warp, wait) = if w.d.chance(65) { w.idiom() } else { (w.soup(), None) };
    if w.d.chance(15) {
        let n = w.d.pick(&[lanes, lanes, lanes + others, 2]);
        warp += &format!("bar.sync 1, {n};\n");
    }
    let bodies: Vec<String> = (0..others).map(|_| w.other(wait.as_deref())).collect();
    let counts = w.counts();
    let barriers = w.barriers;
    let asks: Vec<String> = (0..w.regs).map(|r| format!("P0:r{r}")).collect();
    let mut out =
        format!("moire \"warps{seed}\"\n.shared .b8 x[32];\n.shared .b8 y[32];\n.global .b8 f[16];\n");
    out += ".global .b8 g[16];\n.global .b8 v[32];\n.shared .b8 b[32];\n.shared .b8 c[32];\n";
    out += &format!("P0 (gpu 0, cta 0, warp 0, lanes 0-{}) {{\n{}", lanes - 1, prologue(lanes));
    out += if barriers { "bar.sync 0;\n" } else { "" };
    out += &format!("{warp}}}\n");
    for (n, body) in bodies.iter().enumerate() {
        let sync = if barriers { "bar.sync 0;\n" } else { "" };
        out += &format!("P{} (gpu 0, cta 0, warp {}) {{\n.reg s;\n{sync}{body}}}\n", n + 1, n + 1);
    }
    if barriers {
        out += &format!("Q (gpu 0, cta 0, warp 9) {{\n{counts}bar.sync 0;\n}}\n");
    }
    for ask in asks.iter().take(2) {
        let v = w.d.pick(&[0, 1, 1, 2]);
        out += &if w.d.chance(40) { format!("exists ({ask} == {v})\n") } else { String::new() };
    }
    if others > 0 && w.d.chance(40) {
        out += &format!("exists (P1:s == {})\n", w.d.pick(&[0, 1, 2, 3, 4]));
    }
    if w.d.chance(30) {
        let (a, b) = (w.d.pick(&[0, 1]), w.d.pick(&[0, 1, 2]));
        out += &format!("exists ([P0:x].b32 == {a} /\\ [P0:x+4].b32 == {b})\n");
    }
    out
}

/// Numbers and addresses that differ among lanes, and predicates.
fn prologue(lanes: usize) -> String {
    let mut out = String::from(".reg lane = %laneid;\n");
    let mut add = |text: &str| out += &format!("{text}\n");
    add("setp.eq.u32 z, lane, 0;");
    add("setp.ge.u32 h, lane, 1;");
    add("and.b32 low, lane, 1;");
    add("setp.eq.u32 o, low, 1;");
    add("mul.lo.u64 l0, lane, 4;");
    add("add.u64 l1, l0, 4;");
    add(&format!("setp.eq.u32 last, lane, {};", lanes - 1));
    add("selp.b64 l1, 0, l1, last;");
    add("xor.b64 l2, l0, 4;");
    add("mul.lo.u64 l3, low, 4;");
    add("add.u64 l4, l0, 4;");
    for (name, base) in [("x", "x"), ("y", "y"), ("f", "f"), ("g", "g"), ("v", "v")] {
        for n in 0..5 {
            add(&format!("add.u64 {name}{n}, l{n}, {base};"));
        }
    }
    for (name, base) in [("b", "b"), ("c", "c")] {
        for n in [0, 3] {
            add(&format!("add.u64 {name}{n}, l{n}, l{n};"));
            add(&format!("add.u64 {name}{n}, {name}{n}, {base};"));
        }
    }
    out
}

struct WarpText<'d> {
    d: &'d mut Draw,
    lanes: usize,
    labels: usize,
    regs: usize,
    barriers: bool,
    /// First arrivals at the mbarriers b and c, by element.
    arrivals: [[usize; 4]; 2],
    /// Objects that the warp releases.
    told: Vec<String>,
}

impl WarpText<'_> {
    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn reg(&mut self) -> String {
        self.regs += 1;
        format!("r{}", self.regs - 1)
    }

    /// A predicate of some lanes, and how many of them there are.
    fn some(&mut self) -> (&'static str, Vec<usize>) {
        let all: Vec<usize> = (0..self.lanes).collect();
        let of = |keep: &dyn Fn(&usize) -> bool| all.iter().copied().filter(|l| keep(l)).collect();
        match self.d.below(10) {
            0..6 => ("", all.clone()),
            6 | 7 => ("@z ", of(&|l| *l == 0)),
            8 => ("@h ", of(&|l| *l > 0)),
            _ => ("@o ", of(&|l| l % 2 == 1)),
        }
    }

    fn place(&mut self, name: &str) -> String {
        match self.d.below(9) {
            0 => format!("[{name}]"),
            1 => format!("[{name}+4]"),
            2..5 => format!("[{name}0]"),
            5 | 6 => format!("[{name}1]"),
            7 => format!("[{name}2]"),
            _ => {
                let n = self.d.pick(&[3, 4]);
                format!("[{name}{n}]")
            }
        }
    }

    /// A flag of all lanes, or one of each.
    fn object(&mut self, name: &str) -> String {
        match self.d.below(10) {
            0..8 => format!("[{name}]"),
            8 => format!("[{name}0]"),
            _ => format!("[{name}3]"),
        }
    }

    fn data(&mut self) -> String {
        let (who, _) = self.some();
        let name = self.d.pick(&["x", "x", "x", "y"]);
        let place = self.place(name);
        match self.d.below(11) {
            0..4 => format!("{who}st.weak.shared.u32 {place}, {};\n", self.d.pick(&["1", "1", "2", "lane"])),
            4..8 => {
                let r = if self.d.chance(40) { self.reg() } else { "t".to_owned() };
                format!("{who}ld.weak.shared.u32 {r}, {place};\n")
            }
            8 if self.regs > 0 => {
                let r = self.d.below(self.regs);
                format!("{who}st.weak.shared.u32 {place}, r{r};\n")
            }
            _ => {
                let from = self.place("v");
                let wait = if self.d.chance(70) { "cp.async.wait_all;\n" } else { "" };
                format!("{who}cp.async.ca.shared.global {place}, {from}, 4;\n{wait}")
            }
        }
    }

    fn meet(&mut self) -> String {
        let full = (1u32 << self.lanes) - 1;
        match self.d.below(15) {
            0..7 => format!("bar.warp.sync {full};\n"),
            12 => format!("vote.sync.any.pred e, z, {full};\n"),
            13 => {
                let way = self.d.pick(&["idx", "bfly", "down"]);
                let (src, mask) = (self.value(), self.d.pick(&[full, full, full - 1]));
                let who = if mask == full { "" } else { "@h " };
                format!("{who}shfl.sync.{way}.b32 t, {src}, {}, 31, {mask};\n", self.d.pick(&[0, 1]))
            }
            14 => format!("redux.sync.add.u32 t, {}, {full};\n", self.value()),
            7 => format!("@h bar.warp.sync {};\n", full - 1),
            8 => {
                let (who, mask) = self.some();
                let mask: u32 = mask.iter().map(|l| 1 << l).sum();
                format!("{who}bar.warp.sync {mask};\n")
            }
            9 => "elect.sync _|e, 0xffffffff;\n".to_owned(),
            10 => "@z bra N;\nN:\n".replace('N', &self.label()),
            _ => String::new(),
        }
    }

    /// A register, of the warp, with some value.
    fn value(&mut self) -> String {
        let r = self.d.below(self.regs.max(1));
        if self.regs > 0 && self.d.chance(70) { format!("r{r}") } else { "lane".to_owned() }
    }

    /// Waits for something, or asks for it; what others have to do for it.
    fn acquire(&mut self) -> (String, Option<String>) {
        let (who, _) = self.some();
        match self.d.below(11) {
            0..3 => {
                let (label, object, sem) =
                    (self.label(), self.object("f"), self.d.pick(&["acquire", "acquire", "relaxed"]));
                let r = if self.d.chance(30) { self.reg() } else { "t".to_owned() };
                let (skip, end) = self.around(who);
                let text = format!(
                    "{skip}{label}:\nld.{sem}.gpu.u32 {r}, {object};\nsetp.eq.u32 p, {r}, 0;\n@p bra {label};\n{end}"
                );
                (text, Some(object))
            }
            3..8 => {
                self.barriers = true;
                let (label, object) = (self.label(), self.object("b"));
                let (skip, end) = self.around(who);
                let wait = format!(
                    "{label}:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, {object}, 0;\n@!p bra {label};\n"
                );
                let peek = if self.d.chance(25) {
                    let done = self.label();
                    let phase = self.d.pick(&[0, 0, 0, 1]);
                    (
                        format!(
                            "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 q, {object}, {phase};\n@q bra {done};\n"
                        ),
                        format!("{done}:\n"),
                    )
                } else {
                    (String::new(), String::new())
                };
                (format!("{skip}{}{wait}{}{end}", peek.0, peek.1), Some(object))
            }
            8 => {
                let (object, r, sem) =
                    (self.object("f"), self.reg(), self.d.pick(&["acquire", "acquire", "relaxed"]));
                (format!("{who}ld.{sem}.gpu.u32 {r}, {object};\n{}", self.use_of(&r)), Some(object))
            }
            9 => {
                self.barriers = true;
                let (object, r) = (self.object("b"), self.reg());
                (
                    format!(
                        "{who}mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 {r}, {object}, 0;\n{}",
                        self.use_of(&r)
                    ),
                    Some(object),
                )
            }
            _ => {
                let r = self.reg();
                (
                    format!("{who}atom.add.acquire.gpu.u32 {r}, [f], 1;\n{}", self.use_of(&r)),
                    Some("[f]".to_owned()),
                )
            }
        }
    }

    /// A branch around what only some lanes do.
    fn around(&mut self, who: &str) -> (String, String) {
        if who.is_empty() {
            return (String::new(), String::new());
        }
        let label = self.label();
        (format!("{} bra {label};\n", who.trim().replace('@', "@!")), format!("{label}:\n"))
    }

    /// Something that the result of a strong read steers, or not.
    fn use_of(&mut self, r: &str) -> String {
        match self.d.below(8) {
            0 | 1 => String::new(),
            6 | 7 => {
                let (full, data) = ((1u32 << self.lanes) - 1, self.place("x"));
                let way = self.d.pick(&["any", "all"]);
                format!(
                    "setp.ne.u32 p, {r}, 0;\nvote.sync.{way}.pred p, p, {full};\n@p ld.weak.shared.u32 t, {data};\n"
                )
            }
            2 => {
                let (label, data) = (self.label(), self.data());
                format!("setp.eq.u32 p, {r}, 0;\n@p bra {label};\n{data}{label}:\n")
            }
            3 => format!("setp.ne.u32 p, {r}, 0;\n@p st.weak.shared.u32 [x0], 1;\n"),
            4 => format!("st.weak.shared.u32 [x0], {r};\n"),
            _ => {
                let place = self.place("x");
                format!("setp.ne.u32 p, {r}, 0;\n@p ld.weak.shared.u32 t, {place};\n")
            }
        }
    }

    fn release(&mut self) -> String {
        let (who, lanes) = self.some();
        let k = self.d.below(14);
        match k {
            0..5 => {
                self.barriers = true;
                let object = self.object("c");
                for l in lanes {
                    let at = match object.as_str() {
                        "[c]" => 0,
                        "[c0]" => l,
                        _ => l % 2,
                    };
                    self.arrivals[1][at] += 1;
                }
                self.told.push(object.clone());
                let again = if self.d.chance(8) {
                    format!("{who}mbarrier.arrive.shared::cta.b64 _, {object};\n")
                } else {
                    String::new()
                };
                format!("{who}mbarrier.arrive.release.cta.shared::cta.b64 _, {object};\n{again}")
            }
            5..9 => {
                let object = self.object("g");
                self.told.push(object.clone());
                let fence = match self.d.below(3) {
                    0 => "fence.acq_rel.gpu;\n",
                    1 => "@z fence.acq_rel.gpu;\n",
                    _ => "",
                };
                let (op, n) =
                    (self.d.pick(&["add", "add", "add", "or"]), self.d.pick(&["1", "1", "2", "lane"]));
                let more = if self.d.chance(20) {
                    format!("red.relaxed.gpu.global.add.u32 {object}, {};\n", self.d.pick(&[1, 3]))
                } else {
                    String::new()
                };
                format!("{fence}{who}red.relaxed.gpu.global.{op}.u32 {object}, {n};\n{more}")
            }
            9 | 10 => {
                let object = self.object("g");
                self.told.push(object.clone());
                format!("{who}st.release.gpu.u32 {object}, 1;\n")
            }
            11 => {
                self.told.push("[g]".to_owned());
                format!("{who}red.release.gpu.global.add.u32 [g], 1;\n")
            }
            12 => {
                self.told.push("[g]".to_owned());
                format!("fence.acq_rel.gpu;\n{who}st.relaxed.gpu.u32 [g], 1;\n")
            }
            _ => String::new(),
        }
    }

    fn idiom(&mut self) -> (String, Option<String>) {
        let mut out = String::new();
        let mut wait = None;
        if self.d.chance(50) {
            out += &self.data();
        }
        if self.d.chance(60) {
            let (text, object) = self.acquire();
            out += &text;
            wait = object;
        }
        out += &if self.d.chance(40) { self.meet() } else { String::new() };
        for _ in 0..2 {
            out += &if self.d.chance(65) { self.data() } else { String::new() };
        }
        out += &if self.d.chance(45) { self.meet() } else { String::new() };
        if self.d.chance(70) {
            out += &self.release();
            out += &if self.d.chance(25) { self.data() } else { String::new() };
        } else if self.d.chance(40) {
            out += &self.data();
        }
        (out, wait)
    }

    fn soup(&mut self) -> String {
        let pieces = self.d.pick(&[2, 3, 3, 4]);
        let mut out = String::new();
        for _ in 0..pieces {
            out += &match self.d.below(10) {
                0..5 => self.data(),
                5 | 6 => self.meet(),
                7 => self.acquire().0,
                8 => self.release(),
                _ => "@o exit;\n".replace('o', self.d.pick(&["o", "z", "h"])),
            };
        }
        out
    }

    /// A thread of another warp: it waits for what the warp releases, and gives what the warp waits for.
    fn other(&mut self, wanted: Option<&str>) -> String {
        let mut out = String::new();
        if !self.told.is_empty() && self.d.chance(70) {
            let at = self.d.below(self.told.len());
            let object = self.told[at].clone();
            let offset = self.d.pick(&[0, 0, 1]);
            let element = |size: usize, name: &str| {
                if object.len() > 3 { format!("[{name}+{}]", offset * size) } else { format!("[{name}]") }
            };
            let label = self.label();
            if object.starts_with("[c") {
                let place = element(8, "c");
                out += &format!(
                    "{label}:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, {place}, 0;\n@!p bra {label};\n"
                );
            } else {
                let (place, least) = (element(4, "g"), self.d.pick(&[1, 1, 2, 3]));
                out += &format!(
                    "{label}:\nld.acquire.gpu.u32 s, {place};\nsetp.lt.u32 p, s, {least};\n@p bra {label};\n"
                );
            }
        }
        for _ in 0..self.d.pick(&[0, 1, 1, 2]) {
            let at = self.d.pick(&[0, 0, 4, 8]);
            out += &match self.d.below(4) {
                0 | 1 => format!("st.weak.shared.u32 [x+{at}], 2;\n"),
                2 => format!("ld.weak.shared.u32 s, [x+{at}];\n"),
                _ => format!("st.weak.global.u32 [v+{at}], 2;\n"),
            };
        }
        let Some(object) = wanted.filter(|_| self.d.chance(80)) else { return out };
        let elements = if object.len() == 3 { 1 } else { self.d.pick(&[1, self.lanes, self.lanes]) };
        for n in 0..elements {
            if object.starts_with("[b") {
                self.arrivals[0][n] += 1;
                out += &format!("mbarrier.arrive.release.cta.shared::cta.b64 _, [b+{}];\n", 8 * n);
            } else {
                out += &format!("st.release.gpu.u32 [f+{}], {};\n", 4 * n, self.d.pick(&[1, 1, 2]));
            }
        }
        out
    }

    /// Initialises every mbarrier with about as many arrivals as there are.
    fn counts(&mut self) -> String {
        let mut out = String::new();
        for (name, of) in [("b", self.arrivals[0]), ("c", self.arrivals[1])] {
            for (n, seen) in of.into_iter().enumerate().filter(|(n, _)| *n < self.lanes) {
                let off = self.d.pick(&[0, 0, 0, 0, 0, 1]);
                let count = if self.d.chance(50) { seen + off } else { seen.max(1 + off) - off };
                out += &format!("mbarrier.init.shared::cta.b64 [{name}+{}], {};\n", 8 * n, count.max(1));
            }
        }
        out
    }
}
