//! What is written to a store, and the answer to it.

use crate::exploration::{Exploration, Explored, Stretch};
use crate::finding::Finding;
use crate::hash::{FindingId, Hash};
use crate::items::{ItemDone, Progress};
use crate::record::{Campaign, Regression};
use std::collections::BTreeMap;

/// One change to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Write {
    /// Creates or replaces a campaign (not its progress).
    Campaign(Box<Campaign>),
    /// Creates or replaces a finding.
    Finding(Box<Finding>),
    /// Item `item` of `campaign` showed `finding`; idempotent, part of the campaign's digest.
    Sighting {
        /// The campaign.
        campaign: String,
        /// The item.
        item: u64,
        /// The finding.
        finding: FindingId,
    },
    /// Finished items of a campaign; those already recorded change nothing.
    Items {
        /// The campaign.
        campaign: String,
        /// The items.
        items: Vec<ItemDone>,
    },
    /// The smallest program found so far for a claim that is being minimised; `None` forgets it.
    Best {
        /// Hash of the claim.
        claim: Hash,
        /// Its program.
        program: Option<String>,
    },
    /// Creates an exploration; `None` forgets it and its totals.
    Exploration {
        /// Its id.
        id: Hash,
        /// Its program, model and limits.
        exploration: Option<Box<Exploration>>,
    },
    /// The totals of an exploration so far.
    Explored {
        /// Its id.
        id: Hash,
        /// Its totals.
        explored: Box<Explored>,
    },
    /// A piece of an exploration that is still to be explored. `None` removes it.
    Piece {
        /// Id of the exploration.
        id: Hash,
        /// Number of the piece.
        number: u64,
        /// The piece.
        piece: Option<Stretch>,
    },
    /// The first execution that shows a thing, such as a flag; `None` forgets it.
    Mark {
        /// Id of the exploration.
        id: Hash,
        /// The name of the thing.
        name: String,
        /// Its path.
        path: Option<Vec<u32>>,
    },
    /// Keeps a program.
    Regression(Box<Regression>),
    /// Replaces the coordinator's counters since the store was made, by name.
    Totals(BTreeMap<String, u64>),
}

/// Two reports of one item that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The campaign.
    pub campaign: String,
    /// The item.
    pub item: u64,
    /// The digest kept.
    pub kept: Hash,
    /// The digest refused.
    pub refused: Hash,
}

/// The result of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Items recorded.
    pub items: u64,
    /// Items that were already recorded.
    pub duplicates: u64,
    /// Those of them whose digest differs from the recorded one.
    pub conflicts: Vec<Conflict>,
    /// Progress of the campaigns whose items were written.
    pub progress: BTreeMap<String, Progress>,
    /// The disk was full and the reserve is used up: free space now.
    pub reserve_used: bool,
}

impl Receipt {
    /// Adds what a later commit of the same batch answered.
    pub fn add(&mut self, later: Self) {
        self.items += later.items;
        self.duplicates += later.duplicates;
        self.conflicts.extend(later.conflicts);
        self.progress.extend(later.progress);
        self.reserve_used |= later.reserve_used;
    }
}
