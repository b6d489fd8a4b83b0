//! Coverage of a launch: which statements of a kernel its warps run, how often its loops go round, and which mbarriers they
//! wait for in a second phase.
//!
//! Contract: a statement is *reached* if some warp, on some way of its run ahead, stands at it with a lane for which the
//! guard holds; of a branch the guard does not count. A loop is a branch back to an earlier statement; one *pass* is one run of the statement that is branched
//! to. A loop that comes back in the same state waits, and its passes are not counted.

use crate::ptx::{Kernel, Sort, Statement, What, mnemonic as head, sort};
use moire_isa::kinds::Space as In;
use moire_program::ir::*;
use moire_program::text::instruction;
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
}

impl Coverage {
    /// Loops around synchronisation that no warp goes round twice.
    pub fn once(&self) -> impl Iterator<Item = &Loop> {
        self.loops.iter().filter(|l| l.synchronises && !l.waits && l.passes.1 < 2)
    }

    /// Whether everything is reached, every loop goes round twice and every ring wraps.
    pub fn full(&self) -> bool {
        self.missed.is_empty() && self.once().next().is_none() && (self.awaited == 0 || self.wrapped > 0)
    }

    pub(super) fn of(kernel: &Kernel, courses: &[&Course]) -> Coverage {
        let reached = |pc: usize| courses.iter().any(|c| c.reached.get(pc) == Some(&true));
        let mut out = Coverage::default();
        let classes: Vec<Option<Class>> = kernel.body.iter().map(class).collect();
        for (pc, (statement, class)) in kernel.body.iter().zip(&classes).enumerate() {
            let Some(class) = *class else { continue };
            let count = out.counts.entry(class).or_default();
            count.1 += 1;
            if reached(pc) {
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
            *awaited.entry(*place).or_default() |= waits.again || waits.parities.len() > 1;
        }
        out.awaited = awaited.len();
        out.wrapped = awaited.values().filter(|wrapped| **wrapped).count();
        out
    }
}

/// What one warp runs.
#[derive(Debug, Default)]
pub(crate) struct Course {
    reached: Vec<bool>,
    /// Most passes of a loop, by the position of its first statement.
    passes: BTreeMap<usize, u32>,
    /// Loops that come back in the same state.
    waits: BTreeSet<usize>,
    /// By CTA and address of the mbarrier.
    awaited: BTreeMap<(u32, u64), Waits>,
}

/// The waits of a warp for one mbarrier.
#[derive(Debug, Default)]
struct Waits {
    /// Parities of the phases, where they are known.
    parities: BTreeSet<bool>,
    /// One statement waits for it twice.
    again: bool,
}

impl Course {
    pub(super) fn is_reached(&self, pc: usize) -> bool {
        self.reached.get(pc) == Some(&true)
    }

    pub(super) fn reach(&mut self, pc: usize) {
        if self.reached.len() <= pc {
            self.reached.resize(pc + 1, false);
        }
        self.reached[pc] = true;
    }

    pub(super) fn pass(&mut self, first: usize, passes: u32) {
        let most = self.passes.entry(first).or_default();
        *most = passes.max(*most);
    }

    pub(super) fn wait(&mut self, first: usize) {
        self.waits.insert(first);
    }

    /// The warp waits for the mbarrier at this address of the CTA, `again` by a statement that has done so on the way here.
    pub(super) fn wait_for(&mut self, cta: u32, at: u64, parity: Option<bool>, again: bool) {
        let waits = self.awaited.entry((cta, at)).or_default();
        waits.parities.extend(parity);
        waits.again |= again;
    }
}

/// Loops that some warp enters.
fn loops(kernel: &Kernel, classes: &[Option<Class>], courses: &[&Course]) -> Vec<Loop> {
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    let mut back = |from: usize, to: usize| {
        if to <= from {
            let last = last.entry(to).or_default();
            *last = from.max(*last);
        }
    };
    for (pc, statement) in kernel.body.iter().enumerate() {
        match &statement.what {
            What::Branch { target } => back(pc, *target),
            What::Table { table, .. } => {
                kernel.tables.get(*table).into_iter().flatten().for_each(|to| back(pc, *to));
            }
            _ => {}
        }
    }
    let line = |pc: usize| kernel.body.get(pc).map_or(0, |s| s.line);
    let synchronises = classes.iter().map(|c| *c == Some(Class::Synchronises)).collect::<Vec<_>>();
    let one = |(first, last): (usize, usize)| {
        let passes = courses.iter().filter_map(|c| c.passes.get(&first).copied());
        let passes = (passes.clone().min()?, passes.max()?);
        let waits = courses.iter().any(|c| c.waits.contains(&first));
        let synchronises = synchronises.get(first..=last).is_some_and(|s| s.contains(&true));
        Some(Loop { first: line(first), last: line(last), passes, waits, synchronises })
    };
    let mut out: Vec<Loop> = last.into_iter().filter_map(one).collect();
    out.sort_unstable();
    out
}

fn class(statement: &Statement) -> Option<Class> {
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
        _ => Some(Class::Synchronises),
    }
}

fn mnemonic(kernel: &Kernel, statement: &Statement) -> String {
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
