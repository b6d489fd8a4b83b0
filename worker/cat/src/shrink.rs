//! Flags that communication can only take away.
//!
//! Let `rf`, `co`, `fr`, `torn` and `sync_fence` gain pairs, all else being as it is: an expression *grows* if it keeps
//! every pair it had, and *shrinks* if it gains none. A flag `~empty`, `~irreflexive` or `~acyclic` of something that
//! shrinks is never raised later, or about more pairs, than now. What is empty in the graphs asked about, whatever
//! communicates, does both and takes with it what is made of it.

use crate::model::Model;
use crate::node::{Node, NodeId};
use crate::vocabulary::rels;

/// What is known of a node; the least is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trend {
    empty: bool,
    grows: bool,
    shrinks: bool,
}

const NOTHING: Trend = Trend { empty: true, grows: true, shrinks: true };
const FIXED: Trend = Trend { empty: false, grows: true, shrinks: true };

/// Whether communication changes a base relation.
fn moves(relation: usize) -> bool {
    matches!(relation, rels::RF | rels::CO | rels::FR | rels::TORN | rels::SYNC_FENCE)
}

impl Trend {
    fn both(a: Trend, b: Trend) -> Trend {
        Trend { empty: a.empty && b.empty, grows: a.grows && b.grows, shrinks: a.shrinks && b.shrinks }
    }

    /// Of something empty as soon as one of the two is.
    fn product(a: Trend, b: Trend) -> Trend {
        if a.empty || b.empty { NOTHING } else { Trend { empty: false, ..Trend::both(a, b) } }
    }

    fn less(a: Trend, b: Trend) -> Trend {
        match (a.empty, b.empty) {
            (true, _) => NOTHING,
            (_, true) => a,
            _ => Trend { empty: false, grows: a.grows && b.shrinks, shrinks: a.shrinks && b.grows },
        }
    }
}

impl Model {
    /// Whether no flag is raised, or raised about more, because communication grows, in graphs in which the base sets
    /// and relations that are `empty` have no members. Relations that communication changes are not asked about.
    pub fn flags_shrink(&self, empty: &dyn Fn(Node) -> bool) -> bool {
        let trends = self.trends(empty);
        let mut flags = self.checks().iter().filter(|c| c.flag);
        flags.all(|c| {
            let trend = trends[c.node.index()];
            trend.shrinks && (c.negated || trend.grows)
        })
    }

    /// Greatest solution over the variables of `let rec`: what holds of a body if it holds of its variables holds of the
    /// least fixpoint, step by step.
    fn trends(&self, empty: &dyn Fn(Node) -> bool) -> Vec<Trend> {
        let mut groups: Vec<Vec<Trend>> = self.groups().iter().map(|g| vec![NOTHING; g.len()]).collect();
        loop {
            let mut trends = Vec::with_capacity(self.nodes().len());
            for node in self.nodes() {
                trends.push(trend(*node, &trends, &groups, empty));
            }
            let mut changed = false;
            for (group, bodies) in groups.iter_mut().zip(self.groups()) {
                for (known, body) in group.iter_mut().zip(bodies) {
                    let now = Trend::both(*known, trends[body.index()]);
                    changed |= now != *known;
                    *known = now;
                }
            }
            if !changed {
                return trends;
            }
        }
    }
}

fn trend(node: Node, known: &[Trend], groups: &[Vec<Trend>], empty: &dyn Fn(Node) -> bool) -> Trend {
    let of = |n: NodeId| known[n.index()];
    match node {
        Node::EmptySet | Node::EmptyRelation => NOTHING,
        Node::Relation(r) if moves(r) => Trend { empty: false, grows: true, shrinks: false },
        Node::Set(_) | Node::Relation(_) => {
            if empty(node) {
                NOTHING
            } else {
                FIXED
            }
        }
        Node::Variable { group, member } | Node::Fixpoint { group, member } => {
            groups[group as usize][member as usize]
        }
        Node::Union(a, b) => Trend::both(of(a), of(b)),
        Node::Inter(a, b) | Node::Seq(a, b) | Node::Cross(a, b) => Trend::product(of(a), of(b)),
        Node::Diff(a, b) => Trend::less(of(a), of(b)),
        Node::Complement(a) => Trend { empty: false, grows: of(a).shrinks, shrinks: of(a).grows },
        Node::Inverse(a) | Node::Plus(a) | Node::Lift(a) | Node::Domain(a) | Node::Range(a) => of(a),
        Node::Star(a) | Node::Opt(a) => Trend { empty: false, ..of(a) },
    }
}
