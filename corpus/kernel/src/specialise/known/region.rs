//! Where an address points that data decides: somewhere in the variable or the memory of the parameter from which it is
//! computed.
//!
//! An address is a sum of a pointer and numbers. The pointer is followed backwards through moves, additions and conversions, over
//! every definition that reaches the access. Where it comes from one variable or one parameter alone, the access is one
//! somewhere in there: what leaves its object is undefined (PTX ISA 9.2, 6.4).

use super::depends::Slices;
use super::flow::effects;
use super::map::Map;
use super::strides::{address, loaded};
use super::tickets::{Ticketed, Tickets};
use crate::ptx::{self, Kernel, Sort, Statement, Sum, Variable, What, sort};
use crate::specialise::touch::Mem;
use moire_isa::kinds::{self, BinaryForm, TernaryForm};
use moire_isa::{Instr, Value};
use moire_program::ir::{AluOp, AsyncCopy, Op, Operand, Reg, StoreOrder};
use std::collections::{BTreeMap, BTreeSet};

/// Most pairs of a place and a register that are visited.
const VISITS: usize = 1 << 10;
/// The end of the memory of a parameter or of a variable in global memory.
pub(crate) const END: u64 = 1 << 40;

/// Where a pointer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// With the first byte of the field.
    Param(u16, u32),
    Symbol(u32),
}

/// What a definition adds up.
enum Sums {
    /// Registers, one of which may be a pointer, and symbols.
    Of(Vec<Reg>, Vec<u32>),
    /// The same with the rank of the CTA in whose memory that is.
    Peer(Vec<Reg>, Vec<u32>, Operand),
    /// A parameter, or a field of one.
    Param(u16, u32),
    /// No pointer.
    Number,
    /// Perhaps a pointer, and nobody knows whose: 64 bits that were loaded, or computed in another way.
    Hidden,
}

/// What is known of the accesses of a kernel without running it.
pub(crate) struct Regions {
    /// For each access the memory that its address points into, and the bytes there. Shared memory is that of CTA 0.
    pub(crate) of: BTreeMap<usize, (Mem, u64, u64)>,
    /// The ranks of the CTAs whose shared memory an access may be in, by `mapa`.
    pub(crate) ranks: BTreeMap<usize, Vec<Operand>>,
    /// The loads that some guard depends on.
    pub(crate) steering: BTreeSet<usize>,
    /// The stores whose places a counter may hand out.
    pub(crate) tickets: BTreeMap<usize, Ticketed>,
    /// The operations by which one does.
    pub(crate) handing: BTreeSet<usize>,
}

impl Regions {
    pub(crate) fn new(kernel: &Kernel, map: &Map) -> Regions {
        let slices = Slices::new(kernel);
        let all = || kernel.body.iter().enumerate();
        let (mut of, mut ranks) = (BTreeMap::new(), BTreeMap::new());
        for (pc, (shared, reg)) in all().filter_map(|(pc, s)| Some((pc, accessed(s)?))) {
            let Some((found, peers)) = anywhere(kernel, &slices, map, (pc, reg)) else { continue };
            if !shared || found.0.cta().is_some() {
                of.insert(pc, found);
                ranks.extend((!peers.is_empty()).then_some((pc, peers)));
            }
        }
        let tickets = Tickets::new(kernel, map);
        let handing = tickets.handing();
        let ticket = |(pc, s): (usize, &Statement)| {
            let stores = !handing.is_empty() && stores(s);
            Some((pc, tickets.of(pc, address(s).filter(|_| stores)?.1, &handing)?))
        };
        let tickets = all().filter_map(ticket).collect();
        let guards = all().filter_map(|(pc, s)| Some((pc, s.guard?.reg)));
        Regions { of, ranks, steering: slices.loads(guards.collect()), tickets, handing }
    }
}

/// The register in the address of an access or a small copy, and whether it is of shared memory.
fn accessed(statement: &Statement) -> Option<(bool, Reg)> {
    address(statement).or_else(|| copied(statement))
}

/// The registers in addresses of global memory, with the statements.
pub(crate) fn pointing(kernel: &Kernel) -> impl Iterator<Item = (usize, Reg)> {
    let one = |(pc, s)| Some((pc, accessed(s).filter(|a| !a.0)?.1));
    kernel.body.iter().enumerate().filter_map(one)
}

/// The parameters, and fields of them, from which a pointer may come that a place reads.
pub(crate) fn pointers(kernel: &Kernel, slices: &Slices<'_>, at: (usize, Reg)) -> BTreeSet<(u16, u32)> {
    let param = |origin| if let Origin::Param(n, at) = origin { Some((n, at)) } else { None };
    let found = origins(kernel, slices, at).map(|found| found.0).unwrap_or_default();
    found.into_iter().filter_map(param).collect()
}

/// The register in the address of what `cp.async` copies, which is in global memory.
fn copied(statement: &Statement) -> Option<(bool, Reg)> {
    let What::Core(Op::AsyncCopy(AsyncCopy::Small(copy))) = &statement.what else { return None };
    if let Operand::Reg(reg) = copy.src.base { Some((false, reg)) } else { None }
}

/// Whether a statement is a weak store.
fn stores(statement: &Statement) -> bool {
    match &statement.what {
        What::Core(op) => matches!(op, Op::Store { order: StoreOrder::Weak, .. }),
        What::Plain(instr) => {
            matches!(sort(instr), Sort::Store(st) if st.order.order == kinds::StoreOrder::Weak)
        }
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}

/// The memory into which a register points that a place reads, and the bytes there.
pub(super) fn region(
    kernel: &Kernel,
    slices: &Slices<'_>,
    map: &Map,
    at: (usize, Reg),
) -> Option<(Mem, u64, u64)> {
    anywhere(kernel, slices, map, at).filter(|(_, ranks)| ranks.is_empty()).map(|(region, _)| region)
}

/// The same, and the ranks of CTAs with which the pointer is made.
fn anywhere(
    kernel: &Kernel,
    slices: &Slices<'_>,
    map: &Map,
    at: (usize, Reg),
) -> Option<((Mem, u64, u64), Vec<Operand>)> {
    let (mut found, ranks) = origins(kernel, slices, at)?;
    let one = found.pop_first().filter(|_| found.is_empty())?;
    let region = match one {
        Origin::Param(n, 0) => Some((Mem::Param(n), 0, END)),
        Origin::Param(..) => None,
        Origin::Symbol(n) => pointed(kernel, map, n),
    };
    Some((region?, ranks))
}

/// Where a pointer comes from that a place reads, and the ranks of CTAs with which it is made.
fn origins(
    kernel: &Kernel,
    slices: &Slices<'_>,
    (pc, reg): (usize, Reg),
) -> Option<(BTreeSet<Origin>, Vec<Operand>)> {
    let mut ranks = Vec::new();
    let mut found: BTreeSet<Origin> = BTreeSet::new();
    let (mut work, mut seen) = (vec![(pc, reg)], BTreeSet::new());
    while let Some(at) = work.pop() {
        if !seen.insert(at) {
            continue;
        }
        if seen.len() > VISITS {
            return None;
        }
        for definition in slices.reaching(at.0, at.1) {
            match sums(kernel, &kernel.body[definition]) {
                Sums::Of(regs, symbols) => {
                    found.extend(symbols.into_iter().map(Origin::Symbol));
                    work.extend(regs.into_iter().map(|r| (definition, r)));
                }
                Sums::Peer(regs, symbols, rank) => {
                    ranks.push(rank);
                    found.extend(symbols.into_iter().map(Origin::Symbol));
                    work.extend(regs.into_iter().map(|r| (definition, r)));
                }
                Sums::Param(n, at) => drop(found.insert(Origin::Param(n, at))),
                Sums::Number => {}
                Sums::Hidden => return None,
            }
        }
    }
    Some((found, ranks))
}

/// The memory of a variable, and its bytes.
pub(super) fn pointed(kernel: &Kernel, map: &Map, symbol: u32) -> Option<(Mem, u64, u64)> {
    match kernel.variables.get(symbol as usize)? {
        Variable::Shared { bytes: Some(bytes), .. } => {
            let start = (*map.at.get(symbol as usize)?)?;
            Some((Mem::Shared(0), start, start + u64::from(*bytes)))
        }
        Variable::Global => Some((Mem::Variable(u16::try_from(symbol).ok()?), 0, END)),
        Variable::Shared { bytes: None, .. } | Variable::Local { .. } | Variable::Param(_) => None,
    }
}

fn sums(kernel: &Kernel, statement: &Statement) -> Sums {
    let eight = |r: &Reg| kernel.types.get(r.index()).is_none_or(|t| t.bytes() >= 8);
    let wide = effects(statement).0.iter().any(eight);
    match &statement.what {
        What::Core(op) => core(op, wide),
        What::Plain(instr) => match sort(instr) {
            Sort::Computes(sum) => {
                summed(instr, sum).unwrap_or(if wide { Sums::Hidden } else { Sums::Number })
            }
            _ if !wide => Sums::Number,
            Sort::Load(_) => match loaded(kernel, statement) {
                Some((n, at)) => Sums::Param(n, at),
                None => Sums::Hidden,
            },
            _ => Sums::Hidden,
        },
        What::Branch { .. } | What::Table { .. } | What::Exit => Sums::Number,
    }
}

/// The operands of a sum, of which one may be a pointer. Products and shifts are none.
fn summed(instr: &Instr, sum: Sum<'_>) -> Option<Sums> {
    Some(match sum {
        Sum::Mov(_) | Sum::Selp(_) | Sum::Cvt(_) | Sum::Cvta(_) => of(&ptx::sources(instr)),
        Sum::Binary(i) if i.form == BinaryForm::Add => of(&[i.a, i.b]),
        Sum::Binary(i) if i.form == BinaryForm::Sub => of(&[i.a]),
        Sum::Binary(i) if matches!(i.form, BinaryForm::Mul | BinaryForm::Shl) => Sums::Number,
        Sum::Ternary(i) if i.form == TernaryForm::Mad => of(&[i.c]),
        Sum::Setp(_) => Sums::Number,
        _ => return None,
    })
}

fn of(values: &[Value]) -> Sums {
    let symbol = |v: &Value| if let Value::Symbol(n, _) = v { Some(*n) } else { None };
    Sums::Of(values.iter().filter_map(ptx::reg).collect(), values.iter().filter_map(symbol).collect())
}

fn core(op: &Op, wide: bool) -> Sums {
    let mut all: Vec<Operand> = Vec::new();
    if let Op::Mov { src: a, .. } | Op::Alu { op: AluOp::Sub, a, .. } = op {
        all.push(*a);
    } else if let Op::Selp { a, b, .. } | Op::Alu { op: AluOp::Add, a, b, .. } = op {
        all.extend([*a, *b]);
    }
    let reg = |o: &Operand| if let Operand::Reg(r) = o { Some(*r) } else { None };
    let symbol = |o: &Operand| if let Operand::Address(s) = o { Some(u32::from(s.0)) } else { None };
    if let Op::Mapa { src, rank, .. } = op {
        return Sums::Peer(reg(src).into_iter().collect(), symbol(src).into_iter().collect(), *rank);
    }
    match all.is_empty() {
        true if wide && !matches!(op, Op::Alu { op: AluOp::Mul | AluOp::Shl, .. }) => Sums::Hidden,
        true => Sums::Number,
        false => Sums::Of(all.iter().filter_map(reg).collect(), all.iter().filter_map(symbol).collect()),
    }
}
