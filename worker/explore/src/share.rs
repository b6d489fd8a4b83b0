//! One exploration on several cores: alternatives nobody has taken yet are given away when somebody waits for work.
//!
//! The tree of decisions is a function of the program and the model, and so is the order in which its leaves are visited:
//! alternatives have numbers, and the lower comes first. A [`Piece`] is a stretch of that order, from behind one node to
//! behind another. Whoever explores a piece and is asked gives away ([`Giver`]) what comes behind the shallowest node of
//! its path behind which something may be left, and ends there itself: one stretch becomes two. So every leaf is visited
//! once, by whom is a matter of chance, and the sum of what all visited is not.

use crate::explorer::{Abstain, LeafView, Limits, Part, Summary, Visitor, explore_part};
use moire_cat::Model;
use moire_program::ir::Program;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// A stretch of the leaves of a tree of decisions, in the order in which they are visited. A node stands for the
/// decisions that lead to it, and for all leaves under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Leaves up to and with those of this node are not in the piece; empty: it starts with the first leaf.
    pub behind: Vec<u32>,
    /// Leaves behind those of this node are not in the piece; empty, which is the root: it ends with the last leaf.
    pub until: Vec<u32>,
}

impl Piece {
    /// All leaves of a node.
    pub fn of(node: &[u32]) -> Piece {
        Piece { behind: before(node), until: node.to_vec() }
    }

    /// Whether leaves of the node that `choice` leads to behind `path`, of which leaves are in the piece, are in it too.
    fn takes(&self, path: &[u32], choice: u32) -> bool {
        let depth = path.len();
        let late = match self.behind.get(depth) {
            Some(first) if self.behind[..depth] == *path => match depth + 1 == self.behind.len() {
                true => choice > *first,
                false => choice >= *first,
            },
            _ => true,
        };
        let early = match self.until.get(depth) {
            Some(last) if self.until[..depth] == *path => choice <= *last,
            _ => true,
        };
        late && early
    }
}

/// The last node whose leaves come before those of `node`, or a node above it that ends with the same leaf; empty where
/// nothing comes before.
fn before(node: &[u32]) -> Vec<u32> {
    let depth = node.iter().rposition(|choice| *choice > 0);
    let mut out = depth.map_or_else(Vec::new, |depth| node[..=depth].to_vec());
    out.last_mut().into_iter().for_each(|choice| *choice -= 1);
    out
}

/// Who takes what an exploration gives away.
pub trait Giver: Sync {
    /// Whether somebody waits; asked at every decision.
    fn wanted(&self) -> bool;
    /// Hands over a piece; false: there is nothing in it, and another one is wanted.
    fn give(&self, piece: Piece) -> bool;
    /// Whether [`Visitor::reached`] is to be told how far this is; asked at every decision.
    fn due(&self) -> bool {
        false
    }
    /// Another piece for who is through with one; may wait for it.
    fn next(&self) -> Option<Piece> {
        None
    }
}

/// What is still to be visited of a piece by one search, while it visits it.
pub(crate) struct Share<'a> {
    piece: Piece,
    giver: Option<&'a dyn Giver>,
    /// Decisions before this one have no alternative left for this search.
    own: usize,
}

impl<'a> Share<'a> {
    pub(crate) fn new(piece: &Piece, giver: Option<&'a dyn Giver>) -> Self {
        Share { piece: piece.clone(), giver, own: 0 }
    }

    /// Whether this alternative behind `path` is this search's to visit.
    pub(crate) fn takes(&self, path: &[u32], choice: u32) -> bool {
        self.piece.takes(path, choice)
    }

    /// Where [`Visitor::reached`] is due: the node up to which all is done when `path` has just been taken.
    pub(crate) fn due(&self, path: &[u32]) -> Option<Vec<u32>> {
        // On the way to the first leaf of the piece nothing is done yet.
        let on_the_way = || self.piece.behind.starts_with(path);
        (self.giver.is_some_and(Giver::due) && !on_the_way()).then(|| before(path))
    }

    /// Where somebody waits, gives away what is left at the shallowest node of `path` at which something may be left.
    pub(crate) fn give(&mut self, path: &[u32]) {
        let Some(giver) = self.giver.filter(|g| g.wanted()) else { return };
        // The decision made just now is this search's to finish.
        while self.own + 1 < path.len() {
            let node = &path[..=self.own];
            self.own += 1;
            if self.piece.until.starts_with(node) {
                continue;
            }
            let given = Piece { behind: node.to_vec(), until: self.piece.until.clone() };
            if giver.give(given) {
                self.piece.until = node.to_vec();
                return;
            }
        }
    }
}

/// Whether there is no decision to make in a piece: whoever explores it finds nothing.
///
/// # Errors
/// An engine that gives no answer.
pub fn is_empty(program: &Program, model: &Model, piece: &Piece, limits: &Limits) -> Result<bool, Abstain> {
    struct Probe;
    impl Giver for Probe {
        fn wanted(&self) -> bool {
            false
        }
        fn give(&self, _: Piece) -> bool {
            false
        }
        fn due(&self) -> bool {
            true
        }
    }
    struct Stop;
    impl Visitor for Stop {
        fn leaf(&mut self, _: &mut dyn LeafView) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
        fn reached(&mut self, _: &[u32], _: &Summary) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let part = Part { piece, giver: Some(&Probe) };
    Ok(!explore_part(program, model, part, limits, &mut Stop)?.stopped)
}

/// Explores a part of the tree of a program, of which `giver` may get some.
///
/// # Errors
/// An engine that gives no answer.
pub fn explore_piece(
    program: &Program,
    model: &Model,
    piece: &Piece,
    giver: Option<&dyn Giver>,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Summary, Abstain> {
    explore_part(program, model, Part { piece, giver }, limits, visitor)
}

/// Explores a program with `visitors.len()` threads, each with a visitor of its own; totals are those of one thread, except
/// that `limits.leaves`, `checks` and `steps` bound what each thread does and not the whole.
///
/// # Errors
/// An engine that gives no answer.
pub fn explore_shared<V: Visitor + Send>(
    program: &Program,
    model: &Model,
    limits: &Limits,
    visitors: &mut [V],
) -> Result<(Summary, Vec<Summary>), Abstain> {
    let pool = Pool::new(visitors.len());
    let results: Vec<Result<Summary, Abstain>> = std::thread::scope(|scope| {
        let run = |visitor: &mut V| pool.work(program, model, limits, visitor);
        let threads: Vec<_> = visitors.iter_mut().map(|v| scope.spawn(move || run(v))).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let each: Vec<Summary> = results.into_iter().collect::<Result<_, _>>()?;
    Ok((each.iter().fold(Summary::default(), |all, one| all.plus(one)), each))
}

/// Pieces that wait, and who waits for one.
struct Pool {
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// Threads that wait for a piece beyond those that lie ready.
    hungry: AtomicUsize,
    ended: AtomicBool,
}

struct Queue {
    pieces: Vec<Piece>,
    waiting: usize,
    threads: usize,
}

impl Giver for Pool {
    fn wanted(&self) -> bool {
        self.hungry.load(Ordering::Relaxed) > 0
    }

    fn give(&self, piece: Piece) -> bool {
        let mut queue = self.lock();
        queue.pieces.push(piece);
        self.note(&queue);
        self.arrived.notify_one();
        // Looking into it costs more than having it.
        true
    }

    /// `None` when nothing is left and nobody can give any more.
    fn next(&self) -> Option<Piece> {
        let mut queue = self.lock();
        queue.waiting += 1;
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(piece) = queue.pieces.pop() {
                queue.waiting -= 1;
                self.note(&queue);
                return Some(piece);
            }
            if queue.waiting == queue.threads {
                self.end();
                return None;
            }
            self.note(&queue);
            queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Pool {
    fn new(threads: usize) -> Pool {
        Pool {
            queue: Mutex::new(Queue { pieces: vec![Piece::default()], waiting: 0, threads }),
            arrived: Condvar::new(),
            hungry: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, queue: &Queue) {
        self.hungry.store(queue.waiting.saturating_sub(queue.pieces.len()), Ordering::Relaxed);
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.arrived.notify_all();
    }

    fn work(
        &self,
        program: &Program,
        model: &Model,
        limits: &Limits,
        visitor: &mut dyn Visitor,
    ) -> Result<Summary, Abstain> {
        // Whoever is through finds that all are; one that fails, stops or panics must not leave the others waiting for it.
        let _end = End(self);
        let Some(piece) = self.next() else { return Ok(Summary::default()) };
        let part = Part { piece: &piece, giver: Some(self) };
        explore_part(program, model, part, limits, visitor)
    }
}

struct End<'p>(&'p Pool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let _queue = self.0.lock();
        self.0.end();
    }
}
