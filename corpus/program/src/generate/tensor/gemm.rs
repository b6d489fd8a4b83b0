//! The skeleton of a warp-specialised matrix product: a producer of bulk copies, an issuer, four epilogue warps.
//!
//! A ring of stages carries the operands of each k-step: the copies complete the bytes the producer announced, a commit
//! gives the stage back. Two accumulators alternate between tiles: a commit hands one over, the epilogue's arrivals give
//! it back. All of it is deterministic but the time at which things happen, so there is one execution.

use super::protocol::{arrive, complete, frame, framed, step, wait, work};
use super::{Kind, Protocol, Role, Step};

/// Its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Stages of the ring.
    pub stages: usize,
    /// k-steps of a tile.
    pub steps: usize,
    /// Output tiles.
    pub tiles: usize,
    /// Lanes of an epilogue warp that arrive, each for itself: 1 or 32.
    pub lanes: u8,
}

/// Bytes of one operand of one stage.
const BYTES: usize = 64;
/// Columns of one accumulator.
const COLUMNS: usize = 32;
const WARPS: u16 = 4;

impl Gemm {
    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        let bytes = BYTES * self.stages;
        let total = BYTES * self.steps * self.tiles;
        let mut memory = vec![
            format!(".tmem acc[{}];", 2 * COLUMNS),
            format!(".shared .b8 a[{bytes}];"),
            format!(".shared .b8 b[{bytes}];"),
            format!(".global .b8 ga[{total}];"),
            format!(".global .b8 gb[{total}];"),
        ];
        memory.extend(self.barriers().iter().map(|(name, _)| format!(".shared .b64 {name};")));
        let mut roles = vec![self.producer(), self.issuer()];
        roles.extend((0..WARPS).map(|warp| self.epilogue(warp)));
        let name = format!(
            "gemm, {} stages, {} steps, {} tiles, {} lanes",
            self.stages, self.steps, self.tiles, self.lanes
        );
        Protocol { name, memory, roles }
    }

    /// The mbarriers with the arrivals they expect.
    fn barriers(&self) -> Vec<(String, u16)> {
        let stages = (0..self.stages).flat_map(|s| [(format!("full{s}"), 1), (format!("empty{s}"), 1)]);
        let back = WARPS * u16::from(self.lanes.max(1));
        let tiles = (0..2).flat_map(|t| [(format!("done{t}"), 1), (format!("free{t}"), back)]);
        stages.chain(tiles).collect()
    }

    fn producer(&self) -> Role {
        let mut steps: Vec<Step> = Vec::new();
        for (name, count) in self.barriers() {
            steps.push(frame(&format!("mbarrier.init.shared::cta.b64 [{name}], {count};")));
        }
        steps.push(frame("bar.sync 0;"));
        for n in 0..self.steps * self.tiles {
            let (stage, from) = (n % self.stages, BYTES * n);
            // A fresh mbarrier answers for the phase before its first: the first round waits for nothing.
            steps.push(wait(&format!("empty{stage}"), n / self.stages + 1, true));
            steps.push(work(&format!(
                "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [full{stage}], {};",
                2 * BYTES
            )));
            for name in ["a", "b"] {
                steps.push(work(&format!(
                    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [{name}+{}], [g{name}+{from}], {BYTES}, [full{stage}];",
                    BYTES * stage
                )));
            }
        }
        Role { cta: 0, warp: 0, lanes: 1, steps }
    }

    fn issuer(&self) -> Role {
        let mut steps = Vec::new();
        for n in 0..self.steps * self.tiles {
            let (tile, stage) = (n / self.steps, n % self.stages);
            if n.is_multiple_of(self.steps) {
                steps.extend([wait(&format!("free{}", tile % 2), tile / 2 + 1, false), step(Kind::After)]);
            }
            steps.push(wait(&format!("full{stage}"), n / self.stages, true));
            steps.push(work(&format!(
                "tcgen05.mma.cta_group::1.kind::f16 [acc+{}], desc(a+{at}, {BYTES}), desc(b+{at}, {BYTES}), idesc(128, {COLUMNS}), {};",
                COLUMNS * (tile % 2),
                u8::from(!n.is_multiple_of(self.steps)),
                at = BYTES * stage,
            )));
            steps.push(step(Kind::Commit(format!("empty{stage}"))));
            if (n + 1).is_multiple_of(self.steps) {
                steps.push(step(Kind::Commit(format!("done{}", tile % 2))));
            }
        }
        Role { cta: 0, warp: 1, lanes: 1, steps: framed(steps) }
    }

    fn epilogue(&self, warp: u16) -> Role {
        let mut steps = Vec::new();
        for tile in 0..self.tiles {
            let accumulator = COLUMNS * (tile % 2);
            steps.extend([wait(&format!("done{}", tile % 2), tile / 2, false), step(Kind::After)]);
            steps.push(work(&format!(
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{r0}}, [acc+lane {}+{accumulator}];",
                32 * warp
            )));
            steps.extend([complete("ld"), step(Kind::Before), arrive(&format!("free{}", tile % 2), false)]);
        }
        Role { cta: 0, warp: 4 + warp, lanes: self.lanes.max(1), steps: framed(steps) }
    }
}
