//! Rounds in which columns of tensor memory are allocated, used and deallocated, in one CTA or by a pair.
//!
//! The first warp of a CTA, the keeper, allocates the columns and publishes their address with a barrier. The warps of
//! its CTA store and load there, or load the result of a product. After another barrier the keeper deallocates the
//! columns. In the last round it relinquishes the right to allocate more, directly after the allocation. In a pair both
//! CTAs allocate and deallocate on the same side of a cluster barrier, as the documents demand for a safe exit. In one
//! CTA a rival warp may want all columns too. Then one of them waits for the other, and each order of the two
//! allocations is an execution.

use super::plan::{columns, commit_of, complete, meet, step, sync, wait, work};
use super::{Act, Kind, Protocol, Role, RoleStep};
use arbitrary::Unstructured;

/// The choices of a protocol about columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Columns {
    /// Two CTAs.
    pub pair: bool,
    /// Warps of a CTA that use the columns, at most 4; the first is the keeper.
    pub warps: u16,
    /// How often columns are allocated.
    pub rounds: usize,
    /// Warps load a product that the first keeper issued, instead of their own stores.
    pub product: bool,
    /// Another warp of the CTA allocates all columns too; never in a pair or with products.
    pub rival: bool,
}

/// All columns of a CTA.
const ALL: usize = 512;
/// Columns allocated if there is no rival.
const SOME: usize = 64;
/// Lanes of a whole warp.
const WARP: u8 = 32;
/// The warp of the rival.
const RIVAL: u16 = 4;

impl Columns {
    /// Draws the choices.
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
                // After a warp relinquishes, no warp of its CTA may allocate; the rival still has to.
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

    /// Lanes of a role: a whole warp if a barrier counts its threads.
    fn lanes(&self) -> u8 {
        if self.rival { WARP } else { 1 }
    }

    /// A barrier of the warps of a CTA that use the columns, without the rival.
    fn sync(&self) -> RoleStep {
        if self.rival {
            RoleStep { kind: Kind::Sync, text: format!("bar.sync 0, {};", u16::from(WARP) * self.warps) }
        } else {
            sync()
        }
    }

    /// Adds one warp's uses of the columns in one round.
    fn round(&self, steps: &mut Vec<RoleStep>, (cta, warp): (u16, u16), round: usize) {
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
