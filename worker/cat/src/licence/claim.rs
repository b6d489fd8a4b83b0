//! A licence that a model text claims, and whether it is granted.

use crate::contract::words;
use crate::node::{CheckId, NodeId};

words! {
    /// The subject of a licence; see [`crate::licence`].
    Kind {
        /// A load takes nothing from a store that comes after it.
        LateStores = "late-stores",
        /// A load takes nothing from an asynchronous write that comes after it.
        LateCopies = "late-copies",
    }
}

/// A claimed licence and what became of the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Licence {
    /// What it is about.
    pub kind: Kind,
    /// The relation it is claimed for.
    pub relation: NodeId,
    /// The same in words of the text.
    pub text: String,
    /// Name of the check.
    pub by: String,
    /// The check that justifies it, or why none does.
    pub granted: Result<CheckId, Refused>,
}

/// Why a licence is not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The check is not part of the model under these switches.
    #[error("the model has no such check")]
    NoCheck,
    /// The check reports and does not forbid.
    #[error("the check is a flag")]
    Flag,
    /// The check is negated, or its expression may lose pairs when an execution grows.
    #[error("the check may hold again in a larger execution")]
    NotMonotone,
    /// The relation of the claim may lose pairs when an execution grows.
    #[error("the relation may lose pairs when an execution grows")]
    RelationShrinks,
    /// The relation of the claim does not continue along program order.
    #[error("the relation does not continue along program order")]
    NotAlongOrder,
    /// The expression of the check does not contain what the licence says.
    #[error("the expression of the check does not contain what the licence says")]
    NotImplied,
}
