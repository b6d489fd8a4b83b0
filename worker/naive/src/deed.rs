//! What one event does to an mbarrier. Which deeds fit together is decided by `history`.

/// What one event does to an mbarrier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    Init(u64),
    Inval,
    Add {
        arrivals: u64,
        tx: i64,
        drops: bool,
        must_not_complete: bool,
        /// The phase that the path assumes the instruction returns.
        reported: Option<u128>,
    },
    Ask {
        odd: bool,
        /// The answer the path assumes.
        answer: bool,
    },
}

impl Deed {
    /// Multiplies an arrival by the lanes that make it.
    pub(super) fn repeated(&mut self, lanes: u32) {
        if let Deed::Add { arrivals, tx, .. } = self {
            *arrivals *= u64::from(lanes);
            *tx *= i64::from(lanes);
        }
    }
}

/// An event on an mbarrier: instance and offset of the object, and what is done to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Count {
    pub(super) object: (usize, u32),
    pub(super) deed: Deed,
    /// Flag of a precondition the instruction breaks by its operands.
    pub(super) wrong: Option<&'static str>,
}
