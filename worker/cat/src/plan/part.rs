//! The part of a plan that a universe needs.
//!
//! Most of a model is about events a program does not have. Which expressions are empty for that reason is told by their
//! form and by which base sets and fixed relations are empty; it is found out once for each such *kind* of universe, and
//! kept. What turns out to be empty only when it is computed is the machine's business.

use super::{Plan, Step};
use crate::bits;
use crate::eval::Inputs;
use crate::model::{Model, Node, NodeId};
use crate::vocabulary::{FIRST_DYNAMIC, rels, sets};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Kinds of universes that are kept; beyond it all are forgotten.
const KINDS: usize = 1_024;

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Nodes of the plan that are empty whatever is chosen.
    pub(crate) empty: Vec<NodeId>,
    pub(crate) fixed: Vec<Step>,
    pub(crate) before: Vec<Step>,
    pub(crate) with: Vec<Step>,
    pub(crate) leaf: Vec<Step>,
}

/// Base sets and fixed relations that are not empty, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    sets: u128,
    rels: u64,
}

/// The parts known.
#[derive(Debug, Default)]
pub(super) struct Parts(Mutex<HashMap<Kind, Arc<Part>>>);

const _: () = assert!(sets::ALL.len() <= 128 && FIRST_DYNAMIC <= 64, "a kind has a bit for each");

impl Kind {
    fn of<const W: usize>(inputs: &Inputs<W>) -> Self {
        let everyone = bits::first::<W>(inputs.n);
        let some = |row: &bits::Row<W>| !bits::is_empty(&bits::and(row, &everyone));
        let sets = (0..sets::ALL.len()).fold(0, |all, s| all | u128::from(some(&inputs.sets[s])) << s);
        let any = |r: usize| inputs.rels[r][..inputs.n].iter().any(some);
        let rels =
            (0..FIRST_DYNAMIC).filter(|r| *r != rels::ID).fold(0, |all, r| all | u64::from(any(r)) << r);
        Kind { sets, rels }
    }

    fn no(self, set: usize) -> bool {
        self.sets >> set & 1 == 0
    }

    /// By node, whether it is empty whatever is chosen. Operands come before their users.
    fn empty(self, model: &Model) -> Vec<bool> {
        let mut out: Vec<bool> = Vec::with_capacity(model.nodes.len());
        for node in &model.nodes {
            let of = |n: NodeId| out.get(n.index()).copied().unwrap_or(false);
            let empty = match *node {
                Node::EmptySet | Node::EmptyRelation => true,
                Node::Set(s) => self.no(s),
                Node::Relation(rels::ID) => false,
                Node::Relation(r) if r >= FIRST_DYNAMIC => self.never(r),
                Node::Relation(r) => self.rels >> r & 1 == 0,
                Node::Union(a, b) => of(a) && of(b),
                Node::Inter(a, b) | Node::Seq(a, b) | Node::Cross(a, b) => of(a) || of(b),
                Node::Diff(a, _)
                | Node::Inverse(a)
                | Node::Plus(a)
                | Node::Lift(a)
                | Node::Domain(a)
                | Node::Range(a) => of(a),
                Node::Complement(_)
                | Node::Star(_)
                | Node::Opt(_)
                | Node::Variable { .. }
                | Node::Fixpoint { .. } => false,
            };
            out.push(empty);
        }
        out
    }

    /// Whether nothing can come into a relation of the engine's choices.
    fn never(self, relation: usize) -> bool {
        match relation {
            rels::SYNCBAR | rels::SYNC_CLUSTER | rels::SYNC_WARP | rels::BAR_PHASE => self.no(sets::B),
            rels::MBAR_ORDER..=rels::MBAR_SEEN => {
                self.no(sets::MBAR) && self.no(sets::TC_ARRIVE) && self.no(sets::COPY_DONE)
            }
            _ => false,
        }
    }
}

impl Plan {
    /// What of the plan a universe of the kind of this one needs.
    pub(crate) fn part<const W: usize>(&self, model: &Model, inputs: &Inputs<W>) -> Arc<Part> {
        let kind = Kind::of(inputs);
        let mut known = self.parts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KINDS {
            known.clear();
        }
        Arc::clone(known.entry(kind).or_insert_with(|| Arc::new(self.without(&kind.empty(model)))))
    }

    fn without(&self, empty: &[bool]) -> Part {
        let mut part = Part::default();
        let mut rest = |steps: &[Step]| -> Vec<Step> {
            let left = |step: &&Step| match step {
                Step::Eval(node) | Step::SeqUnder { node, .. } if empty[node.index()] => {
                    part.empty.push(*node);
                    false
                }
                _ => true,
            };
            steps.iter().filter(left).copied().collect()
        };
        let [fixed, before, with, leaf] =
            [&self.fixed, &self.before, &self.with, &self.leaf].map(|s| rest(s));
        Part { fixed, before, with, leaf, ..part }
    }
}
