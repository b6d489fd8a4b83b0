//! The values of a model's expressions on a graph that changes by and by, evaluated as they are written.
//!
//! A candidate is a row of choices: its events, then the phases of its barriers and the histories of its mbarriers, then
//! reads-from, then the order of fences, then coherence. An expression is of the *level* of the last choice on which it depends,
//! and its value is kept until that choice, or one before it, changes. It is computed when somebody asks for it, into rows of
//! its own: candidates that share events share the values and the memory.

use super::graph::{Graph, all};
use super::pairs::{Events, close, members, one};
use moire_cat::vocabulary::{FIRST_DYNAMIC, rels};
use moire_cat::{Model, Node, NodeId};

/// The last choice on which the value of an expression depends.
pub(super) type Level = usize;
pub(super) const FIXED: Level = 0;
pub(super) const PHASES: Level = 1;
pub(super) const READS: Level = 2;
pub(super) const FENCES: Level = 3;
pub(super) const COHERENCE: Level = 4;

/// What is known of a model's expressions before there is a graph, by node.
pub(super) struct Plan<'m> {
    pub(super) model: &'m Model,
    pub(super) level: Vec<Level>,
    below: Vec<Vec<NodeId>>,
    /// Whether it mentions a variable of a `let rec` that is still being solved.
    open: Vec<bool>,
    set: Vec<bool>,
}

impl<'m> Plan<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        let nodes = model.nodes();
        let below: Vec<Vec<NodeId>> = nodes.iter().map(|node| operands(model, *node)).collect();
        let (mut level, mut open) = (vec![FIXED; nodes.len()], vec![false; nodes.len()]);
        let mut set = vec![false; nodes.len()];
        for (i, node) in nodes.iter().enumerate() {
            let deepest = below[i].iter().map(|o| level[o.index()]).max().unwrap_or(FIXED);
            level[i] = match *node {
                Node::Relation(rels::CO | rels::FR | rels::TORN) => COHERENCE,
                Node::Relation(rels::SYNC_FENCE) => FENCES,
                Node::Relation(rels::RF) => READS,
                Node::Relation(r) if r >= FIRST_DYNAMIC => PHASES,
                _ => deepest,
            };
            open[i] = match *node {
                Node::Variable { .. } => true,
                Node::Fixpoint { .. } => false,
                _ => below[i].iter().any(|o| open[o.index()]),
            };
            set[i] = match *node {
                Node::Set(_) | Node::EmptySet | Node::Domain(_) | Node::Range(_) => true,
                Node::Union(a, _) | Node::Inter(a, _) | Node::Diff(a, _) | Node::Complement(a) => {
                    set[a.index()]
                }
                _ => false,
            };
        }
        Plan { model, level, below, open, set }
    }

    /// Whether the value is a set, not a relation.
    pub(super) fn is_set(&self, node: NodeId) -> bool {
        self.set[node.index()]
    }
}

/// Direct operands of a node; for a solved fixpoint the bodies of its group.
fn operands(model: &Model, node: Node) -> Vec<NodeId> {
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
        Node::Fixpoint { group, .. } => model.groups()[group as usize].clone(),
        Node::Set(_) | Node::Relation(_) | Node::EmptySet | Node::EmptyRelation | Node::Variable { .. } => {
            vec![]
        }
    }
}

/// Values by node, for graphs with the same events.
pub(super) struct Sheet {
    /// By level: the number of its present choice.
    turn: [u64; 5],
    /// By node: the number of the choice for which its value was computed; 0 if it never was.
    known: Vec<u64>,
    sets: Vec<Events>,
    rows: Vec<Vec<Events>>,
}

impl Sheet {
    pub(super) fn new(plan: &Plan<'_>) -> Self {
        let n = plan.level.len();
        Sheet { turn: [1; 5], known: vec![0; n], sets: vec![0; n], rows: vec![Vec::new(); n] }
    }

    /// Forgets what depends on a choice that has changed.
    pub(super) fn changed(&mut self, level: Level) {
        self.turn[level..].iter_mut().for_each(|turn| *turn += 1);
    }

    /// The value of an expression that is a set.
    pub(super) fn set(&mut self, plan: &Plan<'_>, graph: &Graph, node: NodeId) -> Events {
        self.know(plan, graph, node);
        self.sets[node.index()]
    }

    /// The rows of an expression that is a relation.
    pub(super) fn relation<'s>(
        &'s mut self,
        plan: &Plan<'_>,
        graph: &'s Graph,
        node: NodeId,
    ) -> &'s [Events] {
        self.know(plan, graph, node);
        self.rows(plan, graph, node)
    }

    fn rows<'s>(&'s self, plan: &Plan<'_>, graph: &'s Graph, node: NodeId) -> &'s [Events] {
        match plan.model.nodes()[node.index()] {
            Node::Relation(r) if r != rels::ID => &graph.relations[r].0,
            _ => &self.rows[node.index()],
        }
    }

    fn know(&mut self, plan: &Plan<'_>, graph: &Graph, node: NodeId) {
        let at = node.index();
        let turn = self.turn[plan.level[at]];
        if self.known[at] == turn {
            return;
        }
        match plan.model.nodes()[at] {
            // The fixpoint that is being solved enters its value.
            Node::Variable { .. } => {}
            Node::Fixpoint { group, .. } => self.solve(plan, graph, group),
            node => {
                plan.below[at].iter().for_each(|o| self.know(plan, graph, *o));
                if plan.set[at] {
                    self.sets[at] = self.set_of(plan, graph, node);
                } else {
                    let mut out = std::mem::take(&mut self.rows[at]);
                    self.fill(plan, graph, node, &mut out);
                    self.rows[at] = out;
                }
            }
        }
        self.known[at] = turn;
    }

    /// A set, from operands that are known.
    fn set_of(&self, plan: &Plan<'_>, graph: &Graph, node: Node) -> Events {
        let set = |node: NodeId| self.sets[node.index()];
        let rows = |node: NodeId| self.rows(plan, graph, node);
        match node {
            Node::Set(s) => graph.sets[s],
            Node::Union(a, b) => set(a) | set(b),
            Node::Inter(a, b) => set(a) & set(b),
            Node::Diff(a, b) => set(a) & !set(b),
            Node::Complement(a) => all(graph.n) & !set(a),
            Node::Domain(a) => (0..graph.n).filter(|i| rows(a)[*i] != 0).fold(0, |s, i| s | one(i)),
            Node::Range(a) => rows(a).iter().fold(0, |s, row| s | row),
            Node::EmptySet => 0,
            Node::Relation(_)
            | Node::EmptyRelation
            | Node::Seq(..)
            | Node::Cross(..)
            | Node::Inverse(_)
            | Node::Plus(_)
            | Node::Star(_)
            | Node::Opt(_)
            | Node::Lift(_)
            | Node::Variable { .. }
            | Node::Fixpoint { .. } => unreachable!("the loader types it as a relation: {node:?}"),
        }
    }

    /// The rows of a relation, from operands that are known.
    fn fill(&self, plan: &Plan<'_>, graph: &Graph, node: Node, out: &mut Vec<Events>) {
        let n = graph.n;
        let set = |node: NodeId| self.sets[node.index()];
        let rows = |node: NodeId| self.rows(plan, graph, node);
        let both = |a: NodeId, b: NodeId| rows(a).iter().zip(rows(b));
        out.clear();
        match node {
            Node::Relation(rels::ID) => out.extend((0..n).map(one)),
            // Read from the graph.
            Node::Relation(_) => {}
            Node::EmptyRelation => out.resize(n, 0),
            Node::Union(a, b) => out.extend(both(a, b).map(|(a, b)| a | b)),
            Node::Inter(a, b) => out.extend(both(a, b).map(|(a, b)| a & b)),
            Node::Diff(a, b) => out.extend(both(a, b).map(|(a, b)| a & !b)),
            Node::Complement(a) => out.extend(rows(a).iter().map(|row| all(n) & !row)),
            Node::Seq(a, b) => {
                let b = rows(b);
                out.extend(rows(a).iter().map(|row| members(*row).fold(0, |out, j| out | b[j])));
            }
            Node::Cross(a, b) => out.extend((0..n).map(|i| if set(a) & one(i) == 0 { 0 } else { set(b) })),
            Node::Inverse(a) => {
                out.resize(n, 0);
                rows(a).iter().enumerate().for_each(|(i, row)| members(*row).for_each(|j| out[j] |= one(i)));
            }
            Node::Plus(a) | Node::Star(a) => {
                out.extend(rows(a));
                close(out);
                if matches!(node, Node::Star(_)) {
                    out.iter_mut().enumerate().for_each(|(i, row)| *row |= one(i));
                }
            }
            Node::Opt(a) => out.extend(rows(a).iter().enumerate().map(|(i, row)| row | one(i))),
            Node::Lift(a) => out.extend((0..n).map(|i| set(a) & one(i))),
            Node::Set(_)
            | Node::EmptySet
            | Node::Domain(_)
            | Node::Range(_)
            | Node::Variable { .. }
            | Node::Fixpoint { .. } => {
                unreachable!("the loader types it as a set, or it is solved: {node:?}")
            }
        }
    }

    /// The least fixpoint of a `let rec` group: starts from nothing and evaluates all bodies until nothing is new.
    fn solve(&mut self, plan: &Plan<'_>, graph: &Graph, group: u32) {
        let bodies = &plan.model.groups()[group as usize];
        let mut current = vec![vec![0; graph.n]; bodies.len()];
        loop {
            for (i, node) in plan.model.nodes().iter().enumerate() {
                match node {
                    Node::Variable { group: g, member } if *g == group => {
                        self.rows[i].clone_from(&current[*member as usize]);
                    }
                    _ if plan.open[i] => self.known[i] = 0,
                    _ => {}
                }
            }
            let next: Vec<Vec<Events>> =
                bodies.iter().map(|b| self.relation(plan, graph, *b).to_vec()).collect();
            if next == current {
                break;
            }
            current = next;
        }
        for (i, node) in plan.model.nodes().iter().enumerate() {
            match node {
                Node::Fixpoint { group: g, member } if *g == group => {
                    self.rows[i].clone_from(&current[*member as usize]);
                    self.known[i] = self.turn[plan.level[i]];
                }
                _ if plan.open[i] => self.known[i] = 0,
                _ => {}
            }
        }
    }
}
