//! How executions are found: decisions, the walk through their tree, and what is done with a leaf.
//!
//! From below: `piece` (which part of the tree) and `walk` (random descents) know no search; `explorer` picks the next
//! event and judges graphs; the decisions are in `memory` (reads and writes) and `objects` (barriers, mbarriers, allocators,
//! gates); `leaves` shows what is finished; `entry` starts it, and `share` on several cores.

mod entry;
mod explorer;
mod leaves;
mod memory;
mod objects;
mod piece;
pub mod share;
mod walk;

pub use crate::visit::{Abstain, Bound, LeafView, Limits, Summary, TOO_WIDE, Visitor};
pub use entry::{descend, explore, explore_planted};
pub use walk::{Descents, Estimate, Sample};
