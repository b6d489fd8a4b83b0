//! The end that somebody asks for: Ctrl-C, or SIGTERM of a service manager.
//!
//! Contract: after [`listen`] the first request is kept, also where nothing waits for it yet; the second one ends the process at once,
//! with the exit code of an incomplete answer.

use crate::exit;
use std::sync::{LazyLock, Once, mpsc};
use tokio::sync::watch;

static ASKED: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));

/// From now on requests are kept. The first one is answered with `says` on stderr.
pub fn listen(says: &'static str) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (ready, begun) = mpsc::channel();
        std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                let Ok(mut requests) = Requests::new() else { return };
                // Nobody waits where the caller has gone.
                let _ = ready.send(());
                while requests.next().await.is_some() {
                    if is_asked() {
                        std::process::exit(exit::INCOMPLETE.into());
                    }
                    eprintln!("{says}");
                    ASKED.send_replace(true);
                }
            });
        });
        // Without a handler the system ends the process, as it would anyway.
        let _ = begun.recv();
    });
}

/// Whether the end was asked for.
pub fn is_asked() -> bool {
    *ASKED.borrow()
}

/// Completes when the end is asked for, or was before.
pub async fn asked() {
    let mut changes = ASKED.subscribe();
    if changes.wait_for(|asked| *asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
struct Requests {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Requests {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> Option<()> {
        tokio::select! {
            request = self.interrupt.recv() => request,
            request = self.terminate.recv() => request,
        }
    }
}

#[cfg(not(unix))]
struct Requests;

#[cfg(not(unix))]
impl Requests {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Option<()> {
        tokio::signal::ctrl_c().await.ok()
    }
}
