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

use super::CRASH;
use super::about::{About, Takes};
use super::abstention::Abstention;
use super::batches::Batches;
use super::case::{Case, Context};
use super::evidence::{Evidence, Unit};
use super::litmus::{Broken, Rule};
use super::tools::SASS_TOOLS;
use crate::direction::Direction;
use crate::job::{Claim, EngineReport, Side, Source};
use moire_generate::{Profile, Stream};
use moire_kernel::emit;
use moire_program::canon::spell::hash;
use moire_program::ir::Program;
use moire_program::text::{Format, Severity, parse, print};
use moire_program::validate::{Target, targets, validate};
use moire_toolchain::order::{Listing, Loss, losses};
use moire_toolchain::{Answer, ListError, Nvdisasm, Ptxas, Version};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// Facts about the oracle.
pub const SASS: About = About {
    name: "sass",
    takes: Takes::Programs,
    by_default: false,
    under_models: false,
    tool: Some(SASS_TOOLS),
};
/// Architectures whose machine code is read.
const TARGETS: [Target; 3] = [Target::Sm90a, Target::Sm100a, Target::Sm120a];
/// Programs of one module.
const SIZE: usize = 32;

/// The tools of this machine, looked for when first asked for, and their latest answers.
#[derive(Debug, Default)]
pub(super) struct MachineCode {
    found: OnceLock<Option<Tools>>,
    batches: Batches<(String, Version), Judged>,
}

#[derive(Debug)]
struct Tools {
    /// Newest first.
    assemblers: Vec<Ptxas>,
    nvdisasm: Nvdisasm,
}

/// An assembler and an architecture.
#[derive(Clone, Copy, Debug)]
struct Cell<'a> {
    ptxas: &'a Ptxas,
    nvdisasm: &'a Nvdisasm,
    target: Target,
}

/// What is said of a program.
#[derive(Clone, Debug)]
enum Judged {
    /// Of its threads: what is lost, and why some are not read.
    Read { lost: BTreeSet<(&'static str, String)>, unread: Vec<String>, threads: usize },
    /// The assembler dies of it.
    Died(String),
    /// There is no machine code.
    Without(String),
}

impl Cell<'_> {
    /// `sass:release=13.5,target=sm_90a`
    fn spec(&self) -> String {
        let Version { major, minor, .. } = self.ptxas.version();
        format!("{}:release={major}.{minor},target={}", SASS_TOOLS.capability, self.target.name())
    }

    fn header(&self) -> String {
        // CUDA 13.N has PTX 9.N.
        let version = self.ptxas.version();
        let newest = if version.major == 13 {
            format!("9.{}", version.minor.min(5))
        } else {
            emit::PTX_VERSION.to_owned()
        };
        emit::header(&newest, self.target)
    }

    /// Judges each program.
    fn judged(&self, programs: &[&Program]) -> Vec<Judged> {
        let texts: Vec<Result<String, Judged>> =
            programs.iter().enumerate().map(|(n, program)| self.text(program, n)).collect();
        let fit: Vec<&String> = texts.iter().filter_map(|text| text.as_ref().ok()).collect();
        let mut made = self.assembled(&fit).into_iter();
        let mut next = || made.next().unwrap_or_else(|| Judged::Without("no answer".to_owned()));
        texts.into_iter().map(|text| text.map_or_else(|why| why, |_| next())).collect()
    }

    fn text(&self, program: &Program, n: usize) -> Result<String, Judged> {
        let without = |why: String| Err(Judged::Without(why));
        if validate(program).iter().any(|d| d.severity == Severity::Error) {
            return without("a program that the assembler refuses".to_owned());
        }
        if !targets(program).contains(&self.target) {
            return without(format!("not for {}", self.target.name()));
        }
        match emit::kernels(program, &format!("p{n}_")) {
            Ok(module) if module.left_out > 0 => without("PTX has no word for an instruction".to_owned()),
            Ok(module) => Ok(module.text),
            Err(why) => without(why.reason().to_owned()),
        }
    }

    /// Judges texts of kernels. If the assembler does not take them together, it is asked about fewer.
    fn assembled(&self, texts: &[&String]) -> Vec<Judged> {
        if texts.is_empty() {
            return Vec::new();
        }
        let module: String = texts.iter().fold(self.header(), |all, text| all + text);
        match self.nvdisasm.code(self.ptxas, &module, self.target.name()) {
            Ok(code) => texts.iter().map(|text| self.read(text, &code)).collect(),
            Err(why) if texts.len() == 1 => vec![match why {
                ListError::NotAssembled(Answer::Died(name)) => Judged::Died(name),
                ListError::NotAssembled(_) => Judged::Without("ptxas does not take it".to_owned()),
                other => Judged::Without(other.to_string()),
            }],
            Err(_) => {
                let (some, others) = texts.split_at(texts.len() / 2);
                [self.assembled(some), self.assembled(others)].concat()
            }
        }
    }

    fn read(&self, text: &str, code: &Listing) -> Judged {
        let (mut lost, mut unread, mut threads) = (BTreeSet::new(), Vec::new(), 0);
        for one in losses(text, code, self.target.name()) {
            match one {
                Ok(loss) => {
                    threads += 1;
                    lost.extend(loss.map(|Loss { how, what }| (how, what)));
                }
                Err(why) => unread.push(why.to_string()),
            }
        }
        Judged::Read { lost, unread, threads }
    }
}

impl MachineCode {
    /// Tools of the caller's choice.
    pub(super) fn of(assemblers: Vec<Ptxas>, nvdisasm: Nvdisasm) -> Self {
        Self { found: OnceLock::from(Some(Tools { assemblers, nvdisasm })), ..Self::default() }
    }

    fn tools(&self) -> Result<&Tools, Abstention> {
        let found = self.found.get_or_init(|| {
            let assemblers = Ptxas::all();
            let nvdisasm = Nvdisasm::find(None)?;
            (!assemblers.is_empty()).then_some(Tools { assemblers, nvdisasm })
        });
        found.as_ref().ok_or_else(|| Abstention::NoDisassembler(SASS_TOOLS.how.to_owned()))
    }

    /// The cell of a side; `None` for a side of something else.
    fn cell(&self, spec: &str) -> Option<Result<Cell<'_>, Abstention>> {
        let side = Side::of(spec);
        (side.name == SASS_TOOLS.capability).then(|| {
            let Tools { assemblers, nvdisasm } = self.tools()?;
            let release = side.variants.get("release");
            let named = |p: &&Ptxas| {
                release.is_none_or(|r| *r == format!("{}.{}", p.version().major, p.version().minor))
            };
            let ptxas =
                assemblers.iter().find(named).ok_or(Abstention::Unusable("no such release of ptxas here"))?;
            let word = side.variants.get("target").map_or(TARGETS[0].name(), String::as_str);
            let target = TARGETS.into_iter().find(|t| t.name() == word);
            Ok(Cell { ptxas, nvdisasm, target: target.ok_or(Abstention::Unusable("no such architecture"))? })
        })
    }

    /// The cell of a batch: a turn through the architectures and the releases.
    fn drawn(&self, seed: u64, index: u64) -> Result<Cell<'_>, Abstention> {
        let Tools { assemblers, nvdisasm } = self.tools()?;
        let turn = usize::try_from(seed.wrapping_add(index / SIZE as u64) % 5040).unwrap_or(0);
        let ptxas = &assemblers[turn / TARGETS.len() % assemblers.len()];
        Ok(Cell { ptxas, nvdisasm, target: TARGETS[turn % TARGETS.len()] })
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
            let stream = Stream::new(seed, profile);
            let programs: Vec<Program> = indices.map(|i| stream.item(i)).collect();
            case.context.cancel.tick();
            cell.judged(&programs.iter().collect::<Vec<_>>())
        });
        Ok((cell.spec(), judged))
    }
}

fn one(cell: Cell<'_>, program: &Program) -> Judged {
    cell.judged(&[program]).pop().unwrap_or_else(|| Judged::Without("no answer".to_owned()))
}

/// The broken rules in an answer.
fn broken(spec: &str, judged: &Judged) -> Vec<Broken> {
    let causes = match judged {
        Judged::Read { lost, .. } => {
            lost.iter().map(|(how, what)| vec![format!("sass-{how}"), what.clone()]).collect()
        }
        Judged::Died(name) => vec![vec![CRASH.to_owned(), name.clone()]],
        Judged::Without(_) => Vec::new(),
    };
    let each = |causes| Broken::of(Direction::Property, vec![spec.to_owned()], causes);
    causes.into_iter().map(each).collect()
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
        let abstained = match &judged {
            Judged::Read { unread, .. } => unread.clone(),
            Judged::Without(why) => vec![why.clone()],
            Judged::Died(_) => Vec::new(),
        };
        for why in abstained {
            case.abstain(&Abstention::Undecided(why).at(SASS.name));
        }
        let found = broken(&spec, &judged);
        if !matches!(&judged, Judged::Without(_) | Judged::Read { threads: 0, .. }) {
            case.report.engines.push(EngineReport {
                engine: spec,
                verdict: if found.is_empty() { "agrees" } else { "discrepancy" }.into(),
                outcomes: hash(&found.iter().map(|b| b.causes.clone()).collect::<Vec<_>>()),
                ..EngineReport::default()
            });
        }
        found.into_iter().map(|broken| (Arc::clone(program), broken)).collect()
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

impl MachineCode {
    /// See [`Rule::shown`]: the PTX and its machine code.
    fn evidence(&self, claim: &Claim) -> Result<Evidence, Abstention> {
        let program = parse(&claim.program, Format::Native)?;
        let spec = claim.specs().into_iter().next().ok_or(Abstention::FORM)?;
        let cell = self.cell(&spec).ok_or(Abstention::FORM)??;
        let module = emit::kernels(&program, "").map_err(Abstention::Refused)?;
        let text = cell.header() + &module.text;
        let target = cell.target.name();
        let code = cell.nvdisasm.code(cell.ptxas, &text, target);
        let died = match &code {
            Err(ListError::NotAssembled(Answer::Died(name))) => vec![name.clone()],
            _ => Vec::new(),
        };
        let listed = |code: Listing| {
            let kernel = |(name, lines): (&String, &Vec<String>)| {
                let code: Vec<&str> = lines.iter().map(String::as_str).filter(|l| *l != "NOP").collect();
                format!("{name}:\n{}\n", code.join("\n"))
            };
            code.kernels.iter().map(kernel).collect::<String>()
        };
        let unit = Unit {
            compiler: "NVIDIA ptxas",
            version: Some(cell.ptxas.version()),
            command: format!(
                "ptxas -O3 -arch={target} -o module.cubin module.ptx && nvdisasm -c module.cubin"
            ),
            language: "ptx",
            text,
            machine: code.ok().map(listed),
            died,
            ..Unit::default()
        };
        Ok(Evidence { litmus: print(&program), units: vec![unit], ..Evidence::default() })
    }
}
