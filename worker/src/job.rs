//! The seam between the worker's lease loop and the oracles: jobs, and the answers of an engine to them.
//!
//! Contract: the loop decides *when* and *where* a job runs, an [`Engine`] decides *what is true*. Answers depend
//! on the job alone (not on time, worker or order), because the campaign digest is built from them.

use crate::direction::Direction;
use crate::piece::{Exploration, Explored, Step};
use moire_explore::Abstain;
use moire_explore::search::share::Piece;
use moire_program::ir::Program;
use moire_program::reduce::{Cut, cuts, join, without};
use moire_program::text::{Format, parse, print};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The questions of a campaign, the same for every item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Name of the campaign.
    pub campaign: String,
    /// Oracles to run, by name (see [`crate::oracle::oracles`]); empty: those that run by default.
    pub oracles: Vec<String>,
    /// Models to compare, as `NAME` or `NAME:VARIANT=VALUE,..`; empty: the engine's default list.
    pub models: Vec<String>,
    /// Whether canaries run on a sample of the items.
    pub canaries: bool,
}

/// The origin of an item's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A place in a stream of the generator.
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

/// One unit of work: a program and the questions about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The questions.
    pub plan: Arc<Plan>,
    /// Identity within the campaign.
    pub index: u64,
    /// The program.
    pub source: Source,
}

/// Requests to a running job (to stop, to give a part away) and its signs of life.
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
    /// No request, and no sign of life yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// Requests that the job stops.
    pub fn cancel(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
    /// Whether the job should return soon. Its answer is then discarded.
    pub fn is_cancelled(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }
    /// Requests a part of the job for another worker.
    pub fn want(&self) {
        self.0.wanted.store(true, Ordering::Relaxed);
    }
    /// Requests that everything that can be given away is given away, because the worker wants to leave.
    pub fn leave(&self) {
        self.0.leaves.store(true, Ordering::Relaxed);
    }
    /// Whether a part of the job should be given away.
    pub fn is_wanted(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed) || self.0.leaves.load(Ordering::Relaxed)
    }
    /// Notes that a part was given away.
    pub fn gave(&self) {
        self.0.wanted.store(false, Ordering::Relaxed);
    }
    /// Gives a sign of life. A job without one for the lease's progress time is cancelled.
    pub fn tick(&self) {
        self.0.ticks.fetch_add(1, Ordering::Relaxed);
    }
    /// Number of [`Cancel::tick`]s so far.
    pub fn ticks(&self) -> u64 {
        self.0.ticks.load(Ordering::Relaxed)
    }
}

/// The answer of one engine under one model to one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineReport {
    /// Engine and model, one stable name such as `explorer/ptx`.
    pub engine: String,
    /// Verdict words (such as `clean`, `race`, `hang`), sorted, joined by `+`. Nothing is `clean` without an execution.
    pub verdict: String,
    /// BLAKE3 of the sorted outcomes.
    pub outcomes: [u8; 32],
    /// BLAKE3 of the sorted leaf keys; zero where the engine has none.
    pub leaves: [u8; 32],
    /// Executions explored.
    pub executions: u64,
}

/// A broken rule and the text that shows it: a discrepancy that is not verified yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Oracle whose rule is broken.
    pub oracle: String,
    /// How the rule compares its sides.
    pub direction: Direction,
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

impl Claim {
    /// Specifications of the sides, in their order.
    pub fn specs(&self) -> Vec<String> {
        self.models.iter().map(Side::spec).collect()
    }
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Side {
    /// Name of the model or tool.
    pub name: String,
    /// Variants that differ from the defaults.
    pub variants: BTreeMap<String, String>,
    /// BLAKE3 of the model's canonical text, or of the tool's version; zero where nobody has looked yet.
    pub fingerprint: [u8; 32],
}

impl Side {
    /// The side of a specification `NAME` or `NAME:VARIANT=VALUE,..`, without fingerprint.
    pub fn of(spec: &str) -> Self {
        let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
        let variants = rest.split(',').filter_map(|w| w.split_once('='));
        let variants = variants.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        Self { name: name.to_owned(), variants, ..Self::default() }
    }

    /// The specification of the side.
    pub fn spec(&self) -> String {
        let variants: Vec<String> = self.variants.iter().map(|(k, v)| format!("{k}={v}")).collect();
        if variants.is_empty() { self.name.clone() } else { format!("{}:{}", self.name, variants.join(",")) }
    }
}

/// The result of a planted bug on one item.
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
    /// The rule holds here.
    Refuted(String),
    /// No answer (a limit, an unsupported construct, a text that this release does not read).
    Abstained(String),
}

/// Limit of a minimisation. It is a count, because a time would make the result depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Most candidates tried.
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

/// A part of a minimisation. Places are positions in the list of cuts of the claim's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Find which of these cuts leave the rule broken.
    Try(std::ops::Range<u64>),
    /// Combine these cuts, each of which leaves the rule broken.
    Join(Vec<u64>),
}

/// The answer to a part of a minimisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parted {
    /// Places of the cuts that leave the rule broken.
    pub holds: Vec<u64>,
    /// The claim on what is left, if combined cuts leave the rule broken.
    pub claim: Option<Claim>,
    /// Candidates tried.
    pub tried: u64,
}

impl Parted {
    /// The answer for a claim whose program is a litmus text. `holds` says whether a program breaks the rule.
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

/// A way to answer jobs. It is called from several threads at once; a call may block for long.
pub trait Engine: Send + Sync {
    /// Capabilities beside plain CPU work (`tileiras`, `sm_100a`, ...).
    fn capabilities(&self) -> Vec<String>;
    /// Fingerprint of generator and models together; campaigns are bound to it.
    fn fingerprint(&self) -> String;
    /// Runs all oracles of the plan on one item.
    fn run(&self, item: &Item, cancel: &Cancel) -> ItemReport;
    /// Runs a claim again, from its text alone.
    fn verify(&self, claim: &Claim, cancel: &Cancel) -> Verification;
    /// Shrinks a claim's program while the same rule stays broken. `progress` gets the best claim so far.
    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Claim),
    ) -> Reduced;
    /// Explores a piece of an exploration. `tell` gets the changes of the piece, in order. The answer counts what was
    /// explored since the last change.
    ///
    /// # Errors
    /// A construct that this engine does not support.
    fn explore(
        &self,
        _asked: &Exploration,
        _piece: &Piece,
        _cancel: &Cancel,
        _tell: &(dyn Fn(Step) + Sync),
    ) -> Result<Explored, Abstain> {
        Err(Abstain { reason: "exploring in pieces".to_owned(), line: 0 })
    }
    /// Does a part of a minimisation. `None`: this engine minimises as a whole only.
    fn part(&self, _claim: &Claim, _part: &Part, _cancel: &Cancel) -> Option<Parted> {
        None
    }
}
