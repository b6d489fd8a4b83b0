//! The lowering oracle: what the reference lowering makes of a kernel of Tile IR does nothing the kernel may not do.
//!
//! A kernel is drawn (`moire_program::lowering::draw`), lowered to PTX (`moire_program::lowering`), and both are explored as
//! they are: the kernel under the default reading of the Tile IR model, what was made of it under the PTX model. What
//! both have in common is memory behind the parameters; final states are compared there. A kernel with a race may do
//! anything and is counted apart. No tool is needed. So the two models are held to each other: an order that
//! `tile-ir.cat` promises and PTX does not keep is a claim, as is a mistake of the lowering.
//!
//! A claim is one text that reads as the kernel: the launch and what was made of it are comments. Broken are `subset`: a
//! final state too many, and `progress`: one side waits for ever where the other does not.

use super::answer;
use crate::job::{Budget, Cancel, Claim, EngineReport, ItemReport, Reduced, Source};
use moire_cat::Model;
use moire_explore::explorer::{Bound, LeafView};
use moire_explore::judge::{Verdict, flag_verdict};
use moire_explore::{LeafKind, Limits, Outcome, explore};
use moire_program::ir::Program;
use moire_program::lowering::{Lowering, draw, lower};
use moire_program::reduce::tile::tile_smaller;
use moire_program::text::{self, tile};
use moire_program::tile::Module;
use moire_program::tile_run::{self, TileLaunch, tile_entry};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Its name.
pub const LOWERING: &str = "lowering";
/// The reading of the source.
const SOURCE: &str = "tile-ir";
/// The model of what is made of it.
const PTX: &str = "ptx";

/// Models by specification.
type Models<'m> = &'m dyn Fn(&str) -> Result<Arc<Model>, String>;

/// How far both sides are explored.
fn limits() -> Limits {
    Limits { leaves: 6_000, checks: 20_000, steps: 120_000, ..Limits::default() }
}

/// What became of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Judged {
    Racy,
    Agrees,
    /// A final state that the source does not have.
    Beyond(Outcome),
    /// One side ends, the other does not.
    Progress(Option<Outcome>),
}

impl Judged {
    fn word(&self) -> &'static str {
        match self {
            Judged::Racy => "racy",
            Judged::Agrees => answer::CLEAN,
            Judged::Beyond(_) => "discrepancy",
            Judged::Progress(_) => "progress",
        }
    }
}

/// A judged kernel.
struct Found {
    module: Module,
    launch: TileLaunch,
    lowered: Program,
    judged: Judged,
    executions: u64,
}

/// The report of one kernel, with the claim it breaks.
pub(super) fn item(
    source: &Source,
    how: &Lowering,
    models: Models<'_>,
    report: &mut ItemReport,
    cancel: &Cancel,
) -> Option<Claim> {
    let kernel = match source {
        Source::Generated { seed, index, .. } => {
            let drawn = draw(*seed, *index);
            Ok((drawn.module, drawn.launch))
        }
        Source::Text(text) => read(text),
    };
    cancel.tick();
    let found = match kernel.map_err(|e| format!("rejected: {e}")) {
        Ok((module, launch)) => {
            report.program = *blake3::hash(tile::print(&module).as_bytes()).as_bytes();
            judge(module, launch, how, models).map_err(|e| format!("{LOWERING}: {e}"))
        }
        Err(reason) => Err(reason),
    };
    cancel.tick();
    match found {
        Ok(found) => {
            report.engines.push(EngineReport {
                engine: LOWERING.into(),
                verdict: found.judged.word().into(),
                outcomes: *blake3::hash(format!("{:?}", found.judged).as_bytes()).as_bytes(),
                executions: found.executions,
                ..EngineReport::default()
            });
            claim(&found, models)
        }
        Err(reason) => {
            super::abstain(report, reason);
            None
        }
    }
}

/// The claim made again from its text, if the rule is still broken in the same way.
pub(super) fn again(claim: &Claim, how: &Lowering, models: Models<'_>) -> Result<Option<Claim>, String> {
    let (module, launch) = read(&claim.program)?;
    let found = judge(module, launch, how, models)?;
    Ok(self::claim(&found, models).filter(|c| c.direction == claim.direction))
}

/// Smaller kernels as long as the rule stays broken in the same way.
pub(super) fn minimise(
    claim: &Claim,
    how: &Lowering,
    models: Models<'_>,
    budget: Budget,
    cancel: &Cancel,
    progress: &mut dyn FnMut(&Claim),
) -> Reduced {
    let (mut best, mut tried) = (claim.clone(), 0);
    while let Ok(kernel) = read(&best.program) {
        let mut found = None;
        for (module, launch) in tile_smaller(&kernel) {
            if cancel.is_cancelled() || tried >= budget.candidates {
                return Reduced { claim: best, tried, normal: false };
            }
            tried += 1;
            cancel.tick();
            let judged = judge(module, launch, how, models).ok();
            found = judged.and_then(|f| self::claim(&f, models)).filter(|c| c.direction == claim.direction);
            if found.is_some() {
                break;
            }
        }
        let Some(smaller) = found else { return Reduced { claim: best, tried, normal: true } };
        best = smaller;
        progress(&best);
    }
    Reduced { claim: best, tried, normal: false }
}

/// See the module.
fn judge(module: Module, launch: TileLaunch, how: &Lowering, models: Models<'_>) -> Result<Found, String> {
    let kernel = tile_entry(&module, None).map_err(|e| format!("source: {e}"))?;
    let source =
        tile_run::lower(kernel, &launch).map_err(|e| format!("source: {}", nameless(&e.to_string())))?;
    let meaning = meaning(&source, &*models(SOURCE)?).map_err(|e| format!("source: {e}"))?;
    let lowered = lower(&source, how).map_err(|e| nameless(&e.to_string()))?;
    if meaning.undefined {
        return Ok(Found { module, launch, lowered, judged: Judged::Racy, executions: 0 });
    }
    let shared = source.objects.len();
    let beyond = |o: &Outcome| !meaning.allowed.contains(&digest(o, shared));
    let done = search(&lowered, &*models(PTX)?, &beyond).map_err(|e| format!("PTX: {e}"))?;
    let judged = match done.beyond {
        Some(_) if meaning.cut => return Err("source: cut at the loop bound".into()),
        Some(extra) if meaning.allowed.is_empty() => Judged::Progress(Some(extra)),
        Some(extra) => Judged::Beyond(extra),
        None if done.hangs && !meaning.hangs && !meaning.cut => Judged::Progress(None),
        None => Judged::Agrees,
    };
    Ok(Found { module, launch, lowered, judged, executions: done.executions })
}

/// A reason without the line it is about, so that equal reasons are counted together.
fn nameless(text: &str) -> String {
    text.rfind(" (line ").and_then(|at| text.get(..at)).unwrap_or(text).to_owned()
}

/// What a kernel may do.
#[derive(Default)]
struct Meaning {
    /// Digests of final memories: a memory is large, and there may be thousands.
    allowed: BTreeSet<[u8; 32]>,
    /// There is a race; nothing was looked for behind it, where leaves may have very many final memories.
    undefined: bool,
    hangs: bool,
    cut: bool,
}

/// Of the memory behind the parameters.
fn digest(outcome: &Outcome, shared: usize) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for object in outcome.memory.iter().take(shared) {
        hasher.update(&object.len().to_le_bytes());
        hasher.update(object);
    }
    *hasher.finalize().as_bytes()
}

fn meaning(source: &Program, model: &Model) -> Result<Meaning, String> {
    let mut all = Meaning::default();
    let summary = explore(source, model, &[], &limits(), &mut |leaf: &mut dyn LeafView| {
        let facts = leaf.facts();
        all.undefined |= facts.flags.iter().any(|f| flag_verdict(f) == Verdict::Undefined);
        all.hangs |= facts.kind == LeafKind::Blocked;
        all.allowed.extend(facts.outcomes.iter().map(|o| digest(o, source.objects.len())));
        if all.undefined { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match summary {
        _ if all.undefined => Ok(all),
        Err(abstain) => Err(abstain.reason),
        Ok(s) => match s.bounded {
            None => Ok(all),
            Some(Bound::Loop) => Ok(Meaning { cut: true, ..all }),
            Some(bound) => Err(bound.to_string()),
        },
    }
}

/// What was made of a kernel does.
#[derive(Default)]
struct Done {
    hangs: bool,
    executions: u64,
    /// The first outcome that should not be; nothing was looked for behind it.
    beyond: Option<Outcome>,
}

fn search(program: &Program, model: &Model, beyond: &dyn Fn(&Outcome) -> bool) -> Result<Done, String> {
    let mut done = Done::default();
    let summary = explore(program, model, &[], &limits(), &mut |leaf: &mut dyn LeafView| {
        let facts = leaf.facts();
        done.executions += 1;
        done.hangs |= facts.kind == LeafKind::Blocked;
        done.beyond = facts.outcomes.into_iter().find(|o| beyond(o));
        if done.beyond.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match (&done.beyond, summary) {
        (Some(_), _) => Ok(done),
        (None, Err(abstain)) => Err(abstain.reason),
        // What the loop bound cuts waits, and ends in nothing new.
        (None, Ok(s)) => match s.bounded {
            None | Some(Bound::Loop) => Ok(done),
            Some(bound) => Err(bound.to_string()),
        },
    }
}

fn claim(found: &Found, models: Models<'_>) -> Option<Claim> {
    let (direction, outcome) = match &found.judged {
        Judged::Racy | Judged::Agrees => return None,
        Judged::Beyond(outcome) => ("subset", Some(outcome)),
        Judged::Progress(outcome) => ("progress", outcome.as_ref()),
    };
    let witness = |o: &Outcome| answer::witness(&found.lowered, PTX, &*models(PTX).ok()?, o);
    Some(Claim {
        oracle: LOWERING.into(),
        direction: direction.into(),
        models: [SOURCE, PTX].into_iter().map(super::side).collect(),
        verdict: found.judged.word().into(),
        program: written(found),
        witness: outcome.and_then(witness).unwrap_or_default(),
        axioms: Vec::new(),
    })
}

/// Kernel, launch and PTX in one text that reads as the kernel.
fn written(found: &Found) -> String {
    let mut out = found.launch.note() + tile::print(&found.module).trim_end();
    out.push_str("\n// the reference lowering makes of it:\n");
    for line in text::print(&found.lowered).lines().filter(|l| !l.trim().is_empty()) {
        out.push_str("// ");
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The kernel of [`written`].
fn read(program: &str) -> Result<(Module, TileLaunch), String> {
    let launch = TileLaunch::noted(program).ok_or("the text does not say `// tile blocks: N`")?;
    Ok((tile::parse(program).map_err(|e| e.to_string())?, launch))
}
