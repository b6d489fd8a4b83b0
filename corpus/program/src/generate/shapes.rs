//! Critical cycles: every shape of communication between threads that a model can forbid, with annotated edges.
//!
//! Contract: a [`Skeleton`] is a cycle of thread segments (one or two accesses) joined by the communications rf, fr
//! and co, in the way of diy (Alglave, Maranget, Sarkar, Sewell, "Fences in weak memory models", 2010); all skeletons
//! up to a number of threads are listed once, up to rotation. An [`Annotation`] fills in orders, scopes, dependencies,
//! fences, aliases and places. The program's `exists` condition says that the cycle happened; with three or more
//! writes to one location it fixes only the last of them.

use arbitrary::{Result, Unstructured};

use super::build::{Builder, at};
use super::steps::rmw_type;
use crate::ir::{
    Address, AluOp, AtomOp, CmpOp, Condition, Expr, FenceOrder, Guard, LoadOrder, Op, Operand, Placement,
    Program, Proxy, ProxyFence, Quantifier, Reg, RmwOrder, Scope, Space, StoreOrder, SymbolId, Term,
    ThreadId, Ty,
};

/// Direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    /// Read.
    R,
    /// Write.
    W,
}

/// What one thread contributes to a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// One access.
    One(Dir),
    /// Two accesses in program order; the flag says whether to one location.
    Two(Dir, Dir, bool),
}

impl Segment {
    fn first(self) -> Dir {
        match self {
            Segment::One(d) | Segment::Two(d, _, _) => d,
        }
    }

    fn last(self) -> Dir {
        match self {
            Segment::One(d) | Segment::Two(_, d, _) => d,
        }
    }
}

/// A cycle of segments, the least of its rotations.
pub type Skeleton = Vec<Segment>;

/// All skeletons of 2 to `threads` threads, in order of size.
pub fn skeletons(threads: usize) -> Vec<Skeleton> {
    let mut segments = Vec::new();
    for a in [Dir::R, Dir::W] {
        segments.push(Segment::One(a));
        for b in [Dir::R, Dir::W] {
            segments.extend([Segment::Two(a, b, false), Segment::Two(a, b, true)]);
        }
    }
    let mut all = Vec::new();
    for n in 2..=threads {
        let mut digits = vec![0usize; n];
        loop {
            let cycle: Skeleton = digits.iter().map(|&d| segments[d]).collect();
            if is_cycle(&cycle) && is_least_rotation(&cycle) {
                all.push(cycle);
            }
            let Some(at) = digits.iter().rposition(|&d| d + 1 < segments.len()) else { break };
            digits[at] += 1;
            digits[at + 1..].fill(0);
        }
    }
    all
}

fn is_cycle(cycle: &[Segment]) -> bool {
    let n = cycle.len();
    let joined = (0..n).all(|i| (cycle[i].last(), cycle[(i + 1) % n].first()) != (Dir::R, Dir::R));
    let moves = cycle.iter().filter(|s| matches!(s, Segment::Two(_, _, false))).count();
    let stays = cycle.iter().filter(|s| matches!(s, Segment::Two(_, _, true))).count();
    // One change of location cannot come back; a cycle of single accesses orders nothing by program.
    joined && moves != 1 && (moves > 0 || stays > 0) && (moves > 0 || stays == 1)
}

fn is_least_rotation(cycle: &[Segment]) -> bool {
    (1..cycle.len()).all(|k| cycle[k..].iter().chain(&cycle[..k]).ge(cycle.iter()))
}

/// How an access of a shape is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `ld.weak`, `st.weak`
    Weak,
    /// `.relaxed`
    Relaxed(Scope),
    /// `ld.acquire`, `st.release`
    Sync(Scope),
    /// `.volatile`
    Volatile,
    /// `atom` (read: `or` with 0; write: `exch`), relaxed or acquiring/releasing.
    Atom(Scope, bool),
    /// Weak, through a virtual alias.
    Alias,
}

/// What stands between the two accesses of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Nothing.
    Plain,
    /// A memory fence.
    Fence(FenceOrder, Scope),
    /// The second access stores what the first read.
    Data,
    /// The second address is computed from what the first read.
    Addr,
    /// The second access runs under a guard on what the first read.
    Ctrl,
    /// `fence.proxy.alias`
    ProxyAlias,
}

/// How the threads stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// One CTA.
    Cta,
    /// One cluster.
    Cluster,
    /// One GPU.
    Gpu,
    /// A GPU each.
    Sys,
    /// Even threads in one CTA, odd threads each elsewhere on the GPU.
    Split,
}

/// Everything a skeleton leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Per segment: the marks of its (up to two) accesses and what stands between.
    pub segments: Vec<(Mark, Between, Mark)>,
    /// Places.
    pub stand: Stand,
}

const SCOPES: [Scope; 4] = [Scope::Gpu, Scope::Sys, Scope::Cta, Scope::Cluster];

/// The digits of one segment: marks 2 + 4 * 4 = 18 twice, betweens 1 + 16 + 4 = 21.
const MARKS: u128 = 19;
const BETWEENS: u128 = 21;
const STANDS: u128 = 5;

fn mark(n: u128) -> Mark {
    let scope = SCOPES[usize::try_from(n % 4).unwrap_or(0)];
    match n {
        0..4 => Mark::Relaxed(scope),
        4..8 => Mark::Sync(scope),
        8..12 => Mark::Atom(scope, false),
        12..16 => Mark::Atom(scope, true),
        16 => Mark::Weak,
        17 => Mark::Volatile,
        _ => Mark::Alias,
    }
}

fn between(n: u128) -> Between {
    let scope = SCOPES[usize::try_from(n % 4).unwrap_or(0)];
    match n {
        0..4 => Between::Fence(FenceOrder::Sc, scope),
        4..8 => Between::Fence(FenceOrder::AcqRel, scope),
        8..12 => Between::Fence(FenceOrder::Acquire, scope),
        12..16 => Between::Fence(FenceOrder::Release, scope),
        16 => Between::Data,
        17 => Between::Addr,
        18 => Between::Ctrl,
        19 => Between::ProxyAlias,
        _ => Between::Plain,
    }
}

fn stand(n: u128) -> Stand {
    match n {
        0 => Stand::Gpu,
        1 => Stand::Cta,
        2 => Stand::Sys,
        3 => Stand::Cluster,
        _ => Stand::Split,
    }
}

/// All shape programs up to a number of threads, by index.
#[derive(Clone, Debug)]
pub struct Shapes {
    skeletons: Vec<Skeleton>,
    /// Index at which each skeleton's programs end.
    ends: Vec<u128>,
}

impl Shapes {
    /// Shapes of 2 to `threads` threads (at most 5: index arithmetic stays in 128 bits).
    pub fn new(threads: usize) -> Self {
        let skeletons = skeletons(threads.min(5));
        let mut end = 0u128;
        let ends = skeletons
            .iter()
            .map(|s| {
                end = end.saturating_add(variants(s));
                end
            })
            .collect();
        Shapes { skeletons, ends }
    }

    /// How many programs there are.
    pub fn len(&self) -> u128 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The program at `index`.
    pub fn get(&self, index: u128) -> Option<Program> {
        let which = self.ends.partition_point(|&end| end <= index);
        let skeleton = self.skeletons.get(which)?;
        let start = if which == 0 { 0 } else { self.ends[which - 1] };
        Some(build(skeleton, &decode(skeleton, index - start)))
    }
}

fn variants(skeleton: &[Segment]) -> u128 {
    skeleton.iter().fold(STANDS, |all, segment| {
        all.saturating_mul(match segment {
            Segment::One(_) => MARKS,
            Segment::Two(..) => MARKS * MARKS * BETWEENS,
        })
    })
}

fn decode(skeleton: &[Segment], mut index: u128) -> Annotation {
    let mut digit = |base: u128| {
        let d = index % base;
        index /= base;
        d
    };
    let stand = stand(digit(STANDS));
    let mut segments = Vec::new();
    for segment in skeleton {
        segments.push(match segment {
            Segment::One(_) => (mark(digit(MARKS)), Between::Plain, Mark::Weak),
            Segment::Two(..) => {
                // Plain first, so that the earliest programs are the barest.
                let gap = between((digit(BETWEENS) + BETWEENS - 1) % BETWEENS);
                (mark(digit(MARKS)), gap, mark(digit(MARKS)))
            }
        });
    }
    Annotation { segments, stand }
}

/// A shape drawn from bytes: mostly uniform scopes and strong marks, so that the annotations interact.
pub fn draw(u: &mut Unstructured<'_>) -> Result<Program> {
    let skeleton = draw_skeleton(u)?;
    let base = *u.choose(&SCOPES)?;
    let steady = u.ratio(2u8, 3u8)?;
    let fences = u.ratio(1u8, 2u8)?;
    let mut segments = Vec::new();
    for _ in &skeleton {
        let one = |u: &mut Unstructured<'_>| -> Result<Mark> {
            let scope = if steady { base } else { *u.choose(&SCOPES)? };
            Ok(match u.int_in_range(0..=15u8)? {
                0..=6 => Mark::Relaxed(scope),
                7..=9 => Mark::Sync(scope),
                10 | 11 => Mark::Weak,
                12 | 13 => Mark::Atom(scope, u.arbitrary()?),
                14 => Mark::Volatile,
                _ => Mark::Alias,
            })
        };
        let (first, second) = (one(u)?, one(u)?);
        let n = u.int_in_range(0..=31u8)?;
        let gap = match n {
            0..=11 if fences => between(u128::from(u.int_in_range(0..=15u8)?)),
            0..=11 => Between::Plain,
            12..=17 => Between::Data,
            18..=20 => Between::Addr,
            21..=24 => Between::Ctrl,
            25 => Between::ProxyAlias,
            _ => Between::Plain,
        };
        segments.push((first, gap, second));
    }
    let stand = stand(u128::from(u.int_in_range(0..=4u8)?));
    Ok(build(&skeleton, &Annotation { segments, stand }))
}

/// A cycle of two to four threads by choosing segments that fit.
fn draw_skeleton(u: &mut Unstructured<'_>) -> Result<Skeleton> {
    let threads = *u.choose(&[2usize, 2, 3, 3, 3, 4])?;
    // Load buffering is where models and explorers differ most, and rare among all cycles.
    if u.ratio(1u8, 5u8)? {
        return Ok(vec![Segment::Two(Dir::R, Dir::W, false); threads]);
    }
    for _ in 0..64 {
        let mut cycle = Skeleton::new();
        for _ in 0..threads {
            let (a, b) = (*u.choose(&[Dir::R, Dir::W])?, *u.choose(&[Dir::R, Dir::W])?);
            cycle.push(match u.int_in_range(0..=9u8)? {
                0 | 1 if threads > 2 => Segment::One(a),
                2 => Segment::Two(a, b, true),
                _ => Segment::Two(a, b, false),
            });
        }
        if is_cycle(&cycle) {
            return Ok(cycle);
        }
    }
    Ok(load_buffering())
}

fn load_buffering() -> Skeleton {
    vec![Segment::Two(Dir::R, Dir::W, false), Segment::Two(Dir::R, Dir::W, false)]
}

/// MP without annotations: the smallest program that communicates.
pub fn message_passing() -> Program {
    let relaxed = Mark::Relaxed(Scope::Gpu);
    let skeleton = [Segment::Two(Dir::R, Dir::R, false), Segment::Two(Dir::W, Dir::W, false)];
    build(&skeleton, &Annotation { segments: vec![(relaxed, Between::Plain, relaxed); 2], stand: Stand::Gpu })
}

/// An access of the cycle with its location and the value it writes or must read.
struct Point {
    thread: usize,
    dir: Dir,
    location: usize,
    value: i64,
}

/// The program of a skeleton under an annotation (missing annotations are weak and plain).
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
    let expr = if observed.len() == 1 { observed.remove(0) } else { Expr::And(observed) };
    let condition = Condition { name: String::new(), quantifier: Quantifier::Exists, expr };
    b.program_mut().conditions.push(condition);
    b.finish()
}

/// Locations and values: along the cycle a location changes at each `Two(.., false)`; writes count up from 1 and a read
/// sees the latest write before it. In a one-location cycle the count starts behind its only program-order edge.
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
    // The walk starts behind the pivot's program-order edge and ends before it.
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
        // In its thread the pivot's first access comes before the one the walk began with.
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

/// What the second access takes from the first.
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
    /// Emits what stands between; dependencies need a first access that reads and, for data, a second that writes.
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
            return rmw(order, scope, AtomOp::Exch, fresh(), addr, value);
        }
    };
    super::build::store(order, Space::Global, WORD, addr, value)
}

fn read(mark: Mark, addr: Address, dst: Reg) -> Op {
    let order = match mark {
        Mark::Weak | Mark::Alias => LoadOrder::Weak,
        Mark::Relaxed(scope) => LoadOrder::Relaxed(scope),
        Mark::Sync(scope) => LoadOrder::Acquire(scope),
        Mark::Volatile => LoadOrder::Volatile,
        Mark::Atom(scope, sync) => {
            let order = if sync { RmwOrder::Acquire } else { RmwOrder::Relaxed };
            return rmw(order, scope, AtomOp::Or, dst, addr, Operand::Imm(0));
        }
    };
    super::build::load(order, Space::Global, WORD, dst, addr)
}

fn rmw(order: RmwOrder, scope: Scope, op: AtomOp, dst: Reg, addr: Address, a: Operand) -> Op {
    let ty = rmw_type(op, 64);
    Op::Rmw {
        red: false,
        order,
        scope,
        proxy: Proxy::Generic,
        space: Space::Global,
        op,
        ty,
        dst: Some(dst),
        addr,
        a,
        b: None,
    }
}
