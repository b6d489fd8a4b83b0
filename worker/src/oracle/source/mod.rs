//! The oracles of source programs: the PTX that compilers make of a program does nothing that the program may not do.
//!
//! A program is drawn (`moire_source`), each of its threads is compiled as a kernel, many programs at a time, and the
//! threads are put together again and judged (see [`judge`]). `llvm`, `nvcc`, `libnvvm` and `triton` compile all threads with one compiler, in
//! each release that is here. `mixing` compiles the first thread with one compiler and the others with another, and claims
//! only what neither does alone: the compilers implement one another's orders differently.
//!
//! A claim holds the program and, as a comment, the PTX of its threads. To verify a claim the program is compiled again.
//! Directions: `subset`, a final state that the program does not have; `property`, a race of the PTX, where the program
//! has none, or a compiler that dies of the program. Forms of which a compiler dies are not left in drawn programs; they
//! are claimed alone.

mod assembled;
mod blame;
mod cell;
pub mod certify;
mod compiled;
mod judge;
mod surplus;
mod turns;

pub use assembled::ASSEMBLED_SOURCES;
pub(super) use assembled::Assembled;
pub use cell::SourceCellError;

use super::about::{About, Takes};
use super::abstention::Abstention;
use super::case::{Case, Context};
use super::evidence::{Evidence, Unit};
use super::models::Models;
use super::tools::{LIBNVVM, LLVM, MIXING, NVCC, TRITON};
use super::{CRASH, Oracle, answer, refine, same};
use crate::direction::Direction;
use crate::job::{Budget, Claim, EngineReport, Item, Reduced, Side, Source as Origin, Verification};
use cell::Cell;
use compiled::{Answers, Called};
use judge::{Desk, Verdict};
use moire_program::canon::spell::hash;
use moire_source::Source;
use moire_source::canon;
use moire_source::reduce::smaller;
use moire_source::text::{parse, print};
use moire_toolchain::source::{Compiler, Kind};
use std::sync::{Arc, OnceLock};
use turns::Turn;

/// Facts about the oracle of `llc`.
pub const LLVM_SOURCES: About =
    About { name: "llvm", takes: Takes::Sources, by_default: true, under_models: false, tool: Some(LLVM) };
/// Facts about the oracle of `nvcc`.
pub const NVCC_SOURCES: About =
    About { name: "nvcc", takes: Takes::Sources, by_default: true, under_models: false, tool: Some(NVCC) };
/// Facts about the oracle of libNVVM.
pub const LIBNVVM_SOURCES: About = About {
    name: "libnvvm",
    takes: Takes::Sources,
    by_default: true,
    under_models: false,
    tool: Some(LIBNVVM),
};
/// Facts about the oracle of Triton.
pub const TRITON_SOURCES: About = About {
    name: "triton",
    takes: Takes::Sources,
    by_default: true,
    under_models: false,
    tool: Some(TRITON),
};
/// Facts about the oracle of mixtures.
pub const MIXED_SOURCES: About = About {
    name: "mixing",
    takes: Takes::Sources,
    by_default: true,
    under_models: false,
    tool: Some(MIXING),
};

/// One of the oracles, with the compilers that it looked for when first asked, and their latest answers.
#[derive(Debug)]
pub(super) struct Sources {
    about: &'static About,
    kinds: &'static [Kind],
    found: OnceLock<Vec<Compiler>>,
    answers: Arc<Answers>,
}

/// The oracles of source programs. What compilers refuse is known to all of them.
pub(super) fn all() -> impl Iterator<Item = Sources> {
    of(&Arc::new(Answers::kept())).into_iter()
}

/// The same as oracles of a worker, with that of their machine code.
pub(super) fn oracles() -> Vec<Box<dyn Oracle>> {
    let answers = Arc::new(Answers::kept());
    let mut all: Vec<Box<dyn Oracle>> =
        of(&answers).into_iter().map(|oracle| Box::new(oracle) as Box<dyn Oracle>).collect();
    all.push(Box::new(Assembled::of(Sources::new(&ASSEMBLED_SOURCES, &Kind::ALL, &answers))));
    all
}

/// The oracle of machine code with these compilers.
pub(super) fn assembled(compilers: &[Compiler]) -> Assembled {
    Assembled::of(Sources::new(&ASSEMBLED_SOURCES, &Kind::ALL, &Arc::default()).of(compilers))
}

fn of(answers: &Arc<Answers>) -> [Sources; 5] {
    let all: [(_, &[Kind]); 5] = [
        (&LLVM_SOURCES, &[Kind::Llvm]),
        (&NVCC_SOURCES, &[Kind::Nvcc]),
        (&LIBNVVM_SOURCES, &[Kind::Libnvvm]),
        (&TRITON_SOURCES, &[Kind::Triton]),
        // Triton has CTAs of its own shape, and promises less.
        (&MIXED_SOURCES, &[Kind::Llvm, Kind::Nvcc, Kind::Libnvvm]),
    ];
    all.map(|(about, kinds)| Sources::new(about, kinds, answers))
}

/// Whether compilers are called in another way than usual, where they have one ([`Compiler::unusual`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unusual {
    Never,
    Too,
    Only,
}

/// The PTX of the threads of a program.
type Threads = Arc<[String]>;
/// What each cell makes of all threads of a program, or why one of them makes nothing.
type Each = Result<Vec<Threads>, Abstention>;

/// A judged program and its PTX.
struct Found {
    source: Source,
    ptx: Vec<String>,
    verdict: Verdict,
}

impl Sources {
    fn new(about: &'static About, kinds: &'static [Kind], answers: &Arc<Answers>) -> Sources {
        Sources { about, kinds, found: OnceLock::new(), answers: Arc::clone(answers) }
    }

    /// The same oracle with these compilers, of those kinds that it asks.
    pub(super) fn of(self, compilers: &[Compiler]) -> Self {
        let own: Vec<Compiler> =
            compilers.iter().filter(|c| self.kinds.contains(&c.kind())).cloned().collect();
        Self { found: OnceLock::from(own), answers: Arc::default(), ..self }
    }

    /// The compilers, newest first by kind.
    fn tools(&self) -> &[Compiler] {
        self.found.get_or_init(|| self.kinds.iter().flat_map(|kind| Compiler::all(*kind)).collect())
    }

    fn desk<'a>(&'a self, context: Context<'a>) -> Desk<'a> {
        Desk { models: context.models, found: &self.answers.found }
    }

    fn mixes(&self) -> bool {
        self.kinds.len() > 1
    }

    /// Programs with an optimiser in front and programs without take turns. Pairs of mixtures are too many for that.
    fn turn(&self, index: u64) -> Turn {
        Turn::of(index, if self.mixes() { 1 } else { 2 })
    }

    fn tool(&self, cell: &Cell) -> Result<&Compiler, Abstention> {
        let here = self.tools().iter().find(|t| cell.takes(t));
        here.ok_or_else(|| Abstention::NoSourceCompiler(cell.to_string()))
    }

    /// The cells of a plan that are for this oracle. A plan that names none asks for each release that is here.
    fn cells(&self, plan: &[String], how: Unusual) -> Result<Vec<Cell>, Abstention> {
        let named: Vec<Cell> = plan
            .iter()
            .filter_map(|spec| Cell::parse(spec))
            .collect::<Result<_, _>>()
            .map_err(Abstention::SourceCell)?;
        let own: Vec<Cell> = named.iter().filter(|c| self.kinds.contains(&c.kind)).cloned().collect();
        if plan.is_empty() {
            // A compiler that is always called in one way takes part all the same.
            let plain = self.tools().iter().filter(|t| how != Unusual::Only || Cell::unusual(t).is_none());
            let plain = plain.map(Cell::of);
            let first = self.tools().iter().filter(|_| how != Unusual::Never);
            return Ok(plain.chain(first.filter_map(Cell::unusual)).collect());
        }
        own.into_iter().map(|cell| Ok(cell.settled(self.tool(&cell)?))).collect()
    }

    /// The sides of an item: each cell alone, or one pair of cells, the same for all items of a batch. Every other batch has
    /// an optimiser in front; a text is tried in both ways.
    fn sides(&self, item: &Item) -> Result<Vec<Vec<Cell>>, Abstention> {
        let how = match item.source {
            _ if self.mixes() => Unusual::Never,
            Origin::Text(_) => Unusual::Too,
            Origin::Generated { .. } if self.turn(item.index).own() == 1 => Unusual::Only,
            Origin::Generated { .. } => Unusual::Never,
        };
        let cells = self.cells(&item.plan.models, how)?;
        if !self.mixes() {
            return Ok(cells.into_iter().map(|cell| vec![cell]).collect());
        }
        let pairs: Vec<(usize, usize)> = (0..cells.len())
            .flat_map(|a| (0..cells.len()).filter(move |b| *b != a).map(move |b| (a, b)))
            .collect();
        let Some(count) = u64::try_from(pairs.len()).ok().filter(|n| *n > 0) else { return Ok(Vec::new()) };
        let at = usize::try_from(Turn::of(item.index, count).own()).unwrap_or(0);
        Ok(pairs.get(at).map(|(a, b)| vec![cells[*a].clone(), cells[*b].clone()]).into_iter().collect())
    }

    /// The compilers of cells.
    fn called<'a>(&'a self, cells: &'a [Cell]) -> Result<Vec<Called<'a>>, Abstention> {
        cells.iter().map(|cell| Ok((self.tool(cell)?, cell))).collect()
    }

    /// The PTX of each program.
    fn compiled(
        &self,
        cells: &[Cell],
        sources: &[&Source],
        context: Context<'_>,
    ) -> Result<Vec<Result<Threads, Abstention>>, Abstention> {
        Ok(self.each(cells, sources, context)?.into_iter().map(|each| joined(&each?)).collect())
    }

    /// What each cell makes of each program.
    fn each(
        &self,
        cells: &[Cell],
        sources: &[&Source],
        context: Context<'_>,
    ) -> Result<Vec<Each>, Abstention> {
        let beat = || context.cancel.tick();
        let by = self.called(cells)?;
        let of = |one: &Called<'_>| self.answers.compile(*one, sources, &beat);
        let mut all: Vec<_> = by.iter().map(|one| of(one).into_iter()).collect();
        Ok(sources.iter().map(|_| all.iter_mut().filter_map(Iterator::next).collect()).collect())
    }

    /// What a program breaks in cells.
    fn side(&self, cells: &[Cell], case: &mut Case<'_>) -> Result<Option<Claim>, Abstention> {
        let (source, each, deadly) = self.item(cells, &case.item.source, case.context)?;
        case.context.cancel.tick();
        if let Some(form) = deadly {
            let ptx = self.compiled(cells, &[&form], case.context)?.pop().unwrap_or(Err(NO_COMPILER));
            if let Some(claim) = ptx.err().and_then(|why| self.crashed(cells, &form, &why)) {
                return Ok(Some(claim));
            }
        }
        let each = match each {
            Err(why) => match self.crashed(cells, &source, &why) {
                Some(claim) => return Ok(Some(claim)),
                None => return Err(why.at("rejected")),
            },
            Ok(each) => each,
        };
        let ptx = joined(&each)?;
        case.report.program = *blake3::hash(canon::text(&source).as_bytes()).as_bytes();
        let found =
            judge::judge(&source, &ptx, self.desk(case.context)).map_err(|why| why.at(self.about.name));
        case.context.cancel.tick();
        let found = Found { source, ptx: ptx.to_vec(), verdict: found? };
        if self.mixes()
            && found.verdict.judged.direction().is_some()
            && self.wrong_alone(&found.source, &each, case.context)?
        {
            return Ok(None);
        }
        case.report.engines.push(row(&name(cells), &found.verdict));
        let mut claim = self.claim(&found, cells);
        if let (Some(claim), Origin::Text(_)) = (&mut claim, &case.item.source) {
            claim.witness = witness(&found, case.context.models).unwrap_or_default();
        }
        Ok(claim)
    }

    /// The program of an item, its PTX, and a form of which the compiler died before.
    fn item(
        &self,
        cells: &[Cell],
        origin: &Origin,
        context: Context<'_>,
    ) -> Result<(Source, Each, Option<Source>), Abstention> {
        match origin {
            Origin::Text(text) => {
                let source = parse(text)?;
                let each = self.each(cells, &[&source], context)?.pop().unwrap_or(Err(NO_COMPILER));
                Ok((source, each, None))
            }
            Origin::Generated { seed, index, .. } => {
                let beat = || context.cancel.tick();
                let at = (*seed, *index, self.turn(*index));
                let (source, each, deadly) = self.answers.item(&self.called(cells)?, at, &beat);
                Ok((source, each.into_iter().collect(), deadly))
            }
        }
    }

    /// The claim that the compiler dies of a program. Two compilers do not die together.
    fn crashed(&self, cells: &[Cell], source: &Source, why: &Abstention) -> Option<Claim> {
        let death = why.death().filter(|_| !self.mixes())?;
        Some(super::crash(self.about.name, &cells.first()?.to_string(), print(source), &death))
    }

    /// Whether what one of the cells makes of a program breaks a rule alone.
    fn wrong_alone(
        &self,
        source: &Source,
        each: &[Threads],
        context: Context<'_>,
    ) -> Result<bool, Abstention> {
        for ptx in each {
            if judge::judge(source, ptx, self.desk(context))?.judged.direction().is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// See [`Oracle::evidence`].
    fn shown(&self, claim: &Claim, context: Context<'_>) -> Result<Evidence, Abstention> {
        let (source, cells) = (parse(&claim.program)?, named_cells(claim)?);
        let again = refine::Sources::all_again(self, claim, vec![source.clone()], context);
        let again = again.ok().and_then(|mut all| all.next()?.ok()?).unwrap_or_else(|| claim.clone());
        let witness: Option<serde_json::Value> = serde_json::from_str(&again.witness).ok();
        let end = witness.and_then(|w| Some(w["outcome"].as_str()?.to_owned()));
        let forbidden = end.as_ref().map(|end| judge::forbidden(&source, end, context.models)).transpose()?;
        Ok(Evidence {
            litmus: print(&source),
            units: cells.iter().map(|cell| self.unit(cell, &source, claim)).collect(),
            end,
            forbidden: forbidden.unwrap_or_default(),
            model: judge::SOURCE.to_owned(),
        })
    }

    /// A compiler of a claim, with what it makes of the program now, or made of it then.
    fn unit(&self, cell: &Cell, source: &Source, claim: &Claim) -> Unit {
        let options = cell.named();
        let text = cell.kind.text(&[source], &options);
        let now = self.tool(cell).and_then(|tool| {
            let made = tool.compile(&text, &options);
            made.map_err(|why| Abstention::SourceCompiler { kind: cell.kind.name(), why: Arc::new(why) })
        });
        let (compiler, language) = match cell.kind {
            Kind::Llvm => ("LLVM llc", "llvm"),
            Kind::Nvcc => ("NVIDIA nvcc", "cuda"),
            Kind::Libnvvm => ("NVIDIA libNVVM", "llvm"),
            Kind::Triton => ("Triton", "python"),
        };
        Unit {
            compiler,
            language,
            version: self.tool(cell).ok().map(Compiler::version),
            release: cell.release().to_owned(),
            command: cell.kind.line(&options),
            text,
            names: NAMES.to_owned(),
            ptx: now.as_ref().ok().cloned().or_else(|| then(&claim.program)),
            ..Unit::default()
        }
        .without(now.as_ref().err())
    }

    /// The claim that a rule is broken, without a witness.
    fn claim(&self, found: &Found, cells: &[Cell]) -> Option<Claim> {
        let judged = &found.verdict.judged;
        // By the letter such accesses mean nothing, and every compiler makes updates of bytes of them: a matter of reading.
        // Nor does a compiler lose what the published mapping has not.
        let reading = [blame::MIXED, blame::MODELS].iter().any(|class| found.verdict.class == [*class]);
        let direction = if reading { Direction::Difference } else { judged.direction()? };
        let names = cells.iter().map(ToString::to_string);
        let sides: Vec<String> =
            [judge::SOURCE.to_owned()].into_iter().chain(names).chain([judge::PTX.to_owned()]).collect();
        Some(Claim {
            oracle: self.about.name.into(),
            direction,
            models: sides.iter().map(|s| Side::of(s)).collect(),
            verdict: judged.word().into(),
            program: written(&found.source, cells, &found.ptx),
            witness: String::new(),
            axioms: found.verdict.class.iter().map(|c| vec![c.clone()]).collect(),
        })
    }
}

/// The execution of the PTX that breaks the rule. It takes another exploration, so only claims that are looked at have one.
fn witness(found: &Found, models: &Models) -> Option<String> {
    let model = models.get(judge::PTX).ok()?;
    let (outcome, compiled) = (found.verdict.judged.outcome()?, found.verdict.compiled.as_ref()?);
    let graph = answer::witness(&compiled.program, judge::PTX, &model, outcome)?;
    let mut graph: serde_json::Value = serde_json::from_str(&graph).ok()?;
    graph["outcome"] = compiled.state(&outcome.memory).shown(&found.source).into();
    Some(graph.to_string())
}

/// What the names in a printed program stand for.
const NAMES: &str = "`moire_0_T_` is the thread PT of the litmus test, `xN` its object number N, and `oT_R` is given the register number R of PT.";

/// The cells that a claim names.
fn named_cells(claim: &Claim) -> Result<Vec<Cell>, Abstention> {
    let specs: Vec<String> = claim.models.iter().map(Side::spec).collect();
    let cells = specs.iter().filter_map(|spec| Cell::parse(spec)).collect::<Result<Vec<_>, _>>();
    cells.map_err(Abstention::SourceCell)
}

/// The PTX in the text of a claim: its comments.
fn then(program: &str) -> Option<String> {
    let lines: Vec<&str> = program.lines().skip_while(|l| !l.starts_with("//")).collect();
    let text: String = lines.iter().map(|l| format!("{}\n", l.trim_start_matches('/').trim())).collect();
    (!lines.is_empty()).then_some(text)
}

/// No cell was named.
const NO_COMPILER: Abstention = Abstention::Unusable("the claim names no compiler");

/// Of the first thread what the first cell makes, of the others what the last one does.
fn joined(each: &[Threads]) -> Result<Threads, Abstention> {
    let (Some(first), Some(last)) = (each.first(), each.last()) else { return Err(NO_COMPILER) };
    Ok(first.iter().take(1).chain(last.iter().skip(1)).cloned().collect())
}

fn name(cells: &[Cell]) -> String {
    cells.iter().map(ToString::to_string).collect::<Vec<_>>().join(" with ")
}

/// The text of a claim: the program, and the PTX of its threads as a comment.
fn written(source: &Source, cells: &[Cell], ptx: &[String]) -> String {
    let mut out = print(source);
    for (t, text) in ptx.iter().enumerate() {
        let cell = if t == 0 { cells.first() } else { cells.last() };
        out.push_str(&format!("\n// {} makes of P{t}:\n", cell.map(ToString::to_string).unwrap_or_default()));
        let body = text.split_once('{').map_or(text.as_str(), |(_, body)| body);
        for line in body.lines().map(str::trim).filter(|l| is_instruction(l)) {
            out.push_str(&format!("//   {line}\n"));
        }
    }
    out
}

/// Whether a line of PTX is more than a declaration, a brace, a comment, the load of a parameter or the end.
fn is_instruction(line: &str) -> bool {
    let plain = ["//", "ld.param", "ret;"].iter().any(|word| line.starts_with(word));
    !line.is_empty() && !line.starts_with(['.', '{', '}']) && !plain
}

/// The row of the item's report.
fn row(name: &str, verdict: &Verdict) -> EngineReport {
    EngineReport {
        engine: name.into(),
        verdict: verdict.judged.word().into(),
        outcomes: hash(&verdict.judged),
        executions: verdict.executions,
        ..EngineReport::default()
    }
}

impl Oracle for Sources {
    fn about(&self) -> &'static About {
        self.about
    }

    fn run(&self, case: &mut Case<'_>) -> Vec<Claim> {
        let sides = match self.sides(case.item) {
            Ok(sides) => sides,
            Err(why) => {
                case.abstain(&why);
                return Vec::new();
            }
        };
        if sides.is_empty() {
            case.abstain(&Abstention::NoSourceCompiler(self.about.name.to_owned()));
        }
        let mut claims = Vec::new();
        for cells in sides {
            if case.context.cancel.is_cancelled() {
                break;
            }
            match self.side(&cells, case) {
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
        self.tools().len() > usize::from(self.mixes())
    }

    fn tool_version(&self, spec: &str) -> Option<Result<String, Abstention>> {
        if self.mixes() {
            return None;
        }
        let cell = Cell::parse(spec)?.map_err(Abstention::SourceCell);
        match cell {
            Ok(cell) if !self.kinds.contains(&cell.kind) => None,
            cell => Some(cell.and_then(|cell| Ok(self.tool(&cell)?.version().to_string()))),
        }
    }
}

impl refine::Sources for Sources {
    type Source = Source;
    const TOGETHER: usize = 32;

    fn all_again<'a>(
        &'a self,
        claim: &'a Claim,
        sources: Vec<Source>,
        context: Context<'a>,
    ) -> Result<refine::Again<'a>, Abstention> {
        let cells = named_cells(claim)?;
        // Of many candidates none is looked at.
        let alone = sources.len() == 1;
        let compiled = self.each(&cells, &sources.iter().collect::<Vec<_>>(), context)?;
        let again = move |(source, each): (Source, Each)| {
            if claim.verdict == CRASH {
                return match each {
                    Ok(_) => Ok(None),
                    Err(why) if why.death().is_none() => Err(why),
                    Err(why) => Ok(self.crashed(&cells, &source, &why).filter(|new| same(new, claim))),
                };
            }
            let each = each?;
            let ptx = joined(&each)?;
            let verdict = judge::judge(&source, &ptx, self.desk(context))?;
            let found = Found { source, ptx: ptx.to_vec(), verdict };
            let Some(mut claimed) = self.claim(&found, &cells).filter(|new| same(new, claim)) else {
                return Ok(None);
            };
            if self.mixes() && self.wrong_alone(&found.source, &each, context)? {
                return Ok(None);
            }
            if alone {
                claimed.witness = witness(&found, context.models).unwrap_or_default();
            }
            Ok(Some(claimed))
        };
        Ok(Box::new(sources.into_iter().zip(compiled).map(again)))
    }

    fn canonical(&self, claim: Claim, source: Source, context: Context<'_>) -> Claim {
        let form = canon::canonical(&source);
        let again = self.all_again(&claim, vec![form], context);
        let again = again.ok().and_then(|mut all| all.next()?.ok()?);
        again.unwrap_or(claim)
    }
}

impl refine::Source for Source {
    fn read(text: &str) -> Result<Self, Abstention> {
        Ok(parse(text)?)
    }

    fn smaller(&self) -> Box<dyn Iterator<Item = Self> + '_> {
        Box::new(smaller(self))
    }
}
