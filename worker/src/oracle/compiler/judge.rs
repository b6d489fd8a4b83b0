//! One kernel and the PTX a compiler made of it: does the PTX do anything the kernel may not do?
//!
//! Both are cut to the threads and locations that tell (`moire_program::simt::slice`) and explored: the kernel under the
//! weakest sensible reading of the Tile IR model ([`WEAKEST`]), the PTX under the PTX model. What both have in common
//! is memory behind the parameters, so final states are compared there. A source with a race may do anything.
//! A final state that the weakest reading forbids is a bug of the compiler; one that only the default forbids is
//! contested by the switches that make the difference; one that the PTX reaches where the source never ends is about
//! progress.

use crate::oracle::answer::{self, Answer};
use moire_cat::Model;
use moire_explore::explorer::{Bound, LeafView};
use moire_explore::{LeafKind, Limits, Outcome, explore};
use moire_program::ir::{
    LoadOrder, Op, Operand, Program, Space, StoreOrder, Thread, TileAccess, TileKind, TileOp, Value,
};
use moire_program::simt::{self, Pair};
use moire_program::text::ptx;
use moire_program::tile::Module;
use moire_program::tile_run::{self, TileLaunch, tile_entry};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Switches of the weakest sensible reading, as specifications name them.
pub(super) const WEAKEST: &str = "tile-ir:OBS=B,RPO=B,SCL=0";
/// The reading whose difference from the weakest is contested.
pub(super) const DEFAULT: &str = "tile-ir";
/// Settings of single switches of [`WEAKEST`] on top of the default.
pub(super) const SINGLE: [&str; 3] = ["OBS=B", "RPO=B", "SCL=0"];
/// The model of the compiled side.
pub(super) const PTX: &str = "ptx";

/// How far both sides are explored: some tenths of a second at worst, some milliseconds for most.
fn limits() -> Limits {
    Limits { leaves: 3_000, checks: 10_000, steps: 60_000, ..Limits::default() }
}

/// Final memory behind the parameters.
type Memory = Vec<Vec<u8>>;

/// What became of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// The source has a race under the weakest reading.
    Racy,
    /// Every final state of the PTX is one of the source under the default, or the default finds a race.
    Agrees,
    /// A final state that the default forbids and the weakest reading allows, and the single switches that allow it.
    Contested(Outcome, Vec<&'static str>),
    /// A final state of the PTX that the weakest reading forbids.
    Forbidden(Outcome),
    /// The source never ends, the PTX does, or the other way round.
    Progress(Option<Outcome>),
}

impl Judged {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Judged::Racy => "racy",
            Judged::Agrees => "clean",
            Judged::Contested(..) => "contested",
            Judged::Forbidden(_) => "discrepancy",
            Judged::Progress(_) => "progress",
        }
    }
}

/// A judged kernel, with what it was judged by.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) judged: Judged,
    pub(super) pair: Pair,
    /// Executions of the PTX.
    pub(super) executions: u64,
    /// Whether a location that a tile block writes strongly is strongly read by another.
    pub(super) talks: bool,
}

/// Models by specification.
pub(super) type Models<'m> = &'m dyn Fn(&str) -> Result<std::sync::Arc<Model>, String>;

/// Source and PTX of a kernel as programs.
pub(super) fn pair(module: &Module, launch: &TileLaunch, text: &str) -> Result<Pair, String> {
    let kernel = tile_entry(module, None).map_err(|e| format!("source: {e}"))?;
    let source =
        tile_run::lower(kernel, launch).map_err(|e| format!("source: {}", nameless(&e.to_string())))?;
    let compiled = ptx::parse(text).map_err(|e| format!("PTX: {}", e.0.message))?;
    let entry = moire_program::kernel::entry(&compiled, None).map_err(|e| format!("PTX: {e}"))?;
    let sizes: Vec<u32> = source.objects.iter().map(|o| o.bytes).collect();
    let blocks = launch.grid.iter().product();
    let compiled =
        simt::threads(entry, blocks, &sizes).map_err(|e| format!("PTX: {}", nameless(&e.to_string())))?;
    Ok(Pair { source, compiled })
}

/// A reason without the line it is about, so that equal reasons are counted together.
fn nameless(text: &str) -> String {
    match text.rfind(" (line ") {
        Some(at) => text[..at].to_owned(),
        None => text.to_owned(),
    }
}

/// See the module. Where two threads of each kind are too much to explore, one of each is.
pub(super) fn judge(pair: &Pair, models: Models<'_>) -> Result<Verdict, String> {
    let cut = |e: simt::Refusal| format!("slice: {}", nameless(&e.to_string()));
    let two = simt::slice(pair).map_err(cut)?;
    judged(two, models).or_else(|_| judged(simt::slice_least(pair).map_err(cut)?, models))
}

fn judged(pair: Pair, models: Models<'_>) -> Result<Verdict, String> {
    let shared = pair.source.objects.len();
    let weak = meaning(&pair.source, &*models(WEAKEST)?)?;
    let verdict = |judged, executions, pair: Pair| {
        let talks = talks(&pair.source);
        Ok(Verdict { judged, pair, executions, talks })
    };
    if weak.undefined {
        return verdict(Judged::Racy, 0, pair);
    }
    let allowed = memories(&weak, shared);
    let beyond = |o: &Outcome| !allowed.contains(&o.memory[..shared]);
    let compiled = search(&pair.compiled, &*models(PTX)?, &beyond).map_err(|e| format!("PTX: {e}"))?;
    let judged = match compiled.beyond {
        Some(extra) if allowed.is_empty() => Judged::Progress(Some(extra)),
        Some(_) if weak.cut => return Err("source: cut at the loop bound".into()),
        Some(extra) => Judged::Forbidden(extra),
        None if compiled.hangs && !hangs(&weak) && !weak.cut => Judged::Progress(None),
        None => contested(&pair.source, &compiled.outcomes, shared, models)?,
    };
    verdict(judged, compiled.executions, pair)
}

/// What the PTX does.
struct Found {
    outcomes: BTreeSet<Outcome>,
    hangs: bool,
    executions: u64,
    /// The first outcome that should not be; nothing was looked for behind it.
    beyond: Option<Outcome>,
}

/// Explores until an outcome is found that should not be.
fn search(program: &Program, model: &Model, beyond: &dyn Fn(&Outcome) -> bool) -> Result<Found, String> {
    let mut found = Found { outcomes: BTreeSet::new(), hangs: false, executions: 0, beyond: None };
    let summary = explore(program, model, &[], &limits(), &mut |leaf: &mut dyn LeafView| {
        let facts = leaf.facts();
        found.executions += 1;
        found.hangs |= facts.kind == LeafKind::Blocked;
        found.beyond = facts.outcomes.iter().find(|o| beyond(o)).cloned();
        found.outcomes.extend(facts.outcomes);
        if found.beyond.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match (&found.beyond, summary) {
        (Some(_), _) => Ok(found),
        (None, Err(abstain)) => Err(abstain.reason),
        // What the loop bound cuts waits, and ends in nothing new.
        (None, Ok(s)) => match s.bounded {
            None | Some(Bound::Loop) => Ok(found),
            Some(bound) => Err(bound.to_string()),
        },
    }
}

/// What the source may do.
fn meaning(source: &Program, model: &Model) -> Result<Answer, String> {
    answer::within(source, model, None, &limits()).map_err(|e| format!("source: {e}"))
}

fn memories(answer: &Answer, shared: usize) -> BTreeSet<Memory> {
    answer.outcomes.iter().map(|o| o.memory[..shared].to_vec()).collect()
}

fn hangs(answer: &Answer) -> bool {
    answer.leaves.values().any(|l| l.kind == LeafKind::Blocked)
}

/// Whether the default reading forbids what the PTX does, and which switches would allow it.
fn contested(
    source: &Program,
    done: &BTreeSet<Outcome>,
    shared: usize,
    models: Models<'_>,
) -> Result<Judged, String> {
    let under = |spec: &str| meaning(source, &*models(spec)?);
    let strict = under(DEFAULT)?;
    let allowed = memories(&strict, shared);
    if strict.undefined || strict.cut {
        return Ok(Judged::Agrees);
    }
    let beyond = |o: &&Outcome| !allowed.contains(&o.memory[..shared]);
    let Some(extra) = done.iter().find(beyond) else { return Ok(Judged::Agrees) };
    let mut by = Vec::new();
    for setting in SINGLE {
        let looser = under(&format!("{DEFAULT}:{setting}"))?;
        if looser.undefined || memories(&looser, shared).contains(&extra.memory[..shared]) {
            by.push(setting);
        }
    }
    Ok(Judged::Contested(extra.clone(), by))
}

fn accesses(thread: &Thread) -> impl Iterator<Item = &TileAccess> {
    thread.body.iter().filter_map(|i| match &i.op {
        Op::Tile(TileOp::Access(access)) => Some(access.as_ref()),
        _ => None,
    })
}

/// Whether two tile blocks communicate through strong accesses: one may read what the other writes.
fn talks(source: &Program) -> bool {
    let mut strong: Vec<(usize, bool, u16, i32)> = Vec::new();
    for (block, thread) in source.threads.iter().enumerate() {
        for access in accesses(thread) {
            let (reads, writes) = match access.kind {
                TileKind::Load(LoadOrder::Weak) | TileKind::Store(StoreOrder::Weak) => continue,
                TileKind::Load(_) => (true, false),
                TileKind::Store(_) => (false, true),
                TileKind::Rmw { .. } => (true, true),
            };
            for element in &access.elements {
                if let Operand::Address(symbol) = element.addr.base {
                    let place = (symbol.0, element.addr.offset);
                    strong.extend(reads.then_some((block, false, place.0, place.1)));
                    strong.extend(writes.then_some((block, true, place.0, place.1)));
                }
            }
        }
    }
    strong.iter().any(|(b, w, s, o)| *w && strong.iter().any(|r| r.0 != *b && !r.1 && (r.2, r.3) == (*s, *o)))
}

/// `arg2+4 = 1 arg2+8 = 0`: what is not zero of a final state, and what is zero beside it among the cells that matter.
pub(super) fn shown(pair: &Pair, memory: &[Vec<u8>]) -> String {
    let mut out = Vec::new();
    let objects = pair.source.objects.iter().enumerate().filter(|(_, o)| o.space == Space::Global);
    for (n, object) in objects {
        for (offset, bytes) in cells(&pair.source, n) {
            let Some(content) = memory.get(n).and_then(|m| m.get(offset..offset + bytes)) else { continue };
            let value = content.iter().rev().fold(0 as Value, |v, b| v << 8 | Value::from(*b));
            let plus = if offset == 0 { String::new() } else { format!("+{offset}") };
            out.push(format!("{}{plus}={value}", object.name));
        }
    }
    out.join(" ")
}

/// Places of an object that the source touches: offset and size.
fn cells(source: &Program, object: usize) -> BTreeSet<(usize, usize)> {
    let mut out = BTreeSet::new();
    for access in source.threads.iter().flat_map(accesses) {
        for element in &access.elements {
            if let Operand::Address(symbol) = element.addr.base
                && source.symbols.get(symbol.index()).is_some_and(|s| s.object.index() == object)
                && let Ok(offset) = usize::try_from(element.addr.offset)
            {
                out.insert((offset, access.ty.bytes() as usize));
            }
        }
    }
    out
}
