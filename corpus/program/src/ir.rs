//! The one intermediate representation: what a program *is*, for every reader, engine and printer.
//!
//! A program is a set of memory objects, the names that reach them (virtual addresses), the threads with their
//! placement, and the conditions to judge. It holds no events: events come from interpreting a thread body.
//! Words follow the PTX ISA 9.2 (chapter 8 for orders, scopes and proxies; 9.7 for instructions).
//!
//! Invariants (kept by the readers and by `validate`): every index names something that exists, every branch
//! target is `<= body.len()`, and every size obeys [`crate::limits`].

mod book;
mod collective;
mod content;
mod control;
mod copy;
mod descriptor;
mod extended;
mod lattice;
mod mbarrier;
mod mma;
mod parts;
mod proxy;
mod tcgen05;
mod tile;
mod told;
mod wgmma;

pub use book::Book;
pub use collective::*;
pub use content::Content;
pub use control::*;
pub use copy::*;
pub use descriptor::*;
pub use extended::{Access, Goes};
pub use lattice::Order;
pub use mbarrier::*;
pub use mma::*;
pub(crate) use parts::parts_of;
pub use parts::{Part, Parts, PartsMut, Role};
pub use proxy::*;
pub use tcgen05::*;
pub use tile::*;
pub use told::{RANGE_PIECE, TOLD, Told};
pub use wgmma::*;

/// A bit pattern held in a register or in memory, zero-extended to 128 bits.
pub type Value = u128;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u16);
        impl $name {
            /// The index of a position in its table.
            ///
            /// # Panics
            /// The position is beyond every table: [`crate::limits`] keeps them far shorter.
            #[inline]
            pub fn at(position: usize) -> Self {
                Self(u16::try_from(position).expect("tables of a program have less than 2^16 entries"))
            }
            /// The position in the table this index points into.
            #[inline]
            pub fn index(self) -> usize { self.0 as usize }
        }
    };
}
index!(
    /// Index into [`Program::objects`].
    ObjectId
);
index!(
    /// Index into [`Program::symbols`].
    SymbolId
);
index!(
    /// Index into [`Program::threads`].
    ThreadId
);
index!(
    /// Index into [`Thread::regs`]; registers are private to their thread.
    Reg
);

/// A program, with the conditions to judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Title; has no meaning and is not part of the canonical form.
    pub name: String,
    /// Physical memory.
    pub objects: Vec<Object>,
    /// Names through which threads and conditions reach objects.
    pub symbols: Vec<Symbol>,
    /// In the order of the text.
    pub threads: Vec<Thread>,
    /// The CTAs start and exit, as those of a launched kernel do. Otherwise each is there before the first instruction of
    /// the program and after the last.
    pub launched: bool,
    /// The text says that the CTAs of each grid are one cluster: they all are in cluster 0. Where it says nothing, that is taken
    /// for granted if something needs it: see [`crate::clusters`].
    pub one_cluster: bool,
    /// Executions outside this expression are not considered (Dat3M `filter`, mixedproxy `== k`).
    pub filter: Option<Expr>,
    /// Zero or more named questions about the final states.
    pub conditions: Vec<Condition>,
}

/// A piece of physical memory. A `.shared` object exists once for each CTA that has a thread, and so does one in tensor
/// memory: columns that are allocated from start to end, with unknown content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The name of its defining symbol.
    pub name: String,
    /// Where it lives.
    pub space: Space,
    /// Size in bytes, 1..=[`crate::limits::OBJECT_BYTES`]. Of tensor memory: of one lane, four a column.
    pub bytes: u32,
    /// Initial content, zero from `bytes` on (PTX ISA 8.2.6: the hypothetical first write).
    pub init: Content,
}

/// A virtual address range naming an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Unique among symbols.
    pub name: String,
    /// The memory behind it.
    pub object: ObjectId,
    /// Virtual identity: two symbols with equal `virt` have the same virtual address; with different `virt` and
    /// equal `object` they are virtual aliases (8.2.2). The defining symbol of an object has its own.
    pub virt: SymbolId,
    /// Non-generic symbols (texture, surface, constant references) share the `virt` of what they refer to.
    pub proxy: Proxy,
    /// Multimem address (9.7.9.14): names `object` and these further objects, one per device.
    pub multimem: Vec<ObjectId>,
}

/// State space of an object or qualifier of an access (8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// No qualifier: the generic window.
    Generic,
    /// `.global`
    Global,
    /// `.shared::cta`
    SharedCta,
    /// `.shared::cluster`; only as a qualifier of an access.
    SharedCluster,
    /// Tensor memory; only as the place of an object (see [`Object::bytes`]).
    Tensor,
}

/// How an access reaches memory (8.6). Virtual aliasing is a property of symbols, not of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Proxy {
    /// Ordinary `ld`/`st`/`atom`/`red`.
    Generic,
    /// `tld` (texture reference).
    Texture,
    /// `suld`, `sust`, `suatom`, `sured`.
    Surface,
    /// `cold`/`ldc` (constant bank).
    Constant,
    /// Bulk copies and tensor-core operands.
    Async,
    /// Reads of a tensor map object.
    Tensormap,
}

/// Thread scopes (8.5). `Cta < Cluster < Gpu < Sys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `.cta`
    Cta,
    /// `.cluster`
    Cluster,
    /// `.gpu`
    Gpu,
    /// `.sys`
    Sys,
}

/// Where a thread runs. Indices are global: CTA 1 of GPU 0 and CTA 1 of GPU 1 are different CTAs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Placement {
    /// A host thread: no GPU, reached only by `.sys`. All other fields are 0.
    pub host: bool,
    /// Device.
    pub gpu: u16,
    /// Stream on the device.
    pub stream: u16,
    /// Grid (kernel launch) on the stream.
    pub grid: u16,
    /// Cluster in the grid.
    pub cluster: u16,
    /// CTA in the cluster's grid.
    pub cta: u16,
    /// Warp in the CTA.
    pub warp: u16,
    /// Lanes of the warp that this thread stands for, a bit a lane; 0 when the text does not say (one thread of its own
    /// warp).
    pub mask: u32,
    /// The lanes run in lockstep: one program order, in which arrivals, exits and masks count each lane. Only of several
    /// lanes.
    pub joined: bool,
}

impl Placement {
    /// Whether a strong operation of scope `scope` issued at `self` includes the thread at `other`.
    pub fn includes(&self, scope: Scope, other: &Placement) -> bool {
        match scope {
            Scope::Sys => true,
            Scope::Gpu => !self.host && !other.host && self.gpu == other.gpu,
            Scope::Cluster => self.same_grid(other) && self.cluster == other.cluster,
            Scope::Cta => self.same_cta(other),
        }
    }

    /// The lanes of the warp the thread stands for, a bit a lane; never none: lane 0 where the text does not say.
    pub fn lanes(&self) -> u32 {
        self.mask.max(1)
    }

    /// The first lane of the warp the thread stands for, where the text says one.
    pub fn lane(&self) -> Option<u8> {
        (self.mask != 0).then(|| u8::try_from(self.mask.trailing_zeros()).unwrap_or(0))
    }

    /// Whether it stands for several lanes.
    pub fn several(&self) -> bool {
        self.mask.count_ones() > 1
    }

    /// Same CTA (hence the same shared memory and named barriers).
    pub fn same_cta(&self, other: &Placement) -> bool {
        self.same_grid(other) && self.cluster == other.cluster && self.cta == other.cta
    }

    fn same_grid(&self, other: &Placement) -> bool {
        !self.host
            && !other.host
            && (self.gpu, self.stream, self.grid) == (other.gpu, other.stream, other.grid)
    }
}

/// One thread: a list of instructions that is interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Unique among threads, e.g. `P0`.
    pub name: String,
    /// Where it runs.
    pub place: Placement,
    /// Registers; predicates are registers too.
    pub regs: Vec<RegDecl>,
    /// Jump targets: name and index into `body` (`body.len()` is the exit).
    pub labels: Vec<Label>,
    /// The code.
    pub body: Vec<Instr>,
}

/// A register and the value it holds at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegDecl {
    /// As written, e.g. `r1`, `%p`.
    pub name: String,
    /// Zero unless the text says otherwise.
    pub init: RegInit,
}

/// Start content of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegInit {
    /// A number.
    Value(Value),
    /// The virtual address of a symbol.
    Address(SymbolId),
    /// The number of the lane (`%laneid`): it differs among the lanes a thread stands for.
    Lane,
}

/// A named position in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Unique in its thread.
    pub name: String,
    /// Index of the instruction it stands before.
    pub at: usize,
}

/// A predicated instruction with the place it was read from.
#[derive(Clone, Debug)]
pub struct Instr {
    /// `@p` / `@!p`.
    pub guard: Option<Guard>,
    /// What it does.
    pub op: Op,
    /// Line of the source text, 1-based; 0 when generated. Not part of equality.
    pub line: u32,
    /// Column in that line, 1-based, in bytes; 0 when generated. Not part of equality.
    pub column: u32,
}

impl PartialEq for Instr {
    fn eq(&self, other: &Self) -> bool {
        self.guard == other.guard && self.op == other.op
    }
}
impl Eq for Instr {}

impl Instr {
    /// An unguarded instruction without a source line.
    pub fn new(op: Op) -> Self {
        Instr { guard: None, op, line: 0, column: 0 }
    }
}

/// Execution predicate: runs when the register is non-zero (zero when `negated`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate register.
    pub reg: Reg,
    /// `@!p`.
    pub negated: bool,
}

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// An immediate, sign-extended by the reader; truncated to the operation's width where used.
    Imm(i128),
    /// The virtual address of a symbol.
    Address(SymbolId),
}

/// `[base + offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Symbol, register or immediate.
    pub base: Operand,
    /// Bytes added to the base.
    pub offset: i32,
}

/// Scalar type of an instruction: kind and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ty {
    /// `.pred`
    Pred,
    /// Untyped bits; the number is the width in bits: 8, 16, 32, 64, 128.
    B(u8),
    /// Unsigned.
    U(u8),
    /// Signed.
    S(u8),
    /// Floating point, bits only (no arithmetic is modelled exactly): 16, 32, 64.
    F(u8),
    /// Two 16-bit halves in 32 bits (`.f16x2`, `.bf16x2`), 8.2.5: two scalar operations.
    F16x2,
    /// See `F16x2`.
    Bf16x2,
}

impl Ty {
    /// Width in bytes (`.pred` counts as 1).
    pub fn bytes(self) -> u32 {
        match self {
            Ty::Pred => 1,
            Ty::B(n) | Ty::U(n) | Ty::S(n) | Ty::F(n) => u32::from(n) / 8,
            Ty::F16x2 | Ty::Bf16x2 => 4,
        }
    }

    /// Whether one value of the type is two scalar memory operations (8.2.5).
    pub fn packed(self) -> bool {
        matches!(self, Ty::F16x2 | Ty::Bf16x2)
    }
}

/// Order of a plain load. `Volatile` is relaxed.sys plus rules (8.4.2), `Mmio` is strong .sys (8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadOrder {
    /// `.weak` or no qualifier.
    Weak,
    /// `.relaxed.scope`
    Relaxed(Scope),
    /// `.acquire.scope`
    Acquire(Scope),
    /// `.volatile`
    Volatile,
    /// `.mmio.relaxed.sys`
    MmioRelaxed,
    /// `.mmio.acquire.sys` (9.3)
    MmioAcquire,
    /// `.seq_cst.scope`: source programs only, not in PTX.
    SeqCst(Scope),
}

/// Order of a plain store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreOrder {
    /// `.weak` or no qualifier.
    Weak,
    /// `.relaxed.scope`
    Relaxed(Scope),
    /// `.release.scope`
    Release(Scope),
    /// `.volatile`
    Volatile,
    /// `.mmio.relaxed.sys`
    MmioRelaxed,
    /// `.mmio.release.sys` (accepted by the assembler, see the digest section 2)
    MmioRelease,
    /// `.seq_cst.scope`: source programs only, not in PTX.
    SeqCst(Scope),
}

/// Order of `atom` and `red` (no `.acquire` on `red`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RmwOrder {
    /// Default.
    Relaxed,
    /// Read half acquires.
    Acquire,
    /// Write half releases.
    Release,
    /// Both.
    AcqRel,
    /// Both, and sequentially consistent: source programs only, not in PTX.
    SeqCst,
}

/// Order of a memory fence. `membar` reads as `Sc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FenceOrder {
    /// `fence.acquire`
    Acquire,
    /// `fence.release`
    Release,
    /// `fence.acq_rel`
    AcqRel,
    /// `fence.sc`
    Sc,
}

/// Arithmetic of `atom`/`red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the PTX mnemonics")]
pub enum AtomOp {
    Add,
    /// Not PTX; the Dat3M dialect has it.
    Sub,
    And,
    Or,
    Xor,
    Min,
    Max,
    /// Wrapping increment: `old >= b ? 0 : old + 1`.
    Inc,
    /// Wrapping decrement: `old == 0 || old > b ? b : old - 1`.
    Dec,
    Exch,
    Cas,
}

/// Register arithmetic, at the width and signedness of the instruction's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the PTX mnemonics")]
pub enum AluOp {
    Add,
    Sub,
    /// `mul.lo`
    Mul,
    /// Division; by zero gives 0.
    Div,
    /// Remainder; by zero gives 0.
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Min,
    Max,
}

/// Comparison, at the type of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the PTX mnemonics")]
pub enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Form of `bar`/`barrier.cta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarKind {
    /// Arrives and waits.
    Sync,
    /// Arrives only.
    Arrive,
    /// Arrives, waits, and combines a predicate over the participants into `dst`.
    Red {
        /// `.popc`, `.and`, `.or`.
        op: BarRed,
        /// Receives the combination.
        dst: Reg,
        /// This thread's predicate.
        pred: Guard,
    },
}

/// Combination of `bar.red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the PTX mnemonics")]
pub enum BarRed {
    Popc,
    And,
    Or,
}

/// Which proxies a `fence.proxy.*` connects with the generic proxy (fence section; 8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProxyFence {
    /// `fence.proxy.alias`: between virtual aliases, both directions.
    Alias,
    /// Paper-only (ISCA 2022): texture, surface, constant; both directions. Also `fence.proxy.async`.
    Of(Proxy),
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// `mov`
    Mov {
        /// Type.
        ty: Ty,
        /// Destination.
        dst: Reg,
        /// Source.
        src: Operand,
    },
    /// Two-operand arithmetic.
    Alu {
        /// Operation.
        op: AluOp,
        /// Type.
        ty: Ty,
        /// Destination.
        dst: Reg,
        /// Left.
        a: Operand,
        /// Right.
        b: Operand,
    },
    /// `setp`
    Setp {
        /// Comparison.
        op: CmpOp,
        /// Type.
        ty: Ty,
        /// Destination predicate.
        dst: Reg,
        /// Left.
        a: Operand,
        /// Right.
        b: Operand,
    },
    /// `selp`: `dst = p ? a : b`
    Selp {
        /// Type.
        ty: Ty,
        /// Destination.
        dst: Reg,
        /// When true.
        a: Operand,
        /// When false.
        b: Operand,
        /// The predicate register.
        p: Reg,
    },
    /// `ld`, `tld`, `suld`, `ldc`; `dst.len()` is the vector length (1, 2, 4, 8).
    Load {
        /// Order and scope.
        order: LoadOrder,
        /// Access path.
        proxy: Proxy,
        /// State space qualifier.
        space: Space,
        /// Element type.
        ty: Ty,
        /// One register an element.
        dst: Vec<Reg>,
        /// Where.
        addr: Address,
    },
    /// `st`, `sust`; `src.len()` is the vector length.
    Store {
        /// Order and scope.
        order: StoreOrder,
        /// Access path.
        proxy: Proxy,
        /// State space qualifier.
        space: Space,
        /// Element type.
        ty: Ty,
        /// Where.
        addr: Address,
        /// One operand an element.
        src: Vec<Operand>,
    },
    /// `atom` (`dst` present), `red` (`dst` absent and `red` true), `suatom`, `sured`.
    Rmw {
        /// Written as `red`: the read half heads no acquire pattern (8.8).
        red: bool,
        /// Order.
        order: RmwOrder,
        /// Scope.
        scope: Scope,
        /// Access path.
        proxy: Proxy,
        /// State space qualifier.
        space: Space,
        /// Arithmetic.
        op: AtomOp,
        /// Type.
        ty: Ty,
        /// Old value.
        dst: Option<Reg>,
        /// Where.
        addr: Address,
        /// Operand; for `Cas` the value compared with.
        a: Operand,
        /// For `Cas` the new value; otherwise absent.
        b: Option<Operand>,
    },
    /// `fence`, `membar`
    Fence {
        /// Order.
        order: FenceOrder,
        /// Scope.
        scope: Scope,
    },
    /// `fence.proxy.*`; several kinds in one instruction act at once (mixedproxy dialect).
    ProxyFence(Vec<ProxyFence>),
    /// `bar`, `barrier.cta`
    Bar {
        /// Form.
        kind: BarKind,
        /// Barrier number.
        id: Operand,
        /// Threads expected; absent: all threads of the CTA.
        count: Option<Operand>,
        /// Dat3M dialect: static instance number; only equal instances meet (FORMATS.md 3.1).
        instance: Option<u32>,
    },
    /// `barrier.cluster.arrive`
    ClusterArrive {
        /// `.relaxed` (Q5) instead of `.release`.
        relaxed: bool,
    },
    /// `barrier.cluster.wait`
    ClusterWait,
    /// `bar.warp.sync mask`
    WarpSync {
        /// Lanes taking part.
        mask: Operand,
    },
    /// `multimem.ld_reduce`
    MultimemLoad {
        /// Order (weak, relaxed, acquire).
        order: LoadOrder,
        /// Reduction of the values read.
        op: AtomOp,
        /// Type.
        ty: Ty,
        /// Destination.
        dst: Reg,
        /// Multimem address.
        addr: Address,
    },
    /// `multimem.st`
    MultimemStore {
        /// Order (weak, relaxed, release).
        order: StoreOrder,
        /// Type.
        ty: Ty,
        /// Multimem address.
        addr: Address,
        /// Value.
        src: Operand,
    },
    /// `multimem.red`
    MultimemRed {
        /// Order (relaxed, release).
        order: RmwOrder,
        /// Scope.
        scope: Scope,
        /// Arithmetic.
        op: AtomOp,
        /// Type.
        ty: Ty,
        /// Multimem address.
        addr: Address,
        /// Operand.
        src: Operand,
    },
    /// `mbarrier.*`
    Mbarrier(Mbarrier),
    /// `fence.mbarrier_init.release.cluster`
    MbarrierInitFence,
    /// `mapa`: the address that names, in the CTA of a rank of the cluster, what `src` names here. The rank of a CTA
    /// is its position among the CTAs of its cluster that have threads, by number.
    Mapa {
        /// Type of the address.
        ty: Ty,
        /// `.shared::cluster` instead of generic.
        shared: bool,
        /// Destination.
        dst: Reg,
        /// Address of shared memory.
        src: Operand,
        /// Rank of the CTA.
        rank: Operand,
    },
    /// `tcgen05.*`
    Tcgen05(Tcgen05),
    /// `cp.async*`, `st.async`, `red.async`
    AsyncCopy(AsyncCopy),
    /// `wgmma.*`
    Wgmma(Wgmma),
    /// Fences of the async and tensormap proxies with a space, a direction or a range; `tensormap.*`
    ProxyOrder(ProxyOrder),
    /// Memory instructions of a tile block, and tokens.
    Tile(TileOp),
    /// `elect`, launch control, instructions without a meaning here.
    Control(Control),
    /// Instructions that the book tells alone.
    Book(Book),
    /// `bra`
    Bra {
        /// Index into `body`.
        target: usize,
    },
    /// `exit`, `ret`
    Exit,
}

/// A question about the final states.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// Empty unless the text names it (mixedproxy `as name`).
    pub name: String,
    /// How the expression is quantified over complete executions.
    pub quantifier: Quantifier,
    /// The expression.
    pub expr: Expr,
}

/// Quantifier of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantifier {
    /// Some complete execution satisfies it.
    Exists,
    /// No complete execution satisfies it.
    NotExists,
    /// Every complete execution satisfies it.
    ForAll,
}

/// Boolean expression over a final state. The order of the variants is that of operands in a canonical program, and so part of
/// every id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expr {
    /// Constant.
    Bool(bool),
    /// Negation.
    Not(Box<Expr>),
    /// Conjunction, at least one member.
    And(Vec<Expr>),
    /// Disjunction, at least one member.
    Or(Vec<Expr>),
    /// Comparison of 64-bit signed values (8-, 16- and 32-bit registers and memory are sign-extended).
    Cmp(CmpOp, Term, Term),
}

/// A leaf of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// Final value of a register.
    Reg(ThreadId, Reg),
    /// Final content of memory.
    Mem {
        /// Through this name.
        symbol: SymbolId,
        /// Bytes from its start.
        offset: u32,
        /// How many bytes, little endian (1, 2, 4, 8).
        bytes: u8,
        /// For `.shared` objects: which CTA's copy, as the index of a thread in that CTA.
        thread: Option<ThreadId>,
    },
    /// A number.
    Const(i64),
}
