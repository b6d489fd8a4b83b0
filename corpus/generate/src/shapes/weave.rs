//! Builds the program of a skeleton and an annotation: locations, values, registers, condition.

use super::{Annotation, Between, Dir, Mark, Segment, Stand};
use crate::build::{Builder, at};
use crate::steps::rmw_type;
use moire_program::ir::{
    Address, AluOp, AtomOp, CmpOp, Condition, Expr, Guard, LoadOrder, Op, Operand, Placement, Program, Proxy,
    ProxyFence, Quantifier, Reg, RmwOrder, Scope, Space, StoreOrder, SymbolId, Term, ThreadId, Ty,
};

/// An access of the cycle, its location, and the value that it writes or must read.
struct Point {
    thread: usize,
    dir: Dir,
    location: usize,
    value: i64,
}

/// The program of a skeleton and an annotation. Segments without an annotation are weak and plain.
pub fn build(skeleton: &[Segment], annotation: &Annotation) -> Program {
    let (points, locations) = points(skeleton);
    let mut b = Builder::new("shape");
    let symbols: Vec<SymbolId> = (0..locations).map(|_| b.object(Space::Global, 8)).collect();
    let mut observed: Vec<Expr> = Vec::new();
    for n in 0..skeleton.len() {
        let thread = b.thread(place(annotation.stand, n));
        let mine: Vec<&Point> = points.iter().filter(|p| p.thread == n).collect();
        let default = (Mark::Weak, Between::Plain, Mark::Weak);
        let (first, gap, second) = annotation.segments.get(n).copied().unwrap_or(default);
        let mut weaver = Weaver { b: &mut b, thread, symbols: &symbols, observed: &mut observed };
        let read = weaver.access(mine[0], first, Link::None);
        if let Some(point) = mine.get(1) {
            let link = weaver.gap(gap, read, point);
            weaver.access(point, second, link);
        }
    }
    for (location, symbol) in symbols.iter().enumerate() {
        let writes: Vec<i64> =
            points.iter().filter(|p| p.location == location && p.dir == Dir::W).map(|p| p.value).collect();
        if let (true, Some(&last)) = (writes.len() > 1, writes.iter().max()) {
            let term = Term::Mem { symbol: *symbol, offset: 0, bytes: 8, thread: None };
            observed.push(Expr::Cmp(CmpOp::Eq, term, Term::Const(last)));
        }
    }
    // If every read is a `red` and every location has one write, there is no condition.
    let expr = if observed.len() > 1 { Some(Expr::And(observed)) } else { observed.pop() };
    let quantifier = Quantifier::Exists;
    let condition = expr.map(|expr| Condition { name: String::new(), quantifier, expr });
    b.program_mut().conditions.extend(condition);
    b.finish()
}

/// Assigns locations and values along the cycle. The location changes at each `Two(.., false)`. The writes of a location
/// count up from 1, and a read sees the latest write before it. In a one-location cycle the count starts after its only
/// program-order edge.
fn points(skeleton: &[Segment]) -> (Vec<Point>, usize) {
    let n = skeleton.len();
    let pivot = skeleton.iter().position(|s| matches!(s, Segment::Two(_, _, false)));
    let one_place = pivot.is_none();
    let start = pivot.or_else(|| skeleton.iter().position(|s| matches!(s, Segment::Two(..)))).unwrap_or(0);
    let moves = skeleton.iter().filter(|s| matches!(s, Segment::Two(_, _, false))).count().max(1);
    let mut points = Vec::new();
    let (mut location, mut value) = (0, 0);
    let mut see = |thread, dir, location, value: &mut i64| {
        if dir == Dir::W {
            *value += 1;
        }
        points.push(Point { thread, dir, location, value: *value });
    };
    // The walk starts after the pivot's program-order edge and ends before it.
    see(start, skeleton[start].last(), location, &mut value);
    for k in 1..n {
        let thread = (start + k) % n;
        match skeleton[thread] {
            Segment::One(d) => see(thread, d, location, &mut value),
            Segment::Two(a, b, same) => {
                see(thread, a, location, &mut value);
                if !same {
                    location += 1;
                    value = 0;
                }
                see(thread, b, location, &mut value);
            }
        }
    }
    if one_place || matches!(skeleton[start], Segment::Two(..)) {
        see(start, skeleton[start].first(), location, &mut value);
        // The walk began with the pivot's second access and ended with its first: restore program order.
        let last = points.len() - 1;
        points.swap(0, last);
    }
    (points, moves)
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
}

const WORD: Ty = Ty::U(64);

impl Weaver<'_> {
    /// Emits the fence or the dependency between two accesses. A dependency needs a first access that reads. A data
    /// dependency of a read becomes an address dependency.
    fn gap(&mut self, gap: Between, read: Option<Reg>, next: &Point) -> Link {
        match (gap, read) {
            (Between::Fence(order, scope), _) => {
                self.b.push(self.thread, Op::Fence { order, scope });
            }
            (Between::ProxyAlias, _) => {
                self.b.push(self.thread, Op::ProxyFence(vec![ProxyFence::Alias]));
            }
            (Between::Data, Some(r)) if next.dir == Dir::W => {
                let zero = self.zero(r);
                let sum = self.b.reg(self.thread);
                let (a, b) = (Operand::Reg(zero), Operand::Imm(i128::from(next.value)));
                self.b.push(self.thread, Op::Alu { op: AluOp::Add, ty: WORD, dst: sum, a, b });
                return Link::Data(sum);
            }
            (Between::Addr | Between::Data, Some(r)) => return Link::Addr(self.zero(r)),
            (Between::Ctrl, Some(r)) => {
                let p = self.b.reg(self.thread);
                let (a, b) = (Operand::Reg(r), Operand::Imm(0));
                self.b.push(self.thread, Op::Setp { op: CmpOp::Ge, ty: WORD, dst: p, a, b });
                return Link::Ctrl(Guard { reg: p, negated: false });
            }
            _ => {}
        }
        Link::None
    }

    fn zero(&mut self, r: Reg) -> Reg {
        let zero = self.b.reg(self.thread);
        let a = Operand::Reg(r);
        self.b.push(self.thread, Op::Alu { op: AluOp::Xor, ty: Ty::B(64), dst: zero, a, b: a });
        zero
    }

    fn access(&mut self, point: &Point, mark: Mark, link: Link) -> Option<Reg> {
        let symbol = self.symbols[point.location];
        let symbol = if mark == Mark::Alias { self.b.name_through(symbol, Proxy::Generic) } else { symbol };
        let addr = self.address(symbol, &link);
        let guard = if let Link::Ctrl(guard) = link { Some(guard) } else { None };
        let src =
            if let Link::Data(r) = link { Operand::Reg(r) } else { Operand::Imm(i128::from(point.value)) };
        if point.dir == Dir::W {
            let op = write(mark, addr, src, || self.b.reg(self.thread));
            self.b.push_guarded(self.thread, guard, op);
            return None;
        }
        if let Mark::Red(scope) = mark {
            let op = rmw(RmwOrder::Relaxed, scope, AtomOp::Or, None, addr, Operand::Imm(0));
            self.b.push_guarded(self.thread, guard, op);
            return None;
        }
        let dst = self.b.reg(self.thread);
        self.b.push_guarded(self.thread, guard, read(mark, addr, dst));
        self.observed.push(Expr::Cmp(CmpOp::Eq, Term::Reg(self.thread, dst), Term::Const(point.value)));
        Some(dst)
    }

    fn address(&mut self, symbol: SymbolId, link: &Link) -> Address {
        let Link::Addr(zero) = link else { return at(symbol, 0) };
        let base = self.b.reg(self.thread);
        self.b.push(self.thread, Op::Mov { ty: WORD, dst: base, src: Operand::Address(symbol) });
        let (a, b) = (Operand::Reg(base), Operand::Reg(*zero));
        self.b.push(self.thread, Op::Alu { op: AluOp::Add, ty: WORD, dst: base, a, b });
        Address { base: Operand::Reg(base), offset: 0 }
    }
}

fn write(mark: Mark, addr: Address, value: Operand, fresh: impl FnOnce() -> Reg) -> Op {
    let order = match mark {
        Mark::Weak | Mark::Alias => StoreOrder::Weak,
        Mark::Relaxed(scope) => StoreOrder::Relaxed(scope),
        Mark::Sync(scope) => StoreOrder::Release(scope),
        Mark::Volatile => StoreOrder::Volatile,
        Mark::Atom(scope, sync) => {
            let order = if sync { RmwOrder::Release } else { RmwOrder::Relaxed };
            return rmw(order, scope, AtomOp::Exch, Some(fresh()), addr, value);
        }
        Mark::Red(scope) => return rmw(RmwOrder::Relaxed, scope, AtomOp::Max, None, addr, value),
    };
    crate::build::store(order, Space::Global, WORD, addr, value)
}

/// A read into `dst`. `Mark::Red` is handled by the caller, because a `red` has no destination.
fn read(mark: Mark, addr: Address, dst: Reg) -> Op {
    let order = match mark {
        Mark::Weak | Mark::Alias | Mark::Red(_) => LoadOrder::Weak,
        Mark::Relaxed(scope) => LoadOrder::Relaxed(scope),
        Mark::Sync(scope) => LoadOrder::Acquire(scope),
        Mark::Volatile => LoadOrder::Volatile,
        Mark::Atom(scope, sync) => {
            let order = if sync { RmwOrder::Acquire } else { RmwOrder::Relaxed };
            return rmw(order, scope, AtomOp::Or, Some(dst), addr, Operand::Imm(0));
        }
    };
    crate::build::load(order, Space::Global, WORD, dst, addr)
}

/// `atom`, or `red` if there is no destination.
fn rmw(order: RmwOrder, scope: Scope, op: AtomOp, dst: Option<Reg>, addr: Address, a: Operand) -> Op {
    let ty = rmw_type(op, 64);
    Op::Rmw {
        red: dst.is_none(),
        order,
        scope,
        proxy: Proxy::Generic,
        space: Space::Global,
        op,
        ty,
        dst,
        addr,
        a,
        b: None,
    }
}
