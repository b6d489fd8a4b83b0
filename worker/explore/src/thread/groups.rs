//! Groups of asynchronous copies and products a thread has started, in its order (PTX ISA 9.2, 9.7.9.25.3).

/// Copies of one kind in the order of the thread: those not committed yet, and the groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    open: Vec<u16>,
    closed: Vec<Vec<u16>>,
}

impl Groups {
    pub(crate) fn add(&mut self, unit: u16) {
        self.open.push(unit);
    }

    pub(crate) fn commit(&mut self) {
        self.closed.push(std::mem::take(&mut self.open));
    }

    /// What is complete when at most so many groups are pending.
    pub(crate) fn complete(&self, pending: u32) -> Vec<u16> {
        self.closed.iter().rev().skip(pending as usize).flatten().copied().collect()
    }

    pub(crate) fn all(&self) -> Vec<u16> {
        self.closed.iter().flatten().chain(&self.open).copied().collect()
    }
}

/// What a run knows of the copies so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    pub(crate) small: Groups,
    pub(crate) bulk: Groups,
    pub(crate) products: Groups,
}
