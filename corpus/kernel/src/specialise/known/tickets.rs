//! Stores whose places a counter hands out: no two of them meet.
//!
//! `t = atom.add [counter], n` gives the thread that asks the numbers `t` to `t + n - 1`, and no other thread gets one of these. So the
//! store at `p + s * (t + r)` is alone at its place if `s` is as large as the store, and `0 <= r < n` differs for each thread
//! that shares the ticket:
//!
//! - each lane has a ticket of its own: `t` is what its own atomic operation has read, `n` a number, `r` a constant below it;
//! - one lane asks for all: `n = popc(m)` and `r = popc(m & lanes below)`, where `m` is the ballot of a predicate that holds
//!   for each lane that stores. Which lane has asked is known when the warp is run ahead.
//!
//! What holds for this: the operation adds, nothing but such operations writes the counter from then on, and the sum does not
//! wrap around. No two such stores race, so they stand for relaxed ones; then nothing else in that memory may be relaxed or
//! atomic, because it would not race with them either.

use super::depends::Slices;
use super::flow::{meets, successors};
use super::map::Map;
use super::region::{pointed, region};
use super::strides::address;
use crate::ptx::{self, Kernel, Sort, Statement, Sum, Updated, What, sort, sources};
use crate::specialise::touch::Mem;
use moire_isa::Value;
use moire_isa::kinds::{BinaryForm, Cmp, Space as In, UnaryForm, VoteMode};
use moire_program::ir::{AluOp, AtomOp, CmpOp, Op, Operand, Reg, Ty};
use std::collections::BTreeSet;

/// Most registers that are visited for one address.
const VISITS: usize = 256;

/// A store whose address is a pointer and a multiple of a sum, of which a ticket may be a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticketed {
    /// Bytes from one number to the next.
    pub(crate) scale: u64,
    /// The constant in the sum.
    pub(crate) more: u64,
    /// The other terms, which have these values at the store, too.
    pub(crate) terms: Vec<Reg>,
    /// The one term is what the lane's own operation at this place has read.
    pub(crate) own: Option<usize>,
    /// One term is the rank of a lane among those that share a ticket.
    pub(crate) rank: Option<Rank>,
}

/// The rank of a lane in a ballot, among lanes that are all in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    /// The other term.
    pub(crate) ticket: Reg,
    /// The mask of the lanes below.
    pub(crate) below: Reg,
    /// The operations that ask for as many numbers as there are lanes in the ballot.
    pub(crate) updates: BTreeSet<usize>,
}

/// An operand of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Reg(Reg),
    Number(i64),
    Other,
}

/// What a statement computes, as far as it matters here.
enum Made {
    Same(Part),
    Add(Part, Part),
    And(Part, Part),
    Times(Part, u64),
    Count(Part),
    Other,
}

/// The tickets of a kernel.
pub(crate) struct Tickets<'k> {
    kernel: &'k Kernel,
    map: &'k Map,
    slices: Slices<'k>,
    next: Vec<Vec<usize>>,
}

impl<'k> Tickets<'k> {
    pub(crate) fn new(kernel: &'k Kernel, map: &'k Map) -> Self {
        let next = (0..kernel.body.len()).map(|pc| successors(kernel, pc)).collect();
        Tickets { kernel, map, slices: Slices::new(kernel), next }
    }

    /// The operations whose counter nothing changes behind them but operations that add.
    pub(crate) fn handing(&self) -> BTreeSet<usize> {
        let adds = |pc: &usize| {
            matches!(self.kernel.body[*pc].what, What::Core(Op::Rmw { op: AtomOp::Add, b: None, .. }))
        };
        (0..self.kernel.body.len()).filter(adds).filter(|pc| self.hands_out(*pc)).collect()
    }

    /// The store at a place, with the register of its address, if its place may come from a ticket.
    pub(crate) fn of(&self, pc: usize, reg: Reg, handing: &BTreeSet<usize>) -> Option<Ticketed> {
        let (scale, (at, number)) = self.scaled(pc, reg)?;
        let (mut more, mut terms) = (0u64, Vec::new());
        for part in self.terms(at, number) {
            match part {
                (_, Part::Number(n)) => more = more.checked_add(u64::try_from(n).ok()?)?,
                (at, Part::Reg(reg)) => terms.push((at, reg)),
                (_, Part::Other) => return None,
            }
        }
        let kept =
            |(at, reg): &(usize, Reg)| self.slices.reaching(pc, *reg) == self.slices.reaching(*at, *reg);
        if !terms.iter().all(kept) {
            return None;
        }
        let (own, rank) = match terms.as_slice() {
            [one] => (self.own(*one).filter(|own| handing.contains(own)), None),
            [a, b] => (None, self.rank(pc, *a, *b, handing).or_else(|| self.rank(pc, *b, *a, handing))),
            _ => return None,
        };
        Some(Ticketed { scale, more, terms: terms.into_iter().map(|t| t.1).collect(), own, rank })
    }

    /// The statement that alone writes a register which another one reads, if it always does.
    fn definition(&self, pc: usize, reg: Reg) -> Option<usize> {
        match self.slices.reaching(pc, reg).as_slice() {
            [one] if self.kernel.body[*one].guard.is_none() => Some(*one),
            _ => None,
        }
    }

    /// The one product in the sum that an address is: its factor, and the register with its place.
    fn scaled(&self, pc: usize, address: Reg) -> Option<(u64, (usize, Reg))> {
        let (mut found, mut work, mut visits) = (None, vec![(pc, address)], 0);
        while let Some((at, reg)) = work.pop() {
            visits += 1;
            // What comes from several places is taken for a pointer: a register of the address was found to point somewhere.
            let Some(definition) = self.definition(at, reg).filter(|_| visits < VISITS) else { continue };
            match made(&self.kernel.body[definition]) {
                Made::Times(Part::Reg(reg), factor) if found.is_none() => {
                    found = Some((factor, (definition, reg)))
                }
                Made::Times(..) => return None,
                Made::Same(part) => work.extend(registers(definition, [part])),
                Made::Add(a, b) => work.extend(registers(definition, [a, b])),
                _ => {}
            }
        }
        found.filter(|_| visits < VISITS)
    }

    /// The terms of a sum, each with the place that reads it.
    fn terms(&self, pc: usize, reg: Reg) -> Vec<(usize, Part)> {
        let (mut out, mut work) = (Vec::new(), vec![(pc, Part::Reg(reg))]);
        while let Some((at, part)) = work.pop() {
            let definition = if let Part::Reg(reg) = part { self.definition(at, reg) } else { None };
            match definition.map(|d| (d, made(&self.kernel.body[d]))) {
                Some((d, Made::Same(a))) if work.len() < VISITS => work.push((d, a)),
                Some((d, Made::Add(a, b))) if work.len() < VISITS => work.extend([(d, a), (d, b)]),
                _ => out.push((at, part)),
            }
            if out.len() > VISITS {
                return vec![(pc, Part::Other)];
            }
        }
        out
    }

    /// The lane's own operation, if it asks for a number or more.
    fn own(&self, (at, reg): (usize, Reg)) -> Option<usize> {
        let update = self.definition(at, reg)?;
        let What::Core(Op::Rmw { op: AtomOp::Add, a: Operand::Imm(n), b: None, .. }) =
            &self.kernel.body[update].what
        else {
            return None;
        };
        (*n > 0).then_some(update)
    }

    /// The rank that the second term is, if it counts the lanes below in a ballot of lanes that all store.
    fn rank(
        &self,
        pc: usize,
        ticket: (usize, Reg),
        rank: (usize, Reg),
        handing: &BTreeSet<usize>,
    ) -> Option<Rank> {
        let counts = self.definition(rank.0, rank.1)?;
        let Made::Count(Part::Reg(below)) = made(&self.kernel.body[counts]) else { return None };
        let masks = self.definition(counts, below)?;
        let Made::And(Part::Reg(a), Part::Reg(b)) = made(&self.kernel.body[masks]) else { return None };
        let ballot = |reg: Reg| Some(self.definition(masks, reg)?).filter(|d| self.is_ballot(pc, *d));
        let (ballot, below) = match (ballot(a), ballot(b)) {
            (Some(ballot), None) => ((ballot, a), b),
            (None, Some(ballot)) => ((ballot, b), a),
            _ => return None,
        };
        let kept = self.slices.reaching(pc, below) == self.slices.reaching(masks, below);
        let updates = handing.iter().copied().filter(|update| self.asks(*update, ballot)).collect();
        kept.then_some(Rank { ticket: ticket.1, below, updates })
    }

    /// Whether the operation at a place asks for as many numbers as there are lanes in this ballot.
    fn asks(&self, update: usize, (ballot, reg): (usize, Reg)) -> bool {
        let What::Core(Op::Rmw { a: Operand::Reg(a), .. }) = &self.kernel.body[update].what else {
            return false;
        };
        let Some(counts) = self.definition(update, *a) else { return false };
        matches!(made(&self.kernel.body[counts]), Made::Count(Part::Reg(r)) if r == reg)
            && self.definition(counts, reg) == Some(ballot)
    }

    /// Whether nothing that may run behind an operation at a place writes its counter, but for operations that add.
    fn hands_out(&self, update: usize) -> bool {
        let Some(counter) = self.target(update) else { return false };
        let (mut seen, mut work) = (BTreeSet::new(), self.next[update].clone());
        while let Some(pc) = work.pop() {
            if pc >= self.kernel.body.len() || !seen.insert(pc) {
                continue;
            }
            if self.may_change(pc, counter) {
                return false;
            }
            work.extend(&self.next[pc]);
        }
        true
    }

    /// Whether a statement may write this memory in another way than by adding a positive number.
    fn may_change(&self, pc: usize, counter: (Mem, u64, u64)) -> bool {
        let apart = |to: (Mem, u64, u64)| to.0 != counter.0 || to.2 <= counter.1 || counter.2 <= to.1;
        let elsewhere = || self.target(pc).is_some_and(apart);
        match &self.kernel.body[pc].what {
            What::Core(Op::Rmw { op: AtomOp::Add, a: Operand::Imm(1..) | Operand::Reg(_), .. }) => false,
            What::Core(Op::Rmw { .. } | Op::Store { .. }) => !elsewhere(),
            What::Core(Op::AsyncCopy(_) | Op::MultimemStore { .. } | Op::MultimemRed { .. }) => true,
            What::Core(_) | What::Branch { .. } | What::Table { .. } | What::Exit => false,
            What::Plain(instr) => match sort(instr) {
                Sort::Store(st) if matches!(st.space, In::Local | In::Param) => false,
                Sort::Store(_) | Sort::Update(_) => !elsewhere(),
                Sort::Computes(_) | Sort::Load(_) | Sort::Uniform(_) | Sort::LoadMatrix(_) => false,
                Sort::Hint | Sort::Fence | Sort::Trap => false,
                Sort::StoreMatrix(_) | Sort::StoreAway(_) | Sort::StoreRange(_) | Sort::Call(_) => true,
                Sort::Synchronises | Sort::Touches | Sort::Elsewhere => true,
            },
        }
    }

    /// The variable or the parameter in whose memory a statement acts.
    fn target(&self, pc: usize) -> Option<(Mem, u64, u64)> {
        let statement = &self.kernel.body[pc];
        match address(statement) {
            Some((_, reg)) => region(self.kernel, &self.slices, self.map, (pc, reg)),
            None => named(self.kernel, self.map, statement),
        }
    }

    /// Whether a statement computes a ballot in which each lane is that comes to this place.
    fn is_ballot(&self, pc: usize, definition: usize) -> bool {
        let What::Plain(instr) = &self.kernel.body[definition].what else { return false };
        let Sort::Computes(Sum::Vote(vote)) = sort(instr) else { return false };
        let Some(asked) = ptx::reg(&vote.a.value) else { return false };
        let meets = meets(&self.next);
        let guards = |branch: usize| {
            let What::Branch { target } = self.kernel.body[branch].what else { return false };
            let Some(guard) = self.kernel.body[branch].guard else { return false };
            let [taken, passed] = [target, branch + 1].map(|from| self.leads(from, pc, meets[branch]));
            let holds = taken != guard.negated;
            taken != passed
                && self.implies(pc, (branch, guard.reg, holds), (definition, asked, !vote.a.negated))
        };
        vote.mode == VoteMode::Ballot && (0..self.kernel.body.len()).any(guards)
    }

    /// Whether a way leads from one place to another before a third.
    fn leads(&self, from: usize, to: usize, end: usize) -> bool {
        let (mut seen, mut work) = (BTreeSet::new(), vec![from]);
        while let Some(pc) = work.pop() {
            if pc == to {
                return true;
            }
            if pc != end && pc < self.next.len() && seen.insert(pc) {
                work.extend(&self.next[pc]);
            }
        }
        false
    }

    /// Whether a predicate with this answer at a branch means that another one has that answer at a ballot: they are one, or compare
    /// one signed number in ways of which the first implies the second. From where it is written, every way to this place
    /// passes both.
    fn implies(&self, pc: usize, one: (usize, Reg, bool), other: (usize, Reg, bool)) -> bool {
        let [a, b] = [one, other].map(|(at, reg, _)| self.definition(at, reg));
        let (Some(a), Some(b)) = (a, b) else { return false };
        let passes = |from: usize| {
            let leads = |end: usize| self.next[from].iter().any(|start| self.leads(*start, pc, end));
            !leads(one.0) && !leads(other.0)
        };
        if a == b {
            return one.2 == other.2 && passes(a);
        }
        let [x, y] = [a, b].map(|at| at_least(&self.kernel.body[at]));
        let (Some(x), Some(y)) = (x, y) else { return false };
        let source = self.definition(a, x.0).filter(|d| x.0 == y.0 && self.definition(b, y.0) == Some(*d));
        // The number is at least so much, or less.
        let (p, q) = (x.2 == one.2, y.2 == other.2);
        let implied = match (p, q) {
            (true, true) => x.1 >= y.1,
            (false, false) => x.1 <= y.1,
            _ => false,
        };
        implied && source.is_some_and(passes)
    }
}

/// A comparison as `reg >= n`, with whether it holds if the comparison does.
fn at_least(statement: &Statement) -> Option<(Reg, i128, bool)> {
    let of = |cmp: Cmp, reg: Reg, n: i128| match cmp {
        Cmp::Ge => Some((reg, n, true)),
        Cmp::Gt => Some((reg, n + 1, true)),
        Cmp::Lt => Some((reg, n, false)),
        Cmp::Le => Some((reg, n + 1, false)),
        _ => None,
    };
    if statement.guard.is_some() {
        return None;
    }
    if let What::Core(Op::Setp { op, ty: Ty::S(_), a: Operand::Reg(reg), b: Operand::Imm(n), .. }) =
        &statement.what
    {
        let cmp = match op {
            CmpOp::Ge => Cmp::Ge,
            CmpOp::Gt => Cmp::Gt,
            CmpOp::Lt => Cmp::Lt,
            CmpOp::Le => Cmp::Le,
            CmpOp::Eq | CmpOp::Ne => return None,
        };
        return of(cmp, *reg, *n);
    }
    let What::Plain(instr) = &statement.what else { return None };
    let Sort::Computes(Sum::Setp(i)) = sort(instr) else { return None };
    let compares = i.ty.signed() && i.join.is_none();
    of(i.cmp, ptx::reg(&i.a)?, i128::from(number(&i.b)?)).filter(|_| compares)
}

/// The variable that a statement names as its address.
fn named(kernel: &Kernel, map: &Map, statement: &Statement) -> Option<(Mem, u64, u64)> {
    let symbol = match &statement.what {
        What::Core(op) => match op.place()?.1.base {
            Operand::Address(symbol) => u32::from(symbol.0),
            _ => return None,
        },
        What::Plain(instr) => {
            let base = match sort(instr) {
                Sort::Store(st) => st.addr.base,
                Sort::Update(Updated::Atom(i)) => i.addr.base,
                Sort::Update(Updated::Red(i)) => i.addr.base,
                _ => return None,
            };
            if let Value::Symbol(n, _) = base { n } else { return None }
        }
        _ => return None,
    };
    pointed(kernel, map, symbol)
}

fn registers(at: usize, parts: impl IntoIterator<Item = Part>) -> impl Iterator<Item = (usize, Reg)> {
    let reg = move |part: Part| if let Part::Reg(reg) = part { Some((at, reg)) } else { None };
    parts.into_iter().filter_map(reg)
}

fn number(value: &Value) -> Option<i64> {
    if let Value::Imm(n) = value { Some(*n) } else { None }
}

fn made(statement: &Statement) -> Made {
    match &statement.what {
        What::Core(op) => core(op),
        What::Plain(instr) => {
            let part = |v: &Value| match (ptx::reg(v), v) {
                (Some(reg), _) => Part::Reg(reg),
                (None, Value::Imm(n)) => Part::Number(*n),
                _ => Part::Other,
            };
            let times = |n: Option<u64>, a: &Value| n.map_or(Made::Other, |n| Made::Times(part(a), n));
            let power = |v: &Value| number(v).and_then(|n| 1u64.checked_shl(u32::try_from(n).ok()?));
            match sort(instr) {
                Sort::Computes(Sum::Mov(_) | Sum::Cvt(_) | Sum::Cvta(_)) => match sources(instr).as_slice() {
                    [one] => Made::Same(part(one)),
                    _ => Made::Other,
                },
                Sort::Computes(Sum::Binary(i)) if !i.carry.is() => match i.form {
                    BinaryForm::Add => Made::Add(part(&i.a), part(&i.b)),
                    BinaryForm::And => Made::And(part(&i.a), part(&i.b)),
                    BinaryForm::Mul => times(number(&i.b).and_then(|n| u64::try_from(n).ok()), &i.a),
                    BinaryForm::Shl => times(power(&i.b), &i.a),
                    _ => Made::Other,
                },
                Sort::Computes(Sum::Unary(i)) if i.form == UnaryForm::Popc => Made::Count(part(&i.a)),
                _ => Made::Other,
            }
        }
        _ => Made::Other,
    }
}

fn core(op: &Op) -> Made {
    let part = |o: &Operand| match o {
        Operand::Reg(r) => Part::Reg(*r),
        Operand::Imm(n) => i64::try_from(*n).map_or(Part::Other, Part::Number),
        _ => Part::Other,
    };
    let number = |o: &Operand| if let Operand::Imm(n) = o { u64::try_from(*n).ok() } else { None };
    let times = |n: Option<u64>, a: &Operand| n.map_or(Made::Other, |n| Made::Times(part(a), n));
    if let Op::Mov { src, .. } = op {
        return Made::Same(part(src));
    }
    let Op::Alu { op, a, b, .. } = op else { return Made::Other };
    match op {
        AluOp::Add => Made::Add(part(a), part(b)),
        AluOp::And => Made::And(part(a), part(b)),
        AluOp::Mul => times(number(b), a),
        AluOp::Shl => times(number(b).and_then(|n| 1u64.checked_shl(u32::try_from(n).ok()?)), a),
        _ => Made::Other,
    }
}
