//! The skeleton of a warp-specialised matrix product: a producer of bulk tensor copies, an issuer, epilogue warps; in one
//! CTA, or in a pair of CTAs that multiply together.
//!
//! A ring of stages carries the operands of each k-step. The copies complete the bytes that the producer expects, and a
//! commit frees the stage. Two accumulators alternate between tiles: a commit hands one to the epilogue, whose arrivals
//! free it. In a pair each CTA copies its half and reports to the leader, whose issuer multiplies for both. Commits
//! arrive in both CTAs, and both epilogues arrive at the leader. Before a CTA of a pair ends, its producer waits for the
//! last arrival at each stage, as compiled kernels do. Only timing varies, so there is one execution. A pair has two,
//! because the documents do not say whether deallocating columns, or relinquishing the right to allocate, waits for the
//! other CTA.

use super::plan::{columns, commit_of, complete, meet, step, sync, wait, work};
use super::{Act, Kind, Protocol, Role, RoleStep};
use arbitrary::Unstructured;

/// The sizes of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gemm {
    /// Two CTAs.
    pub pair: bool,
    /// Stages of the ring.
    pub stages: usize,
    /// k-steps of a tile.
    pub steps: usize,
    /// Output tiles.
    pub tiles: usize,
    /// Epilogue warps of a CTA, at most 4.
    pub warps: u16,
    /// Lanes of an epilogue warp, each of which arrives: 1 or 32.
    pub lanes: u8,
}

/// Bytes of one operand of one stage in one CTA.
const BYTES: usize = 64;
/// Columns of one accumulator.
const COLUMNS: usize = 32;
/// Loads the address of the accumulators.
const ADDRESS: &str = "ld.weak.shared::cta.u32 r0, [slot];";
/// The CTA that multiplies for both.
const LEADER: u16 = 0;

impl Gemm {
    /// The usual size: a ring of three stages, four k-steps, four epilogue warps.
    pub fn usual(pair: bool, tiles: usize, lanes: u8) -> Gemm {
        Gemm { pair, stages: 3, steps: 4, tiles, warps: 4, lanes }
    }

    /// Draws a small product.
    pub fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Gemm> {
        Ok(Gemm {
            pair: u.arbitrary()?,
            stages: u.int_in_range(1..=3)?,
            steps: u.int_in_range(1..=3)?,
            tiles: u.int_in_range(1..=3)?,
            warps: u.int_in_range(1..=2)?,
            lanes: if u.ratio(1, 4)? { 32 } else { 1 },
        })
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        let bytes = BYTES * self.stages;
        let total = BYTES * self.uses() * usize::from(self.ctas());
        let mut memory: Vec<String> = self.pair.then(|| ".launch;".to_owned()).into_iter().collect();
        memory.extend([
            ".shared .b32 slot;".to_owned(),
            format!(".shared .b8 a[{bytes}];"),
            format!(".shared .b8 b[{bytes}];"),
            format!(".global .b8 ga[{total}];"),
            format!(".global .b8 gb[{total}];"),
        ]);
        memory.extend(self.barriers().iter().map(|(name, _)| format!(".shared .b64 {name};")));
        let mut roles = Vec::new();
        for cta in 0..self.ctas() {
            roles.extend([self.producer(cta), self.issuer(cta)]);
            roles.extend((0..self.warps).map(|warp| self.epilogue(cta, warp)));
        }
        let of = if self.pair { "gemm of a pair" } else { "gemm" };
        let name = format!(
            "{of}, {} stages, {} steps, {} tiles, {} warps, {} lanes",
            self.stages, self.steps, self.tiles, self.warps, self.lanes
        );
        Protocol { name, memory, roles }
    }

    fn ctas(&self) -> u16 {
        if self.pair { 2 } else { 1 }
    }

    /// k-steps of all tiles.
    fn uses(&self) -> usize {
        self.steps * self.tiles
    }

    /// The mbarriers and the number of arrivals each expects.
    fn barriers(&self) -> Vec<(String, u16)> {
        let stages = self.stages.min(self.uses());
        let stages = (0..stages).flat_map(|s| [(format!("full{s}"), 1), (format!("empty{s}"), 1)]);
        let back = self.warps * u16::from(self.lanes.max(1)) * self.ctas();
        let tiles =
            (0..self.tiles.min(2)).flat_map(|t| [(format!("done{t}"), 1), (format!("free{t}"), back)]);
        stages.chain(tiles).collect()
    }

    /// A barrier of all warps that work together: of the cluster, with the given order of its arrival, or of the CTA.
    fn meet(&self, order: &str) -> RoleStep {
        if self.pair { meet(order) } else { sync() }
    }

    /// The first steps of every warp: in a pair, wait until both CTAs have started and initialised their mbarriers.
    fn start(&self) -> Vec<RoleStep> {
        self.pair.then(|| self.meet("relaxed")).into_iter().collect()
    }

    fn end(&self) -> RoleStep {
        self.meet("release")
    }

    fn columns(&self, act: Act, place: &str) -> RoleStep {
        columns(act, self.pair, COLUMNS * self.tiles.min(2), place)
    }

    fn commit(&self, at: &str) -> RoleStep {
        commit_of(at, self.pair)
    }

    fn producer(&self, cta: u16) -> Role {
        let mut steps: Vec<RoleStep> =
            self.barriers().into_iter().map(|(at, count)| step(Kind::Init { at, count })).collect();
        if self.pair {
            steps.push(step(Kind::InitFence));
        }
        steps.extend(self.start());
        steps.push(sync());
        for n in 0..self.uses() {
            let stage = n % self.stages;
            // The phase before the first counts as complete, so the first round does not wait.
            steps.push(wait(&format!("empty{stage}"), n / self.stages + 1, true));
            let at = format!("full{stage}");
            if cta == LEADER {
                let bytes = 2 * BYTES * usize::from(self.ctas());
                steps.push(step(Kind::Expect { at: at.clone(), bytes, arrives: true }));
            }
            steps.extend(["a", "b"].map(|name| self.copy(name, n, cta)));
        }
        let first = self.uses().saturating_sub(self.stages);
        for n in first..if self.pair { self.uses() } else { first } {
            steps.push(wait(&format!("empty{}", n % self.stages), n / self.stages, true));
        }
        steps.push(self.end());
        Role { cta, warp: 0, lanes: 1, steps }
    }

    /// The copy of one operand for one k-step into one CTA.
    fn copy(&self, name: &str, n: usize, cta: u16) -> RoleStep {
        let stage = n % self.stages;
        let tile = n * usize::from(self.ctas()) + usize::from(cta);
        let (space, group) = if self.pair { ("cluster", ".cta_group::2") } else { ("cta", "") };
        let text = format!(
            "cp.async.bulk.tensor.1d.shared::{space}.global.tile.mbarrier::complete_tx::bytes{group} [{name}+{}], [tile(g{name}+{}, {BYTES}), {{{tile}}}]",
            BYTES * stage,
            BYTES * tile
        );
        RoleStep {
            kind: Kind::Copy { at: format!("full{stage}"), cta: (cta != LEADER).then_some(LEADER) },
            text,
        }
    }

    fn issuer(&self, cta: u16) -> Role {
        let mut steps = self.start();
        steps.extend([self.columns(Act::Take, "[slot]"), self.columns(Act::Relinquish, "")]);
        steps.extend([sync(), work(ADDRESS)]);
        for n in 0..if cta == LEADER { self.uses() } else { 0 } {
            let (tile, stage) = (n / self.steps, n % self.stages);
            if n.is_multiple_of(self.steps) {
                let at = format!("free{}", tile % 2);
                let (parity, wide) = (u8::from((tile / 2 + 1) % 2 == 1), self.pair);
                let wait = step(Kind::Wait { at, parity, acquire: false, wide });
                steps.extend([wait, step(Kind::After)]);
            }
            steps.push(wait(&format!("full{stage}"), n / self.stages, true));
            steps.push(work(&format!(
                "tcgen05.mma.cta_group::{}.kind::f16 [r0+{}], desc(a+{at}, {BYTES}), desc(b+{at}, {BYTES}), idesc({}, {COLUMNS}), {};",
                self.ctas(),
                COLUMNS * (tile % 2),
                128 * self.ctas(),
                u8::from(!n.is_multiple_of(self.steps)),
                at = BYTES * stage,
            )));
            steps.push(self.commit(&format!("empty{stage}")));
            if (n + 1).is_multiple_of(self.steps) {
                steps.push(self.commit(&format!("done{}", tile % 2)));
            }
        }
        steps.extend([self.end(), self.columns(Act::Give, "r0")]);
        Role { cta, warp: 1, lanes: 1, steps }
    }

    fn epilogue(&self, cta: u16, warp: u16) -> Role {
        let mut steps = self.start();
        steps.extend([sync(), work(ADDRESS)]);
        for tile in 0..self.tiles {
            let at = usize::from(32 * warp) * 65_536 + COLUMNS * (tile % 2);
            steps.extend([wait(&format!("done{}", tile % 2), tile / 2, false), step(Kind::After)]);
            steps.push(work(&format!("tcgen05.ld.sync.aligned.32x32b.x1.b32 {{r1}}, [r0+{at}];")));
            steps.extend([complete("ld"), step(Kind::Before)]);
            steps.push(step(Kind::Arrive {
                at: format!("free{}", tile % 2),
                release: false,
                wide: self.pair,
                cta: (cta != LEADER).then_some(LEADER),
            }));
        }
        steps.push(self.end());
        Role { cta, warp: 4 + warp, lanes: self.lanes.max(1), steps }
    }
}
