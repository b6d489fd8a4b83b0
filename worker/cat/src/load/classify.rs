//! What is known of each expression and check: type, growth, and which obligation a check states.

use super::{CHECKS, Loaded, Loader, NODES};
use crate::error::{LoadError, Position};
use crate::node::{Check, CheckKind, Class, Facts, Node, NodeId, Obligation, Type, operands};
use crate::syntax::{Expr, Property};
use crate::vocabulary::{FIRST_DYNAMIC, rels};

impl Loader<'_> {
    pub(super) fn check(
        &mut self,
        file: &str,
        flag: bool,
        negated: bool,
        property: Property,
        expr: &Expr,
        name: Option<&str>,
    ) -> Loaded<()> {
        Self::limit(file, expr.at, self.model.checks.len(), CHECKS, "checks")?;
        let node = self.expr(file, expr)?;
        let facts = self.model.facts(node);
        if facts.ty == Type::Set && property != Property::Empty {
            return Err(LoadError::new(file, expr.at, "a set cannot be acyclic or irreflexive")
                .hint("lift it with `[ ]` or check that it is empty"));
        }
        let obligation =
            if negated || flag || property != Property::Empty { None } else { self.obligation(node) };
        let operand_grows = |o: Obligation| match o {
            Obligation::ForceCoherence(a)
            | Obligation::DemandCoherence(a)
            | Obligation::ForceFence(a)
            | Obligation::DemandFence(a) => self.model.facts(a).monotone,
        };
        let (kind, class) = match obligation {
            Some(o) if operand_grows(o) => (CheckKind::Obligation(o), Class::Monotone),
            _ if facts.monotone && !negated && !flag => (CheckKind::Property(property), Class::Monotone),
            _ => (CheckKind::Property(property), Class::LeafOnly),
        };
        let name = name.map_or_else(|| format!("check-{}", self.model.checks.len() + 1), str::to_owned);
        self.model.checks.push(Check { name, node, kind, negated, flag, class });
        Ok(())
    }

    /// Recognises `A \ co`, `A \ (co | co^-1)`, also with `id`, through `co+` and for `sync_fence`.
    fn obligation(&self, node: NodeId) -> Option<Obligation> {
        let Node::Diff(a, b) = self.model.nodes[node.index()] else { return None };
        let mut parts = Vec::new();
        self.union_parts(b, &mut parts);
        let base = |n: NodeId| match self.model.nodes[n.index()] {
            Node::Plus(inner) => self.model.nodes[inner.index()],
            other => other,
        };
        let (mut forward, mut backward, mut order) = (false, false, None);
        for part in parts {
            let (relation, inverse) = match self.model.nodes[part.index()] {
                Node::Inverse(inner) => (base(inner), true),
                Node::Relation(rels::ID) => continue,
                _ => (base(part), false),
            };
            let Node::Relation(which @ (rels::CO | rels::SYNC_FENCE)) = relation else { return None };
            if order.is_some_and(|o| o != which) {
                return None;
            }
            order = Some(which);
            forward |= !inverse;
            backward |= inverse;
        }
        match (order?, forward, backward) {
            (rels::CO, true, false) => Some(Obligation::ForceCoherence(a)),
            (rels::CO, true, true) => Some(Obligation::DemandCoherence(a)),
            (rels::SYNC_FENCE, true, false) => Some(Obligation::ForceFence(a)),
            (rels::SYNC_FENCE, true, true) => Some(Obligation::DemandFence(a)),
            _ => None,
        }
    }

    fn union_parts(&self, node: NodeId, out: &mut Vec<NodeId>) {
        if let Node::Union(a, b) = self.model.nodes[node.index()] {
            self.union_parts(a, out);
            self.union_parts(b, out);
        } else {
            out.push(node);
        }
    }

    pub(super) fn node(&mut self, file: &str, at: Position, node: Node) -> Loaded<NodeId> {
        if let Some(id) = self.known.get(&node) {
            return Ok(*id);
        }
        if self.model.nodes.len() == NODES {
            return Err(LoadError::new(file, at, format!("a model may have at most {NODES} operations")));
        }
        let facts = self.infer(node);
        let id = NodeId::at(self.model.nodes.len());
        self.model.nodes.push(node);
        self.model.facts.push(facts);
        self.known.insert(node, id);
        Ok(id)
    }

    fn infer(&self, node: Node) -> Facts {
        let of = |n: NodeId| self.model.facts[n.index()];
        let join = |a: Facts, b: Facts, ty: Type| Facts {
            ty,
            fixed: a.fixed && b.fixed,
            local: a.local && b.local,
            monotone: a.monotone && b.monotone,
            on_coherence: a.on_coherence || b.on_coherence,
            on_fence: a.on_fence || b.on_fence,
        };
        let fixed =
            |ty| Facts { ty, fixed: true, local: true, monotone: true, on_coherence: false, on_fence: false };
        let lifted = |n: NodeId| matches!(self.model.nodes[n.index()], Node::Lift(_));
        match node {
            Node::Set(_) | Node::EmptySet => fixed(Type::Set),
            Node::EmptyRelation => fixed(Type::Relation),
            Node::Relation(r) => Facts {
                ty: Type::Relation,
                fixed: r < FIRST_DYNAMIC,
                local: true,
                monotone: true,
                on_coherence: matches!(r, rels::CO | rels::FR | rels::TORN),
                on_fence: r == rels::SYNC_FENCE,
            },
            Node::Variable { .. } => Facts {
                ty: Type::Relation,
                fixed: false,
                local: false,
                monotone: true,
                on_coherence: false,
                on_fence: false,
            },
            Node::Fixpoint { group, .. } => self.model.groups[group as usize]
                .iter()
                .map(|b| Facts { fixed: self.leaves_fixed(*b), local: false, ..of(*b) })
                .reduce(|a, b| join(a, b, Type::Relation))
                .unwrap_or(fixed(Type::Relation)),
            Node::Union(a, b) | Node::Inter(a, b) => join(of(a), of(b), of(a).ty),
            Node::Diff(a, b) => {
                let joined = join(of(a), of(b), of(a).ty);
                Facts { monotone: of(a).monotone && of(b).fixed && of(b).local, ..joined }
            }
            Node::Complement(a) => Facts { monotone: of(a).fixed && of(a).local, ..of(a) },
            Node::Cross(a, b) => join(of(a), of(b), Type::Relation),
            Node::Seq(a, b) => {
                let joined = join(of(a), of(b), Type::Relation);
                Facts { local: joined.local && (lifted(a) || lifted(b)), ..joined }
            }
            Node::Inverse(a) | Node::Opt(a) => of(a),
            Node::Plus(a) | Node::Star(a) => Facts { local: false, ..of(a) },
            Node::Lift(a) => Facts { ty: Type::Relation, ..of(a) },
            Node::Domain(a) | Node::Range(a) => Facts { ty: Type::Set, local: false, ..of(a) },
        }
    }

    /// Whether a recursive body uses nothing that changes, its own variables aside.
    fn leaves_fixed(&self, node: NodeId) -> bool {
        let mut stack = vec![node];
        let mut seen = std::collections::BTreeSet::new();
        while let Some(n) = stack.pop() {
            if !seen.insert(n) {
                continue;
            }
            match self.model.nodes[n.index()] {
                Node::Relation(r) if r >= FIRST_DYNAMIC => return false,
                other => stack.extend(operands(other, &self.model.groups)),
            }
        }
        true
    }
}
