//! A child process that runs leases: its start and end as its parent sees them, and its work.

use super::frame;
use crate::job::{Cancel, Engine};
use crate::lease::{Desk, run};
use crate::trial::Trial;
use moire_proto::v1::{self, from_worker::Message as Up, to_worker::Message as Down};
use moire_proto::{MEMORY, STACK};
use std::ffi::OsString;
use std::io::{Read as _, Result};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio, exit};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;
use tokio::sync::mpsc;

/// Names the failpoints of children, where the worker has others.
const CHILD_FAILPOINTS: &str = "MOIRE_LEASE_FAILPOINTS";
/// Time between two signs of life of a child.
const BEAT: Duration = Duration::from_millis(200);
/// Most frames of a child that its parent has not taken yet.
const FRAMES: usize = 64;
/// Most bytes kept of what a child wrote first to stderr.
const FIRST_WORDS: usize = 1_024;
/// Most bytes kept of what it wrote last.
const LAST_WORDS: usize = 4_096;

/// A running child.
#[derive(Debug)]
pub(super) struct Child {
    process: std::process::Child,
    stdin: ChildStdin,
    /// Its messages; closed when it has ended.
    pub(super) frames: mpsc::Receiver<v1::FromWorker>,
    /// Gives the end of what it wrote to stderr.
    words: Option<JoinHandle<String>>,
    /// Leases it got.
    pub(super) leases: u32,
}

impl Child {
    /// Starts a child.
    pub(super) fn start(program: &Path, args: &[OsString]) -> Result<Self> {
        let mut process = Command::new(program)
            .args(args)
            // Points where a test stops a worker, or one of its children.
            .env("FAILPOINTS", std::env::var_os(CHILD_FAILPOINTS).unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let gone = || std::io::Error::other("a child without pipes");
        let stdin = process.stdin.take().ok_or_else(gone)?;
        let mut stdout = process.stdout.take().ok_or_else(gone)?;
        let mut stderr = process.stderr.take().ok_or_else(gone)?;
        let (sender, frames) = mpsc::channel(FRAMES);
        spawn(move || {
            while let Ok(Some(message)) = frame::read::<v1::FromWorker>(&mut stdout) {
                if sender.blocking_send(message).is_err() {
                    return;
                }
            }
        });
        let words = spawn(move || {
            let (mut words, mut part) = (Vec::new(), [0; 1_024]);
            while let Ok(n @ 1..) = stderr.read(&mut part) {
                words.extend_from_slice(&part[..n]);
                // The reason stands in front of a stack trace.
                let (first, excess) =
                    (FIRST_WORDS.min(words.len()), words.len().saturating_sub(FIRST_WORDS + LAST_WORDS));
                words.drain(first..first + excess);
            }
            String::from_utf8_lossy(&words).into_owned()
        });
        Ok(Self { process, stdin, frames, words: Some(words), leases: 0 })
    }

    /// Sends a message. A child that has ended takes none; its frames are closed then.
    pub(super) fn send(&mut self, message: Down) {
        let _ = frame::write(&mut self.stdin, &v1::ToWorker { message: Some(message) });
    }

    /// How a child ended that nobody here ended.
    pub(super) fn end(mut self) -> End {
        let status = self.process.wait();
        let words = self.words.take().and_then(|words| words.join().ok()).unwrap_or_default();
        let killed = status.as_ref().is_ok_and(is_killed);
        let status = status.map_or_else(|e| e.to_string(), |status| status.to_string());
        tracing::warn!(status, words, "a lease ended its process");
        match killed {
            true => End::Killed(format!("its process was killed from outside: {status}")),
            false => End::Own(reason(&status, &words)),
        }
    }
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By what it ran, for this reason: another child ends as well.
    Own(String),
    /// By somebody else, such as the kernel where the machine has no memory left: another child may not.
    Killed(String),
}

/// Whether a process ended by a signal that no process here sends itself. A limit of ours makes an allocation fail, and the
/// process aborts.
#[cfg(unix)]
fn is_killed(status: &ExitStatus) -> bool {
    // SIGHUP, SIGINT, SIGKILL, SIGTERM: numbers that every Unix shares.
    let signal = std::os::unix::process::ExitStatusExt::signal(status);
    signal.is_some_and(|signal| [1, 2, 9, 15].contains(&signal))
}

/// There are no signals.
#[cfg(not(unix))]
fn is_killed(_status: &ExitStatus) -> bool {
    false
}

/// The reason that the status and the last words of a child give.
fn reason(status: &str, words: &str) -> String {
    if words.contains("memory allocation of") {
        MEMORY.to_owned()
    } else if words.contains("has overflowed its stack") {
        STACK.to_owned()
    } else {
        format!("the engine ended: {status}")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only where it has ended and was waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The lease under way in a child, and the requests to it.
type Running = Arc<Mutex<Option<(u64, Cancel)>>>;

fn current(running: &Running) -> Option<(u64, Cancel)> {
    running.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Takes leases from stdin until it ends; the process ends with it, whatever runs.
fn listen(running: &Running, leases: &mpsc::Sender<(v1::Lease, Cancel)>) -> ! {
    let mut stdin = std::io::stdin().lock();
    while let Ok(Some(message)) = frame::read::<v1::ToWorker>(&mut stdin) {
        match (message.message, current(running)) {
            (Some(Down::Lease(lease)), _) => {
                let cancel = Cancel::new();
                let now = Some((lease.lease, cancel.clone()));
                *running.lock().unwrap_or_else(PoisonError::into_inner) = now;
                if leases.blocking_send((lease, cancel)).is_err() {
                    break;
                }
            }
            (Some(Down::Cancel(_)), Some((_, cancel))) => cancel.cancel(),
            (Some(Down::Give(_)), Some((_, cancel))) => cancel.want(),
            _ => {}
        }
    }
    exit(0)
}

/// Tells the parent how far the lease is.
#[expect(clippy::disallowed_methods, reason = "a thread of its own beats by the clock")]
fn beat(running: &Running, up: &mpsc::Sender<v1::FromWorker>) {
    loop {
        sleep(BEAT);
        let Some((lease, cancel)) = current(running) else { continue };
        let leases = vec![v1::LeaseProgress { lease, ticks: cancel.ticks() }];
        let beat = v1::FromWorker { message: Some(Up::Heartbeat(v1::Heartbeat { leases })) };
        if up.blocking_send(beat).is_err() {
            return;
        }
    }
}

/// Runs the leases that come on stdin, one after the other, and writes their reports to stdout. Says with an
/// acknowledgement that a lease is over.
///
/// # Errors
/// There is no runtime.
pub fn serve(engine: &Arc<dyn Engine>) -> Result<()> {
    let (running, trial) = (Running::default(), Trial::default());
    let (leases, mut todo) = mpsc::channel(1);
    let (up, mut out) = mpsc::channel::<v1::FromWorker>(FRAMES);
    spawn(move || {
        let mut stdout = std::io::stdout();
        while let Some(message) = out.blocking_recv() {
            if frame::write(&mut stdout, &message).is_err() {
                exit(0);
            }
        }
    });
    let (heard, told, beats) = (Arc::clone(&running), Arc::clone(&running), up.clone());
    spawn(move || listen(&heard, &leases));
    spawn(move || beat(&told, &beats));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        while let Some((lease, cancel)) = todo.recv().await {
            let id = lease.lease;
            run(Arc::clone(engine), lease, &Desk { cancel: &cancel, up: &up, trial: &trial }).await;
            *running.lock().unwrap_or_else(PoisonError::into_inner) = None;
            let over = v1::FromWorker { message: Some(Up::KillAck(v1::KillAck { lease: id })) };
            if up.send(over).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_child_has_a_reason() {
        let aborted = "signal: 6 (SIGABRT) (core dumped)";
        assert_eq!(reason(aborted, "memory allocation of 8589934592 bytes failed"), MEMORY);
        assert_eq!(reason(aborted, "\nthread 'main' has overflowed its stack\n"), STACK);
        assert_eq!(reason("exit status: 101", "panicked at"), "the engine ended: exit status: 101");
    }

    #[cfg(unix)]
    #[test]
    fn who_kills_a_child_is_told_from_what_it_runs() {
        let end = |script: &str| Child::start(Path::new("sh"), &["-c".into(), script.into()]).unwrap().end();
        // The tests may run where the other signals are ignored.
        for signal in ["KILL", "TERM"] {
            let end = end(&format!("kill -{signal} $$; sleep 9"));
            assert!(matches!(&end, End::Killed(why) if why.contains(signal)), "{end:?}");
        }
        let out_of_memory = "echo memory allocation of 8 bytes failed >&2; kill -ABRT $$";
        assert_eq!(end(out_of_memory), End::Own(MEMORY.to_owned()));
        let trace = "echo memory allocation of 8 bytes failed >&2; seq 9999 >&2; kill -ABRT $$";
        assert_eq!(end(trace), End::Own(MEMORY.to_owned()), "before a long stack trace");
        assert_eq!(end("exit 101"), End::Own("the engine ended: exit status: 101".to_owned()));
    }
}
