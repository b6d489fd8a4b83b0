//! Random programs, valid by construction, under [`Knobs`].
//!
//! Contract: every byte string gives a program or `arbitrary`'s out-of-data error, never a panic. No finished program is
//! repaired or filtered out. Instruction forms follow the PTX ISA 9.2, sections 9.7.9 and 9.7.13.

use arbitrary::{Result, Unstructured};

use super::build::{Builder, at};
use super::config::{Knobs, Spread};
use super::steps::Deed;
use moire_program::features::Load;
use moire_program::ir::{Placement, Program, Space, SymbolId, ThreadId};

/// One program drawn from `u`.
pub fn program(u: &mut Unstructured<'_>, knobs: &Knobs) -> Result<Program> {
    let mut draft = Draft::new(u, knobs)?;
    draft.plan_barriers(u)?;
    // Threads take turns. Otherwise the first one could use up the budget of candidates.
    for round in 0..knobs.steps_max.max(2) {
        for thread in 0..draft.threads.len() {
            if round < 2 || u.ratio(3u8, 4u8)? {
                draft.step(u, thread, round)?;
            }
        }
    }
    draft.finish(u)
}

/// A location that threads may access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub(super) symbol: SymbolId,
    pub(super) space: Space,
    /// Value of the next constant store. Each store gets its own, which distinguishes stores.
    pub(super) next_value: i128,
}

/// The state of a thread under construction.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) id: ThreadId,
    pub(super) place: Placement,
    /// Registers that hold a value read from memory.
    pub(super) loaded: Vec<moire_program::ir::Reg>,
    /// Location of the latest access, to spread accesses over locations.
    pub(super) last: Option<usize>,
    /// Barrier instructions still to be placed, in order.
    pub(super) barriers: Vec<moire_program::ir::Op>,
}

pub(super) struct Draft<'k> {
    pub(super) knobs: &'k Knobs,
    pub(super) build: Builder,
    pub(super) locations: Vec<Location>,
    pub(super) threads: Vec<Column>,
    /// Reads and writes so far, per location.
    pub(super) load: Vec<Load>,
}

impl<'k> Draft<'k> {
    fn new(u: &mut Unstructured<'_>, knobs: &'k Knobs) -> Result<Self> {
        let mut build = Builder::new("random");
        let count =
            u.int_in_range(knobs.threads.0.max(1)..=knobs.threads.1.clamp(knobs.threads.0.max(1), 8))?;
        let mut threads = Vec::new();
        for n in 0..u16::from(count) {
            let place = place(u, knobs, n)?;
            let id = build.thread(place);
            threads.push(Column { id, place, loaded: Vec::new(), last: None, barriers: Vec::new() });
        }
        let shares =
            threads.iter().enumerate().any(|(i, a)| threads[..i].iter().any(|b| a.place.same_cta(&b.place)));
        let most = knobs.locations_max.max(1);
        let wanted = u.int_in_range(most.min(2)..=most)?;
        let mut locations = Vec::new();
        for n in 0..wanted {
            let shared = n > 0 && shares && percent(u, knobs.shared_percent)?;
            let space = if shared { Space::SharedCta } else { Space::Global };
            let symbol = build.object(space, object_bytes(knobs));
            locations.push(Location { symbol, space, next_value: 1 });
        }
        let load = vec![Load::default(); locations.len()];
        Ok(Draft { knobs, build, locations, threads, load })
    }

    /// Adds one step to a thread, perhaps after a planned barrier.
    fn step(&mut self, u: &mut Unstructured<'_>, thread: usize, round: u8) -> Result<()> {
        if !self.threads[thread].barriers.is_empty() && u.ratio(1u8, 3u8)? {
            let op = self.threads[thread].barriers.remove(0);
            self.build.push(self.threads[thread].id, op);
        }
        // Threads that first read and then write can form load-buffering cycles.
        let step = match round {
            0 if u.ratio(1u8, 3u8)? => Deed::Load,
            1 if u.ratio(1u8, 3u8)? => Deed::Store,
            _ => Deed::draw(u, self.knobs)?,
        };
        self.emit(u, thread, step)
    }

    /// Appends the barriers that are not placed yet and returns the program.
    fn finish(mut self, _u: &mut Unstructured<'_>) -> Result<Program> {
        for thread in 0..self.threads.len() {
            for op in std::mem::take(&mut self.threads[thread].barriers) {
                self.build.push(self.threads[thread].id, op);
            }
        }
        Ok(self.build.finish())
    }

    /// Chooses a location for the next access of `thread` within the budget of candidates, and counts the access there.
    pub(super) fn location(
        &mut self,
        u: &mut Unstructured<'_>,
        thread: usize,
        extra: Load,
    ) -> Result<Option<usize>> {
        let host = self.threads[thread].place.host;
        let mut open: Vec<usize> = (0..self.locations.len())
            .filter(|&l| !(host && self.locations[l].space == Space::SharedCta))
            .filter(|&l| self.estimate_with(l, extra) <= self.knobs.candidates_max)
            .collect();
        if open.is_empty() {
            return Ok(None);
        }
        // Two consecutive accesses to one location test little; usually choose another.
        if open.len() > 1 && u.ratio(3u8, 4u8)? {
            let last = self.threads[thread].last;
            open.retain(|&l| Some(l) != last);
        }
        let location = *u.choose(&open)?;
        self.threads[thread].last = Some(location);
        self.load[location] = self.load[location].plus(extra);
        Ok(Some(location))
    }

    fn estimate_with(&self, location: usize, extra: Load) -> u128 {
        let each = self.load.iter().enumerate();
        let terms = each
            .map(|(l, load)| if l == location { load.plus(extra).candidates() } else { load.candidates() });
        terms.fold(1, u128::saturating_mul)
    }

    /// Offset in bytes of a word access in its object.
    pub(super) fn word_offset(&self, u: &mut Unstructured<'_>) -> Result<i32> {
        if self.knobs.vectors && u.ratio(1u8, 3u8)? { Ok(if self.knobs.wide { 8 } else { 4 }) } else { Ok(0) }
    }

    /// The plain address of a location.
    pub(super) fn address(&self, location: usize, offset: i32) -> moire_program::ir::Address {
        at(self.locations[location].symbol, offset)
    }
}

/// True with a probability of `p` percent.
pub(super) fn percent(u: &mut Unstructured<'_>, p: u8) -> Result<bool> {
    if p == 0 { Ok(false) } else { Ok(u.int_in_range(0u8..=99)? < p) }
}

fn object_bytes(knobs: &Knobs) -> u32 {
    let word = if knobs.wide || knobs.mixed_sizes { 8 } else { 4 };
    if knobs.vectors { 2 * word } else { word }
}

fn place(u: &mut Unstructured<'_>, knobs: &Knobs, n: u16) -> Result<Placement> {
    if percent(u, knobs.host_percent)? {
        return Ok(Placement { host: true, ..Placement::default() });
    }
    let zero = Placement::default();
    Ok(match knobs.spread {
        Spread::SameCta => Placement { warp: n, ..zero },
        Spread::SameCluster => Placement { cta: n, ..zero },
        Spread::SameGpu => Placement { cluster: n, cta: n, ..zero },
        Spread::OtherGpu => Placement { gpu: n, ..zero },
        Spread::Any => {
            let gpu = u16::from(u.ratio(1u8, 5u8)?);
            let cluster = u16::from(u.ratio(1u8, 3u8)?);
            let cta = cluster * 2 + u.int_in_range(0..=1u16)?;
            Placement { gpu, cluster, cta, warp: n, ..zero }
        }
    })
}
