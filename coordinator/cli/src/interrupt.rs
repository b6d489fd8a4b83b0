//! Ctrl-C and SIGTERM, for commands that finish their current work first.

use moire_console::ending;
use moire_worker::job::Cancel;

/// Makes the first request a request to stop: what is under way is finished and recorded. A second one ends the process.
pub(crate) fn on_interrupt(stop: Cancel) {
    ending::listen("finishing what is under way; press Ctrl-C again to stop at once");
    std::thread::spawn(move || {
        if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
            runtime.block_on(ending::asked());
            stop.cancel();
        }
    });
}
