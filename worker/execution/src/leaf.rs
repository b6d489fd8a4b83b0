//! What both engines say about a finished execution: its key, how it ended, and the final states it allows.
//!
//! Two executions are the same iff their keys are equal. A key holds:
//!
//! - for every thread, how it ended;
//! - `rf`, byte by byte;
//! - coherence between overlapping non-initial writes;
//! - the phase of every barrier event and mbarrier operation (for a wait: the phase that was current when it asked).
//!
//! A key does not hold:
//!
//! - `sync_fence`, because it is existential (see `moire_cat::eval`);
//! - failed spin iterations. They are not events. This loses no outcome, because removing events only removes constraints;
//! - an order of the arrivals in one phase of a barrier or an mbarrier. (Arrivals that `red` counts in awaited memory are
//!   writes and have their coherence order.)

use moire_program::ir::{
    AluOp, CmpOp, Content, Expr, ObjectId, Op, Placement, Program, Reg, Space, Term, ThreadId, TileOp, Ty,
    Value,
};
use moire_program::{fence_op, jump_op};
use std::collections::BTreeSet;

/// Identity of an event, the same in both engines: its thread, and its position in the path of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventRef {
    /// Thread, or [`EventRef::INIT`].
    pub thread: u16,
    /// Number of events of the thread before it; 0 for initial writes.
    pub index: u16,
}

impl EventRef {
    /// The thread of initial writes.
    pub const INIT: u16 = u16::MAX;
    /// An initial write.
    pub fn init() -> Self {
        EventRef { thread: Self::INIT, index: 0 }
    }
}

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Reached its exit.
    Done,
    /// Waits at the barrier event of this index.
    Barrier(u16),
    /// Spins for ever. This many events precede the loop iteration that it never leaves.
    Spin(u16),
}

/// Consecutive bytes that a read takes from one write: (read, instance, first byte, number of bytes, source).
pub type RfRun = (EventRef, u16, u32, u32, EventRef);

/// The key of an execution. Every list is sorted and has no duplicates; runs of bytes are maximal.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafKey {
    /// How each thread ended.
    pub ends: Vec<End>,
    /// Reads-from.
    pub rf: Vec<RfRun>,
    /// All pairs of coherence (transitively closed).
    pub co: Vec<(EventRef, EventRef)>,
    /// The phase of each barrier event and mbarrier operation.
    pub phases: Vec<(EventRef, u16)>,
}

impl LeafKey {
    /// Joins neighbouring runs with one source and sorts everything.
    pub fn normalise(mut self) -> Self {
        self.rf.sort_unstable();
        let mut runs: Vec<RfRun> = Vec::with_capacity(self.rf.len());
        for run in self.rf {
            match runs.last_mut() {
                Some(last)
                    if (last.0, last.1, last.4) == (run.0, run.1, run.4) && last.2 + last.3 == run.2 =>
                {
                    last.3 += run.3
                }
                _ => runs.push(run),
            }
        }
        self.rf = runs;
        self.co.sort_unstable();
        self.phases.sort_unstable();
        self
    }
}

/// Complete, or stuck for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeafKind {
    /// Every thread reached its exit.
    Complete,
    /// Some thread waits for ever.
    Blocked,
}

/// A final state: every register of every thread and the bytes of every memory instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalState {
    /// By thread, then register.
    pub regs: Vec<Vec<Value>>,
    /// By instance of [`instances`].
    pub memory: Memory,
}

/// Content by instance of [`instances`].
pub type Memory = Vec<Content>;

/// The observable part of a final state: registers that loads and atomics write, and all memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome {
    /// Values of [`observed_registers`], in that order.
    pub regs: Vec<Value>,
    /// By instance.
    pub memory: Memory,
}

/// Everything that is compared between two engines about one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafFacts {
    /// Identity.
    pub key: LeafKey,
    /// How it ended.
    pub kind: LeafKind,
    /// Final states; empty when blocked.
    pub outcomes: BTreeSet<Outcome>,
    /// Names of the flags the model raises.
    pub flags: BTreeSet<String>,
}

/// One copy of an object. A `.shared` object has one for each CTA, any other object has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// The object.
    pub object: ObjectId,
    /// For `.shared`: the first thread of the CTA that owns the copy.
    pub owner: Option<ThreadId>,
}

/// All memory of a program, in a fixed order.
pub fn instances(program: &Program) -> Vec<Instance> {
    let mut out = Vec::new();
    for (o, object) in program.objects.iter().enumerate() {
        let object_id = ObjectId::at(o);
        if object.space == Space::SharedCta {
            for owner in cta_leaders(program) {
                out.push(Instance { object: object_id, owner: Some(owner) });
            }
        } else {
            out.push(Instance { object: object_id, owner: None });
        }
    }
    out
}

/// The first thread of each CTA.
pub fn cta_leaders(program: &Program) -> Vec<ThreadId> {
    let place = |t: usize| -> &Placement { &program.threads[t].place };
    (0..program.threads.len())
        .filter(|t| (0..*t).all(|s| !place(s).same_cta(place(*t))))
        .map(ThreadId::at)
        .collect()
}

/// The observable registers: those that loads and atomics write, by thread and number.
pub fn observed_registers(program: &Program) -> Vec<(ThreadId, Reg)> {
    let mut out = BTreeSet::new();
    for (t, thread) in program.threads.iter().enumerate() {
        let t = ThreadId::at(t);
        for instr in &thread.body {
            if let Op::Load { dst, .. } = &instr.op {
                out.extend(dst.iter().map(|r| (t, *r)));
            } else if let Op::Rmw { dst: Some(dst), .. } | Op::MultimemLoad { dst, .. } = &instr.op {
                out.insert((t, *dst));
            } else if let Op::Tile(TileOp::Access(a)) = &instr.op {
                out.extend(a.elements.iter().filter_map(|e| Some((t, e.dst?))));
            }
        }
    }
    out.into_iter().collect()
}

/// Registers of a thread that are observable or named in a condition.
pub fn seen_registers(program: &Program, thread: usize) -> BTreeSet<Reg> {
    let all = observed_registers(program).into_iter().chain(asked(program).registers);
    all.filter(|(t, _)| t.index() == thread).map(|(_, r)| r).collect()
}

/// Registers and objects that the conditions of a program name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Registers.
    pub registers: BTreeSet<(ThreadId, Reg)>,
    /// Memory.
    pub objects: BTreeSet<ObjectId>,
}

/// Registers and objects that the conditions and the filter of a program name.
pub fn asked(program: &Program) -> Asked {
    let mut out = Asked::default();
    let mut todo: Vec<&Expr> = program.conditions.iter().map(|c| &c.expr).chain(&program.filter).collect();
    while let Some(e) = todo.pop() {
        match e {
            Expr::Bool(_) => {}
            Expr::Not(e) => todo.push(e),
            Expr::And(es) | Expr::Or(es) => todo.extend(es),
            Expr::Cmp(_, a, b) => {
                for term in [a, b] {
                    match term {
                        Term::Reg(t, r) => out.registers.extend([(*t, *r)]),
                        Term::Mem { symbol, .. } => {
                            out.objects.extend([program.symbols[symbol.index()].object]);
                        }
                        Term::Const(_) => {}
                    }
                }
            }
        }
    }
    out
}

impl FinalState {
    /// The observable part of the state.
    pub fn outcome(&self, observed: &[(ThreadId, Reg)]) -> Outcome {
        let regs = observed.iter().map(|(t, r)| self.regs[t.index()][r.index()]).collect();
        Outcome { regs, memory: self.memory.clone() }
    }

    /// Whether the state satisfies `expr`.
    pub fn satisfies(&self, program: &Program, expr: &Expr) -> bool {
        match expr {
            Expr::Bool(b) => *b,
            Expr::Not(e) => !self.satisfies(program, e),
            Expr::And(es) => es.iter().all(|e| self.satisfies(program, e)),
            Expr::Or(es) => es.iter().any(|e| self.satisfies(program, e)),
            Expr::Cmp(op, a, b) => {
                let ((a, wa), (b, wb)) = (self.term(program, *a), self.term(program, *b));
                let bits = wa.min(wb);
                compare(*op, sign_extend(a, bits), sign_extend(b, bits))
            }
        }
    }

    /// Value of a term and its width in bits (64 for constants).
    fn term(&self, program: &Program, term: Term) -> (Value, u32) {
        match term {
            #[expect(clippy::cast_sign_loss, reason = "a bit pattern is wanted")]
            Term::Const(c) => (Value::from(c as u64), 64),
            Term::Reg(t, r) => (self.regs[t.index()][r.index()], register_bits(program, t, r)),
            Term::Mem { symbol, offset, bytes, thread } => {
                let object = program.symbols[symbol.index()].object;
                let all = instances(program);
                let place = |t: ThreadId| &program.threads[t.index()].place;
                let owner = |i: &Instance| match (i.owner, thread) {
                    (Some(o), Some(t)) => place(o).same_cta(place(t)),
                    _ => true,
                };
                let at = all.iter().position(|i| i.object == object && owner(i)).unwrap_or(0);
                (self.memory[at].value(offset, bytes.into()), u32::from(bytes) * 8)
            }
        }
    }
}

/// The low `bits` of `value`, sign-extended to 128.
pub fn sign_extend(value: Value, bits: u32) -> i128 {
    let shift = 128 - bits.clamp(1, 128);
    #[expect(clippy::cast_possible_wrap, reason = "reinterpretation is the point")]
    let signed = (value << shift) as i128;
    signed >> shift
}

/// The low `bits` of `value`.
pub fn truncate(value: Value, bits: u32) -> Value {
    if bits >= 128 { value } else { value & ((1 << bits) - 1) }
}

/// Compares two signed numbers.
pub fn compare(op: CmpOp, a: i128, b: i128) -> bool {
    match op {
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
    }
}

/// Width of a register in bits: that of the widest type written to it, 64 if nothing is.
pub fn register_bits(program: &Program, thread: ThreadId, reg: Reg) -> u32 {
    let mut widest = 0;
    for instr in &program.threads[thread.index()].body {
        let (ty, writes) = match &instr.op {
            Op::Mov { dst, ty, .. } | Op::Alu { dst, ty, .. } | Op::Selp { dst, ty, .. } => {
                (*ty, *dst == reg)
            }
            Op::Setp { dst, .. } => (Ty::Pred, *dst == reg),
            Op::Load { dst, ty, .. } => (*ty, dst.contains(&reg)),
            Op::Rmw { dst, ty, .. } => (*ty, *dst == Some(reg)),
            Op::MultimemLoad { dst, ty, .. } => (*ty, *dst == reg),
            Op::Tile(TileOp::Access(a)) => (a.ty, a.elements.iter().any(|e| e.dst == Some(reg))),
            // What these write has as many bits as the register, or is a predicate or a token.
            Op::Tile(_) | Op::Mapa { .. } | Op::Mbarrier(_) | Op::Bar { .. } | Op::Control(_) => continue,
            Op::Tcgen05(_) | Op::Wgmma(_) => continue,
            Op::Store { .. } | Op::MultimemStore { .. } | Op::MultimemRed { .. } | Op::AsyncCopy(_) => {
                continue;
            }
            fence_op!() => continue,
            Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } | jump_op!() => {
                continue;
            }
            Op::Book(_) => continue,
        };
        widest = widest.max(if writes { ty.bytes() * 8 } else { 0 });
    }
    if widest == 0 { 64 } else { widest.min(64) }
}

/// Register arithmetic at the width and sign of `ty`; division by zero gives 0.
pub fn arithmetic(op: AluOp, ty: Ty, a: Value, b: Value) -> Value {
    let bits = ty.bytes() * 8;
    let signed = matches!(ty, Ty::S(_));
    let (ua, ub) = (truncate(a, bits), truncate(b, bits));
    let (sa, sb) = if signed { (sign_extend(a, bits), sign_extend(b, bits)) } else { (0, 0) };
    #[expect(clippy::cast_sign_loss, reason = "the result is a bit pattern")]
    let back = |v: i128| v as Value;
    let shift = u32::try_from(ub).unwrap_or(u32::MAX);
    let result = match op {
        AluOp::Add => ua.wrapping_add(ub),
        AluOp::Sub => ua.wrapping_sub(ub),
        AluOp::Mul => ua.wrapping_mul(ub),
        AluOp::Div if signed => back(sa.checked_div(sb).unwrap_or(0)),
        AluOp::Div => ua.checked_div(ub).unwrap_or(0),
        AluOp::Rem if signed => back(sa.checked_rem(sb).unwrap_or(0)),
        AluOp::Rem => ua.checked_rem(ub).unwrap_or(0),
        AluOp::And => ua & ub,
        AluOp::Or => ua | ub,
        AluOp::Xor => ua ^ ub,
        AluOp::Shl => ua.checked_shl(shift).unwrap_or(0),
        AluOp::Shr if signed => back(sa.checked_shr(shift.min(127)).unwrap_or(0)),
        AluOp::Shr => ua.checked_shr(shift).unwrap_or(0),
        AluOp::Min if signed => back(sa.min(sb)),
        AluOp::Max if signed => back(sa.max(sb)),
        AluOp::Min => ua.min(ub),
        AluOp::Max => ua.max(ub),
    };
    truncate(result, bits)
}

/// Memory before the first instruction.
pub fn initial_memory(program: &Program) -> Memory {
    instances(program).iter().map(|i| program.objects[i.object.index()].init.clone()).collect()
}

/// The phase of an mbarrier operation in a key, as one number: `era` counts `init` and `inval` before it, `level` the phases
/// since the last of them.
pub fn mbarrier_phase(era: u16, level: u16) -> u16 {
    era.saturating_mul(1_024).saturating_add(level)
}

/// An instruction, by thread and line of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Index of the thread.
    pub thread: u16,
    /// 1-based; 0 when generated.
    pub line: u32,
}

/// A flag raised in some execution, and the instructions it names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finding {
    /// Name of the flag.
    pub flag: String,
    /// The instructions, in order. Empty if the flag names no events.
    pub places: Vec<Place>,
}

/// Flags that the engines raise in addition to those of the model.
pub mod flag {
    /// More arrivals in a phase than it expects.
    pub const OVERARRIVAL: &str = "protocol-overarrival";
    /// A lane executes an instruction whose mask of lanes leaves it out.
    pub const MASK: &str = "undefined-mask";
    /// More threads arrive at a barrier at once than its count.
    pub const BARRIER_COUNT: &str = "protocol-barrier-count";
    /// A thread arrives at the cluster barrier again and has not waited for its last arrival.
    pub const CLUSTER_AGAIN: &str = "protocol-cluster-arrives-twice";
    /// A thread waits at the cluster barrier and has not arrived.
    pub const CLUSTER_WAIT: &str = "protocol-cluster-waits-unarrived";
    /// An arrival with `.noComplete` completes its phase.
    pub const NO_COMPLETE: &str = "protocol-no-complete";
    /// A count out of range.
    pub const RANGE: &str = "protocol-range";
    /// Several lanes of a warp each initialise, or each invalidate, the same mbarrier.
    pub const REPEATED: &str = "lifetime-repeated";
    /// An instruction form for objects of the own CTA is used on an object of another CTA.
    pub const TARGET: &str = "protocol-target";
    /// `tcgen05.ld` or `st` accesses lanes that belong to another warp.
    pub const LANES: &str = "protocol-lanes";
    /// An access leaves the allocation that its tensor memory address belongs to.
    pub const COLUMNS: &str = "lifetime-columns";
    /// A register of a pending warpgroup product is read or written, or a product uses a register without the
    /// `wgmma.fence` it needs.
    pub const REGISTERS: &str = "register-race";
    /// `tcgen05.alloc` or `dealloc` of a number of columns that no allocation has.
    pub const COUNT: &str = "protocol-columns";
    /// Several lanes execute mma, cp, shift or commit, and each issues a whole operation.
    pub const ISSUE: &str = "protocol-issue-granularity";
    /// Only some lanes of a warp execute an instruction that the whole warp must execute.
    pub const CONVERGED: &str = "protocol-converged";
    /// A CTA exits while columns are allocated.
    pub const LEAK: &str = "protocol-leak";
    /// `tcgen05.dealloc` with another address or count than the allocation.
    pub const DEALLOC: &str = "protocol-dealloc";
    /// Tensor memory that is not allocated is accessed or deallocated.
    pub const UNALLOCATED: &str = "lifetime-unallocated";
    /// An operation on an object outside its life.
    pub const OUTSIDE: &str = "lifetime-outside";
}

/// A thread that waits at an mbarrier for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The thread.
    pub thread: usize,
    /// The memory the mbarrier lies in.
    pub object: ObjectId,
    /// First thread of the CTA whose copy it is.
    pub owner: Option<ThreadId>,
    /// Byte offset of the mbarrier in the object.
    pub offset: u32,
    /// Whether an mbarrier is initialised there.
    pub valid: bool,
    /// Its current phase.
    pub phase: usize,
    /// Arrivals still missing.
    pub pending: u64,
    /// Transactions expected and not completed, less those completed and not expected.
    pub tx: i64,
}

/// A thread that waits for an allocator of tensor memory for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnStall {
    /// The thread.
    pub thread: usize,
    /// Line of the instruction.
    pub line: u32,
    /// Columns it wants; 0 for `relinquish`.
    pub columns: u32,
    /// Columns that are allocated to others.
    pub taken: u32,
    /// Whether it waits because the other CTA of the pair never executes the instruction.
    pub alone: bool,
}

/// One execution in full, for people: events and the edges between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Initial writes first.
    pub events: Vec<WitnessEvent>,
    /// Kind (`rf`, `co`, `rmw`, `syncbar`, `sync_fence`), from, to: positions in `events`.
    pub edges: Vec<(String, usize, usize)>,
}

/// An event of a [`Witness`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessEvent {
    /// Identity.
    pub event: EventRef,
    /// Line of the program text; 0 for initial writes and generated programs.
    pub line: u32,
    /// `R`, `W`, `F`, `B`, `M` (mbarrier), `A` (allocator), `init`, `exit`; `issue` of an asynchronous instruction, and what it
    /// does then: `tmem`, `async R`, `async W`, `async M`.
    pub kind: String,
    /// Object and offset of an access.
    pub location: Option<String>,
    /// Value read or written.
    pub value: Option<u64>,
}
