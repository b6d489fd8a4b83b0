//! Evaluates a model's expressions literally on one candidate, and finds its coherence orders by trying.
//!
//! Two things are tried in all ways: the order of each pair of fence.sc whose scopes include each other (`sync_fence`,
//! existential), and the direction of each pair of writes that the model wants ordered. Coherence is then the least
//! transitive relation that contains the initial writes, the chosen directions and every pair the model forces. The
//! checks are evaluated on it as they are written. (PTX ISA 9.2, 8.9.3 and 8.9.6.) An expression that the next choice
//! cannot change is evaluated once, before that choice.

use super::NaiveLimits;
use super::pairs::{Events, Pairs, members, one};
use moire_cat::vocabulary::{rels, sets};
use moire_cat::{Check, Class, Model, Node, NodeId, syntax::Property};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What one candidate supplies: sets and relations by position in the vocabulary, and its memory.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) n: usize,
    pub(super) sets: Vec<Events>,
    /// `co`, `fr`, `torn` and `sync_fence` are filled in here.
    pub(super) relations: Vec<Pairs>,
    /// Writers of each cell.
    pub(super) writers: Vec<Events>,
    /// Reads-from, cell by cell: (read, cell, source).
    pub(super) reads: Vec<(usize, usize, usize)>,
}

/// A consistent choice of orders.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub(super) co: Pairs,
    /// Positions of raised flags in `model.checks()`, with the pairs each names.
    pub(super) flags: BTreeMap<usize, BTreeSet<(usize, usize)>>,
}

#[derive(Clone, Debug)]
enum Value {
    Set(Events),
    /// Reference-counted, because a known value is read far more often than it is computed.
    Relation(Rc<Pairs>),
}

impl From<Pairs> for Value {
    fn from(pairs: Pairs) -> Self {
        Value::Relation(Rc::new(pairs))
    }
}

/// The last choice on which the value of an expression depends: none, reads-from, the fence order, coherence.
type Level = usize;
const FIXED: Level = 0;
const READS: Level = 1;
const FENCES: Level = 2;
const COHERENCE: Level = 3;

/// A model prepared for evaluation: for each expression its level, and which writes and fences must be ordered.
pub(super) struct Judge<'m> {
    model: &'m Model,
    limits: NaiveLimits,
    level: Vec<Level>,
    /// Pairs of writes, then of fences, that the model wants ordered: see [`Judge::orders`].
    coherence: Vec<(NodeId, bool)>,
    fences: Vec<(NodeId, bool)>,
    /// By node: whether it mentions a variable of a `let rec` that is still being solved.
    open: Vec<bool>,
}

/// Values already known, by node.
type Known = Vec<Option<Value>>;

impl<'m> Judge<'m> {
    pub(super) fn new(model: &'m Model, limits: NaiveLimits) -> Self {
        let nodes = model.nodes();
        let mut judge = Judge {
            model,
            limits,
            level: vec![FIXED; nodes.len()],
            coherence: vec![],
            fences: vec![],
            open: vec![false; nodes.len()],
        };
        judge.coherence = judge.orders(rels::CO);
        judge.fences = judge.orders(rels::SYNC_FENCE);
        for (i, node) in nodes.iter().enumerate() {
            let below: Vec<NodeId> = judge.operands(*node);
            let deepest = below.iter().map(|o| judge.level[o.index()]).max().unwrap_or(FIXED);
            judge.level[i] = match *node {
                Node::Relation(rels::CO | rels::FR | rels::TORN) => COHERENCE,
                Node::Relation(rels::SYNC_FENCE) => FENCES,
                Node::Relation(r) if r >= moire_cat::vocabulary::FIRST_DYNAMIC => READS,
                _ => deepest,
            };
            judge.open[i] = match *node {
                Node::Variable { .. } => true,
                Node::Fixpoint { .. } => false,
                _ => below.iter().any(|o| judge.open[o.index()]),
            };
        }
        judge
    }

    pub(super) fn model(&self) -> &'m Model {
        self.model
    }

    fn operands(&self, node: Node) -> Vec<NodeId> {
        match node {
            Node::Union(a, b)
            | Node::Inter(a, b)
            | Node::Diff(a, b)
            | Node::Seq(a, b)
            | Node::Cross(a, b) => vec![a, b],
            Node::Complement(a)
            | Node::Inverse(a)
            | Node::Plus(a)
            | Node::Star(a)
            | Node::Opt(a)
            | Node::Lift(a)
            | Node::Domain(a)
            | Node::Range(a) => vec![a],
            Node::Fixpoint { group, .. } => self.model.groups()[group as usize].clone(),
            Node::Set(_)
            | Node::Relation(_)
            | Node::EmptySet
            | Node::EmptyRelation
            | Node::Variable { .. } => vec![],
        }
    }

    /// Evaluates the expressions that are equal for all candidates with these events. [`Judge::executions`] takes them.
    pub(super) fn fixed(&self, graph: &Graph) -> Constants {
        let mut known: Known = vec![None; self.level.len()];
        for i in 0..self.level.len() {
            if self.level[i] == FIXED
                && !self.open[i]
                && !matches!(self.model.nodes()[i], Node::Variable { .. })
            {
                self.value_at(graph, &mut known, i);
            }
        }
        Constants(known)
    }

    /// Consistent executions of a candidate, one for each distinct coherence order. `tried` counts all choices of fence
    /// order and coherence; trying stops once it exceeds the limit.
    pub(super) fn executions(
        &self,
        graph: &mut Graph,
        constants: &Constants,
        tried: &mut u64,
    ) -> Vec<Execution> {
        let mut found: BTreeMap<Pairs, Execution> = BTreeMap::new();
        let mut known = constants.0.clone();
        if !self.hold(graph, &mut known, |level| level <= READS) {
            *tried += 1;
            return Vec::new();
        }
        for order in self.fence_orders(graph, &mut known) {
            graph.relations[rels::SYNC_FENCE] = order;
            let mut known = known.clone();
            self.forget(&mut known, FENCES);
            if !self.hold(graph, &mut known, |level| level == FENCES) {
                *tried += 1;
                continue;
            }
            let start = initial_order(graph);
            self.orient(graph, &mut known, start, &mut found, tried);
        }
        found.into_values().collect()
    }

    /// Whether a part of a graph passes all monotone checks under the least orders. If not, no larger graph does.
    pub(super) fn possible(&self, graph: &mut Graph, constants: &Constants) -> bool {
        let mut known = constants.0.clone();
        graph.relations[rels::SYNC_FENCE] = Pairs::none(graph.n);
        let mut co = initial_order(graph).closed();
        loop {
            if !co.irreflexive() {
                return false;
            }
            self.set_coherence(graph, &mut known, &co);
            let forced = self.coherence.iter().filter(|(_, forced)| *forced);
            let more = forced.fold(co.clone(), |all, (w, _)| all.or(&self.relation(graph, &mut known, *w)));
            let more = more.closed();
            if more == co {
                break;
            }
            co = more;
        }
        self.unbroken(graph, &mut known)
    }

    /// Whether all monotone checks pass: those that, once they fail, fail in every larger graph.
    fn unbroken(&self, graph: &Graph, known: &mut Known) -> bool {
        let stays = |c: &&Check| {
            !c.flag && c.class == Class::Monotone && matches!(c.kind, moire_cat::CheckKind::Property(_))
        };
        let mut checks = self.model.checks().iter().filter(stays);
        checks.all(|check| self.property(graph, known, check) != check.negated)
    }

    /// All transitive orders of the fence.sc pairs whose scopes include each other.
    fn fence_orders(&self, graph: &Graph, known: &mut Known) -> Vec<Pairs> {
        let fences = graph.sets[sets::MF] & graph.sets[sets::SC];
        let mut wanted = Pairs::such_that(graph.n, |a, b| {
            fences & one(a) != 0 && fences & one(b) != 0 && graph.relations[rels::SR].has(a, b)
        });
        for &(check, forced) in &self.fences {
            if !forced && self.level[check.index()] <= READS {
                wanted = wanted.or(&self.relation(graph, known, check));
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
        for check in self.model.checks() {
            let Node::Diff(wanted, allowed) = self.model.nodes()[check.node.index()] else { continue };
            if check.flag || check.negated || !is_empty_check(check) {
                continue;
            }
            let mut parts = vec![allowed];
            let (mut forward, mut backward, mut other) = (false, false, false);
            while let Some(part) = parts.pop() {
                match self.model.nodes()[part.index()] {
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
        match self.model.nodes()[node.index()] {
            Node::Plus(inner) => self.model.nodes()[inner.index()] == Node::Relation(order),
            other => other == Node::Relation(order),
        }
    }

    /// Grows `co` to the least relation the model forces, then tries both directions of an open pair.
    fn orient(
        &self,
        graph: &mut Graph,
        known: &mut Known,
        start: Pairs,
        found: &mut BTreeMap<Pairs, Execution>,
        tried: &mut u64,
    ) {
        if *tried > self.limits.judged {
            return;
        }
        let mut co = start.closed();
        loop {
            if !co.irreflexive() {
                *tried += 1;
                return;
            }
            self.set_coherence(graph, known, &co);
            let mut more = co.clone();
            for (wanted, _) in self.coherence.iter().filter(|(_, forced)| *forced) {
                more = more.or(&self.relation(graph, known, *wanted));
            }
            let more = more.closed();
            if more == co {
                break;
            }
            co = more;
        }
        if self.limits.pruned && !self.unbroken(graph, known) {
            *tried += 1;
            return;
        }
        for (wanted, _) in self.coherence.iter().filter(|(_, forced)| !*forced) {
            let wanted = self.relation(graph, known, *wanted);
            let open = wanted.iter().find(|(a, b)| a != b && !co.has(*a, *b) && !co.has(*b, *a));
            if let Some((a, b)) = open {
                for (x, y) in [(a, b), (b, a)] {
                    let mut next = co.clone();
                    next.add(x, y);
                    self.orient(graph, known, next, found, tried);
                }
                return;
            }
        }
        *tried += 1;
        self.set_coherence(graph, known, &co);
        if self.hold(graph, known, |level| level == COHERENCE) {
            let flags = self.flags(graph, known);
            let execution =
                found.entry(co.clone()).or_insert_with(|| Execution { co, flags: BTreeMap::new() });
            for (flag, pairs) in flags {
                execution.flags.entry(flag).or_default().extend(pairs);
            }
        }
    }

    /// `fr`: a read of `w` before every write of that cell after `w`. `torn`: a read that saw `w` in one cell and
    /// an older write in another cell of `w`.
    fn set_coherence(&self, graph: &mut Graph, known: &mut Known, co: &Pairs) {
        self.forget(known, COHERENCE);
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

    fn forget(&self, known: &mut Known, level: Level) {
        for (value, at) in known.iter_mut().zip(&self.level) {
            if *at >= level {
                *value = None;
            }
        }
    }

    /// Whether all checks of the chosen levels are satisfied.
    fn hold(&self, graph: &Graph, known: &mut Known, level: impl Fn(Level) -> bool) -> bool {
        let mut checks = self.model.checks().iter().filter(|c| !c.flag && level(self.level[c.node.index()]));
        checks.all(|check| self.property(graph, known, check) != check.negated)
    }

    fn property(&self, graph: &Graph, known: &mut Known, check: &Check) -> bool {
        let property = match check.kind {
            moire_cat::CheckKind::Property(p) => p,
            moire_cat::CheckKind::Obligation(_) => Property::Empty,
        };
        match (self.value(graph, known, check.node), property) {
            (Value::Set(s), _) => s == 0,
            (Value::Relation(r), Property::Empty) => r.is_empty(),
            (Value::Relation(r), Property::Acyclic) => r.acyclic(),
            (Value::Relation(r), Property::Irreflexive) => r.irreflexive(),
        }
    }

    fn flags(&self, graph: &Graph, known: &mut Known) -> BTreeMap<usize, BTreeSet<(usize, usize)>> {
        let mut out = BTreeMap::new();
        for (i, check) in self.model.checks().iter().enumerate().filter(|(_, c)| c.flag) {
            if self.property(graph, known, check) != check.negated {
                let pairs = match self.value(graph, known, check.node) {
                    Value::Relation(r) => r.iter().collect(),
                    Value::Set(s) => members(s).map(|i| (i, i)).collect(),
                };
                out.insert(i, pairs);
            }
        }
        out
    }

    fn relation(&self, graph: &Graph, known: &mut Known, node: NodeId) -> Rc<Pairs> {
        match self.value(graph, known, node) {
            Value::Relation(r) => r,
            Value::Set(s) => Rc::new(Pairs::identity(graph.n, s)),
        }
    }

    fn set(&self, graph: &Graph, known: &mut Known, node: NodeId) -> Events {
        match self.value(graph, known, node) {
            Value::Set(s) => s,
            Value::Relation(r) => members(all(graph.n)).filter(|i| r.has(*i, *i)).fold(0, |s, i| s | one(i)),
        }
    }

    fn value(&self, graph: &Graph, known: &mut Known, node: NodeId) -> Value {
        self.value_at(graph, known, node.index())
    }

    fn value_at(&self, graph: &Graph, known: &mut Known, at: usize) -> Value {
        if let Some(value) = &known[at] {
            return value.clone();
        }
        let value = self.compute(graph, known, self.model.nodes()[at]);
        if !matches!(self.model.nodes()[at], Node::Variable { .. }) {
            known[at] = Some(value.clone());
        }
        value
    }

    fn compute(&self, graph: &Graph, known: &mut Known, node: Node) -> Value {
        let n = graph.n;
        match node {
            Node::Set(s) => Value::Set(graph.sets[s]),
            Node::EmptySet => Value::Set(0),
            Node::EmptyRelation | Node::Variable { .. } => Pairs::none(n).into(),
            Node::Relation(rels::ID) => Pairs::identity(n, all(n)).into(),
            Node::Relation(r) => graph.relations[r].clone().into(),
            Node::Union(a, b) => self.both(graph, known, a, b, |a, b| a | b),
            Node::Inter(a, b) => self.both(graph, known, a, b, |a, b| a & b),
            Node::Diff(a, b) => self.both(graph, known, a, b, |a, b| a & !b),
            Node::Complement(a) => match self.value(graph, known, a) {
                Value::Set(s) => Value::Set(all(n) & !s),
                Value::Relation(r) => Pairs::of(n, |i| all(n) & !r.0[i]).into(),
            },
            Node::Seq(a, b) => {
                let a = self.relation(graph, known, a);
                a.then(&self.relation(graph, known, b)).into()
            }
            Node::Cross(a, b) => {
                let (a, b) = (self.set(graph, known, a), self.set(graph, known, b));
                Pairs::such_that(n, |x, y| a & one(x) != 0 && b & one(y) != 0).into()
            }
            Node::Inverse(a) => self.relation(graph, known, a).inverse().into(),
            Node::Plus(a) => self.relation(graph, known, a).closed().into(),
            Node::Star(a) => self.relation(graph, known, a).closed().or(&Pairs::identity(n, all(n))).into(),
            Node::Opt(a) => self.relation(graph, known, a).or(&Pairs::identity(n, all(n))).into(),
            Node::Lift(a) => Pairs::identity(n, self.set(graph, known, a)).into(),
            Node::Domain(a) => {
                let r = self.relation(graph, known, a);
                Value::Set((0..n).filter(|i| r.0[*i] != 0).fold(0, |s, i| s | one(i)))
            }
            Node::Range(a) => Value::Set(self.relation(graph, known, a).0.iter().fold(0, |s, row| s | row)),
            Node::Fixpoint { group, member } => self.least(graph, known, group, member).into(),
        }
    }

    fn both(
        &self,
        graph: &Graph,
        known: &mut Known,
        a: NodeId,
        b: NodeId,
        f: fn(Events, Events) -> Events,
    ) -> Value {
        match (self.value(graph, known, a), self.value(graph, known, b)) {
            (Value::Set(a), Value::Set(b)) => Value::Set(f(a, b)),
            (Value::Relation(a), Value::Relation(b)) => a.with(&b, f).into(),
            (a, b) => unreachable!("the loader types both sides alike: {a:?} and {b:?}"),
        }
    }

    /// The least fixpoint of a `let rec` group: starts from nothing and evaluates all bodies until nothing is new.
    fn least(&self, graph: &Graph, known: &mut Known, group: u32, member: u32) -> Pairs {
        let bodies = &self.model.groups()[group as usize];
        let mut current = vec![Pairs::none(graph.n); bodies.len()];
        loop {
            let mut scratch = known.clone();
            for (i, node) in self.model.nodes().iter().enumerate() {
                match node {
                    Node::Variable { group: g, member: m } if *g == group => {
                        scratch[i] = Some(current[*m as usize].clone().into());
                    }
                    _ if self.open[i] => scratch[i] = None,
                    _ => {}
                }
            }
            let next: Vec<Pairs> =
                bodies.iter().map(|b| (*self.relation(graph, &mut scratch, *b)).clone()).collect();
            if next == current {
                return current.swap_remove(member as usize);
            }
            current = next;
        }
    }
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

/// Values shared by all candidates with the same events.
pub(super) struct Constants(Known);

fn is_empty_check(check: &Check) -> bool {
    matches!(
        check.kind,
        moire_cat::CheckKind::Obligation(_) | moire_cat::CheckKind::Property(Property::Empty)
    )
}

/// The set of all `n` events.
pub(super) fn all(n: usize) -> Events {
    if n == 128 { !0 } else { (1 << n) - 1 }
}
