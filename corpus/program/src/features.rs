//! What a program contains, found without running it: accesses, candidates, features and their histogram.
//!
//! Contract: `memory_events` counts every loop body once. Dependencies are syntactic (registers and guards). A
//! load-buffering cycle leads from a read to a po-later write, from there to a read of that location, and so on, over
//! two or more threads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::ir::{Op, Operand, Placement, Program, Reg, RegInit, Space, SymbolId, Thread};

/// Reads and writes of one location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Read events.
    pub reads: u32,
    /// Write events.
    pub writes: u32,
}

impl Load {
    /// The reads and writes of both.
    pub fn plus(self, other: Load) -> Load {
        Load {
            reads: self.reads.saturating_add(other.reads),
            writes: self.writes.saturating_add(other.writes),
        }
    }

    /// Sources of each read times orders of the writes.
    pub fn candidates(self) -> u128 {
        let sources = u128::from(self.writes) + 1;
        let rf = sources.checked_pow(self.reads).unwrap_or(u128::MAX);
        let co = (1..=u128::from(self.writes)).fold(1u128, |all, n| all.saturating_mul(n));
        rf.saturating_mul(co)
    }
}

/// A memory access in the text of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Index of the thread.
    pub thread: usize,
    /// Index in its body.
    pub at: usize,
    /// The symbol that it accesses, if the text determines it.
    pub symbol: Option<SymbolId>,
    /// First byte in the object, and the byte behind the last.
    pub range: (i64, i64),
    /// Read events.
    pub reads: u32,
    /// Write events.
    pub writes: u32,
}

/// All accesses, in the order of the text.
pub fn accesses(program: &Program) -> Vec<Access> {
    let mut all = Vec::new();
    for (thread, column) in program.threads.iter().enumerate() {
        let bases = bases(column);
        for (at, instr) in column.body.iter().enumerate() {
            let Some((address, bytes, reads, writes)) = footprint(&instr.op) else { continue };
            let symbol = match address.base {
                Operand::Address(symbol) => Some(symbol),
                Operand::Reg(reg) => bases.get(&reg).copied(),
                Operand::Imm(_) => None,
            };
            let start = i64::from(address.offset);
            all.push(Access { thread, at, symbol, range: (start, start + i64::from(bytes)), reads, writes });
        }
    }
    all
}

/// An operation on memory: its address, its size in bytes, its numbers of read and write events.
pub(crate) fn footprint(op: &Op) -> Option<(crate::ir::Address, u32, u32, u32)> {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Some(match op {
        Op::Load { ty, dst, addr, .. } => (*addr, ty.bytes() * count(dst.len()), count(dst.len()), 0),
        Op::Store { ty, src, addr, .. } => (*addr, ty.bytes() * count(src.len()), 0, count(src.len())),
        Op::Rmw { ty, addr, .. } | Op::MultimemRed { ty, addr, .. } => (*addr, ty.bytes(), 1, 1),
        Op::MultimemLoad { ty, addr, .. } => (*addr, ty.bytes(), 1, 0),
        Op::MultimemStore { ty, addr, .. } => (*addr, ty.bytes(), 0, 1),
        Op::Mbarrier(m) => (m.addr, crate::ir::MBARRIER_BYTES, 0, 1),
        register_op!() | fence_op!() | barrier_op!() => return None,
        unit_op!() | Op::Tile(_) | Op::Control(_) | jump_op!() => return None,
        Op::Book(_) => return None,
    })
}

/// Registers that hold an address, each with its symbol, as far as the text determines it.
fn bases(thread: &Thread) -> BTreeMap<Reg, SymbolId> {
    let mut bases = BTreeMap::new();
    for (n, reg) in thread.regs.iter().enumerate() {
        if let (RegInit::Address(symbol), Ok(n)) = (&reg.init, u16::try_from(n)) {
            bases.insert(Reg(n), *symbol);
        }
    }
    for instr in &thread.body {
        let of = |operand: &Operand, bases: &BTreeMap<Reg, SymbolId>| match operand {
            Operand::Address(symbol) => Some(*symbol),
            Operand::Reg(reg) => bases.get(reg).copied(),
            Operand::Imm(_) => None,
        };
        let found = if let Op::Mov { dst, src, .. } | Op::Mapa { dst, src, .. } = &instr.op {
            of(src, &bases).map(|symbol| (*dst, symbol))
        } else if let Op::Alu { dst, a, b, .. } = &instr.op {
            of(a, &bases).or(of(b, &bases)).map(|symbol| (*dst, symbol))
        } else {
            None
        };
        bases.extend(found);
    }
    bases
}

/// An estimate of the number of rf x co candidates: for each location the sources of each read, multiplied, times the
/// orders of its writes. Accesses in a loop that writes count twice. Accesses whose symbol is unknown are left out.
pub fn estimate_candidates(program: &Program) -> u128 {
    let mut pools: BTreeMap<(u16, Option<Placement>), Vec<(i64, i64, Load)>> = BTreeMap::new();
    for access in accesses(program) {
        let Some(symbol) = access.symbol.and_then(|s| program.symbols.get(s.index())) else { continue };
        let thread = &program.threads[access.thread];
        let weight = if repeats(thread, access.at) { 2 } else { 1 };
        let load = Load { reads: access.reads * weight, writes: access.writes * weight };
        for object in std::iter::once(&symbol.object).chain(&symbol.multimem) {
            let shared = program.objects.get(object.index()).is_some_and(|o| o.space == Space::SharedCta);
            let cta = shared.then_some(Placement { warp: 0, mask: 0, joined: false, ..thread.place });
            pools.entry((object.0, cta)).or_default().push((access.range.0, access.range.1, load));
        }
    }
    let mut product = 1u128;
    for (_, mut pool) in pools {
        pool.sort_by_key(|p| (p.0, p.1));
        let mut open: Option<(i64, Load)> = None;
        for (start, end, load) in pool {
            open = Some(match open {
                Some((reach, sum)) if start < reach => (reach.max(end), sum.plus(load)),
                Some((_, sum)) => {
                    product = product.saturating_mul(sum.candidates());
                    (end, load)
                }
                None => (end, load),
            });
        }
        product = product.saturating_mul(open.map_or(1, |(_, sum)| sum.candidates()));
    }
    product
}

/// Whether an instruction is in a loop that writes memory by something else than a cas.
fn repeats(thread: &Thread, at: usize) -> bool {
    loops(thread).any(|(head, back)| {
        (head..=back).contains(&at)
            && thread.body[head..=back].iter().any(|i| {
                let cas = matches!(i.op, Op::Rmw { op: crate::ir::AtomOp::Cas, .. });
                !cas && footprint(&i.op).is_some_and(|f| f.3 > 0)
            })
    })
}

/// The loops of a thread, each by its backward branch: (target of the branch, the branch).
pub(crate) fn loops(thread: &Thread) -> impl Iterator<Item = (usize, usize)> + '_ {
    thread.body.iter().enumerate().filter_map(|(at, instr)| {
        let Op::Bra { target } = instr.op else { return None };
        (target <= at).then_some((target, at))
    })
}

/// The features of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Threads.
    pub threads: usize,
    /// Instructions.
    pub instructions: usize,
    /// Read and write events, each loop body once.
    pub memory_events: usize,
    /// Has an atomic read-modify-write.
    pub rmw: bool,
    /// Has an address, data or control dependency from a read to a later access.
    pub dependency: bool,
    /// Has a load-buffering cycle.
    pub load_buffering: bool,
    /// Has a loop that reads memory.
    pub awaits: bool,
    /// Has a memory fence.
    pub fence: bool,
    /// Has an access or fence of another proxy, or an alias.
    pub proxy: bool,
    /// Has a barrier.
    pub barrier: bool,
    /// Touches one location with different sizes.
    pub mixed_size: bool,
}

/// The features of one program.
pub fn features(program: &Program) -> Features {
    let accesses = accesses(program);
    let ops = || program.threads.iter().flat_map(|t| &t.body).map(|i| &i.op);
    let mut sizes: BTreeMap<u16, BTreeSet<i64>> = BTreeMap::new();
    for access in &accesses {
        if let Some(symbol) = access.symbol.and_then(|s| program.symbols.get(s.index())) {
            sizes.entry(symbol.object.0).or_default().insert(access.range.1 - access.range.0);
        }
    }
    Features {
        threads: program.threads.len(),
        instructions: program.threads.iter().map(|t| t.body.len()).sum(),
        memory_events: accesses.iter().map(|a| (a.reads + a.writes) as usize).sum(),
        rmw: ops().any(|op| matches!(op, Op::Rmw { .. } | Op::MultimemRed { .. })),
        dependency: program.threads.iter().any(has_dependency),
        load_buffering: has_load_buffering(program, &accesses),
        awaits: program.threads.iter().any(|t| {
            loops(t).any(|(head, back)| {
                t.body[head..=back].iter().any(|i| footprint(&i.op).is_some_and(|f| f.2 > 0))
            })
        }),
        fence: ops().any(|op| matches!(op, Op::Fence { .. })),
        proxy: ops().any(|op| matches!(op, Op::ProxyFence(_)))
            || program.symbols.len() > program.objects.len(),
        barrier: ops()
            .any(|op| matches!(op, Op::Bar { .. } | Op::ClusterArrive { .. } | Op::WarpSync { .. })),
        mixed_size: sizes.values().any(|s| s.len() > 1),
    }
}

fn has_dependency(thread: &Thread) -> bool {
    let mut tainted: BTreeSet<Reg> = BTreeSet::new();
    let mut control = false;
    for instr in &thread.body {
        let guarded = instr.guard.is_some_and(|g| tainted.contains(&g.reg));
        let (reads, writes) = super::registers::uses(&instr.op);
        let from = reads.iter().any(|r| tainted.contains(r));
        if footprint(&instr.op).is_some() {
            if guarded || control || from {
                return true;
            }
            tainted.extend(writes);
        } else if from || guarded {
            tainted.extend(writes);
        }
        control |= guarded && matches!(instr.op, Op::Bra { .. } | Op::Exit);
    }
    false
}

fn has_load_buffering(program: &Program, accesses: &[Access]) -> bool {
    let object = |a: &Access| a.symbol.and_then(|s| program.symbols.get(s.index())).map(|s| s.object.0);
    // Per thread: pairs (location read, location written later).
    let mut pairs: Vec<BTreeSet<(u16, u16)>> = vec![BTreeSet::new(); program.threads.len()];
    for read in accesses.iter().filter(|a| a.reads > 0) {
        for write in accesses.iter().filter(|w| w.writes > 0 && w.thread == read.thread && w.at > read.at) {
            if let (Some(r), Some(w)) = (object(read), object(write))
                && r != w
            {
                pairs[read.thread].insert((r, w));
            }
        }
    }
    (0..pairs.len()).any(|t| pairs[t].iter().any(|&(r, w)| closes(&pairs, r, w, &mut vec![t])))
}

fn closes(pairs: &[BTreeSet<(u16, u16)>], goal: u16, from: u16, path: &mut Vec<usize>) -> bool {
    for t in 0..pairs.len().min(8) {
        if path.contains(&t) {
            continue;
        }
        for &(r, w) in &pairs[t] {
            if r != from {
                continue;
            }
            path.push(t);
            let found = w == goal || closes(pairs, goal, w, path);
            path.pop();
            if found {
                return true;
            }
        }
    }
    false
}

/// Counts of features over many programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Programs counted.
    pub programs: usize,
    /// Programs by number of memory events.
    pub memory_events: BTreeMap<usize, usize>,
    /// Programs by number of threads.
    pub threads: BTreeMap<usize, usize>,
    /// Programs by feature name.
    pub with: BTreeMap<&'static str, usize>,
}

impl Histogram {
    /// Counts one program.
    pub fn add(&mut self, f: &Features) {
        self.programs += 1;
        *self.memory_events.entry(f.memory_events).or_default() += 1;
        *self.threads.entry(f.threads).or_default() += 1;
        let named = [
            ("6 or more memory events", f.memory_events >= 6),
            ("rmw", f.rmw),
            ("dependency", f.dependency),
            ("load-buffering cycle", f.load_buffering),
            ("await", f.awaits),
            ("fence", f.fence),
            ("proxy", f.proxy),
            ("barrier", f.barrier),
            ("mixed size", f.mixed_size),
        ];
        for (name, has) in named {
            *self.with.entry(name).or_default() += usize::from(has);
        }
    }

    /// Share of programs with the named feature, in percent.
    pub fn percent(&self, name: &str) -> f64 {
        let n = self.with.get(name).copied().unwrap_or(0);
        if self.programs == 0 { 0.0 } else { 100.0 * n as f64 / self.programs as f64 }
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "programs {}", self.programs)?;
        for name in self.with.keys() {
            writeln!(f, "{name:<26} {:>5.1} %", self.percent(name))?;
        }
        for (what, counts) in [("threads", &self.threads), ("memory events", &self.memory_events)] {
            write!(f, "{what}:")?;
            for (n, count) in counts {
                write!(f, " {n}:{count}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
