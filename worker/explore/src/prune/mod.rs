//! Which graphs can still become an execution: what is asked of the model, the may-write analysis of open reads, await
//! gating, and what may still happen to an mbarrier.
//!
//! Contract: a graph is left only if no execution contains it.
//!
//! From below: `consistency` (the model), `exclusive`, `outlook`, `mbarriers`, `gates`, `may_write`; `state`, the sum of a
//! graph and all of these.

pub(crate) mod consistency;
pub(crate) mod exclusive;
pub(crate) mod gates;
pub(crate) mod may_write;
pub(crate) mod mbarriers;
pub(crate) mod outlook;
pub(crate) mod state;
mod sums;
