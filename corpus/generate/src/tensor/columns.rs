//! Columns of tensor memory taken, used and given back, in rounds; in one CTA or by a pair.
//!
//! A keeper takes the columns and publishes their address behind a barrier; the warps of its CTA store and load there, or
//! load what a product left there; behind another barrier the keeper gives the columns back, and in the last round the
//! right to take more before that. In a pair both CTAs take and give on the same side of a barrier of the cluster, as the
//! documents have it for a safe exit. In one CTA a rival may want all columns too, so that one waits for the other: each
//! order in which they are granted is an execution.

use super::protocol::{columns, commit_of, complete, meet, step, sync, wait, work};
use super::{Act, Kind, Protocol, Role, Step};
use arbitrary::Unstructured;

/// Its choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Columns {
    /// Two CTAs.
    pub pair: bool,
    /// Warps of a CTA that use the columns, at most 4; the first is the keeper.
    pub warps: u16,
    /// How often columns are taken.
    pub rounds: usize,
    /// What is loaded is the product of the first keeper instead of the warp's own store.
    pub product: bool,
    /// Another warp of the CTA takes all columns too; never in a pair or with products.
    pub rival: bool,
}

/// All columns there are.
const ALL: usize = 512;
/// Columns taken where there is no rival.
const SOME: usize = 64;
/// Lanes of a whole warp.
const WARP: u8 = 32;
/// The warp of the rival.
const RIVAL: u16 = 4;

impl Columns {
    /// Draws one.
    pub fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Columns> {
        let pair: bool = u.arbitrary()?;
        let rival = !pair && u.ratio(1, 3)?;
        Ok(Columns {
            pair,
            warps: u.int_in_range(1..=2)?,
            rounds: u.int_in_range(1..=2)?,
            product: u.arbitrary::<bool>()? && !rival,
            rival,
        })
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        let mut memory: Vec<String> = self.pair.then(|| ".launch;".to_owned()).into_iter().collect();
        memory.extend((0..self.rounds).map(|round| format!(".shared .b32 slot{round};")));
        if self.rival {
            memory.push(".shared .b32 slot;".to_owned());
        }
        if self.product {
            memory.extend([".shared .b8 a[64];".to_owned(), ".shared .b64 done;".to_owned()]);
        }
        let ctas = if self.pair { 2 } else { 1 };
        let places = (0..ctas).flat_map(|cta| (0..self.warps).map(move |warp| (cta, warp)));
        let mut roles: Vec<Role> = places.map(|(cta, warp)| self.user(cta, warp)).collect();
        if self.rival {
            roles.push(Self::the_rival());
        }
        Protocol { name: self.name(), memory, roles }
    }

    fn name(&self) -> String {
        let of = if self.pair { "columns of a pair" } else { "columns" };
        let product = if self.product { ", product" } else { "" };
        let rival = if self.rival { ", rival" } else { "" };
        format!("{of}, {} warps, {} rounds{product}{rival}", self.warps, self.rounds)
    }

    fn wanted(&self) -> usize {
        if self.rival { ALL } else { SOME }
    }

    fn user(&self, cta: u16, warp: u16) -> Role {
        let keeper = warp == 0;
        let mut steps = Vec::new();
        if keeper && self.product {
            steps.push(step(Kind::Init { at: "done".to_owned(), count: 1 }));
            steps.extend(self.pair.then(|| step(Kind::InitFence)));
        }
        if self.pair {
            steps.push(meet("relaxed"));
        }
        for round in 0..self.rounds {
            let slot = format!("[slot{round}]");
            if keeper {
                steps.push(columns(Act::Take, self.pair, self.wanted(), &slot));
                // Who gave the right up may not take columns again, and a rival would want to.
                if round + 1 == self.rounds && !self.rival {
                    steps.push(columns(Act::Relinquish, self.pair, 0, ""));
                }
            }
            steps.extend([self.sync(), work(&format!("ld.weak.shared::cta.u32 r0, {slot};"))]);
            self.round(&mut steps, (cta, warp), round);
            steps.push(step(Kind::Before));
            steps.push(if self.pair { meet("release") } else { self.sync() });
            if keeper {
                steps.push(columns(Act::Give, self.pair, self.wanted(), "r0"));
            }
        }
        Role { cta, warp, lanes: self.lanes(), steps }
    }

    /// Whole warps where a barrier counts its threads.
    fn lanes(&self) -> u8 {
        if self.rival { WARP } else { 1 }
    }

    /// A barrier of the warps of a CTA that use the columns; a rival has no part in it.
    fn sync(&self) -> Step {
        if self.rival {
            Step { kind: Kind::Sync, text: format!("bar.sync 0, {};", u16::from(WARP) * self.warps) }
        } else {
            sync()
        }
    }

    /// What one warp does with the columns of a round.
    fn round(&self, steps: &mut Vec<Step>, (cta, warp): (u16, u16), round: usize) {
        let lanes = usize::from(32 * warp) * 65_536;
        if self.product {
            if (cta, warp) == (0, 0) {
                let (group, rows) = if self.pair { (2, 256) } else { (1, 128) };
                steps.push(work(&format!(
                    "tcgen05.mma.cta_group::{group}.kind::f16 [r0], desc(a, 32), desc(a+32, 32), idesc({rows}, 16), 0;"
                )));
                steps.push(commit_of("done", self.pair));
            }
            steps.extend([wait("done", round, false), step(Kind::After)]);
        } else {
            steps.push(work(&format!("tcgen05.st.sync.aligned.32x32b.x1.b32 [r0+{lanes}], {{r1}};")));
            steps.push(complete("st"));
        }
        steps.push(work(&format!("tcgen05.ld.sync.aligned.32x32b.x1.b32 {{r1}}, [r0+{lanes}];")));
        steps.push(complete("ld"));
    }

    fn the_rival() -> Role {
        let mut steps = vec![columns(Act::Take, false, ALL, "[slot]")];
        steps.push(work("ld.weak.shared::cta.u32 r0, [slot];"));
        steps.push(work("tcgen05.st.sync.aligned.32x32b.x1.b32 [r0], {r1};"));
        steps.push(complete("st"));
        steps.push(columns(Act::Give, false, ALL, "r0"));
        Role { cta: 0, warp: RIVAL, lanes: WARP, steps }
    }
}
