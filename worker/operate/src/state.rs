//! The state of a run: where each thread stands, what synchronisation objects hold, and what is known to be ordered.

use crate::carrier::Class;
use crate::record::{Barrier, Object};
use crate::rows::Rows;
use crate::trips::Classes;
use crate::value::Val;
use moire_program::ir::Reg;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The products of a thread that may be under way, and the registers that are ready for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Products {
    /// Their positions, and the age of the group of each: 0 is open.
    pub(crate) flying: BTreeSet<(u32, usize)>,
    /// Registers that nothing touched since the last `wgmma.fence`; nothing before the first.
    pub(crate) ready: Option<Vec<bool>>,
}

/// A load from tensor memory with registers that are still unread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Loading {
    pub(crate) record: usize,
    pub(crate) unread: Vec<Reg>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadState {
    pub(crate) pc: usize,
    pub(crate) regs: Vec<Val>,
    /// The lanes that run, a bit a lane.
    pub(crate) active: u32,
    /// The branches that only some lanes have taken, the innermost last.
    pub(crate) arms: Vec<Arm>,
    pub(crate) exited: bool,
    /// Arrived at a barrier and waits there.
    pub(crate) held: bool,
    /// It has met the rest of its warp at the instruction that it executes next.
    pub(crate) met: bool,
    pub(crate) loads: Vec<Loading>,
    pub(crate) products: Products,
    /// Number of copies so far, where instances are told apart.
    pub(crate) copies: u32,
    /// Number of allocations so far.
    pub(crate) allocations: u32,
    /// The wait that it executes next answers with yes, though its answer decides more than whether to wait on.
    pub(crate) awaits: bool,
    /// The loops it is in, by position among the loops of the thread, with the iterations completed.
    pub(crate) inside: Vec<(usize, u32)>,
}

/// An mbarrier. The phase: 0 before the first completion, then 1 and 2 in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mbarrier {
    pub(crate) valid: bool,
    pub(crate) count: u32,
    pub(crate) pending: u32,
    pub(crate) tx: i64,
    pub(crate) phase: u8,
    /// Every thread that arrives knows that the last phase was observed.
    pub(crate) observed_by_all: bool,
}

/// What an operation adds to a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Added {
    pub(crate) arrivals: u32,
    pub(crate) tx: i64,
    /// Later phases expect as many arrivals fewer.
    pub(crate) drops: bool,
    /// It must observe the previous phase, by the text of the PTX ISA (9.4, 9.7.13.15.5.1).
    pub(crate) observes: bool,
}

/// A branch that only some lanes of a warp have taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Arm {
    /// Where the others wait for them.
    pub(crate) meet: usize,
    /// All that go on there.
    pub(crate) lanes: u32,
    /// The registers of the others.
    pub(crate) regs: Vec<Val>,
}

/// An asynchronous operation on an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Completion {
    /// The thread and the line that issued it.
    pub(crate) place: (usize, u32),
    pub(crate) of: Object,
    pub(crate) class: Class,
    pub(crate) added: Added,
}

/// A barrier in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Meeting {
    pub(crate) lanes: u32,
    /// The number of threads that some member names, as many as the CTA has if another member names none.
    pub(crate) count: Option<u32>,
    /// Some member names no number: it waits for all threads that have not exited.
    pub(crate) open: bool,
    /// Threads that arrived, and whether they wait.
    pub(crate) members: Vec<(usize, bool)>,
    /// A generation is complete.
    pub(crate) again: bool,
}

/// A cluster barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ClusterBarrier {
    pub(crate) arrived: BTreeSet<usize>,
    /// Threads that may pass.
    pub(crate) open: BTreeSet<usize>,
}

/// Columns that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Columns {
    pub(crate) cta: usize,
    pub(crate) slot: u32,
    pub(crate) columns: u32,
    pub(crate) exclusive: bool,
    pub(crate) pair: bool,
    pub(crate) freed: bool,
}

/// A call of an allocator instruction that may meet one of the other CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Call {
    Get(u32),
    Put(Option<u32>),
    Release,
}

/// An instruction whose fault depends on what other threads do with the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Suspect {
    pub(crate) cta: usize,
    pub(crate) slot: u32,
    /// For an access: the end of its columns. For a `dealloc`: nothing.
    pub(crate) end: Option<u32>,
    pub(crate) place: (usize, u32),
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) threads: Vec<ThreadState>,
    pub(crate) mbarriers: BTreeMap<Object, Mbarrier>,
    pub(crate) meetings: BTreeMap<Barrier, Meeting>,
    /// By first CTA of the cluster.
    pub(crate) clusters: BTreeMap<usize, ClusterBarrier>,
    pub(crate) columns: Vec<Columns>,
    /// By CTA and call: how many columns it names.
    pub(crate) calls: BTreeMap<(usize, Call), u32>,
    /// Accesses to columns that are not allocated yet, and deallocations of a part.
    pub(crate) suspects: BTreeSet<Suspect>,
    /// CTAs in which the right to allocate was given up.
    pub(crate) relinquished: BTreeSet<usize>,
    /// Content of memory that can decide something: copy, offset, bytes.
    pub(crate) contents: BTreeMap<(usize, u32, u32), Val>,
    /// Records that stand for something.
    pub(crate) live: Vec<u64>,
    pub(crate) rows: Rows,
    /// How far each thread is in loops with a free number.
    pub(crate) classes: Classes,
    /// Threads that completed an iteration without a wait, and no thread has moved since.
    pub(crate) demoted: BTreeSet<usize>,
    /// The thread that decided last, if it had waited in its iteration.
    pub(crate) waited: Option<usize>,
    /// A wait that answered with no on the way here might have had to answer with yes. No part of what states are compared by.
    pub(crate) doubtful: bool,
    /// Operations under way, with what they hand on; none unless every order is tried.
    pub(crate) pending: Vec<(Completion, Rows)>,
}

impl State {
    /// 128 bits that stand for what decides how a run goes on.
    pub(crate) fn fingerprint(&self) -> u128 {
        let mut all = Written(Vec::with_capacity(1 << 12));
        (&self.threads, &self.mbarriers, &self.meetings, &self.clusters).hash(&mut all);
        (&self.columns, &self.calls, &self.relinquished, &self.contents).hash(&mut all);
        (&self.live, &self.suspects).hash(&mut all);
        (&self.classes.all, &self.demoted, self.waited).hash(&mut all);
        all.rows(&self.rows);
        for (completion, vector) in &self.pending {
            completion.hash(&mut all);
            all.rows(vector);
        }
        let half = |seed: u64| {
            let mut hasher = DefaultHasher::new();
            seed.hash(&mut hasher);
            hasher.write(&all.0);
            u128::from(hasher.finish())
        };
        half(0x9e37_79b9_7f4a_7c15) << 64 | half(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn all_exited(&self, threads: &[usize]) -> bool {
        threads.iter().all(|t| self.threads[*t].exited)
    }
}

/// What is to be hashed, in one piece: that is faster than many small ones.
struct Written(Vec<u8>);

impl Written {
    /// Most words of rows are zero: the others with their places, and a place that no word has.
    fn rows(&mut self, rows: &Rows) {
        for (at, word) in rows.data.iter().enumerate().filter(|(_, word)| **word != 0) {
            self.write_usize(at);
            self.write_u64(*word);
        }
        self.write_usize(usize::MAX);
    }
}

impl Hasher for Written {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
