//! One exploration on several cores: a thread that waits for work gets alternatives that no other has taken yet.
//!
//! The threads share the pieces of one tree ([`Piece`]): a thread that has none left asks the others for one.
//!
//! A thread keeps what it knows of the program from one piece to the next, so a piece costs only the way to it. Each
//! execution has a number, and the sum of all numbers does not depend on which thread visited which execution.

use super::entry::{PieceWith, explore_part};
pub use super::piece::{Giver, Piece};
use crate::visit::{Abstain, LeafView, Limits, Summary, Visitor};
use moire_cat::Model;
use moire_program::ir::Program;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Whether a piece has no decision to make, so that its exploration finds nothing.
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
    let part = PieceWith { piece, giver: Some(&Probe) };
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
    explore_part(program, model, PieceWith { piece, giver }, limits, visitor)
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

/// Pieces that wait for a thread, and threads that wait for a piece.
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

    /// `None` when nothing is left and no thread can give any more.
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
        // A thread without work left finds that all are done. One that fails, stops or panics must not leave others waiting.
        let _end = End(self);
        let Some(piece) = self.next() else { return Ok(Summary::default()) };
        let part = PieceWith { piece: &piece, giver: Some(self) };
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
