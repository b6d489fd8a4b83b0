//! Records of launches, which can replace a device.
//!
//! Format: JSON lines. The first is the identity of the device; each other line is a launch with its question and its
//! histogram or error. A record is replayed in its order. A launch with another question is an error, so a record never
//! answers for a program it was not made with.

use crate::device::{Batch, Device, DeviceError, Identity, Samples};
use crate::histogram::{Histogram, Seen};
use moire_program::text::print;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};

/// Most bytes of a line of a record.
const MAX_LINE_BYTES: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
struct Launch {
    program: String,
    strategy: crate::strategy::Strategy,
    seed: u64,
    seen: Vec<(Seen, u64)>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    error: String,
}

/// A histogram as a record: what was seen of a program in all launches together, and what is needed to look again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The device.
    pub device: Identity,
    /// The program.
    pub program: String,
    /// The model whose outcomes it was compared with.
    pub against: String,
    /// The seed of the placements.
    pub seed: u64,
    /// See [`crate::Settings::probability`].
    pub probability: f64,
    /// See [`crate::Settings::launches`].
    pub launches: u32,
    /// All samples.
    pub samples: u64,
    /// Samples with an outcome that the model forbids.
    pub forbidden: u64,
    /// Outcomes, and how often each was seen, those that the model forbids first. Where not all are kept, they are fewer than
    /// the samples.
    pub seen: Vec<(Seen, u64)>,
    /// The kernel that ran; empty if it was too long to keep.
    pub kernel: String,
}

/// A device whose launches are written down.
pub struct Recorder<D, W> {
    device: D,
    out: W,
}

impl<D: Device, W: Write> Recorder<D, W> {
    /// Starts the record.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(device: D, mut out: W) -> io::Result<Self> {
        serde_json::to_writer(&mut out, device.identity())?;
        out.write_all(b"\n")?;
        Ok(Self { device, out })
    }
}

impl<D: Device, W: Write> Device for Recorder<D, W> {
    fn identity(&self) -> &Identity {
        self.device.identity()
    }
    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError> {
        let answer = self.device.run(batch);
        let (seen, error) = match &answer {
            Ok(samples) => (samples.0.iter().map(|(s, n)| (s.clone(), *n)).collect(), String::new()),
            Err(error) => (Vec::new(), error.to_string()),
        };
        let launch = Launch {
            program: print(batch.program),
            strategy: *batch.strategy,
            seed: batch.seed,
            seen,
            error,
        };
        let mut line = serde_json::to_vec(&launch).map_err(io::Error::from);
        if let Ok(line) = &mut line {
            line.push(b'\n');
        }
        line.and_then(|line| self.out.write_all(&line))
            .map_err(|e| DeviceError::Failed { call: "writing the record", why: e.to_string() })?;
        answer
    }
}

/// A record in place of a device.
pub struct Replayer {
    identity: Identity,
    launches: Vec<Launch>,
    next: usize,
}

impl Replayer {
    /// Reads a record.
    ///
    /// # Errors
    /// It is none, or cannot be read.
    pub fn read(input: impl BufRead) -> io::Result<Self> {
        Self::lines(input, false)
    }

    /// Reads a record whose process may have ended while it wrote: a last line without its end is left out.
    ///
    /// # Errors
    /// It is none, or cannot be read.
    pub fn read_cut(input: impl BufRead) -> io::Result<Self> {
        Self::lines(input, true)
    }

    fn lines(mut input: impl BufRead, cut: bool) -> io::Result<Self> {
        let mut line = String::new();
        let mut next = |line: &mut String| {
            line.clear();
            io::Read::take(&mut input, MAX_LINE_BYTES).read_line(line).map(|n| n > 0)
        };
        next(&mut line)?;
        let identity = serde_json::from_str(&line)?;
        let mut launches = Vec::new();
        while next(&mut line)? && (!cut || line.ends_with('\n')) {
            launches.push(serde_json::from_str(&line)?);
        }
        Ok(Self { identity, launches, next: 0 })
    }
}

impl Device for Replayer {
    fn identity(&self) -> &Identity {
        &self.identity
    }
    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError> {
        let number = self.next;
        self.next += 1;
        let launch = self.launches.get(number).ok_or(DeviceError::NotRecorded(number))?;
        let same = launch.seed == batch.seed && launch.strategy == *batch.strategy;
        if !same || launch.program != print(batch.program) {
            return Err(DeviceError::OtherLaunch(number));
        }
        if !launch.error.is_empty() {
            return Err(DeviceError::Failed { call: "the recorded launch", why: launch.error.clone() });
        }
        Ok(Histogram(launch.seen.iter().cloned().collect()))
    }
}
