//! A loaded model: a hash-consed graph of set and relation expressions, and the checks on it.
//!
//! Nodes are in evaluation order: operands come before their users, except inside a `let rec` group, whose
//! variables stand for the least fixpoint of their bodies.

use crate::contract::{Feature, Settings};
use crate::include::Include;
use crate::licence::{Kind, Licence};
use crate::node::{Check, CheckId, CheckKind, Class, Facts, Node, NodeId, Obligation};
use crate::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// A named choice the model leaves open, declared in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// For example `Q6`.
    pub name: String,
    /// All values.
    pub values: Vec<String>,
    /// Value if none is chosen.
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
    /// A claim that is granted without justification: a planted bug.
    pub(crate) trusted: Option<Kind>,
    /// The model and the plan that evaluators share; made by the first evaluator.
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
