//! Coherence as herd has it: which models order every two writes of a location, and the names of its parts.
//!
//! In PTX `co` orders only the writes that a model asks it to order. In herd it is total for each location, and a model
//! does not ask. So a model of a user has herd's `co`, unless it says itself which pairs `co` orders (a check
//! `empty A \ (co | co^-1)`), includes a shipped model, or declares `setting coherence = partial`.

use super::{Loaded, Loader};
use crate::contract::Coherence;
use crate::error::Position;
use crate::model::Model;
use crate::node::{Check, CheckKind, Class, Node, NodeId, Obligation};
use crate::vocabulary::{rels, sets};

/// The check that makes `co` total.
const NAME: &str = "co-total";

impl Loader<'_> {
    /// Settles how `co` is, and adds the check that orders every two writes to a common byte where it is total.
    pub(super) fn coherence(&mut self, file: &str, shipped: bool) -> Loaded<()> {
        let model = &mut self.model;
        if model.settings.coherence == Coherence::Asked {
            let total = !shipped && is_herds(model);
            model.settings.coherence = if total { Coherence::Total } else { Coherence::Partial };
        }
        if model.settings.coherence == Coherence::Partial || !reads_coherence(model) {
            return Ok(());
        }
        model.text.push_str("(* co is total *)\n");
        let at = Position { line: 1, column: 1 };
        let mut node = |n: Node| self.node(file, at, n);
        let (writes, loc) = (node(Node::Set(sets::W))?, node(Node::Relation(rels::LOC))?);
        let (co, id) = (node(Node::Relation(rels::CO))?, node(Node::Relation(rels::ID))?);
        let (pairs, back) = (node(Node::Cross(writes, writes))?, node(Node::Inverse(co))?);
        let (same, either) = (node(Node::Inter(pairs, loc))?, node(Node::Union(co, back))?);
        let distinct = node(Node::Diff(same, id))?;
        let open = node(Node::Diff(distinct, either))?;
        self.model.checks.push(Check {
            name: NAME.into(),
            node: open,
            kind: CheckKind::Obligation(Obligation::DemandCoherence(distinct)),
            negated: false,
            flag: false,
            class: Class::Monotone,
        });
        Ok(())
    }

    /// The internal or external part of a relation between accesses, which herd predefines: `rfe`, `coi`, ..
    pub(super) fn part(&mut self, file: &str, at: Position, name: &str) -> Loaded<Option<NodeId>> {
        let (whole, inside) = match name {
            "rfe" => (rels::RF, false),
            "rfi" => (rels::RF, true),
            "coe" => (rels::CO, false),
            "coi" => (rels::CO, true),
            "fre" => (rels::FR, false),
            "fri" => (rels::FR, true),
            _ => return Ok(None),
        };
        let build = if inside { Node::Inter } else { Node::Diff };
        let (whole, int) = (Node::Relation(whole), Node::Relation(rels::INT));
        let (whole, int) = (self.node(file, at, whole)?, self.node(file, at, int)?);
        self.node(file, at, build(whole, int)).map(Some)
    }
}

/// Whether a model of a user leaves the order of writes to the engine, as herd's models do.
fn is_herds(model: &Model) -> bool {
    let asks = |c: &Check| matches!(c.kind, CheckKind::Obligation(Obligation::DemandCoherence(_)));
    !model.checks.iter().any(asks) && !model.includes.iter().any(|i| i.found.shipped)
}

fn reads_coherence(model: &Model) -> bool {
    model.checks.iter().any(|c| model.facts[c.node.index()].on_coherence)
}
