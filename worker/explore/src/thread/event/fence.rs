//! The accesses a proxy fence orders (PTX ISA 9.2 to 9.4, fence page).

use crate::thread::layout::Access;

/// The accesses a proxy fence that names a space, a side or a range orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covers {
    /// Memory other than shared.
    Global,
    /// Shared memory of the CTA of the fence.
    Own,
    /// All shared memory.
    Shared,
    /// These bytes.
    Bytes(Access),
}
