//! One exploration on several cores: alternatives nobody has taken yet are given away when somebody waits for work.
//!
//! The tree of decisions is a function of the program and the model, so a part of it is named by a [`Piece`]: the decisions
//! that lead to a node and, of the alternatives there, the last one that is somebody else's. Whoever explores a piece and is
//! asked gives away what is left at the shallowest node that is still its own ([`Giver`]); from then on that node is closed to
//! it. So every leaf is visited once, by whom is a matter of chance, and the sum of what all visited is not.

use crate::explorer::{Abstain, Bound, Limits, Part, Summary, Visitor, explore_part};
use moire_cat::Model;
use moire_program::ir::Program;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// A part of a tree of decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Decisions that lead to its node.
    pub prefix: Vec<u32>,
    /// Of the alternatives at the node, this one and those before it are not in the piece; `None`: all are.
    pub after: Option<u32>,
}

/// Who takes what an exploration gives away.
pub trait Giver: Sync {
    /// Whether somebody waits; asked at every decision.
    fn wanted(&self) -> bool;
    /// Hands over a piece.
    fn give(&self, piece: Piece);
}

/// Explores a part of the tree of a program.
pub fn explore_piece(
    program: &Program,
    model: &Model,
    piece: &Piece,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<Summary, Abstain> {
    explore_part(program, model, Part { piece, giver: None }, limits, visitor)
}

/// Explores a program with `visitors.len()` threads, each with a visitor of its own; totals are those of one thread, except
/// that `limits.leaves`, `checks` and `steps` bound each piece of work and not the whole.
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

    fn give(&self, piece: Piece) {
        let mut queue = self.lock();
        queue.pieces.push(piece);
        self.note(&queue);
        self.arrived.notify_one();
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

    /// The next piece; `None` when nothing is left and nobody can give any more.
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
        // A thread that fails or panics must not leave the others waiting for it.
        let guard = EndOnUnwind(self);
        let mut total = Summary::default();
        while let Some(piece) = self.next() {
            let part = Part { piece: &piece, giver: Some(self) };
            match explore_part(program, model, part, limits, visitor) {
                Ok(summary) => total = total.plus(&summary),
                Err(abstain) => {
                    let _queue = self.lock();
                    self.end();
                    return Err(abstain);
                }
            }
            if total.stopped || total.bounded.is_some_and(|b| b != Bound::Loop && b != Bound::Outcomes) {
                let _queue = self.lock();
                self.end();
            }
        }
        std::mem::forget(guard);
        Ok(total)
    }
}

struct EndOnUnwind<'p>(&'p Pool);

impl Drop for EndOnUnwind<'_> {
    fn drop(&mut self) {
        let _queue = self.0.lock();
        self.0.end();
    }
}
