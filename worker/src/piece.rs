//! Pieces of an exploration that many workers share.
//!
//! Contract: the holder of a piece reports steps in order. It says about once a second how far it is. It gives part of the
//! piece away when another worker waits and the piece has been worked on for `GIVE_AFTER`. Each step counts what was
//! explored since the step before, so every execution is counted once; the answer at the end counts the rest. A cancelled
//! piece ends without a report.

use crate::job::Cancel;
use moire_cat::{LoadError, Model, Variants};
use moire_explore::judge::Marks;
use moire_explore::search::LeafView;
use moire_explore::search::share::{Giver, Piece, explore_piece, is_empty};
use moire_explore::{Abstain, Bound, Limits, Summary, Visitor, explore};
use moire_generate::families::named;
use moire_models::Beside;
use moire_program::canon::spell::Spell as _;
use moire_program::ir::Program;
use moire_program::lanes::joined;
use moire_program::text::{Format, ParseError, parse};
use moire_proto::NODE_MAX;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time between two reports of how far a piece is.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Least time a piece is worked on before a part of it is given away, and between two such parts.
const GIVE_AFTER: Duration = Duration::from_millis(4);
/// Decisions between two looks at the clock.
const CLOCK_EVERY: u64 = 256;
/// Most programs and models kept ready to explore.
const MAX_KEPT: usize = 4;

/// A program to explore, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exploration {
    /// Litmus text.
    pub program: String,
    /// A shipped model, or the name of a file of `files`.
    pub model: String,
    /// Its switches.
    pub switches: BTreeMap<String, String>,
    /// Files of models that are not shipped, by name.
    pub files: BTreeMap<String, String>,
    /// BLAKE3 of the model's canonical text.
    pub fingerprint: [u8; 32],
    /// Iterations of a loop that changes state.
    pub loop_bound: u32,
}

/// A change to a piece that is being explored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Everything up to and with this node is explored.
    Reached(Vec<u32>, Explored),
    /// Everything behind this node is given away.
    Given(Vec<u32>),
}

/// Totals of a part of a piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// Executions, dead ends, checks, limits.
    pub summary: Summary,
    /// Sum of the numbers of the executions; wraps.
    pub digest: u64,
    /// Path of the first execution that shows each thing not reported before, by the name of the thing.
    pub marks: BTreeMap<String, Vec<u32>>,
}

/// The name of the tree of decisions. Workers that share an exploration, and the process that judges it, must make the same
/// decisions in the same order. A change of the tree of any of a few programs changes the name.
pub fn tree() -> &'static str {
    static TREE: OnceLock<String> = OnceLock::new();
    TREE.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        let model = moire_models::load("ptx", &Variants::new()).expect("the shipped models load");
        for name in ["sb", "lb", "nw1r", "ainc", "casrot", "iriw", "ttas", "ticket", "mpmc", "barrier"] {
            let family = named(name).expect("the families are there");
            let program = parse(&family.text(family.least), Format::Native).expect("their texts read");
            let mut note = |leaf: &mut dyn LeafView| {
                leaf.path().iter().for_each(|choice| _ = hasher.update(&choice.to_le_bytes()));
                hasher.update(&leaf.digest().to_le_bytes());
                ControlFlow::Continue(())
            };
            let limits = Limits { leaves: 100, ..Limits::default() };
            let told =
                explore(&program, &model, &[], &limits, &mut note).expect("no engine abstains from them");
            hasher.update(format!("Ok({})", told.spelling()).as_bytes());
        }
        format!("tree-{}", &hasher.finalize().to_hex()[..16])
    })
}

/// A program and its model, ready to explore.
struct Ready {
    program: Program,
    model: Model,
}

/// Why a program and a model cannot be explored here.
#[derive(Debug, thiserror::Error)]
enum ReadyError {
    /// The text of the program.
    #[error("the program does not read: {0}")]
    Program(#[from] ParseError),
    /// The text of the model.
    #[error("the model does not load: {0}")]
    Model(#[from] LoadError),
    /// The model here is not the one that was asked for.
    #[error("the model {0} is another one here; use the same moire everywhere")]
    OtherModel(String),
}

impl Ready {
    fn new(asked: &Exploration) -> Result<Self, ReadyError> {
        let text = &asked.program;
        let program = joined(&parse(text, Format::detect("", text))?).into_owned();
        let name = &asked.model;
        let model = match asked.files.get(name) {
            Some(text) => {
                let beside = Beside(|path: &Path| asked.files.get(path.to_str()?).cloned());
                moire_cat::load(name, text, &beside, &asked.switches)?
            }
            None => moire_models::load(name, &asked.switches)?,
        };
        match *blake3::hash(model.canonical_text().as_bytes()).as_bytes() == asked.fingerprint {
            true => Ok(Self { program, model }),
            false => Err(ReadyError::OtherModel(name.clone())),
        }
    }
}

/// The programs and models that were explored last.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<Vec<(Exploration, Arc<Ready>)>>);

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shelf")
    }
}

impl Shelf {
    fn ready(&self, asked: &Exploration) -> Result<Arc<Ready>, ReadyError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ready)) = kept.iter().find(|(of, _)| of == asked) {
            return Ok(Arc::clone(ready));
        }
        let ready = Arc::new(Ready::new(asked)?);
        kept.insert(0, (asked.clone(), Arc::clone(&ready)));
        kept.truncate(MAX_KEPT);
        Ok(ready)
    }

    /// Explores a piece; see the module.
    pub(crate) fn explore(
        &self,
        asked: &Exploration,
        piece: &Piece,
        cancel: &Cancel,
        tell: &(dyn Fn(Step) + Sync),
    ) -> Result<Explored, Abstain> {
        let ready = self.ready(asked).map_err(|why| Abstain { reason: why.to_string(), line: 0 })?;
        let Ready { program, model } = &*ready;
        let limits = Limits {
            leaves: u64::MAX,
            checks: u64::MAX,
            steps: u64::MAX,
            loop_bound: asked.loop_bound,
            ..Limits::default()
        };
        if !piece.behind.is_empty() && is_empty(program, model, &Piece::of(&piece.behind), &limits)? {
            let reason = "a piece that begins nowhere in this tree".to_owned();
            return Err(Abstain { reason, line: 0 });
        }
        let now = Instant::now();
        let holder = Holder {
            ready: &ready,
            limits: &limits,
            cancel,
            tell,
            decisions: AtomicU64::new(0),
            gave: Mutex::new(now),
            told: Mutex::new(now),
        };
        let mut teller = Teller {
            holder: &holder,
            marks: Marks::new(program),
            told: Explored::default(),
            reached: piece.behind.clone(),
            deep: false,
        };
        let summary = explore_piece(program, model, piece, Some(&holder), &limits, &mut teller)?;
        match teller.deep {
            false => Ok(teller.news(&summary)),
            true => {
                Err(Abstain { reason: format!("an execution of more than {NODE_MAX} decisions"), line: 0 })
            }
        }
    }
}

/// The worker that explores a piece, as the explorer sees it.
struct Holder<'a> {
    ready: &'a Ready,
    limits: &'a Limits,
    cancel: &'a Cancel,
    tell: &'a (dyn Fn(Step) + Sync),
    /// Decisions so far.
    decisions: AtomicU64,
    /// When it last gave a part away, and when it last reported.
    gave: Mutex<Instant>,
    told: Mutex<Instant>,
}

fn passed(since: &Mutex<Instant>) -> Duration {
    since.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
}

fn restart(since: &Mutex<Instant>) {
    *since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
}

impl Giver for Holder<'_> {
    fn wanted(&self) -> bool {
        self.cancel.is_wanted() && passed(&self.gave) > GIVE_AFTER
    }

    fn give(&self, piece: Piece) -> bool {
        let Ready { program, model } = self.ready;
        // A piece without an answer here has none on the way to it either, and is reported then.
        let empty = || is_empty(program, model, &piece, self.limits).unwrap_or(false);
        if piece.behind.len() > NODE_MAX || empty() {
            return false;
        }
        self.cancel.gave();
        restart(&self.gave);
        (self.tell)(Step::Given(piece.behind));
        true
    }

    fn due(&self) -> bool {
        let decisions = self.decisions.load(Ordering::Relaxed) + 1;
        self.decisions.store(decisions, Ordering::Relaxed);
        if !decisions.is_multiple_of(CLOCK_EVERY) {
            return false;
        }
        self.cancel.tick();
        self.cancel.is_cancelled() || passed(&self.told) > REPORT_EVERY
    }
}

/// Visits the executions of a piece and reports them.
struct Teller<'a> {
    holder: &'a Holder<'a>,
    marks: Marks<'a>,
    /// Everything reported so far.
    told: Explored,
    /// The node up to which the piece is explored.
    reached: Vec<u32>,
    /// An execution has more decisions than a message can hold.
    deep: bool,
}

impl Teller<'_> {
    /// Totals of everything that was not reported yet.
    fn news(&mut self, so_far: &Summary) -> Explored {
        let (before, digest) = (self.told.summary, self.marks.digest);
        let summary = Summary {
            complete: so_far.complete - before.complete,
            blocked: so_far.blocked - before.blocked,
            dead_ends: so_far.dead_ends - before.dead_ends,
            checks: so_far.checks - before.checks,
            ..*so_far
        };
        let told = &self.told.marks;
        let marks: BTreeMap<_, _> = self
            .marks
            .paths
            .iter()
            .filter(|(name, _)| !told.contains_key(*name))
            .map(|(n, p)| (n.clone(), p.clone()))
            .collect();
        let new = Explored { summary, digest: digest.wrapping_sub(self.told.digest), marks };
        self.told.summary = *so_far;
        self.told.digest = digest;
        self.told.marks.extend(new.marks.clone());
        new
    }
}

impl Visitor for Teller<'_> {
    fn leaf(&mut self, leaf: &mut dyn LeafView) -> ControlFlow<()> {
        self.deep = leaf.path().len() > NODE_MAX;
        if self.deep { ControlFlow::Break(()) } else { self.marks.leaf(leaf) }
    }

    fn reached(&mut self, until: &[u32], so_far: &Summary) -> ControlFlow<()> {
        if self.holder.cancel.is_cancelled() {
            return ControlFlow::Break(());
        }
        if !until.is_empty() && until.len() <= NODE_MAX && self.reached != until {
            until.clone_into(&mut self.reached);
            let step = Step::Reached(until.to_vec(), self.news(so_far));
            (self.holder.tell)(step);
        }
        restart(&self.holder.told);
        ControlFlow::Continue(())
    }
}

/// The limit that a message names in these words.
pub fn bound(words: &str) -> Option<Bound> {
    Bound::ALL.into_iter().find(|b| b.to_string() == words)
}
