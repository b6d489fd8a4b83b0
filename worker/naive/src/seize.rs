//! What one event does to an allocator of tensor memory (PTX ISA 9.2, 9.7.16.7).

/// An operation on an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seizure {
    /// Allocates; the number of the allocation.
    Get(u32),
    /// Deallocates: the allocation, and the column in it. `None` if the address has no allocation.
    Put(Option<(u32, u32)>),
    Release,
}

/// An event of an allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seize {
    pub(super) what: Seizure,
    pub(super) columns: u32,
    pub(super) exclusive: bool,
    pub(super) wrong: bool,
    /// The flag to raise if only some lanes of the warp run it.
    pub(super) lanes: Option<&'static str>,
    /// First threads of the own CTA, and of the other one of the pair.
    pub(super) ctas: Vec<usize>,
}

impl Seize {
    pub(super) fn pair(&self) -> bool {
        self.ctas.len() == 2
    }

    pub(super) fn gets(&self) -> bool {
        matches!(self.what, Seizure::Get(_))
    }

    /// The allocation it is about.
    pub(super) fn slot(&self) -> Option<u32> {
        match self.what {
            Seizure::Get(slot) => Some(slot),
            Seizure::Put(place) => place.map(|p| p.0),
            Seizure::Release => None,
        }
    }

    /// Whether the two are the halves of one collective operation.
    pub(super) fn meets(&self, other: &Seize) -> bool {
        let kind = |s: &Seize| match s.what {
            Seizure::Get(_) => 0,
            Seizure::Put(_) => 1,
            Seizure::Release => 2,
        };
        let crosswise = self.pair() && self.ctas[0] == other.ctas[other.ctas.len() - 1];
        crosswise
            && other.pair()
            && other.ctas[0] == self.ctas[1]
            && kind(self) == kind(other)
            && self.slot() == other.slot()
    }
}
