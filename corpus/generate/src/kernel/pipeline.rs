//! A warp-specialised matrix product on tensor memory: one warp copies operands, one multiplies, the others take the results away.
//!
//! A ring of stages carries operands. A commit frees a stage; another one hands an accumulator to the epilogue, whose arrivals give
//! it back.

use super::text::{Script, Weaker};
use crate::numbers::Choose;
use crate::protocol::Mutation;

/// The sizes of a product.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    stages: u32,
    /// k-steps of a tile.
    steps: u32,
    tiles: u32,
    accumulators: u32,
    /// Epilogue warps.
    warps: u32,
    /// Each lane of the epilogue gives an accumulator back.
    each: bool,
    /// Columns of an accumulator.
    columns: u32,
    kind: (&'static str, u32),
    order: (&'static str, &'static str),
}

/// Bytes of an operand of 128 rows.
const LEFT: u32 = 4096;
/// Where the other operands start.
const RIGHT: u32 = 1 << 17;

impl Sizes {
    fn draw(d: &mut dyn Choose, warps: u32) -> Sizes {
        Sizes {
            stages: d.pick(&[1, 2, 2, 3]),
            steps: d.pick(&[1, 2]),
            tiles: d.pick(&[1, 2]),
            accumulators: d.pick(&[1, 2]),
            warps,
            each: d.chance(40),
            columns: d.pick(&[16, 32, 64]),
            kind: d.pick(&[("f16", 0x490), ("f16", 0x010)]),
            order: d.pick(&[
                ("", ""),
                (".acquire.cta", ".release.cta"),
                (".acquire.cluster", ".release.cluster"),
            ]),
        }
    }

    fn right(&self) -> u32 {
        32 * self.columns
    }

    /// The mbarriers: of stages that are full and empty, of accumulators that are full and empty.
    fn full(&self, n: u32) -> String {
        format!("r_bars+{}", 8 * (n % self.stages))
    }

    fn empty(&self, n: u32) -> String {
        format!("r_bars+{}", 8 * (self.stages + n % self.stages))
    }

    fn made(&self, tile: u32) -> String {
        format!("r_bars+{}", 8 * (2 * self.stages + tile % self.accumulators))
    }

    fn taken(&self, tile: u32) -> String {
        format!("r_bars+{}", 8 * (2 * self.stages + self.accumulators + tile % self.accumulators))
    }

    fn start(&self, k: &mut Script) {
        k.memory("slot", 4, 4);
        k.memory("left", LEFT * self.stages, 1024);
        k.memory("right", self.right() * self.stages, 1024);
        k.memory("bars", 16 * (self.stages + self.accumulators), 8);
        k.line("setp.eq.u32 p_lead, r_lane, 0;");
        for (operand, base) in [("a", "r_left"), ("b", "r_right")] {
            k.line(format!("shr.u32 r_part, {base}, 4;"));
            k.line("and.b32 r_part, r_part, 0x3fff;");
            k.line(format!("cvt.u64.u32 d_{operand}, r_part;"));
            k.line(format!("or.b64 d_{operand}, d_{operand}, 0x0000401000080000;"));
        }
        k.line(format!("mov.u32 r_shape, {};", 0x0800_0000 | self.kind.1 | self.columns >> 3 << 17));
        for n in 0..self.stages {
            k.init(&self.full(n), 1);
            k.init(&self.empty(n), 1);
        }
        for n in 0..self.accumulators {
            k.init(&self.made(n), 1);
            k.init(&self.taken(n), self.warps * if self.each { 32 } else { 1 });
        }
        k.line("@p_first fence.mbarrier_init.release.cluster;");
        k.line("setp.eq.u32 p_owner, r_warp, 0;");
        k.line(format!(
            "@p_owner tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [r_slot], {};",
            self.allocated()
        ));
        k.line("@p_owner tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
        fence(k, "before");
        k.sync();
        fence(k, "after");
        k.line("ld.shared.b32 r_acc, [r_slot];");
    }

    fn allocated(&self) -> u32 {
        (self.columns * self.accumulators).next_power_of_two().max(32)
    }

    fn producer(&self, k: &mut Script) {
        for n in 0..self.steps * self.tiles {
            let stage = n % self.stages;
            k.wait(&self.empty(n), &((n / self.stages + 1) % 2).to_string(), self.order.0);
            let at = self.full(n);
            let expect = |bytes: u32| {
                format!("mbarrier.arrive.expect_tx{}.shared::cta.b64 _, [{at}], {bytes};", self.order.1)
            };
            let (all, fewer) = (LEFT + self.right(), LEFT);
            k.weak(expect(all), &[(Mutation::Count, &expect(fewer)), (Mutation::Drop, "")]);
            for (base, bytes) in [("left", LEFT), ("right", self.right())] {
                let copy = |at: &str| {
                    format!(
                        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r_{base}+{}], [d_in+{}], {bytes}, [{at}];",
                        stage * bytes,
                        n * bytes + if base == "right" { RIGHT } else { 0 }
                    )
                };
                k.weak(copy(&at), &[(Mutation::Barrier, &copy(&self.empty(n)))]);
            }
        }
        // A CTA ends when nothing arrives any more: the last use of each stage is awaited.
        let uses = self.steps * self.tiles;
        for n in uses.max(self.stages)..uses + self.stages {
            k.wait(&self.empty(n), &((n / self.stages + 1) % 2).to_string(), self.order.0);
        }
    }

    fn issuer(&self, k: &mut Script) {
        for tile in 0..self.tiles {
            k.wait(&self.taken(tile), &((tile / self.accumulators + 1) % 2).to_string(), self.order.0);
            fence(k, "after");
            k.line(format!("add.u32 r_here, r_acc, {};", tile % self.accumulators * self.columns));
            for step in 0..self.steps {
                let n = tile * self.steps + step;
                k.wait(&self.full(n), &(n / self.stages % 2).to_string(), self.order.0);
                for (operand, bytes) in [("a", LEFT), ("b", self.right())] {
                    k.line(format!(
                        "add.u64 d_{operand}_here, d_{operand}, {};",
                        (n % self.stages * bytes) >> 4
                    ));
                }
                let on = if step > 0 { "eq" } else { "ne" };
                k.line(format!("setp.{on}.u32 p_on, r_tid, r_tid;"));
                k.line(format!(
                    "tcgen05.mma.cta_group::1.kind::{} [r_here], d_a_here, d_b_here, r_shape, p_on;",
                    self.kind.0
                ));
                self.commit(k, &self.empty(n));
            }
            self.commit(k, &self.made(tile));
        }
    }

    fn commit(&self, k: &mut Script, at: &str) {
        let text = format!("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{at}];");
        let twice = format!("{text} {text}");
        k.weak(text, &[(Mutation::Drop, ""), (Mutation::Duplicate, &twice)]);
        k.or(Weaker::Earlier);
    }

    fn epilogue(&self, k: &mut Script) {
        k.all(&["shl.b32 r_row, r_warp, 21;", "add.u32 r_row, r_row, r_acc;"]);
        k.line(format!("mad.lo.u32 r_place, r_cta, {}, r_tid;", 128 * self.tiles));
        k.line("mad.wide.u32 d_to, r_place, 8, d_out;");
        for tile in 0..self.tiles {
            k.wait(&self.made(tile), &(tile / self.accumulators % 2).to_string(), self.order.0);
            fence(k, "after");
            k.line("bar.warp.sync -1;");
            k.line(format!(
                "tcgen05.ld.sync.aligned.32x32b.x2.b32 {{r_v0, r_v1}}, [r_row+{}];",
                tile % self.accumulators * self.columns
            ));
            k.weak("tcgen05.wait::ld.sync.aligned;", &[(Mutation::Drop, "")]);
            fence(k, "before");
            if !self.each {
                k.weak("bar.warp.sync -1;", &[(Mutation::Drop, "")]);
            }
            k.arrive(if self.each { "" } else { "@p_lead " }, &self.taken(tile), self.order.1);
            k.line(format!("st.global.v2.b32 [d_to+{}], {{r_v0, r_v1}};", 1024 * tile));
        }
    }
}

fn fence(k: &mut Script, which: &str) {
    k.weak(format!("tcgen05.fence::{which}_thread_sync;"), &[(Mutation::Drop, "")]);
}

/// The product: the last two warps copy and multiply.
pub(super) fn pipeline(k: &mut Script, d: &mut dyn Choose) {
    let sizes = Sizes::draw(d, k.shape.block / 32 - 2);
    k.least = k.least.max(100);
    sizes.start(k);
    let (issuer, others, end) = (k.label(), k.label(), k.label());
    k.line(format!("setp.lt.u32 p_reader, r_warp, {};", sizes.warps));
    k.line(format!("@p_reader bra {others};"));
    k.line(format!("@!p_lead bra {end};"));
    k.line(format!("setp.ne.u32 p_issuer, r_warp, {};", sizes.warps));
    k.line(format!("@p_issuer bra {issuer};"));
    sizes.producer(k);
    k.line(format!("bra {end};"));
    k.line(format!("{issuer}:"));
    sizes.issuer(k);
    k.line(format!("bra {end};"));
    k.line(format!("{others}:"));
    sizes.epilogue(k);
    k.line(format!("{end}:"));
    k.line("bar.warp.sync -1;");
    fence(k, "before");
    k.sync();
    fence(k, "after");
    k.line(format!("@p_owner tcgen05.dealloc.cta_group::1.sync.aligned.b32 r_acc, {};", sizes.allocated()));
}
