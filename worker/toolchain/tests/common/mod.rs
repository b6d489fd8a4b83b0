//! The assembler of a test run, and work on every processor.

#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use moire_toolchain::Ptxas;
use std::sync::Mutex;

/// One whose version has the recorded answers, or a line that says there is none.
pub(crate) fn assembler() -> Option<Ptxas> {
    match Ptxas::find(None) {
        Ok(ptxas) if ptxas.answers_for_the_rules() => Some(ptxas),
        Ok(ptxas) => {
            println!("skipped: ptxas {} is older than the recorded answers", ptxas.version());
            None
        }
        Err(tried) => {
            println!("skipped: no ptxas {tried:?}");
            None
        }
    }
}

/// Runs `each` on all items, on every processor.
pub(crate) fn on_all<T: Sync>(items: &[T], each: impl Fn(&T) + Sync) {
    let next = Mutex::new(items.iter());
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(item) = { next.lock().unwrap().next() } {
                    each(item);
                }
            });
        }
    });
}
