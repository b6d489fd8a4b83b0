//! Carriers of knowledge: which rows say what a thread, a phase of an mbarrier or a barrier knows.
//!
//! A *vector* is what an arrival hands on: the facts of the order of execution, the accesses to tensor memory ordered
//! before (`tcause`), those issued before, and the *levels* of base causality. The levels: plain base causality; through a
//! proxy fence, by the CTA of the fence; of completed tensor-core operations, where release and acquire order them; what else needs a fence on the way;
//! and the life of mbarriers.

use crate::record::{Barrier, Object};
use moire_program::ir::Scope;
use rustc_hash::FxHashMap;

/// Rows of a vector.
pub(crate) mod row {
    /// Order of execution: facts.
    pub(crate) const FACTS: usize = 0;
    /// `tcause` to the next ordinary operation.
    pub(crate) const ORDERED: usize = 1;
    /// Issued before the next ordinary operation, across threads.
    pub(crate) const ISSUED: usize = 2;
    /// Base causality.
    pub(crate) const BASE: usize = 3;
    /// Completed operations of the tensor cores, by release and acquire.
    pub(crate) const COMPLETED: usize = 4;
    /// Asynchronous accesses that a fence in their CTA follows.
    pub(crate) const LEFT: usize = 5;
    /// Inits that a fence for asynchronous arrivals follows.
    pub(crate) const INITS: usize = 6;
    /// Writes that a release of tensor maps follows.
    pub(crate) const MAPS: usize = 7;
    /// Operations on mbarriers, where lanes that meet order them too (RV).
    pub(crate) const MET: usize = 8;
    /// Rows of a vector that do not depend on the number of CTAs.
    pub(crate) const FIXED: usize = 9;
}

/// Rows of a thread behind its vector.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(crate) enum Own {
    /// Complete before a `tcgen05.wait` of the thread.
    Waited,
    /// The same, at the last `fence::before_thread_sync`.
    Before,
    /// Ordered before the last `fence::after_thread_sync`.
    After,
    /// Issued by the thread.
    Issued,
    /// The same, at the last `fence::before_thread_sync`.
    IssuedBefore,
    /// Issued before the last `fence::after_thread_sync`, across threads.
    IssuedAfter,
    /// Followed by the next commit, by CTA group.
    One,
    Two,
    /// Reads of the first factor, by CTA group.
    FirstOne,
    FirstTwo,
    /// Followed by the next wait for loads, for stores.
    Loads,
    Stores,
    /// Products before the last `fence::before_thread_sync`.
    ProductsBefore,
    /// Own inits; those before a `fence.mbarrier_init`.
    Inits,
    InitsFenced,
    /// Everything issued, products and moves, for allocator instructions that wait (TQ26).
    Everything,
    /// Base causality at the last `wgmma.fence`, and through a proxy fence of the CTA.
    Multiplied,
    MultipliedFenced,
}

const OWN: usize = Own::MultipliedFenced as usize + 1;

/// Operations of a phase that a wait takes alike: scope and CTA of the operation, scope of what releases if something does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Class {
    pub(crate) scope: Scope,
    pub(crate) cta: usize,
    pub(crate) release: Option<Scope>,
}

/// Completion groups of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Group {
    Small,
    Bulk,
    /// Warpgroup products.
    Products,
}

/// Deepest group that is told apart from older ones.
pub(crate) const DEPTH: u32 = 8;

/// Something with rows of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Carrier {
    /// Levels at the last release fence of a scope.
    Released(usize, Scope),
    /// Levels that relaxed waits took, until an acquire fence.
    Acquired(usize, Option<Class>),
    /// Levels of the last commit of a thread.
    Committed(usize),
    /// Facts that the arrivals of the collecting phase of an mbarrier know.
    Arrivals(Object),
    /// The phase of an mbarrier that collects (`false`) or was completed last (`true`).
    Phase(Object, bool, Class),
    Meeting(Barrier),
    /// The phase of a cluster barrier that collects or was completed last, by the first CTA of the cluster.
    Cluster(usize, bool),
    /// Copies in groups: 0 is open, higher numbers are older.
    Copies(usize, Group, u32),
    /// What was ordered before a tensor-core access.
    Prior(usize),
}

/// The first row of each carrier.
#[derive(Clone, Debug)]
pub(crate) struct Carriers {
    ctas: usize,
    found: FxHashMap<Carrier, usize>,
    priors: Vec<(usize, usize)>,
    next: usize,
    /// By mbarrier: the classes of its operations so far.
    pub(crate) classes: std::collections::BTreeMap<Object, std::collections::BTreeSet<Class>>,
    /// Classes of the relaxed waits of each thread.
    pub(crate) taken: Vec<std::collections::BTreeSet<Option<Class>>>,
    /// Scopes of the release fences of each thread.
    pub(crate) fences: Vec<std::collections::BTreeSet<Scope>>,
}

impl Carriers {
    pub(crate) fn new(ctas: usize, threads: usize) -> Self {
        let vector = row::FIXED + 2 * ctas;
        Carriers {
            ctas,
            found: FxHashMap::default(),
            priors: Vec::new(),
            next: threads * (vector + OWN),
            classes: Default::default(),
            taken: vec![Default::default(); threads],
            fences: vec![Default::default(); threads],
        }
    }

    /// Rows of a vector.
    pub(crate) fn vector(&self) -> usize {
        row::FIXED + 2 * self.ctas
    }

    /// The row, in a vector, of what a proxy fence in a CTA follows.
    pub(crate) fn fenced(&self, cta: usize) -> usize {
        debug_assert!(cta < self.ctas, "there is such a CTA");
        row::FIXED + cta
    }

    /// The row, in a vector, of writes of tensor maps that were acquired in a CTA.
    pub(crate) fn mapped(&self, cta: usize) -> usize {
        debug_assert!(cta < self.ctas, "there is such a CTA");
        row::FIXED + self.ctas + cta
    }

    /// The first row of a thread's vector.
    pub(crate) fn thread(&self, thread: usize) -> usize {
        thread * (self.vector() + OWN)
    }

    pub(crate) fn own(&self, thread: usize, own: Own) -> usize {
        self.thread(thread) + self.vector() + own as usize
    }

    /// The first row of a carrier.
    pub(crate) fn first(&mut self, carrier: Carrier) -> usize {
        if let Some(first) = self.found.get(&carrier) {
            return *first;
        }
        let rows = match carrier {
            Carrier::Copies(..) | Carrier::Prior(_) | Carrier::Arrivals(_) => 1,
            _ => self.vector(),
        };
        let first = self.next;
        self.next += rows;
        debug_assert!(first >= self.taken.len() * (self.vector() + OWN), "rows of threads come first");
        self.found.insert(carrier, first);
        if let Carrier::Prior(record) = carrier {
            self.priors.push((record, first));
        }
        first
    }

    /// The first rows of what was ordered before tensor-core accesses, by record.
    pub(crate) fn priors(&self) -> &[(usize, usize)] {
        &self.priors
    }

    /// The number of rows so far.
    pub(crate) fn rows(&self) -> usize {
        self.next
    }

    /// The first row of a carrier that has rows.
    pub(crate) fn known(&self, carrier: &Carrier) -> Option<usize> {
        self.found.get(carrier).copied()
    }
}
