//! Lanes of kernels: a drawn kernel has a race as the program of its warps exactly if it has one as the program of its
//! threads. The first puts lanes together (`moire_kernel::specialise`), the second never does (`moire_kernel::simt`).

use moire_cat::{Model, Variants};
use moire_execution::leaf::{Finding, Place};
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, Verdict, flag_verdict, judge};
use moire_kernel::ptx;
use moire_kernel::simt::threads;
use moire_kernel::specialise::{Launch, Practice, lower};
use moire_program::ir::Program;
use std::collections::{BTreeMap, BTreeSet};

/// Splitmix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ z >> 31) % n as u64).expect("smaller than n")
    }

    fn one<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A kernel under construction: `lanes` threads in each of two CTAs, the first of which may raise flags for the second.
struct Kernel {
    draw: Draw,
    lanes: usize,
    text: String,
    loads: usize,
    labels: usize,
}

impl Kernel {
    fn push(&mut self, line: &str) {
        self.text += &format!("    {line}\n");
    }

    /// A guard for some lanes, or for all.
    fn guard(&mut self) -> &'static str {
        self.draw.one(&["", "", "@%p0 ", "@!%p0 ", "@%p1 ", "@!%p1 "])
    }

    /// The address of a word of each lane: its own, its neighbour's, that of the first two, or the same for all.
    fn word(&mut self) -> String {
        let space = self.draw.one(&["shared", "shared", "shared", "global"]);
        let base = if space == "shared" { "%r" } else { "%rd" };
        let word = self.draw.one(&["1", "1", "1", "2", "2", "3", "4"]);
        format!("{space}.b32 [{base}{word}]")
    }

    fn access(&mut self) {
        let (guard, word) = (self.guard(), self.word());
        let (space, address) = word.split_once(' ').expect("a space and an address");
        if self.draw.below(2) == 0 {
            self.push(&format!("{guard}st.{space} {address}, 1;"));
        } else {
            let float = space.replace("b32", "f32");
            self.push("mov.f32 %f0, 0f00000000;");
            self.push(&format!("{guard}ld.{float} %f0, {address};"));
            // What is read is stored where nobody else looks, so that it is not dropped.
            let at = 4 * self.loads;
            self.push(&format!("st.global.f32 [%rd9+{at}], %f0;"));
            self.loads += 1;
        }
    }

    fn meeting(&mut self) {
        let all = (1u32 << self.lanes) - 1;
        match self.draw.below(6) {
            0 => self.push("bar.sync 0;"),
            1 => self.branch("%p0", &format!("bar.warp.sync {};", 1)),
            2 => self.branch("!%p1", &format!("bar.warp.sync {};", all & !0b11)),
            _ => self.push(&format!("bar.warp.sync {all};")),
        }
    }

    /// Instructions that only the lanes with a predicate reach.
    fn branch(&mut self, lanes: &str, what: &str) {
        let (label, not) = (self.labels, lanes.strip_prefix('!').map_or(format!("!{lanes}"), str::to_owned));
        self.labels += 1;
        self.push(&format!("@{not} bra SKIP{label};"));
        self.push(what);
        self.text += &format!("SKIP{label}:\n");
    }

    /// Raises the flag, by one lane.
    fn raise(&mut self) {
        let how = self.draw.below(3);
        if how == 0 {
            let fence = self.draw.one(&["", "@%p0 "]);
            self.push(&format!("{fence}fence.acq_rel.gpu;"));
        }
        let order = if how == 0 { "relaxed" } else { "release" };
        self.push(&format!("@%p0 st.{order}.gpu.global.b32 [%rd8], 1;"));
    }

    /// Waits for the flag, by one lane or by all.
    fn wait(&mut self) {
        let n = self.labels;
        self.labels += 1;
        let one = self.draw.below(2) == 0;
        if one {
            self.push(&format!("@!%p0 bra SKIP{n};"));
        }
        self.text += &format!("WAIT{n}:\n");
        self.push("ld.acquire.gpu.global.b32 %r8, [%rd8];");
        self.push("setp.ne.u32 %p2, %r8, 1;");
        self.push(&format!("@%p2 bra WAIT{n};"));
        if one {
            self.text += &format!("SKIP{n}:\n");
        }
    }

    /// Answers the flag, by one lane, and perhaps behind a meeting: without one another lane may still wait for the flag.
    fn answer(&mut self) {
        if self.draw.below(2) == 0 {
            self.meeting();
        }
        self.push("@%p0 st.release.gpu.global.b32 [%rd8+4], 1;");
    }

    /// Waits for the answer, and takes the flag back.
    fn lower(&mut self) {
        let n = self.labels;
        self.labels += 1;
        self.push(&format!("@!%p0 bra SKIP{n};"));
        self.text += &format!("WAIT{n}:\n");
        self.push("ld.acquire.gpu.global.b32 %r8, [%rd8+4];");
        self.push("setp.eq.u32 %p2, %r8, 0;");
        self.push(&format!("@%p2 bra WAIT{n};"));
        self.push("st.relaxed.gpu.global.b32 [%rd8], 2;");
        self.text += &format!("SKIP{n}:\n");
    }

    fn statements(&mut self, least: usize) {
        for _ in 0..least + self.draw.below(3) {
            if self.draw.below(5) < 3 { self.access() } else { self.meeting() }
        }
    }
}

fn drawn(seed: u64) -> (String, usize) {
    let mut draw = Draw(seed);
    let lanes = 2 + draw.below(3);
    let mut k = Kernel { draw, lanes, text: String::new(), loads: 0, labels: 0 };
    let flagged = k.draw.below(2) == 0;
    let answered = flagged && k.draw.below(3) == 0;
    // What decides must have been stored by somebody.
    k.push("st.shared.b32 [%r1], 0;");
    k.push("bar.sync 0;");
    k.push("@%p3 bra SECOND;");
    k.statements(2);
    if flagged {
        k.raise();
    }
    k.statements(usize::from(!flagged));
    if answered {
        k.lower();
    }
    k.push("ret;");
    k.text += "SECOND:\n";
    if flagged {
        k.statements(0);
        k.wait();
        if answered {
            k.answer();
        }
        k.statements(2);
    }
    k.push("ret;");
    let head = format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n
.visible .entry drawn(.param .u64 .ptr .global .align 16 data, .param .u64 .ptr .global .align 16 flag, .param .u64 .ptr .global .align 16 out)
.reqntid {lanes}
{{
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<12>;
    .reg .f32 %f<2>;
    .shared .align 16 .b8 tile[64];
    mov.u32 %r0, %tid.x;
    mov.u32 %r10, %ctaid.x;
    ld.param.b64 %rd0, [data];
    ld.param.b64 %rd8, [flag];
    ld.param.b64 %rd9, [out];
    mad.lo.u32 %r11, %r10, {lanes}, %r0;
    mul.wide.u32 %rd10, %r11, 64;
    add.s64 %rd9, %rd9, %rd10;
    mov.b32 %r5, tile;
    mad.lo.u32 %r1, %r0, 4, %r5;
    xor.b32 %r6, %r0, 1;
    mad.lo.u32 %r2, %r6, 4, %r5;
    and.b32 %r7, %r0, 1;
    mad.lo.u32 %r3, %r7, 4, %r5;
    mov.b32 %r4, %r5;
    mul.wide.u32 %rd1, %r0, 4;
    add.s64 %rd1, %rd1, %rd0;
    mul.wide.u32 %rd2, %r6, 4;
    add.s64 %rd2, %rd2, %rd0;
    mul.wide.u32 %rd3, %r7, 4;
    add.s64 %rd3, %rd3, %rd0;
    mov.b64 %rd4, %rd0;
    setp.eq.u32 %p0, %r0, 0;
    setp.lt.u32 %p1, %r0, 2;
    setp.eq.u32 %p3, %r10, 1;
"
    );
    (head + &k.text + "}\n", lanes)
}

/// Whether a program has a race, and whether it has a hang; none if that is not decided.
fn faults(program: &Program, model: &Model) -> Option<BTreeSet<&'static str>> {
    let limits = Limits { leaves: 20_000, checks: 200_000, ..Limits::default() };
    let found = judge(program, model, &limits, Questions { witnesses: false, about: About::All }).verdicts;
    let open = found.iter().any(|v| matches!(v, Verdict::Abstained(_) | Verdict::Bounded(_)));
    let faults = found.iter().map(Verdict::word).filter(|w| matches!(*w, "race" | "hang"));
    (!open).then(|| faults.collect())
}

/// The faults of a program but for races between lanes of one CTA on one of these lines, whose stores agree.
fn faults_but(program: &Program, model: &Model, agreed: &BTreeSet<u32>) -> Option<BTreeSet<&'static str>> {
    let limits = Limits { leaves: 20_000, checks: 200_000, ..Limits::default() };
    let found = judge(program, model, &limits, Questions { witnesses: false, about: About::All });
    let open = found.verdicts.iter().any(|v| matches!(v, Verdict::Abstained(_) | Verdict::Bounded(_)));
    let place = |p: &Place| (p.line, program.threads[usize::from(p.thread)].place.cta);
    let benign = |f: &Finding| {
        let places: BTreeSet<_> = f.places.iter().map(place).collect();
        places.len() == 1 && places.iter().all(|p| agreed.contains(&p.0))
    };
    let hang = found.verdicts.iter().filter(|v| matches!(v, Verdict::Hang)).map(Verdict::word);
    let race = found
        .findings
        .iter()
        .filter(|f| flag_verdict(&f.flag) == Verdict::Race && !benign(f))
        .map(|_| "race");
    (!open).then(|| hang.chain(race).collect())
}

/// The faults of a drawn kernel by its warps and by its threads. A reading of practice may hide a hang: of lanes that are late.
fn both(seed: u64, model: &Model, letter: bool) -> Option<[BTreeSet<&'static str>; 2]> {
    let (text, lanes) = drawn(seed);
    let module = ptx::parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let kernel = &module.kernels[0];
    let launch = Launch::of(kernel, Some([2, 1, 1]), None, None, BTreeMap::new()).expect("it fits");
    let lowered = lower(kernel, &Launch { letter, ..launch }).ok()?;
    let sizes = [64, 8, u32::try_from(128 * lanes).expect("few lanes")];
    let threads = threads(kernel, 2, &sizes).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let agreed = lowered.notes.iter().filter(|n| n.practice == Some(Practice::OneValue)).map(|n| n.line);
    let mut found = [faults(&lowered.program, model)?, faults_but(&threads, model, &agreed.collect())?];
    if lowered.notes.iter().any(|n| n.practice == Some(Practice::InStep)) {
        found.iter_mut().for_each(|f| _ = f.remove("hang"));
    }
    Some(found)
}

fn compared(seeds: std::ops::Range<u64>) -> [usize; 3] {
    let model = moire_models::load("ptx", &Variants::new()).expect("the model loads");
    let mut counts = [0; 3];
    for (seed, letter) in seeds.flat_map(|seed| [(seed, true), (seed, false)]) {
        match both(seed, &model, letter) {
            Some([warps, threads]) => {
                assert_eq!(warps, threads, "seed {seed}, letter {letter}\n{}", drawn(seed).0);
                counts[usize::from(!warps.is_empty())] += 1;
            }
            None => counts[2] += 1,
        }
    }
    counts
}

#[test]
fn warps_have_the_faults_of_their_threads() {
    let seeds: Option<u64> = std::env::var("MOIRE_LANES").ok().and_then(|n| n.parse().ok());
    if let Some(seeds) = seeds {
        eprintln!("{:?}", compared(1_000_000..1_000_000 + seeds));
        return;
    }
    let [clean, wrong, open] = compared(0..150);
    assert!(clean > 40 && wrong > 80 && open < 80, "{clean} clean, {wrong} wrong, {open} not decided");
}
