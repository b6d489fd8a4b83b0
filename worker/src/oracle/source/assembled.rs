//! The machine code oracle of source programs: the order that the PTX of a compiler asks for is in the machine code that
//! `ptxas` makes of it.
//!
//! A drawn program is compiled as for the other oracles of source programs, by one compiler a batch: compilers take turns.
//! The threads of all programs of the batch become one module, which is assembled and judged as by the oracle `sass`. So a
//! batch is one run of each tool. The oracle has a name of its own, because an oracle takes one kind of items, and a
//! capability of its own, because its workers need a compiler besides.
//!
//! A claim names the compiler and the assembler, and holds the program with, as comments, the PTX and the machine code of
//! its threads. Its class is that of `sass`: the step that machine code lacks. To verify it the program is compiled and
//! assembled again.

use super::compiled::Called;
use super::turns::{SIZE, Turn};
use super::{Cell, NO_COMPILER, Sources, Threads, Unusual, named_cells, written};
use crate::direction::Direction;
use crate::job::{Budget, Claim, Item, Reduced, Side, Source as Origin, Verification};
use crate::oracle::about::{About, Takes};
use crate::oracle::abstention::Abstention;
use crate::oracle::batches::Batches;
use crate::oracle::case::{Case, Context};
use crate::oracle::evidence::Evidence;
use crate::oracle::sass::cell::{Cell as Assembles, Judged, Text, Tools, due, is_machine};
use crate::oracle::sass::tell;
use crate::oracle::tools::{SASS_SOURCES, SASS_TOOLS};
use crate::oracle::{CRASH, Oracle, refine};
use moire_source::text::{parse, print};
use moire_source::{Source, canon};
use std::sync::OnceLock;

/// Facts about the oracle.
pub const ASSEMBLED_SOURCES: About = About {
    name: "sass-source",
    takes: Takes::Sources,
    by_default: false,
    under_models: false,
    tool: Some(SASS_SOURCES),
};

/// The compilers, the tools of machine code, and the latest answers.
#[derive(Debug)]
pub(in crate::oracle) struct Assembled {
    compilers: Sources,
    tools: OnceLock<Option<Tools>>,
    batches: Batches<Setting, Answer>,
}

/// The compiler of a batch, whose turn it is, and the assemblers among which one is drawn.
type Setting = (Turn, Cell, Vec<String>);

/// A program as a compiler takes it, and what is said of it.
type Answer = Result<Said, String>;

#[derive(Clone, Debug)]
struct Said {
    source: Source,
    ptx: Threads,
    /// The cell of the assembler.
    spec: String,
    judged: Judged,
}

impl Assembled {
    /// With these compilers.
    pub(in crate::oracle) fn of(compilers: Sources) -> Assembled {
        Assembled { compilers, tools: OnceLock::new(), batches: Batches::default() }
    }

    /// With tools of the caller's choice.
    pub(in crate::oracle) fn with(self, tools: Tools) -> Assembled {
        Assembled { tools: OnceLock::from(Some(tools)), ..self }
    }

    fn tools(&self) -> Result<&Tools, Abstention> {
        let found = self.tools.get_or_init(Tools::find);
        found.as_ref().ok_or_else(|| Abstention::NoDisassembler(SASS_TOOLS.how.to_owned()))
    }

    /// The compiler of an item: of those that are named, or of all, the one whose turn it is.
    fn drawn(&self, item: &Item) -> Result<(Cell, Turn), Abstention> {
        let named: Vec<String> =
            item.plan.models.iter().filter(|spec| !is_machine(&Side::of(spec))).cloned().collect();
        let cells = self.compilers.cells(&named, Unusual::Too)?;
        let all = u64::try_from(cells.len()).ok().filter(|n| *n > 0);
        let turn = Turn::of(item.index, all.ok_or_else(|| Abstention::NoSourceCompiler("compiler".into()))?);
        let cell = usize::try_from(turn.own()).ok().and_then(|n| cells.get(n));
        Ok((cell.ok_or(NO_COMPILER)?.clone(), turn))
    }

    /// The assemblers and architectures of an item: those that its plan names, or all.
    fn assemblers(&self, plan: &[String]) -> Result<Vec<Assembles<'_>>, Abstention> {
        let tools = self.tools()?;
        let sides: Vec<Side> = plan.iter().map(|spec| Side::of(spec)).filter(is_machine).collect();
        let named: Vec<_> = sides.iter().map(|side| tools.cell(side)).collect::<Result<_, _>>()?;
        Ok(if named.is_empty() { tools.cells().collect() } else { named })
    }

    /// What is said of an item.
    fn said(&self, case: &Case<'_>) -> Result<Said, Abstention> {
        let (cell, turn) = self.drawn(case.item)?;
        let assemblers = self.assemblers(&case.item.plan.models)?;
        let context = case.context;
        let answer = match &case.item.source {
            Origin::Text(text) => {
                let source = parse(text)?;
                let ptx = self.compiled(&cell, &[&source], context)?;
                judged(&assemblers, vec![source], ptx, (0, false)).pop()
            }
            Origin::Generated { seed, index, .. } => {
                let by: Called<'_> = (self.compilers.tool(&cell)?, &cell);
                let beat = || context.cancel.tick();
                let place = (*seed, turn.place(*index));
                let names = assemblers.iter().map(Assembles::spec).collect();
                Some(self.batches.item(SIZE, &(turn, cell.clone(), names), place, |places| {
                    let first = *places.start();
                    let one = |place| {
                        let at = (*seed, turn.index(place), turn);
                        let (source, mut each, _) = self.compilers.answers.item(&[by], at, &beat);
                        (source, each.pop().unwrap_or(Err(NO_COMPILER)))
                    };
                    let (sources, ptx) = places.map(one).unzip();
                    beat();
                    judged(&assemblers, sources, ptx, (seed.wrapping_add(first / SIZE as u64), true))
                }))
            }
        };
        answer.unwrap_or_else(|| Err("no answer".to_owned())).map_err(Abstention::Undecided)
    }

    /// The PTX of each program.
    fn compiled(
        &self,
        cell: &Cell,
        sources: &[&Source],
        context: Context<'_>,
    ) -> Result<Vec<Result<Threads, Abstention>>, Abstention> {
        self.compilers.compiled(std::slice::from_ref(cell), sources, context)
    }

    /// The claims about a program: one for each step that its machine code lacks.
    fn claims(&self, said: &Said, cell: &Cell) -> Vec<Claim> {
        let causes = said.judged.causes();
        let machine = (!causes.is_empty()).then(|| self.machine(said)).flatten();
        let program = written(&said.source, std::slice::from_ref(cell), &said.ptx)
            + &commented(&said.spec, machine.as_deref().unwrap_or_default());
        let one = |checks: Vec<String>| Claim {
            oracle: ASSEMBLED_SOURCES.name.into(),
            direction: Direction::Property,
            models: vec![Side::of(&cell.to_string()), Side::of(&said.spec)],
            verdict: if checks[0] == CRASH { CRASH } else { "discrepancy" }.into(),
            program: program.clone(),
            witness: String::new(),
            axioms: checks.into_iter().map(|check| vec![check]).collect(),
        };
        causes.into_iter().map(one).collect()
    }

    fn machine(&self, said: &Said) -> Option<String> {
        let cell = self.tools().ok()?.cell(&Side::of(&said.spec)).ok()?;
        cell.listing(&(header(&said.ptx) + &kernels(&said.ptx, 0)))
    }

    /// The compiler and the assembler of a claim.
    fn cells(&self, claim: &Claim) -> Result<(Cell, Assembles<'_>), Abstention> {
        let cell = named_cells(claim)?.pop().ok_or(NO_COMPILER)?;
        let side = claim.models.iter().find(|side| is_machine(side)).ok_or(Abstention::FORM)?;
        Ok((cell, self.tools()?.cell(side)?))
    }

    /// See [`Oracle::evidence`]: the mistake is the assembler's, so its text is the PTX.
    fn shown(&self, claim: &Claim, context: Context<'_>) -> Result<Evidence, Abstention> {
        let (cell, assembles) = self.cells(claim)?;
        let source = parse(&claim.program)?;
        let ptx = self.compiled(&cell, &[&source], context)?.pop().unwrap_or(Err(NO_COMPILER))?;
        let unit = assembles.unit(header(&ptx) + &kernels(&ptx, 0));
        Ok(Evidence { litmus: print(&source), units: vec![unit], ..Evidence::default() })
    }
}

/// Judges programs and their PTX in one module. The assembler and the architecture are those whose turn it is, of those that
/// take the PTX; `planted`: losses are planted in some.
fn judged(
    assemblers: &[Assembles<'_>],
    sources: Vec<Source>,
    ptx: Vec<Result<Threads, Abstention>>,
    (turn, planted): (u64, bool),
) -> Vec<Answer> {
    let first = ptx.iter().flatten().next().map(|ptx| header(ptx)).unwrap_or_default();
    let able: Vec<&Assembles<'_>> = assemblers.iter().filter(|cell| takes(cell, &first)).collect();
    let cell = usize::try_from(turn % 5040).ok().and_then(|n| able.get(n % able.len().max(1)));
    let text = |(n, ptx): (u64, &Result<Threads, Abstention>)| {
        let planted = if planted { due(n) } else { None };
        ptx.as_ref().ok().map(|ptx| Text { kernels: kernels(ptx, n), planted })
    };
    let texts: Vec<Text> = (0..).zip(&ptx).filter_map(text).collect();
    let all = cell.map(|cell| cell.judged(&first, &texts.iter().collect::<Vec<_>>()));
    let mut made = all.into_iter().flatten();
    let one = |(source, ptx): (Source, Result<Threads, Abstention>)| {
        let ptx = ptx.map_err(|why| why.at("rejected").to_string())?;
        let cell = cell.ok_or("no assembler and architecture for this PTX")?;
        let judged = made.next().unwrap_or_else(Judged::none);
        Ok(Said { source, ptx, spec: cell.spec(), judged })
    };
    sources.into_iter().zip(ptx).map(one).collect()
}

/// The directives in front of the PTX of a program: version, target and size of addresses.
fn header(ptx: &[String]) -> String {
    let lines = ptx.first().map_or("", String::as_str).lines().filter(|line| is_directive(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn is_directive(line: &str) -> bool {
    [".version", ".target", ".address_size"].iter().any(|word| line.trim_start().starts_with(word))
}

/// What stands before a kernel.
const ENTRY: &str = ".visible .entry ";

/// The threads of a program without directives, with a number in their names. What is declared in front of them is the same in
/// all.
fn kernels(ptx: &[String], number: u64) -> String {
    let declared = ptx.first().and_then(|text| text.split(ENTRY).next()).unwrap_or_default().lines();
    let declared = declared.filter(|line| !is_directive(line)).flat_map(|line| [line, "\n"]);
    let own = ptx.iter().filter_map(|text| text.split_once(ENTRY)).flat_map(|(_, kernel)| [ENTRY, kernel]);
    let text: String = declared.chain(own).collect();
    text.replace("moire_0_", &format!("moire_{number}_")).replace("moire_s0_", &format!("moire_s{number}_"))
}

/// Whether an assembler takes PTX with these directives for an architecture. A target with a letter is for itself alone.
fn takes(cell: &Assembles<'_>, header: &str) -> bool {
    let word = |start: &str| {
        let rest = header.lines().find_map(|line| line.trim_start().strip_prefix(start));
        rest.and_then(|rest| rest.trim().split([',', ' ']).next()).unwrap_or_default().to_owned()
    };
    let number = |text: &str| text.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().unwrap_or(0);
    let part = |version: &str| version.split_once('.').map(|(a, b)| (number(a), number(b)));
    let (target, own) = (word(".target"), cell.target.name());
    part(&word(".version")) <= part(&cell.newest())
        && (target == own || target.ends_with(|c: char| c.is_ascii_digit()) && number(&target) <= number(own))
}

/// Machine code as comments of a claim.
fn commented(spec: &str, machine: &str) -> String {
    let lines = machine.lines().map(|line| format!("//   {line}\n"));
    [format!("\n// {spec} makes of that:\n")].into_iter().chain(lines).collect()
}

impl Oracle for Assembled {
    fn about(&self) -> &'static About {
        &ASSEMBLED_SOURCES
    }

    fn run(&self, case: &mut Case<'_>) -> Vec<Claim> {
        let (cell, said) = match self.drawn(case.item).and_then(|(cell, _)| Ok((cell, self.said(case)?))) {
            Ok(said) => said,
            Err(why) => {
                case.abstain(&why.at(ASSEMBLED_SOURCES.name));
                return Vec::new();
            }
        };
        case.report.program = *blake3::hash(canon::text(&said.source).as_bytes()).as_bytes();
        tell(case, &ASSEMBLED_SOURCES, format!("{} of {cell}", said.spec), &said.judged);
        self.claims(&said, &cell)
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
        self.tools().is_ok() && !self.compilers.tools().is_empty()
    }
}

impl refine::Sources for Assembled {
    type Source = Source;
    const TOGETHER: usize = 32;

    fn all_again<'a>(
        &'a self,
        claim: &'a Claim,
        sources: Vec<Source>,
        context: Context<'a>,
    ) -> Result<refine::Again<'a>, Abstention> {
        let (cell, assembles) = self.cells(claim)?;
        let ptx = self.compiled(&cell, &sources.iter().collect::<Vec<_>>(), context)?;
        let again = move |answer: Answer| {
            let said = answer.map_err(Abstention::Undecided)?;
            if let Judged::Without(why) = said.judged {
                return Err(Abstention::Undecided(why).at(ASSEMBLED_SOURCES.name));
            }
            Ok(self.claims(&said, &cell).into_iter().find(|new| super::same(new, claim)))
        };
        Ok(Box::new(judged(&[assembles], sources, ptx, (0, false)).into_iter().map(again)))
    }
}
