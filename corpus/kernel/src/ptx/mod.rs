//! PTX modules, as compilers print them: directives, declarations, and the bodies of kernels.
//!
//! Contract: an instruction that litmus texts have too is read by their reader; every other statement is kept as its
//! dotted words and operands, and must at least start with a mnemonic of PTX. Nothing is interpreted here:
//! [`crate::specialise`] does that for one launch. Bodies of functions are skipped. Source: PTX ISA 9.2, chapters 4, 5, 9
//! and 11.

mod body;
mod declare;
mod operand;
mod words;

pub(crate) use words::type_of;

use moire_program::ir::{Guard, Op, Program, Reg, Space, SymbolId, Ty};
use moire_program::limits::{INSTRUCTIONS, MANGLED_BYTES, TEXT_BYTES};
use moire_program::text::build::{Builder, ThreadBuilder};
use moire_program::text::scan::{Comments, Parsed, Scan, closest};
use moire_program::text::{Diagnostic, ParseError};
use moire_program::validate::{Target, notation, targets, validate};

/// Kernels of one module.
pub const KERNELS: usize = 64;
/// Braces inside braces.
pub const NESTING: usize = 64;

/// What a module holds.
#[derive(Clone, Debug)]
pub struct Module {
    /// `.version`
    pub version: (u32, u32),
    /// First word of `.target`.
    pub target: String,
    /// In the order of the text.
    pub kernels: Vec<Kernel>,
}

/// One `.entry`.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// In the order of the text.
    pub params: Vec<Param>,
    /// `.reqntid`
    pub threads: Option<[u32; 3]>,
    /// `.maxntid`
    pub most_threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`
    pub cluster: Option<[u32; 3]>,
    /// Variables of the module and of the kernel, by symbol of `program`; a parameter is one too.
    pub variables: Vec<Variable>,
    /// Declared types of the registers of `program`'s thread.
    pub types: Vec<Ty>,
    /// The code.
    pub body: Vec<Statement>,
    /// `.branchtargets`: indices into `body`.
    pub tables: Vec<Vec<usize>>,
    /// Objects, and one thread with the instructions that litmus texts have too: what static rules look at.
    pub program: Program,
}

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u32,
    /// An array, as tensor maps and structures are.
    pub array: bool,
    /// 64 bits wide, so that it may be a pointer.
    pub pointer: bool,
}

/// Memory a kernel names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `.shared`: size and alignment; of unknown size when it is the dynamic one.
    Shared {
        /// Bytes; none for `.extern .shared name[]`.
        bytes: Option<u32>,
        /// Bytes.
        align: u32,
    },
    /// `.global`, `.const`
    Global,
    /// `.local`: private to a lane.
    Local {
        /// Bytes.
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
    /// 1-based.
    pub line: u32,
    /// What it is.
    pub what: What,
}

/// What a statement is.
#[derive(Clone, Debug)]
pub enum What {
    /// An instruction litmus texts have too; registers are those of the kernel.
    Core(Op),
    /// Any other instruction.
    Plain(Plain),
    /// `bra`
    Branch {
        /// Index into the body.
        target: usize,
    },
    /// `brx.idx`
    Table {
        /// Which entry.
        index: Reg,
        /// Index into [`Kernel::tables`].
        table: usize,
    },
    /// `ret`, `exit`
    Exit,
}

/// An instruction as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Mnemonic and qualifiers.
    pub words: Vec<String>,
    /// Operands, destinations first.
    pub args: Vec<Arg>,
}

/// An operand as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A register.
    Reg(Reg),
    /// `!p`
    Not(Reg),
    /// `d|p`; either may be the sink.
    Pair(Option<Reg>, Option<Reg>),
    /// A number, floating-point ones as their bits.
    Imm(u64),
    /// The address of a variable, and an offset.
    Symbol(SymbolId, i64),
    /// `%tid.x`, ..
    Special(Special),
    /// `[base+offset]`
    Address(Box<Arg>, i64),
    /// `{a, b}`
    Vector(Vec<Arg>),
    /// `_`
    Sink,
    /// A function, a label, a prototype: nothing that has a value.
    Other,
}

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of PTX")]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Clusterid(u8),
    Nclusterid(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtarank,
    ClusterNctarank,
    Laneid,
    Warpid,
    Nwarpid,
    LanemaskEq,
    LanemaskLt,
    LanemaskLe,
    LanemaskGt,
    LanemaskGe,
    DynamicSmemSize,
    /// Clocks, identities of the machine: any value.
    Unknown,
}

/// Reads a module.
pub fn parse(source: &str) -> Result<Module, ParseError> {
    if source.len() > TEXT_BYTES {
        let message = format!("a program text may have at most {TEXT_BYTES} bytes");
        return Err(ParseError::at(source, 0, message, None));
    }
    let mut scan = Scan::new(source, Comments::C);
    scan.longest = MANGLED_BYTES;
    declare::module(&mut scan)
}

impl Kernel {
    /// Everything the static rules call an error, for the target of the module: rules that agree with the assembler.
    pub fn rejected(&self, module: &Module) -> Vec<Diagnostic> {
        let error = |line: u32, column: u32, message: String, rule: Option<&'static str>| Diagnostic {
            line,
            column,
            message,
            hint: None,
            severity: moire_program::text::Severity::Error,
            rule,
        };
        let mut out = validate(&self.program);
        out.retain(|d| d.severity == moire_program::text::Severity::Error);
        for instr in self.program.threads.iter().flat_map(|t| &t.body) {
            // The predicate of cp.async is told by the declaration here, and a barrier count is one of threads.
            let told = matches!(instr.op, Op::AsyncCopy(_) | Op::Bar { .. });
            if let Some(what) = notation(&instr.op).filter(|_| !told) {
                let message = format!("this is litmus notation, not PTX: {what}");
                out.push(error(instr.line, instr.column, message, None));
            }
        }
        let known = Target::ALL.into_iter().find(|t| t.name() == module.target);
        if let Some(target) = known {
            let mut alone = self.program.clone();
            for instr in self.program.threads.iter().flat_map(|t| &t.body) {
                if let Some(thread) = alone.threads.first_mut() {
                    thread.body = vec![instr.clone()];
                }
                if !targets(&alone).contains(&target) {
                    let name = instr.op.extended().unwrap_or("this instruction");
                    let message = format!("the target {} has no such {name}", target.name());
                    out.push(error(instr.line, instr.column, message, Some("target")));
                    break;
                }
            }
        }
        out.sort_by_key(|d| (d.line, d.column));
        out
    }
}
