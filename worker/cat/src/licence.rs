//! Licences: what the explorer may rely on when it prunes, and why a model grants it.
//!
//! A model text claims a licence with a relation of its own and names the check that justifies it. A claim is only
//! granted if the check is there under these switches, is hard and monotone, and forbids by the shape of its expression
//! what the licence says. Without a licence the explorer leaves that pruning out and is slower; its answers are the same.
//!
//! Both licences speak of *late* writes. Let `R` be the relation of the claim, and let `r` be a load through the generic
//! proxy, `w` a write of the same bytes that is not in the graph yet.
//!
//! - `late-stores`: if `(r, w)` is in `R` and `w` goes through the generic proxy, `w -rf-> r` is forbidden. `R` contains
//!   program order and continues along it, so that `w` is late if it stands behind `r`, or behind an event that `R` puts
//!   after `r`.
//! - `late-copies`: if `(r, w)` is in `R; issue`, where the issue is not that of a warpgroup product, and `w` goes through
//!   the async or the generic proxy, `w -rf-> r` is forbidden; and if `(r, w)` is in `R` and `w` goes through the async
//!   proxy. `R` continues along program order.
//!
//! The relation of a claim only grows, because the explorer asks about part of an execution.

mod claim;
mod imply;

use crate::contract::{Control, Feature};
use crate::model::Model;
use crate::node::{Check, CheckId, CheckKind, Class, Node, NodeId};
use crate::syntax::Property;
use crate::vocabulary::{rels, sets};
pub use claim::{Kind, Licence, Refused};
use imply::{Pair, PairStep, Truths, follows, holds, leads, within};

impl Model {
    /// Every licence the text claims, and whether it is granted.
    pub fn licences(&self) -> &[Licence] {
        &self.licences
    }

    /// The relation of a licence that is granted.
    pub fn licence(&self, kind: Kind) -> Option<NodeId> {
        let claimed = self.licences.iter().find(|l| l.kind == kind)?;
        (self.trusted == Some(kind) || claimed.granted.is_ok()).then_some(claimed.relation)
    }

    /// Grants and refuses the licences claimed. Call after every change of the checks.
    pub(crate) fn grant(&mut self) {
        let granted: Vec<_> = self.licences.iter().map(|l| self.justified(l)).collect();
        self.licences.iter_mut().zip(granted).for_each(|(licence, granted)| licence.granted = granted);
    }

    /// The same model with a claim granted as it stands, for planted bugs: a false claim loses executions.
    pub fn trusting(&self, kind: Kind) -> Model {
        let mut model = self.clone();
        model.trusted = Some(kind);
        model
    }

    /// The check that forbids values out of thin air, if one does by its shape: `rf` and the dependencies that the
    /// engines build executions along have no cycle. Under other models too the engines only visit such executions.
    pub fn forbids_thin_air(&self) -> Option<CheckId> {
        let control = match self.settings.control {
            Control::Lasts => rels::CTRL,
            Control::Reconverges => rels::CTRL_RECONV,
        };
        let truths = Truths { in_order: self.in_order(), ..Truths::default() };
        let forbids = |check: &Check| {
            hard(check).is_ok()
                && check.kind == CheckKind::Property(Property::Acyclic)
                && [rels::RF, rels::ADDR, rels::DATA, control]
                    .into_iter()
                    .all(|base| holds(self, &truths, &Pair::of(PairStep::Base(base)), check.node))
        };
        self.checks.iter().position(forbids).map(CheckId)
    }

    /// No program has events outside program order.
    fn in_order(&self) -> bool {
        !self.features.iter().any(|f| matches!(f, Feature::Copies | Feature::TensorCores))
    }

    fn justified(&self, claim: &Licence) -> Result<CheckId, Refused> {
        if !self.facts(claim.relation).monotone {
            return Err(Refused::RelationShrinks);
        }
        let contains_order =
            claim.kind != Kind::LateStores || within(self, PairStep::Base(rels::PO), claim.relation);
        if !contains_order || !follows(self, claim.relation) {
            return Err(Refused::NotAlongOrder);
        }
        let named = (0..self.checks.len()).filter(|c| self.checks[*c].name == claim.by).map(CheckId);
        let mut refused = Refused::NoCheck;
        for id in named {
            match self.forbids(&self.checks[id.0], claim) {
                Ok(()) => return Ok(id),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    /// Whether a check forbids what the licence says.
    fn forbids(&self, check: &Check, claim: &Licence) -> Result<(), Refused> {
        hard(check)?;
        let late = self.late(claim);
        let implied = match check.kind {
            CheckKind::Property(Property::Irreflexive) => self
                .beside_rf(check.node)
                .into_iter()
                .any(|other| late.iter().all(|(truths, pair)| holds(self, truths, pair, other))),
            CheckKind::Property(Property::Acyclic) => {
                within(self, PairStep::Base(rels::RF), check.node)
                    && late.iter().all(|(truths, pair)| leads(self, truths, pair, check.node))
            }
            _ => false,
        };
        if implied { Ok(()) } else { Err(Refused::NotImplied) }
    }

    /// The pairs of load and late write that a licence speaks of.
    fn late(&self, claim: &Licence) -> Vec<(Truths, Pair)> {
        let to = |proxy: usize| Truths {
            from: vec![sets::ANY, sets::M, sets::R, sets::GEN],
            to: vec![sets::ANY, sets::M, sets::W, proxy],
            never_from: vec![sets::IW],
            never_to: vec![sets::IW],
            never_between: vec![sets::WGMMA_ISSUE],
            same_bytes: true,
            in_order: self.in_order(),
        };
        let direct = Pair::of(PairStep::Node(claim.relation));
        let issued = Pair(vec![PairStep::Node(claim.relation), PairStep::Base(rels::ISSUE)]);
        match claim.kind {
            Kind::LateStores => vec![(to(sets::GEN), direct)],
            Kind::LateCopies => {
                vec![(to(sets::ASYNC), direct), (to(sets::ASYNC), issued.clone()), (to(sets::GEN), issued)]
            }
        }
    }

    /// Each `X` such that `irreflexive` of the node makes `rf; X` irreflexive.
    fn beside_rf(&self, node: NodeId) -> Vec<NodeId> {
        let is_rf = |n: NodeId| self.nodes[n.index()] == Node::Relation(rels::RF);
        match self.nodes[node.index()] {
            Node::Seq(a, b) if is_rf(a) => vec![b],
            Node::Seq(a, b) if is_rf(b) => vec![a],
            Node::Union(a, b) => [self.beside_rf(a), self.beside_rf(b)].concat(),
            _ => Vec::new(),
        }
    }
}

/// Whether a check refuses executions and, once it does, refuses every larger one.
fn hard(check: &Check) -> Result<(), Refused> {
    match check {
        Check { flag: true, .. } => Err(Refused::Flag),
        Check { negated: true, .. } | Check { class: Class::LeafOnly, .. } => Err(Refused::NotMonotone),
        _ => Ok(()),
    }
}
