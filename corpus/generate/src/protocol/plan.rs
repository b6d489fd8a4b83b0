//! Protocols in one CTA that combine the documented patterns, and their steps.
//!
//! An issuer multiplies tile by tile, step by step. Its operands come through a ring of stages, or through tensor memory.
//! A producer fills the ring by generic writes and a proxy fence, or by bulk copies that complete the bytes it expects.
//! Operands in tensor memory are copied by the issuer itself (pattern 1), copied by another warp (pattern 3), or stored
//! by another warp (pattern 4). A commit hands each tile to the epilogue (pattern 4), perhaps through a relay. A tile
//! after the first waits until the epilogue has loaded the previous one (pattern 4, write after read).

use super::{Act, Kind, Protocol, Role, RoleStep};
use arbitrary::Unstructured;

/// The source of the first factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feed {
    /// A ring of stages in shared memory, written by the producer.
    Ring,
    /// A ring filled by bulk copies; the producer's arrival expects their bytes.
    Bulk,
    /// A ring filled by bulk copies; their bytes are expected before the copy, and the producer arrives after it.
    Announced,
    /// Copies into tensor memory by the issuer.
    OwnCopy,
    /// A copy into tensor memory by another warp.
    Copy,
    /// A store into tensor memory by another warp.
    Store,
}

/// The choices of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Plan {
    /// Source of the first factor.
    pub feed: Feed,
    /// Stages of the ring.
    pub stages: usize,
    /// Products of a tile.
    pub steps: usize,
    /// Tiles.
    pub tiles: usize,
    /// Epilogue warps.
    pub epilogues: u16,
    /// Lanes of an epilogue warp, each of which arrives: 1 or 32.
    pub lanes: u8,
    /// Whether a warp waits for the commit and passes it on to the epilogue.
    pub relay: bool,
}

impl Feed {
    /// Whether operands come through stages in shared memory.
    pub fn ring(self) -> bool {
        matches!(self, Feed::Ring | Feed::Bulk | Feed::Announced)
    }
}

/// Columns of the accumulator. The first factors follow them.
const OPERAND: usize = 32;
/// Columns of one first factor.
const FACTOR: usize = 8;
/// Bytes of one stage of the ring.
const STAGE: usize = 32;
/// Both CTAs of a pair, as a mask.
const BOTH: u16 = 3;

impl Plan {
    /// Draws the choices.
    pub fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Plan> {
        let feed = *u.choose(&[
            Feed::Ring,
            Feed::Ring,
            Feed::Bulk,
            Feed::Bulk,
            Feed::Announced,
            Feed::OwnCopy,
            Feed::Copy,
            Feed::Store,
        ])?;
        let ring = feed.ring();
        Ok(Plan {
            feed,
            stages: if ring { u.int_in_range(1..=2)? } else { 1 },
            steps: u.int_in_range(1..=if ring { 3 } else { 2 })?,
            tiles: if ring { u.int_in_range(1..=2)? } else { 1 },
            epilogues: u.int_in_range(1..=2)?,
            lanes: if u.ratio(1, 4)? { 32 } else { 1 },
            relay: u.ratio(1, 4)?,
        })
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        let mut roles = vec![self.issuer()];
        roles.extend(self.feeder());
        if self.relay {
            let steps = (0..self.tiles).flat_map(|tile| [wait("done", tile, false), arrive("passed", false)]);
            roles.push(Role { cta: 0, warp: 6, lanes: 1, steps: framed(steps) });
        }
        roles.extend((0..self.epilogues).map(|warp| self.epilogue(warp)));
        let mut memory = vec![".tmem t[64];".to_owned(), ".shared .b8 b[64];".to_owned()];
        match self.feed {
            Feed::Ring => memory.extend((0..self.stages).map(|s| format!(".shared .b32 a{s}[8];"))),
            Feed::Bulk | Feed::Announced => {
                memory.push(format!(".global .b8 g[{}];", STAGE * self.uses()));
                memory.extend((0..self.stages).map(|s| format!(".shared .b8 a{s}[{STAGE}];")));
            }
            Feed::OwnCopy | Feed::Copy => memory.push(".shared .b8 a[64];".to_owned()),
            Feed::Store => {}
        }
        memory.extend(self.barriers().iter().map(|(name, _)| format!(".shared .b64 {name};")));
        Protocol { name: self.name(), memory, roles }
    }

    fn name(&self) -> String {
        let relay = if self.relay { ", relay" } else { "" };
        let lanes = if self.lanes > 1 { ", each lane" } else { "" };
        format!(
            "{:?}, {} stages, {} steps, {} tiles, {} epilogues{lanes}{relay}",
            self.feed, self.stages, self.steps, self.tiles, self.epilogues
        )
    }

    /// Uses of the ring in all tiles.
    fn uses(&self) -> usize {
        self.steps * self.tiles
    }

    /// The mbarriers and the number of arrivals each expects.
    fn barriers(&self) -> Vec<(String, u16)> {
        let mut out = vec![("done".to_owned(), 1)];
        if self.relay {
            out.push(("passed".to_owned(), 1));
        }
        if self.tiles > 1 {
            out.push(("free".to_owned(), self.epilogues * u16::from(self.lanes.max(1))));
        }
        match self.feed {
            Feed::Ring | Feed::Bulk | Feed::Announced => {
                out.extend((0..self.stages.min(self.uses())).map(|s| (format!("full{s}"), 1)));
                let again = self.uses().saturating_sub(self.stages).min(self.stages);
                out.extend((0..again).map(|s| (format!("empty{s}"), 1)));
            }
            Feed::Copy | Feed::Store => out.push(("ready".to_owned(), 1)),
            Feed::OwnCopy => {}
        }
        out
    }

    fn issuer(&self) -> Role {
        let mut steps: Vec<RoleStep> = Vec::new();
        for (name, count) in self.barriers() {
            steps.push(step(Kind::Init { at: name, count }));
        }
        steps.push(sync());
        if matches!(self.feed, Feed::Copy | Feed::Store) {
            steps.extend([wait("ready", 0, false), step(Kind::After)]);
        }
        for tile in 0..self.tiles {
            if tile > 0 {
                steps.extend([wait("free", tile - 1, false), step(Kind::After)]);
            }
            for k in 0..self.steps {
                self.product(&mut steps, tile * self.steps + k);
            }
            steps.push(commit("done"));
        }
        Role { cta: 0, warp: 5, lanes: 1, steps }
    }

    /// Adds the `n`-th product, with the wait for its operands and the commit that frees their stage.
    fn product(&self, steps: &mut Vec<RoleStep>, n: usize) {
        let column = OPERAND + FACTOR * (n % 4);
        let factor = match self.feed {
            Feed::Ring | Feed::Bulk | Feed::Announced => {
                let stage = n % self.stages;
                steps.push(wait(&format!("full{stage}"), n / self.stages, true));
                format!("desc(a{stage}, 32)")
            }
            Feed::OwnCopy => {
                steps.push(work(&format!("tcgen05.cp.cta_group::1.128x256b [t+{column}], desc(a, 64);")));
                format!("[t+{column}]")
            }
            Feed::Copy | Feed::Store => format!("[t+{OPERAND}]"),
        };
        let input = u8::from(!n.is_multiple_of(self.steps));
        steps.push(work(&format!(
            "tcgen05.mma.cta_group::1.kind::f16 [t], {factor}, desc(b, 32), idesc(128, 16), {input};"
        )));
        if self.feed.ring() && n + self.stages < self.uses() {
            steps.push(commit(&format!("empty{}", n % self.stages)));
        }
    }

    fn feeder(&self) -> Option<Role> {
        let steps = match self.feed {
            Feed::OwnCopy => return None,
            Feed::Ring | Feed::Bulk | Feed::Announced => {
                let mut steps = Vec::new();
                for n in 0..self.uses() {
                    let stage = n % self.stages;
                    if n >= self.stages {
                        steps.push(wait(&format!("empty{stage}"), n / self.stages - 1, true));
                    }
                    self.fill(&mut steps, n);
                }
                steps
            }
            Feed::Copy => vec![
                work(&format!("tcgen05.cp.cta_group::1.128x256b [t+{OPERAND}], desc(a, 64);")),
                step(Kind::Before),
                arrive("ready", false),
            ],
            Feed::Store => vec![
                work(&format!(
                    "tcgen05.st.sync.aligned.32x32b.x8.b32 [t+{OPERAND}], {{r0, r1, r2, r3, r4, r5, r6, r7}};"
                )),
                complete("st"),
                step(Kind::Before),
                arrive("ready", false),
            ],
        };
        Some(Role { cta: 0, warp: 4, lanes: 1, steps: framed(steps) })
    }

    /// Adds the steps that fill a stage for the `n`-th product.
    fn fill(&self, steps: &mut Vec<RoleStep>, n: usize) {
        let stage = n % self.stages;
        let at = format!("full{stage}");
        if self.feed == Feed::Ring {
            steps.push(work(&format!("st.weak.shared::cta.b32 [a{stage}], {};", n + 1)));
            steps.extend([step(Kind::ProxyFence), arrive(&at, true)]);
            return;
        }
        let arrives = self.feed == Feed::Bulk;
        steps.push(step(Kind::Expect { at: at.clone(), bytes: STAGE, arrives }));
        let text = format!(
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a{stage}], [g+{}], {STAGE}",
            STAGE * n
        );
        steps.push(RoleStep { kind: Kind::Copy { at: at.clone(), cta: None }, text });
        if !arrives {
            steps.push(arrive(&at, true));
        }
    }

    fn epilogue(&self, warp: u16) -> Role {
        let mut steps = Vec::new();
        for tile in 0..self.tiles {
            steps.push(wait(if self.relay { "passed" } else { "done" }, tile, false));
            steps.push(step(Kind::After));
            let lanes = if warp == 0 { String::new() } else { format!("+lane {}", 32 * warp) };
            steps.push(work(&format!("tcgen05.ld.sync.aligned.32x32b.x1.b32 {{r0}}, [t{lanes}];")));
            steps.push(complete("ld"));
            if tile + 1 < self.tiles {
                steps.extend([step(Kind::Before), arrive("free", false)]);
            }
        }
        Role { cta: 0, warp, lanes: self.lanes.max(1), steps: framed(steps) }
    }
}

pub(super) fn step(kind: Kind) -> RoleStep {
    RoleStep { kind, text: String::new() }
}

pub(super) fn work(text: &str) -> RoleStep {
    RoleStep { kind: Kind::Work, text: text.to_owned() }
}

pub(super) fn complete(what: &str) -> RoleStep {
    RoleStep { kind: Kind::Complete, text: format!("tcgen05.wait::{what}.sync.aligned;") }
}

/// A barrier of the CTA.
pub(super) fn sync() -> RoleStep {
    RoleStep { kind: Kind::Sync, text: "bar.sync 0;".to_owned() }
}

/// A barrier of the cluster, with the given order of its arrival.
pub(super) fn meet(order: &str) -> RoleStep {
    let text = format!("barrier.cluster.arrive.{order};\n  barrier.cluster.wait.acquire;");
    RoleStep { kind: Kind::Sync, text }
}

/// A step about columns; `place` is the operand with their address.
pub(super) fn columns(act: Act, pair: bool, columns: usize, place: &str) -> RoleStep {
    RoleStep { kind: Kind::Columns { act, pair, columns }, text: place.to_owned() }
}

pub(super) fn commit(at: &str) -> RoleStep {
    commit_of(at, false)
}

/// A commit of one CTA, or of a pair with an arrival in both CTAs.
pub(super) fn commit_of(at: &str, pair: bool) -> RoleStep {
    step(Kind::Commit { at: at.to_owned(), pair: pair.then_some(BOTH) })
}

pub(super) fn arrive(at: &str, release: bool) -> RoleStep {
    step(Kind::Arrive { at: at.to_owned(), release, wide: false, cta: None })
}

/// A wait for the phase with this number.
pub(super) fn wait(at: &str, phase: usize, acquire: bool) -> RoleStep {
    step(Kind::Wait { at: at.to_owned(), parity: u8::from(phase % 2 == 1), acquire, wide: false })
}

/// `steps` after the barrier that ends the initialisation.
pub(super) fn framed(steps: impl IntoIterator<Item = RoleStep>) -> Vec<RoleStep> {
    std::iter::once(sync()).chain(steps).collect()
}
