//! The order in which a model is evaluated, fixed when an evaluator is made.
//!
//! Expressions fall into four phases: *fixed* (once per universe), *before* coherence (needs the choices and the
//! fence order), *with* coherence, and *leaf* (only leaf-only checks and flags need it). Within a phase checks come
//! cheapest first, each with what it needs just before it, so that a graph out of thin air is refused before any
//! closure is computed. Nothing here decides a meaning: any order gives the same answers.

use crate::model::Model;
use crate::node::{CheckId, CheckKind, Class, Node, NodeId, Obligation, group_number, operands};
use crate::syntax::Property;
use std::collections::BTreeSet;

mod part;

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanStep {
    /// Computes a node from its operands.
    Eval(NodeId),
    /// `mask & (a ; b)` without the whole composition; the value is that of the first node.
    SeqUnder { node: NodeId, mask: NodeId, a: NodeId, b: NodeId },
    /// Least fixpoint of a `let rec` group.
    Solve(u32),
    /// Judges a property.
    Check(CheckId),
    /// `irreflexive a ; b` without the composition.
    Crossing { check: CheckId, a: NodeId, b: NodeId },
}

/// The phases of a model.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) fixed: Vec<PlanStep>,
    pub(crate) before: Vec<PlanStep>,
    pub(crate) with: Vec<PlanStep>,
    pub(crate) leaf: Vec<PlanStep>,
    pub(crate) force_co: Vec<(NodeId, CheckId)>,
    pub(crate) demand_co: Vec<NodeId>,
    pub(crate) force_fence: Vec<(NodeId, CheckId)>,
    pub(crate) demand_fence: Vec<NodeId>,
    /// Flags that can only disappear when the orders grow.
    pub(crate) shrinking_flags: bool,
    /// Per `let rec` group: its variables and the nodes that depend on them, operands first.
    pub(crate) groups: Vec<Group>,
    parts: part::Parts,
}

/// A `let rec` group made ready for iteration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) variables: Vec<NodeId>,
    pub(crate) members: Vec<NodeId>,
}

impl Plan {
    pub(crate) fn new(model: &Model) -> Plan {
        let mut users = vec![0usize; model.nodes.len()];
        let below = model.nodes.iter().flat_map(|n| operands(*n, &model.groups));
        let bodies = model.groups.iter().flatten().copied();
        let checked = model.checks.iter().map(|c| c.node);
        for used in below.chain(bodies).chain(checked) {
            users[used.index()] += 1;
        }
        let groups = (0..model.groups.len()).map(|g| group(model, group_number(g))).collect();
        let mut planner = Planner {
            model,
            users,
            placed: vec![false; model.nodes.len()],
            solved: vec![false; model.groups.len()],
            plan: Plan { groups, ..Plan::default() },
        };
        let mut order: Vec<usize> = (0..model.checks.len()).collect();
        order
            .sort_by_key(|c| (model.checks[*c].class != Class::Monotone, cost(model, model.checks[*c].node)));
        for c in order {
            planner.check(CheckId(c));
        }
        let shrinks = |c: &crate::Check| shrinking(model, c.node);
        let flag =
            |c: &crate::Check| c.negated && c.kind == CheckKind::Property(Property::Empty) && shrinks(c);
        planner.plan.shrinking_flags = model.checks.iter().filter(|c| c.flag).all(flag);
        planner.plan
    }
}

struct Planner<'m> {
    model: &'m Model,
    users: Vec<usize>,
    placed: Vec<bool>,
    solved: Vec<bool>,
    plan: Plan,
}

impl Planner<'_> {
    fn check(&mut self, id: CheckId) {
        let check = &self.model.checks[id.0];
        let leaf = check.class == Class::LeafOnly;
        if let CheckKind::Obligation(obligation) = check.kind {
            match obligation {
                Obligation::ForceCoherence(a) => self.plan.force_co.push((a, id)),
                Obligation::DemandCoherence(a) => self.plan.demand_co.push(a),
                Obligation::ForceFence(a) => self.plan.force_fence.push((a, id)),
                Obligation::DemandFence(a) => self.plan.demand_fence.push(a),
            }
            self.place(obligation.pairs(), false);
            return;
        }
        let step = match (check.kind, self.model.nodes[check.node.index()]) {
            (CheckKind::Property(Property::Irreflexive), Node::Seq(a, b))
                if !check.negated && !check.flag && !self.model.facts(check.node).fixed =>
            {
                self.place(a, leaf);
                self.place(b, leaf);
                PlanStep::Crossing { check: id, a, b }
            }
            _ => {
                self.place(check.node, leaf);
                PlanStep::Check(id)
            }
        };
        self.phase(check.node, leaf, true).push(step);
    }

    fn phase(&mut self, node: NodeId, leaf: bool, is_check: bool) -> &mut Vec<PlanStep> {
        let facts = self.model.facts(node);
        match (facts.fixed && !is_check, leaf, facts.on_coherence) {
            (true, ..) => &mut self.plan.fixed,
            (_, true, _) => &mut self.plan.leaf,
            (_, _, true) => &mut self.plan.with,
            _ => &mut self.plan.before,
        }
    }

    fn place(&mut self, node: NodeId, leaf: bool) {
        if std::mem::replace(&mut self.placed[node.index()], true) {
            return;
        }
        let kind = self.model.nodes[node.index()];
        let step = match kind {
            Node::Variable { .. } => return,
            Node::Fixpoint { group, .. } => {
                if std::mem::replace(&mut self.solved[group as usize], true) {
                    return;
                }
                for inner in self.outside(group) {
                    self.place(inner, leaf);
                }
                PlanStep::Solve(group)
            }
            Node::Inter(x, y) => match (self.lone_sequence(x), self.lone_sequence(y)) {
                (_, Some((a, b))) => self.masked(node, x, (a, b), leaf),
                (Some((a, b)), _) => self.masked(node, y, (a, b), leaf),
                _ => self.plain(node, leaf),
            },
            _ => self.plain(node, leaf),
        };
        self.phase(node, leaf, false).push(step);
    }

    fn plain(&mut self, node: NodeId, leaf: bool) -> PlanStep {
        let kind = self.model.nodes[node.index()];
        let lifted = |n: NodeId| match self.model.nodes[n.index()] {
            Node::Lift(set) => Some(set),
            _ => None,
        };
        let needed = match kind {
            Node::Seq(a, b) if lifted(a).is_some() => vec![lifted(a).unwrap_or(a), b],
            Node::Seq(a, b) => vec![a, lifted(b).unwrap_or(b)],
            _ => operands(kind, &self.model.groups),
        };
        for operand in needed {
            self.place(operand, leaf);
        }
        PlanStep::Eval(node)
    }

    fn masked(&mut self, node: NodeId, mask: NodeId, (a, b): (NodeId, NodeId), leaf: bool) -> PlanStep {
        for operand in [mask, a, b] {
            self.place(operand, leaf);
        }
        PlanStep::SeqUnder { node, mask, a, b }
    }

    /// The operands of a composition that changes, stands here only and masks nothing itself.
    fn lone_sequence(&self, node: NodeId) -> Option<(NodeId, NodeId)> {
        let lifted = |n: NodeId| matches!(self.model.nodes[n.index()], Node::Lift(_));
        match self.model.nodes[node.index()] {
            Node::Seq(a, b)
                if self.users[node.index()] == 1
                    && !self.model.facts(node).fixed
                    && !lifted(a)
                    && !lifted(b) =>
            {
                Some((a, b))
            }
            _ => None,
        }
    }

    /// What a recursive group uses from outside itself.
    fn outside(&self, group: u32) -> BTreeSet<NodeId> {
        let inner: BTreeSet<NodeId> = self.plan.groups[group as usize].members.iter().copied().collect();
        let bodies = self.model.groups[group as usize].iter().copied();
        inner
            .iter()
            .flat_map(|n| operands(self.model.nodes[n.index()], &self.model.groups))
            .chain(bodies)
            .filter(|n| !inner.contains(n) && !matches!(self.model.nodes[n.index()], Node::Variable { .. }))
            .collect()
    }
}

/// The variables of a recursive group, and the nodes that depend on them, operands first.
fn group(model: &Model, group: u32) -> Group {
    let size = model.groups[group as usize].len();
    let mut variables = vec![None; size];
    let mut depends = vec![false; model.nodes.len()];
    let mut members = Vec::new();
    for (i, node) in model.nodes.iter().enumerate() {
        let id = NodeId::at(i);
        match node {
            Node::Variable { group: g, member } if *g == group => {
                variables[*member as usize] = Some(id);
                depends[i] = true;
            }
            Node::Variable { .. } | Node::Fixpoint { .. } => {}
            other => {
                depends[i] = operands(*other, &model.groups).iter().any(|o| depends[o.index()]);
                if depends[i] {
                    members.push(id);
                }
            }
        }
    }
    let needed = reachable(model, &model.groups[group as usize]);
    members.retain(|m| needed.contains(m));
    Group { variables: variables.into_iter().flatten().collect(), members }
}

fn reachable(model: &Model, from: &[NodeId]) -> BTreeSet<NodeId> {
    let mut seen = BTreeSet::new();
    let mut stack = from.to_vec();
    while let Some(n) = stack.pop() {
        if seen.insert(n) {
            stack.extend(operands(model.nodes[n.index()], &model.groups));
        }
    }
    seen
}

/// Rough price of evaluating a node and everything below it that is not fixed.
fn cost(model: &Model, node: NodeId) -> usize {
    let changing = |n: &&NodeId| !model.facts(**n).fixed;
    let price = |n: &NodeId| match model.nodes[n.index()] {
        Node::Plus(_) | Node::Star(_) => 20,
        Node::Fixpoint { .. } => 60,
        Node::Seq(..) => 4,
        _ => 1,
    };
    reachable(model, &[node]).iter().filter(changing).map(price).sum()
}

/// Whether a relation can only lose pairs when the graph grows.
fn shrinking(model: &Model, node: NodeId) -> bool {
    let facts = |n: NodeId| model.facts(n);
    match model.nodes[node.index()] {
        _ if facts(node).fixed => true,
        Node::Diff(a, b) => shrinking(model, a) && facts(b).monotone,
        Node::Complement(a) => facts(a).monotone,
        Node::Union(a, b) | Node::Inter(a, b) | Node::Seq(a, b) | Node::Cross(a, b) => {
            shrinking(model, a) && shrinking(model, b)
        }
        Node::Inverse(a) | Node::Plus(a) | Node::Star(a) | Node::Opt(a) | Node::Lift(a) => {
            shrinking(model, a)
        }
        Node::Domain(a) | Node::Range(a) => shrinking(model, a),
        _ => false,
    }
}
