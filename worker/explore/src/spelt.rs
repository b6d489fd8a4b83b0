//! The spelling of totals, from which the name of the tree of decisions is computed.

use crate::reduce::Cut;
use crate::visit::{Bound, Summary};
use moire_program::spells;

spells! {
    Summary {
        Summary { complete, blocked, dead_ends, checks, cut, bounded, stopped } => "Summary" {
            "complete": complete, "blocked": blocked, "dead_ends": dead_ends, "checks": checks, "cut": cut,
            "bounded": bounded, "stopped": stopped,
        },
    }
    Cut { Cut { threads, unseen } => "Cut" { "threads": threads, "unseen": unseen } }
    Bound {
        Bound::Loop => "Loop" (),
        Bound::Leaves => "Leaves" (),
        Bound::Checks => "Checks" (),
        Bound::Steps => "Steps" (),
        Bound::Ended => "Ended" (),
        Bound::Outcomes => "Outcomes" (),
        Bound::FenceOrders => "FenceOrders" (),
        Bound::PhaseOrders => "PhaseOrders" (),
        Bound::Descents => "Descents" (),
    }
}
