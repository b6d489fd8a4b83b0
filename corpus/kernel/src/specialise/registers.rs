//! The pool of registers of a CTA: `setmaxnreg.dec` gives registers back to it, `setmaxnreg.inc` waits until it has enough
//! (PTX ISA 9.2, Miscellaneous Instructions: setmaxnreg).
//!
//! A launch is accepted if no `inc` can wait for ever. That is so if for each CTA the most registers that each warp ever holds, at
//! the start or later, fit together: then every `inc` finds enough at once. It is also so if (1) each warp meets its first
//! `setmaxnreg` after barriers of all threads only, and no first `inc` stands before a barrier that a first `dec` stands
//! behind; (2) for each CTA the most registers that each warp ever asks for fit together. By (1) no first `dec` waits for an
//! `inc`, so all of them run, and from then on no warp holds more than its most. By (2) each `inc` then finds enough. Any
//! other launch is abstained from.

use super::item::{Note, Trace};
use super::launch::Here;
use crate::Refusal;
use std::collections::BTreeMap;

/// What a warp has waited for before its first `setmaxnreg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Behind {
    /// So many barriers of all threads of the CTA or the cluster, and nothing else.
    Barriers(u32),
    /// Something else.
    More,
    /// It has had its first one.
    First,
}

impl Behind {
    /// After a wait; `all` says that it is a barrier of all threads.
    pub(crate) fn wait(&mut self, all: bool) {
        *self = match *self {
            Behind::First => Behind::First,
            Behind::Barriers(n) if all => Behind::Barriers(n.saturating_add(1)),
            _ => Behind::More,
        };
    }

    /// Where two ways meet.
    pub(crate) fn join(&mut self, other: Behind) {
        if *self != other {
            *self = Behind::More;
        }
    }
}

/// A `setmaxnreg` of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resize {
    pub(crate) line: u32,
    pub(crate) inc: bool,
    pub(crate) count: u16,
    pub(crate) behind: Behind,
}

/// Refuses a launch in which a `setmaxnreg.inc` might wait for ever. `entry`: the registers of a thread at the start.
pub(super) fn suffice(entry: u32, places: &[Here], traces: &[Trace]) -> Result<(), Refusal> {
    let all = || traces.iter().flat_map(|t| &t.resized);
    let Some(inc) = all().find(|r| r.inc) else { return Ok(()) };
    let kept = |r: &Resize| u32::from(r.count).max(entry);
    let later = |r: &Resize| if r.inc && r.behind != Behind::First { kept(r) } else { u32::from(r.count) };
    if fits(entry, places, traces, &kept) {
        return Ok(());
    }
    let firsts = || all().filter(|r| r.behind != Behind::First);
    let latest = firsts().filter(|r| !r.inc).map(|r| r.behind).max().unwrap_or(Behind::Barriers(0));
    let early = |r: &&Resize| r.behind == Behind::More || (r.inc && r.behind < latest);
    let found = firsts().find(early).or_else(|| (!fits(entry, places, traces, &later)).then_some(inc));
    found.map_or(Ok(()), |found| Err(refusal(entry, found.line)))
}

fn refusal(entry: u32, line: u32) -> Refusal {
    let what = format!(
        "`setmaxnreg`: a thread starts with {entry} registers, and it is not shown that every `.inc` finds enough"
    );
    Refusal::Abstained { what, line }
}

/// That the pool of registers suffices, beside the first line that takes some.
pub(super) fn taken(entry: Option<u32>, traces: &[Trace]) -> Option<Note> {
    let line = traces.iter().flat_map(|t| &t.resized).filter(|r| r.inc).map(|r| r.line).min()?;
    let text =
        format!("the pool of registers has enough for every setmaxnreg.inc: a thread starts with {}", entry?);
    Some(Note::new(line, text))
}

/// Whether the most registers that the warps of each CTA hold behind a `setmaxnreg`, as `held` counts them, fit together.
fn fits(entry: u32, places: &[Here], traces: &[Trace], held: &dyn Fn(&Resize) -> u32) -> bool {
    let mut pools: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for (here, trace) in places.iter().zip(traces) {
        let most = trace.resized.iter().map(held).max().unwrap_or(entry);
        let (asked, has) = pools.entry(here.cta).or_default();
        *asked += most;
        *has += entry;
    }
    pools.values().all(|(asked, has)| asked <= has)
}
