//! Which pairs an expression contains, by its shape.
//!
//! A small prover, sound and far from complete: each rule is a law of relations that holds in every execution. It knows
//! the endpoints of a pair by the base sets they are in and not in, and the pair as one step or several, each a base
//! relation or an expression of the model.

use crate::model::Model;
use crate::node::{Node, NodeId};
use crate::vocabulary::{rels, sets};

/// One step of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairStep {
    /// In a base relation.
    Base(usize),
    /// In an expression.
    Node(NodeId),
}

/// A pair of events: the composition of these steps, at least one.
#[derive(Clone, Debug)]
pub(super) struct Pair(pub(super) Vec<PairStep>);

impl Pair {
    pub(super) fn of(step: PairStep) -> Pair {
        Pair(vec![step])
    }
}

/// What is known of the ends of a pair.
#[derive(Clone, Debug, Default)]
pub(super) struct Truths {
    /// Base sets with the first event, and with the last.
    pub(super) from: Vec<usize>,
    pub(super) to: Vec<usize>,
    /// Base sets without them.
    pub(super) never_from: Vec<usize>,
    pub(super) never_to: Vec<usize>,
    /// Base sets without the events between two steps.
    pub(super) never_between: Vec<usize>,
    /// First and last event share a byte, and no object has two names.
    pub(super) same_bytes: bool,
    /// Dependencies are between events in program order.
    pub(super) in_order: bool,
}

impl Truths {
    /// What is known of a part of a pair of several steps.
    fn part(&self, first: bool, last: bool) -> Truths {
        let ends = |own: &[usize], own_end: bool| if own_end { own.to_vec() } else { vec![sets::ANY] };
        let never = |own: &[usize], own_end: bool| if own_end { own } else { &self.never_between }.to_vec();
        Truths {
            from: ends(&self.from, first),
            to: ends(&self.to, last),
            never_from: never(&self.never_from, first),
            never_to: never(&self.never_to, last),
            never_between: self.never_between.clone(),
            same_bytes: self.same_bytes && first && last,
            in_order: self.in_order,
        }
    }
}

/// Whether an expression contains every such pair.
pub(super) fn holds(model: &Model, truths: &Truths, pair: &Pair, node: NodeId) -> bool {
    let one = |n: NodeId| holds(model, truths, pair, n);
    let from = |set: NodeId| member(model, &truths.from, &truths.never_from, set);
    let to = |set: NodeId| member(model, &truths.to, &truths.never_to, set);
    if let [step] = pair.0[..]
        && (step == PairStep::Node(node) || within(model, step, node))
    {
        return true;
    }
    let empty =
        |step: &PairStep| matches!(step, PairStep::Node(n) if model.nodes[n.index()] == Node::EmptyRelation);
    if pair.0.iter().any(empty) {
        return true;
    }
    match model.nodes[node.index()] {
        Node::Relation(r) => base(truths, pair, r),
        Node::Union(a, b) => one(a) || one(b),
        Node::Inter(a, b) => one(a) && one(b),
        Node::Diff(a, b) => one(a) && excludes(model, truths, b),
        Node::Complement(a) => excludes(model, truths, a),
        Node::Cross(a, b) => from(a) && to(b),
        Node::Seq(a, b) => match (model.nodes[a.index()], model.nodes[b.index()]) {
            (Node::Lift(set), _) if from(set) && one(b) => true,
            (_, Node::Lift(set)) if to(set) && one(a) => true,
            (Node::Star(_) | Node::Opt(_), _) if one(b) => true,
            (_, Node::Star(_) | Node::Opt(_)) if one(a) => true,
            _ => split(model, truths, pair, a, b),
        },
        Node::Plus(a) | Node::Star(a) => one(a) || split(model, truths, pair, node, node),
        Node::Opt(a) => one(a),
        Node::Fixpoint { group, member } => one(model.groups[group as usize][member as usize]),
        _ => false,
    }
}

/// Whether the transitive closure of an expression contains every such pair.
pub(super) fn leads(model: &Model, truths: &Truths, pair: &Pair, node: NodeId) -> bool {
    let closed = |step: &PairStep| match step {
        PairStep::Node(n) => match model.nodes[n.index()] {
            Node::Plus(inner) => within(model, PairStep::Node(inner), node),
            _ => within(model, *step, node),
        },
        PairStep::Base(_) => within(model, *step, node),
    };
    pair.0.iter().all(closed) || holds(model, truths, pair, node)
}

/// Whether the first steps of a pair are in one expression, and the rest in another.
fn split(model: &Model, truths: &Truths, pair: &Pair, a: NodeId, b: NodeId) -> bool {
    (1..pair.0.len()).any(|at| {
        let (first, rest) = pair.0.split_at(at);
        holds(model, &truths.part(true, false), &Pair(first.to_vec()), a)
            && holds(model, &truths.part(false, true), &Pair(rest.to_vec()), b)
    })
}

/// Whether a base relation contains every such pair.
fn base(truths: &Truths, pair: &Pair, relation: usize) -> bool {
    let shared = truths.same_bytes && matches!(relation, rels::LOC | rels::VLOC);
    let ordered = truths.in_order && relation == rels::PO;
    let dependency = |s: &PairStep| {
        matches!(s, PairStep::Base(rels::ADDR | rels::DATA | rels::CTRL | rels::CTRL_RECONV | rels::PO_LOC))
    };
    shared || (ordered && pair.0.iter().all(dependency))
}

/// Whether an expression contains none of the pairs that these truths are about.
fn excludes(model: &Model, truths: &Truths, node: NodeId) -> bool {
    let outside = |never: &[usize], set: NodeId| disjoint(model, never, set);
    match model.nodes[node.index()] {
        Node::EmptyRelation => true,
        Node::Cross(a, b) => outside(&truths.never_from, a) || outside(&truths.never_to, b),
        Node::Union(a, b) => excludes(model, truths, a) && excludes(model, truths, b),
        Node::Inter(a, b) => excludes(model, truths, a) || excludes(model, truths, b),
        Node::Diff(a, _) => excludes(model, truths, a),
        _ => false,
    }
}

/// Whether an event in some base sets, and not in others, is in a set.
fn member(model: &Model, known: &[usize], never: &[usize], set: NodeId) -> bool {
    let one = |n: NodeId| member(model, known, never, n);
    match model.nodes[set.index()] {
        Node::Set(s) => known.contains(&s),
        Node::Union(a, b) => one(a) || one(b),
        Node::Inter(a, b) => one(a) && one(b),
        Node::Diff(a, b) => one(a) && disjoint(model, never, b),
        Node::Complement(a) => disjoint(model, never, a),
        _ => false,
    }
}

/// Whether an event that is in none of some base sets is not in a set.
fn disjoint(model: &Model, never: &[usize], set: NodeId) -> bool {
    match model.nodes[set.index()] {
        Node::EmptySet => true,
        Node::Set(s) => never.contains(&s),
        Node::Union(a, b) => disjoint(model, never, a) && disjoint(model, never, b),
        Node::Inter(a, b) => disjoint(model, never, a) || disjoint(model, never, b),
        Node::Diff(a, _) => disjoint(model, never, a),
        _ => false,
    }
}

/// Whether an expression contains a base relation or another expression, whatever the events are.
pub(super) fn within(model: &Model, step: PairStep, node: NodeId) -> bool {
    let here = model.nodes[node.index()];
    let same = match step {
        PairStep::Base(r) => here == Node::Relation(r),
        PairStep::Node(n) => n == node,
    };
    if same {
        return true;
    }
    if let PairStep::Node(n) = step {
        let part = |n: NodeId| within(model, PairStep::Node(n), node);
        let lifted = |n: NodeId| matches!(model.nodes[n.index()], Node::Lift(_));
        match model.nodes[n.index()] {
            Node::EmptyRelation => return true,
            Node::Union(a, b) => return part(a) && part(b),
            Node::Inter(a, b) if part(a) || part(b) => return true,
            Node::Diff(a, _) if part(a) => return true,
            Node::Seq(a, b) if (lifted(a) && part(b)) || (lifted(b) && part(a)) => return true,
            _ => {}
        }
    }
    match here {
        Node::Union(a, b) => within(model, step, a) || within(model, step, b),
        Node::Inter(a, b) => within(model, step, a) && within(model, step, b),
        Node::Plus(a) | Node::Star(a) | Node::Opt(a) => within(model, step, a),
        _ => false,
    }
}

/// Whether an expression continues along program order: with `po` behind it, it contains no more.
pub(super) fn follows(model: &Model, node: NodeId) -> bool {
    match model.nodes[node.index()] {
        Node::EmptyRelation | Node::Relation(rels::PO) => true,
        Node::Plus(a) => within(model, PairStep::Base(rels::PO), a),
        Node::Seq(_, b) => follows(model, b),
        Node::Union(a, b) => follows(model, a) && follows(model, b),
        _ => false,
    }
}
