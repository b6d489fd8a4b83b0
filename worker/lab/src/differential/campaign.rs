//! The self check at scale: compares both engines on many distinct programs, and counts their traits.
//!
//! A run is a range of seeds. It can be stopped and continued from the [`Totals`] that [`Campaign::run`] reported last.

use super::in_order::in_order;
use super::{Comparison, Difference, Shape, compare, differs_when_turned, shrink};
use moire_cat::{Model, Variants};
use moire_execution::leaf::Outcome;
use moire_explore::search::{LeafView, Limits, explore};
use moire_generate::numbers::Draw;
use moire_generate::{Profile, Stream};
use moire_naive::{NaiveLimits, weigh};
use moire_program::canon::canonical;
use moire_program::ir::Program;
use moire_worker::agreement::{self, Agreement};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// The reason for leaving out a small program.
const FEWER: &str = "fewer candidates than wanted";

/// The programs, models and limits of a run.
pub struct Campaign<'a> {
    /// Models under which every program is compared. Each of them reaches `count`.
    pub models: &'a [Model],
    /// Further models. Each program is compared under one of them, chosen by its seed.
    pub settings: &'a [Model],
    /// If set, each program is compared only under the model that this gives for its seed. `models` and `settings` are
    /// ignored then.
    pub turns: Option<&'a (dyn Fn(u64) -> &'a Model + Sync)>,
    /// Whether the explorer is also compared with itself on each program with its threads reversed and all names
    /// changed.
    pub turned: bool,
    /// Whether the operational engine judges each program in its domain, too.
    pub operated: bool,
    /// A strong and a weak model, to count the programs with outcomes that only the weak one allows.
    pub yardstick: Option<(&'a Model, &'a Model)>,
    /// First seed.
    pub first_seed: u64,
    /// Totals of an earlier run with the same first seed, to continue from.
    pub done: Option<Totals>,
    /// Programs to compare under each model.
    pub count: u64,
    /// Bounds of the enumerator.
    pub limits: NaiveLimits,
    /// Programs with fewer candidates (not counting orders of writes) are left out.
    pub least: u64,
    /// Number of threads to run on.
    pub workers: usize,
    /// Number of differences after which the run stops.
    pub failures: usize,
    /// Identity of a program; equal ones are compared once.
    pub identity: &'a (dyn Fn(&Program) -> u128 + Sync),
    /// Called with seed, model and kind of a difference as soon as it is found, before it is shrunk.
    pub found: &'a (dyn Fn(u64, &str, &str) + Sync),
    /// The program of a seed.
    pub source: &'a (dyn Fn(u64) -> Option<Program> + Sync),
}

/// A program on which the engines differ, after shrinking.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Seed of the program.
    pub seed: u64,
    /// Name of the model.
    pub model: String,
    /// The difference on the shrunk program.
    pub difference: Difference,
    /// The shrunk program.
    pub program: Program,
}

/// Sums over a run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Distinct programs that were compared under every model.
    pub programs: u64,
    /// Programs equal to an earlier one.
    pub repeated: u64,
    /// Comparisons made.
    pub comparisons: u64,
    /// Executions in all comparisons.
    pub leaves: u64,
    /// Candidates in all comparisons.
    pub candidates: u64,
    /// Programs not compared, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Programs with six or more memory events.
    pub six_events: u64,
    /// Programs with outcomes that the strong model of the yardstick forbids.
    pub beyond: u64,
    /// Programs with an atomic.
    pub rmw: u64,
    /// Programs with a dependency.
    pub dependency: u64,
    /// Programs with a load-buffering ring.
    pub load_buffering: u64,
    /// Programs with an await.
    pub awaits: u64,
    /// Comparisons with the operational engine.
    pub operated: u64,
    /// Differences.
    pub failures: Vec<Failure>,
    /// The seed to continue with.
    pub next_seed: u64,
}

impl Totals {
    /// Lists the traits of which a campaign must have a share: name, number of programs with it, least share in
    /// percent. Most cycles have their last order, so that nothing goes beyond `sc`; that they would without it is tested where
    /// `moire bench tell` counts.
    pub fn shares(&self) -> [(&'static str, u64, u64); 6] {
        [
            ("6+ memory events", self.six_events, 60),
            ("outcomes beyond sc", self.beyond, 12),
            ("read-modify-write", self.rmw, 25),
            ("dependency", self.dependency, 25),
            ("load-buffering cycle", self.load_buffering, 20),
            ("await", self.awaits, 15),
        ]
    }

    /// Prints the histogram, one line per trait.
    pub fn histogram(&self) -> String {
        let mut out = String::new();
        for (name, have, least) in self.shares() {
            let share = 100 * have / self.programs.max(1);
            out.push_str(&format!("{name:22} {have:8}  {share:3} % (at least {least} %)\n"));
        }
        out
    }
}

impl Default for Campaign<'_> {
    fn default() -> Self {
        Campaign {
            models: &[],
            settings: &[],
            turns: None,
            turned: false,
            operated: false,
            yardstick: None,
            first_seed: 0,
            done: None,
            count: 1_000,
            // The enumerator needs about 20 microseconds per candidate. Few programs are worth more time than this.
            limits: NaiveLimits {
                candidates: 4_000,
                combinations: 60_000,
                paths: 1_500,
                ..NaiveLimits::default()
            },
            least: 0,
            workers: 2,
            failures: 5,
            identity: &|p| canonical(p).id.0.iter().take(16).fold(0, |id, byte| id << 8 | u128::from(*byte)),
            found: &|_, _, _| {},
            source: &|index| Some(Stream::new(1, Profile::Core).item(index)),
        }
    }
}

/// Draws `count` random settings of a model's switches; most switches keep their default.
pub fn random_settings(model: &Model, seed: u64, count: usize) -> Vec<Variants> {
    let mut draw = Draw::new(seed);
    let mut one = || {
        let mut out = Variants::new();
        for switch in model.switches() {
            if draw.chance(30) {
                out.insert(switch.name.clone(), switch.values[draw.below(switch.values.len())].clone());
            }
        }
        out
    };
    (0..count).map(|_| one()).collect()
}

impl Campaign<'_> {
    /// Runs until `count` programs are compared or `failures` differences are found. `progress` is called after each
    /// seed.
    ///
    /// The result depends on the seeds and not on `workers`: programs are compared in parallel and counted in order.
    pub fn run(&self, progress: &(dyn Fn(&Totals) + Sync)) -> Totals {
        let start = Totals { next_seed: self.first_seed, ..Totals::default() };
        let mut totals = self.done.clone().unwrap_or(start);
        let enough = |t: &Totals| t.programs >= self.count || t.failures.len() >= self.failures;
        if enough(&totals) {
            return totals;
        }
        let done = totals.next_seed.wrapping_sub(self.first_seed);
        let claims = Mutex::new(self.claims(done));
        let compare = |at: u64| {
            let at = done + at;
            let (program, identity) = self.drawn(self.seed(at))?;
            // Of two equal programs, a thread may reach the later one first. Then both are compared, and the first
            // counts.
            let first =
                *lock(&claims).entry(identity).and_modify(|first| *first = at.min(*first)).or_insert(at);
            Some((identity, (first == at).then(|| self.one(self.seed(at), &program))))
        };
        in_order(self.workers, compare, |at, compared| {
            totals.next_seed = totals.next_seed.wrapping_add(1);
            if let Some((identity, one)) = compared {
                let first = lock(&claims).get(&identity) == Some(&(done + at));
                totals.repeated += u64::from(!first);
                merge(&mut totals, one.filter(|_| first).unwrap_or_default());
            }
            progress(&totals);
            if enough(&totals) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        totals
    }

    fn seed(&self, at: u64) -> u64 {
        self.first_seed.wrapping_add(at)
    }

    /// Draws the program of a seed, with its identity.
    fn drawn(&self, seed: u64) -> Option<(Program, u128)> {
        let program = (self.source)(seed)?;
        let identity = (self.identity)(&program);
        Some((program, identity))
    }

    /// Finds, for each program of the first `end` seeds, the first position at which it was drawn.
    fn claims(&self, end: u64) -> FxHashMap<u128, u64> {
        let mut claims = FxHashMap::default();
        if end == 0 {
            return claims;
        }
        let identity = |at: u64| Some(self.drawn(self.seed(at))?.1);
        in_order(self.workers, identity, |at, identity| {
            identity.map(|identity| claims.entry(identity).or_insert(at));
            if at + 1 == end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        claims
    }

    /// Reports a difference, and shrinks its program as long as `again` finds a difference.
    fn smallest(
        &self,
        seed: u64,
        program: &Program,
        model: &Model,
        first: Difference,
        again: &dyn Fn(&Program) -> Option<Difference>,
    ) -> Failure {
        let settings: String = model.variants().iter().map(|(k, v)| format!(" {k}={v}")).collect();
        let name = format!("{}{settings}", model.name());
        (self.found)(seed, &name, first.kind());
        let mut difference = first;
        let program = shrink(program, &mut |p| match again(p) {
            Some(found) => {
                difference = found;
                true
            }
            None => false,
        });
        Failure { seed, model: name, difference, program }
    }

    /// Finds the reason for leaving out a program before it is enumerated: it has too few or too many candidates.
    fn unwanted(&self, program: &Program, model: &Model) -> Option<String> {
        match weigh(program, model, &self.limits) {
            Ok(candidates) if candidates < self.least => Some(FEWER.into()),
            Ok(_) => None,
            Err(skip) => Some(skip.to_string()),
        }
    }

    /// Compares one program under every model.
    fn one(&self, seed: u64, program: &Program) -> Totals {
        let mut out = Totals::default();
        // The seed is hashed first, because drawers take turns by its low bits.
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let setting = usize::try_from(mixed).unwrap_or(0).checked_rem(self.settings.len());
        let (models, settings): (Vec<&Model>, _) = match self.turns {
            Some(of) => (vec![of(seed)], None),
            None => (self.models.iter().collect(), setting.map(|s| &self.settings[s])),
        };
        for &model in models.iter().chain(&settings) {
            if self.least > 0
                && let Some(reason) = self.unwanted(program, model)
            {
                out.skipped.insert(reason, 1);
                return out;
            }
            match compare(program, model, &self.limits) {
                Comparison::Same { candidates, .. } if candidates < self.least => {
                    out.skipped.insert(FEWER.into(), 1);
                    return out;
                }
                Comparison::Same { leaves, candidates } => {
                    out.comparisons += 1;
                    out.leaves += leaves;
                    out.candidates += candidates;
                }
                Comparison::Skipped(reason) => {
                    out.skipped.insert(reason, 1);
                    return out;
                }
                Comparison::Different(first) => {
                    let again = |p: &Program| match compare(p, model, &self.limits) {
                        Comparison::Different(d) => Some(d),
                        _ => None,
                    };
                    out.failures.push(self.smallest(seed, program, model, first, &again));
                }
            }
        }
        let limits = Limits { steps: 20_000_000, ..Limits::default() };
        for &model in models.iter().filter(|_| self.turned) {
            let again = |p: &Program| {
                let tallies = differs_when_turned(p, model, &limits)?;
                Some(Difference::Turned(Box::new(tallies)))
            };
            if let Some(first) = again(program) {
                out.failures.push(self.smallest(seed, program, model, first, &again));
            }
        }
        for &model in models.iter().chain(&settings).filter(|_| self.operated) {
            out.operated += u64::from(self.operated(seed, program, model, &mut out.failures));
        }
        let shape = Shape::of(program);
        out.programs = 1;
        out.six_events = u64::from(shape.memory_events >= 6);
        out.rmw = u64::from(shape.rmw);
        out.dependency = u64::from(shape.dependency);
        out.load_buffering = u64::from(shape.load_buffering);
        out.awaits = u64::from(shape.awaits);
        if let Some((strong, weak)) = self.yardstick {
            out.beyond = u64::from(!outcomes(program, weak).is_subset(&outcomes(program, strong)));
        }
        out
    }
}

impl Campaign<'_> {
    /// Compares the operational engine with the explorer. Returns whether both decide the program.
    fn operated(&self, seed: u64, program: &Program, model: &Model, failures: &mut Vec<Failure>) -> bool {
        let limits = Limits { steps: 20_000_000, ..Limits::default() };
        let again = |p: &Program| {
            let agreement = agreement::compare(p, model, &limits);
            matches!(agreement, Agreement::Different { .. })
                .then(|| Difference::Operational(agreement.both()))
        };
        match agreement::compare(program, model, &limits) {
            Agreement::Abstained(_) | Agreement::Undecided(_) => false,
            different @ Agreement::Different { .. } => {
                let first = Difference::Operational(different.both());
                failures.push(self.smallest(seed, program, model, first, &again));
                true
            }
            _ => true,
        }
    }
}

/// Returns the outcomes that the explorer finds; none if it abstains.
fn outcomes(program: &Program, model: &Model) -> BTreeSet<Outcome> {
    let mut out = BTreeSet::new();
    let limits = Limits { leaves: 100_000, ..Limits::default() };
    let result = explore(program, model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        out.extend(leaf.facts().outcomes);
        ControlFlow::Continue(())
    });
    if result.is_err() {
        out.clear();
    }
    out
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn merge(all: &mut Totals, one: Totals) {
    all.programs += one.programs;
    all.comparisons += one.comparisons;
    all.leaves += one.leaves;
    all.candidates += one.candidates;
    all.six_events += one.six_events;
    all.beyond += one.beyond;
    all.rmw += one.rmw;
    all.dependency += one.dependency;
    all.load_buffering += one.load_buffering;
    all.awaits += one.awaits;
    all.operated += one.operated;
    all.failures.extend(one.failures);
    for (reason, n) in one.skipped {
        *all.skipped.entry(reason).or_default() += n;
    }
}
