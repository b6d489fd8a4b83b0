//! Small random programs about what counts: phases of mbarriers and generations of barriers, in rounds.
//!
//! A round is right or nearly so: bytes are announced with an arrival or apart from it, by the thread that arrives or by another
//! one, in the own CTA or from another one, before or after they come; barriers name some threads, all or none, and threads
//! exit before others are done. A few instructions are then deleted, repeated or moved. The rounds are in a loop with a free
//! number, and threads stand in the text in any order. They are drawn as text and parsed, which also tests the parser.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;
use moire_program::loops::unroll;
use std::collections::BTreeMap;

/// Most rounds of a program without loops.
const ROUNDS: usize = 2;

/// What a thread executes: before its loop, in it, and after it. Each text is of one instruction, or of one wait.
#[derive(Clone, Debug, Default)]
struct Body {
    parts: [Vec<String>; 3],
    /// It belongs to the other CTA, and names objects by the addresses there.
    remote: bool,
}

struct CountingText<'d> {
    d: &'d mut dyn Choose,
    threads: usize,
    labels: usize,
}

/// Draws a program in a loop. `None` if the drawn text is refused.
pub fn looped(draw: &mut dyn Choose) -> Option<Program> {
    read(&text(draw))
}

/// Draws a program with a number of rounds. `None` if the drawn text is refused.
pub fn counting(draw: &mut dyn Choose) -> Option<Program> {
    let program = looped(draw)?;
    rounds(&program, 1 + draw.below(ROUNDS))
}

/// The program with so many rounds of its loop.
pub(super) fn rounds(program: &Program, rounds: usize) -> Option<Program> {
    let rounds = u32::try_from(rounds).ok()?;
    unroll(program, &BTreeMap::from([("K".to_owned(), vec![rounds])])).ok()
}

fn text(draw: &mut dyn Choose) -> String {
    let threads = draw.pick(&[2, 2, 3]);
    let mut w = CountingText { d: draw, threads, labels: 0 };
    let mut bodies = match w.d.below(4) {
        0 => w.meeting(),
        _ => w.ring(),
    };
    let clusters = bodies.iter().any(|b| b.remote);
    for _ in 0..w.d.pick(&[0, 0, 1, 1, 2]) {
        w.mistake(&mut bodies);
    }
    let counts = [w.d.pick(&[1, 1, 1, 2]), if threads > 2 { w.d.pick(&[1, 2, 2]) } else { 1 }];
    let launch = if clusters && w.d.chance(40) { ".launch;\n" } else { "" };
    let mut out = format!("moire \"counting\"\n{launch}.shared .b64 full;\n.shared .b64 empty;\n");
    out += ".shared .b8 a[16];\n.shared .b32 x;\n.global .b8 g[16];\n";
    let mut texts: Vec<String> =
        bodies.iter().enumerate().map(|(t, b)| w.thread(t, b, (clusters, counts))).collect();
    while !texts.is_empty() {
        let at = w.d.below(texts.len());
        out += &texts.swap_remove(at);
    }
    out
}

impl CountingText<'_> {
    fn thread(&mut self, t: usize, body: &Body, (clusters, counts): (bool, [usize; 2])) -> String {
        let cta = usize::from(body.remote);
        let place = if clusters { format!("cluster 0, cta {cta}") } else { "cta 0".to_owned() };
        let mut out = format!("P{t} (gpu 0, {place}, warp {t}) {{\n.reg p, r, pf, pe = 1;\n");
        if t == 0 {
            for (name, count) in ["full", "empty"].iter().zip(counts) {
                out += &format!("mbarrier.init.shared::cta.b64 [{name}], {count};\n");
            }
        }
        out += match clusters {
            true => "fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
            false => "bar.sync 0;\n",
        };
        if body.remote {
            for name in ["full", "empty", "a"] {
                out += &format!("mapa.shared::cluster.u32 f{name}, {name}, 0;\n");
            }
        }
        let [before, inside, after] = &body.parts;
        let flips = "xor.b32 pf, pf, 1;\nxor.b32 pe, pe, 1;\n";
        if inside.is_empty() && self.d.chance(70) {
            return format!("{out}{}{}}}\n", before.concat(), after.concat());
        }
        let round = inside.concat() + flips;
        let (first, trips) = match self.d.below(10) {
            // The first round stands in front of the loop, or is forgotten.
            0 => (round.replace('L', "F"), "K - 1"),
            1 => (String::new(), "K - 1"),
            _ => (String::new(), "K"),
        };
        format!("{out}{}{first}repeat {trips} {{\n{round}}}\n{}}}\n", before.concat(), after.concat())
    }

    /// A stage that is filled and read: one arms it, one fills it, one or two read it.
    fn ring(&mut self) -> Vec<Body> {
        let mut bodies = vec![Body::default(); self.threads];
        let last = self.threads - 1;
        bodies[last].remote = self.threads > 2 && self.d.chance(30);
        let near = if bodies[last].remote { last } else { self.threads };
        let (arms, reads) = if self.d.chance(70) { (0, 1) } else { (1, 0) };
        if self.d.chance(85) {
            let wait = self.wait("empty", "pe");
            bodies[0].parts[1].push(wait);
        }
        let (fills, says) = (self.d.pick(&[0, 0, last]), self.d.pick(&[arms, arms, arms, last]));
        self.arm(&mut bodies, arms, says);
        let filled = self.fill(&bodies[fills]);
        bodies[fills].parts[1].extend(filled);
        let mut users = vec![reads, last];
        users.dedup();
        for t in users {
            if t == reads || (t < near && t > reads && self.d.chance(60)) {
                let wait = self.wait("full", "pf");
                bodies[t].parts[1].push(wait);
                let read =
                    self.d.pick(&["ld.weak.shared::cta.b8 r, [a];\n", "ld.weak.shared::cta.u32 r, [x];\n"]);
                bodies[t].parts[1].push(read.to_owned());
            }
            let arrive = self.arrive(&bodies[t], "empty");
            bodies[t].parts[1].push(arrive);
        }
        for _ in 0..self.d.pick(&[0, 0, 1, 2]) {
            self.stray(&mut bodies);
        }
        bodies
    }

    /// Arrivals for the bytes of a round, in one instruction or in two, of one thread or of two.
    fn arm(&mut self, bodies: &mut [Body], arms: usize, says: usize) {
        let bytes = self.d.pick(&[16, 16, 16, 8]);
        let both = self.announce(&bodies[arms], true, bytes);
        let (expect, arrive) =
            (self.announce(&bodies[says], false, bytes), self.arrive(&bodies[arms], "full"));
        match self.d.below(6) {
            0..3 => bodies[arms].parts[1].push(both),
            3 => bodies[arms].parts[1].push(arrive),
            4 => {
                bodies[says].parts[1].push(expect);
                bodies[arms].parts[1].push(arrive);
            }
            _ => {
                bodies[arms].parts[1].push(arrive);
                bodies[says].parts[1].push(expect);
            }
        }
    }

    /// A round of barriers around a location.
    fn meeting(&mut self) -> Vec<Body> {
        let mut bodies = vec![Body::default(); self.threads];
        let counts = [String::new(), format!(", {}", self.threads), ", 2".to_owned()];
        let count = counts[self.d.below(3)].clone();
        let comes = self.d.chance(60);
        for (t, body) in bodies.iter_mut().enumerate().filter(|(t, _)| *t < 2 || comes) {
            let access = if t == 0 {
                "st.weak.shared::cta.u32 [x], 1;\n"
            } else {
                "ld.weak.shared::cta.u32 r, [x];\n"
            };
            let first = if t == 0 && count.len() > 2 && self.d.chance(25) { "arrive" } else { "sync" };
            let meet = [format!("bar.{first} 1{count};\n"), format!("bar.sync 2{count};\n")];
            let at = usize::from(t > 0);
            body.parts[1].extend(meet);
            body.parts[1].insert(at, access.to_owned());
            if self.d.chance(20) {
                body.parts[self.d.pick(&[0, 2])].push(format!("bar.sync 1{};\n", counts[self.d.below(3)]));
            }
        }
        bodies
    }

    fn names(body: &Body) -> (&'static str, &'static str) {
        if body.remote { ("f", "::cluster") } else { ("", "::cta") }
    }

    fn arrive(&mut self, body: &Body, name: &str) -> String {
        let ((far, space), scope) = (Self::names(body), if body.remote { "cluster" } else { "cta" });
        format!("mbarrier.arrive.release.{scope}.shared{space}.b64 _, [{far}{name}];\n")
    }

    fn announce(&mut self, body: &Body, arrives: bool, bytes: usize) -> String {
        let (far, space) = Self::names(body);
        let scope = if body.remote { "cluster" } else { "cta" };
        match arrives {
            true => format!(
                "mbarrier.arrive.expect_tx.release.{scope}.shared{space}.b64 _, [{far}full], {bytes};\n"
            ),
            false => format!("mbarrier.expect_tx.relaxed.{scope}.shared{space}.b64 [{far}full], {bytes};\n"),
        }
    }

    /// The bytes of a round.
    fn fill(&mut self, body: &Body) -> Vec<String> {
        let (far, space) = Self::names(body);
        let complete =
            |n: usize| format!("mbarrier.complete_tx.relaxed.cluster.shared{space}.b64 [{far}full], {n};\n");
        match self.d.below(if body.remote { 3 } else { 6 }) {
            0 => vec![complete(16)],
            1 => vec![complete(8), complete(8)],
            2 if !body.remote => vec!["st.weak.shared::cta.u32 [x], 1;\n".to_owned(), complete(16)],
            3 => {
                let how = self.d.pick(&["", ".noinc"]);
                vec![
                    "cp.async.ca.shared::cta.global [a], [g], 16;\n".to_owned(),
                    format!("cp.async.mbarrier.arrive{how}.shared::cta.b64 [full];\n"),
                ]
            }
            _ => {
                let bulk = format!("cp.async.bulk.shared{space}.global.mbarrier::complete_tx::bytes");
                vec!["fence.proxy.async;\n".to_owned(), format!("{bulk} [{far}a], [g], 16, [{far}full];\n")]
            }
        }
    }

    fn wait(&mut self, name: &str, parity: &str) -> String {
        self.labels += 1;
        let label = format!("L{}", self.labels);
        format!(
            "{label}:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [{name}], {parity};\n@!p bra {label};\n"
        )
    }

    /// Adds something before a loop or after it.
    fn stray(&mut self, bodies: &mut [Body]) {
        let t = self.d.below(bodies.len());
        let name = self.d.pick(&["full", "empty"]);
        let text = match self.d.below(7) {
            0 => self.arrive(&bodies[t], name),
            1 => self.announce(&bodies[t], true, 16),
            2 => self.announce(&bodies[t], false, 16),
            3 => self.fill(&bodies[t]).concat(),
            4 if !bodies[t].remote => {
                let parity = self.d.pick(&["pf", "pe", "0", "1"]);
                self.wait(name, parity)
            }
            5 if !bodies[t].remote => "st.weak.shared::cta.u32 [x], 1;\n".to_owned(),
            _ if bodies[t].remote => String::new(),
            _ => format!("bar.sync 3, {};\n", self.d.pick(&[2, self.threads])),
        };
        bodies[t].parts[self.d.pick(&[0, 2, 2])].push(text);
    }

    /// Deletes, repeats, swaps or moves an instruction.
    fn mistake(&mut self, bodies: &mut [Body]) {
        let (t, part) = (self.d.below(bodies.len()), self.d.pick(&[0, 1, 1, 1, 2]));
        let texts = &mut bodies[t].parts[part];
        if texts.is_empty() {
            return;
        }
        let at = self.d.below(texts.len());
        match self.d.below(5) {
            0 => drop(texts.remove(at)),
            1 if !texts[at].starts_with('L') => texts.insert(at, texts[at].clone()),
            2 => {
                let other = (at + 1) % texts.len();
                texts.swap(at, other);
            }
            3 => {
                let text = texts.remove(at);
                bodies[t].parts[2].push(text);
            }
            _ => texts[at] = texts[at].replace("release", "relaxed").replace(", 16;", ", 8;"),
        }
    }
}
