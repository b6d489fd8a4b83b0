//! The launches that run more of a kernel than those that were judged, and what is left of it.
//!
//! Contract: a launch counts once it is judged and clean. What a launch does is a set of goals of `moire_kernel::specialise`;
//! what is left is asked and not met by any launch that counts. Launches for it are looked for among those that keep
//! what the user says, the one for the hardest goal first. For what is left in the end, options are looked for that may also
//! change what the user says.

use super::launched::{Launched, Taken, Uncovered};
use super::lowered::Candidate;
use super::ptx::{Asked, Tried};
use super::queued::Among;
use anyhow::Result;
use moire_explore::judge::Verdict;
use moire_kernel::specialise::{
    Cover, Found, Free, Goal, Impossible, Launch, Met, Need, decides_addresses, every, sweep,
};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A launch as it was run ahead.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) launch: Launch,
    pub(crate) met: Met,
    /// Data decides branches either way.
    pub(crate) choosing: bool,
}

/// A kernel of which launches were judged.
pub struct Covering {
    pub(super) asked: Rc<Asked>,
    /// The parameters that got a value.
    pub(super) needs: Vec<Need>,
    /// The kernels that are launched with it.
    pub(super) among: Option<Among>,
}

/// Why what is wrong with three clusters need not be wrong with the kernel.
const THIRD: &str = "clusters that wait for each other may be made for two of them";

/// The coverage of a kernel so far.
pub(crate) struct Search<'c> {
    covering: &'c Covering,
    cover: Cover<'c>,
    /// What the clean launches have done.
    met: Met,
    /// Goals that no launch meets.
    impossible: BTreeSet<Goal>,
    /// Why, where values were tried.
    tried: BTreeMap<Goal, String>,
    /// Goals for which no launch is found.
    unfound: BTreeSet<Goal>,
    /// Launches that were judged.
    judged: Vec<Launch>,
    /// Those of them that were clean at first.
    bases: Vec<Launch>,
    choosing: bool,
    /// The grid of the launch of the answer.
    largest: [u32; 3],
}

/// A launch that is worth judging.
pub(crate) struct More {
    pub(crate) candidate: Candidate,
    /// Why what is wrong with it need not be wrong with the kernel.
    pub(crate) doubt: Option<&'static str>,
}

/// The least value of a parameter that is tried in the place of one with which a launch is too long.
const SHORT: u64 = 64;

impl Covering {
    /// A launch that is shorter than one that is too long to run ahead, with which of the given values is another one, if a proof for
    /// every value of it would stand for both.
    pub(crate) fn shorter(&self, long: &Launch) -> Option<(Candidate, (u16, u32), u64)> {
        let Asked { kernel, args, goals, .. } = &*self.asked;
        let places = args.params.keys().map(|n| (*n, 0)).chain(args.fields.keys().copied());
        places.filter_map(|place| Some((place, long.value(kernel, place)?))).find_map(|(place, value)| {
            // What else the launch needs shows once it is short.
            let halves = (0..64).map(|n| (value >> n, value == value >> n << n));
            let (short, _) = halves.take_while(|half| half.0 >= SHORT && half.1).last()?;
            let launch = sweep(kernel, goals, &long.with(kernel, place, short)).launches.pop()?;
            let all = every(kernel, &launch, place).ok()??;
            let with_a_period = all.base(value)?.saturating_add(all.step).min(value);
            Some((self.candidate(launch.with(kernel, place, with_a_period)).ok()?, place, value))
        })
    }

    /// The search for more launches, after some were judged and these found clean. The last one is that of the answer.
    pub(crate) fn search(&self, clean: &[&Run], judged: Vec<Launch>) -> Search<'_> {
        let mut met = Met::default();
        clean.iter().for_each(|run| met.join(&run.met));
        let bases: Vec<Launch> = clean.iter().map(|run| run.launch.clone()).collect();
        let choosing = clean.iter().any(|run| run.choosing);
        let of = (&self.asked.kernel, &self.asked.goals);
        Search {
            covering: self,
            cover: Cover::new(of, ends(&bases), &self.free(), choosing),
            met,
            impossible: BTreeSet::new(),
            tried: BTreeMap::new(),
            unfound: BTreeSet::new(),
            largest: bases.last().map_or([1; 3], |launch| launch.grid),
            judged,
            bases,
            choosing,
        }
    }

    /// What the user leaves open.
    fn free(&self) -> Free {
        Free {
            needs: self.needs.clone(),
            grid: self.asked.args.grid.is_none(),
            block: self.asked.assumes_block(),
        }
    }

    /// The same launch with `times` the values of the parameters that were chosen and decide addresses, if there are any and
    /// these lines are accesses to global memory: a grid that was chosen, too, may be too large for them.
    pub(crate) fn roomier(&self, run: &Run, lines: &BTreeSet<u32>, times: u64) -> Option<Candidate> {
        let mut launch = run.launch.clone();
        let chosen =
            self.needs.iter().filter(|n| n.at == 0 && !n.behind && n.decides.starts_with("an address"));
        let mut larger = false;
        for need in chosen {
            let value = launch
                .params
                .get_mut(&need.index)
                .filter(|_| !self.asked.args.params.contains_key(&need.index));
            if let Some(value) = value {
                (*value, larger) = (value.saturating_mul(times), true);
            }
        }
        let open = larger && self.free().grid && self.asked.goals.are_global(lines);
        open.then(|| self.candidate(launch).ok()).flatten()
    }

    /// The kernel and its text.
    pub(crate) fn kernel(&self) -> &moire_kernel::ptx::Kernel {
        &self.asked.kernel
    }

    /// Whether the value of a parameter, or of a field of one, was chosen and decides no address.
    pub(crate) fn chose(&self, place: (u16, u32)) -> bool {
        let chosen =
            self.needs.iter().any(|need| (need.index, need.at, need.behind) == (place.0, place.1, false));
        chosen && !decides_addresses(&self.asked.kernel, place)
    }

    /// The sources of programs of the kernel.
    pub(crate) fn source(&self, program: moire_program::ir::Program) -> crate::input::Source {
        self.asked.source(program)
    }

    /// A launch with its programs.
    pub(crate) fn candidate(&self, launch: Launch) -> Result<Candidate> {
        match &self.among {
            Some(among) => among.candidate(launch),
            None => self.asked.candidate(Tried::new(&self.asked.kernel, launch), &self.needs),
        }
    }
}

/// The first and the last launch.
fn ends(all: &[Launch]) -> Vec<Launch> {
    let ends = all.first().into_iter().chain(all.last().filter(|_| all.len() > 1));
    ends.cloned().collect()
}

impl Search<'_> {
    fn left(&self) -> BTreeSet<Goal> {
        let mut left = self.covering.asked.goals.left(&self.met, &self.impossible);
        // Who names the grid knows how many CTAs there are.
        left.retain(|goal| *goal != Goal::Third || self.covering.free().grid);
        left
    }

    /// The launch that meets the goal which is hardest to meet.
    pub(crate) fn next(&mut self) -> Option<More> {
        let mut best: Option<(Goal, Found)> = None;
        let left = self.left();
        let open = left.iter().any(|goal| !self.unfound.contains(goal));
        let goals = if open { left } else { self.covering.asked.goals.beside(&self.met) };
        for goal in goals {
            if self.unfound.contains(&goal) || self.impossible.contains(&goal) {
                continue;
            }
            match self.cover.find(goal, &self.met, &self.judged) {
                Some(found) if best.as_ref().is_none_or(|b| b.1.work < found.work) => {
                    best = Some((goal, found))
                }
                Some(_) => {}
                None => self.missing(goal),
            }
        }
        let Some((goal, Found { launch, .. })) = best else {
            return if open { self.next() } else { None };
        };
        self.judged.push(launch.clone());
        let third = (goal == Goal::Third).then_some(THIRD);
        // One such launch is enough: a larger one that is wrong, too, says no more.
        self.unfound.extend(third.map(|_| goal));
        let doubt = self.cover.doubt(&launch).or(third);
        match self.covering.candidate(launch) {
            Ok(candidate) => Some(More { candidate, doubt }),
            Err(_) => self.next(),
        }
    }

    fn missing(&mut self, goal: Goal) {
        let Some(why) = self.cover.impossible(goal, &self.met) else {
            self.unfound.insert(goal);
            return;
        };
        self.impossible.insert(goal);
        if let Impossible::Tried(values) = why {
            self.tried.insert(goal, values);
        }
    }

    /// What is taken to be impossible because values were tried that do not do it.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        let asked = &self.covering.asked;
        let open = self.tried.iter().filter(|(goal, _)| !asked.goals.is_met(**goal, &self.met));
        let said = |(goal, values): (&Goal, &String)| {
            let (line, text, misses) = asked.goals.said(&asked.kernel, *goal, &self.met);
            Taken { line, text: format!("{text} {misses}: so it is {values}; others were not tried") }
        };
        open.map(said).collect()
    }

    /// The statements that no launch runs, whatever its parameters.
    pub(crate) fn never(&self) -> Vec<Taken> {
        let (goals, kernel) = (&self.covering.asked.goals, &self.covering.asked.kernel);
        let said = |pc| {
            let (line, text, misses) = goals.said(kernel, Goal::Runs(pc), &self.met);
            Taken { line, text: format!("{text} {misses}: numbers that the kernel stores itself decide so") }
        };
        goals.never(&self.met).into_iter().map(said).collect()
    }

    /// Counts a launch that is clean.
    pub(crate) fn count(&mut self, run: &Run) {
        self.met.join(&run.met);
    }

    /// Leaves out what only a launch does in which a parameter is 0 and which is wrong for that reason: it is not known whether the
    /// kernel may be launched so. A hang is taken for that, an end before what was issued is over, and a race in global memory where
    /// addresses are computed from the parameter. `lines` are those of what is wrong; it is `unfinished` if all of it is work
    /// that a CTA has not waited for when it ends. The place of the parameter.
    pub(crate) fn excuse(
        &mut self,
        run: &Run,
        verdicts: &[Verdict],
        lines: &BTreeSet<u32>,
        unfinished: bool,
    ) -> Option<String> {
        let (place, row) = self.cover.empty(&run.launch)?;
        let only = |all: &[Verdict]| verdicts.iter().all(|v| all.contains(v));
        let ends =
            only(&[Verdict::Hang, Verdict::Lifetime]) && (unfinished || verdicts.contains(&Verdict::Hang));
        let row = row && self.covering.asked.goals.are_global(lines) && only(&[Verdict::Race]);
        if !ends && !row {
            return None;
        }
        let goals = &self.covering.asked.goals;
        let met: Vec<Goal> = self.left().into_iter().filter(|g| goals.is_met(*g, &run.met)).collect();
        self.impossible.extend(met);
        Some(place)
    }

    /// The same launch with at least as many CTAs along each axis as the largest one has, if it has fewer.
    pub(crate) fn larger(&self, run: &Run) -> Option<Candidate> {
        let grid = std::array::from_fn(|n| run.launch.grid[n].max(self.largest[n]));
        let launch = Launch { grid, ..run.launch.clone() };
        (grid != run.launch.grid).then(|| self.covering.candidate(launch).ok()).flatten()
    }

    /// Looks among all launches from now on, also those that the user did not ask for.
    fn release(&mut self) {
        let asked = &self.covering.asked;
        let given = asked.args.params.keys().map(|n| (*n, 0)).chain(asked.args.fields.keys().copied());
        let words = asked.args.words.keys().filter(|w| w.at.is_none()).map(|w| Need::behind(w.pointer));
        let given = given.map(Need::of).chain(words);
        let needs: Vec<Need> = self.covering.needs.iter().cloned().chain(given).collect();
        let free = Free { needs, grid: true, ..self.covering.free() };
        self.cover = Cover::new((&asked.kernel, &asked.goals), ends(&self.bases), &free, self.choosing);
    }

    /// What is left, with options that differ from this launch. If it is `open`, only statements that do not run.
    pub(crate) fn uncovered(mut self, launch: &Launched, open: bool) -> Vec<Uncovered> {
        let asked = &self.covering.asked;
        let mut left = self.left();
        left.retain(|goal| !open || matches!(goal, Goal::Runs(_)));
        if !left.is_empty() {
            self.release();
        }
        let mut out: Vec<Uncovered> = Vec::new();
        for goal in left {
            let (line, text, misses) = asked.goals.said(&asked.kernel, goal, &self.met);
            let found = self.cover.find(goal, &self.met, &[]);
            let other = |f: Found| Launched { number: launch.number, ..asked.said(&f.launch, None, &[]) };
            let options = found.map(|f| launch.differs(&other(f)));
            out.push(Uncovered { line, text, misses, options });
        }
        out
    }
}
