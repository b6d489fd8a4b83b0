//! Pipelines with loops whose number of trips is free: texts with a name for each step, so that a mistake can be planted.

use moire_program::ir::Program;
use moire_program::text::{Format, parse};

/// Moves to the next stage of a ring: the stage, its offsets and the parity.
fn advance(stages: usize) -> String {
    format!(
        "    add.u64 s, s, 1;\n    setp.eq.u64 q, s, {stages};\n    selp.b64 s, 0, s, q;\n    selp.b64 flip, 1, 0, q;\n    \
         xor.b64 ph, ph, flip;\n    mul.lo.u64 o, s, 8;\n    mul.lo.u64 x, s, 64;\n    add.u64 full, bf, o;\n    \
         add.u64 empty, be, o;\n    add.u64 data, ba, x;\n"
    )
}

fn wait(label: &str, at: &str, parity: &str) -> String {
    format!(
        "{label}:\n    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [{at}], {parity};\n    @!p bra {label};\n"
    )
}

fn memory(stages: usize) -> String {
    format!(
        ".shared .b8 a[{}];\n.shared .b8 fulls[{}];\n.shared .b8 empties[{}];\n.global .b8 g[64];\n",
        64 * stages,
        8 * stages,
        8 * stages
    )
}

fn inits(stages: usize) -> String {
    let each = |s: usize| {
        let at = 8 * s;
        format!(
            "  mbarrier.init.shared::cta.b64 [fulls+{at}], 1;\n  mbarrier.init.shared::cta.b64 [empties+{at}], 1;\n"
        )
    };
    (0..stages).map(each).collect()
}

const REGS: &str =
    "s, o, x, q, p, flip, bf = fulls, be = empties, ba = a, full = fulls, empty = empties, data = a";

fn producer(stages: usize, class: &str) -> String {
    format!(
        "  repeat {class} {{\n{}    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [full], 64;\n    \
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data], [g], 64, [full];\n{}  }}\n",
        wait("E", "empty", "ph"),
        advance(stages)
    )
}

fn products(stages: usize, class: &str, accumulator: &str) -> String {
    format!(
        "  repeat {class} {{\n{}    tcgen05.mma.cta_group::1.kind::f16 [{accumulator}], desc(data, 32), desc(data+32, 32), idesc(128, 16), 1;\n    \
         tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [empty];\n{}  }}\n",
        wait("F", "full", "ph"),
        advance(stages)
    )
}

/// Copies feed products through a ring of stages.
pub(crate) fn ring(stages: usize) -> String {
    format!(
        "moire \"ring\"\n{}.tmem t[64];\nproducer (gpu 0, cta 0, warp 0) {{\n  .reg {REGS}, ph = 1;\n{}  bar.sync 0;\n{}}}\n\
         issuer (gpu 0, cta 0, warp 1) {{\n  .reg {REGS}, ph;\n  bar.sync 0;\n{}}}\n",
        memory(stages),
        inits(stages),
        producer(stages, "K"),
        products(stages, "K", "t")
    )
}

/// A persistent product: tiles of any number of steps, two accumulators, epilogue warps.
pub(crate) fn persistent(stages: usize, warps: usize) -> String {
    let next = "    add.u64 n, n, 1;\n    setp.eq.u64 q, n, 2;\n    selp.b64 n, 0, n, q;\n    selp.b64 flip, 1, 0, q;\n    \
                xor.b64 pa, pa, flip;\n    mul.lo.u64 o, n, 8;\n    mul.lo.u64 x, n, 32;\n    add.u64 ready, br, o;\n    \
                add.u64 free, bx, o;\n    add.u64 d, bt, x;\n";
    let regs = "n, br = readies, bx = frees, bt = t, ready = readies, free = frees, d = t";
    let mut text = format!(
        "moire \"persistent\"\n{}.shared .b8 readies[16];\n.shared .b8 frees[16];\n.tmem t[64];\n\
         producer (gpu 0, cta 0, warp 4) {{\n  .reg {REGS}, ph = 1;\n{}",
        memory(stages),
        inits(stages)
    );
    for at in [0, 8] {
        text += &format!(
            "  mbarrier.init.shared::cta.b64 [readies+{at}], 1;\n  mbarrier.init.shared::cta.b64 [frees+{at}], {warps};\n"
        );
    }
    text += &format!("  bar.sync 0;\n  repeat T {{\n{}  }}\n}}\n", producer(stages, "K"));
    text += &format!(
        "issuer (gpu 0, cta 0, warp 5) {{\n  .reg {REGS}, ph, {regs}, pa = 1;\n  bar.sync 0;\n  repeat T {{\n{}    \
         tcgen05.fence::after_thread_sync;\n{}    \
         tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [ready];\n{next}  }}\n}}\n",
        wait("X", "free", "pa"),
        products(stages, "K", "d")
    );
    for warp in 0..warps {
        let lanes = warp * 32 * 65_536;
        text += &format!(
            "w{warp} (gpu 0, cta 0, warp {warp}) {{\n  .reg o, x, q, p, flip, r, {regs}, pa;\n  bar.sync 0;\n  repeat T {{\n{}    \
             tcgen05.fence::after_thread_sync;\n    tcgen05.ld.sync.aligned.32x32b.x16.b32 {}, [d+{lanes}];\n    \
             tcgen05.wait::ld.sync.aligned;\n    tcgen05.fence::before_thread_sync;\n    \
             mbarrier.arrive.release.cta.shared::cta.b64 _, [free];\n{next}  }}\n}}\n",
            wait("R", "ready", "pa"),
            vector()
        );
    }
    text
}

fn vector() -> String {
    let all: Vec<String> = (0..16).map(|n| format!("v{n}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// A mistake: the number of the place, what stands there, what is put there, and the kinds that may be reported.
pub(crate) struct Mistake {
    pub(crate) name: &'static str,
    pub(crate) nth: usize,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) kinds: &'static [&'static str],
}

const fn mistake(
    name: &'static str,
    nth: usize,
    from: &'static str,
    to: &'static str,
    kinds: &'static [&'static str],
) -> Mistake {
    Mistake { name, nth, from, to, kinds }
}

/// Mistakes in [`persistent`]. A broken condition counts as `protocol`.
pub(crate) const MISTAKES: [Mistake; 16] = [
    mistake(
        "no wait for a stage",
        0,
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [empty], ph",
        "setp.eq.u32 p, 0, 0",
        &["race", "protocol"],
    ),
    mistake(
        "no wait for data",
        0,
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [full], ph",
        "setp.eq.u32 p, 0, 0",
        &["race", "protocol"],
    ),
    mistake(
        "no wait for an accumulator",
        0,
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [free], pa",
        "setp.eq.u32 p, 0, 0",
        &["race", "protocol"],
    ),
    mistake(
        "no wait for a tile",
        0,
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [ready], pa",
        "setp.eq.u32 p, 0, 0",
        &["race", "protocol"],
    ),
    mistake(
        "a commit before the wait",
        0,
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [empty];",
        "",
        &["hang"],
    ),
    mistake(
        "no commit of a tile",
        0,
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [ready];",
        "",
        &["hang"],
    ),
    mistake(
        "no arrival of a warp",
        0,
        "mbarrier.arrive.release.cta.shared::cta.b64 _, [free];",
        "",
        &["hang"],
    ),
    mistake(
        "a relaxed arrival without fences",
        0,
        "tcgen05.fence::before_thread_sync;\n    mbarrier.arrive.release.cta",
        "mbarrier.arrive.relaxed.cta",
        &["race"],
    ),
    mistake("no fence after the wait for a tile", 1, "tcgen05.fence::after_thread_sync;", "", &["race"]),
    mistake(
        "no fence after the wait for an accumulator",
        0,
        "tcgen05.fence::after_thread_sync;",
        "",
        &["race"],
    ),
    mistake("no wait for the load", 0, "tcgen05.wait::ld.sync.aligned;", "", &["race"]),
    mistake(
        "too few bytes are announced",
        0,
        "b64 _, [full], 64",
        "b64 _, [full], 32",
        &["hang", "protocol", "race"],
    ),
    mistake("the parity of the producer starts wrong", 0, "ph = 1", "ph", &["hang"]),
    mistake("the parity of the issuer starts wrong", 0, "pa = 1", "pa", &["hang"]),
    mistake(
        "a relaxed wait for data",
        0,
        "acquire.cta.shared::cta.b64 p, [full]",
        "relaxed.cta.shared::cta.b64 p, [full]",
        &["race"],
    ),
    mistake("arrivals of one warp too many", 0, "[frees+0], 2", "[frees+0], 3", &["hang"]),
];

/// The text with a mistake.
pub(crate) fn planted(text: &str, mistake: &Mistake) -> String {
    let (at, _) = text
        .match_indices(mistake.from)
        .nth(mistake.nth)
        .unwrap_or_else(|| panic!("{}: no such place", mistake.name));
    format!("{}{}{}", &text[..at], mistake.to, &text[at + mistake.from.len()..])
}

pub(crate) fn program(text: &str) -> Program {
    parse(text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"))
}
