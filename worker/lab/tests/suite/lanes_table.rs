//! The table of right answers about lanes: what each page promises, as small programs of one warp of two or four lanes.
//!
//! Each is judged with a thread for each lane and with few threads for the warp, by the letter and in practice. Where the
//! enumerator can, it takes the lanes itself and finds the same executions.

use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, judge};
use moire_lab::differential::{Comparison, compare};
use moire_naive::NaiveLimits;
use moire_program::ir::Program;
use moire_program::lanes::{joined, literal};
use moire_program::text::{Format, parse};
use std::collections::BTreeSet;

/// Name; number of lanes; count of the mbarriers `b` and `b+8`, if there are any; the body of the warp; other threads;
/// verdicts by the letter.
struct Row(&'static str, usize, Option<usize>, &'static str, &'static [&'static str], &'static str);

const STORE: &str = "st.weak.shared.u8 [x0], 1; ";
const WAIT: &str = "W: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0; @!p bra W; ";
const ARRIVE: &str = "mbarrier.arrive.release.cta.shared::cta.b64 _, [b]; ";
const CONSUMER: &[&str] = &["WAIT ld.weak.shared.u8 r, [x+1];"];
const PRODUCER: &[&str] = &["st.weak.shared.u8 [x+1], 1; ARRIVE"];

const ROWS: &[Row] = &[
    Row("nothing between", 4, None, "STORE ld.weak.shared.u8 r, [x1];", &[], "race"),
    Row(
        "a shuffle between",
        4,
        None,
        "STORE shfl.sync.idx.b32 t, lane, 0, 31, 15; ld.weak.shared.u8 r, [x1];",
        &[],
        "race",
    ),
    Row(
        "a vote between",
        4,
        None,
        "STORE vote.sync.any.pred t, z, 15; ld.weak.shared.u8 r, [x1];",
        &[],
        "race",
    ),
    Row(
        "a sum between",
        4,
        None,
        "STORE redux.sync.add.u32 t, lane, 15; ld.weak.shared.u8 r, [x1];",
        &[],
        "race",
    ),
    Row("an election between", 4, None, "STORE elect.sync _|t, 15; ld.weak.shared.u8 r, [x1];", &[], "race"),
    Row(
        "a warp barrier between",
        4,
        None,
        "STORE bar.warp.sync 15; ld.weak.shared.u8 r, [x1];",
        &[],
        "clean",
    ),
    Row(
        "a mask that lacks the writer",
        4,
        None,
        "@z st.weak.shared.u8 [x], 1; @h bar.warp.sync 14; @h ld.weak.shared.u8 r, [x];",
        &[],
        "race",
    ),
    Row(
        "a mask of one lane, by all",
        4,
        None,
        "@z st.weak.shared.u8 [x], 1; bar.warp.sync 1; @h ld.weak.shared.u8 r, [x];",
        &[],
        "race undefined",
    ),
    Row("one lane arrives for all", 4, Some(1), "@h st.weak.shared.u8 [x0], 1; @z ARRIVE", CONSUMER, "race"),
    Row(
        "one arrives behind a warp barrier",
        4,
        Some(1),
        "@h st.weak.shared.u8 [x0], 1; bar.warp.sync 15; @z ARRIVE",
        CONSUMER,
        "clean",
    ),
    Row("all arrive", 4, Some(4), "STORE ARRIVE", CONSUMER, "clean"),
    Row("all arrive, one too many", 4, Some(3), "STORE ARRIVE", CONSUMER, "protocol race"),
    Row("all arrive, one too few", 4, Some(5), "STORE ARRIVE", CONSUMER, "hang"),
    Row("each arrives twice", 2, Some(2), "STORE ARRIVE ARRIVE", CONSUMER, "hang protocol race"),
    Row("one waits, all read", 4, Some(1), "@h bra E; WAIT E: ld.weak.shared.u8 r, [x0];", PRODUCER, "race"),
    Row(
        "one waits, warp barrier, all read",
        4,
        Some(1),
        "@h bra E; WAIT E: bar.warp.sync 15; ld.weak.shared.u8 r, [x0];",
        PRODUCER,
        "clean",
    ),
    Row("all wait, all read", 4, Some(1), "WAIT ld.weak.shared.u8 r, [x0];", PRODUCER, "clean"),
    Row(
        "steps of a sum without warp barriers",
        4,
        None,
        "STORE @low ld.weak.shared.u8 r, [x2]; @low st.weak.shared.u8 [x0], r; @z ld.weak.shared.u8 r, [x1];",
        &[],
        "race",
    ),
    Row(
        "steps of a sum with warp barriers",
        4,
        None,
        "STORE bar.warp.sync 15; @low ld.weak.shared.u8 r, [x2]; bar.warp.sync 15; @low st.weak.shared.u8 [x0], r; bar.warp.sync 15; @z ld.weak.shared.u8 r, [x1];",
        &[],
        "clean",
    ),
    Row(
        "copies, own wait, another's bytes",
        2,
        None,
        "COPY cp.async.wait_all; ld.weak.shared.u32 r, [y1];",
        &[],
        "race",
    ),
    Row(
        "copies, own wait, warp barrier",
        2,
        None,
        "COPY cp.async.wait_all; bar.warp.sync 3; ld.weak.shared.u32 r, [y1];",
        &[],
        "clean",
    ),
    Row(
        "copies, warp barrier, no own wait",
        2,
        None,
        "COPY bar.warp.sync 3; ld.weak.shared.u32 r, [y1];",
        &[],
        "race",
    ),
    Row("all write one word", 4, None, "st.weak.shared.u8 [x], 1;", &[], "race"),
    Row("a live lane never comes", 4, None, "@q bra E; bar.warp.sync 15; E: bar.sync 1, 4;", &[], "hang"),
    Row(
        "C1: own flag, another's bytes",
        2,
        None,
        "F: ld.acquire.gpu.u8 s, [f0]; setp.eq.u32 p, s, 0; @p bra F; ld.weak.shared.u8 r, [x1];",
        &[
            "st.weak.shared.u8 [x], 1; st.release.gpu.u8 [f], 1;",
            "st.weak.shared.u8 [x+1], 1; st.release.gpu.u8 [f+1], 1;",
        ],
        "race",
    ),
    Row(
        "C2: a token through another thread",
        2,
        Some(1),
        "F: ld.acquire.gpu.u8 s, [f0]; setp.eq.u32 p, s, 0; @p bra F; mbarrier.arrive.release.cta.shared::cta.b64 _, [b0];",
        &["st.release.gpu.u8 [f], 1; WAIT st.release.gpu.u8 [f+1], 1;"],
        "clean",
    ),
    Row(
        "C3: fence, then relaxed sums",
        2,
        None,
        "STORE fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [g], 1;",
        &["F: ld.acquire.gpu.u32 s, [g]; setp.lt.u32 p, s, 1; @p bra F; ld.weak.shared.u8 r, [x+1];"],
        "race",
    ),
    Row(
        "C3: all sums are waited for",
        2,
        None,
        "STORE fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [g], 1;",
        &["F: ld.acquire.gpu.u32 s, [g]; setp.lt.u32 p, s, 2; @p bra F; ld.weak.shared.u8 r, [x+1];"],
        "clean",
    ),
    Row(
        "C4: a lane goes on because another saw the flag",
        2,
        None,
        "ld.acquire.gpu.u8 s, [f]; setp.ne.u32 q, s, 0; vote.sync.any.pred q, q, 3; @q ld.weak.shared.u8 r, [x0];",
        &["st.weak.shared.u8 [x+1], 1; st.release.gpu.u8 [f], 1;"],
        "race",
    ),
    Row(
        "C4: all must have seen it",
        2,
        None,
        "ld.acquire.gpu.u8 s, [f]; setp.ne.u32 q, s, 0; vote.sync.all.pred q, q, 3; @q ld.weak.shared.u8 r, [x0];",
        &["st.weak.shared.u8 [x+1], 1; st.release.gpu.u8 [f], 1;"],
        "clean",
    ),
    Row(
        "C6: own mbarrier each",
        2,
        Some(1),
        "STORE mbarrier.arrive.release.cta.shared::cta.b64 _, [b0];",
        CONSUMER,
        "race",
    ),
    Row(
        "C7: own released flag each",
        2,
        None,
        "STORE st.release.gpu.u8 [f0], 1;",
        &["F: ld.acquire.gpu.u8 s, [f+1]; setp.lt.u32 p, s, 1; @p bra F; st.weak.shared.u8 [x], 2;"],
        "race",
    ),
    Row(
        "an atomic by one, its value shuffled to all",
        2,
        None,
        "mov.u32 t, 0; @h bra E; atom.acq_rel.gpu.global.add.u32 t, [g], 1; E: shfl.sync.idx.b32 t, t, 0, 31, 3; setp.eq.u32 q, t, 1; @q ld.weak.shared.u8 r, [x0];",
        &["st.weak.shared.u8 [x+1], 1; atom.acq_rel.gpu.global.add.u32 s, [g], 1;"],
        "race",
    ),
    Row(
        "the same behind a warp barrier",
        2,
        None,
        "mov.u32 t, 0; @h bra E; atom.acq_rel.gpu.global.add.u32 t, [g], 1; E: shfl.sync.idx.b32 t, t, 0, 31, 3; setp.eq.u32 q, t, 1; bar.warp.sync 3; @q ld.weak.shared.u8 r, [x0];",
        &["st.weak.shared.u8 [x+1], 1; atom.acq_rel.gpu.global.add.u32 s, [g], 1;"],
        "clean",
    ),
];

fn text(Row(name, lanes, count, body, others, _): &Row) -> String {
    let words = [
        ("STORE ", STORE),
        ("WAIT ", WAIT),
        ("ARRIVE", ARRIVE),
        ("COPY ", "cp.async.ca.shared.global [y0], [v0], 4; "),
    ];
    let long = |body: &str| words.iter().fold(body.to_owned(), |text, (word, code)| text.replace(word, code));
    let meets = if count.is_some() { "bar.sync 0; " } else { "" };
    let mut out = format!(
        "moire \"{name}\"\n.shared .b8 x[4];\n.shared .b32 y[4];\n.global .b32 v[4];\n.global .b8 f[4];\n.global .b32 g;\n\
         .shared .b64 b[4];\nP (gpu 0, cta 0, warp 0, lanes 0-{}) {{\n.reg lane = %laneid;\n\
         setp.eq.u32 z, lane, 0; setp.ge.u32 h, lane, 1; setp.eq.u32 q, lane, 1; setp.lt.u32 low, lane, 2;\n\
         add.u64 x0, lane, x; xor.b64 n, lane, 1; add.u64 x1, n, x; add.u64 x2, x0, 2; add.u64 f0, lane, f;\n\
         mul.lo.u64 l4, lane, 4; add.u64 y0, l4, y; add.u64 v0, l4, v; mul.lo.u64 n4, n, 4; add.u64 y1, n4, y;\n\
         mul.lo.u64 l8, lane, 8; add.u64 b0, l8, b;\n{meets}{}\n}}\n",
        lanes - 1,
        long(body)
    );
    for (n, body) in others.iter().enumerate() {
        out += &format!("Q{n} (gpu 0, cta 0, warp {}) {{ {meets}{} }}\n", n + 1, long(body));
    }
    if let Some(count) = count {
        let init = |at: usize| format!("mbarrier.init.shared::cta.b64 [b+{at}], {count}; ");
        out += &format!("I (gpu 0, cta 0, warp 9) {{ {}{}{meets} }}\n", init(0), init(8));
    }
    out
}

fn words(program: &Program, model: &Model) -> String {
    let questions = Questions { witnesses: false, about: About::All };
    let judgement = judge(program, model, &Limits::default(), questions);
    let words: BTreeSet<&str> = judgement.verdicts.iter().map(|v| v.word()).collect();
    words.into_iter().collect::<Vec<_>>().join(" ")
}

#[test]
fn rows_have_their_answers() {
    let letter = moire_models::load("ptx", &Variants::new()).expect("it loads");
    let profile = Variants::from([("profile".to_owned(), "practice".to_owned())]);
    let practice = moire_models::load("ptx", &profile).expect("it loads");
    let (mut wrong, mut same) = (Vec::new(), 0);
    for row in ROWS {
        let text = text(row);
        let program = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for (model, name) in [(&letter, "letter"), (&practice, "practice")] {
            let got = [words(&literal(&program), model), words(&joined(&program), model)];
            // Joined lanes arrive together: where the protocol is broken, their list of races may be shorter.
            let short = |g: &String| row.5.contains("protocol") && *g == row.5.replace(" race", "");
            if got[0] != row.5 || !(got[1] == row.5 || short(&got[1])) {
                wrong.push(format!("{} ({name}): {got:?}, not {}", row.0, row.5));
            }
            match compare(&program, model, &NaiveLimits::default()) {
                Comparison::Same { .. } => same += 1,
                Comparison::Skipped(why) => eprintln!("{}: {why}", row.0),
                Comparison::Different(d) => wrong.push(format!("{} ({name}): {d:#?}", row.0)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(same > ROWS.len(), "the enumerator skips too much: {same} of {}", 2 * ROWS.len());
}
