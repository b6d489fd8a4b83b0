//! Which threads of a CTA surely hold the same number in a register, although the number is not known.
//!
//! For each register: the bits of the thread's number on which its value may depend; the low five are those of the lane. Threads
//! that differ in other bits only hold the same. A butterfly and an operation that commutes make a value independent of a bit:
//! `max(v, v of lane ^ 2)` is the same in both lanes. `%tid.x & 63` depends on six bits. A result depends on what its operands
//! depend on, a weak load on what its address depends on (threads that read one address read the same, or there is a race), and
//! anything else on all bits.
//!
//! Dependence grows to the least fixpoint over all statements. That is sound for threads that take the same way through the
//! kernel: by induction over the steps they hold the same. So what decides a branch counts for every register, but for
//! a loop that does nothing but wait: threads leave it with the same answer.
//!
//! A *uniform* register needs no such way: one statement, in no loop, computes it from parameters, the number of the CTA and
//! other uniform registers. Whichever threads have it have the same.

use super::flow::effects;
use crate::ptx::{self, Kernel, Sort, Special, Statement, Sum, What, sort, sources};
use moire_isa::kinds::{self, BinaryForm, ShflMode};
use moire_isa::{Binary, Instr, Ld, Shfl, Value};
use moire_program::ir::{LoadOrder, MbarrierOp, Op, Reg, Space};
use std::collections::{BTreeMap, BTreeSet};

/// The bits of the number of a thread of a CTA, and of that of a lane.
const ALL: u16 = 1023;
const LANE: u16 = 31;

/// For each register the bits of the lane's number on which it may depend.
pub(crate) struct Equal {
    /// By whichever statement has written it.
    depends: Vec<u16>,
    /// By the last statement that has written it on the way from the last place that a jump leads to, during a pass.
    last: BTreeMap<Reg, u16>,
    /// Those on which the way through the kernel may depend.
    way: u16,
    /// Registers that are never anything but some bits of `%tid.x`, moved down by so many.
    tid: BTreeMap<Reg, u32>,
    /// Registers that are uniform.
    uniform: BTreeSet<Reg>,
}

/// A register, and the bits in which the lane differs whose value it has.
type Butterfly = (Reg, u16);

impl Equal {
    /// `flat`: CTAs have one axis, so `%tid.x` is the number of the thread.
    /// `around`: the loops around each statement.
    pub(crate) fn new(kernel: &Kernel, flat: bool, around: &[Vec<usize>]) -> Equal {
        let found = vec![0; kernel.types.len()];
        let mut equal = Equal {
            depends: found,
            last: BTreeMap::new(),
            way: 0,
            tid: if flat { tids(kernel) } else { BTreeMap::new() },
            uniform: BTreeSet::new(),
        };
        equal.uniform = equal.uniform(kernel, around);
        let targets = targets(kernel);
        while equal.grow(kernel, &targets) {}
        equal
    }

    /// Whether two threads of a CTA with one axis surely hold the same in a register; two lanes of a warp do in any CTA.
    pub(crate) fn same(&self, reg: Reg, a: usize, b: usize) -> bool {
        let bits = self.depends.get(reg.index()).copied().unwrap_or(ALL) | self.way;
        (a ^ b) & usize::from(bits) == 0 || self.uniform.contains(&reg)
    }

    /// The uniform registers, if their statements come in the order in which they need each other.
    fn uniform(&self, kernel: &Kernel, around: &[Vec<usize>]) -> BTreeSet<Reg> {
        let (written, mut out) = (writers(kernel), BTreeSet::new());
        for (statement, around) in kernel.body.iter().zip(around) {
            let (to, read) = effects(statement);
            let once = statement.guard.is_none() && around.is_empty() && to.iter().all(|r| written[r] == 1);
            let param = match &statement.what {
                What::Plain(instr) => {
                    !matches!(sort(instr), Sort::Load(ld) if ld.space != kinds::Space::Param)
                }
                What::Core(op) => !matches!(op, Op::Load { .. }),
                _ => false,
            };
            if once && param && read.iter().all(|r| out.contains(r)) && self.result(statement, &[], &[]) == 0
            {
                out.extend(to);
            }
        }
        out
    }

    fn of(&self, reg: Reg) -> u16 {
        let any = || self.depends.get(reg.index()).copied().unwrap_or(ALL);
        self.last.get(&reg).copied().unwrap_or_else(any)
    }

    /// One pass over all statements. Says whether something has grown.
    fn grow(&mut self, kernel: &Kernel, targets: &BTreeSet<usize>) -> bool {
        let before = (self.depends.clone(), self.way);
        let mut butterflies: Vec<(Reg, Butterfly)> = Vec::new();
        for (at, statement) in kernel.body.iter().enumerate() {
            if targets.contains(&at) {
                butterflies.clear();
                self.last.clear();
            }
            let guard = statement.guard.map_or(0, |g| self.of(g.reg));
            let (written, read) = effects(statement);
            let jumps = matches!(statement.what, What::Branch { .. } | What::Table { .. } | What::Exit);
            if jumps && !only_waits(kernel, at) {
                self.way |= read.iter().fold(guard, |bits, r| bits | self.of(*r));
            }
            let bits = guard | self.result(statement, &read, &butterflies);
            butterflies.retain(|(to, (from, _))| !written.contains(to) && !written.contains(from));
            butterflies.extend(butterfly(statement));
            for reg in written {
                if let Some(depends) = self.depends.get_mut(reg.index()) {
                    *depends |= bits;
                }
                let kept = if statement.guard.is_some() { self.of(reg) } else { 0 };
                self.last.insert(reg, bits | kept);
            }
        }
        self.last.clear();
        before != (self.depends.clone(), self.way)
    }

    /// The bits on which the results of a statement depend.
    fn result(&self, statement: &Statement, read: &[Reg], butterflies: &[(Reg, Butterfly)]) -> u16 {
        let all = || read.iter().fold(0, |bits, r| bits | self.of(*r));
        match &statement.what {
            What::Core(op) => {
                let computes =
                    matches!(op, Op::Mov { .. } | Op::Alu { .. } | Op::Setp { .. } | Op::Selp { .. });
                let loads =
                    matches!(op, Op::Load { order: LoadOrder::Weak, space, .. } if *space != Space::Generic);
                if computes || loads { all() } else { ALL }
            }
            What::Plain(instr) => match sort(instr) {
                Sort::Computes(Sum::Binary(b)) if self.masked(b).is_some() => self.masked(b).unwrap_or(ALL),
                Sort::Computes(sum) => self.computed(instr, sum, butterflies, all()) | special(instr),
                Sort::Load(ld) if shares(ld) => all() | special(instr),
                _ => ALL,
            },
            _ => 0,
        }
    }

    /// The bits on which some bits of `%tid.x` depend.
    fn masked(&self, binary: &Binary) -> Option<u16> {
        let (reg, mask) = and_of(binary)?;
        let bits = u64::from(mask) << self.tid.get(&reg)?;
        u16::try_from(bits & u64::from(ALL)).ok()
    }

    fn computed(&self, instr: &Instr, sum: Sum<'_>, butterflies: &[(Reg, Butterfly)], all: u16) -> u16 {
        match sum {
            Sum::Binary(b) => match halves(b, butterflies) {
                Some((reg, bit)) => self.of(reg) & !bit,
                None if b.carry.is() || matches!(b.form, BinaryForm::Addc | BinaryForm::Subc) => ALL,
                None => all,
            },
            Sum::Shfl(shfl) => match exchanged(shfl) {
                Some((reg, _)) => self.of(reg),
                None if of_one_lane(shfl) => all & !LANE,
                None => ALL,
            },
            Sum::Mov(_) | Sum::Unary(_) | Sum::Ternary(_) | Sum::Bfi(_) | Sum::Shf(_) | Sum::Prmt(_) => all,
            Sum::Lop3(_) | Sum::Setp(_) | Sum::Selp(_) | Sum::Cvt(_) | Sum::Cvta(_) => all,
            Sum::Other => {
                let computes = matches!(instr, Instr::Testp(_) | Instr::Slct(_) | Instr::Set(_));
                if computes { all } else { ALL }
            }
            Sum::Vote(_) | Sum::Match(_) | Sum::Redux(_) | Sum::Activemask | Sum::Product => ALL,
        }
    }
}

/// The register and the mask of an `and`.
fn and_of(binary: &Binary) -> Option<(Reg, u32)> {
    let mask = number(&binary.b).and_then(|n| u32::try_from(n).ok())?;
    (binary.form == BinaryForm::And).then_some((ptx::reg(&binary.a)?, mask))
}

/// How many statements write each register.
fn writers(kernel: &Kernel) -> BTreeMap<Reg, usize> {
    let mut written: BTreeMap<Reg, usize> = BTreeMap::new();
    kernel.body.iter().flat_map(|s| effects(s).0).for_each(|r| *written.entry(r).or_default() += 1);
    written
}

/// The registers that one statement writes, which moves, shifts down or masks `%tid.x`, with the distance of the shift.
fn tids(kernel: &Kernel) -> BTreeMap<Reg, u32> {
    let written = writers(kernel);
    let mut out: BTreeMap<Reg, u32> = BTreeMap::new();
    for statement in kernel.body.iter().filter(|s| s.guard.is_none()) {
        let What::Plain(instr) = &statement.what else { continue };
        let Sort::Computes(sum) = sort(instr) else { continue };
        let of = |v: &Value| ptx::reg(v).and_then(|r| out.get(&r).copied());
        let found = match sum {
            Sum::Mov(_) => match sources(instr).as_slice() {
                [Value::Special(named)] if matches!(Special::from(*named), Special::Tid(0)) => Some(0),
                [one] => of(one),
                _ => None,
            },
            Sum::Binary(b) if b.form == BinaryForm::And && number(&b.b).is_some_and(|n| n >= 0) => of(&b.a),
            Sum::Binary(b) if b.form == BinaryForm::Shr => {
                let by = number(&b.b).and_then(|n| u32::try_from(n).ok()).filter(|n| *n < 10);
                of(&b.a).zip(by).map(|(a, b)| a + b)
            }
            _ => None,
        };
        let to = effects(statement).0;
        let (Some(by), [reg]) = (found, to.as_slice()) else { continue };
        if written.get(reg) == Some(&1) {
            out.insert(*reg, by);
        }
    }
    out
}

/// Whether a branch belongs to a loop that does nothing but wait: `W: wait p; @!p bra W;`, or `@p bra D; bra W; D:` behind it.
fn only_waits(kernel: &Kernel, at: usize) -> bool {
    let what = |n: usize| kernel.body.get(n).map(|s| (&s.what, s.guard));
    let wait = |op: &Op| matches!(op, Op::Mbarrier(m) if matches!(m.op, MbarrierOp::Wait(_)));
    let waits = |n: &usize| matches!(what(*n), Some((What::Core(op), None)) if wait(op));
    let Some(wait) = at.checked_sub(1).filter(waits) else { return false };
    let back = |n: usize, guarded: bool| matches!(what(n), Some((What::Branch { target }, guard)) if *target == wait && guard.is_some() == guarded);
    let over = matches!(what(at), Some((What::Branch { target }, Some(_))) if *target == at + 2);
    back(at, true) || over && back(at + 1, false)
}

/// The places that a jump leads to.
fn targets(kernel: &Kernel) -> BTreeSet<usize> {
    let of = |statement: &Statement| match &statement.what {
        What::Branch { target } => vec![*target],
        What::Table { table, .. } => kernel.tables.get(*table).cloned().unwrap_or_default(),
        _ => Vec::new(),
    };
    kernel.body.iter().flat_map(of).collect()
}

/// Whether lanes that load from one address load the same: the load is weak, and no lane has a memory of its own there.
fn shares(ld: &Ld) -> bool {
    let own = matches!(ld.space, kinds::Space::Local | kinds::Space::Generic);
    !own && ld.order.order == kinds::LoadOrder::Weak && !ld.mmio.is()
}

/// All bits if the instruction reads a special register that lanes of a warp need not agree on.
fn special(instr: &Instr) -> u16 {
    let agreed = |value: &Value| match value {
        Value::Special(named) => matches!(
            Special::from(*named),
            Special::Ntid(_)
                | Special::Ctaid(_)
                | Special::Nctaid(_)
                | Special::Clusterid(_)
                | Special::Nclusterid(_)
                | Special::ClusterCtaid(_)
                | Special::ClusterNctaid(_)
                | Special::ClusterCtarank
                | Special::ClusterNctarank
        ),
        _ => true,
    };
    if sources(instr).iter().all(agreed) { 0 } else { ALL }
}

/// The butterfly of all lanes that an unguarded statement is: its result, its source, the bit.
fn butterfly(statement: &Statement) -> Option<(Reg, Butterfly)> {
    let What::Plain(instr) = &statement.what else { return None };
    let Sort::Computes(Sum::Shfl(shfl)) = sort(instr) else { return None };
    let to = shfl.dst.first.as_ref().and_then(|_| effects(statement).0.first().copied())?;
    let from = exchanged(shfl).filter(|_| statement.guard.is_none())?;
    (to != from.0).then_some((to, from))
}

fn number(value: &Value) -> Option<i64> {
    if let Value::Imm(n) = value { Some(*n) } else { None }
}

/// Whether all lanes take part in an exchange, as one segment.
fn is_whole(shfl: &Shfl) -> bool {
    number(&shfl.c) == Some(31) && number(&shfl.mask).is_some_and(|m| m & 0xffff_ffff == 0xffff_ffff)
}

/// Whether all lanes get the value of one lane.
fn of_one_lane(shfl: &Shfl) -> bool {
    shfl.mode == ShflMode::Idx && is_whole(shfl) && number(&shfl.b).is_some()
}

/// The source of a butterfly of all lanes, and its bits.
fn exchanged(shfl: &Shfl) -> Option<Butterfly> {
    let bits = number(&shfl.b).and_then(|n| u16::try_from(n).ok()).filter(|n| *n <= LANE)?;
    let from = ptx::reg(&shfl.a)?;
    (shfl.mode == ShflMode::Bfly && is_whole(shfl)).then_some((from, bits))
}

/// The register and the bit, if the operation commutes and combines a register with its butterfly of one bit.
fn halves(binary: &Binary, butterflies: &[(Reg, Butterfly)]) -> Option<Butterfly> {
    let commutes = matches!(
        binary.form,
        BinaryForm::Add
            | BinaryForm::Mul
            | BinaryForm::Min
            | BinaryForm::Max
            | BinaryForm::And
            | BinaryForm::Or
            | BinaryForm::Xor
    );
    let (a, b) = (ptx::reg(&binary.a)?, ptx::reg(&binary.b)?);
    let plain = commutes && !binary.carry.is() && binary.c.0.is_none();
    let of = |to: Reg, from: Reg| butterflies.iter().find(|f| f.0 == to && f.1.0 == from).map(|f| f.1);
    of(b, a).or_else(|| of(a, b)).filter(|f| plain && f.1.count_ones() == 1)
}
