//! Batches: some programs, one after the other, in one process on one device, and what their record says.
//!
//! Contract: each program has a lane of its own, with its own seed, which begins and ends with the probe. So its part of the
//! record is what `moire gpu --record` writes of this program alone with this seed. The process prints the record while it
//! runs, and the caller reads it by the same lanes: a record that ends early, because its process did, answers for the
//! programs before its end, and a launch of something else answers for nothing.

use crate::device::{Device, DeviceError, Identity};
use crate::histogram::Histogram;
use crate::lane::{Lane, LaneError, Settings, probe};
use crate::record::{Recorder, Replayer};
use moire_program::ir::Program;
use moire_program::text::{Format, parse, print};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Most programs of a batch.
pub const BATCH: usize = 64;

/// A program of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Its text.
    pub program: String,
    /// The seed of its placements.
    pub seed: u64,
}

/// A batch, as it is asked of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The programs. None: only the identity of the device is wanted.
    pub programs: Vec<Asked>,
    /// See [`Settings::probability`].
    pub probability: f64,
    /// See [`Settings::launches`].
    pub launches: u32,
}

impl Request {
    /// Adds a program.
    pub fn ask(&mut self, program: &Program, seed: u64) {
        self.programs.push(Asked { program: print(program), seed });
    }

    /// A batch of the probe alone.
    pub fn probe() -> Self {
        let mut request = Self { probability: 0.5, launches: 1, ..Self::default() };
        request.ask(&probe(), 0);
        request
    }

    fn settings(&self, seed: u64) -> Settings {
        Settings { probability: self.probability, launches: self.launches, seed }
    }

    /// Runs a program of the batch on a device, or on the record of one.
    fn one(&self, device: &mut impl Device, asked: &Asked) -> Result<Histogram, LaneError> {
        let program = parse(&asked.program, Format::Native).map_err(|_| LaneError::Unread)?;
        Lane::new(device, None, self.settings(asked.seed), 0)?.run(&program, 0)
    }

    /// Runs the batch and writes its record. No further program begins once `late` says so, or once the device failed.
    ///
    /// # Errors
    /// The device failed, or the record cannot be written.
    pub fn run<D: Device>(
        &self,
        device: D,
        out: impl Write,
        mut late: impl FnMut() -> bool,
    ) -> Result<(), LaneError> {
        let failed = |e: io::Error| DeviceError::Failed { call: "writing the record", why: e.to_string() };
        let mut device = Recorder::new(device, out).map_err(failed)?;
        for asked in &self.programs {
            if late() {
                break;
            }
            match self.one(&mut device, asked) {
                Ok(_) | Err(LaneError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What the record of this batch says: the device, and of each program its histogram, or why it has none.
    ///
    /// # Errors
    /// It is no record.
    pub fn answers(&self, record: &[u8]) -> io::Result<(Identity, Vec<Result<Histogram, LaneError>>)> {
        let mut device = Replayer::read_cut(record)?;
        let answers = self.programs.iter().map(|asked| self.one(&mut device, asked)).collect();
        Ok((device.identity().clone(), answers))
    }
}
