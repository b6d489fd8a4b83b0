//! Asynchronous events: their part in an instruction, and the groups of such instructions on a path.
//!
//! Groups are lists of instruction numbers. A wait names the instructions it waits for, and so does an event that reports
//! to an mbarrier. (PTX ISA 9.2, 8.9.1, 9.7.9.25.)

use super::space::Range;
use moire_program::ir::Reg;

/// Part an event has in an asynchronous instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its start, or a fence between such instructions.
    Start,
    /// An access.
    Access { writes: bool },
    /// Comes after the ends of some instructions of the thread.
    End { of: Vec<usize>, reads: bool, cta: Option<usize> },
}

/// See [`Stage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Motion {
    /// Number of the instruction in its path.
    pub(super) instruction: usize,
    /// Outside program order.
    pub(super) late: bool,
    pub(super) part: Stage,
}

impl Motion {
    /// Whether this is an access and `end`, of the same thread, comes after it.
    pub(super) fn ends_with(&self, home: Option<usize>, end: &Motion) -> bool {
        let (Stage::Access { writes }, Stage::End { of, reads, cta }) = (&self.part, &end.part) else {
            return false;
        };
        let elsewhere = *writes && cta.is_some() && *cta != home;
        of.contains(&self.instruction) && !(*reads && *writes) && !elsewhere
    }
}

/// The accesses that a proxy fence covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sphere {
    NotShared,
    OwnShared,
    AnyShared,
    Only(Range),
}

/// Instructions in groups, oldest first; the last group is not committed.
#[derive(Clone, Debug)]
pub(super) struct Queue(pub(super) Vec<Vec<usize>>);

impl Queue {
    pub(super) fn join(&mut self, instruction: usize) {
        if let Some(last) = self.0.last_mut() {
            last.push(instruction);
        }
    }

    /// Of the committed groups, all but the last `pending`.
    pub(super) fn finished(&self, pending: u32) -> Vec<usize> {
        let committed = self.0.len() - 1;
        let over = committed.saturating_sub(usize::try_from(pending).unwrap_or(usize::MAX));
        self.0[..over].concat()
    }
}

/// Asynchronous instructions on a path so far.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    pub(super) small: Queue,
    pub(super) bulk: Queue,
    pub(super) products: Queue,
    /// Products in flight: instruction, accumulator, first factor.
    pub(super) flying: Vec<(usize, Vec<Reg>, Vec<Reg>)>,
    /// By register: whether only products touched it since the last `wgmma.fence`.
    pub(super) fenced: Vec<bool>,
}

impl Fleet {
    pub(super) fn new(registers: usize) -> Fleet {
        let none = || Queue(vec![vec![]]);
        let fenced = vec![false; registers];
        Fleet { small: none(), bulk: none(), products: none(), flying: vec![], fenced }
    }
}
