//! Looks for launches that do what the launches so far have not done.
//!
//! Contract: a launch is surveyed, that is run ahead, and not explored. Candidates differ from a given launch in a parameter, in
//! the grid along one axis, or in two of these, small numbers first. The values of a parameter are the small numbers, and those
//! that the kernel writes where the goal depends on the parameter, with their neighbours and multiples; then some far larger
//! ones, the last of them negative. The number of surveys and their work are bounded, so what is found is a function of the
//! kernel and the launch.

use super::budget::Budget;
use super::coverage::Met;
use super::goals::{Goal, Goals};
use super::known::depends::Depends;
use super::known::strides::strides;
use super::launch::Launch;
use super::need::{Need, placed};
use super::word::{Pointer, Word};
use super::{STEPS, survey};
use crate::ptx::Kernel;
use std::collections::{BTreeMap, BTreeSet};

/// Most launches that are surveyed.
const SURVEYS: usize = 800;
/// Threads of a CTA that are tried where nothing says how many.
const BLOCKS: [u32; 4] = [256, 512, 1024, 64];
/// Clusters along an axis that are tried.
const CLUSTERS: [u32; 5] = [1, 2, 3, 4, 5];
/// Small values of a parameter.
const SMALL: u64 = 8;
/// Values of what addresses are computed from: rows of this length do not overlap, whole tiles first.
const LENGTHS: [u64; 9] = [128, 256, 384, 512, 129, 130, 131, 135, 263];
/// Smaller values of it, with which rows may overlap.
const SHORT: [u64; 9] = [7, 1, 2, 3, 5, 17, 33, 65, 0];
/// Largest number of the kernel from which values are made.
const LARGEST: u64 = 1 << 12;
/// Most values of a parameter.
const VALUES: usize = 96;
/// The least number that may be the size of a tile, and how many tiles are tried.
const TILES: (u64, [u64; 5]) = (16, [4, 5, 6, 8, 12]);
/// The steps of a loop over tiles that is no power of two, such as the number of multiprocessors.
const STEPPED: std::ops::RangeInclusive<u64> = 66..=256;
/// Most values of each of two that are varied together.
const PAIRED: usize = 9;
/// Large values of a parameter that are tried if it is no length. What it counts may have no room for so many.
const FAR: [u64; 11] = [
    1 << 12,
    1 << 13,
    1 << 14,
    1 << 16,
    1 << 18,
    1 << 20,
    1 << 24,
    1 << 28,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
];
/// The work of a survey with one of them, in statements.
const FAR_WORK: u64 = 50_000;
/// Most values that are tried one by one before a way of a guard is taken to be impossible.
const EXHAUSTED: u64 = 128;

/// The number of launches in which a guard goes one way that says that it never goes the other one.
const MANY: usize = 48;

/// Why no launch meets a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// What it depends on is fixed for the kernel.
    Fixed,
    /// These values were tried, and none does it.
    Tried(String),
}

/// A launch that was surveyed.
#[derive(Clone, Debug)]
pub struct Found {
    /// The launch.
    pub launch: Launch,
    /// What it does.
    pub met: Met,
    /// The work of its survey, in statements.
    pub work: u64,
}

/// What may be changed about a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Varied {
    /// A parameter, with its first byte.
    Param(u16, u32),
    /// The words behind a pointer.
    Words(u16, u32),
    /// The grid along an axis.
    Axis(usize),
    /// The threads of a CTA.
    Block,
}

/// What may be varied of a launch.
#[derive(Clone, Debug)]
pub struct Free {
    /// The parameters that got a value.
    pub needs: Vec<Need>,
    /// The grid.
    pub grid: bool,
    /// The threads of a CTA: nothing says how many there are.
    pub block: bool,
}

/// A search for launches.
pub struct Cover<'k> {
    kernel: &'k Kernel,
    goals: &'k Goals,
    /// The launches that are varied.
    bases: Vec<Launch>,
    /// Parameters that may be varied.
    params: BTreeSet<(u16, u32)>,
    /// Pointers behind which words may be varied.
    words: BTreeSet<Pointer>,
    /// Those of `params` that are pointers: they may be null.
    pointers: BTreeSet<(u16, u32)>,
    grid: bool,
    block: bool,
    /// Whether data may decide branches either way.
    choosing: bool,
    strides: BTreeSet<(u16, u32)>,
    budget: Budget,
    seen: BTreeMap<Key, Option<usize>>,
    found: Vec<Found>,
}

/// A launch, as far as it is varied.
type Key = ([u32; 3], [u32; 3], BTreeMap<u16, u64>, BTreeMap<(u16, u32), u64>, Option<BTreeMap<Word, u64>>);

impl<'k> Cover<'k> {
    /// A search among the launches that differ from these in what is free.
    pub fn new(
        (kernel, goals): (&'k Kernel, &'k Goals),
        bases: Vec<Launch>,
        free: &Free,
        choosing: bool,
    ) -> Self {
        let needs =
            |behind: bool| free.needs.iter().filter(move |n| n.behind == behind).map(|n| (n.index, n.at));
        let numbers: BTreeSet<(u16, u32)> = needs(false).collect();
        let given = |index: u16| {
            bases
                .iter()
                .any(|base| base.params.contains_key(&index) || base.actual.bytes.contains_key(&index))
        };
        let pointer = |p: &(u16, u32)| {
            kernel.params.get(usize::from(p.0)).is_some_and(|param| param.pointer) && p.1 == 0
        };
        let decides = goals.all().params;
        let pointers: BTreeSet<(u16, u32)> =
            decides.into_iter().filter(|p| pointer(p) && !numbers.contains(p) && !given(p.0)).collect();
        Cover {
            kernel,
            goals,
            bases,
            params: numbers.union(&pointers).copied().collect(),
            words: needs(true).collect(),
            pointers,
            grid: free.grid,
            block: free.block,
            choosing,
            strides: strides(kernel),
            budget: Budget::new(4 * STEPS),
            seen: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    /// The smallest launch that meets a goal. `met` is what the launches so far have done. Those of `not` that meet it are
    /// undecided: if they are small, one with twice the work says more than one like them.
    pub fn find(&mut self, goal: Goal, met: &Met, not: &[Launch]) -> Option<Found> {
        if self.is_fixed(goal, met) {
            return None;
        }
        let small = self.found.iter().map(|found| 4 * found.work).min().unwrap_or(0);
        let asked = |found: &&Found| {
            found.work <= small && self.goals.is_met(goal, &found.met) && not.contains(&found.launch)
        };
        let more = self.found.iter().filter(asked).map(|found| 2 * found.work).max().unwrap_or(0);
        // Other goals need some of the work, too.
        let least = self.budget.left() / 2;
        for launch in self.candidates(goal, met) {
            if self.budget.left() < least {
                break;
            }
            let found = self.survey(launch);
            if found.is_some_and(|n| self.meets(goal, n, not) && self.found[n].work >= more) {
                break;
            }
        }
        let all = (0..self.found.len()).filter(|n| self.meets(goal, *n, not));
        let least = all.min_by_key(|n| {
            let Found { launch, work, .. } = &self.found[*n];
            (*work < more, self.doubt(launch).is_some(), *work)
        })?;
        Some(self.found[least].clone())
    }

    /// Whether no launch that may be tried changes what decides a goal.
    fn is_fixed(&self, goal: Goal, met: &Met) -> bool {
        !self.block && self.goals.is_fixed(goal, met)
    }

    fn meets(&self, goal: Goal, n: usize, not: &[Launch]) -> bool {
        self.goals.is_met(goal, &self.found[n].met) && !not.contains(&self.found[n].launch)
    }

    /// Why no launch meets a goal, if it seems that none does: what it depends on is fixed for the kernel, or it depends on one
    /// parameter, and none of its small values does it. A guard whose numbers are small mostly repeats itself beyond twice
    /// their sum.
    pub fn impossible(&mut self, goal: Goal, met: &Met) -> Option<Impossible> {
        if self.goals.depends(goal, met).reads().next().is_none() && self.excluded(goal, met) {
            let why = "in the launches for which what is assumed holds; without it, another launch does";
            return Some(Impossible::Tried(why.to_owned()));
        }
        if matches!(goal, Goal::Runs(_) | Goal::Wraps(_) | Goal::Meets(_) | Goal::Third) {
            return None;
        }
        if self.found.iter().any(|found| self.goals.is_met(goal, &found.met)) {
            return None;
        }
        let depends = self.goals.depends(goal, met);
        // Other words may do it one by one.
        if depends.reads().next().is_some() {
            return None;
        }
        let params = depends.params.iter().map(|p| Varied::Param(p.0, p.1));
        let axes = (0..3).filter(|n| depends.axes[*n]).map(Varied::Axis);
        match params.chain(axes).collect::<Vec<_>>().as_slice() {
            [] if !self.goals.is_fixed(goal, met) => None,
            [] if !self.block => Some(Impossible::Fixed),
            [] => (!self.other_blocks(goal)).then(|| {
                Impossible::Tried(format!("in CTAs of {} threads", BLOCKS.map(|b| b.to_string()).join(", ")))
            }),
            [one] => self.exhausted(goal, *one, &depends),
            _ => self.always(goal),
        }
    }

    /// Whether what is assumed of parameters keeps a goal that depends on these alone from being met: launches with values for
    /// which it does not hold meet it, and those with the nearest values for which it does hold do not.
    fn excluded(&self, goal: Goal, met: &Met) -> bool {
        let Some(base) = self.bases.first().cloned() else { return false };
        let depends = self.goals.depends(goal, met);
        let assumed = !depends.params.is_empty() && depends.params.iter().all(|p| base.assumes(*p));
        if !assumed
            || depends.axes.contains(&true)
            || self.found.iter().any(|f| self.goals.is_met(goal, &f.met))
        {
            return false;
        }
        let values = |p: &(u16, u32)| self.values(Varied::Param(p.0, p.1), &depends.numbers, goal);
        let tried: Vec<((u16, u32), u64)> =
            depends.params.iter().flat_map(|p| values(p).into_iter().map(move |v| (*p, v))).collect();
        let free = Launch { assumed: Vec::new(), ..base.clone() };
        let mut others = tried.into_iter().filter(|(place, v)| self.once(&free, *place, *v, goal)).peekable();
        let near =
            |(place, v): ((u16, u32), u64)| base.nearest(place, v).into_iter().map(move |v| (place, v));
        others.peek().is_some() && !others.flat_map(near).any(|(place, v)| self.once(&base, place, v, goal))
    }

    /// Whether a launch with another value of a parameter meets a goal. It is not among those that are found.
    fn once(&self, base: &Launch, (index, at): (u16, u32), value: u64, goal: Goal) -> bool {
        let launch = self.with(base, Varied::Param(index, at), value);
        let part = self.budget.part(FAR_WORK);
        let whole = part.left();
        let found = survey(self.kernel, &launch, &part, self.choosing);
        self.budget.spend(whole - part.left());
        found.is_ok_and(|c| self.goals.is_met(goal, &c.met))
    }

    /// Whether a guard went one way in very many launches, which differ in what it depends on. All that both ways lead to runs
    /// elsewhere, or it is a goal of its own.
    fn always(&self, goal: Goal) -> Option<Impossible> {
        let Goal::Goes(pc, holds) = goal else { return None };
        let others = self.found.iter().filter(|found| found.met.goes(pc, !holds)).count();
        (others >= MANY).then(|| Impossible::Tried(format!("in {others} launches with different parameters")))
    }

    /// Whether CTAs of another size meet a goal.
    fn other_blocks(&mut self, goal: Goal) -> bool {
        let Some(base) = self.bases.first().cloned() else { return false };
        BLOCKS.into_iter().any(|threads| {
            let launch = self.with(&base, Varied::Block, u64::from(threads));
            self.survey(launch).is_some_and(|n| self.goals.is_met(goal, &self.found[n].met))
        })
    }

    fn exhausted(&mut self, goal: Goal, part: Varied, depends: &Depends) -> Option<Impossible> {
        let sum = depends.numbers.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
        let last = sum.saturating_mul(2).saturating_add(2);
        let (free, first, most, of) = match part {
            Varied::Param(index, at) => {
                let place = placed((index, at));
                (self.params.contains(&(index, at)), 0, EXHAUSTED, format!("parameter {place}"))
            }
            Varied::Words(..) | Varied::Block => (false, 0, 0, String::new()),
            Varied::Axis(n) => (
                self.grid,
                1,
                u64::from(CLUSTERS[CLUSTERS.len() - 1]),
                format!("clusters along {}", ["x", "y", "z"][n % 3]),
            ),
        };
        let base = self.bases.first().cloned().filter(|_| free && last <= most)?;
        let none = self.allowed(part, (first..=last).collect()).into_iter().all(|v| {
            let launch = self.with(&base, part, v);
            self.survey(launch).is_some_and(|n| !self.goals.is_met(goal, &self.found[n].met))
        });
        none.then(|| Impossible::Tried(format!("with {of} from {first} to {last}")))
    }

    /// Why what is wrong with a launch need not be wrong with the kernel: a parameter from which addresses are computed has a
    /// value with which rows may overlap, a pointer is null, or a number is one of the large ones.
    pub fn doubt(&self, launch: &Launch) -> Option<&'static str> {
        let any = |all: &BTreeSet<(u16, u32)>, is: &dyn Fn(u64) -> bool| {
            let value = |field: &(u16, u32)| launch.value(self.kernel, *field);
            all.intersection(&self.params).filter_map(value).any(is)
        };
        if any(&self.strides, &|v| v < LENGTHS[0]) {
            return Some("rows of fewer than 128 bytes or elements may overlap");
        }
        if any(&self.pointers, &|v| v == 0) {
            return Some("a pointer is null");
        }
        self.is_far(launch).then_some("a parameter may be too large, or negative")
    }

    /// The parameter that is 0, if it may be varied, or behind which words are 0, and whether addresses are computed from it. None
    /// if there are several.
    pub fn empty(&self, launch: &Launch) -> Option<(String, bool)> {
        let empty = |need: &Need| launch.found(self.kernel, need) == Some(0);
        let mut all =
            self.varied().filter(|n| n.behind || !self.pointers.contains(&(n.index, n.at))).filter(empty);
        let one = all.next()?;
        let row = !one.behind && self.strides.contains(&(one.index, one.at));
        all.next().is_none().then(|| (one.place(), row))
    }

    /// All that may be varied and has a value.
    fn varied(&self) -> impl Iterator<Item = Need> {
        let params = self.params.iter().map(|p| Need::of(*p));
        params.chain(self.words.iter().map(|p| Need::behind(*p)))
    }

    /// Whether a parameter, or a word, has one of the large values.
    fn is_far(&self, launch: &Launch) -> bool {
        self.varied().filter_map(|need| launch.found(self.kernel, &need)).any(|v| FAR.contains(&v))
    }

    /// Surveys a launch, unless that has been done.
    fn survey(&mut self, launch: Launch) -> Option<usize> {
        let (params, fields) = (launch.params.clone(), launch.fields.clone());
        let key = (launch.grid, launch.block, params, fields, launch.words.clone());
        if let Some(known) = self.seen.get(&key) {
            return *known;
        }
        if self.seen.len() >= SURVEYS || self.budget.left() == 0 {
            return None;
        }
        let most = if self.is_far(&launch) { FAR_WORK } else { u64::MAX };
        let part = self.budget.part(most);
        let whole = part.left();
        let found = survey(self.kernel, &launch, &part, self.choosing).ok();
        let work = whole - part.left();
        self.budget.spend(work);
        let number = found.map(|c| {
            self.found.push(Found { launch, met: c.met, work });
            self.found.len() - 1
        });
        self.seen.insert(key, number);
        number
    }

    /// The launches that may meet a goal, the likely and small ones first.
    fn candidates(&self, goal: Goal, met: &Met) -> Vec<Launch> {
        let mut depends = self.goals.depends(goal, met);
        if !depends.is_free() {
            depends.join(&self.goals.all());
        }
        let params =
            depends.params.iter().filter(|p| self.params.contains(p)).map(|p| Varied::Param(p.0, p.1));
        let words = self.words_of(&depends, met).into_iter().map(|p| Varied::Words(p.0, p.1));
        let axes = (0..3).filter(|n| self.grid && depends.axes[*n]).map(Varied::Axis);
        let block = (self.block && depends.thread).then_some(Varied::Block);
        let parts: Vec<(Varied, Vec<u64>)> = params
            .chain(words)
            .chain(axes)
            .chain(block)
            .map(|part| (part, self.allowed(part, self.values(part, &depends.numbers, goal))))
            .collect();
        let mut out = Vec::new();
        // In turns: the work is bounded, and the last parameter may be the one.
        let bases: Vec<&Launch> = self.near(goal).into_iter().chain(&self.bases).collect();
        let turns = 0..parts.iter().map(|part| part.1.len()).max().unwrap_or(0);
        for (n, base) in turns.flat_map(|n| bases.iter().copied().map(move |base| (n, base))) {
            for (part, v) in parts.iter().filter_map(|(part, values)| Some((*part, *values.get(n)?))) {
                let row = Launch { grid: base.cluster, ..base.clone() };
                let row = matches!(part, Varied::Axis(_)).then_some(row);
                out.extend(row.iter().map(|row| self.with(row, part, v)));
                out.push(self.with(base, part, v));
            }
        }
        let counts = parts.iter().map(|part| part.0).filter(|part| self.counts(*part));
        for part in counts {
            let far = self.allowed(part, FAR.to_vec());
            out.extend(self.bases.first().iter().flat_map(|b| far.iter().map(|v| self.with(b, part, *v))));
        }
        for (n, (one, values)) in parts.iter().enumerate() {
            for (other, others) in &parts[n + 1..] {
                for (v, w) in pairs(values, others) {
                    out.extend(bases.first().map(|base| self.with(&self.with(base, *one, v), *other, w)));
                }
            }
        }
        out
    }

    /// The pointers behind which words may be varied that decide something; all of them, where it is not known what does.
    fn words_of(&self, depends: &Depends, met: &Met) -> BTreeSet<Pointer> {
        let told: BTreeSet<Pointer> =
            depends.reads().filter_map(|load| met.told.get(load)).flat_map(|t| t.keys().copied()).collect();
        if told.is_empty() { self.words.clone() } else { &told & &self.words }
    }

    /// The launch with the least work that comes to where the goal is, of those that were surveyed.
    fn near(&self, goal: Goal) -> Option<&Launch> {
        let comes = |met: &Met| match goal {
            Goal::Goes(pc, holds) => met.goes(pc, !holds),
            Goal::Repeats(first) => met.passes.contains_key(&first),
            Goal::Again(pc, _) | Goal::Rewaits(pc) => met.is_reached(pc),
            Goal::Runs(_) | Goal::Chooses(..) | Goal::Wraps(_) | Goal::Meets(_) | Goal::Third => false,
        };
        let all = self.found.iter().filter(|found| comes(&found.met));
        all.min_by_key(|found| found.work).map(|found| &found.launch)
    }

    /// Whether it is a parameter that is neither a length nor a pointer.
    fn counts(&self, part: Varied) -> bool {
        let (Varied::Param(index, at) | Varied::Words(index, at)) = part else { return false };
        if matches!(part, Varied::Words(..)) {
            return true;
        }
        !self.strides.contains(&(index, at)) && !self.pointers.contains(&(index, at))
    }

    fn with(&self, base: &Launch, part: Varied, v: u64) -> Launch {
        let mut launch = base.clone();
        match part {
            Varied::Param(index, at) => launch = launch.with(self.kernel, (index, at), v),
            Varied::Words(index, at) => launch = launch.given(self.kernel, &Need::behind((index, at)), v),
            Varied::Axis(n) => {
                let clusters = u32::try_from(v).unwrap_or(1);
                launch.grid[n] = launch.cluster[n].saturating_mul(clusters);
            }
            Varied::Block => launch.block = [u32::try_from(v).unwrap_or(1), 1, 1],
        }
        launch
    }

    /// Those of these values that a part may have, with multiples of what a parameter is assumed to be divided by.
    fn allowed(&self, part: Varied, mut values: Vec<u64>) -> Vec<u64> {
        let (Varied::Param(index, at), Some(base)) = (part, self.bases.first()) else { return values };
        let of = base.assumed.iter().filter(|a| a.place == (index, at));
        let by = of.filter_map(|a| a.divisor.filter(|by| *by <= LARGEST));
        let near = |by: u64| {
            values
                .iter()
                .filter_map(move |v| v.checked_next_multiple_of(by))
                .chain((0..=SMALL).map(move |n| n * by))
        };
        let more: BTreeSet<u64> = by.flat_map(near).collect();
        let more: Vec<u64> = more.into_iter().filter(|v| !values.contains(v)).collect();
        values.extend(more);
        if base.assumes((index, at)) { base.allowed((index, at), values) } else { values }
    }

    /// The values of a part, in the order in which they are tried: counts of tiles first if a loop is to make more passes, and soon if
    /// something is to run.
    fn values(&self, part: Varied, numbers: &BTreeSet<u64>, goal: Goal) -> Vec<u64> {
        match part {
            Varied::Axis(_) => CLUSTERS.map(u64::from).to_vec(),
            Varied::Block => BLOCKS.map(u64::from).to_vec(),
            Varied::Param(index, at) if self.pointers.contains(&(index, at)) => vec![0],
            Varied::Param(index, at) if self.strides.contains(&(index, at)) => {
                LENGTHS.into_iter().chain(SHORT).collect()
            }
            Varied::Param(..) | Varied::Words(..) => {
                let block = self.bases.first().map_or([1; 3], |base| base.block);
                let threads: u64 = block.iter().map(|n| u64::from(*n)).product();
                let bases = numbers.iter().copied().chain([threads]).filter(|n| *n <= LARGEST);
                let near = bases.flat_map(|n| [n.saturating_sub(1), n, n + 1, 2 * n, 2 * n + 1, 3 * n]);
                let tiles = tiles(numbers).flat_map(|n| TILES.1.map(|count| count * n));
                let tiles: BTreeSet<u64> = tiles.collect();
                let all: BTreeSet<u64> = (0..=SMALL).chain(near).chain(tiles.iter().copied()).collect();
                let mut all: Vec<u64> = all.into_iter().collect();
                let runs = matches!(goal, Goal::Runs(_));
                let passes = !runs && !matches!(goal, Goal::Goes(..) | Goal::Chooses(..));
                let early = |v: &u64| tiles.contains(v) || (3..=SMALL).contains(v);
                all.sort_by_key(|v| (!(passes && early(v)), *v));
                let further = if passes || runs { stepped(&self.goals.all().numbers) } else { Vec::new() };
                let at = if runs { all.partition_point(|v| *v <= SMALL) } else { 0 };
                all.splice(at..at, further);
                all.truncate(VALUES);
                all
            }
        }
    }
}

/// Numbers that may be the size of a tile.
fn tiles(numbers: &BTreeSet<u64>) -> impl Iterator<Item = u64> {
    numbers.range(TILES.0..=LARGEST / 8).copied().filter(|n| n.is_power_of_two())
}

/// What gives a CTA a second tile if its loop goes on by the number of multiprocessors, or the like: one tile more than that.
fn stepped(numbers: &BTreeSet<u64>) -> Vec<u64> {
    let round = |n: u64| n.is_power_of_two() || (n + 1).is_power_of_two();
    let steps = numbers.iter().filter(|n| STEPPED.contains(n) && !round(**n));
    steps.flat_map(|step| tiles(numbers).map(move |tile| (step + 1) * tile)).take(PAIRED / 2).collect()
}

/// The first few values of two lists, those that come early in both first.
fn pairs(one: &[u64], other: &[u64]) -> Vec<(u64, u64)> {
    let (one, other) = (&one[..one.len().min(PAIRED)], &other[..other.len().min(PAIRED)]);
    let mut out: Vec<(usize, u64, u64)> = Vec::new();
    for (i, v) in one.iter().enumerate() {
        out.extend(other.iter().enumerate().map(|(j, w)| (i + j, *v, *w)));
    }
    out.sort_by_key(|p| p.0);
    out.into_iter().map(|(_, v, w)| (v, w)).collect()
}
