//! What has to happen in some launch before a kernel counts as covered.
//!
//! Contract: a goal is asked if some launch can be expected to meet it, and its absence can hide a mistake:
//!
//! - each statement that synchronises or stores runs, and each table of branches goes to each of its targets, but for those that
//!   fail or exit;
//! - the guard of each branch, and of each such statement, goes both ways if a launch decides it: it depends on parameters,
//!   the grid, or the numbers of threads, and on no data. A way into a failed check, or to an exit with nothing on it, is not
//!   asked. If both ways only compute and load until they meet, it is enough that all these loads run;
//! - each loop around such statements whose count depends on a parameter or the grid passes twice, unless it only waits;
//! - each statement in such a loop that synchronises or stores runs in two passes of it;
//! - a statement in each such loop that waits for mbarriers waits for one in two phases, and each mbarrier that is waited for
//!   there is waited for in a second phase;
//! - there are three clusters if one waits for another at an address that its number or data decide: the first one may know of
//!   the last one only by way of the one between them.

use super::coverage::{Class, Met, class, mnemonic};
use super::known::arms::{fails, leaves, moves_data};
use super::known::depends::{Depends, Slices};
use super::known::flow::{effects, meets, successors};
use super::known::loops::{body, rounds};
use super::known::strides::base;
use crate::ptx::{Kernel, Sort, Statement, What, sort};
use moire_isa::kinds::Space as In;
use moire_program::ir::{Access, Op, Reg, Space, StoreOrder};
use std::collections::{BTreeMap, BTreeSet};

/// Something that some launch should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    /// The statement at this place runs.
    Runs(usize),
    /// Its guard holds (`true`), or fails, for some lane.
    Goes(usize, bool),
    /// The table of branches at the first place goes to the second.
    Chooses(usize, usize),
    /// The loop that starts there passes twice.
    Repeats(usize),
    /// The statement runs in two passes of the loop that starts at the second place.
    Again(usize, usize),
    /// The statement waits for one mbarrier in two phases.
    Rewaits(usize),
    /// The mbarrier at this address of a CTA is waited for in a second phase.
    Wraps(u64),
    /// Clusters are beside each other along this axis. This is tried, and not asked.
    Meets(usize),
    /// Three clusters are beside each other along some axis.
    Third,
}

/// The goals of a kernel.
#[derive(Clone, Debug)]
pub struct Goals {
    /// Statements that synchronise or store.
    acts: Vec<usize>,
    /// What guards depend on that a launch decides, by place, and whether the guard has to fail, and to hold.
    guards: BTreeMap<usize, Guarded>,
    /// The loops whose count a launch decides, by first statement, with the last one.
    loops: BTreeMap<usize, (usize, Depends)>,
    /// The lines of the first statements of loops that go round as often in every launch.
    steady: BTreeSet<u32>,
    /// Where each statement can be followed by what, for [`Goals::reachable`].
    next: Vec<Vec<usize>>,
    /// The axes along which CTAs can tell where they are.
    axes: [bool; 3],
    /// The lines that access global memory.
    global: BTreeSet<u32>,
    /// Where branches go.
    targets: BTreeMap<usize, usize>,
    /// Where tables of branches go, but for failed checks and exits, with what decides it.
    tables: BTreeMap<usize, (BTreeSet<usize>, Depends)>,
    /// The lines that read at an address which the number of a CTA or data decide.
    chained: BTreeMap<u32, usize>,
    /// Guards that nothing but the number of a thread decides, where the threads that come to them are the same in all launches in
    /// which some do; with the loads of words that have to be the same for it.
    fixed: BTreeMap<usize, BTreeSet<usize>>,
    /// The lines all of whose stores write the same number in all launches.
    constant: BTreeSet<u32>,
    /// The kernel says how many threads a CTA has.
    sized: bool,
}

/// Whether a way of a guard has to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Always,
    /// It is tried: it leads to an exit with nothing on it.
    Beside,
    /// It leads into a failed check.
    Never,
}

/// A guard that a launch decides.
#[derive(Clone, Debug)]
struct Guarded {
    depends: Depends,
    /// Whether it has to fail, and to hold.
    asked: [Asked; 2],
    /// The loads on both ways until they meet, if nothing else is on them that others see.
    quiet: Option<Vec<usize>>,
}

impl Goals {
    /// The goals of a kernel.
    pub fn new(kernel: &Kernel) -> Goals {
        let slices = Slices::new(kernel);
        let classes: Vec<Option<Class>> = kernel.body.iter().map(class).collect();
        let acts = |pc: &usize| matches!(classes[*pc], Some(Class::Synchronises | Class::Stores));
        let branch = |pc: usize| match kernel.body[pc].what {
            What::Branch { target } => Some((pc, target)),
            _ => None,
        };
        let mut goals = Goals {
            acts: (0..kernel.body.len()).filter(acts).collect(),
            guards: BTreeMap::new(),
            loops: BTreeMap::new(),
            steady: BTreeSet::new(),
            next: (0..kernel.body.len()).map(|pc| successors(kernel, pc)).collect(),
            axes: axes(kernel, &slices),
            global: global(kernel),
            targets: (0..kernel.body.len()).filter_map(branch).collect(),
            tables: BTreeMap::new(),
            chained: chained(kernel, &slices),
            fixed: (0..kernel.body.len()).filter_map(|pc| fixed(kernel, &slices, pc)).collect(),
            constant: constant(kernel, &slices),
            sized: kernel.threads.or(kernel.most_threads).is_some(),
        };
        goals.tables = goals.tables(kernel, &slices);
        goals.guards = goals.asked(kernel, &slices, &acts);
        goals.loops = rounds(kernel).into_iter().filter_map(|l| goals.counted(kernel, &slices, l)).collect();
        let steady = rounds(kernel).into_keys().filter(|first| goals.steady(kernel, &slices, *first));
        goals.steady = steady.map(|first| kernel.body[first].line).collect();
        goals
    }

    /// Whether the loop that starts in this line goes round as often in every launch, for each thread and each time.
    pub fn is_steady(&self, line: u32) -> bool {
        self.steady.contains(&line)
    }

    /// Whether nothing that a launch or data decides belongs to a way out of a loop.
    fn steady(&self, kernel: &Kernel, slices: &Slices<'_>, first: usize) -> bool {
        let inside = body(&self.next, first);
        let leaves = |pc: &&usize| self.next[**pc].iter().any(|to| !inside.contains(to));
        let same = |pc: &usize| {
            let depends = kernel.body[*pc].guard.map(|g| slices.of(*pc, g.reg));
            depends.is_some_and(|d| d.is_fixed() && !d.is_data())
        };
        inside.iter().any(|pc| leaves(&pc)) && inside.iter().filter(leaves).all(same)
    }

    /// The targets of tables of branches behind which something happens.
    fn tables(&self, kernel: &Kernel, slices: &Slices<'_>) -> BTreeMap<usize, (BTreeSet<usize>, Depends)> {
        let (fails, leaves) = (fails(kernel), leaves(kernel));
        let is = |all: &[bool], to: usize| all.get(to) == Some(&true);
        let asked = |to: &usize| !is(&fails, *to) && !is(&leaves, *to);
        let one = |pc: usize| match kernel.body[pc].what {
            What::Table { index, table } => {
                let all = kernel.tables.get(table)?.iter().copied().filter(asked).collect();
                Some((pc, (all, slices.of(pc, index))))
            }
            _ => None,
        };
        (0..kernel.body.len()).filter_map(one).collect()
    }

    fn asked(
        &self,
        kernel: &Kernel,
        slices: &Slices<'_>,
        acts: &dyn Fn(&usize) -> bool,
    ) -> BTreeMap<usize, Guarded> {
        let (fails, leaves, meets) = (fails(kernel), leaves(kernel), meets(&self.next));
        let of = |to: usize| match (fails.get(to), leaves.get(to)) {
            (Some(true), _) => Asked::Never,
            (_, Some(false)) => Asked::Always,
            _ => Asked::Beside,
        };
        let one = |pc: usize| {
            let guard = kernel.body[pc].guard?;
            let (fails, holds) = match kernel.body[pc].what {
                What::Branch { target } => (of(pc + 1), of(target)),
                What::Exit => (Asked::Always, Asked::Beside),
                _ if acts(&pc) => (Asked::Always, Asked::Always),
                _ => return None,
            };
            let branches = matches!(kernel.body[pc].what, What::Branch { .. });
            let depends = slices.of(pc, guard.reg);
            let quiet = if branches { self.quiet(kernel, pc, meets[pc]) } else { None };
            (!depends.data && !depends.phase)
                .then_some((pc, Guarded { depends, asked: [fails, holds], quiet }))
        };
        (0..kernel.body.len()).filter_map(one).collect()
    }

    /// The loads on the ways from a branch to where they meet, if nothing on them synchronises or stores.
    fn quiet(&self, kernel: &Kernel, from: usize, to: usize) -> Option<Vec<usize>> {
        let (mut out, mut seen) = (Vec::new(), BTreeSet::from([from, to]));
        let mut work = self.next[from].clone();
        while let Some(pc) = work.pop() {
            if !seen.insert(pc) {
                continue;
            }
            let statement = kernel.body.get(pc)?;
            if !jumps(&statement.what) {
                if !moves_data(statement) || self.acts.binary_search(&pc).is_ok() {
                    return None;
                }
                out.extend(loads(statement).then_some(pc));
            }
            work.extend(&self.next[pc]);
        }
        Some(out)
    }

    /// A loop with what its count depends on, if a launch decides it: some way out of it depends on the launch alone.
    fn counted(
        &self,
        kernel: &Kernel,
        slices: &Slices<'_>,
        (first, last): (usize, usize),
    ) -> Option<(usize, (usize, Depends))> {
        let inside = body(&self.next, first);
        let leaves = |pc: &usize| self.next[*pc].iter().any(|to| !inside.contains(to));
        let guard = |pc: usize| kernel.body[pc].guard.map(|g| slices.of(pc, g.reg));
        let mut all = Depends::default();
        let acts = self.acts.iter().any(|pc| inside.contains(pc));
        let ways: Vec<Depends> =
            inside.iter().copied().filter(|_| acts).filter(leaves).filter_map(guard).collect();
        let mut free: Vec<&Depends> = ways.iter().filter(|d| d.is_free()).collect();
        if free.is_empty() {
            free = ways.iter().filter(|d| d.is_data() && !d.data && !d.phase).collect();
        }
        free.iter().for_each(|d| all.join(d));
        (!free.is_empty()).then_some((first, (last, all)))
    }

    /// Whether a launch decides it, if it is read from memory: all that is read are numbers of the launch.
    fn decided(depends: &Depends, met: &Met) -> bool {
        depends.reads().all(|load| met.told.contains_key(load))
    }

    /// The loops whose count a launch decides, by first statement.
    fn counted_loops<'g>(
        &'g self,
        met: &'g Met,
    ) -> impl DoubleEndedIterator<Item = (&'g usize, &'g (usize, Depends))> {
        self.loops.iter().filter(|(_, (_, depends))| {
            let mut reads = depends.reads().peekable();
            reads.peek().is_none() || reads.any(|load| met.told.contains_key(load))
        })
    }

    /// Whether all that decides the guard at this place is the same in all launches.
    fn is_same(&self, pc: usize, met: &Met) -> bool {
        let settled = |load: &usize| {
            let lines = met.words.get(load).and_then(Option::as_ref);
            lines.is_some_and(|lines| lines.is_subset(&self.constant))
        };
        self.fixed.get(&pc).is_some_and(|words| words.iter().all(settled))
    }

    /// Whether the guard at this place goes the same ways in all launches.
    fn is_told(&self, pc: usize, met: &Met) -> bool {
        self.sized && self.is_same(pc, met)
    }

    /// The statements that can run if guards go no other ways than those met or asked: what lies behind a way that is known to
    /// be impossible is left out, and what lies behind one that no launch can change.
    fn reachable(&self, met: &Met, impossible: &BTreeSet<Goal>) -> Vec<bool> {
        let mut out = vec![false; self.next.len() + 1];
        let mut work = vec![0];
        while let Some(pc) = work.pop() {
            if std::mem::replace(&mut out[pc], true) || pc == self.next.len() {
                continue;
            }
            let target = self.targets.get(&pc);
            let told = self.is_told(pc, met);
            let never = |holds: bool| told && met.goes(pc, !holds) && !met.goes(pc, holds);
            let shut = |to: &usize| {
                let (taken, passed) = (target == Some(to), *to == pc + 1);
                let gone = |holds: bool| never(holds) || impossible.contains(&Goal::Goes(pc, holds));
                (taken && !passed && gone(true))
                    || (passed && !taken && target.is_some() && gone(false))
                    || impossible.contains(&Goal::Chooses(pc, *to))
            };
            work.extend(self.next[pc].iter().filter(|to| !shut(to)));
        }
        out
    }

    /// The goals that launches together have not met, without those that are known to be impossible.
    pub fn left(&self, met: &Met, impossible: &BTreeSet<Goal>) -> BTreeSet<Goal> {
        let reachable = self.reachable(met, impossible);
        let runs = self.acts.iter();
        let open = |pc: usize| reachable[pc] && !(self.is_told(pc, met) && met.goes(pc, false));
        let runs = runs.filter(|pc| !met.is_reached(**pc) && open(**pc)).map(|pc| Goal::Runs(*pc));
        let tables = self.tables.iter().filter(|(pc, _)| reachable[**pc]);
        let chooses = tables.flat_map(|(pc, (all, _))| all.iter().map(|to| Goal::Chooses(*pc, *to)));
        let chooses = chooses.filter(|goal| !self.is_met(*goal, met));
        let goes = self.goes(met, Asked::Always);
        let goes = goes.filter(|g| !matches!(g, Goal::Goes(pc, true) if self.acts.binary_search(pc).is_ok()));
        let again = self.counted_loops(met).map(|l| l.0).filter(|first| {
            met.passes.get(*first).is_some_and(|passes| *passes < 2) && !met.waits.contains(*first)
        });
        let repeats = again.map(|first| Goal::Repeats(*first));
        let wraps = met
            .awaited
            .iter()
            .filter(|(_, (places, wraps))| !wraps && self.in_loops(places, met).next().is_some());
        let wraps = wraps.map(|(at, _)| Goal::Wraps(*at));
        let all = runs
            .chain(goes)
            .chain(chooses)
            .chain(repeats)
            .chain(wraps)
            .chain(self.again(met))
            .chain(self.rewaits(met))
            .chain(self.third(met).map(|_| Goal::Third));
        all.filter(|goal| !impossible.contains(goal)).collect()
    }

    /// The statements that synchronise or store, and that no launch runs because of numbers which the kernel writes itself.
    pub fn never(&self, met: &Met) -> Vec<usize> {
        let reachable = self.reachable(met, &BTreeSet::new());
        let told = |pc: &usize| !reachable[*pc] || (self.is_told(*pc, met) && met.goes(*pc, false));
        self.acts.iter().copied().filter(|pc| !met.is_reached(*pc) && told(pc)).collect()
    }

    /// Where a cluster waits for one of several others, if there are never three along some axis.
    fn third(&self, met: &Met) -> Option<usize> {
        let few = met.clusters.iter().all(|n| *n < 3);
        met.awaits.iter().filter(|_| few).find_map(|line| self.chained.get(line).copied())
    }

    /// The ways of guards that no lane goes, where some goes the other one.
    fn goes<'g>(&'g self, met: &'g Met, asked: Asked) -> impl Iterator<Item = Goal> + 'g {
        let open = |guard: &Guarded| {
            guard.quiet.as_ref().is_none_or(|all| all.iter().any(|pc| !met.is_reached(*pc)))
        };
        let guards = self.guards.iter();
        let guards = guards.filter(move |(_, guard)| Self::decided(&guard.depends, met) && open(guard));
        guards.flat_map(move |(pc, guard)| {
            let one = move |holds: bool| guard.asked[usize::from(holds)] == asked && met.goes(*pc, !holds);
            [false, true]
                .into_iter()
                .filter(move |h| one(*h) && !met.goes(*pc, *h))
                .map(|h| Goal::Goes(*pc, h))
        })
    }

    /// The statements that run in one pass only of a loop that repeats.
    fn again<'g>(&'g self, met: &'g Met) -> impl Iterator<Item = Goal> + 'g {
        let inner = move |pc: usize| {
            let mut around = self.counted_loops(met).rev().filter(|(first, _)| **first <= pc);
            around.find(|(_, (last, _))| *last >= pc).map(|(first, _)| *first)
        };
        let repeats =
            |first: &usize| met.passes.get(first).is_some_and(|p| *p >= 2) && !met.waits.contains(first);
        let acts = self.acts.iter().filter(|pc| met.is_reached(**pc));
        let all = acts.filter_map(move |pc| inner(*pc).filter(repeats).map(|first| (*pc, first)));
        all.filter(|place| !met.again.contains(place)).map(|(pc, first)| Goal::Again(pc, first))
    }

    /// The statements in loops that wait for each mbarrier once, where no other one of the same loop waits for one again.
    fn rewaits<'g>(&'g self, met: &'g Met) -> impl Iterator<Item = Goal> + 'g {
        let inner = |pc: &usize| {
            let mut around = self.counted_loops(met).rev().filter(|(first, _)| *first <= pc);
            around.find(|(_, (last, _))| last >= pc).map(|l| *l.0)
        };
        let wrapped: BTreeSet<usize> = met.rewaits.iter().filter_map(inner).collect();
        let places: BTreeSet<usize> = met.awaited.values().flat_map(|a| a.0.iter().copied()).collect();
        let open = |pc: &usize| inner(pc).is_some_and(|first| !wrapped.contains(&first));
        places.into_iter().filter(open).map(Goal::Rewaits).collect::<Vec<_>>().into_iter()
    }

    /// What is tried once nothing is left.
    pub fn beside(&self, met: &Met) -> BTreeSet<Goal> {
        let meets = (0..3).filter(|n| self.axes[*n] && met.clusters[*n] < 2).map(Goal::Meets);
        meets.chain(self.goes(met, Asked::Beside)).collect()
    }

    /// Whether all these lines access global memory.
    pub fn are_global(&self, lines: &BTreeSet<u32>) -> bool {
        lines.is_subset(&self.global)
    }

    /// Whether a launch meets a goal.
    pub fn is_met(&self, goal: Goal, met: &Met) -> bool {
        match goal {
            Goal::Runs(pc) => met.is_reached(pc),
            Goal::Goes(pc, holds) => met.goes(pc, holds),
            Goal::Chooses(pc, to) => met.chosen.contains(&(pc, to)),
            Goal::Repeats(first) => {
                met.passes.get(&first).is_some_and(|p| *p >= 2) || met.waits.contains(&first)
            }
            Goal::Wraps(at) => met.awaited.get(&at).is_some_and(|a| a.1),
            Goal::Again(pc, first) => met.again.contains(&(pc, first)),
            Goal::Rewaits(pc) => met.rewaits.contains(&pc),
            Goal::Meets(axis) => met.clusters[axis % 3] > 1,
            Goal::Third => met.clusters.iter().any(|n| *n > 2),
        }
    }

    /// What decides the counts of the loops around these places.
    fn in_loops<'g>(
        &'g self,
        places: &'g BTreeSet<usize>,
        met: &'g Met,
    ) -> impl Iterator<Item = &'g Depends> {
        let around = |first: usize, last: usize| places.range(first..=last).next().is_some();
        self.counted_loops(met).filter(move |(first, (last, _))| around(**first, *last)).map(|(_, l)| &l.1)
    }

    /// What decides whether a goal is met.
    pub(super) fn depends(&self, goal: Goal, met: &Met) -> Depends {
        let mut out = Depends::default();
        let guard = |pc: usize| self.guards.get(&pc).filter(|g| Self::decided(&g.depends, met));
        match goal {
            Goal::Runs(pc) | Goal::Goes(pc, _) => {
                guard(pc).into_iter().for_each(|g| out.join(&g.depends));
            }
            Goal::Chooses(pc, _) => self.tables.get(&pc).into_iter().for_each(|t| out.join(&t.1)),
            Goal::Repeats(first) => self.loops.get(&first).into_iter().for_each(|l| out.join(&l.1)),
            Goal::Again(pc, first) => {
                guard(pc).into_iter().for_each(|g| out.join(&g.depends));
                self.loops.get(&first).into_iter().for_each(|l| out.join(&l.1));
            }
            Goal::Rewaits(pc) => self.in_loops(&BTreeSet::from([pc]), met).for_each(|d| out.join(d)),
            Goal::Wraps(at) => {
                let places = met.awaited.get(&at).map(|a| a.0.clone()).unwrap_or_default();
                self.in_loops(&places, met).for_each(|d| out.join(d));
            }
            Goal::Meets(axis) => out.axes[axis % 3] = true,
            Goal::Third => out.axes[0] = true,
        }
        out
    }

    /// Everything that some guard or loop of the kernel depends on.
    pub(super) fn all(&self) -> Depends {
        let mut out = Depends::default();
        self.tables.values().filter(|t| !t.1.is_data()).for_each(|t| out.join(&t.1));
        let guards = self.guards.values().map(|g| &g.depends);
        let all = guards.chain(self.loops.values().map(|l| &l.1));
        all.filter(|d| !d.is_data()).for_each(|d| out.join(d));
        out
    }

    /// Whether what decides a goal is the same in all launches with the same CTAs.
    pub(super) fn is_fixed(&self, goal: Goal, met: &Met) -> bool {
        match goal {
            Goal::Goes(pc, _) => self.is_same(pc, met),
            Goal::Chooses(pc, _) => {
                self.tables.get(&pc).is_some_and(|t| t.1.is_fixed() && !t.1.is_data() && !t.1.thread)
            }
            _ => false,
        }
    }

    /// A goal in words, with its line: what the kernel has there, and what no launch does with it.
    pub fn said(&self, kernel: &Kernel, goal: Goal, met: &Met) -> (u32, String, String) {
        let line = |pc: usize| kernel.body.get(pc).map_or(0, |s| s.line);
        let text = |pc: usize| kernel.body.get(pc).map_or(String::new(), |s| mnemonic(kernel, s));
        match goal {
            Goal::Runs(pc) => (line(pc), text(pc), "never runs".to_owned()),
            Goal::Goes(pc, holds) => match (self.targets.get(&pc), holds) {
                (Some(_), true) => (line(pc), text(pc), "is never taken".to_owned()),
                (Some(_), false) => (line(pc), text(pc), "is always taken".to_owned()),
                (None, true) => (line(pc), text(pc), "never runs".to_owned()),
                (None, false) => (line(pc), text(pc), "is run by every lane".to_owned()),
            },
            Goal::Chooses(pc, to) => (line(pc), text(pc), format!("never goes to line {}", line(to))),
            Goal::Repeats(first) => {
                let last = self.loops.get(&first).map_or(0, |l| line(l.0));
                (line(first), format!("loop to line {last}"), "never runs twice".to_owned())
            }
            Goal::Wraps(at) => {
                let place = met.awaited.get(&at).and_then(|a| a.0.first().copied()).unwrap_or(0);
                let what =
                    format!("is awaited in one phase only: the mbarrier at byte {at} of shared memory");
                (line(place), text(place), what)
            }
            Goal::Again(pc, _) => (line(pc), text(pc), "runs in one pass of its loop only".to_owned()),
            Goal::Rewaits(pc) => (line(pc), text(pc), "waits for each mbarrier in one phase only".to_owned()),
            Goal::Meets(_) => (0, String::new(), "is launched with one cluster only".to_owned()),
            Goal::Third => {
                let pc = self.third(met).unwrap_or(0);
                (
                    line(pc),
                    text(pc),
                    "waits for one of several clusters, and there are never three".to_owned(),
                )
            }
        }
    }
}

/// The axes along which CTAs do different things: the place of a CTA decides an address, or whether a statement runs. A kernel
/// that cannot tell its CTAs apart has the first axis if they meet: it synchronises through global memory, and stores nothing there.
fn axes(kernel: &Kernel, slices: &Slices<'_>) -> [bool; 3] {
    let mut all = Depends::default();
    for (pc, statement) in kernel.body.iter().enumerate() {
        let guard = statement.guard.map(|g| g.reg);
        placing(statement).into_iter().chain(guard).for_each(|r| all.join(&slices.of(pc, r)));
    }
    let apart = kernel.body.iter().any(|statement| statement.what.tells_clusters_apart());
    if !apart && kernel.body.iter().any(meets_others) && !kernel.body.iter().any(stores_away) {
        all.axes[0] = true;
    }
    all.axes
}

/// A guard that only the number of a thread and words in shared memory decide, for the same threads in all launches: the loads of
/// such words.
fn fixed(kernel: &Kernel, slices: &Slices<'_>, pc: usize) -> Option<(usize, BTreeSet<usize>)> {
    let depends = slices.of(pc, kernel.body[pc].guard?.reg);
    let constant = !depends.thread && !depends.is_data();
    let threads = if constant { BTreeSet::new() } else { slices.same_threads(pc)? };
    depends.is_fixed().then(|| (pc, &threads | &depends.words))
}

/// The lines that store to shared memory, and all of whose stores write a number that is the same in all launches.
fn constant(kernel: &Kernel, slices: &Slices<'_>) -> BTreeSet<u32> {
    let (mut all, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (pc, statement) in kernel.body.iter().enumerate() {
        let read = effects(statement).1;
        let same = read.iter().all(|reg| {
            let depends = slices.of(pc, *reg);
            depends.is_fixed() && !depends.is_data() && !depends.thread
        });
        if same {
            all.insert(statement.line)
        } else {
            others.insert(statement.line)
        };
    }
    &all - &others
}

/// The lines that read at an address which the number of a CTA or data decide, with the statement.
fn chained(kernel: &Kernel, slices: &Slices<'_>) -> BTreeMap<u32, usize> {
    let body = kernel.body.iter().enumerate();
    let apart = |d: Depends| d.is_data() || d.axes.contains(&true);
    let all = body.filter(|(pc, s)| placing(s).into_iter().any(|reg| apart(slices.of(*pc, reg))));
    all.map(|(pc, statement)| (statement.line, pc)).collect()
}

/// The registers that say where a statement acts.
fn placing(statement: &Statement) -> Vec<Reg> {
    let copies = matches!(statement.what, What::Core(Op::AsyncCopy(_)));
    if copies { effects(statement).1 } else { base(statement).into_iter().collect() }
}

/// The lines that say that they access global memory.
fn global(kernel: &Kernel) -> BTreeSet<u32> {
    let all = kernel.body.iter().filter(|s| base(s).is_some() && mnemonic(kernel, s).contains("global"));
    all.map(|s| s.line).collect()
}

fn is_global(space: Space) -> bool {
    matches!(space, Space::Global | Space::Generic)
}

/// Whether a statement synchronises through global memory.
fn meets_others(statement: &Statement) -> bool {
    let What::Core(op) = &statement.what else { return false };
    let strong = op.access().is_some_and(Access::is_strong) && !matches!(op, Op::Mbarrier(_));
    strong && op.place().is_some_and(|(space, _)| is_global(space))
}

/// Whether a statement stores data outside shared memory.
fn stores_away(statement: &Statement) -> bool {
    match &statement.what {
        What::Core(op) => {
            let weak = op.access() == Some(Access::Store(StoreOrder::Weak));
            let away = weak && op.place().is_some_and(|(space, _)| is_global(space));
            away || matches!(op, Op::AsyncCopy(_))
        }
        What::Plain(instr) => match sort(instr) {
            Sort::Store(st) => matches!(st.space, In::Global | In::Generic),
            Sort::StoreAway(_) | Sort::StoreRange(_) | Sort::Call(_) => true,
            _ => false,
        },
        _ => false,
    }
}

fn jumps(what: &What) -> bool {
    matches!(what, What::Branch { .. } | What::Table { .. })
}

/// Whether a statement loads.
fn loads(statement: &Statement) -> bool {
    match &statement.what {
        What::Plain(instr) => matches!(sort(instr), Sort::Load(_) | Sort::Uniform(_) | Sort::LoadMatrix(_)),
        What::Core(op) => matches!(op, Op::Load { .. }),
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}
