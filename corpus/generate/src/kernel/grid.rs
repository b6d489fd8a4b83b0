//! Phases whose CTAs meet in global memory: a barrier of the grid, a sum that the last CTA completes, CTAs that add up in turns.

use super::elements::Sum;
use super::text::{Script, Weaker};
use crate::numbers::Choose;
use crate::protocol::Mutation;

/// How CTAs publish to each other: a fence and a relaxed access, or an access that orders.
#[derive(Clone, Copy, Debug)]
struct Publish {
    fenced: bool,
    fence: &'static str,
    scope: &'static str,
}

impl Publish {
    fn draw(d: &mut dyn Choose) -> Publish {
        let scope = d.pick(&["gpu", "gpu", "sys"]);
        let fence = match (scope, d.chance(50)) {
            ("gpu", false) => "membar.gl;",
            ("gpu", true) => "fence.acq_rel.gpu;",
            (_, false) => "membar.sys;",
            (_, true) => "fence.sc.sys;",
        };
        Publish { fenced: d.chance(60), fence, scope }
    }

    fn fence(self, k: &mut Script, guard: &str) {
        if self.fenced {
            let narrow = format!("{guard}fence.acq_rel.cta;");
            k.weak(format!("{guard}{}", self.fence), &[(Mutation::Drop, ""), (Mutation::Scope, &narrow)]);
            k.or(Weaker::Later);
        }
    }

    /// Adds an access, `WORD.ORDER.SCOPE.REST`, in front of which or behind which a fence stands where it does not order.
    fn access(self, k: &mut Script, (guard, word, order, rest): (&str, &str, &str, &str)) {
        let order = if self.fenced { "relaxed" } else { order };
        let text = |order: &str, scope: &str| format!("{guard}{word}.{order}.{scope}.{rest}");
        let (relaxed, narrow) = (text("relaxed", self.scope), text(order, "cta"));
        let mut weaker = vec![(Mutation::Scope, narrow.as_str())];
        if !self.fenced {
            weaker.push((Mutation::Weaken, &relaxed));
        }
        k.weak(text(order, self.scope), &weaker);
    }
}

/// A barrier of the grid: the first thread of each CTA counts up and waits for the others.
pub(super) fn barrier(k: &mut Script, d: &mut dyn Choose) {
    let shape = k.shape;
    let (publish, sum) = (Publish::draw(d), Sum::draw(d));
    let turn = d.pick(&[1, shape.grid - 1]);
    let (of, bytes, value) = (sum.element.of, sum.element.bytes, sum.element.named("v"));
    k.line(format!("mad.lo.u32 r_global, r_cta, {}, r_tid;", shape.block));
    k.line(format!("mul.wide.u32 d_step, r_global, {bytes};"));
    k.line("add.u64 d_to, d_out, d_step;");
    k.line(format!("add.u32 r_next, r_cta, {turn};"));
    k.line(format!("rem.u32 r_next, r_next, {};", shape.grid));
    k.line(format!("mad.lo.u32 r_next, r_next, {}, r_tid;", shape.block));
    k.line(format!("mul.wide.u32 d_step, r_next, {bytes};"));
    k.line("add.u64 d_from, d_out, d_step;");
    part(k, of, &value);
    publish.fence(k, "@p_first ");
    publish.access(k, ("@p_first ", "atom", "acq_rel", "global.add.u32 r_old, [d_in], 1;"));
    let (wait, on) = (k.label(), k.label());
    k.line(format!("@!p_first bra {on};"));
    k.line(format!("{wait}:"));
    publish.access(k, ("", "ld", "acquire", "global.u32 r_seen, [d_in];"));
    k.line(format!("setp.lt.u32 p_early, r_seen, {};", shape.grid));
    k.line(format!("@p_early bra {wait};"));
    publish.fence(k, "");
    k.line(format!("{on}:"));
    k.sync();
    k.line(format!("ld.global.{of} {value}, [d_from];"));
    k.line(format!("add.u64 d_to, d_to, {};", 4096));
    k.line(format!("st.global.{of} [d_to], {value};"));
}

/// Each thread stores its part, and the CTA meets.
fn part(k: &mut Script, of: &str, value: &str) {
    let (bits, number) = (of.replace(['u', 's'], "b"), if of == "f32" { "0f3F800000" } else { "7" });
    k.line(format!("mov.{bits} {value}, {number};"));
    k.line(format!("st.global.{of} [d_to], {value};"));
    k.sync();
}

/// A split sum: each CTA stores its part and takes a ticket; the one with the last ticket adds up all parts.
pub(super) fn split(k: &mut Script, d: &mut dyn Choose) {
    let shape = k.shape;
    let (publish, sum) = (Publish::draw(d), Sum::draw(d));
    let inc = d.chance(40);
    let (of, bytes) = (sum.element.of, sum.element.bytes);
    let (value, other) = (sum.element.named("v"), sum.element.named("w"));
    k.memory("last", 4, 4);
    k.line(format!("mad.lo.u32 r_global, r_cta, {}, r_tid;", shape.block));
    k.line(format!("mul.wide.u32 d_step, r_global, {bytes};"));
    k.all(&["add.u64 d_to, d_out, d_step;"]);
    k.line(format!("mul.wide.u32 d_step, r_tid, {bytes};"));
    k.line("add.u64 d_from, d_out, d_step;");
    part(k, of, &value);
    publish.fence(k, "@p_first ");
    let ticket = if inc {
        format!("inc.u32 r_ticket, [d_in], {};", shape.grid - 1)
    } else {
        "add.u32 r_ticket, [d_in], 1;".into()
    };
    publish.access(k, ("@p_first ", "atom", "acq_rel", &format!("global.{ticket}")));
    publish.fence(k, "@p_first ");
    k.line("@p_first st.shared.u32 [r_last], r_ticket;");
    k.sync();
    k.line("ld.shared.u32 r_ticket, [r_last];");
    k.line(format!("setp.ne.u32 p_other, r_ticket, {};", shape.grid - 1));
    let end = k.label();
    k.line(format!("@p_other bra {end};"));
    for cta in 0..shape.grid {
        let to = if cta == 0 { &value } else { &other };
        k.line(format!("ld.global.{of} {to}, [d_from+{}];", cta * shape.block * bytes));
        if cta > 0 {
            k.line(format!("{} {value}, {value}, {other};", sum.instruction));
        }
    }
    k.line(format!("st.global.{of} [d_from+4096], {value};"));
    k.line(format!("{end}:"));
}

/// CTAs in turns: each waits for its number, adds its part to the sum, and hands on.
pub(super) fn turns(k: &mut Script, d: &mut dyn Choose) {
    let (publish, sum) = (Publish::draw(d), Sum::draw(d));
    let (of, bytes) = (sum.element.of, sum.element.bytes);
    let (value, other) = (sum.element.named("v"), sum.element.named("w"));
    k.line(format!("mul.wide.u32 d_step, r_tid, {bytes};"));
    k.all(&["add.u64 d_to, d_out, d_step;"]);
    k.line(format!(
        "mov.{} {value}, {};",
        of.replace(['u', 's'], "b"),
        if of == "f32" { "0f3F800000" } else { "7" }
    ));
    let (wait, on) = (k.label(), k.label());
    k.line(format!("@!p_first bra {on};"));
    k.line(format!("{wait}:"));
    publish.access(k, ("", "ld", "acquire", "global.u32 r_seen, [d_in];"));
    k.line("setp.ne.u32 p_early, r_seen, r_cta;");
    k.line(format!("@p_early bra {wait};"));
    publish.fence(k, "");
    k.line(format!("{on}:"));
    k.sync();
    k.line("setp.ne.u32 p_more, r_cta, 0;");
    k.line(format!("@p_more ld.global.{of} {other}, [d_to];"));
    k.line(format!("@p_more {} {value}, {value}, {other};", sum.instruction));
    k.line(format!("st.global.{of} [d_to], {value};"));
    k.line("add.u32 r_turn, r_cta, 1;");
    k.sync();
    publish.fence(k, "@p_first ");
    publish.access(k, ("@p_first ", "st", "release", "global.u32 [d_in], r_turn;"));
}
