//! The compiler oracle: the PTX that NVIDIA's compiler makes of a Tile IR kernel does nothing that the kernel may not do.
//!
//! Kernels are drawn, compiled many at a time, and judged one by one (see [`judge`]). A claim holds the kernel with its
//! launch in front and the PTX behind it (see [`super::kernel`]); to verify a claim the kernel is compiled again. Claims
//! have three directions:
//!
//! - `subset`: the weakest sensible reading of the model forbids a final state of the PTX;
//! - `progress`: one side never ends where the other does;
//! - `property`: the compiler dies of the kernel;
//! - `difference`: only the default reading forbids the final state, so it is contested by switches and no bug.

mod cause;
mod cell;
mod compiled;
mod judge;
mod machine;

pub use cell::CellError;
pub use machine::{Observations, observe};

use super::about::{About, Takes};
use super::abstention::Abstention;
use super::case::{Case, Context};
use super::evidence::{Evidence, Unit};
use super::kernel::{Kernel, read, written};
use super::models::Models;
use super::refine::{self, Judged};
use super::tools::{NoCompiler, TILEIRAS};
use super::{CRASH, Oracle, answer, same};
use crate::job::{Budget, Claim, EngineReport, Reduced, Side, Source, Verification};
use cell::Cell;
use compiled::{Batches, Ptx};
use judge::Verdict;
use moire_execution::leaf::Outcome;
use moire_generate::tile::TileDraw;
use moire_program::canon::spell::hash;
use moire_tile_ir::Module;
use moire_tile_ir::bytecode::{Bytecode, write};
use moire_tile_ir::run::TileLaunch;
use moire_tile_ir::text;
use moire_toolchain::tile::Tileiras;
use moire_toolchain::tile::batch::Unanswered;
use std::sync::OnceLock;

/// Facts about the oracle.
pub const COMPILER: About = About {
    name: "compiler",
    takes: Takes::Kernels,
    by_default: true,
    under_models: false,
    tool: Some(TILEIRAS),
};

/// The compilers of this machine, looked for when first asked for, and their latest answers.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    found: OnceLock<Result<Vec<Tileiras>, NoCompiler>>,
    batches: Batches,
}

/// A judged kernel and its PTX.
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
    fn tools(&self) -> Result<&[Tileiras], NoCompiler> {
        let found = self.found.get_or_init(|| match Tileiras::all(None) {
            all if all.is_empty() => Err(NoCompiler::Missing),
            all => Ok(all),
        });
        found.as_deref().map_err(Clone::clone)
    }

    fn tool(&self, cell: &Cell) -> Result<&Tileiras, NoCompiler> {
        let none = || NoCompiler::Release(cell.release.as_deref().unwrap_or("any release").to_owned());
        self.tools()?.iter().find(|t| cell.takes(t)).ok_or_else(none)
    }

    /// What a kernel breaks when it is compiled for one cell.
    fn cell(&self, spec: &str, case: &mut Case<'_>) -> Result<Option<Claim>, Abstention> {
        let cell = Cell::of(spec)?;
        let tool = self.tool(&cell)?;
        let beat = || case.context.cancel.tick();
        let compiled = self.compiled(&case.item.source, (tool, &cell), &beat);
        let (draw, ptx) = compiled.map_err(|why| why.at("rejected"))?;
        if let Some(claim) = crashed(&draw, &ptx, &cell.spec(tool)) {
            return Ok(Some(claim));
        }
        case.context.cancel.tick();
        case.report.program = *blake3::hash(text::print(&draw.module).as_bytes()).as_bytes();
        let name = cell.spec(tool);
        let found = examine(&draw, ptx, case.context.models).map_err(|why| why.at(COMPILER.name));
        let claimed = found.map(|found| {
            case.report.engines.push(row(&name, &found.verdict));
            claim(&found, &name, case.context.models)
        });
        case.context.cancel.tick();
        claimed
    }

    /// See [`Oracle::evidence`].
    fn shown(&self, claim: &Claim, context: Context<'_>) -> Result<Evidence, Abstention> {
        let ((module, launch), cell) = (read(&claim.program)?, named_cell(claim)?);
        let kernel = module.functions.first().cloned().ok_or(NO_KERNEL)?;
        let beat = || context.cancel.tick();
        let compiled =
            |tool| compiled::compile(tool, &cell, [kernel].into_iter(), &beat).pop().ok_or(NO_KERNEL);
        let ptx = self.tool(&cell).map_err(Abstention::from).and_then(|tool| Ok(compiled(tool)??));
        let mut evidence = Evidence { model: judge::WEAKEST.to_owned(), ..Evidence::default() };
        if let Ok(ptx) = &ptx {
            let draw = TileDraw { module: module.clone(), launch: launch.clone(), safe: false };
            let verdict = examine(&draw, Ok(ptx.clone()), context.models)?.verdict;
            let line = |n: u32| claim.program.lines().nth((n as usize).checked_sub(1)?).map(str::to_owned);
            if let Some(end) = verdict.judged.outcome() {
                evidence.end = Some(judge::shown(&verdict.pair, &end.memory));
                evidence.forbidden = judge::forbidden(&verdict.pair, &end.memory, context.models, &line)?;
            }
        }
        evidence.units.push(self.unit(&cell, &module, ptx, claim));
        Ok(Evidence { litmus: launch.note(), ..evidence })
    }

    fn unit(&self, cell: &Cell, module: &Module, ptx: Result<String, Abstention>, claim: &Claim) -> Unit {
        let tool = self.tool(cell).ok();
        let version = tool.map_or(Bytecode::V13_5, Tileiras::bytecode);
        Unit {
            compiler: "NVIDIA tileiras",
            version: tool.map(Tileiras::version),
            release: cell.release.clone().unwrap_or_default(),
            command: [vec!["tileiras".to_owned()], Tileiras::arguments(&cell.target, cell.level)]
                .concat()
                .join(" "),
            language: "mlir",
            text: text::print(module),
            bytes: write(module, version).ok().map(|bytes| ("module.tileirbc", bytes)),
            names: NAMES.to_owned(),
            ptx: ptx.as_ref().ok().cloned().or_else(|| then(&claim.program)),
            ..Unit::default()
        }
        .without(ptx.as_ref().err())
    }

    fn compiled(
        &self,
        source: &Source,
        (tool, cell): (&Tileiras, &Cell),
        beat: &dyn Fn(),
    ) -> Result<(TileDraw, Ptx), Abstention> {
        match source {
            Source::Generated { seed, index, .. } => {
                Ok(compiled::item(&self.batches, tool, cell, (*seed, *index), beat))
            }
            Source::Text(text) => {
                let (module, launch) = read(text)?;
                let kernel = module.functions.first().cloned().into_iter();
                let ptx = compiled::compile(tool, cell, kernel, beat).pop();
                Ok((TileDraw { module, launch, safe: false }, ptx.ok_or(NO_KERNEL)?))
            }
        }
    }
}

/// What the names in the PTX stand for.
const NAMES: &str = "`argN` is the memory behind parameter number N, with an offset in bytes behind it.";

/// The cell that a claim names.
fn named_cell(claim: &Claim) -> Result<Cell, Abstention> {
    let side = claim.models.iter().find(|s| s.name == TILEIRAS.capability);
    let side = side.ok_or(Abstention::Unusable("the claim names no compiler"))?;
    Ok(Cell::of(&side.spec())?)
}

/// The PTX in the text of a claim: the comments behind its kernel.
fn then(program: &str) -> Option<String> {
    let (_, ptx) = program.split_once(" makes of it:\n")?;
    Some(ptx.lines().map(|l| format!("{}\n", l.strip_prefix("// ").unwrap_or(l))).collect())
}

/// A text without a kernel.
const NO_KERNEL: Abstention = Abstention::Unusable("there is no kernel");

impl Oracle for Compiler {
    fn about(&self) -> &'static About {
        &COMPILER
    }

    /// Judges the kernel in each cell of the plan.
    fn run(&self, case: &mut Case<'_>) -> Vec<Claim> {
        let default = [TILEIRAS.capability.to_owned()];
        let specs = &case.item.plan.models;
        let mut claims = Vec::new();
        for spec in if specs.is_empty() { &default[..] } else { specs } {
            match self.cell(spec, case) {
                Ok(claim) => claims.extend(claim),
                Err(why) => case.abstain(&why),
            }
        }
        claims
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

    fn evidence(&self, claim: &Claim, context: Context<'_>) -> Option<Result<Evidence, Abstention>> {
        Some(self.shown(claim, context))
    }

    fn is_here(&self) -> bool {
        self.tools().is_ok()
    }

    fn tool_version(&self, spec: &str) -> Option<Result<String, Abstention>> {
        let version = |cell: Cell| Ok(self.tool(&cell)?.version().to_string());
        Some(Cell::parse(spec)?.map_err(Abstention::from).and_then(version))
    }
}

impl refine::Sources for Compiler {
    type Source = Kernel;
    const TOGETHER: usize = 32;

    /// A kernel that the compiler refuses, or that cannot be judged, says nothing about the rule.
    fn all_again<'a>(
        &'a self,
        claim: &'a Claim,
        kernels: Vec<Kernel>,
        context: Context<'a>,
    ) -> Result<refine::Again<'a>, Abstention> {
        let cell = named_cell(claim)?;
        let tool = self.tool(&cell)?;
        let beat = || context.cancel.tick();
        let texts = compiled::compile(
            tool,
            &cell,
            kernels.iter().filter_map(|k| k.0.functions.first().cloned()),
            &beat,
        );
        let spec = cell.spec(tool);
        let again = move |((module, launch), ptx): (Kernel, Ptx)| {
            let draw = TileDraw { module, launch, safe: false };
            if claim.verdict == CRASH && (ptx.is_ok() || crashed(&draw, &ptx, "").is_some()) {
                return Ok(crashed(&draw, &ptx, &spec).filter(|new| same(new, claim)));
            }
            let found = examine(&draw, ptx, context.models)?;
            Ok(self::claim(&found, &spec, context.models).filter(|new| same(new, claim)))
        };
        Ok(Box::new(kernels.into_iter().zip(texts).map(again)))
    }
}

/// The claim that the compiler dies of a kernel.
fn crashed(draw: &TileDraw, ptx: &Ptx, spec: &str) -> Option<Claim> {
    let Err(Unanswered::Compiler(why)) = ptx else { return None };
    let text = draw.launch.note() + &text::print(&draw.module);
    Some(super::crash(COMPILER.name, spec, text, &why.death()?))
}

fn examine(draw: &TileDraw, ptx: Ptx, models: &Models) -> Result<Found, Abstention> {
    let ptx = ptx?;
    let pair = judge::pair(&draw.module, &draw.launch, &ptx)?;
    let verdict = judge::judge(&pair, draw.safe, models)?;
    Ok(Found { module: draw.module.clone(), launch: draw.launch.clone(), ptx, verdict })
}

/// The row of the item's report.
fn row(name: &str, verdict: &Verdict) -> EngineReport {
    let words = match &verdict.judged {
        // Little can go wrong between blocks that do not communicate.
        Judged::Agrees(_) if !verdict.talks => "clean, silent",
        judged => judged.word(),
    };
    EngineReport {
        engine: name.into(),
        verdict: words.into(),
        outcomes: hash(&verdict.judged),
        executions: verdict.executions,
        ..EngineReport::default()
    }
}

fn claim(found: &Found, spec: &str, models: &Models) -> Option<Claim> {
    let judged = &found.verdict.judged;
    let direction = judged.direction()?;
    let (verdict, source) = match judged {
        Judged::Contested(_, by) => (format!("contested({})", by.join(", ")), judge::DEFAULT),
        judged => (judged.word().to_owned(), judge::WEAKEST),
    };
    let sides = [source.to_owned(), spec.to_owned(), judge::PTX.to_owned()];
    Some(Claim {
        oracle: COMPILER.name.into(),
        direction,
        models: sides.iter().map(|s| Side::of(s)).collect(),
        verdict,
        program: written(&found.module, &found.launch, spec, &found.ptx),
        witness: judged.outcome().and_then(|o| witness(&found.verdict, o, models)).unwrap_or_default(),
        axioms: found.verdict.cause.iter().map(|c| vec![(*c).to_owned()]).collect(),
    })
}

/// An execution of the PTX that ends in the outcome, and the memory behind the parameters in words.
fn witness(verdict: &Verdict, outcome: &Outcome, models: &Models) -> Option<String> {
    let model = models.get(judge::PTX).ok()?;
    let graph = answer::witness(&verdict.pair.compiled, judge::PTX, &model, outcome)?;
    let mut graph: serde_json::Value = serde_json::from_str(&graph).ok()?;
    graph["outcome"] = judge::shown(&verdict.pair, &outcome.memory).into();
    Some(graph.to_string())
}
