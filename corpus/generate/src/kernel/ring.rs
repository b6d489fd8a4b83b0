//! Phases whose warps hand tiles over: a ring of stages with mbarriers, filled by stores or by bulk copies, and a pair of named
//! barriers.

use super::elements::Element;
use super::text::{Script, Weaker};
use crate::numbers::Choose;
use crate::protocol::Mutation;

/// What fills a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// Stores of all lanes, of which each arrives.
    Each,
    /// Stores of all lanes, for which one arrives.
    One,
    /// A bulk copy that one lane issues.
    Bulk,
}

/// The sizes of a ring.
#[derive(Clone, Copy, Debug)]
struct Ring {
    fill: Fill,
    stages: u32,
    rounds: u32,
    /// Warps that read.
    readers: u32,
    /// Each lane of a reader frees the stage.
    each: bool,
    element: Element,
    /// The order that waits and arrivals name.
    order: (&'static str, &'static str),
}

impl Ring {
    fn draw(d: &mut dyn Choose, readers: u32) -> Ring {
        let stages = d.pick(&[1, 2, 2, 3]);
        let fill = d.pick(&[Fill::Each, Fill::One, Fill::Bulk]);
        Ring {
            fill,
            stages,
            rounds: stages + d.pick(&[0, 1, 2]),
            readers,
            each: d.chance(50),
            element: if fill == Fill::Bulk { Element::wide(d) } else { Element::moved(d) },
            order: d.pick(&[
                ("", ""),
                (".acquire.cta", ".release.cta"),
                (".acquire.cluster", ".release.cluster"),
            ]),
        }
    }

    fn tile(&self) -> u32 {
        32 * self.element.bytes
    }

    /// Goes on to the next stage, and around as often as there are rounds.
    fn next(&self, k: &mut Script, top: &str) {
        k.all(&["add.u32 r_stage, r_stage, 1;"]);
        k.line(format!("setp.eq.u32 p_wrap, r_stage, {};", self.stages));
        k.all(&["@p_wrap mov.u32 r_stage, 0;", "@p_wrap xor.b32 r_phase, r_phase, 1;"]);
        k.all(&["add.u32 r_round, r_round, 1;"]);
        k.line(format!("setp.lt.u32 p_more, r_round, {};", self.rounds));
        k.line(format!("@p_more bra {top};"));
    }

    /// Starts a loop over rounds: the addresses of this stage and of its mbarriers.
    fn top(&self, k: &mut Script, phase: u32) -> String {
        let top = k.label();
        k.all(&["mov.u32 r_stage, 0;", "mov.u32 r_round, 0;"]);
        k.line(format!("mov.u32 r_phase, {phase};"));
        k.line(format!("{top}:"));
        k.line("mad.lo.u32 r_full, r_stage, 8, r_bars;");
        k.line(format!("add.u32 r_empty, r_full, {};", 8 * self.stages));
        k.line(format!("mad.lo.u32 r_tile, r_stage, {}, r_buffer;", self.tile()));
        k.line(format!("mad.lo.u32 r_place, r_cta, {}, r_round;", self.rounds));
        k.line(format!("mul.wide.u32 d_step, r_place, {};", self.tile()));
        top
    }

    fn producer(&self, k: &mut Script) {
        let Element { of, bytes, .. } = self.element;
        let (value, (acquire, release)) = (self.element.named("v"), self.order);
        let top = self.top(k, 1);
        k.wait("r_empty", "r_phase", acquire);
        k.line("add.u64 d_from, d_in, d_step;");
        match self.fill {
            Fill::Bulk => {
                let expect = |bytes: u32| {
                    format!("mbarrier.arrive.expect_tx{release}.shared::cta.b64 _, [r_full], {bytes};")
                };
                let (more, fewer) = (expect(self.tile() + 16), expect(self.tile() - 16));
                let only = "mbarrier.arrive.shared::cta.b64 _, [r_full];";
                k.weak(
                    expect(self.tile()),
                    &[
                        (Mutation::Count, &more),
                        (Mutation::Count, &fewer),
                        (Mutation::Drop, ""),
                        (Mutation::Weaken, only),
                    ],
                );
                let copy = |at: &str| {
                    format!(
                        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r_tile], [d_from], {}, [{at}];",
                        self.tile()
                    )
                };
                k.weak(copy("r_full"), &[(Mutation::Barrier, &copy("r_empty"))]);
            }
            Fill::Each | Fill::One => {
                k.line(format!("mad.lo.u32 r_at, r_lane, {bytes}, r_tile;"));
                k.line(format!("mad.wide.u32 d_from, r_lane, {bytes}, d_from;"));
                k.line(format!("ld.global.{of} {value}, [d_from];"));
                k.line(format!("st.shared.{of} [r_at], {value};"));
                self.arrival(k, "r_full", self.fill == Fill::Each, release);
            }
        }
        self.next(k, &top);
    }

    /// Each lane arrives, or one for its warp.
    fn arrival(&self, k: &mut Script, at: &str, each: bool, release: &str) {
        if !each {
            k.weak("bar.warp.sync -1;", &[(Mutation::Drop, "")]);
            k.or(Weaker::Earlier);
        }
        k.arrive(if each { "" } else { "@p_lead " }, at, release);
    }

    fn reader(&self, k: &mut Script) {
        let Element { of, bytes, .. } = self.element;
        let (value, (acquire, release)) = (self.element.named("v"), self.order);
        let top = self.top(k, 0);
        k.line("xor.b32 r_other, r_lane, 5;");
        k.line(format!("mad.lo.u32 r_at, r_other, {bytes}, r_tile;"));
        k.wait("r_full", "r_phase", acquire);
        k.line(format!("ld.shared.{of} {value}, [r_at];"));
        if self.fill == Fill::Bulk {
            k.weak("fence.proxy.async.shared::cta;", &[(Mutation::Drop, "")]);
        }
        self.arrival(k, "r_empty", self.each, release);
        k.line(format!("mad.lo.u32 r_place, r_cta, {}, r_warp;", self.readers + 1));
        k.line(format!("mad.lo.u32 r_place, r_place, {}, r_round;", self.rounds));
        k.line("mad.lo.u32 r_place, r_place, 32, r_lane;");
        k.line(format!("mad.wide.u32 d_to, r_place, {bytes}, d_out;"));
        k.line(format!("st.global.{of} [d_to], {value};"));
        self.next(k, &top);
    }
}

/// A producer warp and reader warps with a ring of stages between them.
pub(super) fn ring(k: &mut Script, d: &mut dyn Choose) {
    let ring = Ring::draw(d, k.shape.block / 32 - 1);
    k.least = k.least.max(90);
    k.memory("buffer", ring.tile() * ring.stages, 128);
    k.memory("bars", 16 * ring.stages, 8);
    for stage in 0..ring.stages {
        let writers = if ring.fill == Fill::Each { 32 } else { 1 };
        k.init(&format!("r_bars+{}", 8 * stage), writers);
        let readers = ring.readers * if ring.each { 32 } else { 1 };
        k.init(&format!("r_bars+{}", 8 * (ring.stages + stage)), readers);
    }
    k.line("@p_first fence.mbarrier_init.release.cluster;");
    k.sync();
    k.all(&["setp.eq.u32 p_lead, r_lane, 0;", "setp.ne.u32 p_reader, r_warp, 0;"]);
    let (reader, end) = (k.label(), k.label());
    k.line(format!("@p_reader bra {reader};"));
    if ring.fill == Fill::Bulk {
        k.line(format!("@!p_lead bra {end};"));
    }
    ring.producer(k);
    k.line(format!("bra {end};"));
    k.line(format!("{reader}:"));
    ring.reader(k);
    k.line(format!("{end}:"));
    k.line("bar.warp.sync -1;");
}

/// A group of warps writes, the other one reads, with a named barrier for each direction of each buffer: one arrives, the other waits.
pub(super) fn named(k: &mut Script, d: &mut dyn Choose) {
    let (buffers, rounds, element) = (d.pick(&[1, 2]), d.pick(&[1, 2, 3]), Element::moved(d));
    let (word, turn) = (d.pick(&["bar", "barrier"]), d.pick(&[1, 9, 31]));
    let Element { of, bytes, .. } = element;
    let value = element.named("v");
    let tile = 32 * bytes;
    k.memory("buffer", tile * buffers, 16);
    k.line(format!("mad.lo.u32 r_at, r_lane, {bytes}, r_buffer;"));
    k.line(format!("xor.b32 r_other, r_lane, {turn};"));
    k.line(format!("mad.lo.u32 r_across, r_other, {bytes}, r_buffer;"));
    k.line(format!("mad.wide.u32 d_from, r_lane, {bytes}, d_in;"));
    k.line(format!("mad.wide.u32 d_to, r_tid, {bytes}, d_out;"));
    k.line(format!("mul.wide.u32 d_step, r_cta, {};", rounds * k.shape.block * bytes));
    k.line("add.u64 d_to, d_to, d_step;");
    k.line("setp.ge.u32 p_reader, r_tid, 32;");
    let (reader, end) = (k.label(), k.label());
    k.line(format!("@p_reader bra {reader};"));
    let meeting = Meeting { word, first: 4 * u32::try_from(k.phases.len()).unwrap_or(1), buffers };
    for n in 0..rounds {
        k.line(format!("ld.global.{of} {value}, [d_from+{}];", n * tile));
        if n >= buffers {
            meeting.add(k, "sync", false, n);
        }
        k.line(format!("st.shared.{of} [r_at+{}], {value};", n % buffers * tile));
        meeting.add(k, "arrive", true, n);
    }
    k.line(format!("bra {end};"));
    k.line(format!("{reader}:"));
    for n in 0..rounds {
        meeting.add(k, "sync", true, n);
        k.line(format!("ld.shared.{of} {value}, [r_across+{}];", n % buffers * tile));
        if n + buffers < rounds {
            meeting.add(k, "arrive", false, n);
        }
        k.line(format!("st.global.{of} [d_to+{}], {value};", n * k.shape.block * bytes));
    }
    k.line(format!("{end}:"));
}

/// Named barriers of two groups of warps.
#[derive(Clone, Copy, Debug)]
struct Meeting {
    word: &'static str,
    /// The first of their numbers.
    first: u32,
    buffers: u32,
}

impl Meeting {
    /// Adds an arrival (`arrive`) or a wait (`sync`) at the barrier for a buffer that is full, or empty, in a round.
    fn add(self, k: &mut Script, how: &str, full: bool, round: u32) {
        let Meeting { word, first, buffers } = self;
        let threads = k.shape.block;
        let text = |buffer: u32| format!("{word}.{how} {}, {threads};", first + 2 * buffer + u32::from(full));
        let other = text((round + 1) % 2);
        k.weak(text(round % buffers), &[(Mutation::Drop, ""), (Mutation::Barrier, &other)]);
        k.or(if how == "arrive" { Weaker::Earlier } else { Weaker::Later });
    }
}
