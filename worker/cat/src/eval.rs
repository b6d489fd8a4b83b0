//! Judging execution graphs: the plan of a model, run on rows of bits.
//!
//! The graph an engine offers is a *universe* of events known to happen and the choices made so far (`rf`, some `co`
//! pairs, barrier phases). Expressions that no choice can change are computed once per universe by [`Evaluator::prepare`];
//! [`Evaluator::solve`] computes the rest. Checks run as soon as their operands are known, cheapest first.
//!
//! The graph judged last stays loaded, and one that only adds to it costs what it adds (`machine::advance`). An engine that
//! goes back first takes a [`Mark`] and returns to it, [`Evaluator::back`]; one that does not gets the same answers, from
//! what it has in common with the last one on (`eval::reload`). Universes an engine comes back to keep what was computed for them ([`Evaluator::enter`]).
//!
//! Coherence is the least transitive relation that contains the choices and meets every `empty A \ co` of the model.
//! `sync_fence` is existential: a `Partial` solve uses the least order the model forces, which every completion contains, so
//! rejecting on it is sound for monotone checks; [`Evaluator::completions`] tries every completion.
//! (PTX ISA 9.2, 8.9.3 and 8.9.6; ASPLOS 2019, section 3.)

use crate::bits::{self, Row};
use crate::machine::{CO, FENCE, Inst, Machine, Point};
use crate::model::Model;
use crate::node::{CheckId, NodeId, Type};
use crate::plan::Plan;
use crate::vocabulary::{rels, sets};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use crate::inputs::{Cells, Inputs, Relations};

mod idle;
mod orders;
mod reload;

/// Completions of `sync_fence` tried at one leaf at most; six fences have 720.
const FENCE_ORDERS: usize = 5_040;

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

/// The plan of one model and the scratch memory to run it.
#[derive(Clone, Debug)]
pub struct Evaluator<const W: usize> {
    model: Arc<Model>,
    plan: Arc<Plan>,
    scene: Scene<W>,
    /// Universes left for others, to come back to.
    kept: Vec<Scene<W>>,
    /// Memory for more, with nothing in it.
    idle: Vec<Scene<W>>,
    entered: u64,
    /// Graphs replaced by one that is no larger, in any universe: an epoch is of one scene.
    epochs: u64,
    watched: Vec<NodeId>,
    /// Room for what two graphs have in common.
    common: Option<Box<Inputs<W>>>,
}

/// One universe, and the graph loaded into it.
#[derive(Clone, Debug)]
struct Scene<const W: usize> {
    /// Name the engine gave it; `None` if it gave none.
    universe: Option<u64>,
    machine: Machine<W>,
    /// Morally strong fence.sc pairs, both directions.
    fence_domain: Vec<Row<W>>,
    /// What follows from nothing, and what is wrong with that.
    empty: (Point, Option<CheckId>),
    /// Graphs on the way to the one that is loaded which it shared with one before, the smallest first.
    steps: Vec<Point>,
    /// Changes whenever the graph is replaced by one that is no larger.
    epoch: u64,
    /// When it was entered last.
    entered: u64,
}

/// A graph that was judged, to come back to ([`Evaluator::mark`]).
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    universe: Option<u64>,
    epoch: u64,
    point: Point,
}

/// Words in the rows of universes that are kept, all together. A larger one is not: it costs less to compute again than
/// to have in memory.
const KEPT: usize = 200_000;

/// Distinct coherences found so far, each with its flags.
type Found<const W: usize> = BTreeMap<Vec<Row<W>>, Raised<W>>;

/// What is known of one coherence.
#[derive(Debug, Default)]
struct Raised<const W: usize> {
    fences: Vec<Row<W>>,
    flags: Vec<(CheckId, Vec<Row<W>>)>,
}

struct Search<const W: usize> {
    found: Found<W>,
    /// The first success says everything.
    settled: bool,
    tried: usize,
    blame: CheckId,
}

impl<const W: usize> Scene<W> {
    fn new(model: &Model) -> Self {
        Scene {
            universe: None,
            machine: Machine::new(model),
            fence_domain: vec![bits::empty(); 64 * W],
            empty: (Point::default(), None),
            steps: Vec::new(),
            epoch: 0,
            entered: 0,
        }
    }
}

impl<const W: usize> Evaluator<W> {
    /// Plans the evaluation of `model`.
    pub fn new(model: &Model) -> Self {
        let (shared, plan) = model.shared();
        let (mut idle, common) = idle::take(&shared);
        Evaluator {
            scene: idle.pop().unwrap_or_else(|| Scene::new(&shared)),
            model: shared,
            plan,
            kept: Vec::new(),
            idle,
            entered: 0,
            epochs: 0,
            watched: Vec::new(),
            common,
        }
    }

    /// Leaves the memory to the next evaluator of the model on this thread.
    pub fn retire(self) {
        let scenes = [self.scene].into_iter().chain(self.kept).chain(self.idle);
        idle::leave(self.model, scenes, self.common);
    }

    /// Has the values of these nodes computed although no check may need them; call it first.
    pub fn watch(&mut self, nodes: &[NodeId]) {
        self.watched = nodes.to_vec();
    }

    /// Computes what no choice changes. Call after every change of the universe, its sets or its static relations.
    pub fn prepare(&mut self, inputs: &Inputs<W>) {
        self.enter_new(None, inputs);
    }

    /// [`Self::prepare`] for a universe with a name: what was computed for it, and the graph loaded into it, are there
    /// again when it is entered again. A name must stand for one universe only.
    pub fn enter(&mut self, universe: u64, inputs: &Inputs<W>) {
        if self.scene.universe == Some(universe) {
            return;
        }
        self.entered += 1;
        if let Some(known) = self.kept.iter_mut().find(|k| k.universe == Some(universe)) {
            std::mem::swap(&mut self.scene, known);
            self.scene.entered = self.entered;
            return;
        }
        if self.scene.universe.is_some() && self.scene.machine.size() * W <= KEPT {
            self.keep();
        }
        self.enter_new(Some(universe), inputs);
    }

    /// Keeps the universe for when it is entered again. Those entered longest ago go where that is too much.
    fn keep(&mut self) {
        let mut next = None;
        while self.kept.iter().map(|k| k.machine.size()).sum::<usize>() * W > KEPT {
            let oldest = (0..self.kept.len()).min_by_key(|k| self.kept[*k].entered);
            next = oldest.map(|oldest| self.kept.swap_remove(oldest));
        }
        let next = next.or_else(|| self.idle.pop()).unwrap_or_else(|| Scene::new(&self.model));
        self.kept.push(std::mem::replace(&mut self.scene, next));
    }

    fn enter_new(&mut self, universe: Option<u64>, inputs: &Inputs<W>) {
        assert!(inputs.n <= inputs.rels.height, "an engine must make room for its events");
        let (model, plan) = (Arc::clone(&self.model), Arc::clone(&self.plan));
        let everyone = bits::first::<W>(inputs.n);
        let sc = bits::and(&bits::and(&inputs.sets[sets::MF], &inputs.sets[sets::SC]), &everyone);
        let mut any = false;
        for (i, row) in self.scene.fence_domain.iter_mut().enumerate().take(inputs.n) {
            *row = if bits::has(&sc, i) { bits::and(&inputs.rels[rels::SR][i], &sc) } else { bits::empty() };
            bits::clear(row, i);
            any |= !bits::is_empty(row);
        }
        self.scene.machine.uses_fence = any || !plan.demand_fence.is_empty();
        self.scene.machine.watched.clone_from(&self.watched);
        self.scene.machine.prepare(&model, &plan, inputs);
        (self.scene.universe, self.scene.entered) = (universe, self.entered);
        self.renew();
        self.scene.steps.clear();
        self.begin(inputs);
    }

    /// No mark of this scene that was made before is meant any more.
    fn renew(&mut self) {
        self.epochs += 1;
        self.scene.epoch = self.epochs;
    }

    /// The graph judged last, to come back to.
    pub fn mark(&self) -> Mark {
        Mark { universe: self.scene.universe, epoch: self.scene.epoch, point: self.scene.machine.point() }
    }

    /// Goes back to a graph judged before, so that the next one is judged as an addition to that. Where there was none,
    /// the one judged since stays: the next may have much in common with it.
    pub fn back(&mut self, mark: &Mark) {
        let meant = |s: &Scene<W>| (s.universe, s.epoch) == (mark.universe, mark.epoch);
        let scenes = std::iter::once(&mut self.scene).chain(&mut self.kept);
        for scene in scenes.filter(|s| meant(s) && s.empty.0 != mark.point).take(1) {
            scene.back(mark.point);
        }
    }

    /// Judges a graph. On entry `co` of `inputs` holds the choices and the pairs of initial writes; on `Consistent`
    /// it holds the least coherence that meets the obligations of the model, transitively closed, and otherwise what
    /// it held before. At `Leaf` one order of the fence.sc is enough; [`Evaluator::completions`] visits every
    /// coherence such an order leads to.
    pub fn solve(&mut self, inputs: &mut Inputs<W>, stage: Stage) -> Solution {
        if let Some(refused) = self.start(inputs) {
            return refused;
        }
        let mut flags = Vec::new();
        if stage == Stage::Leaf {
            if self.scene.machine.uses_fence && self.open_fence_pair().is_some() {
                let search = self.search(inputs, true);
                let Some((co, raised)) = search.found.into_iter().next() else {
                    return Solution::Violated(search.blame);
                };
                inputs.rels[rels::CO][..self.scene.machine.n].copy_from_slice(&co);
                return Solution::Consistent { flags: raised.flags.iter().map(|f| f.0).collect() };
            }
            if let Some(check) = self.finish() {
                return Solution::Violated(check);
            }
            self.raised(|id, _| flags.push(id));
        }
        inputs.rels[rels::CO][..self.scene.machine.n].copy_from_slice(self.scene.machine.rows(CO));
        Solution::Consistent { flags }
    }

    /// Judges a growing graph and leaves `inputs` as it was; [`Evaluator::coherence`] has the least coherence.
    pub fn partial(&mut self, inputs: &Inputs<W>) -> Solution {
        self.start(inputs).unwrap_or(Solution::Consistent { flags: Vec::new() })
    }

    /// Judges a finished graph: calls `visit` once for each distinct coherence that some order of the fence.sc leads
    /// to, in a fixed order. `inputs` is left as it was.
    pub fn completions(
        &mut self,
        inputs: &Inputs<W>,
        visit: &mut dyn FnMut(&Completion<'_, W>),
    ) -> Completions {
        if let Some(solution) = self.start(inputs) {
            return Completions { solution, bounded: false };
        }
        if !self.scene.machine.uses_fence || self.open_fence_pair().is_none() {
            if let Some(check) = self.finish() {
                return Completions { solution: Solution::Violated(check), bounded: false };
            }
            let mut flags = Vec::new();
            self.raised(|id, rows| flags.push((id, rows.to_vec())));
            let (coherence, fences) = (self.scene.machine.rows(CO), self.scene.machine.rows(FENCE));
            visit(&Completion { coherence, fences, flags: &flags });
            let flags = flags.iter().map(|f| f.0).collect();
            return Completions { solution: Solution::Consistent { flags }, bounded: false };
        }
        let search = self.search(inputs, false);
        let mut all: Vec<CheckId> = Vec::new();
        for (coherence, Raised { fences, flags }) in &search.found {
            all.extend(flags.iter().map(|f| f.0));
            visit(&Completion { coherence, fences, flags });
        }
        all.sort();
        all.dedup();
        let consistent = Solution::Consistent { flags: all };
        let solution = if search.found.is_empty() { Solution::Violated(search.blame) } else { consistent };
        Completions { solution, bounded: !search.settled && search.tried >= FENCE_ORDERS }
    }

    /// Whether a finished graph has exactly one coherence and fence order, [`Self::coherence`] and [`Self::fence_order`],
    /// with nothing wrong and no flag raised; [`Self::completions`] says more of the others. The graph stays loaded.
    /// With `judged` it is the one [`Self::partial`] found consistent just now.
    pub fn plain(&mut self, inputs: &Inputs<W>, judged: bool) -> bool {
        if (!judged && self.start(inputs).is_some())
            || (self.scene.machine.uses_fence && self.open_fence_pair().is_some())
        {
            return false;
        }
        let mut flagged = false;
        let wrong = self.finish().is_some();
        self.raised(|_, _| flagged = true);
        !wrong && !flagged
    }

    /// The flags that the graph as it is would raise if it were finished, with the pairs of each; `None` where it is
    /// refused or a pair of writes is still to be ordered. What a larger graph raises is not said.
    pub fn flags_so_far(&mut self, inputs: &Inputs<W>) -> Option<Vec<(CheckId, Vec<Row<W>>)>> {
        if self.start(inputs).is_some() {
            return None;
        }
        for i in 0..self.scene.machine.leaf.len() {
            let inst = self.scene.machine.leaf[i];
            self.scene.machine.run(&inst);
        }
        let mut flags = Vec::new();
        self.raised(|id, rows| flags.push((id, rows.to_vec())));
        Some(flags)
    }

    /// The coherence of the last call.
    pub fn coherence(&self) -> &[Row<W>] {
        self.scene.machine.rows(CO)
    }

    /// The `sync_fence` used by the last call.
    pub fn fence_order(&self) -> &[Row<W>] {
        self.scene.machine.rows(FENCE)
    }

    /// The rows of a node after the last call that found the graph consistent (a set is the first row); `None` when
    /// no check needs its value, or nobody [watches](Self::watch) it. Use [`Model::definition`] to find the node of a name.
    pub fn rows(&self, node: NodeId) -> Option<&[Row<W>]> {
        let rows = self.scene.machine.rows(self.scene.machine.register(node)?);
        Some(if self.model.facts(node).ty == Type::Set { &rows[..rows.len().min(1)] } else { rows })
    }

    /// Everything monotone under the least orders; what is wrong or undecided, if anything. A graph that is wrong is not
    /// loaded.
    fn start(&mut self, inputs: &Inputs<W>) -> Option<Solution> {
        if let Some(check) = self.scene.empty.1 {
            return Some(Solution::Violated(check));
        }
        let before = self.scene.machine.point();
        let loaded = self.scene.machine.load(inputs);
        let (from, cycle) = match loaded {
            Some(cycle) => (before, cycle),
            None => self.reload(inputs),
        };
        let wrong = if cycle {
            Some(self.plan.force_co.first().map_or(CheckId(0), |f| f.1))
        } else {
            self.saturate().err()
        };
        if let Some(check) = wrong {
            self.scene.back(from);
            return Some(Solution::Violated(check));
        }
        self.demanded(&inputs.present).map(|(a, b)| Solution::Open { a, b })
    }

    fn search(&mut self, inputs: &Inputs<W>, first_only: bool) -> Search<W> {
        let mut search = Search { found: BTreeMap::new(), settled: first_only, tried: 0, blame: CheckId(0) };
        self.complete(inputs, &mut search);
        search
    }

    /// Tries both directions of every undecided pair; stops at the first success if that says everything.
    fn complete(&mut self, inputs: &Inputs<W>, search: &mut Search<W>) {
        if (search.settled && !search.found.is_empty()) || (!search.settled && search.tried >= FENCE_ORDERS) {
            return;
        }
        if let Err(check) = self.saturate() {
            search.blame = check;
            return;
        }
        if !search.settled && self.decided(inputs) {
            let mut first = Search { found: BTreeMap::new(), settled: true, tried: 0, blame: search.blame };
            self.complete(inputs, &mut first);
            search.tried += 1;
            search.blame = first.blame;
            for (co, raised) in first.found {
                search.found.entry(co).or_insert(raised);
            }
            return;
        }
        let here = self.scene.machine.point();
        let (order, (a, b)) = if let Some(pair) = self.open_fence_pair() {
            (FENCE, pair)
        } else if let Some(pair) = self.demanded(&inputs.present) {
            (CO, pair)
        } else {
            search.tried += 1;
            match self.finish() {
                Some(check) => search.blame = check,
                None => self.record(search),
            }
            return;
        };
        for (x, y) in [(a, b), (b, a)] {
            self.scene.machine.insert(order, x, y);
            self.complete(inputs, search);
            self.scene.machine.back(here);
        }
    }

    /// Whether every completion of the present orders has the same coherence and raises no flag.
    fn decided(&mut self, inputs: &Inputs<W>) -> bool {
        let mut flagged = false;
        if self.plan.shrinking_flags && self.total(inputs) && self.finish().is_none() {
            self.raised(|_, _| flagged = true);
            return !flagged;
        }
        false
    }

    fn record(&self, search: &mut Search<W>) {
        let fences = || Raised { fences: self.scene.machine.rows(FENCE).to_vec(), flags: Vec::new() };
        let known = search.found.entry(self.scene.machine.rows(CO).to_vec()).or_insert_with(fences);
        let known = &mut known.flags;
        self.raised(|id, rows| match known.iter_mut().find(|(k, _)| *k == id) {
            Some((_, all)) => all.iter_mut().zip(rows).for_each(|(a, b)| bits::or(a, b)),
            None => known.push((id, rows.to_vec())),
        });
        known.sort_by_key(|f| f.0);
    }

    /// What is judged at a leaf only, under the present orders; the check that fails.
    fn finish(&mut self) -> Option<CheckId> {
        if let Some(check) = self.unmet_fence() {
            return Some(check);
        }
        for i in 0..self.scene.machine.leaf.len() {
            let inst = self.scene.machine.leaf[i];
            match inst {
                Inst::Check { id, .. } if self.model.checks[id.0].flag => {}
                _ => {
                    if let Some(check) = self.scene.machine.run(&inst) {
                        return Some(check);
                    }
                }
            }
        }
        None
    }

    /// The flags raised, with their rows; a flag is raised when its property holds.
    fn raised(&self, mut each: impl FnMut(CheckId, &[Row<W>])) {
        for inst in &self.scene.machine.leaf {
            let Inst::Check { id, property, negated, at, set } = *inst else { continue };
            if self.model.checks[id.0].flag && self.scene.machine.holds(property, negated, at, set) {
                each(id, self.scene.machine.rows(at));
            }
        }
    }
}
