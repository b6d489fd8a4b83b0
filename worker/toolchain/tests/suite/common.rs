//! The assembler of a test run, and work on every processor.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::outside::skipped;
use moire_tile_ir::bytecode::Bytecode;
use moire_toolchain::find::{candidates, environment};
use moire_toolchain::run::{Limits, run};
use moire_toolchain::{Ptxas, Version};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// One whose version has the recorded answers, or a line that says there is none.
pub(crate) fn assembler() -> Option<Ptxas> {
    match Ptxas::find(None) {
        Ok(ptxas) if ptxas.answers_for_the_rules() => Some(ptxas),
        Ok(ptxas) => {
            skipped(&format!("a ptxas as new as the recorded answers (found {})", ptxas.version()));
            None
        }
        Err(_) => {
            skipped("ptxas");
            None
        }
    }
}

/// NVIDIA's disassembler of Tile IR and the newest bytecode it reads, or a line that says there is none.
pub(crate) fn tile_disassembler() -> Option<(PathBuf, Bytecode)> {
    let Some(found) = candidates("tileirdisasm", None, &environment).into_iter().next() else {
        skipped("tileirdisasm");
        return None;
    };
    let mut command = Command::new(&found.path);
    command.arg("--version");
    let version = Version::parse(&run(command, Limits::default()).unwrap().stdout).unwrap();
    let newest = Bytecode::of(13, u8::try_from(version.minor).unwrap()).unwrap_or(Bytecode::V13_5);
    Some((found.path, newest))
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
