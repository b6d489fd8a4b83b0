//! Symmetry: threads that can be exchanged, and what follows from an execution by exchanging them.
//!
//! Two threads are symmetric if the map that exchanges them, and nothing else, takes the program to itself:
//!
//! - they run one code, and their registers start with one value each;
//! - every scope, CTA, stream and warp of a third thread holds both, or stands to both in one way;
//! - they have no memory of their own;
//! - each condition says the same of both.
//!
//! A program with anything but ordinary accesses, those of tile blocks, fences and CTA barriers has no symmetric threads
//! here: for other instructions placement means more than this list.

use crate::planted::Planted;
use crate::thread::footprint::base_symbol;
use crate::thread::ids::Table;
use moire_execution::leaf::{Finding, Memory, Place};
use moire_program::ir::*;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Classes of threads that are alike, of two members and more.
#[derive(Clone, Debug, Default)]
pub struct Alike {
    pub(crate) classes: Vec<Class>,
    /// By thread, its class.
    pub(crate) of: Table<ThreadId, Option<usize>>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// Ascending.
    pub(crate) threads: Vec<ThreadId>,
    /// An instruction every execution runs once, with one write to memory that all of them name.
    pub(crate) writes_at: Option<usize>,
}

/// A final state: registers by thread, and memory.
pub type Registers = (Vec<Vec<Value>>, Memory);

impl Alike {
    /// The classes of a program.
    pub fn new(program: &Program) -> Alike {
        Alike::planted(program, None)
    }

    /// The same with a bug planted, for tests that must notice it.
    pub fn planted(program: &Program, bug: Option<Planted>) -> Alike {
        let mut out = Alike { classes: Vec::new(), of: program.threads.iter().map(|_| None).collect() };
        if program.launched || !program.threads.iter().flat_map(|t| &t.body).all(|i| ordinary(&i.op)) {
            return out;
        }
        let all = || (0..program.threads.len()).map(ThreadId::at);
        for first in all() {
            if out.of[first].is_some() {
                continue;
            }
            let free = |t: &ThreadId| out.of[*t].is_none();
            let mut threads: Vec<ThreadId> = all()
                .filter(|t| *t > first)
                .filter(free)
                .filter(|t| exchangeable(program, first, *t, bug))
                .collect();
            if !threads.is_empty() {
                threads.insert(0, first);
                threads.iter().for_each(|t| out.of[*t] = Some(out.classes.len()));
                out.classes.push(Class { threads, writes_at: writes_at(&program.threads[first.index()]) });
            }
        }
        out
    }

    /// Whether no two threads are alike.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Final states with all that follow from them.
    pub fn states(&self, of: BTreeSet<Registers>) -> BTreeSet<Registers> {
        self.closed(of, |state, a, b| {
            let mut out = state.clone();
            out.0.swap(a.index(), b.index());
            out
        })
    }

    /// Findings with all that follow from them.
    pub fn findings(&self, program: &Program, of: BTreeSet<Finding>) -> BTreeSet<Finding> {
        self.closed(of, |finding, a, b| {
            let mut out = finding.clone();
            out.places.iter_mut().for_each(|p| *p = moved(program, *p, a, b));
            out.places.sort();
            out
        })
    }

    fn closed<T: Ord + Clone>(
        &self,
        of: BTreeSet<T>,
        exchanged: impl Fn(&T, ThreadId, ThreadId) -> T,
    ) -> BTreeSet<T> {
        let (mut todo, mut out) = (of.iter().cloned().collect::<Vec<T>>(), of);
        while let Some(one) = todo.pop() {
            for pair in self.classes.iter().flat_map(|c| c.threads.windows(2)) {
                let other = exchanged(&one, pair[0], pair[1]);
                if out.insert(other.clone()) {
                    todo.push(other);
                }
            }
        }
        out
    }
}

/// A place of one thread in the other one.
fn moved(program: &Program, place: Place, a: ThreadId, b: ThreadId) -> Place {
    let there = |from: ThreadId, to: ThreadId| {
        let (body, other) = (&program.threads[from.index()].body, &program.threads[to.index()].body);
        let line =
            body.iter().zip(other).find(|(i, _)| i.line == place.line).map_or(place.line, |(_, j)| j.line);
        Place { thread: to.0, line }
    };
    match ThreadId(place.thread) {
        t if t == a => there(a, b),
        t if t == b => there(b, a),
        _ => place,
    }
}

/// Instructions that see of a placement what [`stands`] lists.
pub(crate) fn ordinary(op: &Op) -> bool {
    matches!(
        op,
        Op::Load { .. }
            | Op::Store { .. }
            | Op::Rmw { .. }
            | Op::Fence { .. }
            | Op::ProxyFence(_)
            | Op::Mov { .. }
            | Op::Alu { .. }
            | Op::Setp { .. }
            | Op::Selp { .. }
            | Op::Bra { .. }
            | Op::Exit
            | Op::Bar { .. }
            | Op::Tile(_)
    )
}

fn exchangeable(program: &Program, a: ThreadId, b: ThreadId, bug: Option<Planted>) -> bool {
    let (x, y) = (&program.threads[a.index()], &program.threads[b.index()]);
    let start = |t: &Thread| t.regs.iter().map(|r| r.init.clone()).collect::<Vec<_>>();
    let lane = |t: &Thread| t.place.lane().is_some() || t.regs.iter().any(|r| r.init == RegInit::Lane);
    if x.body != y.body || start(x) != start(y) || lane(x) || lane(y) || !one_map_of_lines(x, y) {
        return false;
    }
    let (p, q) = (&x.place, &y.place);
    let own = program.objects.iter().any(|o| !matches!(o.space, Space::Global | Space::Generic));
    if own && !p.same_cta(q) {
        return false;
    }
    let others = || {
        (0..program.threads.len())
            .filter(|c| *c != a.index() && *c != b.index())
            .map(|c| &program.threads[c].place)
    };
    let one_place = stands(p, q) == stands(q, p)
        && stands(p, p) == stands(q, q)
        && others().all(|r| stands(p, r) == stands(q, r) && stands(r, p) == stands(r, q));
    let asked = program.conditions.iter().map(|c| &c.expr).chain(&program.filter);
    let one_question = |e: &Expr| told(e, None) == told(e, Some((a, b)));
    (one_place || bug == Some(Planted::AlikeAnywhere))
        && (asked.into_iter().all(one_question) || bug == Some(Planted::AlikeAsked))
}

/// Instructions share a line in one of them where they do in the other: findings are told by line.
fn one_map_of_lines(x: &Thread, y: &Thread) -> bool {
    let lines = |t: &Thread| t.body.iter().map(|i| i.line).collect::<Vec<_>>();
    let (xs, ys) = (lines(x), lines(y));
    (0..xs.len()).all(|i| (0..i).all(|j| (xs[i] == xs[j]) == (ys[i] == ys[j])))
}

/// All that ordinary instructions can see of how two places stand to each other.
fn stands(p: &Placement, q: &Placement) -> ([bool; 4], [bool; 5], Ordering) {
    let scopes = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys].map(|s| p.includes(s, q));
    let stream = (p.gpu, p.stream) == (q.gpu, q.stream);
    let one = p == q || (p.same_cta(q) && p.warp == q.warp);
    (scopes, [p.host, q.host, p.same_cta(q), stream, one], p.grid.cmp(&q.grid))
}

/// A question in words that do not depend on the order of its members, with two threads exchanged.
fn told(expr: &Expr, exchanged: Option<(ThreadId, ThreadId)>) -> String {
    let thread = |t: &ThreadId| match exchanged {
        Some((a, b)) if *t == a => b.0,
        Some((a, b)) if *t == b => a.0,
        _ => t.0,
    };
    let term = |t: &Term| match t {
        Term::Const(c) => format!("{c}"),
        Term::Reg(t, r) => format!("t{}r{}", thread(t), r.0),
        Term::Mem { symbol, offset, bytes, thread: of } => {
            format!("m{}+{offset}:{bytes}@{:?}", symbol.0, of.as_ref().map(thread))
        }
    };
    let all = |es: &[Expr]| {
        let mut words: Vec<String> = es.iter().map(|e| told(e, exchanged)).collect();
        words.sort();
        words.join(" ")
    };
    match expr {
        Expr::Bool(b) => format!("{b}"),
        Expr::Not(e) => format!("not({})", told(e, exchanged)),
        Expr::And(es) => format!("and({})", all(es)),
        Expr::Or(es) => format!("or({})", all(es)),
        Expr::Cmp(op, a, b) => format!("{op:?}({} {})", term(a), term(b)),
    }
}

/// See [`Class::writes_at`]; an atomic rather than a store, for atomics on one place are ordered in every model that
/// orders anything.
fn writes_at(thread: &Thread) -> Option<usize> {
    let body = &thread.body;
    if body.iter().any(|i| matches!(i.op, Op::Bra { .. } | Op::Exit)) {
        return None;
    }
    let single = |ty: &Ty| !ty.packed() && ty.bytes() <= 8;
    let placed = |i: &&Instr| i.guard.is_none();
    let known = |addr: &Address| base_symbol(thread, addr).is_some();
    let atomic = |i: &Instr| {
        matches!(&i.op, Op::Rmw { op, ty, addr, .. } if *op != AtomOp::Cas && single(ty) && known(addr))
            || matches!(element(&i.op), Some((TileKind::Rmw { op, .. }, addr)) if op != AtomOp::Cas && known(addr))
    };
    let strong = |order: StoreOrder| order != StoreOrder::Weak;
    let store = |i: &Instr| {
        matches!(&i.op, Op::Store { order, ty, addr, src, .. }
            if strong(*order) && single(ty) && src.len() == 1 && known(addr))
            || matches!(element(&i.op), Some((TileKind::Store(order), addr)) if strong(order) && known(addr))
    };
    let find = |wanted: &dyn Fn(&Instr) -> bool| body.iter().position(|i| placed(&i) && wanted(i));
    find(&atomic).or_else(|| find(&store))
}

/// What an access of a tile does that has one element, which is always there.
fn element(op: &Op) -> Option<(TileKind, &Address)> {
    let Op::Tile(TileOp::Access(access)) = op else { return None };
    match access.elements.as_slice() {
        [one] if one.mask.is_none() => Some((access.kind, &one.addr)),
        _ => None,
    }
}
