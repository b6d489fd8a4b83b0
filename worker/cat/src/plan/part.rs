//! The part of a plan that a universe needs.
//!
//! Most of a model is about events that a program does not have, so most expressions are empty. Which ones follows from
//! their form and from which base sets and fixed relations are empty. Universes with the same empty ones are of one
//! *kind*; the part is derived once for each kind and kept. Expressions that turn out to be empty only when they are
//! computed are left to the machine.

use super::{Plan, PlanStep};
use crate::bits;
use crate::inputs::Inputs;
use crate::model::Model;
use crate::node::{Node, NodeId, operands};
use crate::vocabulary::{FIRST_DYNAMIC, rels, sets};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most kinds of universes in the cache. When it is full, it is emptied.
const KINDS: usize = 1_024;

/// The steps of a plan that a kind of universe needs.
#[derive(Debug, Default)]
pub(crate) struct KindPlan {
    /// Nodes of the plan that are empty for every choice of the engine.
    pub(crate) empty: Vec<NodeId>,
    pub(crate) fixed: Vec<PlanStep>,
    /// For each fixed step the nodes that it is the last to use.
    pub(crate) last: Vec<Vec<NodeId>>,
    pub(crate) before: Vec<PlanStep>,
    pub(crate) with: Vec<PlanStep>,
    pub(crate) leaf: Vec<PlanStep>,
    /// Upper bound on the registers that these steps use.
    pub(crate) registers: usize,
}

/// A kind of universe: one bit for each base set and fixed relation that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    sets: u128,
    rels: u64,
}

/// The cache of parts, by kind.
#[derive(Debug, Default)]
pub(super) struct Parts(Mutex<HashMap<Kind, Arc<KindPlan>>>);

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

    /// For each node, whether it is empty for every choice of the engine. Operands come before their users.
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

    /// Whether a relation that the engine chooses is empty for every choice.
    fn never(self, relation: usize) -> bool {
        match relation {
            rels::SYNCBAR | rels::SYNC_CLUSTER | rels::SYNC_WARP | rels::RENDEZVOUS | rels::BAR_PHASE => {
                self.no(sets::B)
            }
            rels::MBAR_ORDER..=rels::MBAR_SEEN => {
                self.no(sets::MBAR) && self.no(sets::TC_ARRIVE) && self.no(sets::COPY_DONE)
            }
            _ => false,
        }
    }
}

impl Plan {
    /// The part of the plan for the kind of this universe.
    pub(crate) fn part<const W: usize>(&self, model: &Model, inputs: &Inputs<W>) -> Arc<KindPlan> {
        let kind = Kind::of(inputs);
        let mut known = self.parts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KINDS {
            known.clear();
        }
        Arc::clone(known.entry(kind).or_insert_with(|| Arc::new(self.without(model, &kind.empty(model)))))
    }

    fn without(&self, model: &Model, empty: &[bool]) -> KindPlan {
        let mut part = KindPlan::default();
        let mut rest = |steps: &[PlanStep]| -> Vec<PlanStep> {
            let left = |step: &&PlanStep| match step {
                PlanStep::Eval(node) | PlanStep::SeqUnder { node, .. } if empty[node.index()] => {
                    part.empty.push(*node);
                    false
                }
                _ => true,
            };
            steps.iter().filter(left).copied().collect()
        };
        let [fixed, before, with, leaf] =
            [&self.fixed, &self.before, &self.with, &self.leaf].map(|s| rest(s));
        // A closure of which one half is fixed has a second register, for that half.
        let groups = self.groups.iter().map(|g| g.variables.len() + 2 * g.members.len()).sum::<usize>();
        let steps = [&fixed, &before, &with, &leaf].iter().map(|steps| 2 * steps.len()).sum::<usize>();
        let registers = steps + groups;
        let last = self.last(model, &fixed, [&before, &with, &leaf].into_iter().flatten());
        KindPlan { fixed, last, before, with, leaf, registers, ..part }
    }

    /// For each fixed step the nodes that no later step uses.
    fn last<'s>(
        &self,
        model: &Model,
        fixed: &[PlanStep],
        rest: impl Iterator<Item = &'s PlanStep>,
    ) -> Vec<Vec<NodeId>> {
        let mut until: Vec<Option<usize>> = vec![None; model.nodes.len()];
        for (at, step) in fixed.iter().enumerate() {
            self.asked(model, *step, &mut |node| until[node.index()] = Some(at));
        }
        for step in rest {
            self.asked(model, *step, &mut |node| until[node.index()] = None);
        }
        let forced = self.force_co.iter().chain(&self.force_fence).map(|f| f.0);
        for node in forced.chain(self.demand_co.iter().chain(&self.demand_fence).copied()) {
            until[node.index()] = None;
        }
        let mut out = vec![Vec::new(); fixed.len()];
        for (node, at) in (0..).map(NodeId).zip(until) {
            if let Some(at) = at {
                out[at].push(node);
            }
        }
        out
    }

    /// Nodes that a step writes or reads. Operands of operands are among them, because some operations read through their
    /// operands.
    fn asked(&self, model: &Model, step: PlanStep, asked: &mut impl FnMut(NodeId)) {
        let mut whole = |node: NodeId| {
            asked(node);
            for operand in operands(model.nodes[node.index()], &model.groups) {
                asked(operand);
                operands(model.nodes[operand.index()], &model.groups).into_iter().for_each(&mut *asked);
            }
        };
        match step {
            PlanStep::Eval(node) => whole(node),
            PlanStep::SeqUnder { node, mask, a, b } => [node, mask, a, b].into_iter().for_each(whole),
            PlanStep::Solve(group) => {
                let known = &self.groups[group as usize];
                let bodies = &model.groups[group as usize];
                known.variables.iter().chain(&known.members).chain(bodies).copied().for_each(&mut whole);
                for (id, node) in (0..).map(NodeId).zip(&model.nodes) {
                    if matches!(node, Node::Fixpoint { group: g, .. } if *g == group) {
                        asked(id);
                    }
                }
            }
            PlanStep::Check(id) => whole(model.checks[id.0].node),
            PlanStep::Crossing { a, b, .. } => [a, b].into_iter().for_each(whole),
        }
    }
}
