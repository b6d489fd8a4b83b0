//! Loose programs of what runs beside threads: tensor memory, asynchronous copies, warpgroup products; and of what threads and
//! lanes wait for each other with: mbarriers, barriers, exchanges.
//!
//! Contract: drawers are independent of the protocols. Their programs are often wrong, which engines must agree on.
//! They are drawn as text, which also tests the reader; a text that it refuses is drawn again.

mod allocation;
mod boxes;
mod cells;
mod copies;
mod counting;
mod lanes;
mod launches;
mod literal;
mod matrices;
mod mbarrier;
mod meetings;
mod moves;
mod pair;
mod products;

pub use allocation::allocation;
pub use boxes::boxes;
pub use cells::cells;
pub use copies::copies;
pub use counting::{counting, looped};
pub use lanes::lanes;
pub use launches::launches;
pub use matrices::{kept, matrices};
pub use mbarrier::mbarrier;
pub use meetings::meetings;
pub use moves::moves;
pub use products::{looped as looped_products, products};

use crate::numbers::Choose;
use crate::stream::Family;
use moire_program::ir::Program;

/// Programs in which a word is replaced, in percent: the forms of these instructions are many.
const OFTEN: usize = 50;

/// The families of the stream.
pub(crate) const FAMILIES: &[Family] = &[
    Family { name: "cells", share: 3, worded: OFTEN, draw: |u| cells(u) },
    Family { name: "allocation", share: 2, worded: OFTEN, draw: |u| allocation(u) },
    Family { name: "copies", share: 3, worded: OFTEN, draw: |u| copies(u) },
    Family { name: "products", share: 1, worded: OFTEN, draw: |u| products(u) },
    Family { name: "moves", share: 3, worded: OFTEN, draw: |u| moves(u) },
    Family { name: "matrices", share: 4, worded: OFTEN, draw: |u| matrices(u) },
    Family { name: "kept", share: 2, worded: OFTEN, draw: |u| kept(u) },
    Family { name: "boxes", share: 6, worded: OFTEN, draw: |u| boxes(u) },
    Family { name: "launches", share: 4, worded: OFTEN, draw: |u| launches(u) },
    Family { name: "mbarrier", share: 2, worded: OFTEN, draw: |u| mbarrier(u) },
    Family { name: "counting", share: 2, worded: OFTEN, draw: |u| counting(u) },
    Family { name: "warps", share: 4, worded: OFTEN, draw: |u| warps(u) },
];

/// Draws warps of two to four lanes: joined ones, ones that meet between what they do in tensor memory and at an mbarrier,
/// and most of the time others, each lane a thread. `None` if the drawn text is refused.
pub fn warps(draw: &mut dyn Choose) -> Option<Program> {
    match draw.below(5) {
        0 => lanes(draw),
        1 => meetings(draw),
        _ => literal::literal(draw),
    }
}
