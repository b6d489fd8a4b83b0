//! The parts of a source program.

use moire_program::ir::{AtomOp, Placement, Quantifier, Scope};

/// A program of a few threads that communicate through objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// A title without a meaning.
    pub name: String,
    /// Memory. Steps and conditions name an object by its position.
    pub objects: Vec<Object>,
    /// The threads, named `P0`, `P1`, .. by their position.
    pub threads: Vec<Thread>,
    /// A question about the final states.
    pub condition: Option<Condition>,
}

/// The state space of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Global memory, accessed through a pointer to global memory.
    Global,
    /// Global memory, accessed through a generic pointer.
    Generic,
    /// Shared memory: each CTA has its own.
    Shared,
}

/// A variable in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Unique among objects.
    pub name: String,
    /// Where it lives and how it is accessed.
    pub space: Space,
    /// Width in bits: 8, 16, 32, 64 or 128.
    pub bits: u8,
    /// The value at the start. Zero in shared memory.
    pub init: u64,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Where it runs: GPU, cluster and CTA. The rest of the placement has its default.
    pub place: Placement,
    /// Registers, zero at the start. Steps name a register by its position.
    pub registers: Vec<Register>,
    /// The code.
    pub body: Vec<Step>,
}

impl Thread {
    /// All steps in the order of the text, an `if` before its arm.
    pub fn steps(&self) -> Vec<&Step> {
        let mut all = Vec::new();
        crate::walk::each(&self.body, &mut |step| all.push(step));
        all
    }
}

/// A local variable of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Unique in its thread.
    pub name: String,
    /// Width in bits, that of every object it is loaded from.
    pub bits: u8,
}

/// A memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// `relaxed`
    Relaxed,
    /// `acquire`
    Acquire,
    /// `release`
    Release,
    /// `acq_rel`
    AcqRel,
    /// `seq_cst`
    SeqCst,
}

impl Order {
    /// All orders, weaker ones first.
    pub const ALL: [Order; 5] =
        [Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel, Order::SeqCst];

    /// The name in texts.
    pub fn word(self) -> &'static str {
        match self {
            Order::Relaxed => "relaxed",
            Order::Acquire => "acquire",
            Order::Release => "release",
            Order::AcqRel => "acq_rel",
            Order::SeqCst => "seq_cst",
        }
    }

    /// Whether a read of this order acquires.
    pub fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::SeqCst)
    }

    /// Whether a write of this order releases.
    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }
}

/// How a load or a store accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Not atomic: a race with it leaves the program undefined.
    Plain,
    /// Atomic.
    Atomic {
        /// `relaxed`, `acquire` or `seq_cst` of a load; `relaxed`, `release` or `seq_cst` of a store.
        order: Order,
        /// Threads for which it is atomic.
        scope: Scope,
        /// Also volatile, which has no meaning in the model.
        volatile: bool,
    },
}

/// A value that is stored, or an operand of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A register, by position.
    Register(usize),
}

/// An atomic read-modify-write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Receives the old value; without it the result is unused.
    pub dst: Option<usize>,
    /// `add`, `and`, `or`, `xor`, `min` and `max` (unsigned), or `exch`.
    pub op: AtomOp,
    /// The object.
    pub object: usize,
    /// The operand.
    pub value: Value,
    /// The order.
    pub order: Order,
    /// The scope.
    pub scope: Scope,
}

/// A strong compare-exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Receives the old value.
    pub dst: usize,
    /// The object.
    pub object: usize,
    /// The value compared with.
    pub expected: u64,
    /// The value written on success.
    pub desired: Value,
    /// The order on success.
    pub success: Order,
    /// The order on failure: `relaxed`, `acquire` or `seq_cst`.
    pub failure: Order,
    /// The scope.
    pub scope: Scope,
}

/// One step of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `r = load..`
    Load {
        /// The register.
        dst: usize,
        /// The object.
        object: usize,
        /// How.
        access: Access,
    },
    /// `store.. x, v`
    Store {
        /// The object.
        object: usize,
        /// The value.
        value: Value,
        /// How.
        access: Access,
    },
    /// `r = add.. x, v`
    Update(Update),
    /// `r = cas.. x, old, new`
    Cas(Exchange),
    /// `fence..`
    Fence {
        /// Not `relaxed`.
        order: Order,
        /// The scope.
        scope: Scope,
    },
    /// `if r == n { .. }`
    If {
        /// The register.
        register: usize,
        /// The number it is compared with.
        equals: u64,
        /// Runs if they are equal.
        then: Vec<Step>,
    },
}

impl Step {
    /// The object it accesses.
    pub fn object(&self) -> Option<usize> {
        match self {
            Step::Load { object, .. } | Step::Store { object, .. } => Some(*object),
            Step::Update(u) => Some(u.object),
            Step::Cas(c) => Some(c.object),
            Step::Fence { .. } | Step::If { .. } => None,
        }
    }

    /// The register it writes.
    pub fn dst(&self) -> Option<usize> {
        match self {
            Step::Load { dst, .. } => Some(*dst),
            Step::Update(u) => u.dst,
            Step::Cas(c) => Some(c.dst),
            Step::Store { .. } | Step::Fence { .. } | Step::If { .. } => None,
        }
    }
}

/// A question about the final states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether some, no or each execution satisfies the expression.
    pub quantifier: Quantifier,
    /// The expression.
    pub expr: Expr,
}

/// A boolean expression over a final state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A value at the end.
    Is(Term, u64),
    /// Negation.
    Not(Box<Expr>),
    /// Conjunction, at least one member.
    And(Vec<Expr>),
    /// Disjunction, at least one member.
    Or(Vec<Expr>),
}

/// A value at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// A register of a thread, both by position.
    Register(usize, usize),
    /// A global object, by position.
    Object(usize),
}
