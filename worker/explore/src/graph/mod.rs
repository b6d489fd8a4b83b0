//! What an execution graph holds: its events and their static relations, where each read takes its value, coherence, the
//! phases of barriers and mbarriers, and the allocation of tensor memory.
//!
//! Contract: every change has an inverse, and changes are undone in the reverse order, so that a graph costs no copy. Nothing
//! here knows which graph comes next.
//!
//! From below: `ids` and `row` (events as positions, and sets of them), `event`, `relations` (static base sets and relations), `universe`; `events` (all that memory is about);
//! `barriers`, `mbarriers` and `allocation` on top of it, each a part with its own state; `graph`, their sum.

pub(crate) mod allocation;
pub(crate) mod barriers;
pub(crate) mod digest;
pub(crate) mod event;
pub(crate) mod events;
#[expect(clippy::module_inception, reason = "the sum of the parts beside it")]
pub(crate) mod graph;
pub(crate) mod ids;
mod launch;
pub(crate) mod mbarriers;
pub(crate) mod relations;
pub(crate) mod row;
pub(crate) mod universe;
