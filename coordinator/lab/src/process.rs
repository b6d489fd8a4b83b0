//! Processes of this binary, which a trial runs and kills.
//!
//! Contract: a process never outlives its handle. All that it printed can be read after its end.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two polls of a process.
const GLANCE: Duration = Duration::from_millis(2);

/// A running `moire`; dropping it kills it.
pub(super) struct Process {
    child: Child,
    out: Lines,
    err: Lines,
}

/// How a process ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) out: Vec<String>,
    pub(super) err: Vec<String>,
}

impl Process {
    /// Starts `moire ARGS`.
    pub(super) fn start(args: &[&OsStr]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(args);
        Self::run(command)
    }

    /// Starts any command.
    pub(super) fn run(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a process")?;
        let out = Lines::of(child.stdout.take());
        let err = Lines::of(child.stderr.take());
        Ok(Self { child, out, err })
    }

    /// The most memory it has had so far, in MiB; `None` if the system does not say.
    pub(super) fn peak_mib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kb| kb >> 10)
    }

    /// Waits for its end, at most until `moment`.
    pub(super) fn over(&mut self, moment: Instant) -> Result<bool> {
        loop {
            if self.child.try_wait().context("cannot wait for a process")?.is_some() {
                return Ok(true);
            }
            if Instant::now() >= moment {
                return Ok(false);
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Waits until a line of its stderr contains `mark`, and returns the word after it, up to a blank or semicolon.
    /// Gives up at `moment` or when the process ends.
    pub(super) fn says(&mut self, mark: &str, moment: Instant) -> Result<Option<String>> {
        loop {
            let over = self.over(Instant::now())?;
            let find = |line: &String| {
                let (_, rest) = line.split_once(mark)?;
                rest.split([' ', ';']).next().map(str::to_owned)
            };
            let found = self.err.held().iter().find_map(find);
            if found.is_some() || over || Instant::now() >= moment {
                return Ok(found);
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Waits for its end.
    pub(super) fn wait(mut self) -> Result<Ended> {
        let status = self.child.wait().context("cannot wait for a process")?;
        Ok(Ended { status, out: self.out.all(), err: self.err.all() })
    }

    /// Ends it with SIGKILL, unless it has ended by itself.
    pub(super) fn kill(mut self) -> Result<Ended> {
        // Fails only if the process has ended.
        let _ = self.child.kill();
        self.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines read from a pipe by a thread of its own.
struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Lines {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let sink = Arc::clone(&lines);
        let read = move |pipe| {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        };
        Self { lines, reader: pipe.map(|pipe| std::thread::spawn(move || read(pipe))) }
    }
    fn held(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Returns all lines up to the end of the pipe.
    fn all(&mut self) -> Vec<String> {
        if let Some(reader) = self.reader.take() {
            // A reader ends with its pipe and does not panic.
            let _ = reader.join();
        }
        std::mem::take(&mut *self.held())
    }
}
