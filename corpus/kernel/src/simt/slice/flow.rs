//! Data flow of a thread from the cells it reads to the cells it writes, ignoring the order of instructions.

use super::cells::{Does, Touch};
use moire_program::ir::{Op, Operand, Program, Reg, Thread, TileOp, TileToken};
use moire_program::registers::uses;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How a value affects a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Way {
    /// It is stored.
    Data,
    /// It decides whether the access takes place.
    Mask,
}

/// A flow from one cell to another.
pub(super) type Edge = (usize, usize, Way);

/// The flows of one thread.
#[derive(Default)]
pub(super) struct Flows {
    pub(super) edges: BTreeSet<Edge>,
    /// Cells whose content decides something: whether an access takes place, a branch, or the effect of an atomic.
    pub(super) looked: BTreeSet<usize>,
}

/// The operands and the mask of one element of an access.
fn wanted(op: &Op, touch: &Touch) -> (Vec<Operand>, Option<Reg>) {
    if let Op::Store { src, .. } = op {
        return (src.get(touch.element).copied().into_iter().collect(), None);
    }
    if let Op::Rmw { a, b, .. } = op {
        return (std::iter::once(*a).chain(*b).collect(), None);
    }
    let Op::Tile(TileOp::Access(access)) = op else { return (Vec::new(), None) };
    let element = access.elements.get(touch.element);
    element.map_or((Vec::new(), None), |e| (e.a.into_iter().chain(e.b).collect(), e.mask))
}

fn registers(operands: Vec<Operand>) -> impl Iterator<Item = Reg> {
    operands.into_iter().filter_map(|o| if let Operand::Reg(r) = o { Some(r) } else { None })
}

/// Registers that decide branches or choose tokens.
fn control(thread: &Thread) -> impl Iterator<Item = Reg> {
    thread.body.iter().flat_map(|instr| {
        let choice = if let Op::Tile(TileOp::Token(TileToken::Choose { when, .. })) = &instr.op {
            Some(*when)
        } else {
            None
        };
        let access = matches!(instr.op, Op::Load { .. } | Op::Store { .. } | Op::Mov { .. } | Op::Alu { .. })
            || matches!(instr.op, Op::Setp { .. } | Op::Selp { .. } | Op::Rmw { .. });
        choice.into_iter().chain(instr.guard.filter(|_| !access).map(|g| g.reg))
    })
}

fn arithmetic(op: &Op) -> bool {
    matches!(op, Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. })
}

impl Flows {
    pub(super) fn new(thread: &Thread, touches: &[Touch]) -> Flows {
        let mut next: BTreeMap<Reg, Vec<Reg>> = BTreeMap::new();
        for instr in thread.body.iter().filter(|i| arithmetic(&i.op)) {
            let (reads, writes) = uses(&instr.op);
            for r in reads.into_iter().chain(instr.guard.map(|g| g.reg)) {
                next.entry(r).or_default().extend(&writes);
            }
        }
        let mut sinks: BTreeMap<Reg, Vec<(usize, Way)>> = BTreeMap::new();
        let mut decides: BTreeSet<Reg> = control(thread).collect();
        for t in touches {
            let Some(instr) = thread.body.get(t.at) else { continue };
            let (data, mask) = wanted(&instr.op, t);
            for r in registers(data) {
                sinks.entry(r).or_default().push((t.cell, Way::Data));
                decides.extend((t.does != Does::Write).then_some(r));
            }
            for r in mask.into_iter().chain(instr.guard.map(|g| g.reg)) {
                sinks.entry(r).or_default().push((t.cell, Way::Mask));
                decides.insert(r);
            }
        }
        let mut flows = Flows::default();
        for t in touches {
            let Some(dst) = t.dst else { continue };
            if t.does == Does::Update {
                flows.looked.insert(t.cell);
            }
            let mut seen = BTreeSet::new();
            let mut open = vec![dst];
            while let Some(reg) = open.pop() {
                if !seen.insert(reg) {
                    continue;
                }
                if decides.contains(&reg) {
                    flows.looked.insert(t.cell);
                }
                let there = sinks.get(&reg).into_iter().flatten();
                flows.edges.extend(there.map(|(cell, way)| (t.cell, *cell, *way)));
                open.extend(next.get(&reg).into_iter().flatten());
            }
        }
        flows
    }
}

/// The flows of all threads of a program.
pub(super) fn flows(program: &Program, touches: &[Vec<Touch>]) -> Vec<Flows> {
    program.threads.iter().zip(touches).map(|(thread, touches)| Flows::new(thread, touches)).collect()
}

/// The registers that a thread needs for its accesses of kept cells.
pub(super) fn needed(thread: &Thread, touches: &[Touch], kept: &BTreeSet<usize>) -> BTreeSet<Reg> {
    let mut all: BTreeSet<Reg> = control(thread).collect();
    for t in touches.iter().filter(|t| kept.contains(&t.cell)) {
        let Some(instr) = thread.body.get(t.at) else { continue };
        let (data, mask) = wanted(&instr.op, t);
        all.extend(registers(data).chain(mask).chain(instr.guard.map(|g| g.reg)));
    }
    backwards(thread, all)
}

/// Registers that decide something, or flow into a cell that does.
pub(super) fn decisive(thread: &Thread, touches: &[Touch], looked: &BTreeSet<usize>) -> BTreeSet<Reg> {
    let mut all: BTreeSet<Reg> = control(thread).collect();
    for t in touches {
        let Some(instr) = thread.body.get(t.at) else { continue };
        let (data, mask) = wanted(&instr.op, t);
        if looked.contains(&t.cell) || t.does != Does::Write {
            all.extend(registers(data));
        }
        all.extend(mask.into_iter().chain(instr.guard.map(|g| g.reg)));
    }
    backwards(thread, all)
}

fn backwards(thread: &Thread, mut all: BTreeSet<Reg>) -> BTreeSet<Reg> {
    loop {
        let before = all.len();
        for instr in thread.body.iter().filter(|i| arithmetic(&i.op)) {
            let (reads, writes) = uses(&instr.op);
            if writes.iter().any(|w| all.contains(w)) {
                all.extend(reads.into_iter().chain(instr.guard.map(|g| g.reg)));
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// A hash of the code of a thread, without offsets and numbers that decide nothing.
pub(super) fn class(thread: &Thread, touches: &[Touch], looked: &BTreeSet<usize>) -> u64 {
    let decisive = decisive(thread, touches, looked);
    let blank = |o: &mut Operand| {
        if let Operand::Imm(v) = o {
            *v = 0;
        }
    };
    let mut hasher = DefaultHasher::new();
    for instr in &thread.body {
        let mut op = instr.op.clone();
        if let Op::Load { addr, .. } | Op::Rmw { addr, .. } | Op::Store { addr, .. } = &mut op {
            addr.offset = 0;
        }
        if let Op::Store { src, .. } = &mut op {
            src.iter_mut().for_each(blank);
        } else if let Op::Mov { dst, src, .. } = &mut op {
            Some(src).filter(|_| !decisive.contains(dst)).into_iter().for_each(blank);
        } else if let Op::Alu { dst, a, b, .. } | Op::Setp { dst, a, b, .. } | Op::Selp { dst, a, b, .. } =
            &mut op
        {
            [a, b].into_iter().filter(|_| !decisive.contains(dst)).for_each(blank);
        }
        format!("{:?}{op:?}", instr.guard).hash(&mut hasher);
    }
    hasher.finish()
}

/// For each register, the instructions that write it.
pub(super) type Makers = BTreeMap<Reg, Vec<usize>>;

pub(super) fn makers(thread: &Thread) -> Makers {
    let mut out = Makers::new();
    for (at, instr) in thread.body.iter().enumerate() {
        uses(&instr.op).1.into_iter().for_each(|r| out.entry(r).or_default().push(at));
    }
    out
}

/// A hash of how a register of a tile block is computed, constants included.
pub(super) fn recipe(thread: &Thread, makers: &Makers, reg: Reg, depth: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    let made = makers.get(&reg).map(Vec::as_slice).unwrap_or_default();
    let one = if let [at] = made { thread.body.get(*at).filter(|i| arithmetic(&i.op)) } else { None };
    let Some(instr) = one else {
        made.hash(&mut hasher);
        return hasher.finish();
    };
    // Each element has its own instruction, so its operation is hashed and not its place.
    if let Op::Alu { op, ty, .. } = &instr.op {
        format!("{op:?}{ty:?}").hash(&mut hasher);
    } else if let Op::Setp { op, ty, .. } = &instr.op {
        format!("{op:?}{ty:?}").hash(&mut hasher);
    } else {
        String::new().hash(&mut hasher);
    }
    for source in sources(&instr.op) {
        match source {
            Operand::Reg(r) if depth > 0 => recipe(thread, makers, r, depth - 1).hash(&mut hasher),
            other => format!("{other:?}").hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn sources(op: &Op) -> Vec<Operand> {
    if let Op::Mov { src, .. } = op {
        vec![*src]
    } else if let Op::Alu { a, b, .. } | Op::Setp { a, b, .. } = op {
        vec![*a, *b]
    } else if let Op::Selp { a, b, p, .. } = op {
        vec![*a, *b, Operand::Reg(*p)]
    } else {
        Vec::new()
    }
}
