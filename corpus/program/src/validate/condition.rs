//! Lints about conditions: finds comparisons that no value of the program satisfies.
//!
//! A flow-insensitive value analysis estimates the set of values that each register and each memory cell may ever hold.
//! Values start as literals and initial values and spread through moves, loads, stores and exchanges. Arithmetic, unknown
//! addresses, overlapping accesses of different sizes and sets of more than [`VALUES`] members count as *anything*.

use super::access::Access;
use super::report::Report;
use crate::ir::*;
use crate::text::term_text;
use std::collections::{BTreeMap, BTreeSet};

/// Most members of a set of values.
const VALUES: usize = 16;

/// Most rounds of the analysis. If a program needs more, everything counts as *anything*.
const ROUNDS: usize = 64;

/// Calls `see` for every term.
pub(super) fn terms(expr: &Expr, see: &mut dyn FnMut(Term)) {
    match expr {
        Expr::Bool(_) => {}
        Expr::Not(e) => terms(e, see),
        Expr::And(es) | Expr::Or(es) => es.iter().for_each(|e| terms(e, see)),
        Expr::Cmp(_, a, b) => [*a, *b].into_iter().for_each(see),
    }
}

fn comparisons(expr: &Expr, see: &mut dyn FnMut(CmpOp, Term, Term)) {
    match expr {
        Expr::Bool(_) => {}
        Expr::Not(e) => comparisons(e, see),
        Expr::And(es) | Expr::Or(es) => es.iter().for_each(|e| comparisons(e, see)),
        Expr::Cmp(op, a, b) => see(*op, *a, *b),
    }
}

/// `None`: anything.
type Set = Option<BTreeSet<Value>>;

fn join(into: &mut Set, from: &Set) -> bool {
    let Some(have) = into else { return false };
    let Some(more) = from else {
        *into = None;
        return true;
    };
    let before = have.len();
    have.extend(more);
    let grown = have.len() > before;
    if have.len() > VALUES {
        *into = None;
    }
    grown
}

/// Object, first byte, size.
type Cell = (ObjectId, i64, u32);

struct Values<'p> {
    program: &'p Program,
    regs: Vec<Vec<Set>>,
    cells: BTreeMap<Cell, Set>,
}

pub(super) fn check(report: &mut Report<'_>, accesses: &[Access]) {
    let program = report.program;
    if program.conditions.is_empty() && program.filter.is_none() {
        return;
    }
    let values = Values::of(program, accesses);
    let exprs = program.filter.iter().chain(program.conditions.iter().map(|c| &c.expr));
    let mut found = Vec::new();
    exprs.for_each(|e| comparisons(e, &mut |op, a, b| found.extend(judge(&values, op, a, b))));
    for (id, what) in found {
        report.about(id, what, None);
    }
}

fn judge(values: &Values<'_>, op: CmpOp, a: Term, b: Term) -> Option<(&'static str, String)> {
    let (term, n) = match (a, b) {
        (term, Term::Const(n)) | (Term::Const(n), term) => (term, n),
        _ => return None,
    };
    let name = term_text(values.program, term);
    let (set, bits) = match term {
        Term::Const(_) => return None,
        // Only the low 8 bits are compared, because a register may have been written with any width.
        Term::Reg(t, r) => (values.regs[t.index()][r.index()].clone(), 8),
        Term::Mem { symbol, offset, bytes, .. } => {
            let bits = u32::from(bytes) * 8;
            if bits < 64 && !(-(1i64 << (bits - 1))..1i64 << bits).contains(&n) {
                let what = format!("{n} does not fit the {bits} bits of `{name}`");
                return Some(("truncated-immediate", what));
            }
            let cell = (values.program.symbols[symbol.index()].object, i64::from(offset), u32::from(bytes));
            (values.cells.get(&cell).cloned().unwrap_or_default(), bits)
        }
    };
    let low = |v: Value| v & (Value::MAX >> (128 - bits));
    #[expect(clippy::cast_sign_loss, reason = "a bit pattern is wanted")]
    let wanted = low(Value::from(n as u64));
    let possible = set?.iter().any(|v| low(*v) == wanted);
    (op == CmpOp::Eq && !possible)
        .then(|| ("impossible-condition", format!("no instruction can make `{name}` equal to {n}")))
}

impl<'p> Values<'p> {
    fn of(program: &'p Program, accesses: &[Access]) -> Self {
        let start = |r: &RegDecl| match r.init {
            RegInit::Value(v) => Some(BTreeSet::from([v])),
            RegInit::Address(_) | RegInit::Lane => None,
        };
        let regs = program.threads.iter().map(|t| t.regs.iter().map(start).collect()).collect();
        let mut values = Values { program, regs, cells: cells(program, accesses) };
        let at: BTreeMap<(usize, usize), &Access> = accesses.iter().map(|a| ((a.thread, a.at), a)).collect();
        for _ in 0..ROUNDS {
            let mut changed = false;
            for (t, thread) in program.threads.iter().enumerate() {
                for (i, instr) in thread.body.iter().enumerate() {
                    changed |= values.step(t, &instr.op, at.get(&(t, i)).copied());
                }
            }
            if !changed {
                return values;
            }
        }
        values.cells.clear();
        values.regs.iter_mut().flatten().for_each(|set| *set = None);
        values
    }

    fn operand(&self, t: usize, operand: Operand, bits: u32) -> Set {
        #[expect(clippy::cast_sign_loss, reason = "a bit pattern is wanted")]
        let of = |v: i128| v as Value;
        let low = |v: Value| v & (Value::MAX >> (128 - bits.clamp(1, 128)));
        match operand {
            Operand::Imm(n) => Some(BTreeSet::from([low(of(n))])),
            Operand::Reg(r) => self.regs[t][r.index()].as_ref().map(|s| s.iter().map(|v| low(*v)).collect()),
            Operand::Address(_) => None,
        }
    }

    fn set(&mut self, t: usize, reg: Reg, set: &Set) -> bool {
        join(&mut self.regs[t][reg.index()], set)
    }

    fn step(&mut self, t: usize, op: &Op, access: Option<&Access>) -> bool {
        let cell = access.and_then(|a| {
            let (symbol, offset) = a.place?;
            Some((self.program.symbols[symbol.index()].object, offset, a.bytes))
        });
        let held = cell.and_then(|c| self.cells.get(&c).cloned()).unwrap_or_default();
        match op {
            Op::Mov { ty, dst, src } => {
                let set = self.operand(t, *src, ty.bytes() * 8);
                self.set(t, *dst, &set)
            }
            Op::Selp { ty, dst, a, b, .. } => {
                let (x, y) = (self.operand(t, *a, ty.bytes() * 8), self.operand(t, *b, ty.bytes() * 8));
                self.set(t, *dst, &x) | self.set(t, *dst, &y)
            }
            Op::Setp { dst, .. } => self.set(t, *dst, &Some(BTreeSet::from([0, 1]))),
            Op::Load { dst, .. } if dst.len() == 1 => self.set(t, dst[0], &held),
            Op::Store { ty, src, .. } if src.len() == 1 => {
                let set = self.operand(t, src[0], ty.bytes() * 8);
                self.write(cell, &set)
            }
            Op::Rmw { op, ty, dst, a, b, .. } => {
                let new = match (op, b) {
                    (AtomOp::Exch, _) => self.operand(t, *a, ty.bytes() * 8),
                    (AtomOp::Cas, Some(b)) => self.operand(t, *b, ty.bytes() * 8),
                    _ => None,
                };
                let written = self.write(cell, &new);
                dst.is_some_and(|d| self.set(t, d, &held)) | written
            }
            Op::Load { .. } | Op::Store { .. } | Op::Mbarrier(_) | Op::Alu { .. } | Op::Mapa { .. } => {
                self.anything(t, op)
            }
            multimem_op!() => self.anything(t, op),
            fence_op!() => self.anything(t, op),
            barrier_op!() => self.anything(t, op),
            unit_op!() | Op::Tile(_) | Op::Control(_) => self.anything(t, op),
            jump_op!() => false,
            Op::Book(_) => self.anything(t, op),
        }
    }

    /// An instruction may leave anything in what it writes.
    fn anything(&mut self, t: usize, op: &Op) -> bool {
        let (_, written) = crate::registers::uses(op);
        written.into_iter().fold(false, |changed, r| self.set(t, r, &None) | changed)
    }

    fn write(&mut self, cell: Option<Cell>, set: &Set) -> bool {
        cell.and_then(|c| self.cells.get_mut(&c)).is_some_and(|s| join(s, set))
    }
}

/// Cells that the analysis follows: every access to them names them, is of one element, and covers the whole cell. A
/// program with asynchronous instructions has none.
fn cells(program: &Program, accesses: &[Access]) -> BTreeMap<Cell, Set> {
    let mut cells: BTreeMap<Cell, Set> = BTreeMap::new();
    let asynchronous = program.threads.iter().flat_map(|t| &t.body).any(|i| i.op.extended().is_some());
    if asynchronous || accesses.iter().any(|a| a.place.is_none()) {
        return cells;
    }
    let mut lost: BTreeSet<ObjectId> = BTreeSet::new();
    for access in accesses {
        let op = &program.threads[access.thread].body[access.at].op;
        let whole = matches!(op, Op::Load { dst, ty, .. } if dst.len() == 1 && !ty.packed())
            || matches!(op, Op::Store { src, ty, .. } if src.len() == 1 && !ty.packed())
            || matches!(op, Op::Rmw { ty, .. } if !ty.packed());
        let Some((symbol, offset)) = access.place else { continue };
        let object = program.symbols[symbol.index()].object;
        let owner = &program.objects[object.index()];
        let inside = |at: &u32| at.checked_add(access.bytes).is_some_and(|end| end <= owner.bytes);
        match u32::try_from(offset).ok().filter(inside) {
            Some(at) if whole && access.bytes <= 8 => {
                let value = owner.init.value(at, access.bytes);
                cells.insert((object, offset, access.bytes), Some(BTreeSet::from([value])));
            }
            _ => lost.extend(access.objects(program).unwrap_or_default()),
        }
    }
    let all: Vec<Cell> = cells.keys().copied().collect();
    for pair in all.windows(2) {
        if pair[0].0 == pair[1].0 && pair[0].1 + i64::from(pair[0].2) > pair[1].1 {
            lost.insert(pair[0].0);
        }
    }
    cells.retain(|cell, _| !lost.contains(&cell.0));
    cells
}
