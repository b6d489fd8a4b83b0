//! Runs numbered pieces of work in parallel, and reports the results in the order of their numbers.
//!
//! Contract: the reported numbers are 0, 1, 2 and so on. Which results are reported does not depend on the number of
//! workers. A slow piece of work delays only the reports of later ones, not the work on them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Most pieces of work taken but not reported. The number is large, so that a slow piece does not stop the other
/// workers.
const AHEAD: u64 = 8_192;

struct Handed<T, F> {
    /// The next number to hand out.
    next: u64,
    /// The next number to report.
    told: u64,
    /// Results that wait for an earlier number to be done.
    ready: BTreeMap<u64, T>,
    over: bool,
    tell: F,
}

struct Shared<T, F> {
    line: Mutex<Handed<T, F>>,
    moved: Condvar,
}

/// Runs `work` of 0, 1, 2 and so on, on `workers` threads. Passes each result to `tell`, in order, until `tell` breaks.
pub(super) fn in_order<T: Send>(
    workers: usize,
    work: impl Fn(u64) -> T + Sync,
    tell: impl FnMut(u64, T) -> ControlFlow<()> + Send,
) {
    let line = Handed { next: 0, told: 0, ready: BTreeMap::new(), over: false, tell };
    let shared = Shared { line: Mutex::new(line), moved: Condvar::new() };
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                let _fallen = Fallen(&shared);
                while let Some(at) = shared.take() {
                    shared.done(at, work(at));
                }
            });
        }
    });
}

impl<T, F> Shared<T, F> {
    fn lock(&self) -> MutexGuard<'_, Handed<T, F>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next number to work on. `None` once `tell` has ended the run.
    fn take(&self) -> Option<u64> {
        let far = |line: &mut Handed<T, F>| !line.over && line.next >= line.told + AHEAD;
        let mut line = self.moved.wait_while(self.lock(), far).unwrap_or_else(PoisonError::into_inner);
        line.next += 1;
        (!line.over).then_some(line.next - 1)
    }
}

impl<T, F: FnMut(u64, T) -> ControlFlow<()>> Shared<T, F> {
    /// Adds a result, and reports all results that are next in order.
    fn done(&self, at: u64, result: T) {
        let mut guard = self.lock();
        let line = &mut *guard;
        line.ready.insert(at, result);
        while !line.over
            && let Some(result) = line.ready.remove(&line.told)
        {
            line.over = (line.tell)(line.told, result).is_break();
            line.told += 1;
        }
        self.moved.notify_all();
    }
}

/// A guard that ends the run if its worker panics, so that the others do not wait for the piece it had taken.
struct Fallen<'a, T, F>(&'a Shared<T, F>);

impl<T, F> Drop for Fallen<'_, T, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().over = true;
            self.0.moved.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "one worker is to be late")]
    fn results_are_reported_in_order_until_the_break() {
        for workers in [1, 2, 7] {
            let mut told = Vec::new();
            let slow = |at: u64| {
                // The first piece of work ends last.
                std::thread::sleep(Duration::from_millis(if at == 0 { 20 } else { 0 }));
                at * at
            };
            in_order(workers, slow, |at, square| {
                told.push((at, square));
                if at == 99 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(told, (0..100).map(|at| (at, at * at)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_in_one_worker_ends_the_run() {
        let run = || {
            let work = |at: u64| assert_ne!(at, 3, "falls");
            in_order(2, work, |_, ()| ControlFlow::Continue(()));
        };
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
