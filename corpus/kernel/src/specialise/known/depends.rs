//! What the guard of a statement depends on: a backward slice of the kernel over the definitions that reach it.
//!
//! A guard of a definition belongs to the slice. Where several definitions reach a place, so do the branches that decide
//! between them. What a load or an atomic operation reads, and the answer of a wait, is *data*; nothing behind it is followed.
//! A weak load from shared memory is remembered with its place, and its address is followed: launches may show that all of what
//! it reads is written in the kernel.

use super::flow::{effects, meets, successors};
use super::strides::loaded;
use crate::ptx::{Kernel, Sort, Special, Statement, Sum, Variable, What, sort};
use moire_isa::kinds::{self, Space as In};
use moire_isa::{Instr, Ld, Value};
use moire_program::ir::{Control, LoadOrder, MbarrierOp, Op, Operand, Parts, Reg, Space};
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, register_op, unit_op};
use std::collections::{BTreeMap, BTreeSet};

/// Most pairs of a place and a register that are visited for one slice.
const VISITS: usize = 1 << 12;

/// What a value depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depends {
    /// Parameters, with the first byte of the field.
    pub(crate) params: BTreeSet<(u16, u32)>,
    /// Axes along which the grid, or the place of a CTA in it, counts.
    pub(crate) axes: [bool; 3],
    /// The number of a lane, a warp or a thread.
    pub(crate) thread: bool,
    /// Data, or more than is followed, beside `words` and `globals`.
    pub(crate) data: bool,
    /// The weak loads from shared memory.
    pub(crate) words: BTreeSet<usize>,
    /// The weak loads from global memory: what they read is data, or a number of the launch.
    pub(crate) globals: BTreeSet<usize>,
    /// Whether a phase of an mbarrier is over.
    pub(crate) phase: bool,
    /// The numbers that are written in the slice, with those that masks and shifts stand for.
    pub(crate) numbers: BTreeSet<u64>,
}

impl Depends {
    /// Whether a launch decides it: a parameter or the grid.
    pub(crate) fn is_free(&self) -> bool {
        !self.is_data() && !self.phase && self.is_chosen()
    }

    /// Whether data belongs to it.
    pub(crate) fn is_data(&self) -> bool {
        self.is_beyond() || !self.words.is_empty()
    }

    /// Whether data belongs to it beside what is read in shared memory.
    fn is_beyond(&self) -> bool {
        self.data || !self.globals.is_empty()
    }

    /// The weak loads whose words decide it.
    pub(crate) fn reads(&self) -> impl Iterator<Item = &usize> {
        self.words.iter().chain(&self.globals)
    }

    /// Whether nothing that a launch or data decides belongs to it, if `words` are the same in all launches.
    pub(crate) fn is_fixed(&self) -> bool {
        !self.is_beyond() && !self.phase && !self.is_chosen()
    }

    /// Whether a parameter or the grid belongs to it.
    fn is_chosen(&self) -> bool {
        !self.params.is_empty() || self.axes.contains(&true)
    }

    /// Whether all threads of a CTA with these numbers have it alike in every launch, or each of them has it as in any other
    /// launch, if `words` are. Who asks for a phase goes on when it is over.
    fn is_for_all(&self) -> bool {
        !self.is_beyond() && (!self.thread || !self.is_chosen())
    }

    pub(crate) fn join(&mut self, other: &Depends) {
        self.params.extend(&other.params);
        self.numbers.extend(&other.numbers);
        self.thread |= other.thread;
        self.data |= other.data;
        self.words.extend(&other.words);
        self.globals.extend(&other.globals);
        self.phase |= other.phase;
        for (own, others) in self.axes.iter_mut().zip(other.axes) {
            *own |= others;
        }
    }

    fn special(&mut self, special: Special) {
        match special {
            Special::Ctaid(n) | Special::Nctaid(n) | Special::Clusterid(n) | Special::Nclusterid(n) => {
                self.axes[usize::from(n) % 3] = true;
            }
            Special::Unknown | Special::DynamicSmemSize => self.data = true,
            Special::Ntid(_) | Special::Nwarpid | Special::Envreg(_) => {}
            Special::ClusterCtaid(_)
            | Special::ClusterNctaid(_)
            | Special::ClusterCtarank
            | Special::ClusterNctarank => {}
            _ => self.thread = true,
        }
    }

    /// A number without its sign, with those that it stands for as a mask and as a shift.
    fn number(&mut self, n: i128) {
        let n = u64::try_from(n.unsigned_abs()).unwrap_or(u64::MAX);
        let shifted = if n < 16 { Some(1 << n) } else { None };
        let masked = n.checked_add(1).filter(|m| m.is_power_of_two());
        self.numbers.extend([Some(n), shifted, masked].into_iter().flatten());
    }
}

/// The definitions of the registers of a kernel.
pub(crate) struct Slices<'k> {
    kernel: &'k Kernel,
    effects: Vec<(Vec<Reg>, Vec<Reg>)>,
    before: Vec<Vec<usize>>,
    /// Places that write a register.
    written: BTreeMap<Reg, Vec<usize>>,
    /// The branches that decide whether a place is reached.
    deciding: Vec<Vec<usize>>,
}

impl<'k> Slices<'k> {
    pub(crate) fn new(kernel: &'k Kernel) -> Self {
        let effects: Vec<_> = kernel.body.iter().map(effects).collect();
        let mut before = vec![Vec::new(); kernel.body.len() + 1];
        let mut written: BTreeMap<Reg, Vec<usize>> = BTreeMap::new();
        for (pc, (writes, _)) in effects.iter().enumerate() {
            successors(kernel, pc).into_iter().for_each(|s| before[s].push(pc));
            writes.iter().for_each(|r| written.entry(*r).or_default().push(pc));
        }
        Slices { kernel, effects, before, written, deciding: deciding(kernel) }
    }

    /// What a register depends on where a statement reads it.
    pub(crate) fn of(&self, pc: usize, reg: Reg) -> Depends {
        let mut out = Depends::default();
        let mut work = vec![(pc, reg)];
        let mut seen: BTreeSet<(usize, Reg)> = BTreeSet::new();
        let mut used: BTreeSet<usize> = BTreeSet::new();
        while let Some((pc, reg)) = work.pop() {
            if !seen.insert((pc, reg)) {
                continue;
            }
            if seen.len() > VISITS {
                return Depends { data: true, ..out };
            }
            let reaching = self.reaching(pc, reg);
            let several = reaching.len() > 1;
            for at in reaching {
                if several {
                    let deciding = self.deciding[at].iter();
                    work.extend(deciding.filter_map(|b| Some((*b, self.kernel.body[*b].guard?.reg))));
                }
                if !used.insert(at) {
                    continue;
                }
                let statement = &self.kernel.body[at];
                out.words.extend(reads_word(statement).then_some(at));
                if reads_global(statement) {
                    out.globals.insert(at);
                    continue;
                }
                if source(self.kernel, statement, &mut out) {
                    let guard = statement.guard.map(|g| g.reg);
                    work.extend(self.effects[at].1.iter().copied().chain(guard).map(|r| (at, r)));
                }
            }
        }
        out
    }

    /// The loads from which these registers are computed where these statements read them.
    pub(crate) fn loads(&self, mut work: Vec<(usize, Reg)>) -> BTreeSet<usize> {
        let (mut out, mut seen) = (BTreeSet::new(), BTreeSet::new());
        while let Some((pc, reg)) = work.pop() {
            if !seen.insert((pc, reg)) {
                continue;
            }
            for at in self.reaching(pc, reg) {
                match loads(&self.kernel.body[at]) {
                    true => drop(out.insert(at)),
                    false => work.extend(self.effects[at].1.iter().map(|r| (at, *r))),
                }
            }
        }
        out
    }

    /// Whether the threads of a CTA that come to a place in some launch are those that come to it in any other, if some do: the
    /// loads of words that have to be the same for it.
    pub(crate) fn same_threads(&self, pc: usize) -> Option<BTreeSet<usize>> {
        let (mut seen, mut words) = (BTreeSet::new(), BTreeSet::new());
        let mut work = self.deciding[pc].clone();
        while let Some(branch) = work.pop() {
            if !seen.insert(branch) {
                continue;
            }
            let depends = match (self.kernel.body[branch].guard, &self.kernel.body[branch].what) {
                (Some(guard), _) => self.of(branch, guard.reg),
                (None, What::Table { index, .. }) => self.of(branch, *index),
                (None, _) => Depends::default(),
            };
            if !depends.is_for_all() {
                return None;
            }
            words.extend(depends.words);
            work.extend(&self.deciding[branch]);
        }
        Some(words)
    }

    /// Whether neither the number of a thread nor data decides how often a place is reached.
    pub(crate) fn is_level(&self, pc: usize) -> bool {
        let (mut seen, mut work) = (BTreeSet::new(), self.deciding[pc].clone());
        while let Some(branch) = work.pop() {
            let statement = &self.kernel.body[branch];
            let reads = self.effects[branch].1.iter().copied().chain(statement.guard.map(|g| g.reg));
            let varies = |d: Depends| d.thread || d.is_data() || d.phase;
            if reads.map(|reg| self.of(branch, reg)).any(varies) {
                return false;
            }
            work.extend(self.deciding[branch].iter().filter(|b| seen.insert(**b)));
        }
        true
    }

    /// Whether a statement loads from memory.
    pub(crate) fn is_load(&self, pc: usize) -> bool {
        loads(&self.kernel.body[pc])
    }

    /// The places whose write of a register is the last one on some way to a place.
    pub(crate) fn reaching(&self, pc: usize, reg: Reg) -> Vec<usize> {
        match self.written.get(&reg).map(Vec::as_slice) {
            None => return Vec::new(),
            Some([one]) => return vec![*one],
            Some(_) => {}
        }
        let (mut out, mut seen) = (Vec::new(), BTreeSet::new());
        let mut work = self.before[pc].clone();
        while let Some(at) = work.pop() {
            if !seen.insert(at) {
                continue;
            }
            let writes = self.effects[at].0.contains(&reg);
            out.extend(writes.then_some(at));
            if !writes || self.kernel.body[at].guard.is_some() {
                work.extend(&self.before[at]);
            }
        }
        out
    }
}

fn loads(statement: &Statement) -> bool {
    match &statement.what {
        What::Core(op) => matches!(op, Op::Load { .. }),
        What::Plain(instr) => matches!(sort(instr), Sort::Load(_)),
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}

/// For each place, the branches that decide whether it is reached: it is on the way from one of their targets to where both
/// ways meet.
fn deciding(kernel: &Kernel) -> Vec<Vec<usize>> {
    let next: Vec<Vec<usize>> = (0..kernel.body.len()).map(|pc| successors(kernel, pc)).collect();
    let meets = meets(&next);
    let mut out = vec![Vec::new(); kernel.body.len() + 1];
    for (pc, all) in next.iter().enumerate().filter(|(_, all)| all.len() > 1) {
        for to in all {
            let mut at = *to;
            while at != meets[pc] && at < kernel.body.len() {
                if out[at].last() != Some(&pc) {
                    out[at].push(pc);
                }
                at = meets[at];
            }
        }
    }
    out
}

/// Adds what a statement brings in. Whether the registers that it reads are to be followed.
fn source(kernel: &Kernel, statement: &Statement, out: &mut Depends) -> bool {
    match &statement.what {
        What::Plain(instr) => plain(kernel, statement, instr, out),
        What::Core(op) => core(op, out),
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}

fn plain(kernel: &Kernel, statement: &Statement, instr: &Instr, out: &mut Depends) -> bool {
    match sort(instr) {
        Sort::Load(ld) if ld.space == In::Param => {
            out.params.extend(loaded(kernel, statement));
            out.data |= loaded(kernel, statement).is_none();
            return false;
        }
        Sort::Computes(Sum::Shfl(_) | Sum::Vote(_) | Sum::Match(_) | Sum::Redux(_) | Sum::Activemask) => {
            out.thread = true;
        }
        Sort::Computes(_) => {}
        Sort::Load(ld) if is_shared(ld) => return true,
        _ => {
            out.data = true;
            return false;
        }
    }
    instr.each(&mut |seen| match *seen.value {
        Value::Special(named) => out.special(named.into()),
        Value::Imm(n) => out.number(i128::from(n)),
        Value::Symbol(n, _) => {
            if let Some(Variable::Param(at)) = kernel.variables.get(n as usize) {
                out.params.extend(u16::try_from(*at).ok().map(|at| (at, 0)));
            }
        }
        _ => {}
    });
    true
}

fn core(op: &Op, out: &mut Depends) -> bool {
    match op {
        register_op!() => {
            let numbers =
                op.sources().into_iter().filter_map(|o| if let Operand::Imm(n) = o { Some(n) } else { None });
            numbers.for_each(|n| out.number(n));
            true
        }
        Op::Control(Control::Elect { .. }) => {
            out.thread = true;
            false
        }
        Op::Control(Control::Collective(_)) => {
            out.thread = true;
            true
        }
        Op::Mbarrier(mbarrier) if matches!(mbarrier.op, MbarrierOp::Wait(_)) => {
            out.phase = true;
            false
        }
        Op::Load { .. } if is_word(op) => true,
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Tile(_) => data(out),
        multimem_op!() | Op::Control(_) => data(out),
        fence_op!() | barrier_op!() | unit_op!() | jump_op!() => data(out),
        Op::Book(_) => data(out),
    }
}

/// Whether a statement is a weak load from shared memory.
fn reads_word(statement: &Statement) -> bool {
    match &statement.what {
        What::Core(op) => is_word(op),
        What::Plain(instr) => matches!(sort(instr), Sort::Load(ld) if is_shared(ld)),
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}

/// Whether a statement is a weak load from global memory.
fn reads_global(statement: &Statement) -> bool {
    match &statement.what {
        What::Core(op) => {
            matches!(op, Op::Load { order: LoadOrder::Weak, space: Space::Global | Space::Generic, .. })
        }
        What::Plain(instr) => match sort(instr) {
            Sort::Load(ld) => {
                matches!(ld.space, In::Global | In::Generic) && ld.order.order == kinds::LoadOrder::Weak
            }
            Sort::Uniform(_) => true,
            _ => false,
        },
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}

fn is_word(op: &Op) -> bool {
    matches!(op, Op::Load { order: LoadOrder::Weak, space: Space::SharedCta, .. })
}

fn is_shared(ld: &Ld) -> bool {
    ld.space == In::SharedCta && ld.order.order == kinds::LoadOrder::Weak
}

fn data(out: &mut Depends) -> bool {
    out.data = true;
    false
}
