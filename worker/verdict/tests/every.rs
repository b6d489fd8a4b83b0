//! Proofs for every value of a parameter, against the explorer: what is proved of a kernel, or of a kernel with one mistake,
//! is clean for the explorer with each of the first values, and what it finds there is not proved.

use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, Verdict, judge};
use moire_kernel::ptx;
use moire_kernel::specialise::{Launch, entry, every, lower_apart};
use moire_operate::{Settings, operate};
use moire_program::ir::Program;
use std::collections::BTreeMap;

const KERNELS: [&str; 6] = [
    include_str!("../../../corpus/ptx/ring.ptx"),
    include_str!("../../../corpus/ptx/every-ring.ptx"),
    include_str!("../../../corpus/ptx/every-modulo.ptx"),
    include_str!("../../../corpus/ptx/every-rows.ptx"),
    include_str!("../../../corpus/ptx/every-square.ptx"),
    include_str!("../../../corpus/ptx/every-peek.ptx"),
];

/// What a mistake puts in the place of what. Each place is a mistake of its own.
const MISTAKES: [(&str, &str); 28] = [
    ("    fence.proxy.async.shared::cta;\n", ""),
    ("    bar.sync 0;\n", ""),
    ("    bar.warp.sync -1;\n", ""),
    ("        @!p bra WAIT;\n", ""),
    ("    mbarrier.arrive.shared::cta.b64 _", "    //"),
    ("    @%p6 mbarrier.arrive.shared::cta.b64 _", "    //"),
    ("], 1;\n", "], 2;\n"),
    ("], 32;\n", "], 31;\n"),
    (", 128;\n", ", 64;\n"),
    ("mov.b32 %r7, 0;", "mov.b32 %r7, 1;"),
    ("mov.b32 %r7, 1;", "mov.b32 %r7, 0;"),
    ("xor.b32 %r7, %r7, %r12;", ""),
    ("setp.eq.s32 %p4, %r11, 3;", "setp.eq.s32 %p4, %r11, 2;"),
    ("setp.eq.s32 %p4, %r11, 3;", "setp.eq.s32 %p4, %r11, 4;"),
    ("setp.lt.s32 %p5, %r5, %r3;", "setp.le.s32 %p5, %r5, %r3;"),
    ("setp.lt.u32 %p5, %r5, %r0;", "setp.le.u32 %p5, %r5, %r0;"),
    ("setp.ne.s32 %p7, %r3, 0;", "setp.gt.s32 %p7, %r3, 1;"),
    ("not.b32 %r9, %r6;", "mov.b32 %r9, %r6;"),
    ("mul.lo.s32 %r7, %r6, 3;", "mul.lo.s32 %r7, %r6, 2;"),
    ("shr.u64 %rd1, %rd1, 33;", "shr.u64 %rd1, %rd1, 34;"),
    ("shr.u32 %r6, %r6, 1;", "shr.u32 %r6, %r6, 2;"),
    ("mov.b32 %r5, 0;", "mov.b32 %r5, 1;"),
    ("shl.b32 %r8, %r6, 8;", "shl.b32 %r8, %r6, 6;"),
    ("xor.b32 %r5, %r2, 128;", "xor.b32 %r5, %r2, 4;"),
    ("mul.lo.s32 %r8, %r2, %r0;", "mov.b32 %r8, 0;"),
    ("@%p8 bra FULL;", "@!%p8 bra FULL;"),
    ("mov.pred %p8, -1;", "mov.pred %p8, 0;"),
    ("%p8, [%r15], %r7;", "%p8, [%r2], %r7;"),
];

/// What comes of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Proved,
    /// There is no proof, and the explorer finds a mistake.
    Wrong,
    /// There is no proof, and the explorer finds no mistake with the first values.
    Open,
}

fn is_wrong(program: &Program, model: &Model) -> bool {
    let questions = Questions { witnesses: false, about: About::All };
    let limits = Limits { checks: 20_000, ..Limits::default() };
    let found = judge(program, model, &limits, questions);
    let mistake = |v: &Verdict| !matches!(v, Verdict::Clean(_) | Verdict::Bounded(_) | Verdict::Abstained(_));
    found.verdicts.iter().any(mistake)
}

fn fate(text: &str, model: &Model) -> Fate {
    let module = ptx::parse(text).expect("a module");
    let kernel = entry(&module, None).expect("a kernel");
    let launch = Launch::of(kernel, None, None, None, BTreeMap::new()).expect("a launch");
    let settings = Settings::of(|switch| model.variant(switch)).expect("readings");
    let clean = |program: &Program| {
        let limits = moire_operate::Limits { steps: 1_000_000, ..moire_operate::Limits::default() };
        operate(program, &settings, &limits).is_ok_and(|outcome| outcome.words() == ["clean"].into())
    };
    let found = every(kernel, &launch, (0, 0)).ok().flatten();
    let grain = found.as_ref().map_or(1, |found| found.grain);
    let apart = |value: u64| lower_apart(kernel, &launch.with(kernel, (0, 0), value));
    let single = |value: &u64| apart(*value).is_ok_and(|apart| apart.parts.iter().all(|p| clean(&p.program)));
    let proved = found.as_ref().is_some_and(|found| {
        let classes = found.classes.iter().flat_map(|c| &c.1.parts).all(|p| clean(&p.program));
        classes && found.singles.iter().all(single)
    });
    let rounds = if proved { 1..=13 } else { 1..=5 };
    let least = found
        .as_ref()
        .map_or(0, |f| f.singles.iter().chain(f.classes.iter().map(|c| &c.0)).copied().min().unwrap_or(0));
    let wrong = rounds.map(|n| least.max(grain) + (n - 1) * grain).find(|value| {
        apart(*value).is_ok_and(|apart| apart.parts.iter().any(|p| is_wrong(&p.program, model)))
    });
    assert!(!proved || wrong.is_none(), "proved, but not with {wrong:?}:\n{text}");
    match wrong {
        Some(_) => Fate::Wrong,
        None if proved => Fate::Proved,
        None => Fate::Open,
    }
}

/// A text with one mistake, for each place of each mistake.
fn mistaken(text: &str) -> Vec<String> {
    let one = |(from, to): &(&str, &str)| -> Vec<String> {
        let put = |(at, _): (usize, &str)| format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
        text.match_indices(*from).map(put).collect()
    };
    MISTAKES.iter().flat_map(one).collect()
}

#[test]
fn no_mistake_is_proved() {
    let model = moire_models::load("ptx", &Variants::new()).expect("a shipped model");
    let mut fates: BTreeMap<Fate, usize> = BTreeMap::new();
    for text in KERNELS {
        assert_eq!(fate(text, &model), Fate::Proved, "{text}");
        for mistake in mistaken(text) {
            *fates.entry(fate(&mistake, &model)).or_default() += 1;
        }
    }
    assert!(fates[&Fate::Wrong] > 40 && fates[&Fate::Proved] > 0, "{fates:?}");
}

/// A mistake of the last round, of the second lap, and of the fourth round.
#[test]
fn twins_of_proved_kernels_are_wrong() {
    let model = moire_models::load("ptx", &Variants::new()).expect("a shipped model");
    for text in [
        include_str!("../../../corpus/ptx/every-ring-tail.ptx"),
        include_str!("../../../corpus/ptx/every-ring-parity.ptx"),
        include_str!("../../../corpus/ptx/every-ring-release.ptx"),
        include_str!("../../../corpus/ptx/every-modulo-stages.ptx"),
        include_str!("../../../corpus/ptx/every-square-narrow.ptx"),
        include_str!("../../../corpus/ptx/every-peek-flip.ptx"),
    ] {
        assert_eq!(fate(text, &model), Fate::Wrong, "{text}");
    }
}

/// 22 / 32 is two thirds until round 32: no value that is tried shows that the parity is wrong there.
#[test]
fn a_quotient_that_is_wrong_late_is_not_proved() {
    let model = moire_models::load("ptx", &Variants::new()).expect("a shipped model");
    let late = KERNELS[2].replace("mul.hi.u32 %r6, %r5, -1431655765;", "mul.hi.u32 %r6, %r5, -1342177280;");
    assert_eq!(fate(&late, &model), Fate::Open);
}

/// `every-ring`, and one thread stores two boxes at a coordinate that is not known: behind the loop, or in each round.
fn stored(each_round: bool) -> String {
    let first = "    mov.u32 %r1, %tid.x;
    ld.param.b32 %r20, [width];
    add.s32 %r21, %r20, 32;
    mov.b64 %rd3, map;
    cvta.param.u64 %rd4, %rd3;
    setp.ne.u32 %p9, %r1, 32;
    @%p9 bra FILLED;
    mov.b32 %r22, memory;
    st.shared.v4.b32 [%r22+512], {%r1, %r1, %r1, %r1};
    fence.proxy.async.shared::cta;
FILLED:
";
    let boxes = "    @%p9 bra BOXED;
    cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd4, {%r20}], [%r2+512];
    cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd4, {%r21}], [%r2+512];
BOXED:
";
    let (round, out) = ("    setp.ne.s32 %p7, %r3, 0;\n", "OUT:\n");
    let end = "    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;\n";
    KERNELS[1]
        .replace("_data)\n", "_data, .param .u32 width, .param .align 64 .b8 map[128])\n")
        .replace("    mov.u32 %r1, %tid.x;\n", first)
        .replace(round, &format!("{}{round}", if each_round { boxes } else { "" }))
        .replace(out, &format!("{out}{}{end}", if each_round { "" } else { boxes }))
}

/// A coordinate that a parameter without a value decides is one box for the whole launch. Another round may have it again.
#[test]
fn boxes_with_an_unknown_coordinate_are_apart_where_no_loop_repeats_them() {
    let model = moire_models::load("ptx", &Variants::new()).expect("a shipped model");
    assert_eq!(fate(&stored(false), &model), Fate::Proved);
    assert_eq!(fate(&stored(true), &model), Fate::Open);
}

/// Two warps store rows that meet in round 8 for the first time.
#[test]
fn rows_that_meet_late_are_not_proved() {
    let model = moire_models::load("ptx", &Variants::new()).expect("a shipped model");
    let text = include_str!("../../../corpus/ptx/every-rows-meet.ptx");
    assert_eq!(fate(text, &model), Fate::Open);
    let module = ptx::parse(text).expect("a module");
    let kernel = entry(&module, None).expect("a kernel");
    let launch = Launch::of(kernel, None, None, None, BTreeMap::from([(0, 9)])).expect("a launch");
    let apart = lower_apart(kernel, &launch).expect("a program");
    assert!(apart.parts.iter().any(|part| is_wrong(&part.program, &model)));
}
