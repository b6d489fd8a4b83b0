//! The operational engine: a program whose threads synchronise through counting objects is run once, and that run stands
//! for all. Loops whose number of trips is not known are run until the states repeat.
//!
//! Pure: no I/O, no clock, no environment. It is the third witness: it shares only `moire-program` with the explorer and
//! the enumerator, and reads no model. Its transitions are the rules of PTX ISA 9.2, 8.9 and 9.7.16.6, with a reading for
//! each switch that they can see ([`Settings`]).
//!
//! # Domain
//!
//! Weak accesses, asynchronous copies, tensor-core instructions, warpgroup products, mbarriers, named, warp and cluster barriers, completion
//! groups, commits. Branches and addresses may depend on registers, and on memory that is written in order. Everything else
//! is an [`Abstain`] with its name and line: strong loads of what is stored strongly, atomics, `fence.sc`, allocations that wait for each other,
//! several names of one object, several grids. Where a thread asks once whether a phase is over, and goes on
//! either way, there is a run for each answer; what the theorem says holds for each sequence of answers.
//!
//! # Theorem
//!
//! Let one run end. It satisfies
//!
//! - **D1** if an arrival or a completion that counts in a later phase of an mbarrier comes after a wait that answered for
//!   the phase before it;
//! - **D2** if every wait that answered for a phase comes before some arrival of the next phase, when that one is complete:
//!   no waiting thread can be *lapped*;
//! - **D3** if an arrival at a barrier of a CTA comes after the last generation of the barrier;
//! - **D4** if every operation that only raises the transaction count of an mbarrier comes before some arrival of its phase,
//!   as soon as no arrival is missing there, and no more bytes are complete then than are announced;
//! - **D5** if every wait for a parity comes after the phase before the one that it answers for: it cannot answer for the
//!   phase before that, which has the same parity.
//!
//! *Comes before* is the order of execution: program order, from an issue to its accesses and their completion, from
//! arrivals to the waits that they release. If D1 to D5 hold, every other run is a reordering of this one: the same
//! instructions, the same phases, the same answers of waits. So it has the same races, the same faults and the same threads
//! that wait for ever. A violation is a finding of its own ([`Condition`]): another run may then do anything, and what this
//! run found is still found.
//!
//! *Why.* Take another run, and the first step at which it is no reordering of this one. Steps of different threads that
//! touch different objects commute. On one object, two arrivals of one phase commute, because they add, and by D4 no part of
//! a phase completes it. An arrival and a wait for the phase before it commute, unless the arrival completes its phase. Two
//! arrivals of different phases do not. By D1 a step of a later phase comes after the phase before it, and by D2 a completion
//! comes after every wait that it could lap. By D5 a wait is not ready before the phase that it answers for is complete.
//! So the steps that do not commute are ordered in this run, and are never ready together in the other one. The first step
//! that differs is therefore a step of this run with nothing left before it, and moves to the front. A thread that waits for
//! ever in this run is a finding. What each condition excludes, and when it is decided, stands where it is checked
//! (`step/mbarrier.rs`, `step/barrier.rs`).
//! This argument is on paper. Its evidence are the comparisons with the explorer, and the runs in every order
//! ([`operate_in_every_order`]). A clean run is repeated under other schedules, with late completions too
//! (`schedule`): if one of them says something else, there is no answer.
//!
//! # Knowledge
//!
//! A run needs no clocks. For each thread, each phase of an mbarrier and each barrier the state holds *which records are
//! ordered before what it does next*, one row of bits for each way of being ordered (`carrier`): base causality, behind
//! a proxy fence of a CTA, `tcause` of tensor memory, and so on. A record is a kind of access: this thread, this instruction, these
//! bytes. An access races with every live record that conflicts with it and is not in the row that it needs. An arrival
//! adds rows to a phase, and a wait takes them. Because rows are sets, the states of a loop repeat.
//!
//! # Free loops
//!
//! `repeat N { .. }` in a litmus text is executed N times, for every N: all loops with one name the same number of times.
//! The first thread that asks whether there is a next iteration decides, once for each answer; the others read the
//! decision (`trips`). The thread with the least progress runs next, so the schedule is a function of the state. When no
//! new state is left, every sequence of decisions has been run, and the program is *clean for every trip count* (`prove`).
//! A record is dropped from the state when every thread that could race with it knows it well enough (`forget`). A
//! finding comes with numbers of trips. [`counterexample`] makes them as small as possible, and returns the program without loops.
//!
//! # Example
//!
//! `corpus/litmus/loops/ring.litmus`: a producer fills one stage K times, a consumer reads it, and a watcher counts the fills.
//! `full` expects one arrival and 64 bytes, `empty` expects two arrivals.
//!
//! ```text
//! producer: repeat K { wait empty, parity 1^i; arrive.expect_tx full, 64; copy -> stage, full; }
//! consumer: repeat K { wait full, parity i; ld stage; arrive empty; }
//! watcher:  repeat K { wait full, parity i; arrive empty; }
//! ```
//!
//! The copy writes record `w`, and its completion hands `w` to the phase of `full`. The wait of the consumer takes `w`, so its
//! load `r` finds `w` known. The arrival at `empty` hands on `r`, and the wait of the producer takes it. The next copy
//! finds `r` known. After two rounds, one for each parity, the state is one that was there before, so no new state is left
//! and `moire check` says `clean for every trip count: K`.
//!
//! In `corpus/litmus/loops/ring-lapped.litmus` the watcher does not arrive, and `empty` expects one arrival. Every access is
//! still ordered. But when the second phase of `full` completes, nothing shows that the watcher's wait of round 0 has
//! answered: D2 is violated, and the watcher *can be lapped*. In a run in which it is slow, `full` is in its third phase when
//! the watcher asks for parity 0 for the first time. The phase before has parity 1, so the wait does not answer, and no
//! arrival is left that could complete a phase. The finding names the wait and the completion, [`counterexample`] finds
//! the least trip count K = 2, and the explorer shows the hang in the program with two copies of each body.

mod admit;
mod carrier;
mod counterexample;
mod engine;
mod finding;
mod flow;
mod forget;
mod interleave;
mod layout;
mod planted;
mod prove;
mod record;
mod rows;
mod run;
mod schedule;
mod settings;
mod state;
mod step;
mod trips;
mod value;

pub use counterexample::{Counterexample, counterexample};
pub use finding::{Abstain, Condition, Finding, Kind};
pub use planted::Planted;
pub use settings::{Accumulator, PairRelease, Pipeline, Settings};

use engine::{Engine, Mode};
use finding::Stop;
use flow::Flows;
use layout::Layout;
use moire_program::ir::{CtaGroup, Op, Program};
use moire_program::loops::{free, has_loops, unroll};
use run::Ended;
use schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};
use trips::Loops;

/// Bounds of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most instructions executed.
    pub steps: u64,
    /// Most states of a program with free loops.
    pub states: usize,
    /// Most kinds of accesses and facts that are told apart.
    pub records: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { steps: 50_000_000, states: 200_000, records: 1 << 14 }
    }
}

/// The assumptions of an answer for every trip count.
pub const ASSUMPTIONS: [&str; 4] = [
    "loops with one name have the same trip counts in every thread, for each entry",
    "a thread that polls for a phase of an mbarrier keeps polling until the phase is complete",
    "every copy, product and commit that is issued completes",
    "one run stands for all: this is argued on paper and tested against the explorer, which confirms small trip counts only",
];

/// What a program does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What is wrong.
    pub findings: BTreeSet<Finding>,
    /// The limit that was hit.
    pub bounded: Option<String>,
    /// For a bounded run with free loops: every run was followed through this many iterations and decisions about trip
    /// counts, those of all threads added up.
    pub covered: u64,
    /// Runs that came to their end, or to every end where there are free loops.
    pub runs: u64,
    /// Instructions executed.
    pub steps: u64,
    /// States that were stored: none unless there are free loops.
    pub states: usize,
    /// The free numbers of the program, with the least value of each. A clean program is clean for all greater ones.
    pub classes: Vec<(String, u32)>,
    /// Numbers of trips for which the findings occur.
    pub numbers: BTreeMap<String, Vec<u32>>,
    /// Of a clean run: what another schedule says instead. There is a mistake in this engine then, and no answer.
    pub differs: Option<String>,
}

/// Under how many other schedules a clean run is repeated.
pub const SCHEDULES: usize = schedule::OTHERS.len();

/// The least trip counts: for each free number its least value and the two above. For more than three numbers all
/// are raised together.
pub fn least_trips(classes: &[(String, u32)]) -> Vec<BTreeMap<String, Vec<u32>>> {
    let together = classes.len() > 3;
    let digit = |code: u32, at: usize| {
        if together { code } else { code / 3u32.pow(u32::try_from(at).unwrap_or(0)) % 3 }
    };
    let all = if together { 3 } else { 3u32.pow(u32::try_from(classes.len()).unwrap_or(0)) };
    let mut codes: Vec<u32> = (0..all).collect();
    codes.sort_by_key(|code| (0..classes.len()).map(|at| digit(*code, at)).sum::<u32>());
    let counts = |code: u32| {
        let raised = classes.iter().enumerate();
        raised.map(|(at, (name, least))| (name.clone(), vec![least + digit(code, at)])).collect()
    };
    codes.into_iter().map(counts).collect()
}

impl Outcome {
    /// Kinds of the findings that are more than a broken condition.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        self.findings.iter().filter(|f| f.condition.is_none()).map(|f| f.kind).collect()
    }

    /// Conditions that the run breaks: other runs may do anything.
    pub fn broken(&self) -> BTreeSet<Condition> {
        self.findings.iter().filter_map(|f| f.condition).collect()
    }

    /// The verdicts in words, sorted.
    pub fn words(&self) -> BTreeSet<&'static str> {
        let mut out: BTreeSet<&'static str> = self.findings.iter().map(|f| f.kind.word()).collect();
        if self.bounded.is_some() || self.runs == 0 {
            out.insert("bounded");
        }
        if self.differs.is_some() {
            out.insert("abstained");
        }
        if out.is_empty() {
            out.insert("clean");
        }
        out
    }

    /// For which numbers of trips a clean program is clean: `N >= 1, K`. Nothing if there are no free loops.
    pub fn scope(&self) -> Option<String> {
        let one = |(name, least): &(String, u32)| match least {
            0 => name.clone(),
            least => format!("{name} >= {least}"),
        };
        (!self.classes.is_empty()).then(|| self.classes.iter().map(one).collect::<Vec<_>>().join(", "))
    }
}

/// Runs a program. Loops with a free number are run for every number.
///
/// # Errors
/// What this engine does not decide.
pub fn operate(program: &Program, settings: &Settings, limits: &Limits) -> Result<Outcome, Abstain> {
    judged(program, settings, limits, false, None)
}

/// Runs a program without free loops in every order: a check of the theorem, for small programs.
///
/// # Errors
/// What this engine does not decide.
pub fn operate_in_every_order(
    program: &Program,
    settings: &Settings,
    limits: &Limits,
) -> Result<Outcome, Abstain> {
    judged(program, settings, limits, true, None)
}

/// Runs a program with a planted bug, to test the tests.
///
/// # Errors
/// What this engine does not decide.
pub fn operate_planted(
    program: &Program,
    settings: &Settings,
    limits: &Limits,
    planted: Planted,
) -> Result<Outcome, Abstain> {
    judged(program, settings, limits, false, Some(planted))
}

fn judged(
    program: &Program,
    settings: &Settings,
    limits: &Limits,
    every_order: bool,
    planted: Option<Planted>,
) -> Result<Outcome, Abstain> {
    let all = |program: &Program, schedule| {
        let together: &[bool] = match settings.pair_release {
            _ if !has_pairs(program) => &[false],
            PairRelease::Alone => &[false],
            PairRelease::Together => &[true],
            PairRelease::Either => &[false, true],
        };
        let mut outcome = Outcome { classes: free(program), ..Outcome::default() };
        for together in together {
            let instances = outcome.classes.is_empty();
            let mode = Mode { together: *together, instances, planted, every_order, schedule };
            part(program, settings, limits, mode, &mut outcome).map_err(abstention)?;
        }
        Ok(outcome)
    };
    admit::admit(program).map_err(abstention)?;
    let unrolled = if has_loops(program) && free(program).is_empty() {
        let unrolled = unroll(program, &BTreeMap::new());
        Some(unrolled.map_err(|r| Abstain { what: r.to_string(), line: 0 })?)
    } else {
        None
    };
    let program = unrolled.as_ref().unwrap_or(program);
    let outcome = all(program, Schedule::default())?;
    if every_order { Ok(outcome) } else { Ok(repeated(outcome, |schedule| all(program, schedule))) }
}

/// Whether some instruction is one of a pair of CTAs.
fn has_pairs(program: &Program) -> bool {
    let two = |op: &Op| matches!(op, Op::Tcgen05(op) if op.group() == Some(CtaGroup::Two));
    program.threads.iter().flat_map(|t| &t.body).any(|i| two(&i.op))
}

fn abstention(stop: Stop) -> Abstain {
    match stop {
        Stop::Abstain(abstain) => abstain,
        Stop::Wider => Abstain { what: "more kinds of accesses than the limit".to_owned(), line: 0 },
    }
}

/// Repeats a clean run under other schedules. The first one that says something else is noted.
fn repeated(mut outcome: Outcome, run: impl Fn(Schedule) -> Result<Outcome, Abstain>) -> Outcome {
    for schedule in schedule::OTHERS {
        if !outcome.findings.is_empty() || outcome.bounded.is_some() {
            break;
        }
        match run(schedule) {
            Ok(other) if other.findings.is_empty() => {
                outcome.bounded = other.bounded.map(|bound| format!("{bound}, {schedule}"));
                outcome.covered = other.covered;
            }
            Ok(other) => {
                let first = other.findings.first().map_or("", |f| f.text.as_str());
                outcome.differs = Some(format!("{schedule}: {first}"));
                break;
            }
            Err(why) => {
                outcome.differs = Some(format!("{schedule}: {}", why.what));
                break;
            }
        }
    }
    outcome
}

/// Runs a program in one mode, and adds what it finds.
fn part(
    program: &Program,
    settings: &Settings,
    limits: &Limits,
    mode: Mode,
    outcome: &mut Outcome,
) -> Result<(), Stop> {
    let (layout, flows, loops) = (Layout::new(program), Flows::new(program)?, Loops::new(program)?);
    if mode.every_order && !mode.instances {
        return Err(Stop::abstain("a free loop in every order", 0));
    }
    widening(limits, |words| {
        let mut engine = Engine::new(program, settings, mode, (&layout, &flows, &loops), words);
        if !mode.instances {
            return proved(&mut engine, limits, outcome);
        }
        let state = engine.start()?;
        let ended = if mode.every_order {
            interleave::run(&mut engine, state, limits.steps)?
        } else {
            run::run(&mut engine, &state, limits.steps, limits.states)?
        };
        match ended {
            Ended::Cut => outcome.bounded = Some("steps".to_owned()),
            Ended::Many => outcome.bounded = Some("states".to_owned()),
            Ended::Complete => outcome.runs += 1,
        }
        outcome.steps += engine.steps;
        outcome.findings.append(&mut engine.findings);
        Ok(())
    })
}

fn proved(engine: &mut Engine<'_>, limits: &Limits, outcome: &mut Outcome) -> Result<(), Stop> {
    let explored = prove::prove(engine, limits.states, limits.steps)?;
    if let Some(abstain) = explored.abstained.filter(|_| explored.findings.is_empty()) {
        return Err(Stop::Abstain(abstain));
    }
    outcome.runs += u64::from(explored.bounded.is_none());
    if let Some(bound) = explored.bounded {
        let earlier = outcome.bounded.as_ref().map(|_| outcome.covered);
        outcome.covered = earlier.map_or(explored.covered, |e| e.min(explored.covered));
        outcome.bounded.get_or_insert_with(|| bound.to_owned());
    }
    outcome.steps += explored.steps;
    outcome.states += explored.states;
    if outcome.findings.is_empty() && !explored.findings.is_empty() {
        outcome.numbers = explored.numbers;
    }
    outcome.findings.extend(explored.findings);
    Ok(())
}

/// Tries wider and wider rows.
fn widening<T>(limits: &Limits, mut run: impl FnMut(usize) -> Result<T, Stop>) -> Result<T, Stop> {
    let mut words = 2;
    loop {
        match run(words) {
            Err(Stop::Wider) if 128 * words <= limits.records => words *= 2,
            done => return done,
        }
    }
}
