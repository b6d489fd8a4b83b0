//! The lowering oracle: the PTX that the reference lowering makes of a Tile IR kernel does nothing the kernel may not do.
//!
//! A kernel is drawn (`moire_generate::lowering`) and lowered to PTX (`moire_tile_ir::lowering`). Both are explored as
//! they are: the kernel under the default reading of the Tile IR model, its PTX under the PTX model. Both have the memory
//! behind the parameters in common, so final states are compared there. A kernel with a race may do anything and is counted
//! apart. No tool is needed. This holds the two models to each other: an order that `tile-ir.cat` promises and PTX does
//! not keep is a claim, as is a mistake of the lowering.
//!
//! The text of a claim is that of [`super::kernel`]. Its direction is `subset` if the PTX has an extra final state, and
//! `progress` if one side never ends where the other does.

use super::about::{About, Takes};
use super::abstention::{Abstention, executed};
use super::case::{Case, Context};
use super::kernel::{Kernel, read, written};
use super::models::Models;
use super::{Oracle, answer, unread, verification};
use crate::direction::Direction;
use crate::job::{Budget, Claim, EngineReport, Reduced, Side, Source, Verification};
use moire_cat::Model;
use moire_execution::{leaf::LeafKind, leaf::Outcome};
use moire_explore::judge::{Verdict, flag_verdict};
use moire_explore::search::{Bound, LeafView};
use moire_explore::{Limits, explore};
use moire_generate::lowering::draw;
use moire_program::canon::spell::hash;
use moire_program::ir::Program;
use moire_program::text;
use moire_tile_ir::Module;
use moire_tile_ir::lowering::{Lowering, lower};
use moire_tile_ir::reduce::tile_smaller;
use moire_tile_ir::run::{self as tile_run, TileLaunch, tile_entry};
use moire_tile_ir::text as tile;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::ops::ControlFlow;

/// Facts about the oracle.
pub const LOWERING: About =
    About { name: "lowering", takes: Takes::Kernels, by_default: false, under_models: false, tool: None };
/// The reading of the source.
const SOURCE: &str = "tile-ir";
/// The model of the PTX.
const PTX: &str = "ptx";

/// The lowering oracle, for this variant of the reference lowering.
#[derive(Debug, Default)]
pub(super) struct ReferenceLowering(pub(super) Lowering);

/// The limits of exploration for both sides.
fn limits() -> Limits {
    Limits { leaves: 6_000, checks: 20_000, steps: 120_000, ..Limits::default() }
}

/// The judgement of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Judged {
    Racy,
    /// Every one of so many executions of the PTX ends as the source may.
    Agrees(NonZeroU64),
    /// A final state that the source does not have.
    Beyond(Outcome),
    /// One side ends, the other does not.
    Progress(Option<Outcome>),
}

moire_program::spells! {
    Judged {
        Judged::Racy => "Racy" (),
        Judged::Agrees(executions) => "Agrees" (executions),
        Judged::Beyond(outcome) => "Beyond" (outcome),
        Judged::Progress(outcome) => "Progress" (outcome),
    }
}

impl Judged {
    fn word(&self) -> &'static str {
        match self {
            Judged::Racy => "racy",
            Judged::Agrees(_) => answer::CLEAN,
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

impl ReferenceLowering {
    /// The claim made again from its text, if the rule is still broken in the same way.
    fn again(&self, claim: &Claim, kernel: Kernel, models: &Models) -> Result<Option<Claim>, Abstention> {
        let found = judge(kernel, &self.0, models)?;
        Ok(self::claim(&found, models).filter(|c| c.direction == claim.direction))
    }

    fn found(&self, case: &mut Case<'_>) -> Result<Found, Abstention> {
        let kernel = match &case.item.source {
            Source::Generated { seed, index, .. } => {
                let drawn = draw(*seed, *index);
                Ok((drawn.module, drawn.launch))
            }
            Source::Text(text) => read(text),
        };
        case.context.cancel.tick();
        let kernel = kernel.map_err(|why| why.at("rejected"))?;
        case.report.program = *blake3::hash(tile::print(&kernel.0).as_bytes()).as_bytes();
        judge(kernel, &self.0, case.context.models).map_err(|why| why.at(LOWERING.name))
    }
}

impl Oracle for ReferenceLowering {
    fn about(&self) -> &'static About {
        &LOWERING
    }

    fn run(&self, case: &mut Case<'_>) -> Vec<Claim> {
        let found = self.found(case);
        case.context.cancel.tick();
        match found {
            Ok(found) => {
                case.report.engines.push(EngineReport {
                    engine: LOWERING.name.into(),
                    verdict: found.judged.word().into(),
                    outcomes: hash(&found.judged),
                    executions: found.executions,
                    ..EngineReport::default()
                });
                claim(&found, case.context.models).into_iter().collect()
            }
            Err(why) => {
                case.abstain(&why);
                Vec::new()
            }
        }
    }

    fn verify(&self, claim: &Claim, context: Context<'_>) -> Verification {
        let kernel = read(&claim.program).map_err(unread);
        verification(kernel.and_then(|kernel| self.again(claim, kernel, context.models)))
    }

    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        context: Context<'_>,
        progress: &mut dyn FnMut(&Claim),
    ) -> Reduced {
        let (mut best, mut tried) = (claim.clone(), 0);
        while let Ok(kernel) = read(&best.program) {
            let mut found = None;
            for smaller in tile_smaller(&kernel) {
                if context.cancel.is_cancelled() || tried >= budget.candidates {
                    return Reduced { claim: best, tried, normal: false };
                }
                tried += 1;
                context.cancel.tick();
                found = self.again(claim, smaller, context.models).ok().flatten();
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
}

/// Lowers a kernel, explores both sides, and compares what they may do.
fn judge((module, launch): Kernel, how: &Lowering, models: &Models) -> Result<Found, Abstention> {
    let refused = |e| Abstention::Refused(e).at("source");
    let kernel = tile_entry(&module, None).map_err(refused)?;
    let source = tile_run::lower(kernel, &launch).map_err(refused)?;
    let meaning = meaning(&source, &*models.get(SOURCE)?).map_err(|why| why.at("source"))?;
    let lowered = lower(&source, how)?;
    if meaning.undefined {
        return Ok(Found { module, launch, lowered, judged: Judged::Racy, executions: 0 });
    }
    let shared = source.objects.len();
    let beyond = |o: &Outcome| !meaning.allowed.contains(&digest(o, shared));
    let done = search(&lowered, &*models.get(PTX)?, &beyond).map_err(|why| why.at("PTX"))?;
    let judged = match done.beyond {
        Some(_) if meaning.cut => return Err(Abstention::CUT.at("source")),
        Some(extra) if meaning.allowed.is_empty() => Judged::Progress(Some(extra)),
        Some(extra) => Judged::Beyond(extra),
        None if done.hangs && !meaning.hangs && !meaning.cut => Judged::Progress(None),
        None => Judged::Agrees(executed(done.executions)?),
    };
    Ok(Found { module, launch, lowered, judged, executions: done.executions })
}

/// The behaviour that a kernel allows.
#[derive(Default)]
struct Meaning {
    /// Digests of final memories: a memory is large, and there may be thousands.
    allowed: BTreeSet<[u8; 32]>,
    /// There is a race. The exploration stopped there, because executions behind it may have very many final memories.
    undefined: bool,
    hangs: bool,
    cut: bool,
}

/// The digest of the memory behind the parameters.
fn digest(outcome: &Outcome, shared: usize) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for object in outcome.memory.iter().take(shared) {
        for (block, bytes) in object.blocks() {
            hasher.update(&block.to_le_bytes());
            hasher.update(bytes);
        }
        hasher.update(&u32::MAX.to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

fn meaning(source: &Program, model: &Model) -> Result<Meaning, Abstention> {
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
        Err(abstain) => Err(abstain.into()),
        Ok(s) => match s.bounded {
            None => Ok(all),
            Some(Bound::Loop) => Ok(Meaning { cut: true, ..all }),
            Some(bound) => Err(Abstention::Bounded(bound)),
        },
    }
}

/// The behaviour of the lowered kernel.
#[derive(Default)]
struct Done {
    hangs: bool,
    executions: u64,
    /// The first outcome that the kernel does not allow; the exploration stopped there.
    beyond: Option<Outcome>,
}

fn search(program: &Program, model: &Model, beyond: &dyn Fn(&Outcome) -> bool) -> Result<Done, Abstention> {
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
        (None, Err(abstain)) => Err(abstain.into()),
        // An execution that the loop bound cuts waits, and ends in no new state.
        (None, Ok(s)) => match s.bounded {
            None | Some(Bound::Loop) => Ok(done),
            Some(bound) => Err(Abstention::Bounded(bound)),
        },
    }
}

fn claim(found: &Found, models: &Models) -> Option<Claim> {
    let (direction, outcome) = match &found.judged {
        Judged::Racy | Judged::Agrees(_) => return None,
        Judged::Beyond(outcome) => (Direction::Subset, Some(outcome)),
        Judged::Progress(outcome) => (Direction::Progress, outcome.as_ref()),
    };
    let witness = |o: &Outcome| answer::witness(&found.lowered, PTX, &*models.get(PTX).ok()?, o);
    Some(Claim {
        oracle: LOWERING.name.into(),
        direction,
        models: [SOURCE, PTX].into_iter().map(Side::of).collect(),
        verdict: found.judged.word().into(),
        program: written(
            &found.module,
            &found.launch,
            "the reference lowering",
            &text::print(&found.lowered),
        ),
        witness: outcome.and_then(witness).unwrap_or_default(),
        axioms: Vec::new(),
    })
}
