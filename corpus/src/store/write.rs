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
    /// The least program so far of a claim that is being made smaller, by the hash of the claim; `None` forgets it.
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
        /// What it is.
        exploration: Option<Box<Exploration>>,
    },
    /// How far an exploration is.
    Explored {
        /// Its id.
        id: Hash,
        /// Its totals.
        explored: Box<Explored>,
    },
    /// A piece of an exploration that is not explored; `None`: it is, or is forgotten.
    Piece {
        /// Id of the exploration.
        id: Hash,
        /// Number of the piece.
        number: u64,
        /// The piece.
        piece: Option<Stretch>,
    },
    /// The first execution that shows something; `None` forgets it.
    Mark {
        /// Id of the exploration.
        id: Hash,
        /// What it shows.
        name: String,
        /// Its path.
        path: Option<Vec<u32>>,
    },
    /// Keeps a program.
    Regression(Box<Regression>),
    /// Replaces what the coordinator has counted since the store was made, by name.
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
    /// Of these, those that said something else.
    pub conflicts: Vec<Conflict>,
    /// How far the campaigns are whose items were named.
    pub progress: BTreeMap<String, Progress>,
    /// The disk was full and the reserve is used up: free space now.
    pub reserve_used: bool,
}
