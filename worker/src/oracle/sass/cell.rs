//! An assembler and an architecture, and what they make of texts of PTX.
//!
//! Many texts become one module, because a start of the tools takes longer than a program. If the assembler does not take
//! them together, it is asked about fewer.

use crate::job::{CanaryResult, Side};
use crate::oracle::CRASH;
use crate::oracle::abstention::Abstention;
use crate::oracle::evidence::Unit;
use crate::oracle::tools::SASS_TOOLS;
use moire_kernel::emit;
use moire_program::validate::Target;
use moire_toolchain::order::{Listing, Loss, Planted, losses};
use moire_toolchain::{Answer, ListError, Nvdisasm, Ptxas, Version};
use std::collections::BTreeSet;

/// Architectures whose machine code is read.
pub(in crate::oracle) const TARGETS: [Target; 3] = [Target::Sm90a, Target::Sm100a, Target::Sm120a];
/// Of this many programs each kind of loss is planted in one.
const EVERY: u64 = 8;

/// The tools of a machine.
#[derive(Debug)]
pub(in crate::oracle) struct Tools {
    /// Newest first.
    assemblers: Vec<Ptxas>,
    nvdisasm: Nvdisasm,
}

/// An assembler and an architecture.
#[derive(Clone, Copy, Debug)]
pub(in crate::oracle) struct Cell<'a> {
    pub(in crate::oracle) ptxas: &'a Ptxas,
    pub(in crate::oracle) nvdisasm: &'a Nvdisasm,
    pub(in crate::oracle) target: Target,
}

/// A text of kernels, with the kind of loss that is planted in its machine code besides.
#[derive(Clone, Debug)]
pub(in crate::oracle) struct Text {
    pub(in crate::oracle) kernels: String,
    pub(in crate::oracle) planted: Option<Planted>,
}

/// What is said of a program.
#[derive(Clone, Debug)]
pub(in crate::oracle) enum Judged {
    /// Of its threads: what is lost, and why some are not read; and whether a planted loss is noticed.
    Read {
        lost: BTreeSet<(&'static str, String)>,
        unread: Vec<String>,
        threads: usize,
        canary: Option<CanaryResult>,
    },
    /// The assembler dies of it.
    Died(String),
    /// There is no machine code.
    Without(String),
}

/// The kind of loss whose turn it is at a place of a stream.
pub(in crate::oracle) fn due(index: u64) -> Option<Planted> {
    Planted::ALL.get(usize::try_from(index % EVERY).ok()?).copied()
}

impl Tools {
    /// Tools of the caller's choice.
    pub(in crate::oracle) fn of(assemblers: Vec<Ptxas>, nvdisasm: Nvdisasm) -> Tools {
        Tools { assemblers, nvdisasm }
    }

    /// Those of this machine.
    pub(in crate::oracle) fn find() -> Option<Tools> {
        let assemblers = Ptxas::all();
        let nvdisasm = Nvdisasm::find(None)?;
        (!assemblers.is_empty()).then_some(Tools { assemblers, nvdisasm })
    }

    /// All assemblers with all architectures: the turns of batches.
    pub(in crate::oracle) fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let of = |ptxas| TARGETS.map(|target| Cell { ptxas, nvdisasm: &self.nvdisasm, target });
        self.assemblers.iter().flat_map(of)
    }

    /// The cell of a side of a claim.
    pub(in crate::oracle) fn cell(&self, side: &Side) -> Result<Cell<'_>, Abstention> {
        let release = side.variants.get("release");
        let named =
            |p: &&Ptxas| release.is_none_or(|r| *r == format!("{}.{}", p.version().major, p.version().minor));
        let ptxas = self.assemblers.iter().find(named);
        let word = side.variants.get("target").map_or(TARGETS[0].name(), String::as_str);
        let target = TARGETS.into_iter().find(|t| t.name() == word);
        Ok(Cell {
            ptxas: ptxas.ok_or(Abstention::Unusable("no such release of ptxas here"))?,
            nvdisasm: &self.nvdisasm,
            target: target.ok_or(Abstention::Unusable("no such architecture"))?,
        })
    }
}

/// Whether a side of a claim is machine code.
pub(in crate::oracle) fn is_machine(side: &Side) -> bool {
    side.name == SASS_TOOLS.capability
}

impl Cell<'_> {
    /// `sass:release=13.5,target=sm_90a`
    pub(in crate::oracle) fn spec(&self) -> String {
        let Version { major, minor, .. } = self.ptxas.version();
        format!("{}:release={major}.{minor},target={}", SASS_TOOLS.capability, self.target.name())
    }

    /// The newest version of PTX that the assembler is known to take.
    pub(in crate::oracle) fn newest(&self) -> String {
        // CUDA 13.N has PTX 9.N.
        match self.ptxas.version() {
            version if version.major == 13 => format!("9.{}", version.minor.min(5)),
            _ => emit::PTX_VERSION.to_owned(),
        }
    }

    /// Judges texts of kernels behind one header.
    pub(in crate::oracle) fn judged(&self, header: &str, texts: &[&Text]) -> Vec<Judged> {
        if texts.is_empty() {
            return Vec::new();
        }
        let module: String = texts.iter().fold(header.to_owned(), |all, text| all + &text.kernels);
        match self.code(&module) {
            Ok(code) => texts.iter().map(|text| self.read(text, &code)).collect(),
            Err(why) if texts.len() == 1 => vec![match why {
                ListError::NotAssembled(Answer::Died(name)) => Judged::Died(name),
                ListError::NotAssembled(_) => Judged::Without("ptxas does not take it".to_owned()),
                other => Judged::Without(other.to_string()),
            }],
            Err(_) => {
                let (some, others) = texts.split_at(texts.len() / 2);
                [self.judged(header, some), self.judged(header, others)].concat()
            }
        }
    }

    fn read(&self, text: &Text, code: &Listing) -> Judged {
        let (mut lost, mut unread, mut threads) = (BTreeSet::new(), Vec::new(), 0);
        for one in losses(&text.kernels, code, self.target.name()) {
            match one {
                Ok(loss) => {
                    threads += 1;
                    lost.extend(loss.map(|Loss { how, what }| (how, what)));
                }
                Err(why) => unread.push(why.to_string()),
            }
        }
        // A loss beside another one says nothing.
        let planted = text.planted.filter(|_| lost.is_empty() && unread.is_empty());
        let canary = planted.and_then(|planted| self.canary(&text.kernels, code, planted));
        Judged::Read { lost, unread, threads, canary }
    }

    /// Whether a planted loss is noticed; `None` where no place fits.
    fn canary(&self, kernels: &str, code: &Listing, planted: Planted) -> Option<CanaryResult> {
        let wrong = planted.put(kernels, code)?;
        let caught = losses(kernels, &wrong, self.target.name()).iter().any(|one| matches!(one, Ok(Some(_))));
        Some(CanaryResult { name: planted.name().to_owned(), caught })
    }

    fn code(&self, module: &str) -> Result<Listing, ListError> {
        self.nvdisasm.code(self.ptxas, module, self.target.name())
    }

    /// The assembler of a claim, with a module and its machine code.
    pub(in crate::oracle) fn unit(&self, text: String) -> Unit {
        let (code, target) = (self.code(&text), self.target.name());
        let died = match &code {
            Err(ListError::NotAssembled(Answer::Died(name))) => vec![name.clone()],
            _ => Vec::new(),
        };
        Unit {
            compiler: "NVIDIA ptxas",
            version: Some(self.ptxas.version()),
            command: format!(
                "ptxas -O3 -arch={target} -o module.cubin module.ptx && nvdisasm -c module.cubin"
            ),
            language: "ptx",
            text,
            machine: code.ok().map(|code| listed(&code)),
            died,
            ..Unit::default()
        }
    }

    /// The machine code of a module, kernel by kernel.
    pub(in crate::oracle) fn listing(&self, module: &str) -> Option<String> {
        self.code(module).ok().map(|code| listed(&code))
    }
}

fn listed(code: &Listing) -> String {
    let kernel = |(name, lines): (&String, &Vec<String>)| {
        let code: Vec<&str> = lines.iter().map(String::as_str).filter(|l| *l != "NOP").collect();
        format!("{name}:\n{}\n", code.join("\n"))
    };
    code.kernels.iter().map(kernel).collect()
}

impl Judged {
    /// No answer came.
    pub(in crate::oracle) fn none() -> Judged {
        Judged::Without("no answer".to_owned())
    }

    /// What is broken, each in the words of the checks of a claim.
    pub(in crate::oracle) fn causes(&self) -> Vec<Vec<String>> {
        match self {
            Judged::Read { lost, .. } => {
                lost.iter().map(|(how, what)| vec![format!("sass-{how}"), what.clone()]).collect()
            }
            Judged::Died(name) => vec![vec![CRASH.to_owned(), name.clone()]],
            Judged::Without(_) => Vec::new(),
        }
    }

    /// Why nothing is said of some threads, or of all.
    pub(in crate::oracle) fn abstained(&self) -> Vec<String> {
        match self {
            Judged::Read { unread, .. } => unread.clone(),
            Judged::Without(why) => vec![why.clone()],
            Judged::Died(_) => Vec::new(),
        }
    }

    /// The verdict of a row; `None` where no thread is read.
    pub(in crate::oracle) fn verdict(&self) -> Option<&'static str> {
        match self {
            Judged::Without(_) | Judged::Read { threads: 0, .. } => None,
            Judged::Read { lost, .. } if lost.is_empty() => Some("agrees"),
            Judged::Read { .. } | Judged::Died(_) => Some("discrepancy"),
        }
    }

    /// Whether a planted loss is noticed, if one was planted.
    pub(in crate::oracle) fn canary(&self) -> Option<CanaryResult> {
        match self {
            Judged::Read { canary, .. } => canary.clone(),
            Judged::Died(_) | Judged::Without(_) => None,
        }
    }
}
