//! An engine whose answers are a function of the item alone, so that a run takes milliseconds.
//!
//! The runs test the protocol, for which the truth about programs does not matter. Only the shared exploration is real,
//! a few executions at a time, because the pieces of an exploration have the shape of its tree.

use super::check::Totals;
use super::faults::Lie;
use moire_cat::{Model, Variants};
use moire_coordinator::v1;
use moire_explore::search::LeafView;
use moire_explore::search::share::{Giver, Piece, explore_piece, is_empty};
use moire_explore::{Abstain, Limits, Summary, Visitor};
use moire_generate::families::named;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use moire_worker::job::{
    Budget, Cancel, Claim, Engine, EngineReport, Item, ItemReport, Reduced, Verification,
};
use moire_worker::piece::{Exploration, Explored, Step};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// One item in this many breaks a rule.
const BREAKS: u64 = 40;
/// Executions between two reports on the progress of a piece.
const SLICE: u64 = 3;
/// What makes an execution one of those that are marked.
const DIVISORS: std::ops::Range<u64> = 2..12;
/// Starts the program of a false claim.
const LIE: &str = "lie";
/// Name of the tree of decisions.
const TREE: &str = "tree-simple";

/// The program that is explored.
static EXPLORED: LazyLock<(Program, Model)> = LazyLock::new(|| {
    let text = named("lbf").expect("the families are there").text(7);
    let program = parse(&text, Format::Native).expect("their texts read");
    (program, moire_models::load("ptx", &Variants::new()).expect("the shipped models load"))
});

/// Builds the request to explore that program.
pub(super) fn asked() -> v1::Exploration {
    v1::Exploration {
        program: "simple".to_owned(),
        tree: TREE.to_owned(),
        fingerprint: vec![0; 32],
        ..v1::Exploration::default()
    }
}

/// A hash of what is marked.
pub(super) fn number(marks: &BTreeMap<String, Vec<u32>>) -> u64 {
    let hash = blake3::hash(format!("{marks:?}").as_bytes());
    hash.as_bytes()[..8].iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Computes the totals of that exploration with one thread.
pub(super) fn alone() -> Totals {
    static ALONE: LazyLock<Totals> = LazyLock::new(|| {
        let (once, whole) = (Cancel::new(), Piece::default());
        let holder = Holder { cancel: &once, tell: &|_| {}, slice: u64::MAX, seen: AtomicU64::new(0) };
        let explored = holder.explore(&whole).expect("the model has an answer");
        let executions = explored.summary.complete + explored.summary.blocked;
        Totals { executions, digest: explored.digest, marks: number(&explored.marks) }
    });
    *ALONE
}

/// The holder of a piece.
struct Holder<'a> {
    cancel: &'a Cancel,
    tell: &'a (dyn Fn(Step) + Sync),
    slice: u64,
    seen: AtomicU64,
}

impl Holder<'_> {
    fn explore(&self, piece: &Piece) -> Result<Explored, Abstain> {
        let (program, model) = &*EXPLORED;
        let mut sum = Sum { holder: self, digest: 0, marks: BTreeMap::new() };
        let summary = explore_piece(program, model, piece, Some(self), &Limits::default(), &mut sum)?;
        Ok(Explored { summary, digest: sum.digest, marks: sum.marks })
    }
}

impl Giver for Holder<'_> {
    fn wanted(&self) -> bool {
        self.cancel.is_wanted() && !self.cancel.is_cancelled()
    }
    fn give(&self, piece: Piece) -> bool {
        let (program, model) = &*EXPLORED;
        let empty = is_empty(program, model, &piece, &Limits::default()).unwrap_or(false);
        if !empty {
            (self.tell)(Step::Given(piece.behind));
        }
        !empty
    }
    fn due(&self) -> bool {
        self.seen.load(Ordering::Relaxed) >= self.slice
    }
}

struct Sum<'a> {
    holder: &'a Holder<'a>,
    digest: u64,
    /// The first execution whose number each of [`DIVISORS`] divides.
    marks: BTreeMap<String, Vec<u32>>,
}

impl Visitor for Sum<'_> {
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        if self.holder.cancel.is_cancelled() {
            return ControlFlow::Break(());
        }
        self.holder.seen.fetch_add(1, Ordering::Relaxed);
        let number = leaf.digest();
        self.digest = self.digest.wrapping_add(number);
        for divisor in DIVISORS.filter(|n| number.is_multiple_of(*n)) {
            self.marks.entry(format!("divided by {divisor}")).or_insert_with(|| leaf.path().to_vec());
        }
        ControlFlow::Continue(())
    }
    fn reached(&mut self, until: &[u32], so_far: &Summary) -> ControlFlow<()> {
        if until.is_empty() {
            return ControlFlow::Continue(());
        }
        if !self.holder.cancel.is_cancelled() {
            let explored = Explored { summary: *so_far, digest: self.digest, marks: self.marks.clone() };
            (self.holder.tell)(Step::Reached(until.to_vec(), explored));
        }
        ControlFlow::Break(())
    }
}

/// The engine of simulated workers.
pub(super) struct Simple {
    /// One in this many items has a false claim, as faulty memory would cause it.
    pub(super) lies: u64,
    /// What it always says wrongly.
    pub(super) lie: Option<Lie>,
    /// Whether findings are run again, which is when [`Lie::Refuted`] begins.
    pub(super) again: Arc<AtomicBool>,
}

/// The pieces of a worker that marks nothing.
fn unmarked(explored: Explored) -> Explored {
    Explored { marks: BTreeMap::new(), ..explored }
}

impl Engine for Simple {
    fn capabilities(&self) -> Vec<String> {
        vec![TREE.to_owned()]
    }
    fn fingerprint(&self) -> String {
        "simple".to_owned()
    }
    fn run(&self, item: &Item, _: &Cancel) -> ItemReport {
        if self.lie == Some(Lie::Memory) {
            let abstentions = BTreeMap::from([(moire_proto::MEMORY.to_owned(), 1)]);
            return ItemReport { abstentions, ..ItemReport::default() };
        }
        let hash = *blake3::hash(&item.index.to_le_bytes()).as_bytes();
        let row = EngineReport {
            engine: "simple".to_owned(),
            outcomes: hash,
            executions: 1 + item.index % 7,
            ..EngineReport::default()
        };
        let mut claims =
            if item.index.is_multiple_of(BREAKS) { vec![claim(item.index / BREAKS)] } else { Vec::new() };
        if self.lies > 0 && item.index.is_multiple_of(self.lies) {
            // It has the class of the true claims, and must not use that class up.
            claims.push(Claim { program: format!("{LIE} {}", item.index), ..claim(item.index / self.lies) });
        }
        ItemReport { program: hash, engines: vec![row], claims, ..ItemReport::default() }
    }
    fn verify(&self, claim: &Claim, _: &Cancel) -> Verification {
        let refutes = self.lie == Some(Lie::Refuted) && self.again.load(Ordering::Relaxed);
        match refutes || claim.program.ends_with('3') || claim.program.starts_with(LIE) {
            true => Verification::Refuted("not here".to_owned()),
            false => Verification::Confirmed,
        }
    }
    fn minimise(&self, claim: &Claim, _: Budget, _: &Cancel, _: &mut dyn FnMut(&Claim)) -> Reduced {
        let program = claim.program.replace("program ", "p");
        Reduced { claim: Claim { program, ..claim.clone() }, tried: 1, normal: true }
    }
    fn explore(
        &self,
        _: &Exploration,
        piece: &Piece,
        cancel: &Cancel,
        tell: &(dyn Fn(Step) + Sync),
    ) -> Result<Explored, Abstain> {
        let silent = |step| match step {
            Step::Reached(node, explored) => tell(Step::Reached(node, unmarked(explored))),
            given => tell(given),
        };
        let holder = Holder { cancel, tell, slice: SLICE, seen: AtomicU64::new(0) };
        match self.lie == Some(Lie::Unmarked) {
            true => Holder { tell: &silent, ..holder }.explore(piece).map(unmarked),
            false => holder.explore(piece),
        }
    }
}

fn claim(number: u64) -> Claim {
    let (rule, program) = (format!("rule-{}", number % 2), format!("program {}", number % 5));
    Claim { oracle: "simple".to_owned(), axioms: vec![vec![rule]], program, ..Claim::default() }
}
