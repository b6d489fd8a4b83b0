//! A loaded model: a hash-consed graph of set and relation expressions, and the checks on it.
//!
//! Nodes are in evaluation order: operands come before their users, except inside a `let rec` group, whose
//! variables stand for the least fixpoint of their bodies.

use crate::contract::{Feature, Settings};
use crate::include::Include;
use crate::licence::{Kind, Licence};
use crate::plan::Plan;
use crate::syntax::Property;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// Index into [`Model::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Position in [`Model::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index into [`Model::checks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckId(pub usize);

/// Set or relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the two words say it")]
pub enum Type {
    Set,
    Relation,
}

/// One operation. Operands of mixed type are never formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "one variant an operator of the language")]
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
    /// Whether a pair is in it depends on no event but the two: those to come change nothing.
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
    /// The pairs it speaks of.
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

/// A named choice the model leaves open, declared in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// For example `Q6`.
    pub name: String,
    /// All values.
    pub values: Vec<String>,
    /// Value when nothing is said.
    pub default: String,
    /// Values that contest a verdict when the default is flipped to them.
    pub contesting: Vec<String>,
    /// One line.
    pub doc: String,
}

/// Settings of several switches that belong together, declared by the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// For example `practice`.
    pub name: String,
    /// Switch and value.
    pub settings: Vec<(String, String)>,
    /// One line.
    pub doc: String,
}

/// A loaded, typed model.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) name: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) facts: Vec<Facts>,
    /// Bodies of each `let rec` group.
    pub(crate) groups: Vec<Vec<NodeId>>,
    pub(crate) checks: Vec<Check>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) variants: BTreeMap<String, String>,
    /// Definitions by name, last one wins; for explanations.
    pub(crate) names: BTreeMap<String, NodeId>,
    pub(crate) text: String,
    pub(crate) settings: Settings,
    pub(crate) features: BTreeSet<Feature>,
    pub(crate) licences: Vec<Licence>,
    pub(crate) includes: Vec<Include>,
    /// Claims that hold as they stand: a planted bug.
    pub(crate) trusted: Option<Kind>,
    /// What evaluators share; made by the first of them.
    pub(crate) shared: OnceLock<(Arc<Model>, Arc<Plan>)>,
}

impl Model {
    /// Name it was loaded under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks in the order of the text.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Declared switches.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// The profiles the text declares; without one every switch has its default.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The value a switch has in this load; `None` when the model does not declare it.
    pub fn variant(&self, switch: &str) -> Option<&str> {
        self.variants.get(switch).map(String::as_str)
    }

    /// All switch values of this load.
    pub fn variants(&self) -> &BTreeMap<String, String> {
        &self.variants
    }

    /// Operations in evaluation order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Type and growth of a node.
    pub fn facts(&self, node: NodeId) -> Facts {
        self.facts[node.index()]
    }

    /// Bodies of the `let rec` groups.
    pub fn groups(&self) -> &[Vec<NodeId>] {
        &self.groups
    }

    /// The node a definition of the text stands for.
    pub fn definition(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// How engines run programs under this model.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether the model gives meaning to a part of the language.
    pub fn covers(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Every file included, in the order of the text.
    pub fn includes(&self) -> &[Include] {
        &self.includes
    }

    /// Every character that decides the meaning: the texts read, then the switch values. For fingerprints.
    pub fn canonical_text(&self) -> String {
        let variants: Vec<String> = self.variants.iter().map(|(k, v)| format!("{k}={v}")).collect();
        format!("{}\n(* {} *)\n", self.text, variants.join(" "))
    }

    /// The same model without one check; for asking which axiom forbids an outcome, and for planted bugs.
    pub fn without(&self, check: CheckId) -> Model {
        let mut model = self.clone();
        model.name = format!("{} without {}", self.name, self.checks[check.0].name);
        model.checks.remove(check.0);
        model.grant();
        model.shared = OnceLock::new();
        model
    }

    /// The same model under another name.
    #[must_use]
    pub fn called(mut self, name: String) -> Model {
        self.name = name;
        self.shared = OnceLock::new();
        self
    }

    /// The model and its plan, for evaluators: planning costs more than judging a small program.
    pub(crate) fn shared(&self) -> (Arc<Model>, Arc<Plan>) {
        let make = || (Arc::new(self.clone()), Arc::new(Plan::new(self)));
        let (model, plan) = self.shared.get_or_init(make);
        (Arc::clone(model), Arc::clone(plan))
    }

    /// One line a check: name, property, whether it prunes.
    pub fn explain(&self) -> String {
        let mut out = String::new();
        for check in &self.checks {
            let what = match check.kind {
                CheckKind::Property(p) => format!("{p:?}").to_lowercase(),
                CheckKind::Obligation(Obligation::ForceCoherence(_)) => "puts its pairs into co".into(),
                CheckKind::Obligation(Obligation::DemandCoherence(_)) => "has its pairs ordered by co".into(),
                CheckKind::Obligation(Obligation::ForceFence(_)) => "puts its pairs into sync_fence".into(),
                CheckKind::Obligation(Obligation::DemandFence(_)) => {
                    "has its pairs ordered by sync_fence".into()
                }
            };
            let class = match (check.flag, check.class) {
                (true, _) => "flag, reported at leaves",
                (_, Class::Monotone) => "monotone, prunes",
                (_, Class::LeafOnly) => "leaf-only: it may hold again in a larger graph",
            };
            let not = if check.negated { "not " } else { "" };
            out.push_str(&format!("{:24} {not}{what} ({class})\n", check.name));
        }
        out
    }
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
