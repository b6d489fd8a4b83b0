//! One run of a tool: it has a deadline and a cap on its output, and every process it started ends with it.

#![expect(clippy::disallowed_methods, reason = "nobody is told that a process has ended, before a deadline")]

use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest pause between two checks of whether a tool has ended.
const MAX_POLL_PAUSE: Duration = Duration::from_millis(10);

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time until the process group is killed.
    pub deadline: Duration,
    /// Bytes kept of each of stdout and stderr; the rest is read and dropped.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(60), output: 64 << 10 }
    }
}

/// The result of a finished run.
#[derive(Clone, Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Whether the cap cut either of them.
    pub cut: bool,
}

/// The reason that there is no [`Output`].
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The tool did not start, or a file it needs could not be written.
    #[error("cannot run it: {0}")]
    Start(#[from] std::io::Error),
    /// It was killed at its deadline.
    #[error("not finished after {0:?}")]
    TimedOut(Duration),
}

/// How often a program that is busy is started again.
const MAX_BUSY_STARTS: usize = 200;
/// Time between two such starts.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Starts a process.
///
/// A script that was just written can still be open for writing in a child that another thread has forked and that has
/// not executed its own program yet; the system then refuses to start the script (`ETXTBSY`). This ends by itself, so
/// the start is tried again.
fn start(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..MAX_BUSY_STARTS {
        match command.spawn() {
            Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::sleep(BUSY_PAUSE),
            done => return done,
        }
    }
    command.spawn()
}

/// Runs `command` with nothing on its standard input.
///
/// # Errors
/// See [`RunError`]. Whatever the end, no process of the group is left.
pub fn run(mut command: Command, limits: Limits) -> Result<Output, RunError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = start(&mut command)?;
    let stdout = child.stdout.take().map(|pipe| keep(pipe, limits.output));
    let stderr = child.stderr.take().map(|pipe| keep(pipe, limits.output));
    let status = wait(&mut child, limits.deadline);
    // Also after a normal end: a process left behind would hold the pipes open.
    end(&child);
    let status = match status {
        Ok(Some(status)) => status,
        other => {
            let _ = child.wait();
            return Err(other.err().map_or(RunError::TimedOut(limits.deadline), RunError::Start));
        }
    };
    let (stdout, a) = kept(stdout);
    let (stderr, b) = kept(stderr);
    Ok(Output { status, stdout, stderr, cut: a || b })
}

fn wait(child: &mut Child, deadline: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(MAX_POLL_PAUSE);
    }
}

/// Kills the process group; that fails only if the group is gone already.
fn end(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Reads a pipe to its end and keeps the beginning.
fn keep(mut pipe: impl Read + Send + 'static, most: usize) -> JoinHandle<(Vec<u8>, bool)> {
    std::thread::spawn(move || {
        let (mut kept, mut cut, mut buffer) = (Vec::new(), false, [0; 4096]);
        while let Ok(n) = pipe.read(&mut buffer) {
            if n == 0 {
                break;
            }
            let room = most.saturating_sub(kept.len()).min(n);
            kept.extend_from_slice(&buffer[..room]);
            cut |= room < n;
        }
        (kept, cut)
    })
}

fn kept(thread: Option<JoinHandle<(Vec<u8>, bool)>>) -> (String, bool) {
    let (bytes, cut) = thread.and_then(|t| t.join().ok()).unwrap_or_default();
    (String::from_utf8_lossy(&bytes).into_owned(), cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_come_back() {
        let out = run(shell("echo a; echo b >&2; exit 3"), Limits::default()).unwrap();
        assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("a\n", "b\n"));
        assert_eq!((out.status.code(), out.cut), (Some(3), false));
    }

    #[test]
    fn output_is_capped_and_the_tool_still_ends() {
        let limits = Limits { output: 1000, ..Limits::default() };
        let out = run(shell("yes | head -c 1000000"), limits).unwrap();
        assert_eq!((out.stdout.len(), out.cut, out.status.success()), (1000, true, true));
    }

    #[test]
    fn a_deadline_ends_the_whole_group() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("pid");
        // The child of the shell would outlive it.
        let script = format!("sleep 1000 & echo $! > {}; wait", mark.display());
        let limits = Limits { deadline: Duration::from_millis(500), ..Limits::default() };
        assert!(matches!(run(shell(&script), limits), Err(RunError::TimedOut(_))));
        let pid: i32 = std::fs::read_to_string(mark).unwrap().trim().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        // Ends once the process is dead, even if its new parent has not collected it yet.
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        while state().is_ok_and(|s| !s.contains(") Z ")) {
            std::thread::sleep(MAX_POLL_PAUSE);
        }
    }

    #[test]
    fn what_does_not_start_is_an_error() {
        assert!(matches!(
            run(Command::new("no such tool anywhere"), Limits::default()),
            Err(RunError::Start(_))
        ));
    }
}
