//! The seam between the worker's lease loop and the oracles: what a job is, what an engine answers.
//!
//! Contract: the loop decides *when* and *where* a job runs, an [`Engine`] decides *what is true*. Answers depend
//! on the job alone (not on time, worker or order), because the campaign digest is built from them.
//! Source: design sections 7 (oracles) and 9 (leases, digest).

use crate::piece::{Exploration, Explored, Step};
use moire_explore::Abstain;
use moire_explore::share::Piece;
use moire_program::ir::Program;
use moire_program::reduce::{Cut, cuts, join, without};
use moire_program::text::{Format, parse, print};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a campaign asks of every item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Name of the campaign.
    pub campaign: String,
    /// Oracles to run, by name (`self`, `model-pair`, `metamorphic`, `patterns`, `assembler`, `compiler`, `lowering`); empty: all that need no tool.
    pub oracles: Vec<String>,
    /// Models to compare, as `NAME` or `NAME:VARIANT=VALUE,..`; empty: the engine's default list.
    pub models: Vec<String>,
    /// Whether canaries run on a sample of the items.
    pub canaries: bool,
}

/// Where an item's program comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Made by the generator.
    Generated {
        /// Seed of the stream.
        seed: u64,
        /// Profile of the generator.
        profile: String,
        /// Position in the stream.
        index: u64,
    },
    /// Litmus text.
    Text(String),
}

/// One unit of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What is asked.
    pub plan: Arc<Plan>,
    /// Identity within the campaign.
    pub index: u64,
    /// The program.
    pub source: Source,
}

/// A request to stop, one to give something away, and the sign of life of the job they are about.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    stop: AtomicBool,
    wanted: AtomicBool,
    leaves: AtomicBool,
    ticks: AtomicU64,
}

impl Cancel {
    /// A request not made yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// Makes the request.
    pub fn cancel(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
    /// Whether the job should return soon; what it then returns is discarded.
    pub fn is_cancelled(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }
    /// Asks for a part of the job.
    pub fn want(&self) {
        self.0.wanted.store(true, Ordering::Relaxed);
    }
    /// Asks for everything that can be given away: the worker wants to leave.
    pub fn leave(&self) {
        self.0.leaves.store(true, Ordering::Relaxed);
    }
    /// Whether a part of the job is to be given away.
    pub fn is_wanted(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed) || self.0.leaves.load(Ordering::Relaxed)
    }
    /// A part was given away.
    pub fn gave(&self) {
        self.0.wanted.store(false, Ordering::Relaxed);
    }
    /// Says that the job advances. A job that stays silent for the lease's progress time is cancelled.
    pub fn tick(&self) {
        self.0.ticks.fetch_add(1, Ordering::Relaxed);
    }
    /// Number of [`Cancel::tick`]s so far.
    pub fn ticks(&self) -> u64 {
        self.0.ticks.load(Ordering::Relaxed)
    }
}

/// What one engine under one model says of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineReport {
    /// Engine and model, one stable name such as `explorer/ptx`.
    pub engine: String,
    /// Verdict words of design section 2, sorted, joined by `+`.
    pub verdict: String,
    /// BLAKE3 of the sorted outcomes.
    pub outcomes: [u8; 32],
    /// BLAKE3 of the sorted leaf keys; zero where the engine has none.
    pub leaves: [u8; 32],
    /// Executions explored.
    pub executions: u64,
}

/// Who broke a rule, and how to see it: a discrepancy not yet verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Oracle whose rule is broken.
    pub oracle: String,
    /// `equal`, `subset` or `property`.
    pub direction: String,
    /// The sides compared, as in [`Plan::models`], with what fixes their meaning.
    pub models: Vec<Side>,
    /// Verdict word of the discrepancy.
    pub verdict: String,
    /// The program, native litmus text.
    pub program: String,
    /// Witness in the JSON form `{"events":[{id,thread,index,label,value}],"edges":[{kind,from,to}]}`; may be empty.
    pub witness: String,
    /// Minimal sets of checks whose removal admits the outcome.
    pub axioms: Vec<Vec<String>>,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Side {
    /// Model name.
    pub name: String,
    /// Variants that differ from the defaults.
    pub variants: BTreeMap<String, String>,
    /// BLAKE3 of the model's canonical text.
    pub fingerprint: [u8; 32],
}

/// What became of a planted bug.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CanaryResult {
    /// Its name.
    pub name: String,
    /// Whether the oracles saw it on this item.
    pub caught: bool,
}

/// The answer to an [`Item`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemReport {
    /// Canonical id of the program; zero if it has none (rejected).
    pub program: [u8; 32],
    /// One row per engine and model.
    pub engines: Vec<EngineReport>,
    /// Abstentions by reason.
    pub abstentions: BTreeMap<String, u64>,
    /// Broken rules.
    pub claims: Vec<Claim>,
    /// Canaries that ran on this item.
    pub canaries: Vec<CanaryResult>,
}

/// The answer to a claim run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// The rule is broken here too.
    Confirmed,
    /// It is not.
    Refuted(String),
    /// Cannot say (a limit, an unsupported construct).
    Abstained(String),
}

/// Limit of a minimisation. A count, so that its result does not depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Candidates tried.
    pub candidates: u64,
}

/// The answer to a minimisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reduced {
    /// The claim on the reduced program (canonical native text), with its own witness and axioms.
    pub claim: Claim,
    /// Candidates tried.
    pub tried: u64,
    /// Whether the result is in normal form (false: the budget ran out first).
    pub normal: bool,
}

/// A part of a minimisation; places are those of the list of cuts of the claim's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Which of these cuts hold?
    Try(std::ops::Range<u64>),
    /// Put these together, which hold alone.
    Join(Vec<u64>),
}

/// The answer to a part of a minimisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parted {
    /// Places of the cuts that hold.
    pub holds: Vec<u64>,
    /// The claim on what is left, where cuts were put together and something holds.
    pub claim: Option<Claim>,
    /// Candidates tried.
    pub tried: u64,
}

impl Parted {
    /// The answer for a claim whose program is a litmus text; `holds` says whether the rule is broken by a program.
    pub fn of(claim: &Claim, part: &Part, mut holds: impl FnMut(&Program) -> bool) -> Option<Self> {
        let program = parse(&claim.program, Format::Native).ok()?;
        let (list, mut answer) = (cuts(&program), Self::default());
        let at = |place: &u64| list.get(usize::try_from(*place).ok()?).copied();
        match part {
            Part::Try(places) => {
                for place in places.start..places.end.min(list.len() as u64) {
                    let Some(left) = at(&place).and_then(|cut| without(&program, &[cut])) else { continue };
                    answer.tried += 1;
                    if holds(&left) {
                        answer.holds.push(place);
                    }
                }
            }
            Part::Join(places) => {
                let chosen: Vec<Cut> = places.iter().filter_map(at).collect();
                let (left, tried) = join(&program, &chosen, holds);
                answer.tried = tried as u64;
                answer.claim = left.map(|left| Claim { program: print(&left), ..claim.clone() });
            }
        }
        Some(answer)
    }
}

/// A way to answer jobs. Called from several threads at once; a call may block for long.
pub trait Engine: Send + Sync {
    /// What this worker can run beside plain CPU work (`tileiras`, `sm_100a`, ...).
    fn capabilities(&self) -> Vec<String>;
    /// Fingerprint of generator, models and tools together; campaigns are bound to it.
    fn fingerprint(&self) -> String;
    /// Runs all oracles of the plan on one item.
    fn run(&self, item: &Item, cancel: &Cancel) -> ItemReport;
    /// Runs a claim again, from its text alone.
    fn verify(&self, claim: &Claim, cancel: &Cancel) -> Verification;
    /// Shrinks a claim's program as long as the same rule stays broken. `progress` gets the best claim so far.
    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Claim),
    ) -> Reduced;
    /// Explores a piece of an exploration; `tell` is told what happens to the piece, in order. The answer is what was
    /// explored since the last step that was told.
    ///
    /// # Errors
    /// What this engine does not model.
    fn explore(
        &self,
        _asked: &Exploration,
        _piece: &Piece,
        _cancel: &Cancel,
        _tell: &(dyn Fn(Step) + Sync),
    ) -> Result<Explored, Abstain> {
        Err(Abstain { reason: "exploring in pieces".to_owned(), line: 0 })
    }
    /// Does a part of a minimisation; `None`: this engine minimises as a whole only.
    fn part(&self, _claim: &Claim, _part: &Part, _cancel: &Cancel) -> Option<Parted> {
        None
    }
}
