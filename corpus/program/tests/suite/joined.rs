//! How many threads come to stand for a warp, and what they are called.

use moire_program::ir::Program;
use moire_program::lanes::{joined, literal, reduced};
use moire_program::text::{Format, parse, print};
use std::time::{Duration, Instant};

/// A warp of 32 lanes with this body; `x0`, `x1`: the word of a lane and of the next one, `z`: lane 0.
fn warp(body: &str) -> Program {
    let text = format!(
        "moire \"t\"\n.shared .b8 x[4096];\n.shared .b64 b;\n.shared .b64 c;\n.global .b8 f[128];\n\
         P0 (gpu 0, cta 0, warp 0, lanes 0-31) {{\n.reg lane = %laneid;\nsetp.eq.u32 z, lane, 0;\n\
         mul.lo.u64 l0, lane, 4;\nadd.u64 l1, l0, 4;\nand.b64 l1, l1, 127;\nadd.u64 x0, l0, x;\nadd.u64 x1, l1, x;\n\
         add.u64 f0, l0, f;\n{body} }}\n"
    );
    parse(&text, Format::Native).expect("the text is legal")
}

const WAIT: &str = "L: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0; @!p bra L;";
const ARRIVE: &str = "mbarrier.arrive.release.cta.shared::cta.b64 _, [c];";

#[test]
fn few_threads_stand_for_a_warp() {
    let tree: String = [16, 8, 4, 2, 1]
        .iter()
        .map(|k| {
            let at = 4 * k;
            format!(
                "setp.lt.u32 q, lane, {k}; @q ld.weak.shared.u32 r, [x0+{at}]; @q st.weak.shared.u32 [x0], r;\n\
                 bar.warp.sync 0xffffffff;\n"
            )
        })
        .collect();
    let shapes = [
        // The other lanes may be late for the wait, unless all meet behind it.
        (format!("{WAIT} @z st.weak.shared.u32 [x], 1; @z {ARRIVE}"), 2),
        (format!("{WAIT} elect.sync _|e, 0xffffffff; @e st.weak.shared.u32 [x], 1; @e {ARRIVE}"), 1),
        (format!("{WAIT} ld.weak.shared.u32 r, [x0]; bar.warp.sync 0xffffffff; @z {ARRIVE}"), 2),
        (format!("{WAIT} ld.weak.shared.u32 r, [x0]; {ARRIVE}"), 1),
        ("st.weak.shared.u32 [x0], 1; bar.warp.sync 0xffffffff; ld.weak.shared.u32 r, [x1];".to_owned(), 2),
        (format!("st.weak.shared.u32 [x0], lane; bar.warp.sync 0xffffffff;\n{tree}"), 6),
        ("L: ld.acquire.gpu.u32 r, [f0]; setp.eq.u32 p, r, 0; @p bra L;".to_owned(), 32),
        ("st.release.gpu.u32 [f], 1;".to_owned(), 32),
        ("red.relaxed.gpu.global.add.u32 [f], 1;".to_owned(), 1),
        ("fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [f], 1;".to_owned(), 32),
    ];
    for (body, threads) in shapes {
        let program = warp(&body);
        assert_eq!(joined(&program).threads.len(), threads, "{body}");
        assert_eq!(literal(&program).threads.len(), 32, "{body}");
    }
}

#[test]
fn parts_are_named_by_their_lanes_and_read_back() {
    let body = format!(
        "{WAIT} ld.weak.shared.u32 r, [x0]; bar.warp.sync 0xffffffff; @z {ARRIVE} }}\nexists (P0:r == 0) //"
    );
    let program = warp(&body);
    let few = reduced(&program);
    let names: Vec<&str> = few.program.threads.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["P0 lane 0", "P0 lanes 1-31"]);
    assert_eq!((few.of, few.first), (vec![0, 0], vec![0]));
    assert!(few.program.threads[1].place.joined && !few.program.threads[0].place.joined);
    let text = print(&few.program);
    let again = parse(&text, Format::Native).expect("a printed program reads");
    assert_eq!(print(&again), text);
    assert_eq!(joined(&again).as_ref(), &again, "joined lanes stay as they are");
}

#[test]
fn a_condition_keeps_its_lane_apart_where_it_asks_for_a_strong_result() {
    let load = "ld.relaxed.gpu.u32 r, [f]; st.weak.shared.u32 [x0], 1;";
    assert_eq!(joined(&warp(load)).threads.len(), 1);
    assert_eq!(joined(&warp(&format!("{load} }}\nexists (P0:r == 0) //"))).threads.len(), 2);
    let weak = "ld.weak.global.u32 r, [f];";
    assert_eq!(joined(&warp(&format!("{weak} }}\nexists (P0:r == 0) //"))).threads.len(), 1);
}

#[test]
fn elections_that_ask_about_each_other_end() {
    let lane = |n: u32| {
        let after = 2u64.pow(32) - 2u64.pow(n);
        format!("elect.sync _|e, {after};\n@!e bra S{n};\nst.weak.shared.u32 [x+{n}], 1;\nS{n}:\n")
    };
    // Each election is led by another lane, which comes there only if elections before it are known.
    let program = warp(&(0..24).map(lane).collect::<String>());
    assert_eq!(joined(&program).threads.len(), 32);
    // Lanes 0 and 1 ask about each other.
    let program = warp("@z elect.sync _|e, 1; @!z elect.sync _|g, 0xfffffffe; @g bra E; @e bra E; E:");
    assert_eq!(joined(&program).threads.len(), 2);
    let program = warp("elect.sync _|e, 1; elect.sync _|g, 0xfffffffe;");
    assert_eq!(joined(&program).threads.len(), 2);
}

#[test]
fn a_warp_with_very_many_accesses_is_not_compared_for_long() {
    let body: String = (0..8_000).map(|n| format!("st.weak.shared.u32 [x0+{}], 1;\n", n % 900 * 4)).collect();
    let (program, begin) = (warp(&body), Instant::now());
    assert_eq!(joined(&program).threads.len(), 32);
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}
