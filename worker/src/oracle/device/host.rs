//! Where batches run: in a process of their own, or, for tests, in this one.
//!
//! Contract: a process that dies, or hangs and is killed, loses its batch and nothing else. One process at a time has a
//! device, by the lock of [`Locked`]; who waits for it gives signs of life. A device that failed is set aside.

use crate::job::Cancel;
use moire_gpu::{Device, Identity, LaneError, Locked, Request};
use moire_toolchain::run::{Limits, RunError, run};
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest batch, the start of its process included: shorter than a lease may show no progress.
const BATCH_TIME: Duration = Duration::from_secs(55);
/// Longest record of a batch, in bytes.
const RECORD_BYTES: usize = 64 << 20;
/// Time between two tries to get a device that another process has.
const PAUSE: Duration = Duration::from_millis(50);

/// The record of a batch.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// As far as it was written.
    pub bytes: Vec<u8>,
    /// Why the batch ended early.
    pub ended: Option<String>,
}

/// Runs batches on one device.
pub trait Host: fmt::Debug + Send + Sync {
    /// The device.
    fn identity(&self) -> &Identity;
    /// Runs a batch. It ends, whatever the device does.
    fn record(&self, request: &Request, cancel: &Cancel) -> Recorded;
}

/// A device behind processes, each for one batch.
#[derive(Debug)]
pub struct Processes {
    program: PathBuf,
    args: Vec<OsString>,
    /// The folder of the locks; none for a stand-in, of which each process has its own.
    locks: Option<PathBuf>,
    identity: Identity,
}

impl Processes {
    /// The device that `program` runs batches on when it is given `args` and the file of a request.
    ///
    /// # Errors
    /// There is no such device.
    pub fn open(program: PathBuf, args: Vec<OsString>, locks: PathBuf) -> Result<Self, String> {
        let identity =
            Identity { name: String::new(), uuid: String::new(), capability: (0, 0), driver: String::new() };
        let asked = Request::default();
        let mut all = Self { program, args, locks: None, identity };
        let recorded = all.run(&asked);
        let read =
            asked.answers(&recorded.bytes).map_err(|e| recorded.ended.unwrap_or_else(|| e.to_string()));
        all.identity = read?.0;
        all.locks = (!all.identity.is_stand_in()).then_some(locks);
        Ok(all)
    }

    /// Runs a batch, also while something else has the device.
    fn run(&self, request: &Request) -> Recorded {
        let ended = |why: String| Recorded { bytes: Vec::new(), ended: Some(why) };
        let file = tempfile::NamedTempFile::new().and_then(|mut file| {
            serde_json::to_writer(&mut file, request)?;
            file.flush()?;
            Ok(file)
        });
        let file = match file {
            Ok(file) => file,
            Err(error) => return ended(error.to_string()),
        };
        let mut command = Command::new(&self.program);
        command.args(&self.args).arg(file.path());
        match run(command, Limits { deadline: BATCH_TIME, output: RECORD_BYTES }) {
            Ok(out) => {
                let said = out.stderr.lines().next().unwrap_or_default().trim_start_matches("moire: ");
                let status = out.status.to_string();
                let why = if said.is_empty() { status } else { said.to_owned() };
                Recorded { bytes: out.stdout.into_bytes(), ended: (!out.status.success()).then_some(why) }
            }
            Err(RunError::TimedOut(after)) => ended(format!("no answer in {} seconds", after.as_secs())),
            Err(RunError::Start(error)) => ended(error.to_string()),
        }
    }

    /// Whether a new process runs the probe.
    fn is_well(&self) -> bool {
        let request = Request::probe();
        request.answers(&self.run(&request).bytes).is_ok_and(|(_, all)| all.iter().all(Result::is_ok))
    }

    /// Waits for the device.
    #[expect(clippy::disallowed_methods, reason = "the other process does not say when it has done")]
    fn taken(&self, cancel: &Cancel) -> Result<Option<Locked>, String> {
        let Some(folder) = &self.locks else { return Ok(None) };
        loop {
            match Locked::take(folder, &self.identity.uuid, now_ms()) {
                Ok(lock) => return Ok(Some(lock)),
                Err(LaneError::Busy { .. }) if !cancel.is_cancelled() => std::thread::sleep(PAUSE),
                Err(LaneError::Aside(_)) => return Err("it is set aside, because it failed".to_owned()),
                Err(error) => return Err(error.to_string()),
            }
            cancel.tick();
        }
    }
}

/// The time of day, in Unix milliseconds.
#[expect(clippy::disallowed_methods, reason = "how long a device is set aside is no answer")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Host for Processes {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn record(&self, request: &Request, cancel: &Cancel) -> Recorded {
        let lock = match self.taken(cancel) {
            Ok(lock) => lock,
            Err(why) => return Recorded { bytes: Vec::new(), ended: Some(why) },
        };
        let recorded = self.run(request);
        cancel.tick();
        // What took its process with it may be the program. A folder in which nothing can be written will fail the next batch.
        if recorded.ended.is_some() && !self.is_well() {
            let _ = lock.map(|lock| lock.set_aside(now_ms()));
        }
        recorded
    }
}

/// A device of this process, for tests: it must not die or hang.
#[derive(Debug)]
pub struct Within<D>(Mutex<D>, Identity);

impl<D: Device> Within<D> {
    /// This device.
    pub fn new(device: D) -> Self {
        let identity = device.identity().clone();
        Self(Mutex::new(device), identity)
    }
}

impl<D: Device + fmt::Debug + Send> Host for Within<D> {
    fn identity(&self) -> &Identity {
        &self.1
    }

    fn record(&self, request: &Request, _cancel: &Cancel) -> Recorded {
        let mut device = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::new();
        let ended = request.run(&mut *device, &mut bytes, || false).err().map(|e| e.to_string());
        Recorded { bytes, ended }
    }
}
