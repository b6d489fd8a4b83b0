//! Lowers a source program to the program that the engines run under the model `rc11-scoped`.
//!
//! Each step becomes the instruction of the same order and scope, `if` a branch. Objects keep their positions.
//!
//! A failed compare-exchange reads with its failure order. But the base sets of an event are fixed before its value is
//! known. So a compare-exchange whose success and failure orders read differently becomes a choice between a
//! compare-exchange of the success order and a load of the failure order. The thread reads the choice at its start, from
//! an object that an extra thread writes. Executions whose value contradicts the choice must be dropped:
//! [`Lowered::admits`] finds them. The reads of the choice are relaxed and stand before all other events of their thread,
//! so they order nothing.

use crate::syntax::{Access, Exchange, Expr, Order, Source, Space, Step, Term, Thread, Value};
use crate::walk;
use moire_program::ir;
use moire_program::ir::{
    Address, AtomOp, CmpOp, Guard, Instr, LoadOrder, ObjectId, Op, Operand, Placement, Proxy, Reg, RegDecl,
    RegInit, RmwOrder, Scope, StoreOrder, SymbolId, ThreadId, Ty,
};

/// A lowered program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The program. Its first threads and objects are those of the source.
    pub program: ir::Program,
    /// The compare-exchanges that became choices.
    pub choices: Vec<Choice>,
}

/// A compare-exchange that became a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The thread.
    pub thread: ThreadId,
    /// The register that is 1 if it succeeds, and 0 if it fails.
    pub succeeds: Reg,
    /// The register with the value that it read; [`Choice::unread`] if it did not run.
    pub read: Reg,
    /// The value it compares with.
    pub expected: u64,
    /// A value that no read returns.
    pub unread: u128,
}

impl Lowered {
    /// Whether the values of registers agree with the choices. An execution in which they do not is none of the source.
    pub fn admits(&self, value: &dyn Fn(ThreadId, Reg) -> u128) -> bool {
        self.choices.iter().all(|c| {
            let read = value(c.thread, c.read);
            read == c.unread || (value(c.thread, c.succeeds) != 0) == (read == u128::from(c.expected))
        })
    }
}

/// Lowers a valid program. The line of an instruction is that of its step in [`crate::text::print()`]; a read of a choice has
/// none.
///
/// # Errors
/// Steps stand behind an `if`: the model would order them behind what the `if` reads, and a compiler need not. Or a
/// compare-exchange of 128 bits has orders that differ in how they read: no value is left to mark it as not run.
pub fn lower(source: &Source) -> Result<Lowered, moire_program::Refusal> {
    if source.threads.iter().any(|t| goes_on(&t.body)) {
        return Err(moire_program::Refusal::about("steps behind an `if`"));
    }
    let mut program = ir::Program { name: source.name.clone(), ..ir::Program::default() };
    for object in &source.objects {
        let space = match object.space {
            Space::Global | Space::Generic => ir::Space::Global,
            Space::Shared => ir::Space::SharedCta,
        };
        add(&mut program, &object.name, space, object.bits, object.init);
    }
    let mut choices = Vec::new();
    // The title, and a line for each object.
    let mut above = 1 + source.objects.len();
    for (t, thread) in source.threads.iter().enumerate() {
        let head = u32::try_from(above + 1).expect("a source has few lines");
        above += 2 + walk::lines(&thread.body);
        let one = Lowering::new(source, thread, (ThreadId::at(t), head), &mut program)?;
        choices.extend(one.choices);
        let place = Placement { warp: warp(source, t), ..thread.place };
        let name = format!("P{t}");
        program.threads.push(ir::Thread { name, place, regs: one.regs, labels: Vec::new(), body: one.out });
    }
    for at in source.objects.len()..program.objects.len() {
        program.threads.push(chooser(at));
    }
    program.conditions = source.condition.iter().map(|c| condition(source, c)).collect();
    program.filter = filter(&choices);
    Ok(Lowered { program, choices })
}

/// Whether steps stand behind an `if`.
fn goes_on(steps: &[Step]) -> bool {
    let behind = |(n, step): (usize, &Step)| match step {
        Step::If { then, .. } => n + 1 < steps.len() || goes_on(then),
        _ => false,
    };
    steps.iter().enumerate().any(behind)
}

/// The number of a thread in its CTA: each is a warp of its own.
pub(crate) fn warp(source: &Source, t: usize) -> u16 {
    let place = &source.threads[t].place;
    let before = source.threads[..t].iter().filter(|o| o.place.same_cta(place)).count();
    u16::try_from(before).expect("a source has at most 8 threads")
}

/// Adds an object and the name that reaches it.
fn add(program: &mut ir::Program, name: &str, space: ir::Space, bits: u8, init: u64) -> SymbolId {
    let bytes = u32::from(bits / 8);
    let mut content = ir::Content::default();
    content.put_value(0, bytes, init.into());
    let (object, virt) = (ObjectId::at(program.objects.len()), SymbolId::at(program.symbols.len()));
    let name = name.to_owned();
    let symbol = ir::Symbol { name: name.clone(), object, virt, proxy: Proxy::Generic, multimem: Vec::new() };
    program.objects.push(ir::Object { name, space, bytes, init: content });
    program.symbols.push(symbol);
    virt
}

/// The thread that offers both values of the choice in the object at this position.
fn chooser(at: usize) -> ir::Thread {
    let op = Op::Store {
        order: StoreOrder::Relaxed(Scope::Sys),
        proxy: Proxy::Generic,
        space: ir::Space::Global,
        ty: Ty::B(32),
        addr: Address { base: Operand::Address(SymbolId::at(at)), offset: 0 },
        src: vec![Operand::Imm(1)],
    };
    let at_most_8 = u16::try_from(at).expect("a source has at most 8 objects");
    let cta = crate::limits::PLACE + 1 + at_most_8;
    let place = Placement { gpu: crate::limits::PLACE + 1, cta, ..Placement::default() };
    ir::Thread {
        name: format!("choice{at}"),
        place,
        regs: Vec::new(),
        labels: Vec::new(),
        body: vec![Instr::new(op)],
    }
}

/// The lowering of one thread.
struct Lowering<'s> {
    source: &'s Source,
    regs: Vec<RegDecl>,
    out: Vec<Instr>,
    choices: Vec<Choice>,
    /// The choices that are not lowered yet, in the order of the text.
    ahead: std::vec::IntoIter<Choice>,
    thread: ThreadId,
    /// The line of the step that is lowered.
    line: u32,
}

impl<'s> Lowering<'s> {
    fn new(
        source: &'s Source,
        thread: &'s Thread,
        (at, head): (ThreadId, u32),
        program: &mut ir::Program,
    ) -> Result<Self, moire_program::Refusal> {
        let decl = |name: &str| RegDecl { name: name.to_owned(), init: RegInit::Value(0) };
        let regs = thread.registers.iter().map(|r| decl(&r.name)).collect();
        let ahead = Vec::new().into_iter();
        let mut one =
            Lowering { source, regs, out: Vec::new(), choices: Vec::new(), ahead, thread: at, line: 0 };
        let mut split = Vec::new();
        walk::each(&thread.body, &mut |step| {
            if let Step::Cas(c) = step
                && splits(c)
            {
                split.push(c.clone());
            }
        });
        for cas in split {
            one.choose(&cas, program)?;
        }
        one.ahead = one.choices.clone().into_iter();
        one.line = head;
        one.block(&thread.body);
        Ok(one)
    }

    /// Reads a choice at the start of the thread.
    fn choose(&mut self, cas: &Exchange, program: &mut ir::Program) -> Result<(), moire_program::Refusal> {
        let bits = self.bits(cas.object);
        let Some(unread) = 1_u128.checked_shl(u32::from(bits)) else {
            return Err(moire_program::Refusal::about(
                "a compare-exchange of 128 bits whose failure reads in another way than its success",
            ));
        };
        let symbol = add(program, &format!("choice{}", program.objects.len()), ir::Space::Global, 32, 0);
        let succeeds = self.register("choice", 0);
        let read = self.register("read", unread);
        let addr = Address { base: Operand::Address(symbol), offset: 0 };
        let order = LoadOrder::Relaxed(Scope::Sys);
        let (proxy, space) = (Proxy::Generic, ir::Space::Global);
        self.push(Op::Load { order, proxy, space, ty: Ty::B(32), dst: vec![succeeds], addr });
        let (thread, expected) = (self.thread, cas.expected);
        self.choices.push(Choice { thread, succeeds, read, expected, unread });
        Ok(())
    }

    fn register(&mut self, stem: &str, init: u128) -> Reg {
        let at = self.regs.len();
        self.regs.push(RegDecl { name: format!("%{stem}{at}"), init: RegInit::Value(init) });
        Reg::at(at)
    }

    fn bits(&self, object: usize) -> u8 {
        self.source.objects.get(object).map_or(32, |o| o.bits)
    }

    fn push(&mut self, op: Op) {
        self.out.push(Instr { line: self.line, ..Instr::new(op) });
    }

    /// Emits a branch whose target is not known yet; returns its place.
    fn branch(&mut self, guard: Option<Guard>) -> usize {
        self.push(Op::Bra { target: 0 });
        self.out.last_mut().expect("the branch").guard = guard;
        self.out.len() - 1
    }

    /// Makes a branch go to the next instruction.
    fn land(&mut self, branch: usize) {
        let target = self.out.len();
        self.out[branch].op = Op::Bra { target };
    }

    /// Emits a comparison; returns the guard that is true if both are equal.
    fn equal(&mut self, register: Reg, bits: u8, n: u64) -> Guard {
        let reg = self.register("p", 0);
        let (a, b) = (Operand::Reg(register), Operand::Imm(i128::from(n)));
        self.push(Op::Setp { op: CmpOp::Eq, ty: Ty::B(bits), dst: reg, a, b });
        Guard { reg, negated: false }
    }

    fn block(&mut self, steps: &[Step]) {
        for step in steps {
            self.line += 1;
            self.step(step);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Load { dst, object, access } => {
                let op = self.load(Reg::at(*dst), *object, load_order(*access));
                self.push(op);
            }
            Step::Store { object, value, access } => {
                let (space, ty, addr) = self.place(*object);
                let order = store_order(*access);
                let src = vec![operand(*value)];
                self.push(Op::Store { order, proxy: Proxy::Generic, space, ty, addr, src });
            }
            Step::Update(u) => {
                let dst = u.dst.map(Reg::at);
                self.rmw((u.order, u.scope), u.op, dst, u.object, (operand(u.value), None));
            }
            Step::Cas(c) => self.cas(c),
            Step::Fence { order, scope } => {
                if let Some(order) = fence_order(*order) {
                    self.push(Op::Fence { order, scope: *scope });
                }
            }
            Step::If { register, equals, then } => {
                let bits = self.width(*register);
                let guard = self.equal(Reg::at(*register), bits, *equals);
                let over = self.branch(Some(Guard { negated: true, ..guard }));
                self.block(then);
                // The closing brace.
                self.line += 1;
                self.land(over);
            }
        }
    }

    /// The width of a register of the source.
    fn width(&self, register: usize) -> u8 {
        let thread = self.source.threads.get(self.thread.index());
        thread.and_then(|t| t.registers.get(register)).map_or(32, |r| r.bits)
    }

    fn place(&self, object: usize) -> (ir::Space, Ty, Address) {
        let space = match self.source.objects.get(object).map(|o| o.space) {
            Some(Space::Shared) => ir::Space::SharedCta,
            Some(Space::Generic) => ir::Space::Generic,
            _ => ir::Space::Global,
        };
        let addr = Address { base: Operand::Address(SymbolId::at(object)), offset: 0 };
        (space, Ty::B(self.bits(object)), addr)
    }

    fn load(&self, dst: Reg, object: usize, order: LoadOrder) -> Op {
        let (space, ty, addr) = self.place(object);
        Op::Load { order, proxy: Proxy::Generic, space, ty, dst: vec![dst], addr }
    }

    fn rmw(
        &mut self,
        (order, scope): (Order, Scope),
        op: AtomOp,
        dst: Option<Reg>,
        object: usize,
        (a, b): (Operand, Option<Operand>),
    ) {
        let (space, _, addr) = self.place(object);
        let bits = self.bits(object);
        let unsigned = matches!(op, AtomOp::Add | AtomOp::Min | AtomOp::Max);
        let ty = if unsigned { Ty::U(bits) } else { Ty::B(bits) };
        let order = match order {
            Order::Relaxed => RmwOrder::Relaxed,
            Order::Acquire => RmwOrder::Acquire,
            Order::Release => RmwOrder::Release,
            Order::AcqRel => RmwOrder::AcqRel,
            Order::SeqCst => RmwOrder::SeqCst,
        };
        let proxy = Proxy::Generic;
        self.push(Op::Rmw { red: false, order, scope, proxy, space, op, ty, dst, addr, a, b });
    }

    fn cas(&mut self, c: &Exchange) {
        let (expected, desired) = (Operand::Imm(i128::from(c.expected)), Some(operand(c.desired)));
        let how = (c.success, c.scope);
        let Some(choice) = splits(c).then(|| self.ahead.next()).flatten() else {
            return self.rmw(how, AtomOp::Cas, Some(Reg::at(c.dst)), c.object, (expected, desired));
        };
        let succeeds = self.branch(Some(Guard { reg: choice.succeeds, negated: false }));
        let access = Access::Atomic { order: c.failure, scope: c.scope, volatile: false };
        let failed = self.load(choice.read, c.object, load_order(access));
        self.push(failed);
        let end = self.branch(None);
        self.land(succeeds);
        self.rmw(how, AtomOp::Cas, Some(choice.read), c.object, (expected, desired));
        self.land(end);
        let (dst, src) = (Reg::at(c.dst), Operand::Reg(choice.read));
        self.push(Op::Mov { ty: Ty::B(self.bits(c.object)), dst, src });
    }
}

/// Whether success and failure of a compare-exchange read in different ways.
fn splits(c: &Exchange) -> bool {
    let reads = |order: Order| (order.acquires(), order == Order::SeqCst);
    reads(c.success) != reads(c.failure)
}

fn operand(value: Value) -> Operand {
    match value {
        Value::Number(n) => Operand::Imm(i128::from(n)),
        Value::Register(r) => Operand::Reg(Reg::at(r)),
    }
}

fn load_order(access: Access) -> LoadOrder {
    match access {
        Access::Plain => LoadOrder::Weak,
        Access::Atomic { order: Order::SeqCst, scope, .. } => LoadOrder::SeqCst(scope),
        Access::Atomic { order, scope, .. } if order.acquires() => LoadOrder::Acquire(scope),
        Access::Atomic { scope, .. } => LoadOrder::Relaxed(scope),
    }
}

fn store_order(access: Access) -> StoreOrder {
    match access {
        Access::Plain => StoreOrder::Weak,
        Access::Atomic { order: Order::SeqCst, scope, .. } => StoreOrder::SeqCst(scope),
        Access::Atomic { order, scope, .. } if order.releases() => StoreOrder::Release(scope),
        Access::Atomic { scope, .. } => StoreOrder::Relaxed(scope),
    }
}

fn fence_order(order: Order) -> Option<ir::FenceOrder> {
    Some(match order {
        Order::Relaxed => return None,
        Order::Acquire => ir::FenceOrder::Acquire,
        Order::Release => ir::FenceOrder::Release,
        Order::AcqRel => ir::FenceOrder::AcqRel,
        Order::SeqCst => ir::FenceOrder::Sc,
    })
}

fn condition(source: &Source, condition: &crate::Condition) -> ir::Condition {
    ir::Condition {
        name: String::new(),
        quantifier: condition.quantifier,
        expr: expression(source, &condition.expr),
    }
}

fn expression(source: &Source, expr: &Expr) -> ir::Expr {
    match expr {
        Expr::Is(term, n) => {
            let term = match term {
                Term::Register(t, r) => ir::Term::Reg(ThreadId::at(*t), Reg::at(*r)),
                Term::Object(o) => ir::Term::Mem {
                    symbol: SymbolId::at(*o),
                    offset: 0,
                    bytes: source.objects.get(*o).map_or(4, |o| o.bits / 8).min(8),
                    thread: None,
                },
            };
            ir::Expr::Cmp(CmpOp::Eq, term, ir::Term::Const(n.cast_signed()))
        }
        Expr::Not(one) => ir::Expr::Not(Box::new(expression(source, one))),
        Expr::And(all) => ir::Expr::And(all.iter().map(|e| expression(source, e)).collect()),
        Expr::Or(all) => ir::Expr::Or(all.iter().map(|e| expression(source, e)).collect()),
    }
}

/// The executions that agree with the choices. A choice whose compare-exchange did not run agrees with both values.
fn filter(choices: &[Choice]) -> Option<ir::Expr> {
    let one = |c: &Choice| {
        let is = |r: Reg, n: i64| ir::Expr::Cmp(CmpOp::Eq, ir::Term::Reg(c.thread, r), ir::Term::Const(n));
        let equal = is(c.read, c.expected.cast_signed());
        let yes = ir::Expr::And(vec![is(c.succeeds, 1), equal.clone()]);
        let no = ir::Expr::And(vec![is(c.succeeds, 0), ir::Expr::Not(Box::new(equal))]);
        ir::Expr::Or(vec![yes, no])
    };
    let all: Vec<ir::Expr> = choices.iter().map(one).collect();
    (!all.is_empty()).then_some(ir::Expr::And(all))
}
