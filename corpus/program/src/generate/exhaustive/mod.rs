//! All small programs over an instruction alphabet, by size: threads, then memory events, then instructions.
//!
//! Contract: within the bound and alphabet every program in which each location has a conflict and the threads hang
//! together comes once, in canonical form; within one size the order is that of the enumeration, so a caller that
//! wants the least text looks at the whole size class ([`size`]). Left out because they cannot matter to a memory
//! model: locations that are only read or touched once, and groups of threads that share nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::build::{Builder, at};
use super::features::features;
use crate::canon::{encode, normal};
use crate::ir::{
    AluOp, AtomOp, BarKind, CmpOp, FenceOrder, Guard, LoadOrder, Op, Operand, Placement, Program, Proxy,
    ProxyFence, Reg, RmwOrder, Scope, Space, StoreOrder, SymbolId, Ty,
};

/// How far to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Most threads.
    pub threads: usize,
    /// Most memory events of the whole program.
    pub memory_events: usize,
    /// Most instructions of the whole program.
    pub instructions: usize,
    /// Most locations.
    pub locations: usize,
    /// What programs are made of.
    pub alphabet: Alphabet,
}

/// What may appear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alphabet {
    /// Loads.
    pub loads: Vec<LoadOrder>,
    /// Stores.
    pub stores: Vec<StoreOrder>,
    /// RMWs: operation, order, scope, as `red`.
    pub rmws: Vec<(AtomOp, RmwOrder, Scope, bool)>,
    /// Memory fences.
    pub fences: Vec<(FenceOrder, Scope)>,
    /// Proxy fences.
    pub proxy_fences: Vec<ProxyFence>,
    /// Weak accesses through other proxies; `Generic` stands for a virtual alias.
    pub proxies: Vec<Proxy>,
    /// Stores of what the latest read gave.
    pub data: bool,
    /// Addresses computed from the latest read.
    pub addr: bool,
    /// Guards on the latest read.
    pub ctrl: bool,
    /// Forward branches over one access on the latest read (what follows is after the reconvergence point).
    pub branches: bool,
    /// `bar.sync 0`
    pub barriers: bool,
    /// Places of the second and later threads relative to the first.
    pub places: Vec<Near>,
}

/// Where a thread stands relative to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Near {
    /// In its CTA.
    Cta,
    /// In its cluster.
    Cluster,
    /// On its GPU.
    Gpu,
    /// On another GPU.
    Sys,
}

/// Threads, memory events, instructions.
pub fn size(program: &Program) -> (usize, usize, usize) {
    let f = features(program);
    (f.threads, f.memory_events, f.instructions)
}

/// All programs of the bound, least size first.
pub fn programs(bound: &Bound) -> impl Iterator<Item = Program> + use<> {
    let columns = Rc::new(columns(bound));
    let bound = Rc::new(bound.clone());
    let (e, i) = (bound.memory_events, bound.instructions);
    let sizes =
        (1..=bound.threads).flat_map(move |t| (t..=e).flat_map(move |e| (1..=i).map(move |i| (t, e, i))));
    sizes.flat_map(move |(t, e, i)| {
        let (columns, bound) = (Rc::clone(&columns), Rc::clone(&bound));
        let mut seen: BTreeSet<[u8; 16]> = BTreeSet::new();
        let mut splits = Vec::new();
        split(&columns, t, (e, i), &mut Vec::new(), &mut splits);
        let places = places(&bound.alphabet.places, t);
        let inner = Rc::clone(&columns);
        let choices = splits.into_iter().flat_map(move |split| Odometer::new(Rc::clone(&inner), split));
        choices
            .filter(|c| communicates(c))
            .flat_map(move |c| places.clone().into_iter().map(move |p| (c.clone(), p)))
            .filter_map(move |(columns, places)| {
                let (program, _) = normal(&build(&columns, &places, &bound));
                let hash = blake3::hash(&encode::bytes(&program));
                let mut key = [0u8; 16];
                key.copy_from_slice(&hash.as_bytes()[..16]);
                seen.insert(key).then_some(program)
            })
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dep {
    None,
    Data,
    Addr,
    Ctrl,
    Branch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Load(LoadOrder, Proxy, bool, usize, Dep),
    Store(StoreOrder, Proxy, bool, usize, Dep),
    Rmw(AtomOp, RmwOrder, Scope, bool, usize),
    Fence(FenceOrder, Scope),
    ProxyFence(ProxyFence),
    Bar,
}

impl Token {
    /// Memory events, instructions, reads, writes, location.
    fn cost(self) -> (usize, usize) {
        let dep = |d| match d {
            Dep::None | Dep::Data => 0,
            Dep::Addr => 3,
            Dep::Ctrl => 1,
            Dep::Branch => 2,
        };
        match self {
            Token::Load(.., d) | Token::Store(.., d) => (1, 1 + dep(d)),
            Token::Rmw(..) => (2, 1),
            _ => (0, 1),
        }
    }

    fn needs_read(self) -> bool {
        matches!(self, Token::Load(.., d) | Token::Store(.., d) if d != Dep::None)
    }

    fn reads(self) -> bool {
        matches!(self, Token::Load(..) | Token::Rmw(_, _, _, false, _))
    }

    /// Location and whether it is written.
    fn access(self) -> Option<(usize, bool)> {
        match self {
            Token::Load(_, _, _, l, _) => Some((l, false)),
            Token::Store(_, _, _, l, _) | Token::Rmw(_, _, _, _, l) => Some((l, true)),
            _ => None,
        }
    }
}

type Column = Rc<[Token]>;
type Columns = BTreeMap<(usize, usize), Vec<Column>>;

fn tokens(bound: &Bound) -> Vec<Token> {
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
    all.extend(a.barriers.then_some(Token::Bar));
    all
}

/// All thread bodies by (memory events, instructions).
fn columns(bound: &Bound) -> Columns {
    let tokens = tokens(bound);
    let mut all = Columns::new();
    let mut stack: Vec<(Vec<Token>, (usize, usize))> = vec![(Vec::new(), (0, 0))];
    while let Some((column, cost)) = stack.pop() {
        for &token in &tokens {
            let (events, instructions) = token.cost();
            let next = (cost.0 + events, cost.1 + instructions);
            let dangling = token.needs_read() && !column.iter().any(|t| t.reads());
            // The other threads need an event and an instruction each; two threads at most share one event short.
            if dangling || next.0 > bound.memory_events || next.1 > bound.instructions {
                continue;
            }
            let mut longer = column.clone();
            longer.push(token);
            if next.0 > 0 && (token.access().is_some() || token == Token::Bar) {
                all.entry(next).or_default().push(longer.clone().into());
            }
            stack.push((longer, next));
        }
    }
    all
}

/// Ways to split a size over `t` columns, in non-increasing order.
fn split(
    columns: &Columns,
    t: usize,
    rest: (usize, usize),
    path: &mut Vec<(usize, usize)>,
    out: &mut Vec<Vec<(usize, usize)>>,
) {
    if t == 0 {
        if rest == (0, 0) {
            out.push(path.clone());
        }
        return;
    }
    for &(e, i) in columns.keys() {
        if e > rest.0 || i > rest.1 || path.last().is_some_and(|last| (e, i) > *last) {
            continue;
        }
        path.push((e, i));
        split(columns, t - 1, (rest.0 - e, rest.1 - i), path, out);
        path.pop();
    }
}

/// Counts through the columns of one split; equal sizes in non-increasing index order.
struct Odometer {
    columns: Rc<Columns>,
    split: Vec<(usize, usize)>,
    digits: Option<Vec<usize>>,
}

impl Odometer {
    fn new(columns: Rc<Columns>, split: Vec<(usize, usize)>) -> Self {
        let digits = Some(vec![0; split.len()]);
        Odometer { columns, split, digits }
    }
}

impl Iterator for Odometer {
    type Item = Vec<Column>;

    fn next(&mut self) -> Option<Vec<Column>> {
        let digits = self.digits.as_mut()?;
        let lists: Vec<&Vec<Column>> = self.split.iter().filter_map(|s| self.columns.get(s)).collect();
        let item = digits.iter().zip(&lists).map(|(&d, list)| Rc::clone(&list[d])).collect();
        let mut k = digits.len();
        loop {
            if k == 0 {
                self.digits = None;
                break;
            }
            k -= 1;
            let cap =
                if k > 0 && self.split[k] == self.split[k - 1] { digits[k - 1] + 1 } else { lists[k].len() };
            if digits[k] + 1 < cap {
                digits[k] += 1;
                break;
            }
            digits[k] = 0;
        }
        Some(item)
    }
}

/// Every location has a conflict, locations are used without gaps, and threads hang together.
fn communicates(columns: &[Column]) -> bool {
    let mut uses: BTreeMap<usize, (usize, bool, usize)> = BTreeMap::new();
    for (t, column) in columns.iter().enumerate() {
        for (l, write) in column.iter().filter_map(|t| t.access()) {
            let entry = uses.entry(l).or_default();
            *entry = (entry.0 + 1, entry.1 || write, entry.2 | 1 << t);
        }
    }
    if uses.keys().next_back().is_some_and(|last| last + 1 != uses.len())
        || uses.values().any(|u| u.0 < 2 || !u.1)
    {
        return false;
    }
    let mut reached = 1usize;
    loop {
        let next = uses.values().filter(|u| u.2 & reached != 0).fold(reached, |all, u| all | u.2);
        if next == reached {
            return reached + 1 == 1 << columns.len();
        }
        reached = next;
    }
}

fn places(near: &[Near], threads: usize) -> Vec<Vec<Placement>> {
    let mut all = vec![vec![Placement::default()]];
    for n in 1..threads {
        let id = u16::try_from(n).unwrap_or(u16::MAX);
        let zero = Placement::default();
        let mut longer = Vec::new();
        for places in &all {
            for near in near {
                let place = match near {
                    Near::Cta => Placement { warp: id, ..zero },
                    Near::Cluster => Placement { cta: id, ..zero },
                    Near::Gpu => Placement { cluster: id, cta: id, ..zero },
                    Near::Sys => Placement { gpu: id, ..zero },
                };
                let mut next = places.clone();
                next.push(place);
                longer.push(next);
            }
        }
        all = longer;
    }
    all
}

fn build(columns: &[Column], places: &[Placement], bound: &Bound) -> Program {
    let mut b = Builder::new("small");
    let used =
        columns.iter().flat_map(|c| c.iter()).filter_map(|t| t.access()).map(|a| a.0 + 1).max().unwrap_or(0);
    let word = if bound.alphabet.addr { 64 } else { 32 };
    let symbols: Vec<SymbolId> = (0..used).map(|_| b.object(Space::Global, u32::from(word) / 8)).collect();
    let mut values = vec![0i128; used];
    for (column, place) in columns.iter().zip(places) {
        let id = b.thread(*place);
        let mut read: Option<Reg> = None;
        for token in column.iter() {
            emit(&mut b, id, *token, &symbols, &mut values, &mut read, word);
        }
    }
    b.finish()
}

fn emit(
    b: &mut Builder,
    id: crate::ir::ThreadId,
    token: Token,
    symbols: &[SymbolId],
    values: &mut [i128],
    read: &mut Option<Reg>,
    word: u8,
) {
    let ty = Ty::U(word);
    let mut fresh = |l: usize| {
        values[l] += 1;
        Operand::Imm(values[l])
    };
    match token {
        Token::Fence(order, scope) => drop(b.push(id, Op::Fence { order, scope })),
        Token::ProxyFence(kind) => drop(b.push(id, Op::ProxyFence(vec![kind]))),
        Token::Bar => drop(
            b.push(id, Op::Bar { kind: BarKind::Sync, id: Operand::Imm(0), count: None, instance: None }),
        ),
        Token::Rmw(op, order, scope, red, l) => {
            let dst = (!red).then(|| b.reg(id));
            let (a, other) =
                if op == AtomOp::Cas { (Operand::Imm(0), Some(fresh(l))) } else { (fresh(l), None) };
            b.push(
                id,
                Op::Rmw {
                    red,
                    order,
                    scope,
                    proxy: Proxy::Generic,
                    space: Space::Global,
                    op,
                    ty: super::steps::rmw_type(op, word),
                    dst,
                    addr: at(symbols[l], 0),
                    a,
                    b: other,
                },
            );
            *read = dst.or(*read);
        }
        Token::Load(_, proxy, other, l, dep) | Token::Store(_, proxy, other, l, dep) => {
            let symbol = if other { b.name_through(symbols[l], proxy) } else { symbols[l] };
            let space = if proxy == Proxy::Generic { Space::Global } else { Space::Generic };
            let (guard, base, branch) = depend(b, id, dep, *read, symbol, ty);
            let addr = crate::ir::Address { base, offset: 0 };
            if let Token::Load(order, ..) = token {
                let dst = b.reg(id);
                b.push_guarded(id, guard, Op::Load { order, proxy, space, ty, dst: vec![dst], addr });
                *read = Some(dst);
            } else if let Token::Store(order, ..) = token {
                let src = match (dep, *read) {
                    (Dep::Data, Some(reg)) => Operand::Reg(reg),
                    _ => fresh(l),
                };
                b.push_guarded(id, guard, Op::Store { order, proxy, space, ty, addr, src: vec![src] });
            }
            if let Some(from) = branch {
                let here = b.here(id);
                b.patch(id, from, here);
            }
        }
    }
}

/// Guard, address base and branch of an access that depends on the latest read.
fn depend(
    b: &mut Builder,
    id: crate::ir::ThreadId,
    dep: Dep,
    read: Option<Reg>,
    symbol: SymbolId,
    ty: Ty,
) -> (Option<Guard>, Operand, Option<usize>) {
    let plain = Operand::Address(symbol);
    let Some(read) = read else { return (None, plain, None) };
    match dep {
        Dep::None | Dep::Data => (None, plain, None),
        Dep::Addr => {
            let (zero, base) = (b.reg(id), b.reg(id));
            let a = Operand::Reg(read);
            b.push(id, Op::Alu { op: AluOp::Xor, ty: Ty::B(64), dst: zero, a, b: a });
            b.push(id, Op::Mov { ty: Ty::U(64), dst: base, src: plain });
            b.push(
                id,
                Op::Alu {
                    op: AluOp::Add,
                    ty: Ty::U(64),
                    dst: base,
                    a: Operand::Reg(base),
                    b: Operand::Reg(zero),
                },
            );
            (None, Operand::Reg(base), None)
        }
        Dep::Ctrl | Dep::Branch => {
            let p = b.reg(id);
            b.push(id, Op::Setp { op: CmpOp::Eq, ty, dst: p, a: Operand::Reg(read), b: Operand::Imm(0) });
            if dep == Dep::Ctrl {
                return (Some(Guard { reg: p, negated: true }), plain, None);
            }
            let target = b.here(id) + 1;
            let from = b.push_guarded(id, Some(Guard { reg: p, negated: false }), Op::Bra { target });
            (None, plain, Some(from))
        }
    }
}
