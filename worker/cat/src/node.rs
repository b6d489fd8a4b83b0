//! The nodes of a model's graph of expressions, what is known about each, and the checks on them.

use crate::syntax::Property;

/// Index into [`crate::Model::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The node at a position of [`crate::Model::nodes`].
    pub(crate) fn at(position: usize) -> Self {
        NodeId(u32::try_from(position).expect("a model has less than 2^32 nodes"))
    }

    /// Position in [`crate::Model::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index into [`crate::Model::checks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckId(pub usize);

/// Set or relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the two words say it")]
pub enum Type {
    Set,
    Relation,
}

/// One operation. Operands of mixed type are never formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "one variant an operator of the language")]
pub enum Node {
    /// Base set, by position in [`crate::vocabulary::sets`].
    Set(usize),
    /// Base relation, by position in [`crate::vocabulary::rels`].
    Relation(usize),
    EmptySet,
    EmptyRelation,
    Union(NodeId, NodeId),
    Inter(NodeId, NodeId),
    Diff(NodeId, NodeId),
    Complement(NodeId),
    Seq(NodeId, NodeId),
    Cross(NodeId, NodeId),
    Inverse(NodeId),
    Plus(NodeId),
    Star(NodeId),
    Opt(NodeId),
    Lift(NodeId),
    Domain(NodeId),
    Range(NodeId),
    /// Member of the `let rec` group being solved.
    Variable {
        group: u32,
        member: u32,
    },
    /// Member of a solved `let rec` group.
    Fixpoint {
        group: u32,
        member: u32,
    },
}

/// What is known about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Set or relation.
    pub ty: Type,
    /// Depends on no choice of the engine.
    pub fixed: bool,
    /// Whether a pair is in it depends only on its two events; events added later change nothing.
    pub local: bool,
    /// Only grows when the graph grows.
    pub monotone: bool,
    /// Depends on `co`, `fr` or `torn`.
    pub on_coherence: bool,
    /// Depends on `sync_fence`.
    pub on_fence: bool,
}

/// How a check is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// Acyclic, irreflexive or empty.
    Property(Property),
    /// `empty A \ co`: the engine puts A into co.
    Obligation(Obligation),
}

/// An order the model demands of the engine; the node is the set of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obligation {
    /// Every pair is in `co`.
    ForceCoherence(NodeId),
    /// Every pair is in `co` in one direction.
    DemandCoherence(NodeId),
    /// Every pair is in `sync_fence`.
    ForceFence(NodeId),
    /// Every pair is in `sync_fence` in one direction.
    DemandFence(NodeId),
}

impl Obligation {
    /// The pairs that are to be ordered.
    pub fn pairs(self) -> NodeId {
        let (Obligation::ForceCoherence(a)
        | Obligation::DemandCoherence(a)
        | Obligation::ForceFence(a)
        | Obligation::DemandFence(a)) = self;
        a
    }
}

/// Whether a check may prune.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Once violated, violated in every larger graph: used for pruning.
    Monotone,
    /// Judged on finished executions only.
    LeafOnly,
}

/// One named axiom or flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// `as name`, or `check-N`.
    pub name: String,
    /// What is checked.
    pub node: NodeId,
    /// How.
    pub kind: CheckKind,
    /// `~`: the property must fail.
    pub negated: bool,
    /// Reported at leaves, never filters.
    pub flag: bool,
    /// Whether it prunes.
    pub class: Class,
}

/// The number of a `let rec` group, or of a member in its group.
pub(crate) fn group_number(position: usize) -> u32 {
    u32::try_from(position).expect("a model has less than 2^32 definitions")
}

/// Direct operands of a node; for a solved fixpoint the bodies of its group.
pub(crate) fn operands(node: Node, groups: &[Vec<NodeId>]) -> Vec<NodeId> {
    match node {
        Node::Union(a, b) | Node::Inter(a, b) | Node::Diff(a, b) | Node::Seq(a, b) | Node::Cross(a, b) => {
            vec![a, b]
        }
        Node::Complement(a)
        | Node::Inverse(a)
        | Node::Plus(a)
        | Node::Star(a)
        | Node::Opt(a)
        | Node::Lift(a)
        | Node::Domain(a)
        | Node::Range(a) => vec![a],
        Node::Fixpoint { group, .. } => groups[group as usize].clone(),
        Node::Set(_) | Node::Relation(_) | Node::EmptySet | Node::EmptyRelation | Node::Variable { .. } => {
            vec![]
        }
    }
}
