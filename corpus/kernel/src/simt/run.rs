//! Specialises one thread, statement by statement (polyvariant specialisation).
//!
//! A jump target is copied once for each different knowledge about its live registers. A path that comes back to the target
//! with the same knowledge jumps to that copy. An unknown value stays in the register of the same number.

use super::matrix::Rows;
use super::names::Names;
use crate::Done;
use crate::Refusal;
use crate::ptx::{self, Kernel, Statement, What, mnemonic};
use crate::specialise::known::flow::effects;
use moire_isa::{Value, operand};
use moire_program::ir::{
    Address, AluOp, BarKind, Control, Guard, Instr, Label, Op, Operand, Placement, Reg, RegDecl, RegInit,
    SymbolId, Thread, Ty,
};
use moire_program::multimem_op;
use moire_program::registers::uses;
use std::collections::BTreeMap;

/// Most statements that are run for one thread.
const STEPS: usize = 1 << 18;

/// The place of a thread in the launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Here {
    pub(super) tid: u32,
    pub(super) width: u32,
    /// The number of the CTA in the grid.
    pub(super) cta: u32,
    /// The number of CTAs in a cluster.
    pub(super) rank: u32,
    /// The number of clusters.
    pub(super) blocks: u32,
}

/// The knowledge about a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Val {
    /// Never written.
    Unset,
    /// A number.
    Known(u64),
    /// An offset in bytes behind a symbol.
    Address(SymbolId, i64),
    /// An unknown number, computed at run time in the register.
    Dynamic,
    /// The result of the statement at this place, which is not interpreted.
    Unknown(usize),
}

/// Whether a statement is run.
#[derive(Clone, Copy)]
pub(super) enum When {
    Always,
    Never,
    If(Guard),
    Unknown(usize),
}

enum Next {
    Fall,
    Jump(usize),
    End,
}

/// Jump targets and live registers, computed once for each kernel.
pub(super) struct Targets {
    jumped: Vec<bool>,
    live: Vec<Vec<bool>>,
}

pub(super) fn targets(kernel: &Kernel) -> Targets {
    let (body, count) = (&kernel.body, kernel.types.len());
    let mut jumped = vec![false; body.len() + 1];
    let next: Vec<Vec<usize>> = (0..body.len())
        .map(|pc| {
            let mut out = match &body[pc].what {
                What::Branch { target } => vec![(*target).min(body.len())],
                What::Table { table, .. } => kernel.tables.get(*table).cloned().unwrap_or_default(),
                What::Exit => vec![body.len()],
                _ => vec![pc + 1],
            };
            out.retain(|t| *t <= body.len());
            if !matches!(body[pc].what, What::Core(_) | What::Plain(_) | What::Exit) {
                out.iter().for_each(|t| jumped[*t] = true);
            }
            if body[pc].guard.is_some() {
                out.push(pc + 1);
            }
            out
        })
        .collect();
    let mut live = vec![vec![false; count]; body.len() + 1];
    let mut changed = true;
    while changed {
        changed = false;
        for pc in (0..body.len()).rev() {
            let mut now = vec![false; count];
            for s in &next[pc] {
                now.iter_mut().zip(&live[*s]).for_each(|(a, b)| *a |= b);
            }
            let (writes, reads) = effects(&body[pc]);
            if body[pc].guard.is_none() {
                writes.iter().for_each(|r| now[r.index()] = false);
            }
            let guard = body[pc].guard.map(|g| g.reg);
            reads.into_iter().chain(guard).for_each(|r| now[r.index()] = true);
            changed |= now != live[pc];
            live[pc] = now;
        }
    }
    Targets { jumped, live }
}

/// The specialisation of one thread.
pub(super) struct Run<'k> {
    pub(super) kernel: &'k Kernel,
    targets: &'k Targets,
    pub(super) names: &'k Names,
    pub(super) rows: &'k Rows,
    pub(super) here: Here,
    pub(super) env: Vec<Val>,
    regs: Vec<RegDecl>,
    out: Vec<Instr>,
    seen: BTreeMap<(usize, Vec<Val>), usize>,
    /// For each number in `seen`, the place of its copy in the result.
    placed: Vec<Option<usize>>,
    open: Vec<(usize, Vec<Val>, usize)>,
    /// The current statement.
    pub(super) pc: usize,
}

impl<'k> Run<'k> {
    pub(super) fn new(
        kernel: &'k Kernel,
        targets: &'k Targets,
        (names, rows): (&'k Names, &'k Rows),
        here: Here,
    ) -> Done<Self> {
        let regs = kernel.program.threads.first().map(|t| t.regs.clone()).unwrap_or_default();
        if regs.len() != kernel.types.len() {
            return Err(Refusal::about("a kernel whose registers have no types"));
        }
        Ok(Run {
            kernel,
            targets,
            names,
            rows,
            here,
            env: vec![Val::Unset; regs.len()],
            regs,
            out: Vec::new(),
            seen: BTreeMap::new(),
            placed: Vec::new(),
            open: Vec::new(),
            pc: 0,
        })
    }

    /// Makes the thread, without its name and place. Subtracts its instructions from `left`, which all threads share.
    pub(super) fn run(mut self, left: &mut usize) -> Done<Thread> {
        let mut steps = 0;
        self.meet(0);
        while let Some((pc, env, id)) = self.open.pop() {
            if self.placed[id].is_some() {
                continue;
            }
            self.placed[id] = Some(self.out.len());
            self.env = env;
            self.stretch(pc, &mut steps)?;
            if self.out.len() > moire_program::limits::INSTRUCTIONS || self.out.len() > *left {
                return Err(Refusal::Bounded("a kernel that leaves too many instructions".to_owned()));
            }
        }
        for instr in &mut self.out {
            if let Op::Bra { target } = &mut instr.op {
                *target = self.placed[*target].ok_or_else(|| Refusal::about("a jump to nowhere"))?;
            }
        }
        *left -= self.out.len();
        let (place, labels) = (Placement::default(), Vec::<Label>::new());
        let thread = Thread { name: String::new(), place, regs: self.regs, labels, body: self.out };
        Ok(super::tidy::tidy(thread))
    }

    /// Follows one path until it ends or reaches an existing copy.
    fn stretch(&mut self, from: usize, steps: &mut usize) -> Done<()> {
        let mut pc = from;
        let mut first = true;
        loop {
            *steps += 1;
            if *steps > STEPS {
                return Err(Refusal::Bounded(format!(
                    "a thread that runs through more than {STEPS} statements"
                )));
            }
            let Some(statement) = self.kernel.body.get(pc) else {
                self.emit(None, Op::Exit);
                return Ok(());
            };
            self.pc = pc;
            if !first && self.targets.jumped[pc] {
                let id = self.number(pc).0;
                if self.placed[id].is_some() {
                    self.emit(None, Op::Bra { target: id });
                    return Ok(());
                }
                self.placed[id] = Some(self.out.len());
            }
            first = false;
            match self.statement(statement)? {
                Next::Fall => pc += 1,
                Next::Jump(to) => pc = to,
                Next::End => return Ok(()),
            }
        }
    }

    /// The number of this place with the current knowledge, and whether it is new.
    fn number(&mut self, pc: usize) -> (usize, bool) {
        let live = &self.targets.live[pc.min(self.kernel.body.len())];
        let env = self.env.iter().zip(live).map(|(v, l)| if *l { *v } else { Val::Unset }).collect();
        let next = self.placed.len();
        let id = *self.seen.entry((pc, env)).or_insert(next);
        if id == next {
            self.placed.push(None);
        }
        (id, id == next)
    }

    /// The number of this place with the current knowledge. A new place is run later.
    fn meet(&mut self, pc: usize) -> usize {
        let (id, new) = self.number(pc);
        if new {
            self.open.push((pc, self.env.clone(), id));
        }
        id
    }

    fn statement(&mut self, statement: &Statement) -> Done<Next> {
        let when = self.when(statement.guard);
        if let When::Never = when {
            return Ok(Next::Fall);
        }
        match (&statement.what, when) {
            (What::Plain(instr), when) => self.plain(instr, when)?,
            (_, When::Unknown(pc)) => return Err(self.unknown(pc)),
            (What::Core(op), when) => self.core(op.clone(), when)?,
            (What::Branch { target }, When::If(guard)) => {
                let id = self.meet(*target);
                self.emit(Some(guard), Op::Bra { target: id });
            }
            (What::Branch { target }, _) => return Ok(Next::Jump(*target)),
            (What::Exit, When::If(guard)) => self.emit(Some(guard), Op::Exit),
            (What::Exit, _) => {
                self.emit(None, Op::Exit);
                return Ok(Next::End);
            }
            (What::Table { index, table }, When::Always) => {
                let Val::Known(at) = self.env[index.index()] else {
                    return Err(self.refuse("a table of branches whose entry is not known"));
                };
                let entry = usize::try_from(at).ok().and_then(|at| self.kernel.tables.get(*table)?.get(at));
                return entry
                    .copied()
                    .map(Next::Jump)
                    .ok_or_else(|| self.refuse("an entry beyond the end of a table of branches"));
            }
            (What::Table { .. }, _) => return Err(self.refuse("a table of branches under a predicate")),
        }
        Ok(Next::Fall)
    }

    fn when(&self, guard: Option<Guard>) -> When {
        let Some(guard) = guard else { return When::Always };
        match self.env[guard.reg.index()] {
            Val::Known(v) if (v != 0) != guard.negated => When::Always,
            Val::Known(_) => When::Never,
            Val::Dynamic => When::If(guard),
            Val::Unknown(pc) => When::Unknown(pc),
            Val::Unset | Val::Address(..) => When::Unknown(self.pc),
        }
    }

    /// Runs an instruction that litmus texts have too.
    pub(super) fn core(&mut self, mut op: Op, when: When) -> Done<()> {
        match &mut op {
            Op::Load { addr, .. } => *addr = self.address(*addr)?,
            Op::Store { addr, src, .. } => {
                *addr = self.address(*addr)?;
                for s in src {
                    *s = self.source(*s)?;
                }
            }
            Op::Rmw { addr, a, b, .. } => {
                *addr = self.address(*addr)?;
                *a = self.source(*a)?;
                if let Some(b) = b {
                    *b = self.source(*b)?;
                }
            }
            Op::Bar { kind, id, count, .. } => {
                *id = self.source(*id)?;
                if let Some(count) = count {
                    *count = self.source(*count)?;
                }
                if let BarKind::Red { pred, .. } = kind {
                    let Operand::Reg(reg) = self.register(Operand::Reg(pred.reg))? else { return Ok(()) };
                    pred.reg = reg;
                }
            }
            Op::WarpSync { mask } => *mask = self.source(*mask)?,
            Op::Fence { .. } | Op::ProxyFence(_) | Op::ClusterArrive { .. } | Op::ClusterWait => {}
            Op::Control(Control::Ignored(_)) => return Ok(()),
            Op::Mapa { .. } => return Err(self.refuse("`mapa`")),
            Op::Mbarrier(_) | Op::MbarrierInitFence => return Err(self.refuse("`mbarrier`")),
            multimem_op!() => {
                return Err(self.refuse("`multimem`"));
            }
            Op::Mov { .. }
            | Op::Alu { .. }
            | Op::Setp { .. }
            | Op::Selp { .. }
            | Op::Bra { .. }
            | Op::Exit => {
                return Err(self.refuse("this instruction"));
            }
            Op::Tcgen05(_)
            | Op::AsyncCopy(_)
            | Op::Wgmma(_)
            | Op::ProxyOrder(_)
            | Op::Tile(_)
            | Op::Control(_) => {
                let name = op.extended().unwrap_or("this instruction");
                return Err(self.refuse(name));
            }
            Op::Book(book) => return Err(self.refuse(book.name())),
        }
        let written = uses(&op).1;
        self.write(&written, when, op)
    }

    /// Emits an instruction that may write registers.
    pub(super) fn write(&mut self, written: &[Reg], when: When, op: Op) -> Done<()> {
        match when {
            When::Always => self.emit(None, op),
            When::If(guard) => {
                written.iter().try_for_each(|r| self.settle(*r))?;
                self.emit(Some(guard), op);
            }
            When::Never => return Ok(()),
            When::Unknown(pc) => return Err(self.unknown(pc)),
        }
        for r in written {
            let lost = matches!(when, When::If(_)) && matches!(self.env[r.index()], Val::Unknown(_));
            if !lost {
                self.env[r.index()] = Val::Dynamic;
            }
        }
        Ok(())
    }

    /// Writes the known value into a register before the register is written under a predicate.
    pub(super) fn settle(&mut self, reg: Reg) -> Done<()> {
        if let Val::Known(_) | Val::Address(..) = self.env[reg.index()] {
            let src = self.source(Operand::Reg(reg))?;
            self.emit(None, Op::Mov { ty: self.width(reg), dst: reg, src });
            self.env[reg.index()] = Val::Dynamic;
        }
        Ok(())
    }

    /// The untyped type of a register.
    pub(super) fn width(&self, reg: Reg) -> Ty {
        match self.kernel.types.get(reg.index()) {
            Some(Ty::Pred) => Ty::Pred,
            Some(ty) => Ty::B(u8::try_from(ty.bytes() * 8).unwrap_or(64)),
            None => Ty::B(64),
        }
    }

    /// The knowledge about an operand of the kernel.
    pub(super) fn value(&self, operand: Operand) -> Val {
        match operand {
            Operand::Reg(r) => self.env.get(r.index()).copied().unwrap_or(Val::Dynamic),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low bits count")]
            Operand::Imm(v) => Val::Known(v as u64),
            Operand::Address(s) => self.symbol(s, 0),
        }
    }

    pub(super) fn symbol(&self, symbol: SymbolId, offset: i64) -> Val {
        let known = self.names.known.get(symbol.index()).copied().flatten();
        known.map_or(Val::Unknown(self.pc), |s| Val::Address(s, offset))
    }

    /// Turns an operand of the kernel into one of the result.
    pub(super) fn source(&mut self, operand: Operand) -> Done<Operand> {
        match operand {
            Operand::Imm(_) => Ok(operand),
            other => {
                let value = self.value(other);
                self.place(value, other)
            }
        }
    }

    /// Turns a value into an operand; a dynamic value stays in the operand `was`.
    pub(super) fn place(&mut self, value: Val, was: Operand) -> Done<Operand> {
        match value {
            Val::Known(v) => Ok(Operand::Imm(i128::from(v))),
            Val::Address(s, 0) => Ok(Operand::Address(s)),
            Val::Address(s, offset) => {
                let (dst, ty) = (self.temp()?, Ty::U(64));
                let (a, b) = (Operand::Address(s), Operand::Imm(i128::from(offset)));
                self.emit(None, Op::Alu { op: AluOp::Add, ty, dst, a, b });
                Ok(Operand::Reg(dst))
            }
            Val::Dynamic => Ok(was),
            Val::Unknown(pc) => Err(self.unknown(pc)),
            Val::Unset => Err(self.refuse("a register that was never written")),
        }
    }

    /// Turns an operand into a register.
    fn register(&mut self, operand: Operand) -> Done<Operand> {
        let src = self.source(operand)?;
        if let Operand::Reg(_) = src {
            return Ok(src);
        }
        let dst = self.temp()?;
        self.emit(None, Op::Mov { ty: Ty::B(64), dst, src });
        Ok(Operand::Reg(dst))
    }

    fn address(&self, address: Address) -> Done<Address> {
        match self.value(address.base) {
            Val::Dynamic => Ok(address),
            start => self.at(start, i64::from(address.offset)),
        }
    }

    /// The address `offset` bytes behind a known one.
    pub(super) fn at(&self, start: Val, offset: i64) -> Done<Address> {
        let (symbol, whole, what) = match start {
            Val::Address(s, first) => (s, first.wrapping_add(offset), "parameter"),
            Val::Known(number) => {
                let there = self.names.shared(number.wrapping_add_signed(offset));
                let (symbol, offset) = there.ok_or_else(|| self.refuse("an access through a number"))?;
                (symbol, offset, "variable")
            }
            Val::Dynamic => return Err(self.refuse("an address that depends on memory")),
            Val::Unknown(pc) => return Err(self.unknown(pc)),
            Val::Unset => return Err(self.refuse("an access through a register that was never written")),
        };
        let far = |_| self.refuse(&format!("an address far behind its {what}"));
        let offset = i32::try_from(whole).map_err(far)?;
        Ok(Address { base: Operand::Address(symbol), offset })
    }

    /// Adds a register to the result.
    pub(super) fn temp(&mut self) -> Done<Reg> {
        let number = u16::try_from(self.regs.len()).ok().filter(|n| *n < u16::MAX);
        let number = number.ok_or_else(|| Refusal::Bounded("a thread with too many registers".to_owned()))?;
        self.regs.push(RegDecl { name: format!("t{number}"), init: RegInit::Value(0) });
        Ok(Reg(number))
    }

    pub(super) fn emit(&mut self, guard: Option<Guard>, op: Op) {
        let line = self.kernel.body.get(self.pc).map_or(0, |s| s.line);
        self.out.push(Instr { guard, op, line, column: 0 });
    }

    pub(super) fn refuse(&self, what: &str) -> Refusal {
        let line = self.kernel.body.get(self.pc).map_or(0, |s| s.line);
        Refusal::Abstained { what: format!("{what} is not interpreted"), line }
    }

    /// The refusal of a statement whose unknown result is needed.
    pub(super) fn unknown(&self, pc: usize) -> Refusal {
        let name = match self.kernel.body.get(pc).map(|s| &s.what) {
            Some(What::Plain(instr)) => format!("`{}`", mnemonic(instr)),
            _ => "a register that was never written".to_owned(),
        };
        let line = self.kernel.body.get(pc).map_or(0, |s| s.line);
        Refusal::Abstained { what: format!("{name} is not interpreted"), line }
    }

    /// The knowledge about an operand of the book.
    pub(super) fn argument(&self, value: &Value) -> Val {
        match value {
            Value::Reg(_) => ptx::reg(value).map_or(Val::Unknown(self.pc), |r| self.value(Operand::Reg(r))),
            Value::Imm(n) => Val::Known(n.cast_unsigned()),
            Value::Symbol(index, offset) => match u16::try_from(*index) {
                Ok(symbol) => self.symbol(SymbolId(symbol), *offset),
                Err(_) => Val::Unknown(self.pc),
            },
            Value::Special(named) => self.special((*named).into()),
            Value::Single(_) | Value::Double(_) | Value::Sink => Val::Unknown(self.pc),
        }
    }

    /// The knowledge about an operand of so many bits.
    pub(super) fn datum(&self, value: &Value, bits: u16) -> Val {
        ptx::float(value, bits).map_or_else(|| self.argument(value), Val::Known)
    }

    /// The knowledge about an address.
    pub(super) fn located(&self, address: &operand::Address) -> Val {
        match self.argument(&address.base) {
            Val::Address(s, o) => Val::Address(s, o.wrapping_add(address.offset)),
            other => other,
        }
    }
}
