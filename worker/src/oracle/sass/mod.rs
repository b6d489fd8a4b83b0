//! The machine code oracle: the memory order that PTX asks for is in the machine code that `ptxas` makes of it.
//!
//! Each thread of a program becomes a kernel of its own (`moire_kernel::emit::kernels`), which the optimising assembler
//! translates and the disassembler lists. Both texts are followed along their paths and compared step by step; what may differ
//! and why is the header of `moire_toolchain::order`. What is lost, weakened, moved or added is claimed, and the claim names
//! the step and the class of its instruction: one loss has one name, whatever the program. A thread with an instruction that
//! is not read is abstained from by its name.
//!
//! An architecture and a release of the assembler are drawn for each batch of programs, because a start of the tools takes
//! longer than a program. Answers depend on the program alone, so the grouping has no effect on them.
//!
//! In the machine code of a share of the programs a loss is planted (`moire_toolchain::order::Planted`), and the report says
//! whether it is noticed.

pub(super) mod cell;

use super::about::{About, Takes};
use super::abstention::Abstention;
use super::batches::Batches;
use super::case::{Case, Context};
use super::evidence::Evidence;
use super::litmus::{Broken, Rule};
use super::tools::SASS_TOOLS;
use crate::direction::Direction;
use crate::job::{Claim, EngineReport, Side, Source};
use cell::{Cell, Judged, TARGETS, Text, Tools, due, is_machine};
use moire_generate::{Profile, Stream};
use moire_kernel::emit;
use moire_program::canon::spell::hash;
use moire_program::ir::Program;
use moire_program::text::{Format, Severity, parse, print};
use moire_program::validate::{targets, validate};
use moire_toolchain::order::Planted;
use moire_toolchain::{Nvdisasm, Ptxas, Version};
use std::sync::{Arc, OnceLock};

/// Facts about the oracle.
pub const SASS: About = About {
    name: "sass",
    takes: Takes::Programs,
    by_default: false,
    under_models: false,
    tool: Some(SASS_TOOLS),
};
/// The names of the losses that are planted in machine code.
pub const PLANTED_IN_MACHINE_CODE: [&str; Planted::ALL.len()] =
    [Planted::ALL[0].name(), Planted::ALL[1].name(), Planted::ALL[2].name()];
/// Programs of one module.
const SIZE: usize = 32;

/// The tools of this machine, looked for when first asked for, and their latest answers.
#[derive(Debug, Default)]
pub(super) struct MachineCode {
    found: OnceLock<Option<Tools>>,
    batches: Batches<(String, Version), Judged>,
}

/// Judges each program. `planted`: the place in a stream of the first of some neighbours in which losses are planted.
fn judged(cell: Cell<'_>, programs: &[&Program], planted: Option<u64>) -> Vec<Judged> {
    let of = |(n, program): (u64, &&Program)| {
        let planted = planted.and_then(|first| due(first.saturating_add(n)));
        Ok(Text { kernels: text(cell, program, n)?, planted })
    };
    let texts: Vec<Result<Text, Judged>> = (0..).zip(programs).map(of).collect();
    let fit: Vec<&Text> = texts.iter().filter_map(|text| text.as_ref().ok()).collect();
    let mut made = cell.judged(&emit::header(&cell.newest(), cell.target), &fit).into_iter();
    let mut next = || made.next().unwrap_or_else(Judged::none);
    texts.into_iter().map(|text| text.map_or_else(|why| why, |_| next())).collect()
}

/// The kernels of a program, of which number `n` is in their names.
fn text(cell: Cell<'_>, program: &Program, n: u64) -> Result<String, Judged> {
    let without = |why: String| Err(Judged::Without(why));
    if validate(program).iter().any(|d| d.severity == Severity::Error) {
        return without("a program that the assembler refuses".to_owned());
    }
    if !targets(program).contains(&cell.target) {
        return without(format!("not for {}", cell.target.name()));
    }
    match emit::kernels(program, &format!("p{n}_")) {
        Ok(module) if module.left_out > 0 => without("PTX has no word for an instruction".to_owned()),
        Ok(module) => Ok(module.text),
        Err(why) => without(why.reason().to_owned()),
    }
}

fn one(cell: Cell<'_>, program: &Program) -> Judged {
    judged(cell, &[program], None).pop().unwrap_or_else(Judged::none)
}

impl MachineCode {
    /// Tools of the caller's choice.
    pub(super) fn of(assemblers: Vec<Ptxas>, nvdisasm: Nvdisasm) -> Self {
        Self { found: OnceLock::from(Some(Tools::of(assemblers, nvdisasm))), ..Self::default() }
    }

    fn tools(&self) -> Result<&Tools, Abstention> {
        let found = self.found.get_or_init(Tools::find);
        found.as_ref().ok_or_else(|| Abstention::NoDisassembler(SASS_TOOLS.how.to_owned()))
    }

    /// The cell of a side; `None` for a side of something else.
    fn cell(&self, spec: &str) -> Option<Result<Cell<'_>, Abstention>> {
        let side = Side::of(spec);
        is_machine(&side).then(|| self.tools()?.cell(&side))
    }

    /// The cell of a batch: a turn through the architectures and the releases.
    fn drawn(&self, seed: u64, index: u64) -> Result<Cell<'_>, Abstention> {
        let cells: Vec<Cell<'_>> = self.tools()?.cells().collect();
        let turn = usize::try_from(seed.wrapping_add(index / SIZE as u64) % 5040).unwrap_or(0);
        Ok(cells[turn % cells.len()])
    }

    /// What is said of an item, and by whom. A program that lacks the architecture of its batch is judged for another.
    fn said(&self, case: &Case<'_>, program: &Program) -> Result<(String, Judged), Abstention> {
        if let Some(cell) = case.item.plan.models.iter().find_map(|spec| self.cell(spec)) {
            return cell.map(|cell| (cell.spec(), one(cell, program)));
        }
        let (seed, profile, index) = match &case.item.source {
            Source::Generated { seed, profile, index } => (*seed, profile.parse::<Profile>().ok(), *index),
            Source::Text(_) => (0, None, case.item.index),
        };
        let cell = self.drawn(seed, index)?;
        let has = targets(program);
        let other = TARGETS.into_iter().find(|t| has.contains(t)).filter(|_| !has.contains(&cell.target));
        let cell = Cell { target: other.unwrap_or(cell.target), ..cell };
        let Some(profile) = profile.filter(|_| other.is_none()) else {
            return Ok((cell.spec(), one(cell, program)));
        };
        let setting = (format!("{} {profile}", cell.spec()), cell.ptxas.version());
        let judged = self.batches.item(SIZE, &setting, (seed, index), |indices| {
            let (stream, first) = (Stream::new(seed, profile), *indices.start());
            let programs: Vec<Program> = indices.map(|i| stream.item(i)).collect();
            case.context.cancel.tick();
            judged(cell, &programs.iter().collect::<Vec<_>>(), Some(first))
        });
        Ok((cell.spec(), judged))
    }

    /// See [`Rule::shown`]: the PTX and its machine code.
    fn evidence(&self, claim: &Claim) -> Result<Evidence, Abstention> {
        let program = parse(&claim.program, Format::Native)?;
        let spec = claim.specs().into_iter().next().ok_or(Abstention::FORM)?;
        let cell = self.cell(&spec).ok_or(Abstention::FORM)??;
        let module = emit::kernels(&program, "").map_err(Abstention::Refused)?;
        let unit = cell.unit(emit::header(&cell.newest(), cell.target) + &module.text);
        Ok(Evidence { litmus: print(&program), units: vec![unit], ..Evidence::default() })
    }
}

/// The broken rules in an answer.
fn broken(spec: &str, judged: &Judged) -> Vec<Broken> {
    let each = |causes| Broken::of(Direction::Property, vec![spec.to_owned()], causes);
    judged.causes().into_iter().map(each).collect()
}

impl Rule for MachineCode {
    const ABOUT: &'static About = &SASS;

    fn item(&self, case: &mut Case<'_>, program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)> {
        let (spec, judged) = match self.said(case, program) {
            Ok(said) => said,
            Err(why) => {
                case.abstain(&why);
                return Vec::new();
            }
        };
        tell(case, &SASS, spec.clone(), &judged);
        broken(&spec, &judged).into_iter().map(|broken| (Arc::clone(program), broken)).collect()
    }

    fn again(
        &self,
        claim: &Claim,
        program: &Program,
        _context: Context<'_>,
    ) -> Result<Option<Broken>, Abstention> {
        let spec = claim.specs().into_iter().next().ok_or(Abstention::FORM)?;
        let cell = self.cell(&spec).ok_or(Abstention::FORM)??;
        match one(cell, program) {
            Judged::Without(why) => Err(Abstention::Undecided(why).at(SASS.name)),
            judged => Ok(broken(&spec, &judged).into_iter().find(|b| b.causes() == claim.axioms)),
        }
    }

    fn shown(&self, claim: &Claim) -> Option<Result<Evidence, Abstention>> {
        Some(self.evidence(claim))
    }

    fn has_tool(&self) -> bool {
        self.tools().is_ok()
    }

    fn version_of(&self, spec: &str) -> Option<Result<String, Abstention>> {
        self.cell(spec).map(|cell| cell.map(|cell| cell.ptxas.version().to_string()))
    }
}

/// Puts an answer into the report of an item: its row, what is abstained from, and the planted loss.
pub(super) fn tell(case: &mut Case<'_>, about: &'static About, engine: String, judged: &Judged) {
    for why in judged.abstained() {
        case.abstain(&Abstention::Undecided(why).at(about.name));
    }
    if case.item.plan.canaries {
        case.report.canaries.extend(judged.canary());
    }
    if let Some(verdict) = judged.verdict() {
        case.report.engines.push(EngineReport {
            engine,
            verdict: verdict.into(),
            outcomes: hash(&judged.causes()),
            ..EngineReport::default()
        });
    }
}
