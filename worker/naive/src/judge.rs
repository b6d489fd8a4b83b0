//! Evaluates a model's expressions literally on one candidate, and finds its coherence orders by trying.
//!
//! Two things are tried in all ways: the order of each pair of fence.sc whose scopes include each other (`sync_fence`,
//! existential), and the direction of each pair of writes that the model wants ordered. Coherence is then the least
//! transitive relation that contains the initial writes, the chosen directions and every pair the model forces. The
//! checks are evaluated on it as they are written. (PTX ISA 9.2, 8.9.3 and 8.9.6.) An expression that the next choice
//! cannot change is evaluated once, before that choice.

use super::NaiveLimits;
use super::graph::Graph;
use super::pairs::{Events, Pairs, acyclic, irreflexive, members, one};
use super::sheet::{COHERENCE, FENCES, Level, PHASES, Plan, READS, Sheet};
use moire_cat::vocabulary::{rels, sets};
use moire_cat::{Check, Class, Model, Node, NodeId, syntax::Property};
use std::collections::{BTreeMap, BTreeSet};

/// A consistent choice of orders.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub(super) co: Pairs,
    /// Positions of raised flags in `model.checks()`, with the pairs each names.
    pub(super) flags: BTreeMap<usize, BTreeSet<(usize, usize)>>,
}

/// A model prepared for evaluation: which checks there are at each level, and which writes and fences must be ordered.
pub(super) struct Judge<'m> {
    plan: Plan<'m>,
    limits: NaiveLimits,
    /// Checks that are no flags, by level.
    checks: Vec<&'m Check>,
    /// Pairs of writes, then of fences, that the model wants ordered: see [`Judge::orders`].
    coherence: Vec<(NodeId, bool)>,
    fences: Vec<(NodeId, bool)>,
}

impl<'m> Judge<'m> {
    pub(super) fn new(model: &'m Model, limits: NaiveLimits) -> Self {
        let plan = Plan::new(model);
        let mut checks: Vec<&Check> = model.checks().iter().filter(|c| !c.flag).collect();
        checks.sort_by_key(|c| plan.level[c.node.index()]);
        let mut judge = Judge { plan, limits, checks, coherence: vec![], fences: vec![] };
        judge.coherence = judge.orders(rels::CO);
        judge.fences = judge.orders(rels::SYNC_FENCE);
        judge
    }

    pub(super) fn model(&self) -> &'m Model {
        self.plan.model
    }

    /// Values of the model's expressions, none of them known yet.
    pub(super) fn sheet(&self) -> Sheet {
        Sheet::new(&self.plan)
    }

    /// Whether the checks pass that no choice of sources or orders can change. `sheet` knows nothing of other phases.
    pub(super) fn begins(&self, graph: &Graph, sheet: &mut Sheet) -> bool {
        self.hold(graph, sheet, |level| level <= PHASES)
    }

    /// Consistent executions of a candidate that [`Judge::begins`], one for each distinct coherence order. `tried` counts all
    /// choices of fence order and coherence; trying stops once it exceeds the limit.
    pub(super) fn executions(&self, graph: &mut Graph, sheet: &mut Sheet, tried: &mut u64) -> Vec<Execution> {
        let mut found: BTreeMap<Pairs, Execution> = BTreeMap::new();
        sheet.changed(READS);
        if !self.hold(graph, sheet, |level| level == READS) {
            *tried += 1;
            return Vec::new();
        }
        for order in self.fence_orders(graph, sheet) {
            graph.relations[rels::SYNC_FENCE] = order;
            sheet.changed(FENCES);
            if !self.hold(graph, sheet, |level| level == FENCES) {
                *tried += 1;
                continue;
            }
            let start = initial_order(graph);
            self.orient(graph, sheet, start, &mut found, tried);
        }
        found.into_values().collect()
    }

    /// Whether a part of a graph passes all monotone checks under the least orders. If not, no larger graph does.
    pub(super) fn possible(&self, graph: &mut Graph, sheet: &mut Sheet) -> bool {
        sheet.changed(READS);
        graph.relations[rels::SYNC_FENCE] = Pairs::none(graph.n);
        let start = initial_order(graph);
        self.least(graph, sheet, start).is_some() && self.unbroken(graph, sheet)
    }

    /// The least coherence order that contains `co` and all that the model forces, entered into the graph. `None`: it has a cycle.
    fn least(&self, graph: &mut Graph, sheet: &mut Sheet, co: Pairs) -> Option<Pairs> {
        let mut co = co.closed();
        while co.irreflexive() {
            self.set_coherence(graph, sheet, &co);
            let mut more = co.clone();
            for (wanted, _) in self.coherence.iter().filter(|(_, forced)| *forced) {
                let wanted = sheet.relation(&self.plan, graph, *wanted);
                more.0.iter_mut().zip(wanted).for_each(|(row, wanted)| *row |= wanted);
            }
            let more = more.closed();
            if more == co {
                return Some(co);
            }
            co = more;
        }
        None
    }

    /// Whether all monotone checks pass: those that, once they fail, fail in every larger graph.
    fn unbroken(&self, graph: &Graph, sheet: &mut Sheet) -> bool {
        let stays =
            |c: &&&Check| c.class == Class::Monotone && matches!(c.kind, moire_cat::CheckKind::Property(_));
        let mut checks = self.checks.iter().filter(stays);
        checks.all(|check| self.property(graph, sheet, check) != check.negated)
    }

    /// All transitive orders of the fence.sc pairs whose scopes include each other.
    fn fence_orders(&self, graph: &Graph, sheet: &mut Sheet) -> Vec<Pairs> {
        let fences = graph.sets[sets::MF] & graph.sets[sets::SC];
        let mut wanted = Pairs::of(graph.n, |a| {
            if fences & one(a) == 0 { 0 } else { graph.relations[rels::SR].0[a] & fences }
        });
        for &(check, forced) in &self.fences {
            if !forced && self.plan.level[check.index()] <= READS {
                let check = sheet.relation(&self.plan, graph, check);
                wanted.0.iter_mut().zip(check).for_each(|(row, more)| *row |= more);
            }
        }
        let pairs: Vec<(usize, usize)> = wanted.or(&wanted.inverse()).iter().filter(|(a, b)| a < b).collect();
        let mut orders = vec![Pairs::none(graph.n)];
        for (a, b) in pairs {
            let mut longer = Vec::new();
            for order in &orders {
                for (x, y) in [(a, b), (b, a)] {
                    let mut next = order.clone();
                    next.add(x, y);
                    let next = next.closed();
                    if next.irreflexive() {
                        longer.push(next);
                    }
                }
            }
            longer.sort();
            longer.dedup();
            orders = longer;
        }
        orders
    }

    /// Left sides of checks `empty A \ order` (forced) and `empty A \ (order | order^-1)` (either direction).
    fn orders(&self, order: usize) -> Vec<(NodeId, bool)> {
        let mut out = Vec::new();
        for check in self.model().checks() {
            let Node::Diff(wanted, allowed) = self.model().nodes()[check.node.index()] else { continue };
            if check.flag || check.negated || !is_empty_check(check) {
                continue;
            }
            let mut parts = vec![allowed];
            let (mut forward, mut backward, mut other) = (false, false, false);
            while let Some(part) = parts.pop() {
                match self.model().nodes()[part.index()] {
                    Node::Union(a, b) => parts.extend([a, b]),
                    Node::Relation(rels::ID) => {}
                    Node::Inverse(inner) if self.is_order(inner, order) => backward = true,
                    _ if self.is_order(part, order) => forward = true,
                    _ => other = true,
                }
            }
            if forward && !other {
                out.push((wanted, !backward));
            }
        }
        out
    }

    /// Whether a node is the relation `order` or its transitive closure.
    fn is_order(&self, node: NodeId, order: usize) -> bool {
        match self.model().nodes()[node.index()] {
            Node::Plus(inner) => self.model().nodes()[inner.index()] == Node::Relation(order),
            other => other == Node::Relation(order),
        }
    }

    /// Grows `co` to the least relation the model forces, then tries both directions of an open pair.
    fn orient(
        &self,
        graph: &mut Graph,
        sheet: &mut Sheet,
        start: Pairs,
        found: &mut BTreeMap<Pairs, Execution>,
        tried: &mut u64,
    ) {
        if *tried > self.limits.judged {
            return;
        }
        let Some(co) = self.least(graph, sheet, start) else {
            *tried += 1;
            return;
        };
        if self.limits.pruned && !self.unbroken(graph, sheet) {
            *tried += 1;
            return;
        }
        for (wanted, _) in self.coherence.iter().filter(|(_, forced)| !*forced) {
            let wanted = pairs(sheet.relation(&self.plan, graph, *wanted));
            let open = wanted.into_iter().find(|(a, b)| a != b && !co.has(*a, *b) && !co.has(*b, *a));
            if let Some((a, b)) = open {
                for (x, y) in [(a, b), (b, a)] {
                    let mut next = co.clone();
                    next.add(x, y);
                    self.orient(graph, sheet, next, found, tried);
                }
                return;
            }
        }
        *tried += 1;
        if self.hold(graph, sheet, |level| level == COHERENCE) {
            let flags = self.flags(graph, sheet);
            let execution =
                found.entry(co.clone()).or_insert_with(|| Execution { co, flags: BTreeMap::new() });
            for (flag, pairs) in flags {
                execution.flags.entry(flag).or_default().extend(pairs);
            }
        }
    }

    /// `fr`: a read of `w` before every write of that cell after `w`. `torn`: a read that saw `w` in one cell and
    /// an older write in another cell of `w`.
    fn set_coherence(&self, graph: &mut Graph, sheet: &mut Sheet, co: &Pairs) {
        sheet.changed(COHERENCE);
        let (mut fr, mut torn) = (Pairs::none(graph.n), Pairs::none(graph.n));
        for &(read, cell, source) in &graph.reads {
            fr.0[read] |= co.0[source] & graph.writers[cell];
            for &(other, second, older) in &graph.reads {
                if other == read
                    && older != source
                    && graph.writers[second] & one(source) != 0
                    && co.has(older, source)
                {
                    torn.add(read, source);
                }
            }
        }
        graph.relations[rels::CO] = co.clone();
        graph.relations[rels::FR] = fr;
        graph.relations[rels::TORN] = torn;
    }

    /// Whether all checks of the chosen levels are satisfied.
    fn hold(&self, graph: &Graph, sheet: &mut Sheet, level: impl Fn(Level) -> bool) -> bool {
        let mut checks = self.checks.iter().filter(|c| level(self.plan.level[c.node.index()]));
        checks.all(|check| self.property(graph, sheet, check) != check.negated)
    }

    fn property(&self, graph: &Graph, sheet: &mut Sheet, check: &Check) -> bool {
        let property = match check.kind {
            moire_cat::CheckKind::Property(p) => p,
            moire_cat::CheckKind::Obligation(_) => Property::Empty,
        };
        if self.plan.is_set(check.node) {
            return sheet.set(&self.plan, graph, check.node) == 0;
        }
        let rows = sheet.relation(&self.plan, graph, check.node);
        match property {
            Property::Empty => rows.iter().all(|row| *row == 0),
            Property::Acyclic => acyclic(rows),
            Property::Irreflexive => irreflexive(rows),
        }
    }

    fn flags(&self, graph: &Graph, sheet: &mut Sheet) -> BTreeMap<usize, BTreeSet<(usize, usize)>> {
        let mut out = BTreeMap::new();
        for (i, check) in self.model().checks().iter().enumerate().filter(|(_, c)| c.flag) {
            if self.property(graph, sheet, check) != check.negated {
                let named = if self.plan.is_set(check.node) {
                    members(sheet.set(&self.plan, graph, check.node)).map(|i| (i, i)).collect()
                } else {
                    pairs(sheet.relation(&self.plan, graph, check.node)).into_iter().collect()
                };
                out.insert(i, named);
            }
        }
        out
    }
}

/// All pairs in ascending order.
fn pairs(rows: &[Events]) -> Vec<(usize, usize)> {
    rows.iter().enumerate().flat_map(|(i, row)| members(*row).map(move |j| (i, j))).collect()
}

/// Initial writes come first.
fn initial_order(graph: &Graph) -> Pairs {
    let mut order = Pairs::none(graph.n);
    for writers in &graph.writers {
        for i in members(writers & graph.sets[sets::IW]) {
            order.0[i] |= writers & !graph.sets[sets::IW];
        }
    }
    order
}

fn is_empty_check(check: &Check) -> bool {
    matches!(
        check.kind,
        moire_cat::CheckKind::Obligation(_) | moire_cat::CheckKind::Property(Property::Empty)
    )
}
