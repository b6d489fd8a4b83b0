//! Coverage of a launch: which statements of a kernel its warps run, how often its loops go round, and which mbarriers they
//! wait for in a second phase.
//!
//! Contract: a statement is *reached* if some warp, on some way of its run ahead, stands at it with a lane for which the
//! guard holds; of a branch the guard does not count. A guard *goes a way* if it holds, or fails, for some lane that stands
//! at it. A loop is a branch back to an earlier statement. One *pass* of it is one run of its body: an arrival at its last
//! branch back, or an earlier branch back that is taken. A loop that comes back in the same state waits, and its passes are
//! not counted.

use super::known::loops::rounds;
use super::word::{Told, join_told};
use crate::ptx::{Kernel, Sort, Statement, What, mnemonic as head, sort};
use moire_isa::kinds::Space as In;
use moire_program::ir::*;
use moire_program::text::instruction;
use moire_program::{barrier_op, fence_op, multimem_op, unit_op};
use std::collections::{BTreeMap, BTreeSet};

/// The statements that coverage is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Synchronises, or acts asynchronously: barriers, fences, ordered and atomic accesses, copies, products.
    Synchronises,
    /// Stores data.
    Stores,
    /// Branches on a condition.
    Branches,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 3] = [Class::Synchronises, Class::Stores, Class::Branches];

    /// The statements of the class, in the plural.
    pub fn plural(self) -> &'static str {
        match self {
            Class::Synchronises => "synchronising instructions",
            Class::Stores => "stores",
            Class::Branches => "branches",
        }
    }
}

/// A statement that no warp reaches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missed {
    /// 1-based.
    pub line: u32,
    /// What it does.
    pub class: Class,
    /// Its mnemonic with qualifiers.
    pub text: String,
}

/// A loop that some warp enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loop {
    /// Line of its first statement.
    pub first: u32,
    /// Line of the last branch back.
    pub last: u32,
    /// Passes of the warp that makes the fewest and of the one that makes the most.
    pub passes: (u32, u32),
    /// It waits: it also comes back in the same state, any number of times.
    pub waits: bool,
    /// A statement of it synchronises.
    pub synchronises: bool,
}

/// The coverage of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Statements of each class: reached, and all.
    pub counts: BTreeMap<Class, (usize, usize)>,
    /// Those not reached, by line.
    pub missed: Vec<Missed>,
    /// Loops that are entered, by line.
    pub loops: Vec<Loop>,
    /// Mbarriers that some warp waits for.
    pub awaited: usize,
    /// Those of them that one warp waits for in both parities, or twice by one statement: they are used again, as the
    /// stages of a ring are.
    pub wrapped: usize,
    /// What has been met of all that can be asked of a launch.
    pub met: Met,
}

/// What launches have done of what can be asked of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// By position of the statement.
    steps: Vec<Reached>,
    /// Loops that are entered, by position of the first statement, with the most passes.
    pub(super) passes: BTreeMap<usize, u32>,
    /// Loops that wait.
    pub(super) waits: BTreeSet<usize>,
    /// Statements that run in a second pass of a loop, with the first statement of the loop.
    pub(super) again: BTreeSet<(usize, usize)>,
    /// Targets that tables of branches go to, after the place of the table.
    pub(super) chosen: BTreeSet<(usize, usize)>,
    /// Statements that wait twice for one mbarrier.
    pub(super) rewaits: BTreeSet<usize>,
    /// By address of the mbarrier in its CTA: the statements that wait for it, and whether some warp does so in a second phase.
    pub(super) awaited: BTreeMap<u64, (BTreeSet<usize>, bool)>,
    /// The most clusters along each axis.
    pub(super) clusters: [u32; 3],
    /// The lines at which a cluster waits for another one.
    pub(super) awaits: BTreeSet<u32>,
    /// Loads of words in shared memory that decide something, with the lines that store all of what they read. None if they may
    /// read what is not known.
    pub(super) words: BTreeMap<usize, Option<BTreeSet<u32>>>,
    /// Loads of words of global memory that have numbers of the launch, or of shared memory into which such words come, with the pointers.
    pub(super) told: BTreeMap<usize, Told>,
}

/// What is known of one statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reached {
    reached: bool,
    /// Whether the guard has failed, and whether it has held, for a lane.
    ways: [bool; 2],
}

impl Met {
    pub(super) fn is_reached(&self, pc: usize) -> bool {
        self.steps.get(pc).is_some_and(|s| s.reached)
    }

    /// Whether the guard has held (`true`) or failed for some lane.
    pub(super) fn goes(&self, pc: usize, holds: bool) -> bool {
        self.steps.get(pc).is_some_and(|s| s.ways[usize::from(holds)])
    }

    fn step(&mut self, pc: usize) -> &mut Reached {
        if self.steps.len() <= pc {
            self.steps.resize(pc + 1, Reached::default());
        }
        &mut self.steps[pc]
    }

    /// Adds what another launch has done.
    pub fn join(&mut self, other: &Met) {
        for (pc, theirs) in other.steps.iter().enumerate() {
            let own = self.step(pc);
            own.reached |= theirs.reached;
            own.ways = [own.ways[0] | theirs.ways[0], own.ways[1] | theirs.ways[1]];
        }
        for (first, passes) in &other.passes {
            let most = self.passes.entry(*first).or_default();
            *most = (*most).max(*passes);
        }
        self.waits.extend(&other.waits);
        self.again.extend(&other.again);
        self.chosen.extend(&other.chosen);
        self.rewaits.extend(&other.rewaits);
        self.clusters.iter_mut().zip(other.clusters).for_each(|(own, theirs)| *own = theirs.max(*own));
        self.awaits.extend(&other.awaits);
        other.words.iter().for_each(|(pc, lines)| self.word(*pc, lines.clone()));
        other.told.iter().for_each(|(pc, told)| join_told(self.told.entry(*pc).or_default(), told));
        for (at, (places, wraps)) in &other.awaited {
            let own = self.awaited.entry(*at).or_default();
            own.0.extend(places);
            own.1 |= wraps;
        }
    }

    fn word(&mut self, pc: usize, lines: Option<BTreeSet<u32>>) {
        let own = self.words.entry(pc).or_insert_with(|| Some(BTreeSet::new()));
        *own = own.take().zip(lines).map(|(own, lines)| &own | &lines);
    }

    fn of(courses: &[&Course]) -> Met {
        let mut out = Met::default();
        for course in courses {
            out.join(&course.met);
            for ((_, at), waits) in &course.awaited {
                let own = out.awaited.entry(*at).or_default();
                own.0.extend(&waits.places);
                own.1 |= waits.wraps();
            }
        }
        out
    }
}

impl Coverage {
    /// Loops around synchronisation that no warp goes round twice.
    pub fn once(&self) -> impl Iterator<Item = &Loop> {
        self.loops.iter().filter(|l| l.synchronises && !l.waits && l.passes.1 < 2)
    }

    pub(super) fn of(kernel: &Kernel, courses: &[&Course]) -> Coverage {
        let mut out = Coverage { met: Met::of(courses), ..Coverage::default() };
        let classes: Vec<Option<Class>> = kernel.body.iter().map(class).collect();
        for (pc, (statement, class)) in kernel.body.iter().zip(&classes).enumerate() {
            let Some(class) = *class else { continue };
            let count = out.counts.entry(class).or_default();
            count.1 += 1;
            if out.met.is_reached(pc) {
                count.0 += 1;
            } else {
                out.missed.push(Missed { line: statement.line, class, text: mnemonic(kernel, statement) });
            }
        }
        out.missed.sort();
        out.missed.dedup();
        out.loops = loops(kernel, &classes, courses);
        let mut awaited: BTreeMap<(u32, u64), bool> = BTreeMap::new();
        for (place, waits) in courses.iter().flat_map(|c| &c.awaited) {
            *awaited.entry(*place).or_default() |= waits.wraps();
        }
        out.awaited = awaited.len();
        out.wrapped = awaited.values().filter(|wrapped| **wrapped).count();
        out
    }
}

/// What one warp runs.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// Without its waits.
    met: Met,
    /// By CTA and address of the mbarrier.
    awaited: BTreeMap<(u32, u64), Waits>,
}

/// The waits of a warp for one mbarrier.
#[derive(Debug, Default)]
struct Waits {
    /// The statements that wait.
    places: BTreeSet<usize>,
    /// Parities of the phases, where they are known.
    parities: BTreeSet<bool>,
    /// One statement waits for it twice.
    again: bool,
}

impl Waits {
    /// Whether the warp waits for it in a second phase.
    fn wraps(&self) -> bool {
        self.again || self.parities.len() > 1
    }
}

impl Course {
    pub(super) fn reach(&mut self, pc: usize) {
        self.met.step(pc).reached = true;
    }

    /// The guard of the statement holds, or fails, for some lane.
    pub(super) fn go(&mut self, pc: usize, holds: bool) {
        self.met.step(pc).ways[usize::from(holds)] = true;
    }

    /// The statement runs in a second pass of a loop.
    pub(super) fn again(&mut self, pc: usize, first: usize) {
        self.met.again.insert((pc, first));
    }

    /// The table of branches at this place goes there.
    pub(super) fn choose(&mut self, pc: usize, target: usize) {
        self.met.chosen.insert((pc, target));
    }

    /// The load reads what these lines store, or what is not known.
    pub(super) fn word(&mut self, pc: usize, lines: Option<BTreeSet<u32>>) {
        self.met.word(pc, lines);
    }

    /// The load reads a word of global memory that has a number of the launch.
    pub(super) fn tell(&mut self, pc: usize, told: &Told) {
        if !told.is_empty() {
            join_told(self.met.told.entry(pc).or_default(), told);
        }
    }

    /// See [`Met::told`].
    pub(super) fn told(&self) -> &BTreeMap<usize, Told> {
        &self.met.told
    }

    pub(super) fn is_reached(&self, pc: usize) -> bool {
        self.met.is_reached(pc)
    }

    pub(super) fn pass(&mut self, first: usize, passes: u32) {
        let most = self.met.passes.entry(first).or_default();
        *most = passes.max(*most);
    }

    pub(super) fn wait(&mut self, first: usize) {
        self.met.waits.insert(first);
    }

    /// The warp waits at a statement for the mbarrier at this address of the CTA, `again` if that statement has done so on
    /// the way here.
    pub(super) fn wait_for(&mut self, pc: usize, (cta, at): (u32, u64), parity: Option<bool>, again: bool) {
        let waits = self.awaited.entry((cta, at)).or_default();
        waits.places.insert(pc);
        waits.parities.extend(parity);
        waits.again |= again;
        self.met.rewaits.extend(again.then_some(pc));
    }
}

/// Loops that some warp enters.
fn loops(kernel: &Kernel, classes: &[Option<Class>], courses: &[&Course]) -> Vec<Loop> {
    let line = |pc: usize| kernel.body.get(pc).map_or(0, |s| s.line);
    let synchronises = classes.iter().map(|c| *c == Some(Class::Synchronises)).collect::<Vec<_>>();
    let one = |(first, last): (usize, usize)| {
        let passes = courses.iter().filter_map(|c| c.met.passes.get(&first).copied());
        let passes = (passes.clone().min()?, passes.max()?);
        let waits = courses.iter().any(|c| c.met.waits.contains(&first));
        let synchronises = synchronises.get(first..=last).is_some_and(|s| s.contains(&true));
        Some(Loop { first: line(first), last: line(last), passes, waits, synchronises })
    };
    let mut out: Vec<Loop> = rounds(kernel).into_iter().filter_map(one).collect();
    out.sort_unstable();
    out
}

pub(super) fn class(statement: &Statement) -> Option<Class> {
    match &statement.what {
        What::Branch { .. } => statement.guard.map(|_| Class::Branches),
        What::Table { .. } => Some(Class::Branches),
        What::Exit => None,
        What::Plain(instr) => match sort(instr) {
            Sort::Store(st) if matches!(st.space, In::Local | In::Param) => None,
            Sort::Store(_) | Sort::StoreMatrix(_) | Sort::StoreAway(_) | Sort::StoreRange(_) => {
                Some(Class::Stores)
            }
            Sort::Update(_) | Sort::Fence | Sort::Synchronises => Some(Class::Synchronises),
            Sort::Computes(_) | Sort::Load(_) | Sort::Uniform(_) | Sort::LoadMatrix(_) | Sort::Hint => None,
            Sort::Call(_) | Sort::Trap | Sort::Touches | Sort::Elsewhere => None,
        },
        What::Core(op) => core(op),
    }
}

fn core(op: &Op) -> Option<Class> {
    match op {
        Op::Mov { .. }
        | Op::Alu { .. }
        | Op::Setp { .. }
        | Op::Selp { .. }
        | Op::Mapa { .. }
        | Op::Bra { .. }
        | Op::Exit
        | Op::Load { order: LoadOrder::Weak, .. }
        | Op::Control(Control::Elect { .. } | Control::Ignored(_) | Control::QueryCancel { .. })
        | Op::AsyncCopy(AsyncCopy::Prefetch(_))
        | Op::Tcgen05(Tcgen05::Load(_))
        | Op::Tile(_) => None,
        Op::Store { order: StoreOrder::Weak, .. } | Op::Tcgen05(Tcgen05::Store(_)) => Some(Class::Stores),
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) => Some(Class::Synchronises),
        multimem_op!() => Some(Class::Synchronises),
        fence_op!() => Some(Class::Synchronises),
        barrier_op!() => Some(Class::Synchronises),
        unit_op!() | Op::Control(_) => Some(Class::Synchronises),
        Op::Book(_) => Some(Class::Synchronises),
    }
}

pub(super) fn mnemonic(kernel: &Kernel, statement: &Statement) -> String {
    match &statement.what {
        What::Plain(instr) => head(instr),
        What::Core(op) => {
            let Some(thread) = kernel.program.threads.first() else { return String::new() };
            let text = instruction(&kernel.program, thread, &Instr::new(op.clone()));
            text.split([' ', ';']).next().unwrap_or_default().to_owned()
        }
        What::Branch { .. } => "bra".to_owned(),
        What::Table { .. } => "brx.idx".to_owned(),
        What::Exit => "exit".to_owned(),
    }
}
