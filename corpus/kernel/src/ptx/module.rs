//! What a module holds: kernels, their parameters and variables, and their statements as written.

use moire_program::ir::{Guard, Op, Program, Reg, SymbolId, Ty};

/// Most kernels of one module.
pub const KERNELS: usize = 64;
/// Most braces inside each other.
pub const NESTING: usize = 64;

/// A module.
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
#[expect(missing_docs, reason = "the names are those of PTX")]
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
