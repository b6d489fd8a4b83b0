//! The lane: exclusive use of a device, which is trusted only while its probe gives the known answer.
//!
//! Contract: one process at a time has a device, by a lock file that the system releases with the process. A probe with one
//! possible outcome runs before the first program and after each program. If the probe shows another outcome, or a launch
//! fails, the samples of the program are discarded and the device is set aside until a time that is written beside the lock.
//! The lane reads no clock; the time is passed in.

use crate::device::{Batch, Device, DeviceError};
use crate::histogram::{Histogram, Seen, budget};
use crate::kernel::kernel;
use crate::strategy::{STRATEGIES, draw};
use moire_program::Refusal;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Time for which a device that failed is set aside.
const ASIDE_MS: u64 = 10 * 60 * 1000;
/// A program with one outcome: two atomics that both count, and a read behind a write.
const PROBE: &str = "moire \"probe\"\n.global .b32 x;\n.global .b32 y;\n\
    P0 (gpu 0, cta 0) { .reg r0; red.relaxed.gpu.global.add.u32 [x], 1; st.relaxed.gpu.global.u32 [y], 7; \
    ld.relaxed.gpu.global.u32 r0, [y]; }\n\
    P1 (gpu 0, cta 1) { red.relaxed.gpu.global.add.u32 [x], 2; }\n";

/// See [`PROBE`].
pub(crate) fn probe() -> Program {
    parse(PROBE, Format::Native).expect("the probe is a program")
}

/// Settings of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Least probability of an outcome that should be seen with 95 % confidence. It decides the number of samples.
    pub probability: f64,
    /// Most launches of a program.
    pub launches: u32,
    /// The seed of placements.
    pub seed: u64,
}

/// The reason that a program was not run, or that its samples do not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaneError {
    /// The lane does not take the program.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A launch failed; the device is set aside.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The probe showed an impossible outcome; the device is set aside.
    #[error("the device does not answer its probe: {0}")]
    Probe(String),
    /// The program is no text that this release reads.
    #[error("its text does not read here")]
    Unread,
    /// Another process has the device.
    #[error("another process has the device; {path} is locked", path = path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
    },
    /// The device failed not long ago.
    #[error("the device is set aside for {0} more seconds, because it failed")]
    Aside(u64),
    /// The folder of locks cannot be used.
    #[error("{path}: {source}", path = path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Exclusive use of a device.
#[derive(Debug)]
pub struct Locked {
    aside: PathBuf,
    /// Holds the lock.
    file: File,
}

/// Gives the lock back at once. Closing the file is not enough: a child process that another thread has just forked holds
/// the same open file until it starts its program.
impl Drop for Locked {
    fn drop(&mut self) {
        // What cannot be unlocked is unlocked when the last holder closes it.
        let _ = self.file.unlock();
    }
}

impl Locked {
    /// Takes the device with this number for this process. `now_ms`: Unix milliseconds.
    ///
    /// # Errors
    /// Another process has it, it is set aside, or the folder cannot be used.
    pub fn take(folder: &Path, uuid: &str, now_ms: u64) -> Result<Self, LaneError> {
        let named = |ending: &str| {
            let safe: String =
                uuid.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
            folder.join(format!("gpu-{safe}.{ending}"))
        };
        let (path, aside) = (named("lock"), named("aside"));
        let failed = |source| LaneError::Folder { path: path.clone(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let open = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = open.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LaneError::Busy { path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let until: u64 = fs::read_to_string(&aside).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0);
        // A lane never writes a time further away than this.
        let left = until.saturating_sub(now_ms);
        if (1..=ASIDE_MS).contains(&left) {
            return Err(LaneError::Aside(left.div_ceil(1000)));
        }
        Ok(Self { aside, file })
    }

    /// Sets the device aside for ten minutes from now on.
    ///
    /// # Errors
    /// That cannot be written down.
    pub fn set_aside(&self, now_ms: u64) -> Result<(), LaneError> {
        let failed = |source| LaneError::Folder { path: self.aside.clone(), source };
        fs::write(&self.aside, format!("{}\n", now_ms.saturating_add(ASIDE_MS))).map_err(failed)
    }
}

/// The exclusive use of a device.
pub struct Lane<D> {
    device: D,
    lock: Option<Locked>,
    settings: Settings,
    probe: Program,
    launched: u64,
}

impl<D: Device> Lane<D> {
    /// A lane on the device of `lock`, after a probe. A record needs no lock.
    ///
    /// # Errors
    /// It does not answer the probe.
    pub fn new(device: D, lock: Option<Locked>, settings: Settings, now_ms: u64) -> Result<Self, LaneError> {
        let mut lane = Self { device, lock, settings, probe: probe(), launched: 0 };
        lane.probed(now_ms)?;
        Ok(lane)
    }
    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Runs a program with every strategy in turn, until there are enough samples.
    ///
    /// # Errors
    /// See [`LaneError`]. No sample counts then.
    pub fn run(&mut self, program: &Program, now_ms: u64) -> Result<Histogram, LaneError> {
        let target = self.device.identity().target();
        let kernel = kernel(program, &target)?;
        let enough = budget(self.settings.probability);
        let mut all = Histogram::default();
        for n in 0..self.settings.launches {
            let strategy = &STRATEGIES[n as usize % STRATEGIES.len()];
            let seed = self.seed();
            let launched = self.device.run(&Batch { program, kernel: &kernel, strategy, seed });
            all.merge(self.trusted(launched, now_ms)?);
            // Every strategy has a turn, however many samples the first ones gave.
            if n as usize + 1 >= STRATEGIES.len() && all.samples() >= enough {
                break;
            }
        }
        self.probed(now_ms)?;
        Ok(all)
    }

    fn set_aside(&self, now_ms: u64) -> Result<(), LaneError> {
        self.lock.as_ref().map_or(Ok(()), |lock| lock.set_aside(now_ms))
    }

    fn seed(&mut self) -> u64 {
        self.launched += 1;
        draw(&mut self.settings.seed.wrapping_add(self.launched))
    }

    fn trusted<T>(&self, answer: Result<T, DeviceError>, now_ms: u64) -> Result<T, LaneError> {
        if answer.is_err() {
            self.set_aside(now_ms)?;
        }
        Ok(answer?)
    }

    fn probed(&mut self, now_ms: u64) -> Result<(), LaneError> {
        let kernel = kernel(&self.probe, &self.device.identity().target())?;
        let seed = self.seed();
        let batch = Batch { program: &self.probe, kernel: &kernel, strategy: &STRATEGIES[0], seed };
        let launched = self.device.run(&batch);
        let seen = self.trusted(launched, now_ms)?;
        let word = |n: u32| n.to_le_bytes().to_vec();
        let expected = Seen { regs: vec![7], memory: vec![word(3), word(7)] };
        if seen.samples() == 0 || seen.0.keys().any(|s| *s != expected) {
            self.set_aside(now_ms)?;
            let first = seen.0.keys().find(|s| **s != expected);
            return Err(LaneError::Probe(
                first.map_or_else(|| "nothing at all".to_owned(), |s| format!("{s:?}")),
            ));
        }
        Ok(())
    }
}
