//! Judging execution graphs: the plan of a model, run on rows of bits.
//!
//! The graph an engine offers is a *universe* of events known to happen and the choices made so far (`rf`, some `co`
//! pairs, barrier phases). Expressions that no choice can change are computed once per universe by [`Evaluator::prepare`];
//! [`Evaluator::solve`] computes the rest. Checks run as soon as their operands are known, cheapest first.
//!
//! Coherence is the least transitive relation that contains the choices and meets every `empty A \ co` of the model.
//! `sync_fence` is existential: a `Partial` solve uses the least order the model forces, which every completion contains, so
//! rejecting on it is sound for monotone checks; [`Evaluator::completions`] tries every completion.
//! (PTX ISA 9.2, 8.9.3 and 8.9.6; ASPLOS 2019, section 3.)

use crate::bits::{self, Row};
use crate::load::operands;
use crate::model::{CheckId, CheckKind, Class, Model, Node, NodeId, Obligation, Type};
use crate::syntax::Property;
use crate::vocabulary::{rels, sets};
use std::collections::{BTreeMap, BTreeSet};

/// Completions of `sync_fence` tried at one leaf at most; six fences have 720.
const FENCE_ORDERS: usize = 5_040;

/// One byte range of memory with its accesses; `rf` and `fr` are per cell.
#[derive(Clone, Debug, Default)]
pub struct Cells<const W: usize> {
    /// Per cell: the writes to it that are present, the initial one included.
    pub writers: Vec<Row<W>>,
    /// (read, cell, source), present ones.
    pub reads: Vec<(u16, u16, u16)>,
}

/// Everything the engine supplies. Rows and bits at or above `n` are ignored.
#[derive(Clone, Debug)]
pub struct Inputs<const W: usize> {
    /// Events in the universe.
    pub n: usize,
    /// By position in [`crate::vocabulary::sets`].
    pub sets: Vec<Row<W>>,
    /// By position in [`crate::vocabulary::rels`]; `fr`, `torn`, `id` and `sync_fence` are computed here.
    pub rels: Vec<Vec<Row<W>>>,
    /// Memory.
    pub cells: Cells<W>,
    /// Events placed so far: only pairs of these are wanted ordered by `co`. All by default.
    pub present: Row<W>,
}

impl<const W: usize> Inputs<W> {
    /// No events; room for `64 * W`.
    pub fn new() -> Self {
        let zero = || vec![bits::empty(); 64 * W];
        Inputs {
            n: 0,
            sets: vec![bits::empty(); sets::ALL.len()],
            rels: (0..rels::ALL.len()).map(|_| zero()).collect(),
            cells: Cells::default(),
            present: [u64::MAX; W],
        }
    }
}

impl<const W: usize> Default for Inputs<W> {
    fn default() -> Self {
        Self::new()
    }
}

/// How much of the execution is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Still growing: only monotone checks count.
    Partial,
    /// Finished: every check counts, and some order of the fence.sc must work.
    Leaf,
}

/// What the model says of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Solution {
    /// A check fails; when the stage is `Partial`, here and in every larger graph.
    Violated(CheckId),
    /// The model wants these two writes ordered and they are not; branch on the direction.
    Open {
        /// The lower index.
        a: usize,
        /// The higher index.
        b: usize,
    },
    /// Nothing wrong.
    Consistent {
        /// At `Leaf`: flags raised.
        flags: Vec<CheckId>,
    },
}

/// One coherence order a finished graph may have.
#[derive(Debug)]
pub struct Completion<'a, const W: usize> {
    /// Least coherence, transitively closed.
    pub coherence: &'a [Row<W>],
    /// An order of the fence.sc that leads to it.
    pub fences: &'a [Row<W>],
    /// Flags raised under some order of the fence.sc that leads to this coherence, with the pairs each names
    /// (for a flag on a set: one row).
    pub flags: &'a [(CheckId, Vec<Row<W>>)],
}

/// How [`Evaluator::completions`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completions {
    /// `Consistent` if something was visited; its flags are those of all visits.
    pub solution: Solution,
    /// More orders of fence.sc than are tried: something may be missing.
    pub bounded: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Eval(NodeId),
    Check(CheckId),
}

/// The plan of one model and the scratch memory to run it.
#[derive(Clone, Debug)]
pub struct Evaluator<const W: usize> {
    model: std::sync::Arc<Model>,
    fixed: Vec<NodeId>,
    before_coherence: Vec<Step>,
    with_coherence: Vec<Step>,
    leaf_steps: Vec<Step>,
    force_co: Vec<(NodeId, CheckId)>,
    demand_co: Vec<NodeId>,
    force_fence: Vec<(NodeId, CheckId)>,
    demand_fence: Vec<NodeId>,
    fence_matters: bool,
    /// Rows of all nodes, `stride` each; a set is its first row.
    values: Vec<Row<W>>,
    stride: usize,
    n: usize,
    co: Vec<Row<W>>,
    fr: Vec<Row<W>>,
    torn: Vec<Row<W>>,
    fence: Vec<Row<W>>,
    fence_domain: Vec<Row<W>>,
}

impl<const W: usize> Evaluator<W> {
    /// Plans the evaluation of `model`.
    pub fn new(model: &Model) -> Self {
        let planner = Planner::new(model);
        let stride = 64 * W;
        let zero = || vec![bits::empty(); stride];
        Evaluator {
            model: std::sync::Arc::new(model.clone()),
            fixed: planner.fixed,
            before_coherence: planner.before,
            with_coherence: planner.with,
            leaf_steps: planner.leaf,
            force_co: planner.force_co,
            demand_co: planner.demand_co,
            force_fence: planner.force_fence,
            demand_fence: planner.demand_fence,
            fence_matters: planner.fence_matters,
            values: vec![bits::empty(); stride * model.nodes.len()],
            stride,
            n: 0,
            co: zero(),
            fr: zero(),
            torn: zero(),
            fence: zero(),
            fence_domain: zero(),
        }
    }

    /// Computes what no choice changes. Call after every change of the universe.
    pub fn prepare(&mut self, inputs: &Inputs<W>) {
        let model = &*std::sync::Arc::clone(&self.model);
        self.n = inputs.n;
        assert!(self.n <= self.stride, "an engine must choose a row wide enough for its events");
        for i in 0..self.fixed.len() {
            let node = self.fixed[i];
            self.eval(model, inputs, node);
        }
        let everyone = bits::first::<W>(self.n);
        let sc = bits::and(&bits::and(&inputs.sets[sets::MF], &inputs.sets[sets::SC]), &everyone);
        for i in 0..self.n {
            let row = bits::and(&inputs.rels[rels::SR][i], &sc);
            self.fence_domain[i] = if bits::has(&sc, i) { row } else { bits::empty() };
            bits::clear(&mut self.fence_domain[i], i);
        }
    }

    /// The coherence found by the last successful call.
    pub fn coherence(&self) -> &[Row<W>] {
        &self.co[..self.n]
    }

    /// The `sync_fence` used by the last call.
    pub fn fence_order(&self) -> &[Row<W>] {
        &self.fence[..self.n]
    }

    /// `fr` of the last call.
    pub fn from_read(&self) -> &[Row<W>] {
        &self.fr[..self.n]
    }

    /// The rows of a definition after the last call that returned [`Partial::Consistent`] or visited a leaf;
    /// only definitions some check uses have a value.
    pub fn rows(&self, node: NodeId) -> &[Row<W>] {
        let at = node.index() * self.stride;
        &self.values[at..at + self.n]
    }

    /// Judges a graph. On entry `co` of `inputs` holds the choices and the pairs of initial writes, transitively
    /// closed; on `Consistent` it holds the least coherence that meets the obligations of the model, and otherwise
    /// what it held before. At `Leaf` one order of the fence.sc is enough; [`Evaluator::completions`] visits every
    /// coherence such an order leads to.
    pub fn solve(&mut self, inputs: &mut Inputs<W>, stage: Stage) -> Solution {
        if stage == Stage::Leaf {
            let mut first: Option<(Vec<Row<W>>, Vec<CheckId>)> = None;
            let all = self.completions(inputs, &mut |c| {
                first.get_or_insert_with(|| (c.coherence.to_vec(), c.flags.iter().map(|f| f.0).collect()));
            });
            let Some((co, flags)) = first else { return all.solution };
            inputs.rels[rels::CO][..self.n].copy_from_slice(&co);
            return Solution::Consistent { flags };
        }
        let solution = self.partial(inputs);
        if matches!(solution, Solution::Consistent { .. }) {
            inputs.rels[rels::CO][..self.n].copy_from_slice(&self.co[..self.n]);
        }
        solution
    }

    /// Judges a growing graph and leaves `inputs` as it was; [`Evaluator::coherence`] has the least coherence.
    pub fn partial(&mut self, inputs: &Inputs<W>) -> Solution {
        let model = &*std::sync::Arc::clone(&self.model);
        for row in &mut self.fence[..self.n] {
            *row = bits::empty();
        }
        if let Err(check) = self.saturate(model, inputs) {
            return Solution::Violated(check);
        }
        match self.demanded(&inputs.present) {
            Some((a, b)) => Solution::Open { a, b },
            None => Solution::Consistent { flags: Vec::new() },
        }
    }

    /// Judges a finished graph: calls `visit` once for each distinct coherence that some order of the fence.sc leads
    /// to, in a fixed order. `inputs` is left as it was.
    pub fn completions(&mut self, inputs: &Inputs<W>, visit: &mut dyn FnMut(&Completion<'_, W>)) -> Completions {
        let model = &*std::sync::Arc::clone(&self.model);
        for row in &mut self.fence[..self.n] {
            *row = bits::empty();
        }
        let violated = self.saturate(model, inputs).err();
        let refused = violated.map(Solution::Violated).or(self.demanded(&inputs.present).map(|(a, b)| Solution::Open { a, b }));
        if let Some(solution) = refused {
            return Completions { solution, bounded: false };
        }
        let mut all = BTreeSet::new();
        let found = self.leaves(model, inputs, &mut |e, flags| {
            all.extend(flags.iter().copied());
            let flags: Vec<_> = flags.iter().map(|f| (*f, e.rows(model.checks[f.0].node).to_vec())).collect();
            visit(&Completion { coherence: e.coherence(), fences: e.fence_order(), flags: &flags });
        });
        let blame = model.checks.iter().position(|c| !c.flag).map_or(CheckId(0), CheckId);
        let solution =
            if found { Solution::Consistent { flags: all.into_iter().collect() } } else { Solution::Violated(blame) };
        Completions { solution, bounded: false }
    }

    /// Judges a finished graph: calls `visit` once for each distinct coherence some completion of `sync_fence`
    /// allows, with the flags raised under any such completion.
    fn leaves(&mut self, model: &Model, inputs: &Inputs<W>, visit: &mut dyn FnMut(&Self, &BTreeSet<CheckId>)) -> bool {
        for row in &mut self.fence[..self.n] {
            *row = bits::empty();
        }
        if self.saturate(model, inputs).is_err() || self.demanded(&inputs.present).is_some() {
            return false;
        }
        if !self.fence_matters || self.open_fence_pair().is_none() {
            let Some(flags) = self.finish(model, inputs) else { return false };
            visit(self, &flags);
            return true;
        }
        let settled = self.flags(model, inputs).is_empty() && self.total(inputs);
        let mut found: BTreeMap<Vec<Row<W>>, (BTreeSet<CheckId>, Vec<Row<W>>)> = BTreeMap::new();
        let mut tried = 0;
        self.complete(model, inputs, settled, &mut found, &mut tried);
        for (co, (flags, fence)) in &found {
            self.co[..self.n].copy_from_slice(co);
            self.fence[..self.n].copy_from_slice(fence);
            self.derive(inputs);
            visit(self, flags);
        }
        !found.is_empty()
    }

    /// Tries both directions of every undecided fence pair; stops at the first success if `settled`.
    fn complete(
        &mut self,
        model: &Model,
        inputs: &Inputs<W>,
        settled: bool,
        found: &mut BTreeMap<Vec<Row<W>>, (BTreeSet<CheckId>, Vec<Row<W>>)>,
        tried: &mut usize,
    ) {
        if (settled && !found.is_empty()) || *tried >= FENCE_ORDERS {
            return;
        }
        let before = self.fence[..self.n].to_vec();
        if self.saturate(model, inputs).is_ok() && self.demanded(&inputs.present).is_none() {
            match self.open_fence_pair() {
                Some((a, b)) => {
                    let here = self.fence[..self.n].to_vec();
                    for (x, y) in [(a, b), (b, a)] {
                        self.fence[..self.n].copy_from_slice(&here);
                        bits::insert_closed(&mut self.fence[..self.n], x, y);
                        self.complete(model, inputs, settled, found, tried);
                    }
                }
                None => {
                    *tried += 1;
                    if let Some(flags) = self.finish(model, inputs) {
                        let (co, fence) = (self.co[..self.n].to_vec(), self.fence[..self.n].to_vec());
                        found.entry(co).or_insert((BTreeSet::new(), fence)).0.extend(flags);
                    }
                }
            }
        }
        self.fence[..self.n].copy_from_slice(&before);
    }

    /// Leaf-only checks and flags under the present orders; `None` when a check fails.
    fn finish(&mut self, model: &Model, inputs: &Inputs<W>) -> Option<BTreeSet<CheckId>> {
        for i in 0..self.leaf_steps.len() {
            match self.leaf_steps[i] {
                Step::Eval(node) => self.eval(model, inputs, node),
                Step::Check(id) if !model.checks[id.0].flag => {
                    if !self.holds(model, id) {
                        return None;
                    }
                }
                Step::Check(_) => {}
            }
        }
        let raised = |e: &Self| {
            let flags = model.checks.iter().enumerate().filter(|(i, c)| c.flag && e.holds(model, CheckId(*i)));
            flags.map(|(i, _)| CheckId(i)).collect()
        };
        Some(raised(self))
    }

    fn flags(&mut self, model: &Model, inputs: &Inputs<W>) -> BTreeSet<CheckId> {
        for i in 0..self.leaf_steps.len() {
            if let Step::Eval(node) = self.leaf_steps[i] {
                self.eval(model, inputs, node);
            }
        }
        let ids = model.checks.iter().enumerate().filter(|(_, c)| c.flag).map(|(i, _)| CheckId(i));
        ids.filter(|id| self.holds(model, *id)).collect()
    }

    /// Whether coherence already orders every two writes to a common byte.
    fn total(&self, inputs: &Inputs<W>) -> bool {
        inputs.cells.writers.iter().all(|writers| {
            bits::iter(writers).all(|a| {
                bits::iter(writers).all(|b| a == b || bits::has(&self.co[a], b) || bits::has(&self.co[b], a))
            })
        })
    }

    /// Least `sync_fence` above the present one and least `co` above the choices, then every monotone check.
    fn saturate(&mut self, model: &Model, inputs: &Inputs<W>) -> Result<(), CheckId> {
        self.fences(model, inputs)?;
        self.co[..self.n].copy_from_slice(&inputs.rels[rels::CO][..self.n]);
        let everyone = bits::first::<W>(self.n);
        for row in &mut self.co[..self.n] {
            *row = bits::and(row, &everyone);
        }
        loop {
            let grown = self.force_coherence(model)?;
            self.derive(inputs);
            for i in 0..self.with_coherence.len() {
                self.step(model, inputs, self.with_coherence[i])?;
            }
            let circular = self.force_co.iter().any(|(node, _)| model.facts[node.index()].on_coherence);
            if !circular || !grown {
                return Ok(());
            }
        }
    }

    /// Runs the part before coherence until `sync_fence` holds every pair the model forces.
    fn fences(&mut self, model: &Model, inputs: &Inputs<W>) -> Result<(), CheckId> {
        loop {
            for i in 0..self.before_coherence.len() {
                self.step(model, inputs, self.before_coherence[i])?;
            }
            let mut grown = false;
            for f in 0..self.force_fence.len() {
                let (node, check) = self.force_fence[f];
                for a in 0..self.n {
                    let wanted = bits::minus(&self.values[node.index() * self.stride + a], &self.fence[a]);
                    if bits::is_empty(&wanted) {
                        continue;
                    }
                    if !bits::is_empty(&bits::minus(&wanted, &self.fence_domain[a])) {
                        return Err(check);
                    }
                    for b in bits::iter(&wanted) {
                        bits::insert_closed(&mut self.fence[..self.n], a, b);
                    }
                    grown = true;
                }
                if !bits::irreflexive(&self.fence[..self.n]) {
                    return Err(check);
                }
            }
            if !grown {
                return Ok(());
            }
        }
    }

    /// Adds the pairs the model puts into `co`; whether any was new.
    fn force_coherence(&mut self, model: &Model) -> Result<bool, CheckId> {
        let mut grown = false;
        for f in 0..self.force_co.len() {
            let (node, check) = self.force_co[f];
            debug_assert!(model.facts[node.index()].ty == Type::Relation, "obligations are relations");
            for a in 0..self.n {
                let wanted = bits::minus(&self.values[node.index() * self.stride + a], &self.co[a]);
                for b in bits::iter(&wanted) {
                    bits::insert_closed(&mut self.co[..self.n], a, b);
                    grown = true;
                }
            }
            if !bits::irreflexive(&self.co[..self.n]) {
                return Err(check);
            }
        }
        Ok(grown)
    }

    /// `fr` and `torn` from `rf` and the present `co`, cell by cell.
    fn derive(&mut self, inputs: &Inputs<W>) {
        for i in 0..self.n {
            self.fr[i] = bits::empty();
            self.torn[i] = bits::empty();
        }
        for &(read, cell, source) in &inputs.cells.reads {
            let later = bits::and(&self.co[source as usize], &inputs.cells.writers[cell as usize]);
            bits::or(&mut self.fr[read as usize], &later);
        }
        for (i, &(read, cell, source)) in inputs.cells.reads.iter().enumerate() {
            for &(other, second, older) in &inputs.cells.reads[i + 1..] {
                if other != read || older == source {
                    continue;
                }
                let (read, source, older) = (read as usize, source as usize, older as usize);
                let writers = &inputs.cells.writers;
                if bits::has(&writers[second as usize], source) && bits::has(&self.co[older], source) {
                    bits::set(&mut self.torn[read], source);
                }
                if bits::has(&writers[cell as usize], older) && bits::has(&self.co[source], older) {
                    bits::set(&mut self.torn[read], older);
                }
            }
        }
    }

    fn step(&mut self, model: &Model, inputs: &Inputs<W>, step: Step) -> Result<(), CheckId> {
        match step {
            Step::Eval(node) => {
                self.eval(model, inputs, node);
                Ok(())
            }
            Step::Check(id) if self.holds(model, id) => Ok(()),
            Step::Check(id) => Err(id),
        }
    }

    /// Whether a property check is satisfied; for flags, whether it is raised.
    fn holds(&self, model: &Model, id: CheckId) -> bool {
        let check = &model.checks[id.0];
        let at = check.node.index() * self.stride;
        let is_set = model.facts[check.node.index()].ty == Type::Set;
        let rows = &self.values[at..at + if is_set { 1 } else { self.n }];
        let property = match check.kind {
            CheckKind::Obligation(_) | CheckKind::Property(Property::Empty) => rows.iter().all(bits::is_empty),
            CheckKind::Property(Property::Acyclic) => bits::acyclic(rows),
            CheckKind::Property(Property::Irreflexive) => bits::irreflexive(rows),
        };
        property != check.negated
    }

    /// A pair of writes the model wants ordered and that is not.
    fn demanded(&self, present: &Row<W>) -> Option<(usize, usize)> {
        for node in &self.demand_co {
            for a in bits::iter(&bits::and(present, &bits::first(self.n))) {
                let open = bits::minus(&self.values[node.index() * self.stride + a], &self.co[a]);
                let open = bits::and(&open, present);
                let open = bits::iter(&open).find(|b| *b != a && !bits::has(&self.co[*b], a));
                if let Some(b) = open {
                    return Some((a.min(b), a.max(b)));
                }
            }
        }
        None
    }

    fn open_fence_pair(&self) -> Option<(usize, usize)> {
        for a in 0..self.n {
            let mut wanted = self.fence_domain[a];
            for node in &self.demand_fence {
                bits::or(&mut wanted, &self.values[node.index() * self.stride + a]);
            }
            let open = bits::minus(&wanted, &self.fence[a]);
            let open = bits::iter(&open).find(|b| *b != a && !bits::has(&self.fence[*b], a));
            if let Some(b) = open {
                return Some((a, b));
            }
        }
        None
    }

    fn eval(&mut self, model: &Model, inputs: &Inputs<W>, id: NodeId) {
        let node = model.nodes[id.index()];
        if let Node::Fixpoint { group, member } = node {
            if member == 0 {
                self.solve_group(model, inputs, group);
            }
            let body = model.groups[group as usize][member as usize];
            let (from, to) = (body.index() * self.stride, id.index() * self.stride);
            self.values.copy_within(from..from + self.n, to);
            return;
        }
        self.eval_plain(model, inputs, id, node);
    }

    fn solve_group(&mut self, model: &Model, inputs: &Inputs<W>, group: u32) {
        let bodies = &model.groups[group as usize];
        let variables: Vec<usize> = (0..bodies.len())
            .filter_map(|member| {
                let member = u32::try_from(member).ok()?;
                model.nodes.iter().position(|n| *n == Node::Variable { group, member })
            })
            .collect();
        for v in &variables {
            self.values[v * self.stride..v * self.stride + self.n].fill(bits::empty());
        }
        let members = group_nodes(model, group);
        loop {
            for node in &members {
                self.eval(model, inputs, *node);
            }
            let mut changed = false;
            for (v, body) in variables.iter().zip(bodies) {
                for i in 0..self.n {
                    let new = self.values[body.index() * self.stride + i];
                    changed |= self.values[v * self.stride + i] != new;
                    self.values[v * self.stride + i] = new;
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn eval_plain(&mut self, model: &Model, inputs: &Inputs<W>, id: NodeId, node: Node) {
        let (n, stride) = (self.n, self.stride);
        let everyone = bits::first::<W>(n);
        let is_set = model.facts[id.index()].ty == Type::Set;
        let height = if is_set { 1 } else { n };
        let (before, after) = self.values.split_at_mut(id.index() * stride);
        let out = &mut after[..height];
        let rows = |a: NodeId| &before[a.index() * stride..a.index() * stride + n];
        match node {
            Node::Set(s) => out[0] = bits::and(&inputs.sets[s], &everyone),
            Node::EmptySet | Node::EmptyRelation => out.fill(bits::empty()),
            Node::Relation(r) => {
                let source = match r {
                    rels::CO => &self.co,
                    rels::FR => &self.fr,
                    rels::TORN => &self.torn,
                    rels::SYNC_FENCE => &self.fence,
                    _ => &inputs.rels[r],
                };
                for (i, o) in out.iter_mut().enumerate() {
                    *o = if r == rels::ID { bits::empty() } else { bits::and(&source[i], &everyone) };
                    if r == rels::ID {
                        bits::set(o, i);
                    }
                }
            }
            Node::Union(a, b) | Node::Inter(a, b) | Node::Diff(a, b) => {
                let (a, b) = (&rows(a)[..height], &rows(b)[..height]);
                for (i, o) in out.iter_mut().enumerate() {
                    *o = match node {
                        Node::Union(..) => {
                            let mut row = a[i];
                            bits::or(&mut row, &b[i]);
                            row
                        }
                        Node::Inter(..) => bits::and(&a[i], &b[i]),
                        _ => bits::minus(&a[i], &b[i]),
                    };
                }
            }
            Node::Complement(a) => {
                for (o, row) in out.iter_mut().zip(rows(a)) {
                    *o = bits::minus(&everyone, row);
                }
            }
            Node::Seq(a, b) => sequence(model, (a, b), rows(a), rows(b), out),
            Node::Cross(a, b) => {
                let (from, to) = (rows(a)[0], rows(b)[0]);
                for (i, o) in out.iter_mut().enumerate() {
                    *o = if bits::has(&from, i) { to } else { bits::empty() };
                }
            }
            Node::Inverse(a) => {
                out.fill(bits::empty());
                for (i, row) in rows(a).iter().enumerate() {
                    for j in bits::iter(row) {
                        bits::set(&mut out[j], i);
                    }
                }
            }
            Node::Plus(a) | Node::Star(a) | Node::Opt(a) => {
                out.copy_from_slice(rows(a));
                if !matches!(node, Node::Opt(_)) {
                    bits::close(out);
                }
                if !matches!(node, Node::Plus(_)) {
                    for (i, o) in out.iter_mut().enumerate() {
                        bits::set(o, i);
                    }
                }
            }
            Node::Lift(a) => {
                let set = rows(a)[0];
                for (i, o) in out.iter_mut().enumerate() {
                    *o = bits::empty();
                    bits::put(o, i, bits::has(&set, i));
                }
            }
            Node::Domain(a) => {
                out[0] = bits::empty();
                for (i, row) in rows(a).iter().enumerate() {
                    bits::put(&mut out[0], i, !bits::is_empty(row));
                }
            }
            Node::Range(a) => {
                out[0] = bits::empty();
                for row in rows(a) {
                    bits::or(&mut out[0], row);
                }
            }
            Node::Variable { .. } | Node::Fixpoint { .. } => {}
        }
    }
}

/// `a ; b`, as a mask where one side is `[S]`.
fn sequence<const W: usize>(model: &Model, (a, b): (NodeId, NodeId), left: &[Row<W>], right: &[Row<W>], out: &mut [Row<W>]) {
    let lifted = |n: NodeId| matches!(model.nodes[n.index()], Node::Lift(_));
    if lifted(a) {
        for (i, o) in out.iter_mut().enumerate() {
            *o = if bits::has(&left[i], i) { right[i] } else { bits::empty() };
        }
    } else if lifted(b) {
        let mut mask = bits::empty::<W>();
        for (i, row) in right.iter().enumerate() {
            bits::put(&mut mask, i, bits::has(row, i));
        }
        for (o, row) in out.iter_mut().zip(left) {
            *o = bits::and(row, &mask);
        }
    } else {
        bits::compose(left, right, out);
    }
}

/// The nodes of a recursive group that depend on its variables, operands first.
fn group_nodes(model: &Model, group: u32) -> Vec<NodeId> {
    let mut depends = vec![false; model.nodes.len()];
    let mut out = Vec::new();
    let Some(end) = model.nodes.iter().position(|n| *n == Node::Fixpoint { group, member: 0 }) else { return out };
    for i in 0..end {
        let node = model.nodes[i];
        depends[i] = matches!(node, Node::Variable { group: g, .. } if g == group)
            || (!matches!(node, Node::Fixpoint { .. }) && operands(node, &model.groups).iter().any(|o| depends[o.index()]));
        if depends[i] && !matches!(node, Node::Variable { .. }) {
            out.push(NodeId(u32::try_from(i).unwrap_or(u32::MAX)));
        }
    }
    out
}

/// Splits the needed nodes into phases and attaches each check to the earliest place.
struct Planner {
    fixed: Vec<NodeId>,
    before: Vec<Step>,
    with: Vec<Step>,
    leaf: Vec<Step>,
    force_co: Vec<(NodeId, CheckId)>,
    demand_co: Vec<NodeId>,
    force_fence: Vec<(NodeId, CheckId)>,
    demand_fence: Vec<NodeId>,
    fence_matters: bool,
    placed: Vec<bool>,
}

impl Planner {
    fn new(model: &Model) -> Planner {
        let mut p = Planner {
            fixed: Vec::new(),
            before: Vec::new(),
            with: Vec::new(),
            leaf: Vec::new(),
            force_co: Vec::new(),
            demand_co: Vec::new(),
            force_fence: Vec::new(),
            demand_fence: Vec::new(),
            fence_matters: model.facts.iter().any(|f| f.on_fence),
            placed: vec![false; model.nodes.len()],
        };
        let mut order: Vec<usize> = (0..model.checks.len()).collect();
        order.sort_by_key(|c| (model.checks[*c].class != Class::Monotone, cost(model, model.checks[*c].node)));
        for c in order {
            p.check(model, CheckId(c));
        }
        p
    }

    fn check(&mut self, model: &Model, id: CheckId) {
        let check = &model.checks[id.0];
        let leaf = check.class == Class::LeafOnly;
        if let CheckKind::Obligation(obligation) = check.kind {
            let (Obligation::ForceCoherence(a)
            | Obligation::DemandCoherence(a)
            | Obligation::ForceFence(a)
            | Obligation::DemandFence(a)) = obligation;
            self.place(model, a, false);
            match obligation {
                Obligation::ForceCoherence(a) => self.force_co.push((a, id)),
                Obligation::DemandCoherence(a) => self.demand_co.push(a),
                Obligation::ForceFence(a) => self.force_fence.push((a, id)),
                Obligation::DemandFence(a) => self.demand_fence.push(a),
            }
            return;
        }
        self.place(model, check.node, leaf);
        let list = if leaf {
            &mut self.leaf
        } else if model.facts[check.node.index()].on_coherence {
            &mut self.with
        } else {
            &mut self.before
        };
        list.push(Step::Check(id));
    }

    fn place(&mut self, model: &Model, node: NodeId, leaf: bool) {
        if self.placed[node.index()] {
            return;
        }
        self.placed[node.index()] = true;
        let kind = model.nodes[node.index()];
        if matches!(kind, Node::Variable { .. }) {
            return;
        }
        if let Node::Fixpoint { group, member } = kind {
            for inner in outside(model, group) {
                self.place(model, inner, leaf);
            }
            if member > 0 {
                let first = model.nodes.iter().position(|n| *n == Node::Fixpoint { group, member: 0 });
                let first = first.expect("a group has a first member");
                self.place(model, NodeId(u32::try_from(first).unwrap_or(u32::MAX)), leaf);
            }
        } else {
            for operand in operands(kind, &model.groups) {
                self.place(model, operand, leaf);
            }
        }
        let facts = model.facts[node.index()];
        match (facts.fixed, leaf, facts.on_coherence) {
            (true, ..) => self.fixed.push(node),
            (_, true, _) => self.leaf.push(Step::Eval(node)),
            (_, _, true) => self.with.push(Step::Eval(node)),
            _ => self.before.push(Step::Eval(node)),
        }
    }
}

/// What a recursive group uses from outside itself.
fn outside(model: &Model, group: u32) -> BTreeSet<NodeId> {
    let inner: BTreeSet<NodeId> = group_nodes(model, group).into_iter().collect();
    let bodies = model.groups[group as usize].iter().copied();
    inner
        .iter()
        .flat_map(|n| operands(model.nodes[n.index()], &model.groups))
        .chain(bodies)
        .filter(|n| !inner.contains(n) && !matches!(model.nodes[n.index()], Node::Variable { .. }))
        .collect()
}

/// Rough price of evaluating a node and everything below it that is not fixed.
fn cost(model: &Model, node: NodeId) -> usize {
    let mut seen = BTreeSet::new();
    let mut stack = vec![node];
    let mut total = 0;
    while let Some(n) = stack.pop() {
        if !seen.insert(n) || model.facts[n.index()].fixed {
            continue;
        }
        let kind = model.nodes[n.index()];
        total += match kind {
            Node::Plus(_) | Node::Star(_) => 20,
            Node::Fixpoint { .. } => 60,
            Node::Seq(..) => 4,
            _ => 1,
        };
        stack.extend(operands(kind, &model.groups));
    }
    total
}
