//! Lanes are threads: a warp of a litmus text stands for so many threads with one body, and few threads stand for the warp.
//!
//! `joined` replaces each thread of several lanes by *parts*, threads that run their lanes in one program order, such
//! that an exploration has the same verdict as with a thread for each lane: the same pairs of racing instructions, hangs,
//! protocol errors, and values that others see. Where it cannot prove that, lanes are apart; at worst each is a thread.
//!
//! **Conditions.** Lanes of one part agree on everything that synchronises or steers: S1 `control`, S2 `objects`,
//! S3 `releases`, S4 `counts`, S5 `values`. Each is an equivalence, so the coarsest partition is found by splitting.
//! Conflicts inside a part get a lane of their own (`twins`); parts that only wait are dropped (`idle`).
//!
//! **Argument.** Take an execution of single lanes in which lane i of a part races with something. Let the other lanes of
//! the part do what i does: read from the same writes at the same object (S2), be in the same phases (S4), go the same
//! ways (S1, S5). Nobody outside can tell, because joined lanes write nothing strong that others read but quiet
//! reductions, which carry no order (S3), and arrivals, which are in the same phase. The race is still there: orders to and
//! from i have not changed. In such an execution joining adds no order: a path that enters the part at an acquire of one
//! lane and leaves it behind another has a copy that stays in i. Inside the part the order of two instructions of two lanes
//! is the same for any two lanes, hence that of a twin and the rest. The other way round, a joined execution is one
//! schedule of its lanes, so it invents nothing.
//!
//! The answer is a function of the program. Texts, canonical forms, ids and the store keep the program as it was written.

mod build;
mod control;
mod counts;
mod exchange;
mod flow;
mod idle;
mod objects;
mod part;
mod planted;
mod releases;
mod sites;
mod twins;
mod value;
mod values;
mod waits;

pub use planted::Planted;

use crate::ir::{Expr, Placement, Program, Term, Thread, ThreadId};
use crate::text::lanes_words;
use flow::analyse;
use part::{Apart, SomeLanes, States};
use std::borrow::Cow;

/// Most entries of the table of what is known, registers times instructions. A thread with more has a thread a lane.
const ENTRIES: usize = 1 << 20;

/// Lanes of a thread, and what is known of their registers.
struct Piece<'p> {
    part: SomeLanes<'p>,
    states: States,
}

/// Whether some thread stands for several lanes that are not joined.
pub fn has_warps(program: &Program) -> bool {
    program.threads.iter().any(|t| is_warp(&t.place))
}

fn is_warp(place: &Placement) -> bool {
    place.several() && !place.joined
}

/// A program with few threads for each warp, and what they are in its text.
#[derive(Clone, Debug)]
pub struct Reduced<'p> {
    /// The program: the text itself if it has no warps.
    pub program: Cow<'p, Program>,
    /// For each of its threads the thread of the text that has its lanes.
    pub of: Vec<usize>,
    /// For each thread of the text the one that has its first lane, and whose registers the conditions name.
    pub first: Vec<usize>,
}

/// The program with few threads for each warp: see the header.
pub fn joined(program: &Program) -> Cow<'_, Program> {
    reduced(program).program
}

/// [`joined`], possibly with a bug planted for tests.
pub fn joined_with(program: &Program, bug: Option<Planted>) -> Cow<'_, Program> {
    split_by(program, |t| parts(program, t, bug)).program
}

/// [`joined`], with what its threads are in the text.
pub fn reduced(program: &Program) -> Reduced<'_> {
    split_by(program, |t| parts(program, t, None))
}

/// The program with a thread for each lane of a warp.
pub fn literal(program: &Program) -> Cow<'_, Program> {
    split_by(program, |t| singles(program, t, None)).program
}

/// The program with these threads for each warp.
fn split_by(program: &Program, by: impl Fn(usize) -> Vec<Thread>) -> Reduced<'_> {
    let same: Vec<usize> = (0..program.threads.len()).collect();
    if !has_warps(program) {
        return Reduced { program: Cow::Borrowed(program), of: same.clone(), first: same };
    }
    let of = |t: usize| if is_warp(&program.threads[t].place) { by(t) } else { vec![] };
    put_together(program, same.into_iter().map(of).collect())
}

/// A thread for each lane.
fn singles(program: &Program, thread: usize, bug: Option<Planted>) -> Vec<Thread> {
    let part = SomeLanes::of(program, thread, program.threads[thread].place.mask, bug);
    let of = |lane: &u8| single(&part.of_lanes(vec![*lane]));
    part.lanes.iter().map(of).collect()
}

fn single(part: &SomeLanes<'_>) -> Thread {
    let mut code = part.code().clone();
    code.place.mask = part.lanes.iter().fold(0, |mask, lane| mask | 1 << lane);
    code.place.joined = false;
    code
}

/// The threads of a warp.
fn parts(program: &Program, thread: usize, bug: Option<Planted>) -> Vec<Thread> {
    let code = &program.threads[thread];
    if code.body.len().saturating_mul(code.regs.len()) > ENTRIES {
        return singles(program, thread, bug);
    }
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let whole = SomeLanes::of(program, thread, code.place.mask, bug);
    let mut todo = vec![whole.lanes.clone()];
    while let Some(lanes) = todo.pop() {
        let part = whole.of_lanes(lanes);
        match pieces_of(&part) {
            Ok(found) => pieces.extend(found),
            Err(apart) => todo.extend(split(&part, &apart)),
        }
    }
    pieces.sort_by_key(|p| p.part.lanes.first().copied());
    drop_idle(&mut pieces);
    let threads: Option<Vec<Thread>> = pieces.iter().map(|p| build::thread(&p.part, &p.states)).collect();
    threads.unwrap_or_else(|| singles(program, thread, bug))
}

/// A part and its twins, if its lanes may stay together.
fn pieces_of<'p>(part: &SomeLanes<'p>) -> part::Done<Vec<Piece<'p>>> {
    let (states, sites) = analyse(part)?;
    let groups = twins::groups(part, &sites);
    if groups.len() == 1 {
        return Ok(vec![Piece { part: part.clone(), states }]);
    }
    let piece = |lanes| {
        let part = part.of_lanes(lanes);
        let states = analyse(&part).map_err(|_| Apart::All)?.0;
        Ok(Piece { part, states })
    };
    groups.into_iter().map(piece).collect()
}

/// The lanes that may stay together.
fn split(part: &SomeLanes<'_>, apart: &Apart) -> Vec<Vec<u8>> {
    match apart {
        Apart::All => part.lanes.iter().map(|lane| vec![*lane]).collect(),
        Apart::By(kinds) => {
            let mut groups = vec![Vec::new(); part.lanes.len()];
            part.lanes.iter().zip(kinds).for_each(|(lane, kind)| groups[*kind].push(*lane));
            groups.retain(|group| !group.is_empty());
            groups
        }
    }
}

fn drop_idle(pieces: &mut Vec<Piece<'_>>) {
    let mut n = 0;
    while n < pieces.len() {
        let idle = (0..pieces.len()).any(|other| other != n && idle::covered(&pieces[n], &pieces[other]));
        if idle {
            pieces.remove(n);
        } else {
            n += 1;
        }
    }
}

/// The program with these threads for its warps; an empty list keeps a thread.
fn put_together(program: &Program, pieces: Vec<Vec<Thread>>) -> Reduced<'_> {
    let mut out = Program { threads: Vec::new(), ..program.clone() };
    let (mut first, mut of) = (Vec::new(), Vec::new());
    for (t, (old, mut new)) in program.threads.iter().zip(pieces).enumerate() {
        let lane = old.place.lane();
        first.push(out.threads.len() + new.iter().position(|t| t.place.lane() == lane).unwrap_or(0));
        if new.len() > 1 {
            new.iter_mut().for_each(|t| t.name = format!("{} {}", old.name, lanes_words(&t.place)));
        }
        out.threads.extend(if new.is_empty() { vec![old.clone()] } else { new });
        of.resize(out.threads.len(), t);
    }
    let exprs = out.conditions.iter_mut().map(|c| &mut c.expr).chain(&mut out.filter);
    exprs.for_each(|e| renamed(e, &first));
    Reduced { program: Cow::Owned(out), of, first }
}

/// Registers and memory of a warp are those of its first lane.
fn renamed(expr: &mut Expr, first: &[usize]) {
    match expr {
        Expr::Bool(_) => {}
        Expr::Not(e) => renamed(e, first),
        Expr::And(es) | Expr::Or(es) => es.iter_mut().for_each(|e| renamed(e, first)),
        Expr::Cmp(_, a, b) => [a, b].into_iter().for_each(|term| match term {
            Term::Reg(t, _) | Term::Mem { thread: Some(t), .. } => *t = ThreadId::at(first[t.index()]),
            Term::Mem { thread: None, .. } | Term::Const(_) => {}
        }),
    }
}
