//! Small random programs around mbarriers: protocols of two or three threads, right and wrong.
//!
//! They are drawn as text and parsed, which also tests the parser. Most programs initialise their objects and
//! synchronise once before they use them. Some do not, and some invalidate an object and initialise it again.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;

struct MbarrierText<'d> {
    d: &'d mut dyn Choose,
    objects: usize,
    clusters: bool,
    labels: usize,
    /// Operations on each object so far. They are few, because their orders are factorial in number.
    used: Vec<usize>,
    /// For each object, whether a state register holds a state of it.
    states: Vec<bool>,
}

/// Draws a program. `None` if the drawn text is refused.
pub fn mbarrier(d: &mut dyn Choose) -> Option<Program> {
    let threads = d.pick(&[2, 2, 2, 3]);
    let objects = d.pick(&[1, 1, 2]);
    let clusters = d.chance(25);
    let mut w = MbarrierText { d, objects, clusters, labels: 0, used: vec![0; objects], states: vec![] };
    let mut out = String::from("moire \"mbarrier\"\n");
    for b in 0..objects {
        out += &format!(".shared .b64 b{b};\n");
    }
    out += ".shared .b32 x;\n.global .b32 f;\n";
    let synchronised = w.d.chance(80);
    let published = w.d.chance(80);
    let operations = w.d.pick(&[2, 3, 3, 4]);
    for t in 0..threads {
        w.states = vec![false; objects];
        let cta = if clusters && t > 0 { w.d.pick(&[0, 1, 1]) } else { 0 };
        out += &format!("P{t} (gpu 0, cta {cta}) {{\n");
        if t == 0 {
            out += &w.prologue();
        }
        if synchronised {
            out += &w.synchronise(published && t == 0);
        }
        if cta == 1 {
            for b in 0..objects {
                out += &format!("mapa.shared::cluster.u32 a{b}, b{b}, 0;\n");
            }
        }
        for _ in 0..operations {
            out += &w.operation(cta == 1);
        }
        out += "}\n";
    }
    read(&out)
}

impl MbarrierText<'_> {
    fn prologue(&mut self) -> String {
        let mut out = String::new();
        for b in 0..self.objects {
            let count = self.d.pick(&[1, 1, 1, 2, 2, 3]);
            if self.d.chance(96) {
                self.used[b] += 1;
                out += &format!("mbarrier.init.shared::cta.b64 [b{b}], {count};\n");
            }
        }
        out
    }

    fn synchronise(&mut self, publish: bool) -> String {
        if !self.clusters {
            return "bar.sync 0;\n".into();
        }
        let fence = if publish { "fence.mbarrier_init.release.cluster;\n" } else { "" };
        let relaxed = if self.d.chance(50) { ".relaxed" } else { "" };
        format!("{fence}barrier.cluster.arrive{relaxed};\nbarrier.cluster.wait;\n")
    }

    fn scope(&mut self, strong: &str) -> String {
        let scope = if self.clusters { self.d.pick(&["cluster", "cluster", "cta"]) } else { "cta" };
        let order = if self.d.chance(25) { "relaxed" } else { strong };
        format!(".{order}.{scope}")
    }

    fn operation(&mut self, remote: bool) -> String {
        let b = self.d.below(self.objects);
        let kind = self.d.below(100);
        if self.used[b] > 6 && kind < 82 {
            return String::new();
        }
        let remote_kind = remote && kind < 82;
        self.used[b] += usize::from(kind < 82);
        let (at, space) =
            if remote { (format!("a{b}"), ".shared::cluster") } else { (format!("b{b}"), ".shared::cta") };
        let bytes = self.d.pick(&[8, 8, 16]);
        match kind {
            0..30 => {
                let scope = self.scope("release");
                let drop = if self.d.chance(15) { "_drop" } else { "" };
                let many = if self.d.chance(8) { ", 2" } else { "" };
                if !remote && self.d.chance(20) {
                    self.states[b] = true;
                    return format!("mbarrier.arrive{drop}{scope}{space}.b64 s{b}, [{at}]{many};\n");
                }
                format!("mbarrier.arrive{drop}{scope}{space}.b64 _, [{at}]{many};\n")
            }
            30..40 => {
                let scope = self.scope("release");
                let drop = if self.d.chance(20) { "_drop" } else { "" };
                format!("mbarrier.arrive{drop}.expect_tx{scope}{space}.b64 _, [{at}], {bytes};\n")
            }
            40..52 => format!("mbarrier.complete_tx.relaxed.cluster{space}.b64 [{at}], {bytes};\n"),
            52..56 => format!("mbarrier.expect_tx.relaxed.cta{space}.b64 [{at}], {bytes};\n"),
            _ if remote_kind => {
                let scope = self.scope("release");
                format!("mbarrier.arrive{scope}{space}.b64 _, [{at}];\n")
            }
            56..58 if !remote => {
                let drop = self.d.pick(&["", "_drop"]);
                format!("mbarrier.arrive{drop}.noComplete{space}.b64 s{b}, [{at}], 1;\n")
            }
            58..60 => {
                let again = if self.d.chance(60) { "" } else { "inval" };
                self.used[b] += 1;
                match again {
                    "" => format!(
                        "mbarrier.inval.shared::cta.b64 [{at}];\nmbarrier.init.shared::cta.b64 [{at}], 1;\n"
                    ),
                    _ => format!("mbarrier.inval.shared::cta.b64 [{at}];\n"),
                }
            }
            60..66 => self.test(b),
            66..82 => self.wait(b),
            82..88 => "st.weak.shared.u32 [x], 1;\n".into(),
            88..94 => "ld.weak.shared.u32 r0, [x];\n".into(),
            94..97 => "st.release.gpu.u32 [f], 1;\n".into(),
            _ => "ld.acquire.gpu.u32 r1, [f];\n".into(),
        }
    }

    /// Writes a test of a phase, whose answer may decide a store or be stored.
    fn test(&mut self, b: usize) -> String {
        let scope = self.scope("acquire");
        let ask = self.ask(b, "test_wait", &scope, "q");
        let then = match self.d.below(3) {
            0 => "@q st.weak.shared.u32 [x], 2;\n".to_owned(),
            1 => "selp.u32 r2, 1, 0, q;\nst.relaxed.gpu.u32 [f], r2;\n".to_owned(),
            _ => String::new(),
        };
        format!("{ask}{then}")
    }

    fn wait(&mut self, b: usize) -> String {
        self.labels += 1;
        let label = format!("L{}", self.labels);
        let scope = self.scope("acquire");
        let ask = self.ask(b, "try_wait", &scope, "p");
        format!("{label}:\n{ask}@!p bra {label};\n")
    }

    fn ask(&mut self, b: usize, form: &str, scope: &str, p: &str) -> String {
        if self.states[b] && self.d.chance(50) {
            return format!("mbarrier.{form}{scope}.shared::cta.b64 {p}, [b{b}], s{b};\n");
        }
        let parity = self.d.pick(&[0, 0, 1]);
        format!("mbarrier.{form}.parity{scope}.shared::cta.b64 {p}, [b{b}], {parity};\n")
    }
}
