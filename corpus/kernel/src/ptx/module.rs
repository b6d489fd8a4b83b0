//! The contents of a module: kernels, their parameters and variables, and their statements as written.

use super::special::Special;
use moire_isa::{Instr, Value};
use moire_program::ir::{AsyncCopy, Control, CtaGroup, Guard, Op, Program, Reg, Space, Ty};
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// Most kernels of one module.
pub const KERNELS: usize = 64;
/// Deepest nesting of braces.
pub const NESTING: usize = 64;

/// A module.
#[derive(Clone, Debug)]
pub struct Module {
    /// `.version`
    pub version: (u32, u32),
    /// The first word of `.target`.
    pub target: String,
    /// The kernels in the order of the text.
    pub kernels: Vec<Kernel>,
}

/// One `.entry`.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name.
    pub name: String,
    /// The parameters in the order of the text.
    pub params: Vec<Param>,
    /// `.reqntid`
    pub threads: Option<[u32; 3]>,
    /// `.maxntid`
    pub most_threads: Option<[u32; 3]>,
    /// `.maxnreg`
    pub most_registers: Option<u32>,
    /// `.minnctapersm`
    pub least_ctas: Option<u32>,
    /// `.reqnctapercluster`
    pub cluster: Option<[u32; 3]>,
    /// Variables of the module and of the kernel, and parameters, by symbol of `program`.
    pub variables: Vec<Variable>,
    /// The declared types of the registers of the thread of `program`.
    pub types: Vec<Ty>,
    /// The code.
    pub body: Vec<Statement>,
    /// Names of labels, functions and what other modules define, by number.
    pub names: Vec<String>,
    /// The lists of `.branchtargets`, as indices into `body`.
    pub tables: Vec<Vec<usize>>,
    /// The program that static rules check: the objects, and one thread with the instructions that litmus texts have too.
    pub program: Program,
    /// What is found out about it once and kept.
    pub(crate) kept: Arc<OnceLock<Box<dyn Any + Send + Sync>>>,
}

impl Kernel {
    /// Whether some instruction is one of a pair of CTAs.
    pub fn pairs(&self) -> bool {
        let two = |op: &Op| {
            matches!(op, Op::Tcgen05(op) if op.group() == Some(CtaGroup::Two))
                || matches!(op, Op::AsyncCopy(AsyncCopy::Bulk(copy)) if copy.group == Some(CtaGroup::Two))
        };
        self.body.iter().any(|s| matches!(&s.what, What::Core(op) if two(op)))
    }

    /// Whether some instruction is about other CTAs of the cluster.
    pub fn peers(&self) -> bool {
        let names = |op: &Op| {
            matches!(op, Op::Mapa { .. })
                || matches!(op, Op::AsyncCopy(AsyncCopy::Bulk(copy)) if copy.multicast.is_some())
        };
        self.pairs() || self.body.iter().any(|s| matches!(&s.what, What::Core(op) if names(op)))
    }

    /// Whether no CTA of a launch without clusters can tell which one it is, but for what it shares with the others.
    pub fn is_anonymous(&self) -> bool {
        let tells = |what: &What| match what {
            What::Plain(instr) => names(instr),
            What::Core(op) => matches!(op, Op::Control(Control::TryCancel { .. })),
            What::Branch { .. } | What::Table { .. } | What::Exit => false,
        };
        !self.body.iter().any(|s| tells(&s.what))
    }

    /// The registers with which a thread starts, where ptxas 13.5 knows them: the least of `.maxnreg` and of what lets
    /// `.minnctapersm` CTAs share 65,536 registers, in steps of eight. Without either it ignores `setmaxnreg` (C7508).
    pub fn entry_registers(&self) -> Option<u32> {
        let threads = self.threads.or(self.most_threads).map(|t| t.iter().product::<u32>());
        let share = self
            .least_ctas
            .zip(threads)
            .map(|(ctas, threads)| ((65_536 / ctas.max(1).saturating_mul(threads.max(1))) & !7).min(256));
        self.most_registers.into_iter().chain(share).min()
    }
}

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The name.
    pub name: String,
    /// The size in bytes.
    pub bytes: u32,
    /// Whether it is an array, as tensor maps and structures are.
    pub array: bool,
    /// Whether it is 64 bits wide and no array, so it may be a pointer.
    pub pointer: bool,
}

/// A variable that a kernel names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// A `.shared` variable.
    Shared {
        /// The size in bytes; `None` for `.extern .shared name[]`.
        bytes: Option<u32>,
        /// The alignment in bytes.
        align: u32,
    },
    /// A `.global` or `.const` variable.
    Global,
    /// A `.local` variable, private to a lane.
    Local {
        /// The size in bytes.
        bytes: u32,
    },
    /// A kernel parameter, by position.
    Param(usize),
}

/// A guarded statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// `@p`, `@!p`
    pub guard: Option<Guard>,
    /// The line, 1-based.
    pub line: u32,
    /// The statement without its guard.
    pub what: What,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum What {
    /// An instruction that litmus texts have too, on registers of the kernel.
    Core(Op),
    /// Any other instruction, as the book reads it.
    Plain(Box<Instr>),
    /// `bra`
    Branch {
        /// Index into the body.
        target: usize,
    },
    /// `brx.idx`
    Table {
        /// The register that selects the entry.
        index: Reg,
        /// Index into [`Kernel::tables`].
        table: usize,
    },
    /// `ret`, `exit`
    Exit,
}

impl What {
    /// Whether clusters can do different things by it: it reads the number of its CTA or cluster, takes numbers from an
    /// atomic counter outside shared memory, or takes over the work of other clusters.
    pub fn tells_clusters_apart(&self) -> bool {
        match self {
            What::Plain(instr) => numbers(instr),
            What::Core(Op::Rmw { dst: Some(_), space, .. }) => {
                !matches!(space, Space::SharedCta | Space::SharedCluster)
            }
            What::Core(op) => matches!(op, Op::Control(Control::TryCancel { .. })),
            What::Branch { .. } | What::Table { .. } | What::Exit => false,
        }
    }

    /// Whether it reads where its CTA is along the third axis.
    pub fn reads_third_axis(&self) -> bool {
        matches!(self, What::Plain(instr) if reads(instr, |s| matches!(s, Special::Ctaid(2))))
    }
}

fn numbers(instr: &Instr) -> bool {
    matches!(instr, Instr::Atom(atom) if !atom.space.shared()) || names(instr)
}

/// Whether an instruction reads which CTA or cluster it is in.
fn names(instr: &Instr) -> bool {
    reads(instr, |s| matches!(s, Special::Ctaid(_) | Special::Clusterid(_)))
}

/// Whether an instruction reads such a special register.
fn reads(instr: &Instr, such: impl Fn(Special) -> bool) -> bool {
    let mut found = false;
    instr.each(&mut |seen| {
        if let Value::Special(named) = *seen.value {
            found |= such(named.into());
        }
    });
    found
}
