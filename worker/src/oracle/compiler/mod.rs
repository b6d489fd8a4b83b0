//! The compiler oracle: what NVIDIA's compiler makes of a Tile IR kernel does nothing that the kernel may not do.
//!
//! Kernels are drawn, compiled many at a time, and judged one by one (see [`judge`]). A claim holds the kernel with its
//! launch in front and the PTX behind it, both as comments, so that its text alone says everything; to verify it the
//! kernel is compiled again. Claims are of three directions: `subset` (the weakest sensible reading forbids a final
//! state of the PTX), `progress` (one side never ends where the other does) and `difference` (only the default reading
//! forbids it: contested by switches, and no bug).

mod batches;
mod cause;
mod cell;
mod judge;
mod machine;

pub use cell::CAPABILITY;
pub use machine::Observations;

use super::answer;
use crate::job::{Budget, Cancel, Claim, EngineReport, ItemReport, Reduced, Source};
use batches::{Batches, Ptx};
use cell::Cell;
use judge::{Judged, Models, Verdict};
use moire_explore::Outcome;
use moire_program::generate::Profile;
use moire_program::generate::tile::TileDraw;
use moire_program::reduce::tile::tile_smaller;
use moire_program::text::tile as text;
use moire_program::tile::Module;
use moire_program::tile_run::TileLaunch;
use moire_toolchain::tile::Tileiras;
use std::sync::OnceLock;

/// Its name.
pub const COMPILER: &str = "compiler";
/// How to get the tool, for whoever asks.
pub const HOW: &str =
    "pip install nvidia-cuda-tileiras nvidia-cuda-nvcc nvidia-nvvm, then MOIRE_VENV=the environment";
/// Candidates of a reduction that are compiled together.
const TOGETHER: usize = 32;

/// The compilers of this machine, looked for when first asked for, and what they said last.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    found: OnceLock<Result<Vec<Tileiras>, String>>,
    batches: Batches,
}

/// A kernel on which the rule is broken.
struct Found {
    module: Module,
    launch: TileLaunch,
    ptx: String,
    verdict: Verdict,
}

impl Compiler {
    pub(super) fn of(compiler: Tileiras) -> Self {
        Self { found: OnceLock::from(Ok(vec![compiler])), batches: Batches::default() }
    }

    /// The compilers, newest first, or why there is none.
    pub(super) fn tools(&self) -> Result<&[Tileiras], String> {
        let found = self.found.get_or_init(|| match Tileiras::all(None) {
            all if all.is_empty() => Err(format!("no tileiras: {HOW}")),
            all => Ok(all),
        });
        found.as_deref().map_err(Clone::clone)
    }

    fn tool(&self, cell: &Cell) -> Result<&Tileiras, String> {
        let release = cell.release.as_deref().unwrap_or("any release");
        let of = |t: &&Tileiras| cell.takes(t);
        self.tools()?.iter().find(of).ok_or_else(|| format!("no tileiras of {release}: {HOW}"))
    }

    /// What fixes the meaning of a side that names a compiler; `None` for any other.
    pub(super) fn fingerprint(&self, spec: &str) -> Option<Result<String, String>> {
        Some(Cell::parse(spec)?.and_then(|cell| Ok(self.tool(&cell)?.version().to_string())))
    }

    /// What a kernel breaks, in each cell asked for.
    pub(super) fn item(
        &self,
        source: &Source,
        specs: &[String],
        models: Models<'_>,
        report: &mut ItemReport,
        cancel: &Cancel,
    ) -> Vec<Claim> {
        let default = [CAPABILITY.to_owned()];
        let mut claims = Vec::new();
        for spec in if specs.is_empty() { &default[..] } else { specs } {
            let found = Cell::parse(spec)
                .unwrap_or_else(|| Err(format!("`{spec}` is no compiler")))
                .and_then(|cell| Ok((self.tool(&cell)?, cell)));
            let (tool, cell) = match found {
                Ok(found) => found,
                Err(why) => {
                    super::abstain(report, why);
                    continue;
                }
            };
            let (draw, ptx) = match self.compiled(source, tool, &cell) {
                Ok(compiled) => compiled,
                Err(why) => {
                    super::abstain(report, format!("rejected: {why}"));
                    continue;
                }
            };
            cancel.tick();
            report.program = *blake3::hash(text::print(&draw.module).as_bytes()).as_bytes();
            let name = cell.spec(tool);
            match examine(&draw, ptx, models) {
                Err(why) => super::abstain(report, format!("compiler: {why}")),
                Ok(found) => {
                    report.engines.push(row(&name, &found.verdict));
                    claims.extend(claim(&found, &name, models));
                }
            }
            cancel.tick();
        }
        claims
    }

    fn compiled(&self, source: &Source, tool: &Tileiras, cell: &Cell) -> Result<(TileDraw, Ptx), String> {
        match source {
            Source::Generated { seed, index, .. } => Ok(self.batches.item(tool, cell, *seed, *index)),
            Source::Text(text) => {
                let (module, launch) = read(text)?;
                let ptx = batches::compile(tool, cell, module.functions.first().cloned().into_iter()).pop();
                let ptx = ptx.ok_or("there is no kernel")?;
                Ok((TileDraw { module, launch, safe: false }, ptx))
            }
        }
    }

    /// The claim made again from its text, if the rule is still broken in the same way. What the compiler refuses, or nobody
    /// can judge, says nothing about the rule.
    pub(super) fn again(&self, claim: &Claim, models: Models<'_>) -> Result<Option<Claim>, String> {
        let kernel = read(&claim.program)?;
        self.those(claim, vec![kernel], models)?.pop().ok_or("there is no kernel")?
    }

    /// The same for several kernels, compiled together.
    fn those(
        &self,
        claim: &Claim,
        kernels: Vec<(Module, TileLaunch)>,
        models: Models<'_>,
    ) -> Result<Vec<Result<Option<Claim>, String>>, String> {
        let spec = side(claim)?;
        let cell = Cell::parse(&spec).unwrap_or_else(|| Err(format!("`{spec}` is no compiler")))?;
        let tool = self.tool(&cell)?;
        let texts =
            batches::compile(tool, &cell, kernels.iter().filter_map(|k| k.0.functions.first().cloned()));
        let again = |((module, launch), ptx): ((Module, TileLaunch), Ptx)| {
            let draw = TileDraw { module, launch, safe: false };
            let found = examine(&draw, ptx, models)?;
            Ok(self::claim(&found, &cell.spec(tool), models).filter(|new| same(new, claim)))
        };
        Ok(kernels.into_iter().zip(texts).map(again).collect())
    }

    /// Smaller kernels as long as the rule stays broken in the same way.
    pub(super) fn minimise(
        &self,
        claim: &Claim,
        models: Models<'_>,
        budget: Budget,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Claim),
    ) -> Reduced {
        let mut best = claim.clone();
        let mut tried = 0;
        while let Ok(kernel) = read(&best.program) {
            let mut smaller = tile_smaller(&kernel);
            best = loop {
                let left = usize::try_from(budget.candidates.saturating_sub(tried)).unwrap_or(usize::MAX);
                let some: Vec<_> = smaller.by_ref().take(TOGETHER.min(left)).collect();
                if some.is_empty() || cancel.is_cancelled() {
                    let normal = left > 0 && !cancel.is_cancelled();
                    return Reduced { claim: best, tried, normal };
                }
                tried += some.len() as u64;
                cancel.tick();
                let Ok(all) = self.those(claim, some, models) else { continue };
                if let Some(found) = all.into_iter().flatten().flatten().next() {
                    break found;
                }
            };
            progress(&best);
        }
        Reduced { claim: best, tried, normal: false }
    }
}

/// Whether an item is a kernel of Tile IR.
pub(super) fn takes(source: &Source) -> bool {
    match source {
        Source::Generated { profile, .. } => profile == Profile::TileIr.name(),
        Source::Text(text) => TileLaunch::noted(text).is_some(),
    }
}

fn examine(draw: &TileDraw, ptx: Ptx, models: Models<'_>) -> Result<Found, String> {
    let ptx = ptx?;
    let pair = judge::pair(&draw.module, &draw.launch, &ptx)?;
    let verdict = judge::judge(&pair, draw.safe, models)?;
    Ok(Found { module: draw.module.clone(), launch: draw.launch.clone(), ptx, verdict })
}

/// Whether the same rule is broken in the same way.
fn same(new: &Claim, old: &Claim) -> bool {
    let way = |c: &Claim| (c.direction.clone(), c.verdict.clone(), c.axioms.clone());
    way(new) == way(old)
}

/// The row of the item's report.
fn row(name: &str, verdict: &Verdict) -> EngineReport {
    let words = match &verdict.judged {
        // Blocks that do not communicate can break little.
        Judged::Agrees if !verdict.talks => "clean, silent",
        judged => judged.word(),
    };
    EngineReport {
        engine: name.into(),
        verdict: words.into(),
        outcomes: *blake3::hash(format!("{:?}", verdict.judged).as_bytes()).as_bytes(),
        executions: verdict.executions,
        ..EngineReport::default()
    }
}

/// The compiler's side of a claim.
fn side(claim: &Claim) -> Result<String, String> {
    let side = claim.models.iter().find(|s| s.name == CAPABILITY).ok_or("the claim names no compiler")?;
    Ok(super::spec_of(side))
}

fn claim(found: &Found, spec: &str, models: Models<'_>) -> Option<Claim> {
    let (direction, verdict, outcome, source) = match &found.verdict.judged {
        Judged::Racy | Judged::Agrees => return None,
        Judged::Contested(outcome, by) => {
            ("difference", format!("contested({})", by.join(", ")), Some(outcome), judge::DEFAULT)
        }
        Judged::Forbidden(outcome) => ("subset", "discrepancy".into(), Some(outcome), judge::WEAKEST),
        Judged::Progress(outcome) => ("progress", "progress".into(), outcome.as_ref(), judge::WEAKEST),
    };
    let sides = [source.to_owned(), spec.to_owned(), judge::PTX.to_owned()];
    Some(Claim {
        oracle: COMPILER.into(),
        direction: direction.into(),
        models: sides.iter().map(|s| super::side(s)).collect(),
        verdict,
        program: written(found, spec),
        witness: outcome.and_then(|o| witness(&found.verdict, o, models)).unwrap_or_default(),
        axioms: found.verdict.cause.iter().map(|c| vec![(*c).to_owned()]).collect(),
    })
}

/// An execution of the PTX that ends in the outcome, and the memory behind the parameters in words.
fn witness(verdict: &Verdict, outcome: &Outcome, models: Models<'_>) -> Option<String> {
    let model = models(judge::PTX).ok()?;
    let graph = answer::witness(&verdict.pair.compiled, judge::PTX, &model, outcome)?;
    let mut graph: serde_json::Value = serde_json::from_str(&graph).ok()?;
    graph["outcome"] = judge::shown(&verdict.pair, &outcome.memory).into();
    Some(graph.to_string())
}

/// Kernel, launch and PTX in one text that reads as the kernel.
fn written(found: &Found, spec: &str) -> String {
    let mut out = found.launch.note() + text::print(&found.module).trim_end();
    out.push_str(&format!("\n// {spec} makes of it:\n"));
    for line in found.ptx.lines().filter(|l| !l.trim().is_empty()) {
        out.push_str("// ");
        out.push_str(&line.replace('\t', "  "));
        out.push('\n');
    }
    out
}

/// The kernel of [`written`].
fn read(program: &str) -> Result<(Module, TileLaunch), String> {
    let launch = TileLaunch::noted(program).ok_or("the text does not say `// tile blocks: N`")?;
    Ok((text::parse(program).map_err(|e| e.to_string())?, launch))
}
