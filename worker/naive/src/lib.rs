//! The naive enumerator: every candidate execution of a program, judged one by one.
//!
//! Slow and obvious on purpose, as a witness for the explorer. Each thread is run on its own over the values memory
//! could hold. Every combination of paths, sources and barrier phases is formed. Each is judged by evaluating the
//! model's expressions on sets of pairs.
//!
//! An execution must be *constructible*: reads-from, dependencies and passed barriers have no cycle. Every shipped
//! model implies the part about dependencies.
//!
//! # What is shared with the explorer
//!
//! - The program with its tables: the IR, which registers an instruction reads, must know and writes
//!   ([`moire_program::registers`]), and the cells of tensor memory that an instruction touches ([`moire_program::tensor`]).
//! - The model as it was read: its expressions, checks and settings, and the names of base sets and relations
//!   ([`moire_cat::Model`], [`moire_cat::vocabulary`]). The evaluator is not shared.
//! - The words of an execution: leaf keys, flags and which registers are observed ([`moire_execution::leaf`]), the numbering
//!   of tensor-memory columns ([`moire_execution::columns`]), what no engine models ([`moire_execution::unmodelled`]), and the dependencies that are
//!   none ([`moire_execution::settled`]).
//!
//! Nothing else. Events, dependencies, live registers, points where branches meet, footprints, arithmetic, barriers,
//! mbarriers, allocators, program order and coherence are derived here with own code.

mod access;
mod allocator;
mod answer;
mod arith;
mod barriers;
mod body;
mod book;
mod choices;
mod combos;
mod compute;
mod copies;
mod deed;
mod effect;
mod event;
mod exchange;
mod flow;
mod graph;
mod history;
mod judge;
mod lanes;
mod literal;
mod mbarrier;
mod motion;
mod operands;
mod pairs;
mod proxies;
mod scene;
mod seize;
mod sheet;
mod space;
mod state;
mod tags;
mod tensor;
mod tile;
mod waits;

use allocator::Readings;
use barriers::{Phases, Scene};
use choices::{Choices, Known, Pruning, Slot};
use combos::{Amounts, Combos};
use event::{Barrier, Event, Path, Refusal, Stop};
use exchange::Pool;
use graph::Graph;
use history::{Histories, Meaning, Orders, histories};
use judge::{Execution, Judge};
use moire_cat::Model;
use moire_cat::contract::{
    Control, Deallocation, ExitedLanes, FailedCas, MaskedLanes, PairRelease, WideAccesses, YieldedTokens,
};
use moire_cat::vocabulary::{rels, sets};
use moire_execution::leaf::{LeafFacts, LeafKey, seen_registers};
use moire_execution::{settled, unmodelled};
use moire_program::ir::Program;
use pairs::{Pairs, members, one};
use scene::Scenery;
use sheet::{PHASES, Sheet};
use space::Memory;
use state::{Domain, Paths, Rules, Runner};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::rc::Rc;

/// Limits of one enumeration: how many of each it looks at before it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NaiveLimits {
    /// Candidates: sources of all reads, times barrier phases, times orders of writes.
    pub candidates: u64,
    /// Combinations of one path for each thread.
    pub combinations: u64,
    /// Paths of one thread.
    pub paths: usize,
    /// How often one instruction may jump backwards on a path; the explorer has the same limit.
    pub loop_bound: u32,
    /// Final states of one execution.
    pub outcomes: usize,
    /// Executions.
    pub leaves: u64,
    /// Whether to leave out sources of reads that cannot be completed to an execution (see `choices`). Such sources
    /// still count as candidates; orders of writes count only if they are tried.
    pub pruned: bool,
    /// Candidates and parts of candidates that are judged, and combinations of paths.
    pub judged: u64,
    /// A mistake to make on purpose.
    pub planted: Option<Planted>,
}

/// Something is left out that could still become an execution. Tests plant it: a comparison of engines is evidence only if it
/// finds each of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A value is not there if no path that is chosen writes it, whatever other threads may still write.
    NobodyElse,
    /// An object has to work before the last of its threads has a path.
    Unready,
    /// What was judged for some phases is taken to hold for others.
    Stale,
}

impl Default for NaiveLimits {
    fn default() -> Self {
        NaiveLimits {
            candidates: 20_000,
            combinations: 400_000,
            paths: 4_000,
            loop_bound: 2,
            outcomes: 4_096,
            leaves: u64::MAX,
            pruned: false,
            judged: u64::MAX,
            planted: None,
        }
    }
}

/// The reason why the enumerator gives no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Skip {
    /// A limit was reached.
    #[error("too many {0} for the naive enumerator")]
    TooMany(&'static str),
    /// The program has a construct that the enumerator does not model.
    #[error("{0} is not supported")]
    Unsupported(String),
}

/// Counts of one enumeration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NaiveSummary {
    /// All candidates; when pruned, orders of writes that were not tried are not counted.
    pub candidates: u64,
    /// Candidates, parts of candidates and combinations of paths that were judged.
    pub judged: u64,
    /// Consistent executions, complete or blocked.
    pub leaves: u64,
    /// Whether some path was cut at the loop bound.
    pub cut: bool,
}

/// Leaves by key.
pub type Leaves = BTreeMap<LeafKey, LeafFacts>;

/// Every execution of `program` that `model` admits.
///
/// # Errors
/// Those of [`enumerate`].
pub fn leaves(
    program: &Program,
    model: &Model,
    limits: &NaiveLimits,
) -> Result<(Leaves, NaiveSummary), Skip> {
    let mut leaves = Leaves::new();
    let summary = enumerate(program, model, limits, &mut |facts| {
        leaves.insert(facts.key.clone(), facts);
        ControlFlow::Continue(())
    })?;
    Ok((leaves, summary))
}

/// Visits every execution of `program` that `model` admits. Lanes that are not joined are threads.
pub fn enumerate(
    program: &Program,
    model: &Model,
    limits: &NaiveLimits,
    visitor: &mut dyn FnMut(LeafFacts) -> ControlFlow<()>,
) -> Result<NaiveSummary, Skip> {
    let program = &literal::literal(program);
    if let Some((what, _)) = unmodelled(program, model) {
        return Err(Skip::Unsupported(what));
    }
    let program = settled(program, model);
    let search = Search::new(&program, model, *limits)?;
    search.all(visitor)?;
    Ok(search.summary.get())
}

/// Counts the candidates of `program` before orders of writes multiply them. Nothing is judged.
pub fn weigh(program: &Program, model: &Model, limits: &NaiveLimits) -> Result<u64, Skip> {
    let program = &literal::literal(program);
    if let Some((what, _)) = unmodelled(program, model) {
        return Err(Skip::Unsupported(what));
    }
    let program = settled(program, model);
    let search = Search { weighs: true, ..Search::new(&program, model, *limits)? };
    search.all(&mut |_| ControlFlow::Continue(()))?;
    Ok(search.summary.get().candidates)
}

impl From<Refusal> for Skip {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooMany(what) => Skip::TooMany(what),
            Refusal::Unsupported(what) => Skip::Unsupported(what),
        }
    }
}

/// A path of one thread; for a spin, all paths that have the same events before it.
struct Variant {
    path: Path,
    /// For a spin: the paths, one for each way through a failing iteration.
    failing: Vec<Path>,
    /// Number of the shape: equal for paths that differ in values only.
    shape: usize,
    needs: BTreeSet<(usize, u128)>,
    gives: BTreeSet<(usize, u128)>,
}

struct Search<'a> {
    program: &'a Program,
    limits: NaiveLimits,
    memory: Memory<'a>,
    judge: Judge<'a>,
    control_meets: bool,
    readings: Readings,
    summary: Cell<NaiveSummary>,
    /// Only counts the candidates.
    weighs: bool,
}

/// By shapes of the paths: what all candidates of these shapes have in common.
type Shapes = BTreeMap<Vec<usize>, (Graph, RefCell<Sheet>, Known)>;

impl<'a> Search<'a> {
    fn new(program: &'a Program, model: &'a Model, limits: NaiveLimits) -> Result<Self, Skip> {
        let settings = model.settings();
        let memory = Memory::new(program).ok_or(Skip::TooMany("cells of memory"))?;
        if u16::try_from(memory.instances.len()).is_err() {
            return Err(Skip::TooMany("copies of objects"));
        }
        Ok(Search {
            program,
            limits,
            memory,
            judge: Judge::new(model, limits),
            control_meets: settings.control == Control::Reconverges,
            readings: Readings {
                alone: settings.pair_release != PairRelease::Together,
                together: settings.pair_release != PairRelease::Alone,
                partly: settings.deallocation == Deallocation::Parts,
                exited: settings.exited_lanes == ExitedLanes::Awaited,
            },
            summary: Cell::default(),
            weighs: false,
        })
    }

    fn all(&self, visitor: &mut dyn FnMut(LeafFacts) -> ControlFlow<()>) -> Result<(), Skip> {
        let variants = self.variants()?;
        let mut shapes = Shapes::new();
        let mut combos = Combos::new(&variants, self.scene(), &self.limits);
        for combo in combos.all()? {
            let chosen: Vec<&Variant> = combo.iter().zip(&variants).map(|(i, v)| &v[*i]).collect();
            let amounts = combos.amounts(&combo)?;
            if self.candidate(&chosen, &amounts, &mut shapes, visitor)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// All paths of all threads, over a domain of values that grows round by round. A value computed in `n` steps from
    /// others is there after `n` rounds, and an acyclic execution has no more steps than writes.
    fn variants(&self) -> Result<Vec<Vec<Variant>>, Skip> {
        let settings = self.judge.model().settings();
        let rules = Rules {
            wide_whole: settings.wide_accesses == WideAccesses::Whole,
            failed_cas_writes: settings.failed_cas == FailedCas::WritesBack,
            both_arms: settings.yielded_tokens == YieldedTokens::OfBoth,
            masks: settings.masked_lanes == MaskedLanes::Untouched,
            loop_bound: self.limits.loop_bound,
            paths: self.limits.paths,
        };
        let threads = 0..self.program.threads.len();
        let flows: Vec<flow::Flow> = threads
            .clone()
            .map(|t| flow::Flow::new(&self.program.threads[t], &seen_registers(self.program, t)))
            .collect();
        let mut domain: Domain =
            (0..self.memory.cells.len()).map(|c| BTreeSet::from([self.memory.initial(c)])).collect();
        let mut pool = Pool::new();
        for round in 0.. {
            let mut all: Vec<Paths> = Vec::new();
            for thread in threads.clone() {
                let (program, memory, flow) = (self.program, &self.memory, &flows[thread]);
                all.push(
                    Runner { program, memory, thread, flow, domain: &domain, pool: &pool, rules }.run()?,
                );
            }
            let before = (domain.clone(), pool.clone());
            let mut writes = 0;
            for (thread, paths) in all.iter().enumerate() {
                let gives = |e: &Event| e.is(sets::W) || e.is(sets::COLLECTIVE);
                let written = |events: &Vec<Rc<Event>>| events.iter().filter(|e| gives(e)).count();
                for event in paths.events().flatten() {
                    if let Some(Barrier::Exchange { circle, gift, .. }) = event.barrier {
                        pool.entry((thread, circle)).or_default().insert(gift);
                    }
                }
                writes += paths.events().map(written).max().unwrap_or(0);
                for event in paths.events().flatten().filter(|e| e.is(sets::W)) {
                    event.cells.iter().for_each(|(cell, value)| {
                        domain[*cell].insert(*value);
                    });
                }
            }
            if (&domain, &pool) == (&before.0, &before.1) || round > writes {
                self.note(|s| s.cut = all.iter().any(|p| !p.cut.is_empty()));
                return Ok(self.group(all));
            }
        }
        unreachable!("the number of writes bounds the rounds")
    }

    fn group(&self, all: Vec<Paths>) -> Vec<Vec<Variant>> {
        all.into_iter().map(|paths| group(paths.paths)).collect()
    }

    /// All executions with these paths.
    fn candidate(
        &self,
        chosen: &[&Variant],
        (ways, orders): &Amounts,
        shapes: &mut Shapes,
        visitor: &mut dyn FnMut(LeafFacts) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Skip> {
        let paths: Vec<&Path> = chosen.iter().map(|v| &v.path).collect();
        let all_phases = self.scene().phases(&paths, ways)?;
        self.judged(1 + all_phases.len() as u64)?;
        if let Some(weight) = self.weight(&paths, &all_phases) {
            self.count(weight)?;
            return Ok(ControlFlow::Continue(()));
        }
        let too_many = Skip::TooMany("events of an execution");
        let scenery = Scenery::new(self.program, &self.memory, &paths, false).ok_or(too_many)?;
        let shape: Vec<usize> = chosen.iter().map(|v| v.shape).collect();
        // Different orders on mbarriers may lead to one key.
        let mut found: BTreeMap<LeafKey, LeafFacts> = BTreeMap::new();
        let (graph, sheet, known) = shapes.entry(shape).or_insert_with(|| {
            let graph = scenery.graph(self.memory.cells.len());
            (graph, RefCell::new(self.judge.sheet()), Known::default())
        });
        let todo = self.stages(chosen, (&paths, orders), (&scenery, graph), &all_phases)?;
        for (phases, past) in &todo {
            scenery.set_phases(graph, phases);
            let meant: Vec<&Meaning> = past.values().map(|history| history.meaning()).collect();
            scenery.set_histories(graph, &meant);
            let needs = scenery.needs(graph, phases, &paths, self.control_meets);
            let needs = needs.or(&scenery.answered(&meant, graph.n));
            let reads = slots(&scenery, 0..scenery.nodes.len());
            let sources = self.sources(&scenery, graph, &reads);
            self.count(choices::total(&sources))?;
            if self.limits.planted != Some(Planted::Stale) {
                sheet.borrow_mut().changed(PHASES);
            }
            if self.weighs || !self.judge.begins(graph, &mut sheet.borrow_mut()) {
                continue;
            }
            let known = (phases.phase.is_empty() && past.is_empty()).then_some(&mut *known);
            let mut picks = self.choices((&*graph, sheet, &needs), known, &reads, &sources);
            while let Some(pick) = picks.next() {
                enter_reads(graph, &reads, &pick);
                if !graph.relations[rels::RF].or(&needs).acyclic() {
                    continue;
                }
                let mut tried = 0;
                let executions = self.judge.executions(graph, &mut sheet.borrow_mut(), &mut tried);
                self.judged(tried)?;
                self.count(tried.saturating_sub(1))?;
                for execution in executions {
                    if !self.hangs(chosen, (phases, past), &pick, &execution)? {
                        continue;
                    }
                    let facts = self.facts(&scenery, &paths, (phases, past), graph, &execution);
                    match found.get_mut(&facts.key) {
                        Some(known) => known.flags.extend(facts.flags),
                        None => drop(found.insert(facts.key.clone(), facts)),
                    }
                }
                if self.summary.get().leaves + found.len() as u64 > self.limits.leaves {
                    return Err(Skip::TooMany("executions"));
                }
            }
            self.judged(picks.judged)?;
        }
        for facts in found.into_values() {
            self.note(|s| s.leaves += 1);
            if visitor(facts).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn scene(&self) -> Scene<'_> {
        Scene { program: self.program, memory: &self.memory, readings: self.readings }
    }

    /// The number of candidates with these paths, if it is known without forming them: there is none, or candidates are
    /// only counted and differ in reads-from alone.
    fn weight(&self, paths: &[&Path], all_phases: &[Phases]) -> Option<u64> {
        if all_phases.is_empty() || !self.weighs {
            return all_phases.is_empty().then_some(0);
        }
        let apart = |e: &Event| e.barrier.is_some() || e.count.is_some() || e.seizes.is_some();
        let events: Vec<(usize, usize, &Event)> = paths
            .iter()
            .enumerate()
            .flat_map(|(t, p)| p.kept().iter().enumerate().map(move |(i, e)| (t, i, &**e)))
            .collect();
        if all_phases.len() != 1 || events.iter().any(|(.., e)| apart(e)) {
            return None;
        }
        let writes: Vec<_> = events.iter().filter(|(.., e)| e.is(sets::W)).collect();
        let sources = |t: usize, i: usize, slot: &(usize, u128)| {
            let other = |(u, _, w): &&&(usize, usize, &Event)| {
                let own = *u == t && w.reads_first.is_some_and(|(read, _)| read == i);
                !own && w.cells.contains(slot)
            };
            let initial = u64::from(self.memory.initial(slot.0) == slot.1);
            initial + writes.iter().filter(other).count() as u64
        };
        let reads = events.iter().filter(|(.., e)| e.is(sets::R));
        let ways = reads.flat_map(|(t, i, e)| e.cells.iter().map(move |slot| (*t, *i, slot)));
        Some(ways.fold(1, |n: u64, (t, i, slot)| n.saturating_mul(sources(t, i, slot))))
    }

    /// Phases, each with every history of the mbarriers in which no events wait for each other in a cycle.
    fn stages<'p>(
        &self,
        chosen: &[&Variant],
        (paths, orders): (&[&Path], &Orders),
        (scenery, graph): (&Scenery<'_>, &Graph),
        all_phases: &'p [Phases],
    ) -> Result<Vec<(&'p Phases, Histories)>, Skip> {
        let combos = failing(chosen);
        let mut out = Vec::new();
        for phases in all_phases {
            let needs = scenery.needs(graph, phases, paths, self.control_meets);
            // Events that wait for each other in a cycle cannot happen, whatever is read. Nor can a loop go on after
            // an answer that ends it.
            let possible = |past: &Histories| {
                if !combos.iter().any(|paths| ask_on(past, paths)) {
                    return false;
                }
                let meant: Vec<&Meaning> = past.values().map(|history| history.meaning()).collect();
                needs.or(&scenery.answered(&meant, graph.n)).acyclic()
            };
            out.extend(histories(orders, &possible)?.into_iter().map(|past| (phases, past)));
        }
        Ok(out)
    }

    /// The combinations of sources to be judged.
    fn choices<'c>(
        &'c self,
        (graph, sheet, needs): (&Graph, &'c RefCell<Sheet>, &'c Pairs),
        known: Option<&'c mut Known>,
        slots: &'c [Slot],
        sources: &'c [Vec<usize>],
    ) -> Choices<'c> {
        if !self.limits.pruned {
            return Choices::all(sources);
        }
        let left = self.limits.judged - self.summary.get().judged;
        let (judge, graph) = (&self.judge, graph.clone());
        Choices::pruned(sources, Pruning { judge, sheet, needs, slots, graph, known, left })
    }

    fn note(&self, what: impl FnOnce(&mut NaiveSummary)) {
        let mut summary = self.summary.get();
        what(&mut summary);
        self.summary.set(summary);
    }

    fn judged(&self, more: u64) -> Result<(), Skip> {
        self.note(|s| s.judged = s.judged.saturating_add(more));
        if self.summary.get().judged > self.limits.judged {
            return Err(Skip::TooMany("candidates left to judge"));
        }
        Ok(())
    }

    fn count(&self, more: u64) -> Result<(), Skip> {
        self.note(|s| s.candidates = s.candidates.saturating_add(more));
        if self.summary.get().candidates > self.limits.candidates {
            Err(Skip::TooMany("candidates"))
        } else {
            Ok(())
        }
    }

    /// For each read and cell: the writes of the value read.
    fn sources(&self, scenery: &Scenery<'_>, graph: &Graph, reads: &[Slot]) -> Vec<Vec<usize>> {
        let value =
            |w: usize, cell: usize| scenery.nodes[w].cells.iter().find(|(c, _)| *c == cell).map(|(_, v)| *v);
        let own = |r: usize, w: usize| graph.relations[rels::RMW].has(r, w);
        reads
            .iter()
            .map(|(r, cell, wanted)| {
                members(graph.writers[*cell])
                    .filter(|w| value(*w, *cell) == Some(*wanted) && !own(*r, *w))
                    .collect()
            })
            .collect()
    }

    /// For a blocked execution: whether all spinning threads can fail once more, reading only what is last in
    /// coherence. True for executions without spinning threads.
    fn hangs(
        &self,
        chosen: &[&Variant],
        (phases, past): (&Phases, &Histories),
        pick: &[usize],
        leaf: &Execution,
    ) -> Result<bool, Skip> {
        if chosen.iter().all(|v| v.failing.is_empty()) {
            return Ok(true);
        }
        for paths in failing(chosen) {
            let Some(asked) = asked_in_vain(past, &paths) else { continue };
            let meant: Vec<&Meaning> = asked.values().map(|history| history.meaning()).collect();
            let too_many = Skip::TooMany("events of an execution");
            let scenery = Scenery::new(self.program, &self.memory, &paths, true).ok_or(too_many)?;
            let mut graph = scenery.graph(self.memory.cells.len());
            let mut sheet = self.judge.sheet();
            scenery.set_phases(&mut graph, phases);
            scenery.set_histories(&mut graph, &meant);
            let needs = scenery.needs(&graph, phases, &paths, self.control_meets);
            let needs = needs.or(&scenery.answered(&meant, graph.n));
            let reads = slots(&scenery, 0..scenery.nodes.len());
            let (old, new): (Vec<_>, Vec<_>) = reads.iter().copied().partition(|r| r.0 < scenery.base);
            let writers = graph.writers.clone();
            let last = |co: &Pairs, cell: usize, w: usize| co.0[w] & writers[cell] == 0;
            let sources: Vec<Vec<usize>> = self
                .sources(&scenery, &graph, &new)
                .into_iter()
                .zip(&new)
                .map(|(s, (_, cell, _))| s.into_iter().filter(|w| last(&leaf.co, *cell, *w)).collect())
                .collect();
            self.count(choices::total(&sources))?;
            if !self.judge.begins(&graph, &mut sheet) {
                continue;
            }
            let mut picks = Choices::all(&sources);
            while let Some(more) = picks.next() {
                enter_reads(&mut graph, &old, pick);
                let mut fresh = graph.clone();
                add_reads(&mut fresh, &new, &more);
                if !fresh.relations[rels::RF].or(&needs).acyclic() {
                    continue;
                }
                let mut tried = 0;
                for e in self.judge.executions(&mut fresh, &mut sheet, &mut tried) {
                    let extends = leaf.co.iter().all(|(a, b)| e.co.has(a, b));
                    if extends && new.iter().zip(&more).all(|((_, cell, _), w)| last(&e.co, *cell, *w)) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

/// The chosen paths, in every combination of failing iterations of the spinning threads.
fn failing<'v>(chosen: &[&'v Variant]) -> Vec<Vec<&'v Path>> {
    let mut combos: Vec<Vec<&Path>> = vec![vec![]];
    for variant in chosen {
        let options: Vec<&Path> =
            if variant.failing.is_empty() { vec![&variant.path] } else { variant.failing.iter().collect() };
        let longer = combos
            .iter()
            .flat_map(|c| options.iter().map(move |o| c.iter().copied().chain([*o]).collect::<Vec<_>>()));
        combos = longer.collect();
    }
    combos
}

/// Whether the mbarriers whose history is known give the answers that the failing iterations assume.
fn ask_on(past: &Histories, paths: &[&Path]) -> bool {
    let mut now = past.clone();
    for (t, path) in paths.iter().enumerate() {
        let Stop::Spin(since) = path.stop else { continue };
        for (i, event) in path.events.iter().enumerate().skip(since) {
            let Some(count) = &event.count else { continue };
            let Some(history) = now.get_mut(&count.object) else { continue };
            match history.then((t, i), count) {
                Some(next) => *history = Rc::new(next),
                None => return false,
            }
        }
    }
    true
}

/// The histories, followed by the questions of the failing iterations; `None` if an answer is not the one assumed.
fn asked_in_vain(past: &Histories, paths: &[&Path]) -> Option<Histories> {
    let mut out = past.clone();
    for (t, path) in paths.iter().enumerate() {
        let Stop::Spin(since) = path.stop else { continue };
        for (i, event) in path.events.iter().enumerate().skip(since) {
            if let Some(count) = &event.count {
                let history = out.entry(count.object).or_default();
                *history = Rc::new(history.then((t, i), count)?);
            }
        }
    }
    Some(out)
}

/// Reads and their cells, with the value each needs.
fn slots(scenery: &Scenery<'_>, nodes: std::ops::Range<usize>) -> Vec<Slot> {
    let is_read = |i: &usize| scenery.nodes[*i].tags >> sets::R & 1 == 1;
    nodes.filter(is_read).flat_map(|i| scenery.nodes[i].cells.iter().map(move |(c, v)| (i, *c, *v))).collect()
}

fn enter_reads(graph: &mut Graph, reads: &[Slot], pick: &[usize]) {
    graph.reads.clear();
    graph.relations[rels::RF] = Pairs::none(graph.n);
    add_reads(graph, reads, pick);
}

fn add_reads(graph: &mut Graph, reads: &[Slot], pick: &[usize]) {
    for ((read, cell, _), write) in reads.iter().zip(pick) {
        graph.reads.push((*read, *cell, *write));
        graph.relations[rels::RF].0[*write] |= one(*read);
    }
}

/// Groups the paths of a thread: those that spin after the same events become one variant.
fn group(paths: Vec<Path>) -> Vec<Variant> {
    type Signature = (Stop, Vec<(usize, u16, Vec<(usize, u128)>, String)>);
    let mut shapes: BTreeMap<String, usize> = BTreeMap::new();
    let mut variants: Vec<Variant> = Vec::new();
    let mut known: BTreeMap<Signature, usize> = BTreeMap::new();
    for path in paths {
        let kept = path.kept().len();
        if let Stop::Spin(_) = path.stop {
            let events = &path.events[..kept];
            let spelt = events.iter().map(|e| {
                (e.pc, e.index, e.cells.clone(), format!("{:?} {:?} {:?}", e.barrier, e.count, e.seizes))
            });
            let signature = (path.stop, spelt.collect());
            if let Some(at) = known.get(&signature) {
                variants[*at].failing.push(path);
                continue;
            }
            known.insert(signature, variants.len());
        }
        let events = &path.events[..kept];
        let shape: Vec<_> = events
            .iter()
            .map(|e| {
                let memory = (e.range, e.reads_first, e.piece, e.home);
                let depends = (e.address, e.data, e.control, e.nearby, e.token, e.token_nearest);
                (e.pc, e.tags, memory, depends, &e.effect, &e.seizes, (e.lanes, &e.arms))
            })
            .collect();
        let count = shapes.len();
        let shape = *shapes.entry(format!("{shape:?}")).or_insert(count);
        let of =
            |set: usize| events.iter().filter(|e| e.is(set)).flat_map(|e| e.cells.iter().copied()).collect();
        let (needs, gives) = (of(sets::R), of(sets::W));
        let failing = if matches!(path.stop, Stop::Spin(_)) { vec![path.clone()] } else { vec![] };
        variants.push(Variant { path, failing, shape, needs, gives });
    }
    variants
}
