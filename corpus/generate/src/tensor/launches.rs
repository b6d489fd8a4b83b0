//! Grids of one stream that start early or wait, launch control and its answers, reductions at barriers, exchanges of lanes, and
//! instructions without a meaning: each beside message passing, which it orders or does not.

use crate::numbers::Choose;
use crate::words::read;
use moire_program::ir::Program;

const MEMORY: &str =
    ".global .b32 x;\n.global .b32 y;\n.shared .b32 z;\n.shared .b8 c[16];\n.shared .b64 b;\n";

/// Draws a program. `None` if the drawn text is refused.
pub fn launches(d: &mut dyn Choose) -> Option<Program> {
    let text = match d.below(4) {
        0 => grids(d),
        1 => cancelled(d),
        2 => counted(d),
        _ => exchanged(d),
    };
    read(&format!("moire \"launches\"\n{MEMORY}{text}"))
}

/// An instruction that neither orders nor accesses.
fn idle(d: &mut dyn Choose) -> &'static str {
    d.pick(&[
        "",
        "nanosleep.u32 20;\n",
        "pmevent 1;\n",
        "setmaxnreg.dec.sync.aligned.u32 40;\n",
        "prefetch.global.L2 [x];\n",
        "membar.gl;\n",
        "membar.cta;\n",
        "membar.sys;\n",
    ])
}

fn written(d: &mut dyn Choose, name: &str) -> String {
    let order = d.pick(&["weak", "weak", "relaxed.gpu", "release.gpu"]);
    format!("st.{order}.global.u32 [{name}], 1;\n")
}

fn asked(d: &mut dyn Choose, register: &str, name: &str) -> String {
    let order = d.pick(&["weak", "weak", "relaxed.gpu", "acquire.gpu"]);
    format!("ld.{order}.global.u32 {register}, [{name}];\n")
}

/// A grid and those behind it on its stream.
fn grids(d: &mut dyn Choose) -> String {
    let (first, early) = (d.pick(&["x", "y"]), d.chance(70));
    let launch = if d.chance(60) { "griddepcontrol.launch_dependents;\n" } else { "" };
    let wait = if early { "griddepcontrol.wait;\n" } else { "" };
    let (a, b) = (written(d, first), written(d, "y"));
    let (before, after) = (asked(d, "r0", "x"), asked(d, "r1", "y"));
    let first = if d.chance(50) { format!("{a}{launch}{b}") } else { format!("{launch}{a}{b}") };
    let second =
        if d.chance(70) { format!("{wait}{after}{before}") } else { format!("{before}{wait}{after}") };
    let third = if d.chance(30) {
        let (own, said) = (asked(d, "r2", "x"), d.pick(&["", "griddepcontrol.wait;\n"]));
        format!("P2 (gpu 0, cta 0, grid 2) {{\n{said}{own}}}\n")
    } else {
        String::new()
    };
    let idle = idle(d);
    format!("P0 (gpu 0, cta 0) {{\n{first}{idle}}}\nP1 (gpu 0, cta 0, grid 1) {{\n{second}}}\n{third}")
}

/// A request for the work of another cluster, and its answer.
fn cancelled(d: &mut dyn Choose) -> String {
    let maybe = |d: &mut dyn Choose, text: &str| if d.chance(80) { text.to_owned() } else { String::new() };
    let all = d.pick(&["", "", ".multicast::cluster::all"]);
    let expect = maybe(d, "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 16;\n");
    let ask = format!(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{all}.b128 [c], [b];\n"
    );
    let wait = maybe(d, "L:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;\n@!p bra L;\n");
    let query = d.pick(&[
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 q, r;\n",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {t0, t1, t2, _}, r;\n",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 t0, r;\n",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 t0, r;\n",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 t0, r;\n",
    ]);
    let fence = maybe(d, "fence.proxy.async;\n");
    let other = d.pick(&["ld.weak.shared.b32 s, [c];\n", "st.weak.shared.b32 [c], 1;\n", "bar.sync 1;\n"]);
    let last = d.pick(&["", "", "bar.sync 1;\n"]);
    format!(
        "P0 (gpu 0, cta 0, warp 0) {{\nmbarrier.init.shared::cta.b64 [b], 1;\nbar.sync 0;\n{expect}{fence}{ask}{wait}\
         ld.weak.shared.b128 r, [c];\n{query}{last}}}\nP1 (gpu 0, cta 0, warp 1) {{\nbar.sync 0;\n{other}}}\n"
    )
}

/// A barrier that counts or combines, or one at which the first thread only arrives.
fn counted(d: &mut dyn Choose) -> String {
    let (one, two) = ("st.weak.shared.b32 [z], 1;\n", "ld.weak.shared.b32 r, [z];\n");
    let meets = |d: &mut dyn Choose| {
        d.pick(&[
            "bar.red.popc.u32 n, 1, p;\n",
            "bar.red.and.pred q, 1, p;\n",
            "bar.red.or.pred q, 1, !p;\n",
            "bar.sync 1;\n",
            "barrier.cta.sync 1;\n",
        ])
    };
    let (first, second) = match d.below(3) {
        0 => ("bar.arrive 1, 2;\n", "bar.sync 1, 2;\n"),
        1 => ("barrier.cta.arrive 1, 2;\n", "bar.red.popc.u32 n, 1, 2, p;\n"),
        _ => (meets(d), meets(d)),
    };
    let (a, b) = (asked(d, "s", "x"), written(d, "y"));
    let (x, y) = (written(d, "x"), asked(d, "t", "y"));
    let idle = idle(d);
    format!(
        "P0 (gpu 0, cta 0, warp 0) {{\n{a}setp.eq.u32 p, s, 1;\n{one}{first}{b}{idle}}}\n\
         P1 (gpu 0, cta 0, warp 1) {{\n{y}setp.eq.u32 p, t, 1;\n{second}{two}{x}}}\n"
    )
}

/// Two lanes of a warp that exchange something between what they do.
fn exchanged(d: &mut dyn Choose) -> String {
    let meets = [
        "vote.sync.any.pred q, p, 3;\n",
        "vote.sync.all.pred q, p, 3;\n",
        "vote.sync.uni.pred q, p, 3;\n",
        "vote.sync.ballot.b32 v, p, 3;\n",
        "shfl.sync.idx.b32 v, r, 0, 31, 3;\n",
        "shfl.sync.up.b32 v, r, 1, 0, 3;\n",
        "shfl.sync.down.b32 v, r, 1, 31, 3;\n",
        "shfl.sync.bfly.b32 v, r, 1, 31, 3;\n",
        "match.any.sync.b32 v, r, 3;\n",
        "match.all.sync.b32 v|q, r, 3;\n",
        "redux.sync.add.u32 v, r, 3;\n",
        "redux.sync.min.s32 v, r, 3;\n",
        "redux.sync.max.u32 v, r, 3;\n",
        "redux.sync.and.b32 v, r, 3;\n",
        "redux.sync.or.b32 v, r, 3;\n",
        "redux.sync.xor.b32 v, r, 3;\n",
        "elect.sync _|q, 3;\n",
        "bar.warp.sync 3;\n",
    ];
    let meet = [d.pick(&meets), d.pick(&meets)].concat();
    let (first, second) = (d.pick(&["@p ", "@!p ", ""]), d.pick(&["@p ", "@!p ", ""]));
    let (a, b) = (
        d.pick(&["st.weak.shared.b32 [z], 1", "ld.weak.shared.b32 r, [z]"]),
        d.pick(&["st.weak.shared.b32 [z], 2", "ld.weak.shared.b32 s, [z]"]),
    );
    let (x, y) = (written(d, "x"), asked(d, "t", "x"));
    format!(
        "P0 (gpu 0, cta 0, warp 0, lanes 0-1) {{\n.reg lane = %laneid;\nsetp.eq.u32 p, lane, 0;\n{first}{a};\n{meet}{second}{b};\n\
         @p {x}}}\nP1 (gpu 0, cta 0, warp 1) {{\n{y}}}\n"
    )
}
