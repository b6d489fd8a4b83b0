//! Builds the program of a skeleton and an annotation: locations, values, registers, condition.

use super::{Annotation, Between, Dir, Mark, Meeting, Peek, Segment, Stand};
use crate::build::{Builder, at};
use crate::steps::rmw_type;
use moire_program::ir::{
    Address, AluOp, AtomOp, BarKind, CmpOp, Condition, Expr, Guard, LoadOrder, Op, Operand, Placement,
    Program, Proxy, ProxyFence, Quantifier, Reg, RmwOrder, Scope, Space, StoreOrder, SymbolId, Term,
    ThreadId, Ty,
};
use moire_source::cycle::{Point, points};

/// The program of a skeleton and an annotation. Segments without an annotation are weak and plain.
pub fn build(skeleton: &[Segment], annotation: &Annotation) -> Program {
    let (points, locations) = points(skeleton);
    let mut b = Builder::new("shape");
    let bytes = annotation.ty.bytes();
    let spare = annotation.segments.iter().any(|(_, gap, _)| gap.depends());
    let size = if spare { bytes + WORD.bytes() } else { bytes };
    let symbols: Vec<SymbolId> = (0..locations).map(|_| b.object(annotation.spaces.0, size)).collect();
    let mut observed: Vec<Expr> = Vec::new();
    for (n, segment) in skeleton.iter().enumerate() {
        let thread = b.thread(place(annotation.stand, n));
        let mine: Vec<&Point> = points.iter().filter(|p| p.thread == n).collect();
        let default = (Mark::Weak, Between::Plain, Mark::Weak);
        let marks = annotation.segments.get(n).copied().unwrap_or(default);
        let mut weaver = Weaver { b: &mut b, thread, symbols: &symbols, observed: &mut observed, annotation };
        match annotation.meeting {
            Some(meeting) => weaver.meets(n, &mine, marks, meeting),
            None => weaver.segment(*segment, &mine, marks),
        }
        if let (Some((_, peek)), Some(last)) = (annotation.peek.filter(|p| p.0 == n), mine.last()) {
            weaver.peeks(last, peek);
        }
    }
    for (location, symbol) in symbols.iter().enumerate() {
        let writes: Vec<u64> =
            points.iter().filter(|p| p.location == location && p.dir == Dir::W).map(|p| p.value).collect();
        if let (true, Some(&last)) = (writes.len() > 1, writes.iter().max()) {
            let thread = (annotation.spaces.0 == Space::SharedCta).then_some(ThreadId::at(0));
            let term = Term::Mem { symbol: *symbol, offset: 0, bytes: bytes.try_into().unwrap_or(8), thread };
            observed.push(Expr::Cmp(CmpOp::Eq, term, Term::Const(last.cast_signed())));
        }
    }
    // If every read is a `red` and every location has one write, there is no condition.
    let expr = if observed.len() > 1 { Some(Expr::And(observed)) } else { observed.pop() };
    let quantifier = Quantifier::Exists;
    let condition = expr.map(|expr| Condition { name: String::new(), quantifier, expr });
    b.program_mut().conditions.extend(condition);
    b.finish()
}

fn place(stand: Stand, n: usize) -> Placement {
    let n = u16::try_from(n).unwrap_or(0);
    let zero = Placement::default();
    match stand {
        Stand::Cta => Placement { warp: n, ..zero },
        Stand::Cluster => Placement { cta: n, ..zero },
        Stand::Gpu => Placement { cluster: n, cta: n, ..zero },
        Stand::Sys => Placement { gpu: n, ..zero },
        Stand::Split if n % 2 == 0 => Placement { warp: n, ..zero },
        Stand::Split => Placement { cluster: n, cta: n, ..zero },
    }
}

/// How the second access depends on the first.
enum Link {
    None,
    Data(Reg),
    Addr(Reg),
    Ctrl(Guard),
}

struct Weaver<'a> {
    b: &'a mut Builder,
    thread: ThreadId,
    symbols: &'a [SymbolId],
    observed: &'a mut Vec<Expr>,
    annotation: &'a Annotation,
}

/// The type of addresses.
const WORD: Ty = Ty::U(64);

impl Weaver<'_> {
    fn segment(&mut self, segment: Segment, points: &[&Point], (first, gap, second): (Mark, Between, Mark)) {
        if segment == Segment::Update {
            return self.update(points[0], first);
        }
        let read = self.access(points[0], first, Link::None);
        if let Some(point) = points.get(1) {
            let link = self.gap(gap, read.map(|r| (r, points[0].value)), point);
            self.access(point, second, link);
        }
    }

    /// The part of a segment that stands on its side of a barrier: the first one has its first access before it.
    fn meets(
        &mut self,
        n: usize,
        points: &[&Point],
        (first, _, second): (Mark, Between, Mark),
        meeting: Meeting,
    ) {
        if n == 0 {
            self.access(points[0], first, Link::None);
        }
        let id = Operand::Imm(0);
        match meeting {
            Meeting::Cta => {
                self.b.push(self.thread, Op::Bar { kind: BarKind::Sync, id, count: None, instance: None });
            }
            Meeting::Cluster => {
                self.b.push(self.thread, Op::ClusterArrive { relaxed: false });
                self.b.push(self.thread, Op::ClusterWait);
            }
        }
        if let (true, Some(point)) = (n > 0, points.get(1)) {
            self.access(point, second, Link::None);
        }
    }

    /// Adds 1 to the value before, or exchanges it; relaxed.
    fn update(&mut self, point: &Point, mark: Mark) {
        let (op, a, scope) = match mark {
            Mark::Atom(scope, _) => (AtomOp::Exch, point.value, scope),
            Mark::Sync(scope) if self.annotation.ty.bytes() == 4 => (AtomOp::Inc, u64::from(u16::MAX), scope),
            Mark::Relaxed(scope) | Mark::Sync(scope) => (AtomOp::Add, 1, scope),
            _ => (AtomOp::Add, 1, Scope::Sys),
        };
        let dst = self.b.reg(self.thread);
        let (addr, a) = (at(self.symbols[point.location], 0), Operand::Imm(i128::from(a)));
        let op = self.rmw(RmwOrder::Relaxed, scope, op, Some(dst), addr, a);
        self.b.push(self.thread, op);
        let before = point.value.cast_signed() - 1;
        self.observed.push(Expr::Cmp(CmpOp::Eq, Term::Reg(self.thread, dst), Term::Const(before)));
    }

    /// Reads a location once more.
    fn peeks(&mut self, point: &Point, peek: Peek) {
        let symbol = self.symbols[point.location];
        let dst = self.b.reg(self.thread);
        let op = match peek {
            Peek::Surface => {
                let symbol = self.b.name_through(symbol, Proxy::Surface);
                self.read(Mark::Surface, at(symbol, 0), dst)
            }
            Peek::Half => {
                let bits = u8::try_from(4 * self.annotation.ty.bytes()).unwrap_or(32);
                let (order, space) = (LoadOrder::Relaxed(Scope::Sys), self.annotation.spaces.1);
                let (proxy, ty, addr) = (Proxy::Generic, Ty::U(bits), at(symbol, 0));
                Op::Load { order, proxy, space, ty, dst: vec![dst], addr }
            }
        };
        self.b.push(self.thread, op);
    }

    /// Emits the fence or the dependency between two accesses. A dependency needs a first access that reads. A data
    /// dependency of a read becomes an address dependency. Another value than that of the cycle would change what depends on it.
    fn gap(&mut self, gap: Between, read: Option<(Reg, u64)>, next: &Point) -> Link {
        match (gap, read) {
            (Between::Fence(order, scope), _) => {
                self.b.push(self.thread, Op::Fence { order, scope });
            }
            (Between::ProxyAlias, _) => {
                self.b.push(self.thread, Op::ProxyFence(vec![ProxyFence::Alias]));
            }
            (Between::ProxySurface, _) => {
                self.b.push(self.thread, Op::ProxyFence(vec![ProxyFence::Of(Proxy::Surface)]));
            }
            (Between::Past, Some((r, _))) => {
                let p = self.b.reg(self.thread);
                let (a, b) = (Operand::Reg(r), Operand::Imm(0));
                self.b.push(self.thread, Op::Setp { op: CmpOp::Eq, ty: WORD, dst: p, a, b });
                let guard = Some(Guard { reg: p, negated: false });
                let from = self.b.push_guarded(self.thread, guard, Op::Bra { target: 0 });
                self.b.patch(self.thread, from, from + 1);
            }
            (Between::Data, Some((r, value))) if next.dir == Dir::W => {
                let more = Operand::Imm(i128::from(next.value) - i128::from(value));
                return Link::Data(self.alu(AluOp::Add, Operand::Reg(r), more));
            }
            (Between::Addr | Between::Data, Some((r, value))) => return Link::Addr(self.further(r, value)),
            (Between::Ctrl, Some((r, value))) => {
                let p = self.b.reg(self.thread);
                let (a, b) = (Operand::Reg(r), Operand::Imm(i128::from(value)));
                self.b.push(self.thread, Op::Setp { op: CmpOp::Eq, ty: WORD, dst: p, a, b });
                return Link::Ctrl(Guard { reg: p, negated: false });
            }
            _ => {}
        }
        Link::None
    }

    fn alu(&mut self, op: AluOp, a: Operand, b: Operand) -> Reg {
        let dst = self.b.reg(self.thread);
        self.b.push(self.thread, Op::Alu { op, ty: WORD, dst, a, b });
        dst
    }

    /// The bytes by which an address lies further: none after the value of the cycle, a word after every other one.
    fn further(&mut self, read: Reg, value: u64) -> Reg {
        let differs = self.b.reg(self.thread);
        let (a, b) = (Operand::Reg(read), Operand::Imm(i128::from(value)));
        self.b.push(self.thread, Op::Setp { op: CmpOp::Ne, ty: WORD, dst: differs, a, b });
        let dst = self.b.reg(self.thread);
        let (a, b) = (Operand::Imm(8), Operand::Imm(0));
        self.b.push(self.thread, Op::Selp { ty: WORD, dst, a, b, p: differs });
        dst
    }

    fn access(&mut self, point: &Point, mark: Mark, link: Link) -> Option<Reg> {
        let symbol = self.symbols[point.location];
        let symbol = match mark {
            Mark::Alias => self.b.name_through(symbol, Proxy::Generic),
            Mark::Surface => self.b.name_through(symbol, Proxy::Surface),
            Mark::Weak | Mark::Relaxed(_) | Mark::Sync(_) | Mark::Volatile => symbol,
            Mark::Atom(..) | Mark::Red(_) | Mark::Twice(_) | Mark::Await(..) => symbol,
        };
        let addr = self.address(symbol, &link);
        let guard = if let Link::Ctrl(guard) = link { Some(guard) } else { None };
        let src =
            if let Link::Data(r) = link { Operand::Reg(r) } else { Operand::Imm(i128::from(point.value)) };
        if point.dir == Dir::W {
            if let Mark::Twice(scope) = mark {
                let own = Operand::Imm(64 + i128::from(point.value));
                let op = self.write(Mark::Sync(scope), addr, own);
                self.b.push_guarded(self.thread, guard, op);
            }
            let op = self.write(mark, addr, src);
            self.b.push_guarded(self.thread, guard, op);
            return None;
        }
        if let Mark::Red(scope) = mark {
            let op = self.rmw(RmwOrder::Relaxed, scope, AtomOp::Or, None, addr, Operand::Imm(0));
            self.b.push_guarded(self.thread, guard, op);
            return None;
        }
        let dst = self.b.reg(self.thread);
        let op = self.read(mark, addr, dst);
        let head = self.b.push_guarded(self.thread, guard, op);
        if let Mark::Await(..) = mark {
            self.again(head, dst, point);
        }
        if let Mark::Twice(scope) = mark {
            let unused = self.b.reg(self.thread);
            let again = self.write(mark, addr, Operand::Imm(i128::from(point.value)));
            self.b.push_guarded(self.thread, guard, again);
            let op = self.read(Mark::Sync(scope), addr, unused);
            self.b.push_guarded(self.thread, guard, op);
        }
        self.observed.push(Expr::Cmp(
            CmpOp::Eq,
            Term::Reg(self.thread, dst),
            Term::Const(point.value.cast_signed()),
        ));
        Some(dst)
    }

    /// Goes back until the value of the cycle is read.
    fn again(&mut self, head: usize, read: Reg, point: &Point) {
        let p = self.b.reg(self.thread);
        let (a, b) = (Operand::Reg(read), Operand::Imm(i128::from(point.value)));
        self.b.push(self.thread, Op::Setp { op: CmpOp::Ne, ty: self.annotation.ty, dst: p, a, b });
        let guard = Some(Guard { reg: p, negated: false });
        let from = self.b.push_guarded(self.thread, guard, Op::Bra { target: 0 });
        self.b.patch(self.thread, from, head);
    }

    fn address(&mut self, symbol: SymbolId, link: &Link) -> Address {
        let Link::Addr(zero) = link else { return at(symbol, 0) };
        let base = self.b.reg(self.thread);
        self.b.push(self.thread, Op::Mov { ty: WORD, dst: base, src: Operand::Address(symbol) });
        let (a, b) = (Operand::Reg(base), Operand::Reg(*zero));
        self.b.push(self.thread, Op::Alu { op: AluOp::Add, ty: WORD, dst: base, a, b });
        Address { base: Operand::Reg(base), offset: 0 }
    }

    fn write(&mut self, mark: Mark, addr: Address, value: Operand) -> Op {
        let order = match mark {
            Mark::Weak | Mark::Alias | Mark::Surface => StoreOrder::Weak,
            Mark::Relaxed(scope) | Mark::Twice(scope) | Mark::Await(scope, _) => StoreOrder::Relaxed(scope),
            Mark::Sync(scope) => StoreOrder::Release(scope),
            Mark::Volatile => StoreOrder::Volatile,
            Mark::Atom(scope, sync) => {
                let order = if sync { RmwOrder::Release } else { RmwOrder::Relaxed };
                let dst = self.b.reg(self.thread);
                return self.rmw(order, scope, AtomOp::Exch, Some(dst), addr, value);
            }
            Mark::Red(scope) => return self.rmw(RmwOrder::Relaxed, scope, AtomOp::Max, None, addr, value),
        };
        let (proxy, space) = self.way(mark);
        Op::Store { order, proxy, space, ty: self.annotation.ty, addr, src: vec![value] }
    }

    /// A read into `dst`. `Mark::Red` is handled by the caller, because a `red` has no destination.
    fn read(&self, mark: Mark, addr: Address, dst: Reg) -> Op {
        let order = match mark {
            Mark::Weak | Mark::Alias | Mark::Surface | Mark::Red(_) => LoadOrder::Weak,
            Mark::Relaxed(scope) | Mark::Twice(scope) | Mark::Await(scope, false) => {
                LoadOrder::Relaxed(scope)
            }
            Mark::Sync(scope) | Mark::Await(scope, true) => LoadOrder::Acquire(scope),
            Mark::Volatile => LoadOrder::Volatile,
            Mark::Atom(scope, sync) => {
                let order = if sync { RmwOrder::Acquire } else { RmwOrder::Relaxed };
                return self.rmw(order, scope, AtomOp::Or, Some(dst), addr, Operand::Imm(0));
            }
        };
        let (proxy, space) = self.way(mark);
        Op::Load { order, proxy, space, ty: self.annotation.ty, dst: vec![dst], addr }
    }

    /// The proxy of a load or a store, and the space that it names.
    fn way(&self, mark: Mark) -> (Proxy, Space) {
        let surface = mark == Mark::Surface;
        if surface { (Proxy::Surface, Space::Generic) } else { (Proxy::Generic, self.annotation.spaces.1) }
    }

    /// `atom`, or `red` if there is no destination.
    fn rmw(
        &self,
        order: RmwOrder,
        scope: Scope,
        op: AtomOp,
        dst: Option<Reg>,
        addr: Address,
        a: Operand,
    ) -> Op {
        let ty = rmw_type(op, u8::try_from(8 * self.annotation.ty.bytes()).unwrap_or(64));
        let (red, proxy, space) = (dst.is_none(), Proxy::Generic, self.annotation.spaces.1);
        Op::Rmw { red, order, scope, proxy, space, op, ty, dst, addr, a, b: None }
    }
}
