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
use super::abstention::Abstention;
use super::case::{Case, Context};
use super::kernel::{Kernel, read, written};
use super::models::Models;
use super::refine::{self, Compared, Judged, Sources, Until, known};
use super::{Oracle, answer};
use crate::job::{Budget, Claim, EngineReport, Reduced, Side, Source, Verification};
use moire_execution::leaf::{Memory, Outcome};
use moire_explore::Limits;
use moire_generate::lowering::draw;
use moire_program::canon::spell::hash;
use moire_program::ir::Program;
use moire_program::text;
use moire_tile_ir::Module;
use moire_tile_ir::lowering::{Lowering, lower};
use moire_tile_ir::run::{self as tile_run, TileLaunch, tile_entry};
use moire_tile_ir::text as tile;

/// Facts about the oracle.
pub const LOWERING: About =
    About { name: "lowering", takes: Takes::Kernels, by_default: false, under_models: false, tool: None };
/// The reading of the source.
const SOURCE: &str = "tile-ir";
/// The model of the PTX: by the letter of its dependencies, because a wait for a chosen token becomes one that no value changes.
const PTX: &str = "ptx:Q17=A";

/// The lowering oracle, for this variant of the reference lowering.
#[derive(Debug, Default)]
pub(super) struct ReferenceLowering(pub(super) Lowering);

/// The limits of exploration for both sides.
fn limits() -> Limits {
    Limits { leaves: 6_000, checks: 20_000, steps: 120_000, ..Limits::default() }
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
        refine::verify(self, claim, context)
    }

    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        context: Context<'_>,
        progress: &mut dyn FnMut(&Claim),
    ) -> Reduced {
        refine::minimise(self, claim, budget, context, progress)
    }
}

impl Sources for ReferenceLowering {
    type Source = Kernel;
    const TOGETHER: usize = 1;

    fn all_again<'a>(
        &'a self,
        claim: &'a Claim,
        kernels: Vec<Kernel>,
        context: Context<'a>,
    ) -> Result<refine::Again<'a>, Abstention> {
        let again = move |kernel| {
            let found = judge(kernel, &self.0, context.models)?;
            Ok(self::claim(&found, context.models).filter(|new| new.direction == claim.direction))
        };
        Ok(Box::new(kernels.into_iter().map(again)))
    }
}

/// Lowers a kernel, explores both sides, and compares what they may do.
fn judge((module, launch): Kernel, how: &Lowering, models: &Models) -> Result<Found, Abstention> {
    let refused = |e| Abstention::Refused(e).at("source");
    let kernel = tile_entry(&module, None).map_err(refused)?;
    let source = tile_run::lower(kernel, &launch).map_err(refused)?;
    let shared = source.objects.len();
    let compared = Compared::Memory(&|memory: &Memory| digest(memory, shared));
    let meaning = known(&source, &*models.get(SOURCE)?, &limits(), &compared, Until::Allowed(None))
        .map_err(|why| why.at("source"))?;
    let lowered = lower(&source, how)?;
    if meaning.undefined {
        return Ok(Found { module, launch, lowered, judged: Judged::Racy, executions: 0 });
    }
    if let Some(bound) = meaning.bounded {
        return Err(Abstention::Bounded(bound).at("source"));
    }
    let beyond = Until::Found(&|end| !meaning.ends.contains(end));
    let done = known(&lowered, &*models.get(PTX)?, &limits(), &compared, beyond);
    let done = done.map_err(|why| why.at("PTX"))?;
    let judged = match &done.found {
        Some(_) if meaning.cut => return Err(Abstention::CUT.at("source")),
        Some(extra) if meaning.ends.is_empty() => Judged::Progress(Some(extra.clone())),
        Some(extra) => Judged::Beyond(extra.clone()),
        None if done.undefined => Judged::Undefined,
        None if done.hangs && !meaning.hangs && !meaning.cut => Judged::Progress(None),
        None => done.agrees().map_err(|why| why.at("PTX"))?,
    };
    Ok(Found { module, launch, lowered, judged, executions: done.executions })
}

/// The digest of the memory behind the parameters: a memory is large, and there may be thousands.
fn digest(memory: &Memory, shared: usize) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for object in memory.iter().take(shared) {
        for (block, bytes) in object.blocks() {
            hasher.update(&block.to_le_bytes());
            hasher.update(bytes);
        }
        hasher.update(&u32::MAX.to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

fn claim(found: &Found, models: &Models) -> Option<Claim> {
    let direction = found.judged.direction()?;
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
        witness: found.judged.outcome().and_then(witness).unwrap_or_default(),
        axioms: Vec::new(),
    })
}
