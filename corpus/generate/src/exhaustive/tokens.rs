//! The tokens of a thread body, and the program built from them.
//!
//! Contract: a program has exactly the memory events and instructions that its tokens cost.

use super::super::build::{Builder, at};
use super::{Bound, Column};
use moire_program::ir::{
    AluOp, AtomOp, BarKind, CmpOp, FenceOrder, Guard, LoadOrder, Op, Operand, Placement, Program, Proxy,
    ProxyFence, Reg, RegInit, RmwOrder, Scope, Space, StoreOrder, SymbolId, ThreadId, Ty,
};

/// How an access depends on the latest value read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dep {
    None,
    Data,
    Addr,
    Ctrl,
    Branch,
}

/// One step of a thread. Accesses: order, proxy, through another name, location, dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Load(LoadOrder, Proxy, bool, usize, Dep),
    Store(StoreOrder, Proxy, bool, usize, Dep),
    Rmw(AtomOp, RmwOrder, Scope, bool, usize),
    Fence(FenceOrder, Scope),
    ProxyFence(ProxyFence),
    Jump,
    Bar,
    ClusterArrive(bool),
    ClusterWait,
    WarpSync,
}

impl Token {
    /// The number of memory events and of instructions.
    pub(super) fn cost(self) -> (usize, usize) {
        let dep = |d| match d {
            Dep::None | Dep::Data => 0,
            Dep::Addr => 3,
            Dep::Ctrl => 1,
            Dep::Branch => 2,
        };
        match self {
            Token::Load(.., d) | Token::Store(.., d) => (1, 1 + dep(d)),
            Token::Rmw(..) => (2, 1),
            Token::Jump => (0, 2),
            _ => (0, 1),
        }
    }

    /// Whether the token may follow `column`: a dependency needs an earlier read; cluster arrivals and waits alternate.
    pub(super) fn fits(self, column: &[Token]) -> bool {
        let arrived = || {
            let last =
                column.iter().rev().find(|t| matches!(t, Token::ClusterArrive(_) | Token::ClusterWait));
            matches!(last, Some(Token::ClusterArrive(_)))
        };
        match self {
            Token::Load(.., Dep::None) | Token::Store(.., Dep::None) => true,
            Token::Load(..) | Token::Store(..) | Token::Jump => column.iter().any(|t| t.reads()),
            Token::ClusterArrive(_) => !arrived(),
            Token::ClusterWait => arrived(),
            _ => true,
        }
    }

    /// Whether a thread may end with the token. A fence, a jump or a cluster wait at the end orders nothing.
    pub(super) fn may_end(self) -> bool {
        !matches!(self, Token::Fence(..) | Token::ProxyFence(_) | Token::Jump | Token::ClusterWait)
    }

    fn reads(self) -> bool {
        matches!(self, Token::Load(..) | Token::Rmw(_, _, _, false, _))
    }

    /// The location it accesses, and whether it writes.
    pub(super) fn access(self) -> Option<(usize, bool)> {
        match self {
            Token::Load(_, _, _, l, _) => Some((l, false)),
            Token::Store(_, _, _, l, _) | Token::Rmw(_, _, _, _, l) => Some((l, true)),
            _ => None,
        }
    }
}

/// All tokens of the alphabet.
pub(super) fn tokens(bound: &Bound) -> Vec<Token> {
    let a = &bound.alphabet;
    let flag = |on: bool, d: Dep| on.then_some(d);
    let on_any: Vec<Dep> =
        [Some(Dep::None), flag(a.addr, Dep::Addr), flag(a.ctrl, Dep::Ctrl), flag(a.branches, Dep::Branch)]
            .into_iter()
            .flatten()
            .collect();
    let on_store: Vec<Dep> = on_any.iter().copied().chain(flag(a.data, Dep::Data)).collect();
    let mut all = Vec::new();
    for l in 0..bound.locations {
        for &order in &a.loads {
            all.extend(on_any.iter().map(|&d| Token::Load(order, Proxy::Generic, false, l, d)));
        }
        for &order in &a.stores {
            all.extend(on_store.iter().map(|&d| Token::Store(order, Proxy::Generic, false, l, d)));
        }
        for &(op, order, scope, red) in &a.rmws {
            all.push(Token::Rmw(op, order, scope, red, l));
        }
        for &proxy in &a.proxies {
            all.push(Token::Load(LoadOrder::Weak, proxy, true, l, Dep::None));
            if matches!(proxy, Proxy::Generic | Proxy::Surface) {
                all.push(Token::Store(StoreOrder::Weak, proxy, true, l, Dep::None));
            }
        }
    }
    all.extend(a.fences.iter().map(|&(order, scope)| Token::Fence(order, scope)));
    all.extend(a.proxy_fences.iter().map(|&kind| Token::ProxyFence(kind)));
    all.extend(a.jumps.then_some(Token::Jump));
    all.extend(a.barriers.then_some(Token::Bar));
    all.extend(a.warp_syncs.then_some(Token::WarpSync));
    if a.cluster_barriers {
        all.extend([Token::ClusterArrive(false), Token::ClusterArrive(true), Token::ClusterWait]);
    }
    all
}

/// The program whose threads have these bodies and places.
pub(super) fn build(columns: &[Column], places: &[Placement], bound: &Bound) -> Program {
    let mut b = Builder::new("small");
    let used =
        columns.iter().flat_map(|c| c.iter()).filter_map(|t| t.access()).map(|a| a.0 + 1).max().unwrap_or(0);
    let ty = match &bound.alphabet {
        a if a.wide => Ty::B(128),
        a if a.addr => Ty::U(64),
        _ => Ty::U(32),
    };
    let symbols: Vec<SymbolId> = (0..used).map(|_| b.object(Space::Global, ty.bytes())).collect();
    if bound.alphabet.wide {
        for object in &mut b.program_mut().objects {
            (0..object.bytes).step_by(8).for_each(|at| object.init.put(at, 9));
        }
    }
    let mut values = vec![0i128; used];
    for (column, place) in columns.iter().zip(places) {
        let id = b.thread(*place);
        let mut body =
            Body { id, symbols: &symbols, values: &mut values, read: None, ty, threads: places.len() };
        column.iter().for_each(|token| body.emit(&mut b, *token));
    }
    b.finish()
}

/// A thread under construction.
struct Body<'a> {
    id: ThreadId,
    symbols: &'a [SymbolId],
    /// Last value stored to each location.
    values: &'a mut [i128],
    /// Destination of the latest read.
    read: Option<Reg>,
    ty: Ty,
    threads: usize,
}

impl Body<'_> {
    fn fresh(&mut self, l: usize) -> i128 {
        self.values[l] += 1;
        self.values[l]
    }

    fn emit(&mut self, b: &mut Builder, token: Token) {
        let id = self.id;
        let op = match token {
            Token::Fence(order, scope) => Op::Fence { order, scope },
            Token::ProxyFence(kind) => Op::ProxyFence(vec![kind]),
            Token::Bar => Op::Bar { kind: BarKind::Sync, id: Operand::Imm(0), count: None, instance: None },
            Token::ClusterArrive(relaxed) => Op::ClusterArrive { relaxed },
            Token::ClusterWait => Op::ClusterWait,
            Token::WarpSync => Op::WarpSync { mask: Operand::Imm((1 << self.threads.min(32)) - 1) },
            Token::Rmw(op, order, scope, red, l) => {
                let dst = (!red).then(|| b.reg(id));
                self.read = dst.or(self.read);
                let new = Operand::Imm(self.fresh(l));
                let (a, other) = if op == AtomOp::Cas { (Operand::Imm(0), Some(new)) } else { (new, None) };
                let word = u8::try_from(self.ty.bytes() * 8).expect("a type has at most 128 bits");
                Op::Rmw {
                    red,
                    order,
                    scope,
                    proxy: Proxy::Generic,
                    space: Space::Global,
                    op,
                    ty: super::super::steps::rmw_type(op, word),
                    dst,
                    addr: at(self.symbols[l], 0),
                    a,
                    b: other,
                }
            }
            Token::Jump => {
                let Some(guard) = self.compare(b) else { return };
                let next = b.here(id) + 1;
                let from = b.push_guarded(id, Some(guard), Op::Bra { target: next });
                return b.patch(id, from, next);
            }
            Token::Load(..) | Token::Store(..) => return self.access(b, token),
        };
        b.push(id, op);
    }

    fn access(&mut self, b: &mut Builder, token: Token) {
        let (Token::Load(_, proxy, other, l, dep) | Token::Store(_, proxy, other, l, dep)) = token else {
            return;
        };
        let (id, ty) = (self.id, self.ty);
        let symbol = if other { b.name_through(self.symbols[l], proxy) } else { self.symbols[l] };
        let space = if proxy == Proxy::Generic { Space::Global } else { Space::Generic };
        let (guard, base, branch) = self.depend(b, dep, symbol);
        let addr = moire_program::ir::Address { base, offset: 0 };
        if let Token::Load(order, ..) = token {
            let dst = b.reg(id);
            b.push_guarded(id, guard, Op::Load { order, proxy, space, ty, dst: vec![dst], addr });
            self.read = Some(dst);
        } else if let Token::Store(order, ..) = token {
            let src = match (dep, self.read) {
                (Dep::Data, Some(reg)) => Operand::Reg(reg),
                _ if ty == Ty::B(128) => {
                    // PTX has no 128-bit immediates: a register holds the value.
                    let (reg, value) = (b.reg(id), self.fresh(l));
                    b.program_mut().threads[id.index()].regs[reg.index()].init =
                        RegInit::Value(value.unsigned_abs());
                    Operand::Reg(reg)
                }
                _ => Operand::Imm(self.fresh(l)),
            };
            b.push_guarded(id, guard, Op::Store { order, proxy, space, ty, addr, src: vec![src] });
        }
        if let Some(from) = branch {
            let here = b.here(id);
            b.patch(id, from, here);
        }
    }

    /// Emits a test of the latest value read and returns a guard that holds if the value is zero.
    fn compare(&self, b: &mut Builder) -> Option<Guard> {
        let a = Operand::Reg(self.read?);
        let p = b.reg(self.id);
        b.push(self.id, Op::Setp { op: CmpOp::Eq, ty: self.ty, dst: p, a, b: Operand::Imm(0) });
        Some(Guard { reg: p, negated: false })
    }

    /// Guard, address base and branch of an access that depends on the latest value read.
    fn depend(&self, b: &mut Builder, dep: Dep, symbol: SymbolId) -> (Option<Guard>, Operand, Option<usize>) {
        let (id, plain) = (self.id, Operand::Address(symbol));
        let Some(read) = self.read else { return (None, plain, None) };
        match dep {
            Dep::None | Dep::Data => (None, plain, None),
            Dep::Addr => {
                let (zero, base) = (b.reg(id), b.reg(id));
                let a = Operand::Reg(read);
                b.push(id, Op::Alu { op: AluOp::Xor, ty: Ty::B(64), dst: zero, a, b: a });
                b.push(id, Op::Mov { ty: Ty::U(64), dst: base, src: plain });
                let (a, from) = (Operand::Reg(base), Operand::Reg(zero));
                b.push(id, Op::Alu { op: AluOp::Add, ty: Ty::U(64), dst: base, a, b: from });
                (None, Operand::Reg(base), None)
            }
            Dep::Ctrl => (self.compare(b).map(|g| Guard { negated: true, ..g }), plain, None),
            Dep::Branch => {
                let guard = self.compare(b);
                let target = b.here(id) + 1;
                (None, plain, Some(b.push_guarded(id, guard, Op::Bra { target })))
            }
        }
    }
}
