//! One file a command.

pub(crate) mod bench;
pub(crate) mod bisect;
pub(crate) mod certs;
pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod findings;
pub(crate) mod fuzz;
pub(crate) mod generate;
pub(crate) mod gpu;
pub(crate) mod models;
pub(crate) mod nightly;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod store;
pub(crate) mod test;
pub(crate) mod top;

use anyhow::Result;
use clap::CommandFactory;

/// `moire completions SHELL`
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8> {
    clap_complete::generate(shell, &mut crate::args::Cli::command(), "moire", &mut std::io::stdout());
    Ok(crate::exit::CLEAN)
}

/// Threads that work unless told otherwise.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Makes Ctrl-C a request to stop: what is under way is finished and recorded. A second one ends the process.
pub(crate) fn on_interrupt(stop: moire_worker::job::Cancel) {
    let wait = async move {
        for _ in 0..2 {
            if tokio::signal::ctrl_c().await.is_err() {
                return;
            }
            if stop.is_cancelled() {
                std::process::exit(i32::from(crate::exit::INCOMPLETE));
            }
            eprintln!("finishing what is under way; press Ctrl-C again to stop at once");
            stop.cancel();
        }
    };
    std::thread::spawn(move || {
        if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
            runtime.block_on(wait);
        }
    });
}
