//! Events of one thread, and the paths they are on.

use super::deed::Count;
use super::effect::Effect;
use super::exchange::{Answer, Circle, Gift};
use super::motion::{Motion, Sphere};
use super::pairs::Events;
use super::seize::Seize;
use super::space::Range;
use moire_program::ir::{BarRed, Scope};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Marks a register, among its dependencies, that holds unknown data: copied, or read from tensor memory.
pub(super) const UNKNOWN: Events = 1 << 127;

/// Marks a cell whose bytes are unknown. Only a cell of 16 bytes is wide enough for a program to write this by accident.
pub(super) const VEIL: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834;

/// What a barrier event does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    Named {
        id: u128,
        instance: Option<u32>,
        count: Option<u128>,
        /// Whether it waits for its phase.
        waits: bool,
        /// `bar.red`: operation, this thread's predicate, and the result the path assumes.
        reduces: Option<(BarRed, bool, u128)>,
    },
    ClusterArrive,
    ClusterWait,
    Warp {
        mask: u128,
    },
    /// Which exchange, what this thread gives, and the answer the path assumes.
    Exchange {
        circle: Circle,
        gift: Gift,
        answer: Answer,
    },
}

/// One event of a path.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// Position of the instruction in the body.
    pub(super) pc: usize,
    /// Number in the path; a read-modify-write takes two whether or not it writes.
    pub(super) index: u16,
    /// Bit `s` is membership in the vocabulary set `s`.
    pub(super) tags: u128,
    pub(super) scope: Option<Scope>,
    pub(super) range: Option<Range>,
    /// Value read or written, by cell.
    pub(super) cells: Vec<(usize, u128)>,
    /// On the write half of a read-modify-write: its read half, and whether the write needs the value read.
    pub(super) reads_first: Option<(usize, bool)>,
    /// Pieces of one instruction: instruction occurrence and piece.
    pub(super) piece: Option<(usize, usize)>,
    pub(super) address: Events,
    pub(super) data: Events,
    pub(super) control: Events,
    /// Control, up to where the branches meet.
    pub(super) nearby: Events,
    /// Reads that had to have their value before this was issued. They are no dependency of any model.
    pub(super) held: Events,
    pub(super) barrier: Option<Barrier>,
    pub(super) count: Option<Count>,
    pub(super) effect: Option<Effect>,
    pub(super) seizes: Option<Seize>,
    /// Of an asynchronous event: a thread of the CTA whose memory it touches.
    pub(super) home: Option<usize>,
    /// Lanes that take part.
    pub(super) lanes: u32,
    /// Branches that have parted the lanes and whose arms have not joined, and whether it is in the second arm.
    pub(super) arms: Arms,
    /// Its part in an asynchronous instruction, those of the tensor cores aside.
    pub(super) motion: Option<Motion>,
    /// Of a proxy fence: the accesses it covers, if not all.
    pub(super) sphere: Option<Sphere>,
    /// Number of the instruction in its path.
    pub(super) turn: usize,
    /// Of an element of a tile: all events before it in token order, and the nearest ones.
    pub(super) token: Events,
    pub(super) token_nearest: Events,
}

/// Branches, and whether it is in the second arm.
pub(super) type Arms = Vec<(usize, bool)>;

impl Event {
    /// Whether it is asynchronous, and so outside program order.
    pub(super) fn loose(&self) -> bool {
        self.effect.as_ref().is_some_and(|e| e.later) || self.motion.as_ref().is_some_and(|m| m.late)
    }

    /// Whether the two are in different arms of a branch.
    pub(super) fn beside(&self, other: &Event) -> bool {
        self.arms.iter().any(|(parting, arm)| other.arms.contains(&(*parting, !arm)))
    }

    pub(super) fn is(&self, set: usize) -> bool {
        self.tags >> set & 1 == 1
    }
}

/// How a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stop {
    /// At the exit.
    Done,
    /// Its last event is a barrier event that never completes.
    AtBarrier,
    /// Spins; the events from this one on are one failing iteration.
    Spin(usize),
}

/// One way through a thread.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) events: Vec<Rc<Event>>,
    /// Reads that decided which branches the path took.
    pub(super) control: Events,
    /// Reads that had to have their value before the path could end.
    pub(super) held: Events,
    pub(super) regs: Vec<u128>,
    /// Flags that the thread raises whatever other threads do.
    pub(super) flags: BTreeSet<&'static str>,
    pub(super) stop: Stop,
    /// Number the next event would have (for a spin: the first of the failing iteration).
    pub(super) next: u16,
}

impl Path {
    /// The events that took place: those of a failing iteration did not.
    pub(super) fn kept(&self) -> &[Rc<Event>] {
        let end = if let Stop::Spin(since) = self.stop { since } else { self.events.len() };
        &self.events[..end]
    }
}

/// Why the paths of a thread are not enumerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// More paths, events or values than the limits allow.
    TooMany(&'static str),
    /// An address that reaches no object, or an instruction without a meaning here.
    Unsupported(String),
}
