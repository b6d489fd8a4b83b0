//! Pieces of explorations that many workers share.
//!
//! Contract: what is told of a piece is told in order, as its holder does it: how far it is, each second or so, and what it
//! gives away when somebody waits, if it has worked long enough for that to be worth a message. What is left when it ends
//! is its last word. Numbers are told once each: those of a step are what came since the step before. A cancelled piece
//! ends without a last word, and nobody asks for one. Source: `exploration.md` section 2.6.

use crate::job::Cancel;
use moire_cat::{Library, Model, Variants, builtin};
use moire_explore::explorer::LeafView;
use moire_explore::families::named;
use moire_explore::judge::Marks;
use moire_explore::share::{Giver, Piece, explore_piece, is_empty};
use moire_explore::{Abstain, Bound, Limits, Summary, Visitor, explore};
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use moire_proto::NODE_MAX;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time between two words on how far a piece is.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Time a piece is worked on before some of it is given away, again.
const GIVE_AFTER: Duration = Duration::from_millis(4);
/// Decisions between looks at the clock.
const LOOK_EVERY: u64 = 256;
/// Programs and models kept, ready to explore.
const KEPT: usize = 4;

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
    /// What comes behind this node is for others.
    Given(Vec<u32>),
}

/// Totals of a part of a piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// Executions, dead ends, checks, limits.
    pub summary: Summary,
    /// Sum of the numbers of the executions; wraps.
    pub digest: u64,
    /// Path of the first execution of each thing that was not told before, by its name.
    pub marks: BTreeMap<String, Vec<u32>>,
}

/// Names the tree of decisions: workers that share an exploration, and whoever judges it, make the same decisions in the
/// same order. What changes the tree of any of a few programs changes the name.
pub fn tree() -> &'static str {
    static TREE: OnceLock<String> = OnceLock::new();
    TREE.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        let model = builtin::load("ptx", &Variants::new()).expect("the shipped models load");
        for name in ["sb", "lb", "nw1r", "ainc", "casrot", "iriw", "ttas", "ticket", "mpmc", "barrier"] {
            let family = named(name).expect("the families are there");
            let program = parse(&family.text(family.least), Format::Native).expect("their texts read");
            let mut note = |leaf: &mut dyn LeafView| {
                leaf.path().iter().for_each(|choice| _ = hasher.update(&choice.to_le_bytes()));
                hasher.update(&leaf.digest().to_le_bytes());
                ControlFlow::Continue(())
            };
            let limits = Limits { leaves: 100, ..Limits::default() };
            let told = explore(&program, &model, &[], &limits, &mut note);
            hasher.update(format!("{told:?}").as_bytes());
        }
        format!("tree-{}", &hasher.finalize().to_hex()[..16])
    })
}

/// Models beside those that are shipped.
struct Files<'a>(&'a BTreeMap<String, String>);

impl Library for Files<'_> {
    fn open(&self, name: &str) -> Option<String> {
        builtin::Shipped.open(name).or_else(|| self.0.get(name).cloned())
    }
}

/// A program and a model, read.
struct Ready {
    program: Program,
    model: Model,
}

impl Ready {
    fn new(asked: &Exploration) -> Result<Self, String> {
        let text = &asked.program;
        let program =
            parse(text, Format::detect("", text)).map_err(|e| format!("the program does not read: {e}"))?;
        let name = &asked.model;
        let model = match asked.files.get(name) {
            Some(text) => moire_cat::load(name, text, &Files(&asked.files), &asked.switches),
            None => builtin::load(name, &asked.switches),
        };
        let model = model.map_err(|e| format!("the model does not load: {e}"))?;
        match *blake3::hash(model.canonical_text().as_bytes()).as_bytes() == asked.fingerprint {
            true => Ok(Self { program, model }),
            false => Err(format!("the model {name} is another one here; use the same moire everywhere")),
        }
    }
}

/// Programs and models that were explored last, ready.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<Vec<(Exploration, Arc<Ready>)>>);

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shelf")
    }
}

impl Shelf {
    fn ready(&self, asked: &Exploration) -> Result<Arc<Ready>, String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ready)) = kept.iter().find(|(of, _)| of == asked) {
            return Ok(Arc::clone(ready));
        }
        let ready = Arc::new(Ready::new(asked)?);
        kept.insert(0, (asked.clone(), Arc::clone(&ready)));
        kept.truncate(KEPT);
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
        let ready = self.ready(asked).map_err(|reason| Abstain { reason, line: 0 })?;
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
            looks: AtomicU64::new(0),
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

/// Who explores a piece, as the explorer knows it.
struct Holder<'a> {
    ready: &'a Ready,
    limits: &'a Limits,
    cancel: &'a Cancel,
    tell: &'a (dyn Fn(Step) + Sync),
    /// Decisions so far.
    looks: AtomicU64,
    /// When it last gave, and told.
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
        // What gives no answer here gives none on the way there either, and is told then.
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
        let looks = self.looks.load(Ordering::Relaxed) + 1;
        self.looks.store(looks, Ordering::Relaxed);
        if !looks.is_multiple_of(LOOK_EVERY) {
            return false;
        }
        self.cancel.tick();
        self.cancel.is_cancelled() || passed(&self.told) > TELL_EVERY
    }
}

/// Sees the executions of a piece.
struct Teller<'a> {
    holder: &'a Holder<'a>,
    marks: Marks<'a>,
    /// Everything told so far.
    told: Explored,
    /// Up to where.
    reached: Vec<u32>,
    /// An execution has more decisions than can be told.
    deep: bool,
}

impl Teller<'_> {
    /// What was not told yet.
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

/// The limit of these words.
pub fn bound(words: &str) -> Option<Bound> {
    Bound::ALL.into_iter().find(|b| b.to_string() == words)
}
