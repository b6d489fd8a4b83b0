//! Runs a launched Tile IR kernel: turns operations on tiles into a program that can be explored.
//!
//! - Each tile block becomes one thread in its own CTA.
//! - Tiles are split into elements. Constants and addresses are computed here; values read from memory are in registers.
//! - An `if` with a known condition is resolved, unless it yields tokens. Otherwise both arms are kept under masks, so the
//!   condition decides which events exist and orders nothing. If an arm leaves a `loop` or the kernel, the `if` becomes a
//!   branch.
//! - `for` is unrolled, `loop` stays a loop.
//! - Each pointer parameter has its own memory, so no memory has two addresses. It is zero at the start and as long as
//!   the known accesses need. Multicast memory has [`REPLICAS`].
//!
//! Source: Tile IR specification, chapters on operations and on the memory model. Not interpreted, and refused by name:
//! floats, functions, tiles in shared memory, views with extents or strides from memory.

mod access;
mod control;
mod loops;
mod packed;
mod value;
mod view;

use crate::{Elem, Function, Module, Type, Value};
use moire_program::Refusal;
use moire_program::ir::{
    Content, Instr, Label, Object, ObjectId, Op, Placement, Program, Proxy, Reg, RegDecl, RegInit, Space,
    Symbol, SymbolId, Thread,
};
use std::collections::BTreeMap;
use value::Held;

/// Most tile blocks of a launch.
pub const BLOCKS: u32 = 32;
/// Most elements of one tile.
pub const ELEMENTS: u64 = 1 << 14;
/// Most elements that one tile block may access.
pub const ACCESSES: usize = 4_096;
/// Most instructions of one tile block.
pub const BODY: usize = 8_192;
/// Replicas of multicast memory: two, the fewest that can differ.
pub const REPLICAS: u16 = 2;
/// Most bytes behind one parameter.
pub const BYTES: u32 = 1 << 16;

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileLaunch {
    /// Tile blocks in each dimension.
    pub grid: [u32; 3],
    /// Values of parameters that are numbers, by position.
    pub params: BTreeMap<u16, u64>,
    /// Least bytes of the memory behind pointer parameters, by position; known accesses may need more.
    pub bytes: BTreeMap<u16, u32>,
}

impl TileLaunch {
    /// A launch of this many tile blocks in one dimension.
    pub fn row(blocks: u32) -> Self {
        TileLaunch { grid: [blocks, 1, 1], params: BTreeMap::new(), bytes: BTreeMap::new() }
    }

    /// The comment in front of a kernel that records the launch. It records only the first dimension.
    pub fn note(&self) -> String {
        format!("{NOTE}{}\n", self.grid[0])
    }

    /// Reads the comment that [`TileLaunch::note`] wrote.
    pub fn noted(text: &str) -> Option<TileLaunch> {
        let blocks = text.lines().find_map(|line| line.strip_prefix(NOTE))?.trim().parse().ok()?;
        (1..=BLOCKS).contains(&blocks).then(|| TileLaunch::row(blocks))
    }
}

/// The start of the comment that records a launch.
const NOTE: &str = "// tile blocks: ";

type Done<T> = Result<T, Refusal>;

/// Finds the kernel with this name, or the only kernel.
///
/// # Errors
/// There is no such kernel, or several and no name is given.
pub fn tile_entry<'m>(module: &'m Module, name: Option<&str>) -> Done<&'m Function> {
    let kernels: Vec<&Function> = module.functions.iter().filter(|f| f.entry).collect();
    let known = || kernels.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(", ");
    let wanted = |name: &str| kernels.iter().find(|k| k.name == name).copied();
    match (name, kernels.as_slice()) {
        (Some(name), _) => wanted(name)
            .ok_or_else(|| Refusal::Launch(format!("no kernel is called `{name}`; there are {}", known()))),
        (None, [one]) => Ok(one),
        (None, _) => Err(Refusal::Launch(format!("name one of the kernels: {}", known()))),
    }
}

/// Makes the program of a launch. Parameter `n` is the symbol `argn`.
///
/// # Errors
/// Something is not interpreted (named with its line), or a limit is exceeded.
pub fn lower(function: &Function, launch: &TileLaunch) -> Done<Program> {
    let [x, y, z] = launch.grid;
    let blocks = x.saturating_mul(y).saturating_mul(z);
    if blocks == 0 || blocks > BLOCKS {
        return Err(Refusal::Launch(format!("{blocks} tile blocks; 1 to {BLOCKS} can be explored")));
    }
    let replicas = replicas(function)?;
    let count = function.body.params.len() + replicas.values().map(Vec::len).sum::<usize>();
    let mut shared = Shared { ends: vec![0; count], function, launch, replicas };
    let mut threads = Vec::new();
    for number in 0..blocks {
        let id = [number % x, number / x % y, number / x / y];
        threads.push(Block::new(&mut shared, number, id)?.run()?);
    }
    let mut program = Program { name: function.name.clone(), threads, ..Program::default() };
    for (n, end) in (0u16..).zip(&shared.ends) {
        // A replica is as long as its original.
        let of = shared.replicas.iter().find(|(_, all)| all.contains(&SymbolId(n)));
        let (param, name) = match of {
            Some((param, all)) => (*param, format!("arg{param}_{}", n - all[0].0 + 1)),
            None => (n, format!("arg{n}")),
        };
        let ends = shared.ends.get(usize::from(param)).max(Some(end)).copied().unwrap_or(0);
        let bytes = launch.bytes.get(&param).copied().unwrap_or(0).max(ends).max(4);
        if bytes > BYTES {
            return Err(Refusal::Bounded(format!("parameter {param} has more than {BYTES} bytes behind it")));
        }
        let init = Content::default();
        program.objects.push(Object { name: name.clone(), space: Space::Global, bytes, init });
        let (object, virt, proxy) = (ObjectId(n), SymbolId(n), Proxy::Generic);
        program.symbols.push(Symbol { name, object, virt, proxy, multimem: Vec::new() });
    }
    Ok(program)
}

/// For each parameter that points to multicast memory, its further replicas, numbered behind the parameters.
fn replicas(function: &Function) -> Done<BTreeMap<u16, Vec<SymbolId>>> {
    let params = &function.body.params;
    let mut next = u16::try_from(params.len())
        .ok()
        .filter(|n| *n < u16::MAX / REPLICAS)
        .ok_or_else(|| Refusal::Bounded("a kernel with so many parameters".into()))?;
    let mut out = BTreeMap::new();
    for (n, param) in (0u16..).zip(params) {
        let elem = function.tile(*param).map(|tile| tile.elem);
        if let Some(Elem::Pointer { multicast: true, .. }) = elem {
            out.insert(n, (next..next + REPLICAS - 1).map(SymbolId).collect());
            next += REPLICAS - 1;
        }
    }
    Ok(out)
}

/// State that all tile blocks of a launch share.
struct Shared<'f> {
    function: &'f Function,
    launch: &'f TileLaunch,
    /// For each parameter, then for each further replica, the end of the known accesses.
    ends: Vec<u32>,
    /// The result of [`replicas`].
    replicas: BTreeMap<u16, Vec<SymbolId>>,
}

/// A loop around the current operation.
enum Turn {
    /// An iteration of a `for` with masks, and what skips its rest.
    Masked(Vec<Skip>),
    /// A `loop`.
    Jumps {
        head: usize,
        carried: Vec<Held>,
        results: Vec<Held>,
        /// Branches to the end, without target so far.
        breaks: Vec<usize>,
    },
}

/// A `continue` of a `for`.
struct Skip {
    /// The place from which its mask holds.
    since: usize,
    /// The mask under which it runs.
    mask: Option<Reg>,
    /// The values that the next iteration starts with.
    values: Vec<Held>,
}

/// One tile block while it is run.
struct Block<'s, 'f> {
    shared: &'s mut Shared<'f>,
    id: [u32; 3],
    thread: Thread,
    values: BTreeMap<Value, Held>,
    /// The mask of the enclosing arm: accesses happen only if this register is not zero.
    mask: Option<Reg>,
    /// The place from which that mask holds.
    masked_since: usize,
    loops: Vec<Turn>,
    accesses: usize,
    line: u32,
}

impl<'s, 'f> Block<'s, 'f> {
    fn new(shared: &'s mut Shared<'f>, number: u32, id: [u32; 3]) -> Done<Self> {
        let cta = u16::try_from(number).expect("a launch has few tile blocks");
        let place = Placement { cluster: cta, cta, ..Placement::default() };
        let thread = Thread {
            name: format!("B{number}"),
            place,
            regs: Vec::new(),
            labels: Vec::new(),
            body: Vec::new(),
        };
        let (values, loops) = (BTreeMap::new(), Vec::new());
        let mut block =
            Block { shared, id, thread, values, mask: None, masked_since: 0, loops, accesses: 0, line: 0 };
        block.parameters()?;
        Ok(block)
    }

    fn parameters(&mut self) -> Done<()> {
        let function = self.shared.function;
        for (n, param) in (0u16..).zip(&function.body.params) {
            let held = match function.ty(*param) {
                Some(Type::Tile(tile)) if tile.shape.is_empty() => match tile.elem {
                    Elem::Pointer { .. } => Held::parameter(n),
                    Elem::Scalar(_) => match self.shared.launch.params.get(&n) {
                        Some(value) => Held::number(u128::from(*value)),
                        None => {
                            let what = format!("parameter {n} is a number and needs a value");
                            return Err(Refusal::Launch(what));
                        }
                    },
                },
                _ => return self.refuse("a parameter that is no pointer and no number"),
            };
            self.values.insert(*param, held);
        }
        Ok(())
    }

    fn run(mut self) -> Done<Thread> {
        let function = self.shared.function;
        self.block(&function.body)?;
        Ok(self.thread)
    }

    fn refuse<T>(&self, what: &str) -> Done<T> {
        Err(Refusal::Abstained { what: format!("{what} is not interpreted"), line: self.line })
    }

    fn fresh(&mut self, kind: &str) -> Done<Reg> {
        let number = self.thread.regs.len();
        if number >= moire_program::limits::REGISTERS {
            return Err(Refusal::Bounded("a tile block with too many values from memory".into()));
        }
        self.thread.regs.push(RegDecl { name: format!("{kind}{number}"), init: RegInit::Value(0) });
        Ok(Reg::at(number))
    }

    /// Appends an instruction; returns its place.
    fn push(&mut self, op: Op) -> Done<usize> {
        if self.thread.body.len() >= BODY {
            return Err(Refusal::Bounded(format!("a tile block of more than {BODY} instructions")));
        }
        self.thread.body.push(Instr { line: self.line, ..Instr::new(op) });
        Ok(self.thread.body.len() - 1)
    }

    /// Makes the next instruction a branch target.
    fn label(&mut self) -> usize {
        let at = self.thread.body.len();
        if self.thread.labels.iter().all(|l| l.at != at) {
            self.thread.labels.push(Label { name: format!("L{at}"), at });
        }
        at
    }
}
