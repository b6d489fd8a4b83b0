//! Ctrl-C, for commands that finish their current work first.

use moire_console::exit;
use moire_worker::job::Cancel;

/// Makes Ctrl-C a request to stop: what is under way is finished and recorded. A second one ends the process.
pub(crate) fn on_interrupt(stop: Cancel) {
    let wait = async move {
        for _ in 0..2 {
            if tokio::signal::ctrl_c().await.is_err() {
                return;
            }
            if stop.is_cancelled() {
                std::process::exit(i32::from(exit::INCOMPLETE));
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
