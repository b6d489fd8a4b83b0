//! How executions are found: decisions, the walk through their tree, and what is done with a leaf.
//!
//! From below: `piece` (which part of the tree) and `walk` (random descents) know no search; `explorer` makes the decisions,
//! those at barriers, mbarriers, allocators and gates in `objects`; `entry` starts it, and `share` on several cores.

mod entry;
mod explorer;
mod objects;
mod piece;
pub mod share;
mod walk;

pub use crate::visit::{Abstain, Bound, LeafView, Limits, Summary, Visitor};
pub use entry::{descend, explore, explore_planted};
pub use walk::{Descents, Estimate, Sample};
