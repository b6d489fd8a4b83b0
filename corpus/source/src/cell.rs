//! Cells: an operation with its orders, a scope, a width and a space, and the programs that tell whether a compiler keeps them.
//!
//! Such a program is a classic litmus test in which the cell stands where its order is needed: nothing else orders its thread. The
//! other threads have relaxed accesses with `seq_cst` fences between them, or `seq_cst` exchanges, because some compilers take
//! no fences. Order among sequentially consistent accesses needs a second one; it stands beside the cell in its thread.
//!
//! A compiler may refuse a partner, and something weaker stands in its place then. So a program says that an order is kept only if more
//! could happen with a relaxed cell ([`Told::relaxed`]).

use crate::form;
use crate::syntax::{Access, Exchange, Object, Order, Register, Source, Space, Step, Thread, Update, Value};
use moire_program::ir::{AtomOp, Placement, Scope};

/// An operation and its orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A load.
    Load(Order),
    /// A store.
    Store(Order),
    /// A read-modify-write, and whether its result is used.
    Update(AtomOp, Order, bool),
    /// A compare-exchange: on success, on failure.
    Cas(Order, Order),
    /// A fence.
    Fence(Order),
}

/// What a compiler selects instructions for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// The operation.
    pub operation: Operation,
    /// The threads for which it is atomic.
    pub scope: Scope,
    /// The width in bits; 32 of a fence.
    pub bits: u8,
    /// The space; global of a fence.
    pub space: Space,
}

/// The widths of objects.
const WIDTHS: [u8; 5] = [8, 16, 32, 64, 128];
/// The operations of read-modify-writes.
const UPDATES: [AtomOp; 7] =
    [AtomOp::Add, AtomOp::Exch, AtomOp::And, AtomOp::Or, AtomOp::Xor, AtomOp::Min, AtomOp::Max];
/// A value that no object holds.
const NEVER: u64 = 7;

/// All cells.
pub fn all() -> Vec<Cell> {
    use Order::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    let loads = [Relaxed, Acquire, SeqCst];
    let mut operations: Vec<Operation> = loads.map(Operation::Load).to_vec();
    operations.extend([Relaxed, Release, SeqCst].map(Operation::Store));
    for op in UPDATES {
        operations.extend(Order::ALL.map(|order| Operation::Update(op, order, true)));
    }
    for op in [AtomOp::Add, AtomOp::Exch] {
        operations.extend(Order::ALL.map(|order| Operation::Update(op, order, false)));
    }
    operations
        .extend(Order::ALL.iter().flat_map(|success| loads.map(|failure| Operation::Cas(*success, failure))));
    operations.extend([Acquire, Release, AcqRel, SeqCst].map(Operation::Fence));
    operations.into_iter().flat_map(of).collect()
}

/// The cells of an operation.
fn of(operation: Operation) -> Vec<Cell> {
    let fence = matches!(operation, Operation::Fence(_));
    let fits = |cell: &Cell| match operation {
        Operation::Fence(_) => cell.bits == 32 && cell.space == Space::Global,
        // Only loads, stores and exchanges of 128 bits are atomic, and both orders of a compare-exchange read alike.
        Operation::Update(op, ..) if cell.bits == 128 => op == AtomOp::Exch,
        Operation::Cas(success, failure) if cell.bits == 128 => {
            success.acquires() == failure.acquires()
                && (success == Order::SeqCst) == (failure == Order::SeqCst)
        }
        _ => true,
    };
    let spaces = [Space::Global, Space::Generic, Space::Shared];
    let scopes = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];
    let all = scopes.into_iter().flat_map(|scope| {
        // Shared memory is of one CTA, where a wider scope adds nothing.
        let here = move |space: &Space| {
            (*space != Space::Shared || scope == Scope::Cta) && !(fence && *space != Space::Global)
        };
        let spaces = spaces.into_iter().filter(here);
        spaces.flat_map(move |space| WIDTHS.map(|bits| Cell { operation, scope, bits, space }))
    });
    all.filter(fits).collect()
}

/// A part of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A relaxed load.
    R(usize),
    /// A relaxed store.
    W(usize, u64),
    /// A `seq_cst` load.
    Rsc(usize),
    /// A `seq_cst` store.
    Wsc(usize, u64),
    /// A `seq_cst` exchange, which reads.
    Xr(usize),
    /// A `seq_cst` exchange, which writes.
    Xw(usize, u64),
    /// A `seq_cst` fence.
    F,
    /// The cell, which reads what others have written.
    Read(usize),
    /// The cell, which fails to exchange what others have written.
    Fail(usize),
    /// The cell, which writes 1.
    Write(usize),
    /// The cell, a fence.
    Fence,
}

use Part::{F, Fail, Fence, R, Read, Rsc, W, Write, Wsc, Xr, Xw};

/// A litmus test with its name.
type Test = (&'static str, &'static [&'static [Part]]);

const READS: [Test; 7] = [
    ("mp", &[&[W(0, 1), F, W(1, 1)], &[Read(1), R(0)]]),
    ("lb", &[&[R(0), F, W(1, 1)], &[Read(1), W(0, 1)]]),
    ("corr", &[&[W(0, 1)], &[Read(0), R(0)]]),
    ("sb", &[&[Wsc(0, 1), Read(1)], &[W(1, 1), F, R(0)]]),
    ("mp", &[&[W(0, 1), Xw(1, 1)], &[Read(1), R(0)]]),
    ("lb", &[&[R(0), Xw(1, 1)], &[Read(1), W(0, 1)]]),
    ("sb", &[&[Wsc(0, 1), Read(1)], &[Xw(1, 1), Rsc(0)]]),
];
const FAILURES: [Test; 5] = [
    ("mp", &[&[W(0, 1), F, W(1, 1)], &[Fail(1), R(0)]]),
    ("lb", &[&[R(0), F, W(1, 1)], &[Fail(1), W(0, 1)]]),
    ("corr", &[&[W(0, 1)], &[Fail(0), R(0)]]),
    ("sb", &[&[Wsc(0, 1), Fail(1)], &[W(1, 1), F, R(0)]]),
    ("mp", &[&[W(0, 1), Xw(1, 1)], &[Fail(1), R(0)]]),
];
const WRITES: [Test; 7] = [
    ("mp", &[&[W(0, 1), Write(1)], &[R(1), F, R(0)]]),
    ("lb", &[&[R(0), Write(1)], &[R(1), F, W(0, 1)]]),
    ("coww", &[&[Write(0), W(0, 2)], &[R(0), F, R(0)]]),
    ("sb", &[&[Write(0), Rsc(1)], &[W(1, 1), F, R(0)]]),
    ("mp", &[&[W(0, 1), Write(1)], &[Xr(1), R(0)]]),
    ("lb", &[&[R(0), Write(1)], &[Xr(1), W(0, 1)]]),
    ("sb", &[&[Write(0), Rsc(1)], &[Xw(1, 1), Rsc(0)]]),
];
/// Of operations that read and write: they are atomic, and go on with a release sequence.
const BOTH: [Test; 2] = [
    ("counter", &[&[Write(0)], &[Write(0)]]),
    ("sequence", &[&[W(0, 1), F, W(1, 1)], &[Read(1)], &[R(1), F, R(0)]]),
];
const FENCES: [Test; 7] = [
    ("mp", &[&[W(0, 1), Fence, W(1, 1)], &[R(1), F, R(0)]]),
    ("mp", &[&[W(0, 1), F, W(1, 1)], &[R(1), Fence, R(0)]]),
    ("lb", &[&[R(0), Fence, W(1, 1)], &[R(1), F, W(0, 1)]]),
    ("sb", &[&[W(0, 1), Fence, R(1)], &[W(1, 1), F, R(0)]]),
    ("r", &[&[W(0, 1), Fence, W(1, 1)], &[W(1, 2), F, R(0)]]),
    ("mp", &[&[W(0, 1), Fence, W(1, 1)], &[Xr(1), R(0)]]),
    ("mp", &[&[W(0, 1), Xw(1, 1)], &[R(1), Fence, R(0)]]),
];

/// A program that tells whether a cell is kept.
#[derive(Clone, Debug)]
pub struct Told {
    /// The program.
    pub source: Source,
    /// The thread of the cell; none if several threads have it.
    pub thread: Option<usize>,
    /// Whether a sequentially consistent partner stands beside it there.
    pub partner: bool,
    /// The step of the cell, and the same without order; none if it has no order to lose.
    steps: Option<(Step, Option<Step>)>,
}

impl Told {
    /// The program as a compiler takes it, with a relaxed cell; none if the cell has no order, or is not there any more.
    pub fn relaxed(&self, settled: &Source) -> Option<Source> {
        let (thread, (cell, relaxed)) = (self.thread?, self.steps.as_ref()?);
        let mut out = settled.clone();
        let body = &mut out.threads.get_mut(thread)?.body;
        let at = body.iter().position(|step| step == cell)?;
        body.splice(at..=at, relaxed.clone());
        Some(out)
    }

    /// The step of the cell, if it has an order.
    pub fn step(&self) -> Option<&Step> {
        self.steps.as_ref().map(|steps| &steps.0)
    }

    /// Whether the cell has an order that could be lost.
    pub fn has_order(&self) -> bool {
        self.steps.is_some()
    }
}

impl Cell {
    /// The cell as a program of one step, with its name; none of a program that has none.
    pub fn alone(&self) -> Option<(String, Source)> {
        let part = match self.operation {
            Operation::Store(_) => Write(0),
            Operation::Fence(_) => Fence,
            _ => Read(0),
        };
        let source = self.program("", &[&[part]]);
        form::forms(&source).into_iter().next()
    }

    /// The programs that tell whether it is kept.
    pub fn programs(&self) -> Vec<Told> {
        let all: Vec<Test> = match self.operation {
            // Shared memory starts with 0, from which these make no 1.
            Operation::Update(.., true) if self.start() > 0 && self.space == Space::Shared => READS.to_vec(),
            Operation::Load(_) => READS.to_vec(),
            Operation::Store(_) => WRITES.to_vec(),
            Operation::Update(.., true) => [&READS[..], &WRITES, &BOTH].concat(),
            // What it has read cannot be seen.
            Operation::Update(..) => [&WRITES[..], &BOTH].concat(),
            Operation::Cas(..) => [&READS[..], &FAILURES, &WRITES, &BOTH].concat(),
            Operation::Fence(_) => FENCES.to_vec(),
        };
        let asks = |name: &str| match name {
            // Any access keeps these.
            "corr" | "coww" | "counter" => true,
            "sb" => self.is_sequential(),
            _ => self.without_order().is_some(),
        };
        all.into_iter().filter(|test| asks(test.0)).map(|(name, threads)| self.told(name, threads)).collect()
    }

    fn told(&self, name: &str, threads: &[&[Part]]) -> Told {
        let is = |part: &Part| matches!(part, Read(_) | Fail(_) | Write(_) | Fence);
        let places: Vec<(usize, usize)> = (0..threads.len())
            .flat_map(|t| threads[t].iter().enumerate().filter(|(_, p)| is(p)).map(move |(n, _)| (t, n)))
            .collect();
        let source = self.program(name, threads);
        let step = |source: &Source, (t, n): (usize, usize)| source.threads[t].body[n].clone();
        let steps = match (places.as_slice(), self.without_order()) {
            (_, None) => None,
            ([place, ..], Some(Operation::Fence(_))) => Some((step(&source, *place), None)),
            ([place, ..], Some(operation)) => {
                let relaxed = Cell { operation, ..*self }.program(name, threads);
                Some((step(&source, *place), Some(step(&relaxed, *place))))
            }
            ([], _) => None,
        };
        let thread = if let [(t, _)] = places[..] { Some(t) } else { None };
        let partner = threads.iter().flat_map(|t| t.iter()).any(|part| matches!(part, Rsc(_) | Wsc(..)));
        Told { source, thread, partner, steps }
    }

    /// Whether it has a place in the order of sequentially consistent accesses and fences.
    fn is_sequential(&self) -> bool {
        match self.operation {
            Operation::Load(order) | Operation::Store(order) | Operation::Update(_, order, _) => {
                order == Order::SeqCst
            }
            Operation::Cas(success, failure) => success == Order::SeqCst || failure == Order::SeqCst,
            Operation::Fence(_) => true,
        }
    }

    /// The operation without its order; none if it has none. A fence without order is none at all.
    fn without_order(&self) -> Option<Operation> {
        let relaxed = Order::Relaxed;
        let out = match self.operation {
            Operation::Load(_) => Operation::Load(relaxed),
            Operation::Store(_) => Operation::Store(relaxed),
            Operation::Update(op, _, used) => Operation::Update(op, relaxed, used),
            Operation::Cas(..) => Operation::Cas(relaxed, relaxed),
            fence @ Operation::Fence(_) => return Some(fence),
        };
        (out != self.operation).then_some(out)
    }

    fn program(&self, name: &str, threads: &[&[Part]]) -> Source {
        let objects = 1 + threads.iter().flat_map(|t| t.iter().filter_map(object)).max().unwrap_or(0);
        let objects = if matches!(threads, [[Fence]]) { 0 } else { objects };
        let starts = |o: usize| threads.iter().flat_map(|t| t.iter()).any(|part| *part == Write(o));
        let object = |o: usize| Object {
            name: format!("x{o}"),
            space: self.space,
            bits: self.bits,
            init: if starts(o) && self.space != Space::Shared { self.start() } else { 0 },
        };
        let thread = |(t, parts): (usize, &&[Part])| self.thread(t, parts);
        Source {
            name: name.to_owned(),
            objects: (0..objects).map(object).collect(),
            threads: threads.iter().enumerate().map(thread).collect(),
            condition: None,
        }
    }

    /// A value from which the operation makes 1 with the operand 1.
    fn start(&self) -> u64 {
        match self.operation {
            Operation::Update(AtomOp::And | AtomOp::Min, ..) => 3,
            _ => 0,
        }
    }

    /// Threads are as far apart as the scope reaches.
    fn thread(&self, t: usize, parts: &[Part]) -> Thread {
        let n = u16::try_from(t).unwrap_or(0);
        let place = match self.scope {
            Scope::Cta => Placement::default(),
            Scope::Cluster => Placement { cta: n, ..Placement::default() },
            Scope::Gpu => Placement { cluster: n, cta: n, ..Placement::default() },
            Scope::Sys => Placement { gpu: n % 2, cluster: n, cta: n, ..Placement::default() },
        };
        let mut registers = Vec::new();
        let mut register = || {
            registers.push(Register { name: format!("r{}", registers.len()), bits: self.bits });
            registers.len() - 1
        };
        let body = parts.iter().map(|part| self.step(*part, &mut register)).collect();
        Thread { place, registers, body }
    }

    fn step(&self, part: Part, register: &mut dyn FnMut() -> usize) -> Step {
        let scope = self.scope;
        let access = |order| Access::Atomic { order, scope, volatile: false };
        let mut load = |object, order| Step::Load { dst: register(), object, access: access(order) };
        let store = |object, n, order| Step::Store { object, value: Value::Number(n), access: access(order) };
        match part {
            R(o) => load(o, Order::Relaxed),
            Rsc(o) => load(o, Order::SeqCst),
            W(o, n) => store(o, n, Order::Relaxed),
            Wsc(o, n) => store(o, n, Order::SeqCst),
            Xr(object) | Xw(object, _) => {
                let value = Value::Number(if let Xw(_, n) = part { n } else { 2 });
                let order = Order::SeqCst;
                Step::Update(Update { dst: Some(register()), op: AtomOp::Exch, object, value, order, scope })
            }
            F => Step::Fence { order: Order::SeqCst, scope },
            Read(object) | Fail(object) | Write(object) => match self.operation {
                Operation::Load(order) => load(object, order),
                Operation::Store(order) => store(object, 1, order),
                Operation::Update(op, order, used) => {
                    let value = Value::Number(1);
                    Step::Update(Update { dst: used.then(register), op, object, value, order, scope })
                }
                Operation::Cas(success, failure) => {
                    let (expected, desired) = match part {
                        Fail(_) => (NEVER, 2),
                        Read(_) => (1, 2),
                        _ => (0, 1),
                    };
                    let desired = Value::Number(desired);
                    Step::Cas(Exchange {
                        dst: register(),
                        object,
                        expected,
                        desired,
                        success,
                        failure,
                        scope,
                    })
                }
                Operation::Fence(order) => Step::Fence { order, scope },
            },
            Fence => match self.operation {
                Operation::Fence(order) => Step::Fence { order, scope },
                _ => Step::Fence { order: Order::SeqCst, scope },
            },
        }
    }
}

fn object(part: &Part) -> Option<usize> {
    match part {
        R(o) | W(o, _) | Rsc(o) | Wsc(o, _) | Xr(o) | Xw(o, _) | Read(o) | Fail(o) | Write(o) => Some(*o),
        F | Fence => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::faults;

    #[test]
    fn every_program_of_every_cell_is_valid() {
        let all = all();
        assert!(all.len() > 2000, "{}", all.len());
        for cell in all {
            let (name, alone) = cell.alone().expect("a form");
            assert_eq!(faults(&alone), Vec::new(), "{name}");
            for program in cell.programs() {
                assert_eq!(faults(&program.source), Vec::new(), "{name} in {}", program.source.name);
                assert_eq!(
                    program.relaxed(&program.source).is_some(),
                    program.has_order() && program.thread.is_some()
                );
            }
        }
    }
}
