//! Small random programs for comparing engines: rich in features that engines get wrong, and cheap to enumerate.
//!
//! It shares no code with [`crate::program`], so that both do not have the same gaps.

use crate::numbers::Choose;
use moire_program::ir::*;

/// The part of the language to draw from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Only what the Dat3M dialect can express.
    Dat3m,
    /// In addition, everything else that the engines model, except features with a drawer of their own.
    Wide,
}

/// Knobs of one program, drawn first.
#[derive(Clone, Debug)]
struct Knobs {
    style: Style,
    locations: usize,
    operations: usize,
    weak: usize,
    atomics: usize,
    fences: usize,
    data: usize,
    branches: usize,
    proxies: bool,
    barriers: bool,
    awaits: bool,
    buffering: bool,
    counted: bool,
    mixed: bool,
    scopes: Vec<Scope>,
    ty: Ty,
}

/// Draws a program.
pub fn wide(d: &mut dyn Choose, style: Style) -> Program {
    let threads = d.pick(&[2, 2, 2, 2, 3, 3, 3, 4]);
    let wide = style == Style::Wide;
    let all_scopes = [Scope::Cta, Scope::Gpu, Scope::Gpu, Scope::Sys, Scope::Cluster];
    let known = if wide { 5 } else { 4 };
    let scopes = if d.chance(40) { all_scopes[..known].to_vec() } else { vec![d.pick(&all_scopes[..known])] };
    let knobs = Knobs {
        style,
        locations: d.pick(&[1, 2, 2, 2, 3]),
        operations: d.pick(&[4, 5, 6, 6, 6, 7, 7, 8]),
        weak: d.pick(&[10, 30, 60]),
        atomics: d.pick(&[0, 0, 0, 15, 25, 40]),
        fences: d.pick(&[0, 15, 30]),
        data: d.pick(&[0, 20, 40, 70]),
        branches: d.pick(&[0, 0, 0, 15]),
        proxies: d.chance(20),
        barriers: d.chance(12),
        awaits: d.chance(22),
        buffering: d.chance(50),
        counted: d.chance(40),
        mixed: wide && d.chance(12),
        scopes,
        ty: if wide { d.pick(&[Ty::U(32), Ty::S(64), Ty::B(32), Ty::U(8)]) } else { Ty::S(64) },
    };
    let mut p = Program { name: "wide".to_owned(), ..Program::default() };
    memory(d, &knobs, &mut p);
    let places = placement(d, &knobs, threads);
    let per = knobs.operations.div_ceil(threads).max(2);
    for (t, place) in places.iter().enumerate() {
        let mut writer = Body {
            d: &mut *d,
            knobs: &knobs,
            symbols: &p.symbols,
            t,
            regs: vec![],
            labels: vec![],
            body: vec![],
            read: vec![],
            guard: None,
        };
        writer.thread(per);
        let Body { regs, labels, body, .. } = writer;
        p.threads.push(Thread { name: format!("P{t}"), place: *place, regs, labels, body });
    }
    if wide && d.chance(6) {
        grids(d, &mut p);
    }
    p
}

/// Puts the threads into two or three grids of one stream, some of which start early and wait at some place.
fn grids(d: &mut dyn Choose, p: &mut Program) {
    let count = d.pick(&[2, 2, 3]);
    let waits = [false, d.chance(70), d.chance(70)];
    for thread in &mut p.threads {
        let grid = d.below(count);
        thread.place.grid = u16::try_from(grid).unwrap_or(0);
        let control = match grid {
            0 if d.chance(30) => Control::LaunchDependents,
            0 => continue,
            _ if waits[grid] && d.chance(75) => Control::WaitDependencies,
            _ => continue,
        };
        let at = d.below(thread.body.len() + 1);
        thread.body.insert(at, Instr::new(Op::Control(control)));
        thread.labels.iter_mut().filter(|l| l.at > at).for_each(|l| l.at += 1);
        for instr in &mut thread.body {
            if let Op::Bra { target } = &mut instr.op
                && *target > at
            {
                *target += 1;
            }
        }
    }
}

fn memory(d: &mut dyn Choose, knobs: &Knobs, p: &mut Program) {
    let id = |n: usize| u16::try_from(n).unwrap_or(0);
    let bytes = if knobs.mixed { 8 } else { knobs.ty.bytes() };
    for (i, name) in ["x", "y", "z"].iter().enumerate().take(knobs.locations) {
        let shared = knobs.style == Style::Wide && d.chance(8);
        let mut init = Content::default();
        if d.chance(10) {
            init.put(0, 1);
        }
        let space = if shared { Space::SharedCta } else { Space::Global };
        p.objects.push(Object { name: (*name).into(), space, bytes, init });
        let symbol = SymbolId(id(p.symbols.len()));
        let object = ObjectId(id(i));
        p.symbols.push(Symbol {
            name: (*name).into(),
            object,
            virt: symbol,
            proxy: Proxy::Generic,
            multimem: vec![],
        });
        if knobs.proxies {
            if d.chance(60) {
                let alias = SymbolId(id(p.symbols.len()));
                let name = format!("a{i}");
                p.symbols.push(Symbol { name, object, virt: alias, proxy: Proxy::Generic, multimem: vec![] });
            }
            if d.chance(70) {
                let proxy = d.pick(&[Proxy::Surface, Proxy::Surface, Proxy::Texture, Proxy::Constant]);
                let name = format!("s{i}");
                p.symbols.push(Symbol { name, object, virt: symbol, proxy, multimem: vec![] });
            }
        }
    }
}

fn placement(d: &mut dyn Choose, knobs: &Knobs, threads: usize) -> Vec<Placement> {
    // Barriers need several threads in a CTA.
    let style = if knobs.barriers && d.chance(70) { 0 } else { d.below(5) };
    (0..threads)
        .map(|t| {
            let n = u16::try_from(t).unwrap_or(0);
            let (gpu, cta) = match style {
                0 => (0, 0),
                1 | 2 => (0, n),
                3 => (0, n / 2),
                _ => (d.pick(&[0, 0, 1]), d.pick(&[0, 1])),
            };
            // In the Dat3M dialect, CTAs of different GPUs have different numbers.
            let cta = cta + 4 * gpu;
            let cluster = if knobs.style == Style::Wide && style == 3 { 0 } else { cta };
            Placement { gpu, cluster, cta, warp: n, ..Placement::default() }
        })
        .collect()
}

struct Body<'a> {
    d: &'a mut dyn Choose,
    knobs: &'a Knobs,
    symbols: &'a [Symbol],
    t: usize,
    regs: Vec<RegDecl>,
    labels: Vec<Label>,
    body: Vec<Instr>,
    /// Registers that hold a value from memory.
    read: Vec<Reg>,
    /// Predicate for the next instruction.
    guard: Option<Guard>,
}

impl Body<'_> {
    fn thread(&mut self, operations: usize) {
        let wait = self.knobs.awaits && (self.t > 0 || self.d.chance(30));
        let at = if wait { Some(self.d.below(operations.min(2))) } else { None };
        for i in 0..operations {
            if at == Some(i) {
                self.await_loop();
                continue;
            }
            if self.d.chance(self.knobs.fences) {
                self.fence();
            }
            if self.knobs.barriers && self.d.chance(45) {
                self.barrier(i);
            }
            let skip = self.d.chance(self.knobs.branches) && !self.read.is_empty();
            let branch = if skip { Some(self.branch()) } else { None };
            self.operation(i, operations);
            if let Some(at) = branch {
                let end = self.body.len();
                if let Op::Bra { target } = &mut self.body[at].op {
                    *target = end;
                }
                self.labels.push(Label { name: format!("LC{end:02}"), at: end });
            }
        }
        self.labels.dedup();
    }

    fn register(&mut self) -> Reg {
        let r = Reg(u16::try_from(self.regs.len()).unwrap_or(0));
        self.regs.push(RegDecl { name: format!("r{}", r.0), init: RegInit::Value(0) });
        r
    }

    fn push(&mut self, op: Op) {
        let guard = self.guard.take();
        self.body.push(Instr { guard, ..Instr::new(op) });
    }

    fn scope(&mut self) -> Scope {
        self.d.pick(&self.knobs.scopes)
    }

    fn symbol(&mut self, i: usize) -> (SymbolId, Proxy) {
        let locations = self.knobs.locations;
        let object = if self.knobs.buffering && !self.d.chance(15) {
            let last = i > 0;
            (self.t + usize::from(last)) % locations
        } else {
            self.d.below(locations)
        };
        let names: Vec<usize> =
            (0..self.symbols.len()).filter(|s| self.symbols[*s].object.index() == object).collect();
        let s = if self.d.chance(50) { names[0] } else { self.d.pick(&names) };
        (SymbolId(u16::try_from(s).unwrap_or(0)), self.symbols[s].proxy)
    }

    fn value(&mut self) -> Operand {
        if !self.read.is_empty() && self.d.chance(self.knobs.data) {
            let r = self.d.pick(&self.read.clone());
            if self.d.chance(70) {
                return Operand::Reg(r);
            }
            let dst = self.register();
            let op = self.arithmetic();
            let b = Operand::Imm(self.d.pick(&[0, 1, 1]));
            self.push(Op::Alu { op, ty: self.knobs.ty, dst, a: Operand::Reg(r), b });
            return Operand::Reg(dst);
        }
        Operand::Imm(self.d.pick(&[1, 1, 1, 2, 3]))
    }

    fn arithmetic(&mut self) -> AluOp {
        use AluOp::{Add, And, Div, Max, Min, Mul, Or, Rem, Shl, Shr, Sub, Xor};
        let all = [Add, Add, Sub, Mul, Div, Rem, And, Or, Xor, Shl, Shr, Min, Max];
        let known = if self.knobs.style == Style::Wide { all.len() } else { 4 };
        self.d.pick(&all[..known])
    }

    fn address(&mut self, symbol: SymbolId) -> (Address, Ty) {
        let (ty, offset) = if self.knobs.mixed {
            self.d.pick(&[(Ty::U(32), 0), (Ty::U(32), 4), (Ty::U(32), 0), (Ty::U(64), 0), (Ty::U(16), 0)])
        } else {
            (self.knobs.ty, 0)
        };
        (Address { base: Operand::Address(symbol), offset }, ty)
    }

    fn operation(&mut self, i: usize, operations: usize) {
        let (symbol, proxy) = self.symbol(i);
        let read_only = matches!(proxy, Proxy::Texture | Proxy::Constant);
        let (addr, ty) = self.address(symbol);
        let generic = proxy == Proxy::Generic;
        let half = matches!(ty, Ty::U(8 | 16));
        if (generic || proxy == Proxy::Surface) && !half && self.d.chance(self.knobs.atomics) {
            self.atomic(addr, ty, proxy);
            return;
        }
        let write = match (self.knobs.buffering, i) {
            (true, 0) => self.d.chance(10),
            (true, n) if n + 1 == operations => !self.d.chance(10),
            _ => self.d.chance(45),
        };
        let weak = !generic || self.d.chance(self.knobs.weak);
        let scope = self.scope();
        let wide = self.knobs.style == Style::Wide;
        if write && !read_only {
            let mut order = if weak {
                StoreOrder::Weak
            } else if self.d.chance(40) {
                StoreOrder::Release(scope)
            } else {
                StoreOrder::Relaxed(scope)
            };
            if wide && self.d.chance(5) {
                order = StoreOrder::Volatile;
            }
            let src = vec![self.value()];
            self.guard_next();
            self.push(Op::Store { order, proxy, space: Space::Generic, ty, addr, src });
        } else {
            let mut order = if weak {
                LoadOrder::Weak
            } else if self.d.chance(40) {
                LoadOrder::Acquire(scope)
            } else {
                LoadOrder::Relaxed(scope)
            };
            if wide && self.d.chance(5) {
                order = LoadOrder::Volatile;
            }
            let dst = self.register();
            self.push(Op::Load { order, proxy, space: Space::Generic, ty, dst: vec![dst], addr });
            self.read.push(dst);
        }
    }

    /// Sometimes gives the next instruction a predicate, in the wide style only.
    fn guard_next(&mut self) {
        if self.knobs.style == Style::Wide && !self.read.is_empty() && self.d.chance(6) {
            let p = self.register();
            let a = Operand::Reg(self.d.pick(&self.read.clone()));
            let op = self.d.pick(&[CmpOp::Eq, CmpOp::Ne]);
            self.push(Op::Setp { op, ty: self.knobs.ty, dst: p, a, b: Operand::Imm(1) });
            self.guard = Some(Guard { reg: p, negated: self.d.chance(30) });
        }
    }

    fn atomic(&mut self, addr: Address, ty: Ty, proxy: Proxy) {
        let (scope, a) = (self.scope(), self.value());
        let order = self.d.pick(&[
            RmwOrder::Relaxed,
            RmwOrder::Relaxed,
            RmwOrder::Acquire,
            RmwOrder::Release,
            RmwOrder::AcqRel,
        ]);
        let red = self.d.chance(20);
        let wide = self.knobs.style == Style::Wide;
        let order = if red && order == RmwOrder::Acquire { RmwOrder::Release } else { order };
        let op = match (red, self.d.below(if wide { 7 } else { 5 })) {
            (_, 0 | 1) => AtomOp::Add,
            (_, 2) => AtomOp::Or,
            (false, 3) => AtomOp::Exch,
            (false, 4) => AtomOp::Cas,
            (_, 5) => AtomOp::Max,
            (_, 6) => AtomOp::Inc,
            _ => AtomOp::Xor,
        };
        let (a, b) =
            if op == AtomOp::Cas { (Operand::Imm(self.d.pick(&[0, 0, 1])), Some(a)) } else { (a, None) };
        let dst = if red { None } else { Some(self.register()) };
        self.push(Op::Rmw { red, order, scope, proxy, space: Space::Generic, op, ty, dst, addr, a, b });
        self.read.extend(dst);
    }

    fn fence(&mut self) {
        let scope = self.scope();
        if self.knobs.proxies && self.d.chance(60) {
            let kind = self.d.pick(&[
                ProxyFence::Alias,
                ProxyFence::Alias,
                ProxyFence::Of(Proxy::Surface),
                ProxyFence::Of(Proxy::Surface),
                ProxyFence::Of(Proxy::Texture),
                ProxyFence::Of(Proxy::Constant),
            ]);
            self.push(Op::ProxyFence(vec![kind]));
            return;
        }
        let wide = self.knobs.style == Style::Wide;
        let orders = [FenceOrder::AcqRel, FenceOrder::Sc, FenceOrder::Acquire, FenceOrder::Release];
        let order = self.d.pick(&orders[..if wide { 4 } else { 2 }]);
        self.push(Op::Fence { order, scope });
    }

    fn barrier(&mut self, i: usize) {
        let wide = self.knobs.style == Style::Wide;
        match self.d.below(if wide { 6 } else { 3 }) {
            4 if i < 3 => {
                let relaxed = self.d.chance(30);
                self.push(Op::ClusterArrive { relaxed });
                self.push(Op::ClusterWait);
            }
            3 => {
                let count = self.knobs.counted.then_some(Operand::Imm(2));
                let kind = if count.is_some() && self.d.chance(30) { BarKind::Arrive } else { BarKind::Sync };
                let id = Operand::Imm(0);
                self.push(Op::Bar { kind, id, count, instance: None });
            }
            _ if !wide => {
                let kind = if self.d.chance(15) { BarKind::Arrive } else { BarKind::Sync };
                // At most one bar of an instance in a thread, because in the Dat3M dialect a second one never
                // completes.
                let used = self.body.iter().filter(|i| matches!(i.op, Op::Bar { .. })).count();
                let instance = u32::try_from(used).unwrap_or(0);
                self.push(Op::Bar { kind, id: Operand::Imm(0), count: None, instance: Some(instance) });
            }
            _ => {
                let count = self.knobs.counted.then_some(Operand::Imm(2));
                self.push(Op::Bar { kind: BarKind::Sync, id: Operand::Imm(0), count, instance: None });
            }
        }
    }

    /// Writes `if (read == k) goto later`. The caller sets the target.
    fn branch(&mut self) -> usize {
        let a = Operand::Reg(self.d.pick(&self.read.clone()));
        let op = self.d.pick(&[CmpOp::Eq, CmpOp::Ne]);
        self.jump(op, a, 1, usize::MAX)
    }

    fn jump(&mut self, op: CmpOp, a: Operand, k: i128, target: usize) -> usize {
        let p = self.register();
        self.push(Op::Setp { op, ty: self.knobs.ty, dst: p, a, b: Operand::Imm(k) });
        self.body
            .push(Instr { guard: Some(Guard { reg: p, negated: false }), ..Instr::new(Op::Bra { target }) });
        self.body.len() - 1
    }

    /// Writes a loop that waits for a value, by loading or by compare-and-swap.
    fn await_loop(&mut self) {
        let head = self.body.len();
        let object = self.d.below(self.knobs.locations);
        let symbol = (0..self.symbols.len()).find(|s| self.symbols[*s].object.index() == object).unwrap_or(0);
        let (addr, ty) = self.address(SymbolId(u16::try_from(symbol).unwrap_or(0)));
        let scope = self.scope();
        let dst = self.register();
        let swap = !matches!(ty, Ty::U(8 | 16)) && self.d.chance(20);
        let wanted = if swap { 0 } else { 1 };
        if swap {
            let order = self.d.pick(&[RmwOrder::Relaxed, RmwOrder::Acquire]);
            let (op, a, b) = (AtomOp::Cas, Operand::Imm(0), Some(Operand::Imm(1)));
            let (proxy, space) = (Proxy::Generic, Space::Generic);
            self.push(Op::Rmw { red: false, order, scope, proxy, space, op, ty, dst: Some(dst), addr, a, b });
        } else {
            let order = self.d.pick(&[
                LoadOrder::Weak,
                LoadOrder::Relaxed(scope),
                LoadOrder::Acquire(scope),
                LoadOrder::Acquire(scope),
            ]);
            let (proxy, space) = (Proxy::Generic, Space::Generic);
            self.push(Op::Load { order, proxy, space, ty, dst: vec![dst], addr });
        }
        if self.d.chance(10) {
            self.fence();
        }
        self.labels.push(Label { name: format!("LC{head:02}"), at: head });
        self.jump(CmpOp::Ne, Operand::Reg(dst), wanted, head);
        self.read.push(dst);
    }
}
